"""Compiled loops of a person's own hours: how like the earlier days of a life a diary of roles is."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere._jit import njit

PARTS = 6  # of the day
STAYS = 16  # in a day, beyond which they are not told apart
LEVELS = 4  # of how many earlier days there are: 1, up to 3, up to 7, more
ALIKE = 10  # levels of the time of a part of the day that was spent alike: ninths, and all of it
SHARES = 6  # of earlier days: none, up to a quarter, half, three quarters, not quite all, all
# columns of the factors: agreement by part of the day; first departure, last arrival, number of stays; whether the last
# role is home, whether the main place, and any other one, is visited
AGREE = 0
LEAVE = AGREE + LEVELS * PARTS * ALIKE
ARRIVE = LEAVE + LEVELS * SHARES
NUMBER = ARRIVE + LEVELS * SHARES
END = NUMBER + LEVELS * SHARES
AT_MAIN = END + 2 * LEVELS * SHARES
OUT = AT_MAIN + 2 * LEVELS * SHARES
HOURS = OUT + 2 * LEVELS * SHARES
COLUMNS = PARTS + 6  # of a diary


class Hours(NamedTuple):
    """What one person's earlier days were, weekdays and weekends apart."""

    days: NDArray[np.int64]  # (2,)
    role: NDArray[np.int64]  # (2, L, 3) days in each role at each slot
    leave: NDArray[np.int64]  # (2, L + 1) days by the slot of the first departure, L without
    arrive: NDArray[np.int64]  # (2, L + 1) days by the slot of the last arrival, L without
    number: NDArray[np.int64]  # (2, STAYS) days by their number of stays
    end: NDArray[np.int64]  # (2, 3) days by their last role
    visit: NDArray[np.int64]  # (2, 3) days with a stay in each role


@njit
def new_hours(L):
    """Make the hours of somebody without earlier days."""
    ends = np.zeros((2, L + 1), dtype=np.int64), np.zeros((2, L + 1), dtype=np.int64)
    number, last = np.zeros((2, STAYS), dtype=np.int64), np.zeros((2, 3), dtype=np.int64)
    role = np.zeros((2, L, 3), dtype=np.int64)
    return Hours(np.zeros(2, dtype=np.int64), role, *ends, number, last, np.zeros((2, 3), dtype=np.int64))


@njit
def clear_hours(hours):
    """Make the hours those of somebody new."""
    hours.days[:] = 0
    hours.role[:] = 0
    hours.leave[:] = 0
    hours.arrive[:] = 0
    hours.number[:] = 0
    hours.end[:] = 0
    hours.visit[:] = 0


@njit
def remember_hours(hours, off, L, n, roles, starts):
    """Remember a day of `n` stays."""
    hours.days[off] += 1
    hours.leave[off, starts[1] if n > 1 else L] += 1
    hours.arrive[off, starts[n - 1] if n > 1 else L] += 1
    hours.number[off, min(n, STAYS - 1)] += 1
    hours.end[off, roles[n - 1]] += 1
    met = 0
    for q in range(n):
        end = starts[q + 1] if q + 1 < n else L
        for t in range(starts[q], end):
            hours.role[off, t, roles[q]] += 1
        if met & (1 << roles[q]) == 0:
            hours.visit[off, roles[q]] += 1
            met |= 1 << roles[q]


@njit
def share_level(count, days):
    """Return which of SHARES `count` of so many days is."""
    if count == 0:
        return 0
    if count == days:
        return SHARES - 1
    return 1 + min((4 * count - 1) // days, 3)


@njit
def days_level(days):
    """Return which of LEVELS, of at least one day."""
    return 0 if days < 2 else 1 if days < 4 else 2 if days < 8 else 3


@njit
def count_around(count, t, width, L):
    """Return the days whose slot is at most `width` from t; L, without one, is near itself alone."""
    if t == L:
        return count[L]
    total = 0
    for s in range(max(t - width, 0), min(t + width + 1, L)):
        total += count[s]
    return total


@njit
def hours_columns(hours, part, width, off, L, n, roles, starts, cols):
    """Fill in the columns (COLUMNS,) of a diary, given that there is an earlier day of its kind."""
    days, same, slots = hours.days[off], np.zeros(PARTS, dtype=np.int64), np.zeros(PARTS, dtype=np.int64)
    level, met = days_level(days), 0
    for q in range(n):
        end = starts[q + 1] if q + 1 < n else L
        for t in range(starts[q], end):
            same[part[t]] += hours.role[off, t, roles[q]]
            slots[part[t]] += 1
        met |= 1 << roles[q]
    for p in range(PARTS):
        cols[p] = AGREE + (level * PARTS + p) * ALIKE + (ALIKE - 1) * same[p] // max(slots[p] * days, 1)
    away, arrived = (starts[1], starts[n - 1]) if n > 1 else (L, L)
    cols[PARTS] = LEAVE + level * SHARES + share_level(count_around(hours.leave[off], away, width, L), days)
    cols[PARTS + 1] = ARRIVE + level * SHARES + share_level(count_around(hours.arrive[off], arrived, width, L), days)
    cols[PARTS + 2] = NUMBER + level * SHARES + share_level(hours.number[off, min(n, STAYS - 1)], days)
    at_home = 1 if roles[n - 1] == 0 else 0
    cols[PARTS + 3] = END + (2 * level + at_home) * SHARES + share_level(hours.end[off, 0], days)
    main, other = (met >> 1) & 1, (met >> 2) & 1
    cols[PARTS + 4] = AT_MAIN + (2 * level + main) * SHARES + share_level(hours.visit[off, 1], days)
    cols[PARTS + 5] = OUT + (2 * level + other) * SHARES + share_level(hours.visit[off, 2], days)
