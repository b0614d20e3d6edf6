"""Read the table of places that the ids of a source refer to: towers, venues, stations; or polygons of zones."""

from dataclasses import replace
from typing import Any

import numpy as np

from elsewhere.data.columns import Columns, find_named, find_positions
from elsewhere.data.formats import open_tables
from elsewhere.data.tables import POLYGON, Table
from elsewhere.data.times import TIMES
from elsewhere.data.values import as_text, numbers_of
from elsewhere.data.visits import Locations, Records
from elsewhere.errors import InvalidTraces


class PlaceTable:
    """A table of places: ids, positions or polygons, and kinds; which column has the ids, the records tell."""

    def __init__(self, source: Any) -> None:
        import shapely

        table = source if isinstance(source, Table) else open_tables(source, name="`locations`")[0]
        found = Columns(table, {})
        find_positions(found)
        names = list(found.kinds)
        if not found.has("lat"):
            shown = ", ".join(found.labels[n] for n in names)
            raise InvalidTraces(
                f"`locations`: no columns of degrees; its columns are {shown}; call two of them lat and lon.",
                code="E_COLUMNS",
            )
        batches = list(table.batches(names))
        self.columns = {n: [v for b in batches for v in as_text(b.column(n)).to_pylist()] for n in names}
        where = [found.roles[axis] for axis in ("lat", "lon")]
        self.lat, self.lon = (numbers_of([each or "" for each in self.columns[name]]) for name in where)
        called = find_named("kind", names)
        if called is None and not table.headed:  # words that repeat, of these the most different: Foursquare's venues
            words = [name for name in found.free("words") if found.repeats(name)]
            called = max(words, key=lambda name: len(set(self.columns[name])), default=None)
        self.kind: list[Any] | None = None if called is None else self.columns[called]
        self.ids = [name for name in found.free() if name != POLYGON]
        self.shapes = list(shapely.from_wkt(self.columns[POLYGON])) if POLYGON in self.columns else []

    def join(self, records: Records) -> Locations:
        """Return the map, joined by the column of ids that the records name most places of."""
        good = np.isfinite(self.lat) & np.isfinite(self.lon)
        named = set(records.places)
        shared = {name: len(named & set(self.columns[name])) for name in self.ids}
        best = max(shared, key=lambda name: shared[name], default=None)
        numbers = [str(i + (0 if "0" in named else 1)) for i in range(len(good))]
        ids: list[Any] = numbers
        if named and best is not None and shared[best]:
            ids = self.columns[best]
        elif not named <= set(numbers):
            raise InvalidTraces("`locations`: no column has the ids of the source's places.", code="E_MISMATCH")
        elif not named:
            whole = [n for n in self.ids if None not in self.columns[n] and len(set(self.columns[n])) == len(good)]
            ids = self.columns[whole[0]] if whole else numbers
        first = {name: i for i, name in reversed(list(enumerate(ids))) if good[i] and name is not None}
        if records.place is not None and records.lat is None:
            share = float(np.array([*(name in first for name in records.places), False])[records.place].mean())
            if share < 0.5:
                raise InvalidTraces(f"`locations` has the places of {share:.0%} of the records.", code="E_MISMATCH")
        keep = sorted(first.values())
        self.shapes = [self.shapes[i] for i in keep] if self.shapes else []
        kind = None if self.kind is None else [self.kind[i] for i in keep]
        return Locations(self.lat[keep], self.lon[keep], ids=[ids[i] for i in keep], kind=kind)


def is_table_of_places(table: Table) -> bool:
    """Tell whether a table has ids and positions of places, and no times."""
    found = Columns(table, {})
    find_positions(found)
    return found.has("lat") and bool(found.free()) and not found.free(*TIMES)


def find_zones(records: Records, shapes: list[Any], zones: Locations) -> Records:
    """Return the records with the polygon that each position lies in as their place."""
    import shapely

    if records.lat is None or records.lon is None:
        return records
    place = np.full(len(records), -1, dtype=np.int32)
    point, inside = shapely.STRtree(shapes).query(shapely.points(records.lon, records.lat), predicate="within")
    place[point] = inside
    return replace(records, place=place, places=zones.ids or (), lat=None, lon=None)
