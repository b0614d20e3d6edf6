"""Visits of all sides in the slots of one clock, in which attacks compare them."""

from collections.abc import Mapping

import numpy as np

from elsewhere.data.visits import DAY, Ints, Visits
from elsewhere.evaluation.attack_base import Clock, Lives, most_frequent

MOST_DAYS = 28  # that are compared day by day; of longer records the week
HOLD = {True: 2 * 3600, False: DAY}  # seconds for which somebody who stays, or checks in, is taken to be still there
MONDAY = 4  # 1970-01-05


def fill_slots(visits: Visits, origin: int, minutes: float, n: int, *, timed: bool) -> Ints:
    """
    Return (U, n) the place of each user in each slot from `origin` on, -1 where nobody was seen.

    It is that of the last visit that begins before the middle of the slot, while it lasts, and for a while after it if
    another follows, shorter where visits last (`timed`).
    """
    v, step = visits, round(60 * minutes)
    first = -((origin + (step // 2 if timed else step - 1) - v.start) // step)
    row = np.full((v.U, n), -1, dtype=np.int64)
    inside = np.flatnonzero((first < n) & (v.end >= origin))
    row[v.user[inside], np.maximum(first[inside], 0)] = inside
    row = np.maximum.accumulate(row, axis=1)
    begin, until = origin + step * np.arange(n), v.end[np.maximum(row, 0)]
    followed = row < (v.offsets[1:] - 1)[:, None]
    there = (row >= 0) & ((begin < until) | (followed & (begin < until + HOLD[timed])))
    if not timed:
        there |= (row >= 0) & (begin <= until) & (until < begin + step)
    return np.where(there, v.place[np.maximum(row, 0)], -1).astype(np.int64)


def put_on_clock(visits: Visits, like: Lives, timed: bool) -> Lives:
    """Return visits, which last or do not (`timed`), in the slots of other lives, on their map."""
    clock, where = like.clock, like.locations
    place = visits.locations.match(where)[visits.place]
    known = visits if (place >= 0).all() else visits.select(place >= 0)
    known = known.replace(place=place[place >= 0], locations=where)
    step = round(60 * clock.minutes)
    if clock.period == 0:
        n = int(clock.second[-1]) // step + 1
        r = fill_slots(known, clock.origin, clock.minutes, n, timed=timed)
        return Lives(r[:, clock.second // step], where, clock, known)
    origin = _first_monday(int(known.start.min()))
    n = -(-(int(known.end.max()) + 1 - origin) // clock.period) * (clock.period // step)
    r = fill_slots(known, origin, clock.minutes, n, timed=timed)
    user, slot = np.nonzero(r >= 0)
    P = clock.period // step
    usual = most_frequent(user * P + slot % P, r[user, slot], (known.U, P), len(where))
    return Lives(usual[:, clock.second // step], where, clock, known)


def _first_monday(second: int) -> int:
    return ((second // DAY - MONDAY) // 7 * 7 + MONDAY) * DAY


def find_clock(sides: Mapping[str, Visits], minutes: float) -> Clock:
    """Return the slots in which all sides are compared: by date where fakes are of people's dates, else by the week."""
    people, fakes, step = sides["seeds"], sides["fakes"], round(60 * minutes)
    low, high = int(people.start.min()), int(people.end.max())
    within = float(((fakes.start >= low - DAY) & (fakes.start <= high + DAY)).mean())
    start = min(int(side.start.min()) for side in sides.values())
    end = max(int(side.end.max()) for side in sides.values())
    origin = _first_monday(start)
    period = 0
    if within < 0.8 or end - start > MOST_DAYS * DAY:
        period = 7 * DAY if int(fakes.end.max() - fakes.start.min()) > DAY else DAY
    n = period // step if period else (end - origin) // step + 1
    if DAY % step:
        period, n = 0, min(n, MOST_DAYS * DAY // step)
    return Clock(minutes, origin, period, np.arange(n, dtype=np.int64) * step)
