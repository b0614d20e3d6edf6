"""Command `reproduce`: every table and figure of the paper, our number beside the paper's."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from elsewhere.cli.making import Kappa, kappa_of
from elsewhere.cli.options import AS_USUAL, Judging, judges, reads
from elsewhere.cli.output import bar, number, say, stage
from elsewhere.cli.pairs import check_out
from elsewhere.errors import require_whole
from elsewhere.run.reading import AS_IT_COMES, Reading

if TYPE_CHECKING:
    import numpy as np

    from elsewhere.judge.reproduce import Reproduction
    from elsewhere.traces.model import Traces

STUDENTLIFE = "paperlike_30users_2days_72slots.csv.gz"  # the paper's shape, in a folder of StudentLife


@reads
@judges
def reproduce(
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[DATA]", help="Traces of two days; by default a simulated town.", show_default=False),
    ] = None,
    users: Annotated[int, typer.Option("--users", metavar="N", help="People of the simulated town.")] = 30,
    per_seed: Annotated[int, typer.Option("--per-seed", metavar="N", help="Fakes per user, 10 or more.")] = 20,
    kappa: Kappa = "auto",
    judging: Judging = AS_USUAL,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    The paper's evaluation on other data: every table and figure, our number beside the paper's, and why they differ.

    The first day of each user teaches, the second tests, as in the paper. With -o: reproduce.md, reproduce.json and the
    figures. They show where people go: keep those of real people to yourself.

    Example: elsewhere reproduce two_days.csv -o out/reproduce
    """
    out = judging.out
    check_out(out, judging.force)
    rng = judging.rng()
    require_whole("--per-seed", per_seed, 10)
    require_whole("--users", users, 4, 1000)
    from elsewhere.judge.reproduce import reproduce as run

    traces = _traces(data, users, rng, reading)
    with bar("reproducing") as progress:
        found = run(traces, per_seed=per_seed, kappa=kappa_of(kappa), progress=progress, rng=rng)
    told = {"command": "reproduce", **found.to_dict()}
    shown = tables(found)
    if out is not None:
        files = _files(found, told)
        from elsewhere.files import write_folder

        write_folder(out, files, force=judging.force)
        shown.append(f"wrote {', '.join(files)} into {out}")
    say(told, shown, as_json=judging.as_json)


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
        return read_traces(data, **reading.keywords("paper"))


def _files(found: "Reproduction", told: dict[str, Any]) -> dict[str, bytes]:
    import numpy as np

    from elsewhere.reports import figures, maps
    from elsewhere.reports.sheet import png

    drawn = {
        "similarity": figures.similarity_histograms(found.geographic, found.semantic),
        "visits-kl": figures.visiting_divergence(found.publishing),
        "time-kl": figures.time_allocation(found.publishing),
        "differential": figures.differential_similarity(found.publishing),
        "own-seed": figures.fake_seed_similarity(found.publishing),
        "qq": figures.similarity_qq(found.publishing),
        "location-privacy": figures.location_privacy(found.service),
    }
    train, learnt = found.train, found.fakes.learnt
    if train.locations.has_coordinates and learnt is not None:
        visits = np.bincount(train.r.ravel(), minlength=train.R)
        drawn["dataset-visits"] = maps.visited_places(train.locations, visits)
        drawn["dataset-classes"] = maps.places_by_class(train.locations, learnt.classes.label)
    files = {f"{name}.png": png(figure) for name, figure in drawn.items()}
    pictures = "".join(f"\n![{name.removesuffix('.png')}]({name})\n" for name in files)
    files["reproduce.md"] = (found.markdown() + pictures).encode()
    files["reproduce.json"] = (json.dumps(told, indent=1, allow_nan=False) + "\n").encode()
    return files


def tables(found: "Reproduction") -> list[Any]:
    """The rows for people, then what disagrees, and why."""
    beside = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("in the paper", "what", "paper", "here", ""):
        beside.add_column(name, no_wrap=name == "")
    mark = {True: "agrees", False: "differs", None: ""}
    for row in found.rows:
        figures = (v if isinstance(v, str) else number(v) for v in (row.paper, row.ours))
        beside.add_row(row.place, row.what, *figures, mark[row.agrees])
    differs = [f"differs: {row.what}: likely {row.why}" for row in found.rows if row.agrees is False]
    agree = sum(row.agrees is True for row in found.rows)
    of_data = sum(row.agrees is None for row in found.rows)
    last = f"{agree} rows agree, {len(differs)} differ, {of_data} are facts of the data (the paper's are not public)"
    return [beside, *differs, last]
