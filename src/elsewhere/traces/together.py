"""
Read more than once onto one map: several sources, or the seeds of a file on the map of its other people.

Fakes are compared with real traces slot by slot, on one map and one clock. The first source makes the map. A place of
another source is found on it by its name, where both have names; by its number, where both number their places alike;
else by its coordinates: it is where the nearest point of the first source went. So a file that is compared with itself,
or with some of its own rows, falls on the same places, merged cells or not. What cannot be brought together is refused,
with what to type.

The deniable preset must not look at seeds before it has places and a clock: `read_apart` decides by a coin for each id
who is a seed, before anything is read; it reads the people who are no seeds, who give places, clock and how gaps are
filled; then everybody, on what those gave.
"""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from elsewhere.errors import InvalidTraces, counted
from elsewhere.traces.fixes import Preparation
from elsewhere.traces.maps import (
    COARSE_METRES,
    Box,
    Map,
    Regions,
    in_box,
    parsed_box,
)
from elsewhere.traces.model import (
    MINUTES_PER_DAY,
    Floats,
    Ints,
    Locations,
    Traces,
    clock_minutes,
    clock_text,
    in_space,
    numbers_of,
)
from elsewhere.traces.read import read_traces
from elsewhere.traces.rows import SAME_PLACE_KM
from elsewhere.traces.sources import opened_once

MOST_ASTRAY = 0.05  # share of slots that may lie far from every place
MOST_OUTSIDE = 0.5  # the same where the map was cut to where people are
FAR = 3.0  # times the distance between neighbouring places (95 % of them are nearer)
ON_PLACE_KM = 0.001  # coordinates of a place, written with six decimals
NEAREST_KM = 0.25  # what is nearer than this is never far
NO_ZONE, IN_UTC = "times carry no offset", "times are UTC"  # how notes of a reading begin
OF_ONE_FILE = ("columns", "format", "date_format")  # say how one file is written; another file may be written otherwise
OF_OTHERS = ("given", "regions")  # places that were not found in the fixes


@dataclass(frozen=True, eq=False)
class Nearest(Map):
    """Places for points that were written with the coordinates of places; `off` counts those that were not."""

    off: list[int] = field(default_factory=list)

    def place_of(self, lat: Floats, lon: Floats) -> Ints:
        """Return the nearest place of each point."""
        place, km = self.locations.nearest(in_space(lat, lon))
        self.off.append(int((km > ON_PLACE_KM).sum()))
        return place


@dataclass(frozen=True, eq=False)
class First:
    """The source that makes the map: its traces, what became of it, and how it was read."""

    source: Any = field(repr=False)
    traces: Traces
    made: Preparation
    keywords: Mapping[str, Any] = field(default_factory=dict)  # of `read_traces`

    @staticmethod
    def read(source: Any, **keywords: Any) -> "First":
        """Read the source that makes the map, with keywords of `read_traces`."""
        source = opened_once(source, allow_truncated=bool(keywords.get("allow_truncated")))  # perhaps read twice
        return First(source, *_read(source, keywords), keywords)

    def further(self, source: Any, what: str = "the traces") -> tuple[Traces, tuple[str, ...]]:
        """
        Return another source on the map of the first, and what a reader should know; `what` is its name in messages.

        The map is that of the first source, or a larger one that begins with it where places have no coordinates and
        the other source visits further ones: `Traces.on` puts the first on it.
        """
        source = opened_once(source, allow_truncated=bool(self.keywords.get("allow_truncated")))
        on = self.traces
        nameless = on.tz == "UTC" and _says(self.made, NO_ZONE)
        fine, report, notes = self._finely(source, what)
        if report.tz != on.tz and self.keywords.get("tz") is None and not nameless:
            fine, report, notes = self._finely(source, what, tz=on.tz)
        if nameless and _says(report, IN_UTC) and report.tz == "UTC":
            notes += (
                f"{what}: its times are UTC, those of the real traces name no zone; give `tz` if they are local.",
            )
        if same_map(fine.locations, on.locations):
            return fine, notes
        if fine.locations.lat is not None and not on.locations.has_coordinates:
            fine = self._without_coordinates(source) or fine
        if fine.locations.lat is None or on.locations.lat is None:
            placed_traces, more = onto(fine, on, what, numbered=self.made.grid_metres is None)
            return placed_traces, (*notes, *more)
        merged = self.made.places < self.made.places_found
        if (merged or self.made.places_by in ("stays", "points")) and report.places_found <= on.R:
            traces = self._on_places(source)
            if traces is not None:
                return traces, notes
        if merged:
            return self._where_it_went(fine, what, notes)
        placed_traces, more = onto(fine, on, what, cut=self._cut)
        return placed_traces, (*notes, *more)

    def on(self, locations: Locations) -> "First":
        """Return the same on a larger map that begins with its own, as `further` may give."""
        return self if same_map(locations, self.traces.locations) else replace(self, traces=self.traces.on(locations))

    def _finely(self, source: Any, what: str, **more: Any) -> tuple[Traces, Preparation, tuple[str, ...]]:
        """Read a source as the first was read, but merge no places; other columns than the first has are found."""
        options = {**self.keywords, **self._settled(), "cells": None, **more}
        try:
            return *_read(source, options), ()
        except InvalidTraces as error:
            own = {name: options.pop(name) for name in OF_ONE_FILE if options.get(name) not in (None, "auto")}
            if not own:
                raise
            try:
                read = _read(source, options)
            except InvalidTraces:
                raise error from None
        left = " and ".join(f"`{name}`" for name in own)
        return *read, (f"{what}: read without {left}, which does not fit it.",)

    def _settled(self) -> dict[str, Any]:
        """Return what the first reading has found out for itself, so that another one does the same."""
        settings: dict[str, Any] = {}
        if self.keywords.get("step", "auto") == "auto" and self.made.step_minutes is not None:
            settings["step"] = self.made.step_minutes
        if self.made.grid_metres is not None:
            settings["grid_metres"] = self.made.grid_metres
        if self.made.max_gap_minutes is not None:
            settings["max_gap"] = self.made.max_gap_minutes
        return settings

    def _without_coordinates(self, source: Any) -> Traces | None:
        """Return the source with its places as names or numbers, as the first has them; None where it has neither."""
        bare = {**(self.keywords.get("columns") or {}), "lat": None, "lon": None, "geometry": None}
        try:
            return _read(source, {**self.keywords, **self._settled(), "cells": None, "columns": bare})[0]
        except InvalidTraces:
            return None

    def _on_places(self, source: Any) -> Traces | None:
        """Return the source where its points have the coordinates of the places, as our own fakes do; else None."""
        map_ = Nearest(self.traces.locations)
        options = {**self.keywords, **self._settled(), "cells": None, "locations": map_}
        options["columns"] = {**(self.keywords.get("columns") or {}), "place": None}
        try:
            traces, _ = _read(source, options)
        except InvalidTraces:
            return None
        return traces if map_.off and not any(map_.off) else None

    @property
    def _cut(self) -> bool:
        return getattr(self.made, "map", "whole") == "auto"

    @cached_property
    def _cells(self) -> tuple[Traces, Ints] | None:
        """Return the first source before its places were merged, and the place that each cell became."""
        fine, _ = _read(self.source, {**self.keywords, **self._settled(), "cells": None})
        if fine.r.shape != self.traces.r.shape or not np.array_equal(fine.r >= 0, self.traces.r >= 0):
            return None
        known = fine.r >= 0
        pair, count = np.unique(
            fine.r[known].astype(np.int64) * self.traces.R + self.traces.r[known], return_counts=True
        )
        becomes = np.full(fine.R, -1, dtype=np.int64)
        order = np.argsort(count, kind="stable")  # the place of most of its slots comes last, and stays
        becomes[pair[order] // self.traces.R] = pair[order] % self.traces.R
        return fine, becomes

    def _where_it_went(self, fine: Traces, what: str, notes: tuple[str, ...]) -> tuple[Traces, tuple[str, ...]]:
        """Return each cell at the place that the nearest cell of the first source became."""
        on, cells = self.traces, self._cells
        if cells is None:
            traces, more = onto(fine, on, what, cut=self._cut)
            return traces, (*notes, *more)
        first, becomes = cells
        if same_map(fine.locations, first.locations) and np.array_equal(fine.r, first.r):
            return fine.on(on.locations, on.r), notes  # the same content: the same places
        places = np.flatnonzero(becomes >= 0)
        near, km = first.locations.select(places).nearest(fine.locations.points())
        cell = places[near]
        # a name says which place it is even where its coordinates were measured otherwise
        visited_names = [
            name if at >= 0 else "" for name, at in zip(first.locations.names or (), becomes, strict=False)
        ]
        called = numbers_of(fine.locations.names or [""] * fine.R, visited_names)
        if not _same_names(fine.locations, first.locations, called):
            called[:] = -1
        cell, km = np.where(called >= 0, called, cell), np.where(called >= 0, 0.0, km)
        traces, more = _put(fine, on.locations, becomes[cell], km, what, cut=self._cut)
        return traces, (*notes, *more)


def _says(report: Preparation, what: str) -> bool:
    return any(note.startswith(what) for note in report.notes)


def _read(source: Any, keywords: Mapping[str, Any]) -> tuple[Traces, Preparation]:
    reports: list[Preparation] = []
    traces = read_traces(source, report=reports.append, **keywords)
    return traces, reports[0]


def same_map(here: Locations, there: Locations) -> bool:
    """Tell whether two maps have the same places in the same order, under the same names."""
    return here == there and (here.names or ()) == (there.names or ())


def onto(
    traces: Traces, like: Traces, what: str = "the traces", *, numbered: bool = True, cut: bool = False
) -> tuple[Traces, tuple[str, ...]]:
    """
    Return the same traces on the map of `like`, and what a reader should know.

    Places with names go to the place of that name. Places with coordinates go to the nearest place of that map; more
    than 5 % of the slots far from every place (three times the usual distance between neighbours) are another region,
    and refused. Plain numbers stay what they are, where the numbers of `like` are those of its own source (`numbered`);
    names and numbers that `like` does not have are added to its map (see `Traces.on`). `cut` says that the map leaves
    out where people seldom are: slots far from it are missing then.

    Examples
    --------
    >>> town = Traces([[0, 1]], Locations(xy=[[0, 0], [3, 0]]))
    >>> fake = Traces([[1, 0]], Locations(xy=[[3, 0.1], [0, 0]]))
    >>> onto(fake, town)[0].r.tolist()
    [[0, 1]]

    """
    here, there = traces.locations, like.locations
    if same_map(here, there):
        return traces, ()
    if by_name := _by_name(traces, like, what):
        return by_name
    if (here.lat is not None and there.lat is not None) or (here.xy is not None and there.xy is not None):
        return _put(traces, there, *there.nearest(here.points()), what, cut=cut)
    if numbered and here.names is None and there.names is None and not here.has_coordinates:
        most = int(traces.r.max()) + 1
        if most <= len(there):
            return traces.on(there), ()
        if not there.has_coordinates:
            return traces.on(Locations(n=most)), (_beyond(most - len(there), what),)
    kinds = [_kind(each) for each in (here, there)]
    raise InvalidTraces(
        f"{what}: its places are {kinds[0]}, those of the real traces are {kinds[1]}, and nothing says which is which; "
        "give the places of both with `locations`, a table of id, lat and lon.",
        code="E_MISMATCH",
    )


def _kind(locations: Locations) -> str:
    if locations.has_coordinates:
        return "coordinates" if locations.names is None else "names with coordinates"
    return f"{len(locations)} numbers" if locations.names is None else "names"


def _by_name(traces: Traces, like: Traces, what: str) -> tuple[Traces, tuple[str, ...]] | None:
    """Translate by the names of places, where both have names (or one has, and the other bare numbers)."""
    here, there = traces.locations, like.locations
    sides = [(each.names, each.has_coordinates) for each in (here, there)]
    if all(names is None for names, _ in sides) or any(names is None and located for names, located in sides):
        return None
    own, others = (each.names or tuple(str(i) for i in range(len(each))) for each in (here, there))
    places = np.unique(traces.r[traces.r >= 0])
    place = numbers_of(own, others)
    known, unknown = places[place[places] >= 0], places[place[places] < 0]
    if len(known) == 0 or not _same_names(here, there, place):
        return None  # another set of names altogether
    if here.has_coordinates and there.has_coordinates:
        apart = np.linalg.norm(here.points()[known] - there.points()[place[known]], axis=1)
        if np.median(apart) > _far(there):
            return None  # ids are each file's own here: the same ones lie elsewhere
    notes: tuple[str, ...] = ()
    where = there
    if len(unknown) and there.has_coordinates:
        if not here.has_coordinates:
            raise InvalidTraces(
                f"{what}: {len(unknown)} of its {len(places)} places are not among those of the real traces; give the "
                "places of both with `locations`, a table of id, lat and lon.",
                code="E_MISMATCH",
            )
        place[unknown] = there.nearest(here.points()[unknown])[0]
        notes = (f"{what}: {len(unknown)} of its {len(places)} places are new; each counts as the nearest known one.",)
    elif len(unknown):
        place[unknown] = len(there) + np.arange(len(unknown))
        where = Locations(n=len(there) + len(unknown), names=[*others, *(own[i] for i in unknown)])
        notes = (_beyond(len(unknown), what),)
    return traces.on(where, np.where(traces.r >= 0, place[traces.r], -1)), notes


def _same_names(here: Locations, there: Locations, place: Ints) -> bool:
    """Tell whether names mean the same places in both, as far as coordinates tell: ids are often each file's own."""
    both = np.flatnonzero(place >= 0)
    if len(both) == 0 or here.lat is None or there.lat is None:
        return True
    apart = np.linalg.norm(here.points()[both] - there.points()[place[both]], axis=1)
    return bool((apart > SAME_PLACE_KM).mean() <= MOST_ASTRAY)


def _beyond(places: int, what: str) -> str:
    return f"{what}: {counted(places, 'place')} that no real day visits."


def common_slots(traces: Traces, like: Traces, what: str) -> tuple[slice, slice]:
    """
    Return the slots of `traces` and those of `like` that are the same times of the day.

    Refused, with what to type, where the lengths of slots differ or seem to.

    Examples
    --------
    >>> day = Traces([[0] * 24], Locations(n=1), step_minutes=60)
    >>> morning = Traces([[0] * 20], Locations(n=1), step_minutes=60, start="04:00")
    >>> common_slots(morning, day, "the fakes")
    (slice(0, 20, None), slice(4, 24, None))

    """
    step = like.step_minutes
    ahead = (clock_minutes(traces.start) - clock_minutes(like.start)) / step
    slots = [f"{t.L} slots of {t.step_minutes:g} minutes from {t.start}" for t in (traces, like)]
    text = f"{what} has {slots[0]} in a day, the real traces have {slots[1]}"
    if traces.step_minutes != step:
        raise InvalidTraces(f"{text}; give `step` {traces.step_minutes:g}min.", code="E_SHAPE")
    if traces.L == like.L and ahead == 0:
        return slice(0, traces.L), slice(0, like.L)
    if ahead != int(ahead):
        raise InvalidTraces(f"{text}: no slot of one is a slot of the other.", code="E_SHAPE")
    shorter = min(traces.L, like.L)
    low, high = max(0, int(ahead)), min(like.L, int(ahead) + traces.L)
    # a file of numbered slots does not tell how long they are: half as many are rather slots of twice the length
    if high - low < shorter or 2 * shorter <= max(traces.L, like.L):
        length = MINUTES_PER_DAY / traces.L
        hint = f"; if its slots are {length:g} minutes long, give `step` {length:g}min" if length == int(length) else ""
        raise InvalidTraces(f"{text}{hint}.", code="E_SHAPE")
    return slice(low - int(ahead), high - int(ahead)), slice(low, high)


def cropped(traces: Traces, slots: slice) -> Traces:
    """Return these slots of all rows; rows without any known slot among them are left out."""
    if slots == slice(0, traces.L):
        return traces
    r = traces.r[:, slots]
    rows = np.flatnonzero((r >= 0).any(axis=1))
    if len(rows) == 0:
        raise InvalidTraces("no trace is known at the times of day that both have.", code="E_EMPTY")
    minute = (clock_minutes(traces.start) + slots.start * traces.step_minutes) % MINUTES_PER_DAY
    return Traces(
        r[rows],
        traces.locations,
        users=traces.users[rows],
        dates=None if traces.dates is None else traces.dates[rows],
        step_minutes=traces.step_minutes,
        start=clock_text(minute),
        tz=traces.tz,
    )


def _put(
    traces: Traces, locations: Locations, place: Ints, km: Floats, what: str, *, cut: bool
) -> tuple[Traces, tuple[str, ...]]:
    """
    Put each place of the traces at the given one, `km` away; a note where some are far, refused where too many are.

    What is far counts as the nearest place; on a map that was `cut` to where people are, it is outside and missing, as
    such slots of the first source are.
    """
    known, limit = traces.r >= 0, _far(locations)
    far = known & (km[traces.r] > limit)
    share = float(far.sum() / known.sum())
    if share > (MOST_OUTSIDE if cut else MOST_ASTRAY):
        raise InvalidTraces(
            f"{what}: {share:.0%} of its points lie more than {limit:.2g} km from every place of the real traces: "
            "another region, or latitude and longitude swapped?",
            code="E_MISMATCH",
        )
    r = np.where(known, place[traces.r], -1)
    if not far.any():
        return traces.on(locations, r), ()
    if not cut:
        notes = (f"{what}: {share:.1%} of its points lie far from every place; each counts as the nearest.",)
        return traces.on(locations, r), notes
    r[far] = -1
    there = np.flatnonzero((r >= 0).any(axis=1))
    left = f"{what}: {share:.1%} of its points lie outside the map of the real traces and are left out."
    return traces.select(there).on(locations, r[there]), (left,)


def _far(locations: Locations) -> float:
    from scipy.spatial import cKDTree

    if len(locations) == 1:
        return NEAREST_KM
    x = locations.points()
    apart = np.asarray(cKDTree(x).query(x, k=2)[0])[:, 1]
    return max(NEAREST_KM, FAR * float(np.quantile(apart, 0.95)))


def read_together(sources: Mapping[str, Any], **options: Any) -> tuple[dict[str, Traces], tuple[str, ...]]:
    """
    Return traces by name, all on the map of the first, and notes; `options` as for `read_traces`.

    Examples
    --------
    >>> days = {"uid": ["a"] * 4, "slot": [0, 1, 2, 3], "loc": [0, 0, 1, 2]}
    >>> fakes = {"uid": ["f"] * 4, "slot": [0, 1, 2, 3], "loc": [1, 1, 0, 0]}
    >>> found, notes = read_together({"real": days, "fakes": fakes})
    >>> found["fakes"].R
    3

    """
    (name, source), *others = sources.items()
    first = First.read(source, **options)
    traces_by_name, notes = {name: first.traces}, [f"{name}: {note}" for note in first.made.notes]
    for name, source in others:
        traces_by_name[name], more = first.further(source, name)
        common_slots(traces_by_name[name], first.traces, name)
        first = first.on(traces_by_name[name].locations)
        notes += more
    return {name: traces.on(first.traces.locations) for name, traces in traces_by_name.items()}, tuple(notes)


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
    join: Callable[[Traces], Traces] | None = None,
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
    join
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
    of_others = reports[0]
    if of_others.places_by in OF_OTHERS or of_others.by == "slots":
        return read_traces(source, report=report, **options)
    fewer = others if join is None else join(others)
    place = FoundMap(
        fewer.locations,
        (),
        reach=COARSE_METRES / 1000 if of_others.map == "auto" else np.inf,
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
            "tz": of_others.tz,
            "places": "grid" if of_others.places_by == "points" else of_others.places_by,
            "max_gap": of_others.max_gap_minutes,
        },
    )
    alike = ("places_by", "cells", "grid_metres", "map", "map_km", "max_gap_auto", "people_by_gap", "times", "columns")
    of_all = replace(
        reports[1],
        **{name: getattr(of_others, name) for name in alike},
        places_joined=fewer is not others,
        seeds=frozenset(str(label) for label in traces.labels if coin(key, str(label))),
        notes=(*reports[1].notes, "the map was found in people who are no seeds"),
    )
    if report is not None:
        report(of_all)
    return traces
