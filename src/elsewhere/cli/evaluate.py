"""Command `evaluate`: the publishing scenario, on our fakes or any other tool's."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from elsewhere.cli.options import AS_IT_COMES, AS_USUAL, Judging, Reading, judges, reads
from elsewhere.cli.output import number, say, stage
from elsewhere.cli.sources import Links, Made, Real, read_real, with_fakes, write_results
from elsewhere.errors import require_whole
from elsewhere.files import check_folder


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
    places. With -o: evaluation.json and report.html, which shows aggregates and fakes only.

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
    from elsewhere.evaluation.publishing.scenario import evaluate_publishing

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
    told = {"command": "evaluate", **result.to_dict(), "notes": [*sources.notes, *result.notes]}
    shown = [*tables(result), *told["notes"]]
    if out is not None:
        shown += write_results(out, "evaluation.json", told, [result], sources)
    say(told, shown, as_json=judging.as_json)


def tables(result: Any) -> list[Any]:
    """The figures for people: one line each, beside what another real day and the baselines reach."""
    sizes = result.sizes
    opening = (
        f"{sizes['datasets']} datasets of {sizes['dataset_size']} fakes against {sizes['train']} real traces of "
        f"{sizes['instants']} instants, {sizes['places']} places"
    )
    kept = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("measure", "real", "testing", "fakes", "std", "uniform", "other"):
        kept.add_column(name, no_wrap=name != "measure")
    for row in result.table():
        other = [f"{name} {number(row[name])}" for name in ("single", "random") if row.get(name) is not None]
        figures = (number(row.get(name)) for name in ("train", "testing", "fakes", "std", "uniform"))
        kept.add_row(f"{row['measure']} ({row['unit']})", *figures, *(other or [""]))
    return [opening, kept]
