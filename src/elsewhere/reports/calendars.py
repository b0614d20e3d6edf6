"""A calendar: one square per day, weeks across, the darker the more; for dates on which something was recorded."""

from collections.abc import Mapping

import numpy as np

from elsewhere.reports.markup import Child, Markup, number, tag
from elsewhere.reports.svg import drawing, figure, key

WEEKS = 22  # as many as a phone shows side by side; further ones go below
SQUARE, GAP = 13.0, 2.0
NAME = 4  # columns that the name of a month takes
STEPS = (0.25, 0.5, 0.75, 1.0)


def calendar(days: Mapping[str, float], *, unit: str, title: str, ink: str = "fake", caption: Child = None) -> Markup:
    """
    Days (ISO date -> value, at least 0) as squares under their months; a day that is not given stays an empty square.

    Examples
    --------
    >>> made = calendar({"2013-03-27": 3, "2013-03-28": 1}, unit="users", title="Recorded days")
    >>> "2013-03-27: 3 users" in made
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
                told = tag("title", f"{day}: {number(v, 0)} {unit}")
                parts.append(tag("rect", told, class_="fill", fill_opacity=level, **at))
    label = f"{title}: {len(value)} days from {dates[0]} to {dates[-1]}, at most {number(most, 0)} {unit} a day"
    legend = key([(f"darkest: {number(most, 0)} {unit}", ink, "bar")])
    wide = 26 + min(weeks, WEEKS) * (SQUARE + GAP)
    picture = drawing(max(360, wide), lines * tall, label, tag("g", parts, class_=f"ink-{ink}"))
    return figure(picture, title=title, legend=legend, caption=caption)


def _months(first: np.datetime64, weeks: int) -> list[tuple[int, str]]:
    """
    Where months are named above a line of weeks that starts on a Monday: column and name.

    Examples
    --------
    >>> _months(np.datetime64("2013-03-25"), 9)
    [(0, '2013-03/04'), (6, '2013-05')]

    """
    months = [str((first + np.timedelta64(7 * w, "D")).astype("datetime64[M]")) for w in range(weeks)]
    starts = [w for w in range(weeks) if w == 0 or months[w] != months[w - 1]]
    named = [(w, months[w]) for w in starts]
    if len(named) > 1 and starts[1] < NAME:
        # too few weeks of the first month for its name: it shares one with the second
        named[:2] = [(0, f"{months[0]}/{months[starts[1]][-2:]}")]
    return [(w, name) for w, name in named if w <= WEEKS - NAME + 1]
