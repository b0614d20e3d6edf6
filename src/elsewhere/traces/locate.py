"""Which place every fix is at: the one it names, a region, a grid cell, or the cell of a stay."""

from typing import NamedTuple

import numpy as np

from elsewhere.errors import InvalidParameter, InvalidTraces
from elsewhere.traces.fixes import Fixes, Slots
from elsewhere.traces.model import Floats, Ints, Locations
from elsewhere.traces.places import MOST_GRID_CELLS, make_grid, nearest_places
from elsewhere.traces.regions import Regions
from elsewhere.traces.stays import stay_places

PLACES = ("merge", "grid", "stays")


class Located(NamedTuple):
    """
    The places, that of each fix and of each point on the way; the number R of places where it is in no region.

    `grid` is the width of grid cells in metres, `by` the method, `mergeable` whether cells may be merged later, and
    `outside` how many fixes are in no region.
    """

    locations: Locations
    place: Ints
    on_the_way: Ints
    grid: float | None
    by: str
    mergeable: bool = False
    outside: int = 0


def locate(
    found: Fixes | Slots,
    second: Ints | None,
    way: tuple[Floats, Floats] | None,
    places: str,
    regions: Regions | None,
    grid_metres: float,
    cells: int | None,
    name: str,
) -> Located:
    """The places of fixes, or of slots (`second` None), and of points on the `way` between them."""
    n = len(found)
    lat, lon = found.lat, found.lon
    north, east = (np.empty(0), np.empty(0)) if way is None else way
    if regions is not None:
        if lat is None or lon is None:
            raise InvalidParameter("`regions` need fixes with `lat` and `lon`.")
        place = regions.place_of(np.append(lat, north), np.append(lon, east))
        off = int((place[:n] < 0).sum())
        if off == n:
            raise InvalidTraces(f"{name or 'the input'}: no row lies in any of the regions.", code="E_OUTSIDE")
        place = np.where(place < 0, len(regions), place)
        return Located(regions.locations, place[:n], place[n:], None, "regions", outside=off)
    if found.place is not None:
        if found.locations is None:
            raise InvalidParameter("`place` needs `locations` to point into.")
        passed = nearest_places(found.locations, north, east) if len(north) else np.empty(0, dtype=np.int64)
        return Located(found.locations, found.place, passed, None, "given", mergeable=True)
    if lat is None or lon is None:
        raise InvalidParameter("fixes must have `lat` and `lon`, or `place` and `locations`.")
    if places == "stays":
        if second is None or not isinstance(found, Fixes):
            raise InvalidParameter('`places="stays"` needs times; numbered slots have none: use "merge" or "grid".')
        locations, place, grid = stay_places(found.user, second, lat, lon, grid_metres, name)
        passed = nearest_places(locations, north, east) if len(north) else np.empty(0, dtype=np.int64)
        return Located(locations, place, passed, grid, "stays", mergeable=True)
    most = MOST_GRID_CELLS if places == "merge" or cells is None else min(cells, MOST_GRID_CELLS)
    locations, place, grid = make_grid(np.append(lat, north), np.append(lon, east), grid_metres, most)
    return Located(locations, place[:n], place[n:], grid, places, mergeable=places == "merge")
