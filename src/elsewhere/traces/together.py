"""
Traces from several sources on one map: fakes are compared with real traces, so both must mean the same places.

The first source makes the map; the others are read onto it: coordinates go to the nearest place, numbers of places
stay what they are where both sources number the same places. What cannot be brought together is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from elsewhere.errors import InvalidTraces
from elsewhere.traces.columns import meaning
from elsewhere.traces.fixes import Preparation
from elsewhere.traces.model import Floats, Ints, Locations, Traces
from elsewhere.traces.places import Map, cell_centres, grid_cells, in_space, places_beside
from elsewhere.traces.read import read_traces
from elsewhere.traces.sources import opened_once
from elsewhere.traces.tables import open_parts

MOST_ASTRAY = 0.05  # share of instants that may lie far from every place
FAR = 3.0  # times the distance between neighbouring places (95 % of them are nearer)
ON_PLACE_KM = 0.001  # coordinates of a place, written with six decimals
NEAREST_KM = 0.25  # what is nearer than this is never far


@dataclass(frozen=True, eq=False)
class Drawn(Map):
    """
    A map that was made of the fixes of one file, for the fixes of another.

    A point on a place is that place. Any other goes the way the first file's points went, by its grid cell, as far as
    that can be known: where cells were merged, to the place nearest to the middle of its cell.
    """

    grid_metres: float | None = None
    what: str = "the traces"
    notes: list[str] = field(default_factory=list)

    def place_of(self, lat: Floats, lon: Floats) -> Ints:
        """The place of each point; refused where too many lie far from every place."""
        place, km = _nearest(in_space(lat, lon), self.locations)
        self.notes.extend(_astray(km, self.locations, self.what))
        if self.grid_metres is not None:
            off = km > ON_PLACE_KM
            middle = in_space(*cell_centres(grid_cells(lat[off], lon[off], self.grid_metres), self.grid_metres))
            place[off] = _nearest(middle, self.locations)[0]
        return place


@dataclass(frozen=True, eq=False)
class Reader:
    """How files are read: `first` makes the map, `further` reads onto it."""

    step: str = "20min"
    cells: int | None = 400
    tz: str | None = None
    locations: Any = None
    more: Mapping[str, Any] = field(default_factory=dict)  # further keywords of `read_traces`

    @staticmethod
    def of(keywords: Mapping[str, Any]) -> "Reader":
        """A reader with these keywords of `read_traces`."""
        own = {name: value for name, value in keywords.items() if name in ("step", "cells", "tz", "locations")}
        return Reader(**own, more={name: value for name, value in keywords.items() if name not in own})

    def first(self, source: Any) -> tuple[Traces, Preparation]:
        """The source that makes the map, and what became of it."""
        told: list[Preparation] = []
        traces = read_traces(
            source,
            step=self.step,
            cells=self.cells,
            tz=self.tz,
            locations=self.locations,
            report=told.append,
            **self.more,
        )
        return traces, told[0]

    def further(self, source: Any, on: Traces, made: Preparation, what: str) -> tuple[Traces, tuple[str, ...]]:
        """
        Another source, on the map of the first, and what a reader should know about it.

        `made` is what became of the first source, `what` the other's name in messages.
        """
        cut = bool(self.more.get("allow_truncated"))
        source = opened_once(source, allow_truncated=cut)  # it is looked at twice
        options: dict[str, Any] = {**self.more, "step": self.step, "cells": None, "tz": self.tz}
        if self.more.get("regions") is not None:
            return onto(read_traces(source, **options), on, what)  # the same polygons are the same places
        options.pop("places", None)  # what coordinates become is settled by the first source
        given = self.locations if self.locations is not None else places_beside(source)
        if given is not None:
            return onto(read_traces(source, locations=given, **options), on, what)
        table = open_parts(
            source,
            encoding=options.get("encoding", "utf-8"),
            roles=lambda names, headed, records: meaning(names, headed, records, options.get("columns")),
            allow_truncated=cut,
        ).sample
        roles = table.found.roles if table.found is not None else {}
        if on.locations.lat is not None and ({"lat", "lon"} <= roles.keys() or "geometry" in roles):
            # ids of places are each file's own; coordinates are everybody's
            drawn = Drawn(on.locations, None, made.grid_metres, what)
            options["columns"] = {**(options.get("columns") or {}), "place": None}
            read = read_traces(source, locations=drawn, **options)
            return onto(read, on, what)[0], tuple(drawn.notes)
        if made.grid_metres is not None or any("numbered anew" in note for note in made.notes):
            raise InvalidTraces(
                f"{what}: its places are ids, and those of the real traces were made of that file alone; give the "
                "places of both with `--locations`.",
                code="E_MISMATCH",
            )
        try:
            return onto(read_traces(source, locations=on.locations, **options), on, what)
        except InvalidTraces as error:
            if error.code == "E_INDEX" and not on.locations.has_coordinates:
                raise InvalidTraces(
                    f"{what}: a place that no real trace visits; give the places of both with `--locations`.",
                    code="E_MISMATCH",
                ) from None
            raise


def onto(traces: Traces, like: Traces, what: str = "the traces") -> tuple[Traces, tuple[str, ...]]:
    """
    The same traces on the map of `like`, and what a reader should know.

    Places with coordinates go to the nearest place of that map; more than 5 % of the instants far from every place
    (three times the usual distance between neighbours) are another region, and refused. Places without coordinates
    keep their numbers where both maps have equally many.

    Examples
    --------
    >>> town = Traces([[0, 1]], Locations(xy=[[0, 0], [3, 0]]))
    >>> fake = Traces([[1, 0]], Locations(xy=[[3, 0.1], [0, 0]]))
    >>> onto(fake, town)[0].r.tolist()
    [[0, 1]]

    """
    if traces.L != like.L or traces.step_minutes != like.step_minutes:
        raise InvalidTraces(
            f"{what} must have the {like.L} instants of {like.step_minutes:g} minutes of the real traces, got "
            f"{traces.L} of {traces.step_minutes:g}.",
            code="E_SHAPE",
        )
    here, there = traces.locations, like.locations
    if here == there:
        return traces, ()
    notes: tuple[str, ...] = ()
    if (here.lat is not None and there.lat is not None) or (here.xy is not None and there.xy is not None):
        place, km = _nearest(_points(here), there)
        known = traces.r >= 0
        notes = _astray(km[traces.r[known]], there, what)
        r = np.where(known, place[traces.r], -1)
    elif len(here) == len(there):
        r = np.asarray(traces.r, dtype=np.int64)
    else:
        raise InvalidTraces(
            f"{what} has {len(here)} places without coordinates, the real traces have {len(there)}; give the places of "
            "both with `--locations`.",
            code="E_MISMATCH",
        )
    moved = Traces(
        r,
        there,
        users=traces.users,
        dates=traces.dates,
        step_minutes=traces.step_minutes,
        start=traces.start,
        tz=traces.tz,
    )
    return moved, notes


def _astray(km: Floats, locations: Locations, what: str) -> tuple[str, ...]:
    """A note where some points lie far from every place; refused where too many do."""
    limit = _far(locations)
    share = float((km > limit).mean())
    if share > MOST_ASTRAY:
        raise InvalidTraces(
            f"{what}: {share:.0%} of its points lie more than {limit:.2g} km from every place of the real traces: "
            "another region, or latitude and longitude swapped?",
            code="E_MISMATCH",
        )
    return (f"{what}: {share:.1%} of its points lie far from every place; each counts as the nearest.",) * (share > 0)


def _points(locations: Locations) -> Floats:
    if locations.xy is not None:
        return locations.xy
    if locations.lat is None or locations.lon is None:
        raise InvalidTraces("places without coordinates have no neighbours.", code="E_MISMATCH")
    return in_space(locations.lat, locations.lon)


def _nearest(points: Floats, places: Locations) -> tuple[Ints, Floats]:
    from scipy.spatial import cKDTree

    km, place = cKDTree(_points(places)).query(points)
    return np.asarray(place, dtype=np.int64), np.asarray(km, dtype=np.float64)


def _far(locations: Locations) -> float:
    from scipy.spatial import cKDTree

    if len(locations) == 1:
        return NEAREST_KM
    x = _points(locations)
    apart = np.asarray(cKDTree(x).query(x, k=2)[0])[:, 1]
    return max(NEAREST_KM, FAR * float(np.quantile(apart, 0.95)))


def read_together(sources: Mapping[str, Any], **options: Any) -> tuple[dict[str, Traces], tuple[str, ...]]:
    """
    Traces by name, all on the map of the first, and notes; `options` as for `Reader`.

    Examples
    --------
    >>> days = {"uid": ["a"] * 4, "slot": [0, 1, 2, 3], "loc": [0, 0, 1, 2]}
    >>> fakes = {"uid": ["f"] * 4, "slot": [0, 1, 2, 3], "loc": [1, 1, 0, 0]}
    >>> found, notes = read_together({"real": days, "fakes": fakes})
    >>> found["fakes"].R
    3

    """
    reader = Reader(**options)
    (name, source), *others = sources.items()
    like, made = reader.first(source)
    found, notes = {name: like}, [f"{name}: {note}" for note in made.notes]
    for name, source in others:
        found[name], more = reader.further(source, like, made, name)
        notes += more
    return found, tuple(notes)
