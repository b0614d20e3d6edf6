"""The realism filter: its statistics and its rule by their twins, its coins, and fakes nearer to people for it."""

import warnings

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.errors import InvalidParameter, NotEnoughUsers
from elsewhere.synthesis.realism import _kernels
from elsewhere.synthesis.realism.features import ALONE, FEATURES, Crowd, Seen
from elsewhere.synthesis.realism.filter import RealismFilter, coins, cut_for

PLACES = ew.Locations(xy=[[x, y] for x in range(5) for y in range(5)])
MINUTES = np.arange(12) * 120.0


def walkers(n, far, rng):
    """People of a grid who stroll to a neighbour, and with probability `far` leap anywhere instead."""
    r = np.empty((n, 12), dtype=np.int32)
    r[:, 0] = rng.integers(0, 25, n)
    for t in range(1, 12):
        x, y = r[:, t - 1] // 5, r[:, t - 1] % 5
        near = np.clip(x + rng.integers(-1, 2, n), 0, 4) * 5 + np.clip(y + rng.integers(-1, 2, n), 0, 4)
        r[:, t] = np.where(rng.random(n) < far, rng.integers(0, 25, n), near)
    return r


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    people, fakes = walkers(400, 0.05, rng), walkers(4000, 0.4, rng)
    made = RealismFilter.fit(people, np.arange(400), fakes, PLACES, minutes=MINUTES, keep=0.02, rng=rng)
    return made, walkers(400, 0.05, rng), walkers(4000, 0.4, rng)


@given(st.lists(st.integers(0, 6), min_size=2, max_size=12), st.booleans())
def test_statistics_of_a_day(row, mapped):
    xy = [[0.0, 0.0], [1.0, 0.0], [2.0, 1.0], [0.5, 3.0], [4.0, 4.0], [-1.0, 2.0], [3.0, 0.2]] if mapped else []
    out = np.empty((1, len(FEATURES)))
    _kernels.days(np.array([row]), np.array(xy).reshape(-1, 2), out)

    assert out[0, :ALONE].tolist() == pytest.approx(naive.day_statistics(row, xy), abs=1e-9)


def test_what_another_crowd_would_show():
    # thing 0 is everybody's, things 1 .. 40 are one person's each
    key = np.column_stack([np.zeros(40, dtype=np.int64), np.arange(1, 41)])
    seen = Seen.of(key, np.arange(40), np.random.default_rng(1))
    count, missing = seen.look(np.array([0, 7, 99]))

    assert count[0] == 40
    assert missing[0] == 0
    assert missing[1] > 0.95
    assert count[1] < 0.05
    assert (count[2], missing[2]) == (0, 1)


def test_the_rule_is_its_twin(fitted):
    made, _, fakes = fitted
    x = made.crowd.features(fakes[:50])
    f = made.forest
    parts = f.edge.tolist(), f.feature.tolist(), f.cut.tolist(), f.leaf.tolist()
    slow = [naive.keep_probability(row, *parts, made.cut) for row in x.tolist()]

    assert len(set(slow)) > 10
    assert made.keep_probability(fakes[:50]).tolist() == pytest.approx(slow, rel=1e-12)


def test_coins_keep_a_fake_as_often_as_it_says(fitted):
    made, _, fakes = fitted
    a = made.keep_probability(fakes)
    chosen = fakes[np.argsort(np.abs(a - 0.3))[:1]]
    p = float(made.keep_probability(chosen)[0])
    n = 20_000
    key = np.array([5, 6], dtype=np.uint64)
    kept = coins(key, np.zeros(n, dtype=np.int64), np.arange(n)) < p

    assert 0.05 < p < 0.95
    assert abs(kept.mean() - p) < 5 * np.sqrt(p * (1 - p) / n)
    some = coins(key, np.zeros(3, dtype=np.int64), np.array([7, 8, 9]))
    assert np.array_equal(some, coins(key, np.zeros(n, dtype=np.int64), np.arange(n))[7:10])


def test_kept_fakes_are_nearer_to_people_than_raw_ones(fitted):
    made, strangers, fakes = fitted
    kept = fakes[
        coins(np.array([1, 2], dtype=np.uint64), np.arange(4000), np.zeros(4000)) < made.keep_probability(fakes)
    ]

    def gap(r, i):
        # Kolmogorov-Smirnov distance to people whom the filter has not met
        a, b = (made.crowd.features(x)[:, i] for x in (strangers, r))
        at = np.unique(np.concatenate([a, b]))
        return np.abs((a[:, None] <= at).mean(axis=0) - (b[:, None] <= at).mean(axis=0)).max()

    raw_gaps, gaps = (np.array([gap(r, i) for i in range(len(FEATURES))]) for r in (fakes, kept))
    assert len(kept) > 60
    assert raw_gaps.max() > 0.5
    assert gaps.max() < 0.6 * raw_gaps.max()
    assert gaps.mean() < 0.5 * raw_gaps.mean()


@given(st.lists(st.floats(-8, 8), min_size=2, max_size=40), st.floats(0.01, 1))
def test_a_share_of_fakes_is_kept(scores, keep):
    s = np.array(scores)
    share = np.minimum(1, np.exp(s - cut_for(s, keep))).mean()

    assert share >= keep - 1e-6
    if cut_for(s, keep) < s.max():
        assert share == pytest.approx(keep, abs=1e-6)


def test_only_the_fake_and_no_order_matters(fitted):
    made, _, fakes = fitted
    a = made.keep_probability(fakes)

    assert np.array_equal(made.keep_probability(fakes[::-1]), a[::-1])
    assert a.min() >= 0
    assert a.max() <= 1
    assert made.share == pytest.approx(a.mean(), abs=0.02)


def test_no_coordinates_and_too_few_people():
    rng = np.random.default_rng(2)
    r, bare = walkers(120, 0.05, rng), ew.Locations(n=25)
    crowd = Crowd.of(r, np.arange(120), bare, MINUTES, rng)
    assert np.isfinite(crowd.features(r)).all()
    with pytest.raises(NotEnoughUsers, match="at least 100"):
        RealismFilter.fit(r[:50], np.arange(50), r, bare, minutes=MINUTES, keep=0.1, rng=rng)
    with pytest.raises(InvalidParameter, match="realism"):
        ew.Preset("product", realism=0.0)


def test_generator_filters_where_it_can_and_says_where_it_cannot():
    town = ew.simulate_town(users=150, locations=60, rng=np.random.default_rng(1)).traces
    few = town.of_users(np.arange(40))
    options = {"kappa": 4, "m_min": 2, "c_min": 2, "k": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fakes = ew.generate_fakes(town, rng=np.random.default_rng(2), realism=0.2, **options)
        again = ew.generate_fakes(town, rng=np.random.default_rng(2), realism=0.2, workers=2, **options)
        small = ew.generate_fakes(few, rng=np.random.default_rng(2), **options)

    assert fakes.tally["realism"] > 0
    assert np.array_equal(fakes.r, again.r)
    assert fakes.preset.realism == 0.2
    assert not any("not filtered" in note for note in fakes.notes)
    assert small.tally["realism"] == 0
    assert any("not filtered for realism" in note for note in small.notes)
