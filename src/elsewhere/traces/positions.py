"""Where rows are: coordinates that are on the globe, and places by number or name."""

import numpy as np

from elsewhere.traces.model import Floats, Ints, Locations, in_space
from elsewhere.traces.places import Map, mean_points
from elsewhere.traces.rows import Mask, Shape
from elsewhere.traces.tables import Table, numbers, points

SAME_PLACE_KM = 1.0  # a column of places whose fixes lie farther apart names something else
PLAIN_NUMBERS = 10_000  # place numbers below this are kept as they are, however few of them occur


def positions(shape: Shape, table: Table) -> tuple[Floats, Floats] | None:
    """Latitude and longitude of every row, NaN where there is none; None where no column has them."""
    if {"lat", "lon"} <= shape.roles.keys():
        lat, lon = numbers(table, shape.roles["lat"]), numbers(table, shape.roles["lon"])
        return lat, np.where((lon > 180) & (lon <= 360), lon - 360, lon) if shape.lon360 else lon
    return points(table, shape.roles["geometry"]) if "geometry" in shape.roles else None


def refuse_positions(shape: Shape, position: tuple[Floats, Floats] | None) -> None:
    """Refuse columns of coordinates that are swapped, or no degrees."""
    if position is None:
        return
    lat, lon = position
    number = np.isfinite(lat) & np.isfinite(lon)
    if not number.any():
        return
    high, wide = number & (np.abs(lat) > 90), number & (np.abs(lon) > 180)
    limit, n = max(shape.max_bad, 0.01), int(number.sum())
    if np.all(np.abs(lat[number]) > 1000) or np.all(np.abs(lon[number]) > 1000):
        raise shape.table.refuse(
            "the coordinates are no degrees; metres of a map? Convert them to latitude and longitude (EPSG:4326), or "
            "give the rows a column of places, and these with --locations as lines `x, y` in km.",
            "E_SWAPPED",
        )
    small = max(np.abs(lat[number]).max(), np.abs(lon[number]).max()) < np.pi
    # all of them in the sea off Ghana; a box says that they really are
    if small and shape.box is None and np.any((lat != 0) | (lon != 0)):
        raise shape.table.refuse("the coordinates are no degrees; radians? If they are, give `box`.", "E_SWAPPED")
    turned = number & (np.abs(lon) <= 90) & (np.abs(lat) <= 180)
    if high.sum() > limit * n and turned.sum() >= (1 - limit) * n:
        raise shape.table.refuse("the columns of latitude and longitude look swapped.", "E_SWAPPED")
    if (wide & (lon > 0) & (lon <= 360)).sum() > limit * n >= high.sum():
        raise shape.table.refuse("longitudes run from 0 to 360: say `lon360`.", "E_OUTSIDE")


def position_faults(shape: Shape, position: tuple[Floats, Floats] | None) -> dict[str, Mask]:
    """Rows whose coordinates are none, or off the globe."""
    if position is None:
        return {}
    lat, lon = position
    number = np.isfinite(lat) & np.isfinite(lon)
    return {"E_NUMBER": ~number, "E_OUTSIDE": number & ((np.abs(lat) > 90) | (np.abs(lon) > 180))}


def odd_positions(here: tuple[Floats, Floats] | None) -> list[str]:
    """A word on positions that are possible and seldom meant (B25)."""
    pole = 0 if here is None else int((np.abs(here[0]) > 85).sum())
    return [f"{pole} rows lie within 5 degrees of a pole"] if pole else []


def spread(place: Ints, n: int, position: tuple[Floats, Floats] | None) -> float:
    """Share of rows that lie far from the mean of their place's rows; 0 without coordinates."""
    if position is None:
        return 0.0
    lat, lon = position
    number = (place >= 0) & np.isfinite(lat) & np.isfinite(lon)
    if not number.any():
        return 1.0
    at = place[number]
    mean = in_space(*mean_points(lat[number], lon[number], at, n))
    away = np.linalg.norm(in_space(lat[number], lon[number]) - mean[at], axis=1)
    return float(np.mean(away > SAME_PLACE_KM))


def number_places(
    shape: Shape,
    good: Mask | None,
    codes: Ints,
    names: tuple[str, ...],
    given: Map | None,
    here: tuple[Floats, Floats] | None,
    base: int = 0,
) -> tuple[Locations, Ints]:
    """
    Places and the place number of every good row, -1 where it is marked as missing (no label, or "-1").

    `good` tells which rows of the table these are, for messages; None where it is no longer known. Labels are ids or
    numbers of the `given` places. Without any, places have the mean coordinates of their rows, the
    order of their labels, and these as names; without coordinates whole numbers stay what they are.
    """
    missing = names.index("-1") if "-1" in names else -1
    codes = np.where(codes == missing, -1, codes)
    used = np.unique(codes[codes >= 0])
    if len(used) == 0:
        raise shape.table.refuse("no row has a place.", "E_EMPTY")
    whole = all(names[c].isascii() and names[c].removeprefix("-").isdigit() for c in used)
    number = np.full(len(names) + 1, -1, dtype=np.int64)  # of each label; the last entry is that of -1

    def refuse(label: int, what: str) -> Exception:
        row = None if good is None else int(np.flatnonzero(good)[np.argmax(codes == label)])
        return shape.table.refuse(what, "E_INDEX", row)

    if given is not None and given.number is not None and not base:
        for c in used:
            if names[c] not in given.number:
                raise refuse(c, "a place that is not among the locations.")
            number[c] = given.number[names[c]]
        return given.locations, number[codes]
    if given is None and here is not None:
        group = np.searchsorted(used, codes)
        seen = codes >= 0
        lat, lon = mean_points(here[0][seen], here[1][seen], group[seen], len(used))
        number[used] = np.arange(len(used))
        return Locations(lat, lon, names=[names[c] for c in used]), number[codes]
    if not whole:
        if given is not None:
            raise refuse(int(used[0]), "a place that is no number; `locations` without ids are numbered from 0.")
        number[used] = np.arange(len(used))
        return Locations(n=len(used), names=[names[c] for c in used]), number[codes]
    values = [int(names[c]) for c in used]
    if given is None and max(values) >= max(PLAIN_NUMBERS, 10 * len(used)):
        number[used] = np.arange(len(used))
        return Locations(n=len(used), names=[names[c] for c in used]), number[codes]
    R = max(values) - base + 1 if given is None else len(given.locations)
    for c, value in zip(used, values, strict=True):
        if not base <= value < base + R:
            hint = "; are they counted from 1?" if not base and min(values) >= 1 and max(values) == R else ""
            raise refuse(int(c), f"a place outside {base} .. {base + R - 1}{hint}.")
        number[c] = value - base
    if given is None:
        return Locations(n=R), number[codes]
    # the caller's numbers are the caller's names
    where = given.locations if given.locations.names else given.locations.called(names=list(map(str, range(R))))
    return where, number[codes]
