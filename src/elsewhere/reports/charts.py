"""
Every figure once, by matplotlib: SVG inside a page, PNG for print. No global state, no fonts, the same bytes each time.

A figure is drawn in the colours of `INKS`. In a page these become the variables of style.css, so that one picture is
readable in light and in dark; in a PNG file they are what they are. Functions of the paper's figures take a result, or
the dictionary that its `to_dict` gives.
"""

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from elsewhere.data.visits import Codes, Floats, Ints
from elsewhere.errors import InvalidParameter
from elsewhere.evaluation.publishing.scenario import BIN_EDGES, shares
from elsewhere.evaluation.uses import GOOD, GOOD_WAY, ROUGH, ROUGH_WAY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# hues of Okabe and Ito, told apart by colour-blind readers; k0 .. k7 are places of a life, or classes
INKS = {
    "ink": "#1c2430", "soft": "#566072", "line": "#d5dae2", "fake": "#0072b2", "real": "#d55e00", "test": "#009e73",
    "base": "#8a8f99", "purple": "#aa4f86", "good-back": "#cdeadf", "mid-back": "#f6e7ad", "bad": "#a13d00",
    "k0": "#3d6ea5", "k1": "#e8a33d", "k2": "#3aa387", "k3": "#c2629b", "k4": "#c8553d", "k5": "#aab1bb",
    "k6": "#6d5fa8", "k7": "#c9b800", "land": "#f3f0e8", "water": "#d3e4ef", "border": "#8d8471", "river": "#a9c9de",
}  # fmt: skip
CLASS_INKS = [INKS[f"k{i}"] for i in (0, 1, 2, 3, 4, 6, 7, 5)]
MARKERS = "os^DPXv*"
WIDTH = 3.9  # inches: letters of 8 points are readable where a phone shows it 350 pixels wide
LETTERS = 8
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
    >>> picture = svg(similarity_histograms([0, .1], [.7, .9]), "two <histograms>")
    >>> "var(--fake)" in picture, "two &lt;histograms&gt;" in picture, "#0072b2" in picture
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


def _legend(owner: Any, **where: Any) -> None:
    owner.legend(fontsize=LETTERS - 1, labelcolor=INKS["ink"], frameon=False, **where)


def life_strip(rows: Codes, names: Sequence[str], hours: Floats, *, per_row: bool) -> "Figure":
    """
    Draw days hour by hour, a row a day, one colour per place: the more time is spent at it, the earlier its colour.

    Parameters
    ----------
    rows
        (N, L) places, -1 where nothing is known.
    names
        N names of the rows.
    hours
        (L + 1,) hour at which each slot begins, and the last one ends.
    per_row
        Whether each row is another person: colours are then of the places of that row alone.

    """
    figure = new_figure(height=0.45 + 0.145 * len(rows))
    axes = figure.subplots()
    everywhere = _ranks(rows)
    for i, row in enumerate(rows):
        rank = _ranks(row[None])[0] if per_row else everywhere[i]
        ends = np.flatnonzero(np.diff(row)) + 1
        first, last = np.append(0, ends), np.append(ends, len(row))
        known = row[first] >= 0
        spans = np.column_stack([hours[first], hours[last] - hours[first]])[known]
        colours = [INKS[f"k{min(int(k), 5)}"] for k in rank[first][known]]
        axes.broken_barh(spans.tolist(), (i - 0.43, 0.86), facecolors=colours, linewidth=0)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(hours[0], hours[-1])
    axes.set_yticks(range(len(rows)), names)
    axes.set_xticks(np.arange(np.ceil(hours[0] / 6) * 6, hours[-1] + 0.1, 6 if hours[-1] - hours[0] < 30 else 24))
    axes.xaxis.set_major_formatter(lambda hour, _: f"{int(hour) % 24 or (24 if hour else 0)}:00")
    label_axes(axes, "", "")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    return figure


def _ranks(rows: Codes) -> Ints:
    """Return for each slot the rank of its place by time spent there (0 the most), -1 where nothing is known."""
    known = rows >= 0
    places, index, count = np.unique(rows[known], return_inverse=True, return_counts=True)
    rank = np.empty(len(places), dtype=np.int64)
    rank[np.argsort(-count, kind="stable")] = np.arange(len(places))
    ranks = np.full(rows.shape, -1, dtype=np.int64)
    ranks[known] = rank[index]
    return ranks


def use_scale(use: Plain) -> "Figure | None":
    """Draw how far fakes are off between "not at all" and chance, with what is good and rough; None without figures."""
    values = [use.get(name) for name in ("fakes", "halves", "same", "chance")]
    if not all(isinstance(v, (int, float)) for v in values):
        return None
    fakes, halves, same, chance = (float(v) for v in values if v is not None)
    real = min(halves, (same + chance) / 2)
    good, rough = real + min(GOOD, GOOD_WAY * (chance - real)), real + min(ROUGH, ROUGH_WAY * (chance - real))
    figure = new_figure(height=0.42)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    most = 1.04 * max(chance, fakes, halves, 1e-9)
    axes.barh(0, most, height=0.5, color=INKS["line"])
    axes.barh(0, max(rough, 0), height=0.5, color=INKS["mid-back"])
    axes.barh(0, max(good, 0), height=0.5, color=INKS["good-back"])
    axes.plot([halves, halves], [-0.38, 0.38], color=INKS["real"], linewidth=2.5)
    axes.plot([chance, chance], [-0.38, 0.38], color=INKS["soft"], linewidth=1.5, linestyle=(0, (2, 1)))
    axes.plot([fakes], [0], "o", color=INKS["fake"], markersize=9)
    axes.set_xlim(-0.03 * most, most)
    axes.set_ylim(-0.5, 0.5)
    axes.axis("off")
    return figure


def bars(names: Sequence[str], values: Sequence[float], colours: Sequence[str], *, x: str, most: float | None = None,
         intervals: Sequence[Sequence[float] | None] | None = None, texts: Sequence[str] = ()) -> "Figure":  # fmt: skip
    """Draw a bar per name, the first on top, with its interval and what is written at its end."""
    figure = new_figure(height=0.55 + 0.2 * len(names))
    axes = figure.subplots()
    # the largest value or end of an interval, so that texts have room beside it
    top = most or max([*values, *(i[1] for i in intervals or () if i), 1e-9])
    for i, (value, colour) in enumerate(zip(values, colours, strict=True)):
        axes.barh(i, value, height=0.66, color=INKS[colour])
        if intervals and (ends := intervals[i]):
            axes.plot([min(e, top) for e in ends], [i, i], color=INKS["ink"], linewidth=1)
        if texts:
            end = max(value, *(intervals[i] or [0])) if intervals else value
            axes.text(min(end, top) + 0.015 * top, i, texts[i], va="center", fontsize=LETTERS - 1, color=INKS["ink"])
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.6)
    axes.set_xlim(0, (1.2 if texts else 1.02) * top)
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= 1.001 * top])
    label_axes(axes, x, "")
    return figure


def lines(sides: Mapping[str, tuple[Sequence[float], Sequence[float | None]]], *, x: str, y: str,
          band: tuple[Sequence[float], Sequence[Any], Sequence[Any]] | None = None, top: float | None = None,
          ticks: tuple[Sequence[float], Sequence[str]] | None = None) -> "Figure":  # fmt: skip
    """Draw a line per side ("fakes" in blue, "people" dashed), over a band of halves of the people."""
    figure = new_figure()
    axes = figure.subplots()
    if band is not None:
        along, low, high = (np.array(side, dtype=float) for side in band)
        axes.fill_between(along, low, high, color=INKS["real"], alpha=0.18, linewidth=0)
    for name, (across, up) in sides.items():
        ink, dash = ("fake", "-") if name == "fakes" else ("real", "--")
        axes.plot(across, np.array(up, dtype=float), color=INKS[ink], linestyle=dash, linewidth=1.6, label=name)
    axes.set_ylim(0, top)
    if ticks is not None:
        axes.set_xticks(*ticks)
    label_axes(axes, x, y)
    _legend(axes, loc="best")
    return figure


def similarity_histograms(geographic: ArrayLike, semantic: ArrayLike) -> "Figure":
    """
    Draw normalised histograms of geographic and of semantic similarity, side by side (fig:real-gs-similarity).

    Parameters
    ----------
    geographic, semantic
        Similarities of pairs of users, in [0, 1], one value per pair.

    Examples
    --------
    >>> [axes.get_xlabel() for axes in similarity_histograms([0, .1], [.7, .9]).axes]
    ['geographic similarity (0 none, 1 full)', 'semantic similarity (0 none, 1 full)']

    """
    sides = (np.asarray(geographic, dtype=float), np.asarray(semantic, dtype=float))
    return _histograms(BIN_EDGES, [(shares(v), v.mean()) for v in sides], ("geographic", "semantic"), ("fake", "real"))


def _histograms(
    edges: ArrayLike, sides: Sequence[tuple[ArrayLike, float]], kinds: Sequence[str], inks: Sequence[str]
) -> "Figure":
    """Draw shares of pairs by similarity, one histogram per kind, with its mean."""
    figure = new_figure(3.6 * len(kinds), 2.6)
    edge = np.asarray(edges, dtype=float)
    all_axes = figure.subplots(1, len(kinds), squeeze=False)[0]
    for axes, (share, mean), kind, ink in zip(all_axes, sides, kinds, inks, strict=True):
        heights = 100 * np.asarray(share, dtype=float)
        axes.bar(edge[:-1], heights, width=np.diff(edge), align="edge", color=INKS[ink], edgecolor=INKS["line"])
        axes.axvline(mean, color=INKS["ink"], linewidth=1, linestyle="--")
        axes.set_xlim(0, 1)
        label_axes(axes, f"{kind} similarity (0 none, 1 full)", "share of pairs (%)", f"mean {mean:.2f} (dashed)")
    return figure


SIDES = {
    "testing": ("other people", "test", "//"),
    "fakes": ("fakes", "fake", ""),
    "uniform": ("uniform", "base", ".."),
    "single": ("single", "purple", "xx"),
    "random": ("random", "purple", "xx"),
}


def mean(value: Any) -> float | None:
    """Return the mean of a figure, or the figure itself where it is one number."""
    value = value.get("mean") if isinstance(value, Mapping) else value
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def divergences(figures: Mapping[str, Plain]) -> "Figure":
    """Draw the KL divergence from real data of other real people, fakes and baselines, one panel per title."""
    figure = new_figure(3.6 * len(figures) ** 0.75, 2.5)
    for axes, (title, one) in zip(figure.subplots(1, len(figures), squeeze=False)[0], figures.items(), strict=True):
        sides = [side for side in SIDES if one.get(side) is not None]
        for i, side in enumerate(sides):
            _, ink, hatch = SIDES[side]
            std = one[side].get("std") if isinstance(one[side], Mapping) else None
            axes.bar(i, mean(one[side]) or 0, color=INKS[ink], hatch=hatch, edgecolor=INKS["line"], yerr=std, capsize=3)
        axes.set_xticks(range(len(sides)), [SIDES[side][0].replace(" ", "\n") for side in sides])
        label_axes(axes, "", "KL from real (nats)", title)
        axes.tick_params(axis="x", labelsize=LETTERS - 1.5)
    return figure


def visiting_divergence(result: Plain) -> "Figure":
    """Draw the KL of visiting probabilities, all and most popular places (tbl:vistprob-kl, tbl:vistprob-kl-50mp)."""
    visits = result["visits"]
    return divergences({f"{visits[n]['places']} places ({n})": visits[n] for n in ("all", "top") if n in visits})


def time_allocation(result: Plain) -> "Figure":
    """Draw the KL of the time allocation among the three most visited places of each person (tbl:timealloc-kl)."""
    ranks = zip("123", ("most visited", "second", "third"), strict=True)
    return divergences({f"{title} place": result["allocation"][rank] for rank, title in ranks})


def _histogram_of(result: Plain, *kinds: str) -> "Figure":
    figures = result["similarity"]
    if not set(kinds) <= set(figures):
        raise InvalidParameter("`result` does not know which fake was made from which seed; give `seed_index`.")
    inks = [{"geographic": "fake", "semantic": "real"}.get(kind, "test") for kind in kinds]
    sides = [(figures[kind]["histogram"], figures[kind]["mean"]) for kind in kinds]
    return _histograms(figures["bin_edges"], sides, kinds, inks)


def differential_similarity(result: Plain) -> "Figure":
    """Draw the histogram of the differential semantic similarity between fake and real traces (fig:deltas-fakeset2)."""
    return _histogram_of(result, "differential")


def fake_seed_similarity(result: Plain) -> "Figure":
    """Draw the similarity of fakes to their own seeds: geographic, and semantic (fig:real-fake-semantic-similarity)."""
    return _histogram_of(result, "geographic", "semantic")


def similarity_qq(result: Plain) -> "Figure":
    """
    Draw the Q-Q plot of semantic similarity among real traces and among fakes
    (fig:fake-fake-semantic-similarity-qq).
    """
    qq = result.get("qq")
    if qq is None:
        raise InvalidParameter("`result` has no two traces to compare, so there is no Q-Q plot.")
    figure = new_figure(3.6, 3.4)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=INKS["soft"], linewidth=1, linestyle=":")
    axes.plot(qq["real"], qq["fake"], "o", markersize=3, color=INKS["fake"])
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    correlation = "" if qq["correlation"] is None else f"correlation {qq['correlation']:.4f}"
    label_axes(axes, "among real traces, sim_S", "among fakes, sim_S", correlation)
    return figure


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
                look = {
                    "marker": MARKERS[i % 8],
                    "color": CLASS_INKS[i % 8],
                    "linestyle": ("-", "--", "-.", ":")[i % 4],
                }
                spread = np.clip([up - low, high - up], 0, None)
                label = name if cost == "diversity" else None
                axes.errorbar(across, up, yerr=spread, capsize=2, markersize=5, linewidth=1, label=label, **look)
        axes.set_ylim(0, 1.02)
        label_axes(axes, x, "true places missed (share)", "a" if cost == "diversity" else "b")
    _legend(figure, loc="outside lower center", ncols=3)
    return figure


def _point(figures: Plain, cost: str) -> list[float] | None:
    error = (figures["error"].get("aggregate") or {}).get("tracking", {}).get("exposed") or {}
    price = (figures.get(cost) or {}).get("median")
    values = [price, error.get("median"), *(error.get("interval") or [None])]
    return None if None in values else values


def found_over_days(figures: Plain) -> "Figure":
    """Draw how many homes and main places a service finds that watches decoys for several days, beside a guess."""
    figure = new_figure()
    axes = figure.subplots()
    names = {"persona": "same decoys", "fresh": "fresh decoys", "home": "home", "main": "main place"}
    for decoys, by_place in figures["found"].items():
        for place, by_days in by_place.items():
            points = sorted((int(days), rate["value"]) for days, rate in by_days.items())
            axes.plot([str(d) for d, _ in points], [v for _, v in points], marker="o" if place == "home" else "s",
                      color=INKS["fake" if decoys == "persona" else "real"], markersize=4,
                      linestyle="-" if place == "home" else "--", label=f"{names[place]}, {names[decoys]}")  # fmt: skip
    axes.axhline(figures["guess"], color=INKS["soft"], linewidth=1, linestyle=":", label="guess")
    axes.set_ylim(0, 1)
    label_axes(axes, "days watched", "found (share of people)")
    _legend(axes, loc="best")
    return figure


def coverage(user: Ints, day: Ints, kept: ArrayLike, first: str) -> "Figure":
    """Draw a line per user with the days on which something is known, those that were dropped in another colour."""
    figure = new_figure(height=min(3.0, 0.6 + 0.1 * (int(user.max()) + 1)))
    axes = figure.subplots()
    is_kept = np.asarray(kept, dtype=bool)
    for colour, mask in (("fake", is_kept), ("real", ~is_kept)):
        for u in np.unique(user[mask]).tolist():
            days = np.unique(day[mask & (user == u)])
            starts = np.flatnonzero(np.diff(days, prepend=days[0] - 2) > 1)
            length = np.diff(np.append(starts, len(days)))
            axes.broken_barh(np.column_stack([days[starts], length]).tolist(), (u - 0.4, 0.8), facecolors=INKS[colour])
    axes.set_ylim(user.max() + 0.6, -0.6)
    axes.set_yticks([])
    label_axes(axes, f"days since {first}", "people")
    return figure
