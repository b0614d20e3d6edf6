"""
Keep prepared traces on disk, in a folder that `read_traces` reads back to the last bit.

    traces.parquet, traces.csv   one line per slot: user, date, slot, place (-1 missing)
    locations.csv                the places, in the order of their numbers
    prepare.json                 clock, settings, counts, and the sha256 of the files above; written last
"""

import csv
import hashlib
import io
import json
from dataclasses import dataclass
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from elsewhere.errors import InvalidTraces
from elsewhere.files import read_index, write_files
from elsewhere.traces.fixes import Preparation
from elsewhere.traces.model import Locations, Traces
from elsewhere.traces.write import write_traces

KIND, POOL = "elsewhere prepared traces", "elsewhere pool"
FORMAT = 1
TRACES = ("traces.parquet", "traces.csv")
INDEX = "prepare.json"
WORDS = ("name", "category", "category_users")  # columns of locations.csv beside the positions
LARGEST_INDEX = 1 << 24


@dataclass(frozen=True)
class Kept:
    """A file of prepared traces, and what it cannot say itself."""

    path: Path
    step: timedelta
    start: str
    tz: str
    locations: Locations


def keep_traces(traces: Traces, prepared: Preparation, folder: Path) -> list[str]:
    """Write prepared traces into a folder; the names of the files. Evidence is not kept."""
    columns = {"user": "uid"}
    if traces.dates is not None:
        columns["date"] = "date"
    several = np.column_stack(
        [traces.user, np.zeros(len(traces)) if traces.dates is None else traces.dates.astype(int)]
    )
    if len(np.unique(several, axis=0)) < len(traces):
        columns["trace"] = "piece" if traces.dates is not None else "day"
    columns |= {"slot": "slot", "place": "location"}
    by_number = traces.on(traces.locations.called(names=None))
    for name in TRACES:
        write_traces(by_number, folder / name, columns=columns)
    files = {}
    if traces.locations.has_coordinates or traces.locations.names or traces.locations.categories:
        files["locations.csv"] = _places(traces.locations)
        write_files(folder, files)
    names = [*TRACES, *files]
    index = {
        "kind": KIND,
        "format": FORMAT,
        "step_minutes": traces.step_minutes,
        "start": traces.start,
        "tz": traces.tz,
        "places": traces.R,
        "prepared": prepared.to_dict(),
        "files": {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names},
    }
    write_files(folder, {INDEX: (json.dumps(index, indent=1, allow_nan=False) + "\n").encode()})
    return [*names, INDEX]


def _places(locations: Locations) -> bytes:
    """Return the places as CSV: positions to the last digit, names and categories, where there are any."""
    sides = {"lat": locations.lat, "lng": locations.lon}
    if locations.xy is not None:
        sides = {"x": locations.xy[:, 0], "y": locations.xy[:, 1]}
    columns: dict[str, Any] = {name: map(repr, side.tolist()) for name, side in sides.items() if side is not None}
    words = zip(WORDS, (locations.names, locations.categories, locations.category_users), strict=True)
    columns |= {name: values for name, values in words if values is not None}
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return sink.getvalue().encode()


def _read_places(path: Path) -> Locations:
    """Return what `_places` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    columns = dict(zip(head, zip(*rows, strict=True), strict=True))
    where: dict[str, Any] = {"n": len(rows)}
    if "lat" in columns:
        where = {"lat": list(map(float, columns["lat"])), "lon": list(map(float, columns["lng"]))}
    elif "x" in columns:
        where = {"xy": np.column_stack([list(map(float, columns[side])) for side in ("x", "y")])}
    names, categories, people = (columns.get(name) for name in WORDS)
    return Locations(
        **where, names=names, categories=categories, category_users=None if people is None else list(map(int, people))
    )


def kept_in(source: Any) -> Kept | None:
    """Return the prepared traces at a path, a folder of `prepare` or a file in it; None if it is something else."""
    if not isinstance(source, (str, PathLike)):
        return None
    path, folder = Path(source), None
    try:
        folder = path if path.is_dir() else path.parent if path.name in TRACES else None
        if folder is None or not (folder / INDEX).is_file():
            return None
        index = read_index(folder / INDEX, LARGEST_INDEX)
    except (OSError, ValueError):
        # of ours by all other signs: what it said about its files is lost, and nobody may guess it
        if folder is not None and all((folder / name).exists() for name in TRACES):
            raise InvalidTraces(f"{INDEX} is damaged; prepare again.", code="E_CHANGED") from None
        return None
    if index.get("kind") != KIND:
        return None
    return _checked(folder, path.name if path.name in TRACES else TRACES[0], index)


def refuse_pool(source: Any) -> None:
    """Refuse a folder of fakes, which holds the same traces several times, with the name of the file to read."""
    if not isinstance(source, (str, PathLike)):
        return
    try:
        manifest = Path(source).is_dir() and read_index(Path(source) / "manifest.json", LARGEST_INDEX)
    except (OSError, ValueError):
        return
    if manifest and manifest.get("kind") == POOL:
        name = "fakes.csv" if (Path(source) / "fakes.csv").is_file() else "pool.parquet"
        raise InvalidTraces(
            f"{Path(source).name} is a folder of fakes that `elsewhere` wrote; give {name} in it.", code="E_FORMAT"
        )


def _checked(folder: Path, name: str, index: dict[str, Any]) -> Kept:
    try:
        if index["format"] != FORMAT:
            raise InvalidTraces(f"{INDEX} has another format than {FORMAT}, which this version reads.", code="E_FORMAT")
        wanted = [name, *(["locations.csv"] if "locations.csv" in index["files"] else [])]
        for each in wanted:
            if hashlib.sha256((folder / each).read_bytes()).hexdigest() != index["files"][each]:
                raise InvalidTraces(f"{each} is not the file that {INDEX} names; prepare it again.", code="E_CHANGED")
        locations = _read_places(folder / "locations.csv") if len(wanted) > 1 else Locations(n=index["places"])
        len(locations)  # a damaged index may name more than can be counted
        step = timedelta(minutes=float(index["step_minutes"]))
        return Kept(folder / name, step, str(index["start"]), str(index["tz"]), locations)
    except InvalidTraces:
        raise
    except (KeyError, TypeError, ValueError, OSError, OverflowError, AttributeError):
        raise InvalidTraces(
            f"{INDEX} and the files beside it do not fit together; prepare again.", code="E_CHANGED"
        ) from None
