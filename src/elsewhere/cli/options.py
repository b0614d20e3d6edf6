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
Gaps = Annotated[
    str,
    typer.Option(
        "--gaps",
        metavar="hold|interpolate|split|drop",
        help="Slots without a fix: keep the last place, go straight to the next, cut the day, or drop thin users.",
    ),
]
MaxGap = Annotated[str, typer.Option("--max-gap", metavar="TIME", help="Longest gap that is filled, such as 1h.")]
MinCoverage = Annotated[
    float, typer.Option("--min-coverage", metavar="SHARE", help="Least share of known slots of a day that is kept.")
]
PlacesBy = Annotated[
    str,
    typer.Option(
        "--places",
        metavar="merge|grid|stays",
        help="What coordinates become: merged cells, cells, or where people stay.",
    ),
]
RegionFile = Annotated[
    Path | None, typer.Option("--regions", metavar="FILE", help="GeoJSON polygons that are to be the places.")
]
MapBox = Annotated[
    str | None,
    typer.Option("--box", metavar="S,W,N,E", help="The map in degrees; rows outside are dropped, too many refused."),
]
