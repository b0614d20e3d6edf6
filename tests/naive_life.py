"""Slow twins of the generator of lives, by their definitions: loops over everything, no tables."""

import itertools
import math

import numpy as np

HALF_HOUR, HOUR_AND_HALF, ENOUGH = 1_800, 5_400, 8


def distance_bin(xy, limits, a, b):
    return sum(((xy[a] - xy[b]) ** 2).sum() >= limit for limit in limits)


def sigma_law(ground, role, cls, time, moves):
    """Return {places: probability} of all mappings of own places, by enumeration."""
    n = len(cls)
    homes = [i for i in range(n) if role[cls[i]] == 0] or list(range(n))
    home = max(homes, key=lambda i: time[i])
    rest = [i for i in range(n) if i != home]
    main = max(rest, key=lambda i: time[i]) if rest else -1
    if main >= 0 and time[main] < 0.05 * sum(time):
        main = -1
    candidates = []
    for c in cls:
        rows = range(ground.first[c], ground.first[c + 1])
        candidates.append([(int(ground.place[k]), float(ground.weight[k])) for k in rows])
    law = {}
    for choice in itertools.product(*candidates):
        places = tuple(p for p, _ in choice)
        if len(set(places)) < n:
            continue
        v = sum(math.log(w) for _, w in choice)
        for i, j in itertools.combinations(range(n), 2):
            follow = int(moves[i, j] + moves[j, i] > 0)
            b = distance_bin(ground.xy, ground.limits, places[i], places[j])
            if home in (i, j):
                v += ground.anchor[0, follow, cls[j if i == home else i], b]
            elif main in (i, j):
                v += ground.anchor[1, follow, cls[j if i == main else i], b]
            elif follow:
                v += ground.step[b]
            key = min(places[i], places[j]) * len(ground.xy) + max(places[i], places[j])
            if follow and key in ground.moves.tolist():
                v += ground.usual[ground.moves.tolist().index(key)]
        law[places] = math.exp(v)
    total = sum(law.values())
    return {places: p / total for places, p in law.items()}


def way_law(xy, passages, a, b, n, weight):
    """Return {cells: probability} of all ways of n cells from a to b; `weight` is the weight of each cell."""
    people = dict(zip(passages.moves.tolist(), passages.people.tolist(), strict=True))
    law = {}
    for cells in itertools.product(weight, repeat=n):
        if any(x == y for x, y in itertools.pairwise(cells)):
            continue
        moves = list(itertools.pairwise([a, *cells, b]))
        length = sum(math.dist(xy[x], xy[y]) for x, y in moves)
        v = math.prod(weight[x] for x in cells) * math.exp((math.dist(xy[a], xy[b]) - length) / passages.detour)
        law[cells] = v * math.prod(people.get(x * len(xy) + y, 0.0) + 0.2 for x, y in moves)
    total = sum(law.values())
    return {cells: p / total for cells, p in law.items()}


def piece_law(law, piece_type, piece_kind, carried, of_type, of_kind, c, is_carried, t):
    """Return the pieces that the next one is drawn from, all alike: of type and kind, of the kind, of anybody."""
    rows = [i for i in range(len(law.start)) if law.cls[i] == c and carried[i] == is_carried]
    of_kinds = [i for i in rows if piece_kind[i] == of_kind]
    of_types = [i for i in of_kinds if piece_type[i] == of_type]
    for level in (of_types, of_kinds, rows):
        for reach in (HALF_HOUR, HOUR_AND_HALF):
            found = [i for i in level if abs(law.start[i] - t) <= reach]
            if len(found) >= ENOUGH:
                return found
            if is_carried:
                break
    return [i for i in rows if abs(law.start[i] - t) <= 4 * HOUR_AND_HALF] or rows


def geographic_similarity(fake, seed):
    """sim_G over eight parts of the week; fake and seed are lists of (start, end, place) (E75)."""

    def shares(records):
        table = {}
        for start, end, place in records:
            hour, day = start // 3600 % 24, start // 86_400
            part = hour // 6 + 4 * ((day + 3) % 7 >= 5)
            table.setdefault(part, {})
            table[part][place] = table[part].get(place, 0) + max(end - start, 60)
        total = sum(sum(places.values()) for places in table.values())
        weight = {part: sum(places.values()) / total for part, places in table.items()}
        return weight, {
            part: {place: t / sum(places.values()) for place, t in places.items()} for part, places in table.items()
        }

    (wf, f), (ws, s) = shares(fake), shares(seed)
    return sum(
        max(wf[part], ws.get(part, 0.0)) * sum(min(p, s.get(part, {}).get(r, 0.0)) for r, p in f[part].items())
        for part in f
    )


def tolerance(p, n):
    """Four standard deviations of a frequency of n draws, and what a Markov chain may be off."""
    return 4 * np.sqrt(p * (1 - p) / n) + 2e-3
