"""How a table is written, beside its columns: separators, patterns of times, templates of positions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import product

from elsewhere.traces.columns import normalize_name
from elsewhere.traces.sources import BLANKS, LON_FIRST, Table, first_records

# how days and clock times are written: candidates that `pattern_of` tries; %-d is a day without a leading zero
DAYS = [
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%Y%m%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%d-%m-%Y",
    "%d.%m.%y",
    "%d/%m/%y",
    "%d-%m-%y",
    "%d-%b-%Y",
]
DAYS += ["%m/%d/%Y", "%m-%d-%Y", "%m.%d.%Y", "%m/%d/%y", "%d %b %Y", "%b %d %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y"]
CLOCKS = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "%I:%M%p", "%H%M%S", "%H%M")
WHOLE_STAMPS = ("%a %b %d %H:%M:%S %z %Y", "%a, %d %b %Y %H:%M:%S %z", "%Y%m%d%H%M%S")
ZONE = re.compile(r"(?<=\d)( ?Z| UTC| GMT|[+-]\d\d(:?\d\d)?)$")
FRACTION = re.compile(r"(?<=:\d\d)\.(\d{1,6})")
NO_MARK = re.compile(r"[\w.]")  # numbers and words, between which patterns have marks
POINT = re.compile(
    r"((?:SRID=\d{1,6};)?(?:POINT ?)?[\[(]?\s*)[+-]?\d+\.?\d*(\s*[,;]\s*|\s+)[+-]?\d+\.?\d*(\s*[\])]?)", re.IGNORECASE
)
LINE = "[[{lon}, {lat}]]"
WKB = "wkb"


@dataclass(frozen=True)
class FileForm:
    """
    How a table is written, beside its columns: as the input was, so that whatever read that reads the fakes.

    `delimiter` and whether a line of names is there (`headed`), decimal commas (`comma`); `time` and `date` are
    patterns of `strftime` ("" is ISO 8601), `point` a template for a position in one column, or "wkb"; `wide` are the
    names of the columns that are slots of a day, a line for each row of the traces.
    """

    delimiter: str = ","
    headed: bool = True
    comma: bool = False
    time: str = ""
    date: str = ""
    point: str = ""
    wide: tuple[str, ...] = ()

    @staticmethod
    def of(
        table: Table,
        roles: Mapping[str, str],
        day_first: bool | None = None,
        date_format: str | None = None,
        turned: bool = False,
    ) -> "FileForm":
        """
        Return how a table that was read is written.

        `day_first` tells 3 April from March 4, where that is known; `date_format` is how times, or dates, were read
        where somebody said it; `turned` tells that points have their latitude first.
        """
        dialect = table.dialect or next((part.dialect for part in table.files if part.dialect is not None), None)
        names = tuple(name for name in {*roles.values()} if name in table.columns) if dialect is None else dialect.names
        records = first_records(replace(table, names=names)) if dialect is None else dialect.records
        at = {role: names.index(name) for role, name in roles.items() if name in names}
        some = {role: [r[i] for r in records if r[i]] for role, i in at.items()}
        when = next((some[role] for role in ("arrived", "time", "utc", "local") if role in some), [])
        where = "" if "geometry" not in roles else point_template(roles["geometry"], some.get("geometry", []))
        where = where.replace("lat", "x").replace("lon", "lat").replace("x", "lon") if turned else where
        delimiter = "," if dialect is None else " " if dialect.delimiter == BLANKS else dialect.delimiter
        return FileForm(
            delimiter=delimiter,
            headed=table.headed or (table.meaning is not None and table.meaning.sglt),  # SGLT has a file of its own
            comma=table.comma and delimiter != ",",
            time=pattern_of(when, day_first, date_format),
            date="" if re.search("%-?[HI]", day := pattern_of(some.get("date", []), day_first, date_format)) else day,
            point=where,
            wide=() if table.meaning is None else table.meaning.wide,
        )


def point_template(name: str, values: Sequence[str]) -> str:
    """
    Return the template of positions in one column, "" where they are well-known text or of no form that is known.

    Examples
    --------
    >>> point_template("where", ["46.5, 6.6"]), point_template("lonlat", ["6.6;46.5"])
    ('{lat}, {lon}', '{lon};{lat}')
    >>> point_template("line", ["[[6.6,46.5]]"])
    '[[{lon}, {lat}]]'

    """
    first = values[0] if values else ""
    if first.startswith("[["):
        return LINE
    if first.startswith(("b'", 'b"')):
        return WKB
    form = POINT.fullmatch(first)
    if form is None:
        return ""
    lon_first = "POINT" in first.upper() or normalize_name(name) in LON_FIRST
    return "{}{}{}{}{}".format(
        form[1], *("{lon}", form[2], "{lat}") if lon_first else ("{lat}", form[2], "{lon}"), form[3]
    )


def pattern_of(values: Sequence[str], day_first: bool | None = None, date_format: str | None = None) -> str:
    """
    Return the one pattern that writes all of these times as they are, "" where none does, or two that mean other days.

    Where `date_format` reads them, the pattern means the same times.

    Examples
    --------
    >>> pattern_of(["Mar 04 2024 07:00:01"]), pattern_of(["3/14/2024 7:05 PM"]), pattern_of(["2024-03-04T05:00:00Z"])
    ('%b %d %Y %H:%M:%S', '%-m/%-d/%Y %-I:%M %p', '%Y-%m-%dT%H:%M:%SZ')
    >>> pattern_of(["03/04/2024"]), pattern_of(["03/04/2024"], day_first=True)
    ('', '%d/%m/%Y')
    >>> pattern_of(["24/3/4"], date_format="%y/%m/%d")
    '%y/%-m/%-d'

    """
    sample = list(dict.fromkeys(values))[:50]
    if not sample:
        return ""
    zone, fraction = ZONE.search(sample[0]), FRACTION.search(sample[0])
    ending = "" if zone is None else {3: "%hz", 5: "%z", 6: "%:z"}.get(len(zone[1]), zone[1])
    part = "" if fraction is None else f".%{len(fraction[1])}f"
    own = [] if date_format is None else [date_format]
    days, clocks, own = (
        [*some, *(re.sub("%([dmHI])", r"%-\1", each) for each in some)] for some in (DAYS, CLOCKS, own)
    )
    clocks = [clock.replace("%S", f"%S{part}") for clock in clocks]
    forms = [d + between + c + ending for d, between, c in product(days, (" ", "T", ", "), clocks)]
    forms = [*own, *WHOLE_STAMPS, *days, *clocks, *forms]
    marks = NO_MARK.sub("", sample[0].replace("+", "-"))
    forms = [form for form in dict.fromkeys(forms) if _marks_of(form) == marks]
    fitting = []
    for form in forms:
        # `all` stops at the first value that the form does not write as it stands
        pairs = ((_parse_time(form, value), value) for value in sample)
        if all(
            t and format_time(t.replace(tzinfo=None), form, t.utcoffset() or timedelta()) == text for t, text in pairs
        ):
            fitting.append(form)
    if date_format is not None and None not in (times := [_parse_time(date_format, value) for value in sample]):
        fitting = [form for form in fitting if [_parse_time(form, value) for value in sample] == times]
    leads = {form: re.match("%-?[dm]", form) and form.replace("-", "")[:2] == "%d" for form in fitting}
    if {True, False} <= {*leads.values()}:  # 3 April or March 4
        fitting = [form for form in fitting if leads.get(form) is day_first]
    return fitting[0] if fitting else ""


@cache
def _marks_of(form: str) -> str:
    """Return what is between numbers and words: most patterns differ in it, and `strptime` is slow on new ones."""
    return NO_MARK.sub("", format_time(datetime.min, form).replace("+", "-"))


def _parse_time(form: str, value: str) -> datetime | None:
    """Return the time that a pattern of `format_time` reads; None where it reads none."""
    pattern = re.sub(r"%\df", "%f", form.replace("%-", "%")).replace("%hz", "%z").replace("%:z", "%z")
    try:
        return datetime.strptime(f"{value}00" if "%hz" in form else value, pattern)
    except ValueError:
        return None


def format_time(moment: datetime, form: str, offset: timedelta = timedelta()) -> str:
    """Return a moment in a pattern: that of `strftime`, %-d without a leading zero, %3f milliseconds, %hz hours."""
    parts = {"d": moment.day, "m": moment.month, "H": moment.hour, "I": (moment.hour + 11) % 12 + 1}
    text = re.sub("%-([dmHI])", lambda one: str(parts[one[1]]), form)
    text = re.sub(r"%(\d)f", lambda one: f"{moment.microsecond:06d}"[: int(one[1])], text)
    if "z" in form:
        zone = offset_text(round(offset / timedelta(minutes=1)))
        text = text.replace("%:z", zone).replace("%hz", zone[:3]).replace("%z", zone.replace(":", ""))
    return moment.strftime(text)


def offset_text(minutes: int) -> str:
    """Return a distance from UTC as text, as in +05:30."""
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
