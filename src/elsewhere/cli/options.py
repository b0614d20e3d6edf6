"""The options that commands share, each defined once."""

import functools
import inspect
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elsewhere.errors import require_whole
from elsewhere.run.reading import BY_COORDINATES, Reading

if TYPE_CHECKING:
    import numpy as np

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
        help="Real traces: CSV, Parquet, JSON, GPX, GeoJSON, GeoLife, Google Timeline, OwnTracks, Foursquare, SGLT; "
        "a file, a folder of files, or - for standard input.",
        show_default=False,
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", help="Same number, same result; a laboratory run, never for publishing.")
]
PerSeed = Annotated[int, typer.Option("--per-seed", metavar="N", help="Fakes per seed.")]
IKnow = Annotated[
    bool, typer.Option("--i-know", help="Write a laboratory run as if it were published; it stays stamped.")
]
Formats = Annotated[
    list[str] | None,
    typer.Option("--also", metavar="gpx|geojson|kepler|sglt", help="Write the fakes in this form too; repeatable."),
]
OutAs = Annotated[
    str | None,
    typer.Option(
        "--out-as",
        metavar="slots|visits|events",
        help="Lines of fakes.csv: one per slot, per stay (arrived, left, place, category), or per arrival. By default "
        "visits where the input has visits, else slots.",
    ),
]
Report = Annotated[
    bool, typer.Option("--report/--no-report", help="Whether to evaluate and attack the fakes, and write reports.")
]
Private = Annotated[
    Path | None,
    typer.Option("--private", metavar="DIR2", help="Folder for what only you may see; by default DIR-private."),
]
Draws = Annotated[int, typer.Option("--seed", metavar="N", help="Same number, same draws of the judge.")]


# the options of `Reading`, which every command that reads real traces has
READING: dict[str, Any] = {
    "cells": Annotated[int, typer.Option("--cells", metavar="N", help="Places made of coordinates.")],
    "step": Annotated[str, typer.Option("--step", help="Length of a slot; auto: 20min, or as numbered slots tell.")],
    "tz": Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="IANA time zone of the data.")],
    "locations": Annotated[
        Path | None, typer.Option("--locations", metavar="FILE", help="Places that the place numbers point into.")
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
        str | None, typer.Option("--date-format", metavar="FORMAT", help='As for strptime: "%d.%m.%Y %H:%M".')
    ],
    "encoding": Annotated[str, typer.Option("--encoding", help="Of a text file.")],
    "max_bad": Annotated[
        float,
        typer.Option(
            "--max-bad", metavar="SHARE", help="Unreadable, short or long rows that may be dropped and counted."
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
            help="Longest gap that is filled, such as 1h; auto: the shortest of 1, 3, 6, 12, 24 h that keeps enough "
            "people.",
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
            "--grid", metavar="S,W,N,E,N", help="N equal cells of a box in degrees are to be the places, and the map."
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


def typed(reading: Reading) -> list[str]:
    """The options of a reading as they are to be typed again: all that are not by default."""
    said = []
    for f in fields(reading):
        value, option = getattr(reading, f.name), f"--{f.name.replace('_', '-')}"
        if value != f.default:
            said.append(option if value is True else f"{option} {shlex.quote(str(value))}")
    return said


@dataclass(frozen=True)
class Judging:
    """How a judging command draws and where its results go, see `judges`."""

    seed: Draws = 1
    out: Out = None
    force: Force = False
    as_json: Json = False

    def rng(self) -> "np.random.Generator":
        """The generator that `--seed` names."""
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
        added = [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=typed_as[f.name])
            for f in fields(kind)
        ]

        @functools.wraps(command)
        def gather_and_run(**given: Any) -> None:
            gathered = kind(**{f.name: given.pop(f.name) for f in fields(kind)})
            command(**given, **{word: gathered})

        kept = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for name, p in own.parameters.items() if name != word]
        gather_and_run.__signature__ = own.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
        gather_and_run.__annotations__ = {p.name: p.annotation for p in (*kept, *added)}
        return gather_and_run

    return give


reads, judges = gives("reading", Reading, READING), gives("judging", Judging)
