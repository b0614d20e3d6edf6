"""
Slow twins: every metric, sampler and gate again, from its definition, with loops.

Imports nothing of ours, so that it can judge us.
"""

import itertools
import math
from fractions import Fraction


def location_graph(r, user, tau, R, T):
    """
    w_G of fig:alg by its double loop over ordered pairs of users; order 0, one sigma per period, ties shared (E22).

    `r` is a list of traces, `user` the user of each, `tau` the period of each instant.
    """
    users = sorted(set(user))
    counts = {u: [{} for _ in range(T)] for u in users}
    for row, u in zip(r, user, strict=True):
        for place, t in zip(row, tau, strict=True):
            if place >= 0:
                counts[u][t][place] = counts[u][t].get(place, 0) + 1

    def weight_at_rank(seen):
        """rank -> {place: weight}: a place in a block of b tied counts carries 1/b at each rank of the block."""
        ranks, position = {}, 0
        for count in sorted(set(seen.values()), reverse=True):
            block = [place for place in seen if seen[place] == count]
            for i in range(position, position + len(block)):
                ranks[i] = {place: 1 / len(block) for place in block}
            position += len(block)
        return ranks

    def similarity(u, v):
        total = sum(sum(seen.values()) for seen in counts[u])
        s = 0.0
        for seen_u, seen_v in zip(counts[u], counts[v], strict=True):
            if not seen_u or not seen_v:
                continue
            L_u, L_v = sum(seen_u.values()), sum(seen_v.values())
            x = sorted((c / L_u for c in seen_u.values()), reverse=True)
            y = sorted((c / L_v for c in seen_v.values()), reverse=True)
            s += L_u / total * sum(min(a, b) for a, b in zip(x, y, strict=False))
        return s

    w = [[0.0] * R for _ in range(R)]
    for u in users:
        total = sum(sum(seen.values()) for seen in counts[u])
        for v in users:
            if u == v:
                continue
            s = similarity(u, v)
            for t in range(T):
                here, there = weight_at_rank(counts[u][t]), weight_at_rank(counts[v][t])
                share = sum(counts[u][t].values()) / total
                for i in here:
                    for a, x in here[i].items():
                        for b, y in there.get(i, {}).items():
                            w[a][b] += share * s * x * y
    return [[0.0 if a == b else (w[a][b] + w[b][a]) / 2 for b in range(R)] for a in range(R)]


def profile(rows, tau, T):
    """<p(u), pi(u)> of one user from its traces, place by place: dicts with undefined rows left out (E1-E3, E7)."""
    visits, moves = {}, {}
    for row in rows:
        for t, place in enumerate(row):
            if place >= 0:
                visits[tau[t], place] = visits.get((tau[t], place), 0) + 1
            if t > 0 and place >= 0 and row[t - 1] >= 0:
                step = (tau[t - 1], tau[t], row[t - 1], place)
                moves[step] = moves.get(step, 0) + 1
    n, departures = sum(visits.values()), sum(moves.values())
    lived = {t: sum(c for (s, _), c in visits.items() if s == t) for t in range(T)}
    left, left_for = {}, {}
    for (t, s, a, _), c in moves.items():
        left[t, a] = left.get((t, a), 0) + c
        left_for[t, s, a] = left_for.get((t, s, a), 0) + c
    return {
        "pi": {key: c / n for key, c in visits.items()},
        "pi_tau": {(t, a): c / lived[t] for (t, a), c in visits.items()},
        "p": {(t, s, a, b): c / left_for[t, s, a] for (t, s, a, b), c in moves.items()},
        "p_tau": {(t, s, a): c / left[t, a] for (t, s, a), c in left_for.items()},
        "alpha": {key: c / departures for key, c in left_for.items()},
    }


def great_circle_km(a, b):
    """Distance of two (lat, lon) in degrees on a sphere of 6371.0088 km, by the angle between two vectors."""

    def vector(lat, lon):
        lat, lon = math.radians(lat), math.radians(lon)
        return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)

    x, y = vector(*a), vector(*b)
    cross = (x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0])
    dot = sum(i * j for i, j in zip(x, y, strict=True))
    return 6371.0088 * math.atan2(math.sqrt(sum(c * c for c in cross)), dot)


def aggregate_row(users, tau, T, r, pair, distance, *, epsilon, n_min=5, feasible=None):
    """
    Row r of p_bar for a pair of periods (sec:sampling, E34-E37).

    `users` is a list of users, each a list of traces; `distance` and `feasible` are lists of rows.
    """
    R = len(distance)
    departures = sum(
        1
        for rows in users
        for row in rows
        for t in range(len(row) - 1)
        if row[t] == r and row[t + 1] >= 0 and (tau[t], tau[t + 1]) == pair
    )
    if T > 1 and departures < n_min:
        return aggregate_row(users, [0] * len(tau), 1, r, (0, 0), distance, epsilon=epsilon, feasible=feasible)
    row = [epsilon / max(1.0, distance[r][s]) ** 2 for s in range(R)]
    for rows in users:
        p = profile(rows, tau, T)["p"]
        for s in range(R):
            row[s] += p.get((*pair, r, s), 0.0)
    if feasible is not None:
        row = [x * feasible[r][s] for s, x in enumerate(row)]
    z = sum(row)
    return [x / z if z > 0 else 0.0 for x in row]


def aggregate_first(users, tau, T, R, period=None):
    """Mean over users of pi(u), or of Pr{r | period} over the users that have lived in the period (E32)."""
    total, number = [0.0] * R, 0
    for rows in users:
        p = profile(rows, tau, T)
        law = p["pi"] if period is None else {key: x for key, x in p["pi_tau"].items() if key[0] == period}
        number += bool(law)
        for (_, place), x in law.items():
            total[place] += x
    return [x / number for x in total] if number else aggregate_first(users, tau, T, R)


def town_life(streets, diary, person, u, *, step, instants):
    """
    Places of one inhabitant of the simulated town: first the itinerary in minutes, then a look at every instant.

    streets = (xy, road[i][j], cell); diary = (cdf[part of week][kind], kinds: lists of (first place, number of places,
    chance, minute, spread, minutes)); person = (places, late, outgoing, pace); u[day + 1] uniform numbers.
    """
    (xy, road, cell), (cdf, kinds), (places, late, outgoing, pace) = streets, diary, person
    home = places[0]

    def bell(x):
        x = min(max(x, 0.001), 0.999)
        return min(max(math.log(x / (1 - x)) * 0.5513, -2.5), 2.5)

    def minutes(a, b):
        return 0.0 if a == b else 4 + pace * math.dist(xy[a], xy[b])

    trips, here, free = [], home, -1440.0

    def go(target, leave):
        nonlocal here
        trips.append((leave, leave + minutes(here, target), here, target))
        here = target
        return trips[-1][1]

    for day in range(-1, len(u) - 1):
        draws = u[day + 1]
        part = {5: 1, 6: 2}.get(day % 7, 0)
        kind = next(b for b, share in enumerate(cdf[part]) if draws[0] < share)
        for n, (first, number, chance, minute, spread, length) in enumerate(kinds[kind]):
            whether, which, when, how_long = draws[1 + 4 * n : 5 + 4 * n]
            if whether < (1 - chance) ** outgoing:
                continue
            there = places[first + int(number * which**2)]
            start = 1440.0 * day + minute + spread * (0.8 * late + 0.5 * bell(when))
            if here != home and start - free > 45 + minutes(here, home) + minutes(home, there):
                free = go(home, free)
            trip = minutes(here, there)
            if max(free, start - trip) + trip <= start + 90:
                arrived = go(there, max(free, start - trip))
                free = arrived + max(10, length * (1 + 0.2 * bell(how_long)))
    go(home, free)

    def seen(t):
        begun = [trip for trip in trips if trip[0] <= t]
        if not begun:
            return home
        leave, arrive, a, b = begun[-1]
        if t >= arrive:
            return b
        f = (t - leave) / (arrive - leave)
        point = [xy[a][axis] + f * (xy[b][axis] - xy[a][axis]) for axis in (0, 1)]
        i, j = (min(max(math.floor(x / cell + 0.5) + len(road) // 2, 0), len(road) - 1) for x in point)
        if math.dist(xy[road[i][j]], point) > math.dist(xy[a], xy[b]):
            return a if f < 0.5 else b
        return road[i][j]

    return [seen(k * step) for k in range(instants)]


def trace_shares(row, tau, T):
    """Of one trace: share of its instants in each period, and the share of each place within it, as fractions."""
    lived = [t for t, r in enumerate(row) if r >= 0]
    w, share = [], []
    for period in range(T):
        here = [row[t] for t in lived if tau[t] == period]
        w.append(Fraction(len(here), len(lived)))
        share.append({r: Fraction(here.count(r), len(here)) for r in set(here)})
    return w, share


def trace_sim_g(u, v, T):
    """sim_G of order 0, Hamming (E13): sum over periods of w_tau(u) sum_r min(pi_tau^r(u), pi_tau^r(v))."""
    (w, a), (_, b) = trace_shares(*u, T), trace_shares(*v, T)
    return sum(w[p] * sum(min(a[p][r], b[p].get(r, 0)) for r in a[p]) for p in range(T))


def trace_sim_s(u, v, T):
    """sim_S of order 0 (eq:hs0, E16): in each period the best of all one-to-one mappings of places."""
    (w, a), (_, b) = trace_shares(*u, T), trace_shares(*v, T)
    total = Fraction(0)
    for p in range(T):
        mine, theirs = list(a[p].values()), list(b[p].values())
        few, many = sorted([mine, theirs], key=len)
        chosen = itertools.permutations(many, len(few))
        total += w[p] * max(sum(map(min, few, mapped), Fraction(0)) for mapped in chosen)
    return total


def privacy_verdict(fake, seed, alternates, users, tau, T, *, par_s, par_i, par_d, k, others=(), aligned=False):
    """
    PrivacyTest of fig:alg (E12-E15, E41, E50-E52): what was measured, and the set of rules that rejected.

    Parameters are fractions; `users[i]` made trace `alternates[i]`; `others` are the other seeds, none for "own".
    """

    def on(row):
        return row, tau

    def both_ways(u, v):
        return max(trace_sim_g(on(u), on(v), T), trace_sim_g(on(v), on(u), T))

    sim = both_ways(fake, seed)
    shared = len({r for r in fake if r >= 0} & {r for r in seed if r >= 0})
    equal = sum(1 for a, b in zip(fake, seed, strict=True) if a == b and a >= 0)
    sim_s = trace_sim_s(on(seed), on(fake), T)
    near = {u for u, s in zip(users, alternates, strict=True) if abs(sim_s - trace_sim_s(on(s), on(fake), T)) < par_d}
    rejected = set()
    if sim > par_s:
        rejected.add("similarity")
    if (equal if aligned else shared) > par_i:
        rejected.add("intersection")
    if len(near) < k - 1:
        rejected.add("differential")
    measured = {"sim": sim, "shared": shared, "aligned": equal, "alternates": len(near), "sim_s": sim_s}
    if others:
        measured["closest"] = max(both_ways(fake, s) for s in others)
        nearest = [max(both_ways(stranger, s) for s in (seed, *others)) for stranger in alternates]
        # a user's traces share his weight
        weight = [Fraction(1, users.count(u)) for u in users]
        enough = Fraction(95, 100) * len(set(users))
        measured["quantile"] = min(
            q for q in nearest if sum(w for w, x in zip(weight, nearest, strict=True) if x <= q) >= enough
        )
        if measured["closest"] > measured["quantile"]:
            rejected.add("others")
    return measured, rejected
