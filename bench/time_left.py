"""
The time left that whole jobs tell, beside the truth: after a minute, and at a quarter, a half and three quarters.

    python bench/time_left.py 8000 1000 1 1 400 400 14 0      sizes: people, places, days of each, with a report or not
    python bench/time_left.py --keep build/jobs.jsonl ...     keeps when every job was told of which stage
    python bench/time_left.py --replay build/jobs.jsonl       works out anew what would have been said, in no time

Every size runs in a process of its own. What the bar would have shown is worked out afterwards from the times that
were kept, with the rates of now. Seconds are of the processor of one thread: the clock on the wall tells how busy the
machine was.
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
MOMENTS = (0.25, 0.5, 0.75)  # of a job, beside the first minute


def recorded(people: int, places: int, days: int, report: int) -> dict:
    """When a whole job was told of which stage, and of which size it was."""
    import elsewhere as ew
    from elsewhere.run import synthesize
    from elsewhere.run.time_left import TimeLeft, usual

    told, sizes = [], {}

    class Kept(TimeLeft):
        def at(self, stage, done=0, total=0):
            told.append((time.process_time() - start, stage, done, total))
            super().at(stage, done, total)

    def kept(days, slots, people, places, **more):
        sizes.update(days=days, slots=slots, people=people, places=places, **more)
        return usual(days, slots, people, places, **more)

    synthesize.TimeLeft, synthesize.usual = Kept, kept
    with tempfile.TemporaryDirectory() as folder:
        town = ew.simulate_town(users=people, locations=places, days=days, rng=np.random.default_rng(1)).traces
        ew.write_traces(town, Path(folder) / "people.csv")
        del town
        start = time.process_time()
        made = ew.synthesize(Path(folder) / "people.csv", Path(folder) / "out", report=bool(report), workers=1, step=20)
        end = time.process_time() - start
    return {
        "asked": (people, places, days, report),
        "sizes": sizes,
        "told": told,
        "end": end,
        "kappa": made.fakes.kappa,
    }


def shown(record: dict) -> Iterator[tuple[float, float | None, tuple[float, float] | None]]:
    """Yield (second, what is said to be left, between which bounds) after a minute, and at some moments of the job."""
    from elsewhere.run.time_left import ATTACK, LEARN, TimeLeft, attacks, usual

    now = 0.0
    left, told, sizes = TimeLeft(lambda: now), list(record["told"]), record["sizes"]
    expected = usual(**sizes)
    each = {ATTACK: attacks(sizes["days"], sizes["people"], sizes["places"])} if ATTACK in expected else {}
    for moment in sorted({60.0, *(share * record["end"] for share in MOMENTS)}):
        if moment >= record["end"]:
            return
        while told and told[0][0] <= moment:
            now, stage, done, total = told.pop(0)
            if stage == LEARN:  # the input is read
                left.expect(expected, each)
            left.at(stage, done, total)
        now = float(moment)
        yield now, left(), left.range()


def judged(records: list[dict]) -> None:
    """Print what was said beside what was true, and how often it was within 1.5 times of it, or its bounds held it."""
    ratios, within = [], []
    for record in records:
        people, places, days, report = record["asked"]
        how = "with" if report else "without"
        print(f"{people:,} people x {places:,} places x {days} days {how} report: {record['end']:.0f} s", flush=True)
        for second, said, bounds in shown(record):
            true = record["end"] - second
            if said is None or bounds is None:
                print(f"  after {second:.0f} s: {true:.0f} s are left, nothing is said")
                continue
            ratios.append(said / true)
            within.append(bounds[0] <= true <= bounds[1])
            print(
                f"  after {second:.0f} s: {true:.0f} s are left, {said:.0f} s are said, {said / true:.2f} times the "
                f"truth, {bounds[0]:.0f} to {bounds[1]:.0f}"
            )
    if ratios:
        near = np.mean([1 / 1.5 <= ratio <= 1.5 for ratio in ratios])
        tenth, half, ninth = np.quantile(ratios, (0.1, 0.5, 0.9))
        print(
            f"{len(ratios)} moments: said / true {min(ratios):.2f} to {max(ratios):.2f}, a tenth below {tenth:.2f}, "
            f"half below {half:.2f}, a tenth above {ninth:.2f}; within 1.5: {near:.0%}; between the bounds: "
            f"{np.mean(within):.0%}"
        )


def main() -> None:
    """Run every size, or read what was kept of them, and judge what was said."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sizes", type=int, nargs="*", default=SIZES)
    options.add_argument("--keep", type=Path)
    options.add_argument("--replay", type=Path)
    options.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        print(json.dumps(recorded(*given.sizes)))
        return
    records = []
    if given.replay:
        records = [json.loads(line) for line in given.replay.read_text().splitlines()]
    else:
        for size in zip(*[iter(given.sizes)] * 4, strict=True):
            words = [sys.executable, __file__, "--one", *map(str, size)]
            done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
            records.append(json.loads(done.stdout.splitlines()[-1]))
            if given.keep:
                with given.keep.open("a") as file:
                    file.write(json.dumps(records[-1]) + "\n")
    judged(records)


if __name__ == "__main__":
    main()
