"""Compiled inner loops of the missing slots of E4, and draws by weight."""

import math

import numpy as np

from elsewhere._jit import find_sorted, njit


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
