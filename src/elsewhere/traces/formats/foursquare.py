"""
Foursquare check-ins as published for research: tab-separated, without names.

TSMC2014: user, venue, category id, category, lat, lon, offset in minutes, UTC time. TIST2015: user, venue, UTC time,
offset, with a second file of venues: venue, lat, lon, category, country.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from elsewhere.errors import InvalidTraces
from elsewhere.traces.sources import Source
from elsewhere.traces.tables import AS_IT_COMES, Found, Reading, Table
from elsewhere.traces.texts import Dialect, read_text

CHECK_IN = ("user", "venue", "category id", "category", "lat", "lon", "offset", "utc")
CHECK_IN_ALONE = ("user", "venue", "utc", "offset")
VENUE = ("venue", "lat", "lon", "category", "country")
BY_WIDTH = {len(names): names for names in (CHECK_IN, CHECK_IN_ALONE, VENUE)}
LOOKED_AT = 1 << 22


def read_foursquare(source: Source, reading: Reading = AS_IT_COMES) -> Iterator[Table]:
    """Check-ins with their UTC and local times, or venues."""
    import pyarrow as pa

    from elsewhere.traces.clock import times
    from elsewhere.traces.columns import numbers

    head = source.head(LOOKED_AT)
    names = BY_WIDTH.get(head.lstrip().partition(b"\n")[0].rstrip(b"\r").count(b"\t") + 1)
    if names is None:
        raise InvalidTraces(f"{source.name}: a Foursquare line has 4, 5 or 8 fields.", code="E_COLUMN")
    # latin-1 is that of the published files; only names of categories need it
    encoding = "latin-1" if reading.encoding == "utf-8" and not _is_utf8(head) else reading.encoding
    skip = len(head) - len(head.lstrip())  # blank lines
    dialect = Dialect("\t", names, True, head[:skip].count(b"\n"), quotes=False)
    for table in read_text(source, replace(reading, encoding=encoding, roles=None), fixed=(dialect, Found({}))):
        if names == VENUE:
            yield replace(table, format="foursquare")
            continue
        utc, minutes = times(table, "utc").time, numbers(table, "offset")
        known = np.isfinite(minutes) & (np.abs(minutes) <= 24 * 60)
        shift = np.where(known, minutes, 0).astype("timedelta64[m]")
        local = np.where(known, utc + shift, np.datetime64("NaT", "us"))
        columns: dict[str, Any] = {
            n: table.columns[n] for n in ("user", "venue", "lat", "lon", "category") if n in table.columns
        }
        columns |= {"utc": pa.array(utc, pa.timestamp("us", "UTC")), "local time": pa.array(local, pa.timestamp("us"))}
        yield replace(table, columns=columns, names=tuple(columns), format="foursquare")


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4  # half a character where the look ends
    return True
