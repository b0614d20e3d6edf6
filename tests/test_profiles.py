"""Mobility profiles: counts by hand, equality with the slow twin, what is refused."""

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.paper.profiles import Profiles

PERIODS = st.sampled_from([1, 2, 4])


def trace(*places, R=None, **options):
    return ew.Traces([list(places)], ew.Locations(n=R or max(places) + 1), **options)


def by_user(traces):
    return [traces.r[traces.user == u].tolist() for u in range(traces.U)]


def periods_of(traces, T):
    return ew.Periods.of(T).of_minute(traces.minutes()).tolist()


def test_a_stay_is_a_transition():  # E2
    u = ew.fit_profiles(trace(0, 0, 1))[0]

    np.testing.assert_array_equal(u.p(), [[0.5, 0.5], [0, 0]])


def test_no_transition_bridges_days_gaps_or_traces():  # E2, F34
    days = ew.Traces([[0, 1, 2], [2, 1, 0]], ew.Locations(n=3), users=["x", "x"])
    gap = trace(0, -1, 1, 1, R=2)

    assert ew.fit_profiles(days)[0].count.sum() == 2 * (3 - 1)
    np.testing.assert_array_equal(ew.fit_profiles(gap, missing="skip")[0].moves(), [[0, 0], [0, 1]])


def test_pi_is_visit_frequency_not_steady_state():  # E6
    u = ew.fit_profiles(trace(0, 0, 0, 1))[0]

    np.testing.assert_array_equal(u.pi, [[0.75, 0.25]])


def test_a_place_never_left_has_no_row_and_no_nan():  # E3, F33
    u = ew.fit_profiles(trace(0, 0, 1))[0]

    assert np.all(u.p()[1] == 0)
    # both departures are from place 0, though only two of three slots are there
    assert u.alpha().tolist() == [1, 0]
    # first-order self-similarity (eq:as1) stays 1
    assert np.sum(u.alpha() * np.minimum(u.p(), u.p()).sum(axis=1)) == 1
    for values in (u.w, u.pi, u.pi_tau, u.pi_r, u.p(), u.alpha()):
        assert np.all(np.isfinite(values))


def test_a_single_instant_has_no_transition():
    u = ew.fit_profiles(ew.Traces([[3]], ew.Locations(n=5)))[0]

    assert u.period_pairs() == []
    assert u.p().tolist() == [[0]]
    assert u.alpha().tolist() == [0]


def test_moves_carry_the_periods_of_both_slots():  # E2, E24
    # 05:40 is night, 06:00 and 06:20 are morning
    u = ew.fit_profiles(trace(0, 1, 0, start="05:40"), periods=4)[0]

    assert u.period_pairs() == [(0, 1), (1, 1)]
    assert u.moves(0, 1).tolist() == [[0, 1], [0, 0]]
    assert u.moves(1, 1).tolist() == [[0, 0], [1, 0]]
    assert u.w.tolist() == [1 / 3, 2 / 3, 0, 0]
    assert u.pi_tau.tolist() == [[1, 0], [0.5, 0.5], [0, 0], [0, 0]]


def test_profiles_come_in_order_of_first_appearance():
    people = ew.Traces([[4, 4], [1, 1], [4, 2]], ew.Locations(n=5), users=["b", "a", "b"])

    u = ew.fit_profiles(people)

    assert [p.support.tolist() for p in u] == [[2, 4], [1]]
    assert [p.support.tolist() for p in u[::-1]] == [[1], [2, 4]]
    assert u[-1].support.tolist() == [1]


@given(strategies.traces(days=2), PERIODS)
def test_profiles_equal_their_slow_twin(traces, T):  # E1, E3, E7
    tau = periods_of(traces, T)

    for u, rows in zip(ew.fit_profiles(traces, periods=T), by_user(traces), strict=True):
        ref = naive.profile(rows, tau, T)
        places = u.support.tolist()
        for name, comp in (("pi", u.pi), ("pi_tau", u.pi_tau)):
            expected = [[ref[name].get((t, a), 0) for a in places] for t in range(T)]
            np.testing.assert_allclose(comp, expected, rtol=1e-15)
        for t in range(T):
            for s in range(T):
                expected = [[ref["p"].get((t, s, a, b), 0) for b in places] for a in places]
                np.testing.assert_allclose(u.p(t, s), expected, rtol=1e-15)
                np.testing.assert_allclose(u.alpha(t, s), [ref["alpha"].get((t, s, a), 0) for a in places])


@given(strategies.traces(days=2), PERIODS)
def test_what_must_sum_to_one_does(traces, T):
    for u in ew.fit_profiles(traces, periods=T):
        assert u.pi.sum() == pytest.approx(1)
        lived = u.w > 0
        np.testing.assert_allclose(u.pi_tau.sum(axis=1), lived)
        np.testing.assert_allclose(u.pi, u.w[:, None] * u.pi_tau)  # E1
        pairs = [(t, s) for t in range(T) for s in range(T)]
        assert sum(u.alpha(*pair).sum() for pair in pairs) == pytest.approx(1)
        assert u.count.sum() == 2 * (traces.L - 1)
        for t in range(T):
            left = np.bincount(u.origin[u.tau == t], u.count[u.tau == t], u.K)
            np.testing.assert_allclose(sum(u.alpha(t, s) for s in range(T)), left / u.count.sum())  # E7


@given(strategies.traces(days=2, min_users=2), PERIODS)
def test_profiles_survive_the_way_through_single_ones(traces, T):
    columns = ew.fit_profiles(traces, periods=T)
    gathered = Profiles.of(list(columns))

    for name in vars(columns):
        np.testing.assert_array_equal(getattr(gathered, name), getattr(columns, name))


def test_gaps_are_refused_by_default():  # E4
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.fit_profiles(trace(0, -1, 1, R=2))

    assert caught.value.code == "E_GAPS"


@pytest.mark.parametrize("unknown", [2, -3, 1.5, "0", None])
def test_an_unknown_user_is_refused(unknown):
    u = ew.fit_profiles(ew.Traces([[0], [1]], ew.Locations(n=2)))

    with pytest.raises(ew.errors.UnknownUser) as caught:
        u[unknown]

    assert caught.value.code == "E_USER"
    assert isinstance(caught.value, IndexError)


def test_fit_profiles_refuses_what_it_does_not_know():
    for bad in ({"missing": "guess"}, {"periods": 0}, {"periods": [0, 12]}, {"periods": None}, {"periods": "4"}):
        with pytest.raises(ew.errors.InvalidParameter):
            ew.fit_profiles(trace(0, 1), **bad)
    with pytest.raises(ew.errors.InvalidParameter, match="Traces"):
        ew.fit_profiles([[0, 1]])


def test_a_repr_tells_no_place():
    u = ew.fit_profiles(trace(77, 77, 78, R=100))

    assert "77" not in repr(u) + repr(u[0]) + repr(ew.aggregate(u, ew.Locations(n=100)))
