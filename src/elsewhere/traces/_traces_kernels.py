"""
Kernels of `places` and of `town`.

The stays of a track, and the anchors they are gathered to; people of a simulated town who live their diaries by the
clock, with their place written down once per slot.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from elsewhere._jit import njit

DAY = 1440.0
DRAWS_PER_ACTIVITY = 4  # whether, which place, when, how long
DOOR = 4.0  # minutes lost at the two ends of a trip
PAUSE = 45.0  # nobody goes home between two activities for less
LATE = 90.0  # nobody sets out for what began so long ago
BRIEFEST = 10.0  # the shortest stay


@njit
def find_stays(out: Any, user: Any, second: Any, x: Any, reach: float, least: float) -> int:
    """
    Return the number of the stay of each fix, -1 on the way; the number of stays.

    From the first fix not yet told, all that follow within `reach` of it are one stay if they last `least` seconds;
    else that fix is on the way. `x` (n, 3) in km, fixes by user and time.
    """
    n, stays, i = len(user), 0, 0
    while i < n:
        j = i + 1
        while j < n and user[j] == user[i]:
            dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            if dx * dx + dy * dy + dz * dz > reach * reach:
                break
            j += 1
        if second[j - 1] - second[i] >= least:
            out[i:j] = stays
            stays += 1
            i = j
        else:
            out[i] = -1
            i += 1
    return stays


@njit
def gather_stays(out: Any, order: Any, owner: Any, mean: Any, reach: float) -> int:
    """
    Return the number of the anchor of each stay, anchors numbered as they come; the number of anchors.

    Stays come in `order`, those of one `owner` together: each joins the nearest anchor of its owner if that one's first
    stay is within `reach` of it, else it is a new anchor. `mean` (n, 3) in km.
    """
    first = np.empty(len(order), dtype=np.int64)  # the stay that made each anchor
    anchors, begin = 0, 0
    for i in range(len(order)):
        s = order[i]
        if i > 0 and owner[order[i - 1]] != owner[s]:
            begin = anchors
        best, least = -1, reach * reach
        for a in range(begin, anchors):
            b = first[a]
            dx, dy, dz = mean[s, 0] - mean[b, 0], mean[s, 1] - mean[b, 1], mean[s, 2] - mean[b, 2]
            far = dx * dx + dy * dy + dz * dz
            if far < least or (far == least and best < 0):
                best, least = a, far
        if best < 0:
            best, first[anchors] = anchors, s
            anchors += 1
        out[s] = best
    return anchors


@njit
def nearest_anchor(out: Any, user: Any, x: Any, anchors: Any, begin: Any, reach: float) -> None:
    """Write the nearest of its user's anchors `begin[u] : begin[u + 1]` for each fix; -1 where none is in reach."""
    for i in range(len(user)):
        best, least = -1, reach * reach
        for a in range(begin[user[i]], begin[user[i] + 1]):
            dx, dy, dz = x[i, 0] - anchors[a, 0], x[i, 1] - anchors[a, 1], x[i, 2] - anchors[a, 2]
            far = dx * dx + dy * dy + dz * dz
            if far < least or (far == least and best < 0):
                best, least = a, far
        out[i] = best


class Streets(NamedTuple):
    """Where places are (R, 2), in km from the centre, and the road nearest to each cell (G, G) of the map."""

    xy: Any
    road: Any
    cell: float


class Diaries(NamedTuple):
    """
    Kinds of day: `cdf[habit, part of week, kind]`; kind b owns activities `first[b] : first[b + 1]`.

    An activity leads to one of the person's places `keep .. keep + choice - 1`; `hour`, `spread` and `hours` are in
    minutes here.
    """

    cdf: Any
    first: Any
    keep: Any
    choice: Any
    chance: Any
    hour: Any
    spread: Any
    hours: Any


class People(NamedTuple):
    """Habit, places kept (n, F), home first; how late, how outgoing; minutes per km."""

    habit: Any
    keep: Any
    late: Any
    outgoing: Any
    pace: Any


@njit
def bell(u: float) -> float:
    """Return a logistic variable of mean 0 and standard deviation about 1 from a uniform one, cut at 2.5."""
    v = min(max(u, 1e-3), 1 - 1e-3)
    return min(max(math.log(v / (1 - v)) * 0.5513, -2.5), 2.5)


@njit
def trip_minutes(xy: Any, a: int, b: int, pace: float) -> float:
    """Return the minutes of a trip from door to door; 0 from a place to itself."""
    if a == b:
        return 0.0
    return DOOR + pace * math.hypot(xy[a, 0] - xy[b, 0], xy[a, 1] - xy[b, 1])


@njit
def on_the_way(streets: Any, a: int, b: int, f: float) -> int:
    """Return the road nearest to the point at fraction `f` of the way, or an end if no road is as near as the ends."""
    xy, G = streets.xy, len(streets.road)
    dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
    x, y = xy[a, 0] + f * dx, xy[a, 1] + f * dy
    i = min(max(math.floor(x / streets.cell + 0.5) + G // 2, 0), G - 1)
    j = min(max(math.floor(y / streets.cell + 0.5) + G // 2, 0), G - 1)
    road = streets.road[i, j]
    # a walk round the corner meets no artery
    if math.hypot(xy[road, 0] - x, xy[road, 1] - y) > math.hypot(dx, dy):
        return a if f < 0.5 else b
    return road


@njit
def stay(out: Any, k: int, step: float, until: float, place: int) -> int:
    """Stay at `place` in every slot that begins before minute `until`, from slot k on; return the next slot."""
    while k < len(out) and k * step < until:
        out[k] = place
        k += 1
    return k


@njit
def travel(out: Any, k: int, step: float, leave: float, arrive: float, streets: Any, a: int, b: int) -> int:
    """Wait at `a`, leave, be on the road until `arrive`; return the next slot."""
    k = stay(out, k, step, leave, a)
    while k < len(out) and k * step < arrive:
        out[k] = on_the_way(streets, a, b, (k * step - leave) / (arrive - leave))
        k += 1
    return k


@njit
def live(streets: Any, diaries: Any, people: Any, u: Any, step: float, out: Any) -> None:
    """
    Fill `out` (n, D * L) with the places of n people in every slot of D days, the first of them a Monday.

    `u` (n, D + 1, W) holds uniform numbers. The day before the first is lived too, and not written down: midnight
    must find night workers at work.
    """
    for i in range(len(out)):
        places, pace = people.keep[i], people.pace[i]
        home = places[0]
        here, free, k = home, -DAY, 0
        for day in range(-1, u.shape[1] - 1):
            luck = u[i, day + 1]
            kinds = diaries.cdf[people.habit[i], max(0, day % 7 - 4)]
            kind = 0
            while luck[0] >= kinds[kind]:
                kind += 1
            for a in range(diaries.first[kind], diaries.first[kind + 1]):
                w = 1 + DRAWS_PER_ACTIVITY * (a - diaries.first[kind])
                # what is certain stays certain, whatever the temper
                if luck[w] < (1 - diaries.chance[a]) ** people.outgoing[i]:
                    continue
                # squared: the first of one's favourites is the favourite
                there = places[diaries.keep[a] + int(diaries.choice[a] * luck[w + 1] ** 2)]
                lateness = 0.8 * people.late[i] + 0.5 * bell(luck[w + 2])
                start = DAY * day + diaries.hour[a] + diaries.spread[a] * lateness
                back, out_again = (
                    trip_minutes(streets.xy, here, home, pace),
                    trip_minutes(streets.xy, home, there, pace),
                )
                if here != home and start - free > PAUSE + back + out_again:
                    k = travel(out[i], k, step, free, free + back, streets, here, home)
                    here, free = home, free + back
                trip = trip_minutes(streets.xy, here, there, pace)
                leave = max(free, start - trip)
                if leave + trip > start + LATE:
                    continue
                k = travel(out[i], k, step, leave, leave + trip, streets, here, there)
                here = there
                free = leave + trip + max(BRIEFEST, diaries.hours[a] * (1 + 0.2 * bell(luck[w + 3])))
        k = travel(out[i], k, step, free, free + trip_minutes(streets.xy, here, home, pace), streets, here, home)
        stay(out[i], k, step, math.inf, home)
