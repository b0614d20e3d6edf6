"""
What fakes are good for: eight uses of location data, each *good*, *rough* or *not for this*.

Each use has a distance d in [0, 1] between two sets of days: the share of places, people, trips or stays that do not
match. It is taken on sets of one size, and averaged over random splits of the real people into halves A and B:

- *fakes*: d(A, fakes);
- *halves*: d(A, B), what other real people of the same data give;
- *same*: d(A, days of all real people), what the real data themselves give: nothing can be closer;
- *chance*: d(A, the same days with that destroyed which the use asks for), see `judge_uses`.

The verdict, by one rule for all uses and all data (docs/decisions.md), starts from

    real = min(halves, (same + chance) / 2)

what other real people give, or half way to chance where people differ so much that others are no help. With
excess = fakes - real and gap = chance - real, a use is

- *good* if excess <= min(GOOD, gap / 4): at most 10 in 100 more than real people, a quarter of the way to chance; and
  if fakes <= 1/2: more matches than does not;
- *rough* if excess <= min(ROUGH, gap / 2): at most 25 in 100 more, and nearer to real people than to chance; and if
  fakes <= 3/4, however few people there are to compare with;
- *not for this* otherwise;
- *cannot say* where not even the real data are told from chance (chance - same is at most 1 in 100, or 2 standard
  deviations over the splits) and fakes are at most 10 in 100 worse than either; or where an input is missing.

An excess of up to NOISE = 2 in 100 is nobody's loss: it is good as long as it is nearer to real people than to chance.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.data.slots import Traces, is_weekend
from elsewhere.data.visits import Codes, Floats, Ints, Locations
from elsewhere.errors import InvalidParameter
from elsewhere.evaluation.attack_base import plain
from elsewhere.evaluation.publishing.tables import on_one_map
from elsewhere.pool import put_on_map

GOOD_FOR, ROUGH_FOR, NOT_FOR, UNKNOWN = "good", "rough", "not for this", "cannot say"
GOOD, ROUGH = 0.10, 0.25  # largest excess over real people, as a share of places, people or trips
GOOD_WAY, ROUGH_WAY = 0.25, 0.5  # the same, as a share of the way from real people to chance
MOST_GOOD, MOST_ROUGH = 0.5, 0.75  # largest distance, whatever real people give
FAR_OFF = 1.5  # ratio of two means that a reader should know of
MOSTLY_FILLED = 0.5  # of the real slots: real stays are then what the filling made of them
NOISE = 0.02  # excess that nobody would notice
SPLITS = 20  # of the real people into halves
MOST_DAYS = 4_000  # of each side in a split; more are sampled
FEWEST_PEOPLE = 10  # five in each half: the figures of fewer would be those of single people
TOP = 10  # busiest places; half of the visited ones where they are fewer than 20
DEPTHS = (2, 5, 7)  # of the map cut in halves: 4 quarters, at most 32 neighbourhoods, at most 128 blocks


@dataclass(frozen=True)
class Use:
    """
    One use of the data, and whether the fakes are good for it.

    Parameters
    ----------
    id, title
        "flows_places" and "Flows between places".
    verdict
        "good", "rough", "not for this" or "cannot say".
    fakes, halves, same, chance
        Mean distance d over the splits, in [0, 1]; None where it cannot be measured.
    spread
        Standard deviation of `halves` over the splits.
    figure, beside
        What the fakes reach, and what two halves of the real people reach, in plain units.
    words
        Both in a sentence, and what chance gives; or why nothing can be said.

    """

    id: str
    title: str
    verdict: str
    fakes: float | None = None
    halves: float | None = None
    same: float | None = None
    chance: float | None = None
    spread: float | None = None
    figure: str = ""
    beside: str = ""
    words: str = ""

    @property
    def short(self) -> str:
        """Return the figure beside that of the real people, or why there is none."""
        return f"{self.figure}; between two halves of the real people {self.beside}" if self.figure else self.words


@dataclass(frozen=True, eq=False)
class Uses:
    """The eight uses in order, on how many people and days they rest, and notes."""

    uses: tuple[Use, ...]
    sizes: dict[str, int]
    notes: tuple[str, ...] = ()

    def __getitem__(self, use: str) -> Use:
        return {u.id: u for u in self.uses}[use]

    def __repr__(self) -> str:
        return f"Uses({', '.join(f'{u.id}: {u.verdict}' for u in self.uses)})"

    def to_dict(self) -> dict[str, Any]:
        """Return numbers by use (title, verdict, distances, figure, words), `sizes` and `notes`, ready for JSON."""
        by_id = {
            u.id: {name: plain(getattr(u, name)) for name in Use.__dataclass_fields__ if name != "id"}
            for u in self.uses
        }
        return {**by_id, "sizes": plain(self.sizes), "notes": list(self.notes)}

    def in_words(self) -> list[str]:
        """Return one line per use: the word, what it is about, and the figure behind it beside that of real people."""
        return [f"{u.verdict:<12}  {u.title}: {u.short}" for u in self.uses]


def judge_uses(real: Traces | ArrayLike, fakes: Any, *, filled: float = 0.0, rng: np.random.Generator) -> Uses:
    """
    Say what fakes are good for, beside what one half of the real people is for the other.

    | use | distance d(A, B) | destroyed in B' |
    |---|---|---|
    | places | share of A's 10 busiest places that are not among B's (`places_lost`) | each day at random places |
    | hours | people in another block, mean over the hours (`misplaced`) | each day at random places |
    | trips | Kolmogorov-Smirnov distance of trip lengths (`largest_gap`) | each day at random places |
    | dwell | the same of lengths of stays | slots of each day in random order |
    | flows | trips per day that do not match, by origin and destination: Bray-Curtis (`unmatched`) | destinations exchanged among all trips |
    | weekdays | the same by hour and kind of day, weekday or weekend | kinds of day exchanged among all days |

    Flows are taken between quarters (the map cut in half twice, at the median of real slots), between up to 32
    neighbourhoods (cut five times) and between places; hours are judged on up to 128 blocks (cut seven times), or on
    places where they have no coordinates.

    Parameters
    ----------
    real
        The real people's days: `Traces`, or an (N, L) array of places. Splits keep all days of a person together.
        Where neither they nor `fakes` have coordinates, trip lengths and flows between zones cannot be judged.
    fakes
        `Traces`, what `generate_fakes` returns, or an (F, L) array; on the map and clock of `real`.
    filled
        Share of the slots of `real` that had no fix and were filled (`Preparation.share_filled`). If it is more than
        half, the words on stays say that real ones are as filled.
    rng
        Draws splits and samples.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> town = ew.simulate_town(users=200, locations=60, rng=np.random.default_rng(1)).traces
    >>> judge_uses(town, town, rng=np.random.default_rng(2))["dwell"].verdict
    'good'
    >>> random = np.random.default_rng(3).integers(60, size=town.r.shape)
    >>> judge_uses(town, random, rng=np.random.default_rng(2))["dwell"].verdict
    'not for this'

    """  # noqa: E501 (the table)
    if not isinstance(rng, np.random.Generator):
        raise InvalidParameter(f"`rng` must be a `numpy.random.Generator`, got {type(rng).__name__}.", parameter="rng")
    synthetic = put_on_map(fakes, real)
    synthetic = synthetic if isinstance(synthetic, Traces) else getattr(synthetic, "r", synthetic)
    sides = on_one_map({"real": real, "fakes": synthetic})
    train = sides["real"]
    if isinstance(synthetic, Traces) and (synthetic.step_minutes, synthetic.start) != (
        train.step_minutes,
        train.start,
    ):
        raise InvalidParameter(
            f"`fakes` have slots of {synthetic.step_minutes:g} minutes from {synthetic.start}, `real` of "
            f"{train.step_minutes:g} from {train.start}: they must be on one clock.",
            code="E_MISMATCH",
            parameter="fakes",
        )
    plan = Plan.of(train)
    dates = (train.dates, synthetic.dates if isinstance(synthetic, Traces) else None)
    weekends = [None if d is None else is_weekend(np.asarray(d)) for d in dates]
    people, fake = Days(train.r, weekends[0], plan), Days(sides["fakes"].r, weekends[1], plan)
    sizes = {
        "people": train.U,
        "days": len(train),
        "fakes": len(fake.r),
        "places": plan.R,
        "splits": SPLITS,
    }
    few = f"Of {train.U} people no halves can be compared; {FEWEST_PEOPLE} are needed."
    lacking = {m.id: few if train.U < FEWEST_PEOPLE else missing_input(m, people, fake, train.user) for m in MEASURES}
    distances: dict[str, list[list[float]]] = {m.id: [] for m in MEASURES if not lacking[m.id]}
    for child in rng.spawn(SPLITS if distances else 0):
        half, other, sample, mixed = _split(people, fake, train.user, train.U, child)
        for m in MEASURES:
            if m.id in distances:
                distances[m.id].append([m.d(half, days) for days in (sample, other, mixed, m.destroy(mixed, child))])
    return Uses(
        tuple(
            _judge_use(m, people, fake, distances[m.id], filled)
            if m.id in distances
            else Use(m.id, m.title, UNKNOWN, words=lacking[m.id])
            for m in MEASURES
        ),
        sizes,
    )


def verdict(fakes: float, halves: float, same: float, chance: float, spread: float = 0.0) -> str:
    """
    Return the word for a use, by the rule of this file; `spread` is the standard deviation of chance - same.

    Examples
    --------
    >>> [verdict(d, 0.1, 0.05, 0.6) for d in (0.1, 0.2, 0.21, 0.35, 0.36)]
    ['good', 'good', 'rough', 'rough', 'not for this']
    >>> verdict(0.1, 0.6, 0.60, 0.61), verdict(0.55, 0.55, 0.4, 0.9)
    ('cannot say', 'rough')

    """
    slack = 1e-9  # a bound is reached by counts, and counts have no last bit
    if not chance - same > max(NOISE / 2, 2 * spread) + slack:
        return NOT_FOR if fakes > max(halves, chance) + GOOD + slack else UNKNOWN
    real = min(halves, (same + chance) / 2)
    excess, gap = fakes - real, chance - real
    rough = min(ROUGH, ROUGH_WAY * gap)
    good = max(min(GOOD, GOOD_WAY * gap), min(NOISE, rough))
    if excess <= good + slack and fakes <= MOST_GOOD + slack:
        return GOOD_FOR
    return ROUGH_FOR if excess <= rough + slack and fakes <= MOST_ROUGH + slack else NOT_FOR


def places_lost(a: ArrayLike, b: ArrayLike, top: int) -> float:
    """
    Return the share of the `top` busiest places of `a` that are not among those of `b`; counts of visits per place.

    Codes that tie for the last ranks share them: with 3 places for 1 rank each is in by a third.

    Examples
    --------
    >>> places_lost([9, 8, 1, 0], [9, 0, 7, 1], 2), places_lost([5, 5, 5, 1], [5, 5, 5, 1], 2)
    (0.5, 0.0)

    """
    return 1 - float(np.minimum(_among_top(np.asarray(a), top), _among_top(np.asarray(b), top)).sum()) / top


def _among_top(visits: Ints, top: int) -> Floats:
    last = np.sort(visits)[-top]
    above, tied = visits > last, visits == last
    return np.where(above, 1.0, np.where(tied, (top - above.sum()) / tied.sum(), 0.0))


def misplaced(a: Floats, b: Floats) -> float:
    """
    Return the share of people who are elsewhere: total variation of each row (an hour), weighted by the slots of `a`.

    `a`, `b` (hours, zones) count slots. An hour of which either knows nothing is left out.

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
    Return the Kolmogorov-Smirnov distance: how far shares up to a length are apart, at the length where it is most.

    1 if one of them is empty, 0 if both are.

    Examples
    --------
    >>> largest_gap(np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 4.0, 5.0, 6.0]))
    0.5

    """
    if len(x) == 0 or len(y) == 0:
        return float(len(x) != len(y))
    at = np.concatenate([x, y])
    up_to = [np.searchsorted(np.sort(side), at, side="right") / len(side) for side in (x, y)]
    return float(np.abs(up_to[0] - up_to[1]).max())


def unmatched(a: Ints, b: Ints, weight_a: ArrayLike = 1.0, weight_b: ArrayLike = 1.0) -> float:
    """
    Return the share of trips that have no counterpart: Bray-Curtis, sum |n_a - n_b| / sum (n_a + n_b) over all kinds.

    `a`, `b` hold the kind of each trip, as a number; a trip counts by its weight. 0 if nobody moves on either side.

    Examples
    --------
    >>> unmatched(np.array([7, 7, 8]), np.array([7, 9, 9]))
    0.6666666666666666

    """
    keys, entry = np.unique(np.concatenate([a, b]), return_inverse=True)
    wa, wb = np.broadcast_to(weight_a, a.shape), np.broadcast_to(weight_b, b.shape)
    n_a = np.bincount(entry[: len(a)], wa, len(keys))
    n_b = np.bincount(entry[len(a) :], wb, len(keys))
    total = float(n_a.sum() + n_b.sum())
    return float(np.abs(n_a - n_b).sum()) / total if total > 0 else 0.0


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
            # where nobody is, the extent of the map says nothing
            there = inside[weight[inside] > 0]
            if len(there) < 2:
                continue
            extent = np.ptp(xy[there], axis=0)
            axis = int(extent[1] > extent[0])
            at, entry = np.unique(xy[there, axis], return_inverse=True)
            if len(at) < 2:
                continue
            below = np.cumsum(np.bincount(entry, weight[there]))[:-1]
            border = int(np.argmin(np.abs(below - weight[there].sum() / 2)))
            finer[inside[xy[inside, axis] >= at[border + 1]]] += 1
        label = finer
    return np.asarray(np.unique(label, return_inverse=True)[1], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Plan:
    """The map and clock on which days are compared: hours of slots, zones of places, how many places are busiest."""

    locations: Locations = field(repr=False)
    hour: Ints = field(repr=False)
    step_minutes: float
    top: int
    zones: tuple[Ints, ...] = field(repr=False)
    block: Ints = field(repr=False)  # of each place; the place itself without coordinates
    R: int
    Z: int  # blocks

    @staticmethod
    def of(real: Traces) -> "Plan":
        """Cut the map by where the real people are."""
        visits = np.bincount(real.r[real.r >= 0], minlength=real.R)
        levels: tuple[Ints, ...] = ()
        if real.locations.has_coordinates:
            xy = real.locations.planar()
            levels = tuple(zones(xy, visits.astype(np.float64), depth) for depth in DEPTHS)
        hour = (real.minutes() // 60).astype(np.int64)
        block = levels[-1] if levels else np.arange(real.R)
        top = min(TOP, int(np.count_nonzero(visits)) // 2)
        return Plan(real.locations, hour, real.step_minutes, top, levels, block, real.R, int(block.max()) + 1)


@dataclass(frozen=True, eq=False)
class Days:
    """A set of days on one plan, and what is counted in them; missing slots (-1) count for nothing."""

    r: Codes = field(repr=False)
    weekend: NDArray[np.bool_] | None = field(repr=False)
    plan: Plan = field(repr=False)

    def choose(self, rows: Ints) -> "Days":
        """Return some of the days."""
        return Days(self.r[rows], None if self.weekend is None else self.weekend[rows], self.plan)

    @cached_property
    def _begins(self) -> NDArray[np.bool_]:
        """Return the slots at which a stay begins: a maximal run of one place."""
        begins = self.r >= 0
        begins[:, 1:] &= self.r[:, 1:] != self.r[:, :-1]
        return begins

    @cached_property
    def visits(self) -> Ints:
        """Return (R,) stays at each place, however long."""
        return np.bincount(self.r[self._begins], minlength=self.plan.R)

    @cached_property
    def by_hour(self) -> Floats:
        """Return (24, zones) slots of each hour in each block."""
        known, Z = self.r >= 0, self.plan.Z
        hour = np.broadcast_to(self.plan.hour, self.r.shape)[known]
        key = hour * Z + self.plan.block[self.r[known]]
        return np.bincount(key, minlength=24 * Z).reshape(24, Z).astype(np.float64)

    @cached_property
    def _moved(self) -> NDArray[np.bool_]:
        before, after = self.r[:, :-1], self.r[:, 1:]
        return np.asarray((before >= 0) & (after >= 0) & (before != after))

    @cached_property
    def trips(self) -> tuple[Ints, Ints]:
        """Return the origin and destination of each move from one slot to the next, both known."""
        return self.r[:, :-1][self._moved].astype(np.int64), self.r[:, 1:][self._moved].astype(np.int64)

    @cached_property
    def lengths(self) -> Floats:
        """Return the kilometres of each trip, to the millimetre: the last bit makes no other length."""
        return np.round(self.plan.locations.distance(*self.trips), 6)

    @cached_property
    def stays(self) -> Floats:
        """Return the minutes of each stay."""
        # a stay ends where the next one begins, a slot is missing, or the day is over
        stops = np.ones((len(self.r), self.r.shape[1] + 1), dtype=bool)
        stops[:, :-1] = self._begins | (self.r < 0)
        at = np.flatnonzero(stops)
        starts = np.pad(self._begins, ((0, 0), (0, 1))).ravel()[at]
        return np.asarray(np.diff(at, append=at[-1])[starts] * self.plan.step_minutes)

    @cached_property
    def rhythm(self) -> tuple[Ints, Floats]:
        """Return the hour and kind of day of each trip, and its weight: trips are counted per day of that kind."""
        assert self.weekend is not None  # noqa: S101 - asked of days with dates only
        row, slot = np.nonzero(self._moved)
        kind = self.weekend.astype(np.int64)
        days = np.maximum(1, np.bincount(kind, minlength=2))
        return kind[row] * 24 + self.plan.hour[slot], 1.0 / days[kind[row]]


def _split(people: Days, fakes: Days, user: Ints, U: int, rng: np.random.Generator) -> tuple[Days, Days, Days, Days]:
    """Draw two disjoint halves of the real people, fakes, and days of all real people: as many of each."""
    first = np.zeros(U, dtype=bool)
    first[rng.permutation(U)[: U // 2]] = True
    inside = first[user]
    halves = [np.flatnonzero(inside), np.flatnonzero(~inside)]
    n = min(*map(len, halves), len(fakes.r), MOST_DAYS)
    one, two = (people.choose(rng.choice(half, n, replace=False)) for half in halves)
    sample, noise = (days.choose(rng.choice(len(days.r), n, replace=False)) for days in (fakes, people))
    return one, two, sample, noise


def _at_random_places(days: Days, rng: np.random.Generator) -> Days:
    """Exchange the places of each day for random ones of those that are visited; moves and stays as they were."""
    places = np.flatnonzero(days.visits)
    position = np.zeros(days.plan.R, dtype=np.int64)
    position[places] = rng.permutation(len(places))
    order = rng.permutation(places)
    shift = rng.integers(len(places), size=(len(days.r), 1))
    return replace(days, r=np.where(days.r >= 0, order[(position[days.r] + shift) % len(places)], -1))


def _in_random_order(days: Days, rng: np.random.Generator) -> Days:
    """Put the slots of each day in random order: places and time at each as they were."""
    return replace(days, r=rng.permuted(days.r, axis=1))


def _on_random_days(days: Days, rng: np.random.Generator) -> Days:
    """Exchange weekdays and weekend days."""
    return replace(days, weekend=None if days.weekend is None else rng.permutation(days.weekend))


def _to_random_destinations(days: Days, rng: np.random.Generator) -> Days:
    """Exchange the destinations of all trips: how many leave and reach each place as it was."""
    out, (origin, target) = replace(days), days.trips
    out.__dict__["trips"] = origin, rng.permutation(target)  # what `cached_property` would have counted
    return out


@dataclass(frozen=True)
class Measure:
    """One use: its distance `d`, how to destroy what it asks for, inputs it needs (`missing_input`), words for d."""

    id: str
    title: str
    d: Callable[[Days, Days], float]
    destroy: Callable[[Days, np.random.Generator], Days]
    needs: tuple[str, ...]
    words: str
    short: str


def _flow_distance(level: int | None) -> Callable[[Days, Days], float]:
    def kinds(days: Days) -> Ints:
        origin, target = days.trips
        zone = np.arange(days.plan.R) if level is None else days.plan.zones[level]
        return np.asarray(zone[origin] * days.plan.R + zone[target])

    return lambda a, b: unmatched(kinds(a), kinds(b), 1 / len(a.r), 1 / len(b.r))


def _rhythm_distance(a: Days, b: Days) -> float:
    (kind_a, weight_a), (kind_b, weight_b) = a.rhythm, b.rhythm
    return unmatched(kind_a, kind_b, weight_a, weight_b)


def missing_input(measure: Measure, real: Days, fakes: Days, user: Ints) -> str:
    """Return which input a use lacks, in a sentence; "" if it has all. `user` is the number of each real day's user."""
    plan, needs = real.plan, measure.needs
    if "places" in needs and plan.top < 2:
        return "The real people visit fewer than 4 places."
    if "hours" in needs and len(np.unique(plan.hour)) < 2:
        return "All slots are in one hour of the day."
    if "map" in needs and not plan.zones:
        return "The places have no coordinates."
    if "map" in needs and not plan.zones[0].any():
        return "All real people are at one point."
    if "dates" in needs:
        if real.weekend is None or fakes.weekend is None:
            return f"The {'real days' if real.weekend is None else 'fakes'} carry no dates."
        people = [len(np.unique(user[real.weekend == kind])) for kind in (False, True)]
        if min(people) == 0:
            return f"All real days are {'weekdays' if people[0] else 'weekend days'}."
        if min(people) < FEWEST_PEOPLE:
            kind = "weekday" if people[0] < people[1] else "weekend day"
            return f"Fewer than {FEWEST_PEOPLE} real people have a {kind}."  # no number of few people in a report
    if "trips" in needs and len(real.trips[0]) == 0:
        return "None of the real people moves."
    return ""


MEDIANS = {"trips": ("lengths", ".1f", "km"), "dwell": ("stays", ".0f", "minutes")}  # sample, format, unit
MEASURES = (
    Measure(
        "places",
        "Busiest places",
        lambda a, b: places_lost(a.visits, b.visits, a.plan.top),
        _at_random_places,
        ("places",),
        "of the {} busiest places are missing",
        "of {} missing",
    ),
    Measure(
        "hours",
        "Where people are, by hour",
        lambda a, b: misplaced(a.by_hour, b.by_hour),
        _at_random_places,
        ("hours",),
        "of 100 people are in another {} than real people are at that hour",
        "of 100 people elsewhere",
    ),
    Measure(
        "trips",
        "Lengths of trips",
        lambda a, b: largest_gap(a.lengths, b.lengths),
        _at_random_places,
        ("map", "trips"),
        "of 100 trips are too long or too short",
        "of 100 trips of the wrong length",
    ),
    Measure(
        "dwell",
        "Lengths of stays",
        lambda a, b: largest_gap(a.stays, b.stays),
        _in_random_order,
        ("trips",),
        "of 100 stays are too long or too short",
        "of 100 stays of the wrong length",
    ),
    *(
        Measure(
            f"flows_{name}",
            f"Flows between {words}",
            _flow_distance(level),
            _to_random_destinations,
            ("trips",) if level is None else ("map", "trips"),
            f"of 100 trips between {words} have no counterpart",
            "of 100 trips unmatched",
        )
        for name, words, level in (
            ("quarters", "quarters", 0),
            ("neighbourhoods", "neighbourhoods", 1),
            ("places", "single places", None),
        )
    ),
    Measure(
        "weekdays",
        "Weekdays and weekends",
        _rhythm_distance,
        _on_random_days,
        ("dates", "trips"),
        "of 100 trips are at another hour or on another kind of day",
        "of 100 trips at another hour or kind of day",
    ),
)


def _judge_use(m: Measure, real: Days, fakes: Days, distances: list[list[float]], filled: float) -> Use:
    """Return the verdict on the means over the splits, and its words."""
    values = np.array(distances)
    ours_mean, halves, same, chance = (float(v) for v in values.mean(axis=0))
    word = verdict(ours_mean, halves, same, chance, float((values[:, 3] - values[:, 2]).std(ddof=1)))
    spread = float(values[:, 1].std(ddof=1))
    top = real.plan.top
    of = top if m.id == "places" else 100
    ours, theirs, random = (f"{of * d:.{int(of < 100)}f}".removesuffix(".0") for d in (ours_mean, halves, chance))
    about = m.words.format(top if m.id == "places" else "part of the map" if real.plan.zones else "place")
    words = f"{ours} {about}; between two halves of the real people {theirs}, by chance {random}."
    if m.id in MEDIANS:
        sample, form, unit = MEDIANS[m.id]
        medians = [
            f"{np.median(x):{form}} {unit}" if len(x) else "nothing, for want of trips"
            for x in (getattr(fakes, sample), getattr(real, sample))
        ]
        words = f"Half are longer than {medians[0]}, in the real data than {medians[1]}; {words}"
        means = [float(x.mean()) if len(x) else 0.0 for x in (getattr(fakes, sample), getattr(real, sample))]
        if max(means) > FAR_OFF * min(means):  # a few very long ones: the shares of all lengths do not show them
            words += f" The mean is far off: {means[0]:{form}} {unit}, in the real data {means[1]:{form}} {unit}."
    if m.id == "dwell" and filled > MOSTLY_FILLED:
        remark = f"real stays as filled: {100 * filled:.0f} % of the slots had no fix"
        theirs, words = f"{theirs} ({remark})", f"{words} {remark[:1].upper()}{remark[1:]}."
    if word == UNKNOWN:
        words = f"Not even the real data are told from chance: {words}"
    return Use(
        m.id, m.title, word, ours_mean, halves, same, chance, spread, f"{ours} {m.short.format(top)}", theirs, words
    )
