"""Archetypes: groups of people, the code of a person, and the agreement that tells what they are worth."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.evaluation.judge import class_agreement
from elsewhere.privacy.deniable.archetypes import Archetypes, learn_archetypes, scores


def kinds_of_people(rng, N=120, L=10, kappa=5, noise=0.3):
    """Four ways of living, in unequal numbers, with noise."""
    ways = rng.integers(kappa, size=(4, L))
    kind = rng.choice(4, size=N, p=[0.4, 0.3, 0.2, 0.1])
    return kind, np.where(rng.random((N, L)) < noise, rng.integers(kappa, size=(N, L)), ways[kind])


class TestGroups:
    def test_scores_are_sums_over_known_slots(self):
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
        np.testing.assert_allclose(groups.size.sum(), 1)
        np.testing.assert_allclose(groups.share.sum(axis=2), 1)

    def test_the_group_tells_of_people_not_seen(self):
        rng = np.random.default_rng(3)
        _, classes = kinds_of_people(rng, N=600, noise=0.5)
        learnt, others = classes[:300], classes[300:]
        groups = learn_archetypes(learnt, 5, 4, rng=np.random.default_rng(0))
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


class TestCodes:
    def test_days_of_a_person_count_alike_and_unknown_ones_not_at_all(self):
        _, classes = kinds_of_people(np.random.default_rng(4))
        groups = learn_archetypes(classes, 5, 4, rng=np.random.default_rng(0))
        single = groups.nearest(classes)
        # each day three times, one more of which nothing is known, in any order
        r = np.concatenate([np.repeat(classes, 3, axis=0), np.full((120, 10), -1)])
        user = np.concatenate([np.repeat(np.arange(120), 3), np.arange(120)])
        order = np.random.default_rng(1).permutation(len(r))

        np.testing.assert_array_equal(groups.nearest(r[order], user[order]), single)
        assert groups.nearest(np.full((2, 10), -1), np.array([0, 0])).tolist() == [-1]

    @given(st.integers(0, 10**6))
    def test_equals_the_definition(self, seed):
        rng = np.random.default_rng(seed)
        score, price = rng.normal(size=(3, 4, 2)), rng.normal(size=3)
        groups = Archetypes(np.full((3, 4, 2), 0.5), score, price, np.full(3, 1 / 3))
        classes, user = rng.integers(-1, 2, (6, 4)), rng.integers(0, 3, 6)
        expected = []
        for u in range(user.max() + 1):
            days = [row for row, who in zip(classes.tolist(), user, strict=True) if who == u and max(row) >= 0]
            total = [
                sum(score[a, t, c] for row in days for t, c in enumerate(row) if c >= 0) / max(1, len(days)) - price[a]
                for a in range(3)
            ]
            expected.append(int(np.argmax(total)) if days else -1)

        assert groups.nearest(classes, user).tolist() == expected


def test_agreement_equals_its_definition():
    rng = np.random.default_rng(10)
    label = np.array([0, 1, -1, 0, 1])
    fakes, seeds, own = rng.integers(5, size=(9, 6)), rng.integers(-1, 5, size=(4, 6)), rng.integers(4, size=9)
    found = class_agreement(fakes, seeds, own, label)
    for i, fake in enumerate(fakes.tolist()):
        each = [naive.agreement(fake, seed, label.tolist()) for seed in seeds.tolist()]
        assert found.own[i] == pytest.approx(each[own[i]])
        assert found.others[i] == pytest.approx((sum(each) - each[own[i]]) / 3)
    assert found.gain == pytest.approx((found.own - found.others).mean())
    # who copies keeps everything, who lives like everybody keeps nothing
    alike = np.zeros((4, 6), dtype=int)
    assert class_agreement(alike, alike, np.arange(4), label).gain == 0
    with pytest.raises(ew.errors.InvalidParameter):
        class_agreement(fakes, seeds, own[:3], label)
