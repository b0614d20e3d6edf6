"""
Keep the results of finished stages in a private folder, so that a stopped run can resume.

`stages(name, make)` returns what `make` returned, now or in the stopped run. A result is on disk before it is used, and
is always read back from there. So a resumed run ends with the same bytes as a run that was never stopped, and noise
that was drawn is never drawn again.

A file holds numbers, texts, arrays and objects of this package (written field by field) and a checksum; there is no
pickle. All files are private (0600), because they hold real traces. The folder is removed when the run has succeeded.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import pkgutil
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from elsewhere.errors import ClusterUnavailable, ElsewhereError, OutputRefused, counted
from elsewhere.files import (
    HALF,
    PARTIAL,
    clean_up,
    lock_folder,
    make_folder,
    refuse_os_errors,
    whole_file,
)

T = TypeVar("T")
PART = ".part"
DAMAGED = "E_UNFINISHED"  # code of a stage whose file is damaged, or of another job
NO_WORK = {"secret"}  # stages that nobody waits for


def derive_bytes(secret: bytes, use: str, size: int = 16) -> bytes:
    """
    Return bytes for one use of a secret; the bytes of one use reveal nothing about those of another.

    Examples
    --------
    >>> dates, ids = derive_bytes(b"a", "dates"), derive_bytes(b"a", "ids")
    >>> dates == derive_bytes(b"a", "dates"), dates == ids
    (True, False)

    """
    return hashlib.shake_256(b"%d:%s%s" % (len(secret), secret, use.encode())).digest(size)


def derive_rng(secret: bytes, use: str) -> np.random.Generator:
    """Return the random generator of one use of a secret."""
    return np.random.default_rng(int.from_bytes(derive_bytes(secret, use), "little"))


@dataclasses.dataclass(eq=False)
class Stages:
    """
    Run the stages of one job; with a `folder`, which this process has locked, their results are kept there.

    `key` is a hash of everything that decides the results. `lock` is None on systems without locks. `finished` are the
    names of the stages whose results are kept.
    """

    folder: Path | None = None
    key: str = ""
    lock: int | None = None
    finished: set[str] = dataclasses.field(default_factory=set)

    @staticmethod
    def open(folder: Path, key: str) -> "Stages":
        """Open the folder of the job with this `key`, or create it; refused if another process has it."""
        folder = folder.resolve()
        with refuse_os_errors(folder):
            clean_up(folder)
            make_folder(folder)
            try:
                lock = lock_folder(folder)
            except (BlockingIOError, FileNotFoundError):  # the latter where it ends in this moment
                raise OutputRefused(
                    f"another process is running this job and has locked {folder}: wait until it ends, or choose "
                    "another folder.",
                    code="E_BUSY",
                ) from None
            for path in folder.glob(f".*{HALF}"):
                path.unlink()  # of a process that was killed
            files = [path.name for path in folder.iterdir()]
            stages = Stages(folder, key, lock, {name.removesuffix(PART) for name in files})
            if not all(name.endswith(PART) for name in files):
                stages.close()
                raise OutputRefused(f"{folder} holds other files than a stopped run: move them, or choose another one.")
        return stages

    def __call__(self, name: str, make: Callable[[], T], /) -> T:
        """
        Return the result of a stage: the one that is kept, else what `make` returns, after it was kept.

        It is read from its file in both cases; refused if the file is damaged.
        """
        if self.folder is None:
            return make()
        if name not in self.finished:
            self.keep(name, make())
        path = self.folder / f"{name}{PART}"
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as parts:
                arrays = (parts[n] for n in parts.files)
                key, of, tree = json.loads(bytes(next(arrays)))
                if (key, of) != (self.key, name):
                    raise ValueError("of another job or stage")
                return _decode(tree, arrays)  # type: ignore[no-any-return]
        except Exception:  # whatever reading it raises
            raise OutputRefused(
                f"{path} is damaged, or of a stopped run of another job: the input, an option that decides the fakes "
                "or the version is not the same. The command of that run resumes it; to give it up, remove "
                f"{self.folder}: if anybody saw certified fakes of it, its eps and delta add to those of this run.",
                code=DAMAGED,
            ) from None

    def keep(self, name: str, value: Any) -> None:
        """
        Write the result of a stage to its file; `TypeError` if it cannot be written as plain values and arrays.

        The file is an .npz, which has checksums: first job, stage and tree of plain values as JSON, then the arrays.
        """
        assert self.folder is not None  # noqa: S101
        arrays: list[np.ndarray[Any, Any]] = []
        tree = json.dumps([self.key, name, _encode(value, arrays)]).encode()
        with refuse_os_errors(self.folder), whole_file(self.folder / f"{name}{PART}") as file:
            np.savez(file, np.frombuffer(tree, dtype=np.uint8), *arrays)
        self.finished.add(name)

    def close(self) -> None:
        """Unlock the folder and leave it in place."""
        if self.lock is not None:
            os.close(self.lock)
        self.lock = None

    def remove(self) -> None:
        """
        Remove the folder; it is renamed first, so that a part of it is never taken for the whole.

        `OSError` if the system refuses this or leaves a part of it; the error names what is left.
        """
        assert self.folder is not None  # noqa: S101 - only what is kept is removed
        aside = self.folder.with_name(f".{self.folder.name}{PARTIAL}{secrets.token_hex(4)}")
        try:
            self.folder.rename(aside)
            shutil.rmtree(aside)
        finally:
            self.close()


at_once = Stages()


def hash_value(value: Any) -> str:
    """Return the sha256 of plain values, arrays and objects of this package; `TypeError` for anything else."""
    arrays: list[np.ndarray[Any, Any]] = []
    total = hashlib.sha256(json.dumps(_encode(value, arrays)).encode())
    for array in arrays:
        total.update(f"{array.dtype.str} {array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def hash_file(path: Path) -> str:
    """Return the sha256 of a file, or of all files below a folder with their names."""
    if not path.is_dir():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    names = sorted(p for p in path.rglob("*") if p.is_file())
    return hash_value([[p.relative_to(path).as_posix(), hash_file(p)] for p in names])


def _encode(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """
    Return a value as a node of a JSON tree: a plain value, or [kind, nodes of its parts].

    Arrays are appended to `arrays`, in the order of their nodes. Named tuples and data classes of this package are
    their fields.
    """
    value = value.item() if isinstance(value, np.number | np.bool_) else value
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    word, parts = kind.__name__, value
    if kind is bytes:
        return ["bytes", value.hex()]
    if kind is np.ndarray and value.dtype != object:
        arrays.append(value)
        word, parts = "array", ()
    elif kind is dict:
        parts = [*value.keys(), *value.values()]
    elif kind.__module__.startswith("elsewhere.") and (isinstance(value, tuple) or dataclasses.is_dataclass(value)):
        word = f"{kind.__module__}:{kind.__qualname__}"
        parts = value if isinstance(value, tuple) else [getattr(value, f.name) for f in dataclasses.fields(value)]
    elif kind not in (list, tuple):
        raise TypeError(f"a {kind.__module__}.{kind.__qualname__} cannot be kept")
    return [word, [_encode(part, arrays) for part in parts]]


def _decode(node: Any, arrays: Iterator[Any]) -> Any:
    """Return the value of a node of `_encode`; its arrays are next."""
    if not isinstance(node, list):
        return node
    word, nodes = node
    if word == "bytes":
        return bytes.fromhex(nodes)
    if word == "array":
        return next(arrays)
    parts = [_decode(part, arrays) for part in nodes]
    if word in ("list", "tuple"):
        return parts if word == "list" else tuple(parts)
    if word == "dict":
        half = len(parts) // 2
        return dict(zip(parts[:half], parts[half:], strict=True))
    if not word.startswith("elsewhere."):  # a file cannot name code of others to be run
        raise ValueError("a class of another package")
    kind = pkgutil.resolve_name(word)
    if issubclass(kind, tuple):
        return tuple.__new__(kind, parts)
    value = kind.__new__(kind)
    for field, part in zip(dataclasses.fields(kind), parts, strict=True):
        object.__setattr__(value, field.name, part)
    return value


@contextlib.contextmanager
def resume(folder: Path, key: str | None, spent: frozenset[str]) -> Iterator[Stages]:
    """
    Yield the stages of the job with this `key`, kept in a folder until the job has ended; without a key none are kept.

    The folder is removed when the job succeeds or is refused for a reason that would occur again. It stays, and the
    error says so, when anything else stops the job, and when the job is refused after one of the stages in `spent`,
    whose noise must not be drawn a second time.
    """
    if key is None:
        yield at_once
        return
    stages = Stages.open(folder, key)
    if done := stages.finished - NO_WORK:
        words = counted(len(done), "finished stage")
        warnings.warn(f"resuming the stopped run in {stages.folder}, with {words}.", stacklevel=4)
    ended = True
    try:
        yield stages
    except BaseException as error:
        refused = isinstance(error, ElsewhereError) and not isinstance(error, OutputRefused | ClusterUnavailable)
        ended = not (stages.finished & spent if refused else stages.finished - NO_WORK)
        if not ended and getattr(error, "code", None) != DAMAGED:  # which says itself what to do
            again = "gives the same answer and costs no further privacy" if refused else "resumes"
            error.add_note(f"What is done is kept in {stages.folder}, for you alone: the same call or command {again}.")
        raise
    finally:
        try:
            if ended:
                stages.remove()
        except OSError as error:
            warnings.warn(
                f"{error.filename or stages.folder} cannot be removed ({error.strerror}): it holds real traces, "
                "readable by you alone; remove it yourself.",
                stacklevel=4,
            )
        stages.close()
