"""
Read JSON: entry by entry, as a table of records, and as GeoJSON.

The text itself stands in memory, one parsed entry at a time beside it; a document that is damaged or cut is refused by
code and line. Records are an array of objects, or one object per line, whose keys are the names of columns; an object
within an object gives columns such as position.lat. GeoJSON has points with a user and a time among their properties,
and lines with a time per vertex: in `datetimes` (OGC Moving Features), `times`, `coordTimes` or
`coordinateProperties.times`; Moving Features also have them in `temporalGeometry`, trips of kepler.gl as fourth
coordinate, since 1970. Altitudes are ignored (B57).
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from elsewhere.errors import InvalidTraces
from elsewhere.traces.columns import A_NUMBER, roles_of
from elsewhere.traces.formats.text import without_last_line
from elsewhere.traces.sources import Source, as_utf8
from elsewhere.traces.tables import AS_IT_COMES, Reading, Table

BLANK = re.compile(r"[ \t\r\n]*")
# half a string, number or word at the end of a text
HALF = re.compile(r'"(?:[^"\\]|\\.)*\\?|,|\\u?[0-9A-Fa-f]{0,4}|[\w+.-]{0,30}', re.DOTALL | re.ASCII)
# a value of its own in the first line, and another in the second
LINES = re.compile(rb"\s*\{[^\n]*\}[ \t\r]*\n\s*\{")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def items(source: Source, reading: Reading, names: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """
    Yield (name of the array, entry) of a JSON document, in order.

    An array at the top has the name "". Of an object at the top, the entries of the arrays called `names` come one by
    one and every other value as a whole. Several values one after the other (one per line) are entries of "". Of a
    document that is cut off, `reading` may allow the entries before the cut.
    """
    content = as_utf8(source.content, source.name, reading.encoding)
    if reading.cut and LINES.match(content):
        content, reading = without_last_line(content), replace(reading, cut=False)
    text = content.decode()
    at = _skip(text, 0)
    try:
        if text[at : at + 1] == "[":
            yield from (("", item) for item in _entries(text, at)[0])
            return
        if text[at : at + 1] == "{" and names and not _is_lines(text, at):
            yield from _members(text, at, names)
            return
        while at < len(text):
            item, at = _DECODER.raw_decode(text, at)
            yield "", item
            at = _skip(text, at)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidTraces):
            raise
        if reading.cut and _stops(text, error):
            return
        raise _damaged(source.name, text, error) from None


def _skip(text: str, at: int) -> int:
    match = BLANK.match(text, at)
    return match.end() if match else at


def _is_lines(text: str, at: int) -> bool:
    """Tell whether the first line is an object of its own, and another one follows."""
    end = text.find("\n", at)
    if end < 0:
        return False
    try:
        _, stop = _DECODER.raw_decode(text[at:end].rstrip())
    except (ValueError, RecursionError):
        return False
    return stop > 0 and text[_skip(text, end) :][:1] == "{"


def _members(text: str, at: int, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        key = STRING.match(text, at)
        if key is None:
            raise json.JSONDecodeError("", text, at)
        name = json.loads(key[0])
        at = _skip(text, key.end())
        if text[at : at + 1] != ":":
            raise json.JSONDecodeError("", text, at)
        at = _skip(text, at + 1)
        if name in names and text[at : at + 1] == "[":
            stop = _Stop()
            yield from ((name, item) for item in _walk(text, at, stop))
            at = stop.at
        else:
            value, at = _DECODER.raw_decode(text, at)
            yield name, value
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "}":
            raise json.JSONDecodeError("", text, at)


class _Stop:
    """Where a walk over an array ended."""

    at = 0


def _entries(text: str, at: int) -> tuple[Iterator[Any], _Stop]:
    stop = _Stop()
    return _walk(text, at, stop), stop


def _walk(text: str, at: int, stop: _Stop) -> Iterator[Any]:
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        item, at = _DECODER.raw_decode(text, at)
        yield item
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "]":
            raise json.JSONDecodeError("", text, at)
    stop.at = at + 1


def _number(text: str) -> int | str:
    # a number of a million digits is no coordinate and no time, and takes for ever to read; it may be an id
    return int(text) if len(text) <= 25 else text


_DECODER = json.JSONDecoder(parse_int=_number)


def _damaged(name: str, text: str, error: Exception) -> InvalidTraces:
    # a document that stops too early is found out at its end
    whole = text.rstrip()
    if getattr(error, "pos", 0) >= len(whole) or not whole.endswith(("}", "]")):
        return InvalidTraces(f"{name} is cut off: its last bracket is missing.", code="E_TRUNCATED")
    line = getattr(error, "lineno", None)
    where = name if line is None else f"{name}, line {line}"
    return InvalidTraces(f"{where}: damaged JSON.", code="E_JSON")


def _stops(text: str, error: Exception) -> bool:
    """Tell whether nothing but half a value follows: damage in the middle of a document is no cut."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return HALF.fullmatch(text[error.pos :].rstrip()) is not None


def number_of(value: Any) -> float:
    """Return a JSON number, or text that is one, as float; NaN for anything else."""
    if isinstance(value, str) and not A_NUMBER.fullmatch(value):
        return math.nan  # float() would take "1_000" and the digits of any script (B22)
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
DEEPEST = 4  # objects within objects that are looked into


class Columns:
    """Columns of text that grow by records with whatever keys; a missing value is empty."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = 0
        self.values: dict[str, list[str]] = {}

    def add(self, record: dict[str, Any], number: int = 1) -> None:
        """Add one record, `number` times; only plain values count."""
        for key, value in _flat(record):
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
        """Return all of them as Arrow arrays of one length."""
        import pyarrow as pa

        for column in self.values.values():
            column.extend([""] * (self.rows - len(column)))
        try:
            return {key: pa.array(column, pa.string()) for key, column in self.values.items()}
        except UnicodeEncodeError:
            raise InvalidTraces(f"{self.name}: half a character in a text.", code="E_ENCODING") from None


def _flat(record: dict[str, Any], depth: int = DEEPEST) -> Iterator[tuple[str, Any]]:
    """Return keys and values, those of inner objects as outer.inner; a point of GeoJSON as text, longitude first."""
    point = record.get("coordinates")
    for key, value in record.items():
        if key == "coordinates" and record.get("type") == "Point" and isinstance(point, list) and len(point) >= 2:
            yield key, f"POINT ({text_of(point[0])} {text_of(point[1])})"
        elif isinstance(value, dict) and depth:
            yield from ((f"{key}.{inner}", each) for inner, each in _flat(value, depth - 1))
        else:
            yield key, value


def text_of(value: Any) -> str | None:
    """Return a plain JSON value as text, so that no id loses a digit; None for what is no plain value."""
    if isinstance(value, bool) or value is None or isinstance(value, (dict, list)):
        return None
    return value if isinstance(value, str) else repr(value)


def read_records(source: Source, reading: Reading = AS_IT_COMES) -> Table:
    """Return the objects of an array, or of lines, as rows."""
    columns = Columns(source.name)
    for name, item in items(source, reading, ("data", "records")):
        if not isinstance(item, dict):
            if name in ("", "data", "records"):
                raise InvalidTraces(f"{source.name} is JSON of no shape that is known.", code="E_FORMAT")
            continue
        columns.add(item)
    arrays = columns.arrays()
    if not arrays:
        raise InvalidTraces(f"{source.name} is JSON of no shape that is known.", code="E_FORMAT")
    return Table(source.name, arrays, columns.rows, format="json", names=tuple(arrays))


TIMES = (("datetimes",), ("times",), ("coordTimes",), ("coordinateProperties", "times"), ("timestamps",))
LINE_TYPES = ("LineString", "MultiPoint", "MovingPoint")


def read_geojson(source: Source, reading: Reading = AS_IT_COMES) -> Table:
    """Return a row per point, with its time and the plain properties of its feature; the user may be the file's."""
    import pyarrow as pa

    columns, skipped, kinds = Columns(source.name), 0, set()
    loose: dict[str, Any] = {}
    for name, item in items(source, reading, ("features",)):
        if name in ("features", "") and isinstance(item, dict):
            for feature in _features(item):
                kind = _add(columns, feature)
                skipped += not kind
                kinds |= {kind} - {""}
        else:
            loose[name] = item
    if loose.get("type") in ("Feature", "MovingFeature", *LINE_TYPES, "Point") and not columns.rows:
        kind = _add(columns, loose)
        skipped += not kind
        kinds |= {kind} - {""}
    arrays = columns.arrays()
    if columns.rows and "user" not in roles_of(tuple(arrays), None):
        arrays["user"] = pa.array([source.user] * columns.rows, pa.string())
    notes = (f"{skipped} features without a point and a time were not read",) if skipped else ()
    form = "kepler" if kinds == {"trip"} else "geojson"
    return Table(source.name, arrays, columns.rows, format=form, names=tuple(arrays), notes=notes)


def _features(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    members = item.get("features")
    if item.get("type") == "FeatureCollection" and isinstance(members, list):
        yield from (member for member in members if isinstance(member, dict))
    else:
        yield item


def _add(columns: Columns, feature: dict[str, Any]) -> str:
    """Add the points of a feature with their times; whether it was a "trip" of kepler.gl, "other", or had none ("")."""
    properties = feature.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    geometry = feature.get("temporalGeometry", feature.get("geometry", feature))
    kind = part_of(geometry, "type")
    if kind == "Point":
        at = _position(part_of(geometry, "coordinates"))
        if at is None:
            return ""
        fourth = _fourth([part_of(geometry, "coordinates")])
        instant = {"datetime": fourth[0]} if fourth else {}
        if _one_time(properties):
            instant = {"datetime": properties["datetimes"][0]}
        columns.add({**properties, **instant, **at})
        return "trip" if fourth else "other"
    lines = part_of(geometry, "coordinates")
    times = _times(geometry, properties)
    if kind == "MultiLineString" and isinstance(lines, list):
        lines = [point for line in lines if isinstance(line, list) for point in line]
        if times and isinstance(times[0], list):
            times = [time for part in times if isinstance(part, list) for time in part]
    elif kind not in LINE_TYPES:
        return ""
    trip = times is None
    times = _fourth(lines) if trip else times
    if not isinstance(lines, list) or not isinstance(times, list) or len(lines) != len(times) or not lines:
        return ""
    plain = {key: value for key, value in properties.items() if not isinstance(value, (list, dict))}
    for point, time in zip(lines, times, strict=True):
        at = _position(point)
        columns.add({**plain, "datetime": time, **(at or {"lat": "", "lon": ""})})
    return "trip" if trip else "other"


def _one_time(properties: dict[str, Any]) -> bool:
    times = properties.get("datetimes")
    return isinstance(times, list) and len(times) == 1


def _fourth(points: Any) -> list[Any] | None:
    """Return the fourth coordinates of points if all have one: seconds or milliseconds since 1970."""
    if not isinstance(points, list) or not all(isinstance(point, list) and len(point) > 3 for point in points):
        return None
    times = [point[3] for point in points]
    since_1970 = all(isinstance(time, (int, float)) and not isinstance(time, bool) and time > 1e8 for time in times)
    return times if since_1970 else None


def _times(geometry: Any, properties: dict[str, Any]) -> Any:
    for holder in (geometry, properties):
        for path in TIMES:
            times = part_of(holder, *path)
            if isinstance(times, list):
                return times
    return None


def _position(coordinates: Any) -> dict[str, float] | None:
    if not isinstance(coordinates, list) or len(coordinates) < 2:
        return None
    return {"lat": number_of(coordinates[1]), "lon": number_of(coordinates[0])}
