"""
Open files, folders and frames of any format as tables, one after the other.

The content of a file tells its format (`recognise`), never its name. A reader is a function from a file to named
columns, `user`, `time` (or `utc`), `lat` and `lon`, so that everything after it is the same for all formats. `streams`
yields one table per block, so that no large file is ever in memory as a whole; `documents` reads files as a whole. A
new format needs its reader in one of these two files, a pattern in `recognise`, and a line in `STREAMS` or `DOCUMENTS`.
"""

import codecs
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

from elsewhere.errors import InvalidParameter, InvalidTraces, counted, require_choice
from elsewhere.scale import iterate_over
from elsewhere.traces.columns import FILE, AbsentColumn, Meaning, Roles, missing_roles
from elsewhere.traces.formats.documents import (
    read_geojson,
    read_google,
    read_gpx,
    read_records,
    read_workbook,
)
from elsewhere.traces.formats.streams import read_foursquare, read_parquet, read_plt, read_text
from elsewhere.traces.sources import (
    CUT,
    TABLES,
    FileOptions,
    Parts,
    Source,
    Table,
    drop_half_character,
    first_records,
    has_positions,
    join_tables,
    open_folder,
    open_source,
    printable,
    refuse_equal_names,
)

PLT = re.compile(rb"\s*geolife trajectory", re.IGNORECASE)

HEX_ID = rb"[0-9a-f]{24}"

CHECK_IN = re.compile(
    rb"\s*\d+\t" + HEX_ID + rb"\t([^\t\r\n]*\t[^\t\r\n]*\t[^\t\r\n]*\t[^\t\r\n]*\t)?"
    rb"(-?\d+\t\w{3} \w{3} \d\d [\d:]{8} \+0000 \d{4}|\w{3} \w{3} \d\d [\d:]{8} \+0000 \d{4}\t-?\d+)\s*(\n|$)"
)

VENUE = re.compile(rb"\s*" + HEX_ID + rb"\t-?[\d.]+\t-?[\d.]+\t[^\t\r\n]*\t[A-Z]{2}\s*(\n|$)")

GOOGLE = re.compile(
    rb'"(semanticSegments|rawSignals|timelineObjects|latitudeE7|placeVisit|timelinePath|topCandidate|timestampMs)"'
)

ZIP = b"PK\x03\x04"  # a workbook: other archives are refused before

XLS = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # workbooks before 2007

HEAD = 1 << 16  # the first bytes of a file, which tell its format


def recognise(content: bytes, name: str) -> str:
    """Return the name of the format of a file, by its first bytes; "csv" (delimited text) if it is no other."""
    if content[:4] == b"PAR1":
        return "parquet"
    if content[:4] == ZIP or content[:8] == XLS:
        return "excel"
    head = content[:HEAD]
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        head = head[: len(head) & ~1].decode("utf-16", errors="replace").encode(errors="replace")
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] == b"<":
        return _recognise_xml(head, name)
    if head.startswith(b"version https://git-lfs"):
        raise InvalidTraces(f"{name} is a pointer of Git LFS, not the file: `git lfs pull` gets it.", code="E_FORMAT")
    if head[:1] in (b"{", b"["):
        if re.search(rb'"type"\s*:\s*"(Feature|FeatureCollection|MovingFeatures?|MovingPoint)"', head):
            return "geojson"
        return "google" if GOOGLE.search(head) else "json"
    for kind, mark in (("geolife", PLT), ("foursquare", CHECK_IN), ("foursquare", VENUE)):
        if mark.match(head):
            return kind
    return "csv"


def _recognise_xml(head: bytes, name: str) -> str:
    """Return "gpx", or refuse a web page and any other XML."""
    plain = re.sub(rb"<\?.*?\?>|<!--.*?-->", b"", head, flags=re.DOTALL).lstrip()
    if re.match(rb"<(!doctype\s+)?html\b", plain, re.IGNORECASE):
        raise InvalidTraces(f"{name} is a web page, not the file that it offers: download that.", code="E_FORMAT")
    if plain[:2] == b"<!" or re.match(rb"<(\w+:)?gpx\b", plain):
        return "gpx"  # its reader refuses document types
    raise InvalidTraces(
        f"{name} is XML, and no GPX; KML and others are not read: convert it to GPX or CSV.", code="E_FORMAT"
    )


# formats that the ending of a file name announces
PROMISES = {".parquet": ("Parquet", "E_PARQUET"), ".pq": ("Parquet", "E_PARQUET"), ".gz": ("gzip", "E_COMPRESSION")}

# files that are read block by block, and those that are read as a whole
STREAMS: dict[str, Callable[..., Iterator[Table]]] = {
    "csv": read_text,
    "parquet": read_parquet,
    "geolife": read_plt,
    "foursquare": read_foursquare,
}

DOCUMENTS: dict[str, Callable[[Source, FileOptions], Table]] = {
    "excel": read_workbook,
    "geojson": read_geojson,
    "google": read_google,
    "gpx": read_gpx,
    "json": read_records,
}

CONTAINERS = ("auto", *STREAMS, "sglt", *DOCUMENTS)

SMALL = 1 << 23  # bytes of a file that is read at once

FEW = 12  # files of a folder that decide how all of them are read

AT_ONCE = 16  # files in one task, of SMALL bytes together at most
BATCH = 64  # tasks that are submitted at a time


def open_table(source: Any, *, encoding: str = "utf-8", allow_truncated: bool = False) -> Table:
    """
    Return the columns of a file, a folder of files of one format, or a frame (pandas, polars, Arrow, dict of arrays).

    All lines must have as many fields as the first. The parameters are those of `open_parts`.

    Examples
    --------
    >>> open_table({"uid": ["a", "b"], "slot": [0, 1]}).rows
    2

    """
    return open_parts(source, encoding=encoding, allow_truncated=allow_truncated).join()


def open_parts(
    source: Any,
    *,
    container: str = "auto",
    encoding: str = "utf-8",
    roles: Roles | None = None,
    plain_times: bool = True,
    allow_truncated: bool = False,
    executor: Executor | None = None,
) -> Parts:
    """
    Return the columns of a file, a folder or a frame, as tables one after the other.

    `roles` tells which columns are read, and as what; by default all of them, as text. Without `plain_times`, times
    stay text, because the caller has a format for them. A record that is cut off at the end of a file is left out if
    `allow_truncated`. The files of a folder are read on `executor`, which must find them at the same path.
    """
    require_choice("format", container, CONTAINERS)
    try:
        encoding = codecs.lookup(encoding).name
    except (LookupError, TypeError, ValueError):
        raise InvalidParameter(f'`encoding` must be that of a text such as "utf-8", got {encoding!r}.') from None
    options = FileOptions(container, encoding, roles, plain_times, allow_truncated)
    if not isinstance(source, (str, os.PathLike, Source)):
        frame = _read_frame(source, options)
        return Parts(frame.name, frame, lambda: iter((frame,)), list(frame.notes))
    if not isinstance(source, Source):
        if os.path.isdir(source):  # noqa: PTH112 (False for a path that the system rejects)
            return _open_files(source, options, executor)
        source = open_source(source, allow_truncated=allow_truncated)
    kind = recognise(source.piece(HEAD), source.name)
    if container not in ("auto", kind) and {container, kind} != {"csv", "sglt"}:
        code = "E_PARQUET" if container == "parquet" else "E_FORMAT"
        raise InvalidTraces(f"{source.name} is not {container}; it looks like {kind}.", code=code)
    large = kind in STREAMS and (source.packed or source.size > SMALL)
    try:
        tables = list(_read_tables(kind, source, replace(options, sample=large)))
    except InvalidTraces as error:
        # the name announces another format, which is damaged here: that says more than "no text"
        ending = next((end for end in PROMISES if source.name.lower().endswith(end)), None)
        if kind == "csv" and error.code == "E_ENCODING" and ending:
            content, code = PROMISES[ending]
            raise InvalidTraces(f"{source.name} is called {ending} and is no {content} file.", code=code) from None
        raise
    sample = tables[0] if len(tables) == 1 else join_tables(tables, source.name)
    return Parts(source.name, sample, lambda: _read_tables(kind, source, options) if large else iter(tables))


def _read_tables(kind: str, source: Source, options: FileOptions, like: Any = None) -> Iterator[Table]:
    """
    Yield the tables of a file of the format `kind`, with the meaning of their columns if `options.roles` is given.

    Where the file itself is the user, a column says so in every row. Of a file that is cut off, the complete records
    are read if `options.allow_truncated` (B8).
    """
    if kind in DOCUMENTS:
        tables = iter([_read_document(kind, source.load(), options)])
    else:
        tables = read_text(source, options, like) if kind == "csv" else STREAMS[kind](source, options)
    try:
        for table in tables:
            if table.meaning is None and options.roles is not None:
                table = _interpret(table, options.roles)
            if table.meaning is not None and table.meaning.roles.get("user") == FILE:
                table = _add_user(table, source.user)
            yield table
    except AbsentColumn as error:
        raise InvalidTraces(f"{source.name}: {error.args[0]}", code=error.code) from None


def _read_document(kind: str, source: Source, options: FileOptions) -> Table:
    """Return the table of a document; of one that is cut off, what stands before the cut, if that is allowed."""
    if options.allow_truncated and kind != "excel":
        whole = drop_half_character(source.content)
        if len(whole) < len(source.content):
            source = replace(source, raw=whole, size=len(whole), packed=False, cut=True)
    try:
        table = DOCUMENTS[kind](source, replace(options, cut=source.cut))
    except InvalidTraces as error:
        if error.code != "E_TRUNCATED" or not options.allow_truncated or source.cut:
            raise
        source = replace(source, cut=True)
        table = DOCUMENTS[kind](source, replace(options, cut=True))
    if table.rows == 0:
        raise InvalidTraces(f"{source.name} holds no position with a time.", code="E_EMPTY")
    return replace(table, notes=(*table.notes, CUT)) if source.cut else table


def _interpret(table: Table, roles: Roles) -> Table:
    """Return the table with the meaning of its columns; formats with fixed columns need no look at their values."""
    records = first_records(table) if table.format in ("frame", "json", "excel") else ()
    return replace(table, meaning=roles(table.names, table.headed, records))


def _open_files(source: str | os.PathLike[str], options: FileOptions, executor: Executor | None) -> Parts:
    """
    Return the tables of all files of a folder that have its most frequent format, one after the other.

    Where the files name no user, each file (or subfolder) is one user.
    """
    sources = open_folder(source, allow_truncated=options.allow_truncated)
    name = sources[0].name.partition(",")[0]
    kinds, faults = [], []
    for one in sources:
        try:
            kinds.append(recognise(one.piece(HEAD), one.name) if one.size else "")
        except InvalidTraces as fault:  # such as a web page beside the tracks
            kinds.append("")
            faults.append(fault)
    if len(faults) == len(sources):
        raise faults[0]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds) if kind}
    if options.container != "auto":
        counts = {kind: n for kind, n in counts.items() if kind == options.container}
    if not counts:
        raise InvalidTraces(f"{sources[0].name}: no file of the folder can be read.", code="E_EMPTY")
    # of two formats with as many files, plain text loses: notes and labels lie beside tracks
    kind = max(counts, key=lambda k: (counts[k], k not in ("csv", "sglt")))
    own = [s for s, its in zip(sources, kinds, strict=True) if its == kind]
    requested = options.roles

    def roles(names: Sequence[str], headed: bool, records: Sequence[Sequence[str]]) -> Meaning:
        """Return no roles for a table without the columns that the caller names: it lies beside one that has them."""
        try:
            return Meaning({}) if requested is None else requested(names, headed, records)
        except AbsentColumn:
            return Meaning({})

    options = options if requested is None else replace(options, roles=roles)
    few = own if len(own) <= FEW else [own[i * (len(own) - 1) // (FEW - 1)] for i in range(FEW)]
    samples, like = [], None
    for one in few:
        tables = _read_file(kind, one, replace(options, sample=True), like)
        samples += [t for t in tables if has_positions(t.meaning)]
        if like is None and kind == "csv" and samples and samples[0].headed and samples[0].dialect is not None:
            like = samples[0].dialect, samples[0].meaning or Meaning({})
    if not samples:
        # no table can be used: the error will be about the longest
        samples = [t for one in few for t in _read_file(kind, one, replace(options, sample=True, roles=requested))]
        samples = sorted(samples, key=lambda t: -t.rows)[:1]
        name = samples[0].name if samples else name
    if not samples:
        raise InvalidTraces(f"{name}: no file of the folder holds a row.", code="E_EMPTY")
    first = samples[0]
    if kind == "csv" and first.dialect is not None:
        meaning = first.meaning or Meaning({})
        if options.roles is not None and not first.headed:
            names = first.dialect.names
            alike = [t.dialect for t in samples if t.dialect is not None and t.dialect.names == names]
            meaning = options.roles(names, False, [r for dialect in alike for r in dialect.records])
        like = (first.dialect, meaning)
    sample = join_tables(samples, name)
    absent = [] if sample.meaning is None else missing_roles(sample.meaning.roles)
    if absent and first.meaning is not None and not missing_roles(first.meaning.roles):
        other = next(t for t in samples if not {*first.meaning.roles.values()} <= {*t.names})
        raise InvalidTraces(
            f"{first.name}, and {other.name.rpartition(', ')[2]}: tables of different kinds, which have no columns for "
            f"{', '.join(absent)} in common; give one file, or a folder of one kind.",
            code="E_COLUMN",
        )
    parts = Parts(name, sample, lambda: iter(()))
    reader = _FileReader(kind, options, like)
    return replace(parts, tables=lambda: _read_files(sources, own, reader, executor, parts))


@dataclass(frozen=True, eq=False)
class _FileReader:
    """A task for a worker: reads files of a folder, and returns a list of tables for each of them."""

    kind: str
    options: FileOptions = field(repr=False)
    like: Any = field(repr=False)

    def __call__(self, sources: list[Source]) -> list[list[Table]]:
        return [list(self.read(source)) for source in sources]

    def read(self, source: Source) -> Iterator[Table]:
        return _read_file(self.kind, source, self.options, self.like)


def _tables_by_file(sources: list[Source], reader: _FileReader, executor: Executor | None) -> Iterator[Iterator[Table]]:
    """Yield the tables of each file; `executor` reads groups of small files, this process large ones by blocks."""
    if executor is None:
        yield from map(reader.read, sources)
        return
    groups: list[list[Source]] = []
    for source in sources:
        last = groups[-1] if groups else []
        if len(last) in (0, AT_ONCE) or sum(s.size for s in (*last, source)) > SMALL:
            groups.append([])
        groups[-1].append(source)
    for first in range(0, len(groups), BATCH):
        batch = groups[first : first + BATCH]
        results = iterate_over(reader, [group for group in batch if _is_small(group)], executor=executor)
        for group in batch:
            try:
                yield from map(iter, next(results)) if _is_small(group) else map(reader.read, group)
            except InvalidTraces as error:
                if error.code == "E_OPEN":
                    error.add_note(
                        "Workers must find the files of `source` at the same path: a storage that all share."
                    )
                raise


def _is_small(group: list[Source]) -> bool:
    """Tell whether files are small enough together to be read by one task."""
    return len(group) > 1 or (group[0].size <= SMALL and not group[0].packed)


def _read_files(
    sources: list[Source], chosen: list[Source], reader: _FileReader, executor: Executor | None, parts: Parts
) -> Iterator[Table]:
    """
    Yield the tables of the `chosen` files of a folder, and write into the notes of `parts` how many files were read.

    Files without rows, and files without positions, are left out and counted; the latter are named, unless the names of
    files are those of people.
    """
    read = empty = 0
    own = {*map(id, chosen)}
    others = [source for source in sources if id(source) not in own]
    for source, tables in zip(chosen, _tables_by_file(chosen, reader, executor), strict=True):
        rows, odd = 0, False
        for table in tables:
            if not has_positions(table.meaning) and len(chosen) > 1:
                odd = True
                break
            rows += table.rows + table.unequal
            yield table
        read, empty = read + (rows > 0), empty + (rows == 0 and not odd)
        others += [source] if odd else []
    others = [source for source in others if source.path not in parts.tables_of_places]
    meaning = parts.sample.meaning if reader.kind in (*TABLES, "json") else None
    by_column = meaning is not None and meaning.roles.get("user", FILE) != FILE
    names = [printable(source.path.name) for source in others if source.path is not None and by_column]
    listing = f" ({', '.join(names[:3])}{' ...' if len(names) > 3 else ''})" if names else ""
    passed = f"not read, being of another format: {counted(len(others), 'file')} of the folder{listing}"
    parts.notes[:] = [f"{counted(read, 'file')} {'was' if read == 1 else 'were'} read", *([passed] if others else [])]
    parts.notes.extend([f"without rows: {counted(empty, 'file')} of the folder"] if empty else [])


def _read_file(kind: str, source: Source, options: FileOptions, like: Any = None) -> Iterator[Table]:
    """Yield the tables of a file of a folder, none if it is empty; if it has no column of users, the file is one."""
    try:
        for table in _read_tables(kind, source, options, like):
            if kind in (*TABLES, "json") and table.meaning is not None and "user" not in table.meaning.roles:
                table = _add_user(table, source.user)
            yield table
    except InvalidTraces as error:
        if error.code != "E_EMPTY":  # a track that was switched on and off again is no fault
            raise


def _add_user(table: Table, user: str) -> Table:
    """Return the table with a column FILE that holds `user`, the user of its file, in every row."""
    import numpy as np
    import pyarrow as pa

    column = pa.DictionaryArray.from_arrays(np.zeros(table.rows, dtype=np.int32), pa.array([user]))
    meaning = table.meaning or Meaning({})
    meaning = meaning._replace(roles={**meaning.roles, "user": FILE})
    return replace(table, columns={**table.columns, FILE: column}, names=(*table.names, FILE), meaning=meaning)


def _read_frame(source: Any, options: FileOptions) -> Table:
    """Return the table of a frame: pandas, Arrow, or anything that Arrow converts (polars, a dict of arrays)."""
    import pyarrow as pa

    name = "the frame"
    # a pandas frame is recognised by the name of its class, so that pandas need not be imported
    kinds = {(kind.__module__.split(".")[0], kind.__name__) for kind in type(source).__mro__}
    if ("pandas", "DataFrame") in kinds:
        levels = [level for level in source.index.names if level is not None and level not in source.columns]
        frame = source.reset_index(level=levels) if levels else source
        names = [str(column) for column in frame.columns]
        # a column keeps its pandas type until it is read
        columns, rows = {n: frame.iloc[:, i] for i, n in enumerate(names)}, len(frame)
    else:
        try:
            converted = pa.table(source)
        except (TypeError, ValueError, pa.ArrowException):
            raise InvalidParameter(
                f"`source` must be a path, a DataFrame or an Arrow table, got {type(source).__name__}."
            ) from None
        names, rows = converted.column_names, converted.num_rows
        columns = dict(zip(names, converted.columns, strict=True))
    if len({*names}) < len(names):
        refuse_equal_names(names, name)
    if rows == 0:
        raise InvalidTraces(f"{name} holds no rows.", code="E_EMPTY")
    table = Table(name, columns, rows, names=tuple(names))
    return table if options.roles is None else _interpret(table, options.roles)
