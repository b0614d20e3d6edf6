"""Lay the days of each person on a calendar of weeks that all people share."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elsewhere.traces.model import Floats, Ints, Mask, Places, Traces

DAYS = NDArray[np.datetime64]


def is_weekend(dates: DAYS) -> Mask:
    """Return which days are a Saturday or a Sunday."""
    return np.asarray((dates.astype("datetime64[D]").astype(np.int64) + 3) % 7 >= 5)


@dataclass(frozen=True, eq=False)
class People:
    """
    Who has which days: `rows` (people, days of the calendar) are rows of the traces, -1 where somebody has none.

    The calendar begins on a Monday, and only the kind of a day counts: a person's first day is the first of its kind,
    weekday or weekend, every further day the next of its kind after it. So what a person's days show of when they were
    is their order and their kinds. Where nobody has two days the calendar is one day long, and has no kind; without
    dates every day counts as a weekday. A kind that fewer than `m_min` people have would name them: their days count as
    of the other kind.

    Examples
    --------
    >>> from elsewhere.traces.model import Locations
    >>> dates = ["2024-03-05", "2024-03-09", "2024-03-12"]  # Tuesday, Saturday, Tuesday
    >>> ann = Traces([[0], [1], [2]], Locations(n=3), users=["ann"] * 3, dates=dates)
    >>> People.of(ann).rows.tolist()
    [[0, -1, -1, -1, -1, 1, -1, 2]]
    >>> People.of(ann).places(ann.r).tolist()
    [[0, -1, -1, -1, -1, 1, -1, 2]]

    """

    rows: Ints
    weekend: Mask  # (days,)
    day: Ints = field(repr=False)  # (rows of the traces,) day of the calendar of each

    @staticmethod
    def of(traces: Traces, *, m_min: int = 1, alone: bool = False) -> "People":
        """Return the people of these traces; `alone`: every row counts as a person of its own."""
        if alone or len(traces) == traces.U:
            user = np.arange(len(traces)) if alone else traces.user
            rows = np.empty((len(traces), 1), dtype=np.int64)
            rows[user, 0] = np.arange(len(traces))
            return People(rows, np.zeros(1, dtype=bool), np.zeros(len(traces), dtype=np.int64))
        dated = traces.dates is not None
        when = traces.dates.astype(np.int64) if traces.dates is not None else np.zeros(len(traces), dtype=np.int64)
        off = is_weekend(traces.dates) if traces.dates is not None else np.zeros(len(traces), dtype=bool)
        for kind in (True, False):
            if len(np.unique(traces.user[off == kind])) < m_min:
                off[:] = not kind
        day = np.empty(len(traces), dtype=np.int64)
        last, person = -1, -1
        for row in np.lexsort((np.arange(len(traces)), when, traces.user)).tolist():
            if traces.user[row] != person:
                last, person = -1, int(traces.user[row])
            last += 1
            while dated and (last % 7 >= 5) != off[row]:
                last += 1
            day[row] = last
        rows = np.full((traces.U, int(day.max()) + 1), -1, dtype=np.int64)
        rows[traces.user, day] = np.arange(len(traces))
        weekend = np.arange(rows.shape[1]) % 7 >= 5 if dated else np.zeros(rows.shape[1], dtype=bool)
        return People(rows, weekend, day)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def days(self) -> int:
        """Return days of the calendar."""
        return int(self.rows.shape[1])

    def places(self, r: NDArray[np.integer]) -> Places:
        """Return the places (people, days x L) of each person over the calendar, -1 on days they do not have."""
        every = np.where(self.rows[:, :, None] >= 0, r[self.rows], -1)
        return np.ascontiguousarray(every.reshape(len(self), -1), dtype=np.int32)

    def dealt(self, rng: np.random.Generator, m_min: int) -> Mask:
        """
        Return the days (people, days) of somebody, drawn without replacement, for each person.

        They are dealt out among people who have nearly only weekdays, nearly only weekends, or both; fewer than `m_min`
        of a sort are dealt out with the last, and everybody together where these are few.
        """
        has = self.rows >= 0
        off = (has & self.weekend).sum(axis=1) / has.sum(axis=1)
        sort = np.where(off < 0.1, 0, np.where(off > 0.9, 1, 2))
        sort[np.isin(sort, np.flatnonzero(np.bincount(sort, minlength=3) < m_min))] = 2
        if 0 < np.count_nonzero(sort == 2) < m_min:
            sort[:] = 2
        out = np.empty_like(has)
        for kind in np.unique(sort):
            mine = np.flatnonzero(sort == kind)
            out[mine] = has[rng.permutation(mine)]
        return out

    def nearest(self, person: Ints, day: Ints) -> Ints:
        """Return rows of the traces: each person's day that is nearest to `day`, of its kind where they have one."""
        has = self.rows >= 0
        out = np.empty(len(person), dtype=np.int64)
        for i, (p, d) in enumerate(zip(person.tolist(), day.tolist(), strict=True)):
            if has[p, d]:
                out[i] = self.rows[p, d]
                continue
            own = np.flatnonzero(has[p])
            alike = own[self.weekend[own] == self.weekend[d]]
            own = alike if len(alike) else own
            out[i] = self.rows[p, own[np.abs(own - d).argmin()]]
        return out

    def minutes(self, of_day: Floats) -> Floats:
        """Return the minute of the day of each slot (days x L,) of the calendar."""
        return np.tile(of_day, self.days)
