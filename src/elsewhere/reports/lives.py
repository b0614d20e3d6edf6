"""Lives over days on the page: every measure beside real people, the growth of places, the rhythm of the week."""

from collections.abc import Sequence
from typing import Any

from elsewhere.reports.given import Plain
from elsewhere.reports.markup import Child, Markup, number, percent, table, tag
from elsewhere.reports.svg import WIDTH, Frame, drawing, figure, key, ticks

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
KINDS = {7: DAYS, 2: ("weekday", "weekend"), 1: ("day",)}
PLACES = {"home": "At home", "main": "At the main place beside home"}
RULE = (
    "Real people are split into halves, 20 times. “Off by” is how far fakes are from one half: of measures of a person "
    "the difference of the means, as a share of the real one; of the others what does not match, of 100. The same "
    "between the two halves stands beside it. Near: fakes are off by at most 10 points more than that. "
    "“People”: the share of people who have another value than real people, and of the other half."
)


def in_short(result: Plain) -> str:
    """How many of the measures that people ask first are as near as real people, in a few words."""
    known = [m for m in _first(result) if m.get("within") is not None]
    near = sum(bool(m["within"]) for m in known)
    return (
        f"Lives over days: {near} of {len(known)} measures are near real people's, off by at most 10 points more than "
        "two halves of them are."
    )


def _first(result: Plain) -> list[Plain]:
    return [m for m in (result.get("measures") or {}).values() if m.get("first")]


def lives(result: Plain) -> Markup:
    """Table and pictures of one comparison of lives."""
    sizes = result.get("sizes") or {}
    people, days, fakes, made = (number(sizes.get(name)) for name in ("people", "days", "fakes", "fake_days"))
    said = str(result.get("in_words") or "")
    further = [m for m in (result.get("measures") or {}).values() if not m.get("first")]
    notes = result.get("notes") or []
    return tag(
        "div",
        tag("p", f"{people} real people with {days} days, {fakes} fakes with {made}: the days of a fake are one life. ",
            said[:1].upper() + said[1:]),
        _table(_first(result), "Measures of lives: fakes, real people, and how far both are off."),
        tag("details", tag("summary", "Further measures"), _table(further, "Further measures of lives."))
        if further else None,
        tag("div", _growth(result.get("growth") or {}), *_weeks(result.get("week") or {}), class_="charts wide"),
        tag("p", " ".join([RULE, *map(str, notes)]), class_="note"),
    )  # fmt: skip


def badge(measure: Plain) -> Markup:
    """The verdict on a measure as a small sign with its word."""
    sign, kind = {True: ("✓", "good"), False: ("✗", "bad")}.get(measure.get("within"), ("–", ""))  # type: ignore[arg-type]
    return tag("span", f"{sign} {measure.get('word', '')}", class_=f"verdict {kind}".strip())


def _table(measures: Sequence[Plain], caption: str) -> Markup:
    rows: list[list[Child]] = []
    for m in measures:
        means = [_mean(m.get(side), str(m.get("unit", ""))) for side in ("fakes", "real")]
        off = [percent(m.get(name), 0) for name in ("off", "halves")]
        apart = [percent(m.get(name), 0) for name in ("people_off", "people_halves")]
        rows.append([m.get("title", ""), badge(m), *means, *off, " / ".join(apart) if apart[0] != "–" else "–"])
    head = ["Measure", "Word", "Fakes", "Real people", "Fakes are off by", "Two halves of the people", "People"]
    return table(head, rows, numbers=range(2, 7), caption=caption)


def _mean(value: Any, unit: str) -> str:
    if not isinstance(value, (int, float)):
        return "–"
    return percent(value, 0) if unit == "%" else f"{number(float(value), 1 if value >= 1 else 2)} {unit}".strip()


def _growth(curve: Plain) -> Markup | None:
    days = curve.get("days") or []
    if len(days) < 2:
        return None
    return _picture(curve, days, x="days", y="distinct places", title="Distinct places against days", across=None,
                    caption="Mean over people who have so many days. Band: halves of the real people.")  # fmt: skip


def _weeks(week: Plain) -> list[Child]:
    kinds = week.get("kinds") or 1
    names = KINDS.get(kinds, DAYS)
    x = {7: "hour of the week", 2: "hour of the day", 1: "hour of the day"}.get(kinds, "hour")
    made: list[Child] = []
    for place, words in PLACES.items():
        if place in week:
            sides = ("fakes", "real", "low", "high")
            shares = {side: [None if v is None else 100 * v for v in week[place][side]] for side in sides}
            made.append(
                _picture(shares, week[place]["hour"], x=x, y="people, %", title=words, across=names,
                         caption="Share of people who are there at that hour. Band: halves of the real people.")
            )  # fmt: skip
    return made


def _picture(
    curve: Plain, along: Sequence[float], *, x: str, y: str, title: str, across: Sequence[str] | None, caption: str
) -> Markup:
    """Two lines, fakes and real people, over the band of halves; `across` names days of 24 hours along x."""
    known = [v for side in ("fakes", "real", "low", "high") for v in curve[side] if isinstance(v, (int, float))]
    upper = 100.0 if across else max([1.0, *known])
    marks = [24.0 * i for i in range(len(across) + 1)] if across else ticks(along[0], along[-1])
    names = [(24.0 * i + 12, name) for i, name in enumerate(across or ())]
    if across and len(across) == 1:
        marks, names = [0.0, 6.0, 12.0, 18.0, 24.0], []
    frame = Frame(marks, ticks(0, upper, 5), x, y, height=250, names=names)
    parts: list[Child] = [frame.axes()]
    band = [(a, lo, hi) for a, lo, hi in zip(along, curve["low"], curve["high"], strict=True) if None not in (lo, hi)]
    if band:
        there = [f"{frame.px(a):.1f} {frame.py(hi):.1f}" for a, _, hi in band]
        back = [f"{frame.px(a):.1f} {frame.py(lo):.1f}" for a, lo, _ in reversed(band)]
        parts.append(tag("path", d="M" + "L".join([*there, *back]) + "Z", class_="fill ink-real", fill_opacity="0.18"))
    for side, dash in (("real", "5 3"), ("fakes", None)):
        ink = "fake" if side == "fakes" else "real"
        parts.append(tag("path", d=_line(frame, along, curve[side]), class_=f"stroke ink-{ink}", stroke_dasharray=dash))
    ends = "; ".join(
        f"{name}: {number(_last(curve[side]), 1)} at the end"
        for side, name in (("fakes", "fakes"), ("real", "real people"))
    )
    picture = drawing(WIDTH, frame.height, f"{title} ({x}; {y}). {ends}", *parts)
    legend = key([("fakes", "fake", "line"), ("real people", "real", "dash")])
    return figure(picture, title=title, caption=caption, legend=legend)


def _line(frame: Frame, along: Sequence[float], values: Sequence[float | None]) -> str:
    """The way of a line; what is not known interrupts it."""
    way, lifted = "", True
    for a, v in zip(along, values, strict=True):
        if v is None:
            lifted = True
            continue
        way += f"{'M' if lifted else 'L'}{frame.px(a):.1f} {frame.py(v):.1f}"
        lifted = False
    return way or "M0 0"


def _last(values: Sequence[float | None]) -> float | None:
    return next((v for v in reversed(values) if v is not None), None)
