"""
Days: hour by hour all together, and one by one to step through on the map; in the owner's report real ones beside.

Fakes are shown in an order that depends on nothing but their places, so that neither the order of a file nor that of
the seeds reaches the page. The script (days.js) draws from numbers alone; places that no shown day visits are not sent.
"""

import hashlib
from typing import Any, NamedTuple

import numpy as np

from elsewhere.reports.atlas import NO_MAP, STRIP, Sheet, most_visited
from elsewhere.reports.markup import Child, Markup, data, tag
from elsewhere.reports.svg import Series, plot
from elsewhere.traces.model import Ints, Places, Traces

MOST_DAYS = 24
MOST_BACKGROUND = 600


def in_no_order(r: Places) -> Ints:
    """
    Return at most MOST_DAYS rows, chosen and ordered by a hash of their places.

    Examples
    --------
    >>> import numpy as np
    >>> r = np.array([[0, 1], [2, 3], [4, 5]], dtype=np.int32)
    >>> r[in_no_order(r)].tolist() == r[::-1][in_no_order(r[::-1])].tolist()
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


def by_hour(fakes: Traces | None, real: Traces | None) -> list[Child]:
    """Draw two charts by hour of the day, fakes against real traces: who is away from his main place, who sets out."""
    looks = ((real, "real traces", "real", "square", "5 3"), (fakes, "fakes", "fake", "circle", ""))
    curves = [(hours(t), look) for t, *look in looks if t is not None]
    if all(len(h.hour) < 2 for h, _ in curves):
        return []

    def chart(which: str, y: str, title: str, caption: str) -> Markup:
        series = [
            Series(words, h.hour, getattr(h, which), ink, shape, dash=dash) for h, (words, ink, shape, dash) in curves
        ]
        return plot(series, x="hour of the day, local clock", y=y, title=title, caption=caption, x_range=(0, 24),
                    x_ticks=(0, 6, 12, 18, 24), size=2.8)  # fmt: skip

    charts = [
        chart("away", "away from the main place, % of people", "Away from the main place, by hour",
              "Main place of a day: where most of it is spent."),
        chart("trips", "trips per 100 people and hour", "Trips, by hour", "A trip is a change of place."),
    ]  # fmt: skip
    return [tag("div", charts, class_="charts wide")]


def days(fakes: Traces, *, real: Traces | None = None, seed: Ints | None = None, label: Ints | None = None) -> Markup:
    """
    Draw the step-through map.

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

    """
    places = fakes.locations if real is None else real.locations
    if not places.has_coordinates:
        return tag("p", NO_MAP, " Days cannot be stepped through either.", class_="note")
    order = in_no_order(fakes.r)
    beside: list[Any] = [None] * len(order)
    if real is not None:
        rows = seed[order] if seed is not None else np.resize(in_no_order(real.r), len(order))
        beside = [real.r[i] for i in rows]
    every = [fakes.r[order], *(row[None] for row in beside if row is not None)]
    stays = np.concatenate([r.ravel() for r in every])
    visits = np.bincount(stays[stays >= 0], minlength=len(places))
    visits_by_place = np.bincount(fakes.r[fakes.r >= 0], minlength=fakes.R)
    around = np.flatnonzero(most_visited(visits_by_place))
    around = around[np.argsort(-visits_by_place[around], kind="stable")[:MOST_BACKGROUND]]
    shown = visits > 0
    shown[around] = True
    sheet = Sheet.of(places, shown, visits + visits_by_place / visits_by_place.max())
    number = np.cumsum(shown) - 1

    def numbered(row: Places) -> list[int]:
        return np.where(row >= 0, number[row], -1).tolist()  # type: ignore[no-any-return]

    values = {
        "width": sheet.width,
        "height": round(sheet.height - STRIP, 1),
        "x": np.round(sheet.x[shown], 1).tolist(),
        "y": np.round(sheet.y[shown], 1).tolist(),
        "class": None if label is None else (label[shown] + 1).tolist(),
        "clock": _clock(fakes),
        "days": [
            {"name": _name(i, real, seed), "fake": numbered(fakes.r[f]), "real": None if b is None else numbered(b)}
            for i, (f, b) in enumerate(zip(order, beside, strict=True))
        ],
    }
    return tag("div", data(values, id="days-data"), _controls(values, sheet), class_="days", id="days")


def _name(i: int, real: Traces | None, seed: Ints | None) -> str:
    if real is None:
        return f"Fake {i + 1}"
    return f"Fake {i + 1} and its seed" if seed is not None else f"Fake {i + 1} and real day {i + 1}"


def _clock(traces: Traces) -> list[str]:
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
