"""
The time left that whole jobs tell, beside the truth: after a minute, and at a quarter, a half and three quarters.

    python bench/time_left.py 8000 1000 1 1 400 400 14 0      sizes: people, places, days of each, with a report or not
    python bench/time_left.py --files checkins.csv ...        files of your own, with a report
    python bench/time_left.py --keep build/jobs.jsonl ...     keeps when every job was told of which stage
    python bench/time_left.py --replay build/jobs.jsonl       works out anew what would have been said, in no time

Every job runs in a process of its own. What the bar would have shown is worked out afterwards from the times that were
kept, with the rates of now: by seconds of the processor of one thread, as on a machine whose speed does not change, and
by the clock on the wall, which also tells how busy the machine was.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

SIZES = [5000, 400, 1, 1, 5000, 4000, 1, 1, 300, 300, 14, 1, 20000, 400, 1, 0]
FIRST_MINUTE = 60.0
MOMENTS = (0.25, 0.5, 0.75)  # of a job, beside the first minute
CLOCKS = ("seconds of the processor", "seconds of the clock")


def recorded(source: Path | list[int]) -> dict:
    """When a job, of a file or of a town of some size, was told of which stage; and of which size it was."""
    import elsewhere as ew
    from elsewhere.run import synthesize
    from elsewhere.run.time_left import TimeLeft, expected_seconds

    told, sizes = [], {}

    class Kept(TimeLeft):
        def at(self, stage, done=0, total=0):
            told.append((time.process_time() - start, time.perf_counter() - wall, stage, done, total))
            super().at(stage, done, total)

    def kept(days, slots, people, places, **more):
        sizes.update(days=days, slots=slots, people=people, places=places, **more)
        return expected_seconds(days, slots, people, places, **more)

    synthesize.TimeLeft, synthesize.expected_seconds = Kept, kept
    with tempfile.TemporaryDirectory() as folder:
        path, options = source, {}
        if not isinstance(source, Path):
            people, places, days, report = source
            path, options = Path(folder) / "people.csv", {"report": bool(report), "step": 20}
            rng = np.random.default_rng(1)
            ew.write_traces(ew.simulate_town(users=people, locations=places, days=days, rng=rng).traces, path)
        start, wall = time.process_time(), time.perf_counter()
        ew.synthesize(path, Path(folder) / "out", workers=1, progress=lambda *_: None, **options)
        ends = time.process_time() - start, time.perf_counter() - wall
    name = source.name if isinstance(source, Path) else "{:,} x {:,} x {}, report {}".format(*source)
    return {"job": name, "sizes": sizes, "told": told, "ends": ends}


def shown(record: dict, clock: int) -> Iterator[tuple[float, float | None, tuple[float, float] | None]]:
    """Yield (second, what is said to be left, between which bounds) after a minute, and at some moments of the job."""
    from elsewhere.run.time_left import LEARN, TimeLeft, expected_seconds

    times = [0.0, 0.0]
    now = 0.0
    left = TimeLeft(lambda: now, lambda: times[0])
    told, sizes, end = list(record["told"]), record["sizes"], record["ends"][clock]
    expected = expected_seconds(**sizes)
    for moment in sorted({FIRST_MINUTE, *(share * end for share in MOMENTS)}):
        if moment >= end:
            return
        while told and told[0][clock] <= moment:
            *times, stage, done, total = told.pop(0)
            now = times[clock]
            if stage == LEARN:  # the input is read
                left.expect(expected)
            left.at(stage, done, total)
        now = float(moment)
        yield now, left(), left.range()


def judged(records: list[dict], clock: int) -> None:
    """Print what was said beside what was true, and how often it was within 1.5 times of it, or its bounds held it."""
    ratios, within, late = [], [], []
    for record in records:
        end = record["ends"][clock]
        print(f"{record['job']}: {end:.0f} s", flush=True)
        for second, said, bounds in shown(record, clock):
            true = end - second
            if said is None or bounds is None:
                print(f"  after {second:.0f} s: {true:.0f} s are left, nothing is said")
                continue
            ratios.append(said / true)
            within.append(bounds[0] <= true <= bounds[1])
            late.append(second >= FIRST_MINUTE)
            print(
                f"  after {second:.0f} s: {true:.0f} s are left, {said:.0f} s are said, {said / true:.2f} times the "
                f"truth, {bounds[0]:.0f} to {bounds[1]:.0f}"
            )
    for which, chosen in (("moments", np.ones(len(ratios), dtype=bool)), ("of them from the first minute on", late)):
        of = np.array(ratios)[np.array(chosen, dtype=bool)]
        if len(of):
            print(
                f"{len(of)} {which}: said / true {of.min():.2f} to {of.max():.2f}, within 1.5: "
                f"{np.mean((of >= 1 / 1.5) & (of <= 1.5)):.0%}, between the bounds: "
                f"{np.mean(np.array(within)[np.array(chosen, dtype=bool)]):.0%}"
            )


def main() -> None:
    """Run every job, or read what was kept of them, and judge what was said."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sizes", type=int, nargs="*")
    options.add_argument("--files", type=Path, nargs="+", default=[])
    options.add_argument("--keep", type=Path)
    options.add_argument("--replay", type=Path)
    options.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        print(json.dumps(recorded(*given.files or [given.sizes])))
        return
    records = []
    if given.replay:
        records = [json.loads(line) for line in given.replay.read_text().splitlines()]
    else:
        sizes = given.sizes or ([] if given.files else SIZES)
        jobs = [["--files", str(path)] for path in given.files]
        jobs += [[str(number) for number in size] for size in zip(*[iter(sizes)] * 4, strict=True)]
        for job in jobs:
            done = subprocess.run([sys.executable, __file__, "--one", *job], stdout=subprocess.PIPE, check=True)
            records.append(json.loads(done.stdout.splitlines()[-1]))
            if given.keep:
                with given.keep.open("a") as file:
                    file.write(json.dumps(records[-1]) + "\n")
    for clock, name in enumerate(CLOCKS):
        print(f"by {name}")
        judged(records, clock)


if __name__ == "__main__":
    main()
