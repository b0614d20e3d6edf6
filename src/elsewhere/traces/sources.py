"""
Open the bytes of an input: a file, standard input or a folder of files, unpacked in pieces, with limits on their size.

Nothing here knows what the bytes mean. Messages name the file, the line and a code, never content.
"""

import codecs
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from elsewhere.errors import InvalidParameter, InvalidTraces

MAX_BYTES = 64 << 30  # of one file, decompressed: it is read in blocks, and reduced
MAX_HELD = 4 << 30  # of a file of a format that is read as a whole
BOMB = 1 << 30, 200  # unpacked bytes, and how many times the packed ones, that no text reaches (B10)
MOST_FILES = 200_000
CHUNK = 1 << 22
ARCHIVES = {b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"7z\xbc\xaf": "7z", b"\x28\xb5\x2f\xfd": "zstd"}
SHEETS = (
    b"[Content_Types].xml",
    b"_rels/.rels",
    b"xl/",
    b"docProps/",
    b"application/vnd.oasis.opendocument.spreadsheet",
)
# that a row of fixes takes at the peak of reading, beside 0.2 GB for the libraries: measured 77, of 25 million rows of
# CSV. What slots are made of is counted by itself, in `prepare`
BYTES_A_ROW = 80
NOT_TEXT = np.zeros(256, dtype=bool)
NOT_TEXT[[*range(9), 11, 12, *range(14, 32), 127]] = True


@dataclass(frozen=True)
class Source:
    """
    One file: how messages call it, whose it is where its format names no user, and a way to its unpacked bytes.

    `user` is the name of the file without endings, or of the folder it stands in. `raw` holds what can be read only
    once. `cut` says that bytes are missing at the end, and that the caller allows it.
    """

    name: str
    user: str = field(repr=False)
    raw: bytes | None = field(default=None, repr=False)
    path: Path | None = field(default=None, repr=False)
    about: os.stat_result | None = field(default=None, repr=False)
    packed: bool = False
    allow_truncated: bool = False
    cut: bool = False

    @property
    def size(self) -> int:
        """Return bytes as they lie there, packed or not."""
        return len(self.raw) if self.raw is not None else self.about.st_size if self.about is not None else 0

    @property
    def content(self) -> bytes:
        """Return all of its bytes."""
        return self.raw if self.raw is not None and not self.packed else self.held().raw or b""

    def held(self) -> "Source":
        """Return the same file with its bytes in memory, unpacked; refused if they are too many."""
        whole, cut = bytearray(), self.cut
        for part in self.blocks():
            cut = cut or part is None
            whole += part or b""
            if len(whole) > min(MAX_HELD, MAX_BYTES):
                raise InvalidTraces(f"{self.name} holds more than {MAX_HELD >> 30} GiB.", code="E_TOO_LARGE")
        return replace(self, raw=bytes(whole), packed=False, cut=cut)

    def blocks(self) -> Iterator[bytes | None]:
        """Return what the file holds, in pieces; None at the end of a packed one that is cut off and may be."""
        if self.raw is not None:
            pieces = (self.raw[at : at + CHUNK] for at in range(0, len(self.raw), CHUNK))
            yield from _unpacked(io.BytesIO(self.raw), self) if self.packed else pieces
            return
        try:
            with _Watched(self) as file:
                yield from _unpacked(file, self) if self.packed else iter(lambda: file.read(CHUNK), b"")
        except OSError as error:
            raise InvalidTraces(f"{self.name} cannot be read: {error.strerror}.", code="E_OPEN") from None

    def head(self, size: int) -> bytes:
        """Return the first bytes."""
        first = bytearray()
        if self.path is not None and not self.packed:
            return self.piece(0, size)
        for part in self.blocks():
            first += part or b""
            if len(first) >= size:
                break
        return bytes(first[:size])

    def piece(self, at: int, size: int) -> bytes:
        """Return bytes from within, of a file that is not packed."""
        if self.raw is not None or self.path is None:
            return (self.raw or b"")[at : at + size]
        try:
            with self.path.open("rb") as file:
                file.seek(at)
                return file.read(size)
        except OSError as error:
            raise InvalidTraces(f"{self.name} cannot be read: {error.strerror}.", code="E_OPEN") from None


class _Watched(io.RawIOBase):
    """A file that is refused at its end if it is no longer what it was at its beginning (B55)."""

    def __init__(self, source: Source) -> None:
        self.source, self.sum, self.length = source, 0, 0
        self.file = source.path.open("rb")  # type: ignore[union-attr]

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        part = self.file.read(size)
        self.sum, self.length = zlib.crc32(part, self.sum), self.length + len(part)
        if not part or self.length > self.source.size:
            self._compare()
        return part

    def close(self) -> None:
        self.file.close()
        super().close()

    def _compare(self) -> None:
        before, after = self.source.about, self.source.path.stat()  # type: ignore[union-attr]
        same = before is not None and (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
        if same and before is not None and before.st_ctime_ns != after.st_ctime_ns:
            # its size and its time are the same, and it was touched all the same: a second look
            self.file.seek(0)
            again = 0
            while part := self.file.read(CHUNK):
                again = zlib.crc32(part, again)
            same = again == self.sum
        if not same or self.length != after.st_size:
            raise InvalidTraces(f"{self.source.name} changed while it was read.", code="E_OPEN")


def is_folder(source: str | os.PathLike[str]) -> bool:
    """Tell whether the input is a folder; what cannot even be asked is none."""
    try:
        return Path(source).is_dir()
    except (OSError, ValueError):
        return False


def memory() -> int:
    """Return bytes of memory that this machine has; 16 GiB where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 16 << 30


def refuse_rows(rows: int, name: str, each: int = BYTES_A_ROW) -> None:
    """Refuse a table that would not fit into memory, at `each` bytes a row (B10, B43)."""
    need, there = rows * each, memory()
    if need > there:
        raise InvalidTraces(
            f"{name}: {rows} rows need about {need / 2**30:.0f} GiB of memory, and there are {there / 2**30:.0f}; "
            "read it in parts.",
            code="E_TOO_LARGE",
        )


def opened_once(source: Any, *, allow_truncated: bool = False) -> Any:
    """Return standard input and pipes, which can be read only once, as what they hold; anything else as it is (B55)."""
    if not isinstance(source, (str, os.PathLike)) or is_folder(source):
        return source
    try:
        once = os.fspath(source) == "-" or stat.S_ISFIFO(Path(source).stat().st_mode)
    except (OSError, ValueError):
        return source
    return open_source(source, allow_truncated=allow_truncated) if once else source


def open_source(source: str | os.PathLike[str], *, allow_truncated: bool = False) -> Source:
    """Return the file at a path; "-" is standard input. `allow_truncated` reads what a cut gzip file holds."""
    if os.fspath(source) == "-":
        raw = _read_on(sys.stdin.buffer, "standard input")
        return _known(Source("standard input", "one", raw, allow_truncated=allow_truncated))
    path = Path(source)
    return _opened(path, shown(path.name), _user_of(path), allow_truncated)


def open_folder(source: str | os.PathLike[str], *, allow_truncated: bool = False) -> list[Source]:
    """
    Return the files of a folder and its subfolders, in the order of their paths; hidden ones and links are passed over.

    A file is called by its number: in a folder of one file per person its name is that person's id. The user is the
    name of the file, or of the first subfolder it is in (of the folder above `Trajectory`, as in GeoLife).
    """
    root = Path(source)
    try:
        paths_found = []
        for folder, inner, files in os.walk(root, followlinks=False):
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            paths_found += [Path(folder, name) for name in files if not name.startswith((".", "_"))]
            if len(paths_found) > MOST_FILES:
                raise InvalidTraces(f"{shown(root.name)} holds more than {MOST_FILES} files.", code="E_TOO_LARGE")
        paths = sorted(p for p in paths_found if p.is_file() and not p.is_symlink())
    except OSError as error:
        raise InvalidTraces(f"{shown(root.name)} cannot be opened: {error.strerror}.", code="E_OPEN") from None
    if not paths:
        raise InvalidTraces(f"{shown(root.name)} is a folder without files.", code="E_OPEN")
    return [
        _opened(path, f"{shown(root.name)}, file {number} of {len(paths)}", _user_of(path, root), allow_truncated)
        for number, path in enumerate(paths, 1)
    ]


def shown(name: str) -> str:
    """Return a file name that stays on one line (B60)."""
    return name if name.isprintable() else ascii(name)


def _user_of(path: Path, folder: Path | None = None) -> str:
    """Return whose a file is: of the folder above `Trajectory` (GeoLife), of its first subfolder, or of its name."""
    here = path.absolute().parent
    if here.name == "Trajectory" and here.parent.name:
        return here.parent.name
    inside = () if folder is None else path.relative_to(folder).parts
    stem, _, ending = path.name.removesuffix(".gz").removesuffix(".GZ").rpartition(".")
    return inside[0] if len(inside) > 1 else stem or ending


def _opened(path: Path, name: str, user: str, allow_truncated: bool) -> Source:
    try:
        about = path.stat()
        if stat.S_ISFIFO(about.st_mode) and path.parent.as_posix() in ("/dev/fd", "/proc/self/fd"):
            with path.open("rb") as pipe:  # process substitution (B55)
                return _known(Source(name, user, _read_on(pipe, name), allow_truncated=allow_truncated))
        if not stat.S_ISREG(about.st_mode):
            # a pipe or a device would block or never end
            raise InvalidTraces(f"{name} is not a regular file.", code="E_OPEN")
        if about.st_size > MAX_BYTES:
            raise InvalidTraces(f"{name} is larger than {MAX_BYTES >> 30} GiB.", code="E_TOO_LARGE")
        return _known(Source(name, user, None, path, about, allow_truncated=allow_truncated))
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidTraces):
            raise
        reason = getattr(error, "strerror", None) or "not a usable file name"
        raise InvalidTraces(f"{name} cannot be opened: {reason}.", code="E_OPEN") from None


def _known(source: Source) -> Source:
    """Return the same source, told whether it is packed; archives, and archives in archives, are refused."""
    if source.raw is None and source.path is not None:
        with source.path.open("rb") as file:
            first = file.read(2048)
    else:
        first = (source.raw or b"")[:2048]
    _refuse_archive(first, source.name)
    if first[:2] != b"\x1f\x8b":
        return source
    source = replace(source, packed=True)
    inside = source.head(2048)
    _refuse_archive(inside, source.name)
    if inside[:2] == b"\x1f\x8b":
        raise InvalidTraces(f"{source.name} is an archive in an archive; unpack it first.", code="E_COMPRESSION")
    return source


def _read_on(stream: BinaryIO, name: str) -> bytes:
    content = bytearray()
    try:
        while part := stream.read(CHUNK):
            content += part
            if len(content) > min(MAX_HELD, MAX_BYTES):
                raise InvalidTraces(f"{name} is larger than {MAX_HELD >> 30} GiB; name a file.", code="E_TOO_LARGE")
    except OSError as error:
        raise InvalidTraces(f"{name} cannot be read: {error.strerror}.", code="E_OPEN") from None
    return bytes(content)


def is_workbook(first: bytes) -> bool:
    """Tell whether a zip archive is a spreadsheet, by its first member."""
    return first.startswith(b"PK\x03\x04") and any(mark in first[30:] for mark in SHEETS)


def _refuse_archive(first: bytes, name: str) -> None:
    kind = next((kind for mark, kind in ARCHIVES.items() if first.startswith(mark)), None)
    if kind is None and first[257:262] == b"ustar":
        kind = "tar"
    if kind and not is_workbook(first):
        raise InvalidTraces(f"{name} is a {kind} archive; unpack it first.", code="E_COMPRESSION")


def _unpacked(file: Any, source: Source) -> Iterator[bytes | None]:
    """Return what a gzip file holds, in pieces; the last is None if it is cut off and may be."""
    size = 0
    try:
        with gzip.GzipFile(fileobj=file) as stream:
            while part := stream.read1(CHUNK):  # what is there before a cut, and not all or nothing
                size += len(part)
                if size > MAX_BYTES or (size > BOMB[0] and size > BOMB[1] * source.size):
                    raise InvalidTraces(f"{source.name} unpacks to more than {size >> 30} GiB.", code="E_TOO_LARGE")
                yield part
    except (EOFError, OSError, zlib.error) as error:
        # a wrong checksum is damage, and no cut
        if not (isinstance(error, EOFError) and source.allow_truncated and size):
            raise InvalidTraces(f"{source.name} is a damaged or truncated gzip file.", code="E_COMPRESSION") from None
        yield None


def whole_characters(content: bytes) -> bytes:
    """Return the same text without half a UTF-8 character at its end, which shows that it is cut off."""
    tail = content[-3:]
    lead = next((at for at in reversed(range(len(tail))) if tail[at] >= 0xC0), None)
    if lead is None or len(tail) - lead >= 2 + (tail[lead] >= 0xE0) + (tail[lead] >= 0xF0):
        return content
    return content[: len(content) - len(tail) + lead]


def as_utf8(content: bytes, name: str, encoding: str = "utf-8") -> bytes:
    """Return a document in UTF-8 without a mark of byte order; bytes that are no text are refused (B3-B6)."""
    found_encoding = encoding_of(content, encoding)
    try:
        text = content.decode(found_encoding)
        content = text.encode("utf-8") if found_encoding != "utf-8" else content
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


def encoding_of(first: bytes, encoding: str) -> str:
    """Return the encoding of a text: the one its mark of byte order names, else the caller's, which must be known."""
    marks = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
    try:
        return next((name for mark, name in marks.items() if first.startswith(mark)), codecs.lookup(encoding).name)
    except (LookupError, TypeError):
        raise InvalidParameter(f"`encoding` must be a known text encoding, got {encoding!r}.") from None
