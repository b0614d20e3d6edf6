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
RECENT = 8  # slots
BLOCK = 32  # places whose pulls are summed at once
PAIR, LEAST = 2.0, 1e-12  # weight of the smoothing of moves; what is left of a step that nobody makes
SHAPES = LENGTHS * 17  # of a move: its length and its sector, or none
PROPOSED = 2000  # far places that are drawn before all of them are looked through
_T1, _T3, _T5, _T7 = (math.tan(k * math.pi / 16) for k in (1, 3, 5, 7))
_GOLDEN, _MIX1, _MIX2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)

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
ALL_MOVING = EVEN + DWELLS * STAYS
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
    return last, before, stay, course, steadiness(course, recent[: min(moves, EIGHT)])


@njit
def steadiness(course, sectors):
    """Return the bin of STEADY of the share of these sectors that are on course."""
    on = 0
    for s in sectors:
        on += unsigned(turn_from(course, s)) <= 2
    return 0 if 2 * on < len(sectors) else 1 if 5 * on < 4 * len(sectors) else 2


@njit
def turn_from(before, after):
    """Return sixteenths of a turn from sector `before` to sector `after`, 0 .. 15; -1 where one is none."""
    return -1 if before < 0 or after < 0 else (after - before) % 16


@njit
def unsigned(turn):
    """Return sixteenths of a turn whichever way round, 0 .. 8; 9 for none."""
    return 9 if turn < 0 else min(turn, 16 - turn)


@njit
def bend_of(turn):
    """Return which of the BENDS the last turn is."""
    return 0 if turn < 0 else 1 + min(unsigned(turn) // 2, 3)


@njit
def further_columns(pattern, last, bent, sector, course, steady, b, s, out):
    """Fill in the four further weights of a destination of length bin b in sector s; `bent` is the last turn."""
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
    """Fill in the two further weights that say whether a step is a move."""
    d, far = dwell_bin(dwell), 1 if last < LENGTHS and last >= LONG else 0
    paced = 0 if dwell == 1 and stay == 1 else d + 1
    out[0] = BENT + (paced * BENDS + bend_of(bent)) * 2 + far
    out[1] = EVEN + d * STAYS + (stay if stay <= 3 else 4 if stay <= 5 else 5)


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
def all_moving_columns(r, g, slot, out):
    """Fill `out` (N, L - 1, 6): the weights of every step of the traces `r`."""
    for i in range(len(r)):
        for t in range(1, r.shape[1]):
            pattern, dwell, moves, _, kind, sector, _ = memory(r[i], t, g)
            last, before, stay, _, _ = longer_memory(r[i], t, g)
            moving_columns(pattern, dwell, moves, kind, t, slot[t], out[i, t - 1])
            further_moving_columns(dwell, turn_from(before, sector), last, stay, out[i, t - 1, 4:])


@njit
def all_columns(r, row, step, R, g, among, out):
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
def fill_reach(g, law, kernel, known, near, start, moved, times, power, most, row, to, step, shape, far, scale):
    """
    Fill `row`, `to`, `step`, `shape`, `far` and `scale` of the walk on a large map (`Tables`); return candidates.

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
        for m in range(start[r], start[r + 1]):
            count[moved[m]] = 0.0
    row[P] = size
    return size


@njit
def spot(to, first, end, place):
    """Return where a place is in an ordered row of candidates, -1 where it is not."""
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        if to[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low - first if low < end and to[low] == place else -1


@njit
def mix(state):
    """Return the next state of a stream of random bits, and a number of [0, 1) (SplitMix64, Steele et al. 2014)."""
    state = state + _GOLDEN
    z = (state ^ (state >> _30)) * _MIX1
    z = (z ^ (z >> _27)) * _MIX2
    return state, np.float64((z ^ (z >> _31)) >> _11) * (1.0 / 9007199254740992.0)


@njit
def far_pull(w, now, place, factor):
    """Return the pull of a place out of reach, without memory of visits; 0 beyond where anybody goes."""
    b, d = length_between(w.points, w.limits, now, place)
    if d > w.most:
        return 0.0
    return w.popular[place] * w.kernel[b] * factor[b * 17 + sector_between(w.xy, now, place) + 1]


@njit
def draw_far(w, now, factor, passed, seen, bits, tries):
    """
    Draw a place out of reach by its pull: by popularity first, then accepted by what the move is like.

    `passed` are cumulative popularities, `bits` seed the draw; places that were `seen` (0 and above) are none of these.
    After so many `tries` all places are looked through.
    """
    top, P, n = 0.0, len(w.popular), w.row[now + 1] - w.row[now]
    for k in range(SHAPES):
        if w.far[now, k] > 0.0:
            top = max(top, factor[k] * w.kernel[k // 17])
    state = bits
    for _ in range(tries):
        state, u = mix(state)
        place = min(np.searchsorted(passed, u * passed[P - 1], side="right"), P - 1)
        if place == now or seen[place] >= 0 or spot(w.to, w.row[now], w.row[now] + n, place) >= 0:
            continue
        state, u = mix(state)
        if u * top * w.popular[place] < far_pull(w, now, place, factor):
            return place
    total = 0.0
    for turn in range(2):
        state, u = mix(state)
        point = u * total
        for place in range(P):
            if place != now and seen[place] < 0 and spot(w.to, w.row[now], w.row[now] + n, place) < 0:
                pull = far_pull(w, now, place, factor)
                if turn == 0:
                    total += pull
                else:
                    point -= pull
                    if point < 0.0:
                        return place
    return now


class Directions(NamedTuple):
    """Factors of a move by what leads up to it, and (34,) its sector, or none: 17 of short moves, then of long ones."""

    turn: NDArray[np.float64]  # (2, 17, 34) still or not, sector of the last move
    drift: NDArray[np.float64]  # (17, 34) sector of the last four
    pace: NDArray[np.float64]  # (4, 17, 34) the last two steps, sector of the last move
    bend: NDArray[np.float64]  # (17, 17, 34) the last turn, sector of the last move
    course: NDArray[np.float64]  # (STEADY, 17, 34) how steady it was, sector of the last eight


@njit
def directions(factor):
    """Return the factors of `Directions` by name, from those of the columns."""
    turn, drift = np.empty((2, 17, 34)), np.empty((17, 34))
    pace, bend, course = np.empty((4, 17, 34)), np.empty((17, 17, 34)), np.empty((STEADY, 17, 34))
    further = np.empty(4, dtype=np.int64)
    for before in range(-1, 16):
        for k in range(34):
            s, far = k % 17 - 1, k // 17
            turned = turn_of(before, s)
            drift[before + 1, k] = factor[DRIFT + turned * 2 + far]
            for still in range(2):
                turn[still, before + 1, k] = factor[TURN + (turned * 2 + still) * 2 + far]
            for i in range(17):
                pattern, steady = min(i, 3), min(i, STEADY - 1)
                further_columns(pattern, 0, i - 1, before, before, steady, far * LONG, s, further)
                pace[pattern, before + 1, k] = factor[further[0]]
                bend[i, before + 1, k] = factor[further[1]]
                course[steady, before + 1, k] = factor[further[2]]
    return Directions(turn, drift, pace, bend, course)


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
    everywhere = len(w.steps) > 0
    first, popular = np.empty(P), np.empty(len(w.popular))
    for i in range(P):
        first[i] = w.first[w.places[i]] + (first[i - 1] if i > 0 else 0.0)
    if everywhere:
        row, to = np.arange(P + 1) * P, np.zeros(0, dtype=np.int32)
        steps, shape = np.empty(P * P), np.empty(P * P, dtype=np.uint8)
        for i in range(P):
            for j in range(P):
                now, r = w.places[i], w.places[j]
                steps[i * P + j] = w.steps[now, r] if i != j else 0.0
                shape[i * P + j] = w.lengths[now, r] * 17 + w.sectors[now, r] + 1
    else:
        row, to, steps, shape = w.row, w.to, w.step, w.shape
        for i in range(P):
            popular[i] = w.popular[i] + (popular[i - 1] if i > 0 else 0.0)
    widest = 0
    for i in range(P):
        widest = max(widest, row[i + 1] - row[i])
    room = (widest + L + BLOCK - 1) // BLOCK
    pull, passed, seen = np.zeros(room * BLOCK), np.empty(room), np.full(P, -1)  # when a place was last visited
    factor, which, tables = np.empty(SHAPES), np.empty(6, dtype=np.int64), directions(w.factor)
    along, around = np.empty(LENGTHS), np.empty(34)  # factors of a move by its length, and by its direction
    f, left, headed = np.empty(L, dtype=np.int64), np.empty(L, dtype=np.int64), np.empty(L, dtype=np.int64)
    more, been = np.empty(L, dtype=np.int64), np.empty(L, dtype=np.int64)
    for i in range(n):
        f[0] = min(np.searchsorted(first, uniform[i, 0] * first[P - 1], side="right"), P - 1)
        been[0], seen[f[0]], places = f[0], 0, 1
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
            to_place = now
            if uniform[i, 2 * t - 1] * (1.0 + math.exp(-logit)) < 1.0:
                still = 1 if dwell > 1 else 0
                origin, begun = left[moves - 4] if moves >= 4 else f[0], left[moves - EIGHT] if moves >= EIGHT else f[0]
                if everywhere:
                    drift = int(shape[origin * P + now]) % 17 - 1
                    course = int(shape[begun * P + now]) % 17 - 1
                else:
                    drift, course = sector_between(w.xy, origin, now), sector_between(w.xy, begun, now)
                steady = steadiness(course, headed[max(moves - EIGHT, 0) : moves])
                for b in range(LENGTHS):
                    speed = w.factor[SPEED + (last * 2 + 1 - (pattern & 1)) * LENGTHS + b]
                    along[b] = w.factor[(kind * 2 + still) * LENGTHS + b] * speed
                turning, drifting = tables.turn[still, sector + 1], tables.drift[drift + 1]
                pacing, bending = tables.pace[pattern & 3, sector + 1], tables.bend[bent + 1, sector + 1]
                keeping = tables.course[steady, course + 1]
                for k in range(34):
                    around[k] = turning[k] * drifting[k] * (pacing[k] * bending[k] * keeping[k])
                for b in range(LENGTHS):
                    far_too = 17 if b >= LONG else 0
                    for k in range(17):
                        factor[b * 17 + k] = along[b] * around[far_too + k]
                begin, end = row[now], row[now + 1]
                size, step_to, shape_to = end - begin, steps[begin:end], shape[begin:end]
                for j in range(size):
                    pull[j] = step_to[j] * factor[shape_to[j]]
                beyond = 0.0
                if not everywhere:
                    for k in range(SHAPES):
                        beyond += w.far[now, k] * factor[k]
                reached = size
                for k in range(places):
                    place = been[k]
                    mark = mark_of(place, seen[place], t, f[0], previous, still)
                    ratio = w.factor[VISITED + mark] / w.factor[VISITED]
                    j = place if everywhere else spot(to, begin, end, place)
                    if j >= 0:
                        pull[j] *= ratio
                    elif place != now:
                        mine = far_pull(w, now, place, factor)
                        beyond -= mine
                        pull[size], more[size - reached] = w.scale[now] * mine * ratio, place
                        size += 1
                beyond = max(beyond, 0.0) * w.scale[now] if not everywhere else 0.0
                if previous >= 0:
                    key = w.places[previous] * R + w.places[now]
                    k = np.searchsorted(w.pair, key)
                    if k < len(w.pair) and w.pair[k] == key:
                        for m in range(w.start[k], w.start[k + 1]):
                            place = at[w.onward[m]]
                            if place >= 0:
                                j = place if everywhere else spot(to, begin, end, place)
                                if j >= 0:
                                    pull[j] *= w.onward_factor[m]
                blocks = (size + BLOCK - 1) // BLOCK
                for j in range(size, blocks * BLOCK):
                    pull[j] = 0.0
                # sums of blocks first: the place is then looked for in one block only
                total = 0.0
                for b in range(blocks):
                    s0, s1, s2, s3, some = 0.0, 0.0, 0.0, 0.0, pull[b * BLOCK : (b + 1) * BLOCK]
                    for j in range(0, BLOCK, 4):
                        s0 += some[j]
                        s1 += some[j + 1]
                        s2 += some[j + 2]
                        s3 += some[j + 3]
                    total += (s0 + s1) + (s2 + s3)
                    passed[b] = total
                point, b = uniform[i, 2 * t] * (total + beyond), 0
                if beyond > 0.0 and point >= total:
                    bits = np.uint64(uniform[i, 2 * t] * 9007199254740992.0)
                    to_place = draw_far(w, now, factor, popular, seen, bits, PROPOSED)
                else:
                    while b < blocks - 1 and point >= passed[b]:
                        b += 1
                    point -= passed[b - 1] if b > 0 else 0.0
                    found = -1
                    for j in range(b * BLOCK, (b + 1) * BLOCK):
                        if pull[j] > 0.0:
                            # rounding may leave the point just above the last sum: then the last possible one is drawn
                            found = j
                            point -= pull[j]
                            if point < 0.0:
                                break
                    if found >= reached:
                        to_place = more[found - reached]
                    elif found >= 0:
                        to_place = found if everywhere else np.int64(to[begin + found])
            f[t] = to_place
            if seen[to_place] < 0:
                been[places] = to_place
                places += 1
            seen[to_place] = t
            pattern = (pattern << 1) & (PATTERNS - 1)
            if to_place == now:
                dwell += 1
            else:
                if everywhere:
                    move = int(shape[now * P + to_place])
                    last, there = move // 17, move % 17 - 1
                else:
                    last = length_between(w.points, w.limits, now, to_place)[0]
                    there = sector_between(w.xy, now, to_place)
                far = last >= LONG
                far_moves += 1 if far else 0
                left[moves], headed[moves] = now, there
                bent, stay, sector = turn_from(sector, there), dwell, there
                pattern, dwell, previous = pattern | 1, 1, now
                moves += 1
        for t in range(L):
            out[i, t] = w.places[f[t]]
            seen[f[t]] = -1


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


@njit
def weigh(skeleton, classes, slots, beta, agreed, out):
    """
    Fill `out` (S, N) with exp(beta (a - most) / slots[s]): walk f agrees with seed s at a slots, the best at `most`.

    A walk, of `classes` (L, N), agrees where it has the class of the skeleton (S, L); -1 is none. `agreed` (N,) is room
    for numbers of slots.
    """
    S, L = skeleton.shape
    weight = np.empty(L + 1, dtype=np.float32)
    for s in range(S):
        agreed[:] = 0
        for t in range(L):
            c, column = skeleton[s, t], classes[t]
            if c >= 0:
                for f in range(len(agreed)):
                    agreed[f] += column[f] == c
        most, row = np.int64(agreed.max()), out[s]
        for a in range(most + 1):
            weight[a] = math.exp(beta * (a - most) / slots[s])
        for f in range(len(agreed)):
            row[f] = weight[agreed[f]]


@njit
def rake(value, goal, rounds, damped, most, w):
    """
    Change the weights `w` (N,) until their sums by `value` (M, N) of each margin come near its `goal` (M, B).

    Iterative proportional fitting: of every margin in turn the weights are multiplied by (goal / sum) ** damped, and
    after each round no weight is more than `most` of the whole.
    """
    M, N = value.shape
    sums, factor = np.zeros((4, goal.shape[1])), np.empty(goal.shape[1])
    for _ in range(rounds):
        for k in range(M):
            # four sums of each value: additions need not wait for one another
            sums[:] = 0.0
            for f in range(N):
                sums[f & 3, value[k, f]] += w[f]
            for b in range(len(factor)):
                now = (sums[0, b] + sums[1, b]) + (sums[2, b] + sums[3, b])
                factor[b] = (goal[k, b] / now) ** damped if now > 0.0 else 1.0
            for f in range(N):
                w[f] *= factor[value[k, f]]
        total = w.sum()
        for f in range(N):
            w[f] = min(w[f] / total, most)


@njit
def visitors(r, R):
    """
    Return the traces that visit a place, each once: numbers start[p] to start[p + 1] of the second; -1 is no
    place.
    """
    start, last = np.zeros(R + 1, dtype=np.int64), np.full(R, -1)
    for i in range(len(r)):
        for t in range(r.shape[1]):
            if r[i, t] >= 0 and last[r[i, t]] != i:
                last[r[i, t]] = i
                start[r[i, t] + 1] += 1
    start = np.cumsum(start)
    free, trace = start.copy(), np.empty(start[R], dtype=np.int32)
    last[:] = -1
    for i in range(len(r)):
        for t in range(r.shape[1]):
            if r[i, t] >= 0 and last[r[i, t]] != i:
                last[r[i, t]] = i
                trace[free[r[i, t]]] = i
                free[r[i, t]] += 1
    return start, trace


@njit
def keep_apart(seeds, walks, R, limit, out):
    """Set `out` (S, N) to 0 where seed s and walk f have more than `limit[s]` places in common."""
    start, trace = visitors(walks, R)
    shared, met, last = np.zeros(len(walks), dtype=np.int64), np.empty(len(walks), dtype=np.int64), np.full(R, -1)
    for s in range(len(seeds)):
        n = 0
        for t in range(seeds.shape[1]):
            place = seeds[s, t]
            if place < 0 or last[place] == s:
                continue
            last[place] = s
            for m in range(start[place], start[place + 1]):
                f = trace[m]
                if shared[f] == 0:
                    met[n] = f
                    n += 1
                shared[f] += 1
        for j in range(n):
            if shared[met[j]] > limit[s]:
                out[s, met[j]] = 0.0
            shared[met[j]] = 0


@njit
def take(K, V, rows, uniform, out):
    """
    Fill `out` with a walk for each of `rows` in turn, by weights K V (S, N), whose V becomes 0; -1 where none
    is left.
    """
    N = K.shape[1]
    blocks = (N + BLOCK - 1) // BLOCK
    passed = np.empty(blocks)
    for i in range(len(rows)):
        row, total = K[rows[i]], 0.0
        for b in range(blocks):
            some, worth = row[b * BLOCK : (b + 1) * BLOCK], V[b * BLOCK : (b + 1) * BLOCK]
            s0, s1, n = 0.0, 0.0, len(some)
            for f in range(0, n - 1, 2):
                s0 += some[f] * worth[f]
                s1 += some[f + 1] * worth[f + 1]
            total += s0 + s1 + (some[n - 1] * worth[n - 1] if n % 2 == 1 else 0.0)
            passed[b] = total
        point, found, b = uniform[i] * total, -1, 0
        if total > 0.0:
            # rounding may leave the point at the last sum: then the last possible walk is taken
            while point >= passed[b] and passed[b] < total:
                b += 1
            point -= passed[b - 1] if b > 0 else 0.0
            for f in range(b * BLOCK, min((b + 1) * BLOCK, N)):
                if row[f] * V[f] > 0.0:
                    found = f
                    point -= row[f] * V[f]
                    if point < 0.0:
                        break
            V[found] = 0.0
        out[i] = found


@njit
def follow(r, at, onward, out):
    """
    Fill `out` (n, L): walks that begin where those of `r` do and make for their places by allowed moves.

    `at` (R,) is the number of a place among those that are known, `onward` (P, P) the next place on the shortest way
    from one to another, the place itself where there is none.
    """
    n, L = r.shape
    for i in range(n):
        out[i, 0] = at[r[i, 0]]
        for t in range(1, L):
            out[i, t] = onward[out[i, t - 1], at[r[i, t]]]
