"""
Find the places of records: a public map, a map that the caller gives, or the paper's merging (E74).

A public map holds the file's own venues, stations, towers or zones, and tiles of a fixed grid of the globe: the squares
of the web's maps, named by their quadkeys. A venue or a tile is on the map if enough people share it, and whether they
are enough is drawn (a noisy threshold): nobody's presence decides. What happens elsewhere is told of the smallest tile
around it that enough people share. A place lies where the venue or the middle of the tile lies, never where people were
within it, so every place that the maps of two files have in common has the same id and the same coordinates in both.
"""

import re
import secrets
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.data import _data_kernels as kernels
from elsewhere.data.stays import FINEST, SILENCE, whole_trips
from elsewhere.data.visits import (
    EARTH_RADIUS_KM,
    UNITS,
    Codes,
    Floats,
    Ints,
    Locations,
    Mask,
    Preparation,
    Records,
    Visits,
    to_lat_lon,
    to_xyz,
)
from elsewhere.errors import InvalidParameter, InvalidTraces, require_choice, require_whole
from elsewhere.sorting import distinct, number_keys

PLACES = ("auto", "grid", "merge")
SHARED = 8  # people whom a place needs; of fewer than 16 people, half
NOISE = 1.0  # scale of the two-sided geometric noise on the number of people
COARSEST = 6  # zoom of the coarsest tiles: 626 km wide at the equator
COARSEST_OF_KIND = 11  # zoom of the coarsest tiles that keep the kind of a place apart: 20 km wide
MOST_PLACES = 20_000
PAPER_PLACES = 400  # E74
PAPER_ZOOM = 18  # of the tiles that are merged: 100 m wide at 49 degrees
OFF_MAP = "not on the map (`locations`)"  # why a record is dropped
AGREED = 0.9  # of the people at a venue give the same position: then it is the venue's own
ROUNDED = (1e5, 1e3)  # parts of a degree, to which people at a venue agree
EVERYWHERE = 5  # records per point on average, and people at nine of ten: then points are venues
VENUE = -1  # in the place of a zoom
OTHER = "other"  # the place of what happened at places without a position that too few people share
FAR_KM = 50.0  # from the nearest place of a map, a record is not on it
TILE = re.compile(r"q([0-3]+)(?::(.*))?", re.DOTALL)


def tile_name(key: int, zoom: int) -> str:
    """
    Return the id of a tile: "q" and its quadkey, the digits of the quarters that lead to it.

    Examples
    --------
    >>> tile_name(0b11_01, 2)
    'q31'

    """
    return "q" + "".join(str(key >> 2 * level & 3) for level in range(zoom - 1, -1, -1))


def tile_centres(key: Ints, zoom: int) -> tuple[Floats, Floats]:
    """Return latitude and longitude of the middle of tiles, to six decimals."""
    x, y = np.zeros_like(key), np.zeros_like(key)
    for bit in range(zoom):
        x |= (key >> 2 * bit & 1) << bit
        y |= (key >> 2 * bit + 1 & 1) << bit
    n = float(1 << zoom)
    lat = np.degrees(np.arctan(np.sinh(np.pi * (1 - 2 * (y + 0.5) / n))))
    return np.round(lat, 6), np.round((x + 0.5) / n * 360 - 180, 6)


def make_visits(
    records: Records,
    preparation: Preparation,
    *,
    places: str = "auto",
    locations: Locations | None = None,
    cells: int | None = None,
    rng: np.random.Generator | None = None,
) -> Visits:
    """
    Return records, as `clean` and `find_stays` leave them, as visits of places.

    Parameters
    ----------
    records, preparation
        What the file says, and what became of it so far.
    places
        "auto" makes a public map; "grid" takes every tile of the finest grid that somebody was in, and "merge" merges
        these as the paper does (E74): maps that show where single people were, for the laboratory.
    locations
        The map, if there is one: see `find_on_map`. Records that are not on it are dropped and counted.
    cells
        How many places there may be: by default 20,000, and 400 where they are merged.
    rng
        Where the noise of the threshold comes from; by default the operating system's entropy.

    """
    require_choice("places", places, PLACES)
    if cells is not None:
        require_whole("cells", cells, 1)
    if locations is not None:
        place, rare, reason = find_on_map(records, locations), 0, OFF_MAP
    elif places == "auto":
        stream = np.random.default_rng(secrets.randbits(128)) if rng is None else rng
        locations, place, rare = public_places(records, most=cells or MOST_PLACES, rng=stream)
        reason = f"where too few {UNITS[records.form.unit][1]} were"
    else:
        locations, place = _all_tiles(records, PAPER_ZOOM if places == "merge" else FINEST)
        rare, reason = 0, "no position"
    lost = place < 0
    if records.trip is not None and records.form.record == "trips":
        lost |= whole_trips(records.trip, lost)  # a trip with one end is none
    if lost.all():
        raise InvalidTraces(f"{preparation.name or 'the input'}: no record is left ({reason}).", code="E_EMPTY")
    gone = int(lost.sum() if records.fixes is None else records.fixes[lost].sum())
    gone //= 2 if records.form.record == "trips" else 1
    if lost.any():
        records, place = records.select(~lost), place[~lost]
    unsaid = [i for i, name in enumerate(locations.ids or ()) if name == OTHER or name.startswith(f"{OTHER}:")]
    vague = int(np.isin(place, unsaid).sum())
    records = records.number_users()
    first, last = _runs(records, place)
    columns: dict[str, Any] = {"user": records.user[first], "start": records.start[first], "end": records.end[last]}
    columns |= {"place": place[first]} | ({} if records.trip is None else {"trip": records.trip[first]})
    for column in columns.values():
        column.setflags(write=False)  # nobody else has it: `Visits` need not copy it
    visits = Visits(**columns, locations=locations, users=records.users, tz=records.tz, form=records.form)
    if places == "merge":
        locations, becomes = reduce_places(
            locations, np.bincount(visits.place, minlength=visits.R), cells=cells or PAPER_PLACES
        )
        visits = visits.replace(place=becomes[visits.place], locations=locations)
    return visits.replace(
        preparation=preparation.count(
            dropped={reason: gone},
            changed=dict(preparation.changed) | ({f'told of "{OTHER}", {reason}': vague} if vague else {}),
            users=visits.U,
            visits=len(visits),
            places=visits.R,
            places_rare=rare,
            cells=_widths_of(visits.locations),
            form=records.form,
            tz=records.tz,
        )
    )


def _widths_of(locations: Locations) -> dict[str, int]:
    """Return how many tiles have each width, in metres at the mean latitude of the map."""
    if locations.lat is None:
        return {}
    zooms = [len(tile[1]) for name in locations.ids or () if (tile := TILE.fullmatch(name))]
    around = 2000 * np.pi * EARTH_RADIUS_KM * np.cos(np.radians(float(locations.lat.mean())))
    return {f"{around / 2**zoom:.0f}": zooms.count(zoom) for zoom in sorted(set(zooms), reverse=True)}


def _runs(records: Records, place: Codes) -> tuple[Mask | slice, Mask | slice]:
    """Return the first and the last record of each visit: fixes that follow each other at one place are one."""
    if records.form.record != "fixes":
        return slice(None), slice(None)
    user, new = records.user, np.ones(len(records) + 1, dtype=bool)
    new[1:-1] = (user[1:] != user[:-1]) | (place[1:] != place[:-1])
    new[1:-1] |= records.start[1:] - records.end[:-1] > SILENCE
    if records.trip is not None:
        new[1:-1] |= records.trip[1:] != records.trip[:-1]
    return new[:-1], new[1:]


def _tile_keys(records: Records, zoom: int = FINEST) -> Ints:
    """Return the key of the tile of each record, by default the finest; -1 where it has no position."""
    key = np.full(len(records), -1, dtype=np.int64)
    if records.lat is not None and records.lon is not None:
        kernels.tile_keys(records.lat, records.lon, zoom, key)
        key[~(np.isfinite(records.lat) & np.isfinite(records.lon))] = -1
    return key


def _all_tiles(records: Records, zoom: int) -> tuple[Locations, Codes]:
    """Return every tile with a record, and that of each record."""
    keys, place = number_keys(_tile_keys(records, zoom))
    has = keys >= 0
    if not has.any():
        raise InvalidParameter('`places` must be "auto" where records have no coordinates.')
    lat, lon = tile_centres(keys[has], zoom)
    ids = [tile_name(key, zoom) for key in keys[has].tolist()]
    return Locations(lat, lon, ids=ids), (place - np.count_nonzero(~has)).astype(np.int32)


class Items(NamedTuple):
    """
    The finest different answers to "where": a venue, a tile, a kind; -1 for none.

    `of` is the item of each record, `who` and `what` are the distinct pairs of a user and an item.
    """

    venue: Ints
    tile: Ints
    kind: Ints
    of: Codes
    who: Codes
    what: Codes

    def people(self, group: Ints, groups: int) -> Ints:
        """Count the users of each group of items; -1 is in no group."""
        count, last = np.zeros(groups, dtype=np.int64), np.full(groups, -1, dtype=np.int32)
        kernels.count_people(self.who, self.what, group, last, count)
        return count


def public_places(records: Records, *, most: int, rng: np.random.Generator) -> tuple[Locations, Codes, int]:
    """
    Return the public map of the records, the place of each, -1 where none can be told, and how many places are rare.

    Rung by rung, from the file's own venues over ever coarser tiles, first of one kind of place, then of all, a place
    tells of the people of whom no finer place tells: see `_tell`.
    """
    located = records.lat is not None and records.lon is not None
    venue, names, points = _venues(records)
    items = _items(records, venue)
    common = _common_kinds(items, len(records.kinds))
    U = len(distinct(items.who))
    enough, finest = min(SHARED, max(1, U // 2)), FINEST
    while True:
        place, told, rare = _tell(items, list(_rungs(items, common, len(records.kinds), located, finest)), enough, rng)
        if len(told) <= most or (finest <= COARSEST and enough > U):
            break
        # too many: a coarser grid, and more people for each place
        enough, finest = 2 * enough, max(COARSEST, finest - 1)
    if not told:
        raise InvalidTraces("no place has enough people to be on a public map.", code="E_EMPTY")
    ids, kinds, where = [], [], np.full((len(told), 2), np.nan)
    for i, (zoom, key) in enumerate(told):
        base, kind = divmod(key, len(records.kinds) + 1)
        word = records.kinds[kind - 1] if kind else ""
        name = str(names[base]) if zoom == VENUE else tile_name(base, zoom) if zoom else OTHER
        ids.append(f"{name}:{word}" if word else name)
        kinds.append(records.kinds[common[base]] if zoom == VENUE and not kind and common[base] >= 0 else word)
        if located:
            where[i] = points[base] if zoom == VENUE else np.ravel(tile_centres(np.array([base]), zoom))
    first = {name: i for i, name in reversed(list(enumerate(ids)))}  # a file may call a venue as a tile is called
    known = sorted(first)
    order, rank = [first[name] for name in known], {name: i for i, name in enumerate(known)}
    becomes = np.array([*(rank[name] for name in ids), -1], dtype=np.int32)
    words: dict[str, Any] = {"ids": known, "kind": [kinds[i] for i in order] if any(kinds) else None}
    locations = Locations(*where[order].T, **words) if located else Locations(n=len(order), **words)
    return locations, becomes[place][items.of], rare


def _tell(
    items: Items, rungs: list[tuple[int, Ints]], enough: int, rng: np.random.Generator
) -> tuple[Ints, list[tuple[int, int]], int]:
    """
    Return the place that tells of each item, -1 for none, the zoom and key of each place, and how many are rare.

    A place is on the map if `enough` people were there, whatever finer places tell of them, and half as many are left
    for it to tell of: nobody is told apart by what lies around. Both numbers are compared with noise of their own.
    """
    place = np.full(len(items.venue), -1, dtype=np.int64)
    told: list[tuple[int, int]] = []
    stop, rare = 1 - np.exp(-1 / NOISE), 0
    for i, (zoom, key) in enumerate(rungs):
        keys = distinct(key[key >= 0])
        group = np.where(key >= 0, np.searchsorted(keys, key), -1)
        rest = np.where(place < 0, group, -1)
        there, left = items.people(group, len(keys)), items.people(rest, len(keys))
        noise = (rng.geometric(stop, (2, len(keys))) - rng.geometric(stop, (2, len(keys)))) if len(keys) else 0
        passed = (np.stack([there, left]) + noise >= [[enough], [max(1, enough // 2)]]).all(axis=0)
        rare += int((~passed).sum()) if i == 0 else 0
        passed &= left > 0
        number = np.full(len(keys) + 1, -1, dtype=np.int64)
        number[:-1][passed] = len(told) + np.arange(int(passed.sum()))
        place = np.where(place < 0, number[rest], place)
        told += [(zoom, each) for each in keys[passed].tolist()]
    return place, told, rare


def _rungs(items: Items, common: Codes, K: int, located: bool, finest: int) -> Iterator[tuple[int, Ints]]:
    """
    Return the ways to tell where, the finest first; `common` is emptied where kinds do not belong to venues.

    Each is by venue (the zoom is VENUE) or by tile, of one kind of place or of all. The key of an item is that of its
    venue or tile, times one more than the number of kinds, plus that of its kind (0 for all); -1 where it has none.
    """

    def rung(zoom: int, base: Ints, kinds: bool) -> tuple[int, Ints]:
        lacks = (base < 0) | (items.kind < 0) if kinds else base < 0
        return zoom, np.where(lacks, -1, base * (K + 1) + (items.kind + 1 if kinds else 0))

    own, kind = items.venue[items.what], items.kind[items.what]
    known = (own >= 0) & (kind >= 0)
    if known.any() and np.mean(common[own[known]] == kind[known]) < AGREED:
        yield rung(VENUE, items.venue, kinds=True)  # what is done in a district is not its kind
        common[:] = -1
    yield rung(VENUE, items.venue, kinds=False)
    for kinds in (True, False) if K else (False,):
        if located:
            for zoom in range(finest, (COARSEST_OF_KIND if kinds else COARSEST) - 1, -1):
                yield rung(zoom, np.where(items.tile < 0, -1, items.tile >> 2 * (FINEST - zoom)), kinds)
        else:
            yield rung(0, np.zeros(len(items.venue), dtype=np.int64), kinds)


def _items(records: Records, venues: Ints | None) -> Items:
    """Return what different answers the records give to "where", with which users give them."""
    tiles, of = number_keys(_tile_keys(records))
    venue = kind = np.full(len(tiles), -1, dtype=np.int64)
    if venues is not None or records.kind is not None:
        none = np.full(1, -1, dtype=np.int64)
        kinds = none if records.kind is None else records.kind
        own = none if venues is None else venues
        K, V = int(kinds.max(initial=-1)) + 2, int(own.max(initial=-1)) + 2
        keys, of = number_keys((of * K + kinds + 1) * V + own + 1)
        tiles, kind, venue = tiles[keys // V // K], keys // V % K - 1, keys % V - 1
    pairs = distinct(records.user * np.int64(len(tiles)) + of)
    who, what = (part.astype(np.int32) for part in (pairs // len(tiles), pairs % len(tiles)))
    return Items(venue, tiles, kind, of.astype(np.int32), who, what)


def _venues(records: Records) -> tuple[Ints | None, NDArray[np.object_], Floats]:
    """
    Return the venue of each record, -1 for none (None where there are none), with names and positions of venues.

    A venue is a place that the file names. Where records have coordinates, it is one only if nine of ten of its people
    give the same position, by five decimals or else by three: else the positions are those of people, and say where
    they were. Where the file names no
    places, points that many people share are venues.
    """
    names = np.array(records.places, dtype=object)
    n = len(records)
    if records.lat is None or records.lon is None:
        assert records.place is not None  # noqa: S101 - records have a position or a place
        return records.place.astype(np.int64), names, np.empty((len(names), 2))
    if records.place is None and records.form.record == "fixes":
        return None, names, np.empty((0, 2))
    has = np.isfinite(records.lat) & np.isfinite(records.lon)
    lat, lon = (np.round(side[has] * 1e5).astype(np.int64) for side in (records.lat, records.lon))
    points, point = number_keys((lat + 9_000_000) * 72_000_001 + lon + 36_000_000)
    where = np.column_stack([points // 72_000_001 - 9_000_000, points % 72_000_001 - 36_000_000]) / 1e5
    user, span = records.user[has].astype(np.int64), np.int64(len(records.users))
    if records.place is None:
        people = np.bincount(distinct(point * span + user) // span, minlength=len(points))
        if n < EVERYWHERE * len(points) or np.mean(people[point] >= EVERYWHERE) < AGREED:
            return None, names, np.empty((0, 2))
        venues = np.full(n, -1, dtype=np.int64)
        venues[has] = point
        return venues, np.array([f"{a:.5f},{b:.5f}" for a, b in where.tolist()], dtype=object), where
    venue = records.place[has].astype(np.int64)
    people = np.bincount(distinct((venue * span + user)[venue >= 0]) // span, minlength=len(names))
    position, agreed = np.full((len(names), 2), np.nan), np.zeros(len(names) + 1, dtype=bool)
    for parts in ROUNDED:  # where devices scatter, the position is told as coarsely
        rounded, number = np.unique(np.round(where * parts).astype(np.int64), axis=0, return_inverse=True)
        P = np.int64(len(rounded))
        pairs, pair = number_keys(venue * P + number.ravel()[point])
        pair_people = np.bincount(distinct(pair * span + user) // span, minlength=len(pairs))
        best = np.lexsort((-pair_people, pairs // P))
        own, first = np.unique((pairs // P)[best], return_index=True)
        choice = best[first]
        same = (own >= 0) & (pair_people[choice] >= AGREED * people[own]) & ~agreed[own]
        position[own[same]] = (rounded / parts)[(pairs % P)[choice]][same]
        agreed[own[same]] = True
    return np.where(agreed[records.place], records.place, -1).astype(np.int64), names, position


def _common_kinds(items: Items, K: int) -> Codes:
    """Return the kind that more than half of the people at each venue give, -1 where there is none."""
    V = int(items.venue.max(initial=-1)) + 1
    common = np.full(V + 1, -1, dtype=np.int32)
    if K == 0 or V == 0:
        return common
    venue, kind, span = items.venue[items.what], items.kind[items.what], np.int64(items.who.max()) + 1
    at = (venue >= 0) & (kind >= 0)
    pairs, pair = number_keys(venue[at] * K + kind[at])
    people = np.bincount(distinct(pair * span + items.who[at]) // span, minlength=len(pairs))
    total = np.bincount(distinct(venue[venue >= 0] * span + items.who[venue >= 0]) // span, minlength=V)
    most = 2 * people > total[pairs // K]
    common[pairs[most] // K] = pairs[most] % K
    return common


def find_on_map(records: Records, locations: Locations) -> Codes:
    """
    Return the place of each record on a map, -1 where it is not on it.

    By the id that the file names; else the place at exactly this position, as files of fakes have it; else the smallest
    tile of the map around the position, of the kind of the record before others; else the nearest of the places that
    are no tiles, within 50 km.
    """
    place = np.full(len(records), -1, dtype=np.int32)
    K = len(records.kinds) + 1
    code = {word: k for k, word in enumerate(records.kinds, 1)}
    kind = np.zeros(len(records), dtype=np.int64) if records.kind is None else records.kind.astype(np.int64) + 1
    if records.place is not None:
        ids = map(str, range(len(locations))) if locations.ids is None else locations.ids
        number = {name: i for i, name in enumerate(ids)}
        names = [*records.places, ""]  # the last is that of no place, -1

        def find(key: int) -> int:
            """Return the place of a name; a district and what is done there may be one place."""
            name, k = names[key // K], key % K
            return number.get(f"{name}:{records.kinds[k - 1]}" if k else name, number.get(name, -1)) if key >= 0 else -1

        pairs, pair = number_keys(records.place.astype(np.int64) * K + kind)
        place = np.array([find(key) for key in pairs.tolist()], dtype=np.int32)[pair]
    if records.lat is None or records.lon is None or locations.lat is None or locations.lon is None:
        return place
    located = np.isfinite(records.lat) & np.isfinite(records.lon)

    def fill(known: Ints, values: Ints, keys: Ints) -> None:
        """Give the records that have no place yet the value of their key."""
        if not len(known):
            return
        order = np.argsort(known, kind="stable")
        near = order[np.minimum(np.searchsorted(known[order], keys), len(known) - 1)]
        some = (place < 0) & located & (known[near] == keys)
        place[some] = values[near][some]

    every = np.arange(len(locations))
    there, here = (_position_keys(np.asarray(each.lat), np.asarray(each.lon)) for each in (locations, records))
    words = locations.kind or [""] * len(locations)
    own, plain = np.array([code.get(word, 0) for word in words]), np.array([not word for word in words])
    fill(there[own > 0] * K + own[own > 0], every[own > 0], here * K + kind)
    for some in (plain, np.ones_like(plain)):
        fill(there[some], every[some], here)
    tiles = {i: found for i, name in enumerate(locations.ids or ()) if (found := TILE.fullmatch(name))}
    rungs: dict[tuple[bool, int], list[tuple[int, int]]] = {}
    for i, tile in tiles.items():
        if tile[2] is None or tile[2] in code:
            key = int(tile[1], 4) * K + code.get(tile[2] or "", 0)
            rungs.setdefault((tile[2] is None, -len(tile[1])), []).append((key, i))
    finest = _tile_keys(records) if rungs else there
    for (all_kinds, zoom), known in sorted(rungs.items()):
        keys, values = np.array(known, dtype=np.int64).T
        fill(keys, values, (finest >> 2 * (FINEST + zoom)) * K + (0 if all_kinds else kind))
    others = np.array([i for i in range(len(locations)) if i not in tiles], dtype=np.int64)
    rest = np.flatnonzero((place < 0) & located)
    if len(others) and len(rest):
        nearest, km = locations.select(others).nearest(to_xyz(records.lat[rest], records.lon[rest]))
        place[rest] = np.where(km <= FAR_KM, others[nearest], -1)
    return place


def _position_keys(lat: Floats, lon: Floats) -> Ints:
    """Return one number for each position of six decimals."""
    return np.round(lat * 1e6).astype(np.int64) * 1_000_000_007 + np.round(lon * 1e6).astype(np.int64)


def reduce_places(locations: Locations, visits: Ints, *, cells: int) -> tuple[Locations, Ints]:
    """
    Return the paper's reduction of places (E74): 1,491 to 400 in its data.

    While more than `cells` remain, the pair with the smallest ‖x_i - x_j‖ max(1, w_i) max(1, w_j), w the visits, is
    replaced by its visit-weighted centroid. Of equal pairs the first in the order of places goes first, so the
    result is a function of its arguments; no visit is lost. A merged place takes the number of its first
    member in the order of places.

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
    if len(locations) <= cells:
        return locations, np.arange(len(locations))
    if not locations.has_coordinates:
        raise InvalidParameter("places without coordinates cannot be merged; leave `cells` out.")
    x, into = _merge(locations.points(), visits.astype(np.float64), cells)
    survivors, becomes = np.unique(into, return_inverse=True)
    if locations.xy is not None:
        return Locations(xy=x[survivors]), becomes
    lat, lon = to_lat_lon(x[survivors])
    # a place that took nobody in keeps its coordinates to the last digit
    alone = np.bincount(becomes) == 1
    lat[alone], lon[alone] = np.asarray(locations.lat)[survivors][alone], np.asarray(locations.lon)[survivors][alone]
    return Locations(lat, lon), becomes


def _merge(x: Floats, w: Floats, cells: int) -> tuple[Floats, Ints]:
    """
    Merge pairs until `cells` remain: where each place lies now, and the first member of the place it is part of.

    Every place keeps its cheapest partner; after a merge those look again whose partner has gone or changed. Costs are
    compared squared, which keeps equal ones equal: no root is taken.
    """
    n, globe = len(x), x.shape[1] == 3
    axes, into, w = np.array(x.T), np.arange(n), w.copy()
    heavy = np.maximum(1.0, w) ** 2
    cost, partner = np.empty(n), np.empty(n, dtype=np.int64)

    def look(i: int) -> Floats:
        """Return the costs of merging i with every other, and note the smallest."""
        # the product of the weights first: the same number from both sides of a pair
        row: Floats = ((axes - axes[:, [i]]) ** 2).sum(axis=0) * (heavy * heavy[i])
        row[i] = np.inf
        partner[i] = np.argmin(row)
        cost[i] = row[partner[i]]
        return row

    for i in range(n):
        look(i)
    for _ in range(n - cells):
        i = int(np.argmin(cost))
        i, j = sorted((i, int(partner[i])))
        share = w[i] / (w[i] + w[j]) if w[i] + w[j] > 0 else 0.5
        centre = share * axes[:, i] + (1 - share) * axes[:, j]
        if globe:
            centre *= EARTH_RADIUS_KM / (np.linalg.norm(centre) or EARTH_RADIUS_KM)
        w[i] += w[j]
        heavy[i] = max(1.0, w[i]) ** 2
        axes[:, i], axes[:, j] = centre, np.inf  # what is infinitely far is nobody's partner
        into[j], cost[j] = i, np.inf
        for k in np.flatnonzero(((partner == i) | (partner == j)) & np.isfinite(cost)).tolist():
            look(k)
        row = look(i)
        nearer = (row < cost) | ((row == cost) & (partner > i) & np.isfinite(row))
        cost[nearer], partner[nearer] = row[nearer], i
    while np.any(into != into[into]):
        into = into[into]
    return axes.T, into


TOWN_KM, TOWN_CELLS = 40.0, 400


def grid_of(text: str) -> Locations:
    """
    Return the map that a text asks for: "S,W,N,E,N", N cells of a box in degrees; "Tokyo" or "Tokyo,400", of a town.

    Such a map is not found in the people, which a certificate needs.

    Examples
    --------
    >>> grid_of("35.5,139.5,35.9,140.0,400")
    Locations(400 places, lat, lon)

    """
    from elsewhere.data.gazetteer import find_town

    words = [word.strip() for word in text.split(",")]
    town, cells = find_town(words[0]), words[1] if len(words) > 1 else str(TOWN_CELLS)
    if town is not None and cells.isdigit():  # the TOWN_KM x TOWN_KM about its centre, which its name alone decides
        up = float(np.degrees(TOWN_KM / 2 / EARTH_RADIUS_KM))
        across = min(up / max(float(np.cos(np.radians(town.lat))), 1e-3), 179.0)
        return _lattice(
            max(town.lat - up, -90), town.lon - across, min(town.lat + up, 90), town.lon + across, int(cells)
        )
    try:
        south, west, north, east, many = map(float, words)
        number = int(many)
    except (ValueError, OverflowError):
        raise InvalidParameter(
            "`grid` must be five numbers S,W,N,E,N (degrees, and how many cells), or a town as GeoNames writes it, "
            f"got {text!r}.",
            parameter="grid",
        ) from None
    return _lattice(south, west, north, east, number)


def _lattice(south: float, west: float, north: float, east: float, cells: int) -> Locations:
    """Return the centres of at most `cells` nearly square cells of a box; one whose west is east of its east wraps."""
    wide = (east - west) % 360 or 360.0
    if not (-90 <= south < north <= 90 and max(abs(west), abs(east)) <= 540 and 1 <= cells <= 10**6):
        raise InvalidParameter(
            "`grid` must be south, west, north, east in degrees and a number of cells: it has no area.",
            parameter="grid",
        )
    shape = (north - south) / (wide * max(float(np.cos(np.radians((south + north) / 2))), 1e-3))
    rows = int(np.clip(round(np.sqrt(cells * shape)), 1, cells))
    columns = cells // rows
    up, across = np.linspace(south, north, rows + 1), west + np.linspace(0, wide, columns + 1)
    lat, lon = np.repeat((up[:-1] + up[1:]) / 2, columns), np.tile((across[:-1] + across[1:]) / 2, rows)
    ids = [f"{i // columns}-{i % columns}" for i in range(rows * columns)]
    return Locations(np.round(lat, 6), np.round((lon + 180) % 360 - 180, 6), ids=ids)
