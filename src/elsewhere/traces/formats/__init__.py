"""
Open files, folders and frames as tables, one after the other, whatever their format.

Which format a file has is told by its content (`recognise`), never by its name. A reader is a function from a file to
named columns, `user`, `time` (or `utc`), `lat` and `lon`, so that everything after it is the same for all formats.
`streams` come as one table per block, so that no large file ever stands in memory; `documents` are read as a whole. A
new format needs its reader in one of these two files, a pattern in `recognise`, and a line in `STREAMS` or `DOCUMENTS`.
"""

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

from elsewhere.errors import InvalidParameter, InvalidTraces, counted, require_choice
from elsewhere.scale import each_of
from elsewhere.traces.columns import FILE, Meaning, Roles
from elsewhere.traces.formats.documents import (
    read_geojson,
    read_google,
    read_gpx,
    read_owntracks,
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
    check_names,
    first_records,
    has_positions,
    joined_tables,
    open_folder,
    open_source,
    whole_characters,
)

PLT = re.compile(rb"\s*geolife trajectory", re.IGNORECASE)

REC = re.compile(rb"\s*[^\t\r\n]{1,40}\t[^\t\r\n]{0,80}\t\{")

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

HEAD = 1 << 16  # the first of a file, in which it must show what it is


def recognise(content: bytes, name: str) -> str:
    """Return the name of the format of a file, by its first bytes; what is nothing else is delimited text."""
    if content[:4] == b"PAR1":
        return "parquet"
    if content[:4] == ZIP or content[:8] == XLS:
        return "excel"
    head = content[:HEAD]
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        head = head[: len(head) & ~1].decode("utf-16", errors="replace").encode(errors="replace")
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] == b"<":
        return _xml(head, name)
    if head.startswith(b"version https://git-lfs"):
        raise InvalidTraces(f"{name} is a pointer of Git LFS, not the file: `git lfs pull` gets it.", code="E_FORMAT")
    if head[:1] in (b"{", b"["):
        return _json(head)
    for kind, mark in (("geolife", PLT), ("owntracks", REC), ("foursquare", CHECK_IN), ("foursquare", VENUE)):
        if mark.match(head):
            return kind
    return "csv"


def _xml(head: bytes, name: str) -> str:
    plain = re.sub(rb"<\?.*?\?>|<!--.*?-->", b"", head, flags=re.DOTALL).lstrip()
    if re.match(rb"<(!doctype\s+)?html\b", plain, re.IGNORECASE):
        raise InvalidTraces(f"{name} is a web page, not the file that it offers: download that.", code="E_FORMAT")
    if plain[:2] == b"<!" or re.match(rb"<(\w+:)?gpx\b", plain):
        return "gpx"  # a document type is refused there, whatever it announces
    raise InvalidTraces(
        f"{name} is XML, and no GPX; KML and others are not read: convert it to GPX or CSV.", code="E_FORMAT"
    )


def _json(head: bytes) -> str:
    if re.search(rb'"_type"\s*:', head):
        return "owntracks"
    if re.search(rb'"type"\s*:\s*"(Feature|FeatureCollection|MovingFeatures?|MovingPoint)"', head):
        return "geojson"
    return "google" if GOOGLE.search(head) else "json"


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
    "owntracks": read_owntracks,
}

CONTAINERS = ("auto", *STREAMS, "sglt", *DOCUMENTS)

SMALL = 1 << 23  # bytes of a file that is read at once

FEW = 12  # files of a folder on which is decided how all are read

AT_ONCE = 16  # files in a piece of work, of SMALL bytes together at most
BATCH = 64  # pieces that are asked for at a time


def open_table(source: Any, *, encoding: str = "utf-8", allow_truncated: bool = False) -> Table:
    """
    Return the columns of a file, a folder of files of one format, or a frame (pandas, polars, Arrow, dict of arrays).

    All lines must have as many fields as the first; the rest is as for `open_parts`.

    Examples
    --------
    >>> open_table({"uid": ["a", "b"], "slot": [0, 1]}).rows
    2

    """
    return open_parts(source, encoding=encoding, allow_truncated=allow_truncated).joined()


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

    `roles` tells which columns are wanted, and as what; by default all of them, as text. Times that are not `plain`
    stay text whatever they look like: the caller has a format for them. What follows a cut is left out if
    `allow_truncated`. The files of a folder are read on `executor`, which must find them at the same path.
    """
    require_choice("format", container, CONTAINERS)
    options = FileOptions(container, encoding, roles, plain_times, allow_truncated)
    if isinstance(source, Source):
        return _file(source, options)
    if not isinstance(source, (str, os.PathLike)):
        return _one(_asked(_frame(source), options))
    if os.path.isdir(source):  # noqa: PTH112 (no, where that cannot even be asked)
        return _folder(source, options, executor)
    return _file(open_source(source, allow_truncated=allow_truncated), options)


def _one(table: Table) -> Parts:
    return Parts(table.name, table, lambda: iter((table,)), list(table.notes))


def _file(source: Source, options: FileOptions) -> Parts:
    kind = recognise(source.piece(HEAD), source.name)
    requested = options.container
    if requested not in ("auto", kind) and {requested, kind} != {"csv", "sglt"}:
        code = "E_PARQUET" if requested == "parquet" else "E_FORMAT"
        raise InvalidTraces(f"{source.name} is not {requested}; it looks like {kind}.", code=code)
    large = kind in STREAMS and (source.packed or source.size > SMALL)
    try:
        tables = list(_read_as(kind, source, replace(options, sample=large)))
    except InvalidTraces as error:
        # no text, and by its name it should not be: say what is missing rather than what was found
        ending = next((end for end in PROMISES if source.name.lower().endswith(end)), None)
        if kind == "csv" and error.code == "E_ENCODING" and ending:
            content, code = PROMISES[ending]
            raise InvalidTraces(f"{source.name} is called {ending} and is no {content} file.", code=code) from None
        raise
    sample = tables[0] if len(tables) == 1 else joined_tables(tables, source.name)
    return Parts(source.name, sample, lambda: _read_as(kind, source, options) if large else iter(tables))


def _read_as(kind: str, source: Source, options: FileOptions, like: Any = None) -> Iterator[Table]:
    """Yield the tables of a file of a known format; of one that is cut off, what is whole, if that is allowed (B8)."""
    if kind in DOCUMENTS:
        yield _document(kind, source.held(), options)
        return
    tables = read_text(source, options, like) if kind == "csv" else STREAMS[kind](source, options)
    for table in tables:
        yield _asked(table, options, source.user)


def _document(kind: str, source: Source, options: FileOptions) -> Table:
    if options.allow_truncated and kind != "excel":
        whole = whole_characters(source.content)
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
    return _asked(replace(table, notes=(*table.notes, CUT)) if source.cut else table, options, source.user)


def _asked(table: Table, options: FileOptions, user: str | None = None) -> Table:
    """Return the table with what its columns mean, if that is asked, and a column of `user` where that is the file."""
    if options.roles is not None and table.meaning is None:
        records = first_records(table) if table.format in ("frame", "json", "excel") else ()
        table = replace(table, meaning=options.roles(table.names, table.headed, records))
    by_file = user is not None and table.meaning is not None and table.meaning.roles.get("user") == FILE
    return _with_user(table, str(user)) if by_file else table


def _folder(source: str | os.PathLike[str], options: FileOptions, executor: Executor | None) -> Parts:
    """Return all files of the commonest format, one after the other; without users in them, a file or folder is one."""
    sources = open_folder(source, allow_truncated=options.allow_truncated)
    name = sources[0].name.partition(",")[0]
    kinds, faults = [], []
    for one in sources:
        try:
            kinds.append(recognise(one.piece(HEAD), one.name) if one.size else "")
        except InvalidTraces as fault:  # a web page, say, beside the tracks
            kinds.append("")
            faults.append(fault)
    if len(faults) == len(sources):
        raise faults[0]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds) if kind}
    if options.container != "auto":
        counts = {kind: n for kind, n in counts.items() if kind == options.container}
    if not counts:
        raise InvalidTraces(f"{sources[0].name}: no file of the folder can be read.", code="E_EMPTY")
    # a tie is broken in favour of what is no plain text: notes and labels lie beside tracks
    kind = max(counts, key=lambda k: (counts[k], k not in ("csv", "sglt")))
    own = [s for s, its in zip(sources, kinds, strict=True) if its == kind]
    few = own if len(own) <= FEW else [own[i * (len(own) - 1) // (FEW - 1)] for i in range(FEW)]
    samples, like = [], None
    for one in few:
        opened = _tables_of(kind, one, replace(options, sample=True), like)
        samples += [t for t in opened if has_positions(t.meaning)]
        if like is None and kind == "csv" and samples and samples[0].headed and samples[0].dialect is not None:
            like = samples[0].dialect, samples[0].meaning or Meaning({})
    if not samples:
        # say of the longest what is wrong with it
        samples = [t for one in few for t in _tables_of(kind, one, replace(options, sample=True))]
        samples = sorted(samples, key=lambda t: -t.rows)[:1]
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
    notes: list[str] = []
    opening = _Opening(kind, options, like)
    return Parts(name, joined_tables(samples, name), lambda: _each(sources, own, opening, executor, notes), notes)


@dataclass(frozen=True, eq=False)
class _Opening:
    """The tables of some files of a folder, of each file a list."""

    kind: str
    options: FileOptions = field(repr=False)
    like: Any = field(repr=False)

    def __call__(self, some: list[Source]) -> list[list[Table]]:
        return [list(self.one_by_one(source)) for source in some]

    def one_by_one(self, source: Source) -> Iterator[Table]:
        return _tables_of(self.kind, source, self.options, self.like)


def _opened(sources: list[Source], opening: _Opening, executor: Executor | None) -> Iterator[Iterator[Table]]:
    """Yield the tables of each file; small files are read by the piece on `executor`, large ones block by block."""
    if executor is None:
        yield from map(opening.one_by_one, sources)
        return
    pieces: list[list[Source]] = []
    for source in sources:
        last = pieces[-1] if pieces else []
        if len(last) in (0, AT_ONCE) or sum(s.size for s in (*last, source)) > SMALL:
            pieces.append([])
        pieces[-1].append(source)
    for first in range(0, len(pieces), BATCH):
        batch = pieces[first : first + BATCH]
        results = each_of(opening, [some for some in batch if _is_small(some)], executor=executor)
        for some in batch:
            try:
                yield from map(iter, next(results)) if _is_small(some) else map(opening.one_by_one, some)
            except InvalidTraces as error:
                if error.code == "E_OPEN":
                    error.add_note(
                        "Workers must find the files of `source` at the same path: a storage that all share."
                    )
                raise


def _is_small(some: list[Source]) -> bool:
    return len(some) > 1 or (some[0].size <= SMALL and not some[0].packed)


def _each(
    sources: list[Source], chosen: list[Source], opening: _Opening, executor: Executor | None, notes: list[str]
) -> Iterator[Table]:
    """Yield the tables of all files of one kind; those without rows or positions are passed over and counted."""
    read = empty = others = 0
    for tables in _opened(chosen, opening, executor):
        rows, odd = 0, False
        for table in tables:
            if not has_positions(table.meaning) and len(chosen) > 1:
                odd = True
                break
            rows += table.rows + table.unequal
            yield table
        read, empty, others = read + (rows > 0), empty + (rows == 0 and not odd), others + odd
    others += len(sources) - len(chosen)
    notes[:] = [f"{counted(read, 'file')} {'was' if read == 1 else 'were'} read"]
    notes += [f"not read, being of another format: {counted(others, 'file')} of the folder"] if others else []
    notes += [f"without rows: {counted(empty, 'file')} of the folder"] if empty else []


def _tables_of(kind: str, source: Source, options: FileOptions, like: Any = None) -> Iterator[Table]:
    """Return the tables of a file of a folder, none if it is empty; without a user of their own the file is one."""
    try:
        for table in _read_as(kind, source, options, like):
            if kind in (*TABLES, "json") and table.meaning is not None and "user" not in table.meaning.roles:
                table = _with_user(table, source.user)
            yield table
    except InvalidTraces as error:
        if error.code != "E_EMPTY":
            raise  # a track that was switched on and off again is no fault


def _with_user(table: Table, user: str) -> Table:
    """Return the table with a column that says its file's user in every row."""
    import numpy as np
    import pyarrow as pa

    column = pa.DictionaryArray.from_arrays(np.zeros(table.rows, dtype=np.int32), pa.array([user]))
    meaning = table.meaning or Meaning({})
    meaning = meaning._replace(roles={**meaning.roles, "user": FILE})
    return replace(table, columns={**table.columns, FILE: column}, names=(*table.names, FILE), meaning=meaning)


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
        levels = [level for level in source.index.names if level is not None and level not in source.columns]
        frame = source.reset_index(level=levels) if levels else source
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
