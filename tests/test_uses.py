"""What the data are good for: each distance by its definition, the three words by their rule, and laws for both."""

import json
from pathlib import Path

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.evaluation import uses
from elsewhere.evaluation.uses import Days, Plan, judge_uses, verdict, zones

SLOTS = 6
DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"


@st.composite
def two_sets(draw):
    """Two sets of days on one small map, with gaps, weekdays and weekends in both."""
    R = draw(st.integers(4, 8))
    xy = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=R, max_size=R))
    day = st.lists(st.integers(-1, R - 1), min_size=SLOTS, max_size=SLOTS).filter(lambda row: max(row) >= 0)
    a, b = (draw(st.lists(day, min_size=2, max_size=5)) for _ in range(2))
    kinds = [[False, True, *draw(st.lists(st.booleans(), min_size=len(s) - 2, max_size=len(s) - 2))] for s in (a, b)]
    return R, xy, a, b, kinds


@settings(max_examples=60, deadline=None)
@given(two_sets())
def test_every_distance_is_that_of_its_definition(made):
    R, xy, a, b, kinds = made
    real = ew.Traces(a, ew.Locations(xy=xy), step_minutes=40, start="23:00")
    plan = Plan.of(real)
    sides = [Days(np.array(s), np.array(k), plan) for s, k in zip((a, b), kinds, strict=True)]
    distance = lambda o, d: float(np.hypot(*np.subtract(xy[o], xy[d])))  # noqa: E731
    found = naive.use_distances(
        a,
        b,
        R=R,
        zone={"flows_quarters": plan.zones[0], "flows_neighbourhoods": plan.zones[1], "flows_places": range(R)},
        block=plan.zones[2].tolist(),
        distance=distance,
        hour=[23, 23, 0, 1, 1, 2],
        step=40,
        top=max(1, plan.top),
        weekend=kinds,
    )
    for m in uses.MEASURES:
        if m.id != "places" or plan.top:
            assert m.d(*sides) == pytest.approx(found[m.id], abs=1e-12), m.id


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_zones_are_those_of_cutting_by_hand(data):
    n = data.draw(st.integers(1, 12))
    points = data.draw(st.lists(st.tuples(*[st.integers(0, 5)] * 2), min_size=n, max_size=n))
    weight = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    depth = data.draw(st.integers(0, 4))
    label = zones(np.array(points, dtype=float), np.array(weight, dtype=float), depth)

    assert {frozenset(np.flatnonzero(label == z).tolist()) for z in set(label.tolist())} == naive.cut_map(
        points, weight, depth
    ) - {frozenset()}


@settings(max_examples=300, deadline=None)
@given(*[st.integers(0, 100)] * 4, st.integers(0, 5))
def test_the_words_follow_the_rule(f, h, s, c, sd):
    figures = [x / 100 for x in (f, h, s, c, sd)]
    assert verdict(*figures) == naive.use_word(*figures)


def test_words_by_hand():
    # real people 10 in 100, chance 60: a quarter of the way is 22.5, but no more than 10 in 100 are good
    assert [verdict(f, 0.1, 0.05, 0.6) for f in (0.19, 0.21, 0.34, 0.36)] == ["good", "rough", "rough", "not for this"]
    # chance is near: a quarter and a half of the way from 10 to 30
    assert [verdict(f, 0.1, 0.05, 0.3) for f in (0.15, 0.16, 0.20, 0.21)] == ["good", "rough", "rough", "not for this"]
    # other people are as far as chance: half way from the same people to chance takes their place
    assert [verdict(f, 0.5, 0.2, 0.4) for f in (0.32, 0.34, 0.36)] == ["good", "rough", "not for this"]
    # as close as other people, but most does not match
    assert verdict(0.55, 0.55, 0.3, 0.95) == "rough"
    assert verdict(0.76, 0.76, 0.6, 0.95) == "not for this"
    # real data no nearer than chance
    assert [verdict(f, 0.5, 0.5, 0.5) for f in (0.4, 0.55, 0.7)] == ["cannot say", "cannot say", "not for this"]


@pytest.fixture(scope="module")
def week():
    return ew.simulate_town(users=140, days=7, locations=120, rng=np.random.default_rng(8)).traces


def words(real, fakes, seed=1):
    return {u.id: u.verdict for u in judge_uses(real, fakes, rng=np.random.default_rng(seed)).uses}


ALL = {m.id for m in uses.MEASURES}
SPACE = {"places", "hours", "trips", "flows_quarters", "flows_neighbourhoods", "flows_places"}


def test_the_real_days_are_good_for_everything(week):
    assert words(week, week) == dict.fromkeys(ALL, "good")


def test_random_places_are_good_for_nothing(week):
    nowhere = week.with_places(np.random.default_rng(1).integers(week.R, size=week.r.shape))
    assert words(week, nowhere) == dict.fromkeys(ALL, "not for this")


def test_what_is_destroyed_is_not_for_this_and_the_rest_stays_good(week):
    days = Days(week.r, None, Plan.of(week))
    rng = np.random.default_rng(2)
    moved = words(week, week.with_places(uses._at_random_places(days, rng).r))
    assert moved == {use: "not for this" if use in SPACE else "good" for use in ALL}

    mixed = ew.Traces(
        week.r, week.locations, dates=rng.permutation(week.dates), step_minutes=week.step_minutes, start=week.start
    )
    assert words(week, mixed) == {use: "not for this" if use == "weekdays" else "good" for use in ALL}

    shuffled = words(week, week.with_places(uses._in_random_order(days, rng).r))
    assert shuffled["dwell"] == shuffled["flows_places"] == "not for this"


def test_other_people_of_the_town_are_never_not_for_this():
    both = ew.simulate_town(users=600, locations=120, rng=np.random.default_rng(9)).traces
    found = words(both.of_users(np.arange(300)), both.of_users(np.arange(300, 600)))
    assert found.pop("weekdays") == "cannot say"
    assert found.pop("flows_places") == "rough"
    assert set(found.values()) == {"good"}


def test_names_of_places_and_order_of_rows_do_not_matter(week):
    rng = np.random.default_rng(3)
    new, rows = rng.permutation(week.R), rng.permutation(len(week))
    old = np.argsort(new)
    where = ew.Locations(lat=week.locations.lat[old], lon=week.locations.lon[old])
    given_ = {"step_minutes": week.step_minutes, "start": week.start, "dates": week.dates}
    renamed = ew.Traces(new[week.r], where, users=week.users, **given_)
    half = week.select(rows[: len(week) // 2])
    made = ew.Traces(new[half.r], where, dates=half.dates, step_minutes=week.step_minutes, start=week.start)
    ours, theirs = (
        judge_uses(week, half, rng=np.random.default_rng(4)),
        judge_uses(renamed, made, rng=np.random.default_rng(4)),
    )
    for a, b in zip(ours.uses, theirs.uses, strict=True):
        for name in ("fakes", "halves", "same"):
            assert getattr(a, name) == pytest.approx(getattr(b, name), abs=1e-9), (a.id, name)


def test_what_cannot_be_said_says_why(week):
    plain = judge_uses(week.r, week.r, rng=np.random.default_rng(1))
    assert plain["trips"].words == "The places have no coordinates."
    assert plain["flows_quarters"].verdict == "cannot say"
    assert plain["flows_places"].verdict == "good"
    assert plain["weekdays"].words == "The real days carry no dates."

    friday = week.select(week.dates == week.dates[4])
    assert judge_uses(friday, friday, rng=np.random.default_rng(1))["weekdays"].words == "All real days are weekdays."
    undated = judge_uses(week, week.r, rng=np.random.default_rng(1))
    assert undated["weekdays"].words == "The fakes carry no dates."

    few = week.of_users(np.arange(9))
    assert {u.verdict for u in judge_uses(few, few, rng=np.random.default_rng(1)).uses} == {"cannot say"}
    still = ew.Traces(np.zeros((30, 8), dtype=int), ew.Locations(xy=[[0, 0], [1, 1]]))
    assert {u.verdict for u in judge_uses(still, still, rng=np.random.default_rng(1)).uses} == {"cannot say"}


def test_the_sentence_has_the_figure_of_the_verdict(week):
    found = judge_uses(week, week, rng=np.random.default_rng(1))
    lines = found.in_words()
    assert len(lines) == 8
    missing, beside = (f"{10 * d:.1f}".removesuffix(".0") for d in (found["places"].fakes, found["places"].halves))
    said = f"Busiest places: {missing} of 10 missing; between two halves of the real people {beside}"
    assert lines[0] == f"good          {said}"
    assert found["places"].words.startswith(f"{missing} of the 10 busiest places are missing; between two halves of ")
    assert found["dwell"].figure == f"{100 * found['dwell'].fakes:.0f} of 100 stays of the wrong length"
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["dwell"]["verdict"] == "good"
    assert list(told) == [*(m.id for m in uses.MEASURES), "sizes", "notes"]


def test_where_most_slots_were_filled_the_words_on_stays_say_so(week):
    plain, half, most = (judge_uses(week, week, filled=f, rng=np.random.default_rng(1)) for f in (0.0, 0.5, 0.89))
    said = "real stays as filled: 89 % of the slots had no fix"

    assert plain.to_dict() == half.to_dict()
    assert most["dwell"].short == f"{plain['dwell'].short} ({said})"
    assert most["dwell"].words == f"{plain['dwell'].words} R{said[1:]}."
    assert [u for u in most.uses if u.id != "dwell"] == [u for u in plain.uses if u.id != "dwell"]


def test_the_same_numbers_for_the_same_rng_and_inputs_are_checked(week):
    first, second = (judge_uses(week, week, rng=np.random.default_rng(5)).to_dict() for _ in range(2))
    assert first == second
    later = ew.Traces(week.r, week.locations, step_minutes=week.step_minutes, start="03:00")
    with pytest.raises(ew.errors.InvalidParameter, match="one clock"):
        judge_uses(week, later, rng=np.random.default_rng(5))
    with pytest.raises(ew.errors.InvalidParameter, match="`rng` must be"):
        judge_uses(week, week, rng=7)


@pytest.mark.skipif(not (DATA / "pf_tokyo").exists(), reason="needs PF Tokyo in ../shared/data/pf_tokyo")
def test_other_real_people_of_pf_are_good_where_nothing_was_chosen():
    import pandas as pd

    folder = DATA / "pf_tokyo"
    table = pd.read_csv(folder / "pf_tokyo_traces.csv.gz", usecols=["uid", "slot", "loc"]).sort_values(["uid", "slot"])
    r = table["loc"].to_numpy().reshape(1000, 30)
    places = pd.read_csv(folder / "pf_tokyo_locations.csv")
    real = ew.Traces(r[:500], ew.Locations(lat=places["lat"].to_numpy(), lon=places["lon"].to_numpy()), start="09:00")
    found = words(real, r[500:])
    assert found.pop("weekdays") == "cannot say"
    assert set(found.values()) == {"good"}


def test_a_few_very_long_trips_are_told_though_the_shares_of_all_lengths_are_alike():
    """Fakes that jump to another city now and then: 2 of 100 trips of the wrong length, and a mean that is far off."""
    places = ew.Locations(xy=[[float(i), 0.0] for i in range(20)] + [[400.0 + i, 0.0] for i in range(20)])
    steps = np.random.default_rng(1).choice([-1, 1], size=(60, 24))
    real = np.abs(np.cumsum(steps, axis=1)) % 20
    fakes = real.copy()
    fakes[:12, 12] = 30
    town = ew.Traces(real, places)

    jumps = judge_uses(town, fakes, rng=np.random.default_rng(2))["trips"]
    assert jumps.verdict == "good"
    assert "The mean is far off: " in jumps.words
    assert "far off" not in judge_uses(town, real, rng=np.random.default_rng(2))["trips"].words
