"""
Machines that fail while we write: what the fuzzer starts from beside damaged inputs.

A folder that holds an old result is written anew. At a random operation on files the system refuses (no room, no
permission, a disk that fails or is read-only), or, for real, no file may grow beyond a random size. The answer must be
a refusal by code. What is then in the folder is the old result, or the new one, or refused by whoever reads it where
files had begun to move in; and once the machine works again, the same call ends well and leaves no file behind.
"""

import contextlib
import errno
import os
import resource
import signal
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import elsewhere as ew
from elsewhere.checkpoint import Checkpoint
from elsewhere.files import PARTIAL, READY
from elsewhere.run.model import FittedModel
from elsewhere.settings import preset_of

ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EIO)
OPERATIONS = ("open", "fsync", "rename", "replace", "mkdir", "unlink", "rmdir")
STEPS = 40  # more than any of these outputs takes


@dataclass(frozen=True)
class Output:
    """A result that is written into a folder, number 0 or 1, and read back as something that can be compared."""

    write: Callable[[Path, int], Any]
    read: Callable[[Path], Any]

    def attempt(self, folder, rng):
        """Write 0, then 1 while the machine fails, then 1; raises what the failing machine made it raise."""
        out = folder / "out"
        self.write(out, 0)
        old, failed = self.read(out), None
        with _size(rng) if rng.random() < 0.3 else _fault(rng):
            try:
                self.write(out, 1)
            except ew.ElsewhereError as error:
                failed = error
        left = {path.name for path in folder.iterdir()}
        assert all(name == "out" or name.startswith((f".out{PARTIAL}", f".out{READY}")) for name in left), left
        found = _or_code(self.read, out)
        self.write(out, 1)
        new = self.read(out)
        assert new != old
        assert found in (old, new, "refused"), "half a result"
        if failed is None:
            assert found == new, "a write that failed in silence"
        assert {path.name for path in folder.iterdir()} == {"out"}
        assert not [path.name for path in out.iterdir() if path.name.startswith(".")], "a file is left over"
        if failed is not None:
            raise failed


def _or_code(read, folder):
    try:
        return read(folder)
    except ew.ElsewhereError:
        return "refused"


@contextlib.contextmanager
def _fault(rng):
    """One operation fails, and from it on as many as the error asks for: a full disk stays full."""
    at, error, kept = (
        int(rng.integers(STEPS)),
        int(rng.choice(ERRORS)),
        {name: getattr(os, name) for name in OPERATIONS},
    )
    lasting, count = bool(rng.random() < 0.5), [0]

    def failing(name, function):
        def call(*given, **named):
            reads = name == "open" and not (len(given) > 1 and given[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
            removes = name in ("unlink", "rmdir") and error in (errno.ENOSPC, errno.EDQUOT)
            if not reads and not removes:
                count[0] += 1
                if count[0] - 1 == at or (lasting and count[0] > at):
                    raise OSError(error, os.strerror(error))
            return function(*given, **named)

        return call

    for name, function in kept.items():
        setattr(os, name, failing(name, function))
    try:
        yield
    finally:
        for name, function in kept.items():
            setattr(os, name, function)


@contextlib.contextmanager
def _size(rng):
    """No file may grow beyond a random size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(10 ** rng.uniform(0, 5)), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def outputs():
    """Name -> a result of every kind that is a folder."""
    towns = [ew.simulate_town(users=40, locations=60, rng=np.random.default_rng(n)).traces for n in (1, 2)]
    settings = preset_of("product", m_min=2, c_min=2, k=3, alternates="split")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [ew.learn(town, settings, kappa=4, rng=np.random.default_rng(1)) for town in towns]
        fakes = [ew.generate_fakes(t, preset="paper", kappa=4, rng=np.random.default_rng(1)) for t in towns]
        pools = [ew.publish(made, laboratory=True, rng=np.random.default_rng(1)) for made in fakes]

    def kept(folder, number):
        """The stages of a job that goes on: one is there already, the other is made."""
        stages = Checkpoint.open(folder, "0" * 64)
        try:
            stages.keep("reading", towns[number])
        finally:
            stages.close()

    def stages(folder):
        checkpoint = Checkpoint.open(folder, "0" * 64)
        try:
            return checkpoint("reading", list).r.tobytes()
        finally:
            checkpoint.close()

    return {
        "written model": Output(
            lambda d, n: models[n].save(d, force=True),
            lambda d: FittedModel.load(d).model.mass.tobytes(),
        ),
        "written fakes": Output(lambda d, n: fakes[n].save(d, force=True), lambda d: ew.Fakes.load(d).r.tobytes()),
        "written pool": Output(lambda d, n: pools[n].save(d, force=True), lambda d: ew.Pool.load(d).traces.r.tobytes()),
        "kept stage": Output(kept, stages),
    }
