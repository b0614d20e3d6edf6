"""
Class agreement: how much of its seed's life a fake leads, and how much of anybody's.

Agreement of a fake f and a person s is the share of instants t, both classes known, at which f(t) and s(t) are places
of one class. What a fake keeps of its own seed is the agreement with it minus the mean agreement with all other seeds:
whoever lives like everybody agrees with everybody.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.errors import InvalidParameter
from elsewhere.traces.model import Floats

BLOCK = 256


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
