"""
Compiled loops of the deniable sampler.

Of the chain: the window of a semantic seed, the backward draw of a trace, ln of its emissions under every code. Of the
stock: the life of a walk, the dual with its gradient, and the laws of the groups.
"""

import math

import numpy as np

from elsewhere._jit import njit


@njit
def fill_window(classes, kept, par_m, q):
    """
    q_t of section 12 for every seed: `q[t, c, s]` = Pr{a place of class c, not the seed's own, is in semseed(t)}.

    `classes` (S, L) is the class of the seed at each instant, -1 unknown; `kept` = 1 - par_c; `q` comes in as zeros.
    """
    S, L = classes.shape
    start, end = np.empty(L, dtype=np.int64), np.empty(L, dtype=np.int64)
    for s in range(S):
        for t in range(L):
            start[t] = start[t - 1] if t > 0 and classes[s, t] == classes[s, t - 1] else t
        for t in range(L - 1, -1, -1):
            end[t] = end[t + 1] if t < L - 1 and classes[s, t] == classes[s, t + 1] else t
        for t in range(L):
            own = classes[s, t]
            if own < 0:
                continue
            before = classes[s, start[t] - 1] if start[t] > 0 else -1
            after = classes[s, end[t] + 1] if end[t] < L - 1 else -1
            if before >= 0:
                q[t, before, s] = kept * par_m ** (t - start[t] + 1)
            if after >= 0:
                reach = par_m ** (end[t] + 1 - t)
                q[t, after, s] = kept * (1 - (1 - q[t, after, s] / kept) * (1 - reach))
            q[t, own, s] = kept


@njit
def backward_sample(filters, p_into, pair, uniform, out):
    """
    Draw traces backwards from the filtered laws of one code.

    `filters` (L, R) holds Pr{f_t, evidence up to t} up to a factor; `p_into[a, r', r]` is p_bar(r, r') of period
    pair a; `pair` (L-1,) the period pair of each step; `uniform` (n, L) in [0, 1); `out` (n, L) is filled.
    """
    n, L = out.shape
    R = filters.shape[1]
    weight = np.empty(R)
    for i in range(n):
        for t in range(L - 1, -1, -1):
            total = 0.0
            if t == L - 1:
                for r in range(R):
                    weight[r] = filters[t, r]
                    total += weight[r]
            else:
                into = p_into[pair[t], out[i, t + 1]]
                for r in range(R):
                    weight[r] = filters[t, r] * into[r]
                    total += weight[r]
            point = uniform[i, t] * total
            chosen = -1
            passed = 0.0
            for r in range(R):
                if weight[r] > 0.0:
                    # rounding may leave the point just above the last sum: then the last possible place is drawn
                    chosen = r
                    passed += weight[r]
                    if point < passed:
                        break
            out[i, t] = chosen


CODES = 512  # codes whose tables stay in the cache while all fakes pass over them


@njit
def log_emissions(fakes, column, log_e, place, log_e_own, out):
    """`out[i, a]` = sum over t of ln e_t(fakes[i, t] | code a); places of no class use the last column of `log_e`."""
    F, L = fakes.shape
    A = log_e.shape[2]
    none = log_e.shape[1] - 1
    for start in range(0, A, CODES):
        end = min(start + CODES, A)
        for i in range(F):
            mine = out[i, start:end]
            mine[:] = 0.0
            for t in range(L):
                r = fakes[i, t]
                c = column[r] if column[r] >= 0 else none
                shared, own, at = log_e[t, c, start:end], log_e_own[t, start:end], place[t, start:end]
                for a in range(end - start):
                    x, y = own[a], shared[a]  # both read, so that no branch keeps the loop from being vectorised
                    mine[a] += x if at[a] == r else y


@njit
def _common(f, column, life, place, slot, by_life):
    total = by_life[0, life[0]] + by_life[1, life[1]] + by_life[2, life[2]] + by_life[3, life[3]]
    for t in range(len(f)):
        total += place[f[t]] + slot[t, column[f[t]]]
    return total


@njit
def sharing_loss(s, r, column, life, place, slot, by_life, level, weights, scale, at_place, at_slot, at_life, mass):
    """
    The dual of `stock` without its linear and ridge parts: scale sum_a weights_a sum_f ln(1 + exp(x_a(f))).

    Into `at_place`, `at_slot`, `at_life` (zeros on entry) go the means of the features under all groups together, into
    `mass` the sum of each group's law.
    """
    N, A = s.shape
    value = 0.0
    for i in range(N):
        common = _common(r[i], column, life[i], place, slot, by_life)
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
                at_life[k, life[i, k]] += chosen
    return value


@njit
def log_sigma(r, column, life, score, place, slot, by_life, level, out):
    """`out[i, a]` = ln sigma(x_a(r_i)); `score` (L, C, A), so that the groups are read side by side."""
    N, L = r.shape
    x = np.empty(len(level))
    for i in range(N):
        x[:] = _common(r[i], column, life[i], place, slot, by_life)
        x -= level
        for t in range(L):
            row = score[t, column[r[i, t]]]
            for a in range(len(x)):
                x[a] += row[a]
        for a in range(len(x)):
            out[i, a] = min(x[a], 0.0) - math.log1p(math.exp(-abs(x[a])))
