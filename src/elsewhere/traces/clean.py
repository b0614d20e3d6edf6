"""Clean fixes: visits as fixes, in order of time, without doubles and impossible jumps, crowded slots thinned out."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidTraces
from elsewhere.traces.clock import Times
from elsewhere.traces.fixes import Fixes, Slots
from elsewhere.traces.maps import Box, in_box
from elsewhere.traces.model import Ints, Mask, in_space
from elsewhere.traces.places import MANY_ENOUGH, MOST_GRID_CELLS, anchored, as_keys, grid_cells
from elsewhere.traces.sources import refuse_rows

RAW = 1 << 20  # fixes up to which every one is kept
BATCH = 1 << 20  # fixes that are cleaned at a time, or those of one user
BYTES_AN_ENTRY = 200  # of what slots are made of: measured on 5 million fixes, each in a slot of its own
FASTEST_KMH = 1200.0  # no airliner is faster over ground
LEAST_JUMP_KM = 10.0  # nearer, positions jitter: two networks place one phone differently within a second
MOST_JUMPS = 0.2  # of the fixes: more are no single errors, but ids that several people share, or wrong times
ENTRIES_A_POINT, SHARED_ENTRIES = 5, 0.9  # what makes few points exact places, see `are_places`
POINTS = 1 << 16  # points that are looked at at a time
MOST_SLOTS = 1 << 27  # of all rows together: 1.8 million days of 72, at 8 bytes and a little each


def stretched(visits: Fixes, width: int, name: str) -> tuple[Fixes, int]:
    """
    Return visits as one fix per slot they last in, at their last moment there, and how many visits have none.

    Of several visits of one person in a slot the longest there wins, of equals the first.
    """
    assert visits.until is not None  # noqa: S101 - that is what makes them visits
    begin = visits.wall.astype("datetime64[us]").astype(np.int64)
    end = np.maximum(visits.until.astype("datetime64[us]").astype(np.int64), begin + 1)
    long = width * 1_000_000
    first = begin // long
    slots = (end - 1) // long - first + 1
    if slots.sum() > MOST_SLOTS:
        raise InvalidTraces(
            f"{name}: the visits last {slots.sum()} slots, too many; a longer `step`?", code="E_TOO_LARGE"
        )
    visit = np.repeat(np.arange(len(visits)), slots)
    slot = first[visit] + np.arange(len(visit)) - np.repeat(np.cumsum(slots) - slots, slots)
    since, till = np.maximum(begin[visit], slot * long), np.minimum(end[visit], (slot + 1) * long)
    order = np.lexsort((since, since - till, slot, visits.user[visit]))
    user, at = visits.user[visit[order]], slot[order]
    best = np.ones(len(order), dtype=bool)
    best[1:] = (user[1:] != user[:-1]) | (at[1:] != at[:-1])
    chosen = order[best]
    moment = (till[chosen] - 1).astype("datetime64[us]")
    won = visits.select(visit[chosen])
    return replace(won, wall=moment, utc=None, until=None), len(visits) - len(np.unique(visit[chosen]))


def cleaned(
    fixes: Fixes, width: int, metres: float | None, box: Box | None, jitter: bool, name: str
) -> tuple[Fixes, dict[str, int], int, int, float]:
    """
    Return fixes in the order of users and time, without doubles and impossible ones, and how many of each there were.

    Where they may `jitter`, those near a spot where their person stays are put there, see `anchored`; the share of
    these comes last.

    Some users at a time, so that little more than the fixes themselves ever stands in memory. Of many fixes those of
    one slot within one cell of `metres` become one entry, see `reduced`; None keeps every fix.
    """
    n = np.bincount(fixes.user, minlength=len(fixes.labels))
    many = metres is not None and len(fixes) > RAW
    if many and few_points(fixes, MOST_GRID_CELLS):
        metres = 0.0  # what somebody has made is not to be mixed
    ends = np.unique(np.append(np.searchsorted(np.cumsum(n), np.arange(BATCH, n.sum(), BATCH)) + 1, len(n)))
    fixed: Counter[str] = Counter()
    jumps = fast = rows = calm = 0
    cleaned: list[Fixes] = []
    for begin, end in pairwise([0, *ends.tolist()]):
        part = fixes.select((fixes.user >= begin) & (fixes.user < end)) if len(ends) > 1 else fixes
        part = replace(part, user=part.user.astype(np.int64))
        if len(part) == 0:
            continue
        part, doubles = _in_order(part)
        fixed.update(doubles)
        stay, remain = without_jumps(part, seconds_since_1970(_instant(part)))
        rows, jumps, fast = rows + len(part), jumps + int((~stay).sum()), fast + remain
        part = part if stay.all() else part.select(stay)
        if part.utc is not None:
            slot = grouped(part.user, seconds_since_1970(part.wall) // width)[2]
            again = _second_passing(slot, part.wall - part.utc)
            fixed["second passing of the doubled hour"] += int(again.sum())
            part = part.select(~again) if again.any() else part
        if jitter and part.lat is not None and part.lon is not None:
            lat, lon, there = anchored(part.user, seconds_since_1970(_instant(part)), part.lat, part.lon)
            part, calm = replace(part, lat=lat, lon=lon), calm + int(there.sum())
        cleaned.append(reduced(part, width, metres, box) if many and metres is not None else part)
        refuse_rows(sum(map(len, cleaned)), name, BYTES_AN_ENTRY)
    refuse_jumps(jumps, rows, name)
    columns: dict[str, Any] = {
        column: np.concatenate([each.columns()[column] for each in cleaned]) for column in cleaned[0].columns()
    }
    return replace(cleaned[0], **columns), dict(fixed), jumps, fast, calm / max(1, rows)


def reduced(fixes: Fixes, width: int, metres: float, box: Box | None) -> Fixes:
    """
    Return one entry, with a count, for all fixes of a user in one slot and cell (or place, or point if `metres` is 0).

    The entry is the first of these fixes, and the last fix of every slot is one too, which counts for none. So the
    place of most fixes of a slot, of equals the first, the first and the last fix of a slot are what they were;
    cells that are larger than `metres` take all fixes of a smaller one to where the first is.
    """
    if fixes.place is not None:
        cell = fixes.place
    elif fixes.lat is None or fixes.lon is None:
        return fixes
    else:
        cell = grid_cells(fixes.lat, fixes.lon, metres) if metres else fixes.lat + 1j * fixes.lon
        cell = np.unique(cell, return_inverse=True)[1]
        if box is not None:
            cell = 2 * cell + in_box(box, fixes.lat, fixes.lon)
    second = seconds_since_1970(fixes.wall)
    _, _, slot = grouped(fixes.user, second // width)
    low = int(cell.min())
    _, first, count = np.unique(
        slot * (int(cell.max()) - low + 1) + (cell - low), return_index=True, return_counts=True
    )
    order = np.lexsort((second, slot))
    last = order[np.flatnonzero(np.append(np.diff(slot[order]), 1))]
    chosen = np.union1d(first, last)
    weight = np.zeros(len(chosen), dtype=np.int64)
    weight[np.searchsorted(chosen, first)] = count
    return replace(fixes.select(chosen), count=weight)


def _in_order(fixes: Fixes) -> tuple[Fixes, dict[str, int]]:
    """Sort by user and instant; of two fixes at one instant the first in the file stays (B26-B28)."""
    fixes = fixes.select(np.lexsort((_instant(fixes), fixes.user)))
    instant, user = _instant(fixes), fixes.user
    repeated = np.zeros(len(fixes), dtype=bool)
    repeated[1:] = (user[1:] == user[:-1]) & (instant[1:] == instant[:-1])
    first = np.maximum.accumulate(np.where(repeated, 0, np.arange(len(fixes))))
    moved = np.zeros(len(fixes), dtype=bool)
    for column in (fixes.lat, fixes.lon, fixes.place):
        if column is not None:
            moved |= column != column[first]
    if not fixes.exact:
        repeated, moved = repeated & ~moved, np.zeros_like(moved)
    conflict = int(moved.sum())
    return fixes.select(~repeated), {"repeated": int(repeated.sum()) - conflict, "contradicted": conflict}


def _instant(fixes: Fixes) -> Times:
    return fixes.wall if fixes.utc is None else fixes.utc


def seconds_since_1970(times: Times) -> Ints:
    """Return times as whole seconds since 1970, of the clock they are of."""
    return np.asarray(times.astype("datetime64[s]").astype(np.int64))


def _second_passing(instant: Ints, offset: NDArray[np.timedelta64]) -> Mask:
    # the clock was put back within the slot: its offset is no longer that of the slot's first fix
    _, first, group = np.unique(instant, return_index=True, return_inverse=True)
    return np.asarray(offset != offset[first[group]])


def grouped(major: Ints, minor: Ints) -> tuple[int, Ints, Ints]:
    """Return distinct pairs in sorted order: how many, the first entry of each, and the pair of each entry."""
    low, span = int(minor.min()), int(np.ptp(minor)) + 1
    pairs, first, group = np.unique(major * span + (minor - low), return_index=True, return_inverse=True)
    return len(pairs), first, group


def without_jumps(fixes: Fixes, seconds: Ints) -> tuple[Mask, int]:
    """
    Tell which fixes stay if single impossible ones go, and how many impossible steps remain (B36).

    A fix goes if the way to it and the way from it are both faster than any airliner, and the way past it is not.
    Fixes must be sorted by user and time; those at 0, 0 are no positions, and not judged.
    """
    stay = np.ones(len(fixes), dtype=bool)
    if fixes.lat is None or fixes.lon is None:
        return stay, 0
    some = np.flatnonzero((fixes.lat != 0) | (fixes.lon != 0))
    if len(some) < 2:
        return stay, 0
    x, user, seconds = in_space(fixes.lat[some], fixes.lon[some]), fixes.user[some], seconds[some]

    def impossible(a: Ints, b: Ints) -> Mask:
        way = np.sqrt(((x[a] - x[b]) ** 2).sum(axis=1))
        fast = way * 3600 > FASTEST_KMH * np.abs(seconds[b] - seconds[a])
        return np.asarray((user[a] == user[b]) & (way > LEAST_JUMP_KM) & fast)

    here = np.arange(len(some) - 1)
    jump = impossible(here, here + 1)
    middle = np.flatnonzero(jump[:-1] & jump[1:]) + 1
    alone = middle[~impossible(middle - 1, middle + 1)] if len(middle) else middle
    # of two neighbours that look like it only the first is taken: the second is judged by what is left
    alone = alone[np.insert(np.diff(alone) > 1, 0, True)] if len(alone) else alone
    stay[some[alone]] = False
    return stay, int(jump.sum()) - 2 * len(alone)


def refuse_jumps(jumps: int, fixes: int, name: str) -> None:
    """Refuse an input of which too many fixes are impossible."""
    if jumps > MOST_JUMPS * fixes:
        raise InvalidTraces(
            f"{name}: {jumps} of {fixes} fixes are reached and left faster than {FASTEST_KMH:.0f} km/h, more "
            f"than {MOST_JUMPS:.0%}: do several people share an id, or are the times wrong?",
            code="E_SPEED",
        )


def are_places(entries: Fixes | Slots) -> bool:
    """
    Tell whether positions, which are `few_points`, are exact places that people share, not fixes that seldom repeat.

    Nine of ten entries are at points that at least five users visit (half of the users, of fewer than ten), and there
    are at least five entries for each point.
    """
    assert entries.lat is not None and entries.lon is not None  # noqa: PT018, S101 - that is what makes them points
    points, at = np.unique(as_keys(entries.lat, entries.lon), return_inverse=True)
    users = int(entries.user.max()) + 1
    visitors = np.bincount(np.unique(at * users + entries.user) // users, minlength=len(points))
    enough = visitors >= min(MANY_ENOUGH, users // 2)
    return len(at) >= ENTRIES_A_POINT * len(points) and float(np.mean(enough[at])) >= SHARED_ENTRIES


def few_points(entries: Fixes | Slots, most: int) -> bool:
    """Tell whether there are at most `most` different points: then somebody has made places of them already."""
    if entries.lat is None or entries.lon is None or entries.place is not None:
        return False
    seen: NDArray[np.complex128] = np.empty(0, dtype=np.complex128)
    for at in range(0, len(entries), POINTS):
        some = slice(at, at + POINTS)
        seen = np.unique(np.append(seen, np.unique(as_keys(entries.lat[some], entries.lon[some]))))
        if len(seen) > most:
            return False
    return True
