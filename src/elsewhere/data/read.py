"""
Read a source as visits: open it, find its columns, read records and their local clock, then stays and places.

Everything that is left out is counted in `Preparation` and said; nothing that a message or a count shows is a value of
a trace. A second source is read on the map of the first by `read_visits(b, locations=first.locations)`.
"""

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
    Columns,
    Labels,
    TimeForm,
    find_columns,
    find_form,
    find_zone,
    is_latitude_first,
    normalize,
    read_lines,
    read_numbers,
    read_points,
    read_times,
    sample_text,
    share_on_land,
    to_local,
    to_local_by_place,
)
from elsewhere.data.formats import FILE, Table, open_tables
from elsewhere.data.visits import DAY, UNITS, Floats, Form, Ints, Locations, Mask, Preparation, Records, zone_of
from elsewhere.errors import InvalidParameter, InvalidTraces, counted, require_choice

MOST_UNREADABLE = 0.05  # share of times or positions that cannot be read, above which a source is refused
ONE_ZONE = 0.98  # share of the points in one zone, above which its clock is everybody's
DAY_STEPS = (24, 48, 72, 96, 144, 288, 1440)  # slots that are a whole day
SPARSE = 1_800  # seconds between two records of somebody, in the median, above which positions are events, no fixes
ROAMING = 25  # square kilometres that a vehicle is seen in on a day, in the median; people are seen in fewer
SHIFT_GAP = 4 * 3600  # seconds without a record that end the shift of a vehicle
DAY_STARTS = 4 * 3600  # seconds after midnight at which the day of a vehicle begins
LINE_INTERVAL = 15  # seconds between two points of a line, as in the taxi data of Porto
Progress = Callable[[str, float], None]


def read_records(
    source: Any,
    *,
    columns: Any = None,
    tz: str | None = None,
    date_format: str | None = None,
    encoding: str | None = None,
    unit: str | None = None,
    interval: float = LINE_INTERVAL,
    located: Any = None,
    progress: Progress | None = None,
) -> tuple[Records, Preparation, Table | None]:
    """
    Return the records of a source, what became of its rows, and the table of places beside it in a folder, if any.

    `located` is the map or table of places that the ids of the source refer to; see `read_visits` for the others.
    """
    if tz is not None:
        zone_of(tz)
    if unit is not None:
        require_choice("unit", unit, UNITS)
    table, beside = _choose_table(open_tables(source, encoding=encoding), columns, located is not None)
    meaning = find_columns(table, columns, located=located is not None or beside is not None)
    reader = _Reader(table, meaning, date_format, interval)
    for batch in table.batches(sorted(set(meaning.roles.values()))):
        reader.add(batch)
        if progress is not None:
            progress("reading", reader.rows)
    return *reader.finish(tz, unit, located), beside


def _choose_table(tables: list[Table], columns: Any, located: bool) -> tuple[Table, Table | None]:
    """Return the table of a folder that holds records, and one that holds places, if there is one."""
    if len(tables) == 1:
        return tables[0], None
    records, places, errors = [], [], []
    for table in tables:
        if columns is None and is_table_of_places(table):
            places.append(table)
            continue
        try:
            find_columns(table, columns, located=located or bool(places))
            records.append(table)
        except InvalidTraces as error:
            errors.append(error)
    if not records:
        raise errors[0] if errors else InvalidTraces("the folder holds places and no records.", code="E_COLUMNS")
    if len(records) > 1:
        records[0].notes.append(
            f"{counted(len(records) - 1, 'other table')} of the folder with other columns were not read"
        )
    return records[0], places[0] if places else None


def is_table_of_places(table: Table) -> bool:
    """Tell whether a table has ids and positions of places, and no times."""
    from elsewhere.data.columns import TIMES, find_kind

    kinds = {name: find_kind(sample_text(table.sample.column(name))) for name in table.names if name != FILE}
    words = {normalize(name) for name in kinds}
    where = words & {"lat", "latitude", "y"} and words & {"lon", "lng", "long", "longitude", "x"}
    return bool(where) and not any(kind in TIMES for kind in kinds.values())


class _Reader:
    """Gather the columns of all batches of a table as arrays."""

    def __init__(self, table: Table, meaning: Columns, date_format: str | None, interval: float) -> None:
        self.table, self.meaning, self.interval = table, meaning, interval
        self.roles, self.rows = meaning.roles, 0
        self.counts: Counter[str] = Counter()
        self.notes = [*table.notes, *meaning.notes]
        self.labels = {role: Labels() for role in ("user", "place", "kind", "trip")}
        self.parts: dict[str, list[NDArray[Any]]] = {}
        self.forms = {
            role: self._form(role, date_format)
            for role in ("time", "utc", "local", "date", "end", "end_date")
            if role in self.roles
        }
        clock = self.forms.get("time")
        if clock is not None and clock.kind != "clock":
            self.forms.pop("date", None)
        self.utc = table.kind in ("geolife", "gpx", "google") or ("utc" in self.roles and "local" not in self.roles)
        names = {"lat", "lon"} & self.roles.keys()
        self.cells = bool(names) and all(meaning.kinds[self.roles[n]] == "whole" for n in ("lat", "lon"))
        self.cells &= self.table.kind != "SGLT"
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
        if date_format is not None and not (role == "time" and find_kind_of(values) == "clock"):
            return TimeForm("format", date_format, aware="%z" in date_format)
        if not values:
            raise InvalidTraces(f"{self.table.name}: column {label} is empty.", code="E_DATE")
        try:
            form = find_form(values, label, self.table.name)
        except InvalidTraces as error:
            if "ambiguous" not in str(error):
                raise
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

        rows, roles, out = len(batch), self.roles, {}
        if rows == 0:
            return

        def column(role: str) -> Any:
            return batch.column(roles[role]).combine_chunks()

        if "user" in roles:
            whose = column("user")
            if "household" in roles:
                from elsewhere.data.columns import as_text

                whose = pc.binary_join_element_wise(as_text(column("household")), as_text(whose), "-")
            out["user"] = self.labels["user"].codes(whose)
        for role in ("place", "kind", "trip"):
            if role in roles:
                out[role] = self.labels[role].codes(column(role))
        if "end_place" in roles:
            out["end_place"] = self.labels["place"].codes(column("end_place"))
        self._add_times(column, rows, out)
        if self.cells:
            from elsewhere.data.columns import as_text

            for side, target in (("", "place"), ("end_", "end_place")):
                if f"{side}lat" in roles:
                    cell = pc.binary_join_element_wise(
                        as_text(column(f"{side}lon")), as_text(column(f"{side}lat")), ","
                    )
                    out[target] = self.labels["place"].codes(cell)
        for side in ("", "end_"):
            if f"{side}lat" in roles and f"{side}lon" in roles and not self.cells:
                for axis in ("lat", "lon"):
                    out[f"{side}{axis}"], bad = read_numbers(column(f"{side}{axis}"))
                    self.counts["positions that are no numbers"] += bad
            elif f"{side}point" in roles:
                a, b = read_points(column(f"{side}point"))
                out[f"{side}lat"], out[f"{side}lon"] = (a, b) if self.lat_first else (b, a)
        for role in ("accuracy", "duration", "occupied", "offset", "slot", "day"):
            if role in roles:
                from elsewhere.data.columns import as_text, read_clock

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
            self.parts.setdefault(role, []).append(values)
        self.rows += rows

    def _add_times(self, column: Callable[[str], Any], rows: int, out: dict[str, NDArray[Any]]) -> None:
        """Add start, its offset from UTC, and end, in seconds."""
        clock = next((r for r in ("time", "local", "utc") if r in self.forms), None)
        date = read_times(column("date"), self.forms["date"])[0] if "date" in self.forms else None
        if clock is None:
            out["start"] = np.full(rows, NO_DAY, dtype=np.int64) if date is None else date
            return
        seconds, offset = read_times(column(clock), self.forms[clock])
        if self.forms[clock].kind == "clock":
            day = np.full(rows, NO_DAY, dtype=np.int64) if date is None else date // DAY * DAY
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
                day = out["start"] // DAY * DAY
                if "end_date" in self.forms:
                    day = read_times(column("end_date"), self.forms["end_date"])[0] // DAY * DAY
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

    def take(self, role: str) -> NDArray[Any] | None:
        """Return a whole column and forget its parts."""
        parts = self.parts.pop(role, None)
        return None if parts is None else np.concatenate(parts) if len(parts) > 1 else parts[0]

    # --- the whole table ----------------------------------------------------------------------------------------------

    def finish(self, tz: str | None, unit: str | None, located: Any) -> tuple[Records, Preparation]:
        """Return the records of all batches, checked and by the local clock."""
        table, roles = self.table, self.roles
        self.counts += table.counts
        if self.rows == 0 or not self.parts:
            raise InvalidTraces(f"{table.name} holds no rows that can be read.", code="E_EMPTY")
        columns = {role: self.take(role) for role in list(self.parts)}
        n = len(columns["start"])  # type: ignore[arg-type]
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
        keep = columns["start"] != MISSING
        self._drop("rows without a time", ~keep)
        trips = self.meaning.trips
        if "user" in columns:
            keep &= self._drop("rows without a user", columns["user"] < 0)
        keep &= self._drop("rows without a place", ~_located(columns, ""))
        if trips:
            keep &= self._drop("trips without an end", columns.get("end", columns["start"]) == MISSING)
            keep &= self._drop("trips without a destination", ~_located(columns, "end_"))
        if "end" in columns:
            late = (columns["end"] < columns["start"]) & (columns["end"] != MISSING) & keep
            what = "trips" if trips else "visits"
            keep &= self._drop(f"{what} that end before they start", late)
        if not keep.any():
            counts = ", ".join(f"{many:,} {what}" for what, many in self.counts.items() if many)
            raise InvalidTraces(f"{table.name}: no row can be used ({counts}).", code="E_EMPTY")
        if not keep.all():
            columns = {role: values[keep] for role, values in columns.items() if values is not None}
        return self._make_records(columns, zone, unit, n)

    def _drop(self, reason: str, rows: Mask) -> Mask:
        self.counts[reason] += int(rows.sum())
        return ~rows

    def _add_slots(self, columns: dict[str, Any]) -> None:
        """Add the time of slots of a day to their date, or to the number of their day."""
        slot, day = columns.pop("slot", None), columns.pop("day", None)
        if day is not None and "date" not in self.forms:
            columns["start"] = columns["start"] + DAY * np.where(np.isfinite(day), day, 0).astype(np.int64)
        if slot is None or "time" in self.forms or "utc" in self.forms or "local" in self.forms:
            return
        base = 1 if self.table.kind == "SGLT" else 0
        many = int(np.nanmax(slot)) + 1 - base
        length = next((s for s in DAY_STEPS if many <= s), 0)
        step = DAY // length if length else 1200
        if not length and many > DAY_STEPS[-1]:
            self.notes.append("slots are read as 20 minutes each")
        elif many not in DAY_STEPS:
            step = 1200 if self.table.kind == "SGLT" or many <= 72 else step
        self.notes.append(f"slots are read as {step // 60} minutes each, from midnight")
        good = np.isfinite(slot) & (slot >= base)
        start = columns["start"] + step * np.where(good, slot - base, 0).astype(np.int64)
        columns["start"] = np.where(good & (columns["start"] != MISSING), start, MISSING)

    def _check_positions(self, columns: dict[str, Any], side: str) -> None:
        """Refuse positions that are swapped or projected; drop those off the globe and at 0, 0 (B15 to B24)."""
        lat, lon = columns.get(f"{side}lat"), columns.get(f"{side}lon")
        if lat is None or lon is None:
            return
        there = np.isfinite(lat) & np.isfinite(lon)
        if not there.any():
            if f"{side}place" not in columns:
                raise InvalidTraces(f"{self.table.name}: no row has a position that can be read.", code="E_NUMBER")
            return
        y, x = np.abs(lat[there]), np.abs(lon[there])
        labels = [self.table.labels.get(self.roles.get(f"{side}{axis}", ""), axis) for axis in ("lat", "lon")]
        name, said = self.table.name, {"lat", "lon", "point"} & self.meaning.requested
        if np.mean((y > 1_000) | (x > 1_000)) > 0.5:
            raise InvalidTraces(
                f"{name}: columns {labels[0]} and {labels[1]} are metres of a projection, no degrees; convert them to "
                "latitude and longitude (EPSG:4326).",
                code="E_SWAPPED",
            )
        if np.mean((y > 90) & (y <= 180) & (x <= 90)) > MOST_UNREADABLE:
            raise InvalidTraces(
                f"{name}: latitude and longitude look swapped; give `columns` lat={labels[1]},lon={labels[0]}.",
                code="E_SWAPPED",
            )
        if not said and y.max() <= 90 and x.max() <= 90 and _at_sea_unless_swapped(lat[there], lon[there]):
            raise InvalidTraces(
                f"{name}: the positions lie at sea, and on land if latitude and longitude are exchanged; give `columns` "
                f"lat={labels[1]},lon={labels[0]} to exchange them, or lat={labels[0]},lon={labels[1]} if they are right.",
                code="E_SWAPPED",
            )
        wide = there & (lon > 180) & (lon <= 360)
        if wide.any():
            self.notes.append("longitudes from 180 to 360 are read as western ones")
            lon = np.where(wide, lon - 360, lon)
        off = there & ((np.abs(lat) > 90) | (np.abs(lon) > 180))
        null = there & (lat == 0) & (lon == 0)
        null &= null.sum() < 0.5 * there.sum()
        if off.sum() > MOST_UNREADABLE * there.sum():
            raise InvalidTraces(
                f"{name}: columns {labels[0]} and {labels[1]} hold no latitudes and longitudes.", code="E_OUTSIDE"
            )
        self.counts["positions off the globe"] += int(off.sum())
        self.counts["positions at 0, 0"] += int(null.sum())
        gone = off | null
        if gone.any() or wide.any():
            lat, lon = np.where(gone, np.nan, lat), np.where(gone, np.nan, lon)
        columns[f"{side}lat"], columns[f"{side}lon"] = lat, lon

    def _to_local_clock(self, columns: dict[str, Any], tz: str | None, near: tuple[Floats, Floats] | None) -> str:
        """Turn times into those of the local clock, and return its zone."""
        start, shift, offset = columns["start"], columns.pop("shift", None), columns.pop("offset", None)
        end_shift = columns.pop("end_shift", None)
        zone, share = find_zone(*near) if near is not None else (None, 0.0)
        self.offset = shift is not None
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
            per = 3600 if np.abs(minutes).max(initial=0) <= 14 else 60
            local = np.where(there, start + (per * minutes).astype(np.int64), MISSING)
            self.notes.append("the local clock is UTC and the file's own offset")
        elif shift.any():
            local = np.where(there, start + shift, MISSING)
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
        self, columns: dict[str, Any], zone: str, unit: str | None, rows: int
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
        if users is None:
            own = "trip"
            lost = trip if trip is not None else np.arange(n)
            known, users = np.unique(lost, return_inverse=True)
            users, labels = users.astype(np.int32), tuple(str(i) for i in range(1, len(known) + 1))
            self.notes.append(
                "no column tells who travelled: each trip stands for itself, nobody is protected beyond a trip"
            )
        fields: dict[str, Any] = {"user": users, "start": columns["start"], "end": end, "trip": trip}
        if occupied is not None and trip is None:
            fields["trip"] = occupied.astype(np.int32) - 1
        for role in ("lat", "lon", "place", "kind", "accuracy"):
            fields[role] = columns.get(role)
        if trips:
            fields = _two_ends(fields, columns, end)
        instant = fields["end"] is fields["start"] or bool(np.array_equal(fields["start"], fields["end"]))
        record = "trips" if trips else "events" if instant else "visits"
        roles = _written_roles(self.roles, self.table.names)
        form = Form(record, own, {role: name for role, name in roles.items() if name != FILE}, self.offset)
        records = Records(
            users=labels,
            places=self.labels["place"].names,
            kinds=self.labels["kind"].names,
            tz=zone,
            form=form,
            **fields,
        )
        records = _renumber_users(records)
        if record == "events" or (
            record == "visits" and not trips and "place" not in columns and "duration" not in self.roles
        ):
            records = self._tell_fixes(records)
        if occupied is not None and trip is None:
            records = _number_rides(records)
        if own == "person":
            records = self._cut_vehicles(records, unit)
        elif unit not in (None, "trip"):
            raise InvalidParameter(
                f'`unit` must be "trip": no column tells who travelled, got {unit!r}.', code="E_COLUMNS"
            )
        dropped = {reason: many for reason, many in self.counts.items() if many}
        changed = {
            reason: dropped.pop(reason) for reason in list(dropped) if "read as" in reason or "line of no" in reason
        }
        for reason in (
            "times that cannot be read",
            "positions that are no numbers",
            "positions off the globe",
            "positions at 0, 0",
        ):
            if reason in dropped:  # these rows are also counted as rows without a time or a place
                changed[reason] = dropped.pop(reason)
        preparation = Preparation(
            name=self.table.name, format=self.table.kind, rows=max(rows, self.rows), dropped=dropped, changed=changed,
            form=records.form, tz=zone, notes=tuple(dict.fromkeys(self.notes)),
        )  # fmt: skip
        return records, preparation

    def _tell_fixes(self, records: Records) -> Records:
        """Return the records as fixes where positions come densely and belong to no place of the file."""
        order = _in_order(records)
        records = records if order is None else records.select(order)
        same = records.user[1:] == records.user[:-1]
        gaps = np.diff(records.start)[same]
        usual = float(np.median(gaps)) if len(gaps) else np.inf
        fixes = records.lat is not None and records.place is None and usual <= SPARSE
        line = records.trip is not None and "points" in self.roles
        record = "trips" if line else "fixes" if fixes else records.form.record
        return replace(records, form=replace(records.form, record=record, interval=int(min(usual, DAY))))

    def _cut_vehicles(self, records: Records, unit: str | None) -> Records:
        """Return the records of vehicles by shift or day, each as a user of its own; those of people as they are."""
        roaming = unit is None and records.form.record in ("fixes", "trips") and _roams(records)
        vehicles = unit == "vehicle-day" or (unit is None and (self.meaning.vehicle or roaming))
        if not vehicles or unit == "person":
            return records
        order = _in_order(records)
        records = records if order is None else records.select(order)
        shift = (records.start - DAY_STARTS) // DAY
        new = (np.diff(records.user) != 0) | (np.diff(shift) != 0) | (np.diff(records.start) > SHIFT_GAP)
        if records.trip is not None:  # a trip is of one shift
            new &= (np.diff(records.trip) != 0) | (records.trip[1:] < 0)
        number = np.concatenate([[0], np.cumsum(new)]).astype(np.int32)
        labels = tuple(str(i) for i in range(1, int(number[-1]) + 2))
        many, shifts = len(records.users), len(labels)
        self.notes.append(
            f"{counted(many, 'vehicle')} that are out all day: each of {counted(shifts, 'shift')} (a day, or until a gap of "
            'four hours) stands for itself (`unit` "person" to keep vehicles whole)'
        )
        return replace(records, user=number, users=labels, form=replace(records.form, unit="vehicle-day"))


def find_kind_of(values: list[str]) -> str:
    """Return what the values of a column are."""
    from elsewhere.data.columns import find_kind

    return find_kind(values)


def _truths() -> Any:
    import pyarrow as pa

    return pa.array(["1", "true", "yes", "t", "y"])


def _add(day: Ints, seconds: Ints) -> Ints:
    return np.where((day == MISSING) | (seconds == MISSING) | (day < -(10**12)), MISSING, day + seconds)


def _located(columns: Mapping[str, Any], side: str) -> Mask:
    """Tell which rows have a position or a place."""
    where = np.zeros(len(columns["start"]), dtype=bool)
    if columns.get(f"{side}lat") is not None:
        where |= np.isfinite(columns[f"{side}lat"]) & np.isfinite(columns[f"{side}lon"])
    if columns.get(f"{side}place") is not None:
        where |= columns[f"{side}place"] >= 0
    return where


def _positions_of(columns: Mapping[str, Any], located: Any) -> tuple[Floats, Floats] | None:
    """Return positions that tell the zone: the records' own, or those of the given places."""
    if columns.get("lat") is not None:
        return columns["lat"], columns["lon"]
    if isinstance(located, Locations) and located.lat is not None and located.lon is not None:
        return located.lat, located.lon
    return None


def _at_sea_unless_swapped(lat: Floats, lon: Floats) -> bool:
    return share_on_land(lat, lon) < 0.05 and share_on_land(lon, lat) > 0.95


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
    two["kind"] = two["accuracy"] = None
    return two


def _written_roles(roles: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return role -> name of a column in the file's order, with the roles that writing knows."""
    spoken = {"time": "start", "local": "start", "utc": "utc"}
    if not {"time", "local"} & roles.keys() and "utc" in roles:
        spoken["utc"] = "start"
    named = {name: spoken.get(role, role) for role, name in roles.items()}
    return {named[name]: name for name in names if name in named}


def _renumber_users(records: Records) -> Records:
    """Return the records with users numbered in the order of their labels that occur."""
    used = np.zeros(len(records.users), dtype=bool)
    used[records.user] = True
    if used.all():
        return records
    number = (np.cumsum(used) - 1).astype(np.int32)
    return replace(
        records,
        user=number[records.user],
        users=tuple(u for u, there in zip(records.users, used, strict=True) if there),
    )


def _number_rides(records: Records) -> Records:
    """Return the records in order, with each run of occupied ones as a trip."""
    order = _in_order(records)
    records = records if order is None else records.select(order)
    occupied = records.trip >= 0  # type: ignore[operator]
    first = occupied & np.concatenate([[True], ~occupied[:-1] | (np.diff(records.user) != 0)])
    return replace(records, trip=np.where(occupied, np.cumsum(first) - 1, -1).astype(np.int32))


def _in_order(records: Records) -> Ints | None:
    """Return the order by user and start; None where the records have it."""
    user, start = records.user, records.start
    step = np.diff(user)
    if np.all((step > 0) | ((step == 0) & (start[1:] >= start[:-1]))):
        return None
    return np.lexsort((records.end, start, user))


def _roams(records: Records) -> bool:
    """Tell whether users are seen all over a town every day, as vehicles are, and people are not."""
    if records.lat is None or records.lon is None or records.form.interval > 600:
        return False
    some = np.flatnonzero(records.user < 200)[:2_000_000]
    lat, lon, day = records.lat[some], records.lon[some], records.start[some] // DAY
    there = np.isfinite(lat) & np.isfinite(lon)
    cell = np.floor(lat[there] * 100).astype(np.int64) * 100_000 + np.floor(lon[there] * 70).astype(np.int64)
    seen = np.unique(np.column_stack([records.user[some][there].astype(np.int64), day[there], cell]), axis=0)
    _, many = np.unique(seen[:, :2], axis=0, return_counts=True)
    return bool(len(many)) and float(np.median(many)) >= ROAMING
