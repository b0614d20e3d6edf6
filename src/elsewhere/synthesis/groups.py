"""
Who lives alike: usages of places, their classes, types of people, kinds of day.

A *usage* is what a place is to a person: the hours of the week spent there, the share of the time, the length of the
stays, the share of the days. Usages are clustered into classes; people into *types* of at least k whose time by class
and hour of the week is similar (the paper's sim_S with hours of the week as periods and one mapping, through classes);
their days into *kinds*; and people again, by their kinds of day and by how much they do, into about twice as many
*habits*: a seed gives its type, the habit is drawn as people of the type have them. Passes (short records between two
others, at places that are no usage or passed for longer than stayed at) belong to ways.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import DAY, Floats, Ints, Mask, Visits
from elsewhere.sorting import number_parts
from elsewhere.synthesis._way_kernels import MOST_PASSES

HOUR = 3_600
MOMENT = 2 * 60  # nobody stays for less; positions jitter between two cells
PASSING = 30 * 60  # a record shorter than this, between two others, is part of a way
MOST_PASSING = 4 * 3_600
TURNED, GO_ON = 20, 2  # records that must tell; how many times more go on than turn back where they pass
JOINED = 5 * 60  # records less than this apart follow each other without a gap
CLASSES = 12  # of usages
PEOPLE_PER_TYPE, PEOPLE_PER_HABIT, MOST_TYPES = 24, 16, 100
DAYS_PER_KIND, MOST_KINDS = 60, 32
FITTED = 20_000  # rows that a clustering is fitted on: more teach nothing new
LONG = 2.5 * HOUR  # mean stay from which on a class other than home is a main one

PURE = 100.0  # distance, in clustering, of places where trips begin, end, or neither
HOME, MAIN, OTHER = 0, 1, 2
ARRIVES, LEAVES = 1, 2  # on a trip


@dataclass(frozen=True, eq=False)
class Stays:
    """Records of people, sorted, with touching records at one place joined; `usage` is -1 for passes."""

    user: Ints
    start: Ints
    end: Ints
    place: Ints
    usage: Ints
    joined: NDArray[np.bool_] = field(repr=False)  # to the record before, of the same person, without a gap
    use_user: Ints = field(repr=False)
    use_place: Ints = field(repr=False)
    use_ways: Ints = field(repr=False)  # ARRIVES and LEAVES: which of the ways to and from it are trips
    people: int
    grain: int  # seconds that all times are a multiple of
    events: bool  # most records have no length
    single: bool = False  # a person is one trip: whether a record is its first tells usages apart
    trail: int = 0  # seconds between fixes, where records are fixes that follow each other; 0 elsewhere
    beat: int = 0  # seconds between fixes at one place, 0 where these are one record
    cut: int = -1  # second of the day at which records end and others begin at the same place, -1 there is none


@dataclass(frozen=True, eq=False)
class Groups:
    """Class of each usage; role and ways of each class; type of each person and, `busy`, how much everybody does."""

    use_class: Ints
    role: Ints
    ways: Ints
    type_of: Ints
    busy: Floats = field(repr=False)  # (people, 2) ln records a day; share of records soon after another
    profile: Floats = field(repr=False)  # (people, (K + 1) x 48) share of the time by class, ways last, and hour
    means: Floats = field(repr=False)  # (K, features) centres of the classes

    @property
    def K(self) -> int:
        """Return the number of classes."""
        return len(self.role)


def weekend_of(day: Ints) -> NDArray[np.bool_]:
    """Return whether days since 1970 are Saturdays or Sundays."""
    return np.asarray((day + 3) % 7 >= 5)


def find_stays(visits: Visits) -> Stays:
    """Return the records of everybody, those of a usage told from passes."""
    user, place = visits.user.astype(np.int64), visits.place.astype(np.int64)
    start, end = visits.start.astype(np.int64), visits.end.astype(np.int64)
    same = np.zeros(len(user), dtype=bool)
    same[1:] = user[1:] == user[:-1]
    # fixes that follow each other closely are a trail: each lasts until the next
    soon = np.append(same[1:] & (start[1:] - end[:-1] <= JOINED), False)
    fix, trail, beat = (start == end) & soon, 0, 0
    if visits.form.record == "fixes" or np.mean(fix) > 0.5:
        gap = np.append(start[1:], 0) - end
        again = fix & (place == np.append(place[1:], -1))
        if visits.form.record == "fixes":  # written again as often as they were seen
            trail = visits.form.interval
        elif np.mean(again) > 0.1:
            beat = int(np.median(gap[again]))
        trail = trail or max(int(np.median(gap[soon])) if soon.any() else 0, 1)
        end = np.where(soon, np.append(start[1:], 0), end)
    begins, ends = find_trips(visits)
    touching = same & (start - np.append(0, end[:-1]) <= 0)
    joins = touching & (place == np.append(-1, place[:-1])) & (end > start)
    joins &= ~begins & ~np.append(False, ends[:-1])
    cut = -1 if trail else find_cut(start, end, joins)
    first = np.flatnonzero(~joins)
    end, ends = np.maximum.reduceat(end, first), np.logical_or.reduceat(ends, first)
    user, place, start = user[first], place[first], start[first]
    ways = np.where(ends, 0, LEAVES) | np.where(begins[first], 0, ARRIVES)
    ways = np.where((visits.trip[first] >= 0) if visits.trip is not None else False, ways, 0)

    same = np.append(False, user[1:] == user[:-1])
    joined = same & (start - np.append(0, end[:-1]) <= JOINED)
    follows = np.append(joined[1:], False)
    length = end - start
    inner = joined & follows & (length > 0)
    xy = visits.locations.planar() if visits.locations.has_coordinates else np.zeros((visits.R, 2))
    short = inner & (length <= longest_pass(place, length, inner, xy))
    short &= (ways == 0) | (ways == ARRIVES | LEAVES)
    short &= ~_legs(short)
    key = (user * visits.R + place) * 4 + ways
    usages = np.unique(key[~short])
    at = np.minimum(np.searchsorted(usages, key), len(usages) - 1)
    # who passes a place for longer than they stay there passes it, but for those stays
    known, time = usages[at] == key, np.maximum(length, 1)
    passed = np.bincount(at[known], (time * np.where(short, 1, -1))[known], len(usages)) > 0
    usage = np.where(known & ~(short & passed[at]), at, -1)
    times = np.concatenate([start, end])
    grain = next((g for g in (HOUR, 1800, 1200, 900, 600, 300, 60) if np.mean(times % g == 0) > 0.98), 1)
    events = bool(np.mean(length == 0) > 0.5)
    single = visits.form.unit == "trip"
    return Stays(
        user, start, end, place, usage, joined, usages // 4 // visits.R, usages // 4 % visits.R, usages % 4, visits.U,
        grain, events, single, trail, beat, cut,
    )  # fmt: skip


def find_cut(start: Ints, end: Ints, joins: Mask) -> int:
    """Return the second of the day at which most `joins` are, if no more records go on over it; else -1."""
    second, many = np.unique(start[joins] % DAY, return_counts=True)
    if not len(many) or 2 * many.max() <= joins.sum():
        return -1
    cut = int(second[many.argmax()])
    return cut if ((end - 1 - cut) // DAY > (start - cut) // DAY).sum() < many.max() else -1


def find_trips(visits: Visits) -> tuple[Mask, Mask]:
    """Return which records are the first, and which the last, of a trip."""
    if visits.trip is None:
        return np.zeros(len(visits), dtype=bool), np.zeros(len(visits), dtype=bool)
    new = np.append(True, (np.diff(visits.user) != 0) | (np.diff(visits.trip) != 0))
    return (visits.trip >= 0) & new, (visits.trip >= 0) & np.append(new[1:], True)


def _legs(short: Mask) -> Mask:
    """Return the passes at which a run of more than MOST_PASSES is cut into legs of equal length: they are usages."""
    run = np.cumsum(~short)
    size = np.bincount(run, short)[run].astype(np.int64)
    rows = np.arange(len(short))
    nth = rows - np.maximum.accumulate(np.where(short, -1, rows))  # 1, 2, ... within the run
    legs = size // (MOST_PASSES + 1) + 1
    return np.asarray(short & (nth * legs // (size + 1) != (nth - 1) * legs // (size + 1)))


def longest_pass(place: Ints, length: Ints, inner: Mask, xy: Floats) -> int:
    """
    Return the seconds up to which a record between two others is part of a way; PASSING where too few records tell.

    Who stayed for a purpose turns back as often as not; who pauses on the way goes on. Passes are as long, in steps of
    PASSING, as those who went on (they turned by less than 60 degrees) are GO_ON times those who turned back (by more
    than 120); a MOMENT at least.
    """
    middle = np.flatnonzero(inner & (place != np.roll(place, 1)) & (place != np.roll(place, -1)))
    come, go = (xy[place[middle + i]] - xy[place[middle + i - 1]] for i in (0, 1))
    cosine = (come * go).sum(1) / np.maximum(np.hypot(*come.T) * np.hypot(*go.T), 1e-9)
    cosine[place[middle - 1] == place[middle + 1]] = -1
    longest = 0
    while longest < MOST_PASSING:
        some = (length[middle] > max(longest, MOMENT)) & (length[middle] <= longest + PASSING)
        on, back = int((cosine[some] > 0.5).sum()), int((cosine[some] < -0.5).sum())
        if on + back < TURNED:
            return max(longest, PASSING)
        if on < GO_ON * back:
            break
        longest += PASSING
    return max(longest, MOMENT)


def hours_of_week(start: Ints, end: Ints, events: bool) -> tuple[Ints, Ints, Floats]:
    """Return (row, hour of 48: weekday or weekend, seconds or 1 for events) of what rows cover, hour by hour."""
    end = np.maximum(end, start + 1)
    row, nth = number_parts((end - 1) // HOUR - start // HOUR + 1)
    hour = start[row] // HOUR + nth
    seconds = np.minimum(end[row], (hour + 1) * HOUR) - np.maximum(start[row], hour * HOUR)
    weight = np.ones(len(row)) if events else seconds.astype(np.float64)  # records count, or their time
    return row, hour % 24 + 24 * weekend_of(hour // 24), weight


def _cluster(table: Floats, n: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Return k-means labels and centres of rows."""
    from sklearn.cluster import KMeans

    few = table if len(table) <= FITTED else table[np.sort(rng.choice(len(table), FITTED, replace=False))]
    n = max(1, min(n, len(np.unique(few, axis=0))))
    means = KMeans(n, n_init=3, random_state=int(rng.integers(2**31))).fit(few)
    return means.predict(table).astype(np.int64), np.asarray(means.cluster_centers_)


def _merge_small(label: Ints, means: Floats, size: Any, least: int) -> Ints:
    """Return the labels with every group of `size(labels)` below `least` merged into the nearest, smallest first."""
    label, means = label.copy(), means.copy()
    while True:
        sizes = np.asarray(size(label), dtype=float)
        alive = np.flatnonzero(sizes > 0)
        small = alive[np.argmin(sizes[alive])]
        if len(alive) == 1 or sizes[small] >= least:
            return np.searchsorted(alive, label)
        others = alive[alive != small]
        to = others[np.argmin(((means[others] - means[small]) ** 2).sum(1))]
        means[to] = (means[to] * sizes[to] + means[small] * sizes[small]) / (sizes[to] + sizes[small])
        label[label == small] = to


class Usages(NamedTuple):
    """What places are to people: hours (M, 48), time in all, length of stays; `table` is what they are clustered by."""

    hours: Floats
    total: Floats
    dwell: Floats
    table: Floats
    days: Ints  # (people,) with a record


def describe_usages(stays: Stays) -> Usages:
    """Describe every usage by its hours of the week, share of the time, length of stays and share of the days."""
    rows = np.flatnonzero(stays.usage >= 0)
    usage, n = stays.usage[rows], len(stays.use_user)
    row, hour, seconds = hours_of_week(stays.start[rows], stays.end[rows], stays.events)
    hours = np.zeros((n, 48))
    np.add.at(hours, (usage[row], hour), seconds)
    total = hours.sum(1)
    if stays.events:  # few records: an hour also tells of its neighbours
        daily = hours.reshape(n, 2, 24)
        hours = (daily + 0.5 * np.roll(daily, 1, 2) + 0.5 * np.roll(daily, -1, 2)).reshape(n, 48)
    everything = np.bincount(stays.use_user, total, stays.people)
    count = np.bincount(usage, minlength=n)
    dwell = np.bincount(usage, stays.end[rows] - stays.start[rows], n) / np.maximum(count, 1)
    day = stays.start[rows] // DAY
    on, days = count_distinct(usage, day, n), count_distinct(stays.user[rows], day, stays.people)
    table = np.column_stack(
        [
            np.sqrt(hours / np.maximum(hours.sum(1), 1e-9)[:, None]),
            1.5 * total / np.maximum(everything, 1e-9)[stays.use_user],
            0.4 * np.log1p(dwell / HOUR),
            0.8 * on / np.maximum(days, 1)[stays.use_user],
        ]
    )
    if stays.events:  # a place gone to once is another thing than one gone to again
        table = np.column_stack([table, 0.5 * np.minimum(np.log(count), 2.5)])
    if stays.use_ways.any():
        table = np.column_stack([table, PURE * (stays.use_ways & ARRIVES > 0), PURE * (stays.use_ways & LEAVES > 0)])
    if stays.single:
        first = np.append(True, stays.user[rows][1:] != stays.user[rows][:-1])
        table = np.column_stack([table, 3.0 * np.bincount(usage, first, n) / np.maximum(count, 1)])
    return Usages(hours, total, dwell, table, days)


def class_of(stays: Stays, use_class: Ints) -> Ints:
    """Return the class of each record, -1 for passes."""
    return np.where(stays.usage >= 0, use_class[stays.usage], -1)


def profiles(user: Ints, start: Ints, end: Ints, cls: Ints, *, people: int, K: int, events: bool) -> Floats:
    """Return (people, (K + 1) x 48) shares of the time by class, ways last, and hour of the week."""
    row, hour, seconds = hours_of_week(start, end, events)
    out = np.zeros((people, (K + 1) * 48))
    np.add.at(out, (user[row], np.where(cls >= 0, cls, K)[row] * 48 + hour), seconds)
    return np.asarray(out / np.maximum(out.sum(1, keepdims=True), 1e-9))


def classify(stays: Stays, means: Floats) -> Ints:
    """Return the class of each usage of other people: that of the nearest centre."""
    table = describe_usages(stays).table
    return np.asarray(((table[:, None] - means[None]) ** 2).sum(2).argmin(1))


def find_groups(stays: Stays, *, k: int, rng: np.random.Generator) -> Groups:
    """Cluster usages into classes and people into types, each of at least `k` people."""
    hours, total, dwell, table, days = describe_usages(stays)
    n = len(table)
    label, means = _cluster(table, min(CLASSES, max(2, n // 10)), rng)
    use_class = _merge_small(label, means, lambda c: count_distinct(c, stays.use_user, len(means)), k)
    K = int(use_class.max()) + 1
    means = np.array([table[use_class == c].mean(0) for c in range(K)])

    # home: the usage with most time, at night where that is equal; classes that are mostly home to their people
    night = hours[:, :6].sum(1) + hours[:, 24:30].sum(1)
    order = np.lexsort((night, total, stays.use_user))
    last = np.append(stays.use_user[order][1:] != stays.use_user[order][:-1], True)
    home = np.zeros(n, dtype=bool)
    home[order[last]] = True
    mean_home = np.bincount(use_class, home * total, K) / np.maximum(np.bincount(use_class, total, K), 1e-9)
    mean_dwell = np.bincount(use_class, dwell * total, K) / np.maximum(np.bincount(use_class, total, K), 1e-9)
    role = np.where(mean_home > 0.5, HOME, np.where(mean_dwell >= LONG, MAIN, OTHER))
    # nobody has two homes: a place where somebody works at night is one of work
    second, elsewhere = np.flatnonzero((role[use_class] == HOME) & ~home), np.flatnonzero(role != HOME)
    if len(second) and len(elsewhere):
        far = ((table[second][:, None] - means[elsewhere][None]) ** 2).sum(2)
        alike = far.min(1) < PURE**2 / 2  # which begin or end no trip, as it does
        use_class[second[alike]] = elsewhere[far.argmin(1)][alike]

    # who lives alike: the share of the time by class and hour of the week, and how much is recorded of a day
    cls = class_of(stays, use_class)
    profile = profiles(stays.user, stays.start, stays.end, cls, people=stays.people, K=K, events=stays.events)
    coarse = profile.reshape(stays.people, K + 1, 2, 12, 2).sum(4)
    activity = np.log(np.bincount(stays.user, minlength=stays.people) / np.maximum(days, 1) + 1e-9)
    span = np.log(np.maximum(days, 1))
    alike = np.column_stack([np.sqrt(coarse).reshape(stays.people, -1), (0.3 if stays.events else 0.0) * span])
    soon = np.append(False, (np.diff(stays.user) == 0) & (np.diff(stays.start) < HOUR))
    pace = np.bincount(stays.user, soon, stays.people) / np.maximum(np.bincount(stays.user, minlength=stays.people), 1)

    types = group_people(np.column_stack([alike, 0.3 * activity]), PEOPLE_PER_TYPE, k, rng)
    most = [
        2 * np.bincount(use_class, stays.use_ways & way > 0, K) > np.bincount(use_class, minlength=K)
        for way in (ARRIVES, LEAVES)
    ]
    ways, busy = ARRIVES * most[0] + LEAVES * most[1], np.column_stack([activity, pace])
    return Groups(use_class, role, ways, types, busy, profile, means)


def group_people(table: Floats, size: int, k: int, rng: np.random.Generator) -> Ints:
    """Return groups of people with rows alike, of about `size` and at least `k`."""
    label, centres = _cluster(table, int(np.clip(len(table) // size, 1, MOST_TYPES)), rng)
    return _merge_small(label, centres, partial(np.bincount, minlength=len(centres)), k)


def count_distinct(of: Ints, value: Ints, n: int) -> Ints:
    """Return how many distinct values, of at least 0, each of n groups has: `of` says whose a value is."""
    return np.bincount(np.unique(of << 32 | value) >> 32, minlength=n)
