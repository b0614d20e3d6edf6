"""
Linkage attacks (A4, A5): which seed was the fake made from? Reconstruction (A6, A7): where was that seed?

A4 looks only at the times at which the fake moves.

A5 also knows which place of a fake replaces which place of a seed. From the pairs of all other users it takes

    score(s) = sum_t ln M[s(t), f(t)],   M = (co-occurrences of seed place and fake place + .02), rows normalised.

Other attackers hold the classes, the generator or its exact law, where these are given; of fakes over several days,
also all days together, or their number alone. The figure is that of the strongest attacker.

A6 and A7 find the place of the seed at each slot from n of its fakes, without naming it. A6 takes the argmax over r of
ln prior(r) + sum over the fakes of ln M[r, f(t)], prior and M from the other users. A7 takes what the fakes avoid:
among the places of the class that they use most at t, the one that they use least relative to its expectation.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import Floats, Ints
from elsewhere.evaluation.attacks._attacks_kernels import (
    forget,
    likelihoods,
    reconstruct,
    shifted_agreements,
    shifted_likelihoods,
)
from elsewhere.evaluation.attacks.candidates import (
    DIGITS,
    Variant,
    blocks,
    by_candidate,
    chance_of_top,
    compact,
    compact_pairs,
    link_finding,
)
from elsewhere.evaluation.attacks.finding import Finding, Rate, by_user, paired_difference, percent, user_rate, verdict
from elsewhere.evaluation.attacks.inputs import AttackInputs, Link, People

FLOOR = 0.02
TIMING_BAR = 0.01
STRAY = 0.1  # share of slots at which a fake is in no class of its seed
SHIFTS = {  # hours by which a fake may be early or late
    "with_classes": (0, ""),
    "with_classes_1h": (1, ", and knows that a fake may be an hour early or late,"),
    "with_classes_2h": (2, ", and knows that a fake may be two hours early or late,"),
}
# fakes at most and at least, and slots of pairs, that each attack of A5 beside the first tries
MOST_FAKES, LEAST_FAKES, MOST_WORK = 2000, 200, 1e7
NAMED = 0.1  # of the seeds at most, by whoever knows which places stand in for which


def timing_score(fakes: Ints, people: Ints) -> Floats:
    """
    Return 20 times the score of A4, in whole numbers so that ties are exact, (F, N).

    With move flags m_f, m_s and m_s widened by one step either way: both - 3 outside - .05 different.
    """
    m_f, m_s = (np.diff(r, axis=1) != 0 for r in (fakes, people))
    wide = m_s.copy()
    wide[:, 1:] |= m_s[:, :-1]
    wide[:, :-1] |= m_s[:, 1:]
    f = m_f.astype(np.float64)
    moves = f.sum(axis=1)[:, None]
    near, equal = f @ wide.T.astype(np.float64), f @ m_s.T.astype(np.float64)
    return np.asarray(20 * near - 60 * (moves - near) - (moves + m_s.sum(axis=1) - 2 * equal))


def link_by_timing(link: Link) -> tuple[Floats, Floats]:
    """Return the success of A4 on each fake: that its seed comes first, and that it is among the first ten."""
    best, ten = np.empty(len(link.fakes)), np.empty(len(link.fakes))
    for rows in blocks(link):
        score = by_candidate(timing_score(link.fakes[rows], link.people.r), link.people)
        best[rows], ten[rows] = (chance_of_top(score, link.user[rows], n) for n in (1, 10))
    return best, ten


def move_timing(inputs: AttackInputs) -> Finding:
    """Link fakes to seeds by the times of their moves alone (A4)."""
    return link_finding(
        inputs,
        "A4",
        link_by_timing,
        bar=TIMING_BAR,
        question=f"The times at which a fake moves, and no place, name its seed among {inputs.seeds.U} people",
        also=("top10",),
    )


class CoOccurrence:
    """
    How often a fake is at x while its seed is at r, over all pairs of a link, one user forgotten at a time.

    Tables are (places of people, places of fakes) in use; `add` changes them in place, exactly.
    """

    def __init__(self, link: Link, R: int) -> None:
        self.link = link
        shape, self.fakes, self.people = compact_pairs(R, link.fakes, link.people.r)
        self.width = FLOOR * R
        self.count = np.zeros(shape)
        np.add.at(self.count, (self.people[link.owner], self.fakes), 1.0)
        self.leaving = self.count.sum(axis=1)
        self.log_count = np.log(self.count + FLOOR)
        self.log_leaving = np.log(self.leaving + self.width)
        order = np.argsort(link.user, kind="stable")
        makers, start = np.unique(link.user[order], return_index=True)
        self.fakes_of = dict(zip(makers.tolist(), np.split(order, start[1:]), strict=True))

    def add(self, user: int, sign: float) -> None:
        """Add the pairs of one user to the tables (sign +1), or take them out (-1)."""
        mine = self.fakes_of[user]
        tables = self.count, self.leaving, self.log_count, self.log_leaving
        forget(*tables, FLOOR, self.width, self.people, self.fakes[mine], self.link.owner[mine], sign)

    def score(self, fakes: Ints, people: Ints) -> Floats:
        """Return sum_t ln M[s(t), f(t)] with the present tables; rows of the renumbered `self.fakes`, `self.people`."""
        out = np.empty((len(fakes), len(people)))
        likelihoods(fakes, people, self.log_count, self.log_leaving, out)
        return out


def link_by_pairs(link: Link, R: int) -> tuple[Floats, Floats]:
    """Return the success of A5 on each fake, M from all other users' pairs: seed first, and among the first ten."""
    pairs = CoOccurrence(link, R)
    best, ten = np.empty(len(link.fakes)), np.empty(len(link.fakes))
    for user, mine in pairs.fakes_of.items():
        pairs.add(user, -1.0)
        score = by_candidate(pairs.score(pairs.fakes[mine], pairs.people), link.people)
        best[mine], ten[mine] = (chance_of_top(score, np.full(len(mine), user), n) for n in (1, 10))
        pairs.add(user, 1.0)
    return best, ten


def link_by_known_pairs(link: Link, R: int, known: Link) -> Floats:
    """Return the success of A5 on each fake, M from the pairs `known`, of other people (grey box)."""
    both = Link(
        np.concatenate([known.fakes, link.fakes]),
        np.concatenate([known.owner, link.owner + len(known.people.r)]),
        People(np.concatenate([known.people.r, link.people.r]), np.empty(0, dtype=np.int64), 0),
    )
    shape, fakes, people = compact_pairs(R, both.fakes, both.people.r)
    count = np.zeros(shape)
    n = len(known.fakes)
    np.add.at(count, (people[both.owner[:n]], fakes[:n]), 1.0)
    log_count, log_leaving = np.log(count + FLOOR), np.log(count.sum(axis=1) + FLOOR * R)
    mine, candidates = fakes[n:], people[len(known.people.r) :]
    out = np.empty(len(mine))
    for rows in blocks(link):
        score = np.empty((len(rows), len(candidates)))
        likelihoods(mine[rows], candidates, log_count, log_leaving, score)
        out[rows] = chance_of_top(by_candidate(score, link.people), link.user[rows])
    return out


def link_by_half_of_pairs(link: Link, R: int, order: Ints) -> Floats:
    """Return the success of A5 on each fake, M from the pairs of the half of the users that its seed is not in."""
    half = np.argsort(np.argsort(order[: link.people.U])) < link.people.U // 2
    out = np.empty(len(link.fakes))
    for part in (half, ~half):
        mine, theirs = np.flatnonzero(~part[link.user]), np.flatnonzero(part[link.user])
        if len(mine):
            rest = Link(link.fakes[theirs], link.owner[theirs], link.people)
            out[mine] = link_by_known_pairs(Link(link.fakes[mine], link.owner[mine], link.people), R, rest)
    return out


def sorted_visits(r: Ints) -> Ints:
    """Return the visit counts of each trace, the largest first: all that sim_S of order 0 depends on (E20, E21)."""
    ordered = np.sort(r, axis=1)
    number = np.cumsum(np.diff(ordered, axis=1, prepend=ordered[:, :1] - 1) != 0, axis=1) - 1
    count = np.zeros((len(r), int(number.max()) + 1), dtype=np.int64)
    np.add.at(count, (np.arange(len(r))[:, None], number), 1)
    return -np.sort(-count, axis=1)


def link_by_similarity(link: Link) -> Floats:
    """Return the success on each fake of ranking the candidates by sim_S (E55)."""
    fakes, people = sorted_visits(link.fakes), sorted_visits(link.people.r)
    out = np.empty(len(link.fakes))
    for rows in blocks(link):
        score = np.zeros((len(rows), len(people)), dtype=np.int64)
        for i in range(min(fakes.shape[1], people.shape[1])):
            score += np.minimum(fakes[rows, i][:, None], people[:, i])
        out[rows] = chance_of_top(by_candidate(score, link.people), link.user[rows])
    return out


def class_runs(r: Ints, label: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the runs of one class of each trace: first slots (N, L), classes (N, L), and the number of runs (N,)."""
    kind = label[r]
    begins = np.ones(kind.shape, dtype=bool)
    begins[:, 1:] = kind[:, 1:] != kind[:, :-1]
    row, at = np.nonzero(begins)
    number = np.cumsum(begins, axis=1)[row, at] - 1
    first, of = np.zeros((2, *kind.shape), dtype=np.int64)
    first[row, number], of[row, number] = at, kind[row, at]
    return first, of, begins.sum(axis=1)


def class_odds(fakes: Ints, label: Ints) -> Floats:
    """
    Return (K + 1, R) Pr{fake at r | seed in class c} / Pr{fake at r}; the last row, for an unknown class, is 1.

    A fake is in the class of its seed but for the share `STRAY` of the slots.
    """
    visits = np.bincount(fakes.ravel(), minlength=len(label)) + 1.0
    K = int(label.max()) + 1
    of_class = np.bincount(label[label >= 0], visits[label >= 0], K) / visits.sum()
    odds = np.full((K + 1, len(label)), 1.0)
    odds[:K] = STRAY
    there = np.flatnonzero(label >= 0)
    odds[label[there], there] = STRAY + (1 - STRAY) / of_class[label[there]]
    return odds


def share_a_place(fakes: Ints, people: People, R: int) -> NDArray[np.bool_]:
    """Return whether each fake goes to any place of each user, (F, U)."""
    V, (mine, theirs) = compact(R, fakes, people.r)
    visited = np.zeros((people.U, V), dtype=np.float32)
    visited[people.user[:, None], theirs] = 1
    out = np.zeros((len(fakes), people.U), dtype=bool)
    for t in range(fakes.shape[1]):
        out |= visited[:, mine[:, t]].T > 0
    return out


def link_by_classes(link: Link, label: Ints, R: int, shift: int) -> Floats:
    """
    Return the success on each fake of an attacker who holds the classes and ranks the candidates by likelihood.

    A fake is in the class of its seed but for a few slots; it changes class when its seed does, or up to `shift` slots
    earlier or later. How often fakes share a place with their seeds, the attacker learns from all other users' pairs.
    """
    shift = min(shift, link.fakes.shape[1] - 1)
    runs, gain = class_runs(link.people.r, label), class_odds(link.fakes, label)
    out, own = np.empty(len(link.fakes)), link.user
    U, before = link.people.U, []
    for rows in blocks(link):
        score = np.empty((len(rows), len(link.people.r)))
        shifted_likelihoods(link.fakes[rows], *runs, shift, gain, score)
        met = share_a_place(link.fakes[rows], link.people, R)
        before.append((rows, by_candidate(score, link.people), met))
    # pairs of other users: how often do seed and fake have a place in common, how often do strangers
    same = np.concatenate([met[np.arange(len(rows)), own[rows]] for rows, _, met in before])
    anybody = sum(float(met.sum()) for _, _, met in before)
    pairs, mine = np.bincount(own, minlength=U), np.bincount(own, same, U)
    for rows, score, met in before:
        n, k = len(own) - pairs[own[rows]], same.sum() - mine[own[rows]]
        shared, common = (k + 0.5) / (n + 1), (anybody + 0.5) / (len(own) * U + 1)
        bonus = np.where(met, np.log(shared / common)[:, None], np.log((1 - shared) / (1 - common))[:, None])
        out[rows] = chance_of_top(np.round(score + bonus, DIGITS), own[rows])
    return out


def link_by_shifted_day(link: Link, label: NDArray[np.integer], R: int, shift: int) -> Floats:
    """
    Return the success on each fake of an attacker who holds the classes and shifts whole days by up to `shift` slots.

    The score of a candidate is the largest number of slots at which both are in one class, over all shifts; whoever
    shares a place with the fake comes last, since fakes avoid the places of their seeds.
    """
    # the smaller the numbers, the more of them are compared at once
    kind, count = np.min_scalar_type(-1 - int(label.max(initial=0))), np.min_scalar_type(link.fakes.shape[1])
    theirs = np.ascontiguousarray(np.where(link.people.r >= 0, label[link.people.r], -1).T.astype(kind))
    out, agreement = np.empty(len(link.fakes)), np.empty((2, theirs.shape[1]), dtype=count)
    for rows in blocks(link):
        best = np.empty((len(rows), theirs.shape[1]), dtype=np.int64)
        shifted_agreements(label[link.fakes[rows]].astype(kind), theirs, shift, agreement, best)
        score = np.where(share_a_place(link.fakes[rows], link.people, R), -1, by_candidate(best, link.people))
        out[rows] = chance_of_top(score, link.user[rows])
    return out


def rows_by_day(number: Ints, dates: Any = None) -> list[Ints]:
    """Return the rows of each life, or user, 0, 1, ...; by date where dates are known, else in their order."""
    when = np.zeros(len(number), dtype=np.int64) if dates is None else np.asarray(dates).astype(np.int64)
    order = np.lexsort((np.arange(len(number)), when, number))
    return np.split(order, np.searchsorted(number[order], np.arange(1, int(number.max()) + 1)))


def link_by_number_of_days(lives: list[Ints], people: list[Ints], own: Ints) -> Floats:
    """
    Return (lives,) the success of an attacker who knows only how many days each fake and each user has.

    `lives` and `people` are the rows of each, `own` the user behind each life.
    """
    number = np.array([len(rows) for rows in people])
    days = np.array([len(rows) for rows in lives])
    alike = (number[None, :] == days[:, None]).sum(axis=1)
    return np.where(number[own] == days, 1 / np.maximum(1, alike), 0.0)


def link_by_whole_life(
    fakes: Ints, lives: list[Ints], r: Ints, people: list[Ints], own: Ints, label: Ints, shifts: Iterable[int]
) -> Floats:
    """
    Return (lives,) the success of an attacker who holds the classes and compares day by day, all days of a life.

    The score of a user is the largest share of slots at which both are in one class, over all shifts of whole days. It
    is taken over as many days as both have: a fake need not have as many as its seed.
    """
    kind, mine = label[r], label[fakes]
    number = np.array([len(rows) for rows in people])
    out = np.zeros(len(lives))
    for i, (rows, user) in enumerate(zip(lives, own.tolist(), strict=True)):
        both = np.minimum(number, len(rows))
        score = np.zeros(len(people))
        for n in np.unique(both).tolist():
            able = np.flatnonzero(both == n)
            theirs, days = kind[np.array([people[u][:n] for u in able])], mine[rows[:n]]  # (users, days, L), (days, L)
            L = days.shape[1]
            for early in shifts:
                at = np.clip(np.arange(L) - early, 0, L - 1)
                agree = ((theirs[:, :, at] == days) & (days >= 0)).sum(axis=(1, 2)) / n
                score[able] = np.maximum(score[able], agree)
        out[i] = chance_of_top(score[None, :], np.array([user]))[0]
    return out


def _attacks_on_lives(inputs: AttackInputs, shift: int, among: str, rng: np.random.Generator) -> dict[str, Variant]:
    """Return attacks that use all days of a fake together; they are tried on some lives, with all of their days."""
    sizes = np.bincount(inputs.life)
    step = max(1, shift // 6)
    shifts = range(-shift, shift + 1, step)
    work = len(inputs.seeds.r) * inputs.fakes.shape[1] * len(shifts)
    some = np.sort(rng.permutation(np.flatnonzero(sizes))[: max(50, int(MOST_WORK / work))])
    rows = np.flatnonzero(np.isin(inputs.life, some))
    _, life = np.unique(inputs.life[rows], return_inverse=True)
    when = inputs.dates.get("fakes")
    lives = rows_by_day(life, None if when is None else when[rows])
    first = np.array([mine[0] for mine in lives])

    def days_and_owner(link: Link) -> tuple[list[Ints], Ints]:
        """Return the rows of each person by date, and the user behind each life."""
        dates = inputs.dates.get("seeds") if link.people is inputs.seeds else None
        own = link.user[first]
        # walks and fresh people know no seed: how many days their lives have is that of another
        own = own if np.array_equal(link.fakes, inputs.fakes[rows]) else np.roll(own, 1)
        return rows_by_day(link.people.user, dates), own

    variants = {
        "number_of_days": Variant(
            lambda link: link_by_number_of_days(lives, *days_and_owner(link))[life],
            f"Whoever knows how many days people have {among}",
            rows,
            len(lives),
        )
    }
    if inputs.label is not None:
        label = inputs.label
        variants["whole_life"] = Variant(
            lambda link: link_by_whole_life(
                link.fakes, lives, link.people.r, *days_and_owner(link), label=label, shifts=shifts
            )[life],
            f"Whoever holds the classes of the places and adds up all days of a fake {among}",
            rows,
            len(lives),
        )
    return variants


def white_box(inputs: AttackInputs, link: Link) -> Floats:
    """Return the success of the attacker who holds the model: candidates by the true ln Pr{f|s}."""
    candidates = inputs.seeds_given if link.people is inputs.seeds else link.people.r
    out = np.empty(len(link.fakes))
    for rows in blocks(link):
        score = by_candidate(np.asarray(inputs.sampler.log_prob(link.fakes[rows], candidates)), link.people)
        out[rows] = chance_of_top(score, link.user[rows])
    return out


WITHOUT_CLASSES = "Attacks that use classes of places were not tried (no `classes`); they may link more fakes."


def class_linkage(inputs: AttackInputs) -> Finding:
    """Run A5: every attack on the question that the inputs allow; the strongest is the figure."""
    rng, R, label = inputs.rng("A5"), inputs.R, inputs.label
    among = f"names the seed among {inputs.seeds.U} people"
    size = len(inputs.seeds.r) * inputs.fakes.shape[1]
    many = rng.permutation(len(inputs.fakes))[:MOST_FAKES]
    some = np.sort(many[: max(LEAST_FAKES, int(MOST_WORK / size))])
    halves = rng.permutation(max(inputs.seeds.U, inputs.strangers.U))
    beside = {
        "half_known": Variant(
            lambda link: link_by_half_of_pairs(link, R, halves),
            f"Whoever knows the pairs of seed and fake of half of the users {among}",
            some,
        ),
        "rank_by_sim_s": Variant(link_by_similarity, f"Whoever compares how a fake shares out its time {among}", some),
    }
    if label is not None:
        for name, (hours, late) in SHIFTS.items():
            shift = int(hours * 60 / inputs.step_minutes + 0.5)
            beside[name] = Variant(
                lambda link, shift=shift: link_by_classes(link, label, R, shift),  # type: ignore[misc]
                f"Whoever holds the classes of the places{late} {among}",
                some,
            )
        whole = int(120 / inputs.step_minutes + 0.5)
        beside["with_classes_day"] = Variant(
            lambda link: link_by_shifted_day(link, label, R, whole),
            f"Whoever holds the classes of the places, and knows that a day may be two hours early or late, {among}",
            np.sort(many),
        )
    if np.bincount(inputs.life).max() > 1:
        beside |= _attacks_on_lives(inputs, int(120 / inputs.step_minutes + 0.5), among, rng)
    if inputs.generator is not None:
        from elsewhere.evaluation.attacks.membership import make_fakes

        # the attacker makes fakes of hold-out people and learns M from them
        strangers = Link(*make_fakes(inputs, inputs.strangers, rng), inputs.strangers)
        beside["grey_box"] = Variant(
            lambda link: link_by_known_pairs(link, R, strangers),
            f"Whoever holds the generator and people of his own {among}",
            some,
        )
    if inputs.sampler is not None:
        beside["white_box"] = Variant(lambda link: white_box(inputs, link), f"Whoever holds the model {among}", some)
    finding = link_finding(
        inputs,
        "A5",
        lambda link: link_by_pairs(link, R),
        bar=NAMED,
        question=f"Whoever knows all other users' pairs of seed and fake {among}",
        also=("top10",),
        beside=beside,
    )
    return finding if label is not None else replace(finding, words=f"{finding.words} {WITHOUT_CLASSES}")


FAKES = (1, 3, 10)
ABOVE_PRIOR = 0.05


class Recovered(NamedTuple):
    """
    Per seed row that has fakes enough, the share of its slots found.

    `exact` by the attack, `top5` among its first five places, `prior` by the places of the other users alone.
    """

    row: Ints
    exact: Floats
    top5: Floats
    prior: Floats


def _fakes_of_rows(link: Link, n: int) -> dict[int, Ints]:
    """Return the first n fakes of every seed row that has so many."""
    order = np.argsort(link.owner, kind="stable")
    rows, start = np.unique(link.owner[order], return_index=True)
    parts = np.split(order, start[1:])
    return {int(row): mine[:n] for row, mine in zip(rows, parts, strict=True) if len(mine) >= n}


def reconstruct_seeds(link: Link, R: int, n: int) -> Recovered:
    """Find the places of every seed that has n fakes, from the first n of them (A6)."""
    pairs = CoOccurrence(link, R)
    V, L = len(pairs.leaving), link.fakes.shape[1]
    visits = np.bincount(pairs.people.ravel(), minlength=V).astype(np.float64)
    rows_of_user = [np.flatnonzero(link.people.user == u) for u in range(link.people.U)]
    groups = _fakes_of_rows(link, n)
    success = np.empty((len(groups), 3))
    above, tied = np.empty(L, dtype=np.int64), np.empty(L, dtype=np.int64)
    nothing = np.empty((0, L), dtype=np.int64)
    for i, (row, mine) in enumerate(groups.items()):
        user = int(link.people.user[row])
        others = visits - np.bincount(pairs.people[rows_of_user[user]].ravel(), minlength=V)
        with np.errstate(divide="ignore"):
            prior = np.log(others)
        pairs.add(user, -1.0)
        tables = pairs.log_count, pairs.log_leaving
        reconstruct(pairs.fakes[mine], pairs.people[row], prior, *tables, above, tied)
        success[i, :2] = [np.clip((best - above) / tied, 0, 1).mean() for best in (1, 5)]
        reconstruct(nothing, pairs.people[row], prior, *tables, above, tied)
        success[i, 2] = np.clip((1 - above) / tied, 0, 1).mean()
        pairs.add(user, 1.0)
    return Recovered(np.fromiter(groups, dtype=np.int64, count=len(groups)), *success.T)


def find_avoided_places(link: Link, label: Ints, R: int, n: int) -> Recovered:
    """
    Find, for every seed that has n fakes, the place that these use least in the class that they use most at t (A7).

    The expectation of a place within its class is its share of all fakes at that class, over other users' fakes.
    """
    groups = _fakes_of_rows(link, n)
    total_visits = np.bincount(link.fakes.ravel(), minlength=R).astype(np.float64)
    visits = np.bincount(link.people.r.ravel(), minlength=R).astype(np.float64)
    exact, top5, prior = (np.zeros(len(groups)) for _ in range(3))
    L = link.fakes.shape[1]
    members = {c: np.flatnonzero(label == c) for c in np.unique(label[label >= 0]).tolist()}
    for i, (row, mine) in enumerate(groups.items()):
        seed, fakes = link.people.r[row], link.fakes[mine]
        own = np.bincount(fakes.ravel(), minlength=R)
        expected = total_visits - own + 0.5
        others = visits - np.bincount(seed, minlength=R)
        true = np.flatnonzero(others == others.max())
        prior[i] = np.isin(seed, true).sum() / len(true)
        success: dict[tuple[int, int], tuple[float, float]] = {}  # class and true place -> success
        for t in range(L):
            classes = label[fakes[:, t]]
            known = classes[classes >= 0]
            if len(known) == 0:
                continue
            at = int(np.bincount(known).argmax()), int(seed[t])
            if at not in success:
                places = members[at[0]]
                use = (own[places] + 0.01) / expected[places]
                mine_here = np.flatnonzero(places == seed[t])
                tops = (
                    [chance_of_top(-use[None, :], mine_here, best)[0] for best in (1, 5)] if len(mine_here) else [0, 0]
                )
                success[at] = float(tops[0]), float(tops[1])
            exact[i] += success[at][0]
            top5[i] += success[at][1]
    return Recovered(np.fromiter(groups, dtype=np.int64, count=len(groups)), exact / L, top5 / L, prior / L)


def reconstruction_finding(
    inputs: AttackInputs, attack: str, run_attack: Callable[[Link, int], Recovered], how: str
) -> Finding:
    """Return the finding of an attack that names the place of the seed at each slot, from the best number of fakes."""
    rng, link, L = inputs.rng(attack), inputs.main, inputs.fakes.shape[1]
    most = int(np.bincount(link.owner).max())
    counts = [n for n in FAKES if n <= most]

    def rate(result: Recovered, share: Floats) -> tuple[Rate, float]:
        # every slot is a trial of its user; the interval resamples users
        return user_rate(np.repeat(share, L), np.repeat(link.people.user[result.row], L), rng)

    runs = {n: run_attack(link, n) for n in counts}
    rates = {n: rate(best_run, best_run.exact) for n, best_run in runs.items()}
    best = max(counts, key=lambda n: rates[n][0].value)
    best_run = runs[best]
    worst = rates[best][1]
    user = link.people.user[best_run.row]
    gain = paired_difference(by_user(best_run.exact, user), by_user(best_run.prior, user))
    # what is judged is the gain over the prior, person by person: the interval is that of the gain
    prior = float(by_user(best_run.prior, user).mean())
    null = run_attack(inputs.null, best)
    null_gain = paired_difference(by_user(null.exact, user), by_user(null.prior, user))
    main, null_rate = (Rate(*(min(1.0, max(0.0, prior + x)) for x in gained)) for gained in (gain, null_gain))
    strangers = run_attack(inputs.control, best)
    control, _ = user_rate(np.repeat(strangers.exact, L), np.repeat(strangers.row, L), rng)
    return Finding(
        attack,
        interval=main,
        control_interval=control,
        baseline=prior,
        null=null_rate,
        bar=prior + ABOVE_PRIOR,
        passed=verdict(gain, ABOVE_PRIOR, null_gain),
        reachable=null_gain.high <= ABOVE_PRIOR,
        worst_decile=worst,
        words=f"{how} finds the place of the seed at {percent(main.value)} of the slots from {best} fake"
        f"{'s' if best > 1 else ''}; the places of the other people alone find {percent(prior)}.",
        details={
            "n": best,
            "exact": {n: rates[n][0] for n in counts},
            "top5": {n: rate(run, run.top5)[0] for n, run in runs.items()},
            "above_prior": gain,
        },
    )


def reconstruction(inputs: AttackInputs) -> Finding:
    """Find the place of the seed at each slot from its fakes (A6)."""
    return reconstruction_finding(
        inputs,
        "A6",
        lambda link, n: reconstruct_seeds(link, inputs.R, n),
        "Whoever knows all other users' pairs",
    )


def avoidance(inputs: AttackInputs) -> Finding:
    """Find the place of the seed at each slot by what its fakes avoid (A7)."""
    label = inputs.label
    if label is None:
        raise ValueError("`classes` are checked before an attack runs")
    return reconstruction_finding(
        inputs,
        "A7",
        lambda link, n: find_avoided_places(link, label, inputs.R, n),
        "Looking for what the fakes avoid",
    )
