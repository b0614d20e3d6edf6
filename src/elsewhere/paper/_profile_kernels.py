"""
Compiled inner loops: the aggregate model (distance kernel max(1, d)^-2, rows of p_bar) and the missing slots of E4.

`points` (R, 3) are unit vectors if `sphere`, else planar kilometres. Feasible moves come as sorted targets per
place (`open_start`, `open_target`); with an empty `open_start` every move is feasible (E36).
"""

import math

import numpy as np

from elsewhere._jit import find_sorted, njit
from elsewhere.data.visits import EARTH_RADIUS_KM


@njit
def nearness(points, sphere, r, r_next):
    """Return max(1, d(r, r'))^-2, d in kilometres (E34)."""
    x = points[r, 0] - points[r_next, 0]
    y = points[r, 1] - points[r_next, 1]
    z = points[r, 2] - points[r_next, 2]
    square = x * x + y * y + z * z
    if sphere:
        # the arc over a chord; below 1 km the chord's rounding does not matter, above it is 1e-12 at most
        if square < 0.01:
            # the series of its square, to the last digit up to 600 km: no root, no arc sine
            more = 1.0 + square * (9.0 / 56.0) * (1.0 + square * (8.0 / 45.0))
            square *= 1.0 + square / 12.0 * (1.0 + square * (2.0 / 15.0) * more)
            square *= EARTH_RADIUS_KM * EARTH_RADIUS_KM
        else:
            arc = 2.0 * EARTH_RADIUS_KM * math.asin(min(1.0, 0.5 * math.sqrt(square)))
            square = arc * arc
    return 1.0 / max(1.0, square)


@njit
def nearness_sums(out, r, points, sphere, open_start, open_target):
    """Set out[i] = sum of the distance kernel over all feasible moves from r[i]."""
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
    Set out[i, j] = a[i] * mass of the move r[i] -> r_next[j] + b[i] * distance kernel, 0 where the move is not
    feasible.

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
def advance(here, there, total, start, target, log_p):
    """Set there[j] = ln sum_i exp(here[i] + ln p(i -> j)); `total` is room for K numbers."""
    there[:] = -np.inf
    total[:] = 0.0
    for i in range(len(here)):
        if here[i] == -np.inf:
            continue
        for at in range(start[i], start[i + 1]):
            j, x = target[at], here[i] + log_p[at]
            if x > there[j]:
                total[j] = total[j] * math.exp(there[j] - x) + 1.0
                there[j] = x
            elif x - there[j] > -745.0:  # below, the exponential is exactly 0
                total[j] += math.exp(x - there[j])
    for j in range(len(there)):
        if total[j] > 0:
            there[j] += math.log(total[j])


@njit
def draw_run(row, a, b, start, target, log_p, log_first, pair, seen, state, log_weight, uniform, alpha, room):
    """
    Draw the slots a .. b-1 of one row given its two ends: forward filter, backward sample; False without a path.

    Move number `at` of `start[r] : start[r + 1]` leads from r to `target[at]`; `log_p` is (pairs, moves).
    """
    L, K = len(row), alpha.shape[1]
    for t in range(a, b):
        if t == 0:
            alpha[t] = log_first
        elif t > a:
            advance(alpha[t - 1], alpha[t], room, start, target, log_p[pair[t - 1]])
        else:
            alpha[t, :] = -np.inf
            for at in range(start[row[t - 1]], start[row[t - 1] + 1]):
                alpha[t, target[at]] = log_p[pair[t - 1], at]
        if seen[t] < seen[t + 1]:
            # a state that the evidence does not name is impossible
            room[:] = -np.inf
            for at in range(seen[t], seen[t + 1]):
                room[state[at]] = alpha[t, state[at]] + log_weight[at]
            alpha[t] = room
    for t in range(b - 1, a - 1, -1):
        if t + 1 < L:
            for i in range(K):
                if alpha[t, i] > -np.inf:
                    at = find_sorted(target, start[i], start[i + 1], row[t + 1])
                    alpha[t, i] += log_p[pair[t], at] if at >= 0 else -np.inf
        if from_logs(alpha[t], room) == -np.inf:
            return False
        row[t] = draw_index(room, K, uniform[t])
    return True


@njit
def draw_missing(r, latent, start, target, log_p, log_first, pair, seen, state, log_weight, uniform):
    """
    Fill each maximal run of latent slots of `r` (n, L) by one draw; False if no path leads through one.

    Slot (row, t) has the evidence `seen[row L + t] : seen[row L + t + 1]`, none where that is empty.
    """
    n, L = r.shape
    alpha, room = np.empty((L, len(start) - 1)), np.empty(len(start) - 1)
    for i in range(n):
        evidence = seen[i * L : (i + 1) * L + 1]
        b = 0
        while b < L:
            a = b
            while a < L and not latent[i, a]:
                a += 1
            b = a
            while b < L and latent[i, b]:
                b += 1
            if a < b and not draw_run(
                r[i], a, b, start, target, log_p, log_first, pair, evidence, state, log_weight, uniform[i], alpha, room
            ):
                return False
    return True


@njit
def from_logs(log_weight, weight):
    """Set `weight` to exp of the logarithms less the largest; return ln of the sum of exp(log_weight)."""
    top = -np.inf
    for x in log_weight:
        top = max(top, x)
    total = 0.0
    for i in range(len(log_weight)):
        weight[i] = np.exp(log_weight[i] - top) if top > -np.inf else 0.0
        total += weight[i]
    return top + np.log(total) if total > 0.0 else -np.inf


@njit
def draw_index(weight, n, u):
    """Return the entry 0 .. n - 1 that the uniform number `u` chooses by weight: never one of 0, -1 if all are."""
    total = 0.0
    for i in range(n):
        total += weight[i]
    rest, last = u * total, -1
    for i in range(n):
        if weight[i] > 0.0:
            last = i
            rest -= weight[i]
            if rest < 0.0:
                break
    return last
