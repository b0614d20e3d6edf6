"""
Files as strangers have them, read with defaults only: the right people, hours, places, kind of record and unit.

One simulated town, moved to a city, is written in each shape; what was read is compared with what was written.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import zipfile
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from elsewhere.data.read import read_records, read_visits
from elsewhere.data.town import simulate_town
from elsewhere.errors import ElsewhereError, InvalidParameter, InvalidTraces

CITIES = {
    "New York": (40.74, -73.98, "America/New_York"),
    "Beijing": (39.92, 116.40, "Asia/Shanghai"),
    "Porto": (41.16, -8.62, "Europe/Lisbon"),
    "San Francisco": (37.76, -122.43, "America/Los_Angeles"),
    "Berlin": (52.52, 13.40, "Europe/Berlin"),
}
KINDS = ("Home (private)", "Office", "Café", "Train Station", "Bar")


class City:
    """The visits of a town in a city: rows (user, local start, local end, place), and where places are."""

    def __init__(self, name, days=3, users=30):
        visits, places = town(days, users)
        self.lat0, self.lon0, zone = CITIES[name]
        self.zone = ZoneInfo(zone)
        self.lat = places.lat - places.lat.mean() + self.lat0
        self.lon = (places.lon - places.lon.mean()) / np.cos(np.radians(self.lat0)) + self.lon0
        self.rows = visits
        self.users = len({user for user, *_ in visits})

    def utc(self, local):
        return local.replace(tzinfo=self.zone).astimezone(UTC)

    def moves(self):
        """(user, left, arrived, from, to) of everybody: 20 minutes on the way."""
        for (u, _, end, a), (v, start, _, b) in zip(self.rows, self.rows[1:], strict=False):
            if u == v:
                yield u, end - timedelta(minutes=20), start, a, b

    def fixes(self, every=10, jitter=0.0):
        """(user, local time, lat, lon) every so many minutes of each visit."""
        rng = np.random.default_rng(3)
        for u, start, end, p in self.rows:
            t = start
            while t < end:
                dy, dx = rng.normal(0, jitter, 2) if jitter else (0, 0)
                yield u, t, self.lat[p] + dy, self.lon[p] + dx
                t += timedelta(minutes=every)


@cache
def town(days, users):
    made = simulate_town(users=users, days=days, locations=40, rng=np.random.default_rng(5)).visits
    frame = made.to_frame()
    rows = [
        (f"p{u:03}", s.to_pydatetime(), e.to_pydatetime(), int(p))
        for u, s, e, p in zip(made.user, frame["start"], frame["end"], made.place, strict=True)
    ]
    return rows, made.locations


def write(path, head, rows, sep=",", encoding="utf-8"):
    head = head.split(",") if isinstance(head, str) else head
    sink = io.StringIO()
    csv.writer(sink, delimiter=sep, lineterminator="\n").writerows([head, *rows] if head else rows)
    path.write_bytes(sink.getvalue().encode(encoding))
    return path


def hours(starts):
    return np.bincount(np.asarray(starts) // 3600 % 24, minlength=24)


def hours_of(times):
    return np.bincount([t.hour for t in times], minlength=24)


# --- the ten kinds of the issue, and others; each returns (path, expected) -------------------------------------------


def check_ins(folder, kinds=True):
    city = City("New York")
    rows = [
        [
            u,
            f"v{p:04x}",
            *([KINDS[p % 5]] if kinds else []),
            f"{city.lat[p]:.6f}",
            f"{city.lon[p]:.6f}",
            f"{city.utc(s):%Y-%m-%dT%H:%M:%SZ}",
        ]
        for u, s, _, p in city.rows
    ]
    head = ["user_id", "venue_id", *(["category"] if kinds else []), "latitude", "longitude", "timestamp"]
    return write(folder / "checkins.csv", head, rows), city, "events", "person", [s for _, s, _, _ in city.rows]


def check_ins_without_kinds(folder):
    return check_ins(folder, kinds=False)


def foursquare(folder):
    city = City("New York")
    rows = [
        [
            u[1:],
            f"{p * 7919 + 4096:024x}",
            f"{p % 5:024x}",
            KINDS[p % 5],
            city.lat[p],
            city.lon[p],
            int(s.replace(tzinfo=city.zone).utcoffset().total_seconds() / 60),
            f"{city.utc(s):%a %b %d %H:%M:%S +0000 %Y}",
        ]
        for u, s, _, p in city.rows
    ]
    return write(folder / "tsmc.txt", None, rows, sep="\t"), city, "events", "person", [s for _, s, _, _ in city.rows]


def check_ins_of_the_world(folder):
    cities = [City(name) for name in CITIES]
    rows, starts = [], []
    for i, city in enumerate(cities):
        for u, s, _, p in city.rows:
            rows.append([f"{u}-{i}", f"{city.utc(s):%Y-%m-%dT%H:%M:%SZ}", city.lat[p], city.lon[p], f"{i}:{p}"])
            starts.append(s)
    city = cities[0]
    city.users *= len(cities)
    path = write(folder / "world.tsv", ["uid", "utc_time", "lat", "lon", "venue"], rows, "\t")
    return path, city, "events", "person", starts


def taxis(folder):
    """A fix a minute, occupied or not, no line of names; lines from one place to the next all day."""
    city, rng = City("San Francisco"), np.random.default_rng(2)
    rows, starts = [], []
    for cab in range(12):
        t = datetime(2024, 3, 4, 6, 0)
        at = rng.integers(40)
        while t < datetime(2024, 3, 5, 20, 0):
            to, many = rng.integers(40), int(rng.integers(8, 25))
            flag = int(rng.random() < 0.6)
            for k in range(many):
                if not 2 <= t.hour < 5:
                    f = k / many
                    y, x = ((1 - f) * side[at] + f * side[to] for side in (city.lat, city.lon))
                    rows.append([cab + 1, f"{t:%Y-%m-%d %H:%M:%S}", f"{x:.5f}", f"{y:.5f}", flag])
                    starts.append(t)
                t += timedelta(minutes=1)
            at = to
    city.users = 24
    return write(folder / "taxis.txt", None, rows), city, "fixes", "vehicle-day", starts


def gps_sessions(folder):
    """A fix every five seconds for some minutes, then days of silence."""
    city, rng, rows, starts = City("Beijing", days=10), np.random.default_rng(4), [], []
    for u, s, _, p in city.rows:
        if rng.random() < 0.15:
            for k in range(0, 720, 5):
                t = s + timedelta(seconds=k)
                rows.append([u, city.lat[p] + k * 1e-6, city.lon[p], f"{city.utc(t):%Y-%m-%d %H:%M:%S+00:00}"])
                starts.append(t)
    city.users = len({r[0] for r in rows})
    return write(folder / "gps.csv", ["user", "lat", "lon", "datetime"], rows), city, "fixes", "person", starts


def phone_records(folder):
    city = City("Berlin")
    rows = [[u, f"{s:%Y-%m-%d %H:%M:%S}", 30 + i % 200, f"BTS-{p}"] for i, (u, s, _, p) in enumerate(city.rows)]
    (folder / "calls").mkdir()
    write(folder / "calls" / "cdr.csv", ["caller_id", "call_start", "duration", "cell_id"], rows)
    towers = [[f"BTS-{p}", f"{y:.5f}", f"{x:.5f}"] for p, (y, x) in enumerate(zip(city.lat, city.lon, strict=True))]
    write(folder / "towers.csv", ["cell_id", "latitude", "longitude"], towers)
    return folder / "calls" / "cdr.csv", city, "visits", "person", [s for _, s, _, _ in city.rows]


def diaries(folder):
    city = City("Berlin")
    rows = [[u, f"{s:%Y-%m-%d}", f"{s:%H:%M}", f"{e:%H:%M}", f"place {p}"] for u, s, e, p in city.rows]
    head = ["person", "date", "from", "to", "place"]
    return write(folder / "diary.csv", head, rows), city, "visits", "person", [s for _, s, _, _ in city.rows]


def survey_trips(folder):
    city = City("Berlin")
    rows = [
        [u[1:2], u[2:], i, f"{a:%d.%m.%Y}", f"{a:%H:%M}", f"{b:%H:%M}", f"Z{p}", f"Z{q}", "work"]
        for i, (u, a, b, p, q) in enumerate(city.moves())
    ]
    head = "household_id,person_no,trip_no,date,departure_time,arrival_time,origin_zone,destination_zone,purpose"
    city.users = len({(r[0], r[1]) for r in rows})
    path = write(folder / "trips.csv", head, rows, ";")
    return path, city, "trips", "person", [t for m in city.moves() for t in m[1:3]]


def bike_trips(folder):
    city = City("New York")
    moves = list(city.moves())
    rows = [
        [
            f"{i:016X}",
            "classic_bike",
            f"{a:%Y-%m-%d %H:%M:%S}",
            f"{b:%Y-%m-%d %H:%M:%S}",
            f"Station {p}",
            f"S{p}",
            f"Station {q}",
            f"S{q}",
            city.lat[p],
            city.lon[p],
            city.lat[q],
            city.lon[q],
            "member",
        ]
        for i, (_, a, b, p, q) in enumerate(moves)
    ]
    head = (
        "ride_id,rideable_type,started_at,ended_at,start_station_name,start_station_id,"
        "end_station_name,end_station_id,start_lat,start_lng,end_lat,end_lng,member_casual"
    )
    city.users = len(rows)
    return write(folder / "bikes.csv", head, rows), city, "trips", "trip", [t for m in moves for t in m[1:3]]


def polylines(folder):
    city = City("Porto")
    rows, starts = [], []
    for i, (u, a, _, p, q) in enumerate(city.moves()):
        line = [
            [
                round(city.lon[p] + f * (city.lon[q] - city.lon[p]), 6),
                round(city.lat[p] + f * (city.lat[q] - city.lat[p]), 6),
            ]
            for f in np.linspace(0, 1, 20)
        ]
        rows.append([i, "B", "", 2000 + int(u[1:]), int(city.utc(a).timestamp()), "A", "False", json.dumps(line)])
        starts += [a + timedelta(seconds=15 * k) for k in range(20)]
    head = ["TRIP_ID", "CALL_TYPE", "ORIGIN_CALL", "TAXI_ID", "TIMESTAMP", "DAY_TYPE", "MISSING_DATA", "POLYLINE"]
    city.users = None
    return write(folder / "porto.csv", head, rows), city, "fixes", "vehicle-day", starts


def plain_fixes(folder, **options):
    city = City("Berlin")
    fixes = list(city.fixes())
    rows = [[u, f"{t:%Y-%m-%d %H:%M:%S}", f"{y:.6f}", f"{x:.6f}"] for u, t, y, x in fixes]
    path = write(folder / "fixes.csv", ["uid", "datetime", "lat", "lng"], rows, **options)
    return path, city, "fixes", "person", [f[1] for f in fixes]


def cabspotting(folder):
    city = City("San Francisco")
    (folder / "cabs").mkdir()
    by: dict[str, list] = {}
    for u, t, y, x in city.fixes():
        by.setdefault(u, []).append((t, y, x))
    for u, track in by.items():
        lines = [f"{y:.5f} {x:.5f} {i % 2} {int(city.utc(t).timestamp())}\n" for i, (t, y, x) in enumerate(track)]
        (folder / "cabs" / f"new_{u}.txt").write_text("".join(lines[::-1]))
    city.users = None
    return folder / "cabs", city, "fixes", None, [t for track in by.values() for t, _, _ in track]


def headerless(folder):
    path, city, *rest = plain_fixes(folder)
    lines = path.read_text().splitlines()[1:]
    path.write_text("\n".join(lines) + "\n")
    return path, city, *rest


def decimal_commas(folder):
    city = City("Berlin")
    fixes = list(city.fixes())
    rows = [
        [u, f"{t:%d.%m.%Y %H:%M}", f"{y:.6f}".replace(".", ","), f"{x:.6f}".replace(".", ",")] for u, t, y, x in fixes
    ]
    path = write(folder / "de.csv", ["Nutzer", "Zeitpunkt", "Breite", "Länge"], rows, ";", "cp1252")
    return path, city, "fixes", "person", [f[1] for f in fixes]


def date_and_clock(folder):
    city = City("New York")
    fixes = list(city.fixes())
    rows = [[u, f"{t:%m/%d/%Y}", f"{t:%I:%M:%S %p}", y, x] for u, t, y, x in fixes]
    rows += [["p000", "03/25/2024", "01:00:00 AM", city.lat0, city.lon0]]
    path = write(folder / "two.csv", ["uid", "date", "time", "lat", "lng"], rows)
    return path, city, "fixes", "person", [f[1] for f in fixes] + [datetime(2024, 3, 25, 1)]


def milliseconds(folder):
    city = City("Beijing")
    fixes = list(city.fixes())
    frame = pd.DataFrame(
        {
            "device": [f[0] for f in fixes],
            "ts": [int(city.utc(f[1]).timestamp() * 1000) for f in fixes],
            "point": [f"POINT ({f[3]} {f[2]})" for f in fixes],
        }
    )
    frame.to_parquet(folder / "ms.parquet")
    return folder / "ms.parquet", city, "fixes", "person", [f[1] for f in fixes]


def offsets(folder):
    city = City("Berlin")
    fixes = list(city.fixes())
    rows = [
        {"user": {"id": u}, "time": t.replace(tzinfo=city.zone).isoformat(), "lat": y, "lon": x} for u, t, y, x in fixes
    ]
    (folder / "lines.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return folder / "lines.jsonl", city, "fixes", "person", [f[1] for f in fixes]


def geolife(folder):
    city = City("Beijing")
    head = (
        "Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My Track,0,0,2,8421376\r\n0\r\n"
    )
    starts = []
    for i in range(city.users):
        below = folder / "Data" / f"{i:03}" / "Trajectory"
        below.mkdir(parents=True)
        mine = [f for f in city.fixes() if f[0] == f"p{i:03}"]
        starts += [f[1] for f in mine]
        (below / "20240304000000.plt").write_text(
            head + "".join(f"{y},{x},0,492,0,{city.utc(t):%Y-%m-%d},{city.utc(t):%H:%M:%S}\r\n" for _, t, y, x in mine)
        )
    return folder / "Data", city, "fixes", "person", starts


def gpx(folder):
    city, starts = City("Berlin"), []
    (folder / "tracks").mkdir()
    for i in range(5):
        mine = [f for f in city.fixes() if f[0] == f"p{i:03}"]
        starts += [f[1] for f in mine]
        points = "".join(
            f'<trkpt lat="{y}" lon="{x}"><time>{city.utc(t):%Y-%m-%dT%H:%M:%SZ}</time></trkpt>' for _, t, y, x in mine
        )
        (folder / "tracks" / f"p{i}.gpx").write_text(
            '<?xml version="1.0"?><gpx version="1.1" creator="a" xmlns="http://www.topografix.com/GPX/1/1">'
            f"<trk><trkseg>{points}</trkseg></trk></gpx>"
        )
    city.users = 5
    return folder / "tracks", city, "fixes", "person", starts


def timeline(folder):
    city, starts = City("Berlin"), []
    (folder / "phones").mkdir()
    for i in range(5):
        mine = [r for r in city.rows if r[0] == f"p{i:03}"]
        starts += [s for _, s, _, _ in mine]
        segments = [
            {
                "startTime": s.replace(tzinfo=city.zone).isoformat(),
                "endTime": e.replace(tzinfo=city.zone).isoformat(),
                "visit": {"topCandidate": {"placeLocation": {"latLng": f"{city.lat[p]:.6f}°, {city.lon[p]:.6f}°"}}},
            }
            for _, s, e, p in mine
        ]
        (folder / "phones" / f"{i}.json").write_text(json.dumps({"semanticSegments": segments, "rawSignals": []}))
    city.users = 5
    return folder / "phones", city, "visits", "person", starts


def geojson(folder):
    city, by = City("New York"), {}
    for u, t, y, x in city.fixes():
        by.setdefault(u, []).append((t, y, x))
    features = [
        {
            "type": "Feature",
            "properties": {"vendor": u},
            "geometry": {
                "type": "LineString",
                "coordinates": [[x, y, 0, int(city.utc(t).timestamp())] for t, y, x in track],
            },
        }
        for u, track in by.items()
    ]
    (folder / "trips.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return folder / "trips.geojson", city, "fixes", "person", [t for track in by.values() for t, _, _ in track]


def calls_beside_towers(folder):
    path, *rest = phone_records(folder)
    (folder / "towers.csv").rename(path.parent / "towers.csv")
    return path.parent, *rest


def rides(folder):
    city = City("New York")
    moves = list(city.moves())
    rows = [
        [u, f"{a:%Y-%m-%d %H:%M:%S}", f"{b:%Y-%m-%d %H:%M:%S}", city.lat[p], city.lon[p], city.lat[q], city.lon[q]]
        for u, a, b, p, q in moves
    ]
    head = (
        "passenger_id,pickup_datetime,dropoff_datetime,"
        "pickup_latitude,pickup_longitude,dropoff_latitude,dropoff_longitude"
    )
    return write(folder / "rides.csv", head, rows), city, "trips", "person", [t for m in moves for t in m[1:3]]


def numbered_slots(folder):
    city = City("Berlin")
    rows = [
        [u, (s - datetime(2024, 3, 4)).days, (s.hour * 60 + s.minute) // 20, f"place {p}"] for u, s, _, p in city.rows
    ]
    rows.append(["p000", 2, 71, "place 1"])
    starts = [s for _, s, _, _ in city.rows] + [datetime(2024, 3, 6, 23, 40)]
    return write(folder / "slots.csv", ["person", "day", "slot", "place"], rows), city, "events", "person", starts


def grid_cells(folder):
    """As the data of a challenge: person, day, half hour, x and y of a cell."""
    city = City("Berlin")
    rows = [
        [int(u[1:]), (s - datetime(2024, 3, 4)).days, s.hour * 2 + s.minute // 30, p % 7, p // 7]
        for u, s, _, p in city.rows
    ]
    rows.append([0, 2, 47, 1, 1])
    starts = [s.replace(minute=s.minute // 30 * 30) for _, s, _, _ in city.rows] + [datetime(2024, 3, 6, 23, 30)]
    return write(folder / "grid.csv", ["uid", "d", "t", "x", "y"], rows), city, "events", "person", starts


def door_log(folder):
    city = City("New York")
    rows = [[f"{s:%m/%d/%Y %I:%M:%S %p}", u, f"Door {p}"] for u, s, _, p in city.rows]
    rows.append(["03/25/2024 01:00:00 AM", "p000", "Door 1"])
    path = write(folder / "doors.csv", ["Timestamp", "Badge", "Door"], rows)
    return path, city, "events", "person", [s for _, s, _, _ in city.rows] + [datetime(2024, 3, 25, 1)]


def twitter_style(folder):
    city = City("Berlin")
    rows = [[f"{s:%b %d, %Y %I:%M %p}", u, f"({city.lat[p]:.6f}, {city.lon[p]:.6f})"] for u, s, _, p in city.rows]
    path = write(folder / "odd.csv", ["Created At", "handle", "coords"], rows, "|")
    return path, city, "events", "person", [s for _, s, _, _ in city.rows]


def movebank(folder):
    city = City("Berlin")
    fixes = list(city.fixes(every=30))
    rows = [
        [i, "true", f"{city.utc(t):%Y-%m-%d %H:%M:%S}.000", x, y, "gps", "Ciconia", u]
        for i, (u, t, y, x) in enumerate(fixes)
    ]
    head = (
        "event-id,visible,timestamp,location-long,location-lat,sensor-type,individual-taxon,individual-local-identifier"
    )
    path = write(folder / "storks.csv", head, rows)
    return path, city, "fixes", "person", [city.utc(f[1]).replace(tzinfo=None) for f in fixes]


SHAPES = [
    check_ins, check_ins_without_kinds, foursquare, check_ins_of_the_world, taxis, gps_sessions, phone_records,
    diaries, survey_trips, bike_trips, polylines, plain_fixes, cabspotting, headerless, decimal_commas,
    date_and_clock, milliseconds, offsets, geolife, gpx, timeline, geojson, calls_beside_towers, rides,
    numbered_slots, grid_cells, door_log, twitter_style, movebank,
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_file_is_read_right_at_the_first_try(tmp_path, shape):
    path, city, record, unit, starts = shape(tmp_path)

    records, preparation, *_ = read_records(path)

    assert records.form.record == record
    assert unit is None or records.form.unit == unit
    assert city.users is None or len(records.users) == city.users
    assert len(records) == len(starts)
    assert hours(records.start).tolist() == hours_of(starts).tolist()  # by the local clock
    assert sum(preparation.dropped.values()) == 0
    if records.lat is not None and shape is not check_ins_of_the_world:
        assert abs(np.median(records.lat) - city.lat0) < 0.2
        assert abs(np.median(records.lon) - city.lon0) < 0.2
    visits = read_visits(path, rng=np.random.default_rng(1))
    assert visits.U > 0.8 * len(records.users)
    assert visits.form.unit == records.form.unit


def test_towers_are_joined_by_their_ids_and_tell_the_zone(tmp_path):
    path, city, *_ = phone_records(tmp_path)

    visits = read_visits(path, locations=tmp_path / "towers.csv")

    assert visits.tz == "Europe/Berlin"
    assert len(visits.locations) == 40
    number = {name: i for i, name in enumerate(visits.locations.ids)}
    for p in range(40):
        assert visits.locations.lat[number[f"BTS-{p}"]] == pytest.approx(city.lat[p], abs=1e-5)
    again = read_visits(path, locations=visits.locations)
    assert np.array_equal(again.place, visits.place)


def test_zones_may_be_polygons(tmp_path):
    path, city, *_ = plain_fixes(tmp_path)

    def square(x, y, name):
        ring = [[x - 5, y - 5], [x, y - 5], [x, y + 5], [x - 5, y + 5], [x - 5, y - 5]]
        return {"type": "Feature", "properties": {"zone": name}, "geometry": {"type": "Polygon", "coordinates": [ring]}}

    zones = [square(city.lon0, city.lat0, "west"), square(city.lon0 + 5, city.lat0, "east")]
    (tmp_path / "zones.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": zones}))

    visits = read_visits(path, locations=tmp_path / "zones.geojson")

    assert sorted(visits.locations.ids) == ["east", "west"]
    east = {u for u, _, _, p in city.rows if city.lon[p] > city.lon0}
    frame = visits.to_frame()
    assert set(frame[frame["place"] == "east"]["user"]) == east


def test_a_second_source_on_the_map_of_the_first(tmp_path):
    path, *_ = plain_fixes(tmp_path)
    first = read_visits(path, rng=np.random.default_rng(1))

    second = read_visits(path, locations=first.locations)

    assert second.locations is first.locations
    assert np.array_equal(second.place, first.place)


@pytest.mark.parametrize("how", ["gz", "bz2", "xz", "zip", "bom", "utf-16", "pandas", "polars", "arrow", "stdin"])
def test_the_same_rows_in_any_wrapping(tmp_path, monkeypatch, how):
    path, *_ = plain_fixes(tmp_path)
    expected = read_records(path)[0]
    content = path.read_bytes()
    source = tmp_path / f"other.{how}"
    if how in ("gz", "bz2", "xz"):
        source.write_bytes({"gz": gzip, "bz2": bz2, "xz": lzma}[how].compress(content))
    elif how == "zip":
        with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner.csv", content)
    elif how == "bom":
        source.write_bytes(b"\xef\xbb\xbf" + content)
    elif how == "utf-16":
        source.write_bytes(content.decode().encode("utf-16"))
    elif how == "stdin":
        source = "-"
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    else:
        frame = pd.read_csv(path, parse_dates=["datetime"])
        source = {"pandas": frame, "polars": pl.from_pandas(frame), "arrow": pa.Table.from_pandas(frame)}.get(
            how, source
        )

    read = read_records(source)[0]

    for column in ("user", "start", "end"):
        assert np.array_equal(getattr(read, column), getattr(expected, column))
    assert np.allclose(read.lat, expected.lat)


def text(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


LINES = "".join(
    f"ann{i % 3},2024-03-{4 + i // 24:02} {i % 24:02}:00:00,{52.5 + i * 1e-4:.4f},{13.4 + i * 1e-4:.4f}\n"
    for i in range(240)
)
HEAD = "user,time,lat,lon\n"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "E_EMPTY"),
        (b"\n\n\n", "E_EMPTY"),
        (HEAD, "E_EMPTY"),
        (b"\x00\x01\x02" * 99, "E_ENCODING"),
        (HEAD + LINES + "ann,2024", "E_TRUNCATED"),
        (gzip.compress((HEAD + LINES).encode())[:-40], "E_COMPRESSION"),
        ("user,time,lat,lat\n" + LINES, "E_COLUMNS"),
        ("user,time,lon,lat\n" + LINES.replace("13.4", "113.4"), "E_SWAPPED"),
        (HEAD + LINES.replace("52.5", "5400052.5"), "E_SWAPPED"),
        (
            HEAD + "".join(f"u{i % 3},0{1 + i % 9}/0{1 + i % 7}/2024 10:00,52.5{i},13.4{i}\n" for i in range(99)),
            "E_DATE",
        ),
        (HEAD + "".join(f"u{i % 3},{1709542800 * 1000 ** (i % 2)},52.5{i},13.4{i}\n" for i in range(99)), "E_DATE"),
        (
            HEAD + "".join(f"u{i % 3},2024-03-04T10:{i % 60:02}{'Z' * (i % 2)},52.5{i},13.4{i}\n" for i in range(99)),
            "E_TZ",
        ),
        ("when,what\n" + "".join(f"x{i},y{i}\n" for i in range(99)), "E_COLUMNS"),
        ("<html><body>no</body></html>", "E_FORMAT"),
        ('<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><gpx></gpx>', "E_XML"),
        ('{"a": 1, "b": [', "E_FORMAT"),
        (HEAD + LINES + f'ann,"2024{"x" * 30_000_000}', "E_TOO_LARGE"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("E_") else "",
)
def test_what_cannot_be_read_is_refused_with_a_code_and_without_a_value(tmp_path, content, code):
    with pytest.raises(ElsewhereError) as caught:
        read_visits(text(tmp_path, content))

    assert caught.value.code == code
    assert "ann" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_path_that_is_not_there_and_a_source_that_is_no_table(tmp_path):
    with pytest.raises(InvalidTraces) as caught:
        read_visits(tmp_path / "nothing.csv")
    assert caught.value.code == "E_OPEN"
    for source in (3, object(), None):
        with pytest.raises(InvalidParameter):
            read_visits(source)


def test_what_the_message_says_to_type_is_enough(tmp_path):
    lines = "".join(
        f"{i % 5},x{i % 7},2024-03-04 {i % 24:02}:00:00,{52.5 + i * 1e-4:.4f},{13.4 + i * 1e-4:.4f},{i * 1e-4:.4f}\n"
        for i in range(200)
    )
    path = text(tmp_path, lines)

    with pytest.raises(InvalidTraces) as caught:
        read_visits(path)

    assert caught.value.code == "E_COLUMNS"
    assert "#4 (decimal numbers)" in str(caught.value)
    records, *_ = read_records(path, columns="user=#1,lat=#4,lon=#5")
    assert len(records.users) == 5
    assert len(records) == 200


def test_both_readings_of_a_date_are_offered_and_taken(tmp_path):
    path = text(
        tmp_path, HEAD + "".join(f"u{i % 3},0{1 + i % 9}/0{1 + i % 7}/2024 10:00,52.5{i},13.4{i}\n" for i in range(99))
    )
    with pytest.raises(InvalidTraces, match='"%d/%m/%Y" or "%m/%d/%Y"'):
        read_visits(path)

    for date_format, third in (
        ("%m/%d/%Y", "2024-03-03T10:00"),
        ("%d/%m/%Y", "2024-03-03T10:00"),
        ("%m/%d/%Y %H:%M", "2024-03-03T10:00"),
    ):
        records, *_ = read_records(path, date_format=date_format)
        assert records.start[2].astype("datetime64[s]") == np.datetime64(third)
        last = {"%d": "2024-02-09T10:00", "%m": "2024-09-02T10:00"}[date_format[:2]]
        assert records.start[8].astype("datetime64[s]") == np.datetime64(last)


def test_everything_dropped_is_counted(tmp_path):
    bad = "ann,no time,52.5,13.4\nann,2024-03-04 10:00:00,north,13.4\n,2024-03-04 10:00:00,52.5,13.4\na,b\n1,2,3,4,5\n"
    bad += "ann9,2024-03-04 11:00:00,0,0\nann9,2024-03-04 12:00:00,52.5,13.4\nann9,2024-03-04 12:00:00,52.5,13.4\n"
    path = text(tmp_path, HEAD + LINES + bad)

    visits = read_visits(path)

    dropped = visits.preparation.dropped
    assert dropped["rows without a time"] == 1
    assert dropped["rows without a place"] == 1
    assert dropped["rows without a user"] == 1
    assert dropped["rows with too many or too few fields"] == 2
    assert dropped["repeated"] == 1
    assert sum("latitude 0" in reason for reason in dropped) == 1


def test_positions_that_cannot_be_cost_the_row_unless_it_names_its_place(tmp_path):
    odd = "ann1,2024-03-04 10:00:00,95,7.0\nann1,2024-03-04 11:00:00,0,0\n"
    path = text(tmp_path, HEAD + LINES + odd)
    assert sorted(read_records(path)[1].dropped.values()) == [1, 1]
    named = "".join(f"{line},{('inn', 'mill')[i % 2]}\n" for i, line in enumerate((LINES + odd).splitlines()))
    records, counts, *_ = read_records(text(tmp_path, "user,time,lat,lon,place\n" + named))
    assert (len(records), counts.dropped, int(np.isnan(records.lat).sum())) == (242, {}, 2)


def test_trips_go_as_a_whole(tmp_path):
    head = "person,start_time,end_time,start_lat,start_lon,end_lat,end_lon\n"
    rows = [
        f"p{i % 9},2024-03-04 {i % 20:02}:00,2024-03-04 {i % 20:02}:30,52.5{i},13.4,52.6,13.5{i}" for i in range(60)
    ]
    rows[3] = rows[3].replace("52.6,13.53", "0,0")
    rows[4] = rows[4].replace("52.6", "99")
    records, counts, *_ = read_records(text(tmp_path, head + "\n".join(rows) + "\n"))
    assert sorted(counts.dropped.values()) == [1, 1]
    assert np.bincount(records.trip).tolist() == [2] * 58


def test_trips_that_end_before_they_start_and_people_with_one_record(tmp_path):
    head = "person,start_time,end_time,origin,destination\n"
    rows = "".join(f"p{i},2024-03-04 {i % 20:02}:00,2024-03-04 {i % 20:02}:30,Z{i % 4},Z{i % 3}\n" for i in range(60))
    path = text(tmp_path, head + rows + "p1,2024-03-04 12:00,2024-03-04 11:00,Z1,Z2\n")

    visits = read_visits(path)

    assert visits.preparation.dropped == {"trips that end before they start": 1}
    assert visits.U == 60
    assert len(visits) == 120


def test_a_million_people_with_one_record_each(tmp_path):
    n = 1_000_000
    frame = pa.table(
        {
            "user": np.arange(n),
            "time": pa.array(np.datetime64("2024-03-04", "s") + np.arange(n) % 86_400),
            "lat": 52.5 + np.arange(n) % 1000 * 1e-4,
            "lon": 13.4 + np.arange(n) // 1000 * 1e-4,
        }
    )

    visits = read_visits(frame)

    assert visits.U == n
    assert len(visits) == n


def test_an_id_that_differs_in_every_row_is_no_user(tmp_path):
    rows = "".join(f"{i},2024-03-04 {i % 24:02}:00,{52.5 + i * 1e-4:.4f},13.4{i:03}\n" for i in range(200))

    records, preparation, *_ = read_records(text(tmp_path, "id,time,lat,lon\n" + rows))

    assert len(records.users) == 1
    assert any("one person" in note for note in preparation.notes)


def test_columns_may_be_named_in_text_or_as_a_mapping(tmp_path):
    path = text(tmp_path, LINES)
    for columns in ("user=#1,time=#2,lat=#3,lon=#4", {"user": "#1", "time": "#2", "lat": "#3", "lon": "#4"}):
        assert len(read_records(path, columns=columns)[0].users) == 3
    for columns in ("user", {"colour": "x"}, 7):
        with pytest.raises(InvalidParameter):
            read_records(path, columns=columns)
    with pytest.raises(InvalidTraces):
        read_records(path, columns="user=nobody")


def test_longitudes_of_the_east_beyond_180_and_a_given_zone(tmp_path):
    path = text(tmp_path, HEAD + LINES.replace("13.4", "286.0"))

    records, preparation, *_ = read_records(path, tz="America/New_York")

    assert records.tz == "America/New_York"
    assert np.all(records.lon < -70)
    assert any("180" in note for note in preparation.notes)


def test_utc_is_told_from_local_time_by_the_coordinates(tmp_path):
    local = read_records(text(tmp_path, HEAD + LINES))[0]
    utc = read_records(text(tmp_path, HEAD + LINES.replace(":00:00,", ":00:00Z,")))[0]

    assert local.tz == utc.tz == "Europe/Berlin"
    assert np.all(utc.start - local.start == 3600)


def test_swapped_columns_of_new_york_are_not_read_as_the_antarctic(tmp_path):
    lines = LINES.replace("52.5", "-73.9").replace("13.4", "40.7")

    with pytest.raises(InvalidTraces) as caught:
        read_visits(text(tmp_path, HEAD + lines))

    assert caught.value.code == "E_SWAPPED"
    right = read_records(text(tmp_path, HEAD + lines), columns="lat=lon,lon=lat")[0]
    assert right.tz == "America/New_York"


def test_a_typed_column_keeps_its_zone_without_positions():
    local = pd.to_datetime(["2024-03-04 23:30", "2024-03-05 00:30"] * 9)
    frame = pd.DataFrame(
        {"user": ["a", "b", "c"] * 6, "time": local.tz_localize("Asia/Tokyo"), "place": ["x", "y"] * 9}
    )

    records = read_records(frame)[0]

    assert np.array_equal(records.start, local.to_numpy().astype("datetime64[s]").astype(np.int64))


def test_offsets_that_are_written_tell_the_local_clock(tmp_path):
    rows = "".join(
        f"u{i % 3},2024-03-04T{i % 24:02}:30:00{'+09:00' if i % 2 else '-05:00'},p{i % 4}\n" for i in range(96)
    )

    records = read_records(text(tmp_path, "user,time,place\n" + rows))[0]

    assert hours(records.start).tolist() == [4] * 24


def test_trips_of_two_people_with_one_number_are_two(tmp_path):
    rows = "".join(
        f"u{u},{i // 5},2024-03-04 {10 + u}:{i:02}:00,{52.5 + i * 1e-3:.4f},{13.4 + u * 1e-2:.4f}\n"
        for u in range(3)
        for i in range(20)
    )

    records = read_records(text(tmp_path, "user,trip_id,time,lat,lon\n" + rows))[0]

    assert len(np.unique(records.trip)) == 12
    assert len(np.unique(np.column_stack([records.user, records.trip]), axis=0)) == 12


def test_no_thread_of_arrow_holds_what_is_pythons(tmp_path, monkeypatch):
    # such a thread aborts the process if Python ends before it lets go
    from pyarrow import csv as arrow_csv

    seen, memory, real, reader = [], [], arrow_csv.read_csv, pa.BufferReader

    def watched(file, reading, parsing, typing):
        seen.append((parsing.invalid_row_handler is not None, reading.use_threads))
        return real(file, reading, parsing, typing)

    def opened(content):
        memory.append(content)
        return reader(content)

    monkeypatch.setattr(arrow_csv, "read_csv", watched)
    monkeypatch.setattr(pa, "BufferReader", opened)
    read_records(text(tmp_path, HEAD + LINES))

    assert set(seen) == {(True, False)}
    assert all(
        isinstance(content, pa.Buffer) and content.is_mutable for content in memory
    )  # `bytes` could not be written


def test_real_files_are_read(shared_data):
    counts = {
        "foursquare_nyc/fsq_nyc_checkins.csv.gz": (147_938, 1083, "events"),
        "pf_tokyo/pf_tokyo_traces.csv.gz": (30_000, 1000, "events"),
        "pf_tokyo/sglt_input_trace.txt": (15_000, 500, "events"),
        "studentlife/studentlife_gps.parquet": (202_877, 49, "fixes"),
        "studentlife/studentlife_72slots.parquet": (151_992, 49, "fixes"),
        "studentlife/studentlife_dining_labels.csv.gz": (7_482, 31, "events"),
    }
    for name, expected in counts.items():
        records, preparation, *_ = read_records(shared_data / name)
        assert (len(records), len(records.users), records.form.record) == expected
        assert preparation.dropped == {}


@pytest.fixture
def shared_data():
    data = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not data.exists():
        pytest.skip("the real data are not here")
    return data


# --- columns of public files that nobody of the project had seen when the reader was made ----------------------------


def odd_files(folder):
    """Return name -> (path, users, record, unit, local starts) of files with the columns of public data sets."""
    c, b = City("New York"), City("Berlin")
    mv, ends = list(c.moves()), [t for m in c.moves() for t in m[1:3]]
    seen = [s for _, s, _, _ in c.rows]
    iso, us = "%Y-%m-%d %H:%M:%S", "%m/%d/%Y %I:%M:%S %p"
    late = ("p000", datetime(2024, 3, 25, 1), datetime(2024, 3, 25, 2), 0, 1)  # no month has this number
    made = {}

    def put(name, head, rows, users, record, unit, starts, sep=","):
        made[name] = (
            write(folder / f"{name}.csv", head, rows, sep),
            users,
            record,
            unit,
            starts,
        )

    put(
        "taxi zones",
        "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,PULocationID,DOLocationID,fare",
        [[2, f"{a:{iso}}", f"{e:{iso}}", 1, p + 1, q + 1, "8.5"] for _, a, e, p, q in mv],
        len(mv),
        "trips",
        "trip",
        ends,
    )
    put(
        "friends",
        None,
        [
            [int(u[1:]), f"{c.utc(s):%Y-%m-%dT%H:%M:%SZ}", f"{c.lat[p]:.8f}", f"{c.lon[p]:.8f}", 22847 + p]
            for u, s, _, p in c.rows
        ],
        30,
        "events",
        "person",
        seen,
        "\t",
    )
    put(
        "calls",
        None,
        [[10**9 + 7919 * int(u[1:]), f"{s:%Y%m%d%H%M%S}", 300 + p] for u, s, _, p in c.rows],
        30,
        "events",
        "person",
        seen,
        ";",
    )
    put(
        "survey",
        "HOUSEID,PERSONID,TDTRPNUM,STRTTIME,ENDTIME,ORIGTAZ,DESTTAZ",
        [
            [int(u[1:]) // 2, int(u[1:]) % 2 + 1, i, f"{a:%H%M}", f"{e:%H%M}", p, q]
            for i, (u, a, e, p, q) in enumerate(mv)
        ],
        30,
        "trips",
        "person",
        ends,
    )
    put(
        "staypoints",
        "id,user_id,started_at,finished_at,geom",
        [
            [
                i,
                u,
                s.replace(tzinfo=b.zone).isoformat(),
                e.replace(tzinfo=b.zone).isoformat(),
                f"POINT ({b.lon[p]} {b.lat[p]})",
            ]
            for i, (u, s, e, p) in enumerate(b.rows)
        ],
        30,
        "visits",
        "person",
        [s for _, s, _, _ in b.rows],
    )
    put(
        "wireless",
        "session_id,client_mac,ap_name,connect_time,disconnect_time",
        [[i, f"aa:{u}", f"AP-{p}", f"{s:{iso}}", f"{e:{iso}}"] for i, (u, s, e, p) in enumerate(c.rows)],
        30,
        "visits",
        "person",
        seen,
    )
    put(
        "smart cards",
        "card_id,tap_in_time,tap_in_station,tap_out_time,tap_out_station,fare",
        [[f"C{u}", f"{a:{iso}}", f"S{p}", f"{e:{iso}}", f"S{q}", 2.1] for u, a, e, p, q in mv],
        30,
        "trips",
        "person",
        ends,
    )
    put(
        "taxi orders",
        "Trip ID,Taxi ID,Trip Start Timestamp,Trip End Timestamp,Pickup Community Area,Pickup Centroid Latitude,"
        "Pickup Centroid Longitude,Dropoff Centroid Latitude,Dropoff Centroid  Longitude",
        [
            [f"{i:040x}", f"{u}x", f"{a:{us}}", f"{e:{us}}", p, c.lat[p], c.lon[p], c.lat[q], c.lon[q]]
            for i, (u, a, e, p, q) in enumerate([*mv, late])
        ],
        None,
        "trips",
        "vehicle-day",
        [*ends, *late[1:3]],
    )
    put(
        "panel",
        "cuebiq_id,device_type,lat,lng,accuracy,timestamp,tz_offset",
        [
            [u, 1, y, x, 12, int(c.utc(t).timestamp()), int(t.replace(tzinfo=c.zone).utcoffset().total_seconds())]
            for u, t, y, x in c.fixes()
        ],
        30,
        "fixes",
        "person",
        [t for _, t, _, _ in c.fixes()],
    )
    return made


def test_columns_of_public_files(tmp_path):
    for name, (path, users, record, unit, starts) in odd_files(tmp_path).items():
        records, *_ = read_records(path)

        assert (records.form.record, records.form.unit) == (record, unit), name
        assert users is None or len(records.users) == users, name
        assert hours(records.start).tolist() == hours_of(starts).tolist(), name


def test_rows_that_stand_for_themselves(tmp_path):
    city = City("New York")
    rows = [[f"{s:%Y-%m-%d %H:%M}", city.lat[p], city.lon[p], f"B0{p % 2}"] for _, s, _, p in city.rows]
    path = write(tmp_path / "pickups.csv", ["Date/Time", "Lat", "Lon", "Base"], rows)

    with pytest.raises(InvalidTraces, match='`unit` "trip"'):  # two values are categories, no people
        read_visits(path)
    visits = read_visits(path, unit="trip")

    assert visits.form.unit == "trip"
    assert visits.U > 0.9 * len(rows)


def test_a_folder_of_tables_with_other_columns_says_so(tmp_path):
    plain_fixes(tmp_path)
    write(
        tmp_path / "other.csv",
        ["person", "when", "place"],
        [["a", "2024-03-04 10:00", "x"], ["b", "2024-03-04 11:00", "y"]],
    )

    *_, preparation, _, _ = read_records(tmp_path)

    assert any("other table" in note for note in preparation.notes)
