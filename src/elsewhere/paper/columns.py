"""Counts of many users side by side, in the order the kernels walk through them; what similarities ask of arguments."""

import math
from typing import NamedTuple

import numpy as np

from elsewhere.errors import InvalidParameter, InvalidTraces
from elsewhere.paper.profiles import Counts, MobilityProfile, Profiles, check_comparable
from elsewhere.traces.model import Floats, Ints

ORDERS = (0, 1)
MAPPINGS = ("per-period", "common")


def check_pair(u: MobilityProfile, v: MobilityProfile) -> None:
    """Refuse what are no profiles over the same places and periods."""
    for name, profile in (("u", u), ("v", v)):
        if not isinstance(profile, MobilityProfile):
            raise InvalidParameter(f"`{name}` must be a `MobilityProfile`, got {type(profile).__name__}.")
    check_comparable(u, v)


def check_order(order: int) -> None:
    """Refuse an order that is neither 0 nor 1."""
    if isinstance(order, bool) or order not in ORDERS:
        raise InvalidParameter(f"`order` must be 0 (visits) or 1 (moves), got {order!r}.")


def check_departures(*profiles: MobilityProfile) -> None:
    """Refuse order 1 without departures of the first argument, over which it is an expectation (E3)."""
    still = sum(1 for u in profiles if u.count.sum() == 0)
    if still:
        raise InvalidTraces(
            f"order 1 compares moves, and {still} of {len(profiles)} profiles have no transition; use order 0.",
            code="E_NO_MOVES",
        )


def check_rng(rng: np.random.Generator | None) -> None:
    """Refuse what is neither a generator nor None."""
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise InvalidParameter(f"`rng` must be a `numpy.random.Generator` or None, got {type(rng).__name__}.")


EXACT = 2**53  # whole numbers up to here are exact in a float64


class Visits(NamedTuple):
    """
    Visits of U users in T periods.

    Entries `start[u T + tau] : start[u T + tau + 1]` of `place` and `counts` are those of u in tau; `lived (U, T)`
    counts u's slots in each period, `total (U,)` all of them. The similarity of u to v is

        sum_tau y_tau times[v, tau] / over[v, tau] / (total[u] denominator[v]),

    with y_tau = lived[u, tau] lived[v, tau] times the overlap of both in tau, as `sorted_overlap` and `shared_overlap`
    count it. Over a common denominator of v's periods (`over` = 1) all but the last quotient is exact, so a value on a
    threshold stays on it (R6); where that denominator is too large, or counts are not whole, each period is divided by
    itself.
    """

    start: Ints
    place: Ints
    counts: Counts
    lived: Counts
    total: Floats
    times: Floats
    over: Floats
    denominator: Floats


class Moves(NamedTuple):
    """
    Moves of U users: entries `start[u] : start[u + 1]`, by rising `key` = ((tau, tau'), r, r').

    `counts` is the number of such moves, `leaving` that of all departures from r between tau and tau', and `total (U,)`
    that of all departures.
    """

    start: Ints
    key: Ints
    counts: Floats
    leaving: Floats
    total: Floats


def visits_of(profiles: Profiles, *, by_place: bool) -> Visits:
    """Return the visits of all profiles, in each period by rising place, or by falling count (ties: rising place)."""
    U, T = len(profiles), profiles.T
    user = np.repeat(np.arange(U), np.diff(profiles.visit_start))
    place = profiles.support[profiles.support_start[user] + profiles.visit_k].astype(np.int64)
    count = profiles.visit_count
    cell = user * T + profiles.visit_tau
    order = np.lexsort((place, cell) if by_place else (place, -count, cell))
    lived: Counts = np.zeros((U, T), dtype=count.dtype)
    np.add.at(lived.reshape(-1), cell, count)
    total = lived.sum(axis=1).astype(np.float64)
    start = np.searchsorted(cell[order], np.arange(U * T + 1))
    return Visits(start, place[order], count[order], lived, total, *period_scale(lived, total.max(initial=0.0)))


def period_scale(lived: Counts, longest: float) -> tuple[Floats, Floats, Floats]:
    """Return `times`, `over` and `denominator` of `Visits`, for comparison with users of at most `longest` slots."""
    # an empty period has no overlap with anything: 1 avoids 0 / 0
    over = np.where(lived > 0, lived, 1).astype(np.float64)
    times, denominator = np.ones_like(over), np.ones(len(over))
    if lived.dtype.kind in "iu":
        for v, periods in enumerate(over):
            common = math.lcm(*map(int, periods))
            if common * int(longest) < EXACT:
                times[v], over[v], denominator[v] = common / periods, 1.0, common
    return times, over, denominator


def moves_of(profiles: Profiles) -> Moves:
    """Return the moves of all profiles, by rising key."""
    U, R, T = len(profiles), profiles.R, profiles.T
    user = np.repeat(np.arange(U), np.diff(profiles.move_start))
    first = profiles.support_start[user]
    origin = profiles.support[first + profiles.move_origin].astype(np.int64)
    target = profiles.support[first + profiles.move_target]
    row = (profiles.move_tau.astype(np.int64) * T + profiles.move_tau_next) * R + origin
    order = np.lexsort((target, row, user))
    count = profiles.move_count[order].astype(np.float64)
    row, target, user = row[order], target[order], user[order]

    new_row = np.ones(len(row), dtype=bool)
    new_row[1:] = (np.diff(row) != 0) | (np.diff(user) != 0)
    number = np.cumsum(new_row) - 1
    leaving = np.bincount(number, count)[number] if len(number) else count
    total = np.bincount(user, count, minlength=U).astype(np.float64)
    return Moves(np.searchsorted(user, np.arange(U + 1)), row * R + target, count, leaving, total)
