"""Compiled loops of the ratio: what a day looks like as a whole."""

import math

import numpy as np

from elsewhere._jit import njit
from elsewhere._search_kernels import sort

TRAITS = 40


@njit
def traits_of(r, xy, out):
    """
    Fill `out` (N, TRAITS) with the traits of traces (N, L) over places at `xy` (R, 2): where a day has come to, and at
    what pace.

    Distances from its first and its last place at five slots each; mean, longest and quadratic mean distance between
    slots a fifteenth, an eighth, a quarter and two fifths of the day apart; how straight ways of a tenth, a fifth and
    a third of the day are; the radius of gyration; most moves, deviation of moves and share without a move of windows
    of a fifteenth, a tenth, a sixth and a quarter of the day; entropy of the time by place; share of moves that return.
    """
    N, L = r.shape
    x, y, moved = np.empty(L), np.empty(L), np.zeros(L, dtype=np.int64)
    way = np.zeros(L)  # up to each slot
    for i in range(N):
        for t in range(L):
            x[t], y[t] = xy[r[i, t], 0], xy[r[i, t], 1]
            if t > 0:
                moved[t] = moved[t - 1] + (1 if r[i, t] != r[i, t - 1] else 0)
                way[t] = way[t - 1] + _length(x[t] - x[t - 1], y[t] - y[t - 1])
        _distances(x, y, out[i, :22])
        _shape(x, y, way, out[i, 22:26])
        _pace(moved, out[i, 26:38])
        _visits(r[i], moved[L - 1], out[i, 38:])


@njit
def _length(x, y):
    """Return the length of a vector; `math.hypot` also guards against lengths that no map has, and takes longer."""
    return math.sqrt(x * x + y * y)


@njit
def _distances(x, y, out):
    """Fill `out` (22,): distances from the first and the last place, and between slots of four lags."""
    L, j = len(x), 0
    for k in range(1, 6):
        t = max(L * k // 6 - 1, 0)
        out[j] = _length(x[t] - x[0], y[t] - y[0])
        t = L * k // 6
        out[j + 1] = _length(x[t] - x[L - 1], y[t] - y[L - 1])
        j += 2
    for lag in (L // 15, L // 8, L // 4, 2 * L // 5):
        lag = min(max(lag, 1), L - 1)
        total, most, squares, n = 0.0, 0.0, 0.0, L - lag
        for t in range(n):
            d = _length(x[t + lag] - x[t], y[t + lag] - y[t])
            total += d
            squares += d * d
            most = max(most, d)
        out[j], out[j + 1], out[j + 2] = total / n, most, math.sqrt(squares / n)
        j += 3


@njit
def _shape(x, y, way, out):
    """
    Fill `out` (4,): how straight ways of three lengths are, and the radius of gyration; `way` (L,) is that so
    far.
    """
    L, j = len(x), 0
    for lag in (L // 10, L // 5, L // 3):
        lag = min(max(lag, 1), L - 1)
        straight, gone = 0.0, 0.0
        for t in range(L - lag):
            straight += _length(x[t + lag] - x[t], y[t + lag] - y[t])
            gone += way[t + lag] - way[t]
        out[j] = straight / gone if gone > 0.0 else 0.0
        j += 1
    mx, my, squares = x.mean(), y.mean(), 0.0
    for t in range(L):
        squares += (x[t] - mx) ** 2 + (y[t] - my) ** 2
    out[j] = math.sqrt(squares / L)


@njit
def _pace(moved, out):
    """
    Fill `out` (12,): most moves, deviation and share without a move of windows of four lengths; `moved` (L,) so
    far.
    """
    L, j = len(moved), 0
    for w in (L // 15, L // 10, L // 6, L // 4):
        w = min(max(w, 1), L - 1)
        total, squares, most, none, n = 0, 0, 0, 0, L - w
        for t in range(n):
            m = moved[t + w] - moved[t]
            total += m
            squares += m * m
            most = max(most, m)
            none += 1 if m == 0 else 0
        out[j], out[j + 2] = most, none / n
        out[j + 1] = math.sqrt(max(n * squares - total * total, 0)) / n
        j += 3


@njit
def _visits(r, moves, out):
    """Fill `out` (2,): entropy of the time by place, and the share of the moves that return."""
    L, ordered = len(r), r.copy()
    sort(ordered)
    entropy, places, run = 0.0, 1, 1
    for t in range(1, L + 1):
        if t < L and ordered[t] == ordered[t - 1]:
            run += 1
            continue
        entropy -= run / L * math.log(run / L)
        if t < L:
            places += 1
        run = 1
    out[0] = entropy
    # a move leads back unless it discovers a place
    out[1] = (moves - places + 1) / moves if moves > 0 else 0.0
