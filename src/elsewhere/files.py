"""
Write folders and files that appear complete or not at all, and are never overwritten by accident.

A file is written under a temporary name in its own folder, flushed to disk and then renamed (C1), so no reader sees
half of it and the old file survives a full disk (C6). A folder is written under a hidden name, `.NAME.partial-...`, and
renamed when it is complete: see `whole_folders`. Results are private until published: files 0600, folders 0700 (F48).
Only regular files of bounded size are read back: a pipe would block, and a device would never end (B1, B52).
"""

import contextlib
import hashlib
import io
import json
import os
import shutil
import stat
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elsewhere.errors import OutputRefused

try:
    import fcntl
except ImportError:  # Windows: whether the writer of a folder still lives cannot be asked there
    fcntl = None  # type: ignore[assignment]

PARTIAL, READY, OUTDATED, HALF = ".partial-", ".ready-", ".outdated", ".half"

Outdated = Callable[[Path], Collection[str]]  # the files in a folder that its new ones make obsolete


def check_folder(folder: Path, *, force: bool = False) -> None:
    """
    Refuse, before any work is done, a folder that cannot or should not hold results.

    Refused are a folder that is not empty (unless `force` is set, C8), a file, and a place where nothing can be written
    (B54). The last is tested by making a folder there for a moment, because permissions do not reveal a full disk.
    """
    try:
        clean_up(folder.resolve())
        if folder.exists():
            if not folder.is_dir():
                raise OutputRefused(f"results go into a folder, but {folder} is a file.")
            if not force and _contents(folder):
                raise OutputRefused(
                    f"{folder} is not empty; choose another folder, or pass `force=True`.", parameter="force"
                )
        nearest = next(p for p in (folder, *folder.absolute().parents) if p.exists())
        if not nearest.is_dir():
            raise OutputRefused(f"{folder} cannot be written: {nearest} is a file.")
        # under a name that `clean_up` knows
        trial = Path(tempfile.mkdtemp(prefix=f".{folder.resolve().name}{PARTIAL}", dir=nearest))
        with contextlib.suppress(FileNotFoundError):  # another process may have cleaned it up
            trial.rmdir()
    except PermissionError:
        raise OutputRefused(f"{folder} cannot be written: no permission in {nearest}.") from None
    except OSError as error:
        raise OutputRefused(f"{folder} cannot be used: {error.strerror}.") from None


@contextlib.contextmanager
def whole_folder(folder: Path, *, force: bool = False, outdated: Outdated | None = None) -> Iterator[Path]:
    """Yield an empty folder that becomes `folder` when the block has succeeded; see `whole_folders`."""
    with whole_folders((folder,), force=force, outdated=outdated) as (new,):
        yield new


@contextlib.contextmanager
def whole_folders(
    folders: Sequence[Path], *, force: bool = False, outdated: Outdated | None = None
) -> Iterator[tuple[Path, ...]]:
    """
    Yield an empty private folder for each of `folders`, which they become, in order, when the block has succeeded.

    If the block raises anything, nothing changes. An existing folder (it must be empty, or `force` set) is unchanged
    until its new files are complete. They are then moved into it, the index last, and replace files of the same names;
    files that `outdated` names are removed, all others stay. A process that is killed leaves a hidden folder behind:
    the next call removes it if it is incomplete, and moves its files into place if it is complete.
    """
    stages: list[_Stage] = []
    try:
        for folder in folders:
            with refuse_os_errors(folder):
                stages.append(_Stage.begin(folder.resolve()))
        yield tuple(stage.new for stage in stages)
        for stage in stages:
            if stage.folder.exists():
                with refuse_os_errors(stage.folder):
                    stage.complete(force, outdated)
        # from here on no space on the disk is needed
        for stage in stages:
            with refuse_os_errors(stage.folder):
                if stage.ready is None:
                    stage.new.rename(stage.folder)
                    _sync(stage.folder.parent)
                else:
                    stage.moving = True
                    _move_in(stage.ready, stage.folder)
    except BaseException:
        begun = any(stage.moving for stage in stages)
        for stage in reversed(stages):
            stage.take_back(begun)
        raise
    finally:
        for stage in stages:
            if stage.lock is not None:
                os.close(stage.lock)


@dataclass
class _Stage:
    """A folder that is being written: `new` is its hidden name, `folder` its final one."""

    folder: Path
    new: Path
    above: list[Path]  # parent folders that were made for it
    lock: int | None
    ready: Path | None = None
    moving: bool = False  # into an existing folder

    @staticmethod
    def begin(folder: Path) -> "_Stage":
        """Make and lock the hidden folder."""
        above = make_folder(folder.parent)
        clean_up(folder)
        # an existing folder may be mounted, or a working directory: files are moved into it, it is never replaced
        where = folder if folder.is_dir() else folder.parent
        while True:
            new = Path(tempfile.mkdtemp(prefix=f".{folder.name}{PARTIAL}", dir=where))
            # until it is locked, another run may take it for a folder left behind and remove it
            with contextlib.suppress(BlockingIOError, FileNotFoundError):
                return _Stage(folder, new, above, lock_folder(new))

    def complete(self, force: bool, outdated: Outdated | None) -> None:
        """Mark the new files as ready to be moved into the existing folder, whatever happens from then on."""
        if not force and _contents(self.folder):
            raise OutputRefused(f"{self.folder} is no longer empty: another program has written into it meanwhile.")
        obsolete = [] if outdated is None else sorted(outdated(self.folder))
        write_files(self.new, {OUTDATED: json.dumps(obsolete).encode()})
        # a folder of this name is complete: any later run can finish the move
        ready = self.new.with_name(self.new.name.replace(PARTIAL, READY))
        self.new.rename(ready)
        self.ready = ready

    def take_back(self, begun: bool) -> None:
        """Undo everything; but where the move of files has `begun`, finish it."""
        if self.ready is not None:
            with contextlib.suppress(OSError):
                if begun:
                    _move_in(self.ready, self.folder)
                else:
                    shutil.rmtree(self.ready)
            return
        if self.new.parent == self.folder.parent and not self.new.exists() and self.folder.exists():
            self.folder.rename(self.new)
        shutil.rmtree(self.new, ignore_errors=True)
        for folder in reversed(self.above):
            with contextlib.suppress(OSError):
                folder.rmdir()


def clean_up(folder: Path) -> None:
    """Remove, with a warning, what killed processes left incomplete of `folder`; move what they left complete."""
    prefixes = (f".{folder.name}{PARTIAL}", f".{folder.name}{READY}")
    above = next((at for at in folder.parents if at.is_dir()), folder)
    for path in [p for at in (above, folder) if at.is_dir() for p in at.iterdir() if p.name.startswith(prefixes)]:
        if path.is_symlink() or not path.is_dir():
            continue
        try:
            lock = lock_folder(path)
        except (BlockingIOError, FileNotFoundError):
            continue  # its process is running, or has just ended
        if lock is None:
            warnings.warn(f"{path} is incomplete; remove it, unless a run is still writing it.", stacklevel=2)
            continue
        try:
            if path.name.startswith(prefixes[0]):
                shutil.rmtree(path, ignore_errors=True)
                warnings.warn(f"removed {path}, left incomplete by a run that was killed.", stacklevel=2)
            else:
                _move_in(path, folder)
                warnings.warn(
                    f"an earlier run was killed while it wrote into {folder}: its files are now all there.",
                    stacklevel=2,
                )
        finally:
            os.close(lock)


def _contents(folder: Path) -> list[Path]:
    """Return what a folder holds, without the hidden folders from which files will be moved into it."""
    name = folder.resolve().name
    hidden = (f".{name}{PARTIAL}", f".{name}{READY}")
    return [path for path in folder.iterdir() if not path.name.startswith(hidden)]


def _move_in(ready: Path, folder: Path) -> None:
    """Move complete files into an existing folder; this may be interrupted and repeated at any point."""
    if not ready.exists():
        return
    if (ready / OUTDATED).exists():
        for name in json.loads((ready / OUTDATED).read_bytes()):
            if not (ready / name).exists():
                (folder / name).unlink(missing_ok=True)
    # an index (.json) names the other files with their sha256: new files beside the old index are refused by readers
    for path in sorted(ready.iterdir(), key=lambda p: (p.suffix == ".json", p.name)):
        if path.name != OUTDATED:
            path.replace(folder / path.name)
    _sync(folder)
    shutil.rmtree(ready, ignore_errors=True)


def lock_folder(folder: Path) -> int | None:
    """
    Lock a folder until this process ends; `BlockingIOError` if another process has locked it.

    `FileNotFoundError` if it does not exist, or its holder has just removed it. None on systems without locks (Windows,
    some network disks).
    """
    handle = None
    try:
        if fcntl is None:
            raise OSError("no locks on this system")
        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_ino == Path(folder).stat().st_ino:
            return handle
        raise FileNotFoundError
    except OSError as error:
        if handle is not None:
            os.close(handle)
        if isinstance(error, (BlockingIOError, FileNotFoundError)):
            raise
        return None


@contextlib.contextmanager
def refuse_os_errors(folder: Path) -> Iterator[None]:
    """Turn an `OSError` in the block into an `OutputRefused` that names the folder (C6)."""
    try:
        yield
    except OSError as error:
        raise OutputRefused(f"{folder} cannot be written: {error.strerror}.") from None


def write_folder(
    folder: Path, files: dict[str, bytes], *, force: bool = False, outdated: Outdated | None = None
) -> None:
    """Write a folder that holds `files` (name -> content), all of them or none: see `whole_folders`."""
    with whole_folder(folder, force=force, outdated=outdated) as new:
        write_files(new, files)


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write `files` (name -> content) into `folder`, one after the other, each completely; make it if needed."""
    with refuse_os_errors(folder):
        make_folder(folder)
        for name, content in files.items():
            with whole_file(folder / name) as file:
                file.write(content)


def make_folder(folder: Path) -> list[Path]:
    """Make a folder and its parents, private (0700); return the new ones, outermost first."""
    # `parents=True` would make the folders above with the permissions of the umask
    new_folders = list(reversed([p for p in (folder, *folder.parents) if not p.exists()]))
    for parent in new_folders:
        parent.mkdir(mode=0o700, exist_ok=True)
    return new_folders


def read_regular(path: Path, largest: int) -> bytes:
    """Return the bytes of a regular file of at most `largest` bytes; `OSError` for anything else."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode) or about.st_size > largest:
        raise OSError(f"{path.name} is not a regular file, or too large")
    return path.read_bytes()


def read_index(path: Path, largest: int = 1 << 24) -> dict[str, Any]:
    """Return the JSON object in a file: `OSError` if it cannot be read, `ValueError` if it is anything else."""
    try:
        index = json.loads(read_regular(path, largest))
    except RecursionError:
        raise ValueError(f"{path.name} is nested too deep") from None
    if not isinstance(index, dict):
        raise ValueError(f"{path.name} is not a JSON object")
    return index


def read_listed(folder: Path, name: str, index: Mapping[str, Any], largest: int) -> bytes:
    """
    Return the bytes of a file that an index lists with its sha256.

    `OSError` if it cannot be read, `ValueError` if it is a link or another file than the index names, `KeyError` or
    `TypeError` if the index lists none.
    """
    sha256, path = index["files"][name], folder / name
    if path.is_symlink():
        raise ValueError(f"{name} is a link")
    data = read_regular(path, largest)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ValueError(f"{name} is damaged: its sha256 is not that of the index")
    return data


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[io.BufferedRandom]:
    """Yield a private temporary file that is renamed to `path` when the block has succeeded (C1)."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=HALF, dir=path.parent)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Flush a folder to disk: on POSIX a new file name is safe only after its folder is flushed."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


PAGE_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
# headers of every answer of a page server: nothing is stored, no other site can show or read our page, and our page
# loads its own files only
PAGE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "geolocation=(), camera=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def page_files(names: Iterable[str]) -> dict[str, tuple[bytes, str]]:
    """Return content and media type of files in the folder page/, by name."""
    from importlib import resources

    folder = resources.files("elsewhere") / "page"
    return {name: ((folder / name).read_bytes(), PAGE_TYPES[Path(name).suffix]) for name in names}
