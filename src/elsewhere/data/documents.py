"""
Read documents as tables: GPX, JSON of any shape, GeoJSON, Google's Timeline.

A document is parsed as a whole; what of it cannot be used is counted by reason.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from elsewhere.data.tables import POLYGON, Piece, Table, read_document, table_of
from elsewhere.errors import InvalidTraces

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
    spans = [track.get_time_bounds() for track in tracks]
    known = sorted((span.start_time, span.end_time) for span in spans if span.start_time and span.end_time)
    # tracks of one time are those of several people
    several = all(track.name for track in tracks) and any(a[1] > b[0] for a, b in pairwise(known))
    rows = [
        {**({"user": track.name} if several else {}), "utc": p.time and p.time.astimezone(UTC),
         "lat": p.latitude, "lon": p.longitude}
        for track in tracks for part in track.segments for p in part.points
    ]  # fmt: skip
    return table_of(rows, piece.name, "gpx", piece.user)


def open_json(piece: Piece, text: str) -> Table:
    """Return JSON as a table: lines or a list of objects, GeoJSON, or Google's Timeline."""
    counts: Counter[str] = Counter()
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        document = _json_lines(text, piece, counts)
    if isinstance(document, list) and any(isinstance(d, dict) and not PHONE.isdisjoint(d) for d in document):
        document = {"semanticSegments": document}
    if isinstance(document, dict):
        if not GOOGLE.isdisjoint(document):
            return table_of(_google(document, counts), piece.name, "google", piece.user, counts)
        if "features" in document or document.get("type") == "Feature":
            return table_of(_geojson(document, counts), piece.name, "geojson", piece.user, counts)
        lists = [v for v in document.values() if isinstance(v, list) and v and isinstance(v[0], dict)]
        document = lists[0] if len(lists) == 1 else [document]
    objects = [item for item in document if isinstance(item, dict)] if isinstance(document, list) else []
    if not objects:
        raise InvalidTraces(
            f"{piece.name}: JSON of no known shape; known are lists or lines of objects with a time and a position, "
            "GeoJSON and Google's Timeline.",
            code="E_FORMAT",
        )
    counts["entries that are no objects"] += len(document) - len(objects)
    return table_of(_steps(objects), piece.name, "json", piece.user, counts)


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


def _steps(objects: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the objects; of those with a list of objects, one for each of these."""
    inner = next((k for k, v in objects[0].items() if isinstance(v, list) and v and isinstance(v[0], dict)), None)
    if inner is None:
        return list(objects)
    lists = [(item, item.get(inner)) for item in objects]
    outer = [({k: v for k, v in item.items() if k != inner}, steps) for item, steps in lists if isinstance(steps, list)]
    return [item | step for item, steps in outer for step in steps if isinstance(step, dict)]


def _geojson(document: dict[str, Any], counts: Counter[str]) -> list[dict[str, Any]]:
    """Return a row per point: its properties, its time (a list of the feature, or the fourth coordinate), lat, lon."""
    rows = []
    features = document.get("features", [document])
    for feature in features if isinstance(features, list) else []:
        own = feature if isinstance(feature, dict) else {}
        inside: list[Any] = [own.get("properties"), own.get("geometry")]
        properties, geometry = (each if isinstance(each, dict) else {} for each in inside)
        plain = {k: v for k, v in properties.items() if not isinstance(v, list | dict)}
        zone = _zone(geometry) if geometry.get("type") in ("Polygon", "MultiPolygon") else None
        if zone is not None:
            rows.append(plain | zone)
            continue
        points: Any = geometry.get("coordinates")
        points = [points] if geometry.get("type") == "Point" else points
        good = isinstance(points, list) and points and all(isinstance(p, list) and len(p) > 1 for p in points)
        if not good or geometry.get("type") not in ("Point", "LineString", "MultiPoint"):
            counts["features without points"] += 1
            continue
        lists = [d.get(k) for d in (geometry, properties) for k in ("datetimes", "times", "coordTimes", "timestamps")]
        times: Any = next((each for each in lists if isinstance(each, list)), [p[3] for p in points if len(p) > 3])
        if geometry["type"] == "Point" and not times:  # its properties may have it
            rows.append({**plain, "lat": points[0][1], "lon": points[0][0]})
        elif len(times) != len(points):
            counts["features without a time for each point"] += 1
        else:
            pairs = zip(points, times, strict=True)
            rows += [{**plain, "datetime": time, "lat": point[1], "lon": point[0]} for point, time in pairs]
    return rows


def _zone(geometry: dict[str, Any]) -> dict[str, Any] | None:
    """Return a polygon as well-known text with a point within it, None if it is damaged."""
    import shapely

    try:
        polygon = shapely.make_valid(shapely.from_geojson(json.dumps(geometry)))
        middle = polygon.representative_point()
        return {"lat": middle.y, "lon": middle.x, POLYGON: polygon.wkt}
    except (shapely.errors.ShapelyError, ValueError, TypeError):
        return None


# Google's Timeline: what leads to times and positions, in exports old and new
GOOGLE = frozenset(["locations", "semanticSegments", "timelineObjects", "rawSignals"])
PHONE = frozenset(["timelinePath", "visit"])  # of a list of segments, as phones export it
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


def _google(document: dict[str, Any], counts: Counter[str]) -> list[dict[str, Any]]:
    """Return fixes, points of paths, visits and ends of journeys of Google's Timeline, old and new."""
    found = list(_walk(document, None, None))
    if not any(where for _, _, where in found):
        signals = document.get("rawSignals")
        found = [at for item in signals for at in _walk(item, None, None)] if isinstance(signals, list) else []
    rows = [
        {"utc": start, "end_utc": end, "lat": where[0], "lon": where[1]}
        for start, end, where in found
        if start is not None and where is not None
    ]
    counts["entries without a time and a position"] += len(found) - len(rows)
    return rows


def _walk(item: Any, start: Any, end: Any) -> Iterator[At]:
    """Yield the times and positions within an item, those of the items around it where it has no time of its own."""
    if isinstance(item, str):
        match = GEO.fullmatch(item)
        yield start, end, (float(match[1]), float(match[2])) if match else None
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
        for keys in E7:
            if item.keys() >= {*keys}:
                pair = [item[key] for key in keys]
                good = all(isinstance(v, int) and abs(v) <= 1 << 32 for v in pair)
                # some exports add 2^32 to negative ones
                lat, lon = ((v - 2**32 if v > 18e8 else v) / 1e7 if good else 0.0 for v in pair)
                yield start, end, (lat, lon) if good else None
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
