"""
Compiled loops of the paper's generator: random numbers, the lines of the box, both decoders, whole attempts.

Sets of places are rows of marks: the semantic seed of a trace is (L, R), a class one row of (kappa + 1, R), of which
the last is the class of what has none. Probabilities are in logarithms, so that no path leaves the range of floats.

A stream is numpy's own Philox4x64-10 (Salmon et al. 2011), bit for bit: attempt i on seed s reads what
`Generator(Philox(key=key, counter=[0, i, s, 0])).random()` would return. So no two attempts share a number, a result
depends on neither order nor number of workers, and no Python object is made per fake.

numba keeps machine code per file and looks at that file's date alone: after a change here, or of a named tuple that is
passed in, remove the `__pycache__` of those who call it.
"""

import math
from typing import NamedTuple

import numpy as np

from elsewhere._jit import njit
from elsewhere.data.visits import Floats, Ints
from elsewhere.paper._profile_kernels import draw_index, from_logs

_M0, _M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_W0, _W1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_LOW, _HALF, _ELEVEN = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(11)
_ONE, _FOUR, _SIX = np.uint64(1), np.uint64(4), np.uint64(6)


@njit
def open_stream(key, attempt, row):
    """Return the stream of one attempt on one seed: key (2), counter (4), block (4), numbers used of the block."""
    stream = np.zeros(11, dtype=np.uint64)
    stream[0], stream[1], stream[3], stream[4] = key[0], key[1], attempt, row
    stream[10] = _FOUR
    return stream


@njit
def _high(a, b):
    """Return the upper 64 of the 128 bits of a * b."""
    a_low, a_high, b_low, b_high = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    middle = a_high * b_low + ((a_low * b_low) >> _HALF)
    return a_high * b_high + (middle >> _HALF) + ((a_low * b_high + (middle & _LOW)) >> _HALF)


@njit
def _next_block(stream):
    # counter word 0 cannot wrap: 2^66 numbers per attempt
    stream[2] += _ONE
    k0, k1 = stream[0], stream[1]
    c0, c1, c2, c3 = stream[2], stream[3], stream[4], stream[5]
    for _ in range(10):
        c0, c1, c2, c3 = _high(_M1, c2) ^ c1 ^ k0, _M1 * c2, _high(_M0, c0) ^ c3 ^ k1, _M0 * c0
        k0 += _W0
        k1 += _W1
    stream[6], stream[7], stream[8], stream[9], stream[10] = c0, c1, c2, c3, np.uint64(0)


@njit
def uniform(stream):
    """Draw one number of [0, 1), 53 bits."""
    if stream[10] == _FOUR:
        _next_block(stream)
    used = stream[10]
    stream[10] = used + _ONE
    return np.float64(stream[_SIX + used] >> _ELEVEN) * (1.0 / 9007199254740992.0)


@njit
def widen_classes(classes, seed, c_min):
    """
    Return the places of each class, with as many nearest classes as bring it to c_min outside visited(seed) (E30).

    Where not so many exist, a class stays as it is. c_min = 1 widens nothing: where a class of the paper's method is
    used up, the ladder of E45 helps.
    """
    wide, outside = classes.places.copy(), np.ones(len(classes.label), dtype=np.bool_)
    for r in seed:
        outside[r] = outside[r] and r < 0
    for c in range(len(classes.near) if c_min > 1 else 0):
        for k in classes.near[c]:
            if (wide[c] & outside).sum() < c_min:
                wide[c] |= classes.places[k]
        if (wide[c] & outside).sum() < c_min:
            wide[c] = classes.places[c]
    return wide


@njit
def subsample_classes(C, class_at, par_c, stream):
    """Return C', each place of the classes of the seed removed with probability par_c; one survivor stays (E39)."""
    C_prime, met = np.zeros_like(C), np.zeros(len(C), dtype=np.bool_)
    fate = np.zeros(C.shape[1], dtype=np.int8)
    for c in class_at:
        places = np.flatnonzero(C[c])
        if c < 0 or met[c] or len(places) == 0:
            continue
        met[c] = True
        for r in places:
            # classes that were widened may overlap: a place removed from C' is removed everywhere
            if fate[r] == 0:
                fate[r] = 1 if uniform(stream) < par_c else 2
            C_prime[c, r] = fate[r] == 2
        if not C_prime[c].any():
            C_prime[c, places[int(uniform(stream) * len(places))]] = True
    return C_prime


@njit
def merge_classes(semseed, C_prime, class_at, par_m, stream):
    """
    Return the sets with places merged around each change of class: dt slots into the neighbouring run with par_m^dt.

    One reach G for each place and boundary, P(G >= d) = par_m^d, at most to the end of the run, in both directions
    (E42).
    """
    merged, L = semseed.copy(), len(class_at)
    ends = np.append(np.flatnonzero(class_at[1:] != class_at[:-1]) + 1, L)
    for k in range(len(ends) - 1):
        start, change, end = ends[k - 1] if k > 0 else 0, ends[k], ends[k + 1]
        for source, t, stop, step in ((start, change, end, 1), (change, change - 1, start - 1, -1)):
            for r in np.flatnonzero(C_prime[class_at[source]]):
                at, u, power = t, uniform(stream), par_m
                while at != stop and u < power:
                    merged[at, r] = True
                    at, power = at + step, power * par_m
    return merged


@njit
def _without(places, r):
    left = places.copy()
    if r >= 0:
        left[r] = False
    return left


@njit
def remove_seed(semseed, C, C_prime, classes, seed, class_at, par_l, c_min, stream):
    """
    Return the sets without seed(t), each with probability par_l, and the step of the ladder of E45 that was needed.

    0 none; 1 only merged neighbours are left; 2 the whole class; 3 the nearest class of c_min places; 4 all places; -1
    where none is left at all.
    """
    out, step = semseed.copy(), np.zeros(len(seed), dtype=np.int8)
    for t in range(len(seed)):
        c, gone = class_at[t], seed[t] if uniform(stream) < par_l else -1
        left = _without(semseed[t], gone)
        step[t] = 0 if (left & C_prime[c]).any() else 1
        if not left.any():
            left, step[t] = _without(C[c], gone), 2
        for j in range(classes.near.shape[1] if c >= 0 and not left.any() else 0):
            left, step[t] = _without(classes.places[classes.near[c, j]], gone), 3
            if left.sum() >= c_min:
                break
            left[:] = False
        if not left.any():
            left = _without(classes.everywhere, gone)
            step[t] = 4 if left.any() else -1
        out[t] = left
    return out, step


@njit
def semantic_seed(seed, classes, pars, stream):
    """Return the semantic seed, (L, R), and the steps of `remove_seed`: the box, with classes widened by c_min."""
    class_at = np.array([classes.label[r] if r >= 0 else -1 for r in seed])
    C = widen_classes(classes, seed, pars.c_min)
    C_prime = subsample_classes(C, class_at, pars.par_c, stream)
    merged = merge_classes(C_prime[class_at], C_prime, class_at, pars.par_m, stream)
    return remove_seed(merged, C, C_prime, classes, seed, class_at, pars.par_l, pars.c_min, stream)


TIE = 1e-9  # scores that differ by less are equal: sums of logarithms are rounded


class Chain(NamedTuple):
    """The logarithms of a chain, as kernels read it: `table[pair[t]]` are those of the moves from slot t to t + 1."""

    first: Floats
    table: Floats
    pair: Ints


@njit
def _viterbi_step(p, rows, cols, delta, par_v, stream, best, back):
    """
    Set delta_{t+1} of the candidates `cols` and, in `back`, their best predecessors among `rows` (E46, E47).

    Scores are x X, x = delta_t(r) p_bar(r, r') and X one uniform number in [1, par_v] for each. X >= 1, so the winner
    scores at least the largest x. A predecessor draws its X only if par_v could still lift it to that, or to the best
    score drawn so far; the first of equal scores wins.
    """
    n, m, reach = len(rows), len(cols), math.log(par_v) + TIE
    score, cut = np.empty((n, m)), np.full(m, -np.inf)
    for i in range(n):
        row, d, x = p[rows[i]], delta[i], score[i]
        for j in range(m):
            x[j] = d + row[cols[j]]
            cut[j] = x[j] if x[j] > cut[j] else cut[j]
    for j in range(m):
        # a column of zeros draws nothing
        cut[j] = cut[j] - reach if cut[j] > -np.inf else np.inf
        best[j], back[j] = -np.inf, 0
    for i in range(n):
        x = score[i]
        for j in range(m):
            if x[j] >= cut[j]:
                y = x[j] + math.log1p((par_v - 1.0) * uniform(stream))
                if y > best[j] + TIE:
                    best[j], back[j] = y, i
                    cut[j] = max(cut[j], y - reach)


@njit
def viterbi(chain, offset, places, par_v, stream, fake):
    """Run the randomised Viterbi algorithm over candidate sets: fill `fake`, return False if no path is feasible."""
    delta = np.empty(len(places))
    back = np.zeros(len(places), dtype=np.int64)
    for i in range(offset[1]):
        delta[i] = chain.first[places[i]] + math.log1p((par_v - 1.0) * uniform(stream))
    for t in range(len(chain.pair)):
        a, b, c = offset[t], offset[t + 1], offset[t + 2]
        p, rows, cols = chain.table[chain.pair[t]], places[a:b], places[b:c]
        _viterbi_step(p, rows, cols, delta[a:b], par_v, stream, delta[b:c], back[b:c])
    # the last maximum, without a draw, and the way back from it
    L = len(fake)
    best = offset[L - 1]
    for i in range(best, offset[L]):
        best = i if delta[i] > delta[best] + TIE else best
    if delta[best] == -np.inf:
        return False
    for t in range(L - 1, -1, -1):
        fake[t] = places[best]
        if t > 0:
            best = offset[t - 1] + back[best]
    return True


@njit
def _forward_step(p, rows, cols, alpha, out):
    """Add to `out` ln sum_r alpha(r) p(r, r') for each r' of `cols`; all are logarithms."""
    top, total = np.full(len(cols), -np.inf), np.zeros(len(cols))
    for summing in (False, True):
        for i in range(len(rows)):
            if alpha[i] > -np.inf:
                row = p[rows[i]]
                for j in range(len(cols)):
                    x = alpha[i] + row[cols[j]]
                    if not summing:
                        top[j] = max(top[j], x)
                    elif x > top[j] - 746.0:  # below, the exponential is 0
                        total[j] += math.exp(x - top[j])
    for j in range(len(cols)):
        out[j] += top[j] + math.log(total[j]) if total[j] > 0.0 else -np.inf


@njit
def forward(chain, offset, places, alpha):
    """
    Run the forward filter over candidate sets: fill `alpha` with ln alpha, return ln Z.

    What is in `alpha` before are logarithms of weights of the candidates.
    """
    for i in range(offset[1]):
        alpha[i] += chain.first[places[i]]
    for t in range(len(chain.pair)):
        a, b, c = offset[t], offset[t + 1], offset[t + 2]
        _forward_step(chain.table[chain.pair[t]], places[a:b], places[b:c], alpha[a:b], alpha[b:c])
    last = alpha[offset[len(chain.pair)] :]
    return from_logs(last, np.empty(len(last)))


@njit
def backward(chain, offset, places, alpha, stream, fake):
    """Draw a trace from the posterior, last slot first; False if every path has probability 0."""
    for t in range(len(fake) - 1, -1, -1):
        weight = alpha[offset[t] : offset[t + 1]].copy()
        for i in range(len(weight) if t < len(fake) - 1 else 0):
            weight[i] += chain.table[chain.pair[t], places[offset[t] + i], fake[t + 1]]
        from_logs(weight, weight)
        i = draw_index(weight, len(weight), uniform(stream))
        if i < 0:
            return False
        fake[t] = places[offset[t] + i]
    return True


@njit
def draw_rows(chain, offset, places, log_weight, stream, r):
    """Draw rows `r` (n, L) of weighted candidate sets, one after the other; False where no path leads through one."""
    L = r.shape[1]
    for i in range(len(r)):
        at = offset[i * L : (i + 1) * L + 1]
        alpha = log_weight[at[0] : at[L]].copy()
        forward(chain, at - at[0], places[at[0] : at[L]], alpha)
        if not backward(chain, at - at[0], places[at[0] : at[L]], alpha, stream, r[i]):
            return False
    return True


@njit
def decode(chain, offset, places, par_v, stream, fake):
    """Run Viterbi if `par_v` >= 1, draw from the posterior if it is 0: fill `fake`, return False without a path."""
    if par_v > 0.0:
        return viterbi(chain, offset, places, par_v, stream, fake)
    alpha = np.zeros(len(places))
    forward(chain, offset, places, alpha)
    return backward(chain, offset, places, alpha, stream, fake)


@njit
def attempts(seeds, rows, tries, classes, pars, chain, key, fakes):
    """Make one attempt per row, semantic seed, then decoding: fill `fakes`, -1 where none was made."""
    for b in range(len(seeds)):
        stream = open_stream(key, tries[b], rows[b])
        semseed, step = semantic_seed(seeds[b], classes, pars, stream)
        slot, places = np.nonzero(semseed)
        offset = np.searchsorted(slot, np.arange(len(step) + 1))
        if step.min() < 0 or not decode(chain, offset, places, pars.par_v, stream, fakes[b]):
            fakes[b, :] = -1
