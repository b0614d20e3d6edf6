"""
Compiled loops over counts: the overlaps of both similarities, one assignment, the search of order 1, the verdict.

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
def shared_overlap(tally: Any, place: Any, b: Any, a_total: Any, b_total: Any) -> Any:
    """Return A B sum_r min(a_r / A, b_r / B), a_r = `tally[r]` for every place r, b given at `place` (E9, E13)."""
    overlap = a_total * b_total * 0
    for e in range(len(b)):
        overlap += min(tally[place[e]] * b_total, b[e] * a_total)
    return overlap


@njit
def term(y: Any, m: Any, M: int) -> float:
    """Return the term y / m times M: a whole number where M is known."""
    return np.float64(y * (M // m)) if M > 0 else y / m


@njit
def semantic_numerator(u: Counted, i: int, v: Counted, j: int) -> float:
    """Return X = N M sim_S(u_i, v_j), per period by sorted matching, weights of u (E20, E23, E26)."""
    T = u.n.shape[1]
    X = 0.0
    for tau in range(T):
        n, m = u.n[i, tau], v.n[j, tau]
        if n > 0 and m > 0:
            a = u.ranked[u.start[i * T + tau] : u.start[i * T + tau + 1]]
            b = v.ranked[v.start[j * T + tau] : v.start[j * T + tau + 1]]
            X += term(sorted_overlap(a, b, n, m), m, v.M[j])
    return X


@njit
def visit_similarity(left: Counted, right: Counted, first: int, R: int, out: Any) -> None:
    """
    Set `out` to the similarity of order 0 of users `first`, `first + 1`, ... of `left` (its rows) to all of `right`.

    By places (E13), of which there are R; with R = 0 rank with rank (E20).
    """
    T = left.n.shape[1]
    tally = np.zeros(R, left.visits.dtype)
    for row in range(out.shape[0]):
        i = first + row
        out[row] = 0.0
        for tau in range(T):
            here, n = slice(left.start[i * T + tau], left.start[i * T + tau + 1]), left.n[i, tau]
            ranked, place, visits = left.ranked[here], left.place[here], left.visits[here]
            for e in range(len(place) if R > 0 else 0):
                tally[place[e]] = visits[e]
            for j in range(out.shape[1] if n > 0 else 0):
                there, m = slice(right.start[j * T + tau], right.start[j * T + tau + 1]), right.n[j, tau]
                if m > 0:
                    if R > 0:
                        y = shared_overlap(tally, right.place[there], right.visits[there], n, m)
                    else:
                        y = sorted_overlap(ranked, right.ranked[there], n, m)
                    out[row, j] += term(y, m, right.M[j])
            for e in range(len(place) if R > 0 else 0):
                tally[place[e]] = 0
        for j in range(out.shape[1]):
            out[row, j] = min(1.0, out[row, j] / (left.N[i] * max(right.M[j], 1)))


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


@njit
def geographic(u: Counted, i: int, v: Counted, j: int, tally: Ints) -> float:
    """Return the larger of sim_G(u_i, v_j) and sim_G(v_j, u_i) (E12, E13)."""
    T = u.n.shape[1]
    forth, back = 0.0, 0.0
    for tau in range(T):
        n, m = u.n[i, tau], v.n[j, tau]
        if n == 0 or m == 0:
            continue
        here, end = u.start[i * T + tau], u.start[i * T + tau + 1]
        for e in range(here, end):
            tally[u.place[e]] = u.visits[e]
        there = slice(v.start[j * T + tau], v.start[j * T + tau + 1])
        y = shared_overlap(tally, v.place[there], v.visits[there], n, m)
        for e in range(here, end):
            tally[u.place[e]] = 0
        forth += term(y, m, v.M[j])
        back += term(y, n, u.M[i])
    return max(forth / (u.N[i] * max(v.M[j], 1)), back / (v.N[j] * max(u.M[i], 1)))


@njit
def shared_places(u: Counted, i: int, v: Counted, j: int, tally: Ints) -> int:
    """Return |visited(u_i) ∩ visited(v_j)|, whatever the period (E41)."""
    T = u.n.shape[1]
    here, end = u.start[i * T], u.start[(i + 1) * T]
    for e in range(here, end):
        tally[u.place[e]] = 1
    shared = 0
    for e in range(v.start[j * T], v.start[(j + 1) * T]):
        shared += tally[v.place[e]]
        tally[v.place[e]] = 0
    for e in range(here, end):
        tally[u.place[e]] = 0
    return shared


@njit
def count_alternates(
    X: float, N: int, own: int, fakes: Counted, f: int, alternates: Counted, par_d: float, stop: int
) -> int:
    """
    Count the distinct users, other than `own`, with |sim_S(s, f) - sim_S(s', f)| < par_d for one of their traces (E52).

    The search ends after `stop` users.
    """
    count, last = 0, -1
    M = max(fakes.M[f], 1)
    for a in range(len(alternates.N)):
        if count == stop:
            break
        user = alternates.user[a]
        if user in (last, own):
            continue
        N_a = alternates.N[a]
        if abs(X * N_a - semantic_numerator(alternates, a, fakes, f) * N) / (N * N_a * M) < par_d:
            count, last = count + 1, user
    return count


@njit
def largest_similarity(u: Counted, i: int, own: int, seeds: Counted, tally: Ints) -> float:
    """Return the largest sim_G, in either direction, of u_i to a seed of any user but `own` (E15)."""
    best = 0.0
    for s in range(len(seeds.N)):
        if seeds.user[s] != own:
            best = max(best, geographic(u, i, seeds, s, tally))
    return best


@njit
def nearest_to(strangers: Counted, seeds: Counted, R: int) -> Floats:
    """Return for each trace of the strangers its similarity to the most similar seed of another user (E15)."""
    tally, out = np.zeros(R, np.int64), np.empty(len(strangers.N), np.float64)
    for a in range(len(out)):
        out[a] = largest_similarity(strangers, a, strangers.user[a], seeds, tally)
    return out


@njit
def measure(
    fakes: Counted,
    seed: Ints,
    seeds: Counted,
    alternates: Counted,
    par_d: float,
    stop: int,
    others: bool,
    R: int,
    out: Floats,
) -> None:
    """
    Measure fakes made from the seeds of these numbers: what PrivacyTest compares with its thresholds.

    Writes to `out` (F, 6) sim_G, shared places, nothing, alternates found (up to `stop`), sim_S(s, f), and the
    similarity to the closest other seed, which is 0 unless asked for.
    """
    tally = np.zeros(R, np.int64)
    for f in range(len(seed)):
        s = seed[f]
        own = seeds.user[s]
        out[f, 0] = geographic(fakes, f, seeds, s, tally)
        out[f, 1] = shared_places(fakes, f, seeds, s, tally)
        X, N = semantic_numerator(seeds, s, fakes, f), seeds.N[s]
        out[f, 4] = X / (N * max(fakes.M[f], 1))
        out[f, 3] = count_alternates(X, N, own, fakes, f, alternates, par_d, stop)
        if others:
            out[f, 5] = largest_similarity(fakes, f, own, seeds, tally)
