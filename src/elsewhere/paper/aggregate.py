"""
The aggregate mobility model <p_bar, pi_bar> of many users: sparse sums plus a distance kernel (sec:sampling).

    p_bar_r^{r'} = ( sum_u p_r^{r'}(u) + epsilon max(1, d(r, r'))^-2 ) / z_r

The sum runs over the users that have left r at all (E3), so it is a mean over the visitors of r, not weighted by
visits (E35). d is in kilometres, or in cell widths without coordinates (E34). With several periods there is one
p_bar per (tau, tau'), and a row with few departures is the pooled row instead (E37).

Sums are kept where somebody moved, the kernel is evaluated for the places asked about: no (R, R) array is ever
built unless `table` is called.

What is added up over users are visits and the rows of p(u). No sum belongs to one user.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.data.visits import Floats, Ints, Locations
from elsewhere.errors import InvalidParameter, InvalidTraces, require_between, require_whole
from elsewhere.paper.profiles import MobilityProfile, Profiles
from elsewhere.sorting import number_keys

LARGEST_ANSWER = 2**27  # numbers, 1 GiB: the most that one call returns


@dataclass(frozen=True, eq=False)
class AggregateModel:
    """
    <p_bar, pi_bar>: how the contributors move and where they are, together; made by `aggregate`.

    Arrays are sums over users: visiting probabilities `pi` (R,) and, by period, `pi_tau` (T, R), of the users who
    have `lived` in it; distinct `visitors` of each place. Move m, coded `key[m]` = (pair R + r) R + r', carries
    `mass[m]` = sum over users of p_r^{r'}(u), and `count[m]` departures. The pair is
    tau T + tau'; number T^2 stands for the moves of all pairs pooled. With T = 1 the only pair is the pool.

    `feasible` is None, or (R, R), sparse: 1 where a move is possible.
    """

    R: int
    T: int
    n_users: int
    visitors: Ints
    pi: Floats
    pi_tau: Floats
    lived: Ints
    key: Ints
    mass: Floats
    count: Floats
    locations: Locations
    epsilon: float
    n_min: int
    feasible: Any

    def __post_init__(self) -> None:
        for array in (self.visitors, self.pi, self.pi_tau, self.lived, self.key, self.mass, self.count):
            array.setflags(write=False)

    def __repr__(self) -> str:
        return f"AggregateModel({self.n_users} users, {self.R} places, {self.T} periods, epsilon {self.epsilon:g})"

    @cached_property
    def pi_bar(self) -> Floats:
        """
        Return the mean over users of the visiting probability of each place, (R,); not the steady state of
        p_bar (E32).
        """
        pi_bar = self.pi / self.n_users
        pi_bar.setflags(write=False)
        return pi_bar

    def first(self, tau: int = 0) -> Floats:
        """
        Return the law of the first slot of a trace that begins in tau, (R,).

        The mean of Pr{r | tau} over the users that have slots in tau; `pi_bar` if nobody has.
        """
        require_whole("tau", tau, 0, self.T - 1)
        if self.lived[tau] == 0:
            return self.pi_bar
        law = np.asarray(self.pi_tau[tau] / self.lived[tau])
        law.setflags(write=False)
        return law

    def rows(self, r: ArrayLike, tau: int = 0, tau_next: int = 0) -> Floats:
        """
        Return rows of p_bar from the places `r`: (R,) for one place, (len(r), R) for several.

        A row sums to 1, but for a place that `feasible` lets nobody leave: there it is 0 everywhere.
        """
        dense = self.block(r, np.arange(self.R), tau, tau_next)
        return dense[0] if np.ndim(r) == 0 else dense

    def block(self, r: ArrayLike, r_next: ArrayLike, tau: int = 0, tau_next: int = 0) -> Floats:
        """Return p_bar from every place of `r` to every place of `r_next`, (len(r), len(r_next)), repeats allowed."""
        here, there = self._check_places("r", r), self._check_places("r_next", r_next)
        if len(here) * len(there) > LARGEST_ANSWER:
            raise InvalidParameter(
                f"`r` and `r_next` must span at most {LARGEST_ANSWER} moves at a time, got {len(here)} x {len(there)}.",
                code="E_TOO_LARGE",
            )
        row, a, b = self._row_weights(here, tau, tau_next)
        out = np.empty((len(here), len(there)))
        for some in _pieces(len(here), len(there)):
            kernel = self._kernel(here[some], there)
            out[some] = self._moves[row[some]][:, there].toarray() * a[some, None] + kernel * b[some, None]
        return out

    def table(self, tau: int = 0, tau_next: int = 0) -> Floats:
        """Return all of p_bar, (R, R)."""
        return self.rows(np.arange(self.R), tau, tau_next)

    def loglik(self, r: ArrayLike, tau: ArrayLike | None = None) -> Floats:
        """
        Return ln Pr{trace} under the model, (N,); -inf where it is 0.

        Traces `r` (N, L) are without gaps; `tau` (L,) is the period of each slot, all in the first if it is left out.
        """
        traces = np.asarray(r)
        N, L = traces.shape
        steps = self._check_places("r", traces.ravel()).reshape(N, L)
        when = np.zeros(L, dtype=np.int64) if tau is None else np.asarray(tau)
        start = self.first(int(when[0])) if self.T > 1 else self.pi_bar
        places, at = np.unique(steps, return_inverse=True)
        at = at.reshape(N, L)
        with np.errstate(divide="ignore"):
            out = np.log(start[steps[:, 0]])
            for now, then in sorted(set(zip(when[:-1].tolist(), when[1:].tolist(), strict=True))):
                columns = np.flatnonzero((when[:-1] == now) & (when[1:] == then))
                p = self.block(places, places, now, then)
                out += np.log(p[at[:, columns], at[:, columns + 1]]).sum(axis=1)
        return np.asarray(out, dtype=np.float64)

    @cached_property
    def _moves(self) -> Any:
        """Return the mass of the moves, (pairs R, R), sparse; with `feasible`, the others have none."""
        from scipy.sparse import csr_array, vstack

        pairs = self.T**2 + (self.T > 1)
        moves = csr_array((self.mass, (self.key // self.R, self.key % self.R)), shape=(pairs * self.R, self.R))
        return moves if self.feasible is None else csr_array(moves.multiply(vstack([self.feasible] * pairs)))

    @cached_property
    def _departures(self) -> Floats:
        return np.bincount(self.key // self.R, self.count, self._moves.shape[0]).astype(np.float64)

    @cached_property
    def _nearness(self) -> Floats:
        """Return (R,) the sum of the distance kernel over each place, NaN until somebody asks for it."""
        return np.full(self.R, np.nan)

    def _kernel(self, r: Ints, r_next: Ints) -> Floats:
        """Return max(1, d(r, r'))^-2, d in kilometres (E34), 0 where a move is not feasible (E36)."""
        near = 1 / np.maximum(1.0, self.locations.distance(r[:, None], r_next)) ** 2
        return np.asarray(near if self.feasible is None else near * self.feasible[r][:, r_next].toarray())

    def _row_weights(self, r: Ints, tau: int, tau_next: int) -> tuple[Ints, Floats, Floats]:
        """Return for each place of `r` its row in the sums, and the factors of sums and kernel, 1/z and epsilon/z."""
        top, R = self.T - 1, self.R
        own = (require_whole("tau", tau, 0, top) * self.T + require_whole("tau_next", tau_next, 0, top)) * R + r
        pooled = (0 if self.T == 1 else self.T**2) * R + r
        # posterior means are not whole numbers (E4): a rounding error must not decide
        row = np.where(self._departures[own] >= self.n_min * (1 - 1e-9), own, pooled)
        unknown = np.unique(r[np.isnan(self._nearness[r])])
        for some in _pieces(len(unknown), R):
            self._nearness[unknown[some]] = self._kernel(unknown[some], np.arange(R)).sum(axis=1)
        kernel, mass = self._nearness[r], np.asarray(self._moves[row].sum(axis=1))
        z = mass + self.epsilon * kernel
        # without visitors epsilon cancels and the kernel is left; without feasible moves nothing is
        alone = np.divide(1.0, kernel, out=np.zeros(len(r)), where=kernel > 0)
        a = np.divide(1.0, z, out=np.zeros(len(r)), where=mass > 0)
        return row, a, np.where(mass > 0, self.epsilon * a, alone)

    def _check_places(self, name: str, r: ArrayLike) -> Ints:
        """Return the places asked about as a vector; what is none is refused."""
        places = np.atleast_1d(np.asarray(r))
        if places.ndim != 1 or (places.dtype.kind not in "iu" and places.size > 0):
            raise InvalidParameter(f"`{name}` must be a place or a vector of places, whole numbers.", code="E_SHAPE")
        if places.size > 0 and (places.min() < 0 or places.max() >= self.R):
            raise InvalidParameter(f"`{name}` must hold places in 0 .. {self.R - 1}, without gaps.", code="E_INDEX")
        return places.astype(np.int64)


def _pieces(n: int, width: int) -> list[slice]:
    """Return slices of n rows of this width, each of four million numbers at most."""
    step = max(1, 2**22 // max(width, 1))
    return [slice(first, first + step) for first in range(0, n, step)]


def aggregate(
    profiles: Iterable[MobilityProfile],
    locations: Locations,
    *,
    epsilon: float = 0.01,
    feasible: Any = None,
    n_min: int = 5,
) -> AggregateModel:
    """
    Return the aggregate mobility model <p_bar, pi_bar> of these users.

    Parameters
    ----------
    profiles
        One per user, as `fit_profiles` makes them.
    locations
        The places the profiles speak of.
    epsilon
        Weight of the distance kernel against one visitor (E34). 0 leaves moves that nobody made impossible; a place
        that nobody left keeps the kernel as its row.
    feasible
        (R, R) matrix of 0 and 1, dense or scipy sparse: 0 forbids the move from row to column (E36).
    n_min
        Departures below which a row of one pair of periods is the pooled row (E37).

    Examples
    --------
    >>> import elsewhere as ew
    >>> traces = ew.Traces([[0, 0, 1, 0]], ew.Locations(xy=[[0, 0], [0, 1], [0, 2]]))
    >>> model = ew.aggregate(ew.fit_profiles(traces), traces.locations, epsilon=1)
    >>> model.rows(0).round(4).tolist()
    [0.4615, 0.4615, 0.0769]
    >>> model.pi_bar.tolist()
    [0.75, 0.25, 0.0]

    """
    if not isinstance(locations, Locations):
        raise InvalidParameter(f"`locations` must be a `Locations`, got {type(locations).__name__}.")
    require_between("epsilon", epsilon, 0, np.inf, open_high=True)
    require_whole("n_min", n_min, 1)
    columns = Profiles.of(profiles)
    if len(locations) != columns.R:
        raise InvalidTraces(
            f"profiles must speak of the given places: they have R = {columns.R}, `locations` {len(locations)}.",
            code="E_MISMATCH",
        )
    return AggregateModel(
        columns.R,
        columns.T,
        len(columns),
        **_sum_over_users(columns),
        locations=locations,
        epsilon=float(epsilon),
        n_min=int(n_min),
        feasible=None if feasible is None else feasible_moves(feasible, columns.R),
    )


def _sum_over_users(u: Profiles) -> dict[str, NDArray[Any]]:
    """Return the sums of a model over all users, by name (see `AggregateModel`)."""
    U, R, T = len(u), u.R, u.T
    # visits: sums of Pr{r} and Pr{r | tau}
    entry = np.repeat(u.support_start[:-1], np.diff(u.visit_start)) + u.visit_k  # position of the place in `u.support`
    who = np.repeat(np.arange(U), np.diff(u.visit_start))
    place, period = u.support[entry].astype(np.int64), u.visit_tau.astype(np.int64)
    lived = np.bincount(who * T + period, u.visit_count, U * T).reshape(U, T)
    visited = np.zeros(len(u.support), dtype=bool)
    visited[entry[u.visit_count > 0]] = True

    # moves that happened: p of each, pooled over the pairs of periods
    happened = u.move_count > 0
    number, first = u.move_count[happened].astype(np.float64), np.repeat(u.support_start[:-1], np.diff(u.move_start))
    leaving, arriving = (first + u.move_origin)[happened], (first + u.move_target)[happened]  # in `u.support`
    key = u.support[leaving].astype(np.int64) * R + u.support[arriving]
    p = number / np.bincount(leaving, number, len(u.support))[leaving]
    if T > 1:
        # then each pair of periods by itself, before the pool
        pair = (u.move_tau.astype(np.int64) * T + u.move_tau_next)[happened]
        _, row = number_keys(leaving * (T * T) + pair)
        key = np.concatenate([pair * (R * R) + key, T * T * R * R + key])
        p = np.concatenate([number / np.bincount(row, number)[row], p])
        number = np.tile(number, 2)

    keys, entry = number_keys(key)  # the same move of several users
    mass, count = (np.bincount(entry, column) for column in (p, number))
    return {
        "key": keys,
        "mass": mass.astype(np.float64),  # sums of nothing are whole numbers
        "count": count.astype(np.float64),
        "visitors": np.bincount(u.support[visited], minlength=R),
        "pi": np.bincount(place, u.visit_count / lived.sum(axis=1)[who], R),
        "pi_tau": np.bincount(period * R + place, u.visit_count / lived[who, period], T * R).reshape(T, R),
        "lived": np.count_nonzero(lived, axis=0),
    }


def feasible_moves(feasible: Any, R: int) -> Any:
    """Return a feasibility matrix as a sparse one of its 1s (B51)."""
    from scipy import sparse

    try:
        matrix: Any = feasible if sparse.issparse(feasible) else np.atleast_2d(feasible)
        by_rows = sparse.csr_array(matrix, copy=True)
    except (TypeError, ValueError):
        raise InvalidParameter("`feasible` must be a table of numbers, rows of one length.", code="E_SHAPE") from None
    if by_rows.shape != (R, R):
        raise InvalidParameter(f"`feasible` must have shape {(R, R)}, got {by_rows.shape}.", code="E_SHAPE")
    if not np.all(np.isin(by_rows.data, (0, 1))):
        raise InvalidParameter("`feasible` must hold 0 and 1 only.")
    dead_ends = int(np.count_nonzero(by_rows.sum(axis=1) == 0))
    if dead_ends:
        warnings.warn(f"{dead_ends} of {R} rows of `feasible` are 0: nobody can leave these places.", stacklevel=3)
    return by_rows.astype(np.float64)
