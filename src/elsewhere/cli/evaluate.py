"""Command `evaluate`: the publishing scenario, on our fakes or any other tool's."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from elsewhere.cli.options import AS_USUAL, Judging, judges, reads
from elsewhere.cli.output import number, say, stage
from elsewhere.cli.sources import Links, Made, Real, Sources, read_real, with_fakes, write_results
from elsewhere.errors import require_whole
from elsewhere.files import check_folder
from elsewhere.run.reading import AS_IT_COMES, Reading

THEMSELVES = "these fakes are days of the real traces: every figure is as good as it can be, and nobody is protected."


@reads
@judges
def evaluate(
    real: Real,
    fakes: Made,
    test: Annotated[
        Path | None, typer.Option("--test", metavar="FILE", help="Other real traces, e.g. the second day: the drift.")
    ] = None,
    links: Links = None,
    datasets: Annotated[int, typer.Option("--datasets", metavar="N", help="Fake datasets to compare.")] = 10,
    periods: Annotated[int, typer.Option("--periods", metavar="N", help="Equal parts of the local day.")] = 1,
    judging: Judging = AS_USUAL,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    What fakes keep of real traces: the tables and figures of the paper's publishing scenario, and further ones.

    Real traces make the map; fakes with coordinates are put on it, fakes with numbers of places must number the same
    places. Where people and fakes have several days each (rows of one id), their lives are compared too. With -o:
    evaluation.json and report.html, which shows aggregates and fakes only.

    Example: elsewhere evaluate --real real.csv --test second_day.csv --fakes out/fakes -o out/evaluation
    """
    out = judging.out
    if out is not None:
        check_folder(out, force=judging.force)
    require_whole("--datasets", datasets, 1)
    require_whole("--periods", periods, 1, 1440)
    rng = judging.rng()
    sources = read_real(real, reading, fakes)
    sources = with_fakes(sources, fakes, links)
    drift, sources = sources.further(test, "--test")
    from elsewhere.evaluation.lives import judge_lives, no_lives
    from elsewhere.evaluation.publishing.scenario import evaluate_publishing
    from elsewhere.evaluation.uses import judge_uses

    with stage("comparing"):
        result = evaluate_publishing(
            sources.real,
            drift,
            sources.fakes,
            seed_index=sources.seed_index,
            datasets=datasets,
            periods=periods,
            rng=rng,
        )
        uses = judge_uses(sources.real, sources.fakes, rng=rng)
        assert sources.fakes is not None  # noqa: S101 - just read
        why = no_lives(sources.real, sources.fakes)
        lives = None if why else judge_lives(sources.real, sources.fakes, rng=rng)
    copied = copies(sources)
    notes = [*sources.notes, *result.notes, *uses.notes, *([why] if lives is None else lives.notes)]
    if 0 < copied < 1:
        notes.append(f"{copied:.1%} of the fakes equal somebody's real day, slot by slot: see `elsewhere audit`.")
    verdict = in_words(uses) if copied < 1 else THEMSELVES
    told = {
        "command": "evaluate",
        **result.to_dict(),
        "uses": uses.to_dict(),
        "lives": None if lives is None else lives.to_dict(),
        "verdict": verdict,
        "notes": notes,
    }
    opening, *figures = tables(result)
    shown = [opening, *notes, *figures, *(uses.in_words() if copied < 1 else ())]
    judged: list[Any] = [uses, result]
    if lives is not None:
        shown += ["lives over days:", *lives.in_words()]
        judged.append(lives)
    if out is not None:
        shown += write_results(out, "evaluation.json", told, judged, sources)
    shown.append(verdict)
    say(told, shown, as_json=judging.as_json)


def copies(sources: Sources) -> float:
    """Share of the fakes that equal, slot by slot, a real day; days at one place count only if all fakes equal one."""
    import numpy as np

    from elsewhere.evaluation.attacks.copies import verbatim

    assert sources.fakes is not None  # noqa: S101 - read before
    real, fakes = (np.asarray(t.r, dtype=np.int64) for t in (sources.real, sources.fakes))
    days = {row.tobytes() for row in real}
    return 1.0 if all(row.tobytes() in days for row in fakes) else float(verbatim(fakes, real).mean())


def in_words(uses: Any) -> str:
    """What the fakes are good for, in one sentence."""
    found: dict[str, list[str]] = {}
    for use in uses.uses:
        found.setdefault(use.verdict, []).append((use.title[:1].lower() + use.title[1:]).replace(",", ""))
    said = {"good": "good for", "rough": "rough for", "not for this": "not for", "cannot say": "not known for"}
    parts = [f"{words} {', '.join(found[verdict])}" for verdict, words in said.items() if verdict in found]
    return f"these fakes are {'; '.join(parts)}."


def tables(result: Any) -> list[Any]:
    """The figures for people: what differs, beside what other real days give; then an average day in numbers."""
    sizes, rows = result.sizes, result.table()
    many = sizes["datasets"] > 1
    opening = (
        f"{sizes['dataset_size']} fakes{' at a time, ' + str(sizes['datasets']) + ' times,' if many else ''} beside "
        f"{sizes['train']} real days of {sizes['users']} people; {sizes['instants']} slots a day, "
        f"{sizes['places']} places"
    )
    another = sizes["test"] > 0
    kept = Table(box=SIMPLE_HEAD, pad_edge=False)
    days = Table(box=SIMPLE_HEAD, pad_edge=False)
    for table, names in (
        (kept, ("fakes and real days", "fakes", *(["other real days"] * another), "all places alike", "best")),
        (days, ("a day, on average", "fakes", *(["other real days"] * another), "real")),
    ):
        for i, name in enumerate(names):
            table.add_column(name, no_wrap=i > 0 and table is days, justify="left" if i == 0 else "right")
    for row in rows:
        test = [number(row.get("testing"))] * another
        if row["best"] is None:
            days.add_row(row["words"], number(row["fakes"]), *test, number(row.get("train")))
        else:
            spread = f" ± {number(row['std'], 1)}" if many and row["std"] else ""
            kept.add_row(
                row["words"], f"{number(row['fakes'])}{spread}", *test, number(row.get("uniform")), number(row["best"])
            )
    return [opening, kept, days]
