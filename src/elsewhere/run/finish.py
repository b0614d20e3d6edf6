"""
How `synthesize` and `demo` end: a summary, the judge's results, a report to share and a report to keep.

DIR holds what may leave the house, and nothing else: whoever zips it publishes fakes and aggregates. What only the
owner may see (links, real days on a map, the results in full) goes into another folder, DIR-private, never into DIR.
"""

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elsewhere.errors import InvalidParameter, counted
from elsewhere.files import check_folder, read_index, read_regular, write_files

if TYPE_CHECKING:
    from elsewhere.data.slots import Traces
    from elsewhere.data.visits import Ints
    from elsewhere.evaluation.judge import Judgement
    from elsewhere.pool import Pool
    from elsewhere.run.fakes import Fakes
    from elsewhere.traces.fixes import Preparation


def reading_facts(read: "Preparation") -> dict[str, Any]:
    """Return what became of an input, without its name: a result may travel further than the file."""
    return {field: value for field, value in read.to_dict().items() if field != "name"}


def describe_reading(read: dict[str, Any]) -> list[str]:
    """Return the `reading_facts` in words: what was read, dropped and repaired, and what should be known about it."""
    content = f"read {counted(read['rows'], 'row')}: {counted(read['users'], 'user')}, {counted(read['days'], 'day')}"
    content += f"; {read['users_usable']:,} of {read['users'] + read['users_dropped']:,} people have a usable day"
    losses = (sum(read["dropped"].values()), "row"), (read["days_dropped"], "day"), (read["users_dropped"], "user")
    return [f"{content}; dropped {', '.join(counted(*each) for each in losses)}", *repairs(read), *read["notes"]]


def describe_usable_days(read: Mapping[str, Any]) -> str:
    """Say how many days are known from end to end: no other can be used."""
    days, usable = read["days"] + read["days_dropped"], read["days_usable"]
    left_out = ": the others have gaps and will be left out" if usable < days else ""
    return f"{usable:,} of {days:,} days can be used{left_out}"


def repairs(read: dict[str, Any]) -> list[str]:
    """Return how many rows were dropped or repaired, one line per reason."""
    from elsewhere.reports.page import REASONS

    return [
        f"{did}: {counted(n, 'row')}, {REASONS.get(why, why)}"
        for did in ("dropped", "fixed")
        for why, n in read[did].items()
    ]


def summary(fakes: "Fakes", traces: "Traces") -> dict[str, Any]:
    """Return acceptance by rule, achieved k, and how fakes move beside real traces; totals only (E63)."""
    import numpy as np

    per_trace = {}
    for whose, r in (("real", traces.r), ("fakes", fakes.r)):
        # changes along a day are moves; along its sorted places they tell how many it has
        changes = [np.count_nonzero(np.diff(each, axis=1), axis=1).mean() for each in (r, np.sort(r, axis=1))]
        per_trace[whose] = {"moves": round(float(changes[0]), 2), "places": round(float(1 + changes[1]), 2)}
    figures: dict[str, Any] = {
        "preset": fakes.preset.name,
        "users": traces.U,
        "seeds": traces.U if fakes.seed_rows is None else len(np.unique(traces.user[fakes.seed_rows])),
        "rows": len(traces),
        "kappa": fakes.kappa,
        "fakes": fakes.people,
        "days": len(fakes),
        "attempts": fakes.tally["tested"],
        "passed": fakes.tally["passed"],
        "rejected_by": {n: c for n, c in fakes.tally.items() if n not in ("tested", "passed") and c},
        "per_trace": per_trace,
        "notes": list(fakes.notes),
    }
    real, fake = (per_trace[whose]["moves"] for whose in ("real", "fakes"))
    if fake < real / 2:
        allowed = fakes.learnt is not None and fakes.learnt.model.feasible is not None
        way = "allow more moves (`feasible`)" if allowed else "try a larger `kappa`"
        figures["notes"].append(
            f"fakes move {fake:.1f} times a day, people {real:.1f}: less than half as often. Do not use them for "
            f"trips, or {way}."
        )
    figures["certificate"] = fakes.certificate.to_dict()
    if fakes.covered:
        idle = ("kappa", "seeds") if fakes.preset.name == "private" else ()
        for name in ("attempts", "passed", "rejected_by", *idle):  # nothing is tried twice
            del figures[name]
    else:
        figures["k"] = fakes.preset.k
    return figures


def judgement_facts(judgement: "Judgement") -> dict[str, Any]:
    """Return what the judges say, for --json: `uses`, `lives`, `publish` (level, words, because), `judgement`."""
    from elsewhere.reports.claims import advice

    findings = judgement.to_dict()
    return {
        "uses": findings["uses"],
        "lives": findings["lives"],
        "publish": advice(findings["audit"], judgement.run, findings["uses"])._asdict(),
        "judgement": findings,
    }


NOT_ATTACKED = (
    "nothing was attacked: whether these fakes reveal anything about anybody is not known until `elsewhere audit` runs."
)
REPORT, LINKS, JUDGEMENT = "report.html", "links.csv", "judgement.json"
PRIVATE = (LINKS, JUDGEMENT, REPORT)


def private_folder(out: Path, private: Path | None, *, force: bool) -> Path:
    """Return the folder of the owner, checked before any work; never inside the one that may be published."""
    whole = out.absolute()
    if private is None and not whole.name:
        raise InvalidParameter(f"`private` must be given where the output is {out}.", parameter="private")
    folder = whole.with_name(f"{whole.name}-private") if private is None else private
    if whole.resolve() in (folder.resolve(), *folder.resolve().parents):
        raise InvalidParameter(
            "`private` must not be inside the output, which is for publishing.", code="E_OUTPUT", parameter="private"
        )
    check_folder(folder, force=force)
    return folder


def keep_links(traces: "Traces", fakes: "Fakes", folder: Path) -> None:
    """Write who was made from whom beside fakes not published yet, by their numbers: `publish` knows no user."""
    if not (fakes.seed >= 0).any():
        return
    from elsewhere.run.publish import links_file

    write_files(folder, {LINKS: links_file(range(len(fakes)), traces, fakes.seed)})


def write_links(traces: "Traces", fakes: "Fakes", pool: "Pool", rows: "Ints", private: Path) -> list[str]:
    """Write who was made from whom, for the owner, without which no later audit could tell; return the file names."""
    if not (fakes.seed >= 0).any():
        return []
    from elsewhere.run.publish import links_file

    write_files(private, {LINKS: links_file(pool.traces, traces, fakes.seed[rows])})
    return [LINKS]


def earlier_results(folder: Path) -> set[str]:
    """
    Return the files of an earlier run that this one makes obsolete: the pool's, or the owner's beside the links.

    A report or judgement is ours by what stands in it; anything else of such a name is somebody's own.
    """
    from elsewhere.pool import earlier_files

    names = earlier_files(folder)
    if not (folder / LINKS).exists():
        return names
    with suppress(OSError):
        if b'class="edition' in read_regular(folder / REPORT, 1 << 28):
            names.add(REPORT)
    with suppress(OSError, ValueError):
        if {"uses", "publishing", "audit", "notes"} <= set(read_index(folder / JUDGEMENT, 1 << 28)):
            names.add(JUDGEMENT)
    return names


def warn_of_other_files(folder: Path, names: Iterable[str], files: Iterable[str]) -> None:
    """Warn of files with `names` that we use, which this run has not written (`files`): they are left unchanged."""
    for name in sorted(set(names) - set(files)):
        if (folder / name).exists():
            warnings.warn(f"{folder / name} is not of this run, and was left unchanged.", stacklevel=2)


def write_reports(
    judgement: "Judgement",
    traces: "Traces",
    fakes: "Fakes",
    pool: "Pool",
    out: Path,
    private: Path,
    read: Sequence[str] = (),
) -> tuple[list[str], list[str]]:
    """
    Write the shareable report into DIR, judgement and report into the private folder; return the names of both.

    `read` says what became of the input, rows dropped and all, for the owner. Where a theorem covers the fakes there is
    no shareable report: it would be computed from real people, and the theorem does not cover it.
    """
    from elsewhere.reports.page import report

    write_files(private, {JUDGEMENT: (json.dumps(judgement.to_dict(), indent=1, allow_nan=False) + "\n").encode()})
    classes = None if fakes.learnt is None else fakes.learnt.classes
    facts: dict[str, Any] = {**judgement.run, "notes": [*judgement.run["notes"], *judgement.notes]}
    report(
        judgement.results,
        private / REPORT,
        edition="owner",
        fakes=fakes,
        real=traces,
        classes=classes,
        run={**facts, "notes": [*read, *facts["notes"]]},
    )
    if fakes.covered:
        return [], [JUDGEMENT, REPORT]
    # without the classes: whoever holds them links fakes to seeds better (A5)
    report(judgement.results, out / REPORT, edition="shareable", fakes=pool, run=facts)
    return [REPORT], [JUDGEMENT, REPORT]
