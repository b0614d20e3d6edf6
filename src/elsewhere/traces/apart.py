"""
A map found in some of the people alone: the deniable preset must not look at seeds before it has places and a clock.

Who is a seed is decided by a coin for each id, before anything is read. The input is read twice: first only the people
who are no seeds, who give places, clock and how gaps are filled; then everybody, on what those gave.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from elsewhere.traces.fixes import Preparation
from elsewhere.traces.locate import COARSE_METRES, Box, in_box
from elsewhere.traces.model import Floats, Ints, Traces, in_space
from elsewhere.traces.read import parsed_box, read_traces
from elsewhere.traces.regions import Regions
from elsewhere.traces.sources import opened_once

OF_OTHERS = ("given", "regions")  # places that were not found in the fixes


@dataclass(frozen=True, eq=False)
class FoundMap(Regions):
    """Places that were found in other people: a point is at the nearest, if that is within `reach` km and the box."""

    reach: float = np.inf
    box: Box | None = None

    def place_of(self, lat: Floats, lon: Floats) -> Ints:
        """Return the nearest place of each point; -1 where it is out of reach."""
        place, apart = self.locations.nearest(in_space(lat, lon))
        on = (apart <= self.reach) & (True if self.box is None else in_box(self.box, lat, lon))
        return np.where(on, place, -1).astype(np.int64)


def coin(key: bytes, label: str) -> bool:
    """
    Return the coin of a person: as good as a fair one for whoever does not know the key, and the same every time.

    Examples
    --------
    >>> [coin(b"a key of 32 bytes, of the system", person) for person in ("ann", "bob", "cid")]
    [False, False, True]

    """
    return bool(hmac.digest(key, label.encode(), "sha256")[0] & 1)


def read_apart(
    source: Any,
    *,
    key: bytes,
    report: Callable[[Preparation], None] | None = None,
    joined: Callable[[Traces], Traces] | None = None,
    **options: Any,
) -> Traces:
    """
    Return the traces of an input on a map that was found in those whose `coin` is not a seed's.

    The `Preparation` that `report` is called with names the seeds (`seeds`); None where there was no map to find, or
    where slots are numbered, so that everybody decides how many there are: then it is read as `read_traces` does.

    Parameters
    ----------
    source, options
        As for `read_traces`.
    key
        32 bytes of the operating system, to be forgotten.
    report
        As for `read_traces`.
    joined
        What is to be done to the map before others are read on it, from traces of people who are no seeds to traces on
        another map.

    """
    source = opened_once(source, allow_truncated=bool(options.get("allow_truncated")))
    reports: list[Preparation] = []
    if options.get("regions") is not None or options.get("locations") is not None:
        return read_traces(source, report=report, **options)
    others = read_traces(
        source, people=lambda label: not coin(key, label), report=reports.append, **{**options, "evidence": False}
    )
    found = reports[0]
    if found.places_by in OF_OTHERS or found.by == "slots":
        return read_traces(source, report=report, **options)
    fewer = others if joined is None else joined(others)
    place = FoundMap(
        fewer.locations,
        (),
        reach=COARSE_METRES / 1000 if found.map == "auto" else np.inf,
        box=parsed_box(options.get("box")),
    )
    # what was decided for the others holds for everybody; with places given, positions are treated one person at a time
    traces = read_traces(
        source,
        report=reports.append,
        **{
            **options,
            "regions": place,
            "columns": {**(options.get("columns") or {}), "place": None},
            "tz": found.tz,
            "places": found.places_by,
            "max_gap": found.max_gap_minutes,
        },
    )
    alike = ("places_by", "cells", "grid_metres", "map", "map_km", "max_gap_auto", "people_by_gap", "times", "columns")
    told = replace(
        reports[1],
        **{name: getattr(found, name) for name in alike},
        places_joined=fewer is not others,
        seeds=frozenset(str(label) for label in traces.labels if coin(key, str(label))),
        notes=(*reports[1].notes, "the map was found in people who are no seeds"),
    )
    if report is not None:
        report(told)
    return traces
