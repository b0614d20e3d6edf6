"""
Maps of where people are, and of a life: no tiles, no request.

Kilometres on a plane, north up, with a scale, and names of towns where places have latitude and longitude. A map is
zoomed to nearly all of its visits, and says what lies outside. Where places are many, the most visited are drawn.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.data.gazetteer import Box, find_towns
from elsewhere.data.visits import EARTH_RADIUS_KM, Floats, Locations
from elsewhere.errors import counted
from elsewhere.evaluation.measures import Crowd, Plan
from elsewhere.reports.charts import INKS, LETTERS, RANKS, WIDTH, Life, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ASPECT = 0.62  # height of a map by its width: two of them and two strips of hours fit a screen
MOST_PLACES = 1_500
NEARLY_ALL = 0.98  # share of the visits that a map may be zoomed to, where that shrinks it by a third
MOST_NAMES = 10
MOST_MOVES = 150  # of a life
SIZES = 40  # of discs
KM_PER_DEGREE = math.radians(1) * EARTH_RADIUS_KM


class Window(NamedTuple):
    """
    The part of the plane that a map shows.

    Places in kilometres about its middle, which of them it shows, half of its width and height, and its towns, the
    largest first, with their kilometres.
    """

    xy: Floats
    inside: NDArray[np.bool_]
    half: Floats
    towns: Sequence[tuple[str, float, float]] = ()

    @staticmethod
    def of(locations: Locations, weight: ArrayLike) -> "Window":
        """Return the window that holds nearly all weight."""
        share = np.asarray(weight, dtype=float)
        globe, xy = locations.lat is not None, locations.planar()
        if locations.lat is not None and locations.lon is not None:
            lon, lat = locations.lon, locations.lat
            turn = np.radians(lon[share > 0])
            east = math.degrees(math.atan2(np.sin(turn).mean(), np.cos(turn).mean()))
            # true to scale in the middle; at a pole, where all longitudes meet, at least not a point
            narrow = max(0.01, math.cos(math.radians(float(np.median(lat[share > 0])))))
            degree = KM_PER_DEGREE * np.array([narrow, 1.0])
            xy = np.column_stack([(lon - east + 180) % 360 - 180, lat]) * degree
        shown = xy[_nearly_all(xy, share)]
        low, high = shown.min(axis=0), shown.max(axis=0)
        # a town along one road still gets room for its marks, and a single place some surroundings
        span = np.maximum(high - low, 1.0 if globe else 1e-6)
        half = 0.54 * max(span[0], span[1] / ASPECT) * np.array([1.0, ASPECT])
        centre = (low + high) / 2
        towns: list[tuple[str, float, float]] = []
        if globe:
            lon, lat = (east, 0.0) + centre / degree
            across, up = np.minimum(half / degree, 180)
            found = find_towns(Box(lon - across, max(-90, lat - up), lon + across, min(90, lat + up)))
            towns = [(t.name, (t.lon - lon) * degree[0], (t.lat - lat) * degree[1]) for t in found]
        return Window(xy - centre, np.all(np.abs(xy - centre) <= half, axis=1), half, towns)

    def outside(self, weight: ArrayLike) -> str:
        """Return what the window does not show, in words; "" where that is nothing."""
        share = np.asarray(weight, dtype=float)
        away = (share > 0) & ~self.inside
        if not away.any():
            return ""
        far, part = np.hypot(*self.xy[away].T).max(), share[away].sum() / share.sum()
        outside = counted(int(away.sum()), "place")
        time = f"{100 * part:.1f} %" if part >= 0.0005 else "less than 0.1 %"
        return f"Outside: {outside} with {time} of the time, up to {far:,.0f} km away."


def _nearly_all(xy: Floats, weight: Floats) -> NDArray[np.bool_]:
    """Return the places that hold nearly all weight, or all where that shrinks the map by less than a third."""
    held: NDArray[np.bool_] = weight > 0
    every, fewer = np.flatnonzero(held), held.copy()
    for side in xy.T:
        order = every[np.argsort(side[every], kind="stable")]
        upto = np.cumsum(weight[order]) / weight.sum()
        ends = np.minimum(np.searchsorted(upto, [(1 - NEARLY_ALL) / 2, (1 + NEARLY_ALL) / 2]), len(order) - 1)
        low, high = side[order[ends]]
        fewer[every] &= (side[every] >= low) & (side[every] <= high)
    return fewer if fewer.any() and 1.5 * np.ptp(xy[fewer], axis=0).max() <= np.ptp(xy[held], axis=0).max() else held


def _round(rough: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is at most `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return power * max(m for m in (1, 2, 5) if m * power <= rough)


def draw_base(window: Window, axes: "Axes | None" = None) -> "Axes":
    """Draw what lies under every map, names of towns and the scale: on axes, or on those that fill a new figure."""
    if axes is None:
        figure = new_figure(WIDTH, WIDTH * window.half[1] / window.half[0])
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1))
    wide, tall = window.half
    axes.set_xlim(-wide, wide)
    axes.set_ylim(-tall, tall)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(INKS["line"])
    for name, x, y in place_names(window.towns, window.half):
        axes.text(x, y, name, ha="center", va="center", fontsize=LETTERS, color=INKS["ink"], alpha=0.75, zorder=3)
    length = _round(0.5 * wide)
    text = f"{length:g} km" if length >= 1 else f"{1000 * length:g} m"
    axes.plot([-0.94 * wide, -0.94 * wide + length], [-0.94 * tall] * 2, color=INKS["ink"], linewidth=1.5)
    axes.text(-0.94 * wide, -0.91 * tall, text, fontsize=LETTERS, color=INKS["ink"])
    return axes


def place_names(towns: Sequence[tuple[str, float, float]], half: Floats) -> list[tuple[str, float, float]]:
    """
    Return the names that touch neither each other nor the edge, first come first served.

    Examples
    --------
    >>> [n for n, _, _ in place_names([("Big", 0, 0), ("Hidden", 0.5, 0), ("Far", 0, 5)], np.array([10.0, 10.0]))]
    ['Big', 'Far']

    """
    km = 2 * float(half[0]) / (72 * WIDTH)  # kilometres per point of the picture
    names: list[tuple[str, float, float]] = []
    frames: list[tuple[float, float, float, float]] = []
    for name, x, y in towns:
        across, up = 0.32 * LETTERS * len(name) * km, 0.75 * LETTERS * km
        left, right, low, high = x - across, x + across, y - up, y + up
        fits = left > -half[0] and right < half[0] and low > -half[1] and high < half[1]
        if fits and not any(left < f[1] and right > f[0] and low < f[3] and high > f[2] for f in frames):
            names.append((name, x, y))
            frames.append((left, right, low, high))
        if len(names) == MOST_NAMES:
            break
    return names


def visits_map(
    visits: ArrayLike,
    *,
    ink: str = "fake",
    window: Window,
    most: float | None = None,
) -> Any:
    """
    Draw places as discs whose area is the number of visits (fig:visited-locs); places without a visit are not drawn.

    `window` and `most` (the visits of the largest disc) give several maps one scale.
    """
    count = np.asarray(visits, dtype=float)
    axes = draw_base(window)
    order = np.argsort(-count, kind="stable")[:MOST_PLACES]
    order = order[(count[order] > 0) & window.inside[order]]
    # of few sizes: those of one size share their outline in the file
    step = np.ceil(SIZES * count[order] / (count.max() if most is None else most))
    for size in np.unique(step)[::-1]:
        x, y = window.xy[order[step == size]].T
        axes.scatter(x, y, s=260 * size / SIZES, color=INKS[ink], alpha=0.6, linewidths=0, zorder=2)
    return axes.figure


def life_map(life: Life, window: Window, axes: "Axes | None" = None) -> Any:
    """
    Draw the places of a life in the colours of `life_strip`, and the moves between them, the more frequent the wider.

    Trips are arrows from where they begin to where they end.
    """
    from matplotlib.patches import FancyArrowPatch

    axes, v = draw_base(window, axes), life.visits
    origin, target, _ = Crowd(v, Plan(v.locations)).moves
    ends = np.column_stack([origin, target])
    ends = ends if v.trip is not None else np.sort(ends, axis=1)
    pairs, count = np.unique(ends, axis=0, return_counts=True)
    order = np.argsort(-count, kind="stable")[:MOST_MOVES]
    for (a, b), n in zip(pairs[order].tolist(), count[order].tolist(), strict=True):
        axes.add_patch(
            FancyArrowPatch(window.xy[a], window.xy[b], arrowstyle="-|>" if v.trip is not None else "-",
                            connectionstyle="arc3,rad=0.12", linewidth=min(0.6 + 0.25 * n, 3), color=INKS["soft"],
                            alpha=0.7, shrinkA=0, shrinkB=0 if v.trip is None else 4, mutation_scale=8, zorder=2)
        )  # fmt: skip
    for rank in reversed(range(len(RANKS))):
        places = np.unique(v.place[life.rank == rank])
        size = 70 if rank < 2 else 22
        x, y = window.xy[places].T
        axes.scatter(x, y, s=size, color=INKS[RANKS[rank]], edgecolors=INKS["ink"], linewidths=0.5,
                     zorder=4 - rank / 10)  # fmt: skip
    return axes.figure
