"""
Read the input of the whole job: the days without a gap, and what was dropped.

Where there are too few people, errors say how many the file has and how many the preset needs.
"""

import math
import secrets
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from elsewhere.errors import ElsewhereError, InvalidParameter, InvalidTraces, NotEnoughUsers, counted
from elsewhere.settings import DRAWN_GAP, PUBLIC_GAP, Reading

if TYPE_CHECKING:
    from elsewhere.data.slots import Traces
    from elsewhere.data.visits import Ints
    from elsewhere.settings import Preset
    from elsewhere.traces.fixes import Preparation

# codes of errors that are due to too few people, or too few places that enough of them share
SMALL = ("E_TOO_FEW", "E_SUPPRESSED", "E_TOO_FEW_PLACES", "E_NOTHING_PASSED")
BY_COORDINATES = ("shared", "merge", "grid", "stays")


def add_advice(error: ElsewhereError, traces: "Traces", settings: "Preset", read: "Preparation | None" = None) -> None:
    """
    Add to an error that is due to too few people or shared places how many there are and how many are needed.

    `read` says how `traces` were read.
    """
    if error.code in SMALL:
        from elsewhere.run.roles import least_users

        if read is not None:
            _add_people(error, read)
        shared = _count_shared(traces.visitors(), traces.U, settings)
        weaker = ", or lower `k`, `m_min` or `c_min`, which is less privacy" if settings.name == "product" else ""
        error.add_note(
            f"There are {counted(traces.U, 'person', 'people')} with a usable day, who share about "
            f'{counted(shared, "place")}, and preset "{settings.name}" needs at least {least_users(settings):,} and '
            f"{max(2, settings.c_min):,}: give more people, or larger places (`cells`){weaker}."
        )
    elif error.code == "E_EPS" and read is not None:  # the same words for any file
        error.add_note(
            f"Only people with a usable day count; gaps of up to {PUBLIC_GAP} are filled unless `max_gap` gives "
            "another length. `elsewhere plan` says how many people remain for each length."
        )


def _add_people(error: ElsewhereError, read: "Preparation") -> None:
    """Add to an error which column was read as people, where `read` says so."""
    from elsewhere.traces.read import PEOPLE

    for note in read.notes:
        if note.startswith(PEOPLE):
            error.add_note(f"{note[0].upper()}{note[1:]}.")


def join_places(traces: "Traces", settings: "Preset") -> "tuple[Traces, list[str]]":
    """
    Join neighbouring places if too few are shared for two classes; return the traces, and a note if that helped.

    Places with ids of the input are not joined: an id stands for one place.
    """
    if settings.name == "paper" or not traces.locations.has_coordinates or traces.locations.names is not None:
        return traces, []
    before, least = _count_shared(traces.visitors(), traces.U, settings), 2 * max(settings.c_min, 2)
    if before >= least or traces.R < 2:
        return traces, []
    coarser = join_neighbours(traces)
    after = _count_shared(coarser.visitors(), traces.U, settings)
    if after <= before or coarser.R < 2:
        return traces, []
    return coarser, [
        f"only {before:,} of {traces.R:,} places are shared by enough people: neighbouring places were joined, and "
        f"{after:,} of {coarser.R:,} are; `cells={traces.R}` leaves them as they are"
    ]


def join_neighbours(traces: "Traces") -> "Traces":
    """
    Return the same days with neighbouring places joined until several people share each.

    Only days without a gap are counted, because fakes are made of them.
    """
    import numpy as np

    from elsewhere.sorting import distinct_visits
    from elsewhere.traces.places import share_places

    whole = np.all(traces.r >= 0, axis=1)
    place, user = distinct_visits(traces.user[whole], traces.r[whole])
    fewer, becomes = share_places(traces.locations, place, user, cells=traces.R)
    return traces.with_map(fewer, np.where(traces.r >= 0, becomes[traces.r], -1))


def _count_shared(visitors: "Ints", people: int, settings: "Preset") -> int:
    """Return how many places `m_min` of the people who are learnt from, a random sample, share on average."""
    from elsewhere.run.roles import SEED_SHARE

    sample = people
    if settings.name == "product":
        sample -= max(settings.k - 1, round((1 - SEED_SHARE) * people), 1)
    return 0 if sample < 1 else int((visitors >= math.ceil(settings.m_min * people / sample)).sum())


def people_with_public_gap(read: Mapping[str, Any], people: int) -> int:
    """
    Return how many people have a usable day when gaps up to `PUBLIC_GAP` are filled; `people` if a gap was given.

    `read` are the fields of a `Preparation`.
    """
    return int(read["people_by_gap"].get(PUBLIC_GAP, people)) if read["max_gap_auto"] else people


def longer_gap(read: "Preparation", needed: int) -> str | None:
    """Return the smallest `max_gap` above `PUBLIC_GAP` for which `needed` people have a usable day, or None."""
    gaps = list(read.people_by_gap)
    beyond = gaps[gaps.index(PUBLIC_GAP) + 1 :] if PUBLIC_GAP in gaps else []
    return next((gap for gap in beyond if read.people_by_gap[gap] >= needed), None)


def reading_keywords(reading: Reading, preset: "Preset") -> dict[str, Any]:
    """Return the keywords of `read_traces` for a reading under this preset."""
    usual, regions, tz = preset.reading, reading.regions, reading.tz
    if reading.grid is not None:
        from elsewhere.traces.maps import read_grid

        if reading.regions is not None or reading.locations is not None or reading.box is not None:
            raise InvalidParameter(
                "`grid` is a map of its own: leave out `locations`, `regions` and `box`.", parameter="grid"
            )
        regions = read_grid(reading.grid)
    if preset.name == "private":
        _require_public(reading, preset.eps, preset.delta)
        tz = reading.tz or _zone_of_map(reading.locations, regions, reading.encoding)
    by_default = {name: usual.get(name, "auto") for name in ("max_gap", "map", "places")}
    return {
        **{name: value for name, value in reading if name != "grid"},
        **{name: value for name, value in by_default.items() if getattr(reading, name) == "auto"},
        **({"map": "whole"} if preset.name == "private" else {}),
        "tz": tz,
        "columns": _columns(reading.columns) if isinstance(reading.columns, str) else reading.columns,
        "regions": regions,
        "box": reading.box.split(",") if isinstance(reading.box, str) else reading.box,
    }


def _require_public(reading: Reading, eps: float, delta: float) -> None:
    """Refuse a map that would be found in the people whom the private preset protects; say how many it needs."""
    if reading.grid is None and reading.locations is None and reading.regions is None:
        from elsewhere.privacy.private.release import people_needed

        raise InvalidParameter(
            'preset "private" protects everybody in the file, so the map must not come from the file: name its '
            'town, such as `grid="Tokyo"` (40 km about its centre, 400 cells), or a box chosen without looking '
            'at the data, such as `grid="35.5,139.5,35.9,140.0,400"` (south, west, north, east, number of '
            "cells), or a file of public places as `locations` or `regions`. With a map it needs about "
            f"{people_needed(eps, delta):,} people with a usable day at eps = {eps:g}; `elsewhere plan` counts.",
            code="E_MAP",
            parameter="grid",
        )


def completed_from(reading: Reading, facts: Mapping[str, Any]) -> Reading:
    """Return the same; what was not given is as it was when the input of a folder was read (`facts`)."""
    options: dict[str, Any] = {}
    if facts.get("step_minutes") is not None:
        options["step"] = f"{facts['step_minutes']:g}min"
    if facts.get("places_by") in BY_COORDINATES:
        options |= {"places": facts["places_by"], "cells": facts.get("cells", reading.cells)}
    if facts.get("max_gap_auto") is False:
        options |= {"max_gap": f"{facts['max_gap_minutes']:g}min"}
    options |= {"gaps": facts.get("gaps", reading.gaps)}
    default = Reading()
    return reading.changed(**{n: v for n, v in options.items() if getattr(reading, n) == getattr(default, n)})


def _zone_of_map(locations: Any, regions: Any, encoding: str) -> str:
    """Return the zone in which the given map lies, not the people on it; UTC where the map does not tell."""
    from elsewhere.traces.clock import find_zone
    from elsewhere.traces.maps import read_places, read_regions

    if regions is not None:
        places = (regions if hasattr(regions, "locations") else read_regions(regions)).locations
    else:
        places = read_places(locations, encoding=encoding).locations
    if places.lat is None or places.lon is None:
        return "UTC"
    return find_zone(places.lat, places.lon)[0] or "UTC"


def _columns(text: str) -> dict[str, str | None]:
    """Return the columns that "ROLE=NAME,ROLE=NAME" says."""
    pairs: dict[str, str | None] = {}
    for word in text.split(","):
        role, equals, name = word.partition("=")
        if not equals or not role.strip():
            raise InvalidParameter(f"`columns` must be ROLE=NAME,ROLE=NAME, got {text!r}.", parameter="columns")
        pairs[role.strip()] = name or None  # an empty name leaves a role out
    return pairs


def read_usable_days(
    source: Any,
    reading: Reading,
    settings: "Preset",
    least: int | None = None,
    facts: Mapping[str, Any] | None = None,
    secret: bytes | None = None,
    executor: Executor | None = None,
    missing: str = "drop",
) -> "tuple[Traces, Preparation]":
    """
    Return the usable days of an input, and what became of the input; refused if they are of too few people.

    A usable day is one without a gap. `least` people are needed, by default as many as the preset needs. Places that
    too few people share are joined, unless `reading` says what the places are. `facts` are those of a folder whose
    input is to be read in the same way, see `completed_from`.

    With `missing` "gibbs" days with gaps are usable too: gaps of up to an hour are filled; other missing slots, and
    those for which the accuracy of a fix leaves several places, are drawn from the person's own chain, by `secret`
    bytes, by default of the operating system.
    """
    from elsewhere.run.roles import least_users
    from elsewhere.traces.read import describe_people

    secret = secrets.token_bytes(32) if secret is None else secret
    periods = 1 if settings.name == "private" else settings.periods
    select = partial(usable_days, missing=missing, periods=periods, secret=secret)
    by_default = (reading.cells, reading.places) == (Reading().cells, Reading().places)
    joins = by_default and reading.locations is None and reading.regions is None and reading.grid is None
    as_before = reading if facts is None else completed_from(reading, facts)
    keywords = {**reading_keywords(as_before, settings), "executor": executor}
    if missing == "gibbs":
        keywords |= {"evidence": True} | ({"max_gap": DRAWN_GAP} if reading.max_gap == "auto" else {})
    traces, read = _read(source, settings, keywords)
    if missing == "gibbs":
        read = replace(read, users_usable=traces.U, missing=missing, notes=(*read.notes, _note_drawn_slots(traces)))
    if least is None:
        # the private preset counts people with noise, and must not be refused here for their number
        least = 1 if settings.name == "private" else least_users(settings)
    if read.users_usable == 0:
        raise InvalidTraces(_explain_too_few(read, settings, least), code="E_GAPS")
    whole = select(traces)
    column = None if "household" in read.columns else read.columns.get("user")
    if column is not None and whole.U < least_users(settings) and settings.name != "private":
        people = describe_people(source, column, reading.encoding)
        read = replace(read, notes=(*read.notes, people)) if people else read
    error: ElsewhereError | None = None
    # if all people have a usable day, the split gives the better message
    if read.users_usable < min(least, read.users + read.users_dropped):
        error = NotEnoughUsers(_explain_too_few(read, settings, least))
    elif read.places_found > 1 and (whole.r == whole.r[0, 0]).all():
        error = InvalidTraces(
            "no place is shared by enough people: joined until enough people share them, all places become one; give "
            "more people, or say with `places` or `locations` what the places are.",
            code="E_SUPPRESSED",
        )
    if error is not None:
        add_advice(error, whole, settings, read)
        raise error
    notes = _note_losses(whole, traces, read)
    if joins:
        whole, joined_note = join_places(whole, settings)
        read = replace(read, places=whole.R, joined_for_fakes=bool(joined_note))
        notes += joined_note
    return whole, replace(read, notes=(*read.notes, *notes))


def usable_days(
    traces: "Traces", *, missing: str = "drop", periods: "int | tuple[float, ...]" = 1, secret: bytes | None = None
) -> "Traces":
    """
    Return the days that can be seeds: those without a gap; refused if there is none.

    With `missing` "gibbs" these are all days, with missing slots drawn from chains of so many `periods` by bytes that
    must be given and `secret`: whoever knows them can draw the same.
    """
    import numpy as np

    if missing == "gibbs":
        from elsewhere.checkpoint import derive_rng
        from elsewhere.paper.profiles import fill_slots

        if not secret:
            raise InvalidParameter(
                '`missing` = "gibbs" needs `secret`, bytes that draw the missing slots.', parameter="missing"
            )
        return fill_slots(traces, periods=periods, rng=derive_rng(secret, "missing"))
    whole = np.all(traces.r >= 0, axis=1)
    if not whole.any():
        raise InvalidTraces(
            f"none of {len(traces)} days of {traces.U} users is complete, and only complete days can be seeds; a "
            "longer `max_gap` or `step` fills more.",
            code="E_GAPS",
        )
    return traces if whole.all() else traces.select(whole)


def _note_drawn_slots(traces: "Traces") -> str:
    """Return a note on how many slots are drawn by Gibbs sampling."""
    from elsewhere.paper.profiles import uncertain_slots

    uncertain = uncertain_slots(traces)
    return (
        f"{int(uncertain.sum()):,} of {uncertain.size:,} slots, on {int(uncertain.any(axis=1).sum()):,} of "
        f"{len(traces):,} days, were drawn by Gibbs sampling, each from its person's own days"
    )


def _read(source: Any, settings: "Preset", keywords: Mapping[str, Any]) -> "tuple[Traces, Preparation]":
    """Read the traces; refused where the map or the slots of the private preset would come from the people."""
    from elsewhere.traces.read import read_traces
    from elsewhere.traces.write import find_prepared

    if settings.name == "private" and find_prepared(source) is not None:
        raise InvalidParameter(
            'preset "private" needs a map that does not depend on these people, and this folder was prepared with a '
            "map found in them: give the file it was made from, with `grid`, `locations` or `regions`.",
            code="E_MAP",
        )
    reports: list[Preparation] = []
    traces = read_traces(source, report=reports.append, **keywords)
    if settings.name == "private" and reports[0].by == "slots":
        raise InvalidParameter(
            'preset "private" protects everybody in the file, and this file has numbered slots: how many a day has, '
            "and which, would be learnt from the people. Give a file with a column of times; or choose the slots "
            "yourself, make `Traces` of them, and call `generate_fakes`.",
            code="E_SLOTS",
        )
    return traces, reports[0]


def _explain_too_few(read: "Preparation", settings: "Preset", least: int) -> str:
    """Return how many people have a usable day, how many are needed, and why the others have none."""
    people, days = read.users + read.users_dropped, read.days + read.days_dropped
    usable = f"{read.users_usable:,} of {people:,} people have a usable day, one known from end to end"
    wish = f" (`k` = {settings.k})" if settings.k else ""
    need = f'preset "{settings.name}" needs {least:,}{wish}'
    return f"{usable}, and {need}; in the way, of {days:,} days: {'; '.join(read.in_the_way())}."


def _note_losses(whole: "Traces", traces: "Traces", read: "Preparation") -> list[str]:
    """Return how many people have a usable day, and why the others have none; how many days are left out."""
    people, notes = read.users + read.users_dropped, []
    if whole.U < people:
        why = "; ".join(read.in_the_way(by_gap=False))  # the notes of the reading give them by gap
        notes.append(f"{whole.U:,} of {people:,} people have a usable day, one known from end to end: {why}")
    if len(whole) < len(traces):
        days, gaps = len(traces) + read.days_dropped, len(traces) - len(whole)
        losses = f"{read.days_dropped:,} were dropped, {gaps:,} more" if read.days_dropped else f"{gaps:,}"
        notes.append(f"{len(whole):,} of {days:,} days can be used: {losses} have gaps and are left out")
    return notes
