"""
Read tables that are no plain text, or have no line of names: Parquet, spreadsheets, Foursquare check-ins.

Of a spreadsheet (`.xlsx`, `.xls`, `.ods`) the first sheet that holds a table is read, as the text it would be saved as.
Foursquare check-ins are those published for research, tab-separated: TSMC2014: user, venue, category id, category, lat,
lon, offset in minutes, UTC time. TIST2015: user, venue, UTC time, offset, with a second file of venues: venue, lat,
lon, category, country.
"""

import csv
import io
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np

from elsewhere.errors import InvalidTraces, MissingExtra
from elsewhere.traces.clock import times
from elsewhere.traces.columns import Meaning
from elsewhere.traces.formats.text import read_text
from elsewhere.traces.sources import MAX_HELD, Source
from elsewhere.traces.tables import (
    AS_IT_COMES,
    LONGEST_TEXT,
    RECORDS,
    Dialect,
    Reading,
    Table,
    check_names,
    first_records,
    joined_tables,
    numbers,
)

BATCH = 1 << 19  # rows of a Parquet file at a time
MOST_UNPACKED = 2 << 30  # of all members of the archive that a workbook is (B10)
MOST_TIMES = 200  # that a workbook may be larger unpacked than packed
CHECK_IN = ("user", "venue", "category id", "category", "lat", "lon", "offset", "utc")
CHECK_IN_ALONE = ("user", "venue", "utc", "offset")
VENUE = ("venue", "lat", "lon", "category", "country")
BY_WIDTH = {len(names): names for names in (CHECK_IN, CHECK_IN_ALONE, VENUE)}
LOOKED_AT = 1 << 22


def read_parquet(source: Source, reading: Reading = AS_IT_COMES) -> Iterator[Table]:
    """Yield the rows of a Parquet file, a table per batch; of a `sample`, some of its beginning, middle and end."""
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
        meaning = None if roles is None else roles(names, True, _head_of(file, name))
        wanted = None if meaning is None else list(dict.fromkeys(n for n in meaning.roles.values() if n in names))
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
                        name,
                        columns,
                        table.num_rows,
                        format="parquet",
                        names=tuple(names),
                        meaning=meaning,
                        before=before,
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
    """Return the first rows of a Parquet file as text."""
    import pyarrow as pa

    if not file.num_row_groups:
        return []
    for batch in file.iter_batches(RECORDS, [0]):
        table = pa.Table.from_batches([batch])
        _refuse_endless(table, name, file.metadata.num_rows)
        columns = dict(zip(table.column_names, table.columns, strict=True))
        return first_records(Table(name, columns, table.num_rows, names=tuple(table.column_names)))
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


def read_workbook(source: Source, reading: Reading = AS_IT_COMES) -> Table:
    """Return the rows of the first sheet with at least two of them; dates and times as what they are."""
    try:
        import python_calamine as calamine
    except ImportError:
        raise MissingExtra(
            f'{source.name} is a spreadsheet: install "elsewhere[excel]" to read it, or save it as CSV.'
        ) from None
    _refuse_bomb(source)
    try:
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(source.content))
        rows: list[list[Any]] = []
        read = 0
        for read in range(len(book.sheet_names)):
            rows = book.get_sheet_by_index(read).to_python()
            if sum(any(cell != "" for cell in row) for row in rows[:99]) >= 2:
                break
    except (calamine.CalamineError, calamine.PasswordError, OSError, ValueError, OverflowError) as error:
        locked = ", or locked by a password" if isinstance(error, calamine.PasswordError) else ""
        raise InvalidTraces(f"{source.name} is a damaged spreadsheet{locked}.", code="E_EXCEL") from None
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([_text(cell) for cell in row] for row in rows)
    plain = replace(source, raw=text.getvalue().encode(), path=None, packed=False, cut=False)
    table = joined_tables(list(read_text(plain, replace(reading, encoding="utf-8", sample=False))), source.name)
    others = len(book.sheet_names) - 1
    notes = (f"sheet {read + 1} was read, the {others} others were not",) if others else ()
    return replace(table, format="excel", notes=(*table.notes, *notes))


def _refuse_bomb(source: Source) -> None:
    content = source.content
    if not content.startswith(b"PK"):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        raise InvalidTraces(f"{source.name} is a damaged spreadsheet.", code="E_EXCEL") from None
    if size > MOST_UNPACKED or size > max(1 << 26, MOST_TIMES * len(content)):
        raise InvalidTraces(f"{source.name} unpacks to {size / 2**30:.1f} GiB.", code="E_TOO_LARGE")


def _text(cell: Any) -> str:
    """Return a cell as a CSV file would have it; whole numbers, which a sheet stores as decimals, without a point."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ")
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        seconds = round(cell.total_seconds())
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return str(cell)


def read_foursquare(source: Source, reading: Reading = AS_IT_COMES) -> Iterator[Table]:
    """Return check-ins with their UTC and local times, or venues."""
    import pyarrow as pa

    head = source.head(LOOKED_AT)
    names = BY_WIDTH.get(head.lstrip().partition(b"\n")[0].rstrip(b"\r").count(b"\t") + 1)
    if names is None:
        raise InvalidTraces(f"{source.name}: a Foursquare line has 4, 5 or 8 fields.", code="E_COLUMN")
    # latin-1 is that of the published files; only names of categories need it
    encoding = "latin-1" if reading.encoding == "utf-8" and not _is_utf8(head) else reading.encoding
    skip = len(head) - len(head.lstrip())  # blank lines
    dialect = Dialect("\t", names, True, head[:skip].count(b"\n"), quotes=False)
    for table in read_text(source, replace(reading, encoding=encoding, roles=None), fixed=(dialect, Meaning({}))):
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
