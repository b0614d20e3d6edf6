"""Compiled loops of lives over days: diaries of roles, memory of a person, the draw."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere._jit import njit
from elsewhere._search_kernels import sort
from elsewhere.paper._generate_kernels import open_stream, uniform
from elsewhere.paper._profile_kernels import draw_index
from elsewhere.synthesis.walk._hours_kernels import (
    COLUMNS,
    PARTS,
    STAYS,
    clear_hours,
    hours_columns,
    new_hours,
    remember_hours,
)

HOME, MAIN, OTHER = 0, 1, 2
DWELLS = 6
HASTES = 4  # how soon after a departure is the next: the shortest dwells, and all longer ones
RANKS = 10  # of a stay within its day
BINS = 10  # of a distance
SHARES = 12  # bins of the share of a day that is spent in a role
LIKE = STAYS * 3 + 2 * SHARES + 9
TAILS = 6  # slots of the stay that a trip is taken from, beyond which they are not told apart
MOST_PASSES = 24  # cells of a trip
TIMES = 8  # never, once, twice, up to 4, 8, 16, 32 times, more often
CROWDS = 5  # how many people make a move
_GOLDEN, _TWENTY = np.uint64(0x9E3779B97F4A7C15), np.uint64(20)
CONTEXTS = 12  # of a visit: role before (3), role after or none (4)
# columns of the factors of an own place: visits, those at this part of the day, moves from here, days since, if one
# comes from it, visits between such roles, visits as long, distance from here by haste, and to the next anchor
OFTEN, NOW, FROM_HERE, SINCE, BACK, BETWEEN, AS_LONG, FAR, ONWARD, OWN_PLACE = 0, 8, 16, 24, 27, 29, 37, 45, 85, 96
OWN_COLUMNS = 9
REACHES = HASTES + 4
EXPLORE = 5 + PARTS + HASTES  # weights of going somewhere new
# columns of the factors of a cell that a trip passes through; people who go from the last cell to the end count apart
AHEAD, ASIDE, STEP, ROUTE, OWN, OWN_IN, OWN_OUT, CROWD_IN, CROWD_OUT, PASSING = 0, 20, 30, 40, 65, 73, 81, 89, 94, 104
TRAVELLED = 5  # never, once, up to 3, 8 times, more often: levels of trips between two places, and of a cell on them


class Law(NamedTuple):
    """The tables of lives; factors are exp of weights. P places, K kinds of day."""

    part: NDArray[np.int64]  # (L,)
    clock: NDArray[np.int64]  # (L,) bin of the day
    dwell: NDArray[np.int64]  # bin of a dwell in slots
    longest_pass: int  # slots
    start: NDArray[np.float64]  # (K, 3) share of days before which somebody is in this role at midnight
    leave: NDArray[np.float64]  # (K, 3, clock bins, DWELLS) rate of leaving: -ln of the probability to stay
    rank: NDArray[np.float64]  # (K, 3, RANKS) factor on it
    follows: NDArray[np.float64]  # (K, 3, PARTS, 3) cumulative: the role after this one
    like: NDArray[np.float64]  # (K, LIKE) factors on a diary, see `diary_columns`
    hours: NDArray[np.float64]  # (HOURS,) factors on a diary, by how like the person's earlier days it is
    explore: NDArray[np.float64]  # (EXPLORE,) weights of going somewhere new
    back: NDArray[np.float64]  # (OWN_PLACE,) factors of an own place
    popular: NDArray[np.float64]  # (PARTS, P)
    sought: NDArray[np.int64]  # places that are popular at some part of the day, in order
    reach: NDArray[np.float64]  # (REACHES, BINS) of the distance from here, home, main, nearest own place, next anchor
    passes: NDArray[np.float64]  # (2, BINS, CROWDS, TAILS, most) cumulative: cells of a trip; out of a visit apart
    lengths: NDArray[np.float64]  # (longest_pass,) cumulative: slots of a pass
    fresh: float  # of n trips between two places n / (n + fresh) have as many cells as one of those before
    passed: NDArray[np.float64]  # (P,) people who pass
    passing: NDArray[np.float64]  # (PASSING,) factors
    detour: float  # how much longer than direct a way may be, in units of distance
    xy: NDArray[np.float64]  # (P, 2)
    limits: NDArray[np.float64]  # (BINS - 1,) squared distances at which bins begin
    moves: NDArray[np.int64]  # open table of moves a * P + b that `m_min` people make,
    crowd: NDArray[np.int64]  # and which of CROWDS these are
    corner: NDArray[np.float64]  # (3,) x and y of the corner of a grid over the map, and the side of its squares
    square: NDArray[np.int64]  # (columns x rows + 1,) where the places of each square begin in
    inside: NDArray[np.int64]  # places that people pass, square by square
    columns: int  # of the grid


class Memory(NamedTuple):
    """What one person has done so far."""

    visited: NDArray[np.int64]  # (P,) visits of other places than the anchors
    last: NDArray[np.int64]  # (P,) day of the last visit
    at_part: NDArray[np.int64]  # (P, 2 PARTS) visits by part of the day, weekdays and weekends apart
    between: NDArray[np.int64]  # (P, CONTEXTS) visits by the roles before and after
    as_long: NDArray[np.int64]  # (P, HASTES) visits by how soon the next departure was
    in_context: NDArray[np.int64]  # (CONTEXTS,) visits by the roles before and after
    own: NDArray[np.int64]  # (P,) the places visited, in the order of the first time
    passed: NDArray[np.int64]  # (P,) how often the person was there, as a pass or on a visit
    near: NDArray[np.int64]  # (P,) bin of the distance to the nearest own place or anchor
    homeward: NDArray[np.float64]  # (P,) factor of the distances from home and main place
    keys: NDArray[np.int64]  # open table of moves, trips and routes,
    counts: NDArray[np.int64]  # how often, or how many cells
    size: NDArray[np.int64]  # (4,) own places, visits, keys, and whether `near` and `homeward` are known


@njit
def distance_bin(xy, limits, a, b):
    """Return the bin of the distance between two places."""
    dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
    d, j = dx * dx + dy * dy, 0
    for k in range(BINS - 1):  # no branch to guess wrong
        j += d >= limits[k]
    return j


@njit
def times_level(count):
    """Return which of TIMES a count is."""
    level, power = 0, 1
    if count == 0:
        return 0
    while count > power and level < TIMES - 2:
        level += 1
        power *= 2
    return level + 1


@njit
def trips_level(count):
    """Return which of TRAVELLED a count is."""
    return count if count < 2 else 2 if count < 4 else 3 if count < 9 else 4


@njit
def table_row(keys, key):
    """Return the row of `key` in an open table, or the empty row where it belongs."""
    mask = len(keys) - 1
    at = np.int64((np.uint64(key) * _GOLDEN) >> _TWENTY) & mask
    while keys[at] != -1 and keys[at] != key:
        at = (at + 1) & mask
    return at


@njit
def table_size(keys):
    """Return the size of an open table for so many keys: a power of two, at most half full."""
    size = 16
    while size < 2 * keys:
        size <<= 1
    return size


@njit
def draw_diary(w, kind, role, dwell, pace, first, stream, roles, starts):
    """
    Draw one day of roles into `roles`, `starts`; return (stays, whether the first is new, last role, its dwell).

    Somebody has been in `role` for `dwell` slots at midnight; on the `first` day nobody moves at midnight.
    """
    leave, rank, clock, binned = w.leave[kind], w.rank[kind], w.clock, w.dwell
    longest = len(binned) - 1
    n, fresh = 1, False
    roles[0], starts[0] = role, 0
    patience = -math.log(1.0 - uniform(stream))
    for t in range(1 if first else 0, len(clock)):
        rate = pace * leave[role, clock[t], binned[min(dwell, longest)]]
        if t > 0:
            rate *= rank[role, min(n - 1, RANKS - 1)]
        patience -= rate
        dwell += 1
        if patience < 0.0:
            patience = -math.log(1.0 - uniform(stream))
            u, to = uniform(stream), 0
            while to < 2 and u >= w.follows[kind, role, w.part[t], to]:
                to += 1
            if role == OTHER and dwell <= w.longest_pass + 1 and n > 1 and (to == OTHER or to != roles[n - 2]):
                continue  # so short a stay would be part of a trip
            if t == 0:
                fresh = True
                roles[0] = to
            else:
                roles[n], starts[n] = to, t
                n += 1
            role, dwell = to, 1
    return n, fresh, role, dwell


@njit
def diary_columns(L, n, roles, starts, out):
    """
    Fill in the columns of `like`: number of stays and last role, how long at home, at the main place, first and
    last role.
    """
    home, main, last = 0, 0, roles[n - 1]
    for q in range(n):
        slots = (starts[q + 1] if q + 1 < n else L) - starts[q]
        home += slots if roles[q] == HOME else 0
        main += slots if roles[q] == MAIN else 0
    if n > 1 and roles[0] != HOME:
        n -= 1  # where a night out ended does not make a day busier
    out[0] = min(n, STAYS - 1) * 3 + last
    out[1] = STAYS * 3 + min(home * SHARES // L, SHARES - 1)
    out[2] = STAYS * 3 + SHARES + min(main * SHARES // L, SHARES - 1)
    out[3] = STAYS * 3 + 2 * SHARES + roles[0] * 3 + last


@njit
def diary_weight(w, kind, n, roles, starts, which):
    """Return how usual a diary is for its kind of day; `which` (4,) is scratch."""
    diary_columns(len(w.clock), n, roles, starts, which)
    product = 1.0
    for k in range(4):
        product *= w.like[kind, which[k]]
    return product


@njit
def new_memory(P, days, L):
    """Make an empty memory that has room for so many days."""
    table = max(table_size(days * min(L, 512)), 1 << 9)
    count, last, own = np.zeros(P, dtype=np.int64), np.full(P, -9), np.zeros(P, dtype=np.int64)
    passed, near, at_part = np.zeros(P, dtype=np.int64), np.zeros(P, dtype=np.int64), np.zeros((P, 2 * PARTS), np.int64)
    keys, counts, size = np.full(table, -1), np.zeros(table, dtype=np.int64), np.zeros(4, dtype=np.int64)
    context, as_long = np.zeros((P, CONTEXTS), dtype=np.int64), np.zeros((P, HASTES), dtype=np.int64)
    in_context = np.zeros(CONTEXTS, dtype=np.int64)
    return Memory(
        count, last, at_part, context, as_long, in_context, own, passed, near, np.empty(P), keys, counts, size
    )


@njit
def clear_memory(memory):
    """Make the memory that of somebody new."""
    for j in range(memory.size[0]):
        x = memory.own[j]
        memory.visited[x], memory.last[x] = 0, -9
        memory.at_part[x] = 0
        memory.between[x] = 0
        memory.as_long[x] = 0
    memory.in_context[:] = 0
    memory.passed[:] = 0
    memory.keys[:] = -1
    memory.counts[:] = 0
    memory.size[:] = 0


@njit
def measure_distances(w, memory, h, m):
    """Fill in, once, how far every place sought is from home `h`, the main place `m`, or -1, and the own places."""
    if memory.size[3] > 0:
        return
    memory.size[3] = 1
    from_home, from_main = w.reach[HASTES], w.reach[HASTES + 1]
    for p in w.sought:
        near = distance_bin(w.xy, w.limits, h, p)
        also = distance_bin(w.xy, w.limits, m, p) if m >= 0 else near
        memory.homeward[p] = from_home[near] * from_main[also]
        memory.near[p] = min(near, also)
    for j in range(memory.size[0]):
        update_nearest(w, memory, memory.own[j])


@njit
def update_nearest(w, memory, x):
    """Take the distances from an own place `x` into account."""
    for p in w.sought:
        if memory.near[p] > 0:
            memory.near[p] = min(memory.near[p], distance_bin(w.xy, w.limits, x, p))


@njit
def count_of(keys, counts, key):
    """Return how often the person did this."""
    return counts[table_row(keys, key)]


@njit
def count_up(keys, counts, size, key, add, value):
    """Count one more, or write the `value`; a memory that is half full learns nothing new."""
    at = table_row(keys, key)
    if keys[at] == -1:
        if size[2] >= len(keys) // 2:
            return
        keys[at] = key
        size[2] += 1
    counts[at] = counts[at] + 1 if add else value


@njit
def pair_key(P, a, b):
    """Return a number of the pair, whichever way."""
    return min(a, b) * P + max(a, b)


@njit
def remember_visit(w, memory, here, x, part, off, haste, context, day):
    """Remember a visit at an other place."""
    P = len(memory.visited)
    if memory.visited[x] == 0:
        memory.own[memory.size[0]] = x
        memory.size[0] += 1
        if memory.size[3] > 0:
            update_nearest(w, memory, x)
    memory.visited[x] += 1
    memory.size[1] += 1
    memory.at_part[x, part * 2 + off] += 1
    memory.between[x, context] += 1
    memory.as_long[x, haste] += 1
    memory.in_context[context] += 1
    memory.last[x] = day
    count_up(memory.keys, memory.counts, memory.size, here * P + x, True, 0)


@njit
def cells_key(P, pair, cells):
    """Return the key of trips between a pair of places through so many cells."""
    return (4 + P) * P * P + pair * (MOST_PASSES + 1) + min(cells, MOST_PASSES)


@njit
def remember_way(memory, a, b, way, cells):
    """Remember a trip from a to b through `cells` cells."""
    P = len(memory.visited)
    pair, step = pair_key(P, a, b), a
    keys, counts, size = memory.keys, memory.counts, memory.size
    count_up(keys, counts, size, cells_key(P, pair, cells), True, 0)
    count_up(keys, counts, size, 3 * P * P + pair, True, 0)
    for c in range(cells):
        x = way[c]
        memory.passed[x] += 1
        count_up(keys, counts, size, 4 * P * P + pair * P + x, True, 0)
        count_up(keys, counts, size, 2 * P * P + pair_key(P, step, x), True, 0)
        step = x
    count_up(keys, counts, size, 2 * P * P + pair_key(P, step, b), True, 0)
    memory.passed[b] += 1


@njit
def explore_logit(e, owned, visits, alike, part, off, haste):
    """Return the ln odds of going somewhere new, of `visits` so far so many in `alike` context."""
    logit = e[0] + e[1] * math.log1p(owned) + e[2] * math.log1p(visits) + e[3] * math.log1p(alike) + e[4] * off
    return logit + e[5 + part] + e[5 + PARTS + haste]


@njit
def own_place_columns(w, memory, here, before, onward, x, part, off, haste, context, day, cols):
    """Fill in the columns (OWN_COLUMNS,) of an own place x."""
    cols[0] = OFTEN + times_level(memory.visited[x])
    cols[1] = NOW + times_level(memory.at_part[x, part * 2 + off])
    cols[2] = FROM_HERE + times_level(count_of(memory.keys, memory.counts, here * len(memory.visited) + x))
    cols[3] = SINCE + min(day - memory.last[x], 2)
    cols[4] = BACK + (1 if x == before else 0)
    cols[5] = BETWEEN + times_level(memory.between[x, context])
    cols[6] = AS_LONG + times_level(memory.as_long[x, haste])
    cols[7] = FAR + BINS * haste + distance_bin(w.xy, w.limits, here, x)
    cols[8] = ONWARD + (distance_bin(w.xy, w.limits, onward, x) if onward >= 0 else BINS)


@njit
def role_of(place, h, m):
    """Return the role of a place for somebody with this home and main place."""
    return HOME if place == h else MAIN if place == m else OTHER


@njit
def on_the_way(xy, a, b, x, longest):
    """Tell whether a trip from a to b through x is at most so long."""
    ax, ay = xy[x, 0] - xy[a, 0], xy[x, 1] - xy[a, 1]
    first = ax * ax + ay * ay
    if first > longest * longest:
        return False
    bx, by = xy[x, 0] - xy[b, 0], xy[x, 1] - xy[b, 1]
    rest = longest - math.sqrt(first)
    return bx * bx + by * by <= rest * rest


@njit
def places_on_the_way(w, a, b, longest, among):
    """Write the places that people pass and a trip so long may lead through to `among`, in order; return how many."""
    side, columns, n = w.corner[2], w.columns, 0
    rows = (len(w.square) - 1) // columns
    x, y = (w.xy[a, 0] + w.xy[b, 0]) / 2 - w.corner[0], (w.xy[a, 1] + w.xy[b, 1]) / 2 - w.corner[1]
    # all of them lie within half of the longest way of the middle
    left, right = max(int((x - longest / 2) / side), 0), min(int((x + longest / 2) / side), columns - 1)
    low, high = max(int((y - longest / 2) / side), 0), min(int((y + longest / 2) / side), rows - 1)
    for i in range(low, high + 1):
        for j in range(w.square[i * columns + left], w.square[i * columns + right + 1] if right >= left else 0):
            place = w.inside[j]
            if on_the_way(w.xy, a, b, place, longest):
                among[n] = place
                n += 1
    sort(among[:n])
    return n


@njit
def longest_way(w, a, b):
    """Return the longest way that a trip from a to b may take."""
    return trip_length(w.xy, a, b) + w.detour * math.sqrt(w.limits[1]) + 1e-9


@njit
def trip_length(xy, a, b):
    """Return the length of the direct way."""
    dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
    return math.sqrt(dx * dx + dy * dy)


@njit
def pass_columns(xy, limits, passed, keys, counts, a, b, trips, step, share, x, cols):
    """
    Fill in the columns of a cell x, `share` of the way from a to b of so many `trips`, after `step`: all but the
    crowd's.
    """
    P = len(passed)
    dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
    square = dx * dx + dy * dy
    cols[0], cols[1] = AHEAD + 19, ASIDE + 9
    if square > 1e-18:
        px, py = xy[x, 0] - xy[a, 0], xy[x, 1] - xy[a, 1]
        ahead = (px * dx + py * dy) / square - share
        aside = abs(px * dy - py * dx) / square
        cols[0] = AHEAD + min(max(math.floor((ahead + 1.0) * 9.5), 0), 18)
        cols[1] = ASIDE + min(int(aside * 10.0), 8)
    cols[2] = STEP + distance_bin(xy, limits, step, x)
    cols[3], cols[4], cols[5], cols[6] = ROUTE + TRAVELLED * trips_level(trips), OWN, OWN_IN, OWN_OUT
    if passed[x] > 0:
        cols[3] += trips_level(count_of(keys, counts, 4 * P * P + pair_key(P, a, b) * P + x))
        cols[4] = OWN + times_level(passed[x])
        cols[5] = OWN_IN + times_level(count_of(keys, counts, 2 * P * P + pair_key(P, step, x)))
        cols[6] = OWN_OUT + times_level(count_of(keys, counts, 2 * P * P + pair_key(P, x, b)))


@njit
def draw_place(w, memory, h, m, now, before, after, haste, part, off, day, weight, stream):
    """Draw which other place, `after` which a role follows: an own one, or somewhere new; home where there is none."""
    cols = np.empty(OWN_COLUMNS, dtype=np.int64)
    owned, visits = memory.size[0], memory.size[1]
    context, onward = role_of(now, h, m) * 4 + after, next_anchor(after, h, m)
    logit = explore_logit(w.explore, owned, visits, memory.in_context[context], part, off, haste)
    if owned > 0 and uniform(stream) * (1.0 + math.exp(logit)) < 1.0:
        for j in range(owned):
            weight[j] = 0.0
            if memory.own[j] != now:
                own_place_columns(w, memory, now, before, onward, memory.own[j], part, off, haste, context, day, cols)
                weight[j] = 1.0
                for k in range(OWN_COLUMNS):
                    weight[j] *= w.back[cols[k]]
        j = draw_index(weight, owned, uniform(stream))
        if j >= 0:
            return memory.own[j]
    measure_distances(w, memory, h, m)
    xy, limits, from_here, from_own, popular = w.xy, w.limits, w.reach[haste], w.reach[HASTES + 2], w.popular[part]
    to_next = w.reach[HASTES + 3]
    for j in range(len(w.sought)):
        x, weight[j] = w.sought[j], 0.0
        if popular[x] > 0.0 and memory.visited[x] == 0 and x != now and x != h and x != m:
            weight[j] = (
                popular[x] * memory.homeward[x] * from_own[memory.near[x]] * from_here[distance_bin(xy, limits, now, x)]
            )
            if onward >= 0:
                weight[j] *= to_next[distance_bin(xy, limits, onward, x)]
    j = draw_index(weight, len(w.sought), uniform(stream))
    return w.sought[j] if j >= 0 else h


@njit
def next_anchor(after, h, m):
    """Return where somebody goes next if it is home or the main place, else -1; `after` is the role, 3 if none."""
    return h if after == HOME else m if after == MAIN else -1


@njit
def draw_way(w, memory, h, m, a, b, slots, visit, among, weight, way, lengths, stream):
    """
    Draw the cells of a trip from a to b into `way`, `lengths`; return how many.

    Their time is taken from the `slots` of a stay, of which enough is left that, if it is a `visit`, it is no pass.
    """
    P = len(memory.visited)
    pair, most = pair_key(P, a, b), w.passes.shape[4] - 1
    trips, cells = count_of(memory.keys, memory.counts, 3 * P * P + pair), 0
    point = uniform(stream) * (trips + w.fresh) if trips > 0 else 0.0
    if point < trips:
        point -= count_of(memory.keys, memory.counts, cells_key(P, pair, 0))
        while cells < most and point >= 0.0:
            cells += 1
            point -= count_of(memory.keys, memory.counts, cells_key(P, pair, cells))
    else:
        u = uniform(stream)
        straight = w.crowd[table_row(w.moves, a * P + b)]
        ladder = w.passes[1 if visit else 0, distance_bin(w.xy, w.limits, a, b), straight, min(slots, TAILS) - 1]
        while cells < most and u >= ladder[cells]:
            cells += 1
    # a trip leaves time for the stay, and enough that it is no pass itself
    room = slots - (w.longest_pass + 1 if visit else 1)
    cells = max(min(cells, room), 0)
    if cells == 0:
        return 0
    longest, n, cols = longest_way(w, a, b), 0, np.empty(7, dtype=np.int64)
    n = places_on_the_way(w, a, b, longest, among)
    kept = 0
    for j in range(n):
        if among[j] not in (a, b, h, m):
            among[kept] = among[j]
            kept += 1
    n = kept
    step, passing, xy, limits, keys, counts = a, w.passing, w.xy, w.limits, memory.keys, memory.counts
    for c in range(cells):
        slot, u = 1, uniform(stream)
        while slot < w.longest_pass and u >= w.lengths[slot - 1]:
            slot += 1
        lengths[c] = min(slot, room - (cells - c - 1))
        room -= lengths[c]
        crowd_out = CROWD_OUT + (CROWDS if c == cells - 1 else 0)
        for j in range(n):
            x = among[j]
            weight[j] = 0.0
            if x != step:
                pass_columns(xy, limits, memory.passed, keys, counts, a, b, trips, step, (c + 1) / (cells + 1), x, cols)
                v = w.passed[x] * passing[CROWD_IN + w.crowd[table_row(w.moves, step * P + x)]]
                v *= passing[crowd_out + w.crowd[table_row(w.moves, x * P + b)]]
                for k in range(7):
                    v *= passing[cols[k]]
                weight[j] = v
        j = draw_index(weight, n, uniform(stream))
        if j < 0:
            return c
        step = among[j]
        way[c] = step
    return cells


@njit
def midnight_factors(w, mix, weekend, out):
    """
    Fill in (2, 3) how much more usual a role is at midnight before a weekday, or a weekend, than before all
    these days.
    """
    share = np.zeros((2, 3))
    for off in range(2):
        for k in range(mix.shape[1]):
            for role in range(3):
                share[off, role] += mix[off, k] * w.start[k, role]
        share[off] /= max(share[off, 0] + share[off, 1] + share[off, 2], 1e-300)
    days_off = 0
    for off in weekend:
        days_off += off
    off_days = days_off / max(len(weekend), 1)
    for role in range(3):
        usual = (1.0 - off_days) * share[0, role] + off_days * share[1, role]
        for off in range(2):
            out[off, role] = share[off, role] / max(usual, 1e-9)


@njit
def draw_main_places(w, weight, reach, types, home, u, out):
    """Draw the main place of each person of a type, by `weight` (types, P) and its distance from home; -1 without."""
    law = np.empty(weight.shape[1])
    for i in range(len(home)):
        for x in range(len(law)):
            law[x] = 0.0
            if x != home[i] and weight[types[i], x] > 0.0:
                law[x] = weight[types[i], x] * reach[types[i], distance_bin(w.xy, w.limits, home[i], x)]
        out[i] = draw_index(law, len(law), u[i])


@njit
def draw_lives(w, mix, home, main, pace, weekend, tries, key, number, out):
    """
    Draw lives `out` (n, D, L) of people with these anchors, paces and mixes (n, 2, K) of kinds of day.

    `weekend` (D,) is the calendar, days on end; life i reads stream `number + i` of `key`. Of `tries` diaries of a kind
    one is taken, by how usual it is for that kind, how like the earlier days, and its last role for the next day.
    """
    n, D, L = out.shape
    P, K = len(w.passed), w.start.shape[0]
    roles, starts = np.empty((tries, L + 1), dtype=np.int64), np.empty((tries, L + 1), dtype=np.int64)
    told, which, ahead = np.empty((tries, 4), dtype=np.int64), np.empty(4, dtype=np.int64), np.empty((2, 3))
    weight, shares = np.empty(max(P, tries)), np.empty(K)
    among, way, lengths = np.empty(P, np.int64), np.empty(L + 1, np.int64), np.empty(L + 1, np.int64)
    memory, hours, cols = new_memory(P, D, L), new_hours(L), np.empty(COLUMNS, dtype=np.int64)
    for i in range(n):
        stream = open_stream(key, number + i, 0)
        h, m = home[i], main[i]
        clear_memory(memory)
        clear_hours(hours)
        midnight_factors(w, mix[i], weekend, ahead)
        now, before, role, dwell = h, -1, HOME, 4 * L
        for d in range(D):
            off = 1 if weekend[d] else 0
            for k in range(K):
                shares[k] = mix[i, off, k] * w.start[k, role]
            tomorrow = 1 if weekend[min(d + 1, D - 1)] else 0
            kind = max(draw_index(shares, K, uniform(stream)), 0)
            for a in range(tries):
                many, new, end_role, end_dwell = draw_diary(
                    w, kind, role, dwell, pace[i], d == 0, stream, roles[a], starts[a]
                )
                told[a, 0], told[a, 1], told[a, 2], told[a, 3] = many, 1 if new else 0, end_role, end_dwell
                weight[a] = ahead[tomorrow, end_role] * diary_weight(w, kind, many, roles[a], starts[a], which)
                if hours.days[off] > 0:
                    hours_columns(hours, w.part, w.longest_pass, off, L, many, roles[a], starts[a], cols)
                    for k in range(COLUMNS):
                        weight[a] *= w.hours[cols[k]]
            a = max(draw_index(weight, tries, uniform(stream)), 0)
            stays, fresh, role, dwell = told[a]
            remember_hours(hours, off, L, stays, roles[a], starts[a])
            since = 0  # when somebody came to where they are
            for q in range(stays):
                begin, end = starts[a, q], starts[a, q + 1] if q + 1 < stays else L
                if q == 0 and fresh == 0:
                    out[i, d, :end] = now
                    continue
                part, after = w.part[begin], roles[a, q + 1] if q + 1 < stays else 3
                haste = min(w.dwell[end - begin], HASTES - 1)
                if roles[a, q] == HOME:
                    to = h
                elif roles[a, q] == MAIN and m >= 0:
                    to = m
                else:
                    to = draw_place(w, memory, h, m, now, before, after, haste, part, off, d, weight, stream)
                cells, awaited = 0, False
                if w.longest_pass > 0 and now != to:
                    # the trip takes slots of the stay before it, or, on the way home, of the one it leads to
                    awaited = roles[a, q] != HOME and begin > 0
                    slots, place, open_end = begin - since, now, since == 0
                    if not awaited:
                        slots, place, open_end = end - begin, to, end == L
                    visits = role_of(place, h, m) == OTHER and not open_end
                    cells = draw_way(w, memory, h, m, now, to, slots, visits, among, weight, way, lengths, stream)
                if to != h and to != m:
                    remember_visit(w, memory, now, to, part, off, haste, role_of(now, h, m) * 4 + after, d)
                if now != to:
                    remember_way(memory, now, to, way, cells)
                t = begin
                if awaited:
                    for c in range(cells):
                        t -= lengths[c]
                for c in range(cells):
                    out[i, d, t : t + lengths[c]] = way[c]
                    t += lengths[c]
                out[i, d, t:end] = to
                since, before, now = t, now, to
