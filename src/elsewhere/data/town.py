"""
Simulate a town of any size: people of different habits live in it by the clock.

The town is a disc of cells, one place each: arteries, a centre of workplaces, shops and leisure, homes around it.
Everybody has a home, mostly an anchor (workplace, school ...), and a few favourite places near them. A habit is a
choice among kinds of day; a kind of day is a list of activities; trips between them lead along roads and take time.
The numbers are in town.toml.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from elsewhere.data import _data_kernels as kernels
from elsewhere.data.slots import MINUTES_PER_DAY, Traces
from elsewhere.data.visits import EARTH_RADIUS_KM, Codes, Floats, Ints, Locations, Visits
from elsewhere.errors import InvalidParameter, require_rng, require_whole

# open sea: no trace of an example leads to somebody's real door
CENTRE_LAT, CENTRE_LON = 46.0, -12.0
FIRST_DAY = np.datetime64("2024-03-04")  # a Monday
RADIUS_KM_AT_400 = 12.0
STEP_MINUTES = 20
BLOCK = 1 << 20  # random numbers held at a time
TABLES = tomllib.loads(Path(__file__).with_name("town.toml").read_text())


class PlaceClass(NamedTuple):
    """Share of all places; how far from the centre (in radii; 0: along the arteries); how unequal in popularity."""

    share: float
    spread: float
    uneven: float


CLASSES = {name: PlaceClass(*row) for name, row in TABLES["classes"].items()}


class Keep(NamedTuple):
    """
    `n` places of class `kind` that a person keeps going back to.

    They lie about `reach` km from a point: the home (or the anchor), drawn towards the centre until `pull` of its
    distance is left. Each purpose has its own popularity of places: one bar is full at noon, another at night.
    """

    kind: str
    n: int
    around: str
    pull: float
    reach: float


ANCHORS = {name: Keep(*row) for name, row in TABLES["anchors"].items()}
KEEPS = {name: Keep(*row) for name, row in TABLES["keeps"].items()}
WISHES = ANCHORS | KEEPS
PLACES_KEPT = ("home", "anchor", *(name for name, keep in KEEPS.items() for _ in range(keep.n)))
DRAWS_PER_PERSON = 5 + 3 * (len(PLACES_KEPT) - 1)


class Activity(NamedTuple):
    """With probability `chance` be at `where` at `hour`, give or take `spread`, and stay for about `hours`."""

    where: str
    chance: float
    hour: float
    spread: float
    hours: float


KINDS_OF_DAY = {kind: [Activity(*row) for row in rows] for kind, rows in TABLES["days"].items()}
DRAWS_PER_DAY = 1 + kernels.DRAWS_PER_ACTIVITY * max(map(len, KINDS_OF_DAY.values()))


class Habit(NamedTuple):
    """Share of the people, their anchor, their kinds of day: from Monday to Friday, on Saturday, on Sunday."""

    share: float
    anchor: str
    days: list[dict[str, float]]


HABITS = {name: Habit(**table) for name, table in TABLES["habits"].items()}


@dataclass(frozen=True, eq=False)
class Town:
    """Simulated traces; `truth` (R,) and `habit` (U,) number the class of each place and the habit of each user."""

    traces: Traces
    truth: Ints = field(repr=False)
    habit: Ints = field(repr=False)
    class_names: tuple[str, ...] = tuple(CLASSES)
    habit_names: tuple[str, ...] = tuple(HABITS)

    @property
    def visits(self) -> Visits:
        """Return what the people did as visits."""
        return self.traces.visits()


def simulate_town(*, users: int, days: int = 1, locations: int = 400, rng: np.random.Generator) -> Town:
    """
    Simulate a town and its people, `days` days of each, beginning on a Monday.

    The same `rng` gives the same bytes. The town depends on `locations` alone, and people are drawn one after the
    other: the first users of a larger town are the users of the smaller one.

    Parameters
    ----------
    users, days
        Rows are sorted by user, then by day; users are labelled 0, 1, ...
    locations
        Number of places, at least one of each class; the more, the finer the map.
    rng
        Where all chance comes from.

    Examples
    --------
    >>> import numpy as np
    >>> import elsewhere as ew
    >>> town = ew.simulate_town(users=10, days=2, rng=np.random.default_rng(1))
    >>> town.traces
    Traces(10 users, 20 rows of 72 slots, 400 places)
    >>> town.class_names[town.truth[town.traces.r[0, 9]]]  # at three in the morning
    'home'

    """
    U, D = require_whole("users", users, 1), require_whole("days", days, 1)
    R = require_whole("locations", locations, len(CLASSES))
    require_rng(rng)
    L = MINUTES_PER_DAY // STEP_MINUTES
    try:
        r = np.empty((U, D * L), dtype=np.int32)
    except (MemoryError, ValueError):
        raise InvalidParameter(f"`users` x `days` = {U} x {D} do not fit in memory.") from None
    habit = np.empty(U, dtype=np.int64)
    ground = _lay_out(R, rng)
    diaries = _diaries()
    draws = DRAWS_PER_PERSON + (D + 1) * DRAWS_PER_DAY
    size = max(1, BLOCK // draws)
    for first in range(0, U, size):
        block = slice(first, min(first + size, U))
        # one call, uniform numbers only: a block takes from the stream what its people would have taken one by one
        u = rng.random((block.stop - first, draws))
        people = _settle(ground, u[:, :DRAWS_PER_PERSON])
        chance = np.ascontiguousarray(u[:, DRAWS_PER_PERSON:]).reshape(len(u), D + 1, DRAWS_PER_DAY)
        kernels.live(ground.streets, diaries, people, chance, float(STEP_MINUTES), r[block])
        habit[block] = people.habit
    for array in (r, ground.truth, habit):
        array.setflags(write=False)
    east, north = np.degrees(ground.streets.xy / EARTH_RADIUS_KM).T
    traces = Traces(
        r.reshape(U * D, L),
        Locations(lat=CENTRE_LAT + north, lon=CENTRE_LON + east / np.cos(np.radians(CENTRE_LAT))),
        users=np.repeat(np.arange(U), D).tolist(),
        dates=np.tile(FIRST_DAY + np.arange(D), U),
        step_minutes=STEP_MINUTES,
    )
    return Town(traces, ground.truth, habit)


class Ground(NamedTuple):
    """
    The town without its people.

    `nearby[purpose]` holds, for each of the G * G cells of the map, the k nearest places that serve the purpose and the
    cumulative shares of their popularity; `inhabitants` the cumulative share of the people that live at each place.
    """

    truth: Ints
    streets: kernels.Streets
    nearby: dict[str, tuple[Codes, Floats]]
    inhabitants: Floats


def _lay_out(R: int, rng: np.random.Generator) -> Ground:
    """Return the R cells nearest to the centre, the class of each, and the way about town."""
    from scipy.spatial import cKDTree

    half = int(np.ceil(np.sqrt(R / np.pi)))
    side = np.arange(-half, half + 1)
    cells = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    at = cells[np.sort(np.argsort(np.hypot(*cells.T), kind="stable")[:R])]
    # more places are a larger town, and a finer map of it
    cell = RADIUS_KM_AT_400 * (R / 400) ** 0.25 / np.sqrt(R / np.pi)
    xy = cell * (at + rng.uniform(-0.3, 0.3, (R, 2)))
    truth = _zone(at, rng)
    nearest: dict[str, Codes] = {}
    for c, name in enumerate(CLASSES):
        mine = np.flatnonzero(truth == c)
        _, order = cKDTree(xy[mine]).query(cell * cells, k=np.arange(1, min(8, len(mine)) + 1))
        nearest[name] = mine[order].astype(np.int32)
    nearby: dict[str, tuple[Codes, Floats]] = {}
    for purpose, wish in WISHES.items():
        popularity = np.exp(CLASSES[wish.kind].uneven * rng.standard_normal(R))
        weight = np.cumsum(popularity[nearest[wish.kind]], axis=1)
        nearby[purpose] = nearest[wish.kind], weight / weight[:, -1:]
    road = np.ascontiguousarray(nearest["road"][:, 0]).reshape(len(side), len(side))
    homes = truth == list(CLASSES).index("home")
    inhabitants = np.cumsum(homes * np.exp(CLASSES["home"].uneven * rng.standard_normal(R)))
    return Ground(truth, kernels.Streets(xy, road, float(cell)), nearby, inhabitants / inhabitants[-1])


def _zone(at: Ints, rng: np.random.Generator) -> Ints:
    """Return the class of each cell: roads on a grid of arteries, the others more or less close to the centre."""
    R = len(at)
    number = 1 + np.array([c.share * (R - len(CLASSES)) for c in CLASSES.values()]).astype(np.int64)
    number[list(CLASSES).index("home")] += R - number.sum()
    off_artery = np.abs((at + 4) % 8 - 4).min(axis=1)
    off_centre = np.hypot(*at.T) / np.hypot(*at.T).max()
    truth = np.full(R, -1, dtype=np.int64)
    for c, (_, spread, _) in sorted(enumerate(CLASSES.values()), key=lambda item: item[1].spread):
        # Gumbel noise: cells drawn without replacement, with weight exp(-distance from the centre / spread)
        far = off_artery + rng.random(R) if spread == 0 else off_centre / spread + rng.gumbel(size=R)
        far[truth >= 0] = np.inf
        truth[np.argsort(far, kind="stable")[: number[c]]] = c
    return truth


def _settle(ground: Ground, u: Floats) -> kernels.People:
    """Return habit, temper, home, anchor and favourite places of n people from numbers (n, DRAWS_PER_PERSON)."""
    habit = np.searchsorted(np.cumsum([h.share for h in HABITS.values()])[:-1], u[:, 0], side="right")
    keep = np.empty((len(u), len(PLACES_KEPT)), dtype=np.int32)
    keep[:, 0] = np.searchsorted(ground.inhabitants, u[:, 1], side="right")
    for h, person in enumerate(HABITS.values()):
        who = habit == h
        keep[who, 1] = _choose(ground, person.anchor, keep[who], u[who, 5:8])
    for f, name in enumerate(PLACES_KEPT[2:], start=2):
        keep[:, f] = _choose(ground, name, keep, u[:, 2 + 3 * f : 5 + 3 * f])
    late = np.sqrt(12) * (u[:, 2] - 0.5)
    return kernels.People(habit, keep, late, 0.5 + u[:, 3], 2.2 + 2.8 * u[:, 4] ** 2)


def _choose(ground: Ground, purpose: str, keep: Codes, u: Floats) -> Codes:
    """Return a place for a purpose, by popularity among those nearest to a point at an exponential distance."""
    wish = WISHES[purpose]
    origin = wish.pull * ground.streets.xy[keep[:, PLACES_KEPT.index(wish.around)]]
    distance, angle = -wish.reach * np.log1p(-u[:, 0]), 2 * np.pi * u[:, 1]
    point = origin + distance[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    G = len(ground.streets.road)
    i, j = np.clip(np.rint(point / ground.streets.cell).astype(np.int64) + G // 2, 0, G - 1).T
    place, cdf = (table[i * G + j] for table in ground.nearby[purpose])
    return np.asarray(place[np.arange(len(u)), (u[:, 2:] >= cdf).sum(axis=1)])


def _diaries() -> kernels.Diaries:
    """Return the tables above as arrays, hours as minutes."""
    activities = [a for kind in KINDS_OF_DAY.values() for a in kind]
    share = np.array([[[part.get(kind, 0) for kind in KINDS_OF_DAY] for part in h.days] for h in HABITS.values()])
    cdf = np.cumsum(share, axis=-1)
    hour, spread, hours = (60 * np.array(column) for column in list(zip(*activities, strict=True))[2:])
    return kernels.Diaries(
        cdf / cdf[..., -1:],
        np.cumsum([0, *map(len, KINDS_OF_DAY.values())]),
        np.array([PLACES_KEPT.index(a.where) for a in activities]),
        np.array([PLACES_KEPT.count(a.where) for a in activities]),
        np.array([a.chance for a in activities]),
        hour,
        spread,
        hours,
    )
