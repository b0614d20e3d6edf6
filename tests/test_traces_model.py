"""Places, periods and traces: distances on the globe, the clock, selection, and what is refused at the door."""

import itertools
import pickle

import naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.sorting import distinct, distinct_visits
from elsewhere.data.slots import Evidence, describe_difference

THREE = ew.Locations(n=3)
LAT, LON = st.floats(-90, 90), st.floats(-180, 180)
POINTS = st.tuples(LAT, LON)


def refused(call, *arguments, **options):
    """The code of the error that the call raises."""
    with pytest.raises(ew.ElsewhereError) as caught:
        call(*arguments, **options)
    return caught.value.code


def globe(*points):
    return ew.Locations(lat=[lat for lat, _ in points], lon=[lon for _, lon in points])


@example((0.0, 180.0), (0.0, 1e-06))
@given(POINTS, POINTS)
def test_distance_equals_its_slow_twin(a, b):  # F30
    far = naive.great_circle_km(a, b)
    near_antipode = 1e-3 if far > 20_000 else 1e-6  # where the angle is known to about 1e-8
    assert globe(a, b).distance(0, 1) == pytest.approx(far, rel=1e-9, abs=near_antipode)


@given(st.lists(POINTS, min_size=3, max_size=3))
def test_distance_is_a_metric(points):  # F30
    d = globe(*points).distance(np.arange(3)[:, None], np.arange(3))

    np.testing.assert_array_equal(d, d.T)
    assert np.all(np.diag(d) == 0)
    for i, j, k in itertools.permutations(range(3)):
        assert d[i, k] <= d[i, j] + d[j, k] + 1e-3  # near the antipode the angle is known to about 1e-8


@given(POINTS, st.tuples(LAT, st.floats(-180, 0)))
def test_a_turn_of_the_globe_changes_no_distance(a, b):  # F30
    turned = (b[0], b[1] + 360)

    assert globe(a, turned).distance(0, 1) == pytest.approx(globe(a, b).distance(0, 1), rel=1e-9, abs=1e-3)


def test_distances_known_by_heart():  # B24, B25
    around = globe((0, 179.9), (0, -179.9), (90, 0), (90, 123), (-90, 0), (0, 0), (0, 180), (0, -180))

    assert around.distance(0, 1) == pytest.approx(0.2 / 360 * 2 * np.pi * 6371.0088)
    assert around.distance(2, 3) == pytest.approx(0, abs=1e-9)
    assert around.distance(2, 4) == pytest.approx(np.pi * 6371.0088)
    assert around.distance(5, 6) == pytest.approx(np.pi * 6371.0088)
    assert around.distance(6, 7) == pytest.approx(0, abs=1e-9)


def test_planar_and_placeless_distances():
    plane = ew.Locations(xy=[[0, 0], [3, 4]])

    assert plane.distance([0, 1], [1, 1]).tolist() == [5, 0]
    assert THREE.distance(np.arange(3)[:, None], np.arange(3)).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert (plane.has_coordinates, THREE.has_coordinates) == (True, False)
    assert refused(THREE.planar) == "E_PARAM"


def test_a_town_on_the_antimeridian_stays_whole_on_the_plane():  # B24
    fiji = globe((-17.0, 179.95), (-17.0, -179.95), (-16.9, 180.0))

    apart = np.hypot(*(fiji.planar()[:, None] - fiji.planar()[None]).T)
    np.testing.assert_allclose(apart, fiji.distance(np.arange(3)[:, None], np.arange(3)), rtol=2e-3)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "E_PARAM"),
        ({"lat": [0]}, "E_PARAM"),
        ({"lat": [0], "lon": [0], "n": 1}, "E_PARAM"),
        ({"n": 0}, "E_PARAM"),
        ({"n": 2.5}, "E_PARAM"),
        ({"n": True}, "E_PARAM"),
        ({"lat": [90.0001], "lon": [0]}, "E_OUTSIDE"),
        ({"lat": [0], "lon": [360.1]}, "E_OUTSIDE"),
        ({"lat": [0, 1], "lon": [0]}, "E_SHAPE"),
        ({"lat": [[0]], "lon": [[0]]}, "E_SHAPE"),
        ({"xy": [1, 2]}, "E_SHAPE"),
        ({"xy": [[0, 0, 0]]}, "E_SHAPE"),
        ({"xy": np.zeros((0, 2))}, "E_EMPTY"),
        ({"lat": [], "lon": []}, "E_EMPTY"),
        ({"xy": [[np.nan, 0]]}, "E_NUMBER"),
        ({"lat": [np.inf], "lon": [0]}, "E_NUMBER"),
        ({"lat": ["x"], "lon": [0]}, "E_NUMBER"),
        ({"lat": [None], "lon": [0]}, "E_NUMBER"),
        ({"xy": [[0, 0], [1]]}, "E_NUMBER"),
    ],
)
def test_impossible_places_are_refused(arguments, code):
    assert refused(ew.Locations, **arguments) == code


def test_equal_maps_are_equal_and_others_are_not():  # B53
    maps = [ew.Locations(n=2), ew.Locations(n=3), ew.Locations(xy=[[0, 1], [2, 3]]), globe((0, 2), (1, 3))]

    assert ew.Locations(xy=[[0, 1], [2, 3]]) == maps[2]
    assert len(set(maps)) == 4
    assert len(maps[2]) == 2
    assert maps[0] != "a map"


def test_what_the_caller_does_to_his_arrays_does_not_reach_us():
    xy, r, users = np.zeros((2, 2)), np.zeros((1, 2), dtype=np.int32), np.array(["a"])
    places = ew.Locations(xy=xy)
    traces = ew.Traces(r, places, users=users)
    xy[:], r[:], users[:] = 9, 1, "b"

    assert places.xy.sum() == traces.r.sum() == 0
    assert traces.users.tolist() == ["a"]
    with pytest.raises(ValueError, match="read-only"):
        traces.r[0, 0] = 1
    with pytest.raises(AttributeError):
        traces.r = r


def test_twenty_to_six_is_night_and_six_is_morning():  # E24
    day = ew.Traces([[0] * 72], THREE)
    tau = ew.Periods.of(4).of_minute(day.minutes())

    assert tau[[16, 17, 18, 35, 36, 53, 54, 71]].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert day.minutes()[[17, 18]].tolist() == [5 * 60 + 40, 6 * 60]
    # slots are local wall clock: the night of a clock change has the same ones
    spring = ew.Traces([[0] * 72], THREE, tz="Europe/Zurich", dates=["2018-03-25"])
    np.testing.assert_array_equal(ew.Periods.of(4).of_minute(spring.minutes()), tau)


def test_the_clock_goes_round():
    late = ew.Traces([[0] * 4], THREE, start="23:20")

    assert late.minutes().tolist() == [1400, 1420, 0, 20]
    assert ew.Periods.of([0, 6, 24]).of_minute(late.minutes()).tolist() == [1, 1, 0, 0]


@given(st.integers(1, 48), st.integers(1, 60))
def test_parts_of_the_day_are_equal(T, minutes):
    tau = ew.Periods.of(T).of_minute(np.arange(0, 1440, minutes))

    assert tau.tolist() == [m * T // 1440 for m in range(0, 1440, minutes)]


@given(st.integers(1, 60), st.integers(1, 96))
def test_an_instant_on_a_bound_belongs_to_the_period_it_begins(T, L):
    day = ew.Traces([[0] * L], THREE, step_minutes=1440 / L)

    assert ew.Periods.of(T).of_minute(day.minutes()).tolist() == [i * T // L for i in range(L)]


def test_periods_by_number_or_bounds():
    assert ew.Periods.of(4) == ew.Periods.of([0, 6, 12, 18, 24]) == ew.Periods.of(ew.Periods.of(np.int64(4)))
    assert ew.Periods.of(4).T == 4
    assert hash(ew.Periods([0, 24])) == hash(ew.Periods.of(1))


@pytest.mark.parametrize(
    "periods",
    [0, -1, 1441, True, 2.5, None, "4", [], [0], [0, 12], [6, 24], [0, 12, 12, 24], [0, 18, 6, 24], [0, np.nan, 24]],
)
def test_periods_that_do_not_cover_the_day_are_refused(periods):
    assert refused(ew.Periods.of, periods) in ("E_PERIODS", "E_PARAM")
    assert refused(ew.Periods, periods) == "E_PERIODS"


@pytest.mark.parametrize(
    ("r", "code"),
    [
        ([[0, 3]], "E_INDEX"),
        ([[0, -2]], "E_INDEX"),
        ([[1e30, 0]], "E_INDEX"),
        (np.array([[2**63]], dtype=np.uint64), "E_INDEX"),
        ([[0.5, 1]], "E_NUMBER"),
        ([[np.nan, 1]], "E_NUMBER"),
        ([[np.inf, 1]], "E_NUMBER"),
        ([["0", "1"]], "E_NUMBER"),
        ([[True, False]], "E_NUMBER"),
        ([[None, 1]], "E_NUMBER"),
        ([[0], [0, 1]], "E_SHAPE"),
        ([0, 1], "E_SHAPE"),
        (np.zeros((1, 2, 3)), "E_SHAPE"),
        (None, "E_SHAPE"),
        ([[]], "E_EMPTY"),
        (np.zeros((0, 4), dtype=int), "E_EMPTY"),
        ([[0, 1], [-1, -1]], "E_EMPTY"),
    ],
)
def test_impossible_traces_are_refused(r, code):  # B59
    assert refused(ew.Traces, r, THREE) == code


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"users": ["a"]}, "E_SHAPE"),
        ({"users": ["a", None]}, "E_USER"),
        ({"users": ["a", float("nan")]}, "E_USER"),
        ({"users": [["a"], ["b"]]}, "E_USER"),
        ({"users": 5}, "E_USER"),
        ({"users": ["a", pd.NA]}, "E_USER"),
        ({"users": ["a", pd.NaT]}, "E_USER"),
        ({"dates": ["2020-01-01"]}, "E_SHAPE"),
        ({"dates": ["2020-01-01", "yesterday"]}, "E_DATE"),
        ({"dates": ["2020-01-01", None]}, "E_DATE"),
        ({"dates": [["2020-01-01"], ["2020-01-02"]]}, "E_SHAPE"),
        ({"dates": 5}, "E_SHAPE"),
        ({"step_minutes": 0}, "E_PARAM"),
        ({"step_minutes": -20}, "E_PARAM"),
        ({"step_minutes": float("nan")}, "E_PARAM"),
        ({"step_minutes": 1441}, "E_PARAM"),
        ({"step_minutes": "twenty"}, "E_PARAM"),
        ({"step_minutes": None}, "E_PARAM"),
        ({"tz": 5}, "E_TZ"),
        ({"tz": "Europe/Nowhere"}, "E_TZ"),
        ({"start": "24:00"}, "E_PARAM"),
        ({"start": "noon"}, "E_PARAM"),
        ({"start": 9}, "E_PARAM"),
        ({"evidence": 5}, "E_EVIDENCE"),
        ({"evidence": {(0,): {0: 1.0}}}, "E_EVIDENCE"),
        ({"evidence": {(0, 0): ([0, 1], [1.0])}}, "E_EVIDENCE"),
        ({"evidence": {(2, 0): {0: 1.0}}}, "E_INDEX"),
        ({"evidence": {(0, 2): {0: 1.0}}}, "E_INDEX"),
        ({"evidence": {(0, -1): {0: 1.0}}}, "E_INDEX"),
        ({"evidence": {(0, 0): {3: 1.0}}}, "E_INDEX"),
        ({"evidence": {(0, 0): {0: 0.0}}}, "E_NUMBER"),
        ({"evidence": {(0, 0): {0: float("nan")}}}, "E_NUMBER"),
    ],
)
def test_impossible_companions_of_traces_are_refused(options, code):
    assert refused(ew.Traces, [[0, 1], [1, 2]], THREE, **options) == code


def test_places_must_be_locations():
    assert refused(ew.Traces, [[0, 1]], 3) == "E_PARAM"


def test_users_are_numbered_by_first_appearance_and_compared_exactly():  # B45, E61
    labels = ["b", "a", "b", " a", "A", "1", 1]
    traces = ew.Traces([[0]] * 7, THREE, users=labels)

    assert traces.user.tolist() == [0, 1, 0, 2, 3, 4, 5]
    assert traces.users.tolist() == labels
    assert (traces.U, len(traces), traces.L, traces.R) == (6, 7, 1, 3)
    assert ew.Traces([[0], [0]], THREE).user.tolist() == [0, 1]


def test_selected_rows_keep_all_that_belongs_to_them():
    traces = ew.Traces(
        [[0, 1], [1, 2], [2, 0]],
        THREE,
        users=["x", "y", "x"],
        dates=["2020-01-01", "2020-01-02", "2020-01-03"],
        step_minutes=30,
        start="08:00",
        tz="Asia/Tokyo",
        evidence={(0, 1): {1: 0.5, 2: 0.5}, (2, 0): ([2], [3.0])},
    )

    some = traces.select([2, 0, 2])

    assert some.r.tolist() == [[2, 0], [0, 1], [2, 0]]
    assert some.users.tolist() == ["x", "x", "x"]
    assert some.dates.astype(str).tolist() == ["2020-01-03", "2020-01-01", "2020-01-03"]
    assert (some.step_minutes, some.start, some.tz, some.locations) == (30, "08:00", "Asia/Tokyo", THREE)
    e = some.evidence
    entries = set(zip(e.row.tolist(), e.slot.tolist(), e.place.tolist(), e.weight.tolist(), strict=True))
    assert entries == {(0, 0, 2, 3.0), (1, 1, 1, 0.5), (1, 1, 2, 0.5), (2, 0, 2, 3.0)}
    np.testing.assert_array_equal(traces.select([False, True, False]).r, [[1, 2]])


def test_rows_of_users():
    traces = ew.Traces([[0], [1], [2]], THREE, users=["x", "y", "x"])

    assert traces.of_users([0]).r.tolist() == [[0], [2]]
    assert traces.of_users([1, 0]).users.tolist() == ["x", "y", "x"]


@pytest.mark.parametrize("rows", [[3], [-1], [0.5], "x", 0, [[0]], [True, False], None])
def test_unknown_rows_and_users_are_refused(rows):
    traces = ew.Traces([[0], [1], [2]], THREE, evidence={(0, 0): {0: 1.0}})

    assert refused(traces.select, rows) == "E_INDEX"
    assert refused(traces.of_users, rows) == "E_USER"


def test_nobody_cannot_be_chosen():
    traces = ew.Traces([[0], [1]], THREE)

    for none in ([], [False, False], np.array([], dtype=int)):
        assert refused(traces.select, none) == refused(traces.of_users, none) == "E_EMPTY"


def test_neither_repr_nor_messages_show_content():  # F15
    places = ew.Locations(n=8000)
    traces = ew.Traces([[7713, 7714]], places, users=["CANARY-7f3a"], dates=["2017-07-17"])

    assert repr(traces) == "Traces(1 users, 1 rows of 2 slots, 8000 places)"
    assert repr(globe((46.77, 6.77))) == "Locations(1 places, lat, lon)"
    assert repr(Evidence.of({(0, 1): {7713: 0.77}})) == "Evidence(1 entries)"
    for bad in (
        {"r": [[7713, 9999]]},
        {"r": [[7713.5, 1]]},
        {"users": ["CANARY-7f3a", "CANARY-7f3a"]},
        {"users": [["CANARY-7f3a"]]},
        {"dates": ["CANARY-7f3a"]},
        {"evidence": {(0, 0): {9999: 7713.0}}},
        {"evidence": {(0, 0): "CANARY-7f3a"}},
    ):
        with pytest.raises(ew.ElsewhereError) as caught:
            ew.Traces(**({"r": [[7713, 7714]], "locations": places} | bad))
        assert not any(secret in str(caught.value) for secret in ("CANARY", "7713", "9999"))
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_traces_travel_to_other_processes():
    traces = ew.Traces([[0, 1]], THREE, users=["x"], evidence={(0, 0): {1: 1.0}})

    copy = pickle.loads(pickle.dumps(traces))  # noqa: S301

    np.testing.assert_array_equal(copy.r, traces.r)
    assert copy.locations == traces.locations
    assert isinstance(copy.evidence, Evidence)


def test_places_may_have_names():
    town = ew.Locations(n=2, names=["home", "work"])
    traces = ew.Traces([[0, 1]], town).select([0])

    assert traces.locations.names == ("home", "work")
    assert "home" not in repr(town)
    assert town == ew.Locations(n=2)  # names are no geometry
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.Locations(n=2, names=["home"])
    assert caught.value.code == "E_SHAPE"


def test_a_dated_row_is_at_most_a_day():
    place = [[0] * 108]
    assert ew.Traces(place, ew.Locations(n=1)).L == 108
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.Traces(place, ew.Locations(n=1), dates=["2013-04-15"])
    assert caught.value.code == "E_SHAPE"


@pytest.mark.parametrize(
    ("model", "here", "words"),
    [
        (ew.Locations(n=3), ew.Locations(n=4), "the model has 3 places, the traces have 4"),
        (
            ew.Locations(xy=[[0, 0], [0, 1], [1, 0]]),
            ew.Locations(xy=[[0, 1], [2, 2]]),
            "the model has 3 places, the traces have 2, and 1 of them are the same",
        ),
        (
            ew.Locations([46.5, 46.6], [6.6, 6.7]),
            ew.Locations([46.6, 46.5], [6.7, 6.6]),
            "the model has 2 places, the traces have 2, and 2 of them are the same, in another order",
        ),
        (
            ew.Locations([46.5], [6.6]),
            ew.Locations(n=1),
            "the model has 1 places with latitude and longitude, the traces have 1 with no coordinates",
        ),
    ],
)
def test_how_two_maps_differ_is_told_in_counts(model, here, words):
    assert describe_difference(model, here) == words


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.lists(st.integers(-1, 4), min_size=4, max_size=4).filter(lambda row: max(row) >= 0)
        )
    )
)
def test_visitors_are_the_users_who_are_ever_there(rows):
    rows.append((0, [0, 0, 0, 0]))
    r, user = np.array([places for _, places in rows]), [who for who, _ in rows]
    visitors = ew.Traces(r, ew.Locations(n=5), users=user).visitors()
    assert visitors.tolist() == [len({who for who, places in rows if place in places}) for place in range(5)]

    place, visitor = distinct_visits(np.array(user), r)
    pairs = {(p, who) for who, places in rows for p in places if p >= 0}
    assert list(zip(place.tolist(), visitor.tolist(), strict=True)) == sorted(pairs)
    assert distinct(r).tolist() == sorted(set(r.ravel().tolist()))
