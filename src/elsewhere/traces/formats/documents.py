"""
Read documents, which are in memory as a whole: JSON records, GeoJSON, exports of phones, GPX, spreadsheets.

A document that is damaged or cut off is refused with code and line. JSON is parsed one entry at a time. Records are an
array of objects, or one object per line, whose keys are the names of columns; an object within an object gives columns
such as position.lat. GeoJSON has points with a user and a time among their properties, and lines with a time per
vertex: in `datetimes` (OGC Moving Features), `times`, `coordTimes` or `coordinateProperties.times`; Moving Features
also have them in `temporalGeometry`, trips of kepler.gl as fourth coordinate, since 1970. Altitudes are ignored (B57).

Google: Records.json (`locations` of `latitudeE7`, `timestamp` or `timestampMs`), the monthly files of Semantic Location
History (`timelineObjects`), and the phone's own export of Timeline: Android (`semanticSegments`, `rawSignals`, points
"43.77°, 9.07°") and iOS (a bare array, points "geo:43.77,9.07"). GPX 1.0 and 1.1: the points of tracks; a document type
is refused, so no entity is ever expanded (B57). Of a spreadsheet (`.xlsx`, `.xls`, `.ods`) the first sheet that holds a
table is read, as the text it would be saved as.
"""

import csv
import io
import json
import math
import re
import zipfile
from array import array
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.parsers import expat

import numpy as np

from elsewhere.errors import InvalidTraces, MissingExtra
from elsewhere.traces.columns import A_NUMBER, find_roles, missing_roles
from elsewhere.traces.formats.streams import drop_last_line, read_text
from elsewhere.traces.sources import (
    FileOptions,
    Source,
    Table,
    as_utf8,
    join_tables,
)

BLANK = re.compile(r"[ \t\r\n]*")

# half a string, number or word at the end of a text
HALF = re.compile(r'"(?:[^"\\]|\\.)*\\?|,|\\u?[0-9A-Fa-f]{0,4}|[\w+.-]{0,30}', re.DOTALL | re.ASCII)

# one value in the first line, and another in the second
LINES = re.compile(rb"\s*\{[^\n]*\}[ \t\r]*\n\s*\{")

STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def read_items(source: Source, options: FileOptions, names: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """
    Yield (name of the array, entry) of a JSON document, in order.

    An array at the top has the name "", and so have several values one after the other (one per line). Of an object at
    the top, the entries of the arrays called `names` come one by one, and every other value as a whole. `options` may
    allow a document that is cut off: then the entries before the cut are read.
    """
    content = as_utf8(source, options.encoding)
    if options.cut and LINES.match(content):
        content, options = drop_last_line(content), replace(options, cut=False)
    text = content.decode()
    at = _skip_blanks(text, 0)
    try:
        if text[at : at + 1] == "[":
            yield from (("", item) for item in _read_array(text, at, _Stop()))
            return
        if text[at : at + 1] == "{" and names and not _is_lines(text, at):
            yield from _read_members(text, at, names)
            return
        while at < len(text):
            item, at = _DECODER.raw_decode(text, at)
            yield "", item
            at = _skip_blanks(text, at)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidTraces):
            raise
        if options.cut and _is_cut(text, error):
            return
        raise _damage_error(source.name, text, error) from None


def _skip_blanks(text: str, at: int) -> int:
    """Return the position of the next character that is no blank."""
    match = BLANK.match(text, at)
    return match.end() if match else at


def _is_lines(text: str, at: int) -> bool:
    """Tell whether the first line is a complete object, and another one follows."""
    end = text.find("\n", at)
    if end < 0:
        return False
    try:
        _, stop = _DECODER.raw_decode(text[at:end].rstrip())
    except (ValueError, RecursionError):
        return False
    return stop > 0 and text[_skip_blanks(text, end) :][:1] == "{"


def _read_members(text: str, at: int, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of the object at `at`; of arrays called `names`, each entry with the name of its array."""
    at = _skip_blanks(text, at + 1)
    while text[at : at + 1] != "}":
        key = STRING.match(text, at)
        if key is None:
            raise json.JSONDecodeError("", text, at)
        name = json.loads(key[0])
        at = _skip_blanks(text, key.end())
        if text[at : at + 1] != ":":
            raise json.JSONDecodeError("", text, at)
        at = _skip_blanks(text, at + 1)
        if name in names and text[at : at + 1] == "[":
            stop = _Stop()
            yield from ((name, item) for item in _read_array(text, at, stop))
            at = stop.at
        else:
            value, at = _DECODER.raw_decode(text, at)
            yield name, value
        at = _skip_blanks(text, at)
        if text[at : at + 1] == ",":
            at = _skip_blanks(text, at + 1)
        elif text[at : at + 1] != "}":
            raise json.JSONDecodeError("", text, at)


class _Stop:
    """The position after an array that was read."""

    at = 0


def _read_array(text: str, at: int, stop: _Stop) -> Iterator[Any]:
    """Yield the entries of the array at `at`, then set `stop.at` to the position after it."""
    at = _skip_blanks(text, at + 1)
    while text[at : at + 1] != "]":
        item, at = _DECODER.raw_decode(text, at)
        yield item
        at = _skip_blanks(text, at)
        if text[at : at + 1] == ",":
            at = _skip_blanks(text, at + 1)
        elif text[at : at + 1] != "]":
            raise json.JSONDecodeError("", text, at)
    stop.at = at + 1


def _number(text: str) -> int | str:
    """Return a whole number, as text if it is very long: it may be an id, and conversion would take very long."""
    return int(text) if len(text) <= 25 else text


_DECODER = json.JSONDecoder(parse_int=_number)


def _damage_error(name: str, text: str, error: Exception) -> InvalidTraces:
    """Return the error for a document that is cut off, if its end is missing, else for one that is damaged."""
    whole = text.rstrip()
    if getattr(error, "pos", 0) >= len(whole) or not whole.endswith(("}", "]")):
        return InvalidTraces(f"{name} is cut off: its last bracket is missing.", code="E_TRUNCATED")
    line = getattr(error, "lineno", None)
    where = name if line is None else f"{name}, line {line}"
    return InvalidTraces(f"{where}: damaged JSON.", code="E_JSON")


def _is_cut(text: str, error: Exception) -> bool:
    """Tell whether only half a value follows the error; damage in the middle of a document is no cut."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return HALF.fullmatch(text[error.pos :].rstrip()) is not None


def number_of(value: Any) -> float:
    """Return a JSON number, or a text that holds a number, as float; NaN for anything else."""
    if isinstance(value, str) and not A_NUMBER.fullmatch(value):
        return math.nan  # float() accepts "1_000" and the digits of any script (B22)
    try:
        return float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def part_of(value: Any, *keys: str) -> Any:
    """Return the value under a path of keys, None where there is none."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


MOST_COLUMNS = 200

DEEPEST = 4  # levels of objects within objects that are read


class Columns:
    """Columns of text that grow by records with any keys; a missing value is empty."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = 0
        self.values: dict[str, list[str]] = {}

    def add(self, record: dict[str, Any], number: int = 1) -> None:
        """Add one record `number` times; only plain values are kept."""
        for key, value in _flatten(record):
            plain = text_of(value)
            if plain is not None:
                column = self.values.get(key)
                if column is None:
                    if len(self.values) >= MOST_COLUMNS:
                        raise InvalidTraces(f"{self.name} has more than {MOST_COLUMNS} columns.", code="E_TOO_LARGE")
                    column = self.values[key] = []
                column.extend([""] * (self.rows - len(column)))
                column.extend([plain] * number)
        self.rows += number

    def arrays(self) -> dict[str, Any]:
        """Return all columns as Arrow arrays of one length."""
        import pyarrow as pa

        for column in self.values.values():
            column.extend([""] * (self.rows - len(column)))
        try:
            return {key: pa.array(column, pa.string()) for key, column in self.values.items()}
        except UnicodeEncodeError:
            raise InvalidTraces(f"{self.name}: half a character in a text.", code="E_ENCODING") from None


def _flatten(record: dict[str, Any], depth: int = DEEPEST) -> Iterator[tuple[str, Any]]:
    """Yield keys and values, keys of inner objects as outer.inner, and a point of GeoJSON as text, longitude first."""
    point = record.get("coordinates")
    for key, value in record.items():
        if key == "coordinates" and record.get("type") == "Point" and isinstance(point, list) and len(point) >= 2:
            yield key, f"POINT ({text_of(point[0])} {text_of(point[1])})"
        elif isinstance(value, dict) and depth:
            yield from ((f"{key}.{inner}", each) for inner, each in _flatten(value, depth - 1))
        else:
            yield key, value


def text_of(value: Any) -> str | None:
    """Return a plain JSON value as text, so that no id loses a digit; None for any other value."""
    if isinstance(value, bool) or value is None or isinstance(value, (dict, list)):
        return None
    return value if isinstance(value, str) else repr(value)


NO_SHAPE = (
    "JSON of no shape that is known; known are a list of objects with a user, a time and a position, GeoJSON, Google's "
    "Timeline."
)


def _find_track(record: dict[str, Any]) -> str | None:
    """Return the key of the list of positions in the record of a person; None if it has no such list."""
    for key, value in record.items():
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            inside = find_roles([name for name, _ in _flatten(value[0])], None)
            if {"lat", "lon"} <= inside.keys() and not missing_roles({"user": key, **inside}):
                return key
    return None


def _is_position(value: Any) -> bool:
    """Tell whether a value is an object with a latitude."""
    return isinstance(value, dict) and "lat" in find_roles([name for name, _ in _flatten(value)], None)


def read_records(source: Source, options: FileOptions) -> Table:
    """Return the objects of an array, or of lines, as rows; the positions of an object that holds a list of them."""
    columns = Columns(source.name)
    for name, value in read_items(source, options, ("data", "records")):
        objects = value if isinstance(value, list) and name not in ("", "data", "records") else [value]
        for item in objects:
            if not isinstance(item, dict):
                if name in ("", "data", "records"):
                    raise InvalidTraces(f"{source.name}: {NO_SHAPE}", code="E_FORMAT")
                continue
            inner = _find_track(item)
            # a position of the whole record is left out where it has a list of positions
            outer = {} if inner is None else {k: v for k, v in item.items() if k != inner and not _is_position(v)}
            for each in [item] if inner is None else item[inner]:
                columns.add(item if inner is None else {**outer, inner: each})
    arrays = columns.arrays()
    if not arrays:
        raise InvalidTraces(f"{source.name}: {NO_SHAPE}", code="E_FORMAT")
    return Table(source.name, arrays, columns.rows, format="json", names=tuple(arrays))


TIMES = (("datetimes",), ("times",), ("coordTimes",), ("coordinateProperties", "times"), ("timestamps",))

LINE_TYPES = ("LineString", "MultiPoint", "MovingPoint")


def read_geojson(source: Source, options: FileOptions) -> Table:
    """Return a row per point with its time and the plain properties of its feature; without a user, the file is one."""
    import pyarrow as pa

    columns, skipped = Columns(source.name), 0
    loose: dict[str, Any] = {}
    for name, item in read_items(source, options, ("features",)):
        if name in ("features", "") and isinstance(item, dict):
            for feature in _list_features(item):
                skipped += not _add_feature(columns, feature)
        else:
            loose[name] = item
    if loose.get("type") in ("Feature", "MovingFeature", *LINE_TYPES, "Point") and not columns.rows:
        skipped += not _add_feature(columns, loose)
    arrays = columns.arrays()
    if columns.rows and "user" not in find_roles(tuple(arrays), None):
        arrays["user"] = pa.array([source.user] * columns.rows, pa.string())
    notes = (f"{skipped} features without a point and a time were not read",) if skipped else ()
    return Table(source.name, arrays, columns.rows, format="geojson", names=tuple(arrays), notes=notes)


def _list_features(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the features of a collection, or the feature itself."""
    members = item.get("features")
    if item.get("type") == "FeatureCollection" and isinstance(members, list):
        yield from (member for member in members if isinstance(member, dict))
    else:
        yield item


def _add_feature(columns: Columns, feature: dict[str, Any]) -> bool:
    """Add the points of a feature with their times, and tell whether it has any."""
    properties = feature.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    geometry = feature.get("temporalGeometry", feature.get("geometry", feature))
    kind = part_of(geometry, "type")
    if kind == "Point":
        at = _read_position(part_of(geometry, "coordinates"))
        if at is None:
            return False
        fourth = _fourth_coordinates([part_of(geometry, "coordinates")])
        instant = {"datetime": fourth[0]} if fourth else {}
        times = properties.get("datetimes")
        if isinstance(times, list) and len(times) == 1:
            instant = {"datetime": times[0]}
        columns.add({**properties, **instant, **at})
        return True
    lines = part_of(geometry, "coordinates")
    times = _find_times(geometry, properties)
    if kind == "MultiLineString" and isinstance(lines, list):
        lines = [point for line in lines if isinstance(line, list) for point in line]
        if times and isinstance(times[0], list):
            times = [time for part in times if isinstance(part, list) for time in part]
    elif kind not in LINE_TYPES:
        return False
    times = _fourth_coordinates(lines) if times is None else times
    if not isinstance(lines, list) or not isinstance(times, list) or len(lines) != len(times) or not lines:
        return False
    plain = {key: value for key, value in properties.items() if not isinstance(value, (list, dict))}
    for point, time in zip(lines, times, strict=True):
        at = _read_position(point)
        columns.add({**plain, "datetime": time, **(at or {"lat": "", "lon": ""})})
    return True


def _fourth_coordinates(points: Any) -> list[Any] | None:
    """Return the fourth coordinates of points if all are seconds or milliseconds since 1970, else None."""
    if not isinstance(points, list) or not all(isinstance(point, list) and len(point) > 3 for point in points):
        return None
    times = [point[3] for point in points]
    since_1970 = all(isinstance(time, (int, float)) and not isinstance(time, bool) and time > 1e8 for time in times)
    return times if since_1970 else None


def _find_times(geometry: Any, properties: dict[str, Any]) -> Any:
    """Return the list of times of a geometry, or of its properties; None if they have none."""
    for holder in (geometry, properties):
        for path in TIMES:
            times = part_of(holder, *path)
            if isinstance(times, list):
                return times
    return None


def _read_position(coordinates: Any) -> dict[str, float] | None:
    """Return latitude and longitude of a point of GeoJSON; None if it is none."""
    if not isinstance(coordinates, list) or len(coordinates) < 2:
        return None
    return {"lat": number_of(coordinates[1]), "lon": number_of(coordinates[0])}


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

UNKNOWN = -(1 << 63)  # a time that cannot be read, as NaT is stored

MICROSECOND = timedelta(microseconds=1)


def instant_of(value: Any) -> tuple[int, int | None]:
    """
    Return (microseconds since 1970, offset from UTC in seconds) of an ISO time or of milliseconds since 1970.

    A time without an offset is read as UTC, with None as offset.
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
        """
        Add one position, at `time` in microseconds since 1970 in UTC, or UNKNOWN; NaN is a latitude or longitude that
        cannot be read.

        `offset` is the one that the time was written with, in seconds; None where the file stores times in UTC, without
        any. Of several positions at one instant, the one with the lowest `rank` counts.
        """
        self.time.append(time)
        self.lat.append(lat)
        self.lon.append(lon)
        self.rank.append(rank)
        if len(self.offsets) < 3 and time != UNKNOWN:
            self.offsets.add(offset)

    def skip(self, what: str) -> None:
        """Count an entry that was not read, by a text that says why."""
        self.skipped[what] = self.skipped.get(what, 0) + 1

    def table(self, source: Source, kind: str) -> Table:
        """Return columns user (the file's), time, lat and lon."""
        import pyarrow as pa

        time = np.frombuffer(self.time, dtype=np.int64) if len(self.time) else np.empty(0, dtype=np.int64)
        lat, lon = (np.array(side, dtype=np.float64) for side in (self.lat, self.lon))
        order = np.lexsort((np.arange(len(time)), np.array(self.rank, dtype=np.int8), time))
        # several lists of a document may have the same instant: the most exact of them counts
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

# of several entries at one instant, that of the lowest rank counts
RAW, PATH, VISIT, ENDS = range(4)


def read_google(source: Source, options: FileOptions) -> Table:
    """Return the positions of one person: raw fixes, points of paths, visits, and the two ends of a journey."""
    track = Track()
    for name, item in read_items(source, options, ARRAYS):
        if name == "locations":
            _add_record(track, item)
        elif name == "rawSignals":
            _add_signal(track, part_of(item, "position"))
        elif name == "timelineObjects":
            _add_timeline_object(track, item)
        elif name in ("semanticSegments", "") and isinstance(item, dict):
            _add_segment(track, item)
    return track.table(source, "google")


def _add_record(track: Track, item: Any) -> None:
    lat, lon = parse_e7(part_of(item, "latitudeE7"), 90), parse_e7(part_of(item, "longitudeE7"), 180)
    if math.isnan(lat) or math.isnan(lon):
        track.skip("records without a position were not read")
        return
    stamp = item.get("timestamp", item.get("timestampMs"))
    # "Z" is how the time is stored, not the zone of the place
    track.add(instant_of(stamp)[0], None, lat, lon, RAW)


def _add_signal(track: Track, position: Any) -> None:
    if isinstance(position, dict):
        lat, lon = parse_point(position.get("LatLng", position.get("latLng")))
        if math.isnan(lat):
            track.skip("records without a position were not read")
        else:
            track.add(*instant_of(position.get("timestamp")), lat, lon, RAW)


def _add_segment(track: Track, item: dict[str, Any]) -> None:
    begin, offset = instant_of(item.get("startTime"))
    end, end_offset = instant_of(item.get("endTime"))
    path = item.get("timelinePath")
    for step in path if isinstance(path, list) else ():
        lat, lon = parse_point(part_of(step, "point"))
        time, its = instant_of(part_of(step, "time"))
        minutes = number_of(part_of(step, "durationMinutesOffsetFromStartTime"))
        if time == UNKNOWN and begin != UNKNOWN and 0 <= minutes < 1e6:
            time, its = begin + int(minutes * 60e6), offset
        track.add(time, its, lat, lon, PATH)
    place = part_of(item, "visit", "topCandidate", "placeLocation")
    if place is not None:
        _add_stay(track, begin, end, offset, parse_point(part_of(place, "latLng") or place))
    activity = item.get("activity")
    if isinstance(activity, dict):
        for side, time, its in (("start", begin, offset), ("end", end, end_offset)):
            where = activity.get(side)
            lat, lon = parse_point(part_of(where, "latLng") or where)
            if not math.isnan(lat):
                track.add(time, its, lat, lon, ENDS)


def _add_timeline_object(track: Track, item: Any) -> None:
    visit, segment = part_of(item, "placeVisit"), part_of(item, "activitySegment")
    if isinstance(visit, dict):
        (begin, offset), (end, _) = _read_duration(visit)
        _add_stay(track, begin, end, offset, _parse_e7_point(visit.get("location")))
    if isinstance(segment, dict):
        path = part_of(segment, "simplifiedRawPath", "points")
        for step in path if isinstance(path, list) else ():
            time, offset = _read_stamp(step, "timestamp")
            track.add(time, offset, parse_e7(part_of(step, "latE7"), 90), parse_e7(part_of(step, "lngE7"), 180), PATH)
        for side, (time, offset) in zip(("startLocation", "endLocation"), _read_duration(segment), strict=True):
            lat, lon = _parse_e7_point(segment.get(side))
            if not math.isnan(lat):
                track.add(time, offset, lat, lon, ENDS)


def _read_duration(item: dict[str, Any]) -> tuple[tuple[int, int | None], tuple[int, int | None]]:
    return _read_stamp(item.get("duration"), "startTimestamp"), _read_stamp(item.get("duration"), "endTimestamp")


def _read_stamp(item: Any, key: str) -> tuple[int, int | None]:
    time, _ = instant_of(part_of(item, key) or part_of(item, f"{key}Ms"))
    return time, None


def _add_stay(track: Track, begin: int, end: int, offset: int | None, where: tuple[float, float]) -> None:
    if UNKNOWN in (begin, end) or not 0 <= end - begin <= LONGEST_VISIT or math.isnan(where[0]):
        track.skip("visits without a place or a plausible duration were not read")
        return
    for time in (*range(begin, end, STAY_EVERY), end):
        track.add(time, offset, *where, VISIT)


def _parse_e7_point(location: Any) -> tuple[float, float]:
    return parse_e7(part_of(location, "latitudeE7"), 90), parse_e7(part_of(location, "longitudeE7"), 180)


def parse_e7(value: Any, limit: float) -> float:
    """
    Return degrees from ten-millionths of a degree; some exports add 2^32 to negative ones.

    Examples
    --------
    >>> parse_e7(465190000, 90), parse_e7(3572967296, 180)
    (46.519, -72.2)

    """
    number = number_of(value)
    if number > limit * 1e7:
        number -= 2.0**32
    return number / 1e7


def parse_point(text: Any) -> tuple[float, float]:
    """Return latitude and longitude of "43.77°, 9.07°" or "geo:43.77,9.07"; NaN where it is neither."""
    match = POINT.fullmatch(text) if isinstance(text, str) else None
    lat, lon = (number_of(match[1]), number_of(match[2])) if match else (math.nan, math.nan)
    return (lat, lon) if not math.isnan(lat + lon) else (math.nan, math.nan)


CHUNK = 1 << 20

DEEPEST_XML = 100


class _Refused(Exception):
    pass


class _Tracks:
    """Handlers of the XML parser, which collect positions, their times and the names of their tracks."""

    def __init__(self) -> None:
        self.columns: dict[str, list[str]] = {"lat": [], "lon": [], "time": [], "name": []}
        self.path: list[str] = []
        self.text: list[str] | None = None
        self.point: dict[str, str] | None = None
        self.name = ""
        self.ours = False
        self.others = 0
        self.depth = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        self.depth += 1
        if self.depth > DEEPEST_XML:
            raise _Refused
        if self.depth == 1 and tag != "gpx":
            raise _Refused
        if tag == "gpx":
            self.ours = attributes.get("creator") == "elsewhere"
        elif tag == "trk":
            self.name = ""
        elif tag == "trkpt":
            self.point = {"lat": attributes.get("lat", ""), "lon": attributes.get("lon", ""), "time": ""}
        elif tag in ("wpt", "rtept"):
            self.others += 1
        self.path.append(tag)
        if tag in ("time", "name"):
            self.text = []

    def end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2]
        self.depth -= 1
        self.path.pop()
        within = self.path[-1] if self.path else ""
        if tag == "time" and within == "trkpt" and self.point is not None:
            self.point["time"] = "".join(self.text or [])
        elif tag == "name" and within == "trk":
            self.name = "".join(self.text or [])
        elif tag == "trkpt" and self.point is not None:
            for key, value in (*self.point.items(), ("name", self.name)):
                self.columns[key].append(value)
            self.point = None
        if tag in ("time", "name"):
            self.text = None

    def characters(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)


def _refuse(*_: Any) -> None:
    raise _Refused


def read_gpx(source: Source, options: FileOptions) -> Table:
    """
    Return the points of all tracks of a file. The user is the file; in files of this package, the name of the track.

    Column `name` is the name of the track, for files that hold several people.
    """
    import pyarrow as pa

    content, tracks = source.content, _Tracks()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = tracks.start
    parser.EndElementHandler = tracks.end
    parser.CharacterDataHandler = tracks.characters
    parser.buffer_text = True
    try:
        for at in range(0, len(content), CHUNK):
            parser.Parse(content[at : at + CHUNK], at + CHUNK >= len(content))
    except _Refused:
        raise InvalidTraces(
            f"{source.name}, line {parser.CurrentLineNumber}: a document type, or no GPX.", code="E_XML"
        ) from None
    except expat.ExpatError as error:
        cut = error.code == expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS] or not content.rstrip(
            b"\0 \t\r\n"
        ).endswith(b">")
        code, what = ("E_TRUNCATED", "cut off") if cut else ("E_XML", "damaged XML")
        if not (cut and options.cut and b">" not in content[parser.ErrorByteIndex :]):
            raise InvalidTraces(f"{source.name}, line {error.lineno}: {what}.", code=code) from None
    except (UnicodeError, ValueError, LookupError):
        raise InvalidTraces(f"{source.name}: its text is not in the encoding it names.", code="E_ENCODING") from None
    n = len(tracks.columns["lat"])
    columns: dict[str, Any] = {key: pa.array(values, pa.string()) for key, values in tracks.columns.items()}
    columns["user"] = columns["name"] if tracks.ours else pa.array([source.user] * n, pa.string())
    notes = (f"{tracks.others} way points and route points were not read",) if tracks.others else ()
    return Table(source.name, columns, n, format="gpx", names=tuple(columns), notes=notes)


MOST_UNPACKED = 2 << 30  # of all members of the archive that a workbook is (B10)

MOST_TIMES = 200  # unpacked size of a workbook divided by its packed size, at most


def read_workbook(source: Source, options: FileOptions) -> Table:
    """Return the rows of the first sheet with at least two rows, with dates and times in ISO 8601."""
    try:
        import python_calamine as calamine
    except ImportError:
        raise MissingExtra(
            f'{source.name} is a spreadsheet: install "elsewhere[excel]" to read it, or save it as CSV.'
        ) from None
    _check_unpacked_size(source)
    try:
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(source.content))
        rows: list[list[Any]] = []
        read = 0
        for read in range(len(book.sheet_names)):
            rows = book.get_sheet_by_index(read).to_python()
            if sum(any(cell != "" for cell in row) for row in rows[:99]) >= 2:
                break
    except (calamine.CalamineError, calamine.PasswordError, OSError, ValueError, OverflowError) as error:
        locked = ", or locked by a password" if isinstance(error, calamine.PasswordError) else ""
        raise InvalidTraces(f"{source.name} is a damaged spreadsheet{locked}.", code="E_EXCEL") from None
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([_format_cell(cell) for cell in row] for row in rows)
    content = text.getvalue().encode()
    plain = replace(source, raw=content, size=len(content), path=None, packed=False, cut=False, encoding="")
    table = join_tables(list(read_text(plain, replace(options, encoding="utf-8", sample=False))), source.name)
    others = len(book.sheet_names) - 1
    rest = "the other one was not" if others == 1 else f"the {others} others were not"
    notes = (f"sheet {read + 1} was read, {rest}",) if others else ()
    return replace(table, format="excel", notes=(*table.notes, *notes))


def _check_unpacked_size(source: Source) -> None:
    """Refuse a workbook that is damaged or unpacks to too many bytes."""
    content = source.content
    if not content.startswith(b"PK"):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        raise InvalidTraces(f"{source.name} is a damaged spreadsheet.", code="E_EXCEL") from None
    if size > MOST_UNPACKED or size > max(1 << 26, MOST_TIMES * len(content)):
        raise InvalidTraces(f"{source.name} unpacks to {size / 2**30:.1f} GiB.", code="E_TOO_LARGE")


def _format_cell(cell: Any) -> str:
    """Return a cell as the text of a CSV file; whole numbers, which a sheet stores as decimals, without a point."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ")
    if hasattr(cell, "isoformat"):
        return str(cell.isoformat())  # a day, or a clock time
    if isinstance(cell, timedelta):
        seconds = round(cell.total_seconds())
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return str(cell)
