"""
Slow twins: every metric, sampler and gate again, from its definition, with loops.

Imports nothing of ours, so that it can judge us.
"""

import itertools
import math
from fractions import Fraction
from itertools import pairwise


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


def privacy_verdict(fake, seed, alternates, users, tau, T, *, par_s, par_i, par_d, k, others=()):
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
    if shared > par_i:
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


def philox(counter, key):
    """One block of Philox4x64-10 (Salmon et al., SC 2011, figure and constants there), in whole numbers."""
    word = (1 << 64) - 1
    c, k = list(counter), list(key)
    for _ in range(10):
        low, high = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
        c = [(high >> 64) ^ c[1] ^ k[0], high & word, (low >> 64) ^ c[3] ^ k[1], low & word]
        k = [(k[0] + 0x9E3779B97F4A7C15) & word, (k[1] + 0xBB67AE8584CAA73B) & word]
    return c


def semantic_seed(seed, label, nearest, number, *, par_c, par_m, par_l, c_min, allowed):
    """
    Candidate sets by E38-E45 and the step of the ladder of each; (None, t) if instant t cannot be faked.

    `nearest[c]` lists the other classes, nearest first; `number()` gives the next uniform number, which are used for:
    the members of each class as the seed first meets it (lowest place first), then each boundary (left run, right
    run), then each instant (removal).
    """
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
            kept_of_class[c] = sub_sample(whole[c])
        for t in run:
            kept[t] = kept_of_class[c] if c >= 0 else []

    joins = [set() for _ in range(L)]
    for left, right in itertools.pairwise(runs):
        for source, slots in ((kept[left[-1]], right), (kept[right[0]], left[::-1])):
            for r in source:
                u = number()
                for d, t in enumerate(slots, start=1):
                    if u < par_m**d:
                        joins[t].add(r)

    sets, steps = [], []
    for run in runs:
        for t in run:
            gone = {seed[t]} if number() < par_l else set()
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


def hidden_chain(sets, first, p):
    """
    Posterior of each hidden place at each instant, and the largest probability of a sequence; by enumeration.

    `sets[t]` are the candidates of instant t, `p[t]` the moves from t to t + 1.
    """
    total, best = 0.0, 0.0
    posterior = [dict.fromkeys(s, 0.0) for s in sets]
    for path in itertools.product(*[range(len(s)) for s in sets]):
        places = [s[i] for s, i in zip(sets, path, strict=True)]
        w = first[places[0]]
        for t in range(1, len(places)):
            w *= p[t - 1][places[t - 1]][places[t]]
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
