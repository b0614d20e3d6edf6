"""
The figures of the paper for print: one function each, which returns a matplotlib `Figure` and changes no global state.

Each takes a result, or the dictionary that its `to_dict` gives. Colours can be told apart by everybody, axes are
labelled, and the same figure gives the same bytes. Maps are in kilometres about their middle, with coasts beneath.
`pair_similarity` gives the numbers of fig:real-gs-similarity.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.errors import InvalidParameter, MissingExtra, NotEnoughUsers
from elsewhere.evaluation.attacks.finding import plain
from elsewhere.evaluation.publishing.scenario import BIN_EDGES, describe, shares
from elsewhere.paper.geographic_similarity import pairwise_geographic_similarity
from elsewhere.paper.profiles import MobilityProfile
from elsewhere.paper.semantic_similarity import pairwise_semantic_similarity
from elsewhere.reports.atlas import STRIP, Sheet
from elsewhere.reports.results import Plain, Results
from elsewhere.traces.model import Floats, Locations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito: told apart by colour-blind readers, and in print
BLUE, VERMILION = "#0072B2", "#D55E00"
GREEN, PURPLE, ORANGE, SKY, GREY, YELLOW = "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6B7280", "#C9B800"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY, YELLOW)
MARKERS = "os^DPXv*"


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure of this size in inches, or raise `MissingExtra` where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("figures need matplotlib: pip install 'elsewhere[plot]'.") from None
    return Figure(figsize=(width, height), layout="constrained")


def png(figure: "Figure") -> bytes:
    """Return the figure as the bytes of a PNG file, the same for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})  # no name of a library, no hour
    return buffer.getvalue()


def label_axes(axes: "Axes", x: str, y: str, title: str | None = None) -> None:
    """Label the axes, with their units."""
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    if title is not None:
        axes.set_title(title, fontsize=9)


MAX_USERS = 5_000  # two dense U x U tables: .4 GB


@dataclass(frozen=True, eq=False)
class PairSimilarity:
    """
    sim_G and sim_S of all distinct pairs of users, zeroth order; a user with herself is left out, as in the paper.

    With one period both are symmetric and each pair counts once; with more, each ordered pair counts (E11, E23).
    """

    users: int
    periods: int
    geographic: Floats = field(repr=False)
    semantic: Floats = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the mean, quantiles and normalised histogram of both, as plain numbers."""
        figures: dict[str, Any] = {
            "users": self.users,
            "pairs": len(self.geographic),
            "periods": self.periods,
            "order": 0,
            "geographic": describe(self.geographic),
            "semantic": describe(self.semantic),
            "bin_edges": BIN_EDGES.round(2),
        }
        return dict(plain(figures))


def pair_similarity(profiles: Sequence[MobilityProfile]) -> PairSimilarity:
    """
    Compare every user with every other, geographically and semantically.

    Examples
    --------
    >>> import elsewhere as ew
    >>> from elsewhere.reports.figures import pair_similarity
    >>> town = ew.Traces([[0, 0, 1, 1, 0], [2, 2, 3, 3, 2]], ew.Locations(n=4))
    >>> pairs = pair_similarity(ew.fit_profiles(town))
    >>> pairs.geographic.tolist(), pairs.semantic.tolist()
    ([0.0], [1.0])

    """
    U = len(profiles)
    if U < 2:
        raise NotEnoughUsers(f"similarity of pairs needs at least 2 users, got {U}.")
    if U > MAX_USERS:
        raise InvalidParameter(
            f"{U} users make two tables of {U} x {U} numbers, {U * U * 16 / 2**30:.1f} GiB; compare at most "
            f"{MAX_USERS} users.",
            code="E_TOO_LARGE",
        )
    T = profiles[0].T
    pair = np.triu_indices(U, 1) if T == 1 else np.nonzero(~np.eye(U, dtype=bool))
    return PairSimilarity(
        U, T, pairwise_geographic_similarity(profiles)[pair], pairwise_semantic_similarity(profiles)[pair]
    )


LINES = {"river": ("#a9c9de", 0.8, "-"), "province": ("#8d8471", 0.5, ":"), "border": ("#8d8471", 0.9, "--")}


def _draw_ground(axes: "Axes", sheet: Sheet) -> Floats:
    """Draw what lies under the map, zoom to it, and give the places in kilometres about its middle."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    half = np.array([sheet.width, sheet.height - STRIP]) / 2

    def kilometres(units: Floats) -> Floats:
        return np.asarray((units - half) * (sheet.km, -sheet.km))

    layers = sheet.lines()
    if layers:
        axes.set_facecolor("#d3e4ef")
    rings = [Path(kilometres(np.vstack([ring, ring[:1]])), closed=True) for ring in layers.pop("land", [])]
    if rings:
        axes.add_patch(PathPatch(Path.make_compound_path(*rings), facecolor="#f3f0e8", linewidth=0, zorder=0))
    for layer, pieces in layers.items():
        colour, width, dash = LINES[layer]
        for piece in pieces:
            axes.plot(*kilometres(piece).T, color=colour, linewidth=width, linestyle=dash, zorder=0.5)
    wide, tall = half * sheet.km
    axes.set_xlim(-wide, wide)
    axes.set_ylim(-tall, tall)
    axes.set_aspect("equal")
    return kilometres(np.column_stack([sheet.x, sheet.y]))


def visited_places(locations: Locations, visits: ArrayLike) -> "Figure":
    """Draw places as discs whose area is their number of visits (fig:visited-locs); east and north in kilometres."""
    count = np.asarray(visits, dtype=np.float64)
    figure = new_figure(4.2, 4.0)
    axes = figure.subplots()
    there = count > 0
    where = _draw_ground(axes, Sheet.of(locations, there, count))
    axes.scatter(
        where[there, 0], where[there, 1], s=120 * count[there] / count.max() + 1, color=BLUE, alpha=0.55, linewidths=0
    )
    label_axes(axes, "east (km)", "north (km)", f"area: visits, at most {count.max():,.0f}")
    return figure


def places_by_class(locations: Locations, label: ArrayLike) -> "Figure":
    """Draw places by semantic class (fig:semantic-clusters): a colour and a marker for each class."""
    classes = np.asarray(getattr(label, "label", label))
    figure = new_figure(5.2, 4.0)
    axes = figure.subplots()
    where = _draw_ground(axes, Sheet.of(locations, classes >= 0))
    for c in np.unique(classes[classes >= 0]).tolist():
        marker = MARKERS[(c + c // len(COLOURS)) % len(MARKERS)]
        here = where[classes == c]
        axes.scatter(
            here[:, 0], here[:, 1], s=14, color=COLOURS[c % len(COLOURS)], marker=marker, linewidths=0, label=f"{c + 1}"
        )
    label_axes(axes, "east (km)", "north (km)")
    figure.legend(title="class", loc="outside right center", fontsize=8, ncols=1 + int(classes.max()) // 16)
    return figure


SIDES = {
    "testing": ("testing", GREEN, "//"),
    "fakes": ("fakes", BLUE, ""),
    "uniform": ("uniform", GREY, ".."),
    "single": ("single", PURPLE, "xx"),
    "random": ("random", PURPLE, "xx"),
}


def _plain(result: Any, kind: str) -> Plain:
    """Return the plain numbers of one result of a kind."""
    numbers: dict[str, Plain] = getattr(Results.of(result), kind)
    if len(numbers) != 1:
        raise InvalidParameter(f"`result` must be one result of the kind {kind!r}, got {len(numbers)} of them.")
    return next(iter(numbers.values()))


def similarity_histograms(geographic: ArrayLike, semantic: ArrayLike) -> "Figure":
    """
    Draw normalised histograms of geographic and of semantic similarity, side by side (fig:real-gs-similarity).

    Parameters
    ----------
    geographic, semantic
        Similarities of pairs of users, in [0, 1], one value per pair.

    Examples
    --------
    >>> from elsewhere.reports.figures import similarity_histograms
    >>> [axes.get_xlabel() for axes in similarity_histograms([0, .1], [.7, .9]).axes]
    ['geographic similarity of two users (0 none, 1 full)', 'semantic similarity of two users (0 none, 1 full)']

    """
    figure = new_figure(7.2, 2.9)
    for axes, values, kind, colour in zip(
        figure.subplots(1, 2, gridspec_kw={"wspace": 0.06}),
        (np.asarray(geographic, dtype=float), np.asarray(semantic, dtype=float)),
        ("geographic", "semantic"),
        (BLUE, VERMILION),
        strict=True,
    ):
        axes.bar(BIN_EDGES[:-1], 100 * shares(values), width=0.05, align="edge", color=colour, edgecolor="white")
        axes.axvline(values.mean(), color="black", linewidth=1, linestyle="--")
        axes.set_title(f"mean {values.mean():.2f} (dashed)", fontsize=9)
        axes.set_xlabel(f"{kind} similarity of two users (0 none, 1 full)", fontsize=9)
        axes.set_ylabel("share of pairs (%)", fontsize=9)
        axes.set_xlim(0, 1)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _mean(value: Any) -> float:
    value = value.get("mean") if isinstance(value, dict) else value
    return float("nan") if value is None else float(value)


def _bars(axes: "Axes", figure: Plain) -> None:
    """Draw bars of the sides that a figure has, hatched, with the standard deviation over the fake datasets."""
    there = [side for side in SIDES if figure.get(side) is not None]
    for i, side in enumerate(there):
        words, colour, hatch = SIDES[side]
        std = figure[side].get("std") if isinstance(figure[side], dict) else None
        axes.bar(i, _mean(figure[side]), color=colour, hatch=hatch, edgecolor="white", yerr=std, capsize=3, label=words)
    axes.set_xticks(range(len(there)), [SIDES[side][0] for side in there], fontsize=7)


def visiting_divergence(result: Any) -> "Figure":
    """Draw the KL of visiting probabilities, all and most popular places (tbl:vistprob-kl, tbl:vistprob-kl-50mp)."""
    figures = _plain(result, "publishing")["visits"]
    figure = new_figure(7.2, 2.9)
    for axes, name in zip(figure.subplots(1, 2), ("all", "top"), strict=True):
        _bars(axes, figures[name])
        label_axes(axes, "dataset", "KL from real (nats)", f"{name}: {figures[name]['places']} places")
    return figure


def time_allocation(result: Any) -> "Figure":
    """Draw the KL of the time allocation among the three most visited places of each person (tbl:timealloc-kl)."""
    figures = _plain(result, "publishing")["allocation"]
    figure = new_figure(7.6, 2.9)
    for axes, (rank, title) in zip(figure.subplots(1, 3), zip("123", ("1st", "2nd", "3rd"), strict=True), strict=True):
        _bars(axes, figures[rank])
        label_axes(axes, "dataset", "KL from real (nats)", f"{title} place")
    return figure


def _histogram(axes: "Axes", edges: Sequence[float], figures: Plain, colour: str, x: str) -> None:
    edge = np.asarray(edges, dtype=float)
    axes.bar(edge[:-1], 100 * np.asarray(figures["histogram"], dtype=float), width=np.diff(edge), align="edge",
             color=colour, edgecolor="white")  # fmt: skip
    axes.axvline(figures["mean"], color="black", linewidth=1, linestyle="--")
    axes.set_xlim(0, 1)
    label_axes(axes, x, "share of pairs (%)", f"mean {figures['mean']:.2f} (dashed)")


def _seed_histogram(result: Any, name: str) -> tuple[list[float], Plain]:
    figures = _plain(result, "publishing")["similarity"]
    if name not in figures:
        raise InvalidParameter("`result` does not know which fake was made from which seed; give `seed_index`.")
    return figures["bin_edges"], figures[name]


def differential_similarity(result: Any) -> "Figure":
    """Draw the histogram of the differential semantic similarity between fake and real traces (fig:deltas-fakeset2)."""
    edges, shares_of = _seed_histogram(result, "differential")
    figure = new_figure(3.6, 2.9)
    _histogram(figure.subplots(), edges, shares_of, GREEN, "|sim_S(s, f) - sim_S(s', f)| (0 to 1)")
    return figure


def fake_seed_similarity(result: Any) -> "Figure":
    """Draw the similarity of fakes to their own seeds: geographic, and semantic (fig:real-fake-semantic-similarity)."""
    figure = new_figure(7.2, 2.9)
    sides = (("geographic", BLUE), ("semantic", VERMILION))
    for axes, (name, colour) in zip(figure.subplots(1, 2), sides, strict=True):
        edges, shares_of = _seed_histogram(result, name)
        _histogram(axes, edges, shares_of, colour, f"{name} similarity, fake and seed (0 none, 1 full)")
    return figure


def similarity_qq(result: Any) -> "Figure":
    """
    Draw the Q-Q plot of semantic similarity among real traces and among fakes
    (fig:fake-fake-semantic-similarity-qq).
    """
    qq = _plain(result, "publishing")["qq"]
    if qq is None:
        raise InvalidParameter("`result` has no two traces to compare, so there is no Q-Q plot.")
    figure = new_figure(3.6, 3.4)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="black", linewidth=1, linestyle=":")
    axes.plot(qq["real"], qq["fake"], "o", markersize=3, color=BLUE)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    correlation = "" if qq["correlation"] is None else f"correlation {qq['correlation']:.4f}"
    label_axes(axes, "among real traces, sim_S", "among fakes, sim_S", correlation)
    return figure


def location_privacy(result: Any) -> "Figure":
    """
    Draw privacy against diversity and semantic overhead, for every generator (fig:locationprivacy a and b).

    Privacy is the error of an adversary who tracks the user and knows how people move.
    """
    generators = _plain(result, "lbs")["generators"]
    figure = new_figure(7.6, 3.4)
    sides = (("diversity", "different places per request"), ("semantic", "different classes per request"))
    for axes, (cost, x) in zip(figure.subplots(1, 2), sides, strict=True):
        for i, (name, by_n) in enumerate(generators.items()):
            points = [_point(figures, cost) for figures in by_n.values()]
            points = [p for p in points if p is not None]
            if points:
                across, up, low, high = np.array(points, dtype=float).T
                spread = np.clip([up - low, high - up], 0, None)
                axes.errorbar(across, up, yerr=spread, marker=MARKERS[i % 8], color=COLOURS[i % 8], capsize=2,
                              markersize=5, linewidth=1, linestyle=("-", "--", "-.", ":")[i % 4],
                              label=name if cost == "diversity" else None)  # fmt: skip
        axes.set_ylim(0, 1.02)
        label_axes(axes, x, "true places missed (share)", "a" if cost == "diversity" else "b")
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _point(figures: Plain, cost: str) -> list[float] | None:
    error = (figures["error"].get("aggregate") or {}).get("tracking", {}).get("exposed") or {}
    price = (figures.get(cost) or {}).get("median")
    values = [price, error.get("median"), *(error.get("interval") or [None])]
    return None if None in values else values
