"""The options that commands share, each defined once."""

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[
    Path | None,
    typer.Option("-o", "--out", metavar="DIR", help="Folder for the results; refused if it holds anything."),
]
Force = Annotated[bool, typer.Option("--force", help="Write into DIR even so, replacing files of the same names.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for machines.")]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", help="Same number, same result; a laboratory run, never for publishing.")
]
Draws = Annotated[int, typer.Option("--seed", metavar="N", help="Same number, same draws of the judge.")]
Cells = Annotated[int, typer.Option("--cells", metavar="N", help="Places made of coordinates.")]
Step = Annotated[str, typer.Option("--step", help="Time between two instants.")]
Zone = Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="IANA time zone of the data.")]
Places = Annotated[
    Path | None, typer.Option("--locations", metavar="FILE", help="Places that the place numbers point into.")
]
