"""The aggregate model: the formula by hand, equality with the slow twin, golden values on PF Tokyo."""

import tracemalloc
import warnings
from pathlib import Path

import naive
import numpy as np
import pytest
import strategies
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

import elsewhere as ew
from elsewhere.paper.profiles import MobilityProfile

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "pf_tokyo"
PERIODS = st.sampled_from([1, 2, 4])


def trace(*places, R=None, **options):
    return ew.Traces([list(places)], ew.Locations(n=R or max(places) + 1), **options)


def by_user(traces):
    return [traces.r[traces.user == u].tolist() for u in range(traces.U)]


def periods_of(traces, T):
    return ew.Periods.of(T).of_minute(traces.minutes()).tolist()


def by_hand(p, pi):
    """A profile with the transition matrix `p` and visiting probabilities `pi` as float counts."""
    p = np.asarray(p, dtype=float)
    origin, target = np.nonzero(p)
    K = len(p)
    none = np.zeros(len(origin), dtype=np.int32)
    return MobilityProfile(
        np.arange(K), np.asarray([pi], dtype=float), none, none, origin, target, 7.0 * p[origin, target], K
    )


TOY = [([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5]), ([[0.5, 0.5], [0.01, 0.99]], [0.01 / 0.51, 0.5 / 0.51])]


def stationary(p):
    values, vectors = np.linalg.eig(p.T)
    law = np.real(vectors[:, np.argmax(np.real(values))])
    return law / law.sum()


@pytest.mark.parametrize("epsilon", [0, 1e-12])
def test_pi_bar_is_not_the_steady_state(epsilon):  # E32, golden
    model = ew.aggregate([by_hand(p, pi) for p, pi in TOY], ew.Locations(n=2), epsilon=epsilon)

    np.testing.assert_allclose(model.pi_bar, [0.2598, 0.7402], atol=5e-5)
    np.testing.assert_allclose(model.table(), [[0.7, 0.3], [0.055, 0.945]], atol=1e-11)
    np.testing.assert_allclose(stationary(model.table()), [0.1549, 0.8451], atol=5e-5)
    assert np.abs(stationary(model.table()) - model.pi_bar).sum() / 2 == pytest.approx(0.1049, abs=5e-5)


def spread(R, seed):
    return ew.Locations(xy=np.random.default_rng(seed).uniform(0, 6, (R, 2)))


@st.composite
def cases(draw):
    traces = draw(strategies.traces(days=2, max_slots=12))
    T = draw(PERIODS)
    locations = spread(traces.R, draw(st.integers(0, 99)))
    feasible = None
    if draw(st.booleans()):
        cells = draw(st.lists(st.booleans(), min_size=traces.R**2, max_size=traces.R**2))
        feasible = np.array(cells).reshape(traces.R, traces.R)
        assume(feasible.any(axis=1).all())
    return traces, T, locations, feasible, draw(st.sampled_from([1.0, 0.01, 1e-4])), draw(st.integers(1, 6))


@settings(deadline=None)
@given(cases())
def test_aggregate_equals_its_slow_twin(case):  # E34-E37
    traces, T, locations, feasible, epsilon, n_min = case
    users, tau, R = by_user(traces), periods_of(traces, T), traces.R
    d = [[float(np.hypot(*(a - b))) for b in locations.xy] for a in locations.xy]

    model = ew.aggregate(ew.fit_profiles(traces, periods=T), locations, epsilon=epsilon, feasible=feasible, n_min=n_min)

    for pair in [(t, s) for t in range(T) for s in range(T)]:
        ref = [
            naive.aggregate_row(users, tau, T, r, pair, d, epsilon=epsilon, n_min=n_min, feasible=feasible)
            for r in range(R)
        ]
        np.testing.assert_allclose(model.table(*pair), ref, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(model.rows(np.arange(R), *pair), ref, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(model.rows(R - 1, *pair), ref[R - 1], rtol=1e-12, atol=1e-15)
        picked, to = [R - 1, 0, R - 1], [1, 1, 0]
        np.testing.assert_allclose(
            model.block(picked, to, *pair), np.array(ref)[np.ix_(picked, to)], rtol=1e-12, atol=1e-15
        )
    np.testing.assert_allclose(model.pi_bar, naive.aggregate_first(users, tau, T, R), rtol=1e-12)
    for t in range(T):
        np.testing.assert_allclose(model.first(t), naive.aggregate_first(users, tau, T, R, t), rtol=1e-12)
    assert model.visitors.tolist() == [sum(any(r in row for row in rows) for rows in users) for r in range(R)]


@settings(deadline=None)
@given(cases())
def test_rows_are_laws_on_the_feasible_moves(case):  # E34, F32
    traces, T, locations, feasible, epsilon, n_min = case

    model = ew.aggregate(ew.fit_profiles(traces, periods=T), locations, epsilon=epsilon, feasible=feasible, n_min=n_min)

    for t in range(T):
        p = model.table(t, t)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_array_equal(p > 0, np.ones_like(p, dtype=bool) if feasible is None else feasible)
        assert model.first(t).sum() == pytest.approx(1)
    assert model.pi_bar.sum() == pytest.approx(1)


def loop_loglik(model, rows, tau):
    out = []
    for row in rows:
        p = [model.first(tau[0])[row[0]] if model.T > 1 else model.pi_bar[row[0]]]
        p += [model.rows(a, s, t)[b] for a, b, s, t in zip(row[:-1], row[1:], tau[:-1], tau[1:], strict=True)]
        out.append(-np.inf if min(p) == 0 else float(np.sum(np.log(p))))
    return out


@settings(deadline=None)
@given(cases())
def test_loglik_is_the_sum_over_its_moves(case):
    traces, T, locations, feasible, epsilon, n_min = case
    tau = periods_of(traces, T)
    half = ew.fit_profiles(traces, periods=T)[: (traces.U + 1) // 2]  # the others may start where nobody was
    model = ew.aggregate(half, locations, epsilon=epsilon, feasible=feasible, n_min=n_min)

    np.testing.assert_allclose(model.loglik(traces.r, tau), loop_loglik(model, traces.r.tolist(), tau), rtol=1e-12)


def test_loglik_by_hand():
    places = ew.Locations(n=2)
    model = ew.aggregate(ew.fit_profiles(ew.Traces([[0, 0, 1]], places)), places, epsilon=0)

    # pi_bar = (2/3, 1/3), p_0 = (1/2, 1/2), and from 1, never left, the kernel: (1/2, 1/2)
    np.testing.assert_allclose(model.loglik([[0, 1], [1, 0]]), np.log([2 / 3 / 2, 1 / 3 / 2]))


def test_a_row_without_visitor_is_the_distance_kernel():  # E34, F33
    km = [0.0, 0.5, 2.0, 4.0]
    places = ew.Locations(xy=[[x, 0] for x in km])
    u = ew.fit_profiles(ew.Traces([[0, 1, 0]], places))

    for epsilon in (0, 1e-300, 0.01, 1):
        row = ew.aggregate(u, places, epsilon=epsilon).rows(3)
        kernel = np.array([1 / 16, 1 / 3.5**2, 1 / 4, 1])
        np.testing.assert_allclose(row, kernel / kernel.sum(), rtol=1e-12)


def test_the_formula_by_hand():  # E34, E35
    places = ew.Locations(xy=[[0, 0], [0, 2]])
    # two visitors of 0: p(1) = (3/4, 1/4), p(2) = (0, 1); a mean over visitors, not over their five departures
    people = ew.Traces([[0, 0, 0, 0, 1], [0, 1, 1, 1, 1]], places)

    model = ew.aggregate(ew.fit_profiles(people), places, epsilon=0.4)

    z = 2 + 0.4 * (1 + 1 / 4)
    np.testing.assert_allclose(model.rows(0), [(0.75 + 0.4) / z, (1.25 + 0.1) / z], rtol=1e-14)


def test_who_never_visits_a_place_does_not_change_its_row():  # E35
    places = spread(4, 0)
    few = ew.Traces([[0, 1, 0, 1], [0, 0, 1, 0]], places)
    more = ew.Traces([[0, 1, 0, 1], [0, 0, 1, 0], [2, 3, 2, 2]], places)

    a, b = (ew.aggregate(ew.fit_profiles(t), places) for t in (few, more))

    np.testing.assert_array_equal(a.rows([0, 1]), b.rows([0, 1]))
    assert np.any(a.rows(2) != b.rows(2))


def test_a_place_only_visited_last_adds_nothing():  # E3
    places = spread(3, 1)
    model = ew.aggregate(ew.fit_profiles(ew.Traces([[0, 0, 2]], places)), places)

    np.testing.assert_array_equal(
        model.rows(2), ew.aggregate(ew.fit_profiles(ew.Traces([[0, 0]], places)), places).rows(2)
    )
    assert model.visitors.tolist() == [1, 0, 1]


def test_fall_back_exactly_below_n_min():  # E37
    places = spread(3, 2)
    # nights 0 -> 1 five times, mornings 0 -> 2 four times, hour by hour
    night = ew.Traces([[0, 1]] * 5, places, users=[0, 0, 1, 1, 1], step_minutes=60, start="01:00")
    morning = ew.Traces([[0, 2]] * 4, places, users=[0, 0, 0, 1], step_minutes=60, start="07:00")
    u = [by_period(night, morning, user) for user in (0, 1)]
    pooled = [merge_periods(v) for v in u]

    model = ew.aggregate(u, places, n_min=5)
    whole_day = ew.aggregate(pooled, places)

    kernel = 0.01 / np.maximum(1, places.distance(0, np.arange(3))) ** 2
    own = kernel + [0, 2, 0]
    np.testing.assert_allclose(model.rows(0, 0, 0), own / own.sum(), rtol=1e-13)
    np.testing.assert_array_equal(model.rows(0, 1, 1), whole_day.rows(0))  # four departures
    np.testing.assert_array_equal(model.rows(0, 2, 3), whole_day.rows(0))  # none
    assert np.any(ew.aggregate(u, places, n_min=4).rows(0, 1, 1) != whole_day.rows(0))
    np.testing.assert_array_equal(ew.aggregate(u, places, n_min=6).rows(0, 0, 0), whole_day.rows(0))


def by_period(night, morning, user):
    """One profile out of a user's nights and mornings, which `Traces` of one clock cannot hold together."""
    rows = [(0, t) for t in night.r[night.user == user]] + [(1, t) for t in morning.r[morning.user == user]]
    visits = np.zeros((4, 3), dtype=np.int64)
    for tau, row in rows:
        np.add.at(visits[tau], row, 1)
    column = np.array([tau for tau, _ in rows], dtype=np.int32)
    ends = np.array([row for _, row in rows], dtype=np.int32)
    one = np.ones(len(rows), dtype=np.int64)
    return MobilityProfile(np.arange(3), visits, column, column, ends[:, 0], ends[:, 1], one, 3)


def merge_periods(u):
    day = np.zeros_like(u.tau)
    return MobilityProfile(u.support, u.visits.sum(axis=0)[None], day, day, u.origin, u.target, u.count, u.R)


@settings(deadline=None)
@given(strategies.traces(days=2, max_slots=12), st.sampled_from([2, 4]))
def test_one_period_is_the_pooled_model(traces, T):  # E37
    places = spread(traces.R, 3)

    one = ew.aggregate(ew.fit_profiles(traces), places, n_min=10**9)
    many = ew.aggregate(ew.fit_profiles(traces, periods=T), places, n_min=10**9)

    for pair in [(t, s) for t in range(T) for s in range(T)]:
        np.testing.assert_allclose(many.table(*pair), one.table(), rtol=1e-12)


def test_the_first_instant_is_the_mean_over_those_who_lived_then():
    # at night only the first user is seen, twice at 0 and once at 1; in the morning all three
    people = ew.Traces([[0, 1, 0, 2], [-1, -1, -1, 2], [-1, -1, -1, 1]], ew.Locations(n=3), start="05:00")
    model = ew.aggregate(ew.fit_profiles(people, periods=4, missing="skip"), people.locations)

    np.testing.assert_allclose(model.first(0), [2 / 3, 1 / 3, 0])
    np.testing.assert_allclose(model.first(1), [0, 1 / 3, 2 / 3])
    np.testing.assert_allclose(model.pi_bar, [1 / 6, 5 / 12, 5 / 12])


def test_first_instant_of_a_period_nobody_has_seen_is_pi_bar():
    people = ew.Traces([[0, 1]], ew.Locations(n=2), start="09:00")
    model = ew.aggregate(ew.fit_profiles(people, periods=4), people.locations)

    np.testing.assert_array_equal(model.first(3), model.pi_bar)


def test_forbidden_moves_have_probability_zero():  # E36, B51
    places = spread(3, 4)
    u = ew.fit_profiles(ew.Traces([[0, 1, 2, 0, 1]], places))
    allowed = np.array([[1, 0, 1], [1, 1, 1], [0, 1, 0]])

    for matrix in (
        allowed,
        allowed.astype(bool),
        allowed.tolist(),
        sparse.coo_array(allowed),
        sparse.csc_matrix(allowed),
    ):
        model = ew.aggregate(u, places, feasible=matrix)
        np.testing.assert_array_equal(model.table() > 0, allowed > 0)
        np.testing.assert_allclose(model.table().sum(axis=1), 1)
    # the only move ever made from 0 is forbidden: the kernel decides
    near = allowed[0] / np.maximum(1, places.distance(0, np.arange(3))) ** 2
    np.testing.assert_allclose(model.rows(0), near / near.sum())
    assert model.loglik([[0, 1]])[0] == -np.inf


def test_a_sparse_feasibility_matrix_is_left_as_it_was():
    explicit_zero = sparse.csr_array(([1, 0, 1], [1, 0, 1], [0, 2, 3]), shape=(2, 2))
    before = explicit_zero.data.copy()

    ew.aggregate(ew.fit_profiles(trace(0, 1)), ew.Locations(n=2), feasible=explicit_zero)

    np.testing.assert_array_equal(explicit_zero.data, before)


def test_a_place_nobody_may_leave_is_accepted_with_a_warning():  # B51
    u = ew.fit_profiles(trace(0, 1, 0))

    with pytest.warns(UserWarning, match="1 of 2 rows"):
        model = ew.aggregate(u, ew.Locations(n=2), feasible=[[1, 1], [0, 0]])

    assert model.rows(1).tolist() == [0, 0]
    assert model.rows(0).sum() == pytest.approx(1)


def test_distances_on_the_sphere_are_those_of_the_places():  # E34, F30
    rng = np.random.default_rng(6)
    lat = np.concatenate([rng.uniform(-90, 90, 30), [90, -90, 0, 0, 35.0, 35.004]])
    lon = np.concatenate([rng.uniform(-180, 180, 30), [0, 0, 179.99, -179.99, 139.0, 139.0]])
    places = ew.Locations(lat=lat, lon=lon)
    model = ew.aggregate(ew.fit_profiles(trace(0, 0, R=36)), places, epsilon=1)

    everywhere = np.arange(36)
    kernel = 1 / np.maximum(1, places.distance(everywhere[:, None], everywhere)) ** 2
    np.testing.assert_allclose(model.rows(everywhere[1:]), (kernel / kernel.sum(axis=1, keepdims=True))[1:], rtol=1e-9)


def test_forty_thousand_places_need_no_square():
    R = 40_000
    rng = np.random.default_rng(7)
    places = ew.Locations(lat=rng.uniform(35, 36, R), lon=rng.uniform(139, 140, R))
    r = rng.integers(0, R, (500, 24))
    u = ew.fit_profiles(ew.Traces(r, places, step_minutes=60), periods=4)
    tracemalloc.start()

    model = ew.aggregate(u, places)
    some = rng.permutation(R)[:4]
    block = model.block(some, some, 1, 1)
    row = model.rows(int(some[0]), 1, 1)
    model.loglik(r[:1, :4], [0, 0, 1, 1])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 60e6  # a square of float64 is 12.8e9
    np.testing.assert_allclose(block[0], row[some], rtol=1e-12)
    assert row.sum() == pytest.approx(1)
    for question in (model.table, lambda: model.rows(np.arange(R))):
        with pytest.raises(ew.errors.InvalidParameter) as caught:
            question()
        assert caught.value.code == "E_TOO_LARGE"


@pytest.fixture(scope="module")
def tokyo():
    if not DATA.exists():
        pytest.skip("PF Tokyo is not here: ../shared/data/pf_tokyo")
    places = ew.Locations(xy=np.loadtxt(DATA / "sglt_locations.txt", delimiter=","))
    user, slot, place = np.loadtxt(DATA / "sglt_input_trace.txt", delimiter=",", dtype=int).T - 1
    r = np.full((500, 30), -1)
    r[user, slot] = place
    return ew.fit_profiles(ew.Traces(r, places, start="09:00", tz="Asia/Tokyo")), places


@pytest.mark.parametrize(
    ("epsilon", "smooth", "distance"), [(1, 0.76, 0.315), (0.01, 0.066, 0.127), (1e-4, 8e-4, 0.151)]
)
def test_smoothing_on_tokyo(tokyo, epsilon, smooth, distance):  # E32, E34, F31: in degrees or metres all of these move
    u, places = tokyo
    model = ew.aggregate(u, places, epsilon=epsilon)
    kernel = epsilon / np.maximum(1, places.distance(np.arange(400)[:, None], np.arange(400))) ** 2
    leavers = np.zeros(400)
    for v in u:
        leavers[v.support] += v.moves().sum(axis=1) > 0

    visited = leavers > 0
    assert np.count_nonzero(~visited) == 48
    share = kernel.sum(axis=1) / (kernel.sum(axis=1) + leavers)
    assert share[visited].mean() == pytest.approx(smooth, rel=0.03)
    # a move nobody made shows the normaliser: p_bar = kernel / z
    unseen = model.table() * (kernel.sum(axis=1) + leavers)[:, None] / kernel
    assert np.median(unseen) == pytest.approx(1, rel=1e-9)
    assert np.abs(stationary(model.table()) - model.pi_bar).sum() / 2 == pytest.approx(distance, abs=6e-4)


def test_the_grid_of_tokyo_is_half_a_kilometre_wide(tokyo):  # F31
    u, places = tokyo
    assert places.distance(0, 1) == pytest.approx(0.546)
    model = ew.aggregate(u, places)
    empty = int(np.flatnonzero(model.visitors == 0)[0])

    row = model.rows(empty)
    near = places.distance(empty, np.arange(400)) <= 1
    assert np.ptp(row[near]) == 0  # closer than a kilometre is all one
    far = int(np.argmax(places.distance(empty, np.arange(400))))
    assert row[empty] / row[far] == pytest.approx(places.distance(empty, far) ** 2)


def test_no_warning_without_need():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ew.aggregate(ew.fit_profiles(trace(0, 1)), ew.Locations(n=2), feasible=np.ones((2, 2)))
    assert model.rows(0).sum() == pytest.approx(1)
