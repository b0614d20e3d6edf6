"""
Gaps between fixes: named policies, and impossible jumps.

A slot is empty where a user has no fix in it. What happens then is a policy with a name, a default and words for it,
so that a report can say what was done.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidTraces
from elsewhere.traces.fixes import Fixes
from elsewhere.traces.model import Floats, Ints
from elsewhere.traces.places import in_space, on_globe

SECONDS_PER_DAY = 86_400
FASTEST_KMH = 1200.0  # no airliner is faster over ground
LEAST_JUMP_KM = 10.0  # nearer, positions jitter: two networks place one phone differently within a second
GAPS = {
    "hold": "a slot without fixes keeps the place of the last fix, up to {max_gap}; longer gaps stay missing",
    "interpolate": "a slot between two fixes at most {max_gap} apart gets the place on the straight way between them; "
    "longer gaps stay missing",
    "split": "a slot without fixes keeps the place of the last fix, up to {max_gap}; at a longer gap the day is cut, "
    "and its pieces are rows of their own",
    "drop": "a slot without fixes keeps the place of the last fix, up to {max_gap}; users of whose slots fewer than "
    "{min_coverage} are known are dropped with all their days",
}


class Empty(NamedTuple):
    """Slots without fixes: row, slot, second at which it begins, and the user's last fix before and next after; -1."""

    row: Ints
    slot: Ints
    start: Ints
    before: Ints
    after: Ints


def empty_slots(r: Ints, rows: Ints, user: Ints, second: Ints, width: int) -> Empty:
    """The slots of `r` (N, L) that have no fix; row i is (user, day) `rows[i]`, fixes are `user` at local `second`."""
    row, slot = np.nonzero(r < 0)
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
    return Empty(row, slot, start, before, after)


def held(empty: Empty, second: Ints, longest: int) -> NDArray[np.bool_]:
    """Which empty slots keep the place of the last fix: those at whose start it is at most `longest` seconds old."""
    if longest == 0:
        return np.zeros(len(empty.row), dtype=bool)
    return np.asarray((empty.before >= 0) & (empty.start - second[empty.before] <= longest))


def between(empty: Empty, second: Ints, longest: int) -> NDArray[np.bool_]:
    """Which empty slots lie between two fixes at most `longest` seconds apart."""
    apart = second[empty.after] - second[empty.before]
    return np.asarray((empty.before >= 0) & (empty.after >= 0) & (apart <= longest))


def on_the_way(empty: Empty, second: Ints, lat: Floats, lon: Floats, width: int) -> tuple[Floats, Floats]:
    """
    Where somebody who goes straight from the last fix to the next, at one speed, is in the middle of each slot.

    The way is a great circle: it crosses the antimeridian and the poles as any other line.
    """
    a, b = empty.before, empty.after
    f = _share(empty, second, width)[:, None]
    x = in_space(lat, lon)
    point = (1 - f) * x[a] + f * x[b]
    length = np.linalg.norm(point, axis=1, keepdims=True)
    still = (lat[a] == lat[b]) & (lon[a] == lon[b])
    north, east = on_globe(point * (np.linalg.norm(x[a], axis=1, keepdims=True) / np.where(length > 0, length, 1)))
    return np.where(still, lat[a], north), np.where(still, lon[a], east)


def nearer(empty: Empty, second: Ints, width: int) -> Ints:
    """The fix that is nearer in time to the middle of each slot; of equals the earlier."""
    return np.where(_share(empty, second, width) <= 0.5, empty.before, empty.after)


def _share(empty: Empty, second: Ints, width: int) -> Floats:
    apart = np.maximum(1, second[empty.after] - second[empty.before])
    return np.asarray(np.clip((empty.start + width / 2 - second[empty.before]) / apart, 0, 1))


def cut(r: Ints) -> tuple[Ints, Ints]:
    """
    Every row cut at its gaps: the pieces, -1 outside, and the row each one comes from.

    Examples
    --------
    >>> pieces, row = cut(np.array([[3, -1, 4, 4]]))
    >>> pieces.tolist(), row.tolist()
    ([[3, -1, -1, -1], [-1, -1, 4, 4]], [0, 0])

    """
    known = r >= 0
    begins = known.copy()
    begins[:, 1:] &= ~known[:, :-1]
    number = np.cumsum(begins.ravel()).reshape(r.shape) - 1
    row = np.nonzero(begins)[0]
    pieces = np.full((len(row), r.shape[1]), -1, dtype=r.dtype)
    at, slot = np.nonzero(known)
    pieces[number[at, slot], slot] = r[at, slot]
    return pieces, row


def without_jumps(fixes: Fixes, seconds: Ints, max_bad: float, name: str) -> tuple[Fixes, int, int]:
    """
    Fixes without single impossible ones, how many those were, and how many impossible steps remain (B36).

    A fix goes if the way to it and the way from it are both faster than any airliner, and the way past it is not.
    Fixes must be sorted by user and time.
    """
    if fixes.lat is None or fixes.lon is None or len(fixes) < 2:
        return fixes, 0, 0
    x = in_space(fixes.lat, fixes.lon)

    def impossible(a: Ints, b: Ints) -> NDArray[np.bool_]:
        way = np.sqrt(((x[a] - x[b]) ** 2).sum(axis=1))
        fast = way * 3600 > FASTEST_KMH * np.abs(seconds[b] - seconds[a])
        return np.asarray((fixes.user[a] == fixes.user[b]) & (way > LEAST_JUMP_KM) & fast)

    here = np.arange(len(fixes) - 1)
    jump = impossible(here, here + 1)
    middle = np.flatnonzero(jump[:-1] & jump[1:]) + 1
    alone = middle[~impossible(middle - 1, middle + 1)] if len(middle) else middle
    # of two neighbours that look like it only the first is taken: the second is judged by what is left
    alone = alone[np.insert(np.diff(alone) > 1, 0, True)] if len(alone) else alone
    if len(alone) > max_bad * len(fixes):
        raise InvalidTraces(
            f"{name}: {len(alone)} of {len(fixes)} fixes are reached and left faster than {FASTEST_KMH:.0f} km/h "
            f"(limit {max_bad:.0%}, `max_bad`).",
            code="E_SPEED",
        )
    stay = np.ones(len(fixes), dtype=bool)
    stay[alone] = False
    return (fixes.select(stay) if len(alone) else fixes), len(alone), int(jump.sum()) - 2 * len(alone)
