"""
Read files block by block: delimited text (CSV and kin), Parquet, and text of known columns (GeoLife, Foursquare).

How a text is cut into fields is decided on a sample of it (`Dialect`). Then it is read in blocks of whole lines.
Columns whose role is known are parsed at once, in threads, as what they should hold; if a single field of a block is
anything else, that block is read again as text, and rows are judged one by one (B48).

GeoLife `.plt`: six lines of heading, then `lat,lon,0,altitude in feet,days since 1899,date,time` in GMT. Foursquare
check-ins are those published for research, tab-separated: TSMC2014: user, venue, category id, category, lat, lon,
offset in minutes, UTC time. TIST2015: user, venue, UTC time, offset, with a second file of venues: venue, lat, lon,
category, country.
"""

import codecs
import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from elsewhere.errors import InvalidTraces, counted
from elsewhere.traces.clock import times
from elsewhere.traces.columns import A_NUMBER, COMMA_NUMBER, DATE_TIME, NOTHING, NUMERIC, TIME, Meaning, is_known
from elsewhere.traces.sources import (
    BLANKS,
    CUT,
    LONGEST_TEXT,
    MAX_HELD,
    NOT_TEXT,
    RECORDS,
    Dialect,
    FileOptions,
    Source,
    Table,
    check_names,
    encoding_of,
    first_records,
    has_positions,
    numbers,
    records_in,
    whole_characters,
)

DELIMITERS = (",", ";", "\t", "|", BLANKS)

WITH_SECONDS = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(?P<z>Z)?", re.ASCII)

NAMELESS = "without a line of names: read with that of another file of the folder"

SEPARATOR = re.compile(r"sep=(.)", re.IGNORECASE)  # Excel's own first line

COMMENT = ("#", "//", "%")

LONGEST_FIELD = 1 << 20

LONGEST_LINE = 10 << 20

ARROW_BLOCK = 1 << 21

BLOCK = 1 << 24

PIECE = 1 << 18  # of a large text, looked at in its beginning, its middle and its end

SAMPLED = 1000  # records of each piece

MOST_TITLE = 20  # lines before the names of columns

MOST_CONTROL = 0.1  # share of control characters above which bytes are no text

UNEQUAL = " columns, got "  # in Arrow's words on a line of another width

LABELS, NUMBERS = ("user", "household", "place", "trace", "category"), ("lat", "lon", "slot")

TIMES = ("time", "utc", "local", "arrived", "left")


def read_text(
    source: Source,
    options: FileOptions,
    like: tuple[Dialect, Meaning] | None = None,
    fixed: tuple[Dialect, Meaning] | None = None,
) -> Iterator[Table]:
    """
    Return the columns of delimited text, one table per block of lines.

    Lines with more or fewer fields than the first are left out and counted. A last line that is too short is no such
    line, it was cut off (B8): it is refused, or left out if the caller allows that. A file of a folder is cut as the
    others (`like`) if its first line is; where the format is known, so is the dialect (`fixed`).
    """
    settled = fixed or (like if like is not None and _alike(source, options, like[0]) else None)
    nameless = settled is None and like is not None and _continues(source, like[0])
    if nameless and like is not None:
        settled = replace(like[0], skip=0), like[1]
    dialect, meaning = settled or (None, Meaning({}))
    before, rows = 0, 0
    for block, last, cut in _blocks(source, options, dialect is None or dialect.quotes):
        if len(block) > LONGEST_FIELD:
            _refuse_endless(block, source.name)
        if not block.isascii():
            block = block.decode(errors="replace").encode()  # what is no UTF-8 becomes a mark that no id has
        if dialect is None:
            if not block.strip():
                if last:
                    break
                continue
            dialect = dialect_of(block if last else sampled(source, options, block), source.name)
            if options.roles is not None:
                meaning = options.roles(dialect.names, dialect.headed, dialect.records)
                if like is not None and not has_positions(meaning):
                    # in a folder of tables, a text beside them
                    yield Table(source.name, {}, 0, dialect.headed, "csv", names=dialect.names, meaning=meaning)
                    return
        types = _types(dialect, meaning.roles, options.plain_times)
        table = _table(block, source.name, dialect, meaning, types, options, before, last and not options.sample, cut)
        if table is not None:
            rows += table.rows + table.unequal
            yield replace(table, notes=(*table.notes, NAMELESS)) if nameless else table
        before += block.count(b"\n") or block.count(b"\r")
    if dialect is None:
        raise InvalidTraces(f"{source.name} is empty.", code="E_EMPTY")
    if rows == 0:
        raise InvalidTraces(f"{source.name} holds column names and nothing else.", code="E_EMPTY")


def _alike(source: Source, options: FileOptions, dialect: Dialect) -> bool:
    """Tell whether the first line of a file is the line of names of another one, or data cut into as many fields."""
    first = source.piece(1 << 14).removeprefix(codecs.BOM_UTF8)
    line = first.splitlines()[0] if first else b""
    if dialect.headed:
        return bool(dialect.head) and dialect.skip == 1 and line == dialect.head and options.encoding == "utf-8"
    fields = split(line.decode(errors="replace"), dialect.delimiter)
    return dialect.skip == 0 and len(fields) == len(dialect.names) and _is_data(fields)


def _continues(source: Source, dialect: Dialect) -> bool:
    """Tell whether a file has no line of names, and its first line the fields of another file that has one."""
    line = source.piece(1 << 14).removeprefix(codecs.BOM_UTF8).partition(b"\n")[0].rstrip(b"\r")
    fields = split(line.decode(errors="replace"), dialect.delimiter)
    if not dialect.headed or not dialect.records or dialect.skip != 1 or not _is_data(fields):
        return False
    here, there = ([NUMERIC.fullmatch(f) is not None for f in record] for record in (fields, dialect.records[0]))
    return here == there


def sampled(source: Source, options: FileOptions, first: bytes) -> bytes:
    """Return the beginning of a large text, which is at hand, and lines of its middle and its end."""
    pieces = [first[:PIECE].rpartition(b"\n")[0]]
    if not source.packed and encoding_of(first, options.encoding) == "utf-8":
        for at in (source.size // 2, source.size - PIECE):
            if at > PIECE:
                piece = source.piece(PIECE, at).partition(b"\n")[2].rpartition(b"\n")[0]
                pieces.append(piece if piece.count(b'"') % 2 == 0 else b"")
    return b"\n".join(pieces)


def dialect_of(content: bytes, name: str) -> Dialect:
    """Tell how a text is cut into columns, by its first lines and those that follow."""
    head = content[: 4 * PIECE]
    lines = head.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if len(content) > len(head):
        lines.pop()
    at, delimiter, commented = 0, None, -1
    while at < len(lines):
        separator, comment = SEPARATOR.fullmatch(lines[at]), lines[at].lstrip().startswith(COMMENT)
        if lines[at].strip() and not separator and not comment:
            break
        delimiter, commented = (separator[1] if separator else delimiter), (at if comment else commented)
        at += 1
    if at == len(lines):
        raise InvalidTraces(f"{name} holds comments and nothing else.", code="E_EMPTY")
    notes = []
    if delimiter is None and (title := _title(lines, at)):
        notes.append(f"before the names of columns, a title was not read: {counted(title, 'line')}")
        at += title
    delimiter = delimiter or _delimiter(lines[at])
    tabs = {line.count("\t") for line in lines[at : at + SAMPLED] if line.strip()}
    if delimiter == BLANKS and len(tabs) == 1 and min(tabs) >= 2:
        delimiter = "\t"  # as many in every line, with blanks within the fields
    names, first = split(lines[at], delimiter), at
    headed = not _is_data(names)
    width = len(names)
    if not headed and commented >= 0:
        # names behind the mark of a comment
        words = split(lines[commented].lstrip("#/% "), delimiter)
        if len(words) == width and not _is_data(words):
            names, first, headed = words, commented, True
    if commented >= 0 and first != commented:
        notes.append("lines of comments before the table were not read")
    skip = at + (headed and first == at)
    # the first rows, and some evenly from all others
    if delimiter == BLANKS:
        records = [line.split() for line in lines[skip:] if line.strip()]
    else:
        records = [record for _, record in records_in("\n".join(lines[skip:]), delimiter)]
    rest = records[SAMPLED // 2 :]
    evenly = np.linspace(0, len(rest) - 1, min(SAMPLED, len(rest))).astype(int)
    records = records[: SAMPLED // 2] + [rest[i] for i in evenly]
    if headed:
        if records and all(len(r) == width + 1 for r in records):
            names = _widened(names, records)
            width = len(names)
        typed = [_typed(r) for r in records[:4]]
        if len(typed) >= 3 and typed[0] == 0 and min(typed[1:]) >= 2:
            skip += 1 + next(i for i, line in enumerate(lines[skip:]) if line.strip())
            records = records[1:]
            notes.append("the line below the names was not read: it holds no data")
    names = [n if n and headed else f"#{i}" for i, n in enumerate(names, 1)]
    check_names(names, name)
    rows = tuple(tuple(f.strip() for f in r) for r in records if len(r) == width)
    commas = sum("," in f and COMMA_NUMBER.fullmatch(f) is not None for r in rows for f in r)
    comma = commas > sum("." in f and A_NUMBER.fullmatch(f) is not None for r in rows for f in r)
    if comma:
        notes.append("numbers have decimal commas")
    line = lines[first].encode() if headed and first == at else b""
    return Dialect(delimiter, tuple(names), headed, skip, line, comma, rows, tuple(notes))


def _title(lines: Sequence[str], at: int) -> int:
    """Return how many lines stand before the names of columns: these are known, and the rows are as wide as they."""
    for i in range(at, min(at + MOST_TITLE, len(lines))):
        delimiter = _delimiter(lines[i])
        names = split(lines[i], delimiter)
        if i > at and (sum(map(is_known, names)) < 2 or _is_data(names)):
            continue
        below = [split(line, delimiter) for line in lines[i + 1 : i + 40] if line.strip()][:3]
        # a spreadsheet fills its lines up with empty fields
        width, *widths = (
            max((n for n, field in enumerate(fields, 1) if field), default=0) for fields in (names, *below)
        )
        fits = [width <= len(fields) <= width + 1 or n == width for fields, n in zip(below, widths, strict=True)]
        if width > 1 and fits and all(fits):
            return i - at
    return 0


def _typed(record: Sequence[str]) -> int:
    """Return how many fields hold a number or a time."""
    return sum(bool(NUMERIC.fullmatch(f) or TIME.fullmatch(f.strip())) for f in record)


def _is_data(fields: Sequence[str]) -> bool:
    """
    Tell whether a line holds data where names are expected: numbers or times, and no name that is known.

    A full time or two decimal numbers are data, whatever words stand beside them: a taxi may be called "taxi".
    """
    decimals = sum(NUMERIC.fullmatch(f) is not None and ("." in f or "," in f) for f in fields)
    if decimals >= 2 or any(DATE_TIME.fullmatch(f.strip()) for f in fields):
        return True
    return _typed(fields) > 0 and not any(is_known(f) for f in fields)


def _delimiter(line: str) -> str:
    """Return the delimiter that cuts a line into most numbers and times, of equals into most fields; else blanks."""
    inside = [d for d in DELIMITERS[:-1] if d in line]
    fields = {d: split(line, d) for d in (*inside, BLANKS)}
    worth = {d: (_typed(parts), len(parts)) for d, parts in fields.items()}
    best = max(inside, key=lambda d: worth[d], default=BLANKS)
    # blanks stand within names and times too: they must tell more than any other
    return BLANKS if inside and worth[BLANKS][0] > max(1, worth[best][0]) else best


def split(line: str, delimiter: str) -> list[str]:
    """Return the fields of one line, stripped."""
    if delimiter == BLANKS:
        return line.split()
    try:
        return [part.strip() for part in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _widened(names: list[str], records: list[list[str]]) -> list[str]:
    """Return the names, and one for the field that rows have more: empty at the end, or the number of the row (R)."""
    if all(not r[-1].strip() for r in records):
        return [*names, ""]
    numbered = [r[0] for r in records[:9]] == [str(i) for i in range(1, len(records[:9]) + 1)]
    return ["", *names] if numbered and len(records) > 1 else names


def _blocks(source: Source, options: FileOptions, quotes: bool = True) -> Iterator[tuple[bytes, bool, bool]]:
    """Yield whole lines in UTF-8, whether they are the last, and whether the text is cut off after them."""
    first = source.piece(1 << 16)
    encoding = encoding_of(first, options.encoding)
    if encoding in ("utf-8", "ascii") and NOT_TEXT[np.frombuffer(first, np.uint8)].any():
        _refuse_bytes(first, source.name)
    if options.sample and not source.packed and encoding == "utf-8" and source.size > BLOCK:
        yield sampled(source, options, source.piece(PIECE)).removeprefix(codecs.BOM_UTF8), True, False
        return
    decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)(errors="replace")
    waiting, cut, started = bytearray(), source.cut, False
    for part in source.blocks():
        if part is None:
            cut = True
            break
        waiting += decoder.decode(part).encode(errors="replace") if decoder is not None else part
        if not started:
            started = True
            if waiting.startswith(codecs.BOM_UTF8):
                del waiting[:3]
        if len(waiting) > BLOCK:
            end = _line_end(waiting, source.name, quotes)
            block = bytes(waiting[:end])
            del waiting[:end]
            yield block, False, False
            if options.sample:
                return
    if decoder is not None and decoder.getstate()[0]:
        raise InvalidTraces(f"{source.name}: half a character at its end; give `encoding`.", code="E_ENCODING")
    block = bytes(waiting)
    if options.allow_truncated and not cut and decoder is None:
        whole = whole_characters(block)
        block, cut = whole, len(whole) < len(block)
    yield block, True, cut


def _refuse_bytes(first: bytes, name: str) -> None:
    """Refuse bytes that are no text: a share of control characters that no text has (B6)."""
    share = NOT_TEXT[np.frombuffer(first, np.uint8)].mean()
    if share <= max(MOST_CONTROL, 1.5 / len(first)):
        return
    even, odd = (first[side::2].count(b"\0") / len(first) for side in (0, 1))
    if min(even, odd) < 0.01 and max(even, odd) > 0.3:  # every other byte
        raise InvalidTraces(f"{name} is no text; give `encoding`, utf-16-le?.", code="E_ENCODING")
    raise InvalidTraces(
        f"{name} is no text, and no file of another kind that is read (Parquet, Excel, gzip); save it as CSV.",
        code="E_ENCODING",
    )


def _line_end(waiting: bytearray, name: str, quotes: bool) -> int:
    """Return where the last whole record of a block ends: at a line end that is not within quotes."""
    mark = b"\n" if waiting.find(b"\n") >= 0 else b"\r"
    end = waiting.rfind(mark) + 1
    if end == 0 or len(waiting) - end > LONGEST_LINE:
        raise InvalidTraces(f"{name}: a field or a line without end.", code="E_TOO_LARGE")
    while quotes and end and waiting.find(b'"', 0, end) >= 0 and waiting.count(b'"', 0, end) % 2:
        end = waiting.rfind(mark, 0, waiting.rfind(b'"', 0, end)) + 1
    if end == 0:
        raise InvalidTraces(f"{name} is no table: look for an unbalanced quote.", code="E_CSV")
    return end


def _table(
    block: bytes,
    name: str,
    dialect: Dialect,
    meaning: Meaning,
    types: dict[str, Any],
    options: FileOptions,
    before: int,
    last: bool,
    cut: bool,
) -> Table | None:
    """Return the rows of one block; None if it has none. `before` lines stand before it."""
    if cut:
        block = without_last_line(block)
    if not block.strip():
        return None
    skip, body, again = dialect.skip if before == 0 else 0, block, 0
    after = block.find(dialect.head) + len(dialect.head) if before == 0 else 0
    if dialect.head and block.find(dialect.head, after) >= 0:
        # files put one after the other: further lines of names stay as blank lines
        line = re.compile(rb"(?:(?<=[\r\n])|\A)" + re.escape(dialect.head) + rb"(?=[\r\n]|\Z)")
        rest, again = line.subn(b"", block[after:])
        body = block[:after] + rest
    body = _one_blank(body) if dialect.delimiter == BLANKS else body
    parsed, odd = _parse(body, dialect, skip, types, last and not cut)
    if odd.cut and options.allow_truncated:
        return _table(block, name, dialect, meaning, types, options, before, last, True)
    fault = None
    if parsed is None or odd.cut or odd.met:
        fault = _unequal_record(body, name, dialect, skip, before, odd.cut)
        # one that spans lines has swallowed others: a quote too many, and no single bad line (B12)
        if parsed is None or odd.cut or odd.swallowed:
            raise fault
    if parsed.num_rows == 0 and not odd.met:
        return None
    return Table(
        name,
        dict(zip(parsed.column_names, parsed.columns, strict=True)),
        parsed.num_rows,
        dialect.headed,
        "sglt" if meaning.sglt else "csv",
        body,
        names=dialect.names,
        notes=(*(dialect.notes if before == 0 else ()), *([CUT] if cut else [])),
        unequal=odd.met,
        fault=fault,
        meaning=meaning if options.roles is not None else None,
        dialect=dialect,
        skip=skip,
        before=before,
        fixed={"further lines of column names": again} if again else {},
        comma=dialect.comma,
    )


def _one_blank(content: bytes) -> bytes:
    """Return the text with one tab for every run of blanks, none at the ends of lines."""
    return re.sub(rb"[ \t]+", b"\t", re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", content))


def without_last_line(content: bytes) -> bytes:
    """Return all lines but the last that is not blank."""
    return content[: _last_line(content)[0]]


def _last_line(content: bytes) -> tuple[int, int]:
    end = len(content)
    while end and content[end - 1] in b"\r\n":
        end -= 1
    return max(content.rfind(b"\n", 0, end), content.rfind(b"\r", 0, end)) + 1, end


@dataclass
class _Unequal:
    """Lines with too many or too few fields, left out by the parser and counted; `last` is the last of the file."""

    last: str | None = None
    met: int = 0
    cut: bool = False
    swallowed: bool = False

    def __call__(self, row: Any) -> str:
        self.met += 1
        self.cut |= row.text == self.last and row.actual_columns < row.expected_columns
        self.swallowed |= "\n" in row.text or "\r" in row.text
        return "skip"


def _types(dialect: Dialect, roles: Mapping[str, str], plain_times: bool) -> dict[str, Any]:
    """Return the wanted columns and what they are parsed as: labels, numbers, times by the first record, or text."""
    import pyarrow as pa

    columns = list(dict.fromkeys(n for n in roles.values() if n in dialect.names)) or list(dialect.names)
    field = dict(zip(dialect.names, dialect.records[0], strict=True)) if dialect.records else {}
    types = dict.fromkeys(columns, pa.string())
    types |= {roles[role]: pa.dictionary(pa.int32(), pa.string()) for role in LABELS if roles.get(role) in columns}
    types |= {roles[role]: pa.float64() for role in NUMBERS if roles.get(role) in columns}
    for role in TIMES if plain_times else ():
        if roles.get(role) in field:
            value = field[roles[role]].strip()
            full = WITH_SECONDS.fullmatch(value)
            if full:
                types[roles[role]] = pa.timestamp("us", "UTC" if full["z"] else None)
            elif A_NUMBER.fullmatch(value) and len(value.partition(".")[0]) not in (4, 6, 8, 12, 14):
                types[roles[role]] = pa.float64()  # not a date or a clock time of digits alone
    return types


def _parse(body: bytes, dialect: Dialect, skip: int, types: dict[str, Any], last: bool) -> tuple[Any, _Unequal]:
    """
    Return the table of the wanted columns, and its lines of another width.

    It has the given types if every field allows it, else text; it is None if no table can be made.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    text = {name: kind if pa.types.is_dictionary(kind) else pa.string() for name, kind in types.items()}
    odd, met, quoted = _Unequal(), False, dialect.quotes and body.find(b'"') >= 0
    # Threads of Arrow may let go of what they hold when Python is already gone, and abort if that is Python's: they
    # get memory of Arrow's own, and lines of another width are judged by `odd` without threads.
    buffer = pa.allocate_buffer(len(body))
    np.frombuffer(buffer, np.uint8)[:] = np.frombuffer(body, np.uint8)
    for unequal, (kinds, size) in product((False, True), ((types, ARROW_BLOCK), (text, LONGEST_LINE))):
        if met and not unequal:
            continue  # as text its lines are no wider
        if unequal:
            odd = _Unequal(body[slice(*_last_line(body))].decode() if last else None)
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(buffer),
                read_options=arrow_csv.ReadOptions(
                    column_names=dialect.names,
                    skip_rows=skip,
                    block_size=min(size, max(1 << 20, len(body))),
                    use_threads=not unequal,
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter="\t" if dialect.delimiter == BLANKS else dialect.delimiter,
                    quote_char='"' if dialect.quotes else False,
                    newlines_in_values=quoted,
                    invalid_row_handler=odd if unequal else None,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=kinds,
                    include_columns=list(types),
                    null_values=NOTHING,
                    strings_can_be_null=False,
                    check_utf8=False,
                    decimal_point="," if dialect.comma else ".",
                ),
            )
        except pa.ArrowException as error:
            met = UNEQUAL in str(error)
            continue
        return table, odd
    return None, odd


def _refuse_endless(content: bytes, name: str) -> None:
    """Refuse lines above 10 MB and fields above 1 MB (B14), at the price of a look per megabyte."""
    at, line = 0, 1
    while len(content) - at > LONGEST_FIELD:
        end = max(content.rfind(mark, at, at + LONGEST_FIELD) for mark in (b"\n", b"\r"))
        if end < 0:
            ends = [e for e in (content.find(mark, at, at + LONGEST_LINE) for mark in (b"\n", b"\r")) if e >= 0]
            whole = content[at : min(ends)] if ends else content[at:]
            line += content.count(b"\n", 0, at)
            if len(whole) > LONGEST_LINE or max(map(len, re.split(rb"[,;\t| ]", whole))) > LONGEST_FIELD:
                raise InvalidTraces(f"{name}, line {line}: a field or a line without end.", code="E_TOO_LARGE")
            end = at + len(whole)
        at = end + 1


def _unequal_record(body: bytes, name: str, dialect: Dialect, skip: int, before: int, cut: bool) -> InvalidTraces:
    width, line = len(dialect.names), 0
    wider = 0
    for line, record in records_in(body.decode(), dialect.delimiter, dialect.quotes):
        if line <= skip or cut or len(record) == width:
            continue
        if any("\n" in part or "\r" in part for part in record):
            break
        wider = len(record)
        hint = "; do its numbers have decimal commas?" if dialect.delimiter == "," and wider > width else ""
        return InvalidTraces(
            f"{name}, line {before + line}: {wider} fields where the first line has {width}{hint}.", code="E_CSV"
        )
    if cut:
        return InvalidTraces(f"{name}, line {before + line}: the last line is cut off.", code="E_TRUNCATED")
    return InvalidTraces(
        f"{name}, line {before + line}: no table of {width} columns: look for an unbalanced quote.", code="E_CSV"
    )


BATCH = 1 << 19  # rows of a Parquet file at a time

CHECK_IN = ("user", "venue", "category id", "category", "lat", "lon", "offset", "utc")

CHECK_IN_ALONE = ("user", "venue", "utc", "offset")

VENUE = ("venue", "lat", "lon", "category", "country")

BY_WIDTH = {len(names): names for names in (CHECK_IN, CHECK_IN_ALONE, VENUE)}

LOOKED_AT = 1 << 22


def read_parquet(source: Source, options: FileOptions) -> Iterator[Table]:
    """Yield the rows of a Parquet file, a table per batch; of a `sample`, some of its beginning, middle and end."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name, roles, before = source.name, options.roles, 0
    try:
        where = source.path if source.path is not None and not source.packed else None
        at: Any = pa.memory_map(str(where)) if where is not None else pa.BufferReader(source.content)
        schema = pq.read_schema(at)
        # a page of one repeated value unpacks to any size (B10): text stays in its dictionary
        texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]
        file = pq.ParquetFile(at, read_dictionary=texts)
        names = schema.names
        check_names(names, name)
        meaning = None if roles is None else roles(names, True, _head_of(file, name))
        names_read = None if meaning is None else list(dict.fromkeys(n for n in meaning.roles.values() if n in names))
        groups = list(range(file.num_row_groups))
        if options.sample and len(groups) > 3:
            groups = [groups[0], groups[len(groups) // 2], groups[-1]]
        for group in groups:
            for batch in file.iter_batches(BATCH >> 4 * options.sample, [group], names_read or None):
                table = pa.Table.from_batches([batch])
                _refuse_endless_text(table, name, file.metadata.num_rows)
                table.validate(full=True)  # text that is no text would only be noticed later
                if table.num_rows:
                    columns = dict(zip(table.column_names, table.columns, strict=True))
                    yield Table(
                        name,
                        columns,
                        table.num_rows,
                        format="parquet",
                        names=tuple(names),
                        meaning=meaning,
                        before=before,
                    )
                before += table.num_rows
                if options.sample:
                    break
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError, OverflowError):
        # what a Parquet file holds is told at its end: of a cut one nothing can be saved
        why = ", which `allow_truncated` cannot save: its index is at its end" if options.allow_truncated else ""
        raise InvalidTraces(f"{name} is a damaged or truncated Parquet file{why}.", code="E_PARQUET") from None
    if not before:
        raise InvalidTraces(f"{name} holds no rows.", code="E_EMPTY")


def _head_of(file: Any, name: str) -> list[tuple[str, ...]]:
    """Return the first rows of a Parquet file as text."""
    import pyarrow as pa

    if not file.num_row_groups:
        return []
    for batch in file.iter_batches(RECORDS, [0]):
        table = pa.Table.from_batches([batch])
        _refuse_endless_text(table, name, file.metadata.num_rows)
        columns = dict(zip(table.column_names, table.columns, strict=True))
        return first_records(Table(name, columns, table.num_rows, names=tuple(table.column_names)))
    return []


def _refuse_endless_text(table: Any, name: str, rows: int) -> None:
    """Refuse a table whose text, written out, would not fit into memory."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            longest = max((pc.max(pc.binary_length(c.dictionary)).as_py() or 0 for c in column.chunks), default=0)
            if longest > LONGEST_TEXT and longest * rows > MAX_HELD:
                raise InvalidTraces(f"{name}: a field without end.", code="E_TOO_LARGE")


def read_foursquare(source: Source, options: FileOptions) -> Iterator[Table]:
    """Return check-ins with their UTC and local times, or venues."""
    import pyarrow as pa

    head = source.piece(LOOKED_AT)
    names = BY_WIDTH.get(head.lstrip().partition(b"\n")[0].rstrip(b"\r").count(b"\t") + 1)
    if names is None:
        raise InvalidTraces(f"{source.name}: a Foursquare line has 4, 5 or 8 fields.", code="E_COLUMN")
    # latin-1 is that of the published files; only names of categories need it
    encoding = "latin-1" if options.encoding == "utf-8" and not _is_utf8(head) else options.encoding
    skip = len(head) - len(head.lstrip())  # blank lines
    dialect = Dialect("\t", names, True, head[:skip].count(b"\n"), quotes=False)
    for table in read_text(source, replace(options, encoding=encoding, roles=None), fixed=(dialect, Meaning({}))):
        if names == VENUE:
            yield replace(table, format="foursquare")
            continue
        utc, minutes = times(table, "utc").time, numbers(table, "offset")
        plausible = np.isfinite(minutes) & (np.abs(minutes) <= 24 * 60)
        shift = np.where(plausible, minutes, 0).astype("timedelta64[m]")
        local = np.where(plausible, utc + shift, np.datetime64("NaT", "us"))
        columns: dict[str, Any] = {
            n: table.columns[n] for n in ("user", "venue", "lat", "lon", "category") if n in table.columns
        }
        columns |= {"utc": pa.array(utc, pa.timestamp("us", "UTC")), "local time": pa.array(local, pa.timestamp("us"))}
        yield replace(table, columns=columns, names=tuple(columns), format="foursquare")


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4  # half a character where the look ends
    return True


HEADING = 6

PLT = Dialect(",", ("lat", "lon", "zero", "altitude", "days", "date", "clock"), True, HEADING)

WANTED = Meaning({"lat": "lat", "lon": "lon", "date": "date", "time": "clock"})


def read_plt(source: Source, options: FileOptions) -> Iterator[Table]:
    """Return the fixes of one track; its user is the folder above `Trajectory`, else the file."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    head = source.piece(1 << 12).splitlines(keepends=True)
    if len(head) < HEADING or not head[HEADING - 1].endswith((b"\n", b"\r")):
        raise InvalidTraces(f"{source.name} ends within the heading of a .plt file.", code="E_TRUNCATED")
    for table in read_text(source, replace(options, roles=None), fixed=(PLT, WANTED)):
        date, clock = (pc.utf8_trim_whitespace(table.column(name)) for name in ("date", "clock"))
        columns = {
            "user": pa.DictionaryArray.from_arrays(np.zeros(table.rows, dtype=np.int32), pa.array([source.user])),
            "utc": pc.binary_join_element_wise(date, clock, "T"),
            "lat": table.columns["lat"],
            "lon": table.columns["lon"],
        }
        yield replace(table, columns=columns, names=tuple(columns), format="geolife")
