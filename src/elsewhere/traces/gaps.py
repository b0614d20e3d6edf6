"""
Fill gaps between fixes: named policies, and how long a gap is filled.

A slot is empty where a user has no fix in it. What happens then is a policy with a name, a default and words for it,
so that a report can say what was done. Fakes are made of whole days alone, so the longest gap that is filled decides
who can be used at all: `people_by_gap` says how many people each length keeps.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.errors import InvalidTraces
from elsewhere.traces.model import Floats, Ints, Mask, in_space, on_globe

SECONDS_PER_DAY = 86_400
RUNGS = (1, 3, 6, 12, 24)  # hours that `max_gap="auto"` tries, the shortest first
ENOUGH = 0.9  # of the people whom the longest rung keeps (docs/decisions/0012-gaps.md)
MOST_SLOTS = 1 << 27  # of all rows together: 1.8 million days of 72, at 8 bytes and a little each
LEAST_SLOTS = 2  # slots with a fix of their own that a day needs: one alone says nothing of how the day went
GAPS = {
    "hold": "a slot without fixes keeps the place of the last fix, up to {max_gap}, and before the first fix of a day, "
    "up to {max_gap}, it takes the place of that one; longer gaps stay missing",
    "interpolate": "a slot between two fixes at most {max_gap} apart gets the place on the straight way between them; "
    "longer gaps stay missing",
    "split": "gaps are filled as by hold, up to {max_gap}; at a longer gap the day is cut, and its pieces are rows of "
    "their own",
    "drop": "gaps are filled as by hold, up to {max_gap}; users of whose slots fewer than {min_coverage} are known are "
    "dropped with all their days",
}


class Runs(NamedTuple):
    """
    Slots without fixes, one entry per run of neighbours in a row.

    Run i is `length[i]` slots of row `row[i]` from `slot[i]` on, which begins at second `start[i]`; `before[i]` and
    `after[i]` are the user's last fix before it and the next one, -1 where there is none.
    """

    row: Ints
    slot: Ints
    length: Ints
    start: Ints
    before: Ints
    after: Ints


class Empty(NamedTuple):
    """Single slots without fixes: row, slot, second at which it begins, the user's last fix before, the next after."""

    row: Ints
    slot: Ints
    start: Ints
    before: Ints
    after: Ints


def empty_runs(taken: Mask, rows: Ints, user: Ints, second: Ints, width: int) -> Runs:
    """Find the slots that are not `taken` (N, L); row i is (user, day) `rows[i]`, fixes are `user` at `second`."""
    row, slot, length = runs_of(~taken)
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
    return Runs(row, slot, length, start, before, after)


def runs_of(mask: Mask) -> tuple[Ints, Ints, Ints]:
    """
    Find the runs of True in each row: row, first column and length of each.

    Examples
    --------
    >>> [side.tolist() for side in runs_of(np.array([[True, False, True, True]]))]
    [[0, 0], [0, 2], [1, 2]]

    """
    begins, ends = mask.copy(), mask.copy()
    begins[:, 1:] &= ~mask[:, :-1]
    ends[:, :-1] &= ~mask[:, 1:]
    row, first = np.nonzero(begins)
    return row, first, np.nonzero(ends)[1] - first + 1


def fillable(runs: Runs, second: Ints, off: Mask, width: int, longest: int, policy: str) -> tuple[Ints, Ints]:
    """
    Count the slots of each run that are filled: from the fix before on, and from the fix after backwards.

    A slot keeps the place of the last fix that is at most `longest` seconds old when it begins. Before the first fix of
    a day it takes the place of that fix, if it comes at most `longest` seconds after the slot's end and no earlier fix
    is recent enough. "interpolate" fills a run as a whole, or not at all. Nothing is filled by a fix that is `off` the
    map: somebody who is elsewhere is not held anywhere.
    """
    none = np.zeros(len(runs.row), dtype=np.int64)
    if longest == 0:
        return none, none
    by_before, by_after = (runs.before >= 0) & ~off[runs.before], (runs.after >= 0) & ~off[runs.after]
    if policy == "interpolate":
        apart = second[runs.after] - second[runs.before]
        return np.where(by_before & by_after & (apart <= longest), runs.length, 0), none
    age = runs.start - second[runs.before]
    forward = np.where(runs.before >= 0, np.clip((longest - age) // width + 1, 0, runs.length), 0)
    # the slots that end too long before the fix after: those that begin earlier than longest + width before it
    early = -((runs.start + width + longest - second[runs.after]) // width)
    backward = np.where((runs.slot == 0) & by_after, runs.length - np.clip(early, 0, runs.length), 0)
    return np.where(by_before, forward, 0), np.minimum(backward, runs.length - forward)


def filled_slots(runs: Runs, forward: Ints, backward: Ints, width: int) -> tuple[Empty, Mask]:
    """List the slots that are filled one by one, and for each whether by the fix before it."""
    run = np.repeat(np.arange(len(runs.row)), forward + backward)
    nth = np.arange(len(run)) - np.repeat(np.cumsum(forward + backward) - forward - backward, forward + backward)
    by_before = nth < forward[run]
    nth = np.where(by_before, nth, nth - forward[run] + (runs.length - backward)[run])
    start = runs.start[run] + nth * width
    return Empty(runs.row[run], runs.slot[run] + nth, start, runs.before[run], runs.after[run]), by_before


def people_by_gap(
    runs: Runs,
    second: Ints,
    off: Mask,
    width: int,
    policy: str,
    seconds: tuple[int, ...],
    *,
    user: Ints,
    observed: Mask,
    min_coverage: float,
) -> dict[int, int]:
    """
    Count the people with a usable day, one that is known from end to end, for each longest gap in `seconds`.

    `user` (N,) is the user of each row, `observed` (N, L) its slots with a fix on the map, `off` (n,) the fixes that
    are not on it. The longer the gap, the more people.
    """
    L, own = observed.shape[1], observed.sum(axis=1)
    people = {}
    for longest in seconds:
        forward, backward = fillable(runs, second, off, width, longest, policy)
        slots_known = own + np.bincount(runs.row, forward + backward, minlength=len(user)).astype(np.int64)
        usable = (slots_known == L) & (own >= least_slots(L, min_coverage))
        if policy == "drop":
            days = np.bincount(user)
            usable &= (np.bincount(user, slots_known) / np.maximum(1, days * L))[user] >= min_coverage
        people[longest] = len(np.unique(user[usable]))
    return people


def least_slots(L: int, min_coverage: float) -> int:
    """Return how many slots of a day must have a fix of their own; `min_coverage` 0 asks for none."""
    return min(LEAST_SLOTS, L) if min_coverage > 0 else 0


def on_the_way(empty: Empty, second: Ints, lat: Floats, lon: Floats, width: int) -> tuple[Floats, Floats]:
    """
    Return where somebody who goes straight from the last fix to the next, at one speed, is in the middle of each slot.

    The way is a great circle: it crosses the antimeridian and the poles as any other line.
    """
    a, b = empty.before, empty.after
    f = share_of_way(empty, second, width)[:, None]
    x = in_space(lat, lon)
    point = (1 - f) * x[a] + f * x[b]
    length = np.linalg.norm(point, axis=1, keepdims=True)
    still = (lat[a] == lat[b]) & (lon[a] == lon[b])
    north, east = on_globe(point * (np.linalg.norm(x[a], axis=1, keepdims=True) / np.where(length > 0, length, 1)))
    return np.where(still, lat[a], north), np.where(still, lon[a], east)


def share_of_way(empty: Empty, second: Ints, width: int) -> Floats:
    """Return how far from the fix before to the fix after, in time, the middle of each slot is, in [0, 1]."""
    apart = np.maximum(1, second[empty.after] - second[empty.before])
    return np.asarray(np.clip((empty.start + width / 2 - second[empty.before]) / apart, 0, 1))


def cut(r: Ints) -> tuple[Ints, Ints]:
    """
    Return every row cut at its gaps: the pieces, -1 outside, and the row each one comes from.

    Examples
    --------
    >>> pieces, row = cut(np.array([[3, -1, 4, 4]]))
    >>> pieces.tolist(), row.tolist()
    ([[3, -1, -1, -1], [-1, -1, 4, 4]], [0, 0])

    """
    there = r >= 0
    begins = there.copy()
    begins[:, 1:] &= ~there[:, :-1]
    number = np.cumsum(begins.ravel()).reshape(r.shape) - 1
    row = np.nonzero(begins)[0]
    pieces = np.full((len(row), r.shape[1]), -1, dtype=r.dtype)
    at, slot = np.nonzero(there)
    pieces[number[at, slot], slot] = r[at, slot]
    return pieces, row


def refuse_slots(N: int, L: int, name: str) -> None:
    """Refuse N rows of L slots that would not fit into memory."""
    if N * L > MOST_SLOTS:
        raise InvalidTraces(
            f"{name}: {N} rows of {L} slots need {N * L * 16 / 2**30:.1f} GiB, more than the limit of "
            f"{MOST_SLOTS * 16 / 2**30:.1f}; read it in parts, or with a longer `step`.",
            code="E_TOO_LARGE",
        )


class Filling(NamedTuple):
    """
    Slots that are filled, and how that was decided.

    `r` (N, L) is -1 everywhere, `outside` (N, L) marks the slots outside the map; fix `source[i]` fills slot i of
    `slots`. `people` have a usable day by longest gap in seconds, `longest` is the gap that was taken.
    """

    r: Ints
    outside: Mask
    slots: Empty
    source: Ints
    people: dict[int, int]
    longest: int


def filled(
    shape: tuple[int, int],
    slot: Ints,
    off: Mask,
    rows: Ints,
    owner: Ints,
    second: Ints,
    weight: Ints,
    *,
    user: Ints,
    width: int,
    policy: str,
    longest: int | None,
    rungs: tuple[int, ...],
    min_coverage: float,
) -> Filling:
    """
    Decide which empty slots of N rows of L (`shape`) are filled, by which fix, and, without `longest`, up to which gap.

    Entry i is in slot `slot[i]` of all N * L, at `second[i]`, stands for `weight[i]` fixes, and belongs to the rows of
    `owner[i]`; row j is day `rows[j, 1]` of owner `rows[j, 0]`, a day of `user[j]`.
    """
    outside = np.zeros(shape, dtype=bool)
    taken = np.zeros(shape, dtype=bool)
    taken.reshape(-1)[slot] = True
    if off.any():
        where, most = most_common(slot, off.astype(np.int64), weight)
        outside.reshape(-1)[where] = most == 1
    runs = empty_runs(taken, rows, owner, second, width)
    observed = taken & ~outside
    people = people_by_gap(
        runs, second, off, width, policy, rungs, user=user, observed=observed, min_coverage=min_coverage
    )
    if longest is None:
        longest = next(gap for gap, number in people.items() if number >= ENOUGH * max(people.values()))
    slots, by_before = filled_slots(runs, *fillable(runs, second, off, width, longest, policy), width)
    source = np.where(by_before, slots.before, slots.after)
    if policy == "interpolate":
        # the fix that is nearer in time to the middle of each slot; of equals the earlier
        source = np.where(share_of_way(slots, second, width) <= 0.5, slots.before, slots.after)
    return Filling(np.full(shape, -1, dtype=np.int64), outside, slots, source, people, longest)


def most_common(slot: Ints, place: Ints, weight: Ints) -> tuple[Ints, Ints]:
    """Return the slots that have fixes, and in each the place of most of them; of equals the one seen first."""
    R = int(place.max(initial=0)) + 1
    pairs, first, group = np.unique(slot * R + place, return_index=True, return_inverse=True)
    count = np.bincount(group, weight, len(pairs))
    order = np.lexsort((first, -count, pairs // R))
    slots, best = np.unique(pairs[order] // R, return_index=True)
    return slots, pairs[order][best] % R


def hold_places(r: ArrayLike) -> Ints:
    """
    Return the rows with every missing slot (-1) at the last known place, or at the first one before it is known.

    Rows without any place stay as they are.
    """
    places = np.asarray(r, dtype=np.int64)
    if places.min(initial=0) >= 0:
        return places
    known = places >= 0
    last = np.maximum.accumulate(np.where(known, np.arange(places.shape[1]), -1), axis=1)
    last = np.where(last < 0, known.argmax(axis=1)[:, None], last)
    return np.take_along_axis(places, last, axis=1)
