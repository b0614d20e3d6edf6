"""
Define what was observed: `Visits` at `Locations`; `Records` and their `Form`, as a file has them; `Preparation`.

    Records      what a file says, row by row, before places are found (columns.py makes them)
    Visits       one row per observation: who, from when to when, where (stays.py and places.py make them)
    Locations    the places, with ids that are the same in every file on the same map
    Form         how the file writes its records, so that fakes can be written alike
    Preparation  what became of the file, in counts

All are frozen and checked once, where they are made; after that they are trusted. Times are seconds of the local wall
clock since 1970. Nothing is filled in: where nobody was seen there is no row.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.errors import InvalidParameter, InvalidTraces, require_choice, require_whole
from elsewhere.sorting import count_users

if TYPE_CHECKING:
    import pandas as pd

    from elsewhere.data.slots import Traces

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

EARTH_RADIUS_KM = 6371.0088
DAY = 86_400
RECORDS = ("fixes", "events", "visits", "trips")
UNITS = {"person": ("person", "people"), "trip": ("trip", "trips"), "vehicle-day": ("shift", "shifts")}
# columns of `to_frame()`, and what other tools call them
COLUMNS = ("user", "start", "end", "place", "lat", "lon", "kind", "trip")
NAMES = {
    "trackintel": ("user_id", "started_at", "finished_at", "location_id", "lat", "lon", "purpose", "trip_id"),
    "skmob": ("uid", "datetime", "leaving_datetime", "cluster", "lat", "lng", "kind", "tid"),
}


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only array with these values; what is read-only already is not copied."""
    # a private copy: what the caller does to the own array afterwards must not change this one
    array = array.copy() if array.flags.writeable else array
    array.setflags(write=False)
    return array


def to_xyz(lat: Floats, lon: Floats) -> Floats:
    """
    Return the points of the globe as (n, 3) in kilometres from its centre.

    Straight distances between them equal the arc within 1 cm at 20 km, without a seam at the antimeridian or the poles.
    """
    north, east = np.radians(lat), np.radians(lon)
    return EARTH_RADIUS_KM * np.column_stack(
        [np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)]
    )


def to_lat_lon(x: Floats) -> tuple[Floats, Floats]:
    """Return the latitude and longitude, to six decimals, of points of the globe, given as `to_xyz` does."""
    lat: Floats = np.degrees(np.arcsin(np.clip(x[:, 2] / EARTH_RADIUS_KM, -1, 1)))
    lon: Floats = np.degrees(np.arctan2(x[:, 1], x[:, 0]))
    return np.round(lat, 6), np.round(lon, 6)


def arc_km(lat: Floats, lon: Floats, lat_next: Floats, lon_next: Floats) -> Floats:
    """Return the length of the arcs between points of the globe in kilometres (haversine)."""
    north, north_next = np.radians(lat), np.radians(lat_next)
    half_lon = np.radians(lon - lon_next) / 2
    h = np.sin((north - north_next) / 2) ** 2 + np.cos(north) * np.cos(north_next) * np.sin(half_lon) ** 2
    return np.asarray(2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(1.0, h))), dtype=np.float64)


def zone_of(name: str) -> tzinfo:
    """Return the zone of an IANA name, or of "UTC+05:30" or "+05:30"; anything else is refused (E_TZ)."""
    offset = re.fullmatch(r"(?:UTC)?([+-])(\d\d):(\d\d)", name) if isinstance(name, str) else None
    try:
        if offset:
            east = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
            return timezone(-east if offset[1] == "-" else east)
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InvalidParameter(
            f'`tz` must be an IANA zone such as "Europe/Zurich", or an offset "+02:00", got {name!r}.', code="E_TZ"
        ) from None


@dataclass(frozen=True, eq=False)
class Locations:
    """
    The set of places, R in number, and the distance d(r, r') between them, in kilometres.

    Give `lat` and `lon` (degrees), or `xy` (planar, kilometres, shape (R, 2)), or only their number `n`; without
    coordinates every other place is one cell width away (E34).

    `ids` are public names of the places: the quadkey of a cell of the fixed grid, or what the file calls its venues,
    stations, towers or zones. The same id is the same place in every file on the same map. `kind` is the kind of each
    place ("restaurant"), "" where it is not known.
    """

    lat: Floats | None = None
    lon: Floats | None = None
    xy: Floats | None = None
    n: int = 0
    kind: tuple[str, ...] | None = field(default=None, repr=False)
    ids: tuple[str, ...] | None = field(default=None, repr=False)
    has_coordinates: bool = field(default=False, repr=False)  # whether distances mean kilometres

    def __init__(
        self,
        lat: ArrayLike | None = None,
        lon: ArrayLike | None = None,
        *,
        xy: ArrayLike | None = None,
        n: int | None = None,
        kind: Sequence[str | None] | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        given = {name: v for name, v in (("lat", lat), ("lon", lon), ("xy", xy), ("n", n)) if v is not None}
        if list(given) not in (["lat", "lon"], ["xy"], ["n"]):
            got = ", ".join(given) or "nothing"
            raise InvalidParameter(f"`Locations` takes `lat` and `lon`, or `xy`, or `n`, got {got}.")
        sides: dict[str, Floats] = {}
        for name, side in given.items() if n is None else ():
            try:
                sides[name] = freeze(np.asarray(side, dtype=np.float64))
            except (TypeError, ValueError):
                raise InvalidTraces(f"`{name}` must hold numbers.", code="E_NUMBER") from None
            if not np.all(np.isfinite(sides[name])):
                raise InvalidTraces(f"`{name}` must be finite: it holds NaN or infinity.", code="E_NUMBER")
        size = require_whole("n", n, 1) if n is not None else len(next(iter(sides.values())))
        shape = (size, 2) if xy is not None else (size,)
        if any(side.shape != shape for side in sides.values()):
            got = ", ".join(str(side.shape) for side in sides.values())
            raise InvalidTraces(
                f"`lat` and `lon` must be vectors of one length, and `xy` of shape (R, 2), got {got}.", code="E_SHAPE"
            )
        if size == 0:
            raise InvalidTraces("there must be at least one location.", code="E_EMPTY")
        if lat is not None and (np.abs(sides["lat"]).max() > 90 or np.abs(sides["lon"]).max() > 360):
            raise InvalidTraces("`lat` must be in [-90, 90] and `lon` in [-360, 360] degrees.", code="E_OUTSIDE")
        words = {
            "kind": None if kind is None else tuple("" if word is None else str(word) for word in kind),
            "ids": None if ids is None else tuple(map(str, ids)),
        }
        for what, values in words.items():
            if values is not None and len(values) != size:
                raise InvalidTraces(f"`{what}` must be {size}, one per place, got {len(values)}.", code="E_SHAPE")
        if words["ids"] is not None and len(set(words["ids"])) < size:
            raise InvalidTraces("`ids` must differ from place to place.", code="E_INDEX")
        for name, value in ({"n": size, "has_coordinates": n is None} | sides | words).items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        # a place can be somebody's home: sizes only
        sort = "lat, lon" if self.lat is not None else "xy" if self.xy is not None else "without coordinates"
        return f"Locations({self.n} places, {sort})"

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
        """Return the places with these numbers, in that order."""
        keep = np.asarray(places, dtype=np.int64)
        parts: dict[str, Any] = {side: values[keep] for side, values in self.coordinates.items()} or {"n": len(keep)}
        parts |= {what: own and [own[i] for i in keep] for what, own in (("kind", self.kind), ("ids", self.ids))}
        return Locations(**parts)

    def append(self, more: "Locations") -> "Locations":
        """Return these places and then others with the same sort of coordinates."""
        both: dict[str, Any] = {s: np.concatenate([values, getattr(more, s)]) for s, values in self.coordinates.items()}
        both = both or {"n": self.n + more.n}
        if self.ids is not None and more.ids is not None:
            both["ids"] = (*self.ids, *more.ids)
        if self.kind is not None or more.kind is not None:
            both["kind"] = (*(self.kind or [""] * self.n), *(more.kind or [""] * more.n))
        return Locations(**both)

    def points(self) -> Floats:
        """Return `xy` in kilometres, or (R, 3) from the centre of the globe."""
        if self.lat is not None and self.lon is not None:
            return to_xyz(self.lat, self.lon)
        return self.planar()

    def nearest(self, points: Floats) -> tuple[Ints, Floats]:
        """Return the place nearest to each of `points`, given as `points()` gives them, and its distance in km."""
        from scipy.spatial import cKDTree

        km, place = cKDTree(self.points()).query(points)
        return np.asarray(place, dtype=np.int64), np.asarray(km, dtype=np.float64)

    def distance(self, r: ArrayLike, r_next: ArrayLike) -> Floats:
        """Return d(r, r') in kilometres, broadcast over both: haversine, Euclid, or 0/1 without coordinates."""
        i, j = np.asarray(r), np.asarray(r_next)
        if self.xy is not None:
            step = self.xy[i] - self.xy[j]
            return np.asarray(np.hypot(step[..., 0], step[..., 1]), dtype=np.float64)
        if self.lat is not None and self.lon is not None:
            return arc_km(self.lat[i], self.lon[i], self.lat[j], self.lon[j])
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

    def match(self, there: "Locations") -> Ints:
        """
        Return the number on the map `there` of each of these places, -1 where it is not on it.

        Places are told by ids where both maps have them, else by their exact position, else by their number.

        Examples
        --------
        >>> Locations(n=2, ids=["mill", "inn"]).match(Locations(n=3, ids=["inn", "church", "mill"])).tolist()
        [2, 0]

        """
        named = self.ids is not None and there.ids is not None

        def keys(where: Locations) -> list[Any]:
            if named:
                return list(where.ids or ())
            sides = where.coordinates.values()
            return list(map(tuple, np.column_stack(list(sides)).tolist())) if sides else list(range(where.n))

        number = {key: i for i, key in reversed(list(enumerate(keys(there))))}
        return np.array([number.get(key, -1) for key in keys(self)], dtype=np.int64)


@dataclass(frozen=True)
class Form:
    """
    How a file writes its records, and nothing of what they say: what `write_visits` needs to write others alike.

    `record` is one of "fixes" (positions at times), "events" (check-ins, calls), "visits" (from, until) and "trips"
    (one row from here to there); a line of points in one row is fixes of a trip. `unit` is who a user is: a "person", a
    "trip" where the file names nobody, or a "vehicle-day". `columns` maps roles to the file's names for them, in the
    file's order; roles are user, start, end, lat, lon, place, kind, trip, points, and for trips end_lat, end_lon,
    end_place. `offset` tells whether times are written with their offset from UTC, and `zones` whether that is the one
    of each place; `interval` is the usual number of seconds between two fixes, and `slot` that of a slot of the day.
    """

    record: str = "visits"
    unit: str = "person"
    columns: Mapping[str, str] = field(default_factory=dict)
    offset: bool = False
    interval: int = 0
    zones: bool = False
    slot: int = 0

    def __post_init__(self) -> None:
        require_choice("record", self.record, RECORDS)
        require_choice("unit", self.unit, tuple(UNITS))


@dataclass(frozen=True, eq=False)
class Records:
    """
    What a file says, one entry per record in any order, before anything is cleaned and before places are found.

    Users are numbers in `users`. `start` and `end` are local seconds; `end` is `start` itself for what has no length. A
    trip is two records with one `trip` number, where it begins and where it ends; a line of points is as many. Where
    people were is `lat`, `lon` (NaN where it is missing) or `place`, a number in `places` (-1 where it is missing), or
    both; `kind` is a number in `kinds`, -1 where it is missing. `fixes` is how many fixes each stands for.
    """

    user: Codes
    users: tuple[str, ...] = field(repr=False)
    start: Ints
    end: Ints
    lat: Floats | None = None
    lon: Floats | None = None
    place: Codes | None = None
    places: tuple[str, ...] = field(default=(), repr=False)
    kind: Codes | None = None
    kinds: tuple[str, ...] = field(default=(), repr=False)
    trip: Codes | None = None
    fixes: Ints | None = None
    tz: str = "UTC"
    form: Form = Form()

    def __len__(self) -> int:
        return len(self.user)

    def __repr__(self) -> str:
        return f"Records({len(self)} {self.form.record} of {len(self.users)} users)"

    def select(self, chosen: NDArray[Any]) -> "Records":
        """Return the chosen records (numbers or a mask), in that order."""
        names = [name for name in ROW if name != "end" or self.end is not self.start]
        columns = {name: column[chosen] for name in names if (column := getattr(self, name)) is not None}
        if self.end is self.start:
            columns["end"] = columns["start"]  # one array for both, where nothing has a length
        return replace(self, **columns)

    def sort(self) -> "Records":
        """Return the records by user and start; those of one instant in the order of the file."""
        user, start = self.user, self.start
        same = user[1:] == user[:-1]
        if np.all((user[1:] > user[:-1]) | (same & (start[1:] >= start[:-1]))):
            return self
        span = int(np.ptp(start)) + 1
        return self.select(np.argsort(user * np.int64(span) + (start - start.min()), kind="stable"))

    def number_users(self) -> "Records":
        """Return the records with the users that have one, numbered in their old order."""
        present = np.bincount(self.user, minlength=len(self.users)) > 0
        if present.all():
            return self
        users = tuple(label for label, here in zip(self.users, present.tolist(), strict=True) if here)
        return replace(self, user=(np.cumsum(present) - 1).astype(np.int32)[self.user], users=users)


ROW = ("user", "start", "end", "lat", "lon", "place", "kind", "trip", "fixes")  # arrays of `Records`


@dataclass(frozen=True)
class Preparation:
    """
    What became of an input: counts only, so that it can be shown to anyone who may see the file's name.

    `dropped` counts records by the reason why they are not in the visits, `changed` those that are there otherwise
    than the file has them. `cells` counts the places by the width of their cell in metres; empty where places are
    the file's own. `places_rare` were not published, and what happened there is told of a coarser cell. `left_out` are
    the names of columns that are not read, or not written again.
    """

    name: str = ""
    format: str = ""
    rows: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    changed: Mapping[str, int] = field(default_factory=dict)
    users: int = 0
    visits: int = 0
    places: int = 0
    places_rare: int = 0
    cells: Mapping[str, int] = field(default_factory=dict)
    form: Form = Form()
    tz: str = "UTC"
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        plain["form"] = dict(vars(self.form), columns=dict(self.form.columns))
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in plain.items()}

    def count(self, *, dropped: Mapping[str, int] | None = None, **values: Any) -> "Preparation":
        """Return the same with these records dropped as well, and with other `values`."""
        total = Counter(self.dropped)
        total.update(dropped or {})
        return replace(self, dropped={reason: int(n) for reason, n in total.items() if n}, **values)


@dataclass(frozen=True, eq=False)
class Visits:
    """
    What was observed: one row per observation, sorted by user, then by start.

    Parameters
    ----------
    user
        Who, a number 0 .. U-1.
    start, end
        From when to when, in local seconds since 1970 (or datetime64); equal for a check-in, a call, a single fix.
    place
        Where, a number 0 .. R-1 of `locations`.
    locations
        The places.
    users
        What the users are called, U labels that differ; by default their numbers.
    trip
        The trip a row belongs to, where the file has trips: rows of one number and one user are one trip. -1 for none.
    tz
        The zone of the local clock.
    form
        How the file wrote its records.
    preparation
        What became of the file.

    Examples
    --------
    >>> town = Locations(n=2, ids=["mill", "inn"])
    >>> visits = Visits([1, 0, 0], [50, 900, 100], [50, 960, 400], [1, 0, 1], town, users=["ann", "bob"])
    >>> visits
    Visits(3 visits of 2 users at 2 places)
    >>> visits.to_frame()[["user", "place"]].values.tolist()
    [['ann', 'inn'], ['ann', 'mill'], ['bob', 'inn']]

    """

    user: Codes
    start: Ints
    end: Ints
    place: Codes
    locations: Locations
    users: tuple[Any, ...] = field(repr=False)
    trip: Codes | None
    tz: str
    form: Form
    preparation: Preparation | None
    offsets: Ints = field(repr=False)  # (U + 1,) rows offsets[u] : offsets[u + 1] are those of user u

    def __init__(
        self,
        user: ArrayLike,
        start: ArrayLike,
        end: ArrayLike,
        place: ArrayLike,
        locations: Locations,
        *,
        users: Sequence[Any] | NDArray[Any] | None = None,
        trip: ArrayLike | None = None,
        tz: str = "UTC",
        form: Form | None = None,
        preparation: Preparation | None = None,
    ) -> None:
        if not isinstance(locations, Locations):
            raise InvalidParameter(f"`locations` must be a `Locations`, got {type(locations).__name__}.")
        given = {"user": user, "start": start, "end": end, "place": place} | ({} if trip is None else {"trip": trip})
        columns = {name: whole_numbers(name, column) for name, column in given.items()}
        sizes = {name: len(column) for name, column in columns.items()}
        if len(set(sizes.values())) > 1:
            raise InvalidTraces(f"columns of visits must be of equal length, got {sizes}.", code="E_SHAPE")
        n = sizes["user"]
        if n == 0:
            raise InvalidTraces("there must be at least one visit.", code="E_EMPTY")
        labels = plain_labels(np.arange(int(columns["user"].max()) + 1) if users is None else users)
        zone_of(tz)
        for name, low, size in (("user", 0, len(labels)), ("place", 0, len(locations)), ("trip", -1, 1 << 31)):
            if name in columns and (columns[name].min() < low or columns[name].max() >= size):
                raise InvalidTraces(f"`{name}` must be in {low} .. {size - 1}; some are not.", code="E_INDEX")
        late = int(np.count_nonzero(columns["end"] < columns["start"]))
        if late:
            raise InvalidTraces(f"`end` must not be before `start`; {late} of {n} are.", code="E_ORDER")
        who, when = columns["user"], columns["start"]
        if not np.all((who[1:] > who[:-1]) | ((who[1:] == who[:-1]) & (when[1:] >= when[:-1]))):
            order = np.lexsort((when, who))
            columns = {name: column[order] for name, column in columns.items()}
        small = {"user", "place", "trip"}
        kept = {
            name: freeze(c.astype(np.int32 if name in small else np.int64, copy=False)) for name, c in columns.items()
        }
        if form is None:
            instant = bool(np.array_equal(kept["start"], kept["end"]))
            form = Form("trips" if trip is not None else "events" if instant else "visits")
        offsets = freeze(np.searchsorted(kept["user"], np.arange(len(labels) + 1, dtype=np.int32)).astype(np.int64))
        rest = {"locations": locations, "users": labels, "trip": kept.get("trip"), "tz": tz, "form": form}
        for name, value in (kept | rest | {"preparation": preparation, "offsets": offsets}).items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.user)

    def __repr__(self) -> str:
        # never the content: a traceback or a log may show this
        return f"Visits({len(self)} visits of {self.U} users at {self.R} places)"

    @property
    def U(self) -> int:
        """Return the number of users."""
        return len(self.users)

    @property
    def R(self) -> int:
        """Return the number of places."""
        return len(self.locations)

    def rows(self, user: int) -> slice:
        """Return the rows of one user."""
        return slice(int(self.offsets[user]), int(self.offsets[user + 1]))

    def replace(self, **columns: Any) -> "Visits":
        """Return the same visits with other columns or attributes."""
        own = {name: getattr(self, name) for name in ("user", "start", "end", "place", "locations")}
        own |= {name: getattr(self, name) for name in ("users", "trip", "tz", "form", "preparation")}
        return Visits(**(own | columns))

    def select(self, rows: ArrayLike) -> "Visits":
        """Return the chosen rows (numbers or a mask); users and places keep their numbers."""
        chosen = np.asarray(rows)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        columns = {name: getattr(self, name)[chosen] for name in ("user", "start", "end", "place")}
        return self.replace(**columns, trip=None if self.trip is None else self.trip[chosen])

    def of_users(self, users: ArrayLike) -> "Visits":
        """Return the visits of the users with these numbers (or of a mask), who are numbered anew in that order."""
        chosen = check_numbers("users", users, self.U, "E_USER")
        if len(np.unique(chosen)) < len(chosen):
            raise InvalidParameter(f"`users` must hold different numbers in 0 .. {self.U - 1}.", code="E_USER")
        first, size = self.offsets[chosen], np.diff(self.offsets)[chosen]
        rows = np.repeat(first - np.cumsum(size) + size, size) + np.arange(size.sum())
        columns = {name: getattr(self, name)[rows] for name in ("start", "end", "place")}
        return self.replace(
            **columns,
            user=np.repeat(np.arange(len(chosen), dtype=np.int32), size),
            users=[self.users[u] for u in chosen],
            trip=None if self.trip is None else self.trip[rows],
        )

    def visitors(self) -> Ints:
        """Return how many users visit each of the R places."""
        return count_users(self.user, self.place, self.R)

    def to_frame(self, names: str | None = None) -> "pd.DataFrame":
        """
        Return a table with the columns user, start, end, place, lat, lon, kind and trip, one row per visit.

        Users by their labels, places by their ids (by number where they have none), local times without a zone.
        `names` are those of another tool: "trackintel" (times with their zone) or "skmob" (scikit-mobility).
        """
        import pandas as pd

        where, R = self.locations, self.R
        ids = np.arange(R) if where.ids is None else np.array(where.ids, dtype=object)
        kind = np.full(R, None) if where.kind is None else np.array([word or None for word in where.kind], dtype=object)
        lat, lon = (np.full(R, np.nan) if side is None else side for side in (where.lat, where.lon))
        trip = np.full(len(self), -1, dtype=np.int32) if self.trip is None else self.trip
        labels = np.empty(self.U, dtype=object)
        labels[:] = self.users
        table = {
            "user": labels[self.user],
            "start": self.start.astype("datetime64[s]"),
            "end": self.end.astype("datetime64[s]"),
            "place": ids[self.place],
            "lat": lat[self.place],
            "lon": lon[self.place],
            "kind": kind[self.place],
            "trip": pd.arrays.IntegerArray(trip.copy(), trip < 0),
        }
        frame = pd.DataFrame(table)
        if names is None:
            return frame
        called = dict(zip(COLUMNS, NAMES[require_choice("names", names, tuple(NAMES))], strict=True))
        if names == "trackintel":
            zone = zone_of(self.tz)
            for column in ("start", "end"):
                first = np.ones(len(self), dtype=bool)  # of the hour that a day of 25 hours has twice, the first
                frame[column] = frame[column].dt.tz_localize(zone, ambiguous=first, nonexistent="shift_forward")
        return frame.rename(columns=called)

    def traces(self, *, step_minutes: float = 20, max_gap: float | None = None) -> "Traces":
        """
        Return slots of `step_minutes`, one row per user and local day: see `elsewhere.data.slots.fill_slots`.

        `max_gap`: for how many minutes a slot without a visit takes the place of the last one; None chooses.
        """
        from elsewhere.data.slots import fill_slots

        return fill_slots(self, step_minutes=step_minutes, max_gap=max_gap)


def share_map(*several: Visits) -> tuple[Visits, ...]:
    """
    Return all visits on one map, the union of theirs, so that the same place has the same number in each.

    Places are told by their keys, see `Locations.match`; nothing is guessed from positions that are only near.
    """
    common = several[0].locations
    for each in several[1:]:
        missing = np.flatnonzero(each.locations.match(common) < 0)
        if len(missing):
            common = common.append(each.locations.select(missing))
    return tuple(each.replace(place=each.locations.match(common)[each.place], locations=common) for each in several)


def whole_numbers(name: str, column: ArrayLike) -> NDArray[np.integer]:
    """Return a column as whole numbers; times may be datetime64. Read-only columns of the right type are not copied."""
    array = np.asarray(column)
    if array.dtype.kind == "M":
        if np.any(np.isnat(array)):
            raise InvalidTraces(f"`{name}` holds a missing time.", code="E_DATE")
        array = array.astype("datetime64[s]").astype(np.int64)
    if array.ndim != 1:
        raise InvalidTraces(f"`{name}` must be a vector, got {array.ndim} dimensions.", code="E_SHAPE")
    if array.dtype.kind == "f" and np.all(np.isfinite(array)) and np.all(array == np.floor(array)):
        array = array.astype(np.int64)
    if array.size and array.dtype.kind not in "iu":
        raise InvalidTraces(f"`{name}` must hold whole numbers, no NaN; got dtype {array.dtype}.", code="E_NUMBER")
    return array if array.size else array.astype(np.int64)


def check_numbers(name: str, numbers: ArrayLike, size: int, code: str) -> Ints:
    """Return numbers in 0 .. size - 1, given as such or as a mask of that size; refuse others, and none at all."""
    rows = np.asarray(numbers)
    if rows.dtype == bool and rows.shape == (size,):
        rows = np.flatnonzero(rows)
    if rows.size == 0:
        raise InvalidTraces(f"`{name}` chooses nothing.", code="E_EMPTY")
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= size:
        raise InvalidParameter(f"`{name}` must hold numbers in 0 .. {size - 1}, or a mask of {size}.", code=code)
    return rows.astype(np.int64)


def plain_labels(labels: Iterable[Any]) -> tuple[Any, ...]:
    """Return the labels of users as a tuple of plain values; refuse missing ones and doubles."""
    values = tuple(v.item() if isinstance(v, np.generic) else v for v in labels)
    # NaN and NaT differ from themselves; pandas' NA does not even say so
    if any(v is None or (v == v) is not True for v in values):
        raise InvalidTraces("`users` holds a missing label (None or NaN).", code="E_USER")
    try:
        doubled = len(set(values)) < len(values)
    except TypeError:
        raise InvalidTraces("`users` must hold plain labels (numbers or text).", code="E_USER") from None
    if doubled:
        raise InvalidTraces("`users` must name each user once: U labels that differ.", code="E_USER")
    return values
