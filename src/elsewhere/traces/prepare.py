"""
Turn fixes and slots into traces: local days cut into slots, one place per slot, gaps filled, thin days left out.

Unvisited places are left out, the rest merged, and everything is counted in a `Preparation`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import NamedTuple

import numpy as np

from elsewhere.errors import InvalidParameter, InvalidTraces, require_between, require_choice, require_whole
from elsewhere.traces.clock import Times
from elsewhere.traces.fixes import (
    ENOUGH,
    GAPS,
    LEAST_JUMP_KM,
    RUNGS,
    SECONDS_PER_DAY,
    Coverage,
    Filling,
    Fixes,
    Preparation,
    Slots,
    are_places,
    clean_fixes,
    cut_at_gaps,
    fill_gaps,
    group_pairs,
    has_few_points,
    interpolate,
    length_text,
    most_common,
    seconds_since_1970,
    split_visits,
)
from elsewhere.traces.maps import MAPS, Area, Box, Regions, check_box, find_main_area, in_box
from elsewhere.traces.model import Floats, Ints, Locations, Mask, Traces
from elsewhere.traces.places import (
    MANY_ENOUGH,
    MOST_GRID_CELLS,
    STAY_METRES,
    STAY_SECONDS,
    Words,
    evidence_of,
    join_into_areas,
    majority_categories,
    make_grid,
    place_visitors,
    point_keys,
    reduce_places,
    share_places,
    snap_to_anchors,
    stay_places,
)

PLACES = ("shared", "merge", "grid", "stays")
MOST_CONFLICTS = 0.2  # of the rows of numbered slots: more are days that nothing tells apart
WORTH_SAYING = 0.05  # of the positions: so many on an anchor are spoken of
NEAR_ZERO = 5.0  # degrees from 0, 0 within which somebody must be for that point to be believed
UNITS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
MANY = 0.1  # of the days: so many are dropped with a word on how to keep them
JITTER = (
    f"positions jitter: {{:.0%}} of them lie within {STAY_METRES:.0f} m of a spot where the same person stays for "
    f"{STAY_SECONDS // 60} minutes or more, and count as there"
)
MUCH = 0.25  # of the slots: so many filled ones are spoken of


def seconds_of(name: str, length: str | float | timedelta) -> int:
    """
    Return a length of time in whole seconds: "20min", "1h", "90s", a number of minutes, or a `timedelta`.

    Examples
    --------
    >>> seconds_of("step", "20min"), seconds_of("step", 20)
    (1200, 1200)

    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", length) if isinstance(length, str) else None
    seconds = float("nan")
    if isinstance(length, timedelta):
        seconds = length.total_seconds()
    elif match:
        seconds = float(match[1]) * UNITS.get(match[2], UNITS.get(match[2].removesuffix("s"), float("nan")))
    elif isinstance(length, (int, float)) and not isinstance(length, bool):
        seconds = 60.0 * length
    if not (np.isfinite(seconds) and 0 <= seconds <= 366 * SECONDS_PER_DAY and seconds == int(seconds)):
        raise InvalidParameter(f'`{name}` must be a length of time such as "20min", in whole seconds, got {length!r}.')
    return int(seconds)


@dataclass(frozen=True, eq=False)
class Settings:
    """
    How fixes and slots become traces, checked once.

    Parameters
    ----------
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
        "auto": the map is where people are nearly all the time, see `find_main_area`; "whole": everywhere anybody was.
        A `box` (south, west, north, east) is the map. Slots outside are missing, never filled over, and counted.
    places
        Where the fixes do not name their places: "shared", grid cells, of which those that fewer than eight people
        visit join their neighbours, see `share_places`; who is near a spot where the same person stays is there, see
        `snap_to_anchors`, and at most `cells` different points are places already: their cells, or, where people share
        them (`are_places`), these very points; "merge", the paper's merging of grid cells until `cells` are left
        (E74); "grid", cells alone, made coarser until at most `cells` are visited; "stays", the
        cells in which somebody stays for 20 minutes or more, joined as by "shared".
    regions
        Polygons of a GeoJSON file, or read by `read_regions`, to be the places, and the map.
    grid_metres
        Width of a grid cell; doubled until at most 20,000 cells are visited.
    evidence
        Whether fixes with an accuracy radius give weights over the places within it, for `missing="gibbs"` (E4).

    """

    step: str | float | timedelta = "20min"
    cells: int | None = 400
    gaps: str = "hold"
    max_gap: str | float | timedelta = "auto"
    min_coverage: float = 0.5
    map: str = "auto"
    box: Box | None = None
    places: str = "shared"
    regions: Regions | None = None
    grid_metres: float = 100.0
    evidence: bool = False
    width: int = field(init=False)  # of a slot, in seconds; 0 where `step` is "auto"
    longest: int | None = field(init=False)  # gap to be filled, in seconds; None where the people decide it

    def __post_init__(self) -> None:
        width = 0 if self.step == "auto" else seconds_of("step", self.step)
        if self.step != "auto" and not 0 < width <= SECONDS_PER_DAY:
            raise InvalidParameter(f"`step` must be above 0 and at most a day, got {self.step!r}.")
        object.__setattr__(self, "width", width)
        longest = None if self.max_gap == "auto" else seconds_of("max_gap", self.max_gap)
        object.__setattr__(self, "longest", longest)
        require_choice("gaps", self.gaps, tuple(GAPS))
        require_choice("places", self.places, PLACES)
        require_choice("map", self.map, MAPS)
        require_between("min_coverage", self.min_coverage, 0, 1)
        require_between("grid_metres", self.grid_metres, 1, 100_000)
        if self.cells is not None:
            require_whole("cells", self.cells, 1)
        if self.evidence and self.gaps == "split":
            raise InvalidParameter('`evidence` belongs to whole days; use another policy than `gaps="split"`.')

    def choose_places(self, entries: Fixes | Slots) -> str:
        """Return how places are made: as `places` says; of few points as "points", if people share them, or "grid"."""
        if self.places != "shared" or self.cells is None or not has_few_points(entries, self.cells):
            return self.places
        return "points" if are_places(entries) else "grid"


class Located(NamedTuple):
    """
    The places, that of each fix and of each point on the way, -1 where a point is outside the map.

    `grid` is the width of grid cells in metres, `by` the method, and `cells` how many places may be left, None where
    all are to stay.
    """

    locations: Locations
    place: Ints
    on_the_way: Ints
    grid: float | None
    by: str
    cells: int | None = None


def prepare_fixes(fixes: Fixes, settings: Settings, so_far: Preparation) -> tuple[Traces, Preparation]:
    """
    Return fixes as traces: one row per user and local day, one place per slot of `step`.

    A slot's place is that of most of its fixes, of equals the earliest seen (B35); in the hour that a day of 25 hours
    has twice, the first passing counts (B33). What is missing after the policy `gaps` is -1.

    Of two fixes of one user at one instant the first stays; a single fix that is reached and left faster than any
    airliner is dropped. Both are counted; `so_far` is what the reader has counted already.
    """
    width, name = settings.width, so_far.name
    evidence = settings.evidence and fixes.accuracy is not None  # without radii, positions are read as ever
    short = 0
    if fixes.until is not None:
        fixes, short = split_visits(fixes, width, name)
    places = settings.places if fixes.place is not None else settings.choose_places(fixes)
    raw = evidence or settings.regions is not None or places == "stays" or fixes.word is not None
    jitter = places == "shared" and fixes.place is None and not evidence
    fixes, repairs, jumps, fast, calm = clean_fixes(
        fixes, width, None if raw else settings.grid_metres, settings.box, jitter, name
    )
    repairs["visits too short for a slot of their own"] = short
    since_1970 = seconds_since_1970(fixes.wall) // width
    area, off, nowhere, notes = _find_map(fixes, since_1970, settings.map, settings, name)
    if calm >= WORTH_SAYING:
        notes.append(JITTER.format(calm))
    weight = np.ones(len(fixes), dtype=np.int64) if fixes.count is None else fixes.count
    losses = {"E_SPEED": jumps, "E_NULL_ISLAND": int(weight[nowhere].sum())}
    if nowhere.any():
        fixes, off, weight = fixes.select(~nowhere), off[~nowhere], weight[~nowhere]

    second, L = seconds_since_1970(fixes.wall), SECONDS_PER_DAY // width
    day, of_day = second // SECONDS_PER_DAY, second % SECONDS_PER_DAY // width
    _, first, row = group_pairs(fixes.user, day)
    rows = np.column_stack([fixes.user[first], day[first]])
    slot = row * L + of_day
    fill = fill_gaps(
        (len(rows), L),
        slot,
        off,
        rows,
        fixes.user,
        second,
        weight,
        user=rows[:, 0],
        width=width,
        policy=settings.gaps,
        longest=settings.longest,
        rungs=tuple(3600 * hours for hours in RUNGS),
        min_coverage=settings.min_coverage,
        name=name,
    )
    way = None
    if settings.gaps == "interpolate" and fixes.lat is not None and fixes.lon is not None:
        way = interpolate(fill.slots, second, fixes.lat, fixes.lon, width)
    located = locate(fixes, off, second, way, area, places, settings, name)
    r = fill.r
    slots_used, winner = most_common(slot[~off], located.place[~off], weight[~off])
    # a slot in which most fixes are outside the map stays unknown
    r.reshape(-1)[slots_used] = np.where(fill.outside.reshape(-1)[slots_used], -1, winner)
    observed = r >= 0
    r[fill.slots.row, fill.slots.slot] = located.place[fill.source] if way is None else located.on_the_way
    uncertain = None
    if evidence and fixes.accuracy is not None and fixes.lat is not None and fixes.lon is not None:
        uncertain = (row[~off], of_day[~off], fixes.lat[~off], fixes.lon[~off], fixes.accuracy[~off])
    if fast:
        notes.append(f"{fast} steps of more than {LEAST_JUMP_KM:.0f} km are faster than any airliner; they are kept")
    losses["outside the map"] = int(weight[off].sum())
    return _make_traces(
        fill,
        observed,
        located,
        fixes,
        user=rows[:, 0],
        dates=rows[:, 1].astype("datetime64[D]"),
        start="00:00",
        width=width,
        all_places=(fixes.locations is not None and settings.cells is None) or settings.regions is not None,
        uncertain=uncertain,
        settings=settings,
        so_far=_add_counts(so_far, settings, losses, repairs, located, fill, area, notes),
    )


def prepare_slots(
    slots: Slots, settings: Settings, so_far: Preparation, *, aligned: bool = False
) -> tuple[Traces, Preparation]:
    """
    Return slots as traces: one row per user and day (or other row of the input), on the grid of all slots that occur.

    Places that are numbered already are kept as they are, all of them; positions become places as those of fixes do.
    Slots that a row lacks are gaps, and filled as those of fixes are, from the row itself or, where rows are whole days
    with a date, from the day before; `max_gap="auto"` fills nothing where enough people have a day without a gap. Rows
    whose slots do not even overlap are refused (B44), unless they are known to be `aligned`.
    """
    width, name, named = slots.width, so_far.name, slots.place is not None
    n_rows, first, row = group_pairs(slots.user, slots.row)
    lowest, L = int(slots.slot.min()), int(np.ptp(slots.slot)) + 1
    if L * width > SECONDS_PER_DAY and slots.date is not None:
        raise InvalidTraces(
            f"{name}: {L} slots of {length_text(width / 60)} are more than a day (`step`).", code="E_INDEX"
        )
    slot = row * L + slots.slot - lowest
    area, off, nowhere, notes = _find_map(slots, slot, "whole" if named else settings.map, settings, name)
    places = settings.places if named else settings.choose_places(slots)
    if places == "shared" and not named:
        slots, calm = _snap_slots(slots, row, width)
        if calm >= WORTH_SAYING:
            notes.append(JITTER.format(calm))
    located = locate(slots, off | nowhere, None, None, area, places, settings, name)
    place = located.place
    slots_used, entry = np.unique(slot, return_index=True)
    conflict = int((place[entry][np.searchsorted(slots_used, slot)] != place).sum())
    if conflict > MOST_CONFLICTS * len(slots):
        raise InvalidTraces(
            f"{name}: {conflict} of {len(slots)} rows put a user at two places in one slot. If users have "
            "several days, name the column that tells them apart: `columns`, date=NAME or trace=NAME.",
            code="E_CONFLICT",
        )
    repairs = {"repeated": len(slots) - len(slots_used) - conflict, "contradicted": conflict}
    if len(slots_used) < len(slots):
        notes.append(f"{len(slots) - len(slots_used):,} rows give a slot of a user again, and the first one counts")
    off &= ~nowhere
    known, outside = place[entry] >= 0, off[entry]
    seen = known | outside
    user, date = slots.user[first], None if slots.date is None else slots.date[first]
    rows = _number_days(user, date, L * width)
    owner, day = rows[slots_used[seen] // L].T
    fill = fill_gaps(
        (n_rows, L),
        slots_used[seen],
        outside[seen],
        rows,
        owner,
        day * SECONDS_PER_DAY + slots_used[seen] % L * width + width // 2,
        np.ones(int(seen.sum()), dtype=np.int64),
        user=user,
        width=width,
        policy=settings.gaps,
        longest=settings.longest,
        rungs=tuple(3600 * hours for hours in (0, *RUNGS)),
        min_coverage=settings.min_coverage,
        name=name,
    )
    r = fill.r
    r.reshape(-1)[slots_used[known]] = place[entry][known]
    observed = r >= 0
    if not aligned:
        _refuse_disjoint(observed, settings.min_coverage, name)
    r[fill.slots.row, fill.slots.slot] = place[entry][seen][fill.source]
    losses = {"E_NULL_ISLAND": int(nowhere.sum()), "outside the map": int(off.sum())}
    return _make_traces(
        fill,
        observed,
        located._replace(cells=None) if named else located,
        slots,
        user=user,
        dates=date,
        start=slots.start,
        width=width,
        all_places=named or settings.regions is not None,
        uncertain=None,
        settings=settings,
        so_far=_add_counts(so_far, settings, losses, repairs, located, fill, area, notes),
    )


def _add_counts(
    so_far: Preparation,
    settings: Settings,
    dropped: Mapping[str, int],
    fixed: Mapping[str, int],
    located: Located,
    fill: Filling,
    area: Area,
    notes: list[str],
) -> Preparation:
    """Return the counts of the reader with those of places and filled slots added."""
    return replace(
        so_far,
        dropped={reason: n for reason, n in {**so_far.dropped, **dropped}.items() if n},
        fixed={what: n for what, n in {**so_far.fixed, **fixed}.items() if n},
        grid_metres=located.grid,
        places_by=located.by,
        cells=settings.cells,
        max_gap_minutes=fill.longest / 60,
        max_gap_auto=settings.longest is None,
        people_by_gap={f"{gap // 3600}h": people for gap, people in fill.people.items()},
        map=area.by,
        map_km=area.km,
        notes=(*so_far.notes, *notes),
    )


def _find_map(
    entries: Fixes | Slots, slot: Ints, where: str, settings: Settings, name: str
) -> tuple[Area, Mask, Mask, list[str]]:
    """Return the map; which entries are outside; which are at 0, 0 because they have no position (B20); notes."""
    box, regions, none = settings.box, settings.regions, np.zeros(len(entries), dtype=bool)
    lat, lon = entries.lat, entries.lon
    locations = entries.locations
    if lat is None and entries.place is not None and locations is not None and locations.lat is not None:
        there, somewhere = np.maximum(entries.place, 0), entries.place >= 0
        lat, lon = (np.where(somewhere, np.asarray(side)[there], np.nan) for side in (locations.lat, locations.lon))
    whole = Area("whole", lambda lat, lon: np.ones(len(lat), dtype=bool))
    if lat is None or lon is None:
        if regions is not None or box is not None:
            what = "`box` needs" if regions is None else "`regions` need"
            raise InvalidParameter(f"{what} fixes with `lat` and `lon`.")
        return whole, none, none, []
    real = np.isfinite(lat) & np.isfinite(lon)
    zero = (lat == 0) & (lon == 0)
    located = real & ~zero if np.any(real & ~zero) else real
    north, east = lat[located], lon[located]
    area = whole
    if regions is not None:
        if not np.any(regions.place_of(north, east) >= 0):
            raise InvalidTraces(f"{name or 'the input'}: no row lies in any of the regions.", code="E_OUTSIDE")
        area = Area("regions", lambda lat, lon: regions.place_of(lat, lon) >= 0)
    elif box is not None:
        check_box(box, (north, east), name)
        area = Area("box", lambda lat, lon: in_box(box, lat, lon))
    elif where == "auto":
        area = find_main_area(entries.user[located], slot[located], north, east) or whole
    off = none.copy()
    if area.by != "whole":
        off[real] = ~area.holds(lat[real], lon[real])
    if not zero.any():
        return area, off, zero, []
    here = bool(area.holds(np.zeros(1), np.zeros(1))[0])
    if here and where == "auto" and area.by == "whole":
        # nobody else is anywhere near
        here = bool(np.any((np.abs(north) < NEAR_ZERO) & (np.abs(east) < NEAR_ZERO)))
    note = f"{int(zero.sum())} rows lie at 0, 0, mostly a sign of no position; a `box` drops them"
    return area, off, zero & (not here), [note] if here else []


def locate(
    entries: Fixes | Slots,
    off: Mask,
    second: Ints | None,
    way: tuple[Floats, Floats] | None,
    area: Area,
    places: str,
    settings: Settings,
    name: str,
) -> Located:
    """Find the `places` of fixes, or of slots (`second` None), that are not `off`, and of points on the `way`."""
    regions, cells = settings.regions, settings.cells
    north, east = (np.empty(0), np.empty(0)) if way is None else way
    on, passing = ~off, area.holds(north, east)
    lat, lon = entries.lat, entries.lon
    north, east = north[passing], east[passing]
    grid, most = None, None  # places that somebody has made are kept, all of them
    if regions is not None and lat is not None and lon is not None:
        locations, by = regions.locations, "regions"
        of_fixes, of_way = regions.place_of(lat[on], lon[on]), regions.place_of(north, east)
    elif entries.place is not None:
        if entries.locations is None:
            raise InvalidParameter("`place` needs `locations` to point into.")
        locations, by, of_fixes = entries.locations, "given", entries.place[on]
        of_way = locations.place_of(north, east) if len(north) else np.empty(0, dtype=np.int64)
        most = cells if isinstance(entries, Fixes) else None  # numbered places of slots are never merged
    elif lat is None or lon is None:
        raise InvalidParameter("fixes must have `lat` and `lon`, or `place` and `locations`.")
    elif places == "stays":
        if second is None or not isinstance(entries, Fixes):
            raise InvalidParameter('`places="stays"` needs times; numbered slots have none: use "shared" or "grid".')
        by, most = "stays", cells
        user, metres = entries.user[on], settings.grid_metres
        locations, of_fixes, grid = stay_places(user, second[on], lat[on], lon[on], metres, name)
        of_way = locations.place_of(north, east) if len(north) else np.empty(0, dtype=np.int64)
    else:
        by, n = places, int(on.sum())
        lat, lon = np.append(lat[on], north), np.append(lon[on], east)
        if places == "points":
            points, of_both = np.unique(point_keys(lat, lon), return_inverse=True)
            locations = Locations(points.real, points.imag)
        else:
            limit = min(cells, MOST_GRID_CELLS) if places == "grid" and cells is not None else MOST_GRID_CELLS
            locations, of_both, grid = make_grid(lat, lon, settings.grid_metres, limit)
            most = None if places == "grid" else cells
        of_fixes, of_way = of_both[:n], of_both[n:]
    place, way_places = np.full(len(entries), -1), np.full(len(passing), -1)
    place[on], way_places[passing] = of_fixes, of_way
    return Located(locations, place, way_places, grid, by, most)


def _number_days(user: Ints, date: Times | None, length: int) -> Ints:
    """Return (owner, day) of each row: dated whole days of a user follow each other, any other row is alone."""
    alone = np.column_stack([np.arange(len(user)), np.zeros(len(user), dtype=np.int64)])
    if date is None or length != SECONDS_PER_DAY:
        return alone
    rows = np.column_stack([user, date.astype("datetime64[D]").astype(np.int64)])
    return rows if len(np.unique(rows, axis=0)) == len(rows) else alone


def _snap_slots(slots: Slots, row: Ints, width: int) -> tuple[Slots, float]:
    """Return the same slots with positions near an anchor of their person put there, and the share of these."""
    if slots.lat is None or slots.lon is None:
        return slots, 0.0
    order = np.lexsort((slots.slot, row))  # rows are numbered by user
    second = row * SECONDS_PER_DAY + slots.slot * width
    lat, lon = slots.lat.copy(), slots.lon.copy()
    lat[order], lon[order], there = snap_to_anchors(slots.user[order], second[order], lat[order], lon[order])
    return replace(slots, lat=lat, lon=lon), float(there.mean())


def _refuse_disjoint(known: Mask, min_coverage: float, name: str) -> None:
    covered = known[known.mean(axis=1) >= min_coverage]
    rows = covered if len(covered) else known[known.any(axis=1)]
    if len(rows) and rows.argmax(axis=1).max() > (rows.shape[1] - 1 - rows[:, ::-1].argmax(axis=1)).min():
        raise InvalidTraces(f"{name}: the rows have no slot in common.", code="E_ALIGN")


def _make_traces(
    fill: Filling,
    observed: Mask,
    located: Located,
    entries: Fixes | Slots,
    *,
    user: Ints,
    dates: Times | None,
    start: str,
    width: int,
    all_places: bool,
    uncertain: tuple[Ints, Ints, Floats, Floats, Floats] | None,
    settings: Settings,
    so_far: Preparation,
) -> tuple[Traces, Preparation]:
    """Return the traces, without days or users of low coverage, on the places that remain, and all counts."""
    enough, so_far = _choose_days(fill, observed, entries, user, dates, width, settings, so_far)
    slots = int(observed.sum() + fill.outside.sum())
    users_outside = len(np.setdiff1d(user[fill.outside.any(axis=1)], user[(fill.r >= 0).any(axis=1)]))
    r, observed, row = fill.r[enough], observed[enough], np.flatnonzero(enough)
    known = r >= 0
    locations, number, count, notes = _reduce_places(located, r, user[row], all_places)
    r = number[r]
    if entries.word is not None:
        words = Words(entries.user, number[located.place], entries.word, entries.words)
        locations = locations.relabel(**majority_categories(words, len(locations)))
        categories = [word for word in locations.categories or () if word]
        notes.append(
            f"{len(categories)} of {len(locations)} places have a category, that of most people there; "
            f"{len(set(categories))} differ"
        )
    evidence = None
    if uncertain is not None:
        of_row, slot, lat, lon, radius = uncertain
        stay, number_of = enough[of_row], np.cumsum(enough) - 1
        evidence = evidence_of(locations, number_of[of_row[stay]], slot[stay], lat[stay], lon[stay], radius[stay])
    usable = len(np.unique(user[enough][known.all(axis=1)]))
    if settings.gaps == "split":
        r, piece = cut_at_gaps(r)
        row = row[piece]
    traces = Traces(
        r,
        locations,
        users=[entries.labels[u] for u in user[row]],
        dates=None if dates is None else dates[row],
        step_minutes=width / 60,
        start=start,
        tz=entries.tz,
        evidence=evidence,
    )
    visitors = traces.visitors()
    report = replace(
        so_far,
        users=traces.U,
        users_dropped=so_far.users_dropped - traces.U,
        users_usable=usable,
        days=int(enough.sum()),
        days_usable=int(known.all(axis=1).sum()),
        slots_observed=int(observed.sum()),
        slots_held=int((known & ~observed).sum()),
        slots_missing=int((~known).sum()),
        places_found=count,
        places=len(locations),
        places_rare=int(((visitors > 0) & (visitors < MANY_ENOUGH)).sum()),  # E31
    )
    return traces, replace(report, notes=(*report.notes, *notes, *_describe(report, slots, users_outside)))


def _choose_days(
    fill: Filling,
    observed: Mask,
    entries: Fixes | Slots,
    user: Ints,
    dates: Times | None,
    width: int,
    settings: Settings,
    so_far: Preparation,
) -> tuple[Mask, Preparation]:
    """Return which days have enough known slots, and the counts of the others; refuse an input without such a day."""
    gaps, min_coverage, outside, known = settings.gaps, settings.min_coverage, fill.outside, fill.r >= 0
    of_day, U = known.mean(axis=1), len(entries.labels)
    by_user = np.bincount(user, of_day, U) / np.maximum(1, np.bincount(user, minlength=U))
    share = by_user[user] if gaps == "drop" else of_day
    single = observed.sum(axis=1) < fill.least_observed
    enough = known.any(axis=1) & (share >= min_coverage) & ~single
    away = outside.any(axis=1)
    tenth = np.minimum(9, (by_user[np.unique(user)] * 10).astype(np.int64))
    so_far = replace(
        so_far,
        users_dropped=len(np.unique(user)),
        users_by_coverage=tuple(np.bincount(tenth, minlength=10).tolist()),
        days_dropped=int((~enough).sum()),
        days_single=int((single & ~away & ~enough).sum()),
        slots_outside=int(outside.sum()),
        days_outside=int(away.sum()),
        users_outside=len(np.unique(user[away])),
        gaps=gaps,
        min_coverage=min_coverage,
        step_minutes=width / 60,
        tz=entries.tz,
        coverage=Coverage(user, entries.labels, dates, of_day, observed.mean(axis=1), enough, by_user),
    )
    if not enough.any():
        who = f"{len(np.unique(user))} users" if gaps == "drop" else f"{len(known)} days"
        raise InvalidTraces(
            f"{so_far.name or 'the input'}: none of {who} has {min_coverage:.0%} of its slots known "
            f"(`min_coverage`): {'; '.join(so_far.in_the_way())}.",
            code="E_EMPTY",
        )
    return enough, so_far


def _reduce_places(located: Located, r: Ints, user: Ints, all_places: bool) -> tuple[Locations, Ints, int, list[str]]:
    """
    Leave out unvisited places, unless `all_places` stay, and merge the others.

    Returns the places that remain; for each old one the number of what it is now part of, and -1 after the last; how
    many were visited; notes.
    """
    locations = located.locations
    notes: list[str] = []
    visits = np.bincount(r[r >= 0], minlength=len(locations))
    count, number = int((visits > 0).sum()), np.append(np.arange(len(locations)), -1)
    if not all_places and (locations.has_coordinates or locations.names is not None):  # plain numbers stay
        visited = np.flatnonzero(visits)
        number[:-1] = np.where(visits > 0, np.cumsum(visits > 0) - 1, -1)
        locations, visits = locations.select(visited), visits[visited]
    shared = locations.names is None and located.by in ("shared", "stays")  # joined however few there are
    if located.cells is not None and locations.has_coordinates and (shared or len(locations) > located.cells):
        visited, visitor = place_visitors(number[r], user)
        if locations.names is not None:
            locations, becomes, notes = join_into_areas(locations, visited, visitor, cells=located.cells)
        elif shared:
            locations, becomes = share_places(locations, visited, visitor, cells=located.cells)
        else:
            locations, becomes = reduce_places(locations, visits, cells=located.cells)
        number = np.where(number >= 0, becomes[number], -1)
    return locations, number, count, notes


def _describe(p: Preparation, seen: int, gone: int) -> list[str]:
    """
    Return notes on the map, on gaps and on days that were dropped, where there is anything to say.

    `seen` slots have a fix, on the map or not; `gone` users have none on it.
    """
    notes = ["everything lies in one place: nothing can be learnt from it"] if p.places == 1 else []
    if p.map == "auto" and p.slots_outside:
        notes.append(
            f"the map is where people are nearly all the time, about {p.map_km:.0f} km wide; "
            f"{_percent(p.slots_outside / seen)} of the slots, on {p.days_outside:,} days of {p.users_outside:,} "
            "people, lie outside and were left out"
            + (f", and {gone:,} people with them" if gone else "")
            + '; `map="whole"` keeps them'
        )
    elif p.slots_outside:
        notes.append(
            f"{p.slots_outside:,} slots, on {p.days_outside:,} days of {p.users_outside:,} people, lie outside the map "
            f"(`{p.map}`) and were left out"
        )
    slots = p.slots_observed + p.slots_held
    steps = dict(p.people_by_gap)
    if p.max_gap_auto and p.slots_held:
        by_gap = ", ".join(f"{gap}: {people:,}" for gap, people in steps.items())
        notes.append(
            f"gaps of up to {length_text(p.max_gap_minutes or 0)} are filled, the shortest that keeps enough people "
            f"(people with a usable day: {by_gap}); `max_gap` sets another"
        )
    elif not p.max_gap_auto and p.users_usable < ENOUGH * max(steps.values(), default=0):
        by_gap = ", ".join(f"{gap}: {people:,}" for gap, people in steps.items())
        notes.append(f"a longer `max_gap` keeps more people with a usable day: {by_gap}")
    if p.slots_held > MUCH * slots:
        notes.append(
            f"{_percent(p.slots_held / slots)} of the slots have no fix of their own: they were filled from the fixes "
            "before or after, so how people move between fixes is not known"
        )
    if p.days_dropped > MANY * (p.days + p.days_dropped):
        thin = p.days_dropped - p.days_single
        why = [f"{p.days_single:,} have fixes in one slot alone"] if p.days_single else []
        why += (
            [f"{thin:,} have less than {p.min_coverage:.0%} of their slots known (`min_coverage`)"] if thin > 0 else []
        )
        notes.append(f"{p.days_dropped:,} of {p.days + p.days_dropped:,} days were dropped: {' and '.join(why)}")
    return notes


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"
