"""
The location graph w_G of SemanticClustering, and the roles that places have for people (E27).

**Order 0.** sigma matches the places of both users rank by rank (E20), a place inside a block of b tied counts carries
1/b at each of the b ranks of its block (E22), and s_uv = sum of min(x, y) over ranks is an integral of products of
indicators, min(x, y) = integral of 1[x >= l] 1[y >= l] dl. So the double sum over users factors into sums over single
users (docs/readings.md): for rank i in period tau and rank j in period tau', only

    right[r, x] = sum_u A_{tau,i}[u, r] 1[share of u at (tau', j) is x]        (left: the same times w_tau w_tau')

is needed, accumulated over levels. Equal fractions a/L are equal floats, so users of different lengths meet exactly.
For few users the matrix S of all s_uv is cheaper, however long their lists. Either way

    w_G = sum over (tau, i) of A_{tau,i}^T diag(w_tau) (S - I) A_{tau,i}.

**Pairs.** At order 1, and with one sigma for several periods, every pair is a search, and all pairs are looked at.

Beside the weights the graph tells who holds which place at which rank: by what halves of the people agree on, "auto"
finds kappa.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elsewhere.data.visits import Floats, Ints
from elsewhere.errors import InvalidParameter
from elsewhere.paper.profiles import MobilityProfile, Profiles
from elsewhere.paper.semantic_similarity import check_options, entropy_of, matches_of
from elsewhere.scale import map_over
from elsewhere.sorting import number_keys, number_parts

ROLE_RANKS = 12  # a role tells the first 11 ranks apart and counts all others as one


@dataclass(frozen=True, eq=False)
class RankedVisits:
    """Visits of all users by rank; an entry in a block of ties covers all ranks of the block."""

    user: Ints
    tau: Ints
    place: Ints
    share: Floats  # of the user's slots in the period
    rank: Ints  # position in the sorted order; ties in any order, their shares being equal
    size: Ints  # of the block of ties
    w: Floats  # (U, T)
    covering: Ints  # every (entry, rank) such that the entry covers the rank, with weight 1/size: the entry,
    covered: Ints  # and the rank


def rank_visits(profiles: Profiles, *, whole_day: bool = False) -> RankedVisits:
    """Return the visits of each user in each period, most visited place first; or in the whole day, as one period."""
    U, R, T = len(profiles), profiles.R, 1 if whole_day else profiles.T
    user = np.repeat(np.arange(U), np.diff(profiles.visit_start))
    place = profiles.support[profiles.support_start[user] + profiles.visit_k].astype(np.int64)
    tau, count = profiles.visit_tau.astype(np.int64), profiles.visit_count
    if whole_day:
        key, entry = number_keys(user * R + place)
        user, place, tau, count = key // R, key % R, np.zeros_like(key), np.bincount(entry, count)
    segment = user * T + tau
    lived = np.bincount(segment, count, U * T).reshape(U, T)
    order = np.lexsort((-count, segment))
    user, tau, count, place, segment = user[order], tau[order], count[order], place[order], segment[order]
    fresh = np.concatenate([[True], segment[1:] != segment[:-1]])
    rank = np.arange(len(order)) - np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
    opens = fresh | np.concatenate([[True], count[1:] != count[:-1]])
    block = np.cumsum(opens) - 1
    first, size = rank[opens][block], np.bincount(block)[block]
    covering, nth = number_parts(size)
    w = lived / lived.sum(axis=1, keepdims=True)
    return RankedVisits(user, tau, place, count / lived[user, tau], rank, size, w, covering, first[covering] + nth)


def group_by_rank(tau: Ints, rank: Ints) -> Iterator[tuple[int, int, Ints]]:
    """Yield the entries of each (tau, rank), smallest first."""
    width = int(rank.max()) + 1
    key = tau * width + rank
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0]))
    for entries in np.split(order, starts[1:]):
        yield int(key[entries[0]]) // width, int(key[entries[0]]) % width, entries


def held_ranks(profiles: Profiles) -> Any:
    """
    Return (U, R columns), sparse: the ranks that every place holds for every user, of the whole day and of each period.

    The sum over users, as (R, columns), counts for how many people each place is the i-th most visited: its roles.
    """
    clocks = [(1, True), (profiles.T, False)] if profiles.T > 1 else [(1, False)]
    width = ROLE_RANKS * sum(T for T, _ in clocks)
    held, before = csr_array((len(profiles), profiles.R * width)), 0
    for T, whole_day in clocks:
        visits = rank_visits(profiles, whole_day=whole_day)
        entry = visits.covering
        column = before + visits.tau[entry] * ROLE_RANKS + np.minimum(visits.covered, ROLE_RANKS - 1)
        at = visits.user[entry], visits.place[entry] * width + column
        held = held + csr_array((1 / visits.size[entry], at), shape=held.shape)
        before += T * ROLE_RANKS
    return held


DENSE_LIMIT = 10_000  # places with an edge; above, w alone would need more than 800 MB
FEW_USERS = 4_096  # all their similarities take 134 MB


@dataclass(frozen=True, eq=False)
class LocationGraph:
    """
    w_G: how often, and between how similar people, two places stand for each other.

    `w[r, r']` is the sum over ordered pairs of users u != v of s_uv times the weight with which sigma_u^v sends r to
    r', symmetrised (E18, E27); self-loops are 0. Codes nobody visits have no edge (`visited` is False).

    `roles[r]` counts the people for whom r is the i-th most visited place, of the whole day and of each period. These
    are the ranks that sigma matches: w_G without the weights s_uv is the product of the roles of the periods.
    """

    _profiles: Profiles = field(repr=False)
    _edges: Any = field(default=None, repr=False)  # (R, R) sparse, of the loop over pairs; None where w_G factors

    @property
    def R(self) -> int:
        """Return the number of places."""
        return self._profiles.R

    @property
    def n_users(self) -> int:
        """Return the number of users."""
        return len(self._profiles)

    def __repr__(self) -> str:
        return f"LocationGraph({int(self.visited.sum())} of {self.R} places visited, {self.n_users} users)"

    @cached_property
    def visitors(self) -> Ints:
        """Return (R,) how many users visit each place."""
        return np.bincount(self._profiles.support, minlength=self.R).astype(np.int64)

    @property
    def visited(self) -> NDArray[np.bool_]:
        """Tell (R,) whether any user visits the place."""
        return np.asarray(self.visitors > 0)

    @property
    def roles(self) -> Floats:
        """Return (R, columns) roles: ROLE_RANKS columns for the whole day and, of several periods, for each."""
        return self.roles_for(slice(None))

    def roles_for(self, users: Any) -> Floats:
        """Return the roles that places have for some of the users."""
        return np.asarray(self.held_ranks[users].sum(axis=0)).reshape(self.R, -1)

    @cached_property
    def held_ranks(self) -> Any:
        """Return the ranks that places hold for each user."""
        return held_ranks(self._profiles)

    @cached_property
    def w(self) -> Floats:
        """Return (R, R) symmetric weights, diagonal 0."""
        active = np.flatnonzero(self.visitors)
        w = np.zeros((self.R, self.R))
        w[np.ix_(active, active)] = self.w_visited
        w.setflags(write=False)
        return w

    @cached_property
    def w_visited(self) -> Floats:
        """Return the weights among visited places alone, in the order of `flatnonzero(visited)`."""
        active = np.flatnonzero(self.visitors)
        if len(active) > DENSE_LIMIT:
            raise InvalidParameter(
                f"all weights among {len(active)} visited places would need {len(active) ** 2 * 8 / 1e9:.1f} GB; "
                f"merge places (`cells`) to at most {DENSE_LIMIT}.",
                code="E_TOO_LARGE",
            )
        if self._edges is None:
            w = _sum_of_ranks(rank_visits(self._profiles), active)
        else:
            w = self._edges.tocsr()[active][:, active].toarray()
        w = (w + w.T) / 2
        np.fill_diagonal(w, 0)
        # what rounding leaves of an edge that the self-pairs cancel is no edge
        w[w < 1e-12 * max(1.0, w.max(initial=0.0))] = 0
        w.setflags(write=False)
        return w


def semantic_graph(
    profiles: Iterable[MobilityProfile],
    *,
    order: int = 0,
    mapping: str = "per-period",
    rng: np.random.Generator | None = None,
    executor: Executor | None = None,
) -> LocationGraph:
    """
    Return the location graph w_G of all ordered pairs of users (`SemanticClustering`, fig:alg; E27).

    Parameters
    ----------
    profiles
        One per user, as `fit_profiles` makes them.
    order
        0: visiting probabilities (eq:hs0), exact and linear in the number of users. 1: transitions too (eq:hs1), by a
        search for every pair: 2 ms each, so for some hundred users.
    mapping
        "per-period": one sigma per period, its edges weighted by the time u spends in it. "common": one sigma for all
        periods, which needs every pair when there are several (E19).
    rng
        For the search of order 1.
    executor
        Runs the pairs of order 1 and of "common", such as a `Cluster`; the result does not depend on it.

    Examples
    --------
    >>> import elsewhere as ew
    >>> people = ew.Traces([[0, 0, 0, 1, 1, 1, 2, 2], [3, 3, 3, 3, 4, 4, 5, 5]], ew.Locations(n=6))
    >>> float(ew.semantic_graph(ew.fit_profiles(people)).w[0, 3])
    0.4375

    """
    check_options(order, mapping, rng)
    columns = Profiles.of(profiles)
    edges = None
    if order == 1 or (mapping == "common" and columns.T > 1):
        # the paper's double loop over all ordered pairs of users
        work = partial(_edges_of, list(columns), order, mapping, entropy_of(rng))
        edges = sum(map_over(work, range(len(columns)), executor=executor), csr_array((columns.R, columns.R)))
    return LocationGraph(columns, edges)


def _sum_of_ranks(visits: RankedVisits, places: Ints) -> Floats:
    """
    Return the sum of A^T diag(w_tau) (S - I) A over every (tau, rank) among these places; not yet symmetric.

    u != v, and s_uu = 1. S is made where the users are few; else its levels are summed over users (E27).
    """
    U, number = len(visits.w), np.searchsorted(places, visits.place)
    out, S = np.zeros((len(places), len(places))), np.zeros((U, U) if U <= FEW_USERS else (0, 0))
    levels = []  # of each rank, for many users: its period, its distinct shares, and which is each user's, or -1
    for tau, _, entries in group_by_rank(visits.tau, visits.rank):
        users, share = visits.user[entries], visits.share[entries]
        if U <= FEW_USERS:
            S[np.ix_(users, users)] += visits.w[users, tau, None] * np.minimum.outer(share, share)
        else:
            shares, level = np.unique(share, return_inverse=True)
            levels.append((tau, np.diff(shares, prepend=0.0), np.full(U, -1, dtype=np.int32)))
            levels[-1][2][users] = level
    np.fill_diagonal(S, 0)

    for tau, _, covering in group_by_rank(visits.tau[visits.covering], visits.covered):
        entries = visits.covering[covering]
        users, row = np.unique(visits.user[entries], return_inverse=True)
        there, column = np.unique(number[entries], return_inverse=True)
        A = csr_array((1 / visits.size[entries], (row, column)), shape=(len(users), len(there)))
        w = visits.w[users, tau]
        if U <= FEW_USERS:
            block = np.asarray(np.asarray(A.T @ (w[:, None] * S[np.ix_(users, users)])) @ A)
        else:
            block = -(A.T.multiply(w) @ A).toarray()
            for other, width, level_of in levels:
                has = np.flatnonzero(level_of[users] >= 0)
                at = csr_array((np.ones(len(has)), (has, level_of[users[has]])), shape=(len(users), len(width)))
                # users whose share reaches a level: all those at it or above
                left = np.cumsum((A.T.multiply(w * visits.w[users, other]) @ at).toarray()[:, ::-1], axis=1)[:, ::-1]
                right = np.cumsum((A.T @ at).toarray()[:, ::-1], axis=1)[:, ::-1]
                block += (left * width) @ right.T
        out[np.ix_(there, there)] += block
    return out


def _edges_of(everyone: list[MobilityProfile], order: int, mapping: str, entropy: list[int], index: int) -> Any:
    """Return the edges of one user towards all others."""
    u = everyone[index]
    # one edge set per period (pair), weighted by the share of u's time (departures) in it; one for "common" (E19)
    shares = [1.0]
    if mapping == "per-period":
        shares = u.w.tolist() if order == 0 else [float(u.alpha(*pair).sum()) for pair in u.period_pairs()]
    edges = csr_array((u.R, u.R))
    for _, match in matches_of(everyone, order, mapping, entropy, index):
        for sigma, share in zip(match.sigma, shares, strict=True):
            r = np.flatnonzero(sigma >= 0)
            edges = edges + csr_array((np.full(len(r), match.sim * share), (u.support[r], sigma[r])), edges.shape)
    return edges
