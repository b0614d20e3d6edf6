"""
GeoJSON: points with a user and a time among their properties, lines with a time per vertex.

Times of a line are in `datetimes` (OGC Moving Features), `times`, `coordTimes` or `coordinateProperties.times`; Moving
Features also have them in `temporalGeometry`, trips of kepler.gl as fourth coordinate, since 1970. Altitudes are
ignored (B57).
"""

from collections.abc import Iterator
from typing import Any

from elsewhere.traces.formats.items import items, number_of, part_of
from elsewhere.traces.formats.records import Columns
from elsewhere.traces.sources import Source
from elsewhere.traces.tables import AS_IT_COMES, Reading, Table

TIMES = (("datetimes",), ("times",), ("coordTimes",), ("coordinateProperties", "times"), ("timestamps",))
LINES = ("LineString", "MultiPoint", "MovingPoint")


def read_geojson(source: Source, reading: Reading = AS_IT_COMES) -> Table:
    """One row per point, with its time and the plain properties of its feature; without a user it is the file's."""
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
    if loose.get("type") in ("Feature", "MovingFeature", *LINES, "Point") and not columns.rows:
        kind = _add(columns, loose)
        skipped += not kind
        kinds |= {kind} - {""}
    arrays = columns.arrays()
    from elsewhere.traces.columns import roles_of

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
    elif kind not in LINES:
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
    """The fourth coordinates of points if all have one: seconds or milliseconds since 1970."""
    if not isinstance(points, list) or not all(isinstance(point, list) and len(point) > 3 for point in points):
        return None
    times = [point[3] for point in points]
    since_1970 = all(isinstance(time, (int, float)) and not isinstance(time, bool) and time > 1e8 for time in times)
    return times if since_1970 else None


def _times(geometry: Any, properties: dict[str, Any]) -> Any:
    for holder in (geometry, properties):
        for path in TIMES:
            found = part_of(holder, *path)
            if isinstance(found, list):
                return found
    return None


def _position(coordinates: Any) -> dict[str, float] | None:
    if not isinstance(coordinates, list) or len(coordinates) < 2:
        return None
    return {"lat": number_of(coordinates[1]), "lon": number_of(coordinates[0])}
