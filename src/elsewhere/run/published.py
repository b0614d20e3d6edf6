"""What is written into a folder to publish: the fakes in several forms, the pool, and the manifest that lists them."""

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from elsewhere.errors import require_choice
from elsewhere.run.finish import REPORT

if TYPE_CHECKING:
    from elsewhere.fakes import Fakes
    from elsewhere.frame import Frame
    from elsewhere.pool import Pool
    from elsewhere.traces.fixes import Preparation
    from elsewhere.traces.model import Traces

ALSO = {"gpx": "fakes.gpx", "geojson": "fakes.geojson", "kepler": "fakes.kepler.geojson", "sglt": "fakes.trace"}
LINES = ("slots", "visits", "events")
OURS = ("fakes.csv", "fakes.parquet", *ALSO.values(), "fakes.locations", REPORT)  # beside the pool


FEWEST = 5  # what is counted of fewer is for the owner alone


def as_read(fakes: "Fakes", read: "Preparation") -> "Fakes":
    """The same fakes, which remember the columns and the format of the input: they are published as it is."""
    # a column that was read as two things is written as one: where that is not the user, the usual ones are written
    columns = read.columns if "user" in read.columns else {}
    reading = read.in_public(max(FEWEST, fakes.preset.m_min))
    frame = replace(fakes.frame, columns=columns, format=read.format, times=read.times, reading=reading)
    fakes = replace(fakes, frame=frame)
    return _on_this_map(fakes, read) if fakes.preset.name == "deniable" else fakes


def _on_this_map(fakes: "Fakes", read: "Preparation") -> "Fakes":
    """The same fakes; their certificate says so where the map was found in people whom it protects."""
    from elsewhere.deny import COINS, THE_MAP

    if read.seeds is not None:
        certificate = fakes.certificate
        if not fakes.laboratory:  # which claims nothing
            certificate = certificate.with_condition(THE_MAP, "met").with_condition(COINS, "met")
        return replace(fakes, certificate=certificate)
    if read.places_by in ("given", "regions") and not read.places_joined:
        return fakes
    note = "the places were found in the input, seeds included; `grid`, `locations` or `regions` give others."
    certificate = fakes.certificate.with_condition(THE_MAP, "not met")
    return replace(fakes, certificate=certificate, notes=(*fakes.notes, note))


def with_withheld(fakes: "Fakes", read: "Preparation", traces: "Traces") -> "tuple[Fakes, Preparation]":
    """
    The same, with a note on the places that are in no fake because too few people share them.

    It is a note of the fakes, for everybody, or of the reading, for the owner alone: where a theorem covers the fakes,
    which such a count is not covered by, and where it would count fewer than five places.
    """
    note, places = on_withheld(fakes, traces)
    if not places:
        return fakes, read
    if fakes.covered or places < FEWEST:
        return fakes, replace(read, notes=(*read.notes, note))
    return replace(fakes, notes=(*fakes.notes, note)), read


def on_withheld(fakes: "Fakes", traces: "Traces") -> tuple[str, int]:
    """How many places are withheld, and of which category most are, where enough people and places are behind it."""
    import numpy as np

    frame = fakes.frame
    fewest, categories = max(FEWEST, frame.m_min), frame.locations.categories
    row, slot = np.nonzero(traces.r >= 0)
    place, user = traces.r[row, slot], traces.user[row]
    visited = np.unique(place)
    lost = visited[~frame.known[visited]]
    mostly = ""
    if categories is not None and len(lost):
        words = np.array(categories, dtype=object)
        names, count = np.unique(words[lost].astype(str), return_counts=True)
        name, many = str(names[np.argmax(count)]), int(count.max())
        behind = np.unique(user[~frame.known[place] & (words[place] == name)])
        if name and many >= FEWEST and 2 * many > len(lost) and len(behind) >= fewest:
            mostly = f", mostly {name!r},"
    note = (
        f"{len(lost):,} of {len(visited):,} places{mostly} {'is' if len(lost) == 1 else 'are'} in no fake: fewer than "
        f"{frame.m_min} of the people whom the model was learnt from go there (`m_min`)."
    )
    return note, len(lost)


def check_forms(also: Sequence[str], out_as: str | None) -> None:
    """Refuse forms that do not exist, before any work."""
    for form in also:
        require_choice("also", form, tuple(ALSO))
    if out_as is not None:
        require_choice("out_as", out_as, LINES)


def write_fakes(pool: "Pool", out: Path, frame: "Frame", also: Sequence[str], out_as: str | None = None) -> list[str]:
    """Write the fakes in the columns of the input, and in other forms; the names of the files, for `seal`."""
    from elsewhere.traces.maps import name_beside
    from elsewhere.traces.write import write_traces

    columns = frame.columns or None
    if frame.format in ALSO:
        also = sorted({*also, frame.format})
    names = ["fakes.csv", "fakes.parquet", *(ALSO[form] for form in also)]
    lines = out_as or ("visits" if "left" in frame.columns else "slots")
    for name in names:
        if name in ("fakes.csv", "fakes.parquet"):
            write_traces(pool.traces, out / name, columns=columns, out_as=lines, times=frame.times)
        else:
            write_traces(pool.traces, out / name)
    if "sglt" in also and pool.traces.locations.has_coordinates:
        names.append(name_beside(ALSO["sglt"]))
    return names


def on_output(pool: "Pool", frame: "Frame", also: Sequence[str], out_as: str | None = None) -> "tuple[Pool, list[str]]":
    """The pool with words on what the dates of the fakes mean, and on fakes without a line among events; the words."""
    import numpy as np

    notes = [note for note in pool.provenance["notes"] if note.startswith(("dates: ", "categories of places"))]
    # every form that is no table has times, but SGLT
    dated = bool({"time", "utc", "local", "date", "arrived"} & set(frame.columns)) or not (
        frame.columns or frame.format in ("", "sglt")
    )
    if pool.traces.dates is None and (dated or set(also) - {"sglt"} or out_as in ("visits", "events")):
        why = "the input has no dates"
        if pool.provenance["preset"] == "private":
            why = "on which days people have data is theirs, and is not published"
        elif dated:
            why = "no span of days is shared by enough people, or the model was learnt beforehand"
        notes.append(f"{why}: the fakes are dated 2001-01-01, a Monday, and no analysis by weekday or date holds.")
    if out_as == "events":
        still = int(np.all(pool.traces.r == pool.traces.r[:, :1], axis=1).sum())
        notes += [f"{still} fakes stay at one place all day: they arrive nowhere, and have no event."] * (still > 0)
    said = pool.provenance["notes"]
    more = [*said, *(note for note in notes if note not in said)]
    return replace(pool, provenance={**pool.provenance, "notes": more}), notes


def seal(pool: "Pool", out: Path, names: list[str]) -> list[str]:
    """The pool with a manifest that lists the files `names` beside it, written last; the names of all files."""
    from elsewhere.files import write_files

    beside = {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names}
    write_files(out, pool.files(beside))
    now, folder = time.time_ns(), [*names, "pool.parquet", "places.parquet", "manifest.json"]
    for name in folder:
        # one time for all: how long the fakes took, or their judge, is not told (section 11)
        os.utime(out / name, ns=(now, now))
    return folder
