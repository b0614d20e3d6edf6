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
import io
import json
import os
import pkgutil
import secrets
import shutil
import struct
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

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
SUM = 32  # bytes of a sha256
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
    return isinstance(stages, Checkpoint) and name in stages.finished


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


@dataclasses.dataclass(eq=False)
class Checkpoint:
    """
    The kept stages of one job, in a folder that no other process has; see `opened`.

    `finished` are the stages that are kept, `began(name)` is called before a stage is run. `lock` holds the folder,
    where there are locks.
    """

    folder: Path
    key: str
    lock: int | None
    finished: set[str]
    began: Callable[[str], None] = _quietly

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
                make_folder(folder)
                try:
                    lock = lock_folder(folder)
                except BlockingIOError:
                    raise OutputRefused(
                        f"another process is at work here, and has {folder}: wait for its end, or choose another "
                        "folder.",
                        code="E_BUSY",
                    ) from None
                except FileNotFoundError:
                    continue  # a run that has just ended has removed it
                finished = {path.name.removesuffix(PART) for path in folder.glob(f"*{PART}")}
                checkpoint = Checkpoint(folder, key, lock, finished)
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
                if finished & spent:
                    warnings.warn(
                        f"gave up the run that was stopped in {folder}, and noise that it had drawn: if anything of it "
                        "was seen, its eps and delta add to those of this run.",
                        stacklevel=5,
                    )

    def __call__(self, name: str, make: Callable[[], T], /) -> T:
        """
        Return the result of a stage: that of the run that was stopped, else what `make` returns, once it is kept.

        It is read from its file either way; refused if the file is damaged.
        """
        if name not in self.finished:
            self.began(name)
            self.keep(name, make())
        path = self.folder / f"{name}{PART}"
        try:
            with path.open("rb") as file:
                return read_value(file, f"{self.key} {name}")  # type: ignore[no-any-return]
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, struct.error):
            raise OutputRefused(
                f"{path} is damaged: this run cannot go on. Remove {self.folder} to begin anew.", code="E_UNFINISHED"
            ) from None

    def keep(self, name: str, value: Any) -> None:
        """Keep the result of a stage."""
        with as_refusal(self.folder), whole_file(self.folder / f"{name}{PART}") as file:
            write_value(file, value, f"{self.key} {name}")
        self.finished.add(name)

    def close(self) -> None:
        """Let go of the folder, which stays."""
        if self.lock is not None:
            os.close(self.lock)
        self.lock = None

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


def digest(value: Any) -> str:
    """Return the sha256 of a value's tree and arrays; `TypeError` if it has none."""
    arrays: list[np.ndarray[Any, Any]] = []
    total = hashlib.sha256(json.dumps(_node(value, arrays, {})).encode())
    sink: Any = SimpleNamespace(write=total.update)
    for array in arrays:
        np.lib.format.write_array(sink, array, allow_pickle=False)
    return total.hexdigest()


def file_digest(path: Path) -> str:
    """Return the sha256 of a file, or of all files below a folder with their names."""
    if not path.is_dir():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    names = sorted(p for p in path.rglob("*") if p.is_file())
    return digest([[p.relative_to(path).as_posix(), file_digest(p)] for p in names])


def write_value(file: io.BufferedRandom, value: Any, seal: str) -> None:
    """
    Write a value: the sha256 of the seal and all that follows, a tree of plain values as JSON, the arrays of the tree.

    `TypeError` for what has no such form.
    """
    arrays: list[np.ndarray[Any, Any]] = []
    tree = json.dumps(_node(value, arrays, {})).encode()
    file.write(bytes(SUM) + struct.pack("<Q", len(tree)) + tree)
    for array in arrays:
        np.lib.format.write_array(file, array, allow_pickle=False)
    file.seek(SUM)
    total = hashlib.file_digest(file, partial(hashlib.sha256, seal.encode()))
    file.seek(0)
    file.write(total.digest())


def read_value(file: io.BufferedReader, seal: str) -> Any:
    """Return what `write_value` wrote under this seal; `ValueError` if it is anything else."""
    checksum = file.read(SUM)
    if hashlib.file_digest(file, partial(hashlib.sha256, seal.encode())).digest() != checksum:
        raise ValueError("another checksum")
    file.seek(SUM)
    (length,) = struct.unpack("<Q", file.read(8))
    return _value(json.loads(file.read(length)), file, [])


def _node(value: Any, arrays: list[np.ndarray[Any, Any]], held: dict[int, tuple[int, Any]]) -> Any:
    """
    Return a value as a node of a tree for JSON: plain, or [word, what the word needs, nodes of its parts].

    Arrays are put aside, in the order of their nodes. What occurs twice is written once: `held` has the number of what
    is written already, by its id, and the value itself, so that no other value gets this id.
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is bytes:
        return ["bytes", value.hex(), []]
    if kind is np.str_:
        return ["text", str(value), []]
    if isinstance(value, np.generic):
        arrays.append(np.asarray(value))
        return ["number", None, []]
    if id(value) in held:
        return ["same", held[id(value)][0], []]

    word = kind.__name__
    more: Any = None
    parts: Any = ()
    if isinstance(value, np.ndarray) and value.dtype == object:
        word, more, parts = "objects", value.shape, value.ravel().tolist()
    elif isinstance(value, np.ndarray):
        word = "array"
        arrays.append(np.asarray(value))
    elif kind in (list, tuple):
        parts = value
    elif kind in (set, frozenset):
        parts = sorted(value)
    elif kind is dict or kind.__name__ == "mappingproxy":
        word, parts = "dict", [*value.keys(), *value.values()]
    elif isinstance(value, Path):
        word, more = "path", str(value)
    elif kind.__module__.partition(".")[0] == "pandas" and hasattr(value, "to_dict"):
        # only to tell a table of a caller from another: it is never read back
        columns = [value] if not hasattr(value, "columns") else [value[name] for name in value.columns]
        cells = [np.asarray(c if c.dtype.kind in "biufmM" else c.astype(str).astype(object)) for c in columns]
        index = np.asarray(value.index.astype(str)).astype(object)
        word, more, parts = "table", [[str(c.name), str(c.dtype)] for c in columns], [*cells, index]
    elif kind.__module__.startswith("scipy.sparse.") and hasattr(value, "tocsr"):
        rows = value.tocsr()
        word, more, parts = (
            "sparse",
            [kind.__name__, list(map(int, rows.shape))],
            [rows.data, rows.indices, rows.indptr],
        )
    elif kind.__module__.startswith("elsewhere.") and (isinstance(value, tuple) or dataclasses.is_dataclass(value)):
        word, more = "object", f"{kind.__module__}:{kind.__qualname__}"
        parts = value if isinstance(value, tuple) else [getattr(value, f.name) for f in dataclasses.fields(value)]
    else:
        raise TypeError(f"a {kind.__module__}.{kind.__qualname__} cannot be kept")
    nodes = [_node(part, arrays, held) for part in parts]
    held[id(value)] = len(held), value  # numbered as it is read: after its parts
    return [word, more, nodes]


def _value(node: Any, file: io.BufferedReader, held: list[Any]) -> Any:
    """Return the value of a node of `_node`; its arrays come next in the file, `held` are the values read before it."""
    if not isinstance(node, list):
        return node
    word, more, nodes = node
    if word == "bytes":
        return bytes.fromhex(more)
    if word == "text":
        return np.str_(more)
    if word == "number":
        return np.lib.format.read_array(file, allow_pickle=False)[()]
    if word == "same":
        return held[more]

    value: Any
    parts = [_value(part, file, held) for part in nodes]
    if word == "array":
        value = np.lib.format.read_array(file, allow_pickle=False)
    elif word == "objects":
        value = np.empty(len(parts), dtype=object)
        value[:] = parts
        value = value.reshape(more)
    elif word in ("list", "tuple", "set", "frozenset"):
        value = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[word](parts)
    elif word == "dict":
        half = len(parts) // 2
        value = dict(zip(parts[:half], parts[half:], strict=True))
    elif word == "path":
        value = Path(more)
    elif word == "sparse":
        from scipy import sparse

        name, shape = more
        rows = (sparse.csr_array if name.endswith("_array") else sparse.csr_matrix)(tuple(parts), shape)
        value = rows.asformat(name.split("_")[0])
    elif not more.startswith("elsewhere."):  # what a file names is not run
        raise ValueError("a class of another package")
    else:
        kind = pkgutil.resolve_name(more)
        if issubclass(kind, tuple):
            value = tuple.__new__(kind, parts)
        else:
            value = kind.__new__(kind)
            for field, part in zip(dataclasses.fields(kind), parts, strict=True):
                object.__setattr__(value, field.name, part)
    held.append(value)
    return value


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
    if done := checkpoint.finished - NO_WORK:
        parts = Counter(name.partition("-")[0].replace("_", " ") for name in done)  # some stages have many parts
        listing = ", ".join(f"{name} ({n})" if " " in name else name for name, n in sorted(parts.items()))
        warnings.warn(f"going on with the run that was stopped, in {checkpoint.folder}: kept {listing}.", stacklevel=4)
    ended = True
    try:
        yield checkpoint
    except BaseException as error:
        refused = isinstance(error, ElsewhereError) and not isinstance(error, OutputRefused | ClusterUnavailable)
        if refused and checkpoint.finished & spent:
            ended = False
            error.add_note(
                f"The noise that was drawn is kept in {checkpoint.folder}: {AGAIN} tells the same, and costs "
                "nobody more. To draw again is another release, at its price: remove the folder first."
            )
        elif not refused and checkpoint.finished - NO_WORK:
            ended = False
            error.add_note(f"What is done is kept in {checkpoint.folder}, for you alone: {AGAIN} goes on from there.")
        raise
    finally:
        try:
            if ended:
                checkpoint.remove()
        except OSError as error:
            warnings.warn(
                f"{error.filename or checkpoint.folder} cannot be removed ({error.strerror}): it holds real traces, "
                "for you alone; remove it yourself.",
                stacklevel=4,
            )
        checkpoint.close()
