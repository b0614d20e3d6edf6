"""Slow twins of the room `data`, from the definitions, with loops; nothing of `elsewhere` is imported."""

import math
from collections import defaultdict

DAY = 86_400


def quadkey(lat, lon, zoom):
    """The quarters of the Mercator square that lead to a point: 0 1 above, 2 3 below."""
    lat = min(max(lat, -85.05112877980659), 85.05112877980659)
    x = ((lon + 180) % 360) / 360
    y = 0.5 - math.log(math.tan(math.pi / 4 + math.radians(lat) / 2)) / (2 * math.pi)
    digits, left, top, size = "", 0.0, 0.0, 1.0
    for _ in range(zoom):
        size /= 2
        right, below = x >= left + size, y >= top + size
        left, top = left + size * right, top + size * below
        digits += str(right + 2 * below)
    return digits


def arc_km(a, b):
    """The great-circle distance of two (lat, lon), by the law of cosines in vectors."""
    points = []
    for lat, lon in (a, b):
        north, east = math.radians(lat), math.radians(lon)
        points.append((math.cos(north) * math.cos(east), math.cos(north) * math.sin(east), math.sin(north)))
    chord = math.dist(*points)
    return 2 * 6371.0088 * math.asin(min(1.0, chord / 2))


def jumps(fixes, least_km, fastest_kmh):
    """Numbers of the fixes (user, second, lat, lon), sorted, that are reached and left impossibly, not past them."""

    def impossible(a, b):
        way = arc_km(fixes[a][2:], fixes[b][2:])
        return fixes[a][0] == fixes[b][0] and way > least_km and way * 3600 > fastest_kmh * (fixes[b][1] - fixes[a][1])

    marked = set()
    for i in range(1, len(fixes) - 1):
        around = impossible(i - 1, i) and impossible(i, i + 1) and not impossible(i - 1, i + 1)
        if around and fixes[i - 1][0] == fixes[i + 1][0] and i - 1 not in marked:
            marked.add(i)
    return marked


def segments(fixes, reach_km, least, silence, zoom):
    """Lists of fixes (user, second, lat, lon) that are one stay or one cell on the way, in order."""

    def joined(i):
        return fixes[i][0] == fixes[i - 1][0] and fixes[i][1] - fixes[i - 1][1] <= silence

    out, i, way = [], 0, None
    while i < len(fixes):
        j = i + 1
        while j < len(fixes) and joined(j) and arc_km(fixes[i][2:], fixes[j][2:]) <= reach_km:
            j += 1
        if fixes[j - 1][1] - fixes[i][1] >= least:
            out.append(list(range(i, j)))
            i, way = j, None
            continue
        here = quadkey(*fixes[i][2:], zoom)
        if way == here and joined(i):
            out[-1].append(i)
        else:
            out.append([i])
        way = here
        i += 1
    return out


def slots(visits, width, gap):
    """{(user, day): places of the day} of visits (user, start, end, place) by the rule of `fill_slots`."""
    time = defaultdict(lambda: defaultdict(int))
    order, last, first = {}, {}, {}
    for n, (user, start, end, place) in enumerate(visits):
        for k in range(start // width, max(end - 1, start) // width + 1):
            since, until = max(start, k * width), min(end, (k + 1) * width)
            time[user, k][place] += max(1, until - since)
            order.setdefault((user, k, place), n)
            last[user, k] = max(last.get((user, k), -math.inf), until)
            first[user, k] = min(first.get((user, k), math.inf), since)
    best = {}
    for (user, k), places in time.items():
        best[user, k] = min(places, key=lambda p: (-places[p], order[user, k, p]))
    L, out = DAY // width, {}
    for user, day in {(u, k // L) for u, k in best}:
        row = []
        own = sorted(k for u, k in best if u == user)
        today = [k for k in own if k // L == day]
        for k in range(day * L, (day + 1) * L):
            before = [j for j in own if j < k]
            if (user, k) in best:
                row.append(best[user, k])
            elif before and k * width - last[user, before[-1]] <= gap:
                row.append(best[user, before[-1]])
            elif k < today[0] and max(0, first[user, today[0]] - (k + 1) * width) <= gap:
                row.append(best[user, today[0]])
            else:
                row.append(-1)
        out[user, day] = row
    return out


def shared_tiles(records, finest, coarsest, enough):
    """The tile of each record (user, lat, lon): the smallest in which enough people were and half as many are left."""
    place = [None] * len(records)
    for zoom in range(finest, coarsest - 1, -1):
        there, left = defaultdict(set), defaultdict(set)
        for i, (user, lat, lon) in enumerate(records):
            key = quadkey(lat, lon, finest)[:zoom]
            there[key].add(user)
            if place[i] is None:
                left[key].add(user)
        for i, (_, lat, lon) in enumerate(records):
            key = quadkey(lat, lon, finest)[:zoom]
            if place[i] is None and len(there[key]) >= enough and len(left[key]) >= max(1, enough // 2):
                place[i] = "q" + key
    return place


def chance_of_at_least(n, enough, scale):
    """The probability that n plus two-sided geometric noise reaches `enough`."""
    a = math.exp(-1 / scale)
    law = {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-200, 201)}
    return sum(p for k, p in law.items() if n + k >= enough)
