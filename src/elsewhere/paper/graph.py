"""
The location graph w_G (`SemanticClustering` of fig:alg), at order 0 without a loop over pairs of users.

The double loop of the paper adds s_uv to the edge (r, sigma_u^v(r)) for every ordered pair of users. Here sigma matches
the places of both users rank by rank (E20), a place inside a block of b tied counts carries 1/b at each of the
b ranks of its block (E22), and s_uv = sum of min(x, y) over ranks is an integral of products of indicators,

    min(x, y) = integral of 1[x >= l] 1[y >= l] dl,

so the double sum over users factors into sums over single users (docs/readings.md). For rank i in period tau and
rank j in period tau', only the sums over users

    right[r, x] = sum_u A_{tau,i}[u, r] 1[share of u at (tau', j) is x]        (left: the same times w_tau w_tau')

are needed, accumulated over levels. Shares are floats a/L; equal fractions are equal floats, so users of different
lengths meet exactly. The sums hold no single user, and adding users is adding sums: `LocationGraph.update`.
Beside them the graph keeps who holds which place at which rank, of at most MOST_HELD users and in memory alone: the
number of classes is chosen by what halves of the people agree on.

Their number grows with the square of the number of ranks. For few users the matrix S of all s_uv is cheaper, however
long their lists: w_G = sum over (tau, i) of A^T diag(w_tau) (S - I) A.

At order 1, and with one sigma for several periods, every pair is a search, and of many users some pairs are drawn. In a
random order of the users, the pairs of all users with the one s places further on are one draw; m of the U - 1 shifts s
are drawn without replacement, so that every user is in 2 m pairs. (U - 1) / m times their sum is w_G on average
(Horvitz-Thompson), and the scatter of the m sums gives the standard error of every weight.

The ranks that sigma matches by are also the roles that places play for people (`held_ranks`).
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter, require_choice, require_whole
from elsewhere.paper.profiles import MobilityProfile, Profiles
from elsewhere.scale import iterate_over
from elsewhere.sorting import number_keys
from elsewhere.traces.model import Floats, Ints, Places

ROLE_RANKS = 12  # a role tells the first 11 ranks apart and counts all others as one


@dataclass(frozen=True, eq=False)
class RankedVisits:
    """Visits of all users by rank: entry e covers the ranks `first[e] .. first[e] + size[e] - 1` of its period."""

    user: Ints
    tau: Ints
    place: Ints
    share: Floats  # of the user's slots in the period
    rank: Ints  # position in the sorted order; ties in any order, their shares being equal
    first: Ints
    size: Ints
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
    covering = np.repeat(np.arange(len(size)), size)
    covered = first[covering] + np.arange(len(covering)) - np.repeat(np.cumsum(size) - size, size)
    w = lived / lived.sum(axis=1, keepdims=True)
    return RankedVisits(user, tau, place, count / lived[user, tau], rank, first, size, w, covering, covered)


def group_by_rank(tau: Ints, rank: Ints) -> Iterator[tuple[int, int, Ints]]:
    """Yield the entries of each (tau, rank), smallest first."""
    width = int(rank.max()) + 1
    key = tau * width + rank
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0]))
    for entries in np.split(order, starts[1:]):
        yield int(key[entries[0]]) // width, int(key[entries[0]]) % width, entries


class HeldRanks(NamedTuple):
    """Who holds which place at which rank: entry e says that `place[e]` is at `column[e]` of a role for `user[e]`."""

    user: Ints
    place: Ints
    column: Ints
    weight: Floats

    def of_users(self, chosen: NDArray[np.bool_]) -> "HeldRanks":
        """Return the entries of the users whose number is marked in `chosen`."""
        entries = chosen[self.user]
        return HeldRanks(self.user[entries], self.place[entries], self.column[entries], self.weight[entries])

    def table(self, R: int, width: int) -> Floats:
        """Return (R, width) sums over users: the roles of the places."""
        sums = np.bincount(self.place * width + self.column, self.weight, R * width)
        return np.asarray(sums, dtype=np.float64).reshape(R, width)


def held_ranks(profiles: Profiles) -> HeldRanks:
    """
    Return the ranks that every place holds for every user, of the whole day and of each period.

    Their sum over users (`HeldRanks.table`) counts for how many people each place is the i-th most visited: its roles.
    """
    clocks = [(1, True), (profiles.T, False)] if profiles.T > 1 else [(1, False)]
    parts, before = [], 0
    for T, whole_day in clocks:
        visits = rank_visits(profiles, whole_day=whole_day)
        entry = visits.covering
        column = before + visits.tau[entry] * ROLE_RANKS + np.minimum(visits.covered, ROLE_RANKS - 1)
        parts.append((visits.user[entry], visits.place[entry], column, 1 / visits.size[entry]))
        before += T * ROLE_RANKS
    return HeldRanks(*map(np.concatenate, zip(*parts, strict=True)))


DENSE_LIMIT = 10_000  # places with an edge; above, w alone would need more than 800 MB
MOST_IN_TABLE = 4_096  # with an edge, up to which w of few people is made for sums over it; it takes 134 MB
FEW_USERS = 4_096  # all their similarities take 134 MB
STACKED = 2_000_000  # sums that are looked at at once
PAIRS = 200_000  # ordered pairs of users that are all looked at; of more, about as many are drawn
PIECE = 256  # pairs in a piece of work
MOST_HELD = 5_000  # users whose own ranks are kept, so that halves of the people can be compared (E29)

Rank = tuple[int, int]  # (tau, i): the i-th most visited place of period tau


@dataclass(frozen=True, eq=False)
class _Sums:
    """For one pair of ranks: sums over users of the weight of `place` at one rank and `share` at the other."""

    place: Ints
    share: Floats
    left: Floats
    right: Floats

    def plus(self, other: "_Sums | None") -> "_Sums":
        if other is None:
            return self
        columns = [np.concatenate([getattr(self, c), getattr(other, c)]) for c in ("place", "share", "left", "right")]
        shares, level = np.unique(columns[1], return_inverse=True)
        return _sum_by_share(columns[0], shares, level, columns[2], columns[3])


@dataclass(frozen=True, eq=False)
class _Stacked:
    """Several `_Sums` in columns: entry e is of `place[e]` at `level[e]`; the levels of a pair rise side by side."""

    place: Ints
    level: Ints
    left: Floats
    right: Floats
    width: Floats  # of each level: what it is above the one before
    last: Ints  # of each level, the last of its pair

    @staticmethod
    def of(parts: list[_Sums]) -> "_Stacked":
        distinct = [np.unique(part.share, return_inverse=True) for part in parts]
        first = np.cumsum([0, *(len(levels) for levels, _ in distinct)])
        return _Stacked(
            np.concatenate([part.place for part in parts]),
            np.concatenate([level + start for (_, level), start in zip(distinct, first, strict=False)]),
            np.concatenate([part.left for part in parts]),
            np.concatenate([part.right for part in parts]),
            np.concatenate([np.diff(levels, prepend=0.0) for levels, _ in distinct]),
            np.repeat(first[1:] - 1, np.diff(first)),
        )

    def add_to(self, out: Floats, of_place: Ints) -> None:
        """Add left diag(level widths) right^T of every pair to `out`, places numbered by `of_place`."""
        kappa, levels = len(out), len(self.width)
        cell = of_place[self.place] * levels + self.level

        def reaching(values: Floats) -> Floats:
            table = np.bincount(cell, values, kappa * levels).reshape(kappa, levels)
            # users whose share reaches a level: all those at it or above, of the same pair
            up_to = np.cumsum(table, axis=1)
            return np.asarray(up_to[:, self.last] - up_to + table)

        out += (reaching(self.left) * self.width) @ reaching(self.right).T


def _sum_by_share(place: Ints, shares: Floats, level: Ints | Places, left: Floats, right: Floats) -> _Sums:
    """Return the sums by place and share; the share of an entry is `shares[level]`, and `shares` rise."""
    cell, cells = place * len(shares) + level, (int(place.max()) + 1) * len(shares)
    if cells > len(cell):  # else sums in all cells take less than to sort the entries
        key, cell = number_keys(cell)
        there = np.arange(len(key))
    else:
        key = there = np.flatnonzero(np.bincount(cell))
    return _Sums(
        key // len(shares),
        shares[key % len(shares)],
        np.asarray(np.bincount(cell, left)[there], dtype=np.float64),
        np.asarray(np.bincount(cell, right)[there], dtype=np.float64),
    )


@dataclass(frozen=True, eq=False)
class LocationGraph:
    """
    w_G: how often, and between how similar people, two places stand for each other.

    `w[r, r']` is the sum over ordered pairs of users u != v of s_uv times the weight with which sigma_u^v sends r to
    r', symmetrised (E18, E27); self-loops are 0. Places nobody visits have no edge (`visited` is False).

    `roles[r]` counts the people for whom r is the i-th most visited place, of the whole day and of each period. These
    are the ranks that sigma matches: w_G without the weights s_uv is the product of the roles of the periods.
    """

    R: int
    T: int
    order: int
    mapping: str
    n_users: int
    visitors: Ints = field(repr=False)
    roles: Floats = field(repr=False)
    held_ranks: HeldRanks = field(repr=False)  # the ranks of at most MOST_HELD users, drawn from all
    _sums: dict[tuple[Rank, Rank], _Sums] = field(repr=False)
    _edges: NDArray[Any] | None = field(repr=False)  # what is not in _sums: self-pairs to subtract, or the pair loop
    _profiles: Profiles | None = field(repr=False)  # kept only where pairs of users are looked at
    asked: int | str = "auto"  # how many pairs of users were asked for
    shifts: int = 0  # that were drawn; 0 where no pair was left out
    _squares: NDArray[Any] | None = field(default=None, repr=False)  # sums over shifts of squared weights, r < r_next

    def __repr__(self) -> str:
        return f"LocationGraph({int(self.visited.sum())} of {self.R} places visited, {self.n_users} users)"

    @property
    def visited(self) -> NDArray[np.bool_]:
        """Tell (R,) whether any user visits the place."""
        return np.asarray(self.visitors > 0)

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
                'classes by `method="roles"` and `between` need none of it. For `method="kmeans"` merge places '
                f"(`cells`, `m_min`) to at most {DENSE_LIMIT}.",
                code="E_TOO_LARGE",
            )
        index = np.full(self.R, -1)
        index[active] = np.arange(len(active))
        w = np.zeros((len(active), len(active)))
        if self._profiles is not None and self._edges is None:
            _add_similarities(w, rank_visits(self._profiles), index)
        for sums in self._sums.values():
            _add_product(w, sums, index)
        if self._edges is not None:
            pairs = (index[self._edges["r"]], index[self._edges["r_next"]])
            np.add.at(w, pairs, self._edges["weight"])
        w = (w + w.T) / 2
        np.fill_diagonal(w, 0)
        # what rounding leaves of an edge that the self-pairs cancel is no edge
        w[w < 1e-12 * max(1.0, w.max(initial=0.0))] = 0
        w.setflags(write=False)
        return w

    def between(self, label: Ints, places: Ints | None = None) -> Floats:
        """
        Return the sums of the weights between classes (kappa, kappa); `label` numbers the class of each visited place.

        Labels are of these `places`, None: of all visited ones in the order of their numbers. The same as sums over
        `w_visited`, which is made of few people on a map of few places alone.
        """
        kappa = int(label.max()) + 1
        of_place, visited = np.full(self.R, -1), np.flatnonzero(self.visitors)
        of_place[visited if places is None else places] = label
        label = of_place[visited]
        few = self._profiles if self._edges is None else None  # people, whose similarities make w
        if few is not None and len(label) <= MOST_IN_TABLE:
            order, size = np.argsort(label, kind="stable"), np.bincount(label, minlength=kappa)
            rows = np.add.reduceat(self.w_visited[np.ix_(order, order)], np.cumsum(size) - size, axis=0)
            out = np.add.reduceat(rows, np.cumsum(size) - size, axis=1)
            return np.asarray((out + out.T) / 2)
        out = np.zeros((kappa, kappa))
        if few is not None:
            _add_similarities(out, rank_visits(few), of_place)
        for stacked in self._stacked:
            stacked.add_to(out, of_place)
        if self._edges is not None:
            np.add.at(out, (of_place[self._edges["r"]], of_place[self._edges["r_next"]]), self._edges["weight"])
        loops = np.bincount(label, self._self_loops[visited], kappa)
        out -= np.diag(loops)
        return np.asarray((out + out.T) / 2)

    @cached_property
    def _stacked(self) -> list["_Stacked"]:
        """Return the sums of all pairs of ranks, some pairs at a time."""
        parts: list[list[_Sums]] = [[]]
        for sums in self._sums.values():
            parts[-1].append(sums)
            if sum(len(part.place) for part in parts[-1]) > STACKED:
                parts.append([])
        return [_Stacked.of(part) for part in parts if part]

    @cached_property
    def _self_loops(self) -> Floats:
        """Return (R,) what the sums and similarities have on the diagonal of w, which is 0."""
        out = np.zeros(self.R)
        if self._profiles is not None and self._edges is None:
            _add_similarities(out, rank_visits(self._profiles), np.arange(self.R))
        for sums in self._sums.values():
            _add_product(out, sums, np.arange(self.R))
        if self._edges is not None:
            own = self._edges["r"] == self._edges["r_next"]
            np.add.at(out, self._edges["r"][own], self._edges["weight"][own])
        return out

    @property
    def pairs(self) -> int:
        """Return the number of ordered pairs of users whose edges were added up."""
        return self.n_users * (self.shifts or self.n_users - 1)

    @cached_property
    def _errors(self) -> tuple[NDArray[Any], Floats]:
        """Return the weights, r < r_next, and the standard error of each."""
        if self._edges is None or self._squares is None:
            return np.empty(0, dtype=EDGE), np.empty(0)
        weights, m, all_shifts = _symmetric_edges(self._edges), self.shifts, self.n_users - 1
        mean = weights["weight"] / all_shifts  # over shifts
        scatter = np.maximum(0.0, self._squares["weight"] - m * mean**2) / (m - 1)
        return weights, all_shifts * np.sqrt((1 - m / all_shifts) * scatter / m)

    @cached_property
    def error(self) -> Floats:
        """Return (R, R) standard errors of `w`; 0 where no pair of users was left out."""
        out = np.zeros((self.R, self.R))
        weights, error = self._errors
        out[weights["r"], weights["r_next"]] = out[weights["r_next"], weights["r"]] = error
        out.setflags(write=False)
        return out

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what should be known about the weights."""
        if not self.shifts:
            return ()
        weights, error = self._errors
        off = float(np.sqrt((error**2).sum() / max(1e-300, (weights["weight"] ** 2).sum())))
        return (
            f"the location graph was added up over {self.pairs:,} of {self.n_users * (self.n_users - 1):,} ordered "
            f"pairs of users, each user in {2 * self.shifts}; its weights are off by about {off:.1%} (root mean "
            "square, relative to the weights)",
        )

    def update(
        self,
        profiles: Iterable[MobilityProfile],
        *,
        rng: np.random.Generator | None = None,
        executor: Executor | None = None,
    ) -> "LocationGraph":
        """
        Return the graph of the users so far and of these, equal to the graph of all at once (sec:alg-disc).

        At order 0 with per-period mapping only the new users are looked at; otherwise only the pairs they are part of,
        and where pairs are drawn, pairs of all users drawn anew.
        """
        new = Profiles.of(profiles)
        if (new.R, new.T) != (self.R, self.T):
            raise InvalidParameter(
                f"`profiles` must have R = {self.R} places and T = {self.T} periods, got R = {new.R}, T = {new.T}.",
                code="E_MISMATCH",
            )
        if self._profiles is None:
            graph = _order_zero(new, few=0)
        else:
            everyone = Profiles.of([*self._profiles, *new])
            if self._edges is None:
                return replace(_order_zero(everyone, few=FEW_USERS), mapping=self.mapping)
            first = 0 if self.shifts or _number_of_shifts(self.asked, len(everyone)) else self.n_users
            graph = _pair_loop(everyone, first, self.order, self.mapping, self.asked, rng, executor)
            if first == 0:
                return graph  # drawn anew: sums over some pairs of fewer users are no part of it
        sums = {**self._sums, **{key: s.plus(self._sums.get(key)) for key, s in graph._sums.items()}}
        edges = [e for e in (self._edges, graph._edges) if e is not None]
        ranks, n_users = held_ranks(new), self.n_users + len(new)
        later = ranks._replace(user=ranks.user + self.n_users)
        columns: Any = zip(self.held_ranks, later, strict=True)
        everybody = HeldRanks(*map(np.concatenate, columns))
        return replace(
            graph,
            n_users=n_users,
            visitors=self.visitors + np.bincount(new.support, minlength=self.R),
            roles=self.roles + ranks.table(*self.roles.shape),
            held_ranks=everybody if n_users <= MOST_HELD else _draw_users(everybody, n_users),
            _sums=sums,
            _edges=_sum_edges(np.concatenate(edges)) if edges else None,
        )


def semantic_graph(
    profiles: Iterable[MobilityProfile],
    *,
    order: int = 0,
    mapping: str = "per-period",
    pairs: int | str = "auto",
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
        search for every pair in `pairs`.
    mapping
        "per-period": one sigma per period, its edges weighted by the time u spends in it. "common": one sigma for all
        periods, which needs every pair when there are several (E19).
    pairs
        How many ordered pairs of users are looked at where each takes a search: "all"; a number, at least twice that of
        the users, of which whole rounds are made; "auto": all up to 200,000, else about as many. Fewer than all are
        drawn, with each user in equally many: weights are right on average, `error` has their standard errors and
        `notes` says it.
    rng
        For the search of order 1, and for the pairs that are drawn.
    executor
        Runs the pairs of order 1 and of "common", such as a `Cluster`; the result does not depend on it.

    Examples
    --------
    >>> import elsewhere as ew
    >>> people = ew.Traces([[0, 0, 0, 1, 1, 1, 2, 2], [3, 3, 3, 3, 4, 4, 5, 5]], ew.Locations(n=6))
    >>> float(ew.semantic_graph(ew.fit_profiles(people)).w[0, 3])
    0.4375

    """
    require_whole("order", order, 0, 1)
    require_choice("mapping", mapping, ("per-period", "common"))
    columns = Profiles.of(profiles)
    if pairs != "auto":
        _number_of_shifts(pairs, len(columns))  # refuses what is no number of pairs
    if order == 0 and (mapping == "per-period" or columns.T == 1):
        return replace(_order_zero(columns, few=FEW_USERS), mapping=mapping, asked=pairs)
    return _pair_loop(columns, 0, order, mapping, pairs, rng, executor)


def _draw_users(ranks: HeldRanks, n_users: int) -> HeldRanks:
    """
    Draw the ranks of MOST_HELD single users of all `n_users`.

    Each number of a user has a fixed place in the draw, so users added later and users given at once are drawn alike.
    """
    number = np.random.default_rng(0).random(n_users)
    return ranks.of_users(number <= np.partition(number, MOST_HELD - 1)[MOST_HELD - 1])


EDGE = np.dtype([("r", np.int32), ("r_next", np.int32), ("weight", np.float64)])


def _edges_of(r: NDArray[Any], r_next: NDArray[Any], weight: NDArray[Any]) -> NDArray[Any]:
    edges = np.empty(len(r), dtype=EDGE)
    edges["r"], edges["r_next"], edges["weight"] = r, r_next, weight
    return edges


def _sum_edges(edges: NDArray[Any]) -> NDArray[Any]:
    R = int(edges["r_next"].max(initial=0)) + 1
    key, entry = np.unique(edges["r"].astype(np.int64) * R + edges["r_next"], return_inverse=True)
    return _edges_of(key // R, key % R, np.bincount(entry, edges["weight"], len(key)))


def _order_zero(profiles: Profiles, *, few: int) -> LocationGraph:
    """Build the graph by sums over users; or, of at most `few` users, by their similarities when `w` is asked for."""
    visits = rank_visits(profiles) if len(profiles) > few else None
    ranks = held_ranks(profiles)
    return LocationGraph(
        R=profiles.R, T=profiles.T, order=0, mapping="per-period", n_users=len(profiles),
        visitors=np.bincount(profiles.support, minlength=profiles.R).astype(np.int64),
        # columns of a role: ROLE_RANKS for the whole day and, if there are several, for each period
        roles=ranks.table(profiles.R, ROLE_RANKS * (1 + profiles.T if profiles.T > 1 else 1)),
        held_ranks=ranks if len(profiles) <= MOST_HELD else _draw_users(ranks, len(profiles)),
        _sums={} if visits is None else _sums_by_rank(visits),
        _edges=None if visits is None else _self_pairs(visits), _profiles=profiles if visits is None else None,
    )  # fmt: skip


def _sums_by_rank(visits: RankedVisits) -> dict[tuple[Rank, Rank], _Sums]:
    at_rank: dict[Rank, tuple[Floats, Places]] = {}  # the shares at this rank, and which is each user's, or -1
    for tau, rank, entries in group_by_rank(visits.tau, visits.rank):
        shares, level = np.unique(visits.share[entries], return_inverse=True)
        at_rank[tau, rank] = shares, np.full(len(visits.w), -1, dtype=np.int32)
        at_rank[tau, rank][1][visits.user[entries]] = level

    times = np.ascontiguousarray(visits.w.T)
    sums: dict[tuple[Rank, Rank], _Sums] = {}
    for tau, rank, covering in group_by_rank(visits.tau[visits.covering], visits.covered):
        entries = visits.covering[covering]
        entries = entries[np.argsort(visits.place[entries], kind="stable")]  # so that sums find them nearly sorted
        users, places, weight = visits.user[entries], visits.place[entries], 1 / visits.size[entries]
        for (tau_other, rank_other), (shares, level_of) in at_rank.items():
            has = np.flatnonzero(level_of[users] >= 0)
            if not len(has):
                continue
            own_time = times[tau][users[has]] * times[tau_other][users[has]]
            sums[(tau, rank), (tau_other, rank_other)] = _sum_by_share(
                places[has], shares, level_of[users[has]], weight[has] * own_time, weight[has]
            )
    return sums


def _add_similarities(w: Floats, visits: RankedVisits, index: Ints) -> None:
    """Add A^T diag(w_tau) (S - I) A of every (tau, rank) to `w`, places numbered by `index`; or its diagonal."""
    from scipy.sparse import csr_array

    U = len(visits.w)
    S = np.zeros((U, U))
    for tau, _, entries in group_by_rank(visits.tau, visits.rank):
        users, share = visits.user[entries], visits.share[entries]
        S[np.ix_(users, users)] += visits.w[users, tau, None] * np.minimum.outer(share, share)
    np.fill_diagonal(S, 0)  # u != v; s_uu = 1

    for tau, _, covering in group_by_rank(visits.tau[visits.covering], visits.covered):
        entries = visits.covering[covering]
        users, row = np.unique(visits.user[entries], return_inverse=True)
        places, column = np.unique(index[visits.place[entries]], return_inverse=True)
        A = csr_array((1 / visits.size[entries], (row, column)), shape=(len(users), len(places)))
        block = np.asarray(A.T @ (visits.w[users, tau, None] * S[np.ix_(users, users)]))
        if w.ndim == 1:
            w[places] += np.bincount(column, block[column, row] / visits.size[entries])
        else:
            w[np.ix_(places, places)] += np.asarray(block @ A)


def _self_pairs(visits: RankedVisits) -> NDArray[Any]:
    """
    Return what a pair (u, u) would add between tied places, negated: w_tau(u) s_uu / b for each pair of a block of b.

    s_uu = 1; the pairs (r, r) fall on the diagonal, which is dropped.
    """
    entry = np.flatnonzero(visits.size > 1)
    if len(entry) == 0:
        return _edges_of(entry, entry, entry)
    size = visits.size[entry]
    # entries of a block are adjacent: position of the block's first entry, then every pair inside it
    opening = entry - (visits.rank[entry] - visits.first[entry])
    r = np.repeat(entry, size)
    step = np.arange(len(r)) - np.repeat(np.cumsum(size) - size, size)
    other = np.repeat(opening, size) + step
    weight = -visits.w[visits.user[r], visits.tau[r]] / visits.size[r]
    return _sum_edges(_edges_of(visits.place[r], visits.place[other], weight))


def _add_product(w: Floats, sums: _Sums, index: Ints) -> None:
    """Add left diag(level widths) right^T of one pair of ranks to `w`, places numbered by `index`; or its diagonal."""
    rows, row = np.unique(index[sums.place], return_inverse=True)
    levels, level = np.unique(sums.share, return_inverse=True)
    shape = (len(rows), len(levels))

    def reaching(values: Floats) -> Floats:
        table = np.bincount(row * shape[1] + level, values, shape[0] * shape[1]).reshape(shape)
        # users whose share reaches level l: all those at l or above
        return np.asarray(np.cumsum(table[:, ::-1], axis=1)[:, ::-1])

    width = np.diff(levels, prepend=0.0)
    if w.ndim == 1:
        w[rows] += (reaching(sums.left) * width * reaching(sums.right)).sum(axis=1)
    else:
        w[np.ix_(rows, rows)] += (reaching(sums.left) * width) @ reaching(sums.right).T


def _number_of_shifts(pairs: int | str, U: int) -> int:
    """Return how many shifts of U users are drawn; 0: none, all pairs are looked at."""
    everything = U * (U - 1)
    if isinstance(pairs, str):
        require_choice("pairs", pairs, ("auto", "all"))
        n_pairs = everything if pairs == "all" or everything <= PAIRS else PAIRS
    else:
        n_pairs = require_whole("pairs", pairs, min(2 * U, everything))
    shifts = max(2, -(-n_pairs // max(1, U)))
    return shifts if shifts < U - 1 else 0


def _pair_loop(
    profiles: Profiles,
    first_new: int,
    order: int,
    mapping: str,
    pairs: int | str,
    rng: np.random.Generator | None,
    executor: Executor | None,
) -> LocationGraph:
    """Run the paper's double loop over all, or some, ordered pairs with at least one user from `first_new` on."""
    U = len(profiles)
    entropy = None if rng is None else int(rng.integers(2**63))
    n_shifts, place, shifts = _number_of_shifts(pairs, U), np.arange(U), np.arange(1, U)
    if n_shifts:
        place, shifts = _draw_shifts(U, n_shifts, rng if rng is not None else np.random.default_rng(0))
    work = _Matching(profiles, order, mapping, first_new, place, entropy)
    pieces = [(int(s), range(i, min(i + PIECE, U))) for s in shifts for i in range(0, U, PIECE)]
    parts = iterate_over(work, pieces, executor=executor)
    edges, squares = np.empty(0, dtype=EDGE), np.empty(0, dtype=EDGE)
    for _ in shifts:
        one = _sum_edges(np.concatenate([next(parts) for _ in range(0, U, PIECE)]))
        edges = _sum_edges(np.concatenate([edges, one]))
        if n_shifts:
            one = _symmetric_edges(one)
            one["weight"] **= 2
            squares = _sum_edges(np.concatenate([squares, one]))
    if n_shifts:
        edges["weight"] *= (U - 1) / n_shifts
    return replace(
        _order_zero(profiles, few=U), order=order, mapping=mapping, _edges=edges, asked=pairs, shifts=n_shifts,
        _squares=squares if n_shifts else None,
    )  # fmt: skip


def _draw_shifts(U: int, n_shifts: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw a random order of U users, and so many of the shifts 1 .. U-1."""
    return rng.permutation(U), np.sort(rng.permutation(U - 1)[:n_shifts] + 1)


def _symmetric_edges(edges: NDArray[Any]) -> NDArray[Any]:
    """Return the symmetric weights of these edges, r < r_next, sorted."""
    low, high = np.minimum(edges["r"], edges["r_next"]), np.maximum(edges["r"], edges["r_next"])
    return _sum_edges(_edges_of(low, high, edges["weight"] / 2)[low < high])


@dataclass(frozen=True)
class _Matching:
    """The edges of some users, each towards the one who stands `shift` places further on in the order `place`."""

    profiles: Profiles = field(repr=False)
    order: int
    mapping: str
    first_new: int
    place: Ints = field(repr=False)
    entropy: int | None = field(repr=False)

    def __call__(self, piece: tuple[int, range]) -> NDArray[Any]:
        from elsewhere.paper.semantic_similarity import semantic_similarity

        shift, some = piece
        edges = [np.empty(0, dtype=EDGE)]
        for i in some:
            index, other = int(self.place[i]), int(self.place[(i + shift) % len(self.place)])
            if max(index, other) < self.first_new:
                continue
            stream = None
            if self.entropy is not None:
                # a stream per pair: the result depends on neither order nor executor, nor on which others are drawn
                stream = np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(index, other)))
            u = self.profiles[index]
            match = semantic_similarity(u, self.profiles[other], order=self.order, mapping=self.mapping, rng=stream)
            for sigma, share in zip(match.sigma, self._weights(u), strict=True):
                matched = sigma >= 0
                weight = np.full(int(matched.sum()), match.sim * share)
                edges.append(_edges_of(u.support[matched], sigma[matched], weight))
        return _sum_edges(np.concatenate(edges))

    def _weights(self, u: MobilityProfile) -> list[float]:
        # one edge set per period (pair), weighted by the share of u's time (departures) in it; one for "common" (E19)
        if self.mapping == "common":
            return [1.0]
        if self.order == 0:
            return [float(w) for w in u.w]
        return [float(u.alpha(*pair).sum()) for pair in u.period_pairs()]
