"""
Open a source as Arrow tables with named columns, block by block: files, folders, archives, stdin, data frames.

CSV and kin are cut into blocks of whole lines and parsed by Arrow as text; what the columns mean is found in
`columns.py`. GeoLife `.plt`: six lines of heading, then `lat,lon,0,altitude,days,date,time` in GMT, one folder per
person. Foursquare's check-ins: tab-separated without names; TSMC2014: user, venue, category id, category, lat, lon,
offset in minutes, UTC time; TIST2015: user, venue, UTC time, offset. SGLT: user, time, location, counted from 1.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import os
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from elsewhere.errors import ElsewhereError, InvalidParameter, InvalidTraces, MissingExtra, counted

FILE = "the file's name"  # column with the name of each row's file (the folder's, for GeoLife)
BLOCK = 1 << 24  # bytes of text that are parsed at once
SAMPLE = 1 << 18  # bytes at the beginning, the middle and the end that tell what a text holds
SAMPLED = 2_000  # rows of a sample from each of these
LONGEST_LINE = 10 << 20
MOST_DOCUMENT = 1 << 30  # bytes of a document (JSON, GPX) that is parsed as a whole
MOST_RATIO = 1_000  # of unpacked to packed bytes, in a file that unpacks to more than MOST_DOCUMENT
DELIMITERS = (",", ";", "\t", "|", " ")  # a blank stands for any run of blanks
NOTHING = ["", "NA", "N/A", "NULL", "null", "NaN", "nan", "None", "none", "#N/A", "\\N"]
NUMBER = re.compile(r"\s*[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?\s*", re.ASCII)
DATED = re.compile(
    r"\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b.*|\s*\d{1,2}:\d\d(:\d\d.*)?( ?[AaPp]\.?[Mm]\.?)?\s*", re.ASCII
)
TWITTER = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d \+0000 \d{4}")
DAY_NAME = re.compile(  # a date within the name of a file: 2024-05-01, 20240501_0800, 2024_MAY
    r"(19|20)\d\d[-_.]?((0[1-9]|1[0-2])([-_.]?[0-3]\d([T_-]?\d{4,6})?)?(?!\d)|"
    r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)", re.ASCII
)  # fmt: skip
NO_DATA = {".md", ".pdf", ".html", ".htm", ".py", ".r", ".png", ".jpg", ".doc", ".docx", ".rtf", ".log", ".yml"}
PACKED: dict[bytes, Callable[[BinaryIO], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
# what the openers of archives raise at damage, in their names too
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError)
TEXT_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
PLT = ("lat", "lon", "#3", "altitude", "days", "date", "clock")
KNOWN = {
    "Foursquare TSMC2014": ("user", "venue", "category_id", "category", "lat", "lon", "offset_minutes", "utc"),
    "Foursquare TIST2015": ("user", "venue", "utc", "offset_minutes"),
    "SGLT": ("user", "slot", "location"),
}


@dataclass(frozen=True)
class Piece:
    """One file of a source: its name in messages, whose it may be, its size, and a function that opens its bytes."""

    name: str
    user: str
    size: int
    open: Callable[[], AbstractContextManager[Any]]


@dataclass
class Table:
    """
    A source with named columns; `batches(names)` yields Arrow tables of these columns, text unless typed already.

    `labels` are the names of columns for messages: a number where a name could be somebody's data. `counts` has what
    was not read, by reason, and grows while batches are read.
    """

    name: str
    names: tuple[str, ...]
    kind: str
    sample: Any
    batches: Callable[[Sequence[str]], Iterator[Any]]
    headed: bool = True
    owners: int = 1  # different people whom the names of its files and folders tell of
    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # a table without names that was written with its numbers as names has none
        self.headed &= 2 * sum(bool(re.fullmatch(r"#\d+", name)) for name in self.names) < len(self.names)

    @cached_property
    def labels(self) -> dict[str, str]:
        """Return the name of each column that a message may show."""
        shown = {FILE: "file"}
        names = [name for name in self.names if name != FILE]
        columns = [self.sample.column(name) for name in names]
        values = {value for column in columns if "string" in str(column.type) for value in column.to_pylist()}
        for i, name in enumerate(names):
            plain = re.fullmatch(r"[^\W\d][\w .:/()#%°-]{0,40}", name) and not re.search(
                r"\d[.,:]\d|\d{5}|\d[a-zA-Z]", name
            )
            shown[name] = name if self.headed and plain and name not in values else f"#{i + 1}"
        return shown


def open_tables(source: Any, *, encoding: str | None = None, name: str = "") -> list[Table]:
    """Return the tables of a source: one, or one for each kind of table in a folder, the largest first."""
    if not isinstance(source, (str, os.PathLike)):
        return [_open_frame(source, name or "the table")]
    pieces = list_files(source)
    parts: dict[Any, list[Table]] = {}
    skipped, like = [], None
    for piece in pieces:
        try:
            table, like = _open_piece(piece, encoding, like)
            parts.setdefault((table.kind, table.names), []).append(table)
        except ElsewhereError as error:
            skipped.append(error)
    if not parts:
        raise skipped[0]
    shown = name or (pieces[0].name if len(pieces) == 1 else Path(source).name)
    largest = sorted(parts.values(), key=lambda alike: -sum(len(table.sample) for table in alike))
    tables = [_join(alike, shown) for alike in largest]
    if skipped:
        tables[0].counts["files that could not be read"] = len(skipped)
    return tables


def list_files(source: str | os.PathLike[str]) -> list[Piece]:
    """Return the files of a path: itself, the members of a zip, or all files in a folder; "-" is standard input."""
    path = os.fspath(source)
    if path == "-":
        content = sys.stdin.buffer.read()
        return [Piece("standard input", "stdin", len(content), lambda: io.BytesIO(content))]
    root = Path(path)
    try:
        if root.is_dir():
            files = [p for p in sorted(root.rglob("*")) if p.is_file() and p.stat().st_size]
            files = [p for p in files if p.suffix.lower() not in NO_DATA and not p.name.startswith((".", "_"))]
            if not files:
                raise InvalidTraces(f"the folder {root.name} holds no files of data.", code="E_EMPTY")
            owners = _owners([p.relative_to(root).parts for p in files], root.name)
            return [
                Piece(f"file {i} of the folder {root.name}", owner, p.stat().st_size, partial(p.open, "rb"))
                for i, (p, owner) in enumerate(zip(files, owners, strict=True), 1)
            ]
        if not root.is_file():
            what = "is no file" if root.exists() else "does not exist"
            raise InvalidTraces(f"{root.name} {what}; give the path of a file or of a folder.", code="E_OPEN")
        with root.open("rb") as file:
            start = file.read(4)
        if start == b"PK\x03\x04":
            with zipfile.ZipFile(root) as archive:
                members = [m for m in archive.infolist() if not m.is_dir() and m.file_size and Path(m.filename).name]
            if not members:
                raise InvalidTraces(f"{root.name} holds no file with content.", code="E_EMPTY")
            if not any(m.filename == "[Content_Types].xml" for m in members):  # a workbook is a zip too
                owners = _owners([Path(m.filename).parts for m in members], root.stem)
                named = zip(members, owners, strict=True)
                return [_member(root, m, f"file {i} of {root.name}", owner) for i, (m, owner) in enumerate(named, 1)]
        return [Piece(root.name, _stem(root.name), root.stat().st_size, partial(root.open, "rb"))]
    except DAMAGE as error:
        code = "E_OPEN" if isinstance(error, OSError) else "E_COMPRESSION"
        raise InvalidTraces(f"{root.name} cannot be opened ({type(error).__name__}).", code=code) from None


def _stem(name: str) -> str:
    return Path(re.sub(r"\.(gz|bz2|xz)$", "", name)).stem


def _owners(paths: Sequence[tuple[str, ...]], name: str) -> list[str]:
    """
    Return whose each file may be, by its path: the first folder that differs, or else the file's name; dates aside.

    Examples
    --------
    >>> _owners([("ann", "2024-05-01.csv"), ("ann", "2024-05-02.csv"), ("bob", "2024-05-01.csv")], "people")
    ['ann', 'ann', 'bob']
    >>> _owners([("ann.csv",), ("bob_20240501.csv",)], "people")
    ['ann', 'bob']

    """
    plain = [tuple(DAY_NAME.sub("", part).strip("-_. ") for part in (*path[:-1], _stem(path[-1]))) for path in paths]
    deepest = max(map(len, plain))
    for level in range(deepest - 1):
        folders = {path[level] for path in plain if len(path) > level + 1}
        if len(folders) > 1 and "" not in folders:
            return [path[level] if len(path) > level + 1 else path[-1] for path in plain]
    return [path[-1] or name for path in plain]


def _member(archive: Path, member: zipfile.ZipInfo, name: str, owner: str) -> Piece:
    @contextmanager
    def opened() -> Iterator[Any]:
        with zipfile.ZipFile(archive) as folder, folder.open(member) as stream:
            yield stream

    if member.flag_bits & 1:
        raise InvalidTraces(f"{name} is encrypted; unpack it first.", code="E_COMPRESSION")
    if member.file_size > max(MOST_DOCUMENT, MOST_RATIO * member.compress_size):
        raise InvalidTraces(f"{name} unpacks to too many bytes.", code="E_TOO_LARGE")
    return Piece(name, owner, member.file_size, opened)


@contextmanager
def _unpack(piece: Piece) -> Iterator[BinaryIO]:
    """Open the bytes of a file, unpacked, and close everything in the end."""
    try:
        with piece.open() as stream:
            start = stream.read(6)
            stream.seek(0)
            opener = next((opener for mark, opener in PACKED.items() if start.startswith(mark)), None)
            if opener is None:
                yield stream
            else:
                with opener(stream) as inner:
                    yield inner
    except DAMAGE:
        raise InvalidTraces(f"{piece.name} is cut off or damaged within its packing.", code="E_COMPRESSION") from None


def _open_piece(piece: Piece, encoding: str | None, like: "_Dialect | None") -> "tuple[Table, _Dialect | None]":
    """Return the table of one file, by what its first bytes say, and the dialect if it is a text."""
    with _unpack(piece) as stream:
        head = stream.read(SAMPLE)
    if head.startswith((b"PAR1", b"ARROW1", b"FEA1")):
        return _open_arrow(piece, head.startswith(b"PAR1")), like
    if head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        return _open_excel(piece), like
    text = _decode(head, encoding, piece).lstrip("\ufeff \t\r\n")
    if not text:
        raise InvalidTraces(f"{piece.name} is empty.", code="E_EMPTY")
    if text.startswith("<"):
        return _open_gpx(piece), like
    if text[0] in "{[":
        return _open_json(piece, encoding), like
    if re.match(r"[^\n]*\n\s*WGS 84", text):
        return _open_text(piece, _Dialect(",", PLT, False, 6), encoding, "geolife"), like
    dialect = like if like is not None and like.fits(text) else _find_dialect(text, piece.name)
    table = _open_text(piece, dialect, encoding, "csv")
    known = _known_columns(table) if not table.headed else None
    if known is not None:
        dialect = replace(dialect, names=KNOWN[known])
        table = _open_text(piece, dialect, encoding, known)
    return table, dialect


def _join(tables: list[Table], name: str) -> Table:
    """Return the tables of files with the same columns as one."""
    import pyarrow as pa

    first = tables[0]
    counts: Counter[str] = Counter()

    def batches(names: Sequence[str]) -> Iterator[Any]:
        for table in tables:
            yield from table.batches(names)
            counts.update(table.counts)
            table.counts.clear()

    chosen = tables[:: max(1, len(tables) // 20)]
    share = max(10, 3 * SAMPLED // len(chosen))
    schema = first.sample.schema
    samples = [table.sample.slice(0, share).cast(schema) for table in chosen if table.sample.schema.equals(schema)]
    return replace(
        first, name=name, sample=pa.concat_tables(samples), batches=batches, counts=counts,
        owners=len({str(table.sample.column(FILE)[0]) for table in tables}) if FILE in first.names else 1,
    )  # fmt: skip


# --- delimited text ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Dialect:
    """How a text is divided: delimiter, names of columns, whether they stand in the text, lines before the data."""

    delimiter: str
    names: tuple[str, ...]
    headed: bool
    skip: int
    notes: tuple[str, ...] = ()

    def fits(self, text: str) -> bool:
        """Tell whether another text of a folder begins as this one."""
        if self.headed:
            at = text.split("\n", self.skip)
            return len(at) >= self.skip > 0 and tuple(_split(at[self.skip - 1], self.delimiter)) == self.names
        fields = _split(text.split("\n", 1)[0], self.delimiter)
        return self.skip == 0 and len(fields) == len(self.names) and any(map(_is_value, fields))


def _is_value(text: str) -> bool:
    return bool(NUMBER.fullmatch(text) or DATED.fullmatch(text) or TWITTER.fullmatch(text))


def _split(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    try:
        return [part.strip() for part in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _find_dialect(text: str, name: str) -> _Dialect:
    """Find the delimiter that divides most lines alike, the line of names, and the lines before it."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:400]
    lines = lines[:-1] if len(lines) > 1 else lines
    mark = re.fullmatch(r"sep=(.)", lines[0], re.IGNORECASE)  # Excel's own first line
    comments = [i for i, line in enumerate(lines) if line.lstrip().startswith(("#", "//", "%"))]
    filled = [i for i, line in enumerate(lines) if line.strip() and i not in comments and not (mark and i == 0)]
    if not filled:
        raise InvalidTraces(f"{name} holds no rows.", code="E_EMPTY")
    best: tuple[Any, ...] = ()
    for rank, delimiter in enumerate([mark[1]] if mark else DELIMITERS):
        widths = [len(_split(lines[i], delimiter)) for i in filled]
        width, often = max(Counter(widths).items(), key=lambda pair: (pair[1] * (pair[0] > 1), pair[0]))
        # blanks stand within names and times too: they divide only where nothing else does
        alike = round(often / len(filled), 1) if width > 1 else 0.0
        score = (alike, delimiter != " ", widths[0] == width, width, -rank)
        if score > best:
            best, chosen, modal = score, delimiter, width
    if modal == 1 and len(filled) > 1:
        raise InvalidTraces(
            f"{name} has one column; known delimiters are comma, semicolon, tab, bar and blanks.", code="E_FORMAT"
        )
    rows = [(i, _split(lines[i], chosen)) for i in filled]
    at, first = next((pair for pair in rows if len(pair[1]) in (modal, modal - 1)), rows[0])
    below = [row for i, row in rows if i > at]
    headed = not any(map(_is_value, first))
    names, notes = list(first), []
    if headed and below and len(first) == modal - 1:  # the number that R writes before each row, or an empty end
        names = [*first, ""] if all(not row[-1] for row in below if len(row) == modal) else ["", *first]
    if not headed and comments and comments[-1] < at:
        words = _split(lines[comments[-1]].lstrip("#/% "), chosen)
        if len(words) == len(first) and not any(map(_is_value, words)):
            names, headed, at = words, True, at - 1
    if headed and not below:
        raise InvalidTraces(f"{name} holds names of columns and nothing else.", code="E_EMPTY")
    if at > 0 and rows[0][0] < at:
        notes.append(f"{counted(at, 'line')} before the names of columns were not read")
    names = [each if headed and each else f"#{i}" for i, each in enumerate(names, 1)]
    if len(set(names)) < len(names):
        twice = next(i for i, each in enumerate(names) if each in names[:i])
        raise InvalidTraces(f"{name}: columns #{names.index(names[twice]) + 1} and #{twice + 1} have one name; "
                            "give each its own.", code="E_COLUMNS")  # fmt: skip
    if len(below) >= 2 and headed and not any(map(_is_value, below[0])) and sum(map(_is_value, below[1])) >= 2:
        at += 1  # a line of units
        notes.append("the line below the names was not read: it holds no data")
    return _Dialect(chosen, tuple(names), headed, at + (1 if headed else 0), tuple(notes))


def _decode(block: bytes, encoding: str | None, piece: Piece, counts: Counter[str] | None = None) -> str:
    """Return a block of text; what is no UTF-8 is read as Windows-1252 unless an encoding is given, and counted."""
    encoding = encoding or next((e for mark, e in TEXT_MARKS.items() if block.startswith(mark)), None)
    try:
        if encoding is not None:
            return block.decode(encoding, errors="replace")
        if b"\0" in block:
            raise InvalidTraces(f"{piece.name} holds NUL bytes: it is no text, or damaged.", code="E_ENCODING")
        return block.decode()
    except UnicodeDecodeError as error:
        if error.start >= len(block) - 3:  # half a character at the end of a sample
            return block.decode(errors="replace")
        if counts is not None:
            counts["characters that are no UTF-8, read as Windows-1252 (`encoding`)"] += block.decode(
                errors="replace"
            ).count("\ufffd")
        return block.decode("cp1252", errors="replace")
    except LookupError:
        raise InvalidParameter(f"`encoding` must be the name of an encoding, got {encoding!r}.") from None


def _read_blocks(piece: Piece, encoding: str | None, counts: Counter[str], size: int = BLOCK) -> Iterator[bytes]:
    """Yield the lines of a text in UTF-8, in blocks of whole lines."""
    with _unpack(piece) as stream:
        rest, total = stream.read(4), 0
        wide = next((e for mark, e in TEXT_MARKS.items() if rest.startswith(mark)), encoding)
        if wide not in (None, "utf-8", "utf-8-sig", "ascii"):  # blocks could cut a character
            yield _decode(rest + stream.read(MOST_DOCUMENT), wide, piece).lstrip("\ufeff").encode()
            return
        rest = rest.removeprefix(b"\xef\xbb\xbf")
        while more := stream.read(size):
            total += len(more)
            if total > max(MOST_DOCUMENT, MOST_RATIO * piece.size):
                raise InvalidTraces(f"{piece.name} unpacks to too many bytes.", code="E_TOO_LARGE")
            rest += more
            at = _last_whole_line(rest)
            if at:
                yield _to_utf8(rest[:at], piece, counts)
                rest = rest[at:]
            elif len(rest) > LONGEST_LINE + BLOCK:
                raise InvalidTraces(
                    f"{piece.name} has a line of more than 10 MB, or a quote that is not closed.", code="E_TOO_LARGE"
                )
        if rest:
            yield _to_utf8(rest, piece, counts)


def _last_whole_line(block: bytes) -> int:
    """Return where the last line ends that is not within quotes, 0 where none does."""
    end = b"\n" if b"\n" in block else b"\r"
    at = block.rfind(end) + 1
    while at and block.count(b'"', 0, at) % 2:  # before the line with the quote that is open
        at = block.rfind(end, 0, block.rfind(b'"', 0, at)) + 1
    return at


def _to_utf8(block: bytes, piece: Piece, counts: Counter[str]) -> bytes:
    return block if block.isascii() and b"\0" not in block else _decode(block, None, piece, counts).encode()


def _open_text(piece: Piece, dialect: _Dialect, encoding: str | None, kind: str) -> Table:
    """Return a delimited text as a table; rows with more or fewer fields are left out and counted."""
    import pyarrow as pa

    counts: Counter[str] = Counter()

    def batches(wanted: Sequence[str]) -> Iterator[Any]:
        skip, last = dialect.skip, b""
        for block in _read_blocks(piece, encoding, counts):
            table = _parse_block(block, dialect, wanted, counts, piece, skip)
            yield table.append_column(FILE, pa.array([piece.user] * len(table))) if FILE in wanted else table
            skip, last = 0, block[-LONGEST_LINE:]
        last = last[max(last.rfind(b"\n"), last.rfind(b"\r")) + 1 :]
        if last.strip() and len(_split(last.decode(errors="replace"), dialect.delimiter)) < len(dialect.names) - 1:
            raise InvalidTraces(  # a cut file is not a short file (B8)
                f"{piece.name} is cut off: its last line has too few fields; get the whole file, or delete that line.",
                code="E_TRUNCATED",
            )

    rows = _sample_text(piece, dialect, encoding)
    rows = rows.append_column(FILE, pa.array([piece.user] * len(rows), pa.string()))
    return Table(piece.name, (*dialect.names, FILE), kind, rows, batches, dialect.headed, counts=counts,
                 notes=list(dialect.notes))  # fmt: skip


def _parse_block(
    block: bytes, dialect: _Dialect, wanted: Sequence[str], counts: Counter[str], piece: Piece, skip: int = 0
) -> Any:
    """Return lines of delimited text as an Arrow table of text; rows of another width are counted in `counts`."""
    import pyarrow as pa
    import pyarrow.csv as pv

    for _ in range(skip):
        block = block.partition(b"\n" if b"\n" in block else b"\r")[2]
    if not block.strip():
        return pa.table({name: pa.array([], pa.string()) for name in dialect.names if name in wanted})
    if dialect.delimiter == " ":
        block = re.sub(rb"(?m)^ | $", b"", re.sub(rb"[ \t]+", b" ", block.replace(b"\r\n", b"\n")))

    def drop(row: Any) -> str:
        counts["rows with too many or too few fields"] += 1
        return "skip"

    names, quoted = list(dialect.names), b'"' in block
    # a thread of Arrow that still holds what is Python's aborts a process that ends: memory of Arrow, and no threads
    memory = pa.allocate_buffer(len(block))
    memoryview(memory).cast("B")[:] = block
    reading = pv.ReadOptions(column_names=names, block_size=len(block) + 64 if quoted else 1 << 21, use_threads=False)
    parsing = pv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=quoted, invalid_row_handler=drop)
    typing = pv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        include_columns=[name for name in names if name in wanted],
        strings_can_be_null=True,
        null_values=NOTHING,
    )
    try:
        return pv.read_csv(pa.BufferReader(memory), reading, parsing, typing)
    except pa.ArrowInvalid:
        raise InvalidTraces(
            f"{piece.name} cannot be divided into columns: a quote that is not closed, or a line of more than 10 MB.",
            code="E_CSV",
        ) from None


def _sample_text(piece: Piece, dialect: _Dialect, encoding: str | None) -> Any:
    """Return rows of the beginning of a text and, where it can be sought, of its middle and its end."""
    import pyarrow as pa

    unseen: Counter[str] = Counter()
    blocks = _read_blocks(piece, encoding, unseen, SAMPLE)
    tables = [_parse_block(next(blocks, b""), dialect, dialect.names, unseen, piece, dialect.skip)]
    blocks.close()  # type: ignore[attr-defined]
    with _unpack(piece) as stream:
        if isinstance(stream, io.BufferedReader | io.BytesIO) and piece.size > 4 * SAMPLE and encoding is None:
            for at in (piece.size // 2, piece.size - SAMPLE):
                stream.seek(at)
                part = stream.read(SAMPLE)
                part = part[part.find(b"\n") + 1 : part.rfind(b"\n") + 1]
                if part.count(b'"') % 2 == 0 and part.strip() and b"\0" not in part:
                    tables.append(_parse_block(_to_utf8(part, piece, unseen), dialect, dialect.names, unseen, piece))
    rows = pa.concat_tables([table.slice(0, SAMPLED) for table in tables])
    if len(rows) == 0:
        raise InvalidTraces(f"{piece.name} holds no rows with as many fields as its first line.", code="E_EMPTY")
    return rows


def _known_columns(table: Table) -> str | None:
    """Return the name of a published format without a line of names, by its first rows."""
    rows = [list(row.values())[:-1] for row in table.sample.slice(0, 50).to_pylist()]
    width = len(table.names) - 1
    if all(None not in row for row in rows):
        if width == 8 and all(TWITTER.fullmatch(row[7]) and NUMBER.fullmatch(row[4]) for row in rows):
            return "Foursquare TSMC2014"
        if width == 4 and all(TWITTER.fullmatch(row[2]) and NUMBER.fullmatch(row[3]) for row in rows):
            return "Foursquare TIST2015"
        whole = width == 3 and all(re.fullmatch(r"\d{1,7}", field) for row in rows for field in row)
        if whole and [row[1] for row in rows[:3]] == ["1", "2", "3"]:
            return "SGLT"
    return None


# --- typed tables -----------------------------------------------------------------------------------------------------


def _open_arrow(piece: Piece, parquet: bool) -> Table:
    """Return a Parquet or Feather file as a table, read by groups of rows."""
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    try:
        with piece.open() as stream:
            if not parquet:
                whole = feather.read_table(pa.BufferReader(stream.read()))
                whole.validate(full=True)
                return _of_table(whole, piece.name, "feather", piece.user)
            file = pq.ParquetFile(pa.BufferReader(stream.read()) if not hasattr(stream, "name") else stream.name)
        names = tuple(file.schema_arrow.names)
        sample = file.read_row_group(0).slice(0, 3 * SAMPLED) if file.num_row_groups else file.read()
        sample.validate(full=True)
    except (pa.ArrowException, OSError, ValueError):
        raise InvalidTraces(
            f"{piece.name} is a damaged or unknown kind of Parquet or Arrow file.", code="E_FORMAT"
        ) from None
    if not file.metadata.num_rows:
        raise InvalidTraces(f"{piece.name} holds no rows.", code="E_EMPTY")

    def batches(wanted: Sequence[str]) -> Iterator[Any]:
        try:
            for batch in file.iter_batches(1 << 20, columns=[n for n in names if n in wanted]):
                batch.validate(full=True)
                table = pa.Table.from_batches([batch])
                yield table.append_column(FILE, pa.array([piece.user] * len(table))) if FILE in wanted else table
        except (pa.ArrowException, OSError):
            raise InvalidTraces(f"{piece.name} is damaged.", code="E_FORMAT") from None

    sample = sample.append_column(FILE, pa.array([piece.user] * len(sample), pa.string()))
    return Table(piece.name, (*names, FILE), "parquet", sample, batches)


def _of_table(table: Any, name: str, kind: str, user: str | None = None, counts: Counter[str] | None = None) -> Table:
    """Return an Arrow table in memory as a `Table`."""
    import pyarrow as pa

    if len(table) == 0:
        raise InvalidTraces(f"{name} holds no rows.", code="E_EMPTY")
    names = tuple(table.column_names)
    if len(set(names)) < len(names):
        raise InvalidTraces(f"{name} has two columns of one name; give each its own.", code="E_COLUMNS")
    if user is not None and FILE not in names:
        table = table.append_column(FILE, pa.array([user] * len(table), pa.string()))

    def batches(wanted: Sequence[str]) -> Iterator[Any]:
        yield table.select([n for n in table.column_names if n in wanted])

    step = max(1, len(table) // (3 * SAMPLED))
    rows = table.take(list(range(0, len(table), step))) if step > 1 else table
    return Table(name, tuple(table.column_names), kind, rows, batches, counts=counts or Counter())


def _open_frame(source: Any, name: str) -> Table:
    """Return a data frame of pandas or polars, or an Arrow table, as a `Table`."""
    import pyarrow as pa

    try:
        if isinstance(source, pa.Table):
            table = source
        elif hasattr(source, "to_arrow"):  # polars
            table = source.to_arrow()
        elif hasattr(source, "columns") and hasattr(source, "reset_index"):  # pandas
            named = source.reset_index() if any(source.index.names) else source
            named = named.rename(columns=str)
            try:
                table = pa.Table.from_pandas(named, preserve_index=False)
            except (pa.ArrowException, TypeError):
                text = {c: named[c].map(str, na_action="ignore") for c in named if named[c].dtype == object}
                table = pa.Table.from_pandas(named.assign(**text), preserve_index=False)
        else:
            table = pa.table(source)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError):
        raise InvalidParameter(
            f'`source` must be a path, "-", or a table of pandas, polars or Arrow, got {type(source).__name__}.'
        ) from None
    return _of_table(table, name, "frame")


def _open_excel(piece: Piece) -> Table:
    """Return the first sheet of a workbook, read by pandas, as the text that it would be saved as."""
    import pandas as pd

    try:
        with piece.open() as stream:
            frame = pd.read_excel(io.BytesIO(stream.read()), engine="calamine", header=None, dtype=object)
    except ImportError:
        raise MissingExtra(f"{piece.name} is a workbook; pip install 'elsewhere[excel]', or save it as CSV.") from None
    except Exception:  # the readers of workbooks raise errors of many kinds, with values in them
        raise InvalidTraces(f"{piece.name} is no workbook that can be read; save it as CSV.", code="E_FORMAT") from None
    out = io.StringIO()
    for row in frame.dropna(how="all").itertuples(index=False):
        cells = ["" if pd.isna(cell) else str(cell) for cell in row]
        csv.writer(out).writerow(cells if sum(map(bool, cells)) > 1 else filter(None, cells))  # one cell is a title
    content = out.getvalue().encode()
    if not content:
        raise InvalidTraces(f"{piece.name} holds no rows.", code="E_EMPTY")
    text = replace(piece, size=len(content), open=lambda: io.BytesIO(content))
    return _open_text(text, _find_dialect(content.decode()[:SAMPLE], piece.name), None, "excel")


# --- documents --------------------------------------------------------------------------------------------------------


def _read_document(piece: Piece) -> bytes:
    with _unpack(piece) as stream:
        content = stream.read(MOST_DOCUMENT)
        if stream.read(1):
            raise InvalidTraces(
                f"{piece.name} is larger than 1 GB: give CSV, Parquet or JSON lines.", code="E_TOO_LARGE"
            )
    return content


def _open_gpx(piece: Piece) -> Table:
    """Return the points of a GPX file, read by gpxpy."""
    content = _read_document(piece)
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise InvalidTraces(f"{piece.name} defines entities, which are not read.", code="E_XML")
    if b"<gpx" not in content[:SAMPLE]:
        raise InvalidTraces(f"{piece.name} is XML or a web page, and no GPX.", code="E_FORMAT")
    try:
        import gpxpy

        tracks = gpxpy.parse(content.decode("utf-8-sig")).tracks
    except Exception:  # what the parser says may quote the file
        raise InvalidTraces(f"{piece.name} is damaged: no whole GPX document.", code="E_XML") from None
    points = [point for track in tracks for part in track.segments for point in part.points]
    whose = [track.name for track in tracks for part in track.segments for _ in part.points]
    spans = [track.get_time_bounds() for track in tracks]
    known = sorted((span.start_time, span.end_time) for span in spans if span.start_time and span.end_time)
    several = None not in whose and any(
        a[1] > b[0] for a, b in pairwise(known)
    )  # tracks of one time: of several people
    rows: dict[str, list[Any]] = {
        **({"user": whose} if several else {}),
        "utc": [p.time and p.time.astimezone(UTC) for p in points],
        "lat": [p.latitude for p in points],
        "lon": [p.longitude for p in points],
    }
    return _of_rows(rows, piece, "gpx", Counter())


def _of_rows(rows: Mapping[str, Sequence[Any]], piece: Piece, kind: str, counts: Counter[str]) -> Table:
    import pyarrow as pa

    utc = pa.timestamp("us", "UTC")
    try:
        arrays = {key: pa.array(values, utc if key in ("utc", "end_utc") else None) for key, values in rows.items()}
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        raise InvalidTraces(f"{piece.name} holds a value that is no number, time or text.", code="E_FORMAT") from None
    return _of_table(pa.table(arrays), piece.name, kind, piece.user, counts)


def _open_json(piece: Piece, encoding: str | None) -> Table:
    """Return JSON as a table: lines or a list of objects, GeoJSON, or Google's Timeline."""
    text = _decode(_read_document(piece), encoding, piece).lstrip("\ufeff")
    counts: Counter[str] = Counter()
    try:
        document: Any = json.loads(text)
        if isinstance(document, dict) and not any(isinstance(v, list | dict) for v in document.values()):
            document = [document]
    except (ValueError, RecursionError):
        document = _json_lines(text, piece, counts)
    if isinstance(document, dict):
        if {"locations", "semanticSegments", "timelineObjects", "rawSignals"} & document.keys():
            return _of_rows(_google(document, counts), piece, "google", counts)
        if "features" in document or document.get("type") in ("Feature", "MovingFeature"):
            return _of_rows(_geojson(document, counts), piece, "geojson", counts)
        lists = [v for v in document.values() if isinstance(v, list) and v and isinstance(v[0], dict)]
        document = lists[0] if len(lists) == 1 else [document]
    if isinstance(document, list) and any(
        isinstance(d, dict) and {"timelinePath", "visit"} & d.keys() for d in document
    ):
        return _of_rows(_google({"semanticSegments": document}, counts), piece, "google", counts)
    objects = [item for item in document if isinstance(item, dict)] if isinstance(document, list) else []
    counts["entries that are no objects"] += len(document) - len(objects) if objects else 0
    if not objects:
        raise InvalidTraces(
            f"{piece.name}: JSON of no known shape; known are lists or lines of objects with a time and a position, "
            "GeoJSON and Google's Timeline.",
            code="E_FORMAT",
        )
    return _of_rows(_columns_of(objects), piece, "json", counts)


def _json_lines(text: str, piece: Piece, counts: Counter[str]) -> list[Any]:
    """Return the objects of lines; a file of which no line is JSON is refused, other lines are counted."""
    objects, bad, lines = [], 0, text.splitlines()
    for i, line in enumerate(lines):
        if line.strip():
            try:
                objects.append(json.loads(line))
            except (ValueError, RecursionError):
                bad += 1
                if i == len(lines) - 1 and not text.endswith("\n") and objects:
                    raise InvalidTraces(f"{piece.name} is cut off within its last line.", code="E_TRUNCATED") from None
    if len(objects) < 9 * bad or not objects:
        raise InvalidTraces(f"{piece.name} is damaged: no whole JSON document, and no lines of JSON.", code="E_FORMAT")
    counts["lines that are no JSON"] += bad
    return objects


def _plain(record: Mapping[str, Any], depth: int = 4) -> Iterator[tuple[str, Any]]:
    """Yield keys and values, those of inner objects as outer.inner; a point of GeoJSON as text, lists as JSON."""
    for key, value in record.items():
        if isinstance(value, dict) and value.get("type") == "Point" and isinstance(value.get("coordinates"), list):
            yield key, f"POINT ({' '.join(str(part) for part in value['coordinates'][:2])})"
        elif isinstance(value, dict) and depth:
            yield from ((f"{key}.{inner}", each) for inner, each in _plain(value, depth - 1))
        elif value is None or isinstance(value, str):
            yield key, value
        else:
            yield key, json.dumps(value)


def _columns_of(objects: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return objects as columns of text; an object with a list of objects gives a row for each of these."""
    inner = next((k for k, v in objects[0].items() if isinstance(v, list) and v and isinstance(v[0], dict)), None)
    columns: dict[str, list[Any]] = {}
    rows = 0
    for item in objects:
        steps = item.get(inner) if inner else None
        outer = dict(_plain({k: v for k, v in item.items() if k != inner}))
        for step in steps if isinstance(steps, list) else [{}]:
            record = {**outer, **(dict(_plain(step)) if isinstance(step, dict) else {})}
            for key, value in record.items():
                if key not in columns and len(columns) >= 200:
                    continue
                column = columns.setdefault(key, [])
                column.extend([None] * (rows - len(column)))
                column.append(value)
            rows += 1
    for column in columns.values():
        column.extend([None] * (rows - len(column)))
    return columns


def _geojson(document: dict[str, Any], counts: Counter[str]) -> dict[str, list[Any]]:
    """Return a row per point: its properties, its time (a list of the feature, or the fourth coordinate), lat, lon."""
    rows = []
    features = document.get("features", [document])
    for feature in features if isinstance(features, list) else []:
        if not isinstance(feature, dict):
            continue
        inside: list[Any] = [feature.get("properties"), feature.get("temporalGeometry", feature.get("geometry"))]
        properties, geometry = (each if isinstance(each, dict) else {} for each in inside)
        points: Any = geometry.get("coordinates")
        kind = geometry.get("type")
        points = [points] if kind == "Point" else points
        lists = [d.get(k) for d in (geometry, properties) for k in ("datetimes", "times", "coordTimes", "timestamps")]
        times: Any = next((each for each in lists if isinstance(each, list)), None)
        if kind == "MultiLineString" and isinstance(points, list):
            points = [p for line in points if isinstance(line, list) for p in line]
            times = [t for part in times for t in (part if isinstance(part, list) else [part])] if times else None
        good = isinstance(points, list) and points and all(isinstance(p, list) and len(p) > 1 for p in points)
        if not good or kind not in ("Point", "LineString", "MultiPoint", "MovingPoint", "MultiLineString"):
            counts["features without points"] += 1
            continue
        if times is None and all(len(p) > 3 for p in points):
            times = [p[3] for p in points]
        plain = dict(_plain({k: v for k, v in properties.items() if not isinstance(v, list | dict)}))
        if times is None and kind == "Point":
            times = [None]
        if not isinstance(times, list) or len(times) != len(points):
            counts["features without a time for each point"] += 1
            continue
        for point, time in zip(points, times, strict=True):
            moment = {} if time is None else {"datetime": time if isinstance(time, str) else json.dumps(time)}
            rows.append({**plain, **moment, "lat": json.dumps(point[1]), "lon": json.dumps(point[0])})
    return _columns_of(rows) if rows else {}


def _google(document: dict[str, Any], counts: Counter[str]) -> dict[str, list[Any]]:
    """Return fixes, points of paths, visits and ends of journeys of Google's Timeline, old and new."""
    rows: list[tuple[Any, Any, float, float]] = []

    def add(start: Any, end: Any, where: tuple[float, float] | None) -> None:
        times = _instant(start), _instant(end)
        if where is None or times[0] is None or not (-90 <= where[0] <= 90 and -180 <= where[1] <= 180):
            counts["entries without a time and a position"] += 1
        else:
            rows.append((times[0], times[1] or times[0], *where))

    for item in _items(document, "locations"):
        add(item.get("timestamp", item.get("timestampMs")), None, _e7(item, "latitudeE7", "longitudeE7"))
    for item in _items(document, "timelineObjects"):
        visit, segment = item.get("placeVisit"), item.get("activitySegment")
        if isinstance(visit, dict):
            begin, end = _span(visit)
            add(begin, end, _e7(visit.get("location"), "latitudeE7", "longitudeE7"))
        if isinstance(segment, dict):
            begin, end = _span(segment)
            add(begin, None, _e7(segment.get("startLocation"), "latitudeE7", "longitudeE7"))
            for step in _items(segment.get("simplifiedRawPath"), "points"):
                add(step.get("timestamp", step.get("timestampMs")), None, _e7(step, "latE7", "lngE7"))
            add(end, None, _e7(segment.get("endLocation"), "latitudeE7", "longitudeE7"))
    for item in _items(document, "semanticSegments"):
        begin, end = item.get("startTime"), item.get("endTime")
        for step in _items(item, "timelinePath"):
            time, minutes = step.get("time"), step.get("durationMinutesOffsetFromStartTime")
            if time is None and isinstance(minutes, str | int) and str(minutes).isdigit() and _instant(begin):
                time = 1000 * (_instant(begin).timestamp() + 60 * int(minutes))
            add(time, None, _degrees(step.get("point")))
        visit, activity = item.get("visit"), item.get("activity")
        if isinstance(visit, dict):
            place = (visit.get("topCandidate") or {}).get("placeLocation")
            add(begin, end, _degrees(place.get("latLng") if isinstance(place, dict) else place))
        if isinstance(activity, dict):
            for side, time in (("start", begin), ("end", end)):
                where = activity.get(side)
                add(time, None, _degrees(where.get("latLng") if isinstance(where, dict) else where))
    if not rows:
        for item in _items(document, "rawSignals"):
            where = item.get("position")
            if isinstance(where, dict):
                add(where.get("timestamp"), None, _degrees(where.get("LatLng", where.get("latLng"))))
    start, end, lat, lon = zip(*rows, strict=True) if rows else ((), (), (), ())
    return {"utc": list(start), "end_utc": list(end), "lat": list(lat), "lon": list(lon)}


def _items(document: Any, key: str) -> Iterator[dict[str, Any]]:
    inside = document.get(key) if isinstance(document, dict) else None
    yield from (each for each in inside if isinstance(each, dict)) if isinstance(inside, list) else ()


def _span(item: dict[str, Any]) -> tuple[Any, Any]:
    inside = item.get("duration")
    span = inside if isinstance(inside, dict) else {}
    return tuple(span.get(f"{side}Timestamp", span.get(f"{side}TimestampMs")) for side in ("start", "end"))  # type: ignore[return-value]


def _instant(value: Any) -> Any:
    """Return the UTC time of an ISO text or of milliseconds since 1970; None for anything else."""
    try:
        if isinstance(value, str) and not value.isdigit():
            time = datetime.fromisoformat(value)
            return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
        return datetime.fromtimestamp(float(value) / 1000, UTC) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError, OSError, TypeError):
        return None


def _e7(item: Any, lat: str, lon: str) -> tuple[float, float] | None:
    """Return degrees from ten-millionths of a degree; some exports add 2^32 to negative ones."""
    pair: list[Any] = [item.get(key) if isinstance(item, dict) else None for key in (lat, lon)]
    if not all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in pair):
        return None
    return tuple((v - 2**32 if v > limit else v) / 1e7 for v, limit in zip(pair, (9e8, 18e8), strict=True))


def _degrees(text: Any) -> tuple[float, float] | None:
    """Return latitude and longitude of "43.77°, 9.07°" or "geo:43.77,9.07"."""
    match = re.fullmatch(
        r"\s*(?:geo:)?\s*([+-]?\d{1,3}\.?\d*)\s*°?\s*,\s*([+-]?\d{1,3}\.?\d*)\s*°?\s*", str(text), re.ASCII
    )
    return (float(match[1]), float(match[2])) if match else None
