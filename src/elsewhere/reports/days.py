"""
Days: hour by hour all together, and one by one to step through on the map; in the owner's report real ones beside.

Fakes are shown in an order that depends on nothing but their places, so that neither the order of a file nor that of
the seeds reaches the page. The script (days.js) draws from numbers alone; places that no shown day visits are not sent.
"""

import hashlib
from typing import Any, NamedTuple

import numpy as np

from elsewhere.reports.atlas import NO_MAP, STRIP, Sheet, most_visited
from elsewhere.reports.markup import Child, data, tag
from elsewhere.reports.svg import Series, plot
from elsewhere.traces.model import Ints, Places, Traces

MOST_DAYS = 24
MOST_BACKGROUND = 600


def rows_by_hash(r: Places) -> Ints:
    """
    Return at most MOST_DAYS rows, chosen and ordered by a hash of their places.

    Examples
    --------
    >>> import numpy as np
    >>> r = np.array([[0, 1], [2, 3], [4, 5]], dtype=np.int32)
    >>> r[rows_by_hash(r)].tolist() == r[::-1][rows_by_hash(r[::-1])].tolist()
    True

    """
    keys = [hashlib.sha256(np.ascontiguousarray(row, dtype="<i4").tobytes()).digest() for row in r]
    return np.array(sorted(range(len(r)), key=lambda i: (keys[i], i))[:MOST_DAYS], dtype=np.int64)


class Hours(NamedTuple):
    """Hours of the day that have slots, and for each of them the share that is away, and trips per 100 people."""

    hour: list[float]
    away: list[float]
    trips: list[float]


def hours(traces: Traces) -> Hours:
    """
    Return who is away from his main place, and who sets out, by hour of the day.

    The main place of a row is where it has most slots (the first of several); away is the share of the known
    slots of an hour that are elsewhere, in per cent; a trip counts in the hour of the first slot at the new
    place, per 100 rows.

    Examples
    --------
    >>> import elsewhere as ew
    >>> hours(ew.Traces([[0, 0, 1, 0], [2, 1, 2, -1]], ew.Locations(n=3), step_minutes=60)).away[:3]
    [0.0, 50.0, 50.0]

    """
    hour = (traces.minutes() // 60).astype(np.int64)
    known = traces.r >= 0
    row, slot = np.nonzero(known)
    place = traces.r[row, slot].astype(np.int64)
    stay, count = np.unique(row * traces.R + place, return_counts=True)
    order = np.lexsort((stay, -count, stay // traces.R))
    # every row has a slot, so each row's first is its own
    main = stay[order][np.unique(stay[order] // traces.R, return_index=True)[1]] % traces.R
    slots = np.bincount(hour, known.sum(axis=0), 24)
    off = np.bincount(hour, (known & (traces.r != main[:, None])).sum(axis=0), 24)
    moved = (row[1:] == row[:-1]) & (place[1:] != place[:-1])
    trips = np.bincount(hour[slot[1:][moved]], minlength=24)
    there = np.flatnonzero(slots > 0)
    return Hours(
        (there + 0.5).tolist(),
        (100 * off[there] / slots[there]).tolist(),
        (100 * trips[there] / len(traces)).tolist(),
    )


def chart_hours(fakes: Traces | None, real: Traces | None) -> list[Child]:
    """Draw two charts by hour of the day, fakes against real traces: who is away from his main place, who sets out."""
    looks = ((real, "real traces", "real", "square", "5 3"), (fakes, "fakes", "fake", "circle", ""))
    curves = [(hours(t), look) for t, *look in looks if t is not None]
    if all(len(h.hour) < 2 for h, _ in curves):
        return []
    charts = []
    for figure, y, title, caption in (
        ("away", "away from the main place, % of people", "Away from the main place, by hour",
         "Main place of a day: where most of it is spent."),
        ("trips", "trips per 100 people and hour", "Trips, by hour", "A trip is a change of place."),
    ):  # fmt: skip
        series = [Series(words, h.hour, getattr(h, figure), ink, shape, dash=dash)
                  for h, (words, ink, shape, dash) in curves]  # fmt: skip
        charts.append(plot(series, x="hour of the day, local clock", y=y, title=title, caption=caption, x_range=(0, 24),
                           x_ticks=(0, 6, 12, 18, 24), size=2.8))  # fmt: skip
    return [tag("div", charts, class_="charts wide")]


def step_through(
    fakes: Traces,
    *,
    real: Traces | None = None,
    seed: Ints | None = None,
    label: Ints | None = None,
    shareable: bool,
) -> list[Child]:
    """
    Draw a map on which a reader steps through days.

    Parameters
    ----------
    fakes
        The fake days.
    real
        Real days beside them (owner's report only).
    seed
        (F,) row of `real` that each fake was made from, where that is known.
    label
        (R,) class of each place, said beside its letter.
    shareable
        Whether the report may be given away: it then says that it holds no real days.

    """
    order = rows_by_hash(fakes.r)
    of_all = f" of {len(fakes):,} fakes" if len(order) < len(fakes) else f" fake{'s' * (len(order) != 1)}"
    words = f"{len(order)}{of_all}, in no order."
    if shareable:
        words += " Real days are never part of a shareable report."
    elif real is None:
        words += " No real traces were given to stand beside them."
    places = fakes.locations if real is None else real.locations
    if not places.has_coordinates:
        return [tag("p", words), tag("p", NO_MAP, " Days cannot be stepped through either.", class_="note")]
    beside = None
    if real is not None:
        beside = real.r[seed[order] if seed is not None else np.resize(rows_by_hash(real.r), len(order))]
    # drawn are the places of these days, and around them the most visited of all fakes
    stays = np.concatenate([fakes.r[order], *([] if beside is None else [beside])])
    visits = np.bincount(stays[stays >= 0], minlength=len(places))
    visits_by_place = np.bincount(fakes.r[fakes.r >= 0], minlength=fakes.R)
    around = np.flatnonzero(most_visited(visits_by_place))
    around = around[np.argsort(-visits_by_place[around], kind="stable")[:MOST_BACKGROUND]]
    drawn = visits > 0
    drawn[around] = True
    sheet = Sheet.of(places, drawn, visits + visits_by_place / visits_by_place.max())
    number = np.append(np.cumsum(drawn) - 1, -1)  # the last for missing slots, -1
    name = "" if real is None else " and its seed" if seed is not None else " and real day {}"
    values = {
        "width": sheet.width,
        "height": round(sheet.height - STRIP, 1),
        "x": np.round(sheet.x[drawn], 1).tolist(),
        "y": np.round(sheet.y[drawn], 1).tolist(),
        "class": None if label is None else (label[drawn] + 1).tolist(),
        "clock": _clock(fakes),
        "days": [
            {
                "name": f"Fake {i + 1}{name.format(i + 1)}",
                "fake": number[fakes.r[row]].tolist(),
                "real": None if beside is None else number[beside[i]].tolist(),
            }
            for i, row in enumerate(order)
        ],
    }
    picture = tag("div", data(values, id="days-data"), _controls(values, sheet), class_="days", id="days")
    return [tag("p", words), picture]


def _clock(traces: Traces) -> list[str]:
    """Return the local time of each slot, with the number of the day where there are several."""
    start = traces.minutes()[0]
    minutes = np.round(start + traces.step_minutes * np.arange(traces.L)).astype(np.int64)
    long = minutes[-1] >= 1440
    return [f"{f'day {m // 1440 + 1}, ' if long else ''}{m % 1440 // 60:02d}:{m % 60:02d}" for m in minutes.tolist()]


def _controls(values: dict[str, Any], sheet: Sheet) -> list[Child]:
    options = [tag("option", d["name"], value=i) for i, d in enumerate(values["days"])]
    last, ground = len(values["clock"]) - 1, sheet.ground()
    return [
        tag("noscript", tag("p", "Stepping through the days needs JavaScript, which this browser does not run.")),
        tag(
            "div",
            tag("label", "Day ", tag("select", options, id="days-which")),
            tag("button", "◀ Back", id="days-back", type="button"),
            tag("button", "Next ▶", id="days-next", type="button"),
            tag("button", "Play", id="days-play", type="button", aria_pressed="false"),
            class_="controls",
        ),
        tag(
            "div",
            tag("input", type="range", id="days-slot", min=0, max=last, value=0, step=1, aria_label="Time of day"),
            tag("output", values["clock"][0], id="days-clock", for_="days-slot"),
            class_="controls",
        ),
        tag("p", id="days-said", class_="said", aria_live="polite"),
        tag(
            "figure",
            tag("svg", ground.below, tag("g", ground.above, id="days-names"), sheet.scale(),
                viewBox=f"0 0 {sheet.width:g} {sheet.height:.1f}", id="days-map", role="img",
                aria_label="Map of the day; the text above says where it is", class_="map"),
        ),
        tag("div", id="days-strips", class_="strip"),
    ]  # fmt: skip
