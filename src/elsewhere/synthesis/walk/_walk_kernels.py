"""Compiled loops of the walk: what a trace leaves behind, and the fit."""

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
RECENT = 8  # slots
BLOCK = 32  # places whose pulls are summed at once
PAIR, LEAST = 2.0, 1e-12  # weight of the smoothing of moves; what is left of a step that nobody makes
SHAPES = LENGTHS * 17  # of a move: its length and its sector, or none
_T1, _T3, _T5, _T7 = (math.tan(k * math.pi / 16) for k in (1, 3, 5, 7))

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
STAYS = 6  # slots of the stay before: none, 1, 2, 3, 4 or 5, more
BENT = MOVING
EVEN = BENT + (DWELLS + 1) * BENDS * 2  # the first dwell twice: after a stay, after a move
SPENDS = 8  # slots so far at another place, at most: none, 1, 2, 3, 4 or 5, 6 to 8, 9 to 13, more
SPENT = EVEN + DWELLS * STAYS  # slots so far here, in bins of a dwell, by those at another place at most
ALL_MOVING = SPENT + DWELLS * SPENDS
EIGHT = 8  # moves of the course


class Ground(NamedTuple):
    """Lengths and directions of moves: tables of a map with few places, computed from positions on a large one."""

    lengths: NDArray[np.int8]  # (R, R) bin of the length of a move; (0, 0) on a large map
    sectors: NDArray[np.int8]  # (R, R) sector of its direction, of 16; -1 without; (0, 0) on a large map
    points: NDArray[np.float64]  # (R, 3) positions whose distance through the globe tells the length
    xy: NDArray[np.float64]  # (R, 2) positions on a plane, for directions
    limits: NDArray[np.float64]  # (LENGTHS - 1,) squared distances of points at which bins of length end


class Tables(NamedTuple):
    """
    The numbers of a walk; factors are exp of weights, `steps` those of a step without memory.

    On a map of few places every move has its step. On a large one the moves from place i of `places` to those in its
    reach do, `to[row[i] : row[i + 1]]` with `step`; all others have the step `scale[i] popular[j] kernel[length]`, if
    they are no longer than the square root of `most`, and `far` sums it up by their shapes: nothing is cut off.
    """

    first: NDArray[np.float64]  # (R,)
    places: NDArray[np.int64]  # those that a walk may visit
    lengths: NDArray[np.int8]  # (R, R) bin of the length of a move
    sectors: NDArray[np.int8]  # (R, R) sector of its direction, of 16; -1 without
    steps: NDArray[np.float64]  # (R, R) factors; (0, 0) on a large map
    pair: NDArray[np.int64]  # r R + r' of the moves r -> r' that somebody went on from, sorted
    start: NDArray[np.int64]  # of the rows of `onward` of each pair
    onward: NDArray[np.int64]  # where they went on to
    onward_factor: NDArray[np.float64]
    factor: NDArray[np.float64]  # (ALL_COLUMNS,)
    moving: NDArray[np.float64]  # (ALL_MOVING,) logits
    leaving: NDArray[np.float64]  # (R,) logits
    slot: NDArray[np.int64]  # (L,)
    people: int  # traces that taught it, one of each person as a rule (E61)
    day_statistics: NDArray[np.float64]  # (4, L + 1) share of them with each value (`day_statistics_of`)
    points: NDArray[np.float64] = np.zeros((0, 3))  # of a large map, of the P `places`, as in `Ground`
    xy: NDArray[np.float64] = np.zeros((0, 2))
    limits: NDArray[np.float64] = np.zeros(0)
    row: NDArray[np.int64] = np.zeros(1, dtype=np.int64)  # (P + 1,)
    to: NDArray[np.int32] = np.zeros(0, dtype=np.int32)  # numbers among `places`, in order within a row
    step: NDArray[np.float64] = np.zeros(0)
    shape: NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)
    popular: NDArray[np.float64] = np.zeros(0)  # (P,)
    scale: NDArray[np.float64] = np.zeros(0)  # (P,)
    kernel: NDArray[np.float64] = np.zeros(0)  # (LENGTHS,)
    far: NDArray[np.float64] = np.zeros((0, 0))  # (P, SHAPES) sums of popularity times kernel
    district: NDArray[np.int64] = np.zeros(0, dtype=np.int64)  # (P,) of each of the P `places`
    by_district: NDArray[np.int64] = np.zeros(0, dtype=np.int64)  # (P,) their numbers, district by district
    begin: NDArray[np.int64] = np.zeros(1, dtype=np.int64)  # (districts + 1,) of each in `by_district`
    between: NDArray[np.uint32] = np.zeros((0, 0, 0), np.uint32)  # (districts, districts, LENGTHS) sectors: a bit each
    most: float = 0.0  # squared distance of points beyond which nobody goes


@njit
def day_statistics_of(r, out):
    """Fill `out` (N, 4) from traces (N, L): moves, places, slots at its main place, whether it ends at its start."""
    N, L = r.shape
    R = 0
    for i in range(N):
        for t in range(L):
            R = max(R, r[i, t] + 1)
    last, count = np.full(R, -1), np.empty(R, dtype=np.int64)
    for i in range(N):
        moves, places, longest = 0, 0, 0
        for t in range(L):
            place = r[i, t]
            if last[place] != i:
                last[place], count[place] = i, 0
                places += 1
            count[place] += 1
            longest = max(longest, count[place])
            moves += t > 0 and place != r[i, t - 1]
        out[i, 0], out[i, 1], out[i, 2] = moves, places, longest
        out[i, 3] = 1 if r[i, 0] == r[i, L - 1] else 0


@njit
def turn_of(before, after):
    """Return how a move of sector `after` turns from sector `before`."""
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
def length_between(points, limits, a, b):
    """Return the bin of the length of a move, and the squared distance of its ends."""
    x, y, z = points[b, 0] - points[a, 0], points[b, 1] - points[a, 1], points[b, 2] - points[a, 2]
    d, j = x * x + y * y + z * z, 0
    while j < LENGTHS - 1 and d > limits[j]:
        j += 1
    return j, d


@njit
def sector_between(xy, a, b):
    """
    Return the sector of the direction of a move, of 16 about the points of the compass rose; -1 where there is
    none.
    """
    dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
    if dx == 0.0 and dy == 0.0:
        return -1
    x, y, q = abs(dx), abs(dy), 0
    if y > x * _T3:
        q = 2 if y <= x * _T5 else 3 if y <= x * _T7 else 4
    elif y > x * _T1:
        q = 1
    if dx < 0.0:
        q = 8 - q
    return (16 - q) % 16 if dy < 0.0 else q


@njit
def length_of(g, a, b):
    """Return the bin of the length of a move on a ground."""
    if len(g.lengths) > 0:
        return np.int64(g.lengths[a, b])
    return length_between(g.points, g.limits, a, b)[0]


@njit
def sector_of(g, a, b):
    """Return the sector of the direction of a move on a ground."""
    if len(g.lengths) > 0:
        return np.int64(g.sectors[a, b])
    return sector_between(g.xy, a, b)


@njit
def lengths_of(g, a, b, out):
    """Fill in the bins of the lengths of moves a[i] -> b[i]."""
    for i in range(len(a)):
        out[i] = length_of(g, a[i], b[i])


@njit
def lengths_from(g, r, out):
    """Fill in the bins of the lengths of the moves from r to every place."""
    for b in range(len(out)):
        out[b] = length_of(g, r, b)


@njit
def pulls_by_length(g, leaving, arrivals, out):
    """
    Fill `out` (LENGTHS,): arrivals at all other places by length of the move, summed over how often people
    leave each.
    """
    for r in range(len(leaving)):
        if leaving[r] > 0.0:
            for b in range(len(arrivals)):
                if b != r:
                    out[length_of(g, r, b)] += leaving[r] * arrivals[b]


@njit
def memory(f, t, g):
    """
    Return what f[0 .. t-1] leaves behind: (pattern, dwell, moves, previous place or -1, kind, sector, drift
    sector).
    """
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
        far = length_of(g, f[u - 1], f[u]) >= LONG
        if far:
            long_moves += 1
        if moves == 1:
            last_long = far
        if moves == 4:
            origin = f[u - 1]
    kind = 0
    if moves > 0:
        kind = min(long_moves, 2) + (3 if last_long else 1)
    sector = sector_of(g, previous, now) if previous >= 0 else -1
    return pattern, dwell, moves, previous, kind, sector, sector_of(g, origin, now)


@njit
def longer_memory(f, t, g):
    """
    Return what else f[0 .. t-1] leaves behind: last length, sector of the move before, stay before, course,
    steadiness.
    """
    moves, last, before, stay, arrived, origin = 0, LENGTHS, -1, 0, 0, f[0]
    recent = np.empty(EIGHT, dtype=np.int64)
    for u in range(t - 1, 0, -1):
        if f[u] == f[u - 1]:
            continue
        if moves < EIGHT:
            recent[moves] = sector_of(g, f[u - 1], f[u])
        moves += 1
        if moves == 1:
            last, arrived, stay = length_of(g, f[u - 1], f[u]), u, u
        elif moves == 2:
            before, stay = sector_of(g, f[u - 1], f[u]), arrived - u
        elif moves == EIGHT:
            origin = f[u - 1]
    course = sector_of(g, origin, f[t - 1])
    return last, before, stay, course, steadiness_bin(course, recent[: min(moves, EIGHT)])


@njit
def steadiness_bin(course, sectors):
    """Return the bin of STEADY of the share of these sectors that are on course."""
    on = 0
    for s in sectors:
        on += turn_size(turn_from(course, s)) <= 2
    return 0 if 2 * on < len(sectors) else 1 if 5 * on < 4 * len(sectors) else 2


@njit
def turn_from(before, after):
    """Return sixteenths of a turn from sector `before` to sector `after`, 0 .. 15; -1 where one is none."""
    return -1 if before < 0 or after < 0 else (after - before) % 16


@njit
def turn_size(turn):
    """Return sixteenths of a turn whichever way round, 0 .. 8; 9 for none."""
    return 9 if turn < 0 else min(turn, 16 - turn)


@njit
def bend_of(turn):
    """Return which of the BENDS the last turn is."""
    return 0 if turn < 0 else 1 + min(turn_size(turn) // 2, 3)


@njit
def further_columns(pattern, last, bent, sector, course, steady, b, s, out):
    """Fill in the four further weights of a destination of length bin b in sector s; `bent` is the last turn."""
    far, turn = 1 if b >= LONG else 0, turn_from(sector, s)
    again = turn
    if turn >= 0:
        again = turn_size(turn) if bent <= 0 else 16 - turn if bent > 8 and turn > 0 else turn
    out[0] = PACED + ((pattern & 3) * 10 + turn_size(turn)) * 2 + far
    out[1] = ZIGZAG + (bend_of(bent) * 17 + again + 1) * 2 + far
    out[2] = COURSE + (steady * 10 + turn_size(turn_from(course, s))) * 2 + far
    out[3] = SPEED + (last * 2 + 1 - (pattern & 1)) * LENGTHS + b


@njit
def further_moving_columns(dwell, bent, last, stay, here, elsewhere, out):
    """
    Fill in the three further weights that say whether a step is a move; `here` and `elsewhere` are slots so far, at
    this place and at the place beside it that has most.
    """
    d, far = dwell_bin(dwell), 1 if last < LENGTHS and last >= LONG else 0
    paced = 0 if dwell == 1 and stay == 1 else d + 1
    out[0] = BENT + (paced * BENDS + bend_of(bent)) * 2 + far
    out[1] = EVEN + d * STAYS + (stay if stay <= 3 else 4 if stay <= 5 else 5)
    most = 0 if elsewhere == 0 else 7 if elsewhere > 13 else 1 + dwell_bin(elsewhere)
    out[2] = SPENT + dwell_bin(here) * SPENDS + most


@njit
def dwell_bin(dwell):
    """Return which of the DWELLS it is."""
    return dwell - 1 if dwell <= 3 else 3 if dwell <= 5 else 4 if dwell <= 8 else 5


@njit
def moving_columns(pattern, dwell, moves, kind, t, slot, out):
    """Fill in the four weights that say whether the step to slot t is a move."""
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
def mark_of(place, last, t, first, previous, still):
    """Return which of the columns from VISITED on a place has that was visited, as an offset; `last` is when."""
    if place == previous:
        return 1 + still
    return 3 if place == first else 4 if last < t - RECENT else 5


@njit
def mark_visited(f, t, previous, still, mark):
    """Mark which of the columns from VISITED on a place has, as an offset; `mark` comes in as zeros."""
    for u in range(t):
        mark[f[u]] = mark_of(f[u], u, t, f[0], previous, still)


@njit
def columns(f, t, g, among, mark, out):
    """Fill in the four columns (n, 4) of destinations `among` (n,) of a move at t."""
    _, dwell, _, previous, kind, sector, drift = memory(f, t, g)
    now, still = f[t - 1], 1 if dwell > 1 else 0
    mark[:] = 0
    mark_visited(f, t, previous, still, mark)
    for j in range(len(out)):
        r = among[j]
        b, s = length_of(g, now, r), sector_of(g, now, r)
        far = 1 if b >= LONG else 0
        out[j, 0] = (kind * 2 + still) * LENGTHS + b
        out[j, 1] = TURN + (turn_of(sector, s) * 2 + still) * 2 + far
        out[j, 2] = DRIFT + turn_of(drift, s) * 2 + far
        out[j, 3] = VISITED + mark[r]


@njit
def columns_of_steps(r, g, slot, out):
    """Fill `out` (N, L - 1, 7): the weights of every step of the traces `r`."""
    spent = np.zeros(r.max() + 1 if r.size > 0 else 0, dtype=np.int64)
    for i in range(len(r)):
        elsewhere = 0
        for t in range(1, r.shape[1]):
            now = r[i, t - 1]
            spent[now] += 1
            if t > 1 and now != r[i, t - 2]:
                elsewhere = most_elsewhere(r[i, : t - 1], spent, now)
            pattern, dwell, moves, _, kind, sector, _ = memory(r[i], t, g)
            last, before, stay, _, _ = longer_memory(r[i], t, g)
            moving_columns(pattern, dwell, moves, kind, t, slot[t], out[i, t - 1])
            bent = turn_from(before, sector)
            further_moving_columns(dwell, bent, last, stay, spent[now], elsewhere, out[i, t - 1, 4:])
        spent[r[i]] = 0


@njit
def most_elsewhere(places, spent, now):
    """Return the most slots that were spent at one of these places, but for `now`."""
    most = 0
    for place in places:
        if place != now:
            most = max(most, spent[place])
    return most


@njit
def columns_of_moves(r, row, step, R, g, among, out):
    """
    Fill `out` (M, n, 8): the columns of the moves row[i], from slot step[i] to the next; `among` (M, n), or (1,
    n).
    """
    mark = np.zeros(R, dtype=np.int64)
    for i in range(len(row)):
        f, t, places = r[row[i]], step[i] + 1, among[min(i, len(among) - 1)]
        columns(f, t, g, places, mark, out[i])
        pattern, _, _, _, _, sector, _ = memory(f, t, g)
        last, before, _, course, steady = longer_memory(f, t, g)
        bent, now = turn_from(before, sector), f[t - 1]
        for j in range(len(places)):
            b, s = length_of(g, now, places[j]), sector_of(g, now, places[j])
            further_columns(pattern, last, bent, sector, course, steady, b, s, out[i, j, 4:])


@njit
def pulls_from(g, arrivals, kernel, wanted, out):
    """Fill `out` (R,): the sum of arrivals times kernel over all other places, of the places that are `wanted`."""
    for r in range(len(out)):
        if wanted[r]:
            total = 0.0
            for b in range(len(arrivals)):
                if b != r:
                    total += arrivals[b] * kernel[length_of(g, r, b)]
            out[r] = total


@njit
def fill_reach(
    g, law, kernel, known, near, start, moved, times, power, most, district, row, to, step, shape, far, scale, between
):
    """
    Fill `row`, `to`, `step`, `shape`, `far`, `scale`, `between` of the walk on a large map (`Tables`); return
    candidates.

    In reach of a known place r are those of `near` (R, n), and those that people moved to so many `times`, numbers
    start[r] to start[r + 1] of `moved`. The step of a move is its smoothed share to the power[0] times arrivals to the
    power[1]; `law` (3, R) holds arrivals, and what arrivals times kernel, and counts, of each origin are multiplied by.
    """
    arrivals, share, whole = law[0], law[1], law[2]
    R, size, P = len(arrivals), 0, 0
    number, inside, count = np.full(R, -1), np.zeros(R, dtype=np.bool_), np.zeros(R)
    popular, strength, drawn = arrivals ** (power[0] + power[1]), kernel ** power[0], arrivals ** power[1]
    for r in range(R):
        if known[r]:
            number[r] = P
            P += 1
    for r in range(R):
        if not known[r]:
            continue
        i = number[r]
        for m in range(start[r], start[r + 1]):
            inside[moved[m]], count[moved[m]] = known[moved[m]], times[m]
        for j in range(near.shape[1]):
            if near[r, j] >= 0:
                inside[near[r, j]] = True
        inside[r] = False
        scale[i], row[i] = share[r] ** power[0], size
        for b in range(R):
            if b == r or not known[b]:
                continue
            bin_, d = length_between(g.points, g.limits, r, b)
            if d > most and not inside[b]:
                continue
            k = bin_ * 17 + sector_between(g.xy, r, b) + 1
            if inside[b]:
                smooth = count[b] * whole[r] + share[r] * arrivals[b] * kernel[bin_] + LEAST
                to[size], shape[size] = number[b], k
                step[size] = smooth ** power[0] * drawn[b] * (1.0 if d <= most else LEAST)
                size += 1
                inside[b] = False
            else:
                far[i, k] += popular[b] * strength[bin_]
                between[district[i], district[number[b]], bin_] |= np.uint32(1 << (k - bin_ * 17))
        for m in range(start[r], start[r + 1]):
            count[moved[m]] = 0.0
    row[P] = size
    return size


@njit
def destination_loss(theta, centre, ridge, cols, x, now, to, slope):
    """
    Return minus ln likelihood of moves `now` -> `to`, with its gradient in `slope`; softmax over all places but
    `now`.
    """
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
def logistic_loss(weights, ridge, every, yes, slope):
    """
    Return minus ln likelihood of yes or no, logits sums of `weights[every]`, and a ridge; its gradient in
    `slope`.
    """
    loss = 0.0
    for j in range(len(weights)):
        slope[j] = ridge[j] * weights[j]
        loss += slope[j] * weights[j] / 2
    for i in range(len(every)):
        logit = 0.0
        for k in range(every.shape[1]):
            logit += weights[every[i, k]]
        if not yes[i]:
            logit = -logit
        miss = math.exp(-abs(logit))
        loss += math.log1p(miss) + max(-logit, 0.0)
        pull = (miss if logit > 0 else 1.0) / (1.0 + miss)
        for k in range(every.shape[1]):
            slope[every[i, k]] += -pull if yes[i] else pull
    return loss
