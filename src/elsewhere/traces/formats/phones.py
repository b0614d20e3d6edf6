"""
Read what phones export: Google's location history in all its shapes, and OwnTracks.

Google: Records.json (`locations` of `latitudeE7`, `timestamp` or `timestampMs`), the monthly files of Semantic Location
History (`timelineObjects`), and the phone's own export of Timeline: Android (`semanticSegments`, `rawSignals`, points
"43.77°, 9.07°") and iOS (a bare array, points "geo:43.77,9.07"). OwnTracks: JSON objects with `_type`, `lat`, `lon`,
`tst`, one per line, in an array, or in a recorder's `.rec`.
"""

import math
import re
from array import array
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from elsewhere.traces.formats.records import items, number_of, part_of
from elsewhere.traces.formats.text import without_last_line
from elsewhere.traces.sources import Source, as_utf8
from elsewhere.traces.tables import AS_IT_COMES, Reading, Table

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNKNOWN = -(1 << 63)  # a time that cannot be read, as NaT is stored
MICROSECOND = timedelta(microseconds=1)


def instant_of(value: Any) -> tuple[int, int | None]:
    """
    Return microseconds since 1970 and seconds east of Greenwich, of an ISO time with an offset or epoch milliseconds.

    A time without an offset is taken as UTC: the formats that use this write none.
    """
    if isinstance(value, str) and not value.isdigit():
        try:
            time = datetime.fromisoformat(value)
            offset = time.utcoffset()
            in_utc = time if offset is not None else time.replace(tzinfo=UTC)
            return (in_utc - EPOCH) // MICROSECOND, None if offset is None else int(offset.total_seconds())
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
        """Add one position; of several at one instant the one of lowest `rank` counts."""
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
        """Return columns user (the file's), time, lat and lon."""
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


ARRAYS = ("locations", "semanticSegments", "rawSignals", "timelineObjects")
POINT = re.compile(r"\s*(?:geo:)?\s*([+-]?[0-9.]{1,20})\s*°?\s*,\s*([+-]?[0-9.]{1,20})\s*°?\s*", re.ASCII)
STAY_EVERY = 600_000_000  # µs between the fixes that stand for a visit: it lasted from its start to its end
LONGEST_VISIT = 31 * 86_400_000_000
# of several entries at one instant the finer one counts
RAW, PATH, VISIT, ENDS = range(4)


def read_google(source: Source, reading: Reading = AS_IT_COMES) -> Table:
    """Return the positions of one person: raw fixes, points of paths, visits, and the two ends of a journey."""
    track = Track()
    for name, item in items(source, reading, ARRAYS):
        if name == "locations":
            _record(track, item)
        elif name == "rawSignals":
            _signal(track, part_of(item, "position"))
        elif name == "timelineObjects":
            _timeline_object(track, item)
        elif name in ("semanticSegments", "") and isinstance(item, dict):
            _segment(track, item)
    return track.table(source, "google")


def _record(track: Track, item: Any) -> None:
    lat, lon = e7(part_of(item, "latitudeE7"), 90), e7(part_of(item, "longitudeE7"), 180)
    if math.isnan(lat) or math.isnan(lon):
        track.skip("records without a position were not read")
        return
    stamp = item.get("timestamp", item.get("timestampMs"))
    # Z here says how it is stored, not where it was
    track.add(instant_of(stamp)[0], None, lat, lon, RAW)


def _signal(track: Track, position: Any) -> None:
    if isinstance(position, dict):
        lat, lon = point(position.get("LatLng", position.get("latLng")))
        if math.isnan(lat):
            track.skip("records without a position were not read")
        else:
            track.add(*instant_of(position.get("timestamp")), lat, lon, RAW)


def _segment(track: Track, item: dict[str, Any]) -> None:
    begin, offset = instant_of(item.get("startTime"))
    end, end_offset = instant_of(item.get("endTime"))
    path = item.get("timelinePath")
    for step in path if isinstance(path, list) else ():
        lat, lon = point(part_of(step, "point"))
        time, its = instant_of(part_of(step, "time"))
        minutes = number_of(part_of(step, "durationMinutesOffsetFromStartTime"))
        if time == UNKNOWN and begin != UNKNOWN and 0 <= minutes < 1e6:
            time, its = begin + int(minutes * 60e6), offset
        track.add(time, its, lat, lon, PATH)
    place = part_of(item, "visit", "topCandidate", "placeLocation")
    if place is not None:
        _stay(track, begin, end, offset, point(part_of(place, "latLng") or place))
    activity = item.get("activity")
    if isinstance(activity, dict):
        for side, time, its in (("start", begin, offset), ("end", end, end_offset)):
            where = activity.get(side)
            lat, lon = point(part_of(where, "latLng") or where)
            if not math.isnan(lat):
                track.add(time, its, lat, lon, ENDS)


def _timeline_object(track: Track, item: Any) -> None:
    visit, segment = part_of(item, "placeVisit"), part_of(item, "activitySegment")
    if isinstance(visit, dict):
        (begin, offset), (end, _) = _duration(visit)
        _stay(track, begin, end, offset, _e7_point(visit.get("location")))
    if isinstance(segment, dict):
        path = part_of(segment, "simplifiedRawPath", "points")
        for step in path if isinstance(path, list) else ():
            time, offset = _stamp(step, "timestamp")
            track.add(time, offset, e7(part_of(step, "latE7"), 90), e7(part_of(step, "lngE7"), 180), PATH)
        for side, (time, offset) in zip(("startLocation", "endLocation"), _duration(segment), strict=True):
            lat, lon = _e7_point(segment.get(side))
            if not math.isnan(lat):
                track.add(time, offset, lat, lon, ENDS)


def _duration(item: dict[str, Any]) -> tuple[tuple[int, int | None], tuple[int, int | None]]:
    return _stamp(item.get("duration"), "startTimestamp"), _stamp(item.get("duration"), "endTimestamp")


def _stamp(item: Any, key: str) -> tuple[int, int | None]:
    time, _ = instant_of(part_of(item, key) or part_of(item, f"{key}Ms"))
    return time, None


def _stay(track: Track, begin: int, end: int, offset: int | None, where: tuple[float, float]) -> None:
    if UNKNOWN in (begin, end) or not 0 <= end - begin <= LONGEST_VISIT or math.isnan(where[0]):
        track.skip("visits without a place or a plausible duration were not read")
        return
    for time in _moments(begin, end):
        track.add(time, offset, *where, VISIT)


def _moments(begin: int, end: int) -> Iterator[int]:
    yield from range(begin, end, STAY_EVERY)
    yield end


def _e7_point(location: Any) -> tuple[float, float]:
    return e7(part_of(location, "latitudeE7"), 90), e7(part_of(location, "longitudeE7"), 180)


def e7(value: Any, limit: float) -> float:
    """
    Return degrees from ten-millionths; some exports wrap negative ones around 2^32.

    Examples
    --------
    >>> e7(465190000, 90), e7(3572967296, 180)
    (46.519, -72.2)

    """
    number = number_of(value)
    if number > limit * 1e7:
        number -= 2.0**32
    return number / 1e7


def point(text: Any) -> tuple[float, float]:
    """Return latitude and longitude of "43.77°, 9.07°" or "geo:43.77,9.07"; NaN where it is neither."""
    match = POINT.fullmatch(text) if isinstance(text, str) else None
    lat, lon = (number_of(match[1]), number_of(match[2])) if match else (math.nan, math.nan)
    return (lat, lon) if not math.isnan(lat + lon) else (math.nan, math.nan)


# time of arrival, kind of message, payload
REC = re.compile(rb"^[^\t\r\n]*\t[^\t\r\n]*\t(?=\{)", re.MULTILINE)
OTHER_REC = re.compile(rb"^[^\t\r\n{\[]*\t[^\t\r\n]*\t[^{\r\n][^\r\n]*$", re.MULTILINE)
USERS = ("topic", "username", "tid")


def read_owntracks(source: Source, reading: Reading = AS_IT_COMES) -> Table:
    """
    Return the locations of a file.

    The user is the one of `topic` (owntracks/USER/DEVICE), else `username`, else `tid`, the first of them that every
    location has, else the file.
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
