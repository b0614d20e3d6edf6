"""
Places that the user draws: polygons of a GeoJSON file (RFC 7946), one place per feature.

A ring that steps over the antimeridian is unrolled, and one that goes round a pole is closed over it, so that regions
of the far north or of the Pacific need no special drawing.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from elsewhere.errors import InvalidParameter, InvalidTraces
from elsewhere.traces.model import Floats, Ints, Locations, in_space, on_globe

LARGEST_FILE = 1 << 28
MOST_REGIONS = 100_000


@dataclass(frozen=True, eq=False)
class Regions:
    """Places with an outline: `rings[r]` are the closed rings (n, 2) of place r, as lon, lat, holes among them."""

    locations: Locations
    rings: tuple[tuple[Floats, ...], ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.rings)

    def __repr__(self) -> str:
        return f"Regions({len(self)} places)"

    def place_of(self, lat: Floats, lon: Floats) -> Ints:
        """The region of each point, of several the first in the file; -1 where there is none."""
        place = np.full(len(lat), -1, dtype=np.int64)
        for r, rings in enumerate(self.rings):
            every = np.concatenate(rings)
            west, south = every.min(axis=0)
            east, north = every.max(axis=0)
            # a whole turn brings the point into the range of an unrolled ring
            turned = west + (lon - west) % 360
            near = np.flatnonzero((place < 0) & (lat >= south) & (lat <= north) & (turned <= east))
            if len(near):
                inside = np.zeros(len(near), dtype=bool)
                for ring in rings:
                    inside ^= _inside(turned[near], lat[near], ring)
                place[near[inside]] = r
        return place


def read_regions(source: Any) -> Regions:
    """
    The polygons of a GeoJSON file, or of the object it holds.

    Examples
    --------
    >>> square = [[6.0, 46.0], [7.0, 46.0], [7.0, 47.0], [6.0, 47.0], [6.0, 46.0]]
    >>> regions = read_regions({"type": "Polygon", "coordinates": [square]})
    >>> regions.place_of(np.array([46.5, 48.0]), np.array([6.5, 6.5])).tolist()
    [0, -1]

    """
    if isinstance(source, Regions):
        return source
    name = Path(source).name if isinstance(source, (str, PathLike)) else "`regions`"
    found = _loaded(source, name) if isinstance(source, (str, PathLike)) else source
    outlines, names = [], []
    for number, geometry in enumerate(_geometries(found, name)):
        rings = _rings(geometry, f"{name}, feature {number}")
        if rings:
            outlines.append(rings)
            names.append(str(number))
    if not outlines:
        raise InvalidTraces(f"{name} holds no polygon.", code="E_EMPTY")
    if len(outlines) > MOST_REGIONS:
        raise InvalidTraces(f"{name} holds {len(outlines)} regions, more than {MOST_REGIONS}.", code="E_TOO_LARGE")
    middle = np.array([_middle(rings) for rings in outlines])
    return Regions(Locations(middle[:, 0], middle[:, 1], names=names), tuple(outlines))


def _loaded(source: Any, name: str) -> Any:
    try:
        path = Path(source)
        if not path.is_file() or path.stat().st_size > LARGEST_FILE:
            raise InvalidTraces(f"{name} cannot be opened as a file of regions.", code="E_OPEN")
        return json.loads(path.read_bytes().decode("utf-8-sig"), parse_constant=_no_constant)
    except OSError:
        raise InvalidTraces(f"{name} cannot be opened as a file of regions.", code="E_OPEN") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidTraces):
            raise
        raise InvalidTraces(f"{name} is not GeoJSON.", code="E_JSON") from None


def _no_constant(_: str) -> float:
    raise ValueError("NaN and infinity are no numbers in JSON")


def _geometries(found: Any, name: str) -> Iterator[dict[str, Any]]:
    kind = found.get("type") if isinstance(found, dict) else None
    if kind == "FeatureCollection" and isinstance(found.get("features"), list):
        for feature in found["features"]:
            geometry = feature.get("geometry") if isinstance(feature, dict) else None
            if isinstance(geometry, dict):
                yield geometry
    elif kind == "Feature" and isinstance(found.get("geometry"), dict):
        yield found["geometry"]
    elif kind in ("Polygon", "MultiPolygon"):
        yield found
    elif isinstance(found, dict):
        raise InvalidTraces(f"{name} is not a GeoJSON collection of features.", code="E_JSON")
    else:
        raise InvalidParameter("`regions` must be a GeoJSON file of polygons, or the object it holds.")


def _rings(geometry: dict[str, Any], where: str) -> tuple[Floats, ...]:
    """The rings of a Polygon or MultiPolygon; nothing of points and lines."""
    kind = geometry.get("type")
    if kind not in ("Polygon", "MultiPolygon"):
        return ()
    drawn: Any = geometry.get("coordinates")
    polygons = [drawn] if kind == "Polygon" else drawn
    rings: list[Floats] = []
    try:
        for polygon in polygons or []:
            outer = None
            for ring in polygon:
                points = np.array([[float(x), float(y)] for x, y, *_ in ring])
                if len(points) < 4 or not np.all(np.isfinite(points)):
                    raise ValueError
                if np.any(np.abs(points[:, 1]) > 90) or np.any(np.abs(points[:, 0]) > 360):
                    raise InvalidTraces(f"{where}: a corner outside the globe.", code="E_OUTSIDE")
                points = _unrolled(points)
                if outer is None:
                    outer = points
                # a hole lies on the same turn as the ring around it
                points = points + [360 * np.round((outer[:, 0].mean() - points[:, 0].mean()) / 360), 0]
                rings.append(points)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidTraces):
            raise
        raise InvalidTraces(f"{where}: a ring is not four or more corners [lon, lat].", code="E_NUMBER") from None
    # the parts of a MultiPolygon that was cut at the antimeridian come together again
    first = rings[0][:, 0].mean() if rings else 0.0
    return tuple(ring + [360 * np.round((first - ring[:, 0].mean()) / 360), 0] for ring in rings)


def _unrolled(points: Floats) -> Floats:
    """A closed ring whose longitudes do not jump; one that goes round a pole is closed over the pole."""
    if not np.array_equal(points[0], points[-1]):
        points = np.vstack([points, points[:1]])
    step = np.diff(points[:, 0])
    turn = np.where(np.abs(step) > 180, -360 * np.sign(step), 0.0)
    points = np.column_stack([points[:, 0] + np.insert(np.cumsum(turn), 0, 0.0), points[:, 1]])
    if abs(points[-1, 0] - points[0, 0]) > 180:
        pole = 90.0 if points[:, 1].mean() > 0 else -90.0
        points = np.vstack([points, [points[-1, 0], pole], [points[0, 0], pole], points[:1]])
    return points


def _inside(x: Floats, y: Floats, ring: Floats) -> Any:
    """Even-odd rule; a ray to the east crosses an edge that has one end above it and one not."""
    inside = np.zeros(len(x), dtype=bool)
    for (x0, y0), (x1, y1) in pairwise(ring):
        if y0 != y1:
            crosses = (y0 > y) != (y1 > y)
            inside ^= crosses & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
    return inside


def _middle(rings: tuple[Floats, ...]) -> tuple[float, float]:
    """The centroid of the first ring's area, on the plane of its degrees; the mean of its corners if it has none."""
    x, y = rings[0][:-1].T
    x_next, y_next = rings[0][1:].T
    cross = x * y_next - x_next * y
    area = cross.sum() / 2
    if abs(area) > 1e-12:
        lon = float(((x + x_next) * cross).sum() / (6 * area))
        lat = float(((y + y_next) * cross).sum() / (6 * area))
    else:
        lon, lat = float(x.mean()), float(y.mean())
    north, east = on_globe(in_space(np.array([lat]), np.array([lon])))
    return float(north[0]), float(east[0])
