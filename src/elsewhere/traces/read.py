"""
Read traces: CSV and kin, Parquet, data frames and SGLT, told apart by what they hold.

Each shape of input is one function that ends in `Fixes` or `Slots`; `prepare` makes traces of them.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from elsewhere.errors import require_between
from elsewhere.traces.clock import zone_of
from elsewhere.traces.columns import check_columns, find_roles, roles_of
from elsewhere.traces.fixes import Preparation
from elsewhere.traces.model import Traces
from elsewhere.traces.places import places_beside, read_places
from elsewhere.traces.prepare import prepare_fixes, prepare_slots, seconds_of
from elsewhere.traces.shapes import Shape, fixes_of, slots_of
from elsewhere.traces.tables import Table, open_table


def read_traces(
    source: Any,
    *,
    format: str = "auto",  # noqa: A002 (the word users expect)
    step: str | float | timedelta = "20min",
    cells: int | None = 400,
    tz: str | None = None,
    columns: Mapping[str, str | None] | None = None,
    locations: Any = None,
    start: str | None = None,
    max_gap: str | float | timedelta = "1h",
    min_coverage: float = 0.5,
    grid_metres: float = 100.0,
    date_format: str | None = None,
    encoding: str = "utf-8",
    max_bad: float = 0.01,
    report: Callable[[Preparation], None] | None = None,
) -> Traces:
    """
    Traces from a file or a frame: users by rows of local days, time by slots, space by places.

    What the columns hold decides how they are read:

    - *fixes*: a user, a time, and `lat`/`lon` (or a geometry, or a place): cut into local days and slots, see
      `prepare_fixes`;
    - *slots*: a user, a slot number, and a place number or `lat`/`lon`; also a `date` or `day` where a user has
      several rows;
    - *SGLT*: lines `user,time,location` of whole numbers from 1, without column names.

    Users keep their ids as text and come in numerical order if all ids are whole numbers, else in the order of
    characters; the order of lines in the file does not matter.

    Times without an offset are the local wall clock (of `tz`, if given). Times with an offset are shown in `tz`;
    without `tz` in their own zone if they all have one, else in UTC. Where a file has a UTC and a local column, the
    local one is the clock unless `tz` is given.

    Parameters
    ----------
    source
        A path, or a pandas, polars or Arrow table.
    format
        "auto", or "csv", "parquet", "sglt" to refuse anything else.
    step
        Length of a slot.
    cells
        Most places to make of coordinates (E74); None keeps all. Numbered places of slots and those of `locations`
        are never merged.
    tz
        IANA zone of the local clock.
    columns
        Role -> column name, for the roles user, time, utc, local, date, slot, trace, lat, lon, geometry, place;
        None leaves a role out.
    locations
        The places that place numbers point into: `Locations`, or a table with `lat` and `lon` and perhaps an id
        column, or lines "x, y" in km. By default the file `...locations...` beside `...trace...`, if there is one.
    start
        Local time "HH:MM" of the first slot, for slots and SGLT; by default told from the times or slot numbers.
    max_gap, min_coverage, grid_metres
        See `prepare_fixes`.
    date_format
        How to read dates that do not put the year first, as for `strptime`.
    encoding
        Of a text file.
    max_bad
        Share of rows that may be unreadable: they are dropped and counted; above it the file is refused.
    report
        Called with the `Preparation`: what was read, dropped, repaired, and why.

    Examples
    --------
    >>> table = {"uid": ["ann"] * 72, "slot": range(72), "loc": [0] * 30 + [1] * 42}
    >>> read_traces(table)
    Traces(1 users, 1 rows of 72 instants, 2 places)

    """
    require_between("max_bad", max_bad, 0, 1)
    if tz is not None:
        zone_of(tz)
    check_columns(columns)
    table = open_table(
        source,
        container=format,
        encoding=encoding,
        roles=lambda names: roles_of(names, columns),
        plain_times=date_format is None,
    )
    roles = _sglt_roles(table) if format == "sglt" or not table.headed else find_roles(table, columns)
    if locations is None and "place" in roles:
        locations = places_beside(source)
    given = None if locations is None else read_places(locations, encoding=encoding)
    shape = Shape(table, roles, tz, date_format, max_bad, chosen=frozenset(columns or ()))
    if "slot" in roles:
        slots, counted = slots_of(shape, given, seconds_of("step", step), start, base=0 if table.headed else 1)
        traces, prepared = prepare_slots(
            slots,
            step=step,
            cells=cells,
            min_coverage=min_coverage,
            grid_metres=grid_metres,
            max_bad=max_bad,
            so_far=counted,
        )
    else:
        fixes, counted = fixes_of(shape, given)
        traces, prepared = prepare_fixes(
            fixes,
            step=step,
            cells=cells if given is None else None,
            max_gap=max_gap,
            min_coverage=min_coverage,
            grid_metres=grid_metres,
            max_bad=max_bad,
            so_far=counted,
        )
    if report is not None:
        report(prepared)
    return traces


def _sglt_roles(table: Table) -> dict[str, str]:
    """`input.trace` of the paper's authors: lines `user,time,location`, whole numbers from 1, no column names."""
    if table.headed:
        raise table.refuse("SGLT traces are lines `user,time,location` of whole numbers, without names.", "E_COLUMN")
    if len(table.columns) != 3:
        raise table.refuse("the first line holds numbers where column names are expected.", "E_COLUMN")
    return {"user": "0", "slot": "1", "place": "2"}
