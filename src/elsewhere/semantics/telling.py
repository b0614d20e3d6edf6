"""
Which of several clusterings says most about people (docs/decisions/0009-telling.md).

Where classes are not clear-cut, k-means finds other ones from every start, equally good by its own measure. What they
are for is to say how people are alike: so of several the one is taken in which people agree most with their like.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elsewhere.semantics.classes import SemanticClasses
from elsewhere.traces.model import Floats, Ints

LIKE = 1 / 8  # of all people are a person's like
MOST_PEOPLE = 500  # that are compared with each other


def most_telling(
    candidates: Sequence[SemanticClasses], r: NDArray[np.integer], rng: np.random.Generator
) -> SemanticClasses:
    """The classes of the largest `likeness` of traces (N, L); the first of equals. `rng` draws people if too many."""
    if len(r) > MOST_PEOPLE:
        r = r[np.sort(rng.permutation(len(r))[:MOST_PEOPLE])]
    labels = [np.append(classes.label, -1)[r] for classes in candidates]  # a gap, -1, is the last: in no class
    # rounded: the order of sums must not decide between equals (R5)
    return candidates[int(np.argmax([round(likeness(label), 9) for label in labels]))]


def likeness(label: Ints) -> float:
    """
    How much more people agree with the eighth of the others who agree most with them than with anybody.

    Two people of (N, L) agree at the instants at which they are in one class; -1 is in none.
    """
    N = len(label)
    if N < 2:
        return 0.0
    agreement = _agreement(label)
    others = agreement[~np.eye(N, dtype=bool)].reshape(N, N - 1)
    like = max(1, round(LIKE * N))
    return float(np.sort(others, axis=1)[:, -like:].mean() - others.mean())


def _agreement(label: Ints) -> Floats:
    """(N, N) share of instants at which two people are in one class."""
    N, L = label.shape
    same = np.zeros((N, N), dtype=np.int32)
    for at in label.T:
        same += (at[:, None] == at) & (at >= 0)
    return np.asarray(same / L)
