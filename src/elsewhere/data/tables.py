"""Hold an opened source: `Piece`, a file of it, and `Table`, its rows as Arrow tables with named columns."""

import bz2
import gzip
import lzma
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from elsewhere.data.values import as_text
from elsewhere.errors import InvalidParameter, InvalidTraces

FILE = "the file's name"  # column with the name of each row's file (the folder's, for GeoLife)
POLYGON = "the zone's polygon"  # column of a table of zones
INDEX = re.compile(r"__index_level_\d+__")  # the row numbers that pandas writes beside the columns
SAMPLED = 2_000  # rows of a sample, at least, where there are as many
MOST_DOCUMENT = 1 << 30  # bytes of a document (JSON, GPX) that is parsed as a whole
PACKED: dict[bytes, Callable[[BinaryIO], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
# what the openers of archives raise at damage, in their names too
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError, UnicodeDecodeError)


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

    `counts` has what was not read, by reason, and grows while batches are read.
    """

    name: str
    names: tuple[str, ...]
    kind: str
    sample: Any
    batches: Callable[[Sequence[str]], Iterator[Any]]
    user: str | None = None  # whose it may be, by the file's name: one more column
    headed: bool = True
    owners: int = 1  # different people whom the names of its files and folders tell of
    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    joined: tuple[str, ...] = ()  # columns that are several of the source's own, joined

    def __post_init__(self) -> None:
        own, user = self.batches, self.user
        if user is not None and FILE not in self.names:

            def named(table: Any) -> Any:
                import pyarrow as pa

                return table.append_column(FILE, pa.array([user] * len(table), pa.string()))

            self.names, self.sample = (*self.names, FILE), named(self.sample)
            self.batches = lambda wanted: (named(batch) if FILE in wanted else batch for batch in own(wanted))
        # a table without names that was written with its numbers as names has none
        self.headed &= 2 * sum(bool(re.fullmatch(r"#\d+", name)) for name in self.names) < len(self.names)

    def join(self, names: Sequence[str], mark: str) -> "Table":
        """Return the table with one more column, the last: the text of several, joined by a mark."""
        import pyarrow.compute as pc

        name = "+".join(names)

        def add(table: Any) -> Any:
            return table.append_column(name, pc.binary_join_element_wise(*(as_text(table[n]) for n in names), mark))

        def batches(wanted: Sequence[str]) -> Iterator[Any]:
            for batch in self.batches([n for n in self.names if n in wanted or n in names]):
                yield add(batch)

        return replace(self, names=(*self.names, name), sample=add(self.sample), batches=batches,
                       joined=(*self.joined, name))  # fmt: skip


@contextmanager
def unpack(piece: Piece) -> Iterator[BinaryIO]:
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
        raise InvalidTraces(
            f"{piece.name} is cut off, damaged or encrypted within its packing.", code="E_COMPRESSION"
        ) from None


def read_document(piece: Piece) -> bytes:
    """Return the bytes of a document that is parsed as a whole."""
    with unpack(piece) as stream:
        content = stream.read(MOST_DOCUMENT)
        if stream.read(1):
            raise InvalidTraces(
                f"{piece.name} is larger than 1 GB: give CSV, Parquet or JSON lines.", code="E_TOO_LARGE"
            )
    return content


def table_of(source: Any, name: str, kind: str, user: str | None = None, counts: Counter[str] | None = None) -> Table:
    """Return a table in memory, of pandas, polars or Arrow, or objects of a document, as a `Table`."""
    import pandas as pd
    import pyarrow as pa

    try:
        frame: Any = pd.json_normalize(source) if isinstance(source, list) else source
        frame = frame.rename(columns=str) if isinstance(frame, pd.DataFrame) else frame
        try:
            table = frame.to_arrow() if hasattr(frame, "to_arrow") else pa.table(frame)
        except (pa.ArrowException, TypeError, OverflowError):  # a column of values of several types
            text = {c: frame[c].map(str, na_action="ignore") for c in frame if frame[c].dtype == object}
            table = pa.table(frame.assign(**text))
    except (pa.ArrowException, AttributeError, LookupError, TypeError, ValueError, NotImplementedError):
        if user is not None:
            raise InvalidTraces(f"{name} holds a value that is no number, time or text.", code="E_FORMAT") from None
        raise InvalidParameter(
            f'`source` must be a path, "-", or a table of pandas, polars or Arrow, got {type(source).__name__}.'
        ) from None
    if len(table) == 0:
        raise InvalidTraces(f"{name} holds no rows.", code="E_EMPTY")
    table = table.flatten()
    table = table.select([i for i, name in enumerate(table.column_names) if not INDEX.fullmatch(name)])
    names = tuple(table.column_names)
    refuse_doubled(name, names)

    def batches(wanted: Sequence[str]) -> Iterator[Any]:
        yield table.select([n for n in names if n in wanted])

    return Table(name, names, kind, spread(table), batches, user, counts=counts or Counter())


def refuse_doubled(table: str, names: Sequence[str]) -> None:
    """Refuse a table in which two columns have one name."""
    twice = next((i for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        first = names.index(names[twice])
        raise InvalidTraces(f"{table}: columns #{first + 1} and #{twice + 1} have one name; give each its own.",
                            code="E_COLUMNS")  # fmt: skip


def spread(table: Any) -> Any:
    """Return rows of an Arrow table for a sample, from all over it."""
    step = max(1, len(table) // SAMPLED)
    return table.take(list(range(0, len(table), step))) if step > 1 else table
