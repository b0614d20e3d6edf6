"""
Compiled inner loops of the service's attacks: a hidden chain over candidate sets, in logarithms.

A set list holds one set of places per slot: those of slot t are `place[start[t] : start[t + 1]]`.
"""

import math

import numpy as np

from elsewhere._jit import njit

TIE = 1e-9  # logarithms closer than this are equal


@njit
def candidates(start, place, between, mark, out_start, out_place):
    """
    Fill in the hidden places at every slot: those seen where something was, else `between` and those seen on either
    side.

    `mark (R,)` is scratch, all -1. Returns the number of entries.
    """
    L, size, before = len(start) - 1, 0, -1
    for t in range(L):
        out_start[t] = size
        after = t
        while after < L and start[after + 1] == start[after]:
            after += 1
        if after == t:
            before = t
        for s in (before, after):
            if 0 <= s < L:
                for r in place[start[s] : start[s + 1]]:
                    if mark[r] != t:
                        mark[r], out_place[size] = t, r
                        size += 1
        if after > t:
            for r in between:
                if mark[r] != t:
                    out_place[size] = r
                    size += 1
    out_start[L] = size
    return size


@njit
def _log_sums(out, here, there, level, p, log_p):
    """
    Set out[j] = ln sum_i exp(level[i]) p[here[i], there[j]].

    The sum is taken in plain numbers relative to the largest term; only where that underflows, edge by edge.
    """
    out[:] = -math.inf
    top = level.max()
    if top == -math.inf:
        return
    weight = np.exp(level - top)
    total = np.zeros(len(there))
    for i in range(len(here)):
        for j in range(len(there)):
            total[j] += weight[i] * p[here[i], there[j]]
    for j in range(len(there)):
        if total[j] > 0:
            out[j] = math.log(total[j]) + top
            continue
        edge = np.empty(len(here))
        for i in range(len(here)):
            edge[i] = level[i] + log_p[here[i], there[j]]
        best = edge.max()
        if best > -math.inf:
            out[j] = best + math.log(np.exp(edge - best).sum())


@njit
def localize(start, place, first, p, log_p, posterior):
    """
    Set `posterior[e]` (localization) = ln Pr{hidden place is entry e at its slot, everything seen}, by
    forward-backward.

    `first (C,)` ln law of the first slot, `p`, `log_p` (C, C) the chain. Returns ln
    of the total probability; where that is -inf `posterior` is left as it was.
    """
    L = len(start) - 1
    ahead, back = np.empty(len(place)), np.zeros(len(place))
    total = 0.0
    for t in range(L):
        b, c = start[t], start[t + 1]
        if t == 0:
            for e in range(b, c):
                ahead[e] = first[place[e]]
        else:
            a = start[t - 1]
            _log_sums(ahead[b:c], place[a:b], place[b:c], ahead[a:b], p, log_p)
        # kept near 0, so that rounding does not grow with the length of the log
        top = ahead[b:c].max()
        if top == -math.inf:
            return -math.inf
        ahead[b:c] -= top
        total += top
    total += math.log(np.exp(ahead[start[L - 1] :]).sum())
    for t in range(L - 2, -1, -1):
        a, b, c = start[t], start[t + 1], start[t + 2]
        _log_sums(back[a:b], place[b:c], place[a:b], back[b:c], p.T, log_p.T)
        back[a:b] -= back[a:b].max()
    for t in range(L):
        b, c = start[t], start[t + 1]
        both = ahead[b:c] + back[b:c]
        top = both.max()
        posterior[b:c] = both - (top + math.log(np.exp(both - top).sum()))
    return total
