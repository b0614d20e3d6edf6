"""From places per slot to traces: thin days left out, unvisited places too, the rest merged, and everything counted."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidTraces, require_between
from elsewhere.traces.accuracy import evidence_of
from elsewhere.traces.clock import Times
from elsewhere.traces.fixes import Coverage, Preparation, Words, spoken_length
from elsewhere.traces.gaps import ENOUGH, cut, least_slots
from elsewhere.traces.model import Evidence, Floats, Ints, Locations, Traces
from elsewhere.traces.places import SHARED, reduce_places, share_places

MANY = 0.1  # of the days: so many are dropped with a word on how to keep them
MUCH = 0.25  # of the slots: so many filled ones are spoken of
FEW = 5  # users: a place of fewer is merged away before anything is learnt (E31)


def finish(
    r: Ints,
    observed: NDArray[np.bool_],
    outside: NDArray[np.bool_],
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
    words: Words | None,
    so_far: Preparation,
) -> tuple[Traces, Preparation]:
    """Thin days or users dropped, unvisited places left out unless given, places merged, everything counted."""
    require_between("min_coverage", min_coverage, 0, 1)
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
    found = int((visits > 0).sum())
    number = np.append(np.arange(len(locations)), -1)  # of each place that was found; the last is that of -1
    if not all_places and (locations.has_coordinates or locations.names is not None):  # plain numbers stay
        visited = np.flatnonzero(visits)
        number[:-1] = np.where(visits > 0, np.cumsum(visits > 0) - 1, -1)
        locations, visits = locations.select(visited), visits[visited]
    notes: list[str] = []
    if cells is not None and locations.has_coordinates:
        visited, visitor = _visitors(number[r], user[row])
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
        places_found=found,
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


def with_areas(locations: Locations, place: Ints, user: Ints, *, cells: int) -> tuple[Locations, Ints, list[str]]:
    """
    Keep the ids of places that people share, and join the others into areas: the places, what each became, notes.

    Ids are the input's own vocabulary. Up to `cells` of them all stay; of more, those that at least eight people visit
    (see `share_places`), and the others are joined with each other into areas without an id.

    Parameters
    ----------
    locations
        The places, with ids and coordinates.
    place, user
        The distinct pairs of a place and a user who visits it.
    cells
        How many places may remain, unless more are shared.

    """
    if len(locations) <= cells:
        return locations, np.arange(len(locations)), []
    stays = np.bincount(place, minlength=len(locations)) >= min(SHARED, len(np.unique(user)) // 2)
    rest = ~stays
    joined, kept = rest[place], locations.select(np.flatnonzero(stays)) if stays.any() else None
    becomes = np.cumsum(stays) - 1
    if not joined.any():
        return locations, np.arange(len(locations)), []
    areas, into = share_places(
        locations.select(np.flatnonzero(rest)),
        (np.cumsum(rest) - 1)[place[joined]],
        user[joined],
        cells=max(cells - int(stays.sum()), cells // 4, 1),
    )
    becomes[rest] = int(stays.sum()) + into
    both = areas if kept is None else kept.and_also(areas)
    note = (
        f"of {len(locations)} places with an id {int(stays.sum())} are visited by enough people and stay as they are; "
        f"the others were joined with their neighbours, into {sum(not name for name in both.names or ())} areas "
        "without an id (a larger `cells` keeps more apart)"
    )
    return both, becomes, [note]


def _visitors(r: Ints, user: Ints) -> tuple[Ints, Ints]:
    """
    Return who visits what, the distinct pairs of place and user, by place.

    On days without a gap, if enough people have one: of those alone fakes are made.
    """
    whole = np.all(r >= 0, axis=1)
    rows = np.flatnonzero(whole) if len(np.unique(user[whole])) >= FEW else np.arange(len(r))
    at, slot = np.nonzero(r[rows] >= 0)
    n = int(user.max()) + 1
    pairs = np.unique(r[rows][at, slot] * n + user[rows][at])
    return pairs // n, pairs % n


def majority(words: Words, R: int) -> dict[str, Any]:
    """
    Return the category of each of R places, and how many people gave it.

    Each person has one voice per place, for the word that most of the own rows there have; of equals the first in the
    order of the alphabet.
    """
    seen = (words.place >= 0) & (words.word >= 0)
    W, place, user, word = len(words.names), words.place[seen], words.user[seen], words.word[seen]
    voice, count = np.unique((user * R + place) * W + word, return_counts=True)
    order = np.lexsort((voice % W, -count, voice // W))
    _, first = np.unique(voice[order] // W, return_index=True)
    said = voice[order][first]
    vote, people = np.unique(said // W % R * W + said % W, return_counts=True)
    order = np.lexsort((vote % W, -people, vote // W))
    where, first = np.unique(vote[order] // W, return_index=True)
    categories, users = np.full(R, "", dtype=object), np.zeros(R, dtype=np.int64)
    categories[where] = np.array(words.names, dtype=object)[vote[order][first] % W]
    users[where] = people[order][first]
    return {"categories": categories.tolist(), "category_users": users}


def _on_words(locations: Locations) -> str:
    said = [word for word in locations.categories or () if word]
    return f"{len(said)} of {len(locations)} places have a category, that of most people there; {len(set(said))} differ"


def _evidence(
    locations: Locations, enough: NDArray[np.bool_], row: Ints, slot: Ints, lat: Floats, lon: Floats, radius: Floats
) -> Evidence | None:
    kept = enough[row]
    number = np.cumsum(enough) - 1
    return evidence_of(locations, number[row[kept]], slot[kept], lat[kept], lon[kept], radius[kept])


def _rare(traces: Traces) -> int:
    """Count the places that somebody visits, but fewer than five users (E31)."""
    users = traces.visitors()
    return int(((users > 0) & (users < FEW)).sum())
