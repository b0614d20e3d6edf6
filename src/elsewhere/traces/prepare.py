"""
Turn fixes and slots into traces: local days cut into slots, one place per slot, gaps filled, thin days left out.

Unvisited places are left out, the rest merged, and everything is counted in a `Preparation`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from elsewhere.errors import InvalidParameter, InvalidTraces, require_between, require_choice, require_whole
from elsewhere.traces.clock import Times
from elsewhere.traces.fixes import (
    LEAST_JUMP_KM,
    MOST_SLOTS,
    PLACES,
    Coverage,
    Fixes,
    Located,
    Preparation,
    Slots,
    are_places,
    cleaned,
    few_points,
    grouped,
    locate,
    seconds_since_1970,
    spoken_length,
    stretched,
)
from elsewhere.traces.gaps import (
    ENOUGH,
    GAPS,
    RUNGS,
    SECONDS_PER_DAY,
    Filling,
    cut,
    filled,
    least_slots,
    most_common,
    nearer,
    on_the_way,
)
from elsewhere.traces.maps import MAPS, Area, Box, Regions, area_of
from elsewhere.traces.model import Evidence, Floats, Ints, Locations, Mask, Traces
from elsewhere.traces.places import (
    MANY_ENOUGH,
    STAY_METRES,
    STAY_SECONDS,
    Words,
    anchored,
    check_grid,
    evidence_of,
    majority,
    place_visitors,
    reduce_places,
    share_places,
    with_areas,
)

MOST_CONFLICTS = 0.2  # of the rows of numbered slots: more are days that nothing tells apart
WORTH_SAYING = 0.05  # of the positions: so many on an anchor are spoken of
NEAR_ZERO = 5.0  # degrees from 0, 0 within which somebody must be for that point to be believed
UNITS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
MANY = 0.1  # of the days: so many are dropped with a word on how to keep them
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
        "auto": the map is where people are nearly all the time, see `main_area`; "whole": everywhere anybody was. A
        `box` (south, west, north, east) is the map. Slots outside are missing, never filled over, and counted.
    places
        Where the fixes do not name their places: "shared", grid cells, of which those that fewer than eight people
        visit join their neighbours, see `share_places`; who is near a spot where the same person stays is there, see
        `anchored`, and at most `cells` different points are places already: their cells, or, where people share them
        (`are_places`), these very points; "merge", the paper's merging of grid cells
        until `cells` are left (E74); "grid", cells alone, made coarser until at most `cells` are visited; "stays", the
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

    def __post_init__(self) -> None:
        if self.step != "auto" and not 0 < self.width <= SECONDS_PER_DAY:
            raise InvalidParameter(f"`step` must be above 0 and at most a day, got {self.step!r}.")
        _ = self.longest
        require_choice("gaps", self.gaps, tuple(GAPS))
        require_choice("places", self.places, PLACES)
        require_choice("map", self.map, MAPS)
        require_between("min_coverage", self.min_coverage, 0, 1)
        check_grid(self.grid_metres)
        if self.cells is not None:
            require_whole("cells", self.cells, 1)
        if self.evidence and self.gaps == "split":
            raise InvalidParameter('`evidence` belongs to whole days; use another policy than `gaps="split"`.')

    @property
    def width(self) -> int:
        """Return the length of a slot in seconds."""
        return seconds_of("step", self.step)

    @property
    def longest(self) -> int | None:
        """Return the longest gap to be filled, in seconds; None where the people decide it."""
        return None if self.max_gap == "auto" else seconds_of("max_gap", self.max_gap)

    def require_equal_slots(self) -> None:
        """Refuse slots of fixes that do not divide the day."""
        if SECONDS_PER_DAY % self.width:
            raise InvalidParameter(f"`step` must divide the day into equal slots, got {self.step!r}.")

    def made_of(self, entries: Fixes | Slots) -> str:
        """Return what places are made of: `places`, or of few points, which somebody has made already, these alone."""
        if self.places != "shared" or self.cells is None or not few_points(entries, self.cells):
            return self.places
        return "points" if are_places(entries) else "grid"


def prepare_fixes(fixes: Fixes, settings: Settings, so_far: Preparation) -> tuple[Traces, Preparation]:
    """
    Return fixes as traces: one row per user and local day, one place per slot of `step`.

    A slot's place is that of most of its fixes, of equals the earliest seen (B35); in the hour that a day of 25 hours
    has twice, the first passing counts (B33). What is missing after the policy `gaps` is -1.

    Of two fixes of one user at one instant the first stays; a single fix that is reached and left faster than any
    airliner is dropped. Both are counted; `so_far` is what the reader has counted already.
    """
    settings.require_equal_slots()
    width, gaps, regions = settings.width, settings.gaps, settings.regions
    evidence = settings.evidence and fixes.accuracy is not None  # without radii, positions are read as ever
    short = 0
    if fixes.until is not None:
        fixes, short = stretched(fixes, width, so_far.name)
    places = settings.made_of(fixes)
    raw = evidence or regions is not None or places == "stays" or fixes.word is not None
    jitter = places == "shared" and fixes.place is None and not evidence
    fixes, fixed, jumps, fast, calm = cleaned(
        fixes, width, None if raw else settings.grid_metres, settings.box, jitter, so_far.name
    )
    fixed["visits too short for a slot of their own"] = short
    area, nowhere, notes = _area(fixes, seconds_since_1970(fixes.wall) // width, settings.map, settings, so_far.name)
    notes += _on_jitter(calm)
    dropped = {"E_SPEED": jumps, "E_NULL_ISLAND": int(fixes.weight()[nowhere].sum())}
    fixes = fixes.select(~nowhere) if nowhere.any() else fixes

    second = seconds_since_1970(fixes.wall)
    day, slot = second // SECONDS_PER_DAY, second % SECONDS_PER_DAY // width
    _, first, row = grouped(fixes.user, day)
    rows = np.column_stack([fixes.user[first], day[first]])
    L = SECONDS_PER_DAY // width
    instant = row * L + slot
    off = _off(fixes, area)
    weight = fixes.weight()
    fill = filled(
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
        longest=settings.longest,
        rungs=tuple(3600 * hours for hours in RUNGS),
        min_coverage=settings.min_coverage,
    )
    way = None
    if gaps == "interpolate" and fixes.lat is not None and fixes.lon is not None:
        way = on_the_way(fill.slots, second, fixes.lat, fixes.lon, width)
    located = locate(fixes, off, second, way, area, places, regions, settings.grid_metres, settings.cells, so_far.name)
    r = fill.r
    taken, winner = most_common(instant[~off], located.place[~off], weight[~off])
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
    dropped["outside the map"] = int(weight[off].sum())
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
        settings=settings,
        all_places=(fixes.locations is not None and settings.cells is None) or regions is not None,
        uncertain=uncertain,
        words=_words(fixes, located.place),
        so_far=_counted(so_far, settings, dropped, fixed, located, fill, area, notes),
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
    width = slots.width
    named = slots.place is not None
    n_rows, first, row = grouped(slots.user, slots.row)
    lowest, L = int(slots.slot.min()), int(np.ptp(slots.slot)) + 1
    if L * width > SECONDS_PER_DAY and slots.date is not None:
        raise InvalidTraces(
            f"{so_far.name}: {L} slots of {spoken_length(width / 60)} are more than a day (`step`).", code="E_INDEX"
        )
    instant = row * L + slots.slot - lowest
    area, nowhere, notes = _area(slots, instant, "whole" if named else settings.map, settings, so_far.name)
    off = _off(slots, area) | nowhere
    places = settings.made_of(slots)
    if places == "shared" and not named:
        slots, calm = _calmed(slots, row, width)
        notes += _on_jitter(calm)
    located = locate(
        slots, off, None, None, area, places, settings.regions, settings.grid_metres, settings.cells, so_far.name
    )
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
    if len(taken) < len(slots):
        notes.append(f"{len(slots) - len(taken):,} rows give a slot of a user again, and the first one counts")
    known, outside = place[kept] >= 0, (off & ~nowhere)[kept]
    seen = known | outside
    unknown = _unknown(n_rows, L, so_far.name).reshape(-1, L)
    if not aligned:
        whole = np.zeros(n_rows * L, dtype=bool)
        whole[taken[known]] = True
        _refuse_disjoint(whole.reshape(-1, L), settings.min_coverage, so_far.name)
    of_row, date = taken // L, None if slots.date is None else slots.date[first]
    user = slots.user[first]
    rows = _days_in_a_row(user, date, L * width)
    fill = filled(
        unknown,
        taken[seen],
        outside[seen],
        rows,
        rows[of_row[seen], 0],
        rows[of_row[seen], 1] * SECONDS_PER_DAY + taken[seen] % L * width + width // 2,
        np.ones(int(seen.sum()), dtype=np.int64),
        user=user,
        width=width,
        gaps=settings.gaps,
        longest=settings.longest,
        rungs=tuple(3600 * hours for hours in (0, *RUNGS)),
        min_coverage=settings.min_coverage,
    )
    r = fill.r
    r.reshape(-1)[taken[known]] = place[kept][known]
    observed = r >= 0
    source = nearer(fill.slots, fill.second, width) if settings.gaps == "interpolate" else fill.source
    r[fill.slots.row, fill.slots.slot] = place[kept][seen][source]
    dropped = {"E_NULL_ISLAND": int(nowhere.sum()), "outside the map": int((off & ~nowhere).sum())}
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
        settings=settings,
        all_places=named or settings.regions is not None,
        uncertain=None,
        words=_words(slots, place),
        so_far=_counted(so_far, settings, dropped, fixed, located, fill, area, notes),
    )


def _counted(
    so_far: Preparation,
    settings: Settings,
    dropped: Mapping[str, int],
    fixed: Mapping[str, int],
    located: Located,
    fill: Filling,
    area: Area,
    notes: list[str],
) -> Preparation:
    """Return what the reader has counted, and what became of it on the way to places and filled slots."""
    return replace(
        so_far,
        dropped=_some({**so_far.dropped, **dropped}),
        fixed=_some({**so_far.fixed, **fixed}),
        grid_metres=located.grid,
        places_by=located.by,
        cells=settings.cells,
        max_gap_minutes=fill.longest / 60,
        max_gap_auto=settings.longest is None,
        people_by_gap=fill.ladder.in_words(),
        map=area.by,
        map_km=area.km,
        notes=(*so_far.notes, *notes),
    )


def _area(
    entries: Fixes | Slots, slot: Ints, where: str, settings: Settings, name: str
) -> tuple[Area, Mask, list[str]]:
    """Return the map, the rows at 0, 0 that have no position (B20), and a word on them where they are kept."""
    position, box, regions = _position(entries), settings.box, settings.regions
    if position is None:
        return area_of(where, box, regions, entries.user, slot, None, name), np.zeros(len(entries), dtype=bool), []
    lat, lon = position
    real = np.isfinite(lat) & np.isfinite(lon)
    zero = (lat == 0) & (lon == 0)
    located = real & ~zero if np.any(real & ~zero) else real
    area = area_of(where, box, regions, entries.user[located], slot[located], (lat[located], lon[located]), name)
    if not zero.any():
        return area, zero, []
    here = bool(area.holds(np.zeros(1), np.zeros(1))[0])
    if here and where == "auto" and area.by == "whole":
        # nobody else is anywhere near
        here = bool(np.any((np.abs(lat[located]) < NEAR_ZERO) & (np.abs(lon[located]) < NEAR_ZERO)))
    kept = f"{int(zero.sum())} rows lie at 0, 0, mostly a sign of no position; a `box` drops them"
    return area, zero & (not here), [kept] if here else []


def _position(entries: Fixes | Slots) -> tuple[Floats, Floats] | None:
    """Return where each entry is, NaN where it is nowhere; None where places have no coordinates."""
    if entries.lat is not None and entries.lon is not None:
        return entries.lat, entries.lon
    locations = entries.locations
    if entries.place is None or locations is None or locations.lat is None or locations.lon is None:
        return None
    somewhere = entries.place >= 0
    return np.where(somewhere, locations.lat[entries.place], np.nan), np.where(
        somewhere, locations.lon[entries.place], np.nan
    )


def _off(entries: Fixes | Slots, area: Area) -> Mask:
    """Tell which entries are outside the map."""
    position = None if area.by == "whole" else _position(entries)
    if position is None:
        return np.zeros(len(entries), dtype=bool)
    real = np.isfinite(position[0]) & np.isfinite(position[1])
    off = np.zeros(len(entries), dtype=bool)
    off[real] = ~area.holds(position[0][real], position[1][real])
    return off


def _days_in_a_row(user: Ints, date: Times | None, length: int) -> Ints:
    """Return (owner, day) of each row: dated whole days of a user follow each other, any other row is alone."""
    alone = np.column_stack([np.arange(len(user)), np.zeros(len(user), dtype=np.int64)])
    if date is None or length != SECONDS_PER_DAY:
        return alone
    rows = np.column_stack([user, date.astype("datetime64[D]").astype(np.int64)])
    return rows if len(np.unique(rows, axis=0)) == len(rows) else alone


def _words(entries: Fixes | Slots, place: Ints) -> Words | None:
    return None if entries.word is None else Words(entries.user, place, entries.word, entries.words)


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


def _on_jitter(calm: float) -> list[str]:
    """Return a word where a share of positions worth speaking of was put on the anchors of their people."""
    what = (
        f"positions jitter: {calm:.0%} of them lie within {STAY_METRES:.0f} m of a spot where the same person stays "
        f"for {STAY_SECONDS // 60} minutes or more, and count as there"
    )
    return [what] if calm >= WORTH_SAYING else []


def _calmed(slots: Slots, row: Ints, width: int) -> tuple[Slots, float]:
    """Return the same slots with positions near an anchor of their person put there, and the share of these."""
    if slots.lat is None or slots.lon is None:
        return slots, 0.0
    order = np.lexsort((slots.slot, row))  # rows are numbered by user
    second = row * SECONDS_PER_DAY + slots.slot * width
    lat, lon = slots.lat.copy(), slots.lon.copy()
    lat[order], lon[order], there = anchored(slots.user[order], second[order], lat[order], lon[order])
    return replace(slots, lat=lat, lon=lon), float(there.mean())


def _refuse_disjoint(known: Mask, min_coverage: float, name: str) -> None:
    covered = known[known.mean(axis=1) >= min_coverage]
    rows = covered if len(covered) else known[known.any(axis=1)]
    if len(rows) and rows.argmax(axis=1).max() > (rows.shape[1] - 1 - rows[:, ::-1].argmax(axis=1)).min():
        raise InvalidTraces(f"{name}: the rows have no slot in common.", code="E_ALIGN")


def finish(
    r: Ints,
    observed: Mask,
    outside: Mask,
    locations: Locations,
    *,
    user: Ints,
    labels: tuple[str, ...],
    dates: Times | None,
    step_minutes: float,
    start: str,
    tz: str,
    cells: int | None,
    settings: Settings,
    all_places: bool,
    uncertain: tuple[Ints, Ints, Floats, Floats, Floats] | None,
    words: Words | None,
    so_far: Preparation,
) -> tuple[Traces, Preparation]:
    """Drop thin days or users and unvisited places that are not given, merge places, and count everything."""
    gaps, min_coverage = settings.gaps, settings.min_coverage
    known = r >= 0
    coverage = Coverage(user, labels, dates, known.mean(axis=1), observed.mean(axis=1), known[:, 0])
    share = coverage.by_user()[user] if gaps == "drop" else coverage.known
    single = observed.sum(axis=1) < least_slots(r.shape[1], min_coverage)
    enough = known.any(axis=1) & (share >= min_coverage) & ~single
    away = outside.any(axis=1)
    seen, gone = int(observed.sum() + outside.sum()), len(np.setdiff1d(user[away], user[known.any(axis=1)]))
    tenth = np.minimum(9, (coverage.by_user()[np.unique(user)] * 10).astype(np.int64))
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
        step_minutes=step_minutes,
        tz=tz,
        coverage=replace(coverage, kept=enough),
    )
    if not enough.any():
        who = f"{len(np.unique(user))} users" if gaps == "drop" else f"{len(r)} days"
        raise InvalidTraces(
            f"{so_far.name or 'the input'}: none of {who} has {min_coverage:.0%} of its slots known "
            f"(`min_coverage`): {'; '.join(so_far.in_the_way())}.",
            code="E_EMPTY",
        )
    r, observed, known, row = r[enough], observed[enough], known[enough], np.flatnonzero(enough)
    visits = np.bincount(r[known], minlength=len(locations))
    visited_places = int((visits > 0).sum())
    number = np.append(np.arange(len(locations)), -1)  # of each place that was found; the last is that of -1
    if not all_places and (locations.has_coordinates or locations.names is not None):  # plain numbers stay
        visited = np.flatnonzero(visits)
        number[:-1] = np.where(visits > 0, np.cumsum(visits > 0) - 1, -1)
        locations, visits = locations.select(visited), visits[visited]
    notes: list[str] = []
    if cells is not None and locations.has_coordinates:
        visited, visitor = place_visitors(number[r], user[row])
        if locations.names is not None:
            locations, becomes, notes = with_areas(locations, visited, visitor, cells=cells)
        elif so_far.places_by in ("shared", "stays"):
            locations, becomes = share_places(locations, visited, visitor, cells=cells)
        else:
            locations, becomes = reduce_places(locations, visits, cells=cells)
        number = np.where(number >= 0, becomes[number], -1)
    r = number[r]
    whole = known.all(axis=1)
    if words is not None:
        locations = locations.called(**majority(words._replace(place=number[words.place]), len(locations)))
        notes += [_on_words(locations)]
    if gaps == "split":
        r, piece = cut(r)
        row = row[piece]
    traces = Traces(
        r,
        locations,
        users=[labels[u] for u in user[row]],
        dates=None if dates is None else dates[row],
        step_minutes=step_minutes,
        start=start,
        tz=tz,
        evidence=None if uncertain is None else _evidence(locations, enough, *uncertain),
    )
    made = replace(
        so_far,
        users=traces.U,
        users_dropped=so_far.users_dropped - traces.U,
        users_usable=len(np.unique(user[enough][whole])),
        days=int(enough.sum()),
        slots_observed=int(observed.sum()),
        slots_held=int((known & ~observed).sum()),
        slots_missing=int((~known).sum()),
        places_found=visited_places,
        places=len(locations),
        places_rare=_rare(traces),
    )
    return traces, replace(made, notes=(*made.notes, *notes, *_notes(made, seen, gone)))


def _notes(p: Preparation, seen: int, gone: int) -> list[str]:
    """
    Say what a reader should know of the map, of gaps and of days dropped, where there is anything to know.

    `seen` slots have a fix, on the map or not; `gone` users have none on it.
    """
    notes = ["everything lies in one place: nothing can be learnt from it"] if p.places == 1 else []
    if p.map == "auto" and p.slots_outside:
        notes.append(
            f"the map is where people are nearly all the time, about {p.map_km:.0f} km wide; "
            f"{_share(p.slots_outside / seen)} of the slots, on {p.days_outside:,} days of {p.users_outside:,} people, "
            "lie outside and were left out"
            + (f", and {gone:,} people with them" if gone else "")
            + '; `map="whole"` keeps them'
        )
    elif p.slots_outside:
        notes.append(
            f"{p.slots_outside:,} slots, on {p.days_outside:,} days of {p.users_outside:,} people, lie outside the map "
            f"(`{p.map}`) and were left out"
        )
    known = p.slots_observed + p.slots_held
    steps = dict(p.people_by_gap)
    if p.max_gap_auto and p.slots_held:
        by_gap = ", ".join(f"{gap}: {people:,}" for gap, people in steps.items())
        notes.append(
            f"gaps of up to {spoken_length(p.max_gap_minutes or 0)} are filled, the shortest that keeps enough people "
            f"(people with a usable day: {by_gap}); `max_gap` sets another"
        )
    elif not p.max_gap_auto and p.users_usable < ENOUGH * max(steps.values(), default=0):
        by_gap = ", ".join(f"{gap}: {people:,}" for gap, people in steps.items())
        notes.append(f"a longer `max_gap` keeps more people with a usable day: {by_gap}")
    if p.slots_held > MUCH * known:
        notes.append(
            f"{_share(p.slots_held / known)} of the slots have no fix of their own: they were filled from the fixes "
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


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def _on_words(locations: Locations) -> str:
    words = [word for word in locations.categories or () if word]
    return (
        f"{len(words)} of {len(locations)} places have a category, that of most people there; {len(set(words))} differ"
    )


def _evidence(
    locations: Locations, enough: Mask, row: Ints, slot: Ints, lat: Floats, lon: Floats, radius: Floats
) -> Evidence | None:
    kept = enough[row]
    number = np.cumsum(enough) - 1
    return evidence_of(locations, number[row[kept]], slot[kept], lat[kept], lon[kept], radius[kept])


def _rare(traces: Traces) -> int:
    """Count the places that somebody visits, but fewer than five users (E31)."""
    users = traces.visitors()
    return int(((users > 0) & (users < MANY_ENOUGH)).sum())
