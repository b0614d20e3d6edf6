"""
Which walk stands for which seed: entropic optimal transport between seeds and a pool of walks.

Walks are drawn first, from the walk model alone. Then seed s takes walk f with a probability proportional to

    K(s, f) V(f),     K(s, f) = exp(beta a(s, f)), 0 where f shares more places with s than it may,

a(s, f) the share of the slots of s at which f is at a place of the class that the skeleton of s has there; a walk may
be a life of many days, and then all days of s count. V is found by
Sinkhorn sweeps so that all seeds together take walk f as often as its `goal` says: who goes to a place changes, not how
many do. `balance` below 1 gives part of that up for agreement. A walk is taken once.

The goal is the law of the walk model, times the ratio of people's days to walks (`ratio.py`), raked (iterative
proportional fitting) towards what no step of a walk knows and people do: in which class people are at each slot, how
many moves and places a day has, how long it is spent at one place, and whether it ends where it began.

Walks are drawn piece by piece, and what the pieces so far have too much of, visits to a place or moves, the next one is
asked for less: some hundred fakes add up to what thousands would (`Due`, docs/decisions.md).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import Codes, Floats, Ints
from elsewhere.scale import one_thread
from elsewhere.synthesis.walk._pairing_kernels import (
    fill_kernel,
    forbid_shared_places,
    rake,
    sum_over_slots,
    take_walks,
    variance_of_visits,
)
from elsewhere.synthesis.walk._walk_kernels import day_statistics_of

BETA = 25.0  # of 15, 25, 40: docs/decisions.md
SWEEPS = 12  # of Sinkhorn; a hundred bring all seeds together no nearer to the goal (.003)
RAKES = 12  # rounds over all margins; no other number was compared
DAMPED = 0.5  # power of each correction: margins overlap, and whole ones would overshoot
PRIOR_WEIGHT = 200  # people as many as whom the walks weigh where goals are set: people are few
MOST_GOAL = 20.0  # times as likely as its draw: no walk becomes everybody's
FEW_ROWS = 64  # of K, which stay in the processor's cache between two products
PIECES, LEAST_PIECE = 32, 16  # in which seeds take their walks, and how many seeds at least
MOST_URGED = 1.0  # ln of how much more or less a walk is wanted for what is due
FLOOR = 1e-20  # of the weight of a walk, beside the largest: float32 must hold its sums

Test = Callable[[Codes, Ints], Any]  # (walks, seeds) -> verdicts with `passed` and `close_to_others`


class Due(NamedTuple):
    """What fakes together are to add up to, and how far single walks of the pool are from it."""

    goal: Floats  # (N,) the share that each walk is to have
    visits: Floats  # (R,) slots at each place, of a fake in the mean
    spread: Floats  # (R,) their variance among walks, and the mean of these
    moved: Ints  # (N,) moves of each walk
    moves: float  # of a fake in the mean
    spread_of_moves: float

    @staticmethod
    def of(walks: Codes, goal: Floats, visits: Floats, moves: float) -> "Due":
        """Return what is due of these walks: `visits` (R,), the share of people's time at each place, and `moves`."""
        spread, moved = np.empty(len(visits)), np.count_nonzero(walks[:, 1:] != walks[:, :-1], axis=1)
        variance_of_visits(walks, goal, spread)
        spread += max(float(spread.sum()) / max(1, int(np.count_nonzero(spread > 1e-12))), 1e-9)
        scatter = float(goal @ (moved - goal @ moved) ** 2)
        return Due(goal, visits * walks.shape[1], spread, moved, moves, max(scatter, 1e-9))

    def correction(self, walks: Codes, taken: Ints, n: int) -> NDArray[np.float32]:
        """
        Return (N,) how many times as much each walk is wanted among the next `n`, after those that are `taken`.

        To first order the next ones then make up for what was too much or too little.
        """
        over = np.bincount(walks[taken].ravel(), minlength=len(self.visits)) - len(taken) * self.visits
        over_moves = int(self.moved[taken].sum()) - len(taken) * self.moves
        score = np.empty(len(walks))
        sum_over_slots(walks, over / (n * self.spread), score)
        score += over_moves / (n * self.spread_of_moves) * self.moved
        return np.exp(-np.clip(score - self.goal @ score, -MOST_URGED, MOST_URGED)).astype(np.float32)


class Paired(NamedTuple):
    """
    The walk of each seed, -1 where none passed, and how many each tried.

    Round by round: the seeds that tried a walk, and the verdicts of the test.
    """

    walk: Ints
    tries: Ints
    tried: list[Ints]
    verdicts: list[Any]


def skeletons(classes: NDArray[np.integer], shift: Ints, days: int = 1) -> NDArray[np.int16]:
    """
    Return the classes (S, days x L) of each seed, every day `shift` slots later; first and last class fill its ends.

    Examples
    --------
    >>> skeletons(np.array([[1, 2, 3]]), np.array([1])).tolist()
    [[1, 1, 2]]

    """
    S, L = len(classes), classes.shape[1] // days
    at = np.clip(np.arange(L) - np.repeat(shift, days)[:, None], 0, L - 1)
    return np.take_along_axis(classes.reshape(S * days, L), at, axis=1).reshape(S, days * L).astype(np.int16)


def pairing_kernel(
    skeleton: NDArray[np.int16],
    seeds: Codes,
    walks: Codes,
    label: NDArray[np.integer],
    beta: float,
    R: int,
    *,
    limit: Ints | None = None,
) -> NDArray[np.float32]:
    """
    Return K (S, N), the weights of every walk for every seed before any balance.

    Agreement is counted where the seed is somewhere. `limit` (S,): where more places are shared, on whatever day, it is
    0; without it nothing keeps them apart.
    """
    # the smaller the numbers, the more of them are compared at once
    kind = np.int8 if label.max(initial=0) < 2**7 else np.int16
    classes = np.ascontiguousarray(label.astype(kind)[walks.T])
    agreed = np.empty(len(walks), dtype=np.min_scalar_type(walks.shape[1]))
    out = np.empty((len(seeds), len(walks)), dtype=np.float32)
    slots = np.maximum(1, np.count_nonzero(seeds >= 0, axis=1))
    # beside the walk that agrees most: a row may be multiplied by anything, and float32 must hold it
    fill_kernel(skeleton.astype(kind), classes, slots, beta, agreed, out)
    if limit is not None:
        forbid_shared_places(seeds, walks, R, limit, out)
    return out


def rake_goal(
    walks: Codes, label: NDArray[np.integer], share: Floats, day_statistics: Floats, people: int, start: Floats
) -> Floats:
    """
    Return the goal (N,) of each walk, which sums to 1: the shares `start`, raked towards what people do.

    `share` (L, C) is the share of people in each class at each slot, `day_statistics` (4, L + 1) the share with so
    many moves, places, slots at the main place, and of days that end where they began (`day_statistics_of`);
    `people` taught both.
    """
    (N, L), C = walks.shape, share.shape[1]
    statistics = np.empty((N, 4), dtype=np.int64)
    day_statistics_of(walks, statistics)
    value = np.empty((4 + L, N), dtype=np.uint16)
    value[:4], value[4:] = statistics.T, np.where(label >= 0, label, C)[walks.T]
    known = (value[4:] < C).mean(axis=1, keepdims=True)
    goal = np.zeros((4 + L, max(L, C) + 1))
    goal[:4, : L + 1], goal[4:, : C + 1] = day_statistics, np.hstack([share * known, 1 - known])
    w = np.minimum(start / start.sum(), MOST_GOAL / N)
    w /= w.sum()
    for k in range(4 + L):
        drawn, weight = np.bincount(value[k], w, goal.shape[1]), 0 if k == 3 else PRIOR_WEIGHT
        goal[k] = (people * goal[k] + weight * drawn) / (people + weight)
    rake(value, goal, RAKES, DAMPED, MOST_GOAL / N, w)
    return np.asarray(w / w.sum())


def sinkhorn_weights(
    K: NDArray[np.float32], goal: Floats, balance: float = 1.0, sweeps: int = SWEEPS
) -> NDArray[np.float32]:
    """
    Return V (N,), the weights of walks under which all seeds together take walk f in the share `goal[f]`.

    With `balance` < 1 the transport is unbalanced: V is raised to that power after each sweep.

    Examples
    --------
    >>> K = np.array([[1.0, 1.0], [9.0, 1.0]], dtype=np.float32)
    >>> V = sinkhorn_weights(K, np.array([0.5, 0.5]), sweeps=60)
    >>> np.round((K * V / (K * V).sum(axis=1, keepdims=True)).sum(axis=0), 3).tolist()
    [1.0, 1.0]

    """
    S, N = K.shape
    # walks that no seed may take would take all the weight there is
    wanted = np.where(K.any(axis=0), goal * N, 0.0).astype(np.float32)
    wanted *= np.float32(N / max(float(wanted.sum()), 1e-30))
    V: NDArray[np.float32] = wanted / max(float(wanted.max()), 1e-30)
    if balance == 0 or not wanted.any():
        return V
    with one_thread():  # sums in one order on every machine (R5)
        for _ in range(sweeps):
            load = np.zeros_like(V)
            for some in (K[i : i + FEW_ROWS] for i in range(0, S, FEW_ROWS)):
                with np.errstate(invalid="ignore"):  # OpenBLAS may set this flag by what lies beside a matrix
                    z = some @ V
                    load += np.divide(1.0, z, out=np.zeros_like(z), where=z > 0) @ some
            load *= V * np.float32(N / S)
            V = np.maximum(V * wanted / np.maximum(load, 1e-6), FLOOR) ** np.float32(balance)
            V[wanted == 0] = 0.0
            V /= V.max()
    return V


def pair(
    K: NDArray[np.float32],
    V: NDArray[np.float32],
    walks: Codes,
    test: Test,
    *,
    max_tries: int,
    rng: np.random.Generator,
    due: Due | None = None,
) -> Paired:
    """
    Give every seed a walk of its own: drawn by K V, tested, taken if it passes, tried no second time if it does not.

    With `due` the weights change from piece to piece of the seeds, by what the walks so far have too much of.

    Seeds come in random order; walks that are taken, or held by another seed's trial of the same round, are not drawn.
    A walk that is too close to some seed, whoever it was to stand for, is tried for nobody else.
    """
    S = len(K)
    walk, tries = np.full(S, -1, dtype=np.int64), np.zeros(S, dtype=np.int64)
    V, row = V.copy(), np.arange(S)
    tried: list[Ints] = []
    verdicts: list[Any] = []
    pending = np.arange(S)
    for _ in range(max_tries):
        pending = rng.permutation(pending)
        got, uniform = np.full(len(pending), -1, dtype=np.int64), rng.random(len(pending))
        open_, taken = V.copy(), walk[walk >= 0]  # `take_walks` closes the walks that it draws
        n = max(1, len(pending)) if due is None else max(LEAST_PIECE, -(-len(pending) // PIECES))
        for i in range(0, len(pending), n):
            piece, before = slice(i, i + n), np.append(taken, got[:i][got[:i] >= 0])
            urged = open_ * due.correction(walks, before, n) if due is not None and len(before) else open_.copy()
            take_walks(K, urged, row[pending[piece]], uniform[piece], got[piece])
            open_[got[piece][got[piece] >= 0]] = 0.0
        pending, got = pending[got >= 0], got[got >= 0]  # the others have no walk left
        if len(pending) == 0:
            break
        verdicts.append(test(walks[got], pending))
        passed = np.asarray(verdicts[-1].passed)
        tries[pending] += 1
        walk[pending[passed]] = got[passed]
        V[got[passed | np.asarray(verdicts[-1].close_to_others)]] = 0.0
        tried.append(pending)
        pending, got = pending[~passed], got[~passed]
        if len(pending) == 0:
            break
        K, row[pending] = K[row[pending]], np.arange(len(pending))
        K[np.arange(len(pending)), got] = 0.0
    return Paired(walk, tries, tried, verdicts)
