"""Files as strangers have them: no names, odd separators, dates and numbers of other countries; one day, read alike."""

import datetime as dt
import io
import json
import re
import shlex
import sys
import zipfile

import makefiles
import numpy as np
import pytest

import elsewhere as ew
from elsewhere.traces.columns import find_roles

POINTS = makefiles.fixes()
WEST = -122.0  # longitudes of the other coast, which can be no latitudes
CANARY = "46.519"


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(source, **options):
    counted = []
    traces = ew.read_traces(source, report=counted.append, **options)
    return traces, counted[0]


def refused(source, **options):
    with pytest.raises(ew.ElsewhereError) as caught:
        ew.read_traces(source, **options)
    message = str(caught.value)

    assert CANARY not in message
    assert "ann" not in message.replace("cannot", "")
    return caught.value.code, message


def lines(form, points=POINTS, **more):
    """One line per fix; `form` may use t, lat, lon, west (a longitude beyond 90) and user."""
    return "".join(
        form.format(t=t, lat=lat, lon=lon, west=WEST - lon, user=more.get("user", "ann"), unix=int(t.timestamp()))
        for t, lat, lon in points
    )


@pytest.fixture
def expected(tmp_path):
    return ew.read_traces(put(tmp_path / "expected" / "a.csv", makefiles.csv(POINTS)), tz="UTC")


HEAD = "uid,datetime,lat,lng\n"
ISO = "{user},{t:%Y-%m-%d %H:%M:%S},{lat},{lon}\n"
CLOCKS = "{user},{t:%d.%m.%Y},{t:%H:%M:%S},{lat},{lon}\n"
EXCEL = dt.datetime(1899, 12, 30, tzinfo=POINTS[0][0].tzinfo)  # day 0 of spreadsheets
SAME = {
    "German names, dates and commas": "Nutzer;Datum;Uhrzeit;Breite;L\u00e4nge\n"
    + lines(CLOCKS).replace(",", ";").replace("6.", "6,"),
    "German devices": "Ger\u00e4tenummer;Zeitpunkt;Breitengrad;L\u00e4ngengrad\n"
    + lines("{user};{t:%d.%m.%Y %H:%M:%S};{lat};{lon}\n").replace("6.", "6,"),
    "Spanish names": "usuario,fecha,hora,latitud,longitud\n" + lines(CLOCKS),
    "a day known by what it holds": "uid,Tag,time,lat,lng\n" + lines(CLOCKS),
    "a clock known by what it holds": "uid,date,gestartet,lat,lng\n" + lines(CLOCKS),
    "a time known by what it holds": "tracker_id,gemeldet,lat,lng\n" + lines(ISO),
    "number plates": "Kennzeichen,Zeit,Breite,L\u00e4nge\n" + lines(ISO),
    "number plates of Spain": "Matr\u00edcula,Fecha y hora,Latitud,Longitud\n" + lines(ISO),
    "number plates of France": "Immatriculation,Date et heure,Latitude,Longitude\n" + lines(ISO),
    "probes of cars": "PROBE_ID,SAMPLE_DATE,LAT,LON,HEADING,SPEED\n"
    + lines("{user},{t:%Y-%m-%d %H:%M:%S},{lat},{lon},90,30\n"),
    "a hub of trackers": "ident,timestamp,position_latitude,position_longitude\n"
    + lines("{user},{unix},{lat},{lon}\n"),
    "a date and the clock of the start": "user,date,start_time,lat,lon\n" + lines(CLOCKS),
    "clock times of six digits": "card_no,TAP_DATE,TAP_TIME,lat,lon\n"
    + lines("{user},{t:%Y%m%d},{t:%H%M%S},{lat},{lon}\n"),
    "clock times of four digits": "uid,date,time,lat,lon\n" + lines("{user},{t:%Y-%m-%d},{t:%H%M},{lat},{lon}\n"),
    "days of a spreadsheet": "uid,time,lat,lon\n"
    + "".join(f"ann,{(t - EXCEL) / dt.timedelta(days=1):.5f},{lat},{lon}\n" for t, lat, lon in POINTS),
    "days of a spreadsheet with commas": "uid;time;lat;lon\n"
    + "".join(f"ann;{(t - EXCEL) / dt.timedelta(days=1):.5f};{lat};{lon}\n" for t, lat, lon in POINTS).replace(
        ".", ","
    ),
    "milliseconds of an advertiser": "advertiser_id,ts_ms,lat,lon\n" + lines("{user},{unix}000,{lat},{lon}\n"),
    "byte order mark and semicolons": "\ufeff" + (HEAD + lines(ISO)).replace(",", ";"),
    "quoted numbers": HEAD + lines('"{user}","{t:%Y-%m-%d %H:%M:%S}","{lat}","{lon}"\n'),
    "decimal commas": HEAD.replace(",", ";") + lines(ISO).replace(",", ";").replace("6.", "6,"),
    "decimal commas and tabs": HEAD.replace(",", "\t") + lines(ISO).replace(",", "\t").replace("6.", "6,"),
    "decimal commas and bars": HEAD.replace(",", "|") + lines(ISO).replace(",", "|").replace("6.", "6,"),
    "decimal commas in quotes": HEAD + lines('{user},{t:%Y-%m-%d %H:%M:%S},"{lat}","{lon}"\n').replace("6.", "6,"),
    "Excel's sep= line": "sep=;\n" + (HEAD + lines(ISO)).replace(",", ";"),
    "comments before the names": "# made by a logger\n# version 2\n\n" + HEAD + lines(ISO),
    "names behind a comment's mark": "# uid,datetime,lat,lng\n" + lines(ISO),
    "units below the names": HEAD + "-,UTC,deg,deg\n" + lines(ISO),
    "names again and again": HEAD + lines(ISO, POINTS[:30]) + HEAD + lines(ISO, POINTS[30:]) + HEAD,
    "a delimiter at every end": "uid,datetime,lat,lng,\n" + lines(ISO).replace("\n", ",\n"),
    "a delimiter at every end but the names": HEAD + lines(ISO).replace("\n", ",\n"),
    "empty columns at the end": "uid,datetime,lat,lng,,,\n" + lines(ISO).replace("\n", ",,,\n"),
    "an index without a name": ",uid,datetime,lat,lng\n"
    + "".join(f"{i},{x}" for i, x in enumerate(lines(ISO).splitlines(True))),
    "the row names of R": HEAD + "".join(f"{i},{x}" for i, x in enumerate(lines(ISO).splitlines(True), 1)),
    "Windows line ends": (HEAD + lines(ISO)).replace("\n", "\r\n"),
    "lat and lng in one column": "uid,datetime,coordinates\n" + lines('{user},{t:%Y-%m-%d %H:%M:%S},"{lat}, {lon}"\n'),
    "a pair in a column called location": "uid,datetime,location\n"
    + lines('{user},{t:%Y-%m-%d %H:%M:%S},"{lat},{lon}"\n'),
    "TRUE and false beside": "uid,datetime,lat,lng,moving\n" + lines("{user},{t:%Y-%m-%d %H:%M:%S},{lat},{lon},True\n"),
    "epochs as decimals": HEAD + lines("{user},{unix}.0,{lat},{lon}\n"),
    "the time of the original Foursquare": HEAD + lines("{user},{t:%a %b %d %H:%M:%S} +0000 {t:%Y},{lat},{lon}\n"),
    "times of mail": HEAD + lines('{user},"{t:%a, %d %b %Y %H:%M:%S} +0000",{lat},{lon}\n'),
    "months by name": HEAD + lines("{user},{t:%d-%b-%Y %H:%M:%S},{lat},{lon}\n"),
    "months by name first": HEAD + lines('{user},"{t:%B %d, %Y %I:%M %p}",{lat},{lon}\n'),
    "dates of digits": HEAD + lines("{user},{t:%Y%m%d%H%M%S},{lat},{lon}\n"),
    "dates of digits with a T": HEAD + lines("{user},{t:%Y%m%dT%H%M%S}Z,{lat},{lon}\n"),
    "short ISO": HEAD + lines("{user},{t.year}-{t.month}-{t.day} {t.hour}:{t:%M},{lat},{lon}\n"),
    "day first": HEAD + lines("{user},{t:%d/%m/%Y %H:%M},{lat},{lon}\n"),
    "day first with points": HEAD + lines("{user},{t:%d.%m.%Y %H:%M:%S},{lat},{lon}\n"),
    "day first, two digits of the year": HEAD + lines("{user},{t:%d-%m-%y %H:%M},{lat},{lon}\n"),
    "year first, twelve hours": HEAD + lines("{user},{t:%Y/%m/%d %I:%M:%S %p},{lat},{lon}\n"),
    "month first, twelve hours": HEAD + lines("{user},{t:%m/%d/%Y %I:%M:%S %p},{lat},{lon}\n"),
    "month first, points, no blank": HEAD + lines("{user},{t:%m.%d.%Y %I:%M%p},{lat},{lon}\n"),
    "a date and a clock": "uid,date,time,lat,lng\n" + lines("{user},{t:%d.%m.%Y},{t:%H:%M:%S},{lat},{lon}\n"),
    "a date and an hour with minutes": "uid,date,hour,lat,lng\n"
    + lines("{user},{t:%m/%d/%Y},{t:%I:%M %p},{lat},{lon}\n"),
    "a taxi of Beijing": "taxi_id,datetime,lng,lat\n" + lines("{user},{t:%Y-%m-%d %H:%M:%S},{lon},{lat}\n"),
    "calls": "msisdn,call_time,latitude_deg,longitude_deg\n" + lines(ISO),
    "x and y": "imsi,unixtime,x,y\n" + lines("{user},{unix},{lon},{lat}\n"),
    "Movebank": "timestamp,location-long,location-lat,individual-local-identifier\n"
    + lines("{t:%Y-%m-%d %H:%M:%S}.000,{lon},{lat},{user}\n"),
    "ships": "MMSI,BaseDateTime,LAT,LON,SOG,VesselName\n"
    + lines("{user},{t:%Y-%m-%dT%H:%M:%S},{lat},{lon},0.1,ORCA\n"),
    "a dump of buses": "id,trip.id,vehicle.id,position.latitude,position.longitude,timestamp\n"
    + lines("{unix},t{unix},{user},{lat},{lon},{unix}\n"),
    "objects in objects": lines(
        '{{"device": {{"id": "{user}", "model": "x"}}, "ts": "{t:%Y-%m-%dT%H:%M:%SZ}", '
        '"position": {{"lat": {lat}, "lon": {lon}, "accuracy": 12.5}}}}\n'
    ),
    "points of GeoJSON in objects": lines(
        '{{"user": {{"id": "{user}"}}, "time": "{t:%Y-%m-%dT%H:%M:%SZ}", '
        '"where": {{"type": "Point", "coordinates": [{lon}, {lat}]}}}}\n'
    ),
    "blanks between": "uid  unixtime  lat  lng\n" + lines("  {user}   {unix} {lat}  {lon} \n"),
}


@pytest.mark.parametrize("what", SAME)
def test_odd_files_are_read_as_the_plain_one(tmp_path, expected, what):
    traces, counted = read(put(tmp_path / "a.csv", SAME[what]), tz="UTC")

    assert traces.labels == ("ann",)
    assert traces.r.tolist() == expected.r.tolist()
    assert np.allclose(traces.locations.lat, expected.locations.lat)
    assert np.allclose(traces.locations.lon, expected.locations.lon)
    assert traces.dates.astype(str).tolist() == ["2013-04-15"]
    assert sum(counted.dropped.values()) == 0


def test_what_was_passed_over_is_said(tmp_path):
    def notes(what):
        counted = read(put(tmp_path / "a.csv", SAME[what]), tz="UTC")[1]
        return " ".join(counted.notes) + str(dict(counted.fixed))

    assert "decimal commas" in notes("decimal commas")
    assert "comments" in notes("comments before the names")
    assert "line below the names" in notes("units below the names")
    assert "'further lines of column names': 2" in notes("names again and again")
    assert "read as longitude and latitude" in notes("x and y")


# without names

UNNAMED = {
    "Cabspotting": "{lat} {west} 0 {unix}\n",
    "tabs": "{t:%Y-%m-%dT%H:%M:%SZ}\t{lat}\t{west}\n",
    "semicolons and decimal commas": "{t:%d/%m/%Y %H:%M};{lat};{west:.4f}\n",
    "longitude first": "{west:.4f}|{lat:.4f}|{unix}000\n",
    "GeoLife's rows": "{lat},{west},0,492.5,39744.12,{t:%Y-%m-%d},{t:%H:%M:%S}\n",
}


@pytest.mark.parametrize("what", UNNAMED)
def test_files_of_one_person_each_without_names(tmp_path, expected, what):
    for user in ("ann", "bob"):
        text = lines(UNNAMED[what])
        put(tmp_path / "all" / f"{user}.txt", text.replace(".", ",") if "commas" in what else text)
    put(tmp_path / "all" / "README", "What these files are.\nAsk us.\n")
    traces, counted = read(tmp_path / "all", tz="UTC")

    assert traces.labels == ("ann", "bob")
    assert traces.r.tolist() == expected.r.tolist() * 2
    assert np.allclose(sorted(traces.locations.lat), sorted(expected.locations.lat), atol=1e-3)
    assert traces.locations.lon.max() < -120
    assert any("lat=#" in note and "lon=#" in note for note in counted.notes)
    assert any("not read, being of another format: 1 file of the folder" in note for note in counted.notes)


def test_a_user_without_a_name_is_the_first_column_or_the_only_words(tmp_path, expected):
    beijing = "".join(lines("{user},{t:%Y-%m-%d %H:%M:%S},{west:.4f},{lat:.4f}\n", user=u) for u in ("7", "12"))
    traces, _ = read(put(tmp_path / "a.txt", beijing), tz="UTC")
    assert traces.labels == ("7", "12")
    assert traces.r.tolist() == expected.r.tolist() * 2
    venues = "".join(
        f"{u}\t{t:%Y-%m-%dT%H:%M:%SZ}\t{lat}\t{WEST - lon}\t{22847 if lat == makefiles.HOME[0] else 420315}\n"
        for u in (0, 1)
        for t, lat, lon in POINTS
    )
    traces, counted = read(put(tmp_path / "b.txt", venues), tz="UTC")
    assert traces.labels == ("0", "1")
    assert any("user=#1" in note and "place=#5" in note for note in counted.notes)


def test_berlin_is_told_from_the_sea_and_lausanne_from_somalia_is_not(tmp_path):
    def at(lat, lon):
        return "".join(f"{lat}{i % 9} {lon}{i % 7} {int(t.timestamp())}\n" for i, (t, _, _) in enumerate(POINTS))

    traces, counted = read(put(tmp_path / "berlin.txt", at("52.511", "13.401")), tz="UTC")
    assert abs(traces.locations.lat[0] - 52.51) < 0.01
    assert any("lat=#1, lon=#2" in note and "user=the file's name" in note for note in counted.notes)
    turned, _ = read(put(tmp_path / "turned.txt", at("13.401", "52.511")), tz="UTC")
    assert abs(turned.locations.lat[0] - 52.51) < 0.01
    code, message = refused(put(tmp_path / "somewhere.txt", at("46.519", "6.632")), tz="UTC")
    assert code == "E_COLUMN"
    assert "no column for lat, lon" in message
    assert "#1 decimal numbers, #2 decimal numbers, #3 times since 1970" in message
    assert "give `columns` lat=#1,lon=#2 (or lat=#2,lon=#1)" in message
    typed = ew.read_traces(tmp_path / "somewhere.txt", tz="UTC", columns={"lat": "#1", "lon": "#2"})
    assert abs(typed.locations.lat[0] - 46.52) < 0.01


def test_whole_numbers_without_names_are_still_sglt(tmp_path):
    traces, counted = read(put(tmp_path / "a.trace", makefiles.sglt(POINTS)))

    assert (traces.R, counted.format) == (2, "sglt")
    code, message = refused(put(tmp_path / "b", "1,2,3,4\n5,6,7,8\n"))
    assert code == "E_COLUMN"
    assert "#1 whole numbers, #2 whole numbers, #3 whole numbers, #4 whole numbers" in message


# columns by number, and the file as the user


def test_columns_by_number_and_the_file_as_the_user(tmp_path, expected):
    cab = put(tmp_path / "new_abboip.txt", lines("{lat} {lon} 0 {unix}\n"))
    asked = {"lat": "#1", "lon": "#2", "time": "#4", "user": "file"}
    traces, counted = read(cab, columns=asked, tz="UTC")

    assert traces.labels == ("new_abboip",)
    assert traces.r.tolist() == expected.r.tolist()
    assert dict(counted.columns) == {}
    named = put(tmp_path / "bob.csv", HEAD + lines(ISO))
    assert read(named, columns={"user": "file"}, tz="UTC")[0].labels == ("bob",)
    assert dict(read(named, columns={"user": "file"}, tz="UTC")[1].columns)["user"] == "user"
    assert read(named, columns={"user": "#1", "lon": "#4"}, tz="UTC")[0].labels == ("ann",)
    for number in ("#0", "#5"):
        assert refused(named, columns={"user": number})[0] == "E_COLUMN"
    geolife = put(tmp_path / "Data" / "007" / "Trajectory" / "1.csv", lines("{lat},{lon},{t:%Y-%m-%d %H:%M:%S}\n"))
    by_number = {"lat": "#1", "lon": "#2", "time": "#3", "user": "file"}
    assert read(geolife, columns=by_number, tz="UTC")[0].labels == ("007",)


def test_a_column_that_is_really_called_so_goes_first(tmp_path):
    text = "file,#2,lat,lng,datetime\n" + lines("carl,dora,{lat},{lon},{t:%Y-%m-%d %H:%M:%S}\n")
    path = put(tmp_path / "bob.csv", text)

    assert read(path, columns={"user": "file"}, tz="UTC")[0].labels == ("carl",)
    assert read(path, columns={"user": "#2"}, tz="UTC")[0].labels == ("dora",)
    assert read(path, columns={"user": "#1"}, tz="UTC")[0].labels == ("carl",)


def test_all_that_is_missing_is_said_at_once(tmp_path):
    people = "".join(lines(ISO, user=user) for user in ("ann", "bob", "eve"))
    code, message = refused(put(tmp_path / "a.csv", "a,b,c,d\n" + people))
    assert code == "E_COLUMN"
    assert "no column for user, time, lat, lon; columns seen: 'a', 'b', 'c', 'd'" in message
    assert "give `columns` user=a,time=b,lat=c,lon=d" in message
    _, message = refused(put(tmp_path / "a.csv", "a,b,lat,lng\n" + people))
    assert "no column for user, time; columns seen: 'a', 'b', 'lat', 'lng'; give `columns` user=a,time=b" in message
    _, message = refused(put(tmp_path / "a.csv", "uid,time,lat,lng\n" + lines("{user},{t:%H:%M},{lat},{lon}\n")))
    assert "`columns` date=NAME" in message


def test_a_row_that_stands_where_names_should_is_not_shown(tmp_path):
    rows = "anna-77,home,monday\n" * 3 + "annb-78,work,friday\n" * 3
    for text in (rows, rows.replace("anna-77", "anna")):
        code, message = refused(put(tmp_path / "a.csv", text))

        assert code == "E_COLUMN"
        assert "columns seen: '#1', '#2', '#3'" in message
        assert "home" not in message

    # cut off after the first value, so that no row is like it
    code, message = refused(put(tmp_path / "a.csv", "anna-77,\n" + "anna-77,2013-04-15,4,0\n" * 5))
    assert (code, "anna" in message) == ("E_COLUMN", False)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("ann-7\nann-7,2013-04-15,0,0\nann-7,2013-04-15,1,0\nuid,date,slot,loc\n", "columns seen: '#1'"),
        ("uid,date46.5191,6.5668\nann,2013-04-15,46.5191,6.5668\n", "columns seen: 'uid', '#2', '#3'"),
    ],
)
def test_what_is_in_rows_is_no_name_of_a_column(tmp_path, text, seen):
    code, message = refused(put(tmp_path / "damaged.csv", text))
    assert code == "E_COLUMN"
    assert seen in message
    assert "ann" not in message
    assert "46.5" not in message


# days and months


@pytest.mark.parametrize(
    ("form", "shown"), [("%d/%m/%Y %H:%M", "/%Y %H:%M"), ("%d-%m-%y %I:%M:%S %p", "-%y %I:%M:%S %p")]
)
def test_days_that_could_be_months_are_asked_for_with_both_readings(tmp_path, form, shown):
    early = [(t.replace(month=4, day=3), lat, lon) for t, lat, lon in POINTS]
    path = put(tmp_path / "a.csv", HEAD + "".join(f"ann,{t.strftime(form)},{lat},{lon}\n" for t, lat, lon in early))
    code, message = refused(path, tz="UTC")
    mark = shown[0]

    assert code == "E_DATE"
    assert f'`date_format` "%d{mark}%m{shown}"' in message
    assert f'`date_format` "%m{mark}%d{shown}"' in message
    assert "3 April or March 4" in message
    assert str(read(path, tz="UTC", date_format=f"%d{mark}%m{shown}")[0].dates[0]) == "2013-04-03"
    assert str(read(path, tz="UTC", date_format=f"%m{mark}%d{shown}")[0].dates[0]) == "2013-03-04"


@pytest.mark.parametrize(("form", "first"), [("%m/%d/%Y %I:%M:%S %p", "month"), ("%d/%m/%Y %H:%M", "day")])
def test_days_that_follow_each_other_are_told_from_months(tmp_path, form, first):
    def dated(days):
        rows = [(t.replace(month=5, day=day), lat, lon) for day in days for t, lat, lon in POINTS]
        return HEAD + "".join(f"ann,{t.strftime(form)},{lat},{lon}\n" for t, lat, lon in rows)

    traces, prepared = read(put(tmp_path / "a.csv", dated([8, 9, 10])), tz="UTC")
    assert traces.dates.astype(str).tolist() == ["2013-05-08", "2013-05-09", "2013-05-10"]
    assert any(f"with the {first} first: so they follow each other" in note for note in prepared.notes)
    # two days, or days with a gap, could be months
    for days in ([8, 9], [8, 9, 11]):
        assert refused(put(tmp_path / "b.csv", dated(days)), tz="UTC")[0] == "E_DATE"


@pytest.mark.parametrize("form", ["%d.%m.%Y %H:%M", "%d.%m.%y %H:%M:%S"])
def test_dates_with_points_have_the_day_first_and_it_is_said(tmp_path, form):
    early = [(t.replace(month=4, day=3), lat, lon) for t, lat, lon in POINTS]
    path = put(tmp_path / "a.csv", HEAD + "".join(f"ann,{t.strftime(form)},{lat},{lon}\n" for t, lat, lon in early))
    traces, prepared = read(path, tz="UTC")

    assert str(traces.dates[0]) == "2013-04-03"
    assert any("03.04 is 3 April" in note for note in prepared.notes)
    late = [(t.replace(month=4, day=25), lat, lon) for t, lat, lon in POINTS]
    sure = put(tmp_path / "b.csv", HEAD + "".join(f"ann,{t.strftime(form)},{lat},{lon}\n" for t, lat, lon in late))
    assert not any("3 April" in note for note in read(sure, tz="UTC")[1].notes)


def test_one_day_above_twelve_tells_all_of_a_large_file(tmp_path, monkeypatch):
    from elsewhere.traces import formats
    from elsewhere.traces.formats import streams

    days = [
        dt.datetime(2013, m, d, h, 10 + k)
        for m in (3, 4, 5)
        for d in range(1, 12)
        for h in range(24)
        for k in (0, 20, 40)
    ]
    days[len(days) // 3] = dt.datetime(2013, 4, 25, 5)
    path = put(tmp_path / "a.csv", HEAD + "".join(f"ann,{t:%d/%m/%Y %H:%M},46.5,6.6\n" for t in days))
    monkeypatch.setattr(formats, "SMALL", 1000)
    monkeypatch.setattr(streams, "BLOCK", 8000)
    monkeypatch.setattr(streams, "PIECE", 2000)

    assert read(path)[0].dates[0] == np.datetime64("2013-03-01")


def test_dates_beside_clocks_take_the_format_of_dates_alone(tmp_path, expected):
    early = [(t.replace(month=4, day=3), lat, lon) for t, lat, lon in POINTS]
    form = "{user},{t:%d/%m/%Y},{t:%H:%M},{lat},{lon}\n"
    path = put(tmp_path / "a.csv", "uid,date,time,lat,lng\n" + lines(form, early))

    assert '`date_format` "%d/%m/%Y"' in refused(path, tz="UTC")[1]
    traces = ew.read_traces(path, tz="UTC", date_format="%d/%m/%Y")
    assert str(traces.dates[0]) == "2013-04-03"
    assert traces.r.tolist() == expected.r.tolist()


# what is refused, in one message


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (HEAD + lines(ISO).replace("46.5", "46,5"), "E_CSV", "decimal commas?"),
        (HEAD + lines('{user},{t:%Y-%m-%d %H:%M},"46,519,000.5",{lon}\n'), "E_NUMBER", "cannot be read"),
        (HEAD + lines("{user},{t:%G-W%V-%u},{lat},{lon}\n"), "E_DATE", "no readable time"),
        ("# nothing but\n# comments\n", "E_EMPTY", "comments"),
        (("uid,datetime,lat,lng\n" + lines(ISO)).encode("utf-16-le"), "E_ENCODING", "utf-16-le"),
    ],
    ids=["unquoted decimal commas", "thousands", "weeks", "comments", "UTF-16 without its mark"],
)
def test_what_cannot_be_read_says_why(tmp_path, content, code, words):
    found, message = refused(put(tmp_path / "a.csv", content))

    assert found == code
    assert words in message


# spreadsheets


def cell(value):
    if isinstance(value, dt.datetime):
        days = (value.replace(tzinfo=None) - dt.datetime(1899, 12, 30)) / dt.timedelta(days=1)
        return f'<c s="1"><v>{days!r}</v></c>'
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
    return f"<c><v>{value}</v></c>"


def workbook(*sheets, more=b""):
    """The bytes of an .xlsx file with these sheets, each a list of rows."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    numbers = range(1, len(sheets) + 1)
    listed = "".join(f'<sheet name="s{n}" sheetId="{n}" r:id="r{n}"/>' for n in numbers)
    related = "".join(
        f'<Relationship Id="r{n}" Type="{office}/worksheet" Target="worksheets/s{n}.xml"/>' for n in numbers
    )
    related += f'<Relationship Id="r0" Type="{office}/styles" Target="styles.xml"/>'
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="a" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">{related}</Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{main}"><cellXfs><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs>'
        "</styleSheet>",
    }
    for n, rows in zip(numbers, sheets, strict=True):
        inside = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
        files[f"xl/worksheets/s{n}.xml"] = f'<worksheet xmlns="{main}"><sheetData>{inside}</sheetData></worksheet>'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        if more:
            archive.writestr("xl/media/x", more)
    return out.getvalue()


ROWS = [["person id", "when", "latitude", "longitude"], *([7, t, lat, lon] for t, lat, lon in POINTS)]


def test_a_spreadsheet(tmp_path, expected):
    pytest.importorskip("python_calamine")
    traces, counted = read(
        put(tmp_path / "a.xlsx", workbook([["about this"]], ROWS)), columns={"user": "person id"}, tz="UTC"
    )

    assert traces.labels == ("7",)
    assert traces.r.tolist() == expected.r.tolist()
    assert traces.dates.astype(str).tolist() == ["2013-04-15"]
    assert counted.format == "excel"
    assert "sheet 2 was read, the other one was not" in counted.notes
    for user in ("ann", "bob"):
        put(tmp_path / "all" / f"{user}.xlsx", workbook([row[1:] for row in ROWS]))
    assert read(tmp_path / "all", tz="UTC")[0].labels == ("ann", "bob")


def test_a_spreadsheet_that_is_a_bomb_or_damaged_or_unreadable_here(tmp_path, monkeypatch):
    pytest.importorskip("python_calamine")
    bomb = put(tmp_path / "bomb.xlsx", workbook(ROWS, more=bytes(1 << 27)))
    damaged = put(tmp_path / "b.xlsx", workbook(ROWS)[:-300])

    assert refused(bomb)[0] == "E_TOO_LARGE"
    assert refused(damaged)[0] == "E_EXCEL"
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    code, message = refused(put(tmp_path / "a.xlsx", workbook(ROWS)))
    assert code == "E_EXTRA"
    assert "elsewhere[excel]" in message


def test_a_row_in_the_place_of_names_names_no_column_of_the_output(tmp_path):
    """A word such as "car" in the first row is a known name, so that row is taken for the names."""
    rows = [f"u{u},2024-03-05 {h:02}:05:00,48.2{u % 7}185,16.3{u % 5}349,car" for u in range(9) for h in range(24)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(rows) + "\n")
    told = []
    ew.read_traces(path, columns={"user": "#1", "time": "#2", "lat": "#3", "lon": "#4"}, report=told.append)
    assert told[0].columns == {}
    ew.read_traces(path, columns={"time": "#2", "lat": "#3", "lon": "#4"}, report=told.append)
    assert not any("u0" in note for note in told[1].notes)


class TestDiaries:
    """Visits whose begin and end are clock times beside a date."""

    ROWS = (("2024-03-11", "00:00", "08:10", "home"), ("2024-03-11", "08:40", "17:00", "office"))
    NIGHT = ("2024-03-11", "17:20", "07:00", "home")  # until the next morning

    def diary(self, folder, names, rows, **options):
        content = names + "\n" + "".join(f"{who},{','.join(row)}\n" for who in ("p1", "p2") for row in rows)
        return read(put(folder / "diary.csv", content), gaps="split", **options)

    @pytest.mark.parametrize(
        ("names", "columns"),
        [
            ("participant,date,start_time,end_time,place", None),
            ("person,day,from,to,place", None),
            ("Person,Tag,von,bis,Ort", None),
            ("user,datum,begin,ende,ort", None),
            ("user,date,check_in,check_out,place", None),
            ("user,date,start,end,activity", {"place": "activity"}),
            ("user,date,time,end_time,place", None),
            (
                "who,on,at,until,where",
                {"user": "who", "date": "on", "arrived": "at", "left": "until", "place": "where"},
            ),
            ("who,date,start_time,end_time,x", {"user": "who", "date": "date", "time": "start_time", "place": "x"}),
        ],
    )
    def test_are_visits_under_any_of_their_names(self, tmp_path, names, columns):
        traces, prepared = self.diary(tmp_path, names, (*self.ROWS, self.NIGHT), columns=columns)

        plain = "user,arrived,left,place"
        full = [
            ("2024-03-11 00:00", "2024-03-11 08:10", "home"),
            ("2024-03-11 08:40", "2024-03-11 17:00", "office"),
            ("2024-03-11 17:20", "2024-03-12 07:00", "home"),
        ]
        expected, _ = self.diary(tmp_path, plain, full)
        assert np.array_equal(traces.r, expected.r)
        assert list(traces.dates) == list(expected.dates)
        assert prepared.dropped == {}
        assert "date" not in prepared.columns

    def test_frames_of_days_and_clocks_are_visits_too(self, tmp_path):
        import pandas as pd

        rows = [(who, *row) for who in ("p1", "p2") for row in (*self.ROWS, self.NIGHT)]
        frame = pd.DataFrame(rows, columns=["Person", "Tag", "von", "bis", "Ort"])
        frame["Tag"] = pd.to_datetime(frame["Tag"])
        frame["von"] = [dt.time.fromisoformat(clock) for clock in frame["von"]]
        expected, _ = self.diary(tmp_path, "Person,Tag,von,bis,Ort", (*self.ROWS, self.NIGHT))

        assert np.array_equal(read(frame, gaps="split")[0].r, expected.r)
        frame.to_parquet(tmp_path / "diary.parquet")
        assert np.array_equal(read(tmp_path / "diary.parquet", gaps="split")[0].r, expected.r)

    def test_midnight_to_midnight_is_a_day(self, tmp_path):
        traces, _ = self.diary(tmp_path, "user,date,start,end,place", [("2024-03-11", "00:00", "00:00", "home")])

        assert traces.r.shape == (2, 72)
        assert (traces.r == 0).all()

    def test_a_day_beside_full_times_is_not_needed(self, tmp_path):
        rows = [("2024-03-11", "2024-03-11 00:00", "2024-03-11 23:59", "home")]
        _, prepared = self.diary(tmp_path, "user,date,started_at,finished_at,place", rows)

        assert prepared.columns == {"user": "user", "arrived": "started_at", "left": "finished_at", "place": "place"}

    def test_from_and_to_that_are_no_times_are_no_visits(self, tmp_path):
        content = "user,time,from,to,place\n" + "ann,2024-03-11 00:00,a,b,home\nann,2024-03-11 12:00,b,a,home\n"

        assert set(read(put(tmp_path / "a.csv", content))[1].columns) == {"user", "time", "place"}

    def test_a_clock_without_days_says_so(self, tmp_path):
        code, message = refused(
            put(tmp_path / "a.csv", "user,start_time,end_time,place\np1,09:00,10:00,home\np1,10:00,11:00,b\n")
        )

        assert code == "E_DATE"
        assert "'start_time' holds clock times without dates; give `columns` date=NAME" in message


class TestFirstLines:
    """What the first lines of a text tell: names, data, tabs, and bytes of another encoding."""

    def test_tabs_on_every_line_win_over_blanks_within_fields(self, tmp_path):
        form = "{user}\t4b00\tHome (my own)\t{lat}\t{west}\t-240\t{t:%a %b %d %H:%M:%S} +0000 {t:%Y}\n"
        traces, _ = read(put(tmp_path / "a.txt", lines(form)), columns={"user": "#1"})

        assert traces.U == 1
        assert traces.locations.has_coordinates

    def test_new_york_is_not_in_the_antarctic(self, tmp_path):
        content = "".join(
            f"n,2024-03-{d:02} {h:02}:00,{40.7123 + d / 900},{-73.9 - h / 900}\n" for d in (1, 2) for h in range(24)
        )
        traces, _ = read(put(tmp_path / "a.csv", content))

        assert 40 < traces.locations.lat.min() < traces.locations.lat.max() < 41

    @pytest.mark.parametrize("word", ["taxi", "car", "id"])
    def test_a_row_with_known_words_is_no_line_of_names(self, tmp_path, word):
        traces, prepared = read(
            put(tmp_path / "a.csv", lines("{user},{t:%Y-%m-%d %H:%M:%S},{lat},{west}," + word + "\n"))
        )

        assert prepared.rows == len(POINTS)
        assert prepared.columns == {}
        assert traces.U == 1

    def test_names_that_are_no_utf8_ask_for_the_encoding(self, tmp_path):
        content = "Nutzer,Zeit,Breite,L\u00e4nge\n" + lines(ISO)
        path = put(tmp_path / "a.csv", content.encode("cp1252"))
        code, message = refused(path)

        assert code == "E_COLUMN"
        assert "`encoding` cp1252" in message
        assert "`encoding` cp1252" in refused(path, columns={"lon": "L\u00e4nge"})[1]
        assert read(path, encoding="cp1252")[0].U == 1

    def test_one_column_of_numbers_is_no_position(self, tmp_path):
        _, message = refused(put(tmp_path / "a.csv", "a,b,temperature\n1,x,0.2727\n2,x,1.5378\n"))

        assert "lat=NAME,lon=NAME" in message

    def test_metres_of_a_map_are_told_what_to_become(self, tmp_path):
        content = "user,time,x,y\n" + lines("{user},{t:%Y-%m-%d %H:%M},451653.5,4643905.5\n")

        assert "EPSG:4326" in refused(put(tmp_path / "a.csv", content))[1]


def test_a_folder_of_fakes_names_its_file(tmp_path):
    put(tmp_path / "out" / "fakes.csv", makefiles.csv(POINTS))
    put(tmp_path / "out" / "manifest.json", '{"kind": "elsewhere pool"}')
    code, message = refused(tmp_path / "out")

    assert code == "E_FORMAT"
    assert "give fakes.csv in it" in message


def test_no_thread_of_arrow_holds_what_is_pythons(tmp_path, monkeypatch):
    # such a thread aborts the process if Python ends before it lets go
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    seen, memory, real, reader = [], [], arrow_csv.read_csv, pa.BufferReader

    def watched(file, *, read_options, parse_options, **options):
        seen.append((parse_options.invalid_row_handler is not None, read_options.use_threads))
        return real(file, read_options=read_options, parse_options=parse_options, **options)

    def opened(content):
        memory.append(content)
        return reader(content)

    monkeypatch.setattr(arrow_csv, "read_csv", watched)
    monkeypatch.setattr(pa, "BufferReader", opened)
    read(put(tmp_path / "a.csv", HEAD + lines(ISO)))
    read(put(tmp_path / "b.csv", HEAD + lines(ISO) * 4 + "a,b\n" + lines(ISO)), max_bad=0.1)

    assert set(seen) == {(False, True), (True, False)}
    # memory of `bytes` could not be written
    assert all(isinstance(content, pa.Buffer) and content.is_mutable for content in memory)


# trips, diaries, and what a message may guess


def trips(users=("ann", "bob"), every=15, points=80):
    """Trips as the taxis of Porto have them, 80 points each, one after the other; and the same as plain fixes."""
    head = "TRIP_ID,CALL_TYPE,TAXI_ID,TIMESTAMP,MISSING_DATA,POLYLINE\n"
    rows, fixes = [], ["uid,time,lat,lng\n"]
    for u, user in enumerate(users):
        for k in range(86_400 // (every * points)):
            start = 1_372_636_800 + k * every * points
            line = [(-8.61 + 0.0001 * j, 41.15 + 0.002 * (k % 24) + 0.01 * u) for j in range(points)]
            rows.append(f'{start}{u},A,{user},{start},False,"{[[round(x, 6), round(y, 6)] for x, y in line]}"\n')
            fixes += [f"{user},{start + every * j},{y:.6f},{x:.6f}\n" for j, (x, y) in enumerate(line)]
    return head + "".join(rows), "".join(fixes)


def test_lines_of_points_are_fixes_every_15_seconds(tmp_path):
    porto, plain = trips()
    got, told = read(put(tmp_path / "porto.csv", porto))
    expected, _ = read(put(tmp_path / "plain.csv", plain))

    assert np.array_equal(got.r, expected.r)
    assert got.locations == expected.locations
    assert any("a point every 15 s" in note for note in told.notes)
    # a trip without a point is one bad row
    empty = porto + '1,A,ann,1372636800,True,"[]"\n'
    got, told = read(put(tmp_path / "empty.csv", empty))
    assert np.array_equal(got.r, expected.r)
    assert told.dropped == {"E_NUMBER": 1}


def visits(form, points=POINTS):
    """One line per stay of 20 minutes; `form` may use t, end, what."""
    return "".join(
        form.format(t=t, end=t + dt.timedelta(minutes=19), what="home" if lat < 46.53 else "work")
        for t, lat, _ in points
    )


def test_a_diary_of_activities_needs_no_place(tmp_path):
    body = visits("ann,{t:%Y-%m-%d},{t:%H:%M},{end:%H:%M},{what}\n")
    named, _ = read(put(tmp_path / "named.csv", "person,date,start_time,end_time,place\n" + body))
    diary, told = read(put(tmp_path / "diary.csv", "person,date,start_time,end_time,activity\n" + body))
    assert np.array_equal(named.r, diary.r)
    assert diary.locations.names == named.locations.names
    assert "no column of places: 'activity' was read as the place" in told.notes
    # where anything could be a coordinate it is not guessed
    numbers = body.replace("home", "home,46.5191").replace("work", "work,46.5300")
    code, message = refused(put(tmp_path / "odd.csv", "person,date,start_time,end_time,activity,north\n" + numbers))
    assert code == "E_COLUMN"
    assert "place=NAME" in message  # two values may be anything


def test_a_departure_by_the_clock_is_on_the_day_of_its_arrival_or_the_next(tmp_path):
    head = "person,arrival,departure,place\n"
    full, _ = read(put(tmp_path / "full.csv", head + visits("ann,{t:%Y-%m-%d %H:%M},{end:%Y-%m-%d %H:%M},{what}\n")))
    clock, _ = read(put(tmp_path / "clock.csv", head + visits("ann,{t:%Y-%m-%d %H:%M},{end:%H:%M},{what}\n")))
    assert np.array_equal(full.r, clock.r)
    night = "bob,2024-03-04 22:00,07:00,home\nbob,2024-03-05 07:00,22:00,work\nbob,2024-03-05 22:00,,home\n"
    over, _ = read(put(tmp_path / "night.csv", head + night), min_coverage=0, max_gap=0)
    assert (over.r[1] == over.r[0, -1]).sum() == 21 + 1  # to seven o'clock, and the slot of the last arrival
    assert (over.r[1] >= 0).sum() == 66 + 1


def test_no_column_is_proposed_where_several_could_be_meant(tmp_path):
    _, message = refused(put(tmp_path / "ab.csv", "a,b\n1,2\n3,4\n"))
    assert "give `columns` user=NAME,time=NAME,lat=NAME,lon=NAME" in message
    body = "".join(f"u{i % 3},{46.5 + i / 1000:.4f},{6.6 + i / 1000:.4f},2024-03-04 {i:02d}:00\n" for i in range(24))
    _, message = refused(put(tmp_path / "one.csv", "wer,hoch,breit,als\n" + body))
    assert "give `columns` user=wer,time=als,lat=hoch,lon=breit (or lat=breit,lon=hoch)" in message


PLATES = "".join(f"Z{i % 4},c{i % 5},2024-03-04 {i:02d}:00,46.51{i % 3},6.6\n" for i in range(24))


@pytest.mark.parametrize(
    ("head", "body", "proposed"),
    [
        ("plate,cardholder,time,lat,lon", re.sub(r"Z\d", "Z0", PLATES), "user=cardholder"),
        ("asset_id,operator,time,lat,lon", re.sub(r"Z\d", "Z0", PLATES), "user=operator"),
        ("unit_no,squad,time,lat,lon", re.sub(r"Z\d,c", "Z0,", PLATES), "user=NAME"),  # or speeds
        ("plate,cardholder,time,lat,lon", PLATES, "user=NAME"),  # the car or its driver
        (
            "sample_id,trip_id,time,lat,lon",
            "".join(f"{i}{r}" for i, r in enumerate(PLATES.splitlines(True))),
            "user=trip_id",
        ),
    ],
)
def test_plates_and_assets_are_people_only_where_nothing_else_could_be(tmp_path, head, body, proposed):
    code, message = refused(put(tmp_path / "a.csv", f"{head}\n{body}"))
    assert code == "E_COLUMN"
    assert f"give `columns` {proposed}" in message


@pytest.mark.parametrize("name", ["plate", "Kennzeichen", "asset_id", "unit no", "ident", "tag_id"])
def test_plates_and_assets_are_people_where_nothing_else_could_be(tmp_path, name):
    rows = [f"Z{i % 4},{i % 5},2024-03-04 {i:02d}:00,46.51{i % 3},6.6\n" for i in range(24)]
    speeds, told = read(put(tmp_path / "a.csv", f"{name},speed,time,lat,lon\n{''.join(rows)}"), min_coverage=0)
    numbered = "".join(f"{i},{row}" for i, row in enumerate(rows))
    rows_numbered, _ = read(put(tmp_path / "b.csv", f"id,{name},speed,time,lat,lon\n{numbered}"), min_coverage=0)
    known, _ = read(put(tmp_path / "c.csv", f"{name},uid,time,lat,lon\n{''.join(rows)}"), min_coverage=0)

    assert speeds.labels == rows_numbered.labels == ("Z0", "Z1", "Z2", "Z3")
    assert f"column {name!r} was read as the user (`columns`)" in told.notes
    assert known.labels == tuple("01234")


def test_what_a_phone_measures_with_is_no_place(tmp_path):
    rows = "".join(f"u{i % 2},2024-03-04 {i // 2:02d}:00,{'abc'[i // 2 % 3]},{i / 7:.3f}\n" for i in range(48))
    code, message = refused(put(tmp_path / "a.csv", "user,time,sensor,value\n" + rows))
    assert (code, "no column for lat, lon" in message) == ("E_COLUMN", True)


@pytest.mark.parametrize("form", ["2024-03-0{u} 10:00", "2024-03-0{u} 1{half}:00"])
def test_a_time_that_every_row_of_a_person_repeats_is_not_when(tmp_path, form):
    rows = "".join(f"u{i % 4},46.51{i % 3},6.6,{form.format(u=1 + i % 4, half=i // 24)}\n" for i in range(48))
    code, message = refused(put(tmp_path / "a.csv", "user,lat,lon,account_created\n" + rows))
    assert code == "E_COLUMN"
    assert "no column for time" in message
    assert "give `columns` time=account_created" in message


def test_a_column_that_is_merely_left_over_is_not_proposed(tmp_path):
    head = "holder,when,line,kind of,type\n"
    body = "".join(f"{i % 9},2024-03-04 {i:02d}:00,L{i % 5},{'a' if i % 2 else 'b'},k{i % 2}\n" for i in range(24))
    _, message = refused(put(tmp_path / "a.csv", head + body))
    assert "give `columns` user=NAME,lat=NAME,lon=NAME" in message  # a holder or a line
    assert "place=NAME" in message  # a type of two values
    _, message = refused(put(tmp_path / "b.csv", "row,time,lat,lon\n" + lines("{t:%H}x{t:%M}y,{t},{lat},{lon}\n")))
    assert "user=NAME, or user=file if each file is one person" in message  # every row has a value of its own
    table = {"when": ["2024-03-04 10:00"] * 9, "lat": [46.519] * 9, "lon": [6.6] * 9}
    _, message = refused(table)
    assert "user=NAME" in message
    assert "file" not in message


def test_taps_of_cards_at_the_stops_of_a_timetable(tmp_path):
    stops = "".join(f"S{k},Stop {k},{45.7 + k / 100:.2f},4.8{k}\n" for k in range(6))
    put(tmp_path / "all" / "stops.txt", "stop_id,stop_name,stop_lat,stop_lon\n" + stops)
    taps = "".join(
        f"{c},2024-03-04 {h:02d}:10,L1,S{(c + h) % 6},{'IN' if h % 2 else 'OUT'}\n" for c in (7, 8) for h in range(24)
    )
    put(tmp_path / "all" / "taps.csv", "CARD_NO,when,LINE,STOP_CODE,TYPE\n" + taps)
    traces, told = read(tmp_path / "all")
    assert traces.labels == ("7", "8")
    assert traces.R == 6
    assert traces.locations.lat is not None
    assert told.columns["place"] == "STOP_CODE"
    for name in ("handle", "hash_id", "Num\u00e9ro"):
        assert find_roles((name, "when", "lat", "lon"), None)["user"] == name


def test_a_proposed_column_with_blanks_can_be_typed(tmp_path):
    body = "".join(f"u{i % 3},2024-03-04 {i:02d}:00,{46.5 + i / 1000:.4f},{6.6 + i / 1000:.4f}\n" for i in range(24))
    _, message = refused(put(tmp_path / "a.csv", "Whose day,Day and clock,Up the map,Along it\n" + body))
    typed = message.partition("give `columns` ")[2]

    assert shlex.split(typed)[0] == "user=Whose day,time=Day and clock,lat=Up the map,lon=Along it"
    assert "(or 'lat=Along it,lon=Up the map')" in typed


@pytest.mark.parametrize("names", ["easting,northing", "x,y", "E,N"])
@pytest.mark.parametrize("form", ["{e},{n}", "{e}.5,{n}.25"])
def test_metres_of_a_projection_are_neither_degrees_nor_cells(tmp_path, names, form):
    rows = "".join(f"u{i % 3},2024-03-04 {i:02d}:00,{form.format(e=500_000 + i, n=5_150_000 + i)}\n" for i in range(24))
    code, message = refused(put(tmp_path / "a.csv", f"uid,time,{names}\n{rows}"))

    assert code == ("E_SWAPPED" if names == "x,y" else "E_COLUMN")
    assert ("metres of a map? Convert them" in message) == (names != "E,N" or "." in form)
    assert names == "x,y" or "lat=NAME,lon=NAME" in message


@pytest.mark.parametrize("name", ["door", "AP", "access point", "room", "area"])
def test_doors_and_rooms_are_places_where_nothing_else_is(tmp_path, name):
    rows = [(f"u{i % 2}", f"2024-03-04 {i // 2:02d}:00", f"D{i // 2 % 5}") for i in range(48)]
    text = "".join(f"{','.join(row)}\n" for row in rows)
    traces, told = read(put(tmp_path / "a.csv", f"uid,time,{name}\n{text}"), max_gap="1h")
    with_points = "".join(f"{','.join(row)},46.5{row[2][1]},6.6\n" for row in rows)
    fixes, _ = read(put(tmp_path / "b.csv", f"uid,time,{name},lat,lon\n{with_points}"), max_gap="1h")

    assert traces.locations.names == tuple(f"D{i}" for i in range(5))
    assert f"column {name!r} was read as the place (`columns`)" in told.notes
    assert fixes.locations.names is None


def test_the_clock_is_that_of_given_places(tmp_path):
    rows = "".join(f"u{i % 2},2024-03-04 {i // 2:02d}:00,{i // 2 % 3}\n" for i in range(48))
    places = put(tmp_path / "p.csv", "id,lat,lon\n0,46.51,6.6\n1,46.52,6.6\n2,46.53,6.6\n")
    traces, told = read(put(tmp_path / "a.csv", f"uid,time,place\n{rows}"), locations=places)

    assert traces.tz == "Europe/Zurich"
    assert any("of Europe/Zurich, where the coordinates lie" in note for note in told.notes)


@pytest.mark.parametrize(
    ("lat", "lon", "said"),
    [
        (48.85, 2.35, False),  # Paris
        (2.35, 48.85, True),  # exchanged: off Somalia
        (-74.0, 40.7, True),  # New York exchanged: in Antarctica
        (40.0, -40.0, False),  # ships in the Atlantic, either way
        (46.5, 6.6, False),  # Lausanne
        (6.6, 46.5, False),  # exchanged: in Ethiopia, where people live too
    ],
)
def test_positions_at_sea_that_would_be_on_land_if_exchanged_are_said(tmp_path, lat, lon, said):
    def told(head, form, **options):
        rows = "".join(
            form.format(f"u{i % 2},2024-03-04 {i // 2:02d}:00", lat=lat, lon=f"{lon + i / 1000:.3f}") for i in range(48)
        )
        notes = read(put(tmp_path / "a.csv", f"{head}\n{rows}"), **options)[1].notes
        return [note for note in notes if "most positions lie at sea or in Antarctica" in note]

    form, pair = "{},{lat},{lon}\n", '{},"{lat},{lon}"\n'
    assert len(told("uid,time,lat,lon", form)) == said
    for order, points in (("latitude", pair), ("longitude", "{},POINT({lon} {lat})\n")):
        notes = told("uid,time,where", points, tz="UTC")
        assert len(notes) == said
        assert all(f"column 'where' is read with the {order} first" in note for note in notes)
    # ships are at sea; and who says which is which, or where, is believed
    for name in ("mmsi", "Vessel ID", "imo"):
        assert not told(f"{name},time,lat,lon", form, columns={"user": name})
    assert not told("uid,time,lat,lon", form, columns={"lat": "lat", "lon": "lon"})
    assert not told("uid,time,lat,lon", form, box=(lat - 1, lon - 1, lat + 1, lon + 1))


def test_one_column_is_no_columns(tmp_path):
    rows = "".join(f"u{i % 2},2024-03-04 {i // 2:02d}:00,46.5,6.{i // 2 % 5},1\n" for i in range(48))
    _, told = read(put(tmp_path / "a.csv", f"uid,time,lat,lon,odd\n{rows}"))

    assert "1 column was not read: 'odd'" in told.notes


TRIPS = {
    "areas": (
        "Trip ID,Taxi ID,Trip Start Timestamp,Trip End Timestamp,Trip Miles,Pickup Census Tract,Pickup Community Area,"
        "Dropoff Community Area\n",
        "{n},{user},{a:%Y-%m-%d %H:%M:%S},{b:%Y-%m-%d %H:%M:%S},1.2,,{i},{j}\n",
        ("place",),
    ),
    "taxis": (
        "trip_id,driver_id,pickup_datetime,dropoff_datetime,pickup_latitude,pickup_longitude,dropoff_latitude,"
        "dropoff_longitude,fare\n",
        "{n},{user},{a:%Y-%m-%d %H:%M:%S},{b:%Y-%m-%d %H:%M:%S},{p[0]},{p[1]},{q[0]},{q[1]},9.5\n",
        ("lat", "lng"),
    ),
    "bicycles": (
        "tripduration,starttime,stoptime,start station id,start station latitude,start station longitude,"
        "end station id,end station latitude,end station longitude,bikeid,gender\n",
        "720,{a:%Y-%m-%d %H:%M:%S},{b:%Y-%m-%d %H:%M:%S},{i},{p[0]},{p[1]},{j},{q[0]},{q[1]},{user},1\n",
        ("lat", "lng", "place"),
    ),
    "dates with times": (
        "Duration,Start date,End date,Start station number,Start station,End station number,End station,Bike number\n",
        "720,{a:%Y-%m-%d %H:%M:%S},{b:%Y-%m-%d %H:%M:%S},{i}1,{i},{j}1,{j},{user}\n",
        ("place",),
    ),
    "dates with times, and clock times of the end": (
        "Start date,End time,Start station,End station,Bike number\n",
        "{a:%b %d %Y %I:%M:%S %p},{b:%H:%M},{i},{j},{user}\n",
        ("place",),
    ),
    "zones": (
        "medallion,tpep_pickup_datetime,tpep_dropoff_datetime,PULocationID,DOLocationID,trip_distance\n",
        "{user},{a:%Y-%m-%d %H:%M:%S},{b:%Y-%m-%d %H:%M:%S},{i},{j},2.1\n",
        ("place",),
    ),
    "rides": (
        "user_id,started_at,ended_at,start_lat,start_lng,end_lat,end_lng\n",
        "{user},{a:%Y-%m-%dT%H:%M:%S},{b:%Y-%m-%dT%H:%M:%S},{p[0]},{p[1]},{q[0]},{q[1]}\n",
        ("lat", "lng"),
    ),
}


@pytest.mark.parametrize("kind", TRIPS)
def test_a_trip_is_where_it_begins_and_where_it_ends(tmp_path, kind):
    head, form, where = TRIPS[kind]
    rng = np.random.default_rng(6)
    spot = [(round(40.7 + 0.01 * k, 4), round(-74 + 0.01 * k, 4)) for k in range(6)]
    rows, fixes = [head], [",".join(["uid", "time", *where]) + "\n"]
    for user in ("ann", "bob"):
        at = 0
        for hour in range(24):
            a = dt.datetime(2024, 3, 4, hour, 5)
            b, to = a + dt.timedelta(minutes=25), int(rng.integers(6))
            rows.append(form.format(n=hour, user=user, a=a, b=b, p=spot[at], q=spot[to], i=at, j=to))
            for when, k in ((a, at), (b, to)):
                known = {"lat": spot[k][0], "lng": spot[k][1], "place": k}
                fixes.append(",".join([user, str(when), *(str(known[name]) for name in where)]) + "\n")
            at = to
    got, told = read(put(tmp_path / "trips.csv", "".join(rows)))
    expected, _ = read(put(tmp_path / "fixes.csv", "".join(fixes)))

    assert np.array_equal(got.r, expected.r)
    assert got.locations == expected.locations
    assert any("each row is a trip" in note for note in told.notes)
    assert told.rows == 2 * 48
    assert {"user", "time", "end_time"} <= told.columns.keys()  # fakes are written as trips
    assert ("place" in where) == ("end_place" in told.columns)


def test_a_clock_time_before_the_start_of_a_trip_is_on_the_next_day(tmp_path):
    head = "Start date,{},Start station,End station,Bike number\n"
    rows = [
        (f"2024-03-0{d} {h}", f"2024-03-0{d + (h > '22')} {e}")
        for d in (4, 5)
        for h, e in (("08:10", "09:30"), ("22:50", "00:10"))
    ]
    whole = "".join(f"{a},{b},{a[-2:]},{b[-2:]},ann\n" for a, b in rows)
    clocks = "".join(f"{a},{b[-5:]},{a[-2:]},{b[-2:]},ann\n" for a, b in rows)
    expected, _ = read(put(tmp_path / "a.csv", head.format("End date") + whole), max_gap="24h", min_coverage=0)
    got, told = read(put(tmp_path / "b.csv", head.format("End time") + clocks), max_gap="24h", min_coverage=0)

    assert np.array_equal(got.r, expected.r)
    assert got.dates.tolist() == expected.dates.tolist()
    assert not told.dropped


LENGTHS = {"duration_s": 1, "tripduration": 1, "Trip Duration (min)": 60, "duration": 60}


@pytest.mark.parametrize("name", LENGTHS)
def test_trips_may_say_how_long_they_last(tmp_path, name):
    head = "rider_id,start_time,{},start_lat,start_lon,end_lat,end_lon\n"
    rows = [
        (user, dt.datetime(2024, 3, 4, hour, 5), 17 + hour, 40.7 + hour % 3 / 100, 40.7 + (hour + 1) % 3 / 100)
        for user in ("ann", "bob")
        for hour in range(24)
    ]
    ends = "".join(f"{u},{t},{t + dt.timedelta(minutes=n)},{a},-74,{b},-74\n" for u, t, n, a, b in rows)
    lasting = "".join(f"{u},{t},{60 * n // LENGTHS[name]},{a},-74,{b},-74\n" for u, t, n, a, b in rows)
    expected, _ = read(put(tmp_path / "ends.csv", head.format("end_time") + ends))
    got, told = read(put(tmp_path / "lasting.csv", head.format(name) + lasting))

    assert np.array_equal(got.r, expected.r)
    unit = "seconds" if LENGTHS[name] == 1 else "minutes"
    assert any(note.startswith("a trip ends") and note.endswith(unit) for note in told.notes)
    assert told.columns["end_time"] == "end_time"  # fakes are written as trips, with a time at both ends
    bad = lasting.replace(f",{60 * 17 // LENGTHS[name]},", ",-5,").replace(f",{60 * 18 // LENGTHS[name]},", ",,")
    _, told = read(put(tmp_path / "bad.csv", head.format(name) + bad), max_bad=0.5)
    assert told.dropped == {"E_DATE": 4}


@pytest.mark.parametrize(
    "names",
    [
        "household_id,person_no,date,dep_time,arr_time,orig_zone,dest_zone,purpose\n",
        "HHID,PERNO,TRAVDATE,DEP_HHMM,ARR_HHMM,O_ZONE,D_ZONE,PURPOSE\n",
        "HOUSEID,PERSONID,TRAVDATE,STRTTIME,ENDTIME,ORIG_ZONE,DEST_ZONE,TRIPPURP\n",
    ],
)
def test_people_who_are_numbered_within_their_household(tmp_path, names):
    """As travel surveys have them: person 1 of one household is not person 1 of the next."""
    row = "{},{},2024-03-05,07{}0,08{}0,{},{},work\n"
    who = [(h, p) for h in (10, 11) for p in (1, 2)]
    rows = [row.format(h, p, p, p, f"Z{h}", f"Z{p}") for h, p in who] + [row.format("", 1, 1, 1, "Z1", "Z2")]

    got, told = read(put(tmp_path / "survey.csv", names + "".join(rows)), max_bad=0.5)

    assert list(got.users) == ["10 1", "10 2", "11 1", "11 2"]
    assert told.dropped == {"E_USER": 2}  # both ends of a trip of nobody's household
    assert any(note.startswith("people are numbered within their household") for note in told.notes)
    ew.write_traces(got, tmp_path / "out.csv", ids=list("abcd"), columns=told.columns, out_as="trips")
    first = (tmp_path / "out.csv").read_text().splitlines()[:2]
    assert first[0] == names[: names.rindex(",")]  # why somebody travels is no kind of place
    assert first[1].startswith("a,a,2024-03-05,")
    lines_of = "".join(
        f"{h},{p},2024-03-04 {t:02d}:00,Z{t % 3}\n" for h, p in (("1 2", "3"), ("1", "2 3")) for t in range(24)
    )
    traces, _ = read(put(tmp_path / "blanks.csv", "household_id,person_no,time,zone\n" + lines_of))
    assert traces.U == 2


def test_a_trip_needs_an_end_time(tmp_path):
    text = "rider_id,start_time,start_lat,start_lon,end_lat,end_lon\nann,2024-03-04 10:00,46.519,6.6,46.52,6.7\n"
    code, message = refused(put(tmp_path / "a.csv", text))
    assert code == "E_COLUMN"
    assert "a trip needs an end time" in message
    assert "time=start_time,end_time=NAME,lat=start_lat,lon=start_lon,end_lat=end_lat,end_lon=end_lon" in message
    code, _ = refused(put(tmp_path / "gtfs.csv", text.replace("end_", "stop_")))
    assert code == "E_COLUMN"  # the place of the end is not that of the start
    given = {"lat": "start_lat", "lon": "start_lon", "end_lat": "end_lat", "end_lon": "end_lon"}
    code, message = refused(tmp_path / "a.csv", columns=given)
    assert code == "E_PARAM"
    assert "a trip needs an end time: end_time=NAME" in message


def test_significant_places_of_a_phone_are_visits(tmp_path):
    head = "Z_PK,Latitude,Longitude,Horizontal Uncertainty,Entry Date,Exit Date,Confidence\n"
    same = "lat,lng,arrived,left\n"
    for u in range(2):
        stay = [
            (k, 40.7 + 0.01 * (k + u), f"2024-03-04 {k:02d}:00:00 +0000", f"2024-03-04 {k:02d}:50:00 +0000")
            for k in range(24)
        ]
        body = "".join(f"{k},{lat:.4f},-74.1,35.2,{a},{b},1.0\n" for k, lat, a, b in stay)
        put(tmp_path / "phones" / f"phone{u}.csv", head + body)
        put(tmp_path / "plain" / f"phone{u}.csv", same + "".join(f"{lat:.4f},-74.1,{a},{b}\n" for _, lat, a, b in stay))
    got, expected = read(tmp_path / "phones")[0], read(tmp_path / "plain")[0]
    assert got.U == 2
    assert np.array_equal(got.r, expected.r)


@pytest.mark.parametrize("whole_folder", [False, True])
def test_calls_find_the_table_of_towers_beside_them(tmp_path, whole_folder):
    rng = np.random.default_rng(2)
    calls = "".join(
        f"{user},{rng.integers(99)},2024-03-04 {hour:02d}:{rng.integers(60):02d}:00,60,VOICE,T{rng.integers(5)}\n"
        for user in ("ann", "bob")
        for hour in range(24)
    )
    path = put(tmp_path / "calls.csv", "caller_id,callee_id,call_start,duration_s,type,cell_id\n" + calls)
    alone, _ = read(path)
    towers = "cell_id,latitude,longitude,azimuth\n" + "".join(
        f"T{k},{40.7 + 0.01 * k:.2f},-74.0,120\n" for k in range(7)
    )
    put(tmp_path / "towers.csv", towers)
    got, told = read(tmp_path if whole_folder else path)

    assert np.array_equal(got.r, alone.r)  # the numbers of names in order
    assert got.locations.lat[:5] == pytest.approx([40.7, 40.71, 40.72, 40.73, 40.74])
    assert "places are where towers.csv says" in told.notes
    # a table of other towers is not it
    put(tmp_path / "towers.csv", towers.replace("T3", "X3"))
    assert not read(path)[0].locations.has_coordinates


def test_cells_of_a_grid_by_day_and_slot_come_out_as_they_came_in(tmp_path):
    # as in YJMob100K: day and half hour are counted, and a cell has two whole numbers
    rng = np.random.default_rng(3)
    rows = [(u, d, t, 60 + u, 100 + int(rng.integers(2))) for u in (7, 8) for d in (0, 1, 5) for t in range(48)]
    file = put(tmp_path / "grid.csv", "uid,d,t,x,y\n" + "".join("{},{},{},{},{}\n".format(*row) for row in rows))
    traces, counted = read(file)

    assert (traces.r.shape, traces.U, traces.step_minutes) == ((6, 48), 2, 30)
    where = traces.locations
    assert [(where.xy[p, 0], where.xy[p, 1]) for p in traces.r.ravel()] == [(x, y) for *_, x, y in rows]
    assert where.distance([0], [1])[0] == 1.0  # a cell is taken to be one kilometre wide
    assert any("cells of a grid" in note for note in counted.notes)
    assert dict(counted.columns) == {"user": "uid", "trace": "d", "slot": "t", "x": "x", "y": "y"}
    ew.write_traces(traces, tmp_path / "again.csv", columns=counted.columns)
    again = (tmp_path / "again.csv").read_text().splitlines()
    assert again[0] == "uid,d,t,x,y"
    assert [line.split(",")[2:] for line in again[1:]] == [[str(v) for v in row[2:]] for row in rows]


def test_cells_of_a_grid_beside_times_and_by_other_names(tmp_path):
    text = "who,datetime,col,row\n" + "".join(
        f"a,2024-03-0{1 + t // 72} {t // 3 % 24:02}:{t % 3 * 20:02}:00,{t % 5},9\n" for t in range(144)
    )
    traces, _ = read(put(tmp_path / "a.csv", text), columns={"user": "who", "x": "col", "y": "row"}, tz="UTC")

    assert traces.r.shape == (2, 72)
    assert traces.locations.xy[traces.r[0, :6], 0].tolist() == [0, 1, 2, 3, 4, 0]


def test_x_and_y_of_decimals_are_degrees(tmp_path, expected):
    text = "uid,datetime,y,x\n" + lines(ISO)
    traces, _ = read(put(tmp_path / "a.csv", text), tz="UTC")

    assert np.array_equal(traces.r, expected.r)


def test_what_recurs_beside_who_and_when_is_the_place(tmp_path):
    # as in calls without names of columns: user, time, antenna
    text = "".join(
        f"{u}\t2013-01-07 {t // 3:02}:{t % 3 * 20:02}:00\t{700 + (t // 9 + u) % 4}\n" for u in (5, 6) for t in range(72)
    )
    traces, counted = read(put(tmp_path / "calls.tsv", text), tz="UTC")

    assert (traces.U, len(np.unique(traces.r))) == (2, 4)
    assert any("place=#3" in note for note in counted.notes)


@pytest.mark.parametrize("tz", [None, "UTC"])
def test_points_with_the_latitude_first_are_told_by_longitudes_beyond_90(tmp_path, tz):
    form = "{user};{t:%Y-%m-%d %H:%M:%S};POINT(here)\n"
    plain, _ = read(put(tmp_path / "a.txt", lines(form.replace("here", "{west:.4f} {lat}"))), tz=tz)
    traces, told = read(put(tmp_path / "b.txt", lines(form.replace("here", "{lat} {west:.4f}"))), tz=tz)

    assert np.array_equal(traces.r, plain.r)
    assert np.allclose(traces.locations.points(), plain.locations.points())
    assert told.form["point"] == "POINT({lat} {lon})"
    assert any("latitude first: only so are latitudes within 90" in note for note in told.notes)
    # columns of their own stay refused: names are wrong then
    swapped = "uid,time,lat,lon\n" + lines("{user},{t:%Y-%m-%d %H:%M:%S},{west:.4f},{lat}\n")
    assert refused(put(tmp_path / "c.csv", swapped))[0] == "E_SWAPPED"


@pytest.mark.parametrize(("bad", "code"), [(1, None), (6, "E_SWAPPED")])
def test_a_few_latitudes_beyond_90_turn_no_points(tmp_path, bad, code):
    rows = [
        f"u{i % 2};2024-03-04 {i // 2 // 6:02d}:{i // 2 % 6}0:00;POINT(2.35 {'1' if i < bad else ''}48.85)\n"
        for i in range(240)
    ]
    path = put(tmp_path / "a.txt", "".join(rows))
    if code is not None:
        assert refused(path, tz="UTC")[0] == code
        return
    traces, told = read(path, tz="UTC")
    assert np.allclose((traces.locations.lat, traces.locations.lon), [[48.85], [2.35]], atol=0.01)
    assert told.dropped == {"E_OUTSIDE": 1}


@pytest.mark.parametrize("west", [-95.37, -87.6])  # Houston; Houston and Chicago, of which a half could be latitudes
def test_the_order_of_points_that_is_said_is_the_one_in_use(tmp_path, west):
    rows = "".join(
        f'u{i % 2},2024-03-04 {i // 2:02d}:00:00,"{west if i // 2 % 2 else -95.37},{30 + i // 2 % 5}.76"\n'
        for i in range(48)
    )
    traces, told = read(put(tmp_path / "a.csv", "uid,time,latlng\n" + rows), tz="UTC")
    assert traces.locations.lat.min() > 29
    assert told.form["point"] == "{lon},{lat}"
    assert any("'latlng' is read with the longitude first: only so are latitudes" in note for note in told.notes)


def test_lists_of_points_with_the_latitude_first(tmp_path):
    def polylines(form):
        points = [[(45.5 + k / 1000, -122.6 - h / 1000) for k in range(3)] for h in range(24)]
        return "uid,time,polyline\n" + "".join(
            f'ann,2024-03-04 {h:02d}:00,"[{",".join(form.format(*p) for p in line)}]"\n'
            for h, line in enumerate(points)
        )

    plain, _ = read(put(tmp_path / "a.csv", polylines("[{1:.4f},{0:.4f}]")), tz="UTC")
    traces, _ = read(put(tmp_path / "b.csv", polylines("[{0:.4f},{1:.4f}]")), tz="UTC")
    assert np.array_equal(traces.r, plain.r)
    assert np.allclose(traces.locations.points(), plain.locations.points())


def test_points_of_well_known_text_need_no_name(tmp_path, expected):
    text = lines("{user};{t:%Y-%m-%d %H:%M:%S}.739166+00;POINT({lon} {lat})\n")
    traces, _ = read(put(tmp_path / "a.txt", text), tz="UTC")

    assert np.array_equal(traces.r, expected.r)


def test_x_and_y_that_are_no_whole_numbers_are_no_cells(tmp_path):
    text = "uid,d,t,e,n\n" + "".join(f"a,0,{t},{5e5 + t / 3},{5e6 + t / 7}\n" for t in range(48))
    code, message = refused(put(tmp_path / "a.csv", text), columns={"slot": "t", "x": "e", "y": "n"})

    assert code == "E_NUMBER"
    assert "EPSG:4326" in message


def test_a_city_at_a_pole_is_asked_about(tmp_path):
    text = HEAD + lines("{user},{t:%Y-%m-%d %H:%M:%S},-87.6,41.8\n")
    _, counted = read(put(tmp_path / "a.csv", text), tz="UTC")

    assert any("of a pole: are latitude and longitude swapped?" in note for note in counted.notes)


def test_one_user_in_all_files_is_said(tmp_path):
    # a column of phones' models, alike in all files
    for name in ("ann", "bob"):
        put(tmp_path / "phones" / f"{name}.csv", "device,time,lat,lon\n" + lines(ISO, user="iPhone4"))
    traces, counted = read(tmp_path / "phones", tz="UTC")

    assert traces.U == 1
    assert any("names one user in all files" in note and "user=file" in note for note in counted.notes)
    traces, counted = read(tmp_path / "phones", tz="UTC", columns={"user": "file"})
    assert traces.U == 2
    assert not any("one user in all files" in note for note in counted.notes)


def test_coordinates_of_venues_and_badges_are_known_by_name():
    assert find_roles(("user_id", "venue_id", "utc_time", "venue_lat", "venue_lng"), None).keys() >= {
        "lat",
        "lon",
        "place",
    }
    assert find_roles(("Badge", "Time", "Location"), None)["user"] == "Badge"


# shapes of public data sets


def test_lines_of_a_title_before_the_names_are_not_read(tmp_path, expected):
    title = "Export of the study 2013\ncreated 2013-06-01;by a program\n\n"
    for head in (title, "Mobility study, Lausanne\n", "a,b\n\n", "Report;;;;\n"):
        traces, counted = read(put(tmp_path / "a.csv", head + HEAD + lines(ISO)), tz="UTC")
        assert traces.r.tolist() == expected.r.tolist()
        assert any("a title was not read" in note for note in counted.notes)
    # a table whose rows are as wide as its first line has no title, whatever stands in it
    code, message = refused(put(tmp_path / "b.csv", "a,b,c,d\n" + HEAD + lines(ISO)))
    assert code == "E_COLUMN"
    assert "columns seen: 'a', 'b', 'c', 'd'" in message


def test_a_title_in_a_spreadsheet(tmp_path, expected):
    pytest.importorskip("python_calamine")
    rows = [["Export of the study"], ["created", "2013-06-01"], [], ["uid", "datetime", "lat", "lng", "remark"]]
    rows += [["ann", t, lat, lon, ""] for t, lat, lon in POINTS]
    traces, counted = read(put(tmp_path / "a.xlsx", workbook(rows)), tz="UTC")
    assert traces.r.tolist() == expected.r.tolist()
    assert any("a title was not read: 3 lines" in note for note in counted.notes)


def test_any_table_beside_that_has_all_ids_tells_where_places_are(tmp_path):
    spot = {(lat, lon): f"S{i}" for i, (lat, lon) in enumerate(sorted({p[1:] for p in POINTS}))}
    calls = "".join(f"{u},{t:%Y-%m-%d %H:%M:%S},{spot[lat, lon]}\n" for u in (3, 7) for t, lat, lon in POINTS)
    put(tmp_path / "d4d" / "SET2_P01.CSV", calls)
    sites = "site_id,arr_id,lon,lat\n" + "".join(f"{name},1,{lon},{lat}\n" for (lat, lon), name in spot.items())
    put(tmp_path / "d4d" / "SITE_ARR_LONLAT.CSV", sites)
    put(tmp_path / "d4d" / "A_LONLAT.CSV", sites.replace("S0", "S9"))  # not of these calls
    traces, counted = read(tmp_path / "d4d" / "SET2_P01.CSV", tz="UTC")
    assert sorted(traces.locations.lat) == sorted(lat for lat, _ in spot)
    assert "places are where SITE_ARR_LONLAT.CSV says" in counted.notes


@pytest.mark.parametrize(
    ("name", "head", "taken"),
    [
        ("participants.csv", "participant_id,lat,lon", False),  # where people live
        ("homes.csv", "id,lat,lon", False),
        ("members.csv", "user_id,site_id,lat,lon", False),
        ("towers.csv", "id,lat,lon", True),
        ("list.csv", "site_id,lat,lon", True),
    ],
)
def test_a_table_of_people_beside_is_no_map(tmp_path, name, head, taken):
    calls = "".join(f"u{k % 3},2024-03-04 {k:02d}:00:00,{k % 9 + 1}\n" for k in range(24))
    path = put(tmp_path / "calls.csv", "uid,datetime,place\n" + calls)
    both = "user_id,site_id" in head
    rows = "".join(f"{k},{f'{k},' if both else ''}{40.7 + 0.01 * k:.2f},-74.0\n" for k in range(1, 31))
    put(tmp_path / name, f"{head}\n{rows}")
    assert read(path)[0].locations.has_coordinates == taken


def test_files_of_times_and_access_points(tmp_path, expected):
    for user in ("00aabb", "11ccdd"):
        text = "".join(f"{int(t.timestamp())}\tBldg{round(lat * 1e4) % 97}AP1\n" for t, lat, _ in POINTS)
        put(tmp_path / "syslog" / f"{user}.mv", text)
    traces, counted = read(tmp_path / "syslog", tz="UTC")
    assert traces.labels == ("00aabb", "11ccdd")
    assert traces.R == expected.R
    assert any("user=the file's name, place=#2" in note for note in counted.notes)


def test_an_access_point_and_the_address_of_a_device(tmp_path):
    form = "{t:%Y-%m-%d %H:%M:%S},{user},B{lat}-AP,-60\n"
    traces, counted = read(put(tmp_path / "a.csv", "timestamp,client_mac,ap_name,rssi\n" + lines(form)))
    assert traces.labels == ("ann",)
    assert traces.R == 2
    assert any("'ap_name' was read as the place" in note for note in counted.notes)


ENDS = "{user},{t:%Y-%m-%d %H:%M:%S},{lon},{lat},{t:%Y-%m-%d %H:%M:%S},{lon},{lat}\n"
OTHER_ENDS = {
    "BerlinMOD": "Moid,Tstart,Xstart,Ystart,Tend,Xend,Yend\n" + lines(ENDS),
    "a smart card": "CARD_ID,TAP_IN_TIME,TAP_IN_LON,TAP_IN_LAT,TAP_OUT_TIME,TAP_OUT_LON,TAP_OUT_LAT\n" + lines(ENDS),
    "entries and exits": "card number,entry time,entry lon,entry lat,exit time,exit lon,exit lat\n" + lines(ENDS),
}


@pytest.mark.parametrize("what", OTHER_ENDS)
def test_ends_of_trips_under_other_names(tmp_path, expected, what):
    traces, counted = read(put(tmp_path / "a.csv", OTHER_ENDS[what]), tz="UTC")
    assert traces.labels == ("ann",)
    assert traces.r.tolist() == expected.r.tolist()
    assert any("each row is a trip" in note for note in counted.notes)


def test_trips_of_nobody_are_refused_with_the_reason(tmp_path):
    head = "ride_id,rideable_type,started_at,start_lng,start_lat,ended_at,end_lng,end_lat,member_casual\n"
    form = "{unix:X},classic,{t:%Y-%m-%d %H:%M:%S},{lon},{lat},{t:%Y-%m-%d %H:%M:%S},{lon},{lat},member\n"
    code, message = refused(put(tmp_path / "a.csv", head + lines(form)))
    assert code == "E_COLUMN"
    assert "no column tells who made it" in message
    assert "user=NAME" in message
    assert "user=ride" not in message


@pytest.mark.parametrize("ids", [False, True])
def test_a_matrix_of_cells_without_names(tmp_path, ids):
    rng = np.random.default_rng(3)
    cells = rng.integers(0, 9, (5, 48))
    text = "".join((f"p{i}," if ids else "") + ",".join(map(str, row)) + "\n" for i, row in enumerate(cells))
    traces, counted = read(put(tmp_path / "a.csv", text))
    assert traces.labels == (tuple(f"p{i}" for i in range(5)) if ids else tuple("12345"))
    assert traces.step_minutes == 30
    assert traces.r.tolist() == cells.tolist()
    assert any("48 columns without names were read as its slots" in note for note in counted.notes)
    _, message = refused(put(tmp_path / "b.csv", "".join(",".join(map(str, row[:41])) + "\n" for row in cells)))
    assert "columns seen: #1 to #41 whole numbers; " in message


def test_a_list_of_positions_in_each_record_of_a_person(tmp_path, expected):
    track = [{"lat": lat, "lng": lon, "timestamp": int(t.timestamp() * 1000)} for t, lat, lon in POINTS]
    people = [{"id": "ann", "tags": [{"a": 1}], "locations": track}, {"id": "bob", "locations": track}]
    traces, _ = read(put(tmp_path / "a.json", json.dumps(people)), tz="UTC")
    assert traces.labels == ("ann", "bob")
    assert traces.r.tolist() == expected.r.tolist() * 2


def test_parts_of_the_day_in_words_are_named_in_the_refusal(tmp_path):
    text = "person,day,part,place\n" + "".join(
        f"{u},{d},{part},p{u}\n" for u in range(3) for d in (1, 2) for part in ("night", "day")
    )
    code, message = refused(put(tmp_path / "a.csv", text))
    assert code == "E_COLUMN"
    assert "no column for time" in message
    assert "if 'part' is a part of the day, number its parts from 0 and give it as slot" in message


# what is no table, and what to do


BEFORE = {
    "a web page": (b"<!DOCTYPE html><html><body>404</body></html>", "E_FORMAT", "a web page"),
    "a pointer of Git LFS": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n",
        "E_FORMAT",
        "LFS",
    ),
    "a numpy array": (b"\x93NUMPY\x01\0v\0" + bytes(2000), "E_ENCODING", "save it as CSV"),
    "a database": (b"SQLite format 3\0" + bytes(range(256)) * 9, "E_ENCODING", "save it as CSV"),
    "KML": (b'<?xml version="1.0"?><kml><Document/></kml>', "E_FORMAT", "convert it to GPX or CSV"),
    "JSON of something else": (b'{"hello": "world"}', "E_FORMAT", "a list of objects with a user"),
    "two columns of one name": (("uid,datetime,lat,lat\n" + lines(ISO)).encode(), "E_COLUMN", "rename one"),
    "Latin letters of Windows": ((HEAD + lines(ISO, user="\xfc")).encode("cp1252"), "E_ENCODING", "perhaps cp1252"),
    "words for degrees": (
        (HEAD + lines("u,{t:%Y-%m-%d %H:%M},46 deg 31 min,6 deg 37 min\n")).encode(),
        "E_NUMBER",
        "decimal",
    ),
    "two clocks": (
        (
            HEAD + lines("u,{t:%Y-%m-%dT%H:%M:%S}+02:00,{lat},{lon}\n") + lines("u,{t:%Y-%m-%dT%H:%M:%S},{lat},{lon}\n")
        ).encode(),
        "E_TZ",
        "give all of them an offset, or none",
    ),
}


@pytest.mark.parametrize("what", BEFORE)
def test_what_is_no_table_says_what_to_do(tmp_path, what):
    content, code, words = BEFORE[what]
    got, message = refused(put(tmp_path / "a.csv", content))
    assert got == code
    assert words in message


def test_a_web_page_beside_tracks_is_passed_over(tmp_path, expected):
    put(tmp_path / "all" / "index.html", BEFORE["a web page"][0])
    with pytest.raises(ew.ElsewhereError, match="a web page"):
        ew.read_traces(tmp_path / "all")
    put(tmp_path / "all" / "a.csv", HEAD + lines(ISO))
    traces, counted = read(tmp_path / "all", tz="UTC")
    assert traces.r.tolist() == expected.r.tolist()
    assert "not read, being of another format: 1 file of the folder (index.html)" in counted.notes


def test_all_parameters_out_of_range_are_said_at_once():
    with pytest.raises(ew.ElsewhereError) as caught:
        ew.synthesize("nothing.csv", "nowhere", par_s=2, m_min=-1, k=0)
    assert all(f"`{name}` must be" in str(caught.value) for name in ("par_s", "m_min", "k"))


@pytest.mark.parametrize("west", [False, True])
def test_files_without_names_are_read_with_those_of_the_first(tmp_path, west):
    form = "{unix}000,{west},{lat},6\n" if west else "{unix}000,{lon},{lat},6\n"
    for number in range(12):
        for folder, named in (("all", True), ("first", number == 0)):
            head = "timestamp,lon,lat,speed\n" if named else ""
            put(tmp_path / folder / f"part{number:02d}.csv", head + lines(form, POINTS[number:]))
    put(tmp_path / "first" / "notes.csv", "what,who\nnothing,nobody\n")
    expected, _ = read(tmp_path / "all")
    got, told = read(tmp_path / "first")
    assert got.labels == expected.labels
    assert np.array_equal(got.r, expected.r)
    assert "12 files were read" in told.notes
    assert "without a line of names: read with that of another file of the folder (11 files)" in told.notes
    assert "not read, being of another format: 1 file of the folder" in told.notes


def test_days_with_gaps_are_counted_before_anything_is_made(run, tmp_path):
    rows = [
        f"u{u},2024-03-0{day} {hour:02d}:30,46.5{u},6.6\n"
        for u in range(3)
        for day in (4, 5)
        for hour in range(24)
        if (u, day) != (1, 5) or not 9 < hour < 15
    ]
    path = put(tmp_path / "a.csv", "uid,time,lat,lon\n" + "".join(rows))
    said = "5 of 6 days can be used: the others have gaps and will be left out"
    _, prepared, _ = run("prepare", path, "-o", tmp_path / "out", "--max-gap", "1h")
    _, planned, _ = run("plan", path, "--max-gap", "1h")
    page = (tmp_path / "out" / "prepare.html").read_text()

    assert said in " ".join(prepared.split())
    assert said in " ".join(planned.split())
    assert "<strong>5</strong><br/><span>days that can be used" in page


AS_THEY_CAME = {
    "tabs without names": lines("{user}\t{t:%Y-%m-%dT%H:%M:%SZ}\t{lat}\t{west}\n"),
    "a taxi of Beijing without names": lines("7,{t:%Y-%m-%d %H:%M:%S},{west},{lat}\n"),
    "semicolons, decimal commas, German dates": "Nutzer;Zeitpunkt;Breite;Laenge\n"
    + lines("{user};{t:%d.%m.%Y %H:%M};{lat};{lon}\n").replace("6.", "6,"),
    "year first, twelve hours": HEAD + lines("{user},{t:%Y-%m-%d %I:%M %p},{lat},{lon}\n"),
    "month first, twelve hours": HEAD + lines("{user},{t:%m/%d/%Y %I:%M:%S %p},{lat},{lon}\n"),
    "no leading zeros": HEAD + lines("{user},{t.day}/{t.month}/{t.year} {t.hour}:{t:%M},{lat},{lon}\n"),
    "months by name": HEAD + lines("{user},{t:%b %d %Y %H:%M:%S},{lat},{lon}\n"),
    "a T and no zone": HEAD + lines("{user},{t:%Y-%m-%dT%H:%M:%S},{lat},{lon}\n"),
    "milliseconds and an offset": HEAD + lines("{user},{t:%Y-%m-%d %H:%M:%S}.000+01:00,{lat},{lon}\n"),
    "an offset of hours": HEAD + lines("{user},{t:%Y-%m-%d %H:%M:%S}.000000+01,{lat},{lon}\n"),
    "the time of tweets": HEAD + lines("{user},{t:%a %b %d %H:%M:%S} +0000 {t:%Y},{lat},{lon}\n"),
    "a day and a clock": "uid|day of it|time|lat|lng\n" + lines("{user}|{t:%d.%m.%Y}|{t:%H:%M}|{lat}|{lon}\n"),
    "well-known text": "uid,datetime,geom\n" + lines("{user},{t:%Y-%m-%d %H:%M:%S},POINT({lon} {lat})\n"),
    "a pair": "uid,datetime,coordinates\n" + lines('{user},{t:%Y-%m-%d %H:%M:%S},"{lat}, {lon}"\n'),
    "a line of points": "uid,datetime,POLYLINE\n" + lines('{user},{t:%Y-%m-%d %H:%M:%S},"[[{lon}, {lat}]]"\n'),
    "a column for each hour": "uid," + ",".join(f"{h:02d}:00" for h in range(24)) + "\nann" + ",home" * 24 + "\n",
}


def looks(line):
    """What a line looks like: runs of digits, names of days and months, and words are all alike."""
    line = re.sub(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b", "Mon", line)
    return re.sub(r"\d+", "9", line).replace("-9.9", "9.9").replace("PM", "AM")


@pytest.mark.parametrize("what", AS_THEY_CAME)
def test_a_table_goes_out_in_the_form_in_which_it_came(tmp_path, what):
    content = AS_THEY_CAME[what]
    path = put(tmp_path / "in.csv", content)
    traces, made = read(path)
    form = {"columns": made.columns, "times": made.times, "form": made.form}
    ew.write_traces(traces, tmp_path / "out.csv", **form)
    came, went = (p.read_text().splitlines() for p in (path, tmp_path / "out.csv"))
    assert looks(went[0]) == looks(came[0])
    assert looks(went[-1]) == looks(came[-1])
    again, _ = read(tmp_path / "out.csv")
    assert np.array_equal(again.r, traces.r)
    assert again.tz == traces.tz


def test_stays_by_clock_go_out_with_their_days(tmp_path):
    rows = "".join(
        f"ann,{d:02d}.03.2024,{h:02d}:00,{h + 3:02d}:50,place {(d + h) % 5}\n"
        for d in range(4, 7)
        for h in range(0, 24, 4)
    )
    path = put(tmp_path / "in.csv", "who,date,arrived,left,where\n" + rows)
    how = {"columns": {"user": "who", "place": "where"}}
    traces, made = read(path, **how)
    for out_as in ("visits", "slots"):
        form = {"columns": made.columns, "times": made.times, "form": made.form, "out_as": out_as}
        ew.write_traces(traces, tmp_path / f"{out_as}.csv", **form)
        again, _ = read(tmp_path / f"{out_as}.csv", **how)
        assert np.array_equal(again.dates, traces.dates)
        assert np.array_equal(again.r, traces.r)


def test_between_blanks_a_value_that_is_not_there_is_written(tmp_path):
    rows = lines("{user} {t:%Y-%m-%dT%H:%M:%S} shop {lat} {lon}\n")
    traces, made = read(put(tmp_path / "in.txt", "uid time category lat lng\n" + rows))
    assert made.form["delimiter"] == " "
    places = ew.Locations(lat=traces.locations.lat, lon=traces.locations.lon, categories=[""] * traces.R)
    form = {"columns": made.columns, "times": made.times, "form": made.form}
    ew.write_traces(traces.with_map(places), tmp_path / "out.txt", format="csv", **form)
    assert '""' in (tmp_path / "out.txt").read_text()
    again, _ = read(tmp_path / "out.txt")
    assert np.array_equal(again.r, traces.r)
    assert np.allclose(again.locations.points(), traces.locations.points())


def test_times_that_were_read_as_somebody_said_go_out_as_said(tmp_path):
    rows = lines("{user},{t:%y/%m/%d %H:%M},{lat},{lon}\n")  # 13/04/15 could be 13 April 2015
    traces, made = read(put(tmp_path / "in.csv", HEAD + rows), date_format="%y/%m/%d %H:%M")
    assert made.form["time"] == "%y/%m/%d %H:%M"
    ew.write_traces(traces, tmp_path / "out.csv", columns=made.columns, times=made.times, form=made.form)
    again, _ = read(tmp_path / "out.csv", date_format="%y/%m/%d %H:%M")
    assert np.array_equal(again.dates, traces.dates)


def test_points_with_the_latitude_first_are_told_by_the_offset_of_their_times(tmp_path):
    # 12.5 N 41.9 E is in Ethiopia, three hours east of Greenwich; Rome is one hour east
    rows = "".join(f"7;2024-02-03 {h:02d}:00:00.000+01;POINT(41.{89 + h % 2}1 12.4{h % 5}2)\n" for h in range(24))
    traces, told = read(put(tmp_path / "rome.txt", rows))
    assert np.all(np.abs(traces.locations.lat - 41.9) < 0.1)
    assert any("with the latitude first" in note for note in told.notes)
    assert told.form["point"] == "POINT({lat} {lon})"
    addis = rows.replace("+01", "+03")
    traces, told = read(put(tmp_path / "addis.txt", addis))
    assert np.all(np.abs(traces.locations.lat - 12.45) < 0.1)
    traces, told = read(tmp_path / "rome.txt", tz="Africa/Addis_Ababa")
    assert np.all(np.abs(traces.locations.lat - 12.45) < 0.1)


def test_degrees_minutes_and_seconds(tmp_path):
    def dms(value, letters):
        seconds = round(abs(value) * 3600, 1)
        return f"{int(seconds // 3600)}\u00b0{int(seconds % 3600 // 60):02d}'{seconds % 60:04.1f}\"{letters[value < 0]}"

    rows = "".join(f"ann;{t:%Y-%m-%d %H:%M};{dms(lat, 'NS')};{dms(-lon, 'EW')}\n" for t, lat, lon in POINTS)
    traces, _ = read(put(tmp_path / "a.csv", "uid;time;lat;lon\n" + rows), tz="UTC")
    plainly, _ = read(put(tmp_path / "b.csv", HEAD + lines("{user},{t:%Y-%m-%d %H:%M},{lat},-{lon}\n")), tz="UTC")
    assert np.allclose(traces.locations.points()[traces.r], plainly.locations.points()[plainly.r], atol=0.05)
    london = "".join(f"ann;{t:%Y-%m-%d %H:%M};51\u00b030';-0\u00b0{t.hour % 2}7'\n" for t, _, _ in POINTS)
    traces, _ = read(put(tmp_path / "london.csv", "uid;time;lat;lon\n" + london))
    assert np.all(traces.locations.lon < -0.1)  # minus nothing, and some minutes


def test_journeys_by_clock_and_stop_on_a_day(tmp_path):
    rows = "".join(
        f"{7 + c},2024030{d},{h:02d}:10:00,Stop {h % 4},{h:02d}:30:00,Stop {(h + 1) % 4},Metro\n"
        for c in range(2)
        for d in range(4, 7)
        for h in range(6, 22, 3)
    )
    head = "card_id,travel_date,tap_in_time,tap_in_stop,tap_out_time,tap_out_stop,mode\n"
    traces, told = read(put(tmp_path / "a.csv", head + rows), min_coverage=0)
    assert (traces.labels, traces.R, len(traces)) == (("7", "8"), 4, 6)
    ends = ("time", "place", "end_time", "end_place")
    assert [told.columns[role] for role in ends] == ["tap_in_time", "tap_in_stop", "tap_out_time", "tap_out_stop"]
    ew.write_traces(
        traces, tmp_path / "out.csv", columns=told.columns, times=told.times, form=told.form, out_as="trips"
    )
    line = (tmp_path / "out.csv").read_text().splitlines()[1].split(",")
    assert re.fullmatch(r"2024030\d", line[1])
    assert re.fullmatch(r"\d\d:\d\d:00", line[2])
    night = rows.replace("21:10:00", "23:50:00").replace("21:30:00,Stop 2", "00:10:00,Stop 3")  # on the next day
    traces, _ = read(put(tmp_path / "night.csv", head + night), min_coverage=0)
    after_midnight = np.array([*traces.locations.names, ""])[traces.r[:, 1]]
    assert np.array_equal(after_midnight == "Stop 3", traces.dates > np.datetime64("2024-03-04"))


def test_who_when_and_one_thing_that_recurs(tmp_path):
    times = [f"2024-03-04 {i % 24:02d}:{i % 60:02d}" for i in range(96)]
    rows = "".join(f"c{i % 5},{t},H{i % 7},{'in' if i % 2 else 'out'}\n" for i, t in enumerate(times))
    _, told = read(put(tmp_path / "a.csv", "CardID,when,Halt,direction\n" + rows), min_coverage=0)
    assert told.columns["place"] == "Halt"
    assert any("'Halt' was read as the place" in note for note in told.notes)
    two = "".join(line.replace(",H", f",L{i % 4},H") + "\n" for i, line in enumerate(rows.splitlines()))
    _, message = refused(put(tmp_path / "b.csv", "CardID,when,Lane,Halt,direction\n" + two))
    assert "place=NAME" in message  # a lane or a halt


def test_calls_by_cell_and_a_table_of_antennas_in_another_folder(tmp_path):
    calls = "".join(f"4179{c};04/03/2024 {h:02d}:10:00;228-01-{h % 5}\n" for c in range(3) for h in range(24))
    put(tmp_path / "all" / "calls" / "a.csv", "MSISDN;START_TIME;CGI\n" + calls.replace("04/03", "14/03"))
    cells = "".join(f"228-01-{k};Site {k};46.5{k};6.6{k}\n" for k in range(5))
    put(tmp_path / "all" / "context" / "antennas.csv", "CGI;SITE_NAME;LATITUDE;LONGITUDE\n" + cells)
    traces, told = read(tmp_path / "all", max_gap="3h")
    assert traces.locations.lat is not None
    assert told.columns == {"user": "MSISDN", "time": "START_TIME", "place": "CGI"}


def test_objects_in_a_list_of_another_name_and_a_file_for_each_person(tmp_path):
    for who in ("ann", "bob"):
        items = [
            {
                "itemId": i,
                "center": {"latitude": 1.5, "longitude": 2.5},
                "samples": [{"location": {"latitude": lat, "longitude": lon, "timestamp": f"{t:%Y-%m-%dT%H:%M:%SZ}"}}],
            }
            for i, (t, lat, lon) in enumerate(POINTS)
        ]
        put(tmp_path / "arc" / who / "2024-03.json", json.dumps({"timelineItems": items}))
    traces, _ = read(tmp_path / "arc")
    assert traces.labels == ("ann", "bob")
    assert np.all(np.abs(traces.locations.lat - POINTS[0][1]) < 1)


def test_a_tweet_has_its_point_twice(tmp_path):
    rows = [
        {
            "created_at": f"{t:%a %b %d %H:%M:%S} +0000 {t:%Y}",
            "user": {"id": 7, "id_str": "7"},
            "geo": {"type": "Point", "coordinates": [lat, lon]},
            "coordinates": {"type": "Point", "coordinates": [lon, lat]},
        }
        for t, lat, lon in POINTS
    ]
    traces, told = read(put(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert told.columns["geometry"] == "coordinates.coordinates"
    assert np.all(np.abs(traces.locations.lat - POINTS[0][1]) < 1)


def test_a_column_that_names_no_places_is_not_written(tmp_path):
    rows = "".join(
        f"t{c},2024-03-04 {h:02d}:00,2024-03-04 {h:02d}:20,4{h % 9}.5,-87.1,4{(h + 1) % 9}.5,-87.1,1,1\n"
        for c in range(2)
        for h in range(24)
    )
    head = "taxi_id,start_time,end_time,start_lat,start_lon,end_lat,end_lon,start_zone,end_zone\n"
    _, told = read(put(tmp_path / "a.csv", head + rows))
    assert any("'start_zone' was not read" in note for note in told.notes)
    assert not {"place", "end_place"} & told.columns.keys()


ACCESS = "".join(f"u{i % 3},2024-03-04 {i // 3:02d}:{i % 3:02d}:00,{{}}{i // 3 % 5}\n" for i in range(72))
WHERE = {3: 46.53, 0: 46.50, 4: 46.54, 1: 46.51, 2: 46.52}  # the table is not sorted


def table_of_places(name, mark="", places=WHERE):
    return f"building,{name},latitude,longitude\n" + "".join(f"9,{mark}{k},{lat},6.6\n" for k, lat in places.items())


@pytest.mark.parametrize("mark", ["", "AP-"])
@pytest.mark.parametrize(("name", "noted"), [("ap_no", True), ("kode", True), ("id", False), ("site_id", False)])
def test_places_are_where_the_column_of_their_ids_says(tmp_path, name, noted, mark):
    # the column has the name that it has in the traces, a known one, or the same values
    path = put(tmp_path / "log.csv", "uid,time,ap_no\n" + ACCESS.format(*[mark] * 72))
    table = put(tmp_path / "there" / "aps.csv", table_of_places(name, mark))
    traces, told = read(path, locations=table, columns={"place": "ap_no"})

    at = traces.locations.lat[traces.r[0]]
    assert at[::3].tolist() == pytest.approx([WHERE[hour % 5] for hour in range(24)])
    assert (f"column {name!r} of aps.csv was read as the id of places" in told.notes) == noted


def test_the_name_that_the_traces_use_goes_before_an_id(tmp_path):
    path = put(tmp_path / "log.csv", "uid,time,ap_no\n" + ACCESS.replace("{}", ""))
    rows = "".join(f"{i},{k},{lat},6.6\n" for i, (k, lat) in enumerate(WHERE.items()))
    table = put(tmp_path / "there" / "aps.csv", f"id,AP_No,latitude,longitude\n{rows}")
    traces, _ = read(path, locations=table, columns={"place": "ap_no"})
    assert traces.locations.lat[traces.r[0]][::3].tolist() == pytest.approx([WHERE[hour % 5] for hour in range(24)])


def test_rows_of_a_table_without_ids_are_numbered_and_it_is_said(tmp_path):
    path = put(tmp_path / "log.csv", "uid,time,ap_no\n" + ACCESS.replace("{}", ""))
    table = put(
        tmp_path / "aps.txt",
        "".join(f"{lat},{6.6}\n" for lat in ("latitude", *WHERE.values())).replace(
            "latitude,6.6", "latitude,longitude"
        ),
    )
    traces, told = read(path, locations=table, columns={"place": "ap_no"})
    assert traces.locations.lat.tolist() == list(WHERE.values())
    assert "aps.txt has no column of ids: its rows are numbered from 0" in told.notes
    put(path, "uid,time,ap_no\n" + ACCESS.replace("{}", "AP-"))
    code, message = refused(path, locations=table, columns={"place": "ap_no"})
    assert code == "E_INDEX"
    assert "call it 'ap_no' as here, or id, loc, location," in message
    assert "AP-" not in message


def test_places_that_the_table_has_not_are_counted(tmp_path):
    path = put(tmp_path / "log.csv", "uid,time,ap_no\n" + ACCESS.replace("{}", "AP-"))
    few = {k: WHERE[k] for k in (3, 0, 1)}
    table = put(tmp_path / "there" / "aps.csv", table_of_places("ap", "AP-", few))
    code, message = refused(path, locations=table, columns={"place": "ap_no"})
    assert code == "E_INDEX"
    assert "2 of 5 places, in 27 of 72 rows, are not among the locations; add them" in message


@pytest.mark.parametrize(("name", "mark"), [("ap_name", "AP-"), ("kode", "AP-"), ("ap_name", "")])
def test_a_folder_of_a_log_and_its_access_points(tmp_path, name, mark):
    put(tmp_path / "wifi" / "log.csv", "client_mac,time,ap_name\n" + ACCESS.replace("{}", mark))
    put(tmp_path / "wifi" / "points.csv", table_of_places(name, mark))
    put(tmp_path / "wifi" / "notes.csv", "what,who\nnothing,nobody\n")
    traces, told = read(tmp_path / "wifi")
    assert sorted(traces.locations.lat) == sorted(WHERE.values())
    assert "places are where points.csv says" in told.notes
    assert "not read, being of another format: 1 file of the folder (notes.csv)" in told.notes


def test_names_of_files_that_are_people_are_not_said(tmp_path):
    for user in ("ann", "bob"):
        put(tmp_path / "all" / f"{user}.csv", "time,lat,lon\n" + lines("{t:%Y-%m-%d %H:%M:%S},{lat},{lon}\n"))
    put(tmp_path / "all" / "cleo.csv", "what,who\nnothing,nobody\n")
    assert "not read, being of another format: 1 file of the folder" in read(tmp_path / "all")[1].notes


@pytest.mark.parametrize("columns", [{"utc": "timestamp"}, {"utc": "timestamp", "user": "tag"}, None])
def test_utc_means_utc_and_so_does_movebank(tmp_path, columns):
    head = "timestamp,location-long,location-lat,individual-local-identifier,tag\n"
    path = put(tmp_path / "a.csv", head + lines("{t:%Y-%m-%d %H:%M:%S}.000,{lon},{lat},{user},t\n"))
    traces, told = read(path, columns=columns)
    offsets = put(tmp_path / "b.csv", HEAD + lines("{user},{t:%Y-%m-%dT%H:%M:%S}Z,{lat},{lon}\n"))
    assert traces.r.tolist() == read(offsets)[0].r.tolist()
    assert any("times are UTC" in note for note in told.notes)
    assert any("those of Movebank" in note for note in told.notes) == (columns is None)
    local, told = read(path, columns={"time": "timestamp"})
    assert any("times carry no offset" in note for note in told.notes)
    assert local.r.tolist() != traces.r.tolist()


def test_bad_rows_of_all_kinds_are_counted_with_a_share_that_passes(tmp_path):
    good = lines(ISO).splitlines(keepends=True)
    bad = [good[3].replace("46.", "x"), good[4].replace("46.", "x"), good[5].replace("2013", "1913"), "ann,1\n"]
    path = put(tmp_path / "a.csv", HEAD + "".join([*good[:9], *bad, *good[9:]]))
    code, message = refused(path, max_bad=0.02)
    rows = len(good) + 4
    assert code == "E_NUMBER"
    assert f"2 of {rows} rows have numbers that cannot be read" in message
    assert "; 1 have no readable time" in message
    assert "; 1 have more or fewer fields than the first line" in message
    assert f"; together 4 rows, {4 / rows:.2%}, and at most 2.00%" in message
    share = re.search(r"with ([.\d]+) they would be", message)
    assert read(path, max_bad=float(share[1]))[1].rows == rows


def test_too_few_people_name_their_column_and_another_one(tmp_path):
    rows = "".join(
        f"G {v};{d:02d}.04.2024;{h:02d}:00:00;47,0{(v + h) % 5};15,4;Driver {v % 4}\n"
        for v in range(40)
        for d in (8, 9)
        for h in range(24)
    )
    path = put(tmp_path / "a.csv", "Kennzeichen;Datum;Uhrzeit;Breitengrad;L\u00e4ngengrad;Fahrer\n" + rows)
    with pytest.raises(ew.ElsewhereError) as caught:
        ew.synthesize(path, out=tmp_path / "out")
    told = " ".join(caught.value.__notes__)
    assert caught.value.code == "E_TOO_FEW"
    assert "People are the values of column 'Fahrer', 4; column 'Kennzeichen' has 40: if these are people, give" in told
    assert "`columns` user=Kennzeichen." in told
    assert "Driver" not in told
    with pytest.raises(ew.ElsewhereError) as caught:  # the file's name is no column
        ew.synthesize(path, out=tmp_path / "out", columns={"user": "file"})
    assert "People are" not in " ".join(caught.value.__notes__)


def test_a_travel_survey_beside_its_zones(tmp_path):
    trips = "".join(
        f"{50 + i},{p},{k},20231011,{at:02d}14,{at:02d}34,{101 + (i + k) % 3},{101 + (i + k + 1) % 3},work\n"
        for i in range(4)
        for p in (1, 2)
        for k, at in enumerate((8, 12, 17))
    )
    put(
        tmp_path / "survey" / "trips.csv",
        "HHID,PERSID,TRIPNO,TRAVDATE,DEPTIME,ARRTIME,ORIGZONE,DESTZONE,PURPOSE\n" + trips,
    )
    put(tmp_path / "survey" / "zones.csv", "zone,name,lat,lon\n101,A,46.5,6.6\n102,B,46.6,6.6\n103,C,46.7,6.6\n")
    traces, told = read(tmp_path / "survey", max_gap="24h")
    assert (traces.U, traces.R, traces.tz) == (8, 3, "Europe/Zurich")
    assert "places are where zones.csv says" in told.notes
    # columns of one file of the folder need not be in the other; a message names the file
    columns = {"user": "PERSID", "date": "TRAVDATE", "time": "DEPTIME", "end_time": "ARRTIME", "place": "ORIGZONE"}
    columns["end_place"] = "DESTZONE"
    assert np.array_equal(read(tmp_path / "survey", max_gap="24h", columns=columns)[0].r, traces.r)
    code, message = refused(tmp_path / "survey", columns={**columns, "user": "PERSON"})
    assert code == "E_COLUMN"
    assert message.endswith("'PURPOSE'.")
    assert "survey, file 1 of 2: there is no column 'PERSON'; columns seen: 'HHID'" in message
    assert "trips.csv: there is no column" in refused(tmp_path / "survey" / "trips.csv", columns={"user": "x"})[1]


def test_tables_of_different_kinds_in_a_folder_are_named(tmp_path):
    put(tmp_path / "all" / "a.csv", HEAD + lines(ISO))
    put(tmp_path / "all" / "b.csv", "Nutzer;Zeit;Breite;Laenge\n" + lines(ISO).replace(",", ";"))
    code, message = refused(tmp_path / "all")
    assert code == "E_COLUMN"
    assert "all, file 1 of 2, and file 2 of 2: tables of different kinds" in message


def test_a_script_is_of_no_known_format(tmp_path):
    path = put(
        tmp_path / "a.py",
        "import csv, json, os\nfrom os import path\n\n\ndef run(a, b):\n    return a\n\n\nrun(1, 2)\n",
    )
    code, message = refused(path)
    assert code == "E_CSV"
    assert "a.py is of no known format" in message


def test_steps_and_boxes_come_with_an_example(tmp_path):
    path = put(tmp_path / "a.csv", HEAD + lines(ISO))
    assert "such as 5min, 20min or 1h, got '7min'" in refused(path, step="7min")[1]
    assert "such as 48.8,2.2,48.9,2.5" in refused(path, box=(48, 2))[1]
