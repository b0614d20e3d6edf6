"""Profiles where slots are missing or uncertain (E4): the sampler against enumeration, and against filling forward."""

import math
from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import traces as small_traces

import elsewhere as ew
from elsewhere.paper._generate_kernels import Chain, draw_rows, open_stream
from elsewhere.paper.profiles import (
    FeasibleMoves,
    candidates,
    log_dirichlet,
    sample_user,
    split_r_hat,
)

CHAINS, Z = 100, 4.9  # independent runs; two-sided normal quantile of 1e-6 (R8)


def all_moves(K):
    return FeasibleMoves(np.arange(K), np.arange(0, K * K + 1, K), np.tile(np.arange(K), K))


def with_places(traces, r):
    return ew.Traces(r, traces.locations, users=traces.users, dates=traces.dates, step_minutes=traces.step_minutes)


CASES = {
    "one slot": ([[0, None, 1, 1, 0, 0]], {}, 1.0),
    "a run, its ends and two rows": ([[0, None, None, 1, 2], [None, 1, 0, 2, None]], {}, 1.0),
    "the prior of E4": ([[0, 0, None, 1, 1, 0, 0, 1, None, 0]], {}, 0.01),
    "evidence": ([[0, None, 1, 2, None, 0]], {1: {0: 0.2, 2: 0.7}, 3: {1: 1.0, 2: 3.0}}, 1.0),
}


@pytest.mark.parametrize("case", CASES)
def test_posterior_means_equal_enumeration(case):
    rows, evidence, prior = CASES[case]
    evidence = [evidence] + [{}] * (len(rows) - 1)
    K, L = 3, len(rows[0])
    expected = naive.chain_posterior(rows, range(K), dict.fromkeys(range(K), range(K)), prior, evidence)
    r = np.array([[0 if p is None else p for p in row] for row in rows])
    hidden = np.array([[p is None or t in e for t, p in enumerate(row)] for row, e in zip(rows, evidence, strict=True)])
    sets = candidates(r, hidden, [[row.get(t, {}) for t in range(L)] for row in evidence], np.arange(K))
    tau, pair = np.zeros(L, dtype=np.int32), np.zeros(L - 1, dtype=np.int64)

    runs = [
        sample_user(r, hidden, all_moves(K), sets, tau, pair, 1, 60, prior, stream)
        for stream in np.random.default_rng(5).spawn(CHAINS)
    ]
    got = np.array([np.concatenate([m.visits[0], m.moves[0], m.p[0]]) for m in runs])
    truth = np.array([*expected[0].values(), *expected[1].values(), *expected[2].values()])
    # runs are independent of each other, however slowly each one mixes
    error = got.std(axis=0, ddof=1) / math.sqrt(CHAINS)

    assert np.all(np.abs(got.mean(axis=0) - truth) <= Z * error + 1e-12)
    assert error.max() < 0.05  # or the test could not fail


def drawn(r, hidden, log_p, log_first, weights=None):
    """Rows drawn by a chain of one period; None where no path leads through one."""
    K, (n, L) = len(log_first), np.shape(r)
    evidence = [[(weights or {}).get(t, {}) for t in range(L)]] * n
    sets = candidates(np.array(r), np.array(hidden), evidence, np.arange(K))
    chain, out = Chain(np.asarray(log_first), log_p.reshape(1, K, K), np.zeros(L - 1, dtype=np.int64)), np.array(r)
    return out if draw_rows(chain, *sets, open_stream(np.array([1, 2], dtype=np.uint64), 0, 0), out) else None


def test_a_missing_run_is_drawn_from_its_law():
    p, first = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1]]), np.array([0.2, 0.5, 0.3])
    weights = {1: {0: 1.0, 2: 4.0}}
    n = 40_000

    r = drawn(
        np.tile([0, 0, 0, 2], (n, 1)), np.tile([True, True, True, False], (n, 1)), np.log(p), np.log(first), weights
    )

    law = {}
    for path, w in naive.completions([None, None, None, 2], range(3), weights):
        law[tuple(path)] = w * first[path[0]] * math.prod(p[i, j] for i, j in pairwise(path))
    total = sum(law.values())
    for path, weight in law.items():
        share, q = np.mean(np.all(r == path, axis=1)), weight / total
        assert abs(share - q) <= Z * math.sqrt(q * (1 - q) / n)


def test_a_path_of_any_likelihood_is_found():
    # the only way from 0 to 2 has a probability of e^-20000; no float holds it (E33)
    log_p = np.array([0.0, -1e4, -np.inf, -np.inf, -np.inf, -1e4, -np.inf, -np.inf, 0.0])

    assert drawn([[0, 0, 2]], [[False, True, False]], log_p, np.zeros(3)).tolist() == [[0, 1, 2]]
    log_p[1] = -np.inf
    assert drawn([[0, 0, 2]], [[False, True, False]], log_p, np.zeros(3)) is None


def test_moves_too_rare_for_a_float_are_weighed_where_they_matter():
    # two steps of e^-700 through place 1, or one of e^-800 and a sure one through place 2
    log_p = np.full(16, -np.inf)
    log_p[[1, 2, 4 + 3, 8 + 3]] = -700.0, -1400.0 + math.log(3), -700.0, 0.0
    n = 4000

    r = drawn(np.tile([0, 0, 3], (n, 1)), np.tile([False, True, False], (n, 1)), log_p, np.zeros(4))

    assert abs(np.mean(r[:, 1] == 2) - 0.75) <= Z * math.sqrt(0.75 * 0.25 / n)


def test_dirichlet_draws():
    shape, n = np.array([[0.01, 0.02, 3.0, 1.0, 1e-4]]), 20_000
    draws = np.exp(log_dirichlet(np.tile(shape, (n, 1)), np.array([0, 3, 5]), np.random.default_rng(1)))

    np.testing.assert_allclose(draws[:, :3].sum(axis=1), 1)
    np.testing.assert_allclose(draws[:, 3:].sum(axis=1), 1)
    for k, (a, total) in enumerate([(0.01, 3.03), (0.02, 3.03), (3.0, 3.03), (1.0, 1.0001), (1e-4, 1.0001)]):
        mean = a / total
        deviation = math.sqrt(mean * (1 - mean) / (total + 1) / n)
        assert abs(draws[:, k].mean() - mean) <= Z * deviation


@settings(max_examples=30)
@given(small_traces(days=2), st.sampled_from([1, 3]))
def test_without_gaps_it_is_maximum_likelihood_up_to_the_prior(traces, T):
    plain = ew.fit_profiles(traces, periods=T)
    drawn = ew.fit_profiles(traces, periods=T, missing="gibbs", rng=np.random.default_rng(0))

    for u, v in zip(plain, drawn, strict=True):
        np.testing.assert_array_equal(u.support, v.support)
        np.testing.assert_array_equal(u.visits, v.visits)
        for name in ("tau", "tau_next", "origin", "target"):
            np.testing.assert_array_equal(getattr(u, name), getattr(v, name))
        np.testing.assert_allclose(u.count, v.count, atol=0.01)
    assert drawn.sampling.slots == 0


@settings(max_examples=20)
@given(small_traces(days=2), st.integers(0, 2**32), st.sampled_from([1, 2]))
def test_nothing_is_lost_or_made_up(traces, entropy, T):
    rng = np.random.default_rng(entropy)
    r = np.where(rng.random(traces.r.shape) < 0.4, -1, traces.r)
    r[:, 0] = traces.r[:, 0]
    gappy = with_places(traces, r)
    profiles = ew.fit_profiles(gappy, periods=T, missing="gibbs", rng=rng, sweeps=8)

    visited = {int(p) for p in r.ravel()}
    for u, rows in zip(profiles, np.split(r, traces.U), strict=True):
        assert math.isclose(u.visits.sum(), rows.size, abs_tol=1e-9)
        assert math.isclose(u.count.sum(), 2 * (traces.L - 1), abs_tol=1e-9)
        assert {int(p) for p in u.support} <= visited
    again = ew.fit_profiles(gappy, periods=T, missing="gibbs", rng=np.random.default_rng(1), sweeps=8)
    same = ew.fit_profiles(gappy, periods=T, missing="gibbs", rng=np.random.default_rng(1), sweeps=8)
    np.testing.assert_array_equal(again.move_count, same.move_count)


def test_evidence_decides_against_the_place_written_down():
    # the fix says 1, its radius covers 0 and 1, and the evidence leaves no doubt that it was 0
    traces = ew.Traces([[0, 1, 0, 0, 1, 1]], ew.Locations(n=2), evidence={(0, 1): {0: 1.0}})
    u = ew.fit_profiles(traces, missing="gibbs", rng=np.random.default_rng(1))[0]

    assert u.visits.tolist() == [[4.0, 2.0]]


def chain(rng, U=10, K=6, days=30, L=72):
    """People on chains of their own: mostly they stay."""
    r = np.empty((U * days, L), dtype=np.int64)
    law = [0.3 * rng.dirichlet(np.full(K, 0.5), K) + 0.7 * np.eye(K) for _ in range(U)]
    upto = np.repeat(np.cumsum(law, axis=2), days, axis=0)
    r[:, 0] = rng.integers(K, size=len(r))
    for t in range(1, L):
        row_of_p = upto[np.arange(len(r)), r[:, t - 1]]
        r[:, t] = np.minimum(K - 1, (rng.random((len(r), 1)) >= row_of_p).sum(axis=1))
    return ew.Traces(r, ew.Locations(n=K), users=np.repeat(np.arange(U), days)), law


def rows_away(profiles, law):
    """Mean total variation between rows of p and the law, by departures."""
    away, weight = 0.0, 0.0
    for u, p in zip(profiles, law, strict=True):
        full = np.zeros_like(p)
        full[np.ix_(u.support, u.support)] = u.p()
        leaving = np.bincount(u.support[u.origin], u.count, len(p))
        away += float(leaving @ (np.abs(full - p).sum(axis=1) / 2))
        weight += leaving.sum()
    return away / weight


def test_it_recovers_p_better_than_dropping_or_filling_forward():  # E4
    rng = np.random.default_rng(4)
    traces, law = chain(rng)
    r = np.where(rng.random(traces.r.shape) < 0.3, -1, traces.r)
    r[:, 0] = traces.r[:, 0]
    last = np.maximum.accumulate(np.where(r >= 0, np.arange(traces.L), 0), axis=1)
    forward = np.take_along_axis(r, last, axis=1)
    gappy = with_places(traces, r)
    drawn = ew.fit_profiles(gappy, missing="gibbs", rng=rng, sweeps=100)

    gibbs = rows_away(drawn, law)
    # with a few days only, filling forward wins: it bets on stays, and people do stay
    assert gibbs < rows_away(ew.fit_profiles(gappy, missing="skip"), law)
    assert gibbs < rows_away(ew.fit_profiles(with_places(traces, forward)), law)
    assert drawn.sampling.slots == (r < 0).sum()
    assert drawn.sampling.r_hat < 1.5


def test_periods_have_chains_of_their_own():
    # in the morning 0 leads to 1, in the afternoon back: a gap is filled by its own time of day
    day = [0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0]
    rows = [day] * 10 + [[0, -1, 0, 1, 0, 1, 0, -1, 0, 0, 0, 0]]
    traces = ew.Traces(rows, ew.Locations(n=2), users=[0] * 11, step_minutes=120)
    u = ew.fit_profiles(traces, periods=2, missing="gibbs", rng=np.random.default_rng(2))[0]

    assert u.visits[0, 1] > 32.5
    assert u.visits[1, 1] < 0.2


def test_it_refuses_what_it_cannot_do():
    gappy = ew.Traces([[0, -1, 1]], ew.Locations(n=2))
    for options in ({}, {"rng": 7}, {"rng": np.random.default_rng(1), "sweeps": 0}):
        with pytest.raises(ew.errors.InvalidParameter):
            ew.fit_profiles(gappy, missing="gibbs", **options)
    one = ew.fit_profiles(ew.Traces([[0]], ew.Locations(n=2)), missing="gibbs", rng=np.random.default_rng(1))
    assert one[0].visits.tolist() == [[1.0]]


def test_convergence_figure():
    rng = np.random.default_rng(1)

    assert split_r_hat(rng.normal(size=2000)) < 1.01
    assert split_r_hat(np.r_[rng.normal(size=100), 5 + rng.normal(size=100)]) > 1.5
    assert split_r_hat(np.ones(10)) == 1
