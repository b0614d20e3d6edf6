"""Similarities of all pairs of users, as (U, U) arrays."""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from itertools import pairwise

import numpy as np

from elsewhere.errors import require_choice
from elsewhere.paper._similarity_kernels import visit_similarity
from elsewhere.paper.columns import (
    MAPPINGS,
    Visits,
    check_departures,
    check_order,
    check_rng,
    visits_of,
)
from elsewhere.paper.profiles import MobilityProfile, Profiles
from elsewhere.paper.semantic_similarity import best_mapping, common_mapping, tables_of
from elsewhere.scale import map_over
from elsewhere.traces.model import Floats

BLOCKS = 64  # units of work for an executor: more than any machine has cores, few enough to cost nothing


def pairwise_semantic_similarity(
    profiles: Iterable[MobilityProfile],
    *,
    order: int = 0,
    mapping: str = "per-period",
    rng: np.random.Generator | None = None,
    executor: Executor | None = None,
) -> Floats:
    """
    Return a (U, U) array whose entry [u, v] is sim_S(u, v); its diagonal is 1.

    At order 1 every pair draws from a stream of its own, so that the result depends on neither the executor nor the
    order of the work. Options are those of `semantic_similarity`.

    Examples
    --------
    >>> import elsewhere as ew
    >>> traces = ew.Traces([[0, 0, 0, 1], [2, 2, 1, 1]], ew.Locations(n=3))
    >>> ew.pairwise_semantic_similarity(ew.fit_profiles(traces)).tolist()
    [[1.0, 0.75], [0.75, 1.0]]

    """
    everyone = Profiles.of(profiles)
    check_order(order)
    require_choice("mapping", mapping, MAPPINGS)
    check_rng(rng)
    work: Callable[[range], Floats]
    if order == 1:
        check_departures(*everyone)
        entropy = (rng or np.random.default_rng(0)).integers(2**63, size=4).tolist()
        work = partial(_first_order_rows, list(everyone), mapping, entropy)
    elif mapping == "common" and everyone.T > 1:
        work = partial(_common_rows, list(everyone))
    else:
        work = partial(_visit_rows, visits_of(everyone, by_place=False), False)
    sim = _all_rows(work, len(everyone), executor)
    np.fill_diagonal(sim, 1.0)
    return sim


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
    everyone = Profiles.of(profiles)
    return _all_rows(partial(_visit_rows, visits_of(everyone, by_place=True), True), len(everyone), None)


def _all_rows(work: Callable[[range], Floats], U: int, executor: Executor | None) -> Floats:
    bounds = np.linspace(0, U, min(U, BLOCKS) + 1).astype(int).tolist()
    blocks = [range(first, last) for first, last in pairwise(bounds)]
    return np.concatenate(map_over(work, blocks, executor=executor))


def _visit_rows(visits: Visits, by_place: bool, rows: range) -> Floats:
    out = np.empty((len(rows), len(visits.total)))
    visit_similarity(visits, visits, rows.start, by_place, out)
    return out


def _common_rows(everyone: list[MobilityProfile], rows: range) -> Floats:
    return np.array([[common_mapping(everyone[i], v)[0] for v in everyone] for i in rows])


def _first_order_rows(everyone: list[MobilityProfile], mapping: str, entropy: list[int], rows: range) -> Floats:
    pairs = None if mapping == "per-period" else sorted({pair for u in everyone for pair in u.period_pairs()})
    tables = [tables_of(u, pairs) for u in everyone]
    out = np.ones((len(rows), len(everyone)))
    for i in rows:
        for j, v in enumerate(everyone):
            if i != j:
                stream = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(i, j)))
                out[i - rows.start, j] = best_mapping(everyone[i], v, tables[i], tables[j], stream)[0]
    return out
