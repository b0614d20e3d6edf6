"""
Hold `Traces`: what people did in slots of the local day, for the paper's experiment and for measures that need slots.

Visits become slots by `fill_slots`: a slot's place is where its person was observed longest, and a slot without an
observation keeps the last place for a while. That invents what was not observed; `Traces` of sparse records are mostly
invented, and `Visits` are what to work with.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import time
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.data.visits import (
    DAY,
    Codes,
    Floats,
    Form,
    Ints,
    Locations,
    Visits,
    check_numbers,
    freeze,
    plain_labels,
    whole_numbers,
    zone_of,
)
from elsewhere.errors import InvalidParameter, InvalidTraces, require_between, require_whole
from elsewhere.sorting import count_users

MINUTES_PER_DAY = 1440
LEAST_SLOTS = 2  # slots with an observation of their own that a day needs
LEAST_KNOWN = 0.5  # of the slots of a day, after filling
HOURS = (1, 3, 6, 12, 24)  # that `max_gap=None` tries, the shortest first
ENOUGH = 0.9  # of the people whom the longest of them gives a day without a gap
MOST_SLOTS = 1 << 26  # of all rows together: 900,000 days of 72, some 5 GB


@dataclass(frozen=True)
class Periods:
    """
    The partition of the local day into T periods, as hour bounds 0 = b_0 < b_1 < ... < b_T = 24 (E24).

    `Periods.of(4)` is four equal parts: night 0-6, morning 6-12, afternoon 12-18, evening 18-24.
    """

    bounds: tuple[float, ...]
    T: int = field(init=False, repr=False, compare=False)  # number of periods

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "bounds", tuple(float(b) for b in self.bounds))
            rising = all(a < b for a, b in pairwise(self.bounds))  # NaN is below nothing
            covers = len(self.bounds) > 1 and self.bounds[0] == 0 and self.bounds[-1] == 24
        except (TypeError, ValueError):
            rising = covers = False
        if not (rising and covers):
            raise InvalidParameter(
                f"`periods` must be a number of equal parts, or hour bounds rising from 0 to 24 (the whole day), "
                f"got {self.bounds!r}.",
                code="E_PERIODS",
            )
        object.__setattr__(self, "T", len(self.bounds) - 1)

    @staticmethod
    def of(periods: "int | Sequence[float] | Periods") -> "Periods":
        """Return the periods from a number of equal parts of the day, or from hour bounds."""
        if isinstance(periods, Periods):
            return periods
        if isinstance(periods, (int, np.integer)) and not isinstance(periods, bool):
            parts = require_whole("periods", int(periods), 1, MINUTES_PER_DAY)
            return Periods(tuple(24 * i / parts for i in range(parts)) + (24.0,))
        return Periods(periods)  # type: ignore[arg-type]

    def of_minute(self, minute: ArrayLike) -> Codes:
        """Return the period tau of each local minute of the day; 05:40 is night and 06:00 morning."""
        # a seventh of a day is no round number: a minute on a bound must not fall below it by a rounding error
        minutes = np.round(np.asarray(minute, dtype=np.float64), 6) % MINUTES_PER_DAY
        bounds = np.round(np.asarray(self.bounds) * 60, 6)
        return (np.searchsorted(bounds, minutes, side="right") - 1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Evidence:
    """
    Weights over places at uncertain slots (E4): entry i says that slot `slot[i]` of row `row[i]` may be `place[i]`.

    Weights are likelihoods, not probabilities: they need not sum to one within a slot.
    """

    row: Ints
    slot: Ints
    place: Codes
    weight: Floats

    def __repr__(self) -> str:
        return f"Evidence({len(self.row)} entries)"

    @staticmethod
    def of(evidence: Mapping[tuple[int, int], Any], N: int, L: int, R: int) -> "Evidence":
        """
        Return the evidence from `{(row, slot): {place: weight}}`, sorted by row.

        Refused are entries outside N rows, L slots and R places, and weights that are not finite and above 0.
        """
        try:
            entries = [
                (int(row), int(slot), int(place), float(weight))
                for (row, slot), likely in evidence.items()
                for place, weight in likely.items()
            ]
        except (AttributeError, TypeError, ValueError):
            raise InvalidTraces("`evidence` must map (row, slot) to {place: weight}.", code="E_EVIDENCE") from None
        columns = [np.array(column) for column in zip(*entries, strict=True)] or [np.empty(0)] * 4
        for name, index, size in zip(("row", "slot", "place"), columns, (N, L, R), strict=False):
            if np.any(index < 0) or np.any(index >= size):
                raise InvalidTraces(f"`evidence` names a {name} outside 0 .. {size - 1}.", code="E_INDEX")
        if not np.all(np.isfinite(columns[3])) or np.any(columns[3] <= 0):
            raise InvalidTraces("`evidence` weights must be finite and above 0.", code="E_NUMBER")
        order, types = np.argsort(columns[0], kind="stable"), (np.int64, np.int64, np.int32, np.float64)
        return Evidence(*(freeze(c[order].astype(kind)) for c, kind in zip(columns, types, strict=True)))


def clock_minutes(start: str) -> int:
    """Return the minutes since midnight of a local time "HH:MM"."""
    try:
        at = time.fromisoformat(start)
    except (TypeError, ValueError):
        raise InvalidParameter(f'`start` must be a local time, "00:00" to "23:59", got {start!r}.') from None
    return 60 * at.hour + at.minute


@dataclass(frozen=True, eq=False)
class Traces:
    """
    A set of traces: N rows of L slots over R places, each row one stretch of one user (mostly a day).

    Several rows may belong to one user: the user, not the row, is the unit of privacy (E61). Users are numbered
    0 .. U-1 in order of first appearance.

    Parameters
    ----------
    r
        (N, L) whole numbers, the place in each slot; -1 where it is missing.
    locations
        The places the numbers point into.
    users
        One label per row, compared exactly; by default every row is a user of its own.
    dates
        One local date per row, or None.
    step_minutes, start, tz
        Length of a slot in minutes, local time of the first slot, IANA zone of that clock.
    evidence
        Weights over places at uncertain slots, see `Evidence`.

    """

    r: Codes
    locations: Locations
    user: Ints
    labels: tuple[Any, ...] = field(repr=False)
    dates: NDArray[np.datetime64] | None = field(repr=False)
    step_minutes: float
    start: str
    tz: str
    evidence: Evidence | None = field(repr=False)
    L: int  # slots per row
    R: int  # places
    U: int  # distinct users

    def __init__(
        self,
        r: ArrayLike,
        locations: Locations,
        *,
        users: Sequence[Any] | NDArray[Any] | None = None,
        dates: Sequence[Any] | NDArray[Any] | None = None,
        step_minutes: float = 20,
        start: str = "00:00",
        tz: str = "UTC",
        evidence: Evidence | Mapping[tuple[int, int], Any] | None = None,
    ) -> None:
        if not isinstance(locations, Locations):
            raise InvalidParameter(f"`locations` must be a `Locations`, got {type(locations).__name__}.")
        places = self.check_places(r, len(locations))
        N, L = places.shape
        user, unique = _number_labels(range(N) if users is None else users, N)
        try:
            days = None if dates is None else freeze(np.asarray(dates, dtype="datetime64[D]"))
        except (TypeError, ValueError):
            raise InvalidTraces("`dates` must hold local dates, YYYY-MM-DD.", code="E_DATE") from None
        if days is not None and days.shape != (N,):
            raise InvalidTraces(f"`dates` must hold one date per row: {N} rows, shape {days.shape}.", code="E_SHAPE")
        if days is not None and np.any(np.isnat(days)):
            raise InvalidTraces("`dates` holds a missing date.", code="E_DATE")
        require_between("step_minutes", step_minutes, 0, MINUTES_PER_DAY, open_low=True)
        zone_of(tz)
        if days is not None and L * step_minutes > MINUTES_PER_DAY:
            raise InvalidTraces(
                f"{L} slots of {step_minutes:g} minutes are more than the day of their date.", code="E_SHAPE"
            )
        clock_minutes(start)
        if evidence is not None and not isinstance(evidence, Evidence):
            evidence = Evidence.of(evidence, N, L, len(locations))
        own = {"r": places, "locations": locations, "user": user, "labels": unique, "dates": days}
        own |= {"step_minutes": float(step_minutes), "start": start, "tz": tz, "evidence": evidence}
        for name, value in (own | {"L": L, "R": len(locations), "U": len(unique)}).items():
            object.__setattr__(self, name, value)

    @staticmethod
    def check_places(r: ArrayLike, R: int, name: str = "r") -> Codes:
        """Return (N, L) whole numbers of R places, -1 for missing, as a frozen array; messages call them `name`."""
        try:
            array = np.asarray(r)
        except ValueError:
            raise InvalidTraces(f"`{name}` must be a table: all rows of one length.", code="E_SHAPE") from None
        if array.ndim != 2:
            raise InvalidTraces(f"`{name}` must have two dimensions (traces, slots), got {array.ndim}.", code="E_SHAPE")
        if array.size == 0:
            raise InvalidTraces(f"`{name}` is empty: its shape is {array.shape}.", code="E_EMPTY")
        array = whole_numbers(name, array.ravel()).reshape(array.shape)
        bad = (array < -1) | (array >= R)
        if np.any(bad):
            row = int(np.flatnonzero(bad.any(axis=1))[0])
            raise InvalidTraces(
                f"`{name}` must be in 0 .. {R - 1}, or -1 for missing: in row {row} some are not.", code="E_INDEX"
            )
        if np.any(np.all(array == -1, axis=1)):
            raise InvalidTraces(f"`{name}` has a row without a known slot (every entry is -1).", code="E_EMPTY")
        return np.asarray(freeze(array.astype(np.int32, copy=False)), dtype=np.int32)

    def __len__(self) -> int:
        return len(self.r)

    def __repr__(self) -> str:
        # never the content: a traceback or a log may show this
        return f"Traces({self.U} users, {len(self)} rows of {self.L} slots, {self.R} places)"

    @property
    def users(self) -> NDArray[Any]:
        """Return the label of each row's user, as it was given."""
        labels = np.empty(self.U, dtype=object)
        labels[:] = self.labels
        return np.asarray(labels[self.user])

    def minutes(self) -> Floats:
        """Return the local minute of the day at which each of the L slots begins."""
        return np.asarray((clock_minutes(self.start) + self.step_minutes * np.arange(self.L)) % MINUTES_PER_DAY)

    def select(self, rows: ArrayLike) -> "Traces":
        """Return the given rows (numbers or a mask), in the given order, as a new set."""
        keep = check_numbers("rows", rows, len(self), "E_INDEX")
        if np.array_equal(keep, np.arange(len(self))):
            return self  # frozen: all rows in their order are the same set
        evidence = None
        if self.evidence is not None:
            e = self.evidence
            first, last = (np.searchsorted(e.row, keep, side=side) for side in ("left", "right"))
            entries = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])
            row = np.repeat(np.arange(len(keep)), last - first)
            evidence = Evidence(row, e.slot[entries], e.place[entries], e.weight[entries])
        return Traces(
            self.r[keep],
            self.locations,
            users=self.users[keep],
            dates=None if self.dates is None else self.dates[keep],
            step_minutes=self.step_minutes,
            start=self.start,
            tz=self.tz,
            evidence=evidence,
        )

    def visits(self) -> Visits:
        """
        Return a visit for each run of slots at one place, over midnight where a user's days follow each other.

        Missing slots are in no visit. Rows without dates count as days that follow each other, from a Monday on, and
        no visit goes from one into the next.
        """
        N, L, step = len(self), self.L, 60 * self.step_minutes
        if self.dates is None:
            nth = np.empty(N, dtype=np.int64)
            by_user = np.argsort(self.user, kind="stable")
            first = np.searchsorted(self.user[by_user], np.arange(self.U))
            nth[by_user] = np.arange(N) - first[self.user[by_user]]
            day = 4 + nth * (int(L * step) // DAY + 1)  # 1970-01-05; a free day between two rows
        else:
            day = self.dates.astype(np.int64)
        order = np.lexsort((day, self.user))
        begin = np.round((day[order] * DAY + 60 * clock_minutes(self.start))[:, None] + step * np.arange(L + 1)).astype(
            np.int64
        )
        r, user = self.r[order], np.broadcast_to(self.user[order][:, None], (N, L)).ravel()
        start, end, place = begin[:, :-1].ravel(), begin[:, 1:].ravel(), r.ravel()
        new = np.ones(N * L, dtype=bool)
        new[1:] = (place[1:] != place[:-1]) | (user[1:] != user[:-1]) | (start[1:] != end[:-1])
        runs = np.flatnonzero(new)
        ends = end[np.append(runs[1:], N * L) - 1]
        runs, ends = runs[place[runs] >= 0], ends[place[runs] >= 0]
        return Visits(
            user[runs],
            start[runs],
            ends,
            place[runs],
            self.locations,
            users=self.labels,
            tz=self.tz,
            form=Form("visits"),
        )

    def visitors(self) -> Ints:
        """Return how many users visit each of the R places."""
        return count_users(self.user, self.r, self.R)

    def of_users(self, users: ArrayLike) -> "Traces":
        """Return all rows of the users with these numbers (0 .. U-1), rows in their old order."""
        wanted = np.zeros(self.U, dtype=bool)
        wanted[check_numbers("users", users, self.U, "E_USER")] = True
        return self.select(wanted[self.user])


def _waits(r: Codes, begin: Ints, last: Ints, soonest: Ints, user: Ints, width: int) -> tuple[Ints, Ints, Ints, Ints]:
    """
    Return for each slot of `r` (N, L) the last and the next with an observation, and the seconds since and until it.

    Rows are sorted by user and day, and begin at second `begin`; `last` and `soonest` (N, L) are the last and first
    second that was observed in a slot. The next is the first of the day, for slots before it.
    """
    N, L = r.shape
    flat, seen = np.arange(N * L).reshape(N, L), r >= 0
    first_row = np.searchsorted(user, user)  # of the same user
    before = np.maximum.accumulate(np.where(seen, flat, -1).ravel()).reshape(N, L)
    time, never = begin[:, None] + width * np.arange(L), np.iinfo(np.int64).max
    since = np.where(before >= (first_row * L)[:, None], time - last.ravel()[before], never)
    after = flat[:, :1] + seen.argmax(axis=1)[:, None]
    until = np.where(flat < after, np.maximum(soonest.ravel()[after] - (time + width), 0), never)
    return before, after, since, until


def _longest_stay(visits: Visits, width: int) -> tuple[Ints, Codes, Ints, Ints]:
    """
    Return the slots with an observation: users and slots since 1970 (2, n), places, last and first seconds observed.

    The place is the one observed longest in the slot, of equals the first. What has no length counts as a second.
    """
    start, end = visits.start, visits.end
    first = start // width
    slots = np.maximum(end - 1, start) // width - first + 1
    if int(slots.sum()) > MOST_SLOTS:
        raise InvalidTraces(
            f"the visits last {int(slots.sum()):,} slots, more than {MOST_SLOTS:,}; a longer `step_minutes`?",
            code="E_TOO_LARGE",
        )
    row = np.repeat(np.arange(len(visits)), slots)
    slot = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(slots) - slots, slots)
    since, until = np.maximum(start[row], slot * width), np.minimum(end[row], (slot + 1) * width)
    low, span = int(slot.min()), int(np.ptp(slot)) + 1
    key = visits.user[row].astype(np.int64) * span + (slot - low)
    pairs, seen, group = np.unique(key * visits.R + visits.place[row], return_index=True, return_inverse=True)
    seconds = np.bincount(group, np.maximum(until - since, 1), len(pairs))
    order = np.lexsort((seen, -seconds, pairs // visits.R))
    keys, best = np.unique(pairs[order] // visits.R, return_index=True)
    at = np.searchsorted(keys, key)
    last, soonest = np.full(len(keys), np.iinfo(np.int64).min), np.full(len(keys), np.iinfo(np.int64).max)
    np.maximum.at(last, at, until)
    np.minimum.at(soonest, at, since)
    place = (pairs[order][best] % visits.R).astype(np.int32)
    return np.stack([keys // span, keys % span + low]), place, last, soonest


def fill_slots(visits: Visits, *, step_minutes: float = 20, max_gap: float | None = None) -> "Traces":
    """
    Return visits as slots of the local day, one row per user and day with an observation.

    A slot's place is where its person was observed longest within it, of equals the first. A slot without an
    observation keeps the last place for up to `max_gap` minutes; before the first observation of a day, where nothing
    is recent enough, it takes the place of that one if it comes within `max_gap`. Other slots are missing (-1). Days
    with observations in one slot alone, and days of which less than half is known then, are left out.

    Parameters
    ----------
    visits
        What was observed.
    step_minutes
        Length of a slot.
    max_gap
        In minutes. None takes the shortest of 1, 3, 6, 12 and 24 hours that gives a day without a gap to nine of ten of
        the people to whom 24 hours give one.

    Examples
    --------
    >>> day = Visits([0, 0], [8 * 3600, 18 * 3600], [17 * 3600, 24 * 3600], [0, 1], Locations(n=2))
    >>> fill_slots(day, step_minutes=180, max_gap=180).r.tolist()
    [[-1, 0, 0, 0, 0, 0, 1, 1]]

    """
    width = round(60 * require_between("step_minutes", step_minutes, 0, MINUTES_PER_DAY, open_low=True))
    if width < 1 or DAY % width:
        raise InvalidParameter(f"`step_minutes` must divide {MINUTES_PER_DAY} minutes, got {step_minutes}.")
    L = DAY // width
    (user, slot), place, last, soonest = _longest_stay(visits, width)
    day = slot // L
    new = np.ones(len(user), dtype=bool)
    new[1:] = (user[1:] != user[:-1]) | (day[1:] != day[:-1])
    row = np.cumsum(new) - 1
    owner, begin = user[new], day[new] * DAY
    N = len(owner)
    if N * L > MOST_SLOTS:
        raise InvalidTraces(f"{N} days of {L} slots are more than {MOST_SLOTS:,} slots.", code="E_TOO_LARGE")
    r = np.full((N, L), -1, dtype=np.int32)
    r[row, slot % L] = place
    seen = (r >= 0).sum(axis=1)
    sides = np.zeros((2, N, L), dtype=np.int64)
    sides[:, row, slot % L] = last, soonest
    before, after, since, until = _waits(r, begin, sides[0], sides[1], owner, width)
    wait = np.where(r >= 0, 0, np.minimum(since, until))

    if max_gap is None:
        # of each person, the shortest gap that gives them a day from end to end
        shortest = np.full(visits.U, np.iinfo(np.int64).max)
        whole = seen >= LEAST_SLOTS
        np.minimum.at(shortest, owner[whole], wait[whole].max(axis=1))
        people = [int((shortest <= 3600 * hours).sum()) for hours in HOURS]
        gap = 3600 * next(hours for hours, n in zip(HOURS, people, strict=True) if n >= ENOUGH * people[-1])
    else:
        gap = round(60 * require_between("max_gap", max_gap, 0, 100 * MINUTES_PER_DAY))
    r = np.where(wait <= gap, r.ravel()[np.maximum(np.where(since <= gap, before, after), 0)], r)
    enough = (seen >= LEAST_SLOTS) & ((r >= 0).mean(axis=1) >= LEAST_KNOWN)
    if not enough.any():
        raise InvalidTraces(
            f"none of {N:,} days has half of its slots known: {int((seen < LEAST_SLOTS).sum()):,} have observations in "
            f"one slot alone, and gaps of more than {gap / 3600:g} h are not filled (`max_gap`).",
            code="E_EMPTY",
        )
    labels = np.empty(visits.U, dtype=object)
    labels[:] = visits.users
    return Traces(
        r[enough],
        visits.locations,
        users=labels[owner[enough]],
        dates=(begin[enough] // DAY).astype("datetime64[D]"),
        step_minutes=step_minutes,
        tz=visits.tz,
    )


def _number_labels(labels: Iterable[Any], N: int) -> tuple[Ints, tuple[Any, ...]]:
    """Return the number of the user of each of N rows, and the labels of users, in order of first appearance."""
    number: dict[Any, int] = {}  # compares labels exactly
    try:
        user = np.array([number.setdefault(v, len(number)) for v in labels], dtype=np.int64)
    except TypeError:
        raise InvalidTraces("`users` must hold plain labels (numbers or text), one per row.", code="E_USER") from None
    if len(user) != N:
        raise InvalidTraces(f"`users` must name one user per row: {N} rows, {len(user)} names.", code="E_SHAPE")
    return freeze(user), plain_labels(number)
