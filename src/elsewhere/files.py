"""
Output folders that are never overwritten by accident, and files written whole or not at all.

A file gets a temporary name in its own folder, is flushed to disk and then renamed (C1), so no reader meets half of
it and the old one survives a full disk (C6). Results are private until published: files 0600, folders 0700 (F48).
What is read back is a regular file of bounded size, or refused: a pipe would block, a device never end (B1, B52).
"""

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from elsewhere.errors import OutputRefused


def check_folder(folder: Path, *, force: bool = False) -> None:
    """
    Refuse, before any work is done, a folder that results could not or should not go to; create nothing.

    A folder that holds anything is refused without `force` (C8); so is a file, or a place without permission (B54).
    """
    try:
        if folder.exists():
            if not folder.is_dir():
                raise OutputRefused(f"`-o` must be a folder, but {folder} is a file.")
            if not force and any(folder.iterdir()):
                raise OutputRefused(f"{folder} is not empty; choose another folder, or pass --force.")
        nearest = next(p for p in (folder, *folder.absolute().parents) if p.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise OutputRefused(f"{folder} cannot be written: no permission in {nearest}.")
    except OSError as error:
        raise OutputRefused(f"{folder} cannot be used: {error.strerror}.") from None


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write `files` (name -> content) into `folder`, which is made if need be, one after the other, each whole."""
    try:
        _make(folder)
        for name, content in files.items():
            _write_whole(folder / name, content)
    except OSError as error:
        raise OutputRefused(f"{folder} cannot be written: {error.strerror}.") from None


def _make(folder: Path) -> None:
    # `parents=True` would make the folders above with the permissions of the umask
    for missing in reversed([p for p in (folder, *folder.parents) if not p.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def read_regular(path: Path, largest: int) -> bytes:
    """The bytes of a regular file of at most so many; `OSError` for anything else."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode) or about.st_size > largest:
        raise OSError(f"{path.name} is no regular file, or too large")
    return path.read_bytes()


def read_index(path: Path, largest: int = 1 << 24) -> dict[str, Any]:
    """The JSON object in a file: `OSError` if it cannot be read, `ValueError` if it is anything else."""
    try:
        index = json.loads(read_regular(path, largest))
    except RecursionError:
        raise ValueError(f"{path.name} is nested too deep") from None
    if not isinstance(index, dict):
        raise ValueError(f"{path.name} is no JSON object")
    return index


def _write_whole(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    if hasattr(os, "O_DIRECTORY"):  # POSIX: the new name is on disk only once the folder is
        folder = os.open(path.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
