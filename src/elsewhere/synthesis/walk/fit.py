"""
Learning a walk from the users of the model, by maximum likelihood with a ridge.

The next place of a person is far from a first-order chain: people go on in their direction, along roads that others
take, do not come back at once, and are movers or not. Two laws, both over all that a trace has been so far:

- whether a step is a move: logistic in the last four steps, the dwell, the share of moves so far, the part of the day,
  the lengths of earlier moves, the last bend, the stay before, the time so far here and elsewhere, and the place;
- where a move leads: softmax over all other places of
    ln of smoothed counts of the move r -> r', ln of how often r' is arrived at, ln of smoothed counts of r' after the
    move into r, and weights by length of the move and of the last, turn from the last move, by pace and after the last
    turn, from the last four moves and the last eight, places visited (docs/decisions.md).

Counts that enter a person's own likelihood leave that person out, so the weights are right for strangers.

With `m_min` above 1 nothing that is learnt rests on fewer users, so that it may stand in a model file: see `Habits`.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.slots import hold_places
from elsewhere.data.visits import Floats, Ints, Locations
from elsewhere.scale import one_thread
from elsewhere.sorting import count_users
from elsewhere.synthesis.walk._draw_kernels import draw_walks
from elsewhere.synthesis.walk._walk_kernels import (
    ALL_COLUMNS,
    ALL_MOVING,
    LENGTHS,
    Ground,
    Tables,
    columns_of_moves,
    columns_of_steps,
    day_statistics_of,
    destination_loss,
    lengths_of,
    logistic_loss,
    pulls_by_length,
)
from elsewhere.synthesis.walk.habits import FEW_PLACES, ONWARD, Habits, ground_of, parts_of_day, step_row

RIDGE, RIDGE_MOVING, RIDGE_PLACE = 1.0, 0.3, 4.0
FIRST = 5.0  # visits of the smoothing of the first place
MOST_ROWS = 20_000  # that teach the weights: more teach them nothing new, and take minutes
CELLS = 2e6  # moves x places that the fit holds at once
OTHERS = 256  # places beside the chosen one that a move on a large map is compared with
GRID = 2.0**0.25  # steps of lengths that few people make: the longest move is one person's
WALKS = 5000  # drawn to share out day statistics that few people have


def learn_walk(
    r: NDArray[np.integer], locations: Locations, known: NDArray[np.bool_], *, rng: np.random.Generator
) -> Tables:
    """
    Learn the walk of the (N, L) traces of MODEL users, over the places `known`; gaps (-1) are stays.

    `rng` draws which moves teach the weights where there are very many.
    """
    return learn_habits(r, locations, known, rng=rng).tables(locations, known)


def learn_habits(
    r: NDArray[np.integer],
    locations: Locations,
    known: NDArray[np.bool_],
    *,
    user: NDArray[np.integer] | None = None,
    m_min: int = 1,
    rng: np.random.Generator,
) -> Habits:
    """Learn what `learn_walk` makes the walk of; `user` says whose each row is, None that every row is another's."""
    r = np.asarray(r)
    some_place = (r >= 0).any(axis=1)
    who = np.arange(int(some_place.sum())) if user is None else np.asarray(user)[some_place]
    r = hold_places(r[some_place])
    (N, L), R = r.shape, len(locations)
    ground = ground_of(locations)
    row, step = np.nonzero(r[:, 1:] != r[:, :-1])
    moves = _Moves(r, row, step, R, ground, who, m_min)
    # sums are over everybody, weights are learnt from some
    rows = np.sort(rng.permutation(N)[:MOST_ROWS]) if N > MOST_ROWS else np.arange(N)
    theta = _fit_destination(r, row, step, np.isin(row, rows), moves, m_min, rng)
    weights = _fit_moving(r[rows], who[rows], R, ground, m_min)
    visits = np.bincount(r.ravel(), minlength=R) / r.size * _enough_users(r.ravel(), np.repeat(who, L), R, m_min)
    pair, onward, onward_count = moves.onward()
    habits = Habits(
        move=moves.move,
        count=moves.count,
        rest=moves.rest,
        arrivals=moves.arrivals,
        kernel=moves.kernel,
        pair=pair,
        onward=onward,
        onward_count=onward_count,
        first=_first_place_counts(r, who, R, m_min) + FIRST * visits,
        destination=theta,
        moving=weights[:ALL_MOVING],
        leaving=weights[ALL_MOVING:],
        day_statistics=_day_statistic_shares(r),
        reach=_longest_move(locations, moves, m_min),
        people=N,
    )
    if m_min == 1:
        return habits
    uniform = rng.random((WALKS, 2 * L - 1))
    walks = np.empty((WALKS, L), dtype=np.int32)
    draw_walks(habits.tables(locations, known), uniform, walks)
    pooled = pool_day_statistics(r, who, walks.astype(np.int64), m_min)
    return replace(habits, day_statistics=pooled)


def _enough_users(what: NDArray[np.integer], who: NDArray[np.integer], n: int, m_min: int) -> NDArray[np.bool_]:
    """Tell (n,) which of the numbers 0 .. n - 1 at least `m_min` users have; with `m_min` = 1 all do."""
    if m_min == 1:
        return np.ones(n, dtype=bool)
    _, user = np.unique(who, return_inverse=True)
    return count_users(user, what, n) >= m_min


def _enough_users_of_entry(what: Ints, who: NDArray[np.integer], m_min: int) -> NDArray[np.bool_]:
    """Tell for each entry whether at least `m_min` users have what it has; of numbers that may be very large."""
    found, number = np.unique(what, return_inverse=True)
    return np.asarray(_enough_users(number, who, len(found), m_min)[number])


def _first_place_counts(r: Ints, who: NDArray[np.integer], R: int, m_min: int) -> Floats:
    """
    Return (R,) how many traces begin at each place.

    Of a place where fewer than `m_min` users begin: how many are there per slot in the first 2, 4, 8 ... slots,
    as few as have so many users there.
    """
    L, out, open_ = r.shape[1], np.zeros(R), np.ones(R, dtype=bool)
    w = 1
    while True:
        early = r[:, :w]
        enough = open_ & _enough_users(early.ravel(), np.repeat(who, early.shape[1]), R, m_min)
        out[enough] = np.bincount(early.ravel(), minlength=R)[enough] / early.shape[1]
        open_ &= ~enough
        if w >= L or not open_.any():
            return out
        w *= 2


def _longest_move(locations: Locations, moves: "_Moves", m_min: int) -> float:
    """Return the longest move; with `m_min` above 1, of the user who comes so far down the list, on a coarse grid."""
    if len(moves.now) == 0:
        return 0.0
    far = locations.distance(moves.now, moves.to)
    if m_min == 1:
        return float(far.max())
    _, user = np.unique(moves.who, return_inverse=True)
    longest = np.zeros(int(user.max()) + 1)
    np.maximum.at(longest, user, far)
    found = np.sort(longest)[-min(m_min, len(longest))]
    return float(GRID ** np.ceil(np.log(found) / np.log(GRID))) if found > 0 else 0.0


class _Moves:
    """
    The moves of all traces, and what they look like to each of their people when that person is left out.

    Moves that fewer than `m_min` users have made are counted only together with others: out of their origin, and into
    their destination, where so many users have made them.
    """

    def __init__(
        self,
        r: Ints,
        user: Ints,
        step: Ints,
        R: int,
        ground: Ground,
        who: NDArray[np.integer],
        m_min: int,
    ) -> None:
        self.R, self.ground, self.user, self.who = R, ground, user, who[user]
        self.now, self.to = r[user, step], r[user, step + 1]
        moved = np.zeros(len(user), dtype=bool)
        moved[1:] = user[1:] == user[:-1]
        # the place before the present one: where the last move of the same trace came from
        self.before = np.where(moved, np.roll(self.now, 1), -1)
        both = self.now * R + self.to
        self.kept = _enough_users_of_entry(both, self.who, m_min)
        lost = ~self.kept
        self.resting = np.zeros(len(user), dtype=bool)
        self.resting[lost] = _enough_users(self.now[lost], self.who[lost], R, m_min)[self.now[lost]]
        self.arriving = self.kept.copy()
        self.arriving[lost] = _enough_users(self.to[lost], self.who[lost], R, m_min)[self.to[lost]]
        self.move, times = np.unique(both[self.kept], return_counts=True)
        self.count = times.astype(np.float64)
        self.rest = np.bincount(self.now[self.resting], minlength=R).astype(np.float64)
        self.arrivals: Floats = np.bincount(self.to[self.arriving], minlength=R).astype(np.float64) + 0.5
        self.kernel = self._kernel(m_min)
        key = np.where(self.before >= 0, self.before * R + self.now, -1)
        key[~_enough_users_of_entry((key + 1) * R + self.to, self.who, m_min)] = -1
        self.order = np.argsort(key, kind="stable")
        self.key = key[self.order]
        self.of_user = np.searchsorted(user, np.arange(len(r) + 1))

    def _kernel(self, m_min: int) -> Floats:
        """Return how much likelier a move of each length is than arrivals alone say."""
        bins = np.empty(len(self.now), dtype=np.int64)
        lengths_of(self.ground, self.now, self.to, bins)
        seen = np.bincount(bins, minlength=LENGTHS) * _enough_users(bins, self.who, LENGTHS, m_min)
        expected = np.zeros(LENGTHS)
        leaving = np.bincount(self.move // self.R, self.count, self.R) + self.rest
        pulls_by_length(self.ground, leaving, self.arrivals, expected)
        return np.asarray((seen + 0.1) / (expected + 1e-9))

    def leave_one_out(self, m: int) -> Floats:
        """Return (R, 3) what move m's person could know from the others: ln step, ln arrivals, ln onward / step."""
        own = slice(self.of_user[self.user[m]], self.of_user[self.user[m] + 1])
        now, to = self.now[own], self.to[own]
        here = int(self.now[m])
        mine = slice(*np.searchsorted(self.move, (here * self.R, (here + 1) * self.R)))
        count, arrivals = np.zeros(self.R), self.arrivals.copy()
        count[self.move[mine] % self.R] = self.count[mine]
        np.subtract.at(count, to[(now == here) & self.kept[own]], 1)
        np.subtract.at(arrivals, to[self.arriving[own]], 1)
        rest = float(self.rest[here] - np.count_nonzero((now == here) & self.resting[own]))
        step = step_row(here, count, rest, arrivals, self.kernel, self.ground)
        after = np.zeros(self.R)
        if self.before[m] >= 0:
            key = self.before[m] * self.R + here
            rows = self.order[np.searchsorted(self.key, key) : np.searchsorted(self.key, key, side="right")]
            np.add.at(after, self.to[rows[self.user[rows] != self.user[m]]], 1)
        return np.column_stack([np.log(step), np.log(arrivals), np.log1p(after / (ONWARD * step))])

    def onward(self) -> tuple[Ints, Ints, Floats]:
        """Return moves (before, now) as keys, where somebody went on to, and how often."""
        rows = self.order[self.key >= 0]
        key, to = self.key[self.key >= 0], self.to[rows]
        both, count = np.unique(key * self.R + to, return_counts=True)
        return both // self.R, both % self.R, count.astype(np.float64)


def _fit_destination(
    r: Ints, row: Ints, step: Ints, teaches: NDArray[np.bool_], moves: _Moves, m_min: int, rng: np.random.Generator
) -> Floats:
    """
    Fit the weights (ALL_COLUMNS + 3,) of where a move leads, from some of the moves that `teaches` marks.

    A move is compared with all places, on a map of more than FEW_PLACES with OTHERS drawn for it: half of them by
    arrivals, half by the step without memory. The law of the draw is divided out again (McFadden 1978).
    """
    R, large = moves.R, moves.R > FEW_PLACES
    n, some = OTHERS + 1 if large else R, np.flatnonzero(teaches)
    if len(some) * n > CELLS:
        some = np.sort(rng.permutation(some)[: max(1, int(CELLS // n))])
    among = np.arange(R)[None]
    x = np.empty((len(some), n, 4 if large else 3), dtype=np.float32)
    if large:
        among = np.empty((len(some), n), dtype=np.int64)
    for i, m in enumerate(some.tolist()):
        known = moves.leave_one_out(m)
        if large:
            among[i], x[i, :, 3] = _draw_others(known[:, 0], known[:, 1], int(moves.now[m]), int(moves.to[m]), rng)
            known = known[among[i]]
        x[i, :, :3] = known
    cols = np.empty((len(some), n, 8), dtype=np.int16)
    columns_of_moves(r, row[some], step[some], R, moves.ground, among, cols)
    centre = np.zeros(ALL_COLUMNS + x.shape[2])
    centre[ALL_COLUMNS] = 1.0
    centre[ALL_COLUMNS + 3 :] = 1.0
    if len(some) == 0:
        return centre[: ALL_COLUMNS + 3]
    chosen, now = (moves.to[some], moves.now[some]) if not large else (np.zeros(len(some), int), np.full(len(some), -1))
    did = cols[np.arange(len(some)), chosen]
    thin = np.flatnonzero(~_enough_users(did.ravel(), np.repeat(moves.who[some], 8), ALL_COLUMNS, m_min))
    fixed = np.append(thin, np.arange(ALL_COLUMNS + 3, len(centre)))
    return minimise(destination_loss, (centre, RIDGE, cols, x, now, chosen), centre, 50, fixed)[: ALL_COLUMNS + 3]


def _draw_others(
    ln_step: Floats, ln_arrivals: Floats, now: int, to: int, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """Draw places (OTHERS + 1,) to compare a move with, the chosen one first; minus ln of the law they are drawn by."""
    law = np.zeros(len(ln_step))
    for ln_weight in (ln_step, ln_arrivals):
        weight = np.exp(ln_weight)
        weight[now] = 0.0
        law += weight / (2 * weight.sum())
    passed = np.cumsum(law)
    drawn = np.searchsorted(passed, rng.random(OTHERS) * passed[-1], side="right")
    among = np.append(to, np.minimum(drawn, len(law) - 1))
    return among, -np.log(law[among])


def _fit_moving(r: Ints, who: NDArray[np.integer], R: int, ground: Ground, m_min: int) -> Floats:
    """
    Fit the weights of moving (ALL_MOVING,) and of leaving each place (R,), by logistic regression; 0 where few
    teach.
    """
    N, L = r.shape
    moving = np.empty((N, L - 1, 7), dtype=np.int64)
    columns_of_steps(r, ground, parts_of_day(L), moving)
    every = np.column_stack([moving.reshape(-1, 7), ALL_MOVING + r[:, :-1].ravel()])
    moved = (r[:, 1:] != r[:, :-1]).ravel()
    thin = np.flatnonzero(~_enough_users(every.ravel(), np.repeat(who, (L - 1) * 8), ALL_MOVING + R, m_min))
    n = ALL_MOVING + R
    ridge = np.concatenate([np.full(ALL_MOVING, RIDGE_MOVING), np.full(R, RIDGE_PLACE)])
    return minimise(logistic_loss, (ridge, every, moved), np.zeros(n), 200, thin)


def minimise(
    loss: Callable[..., float], data: tuple[Any, ...], start: Floats, steps: int, fixed: Ints | slice = slice(0)
) -> Floats:
    """
    Return the weights of the least loss after at most so many `steps` of L-BFGS-B; those `fixed` stay as at the start.

    `loss(weights, *data, slope)` returns a value and writes its gradient into `slope`.
    """
    from scipy.optimize import minimize

    slope = np.empty_like(start)

    def value_and_slope(at: Floats) -> tuple[float, Floats]:
        value = float(loss(at, *data, slope))
        slope[fixed] = 0.0
        return value, slope.copy()

    with one_thread():
        return np.asarray(minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x)


def _day_statistic_shares(r: Ints) -> Floats:
    """
    Return (4, L + 1) the share of the traces with so many moves, places, slots at their main place, ends at
    their start.
    """
    statistics = np.empty((len(r), 4), dtype=np.int64)
    day_statistics_of(r, statistics)
    return np.stack([np.bincount(of, minlength=r.shape[1] + 1) for of in statistics.T]) / len(r)


def pool_day_statistics(r: Ints, who: NDArray[np.integer], walks: Ints, m_min: int) -> Floats:
    """
    Return `_day_statistic_shares` of people, with values of fewer than `m_min` users pooled with the next ones.

    Going up, numbers are put together until enough users are; what is left at the top goes to the last of these. Within
    a pool, values are shared out as among `walks`. Where few come home, or few do not, nobody does.
    """
    walked = _day_statistic_shares(walks)
    (N, L), statistics = r.shape, np.empty((len(r), 4), dtype=np.int64)
    day_statistics_of(r, statistics)
    out = np.zeros((4, L + 1))
    for k, (low, high) in enumerate(((0, L - 1), (1, L), (1, L), (0, 1))):
        edges, start = [low], low
        for value in range(low, high + 1):
            mine = (statistics[:, k] >= start) & (statistics[:, k] <= value)
            if len(np.unique(who[mine])) >= m_min:
                edges.append(value + 1)
                start = value + 1
        few = [len(np.unique(who[statistics[:, k] == value])) < m_min for value in (low, high)]
        if k == 3 and few[0] != few[1]:
            # whether days come home is yes or no: what fewer do is not told, and the others are all there are
            out[k, low], out[k, high] = (1.0, 0.0) if few[1] else (0.0, 1.0)
            continue
        if len(edges) == 1:
            edges.append(high + 1)
        edges[-1] = high + 1
        for a, b in pairwise(edges):
            share = np.count_nonzero((statistics[:, k] >= a) & (statistics[:, k] < b)) / N
            here = walked[k, a:b] if walked[k, a:b].sum() > 0 else np.ones(b - a)
            out[k, a:b] = share * here / here.sum()
    return out
