"""
Compiled inner loops of the similarities: overlaps of counts, one assignment, and the search of order 1.

Counts stay whole numbers as long as possible. For two distributions a / A and b / B given as counts,
min(a_i / A, b_i / B) = min(a_i B, b_i A) / (A B), so that sums are exact and the only rounding is in the last quotient.
"""

import math
from typing import Any

import numpy as np

from elsewhere._jit import njit


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
def shared_overlap(a_key: Any, a: Any, b_key: Any, b: Any, a_total: Any, b_total: Any) -> Any:
    """Return A B sum_r min(a_r / A, b_r / B) over the keys r that both have; keys rise (E9, E13)."""
    overlap = a_total * b_total * 0
    i, j = 0, 0
    while i < len(a) and j < len(b):
        if a_key[i] < b_key[j]:
            i += 1
        elif a_key[i] > b_key[j]:
            j += 1
        else:
            overlap += min(a[i] * b_total, b[j] * a_total)
            i += 1
            j += 1
    return overlap


@njit
def visit_similarity(left: Any, right: Any, first: int, by_place: bool, out: Any) -> None:
    """
    Compute the similarity of order 0 for users `first`, `first + 1`, ... of `left` (rows of `out`) against all of
    `right`; both are `Visits`.

    sum_tau w_tau(u) times the overlap of both in tau, by place (E13) or rank with rank (E20); see `Visits`.
    """
    T = left.lived.shape[1]
    for row in range(out.shape[0]):
        i = first + row
        for j in range(out.shape[1]):
            total = 0.0
            for tau in range(T):
                here = slice(left.start[i * T + tau], left.start[i * T + tau + 1])
                there = slice(right.start[j * T + tau], right.start[j * T + tau + 1])
                a, b = left.counts[here], right.counts[there]
                a_total, b_total = left.lived[i, tau], right.lived[j, tau]
                if by_place:
                    overlap = shared_overlap(left.place[here], a, right.place[there], b, a_total, b_total)
                else:
                    overlap = sorted_overlap(a, b, a_total, b_total)
                total += overlap * right.times[j, tau] / right.over[j, tau]
            out[row, j] = min(1.0, total / (left.total[i] * right.denominator[j]))


@njit
def move_similarity(left: Any, right: Any, first: int, out: Any) -> None:
    """
    Compute eq:as1, Hamming, for users `first`, `first + 1`, ... of `left` against all of `right`; both are `Moves`.

    A term alpha_r min(p(u), p(v)) is min(m E, n D) / E in departures of u, for m of D and n of E departures.
    """
    for row in range(out.shape[0]):
        i = first + row
        for j in range(out.shape[1]):
            total = 0.0
            a, b = left.start[i], right.start[j]
            while a < left.start[i + 1] and b < right.start[j + 1]:
                if left.key[a] < right.key[b]:
                    a += 1
                elif left.key[a] > right.key[b]:
                    b += 1
                else:
                    e = right.leaving[b]
                    total += min(left.counts[a] * e, right.counts[b] * left.leaving[a]) / e
                    a += 1
                    b += 1
            out[row, j] = min(1.0, total / left.total[i])


@njit
def assignment(benefit: Any) -> Any:
    """
    Return the column of each row in an assignment of largest total benefit; at least as many columns as rows.

    Shortest augmenting paths with potentials, O(rows^2 columns); exact while all sums of benefits are.
    """
    rows, columns = benefit.shape
    row_price, column_price = np.zeros(rows + 1), np.zeros(columns + 1)
    row_of = np.zeros(columns + 1, dtype=np.int64)  # 1-based; 0 is nobody
    before = np.zeros(columns + 1, dtype=np.int64)
    for row in range(1, rows + 1):
        row_of[0] = row
        at = 0
        slack = np.full(columns + 1, np.inf)
        done = np.zeros(columns + 1, dtype=np.bool_)
        while row_of[at] != 0:
            done[at] = True
            r, step, nearest = row_of[at], np.inf, 0
            for c in range(1, columns + 1):
                if not done[c]:
                    reduced = -benefit[r - 1, c - 1] - row_price[r] - column_price[c]
                    if reduced < slack[c]:
                        slack[c] = reduced
                        before[c] = at
                    if slack[c] < step:
                        step = slack[c]
                        nearest = c
            for c in range(columns + 1):
                if done[c]:
                    row_price[row_of[c]] += step
                    column_price[c] -= step
                else:
                    slack[c] -= step
            at = nearest
        while at != 0:
            row_of[at] = row_of[before[at]]
            at = before[at]
    column_of = np.empty(rows, dtype=np.int64)
    for c in range(1, columns + 1):
        if row_of[c] != 0:
            column_of[row_of[c] - 1] = c - 1
    return column_of


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
    """Return V(sigma) of E25 in departures of u; a row that v never leaves adds nothing (E3)."""
    pairs, n = u.leaving.shape
    value = 0.0
    for k in range(pairs):
        for r in range(n):
            d, e = u.leaving[k, r], v.leaving[k, sigma[r]]
            for s in range(n):
                common = min(u.counts[k, r, s] * e, v.counts[k, sigma[r], sigma[s]] * d)
                if common > 0:
                    value += common / e
    return value


@njit
def best_start(u: Any, v: Any, starts: Any) -> Any:
    """
    Return the start of largest V, as a permutation of v's places, and its V.

    Rows of `starts` are partial mappings, -1 where they say nothing; free places of v fill these in their order.
    """
    n = v.leaving.shape[1]
    best, best_value = np.arange(n), -1.0
    for row in starts:
        sigma, taken = np.full(n, -1), np.zeros(n, dtype=np.bool_)
        for r in range(len(row)):
            if row[r] >= 0:
                sigma[r] = row[r]
                taken[row[r]] = True
        free = 0
        for r in range(n):
            if sigma[r] < 0:
                while taken[free]:
                    free += 1
                sigma[r] = free
                free += 1
        value = mapped_value(u, v, sigma)
        if value > best_value:
            best, best_value = sigma, value
    return best, best_value


@njit
def swap_gain(moves: Any, p: Any, sigma: Any, i: int, j: int) -> Any:
    """
    Return what V gains if i and j exchange their images: only moves to or from them change. `moves` is
    `Touching`.
    """
    x, y = sigma[i], sigma[j]
    gain = 0.0
    for place in (i, j):
        if place >= len(moves.start) - 1:
            continue  # padding: nobody moves there
        for m in range(moves.start[place], moves.start[place + 1]):
            r, s = moves.origin[m], moves.target[m]
            if place == j and (r == i or s == i):
                continue  # counted with i
            a, b = sigma[r], sigma[s]
            c = y if r == i else (x if r == j else a)
            d = y if s == i else (x if s == j else b)
            k, most, leaving = moves.pair[m], moves.counts[m], moves.leaving[m]
            gain += min(most, leaving * p[k, c, d]) - min(most, leaving * p[k, a, b])
    return gain


@njit
def best_of_all_mappings(moves: Any, p: Any, start: Any, missing: float) -> Any:
    """
    Find the best of all n! mappings, each one swap away from the one before (Heap's algorithm); n at most 7 or so.

    V cannot gain more than `missing`: the search ends when it has gained that.
    """
    n = len(start)
    sigma, gained = start.copy(), 0.0
    best, best_gain = start.copy(), 0.0
    turns = np.zeros(n, dtype=np.int64)
    i = 1
    while i < n and best_gain < missing:
        if turns[i] == i:
            turns[i] = 0
            i += 1
            continue
        j = turns[i] if i % 2 == 1 else 0
        gained += swap_gain(moves, p, sigma, i, j)
        sigma[i], sigma[j] = sigma[j], sigma[i]
        if gained > best_gain:
            best_gain = gained
            best[:] = sigma
        turns[i] += 1
        i = 1
    return best


@njit
def anneal(moves: Any, p: Any, start: Any, missing: float, hot: float, cold: float, uniform: Any) -> Any:
    """
    Find the best mapping met by Metropolis steps over swaps of two images; `uniform` (rounds, steps, 3) decides them.

    Each round begins at `start` and cools geometrically from `hot` to `cold`, in departures of u. V cannot gain more
    than `missing`: the search ends when it has gained that.
    """
    rounds, steps, _ = uniform.shape
    places, n = len(moves.start) - 1, len(start)
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
            gain = swap_gain(moves, p, sigma, i, j)
            if gain >= 0 or uniform[a, t, 2] < math.exp(gain / temperature):
                sigma[i], sigma[j] = sigma[j], sigma[i]
                gained += gain
                if gained > best_gain:
                    best_gain = gained
                    best[:] = sigma
            temperature *= cooling
    return best
