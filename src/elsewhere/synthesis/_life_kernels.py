"""Compiled loops of lives: choosing places jointly, ways between places, whole lives."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere._jit import find_sorted, njit
from elsewhere.paper._generate_kernels import open_stream, uniform
from elsewhere.paper._profile_kernels import draw_index
from elsewhere.synthesis._diary_kernels import (
    DAY,
    HOME,
    TRIES,
    draw_diary,
    gamma,
    new_day,
    new_memory,
    normal,
)
from elsewhere.synthesis._way_kernels import MOST_PASSES, REMEMBERED, draw_lengths, find_route, new_bridge

BINS = 10  # of a distance
PACES = 12  # bins of a distance, finer, by the time between
EXACT = 256  # candidates of a class up to which all are weighed; beyond, a sample
PROPOSED = 24  # of each of three samples: anywhere, about a tied place, about it more widely
BRIEF = 1_800  # a shorter stay keeps its length, a longer one the hour at which it ends
SWEEPS = 4


class Ground(NamedTuple):
    """Where people live their classes: candidates by class, square by square of a grid, and what ties places."""

    xy: NDArray[np.float64]  # (R, 2) kilometres
    limits: NDArray[np.float64]  # (BINS - 1,) squared distances at which bins begin
    place: NDArray[np.int64]  # candidates, by class, then by square
    first: NDArray[np.int64]  # (K + 1,)
    people: NDArray[np.float64]  # who use the place in this way, noisy
    homes: NDArray[np.float64]  # running sum of people within the class, before each candidate and at the end
    weight: NDArray[np.float64]  # people, raked: lives drawn by it use places as people do
    total: NDArray[np.float64]  # running sum of the weight within the class, before each candidate and at the end
    square: NDArray[np.int64]  # (K, squares + 1) where the candidates of each square begin
    corner: NDArray[np.float64]  # (3,) corner of the grid, side of a square
    columns: int
    rows: int
    anchor: NDArray[np.float64]  # (2 anchors, 2 neighbours in time or not, K, BINS) ln factors of distances
    step: NDArray[np.float64]  # (BINS,) of other places that follow each other
    paces: NDArray[np.float64]  # (PACES - 1,) squared distances at which finer bins begin
    pace: NDArray[np.float64]  # (TIES + 1, PACES) ln factors of places that follow each other so soon
    moves: NDArray[np.int64]  # sorted keys of moves between usages that enough people make, place * R + place
    usual: NDArray[np.float64]  # ln factor of each


@njit
def distance_bin(xy, limits, a, b):
    """Return the bin of the distance between two places."""
    dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
    d, j = dx * dx + dy * dy, 0
    for k in range(len(limits)):
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


class Where(NamedTuple):
    """What places are to people: the ground that lives are placed on, and what each person has added to it."""

    ground: Ground
    passed: NDArray[np.float64]  # (R,) people expected to pass each published place, END where nobody does
    mine: NDArray[np.int64]  # candidates of each person's own places, and what is left of them without it
    left: NDArray[np.float64]
    mine_first: NDArray[np.int64]  # (people + 1,)


class Rows(NamedTuple):
    """Records of lives; the class of passes is -1."""

    life: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    place: NDArray[np.int64]
    cls: NDArray[np.int64]


class Ties(NamedTuple):
    """The places that one own place is tied to, with their factors by distance; all places taken by the others."""

    place: NDArray[np.int64]
    factor: NDArray[np.float64]  # (ties, BINS)
    soon: NDArray[np.int64]  # how soon one followed the other at best, 0 never
    taken: NDArray[np.bool_]  # (R,)


@njit
def list_ties(g, anchors, cls, soon, sigma, n, i, ties):
    """Fill in the ties of own place i to those that have a place; return how many."""
    many = 0
    for j in range(n):
        if j == i or sigma[j] < 0:
            continue
        tie = max(soon[i, j], soon[j, i])
        near = 1 if tie > 0 else 0
        if i == anchors[0] or j == anchors[0]:
            ties.factor[many] = g.anchor[0, near, cls[j if i == anchors[0] else i]]
        elif i == anchors[1] or j == anchors[1]:
            ties.factor[many] = g.anchor[1, near, cls[j if i == anchors[1] else i]]
        elif tie > 0:
            ties.factor[many] = g.step
        else:
            continue
        ties.place[many], ties.soon[many] = sigma[j], tie
        many += 1
    return many


@njit
def place_score(g, ties, many, x):
    """Return the ln weight of place x for an own place given all others, but for the people who use it in this way."""
    if ties.taken[x]:
        return -1e9
    v, R = 0.0, len(g.xy)
    for k in range(many):
        y = ties.place[k]
        v += ties.factor[k, distance_bin(g.xy, g.limits, x, y)]
        if ties.soon[k] > 0:
            v += g.pace[ties.soon[k], distance_bin(g.xy, g.paces, x, y)]
        if ties.soon[k] > 0 and len(g.moves) > 0:
            m = find_sorted(g.moves, 0, len(g.moves), min(x, y) * R + max(x, y))
            if m >= 0:
                v += g.usual[m]
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
def _pick(total, lo, hi, point):
    """Return the candidate of lo .. hi at which the running weight passes `point` beyond that of lo."""
    goal = total[lo] + point
    a, b = lo, hi - 1
    while a < b:
        m = (a + b) // 2
        if total[m + 1] <= goal:
            a = m + 1
        else:
            b = m
    return a


@njit
def draw_home(g, c, point, stream):
    """Return the candidate of class c at `point` (0 to 1) of its people, of one left out what is left; -1: none."""
    lo, hi = g.first[c], g.first[c + 1]
    if hi == lo:
        return -1
    for _ in range(100):
        k = _pick(g.homes, lo, hi, point * (g.homes[hi] - g.homes[lo]))
        if uniform(stream) * (g.total[k + 1] - g.total[k]) < g.weight[k]:
            return k
        point = uniform(stream)
    return k


@njit
def propose(g, c, centre, ends, among, density, count, stream):
    """Add candidates of class c to the first `count`: of all, about `centre` or more widely; fill in their density."""
    lo, hi = g.first[c], g.first[c + 1]
    whole, inside, blocks = g.total[hi] - g.total[lo], np.zeros(2), np.zeros(2, np.int64)
    for scale in range(2):
        inside[scale], blocks[scale] = _block_weight(g, c, centre, 5 if scale else 1, ends[scale])
    for _ in range(3 * PROPOSED):
        scale = int(uniform(stream) * 3) - 1
        if scale < 0:
            among[count] = _pick(g.total, lo, hi, uniform(stream) * whole)
            count += 1
        elif inside[scale] > 0.0:
            point, n = uniform(stream) * inside[scale], blocks[scale]
            for b in range(n):
                begin, end = ends[scale, b]
                size = g.total[end] - g.total[begin] if end > begin else 0.0
                if point < size or b == n - 1:
                    among[count] = _pick(g.total, begin, max(end, begin + 1), min(point, size))
                    count += 1
                    break
                point -= size
    for k in range(count):
        density[k] = 1.0 / whole
        away = squares_apart(g, g.place[among[k]], centre)
        for scale in range(2):
            if inside[scale] > 0.0 and away <= (5 if scale else 1):
                density[k] += 1.0 / inside[scale]
        density[k] *= g.total[among[k] + 1] - g.total[among[k]]
    return count


@njit
def draw_place(g, ties, many, among, density, scores, count, stream):
    """Draw one of the candidates `among` by the law over their density."""
    top = -1e18
    for k in range(count):
        scores[k] = -1e9
        if g.weight[among[k]] > 0.0:
            scores[k] = math.log(g.weight[among[k]] / density[k]) + place_score(g, ties, many, g.place[among[k]])
        top = max(top, scores[k])
    for k in range(count):
        scores[k] = math.exp(scores[k] - top)
    return among[max(draw_index(scores, count, uniform(stream)), 0)]


@njit
def draw_sigma(g, role, n, cls, time, soon, sweeps, point, stream, sigma):
    """
    Draw places for the own places of one life, by Gibbs sampling given home; return False where a class has none.

    Home is at `point` (0 to 1) of the weights of its class. P(the rest | home) ~ product of people's weights and of
    the factors of distances and usual moves. Where a class has more than EXACT candidates, a step weighs the present
    place and independent proposals, each by the law over the proposals' density, which leaves the same law unchanged.
    All draws of it meet if classes have more candidates than own places.
    """
    anchors, order, room = np.empty(2, np.int64), np.argsort(-time[:n]), max(EXACT, 3 * PROPOSED + 1)
    find_anchors(role, n, cls, time, anchors)
    sigma[:n] = -1
    ends, among = np.empty((2, 16, 2), np.int64), np.empty(room, np.int64)
    density, scores = np.empty(room), np.empty(room)
    ties = Ties(np.empty(n, np.int64), np.empty((n, BINS)), np.empty(n, np.int64), np.zeros(len(g.xy), np.bool_))
    rows = np.empty(n, np.int64)  # the candidate that each own place is at
    h = anchors[0]
    rows[h] = draw_home(g, cls[h], point, stream)
    if rows[h] < 0:
        return False
    sigma[h] = g.place[rows[h]]
    ties.taken[sigma[h]] = True
    for _ in range(sweeps):
        for i in order:
            lo, hi = g.first[cls[i]], g.first[cls[i] + 1]
            if i == h:
                continue
            if hi == lo:
                return False
            count = 0
            if sigma[i] >= 0:
                ties.taken[sigma[i]] = False
                among[0], count = rows[i], 1
            if hi - lo <= EXACT:
                count = hi - lo
                for k in range(count):
                    among[k], density[k] = lo + k, 1.0
            many = list_ties(g, anchors, cls, soon, sigma, n, i, ties)
            if hi - lo > EXACT:  # also about the place that follows soonest, or home
                centre, best = sigma[h], 0
                for k in range(many):
                    if ties.soon[k] > best:
                        centre, best = ties.place[k], ties.soon[k]
                count = propose(g, cls[i], centre, ends, among, density, count, stream)
            rows[i] = draw_place(g, ties, many, among, density, scores, count, stream)
            sigma[i] = g.place[rows[i]]
            ties.taken[sigma[i]] = True
    return True


@njit
def count_distances(
    g, role, person_first, cls, place, time, soon, soon_first, sweeps, key, real, drawn, paces, again
):  # fmt: skip
    """
    Count the bins of tied distances of people, and of people whose places are drawn `again`: (5, K, BINS) each.

    `paces` (2, TIES + 1, PACES) are the counts of both by the time between.
    """
    most = 1
    for u in range(len(person_first) - 1):
        most = max(most, person_first[u + 1] - person_first[u])
    sigma, anchors = np.empty(most, np.int64), np.empty(2, np.int64)
    for u in range(len(person_first) - 1):
        a, b = person_first[u], person_first[u + 1]
        n = b - a
        flow = soon[soon_first[u] : soon_first[u + 1]].reshape(n, n)
        find_anchors(role, n, cls[a:b], time[a:b], anchors)
        stream = open_stream(key, 0, u)
        drawn_well = draw_sigma(g, role, n, cls[a:b], time[a:b], flow, sweeps, uniform(stream), stream, sigma)
        again[a:b] = -1
        if not drawn_well:
            continue
        again[a:b] = sigma[:n]
        for i in range(n):
            for j in range(i):
                tie = max(flow[i, j], flow[j, i])
                near = 1 if tie > 0 else 0
                paces[0, tie, distance_bin(g.xy, g.paces, place[a + i], place[a + j])] += 1
                paces[1, tie, distance_bin(g.xy, g.paces, sigma[i], sigma[j])] += 1
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


@njit
def draw_mix(mixes, spread, stream, mix):
    """Draw how often a person has each kind of day, on weekdays and at weekends: gamma laws about the habit's."""
    for o in range(2):
        for k in range(mixes.shape[1]):
            shape = mixes[o, k] * spread[o, k]
            mix[o, k] = gamma(shape, stream) / spread[o, k] if shape > 1e-6 else 0.0
        mix[o] /= max(mix[o].sum(), 1e-300)


@njit
def half(length, grain):
    """Return half of a length, a multiple of the grain of the file's times."""
    return max(length // 2 // grain, 1) * grain


@njit
def cut_off(latest, n, start, end):
    """End the first n rows by `latest`; return how many are left."""
    while start[n - 1] >= latest:
        n -= 1
    end[n - 1] = min(end[n - 1], latest)
    return n


@njit
def lay_way(w, way, t, brief, grain, stream, took, n, rows):
    """
    Write the cells of a way (seconds, number, cells) behind row n - 1; return the rows so far and when it is over.

    Who was somewhere for long leaves so that it is over at `t`, and hurries; after a `brief` stay it takes its time.
    """
    cells, start, end = way[1], rows.start, rows.end
    leave = end[n - 1] if brief else start[n - 1] + half(end[n - 1] - start[n - 1], grain)
    takes = way[0] if brief else min(way[0], max(t - leave, cells * w.hurry * w.tick))
    if cells > 0:
        draw_lengths(w, cells, takes // w.tick, stream, took)
        takes = took[:cells].sum()
    t = leave if brief else max(t - takes, leave)
    t += takes if cells == 0 else 0  # until then at the last place
    end[n - 1] = t
    for c in range(cells):
        rows.place[n], rows.cls[n], start[n], end[n] = way[2 + c], -1, t, t + took[c]
        t += took[c]
        n += 1
    return n, t


@njit
def place_life(law, where, seed, memory, diary, m, point, stream, sigma):
    """Draw the places of a diary of m pieces, the seed's own contribution left out; return whether there are any."""
    g, owned, time = where.ground, memory.size[0], np.zeros(memory.size[0])
    for q in range(m):
        time[diary.own[q]] += max(diary.end[q] - diary.start[q], 60)
    mine = where.mine[where.mine_first[seed] : where.mine_first[seed + 1]]
    left = where.left[where.mine_first[seed] : where.mine_first[seed + 1]]
    for j in range(len(mine)):
        g.weight[mine[j]] *= left[j]
    placed = m > 0 and draw_sigma(g, law.role, owned, memory.cls, time, memory.soon, SWEEPS, point, stream, sigma)
    for k in mine:
        g.weight[k] = g.total[k + 1] - g.total[k]
    return placed


@njit
def write_life(
    law, xy, w, diary, m, sigma, base, latest, routes, pool, used, shut, took, bridge, stream, n, rows
):  # fmt: skip
    """Write the records of a diary of m pieces behind row n - 1, with ways between them; return the rows so far."""
    own, begin, until, brief = diary.own, diary.start, diary.end, w.guide > 0.0
    for q in range(m):
        t = base + begin[q]
        if diary.way[q] == 1 and len(w.moves.to) > 0:
            trip, seconds = law.leaves[diary.cls[q - 1]], begin[q] - until[q - 1]
            at = find_route(xy, w, own[q - 1], own[q], sigma, seconds, trip, routes, pool, used, shut, bridge, stream)
            n, t = lay_way(w, pool[at : at + 2 + MOST_PASSES], t, brief, law.grain, stream, took, n, rows)
        elif q > 0 and n > 0:
            t = rows.end[n - 1] if begin[q] == until[q - 1] else max(t, rows.end[n - 1])
        if t >= latest:
            return cut_off(latest, n, rows.start, rows.end)
        length = until[q] - begin[q]
        brief = w.guide > 0.0 and length < BRIEF
        until_then = t + length if brief else max(base + until[q], t + half(length, law.grain))
        rows.start[n], rows.end[n], rows.place[n], rows.cls[n] = t, min(until_then, latest), sigma[own[q]], diary.cls[q]
        n += 1
    return n


@njit
def draw_lives(law, where, w, seeds, points, attempts, numbers, key, rows, first, good):
    """
    Draw a life of each of `seeds`; life i is written to rows first[i] : first[i + 1], where it is `good`.

    `points[i]` is where its home is drawn, -1 anywhere; `attempts[i]` and `numbers[i]` say what stream it is drawn
    from. Returns the number of rows, or less than 0 where the room was not enough.
    """
    longest = (law.last_day - law.first_day)[seeds].max() + 1
    memory = new_memory(law.most_own, longest + 1, len(law.role))
    diary = new_day(longest * law.most_day)
    days = [new_day(law.most_day) for _ in range(TRIES)]
    took, shut, bridge = np.zeros(MOST_PASSES, np.int64), w.closed.copy(), new_bridge(w.moves, w.coarse)
    routes, pool = np.full((law.most_own, law.most_own), -1), np.zeros(REMEMBERED, np.int64)
    used = np.zeros(1, np.int64)
    mix, tastes = np.zeros(law.mix.shape[1:]), np.zeros(len(law.tastes))
    sigma, n = np.zeros(law.most_own, np.int64), 0
    for i in range(len(seeds)):
        stream, seed = open_stream(key, attempts[i], numbers[i]), seeds[i]
        first[i] = n
        date = np.arange(law.first_day[seed], law.last_day[seed] + 1)
        habit = draw_index(law.habits[law.type_of[seed]], len(law.mix), uniform(stream))
        draw_mix(law.mix[habit], law.spread, stream, mix)
        for j in range(len(tastes)):
            tastes[j] = law.tastes[j] * normal(stream)
        off = ((date + 3) % 7 >= 5).astype(np.int64)
        m = draw_diary(law, habit, mix, tastes, off, memory, days, stream, diary)
        point = points[i] if points[i] >= 0.0 else uniform(stream)
        good[i] = place_life(law, where, seed, memory, diary, m, point, stream, sigma)
        if not good[i]:
            continue
        if n + m * (MOST_PASSES + 1) > len(rows.start):
            return -i - 1
        owned, base = memory.size[0], date[0] * DAY + law.border
        routes[:owned, :owned], used[0] = -1, 0
        for j in range(owned):
            shut[sigma[j]] |= w.blocks[memory.cls[j]]
        latest = base + (len(date) - 1) * DAY + (law.hi if law.hi >= 0 else DAY - law.border)
        n = write_life(
            law, where.ground.xy, w, diary, m, sigma, base, latest, routes, pool, used, shut, took, bridge, stream, n,
            rows,
        )  # fmt: skip
        rows.life[first[i] : n] = numbers[i]
        for j in range(owned):
            shut[sigma[j]] = w.closed[sigma[j]]
    first[len(seeds)] = n
    return n
