"""
Every measure of people and of what they do, once, on `Visits`.

Counts of a crowd (`presence`, `visits_by_place`, `flows`), samples over all that happened (`trip_lengths`,
`stay_lengths`, `daily_places`), numbers of each person (`describe_people`), and distances between two crowds, each in
[0, 1]. Where visits last (`lasting`), presence is time; where they are instants (check-ins, calls) it is records.

A *move* is two consecutive visits of one user at different places, the second beginning at most a day after the first
ends; where there are trips, two visits of one trip. Nothing is filled in: what was not observed counts for nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.data.visits import DAY, Floats, Ints, Locations, Visits
from elsewhere.sorting import number_parts

HOUR = 3_600
NIGHT = (0, 6)  # hours at which people are at home
LONGEST_MOVE = DAY  # seconds between two visits that are one move
SAME_STAY = 2 * HOUR  # seconds without a record within one stay
DEPTHS = {"quarters": 2, "neighbourhoods": 5, "blocks": 7}  # how often the map is cut in half: 4, 32, 128 zones
PEOPLE_PER_BLOCK = 10  # presence by hour is counted in larger blocks where there are fewer people: else chance decides
FIELD = {
    "distance": "Distance", "radius": "Radius", "duration": "Duration", "daily_places": "DailyLoc",
    "g_rank": "G-rank", "i_rank": "I-rank",
}  # fmt: skip # the six of MoveSim and after, as papers call them
RANKS = 100  # places of the G-rank
LASTING = 0.05  # share of the time that visits must fill; a stay here and there does not make instants into stays
BINS = 50  # of the field's histograms


def lasting(*sides: Visits) -> bool:
    """
    Tell whether visits last, which is asked of all people together: who is in the file or not must not decide it.

    Examples
    --------
    >>> calls = Visits([0, 0, 0], [0, 3600, 90_000], [0, 3660, 90_000], [0, 1, 0], Locations(n=2))
    >>> lasting(calls), lasting(calls.replace(end=calls.end + 1800))
    (False, True)

    """
    filled, between = 0, 0
    for v in sides:
        filled += int((v.end - v.start).sum()) if v.form.record != "events" else 0
        between += int((np.maximum.reduceat(v.end, v.offsets[:-1]) - v.start[v.offsets[:-1]]).sum()) if len(v) else 0
    return filled > LASTING * between


@dataclass(frozen=True, eq=False)
class Plan:
    """
    What crowds are compared on: the map, cut by where some people were into zones of places by their `DEPTHS`, and by
    the kinds of places; and whether visits last, of which each crowd decides for itself where it is None.
    """

    locations: Locations
    zones: Mapping[str, Ints] = field(default_factory=dict, repr=False)
    timed: bool | None = None

    @staticmethod
    def of(people: Visits) -> "Plan":
        """Cut the map by where these people are; without coordinates every place is a zone of its own."""
        where, timed = people.locations, lasting(people)
        cut = {"places": np.arange(len(where)), "blocks": np.arange(len(where))}
        if where.kind is not None and len(set(where.kind)) > 1:
            cut["kinds"] = np.unique(np.array(where.kind), return_inverse=True)[1]
        if not where.has_coordinates:
            return Plan(where, cut, timed)
        weight = np.bincount(people.place, minlength=len(where)).astype(np.float64)
        xy = where.planar()
        most = int(np.clip(np.log2(max(people.U, 1) / PEOPLE_PER_BLOCK), DEPTHS["quarters"], DEPTHS["blocks"]))
        depths = DEPTHS | {"blocks": most}
        return Plan(where, cut | {name: zones(xy, weight, depth) for name, depth in depths.items()}, timed)


def zones(xy: Floats, weight: Floats, depth: int) -> Ints:
    """
    Return the zone of each place: the map cut in half `depth` times, each part across its longer side.

    A cut leaves half of the part's weight on either side, as nearly as places allow; places at one point stay together.

    Examples
    --------
    >>> zones(np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0], [9.0, 0.0]]), np.array([1.0, 1.0, 1.0, 3.0]), 1).tolist()
    [0, 0, 0, 1]

    """
    label = np.zeros(len(xy), dtype=np.int64)
    for _ in range(depth):
        finer = 2 * label
        for part in np.unique(label):
            inside = np.flatnonzero(label == part)
            there = inside[weight[inside] > 0]  # where nobody is, the extent of the map says nothing
            if len(there) < 2:
                continue
            axis = int(np.argmax(np.ptp(xy[there], axis=0)))
            at, entry = np.unique(xy[there, axis], return_inverse=True)
            if len(at) < 2:
                continue
            below = np.cumsum(np.bincount(entry, weight[there]))[:-1]
            border = int(np.argmin(np.abs(below - weight[there].sum() / 2)))
            finer[inside[xy[inside, axis] >= at[border + 1]]] += 1
        label = finer
    return np.asarray(np.unique(label, return_inverse=True)[1], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Crowd:
    """Some people or fakes on a plan, and what is counted of them; each count is taken when it is first asked for."""

    visits: Visits
    plan: Plan = field(repr=False)

    @cached_property
    def timed(self) -> bool:
        """Tell whether visits last: presence is then time, else records."""
        return lasting(self.visits) if self.plan.timed is None else self.plan.timed

    @cached_property
    def _hours(self) -> tuple[Ints, Ints, Floats]:
        """Return the row, the hour since 1970 and the weight of each hour that a visit touches."""
        v = self.visits
        if not self.timed:
            return np.arange(len(v)), v.start // HOUR, np.ones(len(v))
        first, last = v.start // HOUR, np.maximum(v.end - 1, v.start) // HOUR
        row, nth = number_parts(last - first + 1)
        hour = first[row] + nth
        inside = np.minimum(v.end[row], (hour + 1) * HOUR) - np.maximum(v.start[row], hour * HOUR)
        return row, hour, np.maximum(inside, 1).astype(np.float64)

    @cached_property
    def person_days(self) -> tuple[Ints, Ints]:
        """Return the person of each day on which somebody was seen, and which of these each of `_hours` is on."""
        row, hour, _ = self._hours
        key, number = np.unique(self.visits.user[row].astype(np.int64) * (1 << 32) + hour // 24, return_inverse=True)
        return key >> 32, number

    @property
    def days(self) -> int:
        """Return the number of days of all people on which they were seen."""
        return len(self.person_days[0])

    def presence(self, zone: Ints) -> Floats:
        """Return (48, zones): time or records in each zone by hour of the day, weekdays first and then weekends."""
        row, hour, weight = self._hours
        weekend = (hour // 24 + 3) % 7 >= 5
        Z = int(zone.max()) + 1
        key = (weekend * 24 + hour % 24) * Z + zone[self.visits.place[row]]
        return np.bincount(key, weight, 48 * Z).reshape(48, Z).astype(np.float64)

    def visits_by_place(self) -> Floats:
        """Return (R,) stays at each place, however long."""
        first, _ = self._stays
        return np.bincount(self.visits.place[first], minlength=self.visits.R).astype(np.float64)

    @cached_property
    def _stays(self) -> tuple[Ints, Ints]:
        """Return the first row of each stay, and its seconds: rows of one user at one place without a long gap."""
        v = self.visits
        again = np.zeros(len(v), dtype=bool)
        same = (v.user[1:] == v.user[:-1]) & (v.place[1:] == v.place[:-1])
        again[1:] = same & (v.start[1:] - v.end[:-1] <= SAME_STAY)
        first = np.flatnonzero(~again)
        end = np.maximum.reduceat(v.end, first)
        return first, end - v.start[first]

    @cached_property
    def moves(self) -> tuple[Ints, Ints, Ints]:
        """Return the origin and destination of each move, and the row at which it arrives."""
        v = self.visits
        moved = (v.user[1:] == v.user[:-1]) & (v.place[1:] != v.place[:-1])
        moved &= v.start[1:] - v.end[:-1] <= LONGEST_MOVE
        if v.trip is not None:
            moved &= (v.trip[1:] == v.trip[:-1]) & (v.trip[1:] >= 0)
        to = np.flatnonzero(moved) + 1
        return v.place[to - 1].astype(np.int64), v.place[to].astype(np.int64), to

    def flows(self, zone: Ints) -> Ints:
        """Return the kind of each move: its zone of origin and of destination, as one number."""
        origin, target, _ = self.moves
        return np.asarray(zone[origin] * (int(zone.max()) + 1) + zone[target])

    @cached_property
    def trip_lengths(self) -> Floats:
        """Return the kilometres of each move, to the millimetre."""
        origin, target, _ = self.moves
        return np.round(self.plan.locations.distance(origin, target), 6)

    @cached_property
    def stay_lengths(self) -> Floats:
        """Return the minutes of each stay that lasts."""
        _, seconds = self._stays
        return np.asarray(seconds[seconds > 0] / 60)

    @cached_property
    def daily_places(self) -> Floats:
        """Return the number of different places of each person and day."""
        pairs = np.unique(self.person_days[1] * self.visits.R + self.visits.place[self._hours[0]])
        return np.bincount(pairs // self.visits.R).astype(np.float64)

    @cached_property
    def own_places(self) -> tuple[Ints, Ints, Floats, Ints]:
        """Return person, place and time of the own places of all, by person; and which of them each `_hours` is at."""
        v = self.visits
        row, _, weight = self._hours
        pair, own = np.unique(v.user[row].astype(np.int64) * v.R + v.place[row], return_inverse=True)
        return pair // v.R, pair % v.R, np.bincount(own, weight).astype(np.float64), own

    def time_shares(self, n: int) -> Floats:
        """Return (U, n) the share of each person's time at the places of most time."""
        who, _, time, _ = self.own_places
        order = np.lexsort((-time, who))
        rank = np.arange(len(who)) - np.searchsorted(who, who)
        out = np.zeros((self.visits.U, n))
        out[who[rank < n], rank[rank < n]] = (time[order] / np.bincount(who, time)[who])[rank < n]
        return out

    @cached_property
    def home(self) -> Ints:
        """Return (U,) the home of each person: the place of most nights, else of most time."""
        _, hour, weight = self._hours
        who, where, time, own = self.own_places
        night = (hour % 24 >= NIGHT[0]) & (hour % 24 < NIGHT[1])
        asleep, U = np.bincount(own, weight * night, len(who)), self.visits.U
        sleeps = np.bincount(who, asleep, U) > 0
        return np.asarray(where[_first_of_each(who, np.where(sleeps[who], asleep, time), U)])

    @cached_property
    def people(self) -> dict[str, Floats]:
        """Return numbers of each person: see `describe_people`."""
        return describe_people(self)


def describe_people(crowd: Crowd) -> dict[str, Floats]:
    """
    Return (U,) numbers of each person, NaN where the visits cannot tell.

    | name | what |
    |---|---|
    | places | different places |
    | places_per_day | the same, per day on which the person was seen |
    | visits_per_day | visits per such day |
    | home_share | share of the time, or records, at home: the place of most nights, else of most time |
    | main_share | the same at the most usual other place |
    | entropy | spread of the time over places, nats |
    | routine | share of the time at the usual place of that hour and kind of day, hours seen on two days or more |
    | new_places | share of the places seen on one day only |
    | radius | radius of gyration, km |
    | farthest | farthest place from home, km |
    """
    v = crowd.visits
    U, R = v.U, v.R
    row, hour, weight = crowd._hours
    user = v.user[row].astype(np.int64)
    who, where, time, own = crowd.own_places
    total = np.bincount(who, time, U)
    share = time / total[who]
    home = np.minimum(np.searchsorted(who * R + where, np.arange(U) * R + crowd.home), len(who) - 1)
    other = time.copy()
    other[home[home >= 0]] = -1.0
    main = _first_of_each(who, other, U)
    main = np.where((main >= 0) & (other[main] > 0), main, -1)
    of_day, day = crowd.person_days
    days = np.bincount(of_day, minlength=U).astype(np.float64)
    seen_on = np.bincount(np.unique(own * len(of_day) + day) // len(of_day))
    number = np.bincount(who, minlength=U).astype(np.float64)
    first, _ = crowd._stays
    values = {
        "places": number,
        "places_per_day": np.bincount(who, seen_on.astype(np.float64), U) / days,
        "visits_per_day": np.bincount(v.user[first], minlength=U) / days,
        "home_share": share[home],
        "main_share": np.where(main >= 0, share[main], 0.0),
        "entropy": -np.bincount(who, share * np.log(share), U),
        "routine": _routine(user, own, hour, day, weight, U, len(who)),
        "new_places": np.where(days > 1, np.bincount(who, seen_on == 1, U) / number, np.nan),
    }
    if crowd.plan.locations.has_coordinates:
        xy = crowd.plan.locations.planar()[where]
        centre = np.column_stack([np.bincount(who, share * xy[:, axis], U) for axis in (0, 1)])
        values["radius"] = np.sqrt(np.bincount(who, share * ((xy - centre[who]) ** 2).sum(axis=1), U))
        away = crowd.plan.locations.distance(where, where[home][who])
        values["farthest"] = np.zeros(U)
        np.maximum.at(values["farthest"], who, away)
    return values


def _first_of_each(who: Ints, value: Floats, U: int) -> Ints:
    """Return for each person the entry of the largest value, the first of equals; entries are sorted by person."""
    order = np.lexsort((np.arange(len(who)), -value, who))
    start = np.searchsorted(who[order], np.arange(U))
    return np.asarray(order[np.minimum(start, len(order) - 1)])


def _routine(user: Ints, own: Ints, hour: Ints, day: Ints, weight: Floats, U: int, P: int) -> Floats:
    """Return the share of the time at the usual place of its hour and kind of day, over hours seen on two days."""
    kind = ((hour // 24 + 3) % 7 >= 5) * 24 + hour % 24
    slot = np.unique(user * 48 + kind, return_inverse=True)[1]
    n = int(slot.max()) + 1
    D = int(day.max()) + 1
    seen = np.bincount(np.unique(slot * D + day) // D, minlength=n)
    pair, entry = np.unique(slot * P + own, return_inverse=True)
    time = np.bincount(entry, weight)
    most, all_of = np.zeros(n), np.bincount(pair // P, time, n)
    np.maximum.at(most, pair // P, time)
    owner = np.zeros(n, dtype=np.int64)
    owner[slot] = user
    often = seen > 1
    top, total = (np.bincount(owner[often], x[often], U) for x in (most, all_of))
    return np.asarray(np.divide(top, total, out=np.full(U, np.nan), where=total > 0))


# -- distances between two crowds, each in [0, 1] ----------------------------------------------------------------------


def places_lost(a: ArrayLike, b: ArrayLike, top: int) -> float:
    """
    Return the share of the `top` busiest places of `a` that are not among those of `b`; counts of visits per place.

    Places that tie for the last ranks share them: with 3 places for 1 rank each is in by a third.

    Examples
    --------
    >>> places_lost([9, 8, 1, 0], [9, 0, 7, 1], 2), places_lost([5, 5, 5, 1], [5, 5, 5, 1], 2)
    (0.5, 0.0)

    """

    def among_top(visits: NDArray[Any]) -> Floats:
        last = np.sort(visits)[-top]
        above, tied = visits > last, visits == last
        return np.where(above, 1.0, np.where(tied, (top - above.sum()) / tied.sum(), 0.0))

    return 1 - float(np.minimum(among_top(np.asarray(a)), among_top(np.asarray(b))).sum()) / top


def misplaced(a: Floats, b: Floats) -> float:
    """
    Return the share of people who are elsewhere: total variation of each row (an hour), weighted by the rows of `a`.

    An hour of which either knows nothing is left out.

    Examples
    --------
    >>> misplaced(np.array([[2.0, 2.0], [4.0, 0.0]]), np.array([[4.0, 0.0], [4.0, 0.0]]))
    0.25

    """
    both = (a.sum(axis=1) > 0) & (b.sum(axis=1) > 0)
    if not both.any():
        return 1.0
    p, q = (x[both] / x[both].sum(axis=1, keepdims=True) for x in (a, b))
    weight = a[both].sum(axis=1) / a[both].sum()
    return float(weight @ np.abs(p - q).sum(axis=1)) / 2


def largest_gap(x: Floats, y: Floats) -> float:
    """
    Return the Kolmogorov-Smirnov distance: how far shares up to a value are apart, at the value where it is most.

    What is not a number is left out. 1 if one of them is empty, 0 if both are.

    Examples
    --------
    >>> largest_gap(np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 4.0, 5.0, np.nan, 6.0]))
    0.5

    """
    x, y = x[~np.isnan(x)], y[~np.isnan(y)]
    if len(x) == 0 or len(y) == 0:
        return float(len(x) != len(y))
    at = np.concatenate([x, y])
    up_to = [np.searchsorted(np.sort(side), at, side="right") / len(side) for side in (x, y)]
    return float(np.abs(up_to[0] - up_to[1]).max())


def unmatched(a: Ints, b: Ints, weight_a: float = 1.0, weight_b: float = 1.0) -> float:
    """
    Return the share of moves that have no counterpart: Bray-Curtis, sum |n_a - n_b| / sum (n_a + n_b) over all kinds.

    `a`, `b` hold the kind of each move, as a number; each move of a side counts by its weight. 0 if nobody moves.

    Examples
    --------
    >>> unmatched(np.array([7, 7, 8]), np.array([7, 9, 9]))
    0.6666666666666666

    """
    keys, entry = np.unique(np.concatenate([a, b]), return_inverse=True)
    n_a = weight_a * np.bincount(entry[: len(a)], minlength=len(keys))
    n_b = weight_b * np.bincount(entry[len(a) :], minlength=len(keys))
    total = float(n_a.sum() + n_b.sum())
    return float(np.abs(n_a - n_b).sum()) / total if total > 0 else 0.0


def jensen_shannon(p: ArrayLike, q: ArrayLike) -> float:
    """
    Return the Jensen-Shannon divergence of two histograms, in bits: 0 if they are equal, 1 if they share nothing.

    Examples
    --------
    >>> jensen_shannon([1, 1], [2, 2]), jensen_shannon([1, 0], [0, 3])
    (0.0, 1.0)

    """
    from scipy.special import rel_entr

    a, b = (np.asarray(x, dtype=np.float64) / np.sum(x) for x in (p, q))
    return float((rel_entr(a, (a + b) / 2) + rel_entr(b, (a + b) / 2)).sum() / (2 * np.log(2)))


def field_divergences(real: Crowd, fakes: Crowd) -> dict[str, float | None]:
    """
    Return the six Jensen-Shannon divergences by which the field compares generators (MoveSim and after).

    Distances between consecutive places, radii of gyration, lengths of stays and places per day, in equal bins up to
    the largest real value; `g_rank` over the shares of the most visited places, `i_rank` over the mean shares of each
    person's most visited places. None where the data cannot tell.
    """
    with_map = real.plan.locations.has_coordinates
    samples = {
        "distance": (real.trip_lengths, fakes.trip_lengths) if with_map else None,
        "radius": (real.people["radius"], fakes.people["radius"]) if with_map else None,
        "duration": (real.stay_lengths, fakes.stay_lengths),
        "daily_places": (real.daily_places, fakes.daily_places),
    }
    found: dict[str, float | None] = {}
    for name, pair in samples.items():
        if pair is None or min(map(len, pair)) == 0:
            found[name] = None
            continue
        bins = np.linspace(0, max(float(pair[0].max()), 1e-9), BINS + 1)
        counts = [np.histogram(np.minimum(x, bins[-1]), bins)[0] for x in pair]
        found[name] = jensen_shannon(*counts)
    for name, ranks in (("g_rank", _crowd_ranks), ("i_rank", _own_ranks)):
        found[name] = jensen_shannon(ranks(real), ranks(fakes))
    return {name: found[name] for name in FIELD}


def _crowd_ranks(crowd: Crowd) -> Floats:
    visits = np.sort(crowd.visits_by_place())[::-1][:RANKS]
    return np.asarray(np.pad(visits, (0, RANKS - len(visits))) / visits.sum())


def _own_ranks(crowd: Crowd) -> Floats:
    v = crowd.visits
    pair, n = np.unique(v.user.astype(np.int64) * v.R + v.place, return_counts=True)
    who = pair // v.R
    order = np.lexsort((-n, who))
    rank = np.arange(len(order)) - np.searchsorted(who[order], who[order])
    share = n[order] / np.bincount(who, n, v.U)[who[order]]
    keep = rank < RANKS
    return np.bincount(rank[keep], share[keep], RANKS).astype(np.float64)
