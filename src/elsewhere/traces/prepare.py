"""
From fixes to traces: local days cut into slots, one place per slot, gaps held, thin days left out.

What comes in and what is counted on the way is in `fixes`.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter, InvalidTraces, require_between, require_choice, require_whole
from elsewhere.traces.clock import Times
from elsewhere.traces.finish import finish
from elsewhere.traces.fixes import Fixes, Preparation, Slots, Words
from elsewhere.traces.gaps import (
    GAPS,
    LEAST_JUMP_KM,
    RUNGS,
    SECONDS_PER_DAY,
    Empty,
    Ladder,
    climb,
    empty_runs,
    fillable,
    filled_slots,
    nearer,
    on_the_map,
    on_the_way,
    refuse_jumps,
    without_jumps,
)
from elsewhere.traces.locate import MAPS, PLACES, Area, Box, area_of, few_points, in_box, locate
from elsewhere.traces.model import Floats, Ints, Traces
from elsewhere.traces.places import MOST_GRID_CELLS, check_grid, grid_cells
from elsewhere.traces.regions import Regions, read_regions
from elsewhere.traces.sources import refuse_rows
from elsewhere.traces.stays import STAY_METRES, STAY_SECONDS, anchored

RAW = 1 << 20  # fixes up to which every one is kept
BATCH = 1 << 20  # fixes that are cleaned at a time, or those of one user
BYTES_AN_ENTRY = 200  # of what slots are made of: measured on 5 million fixes, each in a slot of its own
MOST_SLOTS = 1 << 27  # of all rows together: 1.8 million days of 72, at 8 bytes and a little each
MOST_CONFLICTS = 0.2  # of the rows of numbered slots: more are days that nothing tells apart
WORTH_SAYING = 0.05  # of the positions: so many on an anchor are spoken of
NEAR_ZERO = 5.0  # degrees from 0, 0 within which somebody must be for that point to be believed
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
    max_gap: str | float | timedelta = "auto",
    min_coverage: float = 0.5,
    map: str = "auto",  # noqa: A002 (the word users expect)
    box: Box | None = None,
    places: str = "shared",
    regions: Any = None,
    grid_metres: float = 100.0,
    evidence: bool = False,
    so_far: Preparation | None = None,
) -> tuple[Traces, Preparation]:
    """
    Fixes as traces: one row per user and local day, one place per slot of `step`.

    A slot's place is that of most of its fixes, of equals the earliest seen (B35); in the hour that a day of 25 hours
    has twice, the first passing counts (B33). What is missing after the policy `gaps` is -1.

    Parameters
    ----------
    fixes
        From any reader. Of two fixes of one user at one instant the first stays; a single fix that is reached and left
        faster than any airliner is dropped. Both are counted.
    step
        Length of a slot; it must divide the day.
    cells
        Most places to keep; None keeps all.
    gaps
        What happens to slots without a fix. "hold": they keep the place of the last fix, if it is at most `max_gap` old
        when the slot begins; before the first fix of a day they take the place of that one, if it comes within
        `max_gap`. "interpolate": between two fixes at most `max_gap` apart they get the place on the straight way.
        "split": as "hold", and a day is cut in pieces at every longer gap. "drop": as "hold", and a user is dropped
        with all days unless `min_coverage` of the slots of these are known.
    max_gap
        Longest gap that is filled; 0 fills nothing. "auto" takes the shortest of 1, 3, 6, 12 and 24 hours that keeps
        enough people: at least nine of ten of those whom 24 hours would keep, with a day that is known from end to end
        and has fixes in two slots or more.
    min_coverage
        Days with a smaller share of known slots are dropped, and counted, as are days with fixes in one slot alone;
        with `gaps="drop"`, users. 0 keeps every day.
    map, box
        "auto": the map is where people are nearly all the time, see `main_area`; "whole": everywhere anybody was. A
        `box` (south, west, north, east) is the map. Slots outside are missing, never filled over, and counted.
    places
        Where the fixes do not name their places: "shared", grid cells, of which those that fewer than eight people
        visit join their neighbours, see `share_places`; who is near a spot where the same person stays is there, see
        `anchored`, and at most `cells` different points are places already; "merge", the paper's merging of grid cells
        until `cells` are left (E74); "grid", cells alone, made coarser until at most `cells` are visited; "stays", the
        cells in which somebody stays for 20 minutes or more, joined as by "shared".
    regions
        Polygons of a GeoJSON file, or read by `read_regions`, to be the places, and the map.
    grid_metres
        Width of a grid cell; doubled until at most 20,000 cells are visited.
    evidence
        Whether fixes with an accuracy radius give weights over the places within it, for `missing="gibbs"` (E4).
    so_far
        What the reader has counted already.

    """
    width, longest = check_settings(
        step=step,
        cells=cells,
        gaps=gaps,
        max_gap=max_gap,
        min_coverage=min_coverage,
        map=map,
        places=places,
        grid_metres=grid_metres,
        evidence=evidence,
    )
    drawn = None if regions is None else read_regions(regions)
    so_far = so_far or Preparation(rows=len(fixes))
    short = 0
    if fixes.until is not None:
        fixes, short = stretched(fixes, width, so_far.name)
    if places == "shared" and cells is not None and _made_already(fixes, cells):
        places = "grid"  # they stay as they are
    raw = evidence or drawn is not None or places == "stays" or fixes.word is not None
    jitter = places == "shared" and fixes.place is None and not evidence
    fixes, fixed, jumps, fast, calm = _cleaned(fixes, width, None if raw else grid_metres, box, jitter, so_far.name)
    fixed["visits too short for a slot of their own"] = short
    area, nowhere, notes = _area(fixes, _seconds(fixes.wall) // width, map, box, drawn, so_far.name)
    notes += _on_jitter(calm)
    dropped = {"E_SPEED": jumps, "E_NULL_ISLAND": int(fixes.weight()[nowhere].sum())}
    fixes = fixes.select(~nowhere) if nowhere.any() else fixes

    second = _seconds(fixes.wall)
    day, slot = second // SECONDS_PER_DAY, second % SECONDS_PER_DAY // width
    _, first, row = _grouped(fixes.user, day)
    rows = np.column_stack([fixes.user[first], day[first]])
    L = SECONDS_PER_DAY // width
    instant = row * L + slot
    off = _off(fixes, area)
    weight = fixes.weight()
    fill = _filled(
        _unknown(len(rows), L, so_far.name).reshape(-1, L),
        instant,
        off,
        rows,
        fixes.user,
        second,
        weight,
        user=rows[:, 0],
        width=width,
        gaps=gaps,
        longest=longest,
        rungs=tuple(3600 * hours for hours in RUNGS),
        min_coverage=min_coverage,
    )
    way = None
    if gaps == "interpolate" and fixes.lat is not None and fixes.lon is not None:
        way = on_the_way(fill.slots, second, fixes.lat, fixes.lon, width)
    located = locate(fixes, off, second, way, area, places, drawn, grid_metres, cells, so_far.name)
    r = fill.r
    taken, winner = _majority(instant[~off], located.place[~off], weight[~off])
    # a slot in which most fixes are outside the map stays unknown
    r.reshape(-1)[taken] = np.where(fill.outside.reshape(-1)[taken], -1, winner)
    observed = r >= 0
    source = nearer(fill.slots, second, width) if gaps == "interpolate" else fill.source
    r[fill.slots.row, fill.slots.slot] = located.place[source] if way is None else located.on_the_way
    uncertain = None
    if evidence and fixes.accuracy is not None and fixes.lat is not None and fixes.lon is not None:
        uncertain = (row[~off], slot[~off], fixes.lat[~off], fixes.lon[~off], fixes.accuracy[~off])
    if fast:
        notes.append(f"{fast} steps of more than {LEAST_JUMP_KM:.0f} km are faster than any airliner; they are kept")
    return finish(
        r,
        observed,
        fill.outside,
        located.locations,
        user=rows[:, 0],
        labels=fixes.labels,
        dates=rows[:, 1].astype("datetime64[D]"),
        step_minutes=width / 60,
        start="00:00",
        tz=fixes.tz,
        cells=located.cells,
        gaps=gaps,
        min_coverage=min_coverage,
        all_places=(fixes.locations is not None and cells is None) or drawn is not None,
        uncertain=uncertain,
        words=_words(fixes, located.place),
        so_far=replace(
            so_far,
            dropped=_some({**so_far.dropped, **dropped, "outside the map": int(weight[off].sum())}),
            fixed=_some({**so_far.fixed, **fixed}),
            grid_metres=located.grid,
            places_by=located.by,
            cells=cells,
            max_gap_minutes=fill.longest / 60,
            max_gap_auto=longest is None,
            people_by_gap=fill.ladder.in_words(),
            map=area.by,
            map_km=area.km,
            notes=(*so_far.notes, *notes),
        ),
    )


def check_settings(
    *,
    step: str | float | timedelta,
    cells: int | None,
    gaps: str,
    max_gap: str | float | timedelta,
    min_coverage: float,
    map: str,  # noqa: A002 (the word users expect)
    places: str,
    grid_metres: float,
    evidence: bool,
) -> tuple[int, int | None]:
    """Refuse settings of `prepare_fixes` that are none, before anything is read; slot and longest gap in seconds."""
    width = seconds_of("step", step)
    if width == 0 or SECONDS_PER_DAY % width:
        raise InvalidParameter(f"`step` must divide the day into equal slots, got {step!r}.")
    longest = _longest(max_gap)
    require_choice("gaps", gaps, tuple(GAPS))
    require_choice("places", places, PLACES)
    require_choice("map", map, MAPS)
    require_between("min_coverage", min_coverage, 0, 1)
    check_grid(grid_metres)
    if cells is not None:
        require_whole("cells", cells, 1)
    if evidence and gaps == "split":
        raise InvalidParameter('`evidence` belongs to whole days; use another policy than `gaps="split"`.')
    return width, longest


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
    max_gap: str | float | timedelta = "auto",
    min_coverage: float = 0.5,
    map: str = "auto",  # noqa: A002 (the word users expect)
    box: Box | None = None,
    places: str = "shared",
    regions: Any = None,
    grid_metres: float = 100.0,
    aligned: bool = False,
    so_far: Preparation | None = None,
) -> tuple[Traces, Preparation]:
    """
    Slots as traces: one row per user and day (or other row of the input), on the grid of all slots that occur.

    Places that are numbered already are kept as they are, all of them; positions become places as those of fixes do.
    Slots that a row lacks are gaps, and filled as those of fixes are, from the row itself or, where rows are whole days
    with a date, from the day before; `max_gap="auto"` fills nothing where enough people have a day without a gap. Rows
    whose slots do not even overlap are refused (B44), unless they are known to be `aligned`.
    """
    width = seconds_of("step", step)
    so_far = so_far or Preparation(rows=len(slots))
    if width == 0 or width > SECONDS_PER_DAY:
        raise InvalidParameter(f"`step` must be above 0 and at most a day, got {step!r}.")
    longest = _longest(max_gap)
    require_choice("gaps", gaps, tuple(GAPS))
    require_choice("places", places, PLACES)
    if cells is not None:
        require_whole("cells", cells, 1)
    drawn = None if regions is None else read_regions(regions)
    named = slots.place is not None
    n_rows, first, row = _grouped(slots.user, slots.row)
    lowest, L = int(slots.slot.min()), int(np.ptp(slots.slot)) + 1
    if L * width > SECONDS_PER_DAY and slots.date is not None:
        raise InvalidTraces(f"{so_far.name}: {L} slots of {step} are more than a day.", code="E_INDEX")
    instant = row * L + slots.slot - lowest
    area, nowhere, notes = _area(slots, instant, "whole" if named else map, box, drawn, so_far.name)
    off = _off(slots, area) | nowhere
    if places == "shared" and not named:
        if cells is not None and _made_already(slots, cells):
            places = "grid"  # they stay as they are
        else:
            slots, calm = _calmed(slots, row, width)
            notes += _on_jitter(calm)
    located = locate(slots, off, None, None, area, places, drawn, grid_metres, cells, so_far.name)
    place = located.place
    taken, kept = np.unique(instant, return_index=True)
    conflict = int((place[kept][np.searchsorted(taken, instant)] != place).sum())
    if conflict > MOST_CONFLICTS * len(slots):
        raise InvalidTraces(
            f"{so_far.name}: {conflict} of {len(slots)} rows put a user at two places in one slot. If users have "
            "several days, name the column that tells them apart: `columns`, date=NAME or trace=NAME.",
            code="E_CONFLICT",
        )
    fixed = {"repeated": len(slots) - len(taken) - conflict, "contradicted": conflict}
    known, outside = place[kept] >= 0, (off & ~nowhere)[kept]
    seen = known | outside
    if not aligned:
        whole = np.zeros(n_rows * L, dtype=bool)
        whole[taken[known]] = True
        _refuse_disjoint(whole.reshape(-1, L), min_coverage, so_far.name)
    of_row, date = taken // L, None if slots.date is None else slots.date[first]
    user = slots.user[first]
    rows = _days_in_a_row(user, date, L * width)
    fill = _filled(
        _unknown(n_rows, L, so_far.name).reshape(-1, L),
        taken[seen],
        outside[seen],
        rows,
        rows[of_row[seen], 0],
        rows[of_row[seen], 1] * SECONDS_PER_DAY + taken[seen] % L * width + width // 2,
        np.ones(int(seen.sum()), dtype=np.int64),
        user=user,
        width=width,
        gaps=gaps,
        longest=longest,
        rungs=tuple(3600 * hours for hours in (0, *RUNGS)),
        min_coverage=min_coverage,
    )
    r = fill.r
    r.reshape(-1)[taken[known]] = place[kept][known]
    observed = r >= 0
    source = nearer(fill.slots, fill.second, width) if gaps == "interpolate" else fill.source
    r[fill.slots.row, fill.slots.slot] = place[kept][seen][source]
    return finish(
        r,
        observed,
        fill.outside,
        located.locations,
        user=user,
        labels=slots.labels,
        dates=date,
        step_minutes=width / 60,
        start=slots.start,
        tz=slots.tz,
        cells=None if named else located.cells,
        gaps=gaps,
        min_coverage=min_coverage,
        all_places=named or drawn is not None,
        uncertain=None,
        words=_words(slots, place),
        so_far=replace(
            so_far,
            dropped=_some(
                {
                    **so_far.dropped,
                    "E_NULL_ISLAND": int(nowhere.sum()),
                    "outside the map": int((off & ~nowhere).sum()),
                }
            ),
            fixed=_some({**so_far.fixed, **fixed}),
            grid_metres=located.grid,
            places_by=located.by,
            cells=cells,
            max_gap_minutes=fill.longest / 60,
            max_gap_auto=longest is None,
            people_by_gap=fill.ladder.in_words(),
            map=area.by,
            map_km=area.km,
            notes=(*so_far.notes, *notes),
        ),
    )


class Filling(NamedTuple):
    """
    Slots that are filled, and how that was decided.

    `r` (N, L) is -1 everywhere, `outside` (N, L) marks the slots outside the map; fix `source[i]` fills slot i of
    `slots`. `second` is when each fix is, `ladder` who would be kept by which gap, `longest` the gap in seconds.
    """

    r: Ints
    outside: NDArray[np.bool_]
    slots: Empty
    source: Ints
    second: Ints
    ladder: Ladder
    longest: int


def _filled(
    r: Ints,
    instant: Ints,
    off: NDArray[np.bool_],
    rows: Ints,
    owner: Ints,
    second: Ints,
    weight: Ints,
    *,
    user: Ints,
    width: int,
    gaps: str,
    longest: int | None,
    rungs: tuple[int, ...],
    min_coverage: float,
) -> Filling:
    """
    Decide which empty slots of `r` (N, L) are filled, by which fix, and, without `longest`, up to which gap.

    Entry i is in slot `instant[i]` of all, at `second[i]`, stands for `weight[i]` fixes, and belongs to the rows of
    `owner[i]`; row j is day `rows[j, 1]` of owner `rows[j, 0]`, a day of `user[j]`.
    """
    outside = np.zeros(r.shape, dtype=bool)
    taken = np.zeros(r.shape, dtype=bool)
    taken.reshape(-1)[instant] = True
    if off.any():
        where, most = _majority(instant, off.astype(np.int64), weight)
        outside.reshape(-1)[where] = most == 1
    runs = empty_runs(taken, rows, owner, second, width)
    ladder = climb(
        runs,
        second,
        width,
        gaps,
        rungs,
        user=user,
        observed=taken & ~outside,
        off=off,
        min_coverage=min_coverage,
    )
    longest = ladder.shortest() if longest is None else longest
    forward, backward = on_the_map(runs, *fillable(runs, second, width, longest, gaps), off, gaps)
    slots, by_before = filled_slots(runs, forward, backward, width)
    return Filling(r, outside, slots, np.where(by_before, slots.before, slots.after), second, ladder, longest)


def _longest(max_gap: str | float | timedelta) -> int | None:
    """The longest gap to be filled, in seconds; None where the people decide it."""
    return None if isinstance(max_gap, str) and max_gap == "auto" else seconds_of("max_gap", max_gap)


def _area(
    found: Fixes | Slots, slot: Ints, where: str, box: Box | None, drawn: Regions | None, name: str
) -> tuple[Area, NDArray[np.bool_], list[str]]:
    """The map, the rows at 0, 0 that have no position (B20), and a word on them where they are kept."""
    position = _position(found)
    if position is None:
        return area_of(where, box, drawn, found.user, slot, None, name), np.zeros(len(found), dtype=bool), []
    lat, lon = position
    real = np.isfinite(lat) & np.isfinite(lon)
    zero = (lat == 0) & (lon == 0)
    told = real & ~zero if np.any(real & ~zero) else real
    area = area_of(where, box, drawn, found.user[told], slot[told], (lat[told], lon[told]), name)
    if not zero.any():
        return area, zero, []
    here = bool(area.holds(np.zeros(1), np.zeros(1))[0])
    if here and where == "auto" and area.by == "whole":
        # nobody else is anywhere near
        here = bool(np.any((np.abs(lat[told]) < NEAR_ZERO) & (np.abs(lon[told]) < NEAR_ZERO)))
    kept = f"{int(zero.sum())} rows lie at 0, 0, mostly a sign of no position; a `box` drops them"
    return area, zero & (not here), [kept] if here else []


def _position(found: Fixes | Slots) -> tuple[Floats, Floats] | None:
    """Where each entry is, NaN where it is nowhere; None where places have no coordinates."""
    if found.lat is not None and found.lon is not None:
        return found.lat, found.lon
    known = found.locations
    if found.place is None or known is None or known.lat is None or known.lon is None:
        return None
    somewhere = found.place >= 0
    return np.where(somewhere, known.lat[found.place], np.nan), np.where(somewhere, known.lon[found.place], np.nan)


def _off(found: Fixes | Slots, area: Area) -> NDArray[np.bool_]:
    """Which entries are outside the map."""
    position = None if area.by == "whole" else _position(found)
    if position is None:
        return np.zeros(len(found), dtype=bool)
    real = np.isfinite(position[0]) & np.isfinite(position[1])
    off = np.zeros(len(found), dtype=bool)
    off[real] = ~area.holds(position[0][real], position[1][real])
    return off


def _days_in_a_row(user: Ints, date: Times | None, length: int) -> Ints:
    """(owner, day) of each row: dated whole days of a user follow each other, any other row is alone."""
    alone = np.column_stack([np.arange(len(user)), np.zeros(len(user), dtype=np.int64)])
    if date is None or length != SECONDS_PER_DAY:
        return alone
    rows = np.column_stack([user, date.astype("datetime64[D]").astype(np.int64)])
    return rows if len(np.unique(rows, axis=0)) == len(rows) else alone


def _words(found: Fixes | Slots, place: Ints) -> Words | None:
    return None if found.word is None else Words(found.user, place, found.word, found.words)


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


def _made_already(found: Fixes | Slots, most: int) -> bool:
    """Whether positions are at most `most` different points: somebody has made places of them already."""
    return (
        found.lat is not None
        and found.lon is not None
        and found.place is None
        and few_points(found.lat, found.lon, most)
    )


def _on_jitter(calm: float) -> list[str]:
    """A word where a share of positions worth speaking of was put on the anchors of their people."""
    what = (
        f"positions jitter: {calm:.0%} of them lie within {STAY_METRES:.0f} m of a spot where the same person stays "
        f"for {STAY_SECONDS // 60} minutes or more, and count as there"
    )
    return [what] if calm >= WORTH_SAYING else []


def _calmed(slots: Slots, row: Ints, width: int) -> tuple[Slots, float]:
    """The same slots with positions near an anchor of their person put there, and the share of these."""
    if slots.lat is None or slots.lon is None:
        return slots, 0.0
    order = np.lexsort((slots.slot, row))  # rows are numbered by user
    second = row * SECONDS_PER_DAY + slots.slot * width
    lat, lon = slots.lat.copy(), slots.lon.copy()
    lat[order], lon[order], there = anchored(slots.user[order], second[order], lat[order], lon[order])
    return replace(slots, lat=lat, lon=lon), float(there.mean())


def _cleaned(
    fixes: Fixes, width: int, metres: float | None, box: Box | None, jitter: bool, name: str
) -> tuple[Fixes, dict[str, int], int, int, float]:
    """
    Fixes in the order of users and time, without doubles and impossible ones, and how many of each there were.

    Where they may `jitter`, those near a spot where their person stays are put there, see `anchored`; the share of
    these comes last.

    Some users at a time, so that little more than the fixes themselves ever stands in memory. Of many fixes those of
    one slot within one cell of `metres` become one entry, see `_reduced`; None keeps every fix.
    """
    n = np.bincount(fixes.user, minlength=len(fixes.labels))
    many = metres is not None and len(fixes) > RAW
    if many and _made_already(fixes, MOST_GRID_CELLS):
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
        stay, remain = without_jumps(part, _seconds(_instant(part)))
        rows, jumps, fast = rows + len(part), jumps + int((~stay).sum()), fast + remain
        part = part if stay.all() else part.select(stay)
        if part.utc is not None:
            slot = _grouped(part.user, _seconds(part.wall) // width)[2]
            again = _second_passing(slot, part.wall - part.utc)
            fixed["second passing of the doubled hour"] += int(again.sum())
            part = part.select(~again) if again.any() else part
        if jitter and part.lat is not None and part.lon is not None:
            lat, lon, there = anchored(part.user, _seconds(_instant(part)), part.lat, part.lon)
            part, calm = replace(part, lat=lat, lon=lon), calm + int(there.sum())
        cleaned.append(_reduced(part, width, metres, box) if many and metres is not None else part)
        refuse_rows(sum(map(len, cleaned)), name, BYTES_AN_ENTRY)
    refuse_jumps(jumps, rows, name)
    columns: dict[str, Any] = {
        column: np.concatenate([each.columns()[column] for each in cleaned]) for column in cleaned[0].columns()
    }
    return replace(cleaned[0], **columns), dict(fixed), jumps, fast, calm / max(1, rows)


def _reduced(fixes: Fixes, width: int, metres: float, box: Box | None) -> Fixes:
    """
    One entry for all fixes of a user in one slot and one cell (or place, or point if `metres` is 0), with their number.

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
    second = _seconds(fixes.wall)
    _, _, slot = _grouped(fixes.user, second // width)
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
    return fixes.select(~repeated), {"repeated": int(repeated.sum()) - conflict, "contradicted": conflict}


def _instant(fixes: Fixes) -> Times:
    return fixes.wall if fixes.utc is None else fixes.utc


def _seconds(times: Times) -> Ints:
    return np.asarray(times.astype("datetime64[s]").astype(np.int64))


def _second_passing(instant: Ints, offset: NDArray[np.timedelta64]) -> NDArray[np.bool_]:
    # the clock was put back within the slot: its offset is no longer that of the slot's first fix
    _, first, group = np.unique(instant, return_index=True, return_inverse=True)
    return np.asarray(offset != offset[first[group]])


def _majority(instant: Ints, place: Ints, weight: Ints) -> tuple[Ints, Ints]:
    """The slots that have fixes, and in each the place of most of them; of equals the one seen first."""
    R = int(place.max(initial=0)) + 1
    pairs, first, group = np.unique(instant * R + place, return_index=True, return_inverse=True)
    count = np.bincount(group, weight, len(pairs))
    order = np.lexsort((first, -count, pairs // R))
    taken, best = np.unique(pairs[order] // R, return_index=True)
    return taken, pairs[order][best] % R


def _refuse_disjoint(known: NDArray[np.bool_], min_coverage: float, name: str) -> None:
    covered = known[known.mean(axis=1) >= min_coverage]
    rows = covered if len(covered) else known[known.any(axis=1)]
    if len(rows) and rows.argmax(axis=1).max() > (rows.shape[1] - 1 - rows[:, ::-1].argmax(axis=1)).min():
        raise InvalidTraces(f"{name}: the rows have no slot in common.", code="E_ALIGN")
