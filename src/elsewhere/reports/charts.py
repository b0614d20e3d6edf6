"""
Every figure once, by matplotlib: SVG inside a page, PNG for print. No global state, no fonts, the same bytes each time.

A figure is drawn in the colours of `INKS`. In a page these become the variables of style.css, so that one picture is
readable in light and in dark; in a PNG file they are what they are.
"""

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup

from elsewhere.data.visits import DAY, Floats, Ints, Visits
from elsewhere.evaluation.measures import Crowd, Plan
from elsewhere.evaluation.usefulness import bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# hues of Okabe and Ito, told apart by colour-blind readers; k0 .. k7 are places of a life, or generators
INKS = {
    "ink": "#1c2430", "soft": "#566072", "line": "#d5dae2", "fake": "#0072b2", "real": "#d55e00",
    "base": "#8a8f99", "good-back": "#cdeadf", "mid-back": "#f6e7ad",
    "k0": "#3d6ea5", "k1": "#e8a33d", "k2": "#3aa387", "k3": "#c2629b", "k4": "#c8553d", "k5": "#aab1bb",
    "k6": "#6d5fa8", "k7": "#c9b800",
}  # fmt: skip
RANKS = ("k0", "k1", "k2", "k5")  # home, second place, third place, all others
MARKERS = "os^DPXv*"
WIDTH = 3.9  # inches: letters of 8 points are readable where a phone shows it 350 pixels wide
LETTERS = 8
FORTNIGHT = 14  # days, or people of one day each
TICK = 0.15  # hours: a moment is drawn this wide
HOUR = 3600
WEEK = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")  # day 0 of the clock was a Thursday
Plain = Mapping[str, Any]


def new_figure(width: float = WIDTH, height: float = 2.4) -> "Figure":
    """Return an empty figure of this size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def png(figure: "Figure") -> bytes:
    """Return the figure as the bytes of a PNG file, the same for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})  # no name of a library, no hour
    return buffer.getvalue()


def svg(figure: "Figure", label: str) -> Markup:
    """
    Return the figure as SVG inside a page, readable in light and dark; `label` is read to those who do not see it.

    Examples
    --------
    >>> picture = svg(curves({"people": ([1], [2])}, x="<number>", y=""), "a <line>")
    >>> "var(--real)" in picture, "a &lt;line&gt;" in picture, "#d55e00" in picture
    (True, True, False)

    """
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": label}):
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->|<defs>\s*</defs>", "", text, flags=re.DOTALL)
    # ids that nothing refers to would be doubled by the next figure of the page
    targets = set(re.findall(r'#([\w-]+)["\)]', text))
    text = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in targets else "", text)
    text = re.sub(r' (?:d|x|y|width|height|transform)="[^"]*"', lambda m: re.sub(r"(\.\d)\d+", r"\1", m[0]), text)
    text = re.sub(r'font-family: [^;"]*;? ?| transform="rotate\(-0 [^"]*"', "", text)
    for name, colour in INKS.items():
        text = text.replace(colour, f"var(--{name})")
    text = re.sub(r"\s*\n\s*", "\n", text).replace("xlink:href", "href").replace(' class="', ' data-of="')
    frame = re.search(r'viewBox="([^"]+)"', text)
    inside = text[text.index(">", text.index("<svg")) + 1 :]
    start = Markup('<svg viewBox="{}" role="img" aria-label="{}">').format(frame[1] if frame else "", label)
    return start + Markup(inside.strip())  # noqa: S704 - matplotlib has escaped what it drew


def label_axes(axes: "Axes", x: str, y: str, title: str | None = None) -> None:
    """Label the axes, with their units, in the ink of the page."""
    axes.set_xlabel(x, fontsize=LETTERS, color=INKS["ink"])
    axes.set_ylabel(y, fontsize=LETTERS, color=INKS["ink"])
    axes.tick_params(labelsize=LETTERS, colors=INKS["soft"], labelcolor=INKS["soft"], length=3)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INKS["soft"])
    if title is not None:
        axes.set_title(title, fontsize=LETTERS, color=INKS["ink"])


class Life(NamedTuple):
    """
    A fortnight of somebody, or one day each of several people: what the first pictures show.

    `visits` are those within it, `rank` (one per visit) is 0 at the person's home, 1 at the second place, 2 at the
    third, 3 elsewhere; `row` and `names` are the line of the picture on which each visit begins, and what it is called.
    """

    visits: Visits
    rank: Ints
    row: Ints
    names: tuple[str, ...]

    @property
    def of_several(self) -> bool:
        """Tell whether each row is another person."""
        return self.visits.U > 1

    @staticmethod
    def of(visits: Visits, users: Sequence[int]) -> "Life":
        """
        Return the fortnight of one user in which most was observed, or a day each of several.

        Home is where a user is most at night, or most of all where nothing is seen at night; the others follow by time.
        """
        some = visits.of_users(list(users))
        rank = _ranks(some)
        day = some.start // DAY
        if some.U > 1:
            first = day[some.offsets[:-1]]
            chosen = day == first[some.user]
            names = tuple(f"{u + 1}" for u in range(some.U))
            return Life(some.select(chosen), rank[chosen], some.user[chosen].astype(np.int64), names)
        seen = np.unique(day)
        inside = np.searchsorted(seen, seen + FORTNIGHT) - np.arange(len(seen))
        first = seen[int(np.argmax(inside))]
        chosen = (day >= first) & (day < first + FORTNIGHT)
        rows = min(FORTNIGHT, int(seen[-1] - first) + 1)
        names = tuple(WEEK[(first + i) % 7] for i in range(rows))
        return Life(some.select(chosen), rank[chosen], day[chosen] - first, names)


def _ranks(visits: Visits) -> Ints:
    """Return the rank of the place of each visit among its user's, at most 3; of trips, of begin and end."""
    if visits.form.unit == "trip":
        begins, ends = visits.offsets[:-1][visits.user], visits.offsets[1:][visits.user] - 1
        row = np.arange(len(visits))
        return np.where(row == begins, 0, np.where(row == ends, 1, 3))
    crowd = Crowd(visits, Plan(visits.locations))
    who, where, time, _ = crowd.own_places
    order = np.lexsort((-np.where(where == crowd.home[who], np.inf, time), who))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.minimum(np.arange(len(order)) - np.searchsorted(who, who), 3)
    return rank[np.searchsorted(who * visits.R + where, visits.user.astype(np.int64) * visits.R + visits.place)]


def time_at(crowd: Crowd, hours: slice = slice(0, 24)) -> Floats:
    """Return (R,) the time, or records, at each place within these hours of the day."""
    places = np.unique(crowd.visits.place)
    zone, time = np.zeros(crowd.visits.R, dtype=np.int64), np.zeros(crowd.visits.R)
    zone[places] = np.arange(len(places))  # a map may have many more places than these people visit
    time[places] = crowd.presence(zone).reshape(2, 24, len(places))[:, hours].sum(axis=(0, 1))
    return time


def life_strip(life: Life, axes: "Axes | None" = None) -> Any:
    """Draw a life hour by hour, a row a day, one colour per place; blank where nothing was observed."""
    axes = axes or new_figure(height=0.45 + 0.145 * len(life.names)).subplots()
    v, n = life.visits, len(life.names)
    begin, end = v.start % DAY / HOUR, np.maximum(v.end - v.start, TICK * HOUR) / HOUR
    for rank, ink in enumerate(RANKS):
        for i in range(n):
            # what lasts beyond midnight goes on in the next row
            since = begin - 24 * (i - life.row) if not life.of_several else np.where(life.row == i, begin, 99.0)
            here = (life.rank == rank) & (since < 24) & (since + end > 0)
            low = np.maximum(since[here], 0)
            spans = np.column_stack([low, np.minimum((since + end)[here], 24) - low])
            axes.broken_barh(spans.tolist(), (i - 0.43, 0.86), facecolors=INKS[ink], linewidth=0, zorder=2)
    if v.trip is not None:  # on the way
        together = np.flatnonzero((v.trip[1:] == v.trip[:-1]) & (v.trip[1:] >= 0) & (v.user[1:] == v.user[:-1]))
        for i in together[v.start[together + 1] // DAY == v.end[together] // DAY].tolist():
            axes.plot([v.end[i] % DAY / HOUR, begin[i + 1]], [life.row[i]] * 2, color=INKS["soft"], linewidth=1)
    axes.set_ylim(n - 0.4, -0.6)
    axes.set_xlim(0, 24)
    axes.set_yticks(range(n), life.names)
    axes.set_xticks(range(0, 25, 6), [f"{hour}:00" for hour in range(0, 25, 6)])
    label_axes(axes, "", "")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    return axes.figure


def use_scale(use: Plain) -> "Figure | None":
    """Draw how far fakes are off between "not at all" and chance, with what is good and rough; None without figures."""
    values = [use.get(name) for name in ("fakes", "people", "same", "chance")]
    if not all(isinstance(v, (int, float)) for v in values):
        return None
    fakes, people, same, chance = (float(v) for v in values if v is not None)
    real, good, rough = bounds(people, same, chance)
    figure = new_figure(height=0.42)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    most = 1.04 * max(chance, fakes, people, 1e-9)
    for end, ink in ((most, "line"), (real + rough, "mid-back"), (real + good, "good-back")):
        axes.barh(0, max(end, 0), height=0.5, color=INKS[ink])
    axes.plot([people, people], [-0.38, 0.38], color=INKS["real"], linewidth=2.5)
    axes.plot([chance, chance], [-0.38, 0.38], color=INKS["soft"], linewidth=1.5, linestyle=(0, (2, 1)))
    axes.plot([fakes], [0], "o", color=INKS["fake"], markersize=9)
    axes.set_xlim(-0.03 * most, most)
    axes.set_ylim(-0.5, 0.5)
    axes.axis("off")
    return figure


Curves = Mapping[str, tuple[Any, Any]]  # "people" or "fakes" -> x and y


def curves(sides: Curves, *, x: str, y: str, log: bool = False) -> "Figure":
    """Draw a line per side, people filled and fakes in blue."""
    figure = new_figure(height=1.9)
    axes = figure.subplots()
    for name, (across, up) in sides.items():
        ink = INKS["fake" if name == "fakes" else "real"]
        axes.plot(across, up, color=ink, linewidth=1.6, label=name)
        if name != "fakes":
            axes.fill_between(across, up, color=ink, alpha=0.18, linewidth=0)
    axes.set_ylim(bottom=0)
    if log:
        from matplotlib.ticker import LogLocator

        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
        axes.minorticks_off()
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    label_axes(axes, x, y)
    return figure


def shares_up_to(samples: Mapping[str, Floats]) -> Curves | None:
    """Return how much of each sample, in per cent, is at most so large; None without positive values."""
    kept = {name: np.sort(values[values > 0]) for name, values in samples.items()}
    if not all(len(values) for values in kept.values()):
        return None
    low, high = np.quantile(np.concatenate(list(kept.values())), [0.002, 0.998])
    at = np.geomspace(low / 1.05, max(high, 1.2 * low) * 1.05, 100)
    return {name: (at, 100 * np.searchsorted(values, at, side="right") / len(values)) for name, values in kept.items()}


def location_privacy(result: Plain) -> "Figure":
    """
    Draw privacy against diversity and semantic overhead, for every generator (fig:locationprivacy a and b).

    Privacy is the error of an adversary who tracks the user and knows how people move.
    """
    figure = new_figure(7.2, 3.4)
    sides = (("diversity", "different places per request"), ("semantic", "different classes per request"))
    for axes, (cost, x) in zip(figure.subplots(1, 2), sides, strict=True):
        for i, (name, by_n) in enumerate(result["generators"].items()):
            points = [p for figures in by_n.values() if (p := _point(figures, cost)) is not None]
            if points:
                across, up, low, high = np.array(points, dtype=float).T
                spread = np.clip([up - low, high - up], 0, None)
                look = {"marker": MARKERS[i % 8], "color": INKS[f"k{(0, 1, 2, 3, 4, 6, 7, 5)[i % 8]}"], "markersize": 5}
                axes.errorbar(
                    across, up, yerr=spread, capsize=2, linewidth=1, label=name * (cost == "diversity"), **look
                )
        axes.set_ylim(0, 1.02)
        label_axes(axes, x, "true places missed (share)", "a" if cost == "diversity" else "b")
    figure.legend(fontsize=LETTERS - 1, labelcolor=INKS["ink"], frameon=False, loc="outside lower center", ncols=3)
    return figure


def _point(figures: Plain, cost: str) -> list[float] | None:
    error = (figures["error"].get("aggregate") or {}).get("tracking", {}).get("exposed") or {}
    price = (figures.get(cost) or {}).get("median")
    values = [price, error.get("median"), *(error.get("interval") or [None])]
    return None if None in values else values
