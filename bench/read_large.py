"""
Measure how a large file is read: `python bench/read_large.py [FIXES]` writes a CSV, reads it, says what it took.

Seconds of processor and the largest memory of a process of its own; the file is deleted in the end.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def write_fixes(path, n, *, per_user=2_500, seed=1):
    """Write n fixes, one a minute: stays of a quarter of a day, and ways between them."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pv

    rng = np.random.default_rng(seed)
    with path.open("wb") as out:
        out.write(b"user_id,datetime,lat,lon\n")
        for first in range(0, n, 1_000_000):
            i = np.arange(first, min(first + 1_000_000, n))
            stay, step = i // 360, i % 360
            way = np.clip((step - 330) / 30, 0, 1)
            here, there = (rng.permuted(np.arange(stay[0], stay[-1] + 2) % 997)[stay - stay[0] + k] for k in (0, 1))
            place = here * (1 - way) + there * way
            table = pa.table({
                "user": pc.binary_join_element_wise("user", pa.array((i // per_user).astype(str)), ""),
                "time": pa.array(np.datetime64("2024-03-04", "s") + i % per_user * 60),
                "lat": np.round(47.3 + place % 31 * 3e-3 + rng.normal(0, 1e-4, len(i)), 6),
                "lon": np.round(8.5 + place // 31 * 3e-3 + rng.normal(0, 1e-4, len(i)), 6),
            })  # fmt: skip
            pv.write_csv(table, out, pv.WriteOptions(include_header=False, quoting_style="none"))


def measure(path):
    """Read a file and print what it took."""
    from elsewhere.data.read import read_visits

    wall, cpu = time.perf_counter(), time.process_time()
    steps = []
    visits = read_visits(path, progress=lambda step, n: steps.append((step, time.process_time() - cpu)))
    last = {step: round(seconds, 1) for step, seconds in steps}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    took = f"{time.process_time() - cpu:.1f} s of processor, {time.perf_counter() - wall:.1f} s, {peak:.0f} MB"
    print(f"{visits}: {took}; {last}")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        measure(Path(sys.argv[2]))
    else:
        many = int(sys.argv[1]) if len(sys.argv) > 1 else 25_000_000
        with tempfile.TemporaryDirectory() as folder:
            large = Path(folder) / "fixes.csv"
            write_fixes(large, many)
            print(f"{many:,} fixes, {large.stat().st_size / 1e6:.0f} MB of CSV")
            subprocess.run([sys.executable, __file__, "read", str(large)], check=True)
