"""
The law of lives over days: people with a home, a main place, kinds of day, and places they come back to.

A person is drawn first: a type (people with similar mean days, hour by hour), the shares of its kinds of day, for
weekdays and for weekends, from the Dirichlet law of the type, a pace, a home, a main place. Then, day by day:

- a kind of day, by the person's shares;
- a diary of roles (home, main place, another place): the rate of leaving depends on kind, role, hour and dwell, the
  next role on kind, role and part of the day. A diary says when the person arrives elsewhere, and when they leave for
  home. One of several diaries is taken, by how usual it is for its kind, by its last role for the next day, and by how
  similar it is to the earlier days of this person;
- each other place: a new one (by popularity at this part of the day and by the distances from here, home, main place
  and the nearest own place) or an own one again (by own visits, at this part of the day, from here, between these
  roles, and by distance). The shorter the stay, the nearer the place;
- the cells that a trip passes through: by how far along the way and aside of it they lie, how many people make these
  moves, and this person's earlier routes and moves.

Everything learnt is a sum over people, and no place, kind of day or type of person rests on fewer than `m_min` of them.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import Codes, Floats, Ints, Locations
from elsewhere.scale import one_thread
from elsewhere.sorting import count_users, distinct_visits
from elsewhere.synthesis.walk._hours_kernels import HOURS, PARTS, STAYS
from elsewhere.synthesis.walk._lives_kernels import (
    BINS,
    CROWDS,
    DWELLS,
    EXPLORE,
    HASTES,
    HOME,
    LIKE,
    MAIN,
    MOST_PASSES,
    OTHER,
    OWN_PLACE,
    PASSING,
    RANKS,
    REACHES,
    SHARES,
    TAILS,
    Law,
    draw_lives,
    draw_main_places,
)
from elsewhere.synthesis.walk._teach_kernels import (
    Choices,
    Stays,
    choice_loss,
    columns_of_days,
    draw_diary_columns,
    find_stays,
    make_hash_table,
    record_choices,
    record_diary_choices,
)
from elsewhere.synthesis.walk.fit import minimise

NIGHT, OFFICE = (0, 360), (540, 1020)  # minutes of the day
EDGES = (0, 420, 600, 840, 1020, 1200)  # where parts of the day begin
PASSING_MINUTES = 30  # what is shorter, between two stays, is part of the trip
DAYS_PER_KIND = 80  # of a type of person
PEOPLE_PER_TYPE, DAYS_PER_TYPE, MOST_TYPES = 10, 80, 100  # of people whose days are alike
MOST_DAYS = 20_000  # to learn from: more teach nothing new
CANDIDATES = 600_000  # that a fit holds at once
OTHERS = 60  # candidates beside a new place that was chosen
DETOUR = 0.95  # share of real passes that ways must be long enough for
FRESH = 2.0 ** np.arange(-4, 6)  # trips that what anybody would do counts for
CLOCK_MINUTES = 20  # finest bins of the hour of leaving
RAKES = 5
RANK_ROUNDS = 8
TRIES = 12  # diaries of which one is taken
REHEARSED = 1_000  # diaries of each kind, to see which are too usual
LIKE_LIMITS, LIKE_SEEN = (0.25, 4.0), 3  # factors on a diary, and how often what they are on must have been rehearsed


@dataclass(frozen=True, eq=False)
class Lives:
    """The law of lives over P places; `draw` makes people who live by it."""

    law: Law = field(repr=False)
    type_share: Floats = field(repr=False)
    mix: Floats = field(repr=False)  # (types, 2, kinds) mean use of kinds on weekdays, at weekends
    spread: Floats = field(repr=False)  # (types, 2) concentration of people's own mixes about it
    stays: Floats = field(repr=False)  # (kinds,) mean number of stays beyond that of all weekdays, or weekends
    busyness: float  # deviation between people: mixes are tilted by exp(busyness z stays), z standard normal
    pace: float  # variance of how much more or less than others a person moves
    home: Floats = field(repr=False)
    main: Floats = field(repr=False)  # (types, P)
    main_reach: Floats = field(repr=False)  # (types, BINS)

    def draw(self, n: int, weekend: NDArray[np.bool_], rng: np.random.Generator) -> Codes:
        """Draw `n` lives (n, D, L) of days on end, `weekend` (D,) says which are Saturdays or Sundays."""
        # who they are: a type, mixes of its kinds of day, a home, a main place, a pace
        types = rng.choice(len(self.type_share), n, p=self.type_share)
        shape = self.mix[types] * self.spread[types][:, :, None]
        mix = rng.standard_gamma(shape) + 1e-12 * (shape > 0)
        mix *= np.exp(self.busyness * rng.standard_normal((n, 1, 1)) * self.stays)
        home = rng.choice(len(self.home), n, p=self.home / self.home.sum())
        main = np.empty(n, dtype=np.int64)
        draw_main_places(self.law, self.main, self.main_reach, types, home, rng.random(n), main)
        pace = rng.gamma(1 / self.pace, self.pace, n) if self.pace > 1e-3 else np.ones(n)
        # then day by day
        out = np.empty((n, len(weekend), len(self.law.clock)), dtype=np.int32)
        key = rng.integers(0, 2**63, 2).astype(np.uint64)
        draw_lives(self.law, mix, home, main, pace, np.asarray(weekend), TRIES, key, 0, out)
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
        Codes, whose row it is, the number of its day (neighbours differ by 1), and whether that is at a weekend.
    minutes, step_minutes
        Minute of the day of each slot, and minutes between slots.
    locations
        The places; without coordinates all distances are alike.
    m_min
        Every place, kind of day and type of person is of at least so many people.
    rng
        Starts the clusterings, and draws the choices that are learnt from where there are very many.

    """
    # at most MOST_DAYS days, those of some people drawn at random, in order of person and day
    _, user = np.unique(user, return_inverse=True)
    users = rng.permutation(int(user.max()) + 1)
    days_of = np.bincount(user)
    chosen = users[: max(1, int(np.searchsorted(np.cumsum(days_of[users]), MOST_DAYS, side="right")))]
    rows = np.flatnonzero(np.isin(user, chosen))
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

    # who people are: types, their kinds of day, and how often each person has days of each kind
    types, kind = _types_and_kinds(days, rng)
    use = np.zeros((days.people, 2, int(kind.max()) + 1))
    np.add.at(use, (days.who, days.weekend.astype(np.int64), kind), 1)
    mix, spread = _kind_mixes(use, types, m_min)

    # what can be counted; factors that are learnt from choices are 1 (weights 0) so far
    places, movers = _place_tables(days)
    law = Law(
        part=days.part,
        clock=days.clock,
        dwell=days.dwell,
        longest_pass=days.longest_pass,
        xy=days.xy,
        limits=days.limits,
        **_diary_tables(days, kind, mix.shape[2]),
        **places,
        like=np.ones((mix.shape[2], LIKE)),
        hours=np.ones(HOURS),
        explore=np.zeros(EXPLORE),
        back=np.ones(OWN_PLACE),
        reach=np.ones((REACHES, BINS)),
        passing=np.ones(PASSING),
        passes=np.ones((2, BINS, CROWDS, TAILS, 1)),
        lengths=np.ones(max(1, days.longest_pass)),
        fresh=0.0,
    )

    # which diary, how people differ, where their anchors are, which other places and ways
    law, pace = _diary_factors(days, kind, law, mix[types], rng)
    stays, busyness = _busyness(days, kind, types, mix, spread, rng)
    home, main, main_reach = _anchor_weights(days, types, len(mix), rng)
    law = _place_choice_factors(days, law, movers, rng)
    share = np.bincount(types, minlength=len(mix)) / len(types)
    return Lives(law, share, mix, spread, stays, busyness, pace, home, main, main_reach)


class _Days:
    """Days of people, in order, cut into stays, with what every table needs to know of them."""

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
        self.r, self.who, self.weekend, self.m_min = r, who, weekend, m_min
        (self.N, self.L), self.P, self.people = r.shape, len(locations), int(who.max()) + 1

        # time: hour, part of the day and bin of the clock of each slot; bins of a dwell in slots begin at 0, 21, 41,
        # 101, 181, 361 minutes
        self.hour = np.minimum(minutes // 60, 23).astype(np.int64)
        self.part = (np.searchsorted(np.array(EDGES), minutes, side="right") - 1).astype(np.int64)
        self.clock = (minutes // max(step, CLOCK_MINUTES)).astype(np.int64)
        dwells = np.arange(4 * (int(1440 / step) + 2)) * step
        self.dwell = np.searchsorted(np.array([21, 41, 101, 181, 361]), dwells, side="right").astype(np.int64)
        self.longest_pass = int(PASSING_MINUTES // step)

        # distances: squared ones at which bins begin are half octaves of half the usual length of a move
        self.xy = locations.planar() if locations.has_coordinates else np.zeros((self.P, 2))
        moved = r[:, 1:] != r[:, :-1]
        length = self.length(r[:, :-1][moved], r[:, 1:][moved])
        unit = float(np.median(length)) / 2 if len(length) and np.median(length) > 0 else 1.0
        self.limits = np.asarray((unit * (2 ** (np.arange(1, BINS) / 2) - 1)) ** 2)

        # anchors: home is the usual place at night, the main place the usual other one on weekdays between nine and
        # five, or at any time; -1 without
        night = (minutes >= NIGHT[0]) & (minutes < NIGHT[1])
        office = (minutes >= OFFICE[0]) & (minutes < OFFICE[1])
        self.home = self._most_usual(r[:, night] if night.any() else r, who)
        elsewhere = np.where(r == self.home[who, None], -1, r)
        main = self._most_usual(elsewhere[~weekend][:, office], who[~weekend])
        self.main = np.where(main >= 0, main, self._most_usual(elsewhere, who))

        # stays, of each its day, place, person and role, whether it is the last of its day, and its number in it
        row, place, left, arrived = (np.empty(r.size, dtype=np.int64) for _ in range(4))
        n = find_stays(r, self.home[who], self.main[who], self.longest_pass, row, place, left, arrived)
        self.row, self.place, self.left, self.arrived = row[:n], place[:n], left[:n], arrived[:n]
        self.first = np.searchsorted(self.row, np.arange(self.N + 1))  # stays of each day
        self.last = np.append(self.row[1:] != self.row[:-1], True)
        self.of = who[self.row]
        self.role = np.where(self.place == self.main[self.of], MAIN, OTHER)
        self.role[self.place == self.home[self.of]] = HOME
        self.index = np.arange(n) - self.first[self.row]
        # a stay at home begins in a diary when the person leaves for it, any other when the person arrives
        self.start = np.where(self.role == HOME, self.left, self.arrived)
        self.end, self.until = (np.where(self.last, self.L, np.append(t[1:], 0)) for t in (self.start, self.left))
        begin, rows = (np.searchsorted(whose, np.arange(self.people + 1)) for whose in (self.of, who))
        stays = self.row, self.place, self.start, self.left, self.arrived, self.role, self.index
        self.stays = Stays(r, day, weekend, self.home, self.main, begin, rows, *stays)

        # trips: stay and slot of every slot on the way to a stay
        stay = np.repeat(np.arange(n), self.arrived - self.left)
        self.trips = stay, self.left[stay] + np.arange(len(stay)) - np.searchsorted(stay, stay)

        # nights: the role before midnight, how many slots it has lasted, and how many the first place of the day has;
        # where the day before is not known, the role of the morning and 6 hours
        self.next_day = np.zeros(self.N, dtype=bool)
        self.next_day[1:] = (who[1:] == who[:-1]) & (day[1:] == day[:-1] + 1)
        known = np.flatnonzero(self.next_day)
        self.midnight = self.role[self.first[:-1]]
        self.midnight[known] = self.role[self.first[known] - 1]
        self.lasted, self.carried = np.full((2, self.N), max(1, self.L // 4))
        for i, before in zip(known.tolist(), (self.first[known] - 1).tolist(), strict=True):
            since = self.carried[i - 1] if self.index[before] == 0 else 0
            self.lasted[i] = self.L - self.start[before] + since
            self.carried[i] = self.lasted[i] if r[i, 0] == r[i - 1, -1] else 0

    def _most_usual(self, r: Ints, who: Ints) -> Ints:
        """Return (people,) the place with most slots of each person, the first of equals; -1 where there is none."""
        key = (who[:, None] * self.P + r)[r >= 0]
        cell, count = np.unique(key, return_counts=True)
        out = np.full(self.people, -1, dtype=np.int64)
        order = np.lexsort((-cell, count))  # the last of equals by number is written first
        out[cell[order] // self.P] = cell[order] % self.P
        return out

    def length(self, a: Ints, b: Ints) -> Floats:
        """Return the distances between places."""
        return np.asarray(np.hypot(*np.moveaxis(self.xy[a] - self.xy[b], -1, 0)))


def _types_and_kinds(days: _Days, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """
    Cluster people into types and their days into kinds; return the type of each person and the kind of each day.

    People of one type have similar mean weekdays and weekends. Kinds are found among the days of one type, weekdays and
    weekends apart.
    """
    # describe every day by 75 numbers: the share of each hour in each role, and how busy the day is
    role = np.repeat(days.role, days.end - days.start).reshape(days.N, days.L)
    hours = np.zeros((days.N, 24, 3))
    for h in np.unique(days.hour).tolist():
        for k in range(3):
            hours[:, h, k] = (role[:, days.hour == h] == k).mean(axis=1)
    others = np.minimum(np.bincount(days.row[days.role == OTHER], minlength=days.N), 10) / 1.5
    stays = np.minimum(np.diff(days.first), STAYS) / 2.5
    table = np.column_stack([hours.reshape(days.N, -1), others, stays, 2.0 * (role == MAIN).any(axis=1)])

    # cluster people by their mean weekday and weekend; whoever has none is given everybody's mean
    profile = np.zeros((days.people, 2, table.shape[1]))
    for off in (0, 1):
        mine = days.weekend == bool(off)
        np.add.at(profile[:, off], days.who[mine], table[mine])
        number = np.bincount(days.who[mine], minlength=days.people)
        usual = table[mine].mean(axis=0) if mine.any() else 0.0
        profile[:, off] = np.where(number[:, None] > 0, profile[:, off] / np.maximum(number, 1)[:, None], usual)
    profile[:, 1] *= 0.6
    n = int(np.clip(min(days.people // PEOPLE_PER_TYPE, days.N // DAYS_PER_TYPE), 1, MOST_TYPES))
    types = _cluster(profile.reshape(days.people, -1), n, np.arange(days.people), days.m_min, rng)

    # cluster the days of each type; if too few of its people have such days, they are of the kinds of the type of which
    # most people have them
    kind, K, T, off_day = np.zeros(days.N, dtype=np.int64), 0, int(types.max()) + 1, days.weekend.astype(np.int64)
    has = np.zeros((days.people, 2), dtype=bool)
    has[days.who, off_day] = True
    people = np.stack([np.bincount(types[has[:, off]], minlength=T) for off in (0, 1)], axis=1)
    kinds_of = np.where(people >= days.m_min, np.arange(T)[:, None], people.argmax(axis=0))
    of = kinds_of[types[days.who], off_day]
    for t, off in np.ndindex(T, 2):
        mine = (of == t) & (off_day == off)
        if mine.any():
            n = max(1, int(mine.sum()) // DAYS_PER_KIND)
            label = _cluster(table[mine], n, days.who[mine], days.m_min, rng)
            kind[mine] = K + label
            K += int(label.max()) + 1
    return types, kind


def _cluster(rows: Floats, k: int, who: Ints, m_min: int, rng: np.random.Generator) -> Ints:
    """Label rows by k-means; a cluster of fewer than `m_min` people is merged with the nearest larger one."""
    from sklearn.cluster import KMeans

    k = max(1, min(k, len(np.unique(rows, axis=0))))
    with one_thread():
        means = KMeans(k, n_init=2, max_iter=50, random_state=int(rng.integers(2**31))).fit(rows)
    label, centre = means.labels_.astype(np.int64), means.cluster_centers_
    people = np.array([len(np.unique(who[label == c])) for c in range(k)])
    large = np.flatnonzero(people >= m_min)
    if len(large) == 0:
        return np.zeros(len(rows), dtype=np.int64)
    far = ((centre[:, None] - centre[large][None]) ** 2).sum(axis=2)
    return np.asarray(far.argmin(axis=1)[label])


def _kind_mixes(use: Floats, types: Ints, m_min: int) -> tuple[Floats, Floats]:
    """
    Return the Dirichlet law of the kinds of day of each type: mean shares (types, 2, kinds), concentrations (types, 2).

    `use` (people, 2, kinds) counts the days of each kind, weekdays and weekends apart. The concentration is the one of
    a grid with the largest Dirichlet-multinomial likelihood.
    """
    from scipy.special import gammaln

    T, K = int(types.max()) + 1, use.shape[2]
    mix, spread = np.zeros((T, 2, K)), np.ones((T, 2))
    grid = np.array([1, 2, 3, 5, 8, 12, 20, 35, 60, 120, 300.0])
    for t, off in np.ndindex(T, 2):
        # days that too few of a type have are as everybody's, days that nobody has as the others
        enough = np.count_nonzero(use[types == t, off].any(axis=1)) >= m_min
        mine = types == t if enough else np.ones(len(types), dtype=bool)
        u = use[mine, off] if use[mine, off].any() else use[mine, 1 - off]
        on = u.any(axis=0)
        mean = u[:, on].sum(axis=0) / u.sum()
        mix[t, off, on] = mean
        who, what = np.nonzero(u[:, on])  # kinds that somebody does not use add nothing to the likelihood
        number, share, total = u[:, on][who, what], mean[what], u.sum(axis=1)
        like = [
            (gammaln(c) - gammaln(c + total)).sum() + (gammaln(number + c * share) - gammaln(c * share)).sum()
            for c in grid
        ]
        spread[t, off] = grid[int(np.argmax(like))]
    return mix, spread


def _busyness(
    days: _Days, kind: Ints, types: Ints, mix: Floats, spread: Floats, rng: np.random.Generator
) -> tuple[Floats, float]:
    """
    Return the mean stays (kinds,) of a kind of day beyond the mean of all days, and the deviation between people.

    Shares of kinds are tilted by exp(b z stays), z standard normal for each person. b is the one of a grid with which
    simulated people differ in their mean stays as real people do, beyond what chance explains.
    """
    count = np.diff(days.first).astype(np.float64)
    off = days.weekend.astype(np.int64)
    usual = np.bincount(off, count, 2) / np.maximum(np.bincount(off, minlength=2), 1)
    beyond = count - usual[off]
    z = np.bincount(kind, beyond) / np.bincount(kind)
    own = np.bincount(days.who)
    mean = np.bincount(days.who, beyond) / own
    within = (np.bincount(days.who, beyond**2) / own - mean**2) / np.maximum(own - 1, 1)
    variance = max(0.0, float(mean.var() - within.mean()))
    again = rng.integers(0, days.people, 2000)
    weekends = (np.bincount(days.who, off) / own)[again][:, None]
    shape = mix[types[again]] * spread[types[again]][:, :, None]
    gammas = rng.standard_gamma(shape) + 1e-12 * (shape > 0)
    temper = rng.standard_normal((len(again), 1, 1))
    grid = np.linspace(0, 1.5, 31)
    got = []
    for b in grid:
        expected = _normalise(gammas * np.exp(b * temper * z)) @ z
        got.append(((1 - weekends[:, 0]) * expected[:, 0] + weekends[:, 0] * expected[:, 1]).var())
    return z, float(grid[int(np.argmin(np.abs(np.array(got) - variance)))])


def _diary_tables(days: _Days, kind: Ints, K: int) -> dict[str, Any]:
    """
    Return the tables of a diary, of K kinds of day.

    These are start (K, 3), leave (K, 3, clock bins, DWELLS), rank (K, 3, RANKS), follows (K, 3, PARTS, 3) of a law.
    """
    start = np.tile(_normalise(np.bincount(days.midnight, minlength=3).astype(np.float64) + 0.3), (K, 1))
    np.add.at(start, (kind, days.midnight), 1)

    # every slot of a stay after its first, and that of the departure: kind, role, hour, dwell, person, and whether so
    n = np.minimum(days.end, days.L - 1) - days.start
    stay = np.repeat(np.arange(len(n)), n)
    t = days.start[stay] + 1 + np.arange(len(stay)) - np.repeat(np.cumsum(n) - n, n)
    before = np.where(days.index[stay] == 0, days.carried[days.row[stay]], 0)
    dwell = t - days.start[stay] + before
    left = t == days.end[stay]
    # and every midnight
    known = np.flatnonzero(days.next_day)
    moved = days.r[known, 0] != days.r[known - 1, -1]
    cell = (
        np.append(kind[days.row[stay]], kind[known]),
        np.append(days.role[stay], days.midnight[known]),
        np.append(days.clock[t], np.full(len(known), days.clock[0])),
        days.dwell[np.minimum(np.append(dwell, days.lasted[known]), len(days.dwell) - 1)],
    )
    shape = (K, 3, int(days.clock.max()) + 1, DWELLS)
    leave = _leaving_rates(cell, np.append(left, moved), np.append(days.of[stay], days.who[known]), shape, days.m_min)

    # of stays by their number in the day, until as many leave as did: a rate of leaving is not a probability
    inside = tuple(c[: len(stay)] for c in cell)
    rank = np.minimum(days.index[stay], RANKS - 1)
    row, rate = np.ravel_multi_index((*inside[:2], rank), (K, 3, RANKS)), leave[inside]
    observed = 3.0 + np.bincount(row, left, K * 3 * RANKS)
    factor = np.ones(K * 3 * RANKS)
    for _ in range(RANK_ROUNDS):
        factor *= observed / (3.0 + np.bincount(row, -np.expm1(-factor[row] * rate), K * 3 * RANKS))

    # the next role, in the day and over midnight
    follows = np.zeros((K, 3, PARTS, 3))
    on = np.flatnonzero(~days.last)
    np.add.at(follows, (kind[days.row[on]], days.role[on], days.part[days.end[on]], days.role[on + 1]), 1)
    np.add.at(follows, (kind[known], days.midnight[known], days.part[0], days.role[days.first[known]]), moved)
    follows += _normalise(follows.sum(axis=2, keepdims=True) + 0.002)
    follows[:, HOME, :, HOME] = follows[:, MAIN, :, MAIN] = 0.0
    return {
        "start": _normalise(start),
        "leave": leave,
        "rank": factor.reshape(K, 3, RANKS),
        "follows": np.cumsum(_normalise(follows), axis=-1),
    }


def _leaving_rates(
    cell: tuple[Ints, ...], left: NDArray[np.bool_], person: Ints, shape: tuple[int, int, int, int], m_min: int
) -> Floats:
    """
    Return the rates of leaving by `cell` (kind, role, hour, dwell) of each slot, from whether the person has `left`.

    Where fewer than `m_min` people were in a role at an hour of a kind of day, everybody's rates stand in.
    """
    here, leaving = np.zeros(shape), np.zeros(shape)
    np.add.at(here, cell, 1)
    np.add.at(leaving, cell, left)
    flat = np.ravel_multi_index(cell[:3], shape[:3])
    few = count_users(person, flat, int(np.prod(shape[:3]))).reshape(shape[:3]) < m_min
    all_here, all_gone = here.sum(axis=0), leaving.sum(axis=0)  # role, hour, dwell
    usual = all_gone.sum(axis=2) / (all_here.sum(axis=2) + 1e-9)
    by_dwell = (all_gone.sum(axis=1) + 1) / ((all_here * usual[..., None]).sum(axis=1) + 1)
    everybody = (all_gone + 2 * usual[..., None] * by_dwell[:, None]) / (all_here + 2)
    here[few], leaving[few] = 0.0, 0.0
    of_kind = (leaving.sum(axis=3) + 0.5) / ((here * everybody).sum(axis=3) + 0.5)
    prior = everybody * of_kind[..., None]
    return np.asarray(-np.log1p(-(leaving + 2 * np.clip(prior, 1e-5, 0.95)) / (here + 2)))


def _diary_factors(days: _Days, kind: Ints, law: Law, mix: Floats, rng: np.random.Generator) -> tuple[Law, float]:
    """
    Return the law with `like` and `hours`, the factors by which one of several diaries is taken, and the variance of
    pace.

    `like` says how usual a diary is for its kind of day, `hours` how much likelier it is if it is similar to the
    person's earlier days. The variance of people's paces is what kinds of day and chance do not explain. `mix`
    (people, 2, kinds).
    """
    # `like`: weights under which diaries that the law draws have the margins of people's, kind by kind (raking)
    K, columns = len(law.start), np.empty((days.N, 4), dtype=np.int64)
    columns_of_days(days.L, days.first, days.role, days.start, columns)
    real = np.zeros((K, LIKE))
    np.add.at(real, (kind[:, None], columns), 1)
    key = rng.integers(0, 2**63, 2).astype(np.uint64)
    like = np.ones((K, LIKE))
    margins = np.split(np.arange(LIKE), STAYS * 3 + SHARES * np.arange(3))
    sample = np.empty((REHEARSED, 4), dtype=np.int64)
    for k in range(K):
        draw_diary_columns(law, k, rng.choice(3, REHEARSED, p=law.start[k]), key, sample)
        known = np.bincount(sample.ravel(), minlength=LIKE) >= LIKE_SEEN  # other factors would run away
        for _ in range(RAKES):
            for j, margin in enumerate(margins):
                weight = like[k, sample].prod(axis=1)
                now = np.bincount(sample[:, j], weight / weight.sum(), LIKE)[margin]
                goal = real[k, margin] / real[k, margin].sum()
                factor = np.where(known[margin], (goal + 0.003) / (now + 0.003), 1.0)
                like[k, margin] = np.clip(like[k, margin] * factor, *LIKE_LIMITS)
        like[k, margins[0]] /= like[k, sample].prod(axis=1).mean()  # diaries of several kinds are compared

    # the variance of paces: of people's numbers of moves, beyond what their kinds of day and chance explain
    number = np.minimum(np.diff(days.first), STAYS - 1)
    share = _normalise(real[:, : STAYS * 3].reshape(K, STAYS, 3).sum(axis=2))
    mean = share @ np.arange(STAYS)
    variance = share @ np.arange(STAYS) ** 2 - mean**2
    moved, expected, chance = (np.bincount(days.who, x) for x in (number - 1.0, mean[kind] - 1, variance[kind]))
    pace = (((moved - expected) ** 2).sum() - chance.sum()) / max((expected**2).sum(), 1e-9)

    # `hours`: from the choice of every day among diaries that the law draws for the same person and kind
    law, some = law._replace(like=like), min(1.0, CANDIDATES / (days.N * (TRIES + 1)))
    key = rng.integers(0, 2**63, 2).astype(np.uint64)
    nights = days.midnight, days.lasted, days.next_day
    choices = record_diary_choices(law, days.stays, kind, mix, days.first, *nights, TRIES, some, key, CANDIDATES)
    return law._replace(hours=np.exp(_fit_choices(choices, HOURS))), float(max(0.0, pace))


def _anchor_weights(days: _Days, types: Ints, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return the weights of homes (P,), of main places (types, P), and factors of their distance (types, BINS)."""
    home = np.bincount(days.home, minlength=days.P).astype(np.float64)
    been = count_users(days.who, days.r, days.P)
    # whoever stays for two hours does not pass; where fewer than `m_min` have stayed, as if half of them had
    long = days.until - days.arrived >= min(6, days.L // 4)
    stayed = count_users(days.of[long], days.place[long], days.P)
    weight = np.where(stayed >= days.m_min, stayed, 0.5 * days.m_min) * (been >= days.m_min)
    home = _pool_counts(home, weight, days.xy, days.m_min)
    if not home.any():  # no place is shared by so many: any place will do as well as another
        home = np.ones(days.P)
    some = days.main >= 0
    if not some.any():
        return home, np.zeros((n, days.P)), np.ones((n, BINS))
    count = np.bincount(days.main[some], minlength=days.P).astype(np.float64)
    there = _pool_counts(count, weight, days.xy, days.m_min)
    main = np.empty((n, days.P))
    for t in range(n):
        mine = np.bincount(days.main[some & (types == t)], minlength=days.P).astype(np.float64)
        main[t] = np.where(mine >= days.m_min, mine, 0.0) + 0.15 * there + 1e-3 * (there > 0)
        spare = (mine.sum() - main[t].sum()) / max(there.sum(), 1e-9)
        main[t] += max(spare, 0.0) * there
    who = rng.permutation(np.flatnonzero(some))[: max(50, CANDIDATES // days.P)]
    base, rows = main[types[who]].copy(), np.arange(len(who))
    base[rows, days.main[who]] -= 1.15  # without this person
    base = np.log(np.where(main[types[who]] >= days.m_min, np.maximum(base, 0.005), main[types[who]] + 0.005))
    base[np.arange(len(who)), days.home[who]] = -np.inf
    length = days.length(days.home[who][:, None], np.arange(days.P)[None])
    bins = np.searchsorted(days.limits, length**2, side="right")
    cols = np.stack([bins, BINS + types[who][:, None] * BINS + bins], axis=2).reshape(-1, 2).astype(np.int16)
    first = np.arange(len(who) + 1) * days.P
    choices = Choices(base.ravel(), cols, first, first[:-1] + days.main[who], np.array([len(who), base.size]))
    theta = _fit_choices(choices, BINS * (n + 1), 0.5)
    return home, main, np.exp(theta[:BINS] + theta[BINS:].reshape(n, BINS))


def _pool_counts(count: Floats, weight: Floats, xy: Floats, m_min: int) -> Floats:
    """
    Return the counts of people per place, with counts below `m_min` pooled over quarters of the map.

    A quarter is halved as long as both halves have at least `m_min` people. Its sum is shared out among its places by
    `weight`, which is 0 where nobody may be.
    """
    out = np.where((count >= m_min) & (weight > 0), count, 0.0)
    few = np.where(out > 0, 0.0, count)
    quarters = [np.flatnonzero((out == 0) & (weight > 0))]
    left = float(few.sum() - few[quarters[0]].sum())  # of places where nobody may be: shared out over all
    while quarters:
        mine = quarters.pop()
        if len(mine) == 0:
            continue
        side = int(np.ptp(xy[mine], axis=0).argmax())
        order = mine[np.argsort(xy[mine, side], kind="stable")]
        cut = int(np.searchsorted(np.cumsum(few[order]), few[order].sum() / 2)) + 1
        halves = [order[:cut], order[cut:]]
        if all(len(half) and few[half].sum() >= m_min for half in halves):
            quarters += halves
        else:
            out[mine] = few[mine].sum() * weight[mine] / weight[mine].sum()
    total = out.sum()
    return np.asarray((out * (1 + left / total) if total > 0 else weight.copy()) + 1e-9 * (weight > 0))


def _place_tables(days: _Days) -> tuple[dict[str, Any], tuple[Ints, Ints]]:
    """
    Return the tables of a law that say where people go and pass, and an open table of all moves and their people.

    No place, and no move of the law, is of fewer than `m_min` people.
    """
    # visitors of other places, by part of the day
    other = days.role == OTHER
    place, who, part = days.place[other], days.of[other], days.part[days.start[other]]
    visitors = count_users(who, part * days.P + place, PARTS * days.P).reshape(PARTS, days.P)
    total = count_users(who, place, days.P)
    popular = np.where(visitors >= days.m_min, visitors, 0) + 0.1 * np.where(total >= days.m_min, total, 0)

    # cells that trips pass, and how much longer than direct, in quarters of a unit, `DETOUR` of the ways by them are
    stay, t = days.trips
    a, b, cell = days.place[stay - 1], days.place[stay], days.r[days.row[stay], t]
    people = count_users(days.of[stay], cell, days.P)
    passed = np.where(people >= days.m_min, people, 0).astype(np.float64)
    more = (days.length(a, cell) + days.length(cell, b) - days.length(a, b)) / np.sqrt(days.limits[1])
    detour = float(np.ceil(4 * np.quantile(more, DETOUR)) / 4) if len(stay) else 0.0

    # moves from slot to slot, and how many people make each
    row, t = np.nonzero(days.r[:, 1:] != days.r[:, :-1])
    move = days.r[row, t] * days.P + days.r[row, t + 1]
    moves, movers = np.unique(distinct_visits(days.who[row], move)[0], return_counts=True)
    enough = movers >= days.m_min
    level = np.searchsorted(days.m_min * 2 ** np.arange(CROWDS - 1), movers[enough], side="right")
    shared, crowd = make_hash_table(moves[enough], level)
    tables = {"popular": popular, "sought": np.flatnonzero(popular.any(axis=0)), "passed": passed, "detour": detour}
    grid = _grid_of_places(days.xy, np.flatnonzero(passed > 0))
    return {**tables, **grid, "moves": shared, "crowd": crowd}, make_hash_table(moves, movers)


def _grid_of_places(xy: Floats, places: Ints) -> dict[str, Any]:
    """Return `corner`, `square`, `inside`, `columns`: these places by squares of a grid, about one in each."""
    corner = xy.min(axis=0)
    width, height = np.ptp(xy, axis=0)
    side = max(np.sqrt(width * height / max(len(places), 1)), max(width, height) / max(len(places), 1), 1e-9)
    columns, rows = int(width / side) + 1, int(height / side) + 1
    at = np.minimum((xy[places] - corner) / side, (columns - 1, rows - 1)).astype(np.int64)
    number = at[:, 1] * columns + at[:, 0]
    order = np.argsort(number, kind="stable")
    return {
        "corner": np.array([*corner, side]),
        "square": np.searchsorted(number[order], np.arange(columns * rows + 1)).astype(np.int64),
        "inside": places[order].astype(np.int64),
        "columns": columns,
    }


def _place_choice_factors(days: _Days, law: Law, movers: tuple[Ints, Ints], rng: np.random.Generator) -> Law:
    """
    Return the law with the factors that are learnt from people's choices, and with the tables of trips.

    These are `explore`, `back` and `reach` of other places, `passing`, `passes`, `lengths` and `fresh` of trips.
    """
    visits, passes = int((days.role == OTHER).sum()), int((days.arrived > days.left).sum())
    expected = np.array([visits / 2 * OTHERS, visits * 15, passes * np.count_nonzero(law.passed) / 8])
    asked, said, new, back, through, cells = record_choices(
        law,
        days.stays,
        rng.permutation(days.people),
        np.cumsum(law.popular, axis=1),
        OTHERS,
        np.minimum(CANDIDATES / np.maximum(expected, 1), 1.0),
        *movers,
        days.m_min,
        rng.integers(0, 2**63, 2).astype(np.uint64),
        CANDIDATES,
    )
    # whether to go somewhere new: constant, own places, visits, those in this context, weekend, part, haste
    part, haste = asked[:, 4:5] == np.arange(PARTS), asked[:, 5:6] == np.arange(HASTES)
    x = np.column_stack([np.ones(len(asked)), np.log1p(asked[:, :3]), asked[:, 3], part, haste])
    law = law._replace(
        explore=minimise(_logistic_loss, (x, said), np.zeros(EXPLORE), 40),
        back=np.exp(_fit_choices(back, OWN_PLACE)),
        reach=np.exp(_fit_choices(new, REACHES * BINS + 1)[:-1].reshape(-1, BINS)),
        passing=np.exp(_fit_choices(through, PASSING)),
    )
    return _trip_tables(days, law, cells) if days.longest_pass else law


def _logistic_loss(at: Floats, x: Floats, said: NDArray[np.bool_], slope: Floats) -> float:
    """Return minus ln likelihood of answers by logistic(x at) plus at^2 / 2; fill its `slope`."""
    logit = x @ at
    slope[:] = x.T @ (1 / (1 + np.exp(-logit)) - said) + at
    return float(np.logaddexp(0, logit).sum() - logit[said].sum() + 0.5 * (at**2).sum())


def _trip_tables(days: _Days, law: Law, cells: Ints) -> Law:
    """
    Return the law with `passes`, `lengths` and `fresh`: how many cells, and for how long; `cells` as `record_choices`
    has them.
    """
    trip = np.flatnonzero(days.index > 0)
    number, straight, trips, alike = cells[trip].T
    number = np.minimum(number, MOST_PASSES)
    length = days.length(days.place[trip - 1], days.place[trip])
    bins = np.searchsorted(days.limits, length**2, side="right")
    awaited = days.role[trip] != HOME  # the trip is part of the stay before it
    room = np.where(awaited, days.start[trip] - days.arrived[trip - 1], days.end[trip] - days.start[trip])
    tail = np.minimum(room, TAILS) - 1
    count = np.full((2, BINS, CROWDS, TAILS, int(number.max(initial=0)) + 1), 0.02)
    visit = np.where(awaited, trip - 1, trip)
    taken = ((days.role[visit] == OTHER) & (days.index[visit] > 0) & ~days.last[visit]).astype(np.int64)
    np.add.at(count, (taken, bins, straight, tail, number), 1)
    # where few teach, those with any time left, then those with any number of people who go straight, stand in
    count += 2 * _normalise(count.sum(axis=(2, 3), keepdims=True))
    count += 2 * _normalise(count.sum(axis=3, keepdims=True))
    for m in range(TAILS - 1):  # so many slots have no room for more
        count[0, :, :, m, m + 1 :] = 0
        count[1, :, :, m, max(m, 1) :] = 0
    shares, again = _normalise(count), trips > 0
    chance = shares[taken, bins, straight, tail, number][again]
    # Dirichlet-multinomial: of what was done between these places before, and what anybody would do
    like = [np.log((alike[again] + f * chance) / (trips[again] + f) + 1e-12).sum() for f in FRESH]
    slots = np.ones(days.longest_pass)
    run = days.arrived - days.left
    np.add.at(slots, np.clip(run[trip][number == 1], 1, days.longest_pass) - 1, 1)
    return law._replace(
        passes=np.cumsum(shares, axis=-1),
        lengths=np.cumsum(slots / slots.sum()),
        fresh=float(FRESH[int(np.argmax(like))]),
    )


def _fit_choices(choices: Choices, n: int, ridge: float = 1.0) -> Floats:
    """Fit weights (n,) of softmax choices, see `choice_loss`."""
    many, candidates = choices.size.tolist()
    base, cols = choices.base[:candidates], choices.cols[:candidates]
    first, chosen = choices.first[: many + 1], choices.chosen[:many]
    return minimise(choice_loss, (ridge, base, cols, first, chosen), np.zeros(n), 40)


def _normalise(counts: Floats) -> Floats:
    """Return the counts as shares of their sum over the last axis."""
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))
