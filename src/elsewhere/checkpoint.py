"""
What a run that was stopped goes on from: a private folder with its secret and the results of its finished stages.

`Checkpoint` is the one way in which a stage is kept: `checkpoint(name, make)` is what `make` returned, now or in the
run that was stopped. A result is on disk before anything is made of it, and what goes on is always read back from
there, so a run that was stopped ends with the bytes of one that was not, and noise that was drawn is never drawn again.

A file holds numbers, texts, arrays and objects of this package, written by their fields, and a checksum: no pickle. All
of it is private (0600), since it holds real traces; the folder goes when the run has ended well.
"""

import contextlib
import dataclasses
import hashlib
import importlib
import json
import os
import secrets
import shutil
import struct
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

import numpy as np

from elsewhere.errors import AGAIN, ClusterUnavailable, ElsewhereError, OutputRefused
from elsewhere.files import (
    HALF,
    PARTIAL,
    as_refusal,
    clean_up,
    lock_folder,
    make_folder,
    read_index,
    whole_file,
    write_files,
)

T = TypeVar("T")
JOB, PART, KIND = "job.json", ".part", "elsewhere unfinished run"
NO_WORK = {"secret", "written"}  # stages that nobody waits for


class Stages(Protocol):
    """How stages are run: `stage(name, make)` returns what `make` returns, made now or kept from before."""

    def __call__(self, name: str, make: Callable[[], T], /) -> T:
        """Return the result of a stage."""
        ...


def at_once(_name: str, make: Callable[[], T], /) -> T:
    """Run a stage, and keep nothing."""
    return make()


def _quietly(_name: str, /) -> None:
    """Tell nobody that a stage has begun."""


def kept(stages: Stages, name: str) -> bool:
    """Tell whether the result of a stage is kept from before."""
    return isinstance(stages, Checkpoint) and stages.holds(name)


def derived(secret: bytes, use: str, size: int = 16) -> bytes:
    """
    Return bytes for one use of a secret: nobody who knows those of one use can tell those of another.

    Examples
    --------
    >>> derived(b"a", "dates") == derived(b"a", "dates"), derived(b"a", "dates") == derived(b"a", "ids")
    (True, False)

    """
    return hashlib.shake_256(b"%d:%s%s" % (len(secret), secret, use.encode())).digest(size)


def generator(secret: bytes, use: str) -> np.random.Generator:
    """Return the generator of one use of a secret."""
    return np.random.default_rng(int.from_bytes(derived(secret, use), "little"))


class Checkpoint:
    """
    The kept stages of one job, in a folder that no other process has; see `opened`.

    `found` are the stages that an earlier process has finished; `began(name)` is called before a stage is run.
    """

    def __init__(self, folder: Path, key: str, lock: int | None) -> None:
        self.folder, self.key, self._lock = folder, key, lock
        self.began = _quietly
        self.found = frozenset(self.names())

    @staticmethod
    def opened(folder: Path, key: str, *, force: bool = False, spent: frozenset[str] = frozenset()) -> "Checkpoint":
        """
        Open the folder of the job with this `key`, which says what it is made of; it is made where there is none.

        Refused where another process has it, where it holds something else, and without `force` where it holds another
        job; with `force` that is removed, with a warning if one of the stages `spent` goes with it.
        """
        folder = folder.resolve()
        with as_refusal(folder):
            clean_up(folder)
            while True:
                checkpoint = Checkpoint(folder, key, _held(folder))
                try:
                    if (there := checkpoint._job(force)) is None:
                        write_files(folder, {JOB: json.dumps({"kind": KIND, "key": key}).encode()})
                except BaseException:
                    checkpoint.close()
                    with contextlib.suppress(OSError):
                        folder.rmdir()  # an empty one
                    raise
                if there in (None, key):
                    return checkpoint
                checkpoint.remove()
                if checkpoint.found & spent:
                    warnings.warn(
                        f"gave up the run that was stopped in {folder}, and noise that it had drawn: if anything of it "
                        "was seen, its eps and delta add to those of this run.",
                        stacklevel=5,
                    )

    def __call__(self, name: str, make: Callable[[], T], /) -> T:
        """Return the result of a stage: that of the run that was stopped, else what `make` returns, once it is kept."""
        if not self.holds(name):
            self.began(name)
            self.keep(name, make())
        return self.kept(name)  # type: ignore[no-any-return]

    def names(self) -> set[str]:
        """Return the finished stages."""
        return {path.name.removesuffix(PART) for path in self.folder.glob(f"*{PART}")}

    def holds(self, name: str) -> bool:
        """Tell whether a stage is finished."""
        return (self.folder / f"{name}{PART}").exists()

    def keep(self, name: str, value: Any) -> None:
        """Keep the result of a stage."""
        with as_refusal(self.folder), whole_file(self.folder / f"{name}{PART}") as file:
            write_value(_Summed(file, self._seal(name)), value)

    def kept(self, name: str) -> Any:
        """Return the result of a finished stage; refused if the file is damaged."""
        path = self.folder / f"{name}{PART}"
        try:
            with path.open("rb") as file:
                return read_value(file, self._seal(name))
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, struct.error):
            raise OutputRefused(
                f"{path} is damaged: this run cannot go on. Remove {self.folder} to begin anew.", code="E_UNFINISHED"
            ) from None

    def close(self) -> None:
        """Let go of the folder, which stays."""
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None

    def remove(self) -> None:
        """
        Remove the folder: at one stroke, so that no part of it is ever taken for the whole.

        `OSError` where the system refuses it, or leaves a part of it: the error names what is left.
        """
        aside = self.folder.with_name(f".{self.folder.name}{PARTIAL}{secrets.token_hex(4)}")
        try:
            self.folder.rename(aside)
            shutil.rmtree(aside)
        finally:
            self.close()

    def _job(self, force: bool) -> str | None:
        """Return the key of the job in the folder, None where it is empty; refused where it is not this one's."""
        files = list(self.folder.iterdir())
        for path in [path for path in files if path.name.endswith(HALF)]:
            path.unlink()  # of a process that was killed
            files.remove(path)
        if not files:
            return None
        try:
            index = read_index(self.folder / JOB)
        except (OSError, ValueError):
            index = {}
        if index.get("kind") != KIND or any(path.name != JOB and path.suffix != PART for path in files):
            raise OutputRefused(
                f"{self.folder} holds something else than a run that was stopped: move it away, or choose another "
                "output."
            )
        if index.get("key") != self.key and not force:
            raise OutputRefused(
                f"{self.folder} holds a run that was stopped, and this is another: the input has changed, an option "
                "that makes fakes, or the version. The command of that run goes on with it; to give it up, remove the "
                "folder, or pass `force=True`.",
                code="E_UNFINISHED",
            )
        return str(index.get("key"))

    def _seal(self, name: str) -> bytes:
        return f"{KIND} {self.key} {name}".encode()


def _held(folder: Path) -> int | None:
    """Make a folder if need be, and hold it; None where there are no locks."""
    while True:
        make_folder(folder)
        try:
            lock = lock_folder(folder)
        except BlockingIOError:
            raise OutputRefused(
                f"another process is at work here, and has {folder}: wait for its end, or choose another folder.",
                code="E_BUSY",
            ) from None
        except FileNotFoundError:
            continue
        except OSError:
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(lock).st_ino == folder.stat().st_ino:
                return lock
        os.close(lock)  # of a run that has just ended, and has removed it


def digest(value: Any) -> str:
    """Return the sha256 of a value's bytes; `TypeError` if it has none."""
    with Path(os.devnull).open("wb") as nowhere:
        sink = _Summed(nowhere, b"")
        write_value(sink, value)
    return sink.sum.hexdigest()


def file_digest(path: Path) -> str:
    """Return the sha256 of a file, or of all files below a folder with their names."""
    if not path.is_dir():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    names = sorted(p for p in path.rglob("*") if p.is_file())
    return digest([[p.relative_to(path).as_posix(), file_digest(p)] for p in names])


class _Summed:
    """A file that is written to, and the checksum of what is in it."""

    def __init__(self, file: BinaryIO, seal: bytes) -> None:
        self.file, self.sum = file, hashlib.sha256(seal)

    def write(self, data: Any) -> int:
        self.sum.update(data)
        return self.file.write(data)


def write_value(file: _Summed, value: Any) -> None:
    """Write a value: a tree of plain values as JSON, its arrays, a checksum; `TypeError` for what has no such form."""
    writer = _Writer()
    tree = json.dumps(writer.node(value)).encode()
    file.write(struct.pack("<QQ", len(tree), len(writer.arrays)))
    file.write(tree)
    for array in writer.arrays:
        np.lib.format.write_array(file, array, allow_pickle=False)
    file.file.write(file.sum.digest())


def read_value(file: BinaryIO, seal: bytes) -> Any:
    """Return what `write_value` wrote under this seal; `ValueError` if it is anything else."""
    size = file.seek(0, os.SEEK_END) - 32
    file.seek(0)
    sum_, left = hashlib.sha256(seal), size
    while left > 0 and (part := file.read(min(left, 1 << 22))):
        sum_.update(part)
        left -= len(part)
    if left or file.read() != sum_.digest():
        raise ValueError("another checksum")
    file.seek(0)
    length, number = struct.unpack("<QQ", file.read(16))
    tree = json.loads(file.read(length))
    arrays = [np.lib.format.read_array(file, allow_pickle=False) for _ in range(number)]
    return _Reader(arrays).value(tree)


@dataclasses.dataclass(eq=False)
class _Writer:
    """Turns values into a tree for JSON; arrays are put aside, and what occurs twice is written once."""

    arrays: list[np.ndarray[Any, Any]] = dataclasses.field(default_factory=list)
    number: dict[int, int] = dataclasses.field(default_factory=dict)  # of what is written already, by its id
    held: list[Any] = dataclasses.field(default_factory=list)  # so that no id is given to another value

    def node(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is bytes:
            return ["bytes", value.hex()]
        if type(value) is np.str_:
            return ["text", str(value)]
        if isinstance(value, np.generic):
            return ["number", self._array(np.asarray(value))]
        if id(value) in self.number:
            return ["same", self.number[id(value)]]
        form = self._form(value)
        # numbered once it is written, as it is read: what it holds comes first
        self.number[id(value)] = len(self.held)
        self.held.append(value)
        return form

    def _form(self, value: Any) -> list[Any]:
        kind = type(value)
        if isinstance(value, np.ndarray):
            if value.dtype == object:
                return ["objects", list(value.shape), [self.node(v) for v in value.ravel().tolist()]]
            return ["array", self._array(np.asarray(value))]
        if kind in (list, tuple):
            return [kind.__name__, [self.node(v) for v in value]]
        if kind in (set, frozenset):
            return [kind.__name__, [self.node(v) for v in sorted(value)]]
        if kind is dict or kind.__name__ == "mappingproxy":
            return ["dict", [[self.node(k), self.node(v)] for k, v in value.items()]]
        if isinstance(value, Path):
            return ["path", str(value)]
        if kind.__module__.partition(".")[0] == "pandas" and hasattr(value, "to_dict"):
            return self._table(value)
        if kind.__module__.startswith("scipy.sparse.") and hasattr(value, "tocsr"):
            return ["sparse", kind.__name__, self.node(_csr(value))]
        if not kind.__module__.startswith("elsewhere."):
            raise TypeError(f"a {kind.__module__}.{kind.__qualname__} cannot be kept")
        name = f"{kind.__module__}:{kind.__qualname__}"
        if isinstance(value, tuple):
            return ["named", name, [self.node(v) for v in value]]
        fields = [f.name for f in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else sorted(vars(value))
        return ["object", name, {f: self.node(getattr(value, f)) for f in fields}]

    def _array(self, array: np.ndarray[Any, Any]) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1

    def _table(self, value: Any) -> list[Any]:
        """Return what tells a table of a caller from another: not read back."""
        columns = [value] if not hasattr(value, "columns") else [value[name] for name in value.columns]
        digests = [
            [str(c.name), str(c.dtype), np.asarray(c if c.dtype.kind in "biufmM" else c.astype(str).astype(object))]
            for c in columns
        ]
        return ["table", self.node(digests), self.node(np.asarray(value.index.astype(str)).astype(object))]


def _csr(value: Any) -> tuple[Any, ...]:
    rows = value.tocsr()
    return rows.data, rows.indices, rows.indptr, tuple(int(n) for n in rows.shape)


@dataclasses.dataclass(eq=False)
class _Reader:
    """Turns the tree of a file back into the value."""

    arrays: list[np.ndarray[Any, Any]]
    held: list[Any] = dataclasses.field(default_factory=list)

    def value(self, node: Any) -> Any:
        if not isinstance(node, list):
            return node
        word, *rest = node
        if word == "bytes":
            return bytes.fromhex(rest[0])
        if word == "text":
            return np.str_(rest[0])
        if word == "number":
            return self.arrays[rest[0]][()]
        if word == "same":
            return self.held[rest[0]]
        value_read = self._formed(word, rest)
        self.held.append(value_read)
        return value_read

    def _formed(self, word: str, rest: list[Any]) -> Any:
        if word == "array":
            return self.arrays[rest[0]]
        if word == "objects":
            flat = np.empty(len(rest[1]), dtype=object)
            flat[:] = [self.value(v) for v in rest[1]]
            return flat.reshape(rest[0])
        if word in ("list", "tuple", "set", "frozenset"):
            kind = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[word]
            return kind(self.value(v) for v in rest[0])
        if word == "dict":
            return {self.value(k): self.value(v) for k, v in rest[0]}
        if word == "path":
            return Path(rest[0])
        if word == "sparse":
            from scipy import sparse

            data, indices, indptr, shape = self.value(rest[1])
            kind = rest[0]
            rows = (sparse.csr_array if kind.endswith("_array") else sparse.csr_matrix)((data, indices, indptr), shape)
            return rows.asformat(kind.split("_")[0])
        cls = _class_of(rest[0])
        if word == "named":
            return tuple.__new__(cls, [self.value(v) for v in rest[1]])
        thing = cls.__new__(cls)
        for name, each in rest[1].items():
            object.__setattr__(thing, name, self.value(each))
        return thing


def _class_of(name: str) -> Any:
    """Return a class of this package, and nothing else: what a file names is not run."""
    module, _, path = name.partition(":")
    if not module.startswith("elsewhere."):
        raise ValueError("a class of another package")
    thing: Any = importlib.import_module(module)
    for part in path.split("."):
        thing = getattr(thing, part)
    if not isinstance(thing, type):
        raise ValueError("not a class")
    return thing


@contextlib.contextmanager
def going_on(
    folder: Path,
    key: str | None,
    spent: frozenset[str],
    *,
    force: bool = False,
    began: Callable[[str], None] = _quietly,
) -> Iterator[Stages]:
    """
    Yield the stages of the job with this `key`, kept in a folder that goes when the job has ended; without key, none.

    `began(name)` is called before a stage is run, not for one that is kept.

    A job ends well, or is refused for a reason that it would meet again. Whatever else stops it leaves the folder, and
    the error says so; also a refusal after one of the stages `spent`, whose noise must not be drawn a second time.
    """
    if key is None:

        def made(name: str, make: Callable[[], T], /) -> T:
            began(name)
            return make()

        yield made
        return
    checkpoint = Checkpoint.opened(folder, key, force=force, spent=spent)
    checkpoint.began = began
    done = set(checkpoint.found) - NO_WORK
    if done:
        warnings.warn(
            f"going on with the run that was stopped, in {checkpoint.folder}: kept {_listed(done)}.", stacklevel=4
        )
    try:
        yield checkpoint
    except BaseException as error:
        names = checkpoint.names()
        refused = isinstance(error, ElsewhereError) and not isinstance(error, OutputRefused | ClusterUnavailable)
        if refused and names & spent:
            error.add_note(
                f"The noise that was drawn is kept in {checkpoint.folder}: {AGAIN} tells the same, and costs "
                "nobody more. To draw again is another release, at its price: remove the folder first."
            )
        elif not refused and names - NO_WORK:
            error.add_note(f"What is done is kept in {checkpoint.folder}, for you alone: {AGAIN} goes on from there.")
        else:
            _remove(checkpoint)
        checkpoint.close()
        raise
    _remove(checkpoint)


def _remove(checkpoint: Checkpoint) -> None:
    """Remove the folder of a job that has ended; where that cannot be, say that it holds real traces."""
    try:
        checkpoint.remove()
    except OSError as error:
        warnings.warn(
            f"{error.filename or checkpoint.folder} cannot be removed ({error.strerror}): it holds real traces, for "
            "you alone; remove it yourself.",
            stacklevel=5,
        )


def _listed(names: set[str]) -> str:
    """Return the stages in words, those of many parts with their number."""
    parts = Counter(name.partition("-")[0].replace("_", " ") for name in names)
    return ", ".join(f"{name} ({n})" if " " in name else name for name, n in sorted(parts.items()))
