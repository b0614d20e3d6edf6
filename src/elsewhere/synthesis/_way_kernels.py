"""Compiled loops of ways: the bridge between two stays, and how long each cell on it takes."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere._jit import njit
from elsewhere.paper._generate_kernels import open_stream, uniform
from elsewhere.paper._profile_kernels import draw_index

MOST_PASSES = 30  # cells of a way
LENGTHS = 40  # bins of the distance between its ends
TURNS = 10  # from straight back (0) to straight on (8); 9: to the very cell before
PACES = 4  # of ways
RINGS, ANY = 24, 0.5  # bins of the length of a move; moves of any length, beside those of an observed way
NEAREST, DISTANCE, KINDS = 6, 2.0, 4.0  # ways of which one says how many cells a way has; weights of unlikeness
MOST_TICKS = 512  # of a way
FURTHER, MANY = 3, 6  # cells more or less that a way may have than drawn, and one more for so many
SECTORS = 8  # directions that the coarse chain tells apart
TICK = 60  # seconds: no tick is longer, but for the grain of the file
REMEMBERED = 1 << 14  # cells of ways that a life remembers
CELLS = 2_048  # on the way, those fewest moves from its beginning
TRIED, STEPS = 8, 64  # ways, of which one is drawn: so many, and more short ones, of so many cells together


class Moves(NamedTuple):
    """Moves that enough people make, or that are likely, sorted by origin and goal: M of them between R places."""

    origin: NDArray[np.int64]  # (M,)
    to: NDArray[np.int64]  # (M,)
    first: NDArray[np.int64]  # (R + 1,)
    weight: NDArray[np.float64]  # (M,) people, noisy, or what distance and people who pass make likely
    aim: NDArray[np.float64]  # (M, 2) unit vector
    ring: NDArray[np.int64]  # (M,) bin of its length


class Coarse(NamedTuple):
    """A chain over cells and sectors much like the one over moves: it looks ahead, and so guides what is drawn."""

    usual: NDArray[np.int64]  # (R, USUAL) the most usual moves of each cell, -1 where it has no more
    sector: NDArray[np.int64]  # (M,)
    turns: NDArray[np.float64]  # (SECTORS, SECTORS) mean factor of the turns to a sector from a sector
    norm: NDArray[np.float64]  # (R, SECTORS) weight x factor of all moves of a cell that one of this sector led to


class Passages(NamedTuple):
    """What is seen on the way: which moves, how many cells, for how long."""

    moves: Moves
    turns: NDArray[np.float64]  # (TURNS,) how much likelier a turn is than by weight alone
    norm: NDArray[np.float64]  # (M,) weight x factor of all moves on from each move
    coarse: Coarse
    detour: NDArray[np.float64]  # (LENGTHS,) kilometres by which the way through a cell on it may be longer than direct
    pull: float  # kilometres of such a detour that make a cell less likely by e, where it is the only one
    step: float  # kilometres of a bin of the distance between the ends
    alike: NDArray[np.float64]  # (N, 3) of observed ways: ln of the distance between the ends, of the time; 1: a trip
    apart: NDArray[np.float64]  # kilometres between the ends
    time: NDArray[np.int64]  # seconds they took
    cells: NDArray[np.int64]
    rings: NDArray[np.int64]  # (N, RINGS) its moves by length
    longest: NDArray[np.int64]  # (N,) bin of its longest move
    share: NDArray[np.float64]  # (RINGS,) of all moves
    guide: float  # how much the time that a diary gives a way says of it, beside the distance
    stride: float  # kilometres of a usual move
    tick: int  # seconds that a cell takes a multiple of
    hurry: int  # ticks of a cell for who is late
    slow: NDArray[np.float64]  # (PACES - 1,) ticks per cell from which on a way is of the next pace
    length: NDArray[np.float64]  # (PACES, ticks) share of passes of 1, 2, ... ticks
    sums: NDArray[np.float64]  # (PACES, MOST_PASSES + 1, MOST_TICKS + 1) likelihood that so many take so many ticks
    habit: float  # probability that a way once taken is taken again
    again: float  # by how much a cell that the way has already passed is less likely
    closed: NDArray[np.bool_]  # (R,) cells that nobody is known to pass: only ends of ways
    blocks: NDArray[np.bool_]  # (K,) classes whose places are not passed by who has them


class Bridge(NamedTuple):
    """Room for a bridge: the cells that may be on it, by moves from its beginning, and what is ahead of them."""

    at: NDArray[np.int64]  # (R,) where a place stands among the cells, -1 it does not
    cell: NDArray[np.int64]  # (CELLS,)
    begin: NDArray[np.int64]  # (MOST_PASSES + 1,) cells that so many moves lead to
    near: NDArray[np.float64]  # (CELLS,) exp(-detour / (n x pull))
    last: NDArray[np.int64]  # (CELLS,) the move to the end, -1 there is none
    degree: NDArray[np.int64]  # (CELLS,) usual moves to other cells; (CELLS, USUAL) of these goal, sector and weight:
    goal: NDArray[np.int64]
    sector: NDArray[np.int64]
    weight: NDArray[np.float64]
    ahead: NDArray[np.float64]  # (MOST_PASSES + 1, CELLS, SECTORS) likelihood, by the coarse chain, of what is ahead
    made: NDArray[np.int64]  # (RINGS,) moves so far by length
    taken: NDArray[np.int64]  # (CELLS,) the last of the ways that passed it, from 1
    chance: NDArray[np.float64]  # of each next move
    ways: NDArray[np.int64]  # (STEPS, MOST_PASSES)
    score: NDArray[np.float64]  # (STEPS,)


@njit
def new_bridge(m, coarse):
    """Make room for bridges of these moves."""
    n, most = min(CELLS, len(m.first)), 1
    for x in range(len(m.first) - 1):
        most = max(most, m.first[x + 1] - m.first[x])
    usual = coarse.usual.shape[1]
    return Bridge(
        np.full(len(m.first), -1), np.zeros(n, np.int64), np.zeros(MOST_PASSES + 1, np.int64), np.zeros(n),
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros((n, usual), np.int64), np.zeros((n, usual), np.int64),
        np.zeros((n, usual)), np.zeros((MOST_PASSES + 1, n, SECTORS)), np.zeros(RINGS, np.int64), np.zeros(n, np.int64),
        np.zeros(most),
        np.zeros((STEPS, MOST_PASSES), np.int64), np.zeros(STEPS),
    )  # fmt: skip


@njit
def length_of(xy, a, b):
    """Return the distance of two places."""
    dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
    return math.sqrt(dx * dx + dy * dy)


@njit
def turn_of(m, e, f):
    """Return the bin of the turn from move e to move f, which goes on from it."""
    if m.to[f] == m.origin[e]:
        return TURNS - 1
    cosine = m.aim[e, 0] * m.aim[f, 0] + m.aim[e, 1] * m.aim[f, 1]
    return min(max(int((cosine + 1.0) * 4.0 + 0.5), 0), TURNS - 2)


@njit
def go_on(w, e, f):
    """Return the probability that move f follows move e."""
    return w.moves.weight[f] * w.turns[turn_of(w.moves, e, f)] / w.norm[e]


@njit
def sum_turns(m, turns, norm, sector, mean):
    """Fill in, for each move, the weight x factor of all moves that go on from it; the mean factor by sectors."""
    total = np.full((SECTORS, SECTORS), 1e-12)
    mean[:] = 1e-12
    for e in range(len(m.to)):
        norm[e] = 1e-12
        for f in range(m.first[m.to[e]], m.first[m.to[e] + 1]):
            p = m.weight[f] * turns[turn_of(m, e, f)]
            norm[e] += p
            mean[sector[e], sector[f]] += m.weight[e] * p
            total[sector[e], sector[f]] += m.weight[e] * m.weight[f]
    mean /= total


@njit
def find_move(m, x, y):
    """Return the move from x to y, -1: there is none."""
    lo, hi = m.first[x], m.first[x + 1]
    while lo < hi:
        k = (lo + hi) // 2
        if m.to[k] < y:
            lo = k + 1
        else:
            hi = k
    return lo if lo < m.first[x + 1] and m.to[lo] == y else -1


@njit
def left_of(w, like, room, k, other):
    """
    Return how much likelier a move of bin k is, drawn from what is left of those of way `like`, than on any way.

    None is longer by more than a bin than all of these.
    """
    if w.guide == 0.0:  # where most ways are taken again, the moves themselves say enough
        return 1.0
    if k > w.longest[like] + 1:
        return 0.0
    left = w.rings[like, k] - room.made[k] - (1 if k == other else 0)
    return (max(left, 0) + ANY * w.share[k]) / ((w.cells[like] + 1 + ANY) * w.share[k])


@njit
def list_cells(xy, w, a, b, n, like, banned, room):
    """List the cells that may be on a way of n cells from a to b: the first by any move, others by usual ones."""
    m, size, done, direct = w.moves, 0, 0, length_of(xy, a, b)
    longest = 1e-9 + w.detour[min(int(direct / w.step), LENGTHS - 1)]
    room.begin[0] = 0
    for i in range(n):
        many = size if i > 0 else 1
        for k in range(done, many):
            here = room.cell[k] if i > 0 else a
            moves = w.coarse.usual.shape[1] if i > 0 else m.first[a + 1] - m.first[a]
            room.degree[k] = 0
            for j in range(moves):
                e = w.coarse.usual[here, j] if i > 0 else m.first[a] + j
                if e < 0:
                    break
                x = m.to[e]
                c = room.at[x]
                if c < 0:
                    over = length_of(xy, a, x) + length_of(xy, x, b) - direct
                    if banned[x] or size == len(room.cell) or over > longest:
                        continue
                    c = size
                    room.at[x], room.cell[c], room.near[c] = c, x, math.exp(-over / (n * w.pull))
                    room.last[c] = find_move(m, x, b)
                    size += 1
                if i > 0:
                    d = room.degree[k]
                    room.goal[k, d], room.sector[k, d] = c, w.coarse.sector[e]
                    room.weight[k, d] = m.weight[e] * room.near[c] * left_of(w, like, room, m.ring[e], -1)
                    room.degree[k] += 1
        done = many if i > 0 else 0
        room.begin[i + 1] = size


@njit
def look_ahead(w, n, like, room):
    """Fill in how likely, by the coarse chain, the rest of the way is after each cell, reached in each sector."""
    sums, turns, norm = np.zeros(SECTORS), w.coarse.turns, w.coarse.norm
    for i in range(n, 0, -1):
        ahead, after = room.ahead[i], room.ahead[min(i + 1, MOST_PASSES)]
        for c in range(room.begin[i]):
            sums[:] = 0.0
            if i == n:
                if room.last[c] >= 0:
                    e = room.last[c]
                    sums[w.coarse.sector[e]] = w.moves.weight[e] * left_of(w, like, room, w.moves.ring[e], -1)
            else:
                for d in range(room.degree[c]):
                    t = room.sector[c, d]
                    sums[t] += room.weight[c, d] * after[room.goal[c, d], t]
            ahead[c] = 0.0
            for t in range(SECTORS):
                if sums[t] > 0.0:
                    for s in range(SECTORS):
                        ahead[c, s] += turns[t, s] * sums[t]
            for s in range(SECTORS):
                ahead[c, s] /= norm[room.cell[c], s]


@njit
def weigh_next(w, a, e, i, n, like, k, room):
    """Fill in the weights of the i-th of n cells of way k, after move e (-1: the beginning a), with what is ahead."""
    m = w.moves
    here = m.to[e] if e >= 0 else a
    lo, total = m.first[here], 0.0
    for f in range(lo, m.first[here + 1]):
        c, p = room.at[m.to[f]], 0.0
        if c >= 0:
            if i < n:
                p = room.ahead[i, c, w.coarse.sector[f]]
            elif room.last[c] >= 0:
                p = go_on(w, f, room.last[c]) * left_of(w, like, room, m.ring[room.last[c]], m.ring[f])
            if p > 0.0:
                p *= room.near[c] * left_of(w, like, room, m.ring[f], -1) * (go_on(w, e, f) if e >= 0 else m.weight[f])
                p *= w.again if room.taken[c] == k + 1 else 1.0
        room.chance[f - lo] = p
        total += p
    return total


@njit
def draw_way(xy, w, a, b, n, like, banned, room, stream, out):
    """
    Draw n cells of a way from a to b, none of them `banned`, with moves as long as those of the observed way `like`.

    P ~ product of the probabilities of each move after the one before, of its length among those of `like` that are
    left, of exp(-detour / (n x pull)) of each cell, and of `again` of each passed before, of ways within the ellipse
    about a and b. Draws several ways move by move, each move by its probability and by what the
    coarse chain says is ahead, and one of these by the law over the probability of having drawn it: this is the law
    itself as their number grows, and for one cell at once. Returns False where no such way is found.
    """
    room.made[:] = 0
    list_cells(xy, w, a, b, n, like, banned, room)
    look_ahead(w, n, like, room)
    m, tried = w.moves, max(TRIED, STEPS // n) if n > 1 else 1
    for k in range(tried):
        e, score = -1, 1.0
        room.made[:] = 0
        for i in range(1, n + 1):
            lo = m.first[m.to[e] if e >= 0 else a]
            score *= weigh_next(w, a, e, i, n, like, k, room)
            if score <= 0.0:
                break
            e = lo + draw_index(room.chance, m.first[m.origin[lo] + 1] - lo, uniform(stream))
            c = room.at[m.to[e]]
            room.made[m.ring[e]] += 1
            room.ways[k, i - 1], room.taken[c] = m.to[e], k + 1
            if i < n:
                score /= room.ahead[i, c, w.coarse.sector[e]]
        room.score[k] = score
    for c in range(room.begin[n]):
        room.at[room.cell[c]], room.taken[c] = -1, 0
    k = draw_index(room.score, tried, uniform(stream))
    if k < 0:
        return False
    out[:n] = room.ways[k, :n]
    return True


@njit
def count_way(m, way, counts):
    """Count the turns of a way between moves that are known, and the cells that it has passed before."""
    e = -1
    for i in range(len(way) - 1):
        f = find_move(m, way[i], way[i + 1])
        if e >= 0 and f >= 0:
            counts[RINGS + turn_of(m, e, f)] += 1.0
        e = f
        for j in range(1, i):
            if way[j] == way[i]:
                counts[-1] += 1.0
                break


@njit
def count_ways(xy, w, place, first, like, key, real, drawn):
    """Count lengths, turns and cells passed twice of observed ways from rows `first` on, and of ways drawn instead."""
    room, shut, way = new_bridge(w.moves, w.coarse), w.closed.copy(), np.zeros(MOST_PASSES + 2, np.int64)
    for i in range(len(first)):
        n = w.cells[like[i]]
        seen = place[first[i] : first[i] + n + 2]
        shut[seen[0]] = shut[seen[-1]] = True
        way[0], way[n + 1] = seen[0], seen[-1]
        if draw_way(xy, w, way[0], way[n + 1], n, like[i], shut, room, open_stream(key, 0, i), way[1:]):
            count_way(w.moves, seen, real)
            count_way(w.moves, way[: n + 2], drawn)
            real[:RINGS] += w.rings[like[i]]
            for c in range(n + 1):
                drawn[w.moves.ring[find_move(w.moves, way[c], way[c + 1])]] += 1.0
        shut[seen[0]], shut[seen[-1]] = w.closed[seen[0]], w.closed[seen[-1]]


@njit
def find_alike(w, apart, seconds, trip, stream):
    """Draw one of the NEAREST observed ways, trips or not, by distance and time; -1: none."""
    far, long = math.log(apart + w.step), math.log(seconds / max(w.tick, TICK) + 1.0)
    best, away, n = np.zeros(NEAREST, np.int64), np.empty(NEAREST), 0
    for i in range(len(w.cells)):
        v = (
            DISTANCE * abs(w.alike[i, 0] - far)
            + w.guide * abs(w.alike[i, 1] - long)
            + KINDS * abs(w.alike[i, 2] - trip)
        )
        if n == NEAREST and v >= away[n - 1]:
            continue
        n = min(n + 1, NEAREST)
        j = n - 1
        while j > 0 and away[j - 1] > v:
            best[j], away[j] = best[j - 1], away[j - 1]
            j -= 1
        best[j], away[j] = i, v
    return best[int(uniform(stream) * n)] if n > 0 else -1


@njit
def draw_lengths(w, n, ticks, stream, took):
    """Draw how long each of n cells takes: independent lengths of this pace, given that all take so many ticks."""
    most = w.length.shape[1]
    rest, pace = min(max(ticks, n), n * most, MOST_TICKS), 0
    while pace < len(w.slow) and rest >= w.slow[pace] * n:
        pace += 1
    for c in range(n):
        left = n - c - 1
        point, last = uniform(stream) * w.sums[pace, left + 1, rest], 1
        for t in range(1, min(most, rest - left) + 1):
            p = w.length[pace, t - 1] * w.sums[pace, left, rest - t]
            if p > 0.0:
                last = t
                point -= p
                if point < 0.0:
                    break
        took[c] = last * w.tick
        rest -= last


@njit
def find_route(xy, w, x, y, sigma, seconds, trip, routes, pool, used, banned, room, stream):
    """
    Find the way between the own places x and y; return where it stands in `pool`: seconds, number of cells, cells.

    The diary gives it `seconds`; an observed way alike says how long it takes, and how many cells it has: for each
    stride that the distance is longer one more. Where no way has so many, one of nearly so many is drawn.
    A way once taken is mostly taken again, both ways: `routes` (own, own) says where it stands, `used` how full the
    pool is.
    """
    at = routes[x, y]
    if at >= 0 and uniform(stream) < w.habit:
        return at
    if used[0] + 2 * MOST_PASSES + 4 > len(pool):  # the oldest ways are forgotten
        routes[:], used[0] = -1, 0
    at, found, cells, apart = used[0], 0, 0, length_of(xy, sigma[x], sigma[y])
    i = find_alike(w, apart, seconds, trip, stream)
    if i >= 0 and (w.cells[i] > 0 or x == y):
        cells = min(max(w.cells[i] + round((apart - w.apart[i]) / w.stride), 1), MOST_PASSES)
    shut = banned[sigma[x]], banned[sigma[y]]
    banned[sigma[x]] = banned[sigma[y]] = True
    for further in range(2 * FURTHER + 1 if cells > 0 else 0):
        more = (further + 1) // 2
        more += cells // MANY if more > 1 else 0
        n = cells + more * (1 if further % 2 == 1 else -1)
        if 0 < n <= MOST_PASSES and draw_way(xy, w, sigma[x], sigma[y], n, i, banned, room, stream, pool[at + 2 :]):
            found = n
            break
    banned[sigma[x]], banned[sigma[y]] = shut
    back = at + found + 2
    pool[at] = pool[back] = max(w.time[i], found * w.tick) if i >= 0 else 0
    pool[at + 1] = pool[back + 1] = found
    for c in range(found):
        pool[back + 2 + c] = pool[at + 1 + found - c]
    routes[x, y], routes[y, x], used[0] = at, back, back + found + 2
    return at
