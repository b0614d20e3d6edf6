"""
Bytes of an input: a file, standard input or a folder of files, unpacked and decoded, with every limit on their size.

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

MAX_BYTES = 4 << 30  # of one file, decompressed: a small archive must not fill the memory (B10)
MOST_FILES = 200_000
CHUNK = 1 << 22
ARCHIVES = {b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"7z\xbc\xaf": "7z", b"\x28\xb5\x2f\xfd": "zstd"}
# that reading takes at its peak, beside 0.1 GB for the libraries: measured on fixes of 50 bytes, 280 to 330 for plain
# CSV (1 to 4 million), 370 to 400 with offsets, with a bad row, or from Parquet (2 million)
BYTES_A_ROW = 300
NOT_TEXT = np.zeros(256, dtype=bool)
NOT_TEXT[[*range(9), 11, 12, *range(14, 32), 127]] = True


@dataclass(frozen=True)
class Source:
    """
    One file: how messages call it, whose it is where its format names no user, and its unpacked bytes.

    `user` is the name of the file without endings, or of the folder it stands in. `cut` says that bytes are missing at
    the end, and that the caller allows it.
    """

    name: str
    user: str = field(repr=False)
    content: bytes = field(repr=False)
    cut: bool = False


def is_folder(source: str | os.PathLike[str]) -> bool:
    """Whether the input is a folder; what cannot even be asked is none."""
    try:
        return Path(source).is_dir()
    except (OSError, ValueError):
        return False


def memory() -> int:
    """Bytes of memory that this machine has; 16 GiB where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 16 << 30


def refuse_rows(rows: int, name: str) -> None:
    """Refuse, before it is unpacked, a table that would not fit into memory (B10, B43)."""
    needed, there = rows * BYTES_A_ROW, memory()
    if needed > there:
        raise InvalidTraces(
            f"{name}: {rows} rows need about {needed / 2**30:.0f} GiB of memory, and there are {there / 2**30:.0f}; "
            "read it in parts.",
            code="E_TOO_LARGE",
        )


def opened_once(source: Any, *, allow_truncated: bool = False) -> Any:
    """Standard input and pipes, which can be read only once, as what they hold; anything else as it is (B55)."""
    if not isinstance(source, (str, os.PathLike)) or is_folder(source):
        return source
    try:
        once = os.fspath(source) == "-" or stat.S_ISFIFO(Path(source).stat().st_mode)
    except (OSError, ValueError):
        return source
    return open_source(source, allow_truncated=allow_truncated) if once else source


def open_source(source: str | os.PathLike[str], *, allow_truncated: bool = False) -> Source:
    """The file at a path; "-" is standard input. Of a gzip file that is cut off, what it holds if `allow_truncated`."""
    if os.fspath(source) == "-":
        name, user = "standard input", "one"
        content = _read_on(sys.stdin.buffer, name)
    else:
        path = Path(source)
        name, user = shown(path.name), _stem(path)
        content = _content(path, name)
    return Source(name, user, *unpacked(content, name, allow_truncated=allow_truncated))


def open_folder(source: str | os.PathLike[str], *, allow_truncated: bool = False) -> Iterator[Source]:
    """
    The files of a folder and its subfolders, in the order of their paths; hidden ones and links are passed over.

    A file is called by its number: in a folder of one file per person its name is that person's id. The user is the
    name of the file, or of the first subfolder it is in (of the folder above `Trajectory`, as in GeoLife).
    """
    root = Path(source)
    try:
        found = []
        for folder, inner, files in os.walk(root, followlinks=False):
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            found += [Path(folder, name) for name in files if not name.startswith((".", "_"))]
            if len(found) > MOST_FILES:
                raise InvalidTraces(f"{shown(root.name)} holds more than {MOST_FILES} files.", code="E_TOO_LARGE")
        paths = sorted(p for p in found if p.is_file() and not p.is_symlink())
    except OSError as error:
        raise InvalidTraces(f"{shown(root.name)} cannot be opened: {error.strerror}.", code="E_OPEN") from None
    if not paths:
        raise InvalidTraces(f"{shown(root.name)} is a folder without files.", code="E_OPEN")
    total = 0
    for number, path in enumerate(paths, 1):
        name = f"{shown(root.name)}, file {number} of {len(paths)}"
        content, cut = unpacked(_content(path, name), name, allow_truncated=allow_truncated)
        total += len(content)
        if total > MAX_BYTES:
            raise InvalidTraces(f"{shown(root.name)} holds more than {MAX_BYTES >> 30} GiB.", code="E_TOO_LARGE")
        inside = path.relative_to(root).parts
        yield Source(name, _above_trajectory(path) or (inside[0] if len(inside) > 1 else _stem(path)), content, cut)


def shown(name: str) -> str:
    """A file name that stays on one line (B60)."""
    return name if name.isprintable() else ascii(name)


def _stem(path: Path) -> str:
    above = _above_trajectory(path)
    stem = path.name.removesuffix(".gz").removesuffix(".GZ").rpartition(".")
    return above or stem[0] or stem[2]


def _above_trajectory(path: Path) -> str | None:
    return path.absolute().parent.parent.name if path.absolute().parent.name == "Trajectory" else None


def _content(path: Path, name: str) -> bytes:
    try:
        before = path.stat()
        if stat.S_ISFIFO(before.st_mode) and path.parent.as_posix() in ("/dev/fd", "/proc/self/fd"):
            with path.open("rb") as pipe:  # process substitution (B55)
                return _read_on(pipe, name)
        if not stat.S_ISREG(before.st_mode):
            # a pipe or a device would block or never end
            raise InvalidTraces(f"{name} is not a regular file.", code="E_OPEN")
        if before.st_size > MAX_BYTES:
            raise InvalidTraces(f"{name} is larger than {MAX_BYTES >> 30} GiB.", code="E_TOO_LARGE")
        content = path.read_bytes()
        same = _still_holds(path, content)
        after = path.stat()
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidTraces):
            raise
        reason = getattr(error, "strerror", None) or "not a usable file name"
        raise InvalidTraces(f"{name} cannot be opened: {reason}.", code="E_OPEN") from None
    if not same or (len(content), before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise InvalidTraces(f"{name} changed while it was read.", code="E_OPEN")
    return content


def _still_holds(path: Path, content: bytes) -> bool:
    """Whether a second look finds the same bytes (B55): a file that is being written to is read half old, half new."""
    at = 0
    with path.open("rb") as file:
        while part := file.read(CHUNK):
            if content[at : at + len(part)] != part:
                return False
            at += len(part)
    return at == len(content)


def _read_on(stream: BinaryIO, name: str) -> bytes:
    content = bytearray()
    try:
        while part := stream.read(CHUNK):
            content += part
            if len(content) > MAX_BYTES:
                raise InvalidTraces(f"{name} is larger than {MAX_BYTES >> 30} GiB.", code="E_TOO_LARGE")
    except OSError as error:
        raise InvalidTraces(f"{name} cannot be read: {error.strerror}.", code="E_OPEN") from None
    return bytes(content)


def unpacked(content: bytes, name: str, *, allow_truncated: bool = False) -> tuple[bytes, bool]:
    """
    The bytes themselves, or what a gzip file holds, and whether it is cut off, which must be allowed.

    Other archives, and archives in archives, are refused.
    """
    _refuse_archive(content, name)
    if content[:2] != b"\x1f\x8b":
        return content, False
    # once through to learn the size, so that a bomb is refused before it takes any memory
    size, cut = 0, False
    for part in _gunzip(content, name, allow_truncated):
        size, cut = size + len(part), part == b""
    whole, at = bytearray(size), 0
    for part in _gunzip(content, name, allow_truncated):
        whole[at : at + len(part)] = part
        at += len(part)
    _refuse_archive(bytes(whole[:300]), name)
    if whole[:2] == b"\x1f\x8b":
        raise InvalidTraces(f"{name} is an archive in an archive; unpack it first.", code="E_COMPRESSION")
    return bytes(whole), cut


def _refuse_archive(content: bytes, name: str) -> None:
    kind = next((kind for mark, kind in ARCHIVES.items() if content.startswith(mark)), None)
    if kind is None and content[257:262] == b"ustar":
        kind = "tar"
    if kind:
        raise InvalidTraces(f"{name} is a {kind} archive; unpack it first.", code="E_COMPRESSION")


def _gunzip(content: bytes, name: str, allow_truncated: bool) -> Iterator[bytes]:
    """What the file holds, in pieces; the last is empty if it is cut off and may be."""
    size = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            while part := packed.read1(CHUNK):  # what is there before a cut, and not all or nothing
                size += len(part)
                if size > MAX_BYTES:
                    raise InvalidTraces(f"{name} unpacks to more than {MAX_BYTES >> 30} GiB.", code="E_TOO_LARGE")
                yield part
    except (EOFError, OSError, zlib.error) as error:
        # a wrong checksum is damage, and no cut
        if not (isinstance(error, EOFError) and allow_truncated and size):
            raise InvalidTraces(f"{name} is a damaged or truncated gzip file.", code="E_COMPRESSION") from None
        yield b""


def whole_characters(source: Source) -> Source:
    """The same file; half a UTF-8 character at its end shows that it is cut off, and is left out."""
    tail = source.content[-3:]
    lead = next((at for at in reversed(range(len(tail))) if tail[at] >= 0xC0), None)
    if lead is None or len(tail) - lead >= 2 + (tail[lead] >= 0xE0) + (tail[lead] >= 0xF0):
        return source
    return replace(source, content=source.content[: len(source.content) - len(tail) + lead], cut=True)


def as_utf8(content: bytes, name: str, encoding: str = "utf-8") -> bytes:
    """Text in UTF-8 without a mark of byte order; bytes that are no text are refused (B3-B6)."""
    marks = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
    try:
        known = next((known for mark, known in marks.items() if content.startswith(mark)), encoding)
        if codecs.lookup(known).name == "utf-8":
            content = content.removeprefix(codecs.BOM_UTF8)
            if not content.isascii():
                for _ in _decoded(content):
                    pass
        else:
            content = content.decode(known).encode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidTraces(f"{name}, line {line}: not {encoding} text; give `encoding`.", code="E_ENCODING") from None
    except UnicodeEncodeError:
        raise InvalidTraces(f"{name}: half a character (a lone surrogate) in the text.", code="E_ENCODING") from None
    except (LookupError, TypeError):
        raise InvalidParameter(f"`encoding` must be a known text encoding, got {encoding!r}.") from None
    _refuse_control(content, name)
    return content


def _decoded(content: bytes) -> Iterator[str]:
    """The text in pieces, so that the whole never stands in the memory twice."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for at in range(0, len(content), CHUNK):
        try:
            yield decoder.decode(content[at : at + CHUNK], final=at + CHUNK >= len(content))
        except UnicodeDecodeError as error:
            error.start += at
            raise


def _refuse_control(content: bytes, name: str) -> None:
    for at in range(0, len(content), CHUNK):
        bad = NOT_TEXT[np.frombuffer(content, np.uint8, min(CHUNK, len(content) - at), at)]
        if bad.any():
            line = content.count(b"\n", 0, at + int(np.argmax(bad))) + 1
            raise InvalidTraces(f"{name}, line {line}: a control character in the text.", code="E_ENCODING")
