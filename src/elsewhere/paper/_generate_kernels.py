"""
Compiled loops of the paper's generator: random numbers, semantic seed, both decoders, whole attempts in one call.

A stream is numpy's own Philox4x64-10 (Salmon et al. 2011), bit for bit: attempt i on seed s reads what
`Generator(Philox(key=key, counter=[0, i, s, 0])).random()` would return. So no two attempts share a number, a result
depends on neither order nor number of workers, and no Python object is made per fake.

numba keeps machine code per file and looks at that file's date alone: after a change here, or of a named tuple that is
passed in, remove the `__pycache__` of those who call it.
"""

import math

import numpy as np

from elsewhere._jit import njit
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
def _find_runs(seed, label):
    """
    Return the first slot of each maximal run of one class, closed by L; the class of each run; -1 where it is
    unknown.
    """
    L = len(seed)
    first = np.empty(L + 1, dtype=np.int64)
    kind = np.empty(L, dtype=np.int64)
    n = 0
    for t in range(L):
        c = label[seed[t]] if seed[t] >= 0 else -1
        if n == 0 or c != kind[n - 1]:
            first[n], kind[n] = t, c
            n += 1
    first[n] = L
    return first[: n + 1], kind[:n]


@njit
def _insert(places, low, high, r):
    """Insert r into the sorted places[low:high] unless it is there; the new end."""
    i = high
    while i > low and places[i - 1] > r:
        i -= 1
    if i > low and places[i - 1] == r:
        return high
    for j in range(high, i, -1):
        places[j] = places[j - 1]
    places[i] = r
    return high + 1


@njit
def _copy(places, low, source, removed):
    """Write the places of `source` that are not removed from `low` on; the end."""
    high = low
    for r in source:
        if not removed[r]:
            places[high] = r
            high += 1
    return high


@njit
def _members(classes, k):
    """Return the places of class k."""
    return classes.member[classes.start[k] : classes.start[k + 1]]


@njit
def _widen(c, classes, visited, c_min):
    """
    Return the class c and as many nearest classes as bring it to c_min places outside visited(seed) (E30), sorted.

    Where not so many exist, the class stays as it is. c_min = 1 widens nothing: where a class of the paper's method is
    used up, the ladder of E45 helps.
    """
    wide = np.empty(len(classes.everywhere), dtype=classes.member.dtype)
    n, j = 0, 0
    for r in _members(classes, c):
        n = _insert(wide, 0, n, r)
    while 1 < c_min:
        outside = 0
        for i in range(n):
            outside += not visited[wide[i]]
        if outside >= c_min or j == classes.near.shape[1]:
            return wide[:n] if outside >= c_min else _members(classes, c).copy()
        for r in _members(classes, classes.near[c, j]):
            n = _insert(wide, 0, n, r)
        j += 1
    return wide[:n]


@njit
def _subsample(places, par_c, fate, stream):
    """Return C' of one class: each place is removed with probability par_c, one uniform survivor stays (E39)."""
    kept = np.empty(len(places), dtype=places.dtype)
    n = 0
    for r in places:
        # classes that were widened may overlap: a place removed from C' is removed everywhere
        if fate[r] == 0:
            fate[r] = 1 if uniform(stream) < par_c else 2
        if fate[r] == 2:
            kept[n] = r
            n += 1
    if n == 0 and len(places) > 0:
        kept[0] = places[int(uniform(stream) * len(places))]
        n = 1
    return kept[:n]


@njit
def _blur_classes(kind, classes, pars, visited, stream):
    """Return the whole class (widened, E30) and the sub-sampled class C' of each run: item `which[k]` of two lists."""
    whole, kept = [classes.member[:0].copy()], [classes.member[:0].copy()]
    which, item = np.zeros(len(kind), dtype=np.int64), np.zeros(len(classes.start), dtype=np.int64)
    fate = np.zeros(len(visited), dtype=np.int8)
    for k in range(len(kind)):
        c = kind[k]
        if c >= 0 and item[c] == 0:
            item[c] = len(whole)
            whole.append(_widen(c, classes, visited, pars.c_min))
            kept.append(_subsample(whole[item[c]], pars.par_c, fate, stream))
        which[k] = item[c] if c >= 0 else 0
    return whole, kept, which


@njit
def _draw_reaches(source, longest, par_m, stream):
    """Draw a reach G for each place, P(G >= d) = par_m^d, cut at the end of the adjacent run (E42)."""
    reach = np.zeros(len(source), dtype=np.int64)
    for i in range(len(source)):
        u, power = uniform(stream), par_m
        while reach[i] < longest and u < power:
            reach[i] += 1
            power *= par_m
    return reach


@njit
def _merge_places(places, low, high, source, reach, d, removed):
    """Merge into places[low:high] those of `source` that come as far as distance d; the new end."""
    for i in range(len(source)):
        if reach[i] >= d and not removed[source[i]]:
            high = _insert(places, low, high, source[i])
    return high


@njit
def _fall_back(places, low, c, whole, classes, c_min, removed):
    """Take steps 2 to 4 of E45 for a slot of class c without candidates: the new end, and the step or -1."""
    high = _copy(places, low, whole, removed)
    if high > low:
        return high, 2
    for j in range(classes.near.shape[1] if c >= 0 else 0):
        high = _copy(places, low, _members(classes, classes.near[c, j]), removed)
        if high - low >= c_min:
            return high, 3
    high = _copy(places, low, classes.everywhere, removed)
    return high, 4 if high > low else -1


@njit
def semantic_seed(seed, classes, pars, stream):
    """
    Return the candidate set of every slot (E38-E45): offsets, sorted places, and the step of the ladder that was
    needed: 0 none; 1 only merged neighbours are left; 2 to 4 of E45.

    Numbers are drawn class by class, boundary by boundary, slot by slot. A step of -1 marks the slot that
    cannot be faked; there are no places then.
    """
    L = len(seed)
    first, kind = _find_runs(seed, classes.label)
    visited = np.zeros(len(classes.label), dtype=np.bool_)
    for r in seed:
        if r >= 0:
            visited[r] = True
    offset, step = np.zeros(L + 1, dtype=np.int64), np.zeros(L, dtype=np.int8)
    places = np.empty(L * len(classes.everywhere), dtype=classes.member.dtype)  # pages that are not used cost nothing
    whole, kept, which = _blur_classes(kind, classes, pars, visited, stream)
    # C' of the run before reaches into run k, and C' of the run after
    from_left, from_right = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    from_right.pop()
    for k in range(len(kind) - 1):
        from_left.append(_draw_reaches(kept[which[k]], first[k + 2] - first[k + 1], pars.par_m, stream))
        from_right.append(_draw_reaches(kept[which[k + 1]], first[k + 1] - first[k], pars.par_m, stream))
    removed = np.zeros_like(visited)
    k = 0
    for t in range(L):
        if t == first[k + 1]:
            k += 1
        gone = uniform(stream) < pars.par_l and seed[t] >= 0
        if gone:
            # nothing brings a marked place back, merging neither: the same as to remove it last (E40)
            removed[seed[t]] = True
        low = offset[t]
        own = high = _copy(places, low, kept[which[k]], removed)
        if k > 0:
            high = _merge_places(places, low, high, kept[which[k - 1]], from_left[k], t - first[k] + 1, removed)
        if k + 1 < len(kind):
            high = _merge_places(places, low, high, kept[which[k + 1]], from_right[k], first[k + 1] - t, removed)
        if high > low:
            step[t] = 0 if own > low else 1
        else:
            high, step[t] = _fall_back(places, low, kind[k], whole[which[k]], classes, pars.c_min, removed)
        if gone:
            removed[seed[t]] = False
        if step[t] < 0:
            return offset, places[:0], step
        offset[t + 1] = high
    return offset, places[: offset[L]].copy(), step


# below this share of the largest, a probability is carried on in logarithms
_RANGE, _LOG_RANGE = 1e-150, -345.0


@njit
def _in_range(p, rows, cols, before, after):
    """Tell whether every state that can be reached is well above underflow."""
    for j in range(len(cols)):
        if after[j] < _RANGE:
            for i in range(len(rows)):
                if before[i] > 0.0 and p[rows[i], cols[j]] > 0.0:
                    return False
    return True


@njit
def _scores(p, rows, cols, delta, in_logs, score, top):
    """
    Compute x = delta_t(r) p_bar(r, r') and its largest per column; in logarithms x over that, and the ln is
    returned.
    """
    n, m = len(rows), len(cols)
    unit = np.zeros(m)
    for j in range(m):
        top[j] = 0.0
    if not in_logs:
        for i in range(n):
            row, d, x = p[rows[i]], delta[i], score[i]
            for j in range(m):
                x[j] = d * row[cols[j]]
                top[j] = x[j] if x[j] > top[j] else top[j]
        return unit
    for j in range(m):
        unit[j] = -np.inf
        for i in range(n):
            score[i, j] = delta[i] + np.log(p[rows[i], cols[j]])
            unit[j] = max(unit[j], score[i, j])
        top[j] = 1.0 if unit[j] > -np.inf else 0.0
        for i in range(n):
            score[i, j] = np.exp(score[i, j] - unit[j]) if top[j] > 0.0 else 0.0
    return unit


@njit
def _draw_best(score, top, par_v, stream, best, back):
    """
    Write the largest product x X of each column into `best` and its row into `back`: x the entries of `score`, X one
    uniform number in [1, par_v] for each.

    X >= 1, so the winner scores at least `top`, the largest x. A predecessor draws its X only if par_v could still lift
    it to that, or to the best score drawn so far; the first of equal scores wins.
    """
    n, m = score.shape
    cut = np.empty(m)
    for j in range(m):
        # a column of zeros draws nothing
        cut[j] = top[j] / par_v if top[j] > 0.0 else np.inf
        best[j], back[j] = 0.0, 0
    for i in range(n):
        x = score[i]
        for j in range(m):
            if x[j] >= cut[j]:
                y = x[j] * (1.0 + (par_v - 1.0) * uniform(stream))
                if y > best[j]:
                    best[j], back[j] = y, i
                    cut[j] = max(cut[j], y / par_v)


@njit
def _viterbi_step(p, rows, cols, delta, par_v, in_logs, stream, out, back):
    """
    Set delta_{t+1} of the candidates `cols` and, in `back`, their best predecessors among `rows` (E46, E47).

    False says that a state of positive probability came near underflow. It may be the only one that lives on, so the
    decoding has to be repeated in logarithms: slow, never out of range.
    """
    score, top = np.empty((len(rows), len(cols))), np.empty(len(cols))
    unit = _scores(p, rows, cols, delta, in_logs, score, top)
    _draw_best(score, top, par_v, stream, out, back)
    if in_logs:
        for j in range(len(cols)):
            out[j] = unit[j] + np.log(out[j])
        return True
    largest = 0.0
    for d in out:
        largest = max(largest, d)
    if 0.0 < largest < _RANGE:
        return False
    # by a power of two: scaling changes no comparison
    power = math.ldexp(1.0, -math.frexp(largest)[1])
    for j in range(len(cols)):
        out[j] *= power
    return _in_range(p, rows, cols, delta, out)


@njit
def viterbi(chain, offset, places, par_v, stream, fake):
    """Run the randomised Viterbi algorithm over candidate sets: fill `fake`, return False if no path is feasible."""
    delta = np.empty(len(places))
    back = np.zeros(len(places), dtype=np.int64)
    for in_logs in (False, True):
        # a repetition draws the same numbers: to draw afresh would favour traces that keep their range
        numbers = stream.copy()
        for i in range(offset[1]):
            delta[i] = chain.first[places[i]] * (1.0 + (par_v - 1.0) * uniform(numbers))
            if in_logs:
                delta[i] = np.log(delta[i])
        kept = True
        for t in range(len(chain.pair)):
            a, b, c = offset[t], offset[t + 1], offset[t + 2]
            p, rows, cols = chain.table[chain.pair[t]], places[a:b], places[b:c]
            kept &= _viterbi_step(p, rows, cols, delta[a:b], par_v, in_logs, numbers, delta[b:c], back[b:c])
        if kept:
            break
    # the last maximum, without a draw, and the way back from it
    L = len(fake)
    best = offset[L - 1]
    for i in range(best, offset[L]):
        best = i if delta[i] > delta[best] else best
    if delta[best] == (-np.inf if in_logs else 0.0):
        return False
    for t in range(L - 1, -1, -1):
        fake[t] = places[best]
        if t > 0:
            best = offset[t - 1] + back[best]
    return True


@njit
def _scale(alpha):
    """Divide by the sum, in place, and return its logarithm."""
    total = 0.0
    for a in alpha:
        total += a
    for i in range(len(alpha) if total > 0.0 else 0):
        alpha[i] /= total
    return np.log(total)


@njit
def _forward_step(p, rows, cols, alpha, in_logs, out):
    """
    Set alpha_{t+1} = alpha_t p, scaled to sum 1; return ln of the scale.

    NaN says that a state of positive probability came near underflow. It may be the only one that lives on, so the
    filter has to be repeated in logarithms: slow, not scaled, never out of range.
    """
    n, m = len(rows), len(cols)
    if in_logs:
        term = np.empty(n)
        for j in range(m):
            for i in range(n):
                term[i] = alpha[i] + np.log(p[rows[i], cols[j]])
            out[j] = from_logs(term, term)
        return 0.0
    for j in range(m):
        out[j] = 0.0
    for i in range(n):
        row, a = p[rows[i]], alpha[i]
        for j in range(m):
            out[j] += a * row[cols[j]]
    log_scale = _scale(out)
    if -np.inf < log_scale < _LOG_RANGE or not _in_range(p, rows, cols, alpha, out):
        return np.nan
    return log_scale


@njit
def forward(chain, offset, places, alpha):
    """Run the forward filter over candidate sets: fill `alpha`, return ln Z and whether `alpha` holds logarithms."""
    for in_logs in (False, True):
        for i in range(offset[1]):
            alpha[i] = np.log(chain.first[places[i]]) if in_logs else chain.first[places[i]]
        log_z = 0.0 if in_logs else _scale(alpha[: offset[1]])
        for t in range(len(chain.pair)):
            a, b, c = offset[t], offset[t + 1], offset[t + 2]
            p, rows, cols = chain.table[chain.pair[t]], places[a:b], places[b:c]
            log_z += _forward_step(p, rows, cols, alpha[a:b], in_logs, alpha[b:c])
        if not np.isnan(log_z):
            break
    if in_logs:
        last = alpha[offset[len(chain.pair)] :]
        log_z = from_logs(last, np.empty(len(last)))
    return log_z, in_logs


@njit
def backward(chain, offset, places, alpha, in_logs, stream, fake):
    """Draw a trace from the posterior, last slot first; False if every path has probability 0."""
    for t in range(len(fake) - 1, -1, -1):
        weight = alpha[offset[t] : offset[t + 1]].copy()
        for i in range(len(weight) if t < len(fake) - 1 else 0):
            p = chain.table[chain.pair[t], places[offset[t] + i], fake[t + 1]]
            weight[i] = weight[i] + np.log(p) if in_logs else weight[i] * p
        if in_logs:
            from_logs(weight, weight)
        i = draw_index(weight, len(weight), uniform(stream))
        if i < 0:
            return False
        fake[t] = places[offset[t] + i]
    return True


@njit
def decode(chain, offset, places, par_v, stream, fake):
    """
    Run Viterbi if `par_v` >= 1, draw from the posterior if it is 0: fill `fake`, return ln Pr{fake}, -inf
    without a path.
    """
    if par_v > 0.0:
        found = viterbi(chain, offset, places, par_v, stream, fake)
    else:
        alpha = np.empty(len(places))
        _, in_logs = forward(chain, offset, places, alpha)
        found = backward(chain, offset, places, alpha, in_logs, stream, fake)
    if not found:
        return -np.inf
    loglik = np.log(chain.first[fake[0]])
    for t in range(len(chain.pair)):
        loglik += np.log(chain.table[chain.pair[t], fake[t], fake[t + 1]])
    return loglik


@njit
def attempts(seeds, rows, tries, classes, pars, chain, key, fakes):
    """Make one attempt per row, semantic seed, then decoding: fill `fakes`, -1 where none was made."""
    for b in range(len(seeds)):
        stream = open_stream(key, tries[b], rows[b])
        offset, places, _ = semantic_seed(seeds[b], classes, pars, stream)
        if len(places) == 0 or decode(chain, offset, places, pars.par_v, stream, fakes[b]) == -np.inf:
            fakes[b, :] = -1
