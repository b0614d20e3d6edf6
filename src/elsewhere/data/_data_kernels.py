"""
Kernels of the room: tiles of the fixed grid, fixes that cannot be, stays, and people of a simulated town.

Fixes come sorted by user and time. Distances are those of a plane that touches the globe at the first of two points:
exact within 1 in 10,000 over the few kilometres that matter here, and far off only where it is far anyway.
"""

import math
from typing import Any, NamedTuple

from elsewhere._jit import njit

KM_PER_DEGREE = 6371.0088 * math.pi / 180
MOST_NORTHERN = 85.05112877980659  # where the square of the Mercator projection ends

DAY = 1440.0
DRAWS_PER_ACTIVITY = 4  # whether, which place, when, how long
DOOR = 4.0  # minutes lost at the two ends of a trip
PAUSE = 45.0  # nobody goes home between two activities for less
LATE = 90.0  # nobody sets out for what began so long ago
BRIEFEST = 10.0  # the shortest stay


@njit
def tile_key(lat: float, lon: float, zoom: int) -> int:
    """Return the key of the tile of a point: the bits of column and row interleaved, as in its quadkey."""
    n = 1 << zoom
    sine = math.sin(math.radians(min(max(lat, -MOST_NORTHERN), MOST_NORTHERN)))
    x = math.floor((lon + 180.0) / 360.0 * n) % n
    y = min(max(math.floor((0.5 - math.log((1 + sine) / (1 - sine)) / (4 * math.pi)) * n), 0), n - 1)
    key = 0
    for bit in range(zoom):
        key |= ((x >> bit) & 1) << (2 * bit) | ((y >> bit) & 1) << (2 * bit + 1)
    return key


@njit
def tile_keys(lat: Any, lon: Any, zoom: int, out: Any) -> None:
    """Write the key of the tile of each point."""
    for i in range(len(lat)):
        out[i] = tile_key(lat[i], lon[i], zoom)


@njit
def count_people(who: Any, what: Any, group: Any, last: Any, out: Any) -> None:
    """Count the users of each group of items, -1 for none, from distinct pairs by user; `last` (groups,) is -1."""
    for i in range(len(who)):
        g = group[what[i]]
        if g >= 0 and last[g] != who[i]:
            last[g] = who[i]
            out[g] += 1


@njit
def is_near(lat: Any, lon: Any, a: int, b: int, east: float, reach_km: float) -> Any:
    """Tell whether fix b lies within `reach_km` of fix a, where a degree of longitude is `east` km."""
    dx, dy = (lon[b] - lon[a] + 180.0) % 360.0 - 180.0, lat[b] - lat[a]
    return (dx * east) ** 2 + (dy * KM_PER_DEGREE) ** 2 <= reach_km * reach_km


@njit
def find_segments(
    group: Any,
    start: Any,
    lat: Any,
    lon: Any,
    zoom: int,
    reach_km: float,
    least: int,
    silence: int,
    out: Any,
) -> int:
    """
    Write for each fix the number of its stay, or of its cell on the way; return how many there are.

    In each `group`, from the first fix not yet told, all that follow within `reach_km` of it are a stay if they last
    `least` seconds; else that fix is on the way, and one with the fixes before it that are on the way in the same tile.
    A silence of more than `silence` seconds ends either.
    """
    n, count, i = len(group), -1, 0
    far, quiet = 0, 0  # first fix at least `least` seconds later; first fix after a silence, or of another group
    key, moving = -1, False
    while i < n:
        broken = i == 0 or group[i] != group[i - 1] or start[i] - start[i - 1] > silence
        far, quiet = max(far, i), max(quiet, i + 1)
        while quiet < n and group[quiet] == group[i] and start[quiet] - start[quiet - 1] <= silence:
            quiet += 1
        while far < quiet and start[far] - start[i] < least:
            far += 1
        east = KM_PER_DEGREE * math.cos(math.radians(lat[i]))
        j = i
        if far < quiet:
            j = far  # backwards: who moves is out of reach at the end of the time
            while j > i and is_near(lat, lon, i, j, east, reach_km):
                j -= 1
        if far < quiet and j == i:
            count += 1
            j = i
            while j < quiet and is_near(lat, lon, i, j, east, reach_km):
                out[j] = count
                j += 1
            i, moving = j, False
            continue
        here = tile_key(lat[i], lon[i], zoom)
        if broken or not moving or here != key:
            count += 1
        out[i], key, moving = count, here, True
        i += 1
    return count + 1


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
def on_the_way(streets: Any, a: int, b: int, f: float) -> Any:
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
