"""How far two laws are apart: KL by the rule of E64, Jensen-Shannon, total variation, transport on a line."""

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.errors import InvalidParameter
from elsewhere.traces.model import Floats, Ints

NEVER = 0.1  # visits that a place without any is given before a KL divergence (E64)


def kl(real: ArrayLike, other: ArrayLike, *, ordered: bool = False) -> float:
    """
    KL(real || other) in nats of two vectors of *counts*: zeros become .1, then both are normalised (E64).

    Parameters
    ----------
    real, other
        Counts of one length, at least 0.
    ordered
        Sort both first, the largest with the largest: blind to which place is popular (E65).

    Examples
    --------
    >>> round(kl([6, 3, 1, 0], [4, 4, 2, 0]), 6), round(kl([6, 3, 1, 0], [10, 0, 0, 0]), 6)
    (0.086792, 0.954383)

    """
    p, q = _counts(real, other)
    if ordered:
        p, q = np.sort(p), np.sort(q)
    p, q = (np.where(x > 0, x, NEVER) for x in (p, q))
    p, q = p / p.sum(), q / q.sum()
    return max(0.0, float((p * np.log(p / q)).sum()))


def js(real: ArrayLike, other: ArrayLike) -> float:
    """
    Jensen-Shannon divergence in nats, at most ln 2; nothing is smoothed.

    Examples
    --------
    >>> round(js([1, 0], [0, 1]), 6)
    0.693147

    """
    p, q = _laws(real, other)
    middle = (p + q) / 2
    both = [np.divide(x, middle, out=np.ones_like(x), where=x > 0) for x in (p, q)]
    return max(0.0, float((p * np.log(both[0])).sum() + (q * np.log(both[1])).sum()) / 2)


def tv(real: ArrayLike, other: ArrayLike) -> float:
    """
    Total variation, half the sum of absolute differences, in [0, 1].

    Examples
    --------
    >>> tv([1, 1, 0], [0, 1, 1])
    0.5

    """
    p, q = _laws(real, other)
    return float(np.abs(p - q).sum()) / 2


def entropy(count: ArrayLike) -> float:
    """Entropy in nats of the law with these counts."""
    x = np.asarray(count, dtype=np.float64)
    p = x[x > 0] / x.sum()
    return max(0.0, float(-(p * np.log(p)).sum()))


def top_overlap(real: ArrayLike, other: ArrayLike, n: int) -> float:
    """
    Share of the n most visited places of `real` that are among the n most visited of `other`.

    Places tied for the last rank share it. Where fewer than n places are visited at all, n is their number.

    Examples
    --------
    >>> top_overlap([5, 4, 3, 0], [5, 0, 3, 4], 2), top_overlap([5, 4, 0], [5, 4, 4], 2)
    (0.5, 0.75)

    """
    p, q = _counts(real, other)
    n = min(n, int(np.count_nonzero(p)))
    return float(np.minimum(_among_top(p, n), _among_top(q, n)).sum()) / n


def _among_top(count: Floats, n: int) -> Floats:
    last = -np.partition(-count, n - 1)[n - 1]
    if last == 0:
        return np.asarray(count > 0, dtype=np.float64)
    above, tied = count > last, count == last
    return np.asarray(above + tied * ((n - above.sum()) / tied.sum()), dtype=np.float64)


def line_emd(group: Ints, position: Floats, mass: Floats) -> tuple[Ints, Floats]:
    """
    Earth mover's distance on a line, for many pairs of laws at once: the area between two distribution functions.

    Entry i puts `mass[i]` at `position[i]` for the pair number `group[i]`: positive for one law, negative for the
    other, so that the masses of a group sum to 0. Returns the groups and their distances.

    Examples
    --------
    >>> groups, distance = line_emd(np.array([0, 0]), np.array([1.0, 3.5]), np.array([1.0, -1.0]))
    >>> groups.tolist(), distance.tolist()
    ([0], [2.5])

    """
    order = np.lexsort((position, group))
    g, x, m = group[order], position[order], mass[order]
    groups, first, number = np.unique(g, return_index=True, return_inverse=True)
    ahead = np.cumsum(m)
    ahead = ahead - np.concatenate([[0.0], ahead])[first][number]
    gap = np.diff(x, append=x[-1:])
    gap[np.append(first[1:] - 1, len(x) - 1)] = 0.0
    return groups, np.bincount(number, np.abs(ahead) * gap, len(groups)).astype(np.float64)


def sample_emd(x: Floats, y: Floats) -> float:
    """Earth mover's distance between two samples of numbers, in their unit; NaN where one is empty."""
    if len(x) == 0 or len(y) == 0:
        return float("nan")
    mass = np.concatenate([np.full(len(x), 1 / len(x)), np.full(len(y), -1 / len(y))])
    return float(line_emd(np.zeros(len(mass), dtype=np.int64), np.concatenate([x, y]), mass)[1][0])


def _counts(real: ArrayLike, other: ArrayLike) -> tuple[Floats, Floats]:
    p, q = np.asarray(real, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if p.ndim != 1 or p.shape != q.shape or p.size == 0:
        raise InvalidParameter(f"counts must be vectors of one length, got shapes {p.shape} and {q.shape}.")
    if not (np.all(np.isfinite(p)) and np.all(np.isfinite(q))) or min(p.min(), q.min()) < 0:
        raise InvalidParameter("counts must be finite and at least 0.", code="E_NUMBER")
    if p.sum() == 0 or q.sum() == 0:
        raise InvalidParameter("counts must not all be 0.", code="E_EMPTY")
    return p, q


def _laws(real: ArrayLike, other: ArrayLike) -> tuple[Floats, Floats]:
    p, q = _counts(real, other)
    return p / p.sum(), q / q.sum()
