"""How alike two aggregate models <p_bar, pi_bar> are: eq:as1 with the real one first, pi_bar at order 0 (E73)."""

from collections.abc import Iterator

import numpy as np

from elsewhere.profiles.aggregate import AggregateModel
from elsewhere.profiles.markov import Profiles
from elsewhere.traces.model import Floats, Ints

ROWS = 64  # of p_bar at a time


def visits_similarity(real: AggregateModel, other: AggregateModel, w: Floats) -> float:
    """
    sum_tau w_tau sum_r min(pi_bar_tau^r, pi_bar_F,tau^r), w the real shares of time in each period (E13).

    A period in which `other` has no instant adds 0.
    """
    if real.T == 1:
        return min(1.0, float(np.minimum(real.pi_bar, other.pi_bar).sum()))
    lived = np.flatnonzero((w > 0) & (other.sums.lived > 0))
    return min(1.0, float(sum(w[t] * np.minimum(real.first(t), other.first(t)).sum() for t in lived.tolist())))


def moves_similarity(real: AggregateModel, other: AggregateModel, weight: Floats) -> float:
    """
    sum_{r,tau,tau'} weight min(p_bar, p_bar_F), Hamming (eq:as1); `weight (T, T, R)` sums to 1.

    Both models carry the same kernel, so where neither has a move their rows are proportional: there the sum of minima
    is the smaller of the two remaining masses, and only places that somebody moved to are ever evaluated.
    """
    total = 0.0
    for tau, tau_next in zip(*np.nonzero(weight.any(axis=2)), strict=True):
        for r, there in _blocks(real, other, np.flatnonzero(weight[tau, tau_next])):
            a, b = (m.block(r, there, int(tau), int(tau_next)) for m in (real, other))
            left = np.minimum(1 - a.sum(axis=1), 1 - b.sum(axis=1))
            shared = np.minimum(a, b).sum(axis=1) + np.maximum(0.0, left)
            total += float(weight[tau, tau_next, r] @ shared)
    return min(1.0, total)


def move_weights(profiles: Profiles) -> Floats:
    """
    (T, T, R) pi_bar^{r,tau} times the share of the departures from (r, tau) whose next instant lies in tau' (E7).

    With one period this is pi_bar. What has no departure stays in its period.
    """
    T, R = profiles.T, profiles.R
    who = np.repeat(np.arange(len(profiles)), np.diff(profiles.visit_start))
    place = profiles.support[profiles.support_start[who] + profiles.visit_k]
    instants = np.bincount(who, profiles.visit_count)
    pi = np.zeros((T, R))
    np.add.at(pi, (profiles.visit_tau, place), profiles.visit_count / instants[who] / len(profiles))
    mover = np.repeat(np.arange(len(profiles)), np.diff(profiles.move_start))
    origin = profiles.support[profiles.support_start[mover] + profiles.move_origin]
    moves = np.zeros((T, T, R))
    np.add.at(moves, (profiles.move_tau, profiles.move_tau_next, origin), profiles.move_count)
    leaving = moves.sum(axis=1, keepdims=True)
    stays = np.broadcast_to(np.eye(T)[:, :, None], moves.shape)
    return np.asarray(pi[:, None, :] * np.where(leaving > 0, moves / np.where(leaving > 0, leaving, 1), stays))


def _blocks(real: AggregateModel, other: AggregateModel, rows: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Rows in blocks, each with every place that either model has seen a move to from them."""
    R = real.R
    step = np.unique(np.concatenate([m.sums.key % (R * R) for m in (real, other)]))
    start = np.searchsorted(step // R, np.arange(R + 1))
    for i in range(0, len(rows), ROWS):
        block = rows[i : i + ROWS]
        there = np.concatenate([step[start[r] : start[r + 1]] % R for r in block.tolist()])
        yield block, np.unique(there)
