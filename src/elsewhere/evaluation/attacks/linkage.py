"""
A4 and A5: which seed lies behind the fake?

A4 looks only at *when* the fake moves. A5 knows which places stand in for which, from all other users' pairs:

    score(s) = sum_t ln M[s(t), f(t)],   M = (co-occurrences of seed place and fake place + .02), rows normalised.
"""

import numpy as np

from elsewhere.evaluation.attacks._kernels import forget, likelihoods
from elsewhere.evaluation.attacks.candidates import Variant, blocks, by_candidate, compact, link_finding, shared_top
from elsewhere.evaluation.attacks.finding import Finding
from elsewhere.evaluation.attacks.ground import Ground, Link, People
from elsewhere.traces.model import Floats, Ints

FLOOR = 0.02
TIMING_BAR = 0.01


def timing_score(fakes: Ints, people: Ints) -> Floats:
    """
    20 times the score of A4, in whole numbers so that ties are exact, (F, N).

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


def timing_top(link: Link) -> tuple[Floats, Floats]:
    """Success of the move-timing attack on each fake: first, and among the first ten."""
    best, ten = np.empty(len(link.fakes)), np.empty(len(link.fakes))
    for rows in blocks(link):
        score = by_candidate(timing_score(link.fakes[rows], link.people.r), link.people)
        best[rows], ten[rows] = (shared_top(score, link.user[rows], n) for n in (1, 10))
    return best, ten


def move_timing(ground: Ground) -> Finding:
    """A4."""
    return link_finding(
        ground,
        "A4",
        timing_top,
        bar=TIMING_BAR,
        question=f"The times at which a fake moves, and no place, name its seed among {ground.seeds.U} people",
        also=("top10",),
    )


class CoOccurrence:
    """
    How often a fake is at x while its seed is at r, over all pairs of a link, one user forgotten at a time.

    Tables are (V, V) over the places in use; `forget` and `recall` change them in place, exactly.
    """

    def __init__(self, link: Link, R: int) -> None:
        self.link = link
        V, (self.fakes, self.people) = compact(R, link.fakes, link.people.r)
        self.width = FLOOR * R
        self.count = np.zeros((V, V))
        np.add.at(self.count, (self.people[link.owner], self.fakes), 1.0)
        self.leaving = self.count.sum(axis=1)
        self.log_count = np.log(self.count + FLOOR)
        self.log_leaving = np.log(self.leaving + self.width)
        order = np.argsort(link.user, kind="stable")
        makers, start = np.unique(link.user[order], return_index=True)
        self.fakes_of = dict(zip(makers.tolist(), np.split(order, start[1:]), strict=True))

    def forget(self, user: int, sign: float = -1.0) -> None:
        """Take the pairs of one user out; sign +1 puts them back."""
        mine = self.fakes_of[user]
        tables = self.count, self.leaving, self.log_count, self.log_leaving
        forget(*tables, FLOOR, self.width, self.people, self.fakes[mine], self.link.owner[mine], sign)

    def recall(self, user: int) -> None:
        """Put them back."""
        self.forget(user, 1.0)

    def score(self, fakes: Ints, people: Ints) -> Floats:
        """sum_t ln M[s(t), f(t)] with the present tables; rows of the renumbered `self.fakes`, `self.people`."""
        out = np.empty((len(fakes), len(people)))
        likelihoods(fakes, people, self.log_count, self.log_leaving, out)
        return out


def class_aware(link: Link, R: int) -> tuple[Floats, Floats]:
    """Success of A5 on each fake, M from all other users' pairs: first, and among the first ten."""
    pairs = CoOccurrence(link, R)
    best, ten = np.empty(len(link.fakes)), np.empty(len(link.fakes))
    for user, mine in pairs.fakes_of.items():
        pairs.forget(user)
        score = by_candidate(pairs.score(pairs.fakes[mine], pairs.people), link.people)
        best[mine], ten[mine] = (shared_top(score, np.full(len(mine), user), n) for n in (1, 10))
        pairs.recall(user)
    return best, ten


def learnt_elsewhere(link: Link, R: int, known: Link) -> Floats:
    """Success of A5 on each fake, M from the pairs of other people altogether: the grey box."""
    both = Link(
        np.concatenate([known.fakes, link.fakes]),
        np.concatenate([known.owner, link.owner + len(known.people.r)]),
        People(np.concatenate([known.people.r, link.people.r]), np.empty(0, dtype=np.int64), 0),
    )
    V, (fakes, people) = compact(R, both.fakes, both.people.r)
    count = np.zeros((V, V))
    n = len(known.fakes)
    np.add.at(count, (people[both.owner[:n]], fakes[:n]), 1.0)
    log_count, log_leaving = np.log(count + FLOOR), np.log(count.sum(axis=1) + FLOOR * R)
    mine, candidates = fakes[n:], people[len(known.people.r) :]
    out = np.empty(len(mine))
    for rows in blocks(link):
        score = np.empty((len(rows), len(candidates)))
        likelihoods(mine[rows], candidates, log_count, log_leaving, score)
        out[rows] = shared_top(by_candidate(score, link.people), link.user[rows])
    return out


def from_half(link: Link, R: int, rng: np.random.Generator) -> Floats:
    """Success of A5 where the attacker knows the pairs of a random half of the users, and attacks the other half."""
    half = rng.permutation(link.people.U) < link.people.U // 2
    out = np.empty(len(link.fakes))
    for known in (half, ~half):
        mine, theirs = np.flatnonzero(~known[link.user]), np.flatnonzero(known[link.user])
        if len(mine):
            rest = Link(link.fakes[theirs], link.owner[theirs], link.people)
            out[mine] = learnt_elsewhere(Link(link.fakes[mine], link.owner[mine], link.people), R, rest)
    return out


def sorted_visits(r: Ints) -> Ints:
    """Visit counts of each trace, falling: all that sim_S of order 0 looks at (E20, E21)."""
    ordered = np.sort(r, axis=1)
    number = np.cumsum(np.diff(ordered, axis=1, prepend=ordered[:, :1] - 1) != 0, axis=1) - 1
    count = np.zeros((len(r), int(number.max()) + 1), dtype=np.int64)
    np.add.at(count, (np.arange(len(r))[:, None], number), 1)
    return -np.sort(-count, axis=1)


def semantic_rank(link: Link) -> Floats:
    """Success of ranking the candidates by sim_S (E55)."""
    fakes, people = sorted_visits(link.fakes), sorted_visits(link.people.r)
    out = np.empty(len(link.fakes))
    for rows in blocks(link):
        score = np.zeros((len(rows), len(people)), dtype=np.int64)
        for i in range(min(fakes.shape[1], people.shape[1])):
            score += np.minimum(fakes[rows, i][:, None], people[:, i])
        out[rows] = shared_top(by_candidate(score, link.people), link.user[rows])
    return out


def same_class(link: Link, label: Ints, R: int) -> Floats:
    """Success of an attacker who holds the classes: a fake stays in the class of its seed, popular places first."""
    popular = np.bincount(link.people.r.ravel(), minlength=R) + 1.0
    within = np.bincount(label + 1, popular)[label + 1]
    match, other = np.log(0.9 * popular / within + 0.1 * popular / popular.sum()), np.log(0.1 * popular / popular.sum())
    out = np.empty(len(link.fakes))
    for rows in blocks(link):
        score = np.zeros((len(rows), len(link.people.r)))
        for t in range(link.fakes.shape[1]):
            f, s = label[link.fakes[rows, t]], label[link.people.r[:, t]]
            gain = (match - other)[link.fakes[rows, t]]
            score += np.where((f[:, None] == s) & (s >= 0), gain[:, None], 0.0)
        out[rows] = shared_top(by_candidate(score, link.people), link.user[rows])
    return out


def white_box(ground: Ground) -> Floats:
    """Success of the attacker who holds the model: candidates by the true ln Pr{f|s}."""
    link = ground.main
    out = np.empty(len(link.fakes))
    for rows in blocks(link):
        score = by_candidate(np.asarray(ground.sampler.log_prob(link.fakes[rows], ground.seeds_given)), link.people)
        out[rows] = shared_top(score, link.user[rows])
    return out


def from_generator(ground: Ground) -> Floats:
    """The grey box with a generator: the attacker makes fakes of hold-out people and learns M from them."""
    from elsewhere.evaluation.attacks.shadows import make_fakes

    people = ground.strangers
    fakes, owner = make_fakes(ground, people, ground.rng("A5"))
    return learnt_elsewhere(ground.main, ground.R, Link(fakes, owner, people))


def class_linkage(ground: Ground) -> Finding:
    """A5: the class-aware attack, and beside it those that know less or more."""
    rng, R = ground.rng("A5"), ground.R
    among = f"names the seed among {ground.seeds.U} people"
    label = ground.label
    beside = {
        "half_known": Variant(
            lambda link: from_half(link, R, rng),
            f"Whoever knows the pairs of seed and fake of half of the users {among}",
        ),
        "rank_by_sim_s": Variant(semantic_rank, f"Whoever compares how a fake shares out its time {among}"),
    }
    if label is not None:
        beside["with_classes"] = Variant(
            lambda link: same_class(link, label, R), f"Whoever holds the classes of the places {among}"
        )
    if ground.generator is not None:
        beside["grey_box"] = Variant(
            lambda _: from_generator(ground), f"Whoever holds the generator and people of his own {among}", on_any=False
        )
    if ground.sampler is not None:
        beside["white_box"] = Variant(lambda _: white_box(ground), f"Whoever holds the model {among}", on_any=False)
    return link_finding(
        ground,
        "A5",
        lambda link: class_aware(link, R),
        bar=ground.parameters["named"],
        question=f"Whoever knows all other users' pairs of seed and fake {among}",
        also=("top10",),
        beside=beside,
    )
