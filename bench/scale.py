"""
The whole job by size: seconds and memory of every stage, beside plain ways of doing the same, and hot kernels beside a
loop that only reads their bytes.

    python bench/scale.py                                       1,000 and 4,000 people x 400 and 4,000 places
    python bench/scale.py --people 1000 10000 100000 --places 400 4000 40000 --json build/scale.json

Every size runs in a process of its own, so that its peak of memory is its own. Seconds are of the processor: the clock
on the wall tells how busy the machine was.
"""

import argparse
import importlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# what is timed, by stage: the function of a module that the whole job calls
STAGES = {
    "reading": ["run.synthesize:read_usable_days"],
    "learning": ["run.model:fit_profiles", "run.model:aggregate", "run.model:semantic_graph"],
    "classes": ["run.model:_classes"],
    "law of days": ["run.generate:_prepare_pairing"],
    "tests ready": [
        f"paper.privacy_test:{name}" for name in ("_count_visits", "_sort_by_top_share", "_relaxed_thresholds")
    ],
    "fakes": ["run.generate:map_over"],
    "publishing": ["run.synthesize:publish_with_rows", "run.synthesize:write_fakes"],
    "evaluation": [
        "evaluation.judge:evaluate_publishing",
        "evaluation.judge:judge_uses",
        "evaluation.judge:judge_lives",
    ],
    "attacks": ["evaluation.judge:audit"],
    "reports": ["run.synthesize:write_reports"],
}


def peak() -> float:
    """GB that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


class Watch:
    """Seconds of the processor and peak of memory of every stage; stages within others count for themselves alone."""

    def __init__(self) -> None:
        self.stages = {name: {"seconds": 0.0, "GB": 0.0} for name in STAGES}
        self.inside = 0.0

    def patch(self) -> None:
        """Put a stopwatch on every function of STAGES."""
        for stage, functions in STAGES.items():
            for path in functions:
                module, name = path.split(":")
                where = importlib.import_module(f"elsewhere.{module}")
                setattr(where, name, self.timed(stage, getattr(where, name)))

    def timed(self, stage, function):
        """Return the function with a stopwatch."""

        def run(*args, **named):
            before, self.inside = self.inside, 0.0
            start = time.process_time()
            try:
                return function(*args, **named)
            finally:
                took = time.process_time() - start
                self.stages[stage]["seconds"] += took - self.inside
                self.stages[stage]["GB"] = max(self.stages[stage]["GB"], peak())
                self.inside = before + took
                print(f"{stage}: {function.__name__} {took:.1f} s, {peak():.2f} GB", file=sys.stderr, flush=True)

        return run


def whole_job(people: int, places: int, days: int, folder: Path, report: bool) -> dict:
    """The whole job on a simulated town: stages, and all of it."""
    import elsewhere as ew

    town = ew.simulate_town(users=people, locations=places, days=days, rng=np.random.default_rng(1)).traces
    ew.write_traces(town, folder / "people.parquet")
    del town
    watch = Watch()
    watch.patch()
    wall, start = time.perf_counter(), time.process_time()
    made = ew.synthesize(folder / "people.parquet", folder / "out", report=report, workers=1, step=20)
    seconds = time.process_time() - start
    wall = time.perf_counter() - wall
    return {
        "people": people,
        "places": places,
        "days": days,
        "stages": watch.stages,
        "seconds": seconds,
        "wall": wall,
        "GB": peak(),
        "fakes": made.fakes.people,
        "kappa": made.fakes.kappa,
        "tally": dict(made.fakes.tally),
        "fakes per second": made.fakes.people / max(watch.stages["fakes"]["seconds"], 1e-9),
    }


def in_a_process(people: int, places: int, days: int = 1, report: bool = True) -> dict:
    """`whole_job` in a process of its own; the first run of a machine compiles, so a small one goes before."""
    words = [sys.executable, __file__, "--one", str(people), str(places), str(days), str(int(report))]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*words, folder], capture_output=True, text=True, check=False)
    if done.returncode:
        return {"people": people, "places": places, "days": days, "failed": done.stderr.strip().splitlines()[-1:]}
    return json.loads(done.stdout.splitlines()[-1])


def exponents(cells: list[dict]) -> dict[str, float]:
    """Growth of every stage with people: the slope of ln seconds over ln people, over sizes of one map, the largest."""
    out = {}
    done = [cell for cell in cells if "failed" not in cell]
    for places in sorted({cell["places"] for cell in done}):
        of_map = sorted((cell for cell in done if cell["places"] == places), key=lambda cell: cell["people"])
        if len(of_map) < 2:
            continue
        n = np.log([cell["people"] for cell in of_map])
        for stage in [*STAGES, "all"]:
            took = [cell["seconds"] if stage == "all" else cell["stages"][stage]["seconds"] for cell in of_map]
            if min(took) > 0.05:
                out[f"{stage}, {places} places"] = float(np.polyfit(n, np.log(took), 1)[0])
    return out


def table(cells: list[dict]) -> str:
    """The sizes as a table in Markdown."""
    head = ["people x places", *STAGES, "all", "GB", "fakes/s"]
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    for cell in cells:
        size = f"{cell['people']:,} x {cell['places']:,}" + (f" x {cell['days']} days" if cell["days"] > 1 else "")
        if "failed" in cell:
            lines.append(f"{size} | {cell['failed']}")
            continue
        took = [f"{cell['stages'][stage]['seconds']:.1f}" for stage in STAGES]
        lines.append(
            " | ".join([size, *took, f"{cell['seconds']:.0f}", f"{cell['GB']:.1f}", f"{cell['fakes per second']:.0f}"])
        )
    return "\n".join(f"| {line} |" for line in lines)


def least(work, runs: int = 3) -> float:
    """Seconds of the processor of the fastest of some runs."""
    took = []
    for _ in range(runs):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return min(took)


def beside_others(places: int = 400, walks: int = 4096, seeds: int = 1024, people: int = 2000) -> dict[str, float]:
    """What a fake costs here and in plain ways, in milliseconds: assignment by scipy, Viterbi and Markov by numpy."""
    from scipy.optimize import linear_sum_assignment

    import elsewhere as ew
    from elsewhere.run.attempts import learn_days
    from elsewhere.synthesis.walk.pairing import BETA, pair, pairing_kernel, sinkhorn_weights

    town = ew.simulate_town(users=people, locations=places, rng=np.random.default_rng(1)).traces
    rng = np.random.default_rng(2)
    learnt = ew.learn(town, "product", kappa=6, c_min=1, class_draws=1, rng=rng)
    model, goal = learn_days(town, learnt, rng)
    drawn, own, label = model.draw(walks, rng), town.r[:seeds].astype(np.int32), learnt.classes.label
    skeleton = label[own].astype(np.int16)

    def paired() -> None:
        K = pairing_kernel(skeleton, own, drawn, label, BETA, town.R, limit=np.zeros(seeds, dtype=np.int64))
        V = sinkhorn_weights(K, goal(drawn, label))
        pair(K, V, drawn, lambda r, _: _Passed(len(r)), max_tries=3, rng=np.random.default_rng(3))

    def assigned() -> None:
        K = pairing_kernel(skeleton, own, drawn, label, BETA, town.R, limit=np.zeros(seeds, dtype=np.int64))
        linear_sum_assignment(K, maximize=True)

    p, first = learnt.model.table(0, 0), learnt.model.first(0)
    cumulative = np.cumsum(p, axis=1)

    def markov() -> None:
        at = rng.choice(places, walks, p=first / first.sum())
        for _ in range(town.L - 1):
            at = np.minimum((cumulative[at] < rng.random((walks, 1))).sum(axis=1), places - 1)

    log_p = np.log(np.maximum(p, 1e-300))

    def viterbi() -> None:
        score = np.log(np.maximum(first, 1e-300))
        for _ in range(town.L - 1):
            score = (score[:, None] + log_p + np.log(rng.uniform(1, 4, p.shape))).max(axis=0)

    paired()
    model.draw(64, rng)
    return {
        "walk, ms": 1e3 * least(lambda: model.draw(walks, rng)) / walks,
        "first-order Markov in numpy, ms": 1e3 * least(markov) / walks,
        "dense Viterbi in numpy, ms": 1e3 * least(viterbi, 1),
        "pairing, ms a seed": 1e3 * least(paired) / seeds,
        "scipy assignment, ms a seed": 1e3 * least(assigned, 1) / seeds,
    }


class _Passed:
    """A test that lets everything pass."""

    def __init__(self, n: int) -> None:
        self.passed, self.close_to_others = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)


def hot_kernels(places: int = 4000, people: int = 2000) -> dict[str, dict[str, float]]:
    """Hot kernels beside a loop that reads the same bytes once and adds them up: seconds of both."""
    import elsewhere as ew
    from elsewhere._jit import njit
    from elsewhere.synthesis.walk._draw_kernels import draw_walks
    from elsewhere.synthesis.walk._pairing_kernels import fill_kernel
    from elsewhere.synthesis.walk.fit import learn_habits

    @njit
    def stream(words, times):
        total = np.uint64(0)
        for _ in range(times):
            for i in range(len(words)):
                total += words[i]
        return total

    @njit
    def stream_rows(row, step, shape, here):
        total, shapes = 0.0, 0
        for place in here:
            for j in range(row[place], row[place + 1]):
                total += step[j]
                shapes += shape[j]
        return total + shapes

    town = ew.simulate_town(users=people, locations=places, rng=np.random.default_rng(1)).traces
    known = town.visitors() >= 5
    walk = learn_habits(town.r, town.locations, known, m_min=5, rng=np.random.default_rng(2)).tables(
        town.locations, known
    )
    n, L = 2000, town.L
    out, uniform = np.empty((n, L), dtype=np.int32), np.random.default_rng(3).random((n, 2 * L - 1))
    draw_walks(walk, uniform, out)
    row, step, shape = walk.row, walk.step, walk.shape
    if len(walk.steps):  # a small map: every move reads the steps and shapes to all places
        P, steps = len(walk.places), walk.steps[np.ix_(walk.places, walk.places)]
        row, step, shape = np.arange(P + 1) * P, steps.ravel(), np.zeros(P * P, np.uint8)
    here = np.searchsorted(walk.places, out[:, :-1][out[:, 1:] != out[:, :-1]])
    stream_rows(row, step, shape, here[:2])
    stream(np.zeros(8, dtype=np.uint64), 1)
    found = {
        "walk": {
            "seconds": least(lambda: draw_walks(walk, uniform, out)),
            "stream": least(lambda: stream_rows(row, step, shape, here)),
        }
    }
    skeleton = np.random.default_rng(4).integers(0, 12, (256, L)).astype(np.int8)
    classes = np.random.default_rng(5).integers(0, 12, (L, 8192)).astype(np.int8)
    agreed, weights = np.empty(8192, dtype=np.uint8), np.empty((256, 8192), dtype=np.float32)
    slots = np.full(256, L)
    fill_kernel(skeleton, classes, slots, 25.0, agreed, weights)
    words = np.ones(classes.nbytes // 8, dtype=np.uint64)
    found["agreements"] = {
        "seconds": least(lambda: fill_kernel(skeleton, classes, slots, 25.0, agreed, weights)),
        "stream": least(lambda: stream(words, 256)),
    }
    return found


def main() -> None:
    """Measure, print tables, and keep the figures where asked."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--people", type=int, nargs="+", default=[1000, 4000])
    options.add_argument("--places", type=int, nargs="+", default=[400, 4000])
    options.add_argument("--days", type=int, default=1)
    options.add_argument("--no-report", action="store_true")
    options.add_argument("--json", type=Path)
    options.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        people, places, days, report = map(int, given.one[:4])
        print(json.dumps(whole_job(people, places, days, Path(given.one[4]), bool(report))))
        return
    cells = [
        in_a_process(people, places, given.days, not given.no_report)
        for places in given.places
        for people in given.people
    ]
    told = {"cells": cells, "exponents": exponents(cells), "beside": beside_others(), "kernels": hot_kernels()}
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(told, indent=1))
    print(report_of(told))


def report_of(told: dict) -> str:
    """All figures as text."""
    lines = [table(told["cells"]), ""]
    lines += [f"seconds grow as people^{slope:.2f}: {stage}" for stage, slope in told["exponents"].items()]
    lines += [f"{name}: {value:.3f}" for name, value in told["beside"].items()]
    lines += [
        f"{name}: {of['seconds'] / max(of['stream'], 1e-9):.1f} x a loop over the same bytes"
        for name, of in told["kernels"].items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
