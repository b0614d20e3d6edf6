"""
Make places of coordinates: a grid, stays, the joining of places that few people visit, the paper's merging (E74).

A person's anchors, where they stay again and again, keep somebody who sits near the border of two cells from moving
between them. An accuracy radius (GPS, Wi-Fi, cell tower) gives weights over the places a slot may be at
(E4): it is read as phones give it, 68 % of positions lie within it, and the position is then a normal distribution of
which a place gets a share by the distance of its middle.
"""

import heapq
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter, InvalidTraces, require_whole
from elsewhere.sorting import count_users, distinct_visits
from elsewhere.traces.model import (
    EARTH_RADIUS_KM,
    Evidence,
    Floats,
    Ints,
    Locations,
    Mask,
    to_lat_lon,
    to_xyz,
)

MOST_GRID_CELLS = 20_000  # beyond that the grid is made coarser before anything is merged
COLUMN_BITS = 32
POLE_TO_POLE = np.pi * EARTH_RADIUS_KM * 1000  # metres
SHARED = 8  # visitors that a place needs to stay as it is (docs/decisions.md, the map)
# Li, Zheng, Xie, Chen, Liu, Ma (2008): a stay is 20 minutes or more within 200 m of its first fix
STAY_METRES = 200.0
STAY_SECONDS = 1200
ANCHOR_METRES = 100.0  # within which a stay makes an anchor, and another stay is at the same one: the width of a cell
WITHIN_ONE_RADIUS = 1.5096  # standard deviations that hold 68 % of a normal distribution in the plane
MOST_PLACES = 16  # of one fix
MANY_ENOUGH = 5  # users: a place of fewer is merged away before anything is learnt (E31)


class Words(NamedTuple):
    """The category in each row: its user, its place, the number of the word in `names`; -1 where there is none."""

    user: Ints
    place: Ints
    word: Ints
    names: tuple[str, ...]


def grid_cells(lat: Floats, lon: Floats, metres: float) -> Ints:
    """
    Return the number of the grid cell of each point; cells are about `metres` wide and high, everywhere on the globe.

    Rows of equal height run from pole to pole; each is cut into the whole number of columns that makes its cells
    nearly square. Longitudes 180 and -180 are one meridian, and cells near a pole are no sliver (B18, B24, B25).
    """
    rows = max(1, round(POLE_TO_POLE / metres))
    row = np.clip(np.floor((lat + 90) / (180 / rows)), 0, rows - 1).astype(np.int64)
    columns = _column_count(row, rows, metres)
    column = np.floor(((lon + 180) % 360) / 360 * columns).astype(np.int64) % columns
    return row << COLUMN_BITS | column


def cell_centres(cells: Ints, metres: float) -> tuple[Floats, Floats]:
    """
    Return latitude and longitude of the middle of each grid cell, to six decimals.

    The middle, not the mean of the fixes: the mean of one person's fixes is that person's door.
    """
    row, column = cells >> COLUMN_BITS, cells & ((1 << COLUMN_BITS) - 1)
    rows = max(1, round(POLE_TO_POLE / metres))
    lat = -90 + (row + 0.5) * (180 / rows)
    lon = -180 + (column + 0.5) * 360 / _column_count(row, rows, metres)
    return np.round(lat, 6), np.round(lon, 6)


def point_keys(lat: Floats, lon: Floats) -> NDArray[np.complex128]:
    """Return one number for each point, equal where the points are: at a pole, at longitudes 180 and -180."""
    east = np.where(np.abs(lat) == 90, 0.0, np.where(lon == 180, -180.0, lon))
    return np.asarray(lat + 1j * east)


def _column_count(row: Ints, rows: int, metres: float) -> Ints:
    """Return into how many columns each row of a grid is cut."""
    middle = np.radians(-90 + (row + 0.5) * (180 / rows))
    around = 2 * POLE_TO_POLE * np.cos(middle)
    return np.asarray(np.maximum(1, np.round(around / metres)), dtype=np.int64)


def make_grid(lat: Floats, lon: Floats, metres: float, most: int = MOST_GRID_CELLS) -> tuple[Locations, Ints, float]:
    """
    Return the visited grid cells as places, the place of each point, and the width of the cells in the end.

    A grid that would have more than `most` visited cells is made twice as coarse until it has not.
    """
    while True:
        cells, place = np.unique(grid_cells(lat, lon, metres), return_inverse=True)
        if len(cells) <= most:
            return Locations(*cell_centres(cells, metres)), place.astype(np.int64), metres
        metres *= 2


def reduce_places(locations: Locations, visits: Ints, *, cells: int) -> tuple[Locations, Ints]:
    """
    Return the paper's reduction of places (E74): 1,491 to 400 in its data.

    While more than `cells` remain, the pair with the smallest ‖x_i - x_j‖ max(1, w_i) max(1, w_j), w the visits, is
    replaced by its visit-weighted centroid. Of equal pairs the first in the order of places goes first, so the
    result is a function of its arguments; no visit is lost. A merged place takes the position of its first member
    in the order of places.

    Parameters
    ----------
    locations, visits
        The places, with coordinates, and how often each is visited.
    cells
        How many places may remain.

    Returns
    -------
    The remaining places, and for each old place the number of the one it is now part of.

    Examples
    --------
    >>> town = Locations(xy=[[0, 0], [3, 0], [4, 0]])
    >>> fewer, becomes = reduce_places(town, np.array([5, 1, 3]), cells=2)
    >>> fewer.xy.tolist(), becomes.tolist()
    ([[0.0, 0.0], [3.75, 0.0]], [0, 1, 1])

    """
    require_whole("cells", cells, 1)
    if len(visits) != len(locations) or np.any(visits < 0):
        raise InvalidTraces("`visits` must hold one count per place, none below 0.", code="E_SHAPE")
    if len(locations) <= cells:
        return locations, np.arange(len(locations))
    x, into = _merge(_points(locations), visits.astype(np.float64), cells)
    survivors, becomes = np.unique(into, return_inverse=True)
    return _make_locations(locations, x[survivors], survivors, becomes)


def share_places(locations: Locations, place: Ints, user: Ints, *, cells: int) -> tuple[Locations, Ints]:
    """
    Join places that few people visit with their neighbours: fine where many people are, coarse where few.

    While a place has fewer than eight visitors (than half of all people, if these are fewer than 16), the one with the
    fewest, of equals the first in the order of places, joins the nearest other place, and the two lie at their
    centroid, weighted by visitors. Above `cells`, the rest is merged as by `reduce_places`, with visitors for visits.

    Eight, because of any eight people about five are among the seven of ten that the product preset learns from, and
    a place that fewer than five of those visit is merged away before anything is learnt (E31).

    Parameters
    ----------
    locations
        The places, with coordinates.
    place, user
        The distinct pairs of a place and a user who visits it.
    cells
        How many places may remain.

    Returns
    -------
    The remaining places, and for each old place the number of the one it is now part of.

    Examples
    --------
    >>> street = Locations(xy=[[0, 0], [1, 0], [5, 0]])
    >>> ten, two = np.arange(10), np.arange(2)
    >>> fewer, becomes = share_places(street, np.repeat([0, 1, 2], [10, 2, 10]), np.r_[ten, two, ten], cells=9)
    >>> becomes.tolist(), fewer.xy.round(2).tolist()
    ([0, 0, 1], [[0.17, 0.0], [5.0, 0.0]])

    """
    require_whole("cells", cells, 1)
    n = len(locations)
    x, into = _join(_points(locations), place, user, min(SHARED, len(np.unique(user)) // 2))
    survivors, becomes = np.unique(into, return_inverse=True)
    if len(survivors) > cells:
        visitors = count_users(user, becomes[place], len(survivors))
        x[survivors], again = _merge(x[survivors], visitors.astype(np.float64), cells)
        survivors, becomes = np.unique(survivors[again][becomes], return_inverse=True)
    return _make_locations(locations, x[survivors], survivors, becomes.reshape(n))


def _join(x: Floats, place: Ints, user: Ints, least: int) -> tuple[Floats, Ints]:
    """Join places of fewer than `least` visitors with the nearest: where each lies now, and what it is part of."""
    n, globe = len(x), x.shape[1] == 3
    x, into = x.copy(), np.arange(n)
    weight = np.bincount(place, minlength=n).astype(np.float64)
    poor = weight < least
    # who visits matters only as long as they are few: a union of two small sets
    few = [set[int]() for _ in range(n)]
    for p, u in zip(place[poor[place]].tolist(), user[poor[place]].tolist(), strict=True):
        few[p].add(u)
    waiting = [(len(few[p]), p) for p in np.flatnonzero(poor).tolist()]
    heapq.heapify(waiting)
    axes = [axis.copy() for axis in x.T]
    apart, side = np.empty(n), np.empty(n)
    remaining = n
    while waiting and remaining > 1:
        count, i = heapq.heappop(waiting)
        if into[i] != i or not poor[i] or count != len(few[i]):
            continue  # an entry from before it grew
        apart[:] = 0
        for axis in axes:
            np.subtract(axis, axis[i], out=side)
            np.multiply(side, side, out=side)
            np.add(apart, side, out=apart)
        apart[i] = np.inf
        j = int(np.argmin(apart))
        total = weight[i] + weight[j]
        share = weight[i] / total if total > 0 else 0.5
        centre = np.array([share * axis[i] + (1 - share) * axis[j] for axis in axes])
        if globe:
            centre *= EARTH_RADIUS_KM / (np.linalg.norm(centre) or EARTH_RADIUS_KM)
        weight[j], into[i] = total, j
        for axis, value in zip(axes, centre, strict=True):
            axis[j], axis[i] = value, np.inf
        x[j] = centre
        remaining -= 1
        if poor[j]:
            few[j] |= few[i]
            poor[j] = len(few[j]) < least
            if poor[j]:
                heapq.heappush(waiting, (len(few[j]), j))
    while np.any(into != into[into]):
        into = into[into]
    return x, into


def _make_locations(locations: Locations, x: Floats, kept: Ints, becomes: Ints) -> tuple[Locations, Ints]:
    """Return the places at `x`, of which `kept` are the old numbers, and what each old place has become."""
    alone = np.bincount(becomes) == 1
    names = locations.names and [locations.names[i] * bool(own) for i, own in zip(kept, alone, strict=True)]
    if locations.xy is not None:
        return Locations(xy=x, names=names), becomes
    lat, lon = to_lat_lon(x)
    # a place that took nobody in keeps its coordinates to the last digit, and its name
    lat[alone], lon[alone] = np.asarray(locations.lat)[kept][alone], np.asarray(locations.lon)[kept][alone]
    return Locations(lat, lon, names=names), becomes


def _points(locations: Locations) -> Floats:
    if not locations.has_coordinates:
        raise InvalidParameter("places without coordinates cannot be merged; pass `cells=None`.")
    return locations.points().copy()


def mean_points(lat: Floats, lon: Floats, group: Ints, n: int) -> tuple[Floats, Floats]:
    """
    Return the mean point of each of the groups 0 .. n-1 of points.

    Where all points of a group are one, that point to the last digit.
    """
    x = to_xyz(lat, lon)
    size = np.maximum(1, np.bincount(group, minlength=n))
    mean = np.column_stack([np.bincount(group, weights=x[:, k], minlength=n) / size for k in range(3)])
    length = np.sqrt(np.einsum("ij,ij->i", mean, mean))[:, None]
    mean_lat, mean_lon = to_lat_lon(mean * EARTH_RADIUS_KM / np.where(length > 0, length, 1))
    first = np.zeros(n, dtype=np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    same = np.bincount(group, weights=(lat != lat[first[group]]) | (lon != lon[first[group]]), minlength=n) == 0
    return np.where(same, lat[first], mean_lat), np.where(same, lon[first], mean_lon)


def _merge(x: Floats, w: Floats, cells: int) -> tuple[Floats, Ints]:
    """
    Merge pairs until `cells` remain: where each place lies now, and the first member of the place it is part of.

    Every place keeps its cheapest partner, so that a merge costs O(n). `cost[i]` is never above the cost of i's
    cheapest partner: a merge can lower that only through the merged place, which is seen at once. Where the partner
    itself has gone or changed, the entry is stale, a lower bound, and is computed again only if it comes out smallest.
    Costs are compared squared, which keeps equal ones equal: no root is taken.
    """
    n, globe = len(x), x.shape[1] == 3
    position, into, remaining = x.copy(), np.arange(n), n
    ids, axes, w = np.arange(n), [column.copy() for column in x.T], w.copy()
    heavy = np.maximum(1.0, w) ** 2
    cost, partner, stale = np.empty(n), np.empty(n, dtype=np.int64), np.zeros(n, dtype=bool)
    row, step = np.empty(n), np.empty(n)

    def look(i: int) -> None:
        """Fill `row` with the costs of merging i with every other, and note the smallest."""
        row[:] = 0
        for axis in axes:
            np.subtract(axis, axis[i], out=step)
            np.multiply(step, step, out=step)
            np.add(row, step, out=row)
        # the product of the weights first: the same number from both sides of a pair
        np.multiply(heavy, heavy[i], out=step)
        np.multiply(row, step, out=row)
        row[i] = np.inf
        partner[i] = np.argmin(row)
        cost[i], stale[i] = row[partner[i]], False

    for i in range(n):
        look(i)
    while remaining > cells:
        i = int(np.argmin(cost))
        if stale[i]:
            look(i)
            continue
        i, j = sorted((i, int(partner[i])))
        share = w[i] / (w[i] + w[j]) if w[i] + w[j] > 0 else 0.5
        centre = np.array([share * axis[i] + (1 - share) * axis[j] for axis in axes])
        if globe:
            centre *= EARTH_RADIUS_KM / (np.linalg.norm(centre) or EARTH_RADIUS_KM)
        w[i] += w[j]
        heavy[i] = max(1.0, w[i]) ** 2
        position[ids[i]], into[ids[j]] = centre, ids[i]
        for axis, value in zip(axes, centre, strict=True):
            axis[i], axis[j] = value, np.inf  # what is infinitely far is nobody's partner
        cost[j] = np.inf
        stale |= (partner == i) | (partner == j)
        look(i)
        nearer = (row < cost) | ((row == cost) & (partner > i) & np.isfinite(row))
        cost[nearer], partner[nearer], stale[nearer] = row[nearer], i, False
        remaining -= 1
        if remaining < 0.7 * len(ids):
            alive = np.isfinite(axes[0])
            new = np.cumsum(alive) - 1
            ids, w, heavy, cost, stale = ids[alive], w[alive], heavy[alive], cost[alive], stale[alive]
            axes, partner = [axis[alive] for axis in axes], new[partner[alive]]
            row, step = np.empty(remaining), np.empty(remaining)
    while np.any(into != into[into]):
        into = into[into]
    return position, into


def join_into_areas(locations: Locations, place: Ints, user: Ints, *, cells: int) -> tuple[Locations, Ints, list[str]]:
    """
    Keep the ids of places that people share, and join the others into areas: the places, what each became, notes.

    Ids are the input's own vocabulary. Of more than `cells` those stay that at least eight people visit (see
    `share_places`), and the others are joined with each other into areas without an id.

    Parameters
    ----------
    locations
        The places, with ids and coordinates.
    place, user
        The distinct pairs of a place and a user who visits it.
    cells
        How many places may remain, unless more are shared.

    """
    stays = np.bincount(place, minlength=len(locations)) >= min(SHARED, len(np.unique(user)) // 2)
    rest = ~stays
    joined, kept = rest[place], locations.select(np.flatnonzero(stays)) if stays.any() else None
    becomes = np.cumsum(stays) - 1
    if not joined.any():
        return locations, np.arange(len(locations)), []
    areas, into = share_places(
        locations.select(np.flatnonzero(rest)),
        (np.cumsum(rest) - 1)[place[joined]],
        user[joined],
        cells=max(cells - int(stays.sum()), cells // 4, 1),
    )
    becomes[rest] = int(stays.sum()) + into
    both = areas if kept is None else kept.append(areas)
    note = (
        f"of {len(locations)} places with an id {int(stays.sum())} are visited by enough people and stay as they are; "
        f"the others were joined with their neighbours, into {sum(not name for name in both.names or ())} areas "
        "without an id (a larger `cells` keeps more apart)"
    )
    return both, becomes, [note]


def place_visitors(r: Ints, user: Ints) -> tuple[Ints, Ints]:
    """
    Return who visits what, the distinct pairs of place and user, by place.

    On days without a gap, if enough people have one: of those alone fakes are made.
    """
    whole = np.all(r >= 0, axis=1)
    rows = np.flatnonzero(whole) if len(np.unique(user[whole])) >= MANY_ENOUGH else np.arange(len(r))
    return distinct_visits(user[rows], r[rows])


def majority_categories(words: Words, R: int) -> dict[str, Any]:
    """
    Return the category of each of R places, and how many people gave it.

    Each person has one voice per place, for the word that most of the own rows there have; of equals the first in the
    order of the alphabet.
    """
    seen = (words.place >= 0) & (words.word >= 0)
    W, place, user, word = len(words.names), words.place[seen], words.user[seen], words.word[seen]
    voice, count = np.unique((user * R + place) * W + word, return_counts=True)
    order = np.lexsort((voice % W, -count, voice // W))
    _, first = np.unique(voice[order] // W, return_index=True)
    choice = voice[order][first]
    vote, people = np.unique(choice // W % R * W + choice % W, return_counts=True)
    order = np.lexsort((vote % W, -people, vote // W))
    where, first = np.unique(vote[order] // W, return_index=True)
    categories, users = np.full(R, "", dtype=object), np.zeros(R, dtype=np.int64)
    categories[where] = np.array(words.names, dtype=object)[vote[order][first] % W]
    users[where] = people[order][first]
    return {"categories": categories.tolist(), "category_users": users}


def snap_to_anchors(user: Ints, second: Ints, lat: Floats, lon: Floats) -> tuple[Floats, Floats, Mask]:
    """
    Put fixes that are near an anchor of their person on it: latitudes, longitudes, and which fixes are at an anchor.

    Where somebody stays for 20 minutes or more within 100 m of the first fix there is an anchor; of two stays within
    100 m of each other the longer is the anchor, which lies at the mean of the fixes of all its stays. A fix within
    200 m of own anchors is at the nearest of them, any other is where it is, so that who is on the way stays on the
    way. People most of whose steps of up to 200 m lead nowhere, to the very same point, are left alone: their positions
    do not jitter. Fixes are sorted by user and time; other people's fixes do not matter.
    """
    from elsewhere.traces._traces_kernels import find_stays, gather_stays, nearest_anchor

    user, x, reach = user.astype(np.int64), to_xyz(lat, lon), ANCHOR_METRES / 1000
    mine = user[1:] == user[:-1]
    near = mine & (np.linalg.norm(x[1:] - x[:-1], axis=1) <= STAY_METRES / 1000)
    still = near & (lat[1:] == lat[:-1]) & (lon[1:] == lon[:-1])
    n = int(user.max(initial=-1)) + 1
    steady = 2 * np.bincount(user[1:], still, n) >= np.bincount(user[1:], near, n)
    who = np.flatnonzero(~steady[user])
    at = np.full(len(user), -1, dtype=np.int64)
    stay = np.empty(len(who), dtype=np.int64)
    stays = find_stays(stay, user[who], second[who], x[who], reach, STAY_SECONDS)
    if stays == 0:
        return lat, lon, at >= 0
    fixes = who[stay >= 0]
    stay = stay[stay >= 0]
    size = np.bincount(stay)
    owner = user[fixes[np.cumsum(size) - size]]
    mean = np.column_stack([np.bincount(stay, x[fixes, k]) for k in range(3)]) / size[:, None]
    order = np.lexsort((-size, owner))  # of one person the longest first, of equals the earliest
    of_stay = np.empty(stays, dtype=np.int64)
    anchors = gather_stays(of_stay, order, owner, mean, reach)
    of_fix = of_stay[stay]
    anchor_lat, anchor_lon = mean_points(lat[fixes], lon[fixes], of_fix, anchors)
    of_user = np.zeros(n + 1, dtype=np.int64)
    np.add.at(of_user, owner[order][np.unique(of_stay[order], return_index=True)[1]] + 1, 1)
    nearest_anchor(at, user, x, to_xyz(anchor_lat, anchor_lon), np.cumsum(of_user), STAY_METRES / 1000)
    there = at >= 0
    return np.where(there, anchor_lat[at], lat), np.where(there, anchor_lon[at], lon), there


def stay_places(
    user: Ints, second: Ints, lat: Floats, lon: Floats, metres: float, name: str = ""
) -> tuple[Locations, Ints, float]:
    """
    Return the grid cells in which somebody stays as places, the place of each fix, and the width of the cells.

    A fix of a stay is at the cell of the stay's mean point; a fix on the way is at the nearest place of any stay. Fixes
    are sorted by user and time.
    """
    from elsewhere.traces._traces_kernels import find_stays

    stay = np.empty(len(user), dtype=np.int64)
    n = find_stays(stay, user, second, to_xyz(lat, lon), STAY_METRES / 1000, STAY_SECONDS)
    if n == 0:
        raise InvalidTraces(
            f"{name or 'the input'}: nobody stays {STAY_SECONDS // 60} minutes within {STAY_METRES:.0f} m; "
            'use `places="merge"` or "grid".',
            code="E_EMPTY",
        )
    staying = stay >= 0
    locations, of_stay, metres = make_grid(*mean_points(lat[staying], lon[staying], stay[staying], n), metres)
    place = np.empty(len(user), dtype=np.int64)
    place[staying] = of_stay[stay[staying]]
    place[~staying] = locations.place_of(lat[~staying], lon[~staying])
    return locations, place, metres


def evidence_of(
    locations: Locations, row: Ints, slot: Ints, lat: Floats, lon: Floats, radius_metres: Floats
) -> Evidence | None:
    """
    Return weights at the slots whose fixes leave a choice; None where none does.

    The places of a fix are those within its radius (at most 16), and the nearest one always; fixes of one slot are
    added up. A fix without a radius (NaN) is certain.
    """
    if locations.lat is None or locations.lon is None or len(row) == 0:
        return None
    from scipy.spatial import cKDTree

    k = min(MOST_PLACES, len(locations))
    points = to_xyz(lat, lon)
    nearest = cKDTree(locations.points()).query(points, k=k)
    away, near = (np.reshape(side, (len(row), k)) for side in nearest)
    radius = np.where(np.isfinite(radius_metres) & (radius_metres > 0), radius_metres, 1e-3)[:, None] / 1000
    weight = np.exp(-0.5 * WITHIN_ONE_RADIUS**2 * (away**2 - away[:, :1] ** 2) / radius**2)
    weight[:, 1:][away[:, 1:] > radius] = 0
    weight /= weight.sum(axis=1, keepdims=True)
    fix, choice = np.nonzero(weight > 0)
    R, L = len(locations), int(slot.max()) + 1
    key, group = np.unique((row[fix] * L + slot[fix]) * R + near[fix, choice], return_inverse=True)
    total = np.bincount(group, weight[fix, choice], len(key)).astype(np.float64)
    row_slot = key // R
    _, number, size = np.unique(row_slot, return_inverse=True, return_counts=True)
    open_ = size[number] > 1
    if not open_.any():
        return None
    key, total, row_slot = key[open_], total[open_], row_slot[open_]
    return Evidence(row_slot // L, row_slot % L, (key % R).astype(np.int32), total)
