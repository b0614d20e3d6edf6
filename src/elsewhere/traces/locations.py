"""The places of a map, and the distance between them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.errors import InvalidParameter, InvalidTraces, require_whole
from elsewhere.traces.arrays import Floats, Ints, frozen

EARTH_RADIUS_KM = 6371.0088


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
        self._place(lat, lon, xy, n)
        people = None if category_users is None else np.asarray(category_users, dtype=np.int64)
        for what, given in (("names", names), ("categories", categories), ("category_users", people)):
            if given is not None and len(given) != self.n:
                raise InvalidTraces(f"`{what}` must be {self.n}, one per place, got {len(given)}.", code="E_SHAPE")
        for what, words in (("names", names), ("categories", categories)):
            if words is not None:
                object.__setattr__(self, what, tuple(str(word) for word in words))
        if people is not None:
            object.__setattr__(self, "category_users", frozen(people))

    def _place(self, lat: ArrayLike | None, lon: ArrayLike | None, xy: ArrayLike | None, n: int | None) -> None:
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
            object.__setattr__(self, "xy", frozen(points))
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
            object.__setattr__(self, "lat", frozen(north))
            object.__setattr__(self, "lon", frozen(east))
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

    def select(self, places: ArrayLike) -> "Locations":
        """Return the places with these numbers, in that order, with their names and categories."""
        keep = np.asarray(places, dtype=np.int64)
        where: dict[str, Any] = {
            side: a[keep] for side in ("lat", "lon", "xy") if (a := getattr(self, side)) is not None
        }
        words: dict[str, Any] = {
            what: [said[i] for i in keep]
            for what in ("names", "categories")
            if (said := getattr(self, what)) is not None
        }
        people = None if self.category_users is None else self.category_users[keep]
        return Locations(**(where or {"n": len(keep)}), **words, category_users=people)

    def and_also(self, more: "Locations") -> "Locations":
        """Return these places and then others of the same kind, with their names."""
        where: dict[str, Any] = {
            side: np.concatenate([a, getattr(more, side)])
            for side in ("lat", "lon", "xy")
            if (a := getattr(self, side)) is not None
        }
        names = None if self.names is None or more.names is None else (*self.names, *more.names)
        return Locations(**(where or {"n": self.n + more.n}), names=names)

    def called(self, **words: Any) -> "Locations":
        """Return the same places with other `names`, `categories` or `category_users`."""
        where = {side: a for side in ("lat", "lon", "xy") if (a := getattr(self, side)) is not None}
        said = {what: getattr(self, what) for what in ("names", "categories", "category_users")}
        return Locations(**(where or {"n": self.n}), **{**said, **words})

    def ids(self) -> tuple[str, ...] | None:
        """Return what tells a place in another file: its name; its number where it has no position either; or None."""
        if self.names is not None:
            return self.names
        return None if self.has_coordinates else tuple(map(str, range(self.n)))

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


def apart(model: Locations, here: Locations) -> str:
    """How the maps of a model and of traces differ, in counts: a coordinate can be somebody's home."""
    kinds = [
        "latitude and longitude" if m.lat is not None else "x and y" if m.xy is not None else "no coordinates"
        for m in (model, here)
    ]
    if kinds[0] != kinds[1]:
        return f"the model has {len(model)} places with {kinds[0]}, the traces have {len(here)} with {kinds[1]}"
    text = f"the model has {len(model)} places, the traces have {len(here)}"
    if not model.has_coordinates:
        return text
    both = len(set(_points(model)) & set(_points(here)))
    return f"{text}, and {both} of them are the same" + (
        ", in another order" if both == len(model) == len(here) else ""
    )


def numbers_on(here: Locations, there: Locations) -> Ints | None:
    """
    Return the number on the map `there` of each place of `here`, told by its name or its exact position.

    -1 where there is none; None where the maps have neither names nor positions in common.

    Examples
    --------
    >>> numbers_on(Locations(n=2, names=["mill", "inn"]), Locations(n=3, names=["inn", "church", "mill"])).tolist()
    [2, 0]

    """
    names, known = here.ids(), there.ids()
    if names is not None and known is not None and any(names):
        number = {name: i for i, name in enumerate(known) if name}
        by_name = np.array([number.get(name, -1) for name in names], dtype=np.int64)
        if not (here.has_coordinates and there.has_coordinates):
            return by_name
        # ids may be each file's own: the same ones must lie at the same positions
        if np.all(by_name >= 0) and _points(here) == _points(there.select(by_name)):
            return by_name
    if (here.lat is None) != (there.lat is None) or (here.xy is None) != (there.xy is None) or not here.has_coordinates:
        return None
    at = {point: i for i, point in reversed(list(enumerate(_points(there))))}
    return np.array([at.get(point, -1) for point in _points(here)], dtype=np.int64)


def _points(locations: Locations) -> list[tuple[float, ...]]:
    sides = [side for side in (locations.lat, locations.lon, locations.xy) if side is not None]
    return list(map(tuple, np.column_stack(sides).tolist()))


def _coordinates(name: str, values: Any) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTraces(f"`{name}` must hold numbers.", code="E_NUMBER") from None
    if not np.all(np.isfinite(array)):
        raise InvalidTraces(f"`{name}` must be finite: it holds NaN or infinity.", code="E_NUMBER")
    return array
