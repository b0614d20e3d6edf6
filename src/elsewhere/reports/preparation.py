"""
The page of `elsewhere prepare`: how many rows, users, days were read, dropped, fixed, and why; places, settings.

It names users and shows their days and places: a private page, for the owner of the data alone.

A calendar: one square per day, weeks across, the darker the more; for dates on which something was recorded.
"""

from collections.abc import Mapping

import numpy as np

from elsewhere.reports.atlas import Sheet, map_of_visits, sources
from elsewhere.reports.markup import Child, Markup, Section, listing, number, page, percent, section, table, tag
from elsewhere.reports.svg import Bar, bars, figure, key
from elsewhere.traces.clock import Times
from elsewhere.traces.fixes import GAPS, Coverage, Preparation, length_text
from elsewhere.traces.model import Traces

WEEKS = 22  # as many as a phone shows side by side; further ones go below
SQUARE, GAP = 13.0, 2.0
NAME = 4  # columns that the name of a month takes
STEPS = (0.25, 0.5, 0.75, 1.0)


def calendar(days: Mapping[str, float], *, unit: str, title: str) -> Markup:
    """
    Draw days (ISO date -> value, at least 0) as squares under their months; a day that is not given stays an empty
    square.

    Examples
    --------
    >>> result = calendar({"2013-03-27": 3, "2013-03-28": 1}, unit="users", title="Recorded days")
    >>> "2013-03-27: 3 users" in result
    True

    """
    if not days:
        return tag("p", f"{title}: no day is recorded.", class_="note")
    dates = np.array(sorted(days), dtype="datetime64[D]")
    most = max([*(float(v) for v in days.values()), 1e-12])
    # 1970-01-01 was a Thursday: day 4 of a week that starts on Monday 0
    monday = dates[0] - np.timedelta64(int((dates[0].astype(int) + 3) % 7), "D")
    weeks = int((dates[-1] - monday).astype(int)) // 7 + 1
    value = {str(d): float(days[str(d)]) for d in dates}
    parts: list[Child] = []
    lines = -(-weeks // WEEKS)
    tall = 7 * (SQUARE + GAP) + 24
    for w in range(weeks):
        x, y = 26 + (w % WEEKS) * (SQUARE + GAP), 16 + (w // WEEKS) * tall
        first = monday + np.timedelta64(7 * w, "D")
        if w % WEEKS == 0:
            parts += [tag("text", name, x=0.0, y=y + i * (SQUARE + GAP) + 10, class_="soft")
                      for i, name in ((0, "Mo"), (3, "Th"), (6, "Su"))]  # fmt: skip
            parts += [tag("text", name, x=x + column * (SQUARE + GAP), y=y - 5, class_="soft")
                      for column, name in _months(first, min(WEEKS, weeks - w))]  # fmt: skip
        for d in range(7):
            day = first + np.timedelta64(d, "D")
            if not dates[0] <= day <= dates[-1]:
                continue
            v = value.get(str(day))
            level = next((s for s in STEPS if (v or 0) / most <= s), 1.0)
            at = {"x": x, "y": y + d * (SQUARE + GAP), "width": SQUARE, "height": SQUARE, "rx": 2.0}
            if v is None or v <= 0:
                parts.append(tag("rect", tag("title", f"{day}: none"), class_="grid", **at))
            else:
                tip = tag("title", f"{day}: {number(v, 0)} {unit}")
                parts.append(tag("rect", tip, class_="fill", fill_opacity=level, **at))
    label = f"{title}: {len(value)} days from {dates[0]} to {dates[-1]}, at most {number(most, 0)} {unit} a day"
    legend = key([(f"darkest: {number(most, 0)} {unit}", "fake", "bar")])
    wide = 26 + min(weeks, WEEKS) * (SQUARE + GAP)
    squares = tag("g", parts, class_="ink-fake")
    return figure(squares, max(360, wide), lines * tall, label, title=title, legend=legend)


def _months(first: np.datetime64, weeks: int) -> list[tuple[int, str]]:
    """
    Return where months are named above a line of weeks that starts on a Monday: column and name.

    Examples
    --------
    >>> _months(np.datetime64("2013-03-25"), 9)
    [(0, '2013-03/04'), (6, '2013-05')]

    """
    months = [str((first + np.timedelta64(7 * w, "D")).astype("datetime64[M]")) for w in range(weeks)]
    starts = [w for w in range(weeks) if w == 0 or months[w] != months[w - 1]]
    starts_named = [(w, months[w]) for w in starts]
    if len(starts_named) > 1 and starts[1] < NAME:
        # too few weeks of the first month for its name: it shares one with the second
        starts_named[:2] = [(0, f"{months[0]}/{months[starts[1]][-2:]}")]
    return [(w, name) for w, name in starts_named if w <= WEEKS - NAME + 1]


MOST_USERS, MOST_DAYS = 120, 140  # in the picture of coverage
MOST_NAMES = 200
REASONS = {
    "E_CSV": "more or fewer fields than the first line",
    "E_ENCODING": "an id with characters that are no text",
    "E_USER": "no user id",
    "E_DATE": "no readable time",
    "E_NUMBER": "a number that cannot be read",
    "E_OUTSIDE": "outside the globe",
    "E_NULL_ISLAND": "at latitude 0, longitude 0, where nobody else is: no position",
    "E_INDEX": "no place",
    "E_SPEED": "a single jump that no airliner could make",
    "repeated": "the same fix twice",
    "contradicted": "a second place at the same instant; the first was kept",
}
PLACES_BY = {
    "given": "places are those that the input names",
    "regions": "places are the polygons given as regions",
    "shared": "places are grid cells of {grid} m; those that fewer than eight people visit were joined with their "
    "neighbours, so that places are small where many people are and large where few are",
    "merge": "places are grid cells of {grid} m, rarely visited neighbours merged until the wanted number is left",
    "grid": "places are grid cells of {grid} m",
    "points": "places are the points of the input, as they are: few different ones, which people share",
    "stays": "places are grid cells of {grid} m in which somebody stays 20 minutes, joined where few people visit",
}
MAPS = {
    "auto": "the map is where people are nearly all the time, about {km} km wide; slots outside are missing",
    "whole": "the map is everywhere anybody was",
    "box": "the map is the box that was given; slots outside are missing",
    "regions": "the map is the regions that were given; slots outside are missing",
}


def preparation_page(traces: Traces, prepared: Preparation) -> Markup:
    """
    Return the whole page.

    Examples
    --------
    >>> import elsewhere as ew
    >>> reports = []
    >>> day = {"uid": ["ann"] * 72, "slot": range(72), "loc": [0] * 30 + [1] * 42}
    >>> "1 user" in preparation_page(ew.read_traces(day, report=reports.append), reports[0])
    True

    """
    sections = [
        _read_section(prepared),
        _days_section(prepared),
        _places_section(traces, prepared),
        _settings_section(prepared),
    ]
    lead = [
        tag("p", tag("span", "Private: names real people and their days", class_="edition private")),
        tag("p", _summary(prepared), class_="lead"),
        tag("div", [_tile(*each) for each in _tiles(prepared)], class_="tiles"),
    ]
    return page("How the input was understood", sections, lead=lead)


def _count(count: int, word: str) -> str:
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def _slots(p: Preparation) -> int:
    return max(1, p.slots_observed + p.slots_held + p.slots_missing)


def _summary(p: Preparation) -> str:
    return (
        f"{_count(p.rows, 'row')} became {_count(p.days, 'day')} of {_count(p.users, 'user')} at "
        f"{_count(p.places, 'place')}; {percent((p.slots_observed + p.slots_held) / _slots(p))} of all slots are known."
    )


def _tiles(p: Preparation) -> list[tuple[str, str]]:
    return [
        (number(p.rows - sum(p.dropped.values())), f"rows used, {sum(p.dropped.values()):,} dropped"),
        (number(p.users), f"users, {p.users_dropped:,} dropped"),
        (number(p.users_usable), "users with a usable day, one known from end to end"),
        (number(p.days), f"days, {p.days_dropped:,} dropped"),
        (number(p.days_usable), "days that can be used: the others have gaps and will be left out"),
        (percent(p.slots_observed / _slots(p)), "of slots observed"),
        (percent(p.slots_held / _slots(p)), "of slots filled"),
        (percent(p.slots_missing / _slots(p)), "of slots missing"),
        (number(p.places), f"places, joined from {p.places_found:,}" if p.places < p.places_found else "places"),
    ]


def _tile(value: str, what: str) -> Markup:
    return tag("div", tag("strong", value), tag("br"), tag("span", what), class_="tile")


def _read_section(p: Preparation) -> Section:
    rows: list[list[Child]] = [["rows in the input", number(p.rows), ""]]
    rows += [["dropped", number(n), REASONS.get(why, why)] for why, n in p.dropped.items()]
    rows += [["repaired", number(n), REASONS.get(why, why)] for why, n in p.fixed.items()]
    least = percent(p.min_coverage, 0)
    thin = (
        f"users of whose slots fewer than {least} are known"
        if p.gaps == "drop"
        else f"fewer than {least} of the slots known"
    )
    rows += [
        ["days dropped", number(p.days_dropped), f"{thin}, or fixes in one slot alone ({p.days_single:,} days)"],
        ["days that lead outside the map", number(p.days_outside), f"of {_count(p.users_outside, 'user')}; not usable"],
        ["users dropped", number(p.users_dropped), "no day is left"],
    ]
    counts_table = table(["what", "how many", "why"], rows, caption="Rows, days and users", numbers=[1])
    return section("Read, dropped, repaired", counts_table, listing(p.notes) if p.notes else None)


def _days_section(p: Preparation) -> Section:
    c = p.coverage
    tenths = [
        Bar(f"{10 * i} to {10 * (i + 1)} %", float(n), "fake", shown=_count(n, "user"))
        for i, n in enumerate(p.users_by_coverage)
    ]
    parts: list[Child] = []
    if c is not None and c.date is not None:
        parts += [_coverage_picture(c, c.date), _calendar(c, c.date)]
    parts.append(bars(tenths, unit="users", title="Users by share of their slots that are known"))
    charts = tag("div", parts, class_="charts")
    return section("Days and gaps", _gap_table(p), charts, _dropped_users(c) if c is not None else None)


def _gap_table(p: Preparation) -> Child:
    """Return how many people each longest gap would keep, with the one that was taken."""
    if not p.people_by_gap or p.max_gap_minutes is None:
        return None
    choice = length_text(p.max_gap_minutes)
    rows: list[list[Child]] = [
        [gap, number(people), "taken" if gap == choice else ""] for gap, people in p.people_by_gap.items()
    ]
    if choice not in p.people_by_gap:
        rows.append([choice, number(p.users_usable), "taken"])
    how = "the shortest that keeps enough people" if p.max_gap_auto else "as it was asked for"
    caption = f"Users with a usable day, by the longest gap that is filled; {choice} was taken, {how}"
    return table(["gaps filled up to", "users", ""], rows, caption=caption, numbers=[1])


def _coverage_picture(c: Coverage, date: Times) -> Markup:
    """Draw one line per user, one square per day: the darker the more is known; a frame where the day was dropped."""
    share = c.by_user
    users = [u for u in np.argsort(-share, kind="stable") if np.any(c.user == u)][:MOST_USERS]
    line = {int(u): i for i, u in enumerate(users)}
    days = np.unique(date)[:MOST_DAYS]
    span = int((days[-1] - days[0]).astype(int)) + 1
    wide, tall = max(2.0, min(12.0, 352 / span)), max(4.0, min(12.0, 480 / len(users)))
    squares: list[Child] = []
    for i in np.flatnonzero(np.isin(c.user, users) & (date <= days[-1])):
        x, y = 4 + wide * int((date[i] - days[0]).astype(int)), 18 + tall * line[int(c.user[i])]
        tip = f"user {c.labels[c.user[i]]}, {date[i]}: {percent(float(c.known[i]), 0)} known"
        at = {"x": x, "y": y, "width": wide - 0.6, "height": tall - 0.6}
        if c.kept[i]:
            squares.append(
                tag("rect", tag("title", tip), class_="fill", fill_opacity=0.15 + 0.85 * float(c.known[i]), **at)
            )
        else:
            squares.append(
                tag("rect", tag("title", f"{tip}, dropped"), class_="fill ink-real", fill_opacity=0.55, **at)
            )
    ends = [tag("text", str(days[0]), x=4.0, y=11.0, class_="soft")]
    if span > 30:
        ends.append(tag("text", str(days[-1]), x=4 + wide * span, y=11.0, text_anchor="end", class_="soft"))
    legend = key([("kept, the darker the more is known", "fake", "bar"), ("dropped", "real", "bar")])
    others = len(np.unique(c.user)) - len(users)
    more = f" {others:,} users with less coverage are not drawn." if others else ""
    return figure(
        [tag("g", squares, class_="ink-fake"), ends],
        360,
        22 + tall * len(users),
        f"Coverage of {len(users)} users over {span} days",
        title="Every user's days",
        legend=legend,
        caption=f"One line per user, best known first; one square per day.{more}",
    )


def _calendar(c: Coverage, date: Times) -> Markup:
    days, count = np.unique(date[c.kept], return_counts=True)
    return calendar(
        {str(d): float(n) for d, n in zip(days, count, strict=True)}, unit="users", title="Users per day that was kept"
    )


def _dropped_users(c: Coverage) -> Child:
    kept = np.bincount(c.user, c.kept, len(c.labels)) > 0
    users = [u for u in np.unique(c.user) if not kept[u]]
    if not users:
        return tag("p", "No user was dropped.", class_="note")
    share, days = c.by_user, np.bincount(c.user, minlength=len(c.labels))
    best = np.zeros(len(c.labels))
    np.maximum.at(best, c.user, c.known)
    rows = [
        [c.labels[u], number(int(days[u])), percent(float(share[u])), percent(float(best[u]))]
        for u in users[:MOST_NAMES]
    ]
    more = f"; the first {MOST_NAMES} of {len(users):,}" if len(users) > MOST_NAMES else ""
    head = ["user", "days with fixes", "slots known", "best day"]
    return table(head, rows, caption=f"Users who were dropped{more}", numbers=[1, 2, 3])


def _places_section(traces: Traces, p: Preparation) -> Section:
    visits = np.bincount(traces.r[traces.r >= 0], minlength=traces.R)
    rare = f"{p.places_rare:,} of {_count(p.places, 'place')} are visited by fewer than five users; before anything is "
    rare += "learnt they are merged into the nearest place that more people share."
    here, maps = traces.locations, [map_of_visits(traces.locations, visits, title="Where the slots are", unit="slots")]
    if here.has_coordinates:
        whole = Sheet.of(here, visits > 0)
        if whole.km > Sheet.of(here, visits > 0, visits).km:
            title = "All of them, the few far ones too"
            maps.append(map_of_visits(here, visits, title=title, unit="slots", sheet=whole))
    return section("Places", sources(here), tag("div", maps, class_="charts wide"), tag("p", rare))


def _settings_section(p: Preparation) -> Section:
    longest = "–" if p.max_gap_minutes is None else length_text(p.max_gap_minutes)
    gaps = GAPS.get(p.gaps, "").format(max_gap=longest, min_coverage=percent(p.min_coverage, 0))
    if not p.max_gap_minutes:
        gaps = "slots that the input lacks are missing; nothing is filled"
    words: list[Child] = [
        f"one slot is {length_text(p.step_minutes or 0)}; days and hours are those of the clock of {p.tz}",
        f"gaps ({p.gaps}): {gaps}" if p.max_gap_minutes else gaps,
        MAPS[p.map].format(km=number(p.map_km, 0)),
        PLACES_BY.get(p.places_by, p.places_by).format(grid=number(p.grid_metres, 0)),
    ]
    if p.gaps != "drop":
        words.append(f"a day is kept if {percent(p.min_coverage, 0)} of its slots are known")
    columns = table(
        ["role", "column"], [[role, name] for role, name in p.columns.items()], caption="Columns that were read"
    )
    return section("Settings in words", listing(words), columns if p.columns else None)
