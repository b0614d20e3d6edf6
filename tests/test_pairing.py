"""Seeds and walks paired: weights, balance, and the draw of one walk for each seed."""

from types import SimpleNamespace

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elsewhere.synthesis.walk._pairing_kernels import rake, take_walks
from elsewhere.synthesis.walk._walk_kernels import day_statistics_of
from elsewhere.synthesis.walk.pairing import (
    MOST_URGED,
    Due,
    pair,
    pairing_kernel,
    rake_goal,
    sinkhorn_weights,
    skeletons,
)


def rng(number=1):
    return np.random.default_rng(number)


@st.composite
def worlds(draw):
    R, L = draw(st.integers(2, 8)), draw(st.integers(1, 6))
    table = draw(st.lists(st.lists(st.integers(0, R - 1), min_size=L, max_size=L), min_size=4, max_size=9))
    label = draw(st.lists(st.integers(-1, 2), min_size=R, max_size=R))
    n = draw(st.integers(1, len(table) - 1))
    shift = draw(st.lists(st.integers(-L, L), min_size=n, max_size=n))
    r = np.array(table, dtype=np.int32)
    return r[:n], r[n:], np.array(label), np.array(shift), R


@given(worlds())
@settings(max_examples=60, deadline=None)
def test_weights_are_those_of_the_definition(world):
    seeds, walks, label, shift, R = world
    found = skeletons(label[seeds], shift)
    assert found.tolist() == [naive.shifted_skeleton(c, s) for c, s in zip(label[seeds].tolist(), shift, strict=True)]
    for limit in (np.zeros(len(seeds), dtype=np.int64), np.arange(len(seeds))):
        K = pairing_kernel(found, seeds, walks, label, 3.0, R, limit=limit)
        expected = naive.pairing_weights(found.tolist(), seeds.tolist(), walks.tolist(), label, 3.0, limit.tolist())
        np.testing.assert_allclose(K, expected, rtol=1e-5)


def test_a_missing_slot_of_a_seed_asks_for_nothing():
    seeds, walks = np.array([[-1, 0]], dtype=np.int32), np.array([[1, 1], [2, 2], [0, 2]], dtype=np.int32)
    label = np.array([0, 0, 1])
    skeleton = skeletons(np.array([[-1, 0]]), np.array([0]))
    K = pairing_kernel(skeleton, seeds, walks, label, 2.0, 3, limit=np.zeros(1, dtype=np.int64))
    # agreement is counted over the one slot there is; places are shared whenever they are visited
    assert K[0].tolist() == pytest.approx([1.0, np.exp(-2.0), 0.0], rel=1e-6)


def test_every_day_of_a_life_is_shifted_by_itself():
    days = np.array([[1, 2, 3, -1, -1, -1, 4, 5, 6]])
    assert skeletons(days, np.array([1]), 3).tolist() == [[1, 1, 2, -1, -1, -1, 4, 4, 5]]
    assert skeletons(days, np.array([-2]), 3).tolist() == [[3, 3, 3, -1, -1, -1, 6, 6, 6]]


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_balance_is_that_of_the_definition(S, N, number):
    K = rng(number).random((S, N)).astype(np.float32) + 0.01
    np.testing.assert_allclose(
        sinkhorn_weights(K, np.full(N, 1 / N), sweeps=5), naive.sinkhorn(K.tolist(), 5), rtol=1e-3
    )


def test_all_seeds_together_take_every_walk_equally_often():
    K = np.exp(3 * rng().random((40, 60))).astype(np.float32)
    even = np.full(60, 1 / 60)
    P = K * sinkhorn_weights(K, even, sweeps=200)
    load = (P / P.sum(axis=1, keepdims=True)).sum(axis=0)
    np.testing.assert_allclose(load, 40 / 60, rtol=1e-3)
    free = K / K.sum(axis=1, keepdims=True)
    assert free.sum(axis=0).std() > 5 * load.std()
    assert sinkhorn_weights(K, even, 0.0).tolist() == [1.0] * 60
    some = rng(2).random(60) + 0.5
    P = K * sinkhorn_weights(K, some / some.sum(), sweeps=400)
    load = (P / P.sum(axis=1, keepdims=True)).sum(axis=0)
    np.testing.assert_allclose(load, 40 * some / some.sum(), rtol=1e-3)


def test_walks_that_nobody_may_take_leave_the_others_balanced():
    K = np.exp(2 * rng().random((20, 30))).astype(np.float32)
    K[:, :10] = 0.0
    V = sinkhorn_weights(K, np.full(30, 1 / 30), sweeps=200)
    P = K * V
    load = (P / P.sum(axis=1, keepdims=True)).sum(axis=0)
    assert V[:10].tolist() == [0.0] * 10
    np.testing.assert_allclose(load[10:], 1.0, rtol=1e-3)


def test_walks_are_drawn_by_their_weights_and_never_twice():
    weight = np.array([[1.0, 3.0, 0.0, 4.0]], dtype=np.float32)
    n = 20_000
    got, out = np.zeros(4), np.empty(1, dtype=np.int64)
    for u in rng().random(n):
        take_walks(weight, np.ones(4, np.float32), np.array([0]), np.array([u]), out)
        got[out[0]] += 1
    share = np.array([1, 3, 0, 4]) / 8
    # five standard deviations of a binomial share: 1 in 1.7 million per walk
    assert np.all(np.abs(got / n - share) <= 5 * np.sqrt(share * (1 - share) / n) + 1e-12)
    both = np.repeat(weight, 4, axis=0)
    out = np.empty(4, dtype=np.int64)
    take_walks(both, np.ones(4, np.float32), np.arange(4), rng().random(4), out)
    assert sorted(out.tolist()) == [-1, 0, 1, 3]


@pytest.mark.parametrize("N", [31, 32, 33, 97])
def test_a_walk_is_the_one_at_its_point_of_the_sum(N):
    weight, V = rng(N).random((2, N)).astype(np.float32)
    weight[rng(N).random(N) < 0.3] = 0.0
    for u in [0.0, np.nextafter(1.0, 0.0), *rng(1).random(200)]:
        out = np.empty(1, dtype=np.int64)
        take_walks(weight[None], V.copy(), np.array([0]), np.array([u]), out)
        assert out[0] == naive.drawn_by((weight * V).tolist(), float(u))


def verdicts(passed, close_to_others=False):
    return SimpleNamespace(passed=passed, close_to_others=close_to_others & ~passed)


@pytest.mark.parametrize("number", range(20))
def test_a_walk_that_fails_is_not_tried_again_and_one_that_passes_is_gone(number):
    walks, asked = np.arange(8, dtype=np.int32)[:, None], []

    def same_parity(r, seed):
        asked.extend(zip(seed.tolist(), r[:, 0].tolist(), strict=True))
        return verdicts((r[:, 0] + seed) % 2 == 0)

    ones = np.ones((6, 8), np.float32)
    found = pair(ones, np.ones(8, np.float32), walks, same_parity, max_tries=50, rng=rng(number))
    assert len(asked) == len(set(asked)) == found.tries.sum()
    assert len(set(found.walk.tolist())) == 6
    assert all((found.walk[s] + s) % 2 == 0 for s in range(6))
    few = pair(ones, np.ones(8, np.float32), walks, same_parity, max_tries=1, rng=rng(number))
    assert few.tries.tolist() == [1] * 6


@pytest.mark.parametrize("number", range(20))
def test_a_walk_too_close_to_somebody_is_tried_once(number):
    # half of the walks are nobody's; each seed would take them first, and had no try left for another
    walks, asked = np.arange(40, dtype=np.int32)[:, None], []

    def second_half(r, seed):
        asked.extend(r[:, 0].tolist())
        return verdicts(r[:, 0] >= 20, close_to_others=True)

    K = np.tile(np.where(np.arange(40) < 20, 1.0, 1e-9).astype(np.float32), (10, 1))
    found = pair(K, np.ones(40, np.float32), walks, second_half, max_tries=3, rng=rng(number))
    assert len(asked) == len(set(asked)) == found.tries.sum()
    assert found.walk.min() >= 20
    assert found.tries.tolist() == [3] * 10


def test_a_seed_whom_every_walk_meets_gets_none():
    K = np.array([[0.0, 0.0], [1.0, 1.0]], dtype=np.float32)
    never = pair(K, np.ones(2, np.float32), np.zeros((2, 1), np.int32),
                 lambda r, s: verdicts(np.ones(len(r), dtype=bool)), max_tries=3, rng=rng())  # fmt: skip
    assert never.walk[0] == -1
    assert never.tries.tolist() == [0, 1]


def test_goals_are_raked_towards_what_people_do():
    draw = rng(3)
    walks = draw.integers(0, 6, (4000, 5)).astype(np.int32)
    walks[:1000, -1] = walks[:1000, 0]
    label = np.array([0, 0, 1, 1, -1, 0])
    statistics = np.empty((len(walks), 4), dtype=np.int64)
    day_statistics_of(walks, statistics)
    people = np.stack([np.bincount(of, minlength=6) for of in statistics.T]) / len(walks)
    home = walks[:, 0] == walks[:, -1]
    before, people[3] = home.mean(), [0.1, 0.9, 0, 0, 0, 0]
    share = np.tile([0.2, 0.8], (5, 1))  # of those in a class; of the walks 60 % are in class 0
    goal = rake_goal(walks, label, share, people, 10**9, np.ones(len(walks)))
    assert goal.sum() == pytest.approx(1)
    assert before < 0.4
    assert goal[home].sum() == pytest.approx(0.9, abs=0.05)
    for t in range(5):
        known = label[walks[:, t]] >= 0
        assert goal[known & (label[walks[:, t]] == 1)].sum() / goal[known].sum() == pytest.approx(0.8, abs=0.05)
    assert goal.max() <= 20 / len(walks) * 1.5


@given(st.integers(1, 9), st.integers(1, 7), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_day_statistics_and_raking_are_those_of_the_definition(N, L, number):
    draw = rng(number)
    walks = draw.integers(0, 4, (N, L)).astype(np.int32)
    statistics = np.empty((N, 4), dtype=np.int64)
    day_statistics_of(walks, statistics)
    assert statistics.tolist() == [naive.day_statistics_of(walk) for walk in walks.tolist()]
    value, goal, w = walks.T.astype(np.uint16), draw.random((L, 4)), np.full(N, 1 / N)
    value[:, 0], goal[:, 3] = 0, 0.0
    rake(value, goal, 3, 0.5, 2 / N, w)
    np.testing.assert_allclose(w, naive.raked_weights(value.tolist(), goal.tolist(), 3, 0.5, 2 / N), rtol=1e-9)


def test_a_test_that_allows_shared_places_masks_none():
    seeds = walks = np.array([[0, 0]], dtype=np.int32)
    K = pairing_kernel(skeletons(np.array([[0, 0]]), np.array([0])), seeds, walks, np.array([0]), 2.0, 1)
    assert K.tolist() == [[1.0]]


def everybody_passes(r, seeds):
    return SimpleNamespace(passed=np.ones(len(r), dtype=bool), close_to_others=np.zeros(len(r), dtype=bool))


class TestDue:
    @given(st.integers(2, 12), st.integers(2, 6), st.integers(0, 1000))
    @settings(max_examples=60, deadline=None)
    def test_what_is_urged_is_that_of_the_definition(self, N, L, number):
        draw = rng(number)
        walks = draw.integers(0, 4, (N, L)).astype(np.int32)
        walks[0], walks[1] = 0, np.arange(L) % 2  # moves scatter
        goal, visits = draw.dirichlet(np.ones(N)), draw.dirichlet(np.ones(5))
        taken = draw.integers(0, N, 3)
        found = Due.of(walks, goal, visits, 1.5).correction(walks, taken, 2)
        expected = naive.urged(walks.tolist(), goal.tolist(), visits.tolist(), 1.5, taken.tolist(), 2, MOST_URGED)
        np.testing.assert_allclose(found, expected, rtol=1e-4)

    def test_fakes_add_up_to_what_is_due_and_no_walk_is_taken_twice(self):
        off = {True: [], False: []}
        for number in range(6):
            draw = rng(number)
            stay = draw.random((3000, 1)) < 0.5
            walks = np.where(stay, draw.integers(0, 20, (3000, 1)), draw.integers(0, 20, (3000, 24))).astype(np.int32)
            goal, visits = np.full(3000, 1 / 3000), np.linspace(1.2, 0.8, 20) / 20
            K = np.exp(2 * draw.random((200, 3000))).astype(np.float32)
            V = sinkhorn_weights(K, goal)
            for steered in (True, False):
                due = Due.of(walks, goal, visits, 10.0) if steered else None
                found = pair(K, V, walks, everybody_passes, max_tries=3, rng=rng(number), due=due)
                assert len(np.unique(found.walk)) == 200
                fakes = walks[found.walk]
                moves = np.count_nonzero(fakes[:, 1:] != fakes[:, :-1], axis=1).mean()
                at = np.bincount(fakes.ravel(), minlength=20) / fakes.size
                off[steered].append([np.abs(at - visits).sum(), abs(moves - 10)])
        visits, moves = np.mean(off[True], axis=0) / np.mean(off[False], axis=0)
        assert visits < 0.5
        assert moves < 0.5

    def test_walks_of_a_failed_trial_count_for_nothing(self):
        # the first twenty at place 0 fail, and half of all fakes are still to be there
        walks = np.repeat(np.array([[0, 0], [1, 1]], dtype=np.int32), 60, axis=0)
        next_passes = [False] * 20 + [True] * 200

        def verdicts(r, seeds):
            passed = np.array([next_passes.pop(0) if place == 0 else True for place in r[:, 0]])
            return SimpleNamespace(passed=passed, close_to_others=~passed)

        due = Due.of(walks, np.full(120, 1 / 120), np.array([0.5, 0.5]), 0.0)
        found = pair(
            np.ones((40, 120), dtype=np.float32),
            np.ones(120, dtype=np.float32),
            walks,
            verdicts,
            max_tries=30,
            rng=rng(),
            due=due,
        )
        assert abs(np.count_nonzero(walks[found.walk, 0] == 0) - 20) <= 4

    def test_nobody_who_moves_and_one_place_are_no_division_by_nothing(self):
        walks = np.zeros((9, 4), dtype=np.int32)
        due = Due.of(walks, np.full(9, 1 / 9), np.array([1.0]), 0.0)
        assert due.correction(walks, np.arange(3), 16).tolist() == [1.0] * 9
