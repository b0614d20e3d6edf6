"""Mallows distance M_d(p, q): the earth mover's distance between two probability vectors (eq:emdprob)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.errors import InvalidParameter
from elsewhere.traces.model import Floats

SUM_TOLERANCE = 1e-6
MASS, COST = 1e6, 1e4  # what 1 becomes for scipy's solver, whose tolerances are absolute (1e-7)


def mallows_distance(p: ArrayLike, q: ArrayLike, d: ArrayLike | None = None) -> float:
    """
    M_d(p, q), the least expected distance E d(X, Y) over all joint laws of X ~ p and Y ~ q (eq:emdprob).

    Without `d` the distance is Hamming, d(i, j) = 1 for i != j, and M_d = 1 - sum_i min(p_i, q_i) (E9). Any other
    `d` is a transport problem on the two supports, solved exactly: by POT where it is installed, else by scipy.

    Parameters
    ----------
    p, q
        Probabilities of one length n. A sum within 1e-6 of 1 is taken as rounding and normalised away.
    d
        (n, n) finite distances, at least 0; `d[i, j]` is the cost of moving i to j. It need not be a metric.

    Examples
    --------
    >>> import elsewhere as ew
    >>> round(ew.mallows_distance([0.5, 0.3, 0.2], [0.1, 0.6, 0.3]), 12)
    0.4
    >>> ew.mallows_distance([1, 0, 0], [0, 0.5, 0.5], [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    1.5

    """
    a, b = _probabilities("p", p), _probabilities("q", q)
    if a.shape != b.shape:
        raise InvalidParameter(f"`p` and `q` must have one length, got {len(a)} and {len(b)}.", code="E_SHAPE")
    if d is None:
        return max(0.0, float(1 - np.minimum(a, b).sum()))
    return transport(a, b, distances("d", d, len(a)))


def distances(name: str, d: ArrayLike, n: int, highest: float = np.inf) -> Floats:
    """`d` as an (n, n) array of distances in [0, highest], else `InvalidParameter`."""
    array = _numbers(name, d)
    if array.shape != (n, n):
        raise InvalidParameter(f"`{name}` must have shape ({n}, {n}), got {array.shape}.", code="E_SHAPE")
    if not np.all(np.isfinite(array)):
        raise InvalidParameter(f"`{name}` must hold finite distances, got NaN or infinity.", code="E_NUMBER")
    if array.min() < 0 or array.max() > highest:
        asked = "at least 0" if np.isinf(highest) else f"in [0, {highest:g}]; divide by the diameter (E10)"
        raise InvalidParameter(
            f"`{name}` must be {asked}, got values from {array.min():g} to {array.max():g}.", code="E_PARAM"
        )
    return array


def transport(p: Floats, q: Floats, d: Floats) -> float:
    """The optimal value for checked arguments: a linear program on the two supports."""
    i, j = np.flatnonzero(p), np.flatnonzero(q)
    mass, wanted, cost = p[i] / p[i].sum(), q[j] / q[j].sum(), d[np.ix_(i, j)]
    if len(i) == 1 or len(j) == 1:
        # all mass leaves from, or arrives at, one place: there is one joint law
        return float(mass @ cost @ wanted)
    try:
        from ot.lp import emd2
    except ImportError:
        return _linear_program(mass, wanted, cost)
    return max(0.0, float(emd2(mass, wanted, np.ascontiguousarray(cost), numItermax=10_000_000)))


def _linear_program(mass: Floats, wanted: Floats, cost: Floats) -> float:
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack

    n, m = cost.shape
    leaves = kron(eye_array(n), np.ones((1, m)))
    arrives = kron(np.ones((1, n)), eye_array(m))
    # one of the n + m marginals follows from the others; left in, its rounding could make the program infeasible
    marginals = vstack([leaves, arrives.tocsr()[:-1]], format="csr")
    unit = COST / (float(cost.max()) or 1.0)
    amounts = np.concatenate([mass, wanted[:-1]]) * MASS
    best = linprog(cost.ravel() * unit, A_eq=marginals, b_eq=amounts, method="highs")
    return max(0.0, float(np.asarray(best.fun)) / (MASS * unit))


def _numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(f"`{name}` must be an array of numbers.", code="E_NUMBER") from None


def _probabilities(name: str, values: ArrayLike) -> Floats:
    array = _numbers(name, values)
    if array.ndim != 1 or array.size == 0:
        raise InvalidParameter(f"`{name}` must be a vector, got shape {array.shape}.", code="E_SHAPE")
    if not np.all(np.isfinite(array)) or array.min() < 0:
        raise InvalidParameter(f"`{name}` must hold probabilities, at least 0, without NaN.", code="E_NUMBER")
    if abs(array.sum() - 1) > SUM_TOLERANCE:
        raise InvalidParameter(f"`{name}` must sum to 1, got {array.sum():g}.", code="E_NUMBER")
    return np.asarray(array / array.sum())
