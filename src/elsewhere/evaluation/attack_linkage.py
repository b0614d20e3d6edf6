"""
Attacks that link a fake to the person it was made from (A2, A4, A5, A7, A24), or find where that person was (A6).

Scores of a fake and a person, larger where they fit better:

| attack | score | knows |
|---|---|---|
| A2 | `by_moves` | p(u): moves that u never made get 1e-8, the first maximum counts, as in the PPMTF referee |
| A4 | `by_move_times`, `by_shifted_move_times` | when they move, and no place; up to two hours early or late |
| A5 | `by_pairs` | which place stands for which, learnt from all other people: sum_t ln M[s(t), f(t)] |
| A5 | `by_time_shares` | sim_S of order 0: how the time is shared out over places |
| A5 | `by_metres`, `by_usual_metres` | where they are, in metres: slot by slot, and by hour of the week |
| A5 | `by_places_in_metres` | where they go: how far the places of a fake are from the person's nearest |
| A5 | `by_routine`, `by_usual_routine` | rank among the own places, or class: slot by slot, by hour of the week |
| A24 | `by_shape` | distances between the main places, turned and scaled |

A7 asks whether a fake avoids the places of its person. A6 takes the argmax over r of ln prior(r) + sum over n fakes of
ln M[r, f(t)].
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from elsewhere.data.visits import Floats, Ints
from elsewhere.evaluation._evaluation_kernels import change_pairs, mean_distances, pair_likelihoods
from elsewhere.evaluation.attack_base import (
    Case,
    Finding,
    Link,
    Lives,
    Needs,
    Rate,
    Score,
    difference,
    find_in,
    most_frequent,
    name_people,
    percent,
    user_rate,
    verdict,
)

UNSEEN = 1e-8
FLOOR = 0.02
MAP_BAR, TIMING_BAR, NAMED = 0.0112, 0.01, 0.1  # the original tool's figure on PF; one in a hundred; one in ten
HOURS_OFF = 2  # by which a fake may be early or late
RANKS = 6  # own places told apart by their rank; all others are one
MOST_SLOTS = 240  # of a pair that are compared where every slot costs
MOST_CELLS = 2**26  # of a table of places of people x places of fakes


# -- A2: how each person moves -----------------------------------------------------------------------------------------


def chains(people: Lives) -> tuple[Ints, Ints, Floats]:
    """Return user, step r R + r', and p(u)_r^{r'} of every step that somebody made, by user and step."""
    row, step = people.steps
    R = people.R
    pair, count = np.unique(row * (R * R) + step, return_counts=True)
    leaving, back = np.unique(pair // R, return_inverse=True)
    return pair // (R * R), pair % (R * R), count / np.bincount(back, count, len(leaving))[back]


def count_steps(lives: Lives, steps: Ints) -> Any:
    """Return a sparse table (lives, steps): how often each life makes each of these steps, which rise."""
    from scipy import sparse

    row, made = lives.steps
    at = find_in(steps, made)
    entry = np.ones(int((at >= 0).sum())), (row[at >= 0], at[at >= 0])
    return sparse.csr_array(entry, shape=(len(lives), len(steps)))


def by_moves(link: Link) -> Floats:
    """Return sum_t ln p(u)_{f(t)}^{f(t+1)}; a step that u never made counts ln UNSEEN."""
    from scipy import sparse

    user, step, p = chains(link.people)
    steps, column = np.unique(step, return_inverse=True)
    table = sparse.csr_array((np.log(p / UNSEEN), (column, user)), shape=(len(steps), len(link.people)))
    made = np.bincount(link.fakes.steps[0], minlength=len(link.fakes))
    return np.asarray((count_steps(link.fakes, steps) @ table).toarray() + made[:, None] * math.log(UNSEEN))


def reidentification(case: Case) -> Finding:
    """Name the person whose own moves explain a fake best (A2); its form in metres stands in A5."""
    return name_people(case, {"moves": by_moves}, bar=MAP_BAR, knows="how each person moves")


# -- A4: when people move ----------------------------------------------------------------------------------------------


def by_move_times(link: Link) -> Floats:
    """
    Return 20 times the score of A4, in whole numbers so that ties are exact.

    With move flags m_f, m_s and m_s widened by one step either way: both - 3 outside - .05 different.
    """
    f, m = (lives.moves.astype(np.float64) for lives in (link.fakes, link.people))
    moves = f.sum(axis=1)[:, None]
    near, equal = f @ widen(m).T, f @ m.T
    return np.asarray(20 * near - 60 * (moves - near) - (moves + m.sum(axis=1) - 2 * equal))


def widen(flags: Floats) -> Floats:
    """Return flags that also hold one slot before and after."""
    wide = flags.copy()
    wide[:, 1:] = np.maximum(wide[:, 1:], flags[:, :-1])
    wide[:, :-1] = np.maximum(wide[:, :-1], flags[:, 1:])
    return wide


def by_shifted_move_times(link: Link) -> Floats:
    """Compare when they move, either half of the day up to two hours early or late."""
    mine, theirs = (widen(lives.moves.astype(np.float64))[:, None, :] for lives in (link.fakes, link.people))
    clock = link.people.clock
    return shifted_nearness(mine, theirs, clock.second[1:], clock.minutes)


def move_timing(case: Case) -> Finding:
    """Link fakes to people by the times of their moves alone (A4)."""
    scores: dict[str, Score] = {"aligned": by_move_times, "shifted": by_shifted_move_times}
    return name_people(case, scores, bar=TIMING_BAR, knows="only when each person moves")


def shifted_nearness(fakes: Floats, people: Floats, second: Ints, minutes: float) -> Floats:
    """
    Return how near people are to fakes in Euclid's sense, the larger the nearer, either half of the day shifted.

    Tables are (lives, kinds, slots): 1 where a life is of that kind at that slot. What everybody does at a slot counts
    for nothing: each side is taken relative to its mean.
    """
    fakes, people = ((x - x.mean(axis=0)).astype(np.float32) for x in (fakes, people))
    T, most = fakes.shape[2], min(fakes.shape[2] - 1, round(HOURS_OFF * 60 / minutes))
    stride = max(1, most // 4)  # some nine shifts are enough
    total = np.zeros((len(fakes), len(people)), dtype=np.float32)
    for half in (0, 1):
        mine = np.flatnonzero(second // 43_200 % 2 == half)
        if len(mine) == 0:
            continue
        left, best = fakes[:, :, mine].reshape(len(fakes), -1), np.full_like(total, -np.inf)
        for shift in range(-most, most + 1, stride):
            at = np.clip(mine + shift, 0, T - 1)
            np.maximum(best, left @ people[:, :, at].reshape(len(people), -1).T, out=best)
        total += best
    return np.asarray(total - (people**2).sum(axis=(1, 2)) / 2, dtype=np.float64)


# -- A5: which place stands for which, and who lives how and where -----------------------------------------------------


class Pairs:
    """How often a fake is at x while its person is at r, over all pairs of a link; logarithms of counts and floors."""

    def __init__(self, link: Link, most: int = 10**9) -> None:
        owner, slots = link.made_from, link.people.clock.thin(most)
        (n, self.people), (m, self.fakes) = (_compact(lives.r[:, slots]) for lives in (link.people, link.fakes))
        if n * m > MOST_CELLS:
            raise Needs(f"larger places or fewer people: {n} x {m} places do not fit into memory")
        self.made = np.argsort(owner, kind="stable")
        self.start = np.searchsorted(owner[self.made], np.arange(len(self.people) + 1))
        self.count, self.leaving = np.zeros((n, m), dtype=np.int32), np.zeros(n, dtype=np.int64)
        for person in range(len(self.people)):
            self.add(person, 1)
        number = np.arange(int(self.leaving.max()) + 1)
        self.logs = np.log(number + FLOOR), np.log(number + FLOOR * link.people.R)
        seen = np.bincount(self.fakes[self.fakes >= 0], minlength=m) + FLOOR
        self.log_share = np.log(seen / seen.sum())

    def fakes_of(self, person: int) -> Ints:
        """Return the numbers of the fakes made from a person."""
        return self.made[self.start[person] : self.start[person + 1]]

    def add(self, person: int, sign: int) -> None:
        """Add the pairs of a person to the counts (sign +1), or take them out (-1)."""
        change_pairs(self.count, self.leaving, self.people[person], self.fakes[self.fakes_of(person)], sign)

    def score(self) -> Floats:
        """Return (F, U) sum_t ln M[s(t), f(t)] / share(f(t)), M from the pairs of all but these two people."""
        out = np.empty((len(self.fakes), len(self.people)))
        pair_likelihoods(
            self.count, self.leaving, *self.logs, self.log_share, self.people, self.fakes, self.start, self.made, out
        )
        return out


def _compact(r: Ints) -> tuple[int, Ints]:
    """Return the number of places that occur, and the table with these numbered; -1 stays."""
    places = np.unique(r[r >= 0])
    return max(1, len(places)), np.where(r >= 0, np.searchsorted(places, r), -1)


def by_pairs(link: Link) -> Floats:
    """Return how well a person fits by which place stands for which, learnt from the pairs of all other people."""
    return Pairs(link, MOST_SLOTS).score()


def by_time_shares(link: Link) -> Floats:
    """Return sim_S of order 0: the overlap of the times at the own places, the longest first."""
    from scipy.spatial.distance import cdist

    most = max(int(lives.ranked[3].max(initial=0)) for lives in link[:2]) + 1
    mine, theirs = np.zeros((len(link.fakes), most)), np.zeros((len(link.people), most))
    for lives, out in ((link.fakes, mine), (link.people, theirs)):
        row, _, time, rank = lives.ranked
        out[row, rank] = time / np.bincount(row, time)[row]
    return np.asarray((mine.sum(axis=1)[:, None] + theirs.sum(axis=1) - cdist(mine, theirs, "cityblock")) / 2)


def by_metres(link: Link) -> Floats:
    """Return minus the mean distance, slot by slot."""
    slots = link.people.clock.thin(MOST_SLOTS)
    return _nearness_in_metres(link.fakes.r[:, slots], link.people.r[:, slots], link)


def by_usual_metres(link: Link) -> Floats:
    """Return minus the mean distance between the usual places of each hour of the week."""
    return _nearness_in_metres(usual_places(link.fakes), usual_places(link.people), link)


def by_places_in_metres(link: Link) -> Floats:
    """Return minus the mean distance, over the time of a fake, to the nearest place of the person."""
    from scipy.spatial.distance import cdist

    time = link.fakes.time
    there = np.flatnonzero(time.sum(axis=0))
    xy, time = link.people.locations.planar(), time[:, there] / np.maximum(time.sum(axis=1), 1)[:, None]
    out = np.empty((len(link.fakes), len(link.people)))
    for person in range(len(link.people)):
        own = xy[link.people.visited[[person]].indices]
        out[:, person] = -(time @ cdist(xy[there], own).min(axis=1, initial=np.inf))
    return out


def _nearness_in_metres(mine: Ints, theirs: Ints, link: Link) -> Floats:
    out = np.empty((len(mine), len(theirs)))
    xy = link.people.locations.planar()
    mean_distances(np.ascontiguousarray(mine), np.ascontiguousarray(theirs), *map(np.ascontiguousarray, xy.T), out)
    return -out


def usual_places(lives: Lives) -> Ints:
    """Return (N, 168) the place where each life is most at each hour of the week, -1 where it is never seen."""
    row, slot = np.nonzero(lives.r >= 0)
    return most_frequent(row * 168 + lives.clock.hour[slot], lives.r[row, slot], (len(lives), 168), lives.R)


def kinds_by_rank(lives: Lives) -> Ints:
    """Return (N, T) the rank of the place of each slot among the own places, by time; RANKS - 1 for all others."""
    row, place, _, rank = lives.ranked
    key = row * lives.R + place
    order = np.argsort(key)
    here = np.arange(len(lives))[:, None] * lives.R + np.maximum(lives.r, 0)
    return np.where(lives.r >= 0, np.minimum(rank[order][find_in(key[order], here)], RANKS - 1), -1)


def kinds_by_class(lives: Lives, label: Ints) -> Ints:
    """Return (N, T) the class of the place of each slot, -1 where it is not known."""
    return np.where(lives.r >= 0, label[lives.r], -1)


def by_routine(link: Link, kinds: Any) -> Floats:
    """Compare what kind of place they are at, slot by slot, either half of the day up to two hours early or late."""
    slots = link.people.clock.thin(400)
    minutes = link.people.clock.minutes * (slots[1] - slots[0] if len(slots) > 1 else 1)
    mine, theirs = _one_hot(kinds(link.fakes)[:, slots], kinds(link.people)[:, slots])
    return shifted_nearness(mine, theirs, link.people.clock.second[slots], minutes)


def by_usual_routine(link: Link, kinds: Any) -> Floats:
    """Compare the share of each kind of place at each hour of the week."""
    hour, place = np.unique(link.people.clock.hour, return_inverse=True)
    fold = np.zeros((len(place), len(hour)), dtype=np.float32)
    fold[np.arange(len(place)), place] = 1
    sides = []
    for table in _one_hot(kinds(link.fakes), kinds(link.people)):
        share = table @ fold
        sides.append(share / np.maximum(share.sum(axis=1, keepdims=True), 1))
    mine, theirs = ((x - x.mean(axis=0)).reshape(len(x), -1) for x in sides)
    return np.asarray(mine @ theirs.T - (theirs**2).sum(axis=1) / 2, dtype=np.float64)


def _one_hot(*tables: Ints) -> list[Any]:
    """Return (N, kinds, T) ones where a life is at a place of that kind."""
    kinds = range(max(int(t.max(initial=0)) for t in tables) + 1)
    return [np.stack([t == kind for kind in kinds], axis=1).astype(np.float32) for t in tables]


def class_linkage(case: Case) -> Finding:
    """Run every attack that knows where or how people live (A5); the strongest is the figure."""
    scores: dict[str, Score] = {"time_shares": by_time_shares}
    kinds: dict[str, Any] = {"ranks": kinds_by_rank}
    if case.label is not None:
        kinds["classes"] = partial(kinds_by_class, label=case.label)
    for name, of in kinds.items():
        scores |= {name: partial(by_routine, kinds=of), f"{name}_by_hour": partial(by_usual_routine, kinds=of)}
    if case.seeds.locations.has_coordinates:
        scores |= {"metres": by_metres, "metres_by_hour": by_usual_metres, "places_in_metres": by_places_in_metres}
    return name_people(
        case,
        scores,
        bar=NAMED,
        knows="how and where everybody lives, and whose fakes all others are,",
        learns={"pairs": by_pairs},
    )


# -- A24: the shape of a life ------------------------------------------------------------------------------------------


def by_shape(link: Link, *, scaled: bool) -> Floats:
    """Return minus the mean difference of the sorted logarithms of the distances between the four main places."""
    from scipy.spatial.distance import cdist

    mine, theirs = (main_distances(lives) for lives in (link.fakes, link.people))
    if scaled:
        mine, theirs = (x - x.mean(axis=1, keepdims=True) for x in (mine, theirs))
    return np.asarray(-cdist(mine, theirs, "cityblock"))


def main_distances(lives: Lives) -> Floats:
    """Return (N, 6) the sorted ln(km + .1) between the four main places; with fewer places the main one again."""
    top = lives.main_places(4)
    top = np.where(top >= 0, top, top[:, :1])
    a, b = np.triu_indices(4, 1)
    return np.sort(np.log(lives.locations.distance(top[:, a], top[:, b]) + 0.1), axis=1)


def shape_linkage(case: Case) -> Finding:
    """Link fakes to people by the distances between their main places (A24)."""
    if not case.seeds.locations.has_coordinates:
        raise Needs("coordinates of the places (`locations`)")
    scores: dict[str, Score] = {name: partial(by_shape, scaled=name == "scaled") for name in ("distances", "scaled")}
    return name_people(case, scores, bar=TIMING_BAR, knows="how far apart the main places of each person are")


# -- A6: where was the person? A7: what does a fake avoid? -------------------------------------------------------------

FAKES = (1, 3, 10)
ABOVE_PRIOR = 0.05
MOST_REBUILT, MOST_REBUILT_SLOTS = 500, 72


class Recovered(NamedTuple):
    """
    Per person who has fakes enough, the share of the slots whose place is found.

    `exact` by the attack, `top5` among its first five places, `prior` by the places of the other people alone.
    """

    person: Ints
    exact: Floats
    top5: Floats
    prior: Floats


def reconstruct_seeds(link: Link, n: int) -> Recovered:
    """Find the places of people who have n fakes, from the first n of them (A6)."""
    pairs = Pairs(link, MOST_REBUILT_SLOTS)
    V = len(pairs.leaving)
    visits = np.bincount(pairs.people[pairs.people >= 0], minlength=V).astype(np.float64)
    able = np.flatnonzero(np.diff(pairs.start) >= n)[:MOST_REBUILT]
    success = np.zeros((len(able), 3))
    for i, person in enumerate(able.tolist()):
        own, seen = pairs.people[person], np.flatnonzero(pairs.people[person] >= 0)
        with np.errstate(divide="ignore"):
            prior = np.log(visits - np.bincount(own[seen], minlength=V))
        pairs.add(person, -1)
        alone = np.repeat(prior[:, None], len(seen), axis=1)
        score = alone.copy()
        for fake in pairs.fakes[pairs.fakes_of(person)[:n]][:, seen]:
            told = pairs.logs[0][pairs.count[:, fake]] - pairs.logs[1][pairs.leaving][:, None]
            score += np.where(fake >= 0, told, 0.0)
        pairs.add(person, 1)
        for column, table, best in ((0, score, 1), (1, score, 5), (2, alone, 1)) if len(seen) else ():
            true = table[own[seen], np.arange(len(seen))]
            above, up_to = (table > true + 1e-9).sum(axis=0), (table >= true - 1e-9).sum(axis=0)
            success[i, column] = np.clip((best - above) / (up_to - above), 0, 1).mean()
    return Recovered(able, *success.T)


def reconstruction(case: Case) -> Finding:
    """Find the place of the person at each slot from the fakes (A6)."""
    owner, rng = case.link.made_from, case.rng()
    link = Link(case.fakes, case.seeds, owner)
    most = int(np.bincount(owner).max())
    runs = {n: reconstruct_seeds(link, n) for n in FAKES if n <= most}
    n = max(runs, key=lambda each: float(runs[each].exact.mean()))
    found = runs[n]
    beside = {"null": reconstruct_seeds(Link(case.walks(rng), case.seeds, owner), n)}
    if case.strangers is not None:
        stand_in = rng.permutation(len(case.strangers))[owner % len(case.strangers)]
        beside["control"] = reconstruct_seeds(Link(case.fakes, case.strangers, stand_in), 1)
    gain = {name: difference(run.exact - run.prior, np.zeros(2)) for name, run in {"main": found, **beside}.items()}
    prior = float(found.prior.mean())
    rates: dict[str, Any] = {name: Rate(*(min(1.0, max(0.0, prior + x)) for x in rate)) for name, rate in gain.items()}
    words = "Whoever knows all other people's pairs of person and fake finds where a person was at "
    words += f"{percent(rates['main'].value)} of the times; from the places of the other people alone it is "
    return Finding(
        **rates,
        baseline=prior,
        bar=prior + ABOVE_PRIOR,
        passed=verdict(gain["main"], ABOVE_PRIOR, gain["null"]),
        worst_decile=float(np.sort(found.exact)[::-1][: -(-len(found.exact) // 10)].mean()),
        words=f"{words}{percent(prior)}.",
        details={name: {k: float(getattr(run, name).mean()) for k, run in runs.items()} for name in ("exact", "top5")},
    )


def by_absence(link: Link) -> Floats:
    """Return by how much fewer places a fake shares with a person than its number of places lets expect."""
    mine, theirs = link.fakes.visited, link.people.visited
    shared = (mine @ theirs.T).toarray()
    popular = np.asarray(mine.mean(axis=0)).ravel()
    size = np.asarray(mine.sum(axis=1)).ravel()
    expected = (theirs @ popular)[None, :] * (size / size.mean())[:, None]
    return np.asarray((expected - shared) / np.sqrt(expected + 0.5))


def avoidance(case: Case) -> Finding:
    """Ask whether a fake avoids the places of the person it was made from (A7)."""
    owner, rng, strangers = case.link.made_from, case.rng(), case.others
    both = by_absence(Link(case.fakes, case.seeds.join(strangers)))
    table, side = both[:, : len(case.seeds)], both[:, len(case.seeds) :]
    stand_in = rng.permutation(len(strangers))[owner % len(strangers)]
    rates = []
    for score, own in ((table, owner), (table, rng.permutation(len(case.seeds))[owner]), (side, stand_in)):
        mine = score[np.arange(len(score)), own][:, None]  # how often it is avoided more than a stranger
        rates.append(user_rate((side < mine).mean(axis=1) + (side == mine).mean(axis=1) / 2, case.units, rng))
    (main, worst), (null, _), (control, _) = rates
    chance = max(0.5, null.high)
    words = "A fake avoids the places of the person it was made from more than those of a stranger in "
    words += f"{percent(main.value)} of the cases; by chance it is {percent(null.value)}."
    return Finding(main, control, null, None, 0.5, chance, bool(main.low <= chance), worst, words)
