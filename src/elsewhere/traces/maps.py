"""
Find the map: the one a caller gives, or the part of the globe where people are nearly all the time.

A caller may give a box, a table of places, polygons of a GeoJSON file (RFC 7946), equal cells, and a table of allowed
moves between places (E36). A ring of a polygon that steps over the antimeridian is unrolled, and one that goes round a
pole is closed over it, so that regions of the far north or of the Pacific need no special drawing.

What lies outside the map is known to be somewhere else: no place can say it, and it is never filled over.
"""

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import (
    ElsewhereError,
    InvalidParameter,
    InvalidTraces,
    require_between,
    require_whole,
)
from elsewhere.traces.columns import find_roles, normalize_name
from elsewhere.traces.formats import open_table
from elsewhere.data.ground import find_town, is_installed, similar_towns
from elsewhere.traces.model import (
    EARTH_RADIUS_KM,
    Floats,
    Ints,
    Locations,
    Mask,
    match_names,
    to_lat_lon,
    to_xyz,
)
from elsewhere.traces.places import cell_centres, grid_cells
from elsewhere.traces.sources import Table, read_labels, read_numbers

Box = tuple[float, float, float, float]
TRACE_FILE = re.compile(r"(?P<before>.*?)(input[._])?traces?(\.[a-z]+)*", re.IGNORECASE)
PLACE_FILE = re.compile(
    r"(tower|cell|antenna|bts|site|station|stop|place|venue|poi|location|sensor|reader|gate|door|zone)", re.IGNORECASE
)
ENDINGS = ("", ".csv", ".txt", ".csv.gz", ".txt.gz", ".parquet")
MOST_BESIDE, LARGEST_BESIDE = 24, 1 << 26  # files beside an input, and bytes of each, that are looked into for places
MOST_FILES = 1_000  # of a folder, and of those in it, that are looked at for them
LARGEST_FILE = 1 << 28
MOST_REGIONS = 100_000
MAPS = ("auto", "whole")
# the rule of map="auto" and its figures: docs/decisions.md, the map
TOWN_KM, TOWN_CELLS = 40.0, 400  # of a grid about a town
COARSE_METRES = 25_000.0
REACH_KM = 75.0  # a town with all that people reach from it on a day
MOST_SLOTS_IN = 0.8  # of the slots, everybody counting alike, that the towns hold together
MOST_PEOPLE_IN = 0.9  # of the people, who are there more than half of their time
A_TOWN = 0.05  # of the slots: what holds so many is never cut off
MOST_TOWNS = 40  # more of them are no towns but a country
SMALLER = 3.0  # a map is cut only where that makes it so many times less wide
BY_ID, BY_POINT = ("from", "to"), ("from_lat", "from_lon", "to_lat", "to_lon")
CODE = "E_FEASIBLE"


def parse_box(box: Any) -> Box:
    """Return a box as four numbers: south, west, north, east in degrees."""
    try:
        south, west, north, east = (float(side) for side in box)
    except (TypeError, ValueError):
        raise InvalidParameter(
            "`box` must be four numbers, south, west, north and east in degrees, such as 48.8,2.2,48.9,2.5."
        ) from None
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
    notes: tuple[str, ...] = ()

    def place_of(self, lat: Floats, lon: Floats) -> Ints:
        """Return the place of each point: the nearest."""
        return self.locations.place_of(lat, lon)


def read_places(source: Any, *, encoding: str = "utf-8", column: str = "", ids: Sequence[str] = ()) -> Map:
    """
    Return the places that a caller gives.

    These are a `Locations`, a table with `lat` and `lon` (or `x` and `y` in km) and perhaps an id column, or lines
    "x, y" in km (SGLT). `column` is the name of the column of places in the traces, `ids` are values of it.
    """
    if isinstance(source, Map):
        return source
    if isinstance(source, Locations):
        place_names = source.names
        return Map(source, None if place_names is None else {name: i for i, name in enumerate(place_names) if name})
    table = open_table(source, encoding=encoding)
    roles = find_roles(table.names or tuple(table.columns), None) if table.headed else {}
    plain = {name.strip().lower(): name for name in table.columns}
    if {"lat", "lon"} <= roles.keys():
        names = [roles["lat"], roles["lon"]]
    elif {"x", "y"} <= plain.keys():
        names = [plain["x"], plain["y"]]
    elif not table.headed and len(table.columns) == 2:
        names = list(table.columns)
    else:
        raise table.error("places need columns `lat` and `lon`, or lines `x, y` in km.", "E_COLUMN")
    pair = np.column_stack([read_numbers(table, name) for name in names])
    bad = ~np.isfinite(pair).all(axis=1)
    if bad.any():
        raise table.error("a coordinate that is no number.", "E_NUMBER", int(np.argmax(bad)))
    locations = Locations(pair[:, 0], pair[:, 1]) if "lat" in roles else Locations(xy=pair)
    own = _find_id_column(table, roles, [name for name in table.columns if name not in names], column, ids)
    if own is None:
        return Map(locations, notes=(f"{table.name} has no column of ids: its rows are numbered from 0",))
    code, words = read_labels(table, own)
    if np.any(code < 0) or len(words) < table.rows:
        raise table.error(f"column {own!r} must hold one id per place, no two equal.", "E_INDEX")
    names = [words[c] for c in code]
    usual = own in (roles.get("place"), roles.get("user"))
    notes = () if usual else (f"column {table.label(own)!r} of {table.name} was read as the id of places",)
    return Map(locations.relabel(names=names), {name: row for row, name in enumerate(names)}, notes)


def _find_id_column(
    table: Table, roles: Mapping[str, str], names: Sequence[str], column: str, ids: Sequence[str]
) -> str | None:
    """
    Return the column of a table of places that has their ids, None where no column has them.

    That is the one called as the column of places in the traces, else one with a known name; if that holds none of
    these `ids`, the one with the most of them, if these are more than half and no value occurs twice.
    """
    word = normalize_name(column)
    same = next((n for n in names if n == column or (table.headed and word and normalize_name(n) == word)), None)
    usual = same or roles.get("place") or roles.get("user")
    wanted = {*ids} - {"-1"}
    if same is not None or not wanted or (usual is not None and wanted & {*read_labels(table, usual)[1]}):
        return usual
    most, best = len(wanted) / 2, usual
    for name in names:
        try:
            words = read_labels(table, name)[1]
        except InvalidTraces:
            continue  # values that can be no ids
        if len(words) == table.rows and len(wanted & {*words}) > most:
            most, best = len(wanted & {*words}), name
    return best


def find_places_beside(
    source: Any, column: str, ids: tuple[str, ...] = (), encoding: str = "utf-8"
) -> tuple[Map, Path] | None:
    """
    Return the places in a file beside a file of traces, and that file: a_locations.csv for a_traces.csv.gz.

    So is another table there, if it lists places (`_lists_places`) and has a position for every one of these `ids`,
    the values of the traces' `column` of places.
    """
    if not isinstance(source, (str, PathLike)):
        return None
    path = Path(source)
    folder = path if path.is_dir() else path.parent
    names = [f"{name}{ending}" for name in dict.fromkeys((places_file_name(source), "locations")) for ending in ENDINGS]
    beside = next((folder / name for name in names if (folder / name).is_file()), None)
    if beside is not None:
        return read_places(beside, encoding=encoding, column=column, ids=ids), beside
    there = folder.rglob("*") if path.is_dir() else folder.iterdir()
    others = sorted(each for each in islice(there, MOST_FILES) if each.is_file() and each != path) if ids else []
    for other in others if len(others) <= MOST_BESIDE else []:
        tabular = other.name.lower().endswith(ENDINGS[1:]) and not other.name.startswith((".", "_"))
        if tabular and other.stat().st_size <= LARGEST_BESIDE:
            try:
                candidate = read_places(other, encoding=encoding, column=column, ids=ids)
            except ElsewhereError:
                continue  # another kind of table
            held = candidate.number is not None and {*ids} - {"-1"} <= candidate.number.keys()
            if held and _lists_places(other, encoding, column, ids):
                return candidate, other
    return None


def _lists_places(path: Path, encoding: str, column: str, ids: tuple[str, ...]) -> bool:
    """
    Return whether a table that has all `ids` is one of places, not of people and their homes.

    Its id column says so (`site_id`, or as in the traces), or is a mere `id` and the file is called so (towers.csv), or
    has ids that are no numbers, which could be anybody's.
    """
    table = open_table(path, encoding=encoding)
    roles = find_roles(table.names, None) if table.headed and table.names else {}
    if roles.keys() & {"time", "utc", "local", "date", "slot", "arrived"}:
        return False
    user = roles.get("user", "").strip().lower()
    if "place" in roles or column in table.names or not all(map(str.isdigit, ids)):
        return user in ("", "id", column.lower())
    return user == "id" and PLACE_FILE.search(path.stem) is not None


def places_file_name(path: str | PathLike[str]) -> str:
    """Return the name, without ending, of the file of places: a_locations for a_traces.csv, else locations."""
    match = TRACE_FILE.fullmatch(Path(path).name)
    return f"{match['before'] if match else ''}locations"


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
                    inside ^= _is_inside(turned[near], lat[near], ring)
                place[near[inside]] = r
        return place


@dataclass(frozen=True, eq=False)
class FoundMap(Regions):
    """Places that were found in other people: a point is at the nearest, if that is within `reach` km and the box."""

    reach: float = np.inf
    box: Box | None = None

    def place_of(self, lat: Floats, lon: Floats) -> Ints:
        """Return the nearest place of each point; -1 where it is out of reach."""
        place, apart = self.locations.nearest(to_xyz(lat, lon))
        on = (apart <= self.reach) & (True if self.box is None else in_box(self.box, lat, lon))
        return np.where(on, place, -1).astype(np.int64)


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
    document = _load_json(source, name) if isinstance(source, (str, PathLike)) else source
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


def _load_json(source: Any, name: str) -> Any:
    try:
        path = Path(source)
        if not path.is_file() or path.stat().st_size > LARGEST_FILE:
            raise InvalidTraces(f"{name} cannot be opened as a file of regions.", code="E_OPEN")
        return json.loads(path.read_bytes().decode("utf-8-sig"), parse_constant=_refuse_constant)
    except OSError:
        raise InvalidTraces(f"{name} cannot be opened as a file of regions.", code="E_OPEN") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidTraces):
            raise
        raise InvalidTraces(f"{name} is not GeoJSON.", code="E_JSON") from None


def _refuse_constant(_: str) -> float:
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
                points = _unroll_ring(points)
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


def _unroll_ring(points: Floats) -> Floats:
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


def _is_inside(x: Floats, y: Floats, ring: Floats) -> Any:
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
    north, east = to_lat_lon(to_xyz(np.array([lat]), np.array([lon])))
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
    """Return the lattice that five numbers, a text "S,W,N,E,N", or a town and a number, "Tokyo,400", ask for."""
    words: Sequence[Any] = grid.split(",") if isinstance(grid, str) else grid
    if isinstance(grid, str) and len(words) <= 2 and not _is_number(words[0]):
        return _around_town(words[0], words[1] if len(words) == 2 else str(TOWN_CELLS))
    try:
        south, west, north, east = (float(word) for word in words[:4])
        (cells,) = (int(word) for word in words[4:])
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"`grid` must be five numbers S,W,N,E,N: south, west, north, east in degrees and how many cells, or a town "
            f"and how many cells, got {grid!r}."
        ) from None
    return make_lattice(south, west, north, east, cells)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _around_town(name: str, cells: str) -> Lattice:
    """Return so many cells of the TOWN_KM x TOWN_KM about the centre of a town, which its name alone decides."""
    if not cells.strip().isdigit():
        raise InvalidParameter(f"`grid` must be a town and how many cells, got {cells.strip()!r} cells.")
    if not is_installed():
        raise InvalidParameter(
            f"`grid` = {name.strip()!r} needs the names of towns: pip install 'elsewhere[maps]', or give five numbers "
            "S,W,N,E,N."
        )
    town = find_town(name)
    if town is None:
        like = similar_towns(name)
        meant = f"did you mean {' or '.join(like)}? Else give" if like else "give"
        raise InvalidParameter(
            f"`grid`: no town {name.strip()!r} is known; {meant} another one nearby, or five numbers S,W,N,E,N."
        )
    up = np.degrees(TOWN_KM / 2 / EARTH_RADIUS_KM)
    across = min(up / max(np.cos(np.radians(town.lat)), 1e-3), 179.0)
    west, east = ((town.lon + side + 180) % 360 - 180 for side in (-across, across))
    return make_lattice(max(town.lat - up, -90.0), west, min(town.lat + up, 90.0), east, int(cells))


class Area(NamedTuple):
    """
    The map: `holds` tells which points lie on it, `by` how it was found, `km` how wide it is if it was cut.

    It is "whole" where nothing is cut off, "box" or "regions" where the caller draws it, "auto" where it was cut to
    where people are.
    """

    by: str
    holds: Callable[[Floats, Floats], Mask]
    km: float | None = None


def check_box(box: Box, position: tuple[Floats, Floats], name: str) -> None:
    """Refuse a box that holds no point, or fewer than with latitude and longitude exchanged."""
    lat, lon = position
    inside, turned = int(in_box(box, lat, lon).sum()), int(in_box(box, lon, lat).sum())
    if inside and inside >= turned:
        return
    hint = f"; with latitude and longitude swapped {turned:,} would" if turned else ""
    raise InvalidTraces(
        f"{name or 'the input'}: {inside:,} of {len(lat):,} rows lie in the `box`{hint}. It is south, west, north, "
        "east in degrees.",
        code="E_OUTSIDE",
    )


def find_main_area(user: Ints, slot: Ints, lat: Floats, lon: Floats) -> Area | None:
    """
    Find the part of the globe where people are nearly all the time; None where cutting the rest off gains nothing.

    The map is the cells of 25 km that `town_cells` returns. The others are cut off if the map is then less than a
    third as wide. The order of fixes does not matter.
    """
    cells, cell = np.unique(grid_cells(lat, lon, COARSE_METRES), return_inverse=True)
    x = to_xyz(*cell_centres(cells, COARSE_METRES))
    # a map is at least as wide as a cell: cells this near to each other could not be cut to a third of their width
    if np.linalg.norm(np.ptp(x, axis=0)) < SMALLER * COARSE_METRES / 1000:
        return None
    inside = town_cells(user, slot, cell, x)
    # twice the distance of the farthest point from the middle of a box around all, of the towns and of everything
    middles = ((points, (points.min(axis=0) + points.max(axis=0)) / 2) for points in (x[inside], x))
    narrow, wide = (float(2 * np.linalg.norm(points - middle, axis=1).max()) for points, middle in middles)
    width = max(narrow, COARSE_METRES / 1000)
    if inside.all() or wide < SMALLER * width:
        return None
    held_cells = cells[inside]
    return Area("auto", lambda lat, lon: np.isin(grid_cells(lat, lon, COARSE_METRES), held_cells), width)


def town_cells(user: Ints, slot: Ints, cell: Ints, x: Floats) -> Mask:
    """
    Tell which cells, with centres `x` (n, 3) in km, are the towns where people are nearly all the time.

    Everybody counts alike, whatever the number of their slots and fixes. The cell with most of all slots within 75 km
    of it is a town with all these cells; then the one with most of what is left, until nine of ten people are in a town
    more than half of their time, the towns hold four fifths of all slots, and no further one holds a twentieth. More
    than 40 towns are a country: all cells.
    """
    n = len(x)
    # a slot counts once for each cell that it touches
    order = np.lexsort((cell, slot, user))
    user, slot, cell = user[order], slot[order], cell[order]
    new = np.ones(len(user), dtype=bool)
    new[1:] = (np.diff(user) != 0) | (np.diff(slot) != 0) | (np.diff(cell) != 0)
    user, cell = user[new], cell[new]
    everybody = np.flatnonzero(np.bincount(user))
    part = 1 / np.bincount(user)[user] / len(everybody)
    share = np.bincount(cell, part, minlength=n)
    from scipy.spatial import cKDTree

    pairs = cKDTree(x).query_pairs(REACH_KM, output_type="ndarray")
    a, b = (np.concatenate([pairs[:, i], pairs[:, 1 - i], np.arange(n)]) for i in (0, 1))
    inside = np.zeros(n, dtype=bool)
    for _ in range(MOST_TOWNS + 1):
        # rounded, so that equal towns are equal whatever the order of a sum; of equals the first in the order of cells
        people_held = np.round(np.bincount(a, np.where(inside, 0, share)[b], minlength=n), 12)
        best = int(np.argmax(people_held))
        settled = np.bincount(user, part * inside[cell])[everybody] > 0.5 / len(everybody) + 1e-12
        nearly_all = share[inside].sum() >= MOST_SLOTS_IN - 1e-12 and np.mean(settled) >= MOST_PEOPLE_IN
        if people_held[best] == 0 or (nearly_all and people_held[best] < A_TOWN):
            return inside
        inside[b[a == best]] = True
    return np.ones(n, dtype=bool)


@dataclass(frozen=True, eq=False)
class Moves:
    """Allowed moves as they were given: by ids of places, or by points, each of which stands for the nearest place."""

    ids: tuple[NDArray[Any], NDArray[Any]] | None = field(default=None, repr=False)
    points: tuple[Floats, Floats] | None = field(default=None, repr=False)  # (n, 2) lat, lon each

    def matrix(self, locations: Locations) -> Any:
        """Return the moves between these places as a sparse matrix (R, R) of 0 and 1."""
        if self.points is not None:
            if locations.lat is None:
                raise InvalidParameter(
                    "`feasible` has moves between points, and these places have no latitude and longitude: give "
                    "columns `from` and `to` with their ids.",
                    code=CODE,
                )
            here, there = (locations.nearest(to_xyz(*point.T))[0] for point in self.points)
            return matrix_of(here, there, len(locations))
        assert self.ids is not None  # noqa: S101 - one of the two
        names = locations.names if locations.names is not None else [str(place) for place in range(len(locations))]
        here, there = (match_names(side, names) for side in self.ids)
        known = (here >= 0) & (there >= 0)
        if not known.any():
            why = (
                "places are numbered from 0 here; give columns `from_lat`, `from_lon`, `to_lat` and `to_lon`, or a map "
                "with ids (`locations`)"
                if locations.names is None
                else "give the ids of the map, or columns `from_lat`, `from_lon`, `to_lat` and `to_lon`"
            )
            raise InvalidParameter(f"`feasible` names no move between two places of the map: {why}.", code=CODE)
        if not known.all():
            warnings.warn(
                f"{int((~known).sum()):,} of {len(known):,} rows of `feasible` name a place that is not on the map, "
                "and are left out.",
                stacklevel=2,
            )
        return matrix_of(here[known], there[known], len(locations))


def matrix_of(here: Ints, there: Ints, R: int) -> Any:
    """Return moves as a sparse matrix (R, R) of 0 and 1, with 1 for every stay."""
    from scipy import sparse

    key = np.unique(np.concatenate([here.astype(np.int64) * R + there, np.arange(R, dtype=np.int64) * (R + 1)]))
    return sparse.csr_array((np.ones(len(key)), (key // R, key % R)), shape=(R, R))


def read_moves(source: Any, *, encoding: str = "utf-8") -> Moves:
    """
    Read a table of allowed moves, one a row, from the first place to the second: not the other way round.

    Columns `from` and `to` hold ids of places, or their numbers from 0 where places have no ids; or `from_lat`,
    `from_lon`, `to_lat` and `to_lon` hold points, each of which stands for the place nearest to it.

    Examples
    --------
    >>> from elsewhere.traces.model import Locations
    >>> moves = read_moves({"from": ["a", "b"], "to": ["b", "c"]})
    >>> moves.matrix(Locations(n=3, names=["a", "b", "c"])).toarray().astype(int).tolist()
    [[1, 1, 0], [0, 1, 1], [0, 0, 1]]

    """
    table = open_table(source, encoding=encoding)
    plain = {name.strip().lower(): name for name in table.columns}
    if set(BY_POINT) <= plain.keys():
        at = np.column_stack([read_numbers(table, plain[name]) for name in BY_POINT])
        bad = ~np.isfinite(at).all(axis=1) | (np.abs(at) > [90, 180, 90, 180]).any(axis=1)
        if bad.any():
            raise table.error("a coordinate that is no number of degrees.", CODE, int(np.argmax(bad)))
        return Moves(points=(at[:, :2], at[:, 2:]))
    if not set(BY_ID) <= plain.keys():
        raise table.error(
            "a table of allowed moves needs columns `from` and `to`, or `from_lat`, `from_lon`, `to_lat` and `to_lon`.",
            CODE,
        )
    sides = []
    for name in BY_ID:
        code, words = read_labels(table, plain[name])
        if (code < 0).any():
            raise table.error(f"column {name!r} must hold an id in every row.", CODE, int(np.argmax(code < 0)))
        sides.append(np.array(words, dtype=object)[code])
    return Moves(ids=(sides[0], sides[1]))
