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

    Of all people only some are learnt from, so a place needs more visitors than `m_min`: five of seeds that are seven
    in ten are eight of all.
    """
    from elsewhere.presets import PRESETS
    from elsewhere.split import least_users

    visitors = _visitors(traces)
    places = _shared(visitors, settings.m_min, settings)
    people, wanted = least_users(settings), 2 * settings.c_min
    there = (
        f"Here are {traces.U:,} people with a usable day ({len(traces) / traces.U:.1f} days each) and {places:,} places "
        f"that enough of them visit (`m_min` = {settings.m_min} of those who are learnt from)."
    )
    needs = f'Preset "{settings.name}" needs {people:,} people (`k` = {settings.k}) and {max(wanted, 2):,} such places;'
    others = [f'"{name}" {least_users(preset)}' for name, preset in PRESETS.items() if name != settings.name]
    return " ".join([there, needs, f"of people, {' and '.join(others)}.", *_ways(traces, visitors, places, settings)])


def _ways(traces: "Traces", visitors: "Ints", places: int, settings: "Preset") -> list[str]:
    from elsewhere.split import least_users

    missing = least_users(settings) - traces.U
    ways = [
        f"at least {missing:,} more people, your own or another owner's, in one file"
        if missing > 0
        else "more people, your own or another owner's, in one file; more days of the same people also help, since "
        "they then share more places"
    ]
    if missing > 0:
        ways[0] += " (more days of the same people do not help)"
        if settings.name == "product" and traces.U >= 2:
            k = max(2, traces.U // 2)
            ways.append(
                f"`-k {k}`: each fake then stands for {k} people at least instead of {settings.k}, so an attacker "
                f"guesses among {k}"
            )
    if places < 2 * settings.c_min:
        ways += _more_places(traces, visitors, places, settings)
    if settings.name == "deniable":
        ways.append("`--preset product`: fewer people, and tests instead of a proof (eps, delta)")
    if settings.name != "paper":
        ways.append(
            "decoys alone: `--preset paper` makes fakes of 2 people and more, to hide your own queries to a service "
            "among them (`elsewhere lbs` measures how well), never to publish"
        )
    numbered = "; ".join(f"({i}) {way}" for i, way in enumerate(ways, start=1))
    return [f"What you can do: {numbered}."]


def _more_places(traces: "Traces", visitors: "Ints", places: int, settings: "Preset") -> list[str]:
    """Ways to more places that enough people share, each with the number of places it gives here."""
    ways = []
    for m in (3, 2):
        found = _shared(visitors, m, settings)
        if m < settings.m_min and found >= FEWEST:
            c = min(settings.c_min, found // 2)
            smaller = f" --set c_min={c}" if c < settings.c_min else ""
            ways.append(f"`--set m_min={m}{smaller}`: {found:,} places, of which some then rest on {m} people alone")
            break
    if traces.locations.has_coordinates:
        from elsewhere.traces.places import reduce_places

        for cells in COARSER:
            if cells >= traces.R:
                continue
            _, becomes = reduce_places(traces.locations, visitors, cells=cells)
            found = _shared(_visitors(traces, becomes), settings.m_min, settings)
            if found >= 2 * settings.c_min:
                ways.append(f"coarser places, `--cells {cells}`: about {found:,} such places")
                break
    elif traces.locations.names is not None:
        ways.append("coarser places: a column of districts or of kinds of place, by `--columns place=NAME`")
    return ways


def _visitors(traces: "Traces", becomes: "Ints | None" = None) -> "Ints":
    """(R,) how many people visit each place; `becomes` says what place each one is part of."""
    import numpy as np

    row, slot = np.nonzero(traces.r >= 0)
    place = traces.r[row, slot] if becomes is None else becomes[traces.r[row, slot]]
    R = traces.R if becomes is None else int(becomes.max()) + 1
    return np.bincount(np.unique(traces.user[row] * R + place) % R, minlength=R)


def _shared(visitors: "Ints", m_min: int, settings: "Preset") -> int:
    """How many places so many of the people have who are learnt from: all, seven in ten, or half of them."""
    from elsewhere.split import SEED_SHARE

    share = {"product": SEED_SHARE, "deniable": 0.5}.get(settings.name, 1.0)
    return int((visitors >= math.ceil(m_min / share)).sum())
