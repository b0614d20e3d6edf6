"""
Open an input as bytes (`Source`) and as columns (`Table`), and read the values of columns: labels, numbers, points.

A source is a file, standard input or a folder of files. It is unpacked in pieces, with limits on their size. Every
field of a text file stays text until its role is known, so that no id loses a digit and no type is guessed from a part
of the rows (B45-B48). Messages name file, line and code, never content.
"""

import codecs
import csv
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from elsewhere.errors import InvalidTraces
from elsewhere.traces.columns import NUMBER, PAIR_OF_NUMBERS, WIDE, Meaning, Roles, normalize_name
from elsewhere.traces.model import Floats, Ints

MAX_BYTES = 64 << 30  # of one file, unpacked, that is read in blocks
MAX_HELD = 4 << 30  # of a file of a format that is read as a whole
BOMB = 1 << 30, 200  # no text unpacks to more bytes than the first and to more than the second times its size (B10)
MOST_FILES = 200_000
CHUNK = 1 << 22
GZIP = b"\x1f\x8b"
ARCHIVES = {b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"7z\xbc\xaf": "7z", b"\x28\xb5\x2f\xfd": "zstd"}
SHEETS = (
    b"[Content_Types].xml",
    b"_rels/.rels",
    b"xl/",
    b"docProps/",
    b"application/vnd.oasis.opendocument.spreadsheet",
)
# bytes that a row of fixes takes at the peak of reading, beside 0.2 GB for the libraries (measured: 77, for 25 million
# rows of CSV); `prepare` checks the memory for slots
BYTES_A_ROW = 80
try:
    MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")  # bytes of this machine
except (AttributeError, OSError, ValueError):
    MEMORY = 16 << 30  # where the system does not tell
# byte order marks, and the encodings that they name
MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
NOT_TEXT = np.zeros(256, dtype=bool)
NOT_TEXT[[*range(9), 11, 12, *range(14, 32), 127]] = True
CUT = "the file is cut off: its last line or record was left out"
TABLES = ("csv", "parquet", "sglt", "excel")
LONGEST_TEXT = 256  # characters of a field that is accepted in any number of rows
RECORDS = 500  # rows that tell the kind of the columns of a frame
HELD_ROW = 400  # bytes that a row takes where a table is read as a whole
BLANKS = " "  # runs of blanks and tabs
LONGEST_LABEL = 256
ESCAPED = str.maketrans({" ": "\\ ", "\\": "\\\\"})
SAFE_WHOLE = 2.0**53
LON_FIRST = ("lonlat", "lnglat", "longlat")
# degrees with a sign or a letter of the compass; then perhaps minutes, and seconds
SEXAGESIMAL = (
    r"^\s*(?P<before>[NSEWnsew]?)\s*(?P<d>[+-]?\d{1,3}(?:\.\d+)?)\s*[\x{b0}\x{ba}]\s*(?:(?P<m>\d{1,2}(?:\.\d+)?)\s*['\x{2032}]"
    r"\s*)?(?:(?P<s>\d{1,2}(?:\.\d+)?)\s*(?:\"|\x{2033}|''))?\s*(?P<after>[NSEWnsew]?)\s*$"
)
LINE = r"^\s*(?:\[\s*[\[\]]|$)"  # a list of points, as in the taxis of Porto
UNCHANGED = ("st_size", "st_mtime_ns")  # of a file, from when it is opened until it is read
UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]")


@dataclass(frozen=True)
class Source:
    """
    One file: its name in messages, its user where the format names none, and access to its unpacked bytes.

    `user` is the name of the file without endings, or of the folder it is in. `size` is that of the
    stored bytes, packed or not. `raw` holds the bytes of an input that can be read only once, `about` the status of a
    file when it was opened. `encoding` is the one that a byte order mark names, "" without a mark. `cut` says that
    bytes are missing at the end, and that the caller allows it.
    """

    name: str
    user: str = field(repr=False)
    size: int
    raw: bytes | None = field(default=None, repr=False)
    path: Path | None = field(default=None, repr=False)
    about: os.stat_result | None = field(default=None, repr=False)
    packed: bool = False
    allow_truncated: bool = False
    cut: bool = False
    encoding: str = ""

    @property
    def content(self) -> bytes:
        """Return all bytes, unpacked."""
        return self.raw if self.raw is not None and not self.packed else self.load().raw or b""

    def load(self) -> "Source":
        """Return the same file with its unpacked bytes in memory; refuse it if they are too many."""
        whole, cut = bytearray(), self.cut
        for part in self.blocks():
            cut = cut or part is None
            whole += part or b""
            if len(whole) > min(MAX_HELD, MAX_BYTES):
                raise InvalidTraces(f"{self.name} holds more than {MAX_HELD >> 30} GiB.", code="E_TOO_LARGE")
        return replace(self, raw=bytes(whole), size=len(whole), packed=False, cut=cut)

    def piece(self, size: int, at: int = 0) -> bytes:
        """Return `size` bytes from position `at`; of a packed file only the first can be read."""
        if self.packed:
            first = bytearray()
            for part in self.blocks():
                first += part or b""
                if len(first) >= size:
                    break
            return bytes(first[:size])
        if self.raw is not None or self.path is None:
            return (self.raw or b"")[at : at + size]
        try:
            with self.path.open("rb") as file:
                file.seek(at)
                return file.read(size)
        except OSError as error:
            raise InvalidTraces(f"{self.name} cannot be opened: {error.strerror}.", code="E_OPEN") from None

    def blocks(self) -> Iterator[bytes | None]:
        """
        Yield the unpacked bytes in pieces, and None at the end of a gzip file that is cut off, if that is allowed.

        A file that was changed since it was opened is refused at its end (B55).
        """
        size, checksum, second, path, same = 0, 0, 0, self.path if self.raw is None else None, True
        try:
            try:
                with io.BytesIO(self.raw or b"") if path is None else path.open("rb") as file:
                    stream: Any = gzip.GzipFile(fileobj=file) if self.packed else file
                    while part := stream.read1(CHUNK):  # `read` would lose what stands before a cut
                        size += len(part)
                        if self.packed and (size > MAX_BYTES or (size > BOMB[0] and size > BOMB[1] * self.size)):
                            fault = f"{self.name} unpacks to more than {size >> 30} GiB."
                            raise InvalidTraces(fault, code="E_TOO_LARGE")
                        if path is not None and file.tell() > self.size:
                            break  # the file grows
                        checksum = zlib.crc32(part, checksum)
                        yield part
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                growing = path is not None and path.stat().st_size != self.size
                # a wrong checksum is damage, and no cut
                if not growing and not (isinstance(error, EOFError) and self.allow_truncated and size):
                    fault = f"{self.name} is a damaged or truncated gzip file."
                    raise InvalidTraces(fault, code="E_COMPRESSION") from None
                if not growing:
                    yield None
            if path is not None and self.about is not None:
                now = path.stat()
                same = all(getattr(now, what) == getattr(self.about, what) for what in UNCHANGED)
                if same and now.st_ctime_ns != self.about.st_ctime_ns:
                    # other rights or links, or other bytes under the old time: read again and compare
                    for again in replace(self, about=None).blocks():
                        second = zlib.crc32(again or b"", second)
                    same = second == checksum
        except OSError as error:
            raise InvalidTraces(f"{self.name} cannot be read: {error.strerror}.", code="E_OPEN") from None
        if not same:
            raise InvalidTraces(f"{self.name} changed while it was read.", code="E_OPEN")


def check_memory(rows: int, name: str, each: int = BYTES_A_ROW) -> None:
    """Refuse a table that does not fit into memory, with `each` bytes per row (B10, B43)."""
    need = rows * each
    if need > MEMORY:
        raise InvalidTraces(
            f"{name}: {rows} rows need about {need / 2**30:.0f} GiB of memory, and there are {MEMORY / 2**30:.0f}; "
            "read it in parts.",
            code="E_TOO_LARGE",
        )


def load_pipe(source: Any, *, allow_truncated: bool = False) -> Any:
    """Return the content of standard input or of a pipe, which can be read only once; anything else as it is (B55)."""
    if not isinstance(source, (str, os.PathLike)):
        return source
    try:
        pipe = os.fspath(source) == "-" or stat.S_ISFIFO(Path(source).stat().st_mode)
    except (OSError, ValueError):
        return source
    return open_source(source, allow_truncated=allow_truncated) if pipe else source


def open_source(source: str | os.PathLike[str], *, allow_truncated: bool = False, name: str = "") -> Source:
    """
    Return the file at a path; "-" is standard input. Archives other than gzip are refused.

    `name` is what messages call it, by default its own name. `allow_truncated` allows a gzip file that is cut off.
    """
    path = Path(source)
    name = name or printable(path.name)
    try:
        if os.fspath(source) == "-":
            name, raw = "standard input", _read_stream(sys.stdin.buffer, "standard input")
            file = Source(name, "one", len(raw), raw)
        else:
            about, folder = path.stat(), path.absolute().parent
            stem, _, ending = path.name.removesuffix(".gz").removesuffix(".GZ").rpartition(".")
            # GeoLife keeps the files of a user in USER/Trajectory
            user = (folder.parent.name if folder.name == "Trajectory" else "") or stem or ending
            file = Source(name, user, about.st_size, None, path, about)
            if stat.S_ISFIFO(about.st_mode) and path.parent.as_posix() in ("/dev/fd", "/proc/self/fd"):
                with path.open("rb") as pipe:  # process substitution (B55)
                    raw = _read_stream(pipe, name)
                file = Source(name, user, len(raw), raw)
            elif not stat.S_ISREG(about.st_mode):
                # a pipe or a device would block or never end
                raise InvalidTraces(f"{name} is not a regular file.", code="E_OPEN")
        if file.size > MAX_BYTES:
            raise InvalidTraces(f"{name} is larger than {MAX_BYTES >> 30} GiB.", code="E_TOO_LARGE")
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidTraces):
            raise
        reason = getattr(error, "strerror", None) or "not a usable file name"
        raise InvalidTraces(f"{name} cannot be opened: {reason}.", code="E_OPEN") from None
    for packed in (False, True):
        file = replace(file, packed=packed, allow_truncated=allow_truncated)
        first = file.piece(2048)
        kind = "tar" if first[257:262] == b"ustar" else None
        kind = next((kind for mark, kind in ARCHIVES.items() if first.startswith(mark)), kind)
        if kind and not (kind == "zip" and any(mark in first[30:] for mark in SHEETS)):
            raise InvalidTraces(f"{name} is a {kind} archive; unpack it first.", code="E_COMPRESSION")
        if first[:2] != GZIP:
            mark = next((mark for mark in MARKS if first.startswith(mark)), b"")
            return replace(file, encoding=MARKS.get(mark, ""))
    raise InvalidTraces(f"{name} is an archive in an archive; unpack it first.", code="E_COMPRESSION")


def open_folder(source: str | os.PathLike[str], *, allow_truncated: bool = False) -> list[Source]:
    """
    Return the files of a folder and its subfolders, in the order of their paths, without hidden files and links.

    Messages call a file by its number: in a folder of one file per person its name is that person's id. The user is the
    first subfolder that the file is in, else the name of the file; in GeoLife the folder above `Trajectory`.
    """
    root = Path(source)
    name = printable(root.name)
    try:
        candidates = []
        for folder, inner, names in os.walk(root, followlinks=False):
            inner[:] = sorted(each for each in inner if not each.startswith("."))
            candidates += [Path(folder, each) for each in names if not each.startswith((".", "_"))]
            if len(candidates) > MOST_FILES:
                raise InvalidTraces(f"{name} holds more than {MOST_FILES} files.", code="E_TOO_LARGE")
        paths = sorted(path for path in candidates if path.is_file() and not path.is_symlink())
    except OSError as error:
        raise InvalidTraces(f"{name} cannot be opened: {error.strerror}.", code="E_OPEN") from None
    if not paths:
        raise InvalidTraces(f"{name} is a folder without files.", code="E_OPEN")
    files = []
    for number, path in enumerate(paths, 1):
        file = open_source(path, allow_truncated=allow_truncated, name=f"{name}, file {number} of {len(paths)}")
        inside = path.relative_to(root).parts
        if len(inside) > 1 and path.parent.name != "Trajectory":
            file = replace(file, user=inside[0])
        files.append(file)
    return files


def printable(name: str) -> str:
    """Return a file name that stays on one line (B60)."""
    return name if name.isprintable() else ascii(name)


def _read_stream(stream: BinaryIO, name: str) -> bytes:
    """Return all bytes of standard input or of a pipe; refuse it if they are too many."""
    content = bytearray()
    try:
        while part := stream.read(CHUNK):
            content += part
            if len(content) > min(MAX_HELD, MAX_BYTES):
                raise InvalidTraces(f"{name} is larger than {MAX_HELD >> 30} GiB; name a file.", code="E_TOO_LARGE")
    except OSError as error:
        raise InvalidTraces(f"{name} cannot be read: {error.strerror}.", code="E_OPEN") from None
    return bytes(content)


def drop_half_character(content: bytes) -> bytes:
    """Return a text without half a UTF-8 character at its end; a shorter text was cut off."""
    tail = content[-3:]
    lead = next((at for at in reversed(range(len(tail))) if tail[at] >= 0xC0), None)
    if lead is None or len(tail) - lead >= 2 + (tail[lead] >= 0xE0) + (tail[lead] >= 0xF0):
        return content
    return content[: len(content) - len(tail) + lead]


def as_utf8(source: Source, encoding: str) -> bytes:
    """Return a document in UTF-8, without a byte order mark; refuse bytes that are no text (B3-B6)."""
    content, name, own_encoding = source.content, source.name, source.encoding or encoding
    try:
        text = content.decode(own_encoding)
        content = text.encode("utf-8") if own_encoding != "utf-8" else content
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidTraces(f"{name}, line {line}: not {encoding} text; give `encoding`.", code="E_ENCODING") from None
    except UnicodeEncodeError:
        raise InvalidTraces(f"{name}: half a character (a lone surrogate) in the text.", code="E_ENCODING") from None
    content = content.removeprefix(codecs.BOM_UTF8)
    bad = NOT_TEXT[np.frombuffer(content, np.uint8)]
    if bad.any():
        line = content.count(b"\n", 0, int(np.argmax(bad))) + 1
        raise InvalidTraces(f"{name}, line {line}: a control character in the text.", code="E_ENCODING")
    return content


@dataclass(frozen=True)
class Dialect:
    """
    How a text is divided into named columns.

    `skip` lines stand before the first row of data: blank lines, comments, the line of names (`head` is that line as it
    stands in the file), units. `comma` says that numbers have decimal commas. `records` are the fields of some rows.
    Without names (`headed` is False) columns are called #1, #2, ... `quotes` is False where quotes have no meaning.
    """

    delimiter: str
    names: tuple[str, ...]
    headed: bool
    skip: int
    head: bytes = b""
    comma: bool = False
    records: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    quotes: bool = True


@dataclass(frozen=True, eq=False)
class Table:
    """
    Named columns of equal length, and where they came from.

    `headed` is False for a text file without a line of names: its columns are called #1, #2, ... `names` are all
    columns of the file, `columns` those that were read, `meaning` what they mean if the caller wanted to know. Lines
    with more or fewer fields than the first were left out: `unequal` counts them, and `fault` is the error about the
    first. A block of a text has `before` lines before it, and `skip` lines before its first row.
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
    meaning: Meaning | None = None
    dialect: "Dialect | None" = field(default=None, repr=False)
    skip: int = 0
    before: int = 0
    fixed: Mapping[str, int] = field(default_factory=dict)
    origin: Any = field(default=None, repr=False)  # which row of the file each row is, where some are left out
    comma: bool = False  # its numbers have decimal commas

    def column(self, name: str, *, encoded: bool = False) -> Any:
        """Return a column as Arrow values, as text where Arrow has no type; labels stay codes if `encoded`."""
        import pyarrow as pa

        column = self.columns[name]
        if not isinstance(column, (pa.Array, pa.ChunkedArray)):
            column = _to_arrow(column)
        if isinstance(column, pa.Array):
            column = pa.chunked_array([column])
        if pa.types.is_dictionary(column.type) and not encoded:
            return column.cast(column.type.value_type)
        return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column

    def label(self, name: str) -> str:
        """Return the name of a column for messages: its number where the name could be somebody's data."""
        labels = self.meaning.labels if self.meaning is not None else ()
        return dict(zip(self.names, labels, strict=False)).get(name, name)

    def position(self, row: int) -> str:
        """Return file and line of data row `row` (from 0), or its row or record where the file is no text."""
        if self.origin is not None:
            return replace(self, origin=None).position(int(self.origin[row]))
        for part in self.files:
            if row < part.rows:
                return part.position(row)
            row -= part.rows
        if self.text is None:
            row += self.before + 1
            # a reader of documents skips what is no fix, and does not count it
            return f"{self.name}, " + (
                f"row {row}" if self.format in ("frame", "parquet") else f"record {row} of those read"
            )
        if self.dialect is not None:
            for line, record in parse_records(self.text.decode(), self.dialect.delimiter, self.dialect.quotes):
                # lines of another width are no rows
                row -= line > self.skip and len(record) == len(self.dialect.names)
                if row < 0:
                    return f"{self.name}, line {self.before + line}"
        return self.name

    def error(self, what: str, code: str, row: int | None = None) -> InvalidTraces:
        """Return an error that names the file, the line of `row`, and what is wrong there."""
        return InvalidTraces(f"{self.name if row is None else self.position(row)}: {what}", code=code)


def parse_records(text: str, delimiter: str, quotes: bool = True) -> Iterator[tuple[int, list[str]]]:
    """Yield every record that is not blank, with the line it starts on; slow, for samples and messages."""
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter="\t" if delimiter == BLANKS else delimiter,
        quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE,
    )
    start = 1
    try:
        for record in reader:
            if record:
                yield start, record
            start = reader.line_num + 1
    except csv.Error:  # a field that is longer than any accepted one
        return


@dataclass(frozen=True)
class FileOptions:
    """
    How files are to be read, the same for all files of a folder.

    `cut` tells the reader that the file is cut off and that this is allowed: it leaves out the last line or record.
    With `sample`, only some rows of a large file are read, from its beginning, middle and end.
    """

    container: str = "auto"
    encoding: str = "utf-8"
    roles: Roles | None = None
    plain_times: bool = True
    allow_truncated: bool = False
    cut: bool = False
    sample: bool = False


@dataclass(frozen=True, eq=False)
class Parts:
    """
    An input as tables one after the other.

    Decisions that hold for all tables are made on `sample`, which is the whole of a small input. `tables` starts a new
    pass over the input; `notes` is complete after a pass. `tables_of_places` are files of a folder that a caller uses.
    """

    name: str
    sample: Table
    tables: Callable[[], Iterator[Table]] = field(repr=False)
    notes: list[str] = field(default_factory=list)
    tables_of_places: set[Path] = field(default_factory=set)

    def join(self, *, unequal: bool = False) -> Table:
        """Return all tables as one; lines with more or fewer fields than the first are refused unless allowed (B8)."""
        tables = list(self.tables())
        whole = join_tables(tables, self.name, list(self.notes))
        if whole.unequal and not (unequal and whole.rows):
            raise next(table.fault for table in tables if table.fault is not None)
        return whole


def join_tables(tables: list[Table], name: str, notes: Sequence[str] = ()) -> Table:
    """Return one table with the rows of all and the columns that all of them have."""
    import pyarrow as pa

    first = tables[0]
    notes = list(notes)
    all_notes = [note for t in tables for note in t.notes]
    several = len({t.name for t in tables}) > 1
    notes += [f"{note} ({all_notes.count(note)} files)" if several else note for note in dict.fromkeys(all_notes)]
    if len(tables) == 1:
        return replace(first, name=name, notes=tuple(notes))
    columns = {}
    for n in (n for n in first.columns if all(n in t.columns for t in tables)):
        parts = [t.column(n, encoded=True) for t in tables]
        # a column that has several types in several files is text in all of them (B48)
        if len({part.type for part in parts}) > 1:
            if any(pa.types.is_timestamp(part.type) for part in parts):
                utc = pa.timestamp("us", "UTC")
                parts = [part.cast(utc) if getattr(part.type, "tz", None) else part for part in parts]
            if len({part.type for part in parts}) > 1:
                parts = [part.cast(pa.string()) for part in parts]
        columns[n] = pa.chunked_array([chunk for part in parts for chunk in part.chunks])
    # a column that some file lacks is left out, and has no role
    names = tuple(n for n in first.names if all(n in t.names for t in tables))
    # messages need the name, the number of rows and the text of each file
    files = tuple(replace(t, columns={}) for t in tables)
    rows = sum(t.rows for t in tables)
    check_memory(rows, name, HELD_ROW)
    meaning = first.meaning
    if meaning is not None:
        meaning = meaning._replace(roles={role: n for role, n in meaning.roles.items() if n in names})
    repairs = {what: sum(t.fixed.get(what, 0) for t in tables) for t in tables for what in t.fixed}
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
        meaning=meaning,
        fixed=repairs,
        comma=any(t.comma for t in tables),
    )


def refuse_equal_names(names: Sequence[str], name: str) -> None:
    """Refuse columns of which two have one name."""
    # the message does not show the name: where the line of names is missing, it is somebody's data
    for number, column in enumerate(names):
        if column in names[:number]:
            raise InvalidTraces(
                f"{name}: columns {names.index(column) + 1} and {number + 1} have one name; rename one.",
                code="E_COLUMN",
            )


def has_positions(meaning: Meaning | None) -> bool:
    """Tell whether columns tell time and place; True where the meaning of columns was not determined."""
    roles = set() if meaning is None else set(meaning.roles)
    when = {"time", "utc", "local", "date", "arrived", "slot"}
    return meaning is None or f"{WIDE}0" in roles or bool({"lat", "geometry", "place"} & roles and when & roles)


def first_records(table: Table) -> list[tuple[str, ...]]:
    """Return the first rows of a table that is no text, as text."""
    n = min(RECORDS, table.rows)
    few = {name: column.iloc[:n] if hasattr(column, "iloc") else column[:n] for name, column in table.columns.items()}
    first = replace(table, columns=few, rows=n)
    records = []
    for name in table.names:
        try:
            records.append([_format_value(value) for value in first.column(name).to_pylist()])
        except (ValueError, OverflowError):
            records.append([""] * n)  # times of no calendar, or text that is no text: reported when they are read
    return list(zip(*records, strict=True))


def _format_value(value: Any) -> str:
    """Return a value as text; midnight as a date, because frames and spreadsheets keep dates so."""
    if isinstance(value, datetime) and value.time() == time.min:
        return value.date().isoformat()
    return "" if value is None else str(value)[:LONGEST_TEXT]


def _to_arrow(column: Any) -> Any:
    """Return a pandas column as Arrow values, as text where Arrow has no type for them."""
    import pyarrow as pa

    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        missing = column.isna()
        return pa.array([None if m else str(v) for v, m in zip(column, missing, strict=True)], pa.string())


def read_labels(table: Table, name: str) -> tuple[Ints, tuple[str, ...]]:
    """
    Return a column of ids as (number of each row's label, labels); -1 where there is none, -2 where it is unreadable.

    Labels are text, compared exactly (B45-B47). They are in numerical order if all are whole numbers, else in the order
    of their characters, so that the order of rows in the file does not matter (B28).
    """
    import pyarrow as pa

    column = table.column(name, encoded=True)
    if pa.types.is_dictionary(column.type) and not is_text(column.type.value_type):
        column = table.column(name)
    if pa.types.is_dictionary(column.type):
        pass
    elif not (is_text(column.type) or pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        try:
            column = column.cast(pa.string())
        except pa.ArrowException:
            raise table.error(f"column {table.label(name)!r} holds no ids.", "E_USER") from None
    dictionary = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    dictionary = dictionary.unify_dictionaries().combine_chunks()
    values = dictionary.dictionary.to_pylist()
    if pa.types.is_floating(dictionary.dictionary.type):
        # frames turn whole numbers into decimals where a value is missing
        if any(v == v and abs(v) >= SAFE_WHOLE for v in values):
            raise table.error(
                f"column {table.label(name)!r} holds whole numbers that have lost digits; give text.", "E_USER"
            )
        values = ["" if v != v else str(int(v)) if v == int(v) else repr(v) for v in values]
    text = ["" if v is None else str(v) for v in values]
    codes = np.asarray(dictionary.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    too_long = [i for i, v in enumerate(text) if len(v) > LONGEST_LABEL]
    if too_long:
        row = int(np.flatnonzero(np.isin(codes, too_long))[0])
        raise table.error(f"an id of more than {LONGEST_LABEL} characters.", "E_USER", row)
    spoilt = {v for v in text if UNREADABLE.search(v)}
    words = sort_labels({v for v in text if v and v not in spoilt})
    number = {v: i for i, v in enumerate(words)}
    rank = np.array([*(number.get(v, -2 if v in spoilt else -1) for v in text), -1], dtype=np.int64)
    return rank[codes], tuple(words)


def read_users(table: Table, roles: Mapping[str, str]) -> tuple[Ints, tuple[str, ...]]:
    """Return the users of a table as `read_labels` does; where ids are unique within a household, both make the id."""
    person, names = read_labels(table, roles["user"])
    if "household" not in roles:
        return person, names
    household, homes = read_labels(table, roles["household"])
    pairs, of = np.unique(np.stack([household, person]), axis=1, return_inverse=True)
    # blanks in the household are escaped, so that no two people have one id
    texts = [f"{homes[h].translate(ESCAPED)} {names[p]}" if min(h, p) >= 0 else "" for h, p in pairs.T.tolist()]
    people = sort_labels([text for text in texts if text])
    number = {text: i for i, text in enumerate(people)}
    rank = [number[t] if t else int(pair.min()) for t, pair in zip(texts, pairs.T, strict=True)]
    return np.array(rank, dtype=np.int64)[of.ravel()], tuple(people)


def read_categories(table: Table, name: str | None) -> tuple[Ints | None, tuple[str, ...]]:
    """
    Return a column of categories as (number of each row's word, words), -1 where there is none.

    None for a column of anything else, such as long texts or lists: no file is refused for it.
    """
    if name is None:
        return None, ()
    try:
        code, distinct = read_labels(table, name)
    except InvalidTraces:
        return None, ()
    return (np.maximum(code, -1), distinct) if distinct else (None, ())


def sort_labels(labels: Iterable[str]) -> list[str]:
    """Return labels in numerical order if all are whole numbers, else in the order of their characters."""
    labels = list(labels)
    return sorted(labels, key=int if all(re.fullmatch(r"0|-?[1-9]\d*", v, re.ASCII) for v in labels) else None)


def read_numbers(table: Table, name: str) -> Floats:
    """Return a column of decimal numbers; NaN for anything else, such as "1_000", full-width digits or words (B22)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name)
    if is_text(column.type):
        if table.comma:
            column = pc.replace_substring_regex(column, r"^(\s*[+-]?\d+),(\d+\s*)$", r"\1.\2")
        good = pc.match_substring_regex(column, NUMBER)
        column = pc.ascii_trim_whitespace(pc.if_else(good, column, pa.scalar(None, column.type)))
    try:
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        raise table.error(f"column {table.label(name)!r} holds no numbers.", "E_NUMBER") from None
    values = np.array(values, dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    return values


def read_degrees(table: Table, name: str) -> Floats:
    """Return latitudes or longitudes: decimal numbers, or degrees, minutes and seconds with a degree sign."""
    import pyarrow.compute as pc

    column = table.column(name)
    if not is_text(column.type) or not pc.any(pc.match_substring_regex(column, SEXAGESIMAL)).as_py():
        return read_numbers(table, name)
    parts = pc.extract_regex(column, SEXAGESIMAL)
    sides = {side: pc.struct_field(parts, side) for side in ("d", "m", "s")}
    text = Table(table.name, sides, table.rows)
    d, m, s = (read_numbers(text, side) for side in ("d", "m", "s"))
    value = np.abs(d) + np.nan_to_num(m) / 60 + np.nan_to_num(s) / 3600
    letters = [pc.struct_field(parts, side).to_pylist() for side in ("before", "after")]
    south = np.array([(a or b or "").upper() in ("S", "W") for a, b in zip(*letters, strict=True)], dtype=bool)
    return np.asarray(np.where(south | np.signbit(d), -value, value))


def read_lines(table: Table, name: str) -> tuple[Floats, Floats, Ints] | None:
    """
    Return latitudes and longitudes of all points of a column of lists "[[lon, lat], ...]", and their number per row.

    Return None where the column holds anything else.
    """
    import pyarrow.compute as pc

    column = table.column(name)
    if not is_text(column.type) or not pc.all(pc.match_substring_regex(column, LINE).fill_null(True)).as_py():
        return None
    flat = pc.split_pattern(pc.replace_substring_regex(column.fill_null(""), r"[\[\]\s]", ""), ",").combine_chunks()
    length = np.asarray(pc.list_value_length(flat), dtype=np.int64)
    count = np.where(length % 2 == 0, length // 2, 0)  # "" is one empty part
    side = read_numbers(Table(table.name, {"side": flat.flatten()}, int(length.sum())), "side")
    side = side[np.repeat(count > 0, length)]
    return side[1::2], side[::2], count


def read_points(table: Table, name: str) -> tuple[Floats, Floats]:
    """
    Return latitude and longitude of a column of points: "POINT (lon lat)", "lat, lon", or well-known binary.

    Of a column of lines, return the first point of each.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if (polylines := read_lines(table, name)) is not None:
        lat, lon, count = polylines
        lat, lon = (np.append(side, np.nan)[np.where(count > 0, np.cumsum(count) - count, -1)] for side in (lat, lon))
        return lat, lon
    column = table.column(name)
    if is_text(column.type):
        first, last = ("lon", "lat") if longitude_first(table, name) else ("lat", "lon")
        form = PAIR_OF_NUMBERS.replace("<a>", f"<{first}>").replace("<b>", f"<{last}>")
        if not pc.any(pc.match_substring_regex(column, form)).as_py():
            form = r"^\s*(?i:POINT)\s*(?i:Z\s*)?\((?P<lon>[^ ()]+) +(?P<lat>[^ ()]+)"
        parts = pc.extract_regex(column, form)
        sides = {side: pc.struct_field(parts, side) for side in ("lat", "lon")}
        text = Table(table.name, sides, table.rows)
        return read_numbers(text, "lat"), read_numbers(text, "lon")
    if not pa.types.is_binary(column.type) and not pa.types.is_large_binary(column.type):
        raise table.error(f"column {table.label(name)!r} holds no points.", "E_COLUMN")
    lat, lon = np.full(table.rows, np.nan), np.full(table.rows, np.nan)
    for row, value in enumerate(column.to_pylist()):
        if value is not None and len(value) >= 21 and value[0] in (0, 1):
            order = "<" if value[0] else ">"
            if int(np.frombuffer(value, f"{order}u4", 1, 1)[0]) % 1000 == 1:
                lon[row], lat[row] = np.frombuffer(value, f"{order}f8", 2, 5)
    return lat, lon


def longitude_first(table: Table, name: str) -> bool:
    """Tell whether `read_points` takes the first number of a column of points for the longitude."""
    import pyarrow.compute as pc

    column = table.column(name)
    pairs = is_text(column.type) and pc.any(pc.match_substring_regex(column, PAIR_OF_NUMBERS)).as_py()
    return not pairs or normalize_name(name) in LON_FIRST


def is_text(kind: Any) -> bool:
    """Tell whether an Arrow type is one of its types of text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
