"""
How an input is read for the whole job: the options, the days without a gap, and what became of the rest.

Where there are too few people for any fake, errors carry advice: what there is, what it takes, what each way costs.

The deniable preset must not look at seeds before it has places and a clock: `read_apart` decides by a coin for each id
who is a seed, before anything is read; it reads the people who are no seeds, who give places, clock and how gaps are
filled; then everybody, on what those gave.
"""

import hmac
import math
import secrets
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from elsewhere.errors import ElsewhereError, InvalidParameter, InvalidTraces, NotEnoughUsers, counted
from elsewhere.run.presets import DRAWN_GAP, PROVEN, PUBLIC_GAP, Reading

if TYPE_CHECKING:
    from elsewhere.run.presets import Preset
    from elsewhere.traces.fixes import Preparation
    from elsewhere.traces.model import Ints, Traces

# the faults that come of too few people, or of too few places that enough of them share
SMALL = ("E_TOO_FEW", "E_SUPPRESSED", "E_TOO_FEW_PLACES", "E_NOTHING_PASSED")
FEWEST = 4  # places: with fewer there is nowhere to be elsewhere
COARSER = (200, 100, 50, 25, 12)  # numbers of cells that are tried out
NOT_FOUND = ("given", "regions")  # ways to places that are not found in the fixes


@contextmanager
def advised(traces: "Traces", settings: "Preset", read: "Preparation | None" = None) -> Iterator[None]:
    """
    Add to an error that comes of too few people or shared places what the owner of `traces` can do.

    Where it is known how they were `read`, the people without a usable day are counted too.
    """
    try:
        yield
    except ElsewhereError as error:
        if error.code in SMALL:
            error.add_note(advice(traces, settings, read))
        elif error.code == "E_EPS" and read is not None:  # the same words whoever is in the file
            error.add_note(
                f"Only people with a usable day count, with gaps of up to {PUBLIC_GAP} filled unless `max_gap` gives "
                "another length; `elsewhere plan` says how many each length leaves."
            )
        raise


def advice(traces: "Traces", settings: "Preset", read: "Preparation | None" = None) -> str:
    """
    Return in one paragraph what there is, what the presets need, and which ways are left, with numbers.

    Only some people are learnt from, so a place needs more visitors than `m_min`: see `_shared`.
    """
    from elsewhere.run.presets import PRESETS
    from elsewhere.run.roles import USUAL_USERS, least_users

    visitors, least = traces.visitors(), least_users(settings)
    places = _shared(visitors, traces.U, settings)
    there = (
        f"Here {'is' if traces.U == 1 else 'are'} {counted(traces.U, 'person', 'people')} with a usable day "
        f"({len(traces) / traces.U:.1f} days each) and about {counted(places, 'place')} that enough of those visit who "
        f"are learnt from (`m_min` = {settings.m_min})."
    )
    others = [f'"{name}" {_people(preset)}' for name, preset in PRESETS.items() if name != settings.name]
    needs = (
        f'Preset "{settings.name}" needs at least {least:,} people (`k` = {settings.k}, `m_min` = {settings.m_min}) '
        f"and {max(2, settings.c_min):,} such places, {max(4, 2 * settings.c_min):,} for two classes of places "
        f"(`c_min` = {settings.c_min}); of people, {', '.join(others[:-1])} and {others[-1]}."
    )
    if settings.name == "product":
        needs += f" About {USUAL_USERS} people usually share as many places."
    ways = []
    everybody = 0 if read is None else read.users + read.users_dropped
    if read is not None and read.users_usable < least <= everybody:
        # where coins were thrown, gaps are counted of those alone who are no seeds: about half
        gap = longer_gap(read, least if read.seeds is None else math.ceil(least / 2))
        more = "" if gap is None else f"`max_gap={gap}`, which keeps "
        blocked = ", and ".join(read.in_the_way())
        ways.append(f"{more}more of the {everybody:,} people in the file; in the way: {blocked}")
    if traces.U < least:
        ways.append(
            f"at least {least - traces.U:,} more people, your own or another owner's, in one file (more days of the "
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
    listing = "; ".join(f"({i}) {way}" for i, way in enumerate(ways, start=1))
    return f"{there} {needs} What you can do: {listing}."


def _smaller(traces: "Traces", visitors: "Ints", settings: "Preset") -> list[str]:
    """Return the smallest step down in k and `m_min` that leaves enough people and places, with what it costs."""
    from elsewhere.run.roles import least_users

    if settings.name != "product":
        return []
    for m in (settings.m_min, 3, 2):
        for k in (settings.k, 7, 5, 3):
            weaker = settings.changed(k=k, m_min=m)
            shared_places = _shared(visitors, traces.U, weaker)
            if k > settings.k or m > settings.m_min or weaker == settings:
                continue
            if traces.U < least_users(weaker) or shared_places < FEWEST:
                continue
            c = min(settings.c_min, shared_places // 2)
            ways = [f"`k={k}`"] * (k < settings.k) + [f"`m_min={m}`"] * (m < settings.m_min)
            ways += [f"`c_min={c}`"] * (c < settings.c_min)
            costs = [f"each fake then stands for {k} people at least, not {settings.k}"] * (k < settings.k)
            costs += [f"a place in the fakes may be that of {m} people alone"] * (m < settings.m_min)
            return [f"{' '.join(ways)} makes it {shared_places:,} places; {' and '.join(costs) or 'classes are small'}"]
    return []


def _coarser(traces: "Traces", settings: "Preset") -> list[str]:
    """Return larger places, which more people share, with the number of them."""
    if traces.locations.has_coordinates:
        for cells in (n for n in COARSER if n < traces.R):
            shared_places = _shared(with_joined(traces, cells).visitors(), traces.U, settings)
            if shared_places >= settings.c_min:
                return [
                    f"larger places, `cells={cells}`: about {shared_places:,} of them would be shared by enough people"
                ]
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
    before, least = _shared(traces.visitors(), traces.U, settings), 2 * max(settings.c_min, 2)
    if before >= least or traces.R < 2:
        return traces, []
    coarser = with_joined(traces)
    after = _shared(coarser.visitors(), traces.U, settings)
    if after <= before or coarser.R < 2:
        return traces, []
    return coarser, [
        f"only {before:,} of {traces.R:,} places are shared by enough people: neighbouring places were joined, and "
        f"{after:,} of {coarser.R:,} are; `cells={traces.R}` leaves them as they are"
    ]


def with_joined(traces: "Traces", cells: int | None = None) -> "Traces":
    """
    Return the same days at places that several people share, at most `cells` of them.

    Who shares a place is told by the days without a gap, of which fakes are made.
    """
    import numpy as np

    from elsewhere.sorting import distinct_visits
    from elsewhere.traces.places import share_places

    whole = np.all(traces.r >= 0, axis=1)
    place, user = distinct_visits(traces.user[whole], traces.r[whole])
    most = traces.R if cells is None else cells
    fewer, becomes = share_places(traces.locations, place, user, cells=most)
    return traces.with_map(fewer, np.where(traces.r >= 0, becomes[traces.r], -1))


def _people(settings: "Preset") -> int:
    """Return how many people it takes."""
    from elsewhere.run.roles import least_users

    if settings.name != "private":
        return least_users(settings)
    from elsewhere.privacy.private.release import people_needed

    return people_needed(settings.eps, settings.delta)


def _shared(visitors: "Ints", people: int, settings: "Preset") -> int:
    """
    Return how many places will be shared by `m_min` of those who are learnt from, who are drawn at random: on
    average.
    """
    from elsewhere.run.roles import SEED_SHARE

    sample = {
        "product": people - max(settings.k - 1, round((1 - SEED_SHARE) * people), 1),
        "deniable": people // 2,
    }.get(settings.name, people)
    return 0 if sample < 1 else int((visitors >= math.ceil(settings.m_min * people / sample)).sum())


def people_by_a_public_gap(read: "Preparation", people: int) -> int:
    """Return how many people presets with a theorem would find, which fill gaps by `PUBLIC_GAP`; `people` if given."""
    return read.people_by_gap.get(PUBLIC_GAP, people) if read.max_gap_auto else people


def longer_gap(read: "Preparation", needed: int) -> str | None:
    """Return the shortest longest gap beyond `PUBLIC_GAP` that keeps so many people; None where there is none."""
    gaps = list(read.people_by_gap)
    beyond = gaps[gaps.index(PUBLIC_GAP) + 1 :] if PUBLIC_GAP in gaps else []
    return next((gap for gap in beyond if read.people_by_gap[gap] >= needed), None)


def read_whole(
    source: Any,
    reading: Reading,
    settings: "Preset",
    least: int | None = None,
    facts: Mapping[str, Any] | None = None,
    coins: bytes | None = None,
    executor: Executor | None = None,
    missing: str = "drop",
) -> "tuple[Traces, Preparation]":
    """
    Return the days without a gap of an input, and what became of it; refused where they are of too few people.

    `least` people are needed, by default those that the preset needs. Places that too few people share are joined,
    unless they were asked for. How a folder says (`facts`) that its input was read is done again, see
    `Reading.as_made`. The deniable preset finds its map in people who are no seeds; `coins` are 32 bytes that decide
    who is one, by default of the operating system. With `missing` "gibbs" no day is left out for a gap: slots that are
    not known, and those of which the accuracy of a fix leaves several places, are drawn from the person's own chain, by
    `coins` too, and gaps up to an hour are filled before.
    """
    from elsewhere.checkpoint import generator
    from elsewhere.profiles.markov import fill_slots, uncertain_slots

    coins = secrets.token_bytes(32) if coins is None else coins

    def usable(traces: "Traces") -> "Traces":
        if missing == "drop":
            return whole_rows(traces)
        periods = 1 if settings.learning is None else settings.learning.periods
        return fill_slots(traces, periods=periods, rng=generator(coins, "missing"))

    by_default = (reading.cells, reading.places) == (Reading.cells, Reading.places)
    joins = by_default and reading.locations is None and reading.regions is None and reading.grid is None
    join = (lambda others: join_places(usable(others), settings)[0]) if joins else None
    keywords = {**(reading if facts is None else reading.as_made(facts)).keywords(settings), "executor": executor}
    if missing == "gibbs":
        keywords |= {"evidence": True} | ({"max_gap": DRAWN_GAP} if reading.max_gap == "auto" else {})
    traces, read = _read(source, settings, keywords, coins if facts is None else None, join)
    if missing == "gibbs":
        uncertain = uncertain_slots(traces)
        extent = (
            f"{int(uncertain.sum()):,} of {uncertain.size:,} slots, on {int(uncertain.any(axis=1).sum()):,} of "
            f"{len(traces):,} days, were drawn by Gibbs sampling, each from its person's own days"
        )
        read = replace(read, users_usable=traces.U, missing=missing, notes=(*read.notes, extent))
    whole = _of_enough(usable, traces, read, settings, least)
    notes = _without_a_day(whole, traces, read)
    if joins and read.seeds is None:
        whole, on_joined = join_places(whole, settings)
        read = replace(read, places=whole.R, joined_for_fakes=bool(on_joined))
        notes += on_joined
    return whole, replace(read, notes=(*read.notes, *notes))


def _read(
    source: Any,
    settings: "Preset",
    keywords: Mapping[str, Any],
    coins: bytes | None,
    join: "Callable[[Traces], Traces] | None",
) -> "tuple[Traces, Preparation]":
    """Read by keywords of `read_traces`; with `coins` the deniable preset has the map of people who are no seeds."""
    from elsewhere.traces.read import read_traces
    from elsewhere.traces.write import find_prepared

    prepared = find_prepared(source) is not None
    if settings.name == "private" and prepared:
        raise InvalidParameter(
            'preset "private" needs a map that these people have not shaped, and this folder was prepared with its '
            "own: give the file it was made from, with `grid`, `locations` or `regions`.",
            code="E_MAP",
        )
    reports: list[Preparation] = []
    if settings.name == "deniable" and coins is not None and not prepared:
        traces = read_apart(source, key=coins, report=reports.append, join=join, **keywords)
    else:
        traces = read_traces(source, report=reports.append, **keywords)
    if settings.name == "private" and reports[0].by == "slots":
        raise InvalidParameter(
            'preset "private" protects everybody in the file, and these are numbered slots: how many a day has, and '
            "which, would be read off the people. Give a file with a column of times; or choose the slots yourself, "
            "make `Traces` of them, and call `generate_fakes`.",
            code="E_SLOTS",
        )
    return traces, reports[0]


def _of_enough(
    usable: "Callable[[Traces], Traces]", traces: "Traces", read: "Preparation", settings: "Preset", least: int | None
) -> "Traces":
    """Return the usable days; refused where they are of fewer people than `least`, or all at one place."""
    from elsewhere.run.roles import least_users

    if least is None:
        # where a theorem covers the fakes, how many people there are is no reason to refuse before the split says so
        least = 1 if settings.name in PROVEN else least_users(settings)
    if read.users_usable == 0:
        raise InvalidTraces(_too_few(read, settings, least), code="E_GAPS")
    whole = usable(traces)
    with advised(whole, settings):
        if read.users_usable < min(least, read.users + read.users_dropped):  # of people all usable it is not said
            raise NotEnoughUsers(_too_few(read, settings, least))
        if read.places_found > 1 and (whole.r == whole.r[0, 0]).all():
            raise InvalidTraces(
                "no place is shared by enough people: joined until enough share them, all places are one; give more "
                "people, or say with `places` or `locations` what the places are.",
                code="E_SUPPRESSED",
            )
    return whole


def _too_few(read: "Preparation", settings: "Preset", least: int) -> str:
    """Return all that stands in the way of making fakes, with numbers, in one message."""
    people, days = read.users + read.users_dropped, read.days + read.days_dropped
    usable = f"{read.users_usable:,} of {people:,} people have a usable day, one known from end to end"
    wish = f" (`k` = {settings.k})" if settings.k else ""
    need = f'preset "{settings.name}" needs {least:,}{wish}'
    return f"{usable}, and {need}; in the way, of {days:,} days: {'; '.join(read.in_the_way())}."


def _without_a_day(whole: "Traces", traces: "Traces", read: "Preparation") -> list[str]:
    """Return how many people have a day that can be used, and why the others have none; how many days are left out."""
    people, notes = read.users + read.users_dropped, []
    if whole.U < people:
        why = "; ".join(read.in_the_way(by_gap=False))  # the notes of the reading have them
        notes.append(f"{whole.U:,} of {people:,} people have a usable day, one known from end to end: {why}")
    if len(whole) < len(traces):
        days, gaps = len(traces) + read.days_dropped, len(traces) - len(whole)
        losses = f"{read.days_dropped:,} were dropped, {gaps:,} more" if read.days_dropped else f"{gaps:,}"
        notes.append(f"{len(whole):,} of {days:,} days can be used: {losses} have gaps and are left out")
    return notes


def whole_rows(traces: "Traces") -> "Traces":
    """Return the rows without a gap, which alone can be seeds."""
    import numpy as np

    whole = np.all(traces.r >= 0, axis=1)
    if not whole.any():
        raise InvalidTraces(
            f"none of {len(traces)} days of {traces.U} users is complete, and only whole days can be seeds; a longer "
            "`max_gap` or `step` fills more.",
            code="E_GAPS",
        )
    return traces if whole.all() else traces.select(whole)


def coin(key: bytes, label: str) -> bool:
    """
    Return the coin of a person: as good as a fair one for whoever does not know the key, and the same every time.

    Examples
    --------
    >>> [coin(b"a key of 32 bytes, of the system", person) for person in ("ann", "bob", "cid")]
    [False, False, True]

    """
    return bool(hmac.digest(key, label.encode(), "sha256")[0] & 1)


def read_apart(
    source: Any,
    *,
    key: bytes,
    report: "Callable[[Preparation], None] | None" = None,
    join: "Callable[[Traces], Traces] | None" = None,
    **options: Any,
) -> "Traces":
    """
    Return the traces of an input on a map that was found in those whose `coin` is not a seed's.

    The `Preparation` that `report` is called with names the seeds (`seeds`); None where there was no map to find, or
    where slots are numbered, so that everybody decides how many there are: then it is read as `read_traces` does.

    Parameters
    ----------
    source, options
        As for `read_traces`.
    key
        32 bytes of the operating system, to be forgotten.
    report
        As for `read_traces`.
    join
        What is to be done to the map before others are read on it, from traces of people who are no seeds to traces on
        another map.

    """
    from elsewhere.traces.maps import COARSE_METRES, FoundMap, parse_box
    from elsewhere.traces.read import read_traces
    from elsewhere.traces.sources import load_pipe

    source = load_pipe(source, allow_truncated=bool(options.get("allow_truncated")))
    reports: list[Preparation] = []
    if options.get("regions") is not None or options.get("locations") is not None:
        return read_traces(source, report=report, **options)
    others = read_traces(
        source, people=lambda label: not coin(key, label), report=reports.append, **{**options, "evidence": False}
    )
    of_others = reports[0]
    if of_others.places_by in NOT_FOUND or of_others.by == "slots":
        return read_traces(source, report=report, **options)
    fewer = others if join is None else join(others)
    place = FoundMap(
        fewer.locations,
        (),
        reach=COARSE_METRES / 1000 if of_others.map == "auto" else math.inf,
        box=None if options.get("box") is None else parse_box(options["box"]),
    )
    # what was decided for the others holds for everybody; with places given, positions are treated one person at a time
    traces = read_traces(
        source,
        report=reports.append,
        **{
            **options,
            "regions": place,
            "columns": {**(options.get("columns") or {}), "place": None},
            "tz": of_others.tz,
            "places": "grid" if of_others.places_by == "points" else of_others.places_by,
            "max_gap": of_others.max_gap_minutes,
        },
    )
    alike = ("places_by", "cells", "grid_metres", "map", "map_km", "max_gap_auto", "people_by_gap", "times", "columns")
    of_all = replace(
        reports[1],
        **{name: getattr(of_others, name) for name in alike},
        joined_for_fakes=fewer is not others,
        seeds=frozenset(str(label) for label in traces.labels if coin(key, str(label))),
        notes=(*reports[1].notes, "the map was found in people who are no seeds"),
    )
    if report is not None:
        report(of_all)
    return traces
