"""Kernels of the attacks: every fake against every person, slot by slot; -1 is a slot in which nobody was seen."""

import math

import numpy as np

from elsewhere._jit import njit


@njit
def mean_distances(a, b, x, y, out):
    """Set out[i, j] = mean distance between a[i] and b[j] over the slots at which both are seen; infinite if none."""
    T = a.shape[1]
    for i in range(len(a)):
        for j in range(len(b)):
            n, total = 0, 0.0
            for t in range(T):
                p, q = a[i, t], b[j, t]
                if p >= 0 and q >= 0:
                    dx, dy = x[p] - x[q], y[p] - y[q]
                    total += math.sqrt(dx * dx + dy * dy)
                    n += 1
            out[i, j] = total / n if n > 0 else np.inf


@njit
def change_pairs(count, leaving, person, fakes, sign):
    """Add to the counts of co-occurrence (sign +1) the pairs of a person and some fakes, or take them out (-1)."""
    for i in range(len(fakes)):
        for t in range(len(person)):
            r, x = person[t], fakes[i, t]
            if r >= 0 and x >= 0:
                count[r, x] += sign
                leaving[r] += sign


@njit
def pair_likelihoods(count, leaving, log_count, log_leaving, log_share, people, fakes, start, made, out):
    """
    Set out[f, s] = sum over slots at which both are seen of ln M[s(t), f(t)] / share[f(t)].

    M knows neither the pairs of person s nor those of the person behind f: a candidate of whom M knows nothing must
    not stand out. Fakes `made[start[u] : start[u + 1]]` are those of person u. `log_count[n]` is the logarithm of a
    count n and its floor, `log_leaving` likewise.
    """
    for u in range(len(people)):
        mine = fakes[made[start[u] : start[u + 1]]]
        if len(mine) == 0:
            continue
        change_pairs(count, leaving, people[u], mine, -1)
        for s in range(len(people)):
            theirs = fakes[made[start[s] : start[s + 1]]]
            if s != u:
                change_pairs(count, leaving, people[s], theirs, -1)
            for i in range(len(mine)):
                score = 0.0
                for t in range(fakes.shape[1]):
                    r, x = people[s, t], mine[i, t]
                    if r >= 0 and x >= 0:
                        score += log_count[count[r, x]] - log_leaving[leaving[r]] - log_share[x]
                out[made[start[u] + i], s] = score
            if s != u:
                change_pairs(count, leaving, people[s], theirs, 1)
        change_pairs(count, leaving, people[u], mine, 1)
