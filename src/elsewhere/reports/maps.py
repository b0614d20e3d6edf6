"""Maps of places as figures of the paper: by visits and by class; positions in kilometres about the middle."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.reports.sheet import BLUE, COLOURS, MARKERS, finish, new_figure
from elsewhere.traces.model import Floats, Locations

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _about_the_middle(locations: Locations) -> Floats:
    where = locations.planar()
    return np.asarray(where - (where.min(axis=0) + where.max(axis=0)) / 2)


def visited_places(locations: Locations, visits: ArrayLike) -> "Figure":
    """Places as discs whose area is their number of visits (fig:visited-locs); east and north in kilometres."""
    count = np.asarray(visits, dtype=np.float64)
    figure = new_figure(4.2, 4.0)
    axes = figure.subplots()
    where, there = _about_the_middle(locations), count > 0
    axes.scatter(
        where[there, 0], where[there, 1], s=120 * count[there] / count.max() + 1, color=BLUE, alpha=0.55, linewidths=0
    )
    axes.set_aspect("equal")
    finish(axes, "east (km)", "north (km)", f"area: visits, at most {count.max():,.0f}")
    return figure


def places_by_class(locations: Locations, label: ArrayLike) -> "Figure":
    """Places by semantic class (fig:semantic-clusters): a colour and a marker for each class."""
    classes = np.asarray(getattr(label, "label", label))
    figure = new_figure(5.2, 4.0)
    axes = figure.subplots()
    where = _about_the_middle(locations)
    for c in np.unique(classes[classes >= 0]).tolist():
        marker = MARKERS[(c + c // len(COLOURS)) % len(MARKERS)]
        here = where[classes == c]
        axes.scatter(
            here[:, 0], here[:, 1], s=14, color=COLOURS[c % len(COLOURS)], marker=marker, linewidths=0, label=f"{c + 1}"
        )
    axes.set_aspect("equal")
    finish(axes, "east (km)", "north (km)")
    figure.legend(title="class", loc="outside right center", fontsize=8, ncols=1 + int(classes.max()) // 16)
    return figure
