"""
Compiled loops of certified fakes: what a person is described by, and lives drawn from a law of classes.

Both sides stand in slots of 20 minutes: a row per day, the place in each slot, -1 where nobody was seen. People and
fakes are described by the same function, so what bounding takes away from people, it takes away from fakes too.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere._jit import njit
from elsewhere.paper._generate_kernels import open_stream, uniform
from elsewhere.paper._profile_kernels import draw_index
from elsewhere.synthesis._diary_kernels import gamma
from elsewhere.synthesis._life_kernels import BINS, distance_bin, draw_sigma, find_anchors

SLOTS, HOURS, PER_HOUR = 72, 24, 3
GOLDEN = 0.6180339887498949
PASSING = 3  # slots, up to which a place between two others may be passed through
CLASSES = 6  # night place, main place by day, short stop, evening, weekend; passed through, which is the last
PASSED, UNSEEN = CLASSES - 1, CLASSES
STATES = CLASSES + 1
DAYPARTS = 8  # of a day, of what a place is used for
FEATURES = 2 * DAYPARTS + 3
MOMENTS = 4  # parts of the day in which what comes next is counted
LENGTHS, DAYS = np.array([1, 2, 4, 8, 16, 32]), np.array([1, 3, 7, 14, 28, 56])  # most slots of a stay, days, in a bin
STAYS = len(LENGTHS) + 1  # bins of the length of a stay
MOVES, PLACES, SPANS = 12, 8, len(DAYS) + 1  # bins of moves and of places a day, and of days
FAR = 4 * CLASSES + 1  # tables of distances: of the night place, of the main place, of other places that follow

# where the blocks of a person's list begin; maps of classes stand beside it
BLOCKS = ("hours", "ends", "next", "stays", "far", "again", "pace", "whole")
SIZES = (
    2 * HOURS * CLASSES, 2 * SLOTS, MOMENTS * STATES * STATES, STATES * STAYS, FAR * BINS, 3 * CLASSES,
    MOVES + PLACES + SPANS, 3,
)  # fmt: skip
HOURS_AT, ENDS_AT, NEXT_AT, STAYS_AT, FAR_AT, AGAIN_AT, PACE_AT, WHOLE_AT = (sum(SIZES[:i]) for i in range(len(SIZES)))
DENSE = sum(SIZES)


@njit
def run_end(row, t, last):
    """Return the slot after the run of one place that slot t begins, at most `last`."""
    u = t + 1
    while u < last and row[u] == row[t]:
        u += 1
    return u


@njit
def classify(table, total, runs, between, days, everything, all_days, centres, m, cls):
    """Fill in the class of each of m own places: passed through, or that of the nearest prototype."""
    for k in range(m):
        if between[k] == runs[k]:
            cls[k] = PASSED
            continue
        best, least = 0, np.inf
        for c in range(CLASSES - 1):
            far = 0.0
            for f in range(2 * DAYPARTS):
                far += (math.sqrt(table[k, f] / total[k]) - centres[c, f]) ** 2
            far += (1.5 * total[k] / everything - centres[c, FEATURES - 3]) ** 2
            far += (0.4 * math.log1p(total[k] / runs[k] / PER_HOUR) - centres[c, FEATURES - 2]) ** 2
            far += (0.8 * days[k] / all_days - centres[c, FEATURES - 1]) ** 2
            if far < least:
                best, least = c, far
        cls[k] = best


@njit
def find_usages(rows, off, number, place, table, total, runs, between, days):
    """Fill in the own places of a person: in `number` which is which, and how they are used; return how many."""
    m = 0
    for i in range(len(rows)):
        t = 0
        while t < SLOTS:
            u, x = run_end(rows[i], t, SLOTS), rows[i, t]
            if x >= 0:
                k = number[x]
                if k < 0:
                    k, number[x], place[m] = m, m, x
                    table[k], total[k], runs[k], between[k], days[k] = 0.0, 0.0, 0, 0, 0
                    m += 1
                for s in range(t, u):
                    table[k, s * DAYPARTS // SLOTS + DAYPARTS * off[i]] += 1.0
                total[k] += u - t
                runs[k] += 1
                if u - t <= PASSING and t > 0 and u < SLOTS and rows[i, u] >= 0:
                    between[k] += rows[i, t - 1] >= 0 and rows[i, t - 1] != rows[i, u]
                days[k] += 1
                for s in range(t):  # a place counts once a day
                    if rows[i, s] == x:
                        days[k] -= 1
                        break
            t = u
    return m


@njit
def copy_classes(rows, drawn, number, m, cls):
    """Fill in the class that each own place of a fake was drawn in, where it is first seen."""
    cls[:m] = -1
    for i in range(len(rows)):
        for t in range(SLOTS):
            if rows[i, t] >= 0 and cls[number[rows[i, t]]] < 0:
                cls[number[rows[i, t]]] = drawn[i, t]


@njit
def describe_days(rows, off, number, cls, xy, limits, anchors, near, out):
    """Add up what the days of a person tell, in `out`: all of it per day, but for distances."""
    share = 1.0 / len(rows)
    for i in range(len(rows)):
        row = rows[i]
        begin, end = 0, SLOTS
        while begin < SLOTS - 1 and row[begin] < 0:
            begin += 1
        while end > begin + 1 and row[end - 1] < 0:
            end -= 1
        out[ENDS_AT + begin] += share
        out[ENDS_AT + SLOTS + end - begin - 1] += share
        t, before, last, stayed, moves, seen = begin, -1, -1, -1, 0, 0
        while t < end:
            u, x = run_end(row, t, end), row[t]
            state = UNSEEN if x < 0 else cls[number[x]]
            out[STAYS_AT + state * STAYS + np.searchsorted(LENGTHS, u - t)] += share
            if before >= 0:
                out[NEXT_AT + ((t * MOMENTS // SLOTS) * STATES + before) * STATES + state] += share
            before = state
            if x >= 0:
                for s in range(t, u):
                    out[HOURS_AT + (off[i] * HOURS + s // PER_HOUR) * CLASSES + state] += share / PER_HOUR
                new = True
                for s in range(begin, t):
                    new = new and row[s] != x
                seen += new
                moves += last >= 0 and last != x
                if state != PASSED and stayed >= 0 and stayed != x:  # what is passed lies between
                    a, b = number[stayed], number[x]
                    for one, other in ((a, b), (b, a)):
                        if one == anchors[0]:
                            near[0, other] = True
                        if one == anchors[1]:
                            near[1, other] = True
                    if a != anchors[0] and b != anchors[0] and a != anchors[1] and b != anchors[1]:
                        out[FAR_AT + 4 * CLASSES * BINS + distance_bin(xy, limits, stayed, x)] += 1.0
                if state != PASSED:
                    stayed = x
                last = x
            t = u
        out[PACE_AT + min(moves, MOVES - 1)] += share
        out[PACE_AT + MOVES + min(seen, PLACES) - 1] += share


@njit
def describe(r, first, off, centres, drawn, xy, limits, role, dense, map_first, map_cell, map_part):
    """
    Describe people by their days, rows first[p] to first[p + 1] of `r`: a list each in `dense`, and a sparse map.

    `map_cell` are class * R + place, `map_part` shares of the person's time. Nothing is bounded yet. Places of fakes
    have the class they were `drawn` in, (rows, SLOTS), where they are first seen; of people it has no rows.
    """
    R, most = len(xy), 1
    for p in range(len(first) - 1):
        most = max(most, min(R, (first[p + 1] - first[p]) * SLOTS))
    number, place, cls = np.full(R, -1), np.empty(most, np.int64), np.empty(most, np.int64)
    table, total = np.empty((most, 2 * DAYPARTS)), np.empty(most)
    runs, between, days = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    near, anchors = np.zeros((2, most), np.bool_), np.empty(2, np.int64)
    entry = 0
    map_first[0] = 0
    for p in range(len(first) - 1):
        rows, kinds, out = r[first[p] : first[p + 1]], off[first[p] : first[p + 1]], dense[p]
        m = find_usages(rows, kinds, number, place, table, total, runs, between, days)
        everything = total[:m].sum()
        if len(drawn) > 0:
            copy_classes(rows, drawn[first[p] : first[p + 1]], number, m, cls)
        else:
            classify(table, total, runs, between, days, everything, len(rows), centres, m, cls)
        find_anchors(role, m, cls, total, anchors)
        near[:, :m] = False
        describe_days(rows, kinds, number, cls, xy, limits, anchors, near, out)
        has = np.zeros(CLASSES)
        for k in range(m):
            map_cell[entry], map_part[entry] = cls[k] * R + place[k], total[k] / everything
            entry += 1
            for a in range(2):
                if anchors[a] >= 0 and k != anchors[0] and k != anchors[a] and cls[k] != PASSED:
                    j = distance_bin(xy, limits, place[anchors[a]], place[k])
                    out[FAR_AT + ((2 * a + near[a, k]) * CLASSES + cls[k]) * BINS + j] += 1.0
            out[AGAIN_AT + 3 * cls[k]] += runs[k] / len(rows)
            out[AGAIN_AT + 3 * cls[k] + 1] += 1.0 / len(rows)
            has[cls[k]] = 1.0
            number[place[k]] = -1
        for c in range(CLASSES):
            out[AGAIN_AT + 3 * c + 2] = has[c] / len(rows)
        out[PACE_AT + MOVES + PLACES + np.searchsorted(DAYS, len(rows))] = 1.0
        map_first[p + 1] = entry


class Law(NamedTuple):
    """How the classes of a day follow each other; two kinds of day, weekdays and weekends."""

    begin: NDArray[np.float64]  # (SLOTS,)
    extent: NDArray[np.float64]  # (SLOTS,) slots from the first to the last
    first: NDArray[np.float64]  # (2, HOURS, CLASSES)
    leave: NDArray[np.float64]  # (2, STATES, HOURS, STAYS) probability to leave after a slot
    next: NDArray[np.float64]  # (2, HOURS, STATES, STATES)
    again: NDArray[np.float64]  # (CLASSES,) probability that a place of this class is one of before
    active: float  # probability that somebody is seen on a day
    pace: float  # shape of the gamma law of how readily people leave


@njit
def pick_own(law, c, here, size, cls, visits, weight, stream):
    """Return an own place of class c other than `here`: one of before, or the next number."""
    some = False
    for j in range(size):
        weight[j] = visits[j] if cls[j] == c and j != here else 0.0
        some = some or weight[j] > 0.0
    full = size == len(cls)
    if some and (full or uniform(stream) < law.again[c]):
        return draw_index(weight, size, uniform(stream))
    if full:
        return max(here, 0)
    cls[size], visits[size] = c, 0.0
    return size


@njit
def draw_days(law, kinds, stream, slots, drawn, cls, visits, time, soon, weight):
    """
    Draw the days of one life, and return how many own places it has.

    `slots` are numbers of own places, beyond them a number for each slot that is passed through, -1 where nobody is
    seen; `drawn` are their classes.
    """
    size, here, state, before = 0, -1, UNSEEN, 0
    pace = gamma(law.pace, stream) / law.pace if law.pace > 0.0 else 1.0
    for d in range(len(kinds)):
        k = kinds[d]
        if uniform(stream) >= law.active and (size > 0 or d < len(kinds) - 1):  # everybody is seen once
            before = 0
            continue
        b = draw_index(law.begin, SLOTS, uniform(stream))
        e = b + max(draw_index(law.extent, SLOTS - b, uniform(stream)), 0)
        if before < SLOTS or b > 0 or state >= PASSED:
            state = draw_index(law.first[k, b // PER_HOUR], PASSED, uniform(stream))
            here = pick_own(law, state, -1, size, cls, visits, weight, stream)
            size = max(size, here + 1)
            visits[here] += 1.0
        stay, came, since = 0, True, b
        for t in range(b, e + 1):
            leaves = law.leave[k, state, t // PER_HOUR, np.searchsorted(LENGTHS, stay)] if stay > 0 else 0.0
            if uniform(stream) < 1.0 - (1.0 - leaves) ** pace:
                new = draw_index(law.next[k, t // PER_HOUR, state], STATES, uniform(stream))
                if new < PASSED:
                    to = pick_own(law, new, here if came else -1, size, cls, visits, weight, stream)
                    size = max(size, to + 1)
                    visits[to] += 1.0
                    if to != here:
                        soon[here, to] = 1
                    here = to
                state, stay, came, since = new, 0, new < PASSED, t
            stay += 1
            drawn[d, t] = state
            if state < PASSED:
                slots[d, t] = here
                time[here] += 1.0
            elif state == PASSED:
                slots[d, t] = len(cls) + since
        before = e + 1
    return size


@njit
def draw_way(ground, row, a, b, near, weight, stream):
    """
    Draw the places that are passed in slots a .. b - 1, from the place before to the place after, one after the other.

    Each is drawn by the people who pass there, near the point that a straight and steady way has reached; a way from a
    place back to it has a turning point.
    """
    xy, lo, hi = ground.xy, ground.first[PASSED], ground.first[PASSED + 1]
    start = row[a - 1] if a > 0 else -1
    goal = row[b] if b < SLOTS else -1
    start, goal = (goal if start < 0 else start), (start if goal < 0 else goal)
    if start < 0:
        row[a:b] = -1
        return
    turn = (b - a) // 2 if start == goal else 0
    here = start
    for t in range(a, b):
        left = b - t + 1
        x, y = xy[here, 0] + (xy[goal, 0] - xy[here, 0]) / left, xy[here, 1] + (xy[goal, 1] - xy[here, 1]) / left
        away = turn > 0 and t < a + turn
        reach = near * (2.0 if away else 0.35) + 0.15 * math.hypot(x - xy[here, 0], y - xy[here, 1])
        for k in range(lo, hi):
            place = ground.place[k]
            far = ((xy[place, 0] - x) ** 2 + (xy[place, 1] - y) ** 2) / (2.0 * reach * reach)
            weight[k - lo] = (ground.weight[k] + 1e-9) * math.exp(-far)
        k = draw_index(weight, hi - lo, uniform(stream))
        here = ground.place[lo + k] if k >= 0 else here
        row[t] = here


@njit
def draw_lives(law, ground, role, kinds, key, numbers, sweeps, most, near, placed, r, drawn):
    """
    Draw lives of these numbers into rows r (lives, days, SLOTS), and the classes of their slots.

    Own places are put on the ground jointly where `placed`; else `r` holds own places, fewer than `most`, and beyond
    them what is passed. `near` is how far apart places are. Homes of lives whose numbers follow each other are spread
    evenly over the weights.
    """
    start = uniform(open_stream(key, 1, 0))
    cls, visits, time = np.empty(most, np.int64), np.empty(most), np.empty(most)
    sigma, soon = np.empty(most, np.int64), np.empty((most, most), np.int64)
    weight = np.empty(max(most, len(ground.xy)))
    for p in range(len(numbers)):
        stream = open_stream(key, 0, numbers[p])
        slots = r[p]
        slots[:], drawn[p], time[:], soon[:] = -1, -1, 0.0, 0
        n = draw_days(law, kinds[p], stream, slots, drawn[p], cls, visits, time, soon, weight)
        if not placed or n == 0:
            continue
        point = (numbers[p] * GOLDEN + start) % 1.0
        draw_sigma(ground, role, n, cls, time, soon[:n, :n], sweeps, point, stream, sigma)
        for d in range(len(slots)):
            passed = -1
            for t in range(SLOTS + 1):
                through = t < SLOTS and slots[d, t] >= most
                if through and passed < 0:
                    passed = t
                if t < SLOTS and 0 <= slots[d, t] < most:
                    slots[d, t] = sigma[slots[d, t]]
                if passed >= 0 and not through:
                    draw_way(ground, slots[d], passed, t, near, weight, stream)
                    passed = -1
