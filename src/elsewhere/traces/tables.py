"""
Files, folders and frames as named columns, before anyone asks what the columns mean.

Which format a file has is told by its content (`formats`), never by its name. Text and Parquet come as one table per
block, so that no large file ever stands in memory. Every field of a text file is text until its role is known, so that
no id loses a digit and no type is guessed by chunk (B45-B48). Messages name file, line and code, never content.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from typing import TYPE_CHECKING, Any, NamedTuple

from elsewhere.errors import InvalidParameter, InvalidTraces, require_choice
from elsewhere.traces.sources import (
    MAX_HELD,
    Source,
    is_folder,
    open_folder,
    open_source,
    refuse_rows,
    whole_characters,
)

if TYPE_CHECKING:
    from elsewhere.traces.texts import Dialect

TABLES = ("csv", "parquet", "sglt", "excel")
CONTAINERS = ("auto", *TABLES, "geojson", "geolife", "google", "gpx", "owntracks", "foursquare", "json")
PROMISES = {".parquet": ("Parquet", "E_PARQUET"), ".pq": ("Parquet", "E_PARQUET"), ".gz": ("gzip", "E_COMPRESSION")}
CUT = "the file is cut off: its last line or record was left out"
FILE = "the file's name"  # the column that says so in every row
LONGEST_TEXT = 256  # of fields that are believed, however many rows have them
HELD_ROW = 400  # bytes that a row takes where a table is read as a whole
STREAMED = ("csv", "parquet", "geolife", "foursquare")
SMALL = 1 << 23  # bytes of a file that is read at once
BATCH = 1 << 19  # rows of a Parquet file at a time
RECORDS = 500  # rows that tell what columns of a frame hold
FEW = 12  # files of a folder on which is decided how all are read


class Found(NamedTuple):
    """
    What columns mean: role -> name, what was assumed to find that out, and the kind of values of each column.

    `sglt` says that these are the three columns of SGLT, counted from 1. `shown` is how messages call the columns: by
    number where a name could be somebody's data.
    """

    roles: Mapping[str, str]
    notes: tuple[str, ...] = ()
    kinds: Mapping[str, str] = {}
    sglt: bool = False
    shown: tuple[str, ...] = ()


# names of columns, whether they stand in the file, and some rows -> what the columns mean
Roles = Callable[[Sequence[str], bool, Sequence[Sequence[str]]], Found]


@dataclass(frozen=True, eq=False)
class Table:
    """
    Named columns of equal length, and where they came from.

    `headed` is False for a text file without a line of names: its columns are called #1, #2, ... `names` are all
    columns of the file, `columns` those that were asked for, `found` what they mean where that was asked. `unequal`
    lines, which had more or fewer fields than the first, are no rows of it; `fault` tells the first of them. A block of
    a text has `before` lines before it, and `skip` lines before its first row.
    """

    name: str
    columns: Mapping[str, Any] = field(repr=False)
    rows: int
    headed: bool = True
    format: str = "frame"
    text: bytes | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple["Table", ...] = field(default=(), repr=False)
    unequal: int = 0
    fault: InvalidTraces | None = field(default=None, repr=False)
    found: Found | None = None
    dialect: "Dialect | None" = field(default=None, repr=False)
    skip: int = 0
    before: int = 0
    fixed: Mapping[str, int] = field(default_factory=dict)
    origin: Any = field(default=None, repr=False)  # which row of the file each row is, where some are left out

    @property
    def comma(self) -> bool:
        """Whether its numbers have decimal commas."""
        return self.dialect.comma if self.dialect is not None else any(part.comma for part in self.files)

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

    def shown(self, name: str) -> str:
        """How messages call a column: by number where its name could be somebody's data."""
        shown = self.found.shown if self.found is not None else ()
        return dict(zip(self.names, shown, strict=False)).get(name, name)

    def at(self, row: int) -> str:
        """Where data row `row` (from 0) stands: the line of a text file, else the row, both from 1."""
        if self.origin is not None:
            return replace(self, origin=None).at(int(self.origin[row]))
        for part in self.files:
            if row < part.rows:
                return part.at(row)
            row -= part.rows
        if self.text is None:
            return f"{self.name}, {'row' if self.format in ('frame', 'parquet') else 'record'} {self.before + row + 1}"
        from elsewhere.traces.texts import line_of

        line = line_of(self, row)
        return self.name if line is None else f"{self.name}, line {line}"

    def refuse(self, what: str, code: str, row: int | None = None) -> InvalidTraces:
        """An error that names the file, the line of `row`, and what is wrong there."""
        return InvalidTraces(f"{self.name if row is None else self.at(row)}: {what}", code=code)


@dataclass(frozen=True, eq=False)
class Parts:
    """
    An input as tables one after the other.

    What is decided once for all of them is decided on `sample`, which is all of a small input. They can be gone through
    again; `notes` is complete after that.
    """

    name: str
    sample: Table
    tables: Callable[[], Iterator[Table]] = field(repr=False)
    notes: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Table]:
        return self.tables()

    def joined(self, max_bad: float = 0.0) -> Table:
        """All tables as one; at most the share `max_bad` of the lines may have another number of fields."""
        tables = list(self)
        joined = _joined(tables, self.name, list(self.notes))
        refuse_unequal(tables, joined.rows, joined.unequal, max_bad)
        return joined


def refuse_unequal(tables: Iterable[Table], rows: int, unequal: int, max_bad: float) -> None:
    """Refuse an input of which too many lines have more or fewer fields than the first of their file (B8)."""
    if unequal > max_bad * (rows + unequal) or (unequal and not rows):
        fault = next(table.fault for table in tables if table.fault is not None)
        most = (
            f" {unequal} of {rows + unequal} lines are so; at most {max_bad:.2%} may be (`max_bad`)." if max_bad else ""
        )
        raise InvalidTraces(f"{fault.args[0]}{most}", code=fault.code)


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

    At most the share `max_bad` of the lines may have another number of fields than the first; the rest is as for
    `open_parts`.

    Examples
    --------
    >>> open_table({"uid": ["a", "b"], "slot": [0, 1]}).rows
    2

    """
    parts = open_parts(
        source,
        container=container,
        encoding=encoding,
        roles=roles,
        plain_times=plain_times,
        allow_truncated=allow_truncated,
    )
    return parts.joined(max_bad)


def open_parts(
    source: Any,
    *,
    container: str = "auto",
    encoding: str = "utf-8",
    roles: Roles | None = None,
    plain_times: bool = True,
    allow_truncated: bool = False,
) -> Parts:
    """
    The columns of a file, a folder or a frame, as tables one after the other.

    `roles` tells which columns are wanted, and as what; by default all of them, as text. Times that are not `plain`
    stay text whatever they look like: the caller has a format for them. What follows a cut is left out if
    `allow_truncated`.
    """
    require_choice("format", container, CONTAINERS)
    reading = Reading(container, encoding, roles, plain_times, allow_truncated)
    if isinstance(source, Source):
        return _file(source, reading)
    if not isinstance(source, (str, os.PathLike)):
        return _one(_asked(_frame(source), reading))
    if is_folder(source):
        return _folder(source, reading)
    return _file(open_source(source, allow_truncated=allow_truncated), reading)


@dataclass(frozen=True)
class Reading:
    """
    How files are to be read, the same for all files of a folder.

    `cut` is said to a reader of a file that stops too early, where it may: it leaves the last line or record out. Of a
    `sample` only some rows of a large file are read, of its beginning, middle and end.
    """

    container: str = "auto"
    encoding: str = "utf-8"
    roles: Roles | None = None
    plain_times: bool = True
    allow_truncated: bool = False
    cut: bool = False
    sample: bool = False


AS_IT_COMES = Reading()


def _one(table: Table) -> Parts:
    return Parts(table.name, table, lambda: iter((table,)), list(table.notes))


def _file(source: Source, reading: Reading) -> Parts:
    from elsewhere.traces.formats import HEAD, recognise

    kind = recognise(source.head(HEAD), source.name)
    asked = reading.container
    if asked not in ("auto", kind) and {asked, kind} != {"csv", "sglt"}:
        code = "E_PARQUET" if asked == "parquet" else "E_FORMAT"
        raise InvalidTraces(f"{source.name} is not {asked}; it looks like {kind}.", code=code)
    large = kind in STREAMED and (source.packed or source.size > SMALL)
    try:
        tables = list(_read_as(kind, source, replace(reading, sample=large)))
    except InvalidTraces as error:
        # no text, and by its name it should not be: say what is missing rather than what was found
        ending = next((end for end in PROMISES if source.name.lower().endswith(end)), None)
        if kind == "csv" and error.code == "E_ENCODING" and ending:
            promised, code = PROMISES[ending]
            raise InvalidTraces(f"{source.name} is called {ending} and is no {promised} file.", code=code) from None
        raise
    notes: list[str] = []
    if large:
        return Parts(source.name, _joined(tables, source.name), lambda: _read_as(kind, source, reading), notes)
    return Parts(source.name, _joined(tables, source.name), lambda: iter(tables), notes)


def _read_as(kind: str, source: Source, reading: Reading, like: Any = None) -> Iterator[Table]:
    """The file as what it was found to be; what is whole of it, if it is cut off and may be (B8)."""
    from elsewhere.traces.formats import STREAMS

    if kind == "csv":
        from elsewhere.traces.texts import read_text

        for table in read_text(source, reading, like):
            yield _of_file(table, source)
    elif kind == "parquet":
        for table in _parquet(source, reading):
            yield _of_file(table, source)
    elif kind in STREAMED:
        for table in STREAMS[kind]()(source, reading):
            yield _of_file(_asked(table, reading), source)
    else:
        yield _document(kind, source.held(), reading)


def _document(kind: str, source: Source, reading: Reading) -> Table:
    from elsewhere.traces.formats import READERS

    if reading.allow_truncated and kind != "excel":
        whole = whole_characters(source.content)
        source = replace(source, raw=whole, packed=False, cut=True) if len(whole) < len(source.content) else source
    try:
        table = READERS[kind]()(source, replace(reading, cut=source.cut))
    except InvalidTraces as error:
        if error.code != "E_TRUNCATED" or not reading.allow_truncated or source.cut:
            raise
        source = replace(source, cut=True)
        table = READERS[kind]()(source, replace(reading, cut=True))
    if table.rows == 0:
        raise InvalidTraces(f"{source.name} holds no position with a time.", code="E_EMPTY")
    table = _asked(table, reading)
    return _of_file(replace(table, notes=(*table.notes, CUT)) if source.cut else table, source)


def _asked(table: Table, reading: Reading) -> Table:
    """The table, told what its columns mean if that is asked and not known yet."""
    if reading.roles is None or table.found is not None:
        return table
    records = _some_records(table) if table.format in ("frame", "json", "excel") else ()
    return replace(table, found=reading.roles(table.names, table.headed, records))


def _some_records(table: Table) -> list[tuple[str, ...]]:
    """The first rows of a table that is no text, as text: what its columns hold."""
    n = min(RECORDS, table.rows)
    few = {name: column.iloc[:n] if hasattr(column, "iloc") else column[:n] for name, column in table.columns.items()}
    first = replace(table, columns=few, rows=n)
    records = []
    for name in table.names:
        try:
            records.append([_as_text(value) for value in first.column(name).to_pylist()])
        except (ValueError, OverflowError):
            records.append([""] * n)  # times of no calendar, text that is no text: its reader will say so
    return list(zip(*records, strict=True))


def _as_text(value: Any) -> str:
    if isinstance(value, datetime) and value.time() == time.min:
        return value.date().isoformat()  # a day, as frames and spreadsheets keep them
    return "" if value is None else str(value)[:LONGEST_TEXT]


def _of_file(table: Table, source: Source) -> Table:
    """The table with a column that says its file's user in every row, where that is the user."""
    asked = table.found is not None and table.found.roles.get("user") == FILE
    return _with_user(table, source.user) if asked else table


def _folder(source: str | os.PathLike[str], reading: Reading) -> Parts:
    """All files of the commonest format, one after the other; where that has no user, the file or folder is one."""
    from elsewhere.traces.formats import HEAD, recognise

    sources = open_folder(source, allow_truncated=reading.allow_truncated)
    name = sources[0].name.partition(",")[0]
    kinds = [recognise(s.head(HEAD), s.name) if s.size else "empty" for s in sources]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds) if kind != "empty"}
    if reading.container != "auto":
        counts = {kind: n for kind, n in counts.items() if kind == reading.container}
    if not counts:
        raise InvalidTraces(f"{sources[0].name}: no file of the folder can be read.", code="E_EMPTY")
    # a tie is broken in favour of what is no plain text: notes and labels lie beside tracks
    kind = max(counts, key=lambda k: (counts[k], k not in ("csv", "sglt")))
    chosen = [s for s, its in zip(sources, kinds, strict=True) if its == kind]
    few = chosen if len(chosen) <= FEW else [chosen[i * (len(chosen) - 1) // (FEW - 1)] for i in range(FEW)]
    samples, like = [], None
    for one in few:
        samples += [t for t in _tables_of(kind, one, replace(reading, sample=True)) if has_positions(t.found)]
    if not samples:
        # say of the longest what is wrong with it
        samples = [t for one in few for t in _tables_of(kind, one, replace(reading, sample=True))]
        samples = sorted(samples, key=lambda t: -t.rows)[:1]
    if not samples:
        raise InvalidTraces(f"{name}: no file of the folder holds a row.", code="E_EMPTY")
    first = samples[0]
    if kind == "csv" and first.dialect is not None:
        found = first.found or Found({})
        if reading.roles is not None and not first.headed:
            names = first.dialect.names
            alike = [t.dialect for t in samples if t.dialect is not None and t.dialect.names == names]
            found = reading.roles(names, False, [r for dialect in alike for r in dialect.records])
        like = (first.dialect, found)
    notes: list[str] = []
    return Parts(name, _joined(samples, name), lambda: _each(kind, sources, chosen, reading, like, notes), notes)


def _each(
    kind: str, sources: list[Source], chosen: list[Source], reading: Reading, like: Any, notes: list[str]
) -> Iterator[Table]:
    """The tables of all files of one kind; those without rows or without positions are passed over and counted."""
    read = empty = others = 0
    for one in chosen:
        rows, odd = 0, False
        for table in _tables_of(kind, one, reading, like):
            if not has_positions(table.found) and len(chosen) > 1:
                odd = True
                break
            rows += table.rows + table.unequal
            yield table
        read, empty, others = read + (rows > 0), empty + (rows == 0 and not odd), others + odd
    others += len(sources) - len(chosen)
    notes[:] = [f"{read} files were read"]
    notes += [f"{others} files of the folder were not read: they are of another format"] if others else []
    notes += [f"{empty} files of the folder hold no rows"] if empty else []


def _tables_of(kind: str, source: Source, reading: Reading, like: Any = None) -> Iterator[Table]:
    """The tables of a file of a folder, none if it is empty; without a user of their own the file is one."""
    try:
        for table in _read_as(kind, source, reading, like):
            if kind in TABLES and table.found is not None and "user" not in table.found.roles:
                table = _with_user(table, source.user)
            yield table
    except InvalidTraces as error:
        if error.code != "E_EMPTY":
            raise  # a track that was switched on and off again is no fault


def has_positions(found: Found | None) -> bool:
    """Whether anything tells where rows are, and when, as far as that was asked."""
    roles = set() if found is None else set(found.roles)
    when = {"time", "utc", "local", "date", "arrived", "slot"}
    return found is None or bool({"lat", "geometry", "place"} & roles and when & roles)


def _with_user(table: Table, user: str) -> Table:
    """The table with a column that says its file's user in every row."""
    import numpy as np
    import pyarrow as pa

    column = pa.DictionaryArray.from_arrays(np.zeros(table.rows, dtype=np.int32), pa.array([user]))
    found = table.found or Found({})
    found = found._replace(roles={**found.roles, "user": FILE})
    return replace(table, columns={**table.columns, FILE: column}, names=(*table.names, FILE), found=found)


def _joined(tables: list[Table], name: str, notes: Sequence[str] = ()) -> Table:
    """Tables of one format one under the other: the columns they share."""
    import pyarrow as pa

    first = tables[0]
    notes = list(notes)
    said = [note for t in tables for note in t.notes]
    several = len({t.name for t in tables}) > 1
    notes += [f"{note} ({said.count(note)} files)" if several else note for note in dict.fromkeys(said)]
    if len(tables) == 1:
        return replace(first, name=name, notes=tuple(notes))
    columns = {}
    for n in (n for n in first.columns if all(n in t.columns for t in tables)):
        parts = [t.encoded(n) for t in tables]
        # what has several types in several files is text in all of them (B48)
        if len({part.type for part in parts}) > 1:
            if any(pa.types.is_timestamp(part.type) for part in parts):
                utc = pa.timestamp("us", "UTC")
                parts = [part.cast(utc) if getattr(part.type, "tz", None) else part for part in parts]
            if len({part.type for part in parts}) > 1:
                parts = [part.cast(pa.string()) for part in parts]
        columns[n] = pa.chunked_array([chunk for part in parts for chunk in part.chunks])
    # a column that some file lacks is none: no role may point to it
    names = tuple(n for n in first.names if all(n in t.names for t in tables))
    # only what a message needs of each file: its name, its number of rows, and its text
    files = tuple(replace(t, columns={}) for t in tables)
    rows = sum(t.rows for t in tables)
    refuse_rows(rows, name, HELD_ROW)
    found = first.found
    if found is not None:
        found = found._replace(roles={role: n for role, n in found.roles.items() if n in names})
    fixed = {what: sum(t.fixed.get(what, 0) for t in tables) for t in tables for what in t.fixed}
    unequal = sum(t.unequal for t in tables)
    return Table(
        name,
        columns,
        rows,
        first.headed,
        first.format,
        names=names,
        notes=tuple(notes),
        files=files,
        unequal=unequal,
        found=found,
        fixed=fixed,
    )


def _parquet(source: Source, reading: Reading) -> Iterator[Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    name, roles, before = source.name, reading.roles, 0
    try:
        where = source.path if source.path is not None and not source.packed else None
        at: Any = pa.memory_map(str(where)) if where is not None else pa.BufferReader(source.content)
        schema = pq.read_schema(at)
        # a page of one repeated value unpacks to any size (B10): text stays in its dictionary
        texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]
        file = pq.ParquetFile(at, read_dictionary=texts)
        names = schema.names
        check_names(names, name)
        found = None if roles is None else roles(names, True, _head_of(file, name))
        wanted = None if found is None else list(dict.fromkeys(n for n in found.roles.values() if n in names))
        groups = list(range(file.num_row_groups))
        if reading.sample and len(groups) > 3:
            groups = [groups[0], groups[len(groups) // 2], groups[-1]]
        for group in groups:
            for batch in file.iter_batches(BATCH >> 4 * reading.sample, [group], wanted or None):
                table = pa.Table.from_batches([batch])
                _refuse_endless(table, name, file.metadata.num_rows)
                table.validate(full=True)  # text that is no text would only be noticed later
                if table.num_rows:
                    columns = dict(zip(table.column_names, table.columns, strict=True))
                    yield Table(
                        name, columns, table.num_rows, format="parquet", names=tuple(names), found=found, before=before
                    )
                before += table.num_rows
                if reading.sample:
                    break
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError, OverflowError):
        # what a Parquet file holds is told at its end: of a cut one nothing can be saved
        why = ", which `allow_truncated` cannot save: its index is at its end" if reading.allow_truncated else ""
        raise InvalidTraces(f"{name} is a damaged or truncated Parquet file{why}.", code="E_PARQUET") from None
    if not before:
        raise InvalidTraces(f"{name} holds no rows.", code="E_EMPTY")


def _head_of(file: Any, name: str) -> list[tuple[str, ...]]:
    """The first rows of a Parquet file as text."""
    import pyarrow as pa

    if not file.num_row_groups:
        return []
    for batch in file.iter_batches(RECORDS, [0]):
        table = pa.Table.from_batches([batch])
        _refuse_endless(table, name, file.metadata.num_rows)
        columns = dict(zip(table.column_names, table.columns, strict=True))
        return _some_records(Table(name, columns, table.num_rows, names=tuple(table.column_names)))
    return []


def _refuse_endless(table: Any, name: str, rows: int) -> None:
    """Refuse a table whose text, written out, would not fit into memory."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            longest = max((pc.max(pc.binary_length(c.dictionary)).as_py() or 0 for c in column.chunks), default=0)
            if longest > LONGEST_TEXT and longest * rows > MAX_HELD:
                raise InvalidTraces(f"{name}: a field without end.", code="E_TOO_LARGE")


def _arrow(table: Any, names: list[str], name: str) -> Table:
    check_names(names, name)
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
        check_names(names, name)
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


def check_names(names: Sequence[str], name: str) -> None:
    """Refuse two columns of one name."""
    # not which name: where the line of names is missing, this is somebody's data
    for number, column in enumerate(names):
        if column in names[:number]:
            raise InvalidTraces(
                f"{name}: columns {names.index(column) + 1} and {number + 1} have one name.", code="E_COLUMN"
            )
