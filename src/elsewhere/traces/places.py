"""
From coordinates to places: a grid, the joining of places that few people visit, the paper's merging (E74), given ones.

Distances between places of the globe are chords through it: Euclidean, equal to the arc within 1 cm at 20 km, and
without a seam at the antimeridian or at the poles.
"""

import heapq
import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from elsewhere.errors import ElsewhereError, InvalidParameter, InvalidTraces, require_whole
from elsewhere.traces.columns import roles_of
from elsewhere.traces.inputs import open_table
from elsewhere.traces.model import EARTH_RADIUS_KM, Floats, Ints, Locations, in_space, on_globe
from elsewhere.traces.tables import labels, numbers

MOST_GRID_CELLS = 20_000  # beyond that the grid is made coarser before anything is merged
COLUMN_BITS = 32
SHARED = 8  # visitors that a place needs to stay as it is (docs/decisions/0013-map.md)
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


def grid_cells(lat: Floats, lon: Floats, metres: float) -> Ints:
    """
    The number of the grid cell of each point; cells are about `metres` wide and high, everywhere on the globe.

    Rows of equal height run from pole to pole; each is cut into the whole number of columns that makes its cells
    nearly square. Longitudes 180 and -180 are one meridian, and cells near a pole are no sliver (B18, B24, B25).
    """
    row = np.clip(np.floor((lat + 90) / _row_height(metres)), 0, _row_count(metres) - 1).astype(np.int64)
    columns = _column_count(row, metres)
    column = np.floor(((lon + 180) % 360) / 360 * columns).astype(np.int64) % columns
    return row << COLUMN_BITS | column


def cell_centres(cells: Ints, metres: float) -> tuple[Floats, Floats]:
    """
    Latitude and longitude of the middle of each grid cell, to six decimals.

    The middle, not the mean of the fixes: the mean of one person's fixes is that person's door.
    """
    row, column = cells >> COLUMN_BITS, cells & ((1 << COLUMN_BITS) - 1)
    lat = -90 + (row + 0.5) * _row_height(metres)
    lon = -180 + (column + 0.5) * 360 / _column_count(row, metres)
    return np.round(lat, 6), np.round(lon, 6)


def _row_count(metres: float) -> int:
    return max(1, round(np.pi * EARTH_RADIUS_KM * 1000 / metres))


def _row_height(metres: float) -> float:
    return 180 / _row_count(metres)


def _column_count(row: Ints, metres: float) -> Ints:
    middle = np.radians(-90 + (row + 0.5) * _row_height(metres))
    around = 2 * np.pi * EARTH_RADIUS_KM * 1000 * np.cos(middle)
    return np.asarray(np.maximum(1, np.round(around / metres)), dtype=np.int64)


def check_grid(metres: float) -> None:
    """Refuse a width of grid cells that is none."""
    if not 1 <= metres <= 100_000:
        raise InvalidParameter(f"`grid_metres` must be in [1, 100000], got {metres!r}.")


def make_grid(lat: Floats, lon: Floats, metres: float, most: int = MOST_GRID_CELLS) -> tuple[Locations, Ints, float]:
    """
    The visited grid cells as places, the place of each point, and the width of the cells in the end.

    A grid that would have more than `most` visited cells is made twice as coarse until it has not.
    """
    check_grid(metres)
    while True:
        cells, place = np.unique(grid_cells(lat, lon, metres), return_inverse=True)
        if len(cells) <= most:
            return Locations(*cell_centres(cells, metres)), place.astype(np.int64), metres
        metres *= 2


def reduce_places(locations: Locations, visits: Ints, *, cells: int) -> tuple[Locations, Ints]:
    """
    The paper's reduction of places (E74): 1,491 to 400 in its data.

    While more than `cells` remain, the pair with the smallest ‖x_i - x_j‖ max(1, w_i) max(1, w_j), w the visits, is
    replaced by its visit-weighted centroid. Of equal pairs the first in the order of places goes first, so the
    result is a function of its arguments; no visit is lost. A merged place takes the position of its first member
    in the order of places.

    Parameters
    ----------
    locations, visits
        The places, with coordinates, and how often each is visited.
    cells
        How many places may remain.

    Returns
    -------
    The remaining places, and for each old place the number of the one it is now part of.

    Examples
    --------
    >>> town = Locations(xy=[[0, 0], [3, 0], [4, 0]])
    >>> fewer, becomes = reduce_places(town, np.array([5, 1, 3]), cells=2)
    >>> fewer.xy.tolist(), becomes.tolist()
    ([[0.0, 0.0], [3.75, 0.0]], [0, 1, 1])

    """
    require_whole("cells", cells, 1)
    if len(visits) != len(locations) or np.any(visits < 0):
        raise InvalidTraces("`visits` must hold one count per place, none below 0.", code="E_SHAPE")
    if len(locations) <= cells:
        return locations, np.arange(len(locations))
    x, into = _merge(_points(locations), visits.astype(np.float64), cells)
    kept, becomes = np.unique(into, return_inverse=True)
    return _placed(locations, x[kept], kept, becomes)


def share_places(locations: Locations, place: Ints, user: Ints, *, cells: int) -> tuple[Locations, Ints]:
    """
    Join places that few people visit with their neighbours: fine where many people are, coarse where few.

    While a place has fewer than eight visitors (than half of all people, if these are fewer than 16), the one with the
    fewest, of equals the first in the order of places, joins the nearest other place, and the two lie at their
    centroid, weighted by visitors. Above `cells`, the rest is merged as by `reduce_places`, with visitors for visits.

    Eight, because of any eight people about five are among the seven of ten that the product preset learns from, and
    a place that fewer than five of those visit is merged away before anything is learnt (E31).

    Parameters
    ----------
    locations
        The places, with coordinates.
    place, user
        The distinct pairs of a place and a user who visits it.
    cells
        How many places may remain.

    Returns
    -------
    The remaining places, and for each old place the number of the one it is now part of.

    Examples
    --------
    >>> street = Locations(xy=[[0, 0], [1, 0], [5, 0]])
    >>> ten, two = np.arange(10), np.arange(2)
    >>> fewer, becomes = share_places(street, np.repeat([0, 1, 2], [10, 2, 10]), np.r_[ten, two, ten], cells=9)
    >>> becomes.tolist(), fewer.xy.round(2).tolist()
    ([0, 0, 1], [[0.17, 0.0], [5.0, 0.0]])

    """
    require_whole("cells", cells, 1)
    n = len(locations)
    x, into = _join(_points(locations), place, user, min(SHARED, len(np.unique(user)) // 2))
    kept, becomes = np.unique(into, return_inverse=True)
    if len(kept) > cells:
        U = int(user.max()) + 1
        pairs = np.unique(becomes[place] * U + user)
        visitors = np.bincount(pairs // U, minlength=len(kept)).astype(np.float64)
        x[kept], again = _merge(x[kept], visitors, cells)
        kept, becomes = np.unique(kept[again][becomes], return_inverse=True)
    return _placed(locations, x[kept], kept, becomes.reshape(n))


def _join(x: Floats, place: Ints, user: Ints, least: int) -> tuple[Floats, Ints]:
    """Join places of fewer than `least` visitors with the nearest: where each lies now, and what it is part of."""
    n, globe = len(x), x.shape[1] == 3
    x, into = x.copy(), np.arange(n)
    weight = np.bincount(place, minlength=n).astype(np.float64)
    poor = weight < least
    # who visits matters only as long as they are few: a union of two small sets
    few = [set[int]() for _ in range(n)]
    for p, u in zip(place[poor[place]].tolist(), user[poor[place]].tolist(), strict=True):
        few[p].add(u)
    waiting = [(len(few[p]), p) for p in np.flatnonzero(poor).tolist()]
    heapq.heapify(waiting)
    axes = [axis.copy() for axis in x.T]
    apart, side = np.empty(n), np.empty(n)
    remaining = n
    while waiting and remaining > 1:
        count, i = heapq.heappop(waiting)
        if into[i] != i or not poor[i] or count != len(few[i]):
            continue  # an entry from before it grew
        apart[:] = 0
        for axis in axes:
            np.subtract(axis, axis[i], out=side)
            np.multiply(side, side, out=side)
            np.add(apart, side, out=apart)
        apart[i] = np.inf
        j = int(np.argmin(apart))
        total = weight[i] + weight[j]
        share = weight[i] / total if total > 0 else 0.5
        centre = np.array([share * axis[i] + (1 - share) * axis[j] for axis in axes])
        if globe:
            centre *= EARTH_RADIUS_KM / (np.linalg.norm(centre) or EARTH_RADIUS_KM)
        weight[j], into[i] = total, j
        for axis, value in zip(axes, centre, strict=True):
            axis[j], axis[i] = value, np.inf
        x[j] = centre
        remaining -= 1
        if poor[j]:
            few[j] |= few[i]
            poor[j] = len(few[j]) < least
            if poor[j]:
                heapq.heappush(waiting, (len(few[j]), j))
    while np.any(into != into[into]):
        into = into[into]
    return x, into


def _placed(locations: Locations, x: Floats, kept: Ints, becomes: Ints) -> tuple[Locations, Ints]:
    """The places at `x`, of which `kept` are the old numbers, and what each old place has become."""
    alone = np.bincount(becomes) == 1
    names = locations.names and [locations.names[i] * bool(own) for i, own in zip(kept, alone, strict=True)]
    if locations.xy is not None:
        return Locations(xy=x, names=names), becomes
    lat, lon = on_globe(x)
    # a place that took nobody in keeps its coordinates to the last digit, and its name
    lat[alone], lon[alone] = np.asarray(locations.lat)[kept][alone], np.asarray(locations.lon)[kept][alone]
    return Locations(lat, lon, names=names), becomes


def _points(locations: Locations) -> Floats:
    if not locations.has_coordinates:
        raise InvalidParameter("places without coordinates cannot be merged; pass `cells=None`.")
    return locations.points().copy()


def mean_points(lat: Floats, lon: Floats, group: Ints, n: int) -> tuple[Floats, Floats]:
    """
    The mean point of each of the groups 0 .. n-1 of points.

    Where all points of a group are one, that point to the last digit.
    """
    x = in_space(lat, lon)
    size = np.maximum(1, np.bincount(group, minlength=n))
    mean = np.column_stack([np.bincount(group, weights=x[:, k], minlength=n) / size for k in range(3)])
    length = np.sqrt(np.einsum("ij,ij->i", mean, mean))[:, None]
    mean_lat, mean_lon = on_globe(mean * EARTH_RADIUS_KM / np.where(length > 0, length, 1))
    first = np.zeros(n, dtype=np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    same = np.bincount(group, weights=(lat != lat[first[group]]) | (lon != lon[first[group]]), minlength=n) == 0
    return np.where(same, lat[first], mean_lat), np.where(same, lon[first], mean_lon)


def _merge(x: Floats, w: Floats, cells: int) -> tuple[Floats, Ints]:
    """
    Merge pairs until `cells` remain: where each place lies now, and the first member of the place it is part of.

    Every place keeps its cheapest partner, so that a merge costs O(n). `cost[i]` is never above the cost of i's
    cheapest partner: a merge can lower that only through the merged place, which is seen at once. Where the partner
    itself has gone or changed, the entry is stale, a lower bound, and is computed again only if it comes out smallest.
    Costs are compared squared, which keeps equal ones equal: no root is taken.
    """
    n, on_globe = len(x), x.shape[1] == 3
    position, into, remaining = x.copy(), np.arange(n), n
    ids, axes, w = np.arange(n), [column.copy() for column in x.T], w.copy()
    heavy = np.maximum(1.0, w) ** 2
    cost, partner, stale = np.empty(n), np.empty(n, dtype=np.int64), np.zeros(n, dtype=bool)
    row, step = np.empty(n), np.empty(n)

    def look(i: int) -> None:
        """Fill `row` with the costs of merging i with every other, and note the smallest."""
        row[:] = 0
        for axis in axes:
            np.subtract(axis, axis[i], out=step)
            np.multiply(step, step, out=step)
            np.add(row, step, out=row)
        # the product of the weights first: the same number from both sides of a pair
        np.multiply(heavy, heavy[i], out=step)
        np.multiply(row, step, out=row)
        row[i] = np.inf
        partner[i] = np.argmin(row)
        cost[i], stale[i] = row[partner[i]], False

    for i in range(n):
        look(i)
    while remaining > cells:
        i = int(np.argmin(cost))
        if stale[i]:
            look(i)
            continue
        i, j = sorted((i, int(partner[i])))
        share = w[i] / (w[i] + w[j]) if w[i] + w[j] > 0 else 0.5
        centre = np.array([share * axis[i] + (1 - share) * axis[j] for axis in axes])
        if on_globe:
            centre *= EARTH_RADIUS_KM / (np.linalg.norm(centre) or EARTH_RADIUS_KM)
        w[i] += w[j]
        heavy[i] = max(1.0, w[i]) ** 2
        position[ids[i]], into[ids[j]] = centre, ids[i]
        for axis, value in zip(axes, centre, strict=True):
            axis[i], axis[j] = value, np.inf  # what is infinitely far is nobody's partner
        cost[j] = np.inf
        stale |= (partner == i) | (partner == j)
        look(i)
        nearer = (row < cost) | ((row == cost) & (partner > i) & np.isfinite(row))
        cost[nearer], partner[nearer], stale[nearer] = row[nearer], i, False
        remaining -= 1
        if remaining < 0.7 * len(ids):
            alive = np.isfinite(axes[0])
            new = np.cumsum(alive) - 1
            ids, w, heavy, cost, stale = ids[alive], w[alive], heavy[alive], cost[alive], stale[alive]
            axes, partner = [axis[alive] for axis in axes], new[partner[alive]]
            row, step = np.empty(remaining), np.empty(remaining)
    while np.any(into != into[into]):
        into = into[into]
    return position, into


@dataclass(frozen=True, eq=False)
class Map:
    """Places given by the caller; `number` maps their ids to numbers, None where they are numbered 0 .. R-1."""

    locations: Locations
    number: dict[str, int] | None = None

    def place_of(self, lat: Floats, lon: Floats) -> Ints:
        """The place of each point: the nearest."""
        return nearest_places(self.locations, lat, lon)


def read_places(source: Any, *, encoding: str = "utf-8") -> Map:
    """
    The places of a `Locations`, of a table with `lat` and `lon` (or `x` and `y` in km) and perhaps an id column, or of
    lines "x, y" in km (SGLT).
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
    The places in a file beside a file of traces (or in a folder), and that file: a_locations.csv for a_traces.csv.gz.

    So is a table of towers, stations or the like, if it has a position for every one of these `ids`.
    """
    if not isinstance(source, (str, PathLike)):
        return None
    path = Path(source)
    folder = path if path.is_dir() else path.parent
    names = [f"{name}{ending}" for name in dict.fromkeys((name_beside(source), "locations")) for ending in ENDINGS]
    told = next((folder / name for name in names if (folder / name).is_file()), None)
    if told is not None:
        return read_places(told, encoding=encoding), told
    for name in (f"{word}{ending}" for word in KINDS_OF_PLACE for ending in ENDINGS):
        if (folder / name).is_file() and folder / name != path:
            try:
                found = read_places(folder / name, encoding=encoding)
            except ElsewhereError:
                continue  # another kind of table
            if ids and found.number is not None and {*ids} <= found.number.keys():
                return found, folder / name
    return None


def name_beside(path: str | PathLike[str]) -> str:
    """What the places of a file of traces are called, without ending: a_locations for a_traces.csv, else locations."""
    found = TRACE_FILE.fullmatch(Path(path).name)
    return f"{found['before'] if found else ''}locations"


def nearest_places(locations: Locations, lat: Floats, lon: Floats) -> Ints:
    """The given place nearest to each point."""
    if locations.lat is None or locations.lon is None:
        raise InvalidParameter("`locations` must have `lat` and `lon` to find the place of coordinates.")
    return locations.nearest(in_space(lat, lon))[0]
