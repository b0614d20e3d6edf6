"""
Certified lives: everybody in the file is one bounded list, the lists are added up with noise, and lives are drawn.

What a place is to a person follows from that person's own records and from public prototypes (PROTOTYPES), so it costs
nothing. A list has shares of the time by class and place, classes by hour of the week, when days begin and how long
they are, class after class, lengths of stays, distances between places, how often one comes back, moves and places a
day, and days. Each block is cut to a norm of at most 1 and weighted by the root of its share, so no list is longer
than 1. Everything after the noisy sum is post-processing: maps are cleaned on the public coordinates; a semi-Markov law
of classes is fitted to the sums, in rounds in which lives are drawn, described as people are, and compared; and own
places are put on the map by the mapping of lives.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.checkpoint import Stages, at_once
from elsewhere.data.visits import DAY, Codes, Floats, Form, Ints, Locations, Mask, Visits
from elsewhere.errors import InvalidParameter, NotEnoughUsers
from elsewhere.scale import map_over, one_thread
from elsewhere.settings import Certified
from elsewhere.sorting import number_keys, number_parts
from elsewhere.synthesis import _certified_kernels as kernels
from elsewhere.synthesis import _life_kernels as life
from elsewhere.synthesis._certified_kernels import BLOCKS, CLASSES, DENSE, FAR, HOURS, PASSED, SIZES, SLOTS, STATES
from elsewhere.synthesis._diary_kernels import TIES
from elsewhere.synthesis.certificate import (
    Certificate,
    certificate_of,
    from_generator,
    from_the_system,
    noise_of,
    noisy_sum,
    on_grid,
    people_needed,
    words_for_few,
)
from elsewhere.synthesis.groups import HOME, OTHER, weekend_of
from elsewhere.synthesis.mapping import grid_over, square_of

SLOT = DAY // SLOTS
MOST_DAYS = 60  # of a person, from the first on; and of a fake
MOST_PLACES = 2048  # the smoother holds tables of R x R
MONDAY = 11_323  # 2001-01-01: on which days people have data is theirs
MAPS = CLASSES + 1  # of each class, and of all together
ROLE = np.array([HOME] + [OTHER] * (CLASSES - 1))
# of the square of a list's norm, and the norm at which a block is cut; chosen on towns
MAP_SHARES = (0.20, 0.14, 0.03, 0.03, 0.04, 0.04, 0.11)
MAP_MOST = (0.3, 0.2, 0.15, 0.15, 0.1, 0.05, 0.4)
SHARES = dict(zip(BLOCKS, (0.13, 0.03, 0.08, 0.04, 0.05, 0.03, 0.03, 0.02), strict=True))
MOST = dict(zip(BLOCKS, (4.0, 1.42, 2.5, 2.5, 2.0, 4.0, 1.74, 1.74), strict=True))
PIECE = 2000  # people described at a time
BLOCK = 500  # lives drawn at a time

# night place, main place by day, short stop by day, evening, weekend: centres of k-means over usages of three simulated
# towns of 1, 7 and 14 days, also cut to 9 to 19 h (bench/private.py prototypes). Roots of the shares of three hours
# each, weekdays and weekends; 1.5 x share of the time; .4 ln(1 + hours of a stay); .8 x share of the days
PROTOTYPES = np.array([
    [0.43, 0.43, 0.37, 0.12, 0.17, 0.17, 0.29, 0.39, 0.04, 0.04, 0.04, 0.03, 0.03, 0.03, 0.03, 0.03, 0.97, 0.8, 0.8],
    [0, 0, 0.08, 0.44, 0.44, 0.59, 0.16, 0.01, 0, 0, 0, 0.02, 0.02, 0.02, 0.01, 0, 0.61, 0.64, 0.77],
    [0, 0, 0.05, 0.54, 0.53, 0.05, 0.03, 0, 0, 0, 0, 0.03, 0.01, 0.01, 0, 0, 0.11, 0.33, 0.57],
    [0, 0, 0, 0.03, 0.02, 0.24, 0.76, 0.18, 0, 0, 0, 0.02, 0.01, 0.02, 0.02, 0.01, 0.11, 0.34, 0.59],
    [0, 0, 0.03, 0.03, 0.07, 0.25, 0.07, 0.02, 0.01, 0, 0, 0.2, 0.23, 0.26, 0.18, 0.07, 0.03, 0.36, 0.17],
])  # fmt: skip

ROUNDS, PLACED, LIVES = 34, 26, 4000  # rounds of fitting, from which on places are drawn too, days drawn in each
SWEEPS = 2
CELL, SQUARE = 10.0, 8.0  # lives that the prior counts for where a place, or a square of the map, is compared
RANGE, OWN, STAY = 4.0, 0.4, 0.2  # likeness of near places, in distances between neighbours; a place's own; scatter
SPREADS = (0.02, 0.1, 0.5, 2.0, 6.0)  # of ln density from its base: the likeliest is taken
NEWTON, CLOSE = 300, 1e-4
RARE = 0.03  # share of the time at weekends, or on weekdays, below which all days are alike
SEEN = 0.97  # share of the days with records above which everybody is seen every day
SPANS = (1, 3, 5, 11, 21, 44, MOST_DAYS)  # days of each bin
SUMS = "sums"  # the stage that is spent


class Observed(NamedTuple):
    """Who was where from when to when, sorted by person and start; places are numbers of a public map."""

    user: Ints
    start: Ints
    end: Ints
    place: Ints
    U: int
    locations: Locations
    tz: str = "UTC"

    def of_users(self, users: Ints | Mask) -> "Observed":
        """Return the records of these people (numbers or a mask), numbered anew."""
        chosen = np.arange(self.U)[users]
        number = np.full(self.U, -1)
        number[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(number[self.user] >= 0)
        rows = rows[np.argsort(number[self.user[rows]], kind="stable")]
        return self._replace(
            user=number[self.user[rows]], start=self.start[rows], end=self.end[rows], place=self.place[rows],
            U=len(chosen),
        )  # fmt: skip

    def first_days(self) -> tuple["Observed", Ints]:
        """Return the records of everybody's first MOST_DAYS days, and on which day since 1970 each person's begin."""
        origin = (self.start // DAY)[np.searchsorted(self.user, self.user)]
        kept = self.start < (origin + MOST_DAYS) * DAY
        user, start, end, place, origin = (x[kept] for x in (*self[:4], origin))
        end = np.minimum(end, (origin + MOST_DAYS) * DAY)
        return self._replace(user=user, start=start, end=end, place=place), origin

    def visits(self) -> Visits:
        """
        Return what the sums look at, in the weeks of fakes, as visits for the owner's report.

        So nobody's dates, or number of records, decide whether a report can be made and a run ends.
        """
        seen, origin = self.first_days()
        few = np.arange(len(seen.user)) - np.searchsorted(seen.user, seen.user) < MOST_DAYS * SLOTS
        back = (origin - MONDAY) // 7 * 7 * DAY
        user, start, end, place = (x[few] for x in (seen.user, seen.start - back, seen.end - back, seen.place))
        return Visits(user, start, end, place, self.locations, users=range(self.U), tz=self.tz)


def observed(visits: Visits) -> Observed:
    """Return visits as plain columns."""
    user, place = visits.user.astype(np.int64), visits.place.astype(np.int64)
    return Observed(user, visits.start, visits.end, place, visits.U, visits.locations, visits.tz)


class Days(NamedTuple):
    """Days (rows, SLOTS) of people, rows first[p] to first[p + 1] of each; 1 for those at a weekend."""

    r: Codes
    first: Ints
    off: Ints
    whole: Floats  # (people, 3): 1, share of the days from first to last with a record, records without length


def days_of(seen: Observed) -> Days:
    """Return the days on which people were seen, in slots: where they were longest in it, of equals the first place."""
    seen, origin = seen.first_days()
    user, start, place = seen.user, seen.start, seen.place
    follows = np.append(np.where(user[1:] != user[:-1], np.iinfo(np.int64).max, start[1:]), np.iinfo(np.int64).max)
    end = np.minimum(seen.end, follows)
    row, nth = number_parts(np.maximum(end - 1, start) // SLOT - start // SLOT + 1)
    slot = (start // SLOT)[row] + nth
    seconds = np.maximum(np.minimum(end[row], (slot + 1) * SLOT) - np.maximum(start[row], slot * SLOT), 1)
    key, R = user[row] * (MOST_DAYS * SLOTS) + slot - origin[row] * SLOTS, len(seen.locations)
    cell, entry = number_keys(key * R + place[row])
    seconds = np.bincount(entry, seconds)
    cell = cell[np.lexsort((-seconds, cell // R))]
    key, best = np.unique(cell // R, return_index=True)

    day, row = np.unique(key // SLOTS, return_inverse=True)
    r = np.full((len(day), SLOTS), -1, dtype=np.int32)
    r[row, key % SLOTS] = cell[best] % R
    owner, number = np.divmod(day, MOST_DAYS)
    who, first = np.unique(owner, return_index=True)
    first = np.append(first, len(owner))
    begin = np.zeros(seen.U, dtype=np.int64)
    begin[user] = origin
    records = np.bincount(user, minlength=seen.U)[who]
    instants = np.bincount(user, seen.end == start, seen.U)[who] / records
    whole = np.column_stack([np.ones(len(who)), np.diff(first) / (number[first[1:] - 1] + 1), instants])
    return Days(r, first, weekend_of(begin[owner] + number).astype(np.int64), whole)


@dataclass(frozen=True, eq=False)
class Design:
    """What is asked of a person on this map: public, the same whoever is in the file."""

    locations: Locations = field(repr=False)
    xy: Floats = field(repr=False)
    near: float  # usual distance of neighbours
    limits: Floats = field(repr=False)  # squared distances at which bins begin

    @staticmethod
    def of(locations: Locations) -> "Design":
        """Return the design on a map."""
        from scipy.spatial import cKDTree

        R = len(locations)
        if not 2 <= R <= MOST_PLACES or not locations.has_coordinates:
            raise InvalidParameter(
                f"`eps` takes a map of 2 to {MOST_PLACES:,} places with positions, and this one has {R:,}"
                f"{'' if locations.has_coordinates else ' without'}: give a `grid` of {MOST_PLACES:,} cells or fewer.",
                code="E_MAP",
                parameter="grid",
            )
        xy = locations.planar()
        apart = np.asarray(cKDTree(xy).query(xy, k=2)[0])[:, 1]
        near = float(np.median(apart[apart > 0])) if (apart > 0).any() else 1.0
        return Design(locations, xy, near, (near * 0.9 * 2 ** (np.arange(life.BINS - 1) / 2)) ** 2)

    @property
    def R(self) -> int:
        """Return the number of places."""
        return len(self.locations)

    @property
    def cells(self) -> int:
        """Return how many numbers a list has."""
        return MAPS * self.R + DENSE

    @cached_property
    def weight(self) -> Floats:
        """Return what each number of a bounded list is multiplied by."""
        parts = [*zip(MAP_SHARES, [self.R] * MAPS, strict=True), *zip(SHARES.values(), SIZES, strict=True)]
        return np.asarray(np.sqrt(np.concatenate([np.full(size, share) for share, size in parts])))

    def describe(self, days: Days, drawn: NDArray[np.int8] | None = None, xy: Floats | None = None) -> Any:
        """
        Return bounded lists of people, as sparse rows, each block without its weight.

        Of fakes `drawn` are the classes of their slots, and `xy` other positions where they are not on the map yet.
        """
        from scipy.sparse import csr_array, hstack

        n, where = len(days.first) - 1, self.xy if xy is None else xy
        R, size = len(where), int((days.r >= 0).sum()) + 1
        dense, first, cell, part = (
            np.zeros((n, DENSE)), np.zeros(n + 1, np.int64), np.zeros(size, np.int64), np.zeros(size)
        )  # fmt: skip
        drawn = np.zeros((0, SLOTS), dtype=np.int8) if drawn is None else drawn
        kernels.describe(
            days.r, days.first, days.off, PROTOTYPES, drawn, where, self.limits, ROLE, dense, first, cell, part
        )
        dense[:, kernels.WHOLE_AT :] = days.whole
        for name, a, width in zip(BLOCKS, np.cumsum(SIZES) - SIZES, SIZES, strict=True):
            block = dense[:, a : a + width]
            block /= bound(np.sqrt((block**2).sum(1, keepdims=True)), MOST[name])
        if xy is not None:
            return csr_array(hstack([csr_array((n, MAPS * self.R)), csr_array(dense)]))
        cell, part, who = cell[: first[-1]], part[: first[-1]], np.repeat(np.arange(n), np.diff(first))
        who, cell, part = np.append(who, who), np.append(cell, CLASSES * R + cell % R), np.append(part, part)
        of_map = who * MAPS + cell // R
        norm = np.sqrt(np.bincount(of_map, part**2, n * MAPS))
        part = part / bound(norm, np.tile(MAP_MOST, n))[of_map]
        return csr_array(hstack([csr_array((part, (who, cell)), shape=(n, MAPS * R)), csr_array(dense)]))


def bound(norm: Floats, most: Any) -> Floats:
    """Return by what blocks of these norms are divided, so that none is longer than 1."""
    return np.asarray(np.maximum(norm, most))


def sums_of(seen: Observed, design: Design, mu: float) -> Ints:
    """Return the sums of weighted lists on the grid, without noise."""
    total = np.zeros(design.cells, dtype=np.int64)
    for begin in range(0, seen.U, PIECE):
        rows = slice(*np.searchsorted(seen.user, [begin, begin + PIECE]).tolist())
        if rows.stop > rows.start:
            some = seen._replace(
                user=seen.user[rows] - begin, start=seen.start[rows], end=seen.end[rows], place=seen.place[rows],
                U=PIECE,
            )  # fmt: skip
            lists = design.describe(days_of(some))
            np.add.at(total, lists.indices, on_grid(lists.data * design.weight[lists.indices], mu))
    return total


@dataclass(frozen=True, eq=False)
class Mechanism:
    """The sums of a release, for its noise and its audit: whose, of what, under which promise."""

    seen: Observed = field(repr=False)
    design: Design = field(repr=False)
    eps: float
    delta: float

    @property
    def mu(self) -> float:
        """Return what one person moves the sums by at most, in standard deviations of the noise."""
        return noise_of(self.eps, self.delta, self.design.cells)

    def sums(self, users: Any = slice(None)) -> Ints:
        """Return the sums over these people, without noise."""
        return sums_of(self.seen.of_users(users), self.design, self.mu)


# ---- from noisy sums to a law and a ground


class Table(NamedTuple):
    """A block of means over people, and the standard deviation of the noise in each number."""

    mean: Floats
    noise: float


@dataclass(frozen=True, eq=False)
class Sums:
    """Noisy sums over people, with the sd of their noise, as means over the noisy number of people."""

    design: Design = field(repr=False)
    mean: Floats = field(repr=False)
    noise: Floats = field(repr=False)
    people: float

    @staticmethod
    def of(design: Design, y: Floats, sd: float) -> "Sums":
        """Read the number of people off the number in which everybody counts alike."""
        at = MAPS * design.R + kernels.WHOLE_AT
        people = float(y[at] * MOST["whole"] / design.weight[at])
        some = max(people, 1.0)
        return Sums(design, y / design.weight / some, sd / design.weight / some, people)

    def table(self, name: str, mean: Floats | None = None) -> Table:
        """Return a block of these sums, or of the mean of other lists."""
        j = BLOCKS.index(name)
        a = MAPS * self.design.R + sum(SIZES[:j])
        x = (self.mean if mean is None else mean)[a : a + SIZES[j]]
        return Table(np.maximum(x, 0.0), float(self.noise[a]))

    def map(self, c: int, mean: Floats | None = None) -> Table:
        """Return the map of class c, of all together for c = CLASSES."""
        some = slice(c * self.design.R, (c + 1) * self.design.R)
        return Table((self.mean if mean is None else mean)[some], float(self.noise[some.start]))


class Smoother:
    """
    Denoises maps on the public coordinates: posterior mode of m = base exp(f), f a Gaussian process, m seen with noise.

    Human density varies by factors, not by amounts, hence the logarithm; places near each other are alike, and each has
    something of its own. How much a map differs from its base the noisy sums tell: of a few spreads that is taken under
    which they are likeliest. Where noise is large a map is that of a quarter, or its base (docs/decisions.md).
    """

    def __init__(self, design: Design) -> None:
        apart = np.sqrt(((design.xy[:, None] - design.xy) ** 2).sum(axis=2))
        self.near = np.exp(-apart / (RANGE * design.near))

    def __call__(self, seen: Table, base: Floats, people: float) -> Floats:
        """Return shares (R,) that sum to 1."""
        # noise cannot make it nothing
        total = max(float(seen.mean.sum()), 2 * seen.noise * np.sqrt(len(base)), 1e-3)
        with one_thread():  # sums in one order on every machine (R5)
            found = [
                self.mode(seen.mean / total, (seen.noise / total) ** 2, base, spread, people * min(1.0, total))
                for spread in SPREADS
            ]
        m, _ = max(found, key=lambda mode: mode[1])
        return np.asarray(m / m.sum())

    def mode(self, sums: Floats, variance: float, base: Floats, spread: float, people: float) -> tuple[Floats, float]:
        """Return the map, and ln of the probability of what was seen, by Laplace's approximation around it."""
        from scipy.linalg import cho_factor, cho_solve

        K = spread * (self.near + OWN * np.eye(len(sums)))
        pull, f, m = np.zeros(len(sums)), np.zeros(len(sums)), base
        for _ in range(NEWTON):
            v = variance + STAY * m / people + 1e-12
            factor = cho_factor(K + np.diag(v / m**2))
            step = cho_solve(factor, f + (sums - m) / m) - pull
            change = K @ step
            before, share = ((sums - m) ** 2 / v).sum() + f @ pull, 1.0
            while share > CLOSE:  # as far as it leads up: where noise is large a whole step may lead beyond
                g, to = f + share * change, pull + share * step
                with np.errstate(over="ignore"):
                    if ((sums - base * np.exp(g)) ** 2 / v).sum() + g @ to < before:
                        f, pull, m = g, to, base * np.exp(g)
                        break
                share /= 2
            if share * np.abs(change).max() < CLOSE:
                break
        v = variance + STAY * m / people + 1e-12
        curve = 2 * np.log(np.diag(factor[0])).sum() - np.log(v / m**2).sum()
        return m, float(-0.5 * (((sums - m) ** 2 / v + np.log(v)).sum() + f @ pull + curve))


def clean_maps(sums: Sums) -> Floats:
    """Return (CLASSES, R) shares, where people use places in each way; all classes lean on the day as a whole."""
    R, smooth = sums.design.R, Smoother(sums.design)
    day = smooth(sums.map(CLASSES), np.full(R, 1 / R), max(sums.people, 1.0))
    return np.array([smooth(sums.map(c), day, sums.people) for c in range(CLASSES)])


def hazard(n: Floats) -> Floats:
    """Return the probability to leave after a slot, of each bin of lengths in which so many stays end."""
    width = 2.0 ** np.maximum(np.arange(n.shape[-1]) - 1, 0)
    longer = np.cumsum(n[..., ::-1], axis=-1)[..., ::-1] - n
    # stays that end within a bin are there for half of it
    return np.asarray(np.clip(n / np.maximum(width * longer + (width + 1) / 2 * n, 1e-12), 1e-4, 1.0))


def _peaks_and_rest(seen: Floats, noise: float) -> Floats:
    """Return shares of slots: peaks as they are, the rest smoothed over three hours, nothing where it is all noise."""
    peaks = np.where(seen > 4 * noise, seen, 0.0)
    rest = np.convolve(np.pad(seen - peaks, 4, mode="reflect"), np.full(9, 1 / 9), "valid")
    rest = np.maximum(rest - noise / 2, 0.0)  # of what is cut at 0 the mean is .4 of the noise
    out = peaks + (rest if rest.sum() > 2 * noise or not peaks.any() else 0.0) + 1e-9
    return np.asarray(out / out.sum())


def _ratio(wanted: Floats, found: Floats, prior: float) -> Floats:
    """Return by how much more often than found something should be; where little is known, by 1."""
    return np.asarray(np.clip((wanted + prior) / (found + prior), 0.3, 3.0))


def _back(again: Floats) -> Floats:
    """Return the log odds by class to come back, of visits, places and whether there is any."""
    runs, places, has = np.maximum(again.reshape(CLASSES, 3), 1e-6).T
    p = np.clip((runs - places) / np.maximum(runs - has, 1e-3), 0.02, 0.98)
    return np.asarray(np.log(p / (1 - p)))


def _moves(pace: Floats) -> tuple[float, float]:
    """Return the mean of moves a day, and their variance over its square."""
    x, p = np.arange(kernels.MOVES), pace[: kernels.MOVES] / max(pace[: kernels.MOVES].sum(), 1e-9)
    mean = max(float(p @ x), 1e-3)
    return mean, max(float(p @ x**2) - mean**2, 0.0) / mean**2


class Fit:
    """
    A law of classes and a ground on their way to the noisy sums.

    Both begin as the sums have them. In each round lives are drawn and described as people are; where a number is rarer
    among them than in the sums, its factor grows, by less where the noise is larger.
    """

    def __init__(self, sums: Sums) -> None:
        self.sums, self.design = sums, sums.design
        self.maps = clean_maps(sums)
        following, stays, ends = (sums.table(name) for name in ("next", "stays", "ends"))
        self.next = np.maximum(following.mean, 0.3 * following.noise).reshape(-1, STATES, STATES)
        self.stays = hazard(np.maximum(stays.mean, 0.3 * stays.noise).reshape(STATES, -1))
        self.begin, self.extent = (_peaks_and_rest(row, ends.noise) for row in ends.mean.reshape(2, SLOTS))
        hours = sums.table("hours")
        self.hours, self.unsure = hours.mean.reshape(2, HOURS, CLASSES), hours.noise
        self.leave, self.come = np.ones((2, STATES, HOURS)), np.ones((2, HOURS, STATES))
        self.back = _back(sums.table("again").mean)
        whole = sums.table("whole")
        _, active, instants = whole.mean / max(whole.mean[0], 1e-9)
        self.active = 1.0 if active > SEEN - 2 * whole.noise / max(whole.mean[0], 1e-9) else max(float(active), 0.02)
        self.instants = min(float(instants), 1.0)
        self.spread = 0.1  # variance of how readily people leave
        weekends = self.hours[1].sum() / max(self.hours.sum(), 1e-9)
        self.alike = 0 if weekends < RARE else 1 if weekends > 1 - RARE else -1  # kind of all days, -1: of both
        spans = sums.table("pace").mean[kernels.MOVES + kernels.PLACES :]
        self.days = min(SPANS[int(np.argmax(spans))], 14)  # of lives that the law is led by
        self.ground = self._new_ground()

    def _new_ground(self) -> life.Ground:
        """Return the ground with every place for each class, by the cleaned maps."""
        design, R = self.design, self.design.R
        corner, columns, height = grid_over(design.xy, 4 * design.near)
        self.square = square_of(design.xy, corner, columns, height)
        self.order = np.argsort(self.square, kind="stable")
        first = np.arange(CLASSES + 1) * R
        begin = np.searchsorted(self.square[self.order], np.arange(columns * height + 1))
        weight = self.maps[:, self.order].ravel()
        return life.Ground(
            design.xy, design.limits, np.tile(self.order, CLASSES), first,
            weight, np.append(0.0, np.cumsum(weight)), weight.copy(), np.append(0.0, np.cumsum(weight)),
            first[:-1, None] + begin, corner, columns, height,
            np.zeros((2, 2, CLASSES, life.BINS)), np.zeros(life.BINS), np.zeros(life.PACES - 1),
            np.zeros((TIES + 1, life.PACES)), np.zeros(0, np.int64), np.zeros(0),
        )  # fmt: skip

    def law(self) -> kernels.Law:
        """Return the law as it is."""
        first = self.hours[:, :, :PASSED] + 0.5 * self.unsure + 1e-9
        if self.alike >= 0:
            first = first[[self.alike] * 2]
        following = self.next[np.arange(HOURS) * len(self.next) // HOURS] * self.come[:, :, None, :]
        leave = np.clip(self.stays[None, :, None] * self.leave[:, :, :, None], 1e-5, 1.0)
        return kernels.Law(
            self.begin, self.extent, first / first.sum(2, keepdims=True), leave,
            following / following.sum(3, keepdims=True), 1 / (1 + np.exp(-self.back)), self.active,
            1 / self.spread if self.spread > 1e-3 else 0.0,
        )  # fmt: skip

    def fitted(self) -> "Fitted":
        """Return what lives are drawn from."""
        return Fitted(self.design, self.law(), self.ground, self.instants, self.alike)

    def round(self, turn: int, rng: np.random.Generator) -> None:
        """Draw lives, describe them as people are, and lead the law towards the sums; from PLACED on the ground too."""
        n, placed = max(LIVES // self.days, 500), turn >= PLACED
        day = rng.integers(0, 7, size=(n, 1)) + np.arange(self.days)
        fitted = self.fitted()
        kinds, key = fitted.kinds(day), rng.integers(0, 2**63, 2).astype(np.uint64)
        r, drawn = fitted.draw(kinds, key, np.arange(n), placed=placed)
        seen = np.asarray((r >= 0).any(axis=2))
        many = seen.sum(axis=1)  # days with a record, of which every life has one
        span = self.days - np.argmax(seen[:, ::-1], axis=1) - np.argmax(seen, axis=1)
        whole = np.column_stack([np.ones(n), many / span, np.zeros(n)])
        days = Days(r[seen], np.append(0, np.cumsum(many)), kinds[seen], whole)
        xy = None if placed else np.zeros((own_places(self.days) + SLOTS, 2))
        found = np.asarray(self.design.describe(days, drawn[seen], xy).sum(axis=0)).ravel() / n
        (self._lead_ground if placed else self._lead_law)(found, n)

    def _lead_law(self, found: Floats, n: int) -> None:
        """Move hours, stays, what comes next, coming back and the pace towards the sums."""
        tables = {name: (self.sums.table(name), self.sums.table(name, found).mean) for name in BLOCKS}
        (goal, noise), drawn = tables["hours"]
        for k in range(2):
            hours, other = goal.reshape(2, -1)[k], drawn.reshape(2, -1)[k]
            if hours.sum() > 0 and other.sum() > 0:
                scale = hours.sum() / other.sum()
                ratio = _ratio(hours, other * scale, noise + 0.3 * scale / n).reshape(HOURS, CLASSES)
                self.come[k, :, :CLASSES] *= ratio**0.5
                self.leave[k, :CLASSES] *= ratio.T**-0.35
        (goal, noise), drawn = tables["stays"]
        prior = 0.5 * noise + 0.5 / n
        change = hazard((goal + prior).reshape(STATES, -1)) / hazard((drawn + prior).reshape(STATES, -1))
        self.stays = np.clip(self.stays * np.clip(change, 0.5, 2.0) ** 0.5, 1e-4, 1.0)
        (goal, noise), drawn = tables["next"]
        self.next *= _ratio(goal, drawn, 0.7 * noise + 0.5 / n).reshape(self.next.shape) ** 0.5
        self.next /= self.next.sum((1, 2), keepdims=True)
        (goal, _), drawn = tables["pace"]
        (mean, scatter), (mean_drawn, scatter_drawn) = _moves(goal), _moves(drawn)
        self.spread = float(np.clip(self.spread + 0.3 * (scatter - scatter_drawn), 0.0, 1.5))
        self.leave *= np.clip(mean / mean_drawn, 0.5, 2.0) ** 0.3
        (goal, _), drawn = tables["again"]
        self.back = np.clip(self.back + 0.5 * np.clip(_back(goal) - _back(drawn), -1, 1), -5, 5)
        self.come, self.leave = np.clip(self.come, 1e-3, 1e3), np.clip(self.leave, 0.05, 20.0)

    def _lead_ground(self, found: Floats, n: int) -> None:
        """Move factors of distances and weights of places towards the sums and the cleaned maps."""
        (goal, noise), drawn = self.sums.table("far"), self.sums.table("far", found).mean
        prior = noise + 2.0 / n
        goal, drawn = (goal + prior).reshape(FAR, -1), (drawn + prior).reshape(FAR, -1)
        change = np.log(goal / goal.sum(1, keepdims=True)) - np.log(drawn / drawn.sum(1, keepdims=True))
        change = 0.6 * np.clip(change, -1, 1)
        anchor = self.ground.anchor + change[:-1].reshape(self.ground.anchor.shape)
        weight = self.ground.weight.reshape(CLASSES, -1).copy()
        for c in range(CLASSES):
            count = self.sums.map(c, found).mean
            wanted, count = n * self.maps[c], n * count / max(count.sum(), 1e-9)
            quarters = [np.bincount(self.square, x).astype(np.float64) for x in (wanted, count)]
            quarter = _ratio(quarters[0], quarters[1], SQUARE)[self.square]
            weight[c] *= ((_ratio(wanted, count, CELL) * quarter) ** 0.4)[self.order]
        self.ground = self.ground._replace(
            anchor=np.clip(anchor, -6, 6),
            step=np.clip(self.ground.step + change[-1], -6, 6),
            weight=weight.ravel(),
            total=np.append(0.0, np.cumsum(weight)),
        )


class Fitted(NamedTuple):
    """What lives are drawn from: a law, a ground, the share of records without length, the one kind of day or -1."""

    design: Design
    law: kernels.Law
    ground: life.Ground
    instants: float
    alike: int

    def kinds(self, day: Ints) -> Ints:
        """Return the kind of law of each day since 1970."""
        return np.full_like(day, self.alike) if self.alike >= 0 else weekend_of(day).astype(np.int64)

    def draw(
        self, kinds: Ints, key: NDArray[np.uint64], numbers: Ints, *, placed: bool = True
    ) -> tuple[Codes, NDArray[np.int8]]:
        """
        Return the lives with these numbers in slots (lives, days, SLOTS), and the classes of their slots.

        `kinds` are those of the days, of each life or of all alike. Without `placed` slots hold own places.
        """
        days = int(kinds.shape[-1])
        r = np.empty((len(numbers), days, SLOTS), dtype=np.int32)
        drawn = np.empty(r.shape, dtype=np.int8)
        kernels.draw_lives(
            self.law, self.ground, ROLE, np.ascontiguousarray(np.broadcast_to(kinds, (len(numbers), days))), key,
            numbers, SWEEPS, own_places(days), self.design.near, placed, r, drawn,
        )  # fmt: skip
        return r, drawn

    def records(self, kinds: Ints, key: NDArray[np.uint64], numbers: Ints) -> tuple[Ints, Ints, Ints, Codes]:
        """Return lives as records: user, start, end, place; a share of them without length."""
        r, _ = self.draw(kinds, key, numbers)
        flat, slots = r.reshape(len(r), -1), r.shape[1] * SLOTS
        new = np.ones(flat.shape, dtype=bool)
        if self.instants <= 0.5:  # where most records have no length, one in each slot; else a record for each stay
            new[:, 1:] = flat[:, 1:] != flat[:, :-1]
        at = np.flatnonzero(new)
        long = np.diff(np.append(at, flat.size))
        place = flat.ravel()[at]
        at, long, place = at[place >= 0], long[place >= 0], place[place >= 0]
        start = MONDAY * DAY + at % slots * SLOT
        rng = np.random.default_rng([*key.tolist(), int(numbers[0])])
        share = 1.0 if self.instants > 0.5 else self.instants * len(at) / max(int((long == 1).sum()), 1)
        brief = (long == 1) & (rng.random(len(at)) < share)
        start[brief] += rng.integers(0, SLOT, int(brief.sum()))
        return numbers[at // slots], start, np.asarray(np.where(brief, start, start + long * SLOT)), place


def own_places(days: int) -> int:
    """Return how many own places a life has at most."""
    return min(24 + 2 * days, 80)


def fit_law(sums: Sums, rng: np.random.Generator) -> Fitted:
    """Return the law and the ground whose lives do what the sums say."""
    fit = Fit(sums)
    for turn in range(ROUNDS):
        fit.round(turn, rng)
    return fit.fitted()


# ---- the release


def release_certified(
    seen: Observed,
    how: Certified,
    n: int | None,
    *,
    laboratory: bool,
    entropy: int,
    stages: Stages = at_once,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Visits, Certificate, Mechanism]:
    """
    Release `n` fakes, or as many as the noisy sum counts people; what is proven of them; and the sums without noise.

    The noisy sum is a stage of its own, `SUMS`, and kept before anything is made of it: no noise is drawn twice.
    """
    noise_rng, fit_rng, rng = (
        np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(i,))) for i in (1, 2, 3)
    )
    mechanism = Mechanism(seen, Design.of(seen.locations), how.eps, how.delta)
    below = from_generator(noise_rng) if laboratory else from_the_system
    y = stages(SUMS, lambda: noisy_sum(mechanism.sums(), mechanism.mu, below))
    # from here on nothing is looked at but y, the options and the public map
    sums = Sums.of(mechanism.design, y, 1 / mechanism.mu)
    if sums.people < people_needed(how.eps, how.delta):
        raise NotEnoughUsers(words_for_few(sums.people, how.eps, how.delta), code="E_EPS")
    fit = stages("law", lambda: fit_law(sums, fit_rng))
    number = max(1, round(sums.people)) if n is None else n
    key = rng.integers(0, 2**63, 2).astype(np.uint64)
    work = partial(fit.records, fit.kinds(MONDAY + np.arange(how.days)), key)
    blocks = [np.arange(a, min(a + BLOCK, number)) for a in range(0, number, BLOCK)]
    done = map_over(work, blocks, executor=executor, progress=progress, stages=stages, name="certified")
    user, start, end, place = (np.concatenate([block[j] for block in done]) for j in range(4))
    lives, user = np.unique(user, return_inverse=True)
    form = Form("events" if fit.instants > 0.5 else "visits")
    visits = Visits(user, start, end, place, seen.locations, users=range(len(lives)), tz=seen.tz, form=form)
    certificate = certificate_of(how.eps, how.delta, mechanism.design.cells)
    return visits, certificate.in_laboratory() if laboratory else certificate, mechanism
