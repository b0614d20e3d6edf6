"""Command `synthesize`: the whole job, from a file of real traces to a pool of fakes and two reports."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from elsewhere.cli.finish import (
    PRIVATE,
    Private,
    Report,
    earlier_results,
    judged,
    private_folder,
    rescued,
    unfinished_folder,
    warn_of_strangers,
    write_links,
    write_reports,
)
from elsewhere.cli.making import BY_DEFAULT, Making, PerSeed, Workers, make_fakes, makes, read_whole
from elsewhere.cli.options import AS_IT_COMES, Folder, Force, Json, Reading, Source, reads
from elsewhere.cli.output import counts, opening, say
from elsewhere.cli.published import (
    OURS,
    Formats,
    IKnow,
    OutAs,
    as_read,
    check_forms,
    on_output,
    seal,
    with_withheld,
    write_fakes,
)
from elsewhere.cli.summary import closing, summary, tables, verdicts
from elsewhere.errors import InvalidParameter, require_between
from elsewhere.files import check_folder, whole_folders

if TYPE_CHECKING:
    import numpy as np

    from elsewhere.traces.model import Traces


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
    check_folder(out, force=force)
    mine = private_folder(out, private, force=force)
    spare = unfinished_folder(out, mine, force=force)
    require_between("--holdout", holdout, 0, 0.5)
    check_forms(also, out_as)
    settings = making.check(per_seed, workers)
    seed = making.seed
    _check_laboratory(making.preset, seed, i_know)
    traces, read = read_whole(source, reading, settings, seed=seed)
    traces, aside = _aside(traces, holdout, seed)
    fakes = as_read(make_fakes(traces, making, per_seed, workers, seeds=read.seeds), read)
    fakes, read = with_withheld(fakes, read, traces)
    from elsewhere.fakes import publish_linked

    again = ["-o", str(out), *(["--per-seed", str(per_seed)] if per_seed > 1 else []), *(["--i-know"] * i_know)]
    again += [] if private is None else ["--private", str(private)]
    again += [word for form in also or [] for word in ("--also", form)] + (["--out-as", out_as] if out_as else [])
    with (
        rescued(fakes, traces, spare, again, force=force, of_all=aside is None),
        whole_folders((mine, out), force=force, outdated=earlier_results) as (for_me, new),
    ):
        pool, rows = publish_linked(fakes, per_seed=per_seed, laboratory=seed is not None, rng=making.rng())
        told = summary(fakes, traces)
        kept = write_links(traces, fakes, pool, rows, for_me)
        written = write_fakes(pool, new, fakes.frame, also or [], out_as)
        pool, notes = on_output(pool, fakes.frame, also or [], out_as)
        told["notes"] += notes
        told["read"] = counts(read)
        shown = [*opening(told["read"]), *tables(told)]
        if report:
            judgement = judged(traces, fakes, pool, rows, aside, _judges(seed))
            shared, more = write_reports(judgement, traces, fakes, pool, new, for_me, opening(told["read"]))
            written, kept = written + shared, kept + more
            told |= verdicts(judgement)
            shown += closing(judgement)
        written = seal(pool, new, written)
    warn_of_strangers(out, OURS, written)
    warn_of_strangers(mine, PRIVATE, kept)
    shown += [f"wrote {', '.join(kept)} into {mine}: for you alone", f"wrote {len(written)} files into {out}"]
    if making.preset == "product":
        from elsewhere.privacy.plan import plan

        told["private"] = plan(traces.U)[-1].to_dict()
        shown.append(f"no theorem covers these fakes; --preset private with these {traces.U:,} people: {_would(told)}")
    say({**told, "files": written, "private_files": kept}, shown, as_json=as_json)


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


def _check_laboratory(preset: str, seed: int | None, i_know: bool) -> None:
    if seed is not None and preset != "paper" and not i_know:
        raise InvalidParameter(
            "`--seed` makes a run that whoever knows the number can repeat: it is refused for publishing; leave it "
            "out, or add --i-know for a laboratory result.",
            code="E_LABORATORY",
        )


def _judges(seed: int | None) -> "np.random.Generator":
    import numpy as np

    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(9,)))


def _aside(traces: "Traces", share: float, seed: int | None) -> "tuple[Traces, Traces | None]":
    """The people to make fakes of, and those set aside as control before anything is learnt."""
    import numpy as np

    n = round(share * traces.U)
    if n == 0:
        return traces, None
    people = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(8,))).permutation(traces.U)
    return traces.of_users(np.sort(people[n:])), traces.of_users(np.sort(people[:n]))
