"""Compiled sums of logarithms, and draws by weight."""

import numpy as np

from elsewhere._jit import njit


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
