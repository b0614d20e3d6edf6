"""Places where people stay: fixes that remain near one spot for a while, gathered into places (stay points)."""

import numpy as np

from elsewhere.errors import InvalidTraces
from elsewhere.traces.model import Floats, Ints, Locations
from elsewhere.traces.places import in_space, make_grid, mean_points, nearest_places

# Li, Zheng, Xie, Chen, Liu, Ma (2008): a stay is 20 minutes or more within 200 m of its first fix
STAY_METRES = 200.0
STAY_SECONDS = 1200


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
