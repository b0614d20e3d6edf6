"""Command `similarity`: the two histograms of fig:real-gs-similarity and the numbers behind them."""

import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from elsewhere._version import __version__
from elsewhere.cli.options import Force, Json, Out, Seed, Source, reads
from elsewhere.cli.output import can_draw_blocks, say, stage
from elsewhere.errors import require_whole
from elsewhere.files import check_folder, write_folder
from elsewhere.run.reading import AS_IT_COMES, Reading
from elsewhere.run.summary import counts, opening

if TYPE_CHECKING:
    from elsewhere.profiles.markov import Profiles
    from elsewhere.traces.fixes import Preparation
    from elsewhere.traces.model import Traces

BAR_WIDTH = 22  # two of them fit a terminal of 80 columns


@reads
def similarity(
    source: Source,
    users: Annotated[
        int | None, typer.Option("--users", metavar="N", help="Compare N users drawn at random; by default all.")
    ] = None,
    seed: Seed = 1,
    periods: Annotated[int, typer.Option("--periods", metavar="N", help="Equal parts of the local day.")] = 1,
    missing: Annotated[
        str, typer.Option("--missing", metavar="refuse|skip|gibbs", help="What to do where an instant is missing.")
    ] = "refuse",
    out: Out = None,
    force: Force = False,
    as_json: Json = False,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    Compare all users of a dataset, pair by pair: where they are, and how they live.

    With -o: histograms.png and similarity.json.
    """
    check_out(out, force)
    import numpy as np

    from elsewhere.profiles.markov import fit_profiles
    from elsewhere.traces.read import read_traces

    rng = np.random.default_rng(require_whole("--seed", seed, 0))

    read: list[Preparation] = []
    with stage("reading"):
        traces = read_traces(source, report=read.append, **reading.keywords("paper"))
    if users is not None:
        drawn = rng.choice(traces.U, require_whole("--users", users, 2, traces.U), replace=False)
        traces = traces.of_users(drawn)
    profiles = fit_profiles(traces, periods=periods, missing=missing, rng=rng)
    result, shown, pictures = compare(traces, profiles, {"command": "similarity", "read": counts(read[0])}, out)
    if out is not None:
        write_folder(out, pictures, force=force)
    say(result, shown, as_json=as_json)


def check_out(out: Path | None, force: bool) -> None:
    """Refuse, before any work, an output that could not be written, and figures that could not be drawn."""
    if out is not None:
        check_folder(out, force=force)
        from elsewhere.reports.sheet import new_figure

        new_figure(1, 1)


def compare(
    traces: "Traces", profiles: "Profiles", provenance: dict[str, Any], out: Path | None
) -> tuple[dict[str, Any], list[Any], dict[str, bytes]]:
    """Similarity of all pairs, as a result, as tables for people, and as the files to write into `out`, if given."""
    from elsewhere.reports.figures import similarity_histograms
    from elsewhere.reports.sheet import png
    from elsewhere.reports.similarity import pair_similarity

    with stage("comparing all pairs"):
        pairs = pair_similarity(profiles)
    size = {"rows": len(traces), "instants": traces.L, "places": traces.R}
    result = {**provenance, "version": __version__, **size, **pairs.to_dict()}
    files = {}
    if out is not None:
        files["histograms.png"] = png(similarity_histograms(pairs.geographic, pairs.semantic))
        files["similarity.json"] = json.dumps(result, indent=2, allow_nan=False).encode()
    written = [f"wrote {out / name}" for name in files if out is not None]
    return result, [*(opening(result["read"]) if "read" in result else []), *_tables(result), *written], files


def _tables(result: dict[str, Any]) -> list[Table]:
    kinds = ("geographic", "semantic")
    block = "█" if can_draw_blocks() else "#"
    title = f"Share of the {result['pairs']:,} pairs of {result['users']:,} users, by similarity"
    histogram = Table(title=title, box=SIMPLE_HEAD)
    histogram.add_column("similarity", no_wrap=True)
    for kind in kinds:
        histogram.add_column(kind, no_wrap=True)
    tallest = max(max(result[kind]["histogram"]) for kind in kinds)
    edges = result["bin_edges"]
    for i, (low, high) in enumerate(pairwise(edges)):
        bars = [
            f"{block * round(BAR_WIDTH * share / tallest):<{BAR_WIDTH}} {share:6.1%}"
            for share in (result[kind]["histogram"][i] for kind in kinds)
        ]
        histogram.add_row(f"{low:.2f}-{high:.2f}", *bars)
    numbers = Table(title="Mean and quantiles", box=SIMPLE_HEAD)
    for column in ("", "mean", *(f"{q} %" for q in result["geographic"]["quantiles"])):
        numbers.add_column(column, justify="right" if column else "left")
    for kind in kinds:
        values = (result[kind]["mean"], *result[kind]["quantiles"].values())
        numbers.add_row(kind, *(f"{x:.3f}" for x in values))
    return [histogram, numbers]
