"""Kernels of `places`: the stays of a track, and the anchors they are gathered to."""

from typing import Any

import numpy as np

from elsewhere._jit import njit


@njit
def find_stays(out: Any, user: Any, second: Any, x: Any, reach: float, least: float) -> int:
    """
    Return the number of the stay of each fix, -1 on the way; the number of stays.

    From the first fix not yet told, all that follow within `reach` of it are one stay if they last `least` seconds;
    else that fix is on the way. `x` (n, 3) in km, fixes by user and time.
    """
    n, stays, i = len(user), 0, 0
    while i < n:
        j = i + 1
        while j < n and user[j] == user[i]:
            dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            if dx * dx + dy * dy + dz * dz > reach * reach:
                break
            j += 1
        if second[j - 1] - second[i] >= least:
            out[i:j] = stays
            stays += 1
            i = j
        else:
            out[i] = -1
            i += 1
    return stays


@njit
def gather_stays(out: Any, order: Any, owner: Any, mean: Any, reach: float) -> int:
    """
    Return the number of the anchor of each stay, anchors numbered as they come; the number of anchors.

    Stays come in `order`, those of one `owner` together: each joins the nearest anchor of its owner if that one's first
    stay is within `reach` of it, else it is a new anchor. `mean` (n, 3) in km.
    """
    first = np.empty(len(order), dtype=np.int64)  # the stay that made each anchor
    anchors, begin = 0, 0
    for i in range(len(order)):
        s = order[i]
        if i > 0 and owner[order[i - 1]] != owner[s]:
            begin = anchors
        best, least = -1, reach * reach
        for a in range(begin, anchors):
            b = first[a]
            dx, dy, dz = mean[s, 0] - mean[b, 0], mean[s, 1] - mean[b, 1], mean[s, 2] - mean[b, 2]
            far = dx * dx + dy * dy + dz * dz
            if far < least or (far == least and best < 0):
                best, least = a, far
        if best < 0:
            best, first[anchors] = anchors, s
            anchors += 1
        out[s] = best
    return anchors


@njit
def nearest_anchor(out: Any, user: Any, x: Any, anchors: Any, begin: Any, reach: float) -> None:
    """Write the nearest of its user's anchors `begin[u] : begin[u + 1]` for each fix; -1 where none is in reach."""
    for i in range(len(user)):
        best, least = -1, reach * reach
        for a in range(begin[user[i]], begin[user[i] + 1]):
            dx, dy, dz = x[i, 0] - anchors[a, 0], x[i, 1] - anchors[a, 1], x[i, 2] - anchors[a, 2]
            far = dx * dx + dy * dy + dz * dz
            if far < least or (far == least and best < 0):
                best, least = a, far
        out[i] = best
