"""
Find the map, and which place every fix on it is at: the one it names, a region, a grid cell, or the cell of a stay.

What lies outside the map is known to be somewhere else: no place can say it, and it is never filled over.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from elsewhere.errors import InvalidParameter, InvalidTraces, require_choice
from elsewhere.traces.fixes import Fixes, Slots
from elsewhere.traces.maps import Box, Regions, in_box, nearest_places
from elsewhere.traces.model import Floats, Ints, Locations, Mask, in_space
from elsewhere.traces.places import MOST_GRID_CELLS, as_keys, cell_centres, grid_cells, make_grid, stay_places

PLACES = ("shared", "merge", "grid", "stays")
MAPS = ("auto", "whole")
# the rule of map="auto" and its figures: docs/decisions/0013-map.md
COARSE_METRES = 25_000.0
REACH_KM = 75.0  # a town with all that people reach from it on a day
MOST_SLOTS_IN = 0.8  # of the slots, everybody counting alike, that the towns hold together
MOST_PEOPLE_IN = 0.9  # of the people, who are there more than half of their time
A_TOWN = 0.05  # of the slots: what holds so many is never cut off
MOST_TOWNS = 40  # more of them are no towns but a country
SMALLER = 3.0  # a map is cut only where that makes it so many times less wide


class Area(NamedTuple):
    """
    The map: `holds` tells which points lie on it, `by` how it was found, `km` how wide it is if it was cut.

    It is "whole" where nothing is cut off, "box" or "regions" where the caller draws it, "auto" where it was cut to
    where people are.
    """

    by: str
    holds: Callable[[Floats, Floats], Mask]
    km: float | None = None


def area_of(
    where: str,
    box: Box | None,
    regions: Regions | None,
    user: Ints,
    slot: Ints,
    position: tuple[Floats, Floats] | None,
    name: str,
) -> Area:
    """Find the map of fixes of `user` in `slot` (any number that tells slots apart) at `position`."""
    require_choice("map", where, MAPS)
    if regions is not None:
        if position is None:
            raise InvalidParameter("`regions` need fixes with `lat` and `lon`.")
        if not np.any(regions.place_of(*position) >= 0):
            raise InvalidTraces(f"{name or 'the input'}: no row lies in any of the regions.", code="E_OUTSIDE")
        return Area("regions", lambda lat, lon: regions.place_of(lat, lon) >= 0)
    if box is not None:
        if position is None:
            raise InvalidParameter("`box` needs fixes with `lat` and `lon`.")
        _refuse_another_box(box, position, name)
        return Area("box", lambda lat, lon: in_box(box, lat, lon))
    main = None if where == "whole" or position is None else main_area(user, slot, *position)
    return main or Area("whole", lambda lat, lon: np.ones(len(lat), dtype=bool))


def _refuse_another_box(box: Box, position: tuple[Floats, Floats], name: str) -> None:
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


def main_area(user: Ints, slot: Ints, lat: Floats, lon: Floats) -> Area | None:
    """
    Find the part of the globe where people are nearly all the time; None where cutting the rest off gains nothing.

    The map is the `towns` of a grid of 25 km. What is outside of them is cut off if the map is then less than a third
    as wide. The order of fixes does not matter.
    """
    cells, cell = np.unique(grid_cells(lat, lon, COARSE_METRES), return_inverse=True)
    if len(cells) < 2:
        return None
    x = in_space(*cell_centres(cells, COARSE_METRES))
    inside = towns(user, slot, cell, x)
    width = max(_width_km(x[inside]), COARSE_METRES / 1000)
    if inside.all() or _width_km(x) < SMALLER * width:
        return None
    held_cells = cells[inside]
    return Area("auto", lambda lat, lon: np.isin(grid_cells(lat, lon, COARSE_METRES), held_cells), width)


def towns(user: Ints, slot: Ints, cell: Ints, x: Floats) -> Mask:
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
    everybody = np.unique(user)
    part = 1 / np.bincount(user)[user] / len(everybody)
    share = np.bincount(cell, part, minlength=n)
    from scipy.spatial import cKDTree

    pairs = cKDTree(x).query_pairs(REACH_KM, output_type="ndarray")
    a, b = (np.concatenate([pairs[:, i], pairs[:, 1 - i], np.arange(n)]) for i in (0, 1))
    inside = np.zeros(n, dtype=bool)
    for _ in range(MOST_TOWNS + 1):
        # rounded, so that equal towns are equal whatever the order of a sum; of equals the first in the order of cells
        held = np.round(np.bincount(a, np.where(inside, 0, share)[b], minlength=n), 12)
        best = int(np.argmax(held))
        settled = np.bincount(user, part * inside[cell])[everybody] > 0.5 / len(everybody) + 1e-12
        nearly_all = share[inside].sum() >= MOST_SLOTS_IN - 1e-12 and np.mean(settled) >= MOST_PEOPLE_IN
        if held[best] == 0 or (nearly_all and held[best] < A_TOWN):
            return inside
        inside[b[a == best]] = True
    return np.ones(n, dtype=bool)


def _width_km(x: Floats) -> float:
    """Return twice the distance of the farthest point from the middle of a box around all."""
    return float(2 * np.linalg.norm(x - (x.min(axis=0) + x.max(axis=0)) / 2, axis=1).max())


class Located(NamedTuple):
    """
    The places, that of each fix and of each point on the way, -1 where a point is outside the map.

    `grid` is the width of grid cells in metres, `by` the method, and `cells` how many places may be left, None where
    all are to stay.
    """

    locations: Locations
    place: Ints
    on_the_way: Ints
    grid: float | None
    by: str
    cells: int | None = None


def locate(
    entries: Fixes | Slots,
    off: Mask,
    second: Ints | None,
    way: tuple[Floats, Floats] | None,
    area: Area,
    places: str,
    regions: Regions | None,
    grid_metres: float,
    cells: int | None,
    name: str,
) -> Located:
    """Find the places of fixes, or of slots (`second` None), that are not `off`, and of points on the `way`."""
    north, east = (np.empty(0), np.empty(0)) if way is None else way
    on, passing = ~off, area.holds(north, east)
    place, passed = np.full(len(entries), -1), np.full(len(north), -1)

    def made(
        locations: Locations, of_fixes: Ints, of_way: Ints, grid: float | None, by: str, most: int | None
    ) -> Located:
        place[on], passed[passing] = of_fixes, of_way
        return Located(locations, place, passed, grid, by, most)

    lat, lon = entries.lat, entries.lon
    north, east = north[passing], east[passing]
    if regions is not None and lat is not None and lon is not None:
        of_fixes, of_way = regions.place_of(lat[on], lon[on]), regions.place_of(north, east)
        return made(regions.locations, of_fixes, of_way, None, "regions", None)
    if entries.place is not None:
        if entries.locations is None:
            raise InvalidParameter("`place` needs `locations` to point into.")
        of_way = nearest_places(entries.locations, north, east) if len(north) else np.empty(0, dtype=np.int64)
        return made(entries.locations, entries.place[on], of_way, None, "given", cells)
    if lat is None or lon is None:
        raise InvalidParameter("fixes must have `lat` and `lon`, or `place` and `locations`.")
    lat, lon = lat[on], lon[on]
    if places == "points":
        both, of_both = np.unique(as_keys(np.append(lat, north), np.append(lon, east)), return_inverse=True)
        n = len(lat)
        return made(Locations(both.real, both.imag), of_both[:n], of_both[n:], None, "points", None)
    if places == "stays":
        if second is None or not isinstance(entries, Fixes):
            raise InvalidParameter('`places="stays"` needs times; numbered slots have none: use "shared" or "grid".')
        locations, of_fixes, grid = stay_places(entries.user[on], second[on], lat, lon, grid_metres, name)
        of_way = nearest_places(locations, north, east) if len(north) else np.empty(0, dtype=np.int64)
        return made(locations, of_fixes, of_way, grid, "stays", cells)
    most = min(cells, MOST_GRID_CELLS) if places == "grid" and cells is not None else MOST_GRID_CELLS
    locations, of_both, grid = make_grid(np.append(lat, north), np.append(lon, east), grid_metres, most)
    n = len(lat)
    return made(locations, of_both[:n], of_both[n:], grid, places, None if places == "grid" else cells)
