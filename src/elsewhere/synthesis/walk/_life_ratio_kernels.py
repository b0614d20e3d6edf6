"""Compiled loops of the ratio of people's lives to drawn ones: traits of a life over days."""

import math

import numpy as np

from elsewhere._jit import njit
from elsewhere._search_kernels import sort

NAMES = (
    "places_per_move", "kinds_of_moves", "moves_made_once", "places_of_a_few_days", "places_of_many_days",
    "third_place", "midnights_away",
    "leaving", "leaving_deviation", "arriving", "arriving_deviation",
    "weekend_leaving", "weekend_leaving_deviation", "weekend_arriving", "weekend_arriving_deviation",
    "slots_alike", "weekend_slots_alike", "slots_alike_deviation",
    "length_of_other_stays", "stays_of_one_slot", "way_of_a_day", "way_of_a_day_deviation", "distance_when_away",
    "distance_of_the_two_places", "back_at_once",
)  # fmt: skip
TRAITS = len(NAMES)


@njit
def mean_and_deviation(total, squares, n):
    """Return mean and standard deviation of n numbers, (-1, -1) without any."""
    if n <= 0:
        return -1.0, -1.0
    mean = total / n
    return mean, math.sqrt(max(squares / n - mean * mean, 0.0))


@njit
def top_places(r, shown, count):
    """Return the two places with most slots, -1 where there is none; `count` (P,) is filled in."""
    count[:] = 0
    for d in range(len(r)):
        if shown[d]:
            for t in range(r.shape[1]):
                count[r[d, t]] += 1
    first, second = -1, -1
    for p in range(len(count)):
        if count[p] > 0 and (first < 0 or count[p] > count[first]):
            first, second = p, first
        elif count[p] > 0 and (second < 0 or count[p] > count[second]):
            second = p
    return first, second


@njit
def length(xy, a, b):
    """Return the distance of two places."""
    return math.hypot(xy[a, 0] - xy[b, 0], xy[a, 1] - xy[b, 1])


@njit
def places_and_moves(r, shown, first, second, days_at, last_day, keys, out):
    """Fill in traits 0 to 5: how many places and moves are met how often."""
    D, L = r.shape
    days_at[:] = 0
    last_day[:] = -1
    moves, days = 0, 0
    for d in range(D):
        if shown[d]:
            days += 1
            for t in range(L):
                if last_day[r[d, t]] != d:
                    last_day[r[d, t]] = d
                    days_at[r[d, t]] += 1
                if t > 0 and r[d, t] != r[d, t - 1]:
                    keys[moves] = r[d, t - 1] * len(days_at) + r[d, t]
                    moves += 1
    sort(keys[:moves])
    distinct, once = 0, 0
    for k in range(moves):
        if k == 0 or keys[k] != keys[k - 1]:
            distinct += 1
            if k + 1 == moves or keys[k + 1] != keys[k]:
                once += 1
    places, few, usual, third = 0, 0, 0, 0
    for p in range(len(days_at)):
        if days_at[p] > 0:
            places += 1
            few += 1 if 2 <= days_at[p] <= 3 else 0
            usual += 1 if 4 <= days_at[p] and 4 * days_at[p] < 3 * days else 0
            if p not in (first, second):
                third = max(third, days_at[p])
    out[0] = places / (moves + 1)
    out[1] = distinct / (moves + 1)
    out[2] = once / (moves + 1)
    out[3] = few / max(places, 1)
    out[4] = usual / max(places, 1)
    out[5] = third / max(days, 1)


@njit
def hours_of_days(r, shown, weekend, first, out):
    """Fill in traits 6 to 17: first departures, last arrivals, how alike a day and the next of its kind are."""
    D, L = r.shape
    sums = np.zeros((2, 8))
    before = np.full(2, -1)
    nights = 0
    for d in range(D):
        if not shown[d]:
            continue
        off = 1 if weekend[d] else 0
        leave, arrive = L, L
        for t in range(1, L):
            if r[d, t] != r[d, t - 1]:
                leave, arrive = min(leave, t), t
        nights += 1 if r[d, 0] != first else 0
        sums[off, 0] += 1
        if leave < L:
            sums[off, 1] += 1
            sums[off, 2] += leave
            sums[off, 3] += leave * leave
            sums[off, 4] += arrive
            sums[off, 5] += arrive * arrive
        if before[off] >= 0:
            same = 0
            for t in range(L):
                same += 1 if r[d, t] == r[before[off], t] else 0
            sums[off, 6] += same / L
            sums[off, 7] += (same / L) ** 2
        before[off] = d
    out[6] = nights / max(sums[0, 0] + sums[1, 0], 1)
    for off in range(2):
        leaving = mean_and_deviation(sums[off, 2], sums[off, 3], sums[off, 1])
        arriving = mean_and_deviation(sums[off, 4], sums[off, 5], sums[off, 1])
        out[7 + 4 * off], out[8 + 4 * off] = leaving
        out[9 + 4 * off], out[10 + 4 * off] = arriving
        alike = mean_and_deviation(sums[off, 6], sums[off, 7], sums[off, 0] - 1)
        out[15 + off] = alike[0]
    out[17] = mean_and_deviation(sums[0, 6], sums[0, 7], sums[0, 0] - 1)[1]


@njit
def ways_of_days(r, shown, first, second, xy, out):
    """Fill in traits 18 to 24: stays away from the two usual places, ways of a day, returns."""
    D, L = r.shape
    runs, brief, elsewhere, slots, returns, turns = 0, 0, 0, 0, 0, 0
    total, squares, days, away, far = 0.0, 0.0, 0, 0, 0.0
    for d in range(D):
        if not shown[d]:
            continue
        days += 1
        path, run, last, before = 0.0, 1, -1, -1
        for t in range(1, L + 1):
            if t < L and r[d, t] == r[d, t - 1]:
                run += 1
                continue
            here = r[d, t - 1]
            runs += 1
            brief += 1 if run == 1 else 0
            if here not in (first, second):
                elsewhere += 1
                slots += run
            if here != first:
                away += run
                far += run * length(xy, here, first)
            if last >= 0:
                path += length(xy, last, here)
            if before >= 0:
                turns += 1
                returns += 1 if before == here else 0
            before, last, run = last, here, 1
        total += path
        squares += path * path
    out[18] = slots / max(elsewhere, 1)
    out[19] = brief / max(runs, 1)
    out[20], out[21] = mean_and_deviation(total, squares, days)
    out[22] = far / max(away, 1)
    out[23] = length(xy, first, second) if second >= 0 else 0.0
    out[24] = returns / max(turns, 1)


@njit
def traits_of_lives(r, shown, weekend, xy):
    """Return the traits (n, TRAITS) of lives `r` (n, D, L), each on the days of one row of `shown` (m, D), in turn."""
    n, D, L = r.shape
    out = np.empty((n, TRAITS))
    count, days_at = np.zeros(len(xy), dtype=np.int64), np.zeros(len(xy), dtype=np.int64)
    last_day = np.zeros(len(xy), dtype=np.int64)
    keys = np.empty(D * L, dtype=np.int64)
    for i in range(n):
        days = shown[i % len(shown)]
        first, second = top_places(r[i], days, count)
        places_and_moves(r[i], days, first, second, days_at, last_day, keys, out[i])
        hours_of_days(r[i], days, weekend, first, out[i])
        ways_of_days(r[i], days, first, second, xy, out[i])
    return out
