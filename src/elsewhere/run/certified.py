"""
Read people for certified fakes: nobody's rows may decide how the rows of others are read.

What decides what is published is the caller's options and noisy sums, and nothing else. So which column is what follows
from the names in the header or from `columns`, times are ISO 8601 or as `date_format` says, the map, the clock and its
zone are given. Each row is read by itself: what cannot be read, or lies off the map, is left out in silence.
"""

import csv
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from elsewhere.data.columns import find_named, parse_columns
from elsewhere.data.place_table import PlaceTable
from elsewhere.data.places import grid_of
from elsewhere.data.stays import find_stays
from elsewhere.data.times import MISSING, find_zone, to_local
from elsewhere.data.visits import Floats, Form, Ints, Locations, Records, to_xyz
from elsewhere.errors import InvalidParameter, InvalidTraces
from elsewhere.settings import Reading
from elsewhere.synthesis.certified import Observed

ROLES = {
    "user": (), "time": ("start", "started_at", "start_time", "begin"),
    "end": ("end", "ended_at", "end_time", "finish", "stop"), "lat": (), "lon": (), "place": (),
}  # fmt: skip
YEARS = range(1970, 2100)
BEYOND = 0.75  # usual distances of neighbours from the nearest place, beyond which a record lies off the map
TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq")


def read_rows(source: Any, reading: Reading) -> Observed:
    """
    Return what the rows of a table say, each read by itself, on the given map.

    Refused is only what no row decides: options, a file that cannot be opened, a header without the columns needed.
    """
    where = given_map(reading)
    zone = reading.tz or (find_zone(where.lat, where.lon)[0] if where.lat is not None else None) or "UTC"
    columns = read_table(source, reading)
    number: dict[str, int] = {}
    user = np.array([number.setdefault(name, len(number)) if name else -1 for name in columns["user"]], dtype=np.int64)
    start = read_moments(columns["time"], reading.date_format, zone)
    end = read_moments(columns["end"], reading.date_format, zone) if "end" in columns else start
    keep = (user >= 0) & (start != MISSING) & (end >= start)
    named = reading.grid is None and where.ids is not None
    if "place" in columns and (named or "lat" not in columns):
        known = {name: i for i, name in enumerate(texts(where.ids or range(len(where))))}
        place = np.array([known.get(name, -1) for name in columns["place"]], dtype=np.int64)
    else:
        lat, lon = (read_degrees(columns[axis], most) for axis, most in (("lat", 90.0), ("lon", 180.0)))
        keep &= np.isfinite(lat + lon)
        if "end" not in columns:  # fixes, of which stays are found person by person
            order = np.flatnonzero(keep)
            order = order[np.lexsort((lon[order], lat[order], start[order], user[order]))]
            who, when = user[order].astype(np.int32), start[order]
            stays = find_stays(Records(who, (), when, when, lat=lat[order], lon=lon[order], form=Form("fixes")))
            user, start, end = stays.user.astype(np.int64), stays.start, stays.end
            lat, lon, keep = np.asarray(stays.lat), np.asarray(stays.lon), np.ones(len(stays), dtype=bool)
        place = np.full(len(user), -1)
        place[keep] = place_on(where, lat[keep], lon[keep])
    keep &= place >= 0
    order = np.flatnonzero(keep)
    order = order[np.lexsort((place[order], end[order], start[order], user[order]))]
    who, user = np.unique(user[order], return_inverse=True)
    return Observed(user, start[order], end[order], place[order], len(who), where, zone)


@contextmanager
def in_private() -> Iterator[None]:
    """Let nobody see what fails, or is warned of, where something is made for the owner alone."""
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def require_map(reading: Reading) -> None:
    """Refuse to read without a map that is not the file's own, and options of reading that would do nothing."""
    for name in ("places", "cells", "unit", "encoding", "interval"):
        if getattr(reading, name) != Reading.model_fields[name].default:
            raise InvalidParameter(f"`{name}` is not read with `eps`.", code="E_NOT_READ", parameter=name)
    if reading.grid is None and reading.locations is None:
        raise InvalidParameter(
            "a certificate protects everybody in the file, so the map must not come from the file: name its town, such "
            'as `grid="Tokyo"`, or give a box, or a table of public places as `locations`.',
            code="E_MAP",
            parameter="grid",
        )


def given_map(reading: Reading) -> Locations:
    """Return the map that the caller gives; ids of a table are those of its first column in which all differ."""
    if reading.grid is not None:
        return grid_of(reading.grid)
    if isinstance(reading.locations, Locations):
        return reading.locations
    table = PlaceTable(reading.locations)
    good = np.isfinite(table.lat) & np.isfinite(table.lon)
    several = (table.columns[n] for n in table.ids)
    ids = next((x for x in several if None not in x and len(set(x)) == len(good)), [str(i) for i in range(len(good))])
    return Locations(table.lat[good], table.lon[good], ids=list(compress(ids, good.tolist())))


def read_table(source: Any, reading: Reading) -> dict[str, list[str]]:
    """Return the columns of a table by role, every value as text; the header alone says which is which."""
    frame = source.to_pandas() if hasattr(source, "to_pandas") else source
    if hasattr(frame, "columns"):
        names = [str(name) for name in frame.columns]
        return {role: texts(frame.iloc[:, names.index(n)].tolist()) for role, n in find_roles(names, reading).items()}
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(source) if isinstance(source, (str, os.PathLike)) else Path()
    if path.suffix.lower() not in TABLES:
        raise InvalidTraces(
            "`eps` reads a table, each row by itself: a file .csv, .tsv or .parquet with a header and ISO times. "
            "`elsewhere prepare` writes other formats as such a table.",
            code="E_FORMAT",
        )
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            table = pq.read_table(path)
            found = find_roles(table.column_names, reading)
            return {role: texts(values_of(table.column(table.column_names.index(n)))) for role, n in found.items()}
        # bytes that are no UTF-8 stay what they are: no line is refused, and names stay distinct
        with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
            separator = "\t" if path.suffix.lower() == ".tsv" else ","
            header = split_row(next(stream, "").removeprefix("\ufeff"), separator)
            at = {role: header.index(name) for role, name in find_roles(header, reading).items()}
            rows = (row for line in stream if len(row := split_row(line, separator)) == len(header))
            cells = [[row[i] for i in at.values()] for row in rows]
            return {role: texts(row[i] for row in cells) for i, role in enumerate(at)}
    except (OSError, pa.ArrowException) as error:
        raise InvalidTraces("the input cannot be opened.", code="E_OPEN") from error


def split_row(line: str, separator: str) -> list[str]:
    """Return the cells of one line, none where it cannot be split; a quote ends with its line, whoever wrote it."""
    try:
        return next(csv.reader([line.rstrip("\r\n")], delimiter=separator), [])
    except csv.Error:
        return []


def values_of(column: Any) -> Any:
    """Return the values of an Arrow column; where Python cannot hold one, such as a time after 9999, it is missing."""

    def value(scalar: Any) -> Any:
        try:
            return scalar.as_py()
        except (ValueError, OverflowError):
            return None

    try:
        return column.to_pylist()
    except (ValueError, OverflowError):
        return map(value, column)


def texts(values: Iterable[Any]) -> list[str]:
    """Return values as texts, empty where missing; whole numbers alike, whether a missing one has made them floats."""
    plain = [str(value).strip() for value in values]
    plain = [text[:-2] if text.endswith(".0") and text[:-2].isdecimal() else text for text in plain]
    return ["" if text in ("nan", "NaT", "<NA>", "None") else text for text in plain]


def find_roles(names: list[str], reading: Reading) -> dict[str, str]:
    """Return role -> name of a column, as given or as the names of the header tell."""
    given, plain = parse_columns(reading.columns), {name.strip().lower(): name for name in reversed(names)}
    roles: dict[str, str | None] = {}
    for role, usual in ROLES.items():
        named = next((plain[word] for word in usual if word in plain), None)
        roles[role] = given.get(role, named or (None if role == "end" else find_named(role, names)))
    needed = {"user", "time", *given} | (set() if roles["place"] else {"lat", "lon"})
    if missing := [role for role in ROLES if role in needed and roles[role] not in names]:
        raise InvalidTraces(
            f"the header names no column for {', '.join(missing)}: say which it is (`columns` {missing[0]}=NAME).",
            code="E_COLUMNS",
        )
    where = ("lat", "lon") if roles["lat"] and roles["lon"] else ()
    return {role: name for role, name in roles.items() if name and (role not in ("lat", "lon") or role in where)}


def read_moments(moments: list[str], date_format: str | None, zone: str) -> Ints:
    """Return local seconds of ISO 8601, or of `date_format`; MISSING where a text is neither."""

    def moment(text: str) -> tuple[int, bool]:
        """Return seconds as written, or in UTC if they carry an offset, and whether they do."""
        try:
            when = datetime.fromisoformat(text) if date_format is None else datetime.strptime(text, date_format)
            aware = when.tzinfo is not None
            since = when - datetime(1970, 1, 1, tzinfo=UTC if aware else None)
        except (ValueError, OverflowError):
            return MISSING, False
        return (since.days * 86_400 + since.seconds, aware) if when.year in YEARS else (MISSING, False)

    known = {text: moment(text) for text in set(moments)}
    seconds, aware = np.array([known[text] for text in moments], dtype=np.int64).reshape(-1, 2).T
    return np.where(aware == 1, to_local(np.where(aware == 1, seconds, 0), zone), seconds)


def read_degrees(numbers: list[str], most: float) -> Floats:
    """Return numbers, NaN where a text is none or beyond `most` degrees."""

    def degrees(text: str) -> float:
        try:
            return float(text) if abs(float(text)) <= most else np.nan
        except ValueError:
            return np.nan

    return np.array(list(map(degrees, numbers)), dtype=np.float64)


def place_on(where: Locations, lat: Floats, lon: Floats) -> Ints:
    """Return the nearest place of the map, -1 off it."""
    from scipy.spatial import cKDTree

    if where.lat is None or where.lon is None:
        raise InvalidParameter("`locations` must have latitudes and longitudes.", code="E_MAP", parameter="locations")
    usual = float(np.median(np.asarray(cKDTree(where.points()).query(where.points(), k=2)[0])[:, 1]))
    place, km = where.nearest(to_xyz(lat, lon))
    return np.where(km <= BEYOND * usual, place, -1)
