"""Semantic similarity sim_S: how alike two people live once their places are renamed (sec:similarity:semantic)."""

from dataclasses import dataclass, field

import numpy as np

from elsewhere.errors import require_choice
from elsewhere.profiles.markov import MobilityProfile, Profiles
from elsewhere.similarity._kernels import visit_similarity
from elsewhere.similarity.checks import MAPPINGS, check_departures, check_order, check_pair, check_rng
from elsewhere.similarity.columns import visits_of
from elsewhere.similarity.first_order import best_mapping, tables_of
from elsewhere.similarity.zeroth_order import common_mapping, rank_mapping
from elsewhere.traces.model import Ints, Places


@dataclass(frozen=True, eq=False)
class SemanticMatch:
    """
    sim_S(u, v) and the mapping of places that attains it.

    `sim` is the value of `sigma`, never above the true maximum; `upper_bound` is never below it, and equals `sim` where
    `sigma` is proven optimal (up to rounding, 1e-12). `sigma` is a list of arrays aligned with `u.support`, holding
    places of v, -1 where nothing is matched: one array per period at order 0, one per pair of periods of
    `u.period_pairs()` at order 1, a single one for `mapping="common"`.
    """

    sim: float
    sigma: list[Places] = field(repr=False)
    upper_bound: float

    @property
    def gap(self) -> float:
        """`upper_bound` - `sim`; 0 means proven optimal."""
        return self.upper_bound - self.sim


def semantic_similarity(
    u: MobilityProfile,
    v: MobilityProfile,
    *,
    order: int = 0,
    mapping: str = "per-period",
    rng: np.random.Generator | None = None,
) -> SemanticMatch:
    """
    sim_S(u, v): the largest sim_G over all renamings sigma of places (eq:hs0, eq:hs1, without their "1 -": E16, E17).

    Order 0, exact: sum_tau w_tau(u) max_sigma sum_r min(pi_tau^r(u), pi_tau^sigma(r)(v)), by matching sorted visits
    (E20). It compares how the time is shared out among places, and is blind to which and when (E21).

    Order 1 compares moves and is a quadratic assignment problem: exact up to 7 places, beyond that a search over swaps
    with a certified upper bound beside it (E25).

    Parameters
    ----------
    u, v
        Profiles over the same places and periods. Weights are u's (E23): exchanging them matters for T > 1 and order 1.
    order
        0: visits; 1: moves.
    mapping
        "per-period": the best sigma in each period (order 0) or pair of periods (order 1). "common": one sigma for all
        of them (E19).
    rng
        Draws the swaps of order 1. Without it a fixed stream is used, so the result is a function of u and v alone.

    Examples
    --------
    >>> import elsewhere as ew
    >>> traces = ew.Traces([[0] * 5 + [1] * 3 + [2] * 2, [0] + [1] * 6 + [2] * 3], ew.Locations(n=3))
    >>> u, v = ew.fit_profiles(traces)
    >>> match = ew.semantic_similarity(u, v)
    >>> match.sim, match.sigma[0].tolist()
    (0.9, [1, 2, 0])

    """
    check_pair(u, v)
    check_order(order)
    require_choice("mapping", mapping, MAPPINGS)
    check_rng(rng)
    if order == 1:
        check_departures(u)
        pairs = None if mapping == "per-period" else u.period_pairs()
        return SemanticMatch(
            *best_mapping(u, v, tables_of(u, pairs), tables_of(v, pairs), rng or np.random.default_rng(0))
        )
    if mapping == "common" and u.T > 1:
        sim, sigma = common_mapping(u, v)
        return SemanticMatch(sim, [_places(v, sigma)], sim)
    visits = visits_of(Profiles.of([u, v]), by_place=False)
    out = np.empty((1, 2))
    visit_similarity(visits, visits, 0, False, out)
    sim = float(out[0, 1])
    sigmas = [_places(v, rank_mapping(a, b)) for a, b in zip(u.visits, v.visits, strict=True)]
    return SemanticMatch(sim, sigmas, sim)


def _places(v: MobilityProfile, positions: Ints) -> Places:
    return np.where(positions >= 0, v.support[positions], -1).astype(np.int32)
