"""Every format, told by its content: files of the same fixes give the same traces, packed, piped or in folders."""

import gzip
import io
import json
import re
import subprocess
import sys
from datetime import timedelta

import makefiles
import numpy as np
import pyarrow as pa
import pytest

import elsewhere as ew
from elsewhere.run.publish import ALSO, NOT_WRITTEN, TEXTS
from elsewhere.traces.formats import CONTAINERS, open_table, recognise
from elsewhere.traces.formats.documents import parse_e7, parse_point

NO_USER = {"geolife", "gpx", "records", "records in ms", "android", "ios", "semantic history"}
NAMES = {
    "csv": "csv",
    "geolife": "geolife",
    "gpx": "gpx",
    "geojson of points": "geojson",
    "geojson of lines": "geojson",
    "moving features": "geojson",
    "records": "google",
    "records in ms": "google",
    "android": "google",
    "ios": "google",
    "semantic history": "google",
    "foursquare": "foursquare",
    "json rows": "json",
    "json lines": "json",
}
USER = {"foursquare": "470"}


def read(source, **options):
    counted = []
    traces = ew.read_traces(source, report=counted.append, tz="UTC", **options)
    return traces, counted[0]


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def expected(tmp_path):
    return ew.read_traces(put(tmp_path / "expected" / "a.csv", makefiles.csv(makefiles.fixes())), tz="UTC")


@pytest.mark.parametrize("kind", makefiles.EVERY)
def test_each_format_by_content_alone(tmp_path, expected, kind):
    content = makefiles.EVERY[kind](makefiles.fixes()).encode()
    odd_name = put(tmp_path / "ann.dat", content)
    packed = put(tmp_path / "ann.dat.gz", gzip.compress(content))

    assert recognise(content, "x") == NAMES[kind]
    for path in (odd_name, packed):
        traces, counted = read(path)
        # positions first: where they are wrong, so are the numbers of places, which tell less
        np.testing.assert_allclose(traces.locations.lat, expected.locations.lat, atol=2e-3)
        np.testing.assert_allclose(traces.locations.lon, expected.locations.lon, atol=2e-3)
        assert np.array_equal(traces.r, expected.r)
        assert traces.labels == (USER.get(kind, "ann"),)
        assert traces.dates.astype(str).tolist() == ["2013-04-15"]
        assert sum(counted.dropped.values()) == 0
        assert ew.read_traces(path, format=NAMES[kind], tz="UTC").labels == traces.labels


def test_every_format_is_made_here_named_by_read_traces_and_written_or_not():
    formats = set(CONTAINERS) - {"auto"}
    written = {*TEXTS, "json", *ALSO}

    assert formats - set(NAMES.values()) == {"parquet", "excel", "sglt"}  # no texts, or no fixes: tests of their own
    assert [name for name in formats if f'"{name}"' not in ew.read_traces.__doc__] == []
    assert written & NOT_WRITTEN.keys() == set()
    assert written | NOT_WRITTEN.keys() == formats


@pytest.mark.parametrize("kind", makefiles.EVERY)
def test_a_format_asked_for_is_the_only_one_read(tmp_path, kind):
    other = "gpx" if NAMES[kind] != "gpx" else "google"
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.read_traces(put(tmp_path / "a", makefiles.EVERY[kind](makefiles.fixes())), format=other)

    assert caught.value.code == "E_FORMAT"


@pytest.mark.parametrize("kind", sorted(set(makefiles.EVERY) - {"foursquare", "semantic history"}))
def test_times_keep_to_the_second(tmp_path, kind):
    # one fix in the last second of every slot: any shift of a reader would move them all
    points = [(t + timedelta(minutes=9, seconds=59), lat, lon) for t, lat, lon in makefiles.fixes()]
    traces, counted = read(put(tmp_path / "ann.x", makefiles.EVERY[kind](points)), max_gap="0min", min_coverage=0)

    assert counted.slots_missing == 0
    assert np.array_equal(traces.r[0], [0] * 24 + [1] * 24 + [0] * 24) or kind in ("android", "ios")


def test_folders_of_one_file_per_person(tmp_path):
    points = makefiles.fixes()
    for kind in sorted(NO_USER):
        folder = tmp_path / kind
        for user in ("ann", "bob"):
            put(folder / f"{user}.dat", makefiles.EVERY[kind](points))
        put(folder / "README.md", "# what this is\n")
        put(folder / ".hidden", "x")
        traces, counted = read(folder)

        assert traces.labels == ("ann", "bob")
        assert np.array_equal(traces.r[0], traces.r[1])
        assert "not read, being of another format: 1 file of the folder" in counted.notes


def test_geolife_and_takeout_folders_name_users_by_folder(tmp_path):
    morning, evening = makefiles.fixes()[:36], makefiles.fixes()[36:]
    for user in ("000", "001"):
        put(tmp_path / "Data" / user / "Trajectory" / "1.plt", makefiles.plt(morning))
        put(tmp_path / "Data" / user / "Trajectory" / "2.plt", makefiles.plt(evening))
    put(tmp_path / "Data" / "000" / "labels.txt", "Start Time\tEnd Time\tTransportation Mode\n")
    for user in ("ann", "bob"):
        put(tmp_path / "people" / user / "Takeout" / "Records.json", makefiles.records(morning))
        put(
            tmp_path / "people" / user / "Takeout" / "2013" / "APRIL.json",
            makefiles.semantic_history(makefiles.fixes()),
        )

    for folder in (tmp_path / "Data", tmp_path / "Data" / "000", tmp_path / "Data" / "000" / "Trajectory"):
        assert read(folder)[0].labels == (("000", "001") if folder.name == "Data" else ("000",))
    assert read(tmp_path / "Data" / "001" / "Trajectory" / "1.plt", min_coverage=0)[0].labels == ("001",)
    assert read(tmp_path / "people")[0].labels == ("ann", "bob")


def test_folders_of_tables_with_and_without_a_user(tmp_path):
    points = makefiles.fixes()
    put(tmp_path / "a" / "1.csv", makefiles.csv(points[:36], "ann"))
    put(tmp_path / "a" / "2.csv", makefiles.csv(points[36:], "ann"))
    for user in ("ann", "bob"):
        put(tmp_path / "b" / f"{user}.csv", makefiles.csv(points).replace("uid,", "x,"))

    assert read(tmp_path / "a")[0].r.shape == (1, 72)
    assert read(tmp_path / "b")[0].labels == ("ann", "bob")


def test_files_of_a_folder_are_called_by_number(tmp_path):
    # a file is called as its person is: no message may show it
    for user in ("CANARY-1", "CANARY-2"):
        put(tmp_path / "all" / f"{user}.gpx", makefiles.gpx(makefiles.fixes()))
    put(tmp_path / "all" / "CANARY-2.gpx", makefiles.gpx(makefiles.fixes())[:-40])
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.read_traces(tmp_path / "all")

    assert "all, file 2 of 2, line" in str(caught.value)
    assert "CANARY" not in str(caught.value)


def test_a_row_of_a_folder_is_named_by_file_and_line(tmp_path):
    put(tmp_path / "all" / "1.csv", makefiles.csv(makefiles.fixes()))
    put(tmp_path / "all" / "2.csv", makefiles.csv(makefiles.fixes()).replace("46.5191", "x"))
    with pytest.raises(ew.errors.InvalidTraces, match=r"all, file 2 of 2, line 2:"):
        ew.read_traces(tmp_path / "all")


@pytest.mark.parametrize(
    ("kind", "old", "new", "said"),
    [
        (
            "csv",
            "46.5191",
            "x",
            "line 2: 48 of 72 rows have numbers that cannot be read (positions are decimal degrees",
        ),
        (
            "json rows",
            "46.5191",
            "46 31",
            "record 1 of those read: 48 of 72 rows have numbers that cannot be read (pos",
        ),
        ("gpx", "46.5375", "x", "record 25 of those read: 24 of 72 rows have numbers that cannot be read, this"),
    ],
)
def test_a_bad_row_is_named_as_its_reader_counts_and_only_tables_are_told_of_degrees(tmp_path, kind, old, new, said):
    content = makefiles.EVERY[kind](makefiles.fixes()).replace(old, json.dumps(new) if kind == "json rows" else new)
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.read_traces(put(tmp_path / "ann", content))

    assert said in str(caught.value)
    assert caught.value.code == "E_NUMBER"


def test_standard_input(tmp_path, monkeypatch, expected):
    content = makefiles.csv(makefiles.fixes()).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(content))))

    assert np.array_equal(read("-")[0].r, expected.r)


def test_process_substitution(tmp_path, expected):
    path = put(tmp_path / "a.csv", makefiles.csv(makefiles.fixes()))
    code = "import sys, elsewhere as ew; print(ew.read_traces(sys.argv[1], tz='UTC').r.tolist())"
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "{code}" <(cat "{path}")'], capture_output=True, text=True, check=True
    )

    assert json.loads(done.stdout) == expected.r.tolist()


def test_frames_of_pandas_polars_and_arrow(expected):
    points = makefiles.fixes()
    columns = {
        "uid": ["ann"] * len(points),
        "datetime": [t for t, _, _ in points],
        "lat": [lat for _, lat, _ in points],
        "lng": [lon for _, _, lon in points],
    }
    arrow = pa.table(columns)
    frames = [arrow, arrow.to_pandas(), arrow.to_batches()[0], columns]
    polars = pytest.importorskip("polars")
    frames.append(polars.from_arrow(arrow))

    assert [np.array_equal(read(frame)[0].r, expected.r) for frame in frames] == [True] * 5


def test_foursquare_with_venues_apart_and_in_latin_1(tmp_path, expected):
    check_ins, pois = makefiles.foursquare_2015(makefiles.fixes())
    traces, _ = read(put(tmp_path / "checkins.txt", check_ins), locations=put(tmp_path / "pois.txt", pois))
    latin = put(tmp_path / "nyc.txt", makefiles.foursquare(makefiles.fixes()).encode("latin-1"))

    assert np.array_equal(traces.r, expected.r)
    assert traces.locations.lat.tolist() == [makefiles.HOME[0], makefiles.WORK[0]]
    assert np.array_equal(read(latin)[0].r, expected.r)


def test_foursquare_offsets_are_the_local_clock(tmp_path):
    text = makefiles.foursquare(makefiles.fixes()).replace("\t0\t", "\t-240\t")
    counted = []
    traces = ew.read_traces(put(tmp_path / "nyc.txt", text), report=counted.append, min_coverage=0.1)

    # 00:10 UTC is 20:10 of the day before
    assert traces.dates.astype(str).tolist() == ["2013-04-14", "2013-04-15"]
    assert (traces.tz, counted[0].tz) == ("Etc/GMT+4", "Etc/GMT+4")


def test_tracks_in_one_gpx_file_are_one_person_unless_asked(tmp_path):
    two = makefiles.gpx(makefiles.fixes()).replace("</gpx>", "") + makefiles.gpx(makefiles.fixes(days=1)).partition(
        "</wpt>"
    )[2].replace("<name>ann", "<name>bob").replace("2013-04-15", "2013-04-16")
    path = put(tmp_path / "all.gpx", two)

    assert read(path)[0].labels == ("all",)
    assert read(path, columns={"user": "name"})[0].labels == ("ann", "bob")


def test_what_we_write_we_read(tmp_path):
    town = ew.Traces(
        [[0, 1, 1, 0] * 18, [1] * 72, [0] * 72],
        ew.Locations([46.5191, 46.5375], [6.5668, 6.6312]),
        users=["ann", "ann", "bob"],
        dates=["2013-04-15", "2013-04-16", "2013-04-15"],
        tz="UTC",
    )
    for name in ("a.csv", "a.parquet", "a.gpx", "a.geojson", "a.tsv.gz"):
        ew.write_traces(town, tmp_path / name)
        again = ew.read_traces(tmp_path / name, tz="UTC", locations=town.locations, columns={"place": None})

        assert np.array_equal(again.r, town.r)
        assert again.users.tolist() == town.users.tolist()


def test_geojson_variants(tmp_path, expected):
    points = makefiles.fixes()
    for key in ("datetimes", "times", "coordTimes"):
        assert np.array_equal(read(put(tmp_path / "ann", makefiles.geojson_line(points, key)))[0].r, expected.r)
    nested = json.loads(makefiles.geojson_line(points, "times"))
    feature = nested["features"][0]
    feature["properties"]["coordinateProperties"] = {"times": [feature["properties"].pop("times")]}
    feature["geometry"] = {"type": "MultiLineString", "coordinates": [feature["geometry"]["coordinates"]]}
    traces, counted = read(put(tmp_path / "ann", json.dumps(nested)))

    assert np.array_equal(traces.r, expected.r)
    assert "1 features without a point and a time were not read" in counted.notes
    assert read(put(tmp_path / "ann", json.dumps(nested["features"][0])))[0].labels == ("ann",)


@pytest.mark.parametrize("per_second", [1, 1000])
@pytest.mark.parametrize("kind", ["LineString", "MultiLineString", "Point"])
def test_time_as_fourth_coordinate_is_a_trip(tmp_path, expected, kind, per_second):
    when = np.array([makefiles.iso(t).removesuffix("Z") for t, _, _ in makefiles.fixes()], dtype="datetime64[s]")
    stamps = (when.astype(np.int64) * per_second).tolist()
    points = [[lon, lat, 12.5, s] for (_, lat, lon), s in zip(makefiles.fixes(), stamps, strict=True)]
    shapes = {"LineString": [points], "MultiLineString": [[points[:20], points[20:]]], "Point": points}[kind]
    trips = [
        {"type": "Feature", "properties": {"uid": "ann"}, "geometry": {"type": kind, "coordinates": s}} for s in shapes
    ]
    traces, counted = read(put(tmp_path / "a.json", json.dumps({"type": "FeatureCollection", "features": trips})))

    assert np.array_equal(traces.r, expected.r)
    assert counted.format == "geojson"
    # a fourth coordinate that is no time, such as a measured value, is none: the trip has no times, and is not read
    measured = json.dumps({"type": "FeatureCollection", "features": trips})
    for number, stamp in enumerate(stamps):
        measured = measured.replace(str(stamp), str(number))
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.read_traces(put(tmp_path / "b.json", measured))
    assert caught.value.code == ("E_COLUMN" if kind == "Point" else "E_EMPTY")  # there is no time at all


def test_numbers_of_google():
    assert parse_e7(465190000, 90) == 46.519
    assert parse_e7(-735000000, 180) == -73.5
    assert parse_e7(2**32 - 735000000, 180) == -73.5
    assert parse_point("43.77°, 9.07°") == parse_point("geo:43.77,9.07") == (43.77, 9.07)
    assert np.isnan(parse_point("43.77")[0])
    assert np.isnan(parse_point({"latLng": 1})[0])


BOMB = '<!DOCTYPE gpx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;">]><gpx><trk><name>&b;</name></trk></gpx>'
OUTSIDE = '<?xml version="1.0"?>\n<!DOCTYPE gpx [<!ENTITY x SYSTEM "file:///etc/passwd">]><gpx><trk><name>&x;</name></trk></gpx>'
DAMAGED = {
    "entity bomb": (BOMB, "E_XML"),
    "external entity": (OUTSIDE, "E_XML"),
    "undefined entity": ("<gpx><trk><name>&x;</name></trk></gpx>", "E_XML"),
    "kml": ("<kml></kml>", "E_FORMAT"),
    "gpx cut": (makefiles.gpx(makefiles.fixes())[:-30], "E_TRUNCATED"),
    "gpx unclosed": (makefiles.gpx(makefiles.fixes()).replace("</trkseg>", ""), "E_XML"),
    "gpx empty": ("<gpx></gpx>", "E_EMPTY"),
    "json cut": (makefiles.records(makefiles.fixes())[:-60], "E_TRUNCATED"),
    "json damaged": (makefiles.records(makefiles.fixes()).replace(": 20,", ": 20", 1), "E_JSON"),
    "json too deep": ('{"semanticSegments":' + "[" * 100_000 + "]" * 100_000 + "}", "E_JSON"),
    "json of nothing known": ('{"a": 1, "b": [2]}', "E_FORMAT"),
    "json of numbers": ("[1, 2, 3]", "E_FORMAT"),
    "no locations": ('{"locations": [], "x": "latitudeE7"}', "E_EMPTY"),
    "a geojson without times": (makefiles.geojson_line(makefiles.fixes(), "thymes"), "E_EMPTY"),
    "plt heading alone": (makefiles.plt([]), "E_EMPTY"),
    "plt cut": (makefiles.plt(makefiles.fixes())[:60], "E_TRUNCATED"),
    "plt with words": (makefiles.plt(makefiles.fixes()).replace(",0,492", ",0,492,0"), "E_CSV"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_documents_are_refused_by_code(tmp_path, case):
    content, code = DAMAGED[case]
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.read_traces(put(tmp_path / "a", content))

    assert caught.value.code == code
    assert "46.5" not in str(caught.value)


FEW_RECORDS = {"geojson of lines", "moving features", "android", "ios", "semantic history"}  # a cut leaves none, or all


def cuts_in_last_record(kind):
    """The file of a kind, and every position at which a cut leaves less than the record of its last fix."""
    points = makefiles.fixes(days=2)
    whole, shorter = (makefiles.EVERY[kind](each).encode() for each in (points, points[:-1]))
    size = len(whole) - len(shorter)
    start = next((i for i, (a, b) in enumerate(zip(whole, shorter, strict=False)) if a != b), len(shorter))
    between = b'<{[," \t\r\n'  # what stands before a record, or between two
    while whole[start - 1] == whole[start + size - 1] and whole[start - 1] in between:
        start -= 1
    record = whole[start : start + size]
    # JSON and XML may be cut at any mark, fields of a line where one of them ends
    fields = [mark for mark in (b"\t", b",", b";", b"|", b" ") if mark in record]
    marks = b'<>{}[]=:,"\t' if re.search(rb"[<{]", record) else fields[0]
    begin = len(record) - len(record.lstrip(between)) + 1
    return whole, [start + i for i in range(begin, size) if record[i] in marks]


@pytest.mark.parametrize("kind", [kind for kind in makefiles.EVERY if kind not in FEW_RECORDS])
def test_what_is_cut_off_is_read_up_to_the_cut_where_that_is_allowed(tmp_path, kind):
    content, cuts = cuts_in_last_record(kind)
    rows = open_table(put(tmp_path / "ann", content)).rows

    assert len(cuts) >= 2
    for at in cuts:
        path = put(tmp_path / "ann", content[:at])
        with pytest.raises(ew.errors.InvalidTraces) as caught:
            open_table(path)
        table = open_table(path, allow_truncated=True)

        assert (caught.value.code, table.rows) == ("E_TRUNCATED", rows - 1), content[at - 40 : at]
        assert any("cut off" in note for note in table.notes)


@pytest.mark.parametrize("kind", [kind for kind in makefiles.EVERY if kind not in FEW_RECORDS])
def test_what_is_cut_off_in_its_gzip_is_read_up_to_the_cut_where_that_is_allowed(tmp_path, kind):
    content = makefiles.EVERY[kind](makefiles.fixes(days=2)).encode()
    whole, packed = open_table(put(tmp_path / "ann", content)).rows, gzip.compress(content)
    path = put(tmp_path / "ann", packed[: len(packed) * 4 // 5])
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        open_table(path)
    table = open_table(path, allow_truncated=True)

    assert caught.value.code == "E_COMPRESSION"
    assert 0.5 * whole < table.rows < whole
    assert any("cut off" in note for note in table.notes)


@pytest.mark.parametrize("kind", ["json rows", "json lines", "gpx"])
def test_damage_within_is_no_cut(tmp_path, kind):
    content = makefiles.EVERY[kind](makefiles.fixes(days=2))
    at = content.index(":", len(content) // 2)
    broken = content[:at] + "<" * (kind == "gpx") + "}" + content[at : len(content) * 4 // 5]
    with pytest.raises(ew.errors.InvalidTraces):
        open_table(put(tmp_path / "ann", broken), allow_truncated=True)


def test_of_a_cut_parquet_file_nothing_can_be_saved_and_the_message_says_so(tmp_path, expected):
    ew.write_traces(expected, tmp_path / "a.parquet")
    path = put(tmp_path / "b.parquet", (tmp_path / "a.parquet").read_bytes()[:-20])
    with pytest.raises(ew.errors.InvalidTraces, match="`allow_truncated` cannot save") as caught:
        open_table(path, allow_truncated=True)

    assert caught.value.code == "E_PARQUET"


def test_half_a_character_at_the_end_is_a_cut(tmp_path):
    text = makefiles.csv(makefiles.fixes(), user="andr\u00e9").encode()
    path = put(tmp_path / "ann", text[: text.rindex("\u00e9".encode()) + 1])

    assert open_table(path, allow_truncated=True).rows == 71
