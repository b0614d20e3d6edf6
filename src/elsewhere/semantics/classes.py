"""
Semantic classes C: places that mean the same to different people, as clusters of the location graph (E28-E30).

k-means on the L2-normalised rows of w_G, so that a place counts by which places it stands for, not by how often (E27).
"""

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.errors import InvalidParameter, InvalidTraces, require_whole
from elsewhere.semantics.graph import LocationGraph
from elsewhere.traces.model import Floats, Ints

MOST_TRIES = 24  # values of kappa that "auto" tries (E29)
SAMPLE = 3000  # places whose silhouette is computed


@dataclass(frozen=True, eq=False)
class SemanticClasses:
    """
    A partition of the places into `kappa` classes.

    Parameters
    ----------
    label
        (R,) class of each place, -1 where nothing is known: nobody visits it.
    nearness
        (kappa, kappa) mean edge weight between two classes, or None.

    Examples
    --------
    >>> import elsewhere as ew
    >>> ew.SemanticClasses([0, 1, 1, -1]).members(1).tolist()
    [1, 2]

    """

    label: Ints
    nearness: Floats | None = field(repr=False)

    def __init__(self, label: ArrayLike, nearness: ArrayLike | None = None) -> None:
        given = np.asarray(label)
        if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
            raise InvalidTraces("`label` must be a vector of whole numbers, one class per place.", code="E_SHAPE")
        if given.min() < -1 or given.max() < 0:
            raise InvalidTraces("`label` must be -1 or a class number from 0, with at least one class.", code="E_INDEX")
        used = np.unique(given[given >= 0])
        labels = np.where(given >= 0, np.searchsorted(used, given), -1).astype(np.int64)
        labels.setflags(write=False)
        near = None if nearness is None else np.asarray(nearness, dtype=np.float64)
        if near is not None and (near.shape != (len(used), len(used)) or not np.all(np.isfinite(near))):
            raise InvalidTraces(f"`nearness` must be finite numbers of shape {(len(used), len(used))}.", code="E_SHAPE")
        object.__setattr__(self, "label", labels)
        object.__setattr__(self, "nearness", near)

    def __repr__(self) -> str:
        return f"SemanticClasses({self.kappa} classes of {int((self.label >= 0).sum())} places)"

    @property
    def kappa(self) -> int:
        """Number of classes."""
        return int(self.label.max()) + 1

    @property
    def sizes(self) -> Ints:
        """Number of places in each class."""
        return np.bincount(self.label[self.label >= 0], minlength=self.kappa).astype(np.int64)

    def members(self, i: int) -> Ints:
        """The places of class i."""
        return np.flatnonzero(self.label == require_whole("i", i, 0, self.kappa - 1))


def semantic_clustering(
    graph: LocationGraph, *, kappa: int | str = "auto", rng: np.random.Generator, c_min: int = 1
) -> SemanticClasses:
    """
    Cluster the location graph into semantic classes (`SemanticClustering`, fig:alg).

    Parameters
    ----------
    graph
        As `semantic_graph` makes it.
    kappa
        Number of classes asked of the clustering; "auto" takes the one with the largest mean cosine silhouette among
        at most 24 in geometric steps (E29).
    rng
        Starts the clustering.
    c_min
        Classes with fewer members are merged into the nearest (E30).

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> days = [[0] * 6 + [1] * 3, [2] * 6 + [3] * 3, [4] * 6 + [5] * 3]
    >>> graph = ew.semantic_graph(ew.fit_profiles(ew.Traces(days, ew.Locations(n=7))))
    >>> classes = ew.semantic_clustering(graph, kappa=2, rng=np.random.default_rng(1))
    >>> classes.label.tolist() in ([0, 1, 0, 1, 0, 1, -1], [1, 0, 1, 0, 1, 0, -1])
    True

    """
    require_whole("c_min", c_min, 1)
    places = np.flatnonzero(graph.visited)
    w = graph.w_visited
    rows = w / np.maximum(np.linalg.norm(w, axis=1, keepdims=True), np.finfo(float).tiny)
    if kappa == "auto":
        found = _best(rows, w, c_min, rng)
    else:
        if isinstance(kappa, str):
            raise InvalidParameter(f'`kappa` must be a whole number or "auto", got {kappa!r}.')
        asked = require_whole("kappa", kappa, 2, len(places))
        found = _merged(_clusters(rows, asked, rng), w, c_min)
        if (left := int(found.max()) + 1) < asked:
            warnings.warn(f"`c_min` = {c_min} leaves {left} of the {asked} classes asked for.", stacklevel=2)
    label = np.full(graph.R, -1)
    label[places] = found
    return SemanticClasses(label, _between(found, w))


def _clusters(rows: Floats, kappa: int, rng: np.random.Generator) -> Ints:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # one thread: sums in one order, so the same classes on every machine (R5)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than classes
        model = KMeans(kappa, n_init=10, random_state=int(rng.integers(2**31)))
        found = model.fit_predict(rows)
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def _between(label: Ints, w: Floats) -> Floats:
    """Mean edge weight between the members of two classes."""
    member = np.eye(int(label.max()) + 1)[label]
    size = member.sum(axis=0)
    return np.asarray(member.T @ w @ member / np.outer(size, size))


def _merged(label: Ints, w: Floats, c_min: int) -> Ints:
    """Merge classes below `c_min`, smallest first, into the class with the largest mean edge weight (E30)."""
    while True:
        size = np.bincount(label)
        small = int(np.argmin(size))
        if size[small] >= c_min or len(size) == 1:
            return label
        near = _between(label, w)[small]
        near[small] = -np.inf
        label = np.unique(np.where(label == small, np.argmax(near), label), return_inverse=True)[1].astype(np.int64)


def _best(rows: Floats, w: Floats, c_min: int, rng: np.random.Generator) -> Ints:
    most = len(rows) // c_min
    if most < 2:
        raise InvalidParameter(
            f"`c_min` = {c_min} leaves no two classes among {len(rows)} visited places; lower it, or give more places.",
            code="E_TOO_FEW_PLACES",
        )
    tried = np.unique(np.geomspace(2, min(most, len(rows) - 1) or 2, MOST_TRIES).round().astype(int))
    sample = np.arange(len(rows)) if len(rows) <= SAMPLE else np.sort(rng.choice(len(rows), SAMPLE, replace=False))
    best, label = -np.inf, None
    for kappa in tried.tolist():
        found = _clusters(rows, kappa, rng)
        if np.bincount(found).min() < c_min:
            found = _merged(found, w, c_min)
        if int(found.max()) < 1:
            continue
        score = _silhouette(rows[sample], found[sample])
        if score > best:
            best, label = score, found
    if label is None:
        return np.zeros(len(rows), dtype=np.int64)
    return label


def _silhouette(rows: Floats, label: NDArray[np.int64]) -> float:
    from sklearn.metrics import silhouette_score

    if not 2 <= len(np.unique(label)) < len(rows):
        return -1.0
    return float(silhouette_score(rows, label, metric="cosine"))
