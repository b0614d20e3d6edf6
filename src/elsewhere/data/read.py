"""
Read a source as visits: open it, find its columns, read records and their local clock, then stays and places.

Everything that is left out is counted in `Preparation` and said; nothing that a message or a count shows is a value of
a trace. A second source is read on the map of the first by `read_visits(b, locations=first.locations)`.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.columns import (
    MISSING,
    NO_DAY,
    TIMES,
    AmbiguousDates,
    Columns,
    Labels,
    TimeForm,
    are_degrees,
    as_text,
    find_columns,
    find_form,
    find_kind,
    find_named,
    find_zone,
    is_clock,
    is_latitude_first,
    normalize,
    read_clock,
    read_lines,
    read_numbers,
    read_points,
    read_times,
    sample_text,
    share_on_land,
    to_local,
    to_local_by_place,
    words_of,
)
from elsewhere.data.formats import FILE, Table, list_files, open_tables
from elsewhere.data.places import make_visits
from elsewhere.data.stays import ELSEWHERE, NEW_DAY, PAUSE, clean, find_stays, split_vehicles
from elsewhere.data.visits import DAY, UNITS, Floats, Form, Ints, Locations, Mask, Preparation, Records, Visits, zone_of
from elsewhere.errors import InvalidParameter, InvalidTraces, counted, require_between, require_choice

ALONE = 100  # records, above which as many users as records are worth a word
MOST_UNREADABLE = 0.05  # share of times or positions that cannot be read, above which a source is refused
MOST_MIXED = 0.6  # share of fixes of one user at one time at different places, above which a source is refused
ONE_ZONE = 0.98  # share of the points in one zone, above which its clock is everybody's
DAY_STEPS = (24, 48, 72, 96, 144, 288, 1440)  # slots that are a whole day
SPARSE = 1_800  # seconds between two records of somebody, in the median, above which positions are events, no fixes
CHANGED = ("times that", "positions that", "characters that")  # beginnings of counts of what is there otherwise
NOWHERE = frozenset(["off", "out", "none", "unknown", "nowhere", "n/a", "-"])  # as names of places
LINE_INTERVAL = 15  # seconds between two points of a line, as in the taxi data of Porto
Progress = Callable[[str, float], None]


def read_visits(
    source: Any,
    *,
    columns: Any = None,
    tz: str | None = None,
    places: str = "auto",
    locations: Any = None,
    date_format: str | None = None,
    encoding: str | None = None,
    unit: str | None = None,
    interval: float = LINE_INTERVAL,
    cells: int | None = None,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Visits:
    """
    Return the visits of a source: what was observed, where and when, by the local clock; nothing is filled in.

    Parameters
    ----------
    source
        A path, a folder, "-" (standard input), or a table of pandas, polars or Arrow. Read are CSV and kin, Parquet,
        Feather, JSON, GeoJSON, GPX, GeoLife, Google's Timeline, Foursquare's check-ins, SGLT and workbooks.
    columns
        Which column is what, where names and values do not tell: {"user": "id", "time": "#4"} or "user=id,time=#4".
    tz
        The zone of the local clock; by default that of the positions.
    places
        How places are made of positions: see `elsewhere.data.places.make_visits`.
    locations
        The places that the ids of the source refer to: a table of towers, venues or stations, polygons of zones
        (GeoJSON), or the `locations` of other visits, so that both are on one map.
    date_format
        How dates are written, as in `strptime`, where they could be read in two ways.
    encoding
        That of a text that is not UTF-8.
    unit
        Who a user is: "person", "trip" or "vehicle-day"; by default the file tells.
    interval
        Seconds between two points of a line of points.
    cells
        How many places there may be.
    rng
        Where the noise of the public map comes from; by default the operating system's entropy.
    progress
        Called with the name of a step and the number of records.

    Examples
    --------
    >>> import pandas as pd
    >>> calls = {"phone": ["a", "a", "b"], "time": ["2024-03-04T08:10", "2024-03-04T17:30", "2024-03-04T09:00"]}
    >>> towers = Locations(lat=[48.86, 48.85], lon=[2.35, 2.29], ids=["north", "south"])
    >>> read_visits(pd.DataFrame(calls | {"tower": ["north", "south", "north"]}), locations=towers)
    Visits(3 visits of 2 users at 2 places)

    """
    records, preparation, own_map, shapes = read_records(
        source, columns=columns, tz=tz, locations=locations, date_format=date_format, encoding=encoding, unit=unit,
        interval=interval, progress=progress,
    )  # fmt: skip
    say = progress or (lambda step, records: None)
    say("cleaning", len(records))
    records, preparation = clean(records, preparation)
    mixed = preparation.dropped.get(ELSEWHERE, 0)
    if mixed > MOST_MIXED * (mixed + len(records)):
        raise InvalidTraces(
            f"{preparation.name}: {mixed:,} of {mixed + len(records):,} records are at another place than others of "
            "the same user at the same time: several people are read as one, or the time of day is not read; say which "
            "columns have them (`columns` user=NAME,time=NAME).",
            code="E_COLUMNS",
        )
    records = find_stays(records)
    if unit is None and find_named("user", [records.form.columns.get("user", "")]) is None:
        vehicles = split_vehicles(records)
        if vehicles is not records:
            note = f"{counted(len(records.users), 'vehicle')}, out all day: each shift stands for itself (`unit`)"
            preparation = replace(preparation, notes=(*preparation.notes, note))
        records = vehicles
    if shapes and own_map is not None:
        records = find_zones(records, shapes, own_map)
    say("placing", len(records))
    return make_visits(records, preparation, places=places, locations=own_map, cells=cells, rng=rng)


def read_records(
    source: Any,
    *,
    columns: Any = None,
    tz: str | None = None,
    locations: Any = None,
    date_format: str | None = None,
    encoding: str | None = None,
    unit: str | None = None,
    interval: float = LINE_INTERVAL,
    progress: Progress | None = None,
) -> tuple[Records, Preparation, Locations | None, list[Any]]:
    """
    Return the records of a source, what became of its rows, and the map that is given or lies beside it.

    The last is the polygons of the map, where its places are zones.
    """
    if tz is not None:
        zone_of(tz)
    if unit is not None:
        require_choice("unit", unit, UNITS)
    require_between("interval", interval, 0, DAY, open_low=True)
    table, beside = _choose_table(open_tables(source, encoding=encoding), columns, unit)
    given = beside if locations is None else locations
    own_map = given if given is None or isinstance(given, Locations) else PlaceTable(given)
    meaning = find_columns(table, columns, alone=unit == "trip")
    reader = _Reader(table, meaning, date_format, interval)
    for batch in table.batches(sorted(set(meaning.roles.values()))):
        reader.add(batch)
        if progress is not None:
            progress("reading", reader.rows)
    records, preparation = reader.finish(tz, unit, own_map)
    if not isinstance(own_map, PlaceTable):
        return records, preparation, own_map, []
    records, joined = own_map.join(records)
    return records, preparation, joined, own_map.shapes


class PlaceTable:
    """A table of places: ids, positions or polygons, and kinds; which column has the ids, the records tell."""

    def __init__(self, source: Any) -> None:
        self.shapes: list[Any] = []
        if isinstance(source, (str, os.PathLike)) and self._read_polygons(source):
            return
        table = source if isinstance(source, Table) else open_tables(source, name="`locations`")[0]
        names = [name for name in table.names if name != FILE]
        batches = list(table.batches(names))
        self.columns = {n: [v for b in batches for v in as_text(b.column(n)).to_pylist()] for n in names}
        kinds = {name: find_kind(sample_text(table.sample.column(name))) for name in names}
        numbers = [name for name in names if kinds[name] in ("decimal", "whole")]
        where = [find_named(axis, numbers) for axis in ("lat", "lon")]
        if None in where:
            numbers = [n for n in numbers if kinds[n] == "decimal"]
            order = None
            if len(numbers) == 2:
                order = is_latitude_first(*(read_numbers(table.sample.column(n))[0] for n in numbers))
            where = list(numbers if order else numbers[::-1]) if len(numbers) == 2 else [None, None]
            self.planar = order is None
        else:
            self.planar = False
        if None in where:
            shown = ", ".join(table.labels[n] for n in names)
            raise InvalidTraces(
                f"`locations`: no columns of latitude and longitude; its columns are {shown}; call them lat and lon.",
                code="E_COLUMNS",
            )
        self.lat, self.lon = (
            np.concatenate([read_numbers(b.column(axis).combine_chunks())[0] for b in batches]) for axis in where
        )
        called = find_named("kind", names)
        if called is None and not table.headed:  # words that repeat, of these the most different
            words = [n for n in names if kinds[n] == "words" and len(set(self.columns[n])) <= len(self.lat) / 2]
            called = max(words, key=lambda name: len(set(self.columns[name])), default=None)
        self.kind = None if called is None else self.columns[called]
        self.ids = [name for name in names if name not in where]

    def _read_polygons(self, source: Any) -> bool:
        """Read zones from polygons of GeoJSON; tell whether the source has any."""
        import json

        pieces = list_files(source)
        if len(pieces) != 1:
            return False
        with pieces[0].open() as stream:
            if stream.read(1).strip() not in (b"{", b""):
                return False
            stream.seek(0)
            try:
                features = json.loads(stream.read().decode("utf-8-sig"))["features"]
                kinds = {feature["geometry"]["type"] for feature in features if feature.get("geometry")}
            except (ValueError, KeyError, TypeError, AttributeError):
                return False
        if not kinds or not kinds <= {"Polygon", "MultiPolygon"}:
            return False
        import shapely
        from shapely.geometry import shape

        try:
            self.shapes = [shapely.make_valid(shape(f["geometry"])) for f in features]
        except (ValueError, TypeError, AttributeError, IndexError, shapely.errors.ShapelyError):
            raise InvalidTraces("`locations` holds a polygon that is damaged.", code="E_FORMAT") from None
        plain = [f.get("properties") or {} for f in features]
        keys = list(dict.fromkeys(key for each in plain for key in each))
        self.columns = {key: [None if each.get(key) is None else str(each[key]) for each in plain] for key in keys}
        middle = [polygon.representative_point() for polygon in self.shapes]
        self.lat, self.lon = np.array([p.y for p in middle]), np.array([p.x for p in middle])
        self.kind, self.planar = None, False
        self.ids = keys
        return True

    def join(self, records: Records) -> tuple[Records, Locations]:
        """Return the records and the map, joined by the column of ids that the records name most places of."""
        good = np.isfinite(self.lat) & np.isfinite(self.lon)
        named = set(records.places)
        shared = {name: len(named & set(self.columns[name])) for name in self.ids}
        best = max(shared, key=lambda name: shared[name], default=None)
        whole = [n for n in self.ids if None not in self.columns[n] and len(set(self.columns[n])) == len(good)]
        if best is None or (shared[best] == 0 and named):
            lowest = 0 if "0" in named else 1
            numbers = [str(i + lowest) for i in range(len(good))]
            if named and not named <= set(numbers):
                raise InvalidTraces(
                    "`locations`: no column has the ids of the places that the source names.", code="E_MISMATCH"
                )
            ids: list[Any] = numbers
        elif not named:
            ids = self.columns[whole[0]] if whole else [str(i) for i in range(1, len(good) + 1)]
        else:
            ids = self.columns[best]
        first = {name: i for i, name in reversed(list(enumerate(ids))) if good[i] and name is not None}
        keep = sorted(first.values())
        kind = None if self.kind is None else [self.kind[i] for i in keep]
        where: dict[str, Any] = {"lat": self.lat[keep], "lon": self.lon[keep]}
        if self.planar:
            where = {"xy": np.column_stack([self.lat, self.lon])[keep]}
        own_map = Locations(**where, ids=[ids[i] for i in keep], kind=kind)
        self.shapes = [self.shapes[i] for i in keep] if self.shapes else []
        if records.place is not None and records.lat is None:
            known = np.array([*(name in first for name in records.places), False])
            share = float(known[records.place].mean())
            if share < 0.5:
                raise InvalidTraces(
                    f"`locations` has the places of only {share:.0%} of the records.", code="E_MISMATCH"
                )
        return records, own_map


def find_zones(records: Records, shapes: list[Any], zones: Locations) -> Records:
    """Return the records with the polygon that each position lies in as their place."""
    import shapely

    if records.lat is None or records.lon is None:
        return records
    place = np.full(len(records), -1, dtype=np.int32)
    point, inside = shapely.STRtree(shapes).query(shapely.points(records.lon, records.lat), predicate="within")
    place[point] = inside
    return replace(records, place=place, places=zones.ids or (), lat=None, lon=None)


def _choose_table(tables: list[Table], columns: Any, unit: str | None) -> tuple[Table, Table | None]:
    """Return the table of a folder that holds records, and one that holds places, if there is one."""
    if len(tables) == 1:
        return tables[0], None
    records, places, errors = [], [], []
    for table in tables:
        if columns is None and is_table_of_places(table):
            places.append(table)
            continue
        try:
            find_columns(table, columns, alone=unit == "trip")
            records.append(table)
        except InvalidTraces as error:
            errors.append(error)
    if not records:
        raise errors[0] if errors else InvalidTraces("the folder holds places and no records.", code="E_COLUMNS")
    if len(records) > 1:
        records[0].notes.append(
            f"not read: {counted(len(records) - 1, 'other table')} of the folder, with other columns"
        )
    return records[0], places[0] if places else None


def is_table_of_places(table: Table) -> bool:
    """Tell whether a table has ids and positions of places, and no times."""
    samples = {name: sample_text(table.sample.column(name)) for name in table.names if name != FILE}
    kinds = {name: find_kind(values) for name, values in samples.items()}
    if any(kind in TIMES for kind in kinds.values()):
        return False
    degrees = [name for name in samples if kinds[name] == "decimal" and are_degrees(samples[name])]
    return None not in [find_named(axis, list(kinds)) for axis in ("lat", "lon")] or len(degrees) == 2 < len(kinds)


class _Buffer:
    """An array that grows in place, so that no column is held twice."""

    def __init__(self, dtype: Any) -> None:
        self.values, self.size = np.empty(1 << 16, dtype=dtype), 0

    def add(self, values: NDArray[Any]) -> None:
        """Add values at the end."""
        need = self.size + len(values)
        if need > len(self.values):
            self.values.resize(max(need, len(self.values) * 5 // 4), refcheck=False)
        self.values[self.size : need] = values
        self.size = need

    def finish(self) -> NDArray[Any]:
        """Return all values."""
        self.values.resize(self.size, refcheck=False)
        return self.values


class _Reader:
    """Gather the columns of all batches of a table as arrays."""

    def __init__(self, table: Table, meaning: Columns, date_format: str | None, interval: float) -> None:
        self.table, self.meaning, self.interval = table, meaning, interval
        self.roles, self.rows = meaning.roles, 0
        self.counts: Counter[str] = Counter()
        self.notes = [*table.notes, *meaning.notes]
        self.labels = {role: Labels() for role in ("user", "kind", "trip")} | {"place": Labels(NOWHERE)}
        self.store: dict[str, _Buffer] = {}
        self.forms = {
            role: self._form(role, date_format)
            for role in ("time", "utc", "local", "date", "end", "end_date")
            if role in self.roles
        }
        clock = self.forms.get("time")
        if clock is not None and clock.kind != "clock":
            self.forms.pop("date", None)
        self.utc = table.kind in ("geolife", "gpx", "google") or ("utc" in self.roles and "local" not in self.roles)
        # whole numbers x and y are the numbers of cells of a grid
        axes = [self.roles.get(axis, "") for axis in ("lat", "lon")]
        self.whole = {"whole"} == {meaning.kinds.get(name) for name in axes}
        self.cells = self.whole and all(words_of(name)[-1:] in (["x"], ["y"]) for name in axes)
        self.lat_first = self._point_order()

    def _form(self, role: str, date_format: str | None) -> TimeForm:
        """Return how a column of times is written; where a sample leaves it open, by all of its values."""
        import pyarrow as pa

        name = self.roles[role]
        label = self.table.labels.get(name, name)
        column = self.table.sample.column(name)
        if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
            return TimeForm("typed", aware=getattr(column.type, "tz", None) is not None)
        values = sample_text(column)
        if date_format is not None and not (find_kind(values) == "clock" or is_clock(values)):
            form = TimeForm("format", date_format, aware="%z" in date_format)
            if np.mean(read_times(column.combine_chunks(), form)[0] != MISSING) > 0.5:
                return form
        if not values:
            raise InvalidTraces(f"{self.table.name}: column {label} is empty.", code="E_DATE")
        try:
            form = find_form(values, label, self.table.name)
        except AmbiguousDates:
            every: set[str] = set()
            for batch in self.table.batches([name]):
                every.update(sample_text(batch.column(name).unique()))
            form = find_form(sorted(every), label, self.table.name)
        self.notes += [form.note] if form.note else []
        return form

    def _point_order(self) -> bool:
        """Tell whether points have the latitude first: well-known text has not, others by their values."""
        role = next((r for r in ("point", "points") if r in self.roles), None)
        if role is None:
            return True
        column = self.table.sample.column(self.roles[role])
        text = " ".join(sample_text(column)[:3])
        if re.search(r"(?i)point|linestring", text):
            return False
        a, b = read_points(column) if role == "point" else read_lines(column)[:2]
        there = np.isfinite(a) & np.isfinite(b)
        order = is_latitude_first(a[there][:2000], b[there][:2000]) if there.any() else None
        if order is None:
            order = role == "point"  # lists of points have the longitude first, as GeoJSON
            self.notes.append(f"points are read with the {'latitude' if order else 'longitude'} first")
        return order

    def add(self, batch: Any) -> None:
        """Add the rows of a batch."""
        import pyarrow.compute as pc

        rows, roles = len(batch), self.roles
        out: dict[str, NDArray[Any]] = {}
        if rows == 0:
            return

        def column(role: str) -> Any:
            return batch.column(roles[role]).combine_chunks()

        if "user" in roles:
            whose = column("user")
            if "household" in roles:
                whose = pc.binary_join_element_wise(as_text(column("household")), as_text(whose), "-")
            out["user"] = self.labels["user"].codes(whose)
        for role in ("place", "kind", "trip"):
            if role in roles:
                out[role] = self.labels[role].codes(column(role))
        if "end_place" in roles:
            out["end_place"] = self.labels["place"].codes(column("end_place"))
        self._add_times(column, rows, out)
        for side in ("", "end_"):
            if {f"{side}lat", f"{side}lon"} <= roles.keys():
                pair = [column(f"{side}lat"), column(f"{side}lon")]
                if self.cells:
                    cell = pc.binary_join_element_wise(as_text(pair[1]), as_text(pair[0]), ",")
                    out[f"{side}place"] = self.labels["place"].codes(cell)
                    continue
                (out[f"{side}lat"], bad), (out[f"{side}lon"], worse) = map(read_numbers, pair)
                self.counts["positions that are no numbers"] += bad + worse
            elif f"{side}point" in roles:
                a, b = read_points(column(f"{side}point"))
                out[f"{side}lat"], out[f"{side}lon"] = (a, b) if self.lat_first else (b, a)
        for role in ("duration", "occupied", "offset", "slot", "day"):
            if role in roles:
                if role == "duration" and self.meaning.kinds[roles[role]] == "clock":
                    seconds = read_clock(as_text(column(role)))
                    out[role] = np.where(seconds == MISSING, np.nan, seconds)
                elif role == "occupied":
                    flag = pc.is_in(pc.utf8_lower(as_text(column(role))), value_set=_truths())
                    out[role] = np.asarray(flag).astype(np.int8)
                else:
                    out[role] = read_numbers(column(role))[0]
        if "points" in roles:
            self._expand_lines(column("points"), rows, out)
        for role, values in out.items():
            self.store.setdefault(role, _Buffer(values.dtype)).add(values)
        self.rows += rows

    def _add_times(self, column: Callable[[str], Any], rows: int, out: dict[str, NDArray[Any]]) -> None:
        """Add start, its offset from UTC, and end, in seconds."""
        clock = next((r for r in ("time", "local", "utc") if r in self.forms), None)
        date = read_times(column("date"), self.forms["date"])[0] if "date" in self.forms else None
        if clock is None:
            out["start"] = np.full(rows, NO_DAY, dtype=np.int64) if date is None else date
            if date is not None and "slot" not in self.roles and self.forms["date"].kind != "typed":
                self.notes.append("no column tells the time of day: records are at 0:00 of their date")
            return
        seconds, offset = read_times(column(clock), self.forms[clock])
        if self.forms[clock].kind == "clock":
            day = np.full(rows, NO_DAY, dtype=np.int64) if date is None else date
            self.notes += ["clock times without dates are read as those of one day"] if date is None else []
            seconds = _add(day, seconds)
            if self.utc:
                offset = np.zeros(rows, dtype=np.int64)
        elif clock == "utc" and offset is None:
            offset = np.zeros(rows, dtype=np.int64)
        unread = column(clock).null_count
        self.counts["times that cannot be read"] += int((seconds == MISSING).sum()) - unread
        out["start"] = seconds
        if offset is not None:
            out["shift"] = offset.astype(np.int32)
        if clock == "local" and "utc" in self.forms:
            utc, _ = read_times(column("utc"), self.forms["utc"])
            out["start"] = np.where(utc == MISSING, MISSING, seconds)
            out.pop("shift", None)
        if "end" in self.forms:
            end, end_offset = read_times(column("end"), self.forms["end"])
            if self.forms["end"].kind == "clock":
                day = out["start"]
                if "end_date" in self.forms:
                    day = read_times(column("end_date"), self.forms["end_date"])[0]
                end = _add(day, end)
                end = np.where((end < out["start"]) & (end != MISSING), end + DAY, end)
            out["end"] = end
            if end_offset is not None and offset is not None and self.meaning.trips:
                out["end_shift"] = end_offset.astype(np.int32)

    def _expand_lines(self, lines: Any, rows: int, out: dict[str, NDArray[Any]]) -> None:
        """Turn each row into one row per point of its line, every `interval` seconds."""
        a, b, size = read_lines(lines)
        self.counts["rows with a line of no points"] += int((size == 0).sum())
        at = np.repeat(np.arange(rows), size)
        step = np.arange(len(at)) - np.repeat(np.cumsum(size) - size, size)
        for role in list(out):
            out[role] = out[role][at]
        out["start"] = np.where(
            out["start"] == MISSING, MISSING, out["start"] + (step * self.interval).astype(np.int64)
        )
        out["line"] = (at + self.rows).astype(np.int32)
        out["lat"], out["lon"] = (a, b) if self.lat_first else (b, a)

    # --- the whole table ----------------------------------------------------------------------------------------------

    def finish(self, tz: str | None, unit: str | None, located: Any) -> tuple[Records, Preparation]:
        """Return the records of all batches, checked and by the local clock."""
        table, roles = self.table, self.roles
        self.counts += table.counts
        if self.rows == 0 or not self.store:
            raise InvalidTraces(f"{table.name} holds no rows that can be read.", code="E_EMPTY")
        columns: dict[str, Any] = {role: self.store.pop(role).finish() for role in list(self.store)}
        n = len(columns["start"])
        unread = self.counts["times that cannot be read"]
        if unread > MOST_UNREADABLE * n:
            label = table.labels.get(roles.get("time", roles.get("utc", roles.get("local", ""))), "")
            raise InvalidTraces(
                f"{table.name}: {unread} of {n} times of column {label} cannot be read; say how they are written "
                "(`date_format`), or which column has them (`columns` time=NAME).",
                code="E_DATE",
            )
        self._add_slots(columns)
        for side in ("", "end_"):
            self._check_positions(columns, side)
        near = _positions_of(columns, located)
        zone = self._to_local_clock(columns, tz, near)
        self._add_ends(columns)
        trips, keep = self.meaning.trips, np.ones(len(columns["start"]), dtype=bool)

        def drop(reason: str, rows: Mask) -> None:
            self.counts[reason] += int((rows & keep).sum())
            keep[rows] = False

        drop("rows without a time", columns["start"] == MISSING)
        if "user" in columns:
            drop("rows without a user", columns["user"] < 0)
        drop("rows without a place", ~_located(columns, ""))
        if trips:
            drop("trips without an end", columns.get("end", columns["start"]) == MISSING)
            drop("trips without a destination", ~_located(columns, "end_"))
        if "end" in columns:
            late = (columns["end"] < columns["start"]) & (columns["end"] != MISSING)
            drop(f"{'trips' if trips else 'visits'} that end before they start", late)
        if not keep.any():
            counts = ", ".join(f"{many:,} {what}" for what, many in self.counts.items() if many)
            raise InvalidTraces(f"{table.name}: no row can be used ({counts}).", code="E_EMPTY")
        if not keep.all():
            columns = {role: values[keep] for role, values in columns.items() if values is not None}
        return self._make_records(columns, zone, unit, n, located is not None)

    def _add_slots(self, columns: dict[str, Any]) -> None:
        """Add the time of slots of a day to their date, or to the number of their day."""
        slot, day = columns.pop("slot", None), columns.pop("day", None)
        if day is not None and "date" not in self.forms:
            columns["start"] = columns["start"] + DAY * np.where(np.isfinite(day), day, 0).astype(np.int64)
        if slot is None or "time" in self.forms or "utc" in self.forms or "local" in self.forms:
            return
        base = 1 if self.table.kind == "SGLT" else 0
        many = 24 if normalize(self.roles["slot"]).startswith("hour") else int(np.nan_to_num(slot).max()) + 1 - base
        step = DAY // (many if many in DAY_STEPS else next((s for s in (72, *DAY_STEPS) if many <= s), 72))
        self.notes.append(f"slots are read as {step // 60} minutes each, from midnight")
        good = np.isfinite(slot) & (slot >= base)
        start = columns["start"] + step * np.where(good, slot - base, 0).astype(np.int64)
        columns["start"] = np.where(good & (columns["start"] != MISSING), start, MISSING)

    def _check_positions(self, columns: dict[str, Any], side: str) -> None:
        """Refuse positions that are swapped or projected (B15 to B24); single ones that cannot be are dropped later."""
        lat, lon = columns.get(f"{side}lat"), columns.get(f"{side}lon")
        if lat is None or lon is None:
            return
        some = slice(None, None, max(1, len(lat) // 500_000))
        there = np.isfinite(lat[some]) & np.isfinite(lon[some])
        y, x = lat[some][there], lon[some][there]
        name, said = self.table.name, {"lat", "lon", "point"} & self.meaning.requested
        if len(y) == 0:
            if f"{side}place" in columns:
                return
            raise InvalidTraces(f"{name}: no row has a position that can be read.", code="E_NUMBER")
        labels = [self.table.labels.get(self.roles.get(f"{side}{axis}", ""), axis) for axis in ("lat", "lon")]
        exchanged = f"`columns` {side}lat={labels[1]},{side}lon={labels[0]}"
        scale = _find_scale(y, x) if self.whole else 1
        if scale > 1:
            self.notes.append(f"positions are read as {scale:,}ths of a degree")
            lat /= scale
            lon /= scale
            y, x = y / scale, x / scale
        high, far = np.abs(y), np.abs(x)
        if np.mean((high > 1_000) | (far > 1_000)) > 0.5:
            raise InvalidTraces(
                f"{name}: columns {labels[0]} and {labels[1]} are no degrees, but metres of "
                "a projection or parts of degrees; convert them to latitude and longitude (EPSG:4326).",
                code="E_SWAPPED",
            )
        if np.mean((high > 90) & (high <= 180) & (far <= 90)) > MOST_UNREADABLE:
            raise InvalidTraces(f"{name}: latitude and longitude look swapped; give {exchanged}.", code="E_SWAPPED")
        if np.mean((high > 90) | (far > 360)) > MOST_UNREADABLE:
            raise InvalidTraces(
                f"{name}: columns {labels[0]} and {labels[1]} hold no latitudes and longitudes.", code="E_OUTSIDE"
            )
        if not said and far.max() <= 90 and share_on_land(y, x) < 0.05 and share_on_land(x, y) > 0.95:
            raise InvalidTraces(
                f"{name}: the positions lie at sea, and on land if exchanged; give {exchanged} "
                f"to exchange them, or {side}lat={labels[0]},{side}lon={labels[1]} if they are right.",
                code="E_SWAPPED",
            )
        wide = (lon > 180) & (lon <= 360)
        if wide.any():
            self.notes.append("longitudes from 180 to 360 are read as western ones")
            lon[wide] -= 360

    def _to_local_clock(self, columns: dict[str, Any], tz: str | None, near: tuple[Floats, Floats] | None) -> str:
        """Turn times into those of the local clock, and return its zone."""
        start, shift, offset = columns["start"], columns.pop("shift", None), columns.pop("offset", None)
        end_shift = columns.pop("end_shift", None)
        zone, share = find_zone(*near) if near is not None else (None, 0.0)
        self.offset, self.zones = shift is not None, False
        if shift is None:
            if "time" in self.forms or "local" in self.forms:
                where = f"of {zone}, where the positions lie" if zone and tz is None else "as it stands"
                self.notes.append(f"times carry no offset: they are the local clock {tz or where} (`tz`)")
            return tz or zone or "UTC"
        there = start != MISSING
        if tz is not None:
            local = to_local(start, tz)
        elif offset is not None:
            minutes = np.where(np.isfinite(offset), offset, 0)
            per = next(unit for unit, most in ((3600, 14), (60, 14 * 60), (1, np.inf)) if np.abs(minutes).max() <= most)
            local = np.where(there, start + (per * minutes).astype(np.int64), MISSING)
            self.notes.append("the local clock is UTC and the file's own offset")
        elif shift.any() and zone is not None and share >= ONE_ZONE:
            local = to_local(start, zone)
            other = float(np.mean(local[there] != (start + shift)[there])) if there.any() else 0.0
            turned = (
                find_zone(near[1], near[0])[0] if near is not None and other > 0.9 and "point" in self.roles else None
            )
            if turned is not None and np.mean(to_local(start, turned)[there] != (start + shift)[there]) < 0.1:
                zone, local = turned, to_local(start, turned)
                columns["lat"], columns["lon"] = columns["lon"], columns["lat"]
                self.notes.append(f"points are read with the latitude first: the offset of the times is that of {zone}")
            elif other > MOST_UNREADABLE:
                self.notes.append(
                    f"{other:.0%} of the times have another offset than {zone}, where the positions lie and whose "
                    "clock is taken (`tz`); are latitude and longitude exchanged?"
                )
        elif shift.any():
            local = np.where(there, start + shift, MISSING)
            self.zones = len(np.unique(shift)) > 2
            if end_shift is not None and "end" in columns:
                columns["end"] = np.where(
                    columns["end"] == MISSING, MISSING, columns["end"] + end_shift - (local - start)
                )
        elif zone is None:
            self.notes.append("times are UTC, and so are days and hours; give `tz` for local ones")
            local = start
        elif share >= ONE_ZONE or "lat" not in columns or len(columns["lat"]) != len(start):
            self.notes.append(f"times are UTC: days and hours are those of {zone}, where the positions lie (`tz`)")
            local = to_local(start, zone)
        else:
            local, many = to_local_by_place(start, columns["lat"], columns["lon"], zone)
            self.zones = True
            self.notes.append(
                f"times are UTC: days and hours are those of the {many} zones where the positions lie (`tz`)"
            )
        if "end" in columns:
            end = columns["end"]
            columns["end"] = np.where((end == MISSING) | ~there, end, end + (local - start))
        columns["start"] = local
        return tz or zone or "UTC"

    def _add_ends(self, columns: dict[str, Any]) -> None:
        """Add the end of visits and trips that say how long they last."""
        duration = columns.pop("duration", None)
        if duration is None or "end" in columns:
            return
        name = normalize(self.roles["duration"])
        known = duration[np.isfinite(duration) & (duration > 0)]
        unit = 60 if "min" in name else 3600 if name.endswith(("hours", "h")) else 0.001 if name.endswith("ms") else 0
        if not unit:
            short = self.meaning.trips and len(known) > 0 and np.median(known) <= 60
            unit = 60 if short else 1
            if "sec" not in name:
                label = self.table.labels[self.roles["duration"]]
                self.notes.append(f"column {label} is read as {'minutes' if short else 'seconds'}")
        good = np.isfinite(duration) & (columns["start"] != MISSING) & (np.abs(duration) < 1e9)
        columns["end"] = np.where(good, columns["start"] + (np.nan_to_num(duration) * unit).astype(np.int64), MISSING)

    def _make_records(
        self, columns: dict[str, Any], zone: str, unit: str | None, rows: int, located: bool
    ) -> tuple[Records, Preparation]:
        """Return the columns as records: trips as two each, with the unit that users are."""
        trips = self.meaning.trips
        n = len(columns["start"])
        end = columns.pop("end", None)
        end = columns["start"] if end is None else np.where(end == MISSING, columns["start"], end)
        users, labels = columns.pop("user", None), self.labels["user"].names
        trip, line = columns.pop("trip", None), columns.pop("line", None)
        own, occupied = "person", columns.pop("occupied", None)
        if line is not None:
            trip = np.unique(line, return_inverse=True)[1].astype(np.int32)
        elif trips:
            trip = np.arange(n, dtype=np.int32)
        elif trip is not None and users is not None:  # two people may call their trips alike
            pair = np.where(trip < 0, -1, trip * np.int64(len(labels)) + users)
            known, number = np.unique(pair, return_inverse=True)
            trip = (number - (known[0] < 0)).astype(np.int32)
        if users is None:
            own = "trip"
            lost = trip if trip is not None else np.arange(n)
            known, users = np.unique(lost, return_inverse=True)
            users, labels = users.astype(np.int32), tuple(str(i) for i in range(1, len(known) + 1))
            self.notes.append(
                "no column is known to tell who travelled (`columns` user=NAME): each trip stands for itself, nobody "
                "is protected beyond a trip"
            )
        fields: dict[str, Any] = {"user": users, "start": columns["start"], "end": end, "trip": trip}
        if occupied is not None and trip is None:
            fields["trip"] = occupied.astype(np.int32) - 1
        for role in ("lat", "lon", "place", "kind"):
            fields[role] = columns.get(role)
        if trips:
            fields = _two_ends(fields, columns, end)
        instant = fields["end"] is fields["start"] or bool(np.array_equal(fields["start"], fields["end"]))
        record = "trips" if trips else "events" if instant else "visits"
        roles = _written_roles(self.roles, self.table.names)
        form = Form(record, own, roles, self.offset, zones=self.zones)
        records = Records(
            users=labels,
            places=self.labels["place"].names,
            kinds=self.labels["kind"].names,
            tz=zone,
            form=form,
            **fields,
        )
        records = records.number_users()
        if own == "person" and len(records) > ALONE and len(records.users) > 0.9 * len(records):
            self.notes.append("hardly anybody has two records: a user is no more than a record, and protected as one")
        if records.lat is None and not located:
            self.notes.append("places have no positions: give `locations`, or the folder that holds their table too")
        records = records.sort() if trip is not None and not trips else records
        if record == "events":
            records = self._tell_fixes(records)
        if occupied is not None and trip is None:
            records = _number_rides(records)
        vehicle = self.meaning.vehicle or occupied is not None
        if own == "person" and (unit == "vehicle-day" or (unit is None and vehicle and records.trip is not None)):
            records = self._cut_vehicles(records)
        elif own == "trip" and unit not in (None, "trip"):
            raise InvalidParameter(
                f'`unit` must be "trip": no column tells who travelled, got {unit!r}.', code="E_COLUMNS"
            )
        counts = {reason: many for reason, many in self.counts.items() if many}
        # rows whose time or position cannot be read are also counted as rows without a time or a place
        changed = {reason: counts.pop(reason) for reason in list(counts) if reason.startswith(CHANGED)}
        preparation = Preparation(
            name=self.table.name, format=self.table.kind, rows=max(rows, self.rows), dropped=counts, changed=changed,
            form=records.form, tz=zone, notes=tuple(dict.fromkeys(self.notes)),
        )  # fmt: skip
        return records, preparation

    def _tell_fixes(self, records: Records) -> Records:
        """Return the records as fixes where positions come densely and belong to no place of the file."""
        some = np.flatnonzero(records.user < max(1, 1_000_000 * len(records.users) // len(records)))
        few = records.select(some).sort()
        gaps = np.diff(few.start)[few.user[1:] == few.user[:-1]]
        usual = float(np.median(gaps)) if len(gaps) else np.inf
        fixes = records.lat is not None and records.place is None and usual <= SPARSE
        record = "trips" if "points" in self.roles else "fixes" if fixes else records.form.record
        return replace(records, form=replace(records.form, record=record, interval=int(min(usual, DAY))))

    def _cut_vehicles(self, records: Records) -> Records:
        """Return the trips of vehicles by shift, each as a user of its own."""
        records = records.sort()
        day = (records.start - NEW_DAY) // DAY
        new = (np.diff(records.user) != 0) | (np.diff(day) != 0) | (np.diff(records.start) > PAUSE)
        if records.form.record == "trips":  # a trip is of one shift
            new &= (np.diff(np.asarray(records.trip)) != 0) | (np.diff(records.user) != 0)
        number = np.concatenate([[0], np.cumsum(new)]).astype(np.int32)
        labels = tuple(str(i) for i in range(1, int(number[-1]) + 2))
        self.notes.append(
            f"{counted(len(records.users), 'vehicle')}: each shift (until two hours of silence, or a day) is a unit "
            '(`unit` "person" keeps them whole)'
        )
        return replace(records, user=number, users=labels, form=replace(records.form, unit="vehicle-day"))


def _find_scale(lat: Floats, lon: Floats) -> int:
    """Return by what to divide whole numbers to have degrees on land; 1 where that is not plain."""
    fits = [
        scale
        for scale in (10**5, 10**6, 10**7)
        if np.abs(lat).max() <= 90 * scale
        and np.abs(lon).max() <= 180 * scale
        and np.abs(lon).max() > scale / 10
        and share_on_land(lat / scale, lon / scale) > 0.95
    ]
    return fits[0] if len(fits) == 1 else 1


def _truths() -> Any:
    import pyarrow as pa

    return pa.array(["1", "true", "yes", "t", "y"])


def _add(date: Ints, clock: Ints) -> Ints:
    """Return the time of clocks on the days of dates."""
    there = (date != MISSING) & (clock != MISSING)
    return np.where(there, np.where(there, date, 0) // DAY * DAY + np.where(there, clock, 0), MISSING)


def _located(columns: Mapping[str, Any], side: str) -> Mask:
    """Tell which rows have a position or a place."""
    where = np.zeros(len(columns["start"]), dtype=bool)
    if columns.get(f"{side}lat") is not None:
        where |= np.isfinite(columns[f"{side}lat"]) & np.isfinite(columns[f"{side}lon"])
    if columns.get(f"{side}place") is not None:
        where |= columns[f"{side}place"] >= 0
    return where


def _positions_of(columns: Mapping[str, Any], located: Locations | PlaceTable | None) -> tuple[Floats, Floats] | None:
    """Return positions that tell the zone: the records' own, or those of the given places."""
    if columns.get("lat") is not None:
        return columns["lat"], columns["lon"]
    if (
        located is not None
        and located.lat is not None
        and located.lon is not None
        and getattr(located, "planar", False) is not True
    ):
        return located.lat, located.lon
    return None


def _two_ends(fields: dict[str, Any], columns: Mapping[str, Any], end: Ints) -> dict[str, Any]:
    """Return two records for each trip: where and when it begins, where and when it ends."""

    def both(first: Any, last: Any) -> Any:
        return np.stack([first, last], axis=1).reshape(-1)

    two = {role: None if fields[role] is None else both(fields[role], fields[role]) for role in ("user", "trip")}
    two["start"] = both(fields["start"], end)
    two["end"] = two["start"]
    for role in ("lat", "lon", "place"):
        first, last = fields[role], columns.get(f"end_{role}")
        two[role] = None if first is None or last is None else both(first, last)
    two["kind"] = None
    return two


def _written_roles(roles: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return role -> name of a column in the file's order, with the roles that writing knows."""
    spoken = {"time": "start", "local": "start", "utc": "utc"}
    if not {"time", "local"} & roles.keys() and "utc" in roles:
        spoken["utc"] = "start"
    named = {name: spoken.get(role, role) for role, name in roles.items() if name != FILE}
    first = {"user": "user"} if roles.get("user") == FILE else {}  # whom the file's name tells has a column too
    return first | {named[name]: name for name in names if name in named}


def _number_rides(records: Records) -> Records:
    """Return the records in order, with each run of occupied ones as a trip."""
    records = records.sort()
    occupied = np.asarray(records.trip) >= 0
    first = occupied & np.concatenate([[True], ~occupied[:-1] | (np.diff(records.user) != 0)])
    return replace(records, trip=np.where(occupied, np.cumsum(first) - 1, -1).astype(np.int32))
