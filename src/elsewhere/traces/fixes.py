"""Hold what every reader ends in: `Fixes` (positions at times) or `Slots` (numbered slots), and counts of what came."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.traces.clock import Times
from elsewhere.traces.model import Floats, Ints, Locations


class Words(NamedTuple):
    """The category in each row: its user, its place, the number of the word in `names`; -1 where there is none."""

    user: Ints
    place: Ints
    word: Ints
    names: tuple[str, ...]


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
        columns: dict[str, Any] = {name: column[chosen] for name, column in self.columns().items()}
        return replace(self, **columns)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that have one value per entry, by name."""
        per_entry = ("user", "wall", "lat", "lon", "place", "utc", "accuracy", "word", "until", "count")
        return {name: getattr(self, name) for name in per_entry if getattr(self, name) is not None}

    def weight(self) -> Ints:
        """Return for how many fixes each entry stands."""
        return np.ones(len(self), dtype=np.int64) if self.count is None else self.count


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
    in the slot itself; `kept[i]` tells whether it became part of the traces.
    """

    user: Ints
    labels: tuple[str, ...] = field(repr=False)
    date: Times | None = field(repr=False)
    known: Floats = field(repr=False)
    observed: Floats = field(repr=False)
    kept: NDArray[Any] = field(repr=False)

    def by_user(self) -> Floats:
        """Return share of known slots over all days of each user on which there was a fix."""
        days = np.maximum(1, np.bincount(self.user, minlength=len(self.labels)))
        return np.asarray(np.bincount(self.user, self.known, len(self.labels)) / days)


@dataclass(frozen=True)
class Preparation:
    """
    What became of an input: counts only, so that it can be shown to anyone who may see the file's name.

    `dropped` and `fixed` count rows by reason. A day is a row of the traces; `days_dropped` had less than the
    required coverage, `days_single` of them fixes in one slot alone. `users_usable` have a day that is known from end
    to end, of which alone fakes can be made; `people_by_gap` are those whom other longest gaps would keep, and
    `max_gap_auto` says whether that decided `max_gap_minutes`. `map` is how the map was found, `map_km` how wide it is
    if it was cut; `slots_outside` lie outside, on `days_outside` days of `users_outside` users.
    `slots_observed + slots_held + slots_missing` are all slots of the days kept; `slots_held` were filled by the policy
    `gaps`. `missing` is what became of the others: their days are left out ("drop"), or they were drawn ("gibbs").
    `users_by_coverage` counts users by tenths of known slots, those dropped among them; `places_rare` are
    visited by fewer than five users, `cells` the most places that were asked for, `places_joined` whether the makers of
    fakes joined them further. `by` is "fixes" or "slots". `columns` names the column that was read for each role, in
    the shape that `write_traces` takes, as `times` is; it is empty where `format` is no table. `coverage`, and `seeds`,
    whom the map was not found in, are for the owner, and are left out of `to_dict`.
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
    places_joined: bool = False
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
    format: str = "frame"
    notes: tuple[str, ...] = ()
    by: str = "fixes"
    coverage: Coverage | None = field(default=None, repr=False, compare=False)
    seeds: frozenset[str] | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return all counts and settings as plain values, for JSON."""
        plain = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("coverage", "seeds")}
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in plain.items()}

    def in_public(self, fewest: int = 5) -> dict[str, Any]:
        """Return how the input became slots and places, as the manifest may show it: no count below `fewest`."""
        of_slots = ("step_minutes", "gaps", "missing", "max_gap_minutes", "max_gap_auto")
        of_places = ("map", "places_by", "places_joined", "cells", "grid_metres")
        filled = self.slots_held / max(1, self.slots_held + self.slots_observed)
        return {
            **{name: getattr(self, name) for name in (*of_slots, *of_places)},
            "people_by_gap": {gap: n if n >= fewest else f"<{fewest}" for gap, n in self.people_by_gap.items()},
            "map_km": None if self.map_km is None else 10 * round(self.map_km / 10),
            "share_filled": round(filled, 2),
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
            reasons.append(
                f"gaps of more than {spoken_length(self.max_gap_minutes)} are not filled (`max_gap`)"
                + (f"; people with a usable day by longest gap: {ladder}" if by_gap else "")
            )
        thin = self.days_dropped - self.days_single
        if thin > 0 and self.min_coverage:
            thin_days = f"days with less than {self.min_coverage:.0%} of their slots known (`min_coverage`)"
            reasons.append(f"{thin_days}: {thin:,}")
        return reasons


def spoken_length(minutes: float) -> str:
    """Write a length of time as it is typed: 20min, 12h."""
    return f"{minutes / 60:g}h" if minutes >= 60 and minutes % 60 == 0 else f"{minutes:g}min"
