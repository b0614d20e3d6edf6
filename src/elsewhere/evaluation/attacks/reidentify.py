"""
A2: which user's own moves make the fake most likely? MAP re-identification as the PPMTF referee computes it.

    argmax_u  sum_t ln p(u)_{f(t)}^{f(t+1)},   moves that u never made get probability 1e-8, the first maximum counts.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from elsewhere.evaluation.attacks._kernels import move_likelihoods
from elsewhere.evaluation.attacks.candidates import DIGITS, blocks, link_finding, shared_top
from elsewhere.evaluation.attacks.finding import Finding, percent
from elsewhere.evaluation.attacks.ground import Ground, Link, People, some_people
from elsewhere.evaluation.attacks.intervals import LEVEL, Rate
from elsewhere.traces.model import Floats, Ints

UNSEEN = 1e-8
BAR = 0.0112  # the original tool's figure on PF
EXCHANGES = 1000


def moves_of_users(people: People, R: int) -> tuple[Ints, Ints, Floats]:
    """User, move r R + r', and p(u)_r^{r'} of every move that somebody made, by user and move."""
    key = (people.r[:, :-1] * R + people.r[:, 1:]).ravel()
    who = np.repeat(people.user, people.r.shape[1] - 1)
    pair, count = np.unique(who * (R * R) + key, return_counts=True)
    user, move = pair // (R * R), pair % (R * R)
    row, back = np.unique(pair // R, return_inverse=True)
    leaving = np.bincount(back, count, len(row))
    return user, move, count / leaving[back]


def move_counts(traces: Ints, moves: Ints, R: int) -> Any:
    """Sparse (traces, moves): how often each trace makes each of the given moves, which are sorted."""
    from scipy import sparse

    key = traces[:, :-1] * R + traces[:, 1:]
    at = np.searchsorted(moves, key).clip(max=max(len(moves) - 1, 0))
    known = (moves[at] == key) if len(moves) else np.zeros(key.shape, dtype=bool)
    row = np.broadcast_to(np.arange(len(traces))[:, None], key.shape)[known]
    return sparse.csr_array((np.ones(len(row)), (row, at[known])), shape=(len(traces), len(moves)))


def move_scores(fakes: Ints, people: People, R: int) -> Iterator[tuple[Ints, Floats]]:
    """Rows of fakes, block by block, and how likely each user's moves make each: (rows, users)."""
    user, move, p = moves_of_users(people, R)
    order = np.lexsort((user, move))
    moves, start = np.unique(move[order], return_index=True)
    start = np.append(start, len(order))
    # the plain logarithm: near-ties must fall as they do in the referee
    log_p = np.array([math.log(x) for x in p[order].tolist()])
    for rows in blocks(Link(fakes, np.zeros(0, dtype=np.int64), people)):
        key = fakes[rows, :-1] * R + fakes[rows, 1:]
        at = np.searchsorted(moves, key).clip(max=len(moves) - 1)
        score = np.empty((len(rows), people.U))
        move_likelihoods(np.where(moves[at] == key, at, -1), start, user[order], log_p, math.log(UNSEEN), score)
        yield rows, score


def first_maximum(link: Link, R: int) -> tuple[Floats, Floats]:
    """Success of each fake: whether the first best user is its own, and the same with ties shared."""
    first, shared = np.empty(len(link.fakes)), np.empty(len(link.fakes))
    for rows, score in move_scores(link.fakes, link.people, R):
        own = link.user[rows]
        first[rows], shared[rows] = score.argmax(axis=1) == own, shared_top(score, own)
    return first, shared


def named(fakes: Ints, people: People, R: int) -> Floats:
    """(users,) share of the fakes that each user's moves explain best, ties shared."""
    share = np.zeros(people.U)
    for _, score in move_scores(fakes, people, R):
        best = np.round(score, DIGITS) == np.round(score.max(axis=1, keepdims=True), DIGITS)
        share += (best / best.sum(axis=1, keepdims=True)).sum(axis=0)
    return share / len(fakes)


def exchanged_share(share: Floats, n: int, rng: np.random.Generator) -> tuple[Rate, float]:
    """
    Share of the fakes that the first n users explain best, of 2n; and how often an exchange of users has as much.

    Fakes that know neither group give every exchange of members and strangers the same law, with mean one half; the
    interval is that of the exchanges.
    """
    value = float(share[:n].sum())
    drawn = np.array([share[rng.permutation(len(share))[:n]].sum() for _ in range(EXCHANGES)])
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) - 0.5
    p = (1 + int((drawn >= value - 1e-12).sum())) / (1 + EXCHANGES)
    return Rate(value, min(value, value - float(high)), max(value, value - float(low))), p


def best_explained(ground: Ground) -> Finding:
    """A2 of people of whom no fake was made: are fakes best explained by their moves, or as often by strangers'?"""
    rng, n = ground.rng("A2"), min(ground.seeds.U, ground.strangers.U)
    members, strangers = (some_people(group, n, rng) for group in (ground.seeds, ground.strangers))
    both = People(np.concatenate([members.r, strangers.r]), np.concatenate([members.user, strangers.user + n]), 2 * n)
    main, p = exchanged_share(named(ground.fakes, both, ground.R), n, rng)
    free, _ = exchanged_share(named(ground.null_walks(rng), both, ground.R), n, rng)
    return Finding(
        "A2",
        main=main.value,
        interval=main,
        control=1 - main.value,
        baseline=0.5,
        null=free,
        bar=0.5,
        passed=bool(main.low <= 0.5),
        leaks=bool(main.low > 0.5),
        reachable=bool(free.low <= 0.5),
        words=f"Of {n} people each, {ground.who} and strangers, the moves of {ground.who} explain "
        f"{percent(main.value)} of the fakes best (as much in {percent(p)} of random exchanges of the two).",
        details={"p": p, "people": n},
    )


def reidentification(ground: Ground) -> Finding:
    """A2."""
    return link_finding(
        ground,
        "A2",
        lambda link: first_maximum(link, ground.R),
        bar=BAR,
        question=f"Whoever knows how each of the {ground.seeds.U} people moves names the seed",
        also=("ties_shared",),
    )
