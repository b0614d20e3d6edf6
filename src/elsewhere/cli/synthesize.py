"""Command `synthesize`: the whole job, from a file of real traces to a pool of fakes and two reports."""

from typing import Annotated, Any

import typer

from elsewhere.cli.making import BY_DEFAULT, Making, Workers, kappa_of, makes
from elsewhere.cli.options import Folder, Force, Formats, IKnow, Json, OutAs, PerSeed, Private, Report, Source, reads
from elsewhere.cli.output import bars, say
from elsewhere.cli.summary import closing, tables
from elsewhere.run.reading import AS_IT_COMES, Reading
from elsewhere.run.summary import opening


@reads
@makes
def synthesize(
    source: Source,
    out: Folder,
    per_seed: PerSeed = 1,
    also: Formats = None,
    out_as: OutAs = None,
    workers: Workers = 2,
    i_know: IKnow = False,
    report: Report = True,
    private: Private = None,
    holdout: Annotated[
        float, typer.Option("--holdout", metavar="SHARE", help="Of the people, set aside as control of the attacks.")
    ] = 0.0,
    force: Force = False,
    as_json: Json = False,
    making: Making = BY_DEFAULT,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    The whole job: read real traces, learn, generate fakes, test them, publish, evaluate, attack, report.

    DIR is for publishing: fakes.csv and fakes.parquet in the columns of the input, the pool (pool.parquet,
    places.parquet), manifest.json and report.html, which shows aggregates and fakes only. What only you may see goes
    into DIR-private: links.csv (who was made from whom), the owner's report.html and judgement.json. Both appear when
    they are complete; if the run stops after the fakes are made, these are kept in DIR-unfinished, for `publish`.

    Example: elsewhere synthesize traces.csv -o out/fakes
    """
    from elsewhere.run.synthesize import synthesize as whole_job

    with bars() as progress:
        made = whole_job(
            source,
            out,
            preset=making.preset,
            per_seed=per_seed,
            n=making.number,
            kappa=kappa_of(making.kappa),
            also=also or (),
            out_as=out_as,
            report=report,
            private=private,
            holdout=holdout,
            force=force,
            laboratory=i_know,
            rng=making.rng(),
            workers=workers,
            progress=progress,
            **vars(reading),
            **making.settings(),
        )
    told = made.to_dict()
    shown = [*opening(told["read"]), *tables(told)]
    shown += [] if made.judgement is None else closing(made.judgement)
    shown += [
        f"wrote {', '.join(made.private_files)} into {made.private}: for you alone",
        f"wrote {len(made.files)} files into {out}",
    ]
    if "private" in told:
        people = told["users"]
        shown.append(f"no theorem covers these fakes; --preset private with these {people:,} people: {_would(told)}")
    say(told, shown, as_json=as_json)


def _would(told: dict[str, Any]) -> str:
    """What the private preset would have promised."""
    private = told["private"]
    if not private["enough"]:
        return str(private["useful"])
    certificate = private["certificate"]
    return (
        f"odds about anybody change by at most a factor e^{certificate['eps']:g}, an attack's AUC is at most "
        f"{certificate['auc']:.2f}; {private['useful']}"
    )
