"""
The law of lives over days: people with a home, a main place, kinds of day, and places they come back to.

A person is drawn first: a type (people who use kinds of day alike), a mix of kinds for weekdays and one for weekends
from the Dirichlet law of the type, a pace, a home, a main place. Then, day by day,

- a kind of day, by the person's mix;
- a diary of roles (home, main place, another): how likely it is to leave by kind, role, hour and dwell, and the next
  role; of several diaries one is taken by how usual its number of stays and its last role are;
- which other place: somewhere new (by popularity at this part of the day and the distances from here, home, main place
  and the nearest own place) or back to an own one (by own visits, at this part of the day, from here, and distance);
- cells that the trip passes through, by how far along and aside of the way they lie, how many people make these moves,
  and the routes this person has taken.

Everything learnt is a sum over people, and no place, kind of day or type of person rests on fewer than `m_min` of them.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elsewhere.synthesis.streams._kernels import open_stream
from elsewhere.synthesis.walk._lives_kernels import (
    BACK,
    BINS,
    CROWD_IN,
    CROWD_OUT,
    DWELLS,
    FROM_HERE,
    HOME,
    LIKE,
    MAIN,
    NOW,
    OFTEN,
    OTHER,
    OWN,
    PARTS,
    PASSES,
    PASSING,
    RANKS,
    RETURN,
    ROUTE,
    SHARES,
    STAYS,
    TAILS,
    TODAY,
    YESTERDAY,
    Law,
    choice_loss,
    diary,
    diary_columns,
    find_stays,
    live,
    pass_columns,
    seen,
)
from elsewhere.traces.model import Floats, Ints, Locations, Places

NIGHT, OFFICE = (0, 360), (540, 1020)  # minutes of the day
EDGES = (0, 420, 600, 840, 1020, 1200)  # where parts of the day begin
PASSING_MINUTES = 30  # what is shorter, between two stays, is part of the trip
DAYS_PER_KIND, MOST_KINDS = 80, 72
PEOPLE_PER_TYPE, MOST_TYPES = 25, 12
MOST_DAYS = 20_000  # to learn from: more teach nothing new
CELLS = 1.5e6  # choices x places that a fit holds at once
CLOCK_MINUTES = 20  # finest bins of the hour of leaving
RAKES = 5
TRIES = 12  # diaries of which one is taken
REHEARSED = 300  # diaries of each kind, to see which are too usual


@dataclass(frozen=True, eq=False)
class Lives:
    """The law of lives over P places; `draw` makes people who live by it."""

    law: Law = field(repr=False)
    type_share: Floats = field(repr=False)
    mix: Floats = field(repr=False)  # (types, 2, kinds) mean use of kinds on weekdays, at weekends
    spread: Floats = field(repr=False)  # (types, 2) concentration of people's own mixes about it
    stays: Floats = field(repr=False)  # (kinds,) mean number of stays beyond that of all weekdays, or weekends
    bustle: float  # deviation between people: mixes are tilted by exp(bustle z stays), z standard normal
    pace: float  # variance of how much more or less than others a person moves
    home: Floats = field(repr=False)
    main: Floats = field(repr=False)  # (types, P)
    main_reach: Floats = field(repr=False)  # (types, BINS)

    def draw(self, n: int, weekend: NDArray[np.bool_], rng: np.random.Generator) -> Places:
        """Draw `n` lives (n, D, L) of days on end, `weekend` (D,) says which are Saturdays or Sundays."""
        types = rng.choice(len(self.type_share), n, p=self.type_share)
        shape = self.mix[types] * self.spread[types][:, :, None]
        mix = rng.standard_gamma(shape) + 1e-12 * (shape > 0)
        mix *= np.exp(self.bustle * rng.standard_normal((n, 1, 1)) * self.stays)
        home = rng.choice(len(self.home), n, p=self.home / self.home.sum())
        main = np.empty(n, dtype=np.int64)
        for i, (t, h) in enumerate(zip(types.tolist(), home.tolist(), strict=True)):
            weight = self.main[t] * self.main_reach[t][self.law.bins[h]]
            weight[h] = 0.0
            total = weight.sum()
            main[i] = np.searchsorted(np.cumsum(weight), rng.random() * total, side="right") if total > 0 else -1
        main = np.minimum(main, len(self.home) - 1)
        pace = rng.gamma(1 / self.pace, self.pace, n) if self.pace > 1e-3 else np.ones(n)
        out = np.empty((n, len(weekend), len(self.law.clock)), dtype=np.int32)
        key = rng.integers(0, 2**63, 2).astype(np.uint64)
        live(self.law, mix, home, main, pace, np.asarray(weekend), TRIES, key, 0, out)
        return out


def learn_lives(
    r: NDArray[np.integer],
    user: NDArray[np.integer],
    day: NDArray[np.integer],
    weekend: NDArray[np.bool_],
    minutes: Floats,
    step_minutes: float,
    locations: Locations,
    *,
    m_min: int,
    rng: np.random.Generator,
) -> Lives:
    """
    Learn the law of lives from days (N, L) without gaps.

    Parameters
    ----------
    r, user, day, weekend
        Places, whose row it is, the number of its day (neighbours differ by 1), and whether that is at a weekend.
    minutes, step_minutes
        Minute of the day of each slot, and minutes between slots.
    locations
        The places; without coordinates all distances are alike.
    m_min
        People on whom every place, kind and type rests.
    rng
        Starts of the clusterings, and which choices teach where there are very many.

    """
    _, user = np.unique(user, return_inverse=True)
    users = rng.permutation(int(user.max()) + 1)
    days_of = np.bincount(user)
    taught = users[: max(1, int(np.searchsorted(np.cumsum(days_of[users]), MOST_DAYS, side="right")))]
    rows = np.flatnonzero(np.isin(user, taught))
    rows = rows[np.lexsort((day[rows], user[rows]))]
    _, who = np.unique(user[rows], return_inverse=True)
    days = _Days(
        r[rows].astype(np.int64),
        who,
        day[rows].astype(np.int64),
        weekend[rows],
        minutes,
        step_minutes,
        locations,
        m_min,
    )
    kind, of_weekend = _kinds(days, rng)
    types, mix, spread = _types(days, kind, of_weekend, rng)
    start, leave, rank, follows = _diaries(days, kind, len(of_weekend))
    law = Law(
        part=days.part,
        clock=days.clock,
        dwell=days.dwell,
        longest_pass=days.longest_pass,
        start=start,
        leave=leave,
        rank=rank,
        follows=follows,
        like=np.ones((len(of_weekend), LIKE)),
        explore=np.zeros(4 + PARTS),
        back=np.zeros(RETURN + BINS),
        popular=np.zeros((PARTS, days.P)),
        reach=np.ones((4, BINS)),
        passes=np.ones((2, BINS, TAILS, PASSES)),
        lengths=np.ones(max(1, days.longest_pass)),
        same=0.0,
        passed=np.zeros(days.P),
        passing=np.ones(PASSING),
        xy=days.xy,
        bins=days.bins,
        crowd=days.crowd,
    )
    law, pace = _usual_diaries(days, kind, law, rng)
    stays, bustle = _bustle(days, kind, types, mix, spread, rng)
    home, main, main_reach = _anchors(days, types, len(mix))
    law = _wanderings(days, law, rng)
    law = _trips(days, law, rng)
    share = np.bincount(types, minlength=len(mix)) / len(types)
    return Lives(law, share, mix, spread, stays, bustle, pace, home, main, main_reach)


class _Days:
    """Days cut into stays, with what every table needs to know of them."""

    def __init__(
        self,
        r: Ints,
        who: Ints,
        day: Ints,
        weekend: NDArray[np.bool_],
        minutes: Floats,
        step: float,
        locations: Locations,
        m_min: int,
    ) -> None:
        self.r, self.who, self.day, self.weekend, self.m_min = r, who, day, weekend, m_min
        (self.N, self.L), self.P, self.people = r.shape, len(locations), int(who.max()) + 1
        self.hour = np.minimum(minutes // 60, 23).astype(np.int64)
        self.part = (np.searchsorted(np.array(EDGES), minutes, side="right") - 1).astype(np.int64)
        self.clock = (minutes // max(step, CLOCK_MINUTES)).astype(np.int64)
        longest = int(1440 / step) + 2
        # bins of a dwell: 20, 40, 60-80 minutes, up to 3 hours, 6 hours, longer
        self.dwell = np.searchsorted(np.array([21, 41, 101, 181, 361]), np.arange(4 * longest) * step, side="right")
        self.dwell = self.dwell.astype(np.int64)
        self.longest_pass = int(PASSING_MINUTES // step)
        self.xy = locations.planar() if locations.has_coordinates else np.zeros((self.P, 2))
        self.home, self.main = self._anchors(minutes)
        self.bins = self._bins()
        n = r.size
        row, place, start, arrived = (np.empty(n, dtype=np.int64) for _ in range(4))
        n = find_stays(r, self.home[who], self.main[who], self.longest_pass, row, place, start, arrived)
        self.row, self.place, self.start, self.arrived = row[:n], place[:n], start[:n], arrived[:n]
        self.first = np.searchsorted(self.row, np.arange(self.N + 1))  # stays of each day
        last = np.append(self.row[1:] != self.row[:-1], True)
        self.end = np.where(last, self.L, np.append(self.start[1:], 0))
        self.last = last
        self.of = who[self.row]  # person of each stay
        self.role = np.where(
            self.place == self.home[self.of], HOME, np.where(self.place == self.main[self.of], MAIN, OTHER)
        )
        self.index = np.arange(n) - self.first[self.row]
        self.next_day = np.zeros(self.N, dtype=bool)  # whether the row before is the day before of the same person
        self.next_day[1:] = (who[1:] == who[:-1]) & (day[1:] == day[:-1] + 1)
        self.crowd = self._crowd()

    def _anchors(self, minutes: Floats) -> tuple[Ints, Ints]:
        """(people,) home, usual at night, and the usual other place of weekdays between nine and five; -1 without."""
        night = (minutes >= NIGHT[0]) & (minutes < NIGHT[1])
        office = (minutes >= OFFICE[0]) & (minutes < OFFICE[1])
        home = self._usual(self.r[:, night] if night.any() else self.r, self.who)
        weekdays = self.r[~self.weekend][:, office]
        main = self._usual(
            np.where(weekdays == home[self.who[~self.weekend], None], -1, weekdays), self.who[~self.weekend]
        )
        rest = self._usual(np.where(self.r == home[self.who, None], -1, self.r), self.who)
        return home, np.where(main >= 0, main, rest)

    def _usual(self, r: Ints, who: Ints) -> Ints:
        """(people,) the most usual place of each, -1 where there is none."""
        key = (who[:, None] * self.P + r)[r >= 0]
        cell, count = np.unique(key, return_counts=True)
        out, best = np.full(self.people, -1, dtype=np.int64), np.zeros(self.people, dtype=np.int64)
        order = np.lexsort((-cell, count))  # the last of equals by number is written first
        out[cell[order] // self.P] = cell[order] % self.P
        del best
        return out

    def _bins(self) -> NDArray[np.int8]:
        """(P, P) bins of distances: 0 the same place, then half octaves of the usual length of a move."""
        moved = self.r[:, 1:] != self.r[:, :-1]
        a, b = self.r[:, :-1][moved], self.r[:, 1:][moved]
        length = np.hypot(*(self.xy[a] - self.xy[b]).T) if len(a) else np.zeros(0)
        unit = float(np.median(length)) / 2 if len(length) and np.median(length) > 0 else 1.0
        out = np.empty((self.P, self.P), dtype=np.int8)
        for p in range(self.P):
            far = np.hypot(*(self.xy - self.xy[p]).T)
            out[p] = np.minimum(np.log2(1 + far / unit) * 2, BINS - 1)
        return out

    def _crowd(self) -> NDArray[np.int8]:
        """(P, P) which of CROWDS the people who make a move are: fewer than `m_min`, then doublings."""
        row, t = np.nonzero(self.r[:, 1:] != self.r[:, :-1])
        key = np.unique((self.r[row, t] * self.P + self.r[row, t + 1]) * self.people + self.who[row]) // self.people
        self.movers = np.bincount(key, minlength=self.P**2).astype(np.int32).reshape(self.P, self.P)
        return self.crowd_of(self.movers)

    def crowd_of(self, people: NDArray[np.integer]) -> NDArray[np.int8]:
        limits = self.m_min * np.array([1, 2, 4, 8])
        return np.searchsorted(limits, people, side="right").astype(np.int8)

    def people_at(self, place: Ints, who: Ints) -> Ints:
        """(P,) how many people have such a place."""
        return np.bincount(np.unique(place * self.people + who) // self.people, minlength=self.P)

    def carried(self) -> Ints:
        """(N,) slots for which the first place of each day was the person's before midnight; 6 hours where unknown."""
        tail = self.L - self.start[self.first[1:] - 1]
        out = np.full(self.N, max(1, self.L // 4), dtype=np.int64)
        for i in np.flatnonzero(self.next_day).tolist():
            same = self.r[i, 0] == self.r[i - 1, -1]
            whole = self.first[i] - self.first[i - 1] == 1
            out[i] = (tail[i - 1] + (out[i - 1] if whole else 0)) if same else 0
        return out


def _clusters(rows: Floats, k: int, who: Ints, m_min: int, rng: np.random.Generator) -> Ints:
    """Label rows by k-means; clusters of fewer than `m_min` people join the nearest of the others."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    k = max(1, min(k, len(np.unique(rows, axis=0))))
    with threadpool_limits(1):
        found = KMeans(k, n_init=2, max_iter=50, random_state=int(rng.integers(2**31))).fit(rows)
    label, centre = found.labels_.astype(np.int64), found.cluster_centers_
    people = np.array([len(np.unique(who[label == c])) for c in range(k)])
    kept = np.flatnonzero(people >= m_min)
    if len(kept) == 0:
        return np.zeros(len(rows), dtype=np.int64)
    far = ((centre[:, None] - centre[kept][None]) ** 2).sum(axis=2)
    return np.asarray(far.argmin(axis=1)[label])


def _kinds(days: _Days, rng: np.random.Generator) -> tuple[Ints, NDArray[np.bool_]]:
    """Label every day with a kind, those of weekdays and weekends apart; (kinds,) which are of weekends."""
    role = np.repeat(days.role, days.end - days.start).reshape(days.N, days.L)
    hours = np.zeros((days.N, 24, 3))
    for h in np.unique(days.hour).tolist():
        for k in range(3):
            hours[:, h, k] = (role[:, days.hour == h] == k).mean(axis=1)
    others = np.bincount(days.row[days.role == OTHER], minlength=days.N)
    stays = np.diff(days.first)
    rows = np.column_stack(
        [
            hours.reshape(days.N, -1),
            np.minimum(others, 10) / 1.5,
            np.minimum(stays, STAYS) / 2.5,
            2.0 * (role == MAIN).any(axis=1),
        ]
    )
    kind, of_weekend = np.zeros(days.N, dtype=np.int64), list[bool]()
    for off in (False, True):
        mine = days.weekend == off
        if mine.any():
            k = int(np.clip(mine.sum() // DAYS_PER_KIND, 2, MOST_KINDS // 3 if off else MOST_KINDS * 2 // 3))
            label = _clusters(rows[mine], k, days.who[mine], days.m_min, rng)
            kind[mine] = len(of_weekend) + label
            of_weekend += [off] * (int(label.max()) + 1)
    return kind, np.array(of_weekend)


def _types(
    days: _Days, kind: Ints, of_weekend: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[Ints, Floats, Floats]:
    """Type of each person; mean use of kinds (types, 2, kinds), and its concentration (types, 2)."""
    from scipy.special import gammaln

    K = len(of_weekend)
    use = np.zeros((days.people, 2, K))
    np.add.at(use, (days.who, days.weekend.astype(np.int64), kind), 1)
    share = (use + 0.5 / K) / (use.sum(axis=2, keepdims=True) + 0.5)
    share[:, 1] *= 0.6
    wanted = int(np.clip(days.people // PEOPLE_PER_TYPE, 1, MOST_TYPES))
    types = _clusters(share.reshape(days.people, -1), wanted, np.arange(days.people), days.m_min, rng)
    n = int(types.max()) + 1
    mix, spread = np.zeros((n, 2, K)), np.ones((n, 2))
    grid = np.array([1, 2, 3, 5, 8, 12, 20, 35, 60, 120, 300.0])
    for off in (0, 1):
        on = of_weekend == bool(off)
        if not on.any():  # nobody has such days: they are as the others
            on = ~on
        everybody = use[:, off][:, on].sum(axis=0) + 0.1
        for t in range(n):
            u = use[types == t, off][:, on]
            mean = u.sum(axis=0) + 2 * everybody / everybody.sum()
            mean /= mean.sum()
            mix[t, off, on] = mean
            like = [
                (gammaln(c) - gammaln(c + u.sum(axis=1))).sum() + (gammaln(u + c * mean) - gammaln(c * mean)).sum()
                for c in grid
            ]
            spread[t, off] = grid[int(np.argmax(like))]
    return types, mix, spread


def _bustle(
    days: _Days, kind: Ints, types: Ints, mix: Floats, spread: Floats, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Mean stays (kinds,) beyond the usual, and how far people differ in choosing busy kinds of day."""
    count = np.diff(days.first).astype(np.float64)
    off = days.weekend.astype(np.int64)
    usual = np.bincount(off, count, 2) / np.maximum(np.bincount(off, minlength=2), 1)
    beyond = count - usual[off]
    z = np.bincount(kind, beyond) / np.bincount(kind)
    own = np.bincount(days.who)
    mean = np.bincount(days.who, beyond) / own
    within = (np.bincount(days.who, beyond**2) / own - mean**2) / np.maximum(own - 1, 1)
    wanted = max(0.0, float(mean.var() - within.mean()))
    again = rng.integers(0, days.people, 2000)
    weekends = (np.bincount(days.who, off) / own)[again][:, None]
    shape = mix[types[again]] * spread[types[again]][:, :, None]
    drawn = rng.standard_gamma(shape) + 1e-12 * (shape > 0)
    temper = rng.standard_normal((len(again), 1, 1))
    grid = np.linspace(0, 1.5, 31)
    got = []
    for b in grid:
        expected = _shares(drawn * np.exp(b * temper * z)) @ z
        got.append(((1 - weekends[:, 0]) * expected[:, 0] + weekends[:, 0] * expected[:, 1]).var())
    return z, float(grid[int(np.argmin(np.abs(np.array(got) - wanted)))])


def _diaries(days: _Days, kind: Ints, K: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Start (K, 3), leave (K, 3, clock bins, DWELLS), rank (K, 3, RANKS), follows (K, 3, PARTS, 3)."""
    of_stay = kind[days.row]
    opening = days.index == 0
    start = np.full((K, 3), 0.3)
    np.add.at(start, (kind, days.role[days.first[:-1]]), 1)
    before = np.where(opening, days.carried()[days.row], 0)
    # every slot of a stay after its first, and the departure: (kind, role, hour, dwell)
    n = np.minimum(days.end, days.L - 1) - days.start
    which = np.repeat(np.arange(len(n)), n)
    t = days.start[which] + 1 + np.arange(len(which)) - np.repeat(np.cumsum(n) - n, n)
    left = t == days.end[which]
    dwell = days.dwell[np.minimum(t - days.start[which] + before[which], len(days.dwell) - 1)]
    B = int(days.clock.max()) + 1
    cell = (of_stay[which], days.role[which], days.clock[t], dwell)
    seen_, gone = np.zeros((K, 3, B, DWELLS)), np.zeros((K, 3, B, DWELLS))
    np.add.at(seen_, cell, 1)
    np.add.at(gone, cell, left)
    usual = gone.sum(axis=(0, 3)) / (seen_.sum(axis=(0, 3)) + 1e-9)
    everybody = (gone.sum(axis=0) + usual[..., None]) / (seen_.sum(axis=0) + 1)
    # times of a kind in a role that few people had are told by everybody's
    flat = np.ravel_multi_index(cell[:3], (K, 3, B))
    people = np.bincount(np.unique(flat * days.people + days.of[which]) // days.people, minlength=K * 3 * B)
    few = people.reshape(K, 3, B) < days.m_min
    seen_[few], gone[few] = 0.0, 0.0
    of_kind = (gone.sum(axis=3) + usual) / (seen_.sum(axis=3) + 1)
    prior = np.where(few[..., None], everybody, 0.7 * of_kind[..., None] + 0.3 * everybody)
    prior = np.clip(prior, 1e-5, 0.95)
    leave = (gone + 2 * prior) / (seen_ + 2)
    rank = np.minimum(days.index[which], RANKS - 1)
    expected, observed = np.full((K, 3, RANKS), 3.0), np.full((K, 3, RANKS), 3.0)
    np.add.at(expected, (cell[0], cell[1], rank), leave[cell])
    np.add.at(observed, (cell[0], cell[1], rank), left)
    follows = np.zeros((K, 3, PARTS, 3))
    gone_on = ~days.last
    after = np.append(days.role[1:], 0)
    np.add.at(follows, (of_stay[gone_on], days.role[gone_on], days.part[days.end[gone_on]], after[gone_on]), 1)
    follows += _shares(follows.sum(axis=2, keepdims=True) + 0.002)
    follows[:, HOME, :, HOME] = follows[:, MAIN, :, MAIN] = 0.0
    return start, leave, observed / expected, np.cumsum(_shares(follows), axis=-1)


def _shares(counts: Floats) -> Floats:
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


def _usual_diaries(days: _Days, kind: Ints, law: Law, rng: np.random.Generator) -> tuple[Law, float]:
    """The law with `like`, and the variance of people's paces beyond what kinds of day and chance explain."""
    K, columns = len(law.start), np.empty(3, dtype=np.int64)
    real = np.zeros((K, LIKE))
    for d in range(days.N):
        mine = slice(days.first[d], days.first[d + 1])
        diary_columns(days.L, mine.stop - mine.start, days.role[mine], days.start[mine], columns)
        real[kind[d], columns] += 1
    key = rng.integers(0, 2**63, 2).astype(np.uint64)
    roles, starts = np.empty(days.L + 1, dtype=np.int64), np.empty(days.L + 1, dtype=np.int64)
    like = np.ones((K, LIKE))
    margins = np.split(np.arange(LIKE), [STAYS * 3, STAYS * 3 + SHARES])
    for k in range(K):
        stream, drawn = open_stream(key, k, 1), np.empty((REHEARSED, 3), dtype=np.int64)
        for i, role in enumerate(rng.choice(3, REHEARSED, p=law.start[k] / law.start[k].sum()).tolist()):
            n, _, _, _ = diary(law, k, role, days.L // 4, 1.0, False, stream, roles, starts)
            diary_columns(days.L, n, roles, starts, drawn[i])
        for _ in range(RAKES):
            for j, margin in enumerate(margins):
                weight = like[k, drawn].prod(axis=1)
                now = np.bincount(drawn[:, j], weight / weight.sum(), LIKE)[margin]
                goal = real[k, margin] / real[k, margin].sum()
                like[k, margin] *= (goal + 0.003) / (now + 0.003)
    number = np.minimum(np.diff(days.first), STAYS - 1)
    share = _shares(real[:, : STAYS * 3].reshape(K, STAYS, 3).sum(axis=2))
    mean = share @ np.arange(STAYS)
    variance = share @ np.arange(STAYS) ** 2 - mean**2
    moved, expected, chance = (np.bincount(days.who, x) for x in (number - 1.0, mean[kind] - 1, variance[kind]))
    pace = (((moved - expected) ** 2).sum() - chance.sum()) / max((expected**2).sum(), 1e-9)
    return law._replace(like=like), float(max(0.0, pace))


def _anchors(days: _Days, types: Ints, n: int) -> tuple[Floats, Floats, Floats]:
    """Weights of homes (P,), of main places (types, P), and factors of their distance (types, BINS)."""
    everybody = np.arange(days.people)
    home = np.bincount(days.home, minlength=days.P).astype(np.float64)
    slept = days.people_at(days.r.ravel(), np.repeat(days.who, days.L)).astype(np.float64)
    home = _pooled(home, slept, days.m_min)
    some = days.main >= 0
    if not some.any():
        return home, np.zeros((n, days.P)), np.ones((n, BINS))
    count = np.bincount(days.main[some], minlength=days.P).astype(np.float64)
    there = _pooled(count, slept, days.m_min)
    main = np.empty((n, days.P))
    for t in range(n):
        mine = np.bincount(days.main[some & (types == t)], minlength=days.P).astype(np.float64)
        main[t] = np.where(mine >= days.m_min, mine, 0.0) + 0.15 * there + 1e-3 * (there > 0)
        spare = (mine.sum() - main[t].sum()) / max(there.sum(), 1e-9)
        main[t] += max(spare, 0.0) * there
    who = everybody[some & (days.main != days.home)]
    base = main[types[who]].copy()
    base[np.arange(len(who)), days.main[who]] -= 1
    base = np.log(np.maximum(base, 0.005))
    base[np.arange(len(who)), days.home[who]] = -np.inf
    cols = np.stack(
        [days.bins[days.home[who]], BINS + types[who][:, None] * BINS + days.bins[days.home[who]]], axis=2
    ).astype(np.int16)
    theta = _fit(base, cols, days.main[who], BINS * (n + 1), 0.5)
    return home, main, np.exp(theta[:BINS] + theta[BINS:].reshape(n, BINS))


def _pooled(count: Floats, visitors: Floats, m_min: int) -> Floats:
    """Counts of people per place; those below `m_min` are summed and shared out by all who have been there."""
    few = (count < m_min) & (visitors >= m_min)
    out = np.where(count >= m_min, count, 0.0)
    if few.any():
        out[few] = (count.sum() - out.sum()) * visitors[few] / visitors[few].sum()
    return np.asarray(out + 1e-9 * (visitors >= m_min))


def _fit(base: Floats, cols: NDArray[np.int16], chosen: Ints, n: int, ridge: float = 1.0) -> Floats:
    """Weights (n,) of softmax choices, see `choice_loss`."""
    from scipy.optimize import minimize

    if len(base) == 0:
        return np.zeros(n)
    slope = np.empty(n)

    def loss(at: Floats) -> tuple[float, Floats]:
        return choice_loss(at, ridge, base, cols, chosen, slope), slope.copy()

    return np.asarray(minimize(loss, np.zeros(n), jac=True, method="L-BFGS-B", options={"maxiter": 40}).x)


def _wanderings(days: _Days, law: Law, rng: np.random.Generator) -> Law:
    """The law with `explore`, `back`, `popular` and `reach`: which place a stay elsewhere is at."""
    other = days.role == OTHER
    part = days.part[days.start]
    key = np.unique((part[other] * days.P + days.place[other]) * days.people + days.of[other])
    visitors = np.bincount(key // days.people, minlength=PARTS * days.P).reshape(PARTS, days.P)
    total = days.people_at(days.place[other], days.of[other])
    popular = np.where(visitors >= days.m_min, visitors, 0) + 0.1 * np.where(total >= days.m_min, total, 0)
    own_parts = np.split(key // days.people, [])[0], key % days.people
    mine: list[list[int]] = [[] for _ in range(days.people)]
    for cell, person in zip(own_parts[0].tolist(), own_parts[1].tolist(), strict=True):
        mine[person].append(cell)
    most = max(200, int(CELLS // days.P))
    news = int(other.sum())
    chance_new, chance_back = min(1.0, 3 * most / max(news, 1)), min(1.0, 12_000 / max(news, 1))
    u = rng.random((2, len(other)))
    asked, said = [], []  # whether somewhere new
    where, bars = [], []  # (person, from, part, to), own places then
    back_rows: list[list[float]] = []
    back_far: list[int] = []
    back_size, back_chosen = [], []
    person = -1
    weekend, when = days.weekend[days.row], days.row
    for s in range(len(other)):
        if days.of[s] != person:
            person = int(days.of[s])
            count: dict[int, int] = {}
            at_part: dict[tuple[int, int, bool], int] = {}
            last: dict[int, int] = {}
            steps: dict[tuple[int, int], int] = {}
            visits = 0
        if not other[s]:
            continue
        x, opening = int(days.place[s]), days.index[s] == 0
        if opening and x in count:
            continue  # over midnight: counted before
        here = int(days.home[person] if opening else days.place[s - 1])
        before = int(days.place[s - 2]) if days.index[s] > 1 else -1
        p, off, d = int(part[s]), bool(weekend[s]), int(when[s])
        if not opening:
            asked.append((len(count), visits, off, p))
            said.append(x not in count)
        if x not in count:
            if u[0, s] < chance_new:
                where.append((person, here, p, x))
                bars.append(list(count))
        elif u[1, s] < chance_back:
            among = [y for y in count if y != here]
            if len(among) > 1 and x in among:
                back_size.append(len(among))
                back_chosen.append(among.index(x))
                for y in among:
                    row = [0.0] * RETURN
                    row[OFTEN] = np.log(count[y])
                    row[NOW] = np.log1p(at_part.get((y, p, off), 0))
                    row[TODAY] = float(last[y] == d)
                    row[YESTERDAY] = float(last[y] == d - 1)
                    row[FROM_HERE] = np.log1p(steps.get((here, y), 0))
                    row[BACK] = float(y == before)
                    back_rows.append(row)
                    back_far.append(int(days.bins[here, y]))
        count[x] = count.get(x, 0) + 1
        at_part[x, p, off] = at_part.get((x, p, off), 0) + 1
        steps[here, x] = steps.get((here, x), 0) + 1
        last[x] = d
        visits += 1
    explore = _fit_explore(np.array(asked, dtype=np.float64).reshape(-1, 4), np.array(said, dtype=bool))
    back = _fit_back(
        np.array(back_rows).reshape(-1, RETURN), np.array(back_far, dtype=np.int64), back_size, back_chosen
    )
    reach = _fit_reach(days, popular, mine, where[:most], bars[:most])
    return law._replace(explore=explore, back=back, popular=popular, reach=reach)


def _fit_explore(asked: Floats, said: NDArray[np.bool_]) -> Floats:
    from scipy.optimize import minimize

    if len(asked) == 0:
        return np.zeros(4 + PARTS)
    x = np.column_stack(
        [np.ones(len(asked)), np.log1p(asked[:, :2]), asked[:, 2], asked[:, 3][:, None] == np.arange(PARTS)]
    ).astype(np.float64)

    def loss(at: Floats) -> tuple[float, Floats]:
        logit = x @ at
        value = np.logaddexp(0, logit).sum() - logit[said].sum() + 0.5 * (at**2).sum()
        return float(value), x.T @ (1 / (1 + np.exp(-logit)) - said) + at

    return np.asarray(minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x)


def _fit_back(rows: Floats, far: Ints, size: list[int], chosen: list[int]) -> Floats:
    from scipy.optimize import minimize

    if len(size) == 0:
        return np.zeros(RETURN + BINS)
    x = np.column_stack([rows, far[:, None] == np.arange(BINS)]).astype(np.float64)
    first = np.cumsum([0, *size[:-1]])
    taken = first + np.array(chosen)

    def loss(at: Floats) -> tuple[float, Floats]:
        score = x @ at
        top = np.maximum.reduceat(score, first)
        e = np.exp(score - np.repeat(top, size))
        total = np.add.reduceat(e, first)
        value = -(score[taken] - top - np.log(total)).sum() + 0.5 * (at**2).sum()
        return float(value), x.T @ (e / np.repeat(total, size)) - x[taken].sum(axis=0) + at

    return np.asarray(minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x)


def _fit_reach(
    days: _Days, popular: Floats, mine: list[list[int]], where: list[tuple[int, int, int, int]], bars: list[list[int]]
) -> Floats:
    """Factors (4, BINS) of the distance of a new place from here, home, main place and the nearest own place."""
    if not where:
        return np.ones((4, BINS))
    person, here, part, to = np.array(where).T
    base = popular[part].copy()
    near = np.empty((len(where), days.P), dtype=np.int16)
    for i, (who, _, p, _) in enumerate(where):
        cells = np.array(mine[who])
        np.subtract.at(base[i], cells % days.P, 0.1)
        np.subtract.at(base[i], cells[cells // days.P == p] % days.P, 1.0)
        own = [int(days.home[who]), *([int(days.main[who])] if days.main[who] >= 0 else []), *bars[i]]
        near[i] = days.bins[own].min(axis=0)
    base = np.log(np.maximum(base, 0.02))
    main = np.where(days.main[person] >= 0, days.main[person], days.home[person])
    for i, own in enumerate(bars):
        base[i, [*own, here[i], days.home[person[i]], main[i]]] = -np.inf
    fine = np.isfinite(base[np.arange(len(to)), to]) & (popular[part, to] > 0)
    cols = np.stack(
        [days.bins[here], BINS + days.bins[days.home[person]], 2 * BINS + days.bins[main], 3 * BINS + near], axis=2
    ).astype(np.int16)
    theta = _fit(np.ascontiguousarray(base[fine]), np.ascontiguousarray(cols[fine]), to[fine], 4 * BINS)
    return np.exp(theta.reshape(4, BINS))


def _trips(days: _Days, law: Law, rng: np.random.Generator) -> Law:
    """The law with `passes`, `lengths`, `same`, `passed` and `passing`: what a trip leads through."""
    if days.longest_pass == 0:
        return law
    trip = np.flatnonzero(days.index > 0)
    a, b = days.place[trip - 1], days.place[trip]
    anchor = days.role[trip] != OTHER
    cells, length = np.zeros(len(trip), dtype=np.int64), np.ones(days.longest_pass)
    passed_by: list[list[int]] = []
    for i, s in enumerate(trip.tolist()):
        way = days.r[days.row[s], days.start[s] : days.arrived[s]]
        if len(way) == 0:
            passed_by.append([])
            continue
        turns = np.flatnonzero(np.append(True, way[1:] != way[:-1]))
        np.add.at(length, np.minimum(np.diff(np.append(turns, len(way))), days.longest_pass) - 1, 1)
        passed_by.append(way[turns].tolist())
        cells[i] = len(turns)
    tail = np.minimum(days.end[trip] - days.start[trip], TAILS) - 1
    count = np.full((2, BINS, TAILS, PASSES), 0.02)
    np.add.at(count, ((~anchor).astype(np.int64), days.bins[a, b], tail, np.minimum(cells, PASSES - 1)), 1)
    count += 2 * count.sum(axis=2, keepdims=True) / count.sum(axis=(2, 3), keepdims=True)
    for m in range(TAILS):
        count[0, :, m, m + 1 :] = 0
        count[1, :, m, max(m, 1) :] = 0
    low, high = np.minimum(a, b), np.maximum(a, b)
    order = np.lexsort((trip, high, low, days.of[trip]))
    key = np.stack([days.of[trip], low, high])[:, order]
    again = np.append(False, (key[:, 1:] == key[:, :-1]).all(axis=0))
    number = np.minimum(cells, PASSES - 1)[order]
    by_far = _shares(count.sum(axis=(0, 2)))
    alike = float((number[again] == number[np.flatnonzero(again) - 1]).sum())
    chance = float(by_far[days.bins[a, b][order][again], number[np.flatnonzero(again) - 1]].sum())
    same = max(0.0, (alike - chance) / max(again.sum() - chance, 1.0))
    flat = np.array([(days.of[s], c) for s, way in zip(trip.tolist(), passed_by, strict=True) for c in way])
    if len(flat) == 0:
        return law
    people = days.people_at(flat[:, 1], flat[:, 0])
    passed = np.where(people >= days.m_min, people, 0).astype(np.float64)
    passing = _fit_passing(days, trip, passed_by, passed, rng)
    return law._replace(
        passes=np.cumsum(_shares(count), axis=-1),
        lengths=np.cumsum(length / length.sum()),
        same=same,
        passed=passed,
        passing=np.exp(passing),
    )


def _fit_passing(
    days: _Days, trip: Ints, passed_by: list[list[int]], passed: Floats, rng: np.random.Generator
) -> Floats:
    """Weights (PASSING,) of a cell on the way, by what each person could know from the others and from own routes."""
    most = max(200, int(CELLS // days.P) * 2 // 3)
    total = sum(len(way) for way in passed_by)
    chance = min(1.0, most / max(total, 1))
    base_rows, col_rows, chosen = [], [], []
    person = -1
    own_moves: dict[int, list[Ints]] = {}
    with_passes = np.log(np.maximum(passed, 1e-9))
    with_passes[passed == 0] = -np.inf
    u = rng.random(total)
    at = 0
    for s, way in zip(trip.tolist(), passed_by, strict=True):
        if days.of[s] != person:
            person = int(days.of[s])
            routes: dict[tuple[int, int], dict[int, int]] = {}
            been: dict[int, int] = {}
            mine: list[int] = []
        a, b = int(days.place[s - 1]), int(days.place[s])
        route = routes.setdefault((min(a, b), max(a, b)), {})
        step = a
        for c, x in enumerate(way):
            if u[at] < chance and passed[x] > 0 and x not in (a, b, step):
                if not mine:
                    mine = _passed_of(days, trip, passed_by, person)
                base = with_passes.copy()
                base[mine] = np.log(np.maximum(passed[mine] - 1, 0.1))
                base[passed == 0] = -np.inf
                base[[a, b, step]] = -np.inf
                share = (c + 1) / (len(way) + 1)
                cols = np.empty((days.P, 7), dtype=np.int16)
                _pass_rows(days.xy, days.bins, a, b, step, share, cols)
                cols[:, 3], cols[:, 4] = ROUTE, OWN
                for y, times in route.items():
                    cols[y, 3] = ROUTE + seen(times)
                for y, times in been.items():
                    cols[y, 4] = OWN + seen(times)
                out, into = days.movers[step].copy(), days.movers[:, b].copy()
                for p, q in _moves_of(days, person, own_moves):
                    if p == step:
                        out[q] -= 1
                    if q == b:
                        into[p] -= 1
                cols[:, 5] = CROWD_IN + days.crowd_of(out)
                cols[:, 6] = CROWD_OUT + days.crowd_of(into)
                base_rows.append(base)
                col_rows.append(cols)
                chosen.append(x)
            at += 1
            step = x
        for x in way:
            route[x] = route.get(x, 0) + 1
            been[x] = been.get(x, 0) + 1
        if days.role[s] == OTHER:
            been[b] = been.get(b, 0) + 1
    if not chosen:
        return np.zeros(PASSING)
    return _fit(np.array(base_rows), np.array(col_rows), np.array(chosen), PASSING)


def _pass_rows(
    xy: Floats, bins: NDArray[np.int8], a: int, b: int, step: int, share: float, cols: NDArray[np.int16]
) -> None:
    for p in range(len(cols)):
        cols[p, :3] = pass_columns(xy, bins, a, b, step, share, p)


def _passed_of(days: _Days, trip: Ints, passed_by: list[list[int]], person: int) -> list[int]:
    first, last = np.searchsorted(days.of[trip], [person, person + 1])
    return sorted({x for way in passed_by[first:last] for x in way})


def _moves_of(days: _Days, person: int, known: dict[int, list[Ints]]) -> list[Ints]:
    if person not in known:
        r = days.r[days.who == person]
        row, t = np.nonzero(r[:, 1:] != r[:, :-1])
        known.clear()
        known[person] = list(np.unique(np.column_stack([r[row, t], r[row, t + 1]]), axis=0))
    return known[person]
