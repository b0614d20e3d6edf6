"""The location graph: equal to the double loop, whatever the order of users, the names of places or the way it grew."""

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.paper import semantic_graph as building


def naive_graph(traces, T):
    tau = ew.Periods.of(T).of_minute(traces.minutes())
    return naive.location_graph(traces.r.tolist(), traces.user.tolist(), tau.tolist(), traces.R, T)


def test_golden_matrix_with_ties():
    people = ew.Traces([[0, 0, 0, 1, 1, 1, 2, 2], [3, 3, 3, 3, 4, 4, 5, 5]], ew.Locations(n=6))

    w = ew.semantic_graph(ew.fit_profiles(people)).w

    a, b, c, d, e, f = range(6)
    expected = np.zeros((6, 6))
    expected[[a, b], [d, d]] = 0.4375
    expected[[a, a, b, b], [e, f, e, f]] = 0.21875
    expected[[c, c], [e, f]] = 0.4375
    np.testing.assert_allclose(w, expected + expected.T, atol=1e-15)
    assert w[c, d] == 0


def test_alice_and_bob():
    home_a, work_a, home_b, work_b = range(4)
    day = [[home_a] * 40 + [work_a] * 32, [home_b] * 40 + [work_b] * 32]

    w = ew.semantic_graph(ew.fit_profiles(ew.Traces(day, ew.Locations(n=4)))).w

    expected = np.zeros((4, 4))
    expected[home_a, home_b] = expected[home_b, home_a] = expected[work_a, work_b] = expected[work_b, work_a] = 1
    np.testing.assert_allclose(w, expected, atol=1e-15)


@given(strategies.traces(max_users=5, min_users=2, max_places=6, days=2), st.sampled_from([1, 2, 4]))
def test_equals_the_double_loop(traces, T):
    w = ew.semantic_graph(ew.fit_profiles(traces, periods=T)).w

    np.testing.assert_allclose(w, naive_graph(traces, T), atol=1e-12)
    assert np.array_equal(w, w.T)


@given(st.data())
def test_users_of_different_lengths_meet_exactly(data):
    traces = data.draw(strategies.traces(max_users=4, min_users=2, max_places=5, days=3))
    # break the equal number of rows per user, and of slots per row, without emptying any user
    keep = [0, *[i for i in range(1, len(traces)) if i % 3 == 0 or data.draw(st.booleans())]]
    r = traces.r[keep].copy()
    for row in range(len(r)):
        if data.draw(st.booleans()):
            r[row, -1] = -1
    uneven = ew.Traces(r, traces.locations, users=traces.user[keep], step_minutes=traces.step_minutes)
    for T in (1, 2):
        w = ew.semantic_graph(ew.fit_profiles(uneven, periods=T, missing="skip")).w
        np.testing.assert_allclose(w, naive_graph(uneven, T), atol=1e-12)


@given(st.data(), st.sampled_from([1, 3]))
def test_renaming_places_and_reordering_users_changes_nothing_else(data, T):
    traces = data.draw(strategies.traces(max_users=5, min_users=2))
    name = np.array(data.draw(st.permutations(range(traces.R))))
    people = np.array(data.draw(st.permutations(range(len(traces)))))
    renamed = ew.Traces(name[traces.r][people], traces.locations, step_minutes=traces.step_minutes)

    w = ew.semantic_graph(ew.fit_profiles(traces, periods=T)).w
    w_renamed = ew.semantic_graph(ew.fit_profiles(renamed, periods=T)).w

    np.testing.assert_allclose(w_renamed[np.ix_(name, name)], w, atol=1e-12)


@given(strategies.traces(max_users=5, min_users=2, max_places=6, days=2), st.sampled_from([1, 2, 4]))
def test_sums_over_users_and_similarities_of_pairs_give_one_graph(traces, T):
    profiles = ew.fit_profiles(traces, periods=T)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "FEW_USERS", 0)
        by_sums = ew.semantic_graph(profiles).w

    np.testing.assert_allclose(by_sums, ew.semantic_graph(profiles).w, atol=1e-12)


def test_common_mapping_is_the_literal_pair_loop():
    rng = np.random.default_rng(3)
    profiles = ew.fit_profiles(ew.Traces(rng.integers(0, 6, (5, 24)), ew.Locations(n=6), step_minutes=60), periods=2)
    w = np.zeros((6, 6))
    for u in profiles:
        for v in profiles:
            if u is not v and not np.array_equal(u.visits, v.visits):
                match = ew.semantic_similarity(u, v, mapping="common")
                for r, r_next in zip(u.support, match.sigma[0], strict=True):
                    if r_next >= 0:
                        w[r, r_next] += match.sim
    w = (w + w.T) / 2
    np.fill_diagonal(w, 0)

    np.testing.assert_allclose(ew.semantic_graph(profiles, mapping="common").w, w, atol=1e-12)


def test_unvisited_places_have_no_edge():
    graph = ew.semantic_graph(ew.fit_profiles(ew.Traces([[0, 1], [2, 2]], ew.Locations(n=5))))

    assert graph.visited.tolist() == [True, True, True, False, False]
    assert not graph.w[3:].any()


def test_a_single_user_has_an_empty_graph():
    graph = ew.semantic_graph(ew.fit_profiles(ew.Traces([[0, 1, 2, 3]], ew.Locations(n=4))))

    assert not graph.w.any()


def test_refuses_what_it_cannot_do():
    profiles = ew.fit_profiles(ew.Traces([[0, 1], [2, 2]], ew.Locations(n=5)))
    with pytest.raises(ew.errors.InvalidParameter, match="`order`"):
        ew.semantic_graph(profiles, order=2)
    with pytest.raises(ew.errors.InvalidParameter, match="`mapping`"):
        ew.semantic_graph(profiles, mapping="best")
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.semantic_graph([])
    assert caught.value.code == "E_EMPTY"
    other_map = ew.fit_profiles(ew.Traces([[0, 1]], ew.Locations(n=2)))
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.semantic_graph([*profiles, *other_map])
    assert caught.value.code == "E_MISMATCH"


def test_order_1_without_any_match_has_no_edge():
    people = ew.Traces([[0, 0, 0, 0], [1, 2, 1, 2]], ew.Locations(n=3))
    assert not ew.semantic_graph(ew.fit_profiles(people), order=1).w.any()
