"""A map that nobody's traces have shaped: equal cells of a box on the globe, which the caller gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from elsewhere.errors import InvalidParameter, require_between, require_whole
from elsewhere.traces.model import Floats, Ints, Locations
from elsewhere.traces.regions import MOST_REGIONS, Regions


@dataclass(frozen=True, eq=False)
class Lattice(Regions):
    """The cells of a box (south, west, north, east), row by row from the south-west; `rings` are their outlines."""

    box: tuple[float, float, float, float]
    rows: int
    columns: int

    def __repr__(self) -> str:
        return f"Lattice({self.rows} x {self.columns} places)"

    def middle(self) -> tuple[Floats, Floats]:
        """Return latitude and longitude of the middle of the box."""
        south, west, north, east = self.box
        lon = west + (east - west) % 360 / 2
        return np.array([(south + north) / 2]), np.array([(lon + 180) % 360 - 180])

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
