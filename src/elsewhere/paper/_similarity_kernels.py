"""
Compiled loops over counts: the overlaps of both similarities, one assignment, the search of order 1.

Order 0, Hamming. User u has n_tau slots in period tau and N in all, v has m_tau; a and b are visit counts. With
y_tau = sum of min(a m_tau, b n_tau), over places for sim_G (E13) and over ranks for sim_S (E20),

    sim(u, v) = sum_tau w_tau(u) sum min(a / n_tau, b / m_tau) = 1/N sum_tau y_tau / m_tau = X / (N M),

where M is the least common multiple of the m_tau and X is a whole number. Whole numbers below 2^53 are exact in
float64 and the one division is rounded correctly, so a similarity of 3/30 *is* the float .1, on every machine (R6).
Where M would be too large for that (long traces with gaps, many periods), or counts are posterior means (E4), M is 0
and the y_tau / m_tau are added as ordinary floats.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere._jit import njit
from elsewhere.data.visits import Floats, Ints


class Counted(NamedTuple):
    """
    Visits of many users, or traces; number i owns entries `start[i * T + tau] : start[i * T + tau + 1]` in period tau.

    `place` and `visits` of an entry belong together; `ranked` holds the same visits, the largest first. Counts are
    whole, or floats where they are posterior means (E4).
    """

    start: Ints
    place: NDArray[Any]
    visits: NDArray[Any]
    ranked: NDArray[Any]
    n: NDArray[Any]  # (users, T) slots per period
    N: NDArray[Any]  # (users,) their sum
    M: Ints  # (users,) least common multiple of the n above 0; 0 = too large to be exact
    user: Ints


@njit
def sorted_overlap(a: Any, b: Any, a_total: Any, b_total: Any) -> Any:
    """
    Return A B max_sigma sum_r min(a_r / A, b_sigma(r) / B) for counts sorted downwards (E20): whole if the counts are.

    min is supermodular, so matching rank with rank is optimal.
    """
    n = min(len(a), len(b))
    overlap = a_total * b_total * 0
    if a_total == b_total:
        for i in range(n):
            overlap += min(a[i], b[i])
        return overlap * b_total
    for i in range(n):
        overlap += min(a[i] * b_total, b[i] * a_total)
    return overlap


@njit
def shared_overlap(place: Any, a: Any, other: Any, b: Any, a_total: Any, b_total: Any) -> Any:
    """Return A B sum_r min(a_r / A, b_r / B) for counts at `place` and at `other`, both rising (E9, E13)."""
    overlap, i, j = a_total * b_total * 0, 0, 0
    while i < len(a) and j < len(b):
        if place[i] == other[j]:
            overlap += min(a[i] * b_total, b[j] * a_total)
        i, j = i + (place[i] <= other[j]), j + (other[j] <= place[i])
    return overlap


@njit
def numerators(u: Counted, i: Ints, v: Counted, j: Ints, ranked: bool, X: Floats) -> None:
    """Set X = N M sim(u_i, v_j) for pairs of users: by places (E13), or rank with rank (E20), weights of u (E23)."""
    T = u.n.shape[1]
    for p in range(len(X)):
        X[p] = 0.0
        for tau in range(T):
            a, b, n, m = i[p] * T + tau, j[p] * T + tau, u.n[i[p], tau], v.n[j[p], tau]
            if n > 0 and m > 0:
                here, there = slice(u.start[a], u.start[a + 1]), slice(v.start[b], v.start[b + 1])
                if ranked:
                    y = sorted_overlap(u.ranked[here], v.ranked[there], n, m)
                else:
                    y = shared_overlap(u.place[here], u.visits[here], v.place[there], v.visits[there], n, m)
                X[p] += np.float64(y * (v.M[j[p]] // m)) if v.M[j[p]] > 0 else y / m


@njit
def gilmore_lawler(u: Any, v: Any) -> Any:
    """
    Return M[r, x] of E25, in departures of u: what row r can add to V at most if it is mapped to x.

    The stay is matched with the stay, the other moves rank with rank; period pairs are added up. u and v are `Table`s.
    """
    pairs, n_u = u.leaving.shape
    n_v = v.leaving.shape[1]
    M = np.zeros((n_u, n_v))
    for k in range(pairs):
        for r in range(n_u):
            for x in range(n_v):
                share = min(u.p[k, r, r], v.p[k, x, x])
                for i in range(min(n_u, n_v)):
                    a, b = u.ranked[k, r, i], v.ranked[k, x, i]
                    if a == 0 or b == 0:
                        break
                    share += min(a, b)
                M[r, x] += u.leaving[k, r] * share
    return M


@njit
def mapped_value(u: Any, v: Any, sigma: Any) -> Any:
    """Return V(sigma) of E25 in departures of u; a row that v never leaves (E3), and an image of -1, add nothing."""
    pairs, n = u.leaving.shape
    value = 0.0
    for k in range(pairs):
        for r in range(n):
            if sigma[r] < 0:
                continue
            d, e = u.leaving[k, r], v.leaving[k, sigma[r]]
            for s in range(n):
                if sigma[s] < 0:
                    continue
                common = min(u.counts[k, r, s] * e, v.counts[k, sigma[r], sigma[s]] * d)
                if common > 0:
                    value += common / e
    return value


@njit
def value_of_two(u: Any, v: Any, sigma: Any, i: int, j: int) -> Any:
    """Return what the moves to or from i or j add to V: all that changes if they exchange their images."""
    pairs, n = u.leaving.shape
    value = 0.0
    for k in range(pairs):
        for r in (i, j):
            for s in range(n if r < n else 0):  # nobody moves to or from padding
                if u.counts[k, r, s] > 0:
                    value += min(u.counts[k, r, s], u.leaving[k, r] * v.p[k, sigma[r], sigma[s]])
                if u.counts[k, s, r] > 0 and s != i and s != j:
                    value += min(u.counts[k, s, r], u.leaving[k, s] * v.p[k, sigma[s], sigma[r]])
    return value


@njit
def anneal(u: Any, v: Any, start: Any, missing: float, hot: float, cold: float, uniform: Any) -> Any:
    """
    Find the best mapping met by Metropolis steps over swaps of two images; `uniform` (rounds, steps, 3) decides them.

    Each round begins at `start` and cools geometrically from `hot` to `cold`, in departures of u. V cannot gain more
    than `missing`: the search ends when it has gained that.
    """
    rounds, steps, _ = uniform.shape
    places, n = u.leaving.shape[1], len(start)
    cooling = (cold / hot) ** (1.0 / steps)
    best, best_gain = start.copy(), 0.0
    for a in range(rounds):
        sigma, gained, temperature = start.copy(), 0.0, hot
        for t in range(steps):
            if best_gain >= missing:
                return best
            # one of the two must be a place of u: padding against padding changes nothing
            i = int(uniform[a, t, 0] * places)
            j = (i + 1 + int(uniform[a, t, 1] * (n - 1))) % n
            gain = -value_of_two(u, v, sigma, i, j)
            sigma[i], sigma[j] = sigma[j], sigma[i]
            gain += value_of_two(u, v, sigma, i, j)
            if gain < 0 and uniform[a, t, 2] >= math.exp(gain / temperature):
                sigma[i], sigma[j] = sigma[j], sigma[i]
            else:
                gained += gain
                if gained > best_gain:
                    best_gain = gained
                    best[:] = sigma
            temperature *= cooling
    return best
