"""
Read documents as tables: GPX, JSON of any shape, GeoJSON.

A document is parsed as a whole; what of it cannot be used is counted by reason.
"""

import json
from collections import Counter
from datetime import UTC
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
    rows = [
        {"utc": p.time and p.time.astimezone(UTC), "lat": p.latitude, "lon": p.longitude}
        for track in tracks for part in track.segments for p in part.points
    ]  # fmt: skip
    return table_of(rows, piece.name, "gpx", piece.user)


def open_json(piece: Piece, text: str) -> Table:
    """Return JSON as a table: lines or a list of objects, or GeoJSON."""
    counts: Counter[str] = Counter()
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        try:
            document = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise InvalidTraces(
                f"{piece.name} is damaged: no whole JSON document, and no lines of JSON.", code="E_FORMAT"
            ) from None
    if isinstance(document, dict):
        if "features" in document or document.get("type") == "Feature":
            return table_of(_geojson(document, counts), piece.name, "geojson", piece.user, counts)
        lists = [v for v in document.values() if isinstance(v, list) and v and isinstance(v[0], dict)]
        document = lists[0] if len(lists) == 1 else [document]
    objects = [item for item in document if isinstance(item, dict)] if isinstance(document, list) else []
    if not objects:
        raise InvalidTraces(
            f"{piece.name}: JSON of no known shape; known are GeoJSON, and lists or lines of objects with a time and a "
            "position.",
            code="E_FORMAT",
        )
    counts["entries that are no objects"] += len(document) - len(objects)
    return table_of(objects, piece.name, "json", piece.user, counts)


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
