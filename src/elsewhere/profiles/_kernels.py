"""
Compiled inner loops of the aggregate model: the distance kernel max(1, d)^-2 and rows of p_bar built on it.

`points` (R, 3) are unit vectors if `sphere`, else planar kilometres. Feasible moves come as sorted targets per
place (`open_start`, `open_target`); with an empty `open_start` every move is feasible (E36).
"""

import math

import numpy as np

from elsewhere._jit import njit
from elsewhere.traces.model import EARTH_RADIUS_KM


@njit
def nearness(points, sphere, r, r_next):
    """max(1, d(r, r'))^-2, d in kilometres (E34)."""
    x = points[r, 0] - points[r_next, 0]
    y = points[r, 1] - points[r_next, 1]
    z = points[r, 2] - points[r_next, 2]
    square = x * x + y * y + z * z
    if sphere:
        # the arc over a chord; below 1 km the chord's rounding does not matter, above it is 1e-12 at most
        arc = 2.0 * EARTH_RADIUS_KM * math.asin(min(1.0, 0.5 * math.sqrt(square)))
        square = arc * arc
    return 1.0 / max(1.0, square)


@njit
def nearness_sums(out, r, points, sphere, open_start, open_target):
    """out[i] = sum of the distance kernel over all feasible moves from r[i]."""
    R = len(points)
    for i in range(len(r)):
        total = 0.0
        if len(open_start) == 0:
            for r_next in range(R):
                total += nearness(points, sphere, r[i], r_next)
        else:
            for at in range(open_start[r[i]], open_start[r[i] + 1]):
                total += nearness(points, sphere, r[i], open_target[at])
        out[i] = total


@njit
def fill_block(out, r, r_next, row, a, b, start, target, mass, points, sphere, open_start, open_target):
    """
    out[i, j] = a[i] * mass of the move r[i] -> r_next[j] + b[i] * distance kernel, 0 where the move is not feasible.

    `row[i]` points into `start`, the rows of the sparse sums, and is -1 where there is none.
    """
    R = len(points)
    held = np.zeros(R)
    opened = np.full(R, len(open_start) == 0)
    for i in range(len(r)):
        if row[i] >= 0:
            for at in range(start[row[i]], start[row[i] + 1]):
                held[target[at]] = mass[at]
        if len(open_start) > 0:
            for at in range(open_start[r[i]], open_start[r[i] + 1]):
                opened[open_target[at]] = True
        for j in range(len(r_next)):
            there = r_next[j]
            out[i, j] = a[i] * held[there] + b[i] * nearness(points, sphere, r[i], there) if opened[there] else 0.0
        if row[i] >= 0:
            for at in range(start[row[i]], start[row[i] + 1]):
                held[target[at]] = 0.0
        if len(open_start) > 0:
            for at in range(open_start[r[i]], open_start[r[i] + 1]):
                opened[open_target[at]] = False


@njit
def member(values, low, high, wanted):
    """Position of `wanted` in the sorted `values[low:high]`, -1 if it is not there."""
    end = high
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and values[low] == wanted else -1


@njit
def keep_feasible(out, mass, r, r_next, open_start, open_target):
    """out[m] = mass[m] where the move r[m] -> r_next[m] is feasible, else 0 (E36)."""
    for m in range(len(mass)):
        possible = member(open_target, open_start[r[m]], open_start[r[m] + 1], r_next[m]) >= 0
        out[m] = mass[m] if possible else 0.0


@njit
def fill_moves(out, r, r_next, row, a, b, start, target, mass, points, sphere, open_start, open_target):
    """out[i] = the probability of the move r[i] -> r_next[i]; `row`, `a` and `b` are indexed by place."""
    for i in range(len(r)):
        here, there = r[i], r_next[i]
        if len(open_start) > 0 and member(open_target, open_start[here], open_start[here + 1], there) < 0:
            out[i] = 0.0
            continue
        value = b[here] * nearness(points, sphere, here, there)
        if row[here] >= 0:
            at = member(target, start[row[here]], start[row[here] + 1], there)
            if at >= 0:
                value += a[here] * mass[at]
        out[i] = value
