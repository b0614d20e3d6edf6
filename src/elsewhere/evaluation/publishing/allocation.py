"""
How people share out their time over their three most visited places (tbl:timealloc-kl, E70).

For rank j: the share of time of each trace at its j-th place, normalised over the traces; both vectors sorted; KL by
the rule of E64, in instants.
"""

import numpy as np

from elsewhere.evaluation.publishing.divergence import kl
from elsewhere.traces.model import Floats, Places

RANKS = 3
RANDOM_DRAWS = 200


def top_shares(r: Places) -> Floats:
    """
    (N, 3) share of its known instants that each trace spends at its 1st, 2nd and 3rd most visited place.

    Examples
    --------
    >>> top_shares(np.array([[4, 4, 4, 7]])).tolist()
    [[0.75, 0.25, 0.0]]

    """
    N, L = r.shape
    ordered = np.sort(r, axis=1)
    fresh = np.diff(ordered, axis=1, prepend=ordered[:, :1] - 1) != 0
    run = np.cumsum(fresh, axis=1) - 1
    count = np.zeros((N, max(L, RANKS)))
    known = ordered >= 0
    np.add.at(count, (np.nonzero(known)[0], run[known]), 1.0)
    return np.asarray(-np.sort(-count, axis=1)[:, :RANKS] / known.sum(axis=1)[:, None], dtype=np.float64)


def allocation_kl(real: Floats, other: Floats, L: int, *, paired: bool = False) -> float:
    """
    KL of the allocation vector of one rank; `real` and `other` are shares of time, one per trace.

    Sorted, unless trace i of both belong together (`paired`). Where `other` has another number of traces it is read
    at evenly spaced quantiles.
    """
    if not paired:
        real, other = np.sort(real), np.sort(other)
        if len(real) != len(other):
            other = np.interp(_levels(len(real)), _levels(len(other)), other)
    # a rank that nobody has is no law: all shares are then equal, as everybody gets .1 of an instant
    real, other = (x if x.any() else np.ones(len(x)) for x in (real, other))
    return kl(real * L, other * L)


def random_allocation(real: Floats, L: int, rng: np.random.Generator, *, ordered: bool = False) -> Floats:
    """
    Baseline Random: everybody spends a uniformly random share of time there; one KL per draw.

    Drawn per person, so not sorted: above Uniform by 1 - ln 2 = .31 in the mean, which is of the size of the paper's
    .51, .46, .43 (E70). `ordered` sorts it like a dataset, and brings it closer than Uniform.
    """
    other = rng.random((RANDOM_DRAWS, len(real)))
    return np.array([allocation_kl(real, x, L, paired=not ordered) for x in other])


def _levels(n: int) -> Floats:
    return (np.arange(n) + 0.5) / n
