"""
Write folders and files that appear complete or not at all, and are never overwritten by accident.

A file is written under a temporary name in its own folder, flushed to disk and then renamed (C1), so no reader sees
half of it and the old file survives a full disk (C6). A folder is written under a hidden name, `.NAME.partial-...`, and
renamed when it is complete: see `whole_folders`. Results are private until published: files 0600, folders 0700 (F48).
Only regular files of bounded size are read back: a pipe would block, and a device would never end (B1, B52).
"""

import contextlib
import filecmp
import glob
import io
import os
import shutil
import stat
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elsewhere.errors import OutputRefused

try:
    import fcntl
except ImportError:  # Windows: whether the writer of a folder still lives cannot be asked there
    fcntl = None  # type: ignore[assignment]

PARTIAL, HALF = ".partial-", ".half"


def check_folder(folder: Path, *, force: bool = False) -> None:
    """
    Refuse, before any work is done, a folder that cannot or should not hold results.

    Refused are a folder that is not empty (unless `force` is set, C8), one that cannot be replaced, a file, and a place
    where nothing can be written (B54): a folder is made there for a moment, as permissions do not reveal a full disk.
    """
    try:
        clean_up(folder.resolve())
        if folder.exists():
            if any(folder.iterdir()) and not force:
                raise OutputRefused(f"{folder} is not empty: choose another folder, or `force`.", parameter="force")
            if folder.is_mount() or folder.resolve() in (Path.cwd(), *Path.cwd().parents):
                raise OutputRefused(f"{folder} cannot be replaced by a new folder: name one inside it.")
        nearest = next(p for p in folder.absolute().parents if p.exists())
        # under a name that `clean_up` knows
        trial = Path(tempfile.mkdtemp(prefix=f".{folder.resolve().name}{PARTIAL}", dir=nearest))
        with contextlib.suppress(FileNotFoundError):  # another process may have cleaned it up
            trial.rmdir()
    except OSError as error:
        raise OutputRefused(f"{folder} cannot be a folder of results: {error.strerror}.") from None


@contextlib.contextmanager
def whole_folders(folders: Sequence[Path], *, force: bool = False) -> Iterator[tuple[Path, ...]]:
    """
    Yield an empty private folder for each of `folders`, which they become, in order, when the block has succeeded.

    If the block raises anything, nothing changes. A folder that is there (empty, or `force` set) is then renamed, and a
    warning says where it is; it is removed where the new one holds all of it. A process that is killed leaves a hidden
    folder behind, which the next call removes.
    """
    drafts: list[_Draft] = []
    try:
        for folder in folders:
            with refuse_os_errors(folder):
                drafts.append(_Draft.begin(folder.resolve()))
        yield tuple(draft.new for draft in drafts)
        for draft in drafts:
            with refuse_os_errors(draft.folder):
                draft.put(force)
    except BaseException:
        for draft in reversed(drafts):
            draft.take_back()
        raise
    finally:
        for draft in drafts:
            if draft.lock is not None:
                os.close(draft.lock)
    for draft in drafts:
        draft.end()


@dataclass
class _Draft:
    """A folder that is being written: `new` is its hidden name, `folder` its final one."""

    folder: Path
    new: Path
    lock: int | None
    aside: Path  # where what is there goes

    @staticmethod
    def begin(folder: Path) -> "_Draft":
        """Make and lock the hidden folder."""
        make_folder(folder.parent)
        clean_up(folder)
        while True:
            new = Path(tempfile.mkdtemp(prefix=f".{folder.name}{PARTIAL}", dir=folder.parent))
            aside = folder.with_name(new.name.removeprefix(".").replace(PARTIAL, ".replaced-"))
            # until it is locked, another run may take it for a folder left behind and remove it
            with contextlib.suppress(BlockingIOError, FileNotFoundError):
                return _Draft(folder, new, lock_folder(new), aside)

    def put(self, force: bool) -> None:
        """Give the new folder its final name; from here on no space on the disk is needed."""
        if self.folder.exists():
            if not force and any(self.folder.iterdir()):
                raise OutputRefused(f"{self.folder} is no longer empty: another program has written into it meanwhile.")
            self.folder.rename(self.aside)
        self.new.rename(self.folder)
        _sync(self.folder.parent)

    def take_back(self) -> None:
        """Undo everything."""
        if not self.new.exists():
            self.folder.rename(self.new)
        if self.aside.exists():
            self.aside.rename(self.folder)
        shutil.rmtree(self.new, ignore_errors=True)

    def end(self) -> None:
        """Say where the folder is that was there; remove it, and others left of killed runs, where nothing is lost."""
        for aside in self.folder.parent.glob(f"{glob.escape(self.folder.name)}.replaced-*"):
            names = [path.name for path in aside.iterdir()]
            _, *lost = filecmp.cmpfiles(aside, self.folder, names, shallow=False)
            if not any(lost):
                shutil.rmtree(aside, ignore_errors=True)
            elif aside == self.aside:
                warnings.warn(f"what was in {self.folder} is now in {self.aside}.", stacklevel=4)


def clean_up(folder: Path) -> None:
    """Remove, with a warning, what killed processes left incomplete of `folder`."""
    above = next((at for at in folder.parents if at.is_dir()), folder)
    for path in above.glob(f".{glob.escape(folder.name)}{PARTIAL}*"):
        if path.is_symlink() or not path.is_dir():
            continue
        try:
            lock = lock_folder(path)
        except (BlockingIOError, FileNotFoundError):
            continue  # its process is running, or has just ended
        if lock is None:
            warnings.warn(f"{path} is incomplete; remove it, unless a run is still writing it.", stacklevel=2)
            continue
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)
        warnings.warn(f"removed {path}, left incomplete by a run that was killed.", stacklevel=2)


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


def write_folder(folder: Path, files: dict[str, bytes], *, force: bool = False) -> None:
    """Write a folder that holds `files` (name -> content), all of them or none: see `whole_folders`."""
    with whole_folders((folder,), force=force) as (new,):
        write_files(new, files)


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write `files` (name -> content) into `folder`, one after the other, each completely; make it if needed."""
    with refuse_os_errors(folder):
        make_folder(folder)
        for name, content in files.items():
            with whole_file(folder / name) as file:
                file.write(content)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, private (0700)."""
    # `parents=True` would make the folders above with the permissions of the umask
    for parent in reversed([p for p in (folder, *folder.parents) if not p.exists()]):
        parent.mkdir(mode=0o700, exist_ok=True)


def read_regular(path: Path, largest: int) -> bytes:
    """Return the bytes of a regular file of at most `largest` bytes; `OSError` for anything else."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode) or about.st_size > largest:
        raise OSError(f"{path.name} is not a regular file, or too large")
    return path.read_bytes()


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
