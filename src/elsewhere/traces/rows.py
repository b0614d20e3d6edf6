"""
Turn tables whose columns have a meaning into `Fixes` (a user at a time) or `Slots` (a user in a numbered slot).

Rows that cannot be read are dropped and counted by reason; a file with a larger share of them than `max_bad` is
refused. Messages give their number, the first line and the code.
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import ElsewhereError, InvalidTraces, counted
from elsewhere.traces.clock import (
    LATER,
    ClockPlan,
    OtherOffsets,
    Times,
    WallClock,
    add_day_past_midnight,
    find_common_zone,
    find_zone,
    holds_time_of_day,
    plan_clock,
    read_departures,
    read_times,
    read_wall_clock,
    seconds_until_clock,
)
from elsewhere.traces.columns import (
    AT_ITS_END,
    CELL,
    FILE,
    MOSTLY,
    SHORT,
    SYNONYMS,
    WHOLE_DAYS,
    WHOSE,
    WIDE,
    Meaning,
    describe_missing,
    find_duration_unit,
    is_latitude_first,
    missing_roles,
    normalize_name,
)
from elsewhere.traces.fixes import SECONDS_PER_DAY, Fixes, Preparation, Slots, length_text
from elsewhere.traces.form import FileForm
from elsewhere.traces.maps import Map
from elsewhere.traces.model import Floats, Ints, Locations, Mask, clock_minutes, clock_text, to_xyz, zone_of
from elsewhere.traces.places import mean_points, point_keys
from elsewhere.traces.sources import (
    TABLES,
    Parts,
    Table,
    check_memory,
    longitude_first,
    read_categories,
    read_degrees,
    read_labels,
    read_lines,
    read_numbers,
    read_points,
    read_users,
    sort_labels,
)

EARLIEST = np.datetime64("2000-01-01", "us")
TABULAR = (*TABLES, "frame", "json")  # formats whose columns and values are read as they stand
REASONS = {
    "E_CSV": "have more or fewer fields than the first line",
    "E_ENCODING": "have an id with characters that are no UTF-8 (`encoding`, perhaps cp1252)",
    "E_USER": "have no user id",
    "E_DATE": "have no readable time (`date_format`), one before 2000 or in the future (`any_date`), or leave before "
    "they arrive",
    "E_NUMBER": "have numbers that cannot be read",
    "E_OUTSIDE": "lie outside the globe",
    "E_INDEX": "have no place",
}
IN_DEGREES = " (positions are decimal degrees, such as 51.507)"  # of tables: readers of other formats convert
SAME_PLACE_KM = 1.0  # a column whose values have fixes farther apart does not name places
PLAIN_NUMBERS = 10_000  # place numbers below this are kept as they are, even if few of them occur
USUAL_WIDTH = 1200  # seconds of a slot where nothing tells another length
IN_CELL = "the cell of the grid"  # name of the column of cells
LINE = "user"  # name of the column of line numbers, where a table has no names
LINE_SECONDS = 15  # between two points of a line, as in the taxis of Porto (ECML/PKDD 2015)
AT_SEA = (
    "most positions lie at sea or in Antarctica, and with latitude and longitude exchanged nearly all would lie on "
    "land: if they are, {}; `box` says that they lie where they should"
)
SHIPS = ("mmsi", "imo", "vessel")  # how names of columns of ships begin
MANY = 10_000  # rows after which an input with mostly bad rows is refused without reading on
# Cyrillic and Greek letters that look like Latin ones
_LATIN = str.maketrans("\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u03bf\u03b1\u03bd\u03c1", "aeopcxyioavp")


@dataclass
class Tally:
    """Numbers of rows of an input, of dropped rows by reason (an error code), and the line of the first of each."""

    rows: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    fault: InvalidTraces | None = None
    tabular: bool = False

    def keep(self, table: Table, faults: Mapping[str, Mask]) -> Mask:
        """Return which rows of a table have no fault, and count the others by their first fault."""
        good = np.ones(table.rows, dtype=bool)
        self.rows += table.rows + table.unequal
        self.tabular = table.format in TABULAR
        if table.unequal:
            self.dropped["E_CSV"] = self.dropped.get("E_CSV", 0) + table.unequal
            self.fault = self.fault or table.fault or next((f.fault for f in table.files if f.fault), None)
        for code, fault in faults.items():
            new = fault & good
            if new.any():
                self.dropped[code] = self.dropped.get(code, 0) + int(new.sum())
                if code not in self.first:
                    self.first[code] = table.position(int(np.argmax(new)))
                good &= ~new
        self.kept += int(good.sum())
        return good

    def check(self, max_bad: float) -> None:
        """Refuse an input if more than the share `max_bad` of its rows is dropped, or all of them (B21)."""
        if sum(self.dropped.values()) <= max_bad * self.rows and self.kept:
            return
        kinds = sorted(self.dropped, key=lambda c: (-self.dropped[c], c == "E_CSV"))
        code, share = kinds[0], sum(self.dropped.values()) / self.rows
        most = f"at most {max_bad:.2%} of all rows may be dropped (`max_bad`)"
        if len(kinds) > 1:
            others = [f"{self.dropped[c]} {REASONS[c]}" for c in kinds[1:]]
            most = f"{'; '.join(others)}; together {sum(self.dropped.values())} rows, {share:.2%}, and {most}"
        if share < 0.5:
            most += f"; with {math.ceil(100 * share) / 100:g} they would be"
        if code == "E_CSV" and self.fault is not None:
            raise InvalidTraces(
                f"{self.fault.args[0]} {self.dropped[code]} of {self.rows} lines are so; {most}.", code=self.fault.code
            )
        why = REASONS[code] + (IN_DEGREES if code == "E_NUMBER" and self.tabular else "")
        raise InvalidTraces(
            f"{self.first[code]}: {self.dropped[code]} of {self.rows} rows {why}, this is the first; {most}.", code=code
        )


@dataclass(frozen=True)
class Shape:
    """
    A table, what its columns mean, and how it is to be read.

    `chosen` are the roles that the caller gave. `box` is the map, (south, west, north, east). Times from 2000 to
    `latest` are accepted; all times if it is None. `turned` says that latitude and longitude are exchanged in a column
    of positions.
    """

    table: Table
    roles: Mapping[str, str]
    tz: str | None = None
    date_format: str | None = None
    max_bad: float = 0.01
    chosen: frozenset[str] = frozenset()
    box: tuple[float, float, float, float] | None = None
    lon360: bool = False
    latest: np.datetime64 | None = None
    turned: bool = False

    def missing_error(self, absent: list[str]) -> InvalidTraces:
        """Return an error for a table without columns for some roles: the roles, all columns, and what to type."""
        meaning = self.table.meaning or Meaning(self.roles)
        meaning, files = meaning._replace(roles=self.roles), self.table.format != "frame"
        return self.table.error(
            describe_missing(absent, self.table.names, meaning, self.table.headed, files), "E_COLUMN"
        )

    def report(
        self,
        tally: Tally,
        fixed: Mapping[str, int],
        tz: str,
        times: str,
        notes: list[str],
        user_ids: tuple[str, ...],
        day_first: bool | None = None,
    ) -> Preparation:
        """Return the report on what was read; `times` is how times were written, for `write_traces`."""
        # ids that a reader would take for one another
        plain_ids = {unicodedata.normalize("NFKC", name).strip().casefold().translate(_LATIN) for name in user_ids}
        if alike := len(user_ids) - len(plain_ids):
            note = f"{alike} user ids differ from another one only by blanks, case or look-alike letters"
            notes = [*notes, note]
        extra = [
            self.table.label(name) for name in self.table.names if name not in self.roles.values() and name != FILE
        ]
        names = self.table.names or tuple(self.table.columns)
        role_of = {name: role for role, name in self.roles.items() if role != "accuracy" and name in self.table.columns}
        # a file without names can be written again only with all of its columns: others would take their place
        tabular = self.table.format in TABULAR and (
            self.table.headed or (self.table.meaning is not None and not extra and FILE not in self.roles.values())
        )
        columns = {role_of[n]: n for n in names if n in role_of}
        if "arrived" in columns:
            columns.pop("date", None)  # arrivals are written with their days
        for role, end in AT_ITS_END.items():
            if role not in columns:
                columns.pop(end, None)  # the column of places was not used
        if "end_time" in columns and find_duration_unit(columns["end_time"]) is not None:
            columns["end_time"] = next(n for n in ("end_time", "ended_at", "time of the end") if n not in names)
        if columns.get("user") == FILE:
            columns["user"] = next(n for n in ("user", "user of the file") if n not in names)
        if extra and tabular:
            listing = ", ".join(map(repr, extra[:5])) + (" ..." if len(extra) > 5 else "")
            notes = [
                *notes,
                f"{counted(len(extra), 'column')} {'was' if len(extra) == 1 else 'were'} not read: {listing}",
            ]
        # a name that could be somebody's data must not appear in the output
        named = tabular and not any(self.table.label(n) != n for n in role_of)
        return Preparation(
            name=self.table.name,
            rows=tally.rows,
            dropped=tally.dropped,
            fixed=fixed,
            tz=tz,
            times=times,
            columns=columns if named else {},
            form=asdict(FileForm.of(self.table, self.roles, day_first, self.date_format, self.turned)) if named else {},
            format=self.table.format,
            notes=tuple(notes),
        )


def read_positions(shape: Shape, table: Table) -> tuple[Floats, Floats] | None:
    """Return latitude and longitude of every row, NaN where a row has none; None where no column has positions."""
    if {"lat", "lon"} <= shape.roles.keys():
        lat, lon = read_degrees(table, shape.roles["lat"]), read_degrees(table, shape.roles["lon"])
        return lat, np.where((lon > 180) & (lon <= 360), lon - 360, lon) if shape.lon360 else lon
    if "geometry" not in shape.roles:
        return None
    lat, lon = read_points(table, shape.roles["geometry"])
    return (lon, lat) if shape.turned else (lat, lon)


def check_positions(shape: Shape, position: tuple[Floats, Floats] | None) -> None:
    """Refuse columns of coordinates that are exchanged, or no degrees."""
    if position is None:
        return
    lat, lon = position
    number = np.isfinite(lat) & np.isfinite(lon)
    if not number.any():
        return
    limit, n = max(shape.max_bad, 0.01), int(number.sum())
    if np.all(np.abs(lat[number]) > 1000) or np.all(np.abs(lon[number]) > 1000):
        raise shape.table.error(
            "the coordinates are no degrees; metres of a map? Convert them to latitude and longitude (EPSG:4326), or "
            "give the rows a column of places, and these with `locations` as lines `x, y` in km.",
            "E_SWAPPED",
        )
    # degrees as small as these lie in the sea off Ghana; a box says that people are there
    small = max(np.abs(lat[number]).max(), np.abs(lon[number]).max()) < np.pi
    if small and shape.box is None and np.any((lat != 0) | (lon != 0)):
        raise shape.table.error("the coordinates are no degrees; radians? If they are, give `box`.", "E_SWAPPED")
    if np.all(np.abs(lat[number]) <= 90) and np.all(np.abs(lon[number]) <= 180):
        return
    if _are_exchanged(lat, lon, limit):
        raise shape.table.error(
            "the columns of latitude and longitude look swapped: `columns` says which is which, lat=LON,lon=LAT with "
            "the names that they have here.",
            "E_SWAPPED",
        )
    if (number & (lon > 180) & (lon <= 360)).sum() > limit * n >= (number & (np.abs(lat) > 90)).sum():
        raise shape.table.error("longitudes run from 0 to 360: say `lon360`.", "E_OUTSIDE")


def _are_exchanged(lat: Floats, lon: Floats, limit: float) -> bool:
    """Tell whether more than the share `limit` of latitudes are above 90, and nearly all points fit the other way."""
    number = np.isfinite(lat) & np.isfinite(lon)
    fits = number & (np.abs(lon) <= 90) & (np.abs(lat) <= 180)
    high = int((number & (np.abs(lat) > 90)).sum())
    return bool(high > limit * number.sum() and fits.sum() >= (1 - limit) * number.sum())


def _is_pair_exchanged(lat: Floats, lon: Floats, limit: float) -> bool:
    """Tell whether points in one column are exchanged: nearly all of them, or those that could be right lie at sea."""
    if not _are_exchanged(lat, lon, limit):
        return False
    number = np.isfinite(lat) & np.isfinite(lon)
    high = number & (np.abs(lat) > 90)
    possible = number & ~high & (np.abs(lon) <= 90)
    return bool(high.sum() >= MOSTLY * number.sum()) or is_latitude_first(lat[possible], lon[possible]) is False


def _share_far_from_place(place: Ints, n: int, position: tuple[Floats, Floats] | None) -> float:
    """Return the share of rows that lie far from the mean position of the rows of their place; 0 without positions."""
    if position is None:
        return 0.0
    lat, lon = position
    number = (place >= 0) & np.isfinite(lat) & np.isfinite(lon)
    if not number.any():
        return 1.0
    at = place[number]
    mean = to_xyz(*mean_points(lat[number], lon[number], at, n))
    away = np.linalg.norm(to_xyz(lat[number], lon[number]) - mean[at], axis=1)
    return float(np.mean(away > SAME_PLACE_KM))


def number_places(
    shape: Shape,
    good: Mask | None,
    codes: Ints,
    names: tuple[str, ...],
    own_map: Map | None,
    here: tuple[Floats, Floats] | None,
    base: int = 0,
) -> tuple[Locations, Ints]:
    """
    Return the places and the place number of every good row, -1 where the place is missing (no label, or "-1").

    `good` tells which rows of the table these are, for messages; None where it is no longer known. With `own_map`,
    labels are ids or numbers of its places. Without it, places are in the order of their labels, with these as names,
    and at the mean position of their rows; without positions, whole numbers stay as they are.
    """
    missing = names.index("-1") if "-1" in names else -1
    codes = np.where(codes == missing, -1, codes)
    places = np.unique(codes[codes >= 0])
    if len(places) == 0:
        raise shape.table.error("no row has a place.", "E_EMPTY")

    def error(label: int, what: str) -> Exception:
        row = None if good is None else int(np.flatnonzero(good)[np.argmax(codes == label)])
        return shape.table.error(what, "E_INDEX", row)

    labels = [names[c] for c in places]
    number = np.full(len(names) + 1, -1, dtype=np.int64)  # of each label; the last entry is that of -1
    if own_map is not None and own_map.number is not None and not base:
        unknown = [int(c) for c in places if names[c] not in own_map.number]
        if unknown:
            rows = int(np.isin(codes, unknown).sum())
            raise error(
                unknown[0],
                f"{len(unknown)} of {counted(len(places), 'place')}, in {rows:,} of {len(codes):,} rows, are not "
                "among the locations; add them to the table of `locations`, or leave these rows out.",
            )
        for c in places:
            number[c] = own_map.number[names[c]]
        return own_map.locations, number[codes]
    number[places] = np.arange(len(places))
    if own_map is None and "x" in shape.roles:
        return Locations(xy=[[*map(float, cell.split(","))] for cell in labels], names=labels), number[codes]
    if own_map is None and here is not None:
        known = codes >= 0
        lat, lon = mean_points(here[0][known], here[1][known], number[codes[known]], len(places))
        return Locations(lat, lon, names=labels), number[codes]
    whole = all(label.isascii() and label.removeprefix("-").isdigit() for label in labels)
    values = [int(label) for label in labels] if whole else []
    if own_map is None and (not whole or max(values) >= max(PLAIN_NUMBERS, 10 * len(places))):
        return Locations(n=len(places), names=labels), number[codes]
    if not whole:
        raise error(
            int(places[0]),
            "its places are no numbers, and the table of `locations` has no column that holds them: call it "
            f"{shape.table.label(shape.roles['place'])!r} as here, or id, {', '.join(SYNONYMS['place'].split()[:14])}.",
        )
    R = max(values) - base + 1 if own_map is None else len(own_map.locations)
    for c, value in zip(places, values, strict=True):
        if not base <= value < base + R:
            hint = "; are they counted from 1?" if not base and min(values) >= 1 and max(values) == R else ""
            raise error(int(c), f"a place outside {base} .. {base + R - 1}{hint}.")
        number[c] = value - base
    if own_map is None:
        return Locations(n=R), number[codes]
    # numbers of the caller's places are their names
    where = own_map.locations if own_map.locations.names else own_map.locations.relabel(names=list(map(str, range(R))))
    return where, number[codes]


def _join_labels(codes: list[NDArray[Any]], names: list[tuple[str, ...]]) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Return the codes of all tables, which number the labels of each, as codes of all labels together, and these."""
    labels = sort_labels({name for some in names for name in some})
    number = {name: i for i, name in enumerate(labels)}
    # the codes -1 and -2, of rows without a label, stay
    tables = [np.array([*(number[n] for n in some), -2, -1], dtype=np.int32) for some in names]
    return np.concatenate([table[code] for table, code in zip(tables, codes, strict=True)]), tuple(labels)


def read_fixes(shape: Shape, parts: Parts, own_map: Map | None, *, accuracy: bool = False) -> tuple[Fixes, Preparation]:
    """
    Return the fixes, or visits, from columns user, time (or arrived and left), and lat and lon (or geometry, or place).

    The sample of the input decides how times and places are read.
    """
    if absent := missing_roles(shape.roles):
        raise shape.missing_error(absent)
    notes: list[str] = []
    if "end_time" in shape.roles:
        each, notes = _find_duration(shape)
        parts = _add_trip_ends(parts, shape, each)
    position = read_positions(shape, shape.table)
    pair = position if "geometry" in shape.roles else None
    if pair is not None and _is_pair_exchanged(*pair, max(shape.max_bad, 0.01)):
        shape, position = replace(shape, turned=True), pair[::-1]
        notes.append(f"{_describe_order(shape)}: only so are latitudes within 90 degrees")
    check_positions(shape, position)
    named = "place" in shape.roles
    if named and own_map is None and "place" not in shape.chosen:
        place, place_names = read_labels(shape.table, shape.roles["place"])
        if _share_far_from_place(place, len(place_names), position) > shape.max_bad:
            notes.append(
                f"column {shape.table.label(shape.roles['place'])!r} was not read: its values do not name places"
            )
            named = False
    several, near = False, position
    if near is None and own_map is not None:
        lat, lon = own_map.locations.lat, own_map.locations.lon
        near = None if lat is None or lon is None else (lat, lon)
    while True:
        plan = plan_clock(
            shape.table, shape.roles, shape.tz, shape.date_format, near, tables=parts.tables(), several=several
        )
        if pair is not None and not shape.turned and _fit_exchanged(plan, *pair):
            shape, near = replace(shape, turned=True), pair[::-1]
            notes.append(
                f"{_describe_order(shape)}: only so do positions lie where clocks have the offset of the times (with "
                "`tz`, it is read as it stands)"
            )
        try:
            return _gather_fixes(shape, parts, own_map, plan, named, accuracy, [*notes, *_note_at_sea(shape, position)])
        except OtherOffsets:
            several = True  # the input has other offsets than the sample


def _describe_order(shape: Shape) -> str:
    """Return a text that says whether latitude or longitude comes first in the column of positions."""
    name = shape.roles["geometry"]
    first = "longitude" if longitude_first(shape.table, name) != shape.turned else "latitude"
    return f"column {shape.table.label(name)!r} is read with the {first} first"


def _note_at_sea(shape: Shape, position: tuple[Floats, Floats] | None) -> list[str]:
    """Return a note if positions lie at sea, and would be on land if exchanged, unless the caller gave their order."""
    ships = normalize_name(shape.roles["user"]).startswith(SHIPS)
    if position is None or shape.box is not None or shape.turned or ships or {"lat", "lon"} <= shape.chosen:
        return []
    if not np.isfinite(np.add(*position)).any() or is_latitude_first(*position) is not False:
        return []
    what = "`columns` says which is which, lat=NAME,lon=NAME"
    return [AT_SEA.format(what if "lat" in shape.roles else f"exchange them there ({_describe_order(shape)})")]


def _fit_exchanged(plan: ClockPlan, lat: Floats, lon: Floats) -> bool:
    """Tell whether the offset of all times fits the zone of the exchanged positions, and not that of the positions."""
    if not plan.alone or plan.zone is None:
        return False
    year = [datetime(2024, month, 1) for month in (1, 7)]
    own = zone_of(plan.zone).utcoffset(year[0])

    def fits(a: Floats, b: Floats) -> bool:
        name = find_zone(a, b)[0]
        return name is not None and own in [zone_of(name).utcoffset(day) for day in year]

    return fits(lon, lat) and not fits(lat, lon)


def _gather_fixes(
    shape: Shape, parts: Parts, own_map: Map | None, plan: ClockPlan, named: bool, accuracy: bool, notes: list[str]
) -> tuple[Fixes, Preparation]:
    """Return the good rows of all tables as fixes, with times read by `plan`, and the report."""
    tally = Tally()
    parts_of: dict[str, list[NDArray[Any]]] = {}
    names_of: dict[str, list[tuple[str, ...]]] = {}
    repairs: Counter[str] = Counter()
    table_notes: dict[str, set[str]] = {}
    clocks: list[WallClock] = []
    files: set[str] = set()
    n = 0
    for table in parts.tables():
        files.add(table.name)
        clock = read_wall_clock(plan, table)
        row, names, has_lines = _read_rows(shape, table, clock, plan, tally, named=named, accuracy=accuracy)
        if has_lines:
            note = f"a line of points is read as a point every {LINE_SECONDS} s from its time on"
            table_notes.setdefault(note, set())
        n += len(row["user"])
        for name, values in row.items():
            parts_of.setdefault(name, []).append(values)
        for name, labels_here in names.items():
            names_of.setdefault(name, []).append(labels_here)
        check_memory(n, parts.name)
        if 2 * sum(tally.dropped.values()) > tally.rows > MANY:
            tally.check(shape.max_bad)
        clocks.append(replace(clock, wall=clock.wall[:0], utc=None))
        repairs.update(clock.fixed)
        repairs.update(table.fixed)
        for note in table.notes:
            table_notes.setdefault(note, set()).add(table.name)
    if tally.dropped:
        tally.check(shape.max_bad)
    all_notes = list(parts.notes)
    all_notes += [
        f"{note} ({len(having)} files)" if parts.notes and having else note for note, having in table_notes.items()
    ]
    all_notes += [*(shape.table.meaning.notes if shape.table.meaning is not None else ()), *plan.notes]
    tz, zone_notes = find_common_zone(plan, clocks) if plan.local_beside_utc else (clocks[-1].tz, ())
    joined = {name: _join_labels(parts_of.pop(name), names) for name, names in names_of.items()}
    columns = {name: np.concatenate(parts_of.pop(name)) for name in list(parts_of)}  # frees the parts
    user, user_ids = joined["user"]
    lat, lon = columns.get("lat"), columns.get("lon")
    here = None if lat is None or lon is None else (lat, lon)
    notes = [*all_notes, *zone_notes, *notes]
    if len(files) > 1 and len(user_ids) == 1 and shape.roles["user"] != FILE:
        column = shape.table.label(shape.roles["user"])
        notes.append(f"column {column!r} names one user in all files; if each is one person, give `columns` user=file")
    if here is not None and (polar := int((np.abs(here[0]) > 85).sum())):
        notes.append(f"{polar} rows lie within 5 degrees of a pole: are latitude and longitude swapped?")  # (B25)
    locations, place = None, None
    if named:
        codes, place_names = joined["place"]
        locations, place = number_places(shape, None, codes.astype(np.int64), place_names, own_map, here)
    elif own_map is not None and here is not None:
        locations, place = own_map.locations, own_map.place_of(*here)
    word, categories = joined.get("word", (np.empty(0, np.int32), ()))
    fixes = Fixes(
        user=user,  # of 4 bytes: `clean_fixes` widens those of some users at a time
        labels=user_ids,
        wall=columns["wall"],
        utc=columns.get("utc", columns["wall"]) if plan.zone is not None or "utc" in plan.roles else None,
        lat=lat,
        lon=lon,
        place=place,
        locations=locations,
        tz=tz,
        exact=any(clock.exact for clock in clocks),
        accuracy=columns.get("accuracy"),
        word=word.astype(np.int64) if categories else None,
        words=categories,
        until=columns.get("until"),
    )
    if not named and "place" in shape.roles:
        shape = replace(shape, roles={role: n for role, n in shape.roles.items() if role not in ("place", "end_place")})
    day_first = next((form.day_first for form in plan.forms.values() if form.day_first is not None), None)
    return fixes, shape.report(tally, dict(repairs), tz, plan.times, notes, user_ids, day_first)


def _read_rows(
    shape: Shape,
    table: Table,
    clock: WallClock,
    plan: ClockPlan,
    tally: Tally,
    *,
    named: bool,
    accuracy: bool,
) -> tuple[dict[str, NDArray[Any]], dict[str, tuple[str, ...]], bool]:
    """
    Return the columns of the good rows of a table, the labels of their codes, and whether positions were lines.

    Rows without a user, place or position are dropped and counted, and so are rows without a time, or with one before
    2000 or in the future (B31).
    """
    roles = shape.roles
    user, users = read_users(table, roles)
    row: dict[str, NDArray[Any]] = {"user": user.astype(np.int32), "wall": clock.wall}
    names = {"user": users}
    spoilt, odd = user == -2, np.isnat(clock.wall)
    if clock.utc is not None and clock.utc is not clock.wall:
        row["utc"] = clock.utc
    if "left" in roles:
        row["until"] = read_departures(plan, table, clock)
        odd |= row["until"] < clock.wall
    for when in ("wall", "until") if shape.latest is not None else ():
        if when in row:
            odd |= (row[when] < EARLIEST) | (row[when] > shape.latest)
    faults = {"E_ENCODING": spoilt, "E_USER": user < 0, "E_DATE": odd}
    if (position := read_positions(shape, table)) is not None:
        lat, lon = row["lat"], row["lon"] = position
        number = np.isfinite(lat) & np.isfinite(lon)
        faults |= {"E_NUMBER": ~number, "E_OUTSIDE": number & ((np.abs(lat) > 90) | (np.abs(lon) > 180))}
    if named:
        place, names["place"] = read_labels(table, roles["place"])
        row["place"] = place.astype(np.int32)
        faults |= {"E_ENCODING": spoilt | (place == -2), "E_INDEX": place < 0}
    if "category" in roles:
        word, names["word"] = read_categories(table, roles["category"])
        row["word"] = np.full(table.rows, -1) if word is None else word.astype(np.int32)
    if accuracy and "accuracy" in roles:
        row["accuracy"] = read_numbers(table, roles["accuracy"])
    good = tally.keep(table, faults)
    polylines = read_lines(table, roles["geometry"]) if "geometry" in roles and "left" not in roles else None
    if polylines is not None:
        lat, lon, count = polylines
        return _expand_lines(row, (lon, lat, count) if shape.turned else polylines, good), names, True
    return {name: values[good] for name, values in row.items()}, names, False


def add_cells(parts: Parts, roles: Mapping[str, str]) -> tuple[Parts, dict[str, str]]:
    """Return the tables with a column "x,y" that names the cell of a grid, and the roles with it as the place."""
    import pyarrow as pa

    def add_column(table: Table) -> Table:
        x, y = (read_numbers(table, roles[side]) for side in CELL)
        whole = (x == np.floor(x)) & (y == np.floor(y)) & (np.maximum(np.abs(x), np.abs(y)) < 2**31)
        if 2 * np.count_nonzero(whole) < table.rows:
            raise table.error(
                "columns `x` and `y` number the cells of a grid, and most of their values are no whole numbers. "
                "Convert metres of a map to latitude and longitude (EPSG:4326), or divide them by the width of a cell.",
                "E_NUMBER",
            )
        cells = [
            f"{int(a)},{int(b)}" if ok else "" for a, b, ok in zip(x.tolist(), y.tolist(), whole.tolist(), strict=True)
        ]
        return replace(table, columns={**table.columns, IN_CELL: pa.array(cells, pa.string())})

    tables = parts.tables
    with_cells = replace(parts, sample=add_column(parts.sample), tables=lambda: map(add_column, tables()))
    return with_cells, {**roles, "place": IN_CELL}


def _find_duration(shape: Shape) -> tuple[float, list[str]]:
    """Return the seconds of one unit of a column of durations, and a note; 0 where trips have a time of their end."""
    name = shape.roles["end_time"]
    each = find_duration_unit(name)
    if each is None:
        return 0.0, []
    usual = np.nan_to_num(np.nanmedian(np.append(read_numbers(shape.table, name), np.nan)))
    each = each or (60.0 if usual < SHORT else 1.0)
    unit = {0.001: "milliseconds", 1: "seconds", 60: "minutes"}.get(each, "hours")
    note = f"a trip ends as long after its start as column {shape.table.label(name)!r} says, read as {unit}"
    return each, [note]


def _add_trip_ends(trips: Parts, shape: Shape, each: float) -> Parts:
    """
    Return the tables of trips, each twice: as it is, and with time and place of the end instead of those of the start.

    The second has a column LATER, the seconds from the start to the end, where ends are durations in units of `each`
    seconds, or clock times: a clock time before that of the start is on the next day.
    """
    roles = shape.roles
    clocks = [not each and holds_time_of_day(shape.table, roles[role]) for role in ("time", "end_time")]
    dateless, same_day = clocks[0] and "date" in roles, clocks == [False, True]
    ends = {
        roles[role]: roles[end]
        for role, end in AT_ITS_END.items()
        if end in roles and (role != "time" or not (each or same_day))
    }

    def tables() -> Iterator[Table]:
        for table in trips.tables():
            last = {name: table.columns[end] for name, end in ends.items()}
            if each:
                last[LATER] = read_numbers(table, roles["end_time"]) * each
            elif same_day:
                last[LATER] = seconds_until_clock(table, roles["time"], roles["end_time"])
            elif dateless:
                last[LATER] = add_day_past_midnight(table, roles["time"], roles["end_time"])
            yield from (table, replace(table, columns={**table.columns, **last}, unequal=0, fixed={}))

    return replace(trips, tables=tables)


def _expand_lines(
    row: dict[str, NDArray[Any]], line: tuple[Floats, Floats, Ints], good: Mask
) -> dict[str, NDArray[Any]]:
    """Return the columns of the good rows with one entry for each point of their lines, 15 seconds apart."""
    lat, lon, count = line
    of = np.repeat(np.arange(len(count)), count)
    real = good[of] & (np.abs(lat) <= 90) & (np.abs(lon) <= 180)
    nth = (np.arange(len(of)) - (np.cumsum(count) - count)[of])[real]
    points = {name: values[of[real]] for name, values in row.items()}
    later = (nth * LINE_SECONDS).astype("timedelta64[s]")
    return (
        points | {"lat": lat[real], "lon": lon[real]} | {n: points[n] + later for n in ("wall", "utc") if n in points}
    )


def read_slots(
    shape: Shape, own_map: Map | None, width: int | None, start: str | None, base: int = 0
) -> tuple[Slots, Preparation]:
    """
    Return the slots from columns user, slot, and place (or lat and lon), with date or trace if there are any.

    A slot lasts `width` seconds; if that is None, the number of slots tells it (`_find_slot_width`). `base` is the
    number of the first slot and of the first place: 0, or 1 in SGLT files.
    """
    if absent := missing_roles(shape.roles):
        raise shape.missing_error(absent)
    table, roles = shape.table, shape.roles
    user, names = read_users(table, roles)
    number = read_numbers(table, roles["slot"])
    whole = np.isfinite(number) & (number == np.floor(number)) & (np.abs(number) < 2**31)
    slot = np.where(whole, number, base).astype(np.int64) - base
    faults: dict[str, Mask] = {"E_ENCODING": user == -2, "E_USER": user < 0, "E_NUMBER": ~whole}
    position = read_positions(shape, table)
    codes, place_names = read_labels(table, roles["place"]) if "place" in roles else (np.zeros_like(user), ())
    faults["E_ENCODING"] |= codes == -2
    if "place" not in roles or own_map is None:
        check_positions(shape, position)
        if position is not None:
            # a slot that is marked as missing needs no coordinates
            lat, lon = position
            placed, finite = codes >= 0, np.isfinite(lat) & np.isfinite(lon)
            faults["E_NUMBER"] |= placed & ~finite
            faults["E_OUTSIDE"] = placed & finite & ((np.abs(lat) > 90) | (np.abs(lon) > 180))
    clock, times_as = _read_slot_clock(shape)
    date = None
    if "date" in roles:
        date = read_times(table, roles["date"], date_format=shape.date_format).time.astype("datetime64[D]")
        faults["E_DATE"] = np.isnat(date)
    tally = Tally()
    good = tally.keep(table, faults)
    if tally.dropped:
        tally.check(shape.max_bad)
    user, slot = user[good], slot[good]
    if slot.min() < 0:
        row = int(np.flatnonzero(good)[np.argmax(slot < 0)])
        raise table.error(f"a slot below {base}, the first.", "E_INDEX", row)
    wall = None if clock is None else clock.wall[good]
    width, notes = (width, []) if width is not None else _find_slot_width(slot, wall, shape.max_bad)
    trace = read_labels(table, roles["trace"])[0][good] if "trace" in roles else None
    here = None if position is None else (position[0][good], position[1][good])
    starts = _find_first_days(wall, slot, width)
    row_key, date = _separate_rows(user, slot, None if date is None else date[good], trace, starts)
    if date is None and trace is None and starts is None:
        where = codes[good] if here is None else np.unique(point_keys(*here), return_inverse=True)[1]
        row_key, more_notes = _split_days(user, slot, where)
        notes += more_notes
    locations, place = None, None
    if "place" in roles:
        locations, place = number_places(shape, good, codes[good], place_names, own_map, here, base)
    elif own_map is not None and here is not None:
        locations, place = own_map.locations, own_map.place_of(*here)
    tz = clock.tz if clock is not None else shape.tz or "UTC"
    word, categories = read_categories(table, roles.get("category"))
    slots = Slots(
        user=user,
        labels=names,
        row=row_key,
        slot=slot,
        start=start or _find_start(shape, slot, wall, width, base),
        width=width,
        lat=None if here is None else here[0],
        lon=None if here is None else here[1],
        place=place,
        locations=locations,
        date=date,
        tz=tz,
        word=None if word is None else word[good],
        words=categories,
    )
    repairs = {**table.fixed, **(clock.fixed if clock is not None else {})}
    notes = [*table.notes, *(table.meaning.notes if table.meaning is not None else ()), *notes]
    return slots, shape.report(tally, repairs, "UTC" if clock is None else clock.tz, times_as, notes, names)


def to_long_table(table: Table, roles: Mapping[str, str]) -> tuple[Table, dict[str, str], str | None, int | None]:
    """
    Turn a table with a column per slot of the day into one with a line per slot.

    Return that table, its roles, and the start and length in seconds of a slot, both None where the names of the
    columns are no clock times. A line becomes a row of the traces: where a user has several lines without a date, their
    number is the trace.
    """
    import pyarrow as pa

    slots = [roles[f"{WIDE}{i}"] for i in range(sum(role.startswith(WIDE) for role in roles))]
    n, L = table.rows, len(slots)
    if "user" not in roles and not table.headed:
        table = replace(table, columns={**table.columns, LINE: np.arange(1, n + 1)}, names=(*table.names, LINE))
        roles = {**roles, "user": LINE}
    if "user" not in roles:
        raise table.error(
            f"{L} columns look like the slots of a day, and no column tells whose day it is; give every line an id in "
            "a column called uid, or give `columns` user=NAME.",
            "E_COLUMN",
        )
    check_memory(n * L, table.name)
    line = np.tile(np.arange(n), L)
    columns: dict[str, Any] = {
        name: table.column(name, encoded=True).take(line) for role, name in roles.items() if role in WHOSE
    }
    own_roles = {role: name for role, name in roles.items() if role in WHOSE}
    if not {"date", "trace"} & own_roles.keys():
        user, _ = read_users(table, own_roles)
        if len(np.unique(user)) < n:
            own_roles["trace"], columns["day"] = "day", line
    texts = []
    for name in slots:
        code, words = read_labels(table, name)
        texts.append(np.array([*words, "\ufffd", ""], dtype=object)[code])
    columns |= {"slot": np.repeat(np.arange(L), n), "location": pa.array(np.concatenate(texts), pa.string())}
    own_roles |= {"slot": "slot", "place": "location"}
    meaning = Meaning(own_roles, table.meaning.notes if table.meaning is not None else (), wide=tuple(slots))
    origin = line if table.origin is None else table.origin[line]
    long = replace(table, columns=columns, rows=n * L, names=tuple(columns), meaning=meaning, origin=origin)
    if ":" not in slots[0]:
        return long, own_roles, None, None
    first, second = (clock_minutes(name.removesuffix(":00") if name.count(":") == 2 else name) for name in slots[:2])
    return long, own_roles, clock_text(first), 60 * (second - first)


def _read_slot_clock(shape: Shape) -> tuple[WallClock | None, str]:
    """Return the times beside the slots, None if they cannot be read, and how they are written."""
    if not any(role in shape.roles for role in ("time", "utc", "local")):
        return None, "local"
    try:
        plan = plan_clock(shape.table, shape.roles, shape.tz, shape.date_format)
        clock = read_wall_clock(plan, shape.table)
    except ElsewhereError:
        if shape.chosen & {"time", "utc", "local"}:
            raise
        return None, "local"
    return replace(clock, tz=find_common_zone(plan, [clock])[0]) if plan.local_beside_utc else clock, plan.times


def _find_first_days(wall: Times | None, slot: Ints, width: int) -> Times | None:
    """Return the local date of slot 0 of each entry's row, by the time of the entry; None if some have no time."""
    if wall is None or np.isnat(wall).any():
        return None
    # half a slot of tolerance for a clock that runs early
    start = wall - (slot * width - width // 2).astype("timedelta64[s]")
    return np.asarray(start, dtype="datetime64[D]")


def _separate_rows(
    user: Ints, slot: Ints, date: Times | None, trace: Ints | None, begun: Times | None
) -> tuple[Ints, Times | None]:
    """
    Return a key that differs between the rows of a user, and the date of each entry's row, None where some have none.

    The key is the `date`, else the `trace`, else, where a user has a slot twice, the day of the entry's time (`begun`).
    A row may be made of several days (as in PF Tokyo): then it has no date.
    """
    if date is not None:
        day = date.astype(np.int64)
        # a day that was cut at its gaps has several rows
        return day if trace is None else day * (int(trace.max()) + 2) + trace, date
    key = np.zeros(len(user), dtype=np.int64) if trace is None else trace
    if begun is None:
        return key, None
    if trace is None and len(np.unique(np.column_stack([user, slot]), axis=0)) < len(user):
        return begun.astype(np.int64), begun
    _, first, group = np.unique(np.column_stack([user, key]), axis=0, return_index=True, return_inverse=True)
    return key, begun if np.array_equal(begun, begun[first[group.ravel()]]) else None


def _split_days(user: Ints, slot: Ints, where: Ints) -> tuple[Ints, list[str]]:
    """
    Return the day of each entry by the order of lines, where nothing else tells it, and a note if there are several.

    A new day begins where a user's slots return to an earlier one. All entries stay one day if that would give a user
    more days than the most frequent slot has lines, or days of less than two slots on average (the lines are in another
    order), or if all days are equal (lines are repeated).
    """
    order = np.argsort(user, kind="stable")
    u, s, at = user[order], slot[order], where[order]
    again = np.zeros(len(u), dtype=bool)
    again[1:] = (u[1:] == u[:-1]) & (s[1:] <= s[:-1])
    one = np.zeros(len(user), dtype=np.int64)
    if not again.any():
        return one, []
    first = np.flatnonzero(np.insert(u[1:] != u[:-1], 0, True))
    day = np.cumsum(again) - np.repeat(np.cumsum(again)[first], np.diff(np.append(first, len(u))))
    _, of_pair, times = np.unique(u * (int(s.max()) + 1) + s, return_inverse=True, return_counts=True)
    most, last = np.zeros(int(u.max()) + 1, dtype=np.int64), np.zeros(int(u.max()) + 1, dtype=np.int64)
    np.maximum.at(most, u, times[of_pair])
    np.maximum.at(last, u, day)
    spots = np.full(len(times), -1, dtype=np.int64)
    spots[of_pair[day == 0]] = at[day == 0]
    people, days = int((last > 0).sum()), int((last[np.unique(u)] + 1).sum())
    in_order = np.all(last + 1 <= np.maximum(most, 1)) and 2 * days <= len(u)
    if not in_order or np.array_equal(spots[of_pair], at):
        return one, []
    one[order] = day
    return one, [
        f"{people:,} people have several rows of slots and no column of days: each return to an earlier slot begins a "
        f"new day without a date, {days:,} days in all (`columns`, date=NAME or trace=NAME, names a column of days)"
    ]


def _find_slot_width(slot: Ints, wall: Times | None, max_bad: float) -> tuple[int, list[str]]:
    """
    Return the length of a slot in seconds where the caller gave none, and a note unless these are 72 of 20 minutes.

    24, 48, 72, 96, 144, 288 or 1440 numbered slots are a whole day; with any other number a slot has 20 minutes. So it
    has where times beside the slots advance by 20 minutes.
    """
    n = int(slot.max()) + 1
    whole = SECONDS_PER_DAY // n if n in WHOLE_DAYS else USUAL_WIDTH
    if wall is not None and np.mean(_find_day_starts(slot, wall, USUAL_WIDTH)[1] > 0.75 * USUAL_WIDTH) <= max_bad:
        return USUAL_WIDTH, []
    if n * whole == SECONDS_PER_DAY:
        note = f"{n} slots, and no `step` given: read as a whole day of {n} slots of {length_text(whole / 60)}"
    else:
        hours = n * whole / 3600
        note = f"{n} slots, and no `step` given: read as {hours:.3g} hours, in slots of {length_text(whole / 60)}"
    return whole, [] if n * USUAL_WIDTH == SECONDS_PER_DAY else [f"{note}; `step` sets another length"]


def _find_day_starts(slot: Ints, wall: Times, width: int) -> tuple[Ints, Ints]:
    """Return the second of the day at which slot 0 begins by each entry, and how far that is from the median."""
    of_day = (wall - wall.astype("datetime64[D]")).astype("timedelta64[s]").astype(np.int64)
    begins = (of_day - slot * width) % SECONDS_PER_DAY
    usual = int(np.median(begins))
    half = SECONDS_PER_DAY // 2
    return begins, np.abs((begins - usual + half) % SECONDS_PER_DAY - half)


def _find_start(shape: Shape, slot: Ints, wall: Times | None, width: int, base: int) -> str:
    """Return the local time of the first slot that occurs, by times beside the slots; without them 0 is midnight."""
    first = int(slot.min())
    second = first * width
    if wall is not None:
        begins, away = _find_day_starts(slot, wall, width)
        # a time is at most half a slot from the median, and a little more where clocks differ
        if np.mean(away > 0.75 * width) > shape.max_bad:
            raise shape.table.error(
                "times do not advance by `step` from slot to slot; give `step`, or leave the column of times out.",
                "E_ALIGN",
            )
        aligned = begins // width
        zero = int(aligned[0]) * width if np.all(aligned == aligned[0]) else int(np.median(begins))
        second = (zero + first * width) % SECONDS_PER_DAY
    elif first == 1 and not base:
        raise shape.table.error(
            "slots are counted from 0, and there is none; give `start`, the time of slot 1.", "E_INDEX"
        )
    minute = second % SECONDS_PER_DAY // 60
    return clock_text(minute)
