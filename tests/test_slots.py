"""Slots from visits and back: the rule against its slow twin, and days that come back as they were."""

import naive_data
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elsewhere.data.slots import DAY, Traces, fill_slots
from elsewhere.data.town import simulate_town
from elsewhere.data.visits import Locations, Visits
from elsewhere.errors import InvalidParameter, InvalidTraces

HOUR = 3600
GOLDEN = (3824599127, 691, 73)  # before the room was rebuilt
ROWS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 3 * 24 * 12).map(lambda k: 300 * k),
        st.sampled_from([0, 300, 1200, 7200, 40_000]),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=30,
)


def visits_of(rows):
    user, start, length, place = np.array(rows).T
    return Visits(user, start, start + length, place, Locations(n=4), users=["a", "b", "c"])


def kept(rows):
    """Days with two observed slots, half of which is known."""
    return {key: row for key, row in rows.items() if np.mean(np.array(row) >= 0) >= 0.5}


@settings(max_examples=200, deadline=None)
@given(ROWS, st.sampled_from([0, 60, 180, 720, 1440]), st.sampled_from([20, 60, 180]))
def test_filling_against_the_twin(rows, gap, step):
    visits = visits_of(rows)
    in_order = list(
        zip(visits.user.tolist(), visits.start.tolist(), visits.end.tolist(), visits.place.tolist(), strict=True)
    )
    width = 60 * step
    expected = kept(naive_data.slots(in_order, width, 60 * gap))
    observed = {
        (user, day): sum(row[k] >= 0 for k in range(len(row)))
        for (user, day), row in naive_data.slots(in_order, width, -1).items()
    }
    expected = {key: row for key, row in expected.items() if observed[key] >= 2}
    if not expected:
        with pytest.raises(InvalidTraces):
            fill_slots(visits, step_minutes=step, max_gap=gap)
        return
    traces = fill_slots(visits, step_minutes=step, max_gap=gap)
    days = traces.dates.astype(np.int64).tolist()
    number = {"a": 0, "b": 1, "c": 2}
    found = {(number[u], d): row for u, d, row in zip(traces.users.tolist(), days, traces.r.tolist(), strict=True)}
    assert found == expected


def test_the_people_decide_the_gap():
    """Nine of ten have a fix every three hours, one has one a day: three hours are enough."""
    rows = [(u, HOUR * h, 60, 0) for u in range(9) for h in range(0, 24, 3)]
    rows += [(9, 0, 60, 0), (9, 23 * HOUR, 60, 0)]
    user, start, length, place = np.array(rows).T
    visits = Visits(user, start, start + length, place, Locations(n=1))
    assert np.array_equal(fill_slots(visits).r, fill_slots(visits, max_gap=180).r)
    assert set(fill_slots(visits).users) == set(range(9))


def test_full_days_come_back_as_they_were():
    town = simulate_town(users=50, days=9, locations=60, rng=np.random.default_rng(3))
    visits = town.visits
    again = visits.traces()
    assert np.array_equal(again.r, town.traces.r)
    assert np.array_equal(again.dates, town.traces.dates)
    assert again.users.tolist() == town.traces.users.tolist()
    assert again.locations is town.traces.locations
    # a stay over midnight is one visit, and time is neither lost nor invented
    assert (visits.end - visits.start).sum() == 50 * 9 * DAY
    assert np.any(visits.start // DAY != (visits.end - 1) // DAY)
    changes = (visits.place[1:] == visits.place[:-1]) & (visits.user[1:] == visits.user[:-1])
    assert not changes.any()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(-1, 2), min_size=4, max_size=4), min_size=1, max_size=5))
def test_what_is_missing_is_no_visit(rows):
    rows = [row for row in rows if max(row) >= 0]
    if not rows:
        return
    traces = Traces(rows, Locations(n=3), users=["a"] * len(rows), step_minutes=360)
    visits = traces.visits()
    assert (visits.end - visits.start).sum() == 6 * HOUR * np.count_nonzero(traces.r >= 0)
    day = visits.start // DAY
    assert set(np.diff(np.unique(day)).tolist()) <= {1, 2, 4, 6, 8}  # rows without dates stand apart
    for start, end, place in zip(visits.start, visits.end, visits.place, strict=True):
        row = (int(start) // DAY - 4) // 2
        first, last = int(start) % DAY // (6 * HOUR), (int(end) - 1) % DAY // (6 * HOUR)
        assert set(traces.r[row, first : last + 1].tolist()) == {place}


def test_a_gap_is_held_over_midnight_and_a_morning_takes_its_first_place():
    night = Visits([0, 0, 1, 1], [20 * HOUR, 33 * HOUR, 9 * HOUR, 12 * HOUR], [22 * HOUR, 48 * HOUR, 12 * HOUR, DAY],
                   [0, 1, 1, 0], Locations(n=2))  # fmt: skip
    traces = fill_slots(night, step_minutes=180, max_gap=11 * 60)
    first, *rest = traces.r.tolist()
    assert first == [-1, -1, 0, 0, 0, 0, 0, 0]
    assert rest == [[0, 0, 0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0, 0]]
    assert fill_slots(night, step_minutes=180, max_gap=60).r.tolist()[-1] == [-1, -1, 1, 1, 0, 0, 0, 0]


def test_two_check_ins_outweigh_one_and_a_second_of_a_visit_does_not():
    times = np.array([0, 10, 20, 1200])
    assert Visits([0] * 4, times, times, [0, 1, 1, 0], Locations(n=2)).traces(max_gap=1440).r[0, :2].tolist() == [1, 0]


def test_slots_that_do_not_fit_a_day_are_refused():
    visits = Visits([0, 0], [0, HOUR], [0, HOUR], [0, 0], Locations(n=1))
    for wrong in (7, 0, 2000, np.nan):
        with pytest.raises(InvalidParameter):
            visits.traces(step_minutes=wrong)
    with pytest.raises(InvalidParameter):
        visits.traces(max_gap=-1)
    with pytest.raises(InvalidTraces) as caught:
        visits.traces(max_gap=0)
    assert caught.value.code == "E_EMPTY"


def test_a_visit_of_a_year_is_read_day_by_day():
    visits = Visits([0], [0], [365 * DAY], [0], Locations(n=1))
    assert visits.traces().r.shape == (365, 72)


def test_the_town_is_the_town_it_was():
    town = simulate_town(users=30, days=3, rng=np.random.default_rng(7))
    digest = int((town.traces.r.astype(np.int64) * np.arange(1, town.traces.r.size + 1).reshape(-1, 72)).sum())
    assert (digest, int(town.truth.sum()), int(town.habit.sum())) == GOLDEN
