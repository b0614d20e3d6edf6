"""
Files, folders and frames as named columns, before anyone asks what the columns mean.

Which format a file has is told by its content (`formats`), never by its name. Every field of a text file is text
until its role is known, so that no id loses a digit and no type is guessed by chunk (B45-B48). Messages name file,
line and code, never content.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from elsewhere.errors import InvalidParameter, InvalidTraces, require_choice
from elsewhere.traces.sources import (
    MAX_BYTES,
    Source,
    as_utf8,
    is_folder,
    open_folder,
    open_source,
    refuse_rows,
    whole_characters,
)

TABLES = ("csv", "parquet", "sglt")
CONTAINERS = ("auto", *TABLES, "geojson", "geolife", "google", "gpx", "owntracks", "foursquare", "json")
PROMISES = {".parquet": ("Parquet", "E_PARQUET"), ".pq": ("Parquet", "E_PARQUET"), ".gz": ("gzip", "E_COMPRESSION")}
CUT = "the file is cut off: its last line or record was left out"
LONGEST_TEXT = 256  # of fields that are believed, however many rows have them
Roles = Callable[[Sequence[str]], Mapping[str, str]]  # names of columns -> role: column


@dataclass(frozen=True, eq=False)
class Table:
    """
    Named columns of equal length, and where they came from.

    `headed` is False for a text file whose first line holds only numbers: its columns are called "0", "1", ...
    `names` are all columns of the file, `columns` those that were asked for. `unequal` lines, which had more or fewer
    fields than the first, are no rows of it.
    """

    name: str
    columns: Mapping[str, Any] = field(repr=False)
    rows: int
    headed: bool = True
    format: str = "frame"
    text: bytes | None = field(default=None, repr=False)
    delimiter: str = ","
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple["Table", ...] = field(default=(), repr=False)
    unequal: int = 0

    def column(self, name: str) -> Any:
        """The column as Arrow values; what Arrow cannot type becomes text."""
        import pyarrow as pa

        column = self.encoded(name)
        return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column

    def encoded(self, name: str) -> Any:
        """The same, where labels may stand in a dictionary."""
        import pyarrow as pa

        column = self.columns[name]
        if not isinstance(column, (pa.Array, pa.ChunkedArray)):
            column = _array(column)
        if isinstance(column, pa.Array):
            column = pa.chunked_array([column])
        return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column

    def at(self, row: int) -> str:
        """Where data row `row` (from 0) stands: the line of a text file, else the row, both from 1."""
        for part in self.files:
            if row < part.rows:
                return part.at(row)
            row -= part.rows
        if self.text is None:
            return f"{self.name}, {'row' if self.format in ('frame', 'parquet') else 'record'} {row + 1}"
        from elsewhere.traces.texts import line_of

        line = line_of(self.text, self.delimiter, row + self.headed)
        return self.name if line is None else f"{self.name}, line {line}"

    def refuse(self, what: str, code: str, row: int | None = None) -> InvalidTraces:
        """An error that names the file, the line of `row`, and what is wrong there."""
        return InvalidTraces(f"{self.name if row is None else self.at(row)}: {what}", code=code)


def open_table(
    source: Any,
    *,
    container: str = "auto",
    encoding: str = "utf-8",
    roles: Roles | None = None,
    plain_times: bool = True,
    max_bad: float = 0.0,
    allow_truncated: bool = False,
) -> Table:
    """
    The columns of a file, of a folder of files of one format, or of a frame (pandas, polars, Arrow, dict of arrays).

    `roles` tells from the names of columns which are wanted, and as what; by default all of them, as text. Times that
    are not `plain` stay text whatever they look like: the caller has a format for them. At most the share `max_bad` of
    the lines may have another number of fields than the first; what follows a cut is left out if `allow_truncated`.

    Examples
    --------
    >>> open_table({"uid": ["a", "b"], "slot": [0, 1]}).rows
    2

    """
    require_choice("format", container, CONTAINERS)
    reading = Reading(container, encoding, roles, plain_times, max_bad, allow_truncated)
    if isinstance(source, Source):
        return _file(source, reading)
    if not isinstance(source, (str, os.PathLike)):
        return _frame(source)
    if is_folder(source):
        return _folder(source, reading)
    return _file(open_source(source, allow_truncated=allow_truncated), reading)


@dataclass(frozen=True)
class Reading:
    """
    How files are to be read, the same for all files of a folder.

    `cut` is said to a reader of a file that stops too early, where it may: it leaves the last line or record out.
    """

    container: str = "auto"
    encoding: str = "utf-8"
    roles: Roles | None = None
    plain_times: bool = True
    max_bad: float = 0.0
    allow_truncated: bool = False
    cut: bool = False


AS_IT_COMES = Reading()


def _file(source: Source, reading: Reading) -> Table:
    from elsewhere.traces.formats import recognise

    found = recognise(source.content, source.name, reading.encoding)
    asked = reading.container
    if asked not in ("auto", found) and {asked, found} != {"csv", "sglt"}:
        code = "E_PARQUET" if asked == "parquet" else "E_FORMAT"
        raise InvalidTraces(f"{source.name} is not {asked}; it looks like {found}.", code=code)
    try:
        return _read_as(found, source, reading)
    except InvalidTraces as error:
        # no text, and by its name it should not be: say what is missing rather than what was found
        ending = next((end for end in PROMISES if source.name.lower().endswith(end)), None)
        if found == "csv" and error.code == "E_ENCODING" and ending:
            kind, code = PROMISES[ending]
            raise InvalidTraces(f"{source.name} is called {ending} and is no {kind} file.", code=code) from None
        raise


def _read_as(found: str, source: Source, reading: Reading) -> Table:
    """The file as what it was found to be; what is whole of it, if it is cut off and may be (B8)."""
    if found == "parquet":
        return _parquet(source, reading)
    source = whole_characters(source) if reading.allow_truncated else source
    if not source.cut:
        try:
            return _read_text(found, source, reading)
        except InvalidTraces as error:
            if error.code != "E_TRUNCATED" or not reading.allow_truncated:
                raise
    table = _read_text(found, source, replace(reading, cut=True))
    return replace(table, notes=(*table.notes, CUT))


def _read_text(found: str, source: Source, reading: Reading) -> Table:
    if found in ("csv", "sglt"):
        from elsewhere.traces.texts import text_table

        content = as_utf8(source.content, source.name, reading.encoding)
        return text_table(
            content,
            source.name,
            reading.roles,
            plain_times=reading.plain_times,
            max_bad=reading.max_bad,
            cut=reading.cut,
        )
    from elsewhere.traces.formats import READERS

    table = READERS[found]()(source, reading)
    if table.rows == 0:
        raise InvalidTraces(f"{source.name} holds no position with a time.", code="E_EMPTY")
    return table


def _folder(source: str | os.PathLike[str], reading: Reading) -> Table:
    """All files of the commonest format, one under the other; where that has no user, the file or folder is one."""
    from elsewhere.traces.formats import recognise

    sources = list(open_folder(source, allow_truncated=reading.allow_truncated))
    found = [recognise(s.content, s.name, reading.encoding) if s.content.strip() else "empty" for s in sources]
    counts = {kind: found.count(kind) for kind in dict.fromkeys(found) if kind != "empty"}
    if reading.container != "auto":
        counts = {kind: n for kind, n in counts.items() if kind == reading.container}
    if not counts:
        raise InvalidTraces(f"{sources[0].name}: no file of the folder can be read.", code="E_EMPTY")
    # a tie is broken in favour of what is no plain text: notes and labels lie beside tracks
    kind = max(counts, key=lambda k: (counts[k], k not in ("csv", "sglt")))
    tables, empty = [], 0
    for number, (one, its) in enumerate(zip(sources, found, strict=True)):
        sources[number] = replace(one, content=b"")
        if its == kind:
            try:
                table = _read_as(kind, one, reading)
            except InvalidTraces as error:
                if error.code != "E_EMPTY":
                    raise
                empty += 1  # a track that was switched on and off again
                continue
            named = reading.roles is None or "user" in reading.roles(table.names)
            alone = kind in TABLES and table.headed and not named
            tables.append(_with_user(table, one.user) if alone else table)
    if not tables:
        raise InvalidTraces(f"{sources[0].name}: no file of the folder holds a row.", code="E_EMPTY")
    others = len(sources) - len(tables) - empty
    notes = [f"{len(tables)} files were read"]
    notes += [f"{others} files of the folder were not read: they are of another format"] if others else []
    notes += [f"{empty} files of the folder hold no rows"] if empty else []
    return _joined(tables, sources[0].name.partition(",")[0], notes)


def _with_user(table: Table, user: str) -> Table:
    """The table with a column that says its file's user in every row."""
    import numpy as np
    import pyarrow as pa

    name = next(n for n in ("user", "user of the file") if n not in table.names)
    column = pa.DictionaryArray.from_arrays(np.zeros(table.rows, dtype=np.int32), pa.array([user]))
    return replace(table, columns={**table.columns, name: column}, names=(*table.names, name))


def _joined(tables: list[Table], name: str, notes: list[str]) -> Table:
    """Tables of one format one under the other: the columns they share."""
    import pyarrow as pa

    first = tables[0]
    shared = [n for n in first.columns if all(n in t.columns for t in tables)]
    columns = {}
    for n in shared:
        parts = [t.encoded(n) for t in tables]
        # what has several types in several files is text in all of them (B48)
        if len({part.type for part in parts}) > 1:
            if any(pa.types.is_timestamp(part.type) for part in parts):
                utc = pa.timestamp("us", "UTC")
                parts = [part.cast(utc) if getattr(part.type, "tz", None) else part for part in parts]
            if len({part.type for part in parts}) > 1:
                parts = [part.cast(pa.string()) for part in parts]
        columns[n] = pa.chunked_array([chunk for part in parts for chunk in part.chunks])
    said = [note for t in tables for note in t.notes]
    notes += [f"{note} ({said.count(note)} files)" for note in dict.fromkeys(said)]
    # a column that some file lacks is none: no role may point to it
    names = tuple(n for n in first.names if all(n in t.names for t in tables))
    # only what a message needs of each file: its name, its number of rows, and its text
    files = tuple(replace(t, columns={}) for t in tables)
    rows = sum(t.rows for t in tables)
    refuse_rows(rows, name)
    unequal = sum(t.unequal for t in tables)
    return Table(
        name, columns, rows, first.headed, first.format, names=names, notes=tuple(notes), files=files, unequal=unequal
    )


def _parquet(source: Source, reading: Reading) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    content, name, roles = source.content, source.name, reading.roles
    try:
        schema = pq.read_schema(pa.BufferReader(content))
        # a page of one repeated value unpacks to any size (B10): text stays in its dictionary
        texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]
        file = pq.ParquetFile(pa.BufferReader(content), read_dictionary=texts)
        refuse_rows(file.metadata.num_rows, name)
        names = schema.names
        _check_names(names, name)
        wanted = None if roles is None else list(dict.fromkeys(roles(names).values()))
        table = file.read(columns=wanted)
        _refuse_endless(table, name)
        table.validate(full=True)  # text that is no text would only be noticed later
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError, OverflowError):
        # what a Parquet file holds is told at its end: of a cut one nothing can be saved
        why = ", which `allow_truncated` cannot save: its index is at its end" if reading.allow_truncated else ""
        raise InvalidTraces(f"{name} is a damaged or truncated Parquet file{why}.", code="E_PARQUET") from None
    return replace(_arrow(table, table.column_names, name), format="parquet", names=tuple(names))


def _refuse_endless(table: Any, name: str) -> None:
    """Refuse a table whose text, written out, would not fit into memory."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            longest = max((pc.max(pc.binary_length(c.dictionary)).as_py() or 0 for c in column.chunks), default=0)
            if longest > LONGEST_TEXT and longest * table.num_rows > MAX_BYTES:
                raise InvalidTraces(f"{name}: a field without end.", code="E_TOO_LARGE")


def _arrow(table: Any, names: list[str], name: str) -> Table:
    _check_names(names, name)
    if table.num_rows == 0:
        raise InvalidTraces(f"{name} holds no rows.", code="E_EMPTY")
    return Table(name, dict(zip(names, table.columns, strict=True)), table.num_rows, names=tuple(names))


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
        return Table(name, {n: frame.iloc[:, i] for i, n in enumerate(names)}, len(frame), names=tuple(names))
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


def _check_names(names: Sequence[str], name: str) -> None:
    # not which name: where the line of names is missing, this is somebody's data
    for number, column in enumerate(names):
        if column in names[:number]:
            raise InvalidTraces(
                f"{name}: columns {names.index(column) + 1} and {number + 1} have one name.", code="E_COLUMN"
            )
