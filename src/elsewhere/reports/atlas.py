"""
Maps of places by visits, by class and by the trips between them, real and fake on one scale: no tiles, no request.

Kilometres on a plane, north up, with a scale; under places that have latitude and longitude lie coasts, borders and
names of towns where these are installed (`traces.ground`). A map is zoomed to nearly all of its visits, and says what
lies outside. Where places are many, the most visited are drawn.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.reports.markup import Child, Markup, number, percent, tag
from elsewhere.reports.svg import SHAPES, figure, key, mark
from elsewhere.traces.ground import HINT, SOURCES, Box, clip_outlines, find_towns, is_installed
from elsewhere.traces.model import EARTH_RADIUS_KM, Floats, Ints, Locations, Places, Traces

MOST_PLACES = 2_000
MARGIN = 14.0
STRIP = 22.0  # below the map: scale and north
COLOURS = 8
NEARLY_ALL = (0.99, 0.98, 0.95)  # shares of the visits that a map may be zoomed to, where that halves it
MOST_NAMES = 16
MOST_FLOWS = 40
NO_MAP = "The places have no coordinates, so there is no map of them."

Mask = NDArray[np.bool_]


class Sheet(NamedTuple):
    """
    The part of the plane that is drawn.

    Position of each place in the picture and whether it lies on the map; size of the picture, kilometres per unit; and
    for places on the globe longitude and latitude of the middle, and units per degree of either.
    """

    x: Floats
    y: Floats
    inside: Mask
    width: float
    height: float
    km: float
    middle: Floats | None = None
    per_degree: Floats | None = None

    @staticmethod
    def of(locations: Locations, shown: Mask, weight: ArrayLike | None = None, width: float = 360) -> "Sheet":
        """Return the sheet that holds all `shown` places, north up; with `weight`, one that holds nearly all weight."""
        flat, centre = _plane(locations, shown)
        visible = shown if weight is None else _nearly_all(flat, np.where(shown, np.asarray(weight, dtype=float), 0.0))
        low, high = flat[visible].min(axis=0), flat[visible].max(axis=0)
        # a town along one road still gets room for its marks, and a single place some surroundings
        span = np.maximum(high - low, 1e-6 if centre is None else 1.0)
        span = np.maximum(span, span.max() / 2.5)
        km = float(span[0] / (width - 2 * MARGIN))
        height = float(span[1] / km + 2 * MARGIN)
        if height > 1.25 * width:
            km, height = float(span[1] / (1.25 * width - 2 * MARGIN)), 1.25 * width
        middle = (low + high) / 2
        x = width / 2 + (flat[:, 0] - middle[0]) / km
        y = height / 2 - (flat[:, 1] - middle[1]) / km
        inside: Mask = (x >= 0) & (x <= width) & (y >= 0) & (y <= height)
        sheet = Sheet(x, y, inside, width, height + STRIP, km)
        if centre is None:
            return sheet
        lat = math.degrees(middle[1] / EARTH_RADIUS_KM)
        lon = centre[0] + math.degrees(middle[0] / EARTH_RADIUS_KM / centre[1])
        up = math.radians(1) * EARTH_RADIUS_KM / km
        return sheet._replace(middle=np.array([lon, lat]), per_degree=np.array([up * centre[1], -up]))

    def scale(self) -> Markup:
        """Draw a bar of a round number of kilometres, and north."""
        length = _round(0.3 * self.width * self.km)
        label = f"{length:g} km" if length >= 1 else f"{1000 * length:g} m"
        y, wide = self.height - 10, length / self.km
        bar = f"M{MARGIN:g} {y - 4:.1f}v8M{MARGIN:g} {y:.1f}h{wide:.1f}m0 -4v8"
        north = f"M{self.width - 16:g} {y + 5:.1f}v-14m-4 5l4 -6l4 6"
        return tag(
            "g",
            tag("path", d=bar, class_="axis"),
            tag("text", label, x=MARGIN + wide + 6, y=y + 4, class_="soft"),
            tag("path", d=north, class_="axis"),
            tag("text", "N", x=self.width - 26, y=y + 4, text_anchor="end", class_="soft"),
        )

    def lines(self) -> dict[str, list[Floats]]:
        """Return the rings of land, and rivers and borders within the map, in its units, by layer; {} off the globe."""
        if self.middle is None or not is_installed():
            return {}
        size = np.array([self.width, self.height - STRIP])
        return clip_outlines(self._box(), self.width * self.km, self._position, np.zeros(2), size)

    def ground(self) -> "Ground":
        """Draw land and water, borders and names of towns; nothing where the places are not on the globe."""
        layers, tall = self.lines(), self.height - STRIP
        if not layers:
            return Ground(None, None)
        shapes: list[Child] = [tag("rect", x=0.0, y=0.0, width=self.width, height=tall, class_="water")]
        for layer, pieces in layers.items():
            end = "Z" if layer == "land" else ""
            way = "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in piece.tolist()) + end for piece in pieces)
            if way:
                shapes.append(tag("path", d=way, class_=layer))
        at = [(t.name, *self._position(np.array([t.lon, t.lat])).tolist()) for t in find_towns(self._box())]
        names = [tag("text", n.name, x=n.x, y=n.y, text_anchor="middle", class_="town", style=f"font-size:{n.size:g}px")
                 for n in place_names(at, self.width, tall)]  # fmt: skip
        return Ground(tag("g", shapes), tag("g", names))

    def _position(self, degrees: Floats) -> Floats:
        """Return longitude and latitude in units of the picture."""
        assert self.middle is not None and self.per_degree is not None  # noqa: PT018, S101 - on the globe only
        return np.asarray(np.array([self.width, self.height - STRIP]) / 2 + (degrees - self.middle) * self.per_degree)

    def _box(self) -> Box:
        """Return the part of the globe that the map shows."""
        assert self.middle is not None and self.per_degree is not None  # noqa: PT018, S101 - on the globe only
        lon, lat = self.middle.tolist()
        across, up = np.array([self.width, self.height - STRIP]) / 2 / np.abs(self.per_degree)
        wide = min(180.0, float(across))
        return Box(lon - wide, max(-90.0, lat - float(up)), lon + wide, min(90.0, lat + float(up)))


class Ground(NamedTuple):
    """What lies under the marks of a map, and the names that stand above them."""

    below: Markup | None
    above: Markup | None

    def share(self, name: str) -> tuple["Ground", "Ground"]:
        """Return this ground with an id, and one that other maps of the page repeat it by, in a few bytes."""
        ids = [f"{name}-{part}" for part in self._fields]
        first = [None if p is None else tag("g", p, id=i) for p, i in zip(self, ids, strict=True)]
        again = [None if p is None else tag("use", href=f"#{i}") for p, i in zip(self, ids, strict=True)]
        return Ground(*first), Ground(*again)


def _round(rough: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is at most `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return power * max(m for m in (1, 2, 5) if m * power <= rough)


def _plane(locations: Locations, shown: Mask) -> tuple[Floats, tuple[float, float] | None]:
    """
    Return kilometres (R, 2) on a plane; on the globe also its longitude of x = 0, and how narrow a degree of it
    is.
    """
    if locations.lat is None or locations.lon is None:
        return locations.planar(), None
    turn = np.radians(locations.lon[shown])
    east = math.degrees(math.atan2(np.sin(turn).mean(), np.cos(turn).mean()))
    off = (locations.lon - east + 180) % 360 - 180
    # true to scale in the middle; at a pole, where all longitudes meet, at least not a point
    narrow = max(0.01, math.cos(math.radians(float(np.median(locations.lat[shown])))))
    flat = np.radians(np.column_stack([narrow * off, locations.lat])) * EARTH_RADIUS_KM
    return flat, (east, narrow)


def _nearly_all(flat: Floats, weight: Floats) -> Mask:
    """
    Return the places that hold nearly all weight: a few far ones must not shrink a town.

    From all of them to 99, 98 and 95 per cent of the weight, as much left out on each side: a step is taken where it
    halves the map.
    """
    held: Mask = weight > 0
    every = np.flatnonzero(held)
    for share in NEARLY_ALL:
        fewer = weight > 0
        for side in flat.T:
            order = every[np.argsort(side[every], kind="stable")]
            upto = np.cumsum(weight[order]) / weight.sum()
            ends = np.minimum(np.searchsorted(upto, [(1 - share) / 2, (1 + share) / 2]), len(order) - 1)
            low, high = side[order[ends]]
            fewer[every] &= (side[every] >= low) & (side[every] <= high)
        if fewer.any() and 2 * np.ptp(flat[fewer], axis=0).max() <= np.ptp(flat[held], axis=0).max():
            held = fewer
    return held


class Label(NamedTuple):
    """A name in the picture: middle of its text, and its size."""

    name: str
    x: float
    y: float
    size: float

    def frame(self) -> tuple[float, float, float, float]:
        """Return left, top, right, bottom of its letters, with a little air."""
        half = 0.29 * self.size * len(self.name) + 2
        return self.x - half, self.y - 0.9 * self.size, self.x + half, self.y + 0.35 * self.size


def place_names(towns: Sequence[tuple[str, float, float]], width: float, height: float) -> list[Label]:
    """
    Place the names that fit without touching each other or the edge, first come first served; the first in larger
    letters.

    Examples
    --------
    >>> [n.name for n in place_names([("Big", 50, 20), ("Hidden", 52, 20), ("Far", 50, 50)], 100, 60)]
    ['Big', 'Far']

    """
    labels: list[Label] = []
    for name, x, y in towns:
        size = 13.0 if len(labels) < 1 else 11.5 if len(labels) < 5 else 10.5
        for shift in (0.3, 1.3, -0.8):
            label = Label(name, x, y + shift * size, size)
            left, top, right, bottom = label.frame()
            fits = left >= 0 and top >= 0 and right <= width and bottom <= height
            if fits and not any(left < f[2] and right > f[0] and top < f[3] and bottom > f[1] for f in (m.frame() for m in labels)):  # noqa: E501 # fmt: skip
                labels.append(label)
                break
        if len(labels) == MOST_NAMES:
            break
    return labels


def most_visited(visits: ArrayLike) -> Mask:
    """Return the places with a visit, at most `MOST_PLACES` of them."""
    count = np.asarray(visits, dtype=np.float64)
    shown: Mask = count > 0
    if shown.sum() > MOST_PLACES:
        shown = np.zeros(len(count), dtype=bool)
        shown[np.argsort(-count, kind="stable")[:MOST_PLACES]] = True
    return shown


def _map(sheet: Sheet, ground: Ground, label: str, marks: Child, **words: Child) -> Markup:
    """Draw a map: ground, marks, names, scale; what reaches over its edge is cut. `words` are those of `figure`."""
    tall = sheet.height - STRIP
    frame = tag("rect", x=0.5, y=0.5, width=sheet.width - 1, height=tall - 1, class_="grid")
    inner = tag("svg", ground.below, marks, ground.above, frame, width=sheet.width, height=tall, aria_hidden="true")
    return figure([inner, sheet.scale()], sheet.width, sheet.height, label, **words)


def map_of_visits(
    locations: Locations,
    visits: ArrayLike,
    *,
    title: str,
    unit: str = "visits",
    digits: int = 0,
    ink: str = "fake",
    sheet: Sheet | None = None,
    ground: Ground | None = None,
    most: float | None = None,
) -> Markup:
    """
    Draw places as discs whose area is the number of visits (fig:visited-locs); places without a visit are not drawn.

    `sheet` and `most` (the number of visits of the largest disc) give several maps one scale, `ground` what lies under
    them; by default the map has its own, zoomed to nearly all visits.

    Examples
    --------
    >>> import elsewhere as ew
    >>> map_of_visits(ew.Locations(xy=[[0, 0], [1, 1]]), [3, 0], title="Visits").count("<circle") - 2
    1

    """
    count = np.asarray(visits, dtype=np.float64)
    visible = most_visited(count)
    if not locations.has_coordinates:
        return tag("p", NO_MAP, class_="note")
    if not visible.any():
        return tag("p", "No place has a visit, so there is no map.", class_="note")
    here = Sheet.of(locations, visible, count) if sheet is None else sheet
    under = here.ground() if ground is None else ground
    top = float(count.max()) if most is None else most
    on_sheet = visible & here.inside
    order = np.flatnonzero(on_sheet)[np.argsort(-count[on_sheet], kind="stable")]
    radius = 1.2 + 8.8 * np.sqrt(count / top)
    discs = [
        tag("circle", tag("title", f"{number(float(count[r]), digits)} {unit}"), cx=float(here.x[r]),
            cy=float(here.y[r]), r=float(radius[r]), class_="fill faint")
        for r in order
    ]  # fmt: skip
    smaller = max(10.0**-digits, round(top / 10, digits))
    sizes = tag(
        "ul",
        [
            tag(
                "li",
                tag("svg", tag("circle", cx=11.0, cy=11.0, r=1.2 + 8.8 * math.sqrt(v / top), class_="fill faint"),
                    viewBox="0 0 22 22", class_=f"ink-{ink}", aria_hidden="true", style="height:1.4rem"),
                f"{number(float(v), digits)} {unit}",
            )
            for v in ((top, smaller) if smaller < top else (top,))
        ],
        class_="legend",
    )  # fmt: skip
    left_out = int(((count > 0) & here.inside).sum() - on_sheet.sum())
    note = f"{int(on_sheet.sum())} places" + (f"; {left_out} less visited ones are not drawn" if left_out else "")
    label = f"{title}: map of {note}, area by {unit}, largest {number(float(count.max()), digits)}"
    marks, caption = tag("g", discs, class_=f"ink-{ink}"), [f"{note}.", _outside(here, count)]
    return _map(here, under, label, marks, title=title, legend=sizes, caption=caption)


def _outside(sheet: Sheet, count: Floats) -> str | None:
    """Return what a zoomed map does not show, in words."""
    away = (count > 0) & ~sheet.inside
    if not away.any():
        return None
    off = np.hypot(sheet.x[away] - sheet.width / 2, sheet.y[away] - (sheet.height - STRIP) / 2).max() * sheet.km
    share = percent(float(count[away].sum() / count.sum()))
    words = "1 place" if away.sum() == 1 else f"{int(away.sum())} places"
    return f" {words} with {share} of the visits {'lies' if away.sum() == 1 else 'lie'} outside the map, up to {number(float(off), 0)} km from its middle."  # noqa: E501 # fmt: skip


def map_of_classes(
    locations: Locations,
    label: ArrayLike,
    *,
    title: str,
    shown: Mask | None = None,
    sheet: Sheet | None = None,
    ground: Ground | None = None,
    caption: Child = None,
) -> Markup:
    """
    Draw places by semantic class (fig:semantic-clusters): a colour and a shape for each class.

    Examples
    --------
    >>> import elsewhere as ew
    >>> "class 2 (1)" in map_of_classes(ew.Locations(xy=[[0, 0], [1, 1]]), [0, 1], title="Classes")
    True

    """
    classes = np.asarray(label)
    visible = (classes >= 0) if shown is None else (shown & (classes >= 0))
    if not locations.has_coordinates:
        return tag("p", NO_MAP, class_="note")
    if not visible.any():
        return tag("p", "No place has a class, so there is no map.", class_="note")
    if visible.sum() > MOST_PLACES:
        visible[np.flatnonzero(visible)[MOST_PLACES:]] = False
    here = Sheet.of(locations, visible) if sheet is None else sheet
    under = here.ground() if ground is None else ground
    visible &= here.inside
    groups, items = [], []
    for c in np.unique(classes[visible]).tolist():
        # eight colours, then other shapes in the same colours
        ink, shape = f"k{c % COLOURS}", SHAPES[(c + c // COLOURS) % len(SHAPES)]
        members = np.flatnonzero(visible & (classes == c))
        name = f"class {c + 1}"
        marks = [mark(shape, float(here.x[r]), float(here.y[r]), 3.4, "fill") for r in members]
        groups.append(tag("g", tag("title", name), marks, class_=f"ink-{ink}"))
        items.append((f"{name} ({len(members)})", ink, shape))
    words = [caption, " " if caption else None, "Number of places in brackets."]
    described = f"{title}: map of {int(visible.sum())} places in {len(items)} classes"
    return _map(here, under, described, groups, title=title, legend=key(items), caption=words)


class Flows(NamedTuple):
    """Trips between two zones, both ways: the pair of zones, and how many trips there are."""

    pair: Ints
    trips: Ints
    of: int


def flows(r: Places, zone: Ints) -> Flows:
    """
    Count trips between zones, most first: a trip is a change of place between two known slots that follow each other.

    Examples
    --------
    >>> import numpy as np
    >>> result = flows(np.array([[0, -1, 1, 0], [1, 2, 2, 1]]), zone=np.array([0, 0, 1]))
    >>> result.pair.tolist(), result.trips.tolist(), result.of
    ([[0, 1]], [2], 4)

    """
    row, slot = np.nonzero(r >= 0)
    place = r[row, slot]
    moved = (row[1:] == row[:-1]) & (place[1:] != place[:-1])
    ends = np.sort(np.column_stack([zone[place[:-1][moved]], zone[place[1:][moved]]]), axis=1)
    ends = ends[(ends[:, 0] >= 0) & (ends[:, 0] != ends[:, 1])]
    pair, trips = np.unique(ends, axis=0, return_counts=True)
    order = np.lexsort((*pair.T[::-1], -trips))
    return Flows(pair[order], trips[order], int(moved.sum()))


def zones(sheet: Sheet, weight: Floats) -> tuple[Ints, Floats, Floats, float]:
    """
    Return squares of a round number of kilometres: zone of each place (-1 off the sheet), where they are, their
    size.
    """
    side = _round(max(sheet.width * sheet.km / 8, 1e-9))
    cell = side / sheet.km
    tall = sheet.height - STRIP
    across = math.ceil(sheet.width / cell) + 1
    shown = sheet.inside & (weight > 0)
    square = np.where(shown, 0, -1)
    square[shown] = np.floor(sheet.x[shown] / cell).astype(int) + across * np.floor((tall - sheet.y[shown]) / cell).astype(int)  # noqa: E501 # fmt: skip
    names, zone = np.unique(square, return_inverse=True)
    zone = zone - int(names[0] == -1)
    n = int(zone.max()) + 1
    total = np.bincount(zone[shown], weight[shown], n)
    x, y = (np.bincount(zone[shown], weight[shown] * side_[shown], n) / total for side_ in (sheet.x, sheet.y))
    return zone, np.asarray(x), np.asarray(y), side


def map_of_flows(
    sheet: Sheet,
    ground: Ground,
    r: Places,
    where: tuple[Ints, Floats, Floats, float],
    *,
    title: str,
    ink: str = "fake",
    widest: float | None = None,
) -> Markup:
    """
    Draw the strongest flows between zones as curves, the wider the larger their share of all trips.

    `where` is what `zones` made, `widest` the share of trips of the widest curve, so that several maps have one scale.
    """
    zone, x, y, side = where
    all_flows = flows(r, zone)
    if len(all_flows.trips) == 0:
        note = "Nobody goes from one zone to another, so there is no map of trips."
        return tag("figure", tag("h4", title), tag("p", note), class_="plot")
    share = all_flows.trips / all_flows.of
    top = float(share[0]) if widest is None else widest
    lines: list[Child] = []
    for (a, b), part in list(zip(all_flows.pair.tolist(), share.tolist(), strict=True))[:MOST_FLOWS][::-1]:
        bend_x, bend_y = (x[a] + x[b]) / 2 - (y[b] - y[a]) / 5, (y[a] + y[b]) / 2 + (x[b] - x[a]) / 5
        way = f"M{x[a]:.1f} {y[a]:.1f}Q{bend_x:.1f} {bend_y:.1f} {x[b]:.1f} {y[b]:.1f}"
        tip, wide = tag("title", f"{percent(part)} of the trips"), 0.8 + 7.2 * math.sqrt(part / top)
        lines.append(tag("path", tip, d=way, class_="stroke flow", style=f"stroke-width:{wide:.1f}"))
    ends = np.unique(all_flows.pair[:MOST_FLOWS])
    dots = [tag("circle", cx=float(x[z]), cy=float(y[z]), r=2.0, class_="fill") for z in ends.tolist()]
    most, size = min(MOST_FLOWS, len(all_flows.trips)), f"{side:g} km" if side >= 1 else f"{1000 * side:g} m"
    note = (
        f"Trips between squares of {size}, both ways: the {most} strongest of {number(len(all_flows.trips))} pairs, "
        f"{percent(float(share[:most].sum()), 0)} of all trips. The widest line{' of both maps' if widest else ''} is "
        f"{percent(top)}."
    )
    marks = tag("g", lines, dots, class_=f"ink-{ink}")
    return _map(sheet, ground, f"{title}: {note}", marks, title=title, caption=note)


def atlas(fakes: Traces | None, real: Traces | None, label: Ints | None) -> list[Child]:
    """
    Draw all maps of the report: visits and trips, real and fake side by side on one sheet and scale, and the classes.

    The sheet is drawn around what is shown and nothing else: without `real` it rests on the fakes alone.
    """
    both = [(t, words, ink) for t, words, ink in ((real, "real traces", "real"), (fakes, "fakes", "fake")) if t]
    # the owner's map is whole; that of a pool has unknown places moved
    where = both[0][0].locations
    if not where.has_coordinates:
        return [tag("p", NO_MAP, class_="note")]
    times = [np.bincount(t.r[t.r >= 0], minlength=t.R) for t, _, _ in both]
    shares = [100 * n / n.sum() for n in times]
    # a class was learnt from people: where no shown trace goes, it stays at home
    seen = np.any(times, axis=0)
    sheet = Sheet.of(where, most_visited(sum(shares)), sum(shares))
    ground, again = sheet.ground().share("ground")
    most = float(max(s.max() for s in shares))
    visits: list[Child] = [
        map_of_visits(where, share, title=f"Places by visits, {words}", unit="% of the time", digits=2, ink=ink,
                      sheet=sheet, ground=again if i else ground, most=most)
        for i, ((_, words, ink), share) in enumerate(zip(both, shares, strict=True))
    ]  # fmt: skip
    squares = zones(sheet, np.asarray(sum(shares)))
    strongest = [f.trips[0] / f.of for t, _, _ in both if len((f := flows(t.r, squares[0])).trips)]
    widest = float(max(strongest)) if len(both) > 1 and strongest else None
    trips: list[Child] = [
        map_of_flows(sheet, again, t.r, squares, title=f"Trips, {words}", ink=ink, widest=widest)
        for t, words, ink in both
    ]
    if label is not None:
        caption = "Places that play the same part in different people's lives share a class, a colour and a shape."
        classes = map_of_classes(
            where, label, title="Places by class", shown=seen, sheet=sheet, ground=again, caption=caption
        )
    else:
        classes = tag("p", "No classes were given, so there is no map of places by class.", class_="note")
    return [sources(where), tag("div", visits, trips, classes, class_="charts wide")]


def sources(where: Locations) -> Markup | None:
    """Return where coasts and names come from, or how to get them; nothing for places that are not on the globe."""
    return None if where.lat is None else tag("p", SOURCES if is_installed() else HINT, class_="note")
