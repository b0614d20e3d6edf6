"""From places per slot to traces: thin days left out, unvisited places too, the rest merged, and everything counted."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidTraces, require_between, require_whole
from elsewhere.traces.accuracy import evidence_of
from elsewhere.traces.clock import Times
from elsewhere.traces.fixes import Coverage, Preparation
from elsewhere.traces.gaps import cut
from elsewhere.traces.model import Evidence, Floats, Ints, Locations, Traces
from elsewhere.traces.places import reduce_places

MANY = 0.1  # of the days: so many are dropped with a word on how to keep them
FEW = 5  # users: a place of fewer is merged away before anything is learnt (E31)


def finish(
    r: Ints,
    observed: NDArray[np.bool_],
    locations: Locations,
    *,
    user: Ints,
    labels: tuple[str, ...],
    dates: Times | None,
    step_minutes: float,
    start: str,
    tz: str,
    cells: int | None,
    gaps: str,
    min_coverage: float,
    all_places: bool,
    uncertain: tuple[Ints, Ints, Floats, Floats, Floats] | None,
    so_far: Preparation,
) -> tuple[Traces, Preparation]:
    """Thin days or users dropped, unvisited places left out unless given, places merged, everything counted."""
    require_between("min_coverage", min_coverage, 0, 1)
    known = r >= 0
    coverage = Coverage(user, labels, dates, known.mean(axis=1), observed.mean(axis=1), known[:, 0])
    share = coverage.by_user()[user] if gaps == "drop" else coverage.known
    enough = known.any(axis=1) & (share >= min_coverage)
    if not enough.any():
        who = f"{len(np.unique(user))} users" if gaps == "drop" else f"{len(r)} days"
        raise InvalidTraces(
            f"{so_far.name or 'the input'}: none of {who} has {min_coverage:.0%} of its slots known "
            "(`min_coverage`); a longer `max_gap` or `step` would know more.",
            code="E_EMPTY",
        )
    r, observed, known, row = r[enough], observed[enough], known[enough], np.flatnonzero(enough)
    visits = np.bincount(r[known], minlength=len(locations))
    found = int((visits > 0).sum())
    if not all_places and (locations.has_coordinates or locations.names is not None):  # plain numbers stay
        visited = np.flatnonzero(visits)
        r = np.where(known, np.searchsorted(visited, r), -1)
        locations, visits = _subset(locations, visited), visits[visited]
    if cells is not None and require_whole("cells", cells, 1) < len(locations) and locations.has_coordinates:
        locations, becomes = reduce_places(locations, visits, cells=cells)
        r = np.where(known, becomes[r], -1)
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
    notes = [] if traces.R > 1 else ["everything lies in one place: nothing can be learnt from it"]
    thin = int((~enough).sum())
    if thin > MANY * len(enough):
        notes.append(
            f"{thin} of {len(enough)} days were dropped: fewer than {min_coverage:.0%} of their slots are known; a "
            "longer `max_gap` or a lower `min_coverage` keeps more"
        )
    tenth = np.minimum(9, (coverage.by_user()[np.unique(user)] * 10).astype(np.int64))
    return traces, replace(
        so_far,
        users=traces.U,
        users_dropped=len(np.unique(user)) - traces.U,
        users_by_coverage=tuple(np.bincount(tenth, minlength=10).tolist()),
        days=int(enough.sum()),
        days_dropped=int((~enough).sum()),
        slots_observed=int(observed.sum()),
        slots_held=int((known & ~observed).sum()),
        slots_missing=int((~known).sum()),
        places_found=found,
        places=len(locations),
        places_rare=_rare(traces),
        gaps=gaps,
        min_coverage=min_coverage,
        step_minutes=step_minutes,
        tz=tz,
        coverage=replace(coverage, kept=enough),
        notes=(*so_far.notes, *notes),
    )


def _evidence(
    locations: Locations, enough: NDArray[np.bool_], row: Ints, slot: Ints, lat: Floats, lon: Floats, radius: Floats
) -> Evidence | None:
    kept = enough[row]
    number = np.cumsum(enough) - 1
    return evidence_of(locations, number[row[kept]], slot[kept], lat[kept], lon[kept], radius[kept])


def _rare(traces: Traces) -> int:
    """Places that somebody visits, but fewer than five users (E31)."""
    at, slot = np.nonzero(traces.r >= 0)
    visits = np.unique(traces.user[at] * traces.R + traces.r[at, slot])
    users = np.bincount(visits % traces.R, minlength=traces.R)
    return int(((users > 0) & (users < FEW)).sum())


def _subset(locations: Locations, keep: Ints) -> Locations:
    if locations.xy is not None:
        return Locations(xy=locations.xy[keep])
    if locations.lat is not None and locations.lon is not None:
        return Locations(locations.lat[keep], locations.lon[keep])
    names = None if locations.names is None else [locations.names[i] for i in keep]
    return Locations(n=len(keep), names=names)
