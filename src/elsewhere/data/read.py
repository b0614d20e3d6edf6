"""
Read a source as visits: open it, find its columns, read records and their local clock, then stays and places.

Everything that is left out is counted in `Preparation` and said; nothing that a message or a count shows is a value of
a trace. A second source is read on the map of the first by `read_visits(b, locations=first.locations)`.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.columns import (
    COUNTED,
    Columns,
    find_columns,
    find_named,
    is_called_time,
    is_latitude_first,
    refuse,
    seconds_of_unit,
)
from elsewhere.data.formats import open_tables
from elsewhere.data.place_table import PlaceTable, find_zones, is_table_of_places
from elsewhere.data.places import make_visits
from elsewhere.data.stays import ELSEWHERE, clean, find_stays, split_vehicles, whole_trips
from elsewhere.data.tables import FILE, Table
from elsewhere.data.times import (
    ASKED,
    MISSING,
    NO_DAY,
    TimeForm,
    find_form,
    find_zone,
    is_clock,
    read_times,
    to_local,
    to_local_by_place,
)
from elsewhere.data.values import Labels, as_text, read_lines, read_numbers, read_points, sample_text
from elsewhere.data.visits import DAY, UNITS, Form, Ints, Locations, Mask, Preparation, Records, Visits, zone_of
from elsewhere.errors import InvalidParameter, InvalidTraces, counted, require_between, require_choice

ALONE = 100  # records, above which as many users as records are worth a word
MOST_UNREADABLE = 0.05  # share of times or positions that cannot be read, above which a source is refused
MOST_MIXED = 0.6  # share of fixes of one user at one time at different places, above which a source is refused
ONE_ZONE = 0.98  # share of the points in one zone, above which its clock is everybody's
DAY_STEPS = (24, 48, 72, 96, 144, 288, 1440, 86_400)  # slots that are a whole day
SPARSE = 1_800  # seconds between two records of somebody, in the median, above which positions are events, no fixes
NULL_ISLAND = "at latitude 0, longitude 0, which stands for no position"
CHANGED = (
    "times that",
    "positions that",
    "characters that",
    "lines that",
)  # beginnings of counts of what is there otherwise
LINE_INTERVAL = 15  # seconds between two points of a line, as in the taxi data of Porto
SHIFTS = 'each shift, until two hours of standing or silence, or a day, is a unit (`unit` "person" keeps them whole)'
LABELS = {"user": "user", "place": "place", "end_place": "place", "kind": "kind", "trip": "trip"}
POSITIONS = ("lat", "lon", "end_lat", "end_lon")
NUMBERS = (*POSITIONS, "offset")
TRUTHS = ("1", "true", "yes", "t", "y")
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
        JSON, GeoJSON, GPX, GeoLife, Google's Timeline, Foursquare's check-ins, SGLT and workbooks.
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
    how = {"columns": columns, "tz": tz, "locations": locations, "date_format": date_format, "encoding": encoding}
    records, preparation, own_map, shapes = read_records(source, **how, unit=unit, interval=interval, progress=progress)
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
            note = f"{counted(len(records.users), 'vehicle')}, out all day: {SHIFTS}"
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
        require_choice("unit", unit, tuple(UNITS))
    require_between("interval", interval, 0, DAY, open_low=True)
    table, beside = _choose_table(open_tables(source, encoding=encoding), columns, unit)
    given = beside if locations is None else locations
    own_map = given if given is None or isinstance(given, Locations) else PlaceTable(given)
    meaning = find_columns(table, columns, alone=unit == "trip")
    reader = _Reader(meaning, date_format, interval)
    for batch in meaning.table.batches(sorted(set(meaning.roles.values()))):
        reader.add(batch)
        if progress is not None:
            progress("reading", reader.rows)
    records, preparation = reader.finish(tz, unit, own_map)
    if not isinstance(own_map, PlaceTable):
        return records, preparation, own_map, []
    return records, preparation, own_map.join(records), own_map.shapes


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


class _Reader:
    """Gather the columns of all batches of a table as arrays, one per role, and make records of them."""

    def __init__(self, meaning: Columns, date_format: str | None, interval: float) -> None:
        self.table, self.meaning, self.interval = meaning.table, meaning, interval
        self.roles, self.rows = meaning.roles, 0
        self.counts: Counter[str] = Counter()
        self.notes = [*self.table.notes, *meaning.notes]
        self.labels = {role: Labels() for role in LABELS.values()}
        self.store: dict[str, list[NDArray[Any]]] = {}
        self.forms = {
            role: self._find_form(role, date_format)
            for role in ("time", "utc", "slot", "date", "end", "end_date")
            if role in self.roles
        }
        self.clock = next((role for role in ("time", "utc", "slot") if role in self.forms), None)
        if self.clock == "time" and not self.forms["time"].clock:
            self.forms.pop("date", None)
        self.utc = self.table.kind == "geolife" or self.clock == "utc"
        self.unit = self._find_unit() if "duration" in self.roles and "end" not in self.forms else 0.0

    def _find_form(self, role: str, date_format: str | None) -> TimeForm:
        """Return how a column of times is written; where a sample leaves it open, by all of its values."""
        import pyarrow as pa

        name = self.roles[role]
        label, column = self.meaning.labels.get(name, name), self.table.sample.column(name)
        if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
            return TimeForm("typed", aware=getattr(column.type, "tz", None) is not None)
        values = sample_text(column)
        if not values:
            raise InvalidTraces(f"{self.table.name}: column {label} is empty.", code="E_DATE")
        whole = self.meaning.kinds.get(name) in COUNTED and not is_clock(values)
        if role == "slot" or (whole and seconds_of_unit(name)):
            return self._find_count(name, label)
        if self.meaning.kinds.get(name) == "clock" or is_clock(values):
            date_format = None

        def every() -> list[str]:
            counts = self.table.counts.copy()
            every = {v for batch in self.table.batches([name]) for v in sample_text(batch.column(name).unique())}
            self.table.counts.clear()  # what is not read is counted once
            self.table.counts.update(counts)
            return sorted(every)

        form = find_form(values, label, self.table.name, date_format, every)
        self.notes += [form.note] if form.note else []
        return form

    def _find_count(self, name: str, label: str) -> TimeForm:
        """Return the form of times counted from midnight, in the unit that the name tells, or the largest."""
        first = 1 if self.table.kind == "SGLT" else 0
        last = np.nan_to_num(read_numbers(self.table.sample.column(name))[0]).max() - first
        step = seconds_of_unit(name)
        if not step:  # the fewest slots that are a whole day and have the numbers of a sample
            step = DAY // next((many for many in DAY_STEPS if last < many), DAY_STEPS[-1])
        each = f"{step / 60:g} min" if step >= 60 else f"{step:g} s"
        self.notes.append(f"column {label} is read as steps of {each} from midnight")
        return TimeForm("count", step=step, first=first)

    def _find_unit(self) -> float:
        """Return the seconds of the unit in which it is told how long visits and trips last."""
        label, unit = self.meaning.labels[self.roles["duration"]], seconds_of_unit(self.roles["duration"])
        if unit:
            return unit
        known = read_numbers(self.table.sample.column(self.roles["duration"]))[0]
        short = self.meaning.trips and np.any(known > 0) and np.median(known[known > 0]) <= 60
        self.notes.append(f"column {label} is read as {'minutes' if short else 'seconds'}")
        return 60 if short else 1

    def add(self, batch: Any) -> None:
        """Add the rows of a batch."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = len(batch)
        if rows == 0:
            return
        column = {role: batch.column(name).combine_chunks() for role, name in self.roles.items()}
        out: dict[str, NDArray[Any]] = {}
        for role, of in LABELS.items():
            if role in column:
                out[role] = self.labels[of].codes(column[role])
        self._add_times(column, rows, out)
        for role in NUMBERS:
            if role in column:
                out[role], bad = read_numbers(column[role])
                self.counts["positions that are no numbers"] += bad * role.endswith(("lat", "lon"))
        for side in ("", "end_"):
            if f"{side}point" in column and f"{side}lat" not in column:
                out[f"{side}lat"], out[f"{side}lon"] = read_points(column[f"{side}point"])
        if "occupied" in column:
            flag = pc.is_in(pc.utf8_lower(as_text(column["occupied"])), value_set=pa.array(TRUTHS))
            out["occupied"] = np.asarray(flag).astype(np.int8)
        if "points" in column:
            self._expand_lines(column["points"], rows, out)
        elif self.meaning.trips:
            self._expand_trips(rows, out)
        for role, values in out.items():
            self.store.setdefault(role, []).append(values)
        self.rows += rows

    def _add_times(self, column: dict[str, Any], rows: int, out: dict[str, NDArray[Any]]) -> None:
        """Add start, its offset from UTC, and end, in seconds."""
        read = {role: read_times(column[role], form) for role, form in self.forms.items()}
        number = {role: read_numbers(column[role])[0] for role in ("day", "duration") if role in column}
        date, offset = np.full(rows, NO_DAY, dtype=np.int64), None
        if "date" in read:
            date = read["date"][0]
        elif "day" in number:
            date = date + DAY * np.nan_to_num(number["day"].clip(-1e9, 1e9)).astype(np.int64)
        start = date
        if self.clock is not None:
            start, offset = read[self.clock]
            if self.forms[self.clock].clock:
                if "date" not in read and "day" not in number:
                    self.notes.append("clock times without dates are read as those of one day")
                start = _add(date, start)
            unread = int((start == MISSING).sum()) - column[self.clock].null_count
            self.counts["times that cannot be read"] += unread
        out["start"] = start
        if offset is None and self.utc:
            offset = np.zeros(rows, dtype=np.int64)
        if offset is not None:
            out["shift"] = offset.astype(np.int32)
        if "end" in read:
            end, last = read["end"]
            if offset is not None and last is not None:
                out["end_shift"] = last.astype(np.int32)
            if self.forms["end"].clock:
                end = _add(read["end_date"][0] if "end_date" in read else start, end)
                end = np.where((end < start) & (end != MISSING), end + DAY, end)
            out["end"] = end
        elif "duration" in number:
            good = (np.abs(np.nan_to_num(number["duration"], nan=1e9)) < 1e9) & (start != MISSING)
            length = (np.where(good, number["duration"], 0) * self.unit).astype(np.int64)
            out["end"] = np.where(good, start + length, MISSING)

    def _expand_trips(self, rows: int, out: dict[str, NDArray[Any]]) -> None:
        """Turn each row into two points of a line: where and when it begins, where and when it ends."""
        out.setdefault("end", out["start"])
        ends = {
            "start": out.pop("end"),
            "shift": out.pop("end_shift", out.get("shift")),
            **{role: out.pop(f"end_{role}", None) for role in ("lat", "lon", "place")},
        }
        for role in list(out):
            last = ends.get(role, out[role])
            if last is None or role in ("kind", "trip", "occupied"):
                del out[role]
            else:
                out[role] = np.stack([out[role], last], axis=1).reshape(-1)
        out["line"] = np.repeat(np.arange(rows, dtype=np.int32), 2) + np.int32(self.rows)

    def _expand_lines(self, lines: Any, rows: int, out: dict[str, NDArray[Any]]) -> None:
        """Turn each row into one row per point of its line, every `interval` seconds."""
        a, b, size = read_lines(lines)
        self.counts["rows with a line of no points"] += int((size == 0).sum())
        at = np.repeat(np.arange(rows), size)
        step = np.arange(len(at)) - np.repeat(np.cumsum(size) - size, size)
        for role in list(out):
            out[role] = out[role][at]
        later = (step * self.interval).astype(np.int64)
        out["start"] = np.where(out["start"] == MISSING, MISSING, out["start"] + later)
        out["line"] = (at + self.rows).astype(np.int32)
        out["lat"], out["lon"] = a, b

    # --- the whole table ----------------------------------------------------------------------------------------------

    def finish(self, tz: str | None, unit: str | None, located: Any) -> tuple[Records, Preparation]:
        """Return the records of all batches, checked and by the local clock."""
        self.counts += self.table.counts
        if self.rows == 0 or not self.store:
            raise InvalidTraces(f"{self.table.name} holds no rows that can be read.", code="E_EMPTY")
        columns: dict[str, Any] = {role: np.concatenate(self.store.pop(role)) for role in list(self.store)}
        n, unread, trips = self.rows, self.counts["times that cannot be read"], self.meaning.trips
        rows = n if trips else max(n, len(columns["start"]))
        if unread > MOST_UNREADABLE * n:
            label = self.meaning.labels.get(self.roles[self.clock or "date"], "")
            raise InvalidTraces(
                f"{self.table.name}: {unread} of {n} times of column {label} cannot be read; say how they are written "
                "(`date_format`), or which column has them (`columns` time=NAME).",
                code="E_DATE",
            )
        columns = self._drop(columns, {"rows without a time": columns["start"] == MISSING})
        self._check_hours(columns["start"])
        self._order_points(columns)
        self._check_positions(columns)
        zone = self._to_local_clock(columns, tz, located)
        columns = self._drop(columns, self._faults(columns))
        record, fields = self._find_records(columns)
        records = self._make_records(record, fields, zone, unit)
        if records.lat is None and located is None:
            self.notes.append("places have no positions: give `locations`, or the folder that holds their table too")
        lost = self.meaning.unused
        if "kind" in self.roles and records.kind is None:
            lost.append(self.roles["kind"])
        counts = {reason: many for reason, many in self.counts.items() if many}
        # rows whose time or position cannot be read are also counted as rows without a time or a place
        changed = {reason: counts.pop(reason) for reason in list(counts) if reason.startswith(CHANGED)}
        return records, Preparation(
            name=self.table.name, format=self.table.kind, rows=rows, dropped=counts, changed=changed,
            form=records.form, tz=zone, notes=tuple(dict.fromkeys(self.notes)),
            left_out=tuple(self.meaning.labels[name] for name in lost),
        )  # fmt: skip

    def _drop(self, columns: dict[str, Any], faults: dict[str, Mask]) -> dict[str, Any]:
        """Return the rows without a fault; the others are counted, each by its first. A trip goes as a whole."""
        bad = np.zeros(len(columns["start"]), dtype=bool)
        for reason, rows in faults.items():
            rows = whole_trips(columns["line"], rows) if self.meaning.trips else rows
            self.counts[reason] += int((rows & ~bad).sum()) // (2 if self.meaning.trips else 1)
            bad |= rows
        if bad.all():
            counts = ", ".join(f"{many:,} {what}" for what, many in self.counts.items() if many)
            raise InvalidTraces(f"{self.table.name}: no row can be used ({counts}).", code="E_EMPTY")
        return {role: values[~bad] for role, values in columns.items()} if bad.any() else columns

    def _faults(self, columns: dict[str, Any]) -> dict[str, Mask]:
        """Return the rows that cannot be used, by reason; positions that cannot be are taken away."""
        start, end, lat, lon = columns["start"], columns.get("end"), columns.get("lat"), columns.get("lon")
        faults: dict[str, Mask] = {"rows without a place": ~_located(columns)}
        if "user" in columns:
            faults["rows without a user"] = columns["user"] < 0
        if lat is not None and lon is not None:
            for reason, wrong in (
                ("off the globe", (np.abs(lat) > 90) | (np.abs(lon) > 360)),
                (NULL_ISLAND, (lat == 0) & (lon == 0)),
            ):
                lat[wrong] = lon[wrong] = np.nan
                faults[reason] = wrong & ~_located(columns)
        if self.meaning.trips:
            faults["trips that end before they start"] = np.repeat(start[1::2] < start[::2], 2)
        elif end is not None:
            faults["visits that end before they start"] = (end < start) & (end != MISSING)
        return faults

    def _check_hours(self, start: Ints) -> None:
        """Refuse times that are all at 0:00 beside a column of clock times; say so where there is none."""
        if "slot" in self.roles or np.any(start % DAY):
            return
        if self.meaning.free("clock") or any(map(is_called_time, self.meaning.free())):
            refuse(self.meaning, ["start"])
        self.notes.append("no column tells the time of day: all records are at 0:00")

    def _check_positions(self, columns: dict[str, Any]) -> None:
        """Refuse positions that are swapped or projected (B15 to B24); single ones that cannot be are dropped later."""
        lat, lon = columns.get("lat"), columns.get("lon")
        if lat is None or lon is None:
            return
        some = slice(None, None, max(1, len(lat) // 500_000))
        there = np.isfinite(lat[some]) & np.isfinite(lon[some])
        y, x, name = lat[some][there], lon[some][there], self.table.name
        if len(y) == 0:
            if "place" in columns:
                return
            raise InvalidTraces(f"{name}: no row has a position that can be read.", code="E_NUMBER")
        role = next((role for role in ("point", "points") if role in self.roles), "lat")
        label = {axis: self.meaning.labels[self.roles.get(axis, self.roles[role])] for axis in POSITIONS}
        sides = [side for side in ("", "end_") if f"{side}lat" in self.roles]
        right, wrong = (
            ",".join(f"{side}lat={label[f'{side}{a}']},{side}lon={label[f'{side}{b}']}" for side in sides)
            for a, b in (("lat", "lon"), ("lon", "lat"))
        )
        right, remedy = (right, f"give `columns` {wrong}") if sides else (f"{role}={label['lat']}", "exchange them")
        high, far = np.abs(y), np.abs(x)
        names, said = f"{label['lat']} and {label['lon']}", {"lat", "lon", role} & self.meaning.requested
        code, fault, beyond = "E_SWAPPED", "", np.mean(high > 90) > MOST_UNREADABLE
        # where all angles in radians would be degrees there is no land
        if np.mean((high > 1_000) | (far > 1_000)) > 0.5 or (high.max() <= np.pi / 2 and far.max() <= np.pi):
            fault = (
                f"{names} are no degrees, but metres of a projection, parts of degrees or radians; convert them to "
                "latitude and longitude (EPSG:4326)"
            )
        elif (beyond or not said) and (is_latitude_first(y, x) is False or self._offsets_of_exchanged(columns)):
            fault = f"latitude and longitude look swapped, by what is possible, on land, or on the clock; {remedy}"
            fault += "" if beyond else f", or give `columns` {right} if they are right"
        elif beyond or np.mean(far > 360) > MOST_UNREADABLE:
            code, fault = "E_OUTSIDE", f"{names} are no degrees"
        if fault:
            raise InvalidTraces(f"{name}: {fault}.", code=code)
        wide = (lon > 180) & (lon <= 360)
        if wide.any():
            self.notes.append("longitudes from 180 to 360 are read as western ones")
            lon[wide] -= 360

    def _to_local_clock(self, columns: dict[str, Any], tz: str | None, located: Any) -> str:
        """Turn times into those of the local clock, and return its zone."""
        start, shift, offset = columns["start"], columns.pop("shift", None), columns.pop("offset", None)
        own = "lat" in columns and "lon" in columns
        near = (
            (columns["lat"], columns["lon"]) if own else (getattr(located, "lat", None), getattr(located, "lon", None))
        )
        zone, share = find_zone(*near)
        self.offset, self.zones = shift is not None, False
        if shift is None:
            if {"time", "date"} & self.forms.keys():
                where = f"of {zone}, where the positions lie" if zone and tz is None else "as it stands"
                self.notes.append(f"times carry no offset: they are the local clock {tz or where} (`tz`)")
            return tz or zone or "UTC"
        written = bool(shift.any())
        alone = zone is not None and (share >= ONE_ZONE or ("lat" not in columns and not written))
        used = tz or (zone if alone and offset is None else None)
        last = columns.pop("end_shift", shift)
        if offset is not None:
            known = np.where(np.abs(offset) <= DAY, offset, 0)
            far = np.abs(known).max()  # hours, minutes or seconds
            shift = last = (known * (3600 if far <= 14 else 60 if far <= 14 * 60 else 1)).astype(np.int64)
        by_place = used is None and offset is None and zone is not None and not written

        def clock(seconds: Ints, east: Ints) -> Ints:
            if used is not None:
                return to_local(seconds, used)
            if by_place:
                return to_local_by_place(seconds, columns["lat"], columns["lon"], str(zone))
            return np.where(seconds == MISSING, MISSING, seconds + east)

        local = clock(start, shift)
        if offset is not None:
            told = "the local clock is UTC and the file's own offset"
        elif used is not None and written:
            other = float(np.mean(local != start + shift))
            told = f"{other:.0%} of the times have another offset than {used}, where the positions lie and whose clock "
            told = f"{told}is taken (`tz`)" if other > MOST_UNREADABLE else ""
        elif used is not None or by_place:
            clocks = used or f"{counted(len(np.unique(local - start)), 'clock')}"
            told = f"times are UTC: days and hours are those of {clocks}, where the positions lie (`tz`)"
        else:
            told = "" if written else "times are UTC, and so are days and hours; give `tz` for local ones"
        self.notes += [told] if told and tz is None else []
        self.zones = by_place or (used is None and offset is None and len(np.unique(shift)) > 2)
        if "end" in columns:
            columns["end"] = clock(columns["end"], last)
        columns["start"] = local
        return tz or zone or "UTC"

    def _order_points(self, columns: dict[str, Any]) -> None:
        """Find which side of points is the latitude, and exchange them if it is the second."""
        role = next((r for r in ("point", "points") if r in self.roles), None)
        if role is None:
            return
        some = slice(None, None, max(1, len(columns["lat"]) // ASKED))
        a, b = (columns[axis][some] for axis in ("lat", "lon"))
        written = " ".join(sample_text(self.table.sample.column(self.roles[role]))[:3])
        geojson = self.table.kind == "json" and self.roles[role].endswith("coordinates")
        # well-known text and GeoJSON have the longitude first, other points and lists are told by their values
        known = geojson or re.search("(?i)point|linestring", written)
        there = np.isfinite(a) & np.isfinite(b)
        first = False if known else is_latitude_first(a[there], b[there]) if there.any() else None
        if first is None:
            first = role == "point"
            self.notes.append(f"points are read with the {'latitude' if first else 'longitude'} first")
        if not first:
            columns["lat"], columns["lon"] = columns["lon"], columns["lat"]
        if self._offsets_of_exchanged(columns):
            columns["lat"], columns["lon"] = columns["lon"], columns["lat"]
            place = "last" if first else "first"
            self.notes.append(f"points are read with the latitude {place}, as the offsets of the times say")

    def _offsets_of_exchanged(self, columns: dict[str, Any]) -> bool:
        """Tell whether times have the offsets of the positions with latitude and longitude exchanged, not their own."""
        shift = columns.get("shift")
        if shift is None or not shift.any():
            return False
        some = slice(None, None, max(1, len(shift) // ASKED))
        lat, lon, start, east = (columns[name][some] for name in ("lat", "lon", "start", "shift"))
        zones = (find_zone(*sides)[0] for sides in ((lat, lon), (lon, lat)))
        own, other = (float(np.mean(to_local(start, zone) - start == east)) if zone else 0.0 for zone in zones)
        return own <= 1 - MOST_MIXED and other >= MOST_MIXED

    def _find_records(self, columns: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the kind of record and its columns; -1 is no trip."""
        start, end = columns["start"], columns.get("end")
        end = start if end is None else np.where(end == MISSING, start, end)
        users, trip, line = columns.get("user"), columns.get("trip"), columns.get("line")
        if line is not None:
            trip = np.unique(line, return_inverse=True)[1].astype(np.int32)
        elif trip is not None and users is not None:  # two people may call their trips alike
            pair = np.where(trip < 0, -1, trip * np.int64(len(self.labels["user"].number)) + users)
            known, number = np.unique(pair, return_inverse=True)
            trip = (number - (known[0] < 0)).astype(np.int32)
        if users is None:
            lost = np.arange(len(start)) if trip is None else trip
            users = np.unique(lost, return_inverse=True)[1].astype(np.int32)
        if "occupied" in columns and trip is None:
            trip = columns["occupied"].astype(np.int32) - 1
        fields: dict[str, Any] = {"user": users, "start": start, "end": end, "trip": trip}
        fields |= {role: columns.get(role) for role in ("lat", "lon", "place", "kind")}
        if self.meaning.trips:
            return "trips", fields
        return "events" if end is start or np.array_equal(start, end) else "visits", fields

    def _make_records(self, record: str, fields: dict[str, Any], zone: str, unit: str | None) -> Records:
        """Return columns as records of the unit that users are."""
        own = "person" if "user" in self.roles else "trip"
        labels = self.labels["user"].names
        if own == "trip":
            labels = tuple(str(i) for i in range(1, int(fields["user"].max()) + 2))
            self.notes.append(
                "no column is known to tell who travelled (`columns` user=NAME): each trip stands for itself, nobody "
                "is protected beyond a trip"
            )
            if unit not in (None, "trip"):
                raise InvalidParameter(
                    f'`unit` must be "trip": no column tells who travelled, got {unit!r}.', code="E_COLUMNS"
                )
        places, kinds = self.labels["place"].names, self.labels["kind"].names
        slot = int(self.forms[self.clock].step) if self.clock else 0
        form = Form(record, own, _written_roles(self.meaning), self.offset, zones=self.zones, slot=slot)
        records = Records(users=labels, places=places, kinds=kinds, tz=zone, form=form, **fields).number_users()
        if own == "person" and len(records) > ALONE and len(records.users) > 0.9 * len(records):
            self.notes.append("hardly anybody has two records: a user is no more than a record, and protected as one")
        rides = "occupied" in self.roles and not {"trip", "points"} & self.roles.keys() and record != "trips"
        if records.trip is not None and record != "trips":
            records = records.sort()
        if record == "events":  # positions that come densely, and at no place of the file, are fixes
            few = records.select(np.flatnonzero(records.user < max(1, 1_000_000 * len(records.users) // len(records))))
            few = few.sort()
            gaps = np.diff(few.start)[few.user[1:] == few.user[:-1]]
            usual = float(np.median(gaps)) if len(gaps) else np.inf
            dense = records.lat is not None and records.place is None and usual <= SPARSE
            record = "fixes" if dense or "points" in self.roles else record
            records = replace(records, form=replace(form, record=record, interval=int(min(usual, DAY))))
        if rides and records.trip is not None:  # each run of occupied records of somebody
            occupied = records.trip >= 0
            first = occupied & np.append(True, ~occupied[:-1] | (np.diff(records.user) != 0))
            records = replace(records, trip=np.where(occupied, np.cumsum(first) - 1, -1).astype(np.int32))
        vehicle = (self.meaning.vehicle or "occupied" in self.roles) and records.trip is not None
        if own == "person" and (unit == "vehicle-day" or (unit is None and vehicle)):
            self.notes.append(f"{counted(len(records.users), 'vehicle')}: {SHIFTS}")
            records = split_vehicles(records, known=True)
        return records


def _add(date: Ints, clock: Ints) -> Ints:
    """Return the time of clocks on the days of dates."""
    there = (date != MISSING) & (clock != MISSING)
    return np.where(there, np.where(there, date, 0) // DAY * DAY + np.where(there, clock, 0), MISSING)


def _located(columns: dict[str, Any]) -> Mask:
    """Tell which rows have a position or a place."""
    where = columns["place"] >= 0 if "place" in columns else np.zeros(len(columns["start"]), dtype=bool)
    if "lat" in columns and "lon" in columns:
        where = where | (np.isfinite(columns["lat"]) & np.isfinite(columns["lon"]))
    return where


def _written_roles(meaning: Columns) -> dict[str, str]:
    """Return role -> name of a column in the file's order, with the roles that writing knows."""
    roles, joined = meaning.roles, meaning.table.joined
    named = {name: "start" if role == "time" else role for role, name in roles.items() if name != FILE}
    first = {"file": "user"} if roles.get("user") == FILE else {}  # whom the file's name tells has a column too
    order = [name for name in meaning.table.names if name in named]
    return first | {named[name]: named[name] if name in joined else name for name in order}
