"""
The tables of docs/results.md on People Flow Tokyo and StudentLife, measured anew and printed as Markdown.

    python bench/results.py                      all of it; docs/privacy-overhead.png is drawn anew
    python bench/results.py --only paper         one column
    python bench/results.py --per-seed 2         quicker and coarser

The same attacks and the same measures for the original tool's fakes, for ours and for real people. Methods have their
defaults. Real data stay where they are (../shared/data); what is printed are aggregates. PF: Nightley Inc.; Shibasaki &
Sekimoto Laboratory, University of Tokyo; Micro Geo Data Forum; People Flow project; CSIS, University of Tokyo.
The table of lives is made by bench/life.py.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from referee import TOP, tm_emd, tp_tv

import elsewhere as ew
from elsewhere.evaluation.lbs import OURS, judge_service, two_days
from elsewhere.reports.charts import location_privacy, png

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
KAPPAS = (50, 100, 150, 200)
# what an audit finds, goal, digits; the goals are those the project set itself before it was measured
ATTACKS = {
    "A2": ("A2 re-identification, share of fakes", 0.0112, 4),
    "A3": ("A3 membership by likelihood, AUC", None, 3),
    "A4": ("A4 move timing, top 1", 0.01, 4),
    "A5": ("A5 linkage, strongest attack, top 1", None, 3),
    "A15": ("A15 told from real, AUC", 0.60, 3),
}
UTILITY = (("TP-TV", 0.43, 3), ("TP-TV, top 50", None, 3), ("TM-EMD north", None, 3), ("TM-EMD east", None, 3))
MEASURES = (*ATTACKS.values(), *UTILITY)
REFEREE = (MEASURES[0][0], *(name for name, _, _ in UTILITY))
# result files of PPMTF/PPMTF, commit 66ba754, quoted as published: another referee's membership figure is no A3
PUBLISHED = {
    "SGD, as published": dict(zip(REFEREE, (0.0010, 0.4573, 0.1398, 0.619, 0.662), strict=True)),
    "PPMTF, as published": dict(zip(REFEREE, (0.0160, 0.4274, 0.1286, 1.833, 1.833), strict=True)),
}
Column = dict[str, float | None]


class Tokyo:
    """People Flow Tokyo: traces of 1,000 people, the map, and the original tool's fakes of the first 500."""

    def __init__(self) -> None:
        import pandas as pd

        table = pd.read_csv(DATA / "pf_tokyo" / "pf_tokyo_traces.csv.gz", usecols=["uid", "slot", "loc"])
        r = table.sort_values(["uid", "slot"])["loc"].to_numpy().reshape(1000, 30)
        places = pd.read_csv(DATA / "pf_tokyo" / "pf_tokyo_locations.csv")
        where = ew.Locations(lat=places["lat"].to_numpy(), lon=places["lon"].to_numpy())
        self.people = ew.Traces(r, where, start="09:00", tz="Asia/Tokyo")
        self.north, self.east = places["y_id"].to_numpy(), places["x_id"].to_numpy()

    def of(self, first: int, last: int) -> ew.Traces:
        """People `first` to `last`, both included."""
        return self.people.select(np.arange(first, last + 1))

    def original(self, kappa: int) -> Any:
        """(5000, 30) fakes of the original tool, ten per seed, par_l = 1."""
        import pandas as pd

        made = pd.read_parquet(
            DATA / "pf_tokyo" / "sglt_reference_outputs.parquet",
            filters=[("clusters", "==", kappa), ("par_l", "==", 1)],
        )
        made = made.sort_values(["user", "trace_no", "time_period"], kind="stable")
        return made["poi_index"].to_numpy().astype(np.int64).reshape(5000, 30)


def figure(finding: dict[str, Any]) -> float:
    """The figure of an attack: an AUC either way round, or the share named, also where it found more otherwise."""
    if "auc" in finding:
        value = float(finding["auc"][finding["strongest"]]["value"])
        return max(value, 1 - value)
    return float(finding[finding["strongest"]]["value"] if "links_found" in finding else finding["main"])


def measured(tokyo: Tokyo, holdout: ew.Traces, fakes: Any, owner: Any, attacks: Any = tuple(ATTACKS)) -> Column:
    """The column of one generator: attacks on its fakes of people 0-499, and where the fakes are."""
    seeds = tokyo.of(0, 499)
    audit = ew.audit(seeds, holdout, fakes, owner, attacks=list(attacks), rng=np.random.default_rng(1)).to_dict()
    out: Column = {ATTACKS[attack][0]: figure(audit[attack]) for attack in attacks}
    # datasets of 500 for every generator, whatever the seeds behind them: the figure depends on the size
    dataset = np.arange(len(fakes)) // max(1, len(fakes) // 500)
    out["TP-TV"] = tp_tv(fakes, holdout, seed_index=dataset)
    out["TP-TV, top 50"] = tp_tv(fakes, holdout, seed_index=dataset, top=TOP)
    for name, axis in (("TM-EMD north", tokyo.north), ("TM-EMD east", tokyo.east)):
        out[name] = tm_emd(fakes, holdout, axis, seed_index=dataset)
    return out


def ours(tokyo: Tokyo, holdout: ew.Traces, per_seed: int, **how: Any) -> Column:
    """Our column: fakes of people 0-499 by a method with its defaults."""
    made = ew.generate_fakes(tokyo.of(0, 499), per_seed=per_seed, rng=np.random.default_rng(7), workers=2, **how)
    return measured(tokyo, holdout, made.r, made.seed)


def columns(tokyo: Tokyo, per_seed: int) -> dict[str, Callable[[], Column]]:
    """Name of a column -> how to measure it; people 500-999 are the strangers, and of `life` the alternates."""
    far, own = tokyo.of(500, 999), np.repeat(np.arange(500), 10)
    out: dict[str, Callable[[], Column]] = {
        f"SGLT, κ {k}": (lambda k=k: measured(tokyo, far, tokyo.original(k), own))  # type: ignore[misc]
        for k in KAPPAS
    }
    out |= {name: (lambda row=row: dict(row)) for name, row in PUBLISHED.items()}  # type: ignore[misc]
    return out | {
        "paper": lambda: ours(tokyo, far, per_seed, method="paper"),
        "paper, κ 50": lambda: ours(tokyo, far, per_seed, method="paper", kappa=50),
        "life": lambda: ours(tokyo, far, per_seed, alternates=far),
        "real seeds": lambda: measured(tokyo, far, tokyo.of(0, 499).r, None, ["A15"]),
    }


def shown(value: float | None, digits: int) -> str:
    """A figure of the tables, without its leading zero."""
    if value is None:
        return "-"
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 and not text.startswith(("1", "-1")) else text


def as_table(found: dict[str, Column]) -> list[str]:
    """Markdown: a line per measure, a column per generator; a figure that reaches its goal is bold."""
    lines = [f"| measure | goal | {' | '.join(found)} |", f"|---|---|{'---|' * len(found)}"]
    for name, goal, digits in MEASURES:
        cells = []
        for column in found.values():
            value = column.get(name)
            good = goal is not None and value is not None and value <= goal
            cells.append(f"**{shown(value, digits)}**" if good else shown(value, digits))
        bound = "" if goal is None else f"≤ {shown(goal, digits)}"
        lines.append(f"| {name} | {bound} | {' | '.join(cells)} |")
    return lines


def service() -> tuple[list[str], bytes]:
    """The service scenario on StudentLife: table and figure."""
    source = DATA / "studentlife" / "paperlike_30users_2days_72slots.csv.gz"
    train, test = two_days(ew.read_visits(source, places="merge").traces())
    made = ew.generate_fakes(train, method="paper", per_seed=20, rng=np.random.default_rng(1), workers=2)
    assert made.learnt is not None
    owner, rng = train.user[made.seed], np.random.default_rng(2)
    result = judge_service(train, test, made.r, owner, classes=made.learnt.classes, rng=rng)
    lines = [
        f"{train.U} users, {train.L} slots, {train.R} places; {len(made)} fakes, {made.kappa} classes, acceptance "
        f"{made.tally['passed'] / made.tally['tested']:.2f}.",
        "",
        "| decoys | m | places sent | adversary: aggregate | the user | the pool | m/(m+1) |",
        "|---|---|---|---|---|---|---|",
    ]
    for g, name in enumerate(result.generators):
        for i, m in enumerate(result.n_fakes):
            cells = []
            for adversary in ("aggregate", "user", "pool"):
                if adversary == "pool" and name != OURS:
                    cells.append("-")  # the pool says nothing about decoys that are not of it
                    continue
                figure = result.figure(name, m, adversary)
                low, high = figure["interval"]
                cells.append(f"{figure['median']:.2f} [{low:.2f}, {high:.2f}]")
            sent = float(np.median(result.overhead[:, g, i, 0]))
            lines.append(f"| {name} | {m} | {sent:.1f} | {' | '.join(cells)} | {m / (m + 1):.2f} |")
    return lines, png(location_privacy(result.to_dict()))


def main() -> None:
    """Measure what the command line asks for, and print it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", help="one column of the table, or `service`")
    options.add_argument("--per-seed", type=int, default=5)
    given = options.parse_args()
    if not DATA.exists():
        sys.exit(f"{DATA} is not here")
    warnings.simplefilter("ignore")
    if given.only != "service":
        every = columns(Tokyo(), given.per_seed)
        names = [given.only] if given.only else list(every)
        print("\n".join(as_table({name: every[name]() for name in names})), flush=True)
    if given.only in (None, "service"):
        lines, picture = service()
        print("\n" + "\n".join(lines))
        if given.only is None:
            (ROOT / "docs" / "privacy-overhead.png").write_bytes(picture)


if __name__ == "__main__":
    main()
