"""
Open a source as Arrow tables with named columns, block by block: files, folders, archives, stdin, data frames.

CSV and kin are cut into blocks of whole lines and parsed by Arrow as text; what the columns mean is found in
`columns.py`. GeoLife `.plt`: six lines of heading, then `lat,lon,0,altitude,days,date,time` in GMT, one folder per
person. Foursquare's check-ins: tab-separated without names; TSMC2014: user, venue, category id, category, lat, lon,
offset in minutes, UTC time; TIST2015: user, venue, UTC time, offset. SGLT: user, time, location, counted from 1.
"""

import csv
import io
import os
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from elsewhere.data.documents import open_gpx, open_json
from elsewhere.data.tables import (
    DAMAGE,
    FILE,
    INDEX,
    MOST_DOCUMENT,
    SAMPLED,
    Piece,
    Table,
    read_document,
    refuse_doubled,
    spread,
    table_of,
    unpack,
)
from elsewhere.data.times import TIMES, find_kind
from elsewhere.data.values import NUMBER, sample_text
from elsewhere.errors import ElsewhereError, InvalidParameter, InvalidTraces, MissingExtra, counted

BLOCK = 1 << 24  # bytes of text that are parsed at once
SAMPLE = 1 << 18  # bytes at the beginning, the middle and the end that tell what a text holds
LOOKED_AT = 200  # lines that tell how a text is divided
TITLES, ALIKE = 20, 50  # lines, at most, among which are the names, and rows that tell whether these are such
LONGEST_LINE = 10 << 20
MOST_RATIO = 1_000  # of unpacked to packed bytes, in a file that unpacks to more than MOST_DOCUMENT
DELIMITERS = (",", ";", "\t", "|", " ")  # a blank stands for any run of blanks
NOTHING = ["", "NA", "N/A", "NULL", "null", "NaN", "nan", "None", "none", "#N/A", "\\N"]
DAY_NAME = re.compile(  # a date within the name of a file: 2024-05-01, 20240501_0800, 2024_MAY
    r"(19|20)\d\d[-_.]?((0[1-9]|1[0-2])([-_.]?[0-3]\d([T_-]?\d{4,6})?)?(?!\d)|"
    r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)", re.ASCII
)  # fmt: skip
MALFORMED = "rows with too many or too few fields"
PLT = ("lat", "lon", "", "", "", "date", "clock")  # the others are of no use
KNOWN = {
    "Foursquare TSMC2014": ("user", "venue", "category_id", "category", "lat", "lon", "offset_minutes", "utc"),
    "Foursquare TIST2015": ("user", "venue", "utc", "offset_minutes"),
    "SGLT": ("user", "slot", "location"),
}


def open_tables(source: Any, *, encoding: str | None = None, name: str = "") -> list[Table]:
    """Return the tables of a source: one, or one for each kind of table in a folder, the largest first."""
    if not isinstance(source, (str, os.PathLike)):
        return [table_of(source, name or "the table", "frame")]
    pieces = list_files(source)
    parts: dict[Any, list[Table]] = {}
    skipped = []
    for piece in pieces:
        try:
            table = _open_piece(piece, encoding)
            # tables without names are alike if the same columns hold times
            timed = () if table.headed else tuple(find_kind(sample_text(c)) in TIMES for c in table.sample.columns)
            parts.setdefault((table.kind, table.names, timed), []).append(table)
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
    root, found = Path(path), list[tuple[tuple[str, ...], int, Any]]()
    try:
        if root.is_dir():
            found = [(p.relative_to(root).parts, p.stat().st_size, partial(p.open, "rb"))
                     for p in sorted(root.rglob("*")) if p.is_file()]  # fmt: skip
        elif not root.is_file():
            what = "is no file" if root.exists() else "does not exist"
            raise InvalidTraces(f"{root.name} {what}; give the path of a file or of a folder.", code="E_OPEN")
        else:
            alone = [Piece(root.name, _stem(root.name), root.stat().st_size, partial(root.open, "rb"))]
            with root.open("rb") as file:
                if file.read(4) != b"PK\x03\x04":
                    return alone
            archive = zipfile.ZipFile(root)  # open for as long as its members are
            found = [(Path(m.filename).parts, m.compress_size, partial(archive.open, m))
                     for m in archive.infolist() if Path(m.filename).name and m.file_size]  # fmt: skip
            if any(parts == ("[Content_Types].xml",) for parts, *_ in found):  # a workbook is a zip too
                return alone
    except DAMAGE as error:
        code = "E_OPEN" if isinstance(error, OSError) else "E_COMPRESSION"
        raise InvalidTraces(f"{root.name} cannot be opened ({type(error).__name__}).", code=code) from None
    found = [each for each in found if each[1] and not each[0][-1].startswith((".", "_"))]
    if not found:
        raise InvalidTraces(f"{root.name} holds no file with content.", code="E_EMPTY")
    owners = _owners([parts for parts, *_ in found], _stem(root.name))
    named = enumerate(zip(found, owners, strict=True), 1)
    return [Piece(f"file {i} of {root.name}", owner, size, opened) for i, ((_, size, opened), owner) in named]


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


def _open_piece(piece: Piece, encoding: str | None) -> Table:
    """Return the table of one file, by what its first bytes say."""
    with unpack(piece) as stream:
        head = stream.read(SAMPLE)
    if head.startswith(b"PAR1"):
        return _open_parquet(piece)
    if head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        return _open_excel(piece)
    if encoding is not None or head.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            content = read_document(piece).decode(encoding or "utf-16", errors="replace").encode()
        except LookupError:
            raise InvalidParameter(f"`encoding` must be the name of an encoding, got {encoding!r}.") from None
        piece, head = _in_memory(piece, content), content[:SAMPLE]
    text = _decode(head, piece).lstrip("\ufeff \t\r\n")
    if not text:
        raise InvalidTraces(f"{piece.name} is empty.", code="E_EMPTY")
    if text.startswith("<"):
        return open_gpx(piece)
    if text[0] in "{[":
        return open_json(piece, _decode(read_document(piece), piece).lstrip("\ufeff"))
    if re.match(r"[^\n]*\n\s*WGS 84", text):
        return _open_text(piece, _Dialect(",", PLT, False, 6), "geolife")
    dialect = _find_dialect(text, piece.name)
    rows = [_split(line, dialect.delimiter) for line in text.splitlines()[dialect.skip : -1][:50]]
    known = None if dialect.headed else _find_known(rows)
    table = _open_text(piece, replace(dialect, names=KNOWN[known]) if known else dialect, known or "csv")
    if dialect.skip > dialect.headed:
        table.notes.append(f"{counted(dialect.skip - dialect.headed, 'line')} before the table were not read")
    if "\ufffd" in head.decode(errors="replace")[:-3]:
        table.notes.append("the text is no UTF-8: if letters are wrong, give `encoding`")
    return table


def _in_memory(piece: Piece, content: bytes) -> Piece:
    return replace(piece, size=len(content), open=lambda: io.BytesIO(content))


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


def _is_value(text: str) -> bool:
    return bool(NUMBER.fullmatch(text)) or find_kind([text]) in (*TIMES, "point")


def _are_names(words: list[str], rows: list[list[str]]) -> bool:
    """Tell whether words are names of columns: each that rows fill, but the first, has one; one is above values."""
    columns = list(zip(words, zip(*rows, strict=True), strict=False))
    return (
        not any(map(_is_value, words))
        and all(word or not any(cells) for word, cells in columns[1:])
        and any(word and 2 * sum(map(_is_value, cells)) > len(cells) for word, cells in columns)
    )


def _split(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    try:
        return [part.strip() for part in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]
    except csv.Error:
        return []


def _find_dialect(text: str, name: str) -> _Dialect:
    """Find the delimiter that divides most lines alike, the line of names, and the lines before it."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n", LOOKED_AT)[:LOOKED_AT]
    lines = lines[:-1] if len(lines) > 1 else lines
    comments = [i for i, line in enumerate(lines) if line.lstrip().startswith(("#", "//", "%"))]
    filled = [i for i, line in enumerate(lines) if line.strip() and i not in comments]
    if not filled:
        raise InvalidTraces(f"{name} holds no rows.", code="E_EMPTY")
    best: tuple[Any, ...] = ()
    for rank, delimiter in enumerate(DELIMITERS):
        widths = [len(_split(lines[i], delimiter)) for i in filled]
        width, often = max(Counter(widths).items(), key=lambda pair: (pair[1] * (pair[0] > 1), pair[0]))
        alike = round(often / len(filled), 1) if width > 1 else 0.0
        # blanks stand within names and times too: they divide only where nothing else does
        score = (delimiter != " " and alike >= 0.5, alike, widths[0] == width, width, -rank)
        if score > best:
            best, chosen, modal = score, delimiter, width
    if modal == 1 and len(filled) > 1:
        raise InvalidTraces(f"{name} has one column: nothing known divides its lines.", code="E_FORMAT")
    rows = [(i, row) for i in filled if len(row := _split(lines[i], chosen)) in (modal, modal - 1)]
    full = [row for _, row in rows if len(row) == modal]
    # a shorter line of names lacks that of the numbers that R writes before each row, or that of an empty end
    before, behind = ([""], []) if any(row[-1] for row in full) else ([], [""])
    rows = [(i, row if len(row) == modal else [*before, *row, *behind]) for i, row in rows]
    if len(rows) == 1 and not any(map(_is_value, full[0])):
        raise InvalidTraces(f"{name} holds names of columns and nothing else.", code="E_EMPTY")
    at, names, headed = rows[0][0], full[0], False
    for nth, (i, row) in enumerate(rows[:TITLES]):  # above the names, and above the first record, there may be titles
        headed = _are_names(row, [each for _, each in rows[nth + 1 : nth + ALIKE]])
        if headed or any(map(_is_value, row)):
            at, names = i, row
            break
    words = _split(lines[comments[-1]].lstrip("#/% "), chosen) if comments and comments[-1] < at else []
    if not headed and len(words) == modal and _are_names(words, full[:ALIKE]):
        names, headed, at = words, True, at - 1
    names = [each if headed and each else f"#{i}" for i, each in enumerate(names, 1)]
    refuse_doubled(name, names)
    return _Dialect(chosen, tuple(names), headed, at + headed)


def _decode(block: bytes, piece: Piece, counts: Counter[str] | None = None) -> str:
    """Return a block of text; what is no UTF-8 is read as Windows-1252, and counted."""
    if b"\0" in block:
        raise InvalidTraces(f"{piece.name} holds NUL bytes: it is no text, or damaged.", code="E_ENCODING")
    try:
        return block.decode()
    except UnicodeDecodeError as error:
        plain = block.decode(errors="replace")
        if error.start >= len(block) - 3:  # half a character at the end of a sample
            return plain
        if counts is not None:
            counts["characters that are no UTF-8, read as Windows-1252 (`encoding`)"] += plain.count("\ufffd")
        return block.decode("cp1252", errors="replace")


def _read_blocks(piece: Piece) -> Iterator[bytes]:
    """Yield the lines of a text, in blocks."""
    with unpack(piece) as stream:
        rest, total = stream.read(3).removeprefix(b"\xef\xbb\xbf"), 0
        while more := stream.read(BLOCK):
            total += len(more)
            if total > max(MOST_DOCUMENT, MOST_RATIO * piece.size):
                raise InvalidTraces(f"{piece.name} unpacks to too many bytes.", code="E_TOO_LARGE")
            rest += more
            at = rest.rfind(b"\n") + 1
            if len(rest) - at > LONGEST_LINE:
                raise InvalidTraces(f"{piece.name} has a line of more than 10 MB.", code="E_TOO_LARGE")
            yield rest[:at]
            rest = rest[at:]
        yield rest


def _open_text(piece: Piece, dialect: _Dialect, kind: str) -> Table:
    """Return a delimited text as a table; rows with more or fewer fields are left out and counted."""
    counts: Counter[str] = Counter()

    def batches(wanted: Sequence[str]) -> Iterator[Any]:
        skip, last = dialect.skip, b""
        for block in _read_blocks(piece):
            yield _parse_block(block, dialect, wanted, counts, piece, skip)
            skip, last = 0, block[-LONGEST_LINE:] or last
        last = last[max(last.rfind(b"\n"), last.rfind(b"\r")) + 1 :]
        if last.strip() and len(_split(last.decode(errors="replace"), dialect.delimiter)) < len(dialect.names) - 1:
            raise InvalidTraces(  # a cut file is not a short file (B8)
                f"{piece.name} is cut off: its last line has too few fields; get the whole file, or delete that line.",
                code="E_TRUNCATED",
            )

    names = tuple(filter(None, dialect.names))
    return Table(piece.name, names, kind, _sample_text(piece, dialect), batches, piece.user, dialect.headed,
                 counts=counts)  # fmt: skip


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
    if not block.isascii() or b"\0" in block:
        block = _decode(block, piece, counts).encode()
    names, quoted, mark = list(dialect.names), b'"' in block, dialect.delimiter
    if mark == " ":
        block = re.sub(rb"(?m)^ | $", b"", re.sub(rb"[ \t]+", b" ", block.replace(b"\r\n", b"\n")))
    elif quoted:  # a quote may stand behind a blank
        block = re.sub(b'(?<=[%b\n]) +(?=")' % mark.encode(), b"", block)

    def drop(row: Any) -> str:
        counts[MALFORMED] += 1
        return "skip"

    # a thread of Arrow that still holds what is Python's aborts a process that ends: memory of Arrow, and no threads
    memory = pa.allocate_buffer(len(block))
    memoryview(memory).cast("B")[:] = block
    reading = pv.ReadOptions(column_names=names, block_size=len(block) + 64 if quoted else 1 << 21, use_threads=False)
    parsing = pv.ParseOptions(delimiter=mark, newlines_in_values=quoted, invalid_row_handler=drop)
    typing = pv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        include_columns=[name for name in names if name in wanted],
        strings_can_be_null=True,
        null_values=NOTHING,
    )
    before = counts[MALFORMED]
    try:
        table = pv.read_csv(pa.BufferReader(memory), reading, parsing, typing)
    except pa.ArrowInvalid:
        raise InvalidTraces(f"{piece.name} cannot be divided into columns.", code="E_CSV") from None
    if quoted:
        malformed = counts[MALFORMED] - before
        within = max(0, sum(bool(line.strip()) for line in block.splitlines()) - len(table) - malformed)
        counts["lines that are read as parts of a value in quotes"] += within
        if within and within + malformed >= len(table):
            raise InvalidTraces(f"{piece.name} has a quote that is not closed; close it, or delete it.", code="E_CSV")
    return table


def _sample_text(piece: Piece, dialect: _Dialect) -> Any:
    """Return rows of a text, from all over its first block."""
    blocks = _read_blocks(piece)
    rows = spread(_parse_block(next(blocks), dialect, dialect.names, Counter(), piece, dialect.skip))
    blocks.close()  # type: ignore[attr-defined]
    if len(rows) == 0:
        raise InvalidTraces(
            f"{piece.name} holds no rows with as many fields as its first line: it is no table; give one with a line "
            "of names and a row for each record that tells who, when and where.", code="E_EMPTY",
        )  # fmt: skip
    return rows


def _find_known(rows: list[list[str]]) -> str | None:
    """Return the name of a published format without a line of names, by its first rows."""
    for name, number, time in (("Foursquare TSMC2014", 4, 7), ("Foursquare TIST2015", 3, 2)):
        if rows and all(
            len(r) == len(KNOWN[name]) and NUMBER.fullmatch(r[number]) and " +0000 " in r[time] for r in rows
        ):
            return name
    whole = rows and all(len(row) == 3 and all(re.fullmatch(r"\d{1,7}", field) for field in row) for row in rows)
    return "SGLT" if whole and [row[1] for row in rows[:3]] == ["1", "2", "3"] else None


# --- typed tables -----------------------------------------------------------------------------------------------------


def _open_parquet(piece: Piece) -> Table:
    """Return a Parquet file as a table, read by groups of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with piece.open() as stream:
            plain = isinstance(stream, io.BufferedReader)
            file = pq.ParquetFile(stream.name if plain else pa.BufferReader(read_document(piece)))
        first = (file.read_row_group(0) if file.num_row_groups else file.read()).flatten()
        first = first.select([i for i, name in enumerate(first.column_names) if not INDEX.fullmatch(name)])
        names, sample = tuple(first.column_names), spread(first)
        sample.validate(full=True)
    except (pa.ArrowException, OSError, ValueError):
        raise InvalidTraces(f"{piece.name} is a damaged Parquet file.", code="E_FORMAT") from None
    refuse_doubled(piece.name, names)
    if not file.metadata.num_rows:
        raise InvalidTraces(f"{piece.name} holds no rows.", code="E_EMPTY")

    def batches(wanted: Sequence[str]) -> Iterator[Any]:
        try:
            for batch in file.iter_batches(1 << 20, columns=[n for n in names if n in wanted]):
                batch.validate(full=True)
                yield pa.Table.from_batches([batch]).flatten()
        except (pa.ArrowException, OSError):
            raise InvalidTraces(f"{piece.name} is damaged.", code="E_FORMAT") from None

    return Table(piece.name, names, "parquet", sample, batches, piece.user)


def _open_excel(piece: Piece) -> Table:
    """Return the first sheet of a workbook, read by pandas, as the text that it would be saved as."""
    import pandas as pd

    try:
        frame = pd.read_excel(io.BytesIO(read_document(piece)), engine="calamine", header=None, dtype=object)
    except ImportError:
        raise MissingExtra(f"{piece.name} is a workbook; pip install 'elsewhere[excel]', or save it as CSV.") from None
    except Exception:  # the readers of workbooks raise errors of many kinds, with values in them
        raise InvalidTraces(f"{piece.name} is no workbook that can be read; save it as CSV.", code="E_FORMAT") from None
    content = frame.dropna(how="all").to_csv(index=False, header=False).encode()
    if not content:
        raise InvalidTraces(f"{piece.name} holds no rows.", code="E_EMPTY")
    return _open_text(_in_memory(piece, content), _find_dialect(content.decode()[:SAMPLE], piece.name), "excel")
