"""Compiled loops of the walk: what a trace leaves behind, draws, and the fit."""

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
SLOTS = 24  # parts of the day: people sleep at night
RECENT = 8  # instants
BLOCK = 32  # places whose pulls are summed at once

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
# further columns, of what the last two moves and stays leave behind; the private preset has none of them
STEADY = 3  # less than half of the moves were on course, less than four fifths, more
BENDS = 5  # how the last move turned from the one before: unknown, ahead, half ahead, aside, back
PACED = COLUMNS  # turn by whether the last two steps were moves
ZIGZAG = PACED + 4 * 10 * 2  # turn after a turn, the same way round or the other
COURSE = ZIGZAG + BENDS * 17 * 2  # turn from the course of the last eight moves, by how steady it was
SPEED = COURSE + STEADY * 10 * 2  # length after length
ALL_COLUMNS = SPEED + (LENGTHS + 1) * 2 * LENGTHS
STAYS = 6  # instants of the stay before: none, 1, 2, 3, 4 or 5, more
BENT = MOVING
EVEN = BENT + (DWELLS + 1) * BENDS * 2  # the first dwell twice: after a stay, after a move
ALL_MOVING = EVEN + DWELLS * STAYS
EIGHT = 8  # moves of the course


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
    factor: NDArray[np.float64]  # (ALL_COLUMNS,)
    moving: NDArray[np.float64]  # (ALL_MOVING,) logits
    leaving: NDArray[np.float64]  # (R,) logits
    slot: NDArray[np.int64]  # (L,)
    people: int  # traces that taught it, one of each person as a rule (E61)
    lives: NDArray[np.float64]  # (4, L + 1) share of them that live so (`life_of`), which no step of a walk knows


@njit
def life_of(r, out):
    """`out` (N, 4) of traces (N, L): moves, places, instants at its main place, whether it ends at its start."""
    N, L = r.shape
    for i in range(N):
        ordered = np.sort(r[i])
        moves, places, longest, run = 0, 1, 1, 1
        for t in range(1, L):
            moves += r[i, t] != r[i, t - 1]
            if ordered[t] == ordered[t - 1]:
                run += 1
                longest = max(longest, run)
            else:
                places += 1
                run = 1
        out[i, 0], out[i, 1], out[i, 2] = moves, places, longest
        out[i, 3] = 1 if r[i, 0] == r[i, L - 1] else 0


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
def longer_memory(f, t, lengths, sectors):
    """What else f[0 .. t-1] leaves behind: last length, sector of the move before, stay before, course, steadiness."""
    moves, last, before, stay, arrived, origin = 0, LENGTHS, -1, 0, 0, f[0]
    recent = np.empty(EIGHT, dtype=np.int64)
    for u in range(t - 1, 0, -1):
        if f[u] == f[u - 1]:
            continue
        if moves < EIGHT:
            recent[moves] = sectors[f[u - 1], f[u]]
        moves += 1
        if moves == 1:
            last, arrived, stay = lengths[f[u - 1], f[u]], u, u
        elif moves == 2:
            before, stay = sectors[f[u - 1], f[u]], arrived - u
        elif moves == EIGHT:
            origin = f[u - 1]
    course = sectors[origin, f[t - 1]]
    return last, before, stay, course, steadiness(course, recent[: min(moves, EIGHT)])


@njit
def steadiness(course, sectors):
    """Which of STEADY it is that moves in these sectors were on course."""
    on = 0
    for s in sectors:
        on += unsigned(turn_from(course, s)) <= 2
    return 0 if 2 * on < len(sectors) else 1 if 5 * on < 4 * len(sectors) else 2


@njit
def turn_from(before, after):
    """Sixteenths of a turn from sector `before` to sector `after`, 0 .. 15; -1 where one is none."""
    return -1 if before < 0 or after < 0 else (after - before) % 16


@njit
def unsigned(turn):
    """Sixteenths of a turn whichever way round, 0 .. 8; 9 for none."""
    return 9 if turn < 0 else min(turn, 16 - turn)


@njit
def bend_of(turn):
    """Which of the BENDS the last turn is."""
    return 0 if turn < 0 else 1 + min(unsigned(turn) // 2, 3)


@njit
def further_columns(pattern, last, bent, sector, course, steady, b, s, out):
    """The four further weights of a destination of length bin b in sector s; `bent` is the last turn."""
    far, turn = 1 if b >= LONG else 0, turn_from(sector, s)
    again = turn
    if turn >= 0:
        again = unsigned(turn) if bent <= 0 else 16 - turn if bent > 8 and turn > 0 else turn
    out[0] = PACED + ((pattern & 3) * 10 + unsigned(turn)) * 2 + far
    out[1] = ZIGZAG + (bend_of(bent) * 17 + again + 1) * 2 + far
    out[2] = COURSE + (steady * 10 + unsigned(turn_from(course, s))) * 2 + far
    out[3] = SPEED + (last * 2 + 1 - (pattern & 1)) * LENGTHS + b


@njit
def further_moving_columns(dwell, bent, last, stay, out):
    """The two further weights that say whether a step is a move."""
    d, far = dwell_bin(dwell), 1 if last < LENGTHS and last >= LONG else 0
    paced = 0 if dwell == 1 and stay == 1 else d + 1
    out[0] = BENT + (paced * BENDS + bend_of(bent)) * 2 + far
    out[1] = EVEN + d * STAYS + (stay if stay <= 3 else 4 if stay <= 5 else 5)


@njit
def dwell_bin(dwell):
    """Which of the DWELLS it is."""
    return dwell - 1 if dwell <= 3 else 3 if dwell <= 5 else 4 if dwell <= 8 else 5


@njit
def moving_columns(pattern, dwell, moves, kind, t, slot, out):
    """The four weights that say whether the step to instant t is a move."""
    d = dwell_bin(dwell)
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
    """`out` (N, L - 1, 6): the weights of every step of the traces `r`."""
    for i in range(len(r)):
        for t in range(1, r.shape[1]):
            pattern, dwell, moves, _, kind, sector, _ = memory(r[i], t, lengths, sectors)
            last, before, stay, _, _ = longer_memory(r[i], t, lengths, sectors)
            moving_columns(pattern, dwell, moves, kind, t, slot[t], out[i, t - 1])
            further_moving_columns(dwell, turn_from(before, sector), last, stay, out[i, t - 1, 4:])


@njit
def all_columns(r, row, step, lengths, sectors, out):
    """`out` (M, R, 8): the columns of the moves row[i], from instant step[i] to the next."""
    mark = np.zeros(out.shape[1], dtype=np.int64)
    for i in range(len(row)):
        f, t = r[row[i]], step[i] + 1
        columns(f, t, lengths, sectors, mark, out[i])
        pattern, _, _, _, _, sector, _ = memory(f, t, lengths, sectors)
        last, before, _, course, steady = longer_memory(f, t, lengths, sectors)
        bent, now = turn_from(before, sector), f[t - 1]
        for to in range(out.shape[1]):
            further_columns(
                pattern, last, bent, sector, course, steady, lengths[now, to], sectors[now, to], out[i, to, 4:]
            )


@njit
def stroll(w, uniform, out):
    """
    Draw traces `out` (n, L) of the walk.

    `uniform` (n, 2 L - 1) in [0, 1): the first place, then of every step whether it is a move and where it leads. What
    a trace has been is carried along, and places are numbered among `w.places` while it is drawn.
    """
    n, L = out.shape
    R, P = len(w.first), len(w.places)
    at = np.full(R, -1)
    for j in range(P):
        at[w.places[j]] = j
    blocks = (P + BLOCK - 1) // BLOCK
    steps, shape, first = np.empty((P, P)), np.empty((P, P), dtype=np.int16), np.empty(P)
    for i in range(P):
        first[i] = w.first[w.places[i]] + (first[i - 1] if i > 0 else 0.0)
        for j in range(P):
            now, r = w.places[i], w.places[j]
            steps[i, j] = w.steps[now, r] if i != j else 0.0
            shape[i, j] = w.lengths[now, r] * 17 + w.sectors[now, r] + 1
    pull, passed, mark = np.zeros(blocks * BLOCK), np.empty(blocks), np.zeros(P, dtype=np.int64)
    factor, which, further = np.empty(LENGTHS * 17), np.empty(6, dtype=np.int64), np.empty(4, dtype=np.int64)
    along, around = np.empty(LENGTHS), np.empty(2)  # factors of a move by its length, and by its direction
    f, left, headed = np.empty(L, dtype=np.int64), np.empty(L, dtype=np.int64), np.empty(L, dtype=np.int64)
    for i in range(n):
        f[0] = min(np.searchsorted(first, uniform[i, 0] * first[P - 1], side="right"), P - 1)
        pattern, dwell, moves, far_moves, far, previous = 0, 1, 0, 0, False, -1
        last, stay, sector, bent = LENGTHS, 0, -1, -1
        for t in range(1, L):
            now = f[t - 1]
            kind = min(far_moves, 2) + (3 if far else 1) if moves > 0 else 0
            moving_columns(pattern, dwell, moves, kind, t, w.slot[t], which)
            further_moving_columns(dwell, bent, last, stay, which[4:])
            logit = w.leaving[w.places[now]]
            for k in range(6):
                logit += w.moving[which[k]]
            to = now
            if uniform[i, 2 * t - 1] * (1.0 + math.exp(-logit)) < 1.0:
                still = 1 if dwell > 1 else 0
                drift = shape[left[moves - 4] if moves >= 4 else f[0], now] % 17 - 1
                course = shape[left[moves - EIGHT] if moves >= EIGHT else f[0], now] % 17 - 1
                steady = steadiness(course, headed[max(moves - EIGHT, 0) : moves])
                for b in range(LENGTHS):
                    first_of = (kind * 2 + still) * LENGTHS, SPEED + (last * 2 + still) * LENGTHS
                    along[b] = w.factor[first_of[0] + b] * w.factor[first_of[1] + b]
                for s in range(-1, 16):
                    turn, turned = turn_of(sector, s), turn_of(drift, s)
                    for long in range(2):
                        further_columns(pattern, last, bent, sector, course, steady, long * LONG, s, further)
                        around[long] = (
                            w.factor[TURN + (turn * 2 + still) * 2 + long]
                            * w.factor[DRIFT + turned * 2 + long]
                            * (w.factor[further[0]] * w.factor[further[1]] * w.factor[further[2]])
                        )
                    for b in range(LENGTHS):
                        factor[b * 17 + s + 1] = along[b] * around[1 if b >= LONG else 0]
                row, kinds = steps[now], shape[now]
                for j in range(P):
                    pull[j] = row[j] * factor[kinds[j]]
                mark_visited(f, t, previous, still, mark)
                for u in range(t):
                    if mark[f[u]] > 0:
                        pull[f[u]] *= w.factor[VISITED + mark[f[u]]] / w.factor[VISITED]
                        mark[f[u]] = 0
                if previous >= 0:
                    key = w.places[previous] * R + w.places[now]
                    k = np.searchsorted(w.pair, key)
                    if k < len(w.pair) and w.pair[k] == key:
                        for m in range(w.start[k], w.start[k + 1]):
                            if at[w.onward[m]] >= 0:
                                pull[at[w.onward[m]]] *= w.onward_factor[m]
                # sums of blocks first: the place is then looked for in one block only
                total = 0.0
                for b in range(blocks):
                    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
                    for j in range(b * BLOCK, (b + 1) * BLOCK, 4):
                        s0 += pull[j]
                        s1 += pull[j + 1]
                        s2 += pull[j + 2]
                        s3 += pull[j + 3]
                    total += (s0 + s1) + (s2 + s3)
                    passed[b] = total
                point, b = uniform[i, 2 * t] * total, 0
                while b < blocks - 1 and point >= passed[b]:
                    b += 1
                point -= passed[b - 1] if b > 0 else 0.0
                for j in range(b * BLOCK, (b + 1) * BLOCK):
                    if pull[j] > 0.0:
                        # rounding may leave the point just above the last sum: then the last possible place is drawn
                        to = j
                        point -= pull[j]
                        if point < 0.0:
                            break
            f[t] = to
            pattern = (pattern << 1) & (PATTERNS - 1)
            if to == now:
                dwell += 1
            else:
                last, there = shape[now, to] // 17, shape[now, to] % 17 - 1
                far = last >= LONG
                far_moves += 1 if far else 0
                left[moves], headed[moves] = now, there
                bent, stay, sector = turn_from(sector, there), dwell, there
                pattern, dwell, previous = pattern | 1, 1, now
                moves += 1
        for t in range(L):
            out[i, t] = w.places[f[t]]


@njit
def destination_loss(theta, centre, ridge, cols, x, now, to, slope):
    """Minus ln likelihood of moves `now` -> `to`, with its gradient in `slope`; softmax over all places but `now`."""
    M, R, K = x.shape
    C, N = ALL_COLUMNS, cols.shape[2]
    slope[:] = 0.0
    loss = 0.0
    s = np.empty(R)
    for i in range(M):
        top = -np.inf
        for r in range(R):
            if r == now[i]:
                s[r] = -np.inf
                continue
            v = 0.0
            for k in range(N):
                v += theta[cols[i, r, k]]
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
            for k in range(N):
                slope[cols[i, r, k]] += g
            for k in range(K):
                slope[C + k] += g * x[i, r, k]
    for j in range(len(theta)):
        loss += ridge / 2 * (theta[j] - centre[j]) ** 2
        slope[j] += ridge * (theta[j] - centre[j])
    return loss


@njit
def moving_loss(weights, ridge, every, moved, slope):
    """Minus ln likelihood of whether steps are moves, logits sums of `weights[every]`, with its gradient in `slope`."""
    loss = 0.0
    for j in range(len(weights)):
        slope[j] = ridge[j] * weights[j]
        loss += slope[j] * weights[j] / 2
    for i in range(len(every)):
        logit = 0.0
        for k in range(every.shape[1]):
            logit += weights[every[i, k]]
        if not moved[i]:
            logit = -logit
        miss = math.exp(-abs(logit))
        loss += math.log1p(miss) + max(-logit, 0.0)
        pull = (miss if logit > 0 else 1.0) / (1.0 + miss)
        for k in range(every.shape[1]):
            slope[every[i, k]] += -pull if moved[i] else pull
    return loss


@njit
def agreements(skeleton, classes, out):
    """`out` (S, N): at how many slots walk f, of `classes` (L, N), has the class of skeleton s (S, L); -1 is none."""
    S, L = skeleton.shape
    for s in range(S):
        row = out[s]
        row[:] = 0
        for t in range(L):
            c, column = skeleton[s, t], classes[t]
            if c >= 0:
                for f in range(len(row)):
                    row[f] += column[f] == c


@njit
def place_bits(r, R):
    """(N, words of 64 bits) which places each trace visits; -1 is none."""
    out = np.zeros((len(r), (R + 63) // 64), np.uint64)
    for i in range(len(r)):
        for t in range(r.shape[1]):
            if r[i, t] >= 0:
                out[i, r[i, t] >> 6] |= np.uint64(1) << np.uint64(r[i, t] & 63)
    return out


@njit
def keep_apart(seeds, walks, limit, out):
    """Set `out` (S, N) to 0 where the places (bits) of seed s and walk f have more than `limit[s]` in common."""
    one, words = np.uint64(1), seeds.shape[1]
    for s in range(len(seeds)):
        for f in range(len(walks)):
            shared = 0
            for w in range(words):
                both = seeds[s, w] & walks[f, w]
                while both and shared <= limit[s]:
                    both &= both - one
                    shared += 1
                if shared > limit[s]:
                    out[s, f] = 0.0
                    break


@njit
def take(weight, seeds, free, uniform, out):
    """`out`: a walk for each of `seeds`, in that order, by weights (S, N) among the `free`; -1 where none is left."""
    N = weight.shape[1]
    for i in range(len(seeds)):
        row = weight[seeds[i]]
        total = 0.0
        for f in range(N):
            if free[f]:
                total += row[f]
        point, found = uniform[i] * total, -1
        if total > 0.0:
            for f in range(N):
                if free[f] and row[f] > 0.0:
                    # rounding may leave the point just above the last sum: then the last possible walk is taken
                    found = f
                    point -= row[f]
                    if point < 0.0:
                        break
        out[i] = found
        if found >= 0:
            free[found] = False
