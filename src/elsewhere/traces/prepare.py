"""
From fixes to traces: local days cut into slots, one place per slot, gaps held, thin days left out.

What comes in and what is counted on the way is in `fixes`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter, InvalidTraces, require_choice
from elsewhere.traces.clock import Times
from elsewhere.traces.finish import finish
from elsewhere.traces.fixes import Fixes, Preparation, Slots, Words
from elsewhere.traces.gaps import (
    GAPS,
    LEAST_JUMP_KM,
    SECONDS_PER_DAY,
    Empty,
    between,
    empty_slots,
    held,
    nearer,
    on_the_way,
    without_jumps,
)
from elsewhere.traces.locate import PLACES, locate
from elsewhere.traces.model import Floats, Ints, Traces
from elsewhere.traces.regions import read_regions

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
    gaps: str = "hold",
    max_gap: str | float | timedelta = "1h",
    min_coverage: float = 0.5,
    places: str = "merge",
    regions: Any = None,
    grid_metres: float = 100.0,
    evidence: bool = False,
    max_bad: float = 0.01,
    so_far: Preparation | None = None,
) -> tuple[Traces, Preparation]:
    """
    Fixes as traces: one row per user and local day, one place per slot of `step`.

    A slot's place is that of most of its fixes, of equals the earliest seen (B35); in the hour that a day of 25 hours
    has twice, the first passing counts (B33). What is missing after the policy `gaps` is -1.

    Parameters
    ----------
    fixes
        From any reader.
    step
        Length of a slot; it must divide the day.
    cells
        Most places to keep; None keeps all.
    gaps
        What happens to slots without a fix. "hold": they keep the place of the last fix, if it is at most `max_gap` old
        when the slot begins. "interpolate": between two fixes at most `max_gap` apart they get the place on the
        straight way. "split": as "hold", and a day is cut in pieces at every longer gap. "drop": as "hold", and a user
        is dropped with all days unless `min_coverage` of the slots of these are known.
    max_gap
        See `gaps`; 0 fills nothing.
    min_coverage
        Days with a smaller share of known slots are dropped, and counted; with `gaps="drop"`, users.
    places
        Where the fixes do not name their places: "merge", the paper's merging of grid cells until `cells` are left
        (E74); "grid", cells alone, made coarser until at most `cells` are visited; "stays", the cells in which somebody
        stays for 20 minutes or more, merged in the same way.
    regions
        Polygons of a GeoJSON file, or read by `read_regions`, to be the places; fixes outside all of them are known to
        be elsewhere: their slots are missing, not held.
    grid_metres
        Width of a grid cell; doubled until at most 20,000 cells are visited.
    evidence
        Whether fixes with an accuracy radius give weights over the places within it, for `missing="gibbs"` (E4).
    max_bad
        Share of fixes that may contradict another one of the same user and instant, or jump.
    so_far
        What the reader has counted already.

    """
    width = seconds_of("step", step)
    if width == 0 or SECONDS_PER_DAY % width:
        raise InvalidParameter(f"`step` must divide the day into equal slots, got {step!r}.")
    longest = seconds_of("max_gap", max_gap)
    require_choice("gaps", gaps, tuple(GAPS))
    require_choice("places", places, PLACES)
    if evidence and gaps == "split":
        raise InvalidParameter('`evidence` belongs to whole days; use another policy than `gaps="split"`.')
    drawn = None if regions is None else read_regions(regions)
    so_far = so_far or Preparation(rows=len(fixes))
    notes: list[str] = []
    short = 0
    if fixes.until is not None:
        fixes, short = stretched(fixes, width, so_far.name)
    fixes, fixed = _in_order(fixes, max_bad, so_far.name)
    fixed["visits too short for a slot of their own"] = short
    fixes, jumps, fast = without_jumps(
        fixes, _instant(fixes).astype("datetime64[s]").astype(np.int64), max_bad, so_far.name
    )
    if fast:
        notes.append(f"{fast} steps of more than {LEAST_JUMP_KM:.0f} km are faster than any airliner; they are kept")

    second = fixes.wall.astype("datetime64[s]").astype(np.int64)
    day, slot = second // SECONDS_PER_DAY, second % SECONDS_PER_DAY // width
    _, first, row = _grouped(fixes.user, day)
    rows = np.column_stack([fixes.user[first], day[first]])
    L = SECONDS_PER_DAY // width
    instant = row * L + slot
    if fixes.utc is not None:
        again = _second_passing(instant, fixes.wall - fixes.utc)
        fixed = fixed | {"second passing of the doubled hour": int(again.sum())}
        if again.any():
            fixes = fixes.select(~again)
            row, slot, second, instant = (a[~again] for a in (row, slot, second, instant))

    r = _unknown(len(rows), L, so_far.name)
    r[instant] = 0
    empty = empty_slots(r.reshape(-1, L), rows, fixes.user, second, width)
    filled, source, way = _fillers(empty, gaps, fixes, second, width, longest)
    located = locate(fixes, second, way, places, drawn, grid_metres, cells, so_far.name)
    taken, winner = _majority(instant, located.place)
    r[taken] = winner
    r = r.reshape(-1, L)
    observed = r >= 0
    observed[empty.row, empty.slot] = False
    r[empty.row, empty.slot] = -1
    r[filled.row, filled.slot] = located.place[source] if way is None else located.on_the_way
    if located.outside:
        # known to be elsewhere, which no place can say
        elsewhere = r == len(located.locations)
        r[elsewhere], observed[elsewhere] = -1, False
    uncertain = None
    if evidence and fixes.accuracy is not None and fixes.lat is not None and fixes.lon is not None:
        uncertain = (row, slot, fixes.lat, fixes.lon, fixes.accuracy)
    return finish(
        r,
        observed,
        located.locations,
        user=rows[:, 0],
        labels=fixes.labels,
        dates=rows[:, 1].astype("datetime64[D]"),
        step_minutes=width / 60,
        start="00:00",
        tz=fixes.tz,
        cells=cells if located.mergeable else None,
        gaps=gaps,
        min_coverage=min_coverage,
        all_places=(fixes.locations is not None and cells is None) or drawn is not None,
        uncertain=uncertain,
        words=_words(fixes, located.place),
        so_far=replace(
            so_far,
            dropped=_some({**so_far.dropped, "E_SPEED": jumps, "outside all regions": located.outside}),
            fixed=_some({**so_far.fixed, **fixed}),
            grid_metres=located.grid,
            places_by=located.by,
            max_gap_minutes=longest / 60,
            notes=(*so_far.notes, *notes),
        ),
    )


def stretched(visits: Fixes, width: int, name: str) -> tuple[Fixes, int]:
    """
    Visits as one fix per slot they last in, at their last moment there, and how many visits have none.

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


def prepare_slots(
    slots: Slots,
    *,
    step: str | float | timedelta = "20min",
    cells: int | None = 400,
    gaps: str = "hold",
    min_coverage: float = 0.5,
    places: str = "merge",
    regions: Any = None,
    grid_metres: float = 100.0,
    aligned: bool = False,
    max_bad: float = 0.01,
    so_far: Preparation | None = None,
) -> tuple[Traces, Preparation]:
    """
    Slots as traces: one row per user and day (or other row of the input), on the grid of all slots that occur.

    Places that are numbered already are kept as they are, all of them; positions become grid cells, merged until
    `cells` are left (E74), or `regions`. Slots that a row lacks are -1; nothing is held. Rows whose slots do not even
    overlap are refused (B44), unless they are known to be `aligned`.
    """
    width = seconds_of("step", step)
    so_far = so_far or Preparation(rows=len(slots))
    if width == 0 or width > SECONDS_PER_DAY:
        raise InvalidParameter(f"`step` must be above 0 and at most a day, got {step!r}.")
    require_choice("gaps", gaps, tuple(GAPS))
    require_choice("places", places, PLACES)
    drawn = None if regions is None else read_regions(regions)
    located = locate(slots, None, None, places, drawn, grid_metres, cells, so_far.name)
    place = located.place
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
    r[r == len(located.locations)] = -1
    known = (r >= 0).reshape(-1, L)
    if not aligned:
        _refuse_disjoint(known, min_coverage, so_far.name)
    return finish(
        r.reshape(-1, L),
        known,
        located.locations,
        user=slots.user[first],
        labels=slots.labels,
        dates=None if slots.date is None else slots.date[first],
        step_minutes=width / 60,
        start=slots.start,
        tz=slots.tz,
        cells=cells if located.mergeable and slots.place is None else None,
        gaps=gaps,
        min_coverage=min_coverage,
        all_places=slots.place is not None or drawn is not None,
        uncertain=None,
        words=_words(slots, place),
        so_far=replace(
            so_far,
            fixed=_some({**so_far.fixed, **fixed}),
            grid_metres=located.grid,
            places_by=located.by,
        ),
    )


def _words(found: Fixes | Slots, place: Ints) -> Words | None:
    return None if found.word is None else Words(found.user, place, found.word, found.words)


def _fillers(
    empty: Empty, gaps: str, fixes: Fixes, second: Ints, width: int, longest: int
) -> tuple[Empty, Ints, tuple[Floats, Floats] | None]:
    """The empty slots to be filled, and by what: the number of a fix, or a point on the way between two."""
    if gaps != "interpolate":
        empty = Empty(*(side[held(empty, second, longest)] for side in empty))
        return empty, empty.before, None
    empty = Empty(*(side[between(empty, second, longest)] for side in empty))
    if fixes.lat is not None and fixes.lon is not None:
        return empty, empty.before, on_the_way(empty, second, fixes.lat, fixes.lon, width)
    return empty, nearer(empty, second, width), None


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


def _refuse_disjoint(known: NDArray[np.bool_], min_coverage: float, name: str) -> None:
    covered = known[known.mean(axis=1) >= min_coverage]
    rows = covered if len(covered) else known[known.any(axis=1)]
    if len(rows) and rows.argmax(axis=1).max() > (rows.shape[1] - 1 - rows[:, ::-1].argmax(axis=1)).min():
        raise InvalidTraces(f"{name}: the rows have no slot in common.", code="E_ALIGN")
