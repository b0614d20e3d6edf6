"""Compiled loops of the archetypes' laws: the dual with its gradient, and the laws themselves."""

import math

import numpy as np

from elsewhere._jit import njit


@njit
def _common(f, column, statistics, place, slot, by_statistic):
    total = (
        by_statistic[0, statistics[0]]
        + by_statistic[1, statistics[1]]
        + by_statistic[2, statistics[2]]
        + by_statistic[3, statistics[3]]
    )
    for t in range(len(f)):
        total += place[f[t]] + slot[t, column[f[t]]]
    return total


@njit
def sharing_loss(
    s, r, column, statistics, place, slot, by_statistic, level, weights, scale, at_place, at_slot, at_statistic, mass
):
    """
    Return the dual of `laws` without its linear and ridge parts: scale sum_a weights_a sum_f ln(1 + exp(x_a(f))).

    Into `at_place`, `at_slot`, `at_statistic` (zeros on entry) go the means of the features under all groups
    together, into `mass` the sum of each group's law.
    """
    N, A = s.shape
    value = 0.0
    for i in range(N):
        common = _common(r[i], column, statistics[i], place, slot, by_statistic)
        chosen = 0.0
        for a in range(A):
            x = s[i, a] + common - level[a]
            if x < -40.0:
                continue
            small = math.exp(-abs(x))
            value += weights[a] * scale * (max(x, 0.0) + math.log1p(small))
            p = scale * (1.0 if x >= 0.0 else small) / (1.0 + small)
            mass[a] += p
            chosen += weights[a] * p
        if chosen > 0.0:
            for t in range(r.shape[1]):
                at_place[r[i, t]] += chosen
                at_slot[t, column[r[i, t]]] += chosen
            for k in range(4):
                at_statistic[k, statistics[i, k]] += chosen
    return value


@njit
def log_sigma(r, column, statistics, score, place, slot, by_statistic, level, out):
    """Set `out[i, a]` = ln sigma(x_a(r_i)); `score` (L, C, A), so that the groups are read side by side."""
    N, L = r.shape
    x = np.empty(len(level))
    for i in range(N):
        x[:] = _common(r[i], column, statistics[i], place, slot, by_statistic)
        x -= level
        for t in range(L):
            row = score[t, column[r[i, t]]]
            for a in range(len(x)):
                x[a] += row[a]
        for a in range(len(x)):
            out[i, a] = min(x[a], 0.0) - math.log1p(math.exp(-abs(x[a])))
