"""
Mobility profiles <p(u), pi(u)>: a time-dependent first-order Markov chain per user, as counts (eq:p_and_pi).

Two quantities that the paper writes with one letter have two names here (E1):

- `pi`      the joint Pr{r, tau}, sums to 1 over places and periods;
- `pi_tau`  the conditional Pr{r | tau} = pi / w_tau, sums to 1 over places in each period the user has lived in.

Every pair of consecutive instants is a transition, a stay is a self-transition, and (tau, tau') are the periods
of its two instants (E2). A place that is never left has no row: it is undefined, never uniform (E3).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter, InvalidTraces, require_choice
from elsewhere.traces.model import Floats, Ints, Periods, Places, Traces

Counts = NDArray[Any]  # int64; float64 where a profile is a posterior mean (E4)
MISSING = ("refuse", "skip", "gibbs")


class Sampling(NamedTuple):
    """
    How profiles were sampled (E4): sweeps kept and thrown away, slots drawn, and a figure of convergence.

    `r_hat` is the largest over users of the potential scale reduction of the number of moves between the two halves of
    the run: near 1 where both halves tell the same. `slow` users have more than 1.1.
    """

    sweeps: int
    burn_in: int
    slots: int
    r_hat: float
    slow: int


@dataclass(frozen=True, eq=False)
class MobilityProfile:
    """
    <p(u), pi(u)> of one user, as counts on the user's own support.

    `visits[tau, k]` counts the instants in period tau at place `support[k]`. Move number m, seen `count[m]` times,
    leads from `support[origin[m]]` in period `tau[m]` to `support[target[m]]` in period `tau_next[m]`.
    """

    support: Places = field(repr=False)
    visits: Counts = field(repr=False)
    tau: Places = field(repr=False)
    tau_next: Places = field(repr=False)
    origin: Places = field(repr=False)
    target: Places = field(repr=False)
    count: Counts = field(repr=False)
    R: int

    def __repr__(self) -> str:
        return f"MobilityProfile({self.K} of {self.R} places, {self.T} periods, {self.visits.sum():g} instants)"

    @property
    def K(self) -> int:
        """Number of places the user visits."""
        return len(self.support)

    @property
    def T(self) -> int:
        """Number of periods."""
        return len(self.visits)

    @property
    def w(self) -> Floats:
        """w_tau: share of the user's instants in each period, (T,)."""
        lived = self.visits.sum(axis=1)
        return np.asarray(lived / lived.sum(), dtype=np.float64)

    @property
    def pi(self) -> Floats:
        """Joint Pr{r, tau}, (T, K), sums to 1 (E1)."""
        return np.asarray(self.visits / self.visits.sum(), dtype=np.float64)

    @property
    def pi_tau(self) -> Floats:
        """Conditional Pr{r | tau}, (T, K); the row of a period without any instant is 0."""
        lived = self.visits.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(self.visits, lived, out=np.zeros(self.visits.shape), where=lived > 0))

    @property
    def pi_r(self) -> Floats:
        """Visiting probability of each place over the whole day, (K,)."""
        return np.asarray(self.visits.sum(axis=0) / self.visits.sum(), dtype=np.float64)

    @property
    def pi_steady(self) -> Floats:
        """
        Steady state of p(u), pooled over periods, (K,): where the chain is found in the long run (E6).

        For comparison with tools that take it for pi; nothing here uses it. The walk starts from the visiting
        probabilities, and from a place that the user never left it starts again.
        """
        table = np.zeros((self.K, self.K))
        np.add.at(table, (self.origin, self.target), self.count)
        leaving = table.sum(axis=1, keepdims=True)
        p = np.where(leaving > 0, table / np.where(leaving > 0, leaving, 1), self.pi_r)
        # the long-run mean is the limit of a walk that starts again ever more rarely: unique where p is reducible too
        rarely = 1e-9
        law = np.linalg.solve(np.eye(self.K) - (1 - rarely) * p.T, rarely * self.pi_r)
        return np.asarray(law / law.sum(), dtype=np.float64)

    def moves(self, tau: int = 0, tau_next: int = 0) -> Counts:
        """(K, K) counts of moves r -> r' between these two periods."""
        chosen = (self.tau == tau) & (self.tau_next == tau_next)
        table = np.zeros((self.K, self.K), dtype=self.count.dtype)
        np.add.at(table, (self.origin[chosen], self.target[chosen]), self.count[chosen])
        return table

    def p(self, tau: int = 0, tau_next: int = 0) -> Floats:
        """p_{r,tau,tau'}^{r'}, (K, K); an undefined row is 0 everywhere (E3)."""
        table = self.moves(tau, tau_next)
        leaving = table.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(table, leaving, out=np.zeros(table.shape), where=leaving > 0))

    def p_tau(self, tau: int = 0, tau_next: int = 0) -> Floats:
        """p_{r,tau}^{tau'}: share of the departures from (r, tau) whose next instant lies in tau', (K,) (E7)."""
        here = self.tau == tau
        leaving = np.bincount(self.origin[here], self.count[here], self.K)
        chosen = here & (self.tau_next == tau_next)
        into = np.bincount(self.origin[chosen], self.count[chosen], self.K)
        return np.asarray(np.divide(into, leaving, out=np.zeros(self.K), where=leaving > 0))

    def alpha(self, tau: int = 0, tau_next: int = 0) -> Floats:
        """
        pi^{r,tau} p_{r,tau}^{tau'}: share of all departures that leave r in tau for tau', (K,).

        Sums to 1 over places and period pairs (E3); 0 everywhere if the user never moves to a next instant.
        """
        total = self.count.sum()
        leaving = self.moves(tau, tau_next).sum(axis=1)
        return np.asarray(leaving / total if total > 0 else np.zeros(self.K), dtype=np.float64)

    def period_pairs(self) -> list[tuple[int, int]]:
        """The (tau, tau') between which the user has at least one transition, sorted."""
        return sorted(set(zip(self.tau.tolist(), self.tau_next.tolist(), strict=True)))


@dataclass(frozen=True, eq=False)
class Profiles(Sequence[MobilityProfile]):
    """
    The profiles of many users in one set of columns; item u is a view of user u.

    Visits are sorted by (user, tau, place): user u owns entries `visit_start[u] : visit_start[u + 1]` of `visit_tau`,
    `visit_k` (position in the user's support) and `visit_count`. Supports and moves are laid out in the same way.
    """

    support_start: Ints
    support: Places
    visit_start: Ints
    visit_tau: Places
    visit_k: Places
    visit_count: Counts
    move_start: Ints
    move_tau: Places
    move_tau_next: Places
    move_origin: Places
    move_target: Places
    move_count: Counts
    R: int
    T: int
    sampling: Sampling | None = None

    def sampled(self, sampling: Sampling) -> "Profiles":
        """The same, with a note on how they were sampled."""
        return replace(self, sampling=sampling)

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
        seen = slice(self.visit_start[index], self.visit_start[index + 1])
        visits = np.zeros((self.T, len(places)), dtype=self.visit_count.dtype)
        visits[self.visit_tau[seen], self.visit_k[seen]] = self.visit_count[seen]
        moved = slice(self.move_start[index], self.move_start[index + 1])
        return MobilityProfile(
            places,
            visits,
            self.move_tau[moved],
            self.move_tau_next[moved],
            self.move_origin[moved],
            self.move_target[moved],
            self.move_count[moved],
            self.R,
        )

    def __iter__(self) -> Iterator[MobilityProfile]:
        return (self[u] for u in range(len(self)))

    @staticmethod
    def of(profiles: "Iterable[MobilityProfile]") -> "Profiles":
        """Gather single profiles into columns; `Profiles` pass through unchanged."""
        if isinstance(profiles, Profiles):
            return profiles
        parts = list(profiles) if isinstance(profiles, Iterable) else [profiles]
        if not parts:
            raise InvalidTraces("there must be at least one profile.", code="E_EMPTY")
        if not isinstance(profiles, Iterable) or any(not isinstance(u, MobilityProfile) for u in parts):
            raise InvalidParameter("`profiles` must hold `MobilityProfile` objects, as `fit_profiles` makes them.")
        if not all(map(_fits, parts)):
            raise InvalidTraces(
                "a profile must have visits (T, K), and one entry per move in each column.", code="E_SHAPE"
            )
        check_comparable(*parts)
        visits = [np.asarray(u.visits) for u in parts]
        seen = [np.nonzero(table) for table in visits]

        def starts(columns: list[Any]) -> Ints:
            return np.cumsum([0, *map(len, columns)], dtype=np.int64)

        def joined(name: str) -> Places:
            return np.concatenate([getattr(u, name) for u in parts]).astype(np.int32)

        gathered = Profiles(
            support_start=starts([u.support for u in parts]),
            support=joined("support"),
            visit_start=starts([tau for tau, _ in seen]),
            visit_tau=np.concatenate([tau for tau, _ in seen]).astype(np.int32),
            visit_k=np.concatenate([k for _, k in seen]).astype(np.int32),
            visit_count=np.concatenate([table[where] for table, where in zip(visits, seen, strict=True)]),
            move_start=starts([u.count for u in parts]),
            move_tau=joined("tau"),
            move_tau_next=joined("tau_next"),
            move_origin=joined("origin"),
            move_target=joined("target"),
            move_count=np.concatenate([u.count for u in parts]),
            R=parts[0].R,
            T=parts[0].T,
        )
        _check_made_by_hand(gathered)
        return gathered


def _fits(u: MobilityProfile) -> bool:
    columns = {len(u.count), len(u.tau), len(u.tau_next), len(u.origin), len(u.target)}
    return len(columns) == 1 and np.shape(u.visits) == (len(u.visits), len(u.support))


def _check_made_by_hand(u: Profiles) -> None:
    """Refuse counts that no trace can have, in the columns of profiles that did not come from `fit_profiles`."""
    size = np.diff(u.support_start)
    for name, index, bound in (
        ("support", u.support, u.R),
        ("tau", u.move_tau, u.T),
        ("tau_next", u.move_tau_next, u.T),
        ("origin", u.move_origin, np.repeat(size, np.diff(u.move_start))),
        ("target", u.move_target, np.repeat(size, np.diff(u.move_start))),
    ):
        if np.any(index < 0) or np.any(index >= bound):
            raise InvalidTraces(f"`{name}` of a profile holds a number out of range.", code="E_INDEX")
    owner = np.repeat(np.arange(len(u)), size)
    if len(np.unique(owner * u.R + u.support)) != len(owner):
        raise InvalidTraces("`support` of a profile must name each place once.", code="E_INDEX")
    for name, counts in (("visits", u.visit_count), ("count", u.move_count)):
        if not np.all(np.isfinite(counts)) or np.any(counts < 0):
            raise InvalidTraces(f"`{name}` of a profile must be finite and at least 0.", code="E_NUMBER")
    if np.any(np.diff(u.visit_start) == 0):
        raise InvalidTraces("a profile must have at least one instant.", code="E_EMPTY")


class UnknownUser(InvalidParameter, IndexError):
    """A user number that no profile has."""

    code = "E_USER"


def check_comparable(*profiles: MobilityProfile) -> None:
    """All profiles speak of the same places and the same periods."""
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
    rng: np.random.Generator | None = None,
    sweeps: int = 200,
    burn_in: int = 100,
) -> Profiles:
    """
    The mobility profile of every user, by maximum likelihood: counts of visits and of moves (eq:p_and_pi).

    With `missing="gibbs"` counts are posterior means, no longer whole, and `.sampling` of the result says how many
    sweeps they rest on and how well these agree (E4).

    Parameters
    ----------
    traces
        Rows of one user are counted together; no transition joins two rows (E2).
    periods
        Number of equal parts of the local day, or hour bounds from 0 to 24 (E24).
    missing
        "refuse": a missing instant is an error. "skip": it is left out, with the moves to and from it. "gibbs": it
        is drawn, many times over, from what the user and others do around it, and by the evidence on it.
    rng
        For "gibbs".
    sweeps, burn_in
        For "gibbs": sweeps that are averaged, and sweeps thrown away before them.

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
    require_choice("missing", missing, MISSING)
    clock = Periods.of(periods)
    if missing == "gibbs":
        from elsewhere.profiles.gibbs import gibbs_profiles

        clock_of = clock.of_minute(traces.minutes())
        return gibbs_profiles(traces, clock_of, clock.T, rng=rng, sweeps=sweeps, burn_in=burn_in)
    gaps = int(np.count_nonzero(traces.r < 0))
    if gaps and missing == "refuse":
        raise InvalidTraces(
            f'{gaps} of {traces.r.size} instants are missing (-1); fill them, or pass `missing="gibbs"` or "skip".',
            code="E_GAPS",
        )
    tau = clock.of_minute(traces.minutes())
    return count(traces.r, traces.user, tau, U=traces.U, R=traces.R, T=clock.T)


def count(r: Places, user: Ints, tau: Places, *, U: int, R: int, T: int) -> Profiles:
    """Count visits and moves of (N, L) rows `r` of `user`, instants in periods `tau`; -1 is no instant."""
    N, L = r.shape
    place = r.astype(np.int64)
    who = np.broadcast_to(user[:, None], (N, L))
    present = place >= 0
    support_key, position = np.unique((who * R + place)[present], return_inverse=True)
    support_start = np.searchsorted(support_key // R, np.arange(U + 1))
    k = np.full((N, L), -1, dtype=np.int64)
    k[present] = position - support_start[who[present]]
    K = int(k.max()) + 1

    when = np.broadcast_to(tau.astype(np.int64), (N, L))
    visit_key, visit_count = np.unique(((who * T + when) * K + k)[present], return_counts=True)

    both = present[:, :-1] & present[:, 1:]
    key = (((who[:, 1:] * T + when[:, :-1]) * T + when[:, 1:]) * K + k[:, :-1]) * K + k[:, 1:]
    move_key, move_count = np.unique(key[both], return_counts=True)

    def digit(key: Ints, *below: int) -> Places:
        return (key // int(np.prod(below[1:], dtype=np.int64)) % below[0]).astype(np.int32)

    users = np.arange(U + 1)
    return Profiles(
        support_start,
        (support_key % R).astype(np.int32),
        np.searchsorted(visit_key // (T * K), users),
        digit(visit_key, T, K),
        digit(visit_key, K),
        visit_count.astype(np.int64),
        np.searchsorted(move_key // (T * T * K * K), users),
        digit(move_key, T, T, K, K),
        digit(move_key, T, K, K),
        digit(move_key, K, K),
        digit(move_key, K),
        move_count.astype(np.int64),
        R=R,
        T=T,
    )
