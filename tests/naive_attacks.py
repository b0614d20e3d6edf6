"""Slow twins of the attacks, written from their definitions: one fake, one person, one slot at a time."""

import itertools
import math
from fractions import Fraction


def wilson_ends(hits, trials, z=1.959963984540054):
    """The two p with (hits/trials - p)^2 = z^2 p (1 - p) / trials."""
    share = hits / trials
    a, b, c = 1 + z * z / trials, -(2 * share + z * z / trials), share * share
    root = math.sqrt(b * b - 4 * a * c)
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def auc_by_pairs(positive, negative):
    """Share of pairs in which the positive is above, a tie being half a pair."""
    pairs = [(1.0 if p > n else 0.5 if p == n else 0.0) for p in positive for n in negative]
    return sum(pairs) / len(pairs)


def among_the_best(scores, own, n):
    """Chance that candidate `own` is among the n best when ties are drawn by lot."""
    above = sum(1 for s in scores if s > scores[own])
    ranks = range(above, above + sum(1 for s in scores if s == scores[own]))
    return Fraction(sum(1 for rank in ranks if rank < n), len(ranks))


def own_transitions(rows):
    """{(r, r'): probability} of one user's rows."""
    count = {}
    for row in rows:
        for a, b in itertools.pairwise(row):
            count[a, b] = count.get((a, b), 0) + 1
    return {(a, b): c / sum(x for (o, _), x in count.items() if o == a) for (a, b), c in count.items()}


def reidentified(fake, users, unseen=1e-8):
    """A2: number of the first user whose moves make the fake most likely; `users` is a list of lists of rows."""
    best, name = -math.inf, None
    for u, rows in enumerate(users):
        p = own_transitions(rows)
        score = 0.0
        for step in itertools.pairwise(fake):
            score += math.log(p.get(step, unseen))
        if score > best + 1e-9:  # sums of the same numbers in another order are a tie
            best, name = score, u
    return name


def membership_ratio(users, fakes, unseen=1e-8):
    """A3: largest ln p(u)(f) / p_others(f) over the fakes, per user; moves never seen get 1e-8 on either side."""
    laws = [own_transitions(rows) for rows in users]
    out = []
    for u, law in enumerate(laws):
        others = [other for v, other in enumerate(laws) if v != u]
        best = -math.inf
        for fake in fakes:
            score = 0.0
            for step in itertools.pairwise(fake):
                population = sum(other.get(step, 0.0) for other in others) / len(others)
                score += math.log(law.get(step, unseen)) - math.log(population if population > 0 else unseen)
            best = max(best, score)
        out.append(best)
    return out


def timing_score(fake, seed):
    """A4: #(m_f and wide) - 3 #(m_f and not wide) - .05 #(m_f != m_s)."""
    m_f = [a != b for a, b in itertools.pairwise(fake)]
    m_s = [a != b for a, b in itertools.pairwise(seed)]
    wide = [any(m_s[j] for j in (i - 1, i, i + 1) if 0 <= j < len(m_s)) for i in range(len(m_s))]
    near = sum(1 for f, w in zip(m_f, wide, strict=True) if f and w)
    far = sum(1 for f, w in zip(m_f, wide, strict=True) if f and not w)
    return near - 3 * far - Fraction(5, 100) * sum(1 for f, s in zip(m_f, m_s, strict=True) if f != s)


def stand_ins(fakes, owner, people, left_out, R, floor=0.02):
    """M of A5 and A6: co-occurrence of a person's place and a fake's over all people but some, rows normalised."""
    table = [[floor] * R for _ in range(R)]
    for fake, person in zip(fakes, owner, strict=True):
        if person not in left_out:
            for r, x in zip(people[person], fake, strict=True):
                if r >= 0 and x >= 0:
                    table[r][x] += 1
    return [[x / sum(row) for x in row] for row in table]


def pair_scores(i, fakes, owner, people, R):
    """A5: sum_t ln M[s(t), f(t)] of fake i for every person s; M knows neither s nor the fake's own person."""
    scores = []
    for s, person in enumerate(people):
        M = stand_ins(fakes, owner, people, {s, owner[i]}, R)
        scores.append(sum(math.log(M[r][x]) for r, x in zip(person, fakes[i], strict=True) if r >= 0 and x >= 0))
    return scores


def recovered(person, n, fakes, owner, people, R, best=1):
    """A6: share of the slots of a person found from the first n fakes, ties shared, with the prior of the others."""
    M = stand_ins(fakes, owner, people, {person}, R)
    visits = [sum(s.count(r) for u, s in enumerate(people) if u != person) for r in range(R)]
    mine = [f for f, o in zip(fakes, owner, strict=True) if o == person][:n]
    hits = 0
    for t, true in enumerate(people[person]):
        score = [
            (math.log(visits[r]) if visits[r] else -math.inf) + sum(math.log(M[r][f[t]]) for f in mine)
            for r in range(R)
        ]
        above = sum(1 for s in score if s > score[true] + 1e-9)
        tied = sum(1 for s in score if s == score[true] or abs(s - score[true]) <= 1e-9)
        hits += min(1, max(0, (best - above) / tied))
    return hits / len(people[person])


def in_common(a, b):
    """A1: equal slots, shared places."""
    return sum(x == y for x, y in zip(a, b, strict=True)), len(set(a) & set(b))


def mean_km(a, b, xy):
    """Mean distance over the slots at which both are seen."""
    both = [(p, q) for p, q in zip(a, b, strict=True) if p >= 0 and q >= 0]
    return sum(math.dist(xy[p], xy[q]) for p, q in both) / len(both) if both else math.inf


def km_to_places(a, b, xy):
    """Mean over the slots of a of the distance to the nearest place of b."""
    seen = [p for p in a if p >= 0]
    return sum(min(math.dist(xy[p], xy[q]) for q in b if q >= 0) for p in seen) / len(seen)


def shape(row, xy):
    """Sorted ln(km + .1) between the four places of most time; with fewer places the first again."""
    ranked = sorted({r for r in row if r >= 0}, key=lambda r: (-list(row).count(r), r))[:4]
    ranked += [ranked[0]] * (4 - len(ranked))
    return sorted(math.log(math.dist(xy[p], xy[q]) + 0.1) for p, q in itertools.combinations(ranked, 2))


def time_overlap(a, b):
    """sim_S of order 0: overlap of the shares of time at the own places, the longest first."""
    shares = [sorted((list(row).count(r) / len(row) for r in set(row)), reverse=True) for row in (a, b)]
    return sum(min(x, y) for x, y in zip(*shares, strict=False))


def shifted_score(fake, person, fake_mean, person_mean, half, most):
    """
    Nearness of two (kinds, slots) tables relative to their means, either half of the day shifted as fits best.

    Slots shifted beyond the ends are those at the ends.
    """
    K, T = len(fake), len(fake[0])
    f = [[fake[k][t] - fake_mean[k][t] for t in range(T)] for k in range(K)]
    p = [[person[k][t] - person_mean[k][t] for t in range(T)] for k in range(K)]
    total = 0.0
    for side in (0, 1):
        slots = [t for t in range(T) if half[t] == side]
        if slots:
            total += max(
                sum(f[k][t] * p[k][min(max(t + shift, 0), T - 1)] for k in range(K) for t in slots)
                for shift in range(-most, most + 1)
            )
    return total - sum(x * x for row in p for x in row) / 2


def slots_of(visits, origin, step, n, hold, timed):
    """Place of one person's (start, end, place), in order, in each of n slots; -1 where nobody was seen."""
    out = []
    for k in range(n):
        begin = origin + k * step
        begun = [i for i, (start, _, _) in enumerate(visits) if start <= begin + (step // 2 if timed else step - 1)]
        place = -1
        if begun:
            _, end, where = visits[begun[-1]]
            just_now = not timed and begin <= end < begin + step
            if begin < end or just_now or (begun[-1] < len(visits) - 1 and begin < end + hold):
                place = where
        out.append(place)
    return out


def density(u, people, release, hours, smooth=0.5):
    """A10: mean ln density of a person's places by hour in the release minus that among all other people."""
    at = lambda row: [(hours[t], r) for t, r in enumerate(row) if r >= 0]  # noqa: E731
    everybody = [at(row) for row in people]
    made = [gram for row in release for gram in at(row)]
    keys = {gram for mine in everybody for gram in mine}
    others = [gram for i, mine in enumerate(everybody) if i != u for gram in mine]
    total = 0.0
    for gram in everybody[u]:
        total += math.log((made.count(gram) + smooth) / (len(made) + smooth * len(keys)))
        total -= math.log((others.count(gram) + smooth) / (len(others) + smooth * len(keys)))
    return total / max(1, len(everybody[u]))


def neighbours(u, people, release):
    """A10: the nearest fake by slots at one place, fakes that share no place."""
    mine = sorted((sum(x == y >= 0 for x, y in zip(people[u], f, strict=True)) for f in release), reverse=True)[:5]
    apart = sum(not {r for r in f if r >= 0} & set(people[u]) for f in release)
    return mine[0] + sum(mine) / len(mine) / 1e3, -apart / len(release)


def rare_places_that_exist(u, people, release):
    """A10: the share of a person's places that are in the release, each by one over its visitors."""
    own = {r for r in people[u] if r >= 0}
    weight = {r: 1 / sum(r in row for row in people) for r in own}
    published = {r for row in release for r in row}
    return sum(weight[r] for r in own & published) / sum(weight.values())


def whole_days(rows, slots, fewest):
    """A1: {(life, day): moves} of days of so many moves, seen half of the time; rows begin at midnight."""
    out = {}
    for i, row in enumerate(rows):
        for begin in range(0, len(row), slots):
            day = row[begin : begin + slots]
            moves = sum(a != b and a >= 0 and b >= 0 for a, b in itertools.pairwise(day))
            if moves >= fewest and sum(r >= 0 for r in day) * 2 >= len(day):
                out[i, tuple(day)] = moves
    return out
