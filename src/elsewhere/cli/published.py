"""What is written into a folder to publish: the fakes in several forms, the pool, and the manifest that lists them."""

import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elsewhere.cli.finish import REPORT

if TYPE_CHECKING:
    from elsewhere.fakes import Fakes
    from elsewhere.frame import Frame
    from elsewhere.pool import Pool
    from elsewhere.traces.fixes import Preparation

IKnow = Annotated[
    bool, typer.Option("--i-know", help="Write a laboratory run as if it were published; it stays stamped.")
]
Formats = Annotated[
    list[str] | None, typer.Option("--also", metavar="gpx|geojson|sglt", help="Write the fakes in this form too.")
]
ALSO = {"gpx": "fakes.gpx", "geojson": "fakes.geojson", "sglt": "fakes.trace"}
OURS = ("fakes.csv", "fakes.parquet", *ALSO.values(), "fakes.locations", REPORT)  # beside the pool


def as_read(fakes: "Fakes", read: "Preparation") -> "Fakes":
    """The same fakes, which remember the columns and the format of the input: they are published as it is."""
    # a column that was read as two things is written as one: where that is not the user, the usual ones are written
    columns = read.columns if "user" in read.columns else {}
    return replace(fakes, frame=replace(fakes.frame, columns=columns, format=read.format))


def write_pool(pool: "Pool", out: Path, frame: "Frame", also: list[str]) -> list[str]:
    """The fakes in the columns of the input, the pool, and last of all the manifest that lists every file."""
    from elsewhere.traces.places import name_beside
    from elsewhere.traces.write import write_traces

    columns = frame.columns or None
    if frame.format in ALSO:
        also = sorted({*also, frame.format})
    names = ["fakes.csv", "fakes.parquet", *(ALSO[form] for form in also)]
    for name in names:
        tabular = name in ("fakes.csv", "fakes.parquet")
        write_traces(pool.traces, out / name, columns=columns if tabular else None)
    if "sglt" in also and pool.traces.locations.has_coordinates:
        names.append(name_beside(ALSO["sglt"]))
    return seal(pool, out, names)


def undated(pool: "Pool", frame: "Frame") -> list[str]:
    """A word on dates that are nobody's, where the input had some."""
    if pool.traces.dates is not None or not {"time", "utc", "local", "date"} & set(frame.columns):
        return []
    return ["no date is shared by enough people: the fakes are dated 2001-01-01, a Monday."]


def seal(pool: "Pool", out: Path, names: list[str]) -> list[str]:
    """The pool with a manifest that lists the files `names` beside it, written last; the names of all files."""
    from elsewhere.files import write_files
    from elsewhere.pool import remove_earlier

    beside = {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names}
    # with --force: what an earlier run published would stand beside other fakes of the same seeds (E59)
    remove_earlier(out, names)
    write_files(out, pool.files(beside))
    now, folder = time.time_ns(), [*names, "pool.parquet", "places.parquet", "manifest.json"]
    for name in folder:
        # one time for all: how long the fakes took, or their judge, is not told (section 11)
        os.utime(out / name, ns=(now, now))
    return folder
