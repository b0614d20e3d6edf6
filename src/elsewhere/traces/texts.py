"""
Delimited text as named columns: CSV and kin.

Columns whose role is known are parsed at once, in threads, as what they should hold; if a single field is anything
else, all of the file is read again as text, and rows are judged one by one (B48).
"""

import csv
import io
import re
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from elsewhere.errors import InvalidTraces
from elsewhere.traces.sources import refuse_rows
from elsewhere.traces.tables import Roles, Table, _check_names

DELIMITERS = (",", ";", "\t", "|")
FIRST_LINE = re.compile(rb"[^\r\n]*[^\s][^\r\n]*")
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
WITH_SECONDS = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(?P<z>Z)?", re.ASCII)
LONGEST_FIELD = 1 << 20
LONGEST_LINE = 10 << 20
NOTHING = ["", "NA", "N/A", "NULL", "null", "NaN", "nan", "None"]
LABELS, NUMBERS = ("user", "place", "trace", "category"), ("lat", "lon", "slot")
TIMES = ("time", "utc", "local", "arrived", "left")


def text_table(
    content: bytes,
    name: str,
    roles: Roles | None = None,
    *,
    plain_times: bool = True,
    max_bad: float = 0.0,
    cut: bool = False,
) -> Table:
    """
    The columns of delimited text in UTF-8; the delimiter is the one that cuts the first line into most fields.

    Of the lines at most the share `max_bad` may have more or fewer fields than the first: they are left out and
    counted. A last line that is too short is no such line, it was cut off (B8); with `cut` it is left out.
    """
    if cut:
        content = without_last_line(content)
    found = FIRST_LINE.search(content)
    if found is None:
        raise InvalidTraces(f"{name} is empty.", code="E_EMPTY")
    _refuse_endless(content, name)
    refuse_rows(content.count(b"\n"), name)
    first, body = found[0].decode(), memoryview(content)[found.start() :]
    delimiter = max(DELIMITERS, key=lambda d: len(_split(first, d)))
    fields = [part.strip() for part in _split(first, delimiter)]
    headed = not all(NUMBER.fullmatch(part) for part in fields)
    names = fields if headed else [str(i) for i in range(len(fields))]
    _check_names(names, name)
    known = roles(names) if headed and roles is not None else {}
    quoted = content.find(b'"', found.start()) >= 0
    kinds = _guessed(body, names, headed, delimiter, known, plain_times)
    lines = max(content.count(b"\n"), content.count(b"\r"))
    odd = _Unequal(int(max_bad * lines), content[slice(*_last_line(content))].decode())
    parsed = _parse(body, names, headed, delimiter, quoted, known, kinds, odd)
    unequal = len(odd.met)
    nothing_else = parsed is not None and unequal and parsed.num_rows == 0
    if parsed is None or odd.cut or nothing_else or unequal > max_bad * (parsed.num_rows + unequal):
        raise _unequal_record(content, name, delimiter, len(names), max_bad, odd.cut)
    if parsed.num_rows == 0:
        raise InvalidTraces(f"{name} holds column names and nothing else.", code="E_EMPTY")
    columns = dict(zip(parsed.column_names, parsed.columns, strict=True))
    kind = "csv" if headed else "sglt"
    return Table(name, columns, parsed.num_rows, headed, kind, content, delimiter, tuple(names), unequal=unequal)


def without_last_line(content: bytes) -> bytes:
    """All lines but the last that is not blank."""
    return content[: _last_line(content)[0]]


def _last_line(content: bytes) -> tuple[int, int]:
    end = len(content)
    while end and content[end - 1] in b"\r\n":
        end -= 1
    return max(content.rfind(b"\n", 0, end), content.rfind(b"\r", 0, end)) + 1, end


class _Unequal:
    """Lines with too many or too few fields, left out by the parser as long as there are at most `most` of them."""

    def __init__(self, most: int, last: str) -> None:
        self.most, self.last = most, last
        self.met: list[bool] = []  # for each, whether it is the last line of the file, and short

    @property
    def cut(self) -> bool:
        """Whether the file stops within its last line."""
        return any(self.met)

    def __call__(self, row: Any) -> str:
        self.met.append(row.text == self.last and row.actual_columns < row.expected_columns)
        # one that spans lines has swallowed others: a quote too many, and no single bad line (B12)
        swallowed = "\n" in row.text or "\r" in row.text
        return "error" if swallowed or len(self.met) > self.most else "skip"


def _parse(
    body: memoryview,
    names: list[str],
    headed: bool,
    delimiter: str,
    quoted: bool,
    roles: Mapping[str, str],
    guessed: dict[str, Any],
    odd: _Unequal,
) -> Any:
    """The table of the wanted columns, of the types `guessed` if every field allows it; None if it is no table."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    wanted = list(dict.fromkeys(roles.values())) or names
    labels = {roles[role]: pa.dictionary(pa.int32(), pa.string()) for role in LABELS if role in roles}
    texts = dict.fromkeys(wanted, pa.string()) | labels
    for kinds in (texts | guessed, texts):
        odd.met.clear()
        try:
            return arrow_csv.read_csv(
                pa.BufferReader(pa.py_buffer(body)),
                read_options=arrow_csv.ReadOptions(
                    column_names=names, skip_rows=int(headed), block_size=min(LONGEST_LINE, max(1 << 20, len(body)))
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=quoted, invalid_row_handler=odd
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=kinds,
                    include_columns=wanted,
                    null_values=NOTHING,
                    strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
        except pa.ArrowException:
            continue
    return None


def _guessed(
    body: memoryview, names: list[str], headed: bool, delimiter: str, roles: Mapping[str, str], plain_times: bool
) -> dict[str, Any]:
    """What numbers and times should be parsed as, by the first record."""
    import pyarrow as pa

    start = bytes(body[: 1 << 16]).decode(errors="replace")
    record = next(islice((r for _, r in _records(start, delimiter)), int(headed), None), None)
    if record is None or len(record) != len(names):
        return {}
    field = dict(zip(names, record, strict=True))
    kinds = {roles[role]: pa.float64() for role in NUMBERS if role in roles}
    for role in TIMES if plain_times else ():
        if role in roles:
            value = field[roles[role]].strip()
            full = WITH_SECONDS.fullmatch(value)
            if full:
                kinds[roles[role]] = pa.timestamp("us", "UTC" if full["z"] else None)
            elif NUMBER.fullmatch(value):
                kinds[roles[role]] = pa.float64()
    return kinds


def _refuse_endless(content: bytes, name: str) -> None:
    """Refuse lines above 10 MB and fields above 1 MB (B14), at the price of a look per megabyte."""
    at, line = 0, 1
    while len(content) - at > LONGEST_FIELD:
        end = max(content.rfind(mark, at, at + LONGEST_FIELD) for mark in (b"\n", b"\r"))
        if end < 0:
            ends = [e for e in (content.find(mark, at, at + LONGEST_LINE) for mark in (b"\n", b"\r")) if e >= 0]
            whole = content[at : min(ends)] if ends else content[at:]
            line += content.count(b"\n", 0, at)
            if len(whole) > LONGEST_LINE or max(map(len, re.split(rb"[,;\t|]", whole))) > LONGEST_FIELD:
                raise InvalidTraces(f"{name}, line {line}: a field or a line without end.", code="E_TOO_LARGE")
            end = at + len(whole)
        at = end + 1


def _split(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def _records(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Every record that is not blank, with the line it starts on; slow, for messages only."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    start = 1
    try:
        for record in reader:
            if record:
                yield start, record
            start = reader.line_num + 1
    except csv.Error:  # a field longer than any that we accept
        return


def line_of(content: bytes, delimiter: str, number: int) -> int | None:
    """The line on which record `number` (from 0) starts, blank ones and those not as wide as the first not counted."""
    width = 0
    for line, record in _records(content.decode(), delimiter):
        width = width or len(record)
        number -= len(record) == width
        if number < 0:
            return line
    return None


def _unequal_record(
    content: bytes, name: str, delimiter: str, width: int, max_bad: float = 0.0, cut: bool = False
) -> InvalidTraces:
    records = _records(content.decode(), delimiter)
    if cut:
        line = deque(records, maxlen=1)[0][0]
        return InvalidTraces(f"{name}, line {line}: the last line is cut off.", code="E_TRUNCATED")
    for line, record in records:
        if len(record) != width:
            # a file that stops within a line was cut; a line that swallows others is another fault (B8, B12)
            swallowed = any("\n" in part or "\r" in part for part in record)
            if len(record) < width and not swallowed and next(records, None) is None:
                return InvalidTraces(f"{name}, line {line}: the last line is cut off.", code="E_TRUNCATED")
            most = f"; at most {max_bad:.2%} of all rows may be so (`max_bad`)" if max_bad and not swallowed else ""
            return InvalidTraces(
                f"{name}, line {line}: {len(record)} fields where the first line has {width}{most}.", code="E_CSV"
            )
    return InvalidTraces(f"{name} is no table of {width} columns: look for an unbalanced quote.", code="E_CSV")
