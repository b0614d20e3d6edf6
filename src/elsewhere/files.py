"""
Output folders that are never overwritten by accident, and files written whole or not at all.

A file gets a temporary name in its own folder, is flushed to disk and then renamed (C1), so no reader meets half of
it and the old one survives a full disk (C6). Results are private until published: files 0600, folders 0700 (F48).
"""

import os
import tempfile
from pathlib import Path

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
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in files.items():
            _write_whole(folder / name, content)
    except OSError as error:
        raise OutputRefused(f"{folder} cannot be written: {error.strerror}.") from None


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
