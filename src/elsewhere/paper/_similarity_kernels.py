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
from elsewhere.data.visits import Codes, Floats, Ints

# the rules of the privacy test, one bit each
SIMILARITY, INTERSECTION, DIFFERENTIAL, OTHERS, MIN_SIM = 1, 2, 4, 8, 16


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


class Moves(NamedTuple):
    """
    Moves of many users: entries `start[u] : start[u + 1]`, by rising `key` = ((tau, tau'), r, r').

    `counts` is the number of such moves, `leaving` that of all departures from r between tau and tau', and `total (U,)`
    that of all departures.
    """

    start: Ints
    key: Ints
    counts: Floats
    leaving: Floats
    total: Floats


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


class Clock(NamedTuple):
    """The slots of each period: period tau owns `slot[start[tau] : start[tau + 1]]`."""

    slot: Ints
    start: Ints


class Visitors(NamedTuple):
    """The seeds that visit a place in a period: entries `start[tau * R + r] : start[tau * R + r + 1]`."""

    start: Ints
    trace: Codes
    visits: Codes


class Rules(NamedTuple):
    """The thresholds, as the kernel reads them."""

    par_s: float
    par_i: int
    par_d: float
    k: int
    min_sim: float  # 0 = off: no similarity is below it
    aligned: bool  # the intersection counts equal slots instead of common places (E41)
    quantile: float  # what strangers have (E15); infinity = off
    stop: int  # alternates found are counted up to this number
    exact_below: int  # a larger M would make N N' M inexact


class Prepared(NamedTuple):
    """All that a verdict needs besides the fake and the number of its seed."""

    rules: Rules
    clock: Clock
    r: Codes  # (S, L) the seeds
    seeds: Counted
    alternates: Counted  # the traces of a user side by side
    visitors: Visitors
    R: int


class Scratch(NamedTuple):
    """Working memory of one thread; every kernel leaves `tally`, `hist`, `forth`, `back` at 0."""

    fake: Counted
    tally: Codes  # (R,)
    hist: Codes  # (L + 1,)
    forth: Floats  # (S,)
    back: Floats


@njit
def empty_counts(traces: int, entries: int, T: int) -> Counted:
    """Return counts of `traces` traces, all 0, with room for `entries` places in all periods together."""
    return Counted(
        np.zeros(traces * T + 1, np.int64),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int32),
        np.zeros((traces, T), np.int64),
        np.zeros(traces, np.int64),
        np.zeros(traces, np.int64),
        np.zeros(traces, np.int64),
    )


@njit
def new_scratch(prepared: Prepared) -> Scratch:
    """Make working memory for `verdict_one`, one per thread."""
    L, S, T = len(prepared.clock.slot), len(prepared.r), len(prepared.clock.start) - 1
    return Scratch(
        empty_counts(1, L, T),
        np.zeros(prepared.R, np.int32),
        np.zeros(L + 1, np.int32),
        np.zeros(S, np.float64),
        np.zeros(S, np.float64),
    )


@njit
def count_row(row: Codes, clock: Clock, out: Counted, i: int, tally: Codes, hist: Codes, exact_below: int) -> None:
    """Count one trace into place i of `out`, whose `start[i * T]` is set; O(L)."""
    T = len(clock.start) - 1
    at = out.start[i * T]
    N, M = 0, 1
    for tau in range(T):
        first = at
        for j in range(clock.start[tau], clock.start[tau + 1]):
            r = row[clock.slot[j]]
            if r >= 0:
                if tally[r] == 0:
                    out.place[at] = r
                    at += 1
                tally[r] += 1
        n, top = 0, 0
        for e in range(first, at):
            c = int(tally[out.place[e]])
            tally[out.place[e]] = 0
            out.visits[e] = c
            hist[c] += 1
            n += c
            top = max(top, c)
        # counting sort: no count exceeds the slots of the period
        e = first
        for c in range(top, 0, -1):
            for _ in range(hist[c]):
                out.ranked[e] = c
                e += 1
            hist[c] = 0
        out.start[i * T + tau + 1] = at
        out.n[i, tau] = n
        N += n
        if n > 0 and M > 0:
            step = n // math.gcd(M, n)
            M = M * step if step <= exact_below // M else 0
    out.N[i] = N
    out.M[i] = M


@njit
def count_rows(r: Codes, user: Ints, clock: Clock, R: int, exact_below: int) -> Counted:
    """Count all traces `r` (traces, L)."""
    T = len(clock.start) - 1
    out = empty_counts(len(r), r.size, T)
    tally, hist = np.zeros(R, np.int32), np.zeros(r.shape[1] + 1, np.int32)
    for i in range(len(r)):
        count_row(r[i], clock, out, i, tally, hist, exact_below)
    end = out.start[-1]
    return Counted(
        out.start,
        out.place[:end].copy(),
        out.visits[:end].copy(),
        out.ranked[:end].copy(),
        out.n,
        out.N,
        out.M,
        user.copy(),
    )


@njit
def list_visitors(seeds: Counted, R: int) -> Visitors:
    """Return the traces that visit each place in each period, with their visits."""
    T = seeds.n.shape[1]
    start = np.zeros(T * R + 1, np.int64)
    for i in range(len(seeds.N) * T):
        for e in range(seeds.start[i], seeds.start[i + 1]):
            start[(i % T) * R + seeds.place[e] + 1] += 1
    start = np.cumsum(start)
    free = start.copy()
    trace, visits = np.zeros(len(seeds.place), np.int32), np.zeros(len(seeds.place), np.int32)
    for i in range(len(seeds.N) * T):
        for e in range(seeds.start[i], seeds.start[i + 1]):
            key = (i % T) * R + seeds.place[e]
            trace[free[key]] = i // T
            visits[free[key]] = seeds.visits[e]
            free[key] += 1
    return Visitors(start, trace, visits)


@njit
def geographic(u: Counted, i: int, v: Counted, j: int, tally: Codes) -> float:
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
def shared_places(u: Counted, i: int, v: Counted, j: int, tally: Codes) -> int:
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
def count_alternates(X: float, N: int, own: int, fake: Counted, alternates: Counted, par_d: float, stop: int) -> int:
    """
    Count the distinct users, other than `own`, with |sim_S(s, f) - sim_S(s', f)| < par_d for one of their traces (E52).

    The search ends after `stop` users.
    """
    count, last = 0, -1
    M = max(fake.M[0], 1)
    for a in range(len(alternates.N)):
        user = alternates.user[a]
        if user in (last, own):
            continue
        N_a = alternates.N[a]
        if abs(X * N_a - semantic_numerator(alternates, a, fake, 0) * N) / (N * N_a * M) < par_d:
            count, last = count + 1, user
            if count == stop:
                break
    return count


@njit
def largest_similarity(u: Counted, i: int, own: int, prepared: Prepared, scratch: Scratch) -> float:
    """Return the largest sim_G, in either direction, of u_i to a seed of any user but `own` (E15)."""
    seeds, visitors, forth, back = prepared.seeds, prepared.visitors, scratch.forth, scratch.back
    T = u.n.shape[1]
    for tau in range(T):
        m = u.n[i, tau]
        for e in range(u.start[i * T + tau], u.start[i * T + tau + 1]):
            key = tau * prepared.R + u.place[e]
            for x in range(visitors.start[key], visitors.start[key + 1]):
                s = visitors.trace[x]
                y = min(visitors.visits[x] * m, u.visits[e] * seeds.n[s, tau])
                forth[s] += term(y, m, u.M[i])
                back[s] += term(y, seeds.n[s, tau], seeds.M[s])
    best = 0.0
    for s in range(len(forth)):
        if forth[s] > 0.0 and seeds.user[s] != own:
            there = forth[s] / (seeds.N[s] * max(u.M[i], 1))
            best = max(best, there, back[s] / (u.N[i] * max(seeds.M[s], 1)))
        forth[s], back[s] = 0.0, 0.0
    return best


@njit
def similarity_of_alternates(prepared: Prepared) -> Floats:
    """Return for each trace of the alternates its similarity to the most similar seed of another user (E15)."""
    scratch = new_scratch(prepared)
    alternates = prepared.alternates
    out = np.empty(len(alternates.N), np.float64)
    for a in range(len(out)):
        out[a] = largest_similarity(alternates, a, alternates.user[a], prepared, scratch)
    return out


@njit
def verdict_one(
    fake: Codes, seed: int, prepared: Prepared, scratch: Scratch
) -> tuple[int, float, int, int, int, float, float]:
    """
    Return the verdict on one fake (L,) of seed number `seed`: all rules are evaluated.

    Returns the bits of the rules that rejected (0 = passed), sim_G, shared places, equal slots, alternates found,
    sim_S(s, f), and the largest similarity to another seed.
    """
    rules, seeds, f = prepared.rules, prepared.seeds, scratch.fake
    own = seeds.user[seed]
    count_row(fake, prepared.clock, f, 0, scratch.tally, scratch.hist, rules.exact_below)
    rejected = 0

    sim = geographic(f, 0, seeds, seed, scratch.tally)
    if sim > rules.par_s:  # E51
        rejected |= SIMILARITY

    shared = shared_places(f, 0, seeds, seed, scratch.tally)
    aligned = 0
    for t in range(len(fake)):
        if fake[t] >= 0 and fake[t] == prepared.r[seed, t]:
            aligned += 1
    if (aligned if rules.aligned else shared) > rules.par_i:  # E50
        rejected |= INTERSECTION

    X, N = semantic_numerator(seeds, seed, f, 0), seeds.N[seed]
    sim_s = X / (N * max(f.M[0], 1))
    alternates = 0
    if rules.k > 1:
        alternates = count_alternates(X, N, own, f, prepared.alternates, rules.par_d, rules.stop)
        if alternates < rules.k - 1:
            rejected |= DIFFERENTIAL
    if sim_s < rules.min_sim:  # E56
        rejected |= MIN_SIM

    nearest = 0.0
    if rules.quantile < np.inf:
        nearest = largest_similarity(f, 0, own, prepared, scratch)
        if nearest > rules.quantile:
            rejected |= OTHERS
    return rejected, sim, shared, aligned, alternates, sim_s, nearest


@njit
def verdicts(
    fakes: Codes,
    seed: Ints,
    prepared: Prepared,
    rejected: NDArray[np.uint8],
    sim: Floats,
    shared: Ints,
    aligned: Ints,
    found: Ints,
    sim_s: Floats,
    nearest: Floats,
) -> None:
    """Write `verdict_one` of each of the fakes (F, L) into the seven columns."""
    scratch = new_scratch(prepared)
    for i in range(len(fakes)):
        rejected[i], sim[i], shared[i], aligned[i], found[i], sim_s[i], nearest[i] = verdict_one(
            fakes[i], seed[i], prepared, scratch
        )
