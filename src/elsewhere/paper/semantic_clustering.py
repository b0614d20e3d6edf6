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

The graph is in semantic_graph.py.

**Classes** (E28-E30): k-means on one row per place, scaled to length 1 so that a place counts by what it is, not by
how often it is visited (E27). The row is the place's row of w_G (the paper's) or its roles: which rank it holds for how
many people, the ranks that sigma matches by. Roles are counts; their square roots make the cosine of two places the
overlap of what they are to people (the Bhattacharyya coefficient).
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from elsewhere.data.visits import Codes, Floats, Ints
from elsewhere.errors import (
    InvalidParameter,
    InvalidTraces,
    require_choice,
    require_rng,
    require_whole,
)
from elsewhere.paper.profiles import MobilityProfile, Profiles
from elsewhere.paper.semantic_graph import LocationGraph
from elsewhere.paper.semantic_similarity import rank_places, semantic_similarity
from elsewhere.scale import one_thread

STARTS = 10  # n_init of k-means (E28)
PAPERS = 20  # classes of the paper
# the number of classes that "auto" finds (E29, docs/decisions.md)
LEAST = 4  # classes, where the places allow it
TO_A_CLASS = 5  # places
ENOUGH = 0.9  # share of the largest score with which the smaller number is as good
HALVINGS = 10  # of the people
FALLING = 3  # numbers in a row without ENOUGH of the largest score, after which no larger one is tried
ABOVE_CHANCE = 2.0  # standard deviations over the halvings


def semantic_clustering(
    graph: Iterable[MobilityProfile] | LocationGraph,
    *,
    kappa: int | str = "auto",
    method: str = "roles",
    c_min: int = 1,
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
        return classes_of_graph(graph, kappa, method, c_min, rng)
    S = Profiles.of(graph)
    w_G = np.zeros((S.R, S.R))
    for u, v in permutations(S, 2):
        s, sigma = semantic_similarity(u, v), shared_mapping(u, v)
        for r, r_next, share in sigma:
            w_G[r, r_next] += s.sim * share
    return classes_of_graph(LocationGraph(S, _edges=csr_array(w_G)), kappa, "kmeans", c_min, rng)


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
        near = None if nearness is None else np.array(nearness, dtype=np.float64)
        if near is not None:
            near.setflags(write=False)
        object.__setattr__(self, "label", labels)
        object.__setattr__(self, "nearness", near)
        object.__setattr__(self, "kappa", len(numbers))

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


def classes_of_graph(
    graph: LocationGraph, kappa: int | str, method: str, c_min: int, rng: np.random.Generator
) -> SemanticClasses:
    """Cluster the location graph: K-Means(G, kappa), or k-means on the roles of the places."""
    require_rng(rng)
    require_choice("method", method, ("roles", "kmeans"))
    places = np.flatnonzero(graph.visitors)
    if len(places) < 2:
        raise InvalidTraces(
            f"{len(places)} place is visited, and at least 2 are needed to tell classes apart. Give more people, or "
            "smaller places.",
            code="E_TOO_FEW_PLACES",
        )
    require_whole("c_min", c_min, 1)
    if kappa != "auto":
        require_whole("kappa", kappa, 2, len(places))  # type: ignore[arg-type]  # which says so

    # places in an order that does not come from their numbers, so that k-means starts alike on renamed places (F6);
    # rounded, since sums over users in another order differ in their last digits
    roles = np.round(graph.roles[places], 9)
    if method == "roles":
        order = np.lexsort(roles.T[::-1])
        rows = _scale_rows(np.sqrt(roles[order]))
    else:
        w = graph.w_visited
        order = np.lexsort([np.round(w.sum(axis=1) / max(w.max(), 1e-300), 9), *roles.T[::-1]])
        rows = _scale_rows(np.round(w[np.ix_(order, order)] / max(w.max(), 1e-300), 12))

    def edges(label: Ints) -> Floats:
        """Return the sums of the weights between classes."""
        member = csr_array((np.ones(len(label)), (label, order)))
        sums = np.asarray(member @ graph.w_visited @ member.T)
        return np.asarray((sums + sums.T) / 2)

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
    """Fit k-means from so many `starts`."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

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
            f"{n} places are visited, and at least {c_min} are needed for one class of places (`c_min` = {c_min}). "
            "Give more people, or a lower `c_min`, which is less privacy.",
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
    """Draw some halves of the users at random."""
    halves = np.zeros((HALVINGS, graph.n_users), dtype=bool)
    for half in halves:
        half[rng.permutation(graph.n_users)[: graph.n_users // 2]] = True
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
    views = [view for half in halves for view in _views(graph, half)]
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


def _views(graph: LocationGraph, half: NDArray[np.bool_]) -> list[_View]:
    """Return both views of one halving."""
    tables = [np.sqrt(np.round(graph.roles_for(side), 9)) for side in (half, ~half)]
    views = []
    for own, other in (tables, tables[::-1]):
        places = np.flatnonzero(own.any(axis=1))
        places = places[np.lexsort(own[places].T[::-1])]  # in an order that does not come from their numbers (F6)
        both = places[other[places].any(axis=1)]
        views.append(_View(_scale_rows(own[places]), _scale_rows(own[both]), _scale_rows(other[both])))
    return views


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
    from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information, mutual_info_score

    table = contingency_matrix(one, other, sparse=True)
    return float(mutual_info_score(one, other) - expected_mutual_information(table, len(one)))
