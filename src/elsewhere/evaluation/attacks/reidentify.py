"""
A2: which user's own moves make the fake most likely? MAP re-identification as the PPMTF referee computes it.

    argmax_u  sum_t ln p(u)_{f(t)}^{f(t+1)},   moves that u never made get probability 1e-8, the first maximum counts.
"""

import math
from typing import Any

import numpy as np

from elsewhere.evaluation.attacks._kernels import move_likelihoods
from elsewhere.evaluation.attacks.candidates import blocks, link_finding, shared_top
from elsewhere.evaluation.attacks.finding import Finding
from elsewhere.evaluation.attacks.ground import Ground, Link, People
from elsewhere.traces.model import Floats, Ints

UNSEEN = 1e-8
BAR = 0.0112  # the original tool's figure on PF


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


def first_maximum(link: Link, R: int) -> tuple[Floats, Floats]:
    """Success of each fake: whether the first best user is its own, and the same with ties shared."""
    user, move, p = moves_of_users(link.people, R)
    order = np.lexsort((user, move))
    moves, start = np.unique(move[order], return_index=True)
    start = np.append(start, len(order))
    # the plain logarithm: near-ties must fall as they do in the referee
    log_p = np.array([math.log(x) for x in p[order].tolist()])
    first, shared = np.empty(len(link.fakes)), np.empty(len(link.fakes))
    for rows in blocks(link):
        key = link.fakes[rows, :-1] * R + link.fakes[rows, 1:]
        at = np.searchsorted(moves, key).clip(max=len(moves) - 1)
        score = np.empty((len(rows), link.people.U))
        move_likelihoods(np.where(moves[at] == key, at, -1), start, user[order], log_p, math.log(UNSEEN), score)
        own = link.user[rows]
        first[rows], shared[rows] = score.argmax(axis=1) == own, shared_top(score, own)
    return first, shared


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
