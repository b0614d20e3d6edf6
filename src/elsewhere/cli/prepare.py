"""Command `prepare`: from raw fixes to traces on slots and places, with a page that tells what became of the input."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from elsewhere._version import __version__
from elsewhere.cli.options import Force, Json, Source, reads
from elsewhere.cli.output import say, stage
from elsewhere.files import check_folder, whole_folder
from elsewhere.run.reading import AS_IT_COMES, Reading
from elsewhere.run.summary import counts, repairs


@reads
def prepare(
    source: Source,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Private folder.", show_default=False)],
    force: Force = False,
    as_json: Json = False,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    Cut raw fixes into slots and places, and show how the input was understood: prepare.html.

    Everything in DIR is about real people and stays with their owner. DIR is an INPUT for all other commands.
    """
    check_folder(out, force=force)
    from elsewhere.reports.preparation import preparation_page
    from elsewhere.reports.shell import write
    from elsewhere.traces.fixes import Preparation
    from elsewhere.traces.kept import keep_traces
    from elsewhere.traces.read import read_traces

    told: list[Preparation] = []
    with stage("reading"):
        traces = read_traces(source, report=told.append, **reading.keywords())
    with stage("writing"), whole_folder(out, force=force) as new:
        written = keep_traces(traces, told[0], new)
        write(new / "prepare.html", preparation_page(traces, told[0]))
    made = counts(told[0])
    result: dict[str, Any] = {
        "command": "prepare",
        "version": __version__,
        **made,
        "files": [*written, "prepare.html"],
    }
    say(
        result,
        [*_tables(made), f"wrote {len(written) + 1} files into {out}: private, open prepare.html"],
        as_json=as_json,
    )


def _tables(read: dict[str, Any]) -> list[Any]:
    what = Table("", "kept", "dropped", box=SIMPLE_HEAD)
    what.add_row("rows", f"{read['rows'] - sum(read['dropped'].values()):,}", f"{sum(read['dropped'].values()):,}")
    what.add_row("users", f"{read['users']:,}", f"{read['users_dropped']:,}")
    what.add_row("days", f"{read['days']:,}", f"{read['days_dropped']:,}")
    slots = read["slots_observed"] + read["slots_held"] + read["slots_missing"]
    shares = ", ".join(
        f"{read[name] / slots:.1%} {word}"
        for name, word in (("slots_observed", "observed"), ("slots_held", "filled"), ("slots_missing", "missing"))
    )
    usable = f"usable: {read['users_usable']:,} people have a day that is known from end to end"
    places = f"places: {read['places']:,}"
    if read["places"] < read["places_found"]:
        places += f", joined from the {read['places_found']:,} that were found"
    shown = [what, usable, f"slots: {shares}", places]
    return [*shown, *repairs(read), *read["notes"]]
