"""
Places, periods of the day, and traces: what every other room receives.

All three are frozen and checked once, here; inside the house they are trusted.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.errors import InvalidParameter, InvalidTraces, require_between, require_whole
from elsewhere.traces.zones import zone_of

EARTH_RADIUS_KM = 6371.0088
MINUTES_PER_DAY = 1440

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.int32]


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    # a private copy: what the caller does to his own array afterwards must not reach into the house
    array = array.copy() if array.flags.writeable else array
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Locations:
    """
    The set of places, R in number, and the distance d(r, r') between them, in kilometres.

    Give `lat` and `lon` (degrees), or `xy` (planar, kilometres, shape (R, 2)), or only their number `n`; without
    coordinates every other place is one cell width away (E34).
    """

    lat: Floats | None = None
    lon: Floats | None = None
    xy: Floats | None = None
    n: int = 0

    def __init__(
        self,
        lat: ArrayLike | None = None,
        lon: ArrayLike | None = None,
        *,
        xy: ArrayLike | None = None,
        n: int | None = None,
    ) -> None:
        given = [name for name, v in (("lat", lat), ("lon", lon), ("xy", xy), ("n", n)) if v is not None]
        if given not in (["lat", "lon"], ["xy"], ["n"]):
            shown = ", ".join(given) or "nothing"
            raise InvalidParameter(f"`Locations` takes `lat` and `lon`, or `xy`, or `n`, got {shown}.")
        if n is not None:
            object.__setattr__(self, "n", require_whole("n", n, 1))
            return
        if xy is not None:
            points = _coordinates("xy", xy)
            if points.ndim != 2 or points.shape[1] != 2:
                raise InvalidTraces(f"`xy` must have shape (R, 2), got {points.shape}.", code="E_SHAPE")
            object.__setattr__(self, "xy", _frozen(points))
            object.__setattr__(self, "n", len(points))
        else:
            north, east = _coordinates("lat", lat), _coordinates("lon", lon)
            if north.ndim != 1 or north.shape != east.shape:
                raise InvalidTraces(
                    f"`lat` and `lon` must be vectors of one length, got shapes {north.shape} and {east.shape}.",
                    code="E_SHAPE",
                )
            if np.any(np.abs(north) > 90) or np.any(np.abs(east) > 360):
                raise InvalidTraces("`lat` must be in [-90, 90] and `lon` in [-360, 360] degrees.", code="E_OUTSIDE")
            object.__setattr__(self, "lat", _frozen(north))
            object.__setattr__(self, "lon", _frozen(east))
            object.__setattr__(self, "n", len(north))
        if self.n == 0:
            raise InvalidTraces("there must be at least one location.", code="E_EMPTY")

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
    def has_coordinates(self) -> bool:
        """Whether distances mean kilometres."""
        return self.lat is not None or self.xy is not None

    def distance(self, r: ArrayLike, r_next: ArrayLike) -> Floats:
        """d(r, r') in kilometres, broadcast over both arguments: haversine, Euclid, or 0/1 without coordinates."""
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
        Coordinates (R, 2) in kilometres on a plane, for maps, grids and nearest neighbours of a town or a region.

        Equirectangular about the mean direction of all places, so a set that straddles the antimeridian stays whole.
        """
        if self.xy is not None:
            return self.xy
        if self.lat is None or self.lon is None:
            raise InvalidParameter("these `locations` have no coordinates; give `lat` and `lon`, or `xy`.")
        east = np.radians(self.lon)
        centre = np.arctan2(np.sin(east).mean(), np.cos(east).mean())
        offset = np.angle(np.exp(1j * (east - centre)))
        scale = np.cos(np.radians(self.lat.mean()))
        return np.column_stack([offset * scale, np.radians(self.lat)]) * EARTH_RADIUS_KM

    def fingerprint(self) -> str:
        """Hash of the geometry, so that a model is never used on another map (B53)."""
        digest = hashlib.sha256(f"elsewhere-locations {self.n}".encode())
        for name, array in (("lat", self.lat), ("lon", self.lon), ("xy", self.xy)):
            if array is not None:
                digest.update(name.encode() + np.ascontiguousarray(array, dtype="<f8").tobytes())
        return digest.hexdigest()


def _coordinates(name: str, values: Any) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTraces(f"`{name}` must hold numbers.", code="E_NUMBER") from None
    if not np.all(np.isfinite(array)):
        raise InvalidTraces(f"`{name}` must be finite: it holds NaN or infinity.", code="E_NUMBER")
    return array


@dataclass(frozen=True)
class Periods:
    """
    The partition of the local day into T periods, as hour bounds 0 = b_0 < b_1 < ... < b_T = 24 (E24).

    `Periods.of(4)` is four equal parts: night 0-6, morning 6-12, afternoon 12-18, evening 18-24.
    """

    bounds: tuple[float, ...]

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

    @staticmethod
    def of(periods: "int | Sequence[float] | Periods") -> "Periods":
        """From a number of equal parts of the day, or from hour bounds."""
        if isinstance(periods, Periods):
            return periods
        if isinstance(periods, (int, np.integer)) and not isinstance(periods, bool):
            parts = require_whole("periods", int(periods), 1, MINUTES_PER_DAY)
            return Periods(tuple(24 * i / parts for i in range(parts)) + (24.0,))
        return Periods(periods)  # type: ignore[arg-type]

    @property
    def T(self) -> int:
        """Number of periods."""
        return len(self.bounds) - 1

    def of_minute(self, minute: ArrayLike) -> Places:
        """The period tau of each local minute of the day; 05:40 is night and 06:00 morning."""
        # a seventh of a day is no round number: an instant on a bound must not fall below it by a rounding error
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
        """From `{(row, slot): {place: weight}}` or `{(row, slot): (places, weights)}`."""
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
            _frozen(np.array(columns[0], dtype=np.int64)),
            _frozen(np.array(columns[1], dtype=np.int64)),
            _frozen(np.array(columns[2], dtype=np.int32)),
            _frozen(np.array(columns[3], dtype=np.float64)),
        )

    def check(self, N: int, L: int, R: int) -> None:
        """Every entry points into a dataset of N rows, L slots and R places, with a finite positive weight."""
        for name, index, size in (("row", self.row, N), ("slot", self.slot, L), ("place", self.place, R)):
            if np.any(index < 0) or np.any(index >= size):
                raise InvalidTraces(f"`evidence` names a {name} outside 0 .. {size - 1}.", code="E_INDEX")
        if not np.all(np.isfinite(self.weight)) or np.any(self.weight <= 0):
            raise InvalidTraces("`evidence` weights must be finite and above 0.", code="E_NUMBER")


def _clock(start: str) -> int:
    try:
        hour, minute = (int(part) for part in start.split(":"))
        if 0 <= hour < 24 and 0 <= minute < 60:
            return 60 * hour + minute
    except (AttributeError, ValueError):
        pass
    raise InvalidParameter(f'`start` must be a local time "HH:MM" between "00:00" and "23:59", got {start!r}.')


@dataclass(frozen=True, eq=False)
class Traces:
    """
    A set of traces: N rows of L instants over R places, each row one stretch of one user (mostly a day).

    Several rows may belong to one user: the user, not the row, is the unit of privacy (E61). Users are numbered
    0 .. U-1 in order of first appearance.

    Parameters
    ----------
    r
        (N, L) whole numbers, the place at each instant; -1 where it is missing.
    locations
        The places the numbers point into.
    users
        One label per row, compared exactly; by default every row is a user of its own.
    dates
        One local date per row, or None.
    step_minutes, start, tz
        Minutes between instants, local time of the first instant, IANA zone of that clock.
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
        places = _place_numbers(r, len(locations))
        N, L = places.shape
        try:
            labels: list[Any] | NDArray[Any] = np.arange(N) if users is None else list(users)
        except TypeError:
            raise InvalidTraces("`users` must name one user per row.", code="E_USER") from None
        if len(labels) != N:
            raise InvalidTraces(f"`users` must name one user per row: {N} rows, {len(labels)} names.", code="E_SHAPE")
        user, unique = _number_users(labels)
        try:
            days = None if dates is None else _frozen(np.asarray(dates, dtype="datetime64[D]"))
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
                f"{L} instants of {step_minutes:g} minutes are more than the day of their date.", code="E_SHAPE"
            )
        _clock(start)
        seen = None if evidence is None else Evidence.of(evidence)
        if seen is not None:
            seen.check(N, L, len(locations))
        for name, value in (
            ("r", places),
            ("locations", locations),
            ("user", user),
            ("labels", unique),
            ("dates", days),
            ("step_minutes", float(step_minutes)),
            ("start", start),
            ("tz", tz),
            ("evidence", seen),
        ):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.r)

    def __repr__(self) -> str:
        # never the content: a traceback or a log may show this
        return f"Traces({self.U} users, {len(self)} rows of {self.L} instants, {self.R} places)"

    @property
    def L(self) -> int:
        """Instants per row."""
        return int(self.r.shape[1])

    @property
    def R(self) -> int:
        """Number of places."""
        return len(self.locations)

    @property
    def U(self) -> int:
        """Number of distinct users."""
        return len(self.labels)

    @property
    def users(self) -> NDArray[Any]:
        """The label of each row's user, as it was given."""
        labels = np.empty(self.U, dtype=object)
        labels[:] = self.labels
        return np.asarray(labels[self.user])

    def minutes(self) -> Floats:
        """Local minute of the day of each of the L instants."""
        return np.asarray((_clock(self.start) + self.step_minutes * np.arange(self.L)) % MINUTES_PER_DAY)

    def select(self, rows: ArrayLike) -> "Traces":
        """The given rows (numbers or a mask), in the given order, as a new set."""
        keep = _chosen("rows", rows, len(self), "E_INDEX")
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
        """The same users, days and clock with other places at each instant, without evidence."""
        return Traces(
            r,
            self.locations,
            users=self.users,
            dates=self.dates,
            step_minutes=self.step_minutes,
            start=self.start,
            tz=self.tz,
        )

    def of_users(self, users: ArrayLike) -> "Traces":
        """All rows of the users with these numbers (0 .. U-1), rows in their old order."""
        wanted = np.zeros(self.U, dtype=bool)
        wanted[_chosen("users", users, self.U, "E_USER")] = True
        return self.select(wanted[self.user])


def _chosen(name: str, numbers: ArrayLike, size: int, code: str) -> Ints:
    """Numbers in 0 .. size - 1, or a mask of that size, as numbers; at least one."""
    chosen = np.asarray(numbers)
    if chosen.dtype == bool and chosen.shape == (size,):
        chosen = np.flatnonzero(chosen)
    if chosen.size == 0:
        raise InvalidTraces(f"`{name}` chooses nothing.", code="E_EMPTY")
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= size:
        raise InvalidParameter(f"`{name}` must hold numbers in 0 .. {size - 1}, or a mask of {size}.", code=code)
    return chosen.astype(np.int64)


def _place_numbers(r: ArrayLike, R: int) -> Places:
    try:
        array = np.asarray(r)
    except ValueError:
        raise InvalidTraces("`r` must be a table: all rows of one length.", code="E_SHAPE") from None
    if array.ndim != 2:
        raise InvalidTraces(f"`r` must have two dimensions (traces, instants), got {array.ndim}.", code="E_SHAPE")
    if array.size == 0:
        raise InvalidTraces(f"`r` is empty: {array.shape[0]} traces of {array.shape[1]} instants.", code="E_EMPTY")
    if array.dtype.kind == "f":
        if not np.all(np.isfinite(array)):
            raise InvalidTraces("`r` holds NaN or infinity; mark a missing instant by -1.", code="E_NUMBER")
        if np.any(array != np.floor(array)):
            raise InvalidTraces("`r` must hold whole numbers of places.", code="E_NUMBER")
    elif array.dtype.kind not in "iu":
        raise InvalidTraces(f"`r` must hold whole numbers of places, got dtype {array.dtype}.", code="E_NUMBER")
    bad = (array < -1) | (array >= R)
    if np.any(bad):
        row = int(np.flatnonzero(bad.any(axis=1))[0])
        raise InvalidTraces(
            f"`r` must be in 0 .. {R - 1}, or -1 for missing: {int(bad.sum())} are not, the first in row {row}.",
            code="E_INDEX",
        )
    empty = np.all(array == -1, axis=1)
    if np.any(empty):
        raise InvalidTraces(
            f"row {int(np.flatnonzero(empty)[0])} of `r` has no instant at all (every entry is -1).", code="E_EMPTY"
        )
    return np.asarray(_frozen(array.astype(np.int32, copy=False)), dtype=np.int32)


def _number_users(labels: Sequence[Any] | NDArray[Any]) -> tuple[Ints, tuple[Any, ...]]:
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
    return _frozen(user), tuple(number)
