"""
Write visits as a file writes its records: in the columns and in the kind of record that came in.

Tables are CSV and Parquet; GeoJSON, GPX and SGLT by the ending of the path. The same visits give the same bytes; files
appear whole or not at all, and are for their owner alone.
"""

import gzip
import io
import json
import re
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.times import by_zone, zones_at
from elsewhere.data.visits import DAY, Form, Ints, Visits, zone_of
from elsewhere.errors import InvalidParameter, InvalidTraces
from elsewhere.files import write_files

# roles and names of the columns of each kind of record, where no file says which it had
ROLES = {
    "fixes": {"user": "user", "start": "time", "lat": "lat", "lon": "lon", "place": "place"},
    "events": {"user": "user", "start": "time", "place": "place", "lat": "lat", "lon": "lon", "kind": "kind"},
    "visits": {
        "user": "user", "start": "start", "end": "end", "place": "place", "lat": "lat", "lon": "lon", "kind": "kind",
    },
    "trips": {
        "user": "user", "start": "start", "end": "end", "place": "start_place", "lat": "start_lat", "lon": "start_lon",
        "end_place": "end_place", "end_lat": "end_lat", "end_lon": "end_lon",
    },
}  # fmt: skip
SGLT_MINUTES = 20  # minutes of a slot of SGLT
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet runs text that begins like this; a number it does not
NUMBER = re.compile(r"[+-]?\d[\d.,]*(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ENDINGS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".geojson": "geojson",
    ".json": "geojson",
    ".gpx": "gpx",
    ".trace": "sglt",
}


def write_visits(visits: Visits, path: str | PathLike[str], *, like: Visits | Form | None = None) -> None:
    """
    Write visits to a file in the columns and in the kind of record that they, or others, came in.

    Fixes are written as often as they were seen: a visit has one fix per usual interval. Trips are one row each, with
    both ends, or a line of points. Times are ISO 8601 by the local clock, with their offset from UTC where the file had
    one. Columns of which visits know nothing, such as an accuracy, are left out. Text that a spreadsheet would run as a
    formula gets a leading ' in CSV.

    Parameters
    ----------
    visits
        What to write.
    path
        Where to; the ending says how: .csv, .tsv, .parquet, .geojson (a line per user, with its times), .gpx (a track
        per user), .trace (SGLT: slots of 20 minutes, places beside); `.gz` after it compresses.
    like
        Visits, or their form, whose columns and kind of record to take; by default the form of `visits`.

    Examples
    --------
    >>> import tempfile
    >>> from elsewhere.data.visits import Locations
    >>> calls = Visits([0, 1], [60, 3600], [60, 3600], [0, 1], Locations(n=2, ids=["mast 1", "mast 2"]))
    >>> path = Path(tempfile.mkdtemp()) / "calls.csv"
    >>> write_visits(calls, path, like=Form("events", columns={"start": "when", "user": "phone", "place": "cell"}))
    >>> path.read_text().splitlines()
    ['when,phone,cell', '1970-01-01T00:01:00,0,mast 1', '1970-01-01T01:00:00,1,mast 2']

    """
    if not isinstance(visits, Visits):
        raise InvalidParameter(f"`visits` must be `Visits`, got {type(visits).__name__}.")
    form = visits.form if like is None else like.form if isinstance(like, Visits) else like
    if not isinstance(form, Form):
        raise InvalidParameter(f"`like` must be `Visits` or their `Form`, got {type(like).__name__}.")
    try:
        path = Path(path)
    except TypeError:
        raise InvalidParameter(f"`path` must be the path of a file, got {type(path).__name__}.") from None
    import pyarrow.parquet

    packed = path.suffix.lower() == ".gz"
    kind = ENDINGS.get((path.with_suffix("") if packed else path).suffix.lower())
    if kind is None:
        raise InvalidParameter(f"`path` must end in one of {', '.join(ENDINGS)}, got {path.name!r}.")
    if kind in ("csv", "tsv", "parquet"):
        table, out = to_table(visits, form), io.BytesIO()
        if kind == "parquet":
            pyarrow.parquet.write_table(table, out, compression="zstd")
        files = {path.name: out.getvalue() or _to_csv(table, "\t" if kind == "tsv" else ",")}
    elif kind == "sglt":
        files = _to_sglt(visits, path)
    else:
        files = {path.name: (_to_geojson if kind == "geojson" else _to_gpx)(visits).encode()}
    if packed:
        files[path.name] = gzip.compress(files[path.name], mtime=0)
    write_files(path.parent, files)


def lost_roles(visits: Visits) -> set[str]:
    """Return the roles of columns of which these visits know nothing."""
    lost = set[str]()
    if visits.locations.lat is None:
        lost |= {"lat", "lon", "end_lat", "end_lon", "point", "end_point", "points"}
    if visits.locations.kind is None:
        lost |= {"kind"}
    if visits.trip is None:
        lost |= {"trip", "occupied"}
    return lost


def to_table(visits: Visits, form: Form) -> Any:
    """Return an Arrow table of the records of visits, in the columns of a form."""
    import pyarrow as pa

    first, last, start, end = _records(visits, form)
    where, trip = visits.locations, np.asarray(visits.trip)
    columns = dict(form.columns) or ROLES[form.record]
    clock_only = "date" in columns
    ids = np.array([str(i) for i in range(visits.R)] if where.ids is None else where.ids, dtype=object)
    if where.kind is not None and "kind" in columns:  # the kind of "district:activity" has a column of its own
        ids[:] = [name.removesuffix(f":{kind}") for name, kind in zip(ids, where.kind, strict=True)]
    users = np.array([str(label) for label in visits.users], dtype=object)

    def texts(words: NDArray[Any], codes: NDArray[Any]) -> Any:
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(words, pa.string()))

    def times(seconds: Ints) -> Any:
        if form.slot:
            return pa.array(seconds % DAY // form.slot)
        if clock_only:
            return pa.array((seconds % DAY).astype(np.int32), pa.time32("s"))
        if not form.offset:
            return pa.array(seconds.astype("datetime64[s]"))
        zone = "UTC" if form.zones or "utc" in columns else re.sub(r"^UTC(?=[+-])", "", visits.tz)
        return pa.array(utc(seconds), pa.timestamp("s", tz=zone))

    zones = [visits.tz] * visits.R
    if form.zones and where.lat is not None and where.lon is not None:
        zones = [zone or visits.tz for zone in zones_at(where.lat, where.lon)]

    def utc(seconds: Ints) -> Ints:
        rows = last if seconds is end else first
        return by_zone(seconds, np.array(zones, dtype=object), visits.place[rows], to_utc)

    def side(values: Any, rows: Ints) -> Any:
        return pa.array(values[visits.place[rows]])

    fill: dict[str, Callable[[], Any]] = {
        **dict.fromkeys(("user", "file"), lambda: texts(users, visits.user[first])),
        **dict.fromkeys(("start", "slot"), lambda: times(start)),
        "end": lambda: times(end),
        "utc": lambda: pa.array(utc(start), pa.timestamp("s", tz="UTC")),
        "date": lambda: pa.array(start.astype("datetime64[s]").astype("datetime64[D]")),
        "end_date": lambda: pa.array(end.astype("datetime64[s]").astype("datetime64[D]")),
        "duration": lambda: pa.array((end - start) // (60 if "min" in columns["duration"].lower() else 1)),
        "offset": lambda: pa.array((start - utc(start)) // 60),
        "day": lambda: pa.array(start // DAY - start.min() // DAY),
        "lat": lambda: side(where.lat, first),
        "lon": lambda: side(where.lon, first),
        "place": lambda: texts(ids, visits.place[first]),
        "kind": lambda: texts(np.array(where.kind, dtype=object), visits.place[first]),
        "end_lat": lambda: side(where.lat, last),
        "end_lon": lambda: side(where.lon, last),
        "end_place": lambda: texts(ids, visits.place[last]),
        "trip": lambda: pa.array(trip[first], mask=trip[first] < 0),
        "occupied": lambda: pa.array((trip[first] >= 0).astype(np.int8)),
        "point": lambda: pa.array(_points(visits, first)),
        "end_point": lambda: pa.array(_points(visits, last)),
        "points": lambda: pa.array(_lines(visits, form, first, last)),
    }
    known = columns.keys() & fill.keys() - lost_roles(visits)
    return pa.table({name: fill[role]() for role, name in columns.items() if role in known})


def _records(visits: Visits, form: Form) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the first and the last visit of each record of a file, and when it begins and ends."""
    rows = np.arange(len(visits))
    if form.record == "trips" or "points" in form.columns:
        if visits.trip is None or not np.any(visits.trip >= 0):
            raise InvalidTraces("visits without trips cannot be written as trips (`like`).", code="E_COLUMNS")
        rows = rows[visits.trip >= 0]
        rows = rows[np.lexsort((rows, visits.trip[rows], visits.user[rows]))]
        user, trip = visits.user[rows], visits.trip[rows]
        new = np.append(True, (user[1:] != user[:-1]) | (trip[1:] != trip[:-1]))
        first, last = rows[new], rows[np.append(new[1:], True)]
        order = np.lexsort((visits.start[first], visits.user[first]))
        first, last = first[order], last[order]
        return first, last, visits.start[first], visits.end[last]
    if form.record != "fixes":
        return rows, rows, visits.start, visits.end
    # a visit that was seen in fixes: one at its beginning, and one each interval until its end
    length = visits.end - visits.start
    times = length // form.interval + 1 if form.interval > 0 else 1 + (length > 0)
    rows = np.repeat(rows, times)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    when = visits.start[rows] + nth * (form.interval if form.interval > 0 else length[rows])
    return rows, rows, when, when


def to_utc(seconds: Ints, tz: str) -> Ints:
    """Return local seconds in UTC: of an hour that the clock has twice the first, of one that it skips its end."""
    if tz == "UTC":
        return seconds
    import pandas as pd

    local = pd.DatetimeIndex(seconds.astype("datetime64[s]"))
    first = np.ones(len(local), dtype=bool)
    zoned = local.tz_localize(zone_of(tz), ambiguous=first, nonexistent="shift_forward")
    return np.asarray(zoned.tz_convert("UTC").tz_localize(None), dtype="datetime64[s]").astype(np.int64)


def _points(visits: Visits, rows: Ints) -> list[str]:
    """Return positions as well-known text."""
    lat, lon = np.asarray(visits.locations.lat).tolist(), np.asarray(visits.locations.lon).tolist()
    return [f"POINT ({lon[r]} {lat[r]})" for r in visits.place[rows].tolist()]


def _lines(visits: Visits, form: Form, first: Ints, last: Ints) -> list[str]:
    """Return each trip as a list of points, longitude first, one per interval."""
    lat, lon = np.asarray(visits.locations.lat).tolist(), np.asarray(visits.locations.lon).tolist()
    trip, interval = np.asarray(visits.trip), max(1, form.interval)
    lines = []
    for a, b in zip(first.tolist(), last.tolist(), strict=True):
        own = a + np.flatnonzero(trip[a : b + 1] == trip[a])
        # until the next visit begins: a point that is missing must not shift those after it
        until = np.append(visits.start[own][1:], visits.end[b] + interval)
        times = np.maximum(1, np.round((until - visits.start[own]) / interval).astype(np.int64))
        places = np.repeat(visits.place[own], times).tolist()
        lines.append(json.dumps([[lon[r], lat[r]] for r in places]))
    return lines


def _to_csv(table: Any, separator: str) -> bytes:
    """Return a table as CSV: times in ISO 8601, with their offset where they have a zone."""
    import pyarrow as pa
    import pyarrow.csv
    from pyarrow import compute

    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_timestamp(column.type):
            zone = column.type.tz
            text = compute.strftime(column, format="%Y-%m-%dT%H:%M:%S" + ("%z" if zone not in (None, "UTC") else ""))
            if zone == "UTC":
                text = compute.binary_join_element_wise(text, "Z", "")
            elif zone is not None:
                text = compute.replace_substring_regex(text, r"([+-]\d\d)(\d\d)$", r"\1:\2")
            columns[name] = text
        elif pa.types.is_dictionary(column.type):
            column = column.combine_chunks()
            words = [_no_formula(word) for word in column.dictionary.to_pylist()]
            columns[name] = pa.DictionaryArray.from_arrays(column.indices, pa.array(words)).cast(pa.string())
        else:
            columns[name] = column
    unnamed = 2 * sum(name.startswith("#") for name in columns) >= len(columns)  # numbers stand for names
    for quotes in ("none", "needed"):  # "needed" quotes every text, "none" refuses those that need it
        out = io.BytesIO()
        options = pyarrow.csv.WriteOptions(
            include_header=not unnamed, delimiter=separator, quoting_style=quotes, quoting_header=quotes
        )
        try:
            pyarrow.csv.write_csv(pa.table(columns), out, options)
            break
        except pa.ArrowInvalid:
            if quotes == "needed":
                raise
    return out.getvalue()


def _no_formula(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) and not NUMBER.fullmatch(text) else text


def _tracks(visits: Visits) -> list[tuple[str, list[tuple[float, float, str]]]]:
    """Return for each user the points of the way, where visits begin and where they end: latitude, longitude, UTC."""
    where = visits.locations
    if where.lat is None or where.lon is None:
        raise InvalidTraces("places without latitude and longitude cannot be drawn as tracks.", code="E_COLUMNS")
    rows = np.repeat(np.arange(len(visits)), 1 + (visits.end > visits.start))
    ends = np.append(False, rows[1:] == rows[:-1])
    seconds = to_utc(np.where(ends, visits.end[rows], visits.start[rows]), visits.tz)
    stamps = np.datetime_as_string(seconds.astype("datetime64[s]")).tolist()
    lat, lon = where.lat[visits.place[rows]].tolist(), where.lon[visits.place[rows]].tolist()
    points = list(zip(lat, lon, (f"{stamp}Z" for stamp in stamps), strict=True))
    bounds = np.searchsorted(visits.user[rows], np.arange(visits.U + 1))
    tracks = [(str(visits.users[u]), points[bounds[u] : bounds[u + 1]]) for u in range(visits.U)]
    return [(user, track) for user, track in tracks if track]


def _to_geojson(visits: Visits) -> str:
    """Return GeoJSON (RFC 7946): a LineString per user (a Point for one fix), with the UTC time of each vertex."""
    features = []
    for user, points in _tracks(visits):
        line: list[Any] = [[lon, lat] for lat, lon, _ in points]
        one = len(line) == 1
        geometry = {"type": "Point" if one else "LineString", "coordinates": line[0] if one else line}
        properties = {"user": user, "datetimes": [stamp for *_, stamp in points]}
        features.append({"type": "Feature", "properties": properties, "geometry": geometry})
    return json.dumps({"type": "FeatureCollection", "features": features}) + "\n"


def _to_gpx(visits: Visits) -> str:
    """Return GPX 1.1: a track per user."""
    tracks = []
    for user, points in _tracks(visits):
        name = escape(NOT_IN_XML.sub("", user))
        fixes = "".join(f'<trkpt lat="{a}" lon="{b}"><time>{stamp}</time></trkpt>\n' for a, b, stamp in points)
        tracks.append(f"<trk><name>{name}</name><trkseg>\n{fixes}</trkseg></trk>\n")
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="elsewhere" '
    return f'{head}xmlns="http://www.topografix.com/GPX/1/1">\n{"".join(tracks)}</gpx>\n'


def _to_sglt(visits: Visits, path: Path) -> dict[str, bytes]:
    """Return lines `user,time,location` of numbers from 1, a user for each day, and the places beside, `x, y` in km."""
    traces = visits.traces(step_minutes=SGLT_MINUTES)
    row, slot = np.nonzero(traces.r >= 0)
    lines = zip((row + 1).tolist(), (slot + 1).tolist(), (traces.r[row, slot] + 1).tolist(), strict=True)
    files = {path.name: "".join(f"{u},{t},{r}\n" for u, t, r in lines).encode()}
    if visits.locations.has_coordinates:
        places = "".join(f"{x}, {y}\n" for x, y in visits.locations.planar().tolist())
        stem = path.name.split(".")[0]
        files = {f"{stem}_locations.txt": places.encode(), **files}
    return files
