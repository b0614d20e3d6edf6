"""Slow twins of the generator of lives, by their definitions: loops over everything, no tables."""

import itertools
import math
from collections import Counter

import numpy as np

HALF_HOUR, HOUR_AND_HALF, ENOUGH = 1_800, 5_400, 8


def distance_bin(xy, limits, a, b):
    return sum(((xy[a] - xy[b]) ** 2).sum() >= limit for limit in limits)


def sigma_law(ground, role, cls, time, soon):
    """Return {places: probability} of all mappings of own places: home by its weight, the rest given home."""
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
            tie = max(soon[i, j], soon[j, i])
            follow = int(tie > 0)
            v += ground.pace[tie, distance_bin(ground.xy, ground.paces, places[i], places[j])]
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
    rows = range(ground.first[cls[home]], ground.first[cls[home] + 1])
    weight = {int(ground.place[k]): float(ground.people[k]) for k in rows}
    given_home = {h: sum(p for places, p in law.items() if places[home] == h) for h in weight}
    return {
        places: weight[places[home]] / sum(weight.values()) * p / given_home[places[home]] for places, p in law.items()
    }


def spread(use, mean, lean):
    """Return the concentration of people's shares of each kind about `mean`, person by person."""
    Q = use.shape[1]
    excess, room = [0.0] * Q, [0.0] * Q
    for days, m in zip(use, mean, strict=True):
        n = sum(days)
        if n > 1:
            for q in range(Q):
                excess[q] += (days[q] / n - m[q]) ** 2 - m[q] * (1 - m[q]) / n
                room[q] += m[q] * (1 - m[q]) * (1 - 1 / n)
    few = lean * sum(room) / Q
    ratio = [(excess[q] + few * sum(excess) / sum(room)) / (room[q] + few) for q in range(Q)]
    return [1 / min(max(r, 0.005), 0.9) - 1 for r in ratio]


def trips_of_life(classes, leaves, arrives):
    """
    Return the trip of each record of one life, from 0, None for none; `classes` of its records, -1 on the way.

    From a stay that a trip leaves until the next stay all is that trip; it goes on if both sides of that stay do.
    """
    trip, trips, on = [], 0, False
    stays = [i for i, c in enumerate(classes) if c >= 0]
    for i, c in enumerate(classes):
        if c < 0:
            trip.append(trips - 1 if on else None)
            continue
        begins = leaves[c] and i != stays[-1]
        if begins and not (on and arrives[c]):
            trips += 1
        trip.append(trips - 1 if begins or on else None)
        on = begins
    return trip


def trips_between(took, lives):
    """
    Return (life, time, place) of both ends of all trips between stays, (start, end, place), of these lives.

    Whose next stay is further away than nearly all trips take was not seen: at one place there all the time, else on
    the way for as long as is usual; a life that would have no trip has all of them. `took` are the seconds of trips.
    """
    usual, longest = (sorted(took)[math.ceil(q * (len(took) - 1))] for q in (0.5, 0.99))
    out = []
    for life, stays in enumerate(lives):
        trips, unseen = [], []
        for (_, end, here), (start, _, there) in itertools.pairwise(stays):
            far = start - end > longest
            trip = [(life, start - usual if far else end, here), (life, start, there)]
            (unseen if far and here == there else trips).extend(trip)
        out += trips or unseen
    return out


def expected_people(seen, mean, spread, scale):
    """Return E(people of another day | a count with Laplace noise), by sums over all counts."""
    shape = 1 / spread
    log_law = [
        math.lgamma(n + shape) - math.lgamma(shape) - math.lgamma(n + 1)
        + n * math.log(spread * mean / (1 + spread * mean)) - shape * math.log(1 + spread * mean)
        for n in range(400)
    ]  # fmt: skip
    weight = [math.exp(v - abs(seen - n) / scale) for n, v in enumerate(log_law)]
    factor = [(n + shape) / (shape + mean) for n in range(400)]  # of the gamma law of factors, given n
    return sum(w * mean * f for w, f in zip(weight, factor, strict=True)) / sum(weight)


def turn(xy, x, y, z):
    """The bin of the turn at y: 9 back to x, else 0 (straight back) to 8 (straight on)."""
    if z == x:
        return 9
    come, go = xy[y] - xy[x], xy[z] - xy[y]
    return math.floor((come @ go / math.hypot(*come) / math.hypot(*go) + 1) * 4 + 0.5)


def ring(length):
    """The bin of the length of a move: three will do."""
    return int(length > 1.1) + int(length > 1.7)


def way_law(xy, moves, turns, detour, pull, a, b, n, banned, like, share, again):
    """
    Return {cells: probability} of all ways of n cells from a to b; `moves` {(from, to): weight}.

    `like` (bin of a length) -> how many moves of that length an observed way has, `share` of all; see `ring`.
    """

    def longer(x):
        return math.dist(xy[a], xy[x]) + math.dist(xy[x], xy[b]) - math.dist(xy[a], xy[b])

    def next_move(x, y, z):
        after = {to: w * turns[turn(xy, x, y, to)] for (here, to), w in moves.items() if here == y}
        return after.get(z, 0.0) / sum(after.values())

    def lengths(stops):
        left, p = list(like), 1.0
        for x, y in itertools.pairwise(stops):
            k = ring(math.dist(xy[x], xy[y]))
            if k > 1 + max(j for j in range(3) if like[j]):
                return 0.0
            p *= (max(left[k], 0) + 0.5 * share[k]) / ((sum(like) + 0.5) * share[k])
            left[k] -= 1
        return p

    law = {}
    for cells in itertools.product(range(len(xy)), repeat=n):
        if banned & set(cells) or max(map(longer, cells)) > detour:
            continue
        stops = [a, *cells, b]
        if any(move not in moves for move in itertools.pairwise(stops)):
            continue
        law[cells] = moves[stops[0], stops[1]] * math.prod(next_move(*stops[i : i + 3]) for i in range(n))
        law[cells] *= math.exp(-sum(map(longer, cells)) / (n * pull)) * lengths(stops) * again ** (n - len(set(cells)))
    total = sum(law.values())
    return {cells: p / total for cells, p in law.items() if p > 0}


def lengths_law(length, n, ticks):
    """Return {lengths: probability} of n passes that together take `ticks`."""
    law = {}
    for took in itertools.product(range(1, len(length) + 1), repeat=n):
        if sum(took) == ticks:
            law[took] = math.prod(length[t - 1] for t in took)
    total = sum(law.values())
    return {took: p / total for took, p in law.items()}


def piece_law(law, days, drawn, habit, kind, off, state, t):
    """
    Return the pieces that the next one is drawn from: of habit and kind, of the kind, of such days, of any day.

    `drawn` lists (piece, state) of all that may be; `days` says of each piece its habit, kind and whether a weekend.
    """
    rows = [i for i, of in drawn if of == state]
    of_off = [[i for i in rows if days[i][2] == o] for o in (off, 1 - off)]
    of_kind = [i for i in of_off[0] if days[i][1] == kind]
    of_habit = [i for i in of_kind if days[i][0] == habit]
    for level in (of_habit, of_kind, of_off[0]):
        for reach in (HALF_HOUR, HOUR_AND_HALF):
            found = [i for i in level if t < 0 or abs(law.pieces.start[i] - t) <= reach]
            if len(found) >= ENOUGH:
                return found
    for level in of_off:
        for reach in (4 * HOUR_AND_HALF, 24 * 3_600):
            found = [i for i in level if t < 0 or abs(law.pieces.start[i] - t) <= reach]
            if found:
                return found
    raise AssertionError


def own_law(law, past, known, new_today, c, here, before, when, today):
    """
    Return {own place: probability} of what comes next in class c; the number after the last one is a new place.

    `past` lists (day, part of the week, place, place before it on that day or None) of all visits, `known` the class
    of each own place, `new_today` those of places first seen today, numbered after them.
    """
    weight, seen_here = {}, here is not None and here < len(known)  # a place of an earlier day
    for x, cls in enumerate(known):
        if cls == c and x != here:
            visits = [v for v in past if v[2] == x]
            columns = [
                math.log1p(len(visits)),
                math.log1p(sum(v[1] == when for v in visits)),
                math.log1p(sum(v[3] == here for v in visits)) if here is not None else 0.0,
                float(x == before and seen_here),
                float(today - max(v[0] for v in visits) <= 2),
                float(x == before and not seen_here),
            ]
            weight[x] = math.exp(sum(w * v for w, v in zip(law.own, columns, strict=True)))
    for j, cls in enumerate(new_today):
        if cls == c and len(known) + j != here:
            weight[len(known) + j] = 1.0
    K = len(law.role)
    fresh = sum(cls == c for j, cls in enumerate(new_today) if len(known) + j != here)
    own = sum(cls == c for cls in known) + fresh
    visits = sum(known[v[2]] == c for v in past) + fresh
    odds = law.new[c] + law.new[K + c] * math.log1p(own)
    odds += law.new[2 * K] * math.log1p(visits) + law.new[2 * K + 1] * math.log1p(today)
    new = 1 / (1 + math.exp(-odds)) if weight else 1.0
    total = sum(weight.values())
    return {x: (1 - new) * w / total for x, w in weight.items()} | {len(known) + len(new_today): new}


def kind_law(mix, phases, fades, earlier):
    """
    Return the probability of each kind of day; kind 0 is no record, `earlier` the kinds of all days before.

    Days before count exp(-days / fading), those before the first as if they had followed the mix.
    """
    shares = [mix[0]]
    for fade in fades:
        weight = [math.exp(-(len(earlier) - 1 - d) / fade) for d in range(len(earlier))]
        before = math.exp(-len(earlier) / fade) / (1 - math.exp(-1 / fade))
        none = sum(w for w, kind in zip(weight, earlier, strict=True) if kind == 0)
        shares.append((none + before * mix[0]) / (sum(weight) + before))
    empty = sum(w * share for w, share in zip(phases, shares, strict=True))
    return [empty, *((1 - empty) * m / (1 - mix[0]) for m in mix[1:])]


def day_law(law, earlier, off, diaries, known, tastes):
    """
    Return the probability of each diary, a list of (start, end, own place, class); `known` own places before it.

    `earlier` lists (weekend, diary) of the days before; likeness is the share of 20-minute slots at the same place.
    """

    def slots(diary):
        out = {}
        for start, end, x, _ in diary:
            out |= dict.fromkeys(range(start // 1200, max((end - 1) // 1200, start // 1200) + 1), x)
        return out

    def likeness(a, b):
        either = set(a) | set(b)
        return sum(a.get(t) == b.get(t) for t in either) / len(either) if either else 1.0

    scores = []
    for diary in diaries:
        like = [likeness(slots(diary), slots(day)) for weekend, day in reversed(earlier) if weekend == off][:10]
        mean = sum(like) / len(like) if like else 0.0
        places, n = [x for _, _, x, _ in diary], len(diary)
        at_home = [end - start for start, end, _, c in diary if law.role[c] == 0]
        home = sum(at_home) / 36_000
        brief = sum(end - start <= 3_600 for start, end, _, c in diary if law.role[c] != 0)
        new = len({x for x in places if x >= known})
        features = [mean, max(like, default=0.0), like[0] if like else 0.0, mean**2, n, n * n / 10, new]
        features += [len(set(places)), home, home**2, brief, len(at_home)]
        hours = [sum(start // 14_400 == watch for start, *_ in diary) / n for watch in range(6)]
        features += hours
        taste = sum(w * v for w, v in zip(tastes, [n, new, home, *hours], strict=True))
        scores.append(taste + sum(w * f for w, f in zip(law.like, features, strict=True)))
    total = sum(math.exp(v) for v in scores)
    return [math.exp(v) / total for v in scores]


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


def runs_of_three(records):
    """All runs of three records of a life, passes left out; records are (start, class or -1 for a pass)."""
    code = [(cls, start % 86_400 // 3_600) for start, cls in records if cls >= 0]
    return list(zip(code, code[1:], code[2:], strict=False))


def portrait(records, xy):
    """Return how much, when, how often anew and how far a life is recorded; `records` are (start, end, place)."""

    def median(values):
        return sorted(values)[len(values) // 2] if values else 0.0

    def mean(values):
        return sum(values) / max(len(values), 1)

    n, places = len(records), [place for _, _, place in records]
    count = Counter(places)
    share = sorted((c / n for c in count.values()), reverse=True)
    top = min(count, key=lambda place: (-count[place], place))
    pairs = list(itertools.pairwise(records))
    gaps = [b[0] - a[1] for a, b in pairs]
    steps = [math.dist(xy[a[2]], xy[b[2]]) for a, b in pairs]
    moved = [step for step in steps if step > 0]
    speeds = [d / max(gap / 3600, 0.1) for gap, d in zip(gaps, steps, strict=True) if d > 0 and gap < 14_400]
    centre = [mean([xy[place][axis] for place in places]) for axis in (0, 1)]
    far = [
        math.sqrt(mean([math.dist(xy[place], centre) ** 2 for place in places])), mean(moved), max(steps),
        median(moved), median([math.dist(xy[place], xy[top]) for place in places]), median(speeds),
    ]  # fmt: skip
    return [
        math.log(n), math.log(n / len({start // 86_400 for start, _, _ in records})),
        *(mean([start % 86_400 // 14_400 == part for start, _, _ in records]) for part in range(6)),
        len(count) / n, mean([c == 1 for c in count.values()]), share[0], share[1],
        -sum(p * math.log(p) for p in share),
        mean([step == 0 for step in steps]), mean([gap < 3600 for gap in gaps]), math.log1p(median(gaps)),
        *(math.log(max(d, 0.01)) for d in far),
    ]  # fmt: skip


def tolerance(p, n):
    """Four standard deviations of a frequency of n draws, and what a Markov chain may be off."""
    return 4 * np.sqrt(p * (1 - p) / n) + 2e-3
