"""Visits and Locations: what they hold, what they refuse, and two files on one map."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elsewhere.data.visits import Form, Locations, Preparation, Visits, share_map, zone_of
from elsewhere.errors import ElsewhereError, InvalidParameter, InvalidTraces

TOWN = Locations(lat=[46.0, 46.1, 46.2], lon=[7.0, 7.1, 7.2], ids=["inn", "mill", "church"], kind=["food", None, ""])


def some(**other):
    columns = {"user": [1, 0, 0], "start": [50, 900, 100], "end": [50, 960, 400], "place": [2, 0, 1]}
    return Visits(**(columns | {"locations": TOWN, "users": ["ann", "bob"]} | other))


def test_the_signature_is_the_contract():
    names = list(inspect.signature(Visits).parameters)
    assert names[:8] == ["user", "start", "end", "place", "locations", "users", "trip", "tz"]
    assert list(inspect.signature(Locations).parameters)[:5] == ["lat", "lon", "xy", "n", "kind"]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(0, 9), st.integers(0, 2)), min_size=1))
def test_rows_are_sorted_and_nothing_is_lost(rows):
    user, start, length, place = np.array(rows).T
    visits = Visits(user, start, start + length, place, TOWN, users=range(4))

    found = list(zip(visits.user.tolist(), visits.start.tolist(), strict=True))
    assert found == sorted((u, s) for u, s, *_ in rows)
    whole = zip(visits.user, visits.start, visits.end - visits.start, visits.place, strict=True)
    assert sorted(tuple(map(int, row)) for row in whole) == sorted(rows)
    for u in range(4):
        assert set(visits.user[visits.rows(u)].tolist()) <= {u}
        assert len(visits.user[visits.rows(u)]) == np.count_nonzero(user == u)


def test_columns_are_small_frozen_and_their_own():
    start = np.array([900, 100])
    visits = Visits([0, 0], start, start, [0, 1], TOWN)
    start[:] = 0

    assert visits.start.tolist() == [100, 900]
    assert (visits.user.dtype, visits.place.dtype, visits.start.dtype) == (np.int32, np.int32, np.int64)
    with pytest.raises(ValueError, match="read-only"):
        visits.start[0] = 1
    ready = np.array([5, 6])
    ready.setflags(write=False)
    assert Visits([0, 0], ready, ready, [0, 1], TOWN).start is ready  # what nobody can change is not copied


@pytest.mark.parametrize(
    ("other", "code"),
    [
        ({"user": [1, 0]}, "E_SHAPE"),
        ({"user": [2, 0, 0]}, "E_INDEX"),
        ({"user": [-1, 0, 0]}, "E_INDEX"),
        ({"place": [3, 0, 0]}, "E_INDEX"),
        ({"place": [0.5, 0, 0]}, "E_NUMBER"),
        ({"start": [50, 901, 100], "end": [50, 900, 400]}, "E_ORDER"),
        ({"start": ["a", "b", "c"]}, "E_NUMBER"),
        ({"start": np.array(["NaT"] * 3, dtype="datetime64[s]")}, "E_DATE"),
        ({"users": ["ann", "ann"]}, "E_USER"),
        ({"users": ["ann", None]}, "E_USER"),
        ({"users": ["ann", ["b"]]}, "E_USER"),
        ({"trip": [0, 0]}, "E_SHAPE"),
        ({"trip": [0, 0, -2]}, "E_INDEX"),
        ({"tz": "Mars"}, "E_TZ"),
        ({"locations": 3}, "E_PARAM"),
        ({"user": [], "start": [], "end": [], "place": []}, "E_EMPTY"),
    ],
)
def test_what_cannot_be_is_refused(other, code):
    with pytest.raises(ElsewhereError) as caught:
        some(**other)
    assert caught.value.code == code
    assert "ann" not in str(caught.value)


def test_the_kind_of_record_is_told_from_the_rows():
    assert some().form.record == "visits"
    assert some(end=[50, 900, 100]).form.record == "events"
    assert some(trip=[0, 0, -1]).form.record == "trips"
    assert some(form=Form("fixes")).form.record == "fixes"
    with pytest.raises(InvalidParameter):
        Form("stays")


def test_datetimes_are_taken_as_local_seconds():
    times = np.array(["1970-01-01T00:00:50", "1970-01-01T00:15:00", "1970-01-01T00:01:40"], dtype="datetime64[ns]")
    assert some(start=times).start.tolist() == [100, 900, 50]


def test_a_table_with_the_names_of_the_contract_and_of_other_tools():
    visits = some(trip=[0, -1, 3], tz="Europe/Zurich")
    frame = visits.to_frame()

    assert list(frame.columns) == ["user", "start", "end", "place", "lat", "lon", "kind", "trip"]
    assert frame.user.tolist() == ["ann", "ann", "bob"]
    assert frame.place.tolist() == ["mill", "inn", "church"]
    assert frame.kind.tolist()[1] == "food"
    assert frame.kind.isna().tolist() == [True, False, True]
    assert frame.trip.isna().tolist() == [False, True, False]
    assert str(frame.start[0]) == "1970-01-01 00:01:40"
    assert Visits([0], [0], [0], [1], Locations(n=2)).to_frame().place.tolist() == [1]
    other = visits.to_frame("trackintel")
    assert {"user_id", "started_at", "finished_at"} <= set(other.columns)
    assert str(other.started_at[0]) == "1970-01-01 00:01:40+01:00"
    assert {"uid", "datetime", "leaving_datetime", "lat", "lng"} <= set(visits.to_frame("skmob").columns)
    with pytest.raises(InvalidParameter):
        visits.to_frame("pandas")


def test_an_hour_that_the_clock_skips_or_has_twice_has_a_time_in_its_zone():
    skipped = np.array(["2024-03-31T02:30", "2024-10-27T02:30"], dtype="datetime64[s]")
    frame = Visits([0, 0], skipped, skipped, [0, 0], TOWN, tz="Europe/Zurich").to_frame("trackintel")
    assert [str(t) for t in frame.started_at] == ["2024-03-31 03:00:00+02:00", "2024-10-27 02:30:00+02:00"]


def test_selections():
    visits = some(trip=[4, 5, 6])

    one = visits.of_users([1])
    assert (one.users, one.user.tolist(), one.place.tolist()) == (("bob",), [0], [2])
    both = visits.of_users([1, 0])
    assert (both.users, both.user.tolist(), both.place.tolist()) == (("bob", "ann"), [0, 1, 1], [2, 1, 0])
    assert both.trip.tolist() == [4, 6, 5]
    assert visits.of_users([False, True]).users == ("bob",)
    assert visits.select(visits.place > 0).place.tolist() == [1, 2]
    assert visits.select([0]).users == ("ann", "bob")
    assert visits.visitors().tolist() == [1, 1, 1]
    for wrong, error in (([], InvalidTraces), ([2], InvalidParameter), ([0, 0], InvalidParameter)):
        with pytest.raises(error):
            visits.of_users(wrong)


def test_a_million_users_with_one_record_each():
    n = 1_000_000
    visits = Visits(np.arange(n), np.zeros(n, int), np.zeros(n, int), np.zeros(n, int), Locations(n=1))
    assert (visits.U, visits.offsets[-1]) == (n, n)
    assert len(visits.of_users(np.arange(0, n, 2))) == n // 2


def test_nothing_of_a_trace_shows():
    text = f"{some()!r} {TOWN!r} {some().to_frame().shape}"
    assert not any(word in text for word in ("ann", "inn", "46", "900"))


def test_two_files_on_one_map_need_no_matching():
    here = Visits([0, 0], [1, 2], [1, 2], [0, 1], TOWN.select([0, 1]))
    there = Visits([0, 0], [1, 2], [1, 2], [0, 1], TOWN.select([2, 1]))
    a, b = share_map(here, there)

    assert a.locations is b.locations
    ids = np.array(a.locations.ids)
    assert ids[a.place].tolist() == ["inn", "mill"]
    assert ids[b.place].tolist() == ["church", "mill"]
    assert a.place[1] == b.place[1]
    assert a.locations.kind == ("food", "", "")


def test_places_match_by_id_then_by_position_then_by_number():
    assert TOWN.match(TOWN.select([2, 0])).tolist() == [1, -1, 0]
    bare = Locations(lat=[46.2, 46.0], lon=[7.2, 7.0])
    assert TOWN.match(bare).tolist() == [1, -1, 0]
    assert Locations(n=3).match(Locations(n=2)).tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "E_PARAM"),
        ({"lat": [1.0]}, "E_PARAM"),
        ({"lat": [1.0], "lon": [1.0, 2.0]}, "E_SHAPE"),
        ({"lat": [91.0], "lon": [1.0]}, "E_OUTSIDE"),
        ({"lat": [np.nan], "lon": [1.0]}, "E_NUMBER"),
        ({"xy": [[1.0, 2.0, 3.0]]}, "E_SHAPE"),
        ({"n": 0}, "E_PARAM"),
        ({"n": 2, "kind": ["a"]}, "E_SHAPE"),
        ({"n": 2, "ids": ["a", "a"]}, "E_INDEX"),
    ],
)
def test_locations_that_cannot_be_are_refused(arguments, code):
    with pytest.raises(ElsewhereError) as caught:
        Locations(**arguments)
    assert caught.value.code == code


def test_distances():
    assert Locations(xy=[[0, 0], [3, 4]]).distance(0, 1) == 5
    assert Locations(n=2).distance([0, 0], [0, 1]).tolist() == [0, 1]
    assert Locations(lat=[0, 0], lon=[179.5, -179.5]).distance(0, 1) == pytest.approx(111.195, abs=0.01)


def test_what_is_dropped_adds_up():
    counts = Preparation(dropped={"a": 1}).count(dropped={"a": 2, "b": 0, "c": 1}, users=3)
    assert (counts.dropped, counts.users) == ({"a": 3, "c": 1}, 3)
    assert counts.to_dict()["form"]["record"] == "visits"


def test_zones():
    assert zone_of("UTC+05:30").utcoffset(None).total_seconds() == 19_800
    with pytest.raises(InvalidParameter):
        zone_of("+99:99")
