"""Compiled loops of private lives: what days of one person have in common, and days that are drawn around anchors."""

import math

import numpy as np

from elsewhere._jit import njit
from elsewhere.synthesis.walk._walk_kernels import (
    COLUMNS,
    DRIFT,
    LENGTHS,
    LONG,
    MOVING,
    PATTERNS,
    TURN,
    VISITED,
    mark_visited,
    moving_columns,
    turn_of,
)

PARTS = 4  # of the day
# columns of habits: by weekday or weekend (2), and by part of the day
DAYS = 0  # share of the days
AT_HOME = 2
AT_MAIN = AT_HOME + 2 * PARTS
WITH_MAIN = AT_MAIN + 2 * PARTS  # days with a visit to the main place
MOVES = WITH_MAIN + 2
SEVERAL = MOVES + 2  # has a day and a next one; what they have in common (Jaccard)
WHOLE = SEVERAL + 2  # has as many days as a fake has; places of all of them as a share of those of each
FAR = WHOLE + 2  # how far the main place is from home; none
HABITS = FAR + LENGTHS + 1
MANY = 24  # moves a day, from which all are alike
# columns of the law of anchors
GO_HOME = 0
GO_MAIN = GO_HOME + PARTS
LEAVE_HOME = GO_MAIN + 2 * PARTS
LEAVE_MAIN = LEAVE_HOME + 2 * PARTS
OWN = LEAVE_MAIN + 2 * PARTS  # a place of one earlier day, of several
OFF = OWN + 2  # moving at a weekend
LAW = OFF + 1


@njit
def usual(r, begin, end, weekend, period, which, but, count):
    """
    Return the most usual place of rows begin .. end - 1, other than `but`, the first of equals; -1 without.

    `which`: 0 in the first part of the day, 1 on weekdays in its middle, 2 ever. `count` comes and goes as zeros.
    """
    best, most = -1, 0
    for d in range(begin, end):
        for t in range(r.shape[1]):
            p = period[t]
            middle = not weekend[d] and 0 < p < PARTS - 1
            if r[d, t] == but or (which == 0 and p != 0) or (which == 1 and not middle):
                continue
            count[r[d, t]] += 1
            n = count[r[d, t]]
            if n > most or (n == most and r[d, t] < best):
                best, most = r[d, t], n
    for d in range(begin, end):
        for t in range(r.shape[1]):
            count[r[d, t]] = 0
    return best


@njit
def habits(r, start, weekend, R, period, days, lengths, out):
    """Fill `out` (n, HABITS), which comes in as zeros: what the days start[i] .. start[i + 1] - 1 have in common."""
    L = r.shape[1]
    count, seen, before = np.zeros(R, dtype=np.int64), np.full(R, -1), np.full(R, -1)
    long = np.zeros(PARTS)
    for t in range(L):
        long[period[t]] += 1
    for i in range(len(start) - 1):
        begin, end = start[i], start[i + 1]
        D, x = end - begin, out[i]
        home = usual(r, begin, end, weekend, period, 0, -1, count)
        main = usual(r, begin, end, weekend, period, 1, home, count)
        if main < 0:
            main = usual(r, begin, end, weekend, period, 2, home, count)
        places_all, places_each, alike, last = 0, 0, 0.0, 0
        for d in range(begin, end):
            f, k = r[d], 1 if weekend[d] else 0
            x[DAYS + k] += 1 / D
            moves, there, places, common = 0, 0, 0, 0
            for t in range(L):
                moves += t > 0 and f[t] != f[t - 1]
                if f[t] == home:
                    x[AT_HOME + k * PARTS + period[t]] += 1 / (D * long[period[t]])
                elif f[t] == main:
                    x[AT_MAIN + k * PARTS + period[t]] += 1 / (D * long[period[t]])
                    there = 1
                if seen[f[t]] != d:  # first visit of the day
                    places += 1
                    if before[f[t]] < begin:
                        places_all += 1
                    elif d > begin and before[f[t]] == d - 1:
                        common += 1
                    seen[f[t]] = d
            for t in range(L):
                before[f[t]] = d
            x[WITH_MAIN + k] += there / D
            x[MOVES + k] += min(moves, MANY) / (MANY * D)
            if d > begin:
                alike += common / (places + last - common)
            last = places
            places_each += places
        if D > 1:
            x[SEVERAL], x[SEVERAL + 1] = 1.0, alike / (D - 1)
        if D == days:
            x[WHOLE], x[WHOLE + 1] = 1.0, places_all / places_each
        x[FAR + (lengths[home, main] if main >= 0 else LENGTHS)] = 1.0


@njit
def live(w, law, home, main, weekend, period, uniform, out, score):
    """
    Draw lives `out` (n, D, L) of the walk `w` around a home and a main place each (-1: none).

    A day begins at home. Towards home, main place and places of earlier days, and
    away from the first two, the `law` (LAW,) changes the walk's weights. `uniform` (n, D, 2 L - 1) as for `draw_walks`.
    `score` (n, D, MOVING + COLUMNS + LAW), or of no rows, gets the slopes of ln Pr{day}; it comes in as zeros.
    """
    n, D, L = out.shape
    R, scored = len(w.first), len(score) > 0
    theta = MOVING + COLUMNS
    pull, mark, own = np.empty(R), np.zeros(R, dtype=np.int64), np.zeros(R, dtype=np.int64)
    factor, mass, seen = np.empty(LENGTHS * 17), np.empty(LENGTHS * 17), np.empty(6)
    which, left = np.empty(4, dtype=np.int64), np.empty(L, dtype=np.int64)
    for i in range(n):
        own[:] = 0
        for d in range(D):
            f, k = out[i, d], 1 if weekend[i, d] else 0
            f[0] = home[i]
            pattern, dwell, moves, far_moves, far, previous = 0, 1, 0, 0, 0, -1
            for t in range(1, L):
                now, p = f[t - 1], period[t]
                kind = min(far_moves, 2) + (3 if far else 1) if moves > 0 else 0
                moving_columns(pattern, dwell, moves, kind, t, w.slot[t], which)
                at = LEAVE_HOME if now == home[i] else LEAVE_MAIN if now == main[i] else -1
                logit = w.leaving[now] + k * law[OFF]
                for c in range(4):
                    logit += w.moving[which[c]]
                if at >= 0:
                    logit += law[at + k * PARTS + p]
                chance = 1.0 / (1.0 + math.exp(-logit))
                moved = uniform[i, d, 2 * t - 1] < chance
                if scored:
                    more = (1.0 if moved else 0.0) - chance
                    for c in range(4):
                        score[i, d, which[c]] += more
                    score[i, d, theta + OFF] += k * more
                    if at >= 0:
                        score[i, d, theta + at + k * PARTS + p] += more
                pattern = (pattern << 1) & (PATTERNS - 1)
                if not moved:
                    f[t] = now
                    dwell += 1
                    continue
                still = 1 if dwell > 1 else 0
                sector = w.sectors[previous, now] if previous >= 0 else -1
                drift = w.sectors[left[moves - 4] if moves >= 4 else f[0], now]
                first = (kind * 2 + still) * LENGTHS
                for s in range(-1, 16):
                    turn, turned = turn_of(sector, s), turn_of(drift, s)
                    for b in range(LENGTHS):
                        long = 1 if b >= LONG else 0
                        factor[b * 17 + s + 1] = (
                            w.factor[first + b]
                            * w.factor[TURN + (turn * 2 + still) * 2 + long]
                            * w.factor[DRIFT + turned * 2 + long]
                        )
                mark_visited(f, t, previous, still, mark)
                total = 0.0
                for r in range(R):
                    x = 0.0
                    if r != now:
                        x = w.steps[now, r] * factor[w.lengths[now, r] * 17 + w.sectors[now, r] + 1]
                        x *= w.factor[VISITED + mark[r]]
                        if r == home[i]:
                            x *= math.exp(law[GO_HOME + p])
                        elif r == main[i]:
                            x *= math.exp(law[GO_MAIN + k * PARTS + p])
                        elif own[r] > 0:
                            x *= math.exp(law[OWN + min(own[r], 2) - 1])
                    pull[r] = x
                    total += x
                point, to = uniform[i, d, 2 * t] * total, now
                for r in range(R):
                    if pull[r] > 0.0:
                        to = r
                        point -= pull[r]
                        if point < 0.0:
                            break
                if scored:
                    mass[:] = 0.0
                    seen[:] = 0.0
                    for r in range(R):
                        x = pull[r] / total
                        mass[w.lengths[now, r] * 17 + w.sectors[now, r] + 1] += x
                        seen[mark[r]] += x
                        if r == home[i]:
                            score[i, d, theta + GO_HOME + p] += (1.0 if r == to else 0.0) - x
                        elif r == main[i]:
                            score[i, d, theta + GO_MAIN + k * PARTS + p] += (1.0 if r == to else 0.0) - x
                        elif own[r] > 0:
                            score[i, d, theta + OWN + min(own[r], 2) - 1] += (1.0 if r == to else 0.0) - x
                    mass[w.lengths[now, to] * 17 + w.sectors[now, to] + 1] -= 1.0
                    seen[mark[to]] -= 1.0
                    for s in range(-1, 16):
                        turn, turned = turn_of(sector, s), turn_of(drift, s)
                        for b in range(LENGTHS):
                            x, long = mass[b * 17 + s + 1], 1 if b >= LONG else 0
                            score[i, d, MOVING + first + b] -= x
                            score[i, d, MOVING + TURN + (turn * 2 + still) * 2 + long] -= x
                            score[i, d, MOVING + DRIFT + turned * 2 + long] -= x
                    for c in range(6):
                        score[i, d, MOVING + VISITED + c] -= seen[c]
                for u in range(t):
                    mark[f[u]] = 0
                f[t] = to
                far = 1 if w.lengths[now, to] >= LONG else 0
                far_moves += far
                left[moves] = now
                pattern, dwell, previous = pattern | 1, 1, now
                moves += 1
            for t in range(L):
                if own[f[t]] >= 0:
                    own[f[t]] = -own[f[t]] - 1  # once a day
            for t in range(L):
                own[f[t]] = abs(own[f[t]])
