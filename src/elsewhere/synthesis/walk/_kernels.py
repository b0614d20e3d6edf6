"""Compiled loops of the walk: the law of the next place, draws and probabilities under weights, and the fit."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere._jit import njit

LENGTHS = 7  # bins of the length of a move
LONG = 3  # moves of this bin and above are long
KINDS = 6  # no move yet; last move short after 0, 1, 2 or more long ones; last move long, the first or a later one
TURNS = 6  # no direction; back, half back, aside, half ahead, ahead
DWELLS, RATES, PATTERNS = 6, 8, 16
SLOTS = 3  # parts of the day
RECENT = 8  # instants

# columns of the weights of a destination
TURN = KINDS * 2 * LENGTHS
DRIFT = TURN + TURNS * 4
VISITED = DRIFT + TURNS * 2
COLUMNS = VISITED + 6  # new, previous while moving, previous after a stay, first, earlier, recent
# columns of the weights of moving at all
RATE = PATTERNS
SLOT = RATE + DWELLS * RATES
KIND = SLOT + SLOTS
MOVING = KIND + KINDS * 2


class Tables(NamedTuple):
    """The numbers of a walk; factors are exp of weights, `steps` those of a step without memory."""

    first: NDArray[np.float64]  # (R,)
    places: NDArray[np.int64]  # those that a walk may visit
    lengths: NDArray[np.int8]  # (R, R) bin of the length of a move
    sectors: NDArray[np.int8]  # (R, R) sector of its direction, of 16; -1 without
    steps: NDArray[np.float64]  # (R, R) factors
    pair: NDArray[np.int64]  # r R + r' of the moves r -> r' that somebody went on from, sorted
    start: NDArray[np.int64]  # of the rows of `onward` of each pair
    onward: NDArray[np.int64]  # where they went on to
    onward_factor: NDArray[np.float64]
    factor: NDArray[np.float64]  # (COLUMNS,)
    moving: NDArray[np.float64]  # (MOVING,) logits
    leaving: NDArray[np.float64]  # (R,) logits
    slot: NDArray[np.int64]  # (L,)


@njit
def turn_of(before, after):
    """How a move of sector `after` turns from sector `before`."""
    if before < 0 or after < 0:
        return 0
    d = (after - before) % 16
    d = min(d, 16 - d)
    if d >= 7:
        return 1
    if d == 6:
        return 2
    return 3 if d >= 4 else 4 if d >= 2 else 5


@njit
def memory(f, t, lengths, sectors):
    """What f[0 .. t-1] leaves behind: (pattern, dwell, moves, previous place or -1, kind, sector, drift sector)."""
    now = f[t - 1]
    dwell = 1
    while t - 1 - dwell >= 0 and f[t - 1 - dwell] == now:
        dwell += 1
    previous = f[t - 1 - dwell] if t - 1 - dwell >= 0 else -1
    pattern, moves, long_moves, last_long, origin = 0, 0, 0, False, f[0]
    for u in range(t - 1, 0, -1):
        if f[u] == f[u - 1]:
            continue
        if t - 1 - u < 4:
            pattern |= 1 << (t - 1 - u)
        moves += 1
        far = lengths[f[u - 1], f[u]] >= LONG
        if far:
            long_moves += 1
        if moves == 1:
            last_long = far
        if moves == 4:
            origin = f[u - 1]
    kind = 0
    if moves > 0:
        kind = min(long_moves, 2) + (3 if last_long else 1)
    sector = sectors[previous, now] if previous >= 0 else -1
    return pattern, dwell, moves, previous, kind, sector, sectors[origin, now]


@njit
def moving_columns(pattern, dwell, moves, kind, t, slot, out):
    """The four weights that say whether the step to instant t is a move."""
    d = dwell - 1 if dwell <= 3 else 3 if dwell <= 5 else 4 if dwell <= 8 else 5
    steps = t - 1
    if steps == 0:
        rate = 0
    elif moves == 0:
        rate = 1 if steps < 4 else 2
    else:
        x = moves / steps
        rate = 3 if x < 0.15 else 4 if x < 0.3 else 5 if x < 0.5 else 6 if x < 0.75 else 7
    out[0] = pattern
    out[1] = RATE + d * RATES + rate
    out[2] = SLOT + slot
    out[3] = KIND + kind * 2 + (1 if dwell > 1 else 0)


@njit
def mark_visited(f, t, previous, still, mark):
    """Which of the columns from VISITED on a place has, as an offset; `mark` comes in as zeros."""
    for u in range(t):
        mark[f[u]] = 4 if u < t - RECENT else 5
    mark[f[0]] = 3
    if previous >= 0:
        mark[previous] = 1 + still


@njit
def columns(f, t, lengths, sectors, mark, out):
    """The four columns (R, 4) of every destination of a move at t."""
    _, dwell, _, previous, kind, sector, drift = memory(f, t, lengths, sectors)
    now, still = f[t - 1], 1 if dwell > 1 else 0
    mark[:] = 0
    mark_visited(f, t, previous, still, mark)
    for r in range(len(out)):
        b, s = lengths[now, r], sectors[now, r]
        far = 1 if b >= LONG else 0
        out[r, 0] = (kind * 2 + still) * LENGTHS + b
        out[r, 1] = TURN + (turn_of(sector, s) * 2 + still) * 2 + far
        out[r, 2] = DRIFT + turn_of(drift, s) * 2 + far
        out[r, 3] = VISITED + mark[r]


@njit
def all_moving_columns(r, lengths, sectors, slot, out):
    """`out` (N, L - 1, 4): the weights of every step of the traces `r`."""
    for i in range(len(r)):
        for t in range(1, r.shape[1]):
            pattern, dwell, moves, _, kind, _, _ = memory(r[i], t, lengths, sectors)
            moving_columns(pattern, dwell, moves, kind, t, slot[t], out[i, t - 1])


@njit
def all_columns(r, row, step, lengths, sectors, out):
    """`out` (M, R, 4): the columns of the moves row[i], from instant step[i] to the next."""
    mark = np.zeros(out.shape[1], dtype=np.int64)
    for i in range(len(row)):
        columns(r[row[i]], step[i] + 1, lengths, sectors, mark, out[i])


@njit
def next_law(f, t, w, mark, ahead, q):
    """
    P(f_t | f_<t) of a walk into `q`, at `w.places` alone; `mark` (R,) zeros and `ahead` (34,) are room to work in.

    A move with p = 1 / (1 + exp(-logit)); its destination by the product of factors over all places but the present.
    """
    if t == 0:
        for r in w.places:
            q[r] = w.first[r]
        return
    R, now = len(mark), f[t - 1]
    pattern, dwell, moves, previous, kind, sector, drift = memory(f, t, w.lengths, w.sectors)
    still = 1 if dwell > 1 else 0
    which = np.empty(4, dtype=np.int64)
    moving_columns(pattern, dwell, moves, kind, t, w.slot[t], which)
    logit = w.leaving[now]
    for k in range(4):
        logit += w.moving[which[k]]
    move = 1.0 / (1.0 + math.exp(-logit))
    for s in range(-1, 16):
        for far in range(2):
            ahead[2 * (s + 1) + far] = (
                w.factor[TURN + (turn_of(sector, s) * 2 + still) * 2 + far]
                * w.factor[DRIFT + turn_of(drift, s) * 2 + far]
            )
    base = (kind * 2 + still) * LENGTHS
    new = w.factor[VISITED]
    lengths, sectors, steps = w.lengths[now], w.sectors[now], w.steps[now]
    for r in w.places:
        b = lengths[r]
        q[r] = steps[r] * w.factor[base + b] * ahead[2 * (sectors[r] + 1) + (1 if b >= LONG else 0)]
    mark_visited(f, t, previous, still, mark)
    for u in range(t):
        r = f[u]
        if mark[r] > 0:
            q[r] *= w.factor[VISITED + mark[r]] / new
            mark[r] = 0
    if previous >= 0:
        key = previous * R + now
        j = np.searchsorted(w.pair, key)
        if j < len(w.pair) and w.pair[j] == key:
            for i in range(w.start[j], w.start[j + 1]):
                q[w.onward[i]] *= w.onward_factor[i]
    q[now] = 0.0
    total = 0.0
    for r in w.places:
        total += q[r]
    if total <= 0.0:
        move = 0.0
        total = 1.0
    for r in w.places:
        q[r] *= move / total
    q[now] = 1.0 - move


@njit
def walk(w, weight, uniform, out):
    """Draw traces `out` (n, L): P(f_t | f_<t) weight[t, f_t], normalised step by step; `uniform` (n, L) in [0, 1)."""
    n, L = out.shape
    R = len(w.first)
    q, mark, ahead = np.zeros(R), np.zeros(R, dtype=np.int64), np.empty(34)
    for i in range(n):
        for t in range(L):
            next_law(out[i], t, w, mark, ahead, q)
            total = 0.0
            for r in w.places:
                q[r] *= weight[t, r]
                total += q[r]
            point = uniform[i, t] * total
            chosen, passed = -1, 0.0
            for r in w.places:
                if q[r] > 0.0:
                    # rounding may leave the point just above the last sum: then the last possible place is drawn
                    chosen = r
                    passed += q[r]
                    if point < passed:
                        break
            out[i, t] = chosen


@njit
def log_walk(w, fakes, weight, common, out):
    """
    `common[i]` = ln of the walk without weights; `out[i, a]` what the weights `weight[a]` (L, R) add to it.

    -inf in `common`, and 0 in `out`, where a trace leaves the places of the walk.
    """
    n, L = fakes.shape
    R, A = len(w.first), len(weight)
    q, mark, ahead = np.zeros(R), np.zeros(R, dtype=np.int64), np.empty(34)
    allowed = np.zeros(R, dtype=np.bool_)
    for r in w.places:
        allowed[r] = True
    for i in range(n):
        common[i] = 0.0
        out[i] = 0.0
        for t in range(L):
            to = fakes[i, t]
            if not allowed[to]:
                common[i] = -np.inf
                out[i] = 0.0
                break
            next_law(fakes[i], t, w, mark, ahead, q)
            common[i] += math.log(q[to]) if q[to] > 0.0 else -np.inf
            for a in range(A):
                total = 0.0
                row = weight[a, t]
                for r in w.places:
                    total += q[r] * row[r]
                out[i, a] += math.log(row[to]) - math.log(total)


@njit
def destination_loss(theta, centre, ridge, cols, x, now, to, slope):
    """Minus ln likelihood of moves `now` -> `to`, with its gradient in `slope`; softmax over all places but `now`."""
    M, R, K = x.shape
    C = COLUMNS
    slope[:] = 0.0
    loss = 0.0
    s = np.empty(R)
    for i in range(M):
        top = -np.inf
        for r in range(R):
            if r == now[i]:
                s[r] = -np.inf
                continue
            v = theta[cols[i, r, 0]] + theta[cols[i, r, 1]] + theta[cols[i, r, 2]] + theta[cols[i, r, 3]]
            for k in range(K):
                v += theta[C + k] * x[i, r, k]
            s[r] = v
            top = max(top, v)
        mine = s[to[i]] - top
        total = 0.0
        for r in range(R):
            s[r] = math.exp(s[r] - top)
            total += s[r]
        loss += math.log(total) - mine
        for r in range(R):
            g = s[r] / total - (1.0 if r == to[i] else 0.0)
            if abs(g) < 1e-9:
                continue
            for k in range(4):
                slope[cols[i, r, k]] += g
            for k in range(K):
                slope[C + k] += g * x[i, r, k]
    for j in range(len(theta)):
        loss += ridge / 2 * (theta[j] - centre[j]) ** 2
        slope[j] += ridge * (theta[j] - centre[j])
    return loss
