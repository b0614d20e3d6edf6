"""
Slow twins: every metric, sampler and gate again, from its definition, with loops.

Imports nothing of ours, so that it can judge us.
"""

import itertools
import math
import statistics
from fractions import Fraction
from itertools import groupby, pairwise


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
    left_for = {}
    for (t, s, a, _), c in moves.items():
        left_for[t, s, a] = left_for.get((t, s, a), 0) + c
    return {
        "pi": {key: c / n for key, c in visits.items()},
        "pi_tau": {(t, a): c / lived[t] for (t, a), c in visits.items()},
        "p": {(t, s, a, b): c / left_for[t, s, a] for (t, s, a, b), c in moves.items()},
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


def town_life(streets, diary, person, u, *, step, slots):
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

    return [seen(k * step) for k in range(slots)]


def trace_shares(row, tau, T):
    """Of one trace: share of its slots in each period, and the share of each place within it, as fractions."""
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


def merged_places(points, visits, cells, distance, centroid):
    """E74 by trying every pair in order: [members of each remaining place], [where it lies], by first member."""
    groups = [([i], point, w) for i, (point, w) in enumerate(zip(points, visits, strict=True))]
    while len(groups) > cells:
        pairs = itertools.combinations(range(len(groups)), 2)
        a, b = min(
            pairs,
            key=lambda ab: (
                distance(groups[ab[0]][1], groups[ab[1]][1]) * max(1, groups[ab[0]][2]) * max(1, groups[ab[1]][2])
            ),
        )
        (left, x, v), (right, y, w) = groups[a], groups[b]
        groups[a] = (left + right, centroid(x, v, y, w), v + w)
        del groups[b]
    return [sorted(members) for members, _, _ in groups], [point for _, point, _ in groups]


def day_slots(fixes, step, hold):
    """
    (user, minute since some midnight, place), in any order -> {(user, day): places}, None where unknown.

    The place of most fixes of a slot, of equals the earliest; else the last fix, if it is at most `hold` minutes old
    when the slot begins; else, before the first fix of a day, that fix, if it comes at most `hold` after the slot.
    """
    fixes = sorted(fixes, key=lambda fix: fix[:2])
    days = {}
    for user, day in sorted({(user, minute // 1440) for user, minute, _ in fixes}):
        places = []
        for start in range(1440 * day, 1440 * (day + 1), step):
            inside = [place for u, minute, place in fixes if u == user and start <= minute < start + step]
            before = [(minute, place) for u, minute, place in fixes if u == user and minute < start]
            after = [(minute, place) for u, minute, place in fixes if u == user and minute >= start]
            today = [minute for minute, _ in before if minute // 1440 == day]
            if inside:
                places.append(max(inside, key=lambda place: (inside.count(place), -inside.index(place))))
            elif hold and before and start - before[-1][0] <= hold:
                places.append(before[-1][1])
            elif hold and not today and after[0][0] - (start + step) <= hold:
                places.append(after[0][1])
            else:
                places.append(None)
        days[user, day] = places
    return days


def people_by_gap(fixes, step, gaps, least=2):
    """{gap: people} from (user, minute, place): who has a day with `least` own slots that `day_slots` fills."""
    told = {}
    for gap in gaps:
        own, filled = day_slots(fixes, step, 0), day_slots(fixes, step, gap)
        usable = [
            user
            for (user, day), places in filled.items()
            if None not in places and sum(p is not None for p in own[user, day]) >= least
        ]
        told[gap] = len(set(usable))
    return told


def shared_places(points, visitors, least, distance, centroid):
    """[members of each place], [where it lies]: while any has fewer than `least` visitors, it joins the nearest."""
    groups = {i: ([i], point, set(who), len(who)) for i, (point, who) in enumerate(zip(points, visitors, strict=True))}
    while len(groups) > 1:
        poor = [(len(who), i) for i, (_, _, who, _) in groups.items() if len(who) < least]
        if not poor:
            break
        i = min(poor)[1]
        members, point, who, weight = groups.pop(i)
        j = min(groups, key=lambda k: (distance(point, groups[k][1]), k))
        others, there, they, heavy = groups[j]
        groups[j] = (others + members, centroid(there, heavy, point, weight), they | who, heavy + weight)
    return [sorted(groups[i][0]) for i in sorted(groups)], [groups[i][1] for i in sorted(groups)]


def towns(slots, distance, reach, slots_in, people_in, a_town):
    """
    The cells that the map keeps, from (user, slot, cell): towns by what they add, until they hold nearly all.

    A person's weight is one, shared among the person's distinct (slot, cell).
    """
    seen = sorted(set(slots))
    own = {user: [cell for u, _, cell in seen if u == user] for user, _, _ in seen}
    cells = sorted({cell for _, _, cell in seen})
    share = {c: sum(mine.count(c) / len(mine) for mine in own.values()) / len(own) for c in cells}
    inside = set()
    while True:
        adds = {
            c: round(sum(share[b] for b in cells if b not in inside and distance(b, c) <= reach), 12) for c in cells
        }
        best = max(cells, key=lambda cell: (adds[cell], -cell))
        settled = sum(2 * sum(c in inside for c in mine) > len(mine) for mine in own.values())
        enough = sum(share[c] for c in inside) >= slots_in - 1e-12 and settled >= people_in * len(own)
        if adds[best] == 0 or (enough and adds[best] < a_town):
            return sorted(inside)
        inside |= {c for c in cells if distance(best, c) <= reach}


def philox(counter, key):
    """One block of Philox4x64-10 (Salmon et al., SC 2011, figure and constants there), in whole numbers."""
    word = (1 << 64) - 1
    c, k = list(counter), list(key)
    for _ in range(10):
        low, high = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
        c = [(high >> 64) ^ c[1] ^ k[0], high & word, (low >> 64) ^ c[3] ^ k[1], low & word]
        k = [(k[0] + 0x9E3779B97F4A7C15) & word, (k[1] + 0xBB67AE8584CAA73B) & word]
    return c


def semantic_seed(seed, label, nearest, number, *, par_c, par_m, par_l, c_min, modes=(False, False), allowed):
    """
    Candidate sets by E38-E45 and the step of the ladder of each; (None, t) if instant t cannot be faked.

    `nearest[c]` lists the other classes, nearest first; `number()` gives the next uniform number, which are used for:
    the members of each class as the seed first meets it (lowest place first), then each boundary (left run, right
    run), then each instant (removal; redraws from the left, from the right).
    `modes`: is par_c drawn per instant, and par_m independently.
    """
    per_instant, independent = modes
    L = len(seed)
    members = {c: sorted(r for r in allowed if label[r] == c) for c in set(label) | set(nearest) if c >= 0}
    visited = {r for r in seed if r >= 0}
    kind = [label[r] if r >= 0 else -1 for r in seed]
    runs = [[t for t, _ in run] for _, run in itertools.groupby(enumerate(kind), key=lambda item: item[1])]

    removed_from_all = {}

    def sub_sample(places):
        kept = []
        for r in places:
            if r not in removed_from_all:
                removed_from_all[r] = number() < par_c
            if not removed_from_all[r]:
                kept.append(r)
        return kept or [places[int(number() * len(places))]] if places else []

    whole, kept_of_class, kept = {}, {}, {}
    for run in runs:
        c = kind[run[0]]
        if c >= 0 and c not in whole:
            wide = set(members[c])
            for near in nearest[c]:
                if 1 < c_min and len(wide - visited) < c_min:
                    wide |= set(members[near])
            if 1 < c_min and len(wide - visited) < c_min:
                wide = set(members[c])
            whole[c] = sorted(wide)
            if not per_instant:
                kept_of_class[c] = sub_sample(whole[c])
        for t in run:
            if c < 0:
                kept[t] = []
            elif per_instant:
                removed_from_all.clear()
                kept[t] = sub_sample(whole[c])
            else:
                kept[t] = kept_of_class[c]

    joins = [set() for _ in range(L)]
    if not independent:
        for left, right in itertools.pairwise(runs):
            for source, slots in ((kept[left[-1]], right), (kept[right[0]], left[::-1])):
                for r in source:
                    u = number()
                    for d, t in enumerate(slots, start=1):
                        if u < par_m**d:
                            joins[t].add(r)

    sets, steps = [], []
    for i, run in enumerate(runs):
        for t in run:
            gone = {seed[t]} if number() < par_l else set()
            if independent:
                for j, d in ((i - 1, t - run[0] + 1), (i + 1, run[-1] + 1 - t)):
                    if 0 <= j < len(runs):
                        nearest_instant = runs[j][-1] if j < i else runs[j][0]
                        joins[t] |= {r for r in kept[nearest_instant] if number() < par_m**d}
            own, merged = set(kept[t]) - gone, joins[t] - gone
            ladder = [(0, own | merged) if own else (1, merged)]
            if kind[t] >= 0:
                ladder.append((2, set(whole[kind[t]]) - gone))
                others = [set(members[c]) - gone for c in nearest[kind[t]]]
                ladder.append((3, next((places for places in others if len(places) >= c_min), set())))
            ladder.append((4, {r for r in allowed if label[r] >= 0} - gone))
            step, places = next(((s, p) for s, p in ladder if p), (None, None))
            if places is None:
                return None, t
            sets.append(sorted(places))
            steps.append(step)
    return sets, steps


def paths(sets, first, p):
    """Every trace through the candidate sets with its probability; p[t][r][r'] from instant t to t + 1."""
    for path in itertools.product(*sets):
        chance = first[path[0]]
        for t in range(len(path) - 1):
            chance = chance * p[t][path[t]][path[t + 1]]
        yield path, chance


def randomised_viterbi(sets, first, p, x_first, x):
    """Randomised Viterbi (E46) with every number given: x_first[r] in the first slot, x[t, r, r'] on every edge."""
    best = {r: (first[r] * x_first[r], (r,)) for r in sets[0]}
    for t in range(len(sets) - 1):
        step = {}
        for r_next in sets[t + 1]:
            scored = [(best[r][0] * p[t][r][r_next] * x[t, r, r_next], best[r][1]) for r in sets[t]]
            score, path = max(scored, key=lambda item: item[0])
            step[r_next] = (score, (*path, r_next))
        largest = max(score for score, _ in step.values()) or 1.0
        best = {r: (score / largest, path) for r, (score, path) in step.items()}
    score, path = max(best.values(), key=lambda item: item[0])
    return path if score > 0 else None


def edges_that_draw(sets, first, p, par_v, number):
    """The numbers that a decoder draws that asks only where par_v could still win: x_first[r] and x[t, r, r']."""
    x_first = {r: 1 + (par_v - 1) * number() for r in sets[0]}
    x, delta = {}, {r: first[r] * x_first[r] for r in sets[0]}
    for t in range(len(sets) - 1):
        score = {(r, s): delta[r] * p[t][r][s] for r in sets[t] for s in sets[t + 1]}
        least = {s: max(score[r, s] for r in sets[t]) for s in sets[t + 1]}
        best = dict.fromkeys(sets[t + 1], 0.0)
        for r in sets[t]:
            for s in sets[t + 1]:
                if score[r, s] > 0 and par_v * score[r, s] >= max(least[s], best[s]):
                    x[t, r, s] = 1 + (par_v - 1) * number()
                    best[s] = max(best[s], score[r, s] * x[t, r, s])
        largest = max(best.values()) or 1.0
        delta = {s: value / largest for s, value in best.items()}
    return x_first, x


def mallows(p, q, d):
    """M_d(p, q) of eq:emdprob as its linear program, every f_ij a variable."""
    from scipy.optimize import linprog

    n = len(p)
    rows, sums = [], []
    for i in range(n):
        rows.append([1.0 if a == i else 0.0 for a in range(n) for b in range(n)])
        sums.append(p[i])
    for j in range(n):
        rows.append([1.0 if b == j else 0.0 for a in range(n) for b in range(n)])
        sums.append(q[j])
    # the last marginal follows from the others, and rounding could make it contradict them
    return linprog([d[i][j] for i in range(n) for j in range(n)], A_eq=rows[:-1], b_eq=sums[:-1]).fun


def common_sim_s(u, v, R, T):
    """sim_S of order 0 with one mapping for all periods (E19): the best of all R! permutations."""
    (w, a), (_, b) = trace_shares(*u, T), trace_shares(*v, T)
    return max(
        sum(w[p] * min(share, b[p].get(sigma[r], 0)) for p in range(T) for r, share in a[p].items())
        for sigma in itertools.permutations(range(R))
    )


def first_order_value(u, v, sigma, pairs=None):
    """
    eq:hs1 for one mapping sigma[r] of all places, over the given pairs of periods (E3, E17); profiles of `profile`.

    The identity gives eq:as1.
    """
    total = 0.0
    for (t, s, a, b), p in u["p"].items():
        if pairs is None or (t, s) in pairs:
            total += u["alpha"][t, s, a] * min(p, v["p"].get((t, s, sigma[a], sigma[b]), 0.0))
    return total


def first_order_sim_s(u, v, R, common=False):
    """eq:hs1 by trying all R! mappings, in every pair of periods, or for all pairs at once (E19)."""
    periods = {(t, s) for t, s, _, _ in u["p"]}
    tasks = [periods] if common else [{pair} for pair in periods]
    return sum(
        max(first_order_value(u, v, sigma, pairs) for sigma in itertools.permutations(range(R))) for pairs in tasks
    )


def first_order_sim_g(u, v, R, d):
    """eq:ds1ex for any distance d in [0, 1]: rows that v never leaves add nothing (E3)."""
    total = 0.0
    for (t, s, a), alpha in u["alpha"].items():
        here = [u["p"].get((t, s, a, b), 0.0) for b in range(R)]
        there = [v["p"].get((t, s, a, b), 0.0) for b in range(R)]
        if sum(there) > 0:
            total += alpha * (1 - mallows(here, there, d))
    return total


def window_q(seed, label, R, par_c, par_m, par_l):
    """q_t(r) = Pr{r in semseed(t)} in closed form, as nested loops; None at unknown classes."""
    L = len(seed)
    classes = [label[r] for r in seed]
    table = []
    for t in range(L):
        if classes[t] < 0:
            table.append(None)
            continue
        first = t
        while first > 0 and classes[first - 1] == classes[t]:
            first -= 1
        last = t
        while last < L - 1 and classes[last + 1] == classes[t]:
            last += 1
        row = []
        for r in range(R):
            if label[r] == classes[t]:
                row.append((1 - par_c) * (1 - par_l * (r == seed[t])))
                continue
            before = par_m ** (t - first + 1) if first > 0 and label[r] == classes[first - 1] >= 0 else 0.0
            after = par_m ** (last + 1 - t) if last < L - 1 and label[r] == classes[last + 1] >= 0 else 0.0
            row.append((1 - par_c) * (1 - (1 - before) * (1 - after)))
        table.append(row)
    return table


def tp_tv(fakes, real, R):
    """Mean over slots of half the sum over places of the difference between shares."""
    total = 0
    for t in range(len(real[0])):
        for r in range(R):
            a, b = (Fraction(sum(row[t] == r for row in rows), len(rows)) for rows in (fakes, real))
            total += abs(a - b) / 2
    return total / len(real[0])


def tm_emd(fakes, real, axis):
    """Mean over places of the work to carry the next cells of one dataset to those of the other, along a line."""

    def law(rows, r):
        after = [axis[b] for row in rows for a, b in itertools.pairwise(row) if a == r] or [axis[r]]
        return [Fraction(after.count(cell), len(after)) for cell in range(max(axis) + 1)]

    total = Fraction(0)
    for r in range(len(axis)):
        here, there = law(real, r), law(fakes, r)
        for i in range(len(here) - 1):  # what is too much here is carried one cell on
            surplus = here[i] - there[i]
            here[i + 1] += surplus
            total += abs(surplus)
    return total / len(axis)


def kl_of_counts(real, other):
    """KL(real || other) in nats of two lists of counts: zeros become .1, then both are normalised (E64)."""
    p, q = ([x if x > 0 else 0.1 for x in counts] for counts in (real, other))
    return sum(a / sum(p) * math.log((a / sum(p)) / (b / sum(q))) for a, b in zip(p, q, strict=True))


def place_counts(rows, R):
    """Visits of each place; -1 is no visit."""
    return [sum(row.count(r) for row in rows) for r in range(R)]


def allocation_kl(real, other, rank, L):
    """E70: share of time of each trace at its place of this rank, sorted over the traces, KL in slots."""

    def shares(rows):
        found = []
        for row in rows:
            known = [r for r in row if r >= 0]
            counts = sorted((known.count(r) for r in set(known)), reverse=True)
            found.append(counts[rank] / len(known) * L if rank < len(counts) else 0)
        return sorted(found)

    return kl_of_counts(shares(real), shares(other))


def aggregate_similarity(real, other, tau, T, R, distance, epsilon):
    """eq:as1 of two sets of traces, the real one first: from rows of the aggregate model, place by place (E73)."""
    total = 0.0
    for row in real:
        for t, r in enumerate(row):
            # the last instant leads nowhere: it counts with the other departures from its place and period
            leads = [
                (tau[s], tau[s + 1]) for u in real for s in range(len(row) - 1) if u[s] == r and tau[s] == tau[t]
            ] or [(tau[t], tau[t])]
            for pair in set(leads):
                weight = leads.count(pair) / len(leads) / len(row) / len(real)
                a, b = (
                    aggregate_row([[x] for x in rows], tau, T, r, pair, distance, epsilon=epsilon)
                    for rows in (real, other)
                )
                total += weight * sum(min(x, y) for x, y in zip(a, b, strict=True))
    return total


def step_distance(real, other, R, position=None):
    """Distance of the next places, weighted by departures: total variation, or work along a line."""

    def law(rows, r):
        after = [b for row in rows for a, b in itertools.pairwise(row) if a == r and b >= 0] or [r]
        return [after.count(x) / len(after) for x in range(R)]

    leaving = [sum(a == r and b >= 0 for row in real for a, b in itertools.pairwise(row)) for r in range(R)]
    total = 0.0
    for r in range(R):
        if leaving[r] == 0:
            continue
        here, there = law(real, r), law(other, r)
        if position is None:
            apart = sum(abs(x - y) for x, y in zip(here, there, strict=True)) / 2
        else:
            order = sorted(range(R), key=lambda x: position[x])
            ahead, apart = 0.0, 0.0
            for x, y in itertools.pairwise(order):
                ahead += here[x] - there[x]
                apart += abs(ahead) * (position[y] - position[x])
        total += leaving[r] / sum(leaving) * apart
    return total


def trace_habits(row, xy, step):
    """Moves, distinct places, entropy, stays in minutes, trips and radius of gyration of one trace."""
    known = [r for r in row if r >= 0]
    share = {r: known.count(r) / len(known) for r in set(known)}
    trips = [math.dist(xy[a], xy[b]) for a, b in itertools.pairwise(row) if a >= 0 and b >= 0 and a != b]
    stays = [step * len(list(run)) for r, run in itertools.groupby(row) if r >= 0]
    centre = [sum(w * xy[r][axis] for r, w in share.items()) for axis in (0, 1)]
    radius = math.sqrt(sum(w * math.dist(xy[r], centre) ** 2 for r, w in share.items()))
    return len(trips), len(share), -sum(w * math.log(w) for w in share.values()), stays, trips, radius


def hidden_chain(sets, weights, first, p):
    """
    Posterior of each hidden place at each instant, and the largest probability of a sequence; by enumeration.

    `sets[t]` are the candidates of instant t, `weights[t]` what they are worth, `p[t]` the moves from t to t + 1.
    """
    total, best = 0.0, 0.0
    posterior = [dict.fromkeys(s, 0.0) for s in sets]
    for path in itertools.product(*[range(len(s)) for s in sets]):
        places = [s[i] for s, i in zip(sets, path, strict=True)]
        w = first[places[0]]
        for t, i in enumerate(path):
            w *= weights[t][i] * (p[t - 1][places[t - 1]][places[t]] if t else 1)
        total += w
        best = max(best, w)
        for t, r in enumerate(places):
            posterior[t][r] += w
    return posterior, total, best


def seen_by_service(truth, fakes, exposed, between):
    """Hidden candidates of each instant: what was sent, or else usual places and what was sent before and after."""
    sent = [{truth[t], *(f[t] for f in fakes if f[t] >= 0)} if exposed[t] else set() for t in range(len(truth))]
    found = []
    for t, here in enumerate(sent):
        if here:
            found.append(here)
            continue
        before = next((sent[s] for s in range(t, -1, -1) if sent[s]), set())
        after = next((sent[s] for s in range(t, len(sent)) if sent[s]), set())
        found.append(before | after | set(between))
    return sent, found


def struck_out(sent, pool):
    """What remains of the sets sent once every trace of the pool that lies in all of them is struck out (A19)."""
    seen = [t for t, s in enumerate(sent) if s]
    fits = [f for f in pool if seen and all(f[t] in sent[t] for t in seen)]
    return [(s - {f[t] for f in fits}) or s for t, s in enumerate(sent)]


def roles(r, user, tau, R, T, ranks):
    """How many people have each place at each rank, of the day (if T > 1) and of each period; ties shared (E22)."""

    def table(periods, n):
        out = [[0.0] * (n * ranks) for _ in range(R)]
        for u in set(user):
            for p in range(n):
                counts = {}
                for row, owner in zip(r, user, strict=True):
                    for place, t in zip(row, periods, strict=True):
                        if owner == u and t == p and place >= 0:
                            counts[place] = counts.get(place, 0) + 1
                for place, c in counts.items():
                    above = sum(x > c for x in counts.values())
                    tied = sum(x == c for x in counts.values())
                    for i in range(above, above + tied):
                        out[place][p * ranks + min(i, ranks - 1)] += 1 / tied
        return out

    by_period = table(tau, T)
    return [day + part for day, part in zip(table([0] * len(tau), 1), by_period, strict=True)] if T > 1 else by_period


def mutual_information_beyond_chance(one, other):
    """sum p(a, b) log(p(a, b) / p(a) p(b)) of two labellings, minus its mean over all orders of the second (E29)."""
    n = len(one)

    def told(second):
        total = 0.0
        for a in set(one):
            for b in set(second):
                both = sum(x == a and y == b for x, y in zip(one, second, strict=True))
                if both:
                    total += both / n * math.log(both * n / (one.count(a) * second.count(b)))
        return total

    shuffled = [told(list(order)) for order in itertools.permutations(other)]
    return told(other) - sum(shuffled) / len(shuffled)


def shared_information(own, other, centres):
    """Score of one half's centres: places that both halves visit, by own roles and by the other half's (E29)."""

    def nearest(row):
        root = [math.sqrt(x) for x in row]
        length = math.sqrt(sum(x * x for x in root))
        away = [sum((x / length - c) ** 2 for x, c in zip(root, centre, strict=True)) for centre in centres]
        return away.index(min(away))

    both = [i for i in range(len(own)) if any(own[i]) and any(other[i])]
    if not both:
        return 0.0
    return mutual_information_beyond_chance([nearest(own[i]) for i in both], [nearest(other[i]) for i in both])


def merge_small_classes(classes, w, c_min):
    """`classes`, a list of sets of places; smallest first into the class of largest mean edge weight (E30)."""
    classes = [set(c) for c in classes]
    while len(classes) > 1 and min(map(len, classes)) < c_min:
        small = min(classes, key=len)
        rest = [c for c in classes if c is not small]
        max(rest, key=lambda c: sum(w[a][b] for a in small for b in c) / (len(small) * len(c))).update(small)
        classes = rest
    return classes


def merge_rare(r, user, distance, m_min):
    """What stands for each place: itself with `m_min` users, else the nearest such place (E31)."""
    users = [{u for row, u in zip(r, user, strict=True) if place in row} for place in range(len(distance))]
    kept = [place for place in range(len(users)) if len(users[place]) >= m_min]
    return [p if p in kept else min(kept, key=lambda q: distance[p][q]) for p in range(len(users))]


def completions(row, places, evidence):
    """Every way to fill the missing (None) or uncertain slots of a row, with the product of the evidence weights."""
    choices = []
    for t, place in enumerate(row):
        if t in evidence:
            choices.append(list(evidence[t].items()))
        else:
            choices.append([(p, 1.0) for p in (places if place is None else [place])])
    for picks in itertools.product(*choices):
        yield [p for p, _ in picks], math.prod(w for _, w in picks)


def chain_posterior(rows, places, feasible, prior, evidence=None):
    """
    E4 by enumeration: (mean visits, mean moves, mean p) of all completions of a user's rows, T = 1.

    A completion weighs its evidence times the Dirichlet-multinomial probabilities of its first places (over `places`)
    and of its moves (over the `feasible` moves of each place), pseudo-count prior / number of places each.
    `evidence[row][t]` is {place: weight}.
    """
    evidence = evidence or [{} for _ in rows]
    a = prior / len(places)

    def log_evidence(counts):
        total = sum(counts)
        value = math.lgamma(a * len(counts)) - math.lgamma(a * len(counts) + total)
        return value + sum(math.lgamma(a + n) - math.lgamma(a) for n in counts)

    found = []
    for filled in itertools.product(*(list(completions(r, places, e)) for r, e in zip(rows, evidence, strict=True))):
        moves = {(i, j): 0 for i in places for j in feasible[i]}
        if any(step not in moves for row, _ in filled for step in itertools.pairwise(row)):
            continue
        for row, _ in filled:
            for step in itertools.pairwise(row):
                moves[step] += 1
        log = sum(math.log(w) for _, w in filled)
        log += log_evidence([sum(row[0] == p for row, _ in filled) for p in places])
        log += sum(log_evidence([moves[i, j] for j in feasible[i]]) for i in places)
        visits = {p: sum(row.count(p) for row, _ in filled) for p in places}
        leaving = {i: sum(moves[i, j] for j in feasible[i]) for i in places}
        p = {(i, j): (n + a) / (leaving[i] + a * len(feasible[i])) for (i, j), n in moves.items()}
        found.append((log, visits, moves, p))
    top = max(log for log, *_ in found)
    total = sum(math.exp(log - top) for log, *_ in found)

    def mean(which):
        keys = found[0][which]
        return {key: sum(math.exp(f[0] - top) * f[which][key] for f in found) / total for key in keys}

    return mean(1), mean(2), mean(3)


def filled_slots(minutes, step, longest, policy):
    """
    Slots of one day from sorted fix times (minutes): ("fix",), ("held", i), ("way", i, share) or None per slot.

    "hold": the last fix i is at most `longest` old when the slot begins, or i is the first of all and comes at most
    `longest` after the slot's end. "interpolate": the fixes before and after are
    at most `longest` apart, and the middle of the slot lies at `share` of the way between them.
    """
    told = []
    for start in range(0, 1440, step):
        before = [i for i, m in enumerate(minutes) if m < start]
        after = [i for i, m in enumerate(minutes) if m >= start]
        if any(start <= m < start + step for m in minutes):
            told.append(("fix",))
        elif policy == "hold":
            if longest and before and start - minutes[before[-1]] <= longest:
                told.append(("held", before[-1]))
            elif longest and not before and minutes[0] - (start + step) <= longest:
                told.append(("held", 0))
            else:
                told.append(None)
        elif before and after and minutes[after[0]] - minutes[before[-1]] <= longest:
            a, b = minutes[before[-1]], minutes[after[0]]
            told.append(("way", before[-1], (start + step / 2 - a) / (b - a)))
        else:
            told.append(None)
    return told


def stays(fixes, distance, reach, least):
    """Li et al. 2008: number of the stay of each (user, second, point), in order; None on the way."""
    told, i, number = [None] * len(fixes), 0, 0
    while i < len(fixes):
        near = [i]
        for j in range(i + 1, len(fixes)):
            if fixes[j][0] != fixes[i][0] or distance(fixes[i][2], fixes[j][2]) > reach:
                break
            near.append(j)
        if fixes[near[-1]][1] - fixes[i][1] >= least:
            for j in near:
                told[j] = number
            number += 1
            i = near[-1] + 1
        else:
            i += 1
    return told


def anchored(fixes, distance, mean):
    """
    Where each (user, second, point) counts, in order, or None where it is: anchors, person by person, in km.

    Stays of 20 minutes within 100 m; the longest (most fixes) first, a stay within 100 m of the first stay of an anchor
    joins the nearest such; a fix within 200 m of own anchors (means of all fixes of their stays) is at the nearest.
    """
    told = [None] * len(fixes)
    for user in {f[0] for f in fixes}:
        mine = [i for i, f in enumerate(fixes) if f[0] == user]
        points = [fixes[i][2] for i in mine]
        steps = [(a, b) for a, b in itertools.pairwise(points) if distance(a, b) <= 0.2]
        if 2 * sum(a == b for a, b in steps) >= len(steps):
            continue
        of = stays([fixes[i] for i in mine], distance, 0.1, 1200)
        found = [
            [points[i] for i in range(len(mine)) if of[i] == s]
            for s in range(max([-1 if s is None else s for s in of]) + 1)
        ]
        anchors = []  # [mean of the first stay, all fixes]
        for stay in sorted(found, key=len, reverse=True):
            near = [a for a in anchors if distance(mean(stay), a[0]) <= 0.1]
            if near:
                min(near, key=lambda a: distance(mean(stay), a[0]))[1].extend(stay)
            else:
                anchors.append([mean(stay), list(stay)])
        for i, point in zip(mine, points, strict=True):
            near = [mean(all_of) for _, all_of in anchors if distance(point, mean(all_of)) <= 0.2]
            if near:
                told[i] = min(near, key=lambda a: distance(point, a))
    return told


def winding(point, ring):
    """How often a closed ring of (x, y) goes round a point, by adding up angles."""
    total = 0.0
    for (ax, ay), (bx, by) in zip(ring, ring[1:] + ring[:1], strict=True):
        a = math.atan2(ay - point[1], ax - point[0])
        b = math.atan2(by - point[1], bx - point[0])
        turn = b - a
        total += turn - 2 * math.pi * round(turn / (2 * math.pi))
    return round(total / (2 * math.pi))


def agreement(fake, person, label):
    """Share of slots, both classes known, at which the two are at places of one class."""
    both = [(label[f], label[s]) for f, s in zip(fake, person, strict=True) if f >= 0 and s >= 0]
    both = [(a, b) for a, b in both if a >= 0 and b >= 0]
    return sum(a == b for a, b in both) / len(both) if both else 0.0


def day_statistics(row, xy):
    """The statistics of one day that need nothing but the day; `xy` None without coordinates."""
    L = len(row)
    count = {place: row.count(place) for place in row}
    moves = [(a, b) for a, b in itertools.pairwise(row) if a != b]
    between = (lambda a, b: math.dist(xy[a], xy[b])) if xy else (lambda a, b: 1.0)
    lengths = [between(a, b) for a, b in moves]
    cosines = []
    for (a, b), (c, d) in itertools.pairwise(moves) if xy else ():
        v, w = ([xy[q][i] - xy[p][i] for i in (0, 1)] for p, q in ((a, b), (c, d)))
        cosines.append((v[0] * w[0] + v[1] * w[1]) / math.hypot(*v) / math.hypot(*w))
    returns = sum(1 for t in range(1, L) if row[t] != row[t - 1] and row[t] in row[:t])
    spread = 0.0
    if xy:
        middle = [sum(xy[place][i] for place in row) / L for i in (0, 1)]
        spread = math.sqrt(sum(math.dist(xy[place], middle) ** 2 for place in row) / L)
    return [
        len(moves),
        len(count),
        -sum(n / L * math.log(n / L) for n in count.values()),
        max(count.values()) / L,
        max(len(list(stay)) for _, stay in itertools.groupby(row)),
        returns / len(moves) if moves else 0.0,
        spread,
        max(lengths, default=0.0),
        sum(lengths),
        sum(cosines) / len(cosines) if cosines else 0.0,
        float(row[0] == row[-1]),
    ]


def walk_columns(history, lengths, sectors, L):
    """
    The columns of a walk's weights after `history`: the four of moving, and of every other place the four of where.

    Weights: see the head of synthesis/walk/fit.py. Lengths 3 and above are long; directions are sectors of 16.
    """
    t, now = len(history), history[-1]
    places = [r for i, r in enumerate(history) if i == 0 or r != history[i - 1]]  # one entry per stay
    moves = list(itertools.pairwise(places))
    moved = [a != b for a, b in itertools.pairwise(history)]
    dwell = next((i for i, m in enumerate(reversed(moved)) if m), len(moved)) + 1
    far = [lengths[a][b] >= 3 for a, b in moves]
    if not moves:
        kind = 0
    elif far[-1]:
        kind = 4 if sum(far) == 1 else 5
    else:
        kind = 1 + min(sum(far), 2)
    still = int(dwell > 1)
    # whether to move
    pattern = sum(2**i for i, m in enumerate(reversed(moved[-4:])) if m)
    d = [0, 1, 2, 3, 3, 4, 4, 4, 5][min(dwell, 9) - 1]
    if not moved:
        rate = 0
    elif not moves:
        rate = 1 if len(moved) < 4 else 2
    else:
        rate = 3 + sum(len(moves) / len(moved) >= x for x in (0.15, 0.3, 0.5, 0.75))

    def turn(a, b):
        if a < 0 or b < 0:
            return 0
        away = abs((b - a + 8) % 16 - 8)
        return 1 if away >= 7 else 2 if away == 6 else 3 if away >= 4 else 4 if away >= 2 else 5

    # where to
    came = sectors[moves[-1][0]][now] if moves else -1
    origin = moves[-4][0] if len(moves) >= 4 else history[0]
    where = {}
    for r in range(len(lengths)):
        if r == now:
            continue
        long = int(lengths[now][r] >= 3)
        if moves and r == moves[-1][0]:
            seen = 1 + still
        elif r == history[0]:
            seen = 3
        elif r in history:
            seen = 5 if r in history[-8:] else 4
        else:
            seen = 0
        where[r] = (
            (2 * kind + still) * 7 + lengths[now][r],
            84 + 4 * turn(came, sectors[now][r]) + 2 * still + long,
            108 + 2 * turn(sectors[origin][now], sectors[now][r]) + long,
            120 + seen,
        )
    return (pattern, 16 + 8 * d + rate, 64 + 24 * t // L, 88 + 2 * kind + still), where


def walk_further_columns(history, lengths, sectors):
    """The further columns of a walk's weights after `history`: three of moving, and of each place the four of where."""
    now = history[-1]
    stays = [(place, len(list(run))) for place, run in itertools.groupby(history)]
    moves = list(itertools.pairwise(place for place, _ in stays))
    headings = [sectors[a][b] for a, b in moves]

    def turn(a, b):
        """Degrees, clockwise or not, in steps of 22.5; None where one has no direction."""
        return None if a < 0 or b < 0 else ((b - a + 8) % 16 - 8) * 22.5

    def size(degrees):
        return 9 if degrees is None else int(abs(degrees) / 22.5)

    bent = turn(headings[-2], headings[-1]) if len(moves) > 1 else None
    bend = 0 if bent is None else 1 + sum(abs(bent) > x for x in (30, 80, 120))
    last = lengths[moves[-1][0]][now] if moves else 7
    dwell = stays[-1][1]
    d = sum(dwell > x for x in (1, 2, 3, 5, 8))
    before = stays[-2][1] if moves else 0
    here, elsewhere = history.count(now), max((history.count(r) for r in history if r != now), default=0)
    moving = (
        100 + 10 * (0 if dwell == 1 and before == 1 else d + 1) + 2 * bend + int(3 <= last < 7),
        170 + 6 * d + (before if before < 4 else 4 if before < 6 else 5),
        206 + 8 * sum(here > x for x in (1, 2, 3, 5, 8)) + sum(elsewhere > x for x in (0, 1, 2, 3, 5, 8, 13)),
    )
    course = sectors[moves[-8:][0][0]][now] if moves else -1
    on = [size(turn(course, heading)) <= 2 for heading in headings[-8:]]
    steady = 2 if not on else sum(sum(on) / len(on) >= x for x in (0.5, 0.8))
    where = {}
    for r in range(len(lengths)):
        s, far = sectors[now][r], int(lengths[now][r] >= 3)
        again = turn(headings[-1], s) if moves else None
        if again is None:
            zig = 0
        elif not bent:  # none before, or straight on: left is as good as right
            zig = 1 + size(again)
        else:
            zig = 1 + int((again if bent > 0 or abs(bent) == 180 else -again) / 22.5) % 16
        paced = 2 * (len(history) > 2 and history[-2] != history[-3]) + (dwell == 1 and len(history) > 1)
        where[r] = (
            126 + 20 * paced + 2 * size(again) + far,
            206 + 34 * bend + 2 * zig + far,
            376 + 20 * steady + 2 * size(turn(course, s)) + far,
            436 + 14 * last + 7 * (not (dwell == 1 and len(history) > 1)) + lengths[now][r],
        )
    return moving, where


def walk_step(history, w, L):
    """P(next place | history) of a walk from its definition, as a list over places; `w` is a dict of plain lists."""
    import math

    R = len(w["first"])
    if not history:
        return list(w["first"])
    now = history[-1]
    places = [r for i, r in enumerate(history) if i == 0 or r != history[i - 1]]
    moving, where = walk_columns(history, w["lengths"], w["sectors"], L)
    if len(w["moving"]) > 100:  # the private preset's walk has no further weights
        more, further = walk_further_columns(history, w["lengths"], w["sectors"])
        moving += more
        where = {r: columns + further[r] for r, columns in where.items()}
    p = 1 / (1 + math.exp(-sum(w["moving"][c] for c in moving) - w["leaving"][now]))
    weight = {}
    for r in w["places"]:
        if r == now:
            continue
        weight[r] = w["steps"][now][r] * math.prod(w["factor"][c] for c in where[r])
        if len(places) > 1:
            weight[r] *= w["onward"].get((places[-2], now, r), 1.0)
    total = sum(weight.values())
    if total == 0:
        return [float(r == now) for r in range(R)]
    return [1 - p if r == now else p * weight.get(r, 0.0) / total for r in range(R)]


def person_vector(days, lengths, sectors, rate, share, most, weight, parts=4):
    """
    The vector of one person under the private preset, from its definition: a dict of cell -> number.

    `days` are lists of places; the vector is the mean of those of each day. Blocks: time by place, what differs from it
    in each part of the day, arrivals, moving, destinations, day statistics, move pairs; each divided by its norm or by
    `most`, whichever is larger, and weighted.
    """
    out = {}
    for day in days:
        for cell, x in day_vector(day, lengths, sectors, rate, share, most, weight, parts).items():
            out[cell] = out.get(cell, 0.0) + x / len(days)
    return out


def day_vector(day, lengths, sectors, rate, share, most, weight, parts):
    """The vector of one day, see `person_vector`."""
    import math

    R, L = len(lengths), len(day)
    blocks = [{} for _ in range(7)]

    def add(block, cell, amount):
        blocks[block][cell] = blocks[block].get(cell, 0.0) + amount

    def count_bin(n):
        return n if n < 6 else min(6 + math.floor(2 * math.log2(n / 6) + 1e-9), 15)

    part = [min(t * parts // L, parts - 1) for t in range(L)]
    for r in set(day):
        add(0, r, day.count(r) / L)
        for p in range(parts):
            here = sum(place == r and q == p for place, q in zip(day, part, strict=True))
            add(1, p * R + r, here / L - day.count(r) / L * part.count(p) / L)
    for a, b in {pair for pair in itertools.pairwise(day) if pair[0] != pair[1]}:
        add(6, a * R + b, 1.0)
    for t in range(1, L):
        moving, where = walk_columns(day[:t], lengths, sectors, L)
        for c in moving:
            add(3, c, (day[t] != day[t - 1]) - rate[c])
        if day[t] == day[t - 1]:
            continue
        add(2, day[t], 1.0)
        own = where[day[t]]
        for c in own:
            add(4, c, 1.0)
        still = (own[1] - 84) // 2 % 2
        groups = [c for c in range(84, 108) if (c - 84) // 2 % 2 == still] + list(range(108, 126))
        for c in [*range(own[0] // 7 * 7, own[0] // 7 * 7 + 7), *groups]:
            add(4, c, -share[c])
    longest = max(day.count(r) for r in day)
    add(5, count_bin(sum(a != b for a, b in itertools.pairwise(day))), 1.0)
    add(5, 16 + count_bin(len(set(day)) - 1), 1.0)
    add(5, 32 + 10 * longest // L, 1.0)
    add(5, 43 + (day[0] == day[-1]), 1.0)
    first, out = 0, {}
    sizes = (R, parts * R, R, 100, 126, 45, R * R)
    for block, size, bound, share_of in zip(blocks, sizes, most, weight, strict=True):
        norm = math.sqrt(sum(x * x for x in block.values()))
        for cell, x in block.items():
            out[first + cell] = share_of * x / max(norm, bound)
        first += size
    return out


def life_habits(days, weekend, lengths, as_many, parts=4):
    """
    What the days of one life have in common under the private preset, from its definition: a list of 34 numbers.

    `days` are lists of places, `weekend` says which are at a weekend, `as_many` days a fake lives.
    """
    L, D = len(days[0]), len(days)
    part = [min(t * parts // L, parts - 1) for t in range(L)]

    def usual(places):
        return min(set(places), key=lambda r: (-places.count(r), r)) if places else -1

    home = usual([r for day in days for r, p in zip(day, part, strict=True) if p == 0])
    middle = [
        r
        for day, off in zip(days, weekend, strict=True)
        for r, p in zip(day, part, strict=True)
        if not off and 0 < p < parts - 1 and r != home
    ]
    main = usual(middle)
    if main < 0:
        main = usual([r for day in days for r in day if r != home])
    out = [0.0] * 34
    for day, off in zip(days, weekend, strict=True):
        out[off] += 1 / D
        for p in range(parts):
            there = [r for r, q in zip(day, part, strict=True) if q == p]
            out[2 + off * parts + p] += there.count(home) / len(there) / D
            out[10 + off * parts + p] += there.count(main) / len(there) / D
        out[18 + off] += (main in day) / D
        out[20 + off] += min(sum(a != b for a, b in itertools.pairwise(day)), 24) / 24 / D
    sets = [set(day) for day in days]
    if D > 1:
        out[22] = 1.0
        out[23] = sum(len(a & b) / len(a | b) for a, b in itertools.pairwise(sets)) / (D - 1)
    if as_many == D:
        out[24] = 1.0
        out[25] = len(set().union(*sets)) / sum(map(len, sets))
    out[26 + (lengths[home][main] if main >= 0 else 7)] = 1.0
    return out


def draw_walk(uniform, w, L):
    """A trace of a walk from its definition: of each step first whether it is a move, then where it leads."""
    trace = []
    for t in range(L):
        law = walk_step(trace, w, L)
        if t == 0:
            point, wanted = uniform[0], law
        elif uniform[2 * t - 1] >= 1 - law[trace[-1]]:
            trace.append(trace[-1])
            continue
        else:
            moving = 1 - law[trace[-1]]
            point, wanted = uniform[2 * t], [0.0 if r == trace[-1] else p / moving for r, p in enumerate(law)]
        passed = 0.0
        for r in w["places"]:
            passed += wanted[r]
            if point < passed:
                break
        trace.append(r)
    return trace


def neighbour_agreement(label, like):
    """How much more people agree with the `like` others who agree most with them than with anybody."""
    N, total, near = len(label), 0.0, 0.0
    for i, mine in enumerate(label):
        agreement = sorted(
            sum(a == b >= 0 for a, b in zip(mine, theirs, strict=True)) / len(mine)
            for j, theirs in enumerate(label)
            if j != i
        )
        total += sum(agreement) / (N - 1)
        near += sum(agreement[-like:]) / like
    return (near - total) / N


def shared_moves(r, who, R, m_min):
    """
    What `m_min` users share of the moves in traces `r` without gaps, row i of user who[i] (synthesis/walk/fit.py).

    Counts of moves, of further moves out of each place, arrivals plus a half, and counts of moves after moves.
    """
    moves, after = [], []
    for f, u in zip(r, who, strict=True):
        before = None
        for a, b in itertools.pairwise(f):
            if a != b:
                moves.append((a, b, u))
                if before is not None:
                    after.append((before, a, b, u))
                before = a

    def enough(rows):
        return len({row[-1] for row in rows}) >= m_min

    count = {}
    for a, b in {m[:2] for m in moves}:
        mine = [m for m in moves if m[:2] == (a, b)]
        if enough(mine):
            count[a, b] = len(mine)
    lost = [m for m in moves if m[:2] not in count]
    rest, arrivals = [0] * R, [0.5] * R
    for x in range(R):
        out, into = [m for m in lost if m[0] == x], [m for m in lost if m[1] == x]
        rest[x] = len(out) if enough(out) else 0
        arrivals[x] += sum(n for (_, b), n in count.items() if b == x) + (len(into) if enough(into) else 0)
    onward = {}
    for key in {m[:3] for m in after}:
        mine = [m for m in after if m[:3] == key]
        if enough(mine):
            onward[key] = len(mine)
    return count, rest, arrivals, onward


def shared_beginnings(r, who, R, m_min):
    """Per place, traces there per slot in the first 1, 2, 4 ... slots: as few as have `m_min` users there."""
    out, L = [0.0] * R, len(r[0])
    for x in range(R):
        w = 1
        while True:
            if len({u for f, u in zip(r, who, strict=True) if x in f[:w]}) >= m_min:
                out[x] = sum(f[:w].count(x) for f in r) / min(w, L)
                break
            if w >= L:
                break
            w *= 2
    return out


def pooled(values, who, low, high, walked, m_min):
    """Shares of the numbers low .. high, put together going up until `m_min` users are, and shared out as `walked`."""
    pools, pool = [], []
    for n in range(low, high + 1):
        pool.append(n)
        if len({u for v, u in zip(values, who, strict=True) if v in pool}) >= m_min:
            pools.append(pool)
            pool = []
    if not pools:
        pools = [[]]
    pools[-1] += pool
    out = {}
    for pool in pools:
        share = sum(v in pool for v in values) / len(values)
        total = sum(walked[n] for n in pool)
        for n in pool:
            out[n] = share * (walked[n] / total if total > 0 else 1 / len(pool))
    return out


def life_measures(days, numbers, weekend, minutes, xy):
    """Measures of one life, day by day and instant by instant: lists of places, one per day."""
    L = len(days[0])
    mean = lambda x: sum(x) / len(x) if len(x) else math.nan  # noqa: E731
    km = lambda a, b: math.dist(xy[a], xy[b])  # noqa: E731

    def usual(places):
        return max(sorted(set(places)), key=places.count)

    night = [t for t in range(L) if minutes[t] < 360]
    office = [t for t in range(L) if 540 <= minutes[t] < 1020]
    everything = [r for day in days for r in day]
    home = usual([day[t] for day in days for t in night] or everything)
    work = [d for d, off in zip(days, weekend, strict=True) if not off]
    rest = [day[t] for day in work for t in office if day[t] != home] or [r for r in everything if r != home]
    main = usual(rest) if rest else -1
    f = {}
    centre = [mean([xy[r][axis] for r in everything]) for axis in (0, 1)]
    f["radius_of_gyration"] = math.sqrt(mean([math.dist(xy[r], centre) ** 2 for r in everything]))
    for d in (1, 2, 3, 7, 14, 28):
        f[f"places_after_{d}_days"] = len({r for day in days[:d] for r in day}) if len(days) >= d else math.nan
    f["home_share"] = mean([r == home for r in everything])
    f["night_share"] = mean([day[t] == home for day in days for t in night])
    f["main_share"] = mean([day[t] == main for day in work for t in office])
    f["main_days"] = mean([main in day for day in work])
    long = numbers[-1] - numbers[0] >= 13
    hours = {}
    for i, (day, number, off) in enumerate(zip(days, numbers, weekend, strict=True)):
        for t, r in enumerate(day):
            hours.setdefault((number % 7 if long else off, minutes[t] // 60), []).append((i, r))
    kept = [[r for _, r in seen] for seen in hours.values() if len({i for i, _ in seen}) > 1]
    f["regularity"] = sum(s.count(usual(s)) for s in kept) / sum(map(len, kept)) if kept else math.nan
    shares = [everything.count(r) / len(everything) for r in set(everything)]
    f["entropy"] = -sum(s * math.log(s) for s in shares)
    f["jaccard"] = mean(
        [
            len(set(a) & set(b)) / len(set(a) | set(b))
            for (a, i), (b, j) in pairwise(zip(days, numbers, strict=True))
            if j == i + 1
        ]
    )
    f["trip_length"] = mean([km(a, b) for day in days for a, b in pairwise(day) if a != b])
    moves = [sum(a != b for a, b in pairwise(day)) for day in days]
    f["moves_weekday"] = mean([m for m, off in zip(moves, weekend, strict=True) if not off])
    f["moves_weekend"] = mean([m for m, off in zip(moves, weekend, strict=True) if off])
    f["moves_spread"] = math.sqrt(mean([(m - mean(moves)) ** 2 for m in moves])) if len(days) > 1 else math.nan
    f["still_days"] = mean([m == 0 for m in moves])
    once = [sum(r in day for day in days) == 1 for r in set(everything)]
    f["seen_one_day"] = mean(once) if len(days) > 1 else math.nan
    f["farthest"] = max(km(home, r) for r in everything)
    f["ends_where_it_began"] = mean([day[0] == day[-1] for day in days])
    return f


def places_grown(days):
    """Distinct places after 1, 2, ... days."""
    return [len({r for day in days[: d + 1] for r in day}) for d in range(len(days))]


def week_of(days, kind, weekend, minutes, kinds):
    """For home and main place, by kind of day and hour: the share of slots there; NaN where there are none."""
    found = []
    for place in home_and_main(days, weekend, minutes):
        shares = []
        for k in range(kinds):
            for hour in range(24):
                seen = [
                    r
                    for day, mine in zip(days, kind, strict=True)
                    for r, m in zip(day, minutes, strict=True)
                    if mine == k and m // 60 == hour
                ]
                shares.append(seen.count(place) / len(seen) if seen and place >= 0 else math.nan)
        found.append(shares)
    return found


def home_and_main(days, weekend, minutes):
    """The usual place at night, and the usual other one at the office hours of weekdays; [home, main], -1 for none."""
    usual = lambda places: max(sorted(set(places)), key=places.count)  # noqa: E731
    everything = [r for day in days for r in day]
    home = usual([r for day in days for r, m in zip(day, minutes, strict=True) if m < 360] or everything)
    work = [
        r
        for day, off in zip(days, weekend, strict=True)
        for r, m in zip(day, minutes, strict=True)
        if not off and 540 <= m < 1020 and r != home
    ]
    rest = work or [r for r in everything if r != home]
    return [home, usual(rest) if rest else -1]


def recurring(sent, weekend, minutes, R):
    """For each place the chance to be guessed as home, and as main place: sent[day][line][instant]."""

    def hours(day_numbers, when):
        seen = [set() for _ in range(R)]
        for d in day_numbers:
            for line in sent[d]:
                for r, m in zip(line, minutes, strict=True):
                    if when(m):
                        seen[r].add((d, m // 60))
        return [len(s) for s in seen]

    def top(score):
        return [1 / score.count(max(score)) if s == max(score) else 0 for s in score]

    everyday = range(len(sent))
    night = (lambda m: m < 360) if any(m < 360 for m in minutes) else (lambda m: True)
    home = top(hours(everyday, night))
    workdays = [d for d in everyday if not weekend[d]]
    for days, when in ((workdays, lambda m: 540 <= m < 1020), (everyday, lambda m: True)):
        score = [0 if h else s for s, h in zip(hours(days, when), home, strict=True)]
        if any(score):
            return home, top(score)
    return home, [0] * R


def portrait(days, weekend, minutes):
    """Home, main place, and eight figures of a life."""
    home, main = home_and_main(days, weekend, minutes)
    mean = lambda x: sum(x) / len(x) if x else math.nan  # noqa: E731
    pairs = lambda wanted: [  # noqa: E731
        r for day, off in zip(days, weekend, strict=True) for r, m in zip(day, minutes, strict=True) if wanted(m, off)
    ]
    moves = [sum(a != b for a, b in pairwise(day)) for day in days]
    kind = [
        mean([r == home for day in days for r in day]),
        mean([r == home for r in pairs(lambda m, off: m < 360)]),
        mean([r == main for r in pairs(lambda m, off: 540 <= m < 1020 and not off)]),
        mean(moves),
        mean([len(set(day)) for day in days]),
        math.sqrt(mean([(m - mean(moves)) ** 2 for m in moves])) if len(days) > 1 else math.nan,
        len({r for day in days for r in day}),
        mean([len(set(a) & set(b)) / len(set(a) | set(b)) for a, b in pairwise(days)]),
    ]
    return [home, main, kind]


def best_explained(fakes, people):
    """Share of the fakes that each user's own moves make most likely, ties shared: people[user] is a list of days."""
    share = [0.0] * len(people)
    for fake in fakes:
        scores = []
        for days in people:
            steps = [step for day in days for step in pairwise(day)]
            score = 0.0
            for a, b in pairwise(fake):
                leaving = sum(x == a for x, _ in steps)
                score += math.log(steps.count((a, b)) / leaving if (a, b) in steps else 1e-8)
            scores.append(round(score, 9))
        for user, score in enumerate(scores):
            share[user] += (score == max(scores)) / scores.count(max(scores)) / len(fakes)
    return share


def as_many_days(lives, people, own):
    """Chance of each life to be given its own user by the number of days alone."""
    alike = [[len(days) == len(life) for days in people] for life in lives]
    return [same[u] / sum(same) if same[u] else 0 for same, u in zip(alike, own, strict=True)]


def whole_life(lives, people, own, label, shift):
    """The same by slots in one class, day by day in order as long as both have days, at the best shift."""
    found = []
    for life, u in zip(lives, own, strict=True):
        score = []
        for days in people:
            best = 0
            for early in range(-shift, shift + 1):
                n = 0
                for fake, day in zip(life, days, strict=False):
                    for t in range(len(fake)):
                        at = min(max(t - early, 0), len(day) - 1)
                        n += label[fake[t]] >= 0 and label[fake[t]] == label[day[at]]
                best = max(best, Fraction(n, min(len(life), len(days))))
            score.append(best)
        found.append(1 / score.count(max(score)) if score[u] == max(score) else 0)
    return found


def inside_ring(ring, x, y):
    """Whether a point is inside a ring by the even-odd rule: how many sides a ray to the east crosses."""
    crossings = 0
    for (ax, ay), (bx, by) in zip(ring, ring[1:] + ring[:1], strict=True):
        if (ay > y) != (by > y) and ax + (y - ay) * (bx - ax) / (by - ay) > x:
            crossings += 1
    return crossings % 2 == 1


def trips_between(r, zone):
    """{(zone, zone): trips, both ways}, and the number of all trips, from one known instant to the next."""
    found, total = {}, 0
    for row in r:
        known = [place for place in row if place >= 0]
        for a, b in itertools.pairwise(known):
            if a != b:
                total += 1
                if zone[a] != zone[b] and zone[a] >= 0 and zone[b] >= 0:
                    pair = tuple(sorted((zone[a], zone[b])))
                    found[pair] = found.get(pair, 0) + 1
    return found, total


def away_and_trips_by_hour(r, minutes):
    """{hour: (per cent of known slots away from the day's main place, trips per 100 days)}, hours without any left out."""  # noqa: E501
    made = {}
    for hour in range(24):
        known = away = trips = 0
        for row in r:
            seen = [place for place in row if place >= 0]
            main = min(set(seen), key=lambda place: (-seen.count(place), place))
            before = None
            for place, minute in zip(row, minutes, strict=True):
                if place < 0:
                    continue
                if int(minute // 60) == hour:
                    known += 1
                    away += place != main
                    trips += before is not None and place != before
                before = place
        if known:
            made[hour] = (100 * away / known, 100 * trips / len(r))
    return made


def adjusted_mutual_information(a, b):
    """AMI of two partitions by its definition: expected information over all tables with the same sums."""
    n = len(a)
    rows, columns = sorted(set(a)), sorted(set(b))
    sums_a, sums_b = [a.count(x) for x in rows], [b.count(y) for y in columns]

    def entropy(sums):
        return -sum(s / n * math.log(s / n) for s in sums)

    information = 0.0
    for x, i in zip(rows, sums_a, strict=True):
        for y, j in zip(columns, sums_b, strict=True):
            both = sum(1 for p, q in zip(a, b, strict=True) if p == x and q == y)
            if both:
                information += both / n * math.log(n * both / (i * j))
    expected = 0.0
    for i in sums_a:
        for j in sums_b:
            for m in range(max(1, i + j - n), min(i, j) + 1):
                chance = math.comb(i, m) * math.comb(n - i, j - m) / math.comb(n, j)
                expected += m / n * math.log(n * m / (i * j)) * chance
    return (information - expected) / ((entropy(sums_a) + entropy(sums_b)) / 2 - expected)


def majority_category(users, places, words, R):
    """For each place the word of most people, each person's own being that of most of his rows there; and how many."""
    found = []
    for place in range(R):
        voices = []
        for user in sorted(set(users)):
            mine = [w for u, p, w in zip(users, places, words, strict=True) if u == user and p == place and w]
            if mine:
                voices.append(max(sorted(set(mine)), key=mine.count))
        best = max(sorted(set(voices)), key=voices.count) if voices else ""
        found.append((best, voices.count(best) if voices else 0))
    return found


def calendar_span(days_of, m_min):
    """The days on or before which, and on or after which, at least `m_min` people have a day; days are numbers."""
    every = range(min(min(days) for days in days_of), max(max(days) for days in days_of) + 1)
    return [
        day
        for day in every
        if sum(any(d <= day for d in days) for days in days_of) >= m_min
        and sum(any(d >= day for d in days) for days in days_of) >= m_min
    ]


def places_lost(a, b, top):
    """Share of the `top` busiest places of a that are not among b's; ties for the last ranks are shared."""

    def inside(visits):
        member = [Fraction(0)] * len(visits)
        left = top
        for count in sorted(set(visits), reverse=True):
            block = [r for r in range(len(visits)) if visits[r] == count]
            for r in block:
                member[r] = min(Fraction(1), Fraction(left, len(block)))
            left = max(0, left - len(block))
        return member

    return float(1 - sum(min(x, y) for x, y in zip(inside(a), inside(b), strict=True)) / top)


def misplaced(a, b):
    """Rows of counts (one per hour): half the absolute difference of shares, weighted by the row's counts in a."""
    hours = [h for h in range(len(a)) if sum(a[h]) and sum(b[h])]
    if not hours:
        return 1.0
    total = sum(sum(a[h]) for h in hours)
    lost = 0.0
    for h in hours:
        for x, y in zip(a[h], b[h], strict=True):
            lost += sum(a[h]) / total * abs(x / sum(a[h]) - y / sum(b[h])) / 2
    return lost


def largest_gap(x, y):
    """Kolmogorov-Smirnov, by trying every value."""
    if not x or not y:
        return float(len(x) != len(y))
    return max(abs(sum(v <= at for v in x) / len(x) - sum(v <= at for v in y) / len(y)) for at in [*x, *y])


def unmatched(a, b, weight_a, weight_b):
    """Bray-Curtis over kinds; every entry counts by its weight."""
    above = below = 0.0
    for kind in {*a, *b}:
        n_a = sum(w for k, w in zip(a, weight_a, strict=True) if k == kind)
        n_b = sum(w for k, w in zip(b, weight_b, strict=True) if k == kind)
        above, below = above + abs(n_a - n_b), below + n_a + n_b
    return above / below if below else 0.0


def use_distances(a, b, *, R, zone, block, distance, hour, step, top, weekend=None):
    """
    Every distance of `evaluation/uses.py` between two lists of days, slot by slot.

    `zone` is one list of zones per scale of the flows, `block` the zones of the hours, `hour` the hour of each slot.
    """

    def counted(days, kinds):
        visits, by_hour = [0] * R, [[0] * (max(block) + 1) for _ in range(24)]
        trips, stays, rhythm, weights = [], [], [], []
        for row, kind in zip(days, kinds, strict=True):
            begun = None
            for t, r in enumerate(row):
                before = row[t - 1] if t else -1
                if r < 0:
                    begun = None
                    continue
                by_hour[hour[t]][block[r]] += 1
                if r != before:
                    visits[r] += 1
                    begun = t
                    if before >= 0:
                        trips.append((before, r))
                        rhythm.append((kind, hour[t - 1]))
                        weights.append(1 / kinds.count(kind))
                if t + 1 == len(row) or row[t + 1] != r:
                    stays.append(step * (t + 1 - begun))
        return visits, by_hour, trips, stays, rhythm, weights

    sides = [counted(days, kinds) for days, kinds in zip((a, b), weekend or ([0] * len(a), [0] * len(b)), strict=True)]
    (va, ha, ta, sa, ra, wa), (vb, hb, tb, sb, rb, wb) = sides
    one = [[1 / len(days)] * len(trips) for days, trips in ((a, ta), (b, tb))]
    found = {
        "places": places_lost(va, vb, top),
        "hours": misplaced(ha, hb),
        "trips": largest_gap([distance(*t) for t in ta], [distance(*t) for t in tb]),
        "dwell": largest_gap(sa, sb),
        "weekdays": unmatched(ra, rb, wa, wb),
    }
    for name, z in zone.items():
        kinds = [[(z[o], z[d]) for o, d in trips] for trips in (ta, tb)]
        found[name] = unmatched(*kinds, *one)
    return found


def cut_map(points, weight, depth):
    """Zones as sets of places: every part cut across its longer side, weights as equal as its places allow."""
    parts = [list(range(len(points)))]
    for _ in range(depth):
        finer = []
        for part in parts:
            there = [i for i in part if weight[i] > 0]
            best = None
            if len(there) > 1:
                extent = [max(points[i][k] for i in there) - min(points[i][k] for i in there) for k in (0, 1)]
                axis = 1 if extent[1] > extent[0] else 0
                for at in sorted({points[i][axis] for i in there})[1:]:
                    below = sum(weight[i] for i in there if points[i][axis] < at)
                    off = abs(below - sum(weight[i] for i in there) / 2)
                    if best is None or off < best[0]:
                        best = off, axis, at
            if best is None:
                finer.append(part)
            else:
                _, axis, at = best
                finer.append([i for i in part if points[i][axis] < at])
                finer.append([i for i in part if points[i][axis] >= at])
        parts = finer
    return {frozenset(part) for part in parts}


def use_word(fakes, halves, same, chance, spread):
    """The rule of the three words, as the module writes it, in exact fractions of hundredths of a hundredth."""
    f, h, s, c, sd = (Fraction(round(x * 10_000), 10_000) for x in (fakes, halves, same, chance, spread))
    if c - s <= max(Fraction(1, 100), 2 * sd):
        return "not for this" if f - max(h, c) > Fraction(1, 10) else "cannot say"
    real = min(h, (s + c) / 2)
    nearer = f - real <= (c - real) / 2
    nearer = nearer and f - real <= Fraction(1, 4)
    good = f - real <= min(Fraction(1, 10), (c - real) / 4) or (f - real <= Fraction(2, 100) and nearer)
    if good and f <= Fraction(1, 2):
        return "good"
    return "rough" if nearer and f <= Fraction(3, 4) else "not for this"


def shifted_skeleton(classes, shift):
    """What a seed does at slot t - shift, at slot t; beyond the ends what it does there."""
    L = len(classes)
    return [classes[min(max(t - shift, 0), L - 1)] for t in range(L)]


def pairing_weights(skeletons, seeds, walks, label, beta, limit):
    """K (S, N): exp(beta x share of agreeing slots of the seed), beside the best walk; 0 where too much is shared."""
    table = []
    for skeleton, seed, most in zip(skeletons, seeds, limit, strict=True):
        slots = [t for t, r in enumerate(seed) if r >= 0]
        n = max(1, len(slots))
        agree = [sum(c >= 0 and label[r] == c for c, r in zip(skeleton, walk, strict=True)) for walk in walks]
        shared = [len(set(walk) & {seed[t] for t in slots}) for walk in walks]
        table.append(
            [
                0.0 if common > most else math.exp(beta * (a - max(agree)) / n)
                for a, common in zip(agree, shared, strict=True)
            ]
        )
    return table


def urged(walks, goal, visits, due_moves, taken, n, most):
    """How many times as much each walk is wanted among the next n, after those taken: visits and moves are due."""
    L, places = len(walks[0]), range(len(visits))
    slots = [[walk.count(p) for p in places] for walk in walks]
    moves = [sum(a != b for a, b in itertools.pairwise(walk)) for walk in walks]

    def mean(values):
        return sum(g * v for g, v in zip(goal, values, strict=True))

    def variance(values):
        return mean([v * v for v in values]) - mean(values) ** 2

    spread = [variance([row[p] for row in slots]) for p in places]
    usual = sum(spread) / max(1, sum(s > 1e-12 for s in spread))
    score = [0.0] * len(walks)
    for f in range(len(walks)):
        for p in places:
            over = sum(slots[k][p] - L * visits[p] for k in taken)
            score[f] += over * slots[f][p] / (n * (spread[p] + usual))
        score[f] += sum(moves[k] - due_moves for k in taken) * moves[f] / (n * variance(moves))
    return [math.exp(-min(max(s - mean(score), -most), most)) for s in score]


def shared_days(people, weekend, m_min):
    """Days on which each of these people is to be seen: their own if m_min have them, else as many as a group's."""
    stay = [days for days in people if people.count(days) >= m_min]
    rare = [i for i, days in enumerate(people) if days not in stay]
    out = [list(days) for days in people]
    if len(rare) < m_min and stay:
        for i in rare:
            out[i] = min(sorted(stay), key=lambda days: abs(sum(days) - sum(people[i])))
        return out
    groups, group = [], []
    for length in sorted({sum(people[i]) for i in rare}, reverse=True):
        group = group + [i for i in rare if sum(people[i]) == length]
        if len(group) >= m_min:
            groups, group = [*groups, group], []
    if group:
        groups = [*groups[:-1], groups[-1] + group] if groups else [group]
    for group in groups:
        n = sorted(sum(people[i]) for i in group)[(len(group) - 1) // 2]
        off = sorted(sum(d and w for d, w in zip(people[i], weekend, strict=True)) for i in group)[
            (len(group) - 1) // 2
        ]
        kinds = {True: off, False: n - off}
        seen = []
        for day in weekend:
            seen.append(kinds[day] > 0)
            kinds[day] -= 1
        for i in group:
            out[i] = seen
    return out


def calendar_days(rows, m_min):
    """Day of the calendar of each row (person, ordinal of a date, row), as `People` says; day 0 is a Monday."""
    if len({person for person, _, _ in rows}) == len(rows):
        return [0] * len(rows)
    weekend = {row: (ordinal + 3) % 7 >= 5 for _, ordinal, row in rows}
    for kind in (True, False):
        if len({person for person, _, row in rows if weekend[row] == kind}) < m_min:
            weekend = dict.fromkeys(weekend, not kind)
    out = {}
    for person in {p for p, _, _ in rows}:
        free = 0
        for _, row in sorted((ordinal, row) for p, ordinal, row in rows if p == person):
            while (free % 7 in (5, 6)) != weekend[row]:
                free += 1
            out[row] = free
            free += 1
    return [out[row] for _, _, row in rows]


def sinkhorn(K, sweeps):
    """V under which rows of K V, each normalised, sum to the same in every column."""
    S, N = len(K), len(K[0])
    V = [1.0] * N
    for _ in range(sweeps):
        load = [0.0] * N
        for row in K:
            z = sum(k * v for k, v in zip(row, V, strict=True))
            for f in range(N):
                load[f] += row[f] * V[f] / z * N / S if z > 0 else 0.0
        V = [v / max(x, 1e-6) for v, x in zip(V, load, strict=True)]
        V = [v / max(V) for v in V]
    return V


def day_statistics_of(walk):
    """Moves, places, slots at the place with most of them, and whether the day ends where it began."""
    moves = sum(a != b for a, b in itertools.pairwise(walk))
    return [moves, len(set(walk)), max(walk.count(r) for r in walk), int(walk[0] == walk[-1])]


def traits_of_a_day(day, xy):
    """The forty traits of one day, a list of places, in the order of synthesis/walk/_ratio_kernels.py."""
    L, out = len(day), []

    def apart(s, t):
        return math.dist(xy[day[s]], xy[day[t]])

    def within(part):
        return min(max(part, 1), L - 1)

    for k in range(1, 6):
        out += [apart(0, max(L * k // 6 - 1, 0)), apart(L - 1, L * k // 6)]
    for lag in (within(L // 15), within(L // 8), within(L // 4), within(2 * L // 5)):
        d = [apart(t, t + lag) for t in range(L - lag)]
        out += [statistics.fmean(d), max(d), math.sqrt(statistics.fmean([v * v for v in d]))]
    for lag in (within(L // 10), within(L // 5), within(L // 3)):
        gone = sum(apart(u, u + 1) for t in range(L - lag) for u in range(t, t + lag))
        out.append(sum(apart(t, t + lag) for t in range(L - lag)) / gone if gone > 0 else 0.0)
    middle = [statistics.fmean(xy[r][k] for r in day) for k in (0, 1)]
    out.append(math.sqrt(statistics.fmean([math.dist(xy[r], middle) ** 2 for r in day])))
    for w in (within(L // 15), within(L // 10), within(L // 6), within(L // 4)):
        moves = [sum(day[u] != day[u + 1] for u in range(t, t + w)) for t in range(L - w)]
        out += [max(moves), statistics.pstdev(moves), moves.count(0) / len(moves)]
    share = [day.count(r) / L for r in set(day)]
    out.append(-sum(p * math.log(p) for p in share))
    moved = [t for t in range(1, L) if day[t] != day[t - 1]]
    back = [t for t in moved if day[t] in day[:t]]
    return [*out, len(back) / len(moved) if moved else 0.0]


def raked_weights(values, goals, rounds, damped, most):
    """Weights whose sums by each margin come near its goal, multiplied by (goal / sum) ** damped in turn."""
    N = len(values[0])
    w = [1 / N] * N
    for _ in range(rounds):
        for value, goal in zip(values, goals, strict=True):
            now = {v: sum(x for x, u in zip(w, value, strict=True) if u == v) for v in value}
            w = [x * (goal[v] / now[v]) ** damped if now[v] > 0 else x for x, v in zip(w, value, strict=True)]
        w = [min(x / sum(w), most) for x in w]
    return w


def drawn_by(weights, u):
    """The first whose sum of weights so far is above u times the sum of all."""
    passed, total = 0.0, sum(weights)
    for i, weight in enumerate(weights):
        passed += weight
        if passed > u * total:
            return i
    return max(i for i, weight in enumerate(weights) if weight > 0)


def whole_day_score(fake, seed, label, shift):
    """Most slots at which fake and seed are in one class, over whole-day shifts; -1 where they share a place."""
    if set(fake) & {r for r in seed if r >= 0}:
        return -1
    kinds = [label[r] if r >= 0 else -1 for r in seed]
    best = 0
    for early in range(-shift, shift + 1):
        moved = shifted_skeleton(kinds, early)
        best = max(best, sum(c >= 0 and label[f] == c for f, c in zip(fake, moved, strict=True)))
    return best


def largest_roc(eps, delta, points=4000):
    """AUC and largest advantage of the highest ROC curve under (eps, delta), point by point from the definition."""
    best = []
    for i in range(points + 1):
        fpr = i / points
        # a set of outputs has Pr <= e^eps Pr' + delta, and so has its complement, either way round
        tpr = min(1.0, math.exp(eps) * fpr + delta, 1 - math.exp(-eps) * (1 - fpr - delta))
        best.append((fpr, tpr))
    area = sum((x2 - x1) * (y1 + y2) / 2 for (x1, y1), (x2, y2) in itertools.pairwise(best))
    return area, max(y - x for x, y in best)


def stays_of_day(row, home, main, longest_pass):
    """(place, start with the trip, arrival) of every stay of a day: short runs on the way belong to the trip."""
    runs, t = [], 0
    for place, slots in groupby(row):
        n = len(list(slots))
        runs.append((place, t, n))
        t += n
    out, k = [], 0
    while k < len(runs):
        j = k
        while 0 < k and j < len(runs) - 1 and runs[j][2] <= longest_pass and runs[j][0] not in (home, main):
            j += 1
        if j > k and out and runs[j][0] == out[-1][0]:
            j = k  # there and back: a visit
        out.append((runs[j][0], runs[k][1], runs[j][1]))
        k = j + 1
    return out


def choice_loss(theta, ridge, choices):
    """-ln of softmax choices, each a list of (base, columns) and the number taken, plus ridge / 2 theta^2."""
    loss = ridge / 2 * sum(x * x for x in theta)
    for candidates, chosen in choices:
        weight = [math.exp(base + sum(theta[c] for c in cols)) for base, cols in candidates]
        loss -= math.log(weight[chosen] / sum(weight))
    return loss


def by_weight(weights, u):
    """The first whose cumulative weight exceeds u of the total, None where all are 0."""
    total, at, last = sum(weights), 0.0, None
    for i, w in enumerate(weights):
        at += w
        if w > 0:
            last = i
            if u * total < at:
                return i
    return last


def level(count, most=7):
    """0, 1, 2, 3-4, 5-8, ... as 0, 1, 2, ..., at most `most`."""
    return 0 if count == 0 else min(1 + math.ceil(math.log2(count)), most)


def trip_level(count):
    return 0 if count == 0 else 1 if count == 1 else 2 if count <= 3 else 3 if count <= 8 else 4


def distance_bin(w, a, b):
    d = (w.xy[a][0] - w.xy[b][0]) ** 2 + (w.xy[a][1] - w.xy[b][1]) ** 2
    return sum(d >= limit for limit in w.limits)


def diary(w, kind, role, dwell, pace, first, random):
    """[(role, start)] of a day, whether the first is new, and how long the last has lasted: 0 home, 1 main, 2 other."""
    out, fresh, patience = [(role, 0)], False, -math.log(1 - random())
    for t in range(len(w.clock)):
        if t == 0 and first:
            continue
        rate = pace * w.leave[kind][role][w.clock[t]][w.dwell[min(dwell, len(w.dwell) - 1)]]
        patience -= rate * (w.rank[kind][role][min(len(out) - 1, 9)] if t else 1)
        dwell += 1
        if patience >= 0:
            continue
        patience, u = -math.log(1 - random()), random()
        to = sum(u >= x for x in w.follows[kind][role][w.part[t]][:2])
        short = role == 2 and dwell - 1 <= w.longest_pass and len(out) > 1
        if short and (to == 2 or to != out[-2][0]):
            continue
        if t == 0:
            fresh, out = True, [(to, 0)]
        else:
            out.append((to, t))
        role, dwell = to, 1
    return out, fresh, dwell


def diary_weight(w, kind, roles):
    """How usual a diary is for its kind of day."""
    L = len(w.clock)
    ends = [start for _, start in roles[1:]] + [L]
    at = [sum(e - s for (r, s), e in zip(roles, ends, strict=True) if r == role) for role in (0, 1)]
    n = len(roles) - (len(roles) > 1 and roles[0][0] != 0)
    like = w.like[kind]
    shares = [like[48 + 12 * role + min(at[role] * 12 // L, 11)] for role in (0, 1)]
    both = like[72 + roles[0][0] * 3 + roles[-1][0]]
    return like[min(n, 15) * 3 + roles[-1][0]] * shares[0] * shares[1] * both


def traits_of_a_life(days, weekend, xy):
    """Traits of a life, days [[place at each slot]] that are shown and whether each is at a weekend, by definition."""
    every = [p for day in days for p in day]
    count = {p: every.count(p) for p in set(every)}
    ranked = sorted(count, key=lambda p: (-count[p], p))
    first, second = ranked[0], ranked[1] if len(ranked) > 1 else -1
    runs = [[(p, len(list(same))) for p, same in itertools.groupby(day)] for day in days]
    moves = [pair for day in runs for pair in itertools.pairwise([p for p, _ in day])]
    days_at = {p: sum(p in day for day in days) for p in count}
    distinct, once = len(set(moves)), sum(moves.count(move) == 1 for move in set(moves))
    out = [len(count) / (len(moves) + 1), distinct / (len(moves) + 1), once / (len(moves) + 1)]
    out += [sum(2 <= n <= 3 for n in days_at.values()) / len(count)]
    out += [sum(n >= 4 and n < 0.75 * len(days) for n in days_at.values()) / len(count)]
    out += [max((n for p, n in days_at.items() if p not in (first, second)), default=0) / len(days)]
    out += [sum(day[0] != first for day in days) / len(days)]

    def told(values):
        return [statistics.fmean(values), statistics.pstdev(values)] if values else [-1, -1]

    alike = []
    for off in (False, True):
        mine = [day for day, w in zip(days, weekend, strict=True) if w == off]
        steps = [[t for t in range(1, len(day)) if day[t] != day[t - 1]] for day in mine]
        out += told([times[0] for times in steps if times]) + told([times[-1] for times in steps if times])
        shares = [sum(a == b for a, b in zip(x, y, strict=True)) / len(x) for x, y in itertools.pairwise(mine)]
        alike.append(told(shares))
    out += [alike[0][0], alike[1][0], alike[0][1]]
    others = [n for day in runs for p, n in day if p not in (first, second)]
    out += [sum(others) / max(len(others), 1), statistics.fmean([n == 1 for day in runs for _, n in day])]
    out += told([sum(math.dist(xy[a], xy[b]) for (a, _), (b, _) in itertools.pairwise(day)) for day in runs])
    away = [math.dist(xy[p], xy[first]) for p in every if p != first]
    out += [statistics.fmean(away) if away else 0, math.dist(xy[first], xy[second]) if second >= 0 else 0]
    turns = [a[0] == c[0] for day in runs for a, _, c in zip(day, day[1:], day[2:], strict=False)]
    return [*out, sum(turns) / max(len(turns), 1)]


def hours_columns(part, width, L, earlier, roles):
    """Columns of a diary [(role, start)] beside those of the earlier days of its kind, by their definition."""

    def slots(day):
        return [max((start, role) for role, start in day if start <= t)[1] for t in range(L)]

    def share(hits):
        n, k = len(hits), sum(hits)
        return 0 if k == 0 else 5 if k == n else next(j for j in (1, 2, 3, 4) if 4 * k <= j * n)

    def near(a, b):
        return a == b if None in (a, b) else abs(a - b) <= width

    n = len(earlier)
    size = 0 if n == 1 else 1 if n <= 3 else 2 if n <= 7 else 3
    mine, others = slots(roles), [slots(day) for day in earlier]
    cols = []
    for p in range(6):
        same = [mine[t] == other[t] for other in others for t in range(L) if part[t] == p]
        cols.append((size * 6 + p) * 10 + (9 * sum(same) // len(same) if same else 0))
    leaving = [day[1][1] if len(day) > 1 else None for day in [roles, *earlier]]
    arriving = [day[-1][1] if len(day) > 1 else None for day in [roles, *earlier]]
    cols.append(240 + size * 6 + share([near(leaving[0], t) for t in leaving[1:]]))
    cols.append(264 + size * 6 + share([near(arriving[0], t) for t in arriving[1:]]))
    cols.append(288 + size * 6 + share([min(len(day), 15) == min(len(roles), 15) for day in earlier]))
    cols.append(312 + (2 * size + (roles[-1][0] == 0)) * 6 + share([day[-1][0] == 0 for day in earlier]))
    for k, role in ((360, 1), (408, 2)):
        met = [any(r == role for r, _ in day) for day in [roles, *earlier]]
        cols.append(k + (2 * size + met[0]) * 6 + share(met[1:]))
    return cols


def life(w, mix, home, main, pace, weekend, tries, random):
    """One life over the days of a calendar, by the law w: the twin of the kernel, with dictionaries."""
    L, D, P, K = len(w.clock), len(weekend), len(w.passed), len(w.start)
    visits, last, at_part, own = {}, {}, {}, []
    been, steps, cells_of, moves, trips, routes = {}, {}, {}, {}, {}, {}
    between, as_long, earlier = {}, {}, []
    starting = [[sum(mix[off][k] * w.start[k][r] for k in range(K)) for r in range(3)] for off in (0, 1)]
    starting = [[x / sum(row) for x in row] for row in starting]
    off_days = sum(weekend) / D
    out, now, before, role, dwell = [], home, -1, 0, 4 * L

    def add(table, key):
        table[key] = table.get(key, 0) + 1

    def context(after):
        return (0 if now == home else 1 if now == main else 2, after)

    def where_to(part, off, d, haste, after):
        e, alike = w.explore, sum(v for (_, roles), v in between.items() if roles == context(after))
        logit = e[0] + e[1] * math.log1p(len(own)) + e[2] * math.log1p(sum(visits.values())) + e[3] * math.log1p(alike)
        logit += e[4] * off + e[5 + part] + e[11 + haste]
        onward = {0: home, 1: main}.get(after, -1)
        if own and random() * (1 + math.exp(logit)) < 1:
            weights = [
                0.0
                if x == now
                else math.prod(
                    w.back[c]
                    for c in (
                        level(visits[x]),
                        8 + level(at_part.get((x, part, off), 0)),
                        16 + level(steps.get((now, x), 0)),
                        24 + min(d - last[x], 2),
                        27 + (x == before),
                        29 + level(between.get((x, context(after)), 0)),
                        37 + level(as_long.get((x, haste), 0)),
                        45 + 10 * haste + distance_bin(w, now, x),
                        85 + (distance_bin(w, onward, x) if onward >= 0 else 10),
                    )
                )
                for x in own
            ]
            j = by_weight(weights, random())
            if j is not None:
                return own[j]
        weights = []
        anchors = [home, main] if main >= 0 else [home]
        for x in range(P):
            near = min(distance_bin(w, a, x) for a in anchors + own)
            weights.append(
                0.0
                if x in (now, home, main, *own)
                else w.popular[part][x]
                * w.reach[4][distance_bin(w, home, x)]
                * w.reach[5][distance_bin(w, anchors[-1], x)]
                * w.reach[6][near]
                * w.reach[haste][distance_bin(w, now, x)]
                * (w.reach[7][distance_bin(w, onward, x)] if onward >= 0 else 1)
            )
        x = by_weight(weights, random())
        return home if x is None else x

    def passes(a, b, slots, visit):
        pair = (min(a, b), max(a, b))
        before = sorted(cells_of.get(pair, []))
        point = random() * (len(before) + w.fresh) if before else 0
        if point < len(before):
            wanted = before[int(point)]
        else:
            u = random()
            ladder = w.passes[1 if visit else 0][distance_bin(w, a, b)][crowd(a, b)][min(slots, 6) - 1]
            wanted = sum(u >= x for x in ladder[:-1])
        room = slots - (w.longest_pass + 1 if visit else 1)
        wanted = max(min(wanted, room), 0)
        longest = math.dist(w.xy[a], w.xy[b]) + w.detour * math.sqrt(w.limits[1]) + 1e-9
        among = [
            x
            for x in range(P)
            if w.passed[x] > 0
            and x not in (a, b, home, main)
            and math.dist(w.xy[a], w.xy[x]) + math.dist(w.xy[x], w.xy[b]) <= longest
        ]
        way, step = [], a
        for c in range(wanted):
            u = random()
            slots_here = min(1 + sum(u >= x for x in w.lengths[:-1]), room - (wanted - c - 1))
            room -= slots_here
            weights = [0.0 if x == step else w.passed[x] * pass_factor(a, b, step, c, wanted, x) for x in among]
            j = by_weight(weights, random())
            if j is None:
                break
            step = among[j]
            way.append((step, slots_here))
        return way

    def crowd(a, b):
        found = [v for key, v in zip(w.moves, w.crowd, strict=True) if key == a * P + b]
        return found[0] if found else 0

    def pass_factor(a, b, step, c, wanted, x):
        (ax, ay), (bx, by), (px, py) = w.xy[a], w.xy[b], w.xy[x]
        dx, dy, px, py = bx - ax, by - ay, px - ax, py - ay
        square = dx * dx + dy * dy
        cols = [19, 29]
        if square > 1e-18:
            ahead = (px * dx + py * dy) / square - (c + 1) / (wanted + 1)
            cols = [
                min(max(math.floor((ahead + 1) * 9.5), 0), 18),
                20 + min(int(abs(px * dy - py * dx) / square * 10), 8),
            ]
        pair = (min(a, b), max(a, b))
        cols += [30 + distance_bin(w, step, x), 40 + 5 * trip_level(trips.get(pair, 0))]
        cols[3] += trip_level(routes.get((pair, x), 0))
        cols += [65 + level(been.get(x, 0))]
        cols += [
            73 + level(moves.get((min(step, x), max(step, x)), 0)),
            81 + level(moves.get((min(x, b), max(x, b)), 0)),
        ]
        cols += [89 + crowd(step, x), (99 if c == wanted - 1 else 94) + crowd(x, b)]
        return math.prod(w.passing[i] for i in cols)

    for d in range(D):
        off, tomorrow = int(weekend[d]), int(weekend[min(d + 1, D - 1)])
        usual = [(1 - off_days) * x + off_days * y for x, y in zip(*starting, strict=True)]
        found, weights, like = [], [], [roles for when, roles in earlier if when == off]
        kind = by_weight([mix[off][k] * w.start[k][role] for k in range(K)], random()) or 0
        for _ in range(tries):
            found.append(diary(w, kind, role, dwell, pace, d == 0, random))
            roles = found[-1][0]
            weight = diary_weight(w, kind, roles) * starting[tomorrow][roles[-1][0]] / max(usual[roles[-1][0]], 1e-9)
            cols = hours_columns(w.part, w.longest_pass, L, like, roles) if like else []
            weights.append(weight * math.prod(w.hours[c] for c in cols))
        roles, fresh, dwell = found[by_weight(weights, random()) or 0]
        earlier.append((off, roles))
        role, day, since = roles[-1][0], [None] * L, 0
        for q, (what, begin) in enumerate(roles):
            end = roles[q + 1][1] if q + 1 < len(roles) else L
            if q == 0 and not fresh:
                day[:end] = [now] * end
                continue
            part, after = w.part[begin], roles[q + 1][0] if q + 1 < len(roles) else 3
            haste = min(w.dwell[end - begin], 3)
            to = home if what == 0 else main if what == 1 and main >= 0 else None
            if to is None:
                to = where_to(part, off, d, haste, after)
            if what == 0 or begin == 0:  # on the way home the trip is part of the stay it leads to
                slots, visit = end - begin, to not in (home, main) and end < L
            else:
                slots, visit = begin - since, now not in (home, main) and since > 0
            way = passes(now, to, slots, visit) if w.longest_pass and now != to else []
            if to not in (home, main):
                if to not in own:
                    own.append(to)
                add(visits, to)
                add(at_part, (to, part, off))
                add(between, (to, context(after)))
                add(as_long, (to, haste))
                add(steps, (now, to))
                last[to] = d
            if now != to:
                pair, step = (min(now, to), max(now, to)), now
                cells_of.setdefault(pair, []).append(len(way))
                add(trips, pair)
                for x, _ in way:
                    add(been, x)
                    add(routes, (pair, x))
                    add(moves, (min(step, x), max(step, x)))
                    step = x
                add(moves, (min(step, to), max(step, to)))
                add(been, to)
            cells = [x for x, n in way for _ in range(n)]
            begin -= 0 if what == 0 or begin == 0 else len(cells)
            since = begin + len(cells)
            day[begin:end] = cells + [to] * (end - since)
            before, now = now, to
        out.append(day)
    return out


def logistic_loss(weights, ridge, every, yes):
    """-ln likelihood of yes or no, a row's logit the sum of its weights, plus ridge / 2 weight^2."""
    loss = sum(r / 2 * w * w for r, w in zip(ridge, weights, strict=True))
    for columns, is_yes in zip(every, yes, strict=True):
        logit = sum(weights[c] for c in columns)
        loss += math.log(1 + math.exp(-logit if is_yes else logit))
    return loss


def main_place(w, weight, reach, home, u):
    """The main place of somebody of one type who lives at `home`, by `weight` (P,) and the distance; -1 without."""
    law = [0.0 if x == home else v * reach[distance_bin(w, home, x)] for x, v in enumerate(weight)]
    place = by_weight(law, u)
    return -1 if place is None else place


def least_shared(seeds, others, share):
    """Places that each seed has in common with the `share` of the others who have least in common with it, at most."""
    out = []
    for seed in seeds:
        common = sorted(len(set(seed) & set(other)) for other in others)
        out.append(common[max(0, math.ceil(share * len(others)) - 1)])
    return out


def least_similar(seeds, others, share):
    """Overlap of visits of each seed with the `share` of the others who have least of it, at most."""
    out = []
    for seed in seeds:
        overlap = sorted(
            sum(min(seed.count(x) / len(seed), other.count(x) / len(other)) for x in set(seed)) for other in others
        )
        out.append(overlap[max(0, math.ceil(share * len(others)) - 1)])
    return out


def edges_between(label, w):
    """Sums of the weights between two classes, each pair of places in either order."""
    import numpy as np

    kappa = max(label) + 1
    sums = np.zeros((kappa, kappa))
    for i, a in enumerate(label):
        for j, b in enumerate(label):
            sums[a, b] += w[i][j]
    return sums


def first_order_graph(rows, R):
    """
    w_G of order 1 by its double loop (fig:alg): every mapping of the places of u to those of v is tried.

    Rows are one day of each user, with as many places each. Places that no move in common speaks for are not matched.
    """
    w = [[0.0] * R for _ in range(R)]
    fitted = [profile([row], [0] * len(row), 1) for row in rows]
    for i, u in enumerate(fitted):
        for j, v in enumerate(fitted):
            if i == j:
                continue
            mine, best, sim = sorted(set(rows[i])), {}, 0.0
            for order in itertools.permutations(sorted(set(rows[j]))):
                sigma = dict(zip(mine, order, strict=True))
                if (value := first_order_value(u, v, sigma)) > sim + 1e-12:
                    best, sim = sigma, value
            spoken_for = {
                x for _, _, a, b in u["p"] if (0, 0, best.get(a), best.get(b)) in v["p"] for x in (a, b)
            }  # fmt: skip
            for a in spoken_for:
                w[a][best[a]] += sim
    return [[0.0 if a == b else (w[a][b] + w[b][a]) / 2 for b in range(R)] for a in range(R)]


def drawn_graph(edges, place, shifts, R):
    """
    w_G and the standard error of every weight from some pairs of users: those `shift` places apart in `place`.

    `edges[u, v]` lists (r, r_next, weight) of an ordered pair. Cochran, Sampling Techniques, sec. 2.6: m of N totals
    drawn without replacement, N mean(total) and N sqrt((1 - m/N) s^2 / m).
    """
    U = len(place)
    totals = []
    for shift in shifts:
        w = [[0.0] * R for _ in range(R)]
        for i in range(U):
            for r, r_next, weight in edges[place[i], place[(i + shift) % U]]:
                w[r][r_next] += weight
        totals.append([[0.0 if a == b else (w[a][b] + w[b][a]) / 2 for b in range(R)] for a in range(R)])
    N, m = U - 1, len(shifts)
    mean = [[sum(t[a][b] for t in totals) / m for b in range(R)] for a in range(R)]
    error = [
        [N * math.sqrt((1 - m / N) * sum((t[a][b] - mean[a][b]) ** 2 for t in totals) / (m - 1) / m) for b in range(R)]
        for a in range(R)
    ]
    return [[N * x for x in row] for row in mean], error


def next_on_the_way(moves, xy, here, goal):
    """
    Where one allowed move leads from `here` towards `goal`: of ways with the fewest moves the shortest (E36).

    `moves` are pairs of places. Where there is no way, nobody moves.
    """
    after = {a: sorted({y for x, y in moves if x == a and y != a}) for a, _ in moves}
    best = {goal: (0, 0.0)}  # moves and length left
    while True:
        found = dict(best)
        for a, onward in after.items():
            for b in onward:
                if b in best:
                    length = sum((p - q) ** 2 for p, q in zip(xy[a], xy[b], strict=True)) ** 0.5
                    way = (best[b][0] + 1, best[b][1] + length)
                    found[a] = min(found.get(a, way), way)
        if found == best:
            break
        best = found
    if here == goal or here not in best:
        return here

    def way_by(b):
        length = sum((p - q) ** 2 for p, q in zip(xy[here], xy[b], strict=True)) ** 0.5
        return best[b][0] + 1, best[b][1] + length

    return min((b for b in after[here] if b in best), key=way_by)


def posterior_of_fillings(rows, places, prior, evidence):
    """
    E4 by enumeration: the probability of every way to fill one person's rows, slots one after the other, T = 1.

    The person's chain is on `places` with all moves between them; see `chain_posterior`.
    """
    a = prior / len(places)

    def log_evidence(counts):
        total = sum(counts)
        value = math.lgamma(a * len(counts)) - math.lgamma(a * len(counts) + total)
        return value + sum(math.lgamma(a + n) - math.lgamma(a) for n in counts)

    weight = {}
    for filled in itertools.product(*(list(completions(r, places, e)) for r, e in zip(rows, evidence, strict=True))):
        steps = [step for row, _ in filled for step in itertools.pairwise(row)]
        log = sum(math.log(w) for _, w in filled)
        log += log_evidence([sum(row[0] == p for row, _ in filled) for p in places])
        log += sum(log_evidence([steps.count((i, j)) for j in places]) for i in places)
        weight[tuple(place for row, _ in filled for place in row)] = math.exp(log)
    total = sum(weight.values())
    return {way: w / total for way, w in weight.items()}


def concentration(use, grid):
    """The concentration, of `grid`, under which a Dirichlet law round the mean makes these counts (people, kinds)."""
    kinds = [k for k in range(len(use[0])) if any(own[k] for own in use)]
    everything = sum(map(sum, use))
    mean = {k: sum(own[k] for own in use) / everything for k in kinds}

    def likelihood(c):
        total = 0.0
        for own in use:
            total += math.lgamma(c) - math.lgamma(c + sum(own))
            total += sum(math.lgamma(own[k] + c * mean[k]) - math.lgamma(c * mean[k]) for k in kinds)
        return total

    return max(grid, key=likelihood)
