"""
Read files block by block: delimited text (CSV and kin), Parquet, and text of known columns (GeoLife, Foursquare).

A sample of a text tells how it is divided into fields (`Dialect`). Then it is read in blocks of whole lines. Columns
whose role is known are parsed in threads as the type that they should have; if one field of a block is anything else,
that block is read again as text, and rows are judged one by one (B48).

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
from elsewhere.traces.clock import read_times
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
    drop_half_character,
    first_records,
    has_positions,
    parse_records,
    read_numbers,
    refuse_equal_names,
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

PIECE = 1 << 18  # bytes at the beginning, the middle and the end of a large text that make its sample

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
    Yield the columns of delimited text, one table per block of lines.

    Lines with more or fewer fields than the first are left out and counted. A last line that is too short was cut off
    (B8): the file is refused, or the line left out if the caller allows that. `like` is the dialect of other files of
    the folder, which is used if the first line fits it; `fixed` is that of a known format.
    """
    settled = fixed or (like if like is not None and _has_dialect(source, options, like[0]) else None)
    nameless = settled is None and like is not None and _lacks_names(source, like[0])
    if nameless and like is not None:
        settled = replace(like[0], skip=0), like[1]
    dialect, meaning = settled or (None, Meaning({}))
    before, rows = 0, 0
    for block, last, cut in _read_blocks(source, options, dialect is None or dialect.quotes):
        if len(block) > LONGEST_FIELD:
            _refuse_long_fields(block, source.name)
        if not block.isascii():
            block = block.decode(errors="replace").encode()  # bytes that are no UTF-8 become a mark that no id has
        if dialect is None:
            if not block.strip():
                if last:
                    break
                continue
            dialect = find_dialect(block if last else sample_lines(source, options, block), source.name)
            if options.roles is not None:
                meaning = options.roles(dialect.names, dialect.headed, dialect.records)
                if like is not None and not has_positions(meaning):
                    # a text beside the tables of a folder
                    yield Table(source.name, {}, 0, dialect.headed, "csv", names=dialect.names, meaning=meaning)
                    return
        table = _read_block(block, source.name, dialect, meaning, options, before, last and not options.sample, cut)
        if table is not None:
            rows += table.rows + table.unequal
            yield replace(table, notes=(*table.notes, NAMELESS)) if nameless else table
        before += block.count(b"\n") or block.count(b"\r")
    if dialect is None:
        raise InvalidTraces(f"{source.name} is empty.", code="E_EMPTY")
    if rows == 0:
        raise InvalidTraces(f"{source.name} holds column names and nothing else.", code="E_EMPTY")


def _has_dialect(source: Source, options: FileOptions, dialect: Dialect) -> bool:
    """Tell whether the first line of a file is the line of names of a dialect, or without names has as many fields."""
    first = source.piece(1 << 14).removeprefix(codecs.BOM_UTF8)
    line = first.splitlines()[0] if first else b""
    if dialect.headed:
        return bool(dialect.head) and dialect.skip == 1 and line == dialect.head and options.encoding == "utf-8"
    fields = split_line(line.decode(errors="replace"), dialect.delimiter)
    return dialect.skip == 0 and len(fields) == len(dialect.names) and _is_data(fields)


def _lacks_names(source: Source, dialect: Dialect) -> bool:
    """Tell whether a file begins with data, with the kinds of fields of a dialect that has a line of names."""
    line = source.piece(1 << 14).removeprefix(codecs.BOM_UTF8).partition(b"\n")[0].rstrip(b"\r")
    fields = split_line(line.decode(errors="replace"), dialect.delimiter)
    if not dialect.headed or not dialect.records or dialect.skip != 1 or not _is_data(fields):
        return False
    here, there = ([NUMERIC.fullmatch(f) is not None for f in record] for record in (fields, dialect.records[0]))
    return here == there


def sample_lines(source: Source, options: FileOptions, first: bytes) -> bytes:
    """Return lines of the beginning of a large text (`first`), its middle and its end."""
    pieces = [first[:PIECE].rpartition(b"\n")[0]]
    if not source.packed and (source.encoding or options.encoding) == "utf-8":
        for at in (source.size // 2, source.size - PIECE):
            if at > PIECE:
                piece = source.piece(PIECE, at).partition(b"\n")[2].rpartition(b"\n")[0]
                pieces.append(piece if piece.count(b'"') % 2 == 0 else b"")
    return b"\n".join(pieces)


def find_dialect(content: bytes, name: str) -> Dialect:
    """Find how a text is divided into columns: the delimiter, the names, and the lines before the data."""
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
    if delimiter is None:
        title, delimiter = _find_head(lines, at)
        if title:
            notes.append(f"before the names of columns, a title was not read: {counted(title, 'line')}")
            at += title
    tabs = {line.count("\t") for line in lines[at : at + SAMPLED] if line.strip()}
    if delimiter == BLANKS and len(tabs) == 1 and min(tabs) >= 2:
        delimiter = "\t"  # as many tabs in every line: blanks are within fields
    names, first = split_line(lines[at], delimiter), at
    headed = not _is_data(names)
    width = len(names)
    if not headed and commented >= 0:
        # the names may stand in the last line of comments
        words = split_line(lines[commented].lstrip("#/% "), delimiter)
        if len(words) == width and not _is_data(words):
            names, first, headed = words, commented, True
    if commented >= 0 and first != commented:
        notes.append("lines of comments before the table were not read")
    skip = at + (headed and first == at)
    # the sample of rows: the first, and some of the others at equal distances
    if delimiter == BLANKS:
        records = [line.split() for line in lines[skip:] if line.strip()]
    else:
        records = [record for _, record in parse_records("\n".join(lines[skip:]), delimiter)]
    rest = records[SAMPLED // 2 :]
    evenly = np.linspace(0, len(rest) - 1, min(SAMPLED, len(rest))).astype(int)
    records = records[: SAMPLED // 2] + [rest[i] for i in evenly]
    if headed:
        if records and all(len(r) == width + 1 for r in records):
            names = _name_extra_field(names, records)
            width = len(names)
        # a line of units below the names
        values = [_count_values(r) for r in records[:4]]
        if len(values) >= 3 and values[0] == 0 and min(values[1:]) >= 2:
            skip += 1 + next(i for i, line in enumerate(lines[skip:]) if line.strip())
            records = records[1:]
            notes.append("the line below the names was not read: it holds no data")
    names = [n if n and headed else f"#{i}" for i, n in enumerate(names, 1)]
    if len({*names}) < len(names):
        refuse_equal_names(names, name)
    rows = tuple(tuple(f.strip() for f in r) for r in records if len(r) == width)
    commas = sum("," in f and COMMA_NUMBER.fullmatch(f) is not None for r in rows for f in r)
    comma = commas > sum("." in f and A_NUMBER.fullmatch(f) is not None for r in rows for f in r)
    if comma:
        notes.append("numbers have decimal commas")
    line = lines[first].encode() if headed and first == at else b""
    return Dialect(delimiter, tuple(names), headed, skip, line, comma, rows, tuple(notes))


def _find_head(lines: Sequence[str], at: int) -> tuple[int, str]:
    """
    Return the number of lines from `at` to the line of names, and its delimiter.

    That line has known names and as many fields as the rows; where there is none, it is the first. Its delimiter gives
    most numbers and times, then most fields; blanks where no other is there.
    """
    delimiters = []
    for i in range(at, min(at + MOST_TITLE, len(lines))):
        inside = [d for d in DELIMITERS[:-1] if d in lines[i]]
        fields_by = {d: split_line(lines[i], d) for d in (*inside, BLANKS)}
        worth = {d: (_count_values(fields), len(fields)) for d, fields in fields_by.items()}
        best = max(inside, key=worth.__getitem__, default=BLANKS)
        # blanks stand within names and times too: they are the delimiter only if they give more values
        delimiter = BLANKS if inside and worth[BLANKS][0] > max(1, worth[best][0]) else best
        delimiters.append(delimiter)
        names = fields_by[delimiter]
        if i > at and (sum(map(is_known, names)) < 2 or _is_data(names)):
            continue
        below = [split_line(line, delimiter) for line in lines[i + 1 : i + 40] if line.strip()][:3]
        # spreadsheets add empty fields at the end of lines
        width, *widths = (
            max((n for n, field in enumerate(fields, 1) if field), default=0) for fields in (names, *below)
        )
        fits = [width <= len(fields) <= width + 1 or n == width for fields, n in zip(below, widths, strict=True)]
        if width > 1 and fits and all(fits):
            return i - at, delimiter
    return 0, delimiters[0]


def _count_values(record: Sequence[str]) -> int:
    """Return how many fields hold a number or a time."""
    return sum(bool(NUMERIC.fullmatch(f) or TIME.fullmatch(f.strip())) for f in record)


def _is_data(fields: Sequence[str]) -> bool:
    """
    Tell whether a line holds data rather than names: numbers or times, and no known name of a column.

    A full time or two decimal numbers are data whatever the other fields hold: a taxi may be called "taxi".
    """
    decimals = sum(NUMERIC.fullmatch(f) is not None and ("." in f or "," in f) for f in fields)
    if decimals >= 2 or any(DATE_TIME.fullmatch(f.strip()) for f in fields):
        return True
    return _count_values(fields) > 0 and not any(is_known(f) for f in fields)


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the fields of one line, stripped."""
    if delimiter == BLANKS:
        return line.split()
    try:
        return [part.strip() for part in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _name_extra_field(names: list[str], records: list[list[str]]) -> list[str]:
    """Return the names with "" for a field that only rows have: an empty last one, or the row number that R writes."""
    if all(not r[-1].strip() for r in records):
        return [*names, ""]
    numbered = [r[0] for r in records[:9]] == [str(i) for i in range(1, len(records[:9]) + 1)]
    return ["", *names] if numbered and len(records) > 1 else names


def _read_blocks(source: Source, options: FileOptions, quotes: bool = True) -> Iterator[tuple[bytes, bool, bool]]:
    """Yield (whole lines in UTF-8, whether they are the last, whether the text is cut off after them)."""
    first = source.piece(1 << 16)
    encoding = source.encoding or options.encoding
    if encoding in ("utf-8", "ascii") and NOT_TEXT[np.frombuffer(first, np.uint8)].any():
        _refuse_binary(first, source.name)
    if options.sample and not source.packed and encoding == "utf-8" and source.size > BLOCK:
        yield sample_lines(source, options, source.piece(PIECE)).removeprefix(codecs.BOM_UTF8), True, False
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
            end = _find_record_end(waiting, source.name, quotes)
            block = bytes(waiting[:end])
            del waiting[:end]
            yield block, False, False
            if options.sample:
                return
    if decoder is not None and decoder.getstate()[0]:
        raise InvalidTraces(f"{source.name}: half a character at its end; give `encoding`.", code="E_ENCODING")
    block = bytes(waiting)
    if options.allow_truncated and not cut and decoder is None:
        whole = drop_half_character(block)
        block, cut = whole, len(whole) < len(block)
    yield block, True, cut


def _refuse_binary(first: bytes, name: str) -> None:
    """Refuse bytes with more control characters than a text has (B6)."""
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


def _find_record_end(waiting: bytearray, name: str, quotes: bool) -> int:
    """Return the end of the last whole record of a block: a line end that is not within quotes."""
    mark = b"\n" if waiting.find(b"\n") >= 0 else b"\r"
    end = waiting.rfind(mark) + 1
    if end == 0 or len(waiting) - end > LONGEST_LINE:
        raise InvalidTraces(f"{name}: a field or a line without end.", code="E_TOO_LARGE")
    while quotes and end and waiting.find(b'"', 0, end) >= 0 and waiting.count(b'"', 0, end) % 2:
        end = waiting.rfind(mark, 0, waiting.rfind(b'"', 0, end)) + 1
    if end == 0:
        raise InvalidTraces(f"{name} is no table: look for an unbalanced quote.", code="E_CSV")
    return end


def _read_block(
    block: bytes,
    name: str,
    dialect: Dialect,
    meaning: Meaning,
    options: FileOptions,
    before: int,
    last: bool,
    cut: bool,
) -> Table | None:
    """Return the rows of a block of lines, None if it has none; `before` is the number of lines before it."""
    if cut:
        block = drop_last_line(block)
    if not block.strip():
        return None
    skip, body, again = dialect.skip if before == 0 else 0, block, 0
    after = block.find(dialect.head) + len(dialect.head) if before == 0 else 0
    if dialect.head and block.find(dialect.head, after) >= 0:
        # joined files repeat the line of names: such lines become blank, so that line numbers stay right
        line = re.compile(rb"(?:(?<=[\r\n])|\A)" + re.escape(dialect.head) + rb"(?=[\r\n]|\Z)")
        rest, again = line.subn(b"", block[after:])
        body = block[:after] + rest
    body = _blanks_to_tabs(body) if dialect.delimiter == BLANKS else body
    types = _choose_types(dialect, meaning.roles, options.plain_times)
    parsed, odd = _parse_block(body, dialect, skip, types, last and not cut)
    if odd.cut and options.allow_truncated:
        return _read_block(block, name, dialect, meaning, options, before, last, True)
    fault = None
    if parsed is None or odd.cut or odd.met:
        fault = _bad_line_error(body, name, dialect, skip, before, odd.cut)
        # a record over several lines shows a quote too many, which damages all that follows (B12)
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


def _blanks_to_tabs(content: bytes) -> bytes:
    """Return a text with one tab for every run of blanks, and no blanks at the ends of lines."""
    return re.sub(rb"[ \t]+", b"\t", re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", content))


def drop_last_line(content: bytes) -> bytes:
    """Return a text without its last line that is not blank."""
    return content[: _find_last_line(content)[0]]


def _find_last_line(content: bytes) -> tuple[int, int]:
    """Return start and end of the last line that is not blank."""
    end = len(content)
    while end and content[end - 1] in b"\r\n":
        end -= 1
    return max(content.rfind(b"\n", 0, end), content.rfind(b"\r", 0, end)) + 1, end


@dataclass
class _BadLines:
    """Counts the lines with too many or too few fields, which the parser leaves out; `last` is the file's last line."""

    last: str | None = None
    met: int = 0
    cut: bool = False
    swallowed: bool = False

    def __call__(self, row: Any) -> str:
        self.met += 1
        self.cut |= row.text == self.last and row.actual_columns < row.expected_columns
        self.swallowed |= "\n" in row.text or "\r" in row.text
        return "skip"


def _choose_types(dialect: Dialect, roles: Mapping[str, str], plain_times: bool) -> dict[str, Any]:
    """Return the columns to read and the Arrow type of each: labels, numbers, times by the first record, or text."""
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


def _parse_block(body: bytes, dialect: Dialect, skip: int, types: dict[str, Any], last: bool) -> tuple[Any, _BadLines]:
    """
    Return the Arrow table of a block, None if it cannot be parsed, and the lines that have another number of fields.

    Columns have the given `types` if all fields fit them, else they are text.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    text = {name: kind if pa.types.is_dictionary(kind) else pa.string() for name, kind in types.items()}
    odd, met, quoted = _BadLines(), False, dialect.quotes and body.find(b'"') >= 0
    # Arrow's threads may outlive Python, and would abort when they free memory that belongs to it: they get a buffer
    # of Arrow's, and `odd`, which is a Python object, is called without threads.
    buffer = pa.allocate_buffer(len(body))
    np.frombuffer(buffer, np.uint8)[:] = np.frombuffer(body, np.uint8)
    for unequal, (kinds, size) in product((False, True), ((types, ARROW_BLOCK), (text, LONGEST_LINE))):
        if met and not unequal:
            continue  # as text its lines have as many fields
        if unequal:
            odd = _BadLines(body[slice(*_find_last_line(body))].decode() if last else None)
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


def _refuse_long_fields(content: bytes, name: str) -> None:
    """Refuse lines above 10 MB and fields above 1 MB (B14); only one place per megabyte is searched."""
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


def _bad_line_error(body: bytes, name: str, dialect: Dialect, skip: int, before: int, cut: bool) -> InvalidTraces:
    width, line = len(dialect.names), 0
    wider = lines = whole = 0
    for line, record in parse_records(body.decode(), dialect.delimiter, dialect.quotes):
        lines, whole = lines + 1, whole + (len(record) == width)
        if line <= skip or cut or len(record) == width:
            continue
        if any("\n" in part or "\r" in part for part in record):
            break
        wider = len(record)
        hint = "; do its numbers have decimal commas?" if dialect.delimiter == "," and wider > width else ""
        return InvalidTraces(
            f"{name}, line {before + line}: {wider} fields where the first line has {width}{hint}.", code="E_CSV"
        )
    if cut and 2 * whole < lines > 2:
        return InvalidTraces(
            f"{name} is of no known format: most of its lines have more or fewer fields than the first.", code="E_CSV"
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
    """Yield the rows of a Parquet file, a table per batch; for a sample, some of its beginning, middle and end."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name, roles, before = source.name, options.roles, 0
    try:
        where = source.path if source.path is not None and not source.packed else None
        at: Any = pa.memory_map(str(where)) if where is not None else pa.BufferReader(source.content)
        schema = pq.read_schema(at)
        # one repeated value in a small file unpacks to any size (B10): text stays in its dictionary
        texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]
        file = pq.ParquetFile(at, read_dictionary=texts)
        names = schema.names
        if len({*names}) < len(names):
            refuse_equal_names(names, name)
        meaning = None if roles is None else roles(names, True, _first_rows(file, name))
        names_read = None if meaning is None else list(dict.fromkeys(n for n in meaning.roles.values() if n in names))
        groups = list(range(file.num_row_groups))
        if options.sample and len(groups) > 3:
            groups = [groups[0], groups[len(groups) // 2], groups[-1]]
        for group in groups:
            for batch in file.iter_batches(BATCH >> 4 * options.sample, [group], names_read or None):
                table = pa.Table.from_batches([batch])
                _refuse_long_text(table, name, file.metadata.num_rows)
                table.validate(full=True)  # finds text that is no UTF-8
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
        # the index of a Parquet file is at its end: nothing can be read of one that is cut off
        why = ", which `allow_truncated` cannot save: its index is at its end" if options.allow_truncated else ""
        raise InvalidTraces(f"{name} is a damaged or truncated Parquet file{why}.", code="E_PARQUET") from None
    if not before:
        raise InvalidTraces(f"{name} holds no rows.", code="E_EMPTY")


def _first_rows(file: Any, name: str) -> list[tuple[str, ...]]:
    """Return the first rows of a Parquet file as text."""
    import pyarrow as pa

    if not file.num_row_groups:
        return []
    for batch in file.iter_batches(RECORDS, [0]):
        table = pa.Table.from_batches([batch])
        _refuse_long_text(table, name, file.metadata.num_rows)
        columns = dict(zip(table.column_names, table.columns, strict=True))
        return first_records(Table(name, columns, table.num_rows, names=tuple(table.column_names)))
    return []


def _refuse_long_text(table: Any, name: str, rows: int) -> None:
    """Refuse a table whose text does not fit into memory once it is unpacked."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            longest = max((pc.max(pc.binary_length(c.dictionary)).as_py() or 0 for c in column.chunks), default=0)
            if longest > LONGEST_TEXT and longest * rows > MAX_HELD:
                raise InvalidTraces(f"{name}: a field without end.", code="E_TOO_LARGE")


def read_foursquare(source: Source, options: FileOptions) -> Iterator[Table]:
    """Yield check-ins with their UTC and local times, or venues."""
    import pyarrow as pa

    head = source.piece(LOOKED_AT)
    names = BY_WIDTH.get(head.lstrip().partition(b"\n")[0].rstrip(b"\r").count(b"\t") + 1)
    if names is None:
        raise InvalidTraces(f"{source.name}: a Foursquare line has 4, 5 or 8 fields.", code="E_COLUMN")
    # the published files are latin-1, and only names of categories have other characters than ASCII
    encoding = "latin-1" if options.encoding == "utf-8" and not _is_utf8(head) else options.encoding
    skip = len(head) - len(head.lstrip())  # blank lines
    dialect = Dialect("\t", names, True, head[:skip].count(b"\n"), quotes=False)
    for table in read_text(source, replace(options, encoding=encoding, roles=None), fixed=(dialect, Meaning({}))):
        if names == VENUE:
            yield replace(table, format="foursquare")
            continue
        utc, minutes = read_times(table, "utc").time, read_numbers(table, "offset")
        plausible = np.isfinite(minutes) & (np.abs(minutes) <= 24 * 60)
        shift = np.where(plausible, minutes, 0).astype("timedelta64[m]")
        local = np.where(plausible, utc + shift, np.datetime64("NaT", "us"))
        columns: dict[str, Any] = {
            n: table.columns[n] for n in ("user", "venue", "lat", "lon", "category") if n in table.columns
        }
        columns |= {"utc": pa.array(utc, pa.timestamp("us", "UTC")), "local time": pa.array(local, pa.timestamp("us"))}
        yield replace(table, columns=columns, names=tuple(columns), format="foursquare")


def _is_utf8(head: bytes) -> bool:
    """Tell whether the first bytes of a file are UTF-8; half a character at their end is allowed."""
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4
    return True


HEADING = 6

PLT = Dialect(",", ("lat", "lon", "zero", "altitude", "days", "date", "clock"), True, HEADING)

WANTED = Meaning({"lat": "lat", "lon": "lon", "date": "date", "time": "clock"})


def read_plt(source: Source, options: FileOptions) -> Iterator[Table]:
    """Yield the fixes of one track; its user is the folder above `Trajectory`, else the file."""
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
