"""The best mapping of places at order 0, exact: rank with rank in one period, an assignment over several (E19, E20)."""

import numpy as np

from elsewhere.profiles.markov import Counts, MobilityProfile
from elsewhere.similarity._kernels import assignment
from elsewhere.similarity.columns import period_scale
from elsewhere.traces.model import Ints


def by_rank(count: Counts) -> Ints:
    """Positions by falling count, ties in their old order: the canonical sorted order of E22."""
    return np.argsort(-count, kind="stable")


def rank_mapping(a: Counts, b: Counts) -> Ints:
    """sigma of the sorted matching of two vectors of counts, as positions; -1 beyond the shorter list."""
    n = min(np.count_nonzero(a), np.count_nonzero(b))
    sigma = np.full(len(a), -1)
    sigma[by_rank(a)[:n]] = by_rank(b)[:n]
    return sigma


def common_mapping(u: MobilityProfile, v: MobilityProfile) -> tuple[float, Ints]:
    """
    Value and sigma, as positions, of the best common mapping.

    It maximises sum_{r,tau} w_tau(u) min(pi_tau^r(u), pi_tau^sigma(r)(v)) over one sigma for all periods. Benefits are
    whole numbers over the denominators of `Visits`, so that the assignment too is exact.
    """
    lived_u, lived_v = u.visits.sum(axis=1), v.visits.sum(axis=1)
    times, over, denominator = period_scale(lived_v[None], float(lived_u.sum()))
    a = (u.visits * lived_v[:, None])[:, :, None]
    b = (v.visits * lived_u[:, None])[:, None, :]
    benefit = (np.minimum(a, b) * times.T[:, :, None] / over.T[:, :, None]).sum(axis=0)
    if u.K <= v.K:
        r, x = np.arange(u.K), assignment(benefit)
    else:
        r, x = assignment(benefit.T), np.arange(v.K)
    gained = benefit[r, x]
    sigma = np.full(u.K, -1)
    # a pair without overlap fills up the permutation, it is no evidence (E22)
    sigma[r[gained > 0]] = x[gained > 0]
    return min(1.0, float(gained.sum() / (lived_u.sum() * denominator[0]))), sigma
