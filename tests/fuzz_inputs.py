"""
The fuzzer: files of every format, and the folders that we write, damaged at random, must be read or refused by code,
soon and in little memory; and so must machines that fail while we write (`fuzz_faults`).

    python tests/fuzz_inputs.py SECONDS [SEED]

prints one JSON object: how many inputs were read or written and refused, by code, and every fault with the number that
makes it again.
"""

import gzip
import io
import json
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import fuzz_faults
import fuzz_folders
import makefiles
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import elsewhere as ew

CANARY = "CANARY-7f3a"
HANG = 20  # seconds of processor that one small file may take, and ten times as many on the wall
MOST_GB = 2.0
FEWEST = 100  # inputs, however busy the machine is
HUGE = [
    b"9" * 40,
    b"1e309",
    b"-1",
    b"0",
    b"NaN",
    b"99999999999999999999",
    b"\xff\xfe",
    b"\0",
    b'"',
    b"<",
    b"{",
    b"[" * 3000,
]
HUGE += [
    b"24:00",
    b":60",
    b"9999-12-31",
    b"0001-01-01",
    b"+99:99",
    b"\n\n",
    b",",
    b"\t",
    b"",
    b"&x;",
    b"=1+1",
    b"\r",
    b"A" * 5000,
]


def originals():
    """(Name, bytes) of a good file of every format."""
    points = makefiles.fixes()
    found = {name: make(points).encode() for name, make in makefiles.EVERY.items()}
    found["sglt"] = makefiles.sglt(points).encode()
    found["slots"] = b"uid,date,slot,loc\n" + b"".join(b"ann,2013-04-15,%d,%d\n" % (s, s // 30) for s in range(72))
    found["venues"] = makefiles.foursquare_2015(points)[1].encode()
    found["check-ins"] = makefiles.foursquare_2015(points)[0].encode()
    found["epochs"] = b"uid;ts;lat;lon\n" + b"".join(b"a;%d;46.5;6.6\n" % t.timestamp() for t, _, _ in points)
    found["utf-16"] = makefiles.csv(points).encode("utf-16")
    columns = [["ann"] * 72, [t for t, _, _ in points], [a for _, a, _ in points], [b for _, _, b in points]]
    sink = io.BytesIO()
    pq.write_table(pa.table(columns, names=["uid", "datetime", "lat", "lng"]), sink)
    found["parquet"] = sink.getvalue()
    return {
        name: content.replace(b"ann", CANARY.encode()) if name != "parquet" else content
        for name, content in found.items()
    }


def damaged(content, rng):
    """One to six random injuries: bytes flipped, cut, lines swapped or repeated, huge and odd values put in."""
    gentle = rng.random() < 0.6  # bytes stay text, so that the damage gets past the first check
    for _ in range(rng.integers(1, 4 if gentle else 7)):
        if not content:
            return content
        kind = rng.choice([3, 4, 5, 6, 7, 7, 7]) if gentle else rng.integers(0, 9)
        at, until = np.sort(rng.integers(0, len(content) + 1, 2))
        if kind == 0:
            flipped = bytearray(content)
            for place in rng.integers(0, len(content), rng.integers(1, 9)):
                flipped[place] ^= 1 << rng.integers(0, 8)
            content = bytes(flipped)
        elif kind == 1:
            content = content[:at]
        elif kind == 2:
            content = content[:at] + content[until:]
        elif kind == 3:
            lines = content.split(b"\n")
            a, b = rng.integers(0, len(lines), 2)
            lines[a], lines[b] = lines[b], lines[a]
            content = b"\n".join(lines)
        elif kind in (4, 5):
            content = content[:at] + HUGE[rng.integers(0, len(HUGE))] + content[at + rng.integers(0, 8) :]
        elif kind == 6:
            content = content[:until] + content[at:until] + content[until:]
        elif kind == 7:
            numbers = [i for i in range(len(content)) if 48 <= content[i] < 58]
            if numbers:
                place = numbers[rng.integers(0, len(numbers))]
                content = content[:place] + HUGE[rng.integers(0, 6)] + content[place + 1 :]
        else:
            content = content[:at] + rng.bytes(rng.integers(1, 30)) + content[at:]
    return content


def _too_long(*_):
    raise TimeoutError


def attempt(read):
    """What became of one input: "read", or the code of its refusal; anything else is raised."""
    signal.setitimer(signal.ITIMER_PROF, HANG)
    signal.alarm(10 * HANG)
    try:
        read()
    except ew.ElsewhereError as error:
        shown = "".join(traceback.format_exception_only(error))
        if CANARY in shown or "46.519" in shown:
            raise AssertionError("a message shows content") from None
        return error.code
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    return "read"


def case(files, number, folder):
    """Everything about input `number`, which is written into the folder: its name, and how it is read."""
    rng = np.random.default_rng(number)
    name = list(files)[rng.integers(0, len(files))]
    content = files[name]
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if isinstance(content, fuzz_faults.Output):
        return name, lambda: content.attempt(folder, rng)
    if isinstance(content, fuzz_folders.Input):
        for each, damaged_content in content.damaged(damaged, rng).items():
            (folder / each).write_bytes(damaged_content)
        return name, lambda: content.read(folder)
    if rng.random() < 0.15:
        content = gzip.compress(content)
    content = damaged(content, rng)
    if rng.random() < 0.1:
        content = gzip.compress(content)
    options = {"tz": [None, "UTC", "Europe/Zurich"][rng.integers(0, 3)], "max_bad": [0.01, 1.0][rng.integers(0, 2)]}
    options["min_coverage"] = [0.5, 0.0][rng.integers(0, 2)]
    options["any_date"] = bool(rng.integers(0, 2))
    options["allow_truncated"] = bool(rng.integers(0, 2))
    (folder / "input").write_bytes(content)
    return name, lambda: ew.read_traces(folder / "input", **options)


def peak_gb():
    """The most memory of this process; `ru_maxrss` would count the process that started it too."""
    for line in Path("/proc/self/status").read_text().splitlines() if Path("/proc/self/status").exists() else ():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def fuzz(seconds, first):
    """Damage files for so many seconds of processor, `FEWEST` at least, from input number `first` on."""
    warnings.simplefilter("ignore")
    for signum in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(signum, _too_long)
    files, seen, faults = originals() | fuzz_folders.inputs() | fuzz_faults.outputs(), Counter(), []
    number = first
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        while (time.process_time() < start + seconds or number - first < FEWEST) and len(faults) < 20:
            name, read = case(files, number, Path(folder))
            try:
                seen[attempt(read)] += 1
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                where = [f"{Path(f.filename).name}:{f.lineno}" for f in frames][-4:]
                faults.append({"number": number, "file": name, "kind": type(error).__name__, "where": where})
            number += 1
            if (number - first) % 1000 == 0:
                print(
                    f"{number - first} inputs, {faults}, {peak_gb():.2f} GB, {dict(seen)}", file=sys.stderr, flush=True
                )
    peak = peak_gb()
    if peak > MOST_GB:
        faults.append({"number": number, "kind": "memory", "peak": peak})
    return {"inputs": number - first, "answers": dict(seen.most_common()), "peak_gb": round(peak, 2), "faults": faults}


if __name__ == "__main__":
    print(json.dumps(fuzz(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 2**40)))
