"""Compiled loops of the decoders over candidate sets: randomised Viterbi, and forward filter, backward sample."""

import math

import numpy as np

from elsewhere._jit import njit
from elsewhere.synthesis.streams._kernels import uniform

# below this share of the largest, a probability is carried on in logarithms
_RANGE, _LOG_RANGE = 1e-150, -345.0


@njit
def _in_range(p, rows, cols, before, after):
    """Whether every state that can be reached is well above underflow."""
    for j in range(len(cols)):
        if after[j] < _RANGE:
            for i in range(len(rows)):
                if before[i] > 0.0 and p[rows[i], cols[j]] > 0.0:
                    return False
    return True


@njit
def viterbi_start(first, rows, par_v, in_logs, stream, delta):
    """delta_1 of the candidates of the first instant: pi_bar times one draw each (section 10.3)."""
    for i in range(len(rows)):
        delta[i] = first[rows[i]] * (1.0 + (par_v - 1.0) * uniform(stream))
        if in_logs:
            delta[i] = np.log(delta[i])


@njit
def _scores(p, rows, cols, delta, in_logs, score, top):
    """x = delta_t(r) p_bar(r, r') and its largest per column; in logarithms x over that, and the ln is returned."""
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
    The largest x X of each column, and its row.

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
def viterbi_step(p, rows, cols, delta, par_v, in_logs, stream, out, back):
    """
    delta_{t+1} of the candidates `cols` and, in `back`, their best predecessors among `rows` (section 10.3).

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
def follow(delta, back, offset, places, in_logs, fake):
    """The last maximum, without a draw, and the way back from it; False if every path has probability 0."""
    j = 0
    for i in range(len(delta)):
        j = i if delta[i] > delta[j] else j
    if delta[j] == (-np.inf if in_logs else 0.0):
        return False
    for t in range(len(fake) - 1, -1, -1):
        fake[t] = places[offset[t] + j]
        j = back[offset[t] + j]
    return True


@njit
def viterbi(chain, offset, places, par_v, stream, fake):
    """Randomised Viterbi over candidate sets; fills `fake`, False if no path is feasible."""
    delta = np.empty(len(places))
    back = np.zeros(len(places), dtype=np.int64)
    for in_logs in (False, True):
        # a repetition draws the same numbers: to draw afresh would favour traces that keep their range
        numbers = stream.copy()
        viterbi_start(chain.first, places[: offset[1]], par_v, in_logs, numbers, delta)
        kept = True
        for t in range(len(chain.pair)):
            a, b, c = offset[t], offset[t + 1], offset[t + 2]
            p, rows, cols = chain.table[chain.pair[t]], places[a:b], places[b:c]
            kept &= viterbi_step(p, rows, cols, delta[a:b], par_v, in_logs, numbers, delta[b:c], back[b:c])
        if kept:
            break
    return follow(delta[offset[len(chain.pair)] :], back, offset, places, in_logs, fake)


@njit
def from_logs(log_weight, weight):
    """exp of the logarithms less the largest of them; returns ln of their sum."""
    top = -np.inf
    for x in log_weight:
        top = max(top, x)
    total = 0.0
    for i in range(len(log_weight)):
        weight[i] = np.exp(log_weight[i] - top) if top > -np.inf else 0.0
        total += weight[i]
    return top + np.log(total)


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
def forward_start(first, rows, in_logs, alpha):
    """alpha_1, as `forward_step` gives the later ones."""
    for i in range(len(rows)):
        alpha[i] = np.log(first[rows[i]]) if in_logs else first[rows[i]]
    return 0.0 if in_logs else _scale(alpha)


@njit
def forward_step(p, rows, cols, alpha, in_logs, out):
    """
    alpha_{t+1} = alpha_t p, scaled to sum 1; returns ln of the scale.

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
def pick(weight, stream):
    """An index, with probability in proportion to its weight: never one of weight 0, and -1 if all are."""
    total = 0.0
    for w in weight:
        total += w
    rest = uniform(stream) * total
    last = -1
    for i in range(len(weight)):
        if weight[i] > 0.0:
            last = i
            rest -= weight[i]
            if rest < 0.0:
                break
    return last


@njit
def pick_end(alpha, in_logs, stream):
    """A candidate of the last instant, by alpha_L; -1 if every path has probability 0."""
    if in_logs:
        weight = np.empty(len(alpha))
        from_logs(alpha, weight)
        return pick(weight, stream)
    return pick(alpha, stream)


@njit
def pick_before(p, rows, col, alpha, in_logs, stream):
    """A candidate of instant t, given the place of instant t + 1: in proportion to alpha_t p."""
    weight = np.empty(len(rows))
    for i in range(len(rows)):
        weight[i] = alpha[i] + np.log(p[rows[i], col]) if in_logs else alpha[i] * p[rows[i], col]
    return pick_end(weight, in_logs, stream)


@njit
def forward(chain, offset, places, alpha):
    """Forward filter over candidate sets; fills `alpha`, returns ln Z and whether `alpha` holds logarithms."""
    for in_logs in (False, True):
        log_z = forward_start(chain.first, places[: offset[1]], in_logs, alpha[: offset[1]])
        for t in range(len(chain.pair)):
            a, b, c = offset[t], offset[t + 1], offset[t + 2]
            p, rows, cols = chain.table[chain.pair[t]], places[a:b], places[b:c]
            log_z += forward_step(p, rows, cols, alpha[a:b], in_logs, alpha[b:c])
        if not np.isnan(log_z):
            break
    if in_logs:
        last = alpha[offset[len(chain.pair)] :]
        log_z = from_logs(last, np.empty(len(last)))
    return log_z, in_logs


@njit
def backward(chain, offset, places, alpha, in_logs, stream, fake):
    """A trace from the posterior, last instant first; False if every path has probability 0."""
    L = len(fake)
    j = pick_end(alpha[offset[L - 1] : offset[L]], in_logs, stream)
    if j < 0:
        return False
    fake[L - 1] = places[offset[L - 1] + j]
    for t in range(L - 2, -1, -1):
        a, b = offset[t], offset[t + 1]
        p = chain.table[chain.pair[t]]
        i = pick_before(p, places[a:b], fake[t + 1], alpha[a:b], in_logs, stream)
        fake[t] = places[a + i]
    return True


@njit
def ffbs(chain, offset, places, stream, fake):
    """Forward filter, backward sample over candidate sets; fills `fake`, False if no path is feasible."""
    alpha = np.empty(len(places))
    _, in_logs = forward(chain, offset, places, alpha)
    return backward(chain, offset, places, alpha, in_logs, stream, fake)


@njit
def decode(chain, offset, places, par_v, stream, fake):
    """Viterbi if `par_v` >= 1, posterior sample if it is 0; fills `fake`, returns ln Pr{fake}, -inf without a path."""
    if par_v > 0.0:
        found = viterbi(chain, offset, places, par_v, stream, fake)
    else:
        found = ffbs(chain, offset, places, stream, fake)
    if not found:
        return -np.inf
    loglik = np.log(chain.first[fake[0]])
    for t in range(len(chain.pair)):
        loglik += np.log(chain.table[chain.pair[t], fake[t], fake[t + 1]])
    return loglik
