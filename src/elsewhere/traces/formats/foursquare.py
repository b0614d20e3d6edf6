"""
Foursquare check-ins as published for research: tab-separated, without names.

TSMC2014: user, venue, category id, category, lat, lon, offset in minutes, UTC time. TIST2015: user, venue, UTC time,
offset, with a second file of venues: venue, lat, lon, category, country.
"""

from typing import Any

import numpy as np

from elsewhere.errors import InvalidTraces
from elsewhere.traces.sources import Source, as_utf8
from elsewhere.traces.tables import AS_IT_COMES, Reading, Table
from elsewhere.traces.texts import text_table

CHECK_IN = ("user", "venue", "category id", "category", "lat", "lon", "offset", "utc")
CHECK_IN_ALONE = ("user", "venue", "utc", "offset")
VENUE = ("venue", "lat", "lon", "category", "country")
BY_WIDTH = {len(names): names for names in (CHECK_IN, CHECK_IN_ALONE, VENUE)}
MONTHS = dict(zip(("Jan", "Feb", "Mar", "Apr", "May", "Jun"), range(1, 7), strict=True))
MONTHS |= dict(zip(("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), range(7, 13), strict=True))
STAMP = r"^\w{3} (?P<month>\w{3}) (?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d) \+0000 (?P<year>\d{4})$"


def read_foursquare(source: Source, reading: Reading = AS_IT_COMES) -> Table:
    """Check-ins with their UTC and local times, or venues."""
    import pyarrow as pa

    content = source.content
    encoding = reading.encoding
    if encoding == "utf-8" and not _is_utf8(content):
        encoding = "latin-1"  # that of the published files; only names of categories need it
    content = as_utf8(content, source.name, encoding)
    first = content.lstrip().partition(b"\n")[0].rstrip(b"\r")
    names = BY_WIDTH.get(first.count(b"\t") + 1)
    if names is None:
        raise InvalidTraces(f"{source.name}: a Foursquare line has 4, 5 or 8 fields.", code="E_COLUMN")
    # quotes are letters here: categories are not quoted
    plain = content.replace(b'"', b"'") if b'"' in content else content
    plain = "\t".join(names).encode() + b"\n" + plain
    table = text_table(plain, source.name, max_bad=reading.max_bad, cut=reading.cut)
    if names == VENUE:
        return Table(**{**vars(table), "format": "foursquare", "text": None})
    utc, local = _clocks(table)
    columns: dict[str, Any] = {"user": table.columns["user"], "venue": table.columns["venue"]}
    if "lat" in table.columns:
        columns |= {"lat": table.columns["lat"], "lon": table.columns["lon"]}
    if "category" in table.columns:
        columns["category"] = table.columns["category"]
    columns |= {"utc": pa.array(utc, pa.timestamp("us", "UTC")), "local time": pa.array(local, pa.timestamp("us"))}
    return Table(source.name, columns, table.rows, format="foursquare", names=tuple(columns), unequal=table.unequal)


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _clocks(table: Table) -> tuple[Any, Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    from elsewhere.traces.columns import numbers

    parts = pc.extract_regex(pc.utf8_trim_whitespace(table.column("utc")), STAMP)
    field = {key: pc.struct_field(parts, key) for key in ("year", "month", "day", "clock")}
    for name, number in MONTHS.items():
        field["month"] = pc.replace_substring(field["month"], name, f"{number:02}")
    day = pc.binary_join_element_wise(field["year"], field["month"], field["day"], "-")
    stamp = pc.binary_join_element_wise(day, field["clock"], "T")
    good = pc.match_substring_regex(stamp, r"^\d{4}-\d\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d$")
    stamp = pc.if_else(good, stamp, pa.scalar(None, stamp.type))
    try:
        utc = np.array(stamp.cast(pa.timestamp("us")).to_numpy(), dtype="datetime64[us]")
    except pa.ArrowException:
        raise table.refuse("a time that is in no calendar.", "E_DATE") from None
    minutes = numbers(table, "offset")
    known = np.isfinite(minutes) & (np.abs(minutes) <= 24 * 60)
    shift = np.where(known, minutes, 0).astype("timedelta64[m]")
    return utc, np.where(known, utc + shift, np.datetime64("NaT", "us"))
