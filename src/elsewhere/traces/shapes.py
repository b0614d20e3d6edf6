"""The two shapes of input: fixes (a user at a time) and slots (a user at a numbered instant), from named columns."""

import unicodedata

import numpy as np

from elsewhere.errors import ElsewhereError
from elsewhere.traces.clock import Times, WallClock, departures, times, wall_clock
from elsewhere.traces.columns import labels, numbers, words
from elsewhere.traces.fixes import Fixes, Preparation, Slots
from elsewhere.traces.gaps import SECONDS_PER_DAY
from elsewhere.traces.model import Ints
from elsewhere.traces.places import Map
from elsewhere.traces.positions import number_places, odd_positions, position_faults, positions, spread
from elsewhere.traces.rows import Mask, Shape

TIME_ROLES = ("time", "utc", "local", "date", "arrived")


def fixes_of(shape: Shape, given: Map | None) -> tuple[Fixes, Preparation]:
    """Fixes, or visits, from columns user, time (or arrived and left), and lat and lon (or geometry, or place)."""
    shape.require("user")
    shape.require(*TIME_ROLES)
    table, roles = shape.table, shape.roles
    notes: list[str] = []
    user, names = labels(table, roles["user"])
    position = positions(shape)
    clock = wall_clock(table, roles, shape.tz, shape.date_format, position)
    faults = {"E_USER": user < 0, "E_DATE": shape.odd_times(clock.wall)} | position_faults(shape, position)
    until = departures(table, roles["left"], shape.date_format, clock) if "left" in roles else None
    if until is not None:
        faults["E_DATE"] |= shape.odd_times(until) | (until < clock.wall)
    place, place_names = labels(table, roles["place"]) if "place" in roles else (None, ())
    guessed = given is None and "place" not in shape.chosen
    if guessed and place is not None and spread(place, len(place_names), position) > shape.max_bad:
        notes.append(f"column {roles['place']!r} was not read: its values do not name places")
        place = None
    if place is not None:
        faults |= {"E_INDEX": place < 0}
    good, dropped = shape.keep(faults)
    here = None if position is None else (position[0][good], position[1][good])
    notes += odd_positions(here)
    word, categories = words(table, roles.get("category"))
    locations = None
    if place is not None:
        locations, place = number_places(shape, good, place[good], place_names, given, here)
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
        word=None if word is None else word[good],
        words=categories,
        until=None if until is None else until[good],
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
    position = positions(shape)
    codes, place_names = labels(table, roles["place"]) if "place" in roles else (np.zeros_like(user), ())
    if "place" not in roles or given is None:
        # a slot that is marked as missing needs no coordinates
        for code, fault in position_faults(shape, position).items():
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
        locations, place = number_places(shape, good, codes[good], place_names, given, here, base)
    elif given is not None and here is not None:
        locations, place = given.locations, given.place_of(*here)
    word, categories = words(table, roles.get("category"))
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
        word=None if word is None else word[good],
        words=categories,
    )
    return slots, shape.counted(dropped, clock, [*notes, *_look_alikes(names)])


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
