"""The options that commands share, each defined once."""

import functools
import inspect
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elsewhere.errors import InvalidParameter, require_whole
from elsewhere.presets import PROVEN

if TYPE_CHECKING:
    import numpy as np

PUBLIC_GAP = "6h"  # that presets with a theorem fill: how long gaps are is a matter of the people it protects

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
Draws = Annotated[int, typer.Option("--seed", metavar="N", help="Same number, same draws of the judge.")]


BY_COORDINATES = ("shared", "merge", "grid", "stays")


@dataclass(frozen=True)
class Reading:
    """How an input is read: the options that every command which reads real traces has, see `reads`."""

    cells: Annotated[int, typer.Option("--cells", metavar="N", help="Places made of coordinates.")] = 400
    step: Annotated[str, typer.Option("--step", help="Time between two instants.")] = "20min"
    tz: Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="IANA time zone of the data.")] = None
    locations: Annotated[
        Path | None, typer.Option("--locations", metavar="FILE", help="Places that the place numbers point into.")
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="ROLE=NAME,...",
            help="Columns by name or number: user=id,time=#4,lat=y; user=file: the file's name.",
        ),
    ] = None
    form: Annotated[
        str, typer.Option("--format", metavar="auto|csv|gpx|...", help="Refuse an input that is anything else.")
    ] = "auto"
    date_format: Annotated[
        str | None, typer.Option("--date-format", metavar="FORMAT", help='As for strptime: "%d.%m.%Y %H:%M".')
    ] = None
    encoding: Annotated[str, typer.Option("--encoding", help="Of a text file.")] = "utf-8"
    max_bad: Annotated[
        float,
        typer.Option(
            "--max-bad", metavar="SHARE", help="Unreadable, short or long rows that may be dropped and counted."
        ),
    ] = 0.01
    start: Annotated[
        str | None, typer.Option("--start", metavar="HH:MM", help="Local time of the first slot, for slots and SGLT.")
    ] = None
    gaps: Annotated[
        str,
        typer.Option(
            "--gaps",
            metavar="hold|interpolate|split|drop",
            help="Slots without a fix: keep the last place, go straight to the next, cut the day, or drop thin users.",
        ),
    ] = "hold"
    max_gap: Annotated[
        str,
        typer.Option(
            "--max-gap",
            metavar="TIME|auto",
            help="Longest gap that is filled, such as 1h; auto: the shortest of 1, 3, 6, 12, 24 h that keeps enough "
            "people.",
        ),
    ] = "auto"
    min_coverage: Annotated[
        float, typer.Option("--min-coverage", metavar="SHARE", help="Least share of known slots of a day that is kept.")
    ] = 0.5
    places: Annotated[
        str,
        typer.Option(
            "--places",
            metavar="|".join(BY_COORDINATES),
            help="What coordinates become: cells that several people share, the paper's merged cells, cells, or where "
            "people stay; auto: shared, for the paper preset merge.",
        ),
    ] = "auto"
    regions: Annotated[
        Path | None, typer.Option("--regions", metavar="FILE", help="GeoJSON polygons that are to be the places.")
    ] = None
    grid: Annotated[
        str | None,
        typer.Option(
            "--grid", metavar="S,W,N,E,N", help="N equal cells of a box in degrees are to be the places, and the map."
        ),
    ] = None
    map: Annotated[
        str,
        typer.Option(
            "--map",
            metavar="auto|whole",
            help="auto: where people are nearly all the time, travels are left out; whole: everywhere anybody was.",
        ),
    ] = "auto"
    box: Annotated[
        str | None, typer.Option("--box", metavar="S,W,N,E", help="The map: rows outside are left out and counted.")
    ] = None
    lon360: Annotated[bool, typer.Option("--lon360", help="Longitudes run from 0 to 360.")] = False
    any_date: Annotated[bool, typer.Option("--any-date", help="Keep dates before 2000 and in the future.")] = False
    allow_truncated: Annotated[
        bool, typer.Option("--allow-truncated", help="Leave out a last line or record that is cut off.")
    ] = False

    def keywords(self, preset: str = "product") -> dict[str, Any]:
        """The keywords of `read_traces`; what the preset of the paper reads becomes places as in the paper (E74)."""
        by_default = "merge" if preset == "paper" else "shared"
        regions: Any = self.regions
        tz = self.tz
        if self.grid is not None:
            from elsewhere.traces.lattice import read_grid

            if self.regions is not None or self.locations is not None or self.box is not None:
                raise InvalidParameter("`--grid` is a map of its own: leave out --locations, --regions and --box.")
            regions = read_grid(self.grid)
            if preset == "private" and tz is None:
                from elsewhere.traces.zones import zone_at

                tz = zone_at(*regions.middle())[0]  # of the box, not of the people in it
        if preset == "private":
            self._require_public()
        return {
            "cells": self.cells,
            "step": self.step,
            "tz": tz,
            "locations": self.locations,
            "columns": _pairs(self.columns),
            "format": self.form,
            "date_format": self.date_format,
            "encoding": self.encoding,
            "max_bad": self.max_bad,
            "start": self.start,
            "gaps": self.gaps,
            "max_gap": PUBLIC_GAP if preset in PROVEN and self.max_gap == "auto" else self.max_gap,
            "min_coverage": self.min_coverage,
            "map": "whole" if preset == "private" else self.map,
            "places": by_default if self.places == "auto" else self.places,
            "regions": regions,
            "box": None if self.box is None else self.box.split(","),
            "lon360": self.lon360,
            "any_date": self.any_date,
            "allow_truncated": self.allow_truncated,
        }

    def _require_public(self) -> None:
        """Refuse a map that would be found in the people whom the private preset protects."""
        if self.grid is None and self.locations is None and self.regions is None:
            raise InvalidParameter(
                'preset "private" protects everybody in the file, so the map must not come from the file: give a box '
                "that you choose without looking at the data, such as --grid 35.5,139.5,35.9,140.0,400 (south, west, "
                "north, east, number of cells), or --locations FILE or --regions FILE with public places.",
                code="E_MAP",
            )

    def as_made(self, told: Mapping[str, Any]) -> "Reading":
        """The same, where an option was not given as a folder tells that its input was read, see `made_by`."""
        known: dict[str, Any] = {}
        if told.get("step_minutes") is not None:
            known["step"] = f"{told['step_minutes']:g}min"
        if told.get("places_by") in BY_COORDINATES:
            known |= {"places": told["places_by"], "cells": told.get("cells", self.cells)}
        if told.get("max_gap_auto") is False:
            known |= {"max_gap": f"{told['max_gap_minutes']:g}min"}
        known |= {"gaps": told.get("gaps", self.gaps)}
        default = {f.name: f.default for f in fields(self)}
        return replace(self, **{n: v for n, v in known.items() if getattr(self, n) == default[n]})

    def words(self) -> list[str]:
        """The options as they are to be typed again: all that are not by default."""
        said = []
        for f in fields(self):
            value, option = getattr(self, f.name), "--format" if f.name == "form" else f"--{f.name.replace('_', '-')}"
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


AS_IT_COMES, AS_USUAL = Reading(), Judging()


def _pairs(text: str | None) -> dict[str, str | None] | None:
    if text is None:
        return None
    pairs: dict[str, str | None] = {}
    for word in text.split(","):
        role, equals, name = word.partition("=")
        if not equals or not role.strip():
            raise InvalidParameter(f"`--columns` must be ROLE=NAME,ROLE=NAME, got {text!r}.")
        pairs[role.strip()] = name or None  # an empty name leaves a role out
    return pairs


def gives(word: str, kind: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command all options of a dataclass: it takes them as one argument, called `word`."""

    def give(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command)
        added = [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type)
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


reads, judges = gives("reading", Reading), gives("judging", Judging)
