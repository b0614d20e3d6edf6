"""
Read traces from tables, tracks, exports of phones and frames of any known format; and several sources on one map.

Fakes are compared with real traces slot by slot, on one map and one clock. The first source makes the map. A place of
another source is matched by its name, where both have names; by its number, where both number their places alike; else
by its coordinates: it becomes the place of the nearest point of the first source. So a file that is compared with
itself, or with some of its own rows, gets the same places, whether cells were merged or not. Sources that cannot be
matched are refused with a message that says what to type.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from elsewhere.errors import InvalidParameter, InvalidTraces, counted, require_between
from elsewhere.traces.clock import holds_time_of_day
from elsewhere.traces.columns import CELL, WIDE, Meaning, check_columns, interpret_columns, names_people, quote_columns
from elsewhere.traces.fixes import SECONDS_PER_DAY, Fixes, Preparation
from elsewhere.traces.formats import open_parts
from elsewhere.traces.maps import Map, find_places_beside, parse_box, read_places, read_regions
from elsewhere.traces.model import (
    MINUTES_PER_DAY,
    Floats,
    Ints,
    Locations,
    Traces,
    clock_minutes,
    clock_text,
    match_names,
    to_xyz,
    zone_of,
)
from elsewhere.traces.prepare import Settings, prepare_fixes, prepare_slots
from elsewhere.traces.rows import SAME_PLACE_KM, Shape, add_cells, read_fixes, read_slots, to_long_table
from elsewhere.traces.sources import Parts, Table, load_pipe, printable, read_labels, read_users
from elsewhere.traces.write import find_prepared

A_DAY = np.timedelta64(1, "D")
OF_SETTINGS = ("gaps", "max_gap", "min_coverage", "map", "places", "grid_metres", "evidence")
# default values of the options that are no fields of `Settings`
DEFAULTS = {
    "start": None,
    "regions": None,
    "date_format": None,
    "encoding": "utf-8",
    "max_bad": 0.01,
    "box": None,
    "lon360": False,
    "any_date": False,
    "allow_truncated": False,
}
MOST_ASTRAY = 0.05  # share of slots that may lie far from every place
MOST_OUTSIDE = 0.5  # the same where the map was cut to where people are
FAR = 3.0  # a point is far at so many times the distance between neighbouring places (its 95 % quantile)
ON_PLACE_KM = 0.001  # coordinates of a place, written with six decimals
NEAREST_KM = 0.25  # a point that is nearer than this is never far
PEOPLE = "people are the values of column"  # how a note begins
NO_ZONE, IN_UTC = "times carry no offset", "times are UTC"  # how notes of a reading begin
OF_ONE_FILE = ("columns", "format", "date_format")  # options that may fit one file and not another


class ReadingOptions(TypedDict, total=False):
    """Further keywords of `read_traces`, which most inputs do not need."""

    start: str | None
    gaps: str
    max_gap: str | float | timedelta
    min_coverage: float
    map: str
    places: str
    regions: Any
    grid_metres: float
    evidence: bool
    date_format: str | None
    encoding: str
    max_bad: float
    box: tuple[float, float, float, float] | None
    lon360: bool
    any_date: bool
    allow_truncated: bool


def read_traces(
    source: Any,
    *,
    format: str = "auto",  # noqa: A002 (the word users expect)
    step: str | float | timedelta = "auto",
    cells: int | None = 400,
    tz: str | None = None,
    columns: Mapping[str, str | None] | None = None,
    locations: Any = None,
    people: Callable[[str], bool] | None = None,
    executor: Executor | None = None,
    report: Callable[[Preparation], None] | None = None,
    **options: Unpack[ReadingOptions],
) -> Traces:
    """
    Read traces from a file or a frame: users by rows of local days, time by slots, space by places.

    What the columns hold decides how they are read:

    - *fixes*: a user, a time, and `lat`/`lon` (or a geometry, or a place): cut into local days and slots, see
      `prepare_fixes`;
    - *visits*: the same with an arrival and a departure, called `arrived, left`, `started_at, finished_at`
      (trackintel), `datetime, leaving_datetime` (scikit-mobility) or alike: known from one to the other, with gaps
      between them;
    - *trips*: a time and a position (or place) of each end, called start and end, origin and destination, pickup and
      dropoff or alike: a fix where and when it begins, and one where and when it ends;
    - *lines*: a time and a list `[[lon, lat], ...]`: a fix every 15 seconds from that time on (the taxis of Porto);
    - *slots*: a user, a slot number, and a place number or `lat`/`lon`; also a `date` or `day` where a user has
      several rows, else each return to an earlier slot begins a new day without a date;
    - *wide slots*: a user and a column for each slot of the day, called by numbers that follow each other or by clock
      times; every line is a day;
    - *SGLT*: lines `user,time,location` of whole numbers from 1, without column names.

    A folder that `elsewhere prepare` wrote (or a file in it) is read back as it was prepared, whatever the options.

    Users keep their ids as text and come in numerical order if all ids are whole numbers, else in the order of
    characters; the order of lines in the file does not matter.

    Beside tables (CSV and kin, Parquet, JSON rows) it reads GeoLife `.plt`, GPX, GeoJSON, Google's Records, Semantic
    Location History and Timeline (Android, iOS) and Foursquare check-ins, each gzipped or not, and folders
    of files of one format. Where a format names no user, the file (or the folder it is in) is one.

    Places keep the ids that the input gives them (`Locations.names`), and the category that most people's rows give
    them (`Locations.categories`).

    Times without an offset are the local wall clock (of `tz`, if given, else of where the coordinates lie). Times with
    an offset are shown in `tz`; without `tz` in their own zone if they all have one other than UTC, else in the zone of
    the coordinates, else in UTC. Where a file has a UTC and a local column, the local one is the clock unless `tz` is
    given.

    Parameters
    ----------
    source
        A path (of a file or a folder), "-" for standard input, or a pandas, polars or Arrow table.
    format
        "auto", or "csv", "parquet", "excel", "sglt", "json", "gpx", "geojson", "geolife", "google",
        "foursquare" to refuse anything else.
    step
        Length of a slot. "auto" is 20 minutes; numbered slots of which there are 24, 48, 72, 96, 144, 288 or 1440 are a
        whole day.
    cells
        Most places to make of coordinates; None keeps all. Numbered places of slots and those of `locations` are never
        merged; places with ids of their own and coordinates only if there are more, and of these only those that fewer
        than eight people visit.
    tz
        IANA zone of the local clock.
    columns
        Role -> column name, for the roles user, household (where people are numbered within one), time, utc, local,
        date, arrived, left, slot, trace, lat, lon, geometry, accuracy, place, category, x, y (a cell of a grid),
        end_time, end_lat, end_lon, end_place (of a trip); "#3" is the third column, "file" (as the user) the name of
        the file, unless a column is called so; None leaves a role out.
    locations
        The places that place numbers point into: `Locations`, or a table with `lat` and `lon` and perhaps an id
        column, or lines "x, y" in km. By default the file `...locations...` beside `...trace...`, or a table of
        places (towers, stations, venues) beside it that has all ids, if there is one.
    start
        Local time "HH:MM" of the first slot, for slots and SGLT; by default told from the times or slot numbers.
    gaps, max_gap, min_coverage
        What happens to slots without a fix: "hold", "interpolate", "split" or "drop", up to which gap ("auto": the
        shortest of 1, 3, 6, 12, 24 h that keeps enough people), and how much of a day must be known, see
        `Settings`.
    map, box
        "auto": where people are nearly all the time, travellers' slots are left out; "whole": everywhere anybody was.
        A `box` (south, west, north, east) in degrees is the map. Rows outside are counted, and are no bad rows.
    places, regions, grid_metres
        What places coordinates become: "shared", "merge", "grid" or "stays", or the polygons of a GeoJSON file, see
        `Settings`.
    evidence
        Whether an accuracy radius gives weights over the places within it, for `fit_profiles(missing="gibbs")`.
    date_format
        How to read dates that do not put the year first, as for `strptime`.
    encoding
        Of a text file.
    max_bad
        Share of rows that may be unreadable, or have more or fewer fields than the first line: they are dropped and
        counted; above it the file is refused.
    lon360
        Longitudes run from 0 to 360.
    any_date
        Keep fixes dated before 2000 or later than tomorrow, which are dropped otherwise.
    allow_truncated
        Leave out a last line or record that is cut off, instead of refusing the file; a Parquet file is refused even
        so. Of a gzip file that is cut off, read what is there.
    people
        Which ids are read, of a file with fixes or slots; rows of others are as if they were not there.
    executor
        Where the files of a folder are read, such as a `Cluster`; the result does not depend on it.
    report
        Called with the `Preparation`: what was read, dropped, repaired, and why.

    Examples
    --------
    >>> table = {"uid": ["ann"] * 72, "slot": range(72), "loc": [0] * 30 + [1] * 42}
    >>> read_traces(table)
    Traces(1 users, 1 rows of 72 slots, 2 places)

    """
    prepared = find_prepared(source)
    if prepared is not None:
        # the folder was prepared before, and is read back as it is
        source, step, tz, locations = prepared.path, prepared.step, prepared.tz, Map(prepared.locations)
        cells, columns = None, None
        options |= {"start": prepared.start, "gaps": "hold", "max_gap": 0, "min_coverage": 0.0, "map": "whole"}
        options |= {"regions": None, "box": None}
    reading = _check_options(options, tz)
    requested = {} if columns is None else check_columns(columns)
    encoding, date_format, max_bad = reading["encoding"], reading["date_format"], reading["max_bad"]
    regions = None if reading["regions"] is None else read_regions(reading["regions"])
    of_settings = {name: reading[name] for name in OF_SETTINGS if name in reading}
    box = None if reading["box"] is None else parse_box(reading["box"])
    settings = Settings(step=step, cells=cells, box=box, regions=regions, **of_settings)
    parts = open_parts(
        source,
        container=format,
        encoding=encoding,
        roles=lambda names, headed, records: interpret_columns(names, headed, records, requested),
        plain_times=date_format is None,
        allow_truncated=reading["allow_truncated"],
        executor=executor,
    )
    table, start = parts.sample, reading["start"]
    if format == "sglt" and (table.headed or len(table.names) != 3):
        raise table.error("SGLT traces are lines `user,time,location` of whole numbers, without names.", "E_COLUMN")
    roles = {} if table.meaning is None else dict(table.meaning.roles)
    if {"arrived", "date"} <= roles.keys() and not holds_time_of_day(table, roles["arrived"]):
        del roles["date"]  # arrivals that have dates of their own
    if people is not None and "user" in roles:
        parts = _select_people(parts, roles, people)
    if {*CELL} <= roles.keys():
        parts, roles = add_cells(parts, roles)
    table = parts.sample
    if f"{WIDE}0" in roles:
        table, roles, first, seconds = to_long_table(parts.join(unequal=True), roles)
        start = start or first
        if step == "auto" and seconds is not None:
            settings = replace(settings, step=seconds / 60)
    own_map, notes = _find_map(source, locations, parts, table, roles.get("place"), "lat" in roles, encoding)
    if own_map is not None:
        settings = replace(settings, map="whole")
    if "slot" in roles and table is parts.sample:
        table = parts.join(unequal=True)
    shape = Shape(
        table,
        roles,
        tz,
        date_format,
        max_bad,
        chosen=frozenset(requested),
        box=settings.box,
        lon360=reading["lon360"],
        # a day more, because a wall clock may be ahead of UTC (B31)
        latest=None if reading["any_date"] else np.datetime64(datetime.now(UTC).replace(tzinfo=None), "us") + A_DAY,
    )
    traces, preparation = _prepare(shape, parts, own_map, settings, start, aligned=prepared is not None)
    if report is not None:
        report(replace(preparation, notes=(*preparation.notes, *notes)))
    return traces if prepared is None else traces.with_map(prepared.locations)


def _find_map(
    source: Any, locations: Any, parts: Parts, table: Table, place: str | None, located: bool, encoding: str
) -> tuple[Map | None, list[str]]:
    """Return the places of the caller, or of a table beside the source if it has a column of places; and notes."""
    ids = () if place is None or (located and locations is None) else read_labels(table, place)[1]
    notes: list[str] = []
    if locations is not None:
        own_map = read_places(locations, encoding=encoding, column=place or "", ids=ids)
    elif place is not None and (beside := find_places_beside(source, place, ids, encoding)) is not None:
        own_map, notes = beside[0], [f"places are where {printable(beside[1].name)} says"]
        parts.tables_of_places.add(beside[1])
    else:
        return None, []
    return own_map, [*notes, *(own_map.notes if place is not None and table.format != "sglt" else ())]


def _prepare(
    shape: Shape, parts: Parts, own_map: Map | None, settings: Settings, start: str | None, *, aligned: bool
) -> tuple[Traces, Preparation]:
    """Return the traces of an input of slots or of fixes, and the report."""
    if "slot" in shape.roles:
        base = 1 if shape.table.format == "sglt" else 0
        width = None if settings.step == "auto" else settings.width
        slots, counts = read_slots(shape, own_map, width, start, base=base)
        return prepare_slots(slots, settings, replace(counts, by="slots"), aligned=aligned)
    # refused before the whole input is read
    settings = replace(settings, step="20min") if settings.step == "auto" else settings
    if SECONDS_PER_DAY % settings.width:
        raise InvalidParameter(
            f"`step` must divide the day into equal slots, such as 5min, 20min or 1h, got {settings.step!r}."
        )
    fixes, counts = read_fixes(shape, parts, own_map, accuracy=settings.evidence)
    counts = replace(counts, notes=(*counts.notes, *_note_interval(fixes, settings.width)))
    if own_map is not None:
        settings = replace(settings, cells=None)
    parts_left = [fixes]
    del fixes  # so that their memory is free as soon as they are reduced
    return prepare_fixes(parts_left.pop(), settings, counts)


def _check_options(options: ReadingOptions, tz: str | None) -> dict[str, Any]:
    """Return the further keywords with their defaults; refuse values that are wrong whatever the input holds."""
    names = [*ReadingOptions.__annotations__, *inspect.signature(read_traces).parameters]
    for name in options:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            perhaps = f", perhaps `{near[0]}`" if near else ""
            fault = f"`{name}` is no keyword of read_traces{perhaps}; see help(read_traces)."
            raise InvalidParameter(fault, code="E_CALL")
    reading: dict[str, Any] = {**DEFAULTS, **options}
    require_between("max_bad", reading["max_bad"], 0, 1)
    if tz is not None:
        zone_of(tz)
    if reading["start"] is not None:
        clock_minutes(reading["start"])
    date_format = reading["date_format"]
    if date_format is not None:
        try:
            datetime.strptime("", date_format)
        except (ValueError, TypeError) as error:
            if isinstance(error, TypeError) or "directive" in str(error) or "stray" in str(error):
                raise InvalidParameter(f"`date_format` must be as for strptime, got {date_format!r}.") from None
    return reading


def describe_people(source: Any, taken: str, encoding: str = "utf-8") -> str:
    """Return which column of a file was read as people, and which others could be, with numbers of values; or ""."""
    if isinstance(source, (str, PathLike)) and not Path(source).is_file():
        return ""
    held: dict[str, set[str]] = {taken: set()}

    def roles(names: Sequence[str], *_: Any) -> Meaning:
        return Meaning({name: name for name in names if name == taken or names_people(name)})

    for table in open_parts(source, encoding=encoding, roles=roles).tables():
        for name in table.meaning.roles if table.meaning is not None else ():
            held.setdefault(name, set()).update(read_labels(table, name)[1])
    others = [
        f"column {name!r} has {len(values):,}: if these are people, give `columns` {quote_columns(f'user={name}')}"
        for name, values in held.items()
        if len(values) > len(held[taken])
    ]
    return "; ".join([f"{PEOPLE} {taken!r}, {len(held[taken]):,}", *others]) if held[taken] else ""


def _select_people(parts: Parts, roles: Mapping[str, str], people: Callable[[str], bool]) -> Parts:
    """Return only the rows of some people, in the sample too, so that rows of others decide nothing."""

    def select(table: Table) -> Table:
        code, names = read_users(table, roles)
        rows = np.flatnonzero(np.array([*(bool(people(name)) for name in names), False, False])[code])
        columns = {name: table.column(name, encoded=True).take(rows) for name in table.columns}
        return replace(table, columns=columns, rows=len(rows), unequal=0, fixed={}, origin=rows)

    def tables() -> Iterator[Table]:
        return (table for table in map(select, parts.tables()) if table.rows)

    # the sample of a large input may have no row of these people
    sample = select(parts.sample)
    if not sample.rows:
        sample = next(tables(), sample)
    if not sample.rows:
        raise parts.sample.error("`people` chooses nobody.", "E_EMPTY")
    return replace(parts, sample=sample, tables=tables)


def _note_interval(fixes: Fixes, width: int) -> list[str]:
    """Return a note if the median interval between fixes of some users is much shorter or longer than a slot."""
    if len(fixes) < 2 or fixes.until is not None:
        return []
    some = np.isin(fixes.user, np.linspace(0, len(fixes.labels) - 1, min(20, len(fixes.labels))).astype(np.int64))
    user, wall = fixes.user[some], fixes.wall[some]
    order = np.lexsort((wall, user))
    gaps = np.diff(wall[order])[np.diff(user[order]) == 0]
    gaps = gaps[gaps > np.timedelta64(0)]
    if len(gaps) == 0:
        return []
    seconds = float(np.median(gaps) / np.timedelta64(1, "s"))
    unit, name = next((u, n) for u, n in ((86400, "d"), (3600, "h"), (60, "min"), (0, "s")) if seconds >= u)
    usual = f"{seconds / (unit or 1):.3g} {name}"
    if seconds < width / 2:
        return [f"fixes come every {usual}, finer than `step`: a slot takes the place of most of its fixes"]
    if seconds > 2 * width:
        return [
            f"fixes come every {usual}, coarser than `step`: most slots have no fix of their own; if they are "
            'events such as check-ins, `out_as="events"` writes the fakes as events too'
        ]
    return []


@dataclass(frozen=True, eq=False)
class Nearest(Map):
    """Places for points that have the coordinates of places; `off` counts the points that have not."""

    off: list[int] = field(default_factory=list)

    def place_of(self, lat: Floats, lon: Floats) -> Ints:
        """Return the nearest place of each point."""
        place, km = self.locations.nearest(to_xyz(lat, lon))
        self.off.append(int((km > ON_PLACE_KM).sum()))
        return place


@dataclass(frozen=True, eq=False)
class First:
    """The source that makes the map: its traces, the report on its reading, and the keywords it was read with."""

    source: Any = field(repr=False)
    traces: Traces
    made: Preparation
    keywords: Mapping[str, Any] = field(default_factory=dict)  # of `read_traces`

    @staticmethod
    def read(source: Any, **keywords: Any) -> "First":
        """Read the source that makes the map, with keywords of `read_traces`."""
        source = load_pipe(source, allow_truncated=bool(keywords.get("allow_truncated")))  # perhaps read twice
        return First(source, *_read(source, keywords), keywords)

    def read_further(self, source: Any, what: str = "the traces") -> tuple[Traces, tuple[str, ...]]:
        """
        Return another source on the map of the first, and notes; `what` is the name of that source in messages.

        The map is that of the first source. Where places have no coordinates and the other source visits further ones,
        it is a larger map that begins with the places of the first: `on` puts the first source on it.
        """
        source = load_pipe(source, allow_truncated=bool(self.keywords.get("allow_truncated")))
        on = self.traces
        nameless = on.tz == "UTC" and _has_note(self.made, NO_ZONE)
        fine, report, notes = self._read_unmerged(source, what)
        if report.tz != on.tz and self.keywords.get("tz") is None and not nameless:
            fine, report, notes = self._read_unmerged(source, what, tz=on.tz)
        if nameless and _has_note(report, IN_UTC) and report.tz == "UTC":
            notes += (
                f"{what}: its times are UTC, those of the real traces name no zone; give `tz` if they are local.",
            )
        if is_same_map(fine.locations, on.locations):
            return fine, notes
        if fine.locations.lat is not None and not on.locations.has_coordinates:
            fine = self._read_place_ids(source) or fine
        if fine.locations.lat is None or on.locations.lat is None:
            placed_traces, more = match_map(fine, on, what, numbered=self.made.grid_metres is None)
            return placed_traces, (*notes, *more)
        merged = self.made.places < self.made.places_found
        if (merged or self.made.places_by in ("stays", "points")) and report.places_found <= on.R:
            traces = self._read_on_places(source)
            if traces is not None:
                return traces, notes
        if merged:
            return self._follow_merged_cells(fine, what, notes)
        placed_traces, more = match_map(fine, on, what, cut=self._is_map_cut)
        return placed_traces, (*notes, *more)

    def on(self, locations: Locations) -> "First":
        """Return the same on a larger map that begins with its own, such as `read_further` returns."""
        if is_same_map(locations, self.traces.locations):
            return self
        return replace(self, traces=self.traces.with_map(locations))

    def _read_unmerged(self, source: Any, what: str, **more: Any) -> tuple[Traces, Preparation, tuple[str, ...]]:
        """Read a source as the first was read, but merge no places; options that fit only the first are left out."""
        options = {**self.keywords, **self._first_settings(), "cells": None, **more}
        try:
            return *_read(source, options), ()
        except InvalidTraces as error:
            own = {name: options.pop(name) for name in OF_ONE_FILE if options.get(name) not in (None, "auto")}
            if not own:
                raise
            try:
                outcome = _read(source, options)
            except InvalidTraces:
                raise error from None
        names = " and ".join(f"`{name}`" for name in own)
        return *outcome, (f"{what}: read without {names}, which does not fit it.",)

    def _first_settings(self) -> dict[str, Any]:
        """Return the settings that the first reading chose by itself, so that another reading uses them too."""
        settings: dict[str, Any] = {}
        if self.keywords.get("step", "auto") == "auto" and self.made.step_minutes is not None:
            settings["step"] = self.made.step_minutes
        if self.made.grid_metres is not None:
            settings["grid_metres"] = self.made.grid_metres
        if self.made.max_gap_minutes is not None:
            settings["max_gap"] = self.made.max_gap_minutes
        return settings

    def _read_place_ids(self, source: Any) -> Traces | None:
        """Return the source with its places as names or numbers, as the first has them; None if it has neither."""
        bare = {**(self.keywords.get("columns") or {}), "lat": None, "lon": None, "geometry": None}
        try:
            return _read(source, {**self.keywords, **self._first_settings(), "cells": None, "columns": bare})[0]
        except InvalidTraces:
            return None

    def _read_on_places(self, source: Any) -> Traces | None:
        """Return the source if its points have the coordinates of places, as fakes of this package do; else None."""
        map_ = Nearest(self.traces.locations)
        options = {**self.keywords, **self._first_settings(), "cells": None, "locations": map_}
        options["columns"] = {**(self.keywords.get("columns") or {}), "place": None}
        try:
            traces, _ = _read(source, options)
        except InvalidTraces:
            return None
        return traces if map_.off and not any(map_.off) else None

    @property
    def _is_map_cut(self) -> bool:
        return getattr(self.made, "map", "whole") == "auto"

    @cached_property
    def _cells(self) -> tuple[Traces, Ints] | None:
        """Return the first source before its places were merged, and the place that each cell became."""
        fine, _ = _read(self.source, {**self.keywords, **self._first_settings(), "cells": None})
        if fine.r.shape != self.traces.r.shape or not np.array_equal(fine.r >= 0, self.traces.r >= 0):
            return None
        known = fine.r >= 0
        pair, count = np.unique(
            fine.r[known].astype(np.int64) * self.traces.R + self.traces.r[known], return_counts=True
        )
        becomes = np.full(fine.R, -1, dtype=np.int64)
        order = np.argsort(count, kind="stable")  # the last assignment counts: the place of most slots of a cell
        becomes[pair[order] // self.traces.R] = pair[order] % self.traces.R
        return fine, becomes

    def _follow_merged_cells(self, fine: Traces, what: str, notes: tuple[str, ...]) -> tuple[Traces, tuple[str, ...]]:
        """Return the traces with each cell at the place that the nearest cell of the first source was merged into."""
        on, cells = self.traces, self._cells
        if cells is None:
            traces, more = match_map(fine, on, what, cut=self._is_map_cut)
            return traces, (*notes, *more)
        first, becomes = cells
        if is_same_map(fine.locations, first.locations) and np.array_equal(fine.r, first.r):
            return fine.with_map(on.locations, on.r), notes  # the same content: the same places
        places = np.flatnonzero(becomes >= 0)
        near, km = first.locations.select(places).nearest(fine.locations.points())
        cell = places[near]
        # equal names are the same place even where coordinates differ
        visited_names = [
            name if at >= 0 else "" for name, at in zip(first.locations.names or (), becomes, strict=False)
        ]
        by_name = match_names(fine.locations.names or [""] * fine.R, visited_names)
        if not _names_agree(fine.locations, first.locations, by_name):
            by_name[:] = -1
        cell, km = np.where(by_name >= 0, by_name, cell), np.where(by_name >= 0, 0.0, km)
        traces, more = _move_places(fine, on.locations, becomes[cell], km, what, cut=self._is_map_cut)
        return traces, (*notes, *more)


def _has_note(report: Preparation, what: str) -> bool:
    """Tell whether a report has a note that begins so."""
    return any(note.startswith(what) for note in report.notes)


def _read(source: Any, keywords: Mapping[str, Any]) -> tuple[Traces, Preparation]:
    """Return the traces of a source, and the report on its reading."""
    reports: list[Preparation] = []
    traces = read_traces(source, report=reports.append, **keywords)
    return traces, reports[0]


def is_same_map(here: Locations, there: Locations) -> bool:
    """Tell whether two maps have the same places in the same order, under the same names."""
    return here == there and (here.names or ()) == (there.names or ())


def match_map(
    traces: Traces, like: Traces, what: str = "the traces", *, numbered: bool = True, cut: bool = False
) -> tuple[Traces, tuple[str, ...]]:
    """
    Return the same traces on the map of `like`, and notes.

    Places with names become the place of that name. Places with coordinates become the nearest place of that map; if
    more than 5 % of the slots are far from every place (three times the usual distance between neighbours), the traces
    are of another region and refused. Plain numbers stay, if the numbers of `like` are those of its source
    (`numbered`). Names and numbers that `like` does not have are added to its map (see `Traces.with_map`). `cut` says
    that the map covers only where people usually are: slots far from it become missing.

    Examples
    --------
    >>> town = Traces([[0, 1]], Locations(xy=[[0, 0], [3, 0]]))
    >>> fake = Traces([[1, 0]], Locations(xy=[[3, 0.1], [0, 0]]))
    >>> match_map(fake, town)[0].r.tolist()
    [[0, 1]]

    """
    here, there = traces.locations, like.locations
    if is_same_map(here, there):
        return traces, ()
    if by_name := _match_names(traces, like, what):
        return by_name
    if (here.lat is not None and there.lat is not None) or (here.xy is not None and there.xy is not None):
        return _move_places(traces, there, *there.nearest(here.points()), what, cut=cut)
    if numbered and here.names is None and there.names is None and not here.has_coordinates:
        most = int(traces.r.max()) + 1
        if most <= len(there):
            return traces.with_map(there), ()
        if not there.has_coordinates:
            return traces.with_map(Locations(n=most)), (_note_new_places(most - len(there), what),)
    kinds = [_describe_places(each) for each in (here, there)]
    raise InvalidTraces(
        f"{what}: its places are {kinds[0]}, those of the real traces are {kinds[1]}, and nothing says which is which; "
        "give the places of both with `locations`, a table of id, lat and lon.",
        code="E_MISMATCH",
    )


def _describe_places(locations: Locations) -> str:
    """Return in words how places are identified."""
    if locations.has_coordinates:
        return "coordinates" if locations.names is None else "names with coordinates"
    return f"{len(locations)} numbers" if locations.names is None else "names"


def _match_names(traces: Traces, like: Traces, what: str) -> tuple[Traces, tuple[str, ...]] | None:
    """Return the traces with places matched by name, if both have names (or one has, and one plain numbers)."""
    here, there = traces.locations, like.locations
    sides = [(each.names, each.has_coordinates) for each in (here, there)]
    if all(names is None for names, _ in sides) or any(names is None and located for names, located in sides):
        return None
    own, others = (each.names or tuple(str(i) for i in range(len(each))) for each in (here, there))
    places = np.unique(traces.r[traces.r >= 0])
    place = match_names(own, others)
    common, new = places[place[places] >= 0], places[place[places] < 0]
    if len(common) == 0 or not _names_agree(here, there, place):
        return None  # another set of names altogether
    if here.has_coordinates and there.has_coordinates:
        apart = np.linalg.norm(here.points()[common] - there.points()[place[common]], axis=1)
        if np.median(apart) > _find_far_km(there):
            return None  # equal ids are different places in the two files
    notes: tuple[str, ...] = ()
    where = there
    if len(new) and there.has_coordinates:
        if not here.has_coordinates:
            raise InvalidTraces(
                f"{what}: {len(new)} of its {len(places)} places are not among those of the real traces; give the "
                "places of both with `locations`, a table of id, lat and lon.",
                code="E_MISMATCH",
            )
        place[new] = there.nearest(here.points()[new])[0]
        notes = (f"{what}: {len(new)} of its {len(places)} places are new; each counts as the nearest known one.",)
    elif len(new):
        place[new] = len(there) + np.arange(len(new))
        where = Locations(n=len(there) + len(new), names=[*others, *(own[i] for i in new)])
        notes = (_note_new_places(len(new), what),)
    return traces.with_map(where, np.where(traces.r >= 0, place[traces.r], -1)), notes


def _names_agree(here: Locations, there: Locations, place: Ints) -> bool:
    """Tell whether equal names have equal positions in both; True without coordinates."""
    both = np.flatnonzero(place >= 0)
    if len(both) == 0 or here.lat is None or there.lat is None:
        return True
    apart = np.linalg.norm(here.points()[both] - there.points()[place[both]], axis=1)
    return bool((apart > SAME_PLACE_KM).mean() <= MOST_ASTRAY)


def _note_new_places(places: int, what: str) -> str:
    """Return a note on places that the first source does not have."""
    return f"{what}: {counted(places, 'place')} that no real day visits."


def common_slots(traces: Traces, like: Traces, what: str) -> tuple[slice, slice]:
    """
    Return the slots of `traces` and those of `like` that are the same times of the day.

    Refuse traces with slots of another length, or probably of another length.

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
    # numbered slots do not tell their length: half as many slots are probably twice as long
    if high - low < shorter or 2 * shorter <= max(traces.L, like.L):
        length = MINUTES_PER_DAY / traces.L
        hint = f"; if its slots are {length:g} minutes long, give `step` {length:g}min" if length == int(length) else ""
        raise InvalidTraces(f"{text}{hint}.", code="E_SHAPE")
    return slice(low - int(ahead), high - int(ahead)), slice(low, high)


def crop(traces: Traces, slots: slice) -> Traces:
    """Return only these slots of all rows, without the rows that have no known slot among them."""
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


def _move_places(
    traces: Traces, locations: Locations, place: Ints, km: Floats, what: str, *, cut: bool
) -> tuple[Traces, tuple[str, ...]]:
    """
    Return the traces with each place replaced by another one, `km` away, and a note if some are far.

    Refuse traces with too many slots that are far. Other such slots stay at the nearest place; on a map that was `cut`
    to where people are, they become missing, as such slots of the first source are.
    """
    known, limit = traces.r >= 0, _find_far_km(locations)
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
        return traces.with_map(locations, r), ()
    if not cut:
        notes = (f"{what}: {share:.1%} of its points lie far from every place; each counts as the nearest.",)
        return traces.with_map(locations, r), notes
    r[far] = -1
    there = np.flatnonzero((r >= 0).any(axis=1))
    note = f"{what}: {share:.1%} of its points lie outside the map of the real traces and are left out."
    return traces.select(there).with_map(locations, r[there]), (note,)


def _find_far_km(locations: Locations) -> float:
    """Return the distance from which on a point is far from every place."""
    from scipy.spatial import cKDTree

    if len(locations) == 1:
        return NEAREST_KM
    x = locations.points()
    apart = np.asarray(cKDTree(x).query(x, k=2)[0])[:, 1]
    return max(NEAREST_KM, FAR * float(np.quantile(apart, 0.95)))
