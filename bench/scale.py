"""
The whole job by size: seconds and memory of reading, making, writing and (with --judge) judging, and how they grow.

    python bench/scale.py --judge                                      a few minutes
    python bench/scale.py --people 1000 10000 100000 --days 14 --places 400 --json build/scale.json

Towns of people x days x places, a record per stay; each line of the table is printed when it is measured. Every size
runs in a process of its own, so that its peak of memory is its own; a small one goes first, which compiles. Seconds are
of the processor: the clock on the wall tells how busy the machine was. Growth is the slope of ln seconds over ln size,
where the other two sizes stay as they are.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

SIZES = ("people", "days", "places")
STAGES = ("read", "generate", "write", "judge")
LEAST = 0.2  # seconds below which growth says nothing
COMPILING = (60, 2, 60)  # people, days, places


def peak() -> float:
    """GB that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def measure(people: int, days: int, places: int, folder: Path, judge: bool) -> dict[str, Any]:
    """Return seconds and memory of each stage for a town of this size."""
    import elsewhere as ew
    from elsewhere.evaluation.judge import judge_run
    from elsewhere.run.publish import publish_with_links

    town = ew.simulate_town(users=people, days=days, locations=places, rng=np.random.default_rng(1)).visits
    path = folder / "people.parquet"
    ew.write_visits(town, path)
    out: dict[str, Any] = {"people": people, "days": days, "places": places, "visits": len(town), "stages": {}}
    del town

    def timed(stage: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = work()
        out["stages"][stage] = {"seconds": time.process_time() - start, "GB": peak()}
        return result

    visits = timed("read", lambda: ew.read_visits(path, rng=np.random.default_rng(2)))
    fakes = timed("generate", lambda: ew.generate_fakes(visits, rng=np.random.default_rng(3)))

    def write() -> Any:
        pool, lives = publish_with_links(fakes, laboratory=True, rng=np.random.default_rng(4))
        ew.write_visits(pool.visits, folder / "fakes.csv")
        ew.write_visits(pool.visits, folder / "fakes.parquet")
        pool.save(folder / "pool")
        return pool, fakes.seed_of_life[lives]

    pool, of = timed("write", write)
    if judge:
        timed("judge", lambda: judge_run(visits, fakes.seeds, pool, of, rng=np.random.default_rng(5)))
    return out | {"fakes": len(fakes), "seconds": sum(s["seconds"] for s in out["stages"].values()), "GB": peak()}


def in_a_process(people: int, days: int, places: int, judge: bool) -> dict[str, Any]:
    """Return what `measure` does in a process of its own, or why it failed."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, __file__, "--one", *map(str, (people, days, places)), folder]
        words += ["--judge"] if judge else []
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"people": people, "days": days, "places": places, "failed": done.stderr.strip().splitlines()[-1:]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def exponents(cells: list[dict[str, Any]]) -> dict[str, float]:
    """Return the growth of each stage with each size, the largest over the other two sizes."""
    out: dict[str, float] = {}
    done = [cell for cell in cells if "failed" not in cell]
    for size, stage in product(SIZES, done[0]["stages"] if done else ()):
        others = [name for name in SIZES if name != size]
        for rest in sorted({tuple(cell[name] for name in others) for cell in done}):
            row = [cell for cell in done if tuple(cell[name] for name in others) == rest]
            took = [cell["stages"][stage]["seconds"] for cell in row]
            if len({cell[size] for cell in row}) > 1 and min(took) >= LEAST:
                slope = float(np.polyfit(np.log([cell[size] for cell in row]), np.log(took), 1)[0])
                out[f"{stage} by {size}"] = max(slope, out.get(f"{stage} by {size}", slope))
    return out


def line(words: list[str]) -> str:
    """Return a line of a table in Markdown."""
    return f"| {' | '.join(words)} |"


def head(judge: bool) -> str:
    """Return the head of the table."""
    names = [*SIZES, "records", *(f"{stage}, s" for stage in STAGES[: 3 + judge]), "all, s", "GB", "ms a fake day"]
    return f"{line(names)}\n{line(['---'] * len(names))}"


def row(cell: dict[str, Any]) -> str:
    """Return the sizes, seconds and GB of one size."""
    size = [f"{cell[name]:,}" for name in SIZES]
    if "failed" in cell:
        return line([*size, *map(str, cell["failed"])])
    took = [stage["seconds"] for stage in cell["stages"].values()]
    each = 1e3 * cell["stages"]["generate"]["seconds"] / max(1, cell["fakes"] * cell["days"])
    figures = [*(f"{t:.1f}" for t in took), f"{cell['seconds']:.1f}", f"{cell['GB']:.2f}", f"{each:.2f}"]
    return line([*size, f"{cell['visits']:,}", *figures])


def main() -> None:
    """Measure what the command line asks for, and print it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--people", type=int, nargs="+", default=[500, 2000])
    options.add_argument("--days", type=int, nargs="+", default=[7])
    options.add_argument("--places", type=int, nargs="+", default=[400])
    options.add_argument("--json", type=Path)
    options.add_argument("--judge", action="store_true", help="measure usefulness and attacks too")
    options.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        *size, folder = given.one
        print(json.dumps(measure(*map(int, size), Path(folder), given.judge)))
        return
    in_a_process(*COMPILING, given.judge)
    cells = []
    print(head(given.judge))
    for size in product(given.people, given.days, given.places):
        cells.append(in_a_process(*size, given.judge))
        print(row(cells[-1]), flush=True)
    grown = exponents(cells)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps({"cells": cells, "exponents": grown}, indent=1))
    print(*(f"seconds grow as size^{slope:.2f}: {name}" for name, slope in grown.items()), sep="\n")


if __name__ == "__main__":
    main()
