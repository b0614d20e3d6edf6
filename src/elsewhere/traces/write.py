"""
Write traces: CSV and Parquet in the columns they came in, SGLT, GeoJSON and GPX; the same bytes from the same traces.

Files hold no clock time, host or library of the writer's, appear whole or not at all, and are for their owner alone.
"""

import gzip
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from elsewhere.errors import InvalidParameter, InvalidTraces, OutputRefused, require_choice
from elsewhere.files import write_files
from elsewhere.traces.clock import Times
from elsewhere.traces.columns import NUMBER, ROLES
from elsewhere.traces.model import MINUTES_PER_DAY, Floats, Ints, Traces
from elsewhere.traces.places import name_beside
from elsewhere.traces.zones import zone_of

FORMATS = {
    "csv": (".csv",),
    "tsv": (".tsv",),
    "parquet": (".parquet", ".pq"),
    "sglt": (".trace",),
    "geojson": (".geojson", ".json"),
    "gpx": (".gpx",),
}
FIXES = {"user": "uid", "time": "datetime", "lat": "lat", "lon": "lng", "place": "location"}
SLOTS = {"user": "uid", "slot": "slot", "place": "loc"}
NO_DATE = np.datetime64("2001-01-01", "D")  # a Monday: traces that know no date start on it
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, eq=False)
class Instants:
    """All instants of traces: row, slot, place (-1 missing), local wall clock, UTC (NaT where the clock skips it)."""

    row: Ints
    slot: Ints
    place: Ints
    wall: Times
    utc: Times

    def select(self, chosen: Any) -> "Instants":
        """The instants of a mask."""
        return Instants(*(getattr(self, name)[chosen] for name in ("row", "slot", "place", "wall", "utc")))


def write_traces(
    traces: Traces,
    path: str | PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 (the word users expect)
    ids: Sequence[Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> None:
    """
    Traces as a file: whole or not at all, readable by its owner only, the same bytes from the same traces.

    A table has one line per known instant, in columns `uid, datetime, lat, lng, location` (those of scikit-mobility,
    local wall clock); for traces without geographic coordinates or of less than a whole day `uid, slot, loc`, with
    `date` or `day` where a user has several rows, and place -1 where an instant is missing. `columns` chooses others:
    `Preparation.columns` gives back what was read.

    Traces without dates start on Monday 2001-01-01, a second row of a user on the day after. Ids that a spreadsheet
    would run as a formula get a leading ' in CSV; numbers are left alone.

    Parameters
    ----------
    traces
        What to write.
    path
        Where to; `.gz` at the end compresses.
    format
        "csv", "tsv", "parquet", "sglt" (with the file of places beside it), "geojson" (one LineString per row) or
        "gpx" (one track per row); by default told by the ending of `path`.
    ids
        One id per row in place of the users' own.
    columns
        Role -> column name, in order, for the roles user, time (local), utc, local, date, slot, trace (number of the
        row within its user), lat, lon, geometry, place.

    Examples
    --------
    >>> import tempfile
    >>> from elsewhere import Locations
    >>> town = Traces([[0, 1, 1]], Locations(n=2), users=["ann"])
    >>> path = Path(tempfile.mkdtemp()) / "traces.csv"
    >>> write_traces(town, path)
    >>> path.read_text().split()
    ['uid,slot,loc', 'ann,0,0', 'ann,1,1', 'ann,2,1']

    """
    path = Path(path)
    packed = path.suffix.lower() == ".gz"
    kind = format or _told_by(path.with_suffix("") if packed else path)
    require_choice("format", kind, tuple(FORMATS))
    if columns is not None and kind not in ("csv", "tsv", "parquet"):
        raise InvalidParameter(f"`columns` belong to tables; {kind!r} has none.")
    names = _names(traces, ids)
    if kind == "sglt":
        files = _sglt(traces, path, one_user_per_row=ids is not None)
    elif kind in ("geojson", "gpx"):
        write: Callable[[Traces, list[str], Instants], str] = _geojson if kind == "geojson" else _gpx
        files = {path.name: write(traces, names, _instants(traces, names)).encode()}
    else:
        table = _table(traces, names, columns)
        files = {path.name: _parquet(table) if kind == "parquet" else _csv(table, "\t" if kind == "tsv" else ",")}
    if packed:
        files[path.name] = gzip.compress(files[path.name], mtime=0)
    write_files(path.parent, files)


def _told_by(path: Path) -> str:
    for kind, endings in FORMATS.items():
        if path.suffix.lower() in endings:
            return kind
    raise InvalidParameter(f"`format` must be one of {', '.join(FORMATS)}: the ending of {path.name!r} tells none.")


def _names(traces: Traces, ids: Sequence[Any] | None) -> list[str]:
    if ids is not None and len(ids) != len(traces):
        raise InvalidTraces(f"`ids` must hold one id per row: {len(traces)} rows, {len(ids)} ids.", code="E_SHAPE")
    names = [str(label) for label in (traces.users if ids is None else ids)]
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        raise InvalidTraces("a user id holds half a character (a lone surrogate).", code="E_USER") from None
    return names


def _number_in_user(names: list[str]) -> Ints:
    """0 for the first row of a user, 1 for the second, ..."""
    seen: dict[str, int] = {}
    number = np.empty(len(names), dtype=np.int64)
    for row, name in enumerate(names):
        number[row] = seen[name] = seen.get(name, -1) + 1
    return number


def _dates(traces: Traces, names: list[str]) -> Times:
    return np.asarray(NO_DATE + _number_in_user(names) if traces.dates is None else traces.dates)


def _instants(traces: Traces, names: list[str]) -> Instants:
    import pandas as pd

    N, L = traces.r.shape
    hour, minute = (int(part) for part in traces.start.split(":"))
    seconds = 60 * (60 * hour + minute) + 60 * traces.step_minutes * np.arange(L)
    offset = np.round(seconds * 1e6).astype("timedelta64[us]")
    wall = (_dates(traces, names).astype("datetime64[us]")[:, None] + offset).ravel()
    utc = wall
    if traces.tz != "UTC":
        zone, first = zone_of(traces.tz), np.ones(N * L, dtype=bool)
        known = pd.DatetimeIndex(wall).tz_localize(zone, ambiguous=first, nonexistent="NaT")
        utc = np.asarray(known.tz_convert("UTC").tz_localize(None), dtype="datetime64[us]")
    row, slot = np.divmod(np.arange(N * L), L)
    return Instants(row, slot, traces.r.ravel().astype(np.int64), wall, utc)


def _usual_columns(traces: Traces, names: list[str]) -> dict[str, str]:
    whole_days = traces.start == "00:00" and traces.step_minutes * traces.L == MINUTES_PER_DAY
    if traces.locations.lat is not None and whole_days:
        return FIXES
    if traces.dates is not None:
        return {"user": "uid", "date": "date", **SLOTS}
    return {"user": "uid", "trace": "day", **SLOTS} if len(set(names)) < len(names) else SLOTS


def _table(traces: Traces, names: list[str], columns: Mapping[str, str] | None) -> list[tuple[str, str, Any]]:
    """(Role, name, values) of every column, one value per instant."""
    columns = _usual_columns(traces, names) if columns is None else columns
    if not ({"user"} <= set(columns) <= set(ROLES)) or len(set(columns.values())) < len(columns):
        raise InvalidParameter(
            f"`columns` must give the roles {', '.join(ROLES)}, or some of them, user always, a name each, no two "
            f"equal, got {dict(columns)!r}."
        )
    instants = _instants(traces, names)
    if "slot" not in columns:
        # an instant that is unknown, or that the clock skipped, has no line
        instants = instants.select((instants.place >= 0) & ~np.isnat(instants.utc))
    return [(role, name, _values(role, traces, names, instants)) for role, name in columns.items()]


def _values(role: str, traces: Traces, names: list[str], instants: Instants) -> Any:
    if role == "user":
        return np.array(names, dtype=object)[instants.row]
    if role == "accuracy":  # nobody has measured a fake
        return np.full(len(instants.row), np.nan)
    if role == "date":
        return _dates(traces, names)[instants.row]
    if role == "trace":
        return _number_in_user(names)[instants.row]
    if role in ("lat", "lon", "geometry"):
        lat, lon = (np.append(side, np.nan)[instants.place] for side in _degrees(traces))
        if role == "geometry":
            return np.array([f"POINT ({x} {y})" for x, y in zip(lon.tolist(), lat.tolist(), strict=True)], dtype=object)
        return lat if role == "lat" else lon
    return {"time": instants.wall, "local": instants.wall, "utc": instants.utc}.get(
        role, instants.slot if role == "slot" else instants.place
    )


def _degrees(traces: Traces) -> tuple[Floats, Floats]:
    if traces.locations.lat is None or traces.locations.lon is None:
        raise InvalidParameter("these places have no latitude and longitude: write them as slots, or as SGLT.")
    lon = traces.locations.lon
    return traces.locations.lat, np.where(np.abs(lon) > 180, (lon + 180) % 360 - 180, lon)


def _stamps(time: Times, *, between: str = "T", after: str = "") -> list[str]:
    whole = np.all(np.isnat(time) | (time == time.astype("datetime64[s]")))
    text = np.datetime_as_string(time, unit="s" if whole else "us").tolist()
    return ["" if stamp == "NaT" else stamp.replace("T", between) + after for stamp in text]


def _csv(table: list[tuple[str, str, Any]], delimiter: str) -> bytes:
    head = delimiter.join(_quoted(name, delimiter) for _, name, _ in table)
    columns = [_text(role, values, delimiter) for role, _, values in table]
    lines = map(delimiter.join, zip(*columns, strict=True))
    return "\n".join([head, *lines, ""]).encode()


def _quoted(text: str, delimiter: str) -> str:
    # `csv.writer` would let a lone carriage return through
    splits = any(mark in text for mark in (delimiter, '"', "\n", "\r"))
    return '"' + text.replace('"', '""') + '"' if splits else text


def _text(role: str, values: Any, delimiter: str) -> list[str]:
    if role in ("time", "local"):
        return _stamps(values, between=" ")
    if role == "utc":
        return _stamps(values, after="Z")
    if role == "user":
        return [_quoted(_harmless(value), delimiter) for value in values.tolist()]
    return ["" if value != value else str(value) for value in values.tolist()]


def _harmless(label: str) -> str:
    # a spreadsheet runs text that begins like this; a number it does not
    runs = label.startswith(("=", "+", "-", "@", "\t", "\r")) and not re.fullmatch(NUMBER, label, re.ASCII)
    return f"'{label}" if runs else label


def _parquet(table: list[tuple[str, str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {
        "user": pa.string(),
        "time": pa.timestamp("us"),
        "local": pa.timestamp("us"),
        "utc": pa.timestamp("us", "UTC"),
        "date": pa.date32(),
        "lat": pa.float64(),
        "lon": pa.float64(),
        "geometry": pa.string(),
    }
    columns = [pa.array(values, kinds.get(role, pa.int32()), from_pandas=True) for role, _, values in table]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, names=[name for _, name, _ in table]), sink, compression="zstd")
    return bytes(sink.getvalue())


def _sglt(traces: Traces, path: Path, *, one_user_per_row: bool) -> dict[str, bytes]:
    """Lines `user,time,location` of numbers from 1, without the missing ones; beside it the places, `x, y` in km."""
    if not one_user_per_row and traces.U < len(traces):
        raise OutputRefused("SGLT knows one trace per user; select one row of each, or give `ids`.")
    row, slot = np.nonzero(traces.r >= 0)
    lines = [f"{u},{t},{r}\n" for u, t, r in zip(row + 1, slot + 1, traces.r[row, slot] + 1, strict=True)]
    files = {path.name: "".join(lines).encode()}
    if traces.locations.has_coordinates:
        ending = ".txt" if path.suffix.lower() in (".txt", ".gz") else ""
        places = "".join(f"{x}, {y}\n" for x, y in traces.locations.planar().tolist())
        files = {f"{name_beside(path)}{ending}": places.encode(), **files}
    return files


def _stretches(traces: Traces, instants: Instants) -> list[Ints]:
    """The known instants of each row."""
    known = (instants.place >= 0) & ~np.isnat(instants.utc)
    return [np.flatnonzero(part) + row * traces.L for row, part in enumerate(known.reshape(-1, traces.L))]


def _geojson(traces: Traces, names: list[str], instants: Instants) -> str:
    """RFC 7946: one feature per row, a LineString (a Point for one instant), with the UTC time of each vertex."""
    lat, lon = (np.round(side, 6) for side in _degrees(traces))
    stamps = _stamps(instants.utc, after="Z")
    features = []
    for name, known in zip(names, _stretches(traces, instants), strict=True):
        line = [[float(lon[r]), float(lat[r])] for r in instants.place[known]]
        shape: dict[str, Any] = {"type": "LineString", "coordinates": line}
        if len(line) == 1:
            shape = {"type": "Point", "coordinates": line[0]}
        properties = {"uid": name, "datetimes": [stamps[i] for i in known]}
        features.append({"type": "Feature", "geometry": shape if line else None, "properties": properties})
    return json.dumps({"type": "FeatureCollection", "features": features}, separators=(",", ":"))


def _gpx(traces: Traces, names: list[str], instants: Instants) -> str:
    """GPX 1.1: one track per row, a new segment after every gap, times in UTC."""
    lat, lon = _degrees(traces)
    at = [f'<trkpt lat="{y:.6f}" lon="{x:.6f}"><time>' for y, x in zip(lat.tolist(), lon.tolist(), strict=True)]
    stamps = _stamps(instants.utc, after="Z")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append('<gpx version="1.1" creator="elsewhere" xmlns="http://www.topografix.com/GPX/1/1">')
    for name, known in zip(names, _stretches(traces, instants), strict=True):
        lines.append(f"<trk><name>{escape(NOT_IN_XML.sub('?', name))}</name>")
        for segment in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):
            points = [f"{at[instants.place[i]]}{stamps[i]}</time></trkpt>" for i in segment]
            lines += ["<trkseg>", *points, "</trkseg>"]
        lines.append("</trk>")
    return "\n".join([*lines, "</gpx>", ""])
