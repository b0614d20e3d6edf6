"""
SemanticSimilarity(u, v)                                                                  (fig:alg)
    Compute   mobility models <p(u), pi(u)> and <p(v), pi(v)>
    Compute   optimal mapping sigma_u^v from eq:hdkp
    Compute   semantic similarity sim_S(u, v) from eq:hdk
    Return    sim_S(u, v), sigma_u^v

How alike two people live once their places are renamed (sec:similarity:semantic).

At order 0 the best mapping is found exactly: rank with rank in one period, an assignment over several (E19, E20).

At order 1 it is searched for, with a certificate (eq:hs1, E17, E25): for a pair of periods, or for all of them
together, maximise

    V(sigma) = sum_{r,r'} alpha_r min(p(u)_r^r', p(v)_sigma(r)^sigma(r')),

a quadratic assignment problem. An assignment on the Gilmore-Lawler matrix bounds it from above; Metropolis steps with
cooling look for a mapping that comes close. Everything is counted in departures of u, and divided by their number last.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from elsewhere.data.visits import Codes, Floats, Ints
from elsewhere.errors import require_choice, require_rng, require_whole
from elsewhere.paper._similarity_kernels import (
    anneal,
    gilmore_lawler,
    mapped_value,
)
from elsewhere.paper.geographic_similarity import (
    all_rows,
    check_departures,
    check_pair,
    common_multiple,
    similarity_rows,
    visits_of,
)
from elsewhere.paper.profiles import Counts, MobilityProfile, Profiles


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
    sigma: list[Codes] = field(repr=False)
    upper_bound: float

    @property
    def gap(self) -> float:
        """Return `upper_bound` - `sim`; 0 means proven optimal."""
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
    Return sim_S(u, v), the largest sim_G over all renamings of places, and the best renaming (SemanticSimilarity).

    Order 0, exact (eq:hs0, signs as in E16): sum_tau w_tau(u) max_sigma sum_r min(pi_tau^r(u), pi_tau^sigma(r)(v)), by
    matching sorted visits (E20); w_tau(u) is the share of u's slots in period tau. It compares how the time is shared
    out among places, and is blind to which and when (E21).

    Order 1 (eq:hs1, E17) compares moves and is a quadratic assignment problem: exact up to 6 places, beyond that a
    search over swaps with a certified upper bound beside it (E25).

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
    check_pair(u, v)  # the mobility models <p(u), pi(u)> and <p(v), pi(v)>, as `fit_profiles` computes them
    sigma, upper_bound = optimal_mapping(u, v, order, mapping, rng)
    sim = similarity_under(sigma, u, v, order, mapping)
    return SemanticMatch(sim, sigma, max(sim, upper_bound))


def optimal_mapping(
    u: MobilityProfile, v: MobilityProfile, order: int, mapping: str, rng: np.random.Generator | None
) -> tuple[list[Codes], float]:
    """Return sigma_u^v of eq:hdkp, as `SemanticMatch` has it, and an upper bound of sim_S; 0 where sigma is exact."""
    check_options(order, mapping, rng)
    if order == 1:
        check_departures(u)
        return best_mapping(u, v, *_both_tables(u, v, mapping), rng or np.random.default_rng(0))
    if mapping == "common" and u.T > 1:
        return [_places(v, common_mapping(u, v))], 0.0
    return [_places(v, rank_mapping(a, b)) for a, b in zip(u.visits, v.visits, strict=True)], 0.0


def check_options(order: int, mapping: str, rng: Any) -> None:
    """Refuse what is no order, mapping or generator."""
    require_whole("order", order, 0, 1)
    require_choice("mapping", mapping, ("per-period", "common"))
    if rng is not None:
        require_rng(rng)


def similarity_under(
    sigma: list[Codes], u: MobilityProfile, v: MobilityProfile, order: int = 0, mapping: str = "per-period"
) -> float:
    """
    Return the similarity of u to v with v's places renamed by `sigma` (eq:hs0, eq:hs1; signs as in E16, E17).

    Sums are of whole numbers, as in `_similarity_kernels.py`: the only rounding is in the last quotient.
    """
    images = [np.where(places >= 0, np.searchsorted(v.support, places), -1) for places in sigma]
    if order == 1:
        tables_u, tables_v = _both_tables(u, v, mapping)
        value = 0.0
        for (pair, table), image in zip(tables_u.items(), images, strict=True):
            if pair in tables_v:
                position = np.full(v.K + 1, -1)
                position[tables_v[pair].k] = np.arange(len(tables_v[pair].k))
                value += mapped_value(table, tables_v[pair], position[image[table.k]])
        return min(1.0, value / float(u.count.sum()))
    n, m = u.visits.sum(axis=1), v.visits.sum(axis=1)
    M = common_multiple(m, float(n.sum()))
    X = 0.0
    for tau in np.flatnonzero((n > 0) & (m > 0)):
        image = images[tau if len(images) > 1 else 0]
        r = np.flatnonzero(image >= 0)
        y = np.minimum(u.visits[tau, r] * m[tau], v.visits[tau, image[r]] * n[tau]).sum()
        X += float(y * (M // m[tau])) if M else float(y / m[tau])
    return min(1.0, float(X / (n.sum() * max(M, 1))))


def _places(v: MobilityProfile, positions: Ints) -> Codes:
    return np.where(positions >= 0, v.support[positions], -1).astype(np.int32)


def _both_tables(u: MobilityProfile, v: MobilityProfile, mapping: str) -> "tuple[Tables, Tables]":
    pairs = None if mapping == "per-period" else u.period_pairs()
    return tables_of(u, pairs), tables_of(v, pairs)


def rank_places(count: Counts) -> Ints:
    """Return the positions by falling count, ties in their old order: the canonical sorted order of E22."""
    return np.argsort(-count, kind="stable")


def rank_mapping(a: Counts, b: Counts) -> Ints:
    """Return sigma of the sorted matching of two vectors of counts, as positions; -1 beyond the shorter list."""
    n = min(np.count_nonzero(a), np.count_nonzero(b))
    sigma = np.full(len(a), -1)
    sigma[rank_places(a)[:n]] = rank_places(b)[:n]
    return sigma


def common_mapping(u: MobilityProfile, v: MobilityProfile) -> Ints:
    """
    Return sigma, as positions, of the best common mapping.

    It maximises sum_{r,tau} w_tau(u) min(pi_tau^r(u), pi_tau^sigma(r)(v)) over one sigma for all periods, w_tau(u)
    the share of u's slots in period tau. Benefits are whole numbers, as in `_similarity_kernels.py`, so that the
    assignment too is exact.
    """
    from scipy.optimize import linear_sum_assignment

    lived_u, lived_v = u.visits.sum(axis=1), v.visits.sum(axis=1)
    M, m = common_multiple(lived_v, float(lived_u.sum())), np.where(lived_v > 0, lived_v, 1)[:, None, None]
    a = (u.visits * lived_v[:, None])[:, :, None]
    b = (v.visits * lived_u[:, None])[:, None, :]
    overlap = np.minimum(a, b).astype(np.float64)
    benefit = (overlap * (M // m) if M else overlap / m).sum(axis=0)
    r, x = linear_sum_assignment(benefit, maximize=True)
    gains = benefit[r, x]
    sigma = np.full(u.K, -1)
    # a pair without overlap fills up the permutation, it is no evidence (E22)
    sigma[r[gains > 0]] = x[gains > 0]
    return sigma


PROVEN = 1e-12  # a gap below this is rounding
ALL = 6  # up to this many places all n! mappings are tried: 720 cost less than the search
ROUNDS, STEPS = 5, 2400
HOT, COLD = 0.05, 0.1  # first temperature as a share of u's departures, last one in departures


class Table(NamedTuple):
    """
    Moves of one user on n of the user's places, between some pairs of periods (first axis).

    `k` are the places, as positions in the support, and `weight` orders them for the order-0 mapping. Counts
    `counts[., r, r']`, departures `leaving[., r]`, their quotient `p`, and `ranked`: p without its diagonal, each row
    sorted downwards.
    """

    k: Ints
    weight: Floats
    counts: Floats
    leaving: Floats
    p: Floats
    ranked: Floats


Tables = dict[tuple[int, int] | None, Table]


def tables_of(u: MobilityProfile, pairs: Sequence[tuple[int, int]] | None) -> Tables:
    """
    Return one table per pair of periods, on the places that take part; or a single one of all `pairs`, on the
    support.
    """
    if pairs is not None:
        moves = np.stack([u.moves(*pair) for pair in pairs]).astype(np.float64)
        return {None: _table(np.arange(u.K), u.visits.sum(axis=0), moves)}
    tables: Tables = {}
    for tau, tau_next in u.period_pairs():
        moves = u.moves(tau, tau_next).astype(np.float64)
        k = np.flatnonzero(moves.any(axis=0) | moves.any(axis=1))
        tables[tau, tau_next] = _table(k, (u.visits[tau] + u.visits[tau_next])[k], moves[None, k][:, :, k])
    return tables


def _table(k: Ints, weight: Counts, count: Floats) -> Table:
    n, count = len(k), np.ascontiguousarray(count)  # one layout: kernels are compiled for each
    leaving = count.sum(axis=2)
    p = np.divide(count, leaving[:, :, None], out=np.zeros_like(count), where=leaving[:, :, None] > 0)
    out = p.copy()
    out[:, np.arange(n), np.arange(n)] = 0
    return Table(k, weight.astype(np.float64), count, leaving, p, -np.sort(-out, axis=2))


def _pad(v: Table, n: int) -> Table:
    """Return the moves among at least n places, the new ones never visited: V has the same maximum."""
    size = len(v.k)
    if size >= n:
        return v

    def widen(array: Floats) -> Floats:
        out = np.zeros((len(array),) + (n,) * (array.ndim - 1))
        out[(slice(None),) + (slice(size),) * (array.ndim - 1)] = array
        return out

    return v._replace(counts=widen(v.counts), leaving=widen(v.leaving), p=widen(v.p), ranked=widen(v.ranked))


def best_mapping(
    u: MobilityProfile, v: MobilityProfile, tables_u: Tables, tables_v: Tables, rng: np.random.Generator
) -> tuple[list[Codes], float]:
    """Return one sigma per table of u, and the upper bound of sim_S."""
    upper, sigma = 0.0, []
    for pair, table in tables_u.items():
        places = np.full(u.K, -1, dtype=np.int32)
        sigma.append(places)
        if pair not in tables_v:
            continue
        other = _pad(tables_v[pair], len(table.k))
        zeroth = common_mapping(u, v) if pair is None else rank_mapping(table.weight, other.weight)
        at_most, image = _search(table, other, [zeroth, _shared_places(u, v, table, other)], rng)
        upper += at_most
        # places without a move in common fill up the permutation, they are no evidence (E22)
        image = image[: len(table.k)]
        shared = (table.counts > 0) & (other.counts[:, image][:, :, image] > 0)
        r = np.flatnonzero(shared.any(axis=(0, 1)) | shared.any(axis=(0, 2)))
        places[table.k[r]] = v.support[other.k[image[r]]]
    return sigma, min(1.0, upper / float(u.count.sum()))


def _shared_places(u: MobilityProfile, v: MobilityProfile, a: Table, b: Table) -> Ints:
    """Return the identity on the places of both, -1 elsewhere."""
    sigma = np.full(len(a.k), -1)
    _, r, x = np.intersect1d(u.support[a.k], v.support[b.k], assume_unique=True, return_indices=True)
    sigma[r] = x
    return sigma


def _completed(start: Ints, n: int) -> Ints:
    """Return a partial mapping, -1 where it says nothing, as a permutation: free places in their order fill it up."""
    sigma = np.append(start, np.full(n - len(start), -1)).astype(np.int64)
    sigma[sigma < 0] = np.setdiff1d(np.arange(n), sigma)
    return sigma


def _search(a: Table, b: Table, starts: list[Ints], rng: np.random.Generator) -> tuple[float, Ints]:
    """Return the upper bound of V, in departures of u, and the mapping found."""
    from scipy.optimize import linear_sum_assignment

    M = gilmore_lawler(a, b)
    lawler = linear_sum_assignment(M, maximize=True)[1]
    bound = float(M[np.arange(len(M)), lawler].sum())
    whole = [_completed(start, M.shape[1]) for start in (*starts, lawler)]
    best = max(whole, key=lambda sigma: mapped_value(a, b, sigma))
    value = float(mapped_value(a, b, best))
    slack = PROVEN * float(a.leaving.sum())
    if bound - value > slack:
        gap = bound - value - slack / 2
        if len(best) <= ALL:
            best = max([best, *map(np.array, permutations(best))], key=lambda sigma: mapped_value(a, b, sigma))
            bound = value = float(mapped_value(a, b, best))
        else:
            uniform = rng.random((ROUNDS, STEPS, 3))
            best = anneal(a, b, best, gap, HOT * float(a.leaving.sum()), COLD, uniform)
            value = float(mapped_value(a, b, best))
    return bound if bound - value > slack else value, best


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
    check_options(order, mapping, rng)
    work: Callable[[range], Floats]
    if order == 1:
        check_departures(*everyone)
    if order == 1 or (mapping == "common" and everyone.T > 1):
        work = partial(_rows_of_pairs, list(everyone), order, mapping, entropy_of(rng))
    else:
        visits = visits_of(everyone)
        work = partial(similarity_rows, visits, visits, True)
    sim = all_rows(work, len(everyone), executor)
    np.fill_diagonal(sim, 1.0)
    return sim


def entropy_of(rng: np.random.Generator | None) -> list[int]:
    """Return what the streams of all pairs begin with; without `rng` always the same."""
    return list(map(int, (rng or np.random.default_rng(0)).integers(2**63, size=4)))


def matches_of(
    everyone: list[MobilityProfile], order: int, mapping: str, entropy: list[int], i: int
) -> Iterator[tuple[int, SemanticMatch]]:
    """Yield the matches of user i with all others; each pair draws from a stream of its own."""
    for j, v in enumerate(everyone):
        if i != j:
            stream = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(i, j)))
            yield j, semantic_similarity(everyone[i], v, order=order, mapping=mapping, rng=stream)


def _rows_of_pairs(
    everyone: list[MobilityProfile], order: int, mapping: str, entropy: list[int], rows: range
) -> Floats:
    out = np.ones((len(rows), len(everyone)))
    for i in rows:
        for j, match in matches_of(everyone, order, mapping, entropy, i):
            out[i - rows.start, j] = match.sim
    return out
