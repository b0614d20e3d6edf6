"""
Write traces: CSV and Parquet in the columns they came in, SGLT, GeoJSON and GPX; the same bytes from the same traces.

Files hold no clock time, host or library of the writer's, appear whole or not at all, and are for their owner alone.
Prepared traces are kept in a folder that `read_traces` reads back to the last bit:

    traces.parquet, traces.csv   one line per slot: user, date, slot, place (-1 missing)
    locations.csv                the places, in the order of their numbers
    prepare.json                 clock, settings, counts, and the sha256 of the files above; written last
"""

import csv
import gzip
import io
import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from elsewhere.checkpoint import hash_file
from elsewhere.errors import InvalidParameter, InvalidTraces, OutputRefused, require_choice
from elsewhere.files import read_index, write_files
from elsewhere.traces.clock import TIMES_AS, Times
from elsewhere.traces.columns import AT_ITS_END, CELL, NUMBER, ROLES
from elsewhere.traces.fixes import Preparation
from elsewhere.traces.form import WKB, FileForm, format_time, offset_text
from elsewhere.traces.maps import places_file_name
from elsewhere.traces.model import MINUTES_PER_DAY, Floats, Ints, Locations, Traces, clock_minutes, zone_of
from elsewhere.traces.sources import BLANKS

OUT_AS = ("slots", "visits", "events", "trips")
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
VISITS = {"user": "uid", "arrived": "arrived", "left": "left", "lat": "lat", "lon": "lng", "place": "place"}
TRIPS = {"time": "started_at", "lat": "start_lat", "lon": "start_lng", "place": "start_place"}
TRIPS |= {"end_time": "ended_at", "end_lat": "end_lat", "end_lon": "end_lng", "end_place": "end_place"}
BASE = {end: role for role, end in AT_ITS_END.items()}
# roles that are no "where"
WHEN = ("time", "utc", "local", "date", "arrived", "left", "slot", "trace", "accuracy", *BASE)
NO_DATE = np.datetime64("2001-01-01", "D")  # a Monday: traces that know no date start on it
LINES = 1 << 16  # of a table that are made into text at once
WHOLE = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet runs text that begins like this; a number it does not
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
KIND, POOL = "elsewhere prepared traces", "elsewhere pool"
FORMAT = 1
TRACES = ("traces.parquet", "traces.csv")
INDEX = "prepare.json"
WORDS = ("name", "category", "category_users")  # columns of locations.csv beside the positions
LARGEST_INDEX = 1 << 24


@dataclass(frozen=True, eq=False)
class Stamps:
    """Times as local wall clock and in UTC (NaT where the clock skips them), and how they are to be written."""

    wall: Times
    utc: Times
    tz: str
    times: str = "local"

    def __len__(self) -> int:
        return len(self.wall)

    def text(self, pattern: str = "") -> list[str]:
        """Return the times as text, "" where there is none; in a `pattern` if it has a day where times have one."""
        has_day = "%y" in pattern.lower()
        if pattern and not self.times.startswith("unix") and has_day == (self.times != "clock"):
            moments, of = np.unique(
                np.stack([self.utc if self.times == "utc" else self.wall, self.utc]), axis=1, return_inverse=True
            )
            texts = [
                "" if there is None or utc is None else format_time(there, pattern, there - utc)
                for there, utc in moments.T.astype("datetime64[us]").tolist()
            ]
            return [texts[i] for i in of.ravel().tolist()]
        if self.times == "local":
            return _time_texts(self.wall, between=" ")
        if self.times == "clock":
            return [stamp[11:] for stamp in _time_texts(self.wall)]
        if self.times == "utc":
            return _time_texts(self.utc, after="Z")
        if self.times == "offset":
            minutes = (self.wall - self.utc).astype("timedelta64[m]").astype(np.int64)
            return [stamp + offset_text(m) for stamp, m in zip(_time_texts(self.wall), minutes.tolist(), strict=True)]
        return [str(number) for number in self.numbers().tolist()]

    def numbers(self) -> Ints:
        """Return seconds, or milliseconds, since 1970 in UTC."""
        return self.utc.astype("datetime64[ms]" if self.times == "unix_ms" else "datetime64[s]").astype(np.int64)

    def arrow(self) -> Any:
        """Return the times as a column of a Parquet file."""
        import pyarrow as pa

        if self.times == "clock":
            return pa.array(self.text(), pa.string())
        if self.times in ("unix", "unix_ms"):
            return pa.array(self.numbers(), pa.int64())
        zone = {"local": None, "utc": "UTC"}.get(self.times, self.tz.removeprefix("UTC") or "UTC")
        return pa.array(self.wall if zone is None else self.utc, pa.timestamp("us", zone), from_pandas=True)


@dataclass(frozen=True, eq=False)
class Entries:
    """
    Entries of traces: row, slot, place (-1 missing), date of the row, wall clock, UTC (NaT where the clock skips it).

    Where they are stays, these are those of the arrival, and `left_wall` and `left_utc` those of the departure.
    """

    row: Ints
    slot: Ints
    place: Ints
    date: Times
    wall: Times
    utc: Times
    left_wall: Times | None = None
    left_utc: Times | None = None

    def select(self, chosen: Any) -> "Entries":
        """Return the entries of a mask."""
        parts: list[Any] = [None if part is None else part[chosen] for part in vars(self).values()]
        return Entries(*parts)


def write_traces(
    traces: Traces,
    path: str | PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 (the word users expect)
    ids: Sequence[Any] | None = None,
    columns: Mapping[str, str] | None = None,
    out_as: str = "slots",
    times: str = "local",
    form: Mapping[str, Any] | None = None,
) -> None:
    """
    Write traces to a file: whole or not at all, readable by its owner only, the same bytes from the same traces.

    A table has one line per known slot, in columns `uid, datetime, lat, lng, location` (those of scikit-mobility,
    local wall clock) and `category` where places have one; for traces without geographic coordinates or of less than a
    whole day `uid, slot, loc`, with `date` or `day` where a user has several rows, and place -1 where a slot is
    missing. `columns` chooses others: `Preparation.columns` and `Preparation.times` give back what was read.

    As *visits* a table has one line per stay: `uid, arrived, left, lat, lng, place, category`. trackintel calls the
    same `user_id, started_at, finished_at`, scikit-mobility `uid, datetime, leaving_datetime`. A stay begins and ends
    with its row (its day) at the latest. As *events* it has one line per arrival, like check-ins; the place at which a
    row begins was not arrived at, and has no line.

    Traces without dates start on Monday 2001-01-01, a second row of a user on the day after. Ids that a spreadsheet
    would run as a formula get a leading ' in CSV; numbers are left alone.

    Parameters
    ----------
    traces
        What to write.
    path
        Where to; `.gz` at the end compresses.
    format
        "csv", "tsv", "parquet", "sglt" (with the file of places beside it), "geojson" (one LineString per row, times
        among its properties) or "gpx" (one track per row); by default told by the ending of `path`.
    ids
        One id per row in place of the users' own.
    columns
        Role -> column name, in order, for the roles user, household (a fake is one of its own), time, utc, local, date,
        slot, trace (number of the row within its user), arrived, left, lat, lon, geometry, place, category, x, y (whole
        numbers of a planar map).
    out_as
        "slots", "visits" (stays), "events" (arrivals) or "trips" (moves, with both ends), in tables.
    times
        How the columns time, arrived and left are written: "local" wall clock, "utc", local with its "offset", "unix"
        or "unix_ms" (seconds or milliseconds since 1970), or "clock", the time of day beside a column of dates.
    form
        The fields of `FileForm`, for tables: what separates columns, whether they have names, how times are written.

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
    if not isinstance(traces, Traces):
        raise InvalidParameter(f"`traces` must be `Traces`, got {type(traces).__name__}.")
    try:
        path = Path(path)
    except TypeError:
        raise InvalidParameter(f"`path` must be the path of a file, got {type(path).__name__}.") from None
    if columns is not None and not isinstance(columns, Mapping):
        raise InvalidParameter(f"`columns` must map roles to names of columns, got {type(columns).__name__}.")
    packed = path.suffix.lower() == ".gz"
    name = (path.stem if packed else path.name).lower()
    kind = format or next((each for each, endings in FORMATS.items() if name.endswith(endings)), None)
    if kind is None:
        kinds = ", ".join(FORMATS)
        raise InvalidParameter(f"`format` must be one of {kinds}: the ending of {path.name!r} tells none.")
    require_choice("format", kind, tuple(FORMATS))
    require_choice("out_as", out_as, OUT_AS)
    require_choice("times", times, TIMES_AS)
    if out_as != "slots" and kind not in ("csv", "tsv", "parquet"):
        raise InvalidParameter(f"`out_as` = {out_as!r} belongs to tables; {kind!r} is none.")
    if columns is not None and kind not in ("csv", "tsv", "parquet"):
        raise InvalidParameter(f"`columns` belong to tables; {kind!r} has none.")
    if ids is not None and len(ids) != len(traces):
        raise InvalidTraces(f"`ids` must hold one id per row: {len(traces)} rows, {len(ids)} ids.", code="E_SHAPE")
    names = [str(label) for label in (traces.users if ids is None else ids)]
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        raise InvalidTraces("a user id holds half a character (a lone surrogate).", code="E_USER") from None
    if kind == "sglt":
        files = _to_sglt(traces, path, one_user_per_row=ids is not None)
    elif kind in TRACKS:
        write: Callable[[Traces, list[str], Entries], str] = TRACKS[kind]
        files = {path.name: write(traces, names, _list_entries(traces, names)).encode()}
    else:
        try:
            parts: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in (form or {}).items()}
            how = FileForm(**parts)
        except TypeError:
            fields = ", ".join(FileForm.__dataclass_fields__)
            raise InvalidParameter(f"`form` must map some of {fields}, got {form!r}.") from None
        how = replace(how, delimiter="\t", comma=False) if kind == "tsv" else how
        if how.wide and out_as == "slots" and len(how.wide) == traces.L and columns is not None:
            table = _wide_table(traces, names, columns, how.wide)
        else:
            table = _table(traces, names, columns, out_as, times, how.point)
        files = {path.name: _to_parquet(table, how) if kind == "parquet" else _to_csv(table, how)}
    if packed:
        files[path.name] = gzip.compress(files[path.name], mtime=0)
    write_files(path.parent, files)


def _wide_table(
    traces: Traces, names: list[str], columns: Mapping[str, str], slots: tuple[str, ...]
) -> list[tuple[str, str, Any]]:
    """Return (role, name, values) of a table with a line for each row and a column for each slot; "" where missing."""
    place_names = np.append(_place_names(traces)[:-1].astype(object), "")
    whose = [(role, columns[role]) for role in ("user", "household", "date") if role in columns]
    ids = np.array(names, dtype=object)
    values = {"user": ids, "household": ids, "date": _dates(traces, names)}
    table = [(role, name, values[role]) for role, name in whose]
    return table + [("place", name, place_names[traces.r[:, i]]) for i, name in enumerate(slots)]


def _number_in_user(names: list[str]) -> Ints:
    """Return 0 for the first row of a user, 1 for the second, ..."""
    next_number: dict[str, int] = {}
    number = np.empty(len(names), dtype=np.int64)
    for row, name in enumerate(names):
        number[row] = next_number[name] = next_number.get(name, -1) + 1
    return number


def _dates(traces: Traces, names: list[str]) -> Times:
    """Return the date of each row; without dates, days from `NO_DATE` on for each user."""
    return np.asarray(NO_DATE + _number_in_user(names) if traces.dates is None else traces.dates)


def _list_entries(traces: Traces, names: list[str]) -> Entries:
    """Return an entry for every slot."""
    N, L = traces.r.shape
    seconds = 60 * clock_minutes(traces.start) + 60 * traces.step_minutes * np.arange(L)
    offset = np.round(seconds * 1e6).astype("timedelta64[us]")
    dates = _dates(traces, names)
    wall = (dates.astype("datetime64[us]")[:, None] + offset).ravel()
    row, slot = np.divmod(np.arange(N * L), L)
    utc = wall if traces.tz == "UTC" else _to_utc(wall, traces.tz)
    return Entries(row, slot, traces.r.ravel().astype(np.int64), dates[row], wall, utc)


def _to_utc(wall: Times, tz: str, skipped: str = "NaT") -> Times:
    """Return wall-clock times in UTC: the first of an hour that occurs twice; `skipped` is for those that do not."""
    import pandas as pd

    if tz == "UTC":
        return wall
    first = np.ones(len(wall), dtype=bool)
    localized = pd.DatetimeIndex(wall).tz_localize(zone_of(tz), ambiguous=first, nonexistent=skipped)  # type: ignore[arg-type]
    return np.asarray(localized.tz_convert("UTC").tz_localize(None), dtype="datetime64[us]")


def _stays(traces: Traces, entries: Entries) -> Entries:
    """Return one entry per stay: as long as the place of a row does not change."""
    r = traces.r.astype(np.int64)
    begins, ends = np.ones(r.shape, dtype=bool), np.ones(r.shape, dtype=bool)
    begins[:, 1:] = ends[:, :-1] = r[:, 1:] != r[:, :-1]
    first, last = (np.flatnonzero((side & (r >= 0)).ravel()) for side in (begins, ends))
    step = np.timedelta64(round(traces.step_minutes * 60e6), "us")
    departure = entries.wall[last] + step
    arrived = _to_utc(entries.wall[first], traces.tz, "shift_forward")
    stays = replace(
        entries.select(first), utc=arrived, left_wall=departure, left_utc=_to_utc(departure, traces.tz, "shift_forward")
    )
    return stays.select(np.asarray(stays.left_utc) > arrived)  # a stay in the hour that the clock skips is none


def _moves(traces: Traces, entries: Entries) -> tuple[Entries, Entries]:
    """Return the two ends of every move within a row: its last slot at one place, and its first at the next."""
    r = traces.r
    moved = np.zeros(r.shape, dtype=bool)
    moved[:, :-1] = (r[:, :-1] >= 0) & (r[:, 1:] >= 0) & (r[:, 1:] != r[:, :-1])
    first = np.flatnonzero(moved.ravel())
    first = first[~(np.isnat(entries.utc[first]) | np.isnat(entries.utc[first + 1]))]  # not while the clock skips
    return entries.select(first), entries.select(first + 1)


def _usual_columns(traces: Traces, names: list[str]) -> dict[str, str]:
    """Return the columns of a table where the caller names none: fixes of whole days, else slots."""
    whole_days = traces.start == "00:00" and traces.step_minutes * traces.L == MINUTES_PER_DAY
    if traces.locations.lat is not None and whole_days:
        columns = FIXES
    elif traces.dates is not None:
        columns = {"user": "uid", "date": "date", **SLOTS}
    else:
        columns = {"user": "uid", "trace": "day", **SLOTS} if len(set(names)) < len(names) else SLOTS
    return columns | ({} if traces.locations.categories is None else {"category": "category"})


def _choose_columns(
    traces: Traces, names: list[str], requested: Mapping[str, str] | None, out_as: str
) -> dict[str, str]:
    """Return the columns to write: those asked for, as far as they fit slots, visits, events or trips."""
    if out_as == "trips":
        if requested is not None and "end_time" in requested:
            return dict(requested)
        user = "uid" if requested is None else requested["user"]
        nowhere = () if traces.locations.lat is not None else ("lat", "lon", "end_lat", "end_lon")
        return {"user": user} | {role: name for role, name in TRIPS.items() if role not in nowhere and name != user}
    if requested is None:
        own = _usual_columns(traces, names)
        where = {role: name for role, name in (VISITS | own).items() if role not in WHEN}
        if traces.locations.lat is None:
            where.pop("lat", None), where.pop("lon", None)
        if out_as == "visits":
            return {"user": "uid", "arrived": "arrived", "left": "left"} | where | {"place": "place"}
        return own if out_as == "slots" else {"user": "uid", "time": "datetime"} | where
    columns = dict(requested)
    if "left" in columns and "arrived" not in columns and "time" in columns:  # scikit-mobility's stops
        columns = {"arrived" if role == "time" else role: name for role, name in columns.items()}
    names_in_use = set(columns.values())

    def named(role: str, name: str) -> dict[str, str]:
        return {role: columns.get(role, name if name not in names_in_use else f"{name}_{role}")}

    where = {role: name for role, name in columns.items() if role not in WHEN}
    if out_as == "visits":
        if {"arrived", "left"} <= columns.keys():
            return {role: name for role, name in columns.items() if role in ("arrived", "left") or role not in WHEN}
        return {"user": where.pop("user"), **named("arrived", "arrived"), **named("left", "left"), **where} | (
            {} if "place" in where else named("place", "place")
        )
    when = {role: name for role, name in columns.items() if role in WHEN and role not in ("arrived", "left", *BASE)}
    if out_as == "events":
        when = {role: name for role, name in when.items() if role not in ("slot", "trace", "accuracy")}
        when = {} if set(when) == {"date"} else when
    if when:
        return {role: name for role, name in columns.items() if role in when or role in where}
    return {"user": where.pop("user"), **named("time", "datetime"), **where}


def _table(
    traces: Traces, names: list[str], requested: Mapping[str, str] | None, out_as: str, times: str, point: str = ""
) -> list[tuple[str, str, Any]]:
    """Return (role, name, values) of every column, one value per line."""
    if requested is not None and (
        not ({"user"} <= set(requested) <= set(ROLES)) or len(set(requested.values())) < len(requested)
    ):
        raise InvalidParameter(
            f"`columns` must give the roles {', '.join(ROLES)}, or some of them, user always, a name each, no two "
            f"equal, got {dict(requested)!r}."
        )
    columns = _choose_columns(traces, names, requested, out_as)
    if times == "clock" and not {"time", "date"} <= columns.keys():
        times = "local"  # a time of day alone is no time
    entries = _list_entries(traces, names)
    ends = entries
    if out_as == "trips":
        entries, ends = _moves(traces, entries)
    elif out_as != "slots":
        entries = _stays(traces, entries)
        if out_as == "events":
            entries = entries.select(entries.slot > 0)
    elif "slot" not in columns:
        # an instant that is unknown, or that the clock skipped, has no line
        entries = entries.select((entries.place >= 0) & ~np.isnat(entries.utc))
    return [
        (
            BASE.get(role, role),
            name,
            _column_values(BASE.get(role, role), traces, names, ends if role in BASE else entries, times, point),
        )
        for role, name in columns.items()
    ]


def _column_values(role: str, traces: Traces, names: list[str], entries: Entries, times: str, point: str = "") -> Any:
    """Return the values of a column, one per entry."""
    if role in ("user", "household"):  # a fake is a household of one
        return np.array(names, dtype=object)[entries.row]
    if role == "accuracy":  # nobody has measured a fake
        return np.full(len(entries.row), np.nan)
    if role == "date":
        return entries.date
    if role == "trace":
        return _number_in_user(names)[entries.row]
    if role in ("lat", "lon", "geometry"):
        lat, lon = (np.append(side, np.nan)[entries.place] for side in _degrees(traces))
        if role == "geometry":
            form = "POINT ({lon} {lat})" if point in ("", WKB) else point
            spots = zip(lat.tolist(), lon.tolist(), strict=True)
            return np.array([form.format(lat=y, lon=x) for y, x in spots], dtype=object)
        return lat if role == "lat" else lon
    if role in CELL:
        return _cells(traces)[entries.place, CELL.index(role)]
    if role == "place":
        return _place_names(traces)[entries.place]
    if role == "category":
        return np.array([*(traces.locations.categories or [""] * traces.R), ""], dtype=object)[entries.place]
    if role == "slot":
        return entries.slot
    if role == "left":
        assert entries.left_wall is not None and entries.left_utc is not None  # noqa: PT018, S101 - stays have both
        return Stamps(entries.left_wall, entries.left_utc, traces.tz, times)
    as_named = {"local": "local", "utc": times if times.startswith("unix") else "utc"}
    return Stamps(entries.wall, entries.utc, traces.tz, as_named.get(role, times))


def _place_names(traces: Traces) -> Any:
    """Return the name of each place, and -1 after the last; whole numbers where all names are."""
    names = traces.locations.names
    if names is None:
        return np.append(np.arange(traces.R), -1)
    if all(WHOLE.fullmatch(name) for name in names):
        return np.array([*map(int, names), -1], dtype=np.int64)
    return np.array([*names, "-1"], dtype=object)


def _degrees(traces: Traces) -> tuple[Floats, Floats]:
    """Return the latitude and the longitude of each place, the longitude in [-180, 180]."""
    if traces.locations.lat is None or traces.locations.lon is None:
        raise InvalidParameter("these places have no latitude and longitude: write them as slots, or as SGLT.")
    lon = traces.locations.lon
    return traces.locations.lat, np.where(np.abs(lon) > 180, (lon + 180) % 360 - 180, lon)


def _cells(traces: Traces) -> Ints:
    """Return x and y of each place, -1 after the last."""
    if traces.locations.xy is None:
        raise InvalidParameter("these places have no x and y: leave these columns out.")
    return np.append(np.rint(traces.locations.xy).astype(np.int64), [[-1, -1]], axis=0)


def _time_texts(time: Times, *, between: str = "T", after: str = "") -> list[str]:
    moments, of = np.unique(time, return_inverse=True)  # many lines have one
    whole = np.all(np.isnat(moments) | (moments == moments.astype("datetime64[s]")))
    text = np.datetime_as_string(moments, unit="s" if whole else "us").tolist()
    texts = ["" if stamp == "NaT" else stamp.replace("T", between) + after for stamp in text]
    return [texts[i] for i in of.tolist()]


def _to_csv(table: list[tuple[str, str, Any]], form: FileForm) -> bytes:
    """Return a table of (role, name, values) as text with delimiters."""
    nothing = '""' if form.delimiter == BLANKS else ""  # between blanks, a value that is not there must be seen
    # `csv.writer` would let a lone carriage return through
    special = re.compile(rf'["\n\r{re.escape(form.delimiter)}]')
    columns = []
    for role, name, values in table:
        times = isinstance(values, Stamps)
        items = values.text(form.time) if times else values.tolist()
        if not times and values.dtype.kind == "f":
            items = [np.nan if value != value else value for value in items]  # each NaN would be a key of its own
        labels = role in ("user", "household") or (not times and values.dtype == object)
        text_of = {value: "" if value != value else str(value) for value in {*items}}  # many lines have one value
        for value, text in text_of.items():
            if role == "date" and form.date:
                text_of[value] = format_time(datetime.combine(value, datetime.min.time()), form.date)
            elif role in ("lat", "lon") and form.comma:
                text_of[value] = text.replace(".", ",")
            elif labels and text.startswith(FORMULA) and not re.fullmatch(NUMBER, text, re.ASCII):
                text_of[value] = f"'{text}"
        texts = [*[name] * form.headed, *(text_of[value] for value in items)]
        fields = {t: '"' + t.replace('"', '""') + '"' if special.search(t) else t or nothing for t in {*texts}}
        columns.append([fields[text] for text in texts])
    lines = map(form.delimiter.join, zip(*columns, strict=True))
    parts = []
    while some := list(islice(lines, LINES)):
        parts.append("\n".join([*some, ""]).encode())
    return b"".join(parts)


def _to_parquet(table: list[tuple[str, str, Any]], form: FileForm) -> bytes:
    """Return a table of (role, name, values) as a Parquet file, positions in WKB as GeoParquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"date": pa.date32(), "lat": pa.float64(), "lon": pa.float64(), "accuracy": pa.float64()}
    columns = []
    for role, _, values in table:
        if isinstance(values, Stamps):
            columns.append(values.arrow())
            continue
        small = values.dtype.kind == "i" and (len(values) == 0 or np.abs(values).max() < 2**31)
        usual = pa.string() if values.dtype == object else pa.int32() if small else pa.int64()
        columns.append(pa.array(values, kinds.get(role, usual), from_pandas=True))
    names = [name if form.headed else (TRIPS | VISITS | SLOTS | FIXES).get(role, role) for role, name, _ in table]
    content = pa.table(columns, names=names)
    if form.point == WKB and "geometry" in (roles := [role for role, _, _ in table]):
        at = roles.index("geometry")
        spots = [struct.pack("<BI2d", 1, 1, *map(float, point[7:-1].split())) for point in table[at][2].tolist()]
        content = content.set_column(at, names[at], pa.array(spots, pa.binary()))
        geo = {"encoding": "WKB", "geometry_types": ["Point"]}
        about = {"version": "1.0.0", "primary_column": names[at], "columns": {names[at]: geo}}
        content = content.replace_schema_metadata({"geo": json.dumps(about)})
    sink = pa.BufferOutputStream()
    pq.write_table(content, sink, compression="zstd")
    return bytes(sink.getvalue())


def _to_sglt(traces: Traces, path: Path, *, one_user_per_row: bool) -> dict[str, bytes]:
    """Return lines `user,time,location` of numbers from 1, without the missing, and the places beside, `x, y` in km."""
    if not one_user_per_row and traces.U < len(traces):
        raise OutputRefused("SGLT knows one trace per user; select one row of each, or give `ids`.")
    row, slot = np.nonzero(traces.r >= 0)
    place, names = traces.r[row, slot], _place_names(traces)
    if not traces.locations.has_coordinates and names.dtype != object:
        place = names[place]  # no file of places says what a number means: it is the input's
    lines = [f"{u},{t},{r}\n" for u, t, r in zip(row + 1, slot + 1, place + 1, strict=True)]
    files = {path.name: "".join(lines).encode()}
    if traces.locations.has_coordinates:
        ending = ".txt" if path.suffix.lower() in (".txt", ".gz") else ""
        places = "".join(f"{x}, {y}\n" for x, y in traces.locations.planar().tolist())
        files = {f"{places_file_name(path)}{ending}": places.encode(), **files}
    return files


def _stretches(traces: Traces, entries: Entries) -> list[Ints]:
    """Return the known entries of each row."""
    known = (entries.place >= 0) & ~np.isnat(entries.utc)
    return [np.flatnonzero(part) + row * traces.L for row, part in enumerate(known.reshape(-1, traces.L))]


def _to_geojson(traces: Traces, names: list[str], entries: Entries) -> str:
    """Return GeoJSON (RFC 7946): a LineString per row (a Point for one slot), with the UTC time of each vertex."""
    stamps = _time_texts(entries.utc, after="Z")
    lat, lon = (np.round(side, 6) for side in _degrees(traces))
    features = []
    for name, stretch in zip(names, _stretches(traces, entries), strict=True):
        line = [[float(lon[entries.place[i]]), float(lat[entries.place[i]])] for i in stretch]
        shape: dict[str, Any] = {"type": "LineString", "coordinates": line}
        if len(line) == 1:
            shape = {"type": "Point", "coordinates": line[0]}
        properties = {"uid": name, "datetimes": [stamps[i] for i in stretch]}
        features.append({"type": "Feature", "geometry": shape if line else None, "properties": properties})
    return json.dumps({"type": "FeatureCollection", "features": features}, separators=(",", ":"))


def _to_gpx(traces: Traces, names: list[str], entries: Entries) -> str:
    """Return GPX 1.1: one track per row, a new segment after every gap, times in UTC."""
    lat, lon = _degrees(traces)
    at = [f'<trkpt lat="{y:.6f}" lon="{x:.6f}"><time>' for y, x in zip(lat.tolist(), lon.tolist(), strict=True)]
    stamps = _time_texts(entries.utc, after="Z")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append('<gpx version="1.1" creator="elsewhere" xmlns="http://www.topografix.com/GPX/1/1">')
    for name, stretch in zip(names, _stretches(traces, entries), strict=True):
        lines.append(f"<trk><name>{escape(NOT_IN_XML.sub('?', name))}</name>")
        for segment in np.split(stretch, np.flatnonzero(np.diff(stretch) > 1) + 1):
            points = [f"{at[entries.place[i]]}{stamps[i]}</time></trkpt>" for i in segment]
            lines += ["<trkseg>", *points, "</trkseg>"]
        lines.append("</trk>")
    return "\n".join([*lines, "</gpx>", ""])


TRACKS = {"geojson": _to_geojson, "gpx": _to_gpx}


@dataclass(frozen=True)
class PreparedTraces:
    """A file of prepared traces, and what it cannot say itself."""

    path: Path
    step: timedelta
    start: str
    tz: str
    locations: Locations


def save_traces(traces: Traces, preparation: Preparation, folder: Path) -> list[str]:
    """Write prepared traces into a folder; the names of the files. Evidence is not kept."""
    columns = {"user": "uid"}
    if traces.dates is not None:
        columns["date"] = "date"
    several = np.column_stack(
        [traces.user, np.zeros(len(traces)) if traces.dates is None else traces.dates.astype(int)]
    )
    if len(np.unique(several, axis=0)) < len(traces):
        columns["trace"] = "piece" if traces.dates is not None else "day"
    columns |= {"slot": "slot", "place": "location"}
    by_number = traces.with_map(traces.locations.relabel(names=None))
    for name in TRACES:
        write_traces(by_number, folder / name, columns=columns)
    files = {}
    if traces.locations.has_coordinates or traces.locations.names or traces.locations.categories:
        files["locations.csv"] = _places_csv(traces.locations)
        write_files(folder, files)
    names = [*TRACES, *files]
    index = {
        "kind": KIND,
        "format": FORMAT,
        "step_minutes": traces.step_minutes,
        "start": traces.start,
        "tz": traces.tz,
        "places": traces.R,
        "prepared": preparation.to_dict(),
        "files": {name: hash_file(folder / name) for name in names},
    }
    write_files(folder, {INDEX: (json.dumps(index, indent=1, allow_nan=False) + "\n").encode()})
    return [*names, INDEX]


def _places_csv(locations: Locations) -> bytes:
    """Return the places as CSV: positions to the last digit, names and categories, where there are any."""
    sides = {"lat": locations.lat, "lng": locations.lon}
    if locations.xy is not None:
        sides = {"x": locations.xy[:, 0], "y": locations.xy[:, 1]}
    columns: dict[str, Any] = {name: map(repr, side.tolist()) for name, side in sides.items() if side is not None}
    words = zip(WORDS, (locations.names, locations.categories, locations.category_users), strict=True)
    columns |= {name: values for name, values in words if values is not None}
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return sink.getvalue().encode()


def _read_places(path: Path) -> Locations:
    """Return what `_places_csv` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    columns = dict(zip(head, zip(*rows, strict=True), strict=True))
    where: dict[str, Any] = {"n": len(rows)}
    if "lat" in columns:
        where = {"lat": list(map(float, columns["lat"])), "lon": list(map(float, columns["lng"]))}
    elif "x" in columns:
        where = {"xy": np.column_stack([list(map(float, columns[side])) for side in ("x", "y")])}
    names, categories, people = (columns.get(name) for name in WORDS)
    return Locations(
        **where, names=names, categories=categories, category_users=None if people is None else list(map(int, people))
    )


def find_prepared(source: Any) -> PreparedTraces | None:
    """
    Return the prepared traces at a path, a folder of `prepare` or a file in it; None if it is something else.

    A folder of fakes, which holds the same traces several times, is refused with the name of the file to read.
    """
    if not isinstance(source, (str, PathLike)):
        return None
    path, folder, index = Path(source), None, {}
    try:
        folder = path if path.is_dir() else path.parent if path.name in TRACES else None
        if folder is None:
            return None
        if (folder / INDEX).is_file():
            index = read_index(folder / INDEX, LARGEST_INDEX)
    except (OSError, ValueError):
        if folder is None:
            return None
        # of ours by all other signs: what it said about its files is lost, and nobody may guess it
        if all((folder / name).exists() for name in TRACES):
            raise InvalidTraces(f"{INDEX} is damaged; prepare again.", code="E_CHANGED") from None
    if index.get("kind") == KIND:
        return _check_prepared(folder, path.name if path.name in TRACES else TRACES[0], index)
    try:
        manifest = read_index(path / "manifest.json", LARGEST_INDEX)
    except (OSError, ValueError):
        return None
    if manifest.get("kind") == POOL:
        name = "fakes.csv" if (path / "fakes.csv").is_file() else "pool.parquet"
        raise InvalidTraces(
            f"{path.name} is a folder of fakes that `elsewhere` wrote; give {name} in it.", code="E_FORMAT"
        )
    return None


def _check_prepared(folder: Path, name: str, index: dict[str, Any]) -> PreparedTraces:
    try:
        if index["format"] != FORMAT:
            raise InvalidTraces(f"{INDEX} has another format than {FORMAT}, which this version reads.", code="E_FORMAT")
        names = [name, *(["locations.csv"] if "locations.csv" in index["files"] else [])]
        for each in names:
            if hash_file(folder / each) != index["files"][each]:
                raise InvalidTraces(f"{each} is not the file that {INDEX} names; prepare it again.", code="E_CHANGED")
        locations = _read_places(folder / "locations.csv") if len(names) > 1 else Locations(n=index["places"])
        len(locations)  # a damaged index may name more than can be counted
        step = timedelta(minutes=float(index["step_minutes"]))
        return PreparedTraces(folder / name, step, str(index["start"]), str(index["tz"]), locations)
    except InvalidTraces:
        raise
    except (KeyError, TypeError, ValueError, OSError, OverflowError, AttributeError):
        raise InvalidTraces(
            f"{INDEX} and the files beside it do not fit together; prepare again.", code="E_CHANGED"
        ) from None
