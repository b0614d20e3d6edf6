"""Compiled loops of the ratio: what a day looks like as a whole."""

import math

import numpy as np

from elsewhere._jit import njit

TRAITS = 40


@njit
def traits_of(r, xy, out):
    """
    `out` (N, TRAITS) of traces (N, L) over places at `xy` (R, 2): where a day has come to, and at what pace.

    Distances from its first and its last place at five slots each; mean, longest and quadratic mean distance between
    slots a fifteenth, an eighth, a quarter and two fifths of the day apart; how straight ways of a tenth, a fifth and
    a third of the day are; the radius of gyration; most moves, deviation of moves and share without a move of windows
    of a fifteenth, a tenth, a sixth and a quarter of the day; entropy of the time by place; share of moves that return.
    """
    N, L = r.shape
    x, y, moved = np.empty(L), np.empty(L), np.zeros(L, dtype=np.int64)
    way = np.zeros(L)  # up to each slot
    apart = (L // 15, L // 8, L // 4, 2 * L // 5)
    legs = (L // 10, L // 5, L // 3)
    windows = (L // 15, L // 10, L // 6, L // 4)
    for i in range(N):
        for t in range(L):
            x[t], y[t] = xy[r[i, t], 0], xy[r[i, t], 1]
            if t > 0:
                moved[t] = moved[t - 1] + (1 if r[i, t] != r[i, t - 1] else 0)
                way[t] = way[t - 1] + math.hypot(x[t] - x[t - 1], y[t] - y[t - 1])
        j = 0
        for k in range(1, 6):
            t = max(L * k // 6 - 1, 0)
            out[i, j] = math.hypot(x[t] - x[0], y[t] - y[0])
            t = L * k // 6
            out[i, j + 1] = math.hypot(x[t] - x[L - 1], y[t] - y[L - 1])
            j += 2
        for lag in apart:
            lag = min(max(lag, 1), L - 1)
            total, most, squares, n = 0.0, 0.0, 0.0, L - lag
            for t in range(n):
                d = math.hypot(x[t + lag] - x[t], y[t + lag] - y[t])
                total += d
                squares += d * d
                most = max(most, d)
            out[i, j], out[i, j + 1], out[i, j + 2] = total / n, most, math.sqrt(squares / n)
            j += 3
        for lag in legs:
            lag = min(max(lag, 1), L - 1)
            straight, gone = 0.0, 0.0
            for t in range(L - lag):
                straight += math.hypot(x[t + lag] - x[t], y[t + lag] - y[t])
                gone += way[t + lag] - way[t]
            out[i, j] = straight / gone if gone > 0.0 else 0.0
            j += 1
        mx, my, squares = x.mean(), y.mean(), 0.0
        for t in range(L):
            squares += (x[t] - mx) ** 2 + (y[t] - my) ** 2
        out[i, j] = math.sqrt(squares / L)
        j += 1
        for w in windows:
            w = min(max(w, 1), L - 1)
            total, squares, most, none, n = 0, 0, 0, 0, L - w
            for t in range(n):
                m = moved[t + w] - moved[t]
                total += m
                squares += m * m
                most = max(most, m)
                none += 1 if m == 0 else 0
            out[i, j], out[i, j + 2] = most, none / n
            out[i, j + 1] = math.sqrt(max(n * squares - total * total, 0)) / n
            j += 3
        ordered = np.sort(r[i])
        entropy, places, run = 0.0, 1, 1
        for t in range(1, L + 1):
            if t < L and ordered[t] == ordered[t - 1]:
                run += 1
                continue
            entropy -= run / L * math.log(run / L)
            if t < L:
                places += 1
            run = 1
        moves = moved[L - 1]
        out[i, j] = entropy
        # a move leads back unless it discovers a place
        out[i, j + 1] = (moves - places + 1) / moves if moves > 0 else 0.0
