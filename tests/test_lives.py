"""Lives over several days: measures against their slow twins, by hand, and what real halves and false lives get."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import elsewhere as ew
from elsewhere.evaluation import lives
from elsewhere.evaluation.attacks.realism import spread


@st.composite
def a_life(draw):
    R, L, D = draw(st.integers(2, 5)), draw(st.integers(2, 12)), draw(st.integers(1, 16))
    cell = st.integers(0, R - 1)
    r = np.array(draw(st.lists(st.lists(cell, min_size=L, max_size=L), min_size=D, max_size=D)))
    gaps = draw(st.lists(st.integers(1, 2), min_size=D, max_size=D))
    return r, R, np.cumsum(gaps), draw(st.integers(30, 1440 // L))


@given(a_life())
@settings(max_examples=80, deadline=None)
def test_measures_of_a_life_equal_their_slow_twin(case):
    r, R, day, step = case
    xy = np.column_stack([np.arange(R) ** 2, np.arange(R) % 2]).astype(float)
    weekend, minutes = day % 7 >= 5, np.arange(r.shape[1]) * float(step)
    found = lives.life_measures(r, day, weekend, minutes, ew.Locations(xy=xy))
    slow = naive.life_measures(r.tolist(), day.tolist(), weekend.tolist(), minutes.tolist(), xy.tolist())

    assert list(found) == list(lives.MEASURES)
    assert set(found) == set(slow)
    for name, value in found.items():
        assert_allclose(value, slow[name], atol=1e-9, err_msg=name, equal_nan=True)


def test_a_week_by_hand():
    # four instants a day, every six hours: a night at 0, work at 1 on weekdays, one evening at 2
    where = ew.Locations(xy=[[0, 0], [3, 0], [0, 4]])
    rows = [[0, 1, 1, 0]] * 4 + [[0, 1, 1, 2]] + [[0, 0, 0, 0]] * 2
    dates = np.arange("2024-03-04", "2024-03-11", dtype="datetime64[D]")  # a Monday to a Sunday
    week = ew.Traces(rows, where, users=["a"] * 7, dates=dates, step_minutes=360)
    measures, _ = lives.described(week)
    f = {name: values[0] for name, values in measures.items()}

    assert (f["places_after_1_days"], f["places_after_7_days"]) == (2, 3)
    assert np.isnan(f["places_after_14_days"])
    assert f["home_share"] == 17 / 28
    assert f["night_share"] == 1
    assert f["main_share"] == 1  # twelve o'clock is the only instant between nine and five
    assert f["main_days"] == 1
    assert f["jaccard"] == pytest.approx((3 * 1 + 2 / 3 + 1 / 3 + 1) / 6)
    assert (f["moves_weekday"], f["moves_weekend"], f["still_days"]) == (2, 0, 2 / 7)
    assert f["regularity"] == 27 / 28
    assert f["trip_length"] == pytest.approx((9 * 3 + 5) / 10)
    assert f["farthest"] == 4
    assert lives.growth_curve(week).tolist() == [2, 2, 2, 2, 3, 3, 3]


def test_one_day_per_person_tells_what_a_day_can():
    town = ew.simulate_town(users=80, locations=60, rng=np.random.default_rng(1)).traces
    plain = ew.Traces(town.r, town.locations)
    for days in (town, plain):
        measures, table = lives.described(days)

        assert np.isnan(measures["jaccard"]).all()
        assert np.isnan(measures["regularity"]).all()
        assert not np.isnan(measures["home_share"]).any()
        assert np.isfinite(table).all()
    found = lives.compare_lives(
        town.of_users(range(40)), town.of_users(range(40, 80)), town, rng=np.random.default_rng(1)
    )
    assert np.isnan(found.mean["jaccard"]).all()
    assert len(found.growth[0]) == 1


def test_order_of_rows_and_names_of_users_change_nothing():
    town = ew.simulate_town(users=12, locations=60, days=5, rng=np.random.default_rng(2)).traces
    shuffle = np.random.default_rng(3).permutation(len(town))
    before, _ = lives.described(town)
    after, _ = lives.described(town.select(shuffle))
    who = [list(town.labels).index(label) for label in town.select(shuffle).labels]

    for name in lives.MEASURES:
        assert_allclose(after[name], before[name][who], atol=1e-12, equal_nan=True, err_msg=name)


def test_real_halves_are_alike_and_lives_without_a_home_are_told():
    n = 120
    town = ew.simulate_town(users=3 * n, locations=150, days=7, rng=np.random.default_rng(4)).traces
    held, real, others = (town.of_users(range(k * n, (k + 1) * n)) for k in range(3))
    # every day of a "life" is a day of somebody else: right days, no person
    rows = np.random.default_rng(5).permutation(len(others))
    patched = others.with_places(others.r[rows])
    found = lives.compare_lives(held, real, patched, rng=np.random.default_rng(1))

    assert abs(found.told_real.value - 0.5) < 4 * spread(n, n)
    assert found.told.value > 0.95
    assert found.told.low > found.told_real.high
    for name in ("home_share", "jaccard", "regularity", "places_after_7_days"):
        fake, chance = found.gap(name)
        assert chance < 0.1 < fake, name
    # what a single day shows is kept
    assert found.gap("trip_length")[0] < 0.1
    assert (np.diff(found.growth[0]) > 0).all()


def test_a_single_person_is_refused():
    town = ew.simulate_town(users=8, locations=40, rng=np.random.default_rng(1)).traces
    with pytest.raises(ew.NotEnoughUsers, match="`fakes`"):
        lives.compare_lives(town, town, town.of_users([0]), rng=np.random.default_rng(1))
