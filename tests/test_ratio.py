"""The ratio of people's days to walks: its traits from the definition, what it learns, and its floor."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.evaluation.attacks.grams import Grams
from elsewhere.evaluation.attacks.inputs import People
from elsewhere.evaluation.attacks.realism import NAMES, day_features
from elsewhere.synthesis.walk._ratio_kernels import TRAITS, traits_of
from elsewhere.synthesis.walk.ratio import BINS, Ratio, classifier_auc


def traits(r, xy):
    out = np.empty((len(r), TRAITS))
    traits_of(r.astype(np.int32), xy, out)
    return out


def strolls(n, rng, pause):
    """Days of 30 slots on a grid of 8 x 8, which stay with the chance `pause`."""
    at, out = rng.integers(0, 8, (n, 2)), np.empty((n, 30), dtype=np.int64)
    for t in range(30):
        go = rng.integers(-1, 2, (n, 2)) * (rng.random((n, 1)) > pause)
        at = np.clip(at + go, 0, 7)
        out[:, t] = at[:, 0] * 8 + at[:, 1]
    return out


GRID = ew.Locations(xy=np.stack(np.divmod(np.arange(64), 8), axis=1).astype(float))


@given(st.integers(2, 40), st.integers(1, 6), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_traits_are_those_of_the_definition(L, R, number):
    rng = np.random.default_rng(number)
    xy, r = rng.random((R, 2)), rng.integers(0, R, (3, L))
    r[0] = r[0, 0]  # somebody who does not move
    expected = [naive.traits_of_a_day(day, xy.tolist()) for day in r.tolist()]
    np.testing.assert_allclose(traits(r, xy), expected, rtol=1e-9, atol=1e-7)


def test_no_trait_is_a_feature_of_the_judge():
    # what a generator is taught, it is no longer judged by
    r = strolls(400, np.random.default_rng(1), 0.6)
    people = People(r[:200], np.arange(200), 200)
    judged = day_features(r[200:], GRID, Grams(people, 64, np.arange(30) // 3))
    ours = traits(r[200:], GRID.planar())
    with np.errstate(invalid="ignore"):
        alike = np.abs(np.corrcoef(ours.T, judged.T)[:TRAITS, TRAITS:])
    assert alike.shape == (TRAITS, len(NAMES))
    assert np.nanmax(alike) < 1 - 1e-6


class TestRatio:
    def test_takes_the_walks_that_live_as_people_do(self):
        rng = np.random.default_rng(2)
        people = strolls(400, rng, 0.8)
        walks = np.concatenate([strolls(1500, rng, 0.8), strolls(1500, rng, 0.3)])
        ratio = Ratio.learn(people, np.arange(400), walks, GRID, 5)
        fresh = np.concatenate([strolls(500, rng, 0.8), strolls(500, rng, 0.3)])
        weight = np.exp(ratio.ln(fresh))
        assert weight[:500].sum() > 0.95 * weight.sum()

    def test_says_next_to_nothing_of_walks_that_live_as_people_do(self):
        rng = np.random.default_rng(3)
        ratio = Ratio.learn(strolls(400, rng, 0.7), np.arange(400), strolls(3000, rng, 0.7), GRID, 5)
        weight = np.exp(ratio.ln(strolls(2000, rng, 0.7)))
        assert weight.sum() ** 2 / (weight**2).sum() > 0.6 * len(weight)

    def test_no_weight_rests_on_few_people(self):
        rng = np.random.default_rng(4)
        people, walks = strolls(60, rng, 0.8), strolls(2000, rng, 0.5)
        user = np.arange(60) // 2  # two days each
        ratio = Ratio.learn(people, user, walks, GRID, 5)
        theirs = traits(people, GRID.planar())
        bins = np.stack([np.searchsorted(e, t, side="right") for e, t in zip(ratio.ends, theirs.T, strict=True)])
        users = np.array([[len(np.unique(user[row == b])) for b in range(BINS)] for row in bins])
        assert (ratio.weight[users < 5] == 0).all()
        assert (ratio.weight[users >= 5] != 0).all()
        assert (users < 5).any()
        assert (users >= 5).any()
        few = Ratio.learn(people[:8], user[:8], walks, GRID, 5)
        assert (few.weight == 0).all()
        np.testing.assert_array_equal(few.ends, ratio.ends)  # told by walks alone

    @pytest.mark.parametrize("L", [1, 2])
    def test_places_without_positions_and_the_shortest_days(self, L):
        rng = np.random.default_rng(5)
        people, walks = rng.integers(0, 4, (50, L)), rng.integers(0, 4, (300, L))
        assert np.isfinite(Ratio.learn(people, np.arange(50), walks, ew.Locations(n=4), 5).ln(walks)).all()


class TestClassifier:
    def test_walks_that_live_as_people_do_are_told_by_chance(self):
        rng = np.random.default_rng(5)
        people, walks = strolls(600, rng, 0.7), strolls(3000, rng, 0.7)
        # n and m of each half: the deviation of an AUC of chance is sqrt((n + m + 1) / 12 n m) = .018, of the mean .013
        assert abs(classifier_auc(people, np.arange(600), walks, GRID, 5, rng) - 0.5) < 4 * 0.013

    def test_others_are_found_out_and_the_nearer_are_told_less(self):
        rng = np.random.default_rng(6)
        people = strolls(600, rng, 0.7)
        auc = [classifier_auc(people, np.arange(600), strolls(3000, rng, pause), GRID, 5, rng) for pause in (0.6, 0.3)]
        assert 0.6 < auc[0] < auc[1]

    def test_days_of_one_person_stay_on_one_side(self):
        # one person alone: there is nobody else to ask about
        rng = np.random.default_rng(7)
        people = strolls(40, rng, 0.7)
        assert classifier_auc(people, np.zeros(40, dtype=int), strolls(500, rng, 0.3), GRID, 1, rng) == 0.5
