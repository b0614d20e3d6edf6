"""
From fixes to traces: local days cut into slots, one place per slot, gaps held, thin days left out.

What comes in and what is counted on the way is in `fixes`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter, InvalidTraces, require_between, require_whole
from elsewhere.traces.clock import Times
from elsewhere.traces.fixes import Fixes, Preparation, Slots
from elsewhere.traces.model import Ints, Locations, Traces
from elsewhere.traces.places import make_grid, reduce_places

SECONDS_PER_DAY = 86_400
MOST_SLOTS = 1 << 27  # of all rows together: 1.8 million days of 72, at 8 bytes and a little each
UNITS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}


def seconds_of(name: str, length: str | float | timedelta) -> int:
    """
    A length of time in whole seconds: "20min", "1h", "90s", a number of minutes, or a `timedelta`.

    Examples
    --------
    >>> seconds_of("step", "20min"), seconds_of("step", 20)
    (1200, 1200)

    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", length) if isinstance(length, str) else None
    seconds = float("nan")
    if isinstance(length, timedelta):
        seconds = length.total_seconds()
    elif found:
        seconds = float(found[1]) * UNITS.get(found[2], UNITS.get(found[2].removesuffix("s"), float("nan")))
    elif isinstance(length, (int, float)) and not isinstance(length, bool):
        seconds = 60.0 * length
    if not (np.isfinite(seconds) and 0 <= seconds <= 366 * SECONDS_PER_DAY and seconds == int(seconds)):
        raise InvalidParameter(f'`{name}` must be a length of time such as "20min", in whole seconds, got {length!r}.')
    return int(seconds)


def prepare_fixes(
    fixes: Fixes,
    *,
    step: str | float | timedelta = "20min",
    cells: int | None = 400,
    max_gap: str | float | timedelta = "1h",
    min_coverage: float = 0.5,
    grid_metres: float = 100.0,
    max_bad: float = 0.01,
    so_far: Preparation | None = None,
) -> tuple[Traces, Preparation]:
    """
    Fixes as traces: one row per user and local day, one place per slot of `step`.

    Places are grid cells, merged until `cells` are left (E74), unless the fixes name their places. A slot's place is
    that of most of its fixes, of equals the earliest seen (B35); in the hour that a day of 25 hours has twice, the
    first passing counts (B33). A slot without fixes keeps the place of the last fix up to `max_gap` before it began;
    what is still missing is -1.

    Parameters
    ----------
    fixes
        From any reader.
    step
        Length of a slot; it must divide the day.
    cells
        Most places to keep; None keeps all.
    max_gap
        How long the last place is held.
    min_coverage
        Days with a smaller share of known slots are dropped, and counted.
    grid_metres
        Width of a grid cell; doubled until at most 20,000 cells are visited.
    max_bad
        Share of fixes that may contradict another one of the same user and instant.
    so_far
        What the reader has counted already.

    """
    width = seconds_of("step", step)
    if width == 0 or SECONDS_PER_DAY % width:
        raise InvalidParameter(f"`step` must divide the day into equal slots, got {step!r}.")
    hold = seconds_of("max_gap", max_gap)
    so_far = so_far or Preparation(rows=len(fixes))
    fixes, fixed = _in_order(fixes, max_bad, so_far.name)
    if fixes.place is None:
        if fixes.lat is None or fixes.lon is None:
            raise InvalidParameter("`fixes` must have `lat` and `lon`, or `place` and `locations`.")
        locations, place, grid = make_grid(fixes.lat, fixes.lon, grid_metres)
    else:
        locations, place, grid = _named(fixes), fixes.place, None

    second = fixes.wall.astype("datetime64[s]").astype(np.int64)
    day, slot = second // SECONDS_PER_DAY, second % SECONDS_PER_DAY // width
    _, first, row = _grouped(fixes.user, day)
    rows = np.column_stack([fixes.user[first], day[first]])
    L = SECONDS_PER_DAY // width
    instant = row * L + slot
    if fixes.utc is not None:
        again = _second_passing(instant, fixes.wall - fixes.utc)
        fixed = fixed | {"second passing of the doubled hour": int(again.sum())}
        row, slot, place, second, instant = (a[~again] for a in (row, slot, place, second, instant))

    r = _unknown(len(rows), L, so_far.name)
    taken, winner = _majority(instant, place)
    r[taken] = winner
    observed = (r >= 0).reshape(-1, L)
    r = _hold(r.reshape(-1, L), rows, rows[row, 0], second, place, width, hold)
    return _finish(
        r,
        observed,
        locations,
        users=[fixes.labels[u] for u in rows[:, 0]],
        dates=rows[:, 1].astype("datetime64[D]"),
        step_minutes=width / 60,
        start="00:00",
        tz=fixes.tz,
        cells=cells,
        min_coverage=min_coverage,
        all_places=fixes.locations is not None and cells is None,
        so_far=replace(so_far, fixed=_some({**so_far.fixed, **fixed}), grid_metres=grid),
    )


def prepare_slots(
    slots: Slots,
    *,
    step: str | float | timedelta = "20min",
    cells: int | None = 400,
    min_coverage: float = 0.5,
    grid_metres: float = 100.0,
    max_bad: float = 0.01,
    so_far: Preparation | None = None,
) -> tuple[Traces, Preparation]:
    """
    Slots as traces: one row per user and day (or other row of the input), on the grid of all slots that occur.

    Places that are numbered already are kept as they are, all of them; positions become grid cells, merged until
    `cells` are left (E74). Slots that a row lacks are -1; nothing is held. Rows whose slots do not even overlap are
    refused (B44).
    """
    width = seconds_of("step", step)
    so_far = so_far or Preparation(rows=len(slots))
    if width == 0 or width > SECONDS_PER_DAY:
        raise InvalidParameter(f"`step` must be above 0 and at most a day, got {step!r}.")
    if slots.place is None:
        if slots.lat is None or slots.lon is None:
            raise InvalidParameter("`slots` must have `lat` and `lon`, or `place` and `locations`.")
        locations, place, grid = make_grid(slots.lat, slots.lon, grid_metres)
    else:
        locations, place, grid = _named(slots), slots.place, None
    n_rows, first, row = _grouped(slots.user, slots.row)
    lowest, L = int(slots.slot.min()), int(np.ptp(slots.slot)) + 1
    if L * width > SECONDS_PER_DAY and slots.date is not None:
        raise InvalidTraces(f"{so_far.name}: {L} slots of {step} are more than a day.", code="E_INDEX")
    instant = row * L + slots.slot - lowest
    taken, kept = np.unique(instant, return_index=True)
    conflict = int((place[kept][np.searchsorted(taken, instant)] != place).sum())
    _refuse_conflicts(conflict, len(slots), max_bad, so_far.name)
    fixed = {"repeated": len(slots) - len(taken) - conflict, "contradicted": conflict}
    r = _unknown(n_rows, L, so_far.name)
    r[taken] = place[kept]
    known = (r >= 0).reshape(-1, L)
    _refuse_disjoint(known, min_coverage, so_far.name)
    return _finish(
        r.reshape(-1, L),
        known,
        locations,
        users=[slots.labels[u] for u in slots.user[first]],
        dates=None if slots.date is None else slots.date[first],
        step_minutes=width / 60,
        start=slots.start,
        tz=slots.tz,
        cells=cells if slots.place is None else None,
        min_coverage=min_coverage,
        all_places=slots.place is not None,
        so_far=replace(so_far, fixed=_some({**so_far.fixed, **fixed}), grid_metres=grid),
    )


def _grouped(major: Ints, minor: Ints) -> tuple[int, Ints, Ints]:
    """Distinct pairs in sorted order: how many, the first entry of each, and the pair of each entry."""
    low, span = int(minor.min()), int(np.ptp(minor)) + 1
    pairs, first, group = np.unique(major * span + (minor - low), return_index=True, return_inverse=True)
    return len(pairs), first, group


def _unknown(n_rows: int, L: int, name: str) -> Ints:
    if n_rows * L > MOST_SLOTS:
        raise InvalidTraces(
            f"{name}: {n_rows} rows of {L} slots need {n_rows * L * 16 / 2**30:.1f} GiB, more than the limit of "
            f"{MOST_SLOTS * 16 / 2**30:.1f}; read it in parts, or with a longer `step`.",
            code="E_TOO_LARGE",
        )
    return np.full(n_rows * L, -1, dtype=np.int64)


def _named(found: Fixes | Slots) -> Locations:
    if found.locations is None:
        raise InvalidParameter("`place` needs `locations` to point into.")
    return found.locations


def _some(counts: Mapping[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in counts.items() if count}


def _in_order(fixes: Fixes, max_bad: float, name: str) -> tuple[Fixes, dict[str, int]]:
    """Sorted by user and instant; of two fixes at one instant the first in the file stays (B26-B28)."""
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
    _refuse_conflicts(conflict, len(fixes), max_bad, name)
    return fixes.select(~repeated), {"repeated": int(repeated.sum()) - conflict, "contradicted": conflict}


def _instant(fixes: Fixes) -> Times:
    return fixes.wall if fixes.utc is None else fixes.utc


def _refuse_conflicts(conflict: int, n: int, max_bad: float, name: str) -> None:
    if conflict > max_bad * n:
        raise InvalidTraces(
            f"{name}: {conflict} of {n} rows put a user at two places at one instant (limit {max_bad:.0%}).",
            code="E_CONFLICT",
        )


def _second_passing(instant: Ints, offset: NDArray[np.timedelta64]) -> NDArray[np.bool_]:
    # the clock was put back within the slot: its offset is no longer that of the slot's first fix
    _, first, group = np.unique(instant, return_index=True, return_inverse=True)
    return np.asarray(offset != offset[first[group]])


def _majority(instant: Ints, place: Ints) -> tuple[Ints, Ints]:
    """The slots that have fixes, and in each the place of most of them; of equals the one seen first."""
    R = int(place.max()) + 1
    pairs, first, count = np.unique(instant * R + place, return_index=True, return_counts=True)
    order = np.lexsort((first, -count, pairs // R))
    taken, best = np.unique(pairs[order] // R, return_index=True)
    return taken, pairs[order][best] % R


def _hold(r: Ints, rows: Ints, user: Ints, second: Ints, place: Ints, width: int, hold: int) -> Ints:
    """Slots without fixes filled by the place of the user's last fix, if it is not older than `hold` at their start."""
    empty, slot = np.nonzero(r < 0)
    if hold == 0 or len(empty) == 0:
        return r
    base = int(second.min()) - SECONDS_PER_DAY
    span = int(second.max()) - base + 2 * SECONDS_PER_DAY
    start = rows[empty, 1] * SECONDS_PER_DAY + slot * width
    # one sorted key for user and time; after a doubled hour the wall clock is no longer in order
    order = np.lexsort((second, user))
    key = user[order] * span + (second[order] - base)
    last = np.searchsorted(key, rows[empty, 0] * span + (start - base), side="left") - 1
    last_fix = order[np.maximum(last, 0)]
    held = (last >= 0) & (user[last_fix] == rows[empty, 0]) & (start - second[last_fix] <= hold)
    r[empty[held], slot[held]] = place[last_fix[held]]
    return r


def _refuse_disjoint(known: NDArray[np.bool_], min_coverage: float, name: str) -> None:
    covered = known[known.mean(axis=1) >= min_coverage]
    rows = covered if len(covered) else known[known.any(axis=1)]
    if len(rows) and rows.argmax(axis=1).max() > (rows.shape[1] - 1 - rows[:, ::-1].argmax(axis=1)).min():
        raise InvalidTraces(f"{name}: the rows have no slot in common.", code="E_ALIGN")


def _finish(
    r: Ints,
    observed: NDArray[np.bool_],
    locations: Locations,
    *,
    users: list[str],
    dates: Times | None,
    step_minutes: float,
    start: str,
    tz: str,
    cells: int | None,
    min_coverage: float,
    all_places: bool,
    so_far: Preparation,
) -> tuple[Traces, Preparation]:
    """Thin days dropped, unvisited places left out unless they were given, places merged, everything counted."""
    require_between("min_coverage", min_coverage, 0, 1)
    known = r >= 0
    enough = known.any(axis=1) & (known.mean(axis=1) >= min_coverage)
    if not enough.any():
        raise InvalidTraces(
            f"{so_far.name or 'the input'}: none of {len(r)} days has {min_coverage:.0%} of its slots known "
            "(`min_coverage`); a longer `max_gap` or `step` would know more.",
            code="E_EMPTY",
        )
    r, observed, known = r[enough], observed[enough], known[enough]
    kept_users = [u for u, keep in zip(users, enough, strict=True) if keep]
    visits = np.bincount(r[known], minlength=len(locations))
    found = int((visits > 0).sum())
    if not all_places:
        visited = np.flatnonzero(visits)
        r = np.where(known, np.searchsorted(visited, r), -1)
        locations, visits = _subset(locations, visited), visits[visited]
    if cells is not None and require_whole("cells", cells, 1) < len(locations) and locations.has_coordinates:
        locations, becomes = reduce_places(locations, visits, cells=cells)
        r = np.where(known, becomes[r], -1)
    traces = Traces(
        r,
        locations,
        users=kept_users,
        dates=None if dates is None else dates[enough],
        step_minutes=step_minutes,
        start=start,
        tz=tz,
    )
    return traces, replace(
        so_far,
        users=traces.U,
        users_dropped=len(set(users)) - traces.U,
        days=len(r),
        days_dropped=int((~enough).sum()),
        slots_observed=int(observed.sum()),
        slots_held=int((known & ~observed).sum()),
        slots_missing=int((~known).sum()),
        places_found=found,
        places=len(locations),
        tz=tz,
    )


def _subset(locations: Locations, keep: Ints) -> Locations:
    if locations.xy is not None:
        return Locations(xy=locations.xy[keep])
    if locations.lat is not None and locations.lon is not None:
        return Locations(locations.lat[keep], locations.lon[keep])
    names = None if locations.names is None else [locations.names[i] for i in keep]
    return Locations(n=len(keep), names=names)
