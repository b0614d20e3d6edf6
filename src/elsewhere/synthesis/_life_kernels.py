"""Compiled loops of lives: choosing places jointly, ways between places, whole lives."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere._jit import njit
from elsewhere._search_kernels import find_sorted
from elsewhere.paper._generate_kernels import open_stream, uniform
from elsewhere.paper._profile_kernels import draw_index
from elsewhere.synthesis._diary_kernels import (
    DAY,
    FEATURES,
    HOME,
    OWN,
    draw_diary,
    gamma,
    new_day,
    new_memory,
    normal,
)

BINS = 10  # of a distance
EXACT = 512  # candidates of a class up to which all are weighed; beyond, a sample
PROPOSED = 24  # of each of three samples: anywhere, about a tied place, about it more widely
MOST_PASSES, LENGTHS = 12, 40  # cells of a way; bins of its length
WAY_CELLS = 20  # cells that a way is made of


class Ground(NamedTuple):
    """Where people live their classes: candidates by class, square by square of a grid, and what ties places."""

    xy: NDArray[np.float64]  # (R, 2) kilometres
    limits: NDArray[np.float64]  # (BINS - 1,) squared distances at which bins begin
    place: NDArray[np.int64]  # candidates, by class, then by square
    first: NDArray[np.int64]  # (K + 1,)
    people: NDArray[np.float64]  # who use the place in this way, noisy
    weight: NDArray[np.float64]  # the same, raked: lives drawn by it use places as people do
    total: NDArray[np.float64]  # running sum of the weight within the class, before each candidate and at the end
    square: NDArray[np.int64]  # (K, squares + 1) where the candidates of each square begin
    corner: NDArray[np.float64]  # (3,) corner of the grid, side of a square
    columns: int
    rows: int
    anchor: NDArray[np.float64]  # (2 anchors, 2 neighbours in time or not, K, BINS) ln factors of distances
    step: NDArray[np.float64]  # (BINS,) of other places that follow each other
    moves: NDArray[np.int64]  # sorted keys of moves between usages that enough people make, place * R + place
    usual: NDArray[np.float64]  # ln factor of each


@njit
def distance_bin(xy, limits, a, b):
    """Return the bin of the distance between two places."""
    dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
    d, j = dx * dx + dy * dy, 0
    for k in range(BINS - 1):
        j += d >= limits[k]
    return j


@njit
def find_anchors(role, n, cls, time, out):
    """Fill in (home, main place): most time in a class of homes, or at all; most time elsewhere, 5 % at least; -1."""
    home, main, total = -1, -1, 0.0
    for homes in (True, False):
        for i in range(n):
            if (not homes or role[cls[i]] == HOME) and (home < 0 or time[i] > time[home]):
                home = i
        if home >= 0:
            break
    for i in range(n):
        total += time[i]
        if i != home and (main < 0 or time[i] > time[main]):
            main = i
    if main >= 0 and time[main] < 0.05 * total:
        main = -1
    out[0], out[1] = home, main


@njit
def place_score(g, anchors, cls, moves, sigma, n, i, x):
    """Return the ln weight of place x for own place i given all others, but for the people who use it in this way."""
    v, R = 0.0, len(g.xy)
    for j in range(n):
        y = sigma[j]
        if j == i or y < 0:
            continue
        if y == x:
            return -1e9
        flow = moves[i, j] + moves[j, i]
        if i == anchors[0] or j == anchors[0]:
            c = cls[j] if i == anchors[0] else cls[i]
            v += g.anchor[0, 1 if flow > 0 else 0, c, distance_bin(g.xy, g.limits, x, y)]
        elif i == anchors[1] or j == anchors[1]:
            c = cls[j] if i == anchors[1] else cls[i]
            v += g.anchor[1, 1 if flow > 0 else 0, c, distance_bin(g.xy, g.limits, x, y)]
        elif flow > 0:
            v += g.step[distance_bin(g.xy, g.limits, x, y)]
        if flow > 0 and len(g.moves) > 0:
            k = find_sorted(g.moves, 0, len(g.moves), min(x, y) * R + max(x, y))
            if k >= 0:
                v += g.usual[k]
    return v


@njit
def squares_apart(g, x, y):
    """Return how many squares of the grid lie between two places, along the longer side."""
    column = min(int((g.xy[x, 0] - g.corner[0]) / g.corner[2]), g.columns - 1)
    row = min(int((g.xy[x, 1] - g.corner[1]) / g.corner[2]), g.rows - 1)
    column -= min(int((g.xy[y, 0] - g.corner[0]) / g.corner[2]), g.columns - 1)
    row -= min(int((g.xy[y, 1] - g.corner[1]) / g.corner[2]), g.rows - 1)
    return max(abs(column), abs(row))


@njit
def _block_weight(g, c, centre, reach, ends):
    """Return the weight of class c in the squares within `reach` of that of place `centre`; fill in their ranges."""
    column = min(int((g.xy[centre, 0] - g.corner[0]) / g.corner[2]), g.columns - 1)
    row = min(int((g.xy[centre, 1] - g.corner[1]) / g.corner[2]), g.rows - 1)
    a, b = max(column - reach, 0), min(column + reach, g.columns - 1)
    total, n = 0.0, 0
    for r in range(max(row - reach, 0), min(row + reach, g.rows - 1) + 1):
        lo, hi = g.square[c, r * g.columns + a], g.square[c, r * g.columns + b + 1]
        ends[n, 0], ends[n, 1] = lo, hi
        if hi > lo:
            total += g.total[hi] - g.total[lo]
        n += 1
    return total, n


@njit
def _pick(g, lo, hi, point):
    """Return the candidate of lo .. hi at which the running weight passes `point` beyond that of lo."""
    goal = g.total[lo] + point
    a, b = lo, hi - 1
    while a < b:
        m = (a + b) // 2
        if g.total[m + 1] <= goal:
            a = m + 1
        else:
            b = m
    return a


@njit
def draw_sigma(g, role, n, cls, time, moves, sweeps, scores, stream, sigma):
    """
    Draw places for the own places of one life jointly, by Gibbs sampling; return False where a class has none.

    P(sigma) ~ product of people's weights and of the factors of distances and usual moves. Where a class has more than
    EXACT candidates, a step weighs the present place and independent proposals, each by the law over the proposals'
    density, which leaves the same law unchanged.
    """
    anchors, order = np.empty(2, np.int64), np.argsort(-time[:n])
    find_anchors(role, n, cls, time, anchors)
    sigma[:n] = -1
    ends, among = np.empty((16, 2), np.int64), np.empty(3 * PROPOSED + 1, np.int64)
    rows = np.empty(n, np.int64)  # the candidate that each own place is at
    for _ in range(sweeps):
        for i in order:
            c = cls[i]
            lo, hi = g.first[c], g.first[c + 1]
            if hi == lo:
                return False
            if hi - lo <= EXACT:
                top = -1e18
                for k in range(lo, hi):
                    v = -1e9
                    if g.weight[k] > 0.0:
                        v = math.log(g.weight[k]) + place_score(g, anchors, cls, moves, sigma, n, i, g.place[k])
                    scores[k - lo] = v
                    top = max(top, v)
                for k in range(hi - lo):
                    scores[k] = math.exp(scores[k] - top)
                rows[i] = lo + max(draw_index(scores, hi - lo, uniform(stream)), 0)
                sigma[i] = g.place[rows[i]]
                continue
            # about which place: the anchor, or home for the main place, or any that is tied; it stays where it is
            centre = -1
            for j in (anchors[0], anchors[1]):
                tied = j >= 0 and j != i and (j == anchors[0] or moves[i, j] + moves[j, i] > 0)
                if centre < 0 and tied and sigma[j] >= 0:
                    centre = sigma[j]
            whole, count = g.total[hi] - g.total[lo], 0
            if sigma[i] >= 0:
                among[0], count = rows[i], 1
            near, wide = 0.0, 0.0
            if centre >= 0:
                near, _ = _block_weight(g, c, centre, 1, ends)
                wide, _ = _block_weight(g, c, centre, 5, ends)
            for scale in range(3):
                if scale > 0 and (near if scale == 1 else wide) <= 0.0:
                    continue
                for _ in range(PROPOSED):
                    if scale == 0:
                        among[count] = _pick(g, lo, hi, uniform(stream) * whole)
                    else:
                        inside, blocks = _block_weight(g, c, centre, 1 if scale == 1 else 5, ends)
                        point = uniform(stream) * inside
                        for b in range(blocks):
                            size = g.total[ends[b, 1]] - g.total[ends[b, 0]] if ends[b, 1] > ends[b, 0] else 0.0
                            if point < size or b == blocks - 1:
                                among[count] = _pick(g, ends[b, 0], max(ends[b, 1], ends[b, 0] + 1), min(point, size))
                                break
                            point -= size
                    count += 1
            top = -1e18
            for k in range(count):
                x = g.place[among[k]]
                density = 1.0 / whole
                if centre >= 0:
                    away = squares_apart(g, x, centre)
                    if near > 0.0 and away <= 1:
                        density += 1.0 / near
                    if wide > 0.0 and away <= 5:
                        density += 1.0 / wide
                v = -1e9
                if g.weight[among[k]] > 0.0:
                    v = place_score(g, anchors, cls, moves, sigma, n, i, x) - math.log(density)
                scores[k] = v
                top = max(top, v)
            for k in range(count):
                scores[k] = math.exp(scores[k] - top)
            rows[i] = among[max(draw_index(scores, count, uniform(stream)), 0)]
            sigma[i] = g.place[rows[i]]
    return True


@njit
def count_distances(g, role, person_first, cls, place, time, moves, moves_first, sweeps, key, real, drawn, again):
    """Count the bins of tied distances of people, and of people whose places are drawn `again`: (5, K, BINS) each."""
    most = 1
    for u in range(len(person_first) - 1):
        most = max(most, person_first[u + 1] - person_first[u])
    sigma, anchors = np.empty(most, np.int64), np.empty(2, np.int64)
    scores = np.empty(max(EXACT, 3 * PROPOSED + 1))
    for u in range(len(person_first) - 1):
        a, b = person_first[u], person_first[u + 1]
        n = b - a
        flow = moves[moves_first[u] : moves_first[u + 1]].reshape(n, n)
        find_anchors(role, n, cls[a:b], time[a:b], anchors)
        drawn_well = draw_sigma(g, role, n, cls[a:b], time[a:b], flow, sweeps, scores, open_stream(key, 0, u), sigma)
        again[a:b] = -1
        if not drawn_well:
            continue
        again[a:b] = sigma[:n]
        for i in range(n):
            for j in range(i):
                near = 1 if flow[i, j] + flow[j, i] > 0 else 0
                if i == anchors[0] or j == anchors[0]:
                    table, c = near, cls[a + (j if i == anchors[0] else i)]
                elif i == anchors[1] or j == anchors[1]:
                    table, c = 2 + near, cls[a + (j if i == anchors[1] else i)]
                elif near == 1:
                    table, c = 4, 0
                else:
                    continue
                real[table, c, distance_bin(g.xy, g.limits, place[a + i], place[a + j])] += 1
                drawn[table, c, distance_bin(g.xy, g.limits, sigma[i], sigma[j])] += 1


class Passages(NamedTuple):
    """What is seen on the way: how many cells, for how long, and which."""

    cells: NDArray[np.int64]  # places that enough people pass, square by square
    weight: NDArray[np.float64]  # people who pass, noisy
    square: NDArray[np.int64]
    corner: NDArray[np.float64]
    columns: int
    rows: int
    number: NDArray[np.float64]  # (LENGTHS, MOST_PASSES + 1) cumulative: cells of a way by distance
    step: float  # kilometres of a bin of that distance
    detour: float  # kilometres by which a way is longer than direct, in the exponent
    length: NDArray[np.float64]  # cumulative: grains of a pass
    moves: NDArray[np.int64]  # sorted keys of moves of enough people
    people: NDArray[np.float64]
    habit: float  # probability that a way once taken is taken again


@njit
def length_of(xy, a, b):
    """Return the distance of two places."""
    dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
    return math.sqrt(dx * dx + dy * dy)


@njit
def way_candidates(xy, w, a, b, own, among, weight, fit):
    """Fill in the WAY_CELLS best cells between a and b, by people who pass and the detour; none of the `own` places."""
    length, n = length_of(xy, a, b), 0
    margin = 4.0 * w.detour + 0.2 * length
    c0 = int((min(xy[a, 0], xy[b, 0]) - margin - w.corner[0]) / w.corner[2])
    c1 = int((max(xy[a, 0], xy[b, 0]) + margin - w.corner[0]) / w.corner[2])
    r0 = int((min(xy[a, 1], xy[b, 1]) - margin - w.corner[1]) / w.corner[2])
    r1 = int((max(xy[a, 1], xy[b, 1]) + margin - w.corner[1]) / w.corner[2])
    for r in range(max(r0, 0), min(r1, w.rows - 1) + 1):
        lo = w.square[r * w.columns + min(max(c0, 0), w.columns - 1)]
        hi = w.square[r * w.columns + min(max(c1, 0), w.columns - 1) + 1]
        for k in range(lo, hi):
            x = w.cells[k]
            if own[x]:  # what is passed at an own place is no pass
                continue
            v = w.weight[k] * math.exp((length - length_of(xy, a, x) - length_of(xy, x, b)) / w.detour)
            j = n  # the best are kept, in order
            if n == WAY_CELLS:
                if v <= fit[n - 1]:
                    continue
                j = n - 1
            else:
                n += 1
            while j > 0 and fit[j - 1] < v:
                among[j], weight[j], fit[j] = among[j - 1], weight[j - 1], fit[j - 1]
                j -= 1
            among[j], weight[j], fit[j] = x, w.weight[k], v
    return n


@njit
def move_weight(xy, w, a, b, goal):
    """Return how usual the move a -> b is on the way to `goal`: its people, a little for all; less for a detour."""
    k = find_sorted(w.moves, 0, len(w.moves), a * len(xy) + b)
    longer = length_of(xy, a, b) + length_of(xy, b, goal) - length_of(xy, a, goal)
    return ((w.people[k] if k >= 0 else 0.0) + 0.2) * math.exp(-longer / w.detour)


@njit
def draw_way(xy, w, a, b, n, own, among, weight, fit, filter_, table, stream, out):
    """
    Draw n cells of a way from a to b: P ~ product of weights of cells and moves, ends included, and of exp(-detour).

    Forward filter over the cells, backward sampling. Returns False where there are too few cells.
    """
    m = way_candidates(xy, w, a, b, own, among, weight, fit)
    if m < n or m == 0:
        return False
    if n > 1:
        for p in range(m):
            for q in range(m):
                table[p, q] = 0.0 if p == q else move_weight(xy, w, among[p], among[q], b)
    for q in range(m):
        filter_[0, q] = weight[q] * move_weight(xy, w, a, among[q], b)
    for i in range(1, n):
        total = 0.0
        for p in range(m):
            total += filter_[i - 1, p]
        for q in range(m):
            v = 0.0
            for p in range(m):
                v += filter_[i - 1, p] * table[p, q]
            filter_[i, q] = v * weight[q] / max(total, 1e-300)
    for q in range(m):
        filter_[n - 1, q] *= move_weight(xy, w, among[q], b, b)
    after = draw_index(filter_[n - 1], m, uniform(stream))
    if after < 0:
        return False
    out[n - 1] = among[after]
    for i in range(n - 2, -1, -1):
        for p in range(m):
            filter_[i, p] *= table[p, after]
        after = draw_index(filter_[i], m, uniform(stream))
        if after < 0:
            return False
        out[i] = among[after]
    return True


@njit
def find_route(g, w, x, y, sigma, route, lived, among, worth, fit, filter_, table, stream, way):
    """Return the number of cells between the own places x and y; a way once taken is mostly taken again, both ways."""
    cells = route[x, y, 0]
    if cells < 0 or uniform(stream) > w.habit:
        u, cells = uniform(stream), 0
        ladder = w.number[min(int(length_of(g.xy, sigma[x], sigma[y]) / w.step), LENGTHS - 1)]
        while cells < MOST_PASSES and u >= ladder[cells]:
            cells += 1
        while cells > 0 and not draw_way(
            g.xy, w, sigma[x], sigma[y], cells, lived, among, worth, fit, filter_, table, stream, way
        ):
            cells -= 1
        route[x, y, 0], route[y, x, 0] = cells, cells
        for c in range(cells):
            route[x, y, c + 1], route[y, x, cells - c] = way[c], way[c]
    return cells


@njit
def draw_passes(w, grain, cells, spare, stream, took):
    """Draw how long each cell of a way takes, within `spare` seconds; return the seconds of all."""
    used = 0
    for c in range(cells):
        u, grains = uniform(stream), 1
        while grains < len(w.length) and u >= w.length[grains - 1]:
            grains += 1
        took[c] = max(min(grains * grain, spare - used - (cells - c - 1) * grain), grain)
        used += took[c]
    return used


@njit
def draw_mix(mixes, spread, stream, mix):
    """Draw how often a person has each kind of day, on weekdays and at weekends: a Dirichlet law about the type's."""
    for o in range(2):
        for k in range(mixes.shape[1]):
            shape = mixes[o, k] * spread[o]
            mix[o, k] = gamma(shape, stream) if shape > 1e-6 else 0.0


@njit
def leave_out(g, mine, mine_part, lo, hi, least):
    """Take the seed's own contribution out of the weights; of a weight `least` people must remain."""
    for j in range(lo, hi):
        k = mine[j]
        left = g.people[k] - mine_part[j]
        g.weight[k] *= left / g.people[k] if left >= least else 0.0


@njit
def draw_lives(
    law, g, w, mixes, spread, busyness, types, first_day, last_day, lo, hi, border, attempt, numbers, key, tries,
    sweeps, mine, mine_part, mine_first, most_own, most_day, least, life, start, end, place, cls, usage, first, good,
):  # fmt: skip
    """
    Draw one life for each of `numbers`; life i is written to rows first[i] : first[i + 1], where it is `good`.

    `types`, `first_day`, `last_day` are those of its seed; `mine[mine_first[i] : mine_first[i + 1]]` are the candidates
    (rows of `g.place`) that the seed itself counts for, by `mine_part`: its own contribution is left out, and of a
    weight `least` must remain. Returns the number of rows, or less than 0 where the room was not enough.
    """
    K, Q = len(law.role), mixes.shape[2]
    longest = 1
    for i in range(len(numbers)):
        longest = max(longest, last_day[i] - first_day[i] + 1)
    memory = new_memory(most_own, longest + 1, K)
    days = [new_day(most_day) for _ in range(tries)]
    weight, columns, features = np.zeros(most_own + 512), np.zeros(OWN), np.zeros(FEATURES)
    room = longest * most_day
    own, kinds = np.zeros(room, np.int64), np.zeros(room, np.int64)
    begin, until = np.zeros(room, np.int64), np.zeros(room, np.int64)
    off = np.zeros(longest, np.int64)
    mix, time, sigma = np.zeros((2, Q)), np.zeros(most_own), np.zeros(most_own, np.int64)
    scores = np.empty(max(EXACT, 3 * PROPOSED + 1))
    among, worth, fit = np.zeros(WAY_CELLS, np.int64), np.zeros(WAY_CELLS), np.zeros(WAY_CELLS)
    filter_, table = np.zeros((MOST_PASSES, WAY_CELLS)), np.zeros((WAY_CELLS, WAY_CELLS))
    way, took, lived = np.zeros(MOST_PASSES, np.int64), np.zeros(MOST_PASSES, np.int64), np.zeros(len(g.xy), np.bool_)
    route = np.full((most_own, most_own, MOST_PASSES + 1), -1, np.int32)
    n = 0
    for i in range(len(numbers)):
        stream = open_stream(key, attempt, numbers[i])
        first[i] = n
        D = last_day[i] - first_day[i] + 1
        for d in range(D):
            off[d] = 1 if (first_day[i] + d + 3) % 7 >= 5 else 0
        draw_mix(mixes[types[i]], spread, stream, mix)
        busy = busyness * normal(stream)
        m = draw_diary(
            law, types[i], mix, busy, off[:D], lo, hi, tries, memory, days, weight, columns, features, stream, own,
            kinds, begin, until,
        )  # fmt: skip
        owned = memory.size[0]
        time[:owned] = 0.0
        for q in range(m):
            time[own[q]] += max(until[q] - begin[q], 60)
        # the seed's own contribution is left out of the weights, and taken back in afterwards
        leave_out(g, mine, mine_part, mine_first[i], mine_first[i + 1], least)
        good[i] = m > 0 and draw_sigma(
            g, law.role, owned, memory.cls, time, memory.moves, sweeps, scores, stream, sigma
        )
        for j in range(mine_first[i], mine_first[i + 1]):
            g.weight[mine[j]] = g.total[mine[j] + 1] - g.total[mine[j]]
        if not good[i]:
            continue
        if n + m * (MOST_PASSES + 1) > len(start):
            return -i - 1
        base = first_day[i] * DAY + border
        route[:owned, :owned, 0] = -1
        for j in range(owned):
            lived[sigma[j]] = True
        for q in range(m):
            a = begin[q]
            if len(w.cells) > 0 and q > 0 and until[q - 1] == a and own[q - 1] != own[q]:
                homeward = law.role[kinds[q]] == HOME
                spare = (until[q] - a if homeward else base + a - start[n - 1]) - law.grain
                cells = find_route(
                    g, w, own[q - 1], own[q], sigma, route, lived, among, worth, fit, filter_, table, stream, way
                )
                cells = min(cells, max(spare // law.grain, 0))
                used = draw_passes(w, law.grain, cells, spare, stream, took)
                t = a if homeward else a - used
                if not homeward and cells > 0:
                    end[n - 1] = base + t
                for c in range(cells):
                    life[n], start[n], end[n] = numbers[i], base + t, base + t + took[c]
                    place[n], cls[n], usage[n] = route[own[q - 1], own[q], c + 1], -1, -1
                    t += took[c]
                    n += 1
                a = t if homeward else a
            life[n], start[n], end[n] = numbers[i], base + a, base + until[q]
            place[n], cls[n], usage[n] = sigma[own[q]], kinds[q], own[q]
            n += 1
        for j in range(owned):
            lived[sigma[j]] = False
    first[len(numbers)] = n
    return n
