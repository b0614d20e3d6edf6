"""
Semantic classes C: places that mean the same to different people (`SemanticClustering` of fig:alg; E28-E30).

k-means on one row per place, scaled to length 1 so that a place counts by what it is, not by how often it is visited
(E27). The row is either the place's roles (the default) or its row of w_G (the paper's). Both are k-means by cosine.
Roles are counts; their square roots make the cosine of two places the overlap of what they are to people (the
Bhattacharyya coefficient). docs/decisions/0001-classes.md holds the figures behind the default.
"""

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.errors import InvalidParameter, InvalidTraces, require_choice, require_whole
from elsewhere.semantics.graph import LocationGraph
from elsewhere.traces.model import Floats, Ints

METHODS = ("roles", "kmeans")
MOST_TRIES = 24  # values of kappa that "auto" tries (E29)
STARTS = 10  # n_init of k-means (E28)
SCOUTS = 3  # the same, while "auto" looks for kappa


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

    def __init__(self, label: ArrayLike, nearness: ArrayLike | None = None) -> None:
        try:
            given = np.asarray(label)
        except ValueError:
            given = np.empty(())
        whole = given.dtype.kind in "iu" or (given.dtype.kind == "f" and np.array_equal(given, np.floor(given)))
        if given.ndim != 1 or given.size == 0 or not whole:
            raise InvalidTraces("`label` must be a vector of whole numbers, one class per place.", code="E_SHAPE")
        if given.min() < -1 or given.max() < 0:
            raise InvalidTraces("`label` must be -1 or a class number from 0, with at least one class.", code="E_INDEX")
        used = np.unique(given[given >= 0])
        labels = np.where(given >= 0, np.searchsorted(used, given), -1).astype(np.int64)
        labels.setflags(write=False)
        object.__setattr__(self, "label", labels)
        object.__setattr__(self, "nearness", None if nearness is None else _square(nearness, len(used)))

    def __repr__(self) -> str:
        return f"SemanticClasses({self.kappa} classes of {int((self.label >= 0).sum())} places)"

    @property
    def kappa(self) -> int:
        """Number of classes."""
        return int(self.label.max()) + 1

    @property
    def sizes(self) -> Ints:
        """(kappa,) number of places in each class."""
        return np.bincount(self.label[self.label >= 0], minlength=self.kappa).astype(np.int64)

    def members(self, i: int) -> Ints:
        """The places of class i."""
        return np.flatnonzero(self.label == require_whole("i", i, 0, self.kappa - 1))


def _square(nearness: ArrayLike, kappa: int) -> Floats:
    try:
        near = np.array(nearness, dtype=np.float64)
    except (TypeError, ValueError):
        near = np.empty(0)
    if near.shape != (kappa, kappa) or not np.all(np.isfinite(near)):
        raise InvalidTraces(f"`nearness` must be finite numbers of shape ({kappa}, {kappa}).", code="E_SHAPE")
    near.setflags(write=False)
    return near


def semantic_clustering(
    graph: LocationGraph,
    *,
    kappa: int | str = "auto",
    method: str = "roles",
    c_min: int = 1,
    rng: np.random.Generator,
) -> SemanticClasses:
    """
    Cluster the location graph into semantic classes.

    The classes depend neither on the numbers of the places nor on the order of the users, but for places between which
    the graph sees no difference at all.

    Parameters
    ----------
    graph
        As `semantic_graph` makes it; finer periods than those of the model make better classes.
    kappa
        Number of classes asked of the clustering, 2 or more; "auto" takes the largest mean cosine silhouette among at
        most 24 values in geometric steps whose classes all have `c_min` members (E29).
    method
        "roles": which rank the place holds for how many people, in the day and in each period. "kmeans": its row of
        w_G, as the paper has it (E28); the only one for which the order and mapping of the graph matter.
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
    if not isinstance(graph, LocationGraph):
        raise InvalidParameter(f"`graph` must be a `LocationGraph`, got {type(graph).__name__}.")
    if not isinstance(rng, np.random.Generator):
        raise InvalidParameter(f"`rng` must be a `numpy.random.Generator`, got {type(rng).__name__}.")
    require_choice("method", method, METHODS)
    places = np.flatnonzero(graph.visited)
    if len(places) < 2:
        raise InvalidTraces(
            "all people are at one place, or at places that too few share: there is nothing to classify.",
            code="E_TOO_FEW_PLACES",
        )
    require_whole("c_min", c_min, 1)
    if kappa != "auto" and not isinstance(kappa, str):
        require_whole("kappa", kappa, 2, len(places))
    elif kappa != "auto":
        raise InvalidParameter(f'`kappa` must be a whole number or "auto", got {kappa!r}.')

    # places in an order that does not come from their numbers, so that k-means starts alike on renamed places (F6);
    # rounded, since sums over users in another order differ in their last digits
    roles = np.round(graph.roles[places], 9)
    order = np.lexsort(roles.T[::-1])
    w = graph.w_visited[np.ix_(order, order)]
    table = np.sqrt(roles[order]) if method == "roles" else np.round(w / max(w.max(), 1e-300), 12)
    rows = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-300)
    entropy = int(rng.integers(2**31))
    if isinstance(kappa, str):
        found = _best(rows, w, c_min, entropy)
    else:
        found = _merged(_clusters(rows, kappa, entropy), w, c_min)
        if (left := int(found.max()) + 1) < kappa:
            why = f"`c_min` = {c_min} and " if c_min > 1 else ""
            warnings.warn(
                f"{left} classes instead of `kappa` = {kappa}: {why}places that cannot be told apart leave no more.",
                stacklevel=2,
            )
    label = np.full(graph.R, -1)
    label[places[order]] = found
    return SemanticClasses(label, _nearness(*_edges(found, w)))


def _clusters(rows: Floats, kappa: int, entropy: int, starts: int = STARTS) -> Ints:
    """k-means++; classes are numbered by first appearance."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # one thread: sums in one order, so the same classes on every machine (R5)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than classes
        found = KMeans(kappa, n_init=starts, random_state=entropy).fit_predict(rows)
    return _numbered(found)


def _numbered(found: Ints) -> Ints:
    _, first, label = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[label]


def _edges(label: Ints, w: Floats) -> tuple[Floats, Ints]:
    """Sum of the edge weights between two classes, and the sizes of the classes."""
    size = np.bincount(label)
    order, start = np.argsort(label, kind="stable"), np.cumsum(size) - size
    between = np.add.reduceat(np.add.reduceat(w[np.ix_(order, order)], start, axis=0), start, axis=1)
    return (between + between.T) / 2, size


def _nearness(between: Floats, size: Ints) -> Floats:
    """Mean edge weight between the places of two classes, and between different places of one."""
    pairs = np.outer(size, size) - np.diag(size)
    return np.asarray(between / np.maximum(pairs, 1))


def _merged(label: Ints, w: Floats, c_min: int) -> Ints:
    """Merge classes below `c_min`, smallest first, into the class with the largest mean edge weight (E30)."""
    between, size = _edges(label, w)
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
    return _numbered(label)


def _best(rows: Floats, w: Floats, c_min: int, entropy: int) -> Ints:
    """The partition of the largest silhouette among those of classes with `c_min` members (E29)."""
    most = len(rows) // c_min
    if most == 0:
        raise InvalidParameter(
            f"only {len(rows)} places are shared by enough people, and a class needs `c_min` = {c_min}; give more "
            "people (a lower `c_min` or `m_min` is less privacy).",
            code="E_TOO_FEW_PLACES",
        )
    if most == 1:
        return np.zeros(len(rows), dtype=np.int64)  # whoever makes fakes by one class says so
    tried = np.unique(np.geomspace(2, most, MOST_TRIES).round().astype(int)).tolist()
    distinct = len(np.unique(np.round(rows, 9), axis=0))
    partitions: list[Ints] = []
    best, reached = None, -np.inf
    for kappa in tried:
        # of n places in so many classes at least 2 classes - n are alone in theirs and count 0, the others at most 1:
        # what cannot win any more is not computed, and the largest numbers cost most
        if c_min == 1 and 2 - 2 * min(kappa, distinct) / len(rows) <= reached:
            break
        partitions.append(_clusters(rows, kappa, entropy, SCOUTS))
        if _fits(partitions[-1], c_min) and (told := silhouette(rows, partitions[-1])) > reached:
            best, reached = partitions[-1], told
    if best is None:
        return max((_merged(label, w, c_min) for label in partitions), key=lambda label: silhouette(rows, label))
    again = _clusters(rows, int(best.max()) + 1, entropy)
    return max(best, again, key=lambda label: (_fits(label, c_min), silhouette(rows, label)))


def _fits(label: Ints, c_min: int) -> bool:
    return int(np.bincount(label).min()) >= c_min


def silhouette(rows: Floats, label: Ints) -> float:
    """
    Mean cosine silhouette of a partition of rows of length 1 (or 0); a class of one member counts 0 (E29).

    The cosine distances of a row to a class sum to (size of the class) - row . (sum of the class): no pair is formed.
    """
    size = np.bincount(label)
    if len(size) < 2:
        return -1.0
    total = np.zeros((len(size), rows.shape[1]))
    np.add.at(total, label, rows)
    away = size - rows @ total.T
    here = np.arange(len(rows)), label
    own = (away[here] - (1 - np.einsum("ij,ij->i", rows, rows))) / np.maximum(size[label] - 1, 1)
    away = away / size
    away[here] = np.inf
    nearest = away.min(axis=1)
    # what rounding leaves of the distance of equal rows is no distance
    own, nearest = (np.where(d < 1e-12, 0, d) for d in (own, nearest))
    s = (nearest - own) / np.maximum(np.maximum(nearest, own), 1e-12)
    # rounded: how many threads the product above had must not decide between equals (R5)
    return round(float(np.where(size[label] > 1, s, 0).mean()), 9)
