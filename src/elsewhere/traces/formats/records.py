"""
JSON as a table: an array of objects, or one object per line, whose keys are the names of columns.

An object within an object gives columns such as position.lat.
"""

from collections.abc import Iterator
from typing import Any

from elsewhere.errors import InvalidTraces
from elsewhere.traces.formats.items import items
from elsewhere.traces.sources import Source
from elsewhere.traces.tables import AS_IT_COMES, Reading, Table

MOST_COLUMNS = 200
DEEPEST = 4  # objects within objects that are looked into


class Columns:
    """Columns of text that grow by records with whatever keys; a missing value is empty."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = 0
        self.values: dict[str, list[str]] = {}

    def add(self, record: dict[str, Any], number: int = 1) -> None:
        """One record, `number` times; only plain values count."""
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
        """All of them as Arrow arrays of one length."""
        import pyarrow as pa

        for column in self.values.values():
            column.extend([""] * (self.rows - len(column)))
        try:
            return {key: pa.array(column, pa.string()) for key, column in self.values.items()}
        except UnicodeEncodeError:
            raise InvalidTraces(f"{self.name}: half a character in a text.", code="E_ENCODING") from None


def _flat(record: dict[str, Any], depth: int = DEEPEST) -> Iterator[tuple[str, Any]]:
    """Keys and values, those of inner objects as outer.inner; a point of GeoJSON as text, longitude first."""
    point = record.get("coordinates")
    for key, value in record.items():
        if key == "coordinates" and record.get("type") == "Point" and isinstance(point, list) and len(point) >= 2:
            yield key, f"POINT ({text_of(point[0])} {text_of(point[1])})"
        elif isinstance(value, dict) and depth:
            yield from ((f"{key}.{inner}", each) for inner, each in _flat(value, depth - 1))
        else:
            yield key, value


def text_of(value: Any) -> str | None:
    """A plain JSON value as text, so that no id loses a digit; None for what is no plain value."""
    if isinstance(value, bool) or value is None or isinstance(value, (dict, list)):
        return None
    return value if isinstance(value, str) else repr(value)


def read_records(source: Source, reading: Reading = AS_IT_COMES) -> Table:
    """The objects of an array, or of lines, as rows."""
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
