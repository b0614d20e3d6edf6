"""
The map of places, drawn from their coordinates alone: no tiles, no request.

Kilometres on a plane, north up, with a scale. Where places are many, the most visited are drawn.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.reports.markup import Child, Markup, number, tag
from elsewhere.reports.svg import SHAPES, drawing, figure, key, mark
from elsewhere.traces.model import Floats, Locations

MOST_PLACES = 2_000
MARGIN = 14.0
COLOURS = 8
NO_MAP = "The places have no coordinates, so there is no map of them."


class Sheet(NamedTuple):
    """The part of the plane that is drawn: position of each place in the picture, its size, kilometres per unit."""

    x: Floats
    y: Floats
    width: float
    height: float
    km: float

    @staticmethod
    def of(locations: Locations, shown: NDArray[np.bool_], width: float = 360) -> "Sheet":
        """The sheet that holds all `shown` places, north up."""
        flat = locations.planar()
        low, high = flat[shown].min(axis=0), flat[shown].max(axis=0)
        span = np.maximum(high - low, 1e-6)
        # neither a strip nor a tower: a town along one road still gets room for its marks
        span = np.maximum(span, span.max() / 2.5)
        low = (low + high) / 2 - span / 2
        km = float(span[0] / (width - 2 * MARGIN))
        height = float(span[1] / km + 2 * MARGIN)
        if height > 1.25 * width:
            km, height = float(span[1] / (1.25 * width - 2 * MARGIN)), 1.25 * width
        middle = low + span / 2
        x = width / 2 + (flat[:, 0] - middle[0]) / km
        y = height / 2 - (flat[:, 1] - middle[1]) / km
        return Sheet(x, y, width, height + 22, km)

    def scale(self) -> Markup:
        """A bar of a round number of kilometres, and north."""
        rough = 0.3 * self.width * self.km
        power = 10.0 ** math.floor(math.log10(rough))
        length = power * max(m for m in (1, 2, 5) if m * power <= rough)
        shown = f"{length:g} km" if length >= 1 else f"{1000 * length:g} m"
        y, wide = self.height - 10, length / self.km
        bar = f"M{MARGIN:g} {y - 4:.1f}v8M{MARGIN:g} {y:.1f}h{wide:.1f}m0 -4v8"
        north = f"M{self.width - 16:g} {y + 5:.1f}v-14m-4 5l4 -6l4 6"
        return tag(
            "g",
            tag("path", d=bar, class_="axis"),
            tag("text", shown, x=MARGIN + wide + 6, y=y + 4, class_="soft"),
            tag("path", d=north, class_="axis"),
            tag("text", "N", x=self.width - 26, y=y + 4, text_anchor="end", class_="soft"),
        )


def most_visited(visits: ArrayLike) -> NDArray[np.bool_]:
    """The places with a visit, at most `MOST_PLACES` of them."""
    count = np.asarray(visits, dtype=np.float64)
    shown: NDArray[np.bool_] = count > 0
    if shown.sum() > MOST_PLACES:
        shown = np.zeros(len(count), dtype=bool)
        shown[np.argsort(-count, kind="stable")[:MOST_PLACES]] = True
    return shown


def map_of_visits(
    locations: Locations,
    visits: ArrayLike,
    *,
    title: str,
    unit: str = "visits",
    ink: str = "fake",
    around: NDArray[np.bool_] | None = None,
    caption: Child = None,
) -> Markup:
    """
    Places as discs whose area is the number of visits (fig:visited-locs); places without a visit are not drawn.

    `around` names the places that the sheet must hold, so that several maps have one scale.

    Examples
    --------
    >>> import elsewhere as ew
    >>> map_of_visits(ew.Locations(xy=[[0, 0], [1, 1]]), [3, 0], title="Visits").count("<circle") - 2
    1

    """
    count = np.asarray(visits, dtype=np.float64)
    shown = most_visited(count)
    if not locations.has_coordinates:
        return tag("p", NO_MAP, class_="note")
    if not shown.any():
        return tag("p", "No place has a visit, so there is no map.", class_="note")
    sheet = Sheet.of(locations, shown if around is None else shown | around)
    most = count.max()
    radius = 1.2 + 8.8 * np.sqrt(count / most)
    order = np.flatnonzero(shown)[np.argsort(-count[shown], kind="stable")]
    discs = [
        tag("circle", tag("title", f"{number(float(count[r]), 0)} {unit}"), cx=float(sheet.x[r]), cy=float(sheet.y[r]),
            r=float(radius[r]), class_="fill faint")
        for r in order
    ]  # fmt: skip
    sizes = tag(
        "ul",
        [
            tag(
                "li",
                tag("svg", tag("circle", cx=11.0, cy=11.0, r=1.2 + 8.8 * math.sqrt(v / most), class_="fill faint"),
                    viewBox="0 0 22 22", class_=f"ink-{ink}", aria_hidden="true", style="height:1.4rem"),
                f"{number(float(v), 0)} {unit}",
            )
            for v in (most, max(1.0, round(most / 10)))
        ],
        class_="legend",
    )  # fmt: skip
    left_out = int((count > 0).sum() - shown.sum())
    note = f"{int(shown.sum())} places" + (f"; {left_out} less visited ones are not drawn" if left_out else "")
    label = f"{title}: map of {note}, area by {unit}, largest {number(float(most), 0)}"
    picture = drawing(sheet.width, sheet.height, label, tag("g", discs, class_=f"ink-{ink}"), sheet.scale())
    return figure(picture, title=title, legend=sizes, caption=[caption, " " if caption else None, f"{note}."])


def class_look(label: int) -> tuple[str, str]:
    """Ink and shape of a class: eight colours, then other shapes in the same colours."""
    if label < 0:
        return "none", "circle"
    return f"k{label % COLOURS}", SHAPES[(label + label // COLOURS) % len(SHAPES)]


def map_of_classes(
    locations: Locations,
    label: ArrayLike,
    *,
    title: str,
    shown: NDArray[np.bool_] | None = None,
    around: NDArray[np.bool_] | None = None,
    names: Sequence[str] | None = None,
    caption: Child = None,
) -> Markup:
    """
    Places by semantic class (fig:semantic-clusters): a colour and a shape for each class.

    Examples
    --------
    >>> import elsewhere as ew
    >>> "class 2 (1)" in map_of_classes(ew.Locations(xy=[[0, 0], [1, 1]]), [0, 1], title="Classes")
    True

    """
    classes = np.asarray(label)
    drawn = (classes >= 0) if shown is None else (shown & (classes >= 0))
    if not locations.has_coordinates:
        return tag("p", NO_MAP, class_="note")
    if not drawn.any():
        return tag("p", "No place has a class, so there is no map.", class_="note")
    if drawn.sum() > MOST_PLACES:
        drawn[np.flatnonzero(drawn)[MOST_PLACES:]] = False
    sheet = Sheet.of(locations, drawn if around is None else drawn | around)
    groups, items = [], []
    for c in np.unique(classes[drawn]).tolist():
        ink, shape = class_look(c)
        here = np.flatnonzero(drawn & (classes == c))
        name = f"class {c + 1}" if names is None else names[c]
        marks = [mark(shape, float(sheet.x[r]), float(sheet.y[r]), 3.4, "fill") for r in here]
        groups.append(tag("g", tag("title", name), marks, class_=f"ink-{ink}"))
        items.append((f"{name} ({len(here)})", ink, shape))
    picture = drawing(sheet.width, sheet.height, f"{title}: map of {int(drawn.sum())} places in {len(items)} classes",
                      groups, sheet.scale())  # fmt: skip
    return figure(picture, title=title, legend=key(items), caption=[caption, " " if caption else None, "Number of places in brackets."])  # noqa: E501 # fmt: skip
