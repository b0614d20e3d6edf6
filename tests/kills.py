"""
Kill `synthesize` at random steps, let the same call go on, and compare with a run that nobody stopped.

    python tests/kills.py INPUT FOLDER KILLS SEED

A step is an operation on the file system or a block of fakes, so that kills fall where progress is, on fast
machines and slow ones; every fourth falls at a random time instead. A run that goes on is
killed again half of the times. Nothing is
judged. Children are forked, so that kernels are loaded once. Prints one line of JSON.
"""

import hashlib
import json
import os
import secrets
import shutil
import signal
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

import elsewhere as ew

SMALL = {"k": 3, "workers": 1, "report": False}
OPERATIONS = ("fsync", "rename", "replace", "unlink", "rmdir", "mkdir")


def holds(folder):
    """Every file and folder below a folder, hidden ones too, by its path."""
    return {
        p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else "a folder"
        for p in sorted(folder.rglob("*"))
    }


class Steps:
    """Counts steps, and ends the process at one of them as SIGKILL does: nothing is cleaned up."""

    def __init__(self, last):
        self.last, self.taken = last, 0
        for name in OPERATIONS:
            setattr(os, name, self.counted(getattr(os, name)))

    def counted(self, function):
        def call(*given, **named):
            self.step()
            return function(*given, **named)

        return call

    def step(self, *_progress):
        if self.taken == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.taken += 1


def job(source, out, *, seeded, last=None, **options):
    """The job, from a given seed, or from entropy that is made the same for all runs; the number of its steps."""
    steps = Steps(last)
    how = {"rng": np.random.default_rng(7), "laboratory": True} if seeded else {}
    if not seeded:
        secrets.token_bytes = lambda n: hashlib.shake_256(b"the entropy of this test").digest(n)
    warnings.simplefilter("ignore")
    ew.synthesize(source, out, **SMALL, **how, **options, progress=steps.step)
    return steps.taken


def forked(*given, seconds=None, **named):
    """Run `job` in a child; -9 if it was killed, 0 done, 2 refused, 1 failed; how long it took."""
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            job(*given, **named)
            os._exit(0)
        except ew.errors.OutputRefused:
            os._exit(2)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    timer = threading.Timer(seconds or 0, os.kill, (child, signal.SIGKILL))
    if seconds is not None:
        timer.start()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    timer.cancel()
    return status, time.monotonic() - begin


def main(source, folder, kills, seed):
    folder, draw = Path(folder), np.random.default_rng(seed)
    whole, steps, times = {}, {}, {}
    warnings.simplefilter("ignore")
    ew.synthesize(source, folder / "first" / "out", **SMALL)  # the children inherit its compiled kernels
    for seeded in (True, False):
        there = folder / f"whole-{seeded}"
        reader, writer = os.pipe()
        begin = time.monotonic()
        if os.fork() == 0:  # it changes functions of `os`
            os.write(writer, str(job(source, there / "out", seeded=seeded)).encode())
            os._exit(0)
        os.close(writer)
        steps[seeded] = int(os.read(reader, 100))
        os.close(reader)
        os.wait()
        times[seeded] = time.monotonic() - begin
        whole[seeded] = holds(there)
        assert {name.split("/")[0] for name in whole[seeded]} == {"out", "out-private"}, whole
    assert whole[True] != whole[False]

    found = {"kills": 0, "runs": 0, "alike": 0, "steps": steps[True], "ended before": 0, "faults": []}
    while found["kills"] < kills:
        found["runs"] += 1
        there, seeded = folder / "run", bool(draw.random() < 0.5)
        shutil.rmtree(there, ignore_errors=True)
        at = []
        while True:
            # a run that goes on has fewer steps: half of them are let end
            stop = {} if at and draw.random() < 0.5 else {"last": int(draw.integers(steps[seeded]))}
            if stop and draw.random() < 0.25:
                stop = {"seconds": float(draw.uniform(0, times[seeded]))}
            status, _ = forked(source, there / "out", seeded=seeded, **stop)
            if status != -signal.SIGKILL:
                break
            at.append(stop)
            found["kills"] += 1
        found["ended before"] += not at
        # it has ended; one that was killed at its very end says that there is something already
        good = status in (0, 2) and holds(there) == whole[seeded]
        found["alike"] += good
        if not good:
            found["faults"].append({"status": status, "at": at, "holds": sorted(holds(there))})
        print(f"{found['kills']} kills, {found['alike']} of {found['runs']} runs alike", file=sys.stderr, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
