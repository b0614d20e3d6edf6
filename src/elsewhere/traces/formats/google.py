"""
Google's location history, in all the shapes it has had.

Records.json (`locations` of `latitudeE7`, `timestamp` or `timestampMs`), the monthly files of Semantic Location
History (`timelineObjects`), and the phone's own export of Timeline: Android (`semanticSegments`, `rawSignals`, points
"43.77°, 9.07°") and iOS (a bare array, points "geo:43.77,9.07").
"""

import math
import re
from collections.abc import Iterator
from typing import Any

from elsewhere.traces.formats.items import items, number_of, part_of
from elsewhere.traces.formats.track import UNKNOWN, Track, instant_of
from elsewhere.traces.sources import Source
from elsewhere.traces.tables import AS_IT_COMES, Reading, Table

ARRAYS = ("locations", "semanticSegments", "rawSignals", "timelineObjects")
POINT = re.compile(r"\s*(?:geo:)?\s*([+-]?[0-9.]{1,20})\s*°?\s*,\s*([+-]?[0-9.]{1,20})\s*°?\s*", re.ASCII)
STAY_EVERY = 600_000_000  # µs between the fixes that stand for a visit: it lasted from its start to its end
LONGEST_VISIT = 31 * 86_400_000_000
# of several entries at one instant the finer one counts
RAW, PATH, VISIT, ENDS = range(4)


def read_google(source: Source, reading: Reading = AS_IT_COMES) -> Table:
    """The positions of one person: raw fixes, points of paths, visits, and the two ends of a journey."""
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
    Degrees from ten-millionths; some exports wrap negative ones around 2^32.

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
    """Latitude and longitude of "43.77°, 9.07°" or "geo:43.77,9.07"; NaN where it is neither."""
    found = POINT.fullmatch(text) if isinstance(text, str) else None
    lat, lon = (number_of(found[1]), number_of(found[2])) if found else (math.nan, math.nan)
    return (lat, lon) if not math.isnan(lat + lon) else (math.nan, math.nan)
