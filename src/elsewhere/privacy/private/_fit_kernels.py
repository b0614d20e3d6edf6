"""Compiled loops of the private walk: what one person does, as one vector of bounded blocks."""

import math

import numpy as np

from elsewhere._jit import njit
from elsewhere._search_kernels import sort
from elsewhere.synthesis.walk._walk_kernels import (
    COLUMNS,
    DRIFT,
    LENGTHS,
    LONG,
    MOVING,
    PATTERNS,
    RECENT,
    TURN,
    VISITED,
    columns,
    memory,
    moving_columns,
    turn_of,
)

FINE, COUNTS, SHARES = 6, 16, 11  # day statistics: counts below FINE one by one, then half octaves; tenths of a day
DAY = 2 * COUNTS + SHARES + 2  # moves, places, share of the main place, ends where it began
BLOCKS = 7  # places, parts of the day, arrivals, moving, destinations, day statistics, move pairs


@njit
def count_bin(n):
    """Return the bin of a number of moves or places: 0 .. 5 one by one, then half octaves, all above in the last."""
    if n < FINE:
        return n
    return min(FINE + int(2 * math.log2(n / FINE) + 1e-9), COUNTS - 1)


@njit
def add_steps(f, w, slot, lengths, sectors, rate, share, last, left, moving, destination):
    """
    Add the steps of trace `f`, times `w`, to `moving` and `destination`, in the columns of the walk.

    Of moving and of where to, only what differs from the public guess is kept: a move counts 1 - `rate` of its column,
    a stay -`rate`; a destination counts 1 in its columns, less `share` in every column of their groups. What the trace
    leaves behind (`memory`, `mark_visited`) is carried along. `last` (R,) comes in as -1 and goes out so.
    """
    which = np.empty(4, dtype=np.int64)
    pattern, dwell, moves, far_moves, far, previous = 0, 1, 0, 0, 0, -1
    last[f[0]] = 0
    for t in range(1, len(f)):
        now, to = f[t - 1], f[t]
        last[now] = t - 1
        kind = min(far_moves, 2) + (3 if far else 1) if moves > 0 else 0
        moving_columns(pattern, dwell, moves, kind, t, slot[t], which)
        for k in range(4):
            moving[which[k]] += w * ((1.0 if to != now else 0.0) - rate[which[k]])
        pattern = (pattern << 1) & (PATTERNS - 1)
        if to == now:
            dwell += 1
            continue
        still = 1 if dwell > 1 else 0
        sector = sectors[previous, now] if previous >= 0 else -1
        drift = sectors[left[moves - 4] if moves >= 4 else f[0], now]
        seen = 0
        if to == previous:
            seen = 1 + still
        elif to == f[0]:
            seen = 3
        elif last[to] >= 0:
            seen = 4 if last[to] < t - RECENT else 5
        b, s = lengths[now, to], sectors[now, to]
        far = 1 if b >= LONG else 0
        first = (kind * 2 + still) * LENGTHS
        destination[first + b] += w
        destination[TURN + (turn_of(sector, s) * 2 + still) * 2 + far] += w
        destination[DRIFT + turn_of(drift, s) * 2 + far] += w
        destination[VISITED + seen] += w
        for c in range(first, first + LENGTHS):
            destination[c] -= w * share[c]
        for c in range(TURN, DRIFT):
            if (c - TURN) // 2 % 2 == still:
                destination[c] -= w * share[c]
        for c in range(DRIFT, COLUMNS):
            destination[c] -= w * share[c]
        far_moves += far
        left[moves] = now
        pattern, dwell, previous = pattern | 1, 1, now
        moves += 1
    for t in range(len(f)):
        last[f[t]] = -1


@njit
def all_steps(r, slot, lengths, sectors, rate, share, R, moving, destination):
    """Add the steps of all traces `r`."""
    last, left = np.full(R, -1), np.empty(r.shape[1], dtype=np.int64)
    for i in range(len(r)):
        add_steps(r[i], 1.0, slot, lengths, sectors, rate, share, last, left, moving, destination)


@njit
def scores(walks, w, out):
    """
    Fill `out` (n, MOVING + COLUMNS): the slope of ln Pr{walk} in every weight of the walk `w`.

    What was done in a column minus what was to be expected there, step by step; moves after moves are none.
    """
    n, L = walks.shape
    R = len(w.first)
    which, mark = np.empty(4, dtype=np.int64), np.zeros(R, dtype=np.int64)
    every, cols, pull = np.arange(R), np.empty((R, 4), dtype=np.int16), np.empty(R)
    for i in range(n):
        f = walks[i]
        for t in range(1, L):
            now = f[t - 1]
            pattern, dwell, moves, _, kind, _, _ = memory(f, t, w)
            moving_columns(pattern, dwell, moves, kind, t, w.slot[t], which)
            logit = w.leaving[now]
            for k in range(4):
                logit += w.moving[which[k]]
            moved = 1.0 if f[t] != now else 0.0
            for k in range(4):
                out[i, which[k]] += moved - 1.0 / (1.0 + math.exp(-logit))
            if f[t] == now:
                continue
            columns(f, t, w, every, mark, cols)
            total = 0.0
            for r in range(R):
                pull[r] = 0.0
                if r != now:
                    pull[r] = w.steps[now, r]
                    for k in range(4):
                        pull[r] *= w.factor[cols[r, k]]
                total += pull[r]
            for k in range(4):
                out[i, MOVING + cols[f[t], k]] += 1.0
            for r in range(R):
                if pull[r] > 1e-6 * total:
                    for k in range(4):
                        out[i, MOVING + cols[r, k]] -= pull[r] / total


@njit
def add_day(f, w, day):
    """Add the day statistics of trace `f`, times `w`."""
    L = len(f)
    ordered = f.copy()
    sort(ordered)
    moves, places, longest, run = 0, 1, 1, 1
    for t in range(1, L):
        moves += f[t] != f[t - 1]
        if ordered[t] == ordered[t - 1]:
            run += 1
            longest = max(longest, run)
        else:
            places += 1
            run = 1
    day[count_bin(moves)] += w
    day[COUNTS + count_bin(places - 1)] += w
    day[2 * COUNTS + 10 * longest // L] += w
    day[2 * COUNTS + SHARES + (1 if f[0] == f[L - 1] else 0)] += w


@njit
def vectors(r, R, period, slot, lengths, sectors, rate, share, most, weight, pointer, index, value):
    """
    Fill the rows of a sparse matrix, `pointer`, `index`, `value`: the vector of each day of `r`.

    Block j is divided by its norm or by `most[j]`, whichever is larger, and multiplied by `weight[j]`: the squares of
    the weights sum to 1 at most, so that no vector is longer than 1. Move pairs, the last block, are counted once a
    day. Returns the number of entries; `index` and `value` hold the most there can be.
    """
    L, P = r.shape[1], period[-1] + 1
    edge = np.cumsum(np.array([0, R, P * R, R, MOVING, COLUMNS, DAY]))
    dense, last, left = np.zeros(edge[6]), np.full(R, -1), np.empty(L, dtype=np.int64)
    long = np.zeros(P)
    for t in range(L):
        long[period[t]] += 1 / L
    at = 0
    pointer[0] = 0
    for i in range(len(r)):
        f, pairs, n_pairs = r[i], np.empty(L - 1, dtype=np.int64), 0
        for t in range(L):
            dense[f[t]] += 1 / L
            dense[R + period[t] * R + f[t]] += 1 / L
            for p in range(P):  # what differs from the day as a whole
                dense[R + p * R + f[t]] -= long[p] / L
            if t > 0 and f[t] != f[t - 1]:
                dense[edge[2] + f[t]] += 1.0
                pairs[n_pairs] = f[t - 1] * R + f[t]
                n_pairs += 1
        add_steps(f, 1.0, slot, lengths, sectors, rate, share, last, left, dense[edge[3] :], dense[edge[4] :])
        add_day(f, 1.0, dense[edge[5] :])
        for j in range(BLOCKS - 1):
            norm = math.sqrt((dense[edge[j] : edge[j + 1]] ** 2).sum())
            if norm > 0.0:
                factor = weight[j] / max(norm, most[j])
                for c in range(edge[j], edge[j + 1]):
                    if dense[c] != 0.0:
                        index[at], value[at] = c, dense[c] * factor
                        at += 1
                        dense[c] = 0.0
        if n_pairs > 0:
            sort(pairs[:n_pairs])
            first = at
            for k in range(n_pairs):
                if k == 0 or pairs[k] != pairs[k - 1]:
                    index[at] = edge[6] + pairs[k]
                    at += 1
            for k in range(first, at):
                value[k] = weight[6] / max(math.sqrt(at - first), most[6])
        pointer[i + 1] = at
    return at
