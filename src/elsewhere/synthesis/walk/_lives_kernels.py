"""Compiled loops of lives over days: cutting days into stays, softmax choices, diaries of roles, and the draw."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere._jit import njit
from elsewhere.synthesis.streams._kernels import open_stream, uniform

HOME, MAIN, OTHER = 0, 1, 2
PARTS = 6  # of the day
DWELLS = 6
RANKS = 10  # of a stay within its day
STAYS = 16  # in a day, beyond which they are not told apart
BINS = 10  # of a distance
PASSES = 5  # of a trip: 0 .. 4
SHARES = 12  # bins of the share of a day that is spent in a role
LIKE = STAYS * 3 + 2 * SHARES
TAILS = 6  # slots from the start of a trip to the next departure, beyond which they are not told apart
TIMES = 6  # seen never, once, twice, up to 4, up to 8 times, more often
CROWDS = 5  # how many people make a move
_GOLDEN, _TWENTY = np.uint64(0x9E3779B97F4A7C15), np.uint64(20)
# columns of the weights of the next place among own ones, before those of its distance
OFTEN, NOW, TODAY, YESTERDAY, FROM_HERE, BACK = range(6)
RETURN = 6
# columns of the weights of a cell that a trip passes through
AHEAD, ASIDE, ROUTE, OWN, STEP, CROWD_IN, CROWD_OUT, PASSING = 0, 20, 30, 36, 42, 52, 57, 62


class Law(NamedTuple):
    """The tables of lives; factors are exp of weights. P places, K kinds of day."""

    part: NDArray[np.int64]  # (L,)
    clock: NDArray[np.int64]  # (L,) bin of the day
    dwell: NDArray[np.int64]  # bin of a dwell in slots
    longest_pass: int  # slots
    start: NDArray[np.float64]  # (K, 3) role at the start of a day, of so many days
    leave: NDArray[np.float64]  # (K, 3, clock bins, DWELLS) probability of leaving
    rank: NDArray[np.float64]  # (K, 3, RANKS) factor on it
    follows: NDArray[np.float64]  # (K, 3, PARTS, 3) cumulative: the role after this one
    like: NDArray[np.float64]  # (K, LIKE) factors on a diary, see `diary_columns`
    explore: NDArray[np.float64]  # (4 + PARTS,) weights of going somewhere new
    back: NDArray[np.float64]  # (RETURN + BINS,) weights of an own place
    popular: NDArray[np.float64]  # (PARTS, P)
    reach: NDArray[np.float64]  # (4, BINS) factors of the distance from here, home, main place, nearest own place
    passes: NDArray[np.float64]  # (2, BINS, TAILS, PASSES) cumulative: cells of a trip to an anchor, elsewhere
    lengths: NDArray[np.float64]  # (longest_pass,) cumulative: slots of a pass
    same: float  # how often a trip has as many cells as the last between these places
    passed: NDArray[np.float64]  # (P,) people who pass
    passing: NDArray[np.float64]  # (PASSING,) factors
    xy: NDArray[np.float64]  # (P, 2)
    bins: NDArray[np.int8]  # (P, P) of distances
    crowd: NDArray[np.int8]  # (P, P) how many people make this move


@njit
def find_stays(r, home, main, longest_pass, row, place, start, arrived):
    """
    Cut days `r` (N, L) into stays; return how many.

    A run of at most `longest_pass` slots between two others is part of the trip to the stay after it, unless it is at
    an anchor or the person comes back to where the trip began: these were visits. A stay starts with its trip.
    """
    n = 0
    N, L = r.shape
    begin = np.empty(L + 1, dtype=np.int64)
    for i in range(N):
        runs = 0
        for t in range(L):
            if t == 0 or r[i, t] != r[i, t - 1]:
                begin[runs] = t
                runs += 1
        begin[runs] = L
        k = 0
        first = n
        while k < runs:
            j = k
            if k > 0:
                while (
                    j < runs - 1
                    and begin[j + 1] - begin[j] <= longest_pass
                    and r[i, begin[j]] != home[i]
                    and r[i, begin[j]] != main[i]
                ):
                    j += 1
            visits = j > k and n > first and r[i, begin[j]] == place[n - 1]
            if visits:
                j = k
            row[n], place[n], start[n], arrived[n] = i, r[i, begin[j]], begin[k], begin[j]
            n += 1
            k = j + 1
    return n


@njit
def choice_loss(theta, ridge, base, cols, chosen, slope):
    """Minus ln likelihood of choices by softmax(base + sum of theta[cols]), base (M, P) -inf where barred."""
    M, P, K = cols.shape
    slope[:] = ridge * theta
    loss = 0.0
    for j in range(len(theta)):
        loss += ridge / 2 * theta[j] ** 2
    s = np.empty(P)
    for i in range(M):
        top = -np.inf
        for p in range(P):
            v = base[i, p]
            if v > -np.inf:
                for k in range(K):
                    v += theta[cols[i, p, k]]
            s[p] = v
            top = max(top, v)
        total = 0.0
        mine = s[chosen[i]] - top
        for p in range(P):
            s[p] = math.exp(s[p] - top) if s[p] > -np.inf else 0.0
            total += s[p]
        loss += math.log(total) - mine
        for p in range(P):
            g = s[p] / total - (1.0 if p == chosen[i] else 0.0)
            if abs(g) > 1e-9:
                for k in range(K):
                    slope[cols[i, p, k]] += g
    return loss


@njit
def pass_columns(xy, bins, a, b, before, share, p):
    """Columns of a cell p on the way from a to b, `share` of the way: lengthwise, aside, and the step to it."""
    dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
    far = math.sqrt(dx * dx + dy * dy)
    if far < 1e-9:
        return AHEAD + 19, ASIDE + 9, STEP + bins[before, p]
    px, py = xy[p, 0] - xy[a, 0], xy[p, 1] - xy[a, 1]
    ahead = (px * dx + py * dy) / (far * far) - share
    aside = abs(px * dy - py * dx) / (far * far)
    lengthwise = min(max(math.floor((ahead + 1.0) * 9.5), 0), 18)
    return AHEAD + lengthwise, ASIDE + min(int(aside * 10.0), 8), STEP + bins[before, p]


@njit
def seen(count):
    """Which of TIMES a count is."""
    if count < 3:
        return count
    return 3 if count < 5 else 4 if count < 9 else TIMES - 1


@njit
def find(keys, key):
    """The row of `key` in an open table, or the empty row where it belongs."""
    size = len(keys)
    at = np.int64((np.uint64(key) * _GOLDEN) >> _TWENTY) % size
    while keys[at] != -1 and keys[at] != key:
        at = (at + 1) % size
    return at


@njit
def pick(weight, n, u):
    """A number 0 .. n - 1 by weights, -1 where all are 0."""
    total = 0.0
    for i in range(n):
        total += weight[i]
    if total <= 0.0:
        return -1
    point, found = u * total, -1
    for i in range(n):
        if weight[i] > 0.0:
            found = i
            point -= weight[i]
            if point < 0.0:
                break
    return found


@njit
def diary(w, kind, role, dwell, pace, first, stream, roles, starts):
    """
    Draw one day of roles into `roles`, `starts`; return (stays, whether the first is new, last role, its dwell).

    Somebody has been in `role` for `dwell` slots at midnight; on the `first` day nobody moves at midnight.
    """
    L = len(w.clock)
    n, fresh = 1, False
    roles[0], starts[0] = role, 0
    for t in range(1 if first else 0, L):
        p = pace * w.leave[kind, role, w.clock[t], w.dwell[min(dwell, len(w.dwell) - 1)]]
        if t > 0:
            p *= w.rank[kind, role, min(n - 1, RANKS - 1)]
        if uniform(stream) < p:
            u, to = uniform(stream), 0
            while to < 2 and u >= w.follows[kind, role, w.part[t], to]:
                to += 1
            if role == OTHER and dwell <= w.longest_pass and n > 1 and (to == OTHER or to != roles[n - 2]):
                dwell += 1  # so short a stay would be part of a trip
                continue
            if t == 0:
                fresh = True
                roles[0] = to
            else:
                roles[n], starts[n] = to, t
                n += 1
            role, dwell = to, 1
        else:
            dwell += 1
    return n, fresh, role, dwell


@njit
def diary_columns(L, n, roles, starts, out):
    """How many stays with which role at the end, how long at home, how long at the main place: columns of `like`."""
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


@njit
def live(w, mix, home, main, pace, weekend, tries, key, number, out):
    """
    Draw lives `out` (n, D, L) of people with these anchors, paces and mixes (n, 2, K) of kinds of day.

    `weekend` (D,) is the calendar, days on end; life i reads stream `number + i` of `key`.
    """
    n, D, L = out.shape
    P, K = len(w.passed), w.start.shape[0]
    roles, starts = np.empty((tries, L + 1), dtype=np.int64), np.empty((tries, L + 1), dtype=np.int64)
    told, which = np.empty((tries, 4), dtype=np.int64), np.empty(3, dtype=np.int64)
    weight, own = np.empty(max(P, K, tries)), np.empty(P, dtype=np.int64)
    count, last, passed = np.empty(P, dtype=np.int64), np.empty(P, dtype=np.int64), np.empty(P, dtype=np.int64)
    at_part = np.empty((P, PARTS * 2), dtype=np.int64)
    near = np.empty(P, dtype=np.int64)
    table = 1 << 12
    while table < 8 * D * 16:
        table <<= 1
    keys, counts = np.empty(table, dtype=np.int64), np.empty(table, dtype=np.int64)
    for i in range(n):
        stream = open_stream(key, number + i, 0)
        h, m = home[i], main[i]
        for p in range(P):
            count[p], last[p], passed[p] = 0, -9, 0
            near[p] = min(w.bins[h, p], w.bins[m, p] if m >= 0 else BINS - 1)
        at_part[:] = 0
        keys[:] = -1
        counts[:] = 0
        owned, visits, filled = 0, 0, 0
        now, before, role, dwell = h, -1, HOME, 10**6
        for d in range(D):
            off = 1 if weekend[d] else 0
            for k in range(K):
                weight[k] = mix[i, off, k] * w.start[k, role] / (w.start[k, 0] + w.start[k, 1] + w.start[k, 2])
            kind = max(pick(weight, K, uniform(stream)), 0)
            for a in range(tries):
                many, new, end_role, end_dwell = diary(
                    w, kind, role, dwell, pace[i], d == 0, stream, roles[a], starts[a]
                )
                told[a, 0], told[a, 1], told[a, 2], told[a, 3] = many, 1 if new else 0, end_role, end_dwell
                diary_columns(L, many, roles[a], starts[a], which)
                weight[a] = w.like[kind, which[0]] * w.like[kind, which[1]] * w.like[kind, which[2]]
            a = max(pick(weight, tries, uniform(stream)), 0)
            stays, fresh, role, dwell = told[a]
            for q in range(stays):
                begin, end = starts[a, q], starts[a, q + 1] if q + 1 < stays else L
                if q == 0 and fresh == 0:
                    for t in range(end):
                        out[i, d, t] = now
                    continue
                # where to
                part = w.part[begin]
                if roles[a, q] == HOME:
                    to = h
                elif roles[a, q] == MAIN and m >= 0:
                    to = m
                else:
                    logit = w.explore[0] + w.explore[1] * math.log1p(owned) + w.explore[2] * math.log1p(visits)
                    logit += w.explore[3] * off + w.explore[4 + part]
                    to = -1
                    if owned > 0 and uniform(stream) * (1.0 + math.exp(logit)) < 1.0:
                        for j in range(owned):
                            x = own[j]
                            if x == now:
                                weight[j] = 0.0
                                continue
                            v = w.back[OFTEN] * math.log(count[x])
                            v += w.back[NOW] * math.log1p(at_part[x, part * 2 + off])
                            v += w.back[TODAY] * (last[x] == d) + w.back[YESTERDAY] * (last[x] == d - 1)
                            v += w.back[FROM_HERE] * math.log1p(counts[find(keys, now * P + x)])
                            v += w.back[BACK] * (x == before) + w.back[RETURN + w.bins[now, x]]
                            weight[j] = math.exp(v)
                        j = pick(weight, owned, uniform(stream))
                        if j >= 0:
                            to = own[j]
                    if to < 0:
                        for x in range(P):
                            v = w.popular[part, x]
                            if count[x] > 0 or x in (now, h, m):
                                v = 0.0
                            if v > 0.0:
                                v *= w.reach[0, w.bins[now, x]] * w.reach[1, w.bins[h, x]] * w.reach[3, near[x]]
                                if m >= 0:
                                    v *= w.reach[2, w.bins[m, x]]
                            weight[x] = v
                        to = pick(weight, P, uniform(stream))
                        if to < 0:
                            to = h
                        else:
                            own[owned] = to
                            owned += 1
                            for x in range(P):
                                near[x] = min(near[x], w.bins[to, x])
                    if to != h:
                        count[to] += 1
                        visits += 1
                        at_part[to, part * 2 + off] += 1
                        last[to] = d
                        if filled < table // 2:
                            j = find(keys, now * P + to)
                            filled += keys[j] == -1
                            keys[j] = now * P + to
                            counts[j] += 1
                # the trip
                anchor = to in (h, m)
                j = find(keys, (P + min(now, to)) * P + max(now, to))
                travelled = keys[j] != -1
                if travelled and uniform(stream) < w.same:
                    cells = counts[j]
                else:
                    u, cells = uniform(stream), 0
                    ladder = w.passes[0 if anchor else 1, w.bins[now, to], min(end - begin, TAILS) - 1]
                    while cells < PASSES - 1 and u >= ladder[cells]:
                        cells += 1
                if w.longest_pass == 0 or now == to:
                    cells = 0
                if filled < table // 2 and now != to:
                    filled += keys[j] == -1
                    keys[j] = (P + min(now, to)) * P + max(now, to)
                    counts[j] = cells
                # an arrival leaves time for the stay, and enough that it is no pass itself
                room = end - begin - (1 if anchor or end == L else w.longest_pass + 1)
                t, step = begin, now
                for c in range(cells):
                    length, u = 1, uniform(stream)
                    while length < w.longest_pass and u >= w.lengths[length - 1]:
                        length += 1
                    if t + length - begin > room:
                        break
                    for x in range(P):
                        v = w.passed[x]
                        if x in (now, to, step):
                            v = 0.0
                        if v > 0.0:
                            ahead, aside, stepping = pass_columns(w.xy, w.bins, now, to, step, (c + 1) / (cells + 1), x)
                            v *= w.passing[ahead] * w.passing[aside] * w.passing[stepping]
                            v *= w.passing[OWN + seen(passed[x])]
                            v *= w.passing[CROWD_IN + w.crowd[step, x]] * w.passing[CROWD_OUT + w.crowd[x, to]]
                            if travelled and passed[x] > 0:
                                route = ((2 + min(now, to)) * P + max(now, to)) * P * P + x
                                v *= w.passing[ROUTE + seen(counts[find(keys, route)])]
                            else:
                                v *= w.passing[ROUTE]
                        weight[x] = v
                    x = pick(weight, P, uniform(stream))
                    if x < 0:
                        break
                    for s in range(t, t + length):
                        out[i, d, s] = x
                    t += length
                    step = x
                    passed[x] += 1
                    if filled < table // 2:
                        j = find(keys, ((2 + min(now, to)) * P + max(now, to)) * P * P + x)
                        filled += keys[j] == -1
                        keys[j] = ((2 + min(now, to)) * P + max(now, to)) * P * P + x
                        counts[j] += 1
                if not anchor:
                    passed[to] += 1
                for s in range(t, end):
                    out[i, d, s] = to
                before, now = now, to
