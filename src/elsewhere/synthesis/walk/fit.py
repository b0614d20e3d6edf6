"""
Learning a walk from the users of the model, by maximum likelihood with a ridge.

The next place of a person is far from a first-order chain: people go on in their direction, along roads that others
take, do not come back at once, and are movers or not. Two laws, both over all that a trace has been so far:

- whether a step is a move: logistic in the last four steps, the dwell, the share of moves so far, the part of the day,
  the lengths of earlier moves, and the place;
- where a move leads: softmax over all other places of
    ln of smoothed counts of the move r -> r', ln of how often r' is arrived at, ln of smoothed counts of r' after the
    move into r, and weights by length of the move, turn from the last move and from the last four, places visited.

Counts that enter a person's own likelihood leave that person out, so the weights are right for strangers.
"""

import numpy as np
from numpy.typing import NDArray

from elsewhere.synthesis.walk._kernels import (
    COLUMNS,
    LENGTHS,
    MOVING,
    SLOTS,
    Tables,
    all_columns,
    all_moving_columns,
    destination_loss,
    life_of,
)
from elsewhere.traces.model import Floats, Ints, Locations

EDGES = np.array([1.2, 1.6, 2.5, 5.0, 10.0, 20.0])  # of lengths, in distances between neighbours
PAIR, ONWARD = 2.0, 3.0  # weight of the smoothing of moves, of moves after moves
LEAST = 1e-12
FAR = 1.25  # times the longest move of people: a step of one town to the next that nobody makes is none
RIDGE, RIDGE_MOVING, RIDGE_PLACE = 1.0, 0.3, 4.0
FIRST = 5.0  # visits of the smoothing of the first place
MOST_ROWS = 20_000  # to learn from: more teach nothing new, and take minutes
CELLS = 3e6  # moves x places that the fit holds at once


def learn_walk(
    r: NDArray[np.integer], locations: Locations, known: NDArray[np.bool_], *, rng: np.random.Generator
) -> Tables:
    """
    The walk of the (N, L) traces of MODEL users, over the places `known`; gaps (-1) are stays.

    `rng` draws which moves teach the weights where there are very many.
    """
    from scipy.optimize import minimize

    r = without_gaps(np.asarray(r, dtype=np.int64))
    if len(r) > MOST_ROWS:
        r = r[np.sort(rng.permutation(len(r))[:MOST_ROWS])]
    (N, L), R = r.shape, len(locations)
    lengths, sectors = geometry(locations)
    slot = np.minimum(np.arange(L) * SLOTS // L, SLOTS - 1)
    user, step = np.nonzero(r[:, 1:] != r[:, :-1])
    moves = _Moves(r, user, step, R, lengths)

    some = np.arange(len(user))
    if len(user) * R > CELLS:
        some = np.sort(rng.permutation(len(user))[: max(1, int(CELLS // R))])
    x = np.empty((len(some), R, 3), dtype=np.float32)
    for i, m in enumerate(some.tolist()):
        x[i] = moves.left_out(m)
    cols = np.empty((len(some), R, 4), dtype=np.int16)
    all_columns(r, user[some], step[some], lengths, sectors, cols)
    centre = np.zeros(COLUMNS + 3)
    centre[COLUMNS] = 1.0
    slope = np.empty_like(centre)
    theta = centre
    if len(some):

        def loss(at: Floats) -> tuple[float, Floats]:
            value = destination_loss(at, centre, RIDGE, cols, x, moves.now[some], moves.to[some], slope)
            return value, slope.copy()

        theta = minimize(loss, centre, jac=True, method="L-BFGS-B", options={"maxiter": 50}).x

    log_step, log_arrivals = np.log(moves.step_law()), np.log(moves.arrivals)
    near = _within_reach(locations, moves.now, moves.to)
    pair, start, onward, ratio = moves.onward()
    moving = np.empty((N, L - 1, 4), dtype=np.int64)
    all_moving_columns(r, lengths, sectors, slot, moving)
    weights = _fit_moving(moving.reshape(-1, 4), r[:, :-1].ravel(), (r[:, 1:] != r[:, :-1]).ravel(), R)
    visits = np.bincount(r.ravel(), minlength=R) / r.size
    first = (np.bincount(r[:, 0], minlength=R) + FIRST * visits) * known
    return Tables(
        first=first / first.sum(),
        places=np.flatnonzero(known),
        lengths=lengths,
        sectors=sectors,
        steps=np.exp(theta[COLUMNS] * log_step + theta[COLUMNS + 1] * log_arrivals) * near,
        pair=pair,
        start=start,
        onward=onward,
        onward_factor=ratio ** theta[COLUMNS + 2],
        factor=np.exp(theta[:COLUMNS]),
        moving=weights[:MOVING],
        leaving=weights[MOVING:],
        slot=slot,
        people=N,
        lives=_lives(r),
    )


def _within_reach(locations: Locations, now: Ints, to: Ints) -> Floats:
    """(R, R) 1 for moves no longer than FAR times the longest that people make, next to nothing beyond."""
    R = len(locations)
    every = np.arange(R)
    if len(now) == 0:
        return np.ones((R, R))
    most = FAR * float(locations.distance(now, to).max())
    return np.stack([np.where(locations.distance(np.full(R, r), every) <= most, 1.0, LEAST) for r in range(R)])


def without_gaps(r: Ints) -> Ints:
    """Traces whose gaps repeat the place before, at the beginning the place after; rows without any place are left."""
    r = r[(r >= 0).any(axis=1)]
    at = np.maximum.accumulate(np.where(r >= 0, np.arange(r.shape[1]), -1), axis=1)
    at = np.where(at >= 0, at, (r >= 0).argmax(axis=1)[:, None])
    return np.asarray(np.take_along_axis(r, at, axis=1))


def geometry(locations: Locations) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Bin of the length and sector of the direction of every move, (R, R) each."""
    R = len(locations)
    every = np.arange(R)
    lengths = np.empty((R, R), dtype=np.int8)
    sectors = np.full((R, R), -1, dtype=np.int8)
    xy = locations.planar() if locations.has_coordinates else None
    nearest = np.array([np.delete(locations.distance(np.full(R, r), every), r).min(initial=np.inf) for r in range(R)])
    apart = nearest[np.isfinite(nearest) & (nearest > 0)]
    unit = float(np.median(apart)) if len(apart) else 1.0
    for r in range(R):
        lengths[r] = np.searchsorted(EDGES, locations.distance(np.full(R, r), every) / unit)
        if xy is not None:
            d = xy - xy[r]
            angle = np.round(np.arctan2(d[:, 1], d[:, 0]) * 8 / np.pi) % 16
            sectors[r] = np.where((d != 0).any(axis=1), angle, -1)
    return lengths, sectors


class _Moves:
    """The moves of all traces, and what they look like to each of their people when that person is left out."""

    def __init__(self, r: Ints, user: Ints, step: Ints, R: int, lengths: NDArray[np.int8]) -> None:
        self.R, self.lengths, self.user = R, lengths, user
        self.now, self.to = r[user, step], r[user, step + 1]
        moved = np.zeros(len(user), dtype=bool)
        moved[1:] = user[1:] == user[:-1]
        # the place before the present one: where the last move of the same trace came from
        self.before = np.where(moved, np.roll(self.now, 1), -1)
        self.count = np.zeros((R, R))
        np.add.at(self.count, (self.now, self.to), 1)
        self.arrivals = self.count.sum(axis=0) + 0.5
        self.kernel = self._kernel()
        key = np.where(self.before >= 0, self.before * R + self.now, -1)
        self.order = np.argsort(key, kind="stable")
        self.key = key[self.order]
        self.of_user = np.searchsorted(user, np.arange(len(r) + 1))

    def _kernel(self) -> Floats:
        """How much likelier a move of each length is than arrivals alone say."""
        seen = np.bincount(self.lengths[self.now, self.to], minlength=LENGTHS)
        expected = np.zeros(LENGTHS)
        for r, leaving in enumerate(self.count.sum(axis=1)):
            others = self.arrivals.copy()
            others[r] = 0.0
            expected += leaving * np.bincount(self.lengths[r], others, minlength=LENGTHS)
        return np.asarray((seen + 0.1) / (expected + 1e-9))

    def _step_row(self, r: int, count: Floats, arrivals: Floats) -> Floats:
        pull = arrivals * self.kernel[self.lengths[r]]
        pull[r] = 0.0
        pull /= max(pull.sum(), LEAST)
        return np.asarray((count + PAIR * pull) / (count.sum() + PAIR) + LEAST)

    def step_law(self) -> Floats:
        """(R, R) smoothed shares of the moves out of each place."""
        return np.stack([self._step_row(r, self.count[r], self.arrivals) for r in range(self.R)])

    def left_out(self, m: int) -> Floats:
        """(R, 3) what move m's person could know from the others: ln step, ln arrivals, ln onward / step."""
        own = slice(self.of_user[self.user[m]], self.of_user[self.user[m] + 1])
        now, to = self.now[own], self.to[own]
        here = int(self.now[m])
        count, arrivals = self.count[here].copy(), self.arrivals.copy()
        np.subtract.at(count, to[now == here], 1)
        np.subtract.at(arrivals, to, 1)
        step = self._step_row(here, count, arrivals)
        after = np.zeros(self.R)
        if self.before[m] >= 0:
            key = self.before[m] * self.R + here
            rows = self.order[np.searchsorted(self.key, key) : np.searchsorted(self.key, key, side="right")]
            np.add.at(after, self.to[rows[self.user[rows] != self.user[m]]], 1)
        return np.column_stack([np.log(step), np.log(arrivals), np.log1p(after / (ONWARD * step))])

    def onward(self) -> tuple[Ints, Ints, Ints, Floats]:
        """Pairs (before, now) as keys, where their rows start, and of each row the place and its ratio to a step's."""
        rows = self.order[self.key >= 0]
        key, to = self.key[self.key >= 0], self.to[rows]
        both, count = np.unique(np.column_stack([key, to]), axis=0, return_counts=True)
        pair, start = np.unique(both[:, 0], return_index=True)
        law = self.step_law()
        ratio = 1 + count / (ONWARD * law[both[:, 0] % self.R, both[:, 1]])
        return pair, np.append(start, len(both)), np.ascontiguousarray(both[:, 1]), ratio


def _fit_moving(which: Ints, place: Ints, moved: NDArray[np.bool_], R: int) -> Floats:
    """Weights of moving (MOVING,) and of leaving each place (R,), by logistic regression."""
    from scipy.optimize import minimize

    n = MOVING + R
    ridge = np.concatenate([np.full(MOVING, RIDGE_MOVING), np.full(R, RIDGE_PLACE)])
    every = np.column_stack([which, MOVING + place])
    sign = np.where(moved, 1.0, -1.0)

    def loss(at: Floats) -> tuple[float, Floats]:
        margin = sign * at[every].sum(axis=1)
        pull = -sign / (1 + np.exp(margin))
        slope = np.bincount(every.ravel(), np.repeat(pull, every.shape[1]), n)
        return float(np.logaddexp(0, -margin).sum() + (ridge * at**2).sum() / 2), slope + ridge * at

    return np.asarray(minimize(loss, np.zeros(n), jac=True, method="L-BFGS-B", options={"maxiter": 200}).x)


def _lives(r: Ints) -> Floats:
    """(4, L + 1) share of the traces with so many moves, places, instants at their main place, ends at their start."""
    life = np.empty((len(r), 4), dtype=np.int64)
    life_of(r, life)
    return np.stack([np.bincount(of, minlength=r.shape[1] + 1) for of in life.T]) / len(r)
