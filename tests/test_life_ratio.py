"""The ratio of people's lives to drawn ones: its traits from the definition, what it learns, and its floor."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.evaluation.lives import describe_lives
from elsewhere.synthesis.walk._life_ratio_kernels import NAMES, TRAITS, traits_of_lives
from elsewhere.synthesis.walk.life_ratio import LifeRatio
from elsewhere.synthesis.walk.ratio import BINS

GRID = ew.Locations(xy=np.stack(np.divmod(np.arange(25), 5), axis=1).astype(float))
DAYS, L = 14, 24
WEEKEND = np.arange(DAYS) % 7 >= 5
WHOLE = np.ones((1, DAYS), dtype=bool)


def traits(r, shown, weekend, xy):
    return traits_of_lives(r.astype(np.int32), shown, weekend, xy)


def people(n, rng, habit):
    """Lives on a grid: at home by night, at work with the chance `habit`, else anywhere."""
    home, work = rng.integers(0, 25, (2, n))
    r = np.repeat(home, DAYS * L).reshape(n, DAYS, L)
    there = np.where(rng.random((n, DAYS)) < habit, work[:, None], rng.integers(0, 25, (n, DAYS)))
    r[:, :, 8:16] = there[:, :, None]
    return r.astype(np.int32)


@given(st.integers(1, 9), st.integers(2, 12), st.integers(1, 6), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_traits_are_those_of_the_definition(D, slots, R, number):
    rng = np.random.default_rng(number)
    xy, r, weekend = rng.random((R, 2)), rng.integers(0, R, (3, D, slots)), rng.random(D) < 0.3
    r[0] = r[0, 0, 0]  # somebody who does not move
    shown = rng.random((3, D)) < 0.7
    shown[:, 0] = True
    expected = [
        naive.traits_of_a_life(life[days].tolist(), weekend[days].tolist(), xy.tolist())
        for life, days in zip(r, shown, strict=True)
    ]

    np.testing.assert_allclose(traits(r, shown, weekend, xy), expected, rtol=1e-9, atol=1e-6)
    assert TRAITS == len(NAMES) == len(expected[0])


def test_no_trait_is_a_feature_of_the_judge():
    # what a generator is taught, it is no longer judged by
    town = ew.simulate_town(users=80, days=DAYS, locations=60, rng=np.random.default_rng(8)).traces
    ours = traits(town.r.reshape(80, DAYS, -1), np.ones((80, DAYS), bool), WEEKEND, town.locations.planar())
    judged = describe_lives(town)[1]
    with np.errstate(invalid="ignore"):
        alike = np.abs(np.corrcoef(ours.T, judged.T)[:TRAITS, TRAITS:])

    assert np.nanmax(alike) < 1 - 1e-6


def test_lives_that_people_lead_are_wanted_more():
    rng = np.random.default_rng(2)
    real, drawn, fresh = people(200, rng, 0.9), people(400, rng, 0.5), people(400, rng, 0.5)
    steady = people(400, rng, 0.9)
    learnt = LifeRatio.learn(real, np.resize(WHOLE, (200, DAYS)), drawn, WEEKEND, GRID, 5)
    share = learnt.share(np.concatenate([fresh, steady]).reshape(800, -1))

    assert share.sum() == pytest.approx(1)
    assert share[400:].sum() > 0.9
    assert share.max() < 0.05  # no life alone


def test_no_weight_rests_on_fewer_than_m_min_people():
    rng = np.random.default_rng(3)
    real, drawn = people(12, rng, 0.9), people(300, rng, 0.5)
    learnt = [LifeRatio.learn(real, np.resize(WHOLE, (12, DAYS)), drawn, WEEKEND, GRID, m) for m in (1, 5, 13)]

    assert all(ratio.weight.shape == (TRAITS, BINS) for ratio in learnt)
    ours = traits(real, np.resize(WHOLE, (12, DAYS)), WEEKEND, learnt[1].xy)
    bins = [np.searchsorted(end, trait, side="right") for end, trait in zip(learnt[1].ends, ours.T, strict=True)]
    people_in = np.stack([np.bincount(b, minlength=BINS) for b in bins])
    assert not learnt[1].weight[people_in < 5].any()
    assert learnt[1].weight[people_in >= 5].any()
    assert not learnt[2].weight.any()
    assert np.ptp(learnt[2].share(drawn.reshape(300, -1))) == pytest.approx(0)
