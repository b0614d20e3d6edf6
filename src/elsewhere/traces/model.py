"""
Define what every other room receives: `Locations`, `Periods`, `Evidence`, `Traces`, and the days of `People`.

All of them are frozen and checked once, where they are made; after that they are trusted. Points of the globe are
also used as (n, 3) kilometres from its centre: straight distances between them equal the arc within 1 cm at 20 km,
without a seam at the antimeridian or at the poles.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta, timezone, tzinfo
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.errors import InvalidParameter, InvalidTraces, require_between, require_whole
from elsewhere.sorting import count_users

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.int32]
Mask = NDArray[np.bool_]
ASKED = 200  # points whose zone is looked up: one zone is wanted, not a map of them
DAYS = NDArray[np.datetime64]


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only array with these values."""
    # a private copy: what the caller does to the own array afterwards must not change this one
    array = array.copy() if array.flags.writeable else array
    array.setflags(write=False)
    return array


MINUTES_PER_DAY = 1440


@dataclass(frozen=True)
class Periods:
    """
    The partition of the local day into T periods, as hour bounds 0 = b_0 < b_1 < ... < b_T = 24 (E24).

    `Periods.of(4)` is four equal parts: night 0-6, morning 6-12, afternoon 12-18, evening 18-24.
    """

    bounds: tuple[float, ...]
    T: int = field(init=False, repr=False, compare=False)  # number of periods

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "bounds", tuple(float(b) for b in self.bounds))
            rising = all(a < b for a, b in pairwise(self.bounds))  # NaN is below nothing
            covers = len(self.bounds) > 1 and self.bounds[0] == 0 and self.bounds[-1] == 24
        except (TypeError, ValueError):
            rising = covers = False
        if not (rising and covers):
            raise InvalidParameter(
                f"`periods` must be a number of equal parts, or hour bounds rising from 0 to 24 (the whole day), "
                f"got {self.bounds!r}.",
                code="E_PERIODS",
            )
        object.__setattr__(self, "T", len(self.bounds) - 1)

    @staticmethod
    def of(periods: "int | Sequence[float] | Periods") -> "Periods":
        """Return the periods from a number of equal parts of the day, or from hour bounds."""
        if isinstance(periods, Periods):
            return periods
        if isinstance(periods, (int, np.integer)) and not isinstance(periods, bool):
            parts = require_whole("periods", int(periods), 1, MINUTES_PER_DAY)
            return Periods(tuple(24 * i / parts for i in range(parts)) + (24.0,))
        return Periods(periods)  # type: ignore[arg-type]

    def of_minute(self, minute: ArrayLike) -> Places:
        """Return the period tau of each local minute of the day; 05:40 is night and 06:00 morning."""
        # a seventh of a day is no round number: a minute on a bound must not fall below it by a rounding error
        minutes = np.round(np.asarray(minute, dtype=np.float64), 6) % MINUTES_PER_DAY
        bounds = np.round(np.asarray(self.bounds) * 60, 6)
        return (np.searchsorted(bounds, minutes, side="right") - 1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Evidence:
    """
    Weights over places at uncertain slots (E4): entry i says that slot `slot[i]` of row `row[i]` may be `place[i]`.

    Weights are likelihoods, not probabilities: they need not sum to one within a slot.
    """

    row: Ints
    slot: Ints
    place: Places
    weight: Floats

    def __repr__(self) -> str:
        return f"Evidence({len(self.row)} entries)"

    @staticmethod
    def of(evidence: "Evidence | Mapping[tuple[int, int], Any]") -> "Evidence":
        """Return the evidence from `{(row, slot): {place: weight}}` or `{(row, slot): (places, weights)}`."""
        if isinstance(evidence, Evidence):
            return evidence
        rows: list[tuple[int, int, int, float]] = []
        try:
            for (row, slot), likely in evidence.items():
                pairs = likely.items() if isinstance(likely, Mapping) else zip(*likely, strict=True)
                rows.extend((int(row), int(slot), int(place), float(weight)) for place, weight in pairs)
        except (AttributeError, TypeError, ValueError):
            raise InvalidTraces(
                "`evidence` must map (row, slot) to {place: weight} or to (places, weights).", code="E_EVIDENCE"
            ) from None
        columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
        return Evidence(
            freeze(np.array(columns[0], dtype=np.int64)),
            freeze(np.array(columns[1], dtype=np.int64)),
            freeze(np.array(columns[2], dtype=np.int32)),
            freeze(np.array(columns[3], dtype=np.float64)),
        )

    def sort_by_row(self) -> "Evidence":
        """Return the same entries in the order of rows."""
        if np.all(self.row[:-1] <= self.row[1:]):
            return self
        order = np.argsort(self.row, kind="stable")
        return Evidence(*(freeze(a[order]) for a in (self.row, self.slot, self.place, self.weight)))

    def check(self, N: int, L: int, R: int) -> None:
        """Refuse entries outside N rows, L slots and R places, and weights that are not finite and above 0."""
        for name, index, size in (("row", self.row, N), ("slot", self.slot, L), ("place", self.place, R)):
            if np.any(index < 0) or np.any(index >= size):
                raise InvalidTraces(f"`evidence` names a {name} outside 0 .. {size - 1}.", code="E_INDEX")
        if not np.all(np.isfinite(self.weight)) or np.any(self.weight <= 0):
            raise InvalidTraces("`evidence` weights must be finite and above 0.", code="E_NUMBER")


EARTH_RADIUS_KM = 6371.0088


def to_xyz(lat: Floats, lon: Floats, radius: float = EARTH_RADIUS_KM) -> Floats:
    """Return the points of a globe as (n, 3) from its centre, in the unit of `radius`: kilometres by default."""
    north, east = np.radians(lat), np.radians(lon)
    return radius * np.column_stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])


def to_lat_lon(x: Floats) -> tuple[Floats, Floats]:
    """Return the latitude and longitude, to six decimals, of points of the globe, given as `to_xyz` does."""
    lat: Floats = np.degrees(np.arcsin(np.clip(x[:, 2] / EARTH_RADIUS_KM, -1, 1)))
    lon: Floats = np.degrees(np.arctan2(x[:, 1], x[:, 0]))
    return np.round(lat, 6), np.round(lon, 6)


@dataclass(frozen=True, eq=False)
class Locations:
    """
    The set of places, R in number, and the distance d(r, r') between them, in kilometres.

    Give `lat` and `lon` (degrees), or `xy` (planar, kilometres, shape (R, 2)), or only their number `n`; without
    coordinates every other place is one cell width away (E34).

    `names` are what the input calls the places and `categories` the kinds of place it puts them into, one word per
    place, "" where there is none. `category_users` is how many people's rows gave that word, where it was found in
    traces: a word of too few people is not published.
    """

    lat: Floats | None = None
    lon: Floats | None = None
    xy: Floats | None = None
    n: int = 0
    names: tuple[str, ...] | None = field(default=None, repr=False)
    categories: tuple[str, ...] | None = field(default=None, repr=False)
    category_users: Ints | None = field(default=None, repr=False)
    has_coordinates: bool = field(default=False, repr=False)  # whether distances mean kilometres

    def __init__(
        self,
        lat: ArrayLike | None = None,
        lon: ArrayLike | None = None,
        *,
        xy: ArrayLike | None = None,
        n: int | None = None,
        names: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
        category_users: ArrayLike | None = None,
    ) -> None:
        arguments = {name: v for name, v in (("lat", lat), ("lon", lon), ("xy", xy), ("n", n)) if v is not None}
        if list(arguments) not in (["lat", "lon"], ["xy"], ["n"]):
            got = ", ".join(arguments) or "nothing"
            raise InvalidParameter(f"`Locations` takes `lat` and `lon`, or `xy`, or `n`, got {got}.")
        coordinates: dict[str, Floats] = {}
        for name, side in arguments.items() if n is None else ():
            try:
                coordinates[name] = freeze(np.asarray(side, dtype=np.float64))
            except (TypeError, ValueError):
                raise InvalidTraces(f"`{name}` must hold numbers.", code="E_NUMBER") from None
            if not np.all(np.isfinite(coordinates[name])):
                raise InvalidTraces(f"`{name}` must be finite: it holds NaN or infinity.", code="E_NUMBER")
        shapes = [array.shape for array in coordinates.values()]
        if xy is not None and (len(shapes[0]) != 2 or shapes[0][1] != 2):
            raise InvalidTraces(f"`xy` must have shape (R, 2), got {shapes[0]}.", code="E_SHAPE")
        if lat is not None:
            if len(shapes[0]) != 1 or shapes[0] != shapes[1]:
                raise InvalidTraces(
                    f"`lat` and `lon` must be vectors of one length, got shapes {shapes[0]} and {shapes[1]}.",
                    code="E_SHAPE",
                )
            if np.any(np.abs(coordinates["lat"]) > 90) or np.any(np.abs(coordinates["lon"]) > 360):
                raise InvalidTraces("`lat` must be in [-90, 90] and `lon` in [-360, 360] degrees.", code="E_OUTSIDE")
        if n is None and shapes[0][0] == 0:
            raise InvalidTraces("there must be at least one location.", code="E_EMPTY")
        size = require_whole("n", n, 1) if n is not None else shapes[0][0]
        for name, value in ({"n": size, "has_coordinates": n is None} | coordinates).items():
            object.__setattr__(self, name, value)

        # names and categories, one per place
        people = None if category_users is None else np.asarray(category_users, dtype=np.int64)
        for what, values in (("names", names), ("categories", categories), ("category_users", people)):
            if values is not None and len(values) != self.n:
                raise InvalidTraces(f"`{what}` must be {self.n}, one per place, got {len(values)}.", code="E_SHAPE")
        for what, words in (("names", names), ("categories", categories)):
            if words is not None:
                object.__setattr__(self, what, tuple(str(word) for word in words))
        if people is not None:
            object.__setattr__(self, "category_users", freeze(people))

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        # a centre of a cell can be somebody's home: sizes only
        kind = "lat, lon" if self.lat is not None else "xy" if self.xy is not None else "without coordinates"
        return f"Locations({self.n} places, {kind})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Locations) and self.fingerprint() == other.fingerprint()

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    @property
    def coordinates(self) -> dict[str, Floats]:
        """Return the coordinates that are given, by name; none where only the number of places is."""
        sides = {"lat": self.lat, "lon": self.lon, "xy": self.xy}
        return {name: side for name, side in sides.items() if side is not None}

    def select(self, places: ArrayLike) -> "Locations":
        """Return the places with these numbers, in that order, with their names and categories."""
        keep = np.asarray(places, dtype=np.int64)
        coordinates: dict[str, Any] = {side: values[keep] for side, values in self.coordinates.items()}
        words: dict[str, Any] = {
            what: [own[i] for i in keep] for what in ("names", "categories") if (own := getattr(self, what)) is not None
        }
        people = None if self.category_users is None else self.category_users[keep]
        return Locations(**(coordinates or {"n": len(keep)}), **words, category_users=people)

    def append(self, more: "Locations") -> "Locations":
        """Return these places and then others of the same kind, with their names."""
        both: dict[str, Any] = {s: np.concatenate([values, getattr(more, s)]) for s, values in self.coordinates.items()}
        names = None if self.names is None or more.names is None else (*self.names, *more.names)
        return Locations(**(both or {"n": self.n + more.n}), names=names)

    def relabel(self, **words: Any) -> "Locations":
        """Return the same places with other `names`, `categories` or `category_users`."""
        own = {what: getattr(self, what) for what in ("names", "categories", "category_users")}
        coordinates: dict[str, Any] = dict(self.coordinates)
        return Locations(**(coordinates or {"n": self.n}), **{**own, **words})

    def points(self, radius: float = EARTH_RADIUS_KM) -> Floats:
        """Return `xy` in kilometres, whatever the radius, or (R, 3) from the centre of a globe of this radius."""
        if self.lat is not None and self.lon is not None:
            return to_xyz(self.lat, self.lon, radius)
        return self.planar()

    def nearest(self, points: Floats) -> tuple[Ints, Floats]:
        """Return the place nearest to each of `points`, given as `points()` gives them, and its distance in km."""
        from scipy.spatial import cKDTree

        km, place = cKDTree(self.points()).query(points)
        return np.asarray(place, dtype=np.int64), np.asarray(km, dtype=np.float64)

    def place_of(self, lat: Floats, lon: Floats) -> Ints:
        """Return the place nearest to each point of the globe."""
        if self.lat is None:
            raise InvalidParameter("`locations` must have `lat` and `lon` to find the place of coordinates.")
        return self.nearest(to_xyz(lat, lon))[0]

    def ids(self) -> tuple[str, ...] | None:
        """Return the ids of places: their names; without names and positions their numbers; else None."""
        if self.names is not None:
            return self.names
        return None if self.has_coordinates else tuple(map(str, range(self.n)))

    def distance(self, r: ArrayLike, r_next: ArrayLike) -> Floats:
        """Return d(r, r') in kilometres, broadcast over both: haversine, Euclid, or 0/1 without coordinates."""
        i, j = np.asarray(r), np.asarray(r_next)
        if self.xy is not None:
            step = self.xy[i] - self.xy[j]
            return np.asarray(np.hypot(step[..., 0], step[..., 1]), dtype=np.float64)
        if self.lat is not None and self.lon is not None:
            north_i, north_j = np.radians(self.lat[i]), np.radians(self.lat[j])
            half_lon = np.radians(self.lon[i] - self.lon[j]) / 2
            h = np.sin((north_i - north_j) / 2) ** 2 + np.cos(north_i) * np.cos(north_j) * np.sin(half_lon) ** 2
            return np.asarray(2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(1.0, h))), dtype=np.float64)
        return np.asarray(np.broadcast_arrays(i, j)[0] != j, dtype=np.float64)

    def planar(self) -> Floats:
        """
        Return the coordinates (R, 2) in kilometres on a plane, for maps and grids of a town or a region.

        Equirectangular about the mean direction of all places, so a set that straddles the antimeridian stays whole.
        """
        if self.xy is not None:
            return self.xy.copy()  # kernels are compiled anew for what cannot be written
        if self.lat is None or self.lon is None:
            raise InvalidParameter("these `locations` have no coordinates; give `lat` and `lon`, or `xy`.")
        east = np.radians(self.lon)
        centre = np.arctan2(np.sin(east).mean(), np.cos(east).mean())
        offset = np.angle(np.exp(1j * (east - centre)))
        scale = np.cos(np.radians(self.lat.mean()))
        return np.column_stack([offset * scale, np.radians(self.lat)]) * EARTH_RADIUS_KM

    def fingerprint(self) -> str:
        """Return a hash of the coordinates, so that a model is never used on another map (B53)."""
        digest = hashlib.sha256(f"elsewhere-locations {self.n}".encode())
        for name, array in self.coordinates.items():
            digest.update(name.encode() + np.ascontiguousarray(array, dtype="<f8").tobytes())
        return digest.hexdigest()


def describe_difference(model: Locations, here: Locations) -> str:
    """Say how the maps of a model and of traces differ, in counts: a coordinate can be somebody's home."""
    kinds = [
        "latitude and longitude" if each.lat is not None else "x and y" if each.xy is not None else "no coordinates"
        for each in (model, here)
    ]
    if kinds[0] != kinds[1]:
        return f"the model has {len(model)} places with {kinds[0]}, the traces have {len(here)} with {kinds[1]}"
    text = f"the model has {len(model)} places, the traces have {len(here)}"
    if not model.has_coordinates:
        return text
    both = len(set(_exact_positions(model)) & set(_exact_positions(here)))
    return f"{text}, and {both} of them are the same" + (
        ", in another order" if both == len(model) == len(here) else ""
    )


def match_names(names: Iterable[str], ids: Sequence[str]) -> Ints:
    """Return the number among `ids` of each of these names, -1 where there is none; "" names nothing."""
    number = {name: i for i, name in enumerate(ids) if name}
    return np.array([number.get(name, -1) for name in names], dtype=np.int64)


def match_places(here: Locations, there: Locations) -> Ints | None:
    """
    Return the number on the map `there` of each place of `here`, told by its name or its exact position.

    -1 where there is none; None where the maps have neither names nor positions in common.

    Examples
    --------
    >>> match_places(Locations(n=2, names=["mill", "inn"]), Locations(n=3, names=["inn", "church", "mill"])).tolist()
    [2, 0]

    """
    names, ids_there = here.ids(), there.ids()
    if names is not None and ids_there is not None and any(names):
        by_name = match_names(names, ids_there)
        if not (here.has_coordinates and there.has_coordinates):
            return by_name
        # ids may be each file's own: the same ones must lie at the same positions
        if np.all(by_name >= 0) and _exact_positions(here) == _exact_positions(there.select(by_name)):
            return by_name
    if (here.lat is None) != (there.lat is None) or (here.xy is None) != (there.xy is None) or not here.has_coordinates:
        return None
    at = {point: i for i, point in reversed(list(enumerate(_exact_positions(there))))}
    return np.array([at.get(point, -1) for point in _exact_positions(here)], dtype=np.int64)


def _exact_positions(locations: Locations) -> list[tuple[float, ...]]:
    """Return the coordinates of each place, as given."""
    return list(map(tuple, np.column_stack(list(locations.coordinates.values())).tolist()))


def clock_minutes(start: str) -> int:
    """Return the minutes since midnight of a local time "HH:MM"."""
    try:
        hour, minute = (int(part) for part in start.split(":"))
        if 0 <= hour < 24 and 0 <= minute < 60:
            return 60 * hour + minute
    except (AttributeError, ValueError):
        pass
    raise InvalidParameter(f'`start` must be a local time "HH:MM" between "00:00" and "23:59", got {start!r}.')


def clock_text(minutes: float) -> str:
    """Return the local time "HH:MM" of minutes since midnight."""
    return f"{int(minutes) // 60:02}:{int(minutes) % 60:02}"


@dataclass(frozen=True, eq=False)
class Traces:
    """
    A set of traces: N rows of L slots over R places, each row one stretch of one user (mostly a day).

    Several rows may belong to one user: the user, not the row, is the unit of privacy (E61). Users are numbered
    0 .. U-1 in order of first appearance.

    Parameters
    ----------
    r
        (N, L) whole numbers, the place in each slot; -1 where it is missing.
    locations
        The places the numbers point into.
    users
        One label per row, compared exactly; by default every row is a user of its own.
    dates
        One local date per row, or None.
    step_minutes, start, tz
        Length of a slot in minutes, local time of the first slot, IANA zone of that clock.
    evidence
        Weights over places at uncertain slots, see `Evidence`.

    """

    r: Places
    locations: Locations
    user: Ints
    labels: tuple[Any, ...] = field(repr=False)
    dates: NDArray[np.datetime64] | None = field(repr=False)
    step_minutes: float
    start: str
    tz: str
    evidence: Evidence | None = field(repr=False)
    L: int  # slots per row
    R: int  # places
    U: int  # distinct users

    def __init__(
        self,
        r: ArrayLike,
        locations: Locations,
        *,
        users: Sequence[Any] | NDArray[Any] | None = None,
        dates: Sequence[Any] | NDArray[Any] | None = None,
        step_minutes: float = 20,
        start: str = "00:00",
        tz: str = "UTC",
        evidence: Evidence | Mapping[tuple[int, int], Any] | None = None,
    ) -> None:
        if not isinstance(locations, Locations):
            raise InvalidParameter(f"`locations` must be a `Locations`, got {type(locations).__name__}.")
        places = self.check_places(r, len(locations))
        N, L = places.shape
        try:
            labels: list[Any] | NDArray[Any] = np.arange(N) if users is None else list(users)
        except TypeError:
            raise InvalidTraces("`users` must name one user per row.", code="E_USER") from None
        if len(labels) != N:
            raise InvalidTraces(f"`users` must name one user per row: {N} rows, {len(labels)} names.", code="E_SHAPE")
        user, unique = _number_labels(labels)
        try:
            days = None if dates is None else freeze(np.asarray(dates, dtype="datetime64[D]"))
        except (TypeError, ValueError):
            raise InvalidTraces("`dates` must hold local dates, YYYY-MM-DD.", code="E_DATE") from None
        if days is not None and days.shape != (N,):
            raise InvalidTraces(f"`dates` must hold one date per row: {N} rows, shape {days.shape}.", code="E_SHAPE")
        if days is not None and np.any(np.isnat(days)):
            raise InvalidTraces("`dates` holds a missing date.", code="E_DATE")
        require_between("step_minutes", step_minutes, 0, MINUTES_PER_DAY, open_low=True)
        zone_of(tz)
        if days is not None and L * step_minutes > MINUTES_PER_DAY:
            raise InvalidTraces(
                f"{L} slots of {step_minutes:g} minutes are more than the day of their date.", code="E_SHAPE"
            )
        clock_minutes(start)
        sparse = None if evidence is None else Evidence.of(evidence).sort_by_row()
        if sparse is not None:
            sparse.check(N, L, len(locations))
        for name, value in (
            ("r", places),
            ("locations", locations),
            ("user", user),
            ("labels", unique),
            ("dates", days),
            ("step_minutes", float(step_minutes)),
            ("start", start),
            ("tz", tz),
            ("evidence", sparse),
            ("L", L),
            ("R", len(locations)),
            ("U", len(unique)),
        ):
            object.__setattr__(self, name, value)

    @staticmethod
    def check_places(r: ArrayLike, R: int, name: str = "r") -> Places:
        """Return (N, L) whole numbers of R places, -1 for missing, as a frozen array; messages call them `name`."""
        try:
            array = np.asarray(r)
        except ValueError:
            raise InvalidTraces(f"`{name}` must be a table: all rows of one length.", code="E_SHAPE") from None
        if array.ndim != 2:
            raise InvalidTraces(f"`{name}` must have two dimensions (traces, slots), got {array.ndim}.", code="E_SHAPE")
        if array.size == 0:
            raise InvalidTraces(
                f"`{name}` is empty: {array.shape[0]} traces of {array.shape[1]} slots.", code="E_EMPTY"
            )
        if array.dtype.kind == "f":
            if not np.all(np.isfinite(array)):
                raise InvalidTraces(f"`{name}` holds NaN or infinity; mark a missing slot by -1.", code="E_NUMBER")
            if np.any(array != np.floor(array)):
                raise InvalidTraces(f"`{name}` must hold whole numbers of places.", code="E_NUMBER")
        elif array.dtype.kind not in "iu":
            raise InvalidTraces(
                f"`{name}` must hold whole numbers of places, got dtype {array.dtype}.", code="E_NUMBER"
            )
        bad = (array < -1) | (array >= R)
        if np.any(bad):
            first = int(np.flatnonzero(bad.any(axis=1))[0])
            raise InvalidTraces(
                f"`{name}` must be in 0 .. {R - 1}, or -1 for missing: {int(bad.sum())} are not, "
                f"the first in row {first}.",
                code="E_INDEX",
            )
        empty = np.all(array == -1, axis=1)
        if np.any(empty):
            raise InvalidTraces(
                f"row {int(np.flatnonzero(empty)[0])} of `{name}` has no known slot (every entry is -1).",
                code="E_EMPTY",
            )
        return np.asarray(freeze(array.astype(np.int32, copy=False)), dtype=np.int32)

    def __len__(self) -> int:
        return len(self.r)

    def __repr__(self) -> str:
        # never the content: a traceback or a log may show this
        return f"Traces({self.U} users, {len(self)} rows of {self.L} slots, {self.R} places)"

    @property
    def users(self) -> NDArray[Any]:
        """Return the label of each row's user, as it was given."""
        labels = np.empty(self.U, dtype=object)
        labels[:] = self.labels
        return np.asarray(labels[self.user])

    def minutes(self) -> Floats:
        """Return the local minute of the day at which each of the L slots begins."""
        return np.asarray((clock_minutes(self.start) + self.step_minutes * np.arange(self.L)) % MINUTES_PER_DAY)

    def select(self, rows: ArrayLike) -> "Traces":
        """Return the given rows (numbers or a mask), in the given order, as a new set."""
        keep = _check_numbers("rows", rows, len(self), "E_INDEX")
        if np.array_equal(keep, np.arange(len(self))):
            return self  # frozen: all rows in their order are the same set
        evidence = None
        if self.evidence is not None:
            e = self.evidence
            order = np.argsort(e.row, kind="stable")
            first, last = (np.searchsorted(e.row[order], keep, side=side) for side in ("left", "right"))
            row = np.repeat(np.arange(len(keep)), last - first)
            entries = order[np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])]
            evidence = Evidence(row, e.slot[entries], e.place[entries], e.weight[entries])
        return Traces(
            self.r[keep],
            self.locations,
            users=self.users[keep],
            dates=None if self.dates is None else self.dates[keep],
            step_minutes=self.step_minutes,
            start=self.start,
            tz=self.tz,
            evidence=evidence,
        )

    def with_places(self, r: ArrayLike) -> "Traces":
        """Return the same users, days and clock with other places in each slot, without evidence."""
        return self.with_map(self.locations, r)

    def with_map(self, locations: Locations, r: ArrayLike | None = None, evidence: Evidence | None = None) -> "Traces":
        """
        Return the same users, days and clock on another map.

        Place numbers stay what they are, and so does the evidence, where the map describes the same places otherwise;
        else `r` and `evidence` give them.
        """
        same = r is None or (self.evidence is None and evidence is None and np.array_equal(r, self.r))
        if same and locations is self.locations:
            return self
        fields = {name: getattr(self, name) for name in ("users", "dates", "step_minutes", "start", "tz")}
        if r is None:
            return Traces(self.r, locations, **fields, evidence=self.evidence)
        return Traces(r, locations, **fields, evidence=evidence)

    def visitors(self) -> Ints:
        """Return how many users visit each of the R places."""
        return count_users(self.user, self.r, self.R)

    def of_users(self, users: ArrayLike) -> "Traces":
        """Return all rows of the users with these numbers (0 .. U-1), rows in their old order."""
        wanted = np.zeros(self.U, dtype=bool)
        wanted[_check_numbers("users", users, self.U, "E_USER")] = True
        return self.select(wanted[self.user])


def _check_numbers(name: str, numbers: ArrayLike, size: int, code: str) -> Ints:
    """Return numbers in 0 .. size - 1, given as such or as a mask of that size; refuse others, and none at all."""
    rows = np.asarray(numbers)
    if rows.dtype == bool and rows.shape == (size,):
        rows = np.flatnonzero(rows)
    if rows.size == 0:
        raise InvalidTraces(f"`{name}` chooses nothing.", code="E_EMPTY")
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= size:
        raise InvalidParameter(f"`{name}` must hold numbers in 0 .. {size - 1}, or a mask of {size}.", code=code)
    return rows.astype(np.int64)


def _number_labels(labels: Sequence[Any] | NDArray[Any]) -> tuple[Ints, tuple[Any, ...]]:
    # a dict compares labels exactly and keeps the order of first appearance
    number: dict[Any, int] = {}
    try:
        values = (
            labels.tolist()
            if isinstance(labels, np.ndarray)
            else [v.item() if isinstance(v, np.generic) else v for v in labels]
        )
        user = np.fromiter((number.setdefault(v, len(number)) for v in values), dtype=np.int64, count=len(values))
    except TypeError:
        raise InvalidTraces("`users` must hold plain labels (numbers or text).", code="E_USER") from None
    # NaN and NaT differ from themselves; pandas' NA does not even say so
    if any(v is None or (v == v) is not True for v in number):
        raise InvalidTraces("`users` holds a missing label (None or NaN).", code="E_USER")
    return freeze(user), tuple(number)


def zone_of(name: str) -> tzinfo:
    """Return the zone of an IANA name, or of "UTC+05:30" or "+05:30"; anything else is refused (E_TZ)."""
    offset = re.fullmatch(r"(?:UTC)?([+-]\d\d:\d\d)", name) if isinstance(name, str) else None
    try:
        return timezone(timedelta(seconds=offset_seconds(offset[1]))) if offset else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InvalidParameter(
            f'`tz` must be an IANA zone such as "Europe/Zurich", or an offset "+02:00", got {name!r}.', code="E_TZ"
        ) from None


def offset_seconds(offset: str) -> int:
    """Return the seconds east of Greenwich of "Z", "+02", "+0200" or "+02:00"."""
    if offset == "Z":
        return 0
    digits = offset[1:].replace(":", "").ljust(4, "0")
    seconds = 3600 * int(digits[:2]) + 60 * int(digits[2:])
    return -seconds if offset[0] == "-" else seconds


def zones_at(lat: NDArray[np.float64], lon: NDArray[np.float64]) -> list[str] | None:
    """Return the IANA zones of some evenly chosen points, "" at sea, looked up offline; None without tzfpy."""
    try:
        from tzfpy import get_tz
    except ImportError:
        return None
    valid = np.flatnonzero((np.abs(lat) <= 90) & (np.abs(lon) <= 180))
    sample = valid[np.linspace(0, len(valid) - 1, min(ASKED, len(valid))).astype(np.int64)] if len(valid) else valid
    zones = [get_tz(float(lon[i]), float(lat[i])) or "" for i in sample]
    return ["" if zone.startswith("Etc/") else zone for zone in zones]


def hold_places(r: ArrayLike) -> Ints:
    """
    Return the rows with every missing slot (-1) at the last known place, or at the first one before it is known.

    Rows without any place stay as they are.
    """
    places = np.asarray(r, dtype=np.int64)
    if places.min(initial=0) >= 0:
        return places
    known = places >= 0
    last = np.maximum.accumulate(np.where(known, np.arange(places.shape[1]), -1), axis=1)
    last = np.where(last < 0, known.argmax(axis=1)[:, None], last)
    return np.take_along_axis(places, last, axis=1)


def is_weekend(dates: DAYS) -> Mask:
    """Return which days are a Saturday or a Sunday."""
    return np.asarray((dates.astype("datetime64[D]").astype(np.int64) + 3) % 7 >= 5)


@dataclass(frozen=True, eq=False)
class People:
    """
    Who has which days: `rows` (people, days of the calendar) are rows of the traces, -1 where somebody has none.

    The calendar begins on a Monday, and only the kind of a day counts: a person's first day is the first of its kind,
    weekday or weekend, every further day the next of its kind after it. So what a person's days show of when they were
    is their order and their kinds. Where nobody has two days the calendar is one day long, and has no kind; without
    dates every day counts as a weekday. A kind that fewer than `m_min` people have would identify them: these days
    count as the other kind.

    Examples
    --------
    >>> from elsewhere.traces.model import Locations
    >>> dates = ["2024-03-05", "2024-03-09", "2024-03-12"]  # Tuesday, Saturday, Tuesday
    >>> ann = Traces([[0], [1], [2]], Locations(n=3), users=["ann"] * 3, dates=dates)
    >>> People.of(ann).rows.tolist()
    [[0, -1, -1, -1, -1, 1, -1, 2]]
    >>> People.of(ann).places(ann.r).tolist()
    [[0, -1, -1, -1, -1, 1, -1, 2]]

    """

    rows: Ints
    weekend: Mask  # (days,)
    day: Ints = field(repr=False)  # (rows of the traces,) day of the calendar of each
    days: int  # of the calendar

    @staticmethod
    def of(traces: Traces, *, m_min: int = 1, alone: bool = False) -> "People":
        """Return the people of these traces; `alone`: every row counts as a person of its own."""
        if alone or len(traces) == traces.U:
            user = np.arange(len(traces)) if alone else traces.user
            rows = np.empty((len(traces), 1), dtype=np.int64)
            rows[user, 0] = np.arange(len(traces))
            return People(rows, np.zeros(1, dtype=bool), np.zeros(len(traces), dtype=np.int64), 1)
        dated = traces.dates is not None
        when = traces.dates.astype(np.int64) if traces.dates is not None else np.zeros(len(traces), dtype=np.int64)
        off = is_weekend(traces.dates) if traces.dates is not None else np.zeros(len(traces), dtype=bool)
        for kind in (True, False):
            if len(np.unique(traces.user[off == kind])) < m_min:
                off[:] = not kind
        day = np.empty(len(traces), dtype=np.int64)
        last, person = -1, -1
        for row in np.lexsort((np.arange(len(traces)), when, traces.user)).tolist():
            if traces.user[row] != person:
                last, person = -1, int(traces.user[row])
            last += 1
            while dated and (last % 7 >= 5) != off[row]:
                last += 1
            day[row] = last
        days = int(day.max()) + 1
        rows = np.full((traces.U, days), -1, dtype=np.int64)
        rows[traces.user, day] = np.arange(len(traces))
        weekend = np.arange(days) % 7 >= 5 if dated else np.zeros(days, dtype=bool)
        return People(rows, weekend, day, days)

    def __len__(self) -> int:
        return len(self.rows)

    def places(self, r: NDArray[np.integer]) -> Places:
        """Return the places (people, days x L) of each person over the calendar, -1 on days they do not have."""
        every = np.where(self.rows[:, :, None] >= 0, r[self.rows], -1)
        return np.ascontiguousarray(every.reshape(len(self), -1), dtype=np.int32)

    def draw_days(self, rng: np.random.Generator, m_min: int) -> Mask:
        """
        Return the days (people, days) of each person permuted at random among people.

        People with nearly only weekdays, with nearly only weekends, and with both are permuted apart. A group of fewer
        than `m_min` people joins the last; where that is too small as well, everybody is one group. Days that fewer
        than `m_min` people of a group have would identify them: see `shared_days`.
        """
        has = self.rows >= 0
        off = (has & self.weekend).sum(axis=1) / has.sum(axis=1)
        sort = np.where(off < 0.1, 0, np.where(off > 0.9, 1, 2))
        sort[np.isin(sort, np.flatnonzero(np.bincount(sort, minlength=3) < m_min))] = 2
        if 0 < np.count_nonzero(sort == 2) < m_min:
            sort[:] = 2
        out = np.empty_like(has)
        for kind in np.unique(sort):
            mine = np.flatnonzero(sort == kind)
            out[mine] = shared_days(has[mine], self.weekend, m_min)[rng.permutation(len(mine))]
        return out

    def nearest_rows(self, person: Ints, day: Ints) -> Ints:
        """Return the row of each person's day that is nearest to `day`, of its kind where they have one."""
        has = self.rows >= 0
        out = np.empty(len(person), dtype=np.int64)
        for i, (p, d) in enumerate(zip(person.tolist(), day.tolist(), strict=True)):
            if has[p, d]:
                out[i] = self.rows[p, d]
                continue
            own = np.flatnonzero(has[p])
            alike = own[self.weekend[own] == self.weekend[d]]
            own = alike if len(alike) else own
            out[i] = self.rows[p, own[np.abs(own - d).argmin()]]
        return out


def shared_days(has: Mask, weekend: Mask, m_min: int) -> Mask:
    """
    Return the days (people, days) on which people are visible, such that at least `m_min` people share each pattern.

    A pattern of days that `m_min` people have stays. The other people are put into groups of at least `m_min` with
    about as many days, who get the first days of the calendar, as many of each kind as the median of the group. If
    there are fewer than `m_min` of them, they get the pattern that stays and is nearest to theirs in number of days.

    Examples
    --------
    >>> has = np.array([[True, True, False]] * 3 + [[True, True, True]])
    >>> shared_days(has, np.zeros(3, dtype=bool), 2).sum(axis=1).tolist()
    [2, 2, 2, 2]

    """
    patterns, of, number = np.unique(has, axis=0, return_inverse=True, return_counts=True)
    out, stay = has.copy(), number >= m_min
    rare = np.flatnonzero(~stay[of.ravel()])
    length, off = has.sum(axis=1), (has & weekend).sum(axis=1)
    if len(rare) < m_min and stay.any():
        usual = patterns[stay]
        out[rare] = usual[np.abs(usual.sum(axis=1) - length[rare, None]).argmin(axis=1)]
        return out
    for group in _groups_alike(rare, length[rare], m_min):
        middle = (len(group) - 1) // 2
        n, n_off = np.sort(length[group])[middle], np.sort(off[group])[middle]
        seen = np.zeros(len(weekend), dtype=bool)
        seen[np.flatnonzero(weekend)[:n_off]] = True
        seen[np.flatnonzero(~weekend)[: n - n_off]] = True
        out[group] = seen
    return out


def _groups_alike(people: Ints, length: Ints, m_min: int) -> list[Ints]:
    """Return groups of at least `m_min` people, if there are so many; people with equally many days stay together."""
    groups: list[Ints] = []
    few = people[:0]
    for days in np.unique(length)[::-1]:
        few = np.concatenate([few, people[length == days]])
        if len(few) >= m_min:
            groups.append(few)
            few = people[:0]
    if len(few):
        groups.append(np.concatenate([groups.pop(), few]) if groups else few)
    return groups
