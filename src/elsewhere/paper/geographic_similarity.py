"""
Geographic similarity sim_G: how well the places of one person tell those of another (sec:similarity:geographic).

It rests on the Mallows distance M_d(p, q), the earth mover's distance between two probability vectors (eq:emdprob).
"""

import math
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.data.visits import Codes, Floats, Ints, Locations
from elsewhere.errors import InvalidParameter, InvalidTraces, require_whole
from elsewhere.paper._similarity_kernels import Counted, numerators
from elsewhere.paper.profiles import Counts, MobilityProfile, Profiles, check_comparable
from elsewhere.scale import map_over

SUM_TOLERANCE = 1e-6
MASS, COST = 1e6, 1e4  # what 1 becomes for scipy's solver, whose tolerances are absolute (1e-7)


def mallows_distance(p: ArrayLike, q: ArrayLike, d: ArrayLike | None = None) -> float:
    """
    Return M_d(p, q), the least expected distance E d(X, Y) of all joint laws of X ~ p and Y ~ q (eq:emdprob).

    Without `d` the distance is Hamming, d(i, j) = 1 for i != j, and M_d = 1 - sum_i min(p_i, q_i) (E9). Any other
    `d` is a transport problem on the two supports, solved exactly by scipy's linear program.

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
    """Return `d` as an (n, n) array of distances in [0, highest], else `InvalidParameter`."""
    array = _numbers(name, d)
    if array.shape != (n, n):
        raise InvalidParameter(f"`{name}` must have shape ({n}, {n}), got {array.shape}.", code="E_SHAPE")
    if not np.all(np.isfinite(array)):
        raise InvalidParameter(f"`{name}` must hold finite distances, got NaN or infinity.", code="E_NUMBER")
    if array.min() < 0 or array.max() > highest:
        condition = "at least 0" if np.isinf(highest) else f"in [0, {highest:g}]; divide by the diameter (E10)"
        raise InvalidParameter(
            f"`{name}` must be {condition}, got values from {array.min():g} to {array.max():g}.", code="E_PARAM"
        )
    return array


def transport(p: Floats, q: Floats, d: Floats) -> float:
    """Return the optimal value for checked arguments: a linear program on the two supports."""
    i, j = np.flatnonzero(p), np.flatnonzero(q)
    mass, demand, cost = p[i] / p[i].sum(), q[j] / q[j].sum(), d[np.ix_(i, j)]
    if len(i) == 1 or len(j) == 1:
        # all mass leaves from, or arrives at, one place: there is one joint law
        return float(mass @ cost @ demand)
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack

    n, m = cost.shape
    leaves = kron(eye_array(n), np.ones((1, m)))
    arrives = kron(np.ones((1, n)), eye_array(m))
    # one of the n + m marginals follows from the others; left in, its rounding could make the program infeasible
    marginals = vstack([leaves, arrives.tocsr()[:-1]], format="csr")
    unit = COST / (float(cost.max()) or 1.0)
    amounts = np.concatenate([mass, demand[:-1]]) * MASS
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


def check_pair(u: MobilityProfile, v: MobilityProfile) -> None:
    """Refuse what are no profiles over the same places and periods."""
    for name, profile in (("u", u), ("v", v)):
        if not isinstance(profile, MobilityProfile):
            raise InvalidParameter(f"`{name}` must be a `MobilityProfile`, got {type(profile).__name__}.")
    check_comparable(u, v)


def check_departures(*profiles: MobilityProfile) -> None:
    """Refuse order 1 without departures of the first argument, over which it is an expectation (E3)."""
    still = sum(1 for u in profiles if u.count.sum() == 0)
    if still:
        raise InvalidTraces(
            f"order 1 compares moves, and {still} of {len(profiles)} profiles have no transition; use order 0.",
            code="E_NO_MOVES",
        )


EXACT = 2**53  # whole numbers up to here are exact in a float64


def common_multiple(n: Counts, longest: float) -> int:
    """Return M of `Counted` for one user's slots per period, against users of at most `longest` slots; 0 if inexact."""
    if n.dtype.kind not in "iu":
        return 0
    M = math.lcm(*(int(slots) for slots in n if slots > 0))
    return M if M * int(longest) < EXACT else 0


def counted(cell: Ints, place: Codes, count: Counts, shape: tuple[int, int], user: Ints, most: int) -> Counted:
    """
    Return counts as the kernels read them: of number `cell` // T in period `cell` % T, rising; `shape` is (users, T).

    Products of the multiples M with at most `most` slots are exact.
    """
    n: Counts = np.zeros(shape, dtype=count.dtype)
    np.add.at(n.reshape(-1), cell, count)
    M = np.array([common_multiple(slots, most) for slots in n], dtype=np.int64)
    start = np.searchsorted(cell, np.arange(n.size + 1))
    order = np.lexsort((place, cell))
    return Counted(start, place[order], count[order], count[np.lexsort((-count, cell))], n, n.sum(axis=1), M, user)


def similarities(u: Counted, i: Ints, v: Counted, j: Ints, *, ranked: bool) -> Floats:
    """Return the similarities of order 0 of pairs of users, by places (E13) or rank with rank (E20)."""
    X = np.empty(len(i))
    numerators(u, i, v, j, ranked, X)
    return np.asarray(np.minimum(1.0, X / (u.N[i] * np.maximum(v.M[j], 1))))


def similarity_rows(u: Counted, v: Counted, ranked: bool, rows: range) -> Floats:
    """Return the similarities of order 0 of these users of `u` to all of `v`."""
    i, j = np.repeat(np.asarray(rows), len(v.N)), np.tile(np.arange(len(v.N)), len(rows))
    return similarities(u, i, v, j, ranked=ranked).reshape(len(rows), -1)


def visits_of(profiles: Profiles) -> Counted:
    """Return the visits of all profiles as the kernels read them."""
    U, T = len(profiles), profiles.T
    user = np.repeat(np.arange(U), np.diff(profiles.visit_start))
    place = profiles.support[profiles.support_start[user] + profiles.visit_k]
    longest = int(np.bincount(user, profiles.visit_count).max())
    return counted(user * T + profiles.visit_tau, place, profiles.visit_count, (U, T), np.arange(U), longest)


def moves_in_common(u: MobilityProfile, v: MobilityProfile) -> float:
    """
    Return eq:as1, Hamming: the sum of alpha_r min(p(u), p(v)) over all moves, 0 where v never leaves r (E3).

    A term is min(m E, n D) / E in departures of u, for m of D departures of u and n of E of v.
    """
    _, r, x = np.intersect1d(u.support, v.support, assume_unique=True, return_indices=True)
    total = 0.0
    for pair in u.period_pairs():
        mine, theirs = u.moves(*pair), v.moves(*pair)
        D, E = mine.sum(axis=1)[r, None], theirs.sum(axis=1)[x, None]
        least = np.minimum(mine[np.ix_(r, r)] * E, theirs[np.ix_(x, x)] * D)
        total += float((least / np.maximum(E, 1e-300)).sum())
    return min(1.0, total / float(u.count.sum()))


def geographic_similarity(
    u: MobilityProfile, v: MobilityProfile, *, order: int = 0, distance: ArrayLike | None = None
) -> float:
    """
    Return how much two people are at the same places: sim_G(u, v) = 1 - E_u[M_d], not symmetric in general (E11).

    Order 0 compares visits (E13): sum_tau w_tau(u) (1 - M_d(pi_tau(u), pi_tau(v))). Order 1 compares moves (eq:ds1ex,
    eq:as1): the same for the rows of p(u) and p(v), weighted by the share of u's departures. A period in which v has
    no slot, and a row that v never leaves, add 0 (E3, E13).

    Parameters
    ----------
    u, v
        Profiles over the same places and periods.
    order
        0: visits; 1: moves.
    distance
        None: Hamming, in closed form. Else an (R, R) array in [0, 1], such as `scaled_distance(locations)` (E10).

    Examples
    --------
    >>> import elsewhere as ew
    >>> traces = ew.Traces([[0] * 5 + [1] * 3 + [2] * 2, [0] + [1] * 6 + [2] * 3], ew.Locations(n=3))
    >>> u, v = ew.fit_profiles(traces)
    >>> ew.geographic_similarity(u, v)
    0.6

    """
    check_pair(u, v)
    require_whole("order", order, 0, 1)
    if distance is not None:
        return expected_closeness(u, v, order, distances("distance", distance, u.R, highest=1.0))
    if order == 1:
        check_departures(u)
        return moves_in_common(u, v)
    visits = visits_of(Profiles.of([u, v]))
    return float(similarities(visits, np.array([0]), visits, np.array([1]), ranked=False)[0])


def scaled_distance(locations: Locations) -> Floats:
    """
    Return d(r, r') over the diameter of the area, (R, R) in [0, 1], for `geographic_similarity` (E10).

    Examples
    --------
    >>> import elsewhere as ew
    >>> scaled_distance(ew.Locations(xy=[[0, 0], [0, 1], [0, 4]])).tolist()
    [[0.0, 0.25, 1.0], [0.25, 0.0, 0.75], [1.0, 0.75, 0.0]]

    """
    r = np.arange(len(locations))
    d = locations.distance(r[:, None], r[None, :])
    diameter = d.max()
    return np.minimum(1.0, d / diameter) if diameter > 0 else d


def expected_closeness(u: MobilityProfile, v: MobilityProfile, order: int, d: Floats) -> float:
    """Return the sum over u's periods or rows of weight (1 - M_d), the transport on the two supports."""
    between = d[np.ix_(u.support, v.support)]
    if order == 0:
        here, there = u.pi_tau, v.pi_tau
        w = u.w
        periods = np.flatnonzero((w > 0) & (v.visits.sum(axis=1) > 0))
        closeness = sum(w[tau] * (1 - transport(here[tau], there[tau], between)) for tau in periods)
        return min(1.0, float(closeness))
    check_departures(u)
    position = {r: x for x, r in enumerate(v.support.tolist())}
    total = 0.0
    for tau, tau_next in u.period_pairs():
        p_u, p_v, alpha = u.p(tau, tau_next), v.p(tau, tau_next), u.alpha(tau, tau_next)
        for k, r in enumerate(u.support.tolist()):
            x = position.get(r)
            if alpha[k] > 0 and x is not None and p_v[x].any():
                total += alpha[k] * (1 - transport(p_u[k], p_v[x], between))
    return min(1.0, float(total))


BLOCKS = 64  # units of work for an executor: more than any machine has cores, few enough to cost nothing


def pairwise_geographic_similarity(profiles: Iterable[MobilityProfile]) -> Floats:
    """
    Return a (U, U) array whose entry [u, v] is sim_G(u, v) of order 0, with Hamming distance.

    Examples
    --------
    >>> import elsewhere as ew
    >>> traces = ew.Traces([[0, 0, 0, 1], [2, 2, 1, 1]], ew.Locations(n=3))
    >>> pairwise_geographic_similarity(ew.fit_profiles(traces)).tolist()
    [[1.0, 0.25], [0.25, 1.0]]

    """
    visits = visits_of(Profiles.of(profiles))
    return all_rows(partial(similarity_rows, visits, visits, False), len(visits.N), None)


def all_rows(work: Callable[[range], Floats], U: int, executor: Executor | None) -> Floats:
    """Return the rows 0 .. U-1 of a table, of which `work` makes some at a time."""
    bounds = np.linspace(0, U, min(U, BLOCKS) + 1).astype(int).tolist()
    blocks = [range(first, last) for first, last in pairwise(bounds)]
    return np.concatenate(map_over(work, blocks, executor=executor))
