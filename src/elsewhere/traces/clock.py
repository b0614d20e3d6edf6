"""Read columns of times as UTC instants or wall clocks, and find the one local clock that slots are cut by."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter
from elsewhere.traces.columns import COMPACT, NUMBER
from elsewhere.traces.model import Floats, Mask, offset_seconds, zone_of, zones_at
from elsewhere.traces.sources import Table, is_text, read_numbers

Times = NDArray[np.datetime64]
TIMES_AS = ("local", "utc", "offset", "unix", "unix_ms", "clock")
ZONE = r"Z|z|UTC|GMT|[+-]\d\d(?::?\d\d)?"
DAYTIME = r"(?P<clock>\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
YEAR_FIRST = (
    r"^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d{1,2}(:\d\d(:\d\d([.,]\d{1,9})?)?)?( ?(Z|z|UTC|[+-]\d\d(:?\d\d)?))?)?$"
)
STRICT = r"^\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,6})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?$"
YEAR_LAST = (
    r"^(?P<a>\d{1,2})(?P<mark>[-/.])(?P<b>\d{1,2})[-/.](?P<year>\d{4}|\d\d)"
    rf"(?:(?:T|,? +){DAYTIME}(?: ?(?P<zone>{ZONE}))?)?$"
)
DIGITS = (
    r"^(?P<year>(?:19|20)\d\d)(?P<b>[01]\d)(?P<a>[0-3]\d)"
    r"(?:[T ]?(?P<h>[0-2]\d)(?P<m>[0-5]\d)(?P<s>[0-5]\d)?)?(?P<zone>Z)?$"
)
# Tue Apr 03 18:00:09 +0000 2012; Apr 3, 2012 6:00 PM
MONTH_FIRST = (
    r"^(?:[A-Za-z]{3,9}[,.]? +)?(?P<b>[A-Za-z]{3,9})[.,]? +(?P<a>\d{1,2}),? +(?:(?P<year>\d{4}),? +)?"
    rf"{DAYTIME}(?: +(?P<zone>{ZONE}))?(?: +(?P<late>\d{{4}}))?$"
)
# Tue, 03 Apr 2012 18:00:09 +0000; 03-Apr-2012
DAY_FIRST = (
    r"^(?:[A-Za-z]{3,9}[,.]? +)?(?P<a>\d{1,2})[ .-]+(?P<b>[A-Za-z]{3,9})[ .,-]+(?P<year>\d{4})"
    rf"(?:[T :,]+{DAYTIME}(?: *(?P<zone>{ZONE}))?)?$"
)
# 2012/04/03 6:00:09 PM; without AM or PM it is ISO 8601, or nearly
HALF_DAYS = (
    r"^(?P<year>\d{4})[-/.](?P<b>\d{1,2})[-/.](?P<a>\d{1,2})(?:T|,? +)"
    r"(?P<clock>\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?) ?(?P<half>[AaPp])\.?[Mm]\.?"
    rf"(?: ?(?P<zone>{ZONE}))?$"
)
FORMS = {
    "half days": HALF_DAYS,
    "year last": YEAR_LAST,
    "digits": DIGITS,
    "month first": MONTH_FIRST,
    "day first": DAY_FIRST,
}
MONTHS = {"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10}
MONTHS |= {"nov": 11, "dec": 12}
OF_DAY = rf"^{DAYTIME}(?: ?(?P<zone>{ZONE}))?$"
IN_TIME = r"(?P<clock>\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AaPp]\.?[Mm]\.?)?)"  # the clock time in a date with one
OFFSET = r"(?:[T ]\d\d|:\d\d(?:\.\d+)?)(?P<offset>Z|[+-]\d\d(?::?\d\d)?)$"
SECONDS = r"\d:\d\d:\d\d"
MIDNIGHT = r"([T ])24:00(:00(?:\.0+)?)?"
LEAP_SECOND = r"(\d\d:\d\d):60"
ROLES = ("arrived", "time", "utc", "local", "date")  # the first of these that has a column tells the time
LATER = "seconds after the time"  # name of a column that is added to a table
DAY_OF_ARRIVAL = "the day of arrival"  # name of a column that is added to a table
EARLIEST, LATEST = np.datetime64("1900-01-01", "us"), np.datetime64("2200-01-01", "us")
SAME_CLOCK = 0.99  # share of rows whose local time must be that of a zone
A_FEW_DAYS = 3  # consecutive numbers that are days rather than months, at least
EXCEL, EXCEL_DAYS = np.datetime64("1899-12-30", "us"), (40_000, 60_000)  # day 0 of spreadsheets; from 2009 to 2064
EPOCH_UNITS = (("s", 1e11), ("ms", 1e14), ("us", 1e17), ("ns", 1e20))


@dataclass(frozen=True)
class Form:
    """
    How times are written: "iso", "epoch", "excel", or one of FORMS.

    `day_first` tells 3 April from March 4, None where the form has no such dates; `assumed` says why, where no number
    above 12 tells it. `unit` is that of an epoch: 0 for seconds, 1 for milliseconds, and so on.
    """

    kind: str
    day_first: bool | None = None
    unit: int = 0
    assumed: str = ""


@dataclass(frozen=True, eq=False)
class Clock:
    """
    A column of times: UTC instants if `aware`, else a wall clock; NaT where a row has none.

    `zone` is the zone that all of them were written in, None if there are several or none. `exact` is False if they
    were written without seconds. `written` is one of `TIMES_AS`, by default according to the zone.
    """

    time: Times
    aware: bool
    zone: str | None = None
    exact: bool = True
    fixed: Mapping[str, int] = field(default_factory=dict)
    written: str = ""

    def __post_init__(self) -> None:
        by_zone = "local" if not self.aware else "utc" if self.zone == "UTC" else "offset"
        object.__setattr__(self, "written", self.written or by_zone)
        # calendars and time zones are not defined for all years
        odd = (self.time < EARLIEST) | (self.time >= LATEST)
        object.__setattr__(self, "time", np.where(odd, np.datetime64("NaT", "us"), self.time))


def read_times(
    table: Table, name: str, *, date_format: str | None = None, date: str | None = None, form: Form | None = None
) -> Clock:
    """
    Return a column of times: ISO 8601 and similar, with the year last, with names of months, epochs, or `date_format`.

    `date` is the column of dates where `name` holds only the time of day. Without a `form`, the column itself tells it;
    a column in which days cannot be told from months is refused (B32).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name)
    kind = column.type
    if date is not None:
        text = _join_day_and_time(table, date, name, date_format, form)
        form, date_format = Form("iso"), None
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zone = getattr(kind, "tz", None)
        values = column.cast(pa.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
        return Clock(np.asarray(values, dtype="datetime64[us]"), zone is not None, zone and _canonical_zone(zone))
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        form = form or find_form([table], name)
        if form.kind in ("epoch", "excel"):
            return _read_numbered(table, name, form)
        text = column.cast(pa.int64(), safe=False).cast(pa.string())
    elif not is_text(kind):
        raise table.error(f"column {table.label(name)!r} holds no times.", "E_DATE")
    else:
        text = pc.utf8_trim_whitespace(column)
    if date_format is not None:
        return _parse_format(text, date_format)
    form = form or find_form([table], name)
    if form.kind in ("epoch", "excel"):
        return _read_numbered(table, name, form)
    if form.kind in FORMS:
        text = _to_iso(text, form)
    elif pc.any(pc.invert(pc.match_substring_regex(text, STRICT))).as_py():
        for pattern, plain in (
            (r"^(\d{4})[/.](\d\d?)[/.]", r"\1-\2-"),
            (",", "."),
            (r" ?(z|UTC)$", "Z"),
            (r" ([+-])", r"\1"),
            (r"-(\d)([-T ]|$)", r"-0\1\2"),
            (r"-(\d)([-T ]|$)", r"-0\1\2"),
            (r"([T ])(\d)(:|$)", r"\10\2\3"),
            (r"(\.\d{6})\d+", r"\1"),
        ):
            text = pc.replace_substring_regex(text, pattern, plain)
    text, next_day, repairs = _repair_times(text)
    good = pc.match_substring_regex(text, STRICT)
    aware = pc.and_(good, pc.match_substring_regex(text, OFFSET))
    count, readable = (pc.sum(mask).as_py() or 0 for mask in (aware, good))
    if 0 < count < readable:
        row = int(np.flatnonzero(np.asarray(pc.xor(good, aware).fill_null(False)))[0])
        raise table.error(
            "a time without an offset among times with one; give all of them an offset, or none.", "E_TZ", row
        )
    zone = None
    if count:
        offsets = pc.unique(pc.struct_field(pc.extract_regex(text, OFFSET), "offset")).drop_null().to_pylist()
        seconds = {offset_seconds(offset) for offset in offsets}
        zone = offset_zone(seconds.pop()) if len(seconds) == 1 else None
    exact = bool(pc.any(pc.match_substring_regex(text, SECONDS)).as_py())
    time = _parse_iso(pc.if_else(good, text, pa.scalar(None, text.type)), count > 0)
    if next_day is not None:
        time = np.where(next_day, time + np.timedelta64(1, "D"), time)
    return Clock(time, count > 0, zone, exact, repairs)


def find_form(tables: Iterable[Table], name: str, date_format: str | None = None) -> Form:
    """
    Find how the times of a column are written, by its first table, or by further ones if that leaves it open.

    A date with the year last has its day first if first numbers are above 12, and its month first if second ones are.
    If none is, 03.04.2020 is 3 April, because no country writes the month first with points; and where one number is
    always the same and the other takes three or more consecutive values, these are the days, because no data are of the
    fifth of every month only. Any other such column is refused with both readings, and so is one that has both first
    and second numbers above 12 about as often (B32).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table, example, above, points = None, None, [0, 0], True
    values: tuple[set[int], set[int]] = (set(), set())
    for table in tables:
        column = table.column(name)
        if date_format is not None or pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
            return Form("iso")
        if not is_text(column.type):
            if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
                raise table.error(f"column {table.label(name)!r} holds no times.", "E_DATE")
            return _find_number_form(table, name)
        text = pc.utf8_trim_whitespace(column)
        if table.comma:
            text = pc.replace_substring_regex(text, r"^(\d+),(\d+)$", r"\1.\2")
        counts = {kind: pc.sum(pc.match_substring_regex(text, form)).as_py() or 0 for kind, form in _KINDS.items()}
        kind = max(counts, key=lambda k: counts[k])
        if counts[kind] == 0:
            continue
        if kind == "epoch":
            return _find_number_form(table, name)
        if kind != "year last":
            return Form(kind)
        parts = pc.extract_regex(text, YEAR_LAST)
        for i, side in enumerate("ab"):
            number = pc.struct_field(parts, side).cast(pa.int32())
            above[i] += pc.sum(pc.greater(number, 12)).as_py() or 0
            values[i].update(pc.drop_null(pc.unique(number)).to_pylist())
        marks = pc.drop_null(pc.unique(pc.struct_field(parts, "mark"))).to_pylist()
        example, points = example or parts, points and marks == ["."]
        if max(above) > 9 * min(above) and max(above) > 0:
            return Form(kind, day_first=above[0] > above[1])
    if table is None or example is None:
        return Form("iso")
    if points and max(above) == 0:
        return Form("year last", day_first=True, assumed="with the day first: 03.04 is 3 April")
    for days, month in (values, values[::-1]):
        if max(above) == 0 and len(month) == 1 and len(days) == max(days) - min(days) + 1 >= A_FEW_DAYS:
            first = "day" if days is values[0] else "month"
            return Form("year last", first == "day", assumed=f"with the {first} first: so they follow each other")
    raise table.error(_describe_ambiguity(table.label(name), example), "E_DATE")


_KINDS = {"iso": YEAR_FIRST, "digits": DIGITS, "epoch": NUMBER} | FORMS


def _describe_ambiguity(name: str, parts: Any) -> str:
    """Return a message on ambiguous dates that says what to type; it has formats, and no date of the file."""
    import pyarrow.compute as pc

    def common(side: str) -> str:
        values = [v for v in pc.struct_field(parts, side).slice(0, 1000).to_pylist() if v]
        return max(sorted(set(values)), key=values.count) if values else ""

    mark, year, clock, half = (common(side) for side in ("mark", "year", "clock", "half"))
    hour = "" if not clock else " %I:%M" if half else " %H:%M"
    seconds = ":%S.%f" if "." in clock else ":%S" if clock.count(":") == 2 else ""
    rest = f"{mark}%{'Y' if len(year) == 4 else 'y'}{hour}{seconds}{' %p' if half else ''}"
    return (
        f"dates of column {name!r} are ambiguous: 03{mark}04 would be 3 April or March 4, and no number above 12 "
        f'tells; give `date_format` "%d{mark}%m{rest}" (day first) or `date_format` "%m{mark}%d{rest}" (month first).'
    )


def _to_iso(text: Any, form: Form) -> Any:
    """Return times of one of FORMS as ISO 8601; null where a value has another form."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = text.cast(pa.string())
    parts = pc.extract_regex(text, FORMS[form.kind])
    names = [f.name for f in parts.type]

    def part(name: str) -> Any:
        return pc.struct_field(parts, name) if name in names else pa.scalar("", pa.string())

    def padded(values: Any) -> Any:
        return pc.utf8_lpad(values, 2, "0")

    day, month, year = part("a"), part("b"), part("year")
    if form.kind == "year last":
        day, month = (day, month) if form.day_first else (month, day)
        year = pc.if_else(pc.equal(pc.utf8_length(year), 2), pc.binary_join_element_wise("20", year, ""), year)
    elif form.kind in ("month first", "day first"):
        month = pc.utf8_lower(pc.utf8_slice_codeunits(month, 0, 3))
        numbers_of = pa.array([f"{n:02}" for n in MONTHS.values()])
        month = numbers_of.take(pc.index_in(month, pa.array(list(MONTHS))).combine_chunks())
        month = pa.chunked_array([month])
        if "late" in names:
            year = pc.if_else(pc.equal(year, ""), part("late"), year)
    date = pc.binary_join_element_wise(year, padded(month), padded(day), "-")
    if form.kind == "digits":
        empty = pc.equal(part("h"), "")
        clock = pc.binary_join_element_wise(
            part("h"), part("m"), pc.if_else(pc.equal(part("s"), ""), "00", part("s")), ":"
        )
        clock = pc.if_else(empty, "", clock)
    else:
        clock = _to_24_hours(part("clock"), part("half"))
    zone = pc.replace_substring_regex(part("zone"), "^(z|UTC|GMT)$", "Z")
    tail = pc.if_else(pc.equal(clock, ""), "", pc.binary_join_element_wise("T", clock, zone, ""))
    return pc.binary_join_element_wise(date, tail, "")


def _to_24_hours(clock: Any, half: Any) -> Any:
    """Return clock times of 24 hours: two digits for the hour, a decimal point, and no AM and PM."""
    import pyarrow as pa
    import pyarrow.compute as pc

    clock = pc.replace_substring_regex(pc.replace_substring(clock, ",", "."), r"^(\d):", r"0\1:")
    clock = pc.replace_substring_regex(clock, r"(\.\d{6})\d+", r"\1")
    if not pc.any(pc.not_equal(half, "")).as_py():
        return clock
    hour = pc.utf8_slice_codeunits(clock, 0, 2)
    number = pc.if_else(pc.equal(hour, ""), "0", hour).cast(pa.int32())
    late = pc.equal(pc.utf8_lower(half), "p")
    twelve = pc.equal(number, 12)
    number = pc.if_else(twelve, 0, number)
    number = pc.if_else(late, pc.add(number, 12), number)
    text = pc.utf8_lpad(number.cast(pa.string()), 2, "0")
    after = pc.utf8_slice_codeunits(clock, 2, 40)
    there = pc.and_(pc.not_equal(half, ""), pc.not_equal(clock, ""))
    return pc.if_else(there, pc.binary_join_element_wise(text, after, ""), clock)


def _join_day_and_time(table: Table, date: str, name: str, date_format: str | None, form: Form | None) -> Any:
    """Return days of one column and clock times of another as ISO 8601; `form` is that of the days."""
    import pyarrow as pa
    import pyarrow.compute as pc

    day = read_times(table, date, date_format=date_format, form=form).time.astype("datetime64[D]")
    days = pa.array(np.datetime_as_string(day), pa.string())
    days = pa.chunked_array([pc.if_else(pa.array(np.isnat(day)), pa.scalar(None, pa.string()), days)])
    column = table.column(name)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        column = column.cast(pa.float64(), safe=False).cast(pa.string())
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    text = pc.replace_substring_regex(text, r"^(\d\d)(\d\d)$", r"\1:\2")
    text = pc.replace_substring_regex(text, r"^(\d\d)(\d\d)(\d\d)$", r"\1:\2:\3")
    # only hours
    text = pc.replace_substring_regex(text, r"^(\d{1,2})(\.0)?$", r"\1:00")
    parts = pc.extract_regex(text, OF_DAY)
    clock = _to_24_hours(pc.struct_field(parts, "clock"), pc.struct_field(parts, "half"))
    zone = pc.replace_substring_regex(pc.struct_field(parts, "zone"), "^(z|UTC|GMT)$", "Z")
    return pc.binary_join_element_wise(days, "T", clock, zone, "")


def _repair_times(text: Any) -> tuple[Any, Mask | None, dict[str, int]]:
    """Return times with 24:00 as 00:00 and second 60 as 59 (B31), which of them are on the next day, and the counts."""
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


def _parse_iso(text: Any, aware: bool) -> Times:
    """Return ISO 8601 texts as times, in UTC if they are `aware`; NaT for days that are in no calendar."""
    import pyarrow as pa

    try:
        times = text.cast(pa.timestamp("us", "UTC" if aware else None)).cast(pa.timestamp("us"))
        return np.asarray(times.to_numpy(zero_copy_only=False), dtype="datetime64[us]")
    except pa.ArrowException:
        import pandas as pd

        # some day is in no calendar: pandas finds which, slowly
        each = pd.to_datetime(pd.Series(text.to_pylist(), dtype="str"), format="ISO8601", errors="coerce", utc=aware)
        return np.asarray(each.dt.tz_localize(None) if aware else each, dtype="datetime64[us]")


def _parse_format(text: Any, date_format: str) -> Clock:
    """Return texts read by a format of `strptime`; NaT where they do not fit it."""
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


def _find_number_form(table: Table, name: str) -> Form:
    """Find the form of times that are numbers: dates such as 20130415, days of a spreadsheet, or times since 1970."""
    values = read_numbers(table, name)
    finite = values[np.isfinite(values)]
    low, high = EXCEL_DAYS
    if len(finite) and np.mean((finite >= low) & (finite <= high)) > SAME_CLOCK and np.any(finite != np.floor(finite)):
        return Form("excel", assumed="as days since 1899-12-30, as spreadsheets count them")
    unit = _find_epoch_unit(table, name, finite)
    return Form("digits") if unit is None else Form("epoch", unit=unit)


def _find_epoch_unit(table: Table, name: str, values: Floats) -> int | None:
    """Return the unit of times since 1970; None if these are dates such as 20130415."""
    size = np.abs(values)
    digits = np.char.mod("%d", size[:1000])
    if len(size) and np.mean([re.match(DIGITS, text) is not None for text in digits]) > 0.5:
        return None
    if len(size) == 0 or np.median(size) < 1e8:
        raise table.error(
            f"column {table.label(name)!r} holds small numbers, no times; if they count slots, say so with `columns`, "
            "slot=NAME; clock times have a colon, 07:40.",
            "E_DATE",
        )
    units = np.unique(np.searchsorted([limit for _, limit in EPOCH_UNITS], size[size >= 1e8]))
    if len(units) > 1 or units[0] == len(EPOCH_UNITS):
        raise table.error(f"column {table.label(name)!r} mixes seconds, milliseconds or other units.", "E_DATE")
    return int(units[0])


def _read_numbered(table: Table, name: str, form: Form) -> Clock:
    """Return times that are days of a spreadsheet, or in units since 1970."""
    values = read_numbers(table, name)
    finite = np.isfinite(values)
    if form.kind == "excel":  # rounded to seconds, because five decimals of a day are about one
        seconds = np.round(np.where(finite & (np.abs(values) < EXCEL_DAYS[1]), values, np.nan) * 86400)
        days = np.where(np.isnan(seconds), np.iinfo(np.int64).min, np.nan_to_num(seconds) * 1e6)  # the least is NaT
        return Clock(EXCEL + days.astype(np.int64).astype("timedelta64[us]"), aware=False)
    units = np.searchsorted([limit for _, limit in EPOCH_UNITS], np.abs(values[finite]))
    if np.any((units != form.unit) & (np.abs(values[finite]) >= 1e8)):
        raise table.error(f"column {table.label(name)!r} mixes seconds, milliseconds or other units.", "E_DATE")
    time = np.full(len(values), np.datetime64("NaT"), dtype="datetime64[us]")
    per_second = 10.0 ** (3 * form.unit)
    time[finite] = np.round(values[finite] / per_second * 1e6).astype(np.int64).astype("datetime64[us]")
    style = {0: "unix", 1: "unix_ms"}.get(form.unit, "utc")
    return Clock(time, aware=True, zone="UTC", written=style)


def _canonical_zone(zone: str) -> str:
    """Return the name of a zone that Arrow has as an offset; any other name as it is."""
    return offset_zone(offset_seconds(zone)) if re.fullmatch(r"[+-]\d\d:\d\d", zone) else zone


@dataclass(frozen=True, eq=False)
class WallClock:
    """
    The local wall clock of every row and its zone; `utc` is the same instant in UTC, None where that is not known.

    Where a table has a local and a UTC column, `offsets` are the minutes between them, and in `agree` of `known` rows
    the local time is that of the zone of the coordinates.
    """

    wall: Times
    utc: Times | None
    tz: str
    exact: bool = True
    fixed: Mapping[str, int] = field(default_factory=dict)
    offsets: frozenset[int] = frozenset()
    agree: int = 0
    known: int = 0


@dataclass(frozen=True)
class ClockPlan:
    """
    How the times of an input become its local clock, decided once for all of its tables.

    `roles` are the columns that are read, `forms` how each is written. `zone` is that of the local clock, None where
    times carry no offset; `alone` says that all times of the sample have its offset, and that the plan is wrong if
    others have another one. `named` is the zone of the coordinates, for times without an offset. `times` is how they
    are written, in the words of `write_traces`. `local_beside_utc` says that both columns are read.
    """

    roles: Mapping[str, str]
    forms: Mapping[str, Form]
    tz: str | None
    date_format: str | None
    zone: str | None = None
    alone: bool = False
    named: str | None = None
    notes: tuple[str, ...] = ()
    times: str = "local"
    local_beside_utc: bool = False


class OtherOffsets(Exception):
    """Times have several offsets from UTC, but the sample had only one."""


def plan_clock(
    sample: Table,
    roles: Mapping[str, str],
    tz: str | None,
    date_format: str | None,
    near: tuple[Floats, Floats] | None = None,
    *,
    tables: Iterable[Table] = (),
    several: bool = False,
) -> ClockPlan:
    """
    Decide how columns `arrived`, `time`, `utc`, `local` or `date` become the local clock.

    Without `tz`, a column of local times is the clock as it stands; with `tz`, a column of UTC times is preferred.
    Times in UTC, or with several offsets, are converted to the zone of the coordinates `near`, if it can be found;
    times without an offset are the wall clock of that zone. `tables` are read where the sample does not tell days from
    months; `several` says that there are several offsets.
    """
    if "local" in roles and "utc" in roles and not {"time", "arrived"} & roles.keys():
        by_clock = {"utc": roles["utc"]} if tz is not None else {"local": roles["local"], "utc": roles["utc"]}
    else:
        role = next(role for role in ROLES if role in roles)
        by_clock = {role: roles[role]}
        if role in ("time", "arrived") and holds_time_of_day(sample, roles[role]):
            if "date" not in roles:
                raise sample.error(
                    f"column {sample.label(roles[role])!r} holds clock times without dates; give `columns` date=NAME, "
                    "the column of dates; where days have no date (one day of each person, weekdays), add a column of "
                    "any dates, such as those of one week.",
                    "E_DATE",
                )
            by_clock["date"] = roles["date"]
        if role == "arrived":
            by_clock["left"] = roles["left"]
            if "date" in by_clock and not holds_time_of_day(sample, roles["left"]):
                raise sample.error(
                    f"column {sample.label(roles['arrived'])!r} holds clock times, and column "
                    f"{sample.label(roles['left'])!r} does not; give `columns` left=NAME, the clock time of leaving.",
                    "E_DATE",
                )
    dated = [by_clock["date"]] if "date" in by_clock else list(by_clock.values())
    if "left" in by_clock and "date" not in by_clock and holds_time_of_day(sample, by_clock["left"]):
        dated.remove(by_clock["left"])  # clock times, on the days of the arrivals
    forms = {column: find_form(chain([sample], tables), column, date_format) for column in dated}
    assumptions = tuple(
        f"dates of column {sample.label(column)!r} are read {form.assumed} (`date_format`)"
        for column, form in forms.items()
        if form.assumed
    )
    plan = ClockPlan(by_clock, forms, tz, date_format, notes=assumptions)
    clock = _read_planned(plan, sample)
    plan = replace(plan, times="clock" if "date" in by_clock and "time" in by_clock else clock.written)
    if "local" in by_clock and "utc" in by_clock:
        return replace(plan, named=None if near is None else find_zone(*near)[0], local_beside_utc=True)
    if not clock.aware:
        if tz is not None:
            return plan
        zone_name = None if near is None else find_zone(*near)[0]
        where = f"of {zone_name}, where the coordinates lie (`tz`)" if zone_name else "its zone is not named (`tz`)"
        note = f"times carry no offset; they are read as the local clock{' ' if zone_name else ', '}{where}"
        return replace(plan, named=zone_name, notes=(*plan.notes, note))
    if tz is not None:
        return replace(plan, zone=tz)
    zone, notes = (None if several else clock.zone), []
    if zone not in (None, "UTC"):
        return replace(plan, zone=zone, alone=True)
    phrase = "have several offsets" if zone is None else "are UTC"
    zone_name, word = (None, "") if near is None else find_zone(*near)
    if zone_name:
        notes.append(f"times {phrase}; days and hours are those of {zone_name}, where the coordinates lie (`tz`)")
    elif zone is None:
        notes.append("times have several offsets; they are shown in UTC, give `tz` for local days")
    else:
        notes.append("times are UTC, and so are days and hours; give `tz` for local ones")
    return replace(plan, zone=zone_name or "UTC", notes=(*plan.notes, *notes, *([word] if word else [])))


def read_wall_clock(plan: ClockPlan, table: Table) -> WallClock:
    """Return the local clock of a table by a plan: from a local and a UTC column, or from one column of times."""
    if plan.local_beside_utc:
        utc, local = (
            read_times(table, plan.roles[role], date_format=plan.date_format, form=plan.forms[plan.roles[role]])
            for role in ("utc", "local")
        )
        wall = np.where(np.isnat(utc.time), utc.time, local.time)
        dated = ~np.isnat(wall)
        offsets = np.unique(np.round((wall - utc.time)[dated] / np.timedelta64(60, "s")).astype(np.int64))
        agree = 0 if plan.named is None else int((_to_zone(utc.time[dated], plan.named) == wall[dated]).sum())
        return WallClock(
            wall, utc.time, "UTC", local.exact, local.fixed, frozenset(offsets.tolist()), agree, int(dated.sum())
        )
    clock, tz = _read_planned(plan, table), plan.tz
    if clock.aware:
        if plan.zone is None:
            row = int(np.argmin(np.isnat(clock.time)))
            raise table.error("a time with an offset among times without one.", "E_TZ", row)
        if plan.alone and clock.zone != plan.zone and not np.all(np.isnat(clock.time)):
            raise OtherOffsets
        if plan.zone == "UTC":
            return WallClock(clock.time, clock.time, "UTC", clock.exact, clock.fixed)
        return WallClock(_to_zone(clock.time, plan.zone), clock.time, plan.zone, clock.exact, clock.fixed)
    if plan.zone is not None and not np.all(np.isnat(clock.time)):
        raise table.error(
            "a time without an offset among times with one; give all of them an offset, or none.",
            "E_TZ",
            int(np.argmin(np.isnat(clock.time))),
        )
    if tz is None:
        return WallClock(clock.time, None, plan.named or "UTC", clock.exact, clock.fixed)
    import pandas as pd

    index, here, dated = pd.DatetimeIndex(clock.time), zone_of(tz), ~np.isnat(clock.time)
    first = np.ones(len(index), dtype=bool)
    gone = dated & np.asarray(index.tz_localize(here, ambiguous=first, nonexistent="NaT").isna())
    if gone.any():
        row = int(np.argmax(gone))
        raise table.error(
            "a local time that `tz` skips when its clock is put forward: drop such rows, or read the clock as it is "
            "written (`tz` = UTC).",
            "E_DST",
            row,
        )
    twice = dated & np.asarray(index.tz_localize(here, ambiguous="NaT").isna())
    doubled = {"in the doubled hour": int(twice.sum())} if twice.any() else {}
    return WallClock(clock.time, None, tz, clock.exact, {**clock.fixed, **doubled})


def find_common_zone(plan: ClockPlan, clocks: Sequence[WallClock]) -> tuple[str, tuple[str, ...]]:
    """Return the zone of all tables with local and UTC times, and a note where none fits."""
    offsets = frozenset[int]().union(*(clock.offsets for clock in clocks))
    if len(offsets) == 1:
        return offset_zone(60 * next(iter(offsets))), ()
    agree, rows = sum(clock.agree for clock in clocks), sum(clock.known for clock in clocks)
    if plan.named is not None and agree > SAME_CLOCK * rows:
        return plan.named, ()
    note = "local times have several offsets from UTC; they are read as they stand, the zone is not named (`tz`)"
    return "UTC", (note,)


def read_departures(plan: ClockPlan, table: Table, arrived: WallClock) -> Times:
    """Return the departures on the wall clock of the arrivals; the arrival where a row has no departure."""
    name, date = plan.roles["left"], plan.roles.get("date")
    if date is None and name not in plan.forms:
        date = DAY_OF_ARRIVAL
        days = np.datetime_as_string(arrived.wall.astype("datetime64[D]"))
        table, form = replace(table, columns={**table.columns, date: days.tolist()}), Form("iso")
    else:
        form = plan.forms[date or name]
    clock = read_times(
        table, name, date_format=plan.date_format if date != DAY_OF_ARRIVAL else None, date=date, form=form
    )
    if date is not None:
        # a clock time before the arrival is on the next day; so is midnight after an arrival at midnight
        start = arrived.utc if clock.aware and arrived.utc is not None else arrived.wall
        midnight = (clock.time == start) & (start == start.astype("datetime64[D]"))
        later = (clock.time < start) | midnight
        clock = replace(clock, time=np.where(later, clock.time + np.timedelta64(1, "D"), clock.time))
    wall = _to_zone(clock.time, arrived.tz) if clock.aware and arrived.tz != "UTC" else clock.time
    if clock.aware and arrived.utc is not None:
        # in the hour that a clock shows twice, the wall clock of a departure may be before the arrival
        wall = np.where(clock.time >= arrived.utc, np.maximum(wall, arrived.wall), wall)
    return np.where(np.isnat(wall), arrived.wall, wall)


def add_day_past_midnight(table: Table, first: str, last: str) -> Floats:
    """Return the seconds of a day where the clock time in column `last` is before that in `first`, and 0 elsewhere."""
    dated = replace(table, columns={**table.columns, DAY_OF_ARRIVAL: ["2001-01-01"] * table.rows})
    start, end = (read_times(dated, name, date=DAY_OF_ARRIVAL, form=Form("iso")).time for name in (first, last))
    return np.where(end < start, 86_400.0, 0.0)


def seconds_until_clock(table: Table, first: str, last: str) -> Floats:
    """Return the seconds from the times in column `first` until the clock next shows the time in column `last`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(first)
    shown = pc.extract_regex(column if is_text(column.type) else column.cast(pa.string()), IN_TIME)
    clocks = {first: pc.struct_field(shown, "clock"), DAY_OF_ARRIVAL: ["2001-01-01"] * table.rows}
    dated = replace(table, columns={**table.columns, **clocks})
    start, end = (read_times(dated, name, date=DAY_OF_ARRIVAL, form=Form("iso")).time for name in (first, last))
    return (end - start) / np.timedelta64(1, "s") % 86_400


def _read_planned(plan: ClockPlan, table: Table) -> Clock:
    """Return the times of a table from the column that the plan chose, plus the seconds of a column LATER."""
    role = next(role for role in ROLES if role in plan.roles)
    date = plan.roles.get("date") if role in ("time", "arrived") else None
    form = plan.forms[date or plan.roles[role]]
    clock = read_times(table, plan.roles[role], date_format=plan.date_format, date=date, form=form)
    if LATER in table.columns:
        seconds = np.asarray(table.columns[LATER])
        later = np.where(seconds >= 0, np.nan_to_num(seconds) * 1e6, np.iinfo(np.int64).min)  # the least is NaT
        clock = replace(clock, time=clock.time + later.astype(np.int64).astype("timedelta64[us]"))
    if role != "utc":
        return clock
    return replace(clock, aware=True, zone="UTC", written=clock.written if clock.written.startswith("unix") else "utc")


def _to_zone(instant: Times, zone: str) -> Times:
    """Return UTC instants as the wall clock of a zone."""
    import pandas as pd

    local = pd.DatetimeIndex(instant).tz_localize("UTC").tz_convert(zone_of(zone)).tz_localize(None)
    return np.asarray(local, dtype="datetime64[us]")


def holds_time_of_day(table: Table, name: str) -> bool:
    """Tell whether most values of a column are clock times, or hours."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name)
    if pa.types.is_time(column.type):
        return True
    if not is_text(column.type):
        small = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        return small and (pc.max(column).as_py() or 0) <= 24 and (pc.min(column).as_py() or 0) >= 0
    text = pc.utf8_trim_whitespace(column)
    if pc.all(pc.match_substring_regex(text, COMPACT)).as_py() and len(pc.unique(pc.utf8_length(text))) == 1:
        return True
    hours = pc.match_substring_regex(text, r"^\d{1,2}(:\d\d.*)?$")
    return 2 * (pc.sum(hours).as_py() or 0) > table.rows


def offset_zone(seconds: int) -> str:
    """
    Return the name of the zone that is always `seconds` east of Greenwich; IANA's if it has one (with reversed signs).

    Examples
    --------
    >>> offset_zone(9 * 3600), offset_zone(19800), offset_zone(0)
    ('Etc/GMT-9', 'UTC+05:30', 'UTC')

    """
    hours, rest = divmod(abs(seconds), 3600)
    if seconds == 0:
        return "UTC"
    if rest == 0 and -12 * 3600 <= seconds <= 14 * 3600:
        return f"Etc/GMT{'-' if seconds > 0 else '+'}{hours}"
    return f"UTC{'+' if seconds > 0 else '-'}{hours:02}:{rest // 60:02}"


def find_zone(lat: NDArray[np.float64], lon: NDArray[np.float64]) -> tuple[str | None, str]:
    """
    Return the IANA zone in which most of some points lie, and a note on it, "" if all lie there.

    The zone is None where it cannot be found.
    """
    names = zones_at(lat, lon)
    if names is None:
        return None, "install tzfpy to find the zone from the coordinates"
    counts = {name: names.count(name) for name in sorted(set(names)) if name}
    if not counts:
        return None, "the coordinates lie in no zone"
    best = max(counts, key=lambda name: counts[name])
    try:
        zone_of(best)
    except InvalidParameter:
        return None, "the zone of the coordinates is not known here"
    share = counts[best] / len(names)
    return best, "" if share > 0.98 else f"{1 - share:.0%} of the points lie in other zones"
