"""Maps of places as figures of the paper: by visits and by class; kilometres about the middle, coasts beneath."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.reports.atlas import STRIP, Sheet
from elsewhere.reports.sheet import BLUE, COLOURS, MARKERS, finish, new_figure
from elsewhere.traces.model import Floats, Locations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = {"river": ("#a9c9de", 0.8, "-"), "province": ("#8d8471", 0.5, ":"), "border": ("#8d8471", 0.9, "--")}


def _under(axes: "Axes", sheet: Sheet) -> Floats:
    """Draw what lies under the map, zoom to it, and give the places in kilometres about its middle."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    half = np.array([sheet.width, sheet.height - STRIP]) / 2

    def placed(units: Floats) -> Floats:
        return np.asarray((units - half) * (sheet.km, -sheet.km))

    layers = sheet.lines()
    if layers:
        axes.set_facecolor("#d3e4ef")
    rings = [Path(placed(np.vstack([ring, ring[:1]])), closed=True) for ring in layers.pop("land", [])]
    if rings:
        axes.add_patch(PathPatch(Path.make_compound_path(*rings), facecolor="#f3f0e8", linewidth=0, zorder=0))
    for layer, pieces in layers.items():
        colour, width, dash = LINES[layer]
        for piece in pieces:
            axes.plot(*placed(piece).T, color=colour, linewidth=width, linestyle=dash, zorder=0.5)
    wide, tall = half * sheet.km
    axes.set_xlim(-wide, wide)
    axes.set_ylim(-tall, tall)
    axes.set_aspect("equal")
    return placed(np.column_stack([sheet.x, sheet.y]))


def visited_places(locations: Locations, visits: ArrayLike) -> "Figure":
    """Places as discs whose area is their number of visits (fig:visited-locs); east and north in kilometres."""
    count = np.asarray(visits, dtype=np.float64)
    figure = new_figure(4.2, 4.0)
    axes = figure.subplots()
    there = count > 0
    where = _under(axes, Sheet.of(locations, there, count))
    axes.scatter(
        where[there, 0], where[there, 1], s=120 * count[there] / count.max() + 1, color=BLUE, alpha=0.55, linewidths=0
    )
    finish(axes, "east (km)", "north (km)", f"area: visits, at most {count.max():,.0f}")
    return figure


def places_by_class(locations: Locations, label: ArrayLike) -> "Figure":
    """Places by semantic class (fig:semantic-clusters): a colour and a marker for each class."""
    classes = np.asarray(getattr(label, "label", label))
    figure = new_figure(5.2, 4.0)
    axes = figure.subplots()
    where = _under(axes, Sheet.of(locations, classes >= 0))
    for c in np.unique(classes[classes >= 0]).tolist():
        marker = MARKERS[(c + c // len(COLOURS)) % len(MARKERS)]
        here = where[classes == c]
        axes.scatter(
            here[:, 0], here[:, 1], s=14, color=COLOURS[c % len(COLOURS)], marker=marker, linewidths=0, label=f"{c + 1}"
        )
    finish(axes, "east (km)", "north (km)")
    figure.legend(title="class", loc="outside right center", fontsize=8, ncols=1 + int(classes.max()) // 16)
    return figure
