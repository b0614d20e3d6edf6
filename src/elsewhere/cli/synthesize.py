"""Commands `synthesize`, and its stages `fit`, `generate`, `publish`: from a file of real traces to a pool of fakes."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from elsewhere.cli.finish import (
    PRIVATE,
    REPORT,
    Private,
    Report,
    judged,
    private_folder,
    warn_of_strangers,
    write_links,
    write_reports,
)
from elsewhere.cli.options import AS_IT_COMES, Cells, Force, Json, Places, Reading, Source, Step, Zone, reads
from elsewhere.cli.output import bar, counts, opening, say, stage
from elsewhere.errors import InvalidParameter, InvalidTraces, require_between, require_choice, require_whole
from elsewhere.files import check_folder

if TYPE_CHECKING:
    import numpy as np

    from elsewhere.fakes import Fakes
    from elsewhere.pool import Pool
    from elsewhere.traces.fixes import Preparation
    from elsewhere.traces.model import Ints, Traces

Folder = Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for the results.", show_default=False)]
PresetName = Annotated[str, typer.Option("--preset", metavar="paper|product|deniable", help="What is promised.")]
PerSeed = Annotated[int, typer.Option("--per-seed", metavar="N", help="Fakes per seed.")]
Kappa = Annotated[str, typer.Option("--kappa", metavar="N|auto", help="Number of semantic classes.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter of the preset, e.g. --set k=5; repeatable."),
]
Workers = Annotated[int, typer.Option("--workers", metavar="N", help="Threads; the result does not depend on it.")]
LabSeed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", help="Laboratory run: repeatable, stamped as such, refused for publishing."),
]
IKnow = Annotated[
    bool, typer.Option("--i-know", help="Write a laboratory run as if it were published; it stays stamped.")
]
Formats = Annotated[
    list[str] | None, typer.Option("--also", metavar="gpx|geojson|sglt", help="Write the fakes in this form too.")
]
ALSO = {"gpx": "fakes.gpx", "geojson": "fakes.geojson", "sglt": "fakes.trace"}
OURS = ("fakes.csv", "fakes.parquet", *ALSO.values(), "fakes.locations", REPORT)  # beside the pool


@reads
def synthesize(
    source: Source,
    out: Folder,
    preset: PresetName = "product",
    per_seed: PerSeed = 1,
    kappa: Kappa = "auto",
    cells: Cells = 400,
    step: Step = "20min",
    tz: Zone = None,
    locations: Places = None,
    also: Formats = None,
    parameters: Set = None,
    workers: Workers = 2,
    seed: LabSeed = None,
    i_know: IKnow = False,
    report: Report = True,
    private: Private = None,
    holdout: Annotated[
        float, typer.Option("--holdout", metavar="SHARE", help="Of the people, set aside as control of the attacks.")
    ] = 0.0,
    force: Force = False,
    as_json: Json = False,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    The whole job: read real traces, learn, generate fakes, test them, publish, evaluate, attack, report.

    DIR is for publishing: fakes.csv and fakes.parquet in the columns of the input, the pool (pool.parquet,
    places.parquet), manifest.json and report.html, which shows aggregates and fakes only. What only you may see goes
    into DIR-private: links.csv (who was made from whom), the owner's report.html and judgement.json.

    Example: elsewhere synthesize traces.csv -o out/fakes
    """
    check_folder(out, force=force)
    mine = private_folder(out, private, force=force)
    require_between("--holdout", holdout, 0, 0.5)
    for form in also or []:
        require_choice("--also", form, tuple(ALSO))
    _check_laboratory(preset, seed, i_know)
    traces, read = read_whole(source, cells, step, tz, locations, reading)
    traces, aside = _aside(traces, holdout, seed)
    fakes = _on_this_map(_generate(traces, preset, per_seed, kappa, parameters, workers, seed), locations, reading)
    (pool, rows), told = _publish(fakes, per_seed, seed), summary(fakes, traces)
    # whole already before it is judged: what is interrupted then is only the judge
    kept = write_links(traces, fakes, pool, rows, mine)
    written = write_pool(pool, out, read, also or [])
    if pool.traces.dates is None and {"time", "utc", "local", "date"} & set(read.columns):
        told["notes"].append("no date is shared by enough people: the fakes are dated 2001-01-01, a Monday.")
    told["read"] = counts(read)
    shown = [*opening(told["read"]), *tables(told)]
    if report:
        judgement = judged(traces, fakes, pool, rows, aside, _judges(seed))
        shared, more = write_reports(judgement, traces, fakes, pool, out, mine, opening(told["read"]))
        written, kept = seal(pool, out, [*written[:-3], *shared]), kept + more
        told["judgement"] = judgement.to_dict()
        shown += judgement.in_words()
    warn_of_strangers(out, OURS, written)
    warn_of_strangers(mine, PRIVATE, kept)
    shown += [f"wrote {', '.join(kept)} into {mine}: for you alone", f"wrote {len(written)} files into {out}"]
    say({**told, "files": written, "private_files": kept}, shown, as_json=as_json)


@reads
def fit(
    source: Source,
    out: Folder,
    preset: PresetName = "product",
    kappa: Kappa = "auto",
    cells: Cells = 400,
    step: Step = "20min",
    tz: Zone = None,
    locations: Places = None,
    parameters: Set = None,
    seed: LabSeed = None,
    force: Force = False,
    as_json: Json = False,
    reading: Reading = AS_IT_COMES,
) -> None:
    """Learn model and classes from real traces, without making a fake: model.npz and model.json."""
    check_folder(out, force=force)
    traces, read = read_whole(source, cells, step, tz, locations, reading)
    from elsewhere.learnt import learn
    from elsewhere.presets import preset_of

    settings = preset_of(preset, **_parameters(parameters))
    import numpy as np

    from elsewhere.contributors import contributors_file
    from elsewhere.files import write_files
    from elsewhere.split import split_users

    rng = _rng(seed) or np.random.default_rng(np.random.SeedSequence())
    # alternates, and the seeds of the deniable mode, must not have met the model
    people = split_users(traces, settings, None, rng).model
    assert people is not None  # noqa: S101 - None only with a model that is given
    with stage("learning"):
        learnt = learn(people, settings, kappa=kappa_of(kappa), rng=rng)
    write_files(out, {**contributors_file(people), **learnt.files()})
    result = {
        "users": traces.U,
        "places": traces.R,
        "places_in_classes": int((learnt.classes.label >= 0).sum()),
        "kappa": learnt.classes.kappa,
        "preset": preset,
    }
    line = ", ".join(f"{name} {value}" for name, value in result.items())
    known = counts(read)
    say({**result, "read": known}, [*opening(known), line, f"wrote {out}"], as_json=as_json)


@reads
def generate(
    source: Source,
    out: Folder,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="DIR", help="What `fit` learnt; by default it is learnt anew.")
    ] = None,
    preset: PresetName = "product",
    per_seed: PerSeed = 1,
    kappa: Kappa = "auto",
    cells: Cells = 400,
    step: Step = "20min",
    tz: Zone = None,
    locations: Places = None,
    parameters: Set = None,
    workers: Workers = 2,
    seed: LabSeed = None,
    force: Force = False,
    as_json: Json = False,
    reading: Reading = AS_IT_COMES,
) -> None:
    """Make fakes of real traces and keep them with the numbers of their seeds, in a private folder."""
    check_folder(out, force=force)
    traces, read = read_whole(source, cells, step, tz, locations, reading)
    fakes = _generate(traces, preset, per_seed, kappa, parameters, workers, seed, model)
    fakes = _on_this_map(fakes, locations, reading)
    fakes.save(out, force=force)
    told = summary(fakes, traces) | {"read": counts(read)}
    say(
        told,
        [*opening(told["read"]), *tables(told), f"wrote {out}: private, it knows the seeds; `publish` is the door"],
        as_json=as_json,
    )


def publish(
    fakes: Annotated[
        Path, typer.Argument(metavar="FAKES", help="The private folder of `generate`.", show_default=False)
    ],
    out: Folder,
    per_seed: PerSeed = 1,
    choose: Annotated[str, typer.Option("--choose", metavar="uniform|likelihood")] = "uniform",
    temp: Annotated[float, typer.Option("--temp", help="Temperature of the choice by likelihood.")] = 1.0,
    also: Formats = None,
    i_know: IKnow = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Publish fakes: without seeds, order, likelihoods or entropy, and within the budget of each seed."""
    check_folder(out, force=force)
    for form in also or []:
        require_choice("--also", form, tuple(ALSO))
    from elsewhere.fakes import Fakes
    from elsewhere.fakes import publish as publish_fakes

    private = Fakes.load(fakes)
    pool = publish_fakes(private, per_seed=per_seed, choose=choose, temp=temp, laboratory=i_know)
    # the budget is spent before anything leaves: a second run after a crash can only publish less
    private.save(fakes, force=True)
    written = write_pool(pool, out, None, also or [])
    warn_of_strangers(out, OURS, written)
    say({"fakes": len(pool), "files": written}, [f"published {len(pool)} fakes into {out}"], as_json=as_json)


def _check_laboratory(preset: str, seed: int | None, i_know: bool) -> None:
    if seed is not None and preset != "paper" and not i_know:
        raise InvalidParameter(
            "`--seed` makes a run that whoever knows the number can repeat: it is refused for publishing; leave it "
            "out, or add --i-know for a laboratory result.",
            code="E_LABORATORY",
        )


def _rng(seed: int | None) -> "np.random.Generator | None":
    import numpy as np

    return None if seed is None else np.random.default_rng(require_whole("--seed", seed, 0))


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


def kappa_of(text: str) -> int | str:
    """The number of classes that the option asks for."""
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter(f'`--kappa` must be a whole number or "auto", got {text!r}.') from None


def _parameters(words: list[str] | None) -> dict[str, Any]:
    import ast

    from elsewhere.presets import check_names

    found: dict[str, Any] = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise InvalidParameter(f"`--set` must be NAME=VALUE, got {word!r}.")
        words_for = {"true": True, "false": False, "none": None}
        try:
            found[name] = words_for[value.lower()] if value.lower() in words_for else ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    return check_names(found)


def read_whole(
    source: Path, cells: int, step: str, tz: str | None, locations: Path | None, reading: Reading
) -> "tuple[Traces, Preparation]":
    """The days without a gap of an input, and what became of it."""
    from elsewhere.traces.read import read_traces

    reports: list[Preparation] = []
    with stage("reading"):
        traces = read_traces(
            source,
            cells=cells,
            step=step,
            tz=tz,
            locations=locations,
            report=reports.append,
            **reading.keywords(),
        )
    return whole_rows(traces), reports[0]


def whole_rows(traces: "Traces") -> "Traces":
    """The rows without a gap, which alone can be seeds; how many are left out is said on stderr."""
    import numpy as np

    whole = np.all(traces.r >= 0, axis=1)
    if whole.all():
        return traces
    if not whole.any():
        raise InvalidTraces(
            f"none of {len(traces)} days of {traces.U} users is complete, and only whole days can be seeds; a longer "
            "--max-gap or --step fills more.",
            code="E_GAPS",
        )
    typer.echo(f"warning: {int((~whole).sum())} of {len(whole)} days have gaps and are left out.", err=True)
    return traces.select(whole)


def _generate(
    traces: "Traces",
    preset: str,
    per_seed: int,
    kappa: str,
    parameters: list[str] | None,
    workers: int,
    seed: int | None,
    model: Path | None = None,
) -> "Fakes":
    from elsewhere.generate import generate_fakes

    given: dict[str, Any] = {}
    people = traces
    if model is not None:
        people, given = _roles(traces, preset, model)
    with bar("making fakes") as progress:
        fakes = generate_fakes(
            people,
            preset=preset,
            per_seed=per_seed,
            kappa=kappa_of(kappa),
            rng=_rng(seed),
            workers=workers,
            progress=progress,
            **given,
            **_parameters(parameters),
        )
    return fakes if people is traces else _in_file(fakes, people, traces)


def _on_this_map(fakes: "Fakes", locations: Path | None, reading: Reading) -> "Fakes":
    """The same fakes; those with a ledger say so where their map was made of people whom the ledger protects."""
    if fakes.ledger is None or locations is not None or reading.regions is not None:
        return fakes
    from dataclasses import replace

    note = (
        "the places were found in the input, seeds included: eps and delta take the map as given; --locations or "
        "--regions give one that no seed has shaped."
    )
    return replace(fakes, notes=(*fakes.notes, note))


def _in_file(fakes: "Fakes", people: "Traces", traces: "Traces") -> "Fakes":
    """Fakes of some people of a file, with their seeds counted as rows of the whole file."""
    from dataclasses import replace

    import numpy as np

    rows = np.flatnonzero(np.isin(traces.users.astype(str), np.array([str(label) for label in people.labels])))
    attempts = fakes.attempts
    if len(attempts) == len(people):
        attempts = np.zeros(len(traces), dtype=np.int64)
        attempts[rows] = fakes.attempts
    among = None if fakes.seed_rows is None else rows[fakes.seed_rows]
    return replace(fakes, seed=rows[fakes.seed], seed_rows=among, attempts=attempts, seeds=traces)


def _roles(traces: "Traces", preset: str, model: Path) -> "tuple[Traces, dict[str, Any]]":
    """Whom the model has met are the product's seeds, and never those of the deniable mode."""
    import numpy as np

    from elsewhere.contributors import contributed
    from elsewhere.learnt import Learnt

    given: dict[str, Any] = {"model": Learnt.load(model)}
    met = contributed(model, traces)
    if preset == "deniable":
        if met is None:
            raise InvalidParameter("this model does not remember its contributors; run `fit` again.", code="E_DISJOINT")
        if met.all():
            raise InvalidParameter("every user here has contributed to the model: no seed is left.", code="E_DISJOINT")
        return traces.of_users(np.flatnonzero(~met)), {**given, "disjoint": True}
    if preset == "product" and met is not None and met.any() and not met.all():
        given["alternates"] = traces.of_users(np.flatnonzero(~met))
        traces = traces.of_users(np.flatnonzero(met))
    return traces, given


def _publish(fakes: "Fakes", per_seed: int, seed: int | None) -> "tuple[Pool, Ints]":
    from elsewhere.fakes import publish_linked

    return publish_linked(fakes, per_seed=per_seed, laboratory=seed is not None, rng=_rng(seed))


def write_pool(pool: "Pool", out: Path, read: "Preparation | None", also: list[str]) -> list[str]:
    """The fakes in the columns of the input, the pool, and last of all the manifest that lists every file."""
    from elsewhere.traces.places import name_beside
    from elsewhere.traces.write import write_traces

    columns = None if read is None else read.columns or None
    if read is not None and read.format in ALSO:
        also = sorted({*also, read.format})
    if columns and all(name.isdigit() for name in columns.values()):  # SGLT: its columns have no names
        columns, also = None, sorted({*also, "sglt"})
    names = ["fakes.csv", "fakes.parquet", *(ALSO[form] for form in also)]
    for name in names:
        tabular = name in ("fakes.csv", "fakes.parquet")
        write_traces(pool.traces, out / name, columns=columns if tabular else None)
    if "sglt" in also and pool.traces.locations.has_coordinates:
        names.append(name_beside(ALSO["sglt"]))
    return seal(pool, out, names)


def seal(pool: "Pool", out: Path, names: list[str]) -> list[str]:
    """The pool with a manifest that lists the files `names` beside it, written last; the names of all files."""
    from elsewhere.files import write_files
    from elsewhere.pool import remove_earlier

    beside = {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names}
    # with --force: what an earlier run published would stand beside other fakes of the same seeds (E59)
    remove_earlier(out, names)
    write_files(out, pool.files(beside))
    return [*names, "pool.parquet", "places.parquet", "manifest.json"]


def summary(fakes: "Fakes", traces: "Traces") -> dict[str, Any]:
    """Acceptance by rule, achieved k, and how fakes move beside real traces; totals only (E63)."""
    import numpy as np

    def life(r: Any) -> dict[str, float]:
        moves = np.count_nonzero(r[:, 1:] != r[:, :-1], axis=1).mean()
        ordered = np.sort(r, axis=1)
        places = 1 + np.count_nonzero(ordered[:, 1:] != ordered[:, :-1], axis=1).mean()
        return {"moves": round(float(moves), 2), "places": round(float(places), 2)}

    told: dict[str, Any] = {
        "preset": fakes.preset.name,
        "users": traces.U,
        "rows": len(traces),
        "kappa": fakes.kappa,
        "fakes": len(fakes),
        "attempts": fakes.tally["tested"],
        "passed": fakes.tally["passed"],
        "rejected_by": {n: c for n, c in fakes.tally.items() if n not in ("tested", "passed") and c},
        "per_trace": {"real": life(traces.r), "fakes": life(fakes.r)},
        "notes": list(fakes.notes),
    }
    if fakes.ledger is None:
        told["k"] = fakes.preset.k
    else:
        # the number of failed attempts is not covered by the theorem: it leaves no trace outside (section 11)
        for name in ("attempts", "passed", "rejected_by"):
            del told[name]
        told["ledger"] = fakes.ledger.to_dict()
        told["in_words"] = fakes.ledger.in_words()
    return told


def tables(told: dict[str, Any]) -> list[Any]:
    """The summary for people."""
    shown: list[Any] = [
        f"preset {told['preset']}: {told['fakes']} fakes of {told['users']} users, {told['kappa']} classes"
    ]
    if "attempts" in told:
        rules = Table("rule", "rejected", "share", box=SIMPLE_HEAD)
        for name, number in told["rejected_by"].items():
            rules.add_row(name.replace("not_made", "no candidates"), f"{number:,}", f"{number / told['attempts']:.1%}")
        rules.add_row("passed all", f"{told['passed']:,}", f"{told['passed'] / told['attempts']:.1%}")
        shown.append(rules)
        if told["k"] > 1:
            shown.append(f"alternate users within the differential bound: {told['k'] - 1} or more for every fake")
    else:
        shown.append(told["in_words"])
    life = Table("per trace", "real", "fakes", box=SIMPLE_HEAD)
    for name in ("moves", "places"):
        life.add_row(name, *(f"{told['per_trace'][who][name]:.1f}" for who in ("real", "fakes")))
    real, fake = (told["per_trace"][who]["moves"] for who in ("real", "fakes"))
    slow = ["fakes move less than half as often as people: try a larger --kappa"]
    return [*shown, life, *(slow if fake < real / 2 else []), *told["notes"]]
