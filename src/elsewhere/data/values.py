"""Read the values of Arrow columns: as text, labels, numbers, points, and lines of points."""

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from elsewhere.data.visits import Codes, Floats, Ints

NUMBER = re.compile(r"\s*[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?\s*", re.ASCII)
PAIR = r"[\[(]?\s*(?P<a>[+-]?\d{1,3}\.\d+)\s*[,; ]\s*(?P<b>[+-]?\d{1,3}\.\d+)\s*[\])]?"
WKT = r"\s*(?:SRID=4326;)?\s*(?:POINT|Point|point)\s*Z?\s*\(\s*(?P<a>[+-]?\d+\.?\d*)\s+(?P<b>[+-]?\d+\.?\d*)[^)]*\)"


def as_text(column: Any) -> Any:
    """Return an Arrow column as text; whole numbers without a point, times as ISO 8601, lists as JSON."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    kind = column.type
    if pa.types.is_dictionary(kind):
        return as_text(column.cast(kind.value_type))
    if pa.types.is_string(kind):
        return column
    if pa.types.is_floating(kind):
        column = pc.if_else(pc.is_finite(column), column, pa.scalar(None, kind))
        whole = pc.all(pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), 2.0**53))).as_py()
        return (column.cast(pa.int64()) if whole else column).cast(pa.string())
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8()).cast(pa.string())
    if pa.types.is_timestamp(kind):
        text = pc.strftime(column.cast(pa.timestamp("s", kind.tz), safe=False), format="%Y-%m-%dT%H:%M:%S")
        return pc.binary_join_element_wise(text, "Z", "") if kind.tz == "UTC" else text
    if pa.types.is_nested(kind):
        return pa.array([None if v is None else json.dumps(v, default=str) for v in column.to_pylist()], pa.string())
    try:
        return column.cast(pa.string())
    except (pa.ArrowException, UnicodeDecodeError):
        return pa.array([None] * len(column), pa.string())


def sample_text(column: Any) -> list[str]:
    """Return the values of a sample that are there, as text; typed times as ISO 8601."""
    return [text.strip() for text in as_text(column).to_pylist() if text is not None and text.strip()]


def numbers_of(values: Sequence[str]) -> Floats:
    """Return texts as numbers, NaN where one is none."""
    return np.array([float(v.replace(",", ".")) if NUMBER.fullmatch(v) else np.nan for v in values])


class Labels:
    """Numbers of labels, in the order in which they come, over all batches of a table."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}

    def codes(self, column: Any) -> Codes:
        """Return the number of each label, -1 where there is none."""
        encoded = as_text(column).dictionary_encode()
        numbers = [self.number.setdefault(each, len(self.number)) for each in encoded.dictionary.to_pylist()]
        index = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.asarray(np.array([*numbers, -1], dtype=np.int32)[index])

    @property
    def names(self) -> tuple[str, ...]:
        """Return all labels, by number."""
        return tuple(self.number)


def read_numbers(column: Any) -> tuple[Floats, int]:
    """Return a column as numbers, NaN where there is none, and how many values are no numbers (B22)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bad = 0
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        text = as_text(column)
        try:
            column = text.cast(pa.float64())
        except pa.ArrowInvalid:
            text = pc.utf8_trim_whitespace(text)
            plain = pc.replace_substring_regex(pc.replace_substring(text, ",", "."), r"^\+", "")
            good = pc.match_substring_regex(plain, r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
            column = pc.if_else(good, plain, pa.scalar(None, pa.string())).cast(pa.float64())
            bad = column.null_count - text.null_count
    values = np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.where(np.isinf(values), np.nan, values), int(bad)


def read_points(column: Any) -> tuple[Floats, Floats]:
    """Return the first and the second number of points: pairs, or well-known text."""
    import pyarrow.compute as pc

    text = as_text(column)
    pair, wkt = (pc.extract_regex(text, pattern) for pattern in (rf"^\s*{PAIR}\s*$", f"^{WKT}"))
    sides = [pc.coalesce(pc.struct_field(wkt, side), pc.struct_field(pair, side)) for side in "ab"]
    a, b = (read_numbers(side)[0] for side in sides)
    return a, b


def read_lines(column: Any) -> tuple[Floats, Floats, Ints]:
    """Return the first and the second number of all points of all lines, and the number of points of each line."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = as_text(column).fill_null("")
    numbers = pc.replace_substring_regex(text, r"[^0-9eE.+-]+", " ")
    numbers = pc.replace_substring_regex(numbers, r"(?:^| )[eE]+(?: |$)|^\s+|\s+$", "")
    parts = pc.utf8_split_whitespace(numbers)
    size = np.asarray(pc.list_value_length(parts).to_numpy(zero_copy_only=False))
    flat = pc.list_flatten(parts)
    keep = np.repeat(size % 2 == 0, size)
    flat = pc.if_else(pc.equal(flat, ""), pa.scalar(None, pa.string()), flat).filter(pa.array(keep))
    values = read_numbers(flat)[0]
    size = np.where((size % 2 == 0), size // 2, 0)
    empty = np.asarray(pc.equal(numbers, "").to_numpy(zero_copy_only=False))
    full = np.repeat(~empty, size)
    return values[0::2][full], values[1::2][full], np.where(empty, 0, size).astype(np.int64)
