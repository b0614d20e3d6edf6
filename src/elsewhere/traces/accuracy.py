"""
From the accuracy radius of fixes (GPS, Wi-Fi, cell tower) to weights over the places a slot may be at (E4).

A radius is read as phones give it: 68 % of positions lie within it. The position is then a normal distribution of
which a place gets a share by the distance of its middle.
"""

import numpy as np

from elsewhere.traces.model import Evidence, Floats, Ints, Locations, in_space

WITHIN_ONE_RADIUS = 1.5096  # standard deviations that hold 68 % of a normal distribution in the plane
MOST_PLACES = 16  # of one fix


def evidence_of(
    locations: Locations, row: Ints, slot: Ints, lat: Floats, lon: Floats, radius_metres: Floats
) -> Evidence | None:
    """
    Weights at the slots whose fixes leave a choice; None where none does.

    The places of a fix are those within its radius (at most 16), and the nearest one always; fixes of one slot are
    added up. A fix without a radius (NaN) is certain.
    """
    if locations.lat is None or locations.lon is None or len(row) == 0:
        return None
    from scipy.spatial import cKDTree

    k = min(MOST_PLACES, len(locations))
    points = in_space(lat, lon)
    found = cKDTree(locations.points()).query(points, k=k)
    away, near = (np.reshape(side, (len(row), k)) for side in found)
    radius = np.where(np.isfinite(radius_metres) & (radius_metres > 0), radius_metres, 1e-3)[:, None] / 1000
    weight = np.exp(-0.5 * WITHIN_ONE_RADIUS**2 * (away**2 - away[:, :1] ** 2) / radius**2)
    weight[:, 1:][away[:, 1:] > radius] = 0
    weight /= weight.sum(axis=1, keepdims=True)
    fix, choice = np.nonzero(weight > 0)
    R, L = len(locations), int(slot.max()) + 1
    key, group = np.unique((row[fix] * L + slot[fix]) * R + near[fix, choice], return_inverse=True)
    total = np.bincount(group, weight[fix, choice], len(key)).astype(np.float64)
    instant = key // R
    _, number, size = np.unique(instant, return_inverse=True, return_counts=True)
    open_ = size[number] > 1
    if not open_.any():
        return None
    key, total, instant = key[open_], total[open_], instant[open_]
    return Evidence(instant // L, instant % L, (key % R).astype(np.int32), total)
