"""Times and zones: columns of times as instants or wall clocks, and the one local clock that slots are cut by."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter
from elsewhere.traces.columns import NUMBER, is_text, numbers
from elsewhere.traces.model import Floats
from elsewhere.traces.tables import Table
from elsewhere.traces.zones import offset_seconds, offset_zone, zone_at, zone_of

Times = NDArray[np.datetime64]
TIMES_AS = ("local", "utc", "offset", "unix", "unix_ms", "clock")

YEAR_FIRST = r"^\d{4}[-/]\d\d[-/]\d\d([T ]\d\d(:\d\d(:\d\d([.,]\d{1,9})?)?)?( ?(Z|z|UTC|[+-]\d\d(:?\d\d)?))?)?$"
YEAR_LAST = r"^\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
OFFSET = r"(?:[T ]\d\d|:\d\d(?:\.\d+)?)(?P<offset>Z|[+-]\d\d(?::?\d\d)?)$"
SECONDS = r"\d:\d\d:\d\d"
MIDNIGHT = r"([T ])24:00(:00(?:\.0+)?)?"
LEAP_SECOND = r"(\d\d:\d\d):60"
EARLIEST, LATEST = np.datetime64("1900-01-01", "us"), np.datetime64("2200-01-01", "us")
SAME_CLOCK = 0.99  # share of rows whose local time must be that of a zone for it to be theirs
EPOCH_UNITS = (("s", 1e11), ("ms", 1e14), ("us", 1e17), ("ns", 1e20))


@dataclass(frozen=True, eq=False)
class Clock:
    """
    A column of times: UTC instants if `aware`, else a wall clock; NaT where there is none.

    `zone` names the zone all of them were written in, None if there are several or none. `exact` is False if they were
    written without seconds. `written` is one of `TIMES_AS`, by default told by the zone.
    """

    time: Times
    aware: bool
    zone: str | None = None
    exact: bool = True
    fixed: Mapping[str, int] = field(default_factory=dict)
    written: str = ""

    @property
    def times(self) -> str:
        """How the times were written, in the words of `write_traces`."""
        return self.written or ("local" if not self.aware else "utc" if self.zone == "UTC" else "offset")

    def __post_init__(self) -> None:
        # calendars and zones end somewhere, and no trace is from there
        odd = (self.time < EARLIEST) | (self.time >= LATEST)
        object.__setattr__(self, "time", np.where(odd, np.datetime64("NaT", "us"), self.time))


def times(table: Table, name: str, *, date_format: str | None = None, date: str | None = None) -> Clock:
    """
    A column of times: ISO 8601 and kin with the year first, epoch seconds to nanoseconds, or `date_format`.

    `date` names a second column that holds the day, where `name` holds the time of day alone. Dates with the year
    last are refused without `date_format`: 03/04 is a day in March or in April (B32).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name)
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zone = getattr(kind, "tz", None)
        written = column.cast(pa.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
        return Clock(np.asarray(written, dtype="datetime64[us]"), zone is not None, zone and _canonical(zone))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _epoch(table, name)
    if not is_text(kind):
        raise table.refuse(f"column {name!r} holds no times.", "E_DATE")
    text = pc.utf8_trim_whitespace(column)
    if date is not None:
        try:
            day = pc.utf8_trim_whitespace(table.column(date).cast(text.type))
        except pa.ArrowException:
            raise table.refuse(f"column {date!r} holds no dates.", "E_DATE") from None
        text = pc.binary_join_element_wise(day.cast(text.type), text, pa.scalar("T", text.type))
    if date_format is not None:
        return _formatted(text, date_format)
    if pc.any(pc.match_substring_regex(text, r"[/,z]|UTC| [+-]|\.\d{7}")).as_py():
        for pattern, plain in (("/", "-"), (",", "."), (r" ?(z|UTC)$", "Z"), (r" ([+-])", r"\1")):
            text = pc.replace_substring_regex(text, pattern, plain)
        text = pc.replace_substring_regex(text, r"(\.\d{6})\d+", r"\1")
    text, next_day, fixed = _repaired(text)
    good = pc.match_substring_regex(text, YEAR_FIRST)
    if not pc.any(good).as_py():
        if 2 * (pc.sum(pc.match_substring_regex(text, NUMBER)).as_py() or 0) > table.rows:
            return _epoch(table, name)
        if pc.any(pc.match_substring_regex(text, YEAR_LAST)).as_py():
            raise table.refuse(f"dates of column {name!r} are ambiguous: give `date_format`.", "E_DATE")
    aware = pc.and_(good, pc.match_substring_regex(text, OFFSET))
    count, all_of_them = (pc.sum(mask).as_py() or 0 for mask in (aware, good))
    if 0 < count < all_of_them:
        row = int(np.flatnonzero(np.asarray(pc.xor(good, aware).fill_null(False)))[0])
        raise table.refuse("a time without an offset among times with one.", "E_TZ", row)
    zone = None
    if count:
        offsets = pc.unique(pc.struct_field(pc.extract_regex(text, OFFSET), "offset")).drop_null().to_pylist()
        seconds = {offset_seconds(offset) for offset in offsets}
        zone = offset_zone(seconds.pop()) if len(seconds) == 1 else None
    exact = bool(pc.any(pc.match_substring_regex(text, SECONDS)).as_py())
    time = _instants(pc.if_else(good, text, pa.scalar(None, text.type)), count > 0)
    if next_day is not None:
        time = np.where(next_day, time + np.timedelta64(1, "D"), time)
    return Clock(time, count > 0, zone, exact, fixed)


def _repaired(text: Any) -> tuple[Any, NDArray[np.bool_] | None, dict[str, int]]:
    """24:00 as 00:00 with a mark for the day after, second 60 as second 59 (B31), and how many there were."""
    import pyarrow.compute as pc

    late, leap = pc.match_substring_regex(text, MIDNIGHT), pc.match_substring_regex(text, LEAP_SECOND)
    n_late, n_leap = (pc.sum(mask).as_py() or 0 for mask in (late, leap))
    if n_late:
        text = pc.replace_substring_regex(text, MIDNIGHT, r"\100:00\2")
    if n_leap:
        text = pc.replace_substring_regex(text, LEAP_SECOND, r"\1:59")
    mask = np.asarray(late.fill_null(False).to_numpy(), dtype=bool) if n_late else None
    counts = {"24:00 read as 00:00 of the next day": n_late, "a leap second read as second 59": n_leap}
    return text, mask, {what: n for what, n in counts.items() if n}


def _instants(text: Any, aware: bool) -> Times:
    import pyarrow as pa

    try:
        times = text.cast(pa.timestamp("us", "UTC" if aware else None)).cast(pa.timestamp("us"))
        return np.asarray(times.to_numpy(zero_copy_only=False), dtype="datetime64[us]")
    except pa.ArrowException:
        import pandas as pd

        # a day that is in no calendar: find which, slowly
        each = pd.to_datetime(pd.Series(text.to_pylist(), dtype="str"), format="ISO8601", errors="coerce", utc=aware)
        return np.asarray(each.dt.tz_localize(None) if aware else each, dtype="datetime64[us]")


def _formatted(text: Any, date_format: str) -> Clock:
    import pandas as pd

    if not isinstance(date_format, str):
        raise InvalidParameter(f"`date_format` must be a format of strptime, got {date_format!r}.")
    aware = "%z" in date_format
    values = pd.Series(text.to_pylist(), dtype="str")
    try:
        each = pd.to_datetime(values, format=date_format, errors="coerce", utc=aware)
    except ValueError:
        raise InvalidParameter(f"`date_format` must be a format of strptime, got {date_format!r}.") from None
    return Clock(np.asarray(each.dt.tz_localize(None) if aware else each, dtype="datetime64[us]"), aware)


def _epoch(table: Table, name: str) -> Clock:
    values = numbers(table, name)
    size = np.abs(values[np.isfinite(values)])
    if len(size) == 0 or np.median(size) < 1e8:
        raise table.refuse(
            f"column {name!r} holds small numbers, no times; if they count slots, say so with `columns`, slot=NAME.",
            "E_DATE",
        )
    bounds = [limit for _, limit in EPOCH_UNITS]
    units = np.unique(np.searchsorted(bounds, size[size >= 1e8]))
    if len(units) > 1 or units[0] == len(bounds):
        raise table.refuse(f"column {name!r} mixes seconds, milliseconds or other units.", "E_DATE")
    per_second = 10.0 ** (3 * units[0])
    known = np.isfinite(values)
    time = np.full(len(values), np.datetime64("NaT"), dtype="datetime64[us]")
    time[known] = np.round(values[known] / per_second * 1e6).astype(np.int64).astype("datetime64[us]")
    written = {0: "unix", 1: "unix_ms"}.get(int(units[0]), "utc")
    return Clock(time, aware=True, zone="UTC", written=written)


def _canonical(zone: str) -> str:
    return offset_zone(offset_seconds(zone)) if re.fullmatch(r"[+-]\d\d:\d\d", zone) else zone


@dataclass(frozen=True, eq=False)
class WallClock:
    """
    The local wall clock of every row and its zone; `utc` is the same instant in UTC, None where it is not known.

    `times` is how the column was written, in the words of `write_traces`.
    """

    wall: Times
    utc: Times | None
    tz: str
    exact: bool = True
    fixed: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    times: str = "local"


def wall_clock(
    table: Table,
    roles: Mapping[str, str],
    tz: str | None,
    date_format: str | None,
    near: tuple[Floats, Floats] | None = None,
) -> WallClock:
    """
    The local clock of a table with columns `arrived`, `time`, `utc`, `local` or `date`.

    Without `tz` a column of local times is the clock as it stands; with `tz` a column of UTC times goes before it.
    Times in UTC, or with several offsets, are shown in the zone of the coordinates `near` them, if it can be found;
    times without an offset are the wall clock of that zone, as they stand.
    """
    if "local" in roles and "utc" in roles and "time" not in roles:
        utc = times(table, roles["utc"], date_format=date_format)
        if tz is not None:
            shown = replace(utc, aware=True, zone="UTC")
            return replace(_shown(table, shown, tz), times=shown.times)
        local = _shown(table, times(table, roles["local"], date_format=date_format), None)
        return replace(_zone_told_by_both(local, utc.time, near), times=replace(utc, aware=True, zone="UTC").times)
    role = next(role for role in ("arrived", "time", "utc", "local", "date") if role in roles)
    day = roles.get("date") if role == "time" and _holds_time_of_day(table, roles["time"]) else None
    clock = times(table, roles[role], date_format=date_format, date=day)
    if role == "utc":
        clock = replace(clock, aware=True, zone="UTC")
    return replace(_shown(table, clock, tz, near), times=clock.times if day is None else "clock")


def departures(table: Table, name: str, date_format: str | None, arrived: WallClock) -> Times:
    """A column of departures on the wall clock of the arrivals; the arrival itself where there is none."""
    clock = times(table, name, date_format=date_format)
    left = _in_zone(clock.time, arrived.tz) if clock.aware and arrived.tz != "UTC" else clock.time
    if clock.aware and arrived.utc is not None:
        # left in an hour that the clock has twice: by its wall clock perhaps before the arrival
        left = np.where(clock.time >= arrived.utc, np.maximum(left, arrived.wall), left)
    return np.where(np.isnat(left), arrived.wall, left)


def _holds_time_of_day(table: Table, name: str) -> bool:
    import pyarrow.compute as pc

    column = table.column(name)
    return is_text(column.type) and bool(pc.any(pc.match_substring_regex(column, r"^\s*\d{1,2}:\d\d")).as_py())


def _zone_told_by_both(local: WallClock, instant: Times, near: tuple[Floats, Floats] | None) -> WallClock:
    wall = np.where(np.isnat(instant), instant, local.wall)
    seen = ~np.isnat(wall)
    offset = np.unique(np.round((wall - instant)[seen] / np.timedelta64(60, "s")))
    if len(offset) == 1:
        return WallClock(wall, instant, offset_zone(60 * int(offset[0])), local.exact)
    found = None if near is None else zone_at(*near)[0]
    if found is not None and np.mean(_in_zone(instant[seen], found) == wall[seen]) > SAME_CLOCK:
        return WallClock(wall, instant, found, local.exact)
    note = "local times have several offsets from UTC; they are read as they stand, the zone is not named (`tz`)"
    return WallClock(wall, instant, "UTC", local.exact, notes=(note,))


def _in_zone(instant: Times, zone: str) -> Times:
    import pandas as pd

    shown = pd.DatetimeIndex(instant).tz_localize("UTC").tz_convert(zone_of(zone)).tz_localize(None)
    return np.asarray(shown, dtype="datetime64[us]")


def _shown(table: Table, clock: Clock, tz: str | None, near: tuple[Floats, Floats] | None = None) -> WallClock:
    """A clock as its local wall clock: in `tz`, else in the zone it was written in, else that of the coordinates."""
    import pandas as pd

    if clock.aware:
        zone, notes = tz or clock.zone, []
        if zone in (None, "UTC") and tz is None:
            written = "have several offsets" if zone is None else "are UTC"
            found, word = (None, "") if near is None else zone_at(*near)
            zone = found or "UTC"
            if found:
                notes.append(f"times {written}; days and hours are those of {found}, where the coordinates lie (`tz`)")
            elif clock.zone is None:
                notes.append("times have several offsets; they are shown in UTC, give `tz` for local days")
            else:
                notes.append("times are UTC, and so are days and hours; give `tz` for local ones")
            notes += [word] if word else []
        if zone in (None, "UTC"):
            return WallClock(clock.time, clock.time, "UTC", clock.exact, clock.fixed, tuple(notes))
        local = _in_zone(clock.time, str(zone))
        return WallClock(local, clock.time, str(zone), clock.exact, clock.fixed, tuple(notes))
    if tz is None:
        found = None if near is None else zone_at(*near)[0]
        note = "times carry no offset; they are read as the local clock, its zone is not named (`tz`)"
        if found is not None:
            note = (
                f"times carry no offset; they are read as the local clock of {found}, where the coordinates lie (`tz`)"
            )
        return WallClock(clock.time, None, found or "UTC", clock.exact, clock.fixed, notes=(note,))
    wall, here, known = pd.DatetimeIndex(clock.time), zone_of(tz), ~np.isnat(clock.time)
    first = np.ones(len(wall), dtype=bool)
    gone = known & np.asarray(wall.tz_localize(here, ambiguous=first, nonexistent="NaT").isna())
    if gone.any():
        row = int(np.argmax(gone))
        raise table.refuse("a local time that `tz` skips when its clock is put forward.", "E_DST", row)
    twice = known & np.asarray(wall.tz_localize(here, ambiguous="NaT").isna())
    doubled = {"in the doubled hour": int(twice.sum())} if twice.any() else {}
    return WallClock(clock.time, None, tz, clock.exact, {**clock.fixed, **doubled})
