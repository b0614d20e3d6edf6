"""Commands `prepare`, `fit`, `generate`, `publish`: the stages of `synthesize`, one at a time."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from elsewhere._version import __version__
from elsewhere.cli.options import (
    BY_DEFAULT,
    EXPERT,
    MODEL,
    Choose,
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
    Source,
    Workers,
    cluster_at,
    kappa_of,
    make_fakes,
    makes,
    reads,
)
from elsewhere.cli.output import say, stage, tables
from elsewhere.cli.sources import made_by, reading_file
from elsewhere.errors import InvalidParameter
from elsewhere.files import check_folder, whole_folder, whole_folders, write_files
from elsewhere.run.finish import (
    LINKS,
    REPORT,
    describe_reading,
    describe_usable_days,
    earlier_results,
    keep_links,
    private_folder,
    reading_facts,
    repairs,
    summary,
    warn_of_other_files,
)
from elsewhere.run.presets import AS_IT_COMES, PRESETS, Reading
from elsewhere.run.reading import read_usable_days


@reads
def prepare(
    source: Source,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Private folder.", show_default=False)],
    dask: Dask = None,
    force: Force = False,
    as_json: Json = False,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    Read a file of positions, cut days into slots and the map into places, and show how it was understood: prepare.html.

    Everything in DIR is about real people and stays with their owner. DIR is an INPUT for all other commands.
    """
    check_folder(out, force=force)
    from elsewhere.reports.page import preparation_page, write
    from elsewhere.traces.fixes import Preparation
    from elsewhere.traces.read import read_traces
    from elsewhere.traces.write import save_traces

    reports: list[Preparation] = []
    with cluster_at(dask) as executor, stage("reading"):
        traces = read_traces(source, executor=executor, report=reports.append, **reading.keywords(PRESETS["product"]))
    with stage("writing"), whole_folder(out, force=force) as new:
        files = save_traces(traces, reports[0], new)
        write(new / "prepare.html", preparation_page(traces, reports[0]))
    figures = reading_facts(reports[0])
    result: dict[str, Any] = {
        "command": "prepare",
        "version": __version__,
        **figures,
        "files": [*files, "prepare.html"],
    }
    say(
        result,
        [*_tables(figures), f"wrote {len(files) + 1} files into {out}: private, open prepare.html"],
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
    usable = f"usable: {read['users_usable']:,} people have a usable day; {describe_usable_days(read)}"
    places = f"places: {read['places']:,}"
    if read["places"] < read["places_found"]:
        places += f", joined from the {read['places_found']:,} that were found"
    lines = [what, usable, f"slots: {shares}", places]
    return [*lines, *repairs(read), *read["notes"]]


@reads
@makes
def fit(
    source: Source,
    out: Folder,
    dask: Dask = None,
    force: Force = False,
    as_json: Json = False,
    making: Making = BY_DEFAULT,
    reading: Reading = AS_IT_COMES,
) -> None:
    """Learn from real traces how people live, without making a fake: model.npz and model.json, for `generate`."""
    check_folder(out, force=force)
    settings = making.check()
    if settings.name == "private":
        raise InvalidParameter(
            'preset "private" learns and draws in one step: `elsewhere synthesize --preset private`.'
        )
    import numpy as np

    from elsewhere.files import write_folder
    from elsewhere.run.model import learn
    from elsewhere.run.roles import Contributors, split_users

    with cluster_at(dask) as executor:
        with stage("reading"):
            traces, read = read_usable_days(
                source, reading, settings, coins=making.coins(), missing=making.missing, executor=executor
            )
        rng = making.rng() or np.random.default_rng(np.random.SeedSequence())
        # alternates, and the seeds of the deniable mode, must not have met the model
        people = split_users(traces, settings, None, rng, seeds=read.seeds).model
        assert people is not None  # noqa: S101 - None only with a model that is given
        with stage("learning"):
            trained = learn(people, settings, kappa=kappa_of(making.kappa), feasible=making.feasible, rng=rng)
    write_folder(out, {**Contributors.of(people).file(), **reading_file(read), **trained.files()}, force=force)
    result: dict[str, Any] = {
        "users": traces.U,
        "places": traces.R,
        "places_in_classes": int((trained.classes.label >= 0).sum()),
        "kappa": trained.classes.kappa,
        "preset": making.preset,
    }
    if trained.carried is not None:
        result["archetypes"] = len(trained.carried.archetypes.share)
    line = ", ".join(f"{name} {value}" for name, value in result.items())
    figures = reading_facts(read)
    say({**result, "read": figures}, [*describe_reading(figures), line, f"wrote {out}"], as_json=as_json)


@reads
@makes
def generate(
    source: Source,
    out: Folder,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model", metavar="DIR", help="What `fit` learnt; by default it is learnt anew.", rich_help_panel=MODEL
        ),
    ] = None,
    per_seed: PerSeed = 1,
    workers: Workers = 2,
    dask: Dask = None,
    force: Force = False,
    as_json: Json = False,
    making: Making = BY_DEFAULT,
    reading: Reading = AS_IT_COMES,
) -> None:
    """Make fakes and keep them, with who was made from whom, in a private folder; `publish` is the next step."""
    check_folder(out, force=force)
    settings = making.check(per_seed, workers)
    told_by = None if model is None else made_by(model)
    from elsewhere.run.publish import note_rare_places, remember_input

    with cluster_at(dask) as executor:
        with stage("reading"):
            fewest = None if model is None else 1
            traces, read = read_usable_days(
                source, reading, settings, fewest, told_by, making.coins(), executor, making.missing
            )
        fakes = remember_input(make_fakes(traces, making, per_seed, workers, executor, model, read.seeds), read)
    fakes, read = note_rare_places(fakes, read, traces)
    with whole_folder(out, force=force) as new:
        fakes.save(new)
        keep_links(traces, fakes, new)
    figures = summary(fakes, traces) | {"read": reading_facts(read)}
    say(
        figures,
        [
            *describe_reading(figures["read"]),
            *tables(figures),
            f"wrote {out}: private, it knows the seeds; `publish` is the door",
        ],
        as_json=as_json,
    )


def publish(
    fakes: Annotated[
        Path, typer.Argument(metavar="FAKES", help="The private folder of `generate`.", show_default=False)
    ],
    out: Folder,
    per_seed: PerSeed = 1,
    choose: Choose = None,
    temp: Annotated[
        float | None, typer.Option("--temp", help="Temperature of the choice by likelihood.", rich_help_panel=EXPERT)
    ] = None,
    also: Formats = None,
    out_as: OutAs = None,
    i_know: IKnow = False,
    private: Private = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """
    Take fakes that `generate` made, and write those to be published, without anything that tells their seeds.

    They are written in the columns of the file that `generate` read, as `synthesize` does; who was made from whom goes
    into DIR-private, as links.csv.
    """
    check_folder(out, force=force)
    mine = private_folder(out, private, force=force)
    from elsewhere.run.fakes import Fakes
    from elsewhere.run.publish import (
        FORMS,
        check_forms,
        describe_output,
        publish_with_rows,
        published_links,
        write_fakes,
        write_pool,
    )

    check_forms(also or (), out_as)
    fake_set, links = Fakes.load(fakes), fakes / LINKS
    pool, rows = publish_with_rows(fake_set, per_seed=per_seed, choose=choose, temp=temp, laboratory=i_know)
    private_files = (
        {LINKS: published_links(links.read_bytes(), rows, pool.traces, len(fake_set))} if links.exists() else {}
    )
    with whole_folders((mine, out) if private_files else (out,), force=force, outdated=earlier_results) as folders:
        new = folders[-1]
        if private_files:
            write_files(folders[0], private_files)
        pool, notes = describe_output(pool, fake_set.frame, also or [], out_as)
        files = write_pool(pool, new, write_fakes(pool, new, fake_set.frame, also or [], out_as))
        # the budget is spent before anything leaves: a second run after a crash can only publish less
        fake_set.save(fakes, force=True)
    warn_of_other_files(out, (*FORMS, REPORT), files)
    notes = [
        *notes,
        *([] if private_files else ["no links.csv: the folder of these fakes does not say who was made from whom."]),
    ]
    say(
        {
            "fakes": pool.traces.U,
            "days": len(pool),
            "notes": notes,
            "files": files,
            "private_files": list(private_files),
        },
        [
            *notes,
            *(f"wrote {name} into {mine}: for you alone" for name in private_files),
            f"published {pool.traces.U} fakes into {out}",
        ],
        as_json=as_json,
    )
