"""Writing traces: what is written can be read back, the same bytes every time, whole or not at all."""

import csv
import gzip
import io
import json
import os
import stat
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewhere as ew

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
PLACES = ew.Locations([46.52, 46.53, 46.5512345678, -33.9], [6.57, 6.6, 6.65, 179.5])
GPX = "{http://www.topografix.com/GPX/1/1}"


def two_days(**options):
    r = np.array([[0] * 36 + [1] * 36, [1] * 72, [2] * 24 + [3] * 48, [0, 1, 2] * 24])
    fields = {"users": ["ann", "ann", "bob", "eve"], "dates": ["2013-04-15", "2013-04-16", "2013-04-15", "2013-04-15"]}
    return ew.Traces(r, PLACES, **fields | options)


def part_of_a_day(locations, **options):
    return ew.Traces([[0, 1, 1, 2], [2, 2, -1, 0]], locations, users=["1", "2"], start="09:00", **options)


def same(a, b):
    return (
        np.array_equal(a.r, b.r)
        and a.users.tolist() == b.users.tolist()
        and (a.locations == b.locations)
        and (a.step_minutes, a.start, a.tz) == (b.step_minutes, b.start, b.tz)
        and (a.dates is None) == (b.dates is None)
        and (a.dates is None or np.array_equal(a.dates, b.dates))
    )


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.parquet"])
def test_days_come_back_from_tables(tmp_path, name):
    traces = two_days()
    ew.write_traces(traces, tmp_path / name)

    assert same(ew.read_traces(tmp_path / name, tz="UTC"), traces)
    assert same(ew.read_traces(tmp_path / name, locations=PLACES, tz="UTC"), traces)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.parametrize("locations", [ew.Locations(n=3), ew.Locations(xy=[[0, 0], [0.5, 0], [0, 1]])])
def test_slots_come_back_from_tables(tmp_path, name, locations):
    traces = part_of_a_day(locations)
    ew.write_traces(traces, tmp_path / name)
    given = locations if locations.has_coordinates else None

    assert same(ew.read_traces(tmp_path / name, start="09:00", locations=given, max_gap=0), traces)


def test_rows_of_one_user_without_dates_come_back(tmp_path):
    traces = ew.Traces([[0, 1], [1, 1], [0, 0]], ew.Locations(n=2), users=["a", "a", "b"])
    ew.write_traces(traces, tmp_path / "a.csv")

    assert (tmp_path / "a.csv").read_text().splitlines()[:3] == ["uid,day,slot,loc", "a,0,0,0", "a,0,1,1"]
    assert same(ew.read_traces(tmp_path / "a.csv"), traces)


def test_the_columns_that_came_in_go_out(tmp_path):
    when = pd.date_range("2013-04-15", periods=72, freq="20min", tz="UTC")
    frame = pd.DataFrame({"longitude": 6.6, "latitude": 46.5, "user_id": 7, "tracked_at": when})
    counted = []
    traces = ew.read_traces(frame, report=counted.append, max_gap=0)
    ew.write_traces(traces, tmp_path / "a.csv", columns=counted[0].columns, times=counted[0].times)

    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(frame.columns)
    assert rows[1]["tracked_at"] == "2013-04-15T00:20:00Z"
    assert same(ew.read_traces(tmp_path / "a.csv", max_gap=0), traces)
    ew.write_traces(traces, tmp_path / "b.parquet", columns=counted[0].columns, times=counted[0].times)
    assert str(pq.read_schema(tmp_path / "b.parquet").field("tracked_at").type) == "timestamp[us, tz=UTC]"
    assert same(ew.read_traces(tmp_path / "b.parquet", max_gap=0), traces)


def test_the_default_columns_are_those_of_scikit_mobility(tmp_path):
    ew.write_traces(two_days(), tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines()

    assert lines[0] == "uid,datetime,lat,lng,location"
    assert lines[2] == "ann,2013-04-15 00:20:00,46.52,6.57,0"
    assert len(lines) == 1 + 4 * 72


def test_geometry_and_every_other_role_can_be_written(tmp_path):
    roles = ["user", "time", "utc", "local", "date", "slot", "trace", "lat", "lon", "geometry", "place"]
    ew.write_traces(two_days(tz="America/New_York"), tmp_path / "a.csv", columns={role: role for role in roles})
    lines = (tmp_path / "a.csv").read_text().splitlines()

    assert lines[73] == (
        "ann,2013-04-16 00:00:00,2013-04-16T04:00:00Z,2013-04-16 00:00:00,2013-04-16,0,1,46.53,6.6,POINT (6.6 46.53),1"
    )
    kept = {"user": "user_id", "time": "tracked_at", "geometry": "geom"}
    ew.write_traces(two_days(), tmp_path / "b.csv", columns=kept)
    assert ew.read_traces(tmp_path / "b.csv", locations=PLACES).r.tolist() == two_days().r.tolist()


def test_missing_slots_and_a_skipped_hour_have_no_line(tmp_path):
    r = np.where(np.arange(72) < 30, -1, 0)[None]
    traces = ew.Traces(r, PLACES, dates=["2013-03-10"], users=["a"], tz="America/New_York")
    ew.write_traces(traces, tmp_path / "a.csv")
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 1 + 42

    whole = ew.Traces(np.zeros((1, 72), dtype=int), PLACES, dates=["2013-03-10"], users=["a"], tz="America/New_York")
    ew.write_traces(whole, tmp_path / "b.csv")
    assert len((tmp_path / "b.csv").read_text().splitlines()) == 1 + 69
    assert np.array_equal(ew.read_traces(tmp_path / "b.csv", tz="America/New_York").r, whole.r)


def test_dateless_days_start_on_a_monday(tmp_path):
    traces = two_days(dates=None)
    ew.write_traces(traces, tmp_path / "a.csv")
    back = ew.read_traces(tmp_path / "a.csv")

    assert np.array_equal(back.r, traces.r)
    assert back.dates.astype(str).tolist() == ["2001-01-01", "2001-01-02", "2001-01-01", "2001-01-01"]


@pytest.mark.parametrize(("name", "beside"), [("input.trace", "locations"), ("a_trace.txt", "a_locations.txt")])
def test_sglt_comes_back(tmp_path, name, beside):
    traces = part_of_a_day(ew.Locations(xy=[[0, 0], [0.1 + 0.2, 0], [0, 1]]))
    ew.write_traces(traces, tmp_path / name, format="sglt")

    assert (tmp_path / name).read_text().splitlines()[:2] == ["1,1,1", "1,2,2"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, beside])
    assert same(ew.read_traces(tmp_path / name, start="09:00", max_gap=0), traces)


def test_sglt_has_one_row_per_user(tmp_path):
    with pytest.raises(ew.errors.OutputRefused):
        ew.write_traces(two_days(), tmp_path / "input.trace")
    assert list(tmp_path.iterdir()) == []
    ew.write_traces(two_days(), tmp_path / "input.trace", ids=["w", "x", "y", "z"])
    assert np.array_equal(ew.read_traces(tmp_path / "input.trace").r, two_days().r)


def test_pf_tokyo_as_sglt_equals_the_file_given_to_sglt(tmp_path):
    folder = DATA / "pf_tokyo"
    if not folder.exists():
        pytest.skip("the dataset pf_tokyo is not beside the project (../shared/data)")
    sglt = ew.read_traces(folder / "sglt_input_trace.txt")
    ew.write_traces(sglt, tmp_path / "input.trace")

    assert (tmp_path / "input.trace").read_text().split() == (folder / "sglt_input_trace.txt").read_text().split()
    assert same(ew.read_traces(tmp_path / "input.trace"), sglt)


def test_geojson(tmp_path):
    traces = ew.Traces([[0, 1, -1], [2, -1, -1]], PLACES, users=["a", 'b"<'], dates=["2013-04-15"] * 2, tz="Asia/Tokyo")
    ew.write_traces(traces, tmp_path / "a.geojson")
    document = json.loads((tmp_path / "a.geojson").read_text())
    first, second = document["features"]

    assert document["type"] == "FeatureCollection"
    assert first["geometry"] == {"type": "LineString", "coordinates": [[6.57, 46.52], [6.6, 46.53]]}
    assert first["properties"] == {"uid": "a", "datetimes": ["2013-04-14T15:00:00Z", "2013-04-14T15:20:00Z"]}
    assert second["geometry"] == {"type": "Point", "coordinates": [6.65, 46.551235]}
    assert second["properties"]["uid"] == 'b"<'


def test_gpx(tmp_path):
    traces = ew.Traces([[0, 1, -1, 1], [2, 2, 2, 3]], PLACES, users=["a", "<b>&\x01"], dates=["2013-07-15"] * 2)
    ew.write_traces(traces, tmp_path / "a.gpx")
    root = ET.fromstring((tmp_path / "a.gpx").read_text())  # noqa: S314 (our own file)
    tracks = root.findall(f"{GPX}trk")

    assert root.attrib["version"] == "1.1"
    assert [t.find(f"{GPX}name").text for t in tracks] == ["a", "<b>&?"]
    assert [[len(s) for s in t.findall(f"{GPX}trkseg")] for t in tracks] == [[2, 1], [4]]
    last = tracks[1].findall(f".//{GPX}trkpt")[-1]
    assert last.attrib == {"lat": "-33.900000", "lon": "179.500000"}
    assert last.find(f"{GPX}time").text == "2013-07-15T01:00:00Z"


def test_ids_in_place_of_users(tmp_path):
    ew.write_traces(two_days(), tmp_path / "a.csv", ids=["f0", "f1", "f2", "f3"])

    assert ew.read_traces(tmp_path / "a.csv").labels == ("f0", "f1", "f2", "f3")
    assert "ann" not in (tmp_path / "a.csv").read_text()
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.write_traces(two_days(), tmp_path / "b.csv", ids=["f0"])
    assert caught.value.code == "E_SHAPE"


def test_ids_that_a_spreadsheet_would_run(tmp_path):
    ids = ["=1+1", "+cmd", "-x", "@sum", "\tx", "\rx", "-5", "+41.5", "plain", 'a,"b"\nc']
    traces = ew.Traces([[0]] * len(ids), ew.Locations(n=1), users=ids)
    ew.write_traces(traces, tmp_path / "a.csv")
    text = (tmp_path / "a.csv").read_bytes().decode()
    written = [row[0] for row in csv.reader(io.StringIO(text, newline=""))]

    assert written[1:] == ["'=1+1", "'+cmd", "'-x", "'@sum", "'\tx", "'\rx", "-5", "+41.5", "plain", 'a,"b"\nc']
    assert float(pd.read_csv(tmp_path / "a.csv")["loc"].iloc[0]) == 0


def test_negative_coordinates_stay_numbers(tmp_path):
    traces = ew.Traces(np.zeros((1, 72), dtype=int), ew.Locations([-33.9], [-70.6]), users=["a"], dates=["2013-04-15"])
    ew.write_traces(traces, tmp_path / "a.csv")

    assert (tmp_path / "a.csv").read_text().splitlines()[1] == "a,2013-04-15 00:00:00,-33.9,-70.6,0"


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet", "a.geojson", "a.gpx"])
def test_the_same_traces_give_the_same_bytes_for_the_owner_alone(tmp_path, name, monkeypatch):
    old = os.umask(0)
    try:
        ew.write_traces(two_days(), tmp_path / name)
        first = (tmp_path / name).read_bytes()
        monkeypatch.setattr("time.time", lambda: 1e9)
        ew.write_traces(two_days(), tmp_path / name)
    finally:
        os.umask(old)

    assert (tmp_path / name).read_bytes() == first
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == [name]
    plain = gzip.decompress(first) if name.endswith("gz") else first
    assert b"pandas" not in plain
    assert name.encode() not in first


def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path, monkeypatch):
    ew.write_traces(two_days(), tmp_path / "a.csv")
    old = (tmp_path / "a.csv").read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ew.errors.OutputRefused) as caught:
        ew.write_traces(part_of_a_day(ew.Locations(n=3)), tmp_path / "a.csv")
    assert caught.value.code == "E_OUTPUT"
    assert (tmp_path / "a.csv").read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.xlsx", {}),
        ("a.csv", {"format": "excel"}),
        ("a.gpx", {"columns": {"user": "uid"}}),
        ("a.csv", {"columns": {"time": "t"}}),
        ("a.csv", {"columns": {"user": "a", "time": "a"}}),
        ("a.csv", {"columns": {"user": "a", "colour": "b"}}),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, name, options):
    with pytest.raises(ew.errors.InvalidParameter):
        ew.write_traces(two_days(), tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


def test_places_without_degrees_have_no_map(tmp_path):
    traces = part_of_a_day(ew.Locations(n=3))

    for name in ("a.geojson", "a.gpx"):
        with pytest.raises(ew.errors.InvalidParameter):
            ew.write_traces(traces, tmp_path / name)
    with pytest.raises(ew.errors.InvalidParameter):
        ew.write_traces(traces, tmp_path / "a.csv", columns={"user": "uid", "lat": "lat"})
    with pytest.raises(ew.errors.InvalidTraces):
        ew.write_traces(ew.Traces([[0]], ew.Locations(n=1), users=["\ud800"]), tmp_path / "a.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(ew.errors.OutputRefused):
        ew.write_traces(traces, tmp_path / "d.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["d.csv"]


# what is written is read back to the same slots

DST_DAYS = ["2013-03-31", "2013-04-01", "2013-07-06", "2013-10-27"]  # the first has 23 hours, the last 25


def at_home(tz, dates=DST_DAYS):
    """Four days of two people in Zurich, who move at every hour but in the night."""
    r = np.repeat([[0, 0, 0, 0, 1, 1, 2, 2, 2, 0, 0, 1, 2, 2, 2, 2, 1, 0, 0, 0, 1, 1, 0, 0]], 4, axis=0)
    r = np.repeat(np.array([np.where(row < 2, (row + i) % 2, row) for i, row in enumerate(r)]), 3, axis=1)
    where = ew.Locations([47.37, 47.38, 47.39], [8.54, 8.55, 8.56], names=["b", "a", "10"], categories=["x", "y", "x"])
    order = [2, 1, 0]  # ids are read in the order of their characters
    where, r = where.select(order), np.array(order)[r]
    return ew.Traces(r, where, users=["ann", "ann", "bob", "bob"], dates=dates, tz=tz)


@pytest.mark.parametrize("tz", ["UTC", "Europe/Zurich", "UTC+05:30"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(
            (f"a.{ending}", {"times": times, "out_as": out_as})
            for ending in ("csv", "parquet")
            for times in ("local", "utc", "offset", "unix", "unix_ms")
            for out_as in ("slots", "visits")
        ),
        ("a.gpx", {}),
        ("a.geojson", {}),
    ],
)
def test_every_form_comes_back_to_the_same_slots_on_every_clock(tmp_path, name, options, tz):
    traces = at_home(tz)
    ew.write_traces(traces, tmp_path / name, **options)
    back = ew.read_traces(tmp_path / name, tz=tz, locations=traces.locations if "times" not in options else None)

    assert same(back, traces)
    if "times" in options:
        assert back.locations.names == traces.locations.names
        assert back.locations.categories == traces.locations.categories


@pytest.mark.parametrize("times", ["local", "utc", "offset", "unix", "unix_ms"])
def test_the_clock_of_the_input_is_that_of_the_output(tmp_path, times):
    traces = at_home("Europe/Zurich", ["2013-04-01", "2013-04-02", "2013-12-01", "2013-12-02"])
    usual = {"user": "user", "time": "when", "lat": "lat", "lon": "lon", "place": "venue"}
    ew.write_traces(traces, tmp_path / "a.csv", columns=usual, times=times)
    told = []
    back = ew.read_traces(tmp_path / "a.csv", report=told.append)
    ew.write_traces(back, tmp_path / "b.csv", columns=told[0].columns, times=told[0].times)

    # the zone is found from the coordinates: also for times that have no offset
    assert back.tz == "Europe/Zurich"
    assert (told[0].times, dict(told[0].columns)) == (times, usual)
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    first = {
        "local": "2013-04-01 00:20:00",
        "utc": "2013-03-31T22:20:00Z",
        "offset": "2013-04-01T00:20:00+02:00",
        "unix": "1364768400",
        "unix_ms": "1364768400000",
    }
    assert (tmp_path / "a.csv").read_text().splitlines()[2].split(",")[1] == first[times]


def test_a_clock_time_beside_a_date_comes_out_so(tmp_path):
    traces = at_home("Europe/Zurich", ["2013-04-01", "2013-04-02", "2013-12-01", "2013-12-02"])
    columns = {"user": "user", "date": "date", "time": "time", "place": "venue", "lat": "lat", "lon": "lon"}
    ew.write_traces(traces, tmp_path / "a.csv", columns=columns, times="clock")
    told = []
    back = ew.read_traces(tmp_path / "a.csv", report=told.append)

    assert (tmp_path / "a.csv").read_text().splitlines()[2].startswith("ann,2013-04-01,00:20:00,")
    assert told[0].times == "clock"
    assert same(back, traces)


def test_gpx_of_a_local_clock_carries_the_right_instant(tmp_path):
    ew.write_traces(at_home("Europe/Zurich"), tmp_path / "a.csv")
    ew.write_traces(ew.read_traces(tmp_path / "a.csv"), tmp_path / "a.gpx")

    assert "<time>2013-07-05T22:00:00Z</time>" in (tmp_path / "a.gpx").read_text()  # midnight of the 6th in summer


def test_visits_are_stays(tmp_path):
    where = ew.Locations([46.5, 46.6], [6.5, 6.6], names=["mill", "inn"], categories=["work", "food"])
    r = [[0] * 30 + [1] * 3 + [0] * 39, [0] * 20 + [-1] * 10 + [0] * 42]
    traces = ew.Traces(r, where, users=["ann", "bob"], dates=["2013-04-15"] * 2, tz="Europe/Zurich")
    ew.write_traces(traces, tmp_path / "a.csv", out_as="visits")

    assert (tmp_path / "a.csv").read_text().splitlines() == [
        "uid,arrived,left,lat,lng,place,category",
        "ann,2013-04-15 00:00:00,2013-04-15 10:00:00,46.5,6.5,mill,work",
        "ann,2013-04-15 10:00:00,2013-04-15 11:00:00,46.6,6.6,inn,food",
        "ann,2013-04-15 11:00:00,2013-04-16 00:00:00,46.5,6.5,mill,work",
        "bob,2013-04-15 00:00:00,2013-04-15 06:40:00,46.5,6.5,mill,work",
        "bob,2013-04-15 10:00:00,2013-04-16 00:00:00,46.5,6.5,mill,work",
    ]
    ew.write_traces(traces, tmp_path / "b.csv", out_as="events")
    assert (tmp_path / "b.csv").read_text().splitlines() == [
        "uid,datetime,lat,lng,location,category",
        "ann,2013-04-15 10:00:00,46.6,6.6,inn,food",
        "ann,2013-04-15 11:00:00,46.5,6.5,mill,work",
        "bob,2013-04-15 10:00:00,46.5,6.5,mill,work",
    ]
    back = ew.read_traces(tmp_path / "a.csv", max_gap=0)
    assert sorted(back.locations.names) == ["inn", "mill"]
    assert np.array_equal(back.r, np.where(traces.r >= 0, 1 - traces.r, -1))  # inn comes before mill


@pytest.mark.parametrize(
    ("arrived", "left", "user"),
    [("started_at", "finished_at", "user_id"), ("datetime", "leaving_datetime", "uid"), ("arrival", "departure", "id")],
)
def test_visits_of_other_tools_are_read_and_written_in_their_columns(tmp_path, arrived, left, user):
    traces = at_home("Europe/Zurich", ["2013-04-01", "2013-04-02", "2013-12-01", "2013-12-02"])
    columns = {"user": user, "arrived": arrived, "left": left, "lat": "lat", "lon": "lng", "place": "location_id"}
    ew.write_traces(traces, tmp_path / "a.csv", columns=columns, out_as="visits", times="offset")
    told = []
    back = ew.read_traces(tmp_path / "a.csv", report=told.append)

    assert same(back, traces)
    assert dict(told[0].columns) == columns
    ew.write_traces(back, tmp_path / "b.csv", columns=told[0].columns, times=told[0].times, out_as="visits")
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()


def test_visits_and_events_in_the_columns_of_fixes(tmp_path):
    traces = at_home("Europe/Zurich")
    columns = {"user": "who", "utc": "utc", "local": "loc time", "lat": "lat", "lon": "lon", "category": "kind"}
    heads = {}
    for out_as in ("slots", "visits", "events"):
        ew.write_traces(traces, tmp_path / f"{out_as}.csv", columns=columns, out_as=out_as)
        heads[out_as] = (tmp_path / f"{out_as}.csv").read_text().splitlines()[0]
    assert heads == {
        "slots": "who,utc,loc time,lat,lon,kind",
        "visits": "who,arrived,left,lat,lon,kind,place",
        "events": "who,utc,loc time,lat,lon,kind",
    }
    stops = {"user": "uid", "arrived": "a", "left": "b", "place": "p"}
    ew.write_traces(traces, tmp_path / "c.csv", columns=stops)
    assert (tmp_path / "c.csv").read_text().splitlines()[0] == "uid,datetime,p"
    with pytest.raises(ew.errors.InvalidParameter, match="out_as"):
        ew.write_traces(traces, tmp_path / "a.gpx", out_as="visits")


def test_trips_have_both_ends_and_are_read_back(tmp_path):
    traces = at_home("Europe/Zurich")
    ew.write_traces(traces, tmp_path / "a.csv", out_as="trips")
    head, *rows = ((tmp_path / "a.csv").read_text()).splitlines()
    assert head == "uid,started_at,start_lat,start_lng,start_place,ended_at,end_lat,end_lng,end_place"
    r = traces.r
    moves = [(i, t) for i in range(len(r)) for t in range(traces.L - 1) if -1 not in (r[i, t], r[i, t + 1])]
    moves = [(i, t) for i, t in moves if r[i, t] != r[i, t + 1]]
    assert len(rows) == len(moves) > 0
    for row, (i, t) in zip(rows, moves, strict=True):
        user, begin, *_, place, end, _, _, last = row.split(",")
        called = [traces.locations.names[x] for x in (r[i, t], r[i, t + 1])]
        assert [user, place, last] == [str(traces.labels[traces.user[i]]), *called]
        assert np.datetime64(end) - np.datetime64(begin) == np.timedelta64(round(traces.step_minutes), "m")
    told = []
    ew.read_traces(tmp_path / "a.csv", tz="Europe/Zurich", max_gap="24h", min_coverage=0, report=told.append)
    columns = dict(told[0].columns)
    assert columns == {
        "user": "uid",
        "time": "started_at",
        "lat": "start_lat",
        "lon": "start_lng",
        "place": "start_place",
        "end_time": "ended_at",
        "end_lat": "end_lat",
        "end_lon": "end_lng",
        "end_place": "end_place",
    }
    ew.write_traces(traces, tmp_path / "b.csv", columns=columns, out_as="trips")
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    # in the columns of trips, slots have one end
    ew.write_traces(traces, tmp_path / "c.csv", columns=columns)
    assert (tmp_path / "c.csv").read_text().splitlines()[0] == "uid,started_at,start_lat,start_lng,start_place"


def test_of_two_visits_in_a_slot_the_longer_wins():
    visits = {
        "uid": ["a", "a", "a", "a"],
        "arrived": ["2013-04-15 00:00", "2013-04-15 09:05", "2013-04-15 09:12", "2013-04-15 09:17"],
        "left": ["2013-04-15 09:05", "2013-04-15 09:12", "2013-04-15 09:17", "2013-04-16 00:00"],
        "place": ["home", "shop", "kiosk", "work"],
    }
    told = []
    traces = ew.read_traces(visits, report=told.append)

    # 09:00 to 09:20: five minutes at home, seven in the shop, five at the kiosk, three at work
    assert [traces.locations.names[p] for p in traces.r[0, 26:29]] == ["home", "shop", "work"]
    assert told[0].fixed["visits too short for a slot of their own"] == 1
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.read_traces({**visits, "left": visits["arrived"][::-1]})
    assert caught.value.code == "E_DATE"


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_visits_come_back(tmp_path_factory, data):
    R, N = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    rows = st.lists(st.integers(-1, R - 1), min_size=72, max_size=72).filter(lambda row: max(row) >= 0)
    r = np.array(data.draw(st.lists(rows, min_size=N, max_size=N)))
    used = np.unique(r[r >= 0])
    r = np.where(r >= 0, np.searchsorted(used, r), -1)
    traces = ew.Traces(r, ew.Locations(n=len(used)), users=list("abc")[:N], dates=["2013-04-15"] * N)
    path = tmp_path_factory.mktemp("visits") / "a.csv"
    ew.write_traces(traces, path, out_as="visits")

    assert np.array_equal(ew.read_traces(path, max_gap=0, min_coverage=0).r, traces.r)


ids = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(
    lambda t: t[0] not in "=+-@" and t.strip() == t
)


@st.composite
def any_traces(draw):
    R, N, L = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.sampled_from([1, 3, 24, 72]))
    r = np.array(draw(st.lists(st.lists(st.integers(0, R - 1), min_size=L, max_size=L), min_size=N, max_size=N)))
    r.flat[:R] = np.arange(R)[: r.size]  # every place occurs, so that every place has coordinates in the file
    users = sorted(draw(st.lists(ids, min_size=N, max_size=N, unique=True)))
    used = int(r.max()) + 1
    where = [(46 + 0.01 * i, 6 + 0.01 * i) for i in range(used)]
    locations = ew.Locations(*zip(*where, strict=True)) if draw(st.booleans()) else ew.Locations(n=used)
    return ew.Traces(r, locations, users=users, dates=["2013-04-15"] * N, step_minutes=20)


@settings(max_examples=60, deadline=None)
@given(any_traces(), st.sampled_from(["csv", "tsv", "parquet", "csv.gz"]))
def test_tables_come_back(tmp_path_factory, traces, ending):
    path = tmp_path_factory.mktemp("back") / f"a.{ending}"
    ew.write_traces(traces, path)
    whole = traces.L == 72
    given = traces.locations if traces.locations.has_coordinates and not whole else None
    back = ew.read_traces(path, locations=given)

    assert back.r.tolist() == traces.r[np.argsort(_order(traces.labels))].tolist()
    assert sorted(back.labels) == sorted(traces.labels)
    assert back.locations == traces.locations


def _order(labels):
    """The rank of each label in the order in which users are read."""
    whole = all(label.isascii() and label.isdigit() and str(int(label)) == label for label in labels)
    ordered = sorted(labels, key=int if whole else None)
    return [ordered.index(label) for label in labels]


def test_what_is_no_traces_is_refused(tmp_path):
    for wrong in (np.zeros((2, 72), dtype=int), None, "traces.csv"):
        with pytest.raises(ew.errors.InvalidParameter, match="`traces`"):
            ew.write_traces(wrong, tmp_path / "a.csv")
    town = ew.Traces([[0, 1]], ew.Locations(n=2))
    with pytest.raises(ew.errors.InvalidParameter, match="`path`"):
        ew.write_traces(town, 5)
    with pytest.raises(ew.errors.InvalidParameter, match="`columns`"):
        ew.write_traces(town, tmp_path / "a.csv", columns=5)
    assert list(tmp_path.iterdir()) == []
