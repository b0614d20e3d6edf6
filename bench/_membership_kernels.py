"""Compiled loops of the membership attack: agreement of weeks of slots, also under shifts of the clock."""

import numpy as np

from elsewhere._jit import njit


@njit
def mean_difference(a, b):
    """Return (n, m) minus the mean absolute difference of rows."""
    out = np.zeros((len(a), len(b)), np.float32)
    for i in range(len(a)):
        for j in range(len(b)):
            s = np.float32(0)
            for k in range(a.shape[1]):
                s += abs(a[i, k] - b[j, k])
            out[i, j] = -s / a.shape[1]
    return out


@njit
def equal_slots(a, b):
    """Return (n, m) the share of equal entries of rows."""
    out = np.zeros((len(a), len(b)), np.float32)
    for i in range(len(a)):
        for j in range(len(b)):
            c = 0
            for k in range(a.shape[1]):
                c += a[i, k] == b[j, k]
            out[i, j] = c / a.shape[1]
    return out


@njit
def shifted_agreement(a, b, most):
    """
    Return the agreement of weeks (n, 7, 72) under the best shift of each half day, and without a shift.

    Four arrays: best shift per week (n, m), best shift per day (7, n, m), no shift per week and per day.
    """
    n, m = len(a), len(b)
    week, zero = np.zeros((n, m), np.float32), np.zeros((n, m), np.float32)
    best_day, zero_day = np.zeros((7, n, m), np.float32), np.zeros((7, n, m), np.float32)
    total = np.zeros(2 * most + 1, np.int64)
    for i in range(n):
        for j in range(m):
            for h in range(2):
                total[:] = 0
                for d in range(7):
                    best = 0
                    for s in range(-most, most + 1):
                        c, lo, hi = 0, max(36 * h, -s), min(36 * h + 36, 72 - s)
                        for t in range(lo, hi):
                            c += a[i, d, t + s] == b[j, d, t]
                        c += 36 - (hi - lo)
                        total[s + most] += c
                        best = max(best, c)
                        if s == 0:
                            zero_day[d, i, j] += c
                    best_day[d, i, j] += best
                week[i, j] += total.max()
                zero[i, j] += total[most]
    return week / 504, best_day / 72, zero / 504, zero_day / 72
