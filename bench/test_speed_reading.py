"""Reading: fixes from CSV to slots, linear growth at 1, 2, 4, 8 million, 10 and 25 million, and a folder of tracks."""

import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv

PER_USER = 1000  # fixes of one day, 86 s apart
# a process of its own for each size, so that the peak of its memory is that of one reading
MEASURE = """
import json, resource, sys, time
import pandas, pyarrow.csv
from elsewhere.traces.read import read_traces
wall, cpu = time.perf_counter(), time.process_time()
traces = read_traces(sys.argv[1])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, peak, len(traces)]))
"""


def write_fixes(path, n):
    """`n` fixes of n / 1000 people who move between three places, in the columns of scikit-mobility."""
    rng = np.random.default_rng(1)
    users = n // PER_USER
    home = np.column_stack([46.5 + 0.1 * rng.random(users), 6.5 + 0.2 * rng.random(users)])
    clock = np.datetime64("2024-03-04T00:00:00", "s") + 86 * np.arange(PER_USER)
    stamp = np.char.replace(np.datetime_as_string(clock), "T", " ")
    with path.open("wb") as file:
        file.write(b"uid,datetime,lat,lng\n")
        for first in range(0, users, 500):
            user = np.repeat(np.arange(first, min(users, first + 500)), PER_USER)
            k = np.tile(np.arange(PER_USER), len(user) // PER_USER)
            at = home[user] + 0.01 * ((k // 100) % 3)[:, None] + rng.normal(0, 2e-4, (len(user), 2))
            table = pa.table([np.char.mod("user%06d", user), stamp[k], *np.round(at.T, 6)], names=list("utab"))
            csv.write_csv(table, file, csv.WriteOptions(include_header=False, quoting_style="none"))
    return path


def measured(path):
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_growth_is_linear(tmp_path):
    cost = {}
    for million in (1, 2, 4, 8):
        path = write_fixes(tmp_path / "fixes.csv", million * 1_000_000)
        wall, cpu, peak, rows = measured(path)
        assert rows == million * 1000
        cost[million] = cpu
        row = peak * 2**30 / (million * 1_000_000)
        print(
            f"\nreading {million} M fixes: {cpu:.1f} s of processor, {wall:.1f} s, peak {peak:.2f} GB, {row:.0f} bytes "
            "a row, the libraries among them",
            end="",
        )
    ratios = [cost[2 * m] / cost[m] for m in (1, 2, 4)]
    print("; twice the fixes cost " + ", ".join(f"{r:.2f}" for r in ratios) + " times")
    # merging the grid's cells costs the same from some size on, so early ratios are below 2
    assert max(ratios) < 2.6


def test_ten_million_fixes_in_a_minute_and_two_gigabytes(tmp_path):
    path = write_fixes(tmp_path / "fixes.csv", 10_000_000)
    wall, cpu, peak, _ = measured(path)
    begin = time.process_time()
    pd.read_csv(path, parse_dates=["datetime"])
    alone = time.process_time() - begin
    print(
        f"\nreading 10 M fixes to slots: {cpu:.1f} s of processor, {wall:.1f} s, peak {peak:.2f} GB;"
        f" pandas.read_csv with dates, without slots or places: {alone:.1f} s ({cpu / alone:.1f} x)"
    )
    assert cpu < 60
    assert peak < 2


def test_twenty_five_million_fixes_within_two_and_a_half_gigabytes(tmp_path):
    path = write_fixes(tmp_path / "fixes.csv", 25_000_000)
    wall, cpu, peak, _ = measured(path)
    print(f"\nreading 25 M fixes to slots: {cpu:.1f} s of processor, {wall:.1f} s, peak {peak:.2f} GB")
    assert peak < 2.5


def test_a_folder_of_tracks(tmp_path):
    """4,000 files of GeoLife's shape, of 200 people, one after the other."""
    rng = np.random.default_rng(1)
    clock = np.datetime64("2008-10-23T00:00:00", "s") + 86 * np.arange(PER_USER)
    stamp = np.char.replace(np.datetime_as_string(clock), "T", ",")
    head = "Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My Track,0\r\n0\r\n"
    for number in range(4000):
        folder = tmp_path / "Data" / f"{number % 200:03}" / "Trajectory"
        folder.mkdir(parents=True, exist_ok=True)
        at = [39.9, 116.3] + rng.normal(0, 0.02, 2) + rng.normal(0, 2e-4, (PER_USER, 2))
        rows = (f"{lat:.6f},{lon:.6f},0,492,39744.1,{t}\r\n" for (lat, lon), t in zip(at, stamp, strict=True))
        (folder / f"{number}.plt").write_text(head + "".join(rows))
    wall, cpu, peak, rows = measured(tmp_path / "Data")
    print(
        f"\nreading 4,000 tracks of 4 M fixes: {cpu:.1f} s of processor, {wall:.1f} s, peak {peak:.2f} GB, {rows} days"
    )
    assert cpu < 120
    assert peak < 2


@pytest.mark.parametrize("change", ["offsets", "a bad row", "shuffled"])
def test_the_careful_path(tmp_path, change):
    path = write_fixes(tmp_path / "fixes.csv", 1_000_000)
    plain = measured(path)[1]
    head, *lines = path.read_text().splitlines()
    if change == "offsets":
        lines = [line.replace(",46.", "+01:00,46.", 1) for line in lines]
    elif change == "a bad row":
        lines[5] = lines[5].replace(",46.", ",x46.", 1)
    else:
        lines = np.random.default_rng(1).permutation(lines).tolist()
    path.write_text("\n".join([head, *lines, ""]))
    cpu = measured(path)[1]
    print(f"\nreading 1 M fixes, {change}: {cpu:.1f} s of processor, {cpu / plain:.2f} times the plain file")
    assert cpu < 6 * plain
