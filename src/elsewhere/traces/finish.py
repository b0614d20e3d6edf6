"""From places per slot to traces: thin days left out, unvisited places too, the rest merged, and everything counted."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidTraces, require_between, require_whole
from elsewhere.traces.accuracy import evidence_of
from elsewhere.traces.clock import Times
from elsewhere.traces.fixes import Coverage, Preparation, Words
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
    words: Words | None,
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
    number = np.append(np.arange(len(locations)), -1)  # of each place that was found; the last is that of -1
    if not all_places and (locations.has_coordinates or locations.names is not None):  # plain numbers stay
        visited = np.flatnonzero(visits)
        number[:-1] = np.where(visits > 0, np.cumsum(visits > 0) - 1, -1)
        locations, visits = locations.select(visited), visits[visited]
    notes: list[str] = []
    if cells is not None and require_whole("cells", cells, 1) < len(locations) and locations.has_coordinates:
        people = _people(number[r], user[row], len(locations))
        locations, becomes, notes = merged(locations, visits, people, cells)
        number = np.where(number >= 0, becomes[number], -1)
    r = number[r]
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
    if traces.R == 1:
        notes.append("everything lies in one place: nothing can be learnt from it")
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


def merged(locations: Locations, visits: Ints, people: Ints, cells: int) -> tuple[Locations, Ints, list[str]]:
    """
    Merge places until `cells` remain (E74): the places, the number of the one each has become, and notes.

    Places with names are the input's own vocabulary: those that at least five of the `people` visit stay as they are,
    and the others are merged among themselves, into areas without a name.
    """
    stays = people >= FEW if locations.names is not None else np.zeros(len(locations), dtype=bool)
    rest = np.flatnonzero(~stays)
    areas = max(cells - int(stays.sum()), cells // 4, 1)
    if len(rest) <= areas:
        return locations, np.arange(len(locations)), []
    fewer, into = reduce_places(locations.select(rest), visits[rest], cells=areas)
    if not stays.any():
        apart, becomes = fewer, into
    else:
        kept = locations.select(np.flatnonzero(stays))
        sides: dict[str, Any] = {
            side: np.concatenate([getattr(kept, side), getattr(fewer, side)])
            for side in ("lat", "lon", "xy")
            if getattr(kept, side) is not None
        }
        becomes = np.empty(len(locations), dtype=np.int64)
        becomes[stays], becomes[rest] = np.arange(len(kept)), len(kept) + into
        apart = Locations(**sides, names=(*(kept.names or ()), *(fewer.names or ())))
    if locations.names is None:
        return apart, becomes, []
    note = (
        f"of {len(locations)} places with an id {int(stays.sum())} are visited by at least {FEW} people and stay as "
        f"they are; the others were merged with their neighbours until {len(apart)} were left, "
        f"{sum(not name for name in apart.names or ())} of them areas without an id (a larger `cells` keeps more apart)"
    )
    return apart, becomes, [note]


def _people(r: Ints, user: Ints, R: int) -> Ints:
    """How many people visit each place, on days without a gap if there are any: of those alone fakes are made."""
    whole = np.all(r >= 0, axis=1)
    rows = np.flatnonzero(whole) if len(np.unique(user[whole])) >= FEW else np.arange(len(r))
    at, slot = np.nonzero(r[rows] >= 0)
    pairs = np.unique(user[rows][at] * R + r[rows][at, slot])
    return np.bincount(pairs % R, minlength=R)


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
    """Places that somebody visits, but fewer than five users (E31)."""
    at, slot = np.nonzero(traces.r >= 0)
    visits = np.unique(traces.user[at] * traces.R + traces.r[at, slot])
    users = np.bincount(visits % traces.R, minlength=traces.R)
    return int(((users > 0) & (users < FEW)).sum())
