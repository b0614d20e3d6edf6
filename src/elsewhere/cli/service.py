"""Command `lbs`: decoys for a location-based service, five generators against all adversaries."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from elsewhere.cli.options import AS_USUAL, Judging, judges, reads
from elsewhere.cli.output import bar, say, stage
from elsewhere.cli.pairs import check_out
from elsewhere.cli.sources import Links, Model, Sources, read_real, with_fakes
from elsewhere.errors import InvalidParameter, require_between, require_choice, require_whole
from elsewhere.run.reading import AS_IT_COMES, Reading

if TYPE_CHECKING:
    from elsewhere.traces.model import Traces


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
    beta: Annotated[float, typer.Option("--beta", help="Probability that an instant is exposed.")] = 0.5,
    judging: Judging = AS_USUAL,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    Hide a user among decoys: what a service still finds out, with four simple generators and with fakes.

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
    from elsewhere.judge.service import judge_service, two_days

    sources, train, truth, days = None, None, None, None
    if real is None:
        from elsewhere.traces.town import simulate_town

        with stage("simulating a town"):
            days = simulate_town(users=60, days=28, locations=150, rng=rng).traces
            train, truth = two_days(days)
    else:
        sources = read_real(real, reading, fakes, model)
        truth, sources = sources.further(test, "--test")
        train = sources.real
        if truth is None:
            days = sources.real
            train, truth = two_days(days)
    made, owners, classes, notes = _decoys(sources, train, fakes, links, model, preset, per_seed, rng)
    with bar("attacking") as progress:
        result = judge_service(
            train,
            truth,
            made,
            owners,
            classes=classes,
            n_fakes=numbers,
            beta=beta,
            choose=choose,
            days=days,
            progress=progress,
            rng=rng,
        )
    told = {"command": "lbs", **result.to_dict(), "notes": [*notes, *result.notes]}
    shown = [*tables(result), *told["notes"]]
    if out is not None:
        from elsewhere.files import whole_folder, write_files
        from elsewhere.reports.figures import location_privacy
        from elsewhere.reports.page import report
        from elsewhere.reports.sheet import png

        numbers_file = (json.dumps(told, indent=1, allow_nan=False) + "\n").encode()
        files = {"lbs.png": png(location_privacy(result)), "lbs.json": numbers_file}
        with whole_folder(out, force=judging.force) as new:
            write_files(new, files)
            report(result, new / "report.html", title="Decoys for a location-based service")
        shown.append(f"wrote {out / 'report.html'}")
        shown += [f"wrote {out / name}" for name in files]
    say(told, shown, as_json=judging.as_json)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(word) for word in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1 or max(found) > 1000:
        raise InvalidParameter(f"`--n-fakes` must be whole numbers in 1 .. 1000 with commas between, got {text!r}.")
    return found


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
    """The fakes, the number of the user behind each, the classes of the places, and notes."""
    import numpy as np

    if sources is None or fakes is None:
        from elsewhere.generate import generate_fakes
        from elsewhere.run.reading import whole_rows

        if links is not None:
            raise InvalidParameter("`--links` needs `--fakes`.")
        learnt = None if sources is None else sources.learnt(model)
        with bar("making fakes") as progress:
            made = generate_fakes(
                whole_rows(train), preset=preset, per_seed=per_seed, model=learnt, rng=rng, progress=progress
            )
        assert made.learnt is not None  # noqa: S101 - fresh fakes know it
        return made, None, made.learnt.classes, made.notes
    found = with_fakes(sources, fakes, links)
    assert found.fakes is not None  # noqa: S101 - just read
    learnt = found.learnt(model)
    owners = None
    if found.seed_index is not None:
        number = {label: i for i, label in enumerate(train.labels)}
        owners = np.array([number.get(label, -1) for label in found.real.users[found.seed_index]])
    return found.fakes, owners, None if learnt is None else learnt.classes, found.notes


def tables(result: Any) -> list[Any]:
    """Median error of tracking under each adversary, by generator and number of fakes, beside the ceiling."""
    sizes = result.settings
    opening = (
        f"{sizes['users']} users, {sizes['instants']} instants, {sizes['places']} places; error of tracking at exposed "
        f"instants, median over users (beta {sizes['beta']:g})"
    )
    found = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("decoys", "m", "sent", *result.adversaries, "m/(m+1)"):
        found.add_column(name, no_wrap=True)
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for row in result.table():
        if row["attack"] == "tracking":
            entry = rows.setdefault((row["generator"], row["fakes"]), {"sent": row["diversity"], "top": row["ceiling"]})
            entry[row["adversary"]] = row["error"]
    for (generator, m), row in rows.items():
        errors = ("" if row.get(a) is None else f"{row[a]:.2f}" for a in result.adversaries)
        found.add_row(generator, str(m), f"{row['sent']:.1f}", *errors, f"{row['top']:.2f}")
    legend = (
        "m: fakes sent along; sent: different places per query; then what the adversary knows: how people move, the "
        "user, the classes, the pool; last, what m fakes reach that cannot be told from the truth (above it, the "
        "adversary takes a fake for more likely than the truth)"
    )
    return [opening, found, legend, *_over_days(result)]


def _over_days(result: Any) -> list[Any]:
    """Homes and main places found by watching for several days, by kind of decoys."""
    if not result.over_days:
        return []
    found = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    watched = sorted({days for told in result.over_days for days in told.users})
    for name in ("decoys", "m", "found", *(f"{days} day{'s' * (days > 1)}" for days in watched), "guess"):
        found.add_column(name, no_wrap=True)
    for told in result.over_days:
        for decoys, words in (("persona", "the same every day"), ("fresh", "fresh every day")):
            for place, by_days in told.found[decoys].items():
                rates = ("" if (r := by_days.get(days)) is None else f"{r.value:.2f}" for days in watched)
                found.add_row(words, str(told.n), place, *rates, f"{told.guess:.2f}")
    opening = "share of homes and of main places that a service finds which sees every line of every day, by its watch"
    return [opening, found, *(told.in_words() for told in result.over_days)]
