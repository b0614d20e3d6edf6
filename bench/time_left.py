"""
The time left that a whole job tells, beside the truth: after a minute, and at every minute from then on.

    python bench/time_left.py                                 5,000 x 400, 5,000 x 4,000 and 20,000 x 400, with report
    python bench/time_left.py 8000 1000 1 400 400 14          other sizes: people, places, days of each

Every size runs in a process of its own, which keeps when it was told of which stage. What the bar would have shown is
worked out afterwards from these times. Seconds are of the processor of one thread: the clock on the wall tells how busy
the machine was. The rates in `elsewhere.run.time_left` were fitted to the table in docs/scale.md.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SIZES = [(5000, 400, 1), (5000, 4000, 1), (20000, 400, 1)]


def recorded(people: int, places: int, days: int) -> dict:
    """When a whole job was told of which stage, and what it was told to expect."""
    import elsewhere as ew

    told, expected, pieces = [], {}, {}

    def keep(stage, done, total, left):
        told.append((time.process_time() - start, stage, done, total))
        expected.update(left.expected)
        pieces.update(left.pieces)

    with tempfile.TemporaryDirectory() as folder:
        town = ew.simulate_town(users=people, locations=places, days=days, rng=np.random.default_rng(1)).traces
        ew.write_traces(town, Path(folder) / "people.csv")
        del town
        start = time.process_time()
        ew.synthesize(Path(folder) / "people.csv", Path(folder) / "out", workers=1, step=20, progress=keep)
    return {"told": told, "expected": expected, "pieces": pieces, "end": time.process_time() - start}


def shown(record: dict) -> list[tuple[float, float | None, float]]:
    """(Second, what was said to be left, what was left) after every minute."""
    from elsewhere.run.time_left import TimeLeft

    now = 0.0
    left, told, found = TimeLeft(lambda: now), list(record["told"]), []
    for minute in np.arange(60.0, record["end"], 60.0):
        while told and told[0][0] <= minute:
            now, stage, done, total = told.pop(0)
            if stage in record["expected"] and not left.expected:
                left.expect(record["expected"], record["pieces"])
            left.at(stage, done, total)
        now = float(minute)
        found.append((now, left(), record["end"] - now))
    return found


def main(words: list[str]) -> None:
    """Run every size, and print what was said beside what was true."""
    if words[:1] == ["--one"]:
        print(json.dumps(recorded(*map(int, words[1:]))))
        return
    numbers = [int(word) for word in words]
    for size in list(zip(*[iter(numbers)] * 3, strict=True)) or SIZES:
        done = subprocess.run([sys.executable, __file__, "--one", *map(str, size)], stdout=subprocess.PIPE, check=True)
        record = json.loads(done.stdout.splitlines()[-1])
        print("{:,} people x {:,} places x {} days: {:.0f} s".format(*size, record["end"]), flush=True)
        for second, said, true in shown(record):
            told = "nothing is said" if said is None else f"{said:.0f} s are said, {said / true:.2f} times the truth"
            print(f"  after {second:.0f} s: {true:.0f} s are left, {told}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
