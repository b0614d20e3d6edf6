"""The options that commands share, each defined once; those by which fakes are made, and the work behind them."""

import functools
import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from elsewhere.cli.output import bar
from elsewhere.errors import ElsewhereError, InvalidParameter, require_choice, require_whole
from elsewhere.run.presets import BY_COORDINATES, CHOICES, MISSING, Reading
from elsewhere.run.reading import add_advice

if TYPE_CHECKING:
    import numpy as np

    from elsewhere.run.fakes import Fakes
    from elsewhere.run.presets import Preset
    from elsewhere.scale import Cluster
    from elsewhere.traces.model import Traces

# what most need comes first, in a panel of its own; the rest of a command's help in these, in this order
PANELS = READ, MODEL, PRIVACY, EXPERT = "Reading", "Model", "Privacy", "Expert"

Out = Annotated[
    Path | None,
    typer.Option("-o", "--out", metavar="DIR", help="Folder for the results; refused if it holds anything."),
]
Folder = Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for the results.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Write into DIR even so, replacing files of the same names.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for machines.")]
Source = Annotated[
    Path,
    typer.Argument(
        metavar="INPUT",
        help="Real traces: CSV, Excel, Parquet, JSON, GPX, GeoJSON, GeoLife, Google Timeline, Foursquare, "
        "SGLT; a file, a folder of files, or - for standard input.",
        show_default=False,
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", help="Same number, same result; a laboratory run, never for publishing.")
]
PerSeed = Annotated[int, typer.Option("--per-seed", metavar="N", help="Fakes made of each seed.")]
IKnow = Annotated[
    bool,
    typer.Option(
        "--i-know",
        help="Write a run with --seed as if it were published; it stays marked as a laboratory run.",
        rich_help_panel=EXPERT,
    ),
]
Formats = Annotated[
    list[str] | None,
    typer.Option("--also", metavar="gpx|geojson|sglt", help="Write the fakes in this form too; repeatable."),
]
OutAs = Annotated[
    str | None,
    typer.Option(
        "--out-as",
        metavar="slots|visits|events|trips",
        help="Lines of fakes.csv: one per slot, per stay (arrived, left, place, category), per arrival, or per move "
        "with both ends. By default visits or trips where the input has them, else slots.",
    ),
]
Report = Annotated[
    bool, typer.Option("--report/--no-report", help="Whether to evaluate and attack the fakes, and write reports.")
]
Private = Annotated[
    Path | None,
    typer.Option("--private", metavar="DIR2", help="Folder for what only you may see; by default DIR-private."),
]
Draws = Annotated[
    int, typer.Option("--seed", metavar="N", help="Same number, same draws of the judge.", rich_help_panel=EXPERT)
]


# the options of `Reading`, which every command that reads real traces has
READING: dict[str, Any] = {
    "cells": Annotated[int, typer.Option("--cells", metavar="N", help="Most places that coordinates are made into.")],
    "step": Annotated[
        str, typer.Option("--step", help="Length of a slot, into which days are cut; auto: 20min, or as in the input.")
    ],
    "tz": Annotated[
        str | None, typer.Option("--tz", metavar="ZONE", help="Time zone of the data, such as Europe/Zurich.")
    ],
    "locations": Annotated[
        Path | None, typer.Option("--locations", metavar="FILE", help="File of the places, with ids and positions.")
    ],
    "columns": Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="ROLE=NAME,...",
            help="Columns by name or number: user=id,time=#4,lat=y; user=file: the file's name.",
        ),
    ],
    "format": Annotated[
        str, typer.Option("--format", metavar="auto|csv|gpx|...", help="Refuse an input that is anything else.")
    ],
    "date_format": Annotated[
        str | None,
        typer.Option("--date-format", metavar="FORMAT", help='How dates are written, such as "%d.%m.%Y %H:%M".'),
    ],
    "encoding": Annotated[str, typer.Option("--encoding", help="Encoding of a text file.")],
    "max_bad": Annotated[
        float,
        typer.Option(
            "--max-bad",
            metavar="SHARE",
            help="Share of unreadable, short or long rows that may be dropped and counted.",
        ),
    ],
    "start": Annotated[
        str | None, typer.Option("--start", metavar="HH:MM", help="Local time of the first slot, for slots and SGLT.")
    ],
    "gaps": Annotated[
        str,
        typer.Option(
            "--gaps",
            metavar="hold|interpolate|split|drop",
            help="Slots without a fix: keep the last place, go straight to the next, cut the day, or drop thin users.",
        ),
    ],
    "max_gap": Annotated[
        str,
        typer.Option(
            "--max-gap",
            metavar="TIME|auto",
            help="Longest time without a position that is filled, such as 1h; auto: the shortest of 1, 3, 6, 12, 24 h "
            "that keeps enough people.",
        ),
    ],
    "min_coverage": Annotated[
        float, typer.Option("--min-coverage", metavar="SHARE", help="Least share of known slots of a day that is kept.")
    ],
    "places": Annotated[
        str,
        typer.Option(
            "--places",
            metavar="|".join(BY_COORDINATES),
            help="What coordinates become: cells that several people share, the paper's merged cells, cells, or where "
            "people stay; auto: shared, for the paper preset merge.",
        ),
    ],
    "regions": Annotated[
        Path | None, typer.Option("--regions", metavar="FILE", help="GeoJSON polygons that are to be the places.")
    ],
    "grid": Annotated[
        str | None,
        typer.Option(
            "--grid",
            metavar="S,W,N,E,N|TOWN",
            help="N equal cells of a box in degrees, or 400 of 40 km about a town, are to be the places, and the map.",
        ),
    ],
    "map": Annotated[
        str,
        typer.Option(
            "--map",
            metavar="auto|whole",
            help="auto: where people are nearly all the time, travels are left out; whole: everywhere anybody was.",
        ),
    ],
    "box": Annotated[
        str | None, typer.Option("--box", metavar="S,W,N,E", help="The map: rows outside are left out and counted.")
    ],
    "lon360": Annotated[bool, typer.Option("--lon360", help="Longitudes run from 0 to 360.")],
    "any_date": Annotated[bool, typer.Option("--any-date", help="Keep dates before 2000 and in the future.")],
    "allow_truncated": Annotated[
        bool, typer.Option("--allow-truncated", help="Leave out a last line or record that is cut off.")
    ],
}


for _option in READING.values():
    _option.__metadata__[0].rich_help_panel = READ


def typed(reading: Reading) -> list[str]:
    """Return the options of a reading as they are to be typed again: all that are not by default."""
    words = []
    for f in fields(reading):
        value, option = getattr(reading, f.name), f"--{f.name.replace('_', '-')}"
        if value != f.default:
            words.append(option if value is True else f"{option} {shlex.quote(str(value))}")
    return words


@dataclass(frozen=True)
class Judging:
    """How a judging command draws and where its results go, see `judges`."""

    seed: Draws = 1
    out: Out = None
    force: Force = False
    as_json: Json = False

    def rng(self) -> "np.random.Generator":
        """Return the generator that `--seed` names."""
        import numpy as np

        return np.random.default_rng(require_whole("--seed", self.seed, 0))


AS_USUAL = Judging()


def gives(
    word: str, kind: type[Any], options: Mapping[str, Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """
    Give a command all options of a dataclass: it takes them as one argument, called `word`.

    What each field is on the command line stands in its annotation, or in `options` for a dataclass of the library.
    """
    typed_as = {f.name: f.type if options is None else options[f.name] for f in fields(kind)}

    def give(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command)
        options = [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=typed_as[f.name])
            for f in fields(kind)
        ]

        @functools.wraps(command)
        def gather_and_run(**given: Any) -> None:
            group = kind(**{f.name: given.pop(f.name) for f in fields(kind)})
            command(**given, **{word: group})

        others = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for name, p in own.parameters.items() if name != word]
        parameters = sorted([*others, *options], key=_panel)
        gather_and_run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        gather_and_run.__annotations__ = {p.name: p.annotation for p in parameters}
        return gather_and_run

    return give


def _panel(parameter: inspect.Parameter) -> tuple[int, bool]:
    """
    Return where an option comes in the help: by its panel, what has none first; among these input, output and
    preset.
    """
    (option,) = getattr(parameter.annotation, "__metadata__", (None,))
    name = getattr(option, "rich_help_panel", None)
    return PANELS.index(name) + 1 if name in PANELS else 0, parameter.name not in ("source", "out", "preset")


reads, judges = gives("reading", Reading, READING), gives("judging", Judging)


Kappa = Annotated[
    str, typer.Option("--kappa", metavar="N|auto", help="Number of semantic classes.", rich_help_panel=MODEL)
]
Workers = Annotated[
    int,
    typer.Option("--workers", metavar="N", help="Threads; the result does not depend on it.", rich_help_panel=EXPERT),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Work on the workers of this Dask scheduler, such as tls://host:8786; the result does not depend on it.",
        rich_help_panel=EXPERT,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other parameter of the preset, e.g. --set m_min=3; repeatable.",
        rich_help_panel=EXPERT,
    ),
]
K = Annotated[
    int | None,
    typer.Option(
        "-k",
        metavar="N",
        help="People behind a fake: alternates and seed.",
        rich_help_panel=PRIVACY,
    ),
]
Eps = Annotated[
    float | None,
    typer.Option(
        "--eps",
        metavar="X",
        help="Private preset: odds about anybody change by at most e^X (default 4).",
        rich_help_panel=PRIVACY,
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta", metavar="X", help="Private preset: except with this probability (1e-6).", rich_help_panel=PRIVACY
    ),
]
Days = Annotated[
    int | None,
    typer.Option("--days", metavar="N", help="Private preset: days that every fake lives, whatever people have (1)."),
]
Number = Annotated[
    int | None,
    typer.Option(
        "-n",
        metavar="N",
        help="Private preset: fakes to release, any number; else about one a person, counted with noise.",
    ),
]


Missing = Annotated[
    str,
    typer.Option(
        "--missing",
        metavar="|".join(MISSING),
        help="Slots that stay unknown: leave out their days, or draw them from the person's own other slots (gibbs); a "
        "fix that may be at several places by its accuracy is drawn too.",
        rich_help_panel=READ,
    ),
]
Feasible = Annotated[
    str | None,
    typer.Option(
        "--feasible",
        metavar="FILE|data",
        help="The only moves that fakes make from one slot to the next: a table with columns from and to (ids of "
        "places) or from_lat, from_lon, to_lat and to_lon; data: those that enough of the people make who are learnt "
        "from.",
        rich_help_panel=MODEL,
    ),
]
Choose = Annotated[
    str | None,
    typer.Option(
        "--choose",
        metavar="|".join(CHOICES),
        help="Which of a seed's fakes are published: any, or likelier ones (of ten times as many, which `synthesize` "
        "makes then); by default any, in the paper preset likelier ones.",
        rich_help_panel=EXPERT,
    ),
]


@dataclass(frozen=True)
class Making:
    """What decides which fakes are made: the options that every command which makes them has, see `makes`."""

    preset: Annotated[str, typer.Option("--preset", metavar="paper|product|private", help="What is promised.")] = (
        "product"
    )
    missing: Missing = "drop"
    kappa: Kappa = "auto"
    feasible: Feasible = None
    k: K = None
    eps: Eps = None
    delta: Delta = None
    days: Days = None
    number: Number = None
    choose: Choose = None
    parameters: Set = None
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            help="Laboratory run: repeatable, stamped as such, refused for publishing.",
            rich_help_panel=EXPERT,
        ),
    ] = None

    def rng(self) -> "np.random.Generator | None":
        """Return the generator of a laboratory run; without `--seed` the operating system's entropy is asked."""
        import numpy as np

        return None if self.seed is None else np.random.default_rng(require_whole("--seed", self.seed, 0))

    def secret(self) -> bytes | None:
        """Return what draws missing slots in a laboratory run."""
        rng = self.rng()
        return None if rng is None else rng.bytes(32)

    def settings(self) -> dict[str, Any]:
        """Return the parameters given by `--set`, and those with an option of their own, by name."""
        own = ("k", "eps", "delta", "days", "choose")
        return parameters_of(self.parameters, **{name: getattr(self, name) for name in own})

    def check(self, per_seed: int = 1, workers: int = 1) -> "Preset":
        """Return the preset with all options applied; what cannot be is refused here, before a large input is read."""
        from elsewhere.run.presets import preset_of

        require_whole("--per-seed", per_seed, 1)
        require_whole("--workers", workers, 1)
        if self.seed is not None:
            require_whole("--seed", self.seed, 0)
        if not isinstance(kappa := kappa_of(self.kappa), str):
            require_whole("--kappa", kappa, 2)
        require_choice("--missing", self.missing, MISSING)
        settings = preset_of(self.preset, **self.settings())
        if self.number is not None:
            require_whole("-n", self.number, 1)
        return settings


BY_DEFAULT = Making()
makes = gives("making", Making)


@contextmanager
def cluster_at(address: str | None) -> "Iterator[Cluster | None]":
    """Yield the cluster that `--dask` names, for the duration of a command."""
    if address is None:
        yield None
        return
    from elsewhere.scale import Cluster

    with Cluster(address) as cluster:
        yield cluster


def kappa_of(text: str) -> int | Literal["auto"]:
    """Return the number of classes that the option asks for."""
    if text == "auto":
        return "auto"
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter(f'`--kappa` must be a whole number or "auto", got {text!r}.') from None


def parameters_of(words: list[str] | None, **options: Any) -> dict[str, Any]:
    """
    Return the parameters in words NAME=VALUE, and those that were given by `options` of their own (None: not
    given).
    """
    import ast

    from elsewhere.run.presets import check_names

    values: dict[str, Any] = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise InvalidParameter(f"`--set` must be NAME=VALUE, got {word!r}.")
        words_for = {"true": True, "false": False, "none": None}
        try:
            values[name] = words_for[value.lower()] if value.lower() in words_for else ast.literal_eval(value)
        except (ValueError, SyntaxError):
            values[name] = value
    by_option = {name: value for name, value in options.items() if value is not None}
    for name in by_option:
        if name in values and values[name] != by_option[name]:
            option = f"-{name}" if len(name) == 1 else f"--{name}"
            raise InvalidParameter(f"{option} {by_option[name]} and --set {name}={values[name]} differ; leave one out.")
    check_names(values | by_option)
    return values | by_option


def make_fakes(
    traces: "Traces",
    making: Making,
    per_seed: int,
    workers: int,
    executor: "Cluster | None" = None,
    model: Path | None = None,
) -> "Fakes":
    """Generate fakes of these traces and show progress; use the model of `fit` where it is given."""
    from elsewhere.run.generate import generate_fakes

    keywords: dict[str, Any] = {}
    people = traces
    if model is not None:
        people, keywords = _roles(traces, making.preset, model)
    settings = making.check()
    try:
        with bar("making fakes") as progress:
            fakes = generate_fakes(
                people,
                preset=settings,
                per_seed=per_seed,
                n=making.number,
                kappa=kappa_of(making.kappa),
                feasible=making.feasible,
                rng=making.rng(),
                executor=executor,
                workers=workers,
                progress=progress,
                **keywords,
            )
    except ElsewhereError as error:
        add_advice(error, traces, settings)
        raise
    return fakes if people is traces else _in_file(fakes, people, traces)


def _in_file(fakes: "Fakes", people: "Traces", traces: "Traces") -> "Fakes":
    """Return the fakes of some people of a file, with their seeds counted as rows of the whole file."""
    import numpy as np

    rows = np.flatnonzero(np.isin(traces.users.astype(str), np.array([str(label) for label in people.labels])))
    attempts = fakes.attempts
    if len(attempts) == len(people):
        attempts = np.zeros(len(traces), dtype=np.int64)
        attempts[rows] = fakes.attempts
    among = None if fakes.seed_rows is None else rows[fakes.seed_rows]
    return replace(fakes, seed=rows[fakes.seed], seed_rows=among, attempts=attempts, seeds=traces)


def _roles(traces: "Traces", preset: str, model: Path) -> "tuple[Traces, dict[str, Any]]":
    """Return the seeds and keywords: `product` takes as seeds whom the model has met, as alternates the others."""
    import numpy as np

    from elsewhere.run.model import FittedModel
    from elsewhere.run.roles import Contributors

    keywords: dict[str, Any] = {"model": FittedModel.load(model)}
    contributors = Contributors.read(model)
    met = None if contributors is None else contributors.met(traces)
    if preset == "product" and met is not None and met.any() and not met.all():
        keywords["alternates"] = traces.of_users(np.flatnonzero(~met))
        traces = traces.of_users(np.flatnonzero(met))
    return traces, keywords
