"""
Read the maps that a caller gives: a box, a table of places, polygons of a GeoJSON file (RFC 7946), equal cells.

A ring of a polygon that steps over the antimeridian is unrolled, and one that goes round a pole is closed over it, so
that regions of the far north or of the Pacific need no special drawing.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from elsewhere.errors import (
    ElsewhereError,
    InvalidParameter,
    InvalidTraces,
    require_between,
    require_whole,
)
from elsewhere.traces.columns import roles_of
from elsewhere.traces.inputs import open_table
from elsewhere.traces.model import Floats, Ints, Locations, Mask, in_space, on_globe
from elsewhere.traces.tables import labels, numbers

Box = tuple[float, float, float, float]
TRACE_FILE = re.compile(r"(?P<before>.*?)(input[._])?traces?(\.[a-z]+)*", re.IGNORECASE)
KINDS_OF_PLACE = (
    "towers",
    "cell_towers",
    "cells",
    "antennas",
    "bts",
    "sites",
    "stations",
    "stops",
    "places",
    "venues",
    "pois",
)
ENDINGS = ("", ".csv", ".txt", ".csv.gz", ".txt.gz", ".parquet")
LARGEST_FILE = 1 << 28
MOST_REGIONS = 100_000


def parsed_box(box: Any) -> tuple[float, float, float, float] | None:
    """Return a box as four numbers: south, west, north, east in degrees; None where there is none."""
    if box is None:
        return None
    try:
        south, west, north, east = (float(side) for side in box)
    except (TypeError, ValueError):
        raise InvalidParameter("`box` must be (south, west, north, east) in degrees.") from None
    for name, side, limit in (("south", south, 90), ("north", north, 90), ("west", west, 180), ("east", east, 180)):
        require_between(f"box: {name}", side, -limit, limit)
    if south >= north:
        raise InvalidParameter(f"`box` must be (south, west, north, east), got south {south:g}, north {north:g}.")
    return south, west, north, east


def in_box(box: Box, lat: Floats, lon: Floats) -> Mask:
    """Tell which points lie in the box (south, west, north, east); one whose west is east of its east wraps."""
    south, west, north, east = box
    across = (lon >= west) | (lon <= east) if west > east else (lon >= west) & (lon <= east)
    return np.asarray((lat >= south) & (lat <= north) & across)


@dataclass(frozen=True, eq=False)
class Map:
    """Places given by the caller; `number` maps their ids to numbers, None where they are numbered 0 .. R-1."""

    locations: Locations
    number: dict[str, int] | None = None

    def place_of(self, lat: Floats, lon: Floats) -> Ints:
        """Return the place of each point: the nearest."""
        return nearest_places(self.locations, lat, lon)


def read_places(source: Any, *, encoding: str = "utf-8") -> Map:
    """
    Return the places that a caller gives.

    These are a `Locations`, a table with `lat` and `lon` (or `x` and `y` in km) and perhaps an id column, or lines
    "x, y" in km (SGLT).
    """
    if isinstance(source, Map):
        return source
    if isinstance(source, Locations):
        called = source.names
        return Map(source, None if called is None else {name: i for i, name in enumerate(called) if name})
    table = open_table(source, encoding=encoding)
    roles = roles_of(table.names or tuple(table.columns), None, table.name) if table.headed else {}
    plain = {name.strip().lower(): name for name in table.columns}
    if {"lat", "lon"} <= roles.keys():
        names = [roles["lat"], roles["lon"]]
    elif {"x", "y"} <= plain.keys():
        names = [plain["x"], plain["y"]]
    elif not table.headed and len(table.columns) == 2:
        names = list(table.columns)
    else:
        raise table.refuse("places need columns `lat` and `lon`, or lines `x, y` in km.", "E_COLUMN")
    pair = np.column_stack([numbers(table, name) for name in names])
    bad = ~np.isfinite(pair).all(axis=1)
    if bad.any():
        raise table.refuse("a coordinate that is no number.", "E_NUMBER", int(np.argmax(bad)))
    locations = Locations(pair[:, 0], pair[:, 1]) if "lat" in roles else Locations(xy=pair)
    ids = roles.get("place") or roles.get("user")
    if ids is None:
        return Map(locations)
    code, known = labels(table, ids)
    if np.any(code < 0) or len(known) < table.rows:
        raise table.refuse(f"column {ids!r} must hold one id per place, no two equal.", "E_INDEX")
    names = [known[c] for c in code]
    return Map(locations.called(names=names), {name: row for row, name in enumerate(names)})


def places_beside(source: Any, ids: tuple[str, ...] = (), encoding: str = "utf-8") -> tuple[Map, Path] | None:
    """
    Return the places in a file beside a file of traces, and that file: a_locations.csv for a_traces.csv.gz.

    So is a table of towers, stations or the like, if it has a position for every one of these `ids`.
    """
    if not isinstance(source, (str, PathLike)):
        return None
    path = Path(source)
    folder = path if path.is_dir() else path.parent
    names = [f"{name}{ending}" for name in dict.fromkeys((name_beside(source), "locations")) for ending in ENDINGS]
    beside = next((folder / name for name in names if (folder / name).is_file()), None)
    if beside is not None:
        return read_places(beside, encoding=encoding), beside
    for name in (f"{word}{ending}" for word in KINDS_OF_PLACE for ending in ENDINGS):
        if (folder / name).is_file() and folder / name != path:
            try:
                candidate = read_places(folder / name, encoding=encoding)
            except ElsewhereError:
                continue  # another kind of table
            if ids and candidate.number is not None and {*ids} <= candidate.number.keys():
                return candidate, folder / name
    return None


def name_beside(path: str | PathLike[str]) -> str:
    """Return the name, without ending, of the file of places: a_locations for a_traces.csv, else locations."""
    match = TRACE_FILE.fullmatch(Path(path).name)
    return f"{match['before'] if match else ''}locations"


def nearest_places(locations: Locations, lat: Floats, lon: Floats) -> Ints:
    """Return the given place nearest to each point."""
    if locations.lat is None or locations.lon is None:
        raise InvalidParameter("`locations` must have `lat` and `lon` to find the place of coordinates.")
    return locations.nearest(in_space(lat, lon))[0]


@dataclass(frozen=True, eq=False)
class Regions:
    """Places with an outline: `rings[r]` are the closed rings (n, 2) of place r, as lon, lat, holes among them."""

    locations: Locations
    rings: tuple[tuple[Floats, ...], ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.rings)

    def __repr__(self) -> str:
        return f"Regions({len(self)} places)"

    def place_of(self, lat: Floats, lon: Floats) -> Ints:
        """Return the region of each point, of several the first in the file; -1 where there is none."""
        place = np.full(len(lat), -1, dtype=np.int64)
        for r, rings in enumerate(self.rings):
            every = np.concatenate(rings)
            west, south = every.min(axis=0)
            east, north = every.max(axis=0)
            # a whole turn brings the point into the range of an unrolled ring
            turned = west + (lon - west) % 360
            near = np.flatnonzero((place < 0) & (lat >= south) & (lat <= north) & (turned <= east))
            if len(near):
                inside = np.zeros(len(near), dtype=bool)
                for ring in rings:
                    inside ^= _inside(turned[near], lat[near], ring)
                place[near[inside]] = r
        return place


def read_regions(source: Any) -> Regions:
    """
    Return the polygons of a GeoJSON file, or of the object it holds.

    Examples
    --------
    >>> square = [[6.0, 46.0], [7.0, 46.0], [7.0, 47.0], [6.0, 47.0], [6.0, 46.0]]
    >>> regions = read_regions({"type": "Polygon", "coordinates": [square]})
    >>> regions.place_of(np.array([46.5, 48.0]), np.array([6.5, 6.5])).tolist()
    [0, -1]

    """
    if isinstance(source, Regions):
        return source
    name = Path(source).name if isinstance(source, (str, PathLike)) else "`regions`"
    document = _loaded(source, name) if isinstance(source, (str, PathLike)) else source
    outlines, names = [], []
    for number, geometry in enumerate(_geometries(document, name)):
        rings = _rings(geometry, f"{name}, feature {number}")
        if rings:
            outlines.append(rings)
            names.append(str(number))
    if not outlines:
        raise InvalidTraces(f"{name} holds no polygon.", code="E_EMPTY")
    if len(outlines) > MOST_REGIONS:
        raise InvalidTraces(f"{name} holds {len(outlines)} regions, more than {MOST_REGIONS}.", code="E_TOO_LARGE")
    middle = np.array([_middle(rings) for rings in outlines])
    return Regions(Locations(middle[:, 0], middle[:, 1], names=names), tuple(outlines))


def _loaded(source: Any, name: str) -> Any:
    try:
        path = Path(source)
        if not path.is_file() or path.stat().st_size > LARGEST_FILE:
            raise InvalidTraces(f"{name} cannot be opened as a file of regions.", code="E_OPEN")
        return json.loads(path.read_bytes().decode("utf-8-sig"), parse_constant=_no_constant)
    except OSError:
        raise InvalidTraces(f"{name} cannot be opened as a file of regions.", code="E_OPEN") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidTraces):
            raise
        raise InvalidTraces(f"{name} is not GeoJSON.", code="E_JSON") from None


def _no_constant(_: str) -> float:
    raise ValueError("NaN and infinity are no numbers in JSON")


def _geometries(document: Any, name: str) -> Iterator[dict[str, Any]]:
    kind = document.get("type") if isinstance(document, dict) else None
    if kind == "FeatureCollection" and isinstance(document.get("features"), list):
        for feature in document["features"]:
            geometry = feature.get("geometry") if isinstance(feature, dict) else None
            if isinstance(geometry, dict):
                yield geometry
    elif kind == "Feature" and isinstance(document.get("geometry"), dict):
        yield document["geometry"]
    elif kind in ("Polygon", "MultiPolygon"):
        yield document
    elif isinstance(document, dict):
        raise InvalidTraces(f"{name} is not a GeoJSON collection of features.", code="E_JSON")
    else:
        raise InvalidParameter("`regions` must be a GeoJSON file of polygons, or the object it holds.")


def _rings(geometry: dict[str, Any], where: str) -> tuple[Floats, ...]:
    """Return the rings of a Polygon or MultiPolygon; nothing of points and lines."""
    kind = geometry.get("type")
    if kind not in ("Polygon", "MultiPolygon"):
        return ()
    coordinates: Any = geometry.get("coordinates")
    polygons = [coordinates] if kind == "Polygon" else coordinates
    rings: list[Floats] = []
    try:
        for polygon in polygons or []:
            outer = None
            for ring in polygon:
                points = np.array([[float(x), float(y)] for x, y, *_ in ring])
                if len(points) < 4 or not np.all(np.isfinite(points)):
                    raise ValueError
                if np.any(np.abs(points[:, 1]) > 90) or np.any(np.abs(points[:, 0]) > 360):
                    raise InvalidTraces(f"{where}: a corner outside the globe.", code="E_OUTSIDE")
                points = _unrolled(points)
                if outer is None:
                    outer = points
                # a hole lies on the same turn as the ring around it
                points = points + [360 * np.round((outer[:, 0].mean() - points[:, 0].mean()) / 360), 0]
                rings.append(points)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidTraces):
            raise
        raise InvalidTraces(f"{where}: a ring is not four or more corners [lon, lat].", code="E_NUMBER") from None
    # the parts of a MultiPolygon that was cut at the antimeridian come together again
    first = rings[0][:, 0].mean() if rings else 0.0
    return tuple(ring + [360 * np.round((first - ring[:, 0].mean()) / 360), 0] for ring in rings)


def _unrolled(points: Floats) -> Floats:
    """Return a closed ring whose longitudes do not jump; one that goes round a pole is closed over the pole."""
    if not np.array_equal(points[0], points[-1]):
        points = np.vstack([points, points[:1]])
    step = np.diff(points[:, 0])
    turn = np.where(np.abs(step) > 180, -360 * np.sign(step), 0.0)
    points = np.column_stack([points[:, 0] + np.insert(np.cumsum(turn), 0, 0.0), points[:, 1]])
    if abs(points[-1, 0] - points[0, 0]) > 180:
        pole = 90.0 if points[:, 1].mean() > 0 else -90.0
        points = np.vstack([points, [points[-1, 0], pole], [points[0, 0], pole], points[:1]])
    return points


def _inside(x: Floats, y: Floats, ring: Floats) -> Any:
    """Tell which points lie in a ring: a ray to the east crosses an odd number of its edges."""
    inside = np.zeros(len(x), dtype=bool)
    for (x0, y0), (x1, y1) in pairwise(ring):
        if y0 != y1:
            crosses = (y0 > y) != (y1 > y)
            inside ^= crosses & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
    return inside


def _middle(rings: tuple[Floats, ...]) -> tuple[float, float]:
    """Return the centroid of the first ring's area, on the plane of its degrees; else that of its corners."""
    x, y = rings[0][:-1].T
    x_next, y_next = rings[0][1:].T
    cross = x * y_next - x_next * y
    area = cross.sum() / 2
    if abs(area) > 1e-12:
        lon = float(((x + x_next) * cross).sum() / (6 * area))
        lat = float(((y + y_next) * cross).sum() / (6 * area))
    else:
        lon, lat = float(x.mean()), float(y.mean())
    north, east = on_globe(in_space(np.array([lat]), np.array([lon])))
    return float(north[0]), float(east[0])


@dataclass(frozen=True, eq=False)
class Lattice(Regions):
    """The cells of a box (south, west, north, east), row by row from the south-west; `rings` are their outlines."""

    box: tuple[float, float, float, float]
    rows: int
    columns: int

    def __repr__(self) -> str:
        return f"Lattice({self.rows} x {self.columns} places)"

    def place_of(self, lat: Floats, lon: Floats) -> Ints:
        """Return the cell of each point; -1 outside the box. A point on an edge is in the cell north-east of it."""
        south, west, north, east = self.box
        up = np.floor((lat - south) / (north - south) * self.rows)
        across = np.floor((lon - west) % 360 / ((east - west) % 360) * self.columns)
        inside = (up >= 0) & (up < self.rows) & (across < self.columns)
        return np.where(inside, np.where(inside, up * self.columns + across, 0), -1).astype(np.int64)


def make_lattice(south: float, west: float, north: float, east: float, cells: int) -> Lattice:
    """
    Return at most `cells` nearly square cells of a box in degrees; one whose west is east of its east wraps.

    Examples
    --------
    >>> make_lattice(35.5, 139.5, 35.9, 140.0, 400)
    Lattice(20 x 20 places)

    """
    for name, side, limit in (("south", south, 90), ("north", north, 90), ("west", west, 180), ("east", east, 180)):
        require_between(f"grid: {name}", side, -limit, limit)
    require_whole("grid: N", cells, 1, MOST_REGIONS)
    if south >= north or west == east:
        raise InvalidParameter(
            f"`grid` must be south, west, north, east and a number of cells, got {south:g}, {west:g}, {north:g}, "
            f"{east:g}: it has no area."
        )
    wide = (east - west) % 360
    shape = (north - south) / (wide * max(np.cos(np.radians((south + north) / 2)), 1e-3))
    rows = int(np.clip(round(np.sqrt(cells * shape)), 1, cells))
    columns = cells // rows
    up, across = np.linspace(south, north, rows + 1), west + np.linspace(0, wide, columns + 1)
    rings = tuple(
        (np.array([[w, s], [e, s], [e, n], [w, n], [w, s]]),) for s, n in pairwise(up) for w, e in pairwise(across)
    )
    lat, lon = np.repeat((up[:-1] + up[1:]) / 2, columns), np.tile((across[:-1] + across[1:]) / 2, rows)
    where = Locations(np.round(lat, 6), np.round((lon + 180) % 360 - 180, 6))
    return Lattice(where, rings, (south, west, north, east), rows, columns)


def read_grid(grid: str | Sequence[float]) -> Lattice:
    """Return the lattice that five numbers, or a text "S,W,N,E,N", ask for."""
    words = grid.split(",") if isinstance(grid, str) else grid
    try:
        south, west, north, east = (float(word) for word in words[:4])
        (cells,) = (int(word) for word in words[4:])
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"`grid` must be five numbers S,W,N,E,N: south, west, north, east in degrees and how many cells, got "
            f"{grid!r}."
        ) from None
    return make_lattice(south, west, north, east, cells)
