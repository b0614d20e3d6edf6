"""
Read documents as tables: GPX, JSON of any shape, GeoJSON, Google's Timeline.

A document is parsed as a whole; what of it cannot be used is counted by reason.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from elsewhere.data.tables import Piece, Table, read_document, table_of
from elsewhere.errors import InvalidTraces

MOST_COLUMNS = 200
SAMPLE = 1 << 18  # bytes at the beginning that tell what a document is


def open_gpx(piece: Piece) -> Table:
    """Return the points of a GPX file, read by gpxpy."""
    content = read_document(piece)
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise InvalidTraces(f"{piece.name} defines entities, which are not read.", code="E_XML")
    if b"<gpx" not in content[:SAMPLE]:
        raise InvalidTraces(f"{piece.name} is XML or a web page, and no GPX.", code="E_FORMAT")
    try:
        import gpxpy

        tracks = gpxpy.parse(content.decode("utf-8-sig")).tracks
    except Exception:  # what the parser says may quote the file
        raise InvalidTraces(f"{piece.name} is damaged: no whole GPX document.", code="E_XML") from None
    points = [point for track in tracks for part in track.segments for point in part.points]
    whose = [track.name for track in tracks for part in track.segments for _ in part.points]
    spans = [track.get_time_bounds() for track in tracks]
    known = sorted((span.start_time, span.end_time) for span in spans if span.start_time and span.end_time)
    several = None not in whose and any(
        a[1] > b[0] for a, b in pairwise(known)
    )  # tracks of one time: of several people
    rows: dict[str, list[Any]] = {
        **({"user": whose} if several else {}),
        "utc": [p.time and p.time.astimezone(UTC) for p in points],
        "lat": [p.latitude for p in points],
        "lon": [p.longitude for p in points],
    }
    return _of_rows(rows, piece, "gpx", Counter())


def _of_rows(rows: Mapping[str, Sequence[Any]], piece: Piece, kind: str, counts: Counter[str]) -> Table:
    import pyarrow as pa

    utc = pa.timestamp("us", "UTC")
    try:
        arrays = {key: pa.array(values, utc if key in ("utc", "end_utc") else None) for key, values in rows.items()}
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        raise InvalidTraces(f"{piece.name} holds a value that is no number, time or text.", code="E_FORMAT") from None
    return table_of(pa.table(arrays), piece.name, kind, piece.user, counts)


def open_json(piece: Piece, text: str) -> Table:
    """Return JSON as a table: lines or a list of objects, GeoJSON, or Google's Timeline."""
    counts: Counter[str] = Counter()
    try:
        document: Any = json.loads(text)
        if isinstance(document, dict) and not any(isinstance(v, list | dict) for v in document.values()):
            document = [document]
    except (ValueError, RecursionError):
        document = _json_lines(text, piece, counts)
    if isinstance(document, dict):
        if {"locations", "semanticSegments", "timelineObjects", "rawSignals"} & document.keys():
            return _of_rows(_google(document, counts), piece, "google", counts)
        if "features" in document or document.get("type") == "Feature":
            return _of_rows(_geojson(document, counts), piece, "geojson", counts)
        lists = [v for v in document.values() if isinstance(v, list) and v and isinstance(v[0], dict)]
        document = lists[0] if len(lists) == 1 else [document]
    if isinstance(document, list) and any(
        isinstance(d, dict) and {"timelinePath", "visit"} & d.keys() for d in document
    ):
        return _of_rows(_google({"semanticSegments": document}, counts), piece, "google", counts)
    objects = [item for item in document if isinstance(item, dict)] if isinstance(document, list) else []
    counts["entries that are no objects"] += len(document) - len(objects) if objects else 0
    if not objects:
        raise InvalidTraces(
            f"{piece.name}: JSON of no known shape; known are lists or lines of objects with a time and a position, "
            "GeoJSON and Google's Timeline.",
            code="E_FORMAT",
        )
    return _of_rows(_columns_of(objects), piece, "json", counts)


def _json_lines(text: str, piece: Piece, counts: Counter[str]) -> list[Any]:
    """Return the objects of lines; a file of which no line is JSON is refused, other lines are counted."""
    objects, bad, lines = [], 0, text.splitlines()
    for i, line in enumerate(lines):
        if line.strip():
            try:
                objects.append(json.loads(line))
            except (ValueError, RecursionError):
                bad += 1
                if i == len(lines) - 1 and not text.endswith("\n") and objects:
                    raise InvalidTraces(f"{piece.name} is cut off within its last line.", code="E_TRUNCATED") from None
    if len(objects) < 9 * bad or not objects:
        raise InvalidTraces(f"{piece.name} is damaged: no whole JSON document, and no lines of JSON.", code="E_FORMAT")
    counts["lines that are no JSON"] += bad
    return objects


def _plain(record: Mapping[str, Any], depth: int = 4) -> Iterator[tuple[str, Any]]:
    """Yield keys and values, those of inner objects as outer.inner; a point of GeoJSON as text, lists as JSON."""
    for key, value in record.items():
        if isinstance(value, dict) and value.get("type") == "Point" and isinstance(value.get("coordinates"), list):
            yield key, f"POINT ({' '.join(str(part) for part in value['coordinates'][:2])})"
        elif isinstance(value, dict) and depth:
            yield from ((f"{key}.{inner}", each) for inner, each in _plain(value, depth - 1))
        elif value is None or isinstance(value, str):
            yield key, value
        else:
            yield key, json.dumps(value)


def _columns_of(objects: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return objects as columns of text; an object with a list of objects gives a row for each of these."""
    inner = next((k for k, v in objects[0].items() if isinstance(v, list) and v and isinstance(v[0], dict)), None)
    rows = []
    for item in objects:
        outer = dict(_plain({key: value for key, value in item.items() if key != inner}))
        steps = item.get(inner) if inner else None
        rows += [outer | dict(_plain(step)) for step in (steps if isinstance(steps, list) else [{}])
                 if isinstance(step, dict)]  # fmt: skip
    names = list(dict.fromkeys(name for row in rows for name in row))[:MOST_COLUMNS]
    return {name: [row.get(name) for row in rows] for name in names}


def _geojson(document: dict[str, Any], counts: Counter[str]) -> dict[str, list[Any]]:
    """Return a row per point: its properties, its time (a list of the feature, or the fourth coordinate), lat, lon."""
    rows = []
    features = document.get("features", [document])
    for feature in features if isinstance(features, list) else []:
        if not isinstance(feature, dict):
            continue
        inside: list[Any] = [feature.get("properties"), feature.get("geometry")]
        properties, geometry = (each if isinstance(each, dict) else {} for each in inside)
        points: Any = geometry.get("coordinates")
        kind = geometry.get("type")
        points = [points] if kind == "Point" else points
        lists = [d.get(k) for d in (geometry, properties) for k in ("datetimes", "times", "coordTimes", "timestamps")]
        times: Any = next((each for each in lists if isinstance(each, list)), None)
        good = isinstance(points, list) and points and all(isinstance(p, list) and len(p) > 1 for p in points)
        if not good or kind not in ("Point", "LineString", "MultiPoint"):
            counts["features without points"] += 1
            continue
        if times is None and all(len(p) > 3 for p in points):
            times = [p[3] for p in points]
        plain = dict(_plain({k: v for k, v in properties.items() if not isinstance(v, list | dict)}))
        if times is None and kind == "Point":
            times = [None]
        if not isinstance(times, list) or len(times) != len(points):
            counts["features without a time for each point"] += 1
            continue
        for point, time in zip(points, times, strict=True):
            moment = {} if time is None else {"datetime": time if isinstance(time, str) else json.dumps(time)}
            rows.append({**plain, **moment, "lat": json.dumps(point[1]), "lon": json.dumps(point[0])})
    return _columns_of(rows) if rows else {}


# Google's Timeline: what leads to times and positions, in exports old and new
WAYS = frozenset([
    "locations", "timelineObjects", "placeVisit", "location", "activitySegment", "startLocation", "endLocation",
    "simplifiedRawPath", "points", "semanticSegments", "timelinePath", "point", "visit", "topCandidate",
    "placeLocation", "latLng", "LatLng", "activity", "start", "end", "position",
])  # fmt: skip
BEGINS = ("timestamp", "timestampMs", "time", "startTime", "startTimestamp", "startTimestampMs")
FINISHES = ("endTime", "endTimestamp", "endTimestampMs")
E7 = (("latitudeE7", "longitudeE7"), ("latE7", "lngE7"))  # ten-millionths of a degree
GEO = re.compile(r"\s*(?:geo:)?\s*([+-]?\d{1,3}\.?\d*)\s*°?\s*,\s*([+-]?\d{1,3}\.?\d*)\s*°?\s*", re.ASCII)
At = tuple[Any, Any, tuple[float, float] | None]


def _google(document: dict[str, Any], counts: Counter[str]) -> dict[str, list[Any]]:
    """Return fixes, points of paths, visits and ends of journeys of Google's Timeline, old and new."""
    found = list(_walk(document, None, None))
    if not any(where for _, _, where in found):
        signals = document.get("rawSignals")
        found = [at for item in signals for at in _walk(item, None, None)] if isinstance(signals, list) else []
    rows = [(start, end, *where) for start, end, where in found if start is not None and where is not None]
    counts["entries without a time and a position"] += len(found) - len(rows)
    start, end, lat, lon = zip(*rows, strict=True) if rows else ((), (), (), ())
    return {"utc": list(start), "end_utc": list(end), "lat": list(lat), "lon": list(lon)}


def _walk(item: Any, start: Any, end: Any) -> Iterator[At]:
    """Yield the times and positions within an item, those of the items around it where it has no time of its own."""
    if isinstance(item, str):
        match = GEO.fullmatch(item)
        yield start, end, _on_globe(float(match[1]), float(match[2])) if match else None
    elif isinstance(item, list):
        for each in item:
            yield from _walk(each, start, end)
    elif isinstance(item, dict):
        times = item | (item["duration"] if isinstance(item.get("duration"), dict) else {})
        own = next((time for key in BEGINS if (time := _instant(times.get(key))) is not None), None)
        last = next((time for key in FINISHES if (time := _instant(times.get(key))) is not None), None)
        minutes = item.get("durationMinutesOffsetFromStartTime")
        if own is None and start is not None and isinstance(minutes, str | int) and str(minutes).isdigit():
            own = _instant(1000 * (start.timestamp() + 60 * int(minutes)))
        start, end = (start, end) if own is None else (own, last or own)
        pair = next(([item[key] for key in keys] for keys in E7 if item.keys() >= set(keys)), None)
        if pair is not None:
            yield start, end, _from_e7(pair)
        for key in WAYS & item.keys():
            if key in ("start", "startLocation"):  # of a journey: it is there at that moment alone
                yield from _walk(item[key], start, start)
            elif key in ("end", "endLocation"):
                yield from _walk(item[key], end, end)
            elif isinstance(item[key], dict | list) or key in ("point", "placeLocation", "latLng", "LatLng"):
                yield from _walk(item[key], start, end)


def _instant(value: Any) -> Any:
    """Return the UTC time of an ISO text or of milliseconds since 1970; None for anything else."""
    try:
        if isinstance(value, str) and not value.isdigit():
            time = datetime.fromisoformat(value)
            return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
        return datetime.fromtimestamp(float(value) / 1000, UTC) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError, OSError, TypeError):
        return None


def _on_globe(lat: float, lon: float) -> tuple[float, float] | None:
    return (lat, lon) if -90 <= lat <= 90 and -180 <= lon <= 180 else None


def _from_e7(pair: list[Any]) -> tuple[float, float] | None:
    """Return degrees from ten-millionths of a degree; some exports add 2^32 to negative ones."""
    if not all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in pair):
        return None
    return _on_globe(*((v - 2**32 if v > limit else v) / 1e7 for v, limit in zip(pair, (9e8, 18e8), strict=True)))
