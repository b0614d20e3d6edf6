"""
Class agreement: how much of its seed's life a fake leads, and how much of anybody's.

Agreement of a fake f and a person s is the share of instants t, both classes known, at which f(t) and s(t) are places
of one class. What a fake keeps of its own seed is the agreement with it minus the mean agreement with all other seeds:
whoever lives like everybody agrees with everybody.

And how much the classes of places tell of the categories that the input gives them.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.errors import InvalidParameter
from elsewhere.traces.model import Floats, Locations

BLOCK = 256
FEWEST_PLACES = 10  # with a class and a category; fewer tell nothing
SHUFFLES = 200


class Agreement(NamedTuple):
    """Of each fake, (F,): agreement with its own seed, mean agreement with the other seeds."""

    own: Floats
    others: Floats

    @property
    def kept(self) -> float:
        """Mean over fakes of own minus others."""
        return float((self.own - self.others).mean())


def class_agreement(fakes: ArrayLike, seeds: ArrayLike, seed_index: ArrayLike, label: NDArray[np.integer]) -> Agreement:
    """
    Agreement of every fake with its own seed and with the others.

    Parameters
    ----------
    fakes, seeds
        (F, L) and (S, L) places, -1 where missing.
    seed_index
        (F,) row of `seeds` each fake was made from.
    label
        Class of each place, -1 where unknown.

    Examples
    --------
    >>> import numpy as np
    >>> class_agreement([[0, 1]], [[0, 0], [2, 1], [2, 2]], [0], np.array([0, 0, 1]))
    Agreement(own=array([1.]), others=array([0.25]))

    """
    f, s, own = np.asarray(fakes), np.asarray(seeds), np.asarray(seed_index)
    if f.ndim != 2 or s.ndim != 2 or f.shape[1] != s.shape[1] or own.shape != (len(f),) or len(s) < 2:
        raise InvalidParameter(
            "`fakes` and `seeds` must be tables of one length, at least 2 seeds, one `seed_index` per fake.",
            code="E_SHAPE",
        )
    theirs, persons = (np.where(x >= 0, label[x], -1) for x in (f, s))
    mine, rest = np.empty(len(f)), np.empty(len(f))
    for start in range(0, len(f), BLOCK):
        rows = slice(start, start + BLOCK)
        same, both = np.zeros((2, len(theirs[rows]), len(s)))
        for t in range(f.shape[1]):
            a, b = theirs[rows, t][:, None], persons[:, t]
            known = (a >= 0) & (b >= 0)
            same += known & (a == b)
            both += known
        agree = same / np.maximum(both, 1)
        mine[rows] = agree[np.arange(len(agree)), own[rows]]
        rest[rows] = (agree.sum(axis=1) - mine[rows]) / (len(s) - 1)
    return Agreement(mine, rest)


def category_agreement(
    label: ArrayLike, locations: Locations, *, m_min: int = 1, rng: np.random.Generator
) -> dict[str, Any] | None:
    """
    Compare the classes of places with their categories; None where too few places have both.

    The measure is adjusted mutual information (arithmetic mean of both entropies): 1 if classes and categories split
    the places in the same way, 0 on average by chance. Beside it stand as many k-means clusters of the positions as
    there are classes (`geography`, None without positions) and the same classes shuffled among the places: `chance` is
    their mean, `chance_high` what 95 % of the shuffles stay below. The classes never saw a category.

    Parameters
    ----------
    label
        Class of each place, -1 where unknown.
    locations
        The places, with `categories`; a word that fewer than `m_min` people gave is left out.
    m_min
        See `locations`.
    rng
        Draws shuffles and starts of k-means.

    Examples
    --------
    >>> import numpy as np
    >>> there = Locations(xy=np.arange(24.0).reshape(12, 2), categories=["shop", "home"] * 6)
    >>> found = category_agreement([0, 1] * 6, there, rng=np.random.default_rng(1))
    >>> found["places"], found["classes"], round(found["ami"], 9)
    (12, 2, 1.0)

    """
    classes = np.asarray(label)
    if locations.categories is None or classes.shape != (len(locations),):
        return None
    enough = np.ones(len(locations), dtype=bool)
    if locations.category_users is not None:
        enough = locations.category_users >= m_min
    words = np.array(locations.categories)
    both = np.flatnonzero((classes >= 0) & (words != "") & enough)
    _, word = np.unique(words[both], return_inverse=True)
    _, mine = np.unique(classes[both], return_inverse=True)
    if len(both) < FEWEST_PLACES or word.max() == 0 or mine.max() == 0:
        return None
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_mutual_info_score

    shuffled = [float(adjusted_mutual_info_score(word, rng.permutation(mine))) for _ in range(SHUFFLES)]
    near = None
    if locations.has_coordinates:
        where = locations.select(both).planar()
        k = min(int(mine.max()) + 1, len(np.unique(where, axis=0)))
        near = KMeans(k, n_init=10, random_state=int(rng.integers(2**31))).fit_predict(where)
    return {
        "places": len(both),
        "categories": int(word.max()) + 1,
        "classes": int(mine.max()) + 1,
        "ami": float(adjusted_mutual_info_score(word, mine)),
        "geography": None if near is None else float(adjusted_mutual_info_score(word, near)),
        "chance": float(np.mean(shuffled)),
        "chance_high": float(np.quantile(shuffled, 0.95)),
    }
