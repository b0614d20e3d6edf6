"""Command `plan`: what each preset would promise with these people, and about how useful it would be."""

from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from elsewhere.cli.making import Eps0, K
from elsewhere.cli.options import Json, Source, reads, typed
from elsewhere.cli.output import say, stage
from elsewhere.run.reading import AS_IT_COMES, Reading
from elsewhere.run.summary import counts, opening


@reads
def plan(
    source: Source,
    eps0: Eps0 = 0.5,
    eps: Annotated[float, typer.Option("--eps", metavar="X", help="Of the private preset.")] = 4.0,
    delta: Annotated[float, typer.Option("--delta", metavar="X", help="Of the private preset.")] = 1e-6,
    k: K = None,
    as_json: Json = False,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    Say what each preset would promise with these people, and about how useful its fakes would be.

    Nothing of the input is used but the number of people with a usable day, so planning costs nobody any privacy.

    Example: elsewhere plan traces.csv --eps 2
    """
    from elsewhere.run.plan import plan as planned
    from elsewhere.run.reading import whole_rows
    from elsewhere.traces.fixes import Preparation
    from elsewhere.traces.read import read_traces

    planned(0, eps0=0.5 if eps0 is None else eps0, eps=eps, delta=delta, k=k or None)  # refused before a file is read
    reports: list[Preparation] = []
    with stage("reading"):
        traces = read_traces(source, report=reports.append, **reading.keywords())
    people = whole_rows(traces).U
    found = planned(people, eps0=0.5 if eps0 is None else eps0, eps=eps, delta=delta, k=k or None)
    shown = Table("preset", "protects", "eps", "AUC at most", "fakes", "people needed", box=SIMPLE_HEAD)
    for each in found:
        c = each.certificate
        promised = ("-", "-") if c.eps is None else (f"{c.eps:g}", f"{c.auc:.3f}")
        fakes = "one a seed" if c.eps is None else c.fakes_covered
        shown.add_row(each.preset, c.protects, *promised, fakes, f"{each.people_needed:,}")
    known = counts(reports[0])
    told = {
        "command": "plan",
        "people": people,
        "presets": {each.preset: each.to_dict() for each in found},
        "read": known,
    }
    lines = [f"{each.preset}: {'' if each.enough else 'too few people; '}{each.useful}" for each in found]
    given = " ".join(["elsewhere synthesize INPUT -o DIR", *typed(reading)])
    lines.append(f"to make them: {given} --preset {'|'.join(each.preset for each in found if each.enough)}")
    say(told, [*opening(known), f"{people:,} people with a usable day", shown, *lines], as_json=as_json)
