"""Semantic similarity of order 1: never above the optimum, a bound never below it, and as close as brute force says."""

import dataclasses
import itertools

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import elsewhere as ew
from elsewhere.paper import semantic_similarity as semantic
from elsewhere.paper._similarity_kernels import (
    anneal,
    gilmore_lawler,
    mapped_value,
    value_of_two,
)

unhurried = settings(deadline=None)  # the first call compiles
PERIODS = st.sampled_from([1, 2, 3])
MAPPING = st.sampled_from(["per-period", "common"])
ROUNDING = 1e-12


def fitted(rows, R, T=1):
    traces = ew.Traces(rows, ew.Locations(n=R), step_minutes=1440 / len(rows[0]))
    tau = ew.Periods.of(T).of_minute(traces.minutes()).tolist()
    return list(ew.fit_profiles(traces, periods=T)), [naive.profile([row], tau, T) for row in traces.r.tolist()]


def walks(rng, R, L, n=2):
    """Traces that stay for a while, and prefer some places."""
    rows = np.empty((n, L), dtype=int)
    for row in rows:
        w = rng.dirichlet(np.full(R, rng.choice([0.5, 5])))
        stay = rng.choice([0, 0.7])
        row[0] = rng.choice(R, p=w)
        for t in range(1, L):
            row[t] = row[t - 1] if rng.random() < stay else rng.choice(R, p=w)
    return rows


def renamed(u, names):
    """The same life at other places."""
    places = np.asarray(names, dtype=np.int32)[u.support]
    order = np.argsort(places)
    position = np.argsort(order).astype(np.int32)
    return dataclasses.replace(
        u,
        support=places[order],
        visits=u.visits[:, order],
        origin=position[u.origin],
        target=position[u.target],
    )


def value_of(u, v, match, common):
    """V of the sigma that was returned, from p and alpha; what is unmatched adds nothing."""
    total = 0.0
    pairs = u.period_pairs()
    for pair, sigma in zip(pairs, match.sigma * len(pairs) if common else match.sigma, strict=True):
        images = sigma[sigma >= 0].tolist()
        assert len(set(images)) == len(images)
        position = {place: x for x, place in enumerate(v.support.tolist())}
        p, q, alpha = u.p(*pair), v.p(*pair), u.alpha(*pair)
        for a, x in enumerate(sigma.tolist()):
            for b, y in enumerate(sigma.tolist()):
                if x >= 0 and y >= 0:
                    total += alpha[a] * min(p[a, b], q[position[x], position[y]])
    return total


def test_golden():
    (u, v), (a, b) = fitted([[int(c) for c in "0001100220"], [int(c) for c in "0011100020"]], 3)

    match = ew.semantic_similarity(u, v, order=1)

    assert match.sim == pytest.approx(23 / 27, abs=ROUNDING)
    assert match.upper_bound == match.sim
    assert match.gap == 0
    assert match.sigma[0].tolist() in ([0, 1, 2], [0, 2, 1])
    for sigma in ([0, 1, 2], [0, 2, 1]):
        assert naive.first_order_value(a, b, sigma) == pytest.approx(23 / 27, abs=ROUNDING)


def test_the_identity_gives_sim_g():
    rng = np.random.default_rng(1)
    for T in (1, 3):
        (u, v), (a, b) = fitted(walks(rng, 5, 30), 5, T)

        assert naive.first_order_value(a, b, range(5)) == pytest.approx(
            ew.geographic_similarity(u, v, order=1), abs=ROUNDING
        )


def test_the_second_chain_is_that_of_v():
    # with (u) twice, as printed, every pair would have similarity 1 (E17)
    (u, v), _ = fitted([[0, 1, 0, 1, 0, 1], [0, 0, 0, 1, 1, 1]], 2)

    assert ew.semantic_similarity(u, v, order=1).sim == pytest.approx(3 / 5 * 1 / 3, abs=ROUNDING)


def test_the_order_of_arguments_matters():
    (u, v), _ = fitted([[0, 0, 1, 0], [0, 0, 0, 0]], 2)

    assert ew.semantic_similarity(u, v, order=1).sim == pytest.approx(1 / 3, abs=ROUNDING)
    assert ew.semantic_similarity(v, u, order=1).sim == 0.5


@unhurried
@given(strategies.traces(min_users=2, max_users=2, max_places=5, max_slots=10), PERIODS, MAPPING)
def test_small_cases_are_solved_and_proven(traces, T, mapping):
    (u, v), (a, b) = fitted(traces.r, traces.R, T)
    optimum = naive.first_order_sim_s(a, b, traces.R, common=mapping == "common")

    match = ew.semantic_similarity(u, v, order=1, mapping=mapping)

    assert match.sim == pytest.approx(optimum, abs=ROUNDING)
    assert match.upper_bound == pytest.approx(match.sim, abs=ROUNDING)
    assert value_of(u, v, match, mapping == "common") == pytest.approx(match.sim, abs=ROUNDING)


@pytest.mark.parametrize("R", [6, 7])
def test_start_value_optimum_bound(R, monkeypatch):
    """E25 for the search itself: with enumeration switched off, in that order, and optimal in 95 % of the cases."""
    rng = np.random.default_rng(R)
    monkeypatch.setattr(semantic, "ALL", 0)
    hits, tight, cases = 0, 0, 60 if R == 6 else 8
    for _ in range(cases):
        (u, v), (a, b) = fitted(walks(rng, R, int(rng.integers(8, 60))), R)
        optimum = naive.first_order_sim_s(a, b, R)
        by_visits = dict(zip(ranked(u), ranked(v), strict=False))
        start = naive.first_order_value(a, b, {r: by_visits.get(r, -1) for r in range(R)})

        match = ew.semantic_similarity(u, v, order=1)

        assert start - ROUNDING <= match.sim <= optimum + ROUNDING
        assert optimum - ROUNDING <= match.upper_bound <= 1
        hits += match.sim >= optimum - ROUNDING
        tight += match.gap == 0
    assert hits >= 0.95 * cases
    assert tight < cases  # else nothing was searched


def ranked(u):
    return u.support[np.argsort(-u.visits[0], kind="stable")].tolist()


def tables(seed, R_u, R_v, T=1):
    """The tables of two users with about R_u and R_v places, one of them for all pairs of periods."""
    rng = np.random.default_rng(seed)
    R = max(R_u, R_v)
    (u, _), _ = fitted(walks(rng, R_u, 80), R, T)
    (v, _), _ = fitted(walks(rng, R_v, 80), R, T)
    pairs = u.period_pairs()
    a, b = semantic.tables_of(u, pairs)[None], semantic.tables_of(v, pairs)[None]
    return a, semantic._pad(b, len(a.k))


@pytest.mark.parametrize(("R_u", "R_v", "T"), [(8, 8, 1), (5, 11, 1), (11, 5, 1), (9, 7, 3)])
def test_a_swap_gains_what_full_evaluation_says(R_u, R_v, T):
    a, b = tables(3, R_u, R_v, T)
    n = b.leaving.shape[1]
    rng = np.random.default_rng(4)
    for _ in range(300):
        sigma = rng.permutation(n)
        i, j = rng.choice(n, 2, replace=False)
        swapped = sigma.copy()
        swapped[[i, j]] = sigma[[j, i]]

        gain = value_of_two(a, b, swapped, i, j) - value_of_two(a, b, sigma, i, j)

        assert gain == pytest.approx(mapped_value(a, b, swapped) - mapped_value(a, b, sigma), abs=1e-10)


def test_annealing_keeps_the_best_it_met():
    a, b = tables(5, 12, 10)
    n = b.leaving.shape[1]
    rng = np.random.default_rng(6)
    for start in (np.arange(n), rng.permutation(n)):
        before = mapped_value(a, b, start)
        kept = start.copy()
        # so hot that every step is accepted: a random walk, whose last mapping is rarely its best
        found = anneal(a, b, start, np.inf, 1e9, 1e9, rng.random((1, 500, 3)))

        assert sorted(found) == list(range(n))
        assert mapped_value(a, b, found) >= before
        assert np.array_equal(start, kept)
    cold = anneal(a, b, start, np.inf, 5.0, 0.1, rng.random((5, 2400, 3)))
    assert mapped_value(a, b, cold) > mapped_value(a, b, found)


def test_annealing_leaves_mappings_that_no_swap_improves():
    rng, traps = np.random.default_rng(7), 0
    for seed in range(8):
        a, b = tables(seed, 5, 5)
        n, hot = b.leaving.shape[1], semantic.HOT * float(a.leaving.sum())
        value = {sigma: mapped_value(a, b, np.array(sigma)) for sigma in itertools.permutations(range(n))}
        best = max(value.values())
        for sigma, here in value.items():
            swapped = []
            for i, j in itertools.combinations(range(n), 2):
                other = list(sigma)
                other[i], other[j] = sigma[j], sigma[i]
                swapped.append(value[tuple(other)])
            if max(swapped) <= here < best - 0.5:
                uniform = rng.random((semantic.ROUNDS, semantic.STEPS, 3))
                found = anneal(a, b, np.array(sigma), np.inf, hot, semantic.COLD, uniform)
                assert value[tuple(found)] == pytest.approx(best)
                traps += 1
    assert traps > 3


def test_annealing_stops_at_the_goal():
    a, b = tables(5, 12, 10)
    start = np.arange(b.leaving.shape[1])

    assert np.array_equal(anneal(a, b, start, 0.0, 5.0, 0.1, np.zeros((1, 9, 3))), start)


def test_gilmore_lawler_by_definition_is_the_most_that_a_row_can_add():
    for seed in range(4):
        a, b = tables(seed, 4, 5)
        M = gilmore_lawler(a, b)
        most = np.zeros_like(M)
        for sigma in map(np.array, itertools.permutations(range(M.shape[1]))):
            for r, x in enumerate(sigma[: len(M)]):
                adds = a.leaving[0, r] * np.minimum(a.p[0, r], b.p[0, x, sigma[: len(M)]]).sum()
                most[r, x] = max(most[r, x], adds)
        assert M == pytest.approx(most)


def test_gilmore_lawler_bounds_every_mapping():
    rng = np.random.default_rng(8)
    for seed in range(5):
        a, b = tables(seed, 9, 8, T=2)
        M = gilmore_lawler(a, b)
        x = linear_sum_assignment(M, maximize=True)[1]
        bound = M[np.arange(len(M)), x].sum()
        for _ in range(100):
            sigma = rng.permutation(M.shape[1])
            assert mapped_value(a, b, sigma) <= M[np.arange(len(M)), sigma[: len(M)]].sum() + 1e-10 <= bound + 1e-9


@unhurried
@given(strategies.traces(min_users=2, max_users=2, days=2), PERIODS, MAPPING, st.randoms())
def test_laws(traces, T, mapping, random):
    u, v = ew.fit_profiles(traces, periods=T)
    names = list(range(traces.R))
    random.shuffle(names)

    match = ew.semantic_similarity(u, v, order=1, mapping=mapping)

    assert 0 <= match.sim <= match.upper_bound <= 1
    assert match.sim >= ew.geographic_similarity(u, v, order=1) - ROUNDING
    assert ew.semantic_similarity(u, u, order=1, mapping=mapping).sim == 1
    assert ew.semantic_similarity(u, renamed(u, names), order=1, mapping=mapping).sim == pytest.approx(1, abs=ROUNDING)
    there = ew.semantic_similarity(u, renamed(v, names), order=1, mapping=mapping)
    assert there.sim == pytest.approx(match.sim, abs=ROUNDING)
    assert len(match.sigma) == (1 if mapping == "common" else len(u.period_pairs()))
    one = ew.semantic_similarity(u, v, order=1, mapping="common").sim
    assert one <= ew.semantic_similarity(u, v, order=1).sim + ROUNDING


@pytest.mark.parametrize("mapping", ["per-period", "common"])
@pytest.mark.parametrize("T", [1, 4])
def test_many_places(T, mapping):
    rng = np.random.default_rng(11)
    (u, v, w), _ = fitted(walks(rng, 25, 144, n=3), 25, T)
    assert u.K > 2 * semantic.ALL

    for other in (v, w, renamed(v, rng.permutation(25))):
        match = ew.semantic_similarity(u, other, order=1, mapping=mapping)
        assert ew.geographic_similarity(u, other, order=1) <= match.sim <= match.upper_bound <= 1
        assert value_of(u, other, match, mapping == "common") == pytest.approx(match.sim, abs=ROUNDING)
    assert ew.semantic_similarity(u, u, order=1, mapping=mapping).gap == 0


def test_only_places_with_a_move_in_common_are_matched():
    # u also goes 1 -> 2 -> 3, v stays at 4 or leaves it for 5: only the stay and one departure are shared
    (u, v), _ = fitted([[0, 0, 0, 1, 2, 3], [4, 4, 4, 4, 4, 5]], 6)

    match = ew.semantic_similarity(u, v, order=1)

    assert match.sim == pytest.approx(3 / 5 * (2 / 3 + 1 / 5), abs=ROUNDING)
    assert match.sigma[0].tolist() == [4, 5, -1, -1]


def test_places_that_share_nothing_are_not_matched():
    # u stays at 0 and swings between 1 and 2; v only stays, at 3 and at 4: nobody is left for 4
    traces = ew.Traces([[0, 0, 0], [1, 2, 1], [3, 3, 3], [4, 4, 4]], ew.Locations(n=5), users=[0, 0, 1, 1])
    u, v = ew.fit_profiles(traces)

    match = ew.semantic_similarity(u, v, order=1)

    assert (match.sim, match.gap, sorted(match.sigma[0].tolist())) == (0.5, 0, [-1, -1, 3])


def test_sim_s_is_not_below_sim_g_even_without_a_search(monkeypatch):
    # one round through 20 places, with detours to places of one's own: hard to find, but both walk it
    rng = np.random.default_rng(14)
    rows = np.full((2, 120), 10)
    for row, own in zip(rows, (0, 30), strict=True):
        for t in range(1, 120):
            row[t] = 10 + t % 20 if rng.random() < 0.9 else own + rng.integers(10)
    (u, v), _ = fitted(rows, 40)
    monkeypatch.setattr(semantic, "STEPS", 1)

    assert ew.semantic_similarity(u, v, order=1).sim >= ew.geographic_similarity(u, v, order=1) - ROUNDING


def test_draws_come_from_rng_alone():
    (u, v), _ = fitted(walks(np.random.default_rng(12), 20, 100), 20)

    def sim(rng):
        match = ew.semantic_similarity(u, v, order=1, rng=rng)
        return match.sim, [s.tolist() for s in match.sigma]

    assert sim(None) == sim(None) == sim(np.random.default_rng(0))
    assert sim(np.random.default_rng(3)) == sim(np.random.default_rng(3))
    state = np.random.default_rng(3)
    sim(state)
    assert state.random() != np.random.default_rng(3).random()


def test_every_pair_has_its_own_stream():
    (u, v, w), _ = fitted(walks(np.random.default_rng(13), 20, 100, n=3), 20)

    sim = ew.pairwise_semantic_similarity([u, v, w], order=1, rng=np.random.default_rng(1))

    assert np.array_equal(sim, ew.pairwise_semantic_similarity([u, v, w], order=1, rng=np.random.default_rng(1)))
    # a pair's value does not depend on who comes after it
    fewer = ew.pairwise_semantic_similarity([u, v], order=1, rng=np.random.default_rng(1))
    assert np.array_equal(sim[:2, :2], fewer)
    assert np.array_equal(np.diag(sim), [1, 1, 1])
    bound = ew.semantic_similarity(u, v, order=1).upper_bound
    assert ew.geographic_similarity(u, v, order=1) <= sim[0, 1] <= bound
