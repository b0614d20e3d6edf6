"""OwnTracks: JSON objects with `_type`, `lat`, `lon`, `tst`, one per line, in an array, or in a recorder's `.rec`."""

import re
from array import array
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from elsewhere.traces.formats.items import items, number_of
from elsewhere.traces.sources import Source, as_utf8
from elsewhere.traces.tables import AS_IT_COMES, Reading, Table
from elsewhere.traces.texts import without_last_line

# time of arrival, kind of message, payload
REC = re.compile(rb"^[^\t\r\n]*\t[^\t\r\n]*\t(?=\{)", re.MULTILINE)
OTHER_REC = re.compile(rb"^[^\t\r\n{\[]*\t[^\t\r\n]*\t[^{\r\n][^\r\n]*$", re.MULTILINE)
USERS = ("topic", "username", "tid")


def read_owntracks(source: Source, reading: Reading = AS_IT_COMES) -> Table:
    """
    The locations of a file. The user is the one of `topic` (owntracks/USER/DEVICE), else `username`, else `tid`, the
    first of them that every location has, else the file.
    """
    import pyarrow as pa

    time, lat, lon = array("d"), array("d"), array("d")
    ids: dict[str, list[str]] = {key: [] for key in USERS}
    others = 0
    for item in _locations(source, reading):
        if item is None:
            others += 1
            continue
        time.append(number_of(item.get("tst")))
        lat.append(number_of(item.get("lat")))
        lon.append(number_of(item.get("lon")))
        for key in USERS:
            ids[key].append(_user(key, item.get(key)))
    chosen = next((ids[key] for key in USERS if all(ids[key])), None)
    columns: dict[str, Any] = {
        "user": pa.array(chosen or [source.user] * len(time), pa.string()),
        "time": pa.array(time, pa.float64()),
        "lat": pa.array(lat, pa.float64()),
        "lon": pa.array(lon, pa.float64()),
    }
    notes = (f"{others} messages that are no locations were not read",) if others else ()
    return Table(source.name, columns, len(time), format="owntracks", names=tuple(columns), notes=notes)


def _locations(source: Source, reading: Reading) -> Iterator[dict[str, Any] | None]:
    content = as_utf8(source.content, source.name, reading.encoding)
    if content.lstrip()[:1] not in (b"{", b"["):
        if reading.cut:
            content, reading = without_last_line(content), replace(reading, cut=False)
        content = REC.sub(b"", OTHER_REC.sub(b"{}", content))
    for _, item in items(
        replace(source, raw=content, packed=False), replace(reading, encoding="utf-8"), ("data", "locations")
    ):
        if isinstance(item, dict):
            yield item if item.get("_type", "location") == "location" and "lat" in item and "tst" in item else None


def _user(key: str, value: Any) -> str:
    if not isinstance(value, str):
        return ""
    parts = value.split("/")
    return parts[1] if key == "topic" and len(parts) >= 3 else "" if key == "topic" else value
