"""Commands of the paper's evaluation: `similarity` of all pairs, `lbs` (decoys for a service), `reproduce` (all)."""

import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from elsewhere._version import __version__
from elsewhere.cli.options import (
    AS_USUAL,
    EXPERT,
    MODEL,
    Force,
    Json,
    Judging,
    Kappa,
    Out,
    Seed,
    Source,
    judges,
    kappa_of,
    reads,
)
from elsewhere.cli.output import bar, can_draw_blocks, number, say, stage
from elsewhere.cli.sources import Links, Model, Sources, read_real, with_fakes
from elsewhere.errors import InvalidParameter, require_between, require_choice, require_whole
from elsewhere.files import check_folder, write_folder
from elsewhere.run.finish import describe_reading, reading_facts
from elsewhere.run.presets import AS_IT_COMES, PRESETS, Reading, preset_of

if TYPE_CHECKING:
    import numpy as np

    from elsewhere.evaluation.reproduce import Reproduction
    from elsewhere.paper.profiles import Profiles
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
    periods: Annotated[
        int, typer.Option("--periods", metavar="N", help="Equal parts of the local day.", rich_help_panel=MODEL)
    ] = 1,
    missing: Annotated[
        str,
        typer.Option(
            "--missing",
            metavar="refuse|skip|gibbs",
            help="What to do where a slot is missing.",
            rich_help_panel=MODEL,
        ),
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

    from elsewhere.paper.profiles import fit_profiles
    from elsewhere.traces.read import read_traces

    rng = np.random.default_rng(require_whole("--seed", seed, 0))

    reports: list[Preparation] = []
    with stage("reading"):
        traces = read_traces(source, report=reports.append, **reading.keywords(PRESETS["paper"]))
    if users is not None:
        sample = rng.choice(traces.U, require_whole("--users", users, 2, traces.U), replace=False)
        traces = traces.of_users(sample)
    profiles = fit_profiles(traces, periods=periods, missing=missing, rng=rng)
    result, lines, pictures = compare(
        traces, profiles, {"command": "similarity", "read": reading_facts(reports[0])}, out
    )
    if out is not None:
        write_folder(out, pictures, force=force)
    say(result, lines, as_json=as_json)


def check_out(out: Path | None, force: bool) -> None:
    """Refuse, before any work, an output that could not be written, and figures that could not be drawn."""
    if out is not None:
        check_folder(out, force=force)
        from elsewhere.reports.figures import new_figure

        new_figure(1, 1)


def compare(
    traces: "Traces", profiles: "Profiles", provenance: dict[str, Any], out: Path | None
) -> tuple[dict[str, Any], list[Any], dict[str, bytes]]:
    """
    Compute the similarity of all pairs, as a result, as tables for people, and as the files to write into
    `out`, if given.
    """
    from elsewhere.reports.figures import pair_similarity, png, similarity_histograms

    with stage("comparing all pairs"):
        pairs = pair_similarity(profiles)
    size = {"rows": len(traces), "slots": traces.L, "places": traces.R}
    result = {**provenance, "version": __version__, **size, **pairs.to_dict()}
    files = {}
    if out is not None:
        files["histograms.png"] = png(similarity_histograms(pairs.geographic, pairs.semantic))
        files["similarity.json"] = json.dumps(result, indent=2, allow_nan=False).encode()
    lines = [f"wrote {out / name}" for name in files if out is not None]
    return result, [*(describe_reading(result["read"]) if "read" in result else []), *_tables(result), *lines], files


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


@reads
@judges
def lbs(
    real: Annotated[
        Path | None,
        typer.Option("--real", metavar="FILE", help="Real traces; by default 60 people of a simulated town, 28 days."),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option("--test", metavar="FILE", help="The second day; by default each user's second day in --real."),
    ] = None,
    fakes: Annotated[
        Path | None,
        typer.Option("--fakes", metavar="FILE|DIR", help="Our or other fakes; by default they are made of day one."),
    ] = None,
    links: Links = None,
    model: Model = None,
    preset: Annotated[str, typer.Option("--preset", metavar="paper|product", help="Of fakes made here.")] = "paper",
    per_seed: Annotated[int, typer.Option("--per-seed", metavar="N", help="Of fakes made here.")] = 20,
    choose: Annotated[
        str, typer.Option("--choose", metavar="uniform|likelihood", help="Of a user's fakes.")
    ] = "uniform",
    n_fakes: Annotated[str, typer.Option("--n-fakes", metavar="N,...", help="Fakes sent along.")] = "1,5,10",
    beta: Annotated[
        float, typer.Option("--beta", help="Probability that a slot is exposed.", rich_help_panel=EXPERT)
    ] = 0.5,
    judging: Judging = AS_USUAL,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    Measure how well a person hides among decoys from a service: with fakes, and with four simple generators.

    A user's decoys never descend from that user's own trace. Where users have 7 days or more, a service that watches
    for as long looks for home and main place behind decoys that are the same every day, and behind fresh ones. With
    -o: lbs.json, lbs.png and report.html.

    Example: elsewhere lbs --real two_days.csv -o out/lbs
    """
    out = judging.out
    check_out(out, judging.force)
    require_choice("--preset", preset, ("paper", "product"))
    require_choice("--choose", choose, ("uniform", "likelihood"))
    require_whole("--per-seed", per_seed, 1)
    rng = judging.rng()
    require_between("--beta", beta, 0, 1, open_low=True)
    numbers = _numbers(n_fakes)
    if real is None and (test or fakes or links or model):
        raise InvalidParameter("`--test`, `--fakes`, `--links` and `--model` need `--real`.")
    from elsewhere.evaluation.lbs.generators import judge_service

    sources = None if real is None else read_real(real, reading, fakes, model)
    sources, train, truth, days = _days(sources, test, rng)
    decoys, owners, classes, notes = _decoys(sources, train, fakes, links, model, preset, per_seed, rng)
    with bar("attacking") as progress:
        result = judge_service(
            train,
            truth,
            decoys,
            owners,
            classes=classes,
            n_fakes=numbers,
            beta=beta,
            choose=choose,
            days=days,
            progress=progress,
            rng=rng,
        )
    record = {"command": "lbs", **result.to_dict(), "notes": [*notes, *result.notes]}
    lines = [*lbs_tables(result), *record["notes"]]
    if out is not None:
        from elsewhere.files import whole_folder, write_files
        from elsewhere.reports.figures import location_privacy, png
        from elsewhere.reports.page import report

        numbers_file = (json.dumps(record, indent=1, allow_nan=False) + "\n").encode()
        files = {"lbs.png": png(location_privacy(result)), "lbs.json": numbers_file}
        with whole_folder(out, force=judging.force) as new:
            write_files(new, files)
            report(result, new / "report.html", title="Decoys for a location-based service")
        lines.append(f"wrote {out / 'report.html'}")
        lines += [f"wrote {out / name}" for name in files]
    say(record, lines, as_json=judging.as_json)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(word) for word in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1 or max(numbers) > 1000:
        raise InvalidParameter(f"`--n-fakes` must be whole numbers in 1 .. 1000 with commas between, got {text!r}.")
    return numbers


def _days(
    sources: Sources | None, test: Path | None, rng: Any
) -> "tuple[Sources | None, Traces, Traces, Traces | None]":
    """
    Return the sources, the days that are known and those attacked, and all days of the users where one file has
    both.
    """
    from elsewhere.evaluation.lbs.generators import two_days

    if sources is None:
        from elsewhere.traces.town import simulate_town

        with stage("simulating a town"):
            days = simulate_town(users=60, days=28, locations=150, rng=rng).traces
            return None, *two_days(days), days
    truth, sources = sources.further(test, "--test")
    if truth is not None:
        return sources, sources.real, truth, None
    return sources, *two_days(sources.real), sources.real


def _decoys(
    sources: Sources | None,
    train: "Traces",
    fakes: Path | None,
    links: str | None,
    model: Path | None,
    preset: str,
    per_seed: int,
    rng: Any,
) -> tuple[Any, Any, Any, tuple[str, ...]]:
    """Return the fakes, the number of the user behind each, the classes of the places, and notes."""
    import numpy as np

    if sources is None or fakes is None:
        from elsewhere.run.generate import generate_fakes
        from elsewhere.run.reading import usable_days

        if links is not None:
            raise InvalidParameter("`--links` needs `--fakes`.")
        fit = None if sources is None else sources.learnt(model)
        with bar("making fakes") as progress:
            generated = generate_fakes(
                usable_days(train), preset=preset_of(preset), per_seed=per_seed, model=fit, rng=rng, progress=progress
            )
        assert generated.learnt is not None  # noqa: S101 - fresh fakes know it
        return generated, None, generated.learnt.classes, generated.notes
    with_seeds = with_fakes(sources, fakes, links)
    assert with_seeds.fakes is not None  # noqa: S101 - just read
    fit = with_seeds.learnt(model)
    owners = None
    if with_seeds.seed_index is not None:
        number = {label: i for i, label in enumerate(train.labels)}
        owners = np.array([number.get(label, -1) for label in with_seeds.real.users[with_seeds.seed_index]])
    return with_seeds.fakes, owners, None if fit is None else fit.classes, with_seeds.notes


def lbs_tables(result: Any) -> list[Any]:
    """
    Return tables of the median error of tracking under each adversary, by generator and number of fakes, beside
    the ceiling.
    """
    sizes = result.settings
    opening = (
        f"{sizes['users']} users, {sizes['slots']} slots, {sizes['places']} places; error of tracking at exposed "
        f"slots, median over users (beta {sizes['beta']:g})"
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("decoys", "m", "sent", *result.adversaries, "m/(m+1)"):
        table.add_column(name, no_wrap=True)
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for row in result.table():
        if row["attack"] == "tracking":
            entry = rows.setdefault((row["generator"], row["fakes"]), {"sent": row["diversity"], "top": row["ceiling"]})
            entry[row["adversary"]] = row["error"]
    for (generator, m), row in rows.items():
        errors = ("" if row.get(a) is None else f"{row[a]:.2f}" for a in result.adversaries)
        table.add_row(generator, str(m), f"{row['sent']:.1f}", *errors, f"{row['top']:.2f}")
    legend = (
        "m: fakes sent along; sent: different places per query; then what the adversary knows: how people move, the "
        "user, the classes, the pool; last, what m fakes reach that cannot be told from the truth (above it, the "
        "adversary takes a fake for more likely than the truth)"
    )
    return [opening, table, legend, *_over_days(result)]


def _over_days(result: Any) -> list[Any]:
    """Return tables of homes and main places found by watching for several days, by kind of decoys."""
    if not result.over_days:
        return []
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    days_watched = sorted({days for watch in result.over_days for days in watch.users})
    for name in ("decoys", "m", "found", *(f"{days} day{'s' * (days > 1)}" for days in days_watched), "guess"):
        table.add_column(name, no_wrap=True)
    for watch in result.over_days:
        for decoys, words in (("persona", "the same every day"), ("fresh", "fresh every day")):
            for place, by_days in watch.found[decoys].items():
                rates = ("" if (r := by_days.get(days)) is None else f"{r.value:.2f}" for days in days_watched)
                table.add_row(words, str(watch.n), place, *rates, f"{watch.guess:.2f}")
    opening = "share of homes and of main places that a service finds which sees every line of every day, by its watch"
    return [opening, table, *(watch.in_words() for watch in result.over_days)]


STUDENTLIFE = "paperlike_30users_2days_72slots.csv.gz"  # the paper's shape, in a folder of StudentLife


@reads
@judges
def reproduce(
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[DATA]", help="Traces of two days; by default a simulated town.", show_default=False),
    ] = None,
    users: Annotated[int, typer.Option("--users", metavar="N", help="People of the simulated town.")] = 30,
    per_seed: Annotated[int, typer.Option("--per-seed", metavar="N", help="Attempts per user, 10 or more.")] = 500,
    kappa: Kappa = "auto",
    judging: Judging = AS_USUAL,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    Repeat the paper's evaluation on other data: every table and figure, our number beside the paper's, and why they
    differ.

    The first day of each user teaches, the second tests, as in the paper. With -o: reproduce.md, reproduce.json and the
    figures. They show where people go: keep those of real people to yourself.

    Example: elsewhere reproduce two_days.csv -o out/reproduce
    """
    out = judging.out
    check_out(out, judging.force)
    rng = judging.rng()
    require_whole("--per-seed", per_seed, 10)
    require_whole("--users", users, 4, 1000)
    from elsewhere.evaluation.reproduce import reproduce as run

    traces = _traces(data, users, rng, reading)
    with bar("reproducing") as progress:
        result = run(traces, per_seed=per_seed, kappa=kappa_of(kappa), progress=progress, rng=rng)
    record = {"command": "reproduce", **result.to_dict()}
    lines = tables(result)
    if out is not None:
        files = _files(result, record)
        from elsewhere.files import write_folder

        write_folder(out, files, force=judging.force)
        lines.append(f"wrote {', '.join(files)} into {out}")
    say(record, lines, as_json=judging.as_json)


def _traces(
    data: Path | None,
    users: int,
    rng: "np.random.Generator",
    reading: Reading,
) -> "Traces":
    if data is None:
        from elsewhere.traces.town import simulate_town

        with stage("simulating a town"):
            return simulate_town(users=users, days=2, locations=400, rng=rng).traces
    from elsewhere.traces.read import read_traces

    if (data / STUDENTLIFE).is_file():
        data = data / STUDENTLIFE
    with stage("reading"):
        return read_traces(data, **reading.keywords(PRESETS["paper"]))


def _files(result: "Reproduction", record: dict[str, Any]) -> dict[str, bytes]:
    from elsewhere.reports.paper_figures import paper_figures, png

    files = {f"{name}.png": png(figure) for name, figure in paper_figures(result).items()}
    pictures = "".join(f"\n![{name.removesuffix('.png')}]({name})\n" for name in files)
    files["reproduce.md"] = (result.markdown() + pictures).encode()
    files["reproduce.json"] = (json.dumps(record, indent=1, allow_nan=False) + "\n").encode()
    return files


def tables(result: "Reproduction") -> list[Any]:
    """Return the rows for people, then what disagrees, and why."""
    beside = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("in the paper", "what", "paper", "here", "95 %", ""):
        beside.add_column(name, no_wrap=name in ("", "95 %"))
    mark = {True: "agrees", False: "differs", None: ""}
    for row in result.rows:
        figures = (v if isinstance(v, str) else number(v) for v in (row.paper, row.ours))
        between = "" if row.interval is None else " .. ".join(number(v) for v in row.interval)
        beside.add_row(row.place, row.what, *figures, between, mark[row.agrees])
    differs = [f"differs: {row.what}: {row.why}" for row in result.rows if row.agrees is False]
    agree = sum(row.agrees is True for row in result.rows)
    others = sum(row.agrees is None for row in result.rows)
    last = f"{agree} rows agree, {len(differs)} differ, {others} are facts of the data, or the product's way"
    return [beside, *differs, last]
