"""What a published fake may show of the dataset it was made from: places, clock, dates, names of columns; no trace."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.slots import Traces, is_weekend
from elsewhere.data.visits import Ints, Locations, zone_of
from elsewhere.run.model import FittedModel
from elsewhere.traces.clock import TIMES_AS
from elsewhere.traces.columns import ROLES

Days = NDArray[np.datetime64]
KINDS = ("weekday", "weekend")
# dates of lives whose people's dates are covered by a theorem: the same whoever is in the file
WEEKS = np.arange("2001-01-01", "2001-04-30", dtype="datetime64[D]")


@dataclass(frozen=True, eq=False)
class PublicMap:
    """
    The places, the clock and the calendar of a dataset, without its traces.

    Only `known` places, those that enough users share, are shown on a published map (E31); a category only where
    `m_min` people gave that word. `dates` are the days a fake may be dated with, and `weekend` the share of them to be
    at a weekend, see `calendar`.
    `columns` (role -> name), `format`, `times` and `form` (see `write_traces`) are those of the file that was read,
    where there was one, so that fakes can be written as it is. `reading` is how that became slots and places, in
    numbers that the manifest shows, see `Preparation.in_public`.
    """

    locations: Locations
    known: NDArray[np.bool_]
    dates: Days | None
    step_minutes: float
    start: str
    tz: str
    columns: Mapping[str, str] = field(default_factory=dict)
    format: str = ""
    times: str = "local"
    form: Mapping[str, Any] = field(default_factory=dict)
    weekend: float | None = None
    m_min: int = 1
    reading: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # what a file says of its input must be what `write_traces` can write
        names = list(self.columns.values())
        if not all(isinstance(word, str) for word in (self.format, *names)) or self.times not in TIMES_AS:
            raise ValueError("columns, format and times must be words")
        if names and not ({"user"} <= set(self.columns) <= set(ROLES) and len(set(names)) == len(names)):
            raise ValueError("no columns of a table")
        if not isinstance(self.reading, Mapping) or not isinstance(self.form, Mapping):
            raise ValueError("reading and form must be mappings")

    @staticmethod
    def of(traces: Traces, learnt: FittedModel, people: Traces) -> "PublicMap":
        """Return the frame of these traces, with what `people`, those the model was learnt from, share."""
        m_min = learnt.preset.m_min
        dates, weekend = calendar(people, m_min)
        return PublicMap(
            traces.locations,
            learnt.model.visitors >= m_min,
            dates,
            traces.step_minutes,
            traces.start,
            traces.tz,
            weekend=weekend,
            m_min=m_min,
        )

    def published(self, r: NDArray[Any]) -> tuple[Locations, Ints]:
        """
        Return the places that the fakes `r` visit, and the same fakes by their numbers.

        Numbers are given anew, in the order of names or else of positions, as published: they tell nothing of the
        private numbering, nor how many places were withheld. Places keep the names the input gave them; among named
        ones, those without a name are called area 1, area 2, ...
        """
        places = np.unique(r)
        where, ids = self.locations.select(places), self.locations.ids()
        names = None if ids is None else tuple(ids[i] for i in places)
        if names is None or not any(names):
            order = _by_position(where)
            where = where.select(order).relabel(names=None)
        else:
            distinct = names if all(names) else _with_areas(where, names)
            by_number = all(name.isascii() and name.isdigit() and str(int(name)) == name for name in distinct)
            keys = [int(name) for name in distinct] if by_number else list(distinct)
            order = np.array(sorted(range(len(places)), key=keys.__getitem__))
            where = where.select(order).relabel(names=[distinct[i] for i in order])
        if where.categories is not None:
            people = where.category_users
            enough = [people is None or people[i] >= self.m_min for i in range(len(where))]
            words = [word if tell else "" for word, tell in zip(where.categories, enough, strict=True)]
            where = where.relabel(categories=words, category_users=None)
        number = np.empty(len(places), dtype=np.int64)
        number[order] = np.arange(len(places))
        return where, number[np.searchsorted(places, r)]

    def dated(self, weekend: NDArray[np.bool_] | None, n: int, rng: np.random.Generator) -> Days | None:
        """
        Return a date for each of n fakes: any day of the calendar of its kind, weekday or weekend.

        `weekend` is the kind of each fake's seed; without it kinds are drawn as often as the model's people have them.
        A kind that too few people have is replaced by the other; where the calendar has no day of a kind, any of its
        days is taken.
        """
        if self.dates is None:
            return None
        if self.weekend is None:
            return np.asarray(rng.choice(self.dates, n))
        if weekend is None or self.weekend in (0, 1):
            weekend = rng.random(n) < self.weekend
        out = np.empty(n, dtype="datetime64[D]")
        for kind in (False, True):
            days = self.dates[is_weekend(self.dates) == kind]
            out[weekend == kind] = rng.choice(days if len(days) else self.dates, int((weekend == kind).sum()))
        return out

    def weeks(self, day: Ints, life: Ints, rng: np.random.Generator) -> Days | None:
        """
        Return a date for each day of fake lives, in order; on which weekday a life begins is drawn (`weekdays`).

        Of the weeks of the calendar those are drawn that hold the whole life, without a day of 23 or 25 hours; where
        none does, those that hold most of it.
        """
        if self.dates is None:
            return None
        low, high = int(self.dates[0].astype(np.int64)), int(self.dates[-1].astype(np.int64))
        monday = low - (low - 4) % 7  # back to a Monday: day 4 of 1970 was one
        lives, of = np.unique(life, return_inverse=True)
        day = day.copy()
        rows = np.split(np.argsort(of, kind="stable"), np.cumsum(np.bincount(of))[:-1])  # of each life
        for mine in rows:
            day[mine] = weekdays(day[mine] % 7 >= 5, rng)
        last = np.zeros(len(lives), dtype=np.int64)
        np.maximum.at(last, of, day)
        mondays = np.arange(monday, max(high - int(last.min(initial=0)), monday) + 1, 7)
        # a fake has 24 hours: no life meets a day on which the clock is put forward or back, if that can be
        span = np.arange(monday, mondays[-1] + int(last.max(initial=0)) + 1)
        changes = span[changing_days(self.tz, span.astype("datetime64[D]"))]
        start = np.empty(len(lives), dtype=np.int64)
        for i, length in enumerate(last.tolist()):
            mine = day[rows[i]]
            beyond = np.maximum(low - mondays - int(mine.min()), 0) + np.maximum(mondays + length - high, 0)
            fitting = mondays[beyond == beyond.min()]
            whole = [each for each in fitting.tolist() if not np.isin(changes, each + mine).any()]
            start[i] = rng.choice(whole or fitting)
        return np.asarray((start[of] + day).astype("datetime64[D]"))

    def on_dates(self, *, of_seeds: bool, of_weeks: Days | None = None) -> str:
        """Say what the dates of fakes mean, and which analyses by weekday hold; `of_weeks`: those that `weeks` drew."""
        if self.dates is None:
            return ""
        first, last = self.dates[0], self.dates[-1]
        if of_weeks is not None:
            return (
                "dates: every fake person lives their days in weeks drawn at random, all together from "
                f"{of_weeks.min()} to {of_weeks.max()} (days that enough people have: {first} to {last}); how many, "
                f"and which are weekends, is as for groups of {self.m_min} or more seeds. Weekday against "
                "weekend, and one day after the other: hold. Single weekdays and single dates: mean nothing; public "
                "holidays count as the weekday they fall on."
            )
        span = f"dates: a day drawn at random from {first} to {last}" if first != last else f"dates: {first}"
        lacking = [kind for kind, has in zip(KINDS, self._kinds(), strict=True) if not has]
        if self.weekend is None:
            return f"{span}. Too few people have a day of any one kind: no analysis by weekday or date holds."
        if self.weekend in (0, 1):
            kind, other = KINDS if self.weekend == 0 else KINDS[::-1]
            few = f"fewer than {self.m_min} people have a day of the other kind ({other})"
            if kind in lacking:
                return f"{span}; {few}, and these days hold no {kind}: no analysis by weekday or date holds."
            return f"{span}, always a {kind}: {few}. Analyses of a {kind} hold; single dates mean nothing."
        if lacking:
            return (
                f"{span}. These days hold no {lacking[0]}, so that fakes of both kinds of day carry the same dates: no "
                "analysis by weekday or date holds."
            )
        if of_seeds:
            return (
                f"{span} of the seed's kind, Monday to Friday or weekend. Weekday against weekend: holds. Single "
                "weekdays and single dates: mean nothing; public holidays count as the weekday they fall on."
            )
        return (
            f"{span}, of a kind drawn at random (weekend {self.weekend:.0%}), so that a date tells nothing of a seed: "
            "no analysis by weekday or date holds."
        )

    def _kinds(self) -> tuple[bool, bool]:
        """Return whether the calendar has weekdays, and weekends."""
        at_weekend = is_weekend(np.asarray(self.dates))
        return bool(np.any(~at_weekend)), bool(np.any(at_weekend))


def weekdays(weekend: NDArray[np.bool_], rng: np.random.Generator) -> Ints:
    """
    Return days on a calendar that begins on a Monday, one of each kind in turn, the next after the one before.

    A first run of weekdays ends on a Friday where a weekend follows; else it begins on any weekday. A single day of the
    weekend that weekdays follow is a Sunday.

    Examples
    --------
    >>> weekdays(np.array([False, False, True, True, False]), np.random.default_rng(1)).tolist()
    [3, 4, 5, 6, 7]

    """
    run = int(np.argmax(weekend != weekend[0])) if np.any(weekend != weekend[0]) else len(weekend)
    ends = run < len(weekend)
    if weekend[0]:
        start = 6 if ends and run == 1 else int(rng.integers(5, 7)) if run == 1 else 5
    else:
        start = 5 - run if ends and run <= 5 else int(rng.integers(0, 5))
    out, at = np.empty(len(weekend), dtype=np.int64), start
    for i, off in enumerate(weekend.tolist()):
        while (at % 7 >= 5) != off:
            at += 1
        out[i] = at
        at += 1
    return out


def calendar(people: Traces, m_min: int) -> tuple[Days | None, float | None]:
    """
    Return the days that fakes may be dated with, and the share of them to be at a weekend, as of these people's days.

    A day is in the calendar if at least `m_min` people have data on it or before, and at least as many on it or after:
    the ends of the span are no single person's. Days on which the clock is put forward or back are left out, since a
    fake has 24 hours. None where there is no such day. A kind of day that fewer than `m_min` people have would name
    them: the share is then 0 or 1, and None where that is so of both kinds.

    Examples
    --------
    >>> dates = ["2024-03-01", "2024-03-02", "2024-03-04", "2024-03-09"]
    >>> town = Traces([[0]] * 4, Locations(n=1), dates=dates)
    >>> days, weekend = calendar(town, 2)
    >>> str(days[0]), str(days[-1]), weekend
    ('2024-03-02', '2024-03-04', 0.5)

    """
    if people.dates is None or people.U < m_min:
        return None, None
    day = people.dates.astype(np.int64)
    first, last = np.full(people.U, np.iinfo(np.int64).max), np.full(people.U, np.iinfo(np.int64).min)
    np.minimum.at(first, people.user, day)
    np.maximum.at(last, people.user, day)
    low, high = np.sort(first)[m_min - 1], np.sort(last)[-m_min]
    if low > high:
        return None, None
    span = np.arange(low, high + 1).astype("datetime64[D]")
    whole = span[~changing_days(people.tz, span)]
    at_weekend = is_weekend(people.dates)
    weekday, weekend = (len(np.unique(people.user[at_weekend == kind])) >= m_min for kind in (False, True))
    share = float(at_weekend.mean()) if weekday and weekend else float(weekend) if weekday or weekend else None
    return (whole if len(whole) else span), share


def _by_position(where: Locations) -> Ints:
    sides = where.xy.T if where.xy is not None else (where.lat, where.lon)
    return np.asarray(np.lexsort([np.asarray(side) for side in reversed(list(sides))]))


def _with_areas(where: Locations, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names, with area 1, area 2, ... in the order of positions for places without one."""
    others, out, number = set(names), list(names), 0
    for i in _by_position(where):
        while not out[i]:
            number += 1
            out[i] = f"area {number}" * (f"area {number}" not in others)
    return tuple(out)


def changing_days(name: str, dates: NDArray[np.datetime64]) -> NDArray[np.bool_]:
    """
    Return which days have more or fewer than 24 hours in a zone: its clock is put forward or back on them.

    Examples
    --------
    >>> changing_days("Europe/Zurich", np.array(["2024-03-30", "2024-03-31"], dtype="datetime64[D]")).tolist()
    [False, True]

    """
    zone = zone_of(name)
    midnights = [datetime.fromisoformat(str(day)) for day in (*dates, *(dates + 1))]
    shift = [midnight.replace(tzinfo=zone).utcoffset() for midnight in midnights]
    return np.array([a != b for a, b in zip(shift[: len(dates)], shift[len(dates) :], strict=True)], dtype=bool)
