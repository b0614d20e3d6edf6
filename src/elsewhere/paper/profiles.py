"""
Mobility profiles <p(u), pi(u)>: a time-dependent first-order Markov chain per user, as counts (eq:p_and_pi).

Maximum likelihood counts what was seen; where slots are missing or uncertain, Gibbs sampling averages over what they
may have been (E4).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.slots import Periods, Traces
from elsewhere.data.visits import Codes, Floats, Ints
from elsewhere.errors import InvalidParameter, InvalidTraces, UnknownUser, require_choice, require_whole
from elsewhere.sorting import distinct, number_keys

Counts = NDArray[Any]  # int64; float64 where a profile is a posterior mean (E4)


class Sampling(NamedTuple):
    """
    How profiles were sampled (E4): sweeps that are averaged, slots drawn, and a figure of convergence.

    `r_hat` is the largest over users of the potential scale reduction of the number of moves between the two halves of
    the run: near 1 where both halves tell the same.
    """

    sweeps: int
    slots: int
    r_hat: float


@dataclass(frozen=True, eq=False)
class MobilityProfile:
    """
    <p(u), pi(u)> of one user, as counts on the user's own support.

    `visits[tau, k]` counts the slots in period tau at place `support[k]`. Move number m, seen `count[m]` times,
    leads from `support[origin[m]]` in period `tau[m]` to `support[target[m]]` in period `tau_next[m]`.
    """

    support: Codes = field(repr=False)
    visits: Counts = field(repr=False)
    tau: Codes = field(repr=False)
    tau_next: Codes = field(repr=False)
    origin: Codes = field(repr=False)
    target: Codes = field(repr=False)
    count: Counts = field(repr=False)
    R: int

    def __repr__(self) -> str:
        return f"MobilityProfile({self.K} of {self.R} places, {self.T} periods, {self.visits.sum():g} slots)"

    @property
    def K(self) -> int:
        """Return the number of places the user visits."""
        return len(self.support)

    @property
    def T(self) -> int:
        """Return the number of periods."""
        return len(self.visits)

    @property
    def w(self) -> Floats:
        """Return w_tau, the share of the user's slots in each period, (T,)."""
        lived = self.visits.sum(axis=1)
        return np.asarray(lived / lived.sum(), dtype=np.float64)

    @property
    def pi(self) -> Floats:
        """Return the joint Pr{r, tau}, (T, K), sums to 1 (E1)."""
        return np.asarray(self.visits / self.visits.sum(), dtype=np.float64)

    @property
    def pi_tau(self) -> Floats:
        """Return the conditional Pr{r | tau}, (T, K); the row of a period without any slot is 0."""
        lived = self.visits.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(self.visits, lived, out=np.zeros(self.visits.shape), where=lived > 0))

    @property
    def pi_r(self) -> Floats:
        """Return the visiting probability of each place over the whole day, (K,)."""
        return np.asarray(self.visits.sum(axis=0) / self.visits.sum(), dtype=np.float64)

    def moves(self, tau: int = 0, tau_next: int = 0) -> Counts:
        """Return (K, K) counts of moves r -> r' between these two periods."""
        chosen = (self.tau == tau) & (self.tau_next == tau_next)
        table = np.zeros((self.K, self.K), dtype=self.count.dtype)
        np.add.at(table, (self.origin[chosen], self.target[chosen]), self.count[chosen])
        return table

    def p(self, tau: int = 0, tau_next: int = 0) -> Floats:
        """Return p_{r,tau,tau'}^{r'}, (K, K); an undefined row is 0 everywhere (E3)."""
        table = self.moves(tau, tau_next)
        leaving = table.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(table, leaving, out=np.zeros(table.shape), where=leaving > 0))

    def alpha(self, tau: int = 0, tau_next: int = 0) -> Floats:
        """
        Return the share of all departures that leave r in tau for a slot in tau', (K,).

        It stands for the weight pi^{r,tau} p_{r,tau}^{tau'} of eq:as1 and eq:hs1. pi counts slots, the last one of a
        trace too, which nobody leaves; shares of departures sum to 1 over all places and pairs of periods (E3, E7).
        0 everywhere if the user never moves to a next slot.
        """
        total = self.count.sum()
        leaving = self.moves(tau, tau_next).sum(axis=1)
        return np.asarray(leaving / total if total > 0 else np.zeros(self.K), dtype=np.float64)

    def period_pairs(self) -> list[tuple[int, int]]:
        """Return the (tau, tau') between which the user has at least one transition, sorted."""
        return sorted(set(zip(self.tau.tolist(), self.tau_next.tolist(), strict=True)))


@dataclass(frozen=True, eq=False)
class Profiles(Sequence[MobilityProfile]):
    """
    The profiles of many users in one set of columns; item u is a view of user u.

    Visits are sorted by (user, tau, place): user u owns entries `visit_start[u] : visit_start[u + 1]` of `visit_tau`,
    `visit_k` (position in the user's support) and `visit_count`. Supports and moves are laid out in the same way.
    """

    support_start: Ints
    support: Codes
    visit_start: Ints
    visit_tau: Codes
    visit_k: Codes
    visit_count: Counts
    move_start: Ints
    move_tau: Codes
    move_tau_next: Codes
    move_origin: Codes
    move_target: Codes
    move_count: Counts
    R: int
    T: int
    sampling: Sampling | None = None

    def __len__(self) -> int:
        return len(self.support_start) - 1

    def __repr__(self) -> str:
        return f"Profiles({len(self)} users, {self.R} places, {self.T} periods)"

    @overload
    def __getitem__(self, u: int) -> MobilityProfile: ...
    @overload
    def __getitem__(self, u: slice) -> list[MobilityProfile]: ...
    def __getitem__(self, u: int | slice) -> MobilityProfile | list[MobilityProfile]:
        if isinstance(u, slice):
            return [self[i] for i in range(*u.indices(len(self)))]
        if not hasattr(u, "__index__") or not -len(self) <= u < len(self):
            raise UnknownUser(f"user number must be in 0 .. {len(self) - 1}, got {u!r}.")
        index = int(u) % len(self)
        places = self.support[self.support_start[index] : self.support_start[index + 1]]
        of_visits = slice(self.visit_start[index], self.visit_start[index + 1])
        visits = np.zeros((self.T, len(places)), dtype=self.visit_count.dtype)
        visits[self.visit_tau[of_visits], self.visit_k[of_visits]] = self.visit_count[of_visits]
        of_moves = slice(self.move_start[index], self.move_start[index + 1])
        columns = (self.move_tau, self.move_tau_next, self.move_origin, self.move_target, self.move_count)
        tau, tau_next, origin, target, number = (column[of_moves] for column in columns)
        return MobilityProfile(places, visits, tau, tau_next, origin, target, number, self.R)

    @staticmethod
    def of(profiles: "Iterable[MobilityProfile]") -> "Profiles":
        """Gather single profiles into columns; `Profiles` pass through unchanged."""
        if isinstance(profiles, Profiles):
            return profiles
        parts = list(profiles) if isinstance(profiles, Iterable) else [profiles]
        if not parts:
            raise InvalidTraces("there must be at least one profile.", code="E_EMPTY")
        if not all(isinstance(u, MobilityProfile) for u in parts):
            raise InvalidParameter("`profiles` must hold `MobilityProfile` objects, as `fit_profiles` makes them.")
        check_comparable(*parts)

        def starts(sizes: Iterable[int]) -> Ints:
            return np.cumsum([0, *sizes])

        def columns(rows: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
            return (np.concatenate(column).astype(np.int32) for column in zip(*rows, strict=True))

        visited = [np.nonzero(u.visits) for u in parts]
        of_all: tuple[Any, ...] = (
            starts(u.K for u in parts),
            *columns((u.support,) for u in parts),
            starts(len(tau) for tau, _ in visited),
            *columns(visited),
            np.concatenate([u.visits[at] for u, at in zip(parts, visited, strict=True)]),
            starts(len(u.count) for u in parts),
            *columns((u.tau, u.tau_next, u.origin, u.target) for u in parts),
            np.concatenate([u.count for u in parts]),
            parts[0].R,
            parts[0].T,
        )
        return Profiles(*of_all)


def check_comparable(*profiles: "MobilityProfile | Profiles") -> None:
    """Refuse profiles that do not speak of the same places and the same periods."""
    shapes = {(u.R, u.T) for u in profiles}
    if len(shapes) > 1:
        raise InvalidTraces(
            f"profiles must share places and periods: they have (R, T) = {', '.join(map(str, sorted(shapes)))}.",
            code="E_MISMATCH",
        )


def fit_profiles(
    traces: Traces,
    *,
    periods: int | Sequence[float] | Periods = 1,
    missing: str = "refuse",
    sweeps: int = 200,
    rng: np.random.Generator | None = None,
) -> Profiles:
    """
    Return the mobility profile of every user: counts of visits and of moves, maximum likelihood (eq:p_and_pi).

    With `missing="gibbs"` counts are posterior means, no longer whole, and `.sampling` of the result says how many
    sweeps they rest on and how well these agree (E4).

    Parameters
    ----------
    traces
        Rows of one user are counted together; no transition joins two rows (E2).
    periods
        Number of equal parts of the local day, or hour bounds from 0 to 24 (E24).
    missing
        "refuse": a missing slot is an error. "skip": it is left out, with the moves to and from it. "gibbs": it
        is drawn, many times over, from what the user and others do around it, and by the evidence on it.
    rng
        For "gibbs".
    sweeps
        For "gibbs": sweeps that are averaged, after half as many that are thrown away.

    Returns
    -------
    One profile per user, in order of the users' first appearance.

    Examples
    --------
    >>> import elsewhere as ew
    >>> u = ew.fit_profiles(ew.Traces([[0, 0, 1]], ew.Locations(n=2)))[0]
    >>> u.p().tolist()
    [[0.5, 0.5], [0.0, 0.0]]

    """
    if not isinstance(traces, Traces):
        raise InvalidParameter(f"`traces` must be a `Traces`, got {type(traces).__name__}.")
    require_choice("missing", missing, ("refuse", "skip", "gibbs"))
    clock = Periods.of(periods)
    tau = clock.of_minute(traces.minutes())
    if missing == "gibbs":
        return gibbs_profiles(traces, tau, clock.T, rng=rng, sweeps=sweeps)
    gaps = int(np.count_nonzero(traces.r < 0))
    if gaps and missing == "refuse":
        raise InvalidTraces(
            f'{gaps} of {traces.r.size} slots are missing (-1); fill them, or pass `missing="gibbs"` or "skip".',
            code="E_GAPS",
        )
    return count(traces.r, traces.user, tau, U=traces.U, R=traces.R, T=clock.T)


def count(r: Codes, user: Ints, tau: Codes, *, U: int, R: int, T: int) -> Profiles:
    """Count visits and moves of (N, L) rows `r` of `user`, slots in periods `tau`; -1 is no slot."""
    (N, L), tau = r.shape, np.broadcast_to(tau, r.shape)
    place, when = r.astype(np.int64), tau.astype(np.int64)
    who = np.broadcast_to(user[:, None], (N, L))
    present = place >= 0
    support_key, entry = number_keys((who * R + place)[present])
    support_start = np.searchsorted(support_key // R, np.arange(U + 1))
    k = np.full((N, L), -1, dtype=np.int64)  # position of each place in its user's support
    k[present] = entry - support_start[who[present]]
    K = int(k.max(initial=-1)) + 1

    key, entry = number_keys(((who * T + when) * K + k)[present])
    visit_count = np.bincount(entry).astype(np.int64)
    visitor, *visit = (digit.astype(np.int32) for digit in np.unravel_index(key, (U, T, K)))

    both = present[:, :-1] & present[:, 1:]
    key = (((who[:, 1:] * T + when[:, :-1]) * T + when[:, 1:]) * K + k[:, :-1]) * K + k[:, 1:]
    key, entry = number_keys(key[both])
    move_count = np.bincount(entry).astype(np.int64)
    mover, *move = (digit.astype(np.int32) for digit in np.unravel_index(key, (U, T, T, K, K)))
    users = np.arange(U + 1)
    of_visits = np.searchsorted(visitor, users), *visit, visit_count
    columns: tuple[Any, ...] = (*of_visits, np.searchsorted(mover, users), *move, move_count, R, T)
    return Profiles(support_start, (support_key % R).astype(np.int32), *columns)


PRIOR = 0.01  # of all pseudo-counts of a row together, if every place can be reached from it (E4)


class FeasibleMoves(NamedTuple):
    """The places a user may be at, (K,), and the feasible moves between them by position: sorted targets per origin."""

    places: Ints
    start: Ints
    target: Ints


class Candidates(NamedTuple):
    """Where n rows may be: slot (row, t) may be at `place[offset[row L + t] : offset[row L + t + 1]]`, by weight."""

    offset: Ints
    place: Ints
    log_weight: Floats


class Means(NamedTuple):
    """Averages over sweeps: visits (T, K), departures and rows of p (pairs, moves); changes of place by sweep."""

    visits: Floats
    moves: Floats
    p: Floats
    changes: Floats


def gibbs_profiles(traces: Traces, tau: Codes, T: int, *, rng: np.random.Generator | None, sweeps: int) -> Profiles:
    """
    Estimate the posterior mean of every user's profile; `.sampling` tells how well.

    A slot with evidence is drawn by its weights, whatever `r` says there. A user without missing or uncertain slots is
    not drawn: the mean is exact, maximum likelihood up to the prior. Only moves and visits that happen in some
    sweep are kept.
    """
    if not isinstance(rng, np.random.Generator):
        raise InvalidParameter('`missing="gibbs"` draws: it needs `rng`, a numpy Generator.')
    require_whole("sweeps", sweeps, 4, 1_000_000)
    pairs, pair = np.unique(tau[:-1].astype(np.int64) * T + tau[1:], return_inverse=True)
    latent = traces.r < 0
    if traces.evidence is not None:
        latent[traces.evidence.row, traces.evidence.slot] = True
    here, there = traces.r[:, :-1].astype(np.int64), traces.r[:, 1:]
    others = distinct((here * traces.R + there)[(here >= 0) & (there >= 0)])  # every move that somebody is seen to make
    likely: dict[tuple[int, int], dict[int, float]] = {}
    if (e := traces.evidence) is not None:
        for row, slot, place, weight in zip(*(c.tolist() for c in (e.row, e.slot, e.place, e.weight)), strict=True):
            likely.setdefault((row, slot), {})[place] = weight
    profiles, worst = [], 1.0
    order = np.argsort(traces.user, kind="stable")
    rows_of = np.split(order, np.cumsum(np.bincount(traces.user, minlength=traces.U))[:-1])
    for rows, stream in zip(rows_of, rng.spawn(traces.U), strict=True):
        r, hidden = traces.r[rows].astype(np.int64), latent[rows]
        evidence = [[likely.get((row, t), {}) for t in range(traces.L)] for row in rows.tolist()]
        # what others do is possible beside moves among own places
        known = {*r[~hidden].tolist(), *(place for row in evidence for weights in row for place in weights)}
        moves = _feasible_among(np.array(sorted(known), dtype=np.int64), others, traces.R)
        if len(moves.places) == 0:
            raise InvalidTraces("a user has neither a known slot nor evidence on one.", code="E_EMPTY")
        r = np.searchsorted(moves.places, np.where(hidden, moves.places[0], r))
        sets = candidates(r, hidden, evidence, moves.places)
        n = sweeps if hidden.any() else 1
        means = sample_user(r, hidden, moves, sets, tau, pair.astype(np.int64), T, n, PRIOR, stream)
        profiles.append(_profile_of_means(means, moves, pairs, T, traces.R))
        worst = max(worst, split_r_hat(means.changes) if n > 1 else 1.0)
    return replace(Profiles.of(profiles), sampling=Sampling(sweeps, int(latent.sum()), worst))


def sample_user(
    r: Ints,
    hidden: NDArray[np.bool_],
    moves: FeasibleMoves,
    sets: Candidates,
    tau: Codes,
    pair: Ints,
    T: int,
    sweeps: int,
    prior: float,
    rng: np.random.Generator,
) -> Means:
    """Sweep over the missing slots of one user, all arrays by position in `moves.places`; return averages."""
    from elsewhere.paper._generate_kernels import Chain, draw_rows, open_stream

    K, n_pairs = len(moves.places), int(pair.max()) + 1 if len(pair) else 0
    degree, pseudo = np.diff(moves.start), prior / K
    move_sums, first = np.zeros((n_pairs, len(moves.target))), np.zeros(K)
    # the moves of which both ends are seen, and the first places
    row, t = np.nonzero(~hidden[:, :-1] & ~hidden[:, 1:])
    origin = np.repeat(np.arange(K), degree)
    keys, table = origin * K + moves.target, np.full((n_pairs, K, K), -np.inf)
    np.add.at(move_sums, (pair[t], np.searchsorted(keys, r[row, t] * K + r[row, t + 1])), 1)
    np.add.at(first, r[~hidden[:, 0], 0], 1)
    r, stream = r.copy(), open_stream(rng.integers(0, 2**64, size=2, dtype=np.uint64), 0, 0)
    sums = Means(np.zeros((T, K)), np.zeros_like(move_sums), np.zeros_like(move_sums), np.empty(sweeps))
    for sweep in range(-(sweeps // 2), sweeps):
        if hidden.any():
            table[:, origin, moves.target] = log_dirichlet(move_sums + pseudo, moves.start, rng)
            chain = Chain(log_dirichlet(first[None] + pseudo, np.array([0, K]), rng)[0], table, pair)
            if not draw_rows(chain, *sets, stream, r):
                raise InvalidTraces("the evidence on some slot names no place that can be reached.", code="E_EVIDENCE")
        at = np.searchsorted(keys, r[:, :-1] * K + r[:, 1:]) + pair * len(keys)
        move_sums = np.bincount(at.ravel(), minlength=move_sums.size).reshape(move_sums.shape).astype(np.float64)
        visit_sums = np.bincount((tau * K + r).ravel(), minlength=T * K).reshape(T, K).astype(np.float64)
        first = np.bincount(r[:, 0], minlength=K).astype(np.float64)
        if sweep >= 0:
            leaving = np.add.reduceat(move_sums, moves.start[:-1], axis=1)
            rows = (move_sums + pseudo) / np.repeat(leaving + pseudo * degree, degree, axis=1)
            for total, value in zip(sums[:3], (visit_sums, move_sums, rows), strict=True):
                total += value
            sums.changes[sweep] = np.count_nonzero(r[:, 1:] != r[:, :-1])
    return Means(sums.visits / sweeps, sums.moves / sweeps, sums.p / sweeps, sums.changes)


def log_dirichlet(shape: Floats, start: Ints, rng: np.random.Generator) -> Floats:
    """
    Return the logarithms of one Dirichlet draw per segment `start[i] : start[i + 1]` of each row of `shape`.

    Gamma(a) = Gamma(a + 1) U^(1/a), in logarithms: with shapes of 1e-4 most draws are below the smallest float.
    """
    log_gamma = np.log(rng.standard_gamma(shape + 1)) + np.log1p(-rng.random(shape.shape)) / shape
    size = np.diff(start)
    top = np.repeat(np.maximum.reduceat(log_gamma, start[:-1], axis=1), size, axis=1)
    total = np.repeat(np.add.reduceat(np.exp(log_gamma - top), start[:-1], axis=1), size, axis=1)
    return np.asarray(log_gamma - top - np.log(total))


def split_r_hat(values: Floats) -> float:
    """
    Return Gelman and Rubin's potential scale reduction between the two halves of one run; 1 where nothing varies.

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


def _feasible_among(visited: Ints, moves: Ints, R: int) -> FeasibleMoves:
    from_visited = moves[np.isin(moves // R, visited)]
    places = np.union1d(visited, from_visited % R)
    inside = moves[np.isin(moves // R, places) & np.isin(moves % R, places)]
    among = (visited[:, None] * R + visited).ravel()
    keys = np.unique(np.concatenate([inside, among, places * (R + 1)]))
    start = np.searchsorted(keys // R, np.append(places, R))
    return FeasibleMoves(places, start.astype(np.int64), np.searchsorted(places, keys % R).astype(np.int64))


def candidates(
    r: Ints, hidden: NDArray[np.bool_], evidence: Sequence[Sequence[dict[int, float]]], places: Ints
) -> Candidates:
    """Return where rows `r` may be, by position in `places`: any where hidden, but for `evidence` {place: weight}."""
    everywhere = dict.fromkeys(places.tolist(), 1.0)
    sets = [
        (evidence[i][t] or everywhere) if hidden[i, t] else {int(places[r[i, t]]): 1.0} for i, t in np.ndindex(r.shape)
    ]
    place = np.searchsorted(places, [p for weights in sets for p in sorted(weights)])
    weight = np.log([weights[p] for weights in sets for p in sorted(weights)])
    return Candidates(np.cumsum([0, *map(len, sets)]), place, weight)


def _profile_of_means(means: Means, moves: FeasibleMoves, pairs: Ints, T: int, R: int) -> MobilityProfile:
    """
    Return the means as counts: visits as they are; moves such that `p` is the mean of p, and departures their own mean.

    What never happened is left out, and the crumbs of the prior on it are shared out in its row.
    """
    support = np.flatnonzero(means.visits.sum(axis=0) > 0)
    size = np.diff(moves.start)
    p = means.p * (means.moves > 0)
    total = np.add.reduceat(p, moves.start[:-1], axis=1)
    leaving = np.add.reduceat(means.moves, moves.start[:-1], axis=1)
    count = p * np.repeat(np.divide(leaving, total, out=np.zeros_like(total), where=total > 0), size, axis=1)
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
