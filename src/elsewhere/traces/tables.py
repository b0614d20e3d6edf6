"""
Files and frames as named columns, before anyone asks what the columns mean.

Bytes are decompressed, decoded and split here. Every field of a text file stays text, so that no id loses a digit
and no type is guessed by chunk (B45-B48). Messages name file, line and code, never content.
"""

import csv
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elsewhere.errors import InvalidParameter, InvalidTraces, require_choice

CONTAINERS = ("auto", "csv", "parquet", "sglt")
MAX_BYTES = 4 << 30  # of one file, decompressed: a small archive must not fill the memory (B10)
CHUNK = 1 << 24
DELIMITERS = (",", ";", "\t", "|")
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
FIRST_LINE = re.compile(rb"[^\r\n]*[^\s][^\r\n]*")
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)


@dataclass(frozen=True, eq=False)
class Table:
    """
    Named columns of equal length, and where they came from.

    `headed` is False for a text file whose first line holds only numbers: its columns are called "0", "1", ...
    """

    name: str
    columns: Mapping[str, Any] = field(repr=False)
    rows: int
    headed: bool = True
    text: bytes | None = field(default=None, repr=False)
    delimiter: str = ","

    def column(self, name: str) -> Any:
        """The column as one Arrow array; what Arrow cannot type becomes text."""
        import pyarrow as pa

        column = self.columns[name]
        if not isinstance(column, (pa.Array, pa.ChunkedArray)):
            column = _array(column)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.large_string())
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column

    def at(self, row: int) -> str:
        """Where data row `row` (from 0) stands: the line of a text file, else the row, both from 1."""
        if self.text is None:
            return f"{self.name}, row {row + 1}"
        for number, (line, _) in enumerate(_records(self.text, self.delimiter)):
            if number == row + self.headed:
                return f"{self.name}, line {line}"
        return self.name

    def refuse(self, what: str, code: str, row: int | None = None) -> InvalidTraces:
        """An error that names the file, the line of `row`, and what is wrong there."""
        return InvalidTraces(f"{self.name if row is None else self.at(row)}: {what}", code=code)


def open_table(source: Any, *, container: str = "auto", encoding: str = "utf-8") -> Table:
    """
    The columns of a file (CSV and kin, Parquet, gzipped or not) or of a frame (pandas, polars, Arrow, dict of arrays).

    Examples
    --------
    >>> open_table({"uid": ["a", "b"], "slot": [0, 1]}).rows
    2

    """
    require_choice("format", container, CONTAINERS)
    if not isinstance(source, (str, os.PathLike)):
        return _frame(source)
    path = Path(source)
    name = path.name if path.name.isprintable() else ascii(path.name)
    content = _decompressed(_content(path, name), name)
    if content[:4] == b"PAR1" and container in ("auto", "parquet"):
        return _parquet(content, name)
    if container == "parquet":
        raise InvalidTraces(f"{name} is not a Parquet file.", code="E_PARQUET")
    return _text_table(_utf8(content, name, encoding), name)


def _content(path: Path, name: str) -> bytes:
    try:
        status = path.stat()
        # a folder, a pipe or a device would block or never end
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES else None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable file name"
        raise InvalidTraces(f"{name} cannot be opened: {reason}.", code="E_OPEN") from None
    if not stat.S_ISREG(status.st_mode):
        raise InvalidTraces(f"{name} is not a regular file.", code="E_OPEN")
    if content is None:
        raise InvalidTraces(f"{name} is larger than {MAX_BYTES >> 30} GiB.", code="E_TOO_LARGE")
    return content


def _decompressed(content: bytes, name: str) -> bytes:
    if content[:2] == b"PK":
        raise InvalidTraces(f"{name} is a zip archive; unpack it first.", code="E_COMPRESSION")
    if content[:2] != b"\x1f\x8b":
        return content
    parts, size = [], 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as unpacked:
            while part := unpacked.read(CHUNK):
                parts.append(part)
                size += len(part)
                if size > MAX_BYTES:
                    raise InvalidTraces(f"{name} unpacks to more than {MAX_BYTES >> 30} GiB.", code="E_TOO_LARGE")
    except (EOFError, OSError, zlib.error):
        raise InvalidTraces(f"{name} is a damaged or truncated gzip file.", code="E_COMPRESSION") from None
    return b"".join(parts)


def _parquet(content: bytes, name: str) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(content))
        table.validate(full=True)  # text that is no text would only be noticed later
        names = table.column_names
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise InvalidTraces(f"{name} is a damaged or truncated Parquet file.", code="E_PARQUET") from None
    return _arrow(table, names, name)


def _arrow(table: Any, names: list[str], name: str) -> Table:
    _check_names(names, name)
    if table.num_rows == 0:
        raise InvalidTraces(f"{name} holds no rows.", code="E_EMPTY")
    return Table(name, dict(zip(names, table.columns, strict=True)), table.num_rows)


def _frame(source: Any) -> Table:
    import pyarrow as pa

    name = "the frame"
    # told by name, so that pandas is not imported to be told that it was not needed
    kinds = {(kind.__module__.split(".")[0], kind.__name__) for kind in type(source).__mro__}
    if ("pandas", "DataFrame") in kinds:
        named = [level for level in source.index.names if level is not None and level not in source.columns]
        frame = source.reset_index(level=named) if named else source
        names = [str(column) for column in frame.columns]
        _check_names(names, name)
        if len(frame) == 0:
            raise InvalidTraces(f"{name} holds no rows.", code="E_EMPTY")
        # by position: a column keeps its pandas type until it is asked for
        return Table(name, {n: frame.iloc[:, i] for i, n in enumerate(names)}, len(frame))
    try:
        table = pa.table(source)
    except (TypeError, ValueError, pa.ArrowException):
        raise InvalidParameter(
            f"`source` must be a path, a DataFrame or an Arrow table, got {type(source).__name__}."
        ) from None
    return _arrow(table, table.column_names, name)


def _array(column: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        missing = column.isna()
        return pa.array([None if m else str(v) for v, m in zip(column, missing, strict=True)], pa.string())


def _check_names(names: list[str], name: str) -> None:
    # not which name: where the line of names is missing, this is somebody's data
    for number, column in enumerate(names):
        if column in names[:number]:
            raise InvalidTraces(
                f"{name}: columns {names.index(column) + 1} and {number + 1} have one name.", code="E_COLUMN"
            )


def _utf8(content: bytes, name: str, encoding: str) -> bytes:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    try:
        if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
            content = content.removeprefix(b"\xef\xbb\xbf")
            content.decode("utf-8")
        else:
            content = content.decode(encoding).encode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidTraces(f"{name}, line {line}: not {encoding} text; give `encoding`.", code="E_ENCODING") from None
    except LookupError:
        raise InvalidParameter(f"`encoding` must be a known text encoding, got {encoding!r}.") from None
    control = CONTROL.search(content)
    if control:
        line = content.count(b"\n", 0, control.start()) + 1
        raise InvalidTraces(f"{name}, line {line}: a control character in the text.", code="E_ENCODING")
    return content


def _text_table(content: bytes, name: str) -> Table:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    found = FIRST_LINE.search(content)
    if found is None:
        raise InvalidTraces(f"{name} is empty.", code="E_EMPTY")
    first, body = found[0].decode(), content[found.start() :]
    delimiter = max(DELIMITERS, key=lambda d: len(_split(first, d)))
    fields = [part.strip() for part in _split(first, delimiter)]
    headed = not all(NUMBER.fullmatch(part) for part in fields)
    names = fields if headed else [str(i) for i in range(len(fields))]
    _check_names(names, name)
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(body),
            read_options=arrow_csv.ReadOptions(column_names=names, skip_rows=int(headed)),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in body),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=False
            ),
        )
    except pa.ArrowException:
        raise _unequal_record(content, name, delimiter, len(names)) from None
    if table.num_rows == 0:
        raise InvalidTraces(f"{name} holds column names and nothing else.", code="E_EMPTY")
    columns = dict(zip(names, table.columns, strict=True))
    return Table(name, columns, table.num_rows, headed, content, delimiter)


def _split(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


def _records(content: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Every record that is not blank, with the line it starts on; slow, for messages only."""
    reader = csv.reader(io.StringIO(content.decode(), newline=""), delimiter=delimiter)
    start = 1
    for record in reader:
        if record:
            yield start, record
        start = reader.line_num + 1


def _unequal_record(content: bytes, name: str, delimiter: str, width: int) -> InvalidTraces:
    try:
        records = _records(content, delimiter)
        for line, record in records:
            if len(record) != width:
                # a file that stops within a line was cut; a line that swallows others is another fault (B8, B12)
                swallowed = any("\n" in part or "\r" in part for part in record)
                if len(record) < width and not swallowed and next(records, None) is None:
                    return InvalidTraces(f"{name}, line {line}: the last line is cut off.", code="E_TRUNCATED")
                return InvalidTraces(
                    f"{name}, line {line}: {len(record)} fields where the first line has {width}.", code="E_CSV"
                )
    except csv.Error:
        pass
    return InvalidTraces(f"{name} is no table of {width} columns: look for an unbalanced quote.", code="E_CSV")
