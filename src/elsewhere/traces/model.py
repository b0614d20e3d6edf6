"""
Traces, and with them places, periods of the day and evidence: what every other room receives.

All of them are frozen and checked once, where they are made; inside the house they are trusted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.errors import InvalidParameter, InvalidTraces, require_between
from elsewhere.traces.arrays import Floats, Ints, Places, frozen
from elsewhere.traces.evidence import Evidence
from elsewhere.traces.locations import EARTH_RADIUS_KM, Locations
from elsewhere.traces.periods import MINUTES_PER_DAY, Periods
from elsewhere.traces.zones import zone_of

__all__ = [
    "EARTH_RADIUS_KM",
    "MINUTES_PER_DAY",
    "Evidence",
    "Floats",
    "Ints",
    "Locations",
    "Periods",
    "Places",
    "Traces",
]


def clock_minutes(start: str) -> int:
    """Return the minutes since midnight of a local time "HH:MM"."""
    try:
        hour, minute = (int(part) for part in start.split(":"))
        if 0 <= hour < 24 and 0 <= minute < 60:
            return 60 * hour + minute
    except (AttributeError, ValueError):
        pass
    raise InvalidParameter(f'`start` must be a local time "HH:MM" between "00:00" and "23:59", got {start!r}.')


@dataclass(frozen=True, eq=False)
class Traces:
    """
    A set of traces: N rows of L instants over R places, each row one stretch of one user (mostly a day).

    Several rows may belong to one user: the user, not the row, is the unit of privacy (E61). Users are numbered
    0 .. U-1 in order of first appearance.

    Parameters
    ----------
    r
        (N, L) whole numbers, the place at each instant; -1 where it is missing.
    locations
        The places the numbers point into.
    users
        One label per row, compared exactly; by default every row is a user of its own.
    dates
        One local date per row, or None.
    step_minutes, start, tz
        Minutes between instants, local time of the first instant, IANA zone of that clock.
    evidence
        Weights over places at uncertain slots, see `Evidence`.

    """

    r: Places
    locations: Locations
    user: Ints
    labels: tuple[Any, ...] = field(repr=False)
    dates: NDArray[np.datetime64] | None = field(repr=False)
    step_minutes: float
    start: str
    tz: str
    evidence: Evidence | None = field(repr=False)

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
        places = _place_numbers(r, len(locations))
        N, L = places.shape
        try:
            labels: list[Any] | NDArray[Any] = np.arange(N) if users is None else list(users)
        except TypeError:
            raise InvalidTraces("`users` must name one user per row.", code="E_USER") from None
        if len(labels) != N:
            raise InvalidTraces(f"`users` must name one user per row: {N} rows, {len(labels)} names.", code="E_SHAPE")
        user, unique = _number_users(labels)
        try:
            days = None if dates is None else frozen(np.asarray(dates, dtype="datetime64[D]"))
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
                f"{L} instants of {step_minutes:g} minutes are more than the day of their date.", code="E_SHAPE"
            )
        clock_minutes(start)
        seen = None if evidence is None else Evidence.of(evidence)
        if seen is not None:
            seen.check(N, L, len(locations))
        for name, value in (
            ("r", places),
            ("locations", locations),
            ("user", user),
            ("labels", unique),
            ("dates", days),
            ("step_minutes", float(step_minutes)),
            ("start", start),
            ("tz", tz),
            ("evidence", seen),
        ):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.r)

    def __repr__(self) -> str:
        # never the content: a traceback or a log may show this
        return f"Traces({self.U} users, {len(self)} rows of {self.L} instants, {self.R} places)"

    @property
    def L(self) -> int:
        """Instants per row."""
        return int(self.r.shape[1])

    @property
    def R(self) -> int:
        """Number of places."""
        return len(self.locations)

    @property
    def U(self) -> int:
        """Number of distinct users."""
        return len(self.labels)

    @property
    def users(self) -> NDArray[Any]:
        """The label of each row's user, as it was given."""
        labels = np.empty(self.U, dtype=object)
        labels[:] = self.labels
        return np.asarray(labels[self.user])

    def minutes(self) -> Floats:
        """Local minute of the day of each of the L instants."""
        return np.asarray((clock_minutes(self.start) + self.step_minutes * np.arange(self.L)) % MINUTES_PER_DAY)

    def select(self, rows: ArrayLike) -> "Traces":
        """The given rows (numbers or a mask), in the given order, as a new set."""
        keep = _chosen("rows", rows, len(self), "E_INDEX")
        evidence = None
        if self.evidence is not None:
            e = self.evidence
            order = np.argsort(e.row, kind="stable")
            first, last = (np.searchsorted(e.row[order], keep, side=side) for side in ("left", "right"))
            row = np.repeat(np.arange(len(keep)), last - first)
            entries = order[np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])]
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

    def with_places(self, r: ArrayLike) -> "Traces":
        """The same users, days and clock with other places at each instant, without evidence."""
        return Traces(
            r,
            self.locations,
            users=self.users,
            dates=self.dates,
            step_minutes=self.step_minutes,
            start=self.start,
            tz=self.tz,
        )

    def on(self, locations: Locations, r: ArrayLike | None = None) -> "Traces":
        """
        Return the same users, days and clock on another map.

        Place numbers stay what they are, and so does the evidence, where the map describes the same places otherwise;
        else `r` gives them.
        """
        fields = {name: getattr(self, name) for name in ("users", "dates", "step_minutes", "start", "tz")}
        if r is None:
            return Traces(self.r, locations, **fields, evidence=self.evidence)
        return Traces(r, locations, **fields)

    def of_users(self, users: ArrayLike) -> "Traces":
        """All rows of the users with these numbers (0 .. U-1), rows in their old order."""
        wanted = np.zeros(self.U, dtype=bool)
        wanted[_chosen("users", users, self.U, "E_USER")] = True
        return self.select(wanted[self.user])


def _chosen(name: str, numbers: ArrayLike, size: int, code: str) -> Ints:
    """Numbers in 0 .. size - 1, or a mask of that size, as numbers; at least one."""
    chosen = np.asarray(numbers)
    if chosen.dtype == bool and chosen.shape == (size,):
        chosen = np.flatnonzero(chosen)
    if chosen.size == 0:
        raise InvalidTraces(f"`{name}` chooses nothing.", code="E_EMPTY")
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= size:
        raise InvalidParameter(f"`{name}` must hold numbers in 0 .. {size - 1}, or a mask of {size}.", code=code)
    return chosen.astype(np.int64)


def _place_numbers(r: ArrayLike, R: int) -> Places:
    try:
        array = np.asarray(r)
    except ValueError:
        raise InvalidTraces("`r` must be a table: all rows of one length.", code="E_SHAPE") from None
    if array.ndim != 2:
        raise InvalidTraces(f"`r` must have two dimensions (traces, instants), got {array.ndim}.", code="E_SHAPE")
    if array.size == 0:
        raise InvalidTraces(f"`r` is empty: {array.shape[0]} traces of {array.shape[1]} instants.", code="E_EMPTY")
    if array.dtype.kind == "f":
        if not np.all(np.isfinite(array)):
            raise InvalidTraces("`r` holds NaN or infinity; mark a missing instant by -1.", code="E_NUMBER")
        if np.any(array != np.floor(array)):
            raise InvalidTraces("`r` must hold whole numbers of places.", code="E_NUMBER")
    elif array.dtype.kind not in "iu":
        raise InvalidTraces(f"`r` must hold whole numbers of places, got dtype {array.dtype}.", code="E_NUMBER")
    bad = (array < -1) | (array >= R)
    if np.any(bad):
        row = int(np.flatnonzero(bad.any(axis=1))[0])
        raise InvalidTraces(
            f"`r` must be in 0 .. {R - 1}, or -1 for missing: {int(bad.sum())} are not, the first in row {row}.",
            code="E_INDEX",
        )
    empty = np.all(array == -1, axis=1)
    if np.any(empty):
        raise InvalidTraces(
            f"row {int(np.flatnonzero(empty)[0])} of `r` has no instant at all (every entry is -1).", code="E_EMPTY"
        )
    return np.asarray(frozen(array.astype(np.int32, copy=False)), dtype=np.int32)


def _number_users(labels: Sequence[Any] | NDArray[Any]) -> tuple[Ints, tuple[Any, ...]]:
    # a dict compares labels exactly and keeps the order of first appearance
    number: dict[Any, int] = {}
    try:
        values = (
            labels.tolist()
            if isinstance(labels, np.ndarray)
            else [v.item() if isinstance(v, np.generic) else v for v in labels]
        )
        user = np.fromiter((number.setdefault(v, len(number)) for v in values), dtype=np.int64, count=len(values))
    except TypeError:
        raise InvalidTraces("`users` must hold plain labels (numbers or text).", code="E_USER") from None
    # NaN and NaT differ from themselves; pandas' NA does not even say so
    if any(v is None or (v == v) is not True for v in number):
        raise InvalidTraces("`users` holds a missing label (None or NaN).", code="E_USER")
    return frozen(user), tuple(number)
