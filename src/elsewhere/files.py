"""
Output folders that are never overwritten by accident and appear whole or not at all, and files written likewise.

A file gets a temporary name in its own folder, is flushed to disk and then renamed (C1), so no reader meets half of
it and the old one survives a full disk (C6). A folder of several files is written under a hidden name beside its place,
`.NAME.partial-...`, and renamed when it is complete: see `whole_folders`. Results are private until published: files
0600, folders 0700 (F48). What is read back is a regular file of bounded size, or refused: a pipe would block, a device
never end (B1, B52).
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
import zipfile
import zlib
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
    Refuse, before any work is done, a folder that results could not or should not go to; leave nothing behind.

    A folder that holds anything is refused without `force` (C8); so is a file, or a place where nothing can be
    written (B54): a folder is made there for a moment, because permissions do not tell of full or read-only disks.
    """
    try:
        clean_up(folder.resolve())
        if folder.exists():
            if not folder.is_dir():
                raise OutputRefused(f"results go into a folder, but {folder} is a file.")
            if not force and _contents(folder):
                raise OutputRefused(f"{folder} is not empty; choose another folder, or pass `force=True`.")
        nearest = next(p for p in (folder, *folder.absolute().parents) if p.exists())
        if not nearest.is_dir():
            raise OutputRefused(f"{folder} cannot be written: {nearest} is a file.")
        # under a name that `clean_up` knows
        trial = Path(tempfile.mkdtemp(prefix=f".{folder.resolve().name}{PARTIAL}", dir=nearest))
        with contextlib.suppress(FileNotFoundError):  # another process that cleans up may have taken it away
            trial.rmdir()
    except PermissionError:
        raise OutputRefused(f"{folder} cannot be written: no permission in {nearest}.") from None
    except OSError as error:
        raise OutputRefused(f"{folder} cannot be used: {error.strerror}.") from None


@contextlib.contextmanager
def whole_folder(folder: Path, *, force: bool = False, outdated: Outdated | None = None) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `folder` when the block has ended well; see `whole_folders`."""
    with whole_folders((folder,), force=force, outdated=outdated) as (new,):
        yield new


@contextlib.contextmanager
def whole_folders(
    folders: Sequence[Path], *, force: bool = False, outdated: Outdated | None = None
) -> Iterator[tuple[Path, ...]]:
    """
    Yield an empty private folder for each of `folders`; when the block ends well they take their places, in order.

    If the block raises, whatever it is, nothing has changed. A folder that is there already (it must be empty, or
    `force` be given) stays as it is until its new files are complete; they are then moved in, the index last, over
    files of the same names; files that `outdated` names go, all others stay. Of a process that is killed a hidden
    folder stays behind, which the next call removes; one that was about to be moved in, it moves in.
    """
    stages: list[_Stage] = []
    try:
        for folder in folders:
            with as_refusal(folder):
                stages.append(_Stage.of(folder.resolve()))
        yield tuple(stage.new for stage in stages)
        for stage in stages:
            with as_refusal(stage.folder):
                stage.complete(force, outdated)
        # from here on nothing needs room on the disk
        for stage in stages:
            with as_refusal(stage.folder):
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
    """One folder on its way: `new` is written, then moved to where `folder` is to be."""

    folder: Path
    new: Path
    above: list[Path]  # folders that were made to hold it
    lock: int | None
    ready: Path | None = None
    moving: bool = False  # into a folder that is there

    @staticmethod
    def of(folder: Path) -> "_Stage":
        above = make_folder(folder.parent)
        clean_up(folder)
        # a folder that is there may be mounted, or somebody's working directory: it is filled, never renamed
        where = folder if folder.is_dir() else folder.parent
        while True:
            new = Path(tempfile.mkdtemp(prefix=f".{folder.name}{PARTIAL}", dir=where))
            # before it is held, another run may take it for one that was left behind, and remove it
            with contextlib.suppress(BlockingIOError, FileNotFoundError):
                return _Stage(folder, new, above, lock_folder(new))

    def complete(self, force: bool, outdated: Outdated | None) -> None:
        """Make the new files ready to be put in their place, whatever happens from then on."""
        if not self.folder.exists():
            return
        if not force and _contents(self.folder):
            raise OutputRefused(f"{self.folder} is no longer empty: something else was written there meanwhile.")
        obsolete = [] if outdated is None else sorted(outdated(self.folder))
        write_files(self.new, {OUTDATED: json.dumps(obsolete).encode()})
        # under this name it is complete: whoever finds it can finish
        ready = self.new.with_name(self.new.name.replace(PARTIAL, READY))
        self.new.rename(ready)
        self.ready = ready

    def take_back(self, begun: bool) -> None:
        """Leave everything as it was; but where files have `begun` to move in, what is complete is moved in."""
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
    """Remove, with a warning, what killed processes left unfinished of `folder`; finish what they left complete."""
    words = (f".{folder.name}{PARTIAL}", f".{folder.name}{READY}")
    above = next((at for at in folder.parents if at.is_dir()), folder)
    for path in [p for at in (above, folder) if at.is_dir() for p in at.iterdir() if p.name.startswith(words)]:
        if path.is_symlink() or not path.is_dir():
            continue
        try:
            lock = lock_folder(path)
        except (BlockingIOError, FileNotFoundError):
            continue  # its process lives, or has just ended
        if lock is None:
            warnings.warn(f"{path} is not finished; remove it, unless the run that writes it goes on.", stacklevel=2)
            continue
        try:
            if path.name.startswith(words[0]):
                shutil.rmtree(path, ignore_errors=True)
                warnings.warn(f"removed {path}, which a run that was killed has left unfinished.", stacklevel=2)
            else:
                _move_in(path, folder)
                warnings.warn(
                    f"an earlier run was killed while it wrote into {folder}: that is finished.", stacklevel=2
                )
        finally:
            os.close(lock)


def _contents(folder: Path) -> list[Path]:
    """Return what a folder holds, but for what is on its way there."""
    name = folder.resolve().name
    on_its_way = (f".{name}{PARTIAL}", f".{name}{READY}")
    return [path for path in folder.iterdir() if not path.name.startswith(on_its_way)]


def _move_in(ready: Path, folder: Path) -> None:
    """Move complete files into a folder that is there; it can be interrupted and begun again at any point."""
    if not ready.exists():
        return
    if (ready / OUTDATED).exists():
        for name in json.loads((ready / OUTDATED).read_bytes()):
            if not (ready / name).exists():
                (folder / name).unlink(missing_ok=True)
    # an index (.json) names the other files with their sha256: with the old one beside new files, nobody reads them
    for path in sorted(ready.iterdir(), key=lambda p: (p.suffix == ".json", p.name)):
        if path.name != OUTDATED:
            path.replace(folder / path.name)
    _sync(folder)
    shutil.rmtree(ready, ignore_errors=True)


def lock_folder(folder: Path) -> int | None:
    """
    Hold a folder until this process ends, however it ends; `BlockingIOError` if another one does.

    `FileNotFoundError` if it is gone, or was until now held by one that has removed it. None where there are no locks
    (Windows, some network disks).
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
def as_refusal(folder: Path) -> Iterator[None]:
    """Turn errors of the operating system in the block into a refusal that names the folder (C6)."""
    try:
        yield
    except OSError as error:
        raise OutputRefused(f"{folder} cannot be written: {error.strerror}.") from None


def write_folder(
    folder: Path, files: dict[str, bytes], *, force: bool = False, outdated: Outdated | None = None
) -> None:
    """Write a folder that holds `files` (name -> content): all of them or none, see `whole_folders`."""
    with whole_folder(folder, force=force, outdated=outdated) as new:
        write_files(new, files)


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write `files` (name -> content) into `folder`, which is made if need be, one after the other, each whole."""
    with as_refusal(folder):
        make_folder(folder)
        for name, content in files.items():
            with whole_file(folder / name) as file:
                file.write(content)


def make_folder(folder: Path) -> list[Path]:
    """Make a folder and those above it, each for its owner alone; return the new ones, outermost first."""
    # `parents=True` would make the folders above with the permissions of the umask
    new_folders = list(reversed([p for p in (folder, *folder.parents) if not p.exists()]))
    for parent in new_folders:
        parent.mkdir(mode=0o700, exist_ok=True)
    return new_folders


def read_regular(path: Path, largest: int) -> bytes:
    """Return the bytes of a regular file of at most so many; `OSError` for anything else."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode) or about.st_size > largest:
        raise OSError(f"{path.name} is no regular file, or too large")
    return path.read_bytes()


def read_index(path: Path, largest: int = 1 << 24) -> dict[str, Any]:
    """Return the JSON object in a file: `OSError` if it cannot be read, `ValueError` if it is anything else."""
    try:
        index = json.loads(read_regular(path, largest))
    except RecursionError:
        raise ValueError(f"{path.name} is nested too deep") from None
    if not isinstance(index, dict):
        raise ValueError(f"{path.name} is no JSON object")
    return index


def read_listed(folder: Path, name: str, index: Mapping[str, Any], largest: int) -> bytes:
    """
    Return the bytes of a file that an index lists with its sha256, and nothing else.

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


def listed(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the sha256 of each file, as an index lists them."""
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def arrays_file(arrays: Mapping[str, Any]) -> bytes:
    """Return arrays as an npz file: the same bytes of the same arrays."""
    import numpy as np

    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:  # not `savez`, which writes the time of day
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue(), zipfile.ZIP_DEFLATED)
    return sink.getvalue()


def read_arrays(data: bytes, largest: int) -> dict[str, Any]:
    """Return the arrays of an npz file; `ValueError` if it is none, or would unpack to more than so many bytes."""
    import numpy as np

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > largest:
                raise ValueError("its arrays are too large")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return dict(arrays)
    # `RuntimeError`: among others `NotImplementedError`, of a later version of the format
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, KeyError, TypeError) as error:
        raise ValueError("it cannot be read as arrays") from error


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[io.BufferedRandom]:
    """Yield a file for its owner alone that takes its name when the block has ended well (C1)."""
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
    """Flush the names in a folder to disk: on POSIX a new name is there only once the folder is."""
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
# of every answer of a server of pages: nothing is stored, no page of others shows or reads ours, and ours loads
# nothing but its own files
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
    """Return files of the folder page/, by name: content and media type."""
    from importlib import resources

    folder = resources.files("elsewhere") / "page"
    return {name: ((folder / name).read_bytes(), PAGE_TYPES[Path(name).suffix]) for name in names}
