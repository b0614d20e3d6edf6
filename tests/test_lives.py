"""Lives over several days: measures against their slow twins, by hand, and what real halves and false lives get."""

import json

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import elsewhere as ew
from elsewhere.evaluation import lives
from elsewhere.evaluation.attacks.realism import auc_deviation
from elsewhere.evaluation.uses import judge_uses


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
    # four slots a day, every six hours: a night at 0, work at 1 on weekdays, one evening at 2
    where = ew.Locations(xy=[[0, 0], [3, 0], [0, 4]])
    rows = [[0, 1, 1, 0]] * 4 + [[0, 1, 1, 2]] + [[0, 0, 0, 0]] * 2
    dates = np.arange("2024-03-04", "2024-03-11", dtype="datetime64[D]")  # a Monday to a Sunday
    week = ew.Traces(rows, where, users=["a"] * 7, dates=dates, step_minutes=360)
    measures, _ = lives.describe_lives(week)
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
    assert lives.growth(week).tolist() == [[2, 2, 2, 2, 3, 3, 3]]


def test_one_day_per_person_tells_what_a_day_can():
    town = ew.simulate_town(users=80, locations=60, rng=np.random.default_rng(1)).traces
    plain = ew.Traces(town.r, town.locations)
    for days in (town, plain):
        measures, table = lives.describe_lives(days)

        assert np.isnan(measures["jaccard"]).all()
        assert np.isnan(measures["regularity"]).all()
        assert not np.isnan(measures["home_share"]).any()
        assert np.isfinite(table).all()
    found = lives.compare_lives(
        town.of_users(range(40)), town.of_users(range(40, 80)), town, rng=np.random.default_rng(1)
    )
    assert found["jaccard"].off is found["jaccard"].fakes is found["jaccard"].within is None
    assert found["jaccard"].word == "not measured"
    assert found["home_share"].within
    assert len(found.growth["days"]) == 1
    assert found.week["kinds"] == 1  # all days of this town are weekdays
    assert lives.missing_days(town, town) == (
        "lives over several days are not compared: all real people have one day (10 must have more)."
    )
    with pytest.raises(ew.errors.NotEnoughUsers, match="all real people have one day"):
        lives.judge_lives(town, town, rng=np.random.default_rng(1))


def test_order_of_rows_and_names_of_users_change_nothing():
    town = ew.simulate_town(users=12, locations=60, days=5, rng=np.random.default_rng(2)).traces
    shuffle = np.random.default_rng(3).permutation(len(town))
    before, _ = lives.describe_lives(town)
    after, _ = lives.describe_lives(town.select(shuffle))
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

    assert abs(found.told_real.value - 0.5) < 4 * auc_deviation(n, n)
    assert found.told.value > 0.95
    assert found.told.low > found.told_real.high
    assert abs(found.told_by_hours_real.value - 0.5) < 4 * auc_deviation(n, n)
    assert found.told_by_hours.low > found.told_by_hours_real.high
    for name in ("home_share", "jaccard", "regularity", "places_after_7_days", "growth", "week_home", "entropy"):
        assert found[name].halves < 0.1, name
        assert found[name].within is False, name
    # what single days show is kept
    assert all(found[name].within for name in ("trip_length", *lives.OF_DAYS))
    assert (np.diff(found.growth["real"]) > 0).all()
    assert (found.growth["fakes"][1:] > found.growth["high"][1:]).all()
    assert f"nights at home ({found['night_share'].word})" in found.summary()


def test_a_single_person_is_refused():
    town = ew.simulate_town(users=8, locations=40, rng=np.random.default_rng(1)).traces
    with pytest.raises(ew.errors.NotEnoughUsers, match="`fakes`"):
        lives.compare_lives(town, town, town.of_users([0]), rng=np.random.default_rng(1))


def test_half_of_a_town_in_the_place_of_fakes_is_as_near_as_the_other_half():
    town = ew.simulate_town(users=240, locations=150, days=7, rng=np.random.default_rng(6)).traces
    real, fakes = town.of_users(range(160)), town.of_users(range(160, 240))
    found = lives.judge_lives(real, fakes, rng=np.random.default_rng(1))

    assert all(found[name].within for name in lives.FIRST)
    # sets of one size: what fakes are off by is what halves are off by, up to the draw of these very people
    assert np.mean([found[n].off - found[n].halves for n in lives.FIRST]) == pytest.approx(0, abs=0.03)
    assert found.told.low < 0.5 < found.told.high
    assert found.told_by_hours.low < 0.5 < found.told_by_hours.high
    assert found.summary().startswith(
        f"in {len(lives.FIRST)} of {len(lives.FIRST)} measures of lives over days, fakes are"
    )
    assert found.week["kinds"] == 7
    assert found.sizes == {"people": 160, "days": 1120, "fakes": 80, "fake_days": 560, "splits": 20}
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["measures"]["jaccard"]["within"] is True
    assert len(told["week"]["home"]["fakes"]) == 168


@given(a_life())
@settings(max_examples=60, deadline=None)
def test_growth_and_week_equal_their_slow_twins(case):
    r, R, day, step = case
    dates = day.astype("datetime64[D]")
    life = ew.Traces(r, ew.Locations(n=R), users=["a"] * len(r), dates=dates, step_minutes=step)
    weekday = [int(d + 3) % 7 for d in day]  # day 0 is a Thursday

    assert lives.growth(life).tolist() == [naive.places_grown(r.tolist())]
    for kinds in (7, 2, 1):
        kind = [{7: w, 2: int(w >= 5), 1: 0}[kinds] for w in weekday]
        slow = naive.week_of(
            r.tolist(), kind, [w >= 5 for w in weekday], (np.arange(r.shape[1]) * step).tolist(), kinds
        )
        assert_allclose(lives.week(life, kinds)[0], slow, equal_nan=True)
        assert_allclose(lives.by_hours(life, kinds)[0], np.nan_to_num(slow, nan=-1).ravel())


def the_same_life(place, people, days=3):
    """People who all live one life: at 0 until noon, then at `place`; four slots a day."""
    where = ew.Locations(xy=[[0, 0], [3, 0], [0, 4], [6, 8]])
    users = np.repeat([f"{place} {i}" for i in range(people)], days)
    dates = np.tile(np.arange("2024-03-04", f"2024-03-0{4 + days}", dtype="datetime64[D]"), people)
    return ew.Traces([[0, 0, place, place]] * (people * days), where, users=users, dates=dates, step_minutes=360)


def test_how_far_off_by_hand():
    found = lives.judge_lives(the_same_life(1, 24), the_same_life(3, 12), rng=np.random.default_rng(1))

    # halves of people who are all alike differ by nothing; half a day 3 km away, and half a day 10 km away
    assert (found["radius_of_gyration"].real, found["radius_of_gyration"].fakes) == (1.5, 5.0)
    assert found["radius_of_gyration"].off == pytest.approx(7 / 3)
    assert found["radius_of_gyration"].halves == 0
    assert (found["radius_of_gyration"].people_off, found["radius_of_gyration"].people_halves) == (1, 0)
    assert found["radius_of_gyration"].word == "233 % off"
    assert found["home_share"].off == found["growth"].off == found["week_main"].off == 0
    assert found["flows_places"].off == 1  # no trip has a counterpart
    assert found["flows_places"].words.endswith("100 % do not match; between two halves of the real people 0 %")
    assert found["moves_weekend"].within is None


def test_without_coordinates_no_length_is_measured_shown_or_counted():
    town = ew.simulate_town(users=60, locations=60, days=5, rng=np.random.default_rng(7)).traces
    bare = ew.Traces(town.r, ew.Locations(n=town.R), users=town.users, dates=town.dates, step_minutes=town.step_minutes)
    found = lives.judge_lives(bare, bare, rng=np.random.default_rng(1))
    lengths = {"radius_of_gyration", "trip_length", "farthest"}
    needing = {*lengths, "trips", "flows_quarters", "flows_neighbourhoods"}

    assert {m.id for m in found.measures} == {*lives.MEASURES, *lives.CURVES, *lives.OF_DAYS} - needing
    assert found.summary().startswith("in 12 of 12 measures of lives over days, fakes are")
    assert not any(" km" in line for line in found.in_words())
    measures, table = lives.describe_lives(bare)
    assert all(np.isnan(measures[name]).all() for name in lengths)
    assert np.isfinite(table).all()


def test_what_is_within_ten_per_cent():
    def one(off, halves):
        return lives.Compared("a", "A", "km", True, 1.0, 1.0, off, halves)

    assert [one(off, 0.05).within for off in (0.0, 0.15, 0.16)] == [True, True, False]
    assert one(0.16, 0.05).word == "16 % off"
    assert one(0.15, 0.05).word == "as other people"


def test_people_who_share_no_place_are_no_word_for_fakes_that_share_none_either():
    # everybody goes round six places of her own: halves share no place, nor do fakes
    def people(first, n):
        where = ew.Locations(xy=np.column_stack([np.arange(360) % 20, np.arange(360) // 20]).astype(float))
        rows = [np.roll(6 * (first + i) + np.arange(6), day).repeat(4) for i in range(n) for day in range(3)]
        dates = np.tile(np.arange("2024-03-04", "2024-03-07", dtype="datetime64[D]"), n)
        users = np.repeat([f"{first + i}" for i in range(n)], 3)
        return ew.Traces(rows, where, users=users, dates=dates, step_minutes=60)

    real, fakes = people(0, 30), people(30, 30)
    found = lives.judge_lives(real, fakes, rng=np.random.default_rng(1))
    uses = judge_uses(real, fakes, rng=np.random.default_rng(1))

    assert uses["flows_places"].verdict == "not for this"
    assert found["flows_places"].within
    far = [m for m in found.measures if m.first and m.far]
    assert "flows_places" in [m.id for m in far]
    assert "home_share" not in [m.id for m in far]
    assert "off by more than half, and other real people hardly less, in flows between" in found.summary()


def test_lives_of_other_lengths_are_cut_and_dates_used_only_if_all_have_them():
    town = ew.simulate_town(users=60, locations=60, days=6, rng=np.random.default_rng(7)).traces
    short = town.select(np.flatnonzero(town.dates < np.sort(np.unique(town.dates))[3]))
    found = lives.judge_lives(town, short, rng=np.random.default_rng(1))
    assert found.sizes["days"] == found.sizes["fake_days"] == 180
    assert "real people have 6 days, fakes 3 (medians)" in found.notes[0]
    assert found["entropy"].within  # of six days against three it would not be

    # rows of one life in any order, without dates: users alone say whose they are
    undated = ew.Traces(town.r, town.locations, users=town.users, step_minutes=town.step_minutes, start=town.start)
    found = lives.judge_lives(town, undated, rng=np.random.default_rng(1))
    assert "the fakes carry no dates" in found.notes[0]
    assert found.week["kinds"] == 1
    assert found["moves_weekend"].off is None

    class Made:
        r, life = town.r, town.user

    assert lives.judge_lives(town, Made, rng=np.random.default_rng(1)).sizes["fakes"] == 60
    with pytest.raises(ew.errors.InvalidParameter, match="one clock"):
        lives.judge_lives(
            town, ew.Traces(town.r, town.locations, users=town.users, step_minutes=10), rng=np.random.default_rng(1)
        )


def test_the_page_shows_lives_with_curves_and_the_same_from_json(tmp_path):
    town = ew.simulate_town(users=60, locations=60, days=7, rng=np.random.default_rng(8)).traces
    found = lives.judge_lives(town.of_users(range(40)), town.of_users(range(40, 60)), rng=np.random.default_rng(1))
    uses = judge_uses(town, town, rng=np.random.default_rng(1))
    ew.report([uses, found], tmp_path / "a.html")
    ew.report(json.loads(json.dumps({"uses": uses.to_dict(), "lives": found.to_dict()})), tmp_path / "b.html")
    page = (tmp_path / "a.html").read_text()

    assert page == (tmp_path / "b.html").read_text()
    assert page.index('id="uses"') < page.index('id="lives"') < page.index('id="attacks"')
    for title in ("New places, day by day", "At home, by hour", "At the main place besides home, by hour"):
        assert f"<h3>{title}</h3>" in page
    assert all(f">{day}</text>" in page for day in ("Mon", "Sun"))
    near = sum(found[name].within for name in lives.FIRST)
    assert f"In {near} of {len(lives.FIRST)} measures of how people live" in page
    assert page.count("✓ as other people") >= near
    ew.report(uses, tmp_path / "c.html")
    assert 'id="lives"' not in (tmp_path / "c.html").read_text()
