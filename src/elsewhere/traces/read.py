"""Read traces: tables, tracks, exports of phones and frames, told apart by what they hold."""

import codecs
import inspect
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any, TypedDict, Unpack

import numpy as np

from elsewhere.errors import InvalidParameter, public, require_between
from elsewhere.traces.clock import holds_time_of_day
from elsewhere.traces.columns import CELL, WIDE, check_columns, meaning_of
from elsewhere.traces.fixes import Fixes, Preparation
from elsewhere.traces.formats import open_parts
from elsewhere.traces.gaps import SECONDS_PER_DAY
from elsewhere.traces.maps import (
    Map,
    parsed_box,
    places_beside,
    read_places,
    read_regions,
)
from elsewhere.traces.model import Traces, clock_minutes, zone_of
from elsewhere.traces.prepare import Settings, prepare_fixes, prepare_slots
from elsewhere.traces.rows import Shape, fixes_of, long_table, slots_of, with_cells
from elsewhere.traces.sources import shown
from elsewhere.traces.tables import Parts, Table, labels
from elsewhere.traces.write import kept_in, refuse_pool

A_DAY = np.timedelta64(1, "D")
OF_SETTINGS = ("gaps", "max_gap", "min_coverage", "map", "places", "grid_metres", "evidence")
# of the options that are no `Settings`
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


@public
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
    Location History and Timeline (Android, iOS), OwnTracks and Foursquare check-ins, each gzipped or not, and folders
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
        "auto", or "csv", "parquet", "sglt", "json", "gpx", "geojson", "geolife", "google", "owntracks", "foursquare"
        to refuse anything else.
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
        Role -> column name, for the roles user, time, utc, local, date, arrived, left, slot, trace, lat, lon, geometry,
        accuracy, place, category, x, y (a cell of a grid); "#3" is the third column, "file" (as the user) the name of
        the file, unless a column is called so; None leaves a role out.
    locations
        The places that place numbers point into: `Locations`, or a table with `lat` and `lon` and perhaps an id
        column, or lines "x, y" in km. By default the file `...locations...` beside `...trace...`, or a table of towers,
        stations, stops or the like beside it that has all ids, if there is one.
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
    refuse_pool(source)
    own_format = kept_in(source)
    if own_format is not None:
        # prepared before: everything is decided, and stays as it is
        source, step, tz, locations = own_format.path, own_format.step, own_format.tz, Map(own_format.locations)
        cells, columns = None, None
        options |= {"start": own_format.start, "gaps": "hold", "max_gap": 0, "min_coverage": 0.0, "map": "whole"}
        options |= {"regions": None, "box": None}
    reading = _checked(options, tz, columns)
    encoding, date_format, max_bad = reading["encoding"], reading["date_format"], reading["max_bad"]
    regions = None if reading["regions"] is None else read_regions(reading["regions"])
    of_settings = {name: reading[name] for name in OF_SETTINGS if name in reading}
    settings = Settings(step=step, cells=cells, box=parsed_box(reading["box"]), regions=regions, **of_settings)
    own_map = None if locations is None else read_places(locations, encoding=encoding)
    parts = open_parts(
        source,
        container=format,
        encoding=encoding,
        roles=lambda names, headed, records: meaning_of(names, headed, records, columns),
        plain_times=date_format is None,
        allow_truncated=reading["allow_truncated"],
        executor=executor,
    )
    roles, start = _roles(parts.sample, format), reading["start"]
    if people is not None and "user" in roles:
        parts = _of_people(parts, roles["user"], people)
    if {*CELL} <= roles.keys():
        parts, roles = with_cells(parts, roles)
    table = parts.sample
    if f"{WIDE}0" in roles:
        table, roles, first, seconds = long_table(parts.joined(unequal=True), roles)
        start = start or first
        if step == "auto" and seconds is not None:
            settings = replace(settings, step=seconds / 60)
    notes: tuple[str, ...] = ()
    if own_map is None and "place" in roles:
        ids = () if "lat" in roles else labels(table, roles["place"])[1]
        if (beside := places_beside(source, ids, encoding)) is not None:
            own_map, notes = beside[0], (f"places are where {shown(beside[1].name)} says",)
    if own_map is not None:
        settings = replace(settings, map="whole")
    if "slot" in roles and table is parts.sample:
        table = parts.joined(unequal=True)
    shape = Shape(
        table,
        roles,
        tz,
        date_format,
        max_bad,
        chosen=frozenset(columns or ()),
        box=settings.box,
        lon360=reading["lon360"],
        # a day of grace: a wall clock may be ahead of UTC (B31)
        latest=None if reading["any_date"] else np.datetime64(datetime.now(UTC).replace(tzinfo=None), "us") + A_DAY,
    )
    traces, preparation = _prepared(shape, parts, own_map, settings, start, aligned=own_format is not None)
    if report is not None:
        report(replace(preparation, notes=(*preparation.notes, *notes)))
    return traces if own_format is None else traces.on(own_format.locations)


def _prepared(
    shape: Shape, parts: Parts, own_map: Map | None, settings: Settings, start: str | None, *, aligned: bool
) -> tuple[Traces, Preparation]:
    """Return the traces of an input of slots or of fixes, and what became of it."""
    if "slot" in shape.roles:
        base = 1 if shape.table.format == "sglt" else 0
        width = None if settings.step == "auto" else settings.width
        slots, counts = slots_of(shape, own_map, width, start, base=base)
        return prepare_slots(slots, settings, replace(counts, by="slots"), aligned=aligned)
    # the sample has told what there is: all that can be refused is, before the input is read
    settings = replace(settings, step="20min") if settings.step == "auto" else settings
    if SECONDS_PER_DAY % settings.width:
        raise InvalidParameter(f"`step` must divide the day into equal slots, got {settings.step!r}.")
    fixes, counts = fixes_of(shape, parts, own_map, accuracy=settings.evidence)
    counts = replace(counts, notes=(*counts.notes, *_pace(fixes, settings.width)))
    if own_map is not None:
        settings = replace(settings, cells=None)
    parts_left = [fixes]
    del fixes  # so that they can go as soon as they are reduced
    return prepare_fixes(parts_left.pop(), settings, counts)


def _checked(options: ReadingOptions, tz: str | None, columns: Any) -> dict[str, Any]:
    """Return the further keywords with their defaults; what no input can make right is refused before one is read."""
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
    check_columns(columns)
    if reading["start"] is not None:
        clock_minutes(reading["start"])
    date_format, encoding = reading["date_format"], reading["encoding"]
    if date_format is not None:
        try:
            datetime.strptime("", date_format)
        except (ValueError, TypeError) as error:
            if isinstance(error, TypeError) or "directive" in str(error) or "stray" in str(error):
                raise InvalidParameter(f"`date_format` must be as for strptime, got {date_format!r}.") from None
    try:
        codecs.lookup(encoding)
    except (LookupError, ValueError):
        raise InvalidParameter(f'`encoding` must be that of a text such as "utf-8", got {encoding!r}.') from None
    return reading


def _of_people(parts: Parts, column: str, people: Callable[[str], bool]) -> Parts:
    """Return the rows of some people alone, in the sample too: nothing is decided by rows of others."""

    def chosen(table: Table) -> Table:
        code, names = labels(table, column)
        rows = np.flatnonzero(np.array([*(bool(people(name)) for name in names), False, False])[code])
        columns = {name: table.encoded(name).take(rows) for name in table.columns}
        return replace(table, columns=columns, rows=len(rows), unequal=0, fixed={}, origin=rows)

    def tables() -> Iterator[Table]:
        return (table for table in map(chosen, parts) if table.rows)

    # a sample of a large input may hold few people, and none of these
    sample = chosen(parts.sample)
    if not sample.rows:
        sample = next(tables(), sample)
    if not sample.rows:
        raise parts.sample.refuse("`people` chooses nobody.", "E_EMPTY")
    return replace(parts, sample=sample, tables=tables)


def _roles(table: Table, requested: str) -> dict[str, str]:
    """Return what the columns mean; of SGLT, three columns of whole numbers without names, that is known."""
    meaning = table.meaning
    if requested == "sglt" and (table.headed or len(table.names) != 3):
        raise table.refuse("SGLT traces are lines `user,time,location` of whole numbers, without names.", "E_COLUMN")
    roles = dict(meaning.roles) if meaning is not None else {}
    if {"arrived", "date"} <= roles.keys() and not holds_time_of_day(table, roles["arrived"]):
        del roles["date"]  # arrivals that tell their day themselves
    return roles


def _pace(fixes: Fixes, width: int) -> list[str]:
    """Return a word where fixes come much faster or slower than slots: the median interval of some users."""
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
