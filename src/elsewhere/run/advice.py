"""What owners of few people can do where no fakes can be made: what there is, what it takes, what each way costs."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from elsewhere.errors import ElsewhereError

if TYPE_CHECKING:
    from elsewhere.presets import Preset
    from elsewhere.traces.model import Ints, Traces

# the faults that come of too few people, or of too few places that enough of them share
SMALL = ("E_TOO_FEW", "E_SUPPRESSED", "E_TOO_FEW_PLACES", "E_NOTHING_PASSED")
FEWEST = 4  # places: with fewer there is nowhere to be elsewhere
COARSER = (200, 100, 50, 25, 12)  # numbers of cells that are tried out


@contextmanager
def advised(traces: "Traces", settings: "Preset") -> Iterator[None]:
    """Add to an error that comes of too few people or shared places what the owner of `traces` can do."""
    try:
        yield
    except ElsewhereError as error:
        if error.code in SMALL:
            error.add_note(advice(traces, settings))
        raise


def advice(traces: "Traces", settings: "Preset") -> str:
    """
    Return in one paragraph what there is, what the presets need, and which ways are left, with numbers.

    Only some people are learnt from, so a place needs more visitors than `m_min`: see `_shared`.
    """
    from elsewhere.presets import PRESETS
    from elsewhere.split import least_users

    visitors, needed = traces.visitors(), least_users(settings)
    places = _shared(visitors, traces.U, settings)
    there = (
        f"Here are {traces.U:,} people with a usable day ({len(traces) / traces.U:.1f} days each) and about {places:,} "
        f"places that enough of those visit who are learnt from (`m_min` = {settings.m_min})."
    )
    others = [f'"{name}" {_people(preset)}' for name, preset in PRESETS.items() if name != settings.name]
    needs = (
        f'Preset "{settings.name}" needs {needed:,} people (`k` = {settings.k}, `m_min` = {settings.m_min}) and '
        f"{max(2, settings.c_min):,} such places, {max(4, 2 * settings.c_min):,} for two classes of places (`c_min` = "
        f"{settings.c_min}); of people, {', '.join(others[:-1])} and {others[-1]}."
    )
    ways = []
    if traces.U < needed:
        ways.append(
            f"at least {needed - traces.U:,} more people, your own or another owner's, in one file (more days of the "
            "same people do not help)"
        )
    else:
        ways.append(
            "more people, your own or another owner's, in one file; more days of the same people help too, because "
            "they then share more places"
        )
    ways += _smaller(traces, visitors, settings)
    if places < 2 * settings.c_min:
        ways += _coarser(traces, settings)
    if settings.name == "deniable":
        ways.append('`preset="product"`: fewer people, but tests instead of a proof')
    if settings.name != "paper":
        ways.append(
            'decoys alone: `preset="paper"` makes fakes of 2 people and more, to hide your own queries to a service '
            "among them (`elsewhere lbs` measures how well), never to publish"
        )
    numbered = "; ".join(f"({i}) {way}" for i, way in enumerate(ways, start=1))
    return f"{there} {needs} What you can do: {numbered}."


def _smaller(traces: "Traces", visitors: "Ints", settings: "Preset") -> list[str]:
    """The smallest step down in k and `m_min` that leaves enough people and places, with what it costs."""
    from elsewhere.split import least_users

    if settings.name != "product":
        return []
    for m in (settings.m_min, 3, 2):
        for k in (settings.k, 7, 5, 3):
            weaker = settings.changed(k=k, m_min=m)
            found = _shared(visitors, traces.U, weaker)
            if k > settings.k or m > settings.m_min or weaker == settings:
                continue
            if traces.U < least_users(weaker) or found < FEWEST:
                continue
            c = min(settings.c_min, found // 2)
            given = [f"`k={k}`"] * (k < settings.k) + [f"`m_min={m}`"] * (m < settings.m_min)
            given += [f"`c_min={c}`"] * (c < settings.c_min)
            costs = [f"each fake then stands for {k} people at least, not {settings.k}"] * (k < settings.k)
            costs += [f"a place in the fakes may be that of {m} people alone"] * (m < settings.m_min)
            return [f"{' '.join(given)} makes it {found:,} places; {' and '.join(costs) or 'classes are small'}"]
    return []


def _coarser(traces: "Traces", settings: "Preset") -> list[str]:
    """Larger places, which more people share, with the number of them."""
    if traces.locations.has_coordinates:
        for cells in (n for n in COARSER if n < traces.R):
            found = _shared(with_joined(traces, cells).visitors(), traces.U, settings)
            if found >= settings.c_min:
                return [f"larger places, `cells={cells}`: about {found:,} of them would be shared by enough people"]
    elif traces.locations.names is not None:
        return ["larger places: a column of districts or of kinds of place, given by `columns` as place"]
    return []


def join_places(traces: "Traces", settings: "Preset") -> "tuple[Traces, list[str]]":
    """
    Join neighbouring places where too few are shared for two classes, and say so; the traces as they are if it is vain.

    Places with ids of the input are left alone: an id stands for one place.
    """
    if settings.name == "paper" or not traces.locations.has_coordinates or traces.locations.names is not None:
        return traces, []
    before, wanted = _shared(traces.visitors(), traces.U, settings), 2 * max(settings.c_min, 2)
    if before >= wanted or traces.R < 2:
        return traces, []
    joined = with_joined(traces)
    after = _shared(joined.visitors(), traces.U, settings)
    if after <= before or joined.R < 2:
        return traces, []
    return joined, [
        f"only {before:,} of {traces.R:,} places are shared by enough people: neighbouring places were joined, and "
        f"{after:,} of {joined.R:,} are; `cells={traces.R}` leaves them as they are"
    ]


def with_joined(traces: "Traces", cells: int | None = None) -> "Traces":
    """
    The same days at places that several people share, at most `cells` of them.

    Who shares a place is told by the days without a gap, of which fakes are made.
    """
    import numpy as np

    from elsewhere.traces.places import share_places

    whole = np.all(traces.r >= 0, axis=1)
    pairs = np.unique(traces.r[whole].astype(np.int64) * traces.U + traces.user[whole, None])
    most = traces.R if cells is None else cells
    fewer, becomes = share_places(traces.locations, pairs // traces.U, pairs % traces.U, cells=most)
    return traces.on(fewer, np.where(traces.r >= 0, becomes[traces.r], -1))


def _people(settings: "Preset") -> int:
    """How many people it takes."""
    from elsewhere.split import least_users

    if settings.name != "private":
        return least_users(settings)
    from elsewhere.private import people_needed

    return people_needed(settings.eps, settings.delta)


def _shared(visitors: "Ints", people: int, settings: "Preset") -> int:
    """How many places will be shared by `m_min` of those who are learnt from, who are drawn at random: on average."""
    from elsewhere.split import SEED_SHARE

    learnt = {
        "product": people - max(settings.k - 1, round((1 - SEED_SHARE) * people), 1),
        "deniable": people // 2,
    }.get(settings.name, people)
    return 0 if learnt < 1 else int((visitors >= math.ceil(settings.m_min * people / learnt)).sum())
