"""
Hold what every reader ends in, `Fixes` (positions at times) or `Slots` (numbered slots); clean fixes and fill gaps.

Fixes come out in order of time, without doubles and impossible jumps, crowded slots thinned out, visits as fixes. A
slot without a fix of its user is empty; what happens then is a policy with a name, a default and words for it. Fakes
are made of whole days alone, so the longest gap that is filled decides who can be used at all: `people_by_gap` says how
many people each length keeps. What became of an input is counted in a `Preparation`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidTraces
from elsewhere.sorting import count_users
from elsewhere.traces.clock import Times
from elsewhere.traces.maps import Box, in_box
from elsewhere.traces.model import Floats, Ints, Locations, Mask, to_lat_lon, to_xyz
from elsewhere.traces.places import (
    MANY_ENOUGH,
    MOST_GRID_CELLS,
    grid_cells,
    point_keys,
    snap_to_anchors,
)
from elsewhere.traces.sources import check_memory

RAW = 1 << 20  # fixes up to which every one is kept
BATCH = 1 << 20  # fixes that are cleaned at a time, or those of one user
BYTES_AN_ENTRY = 200  # of what slots are made of: measured on 5 million fixes, each in a slot of its own
FASTEST_KMH = 1200.0  # no airliner is faster over ground
LEAST_JUMP_KM = 10.0  # nearer, positions jitter: two networks place one phone differently within a second
MOST_JUMPS = 0.2  # of the fixes: more are no single errors, but ids that several people share, or wrong times
ENTRIES_A_POINT, SHARED_ENTRIES = 5, 0.9  # what makes few points exact places, see `are_places`
POINTS = 1 << 16  # points that are looked at at a time
SECONDS_PER_DAY = 86_400
RUNGS = (1, 3, 6, 12, 24)  # hours that `max_gap="auto"` tries, the shortest first
ENOUGH = 0.9  # of the people whom the longest rung keeps (docs/decisions.md, gaps)
MOST_SLOTS = 1 << 27  # of all rows together: 1.8 million days of 72, at 8 bytes and a little each
LEAST_SLOTS = 2  # slots with a fix of their own that a day needs
GAPS = {
    "hold": "a slot without fixes keeps the place of the last fix, up to {max_gap}, and before the first fix of a day, "
    "up to {max_gap}, it takes the place of that one; longer gaps stay missing",
    "interpolate": "a slot between two fixes at most {max_gap} apart gets the place on the straight way between them; "
    "longer gaps stay missing",
    "split": "gaps are filled as by hold, up to {max_gap}; at a longer gap the day is cut, and its pieces are rows of "
    "their own",
    "drop": "gaps are filled as by hold, up to {max_gap}; users of whose slots fewer than {min_coverage} are known are "
    "dropped with all their days",
}


PER_ENTRY = ("user", "wall", "lat", "lon", "place", "utc", "accuracy", "word", "until", "count")  # arrays of `Fixes`


@dataclass(frozen=True, eq=False)
class Fixes:
    """
    Where users were, one entry per fix, in any order.

    `wall` is the local wall clock and `tz` its zone. `utc` is the same instant in UTC, where it is known: on the day
    of 25 hours one wall-clock time happens twice. Positions are `lat`, `lon`, or `place`, a number in `locations`.
    Times that are not `exact` are whole minutes: a user may be at two places in one. `accuracy` is the radius of a fix
    in metres, NaN where it is not known. Where they are visits, `until` is the wall clock of the departure. `word` is
    the number in `words` of the category of its place, -1 without one. `count` is for how many fixes an entry stands:
    itself and others of its slot at its place; 0 for the last of a slot, which is counted already. None means 1.
    """

    user: Ints
    labels: tuple[str, ...] = field(repr=False)
    wall: Times
    lat: Floats | None = None
    lon: Floats | None = None
    place: Ints | None = None
    locations: Locations | None = None
    utc: Times | None = None
    tz: str = "UTC"
    exact: bool = True
    accuracy: Floats | None = None
    word: Ints | None = None
    words: tuple[str, ...] = field(default=(), repr=False)
    until: Times | None = None
    count: Ints | None = None

    def __len__(self) -> int:
        return len(self.user)

    def select(self, chosen: NDArray[Any]) -> "Fixes":
        """Return the chosen entries (numbers or a mask), in that order."""
        columns: dict[str, Any] = {
            name: column[chosen] for name in PER_ENTRY if (column := getattr(self, name)) is not None
        }
        return replace(self, **columns)


@dataclass(frozen=True, eq=False)
class Slots:
    """
    Where users were in numbered slots: one entry per user, row and slot, in any order.

    `row` tells the rows of one user apart (0 where there is only one), `date` is the local date of that row. `place`
    is -1 where it is marked as missing. `start` is the local time of the first slot that occurs, `width` the seconds of
    a slot.
    """

    user: Ints
    labels: tuple[str, ...] = field(repr=False)
    row: Ints
    slot: Ints
    start: str
    width: int
    lat: Floats | None = None
    lon: Floats | None = None
    place: Ints | None = None
    locations: Locations | None = None
    date: Times | None = None
    tz: str = "UTC"
    word: Ints | None = None
    words: tuple[str, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.user)


@dataclass(frozen=True, eq=False)
class Coverage:
    """
    How much of every day of every user is known: for the owner of the data alone.

    Day i, of user `labels[user[i]]` on `date[i]`, has the share `known[i]` of its slots known, `observed[i]` by a fix
    in the slot itself; `kept[i]` tells whether it became part of the traces. `by_user` is the mean share of known slots
    of each user over the days with a fix.
    """

    user: Ints
    labels: tuple[str, ...] = field(repr=False)
    date: Times | None = field(repr=False)
    known: Floats = field(repr=False)
    observed: Floats = field(repr=False)
    kept: NDArray[Any] = field(repr=False)
    by_user: Floats = field(repr=False)


@dataclass(frozen=True)
class Preparation:
    """
    What became of an input: counts only, so that it can be shown to anyone who may see the file's name.

    `dropped` and `fixed` count rows by reason. A day is a row of the traces; `days_dropped` had less than the
    required coverage, `days_single` of them fixes in one slot alone. `days_usable` are known from end to end, and
    `users_usable` have such a day, of which alone fakes can be made; `people_by_gap` are those whom other longest gaps
    would keep, and `max_gap_auto` says whether that decided `max_gap_minutes`. `map` is how the map was found, `map_km`
    how wide it is if it was cut; `slots_outside` lie outside, on `days_outside` days of `users_outside` users.
    `slots_observed + slots_held + slots_missing` are all slots of the days kept; `slots_held` were filled by the policy
    `gaps`. `missing` is what became of the others: their days are left out ("drop"), or they were drawn ("gibbs").
    `users_by_coverage` counts users by tenths of known slots, those dropped among them; `places_rare` are
    visited by fewer than five users, `cells` the most places that were asked for, `joined_for_fakes` whether the makers
    of fakes joined places, beyond what `places_by` says of reading. `by` is "fixes" or "slots". `columns` names the
    column that was read for each role, in the shape that `write_traces` takes, as `times` and `form` are; it is empty
    where `format` is no table.
    `coverage`, and `seeds`, whom the map was not found in, are for the owner, and are left out of `to_dict`.
    """

    name: str = ""
    rows: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    fixed: Mapping[str, int] = field(default_factory=dict)
    users: int = 0
    users_dropped: int = 0
    users_usable: int = 0
    users_by_coverage: tuple[int, ...] = ()
    days: int = 0
    days_usable: int = 0
    days_dropped: int = 0
    days_single: int = 0
    slots_observed: int = 0
    slots_held: int = 0
    slots_missing: int = 0
    slots_outside: int = 0
    days_outside: int = 0
    users_outside: int = 0
    map: str = "whole"
    map_km: float | None = None
    places_found: int = 0
    places: int = 0
    places_rare: int = 0
    places_by: str = "given"
    joined_for_fakes: bool = False
    cells: int | None = None
    grid_metres: float | None = None
    gaps: str = ""
    missing: str = "drop"
    max_gap_minutes: float | None = None
    max_gap_auto: bool = False
    people_by_gap: Mapping[str, int] = field(default_factory=dict)
    min_coverage: float | None = None
    step_minutes: float | None = None
    tz: str = "UTC"
    times: str = "local"
    columns: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, Any] = field(default_factory=dict)
    format: str = "frame"
    notes: tuple[str, ...] = ()
    by: str = "fixes"
    coverage: Coverage | None = field(default=None, repr=False, compare=False)
    seeds: frozenset[str] | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return all counts and settings as plain values, for JSON."""
        plain = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("coverage", "seeds")}
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in plain.items()}

    @property
    def share_filled(self) -> float:
        """Return the share of the known slots that were filled by the policy `gaps`."""
        return self.slots_held / max(1, self.slots_held + self.slots_observed)

    def in_public(self, fewest: int = 5) -> dict[str, Any]:
        """Return how the input became slots and places, as the manifest may show it: no count below `fewest`."""
        of_slots = ("step_minutes", "gaps", "missing", "max_gap_minutes", "max_gap_auto")
        of_places = ("map", "places_by", "joined_for_fakes", "cells", "grid_metres")
        return {
            **{name: getattr(self, name) for name in (*of_slots, *of_places)},
            "people_by_gap": {gap: n if n >= fewest else f"<{fewest}" for gap, n in self.people_by_gap.items()},
            "map_km": None if self.map_km is None else 10 * round(self.map_km / 10),
            "share_filled": round(self.share_filled, 2),
        }

    def in_the_way(self, *, by_gap: bool = True) -> list[str]:
        """
        Say all that keeps people from having a usable day, with numbers and what to do about each.

        Without `by_gap` the people whom each longest gap would keep are left out.

        Examples
        --------
        >>> read = Preparation(days_dropped=40, days_single=40, max_gap_minutes=60, people_by_gap={"1h": 0, "24h": 7})
        >>> for each in read.in_the_way():
        ...     print(each)
        days with fixes in one slot alone, which says nothing of how the day went: 40
        gaps of more than 1h are not filled (`max_gap`); people with a usable day by longest gap: 1h 0, 24h 7

        """
        reasons = []
        if self.days_single:
            alone = "days with fixes in one slot alone, which says nothing of how the day went"
            reasons.append(f"{alone}: {self.days_single:,}")
        if self.days_outside:
            how = {"auto": ' (`map="whole"` takes them in)', "box": " (`box`)", "regions": " (`regions`)"}
            reasons.append(f"days that lead outside the map{how.get(self.map, '')}: {self.days_outside:,}")
        if self.max_gap_minutes is not None and self.people_by_gap:
            ladder = ", ".join(f"{gap} {people:,}" for gap, people in self.people_by_gap.items())
            who = "people" if self.seeds is None else "people who are no seeds,"
            reasons.append(
                f"gaps of more than {length_text(self.max_gap_minutes)} are not filled (`max_gap`)"
                + (f"; {who} with a usable day by longest gap: {ladder}" if by_gap else "")
            )
        thin = self.days_dropped - self.days_single
        if thin > 0 and self.min_coverage:
            thin_days = f"days with less than {self.min_coverage:.0%} of their slots known (`min_coverage`)"
            reasons.append(f"{thin_days}: {thin:,}")
        return reasons


def length_text(minutes: float) -> str:
    """Write a length of time as it is typed: 20min, 12h."""
    return f"{minutes / 60:g}h" if minutes >= 60 and minutes % 60 == 0 else f"{minutes:g}min"


def split_visits(visits: Fixes, width: int, name: str) -> tuple[Fixes, int]:
    """
    Return visits as one fix per slot they last in, at their last moment there, and how many visits have none.

    Of several visits of one person in a slot the longest there wins, of equals the first.
    """
    assert visits.until is not None  # noqa: S101 - that is what makes them visits
    begin = visits.wall.astype("datetime64[us]").astype(np.int64)
    end = np.maximum(visits.until.astype("datetime64[us]").astype(np.int64), begin + 1)
    long = width * 1_000_000
    first = begin // long
    slots = (end - 1) // long - first + 1
    if slots.sum() > MOST_SLOTS:
        raise InvalidTraces(
            f"{name}: the visits last {slots.sum()} slots, too many; a longer `step`?", code="E_TOO_LARGE"
        )
    visit = np.repeat(np.arange(len(visits)), slots)
    slot = first[visit] + np.arange(len(visit)) - np.repeat(np.cumsum(slots) - slots, slots)
    since, till = np.maximum(begin[visit], slot * long), np.minimum(end[visit], (slot + 1) * long)
    order = np.lexsort((since, since - till, slot, visits.user[visit]))
    user, at = visits.user[visit[order]], slot[order]
    best = np.ones(len(order), dtype=bool)
    best[1:] = (user[1:] != user[:-1]) | (at[1:] != at[:-1])
    rows = order[best]
    moment = (till[rows] - 1).astype("datetime64[us]")
    won = visits.select(visit[rows])
    return replace(won, wall=moment, utc=None, until=None), len(visits) - len(np.unique(visit[rows]))


def clean_fixes(
    fixes: Fixes, width: int, metres: float | None, box: Box | None, jitter: bool, name: str
) -> tuple[Fixes, dict[str, int], int, int, float]:
    """
    Return fixes in the order of users and time, without doubles and impossible ones, and how many of each there were.

    Where they may `jitter`, those near a spot where their person stays are put there (`snap_to_anchors`); the share
    of these comes last.

    Some users at a time, so that little more than the fixes themselves ever stands in memory. Of many fixes those of
    one slot within one cell of `metres` become one entry, see `merge_fixes`; None keeps every fix.
    """
    n = np.bincount(fixes.user, minlength=len(fixes.labels))
    many = metres is not None and len(fixes) > RAW
    if many and has_few_points(fixes, MOST_GRID_CELLS):
        metres = 0.0  # what somebody has made is not to be mixed
    ends = np.unique(np.append(np.searchsorted(np.cumsum(n), np.arange(BATCH, n.sum(), BATCH)) + 1, len(n)))
    repairs: Counter[str] = Counter()
    jumps = fast = rows = calm = 0
    clean_parts: list[Fixes] = []
    for begin, end in pairwise([0, *ends.tolist()]):
        part = fixes.select((fixes.user >= begin) & (fixes.user < end)) if len(ends) > 1 else fixes
        part = replace(part, user=part.user.astype(np.int64))
        if len(part) == 0:
            continue
        part, doubles = _sort_fixes(part)
        repairs.update(doubles)
        stay, remain = find_jumps(part)
        rows, jumps, fast = rows + len(part), jumps + int((~stay).sum()), fast + remain
        part = part if stay.all() else part.select(stay)
        if part.utc is not None:
            slot = group_pairs(part.user, seconds_since_1970(part.wall) // width)[2]
            again = _find_second_passing(slot, part.wall - part.utc)
            repairs["second passing of the doubled hour"] += int(again.sum())
            part = part.select(~again) if again.any() else part
        if jitter and part.lat is not None and part.lon is not None:
            second = seconds_since_1970(part.wall if part.utc is None else part.utc)
            lat, lon, there = snap_to_anchors(part.user, second, part.lat, part.lon)
            part, calm = replace(part, lat=lat, lon=lon), calm + int(there.sum())
        clean_parts.append(merge_fixes(part, width, metres, box) if many and metres is not None else part)
        check_memory(sum(map(len, clean_parts)), name, BYTES_AN_ENTRY)
    if jumps > MOST_JUMPS * rows:
        raise InvalidTraces(
            f"{name}: {jumps} of {rows} fixes are reached and left faster than {FASTEST_KMH:.0f} km/h, more "
            f"than {MOST_JUMPS:.0%}: do several people share an id, or are the times wrong?",
            code="E_SPEED",
        )
    fixes = clean_parts[0]
    if len(clean_parts) > 1:
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(each, name) for each in clean_parts])
            for name in PER_ENTRY
            if getattr(fixes, name) is not None
        }
        fixes = replace(fixes, **columns)
    return fixes, dict(repairs), jumps, fast, calm / max(1, rows)


def merge_fixes(fixes: Fixes, width: int, metres: float, box: Box | None) -> Fixes:
    """
    Return one entry, with a count, for all fixes of a user in one slot and cell (or place, or point if `metres` is 0).

    The entry is the first of these fixes, and the last fix of every slot is one too, which counts for none. So the
    place of most fixes of a slot, of equals the first, the first and the last fix of a slot are what they were;
    cells that are larger than `metres` take all fixes of a smaller one to where the first is.
    """
    if fixes.place is not None:
        cell = fixes.place
    elif fixes.lat is None or fixes.lon is None:
        return fixes
    else:
        cell = grid_cells(fixes.lat, fixes.lon, metres) if metres else fixes.lat + 1j * fixes.lon
        cell = np.unique(cell, return_inverse=True)[1]
        if box is not None:
            cell = 2 * cell + in_box(box, fixes.lat, fixes.lon)
    second = seconds_since_1970(fixes.wall)
    _, _, slot = group_pairs(fixes.user, second // width)
    low = int(cell.min())
    _, first, count = np.unique(
        slot * (int(cell.max()) - low + 1) + (cell - low), return_index=True, return_counts=True
    )
    order = np.lexsort((second, slot))
    last = order[np.flatnonzero(np.append(np.diff(slot[order]), 1))]
    stays, weight = np.zeros(len(fixes), dtype=bool), np.zeros(len(fixes), dtype=np.int64)
    stays[first], stays[last], weight[first] = True, True, count
    return replace(fixes.select(stays), count=weight[stays])


def _sort_fixes(fixes: Fixes) -> tuple[Fixes, dict[str, int]]:
    """Sort by user and instant; of two fixes at one instant the first in the file stays (B26-B28)."""
    instant = fixes.wall if fixes.utc is None else fixes.utc
    order = np.lexsort((instant, fixes.user))
    fixes, instant = fixes.select(order), instant[order]
    user = fixes.user
    repeated = np.zeros(len(fixes), dtype=bool)
    repeated[1:] = (user[1:] == user[:-1]) & (instant[1:] == instant[:-1])
    first = np.maximum.accumulate(np.where(repeated, 0, np.arange(len(fixes))))
    moved = np.zeros(len(fixes), dtype=bool)
    for column in (fixes.lat, fixes.lon, fixes.place):
        if column is not None:
            moved |= column != column[first]
    if not fixes.exact:
        repeated, moved = repeated & ~moved, np.zeros_like(moved)
    conflict = int(moved.sum())
    return fixes.select(~repeated), {"repeated": int(repeated.sum()) - conflict, "contradicted": conflict}


def seconds_since_1970(times: Times) -> Ints:
    """Return times as whole seconds since 1970, of the clock they are of."""
    return np.asarray(times.astype("datetime64[s]").astype(np.int64))


def _find_second_passing(slot: Ints, offset: NDArray[np.timedelta64]) -> Mask:
    # the clock was put back within the slot: its offset is no longer that of the slot's first fix
    _, first, group = np.unique(slot, return_index=True, return_inverse=True)
    return np.asarray(offset != offset[first[group]])


def group_pairs(major: Ints, minor: Ints) -> tuple[int, Ints, Ints]:
    """Return the number of distinct pairs, the first entry of each in sorted order, and the pair of each entry."""
    low, span = int(minor.min()), int(np.ptp(minor)) + 1
    pairs, first, group = np.unique(major * span + (minor - low), return_index=True, return_inverse=True)
    return len(pairs), first, group


def find_jumps(fixes: Fixes) -> tuple[Mask, int]:
    """
    Return which fixes stay when single impossible ones are dropped, and how many impossible steps remain (B36).

    A fix is dropped if the steps to it and from it are both faster than any airliner, and the step past it is not.
    Fixes must be sorted by user and time; those at 0, 0 are no positions, and not judged.
    """
    stay = np.ones(len(fixes), dtype=bool)
    if fixes.lat is None or fixes.lon is None:
        return stay, 0
    some = np.flatnonzero((fixes.lat != 0) | (fixes.lon != 0))
    if len(some) < 2:
        return stay, 0
    x, user = to_xyz(fixes.lat[some], fixes.lon[some]), fixes.user[some]
    seconds = seconds_since_1970(fixes.wall if fixes.utc is None else fixes.utc)[some]
    impossible = []
    for ahead in (1, 2):  # the step from each fix to the next, and to the one past it
        way = np.sqrt(((x[:-ahead] - x[ahead:]) ** 2).sum(axis=1))
        fast = way * 3600 > FASTEST_KMH * np.abs(seconds[ahead:] - seconds[:-ahead])
        impossible.append((user[:-ahead] == user[ahead:]) & (way > LEAST_JUMP_KM) & fast)
    jump, past = impossible
    alone = np.flatnonzero(jump[:-1] & jump[1:] & ~past) + 1
    # of two neighbours that look like it only the first is taken: the second is judged by what is left
    alone = alone[np.insert(np.diff(alone) > 1, 0, True)] if len(alone) else alone
    stay[some[alone]] = False
    return stay, int(jump.sum()) - 2 * len(alone)


def are_places(entries: Fixes | Slots) -> bool:
    """
    Tell whether few points are exact places that people share, not fixes that seldom repeat.

    Nine of ten entries are at points that at least five users visit, and each point has five entries on average.
    """
    assert entries.lat is not None and entries.lon is not None  # noqa: PT018, S101 - that is what makes them points
    points, at = np.unique(point_keys(entries.lat, entries.lon), return_inverse=True)
    enough = count_users(entries.user, at, len(points)) >= MANY_ENOUGH
    return len(at) >= ENTRIES_A_POINT * len(points) and float(np.mean(enough[at])) >= SHARED_ENTRIES


def has_few_points(entries: Fixes | Slots, most: int) -> bool:
    """Tell whether there are at most `most` different points: then somebody has made places of them already."""
    if entries.lat is None or entries.lon is None or entries.place is not None:
        return False
    points: NDArray[np.complex128] = np.empty(0, dtype=np.complex128)
    for at in range(0, len(entries), POINTS):
        some = slice(at, at + POINTS)
        points = np.unique(np.append(points, np.unique(point_keys(entries.lat[some], entries.lon[some]))))
        if len(points) > most:
            return False
    return True


class Runs(NamedTuple):
    """
    Slots without fixes, one entry per run of neighbours in a row.

    Run i is `length[i]` slots of row `row[i]` from `slot[i]` on, which begins at second `start[i]`; `before[i]` and
    `after[i]` are the user's last fix before it and the next one, -1 where there is none.
    """

    row: Ints
    slot: Ints
    length: Ints
    start: Ints
    before: Ints
    after: Ints


class EmptySlots(NamedTuple):
    """Single slots without fixes: row, slot, second at which it begins, the user's last fix before, the next after."""

    row: Ints
    slot: Ints
    start: Ints
    before: Ints
    after: Ints


def find_empty_runs(taken: Mask, rows: Ints, user: Ints, second: Ints, width: int) -> Runs:
    """Return the runs of slots not `taken` (N, L); row i is (user, day) `rows[i]`, fix j `user[j]` at `second[j]`."""
    begins, ends = ~taken, ~taken
    begins[:, 1:] &= taken[:, :-1]
    ends[:, :-1] &= taken[:, 1:]
    row, slot = np.nonzero(begins)
    length = np.nonzero(ends)[1] - slot + 1
    start = rows[row, 1] * SECONDS_PER_DAY + slot * width
    base = int(second.min()) - SECONDS_PER_DAY
    span = int(second.max()) - base + 2 * SECONDS_PER_DAY
    # one sorted key for user and time; after a doubled hour the wall clock is no longer in order
    order = np.lexsort((second, user))
    key = user[order] * span + (second[order] - base)
    at = np.searchsorted(key, rows[row, 0] * span + (start - base), side="left")
    before, after = order[np.maximum(at - 1, 0)], order[np.minimum(at, len(order) - 1)]
    mine = rows[row, 0]
    before = np.where((at > 0) & (user[before] == mine), before, -1)
    after = np.where((at < len(order)) & (user[after] == mine), after, -1)
    return Runs(row, slot, length, start, before, after)


def count_fillable(runs: Runs, second: Ints, off: Mask, width: int, longest: int, policy: str) -> tuple[Ints, Ints]:
    """
    Count the slots of each run that are filled: from the fix before on, and from the fix after backwards.

    A slot keeps the place of the last fix that is at most `longest` seconds old when it begins. Before the first fix of
    a day it takes the place of that fix, if it comes at most `longest` seconds after the slot's end and no earlier fix
    is recent enough. "interpolate" fills a run as a whole, or not at all. Nothing is filled by a fix that is `off` the
    map: somebody who is elsewhere is not held anywhere.
    """
    none = np.zeros(len(runs.row), dtype=np.int64)
    if longest == 0:
        return none, none
    by_before, by_after = (runs.before >= 0) & ~off[runs.before], (runs.after >= 0) & ~off[runs.after]
    if policy == "interpolate":
        apart = second[runs.after] - second[runs.before]
        return np.where(by_before & by_after & (apart <= longest), runs.length, 0), none
    age = runs.start - second[runs.before]
    forward = np.where(runs.before >= 0, np.clip((longest - age) // width + 1, 0, runs.length), 0)
    # the slots that end too long before the fix after: those that begin earlier than longest + width before it
    early = -((runs.start + width + longest - second[runs.after]) // width)
    backward = np.where((runs.slot == 0) & by_after, runs.length - np.clip(early, 0, runs.length), 0)
    return np.where(by_before, forward, 0), np.minimum(backward, runs.length - forward)


def people_by_gap(
    runs: Runs,
    second: Ints,
    off: Mask,
    width: int,
    policy: str,
    seconds: tuple[int, ...],
    *,
    user: Ints,
    observed: Mask,
    min_coverage: float,
    least_observed: int,
) -> dict[int, int]:
    """
    Count the people with a usable day, one that is known from end to end, for each longest gap in `seconds`.

    `user` (N,) is the user of each row, `observed` (N, L) its slots with a fix on the map, of which a day needs
    `least_observed`; `off` (n,) are the fixes that are not on the map. The longer the gap, the more people.
    """
    L, own = observed.shape[1], observed.sum(axis=1)
    people = {}
    for longest in seconds:
        forward, backward = count_fillable(runs, second, off, width, longest, policy)
        slots_known = own + np.bincount(runs.row, forward + backward, minlength=len(user)).astype(np.int64)
        usable = (slots_known == L) & (own >= least_observed)
        if policy == "drop":
            days = np.bincount(user)
            usable &= (np.bincount(user, slots_known) / np.maximum(1, days * L))[user] >= min_coverage
        people[longest] = len(np.unique(user[usable]))
    return people


def interpolate(empty: EmptySlots, second: Ints, lat: Floats, lon: Floats, width: int) -> tuple[Floats, Floats]:
    """
    Return where somebody who goes straight from the last fix to the next, at one speed, is in the middle of each slot.

    The way is a great circle: it crosses the antimeridian and the poles as any other line.
    """
    a, b = empty.before, empty.after
    f = share_of_way(empty, second, width)[:, None]
    x = to_xyz(lat, lon)
    point = (1 - f) * x[a] + f * x[b]
    length = np.linalg.norm(point, axis=1, keepdims=True)
    still = (lat[a] == lat[b]) & (lon[a] == lon[b])
    north, east = to_lat_lon(point * (np.linalg.norm(x[a], axis=1, keepdims=True) / np.where(length > 0, length, 1)))
    return np.where(still, lat[a], north), np.where(still, lon[a], east)


def share_of_way(empty: EmptySlots, second: Ints, width: int) -> Floats:
    """Return how far from the fix before to the fix after, in time, the middle of each slot is, in [0, 1]."""
    apart = np.maximum(1, second[empty.after] - second[empty.before])
    return np.asarray(np.clip((empty.start + width / 2 - second[empty.before]) / apart, 0, 1))


def cut_at_gaps(r: Ints) -> tuple[Ints, Ints]:
    """
    Return every row cut at its gaps: the pieces, -1 outside, and the row each one comes from.

    Examples
    --------
    >>> pieces, row = cut_at_gaps(np.array([[3, -1, 4, 4]]))
    >>> pieces.tolist(), row.tolist()
    ([[3, -1, -1, -1], [-1, -1, 4, 4]], [0, 0])

    """
    there = r >= 0
    begins = there.copy()
    begins[:, 1:] &= ~there[:, :-1]
    number = np.cumsum(begins.ravel()).reshape(r.shape) - 1
    row = np.nonzero(begins)[0]
    pieces = np.full((len(row), r.shape[1]), -1, dtype=r.dtype)
    at, slot = np.nonzero(there)
    pieces[number[at, slot], slot] = r[at, slot]
    return pieces, row


class Filling(NamedTuple):
    """
    Slots that are filled, and how that was decided.

    `r` (N, L) is -1 everywhere, `outside` (N, L) marks the slots outside the map; fix `source[i]` fills slot i of
    `slots`. `people` have a usable day by longest gap in seconds, `longest` is the gap that was taken. A day needs
    `least_observed` slots with a fix of their own.
    """

    r: Ints
    outside: Mask
    slots: EmptySlots
    source: Ints
    people: dict[int, int]
    longest: int
    least_observed: int


def fill_gaps(
    shape: tuple[int, int],
    slot: Ints,
    off: Mask,
    rows: Ints,
    owner: Ints,
    second: Ints,
    weight: Ints,
    *,
    user: Ints,
    width: int,
    policy: str,
    longest: int | None,
    rungs: tuple[int, ...],
    min_coverage: float,
    name: str,
) -> Filling:
    """
    Return which empty slots of N rows of L (`shape`) are filled, and by which fix; without `longest`, choose the gap.

    Entry i is in slot `slot[i]` of all N * L, at `second[i]`, stands for `weight[i]` fixes, and belongs to the rows of
    `owner[i]`; row j is day `rows[j, 1]` of owner `rows[j, 0]`, a day of `user[j]`.
    """
    (N, L) = shape
    if N * L > MOST_SLOTS:
        raise InvalidTraces(
            f"{name}: {N} rows of {L} slots need {N * L * 16 / 2**30:.1f} GiB, more than the limit of "
            f"{MOST_SLOTS * 16 / 2**30:.1f}; read it in parts, or with a longer `step`.",
            code="E_TOO_LARGE",
        )
    outside = np.zeros(shape, dtype=bool)
    taken = np.zeros(shape, dtype=bool)
    taken.reshape(-1)[slot] = True
    if off.any():
        where, most = most_common(slot, off.astype(np.int64), weight)
        outside.reshape(-1)[where] = most == 1
    runs = find_empty_runs(taken, rows, owner, second, width)
    # one slot alone says nothing of how a day went; who asks for no coverage gets every day
    least_observed = min(LEAST_SLOTS, L) if min_coverage > 0 else 0
    people = people_by_gap(
        runs,
        second,
        off,
        width,
        policy,
        rungs,
        user=user,
        observed=taken & ~outside,
        min_coverage=min_coverage,
        least_observed=least_observed,
    )
    if longest is None:
        longest = next(gap for gap, number in people.items() if number >= ENOUGH * max(people.values()))

    # every slot that is filled, its number in its run, and whether by the fix before
    forward, backward = count_fillable(runs, second, off, width, longest, policy)
    total = forward + backward
    run = np.repeat(np.arange(len(runs.row)), total)
    nth = np.arange(len(run)) - np.repeat(np.cumsum(total) - total, total)
    by_before = nth < forward[run]
    nth = np.where(by_before, nth, nth - forward[run] + (runs.length - backward)[run])
    start = runs.start[run] + nth * width
    slots = EmptySlots(runs.row[run], runs.slot[run] + nth, start, runs.before[run], runs.after[run])
    if policy == "interpolate":
        # the fix that is nearer in time to the middle of each slot; of equals the earlier
        by_before = share_of_way(slots, second, width) <= 0.5
    source = np.where(by_before, slots.before, slots.after)
    return Filling(np.full(shape, -1, dtype=np.int64), outside, slots, source, people, longest, least_observed)


def most_common(slot: Ints, place: Ints, weight: Ints) -> tuple[Ints, Ints]:
    """Return the slots that have fixes, and in each the place of most of them; of equals the one seen first."""
    R = int(place.max(initial=0)) + 1
    pairs, first, group = np.unique(slot * R + place, return_index=True, return_inverse=True)
    count = np.bincount(group, weight, len(pairs))
    order = np.lexsort((first, -count, pairs // R))
    slots, best = np.unique(pairs[order] // R, return_index=True)
    return slots, pairs[order][best] % R
