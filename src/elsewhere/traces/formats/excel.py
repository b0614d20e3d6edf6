"""Spreadsheets (`.xlsx`, `.xls`, `.ods`): the first sheet that holds a table, read as the text it would be saved as."""

import csv
import io
import zipfile
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any

from elsewhere.errors import InvalidTraces, MissingExtra
from elsewhere.traces.sources import Source
from elsewhere.traces.tables import AS_IT_COMES, Reading, Table, _joined

MOST_UNPACKED = 2 << 30  # of all members of the archive that a workbook is (B10)
MOST_TIMES = 200  # that a workbook may be larger unpacked than packed


def read_workbook(source: Source, reading: Reading = AS_IT_COMES) -> Table:
    """The rows of the first sheet with at least two of them; dates and times as what they are."""
    try:
        import python_calamine as calamine
    except ImportError:
        raise MissingExtra(
            f'{source.name} is a spreadsheet: install "elsewhere[excel]" to read it, or save it as CSV.'
        ) from None
    from elsewhere.traces.texts import read_text

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
    table = _joined(list(read_text(plain, replace(reading, encoding="utf-8", sample=False))), source.name)
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
    """A cell as a CSV file would have it; whole numbers, which a sheet stores as decimals, without a point."""
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
