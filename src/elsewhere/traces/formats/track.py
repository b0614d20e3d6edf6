"""Positions gathered one by one, as compact columns: the end of every reader that walks through a document."""

import math
from array import array
from datetime import UTC, datetime, timedelta
from typing import Any

from elsewhere.traces.sources import Source
from elsewhere.traces.tables import Table

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNKNOWN = -(1 << 63)  # a time that cannot be read, as NaT is stored
MICROSECOND = timedelta(microseconds=1)


def instant_of(value: Any) -> tuple[int, int | None]:
    """
    Microseconds since 1970 and seconds east of Greenwich of an ISO time with an offset, or of epoch milliseconds.

    A time without an offset is taken as UTC: the formats that use this write none.
    """
    if isinstance(value, str) and not value.isdigit():
        try:
            time = datetime.fromisoformat(value)
            offset = time.utcoffset()
            known = time if offset is not None else time.replace(tzinfo=UTC)
            return (known - EPOCH) // MICROSECOND, None if offset is None else int(offset.total_seconds())
        except (ValueError, OverflowError):
            return UNKNOWN, None
    try:
        number = int(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else -1
    except ValueError:
        number = -1
    return (1000 * number, None) if 0 <= number < 1 << 50 else (UNKNOWN, None)


class Track:
    """Times in UTC, latitudes and longitudes of one file, and the offsets its times were written with."""

    def __init__(self) -> None:
        self.time = array("q")
        self.lat = array("d")
        self.lon = array("d")
        self.rank = array("b")
        self.offsets: set[int | None] = set()
        self.skipped: dict[str, int] = {}

    def add(self, time: int, offset: int | None, lat: float, lon: float, rank: int = 0) -> None:
        """One position; of several at one instant the one of lowest `rank` counts."""
        self.time.append(time)
        self.lat.append(lat)
        self.lon.append(lon)
        self.rank.append(rank)
        if len(self.offsets) < 3 and time != UNKNOWN:
            self.offsets.add(offset)

    def skip(self, what: str) -> None:
        """Count something that is no position."""
        self.skipped[what] = self.skipped.get(what, 0) + 1

    def table(self, source: Source, kind: str) -> Table:
        """Columns user (the file's), time, lat and lon."""
        import numpy as np
        import pyarrow as pa

        time = np.frombuffer(self.time, dtype=np.int64) if len(self.time) else np.empty(0, dtype=np.int64)
        lat, lon = (np.array(side, dtype=np.float64) for side in (self.lat, self.lon))
        order = np.lexsort((np.arange(len(time)), np.array(self.rank, dtype=np.int8), time))
        # one document tells one instant in several of its lists: the finest of them counts
        again = np.zeros(len(time), dtype=bool)
        again[1:] = (np.diff(time[order]) == 0) & (time[order][1:] != UNKNOWN)
        again[1:] &= np.array(self.rank, dtype=np.int8)[order][1:] > np.array(self.rank, dtype=np.int8)[order][:-1]
        keep = np.sort(order[~again])
        zone = "UTC"
        if len(self.offsets) == 1 and None not in self.offsets:
            seconds = next(iter(self.offsets)) or 0
            sign, size = "-" if seconds < 0 else "+", abs(seconds)
            zone = f"{sign}{size // 3600:02}:{size % 3600 // 60:02}" if seconds % 60 == 0 and seconds else "UTC"
        columns = {
            "user": pa.DictionaryArray.from_arrays(np.zeros(len(keep), dtype=np.int32), pa.array([source.user])),
            "time": pa.array(time[keep].astype("datetime64[us]"), pa.timestamp("us", zone)),
            "lat": pa.array(np.where(np.isfinite(lat[keep]), lat[keep], math.nan)),
            "lon": pa.array(np.where(np.isfinite(lon[keep]), lon[keep], math.nan)),
        }
        notes = tuple(f"{n} {what}" for what, n in self.skipped.items())
        return Table(source.name, columns, len(keep), format=kind, names=tuple(columns), notes=notes)
