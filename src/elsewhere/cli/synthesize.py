"""Commands `synthesize`, the whole job from a file of real traces to fakes and two reports, and `plan`, before it."""

from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from elsewhere.cli.options import (
    BY_DEFAULT,
    PRIVACY,
    Dask,
    Folder,
    Force,
    Formats,
    IKnow,
    Json,
    Making,
    OutAs,
    PerSeed,
    Private,
    Report,
    Source,
    Workers,
    cluster_at,
    kappa_of,
    makes,
    reads,
    typed,
)
from elsewhere.cli.output import bars, closing, say, stage, tables
from elsewhere.errors import counted
from elsewhere.run.finish import LINKS, describe_reading, describe_usable_days, reading_facts
from elsewhere.run.presets import AS_IT_COMES, PRESETS, PUBLIC_GAP, Reading


@reads
@makes
def synthesize(
    source: Source,
    out: Folder,
    per_seed: PerSeed = 1,
    also: Formats = None,
    out_as: OutAs = None,
    workers: Workers = 2,
    dask: Dask = None,
    i_know: IKnow = False,
    report: Report = True,
    private: Private = None,
    holdout: Annotated[
        float,
        typer.Option(
            "--holdout",
            metavar="SHARE",
            help="Share of the people of whom no fake is made, to compare the attacks with; at most .5.",
            rich_help_panel=PRIVACY,
        ),
    ] = 0.0,
    force: Force = False,
    as_json: Json = False,
    making: Making = BY_DEFAULT,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    Do the whole job: read a file of real traces, make fakes, test and attack them, and write fakes and reports.

    DIR is for publishing: fakes.csv and fakes.parquet in the columns of the input, the pool (pool.parquet,
    places.parquet), manifest.json and report.html, which shows aggregates and fakes only. What only you may see goes
    into DIR-private: links.csv (who was made from whom), your own report.html and judgement.json. Both folders appear
    when they are complete. If the run is stopped, the same command resumes it: what is done is kept in DIR-unfinished,
    which is private.

    Example: elsewhere synthesize traces.csv -o out/fakes
    """
    from elsewhere.run.synthesize import STAGES
    from elsewhere.run.synthesize import synthesize as whole_job

    with cluster_at(dask) as executor, bars(STAGES) as progress:
        result = whole_job(
            source,
            out,
            preset=making.check(),
            per_seed=per_seed,
            n=making.number,
            kappa=kappa_of(making.kappa),
            feasible=making.feasible,
            missing=making.missing,  # type: ignore[arg-type]  # checked
            also=also or (),
            out_as=out_as,
            report=report,
            private=private,
            holdout=holdout,
            force=force,
            laboratory=i_know,
            rng=making.rng(),
            executor=executor,
            workers=workers,
            progress=progress,
            reading=reading,
        )
    facts = result.to_dict()
    lines = [*describe_reading(facts["read"]), *tables(facts)]
    lines += [] if result.judgement is None else closing(result.judgement)
    lines += [
        *(
            [f"wrote {', '.join(result.private_files)} into {result.private}: for you alone"]
            if result.private_files
            else []
        ),
        f"wrote {len(result.files)} files into {out}",
    ]
    if "private" in facts:
        lines.append(f"no theorem covers these fakes; elsewhere plan {source} says what presets with one would promise")
    if result.judgement is not None:
        lines.append(f"{facts['publish']['words']}.")
    else:
        links = f" --links {result.private / LINKS}" if LINKS in result.private_files else ""
        lines.append(
            "nothing was attacked: whether these fakes reveal anything about anybody is not known. To attack them: "
            f"elsewhere audit --real {source} --fakes {out}{links}"
        )
    say(facts, lines, as_json=as_json)


def _too_few(each: Any, people: int, gap: str | None) -> str:
    """Return what is said of a preset that would refuse, and the `gap` that would leave it enough people."""
    sentence: str = each.useful
    if each.preset != "private":
        sentence = f"refuses: it needs {each.people_needed:,} people; with a usable day there are {people:,}."
    if gap is None:
        return sentence
    return (
        f"{sentence} With `max_gap={gap}` there would be enough; it is yours to choose, not for these people to show."
    )


@reads
def plan(
    source: Source,
    eps: Annotated[
        float, typer.Option("--eps", metavar="X", help="Private preset: odds about anybody change by at most e^X.")
    ] = 4.0,
    delta: Annotated[
        float, typer.Option("--delta", metavar="X", help="Private preset: except with this probability.")
    ] = 1e-6,
    as_json: Json = False,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    Say which presets your file has enough people for, what each would promise them, and how useful its fakes would be.

    Nothing of the input is used but the number of people with a usable day, one known from end to end: planning costs
    nobody any privacy.

    Example: elsewhere plan traces.csv --eps 2
    """
    from elsewhere.run.plan import plan as planned
    from elsewhere.run.reading import longer_gap, people_with_public_gap, usable_days
    from elsewhere.traces.fixes import Preparation
    from elsewhere.traces.read import read_traces

    keywords = {"eps": eps, "delta": delta}
    planned(0, **keywords)  # refused before a file is read
    reports: list[Preparation] = []
    with stage("reading"):
        traces = read_traces(source, report=reports.append, **reading.keywords(PRESETS["product"]))
    people = usable_days(traces).U
    # the private preset fills gaps by a public rule: it may find other people with a usable day
    figures = reading_facts(reports[0])
    proven = people_with_public_gap(figures, people)
    usable = dict.fromkeys(map(str, PRESETS), people) | {"private": proven}
    plans = [next(each for each in planned(n, **keywords) if each.preset == name) for name, n in usable.items()]
    table = Table("preset", "protects", "eps", "AUC at most", "fakes", "people needed", box=SIMPLE_HEAD)
    for each in plans:
        c = each.certificate
        promise = ("-", "-") if c.eps is None else (f"{c.eps:g}", f"{c.auc:.3f}")
        fakes = "one a seed" if c.eps is None else c.fakes_covered
        table.add_row(each.preset, c.protects, *promise, fakes, f"{each.people_needed:,}")
    record = {
        "command": "plan",
        "people": people,
        "people_by_a_public_gap": proven,
        "presets": {each.preset: each.to_dict() for each in plans},
        "read": figures,
    }
    there = f"{counted(people, 'person', 'people')} with a usable day"
    if proven != people:
        there += (
            f"; {proven:,} for private: how long people's gaps are is theirs, so gaps of up to "
            f"{PUBLIC_GAP} are filled unless `max_gap` gives another length"
        )
    lines = []
    for each in plans:
        by_gap = reports[0].max_gap_auto and each.preset == "private"
        longer = longer_gap(reports[0], each.people_needed) if by_gap else None
        told_of = each.useful if each.enough else _too_few(each, usable[each.preset], longer)
        lines.append(f"{each.preset}: {told_of}")
    words = " ".join(["elsewhere synthesize INPUT -o DIR", *typed(reading)])
    if enough := [each.preset for each in plans if each.enough]:
        lines.append(f"to make them: {words} --preset {'|'.join(enough)}")
    if plans[-1].enough and not (reading.grid or reading.locations or reading.regions):
        lines.append("private takes no map found in these people: add --grid S,W,N,E,N, --locations or --regions")
    say(record, [*describe_reading(figures), there, describe_usable_days(figures), table, *lines], as_json=as_json)
