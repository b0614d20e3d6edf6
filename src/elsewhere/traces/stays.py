"""
Where people stay: fixes that remain near one spot for a while, gathered into places (stay points), and the anchors of
one person, which keep somebody who sits near the border of two cells from moving between them (decision 32).
"""

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidTraces
from elsewhere.traces.model import Floats, Ints, Locations, in_space
from elsewhere.traces.places import make_grid, mean_points, nearest_places

# Li, Zheng, Xie, Chen, Liu, Ma (2008): a stay is 20 minutes or more within 200 m of its first fix
STAY_METRES = 200.0
STAY_SECONDS = 1200
ANCHOR_METRES = 100.0  # within which a stay makes an anchor, and another stay is at the same one: the width of a cell


def anchored(user: Ints, second: Ints, lat: Floats, lon: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """
    Put fixes that are near an anchor of their person on it: latitudes, longitudes, and which fixes are at an anchor.

    Where somebody stays for 20 minutes or more within 100 m of the first fix there is an anchor; of two stays within
    100 m of each other the longer is the anchor, which lies at the mean of the fixes of all its stays. A fix within
    200 m of own anchors is at the nearest of them, any other is where it is, so that who is on the way stays on the
    way. People most of whose steps of up to 200 m lead nowhere, to the very same point, are left alone: their positions
    do not jitter. Fixes are sorted by user and time; other people's fixes do not matter.
    """
    from elsewhere.traces._kernels import find_stays, gather_stays, nearest_anchor

    user, x, reach = user.astype(np.int64), in_space(lat, lon), ANCHOR_METRES / 1000
    mine = user[1:] == user[:-1]
    near = mine & (np.linalg.norm(x[1:] - x[:-1], axis=1) <= STAY_METRES / 1000)
    still = near & (lat[1:] == lat[:-1]) & (lon[1:] == lon[:-1])
    n = int(user.max(initial=-1)) + 1
    steady = 2 * np.bincount(user[1:], still, n) >= np.bincount(user[1:], near, n)
    who = np.flatnonzero(~steady[user])
    at = np.full(len(user), -1, dtype=np.int64)
    stay = np.empty(len(who), dtype=np.int64)
    stays = find_stays(stay, user[who], second[who], x[who], reach, STAY_SECONDS)
    if stays == 0:
        return lat, lon, at >= 0
    fixes = who[stay >= 0]
    stay = stay[stay >= 0]
    size = np.bincount(stay)
    owner = user[fixes[np.cumsum(size) - size]]
    mean = np.column_stack([np.bincount(stay, x[fixes, k]) for k in range(3)]) / size[:, None]
    order = np.lexsort((-size, owner))  # of one person the longest first, of equals the earliest
    of_stay = np.empty(stays, dtype=np.int64)
    anchors = gather_stays(of_stay, order, owner, mean, reach)
    of_fix = of_stay[stay]
    anchor_lat, anchor_lon = mean_points(lat[fixes], lon[fixes], of_fix, anchors)
    of_user = np.zeros(n + 1, dtype=np.int64)
    np.add.at(of_user, owner[order][np.unique(of_stay[order], return_index=True)[1]] + 1, 1)
    nearest_anchor(at, user, x, in_space(anchor_lat, anchor_lon), np.cumsum(of_user), STAY_METRES / 1000)
    there = at >= 0
    return np.where(there, anchor_lat[at], lat), np.where(there, anchor_lon[at], lon), there


def stay_places(
    user: Ints, second: Ints, lat: Floats, lon: Floats, metres: float, name: str = ""
) -> tuple[Locations, Ints, float]:
    """
    The grid cells in which somebody stays as places, the place of each fix, and the width of the cells.

    A fix of a stay is at the cell of the stay's mean point; a fix on the way is at the nearest place of any stay. Fixes
    are sorted by user and time.
    """
    from elsewhere.traces._kernels import find_stays

    stay = np.empty(len(user), dtype=np.int64)
    n = find_stays(stay, user, second, in_space(lat, lon), STAY_METRES / 1000, STAY_SECONDS)
    if n == 0:
        raise InvalidTraces(
            f"{name or 'the input'}: nobody stays {STAY_SECONDS // 60} minutes within {STAY_METRES:.0f} m; "
            'use `places="merge"` or "grid".',
            code="E_EMPTY",
        )
    staying = stay >= 0
    locations, of_stay, metres = make_grid(*mean_points(lat[staying], lon[staying], stay[staying], n), metres)
    place = np.empty(len(user), dtype=np.int64)
    place[staying] = of_stay[stay[staying]]
    place[~staying] = nearest_places(locations, lat[~staying], lon[~staying])
    return locations, place, metres
