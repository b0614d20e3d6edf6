"""Geographic similarity sim_G: how well the places of one person tell those of another (sec:similarity:geographic)."""

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.profiles.markov import MobilityProfile, Profiles
from elsewhere.similarity._kernels import move_similarity, visit_similarity
from elsewhere.similarity.checks import check_departures, check_order, check_pair
from elsewhere.similarity.columns import moves_of, visits_of
from elsewhere.similarity.mallows import distances, transport
from elsewhere.traces.model import Floats, Locations


def geographic_similarity(
    u: MobilityProfile, v: MobilityProfile, *, order: int = 0, distance: ArrayLike | None = None
) -> float:
    """
    sim_G(u, v) = 1 - E_u[M_d], under the profile of the first argument, so not symmetric in general (E11).

    Order 0 compares visits (E13): sum_tau w_tau(u) (1 - M_d(pi_tau(u), pi_tau(v))). Order 1 compares moves (eq:ds1ex,
    eq:as1): the same for the rows of p(u) and p(v), weighted by the share of u's departures. A period in which v has
    no instant, and a row that v never leaves, add 0 (E3, E13).

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
    check_order(order)
    if distance is not None:
        return expected_closeness(u, v, order, distances("distance", distance, u.R, highest=1.0))
    both = Profiles.of([u, v])
    out = np.empty((1, 2))
    if order == 0:
        visits = visits_of(both, by_place=True)
        visit_similarity(visits, visits, 0, True, out)
    else:
        check_departures(u)
        moves = moves_of(both)
        move_similarity(moves, moves, 0, out)
    return float(out[0, 1])


def scaled_distance(locations: Locations) -> Floats:
    """
    d(r, r') divided by the diameter of the area: an (R, R) array in [0, 1] for `geographic_similarity` (E10).

    Examples
    --------
    >>> import elsewhere as ew
    >>> ew.scaled_distance(ew.Locations(xy=[[0, 0], [0, 1], [0, 4]])).tolist()
    [[0.0, 0.25, 1.0], [0.25, 0.0, 0.75], [1.0, 0.75, 0.0]]

    """
    r = np.arange(len(locations))
    d = locations.distance(r[:, None], r[None, :])
    diameter = d.max()
    return np.minimum(1.0, d / diameter) if diameter > 0 else d


def expected_closeness(u: MobilityProfile, v: MobilityProfile, order: int, d: Floats) -> float:
    """sum over u's periods or rows of weight (1 - M_d), the transport on the two supports."""
    between = d[np.ix_(u.support, v.support)]
    if order == 0:
        here, there = u.pi_tau, v.pi_tau
        w = u.w
        lived = np.flatnonzero((w > 0) & (v.visits.sum(axis=1) > 0))
        closeness = sum(w[tau] * (1 - transport(here[tau], there[tau], between)) for tau in lived)
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
