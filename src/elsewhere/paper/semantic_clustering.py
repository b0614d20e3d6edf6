"""
SemanticClustering(R, S, kappa)                                                           (fig:alg)
    Initiate  weighted graph G with locations R as vertices
    Forall    u, v in S, u != v:
        Set       s_u^v, sigma_u^v <- SemanticSimilarity(u, v)
        Forall    locations r, r' in R such that r' = sigma_u^v(r):
            Set       edge weight w_G(r, r') <- w_G(r, r') + s_u^v
    Set       C <- K-Means(G, kappa)
    Return    C

`semantic_clustering(profiles)` is the box, pair by pair. `semantic_clustering(semantic_graph(profiles), ...)` is the
same without the loop over pairs, and has more to choose from.

**The graph at order 0.** sigma matches the places of both users rank by rank (E20), a place inside a block of b tied
counts carries 1/b at each of the b ranks of its block (E22), and s_uv = sum of min(x, y) over ranks is an integral of
products of indicators, min(x, y) = integral of 1[x >= l] 1[y >= l] dl. So the double sum over users factors into sums
over single users (docs/readings.md): for rank i in period tau and rank j in period tau', only

    right[r, x] = sum_u A_{tau,i}[u, r] 1[share of u at (tau', j) is x]        (left: the same times w_tau w_tau')

is needed, accumulated over levels. Equal fractions a/L are equal floats, so users of different lengths meet exactly;
adding users is adding sums (`LocationGraph.update`). For few users the matrix S of all s_uv is cheaper, however long
their lists: w_G = sum over (tau, i) of A^T diag(w_tau) (S - I) A. Beside them the graph keeps who holds which place at
which rank, of at most MOST_HELD users and in memory alone: by what halves of the people agree on, "auto" finds kappa.

**Pairs.** At order 1, and with one sigma for several periods, every pair is a search, and all pairs are looked at.

**Classes** (E28-E30): k-means on one row per place, scaled to length 1 so that a place counts by what it is, not by
how often it is visited (E27). The row is the place's row of w_G (the paper's) or its roles: which rank it holds for how
many people, the ranks that sigma matches by. Roles are counts; their square roots make the cosine of two places the
overlap of what they are to people (the Bhattacharyya coefficient).
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.data.visits import Codes, Floats, Ints
from elsewhere.errors import InvalidParameter, InvalidTraces, require_between, require_choice, require_whole
from elsewhere.paper.profiles import MobilityProfile, Profiles
from elsewhere.paper.semantic_similarity import rank_places, semantic_similarity
from elsewhere.scale import iterate_over, one_thread
from elsewhere.sorting import number_keys

METHODS = ("roles", "kmeans")
STARTS = 10  # n_init of k-means (E28)
PAPERS = 20  # classes of the paper
# the number of classes that "auto" finds (E29, docs/decisions.md)
LEAST = 4  # classes, where the places allow it
TO_A_CLASS = 5  # places
ENOUGH = 0.9  # share of the largest score with which the smaller number is as good
HALVINGS = 10  # of the people, on a map of at most 1,000 places; at least 3 on larger ones
PLACES_LOOKED_AT = 10_000  # in all halvings together; of a larger map a third of it in each, drawn from its places
TEACHING = 5_000  # places, drawn from more, that k-means learns its centres from; all others join the nearest
FALLING = 3  # numbers in a row without ENOUGH of the largest score, after which no larger one is tried
ABOVE_CHANCE = 2.0  # standard deviations over the halvings


def semantic_clustering(
    graph: "Iterable[MobilityProfile] | LocationGraph",
    *,
    kappa: int | str = "auto",
    method: str = "roles",
    c_min: int = 1,
    blur: float = 0.0,
    rng: np.random.Generator,
) -> "SemanticClasses":
    """
    Return the semantic classes of the places (SemanticClustering).

    The classes depend neither on the numbers of the places nor on the order of the users, but for places between which
    the graph sees no difference at all.

    Parameters
    ----------
    graph
        Profiles S: the box of the figure, pair by pair, k-means on the rows of w_G. Or the graph that `semantic_graph`
        makes of them, the same weights without a loop over pairs; finer periods than those of the model make better
        classes.
    kappa
        Number of classes asked of the clustering, 2 or more. "auto", of roles: as many as two halves of the people
        agree on, see `number_of_classes`, and at least 4; of rows of w_G: the paper's 20. Never more than one class to
        five places (E29: the paper's own rule is reversed, and the right way round it grows down to single places).
    method
        "roles": which rank the place holds for how many people, in the day and in each period. "kmeans": its row of
        w_G, as the paper has it (E28); the only one for which the order and mapping of the graph matter, and the one of
        profiles.
    c_min
        Classes with fewer members are merged, smallest first, into the class with the largest mean edge weight (E30).
    blur
        Hours by which the times of roles are blurred: 1 for sparse records such as check-ins, where who comes at 12:50
        and who comes at 13:10 should count as alike; 0 for whole days, whose hours are told apart (E91).
    rng
        Starts k-means.

    Examples
    --------
    >>> import numpy as np
    >>> import elsewhere as ew
    >>> days = [[0] * 6 + [1] * 3, [2] * 6 + [3] * 3, [4] * 6 + [5] * 3]
    >>> graph = ew.semantic_graph(ew.fit_profiles(ew.Traces(days, ew.Locations(n=7))))
    >>> ew.semantic_clustering(graph, kappa=2, rng=np.random.default_rng(1)).label.tolist()
    [1, 0, 1, 0, 1, 0, -1]

    """
    if isinstance(graph, LocationGraph):
        return classes_of_graph(graph, kappa, method, c_min, rng, require_between("blur", blur, 0, 24))
    S = Profiles.of(graph)
    w_G = np.zeros((S.R, S.R))
    for u, v in permutations(S, 2):
        s, sigma = semantic_similarity(u, v), shared_mapping(u, v)
        for r, r_next, share in sigma:
            w_G[r, r_next] += s.sim * share
    return classes_of_graph(LocationGraph.of_weights(w_G, S), kappa, "kmeans", c_min, rng)


def shared_mapping(u: MobilityProfile, v: MobilityProfile) -> Iterator[tuple[int, int, float]]:
    """
    Yield all r, r' = sigma_u^v(r), places of both, with the share of the pair: w_tau(u) in period tau (E19).

    A place in a block of b tied counts is at each of the b ranks of the block with 1/b (E22). No self-loops (E90).
    """
    for w, a, b in zip(u.w, u.visits, v.visits, strict=True):
        for here, there in zip(_tied_ranks(a, u.support), _tied_ranks(b, v.support), strict=False):
            yield from ((r, x, w / (len(here) * len(there))) for r in here for x in there if r != x)


def _tied_ranks(count: NDArray[Any], support: Codes) -> Iterator[list[int]]:
    """Yield for each rank, most visited first, the places with the count of that rank."""
    for k in rank_places(count)[: np.count_nonzero(count)]:
        yield support[count == count[k]].tolist()


@dataclass(frozen=True, eq=False)
class SemanticClasses:
    """
    A partition of the places into `kappa` classes.

    Parameters
    ----------
    label
        (R,) class of each place, -1 where nothing is known: nobody visits it. Numbers that no place has are closed up.
    nearness
        (kappa, kappa) mean edge weight between the places of two classes; None if there is no graph.

    Examples
    --------
    >>> import elsewhere as ew
    >>> ew.SemanticClasses([0, 1, 1, -1]).members(1).tolist()
    [1, 2]

    """

    label: Ints
    nearness: Floats | None = field(repr=False)
    kappa: int = field(init=False)

    def __init__(self, label: ArrayLike, nearness: ArrayLike | None = None) -> None:
        try:
            array = np.asarray(label)
        except ValueError:
            array = np.empty(())
        whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and np.array_equal(array, np.floor(array)))
        if array.ndim != 1 or array.size == 0 or not whole:
            raise InvalidTraces("`label` must be a vector of whole numbers, one class per place.", code="E_SHAPE")
        if array.min() < -1 or array.max() < 0:
            raise InvalidTraces("`label` must be -1 or a class number from 0, with at least one class.", code="E_INDEX")
        numbers = np.unique(array[array >= 0])
        labels = np.where(array >= 0, np.searchsorted(numbers, array), -1).astype(np.int64)
        labels.setflags(write=False)
        kappa, near = len(numbers), None
        if nearness is not None:
            try:
                near = np.array(nearness, dtype=np.float64)
            except (TypeError, ValueError):
                near = np.empty(0)
            if near.shape != (kappa, kappa) or not np.all(np.isfinite(near)):
                raise InvalidTraces(f"`nearness` must be finite numbers of shape ({kappa}, {kappa}).", code="E_SHAPE")
            near.setflags(write=False)
        object.__setattr__(self, "label", labels)
        object.__setattr__(self, "nearness", near)
        object.__setattr__(self, "kappa", kappa)

    def __repr__(self) -> str:
        return f"SemanticClasses({self.kappa} classes of {int((self.label >= 0).sum())} places)"

    @property
    def sizes(self) -> Ints:
        """Return (kappa,) the number of places in each class."""
        return np.bincount(self.label[self.label >= 0], minlength=self.kappa).astype(np.int64)

    def members(self, i: int) -> Ints:
        """Return the places of class i."""
        return np.flatnonzero(self.label == require_whole("i", i, 0, self.kappa - 1))


def labels_of(classes: Any, R: int) -> Ints:
    """Return the class of each of R places, from `SemanticClasses` or a plain array; what does not fit is refused."""
    label = np.asarray(getattr(classes, "label", classes))
    if label.shape != (R,) or label.dtype.kind not in "iu" or label.min() < -1:
        raise InvalidParameter(
            f"`classes` must label the {R} places, whole numbers, -1 where unknown, got shape {label.shape}.",
            code="E_MISMATCH",
        )
    return label.astype(np.int64)


def require_kappa(kappa: int | str, most: int | None = None) -> None:
    """Refuse what is neither "auto" nor a whole number of classes from 2 to `most`."""
    if not isinstance(kappa, str):
        require_whole("kappa", kappa, 2, most)
    elif kappa != "auto":
        raise InvalidParameter(f'`kappa` must be a whole number or "auto", got {kappa!r}.')


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
FEW_USERS = 4_096  # all their similarities take 134 MB
STACKED = 2_000_000  # sums that are looked at at once
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
        """Add left diag(level widths) right^T of every pair to `out` by the number `of_place`, or its diagonal."""
        rows, row = np.unique(of_place[self.place], return_inverse=True)
        shape = len(rows), len(self.width)

        def reaching(values: Floats) -> Floats:
            table = np.bincount(row * shape[1] + self.level, values, shape[0] * shape[1]).reshape(shape)
            # users whose share reaches a level: all those at it or above, of the same pair
            up_to = np.cumsum(table, axis=1)
            return np.asarray(up_to[:, self.last] - up_to + table)

        left, right = reaching(self.left) * self.width, reaching(self.right)
        if out.ndim == 1:
            out[rows] += (left * right).sum(axis=1)
        else:
            out[np.ix_(rows, rows)] += left @ right.T


def _sum_by_share(place: Ints, shares: Floats, level: Ints | Codes, left: Floats, right: Floats) -> _Sums:
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
    r', symmetrised (E18, E27); self-loops are 0. Codes nobody visits have no edge (`visited` is False).

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

    @staticmethod
    def of_weights(w: Floats, profiles: Profiles) -> "LocationGraph":
        """Return the graph of these weights (R, R), which are added up over the pairs of these users."""
        r, r_next = np.nonzero(w)
        return replace(_order_zero(profiles, few=len(profiles)), _edges=_edges_of(r, r_next, w[r, r_next]))

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
        w = self._sum_by(active, np.arange(len(active)), np.zeros((len(active), len(active))))
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
        `w_visited`, which is not made.
        """
        kappa = int(label.max()) + 1
        of_place, visited = np.full(self.R, -1), np.flatnonzero(self.visitors)
        of_place[visited if places is None else places] = label
        label = of_place[visited]
        out = self._sum_by(visited, label, np.zeros((kappa, kappa)))
        out -= np.diag(np.bincount(label, self._self_loops[visited], kappa))
        return np.asarray((out + out.T) / 2)

    @cached_property
    def _self_loops(self) -> Floats:
        """Return (R,) what the sums and similarities have on the diagonal of w, which is 0."""
        return self._sum_by(np.arange(self.R), np.arange(self.R), np.zeros(self.R))

    def _sum_by(self, places: Ints, number: Ints, out: Floats) -> Floats:
        """
        Add up all edges among `places` by the `number` of either end into `out`; if that is a vector, only self-loops.

        The one way in which w_G is summed: between places, between classes, on its diagonal; not yet symmetric.
        """
        of_place = np.full(self.R, -1)
        of_place[places] = number
        if self._profiles is not None and self._edges is None:
            _add_similarities(out, rank_visits(self._profiles), of_place)
        for stacked in self._stacked(len(out)):
            stacked.add_to(out, of_place)
        if self._edges is not None:
            r, r_next, weight = of_place[self._edges["r"]], of_place[self._edges["r_next"]], self._edges["weight"]
            if out.ndim == 1:
                np.add.at(out, r[r == r_next], weight[r == r_next])
            else:
                np.add.at(out, (r, r_next), weight)
        return out

    def _stacked(self, rows: int) -> Iterator["_Stacked"]:
        """Yield the sums of all pairs of ranks, so many pairs at a time that a table of `rows` stays small."""
        parts: list[_Sums] = []
        size = 0
        for sums in self._sums.values():
            size += len(sums.place) + min(rows, len(sums.place)) * len(np.unique(sums.share))
            parts.append(sums)
            if size > STACKED:
                yield _Stacked.of(parts)
                parts, size = [], 0
        if parts:
            yield _Stacked.of(parts)

    def update(
        self,
        profiles: Iterable[MobilityProfile],
        *,
        rng: np.random.Generator | None = None,
        executor: Executor | None = None,
    ) -> "LocationGraph":
        """
        Return the graph of the users so far and of these, equal to the graph of all at once (sec:alg-disc).

        At order 0 with per-period mapping only the new users are looked at; otherwise only the pairs they are part of.
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
            graph = _pair_loop(everyone, self.n_users, self.order, self.mapping, rng, executor)
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
    require_whole("order", order, 0, 1)
    require_choice("mapping", mapping, ("per-period", "common"))
    columns = Profiles.of(profiles)
    if order == 0 and (mapping == "per-period" or columns.T == 1):
        return replace(_order_zero(columns, few=FEW_USERS), mapping=mapping)
    return _pair_loop(columns, 0, order, mapping, rng, executor)


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
    at_rank: dict[Rank, tuple[Floats, Codes]] = {}  # the shares at this rank, and which is each user's, or -1
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


def _pair_loop(
    profiles: Profiles,
    first_new: int,
    order: int,
    mapping: str,
    rng: np.random.Generator | None,
    executor: Executor | None,
) -> LocationGraph:
    """Run the paper's double loop over all ordered pairs with at least one user from `first_new` on."""
    work = _Matching(profiles, order, mapping, first_new, None if rng is None else int(rng.integers(2**63)))
    edges = np.empty(0, dtype=EDGE)
    for one in iterate_over(work, range(len(profiles)), executor=executor):
        edges = _sum_edges(np.concatenate([edges, one]))
    return replace(_order_zero(profiles, few=len(profiles)), order=order, mapping=mapping, _edges=edges)


@dataclass(frozen=True)
class _Matching:
    """The edges of one user towards all others."""

    profiles: Profiles = field(repr=False)
    order: int
    mapping: str
    first_new: int
    entropy: int | None = field(repr=False)

    def __call__(self, index: int) -> NDArray[Any]:
        u, edges = self.profiles[index], [np.empty(0, dtype=EDGE)]
        for other in range(len(self.profiles)):
            if other == index or max(index, other) < self.first_new:
                continue
            stream = None
            if self.entropy is not None:
                # a stream per pair: the result depends on neither order nor executor
                stream = np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(index, other)))
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


def classes_of_graph(
    graph: LocationGraph, kappa: int | str, method: str, c_min: int, rng: np.random.Generator, blur: float = 0.0
) -> SemanticClasses:
    """Cluster the location graph: K-Means(G, kappa), or k-means on the roles of the places."""
    if not isinstance(rng, np.random.Generator):
        raise InvalidParameter(f"`rng` must be a `numpy.random.Generator`, got {type(rng).__name__}.")
    require_choice("method", method, METHODS)
    places = np.flatnonzero(graph.visitors)
    if len(places) < 2:
        raise InvalidTraces(
            f"{len(places)} place is left to classify, and at least 2 are needed: all people are there, or too few of "
            "those who are learnt from visit the other places (`m_min`). Give more people, or fewer and larger places.",
            code="E_TOO_FEW_PLACES",
        )
    require_whole("c_min", c_min, 1)
    require_kappa(kappa, len(places))

    # places in an order that does not come from their numbers, so that k-means starts alike on renamed places (F6);
    # rounded, since sums over users in another order differ in their last digits
    roles = np.round(graph.roles[places], 9)
    if method == "roles":
        order = np.lexsort(roles.T[::-1])
        rows = _scale_rows(_role_rows(roles[order], graph.T, blur))
    else:
        w = graph.w_visited
        order = np.lexsort([np.round(w.sum(axis=1) / max(w.max(), 1e-300), 9), *roles.T[::-1]])
        rows = _scale_rows(np.round(w[np.ix_(order, order)] / max(w.max(), 1e-300), 12))

    edges = partial(graph.between, places=places[order])
    entropy = int(rng.integers(2**31))
    if isinstance(kappa, str):
        clusters = _cluster_auto(graph, rows, edges, c_min, entropy, method)
    else:
        clusters = _cluster(rows, kappa, entropy, edges, c_min)
        if (left := int(clusters.max()) + 1) < kappa:
            why = f"`c_min` = {c_min} and " if c_min > 1 else ""
            warnings.warn(
                f"{left} classes instead of `kappa` = {kappa}: {why}places that cannot be told apart leave no more.",
                stacklevel=3,
            )
    label = np.full(graph.R, -1)
    label[places[order]] = clusters
    # the mean edge weight between the places of two classes, and between different places of one
    size = np.bincount(clusters)
    pairs = np.outer(size, size) - np.diag(size)
    return SemanticClasses(label, edges(clusters) / np.maximum(pairs, 1))


Edges = Callable[[Ints], Floats]  # label -> sums of the weights between two classes


def _cluster(rows: Floats, kappa: int, entropy: int, edges: Edges, c_min: int) -> Ints:
    """Return the class of each row by k-means++, small classes merged (E30), numbered by first appearance."""
    with one_thread():
        label = _number_by_appearance(_fit_k_means(rows, kappa, entropy, STARTS).predict(rows))
    return label if np.bincount(label).min() >= c_min else _merge_small(label, edges(label), c_min)


def _fit_k_means(rows: Floats, kappa: int, entropy: int, starts: int) -> Any:
    """Fit k-means from so many `starts` to all rows, or to TEACHING of them, drawn by `entropy`."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    if len(rows) > TEACHING:
        rows = rows[np.sort(np.random.default_rng(entropy).permutation(len(rows))[:TEACHING])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than classes
        return KMeans(kappa, n_init=starts, random_state=entropy).fit(rows)


def _number_by_appearance(label: Ints) -> Ints:
    """Return the same classes, numbered 0, 1, ... in the order in which they first appear."""
    _, first, label = np.unique(label, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[label]


def _merge_small(label: Ints, between: Floats, c_min: int) -> Ints:
    """
    Merge classes below `c_min`, smallest first, into the class with the largest mean edge weight (E30).

    `between` (kappa, kappa) are the sums of the weights between two classes.
    """
    size = np.bincount(label)
    while len(size) > 1 and size.min() < c_min:
        small = int(np.argmin(size))
        mean = between[small] / size
        mean[small] = -1.0
        into = int(np.argmax(mean))
        between[into] += between[small]
        between[:, into] += between[:, small]
        size[into] += size[small]
        between = np.delete(np.delete(between, small, axis=0), small, axis=1)
        size = np.delete(size, small)
        label = np.where(label == small, into, label)
        label = label - (label > small)
    return _number_by_appearance(label)


def _cluster_auto(graph: LocationGraph, rows: Floats, edges: Edges, c_min: int, entropy: int, method: str) -> Ints:
    """Return the partition into as many classes as "auto" finds (E29), after small classes are merged (E30)."""
    n = len(rows)
    if n < c_min:
        raise InvalidParameter(
            f"{n} places are visited by enough of the people who are learnt from (`m_min`), and at least {c_min} are "
            f"needed for one class of places (`c_min` = {c_min}). Give more people, or fewer, larger places; a lower "
            "`c_min` or `m_min` is less privacy.",
            code="E_TOO_FEW_PLACES",
        )
    most = most_classes(n, c_min)
    distinct = len(np.unique(np.round(rows, 9), axis=0))
    if min(most, distinct) == 1:
        return np.zeros(n, dtype=np.int64)  # whoever makes fakes by one class says so
    if method == "kmeans":
        return _cluster(rows, min(PAPERS, most), entropy, edges, c_min)
    rng = np.random.default_rng(entropy)
    kappa = number_of_classes(graph, draw_halves(graph, rng), most, entropy)
    best = np.zeros(n, dtype=np.int64)
    for more in (m for m in numbers_to_try(most) if m >= kappa):
        labels = _cluster(rows, more, entropy, edges, c_min)
        best = max(best, labels, key=lambda label: int(label.max()))
        if best.max() + 1 >= min(LEAST, most, distinct) or more >= distinct:
            break
    return best


def most_classes(places: int, c_min: int) -> int:
    """Return the largest number of classes that "auto" finds among so many visited places: 12: 2, 100: 20."""
    return max(places // max(c_min, TO_A_CLASS), min(2, places // c_min))


def numbers_to_try(most: int) -> list[int]:
    """Return the numbers of classes that are tried: every one up to 10, then steps of a fifth: 12, 14, 17, 20 ..."""
    steps = [2]
    while steps[-1] <= most:
        steps.append(steps[-1] + (round(steps[-1] / 5) if steps[-1] >= 10 else 1))
    return steps[:-1]


def draw_halves(graph: LocationGraph, rng: np.random.Generator) -> list[NDArray[np.bool_]]:
    """Draw some halves of the users whose ranks the graph keeps, drawn at random: fewer where there are many places."""
    users = np.unique(graph.held_ranks.user)
    times = int(np.clip(PLACES_LOOKED_AT // max(int(graph.visited.sum()), 1), 3, HALVINGS))
    halves = np.zeros((times, graph.n_users), dtype=bool)
    for half in halves:
        half[rng.permutation(users)[: len(users) // 2]] = True
    return list(halves)


def number_of_classes(graph: LocationGraph, halves: Sequence[NDArray[np.bool_]], most: int, entropy: int) -> int:
    """
    Return the smallest number of classes of which two halves of the people know nearly as much together as of any
    other.

    Classes are learnt from one half of the people. Every place that both halves visit is then put into one of them by
    what it is to the one half, and again by what it is to the other. The score is their mutual information minus what
    it would be by chance, averaged over all `halves` (each marks the users of one half) and over who is which. The
    smallest number with 90 % of the largest score is taken, at most `most` and never fewer than 4; where no score
    stands out from chance, 4. `entropy` starts k-means.
    """
    views = [view for half in halves for view in _views(graph, half, entropy)]
    most = min(most, PLACES_LOOKED_AT // 3 // TO_A_CLASS)  # of the places looked at, as of all places
    scores: dict[int, float] = {}
    sure = False
    for kappa in numbers_to_try(most):
        with one_thread():
            information = np.array([view.information(kappa, entropy) for view in views]).reshape(-1, 2).mean(axis=1)
        # rounded: sums over users in another order differ in their last digits
        scores[kappa] = round(float(information.mean()), 9)
        if scores[kappa] >= max(scores.values()):
            sure = information.mean() > ABOVE_CHANCE * information.std()
        # it rises, stays and falls: on a large map the largest numbers cost most
        if len(scores) > LEAST and max(list(scores.values())[-FALLING:]) < ENOUGH * max(scores.values()):
            break
    enough = [kappa for kappa, score in scores.items() if score >= ENOUGH * max(scores.values())]
    return min(most, max(LEAST, enough[0] if sure else 0))


@dataclass(frozen=True, eq=False)
class _View:
    """The places one half of the people visits, and, by either half, those that both visit; rows of length 1."""

    rows: Floats
    own: Floats
    others: Floats

    def information(self, kappa: int, entropy: int) -> float:
        """Return what the classes of places by this half and by the other tell of each other."""
        if len(self.own) == 0:
            return 0.0
        labels = _fit_k_means(self.rows, min(kappa, len(self.rows)), entropy, 1)
        return excess_information(labels.predict(self.own), labels.predict(self.others))


def _views(graph: LocationGraph, half: NDArray[np.bool_], entropy: int = 0) -> list[_View]:
    """Return both views of one halving; of a large map some of its places, drawn by `entropy`."""
    tables = [np.sqrt(np.round(graph.held_ranks.of_users(side).table(*graph.roles.shape), 9)) for side in (half, ~half)]
    views = []
    for own, other in (tables, tables[::-1]):
        places = np.flatnonzero(own.any(axis=1))
        places = places[np.lexsort(own[places].T[::-1])]  # in an order that does not come from their numbers (F6)
        if len(places) > PLACES_LOOKED_AT // 3:
            places = places[np.sort(np.random.default_rng(entropy).permutation(len(places))[: PLACES_LOOKED_AT // 3])]
        both = places[other[places].any(axis=1)]
        views.append(_View(_scale_rows(own[places]), _scale_rows(own[both]), _scale_rows(other[both])))
    return views


def _role_rows(roles: Floats, T: int, blur: float) -> Floats:
    """Return the square roots of roles (R, ranks of the day and of each of T periods), periods blurred (E91)."""
    if T == 1 or blur == 0:
        return np.sqrt(roles)
    day, by_period = roles[:, :ROLE_RANKS], roles[:, ROLE_RANKS:].reshape(len(roles), T, ROLE_RANKS)
    apart = np.minimum(np.arange(T), T - np.arange(T)) * 24 / T  # hours between a period and the first
    kernel = np.exp(-0.5 * (apart / blur) ** 2)
    around = (kernel / kernel.sum())[(np.arange(T)[:, None] - np.arange(T)) % T]
    blurred = np.einsum("st,rtk->rsk", around, by_period).reshape(len(roles), T * ROLE_RANKS)
    return np.sqrt(np.round(np.hstack([day, blurred]), 12))


def _scale_rows(table: Floats) -> Floats:
    """Return the rows, each scaled to length 1; rows of 0 stay 0."""
    return np.asarray(table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-300))


def excess_information(one: Ints, other: Ints) -> float:
    """
    Return the mutual information of two labellings minus its mean over all orders of one of them, in nats.

    Examples
    --------
    >>> import numpy as np
    >>> round(excess_information(np.array([0, 0, 1, 1]), np.array([5, 5, 7, 7])), 4)  # log 2 - log 2 / 3
    0.4621

    """
    from scipy.sparse import csr_matrix
    from sklearn.metrics.cluster import expected_mutual_information, mutual_info_score

    rows, columns = (np.unique(label, return_inverse=True)[1] for label in (one, other))
    table = csr_matrix((np.ones(len(rows), dtype=np.int64), (rows, columns)))
    information = mutual_info_score(None, None, contingency=table)
    return float(information - expected_mutual_information(table, len(rows)))
