"""
Profiles of traces with missing or uncertain slots, by Gibbs sampling (E4).

Data augmentation alternates (a) drawing the missing runs of a user by forward filter, backward sample under the current
chain, and (b) drawing the chain from its Dirichlet posterior: pseudo-count .01/K per feasible move, K the number of
places the user visits and those that people move to from them. Among the places a user visits every move is feasible,
elsewhere those that somebody has made, and staying. The law of the first slot of a row has the same prior.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter, InvalidTraces, require_whole
from elsewhere.profiles.markov import MobilityProfile, Profiles, Sampling
from elsewhere.traces.model import Evidence, Floats, Ints, Places, Traces

PRIOR = 0.01  # of all pseudo-counts of a row together, if every place can be reached from it (E4)


class Moves(NamedTuple):
    """The places a user may be at, (K,), and the feasible moves between them by position: sorted targets per origin."""

    places: Ints
    start: Ints
    target: Ints


class Seen(NamedTuple):
    """Weights of the evidence on every slot of n rows: slot (row, t) owns `start[row L + t] : start[row L + t + 1]`."""

    start: Ints
    place: Ints
    log_weight: Floats


class Means(NamedTuple):
    """Averages over sweeps: visits (T, K), departures and rows of p (pairs, moves); changes of place per sweep."""

    visits: Floats
    moves: Floats
    p: Floats
    changes: Floats


def gibbs_profiles(
    traces: Traces,
    tau: Places,
    T: int,
    *,
    rng: np.random.Generator | None,
    sweeps: int = 200,
    burn_in: int = 100,
    prior: float = PRIOR,
) -> Profiles:
    """
    The posterior mean of every user's profile after `burn_in` of `burn_in + sweeps` sweeps; `.sampling` tells how well.

    A slot with evidence is drawn by its weights, whatever `r` says there. A user without missing or uncertain slots is
    not drawn: the mean is exact, maximum likelihood up to the prior. Only moves and visits that happen in some
    sweep are kept.
    """
    if not isinstance(rng, np.random.Generator):
        raise InvalidParameter('`missing="gibbs"` draws: it needs `rng`, a numpy Generator.')
    require_whole("sweeps", sweeps, 4, 1_000_000)
    require_whole("burn_in", burn_in, 0, 1_000_000)
    pairs, pair = np.unique(tau[:-1].astype(np.int64) * T + tau[1:], return_inverse=True)
    pair = pair.astype(np.int64)
    made = _made(traces.r, traces.R)
    latent = traces.r < 0
    if traces.evidence is not None:
        latent[traces.evidence.row, traces.evidence.slot] = True
    order = np.argsort(traces.user, kind="stable")
    rows_of = np.split(order, np.cumsum(np.bincount(traces.user, minlength=traces.U))[:-1])
    profiles, worst, slow = [], 1.0, 0
    for rows, stream in zip(rows_of, rng.spawn(traces.U), strict=True):
        r, hidden = traces.r[rows].astype(np.int64), latent[rows]
        seen = _seen(traces.evidence, rows, traces.L)
        moves = _feasible(np.unique(np.concatenate([r[~hidden], seen.place])), made, traces.R)
        if len(moves.places) == 0:
            raise InvalidTraces("a user has neither a known slot nor evidence on one.", code="E_EMPTY")
        r = np.searchsorted(moves.places, np.where(hidden, moves.places[0], r))
        seen = seen._replace(place=np.searchsorted(moves.places, seen.place))
        n = (sweeps, burn_in) if hidden.any() else (1, 0)
        means = sample_user(r, hidden, moves, seen, tau, pair, T, *n, prior, stream)
        profiles.append(_profile(means, moves, pairs, T, traces.R))
        r_hat = split_r_hat(means.changes) if hidden.any() else 1.0
        worst, slow = max(worst, r_hat), slow + (r_hat > 1.1)
    return Profiles.of(profiles).sampled(Sampling(sweeps, burn_in, int(latent.sum()), worst, slow))


def sample_user(
    r: Ints,
    hidden: NDArray[np.bool_],
    moves: Moves,
    seen: Seen,
    tau: Places,
    pair: Ints,
    T: int,
    sweeps: int,
    burn_in: int,
    prior: float,
    rng: np.random.Generator,
) -> Means:
    """Sweep over the missing slots of one user, all arrays by position in `moves.places`; averages after `burn_in`."""
    from elsewhere.profiles._kernels import draw_missing, tally

    K, n_pairs = len(moves.places), int(pair.max()) + 1 if len(pair) else 0
    degree, pseudo = np.diff(moves.start), prior / K
    moved, visited, first = np.zeros((n_pairs, len(moves.target))), np.zeros((T, K)), np.zeros(K)
    _observed(moved, first, r, hidden, moves, pair)
    sums = Means(np.zeros((T, K)), np.zeros_like(moved), np.zeros_like(moved), np.empty(sweeps))
    r = r.copy()
    for sweep in range(-burn_in, sweeps):
        if hidden.any():
            log_p = log_dirichlet(moved + pseudo, moves.start, rng)
            log_first = log_dirichlet(first[None] + pseudo, np.array([0, K]), rng)[0]
            uniform = rng.random(r.shape)
            if not draw_missing(r, hidden, moves.start, moves.target, log_p, log_first, pair, *seen, uniform):
                raise InvalidTraces("the evidence on some slot names no place that can be reached.", code="E_EVIDENCE")
        changes = tally(moved, visited, first, r, moves.start, moves.target, pair, tau)
        if sweep >= 0:
            leaving = np.add.reduceat(moved, moves.start[:-1], axis=1)
            rows = (moved + pseudo) / np.repeat(leaving + pseudo * degree, degree, axis=1)
            for total, value in zip(sums[:3], (visited, moved, rows), strict=True):
                total += value
            sums.changes[sweep] = changes
    return Means(sums.visits / sweeps, sums.moves / sweeps, sums.p / sweeps, sums.changes)


def log_dirichlet(shape: Floats, start: Ints, rng: np.random.Generator) -> Floats:
    """
    Logarithms of one Dirichlet draw per segment `start[i] : start[i + 1]` of each row of `shape`.

    Gamma(a) = Gamma(a + 1) U^(1/a), in logarithms: with shapes of 1e-4 most draws are below the smallest float.
    """
    log_gamma = np.log(rng.standard_gamma(shape + 1)) + np.log1p(-rng.random(shape.shape)) / shape
    size = np.diff(start)
    top = np.repeat(np.maximum.reduceat(log_gamma, start[:-1], axis=1), size, axis=1)
    total = np.repeat(np.add.reduceat(np.exp(log_gamma - top), start[:-1], axis=1), size, axis=1)
    return np.asarray(log_gamma - top - np.log(total))


def split_r_hat(values: Floats) -> float:
    """
    Gelman and Rubin's potential scale reduction between the two halves of one run; 1 where nothing varies.

    Examples
    --------
    >>> split_r_hat(np.array([1.0, 2, 1, 2, 1, 2, 1, 2])) < 1.1 < split_r_hat(np.array([1.0, 2, 1, 2, 8, 9, 8, 9]))
    True

    """
    n = len(values) // 2
    halves = np.stack([values[:n], values[-n:]])
    within, between = halves.var(axis=1, ddof=1).mean(), n * halves.mean(axis=1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt((n - 1) / n + between / (n * within)))


def _made(r: Places, R: int) -> Ints:
    """Every move that somebody is seen to make, as r R + r', sorted."""
    known = (r[:, :-1] >= 0) & (r[:, 1:] >= 0)
    return np.unique(r[:, :-1][known].astype(np.int64) * R + r[:, 1:][known])


def _feasible(visited: Ints, made: Ints, R: int) -> Moves:
    from_visited = made[np.isin(made // R, visited)]
    places = np.union1d(visited, from_visited % R)
    inside = made[np.isin(made // R, places) & np.isin(made % R, places)]
    among = (visited[:, None] * R + visited).ravel()
    keys = np.unique(np.concatenate([inside, among, places * (R + 1)]))
    start = np.searchsorted(keys // R, np.append(places, R))
    return Moves(places, start.astype(np.int64), np.searchsorted(places, keys % R).astype(np.int64))


def _seen(evidence: Evidence | None, rows: Ints, L: int) -> Seen:
    if evidence is None:
        return Seen(np.zeros(len(rows) * L + 1, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
    mine = np.isin(evidence.row, rows)
    slot = np.searchsorted(rows, evidence.row[mine]) * L + evidence.slot[mine]
    place = evidence.place[mine].astype(np.int64)
    # rare places that were merged may name one place twice: either of them was meant
    R = int(place.max(initial=0)) + 1
    key, group = np.unique(slot * R + place, return_inverse=True)
    weight = np.bincount(group, evidence.weight[mine], len(key))
    start = np.searchsorted(key // R, np.arange(len(rows) * L + 1)).astype(np.int64)
    return Seen(start, key % R, np.log(weight))


def _observed(moved: Floats, first: Floats, r: Ints, hidden: NDArray[np.bool_], moves: Moves, pair: Ints) -> None:
    """Start from what is seen on both sides of a step."""
    row, t = np.nonzero(~hidden[:, :-1] & ~hidden[:, 1:])
    K = len(moves.places)
    keys = np.repeat(np.arange(K), np.diff(moves.start)) * K + moves.target
    np.add.at(moved, (pair[t], np.searchsorted(keys, r[row, t] * K + r[row, t + 1])), 1)
    np.add.at(first, r[~hidden[:, 0], 0], 1)


def _profile(means: Means, moves: Moves, pairs: Ints, T: int, R: int) -> MobilityProfile:
    """
    Means as counts: visits as they are; moves such that `p` is the mean of p, and departures their own mean.

    What never happened is left out, and the crumbs of the prior on it are shared out in its row.
    """
    support = np.flatnonzero(means.visits.sum(axis=0) > 0)
    size = np.diff(moves.start)
    kept = means.p * (means.moves > 0)
    total = np.add.reduceat(kept, moves.start[:-1], axis=1)
    leaving = np.add.reduceat(means.moves, moves.start[:-1], axis=1)
    count = kept * np.repeat(np.divide(leaving, total, out=np.zeros_like(total), where=total > 0), size, axis=1)
    which, move = np.nonzero(count)
    origin = np.repeat(np.arange(len(size)), size)
    return MobilityProfile(
        moves.places[support].astype(np.int32),
        means.visits[:, support],
        (pairs[which] // T).astype(np.int32),
        (pairs[which] % T).astype(np.int32),
        np.searchsorted(support, origin[move]).astype(np.int32),
        np.searchsorted(support, moves.target[move]).astype(np.int32),
        count[which, move],
        R,
    )
