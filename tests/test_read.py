"""Reading traces: formats told apart by content, slots and places from fixes, real datasets, and bad input."""

import gzip
import math
import os
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import naive
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from makefiles import read_together

import elsewhere as ew
from elsewhere.traces import fixes as fix_files
from elsewhere.traces import formats, sources
from elsewhere.traces.clock import offset_zone
from elsewhere.traces.fixes import Fixes
from elsewhere.traces.formats import streams
from elsewhere.data.visits import zone_of
from elsewhere.traces.places import cell_centres, grid_cells, make_grid, reduce_places
from elsewhere.traces.prepare import seconds_of

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
CANARY = "CANARY-7f3a"
PLACES = {0: (46.52, 6.57), 1: (46.53, 6.60), 2: (46.55, 6.65), 3: (46.50, 6.50)}


def dataset(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"the dataset {name} is not beside the project (../shared/data)")
    return path


def read(source, **options):
    """Traces and what was counted on the way."""
    counted = []
    traces = ew.read_traces(source, report=counted.append, **options)
    return traces, counted[0]


def refused(source, **options):
    """The code of a refusal; its message shows neither ids nor coordinates of the input."""
    with pytest.raises(ew.ElsewhereError) as caught:
        ew.read_traces(source, **options)
    message = str(caught.value)

    assert CANARY not in message
    assert "46.519" not in message
    assert caught.value.exit_status == 2
    return caught.value.code, message


def day(uid="ann", date="2013-04-15", place=lambda slot: slot // 36, step=20):
    """One complete day of fixes, one at the middle of every slot, in the columns of scikit-mobility."""
    begin = np.datetime64(date, "s") + np.arange(step * 30, 86400, step * 60)
    at = [PLACES[place(slot)] for slot in range(len(begin))]
    return pd.DataFrame({"uid": uid, "datetime": begin, "lat": [p[0] for p in at], "lng": [p[1] for p in at]})


def csv_of(frame, path, **options):
    frame.to_csv(path, index=False, **options)
    return path


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def same(a, b):
    return (
        np.array_equal(a.r, b.r)
        and a.users.tolist() == b.users.tolist()
        and (a.locations == b.locations)
        and (a.step_minutes, a.start, a.tz) == (b.step_minutes, b.start, b.tz)
        and (a.dates is None) == (b.dates is None)
        and (a.dates is None or np.array_equal(a.dates, b.dates))
    )


# formats


def test_every_container_of_fixes_gives_the_same_traces(tmp_path):
    frame = pd.concat([day("ann"), day("bob", place=lambda slot: 2)], ignore_index=True)
    expected = ew.read_traces(frame)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, tmp_path / "a.parquet")
    sources = [
        csv_of(frame, tmp_path / "a.csv"),
        csv_of(frame, tmp_path / "a.tsv", sep="\t"),
        csv_of(frame, tmp_path / "a.txt", sep=";"),
        csv_of(frame, tmp_path / "a.csv.gz"),
        tmp_path / "a.parquet",
        str(tmp_path / "a.csv"),
        table,
        {name: table[name] for name in table.column_names},
    ]

    assert expected.users.tolist() == ["ann", "bob"]
    assert expected.r.tolist() == [[0] * 36 + [1] * 36, [2] * 72]
    assert (expected.step_minutes, expected.start, expected.tz) == (20, "00:00", "Europe/Zurich")
    assert expected.dates.astype(str).tolist() == ["2013-04-15", "2013-04-15"]
    assert [same(ew.read_traces(source), expected) for source in sources] == [True] * len(sources)


@pytest.mark.parametrize(
    "names",
    [
        {"uid": "user_id", "datetime": "tracked_at", "lat": "latitude", "lng": "longitude"},
        {"uid": "User ID", "datetime": "Time", "lat": "Lat", "lng": "LON"},
        {"uid": "id", "datetime": "t", "lat": "latitude", "lng": "long"},
        {"uid": "user", "datetime": "date", "lat": "lat", "lng": "lng"},
    ],
)
def test_synonyms(names):
    assert same(ew.read_traces(day().rename(columns=names)), ew.read_traces(day()))


def test_named_columns_go_before_synonyms_and_none_leaves_a_role_out():
    frame = day().assign(time="nonsense", who="bob", slot=0)
    expected = ew.read_traces(day("bob"))

    assert same(ew.read_traces(frame, columns={"user": "who", "time": "datetime", "slot": None}), expected)
    assert refused(frame, columns={"user": "nobody"})[0] == "E_COLUMN"
    assert refused(frame, columns={"who": "who"})[0] == "E_PARAM"


def test_points_of_trackintel_as_text_as_objects_and_as_binary():
    class Point:
        def __init__(self, lat, lon):
            self.at = f"POINT ({lon} {lat})"

        def __str__(self):
            return self.at

    plain = day()
    base = plain[["uid", "datetime"]].rename(columns={"uid": "user_id", "datetime": "tracked_at"})
    pairs = list(zip(plain.lat, plain.lng, strict=True))
    wkb = [
        np.array([1], "u1").tobytes() + np.array([1], "<u4").tobytes() + np.array([x, y]).tobytes() for y, x in pairs
    ]
    expected = ew.read_traces(plain)

    assert same(ew.read_traces(base.assign(geom=[str(Point(*p)) for p in pairs])), expected)
    assert same(ew.read_traces(base.assign(geometry=[Point(*p) for p in pairs])), expected)
    assert same(ew.read_traces(base.assign(geometry=wkb)), expected)


def test_date_and_time_in_two_columns():
    frame = day()
    apart = frame.assign(date=frame.datetime.dt.strftime("%Y/%m/%d"), time=frame.datetime.dt.strftime("%H:%M:%S"))

    assert same(ew.read_traces(apart.drop(columns="datetime")), ew.read_traces(frame))


def test_slots_with_numbers_dates_and_coordinates(tmp_path):
    slots = pd.DataFrame({"uid": np.repeat(["b", "a"], 6), "slot": [0, 1, 2] * 4, "loc": [3, 3, 1, 0, 0, 0] * 2})
    slots["date"] = np.repeat(["2013-04-15", "2013-04-16"] * 2, 3)
    traces = ew.read_traces(csv_of(slots, tmp_path / "slots.csv"))

    assert traces.users.tolist() == ["a", "a", "b", "b"]
    assert traces.r.tolist() == [[3, 3, 1], [0, 0, 0]] * 2
    assert len(traces.locations) == 4
    assert not traces.locations.has_coordinates
    assert traces.dates.astype(str).tolist() == ["2013-04-15", "2013-04-16"] * 2

    numbered = slots.drop(columns="date").assign(day=[1, 1, 1, 2, 2, 2] * 2)
    assert np.array_equal(ew.read_traces(numbered).r, traces.r)
    assert ew.read_traces(numbered).dates is None

    coordinates = slots.assign(lat=[PLACES[r][0] for r in slots["loc"]], lon=[PLACES[r][1] for r in slots["loc"]])
    placed, _ = read(coordinates)
    # nobody is ever at 2, so nobody knows where it is
    assert placed.r.tolist() == [[2, 2, 1], [0, 0, 0]] * 2
    assert placed.locations == ew.Locations([PLACES[r][0] for r in (0, 1, 3)], [PLACES[r][1] for r in (0, 1, 3)])
    assert placed.locations.names == ("0", "1", "3")
    kept = ew.Locations([p[0] for p in PLACES.values()], [p[1] for p in PLACES.values()])
    assert ew.read_traces(coordinates, locations=kept).r.tolist() == traces.r.tolist()


def test_slots_of_coordinates_alone_become_grid_cells_and_are_merged():
    frame = day()
    slots = pd.DataFrame({"user": frame.uid, "slot": range(72), "lat": frame.lat, "lon": frame.lng})

    assert ew.read_traces(slots).r.tolist() == ew.read_traces(frame).r.tolist()
    assert ew.read_traces(slots, cells=1).r.tolist() == [[0] * 72]


def test_missing_numbered_slots_are_marked_or_absent():
    marked = {"uid": ["a"] * 4 + ["b"] * 4, "slot": [0, 1, 2, 3] * 2, "loc": [0, -1, 1, 1, 0, 0, 0, 0]}
    absent = {"uid": ["a"] * 3 + ["b"] * 4, "slot": [0, 2, 3, 0, 1, 2, 3], "loc": [0, 1, 1, 0, 0, 0, 0]}
    empty = {"uid": marked["uid"], "slot": marked["slot"], "loc": ["0", "", "1", "1", "0", "0", "0", "0"]}

    for table in (marked, absent, empty):
        traces, counted = read(table, max_gap=0)
        assert traces.r.tolist() == [[0, -1, 1, 1], [0, 0, 0, 0]]
        assert counted.slots_missing == 1
        # by default a gap is filled, for without it one of two people has no usable day
        traces, counted = read(table)
        assert traces.r.tolist() == [[0, 0, 1, 1], [0, 0, 0, 0]]
        assert (counted.slots_held, dict(counted.people_by_gap)["0h"], counted.users_usable) == (1, 1, 2)


def test_slots_that_do_not_overlap_are_refused():
    table = {"uid": ["a"] * 3 + ["b"] * 3, "slot": [0, 1, 2, 3, 4, 5], "loc": [0] * 6}

    assert refused(table)[0] == "E_ALIGN"
    assert refused(table, min_coverage=0.9)[0] == "E_ALIGN"


def test_the_times_beside_slots_tell_when_the_day_begins_and_how_long_a_slot_is():
    begin = np.datetime64("2013-07-07T09:00:53") + 1200 * np.arange(6)
    table = {"uid": ["a"] * 6, "slot": range(6), "loc": [0] * 6, "timestamp_local": begin}

    assert ew.read_traces(table).start == "09:00"
    assert ew.read_traces(table, start="10:00").start == "10:00"
    assert ew.read_traces(table).dates.astype(str).tolist() == ["2013-07-07"]
    assert refused(table, step="30min")[0] == "E_ALIGN"
    late = {"uid": ["a"] * 3, "slot": [27, 28, 29], "loc": [0] * 3}
    assert ew.read_traces(late).start == "09:00"
    assert refused({"uid": ["a"] * 3, "slot": [1, 2, 3], "loc": [0] * 3})[0] == "E_INDEX"
    assert refused({"uid": ["a"] * 3, "date": ["2013-07-07"] * 3, "slot": [0, 1, 72], "loc": [0] * 3})[0] == "E_INDEX"


def test_sglt_is_counted_from_one_and_finds_its_places_beside_it(tmp_path):
    write(tmp_path / "input.trace", "1,1,1\n1,2,3\n2,1,2\n2,2,2\n")
    bare = ew.read_traces(tmp_path / "input.trace")
    write(tmp_path / "locations", "0.0, 0.0\n0.5, 0.0\n1.0, 0.25\n1.5, 0.5\n")
    traces = ew.read_traces(tmp_path / "input.trace", format="sglt", start="09:00")

    assert bare.r.tolist() == traces.r.tolist() == [[0, 2], [1, 1]]
    assert len(bare.locations) == 3
    assert traces.locations == ew.Locations(xy=[[0, 0], [0.5, 0], [1, 0.25], [1.5, 0.5]])
    assert traces.users.tolist() == ["1", "2"]
    assert traces.start == "09:00"
    assert refused(write(tmp_path / "zero_trace.txt", "1,1,0\n1,2,3\n"))[0] == "E_INDEX"
    assert refused(write(tmp_path / "b_trace.txt", "1,1,5\n1,2,3\n"))[0] == "E_INDEX"
    assert refused(write(tmp_path / "c_trace.txt", "1,0,1\n1,1,3\n"))[0] == "E_INDEX"


def test_places_given_by_table_ids_and_nearest(tmp_path):
    places = pd.DataFrame({"loc": ["x", "y"], "lat": [46.52, 46.53], "lon": [6.57, 6.60]})
    slots = {"uid": ["a"] * 3, "slot": [0, 1, 2], "loc": ["y", "x", "y"]}
    expected = ew.Locations([46.52, 46.53], [6.57, 6.60])
    traces = ew.read_traces(slots, locations=csv_of(places, tmp_path / "places.csv"))

    assert traces.r.tolist() == [[1, 0, 1]]
    assert traces.locations == expected
    assert ew.read_traces(slots, locations=places).r.tolist() == [[1, 0, 1]]
    assert refused(slots | {"loc": ["y", "z", "y"]}, locations=places)[0] == "E_INDEX"
    assert refused(slots, locations=expected)[0] == "E_INDEX"
    assert ew.read_traces(day(), locations=expected).r.tolist() == [[0] * 36 + [1] * 36]
    assert expected.place_of(np.array([46.5201]), np.array([6.5699])).tolist() == [0]


def test_one_based_place_numbers_are_refused_with_a_hint():
    places = ew.Locations([46.52, 46.53], [6.57, 6.60])
    code, message = refused({"uid": ["a"] * 3, "slot": [0, 1, 2], "loc": [1, 2, 2]}, locations=places)

    assert code == "E_INDEX"
    assert "from 1" in message


def test_a_column_of_place_names_is_used_only_if_it_names_places():
    frame = day().assign(location=["a"] * 36 + ["b"] * 36)
    words = frame.assign(location=["stationary"] * 72)

    assert ew.read_traces(frame).locations == ew.Locations([46.52, 46.53], [6.57, 6.60])
    traces, counted = read(words)
    assert same(traces, ew.read_traces(day()))
    assert "do not name places" in counted.notes[1]


# ids and order


def test_ids_stay_text_to_the_last_digit(tmp_path):
    ids = ["9007199254740993", "9007199254740992", "1", " 1", "01", "1.0", "é", "=cmd|x", "NA", "null", "nan"]
    frame = pd.concat([day(uid) for uid in ids], ignore_index=True)
    traces, counted = read(csv_of(frame, tmp_path / "a.csv"))

    assert sorted(traces.labels) == sorted(ids)
    assert "differ" in counted.notes[-1]
    whole = pd.concat([day(uid) for uid in (10, 9, 2**53 + 1)], ignore_index=True)
    assert ew.read_traces(whole).labels == ("9", "10", str(2**53 + 1))
    assert ew.read_traces(csv_of(whole, tmp_path / "b.csv")).labels == ("9", "10", str(2**53 + 1))
    spoilt = whole.assign(uid=[9.0] * 144 + [math.nan] + [9.0] * 71)
    assert ew.read_traces(spoilt).labels == ("9",)
    assert refused(whole.assign(uid=whole.uid.astype(float)))[0] == "E_USER"


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_lines_does_not_matter(random):
    frame = pd.concat([day("b"), day("a", place=lambda slot: slot % 3)], ignore_index=True)
    order = list(range(len(frame)))
    random.shuffle(order)

    assert same(ew.read_traces(frame.iloc[order]), ew.read_traces(frame))


# slots and gaps


fixes = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3 * 1440 - 1), st.integers(0, 3)), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None)
@given(fixes, st.sampled_from([20, 30, 60]), st.sampled_from([0, 30, 60, 200]))
def test_slots_against_the_naive_twin(fixes, step, hold):
    seen = set()
    fixes = [f for f in fixes if not (f[:2] in seen or seen.add(f[:2]))]
    expected = naive.day_slots(fixes, step, hold)
    when = [np.datetime64("2013-04-15", "s") + 60 * minute for _, minute, _ in fixes]
    table = {
        "uid": [str(user) for user, _, _ in fixes],
        "datetime": when,
        "lat": [PLACES[place][0] for _, _, place in fixes],
        "lng": [PLACES[place][1] for _, _, place in fixes],
    }
    traces, counted = read(table, step=step, max_gap=hold, min_coverage=0)
    number = {make_grid(*np.array([p]).T, 100)[0]: r for r, p in PLACES.items()}
    at = [
        number[ew.Locations([lat], [lon])] for lat, lon in zip(traces.locations.lat, traces.locations.lon, strict=True)
    ]
    days = [int(d) for d in (traces.dates - np.datetime64("2013-04-15")).astype(int)]
    got = {
        (int(user), d): [None if r < 0 else at[r] for r in row]
        for user, d, row in zip(traces.users, days, traces.r, strict=True)
    }

    assert got == expected
    assert counted.slots_missing == sum(row.count(None) for row in expected.values())
    assert counted.slots_observed + counted.slots_held + counted.slots_missing == len(traces) * traces.L


minutes = st.builds(lambda hour, minute: 180 * hour + minute, st.integers(0, 2), st.integers(0, 25))  # with long gaps
jittered = st.lists(
    st.tuples(st.integers(0, 1), minutes, st.integers(0, 2), st.integers(-9, 9)),
    min_size=20,
    max_size=80,
    unique_by=lambda fix: fix[:2],
)


@settings(max_examples=40, deadline=None)
@given(jittered, st.randoms(use_true_random=False), st.integers(60, 700), st.sampled_from(["hold", "interpolate"]))
def test_blocks_and_reduced_fixes_give_what_one_reading_gives(fixes, random, block, gaps):
    """Tiny blocks, few users at a time, entries that stand for many fixes, any order of rows: the same traces."""
    begin = np.datetime64("2013-04-15", "s")
    rows = [
        f"{user},{begin + 60 * minute},{PLACES[place][0] + shift * 2e-5:.6f},{PLACES[place][1]}\n"
        for user, minute, place, shift in fixes
    ]
    options = {"min_coverage": 0, "max_gap": "25min", "gaps": gaps, "tz": "UTC", "map": "whole"}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as small:
        plain = write(Path(folder) / "a.csv", HEAD + "".join(rows))
        expected, counted = read(plain, **options)
        random.shuffle(rows)
        shuffled = write(Path(folder) / "b.csv", HEAD + "".join(rows))
        packed = write(Path(folder) / "c.csv.gz", gzip.compress((HEAD + "".join(rows)).encode()))
        for module, name, value in (
            (streams, "BLOCK", block),
            (streams, "PIECE", 100),
            (formats, "SMALL", 0),
            (fix_files, "RAW", 0),
            (fix_files, "BATCH", 7),
        ):
            small.setattr(module, name, value)
        for path in (shuffled, packed):
            again, told = read(path, **options)

            assert same(again, expected)
            assert (told.rows, told.slots_observed, told.slots_held, told.slots_missing) == (
                counted.rows,
                counted.slots_observed,
                counted.slots_held,
                counted.slots_missing,
            )


def test_reduced_fixes_are_fewer_and_count_as_many():
    begin = np.datetime64("2013-04-15T08:00", "us")
    wall = begin + np.arange(0, 1200, 10).astype("timedelta64[s]")
    lat = np.where(np.arange(120) % 3 == 0, 46.53, 46.52) + 1e-6 * np.arange(120)
    raw = Fixes(np.zeros(120, dtype=np.int64), ("a",), wall, lat=lat, lon=np.full(120, 6.57))
    few = fix_files.merge_fixes(raw, 1200, 100.0, None)

    # the first fix of each of two cells, and the last of the slot
    assert few.wall.tolist() == [wall[0].item(), wall[1].item(), wall[-1].item()]
    assert few.count.tolist() == [40, 80, 0]
    assert few.count.sum() == len(raw)


def test_an_offset_that_the_sample_did_not_show_is_found_all_the_same(tmp_path, monkeypatch):
    winter, summer = day(date="2013-03-30"), day(date="2013-04-01")
    frame = pd.concat([winter] * 40 + [summer] + [winter] * 40, ignore_index=True)
    stamp = frame.datetime.dt.strftime("%Y-%m-%dT%H:%M:%S")
    frame["datetime"] = stamp + np.where(frame.datetime < "2013-03-31", "+01:00", "+02:00")
    path = csv_of(frame, tmp_path / "a.csv")
    expected, _ = read(path)
    monkeypatch.setattr(formats, "SMALL", 0)
    monkeypatch.setattr(streams, "PIECE", 4000)
    monkeypatch.setattr(streams, "BLOCK", 5000)
    again, counted = read(path)

    assert expected.tz == again.tz == "Europe/Zurich"
    assert same(again, expected)
    assert any("several offsets" in note for note in counted.notes)


def test_large_parquet_files_come_in_pieces(tmp_path, monkeypatch):
    frame = pd.concat([day(str(u), place=lambda slot, u=u: (slot // 9 + u) % 4) for u in range(9)], ignore_index=True)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=50)
    expected = ew.read_traces(frame)
    monkeypatch.setattr(formats, "SMALL", 0)
    monkeypatch.setattr(streams, "BATCH", 64)

    assert same(ew.read_traces(path), expected)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"gaps": "none"}, "E_PARAM"),
        ({"step": "7min"}, "E_PARAM"),
        ({"max_gap": "soon"}, "E_PARAM"),
        ({"map": "round"}, "E_PARAM"),
        ({"min_coverage": 2}, "E_PARAM"),
        ({"grid_metres": 0}, "E_PARAM"),
        ({"cells": 0}, "E_PARAM"),
        ({"box": (47, 6, 46, 7)}, "E_PARAM"),
        ({"columns": {"user": "nobody"}}, "E_COLUMN"),
        ({"columns": {"lat": "lng", "lon": "lat", "user": None}}, "E_COLUMN"),
        ({"locations": "none.csv"}, "E_OPEN"),
        ({"regions": "none.json"}, "E_OPEN"),
    ],
)
def test_what_can_be_refused_is_before_the_input_is_read(tmp_path, monkeypatch, options, code):
    path = csv_of(pd.concat([day(str(u)) for u in range(50)]), tmp_path / "a.csv")
    monkeypatch.setattr(formats, "SMALL", 0)
    monkeypatch.setattr(streams, "BLOCK", 2000)
    monkeypatch.setattr(streams, "PIECE", 500)
    parts = sources.Parts
    monkeypatch.setattr(
        formats, "Parts", lambda name, sample, _: parts(name, sample, lambda: pytest.fail("it was read"))
    )

    assert refused(path, **options)[0] == code


def test_a_fault_of_a_late_block_is_named_by_its_line(tmp_path, monkeypatch):
    lines = [f"{CANARY},2013-04-15 {h:02}:{m:02}:00,46.519,6.632\n" for h in range(24) for m in (10, 30, 50)] * 9
    path = write(tmp_path / "a.csv", HEAD + "".join(lines) + "a,2013,b,c\n" * 9)
    monkeypatch.setattr(formats, "SMALL", 0)
    monkeypatch.setattr(streams, "BLOCK", 2000)

    assert f"a.csv, line {len(lines) + 2}:" in refused(path)[1]


def test_majority_of_a_slot_and_ties():
    when = [f"2013-04-15 08:{m:02}:00" for m in (1, 2, 3, 4, 5)]
    lat, lon = zip(*(PLACES[r] for r in (2, 1, 1, 2, 0)), strict=True)
    tie = ew.read_traces({"uid": ["a"] * 5, "datetime": when, "lat": lat, "lng": lon}, min_coverage=0)
    middle = tie.r[0, 24]

    assert abs(tie.locations.lat[middle] - PLACES[2][0]) < 0.001


def test_thin_days_are_dropped_and_counted():
    frame = pd.concat([day("a"), day("a", "2013-04-16").iloc[:10], day("b").iloc[:30]], ignore_index=True)
    traces, counted = read(frame, max_gap="1h")

    assert len(traces) == 1
    assert (counted.days, counted.days_dropped, counted.users, counted.users_dropped) == (1, 2, 1, 1)
    assert read(frame, min_coverage=0, max_gap="1h")[1].days == 3
    # day b has 30 fixes and three slots held: 33 of 72
    assert read(frame, min_coverage=33 / 72, max_gap="1h")[1].days == 2
    assert refused(day().iloc[:10], max_gap="1h")[0] == "E_EMPTY"


def test_repeated_and_contradicting_fixes():
    frame = pd.concat([day(str(u)) for u in range(3)], ignore_index=True)
    twice = pd.concat([frame, frame.iloc[:30]], ignore_index=True)
    moved = frame.iloc[[5]].assign(lat=46.6)
    traces, counted = read(pd.concat([twice, moved], ignore_index=True))

    assert same(traces, ew.read_traces(frame))
    assert counted.fixed == {"repeated": 30, "contradicted": 1}
    # however many there are: the first in the file stays, and nothing is refused
    every = pd.concat([frame, frame.assign(lat=46.6)], ignore_index=True)
    assert same(read(every)[0], ew.read_traces(frame))
    assert read(every)[1].fixed == {"contradicted": len(frame)}
    minutes = pd.concat([frame, frame.iloc[:9].assign(lat=46.6)]).assign(
        datetime=lambda f: f.datetime.dt.strftime("%Y-%m-%dT%H:%M")
    )
    # without seconds two places in one minute are no contradiction
    assert same(ew.read_traces(minutes), ew.read_traces(frame))


# time


@pytest.mark.parametrize(
    ("shown", "tz", "zone"),
    [
        ("%Y-%m-%dT%H:%M:%S", None, "Europe/Zurich"),
        ("%Y-%m-%d %H:%M:%S.123456789", None, "Europe/Zurich"),
        ("%Y/%m/%d %H:%M", None, "Europe/Zurich"),
        ("%Y-%m-%dT%H:%M:%SZ", "UTC", "UTC"),
        ("%Y-%m-%d %H:%M:%S UTC", "UTC", "UTC"),
        ("%Y-%m-%d %H:%M:%S+09:00", None, "Etc/GMT-9"),
        ("%Y-%m-%dT%H:%M:%S+0530", None, "UTC+05:30"),
        ("%Y-%m-%dT%H:%M:%S-04:00", None, "Etc/GMT+4"),
        ("%Y-%m-%dT%H:%M:%S-04", None, "Etc/GMT+4"),
        ("%Y-%m-%d %H:%M:%S", "Europe/Zurich", "Europe/Zurich"),
    ],
)
def test_times_as_text_keep_their_wall_clock(shown, tz, zone):
    frame = day()
    traces = ew.read_traces(frame.assign(datetime=frame.datetime.dt.strftime(shown)), tz=tz)

    assert np.array_equal(traces.r, ew.read_traces(frame).r)
    assert traces.tz == zone


@pytest.mark.parametrize("unit", [1, 1e3, 1e6, 1e9])
def test_epochs_by_magnitude(unit, tmp_path):
    frame = day()
    seconds = frame.datetime.astype("datetime64[s]").astype(np.int64)
    epoch = frame.assign(datetime=(seconds * int(unit)).astype(np.int64))

    expected = ew.read_traces(frame, tz="UTC")
    assert same(ew.read_traces(epoch, tz="UTC"), expected)
    assert same(ew.read_traces(csv_of(epoch, tmp_path / "a.csv"), tz="UTC"), expected)


def test_typed_times_keep_their_zone():
    frame = day()
    zurich = frame.assign(datetime=frame.datetime.dt.tz_localize("Europe/Zurich"))
    traces = ew.read_traces(zurich)

    assert traces.tz == "Europe/Zurich"
    assert np.array_equal(traces.r, ew.read_traces(frame).r)
    assert ew.read_traces(zurich, tz="UTC").r[0, :36].tolist() != traces.r[0, :36].tolist()


def test_offsets_that_differ_are_shown_in_utc_or_in_the_given_zone():
    frame = day()
    later = frame.datetime.dt.tz_localize("America/New_York")
    text = [t.isoformat() if i % 2 else t.tz_convert("UTC").isoformat() for i, t in enumerate(later)]
    mixed = frame.assign(datetime=text)
    local, counted = read(mixed, tz="America/New_York")

    assert np.array_equal(local.r, ew.read_traces(frame).r)
    assert counted.notes == ()
    assert "several offsets" in read(mixed, min_coverage=0)[1].notes[0]
    naive_too = mixed.assign(datetime=[*text[:-1], "2013-04-15 23:50:00"])
    assert refused(naive_too)[0] == "E_TZ"


def test_the_zone_is_found_from_the_coordinates(monkeypatch):
    pytest.importorskip("tzfpy")
    frame = pd.concat([day(date="2013-03-30"), day(date="2013-03-31"), day(date="2013-04-01")])
    # the clock of Zurich is put forward on 31 March: a day of 23 hours
    utc = frame.assign(datetime=frame.datetime.dt.strftime("%Y-%m-%dT%H:%M:%SZ"))
    found, counted = read(utc, min_coverage=0)
    given = ew.read_traces(utc, min_coverage=0, tz="Europe/Zurich")

    assert (found.tz, counted.tz) == ("Europe/Zurich", "Europe/Zurich")
    assert same(found, given)
    assert "where the coordinates lie" in counted.notes[0]
    monkeypatch.setitem(sys.modules, "tzfpy", None)
    plain, counted = read(utc, min_coverage=0)
    assert plain.tz == "UTC"
    assert "install tzfpy to find the zone from the coordinates" in counted.notes


def test_the_hour_24_and_the_second_60():
    frame = day().astype({"datetime": str})
    frame.loc[0, "datetime"] = "2013-04-14 24:00:00"
    frame.loc[1, "datetime"] = "2013-04-15 00:30:60"
    traces, counted = read(frame)

    assert np.array_equal(traces.r, ew.read_traces(day()).r)
    assert dict(counted.fixed) == {"24:00 read as 00:00 of the next day": 1, "a leap second read as second 59": 1}


def test_dates_that_no_trace_is_from():
    frame = pd.concat([day(str(u)) for u in range(3)] + [day("9", date="2101-01-01").iloc[:1]])
    old = day(date="1984-06-01")

    assert read(frame)[1].dropped == {"E_DATE": 1}
    assert read(frame, any_date=True, min_coverage=0)[1].dropped == {}
    assert refused(old)[0] == "E_DATE"
    assert read(old, any_date=True)[0].dates.astype(str).tolist() == ["1984-06-01"]


def test_a_word_on_fixes_finer_or_coarser_than_the_slots():
    fine = day(step=1, place=lambda slot: 0)
    coarse = day(step=120, place=lambda slot: 0)

    assert any("fixes come every 1 min, finer than `step`" in note for note in read(fine)[1].notes)
    assert any("fixes come every 2 h, coarser" in note for note in read(coarse, max_gap="3h")[1].notes)
    assert not any("fixes come" in note for note in read(day())[1].notes)


def test_columns_that_are_not_read_are_named():
    assert "2 columns were not read: 'speed', 'mood'" in read(day().assign(speed=1, mood="good"))[1].notes


def test_a_box_and_longitudes_of_0_to_360():
    frame = pd.concat([day(str(u)) for u in range(3)], ignore_index=True)
    frame.loc[5, ["lat", "lng"]] = 0
    inside = {"box": (46, 6, 47, 7)}

    assert read(frame, **inside)[1].dropped == {"E_NULL_ISLAND": 1}
    assert read(frame)[1].dropped == {"E_NULL_ISLAND": 1}
    assert any("1 rows lie at 0, 0" in note for note in read(frame, map="whole")[1].notes)
    assert refused(frame, box=(40, 6, 41, 7))[0] == "E_OUTSIDE"
    west = frame.assign(lng=360 - frame.lng)
    assert refused(west)[0] == "E_OUTSIDE"
    assert read(west, lon360=True)[0].locations.lon.min() < -6.5
    for box in ((46, 6, 47), (47, 6, 46, 7), (46, 6, 47, "x"), (46, 6, 147, 7)):
        assert refused(frame, box=box)[0] == "E_PARAM"


def test_utc_and_local_columns_side_by_side():
    frame = day()
    utc = frame.datetime.dt.tz_localize("America/New_York").dt.tz_convert("UTC")
    both = frame.rename(columns={"datetime": "timestamp_local"}).assign(
        timestamp_utc=utc.dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    )
    told = ew.read_traces(both)

    assert told.tz == "Etc/GMT+4"
    assert np.array_equal(told.r, ew.read_traces(frame).r)
    assert np.array_equal(ew.read_traces(both, tz="America/New_York").r, told.r)
    assert np.array_equal(ew.read_traces(both, columns={"time": "timestamp_local"}).r, told.r)


def test_days_of_23_and_25_hours():
    def fixes(begin, end, place):
        when = pd.date_range(begin, end, freq="20min", tz="UTC", inclusive="left")
        return pd.DataFrame({"uid": "a", "datetime": when, "lat": PLACES[place][0], "lng": PLACES[place][1]})

    # New York put its clock back at 06:00 UTC on 2013-11-03: 01:00-02:00 happens twice, the first time counts
    autumn = pd.concat(
        [fixes("2013-11-03 04:00", "2013-11-03 06:00", 0), fixes("2013-11-03 06:00", "2013-11-04 05:00", 1)]
    )
    traces, counted = read(autumn, tz="America/New_York")
    assert traces.r.tolist() == [[0] * 6 + [1] * 66]
    assert counted.fixed == {"second passing of the doubled hour": 3}
    # and forward at 07:00 UTC on 2013-03-10: 02:00-03:00 does not happen, the last place is held
    spring = pd.concat(
        [fixes("2013-03-10 05:00", "2013-03-10 07:00", 0), fixes("2013-03-10 07:00", "2013-03-11 04:00", 1)]
    )
    traces, counted = read(spring, tz="America/New_York")
    assert traces.r.tolist() == [[0] * 9 + [1] * 63]
    assert counted.slots_held == 3

    wall = day(date="2013-03-10")
    assert refused(wall, tz="America/New_York")[0] == "E_DST"
    assert read(day(date="2013-11-03"), tz="America/New_York")[1].fixed == {"in the doubled hour": 3}


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 400))
def test_shifting_all_times_by_whole_days_changes_only_dates(days):
    frame = pd.concat([day(), day(date="2013-04-16", place=lambda slot: slot % 3)], ignore_index=True)
    later = frame.assign(datetime=frame.datetime + np.timedelta64(days, "D"))

    assert np.array_equal(ew.read_traces(later).r, ew.read_traces(frame).r)
    assert np.array_equal(ew.read_traces(later).dates - days, ew.read_traces(frame).dates)


def test_date_format():
    frame = day()
    american = frame.assign(datetime=frame.datetime.dt.strftime("%m/%d/%Y %H:%M:%S"))

    assert same(ew.read_traces(american), ew.read_traces(frame))
    assert same(ew.read_traces(american, date_format="%m/%d/%Y %H:%M:%S"), ew.read_traces(frame))
    offset = frame.assign(datetime=frame.datetime.dt.strftime("%d.%m.%Y %H:%M +0000"))
    assert same(ew.read_traces(offset, date_format="%d.%m.%Y %H:%M %z", tz="UTC"), ew.read_traces(frame, tz="UTC"))
    # a format is obeyed even where the text looks like something else
    swapped = frame.assign(datetime=frame.datetime.dt.strftime("%Y-%d-%m %H:%M:%S"))
    assert same(ew.read_traces(swapped, date_format="%Y-%d-%m %H:%M:%S"), ew.read_traces(frame))


def test_zones_and_lengths():
    assert offset_zone(-4 * 3600) == "Etc/GMT+4"
    assert zone_of("UTC+05:30").utcoffset(None).total_seconds() == 19800
    assert [seconds_of("step", s) for s in ("20min", "1h", "90 s", "2 hours", 0.5)] == [1200, 3600, 90, 7200, 30]
    for wrong in ("20", "min", "20 parsecs", -1, float("nan"), True, None, "0.3s"):
        with pytest.raises(ew.errors.InvalidParameter):
            seconds_of("step", wrong)


# places


def town(draw):
    n = draw(st.integers(2, 12))
    near = st.floats(-0.05, 0.05, allow_nan=False)
    points = draw(st.lists(st.tuples(near, near), min_size=n, max_size=n, unique=True))
    visits = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    return points, visits, draw(st.integers(1, n))


@settings(max_examples=150, deadline=None)
@given(st.composite(town)())
def test_merging_on_a_plane_against_the_naive_twin(case):
    points, visits, cells = case

    def centroid(x, v, y, w):
        a, b = (v, w) if v + w else (1, 1)
        return tuple((a * i + b * j) / (a + b) for i, j in zip(x, y, strict=True))

    members, at = naive.merged_places(points, visits, cells, math.dist, centroid)
    fewer, becomes = reduce_places(ew.Locations(xy=points), np.array(visits), cells=cells)

    assert [np.flatnonzero(becomes == k).tolist() for k in range(len(fewer))] == members
    np.testing.assert_allclose(fewer.xy, at, atol=1e-12)
    assert np.bincount(becomes, weights=visits).sum() == sum(visits)


@settings(max_examples=60, deadline=None)
@given(st.composite(town)(), st.sampled_from([(46.5, 6.6), (0.0, 180.0), (-77.8, -179.99)]))
def test_merging_on_the_globe_against_the_naive_twin(case, centre):
    points, visits, cells = case
    points = [(centre[0] + lat, centre[1] + lon) for lat, lon in points]

    def centroid(x, v, y, w):
        a, b = (v, w) if v + w else (1, 1)
        vectors = []
        for lat, lon in (x, y):
            north, east = math.radians(lat), math.radians(lon)
            vectors.append((math.cos(north) * math.cos(east), math.cos(north) * math.sin(east), math.sin(north)))
        p, q, s = ((a * i + b * j) / (a + b) for i, j in zip(*vectors, strict=True))
        return math.degrees(math.atan2(s, math.hypot(p, q))), math.degrees(math.atan2(q, p))

    members, at = naive.merged_places(points, visits, cells, naive.great_circle_km, centroid)
    fewer, becomes = reduce_places(ew.Locations(*zip(*points, strict=True)), np.array(visits), cells=cells)

    assert [np.flatnonzero(becomes == k).tolist() for k in range(len(fewer))] == members
    for lat, lon, (lat_0, lon_0) in zip(fewer.lat, fewer.lon, at, strict=True):
        assert naive.great_circle_km((lat, lon), (lat_0, lon_0)) < 2e-4


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=14), st.integers(1, 14))
def test_merging_breaks_ties_by_order(points, cells):
    # nobody visits: halves and squares of small whole numbers are exact, so that equal costs are equal
    def squared(x, y):
        return sum((i - j) ** 2 for i, j in zip(x, y, strict=True))

    def middle(x, _, y, __):
        return tuple(Fraction(i + j) / 2 for i, j in zip(x, y, strict=True))

    members, at = naive.merged_places(points, [0] * len(points), cells, squared, middle)
    fewer, becomes = reduce_places(ew.Locations(xy=points), np.zeros(len(points), dtype=int), cells=cells)

    assert [np.flatnonzero(becomes == k).tolist() for k in range(len(fewer))] == members
    assert fewer.xy.tolist() == [[float(i) for i in point] for point in at]


def test_merging_of_the_size_of_the_paper():
    square = ew.Locations(xy=[[0, 0], [1, 0], [0, 1], [1, 1]])
    fewer, becomes = reduce_places(square, np.ones(4, dtype=int), cells=3)

    assert becomes.tolist() == [0, 0, 1, 2]
    assert fewer.xy.tolist() == [[0.5, 0], [0, 1], [1, 1]]
    rng = np.random.default_rng(74)
    big = ew.Locations(46.5 + rng.normal(0, 0.1, 1491), 6.6 + rng.normal(0, 0.1, 1491))
    visits = rng.geometric(0.2, 1491)
    fewer, becomes = reduce_places(big, visits, cells=400)
    assert len(fewer) == 400
    assert np.bincount(becomes, weights=visits).sum() == visits.sum()
    assert all(np.array_equal(a, b) for a, b in [(becomes, reduce_places(big, visits, cells=400)[1])])
    with pytest.raises(ew.errors.InvalidParameter):
        reduce_places(ew.Locations(n=3), np.ones(3), cells=2)


@settings(max_examples=200, deadline=None)
@example(46.5, float(np.nextafter(-180, -200)), 100.0)
@example(0.0, -4.105535234942699e-14, 100.0)
@given(st.floats(-90, 90), st.floats(-180, 180), st.sampled_from([10.0, 100.0, 5000.0]))
def test_grid_cells_hold_their_points_everywhere(lat, lon, metres):
    cell = grid_cells(np.array([lat]), np.array([lon]), metres)
    centre_lat, centre_lon = cell_centres(cell, metres)

    assert naive.great_circle_km((lat, lon), (centre_lat[0], centre_lon[0])) * 1000 < metres * 1.2
    assert np.array_equal(grid_cells(centre_lat, centre_lon, metres), cell)
    # once round the globe, unless rounding may carry the point over an edge of its cell
    if np.all(grid_cells(np.array([lat, lat]), np.array([lon - 1e-9, lon + 1e-9]), metres) == cell):
        assert np.array_equal(grid_cells(np.array([lat]), np.array([lon + 360]), metres), cell)
    assert np.array_equal(*(grid_cells(np.array([lat]), np.array([x]), metres) for x in (180.0, -180.0)))


def test_a_grid_with_too_many_cells_is_made_coarser():
    rng = np.random.default_rng(1)
    _, place, metres = make_grid(46 + rng.random(50_000), 6 + rng.random(50_000), 100)

    assert metres in (200, 400, 800)
    assert place.max() < 20_000


# the datasets


def test_pf_tokyo():
    path = dataset("pf_tokyo/pf_tokyo_traces.csv.gz")
    plain = pd.read_csv(path)
    places = pd.read_csv(dataset("pf_tokyo/pf_tokyo_locations.csv"))
    traces = ew.read_traces(path)

    assert np.array_equal(traces.r, plain["loc"].to_numpy().reshape(1000, 30))
    assert traces.labels == tuple(str(u) for u in range(1000))
    assert traces.locations == ew.Locations(places["lat"], places["lon"])
    assert (traces.step_minutes, traces.start, traces.tz, traces.dates) == (20, "09:00", "Etc/GMT-9", None)
    sglt = ew.read_traces(dataset("pf_tokyo/sglt_input_trace.txt"))
    assert np.array_equal(sglt.r, traces.r[:500])
    assert len(sglt.locations) == 400
    assert sglt.locations.distance(0, 1) == pytest.approx(0.546)
    train = ew.read_traces(plain[plain["split"] == "train"], locations=dataset("pf_tokyo/pf_tokyo_locations.csv"))
    assert np.array_equal(train.r, traces.r[:500])


def test_outputs_of_sglt():
    wanted = [("clusters", "==", 50), ("par_l", "==", np.float32(1.0))]
    fakes = pq.read_table(dataset("pf_tokyo/sglt_reference_outputs.parquet"), filters=wanted)
    columns = {"slot": "time_period", "place": "poi_index", "trace": "trace_no"}
    traces = ew.read_traces(fakes, columns=columns, locations=dataset("pf_tokyo/pf_tokyo_locations.csv"))

    assert traces.r.shape == (5000, 30)
    assert (traces.U, traces.R) == (500, 400)
    assert np.array_equal(traces.r[7], fakes["poi_index"].to_numpy()[7 * 30 : 8 * 30])


@pytest.mark.parametrize(("kind", "places"), [("", 106), ("mobile_", 183)])
def test_studentlife_in_the_shape_of_the_paper(kind, places):
    path = dataset(f"studentlife/paperlike_{kind}30users_2days_72slots.csv.gz")
    traces = ew.read_traces(path, places="merge")

    assert traces.r.shape == (60, 72)
    assert (traces.U, traces.R, traces.start) == (30, places, "00:00")
    assert traces.r.min() == 0
    assert ew.read_traces(path, places="merge", cells=50).R == 50


def test_studentlife_from_raw_fixes():
    path = dataset("studentlife/studentlife_gps.parquet")
    traces, counted = read(path, min_coverage=1, places="merge", map="whole")
    longer, _ = read(path, min_coverage=1, max_gap="3h", map="whole", tz="America/New_York")

    # the dataset's own notes count 1,790 and 2,111 complete days: those filled from earlier fixes alone
    assert (len(traces), traces.U, traces.R, counted.max_gap_minutes) == (1821, 49, 400, 60)
    assert len(longer) == 2150
    assert counted.rows == 202_877
    assert traces.r.min() == 0
    prepared = ew.read_traces(dataset("studentlife/studentlife_72slots.parquet"), places="merge", map="whole")
    assert (len(prepared), prepared.R) == (2111, 400)
    of_longer = set(zip(longer.users, longer.dates.astype(str), strict=True))
    assert set(zip(prepared.users, prepared.dates.astype(str), strict=True)) < of_longer


def test_foursquare_check_ins():
    path = dataset("foursquare_nyc/fsq_nyc_checkins.csv.gz")
    traces, counted = read(path, min_coverage=0, cells=None, locations=dataset("foursquare_nyc/fsq_nyc_pois.csv.gz"))

    assert (traces.U, traces.R, counted.rows) == (1083, 5135, 147_938)
    assert counted.slots_observed == 127_637
    assert counted.users_dropped == 0
    thin, counted = read(path)
    # venues that five people visit keep their ids, and are more than `cells`
    assert 400 < thin.R < counted.places_found == 5132
    assert counted.users + counted.users_dropped == 1083


# bad input

HEAD = "uid,datetime,lat,lng\n"
GOOD = "".join(f"{CANARY},2013-04-15 {h:02}:{m:02}:00,46.519,6.632\n" for h in range(24) for m in (10, 30, 50)) * 2
BAD = {
    "nothing": (b"", "E_EMPTY"),
    "names only": (HEAD, "E_EMPTY"),
    "blank lines": ("\n \r\n\n", "E_EMPTY"),
    "no user": (f"x,datetime,lat,lng\n{GOOD}", "E_COLUMN"),
    "no longitude": (f"uid,datetime,lat,x\n{GOOD}", "E_COLUMN"),
    "no time": (f"uid,x,lat,lng\n{GOOD}".replace("2013-04-15 ", ""), "E_COLUMN"),
    "two times": (f"uid,x,y,lat,lng\n{GOOD}".replace(",46", ",2013-04-15 00:00:00,46"), "E_COLUMN"),
    "no position": (f"uid,datetime,a,b\n{GOOD}", "E_COLUMN"),
    "two columns of one name": (f"uid,datetime,lat,lat\n{GOOD}", "E_COLUMN"),
    "no names": (GOOD, "E_COLUMN"),
    "no names, doubled": (f"{CANARY},{CANARY},46.519,6.632\n", "E_COLUMN"),
    "numbers without names": ("1,2,3,4\n5,6,7,8\n", "E_COLUMN"),
    "latin-1": ((HEAD + f"{CANARY}\u00e9,2013-04-15 08:00,46.519,6.632\n").encode("latin-1"), "E_ENCODING"),
    "NUL": (HEAD + f"{CANARY}\0,2013-04-15 08:00,46.519,6.632\n", "E_ENCODING"),
    "truncated gzip": (gzip.compress((HEAD + GOOD).encode())[:-20], "E_COMPRESSION"),
    "bad checksum": (gzip.compress((HEAD + GOOD).encode())[:-8] + b"\0" * 8, "E_COMPRESSION"),
    "trailing garbage": (gzip.compress((HEAD + GOOD).encode()) + b"garbage", "E_COMPRESSION"),
    "zip": (b"PK\x03\x04 and so on", "E_COMPRESSION"),
    "damaged parquet": (b"PAR1 and nothing else PAR1", "E_PARQUET"),
    "cut off": (HEAD + GOOD + f"{CANARY},2013-04-15", "E_TRUNCATED"),
    "two short lines of 146": (HEAD + f"{CANARY},46.519\n" * 2 + GOOD, "E_CSV"),
    "two long lines of 146": (HEAD + f"{CANARY},2013-04-15 08:00,46.519,6.632,1\n" * 2 + GOOD, "E_CSV"),
    "unbalanced quote": (HEAD + f'"{CANARY},2013-04-15 08:00,46.519,6.632\n' + GOOD, "E_CSV"),
    "words for numbers": (HEAD + GOOD.replace("46.519", "N/A"), "E_NUMBER"),
    "decimal comma": (HEAD.replace(",", ";") + GOOD.replace(",", ";").replace("46.519", "46,519"), "E_NUMBER"),
    "underscores": (HEAD + GOOD.replace("46.519", "4_6.519"), "E_NUMBER"),
    "full-width digits": (HEAD + GOOD.replace("46.519", "\uff14\uff16.519"), "E_NUMBER"),
    "infinite": (HEAD + GOOD.replace("46.519", "inf"), "E_NUMBER"),
    "two bad of 146": (HEAD + GOOD + f"{CANARY},2013-04-15 08:00:00,46.519,\n" * 2, "E_NUMBER"),
    "swapped": (HEAD.replace("lat,lng", "lng,lat") + GOOD.replace("6.632", "139.7"), "E_SWAPPED"),
    "metres": (HEAD + GOOD.replace("46.519,6.632", "5818000.5,738000.5"), "E_SWAPPED"),
    "0 to 360": (HEAD + GOOD.replace("6.632", "286.632"), "E_OUTSIDE"),
    "off the globe": (
        HEAD + GOOD.replace("6.632", "-1286.632").replace("08:10:00,46.519,-1", "08:10:00,46.519,"),
        "E_OUTSIDE",
    ),
    "ambiguous dates": (HEAD + GOOD.replace("2013-04-15", "03/04/2013"), "E_DATE"),
    "no dates": (HEAD + GOOD.replace("2013-04-15", "soon"), "E_DATE"),
    "no such day": (HEAD + GOOD.replace("2013-04-15", "2013-02-30"), "E_DATE"),
    "small numbers": (HEAD + "".join(f"{CANARY},{i},46.519,6.632\n" for i in range(9)), "E_DATE"),
    "two units": (HEAD + f"{CANARY},1366000000,46.519,6.632\n{CANARY},1366000000000,46.519,6.632\n", "E_DATE"),
    "offset and none": (HEAD + GOOD + f"{CANARY},2013-04-15T08:00:01Z,46.519,6.632\n", "E_TZ"),
    "no ids": (HEAD + GOOD.replace(CANARY, ""), "E_USER"),
    "endless id": (HEAD + GOOD.replace(CANARY, CANARY * 30), "E_USER"),
    "one fix": (HEAD + f"{CANARY},2013-04-15 08:00:00,46.519,6.632\n", "E_EMPTY"),
    "half a slot": (f"uid,slot,loc\n{CANARY},0.5,1\n", "E_NUMBER"),
    "slot below 0": (f"uid,slot,loc\n{CANARY},-1,1\n{CANARY},0,1\n", "E_INDEX"),
    "place below 0": (f"uid,slot,loc\n{CANARY},0,-2\n{CANARY},1,1\n", "E_INDEX"),
    "places missing": (f"uid,slot,loc\n{CANARY},0,-1\n{CANARY},1,\n", "E_EMPTY"),
    "a slot in the far future": (f"uid,slot,loc\n{CANARY},0,1\n{CANARY},1365984000,2\n", "E_TOO_LARGE"),
    "two places at one instant": (f"uid,slot,loc\n{CANARY},0,1\n{CANARY},0,2\n", "E_CONFLICT"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_by_code_without_showing_content(tmp_path, case):
    content, code = BAD[case]

    assert refused(write(tmp_path / "bad.csv", content))[0] == code
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_messages_name_file_and_line(tmp_path):
    lines = [f"{CANARY},2013-04-15 {h:02}:{m:02}:00,46.519,6.632\n" for h in range(24) for m in (10, 30, 50)]
    number = write(
        tmp_path / "a.csv", HEAD + "\n" + '"x\ny",2013-04-15 08:00:00,46,6\n' + "".join(lines[:9]) + "a,2013,b,c\n" * 9
    )
    short = write(tmp_path / "b.csv", HEAD + "".join(lines[:9]) + "a,b\n" + "".join(lines))
    # a line that is left out is counted all the same
    after = write(tmp_path / "d.csv", HEAD + "a,b\n" + "".join(lines * 9) + "a,2013,b,c\n" * 9)
    text = write(tmp_path / "c.csv", HEAD.encode() + b"a,b\xff\n")

    # one line of names, one blank, one record of two lines, nine good ones, then the fault
    assert "a.csv, line 14:" in refused(number)[1]
    assert "b.csv, line 11:" in refused(short)[1]
    assert f"d.csv, line {2 + 9 * len(lines) + 1}:" in refused(after)[1]
    assert "c.csv, line 2:" in refused(text)[1]
    frame = day(CANARY).assign(lat=[46.519] * 36 + ["?"] * 36)
    assert "row 37" in refused(frame)[1]


@pytest.mark.skipif(os.name != "posix", reason="pipes and permissions of POSIX")
def test_what_cannot_be_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    for path in (tmp_path / "none.csv", tmp_path, tmp_path / "pipe", "a\0b", tmp_path / "none.csv" / "x"):
        assert refused(path)[0] == "E_OPEN"
    assert refused(7)[0] == "E_PARAM"
    assert refused(pd.DataFrame({"uid": []}))[0] == "E_EMPTY"
    assert refused(pd.DataFrame([[1, 2]], columns=["uid", "uid"]))[0] == "E_COLUMN"


def test_encodings_and_line_ends(tmp_path):
    text = HEAD + GOOD.replace(CANARY, "zoë")
    expected = ew.read_traces(write(tmp_path / "a.csv", text))
    variants = [
        text.encode("utf-8-sig"),
        text.encode("utf-16"),
        text.replace("\n", "\r\n").encode(),
        text.replace("\n", "\r").encode(),
        ("\n\n" + text.rstrip()).encode(),
        gzip.compress(text.encode()),
    ]

    assert expected.labels == ("zoë",)
    assert dict(read(write(tmp_path / "b.csv", variants[0]))[1].columns)["user"] == "uid"
    assert [same(ew.read_traces(write(tmp_path / "b.csv", v)), expected) for v in variants] == [True] * len(variants)
    assert same(ew.read_traces(write(tmp_path / "c.csv", text.encode("latin-1")), encoding="latin-1"), expected)


def test_few_bad_rows_are_dropped_and_counted(tmp_path):
    frame = pd.concat([day(str(u)) for u in range(10)], ignore_index=True).astype({"lat": object, "datetime": str})
    worse = frame.copy()
    worse.loc[10, "lat"], worse.loc[20, "lat"], worse.loc[30, "datetime"] = "NULL", "91", "yesterday"
    worse.loc[40, "uid"] = ""
    traces, counted = read(csv_of(worse, tmp_path / "a.csv"))

    assert counted.dropped == {"E_USER": 1, "E_DATE": 1, "E_NUMBER": 1, "E_OUTSIDE": 1}
    assert counted.rows == 720
    assert counted.to_dict()["columns"] == {"user": "uid", "time": "datetime", "lat": "lat", "lon": "lng"}
    assert np.array_equal(traces.r, ew.read_traces(frame).r)
    assert refused(tmp_path / "a.csv", max_bad=0.001)[0] in ("E_USER", "E_DATE", "E_NUMBER", "E_OUTSIDE")


@pytest.mark.parametrize(
    "options",
    [
        {"step": "7min"},
        {"step": "0min"},
        {"step": "soon"},
        {"cells": 0},
        {"cells": 2.5},
        {"tz": "Europe/Nowhere"},
        {"tz": 3},
        {"max_gap": "-1h"},
        {"min_coverage": 1.5},
        {"min_coverage": float("nan")},
        {"grid_metres": 0},
        {"max_bad": 2},
        {"format": "kml"},
        {"encoding": "klingon"},
        {"date_format": 7},
        {"columns": 5},
        {"columns": {"user": 5}},
        {"columns": [("z", "uid")]},
        {"box": 5},
    ],
)
def test_parameters_out_of_range_are_refused(tmp_path, options):
    frame = pd.concat([day(), day(date="2013-04-16", place=lambda slot: slot % 3)])
    path = csv_of(frame, tmp_path / "a.csv")

    with pytest.raises(ew.errors.InvalidParameter) as caught:
        ew.read_traces(path, **options)
    assert f"`{next(iter(options))}`" in str(caught.value)


def test_reading_imports_neither_pandas_nor_arrow_before_it_must():
    code = (
        "import sys, elsewhere.traces.read, elsewhere.traces.write\n"
        "print({'pandas', 'pyarrow', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


# slots without a length, days without a date, a column for each slot, exact points


def numbered(slots, days=1, users=6):
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        [(f"u{u}", s, int(rng.integers(5))) for u in range(users) for _ in range(days) for s in range(slots)],
        columns=["uid", "slot", "loc"],
    )


@pytest.mark.parametrize(("slots", "minutes"), [(24, 60), (48, 30), (72, 20), (96, 15), (144, 10), (288, 5), (30, 20)])
def test_numbered_slots_that_make_a_day_are_a_day(slots, minutes):
    traces, counted = read(numbered(slots))
    said = [note for note in counted.notes if "no `step` given" in note]

    assert (traces.L, traces.step_minutes) == (slots, minutes)
    assert len(said) == (slots != 72)
    assert slots == 72 or f"slots of {minutes}min" in said[0] or f"slots of {minutes // 60}h" in said[0]
    assert ew.read_traces(numbered(slots), step="10min").step_minutes == 10


def test_times_beside_slots_go_before_their_number():
    frame = numbered(48).assign(datetime=lambda f: pd.Timestamp("2024-03-04") + f.slot * pd.Timedelta("20min"))

    assert ew.read_traces(frame).step_minutes == 20
    halves = frame.assign(datetime=lambda f: pd.Timestamp("2024-03-04") + f.slot * pd.Timedelta("30min"))
    assert ew.read_traces(halves).step_minutes == 30


def test_undated_days_one_after_the_other_stay_days(tmp_path):
    frame = numbered(24, days=3)
    path = tmp_path / "undated.csv"
    frame.to_csv(path, index=False)
    for source in (frame, path):
        traces, counted = read(source)

        assert (traces.U, len(traces), traces.dates) == (6, 18, None)
        assert traces.r.tolist() == frame["loc"].to_numpy().reshape(18, 24).tolist()
        assert any("6 people have several rows of slots and no column of days" in note for note in counted.notes)
    # in any other order nothing tells days apart; lines that all stand there twice are one day
    assert refused(frame.sample(frac=1, random_state=1))[0] == "E_CONFLICT"
    once = numbered(24)
    traces, counted = read(pd.concat([once, once]))
    assert len(traces) == 6
    assert any("144 rows give a slot of a user again" in note for note in counted.notes)


def wide(names, rows=8):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.integers(5, size=(rows, len(names))), columns=names)
    frame.insert(0, "uid", [f"u{i // 2}" for i in range(rows)])
    return frame


CLOCKS = [f"{hour:02}:{minute:02}" for hour in range(6, 22) for minute in (0, 30)]


@pytest.mark.parametrize(
    ("names", "minutes", "start"),
    [
        ([str(i) for i in range(48)], 30, "00:00"),
        ([f"slot_{i}" for i in range(1, 25)], 60, "00:00"),
        (CLOCKS, 30, "06:00"),
    ],
)
def test_a_column_for_each_slot_is_read(tmp_path, names, minutes, start):
    frame = wide(names)
    path = tmp_path / "wide.csv"
    frame.to_csv(path, index=False)
    for source in (frame, path):
        traces, counted = read(source)

        assert (traces.U, len(traces), traces.step_minutes, traces.start) == (4, 8, minutes, start)
        assert traces.r.tolist() == frame[names].to_numpy().tolist()
        assert f"each row is a day: {len(names)} columns were read as its slots" in counted.notes
    dated = frame.assign(date=["2024-03-04", "2024-03-05"] * 4)
    assert ew.read_traces(dated).dates.astype(str).tolist() == ["2024-03-04", "2024-03-05"] * 4


def test_a_wide_table_with_gaps_words_and_faults():
    frame = wide([f"h{i}" for i in range(24)]).astype(object)
    frame.iloc[2, 5] = None
    traces = ew.read_traces(frame, max_gap=0, min_coverage=0)
    assert traces.r[2, 4] == -1
    assert np.count_nonzero(traces.r < 0) == 1
    words = frame.copy()
    words.iloc[:, 1:] = np.where(frame.iloc[:, 1:].isna(), None, "place " + frame.iloc[:, 1:].astype(str))
    assert set(ew.read_traces(words, max_gap=0, min_coverage=0).locations.names) == {f"place {i}" for i in range(5)}
    code, message = refused(frame.drop(columns="uid"))
    assert code == "E_COLUMN"
    assert "24 columns look like the slots of a day" in message


@pytest.mark.parametrize("spread", [0.0003, 0.03])
@pytest.mark.parametrize("users", [6, 30])
def test_few_exact_points_that_people_share_are_the_places(tmp_path, spread, users):
    rng = np.random.default_rng(6)
    points = np.round([46.5, 6.6] + rng.normal(0, spread, (12, 2)), 6)
    at = rng.integers(12, size=(users, 72))
    frame = pd.DataFrame(
        {
            "uid": np.repeat([f"u{100 + u}" for u in range(users)], 72),
            "datetime": np.tile(pd.date_range("2024-03-04", periods=72, freq="20min"), users),
            "lat": points[at.ravel(), 0],
            "lng": points[at.ravel(), 1],
        }
    )
    traces, counted = read(frame)

    assert counted.places_by == "points"
    assert sorted(zip(traces.locations.lat, traces.locations.lon, strict=True)) == sorted(map(tuple, points.tolist()))
    assert np.array_equal(traces.locations.lat[traces.r], points[at, 0])
    # as slots, and as fakes written with these points, they are the same places
    slots = frame.drop(columns="datetime").assign(slot=np.tile(np.arange(72), users))
    assert np.array_equal(ew.read_traces(slots).locations.lat, traces.locations.lat)
    path = tmp_path / "fakes.csv"
    ew.write_traces(traces, path, columns={"user": "uid", "time": "datetime", "lat": "lat", "lon": "lng"})
    both, _ = read_together({"real": frame, "fakes": path})
    assert np.array_equal(both["fakes"].r, traces.r)


def test_points_that_few_people_share_are_cells():
    # exact coordinates of what one person visits every day are hers
    day = pd.date_range("2024-03-04", periods=72, freq="20min")
    frame = pd.DataFrame({"uid": "a", "datetime": day, "lat": np.repeat([46.512345, 46.523456], 36), "lng": 6.654321})

    traces, counted = read(frame)

    assert counted.places_by == "grid"
    assert 46.512345 not in traces.locations.lat.tolist()


def test_points_that_seldom_repeat_are_cells():
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "uid": "a",
            "datetime": pd.date_range("2024-03-04", periods=72, freq="20min"),
            "lat": 46.5 + rng.normal(0, 0.001, 72),
            "lng": 6.6 + rng.normal(0, 0.001, 72),
        }
    )

    assert read(frame)[1].places_by == "grid"
