"""Slow twins of evaluation/measures.py: one person, one visit, one second after the other, from the definitions."""

import math
from collections import Counter, defaultdict
from itertools import pairwise

HOUR = 3600


def seconds_by_hour(start, end):
    """{hour since 1970: seconds}, second by second in steps of one; an instant is one second of its hour."""
    counted = Counter()
    for second in range(start, max(end, start + 1)):
        counted[second // HOUR] += 1
    return counted


def is_weekend(hour):
    return (hour // 24 + 3) % 7 >= 5


def presence(rows, zone, timed):
    """{(weekend, hour of the day, zone): weight} of rows (user, start, end, place)."""
    found = Counter()
    for _, start, end, place in rows:
        hours = seconds_by_hour(start, end) if timed else {start // HOUR: 1}
        for hour, weight in hours.items():
            found[is_weekend(hour), hour % 24, zone[place]] += weight
    return found


def stays(rows, gap=2 * HOUR):
    """[user, start, end, place] of rows joined where one follows another at the same place soon enough."""
    found = []
    for user, start, end, place in rows:
        last = found[-1] if found else None
        if last and last[0] == user and last[3] == place and start - last[4] <= gap:
            last[2], last[4] = max(last[2], end), end
        else:
            found.append([user, start, end, place, end])
    return [stay[:4] for stay in found]


def moves(rows, longest=24 * HOUR):
    return [(a[3], b[3]) for a, b in pairwise(rows) if a[0] == b[0] and a[3] != b[3] and b[1] - a[2] <= longest]


def person(rows, timed, distance):
    """Every number of `describe_people` of one person; `distance(a, b)` in km."""
    by_place, by_night, by_slot, days_of_place = Counter(), Counter(), defaultdict(Counter), defaultdict(set)
    days_of_slot, days = defaultdict(set), set()
    for _, start, end, place in rows:
        for hour, weight in (seconds_by_hour(start, end) if timed else {start // HOUR: 1}).items():
            by_place[place] += weight
            if hour % 24 < 6:
                by_night[place] += weight
            slot = (is_weekend(hour), hour % 24)
            by_slot[slot][place] += weight
            days_of_slot[slot].add(hour // 24)
            days_of_place[place].add(hour // 24)
            days.add(hour // 24)
    total = sum(by_place.values())
    home = min(by_night or by_place, key=lambda p: (-(by_night or by_place)[p], p))
    rest = [p for p in by_place if p != home]
    main = min(rest, key=lambda p: (-by_place[p], p)) if rest else None
    often = [slot for slot in by_slot if len(days_of_slot[slot]) > 1]
    usual = sum(max(by_slot[slot].values()) for slot in often)
    share = {p: by_place[p] / total for p in by_place}
    return {
        "places": len(by_place),
        "places_per_day": sum(map(len, days_of_place.values())) / len(days),
        "visits_per_day": len(stays(rows)) / len(days),
        "home_share": share[home],
        "main_share": share[main] if main is not None else 0.0,
        "entropy": -sum(s * math.log(s) for s in share.values()),
        "routine": usual / sum(sum(by_slot[slot].values()) for slot in often) if often else math.nan,
        "new_places": sum(len(d) == 1 for d in days_of_place.values()) / len(by_place) if len(days) > 1 else math.nan,
        "farthest": max(distance(home, p) for p in by_place),
    }


def jensen_shannon(p, q):
    p, q = ([x / sum(each) for x in each] for each in (p, q))
    m = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return sum(sum(x * math.log2(x / y) for x, y in zip(side, m, strict=True) if x > 0) for side in (p, q)) / 2


def radius(rows, xy):
    """Radius of gyration of one person: the root of the mean squared distance from the centre, by time."""
    time = Counter()
    for _, start, end, place in rows:
        time[place] += max(end - start, 1)
    total = sum(time.values())
    centre = [sum(time[p] * xy[p][axis] for p in time) / total for axis in (0, 1)]
    return math.sqrt(sum(time[p] * math.dist(xy[p], centre) ** 2 for p in time) / total)


def histogram(values, highest, bins=50):
    """Counts in equal bins from 0 to the highest value; the last bin holds its upper edge and whatever is above."""
    counts = [0] * bins
    for value in values:
        counts[min(int(value / highest * bins), bins - 1)] += 1
    return counts


def field(real, fakes, xy):
    """The six divergences of the field between two lists of people, each a list of rows (user, start, end, place)."""

    def samples(people):
        days = Counter()
        for rows in people:
            for user, day, _ in {(u, h // 24, p) for u, a, b, p in rows for h in seconds_by_hour(a, b)}:
                days[user, day] += 1
        return {
            "distance": [round(math.dist(xy[a], xy[b]), 6) for rows in people for a, b in moves(rows)],
            "radius": [radius(rows, xy) for rows in people],
            "duration": [(end - start) / 60 for rows in people for _, start, end, _ in stays(rows) if end > start],
            "daily_places": list(days.values()),
        }

    def g_rank(people):
        number = Counter(place for rows in people for _, _, _, place in stays(rows))
        return sorted(number.values(), reverse=True)

    def i_rank(people):
        shares = [0.0] * len(xy)
        for rows in people:
            number = sorted(Counter(place for *_, place in rows).values(), reverse=True)
            for rank, n in enumerate(number):
                shares[rank] += n / len(rows)
        return shares

    a, b = samples(real), samples(fakes)
    found = {name: jensen_shannon(*(histogram(x[name], max(a[name])) for x in (a, b))) for name in a}
    for name, ranks in (("g_rank", g_rank), ("i_rank", i_rank)):
        sides = [ranks(people) for people in (real, fakes)]
        found[name] = jensen_shannon(*([*side, *[0] * (len(xy) - len(side))] for side in sides))
    return found
