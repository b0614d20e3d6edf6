"""
Read times: how a column writes them, what they are in seconds since 1970, and what the local clock says there.

One table of layouts tells whether a column holds dates, clock times or both, and reads them. Offsets from UTC are kept
beside the times; the local clock is that of the zone in which positions lie.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.values import NUMBER, PAIR, WKT, as_text, numbers_of, read_numbers
from elsewhere.data.visits import DAY, Floats, Ints, zone_of
from elsewhere.errors import InvalidTraces

TIMES = ("datetime", "epoch", "date", "clock")  # kinds of columns that hold times
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = rf"(?P<month>(?i:{'|'.join(MONTHS)})[a-zA-Z]*)"
WEEKDAY = r"(?:(?i:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?"
COMPACT = r"(?P<y>(?:19|20)\d\d)(?P<m>0[1-9]|1[0-2])(?P<d>0[1-9]|[12]\d|3[01])"
CLOCK = r"(?P<H>\d{1,2})[:h](?P<M>\d{1,2})(?::(?P<S>\d\d?)(?:[.,]\d+)?)?(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
HOUR = r"(?P<H>\d{1,2})(?:[:.h](?P<M>\d\d?)(?:[:.m](?P<S>\d\d?)(?:[.,]\d+)?)?)?(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
ZONE = r"(?: ?(?P<zone>Z|z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?"
DATES = (
    r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})",
    r"(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<y>\d{4}|\d\d)",
    rf"{WEEKDAY}(?P<d>\d{{1,2}})[-/ ]{MONTH}[-/, ]+(?P<y>\d{{4}}|\d\d)",
    rf"{WEEKDAY}{MONTH} +(?P<d>\d{{1,2}}),? +(?P<y>\d{{4}})",
    COMPACT,
)
CLOCKS = (CLOCK + ZONE,)
MOMENTS = (
    *(rf"{date}(?:[T ,:]+{HOUR}{ZONE})?" for date in DATES[:4]),
    rf"{COMPACT}[T ]?(?P<H>[01]\d|2[0-4])(?P<M>[0-5]\d)(?P<S>[0-5]\d)?{ZONE}",
    rf"{COMPACT}(?:[T ]+{CLOCK}{ZONE})?",
    rf"{WEEKDAY}{MONTH} +(?P<d>\d{{1,2}}) {CLOCK}{ZONE} (?P<y>\d{{4}})",  # Twitter
)
KINDS = (
    ("flag", r"(?i:0|1|true|false|yes|no|t|f|y|n)"),
    *(("date", pattern) for pattern in DATES),
    *(("clock", pattern) for pattern in CLOCKS),
    *(("datetime", pattern) for pattern in MOMENTS),
    ("point", PAIR),
    ("point", WKT),
    ("points", r"\s*\[\s*(\[.*\])?\s*\]|\s*(LINESTRING|linestring).*|[^,;|]+[,; ][^,;|]+([;|].*){2,}"),
)
HHMM = r"(?P<H>\d\d)(?P<M>\d\d)"
UNITS = {"s": 1e11, "ms": 1e14, "us": 1e17, "ns": 1e20}  # of times since 1970: below which size each is
EARLIEST, LATEST = -2_208_988_800, 7_258_118_400  # 1900 and 2200: other times are damage
NO_DAY = 978_307_200  # Monday 1 January 2001, for clocks without dates
LONGEST_DAY = 30 * 3600  # clocks of diaries and timetables go on after midnight
MISSING = np.iinfo(np.int64).min
MOSTLY = 0.95
ASKED = 1_000  # points whose zone is looked up


def find_kind(values: Sequence[str]) -> str:
    """Return what most values of a column are: of KINDS, or "epoch", "whole", "decimal", "words", "nothing"."""
    if not values:
        return "nothing"
    few = values[:: max(1, len(values) // 600)]
    for kind, pattern in KINDS:
        rule = re.compile(pattern, re.ASCII)
        if sum(rule.fullmatch(v) is not None for v in few) >= MOSTLY * len(few):
            return kind
    numbers = [v for v in few if NUMBER.fullmatch(v)]
    if len(numbers) < MOSTLY * len(few):
        return "words"
    if epoch_unit(numbers):
        return "epoch"
    return "decimal" if any(re.search("[.,]", v) for v in numbers) else "whole"


@dataclass(frozen=True)
class TimeForm:
    """
    How times are written.

    `kind` is "typed", "epoch" (in a unit), "clock", "count" (of steps since midnight, the first is number `first`),
    "layout" (a pattern of the table) or "format" (the caller's own, as in strptime); `aware` tells whether they have
    offsets.
    """

    kind: str
    pattern: str = ""
    aware: bool = False
    day_first: bool = True
    note: str = ""
    step: float = 0
    first: int = 0

    @property
    def clock(self) -> bool:
        """Tell whether they are times of a day without their date."""
        return self.kind in ("clock", "count") or (self.kind == "format" and not re.search("%[YyFDcxs]", self.pattern))


def epoch_unit(values: Sequence[str]) -> str:
    """Return the unit of times since 1970 ("s", "ms", "us", "ns"); "" for other numbers, "mixed" for several."""
    size = np.abs(numbers_of(values))
    fits = np.array([(size >= 6e8 * unit) & (size <= 3e9 * unit) for unit in (1, 1e3, 1e6, 1e9)])
    if not len(size) or fits.any(axis=0).mean() < MOSTLY:
        return ""
    units = np.flatnonzero(fits.any(axis=1))
    return list(UNITS)[int(units[0])] if len(units) == 1 else "mixed"


def is_clock(values: Sequence[str]) -> bool:
    """Tell whether whole numbers are clock times, hhmm or hhmmss; a few may stand for what is not known."""
    right = re.compile(r"([01]?\d|2[0-4])?[0-5]?\d([0-5]\d)?")
    right_ones = sum(right.fullmatch(v) is not None for v in values)
    return max(map(len, values), default=0) > 2 and right_ones >= MOSTLY * len(values)


def find_form(
    values: Sequence[str], label: str, name: str, date_format: str | None, every: Callable[[], Sequence[str]]
) -> TimeForm:
    """
    Return how times are written; refuse values that fit two formats in different ways (B32), or none.

    A column with the day first and one with the month first look alike as long as no number is above 12: with points
    the day is first, and otherwise the caller has to say which (`date_format`), unless one of `every` value tells.
    """
    import pyarrow as pa

    few = sorted(values)[:: max(1, len(values) // 2_000)]
    text = pa.array(few, pa.string())
    if date_format is not None:
        form = TimeForm("format", date_format, aware="%z" in date_format)
        if np.mean(read_times(text, form)[0] != MISSING) > 0.5:
            return form
    unit = epoch_unit(few)
    if unit == "mixed":
        raise InvalidTraces(f"{name}: column {label} mixes seconds and milliseconds.", code="E_DATE")
    fits = {p: sum(re.fullmatch(p, v, re.ASCII) is not None for v in few) for p in (*CLOCKS, *MOMENTS)}
    pattern = max(fits, key=lambda each: fits[each])
    if fits[pattern] < MOSTLY * len(few):
        if is_clock(few):
            digits = 6 if max(map(len, few)) > 4 else 4
            return TimeForm("clock", HHMM if digits == 4 else rf"{HHMM}(?P<S>\d\d)", first=digits)
        if unit:
            return TimeForm("epoch", unit, aware=True)
        raise InvalidTraces(f"{name}: column {label} holds no times that are known; give `date_format`, or write them "
                            "as YYYY-MM-DDThh:mm:ss.", code="E_DATE")  # fmt: skip
    matches = [match for v in few if (match := re.fullmatch(pattern, v, re.ASCII))]
    aware = sum(bool(match.groupdict().get("zone")) for match in matches)
    if 0 < aware < MOSTLY * len(matches):
        raise InvalidTraces(
            f"{name}: column {label} mixes times with and without an offset from UTC; give all of them one.",
            code="E_TZ",
        )
    if pattern in CLOCKS:
        return TimeForm("clock", pattern)
    forms = [TimeForm("layout", pattern, aware > 0, day_first) for day_first in (True, False)]
    if "a" not in matches[0].groupdict():
        return forms[0]
    if date_format is not None and {"%d", "%m"} <= set(re.findall("%.", date_format)):
        return forms[date_format.index("%d") > date_format.index("%m")]
    mark = re.sub(r"\d", "", matches[0][0])[:1]
    for look in (lambda: few, every):
        read = [read_times(pa.array(look(), pa.string()), each)[0] for each in forms]
        good = [float(np.mean(each != MISSING)) for each in read]
        if good[0] != good[1] or np.array_equal(read[0], read[1]):
            return forms[good[1] > good[0]]
        if mark == ".":
            return replace(forms[0], note=f"dates of column {label} are read with the day first: 03.04 is 3 April")
    raise InvalidTraces(
        f"{name}: dates of column {label} are ambiguous, 03/04 may be 3 April or March 4, and no number above 12 "
        f'tells; give `date_format` "%d{mark}%m{mark}%Y" or "%m{mark}%d{mark}%Y".',
        code="E_DATE",
    )


def read_times(column: Any, form: TimeForm) -> tuple[Ints, Ints | None]:
    """Return seconds since 1970 (MISSING where a value is none), and the offset from UTC that each was written with."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if form.kind == "typed":
        zone = getattr(column.type, "tz", None)
        seconds = _bounded(column.cast(pa.timestamp("s", zone), safe=False).cast(pa.int64()))
        return seconds, None if zone is None else to_local(seconds, zone) - seconds
    if form.kind == "count":
        seconds = np.nan_to_num(form.step * (read_numbers(column)[0] - form.first), nan=-1)
        return np.where((seconds >= 0) & (seconds <= LONGEST_DAY), seconds, MISSING).astype(np.int64), None
    if form.kind == "epoch":
        values = read_numbers(column)[0] / 1000.0 ** list(UNITS).index(form.pattern)
        good = np.isfinite(values) & (np.abs(values) < LATEST) & (values != 0)
        seconds = np.where(good, np.floor(np.where(good, values, 0)).astype(np.int64), MISSING)
        return seconds, np.zeros(len(seconds), np.int64)
    text = pc.utf8_trim_whitespace(as_text(column))
    if form.kind == "format":
        read = pc.strptime(text, format=form.pattern, unit="s", error_is_null=True)
        seconds = _bounded(read.cast(pa.timestamp("s")).cast(pa.int64()))
        seconds = np.where(seconds == MISSING, MISSING, seconds % DAY) if form.clock else seconds
        return seconds, np.zeros(len(seconds), np.int64) if form.aware else None
    if form.pattern == MOMENTS[0]:
        try:
            read = text.cast(pa.timestamp("us", "UTC" if form.aware else None))
            seconds = _bounded(pc.floor_temporal(read, unit="second").cast(pa.timestamp("s")).cast(pa.int64()))
            return seconds, _offsets(pc.struct_field(pc.extract_regex(text, ZONE_END), "zone")) if form.aware else None
        except pa.ArrowInvalid:
            pass  # not ISO 8601 to the letter
    return _read_layout(text, form)


ZONE_END = r"(?P<zone>Z|[+-]\d\d(?::?\d\d)?)$"


def _read_layout(text: Any, form: TimeForm) -> tuple[Ints, Ints | None]:
    """Return the times of a layout, and their offsets; of clocks the seconds since midnight."""
    import pyarrow.compute as pc

    parts = pc.extract_regex(pc.utf8_lpad(text, form.first, "0"), f"^(?:{form.pattern})$")
    keys = [key for key in "abymdHMS" if f"?P<{key}>" in form.pattern]
    number = {k: np.nan_to_num(read_numbers(pc.struct_field(parts, k))[0], nan=-1).astype(np.int64) for k in keys}
    seconds, good = np.zeros(len(text), dtype=np.int64), ~np.asarray(parts.is_null())
    if not form.clock:
        first, second = ("a", "b") if form.day_first else ("b", "a")
        day, year = number["d" if "d" in number else first], number["y"]
        if "m" in number or second in number:
            month = number["m" if "m" in number else second]
        else:
            words = pc.utf8_slice_codeunits(pc.utf8_lower(pc.struct_field(parts, "month")), 0, 3)
            month = np.array([*range(1, 13), MISSING])[_codes(words, MONTHS)]
        year = year + np.where(year < 70, 2000, np.where(year < 100, 1900, 0)) * (year >= 0)
        good &= (year >= 0) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
        year, month, day = (np.where(good, part, 1) for part in (year, month, day))
        months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
        date = months.astype("datetime64[D]") + (day - 1)
        good &= date.astype("datetime64[M]") == months  # no 31 February
        seconds = date.astype(np.int64) * DAY
    if "H" in number:  # no hour is midnight
        hour, minute, rest = (np.maximum(number.get(key, 0 * seconds), 0) for key in "HMS")
        if "?P<half>" in form.pattern:
            half = _codes(pc.utf8_lower(pc.struct_field(parts, "half")), ("a", "p"))
            hour = np.where(half < 0, hour, hour % 12 + 12 * half)
        clock = 3600 * hour + 60 * minute + rest
        good &= (minute < 60) & (rest <= 60) & (clock <= (LONGEST_DAY if form.clock else DAY))
        seconds = seconds + clock
    if form.clock:
        return np.where(good, seconds, MISSING), None
    zone = pc.struct_field(parts, "zone")
    good &= np.asarray(pc.not_equal(zone, "").fill_null(False)) == form.aware
    offset = _offsets(zone)
    return _bounded(np.where(good, seconds - offset, MISSING)), offset if form.aware else None


def _codes(text: Any, words: Sequence[str]) -> Ints:
    """Return the number of each text among words, -1 where it is none of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return np.asarray(pc.index_in(text, pa.array(words)).fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _bounded(seconds: Any) -> Ints:
    """Return seconds as an array, MISSING for those that are damage."""
    if not isinstance(seconds, np.ndarray):
        seconds = seconds.fill_null(MISSING).to_numpy(zero_copy_only=False)
    return np.where((seconds >= EARLIEST) & (seconds < LATEST), seconds, MISSING)


def _offsets(marks: Any) -> Ints:
    """Return the seconds east of Greenwich of "Z", "+02", "+0200" or "+02:00"."""
    marks = (marks.combine_chunks() if hasattr(marks, "combine_chunks") else marks).dictionary_encode()
    known = []
    for mark in marks.dictionary.to_pylist():
        digits = mark[1:].replace(":", "").ljust(4, "0") if mark[:1] in ("+", "-") else "0000"
        known.append((3600 * int(digits[:2]) + 60 * int(digits[2:])) * (-1 if mark[:1] == "-" else 1))
    return np.asarray(np.array([*known, 0], dtype=np.int64)[marks.indices.fill_null(-1).to_numpy(zero_copy_only=False)])


# --- the local clock --------------------------------------------------------------------------------------------------


def zones_at(lat: Floats, lon: Floats) -> list[str]:
    """Return the IANA zones of points, "" at sea, looked up offline."""
    from tzfpy import get_tz

    names = [get_tz(float(x), float(y)) or "" for y, x in zip(lat, lon, strict=True)]
    return ["" if name.startswith("Etc/") else name for name in names]


def _some_zones(lat: Floats, lon: Floats) -> list[str]:
    valid = np.flatnonzero((np.abs(lat) <= 90) & (np.abs(lon) <= 180))
    some = valid[np.linspace(0, len(valid) - 1, min(ASKED, len(valid))).astype(np.int64)] if len(valid) else valid
    return zones_at(lat[some], lon[some])


def share_on_land(lat: Floats, lon: Floats) -> float:
    """Return the share of some points that lie in the zone of a country, the Antarctic left out."""
    zones = _some_zones(lat, lon)
    return sum(bool(zone) and not zone.startswith("Antarctica") for zone in zones) / max(1, len(zones))


def find_zone(lat: Floats | None, lon: Floats | None) -> tuple[str | None, float]:
    """Return the zone in which most points lie, None where there is none, and the share of points in it."""
    zones = [] if lat is None or lon is None else [zone for zone in _some_zones(lat, lon) if zone]
    if not zones:
        return None, 0.0
    best = max(sorted(set(zones)), key=zones.count)
    return best, zones.count(best) / len(zones)


def to_local(utc: Ints, zone: str) -> Ints:
    """Return the local seconds of UTC seconds in a zone; MISSING stays."""
    import pandas as pd

    result = utc.copy()
    there = utc != MISSING
    # offsets change at quarters of an hour: look each quarter up once
    quarters, place = np.unique(utc[there] // 900, return_inverse=True)
    stamps = pd.DatetimeIndex((quarters * 900).astype("datetime64[s]")).tz_localize("UTC")
    local = np.asarray(stamps.tz_convert(zone_of(zone)).tz_localize(None)).astype("datetime64[s]").astype(np.int64)
    result[there] += (local - quarters * 900)[place]
    return result


def to_local_by_place(utc: Ints, lat: Floats, lon: Floats, fallback: str) -> Ints:
    """Return the local seconds of UTC seconds by the zone of each position."""
    valid = (np.abs(lat) <= 90) & (np.abs(lon) <= 180) & (utc != MISSING)
    north, east = (np.floor(np.where(valid, side, 0) * 4).astype(np.int64) for side in (lat, lon))
    cell = np.where(valid, north * 4096 + east, MISSING)
    cells, first, inverse = np.unique(cell, return_index=True, return_inverse=True)
    found = zones_at(np.where(valid, lat, 0)[first], np.where(valid, lon, 0)[first])
    names = np.array([zone or fallback for zone in found], dtype=object)
    names[cells == MISSING] = fallback
    return by_zone(utc, names, inverse, to_local)


def by_zone(seconds: Ints, zones: NDArray[Any], of: NDArray[Any], convert: Callable[[Ints, str], Ints]) -> Ints:
    """Return each of the seconds converted by its zone, zones[of]."""
    result = seconds.copy()
    for zone in sorted(set(zones)):
        rows = (zones == zone)[of]
        result[rows] = convert(seconds[rows], zone)
    return result
