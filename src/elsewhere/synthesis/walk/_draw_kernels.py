"""Compiled loops that draw walks."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere._jit import njit
from elsewhere._search_kernels import find_sorted, first_above, first_not_below
from elsewhere.synthesis.walk._walk_kernels import (
    BLOCK,
    DRIFT,
    EIGHT,
    LENGTHS,
    LONG,
    PATTERNS,
    SHAPES,
    SPEED,
    STEADY,
    TURN,
    VISITED,
    further_columns,
    further_moving_columns,
    length_between,
    mark_of,
    most_elsewhere,
    moving_columns,
    sector_between,
    steadiness_bin,
    turn_from,
    turn_of,
)

PROPOSED = 2000  # far places that are drawn before all of them are looked through
_GOLDEN, _MIX1, _MIX2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@njit
def next_random(state):
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
def draw_far_place(w, now, factor, passed, seen, bits, tries):
    """
    Draw a place out of reach by its pull: a district and a place in it by popularity, accepted by what the move is
    like.

    A district counts by its popularity, times the most that any move of a shape that leads there is multiplied by.
    `passed` are cumulative popularities, district by district, `bits` seed the draw; places that were `seen` (0 and
    above) are none of these. After so many `tries` all places are looked through.
    """
    P, n, D, mine = len(w.popular), w.row[now + 1] - w.row[now], len(w.begin) - 1, w.district[now]
    top, weight, state, whole = np.zeros(D), np.empty(D), bits, 0.0
    for d in range(D):
        for b in range(LENGTHS):
            sectors = w.between[mine, d, b]
            if sectors > 0:
                for k in range(17):
                    if (sectors >> k) & 1:
                        top[d] = max(top[d], factor[b * 17 + k] * w.kernel[b])
        first, end = w.begin[d], w.begin[d + 1]
        if end > first:
            whole += top[d] * (passed[end - 1] - (passed[first - 1] if first > 0 else 0.0))
        weight[d] = whole
    for _ in range(tries if whole > 0.0 else 0):
        state, u = next_random(state)
        d = min(first_above(weight, u * whole), D - 1)
        first, end = w.begin[d], w.begin[d + 1]
        low = passed[first - 1] if first > 0 else 0.0
        state, u = next_random(state)
        point = low + u * (passed[end - 1] - low)
        place = w.by_district[min(first + first_above(passed[first:end], point), end - 1)]
        if place == now or seen[place] >= 0 or find_sorted(w.to, w.row[now], w.row[now] + n, place) >= 0:
            continue
        state, u = next_random(state)
        if u * top[d] * w.popular[place] < far_pull(w, now, place, factor):
            return place
    total = 0.0
    for turn in range(2):
        state, u = next_random(state)
        point = u * total
        for place in range(P):
            if place != now and seen[place] < 0 and find_sorted(w.to, w.row[now], w.row[now] + n, place) < 0:
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
def direction_factors(factor):
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
def draw_walks(w, uniform, out):
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
            popular[i] = w.popular[w.by_district[i]] + (popular[i - 1] if i > 0 else 0.0)
    widest = 0
    for i in range(P):
        widest = max(widest, row[i + 1] - row[i])
    room = (widest + L + BLOCK - 1) // BLOCK
    pull, passed, seen = np.zeros(room * BLOCK), np.empty(room), np.full(P, -1)  # when a place was last visited
    factor, which, tables = np.empty(SHAPES), np.empty(7, dtype=np.int64), direction_factors(w.factor)
    along, around = np.empty(LENGTHS), np.empty(34)  # factors of a move by its length, and by its direction
    f, left, headed = np.empty(L, dtype=np.int64), np.empty(L, dtype=np.int64), np.empty(L, dtype=np.int64)
    more, been, spent = np.empty(L, dtype=np.int64), np.empty(L, dtype=np.int64), np.zeros(P, dtype=np.int64)
    for i in range(n):
        f[0] = min(first_above(first, uniform[i, 0] * first[P - 1]), P - 1)
        been[0], seen[f[0]], places = f[0], 0, 1
        pattern, dwell, moves, far_moves, far, previous = 0, 1, 0, 0, False, -1
        last, stay, sector, bent, elsewhere = LENGTHS, 0, -1, -1, 0
        for t in range(1, L):
            now = f[t - 1]
            spent[now] += 1
            kind = min(far_moves, 2) + (3 if far else 1) if moves > 0 else 0
            moving_columns(pattern, dwell, moves, kind, t, w.slot[t], which)
            further_moving_columns(dwell, bent, last, stay, spent[now], elsewhere, which[4:])
            logit = w.leaving[w.places[now]]
            for k in range(7):
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
                steady = steadiness_bin(course, headed[max(moves - EIGHT, 0) : moves])
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
                    j = place if everywhere else find_sorted(to[begin:end], 0, end - begin, place)
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
                    k = first_not_below(w.pair, key)
                    if k < len(w.pair) and w.pair[k] == key:
                        for m in range(w.start[k], w.start[k + 1]):
                            place = at[w.onward[m]]
                            if place >= 0:
                                j = place if everywhere else find_sorted(to[begin:end], 0, end - begin, place)
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
                    to_place = draw_far_place(w, now, factor, popular, seen, bits, PROPOSED)
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
                elsewhere = most_elsewhere(been[:places], spent, to_place)
                moves += 1
        for t in range(L):
            out[i, t] = w.places[f[t]]
            seen[f[t]], spent[f[t]] = -1, 0


@njit
def follow_ways(r, at, onward, out):
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
