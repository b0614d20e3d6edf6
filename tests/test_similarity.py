"""Mallows distance, geographic similarity, and semantic similarity of order 0: by hand, by twins, by laws."""

import math
import pickle
from concurrent.futures import Executor, ThreadPoolExecutor
from fractions import Fraction

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import elsewhere as ew
from elsewhere.paper import semantic_similarity as semantic
from elsewhere.paper._similarity_kernels import shared_overlap, sorted_overlap
from elsewhere.paper.geographic_similarity import pairwise_geographic_similarity, scaled_distance
from elsewhere.paper.profiles import MobilityProfile

PERIODS = st.sampled_from([1, 2, 3])
MAPPING = st.sampled_from(["per-period", "common"])


def people(*rows, R=None, T=1):
    """Profiles of one-row users over one day; places are digits of a string, or numbers."""
    r = [[int(place) for place in row] for row in rows]
    R = R or 1 + max(map(max, r))
    traces = ew.Traces(r, ew.Locations(n=R), step_minutes=1440 / len(r[0]))
    return list(ew.fit_profiles(traces, periods=T))


def from_counts(R, *users):
    """Order-0 profiles from (T, R) tables of visits; no moves."""
    none = np.empty(0, dtype=np.int32)
    made = []
    for counts in users:
        table = np.atleast_2d(counts)
        support = np.flatnonzero(table.any(axis=0)).astype(np.int32)
        made.append(MobilityProfile(support, table[:, support], none, none, none, none, np.empty(0, dtype=np.int64), R))
    return made


def renamed(traces, names):
    return ew.Traces(np.asarray(names)[traces.r], traces.locations, users=traces.user, step_minutes=traces.step_minutes)


def tau_of(traces, T):
    return ew.Periods.of(T).of_minute(traces.minutes()).tolist()


# Mallows distance


def test_hamming_is_the_linear_program_with_zero_one_cost():
    rng = np.random.default_rng(1)
    for n in (2, 3, 5, 8):
        for _ in range(10):
            p, q = rng.dirichlet(np.ones(n), size=2)
            hamming = 1 - np.eye(n)

            assert ew.mallows_distance(p, q) == pytest.approx(naive.mallows(p, q, hamming), abs=1e-9)
            assert ew.mallows_distance(p, q, hamming) == pytest.approx(ew.mallows_distance(p, q), abs=1e-12)


def test_transport_equals_the_linear_program_for_any_cost():
    rng = np.random.default_rng(2)
    for n in (2, 4, 7):
        for _ in range(10):
            p, q = rng.dirichlet(np.full(n, 0.4), size=2)
            p[rng.integers(n)] = 0
            p /= p.sum()
            d = rng.uniform(0, 1000, (n, n))  # neither symmetric nor a metric

            assert ew.mallows_distance(p, q, d) == pytest.approx(naive.mallows(p, q, d), rel=1e-9)


def test_on_a_line_it_is_the_area_between_the_distribution_functions():
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 1, 30))
    p, q = rng.dirichlet(np.ones(30), size=2)
    area = np.sum(np.abs(np.cumsum(p - q))[:-1] * np.diff(x))

    assert ew.mallows_distance(p, q, np.abs(x[:, None] - x)) == pytest.approx(area, abs=1e-12)


def test_rounding_in_the_sum_is_normalised_away():
    thirds = [0.3333333, 0.3333333, 0.3333333]

    assert ew.mallows_distance(thirds, [1, 1, 1] / np.float64(3)) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(
    ("p", "q", "d", "code"),
    [
        ([0.5, np.nan], [0.5, 0.5], None, "E_NUMBER"),
        ([1.5, -0.5], [0.5, 0.5], None, "E_NUMBER"),
        ([0.5, 0.4], [0.5, 0.5], None, "E_NUMBER"),
        ([np.inf, 0.5], [0.5, 0.5], None, "E_NUMBER"),
        (["a", "b"], [0.5, 0.5], None, "E_NUMBER"),
        ([[0.5, 0.5]], [0.5, 0.5], None, "E_SHAPE"),
        ([], [], None, "E_SHAPE"),
        ([0.5, 0.5], [0.2, 0.3, 0.5], None, "E_SHAPE"),
        ([0.5, 0.5], [0.5, 0.5], np.zeros((2, 3)), "E_SHAPE"),
        ([0.5, 0.5], [0.5, 0.5], [[0, np.nan], [1, 0]], "E_NUMBER"),
        ([0.5, 0.5], [0.5, 0.5], [[0, -1], [1, 0]], "E_PARAM"),
    ],
)
def test_mallows_refuses(p, q, d, code):
    with pytest.raises(ew.errors.InvalidParameter) as refused:
        ew.mallows_distance(p, q, d)

    assert refused.value.code == code


# by hand


def test_golden_order_0():
    u, v = from_counts(3, [5, 3, 2], [1, 6, 3])

    match = ew.semantic_similarity(u, v)

    assert match.sim == match.upper_bound == 0.9
    assert [sigma.tolist() for sigma in match.sigma] == [[1, 2, 0]]
    assert ew.geographic_similarity(u, v) == 0.6


def test_golden_ties():
    u, v = from_counts(6, [3, 3, 2, 0, 0, 0], [0, 0, 0, 4, 2, 2])

    assert ew.semantic_similarity(u, v).sim == 0.875
    assert ew.semantic_similarity(u, v).sigma[0].tolist() == [3, 4, 5]  # ties in the order of places


def test_alice_and_bob():
    home_a, work_a, home_b, work_b, gym_b = range(5)
    alice, bob = from_counts(
        5,
        [[12, 0, 0, 0, 0], [0, 12, 0, 0, 0]],  # night at home, day at work
        [[0, 0, 12, 0, 0], [0, 0, 0, 9, 3]],  # the same, with a quarter of the day in the gym
    )

    assert alice.support.tolist() == [home_a, work_a]
    per_period = ew.semantic_similarity(alice, bob)
    common = ew.semantic_similarity(alice, bob, mapping="common")

    assert per_period.sim == common.sim == 0.875
    assert [sigma.tolist() for sigma in per_period.sigma] == [[home_b, -1], [-1, work_b]]
    assert [sigma.tolist() for sigma in common.sigma] == [[home_b, work_b]]
    assert ew.geographic_similarity(alice, bob) == 0
    assert ew.semantic_similarity(bob, alice, mapping="common").sigma[0].tolist() == [home_a, work_a, -1]
    assert bob.support.tolist() == [home_b, work_b, gym_b]


def test_weights_are_those_of_the_first_argument():
    # u lives 3/4 in period 0, v 1/4; they agree in period 0 (1) and half agree in period 1
    u, v = from_counts(4, [[6, 0, 0, 0], [0, 2, 0, 0]], [[4, 0, 0, 0], [0, 6, 6, 0]])

    assert ew.semantic_similarity(u, v).sim == 0.75 + 0.25 * 0.5
    assert ew.semantic_similarity(v, u).sim == 0.25 + 0.75 * 0.5
    assert ew.geographic_similarity(u, v) == 0.875
    assert ew.geographic_similarity(v, u) == 0.625


def test_the_conditional_not_the_joint_enters():
    u = from_counts(2, [[6, 0], [1, 1]])[0]

    assert ew.semantic_similarity(u, u).sim == 1
    assert ew.geographic_similarity(u, u) == 1
    assert sum(w * w for w in u.w) < 1  # what the joint would give (E1)


def test_a_period_without_slots_of_v_adds_nothing():
    u, v = from_counts(2, [[3, 0], [0, 1]], [[2, 2], [0, 0]])
    d = np.array([[0, 0.2], [0.2, 0]])

    assert ew.geographic_similarity(u, v) == 0.375
    assert ew.geographic_similarity(u, v, distance=d) == pytest.approx(0.75 * (1 - 0.1))
    assert ew.semantic_similarity(u, v).sim == 0.375
    assert ew.semantic_similarity(u, v).sigma[1].tolist() == [-1, -1]
    assert ew.semantic_similarity(u, v, mapping="common").sim == 0.375


def test_order_1_is_asymmetric_by_hand():
    # u: departures from 0: to 0, to 1; from 1: to 0. v: 0 to 0 three times; 1 is never left
    u, v = people("0010", "0000", R=2)
    # u leaves 0 in 2 of 3 departures, p(u) = (1/2, 1/2), p(v) = (1, 0): 2/3 * 1/2
    assert ew.geographic_similarity(u, v, order=1) == pytest.approx(1 / 3)
    # v leaves 0 only: min = 1/2
    assert ew.geographic_similarity(v, u, order=1) == 0.5


def test_home_and_work_that_swap_at_night():
    u, v = from_counts(2, [[9, 1], [1, 9]], [[9, 1], [9, 1]])

    assert ew.semantic_similarity(u, v).sim == 1
    assert ew.semantic_similarity(u, v, mapping="common").sim == 0.6
    assert len(ew.semantic_similarity(u, v, mapping="common").sigma) == 1


def test_a_common_mapping_leaves_out_pairs_without_overlap():
    # v has no instant in the second period, the only one in which u is at 1: 1 and 3 share nothing
    u, v = from_counts(4, [[4, 0, 0, 0], [0, 4, 0, 0]], [[0, 0, 3, 1], [0, 0, 0, 0]])

    match = ew.semantic_similarity(u, v, mapping="common")

    assert (match.sim, match.sigma[0].tolist()) == (0.375, [2, -1])


def test_a_place_seen_only_at_the_end_does_not_lower_self_similarity():
    u = people("0011020000133334")[0]

    assert ew.geographic_similarity(u, u, order=1) == 1
    assert ew.geographic_similarity(u, u, order=1, distance=1 - np.eye(5)) == pytest.approx(1, abs=1e-12)


def test_values_are_the_exact_fractions_rounded_once():
    rng = np.random.default_rng(7)
    for T in (1, 3):
        for _ in range(200):
            tables = [rng.multinomial(rng.integers(40, 80), rng.dirichlet(np.full(6, 0.5)), size=T) for _ in "uv"]
            u, v = from_counts(6, *tables)
            exact_g, exact_s = Fraction(0), Fraction(0)
            for a, b in zip(*(table.tolist() for table in tables), strict=True):
                A, B = sum(a), sum(b)
                here, there = [Fraction(x, A) for x in a], [Fraction(x, B) for x in b]
                exact_g += A * sum(map(min, here, there))
                exact_s += A * sum(map(min, sorted(here), sorted(there)))

            # so a value on a threshold compares as on paper (R6)
            assert ew.geographic_similarity(u, v) == float(exact_g / int(tables[0].sum()))
            assert ew.semantic_similarity(u, v).sim == float(exact_s / int(tables[0].sum()))


def test_numerators_are_whole_numbers():
    a, b = np.array([5, 3, 2]), np.array([6, 3, 1, 1])

    overlap = sorted_overlap(a, b, 10, 11)
    shared = shared_overlap(np.array([0, 4, 7]), a, np.array([1, 4, 7, 9]), b, 10, 11)

    assert (overlap, shared) == (55 + 30 + 10, 30 + 10)
    assert isinstance(overlap, int | np.integer)
    assert isinstance(shared, int | np.integer)


def test_scaled_distance_is_between_zero_and_one():
    d = scaled_distance(ew.Locations(lat=[46.5, 46.6, 46.5], lon=[6.6, 6.6, 6.7]))

    assert d.max() == 1
    assert d.min() == 0
    np.testing.assert_array_equal(d, d.T)
    assert np.all(scaled_distance(ew.Locations(xy=[[1, 1], [1, 1]])) == 0)
    np.testing.assert_array_equal(scaled_distance(ew.Locations(n=3)), 1 - np.eye(3))


# twins


@settings(deadline=None)  # the first call compiles
@given(strategies.traces(min_users=2, max_users=3), PERIODS)
def test_order_0_equals_the_definition(traces, T):
    tau = tau_of(traces, T)
    profiles = ew.fit_profiles(traces, periods=T)
    u, v = profiles[0], profiles[1]
    a, b = (traces.r[0].tolist(), tau), (traces.r[1].tolist(), tau)

    assert ew.geographic_similarity(u, v) == float(naive.trace_sim_g(a, b, T))
    assert ew.semantic_similarity(u, v).sim == float(naive.trace_sim_s(a, b, T))


@settings(deadline=None)  # the first call compiles
@given(strategies.traces(min_users=2, max_users=2, max_places=5), st.sampled_from([2, 3]))
def test_common_mapping_equals_brute_force(traces, T):
    tau = tau_of(traces, T)
    u, v = ew.fit_profiles(traces, periods=T)
    a, b = (traces.r[0].tolist(), tau), (traces.r[1].tolist(), tau)

    match = ew.semantic_similarity(u, v, mapping="common")

    assert match.sim == match.upper_bound == float(naive.common_sim_s(a, b, traces.R, T))
    assert match.sim == pytest.approx(value_of(u, v, match.sigma * T), abs=1e-12)


def value_of(u, v, sigmas):
    """sum_tau w_tau sum_r min(pi_tau^r(u), pi_tau^sigma(r)(v)) for the sigma of each period."""
    total = 0.0
    for tau, sigma in enumerate(sigmas):
        images = sigma[sigma >= 0].tolist()
        assert len(set(images)) == len(images)
        for k, x in enumerate(sigma.tolist()):
            if x >= 0:
                y = v.support.tolist().index(x)
                total += u.w[tau] * min(u.pi_tau[tau, k], v.pi_tau[tau, y])
    return total


@pytest.mark.parametrize("T", [1, 4])
@pytest.mark.parametrize("mapping", ["per-period", "common"])
def test_equals_scipy_on_300_random_pairs(T, mapping):
    rng = np.random.default_rng(10 * T)
    R = 40
    for _ in range(300):
        tables = []
        for K in rng.integers(1, R, 2):
            table = np.zeros((T, R), dtype=np.int64)
            places = rng.choice(R, K, replace=False)
            table[:, places] = rng.multinomial(rng.integers(1, 90), rng.dirichlet(np.full(K, 0.3)), size=T)
            table[rng.integers(T)] = 0 if T > 1 else table[0]  # an empty period
            tables.append(table)
        u, v = from_counts(R, *tables)
        a, b = (table / np.maximum(1, table.sum(axis=1, keepdims=True)) for table in tables)
        w = tables[0].sum(axis=1) / tables[0].sum()
        overlaps = w[:, None, None] * np.minimum(a[:, :, None], b[:, None, :])
        if mapping == "common":
            overlaps = overlaps.sum(axis=0, keepdims=True)
        expected = sum(o[linear_sum_assignment(o, maximize=True)].sum() for o in overlaps)

        match = ew.semantic_similarity(u, v, mapping=mapping)

        assert match.sim == pytest.approx(expected, abs=1e-12)
        assert value_of(u, v, match.sigma if mapping == "per-period" else match.sigma * T) == pytest.approx(match.sim)


@settings(deadline=None)  # the first call compiles
@given(strategies.traces(min_users=2, max_users=2, max_places=4), PERIODS, st.integers(0, 99))
def test_any_distance_equals_the_definition(traces, T, seed):
    rng = np.random.default_rng(seed)
    d = rng.random((traces.R, traces.R))
    tau = tau_of(traces, T)
    u, v = ew.fit_profiles(traces, periods=T)
    (w, a), (_, b) = (naive.trace_shares(traces.r[i].tolist(), tau, T) for i in (0, 1))
    order_0 = 0.0
    for p in range(T):
        if a[p] and b[p]:
            here, there = ([float(x[p].get(r, 0)) for r in range(traces.R)] for x in (a, b))
            order_0 += float(w[p]) * (1 - naive.mallows(here, there, d))
    chain = [naive.profile([traces.r[i].tolist()], tau, T) for i in (0, 1)]

    assert ew.geographic_similarity(u, v, distance=d) == pytest.approx(order_0, abs=1e-9)
    order_1 = naive.first_order_sim_g(*chain, traces.R, d)
    assert ew.geographic_similarity(u, v, order=1, distance=d) == pytest.approx(order_1, abs=1e-9)


@settings(deadline=None)  # the first call compiles
@given(strategies.traces(min_users=2, max_users=2), PERIODS)
def test_order_1_hamming_equals_the_definition(traces, T):
    tau = tau_of(traces, T)
    u, v = ew.fit_profiles(traces, periods=T)
    a, b = (naive.profile([row], tau, T) for row in traces.r.tolist())

    expected = naive.first_order_value(a, b, range(traces.R))

    assert ew.geographic_similarity(u, v, order=1) == pytest.approx(expected, abs=1e-12)


# laws


@settings(deadline=None)  # the first call compiles
@given(strategies.traces(min_users=2, days=2), PERIODS, MAPPING)
def test_bounds_and_order_of_the_similarities(traces, T, mapping):
    u, v = ew.fit_profiles(traces, periods=T)[:2]
    sim_g = ew.geographic_similarity(u, v)
    sim_s = ew.semantic_similarity(u, v, mapping=mapping).sim

    assert 0 <= sim_g <= sim_s <= 1
    assert ew.semantic_similarity(u, v, mapping="common").sim <= ew.semantic_similarity(u, v).sim
    assert ew.semantic_similarity(u, u, mapping=mapping).sim == 1
    assert ew.geographic_similarity(u, u) == 1
    if T == 1:
        assert ew.geographic_similarity(v, u) == sim_g
        assert ew.semantic_similarity(v, u, mapping=mapping).sim == sim_s
        assert (sim_g == 0) == (not set(u.support.tolist()) & set(v.support.tolist()))  # E14


@settings(deadline=None)  # the first call compiles
@given(strategies.traces(min_users=2), PERIODS, MAPPING, st.randoms())
def test_renaming_places_changes_sim_s_in_nothing(traces, T, mapping, random):
    names = list(range(traces.R))
    random.shuffle(names)
    before, after = ew.fit_profiles(traces, periods=T), ew.fit_profiles(renamed(traces, names), periods=T)

    expected = ew.semantic_similarity(before[0], before[1], mapping=mapping).sim

    assert ew.semantic_similarity(before[0], after[1], mapping=mapping).sim == expected
    assert ew.semantic_similarity(after[0], before[1], mapping=mapping).sim == expected
    assert ew.semantic_similarity(before[0], after[0], mapping=mapping).sim == 1
    assert ew.geographic_similarity(after[0], after[1]) == ew.geographic_similarity(before[0], before[1])


def test_order_0_is_blind_to_the_order_of_slots():
    u, shuffled = people("00011223", "21003102")

    assert ew.semantic_similarity(u, shuffled).sim == 1
    assert ew.semantic_similarity(u, shuffled, order=1).sim < 1


@settings(deadline=None)  # the first call compiles
@given(strategies.traces(min_users=2, max_places=5), PERIODS, st.sampled_from([0, 1]), st.integers(0, 99))
def test_emd_stays_between_zero_and_one(traces, T, order, seed):
    coordinates = np.random.default_rng(seed).normal(size=(traces.R, 2))
    d = scaled_distance(ew.Locations(xy=coordinates))
    u, v = ew.fit_profiles(traces, periods=T)[:2]

    sim = ew.geographic_similarity(u, v, order=order, distance=d)

    assert 0 <= sim <= 1
    assert sim >= ew.geographic_similarity(u, v, order=order) - 1e-9  # d <= Hamming
    assert ew.geographic_similarity(u, u, order=order, distance=d) == pytest.approx(1, abs=1e-9)


def test_counts_that_are_not_whole():
    # a posterior mean (E4): the same value as the profile scaled to whole counts
    u, v = from_counts(4, [[1.25, 0.5, 0, 0.25], [0.5, 0.25, 0, 1.25]], [[0.5, 0.25, 0.75, 0], [0, 0.5, 0.5, 0.5]])
    U, V = from_counts(4, [[5, 2, 0, 1], [2, 1, 0, 5]], [[2, 1, 3, 0], [0, 2, 2, 2]])

    for mapping in ("per-period", "common"):
        got, whole = (ew.semantic_similarity(*pair, mapping=mapping).sim for pair in ((u, v), (U, V)))
        assert got == pytest.approx(whole, abs=1e-12)
    assert ew.geographic_similarity(u, v) == pytest.approx(ew.geographic_similarity(U, V), abs=1e-12)
    assert ew.semantic_similarity(u, u).sim == pytest.approx(1, abs=1e-12)


def test_periods_without_a_common_denominator():
    # the common denominator of 1,440 periods of different lengths has thousands of digits
    rng = np.random.default_rng(8)
    tables = rng.integers(0, 800, (2, 1440, 9))
    tables[rng.random((2, 1440)) < 0.1] = 0
    u, v = from_counts(9, *tables)
    assert math.lcm(*np.maximum(1, v.visits.sum(axis=1)).tolist()) > 10**308
    exact = Fraction(0)
    for a, b in zip(u.visits.tolist(), v.visits.tolist(), strict=True):
        A, B = sum(a), sum(b)
        if A and B:
            exact += Fraction(sum(min(x * B, y * A) for x, y in zip(sorted(a), sorted(b), strict=True)), B)

    assert ew.semantic_similarity(u, v).sim == pytest.approx(float(exact / int(u.visits.sum())), abs=1e-13)
    assert ew.semantic_similarity(u, u).sim == 1


# all pairs


class Pickling(Executor):
    """Every piece of work goes through bytes, as it would to another machine."""

    def map(self, fn, *iterables, **_):
        bytes_in = [pickle.dumps((fn, items)) for items in zip(*iterables, strict=True)]
        for data in reversed(bytes_in):
            work, items = pickle.loads(data)  # noqa: S301, our own bytes
            self.done = getattr(self, "done", [])
            self.done.append(work(*items))
        return reversed(self.done)


@pytest.fixture(scope="module")
def town():
    rng = np.random.default_rng(9)
    r = rng.choice(12, p=rng.dirichlet(np.full(12, 0.5)), size=(14, 24))
    r[:, 6:] = np.where(rng.random((14, 18)) < 0.5, r[:, :18], r[:, 6:])
    return ew.Traces(r, ew.Locations(n=12), users=np.arange(14) // 2, step_minutes=60)


@pytest.mark.parametrize("T", [1, 3])
@pytest.mark.parametrize("mapping", ["per-period", "common"])
def test_all_pairs_are_the_single_pairs(town, T, mapping):
    profiles = ew.fit_profiles(town, periods=T)

    sim = ew.pairwise_semantic_similarity(profiles, mapping=mapping)

    assert sim.shape == (7, 7)
    assert np.array_equal(
        sim, [[ew.semantic_similarity(u, v, mapping=mapping).sim for v in profiles] for u in profiles]
    )
    assert np.array_equal(sim, ew.pairwise_semantic_similarity(list(profiles), mapping=mapping))


def test_all_pairs_are_the_single_pairs_of_sim_g(town):
    profiles = ew.fit_profiles(town, periods=3)

    each = [[ew.geographic_similarity(u, v) for v in profiles] for u in profiles]
    assert np.array_equal(pairwise_geographic_similarity(profiles), each)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mapping", ["per-period", "common"])
def test_executors_change_nothing(town, order, mapping, monkeypatch):
    monkeypatch.setattr(semantic, "STEPS", 50)  # any budget will do
    profiles = ew.fit_profiles(town, periods=2)

    def run(executor):
        rng = np.random.default_rng(5)
        return ew.pairwise_semantic_similarity(profiles, order=order, mapping=mapping, rng=rng, executor=executor)

    alone = run(None)

    with ThreadPoolExecutor(2) as threads:
        assert np.array_equal(run(threads), alone)
    assert np.array_equal(run(Pickling()), alone)


def test_users_of_unequal_length():
    profiles = [*from_counts(3, [5, 3, 2]), *from_counts(3, [10, 60, 30]), *from_counts(3, [0, 0, 1])]

    assert ew.pairwise_semantic_similarity(profiles).tolist() == [[1, 0.9, 0.5], [0.9, 1, 0.6], [0.5, 0.6, 1]]


# bad input


def test_refuses_profiles_that_cannot_be_compared():
    u, more_places, more_periods = people("0011", R=3)[0], people("0011", R=4)[0], people("0011", R=3, T=2)[0]

    for v in (more_places, more_periods):
        for compare in (ew.geographic_similarity, ew.semantic_similarity):
            with pytest.raises(ew.errors.InvalidTraces, match="E_MISMATCH"):
                compare(u, v)
        for compare_all in (ew.pairwise_semantic_similarity, pairwise_geographic_similarity):
            with pytest.raises(ew.errors.InvalidTraces, match="E_MISMATCH"):
                compare_all([u, v])


@pytest.mark.parametrize("compare", [ew.geographic_similarity, ew.semantic_similarity])
def test_refuses_wrong_arguments_of_a_pair(compare):
    u, v = people("0011", "0111")

    for order in (2, -1, "1", None, True, 0.5):
        with pytest.raises(ew.errors.InvalidParameter, match="`order`"):
            compare(u, v, order=order)
    with pytest.raises(ew.errors.InvalidParameter, match="`v` must be a `MobilityProfile`"):
        compare(u, [0.5, 0.5])
    with pytest.raises(ew.errors.InvalidParameter, match="`u` must be a `MobilityProfile`"):
        compare(None, v)


def test_refuses_wrong_mapping_and_rng():
    u, v = people("0011", "0111")

    for compare in (
        lambda **o: ew.semantic_similarity(u, v, **o),
        lambda **o: ew.pairwise_semantic_similarity([u, v], **o),
    ):
        with pytest.raises(ew.errors.InvalidParameter, match="`order`"):
            compare(order=3)
        with pytest.raises(ew.errors.InvalidParameter, match="`mapping` must be one of"):
            compare(mapping="both")
        with pytest.raises(ew.errors.InvalidParameter, match="`rng`"):
            compare(order=1, rng=7)


@pytest.mark.parametrize("compare_all", [pairwise_geographic_similarity, ew.pairwise_semantic_similarity])
def test_refuses_what_is_no_set_of_profiles(compare_all):
    with pytest.raises(ew.errors.InvalidTraces, match="E_EMPTY"):
        compare_all([])
    for wrong in (7, [1, 2], ["u"]):
        with pytest.raises(ew.errors.InvalidParameter, match="`profiles`"):
            compare_all(wrong)


@pytest.mark.parametrize(
    ("distance", "code"),
    [
        (np.zeros((2, 2)), "E_SHAPE"),
        (np.zeros(9), "E_SHAPE"),
        (np.full((3, 3), np.nan), "E_NUMBER"),
        (2 * (1 - np.eye(3)), "E_PARAM"),
        (np.eye(3) - 1, "E_PARAM"),
        ("km", "E_NUMBER"),
    ],
)
def test_refuses_wrong_distances(distance, code):
    u, v = people("0011", "0111", R=3)

    with pytest.raises(ew.errors.InvalidParameter) as refused:
        ew.geographic_similarity(u, v, distance=distance)
    assert refused.value.code == code


def test_order_1_without_a_transition_is_refused():
    still, u = from_counts(2, [1, 0])[0], people("0110")[0]

    for call in (
        lambda: ew.geographic_similarity(still, u, order=1),
        lambda: ew.geographic_similarity(still, u, order=1, distance=1 - np.eye(2)),
        lambda: ew.semantic_similarity(still, u, order=1),
        lambda: ew.pairwise_semantic_similarity([u, still], order=1),
    ):
        with pytest.raises(ew.errors.InvalidTraces, match="E_NO_MOVES"):
            call()
    assert ew.geographic_similarity(u, still, order=1) == 0
    assert ew.semantic_similarity(u, still, order=1).sim == 0
    assert ew.semantic_similarity(u, still, order=1, mapping="common").sim == 0


def test_a_match_does_not_show_places():
    u, v = people("0011", "0111")

    assert "sigma" not in repr(ew.semantic_similarity(u, v))
