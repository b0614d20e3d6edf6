"""
The two shapes of input: fixes (a user at a time) and slots (a user at a numbered instant), from named columns.

Rows that cannot be read are dropped and counted by reason; more than `max_bad` of them refuse the file. Messages
say how many, the first line and the code.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import ElsewhereError
from elsewhere.traces.clock import Times, WallClock, times, wall_clock
from elsewhere.traces.columns import labels, numbers, points
from elsewhere.traces.fixes import Fixes, Preparation, Slots
from elsewhere.traces.gaps import SECONDS_PER_DAY
from elsewhere.traces.model import Floats, Ints, Locations
from elsewhere.traces.places import Map, in_space, mean_points
from elsewhere.traces.tables import TABLES, Table

SAME_PLACE_KM = 1.0  # a column of places whose fixes lie farther apart names something else
EARLIEST = np.datetime64("2000-01-01", "us")
PLAIN_NUMBERS = 10_000  # place numbers below this are kept as they are, however few of them occur
REASONS = {
    "E_CSV": "have more or fewer fields than the first line",
    "E_USER": "have no user id",
    "E_DATE": "have no readable time, or one before 2000 or in the future (`any_date`)",
    "E_NUMBER": "have numbers that cannot be read",
    "E_OUTSIDE": "lie outside the globe, or the `box`",
    "E_NULL_ISLAND": "lie at 0, 0, outside the `box`",
    "E_INDEX": "have no place",
}
TIME_ROLES = ("time", "utc", "local", "date")
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Shape:
    """
    A table, what its columns mean, and how it is to be read.

    `chosen` are the roles the caller named himself. `box` is the map, (south, west, north, east). Times from 2000 to
    `latest` are believed; all of them if it is None.
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

    def require(self, *alternatives: str) -> None:
        """Refuse a table that has none of these roles."""
        if not any(role in self.roles for role in alternatives):
            wanted = " or ".join(f"`{role}`" for role in alternatives)
            raise self.table.refuse(
                f"no column for {wanted}; name it with `columns`, {alternatives[0]}=NAME.", "E_COLUMN"
            )

    def odd_times(self, wall: Times) -> Mask:
        """Rows without a time, or with one that no trace is from (B31)."""
        odd = np.isnat(wall)
        if self.latest is not None:
            odd |= (wall < EARLIEST) | (wall > self.latest)
        return odd

    def keep(self, faults: Mapping[str, Mask]) -> tuple[Mask, dict[str, int]]:
        """The rows without a fault, and how many are dropped for each; refused if too many are (B21)."""
        good = np.ones(self.table.rows, dtype=bool)
        rows = self.table.rows + self.table.unequal
        dropped = {"E_CSV": self.table.unequal} if self.table.unequal else {}
        first: dict[str, int] = {}
        for code, fault in faults.items():
            new = fault & good
            if new.any():
                dropped[code], first[code] = int(new.sum()), int(np.argmax(new))
                good &= ~new
        if sum(dropped.values()) > self.max_bad * rows or not good.any():
            code = max(first, key=lambda c: dropped[c])  # of unequal lines alone there are not too many
            raise self.table.refuse(
                f"{dropped[code]} of {rows} rows {REASONS[code]}, this is the first; "
                f"at most {self.max_bad:.2%} of all rows may be dropped (`max_bad`).",
                code,
                first[code],
            )
        return good, dropped

    def counted(self, dropped: Mapping[str, int], clock: WallClock | None, notes: list[str]) -> Preparation:
        """What is known before the traces are made."""
        role_of = {name: role for role, name in self.roles.items()}
        tabular = self.table.format in (*TABLES, "frame", "json")
        if clock is not None and clock.utc is not None and "time" in self.roles:
            role_of[self.roles["time"]] = "utc"
        return Preparation(
            name=self.table.name,
            rows=self.table.rows + self.table.unequal,
            dropped=dropped,
            fixed={} if clock is None else clock.fixed,
            tz="UTC" if clock is None else clock.tz,
            # only a table has columns that can be written again
            columns={role_of[n]: n for n in self.table.columns if role_of.get(n, "accuracy") != "accuracy"}
            if tabular
            else {},
            format=self.table.format,
            notes=(*self.table.notes, *notes, *(self._left_out() if tabular and self.table.headed else ())),
        )

    def _left_out(self) -> list[str]:
        """A word on columns that nobody asked for: the output will not have them."""
        extra = [name for name in self.table.names if name not in self.roles.values()]
        shown = ", ".join(map(repr, extra[:5])) + (" ..." if len(extra) > 5 else "")
        return [f"{len(extra)} columns were not read: {shown}"] if extra else []


def fixes_of(shape: Shape, given: Map | None) -> tuple[Fixes, Preparation]:
    """Fixes from columns user, time, and lat and lon (or geometry, or place)."""
    shape.require("user")
    shape.require(*TIME_ROLES)
    table, roles = shape.table, shape.roles
    notes: list[str] = []
    user, names = labels(table, roles["user"])
    position = _positions(shape)
    clock = wall_clock(table, roles, shape.tz, shape.date_format, position)
    faults = {"E_USER": user < 0, "E_DATE": shape.odd_times(clock.wall)} | _position_faults(shape, position)
    place, place_names = labels(table, roles["place"]) if "place" in roles else (None, ())
    guessed = given is None and "place" not in shape.chosen
    if guessed and place is not None and _spread(place, len(place_names), position) > shape.max_bad:
        notes.append(f"column {roles['place']!r} was not read: its values do not name places")
        place = None
    if place is not None:
        faults |= {"E_INDEX": place < 0}
    good, dropped = shape.keep(faults)
    here = None if position is None else (position[0][good], position[1][good])
    notes += _odd_positions(here)
    locations = None
    if place is not None:
        locations, place, renumbered = _number_places(shape, good, place[good], place_names, given, here)
        notes += renumbered
    elif here is None:
        shape.require("lat", "geometry", "place")
    elif given is not None:
        locations, place = given.locations, given.place_of(*here)
    fixes = Fixes(
        user=user[good],
        labels=names,
        wall=clock.wall[good],
        utc=None if clock.utc is None else clock.utc[good],
        lat=None if here is None else here[0],
        lon=None if here is None else here[1],
        place=place,
        locations=locations,
        tz=clock.tz,
        exact=clock.exact,
        accuracy=numbers(table, roles["accuracy"])[good] if "accuracy" in roles else None,
    )
    return fixes, shape.counted(dropped, clock, [*clock.notes, *notes, *_look_alikes(names)])


def slots_of(
    shape: Shape, given: Map | None, width: int, start: str | None, base: int = 0
) -> tuple[Slots, Preparation]:
    """
    Slots of `width` seconds from columns user, slot, and place (or lat and lon), with date or trace if there are any.

    `base` is the number of the first slot and of the first place: 0, or 1 in SGLT files.
    """
    shape.require("user")
    shape.require("place", "lat", "geometry")
    table, roles = shape.table, shape.roles
    notes: list[str] = []
    user, names = labels(table, roles["user"])
    number = numbers(table, roles["slot"])
    whole = np.isfinite(number) & (number == np.floor(number)) & (np.abs(number) < 2**31)
    slot = np.where(whole, number, base).astype(np.int64) - base
    faults: dict[str, Mask] = {"E_USER": user < 0, "E_NUMBER": ~whole}
    position = _positions(shape)
    codes, place_names = labels(table, roles["place"]) if "place" in roles else (np.zeros_like(user), ())
    if "place" not in roles or given is None:
        # a slot that is marked as missing needs no coordinates
        for code, fault in _position_faults(shape, position).items():
            faults[code] = (fault & (codes >= 0)) | faults.get(code, np.False_)
    clock = _clock_of_slots(shape)
    date = None
    if "date" in roles:
        date = times(table, roles["date"], date_format=shape.date_format).time.astype("datetime64[D]")
        faults["E_DATE"] = np.isnat(date)
    good, dropped = shape.keep(faults)
    user, slot = user[good], slot[good]
    if slot.min() < 0:
        row = int(np.flatnonzero(good)[np.argmax(slot < 0)])
        raise table.refuse(f"a slot below {base}, the first.", "E_INDEX", row)
    wall = None if clock is None else clock.wall[good]
    trace = labels(table, roles["trace"])[0][good] if "trace" in roles else None
    row_key, date = _rows(user, slot, None if date is None else date[good], trace, _day_begun(wall, slot, width))
    here = None if position is None else (position[0][good], position[1][good])
    locations, place = None, None
    if "place" in roles:
        locations, place, notes = _number_places(shape, good, codes[good], place_names, given, here, base)
    elif given is not None and here is not None:
        locations, place = given.locations, given.place_of(*here)
    slots = Slots(
        user=user,
        labels=names,
        row=row_key,
        slot=slot,
        start=start or _start(shape, slot, wall, width, base),
        lat=None if here is None else here[0],
        lon=None if here is None else here[1],
        place=place,
        locations=locations,
        date=date,
        tz=clock.tz if clock is not None else shape.tz or "UTC",
    )
    return slots, shape.counted(dropped, clock, [*notes, *_look_alikes(names)])


def _positions(shape: Shape) -> tuple[Floats, Floats] | None:
    if "lat" in shape.roles or "lon" in shape.roles:
        shape.require("lat")
        shape.require("lon")
        lat, lon = numbers(shape.table, shape.roles["lat"]), numbers(shape.table, shape.roles["lon"])
        return lat, np.where((lon > 180) & (lon <= 360), lon - 360, lon) if shape.lon360 else lon
    if "geometry" in shape.roles:
        return points(shape.table, shape.roles["geometry"])
    return None


def _position_faults(shape: Shape, position: tuple[Floats, Floats] | None) -> dict[str, Mask]:
    """Rows whose coordinates are none, or off the globe; columns that are swapped or no degrees are refused."""
    if position is None:
        return {}
    lat, lon = position
    number = np.isfinite(lat) & np.isfinite(lon)
    high, wide = number & (np.abs(lat) > 90), number & (np.abs(lon) > 180)
    limit, n = max(shape.max_bad, 0.01), max(1, int(number.sum()))
    if number.any():
        if np.all(np.abs(lat[number]) > 1000) or np.all(np.abs(lon[number]) > 1000):
            raise shape.table.refuse("the coordinates are no degrees; metres of a map?", "E_SWAPPED")
        small = max(np.abs(lat[number]).max(), np.abs(lon[number]).max()) < np.pi
        # all of them in the sea off Ghana; a box says that they really are
        if small and shape.box is None and np.any((lat != 0) | (lon != 0)):
            raise shape.table.refuse("the coordinates are no degrees; radians? If they are, give `box`.", "E_SWAPPED")
        turned = number & (np.abs(lon) <= 90) & (np.abs(lat) <= 180)
        if high.sum() > limit * n and turned.sum() >= (1 - limit) * n:
            raise shape.table.refuse("the columns of latitude and longitude look swapped.", "E_SWAPPED")
        if (wide & (lon > 0) & (lon <= 360)).sum() > limit * n >= high.sum():
            raise shape.table.refuse("longitudes run from 0 to 360: say `lon360`.", "E_OUTSIDE")
    faults = {"E_NUMBER": ~number, "E_OUTSIDE": high | wide}
    if shape.box is not None:
        south, west, north, east = shape.box
        across = (lon >= west) | (lon <= east) if west > east else (lon >= west) & (lon <= east)
        off = number & ~((lat >= south) & (lat <= north) & across)
        zero = off & (lat == 0) & (lon == 0)
        faults = {"E_NUMBER": ~number, "E_NULL_ISLAND": zero, "E_OUTSIDE": off | high | wide}
    return faults


def _odd_positions(here: tuple[Floats, Floats] | None) -> list[str]:
    """A word on positions that are possible and seldom meant (B20, B25)."""
    if here is None:
        return []
    zero, pole = int(((here[0] == 0) & (here[1] == 0)).sum()), int((np.abs(here[0]) > 85).sum())
    notes = [f"{zero} rows lie at 0, 0, mostly a sign of no position; a `box` drops them"] if zero else []
    return notes + ([f"{pole} rows lie within 5 degrees of a pole"] if pole else [])


def _spread(place: Ints, n: int, position: tuple[Floats, Floats] | None) -> float:
    """Share of rows that lie far from the mean of their place's rows; 0 without coordinates."""
    if position is None:
        return 0.0
    lat, lon = position
    number = (place >= 0) & np.isfinite(lat) & np.isfinite(lon)
    if not number.any():
        return 1.0
    at = place[number]
    mean = in_space(*mean_points(lat[number], lon[number], at, n))
    away = np.linalg.norm(in_space(lat[number], lon[number]) - mean[at], axis=1)
    return float(np.mean(away > SAME_PLACE_KM))


def _number_places(
    shape: Shape,
    good: Mask,
    codes: Ints,
    names: tuple[str, ...],
    given: Map | None,
    here: tuple[Floats, Floats] | None,
    base: int = 0,
) -> tuple[Locations, Ints, list[str]]:
    """
    Places and the place number of every good row, -1 where it is marked as missing (no label, or "-1").

    Labels are ids or numbers of the `given` places. Without any, places have the mean coordinates of their rows and
    the order of their labels; without coordinates whole numbers stay what they are.
    """
    missing = names.index("-1") if "-1" in names else -1
    codes = np.where(codes == missing, -1, codes)
    used = np.unique(codes[codes >= 0])
    if len(used) == 0:
        raise shape.table.refuse("no row has a place.", "E_EMPTY")
    whole = all(names[c].isascii() and names[c].removeprefix("-").isdigit() for c in used)
    number = np.full(len(names) + 1, -1, dtype=np.int64)  # of each label; the last entry is that of -1

    def refuse(label: int, what: str) -> Exception:
        row = int(np.flatnonzero(good)[np.argmax(codes == label)])
        return shape.table.refuse(what, "E_INDEX", row)

    if given is not None and given.number is not None and not base:
        for c in used:
            if names[c] not in given.number:
                raise refuse(c, "a place that is not among the locations.")
            number[c] = given.number[names[c]]
        return given.locations, number[codes], []
    if given is None and here is not None:
        group = np.searchsorted(used, codes)
        seen = codes >= 0
        lat, lon = mean_points(here[0][seen], here[1][seen], group[seen], len(used))
        number[used] = np.arange(len(used))
        same = [names[c] for c in used] == [str(i) for i in range(len(used))]
        note = [] if same else ["places are numbered anew, in the order of their ids; give `locations` to keep numbers"]
        return Locations(lat, lon), number[codes], note
    if not whole:
        if given is not None:
            raise refuse(int(used[0]), "a place that is no number; `locations` without ids are numbered from 0.")
        number[used] = np.arange(len(used))
        return Locations(n=len(used), names=[names[c] for c in used]), number[codes], []
    values = [int(names[c]) for c in used]
    if given is None and max(values) >= max(PLAIN_NUMBERS, 10 * len(used)):
        number[used] = np.arange(len(used))
        return Locations(n=len(used), names=[names[c] for c in used]), number[codes], []
    R = max(values) - base + 1 if given is None else len(given.locations)
    for c, value in zip(used, values, strict=True):
        if not base <= value < base + R:
            hint = "; are they counted from 1?" if not base and min(values) >= 1 and max(values) == R else ""
            raise refuse(int(c), f"a place outside {base} .. {base + R - 1}{hint}.")
        number[c] = value - base
    return Locations(n=R) if given is None else given.locations, number[codes], []


def _clock_of_slots(shape: Shape) -> WallClock | None:
    """The times beside the slots, if there are any that can be read: they tell when slot 0 is."""
    if not any(role in shape.roles for role in ("time", "utc", "local")):
        return None
    try:
        return wall_clock(shape.table, shape.roles, shape.tz, shape.date_format)
    except ElsewhereError:
        if shape.chosen & {"time", "utc", "local"}:
            raise
        return None


def _day_begun(wall: Times | None, slot: Ints, width: int) -> Times | None:
    """The local date on which slot 0 of each entry's row was, by the time of the entry itself."""
    if wall is None or np.isnat(wall).any():
        return None
    # half a slot of slack for a clock that runs early
    began = wall - (slot * width - width // 2).astype("timedelta64[s]")
    return np.asarray(began, dtype="datetime64[D]")


def _rows(
    user: Ints, slot: Ints, date: Times | None, trace: Ints | None, begun: Times | None
) -> tuple[Ints, Times | None]:
    """
    What tells the rows of one user apart, and the date of each entry's row, None where it is not known of all.

    Rows are told apart by `date`, else by `trace`, else, where a user has a slot twice, by the day their times tell. A
    row may be put together of several days (as in PF Tokyo): then it has no date.
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


def _start(shape: Shape, slot: Ints, wall: Times | None, width: int, base: int) -> str:
    """Local time of the first slot that occurs: by the times beside the slots, else slot 0 is midnight."""
    first = int(slot.min())
    second = first * width
    if wall is not None:
        of_day = (wall - wall.astype("datetime64[D]")).astype("timedelta64[s]").astype(np.int64)
        begins = (of_day - slot * width) % SECONDS_PER_DAY
        usual = int(np.median(begins))
        away = np.abs((begins - usual + SECONDS_PER_DAY // 2) % SECONDS_PER_DAY - SECONDS_PER_DAY // 2)
        # within its slot a time is at most half a slot from the usual one, and a little for clocks that differ
        if np.mean(away > 0.75 * width) > shape.max_bad:
            raise shape.table.refuse(
                "times do not advance by `step` from slot to slot; give `step`, or leave the column of times out.",
                "E_ALIGN",
            )
        aligned = begins // width
        zero = int(aligned[0]) * width if np.all(aligned == aligned[0]) else usual
        second = (zero + first * width) % SECONDS_PER_DAY
    elif first == 1 and not base:
        raise shape.table.refuse(
            "slots are counted from 0, and there is none; give `start`, the time of slot 1.", "E_INDEX"
        )
    minute = second % SECONDS_PER_DAY // 60
    return f"{minute // 60:02}:{minute % 60:02}"


# Cyrillic and Greek letters that look like Latin ones
_LATIN = str.maketrans("\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u03bf\u03b1\u03bd\u03c1", "aeopcxyioavp")


def _look_alikes(names: tuple[str, ...]) -> list[str]:
    def plain(name: str) -> str:
        return unicodedata.normalize("NFKC", name).strip().casefold().translate(_LATIN)

    alike = len(names) - len({plain(name) for name in names})
    return [f"{alike} user ids differ from another one only by blanks, case or look-alike letters"] if alike else []
