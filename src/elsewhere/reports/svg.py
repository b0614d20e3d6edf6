"""
Charts as SVG: bars, histograms, points with intervals, and an interval against its bar.

All are drawn 360 units wide, the width of a phone, so their letters stay readable there. Every series has a colour
(Okabe and Ito, set in style.css) and a second cue: a shape, a dash or its name. Every axis names its unit.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from elsewhere.reports.markup import Child, Markup, number, tag

WIDTH = 360
SHAPES = ("circle", "square", "triangle", "diamond", "cross", "ring", "frame", "arrow")


class Bar(NamedTuple):
    """One bar: what it is, how long, in which ink ("fake", "real", "test", "base", ...), and its interval."""

    name: str
    value: float | None
    ink: str = "fake"
    interval: Sequence[float] | None = None
    shown: str | None = None


class Series(NamedTuple):
    """Points: x, y, ink and shape; `low`, `high` are ends of intervals of y; a dash joins them, "" for a full line."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    ink: str = "fake"
    shape: str = "circle"
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dash: str | None = None


def figure(
    picture: Child,
    width: float,
    height: float,
    label: str,
    *,
    title: str | None = None,
    caption: Child = None,
    legend: Child = None,
) -> Markup:
    """Return an SVG picture with title, legend and a sentence below it; `label` is read to those who do not see it."""
    return tag(
        "figure",
        None if title is None else tag("h4", title),
        legend,
        tag("svg", picture, viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=label),
        None if caption is None else tag("figcaption", caption),
        class_="plot",
    )


def mark(shape: str, x: float, y: float, size: float, class_: str, **more: object) -> Markup:
    """Draw one of `SHAPES` around a point."""
    s = size
    if shape == "circle":
        return tag("circle", cx=x, cy=y, r=s, class_=class_, **more)
    if shape == "square":
        return tag("rect", x=x - 0.9 * s, y=y - 0.9 * s, width=1.8 * s, height=1.8 * s, class_=class_, **more)
    if shape == "ring":
        return tag("circle", cx=x, cy=y, r=0.85 * s, class_=class_.replace("fill", "stroke"), **more)
    if shape == "frame":
        side = 1.6 * s
        return tag("rect", x=x - side / 2, y=y - side / 2, width=side, height=side,
                   class_=class_.replace("fill", "stroke"), **more)  # fmt: skip
    corners = {
        "triangle": [(0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
        "arrow": [(0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
        "diamond": [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
        "cross": [(-.4, -1.2), (.4, -1.2), (.4, -.4), (1.2, -.4), (1.2, .4), (.4, .4),
                  (.4, 1.2), (-.4, 1.2), (-.4, .4), (-1.2, .4), (-1.2, -.4), (-.4, -.4)],
    }[shape]  # fmt: skip
    points = " ".join(f"{x + s * a:.1f},{y + s * b:.1f}" for a, b in corners)
    return tag("polygon", points=points, class_=class_, **more)


def key(items: Sequence[tuple[str, str, str]]) -> Markup:
    """Return the legend of (name, ink, shape); shape may also be "line", "dash", "tick", "bar" or "hollow"."""
    entries = []
    for name, ink, shape in items:
        if shape == "tick":
            sample = tag("line", class_="stroke", x1=11.0, y1=1.0, x2=11.0, y2=13.0)
        elif shape in ("line", "dash"):
            dash = "4 3" if shape == "dash" else None
            sample = tag("line", class_="stroke", stroke_dasharray=dash, x1=0.0, y1=7.0, x2=22.0, y2=7.0)
        elif shape == "bar":
            sample = tag("rect", x=2.0, y=2.0, width=18.0, height=10.0, class_="fill")
        elif shape == "hollow":
            sample = mark("diamond", 11.0, 7.0, 4.0, "stroke")
        else:
            sample = mark(shape, 11.0, 7.0, 4.5, "fill")
        picture = tag("svg", sample, viewBox="0 0 22 14", class_=f"ink-{ink}", aria_hidden="true")
        entries.append(tag("li", picture, name))
    return tag("ul", entries, class_="legend")


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """
    Return round numbers from at or below `low` to at or above `high`.

    Examples
    --------
    >>> ticks(0, 0.93)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]

    """
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        high = low + 1 if math.isfinite(low) else 1.0
        low = low if math.isfinite(low) else 0.0
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(m for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def bars(rows: Sequence[Bar], *, unit: str, title: str, caption: Child = None, top: float | None = None) -> Markup:
    """
    Draw bars that lie, each below its name; the value stands at the right, the unit under the axis.

    Examples
    --------
    >>> "visits (km)" in bars([Bar("walks", 2.5)], unit="visits (km)", title="How far")
    True

    """
    finite = [r for r in rows if r.value is not None and math.isfinite(r.value)]
    reach = max([0.0, *(max([r.value or 0.0, *(r.interval or [])]) for r in finite)])
    scale = ticks(0, top if top is not None else reach or 1.0, 4)
    left, right, row = 4.0, 300.0, 34.0
    height = row * len(rows) + 40
    axis = [0.0, scale[-1]], [left, right]
    parts: list[Child] = []
    for tick, x in zip(scale, np.interp(scale, *axis).tolist(), strict=True):
        parts.append(tag("line", x1=x, x2=x, y1=4.0, y2=height - 34, class_="grid"))
        parts.append(tag("text", f"{tick:g}", x=x, y=height - 20, text_anchor="middle", class_="soft"))
    for i, r in enumerate(rows):
        y = row * i + 6
        parts.append(tag("text", r.name, x=left, y=y + 9))
        if r.value is None or not math.isfinite(r.value):
            parts.append(tag("text", "not measured", x=left, y=y + 24, class_="soft"))
            continue
        length = max(1.0, float(np.interp(r.value, *axis)) - left)
        parts.append(tag("rect", x=left, y=y + 13, width=length, height=12.0, class_=f"fill ink-{r.ink}"))
        if r.interval is not None and all(math.isfinite(e) for e in r.interval):
            low, high = np.interp(r.interval, *axis)
            whisker = f"M{low:.1f} {y + 15:g}v8M{low:.1f} {y + 19:g}H{high:.1f}M{high:.1f} {y + 15:g}v8"
            parts.append(tag("path", d=whisker, class_="axis"))
        value = r.shown if r.shown is not None else number(r.value)
        parts.append(tag("text", value, x=WIDTH - 4.0, y=y + 23, text_anchor="end"))
    parts.append(tag("text", unit, x=(left + right) / 2, y=height - 5, text_anchor="middle", class_="soft"))
    description = "; ".join(f"{r.name}: {r.shown if r.shown is not None else number(r.value)}" for r in rows)
    return figure(parts, WIDTH, height, f"{title} ({unit}). {description}", title=title, caption=caption)


class Frame:
    """Axes with ticks, grid and labels, or names along x in place of numbers; maps values to the picture."""

    def __init__(
        self,
        x: Sequence[float],
        y: Sequence[float],
        x_label: str,
        y_label: str,
        height: float = 240,
        names: Sequence[tuple[float, str]] = (),
    ) -> None:
        self.x, self.y, self.height = list(x), list(y), height
        self.x_label, self.y_label = x_label, y_label
        self.names = names or [(tick, f"{tick:g}") for tick in self.x]
        self.left, self.right, self.top, self.bottom = 44.0, WIDTH - 8.0, 24.0, height - 38.0

    def px(self, value: float) -> float:
        """Return the pixel of x, across."""
        return float(np.interp(value, [self.x[0], self.x[-1]], [self.left, self.right]))

    def py(self, value: float) -> float:
        """Return the pixel of y, down."""
        return float(np.interp(value, [self.y[0], self.y[-1]], [self.bottom, self.top]))

    def axes(self) -> Markup:
        """Draw grid, numbers and labels; the label of y stands above the axis, where a phone can read it."""
        parts: list[Child] = []
        for tick in self.y:
            parts.append(tag("line", x1=self.left, x2=self.right, y1=self.py(tick), y2=self.py(tick), class_="grid"))
            parts.append(tag("text", f"{tick:g}", x=self.left - 5, y=self.py(tick) + 4, text_anchor="end", class_="soft"))  # noqa: E501 # fmt: skip
        parts += [
            tag("line", x1=self.px(tick), x2=self.px(tick), y1=self.bottom, y2=self.bottom + 4, class_="axis")
            for tick in self.x
        ]
        parts += [
            tag("text", name, x=self.px(at), y=self.bottom + 16, text_anchor="middle", class_="soft")
            for at, name in self.names
        ]
        parts.append(tag("line", x1=self.left, x2=self.right, y1=self.bottom, y2=self.bottom, class_="axis"))
        middle = (self.left + self.right) / 2
        parts.append(tag("text", self.x_label, x=middle, y=self.height - 6, text_anchor="middle", class_="soft"))
        parts.append(tag("text", self.y_label, x=4.0, y=12.0, class_="soft"))
        return tag("g", parts)


def histogram(
    edges: Sequence[float],
    series: Sequence[tuple[str, Sequence[float], str]],
    *,
    x: str,
    y: str,
    title: str,
    caption: Child = None,
) -> Markup:
    """
    Draw shares per bin in per cent: the first series (name, shares, ink) as bars, further ones as dashed outlines.

    Examples
    --------
    >>> result = histogram([0, 1], [("all", [1.0], "fake")], x="age, years", y="people, %", title="Ages")
    >>> 'aria-label="Ages (age, years; people, %)' in result
    True

    """
    tallest = max([0.01, *(100 * s for _, shares, _ in series for s in shares)])
    frame = Frame(ticks(edges[0], edges[-1], 5), ticks(0, tallest, 4), x, y)
    parts: list[Child] = [frame.axes()]
    for i, (_, shares, ink) in enumerate(series):
        if i == 0:
            shapes = [
                tag("rect", x=frame.px(a) + 0.5, y=frame.py(100 * s), width=max(0.5, frame.px(b) - frame.px(a) - 1),
                    height=frame.bottom - frame.py(100 * s), class_="fill faint")
                for a, b, s in zip(edges[:-1], edges[1:], shares, strict=True) if s > 0
            ]  # fmt: skip
            parts.append(tag("g", shapes, class_=f"ink-{ink}"))
        else:
            steps = "".join(
                f"V{frame.py(100 * s):.1f}H{frame.px(b):.1f}" for b, s in zip(edges[1:], shares, strict=True)
            )
            outline = f"M{frame.left:.1f} {frame.bottom:.1f}{steps}V{frame.bottom:.1f}"
            parts.append(tag("path", d=outline, class_=f"stroke ink-{ink}", stroke_dasharray="5 3"))
    legend = (
        key([(n, ink, "dash" if i else "bar") for i, (n, _, ink) in enumerate(series)]) if len(series) > 1 else None
    )
    description = "; ".join(f"{name}: largest share {100 * max(shares):.0f} %" for name, shares, _ in series)
    label = f"{title} ({x}; {y}). {description}"
    return figure(parts, WIDTH, frame.height, label, title=title, caption=caption, legend=legend)


def plot(
    series: Sequence[Series],
    *,
    x: str,
    y: str,
    title: str,
    caption: Child = None,
    diagonal: bool = False,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
    lines: Sequence[tuple[str, float]] = (),
    x_ticks: Sequence[float] | None = None,
    x_names: Sequence[str] = (),
    size: float = 4.5,
) -> Markup:
    """
    Draw points with intervals, joined by lines where a series has a dash; `lines` are named heights, `diagonal` is y =
    x.

    `x_ticks` are the numbers along x, by default round ones, `x_names` what stands at them instead.

    Examples
    --------
    >>> result = plot([Series("ours", [1, 2], [.1, .2])], x="km", y="share", title="Error by distance")
    >>> result.count("<circle")
    2

    """
    xs = [v for s in series for v in s.x if math.isfinite(v)] or [0.0, 1.0]
    ys = [v for s in series for v in (*s.y, *(s.low or ()), *(s.high or ())) if math.isfinite(v)] or [0.0, 1.0]
    ys += [value for _, value in lines]
    across, up = x_range or (min(xs), max(xs)), y_range or (min(0.0, *ys), max(ys))
    names = list(zip(x_ticks or (), x_names, strict=False))
    frame = Frame(ticks(*across) if x_ticks is None else x_ticks, ticks(*up), x, y, height=270, names=names)
    parts: list[Child] = [frame.axes()]
    if diagonal:
        low, high = max(frame.x[0], frame.y[0]), min(frame.x[-1], frame.y[-1])
        parts.append(tag("line", x1=frame.px(low), y1=frame.py(low), x2=frame.px(high), y2=frame.py(high),
                         class_="axis", stroke_dasharray="2 3"))  # fmt: skip
    for name, value in lines:
        parts.append(tag("line", x1=frame.left, x2=frame.right, y1=frame.py(value), y2=frame.py(value),
                         class_="axis", stroke_dasharray="6 3"))  # fmt: skip
        parts.append(tag("text", name, x=frame.left + 4, y=frame.py(value) - 4, class_="soft"))
    for s in series:
        points = [(frame.px(a), frame.py(b)) for a, b in zip(s.x, s.y, strict=True) if math.isfinite(a + b)]
        inside: list[Child] = []
        if s.dash is not None and len(points) > 1:
            way = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
            inside.append(tag("path", d=way, class_="stroke", stroke_dasharray=s.dash or None, stroke_opacity="0.6"))
        for a, low, high in zip(s.x, s.low or (), s.high or (), strict=False):
            if math.isfinite(a + low + high):
                top, end = frame.py(high), frame.py(low)
                inside.append(tag("path", d=f"M{frame.px(a) - 3:.1f} {top:.1f}h6m-3 0V{end:.1f}m-3 0h6", class_="stroke"))  # noqa: E501 # fmt: skip
        inside += [mark(s.shape, a, b, size, "fill") for a, b in points]
        parts.append(tag("g", inside, class_=f"ink-{s.ink}"))
    legend = key([(s.name, s.ink, s.shape) for s in series]) if len(series) > 1 else None
    description = "; ".join(f"{s.name}: {', '.join(f'({a:.3g}, {b:.3g})' for a, b in list(zip(s.x, s.y, strict=True))[:6])}" for s in series)  # noqa: E501 # fmt: skip
    label = f"{title} ({x}; {y}). {description}"
    return figure(parts, WIDTH, frame.height, label, title=title, caption=caption, legend=legend)


def draw_interval(
    value: float,
    ends: Sequence[float] | None,
    *,
    control: float | None,
    bar: float | None,
    low: float,
    high: float,
    label: str,
) -> Markup:
    """Draw a small picture for a cell: the figure with its interval, the control as a diamond, the bar as a line."""
    wide, tall, pad = 130.0, 26.0, 6.0
    axis = [low, high if high > low else low + 1.0], [pad, wide - pad]
    parts: list[Child] = [tag("line", x1=pad, x2=wide - pad, y1=tall / 2, y2=tall / 2, class_="grid")]
    if bar is not None:
        x = float(np.interp(bar, *axis))
        parts.append(tag("line", x1=x, x2=x, y1=2.0, y2=tall - 2, class_="stroke ink-bad", stroke_dasharray="3 2"))
    if control is not None:
        x = float(np.interp(control, *axis))
        parts.append(tag("g", mark("diamond", x, tall / 2, 4.0, "stroke"), class_="ink-test"))
    inside: list[Child] = []
    if ends is not None:
        x1, x2 = np.interp(ends, *axis).tolist()
        inside.append(tag("line", x1=x1, x2=x2, y1=tall / 2, y2=tall / 2, class_="stroke"))
    inside.append(mark("circle", float(np.interp(value, *axis)), tall / 2, 4.0, "fill"))
    parts.append(tag("g", inside, class_="ink-fake"))
    return tag("svg", *parts, viewBox=f"0 0 {wide:g} {tall:g}", width=wide, height=tall, role="img", aria_label=label)
