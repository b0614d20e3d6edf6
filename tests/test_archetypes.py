"""Groups of people and emissions that share the classes out: laws, twins from the definition, and what they promise."""

import itertools
import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.evaluation.agreement import class_agreement
from elsewhere.synthesis.deniable.allotment import allotted, bridge, share_out
from elsewhere.synthesis.deniable.archetypes import Archetypes, learn_archetypes, scores


def kinds_of_people(rng, N=120, L=10, kappa=5, noise=0.3):
    """Four ways of living, in unequal numbers, with noise."""
    ways = rng.integers(kappa, size=(4, L))
    kind = rng.choice(4, size=N, p=[0.4, 0.3, 0.2, 0.1])
    return kind, np.where(rng.random((N, L)) < noise, rng.integers(kappa, size=(N, L)), ways[kind])


class TestGroups:
    def test_scores_are_sums_over_known_instants(self):
        rng = np.random.default_rng(1)
        classes, table = rng.integers(-1, 3, (7, 5)), rng.random((4, 5, 3))
        expected = [[sum(table[a, t, c] for t, c in enumerate(row) if c >= 0) for a in range(4)] for row in classes]
        np.testing.assert_allclose(scores(classes, table), expected)

    def test_modes_find_ways_of_living_and_keep_groups_near_one_size(self):
        rng = np.random.default_rng(2)
        _, classes = kinds_of_people(rng)
        groups = learn_archetypes(classes, 5, 4, rng=np.random.default_rng(0))
        size = np.bincount(groups.nearest(classes), minlength=4)
        assert size.min() >= 0.8 * 30
        assert size.max() <= 1.35 * 30
        np.testing.assert_allclose(groups.weights.sum(), 1)
        np.testing.assert_allclose(groups.share.sum(axis=2), 1)

    @pytest.mark.parametrize("method", ["modes", "means"])
    def test_the_group_tells_of_people_not_seen(self, method):
        rng = np.random.default_rng(3)
        _, classes = kinds_of_people(rng, N=600, noise=0.5)
        learnt, others = classes[:300], classes[300:]
        groups = learn_archetypes(learnt, 5, 4, method=method, rng=np.random.default_rng(0))
        overall = np.stack([np.bincount(learnt[:, t], minlength=5) for t in range(10)]) / 300
        mode = (groups.share - overall).argmax(axis=2)[groups.nearest(others)]
        anybody = np.take_along_axis(overall[None], mode[:, :, None], 2).mean()
        assert (mode == others).mean() - anybody > 0.2
        # a code that says nothing: the same groups, dealt at random
        dealt = (groups.share - overall).argmax(axis=2)[rng.permutation(groups.nearest(others))]
        assert (dealt == others).mean() - anybody < 0.1

    def test_one_group_and_more_groups_than_people(self):
        classes = np.array([[0, 1], [1, 1], [0, 0]])
        assert (learn_archetypes(classes, 2, 1, rng=np.random.default_rng(0)).nearest(classes) == 0).all()
        assert len(learn_archetypes(classes, 2, 9, rng=np.random.default_rng(0)).share) == 3
        with pytest.raises(ew.InvalidParameter, match="`method`"):
            learn_archetypes(classes, 2, 2, method="median", rng=np.random.default_rng(0))


class TestSharingOut:
    @given(st.integers(1, 5), st.integers(1, 4), st.integers(2, 6), st.floats(0.05, 2), st.integers(0, 10**6))
    def test_all_groups_together_are_the_population(self, A, L, C, theta, seed):
        rng = np.random.default_rng(seed)
        share, overall, size = (
            rng.dirichlet(np.ones(C), (A, L)),
            rng.dirichlet(np.ones(C), L),
            rng.dirichlet(np.ones(A) * 5),
        )
        plan = share_out(share, size, overall, theta)
        np.testing.assert_allclose(plan.sum(axis=2), 1, atol=1e-9)
        np.testing.assert_allclose(np.einsum("a,atc->tc", size, plan), overall, atol=0.02)

    def test_it_is_the_best_plan_where_theta_is_small(self):
        from scipy.optimize import linprog

        rng = np.random.default_rng(5)
        share, size, overall = (
            rng.dirichlet(np.ones(4), (3, 1)),
            np.array([0.5, 0.3, 0.2]),
            rng.dirichlet(np.ones(4), 1),
        )
        plan = size[:, None] * share_out(share, size, overall, 0.005)[:, 0]
        rows = [np.kron(np.eye(3)[a], np.ones(4)) for a in range(3)] + [np.tile(np.eye(4)[c], 3) for c in range(4)]
        best = -linprog(-share[:, 0].ravel(), A_eq=np.array(rows), b_eq=np.concatenate([size, overall[0]])).fun
        assert best - 0.01 < (plan * share[:, 0]).sum() <= best + 1e-3

    def test_a_group_without_people_and_a_tiny_theta_do_no_harm(self):
        rng = np.random.default_rng(6)
        share, overall = rng.dirichlet(np.ones(3), (3, 2)), np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
        plan = share_out(share, np.array([0.4, 0.6, 0.0]), overall, 1e-4)
        assert np.isfinite(plan).all()
        np.testing.assert_allclose(plan.sum(axis=2), 1)

    def test_a_large_theta_gives_everyone_the_population(self):
        rng = np.random.default_rng(6)
        share, overall = rng.dirichlet(np.ones(3), (2, 4)), rng.dirichlet(np.ones(3), 4)
        plan = share_out(share, np.array([0.4, 0.6]), overall, 1e6)
        np.testing.assert_allclose(plan, np.broadcast_to(overall, plan.shape), atol=1e-5)


class TestBridge:
    def law(self, first, p, e):
        """Every trace with its probability, from the definition."""
        L, R = e.shape
        weight = {
            f: first[f[0]]
            * math.prod(p[f[t], f[t + 1]] for t in range(L - 1))
            * math.prod(e[t, f[t]] for t in range(L))
            for f in itertools.product(range(R), repeat=L)
        }
        total = sum(weight.values())
        return {f: w / total for f, w in weight.items()}

    def test_places_are_visited_as_wanted(self):
        rng = np.random.default_rng(7)
        first, p = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3)
        goal = rng.dirichlet(np.ones(3) * 3, (2, 4))
        e = bridge(first, p[None], np.zeros(3, dtype=int), goal, sweeps=200)
        for a in range(2):
            law = self.law(first, p, e[a])
            for t in range(4):
                seen = [sum(w for f, w in law.items() if f[t] == r) for r in range(3)]
                np.testing.assert_allclose(seen, goal[a, t], atol=1e-6)

    def test_the_models_own_shares_need_no_emission(self):
        rng = np.random.default_rng(8)
        first, p = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3)
        visits = np.stack([first, first @ p, first @ p @ p])[None]
        e = bridge(first, p[None], np.zeros(2, dtype=int), visits)
        np.testing.assert_allclose(e / e.max(axis=2, keepdims=True), 1, atol=1e-9)

    def test_a_group_gets_its_classes_and_the_town_keeps_its_places(self):
        rng = np.random.default_rng(9)
        first, p = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4), 4)
        label = np.array([0, 0, 1, -1])
        groups = Archetypes(np.array([[[0.9, 0.1]] * 3, [[0.1, 0.9]] * 3]), size=np.array([0.5, 0.5]))
        e = allotted(groups, label, first, p[None], np.zeros(2, dtype=int), theta=0.05, eta=0.01)
        assert (e > 0).all()
        laws = [self.law(first, p, e[a]) for a in range(2)]
        for t, visits in enumerate((first, first @ p, first @ p @ p)):
            seen = np.array([[sum(w for f, w in law.items() if f[t] == r) for r in range(4)] for law in laws])
            np.testing.assert_allclose(seen.mean(axis=0), visits, atol=0.01)
            assert seen[0, :2].sum() > seen[1, :2].sum()


def test_agreement_equals_its_definition():
    rng = np.random.default_rng(10)
    label = np.array([0, 1, -1, 0, 1])
    fakes, seeds, own = rng.integers(5, size=(9, 6)), rng.integers(-1, 5, size=(4, 6)), rng.integers(4, size=9)
    found = class_agreement(fakes, seeds, own, label)
    for i, fake in enumerate(fakes.tolist()):
        each = [naive.agreement(fake, seed, label.tolist()) for seed in seeds.tolist()]
        assert found.own[i] == pytest.approx(each[own[i]])
        assert found.others[i] == pytest.approx((sum(each) - each[own[i]]) / 3)
    assert found.kept == pytest.approx((found.own - found.others).mean())
    # who copies keeps everything, who lives like everybody keeps nothing
    alike = np.zeros((4, 6), dtype=int)
    assert class_agreement(alike, alike, np.arange(4), label).kept == 0
    with pytest.raises(ew.InvalidParameter):
        class_agreement(fakes, seeds, own[:3], label)
