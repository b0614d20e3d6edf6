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
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.data import _data_kernels as kernels
from elsewhere.data.stays import FINEST, SILENCE, whole_trips
from elsewhere.data.visits import (
    EARTH_RADIUS_KM,
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
AGREED = 0.9  # of the people at a venue give the same position: then it is the venue's own
EVERYWHERE = 5  # records per point on average, and people at nine of ten: then points are venues
OTHER = "other"  # the place of what happened at places without a position that too few people share
WORTH_SAYING_KM = 0.3  # from its place on the map, for one of ten records
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
    if not len(records):
        raise InvalidTraces(f"{preparation.name or 'the input'}: no record is left.", code="E_EMPTY")
    drawn = locations is None and places == "auto"
    if locations is not None:
        place, rare, reason = find_on_map(records, locations), 0, "not on the map (`locations`)"
    elif places == "auto":
        stream = np.random.default_rng(secrets.randbits(128)) if rng is None else rng
        locations, place, rare = public_places(records, most=cells or MOST_PLACES, rng=stream)
        reason = "where too few people were"
    else:
        locations, place = _all_tiles(records, PAPER_ZOOM if places == "merge" else FINEST)
        rare, reason = 0, "no position"
    lost = place < 0
    if records.trip is not None and records.form.record == "trips" and "points" not in records.form.columns:
        lost |= whole_trips(records.trip, lost)  # a trip with one end is none
    if lost.all():
        raise InvalidTraces(f"{preparation.name or 'the input'}: no record is left ({reason}).", code="E_EMPTY")
    gone = int(lost.sum() if records.fixes is None else records.fixes[lost].sum())
    if lost.any():
        records, place = records.select(~lost), place[~lost]
    moved = _tell_moved(records, locations, place) if drawn else []
    unsaid = np.array([name == OTHER or name.startswith(f"{OTHER}:") for name in locations.ids or ()], dtype=bool)
    vague = int(unsaid[place].sum()) if unsaid.any() else 0
    records = records.number_users()
    first, last = _runs(records, place)
    columns: dict[str, Any] = {"user": records.user[first], "start": records.start[first]}
    columns |= {"end": records.end[last], "place": place[first]}
    columns |= {} if records.trip is None else {"trip": records.trip[first]}
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
            changed=dict(preparation.changed)
            | ({f'told of "{OTHER}", as too few people were there': vague} if vague else {}),
            notes=(*preparation.notes, *moved),
            users=visits.U,
            visits=len(visits),
            places=visits.R,
            places_rare=rare,
            cells=_count_tiles(visits.locations),
            form=records.form,
            tz=records.tz,
        )
    )


def _tell_moved(records: Records, locations: Locations, place: Codes) -> list[str]:
    """Return a note that says how far from their place on the map records were."""
    if records.lat is None or records.lon is None or locations.lat is None or locations.lon is None:
        return []
    some = np.flatnonzero(np.isfinite(records.lat) & np.isfinite(records.lon))
    some = some[:: max(1, len(some) // 100_000)]
    there = np.column_stack([locations.lat, locations.lon])[place[some]]
    here = to_xyz(records.lat[some], records.lon[some])
    km = np.linalg.norm(here - to_xyz(there[:, 0], there[:, 1]), axis=1)
    if not len(km) or np.quantile(km, 0.9) < WORTH_SAYING_KM:
        return []
    half, most = (f"{far:.2g} km" for far in np.quantile(km, [0.5, 0.9]))
    return [
        "places are venues and cells that enough people share, drawn anew each time (`rng`): half of the records were "
        f"within {half} of theirs, nine of ten within {most}"
    ]


def _runs(records: Records, place: Codes) -> tuple[Mask | slice, Mask | slice]:
    """Return the first and the last record of each visit: fixes that follow each other at one place are one."""
    if records.form.record != "fixes" and "points" not in records.form.columns:
        return slice(None), slice(None)
    user, new = records.user, np.ones(len(records) + 1, dtype=bool)
    new[1:-1] = (user[1:] != user[:-1]) | (place[1:] != place[:-1])
    new[1:-1] |= records.start[1:] - records.end[:-1] > SILENCE
    if records.trip is not None:
        new[1:-1] |= records.trip[1:] != records.trip[:-1]
    return new[:-1], new[1:]


def _count_tiles(locations: Locations) -> dict[str, int]:
    """Count the tiles of a map by their width, in metres at the mean latitude of the map."""
    if locations.lat is None:
        return {}
    around = 2 * np.pi * EARTH_RADIUS_KM * 1000 * np.cos(np.radians(float(locations.lat.mean())))
    zooms = [len(tile[1]) for name in locations.ids or () if (tile := TILE.fullmatch(name))]
    return {f"{around / 2**zoom:.0f}": zooms.count(zoom) for zoom in sorted(set(zooms), reverse=True)}


def _tile_keys(records: Records, zoom: int = FINEST) -> Ints:
    """Return the key of the tile of each record, by default the finest; -1 where it has no position."""
    key = np.full(len(records), -1, dtype=np.int64)
    if records.lat is not None and records.lon is not None:
        kernels.tile_keys(records.lat, records.lon, zoom, key)
        key[~(np.isfinite(records.lat) & np.isfinite(records.lon))] = -1
    return key


def _all_tiles(records: Records, zoom: int) -> tuple[Locations, Codes]:
    """Return every tile with a record, and that of each record."""
    keys, place = _number(_tile_keys(records, zoom))
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


class Rung(NamedTuple):
    """One way to tell where: the key of each item, -1 where it has none, and the id, position and kind of a key."""

    key: Ints
    name: Callable[[int], str]
    centres: Callable[[Ints], tuple[Floats, Floats]]
    kind: Callable[[int], str]


def public_places(records: Records, *, most: int, rng: np.random.Generator) -> tuple[Locations, Codes, int]:
    """
    Return the public map of the records, the place of each, -1 where none can be told, and how many places are rare.

    Rung by rung, from the file's own venues over ever coarser tiles, first of one kind of place, then of all: a place
    is on the map if the people who were there, and whom no finer rung has told of, are enough.
    """
    where = [] if records.lat is None or records.lon is None else [records.lat, records.lon]
    venues, names, points = _venues(records)
    items = _items(records, venues)
    U = len(distinct(items.who))
    enough, finest = min(SHARED, max(1, U // 2)), FINEST
    while True:
        place = np.full(len(items.venue), -1, dtype=np.int64)
        told: list[tuple[Rung, Ints]] = []
        count = rare = 0
        for rung in _rungs(items, records.kinds, names, points, bool(where), finest):
            key = np.where(place < 0, rung.key, -1)
            keys, chosen = _choose(key, items, enough, rng)
            rare = rare or len(keys) - int(chosen.sum())
            number = np.full(len(keys), -1, dtype=np.int64)
            number[chosen] = count + np.arange(int(chosen.sum()))
            has = key >= 0
            place[has] = number[np.searchsorted(keys, key[has])]
            told.append((rung, keys[chosen]))
            count += int(chosen.sum())
        if count <= most or (finest <= COARSEST and enough > U):
            break
        # too many: a coarser grid, and more people for each place
        enough, finest = 2 * enough, max(COARSEST, finest - 1)
    ids = [rung.name(key) for rung, keys in told for key in keys.tolist()]
    kinds = [rung.kind(key) for rung, keys in told for key in keys.tolist()]
    if not ids:
        raise InvalidTraces("no place has enough people to be on a public map.", code="E_EMPTY")
    first = {name: i for i, name in reversed(list(enumerate(ids)))}  # a file may call a venue as a tile is called
    order = [first[name] for name in sorted(first)]
    rank = {name: i for i, name in enumerate(sorted(first))}
    becomes = np.array([*(rank[name] for name in ids), -1], dtype=np.int32)
    words: dict[str, Any] = {"ids": [ids[i] for i in order], "kind": [kinds[i] for i in order] if any(kinds) else None}
    if where:
        lat, lon = np.concatenate([np.stack(rung.centres(keys)) for rung, keys in told], axis=1)[:, order]
        locations = Locations(lat, lon, **words)
    else:
        locations = Locations(n=len(order), **words)
    return locations, becomes[place][items.of], rare


def _choose(key: Ints, items: Items, enough: int, rng: np.random.Generator) -> tuple[Ints, Mask]:
    """Return the keys of items and which of them enough people share, give or take the noise."""
    keys = distinct(key[key >= 0])
    group = np.where(key >= 0, np.searchsorted(keys, key), -1)
    people, last = np.zeros(len(keys), dtype=np.int64), np.full(len(keys), -1, dtype=np.int32)
    kernels.count_people(items.who, items.what, group, last, people)
    stop = 1 - np.exp(-1 / NOISE)
    noise = rng.geometric(stop, len(keys)) - rng.geometric(stop, len(keys))
    return keys, people + noise >= enough


def _rungs(
    items: Items, kinds: tuple[str, ...], names: NDArray[np.object_], points: Floats, located: bool, finest: int
) -> Iterator[Rung]:
    """Return the ways to tell where, the finest first."""

    def nowhere(keys: Ints) -> tuple[Floats, Floats]:
        return np.full(len(keys), np.nan), np.full(len(keys), np.nan)

    def of_venue(keys: Ints) -> tuple[Floats, Floats]:
        return points[keys, 0], points[keys, 1]

    def word(kind: int) -> str:
        return kinds[kind] if kind >= 0 else ""

    common, K = _common_kinds(items, len(kinds)), max(1, len(kinds))
    centres = of_venue if located else nowhere
    own, kind = items.venue[items.what], items.kind[items.what]
    known = (own >= 0) & (kind >= 0)
    if (
        known.any() and np.mean(common[own[known]] == kind[known]) < AGREED
    ):  # what is done in a district is not its kind
        yield Rung(
            np.where((items.venue >= 0) & (items.kind >= 0), items.venue * K + items.kind, -1),
            lambda key: f"{names[key // K]}:{kinds[key % K]}",
            lambda keys: centres(keys // K),
            lambda key: kinds[key % K],
        )
        common[:] = -1
    yield Rung(items.venue, lambda key: str(names[key]), centres, lambda key: word(common[key]))
    if not located:
        if kinds:
            yield Rung(items.kind, lambda key: f"{OTHER}:{kinds[key]}", nowhere, word)
        yield Rung(np.zeros(len(items.venue), dtype=np.int64), lambda _: OTHER, nowhere, lambda _: "")
        return
    for zoom in range(finest, COARSEST_OF_KIND - 1, -1) if kinds else ():
        tile = items.tile >> 2 * (FINEST - zoom)
        yield Rung(
            np.where((items.tile >= 0) & (items.kind >= 0), tile * K + items.kind, -1),
            lambda key, zoom=zoom: f"{tile_name(key // K, zoom)}:{kinds[key % K]}",  # type: ignore[misc]
            lambda keys, zoom=zoom: tile_centres(keys // K, zoom),  # type: ignore[misc]
            lambda key: kinds[key % K],
        )
    for zoom in range(finest, COARSEST - 1, -1):
        yield Rung(
            np.where(items.tile >= 0, items.tile >> 2 * (FINEST - zoom), -1),
            lambda key, zoom=zoom: tile_name(key, zoom),  # type: ignore[misc]
            lambda keys, zoom=zoom: tile_centres(keys, zoom),  # type: ignore[misc]
            lambda _: "",
        )


def _items(records: Records, venues: Ints | None) -> Items:
    """Return what different answers the records give to "where", with which users give them."""
    tiles, of = _number(_tile_keys(records))
    venue = kind = np.full(len(tiles), -1, dtype=np.int64)
    if venues is not None or records.kind is not None:
        none = np.full(1, -1, dtype=np.int64)
        kinds = none if records.kind is None else records.kind
        own = none if venues is None else venues
        K, V = int(kinds.max(initial=-1)) + 2, int(own.max(initial=-1)) + 2
        keys, of = _number((of.astype(np.int64) * K + kinds + 1) * V + own + 1)
        tiles, kind, venue = tiles[keys // V // K], keys // V % K - 1, keys % V - 1
    user, empty = records.user, np.empty(0, dtype=np.int32)
    n = kernels.find_pairs(user, of, np.full(len(tiles), -1, dtype=np.int32), empty, empty)
    who, what = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    kernels.find_pairs(user, of, np.full(len(tiles), -1, dtype=np.int32), who, what)
    return Items(venue, tiles, kind, of, who, what)


def _number(keys: Ints) -> tuple[Ints, Codes]:
    """Return the different keys in order, and for each key its number among them: `number_keys` without a sort."""
    out, size = np.empty(len(keys), dtype=np.int32), 1 << 16
    while True:
        found, slots = np.empty(size, dtype=np.int64), np.full(size, -1, dtype=np.int32)
        n = kernels.number_keys(keys, slots, out, found)
        if n >= 0:
            order = np.argsort(found[:n])
            rank = np.empty(n, dtype=np.int32)
            rank[order] = np.arange(n, dtype=np.int32)
            return found[:n][order], rank[out]
        size *= 4


def _venues(records: Records) -> tuple[Ints | None, NDArray[np.object_], Floats]:
    """
    Return the venue of each record, -1 for none (None where there are no venues), with names and positions of venues.

    A venue is a place that the file names. Where records have coordinates, it is one only if nine of ten of its people
    give the same position: else the positions are those of people, and say where they were. Where the file names no
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
    P = np.int64(len(points))
    pairs, pair = number_keys(venue * P + point)
    pair_people = np.bincount(distinct(pair * span + user) // span, minlength=len(pairs))
    people = np.bincount(distinct((venue * span + user)[venue >= 0]) // span, minlength=len(names))
    best = np.lexsort((-pair_people, pairs // P))
    own, first = np.unique((pairs // P)[best], return_index=True)
    position, agreed = np.full((len(names), 2), np.nan), np.zeros(len(names) + 1, dtype=bool)
    choice = best[first]
    real = own >= 0
    position[own[real]] = where[(pairs % P)[choice]][real]
    agreed[own[real]] = (pair_people[choice] >= AGREED * people[own])[real]
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
    ids = locations.ids
    if records.place is not None:
        number = {name: i for i, name in enumerate(map(str, range(len(locations))) if ids is None else ids)}
        of_code = np.array([*(number.get(name, -1) for name in records.places), -1], dtype=np.int32)
        place = of_code[records.place]
        if records.kind is not None:  # a district and what is done there may be one place
            pairs, pair = number_keys(records.place.astype(np.int64) * (len(records.kinds) + 1) + records.kind)
            K = len(records.kinds) + 1
            names = [f"{records.places[key // K]}:{records.kinds[key % K]}" if key % K < K - 1 else "" for key in pairs]
            both = np.array([number.get(name, -1) for name in names], dtype=np.int32)[pair]
            place = np.where(both >= 0, both, place)
    if records.lat is None or records.lon is None or not locations.has_coordinates:
        return place
    rest = np.flatnonzero((place < 0) & np.isfinite(records.lat) & np.isfinite(records.lon))
    place[rest] = _find_exactly(records.select(rest), locations)
    tiles = {i: found for i, name in enumerate(ids or ()) if (found := TILE.fullmatch(name))}
    rest = np.flatnonzero((place < 0) & np.isfinite(records.lat) & np.isfinite(records.lon))
    some = records.select(rest)
    if tiles:
        code = {name: k for k, name in enumerate(records.kinds)}
        rungs: dict[tuple[bool, int], list[tuple[int, int]]] = {}
        for i, tile in tiles.items():
            if (kind := -1 if tile[2] is None else code.get(tile[2], -2)) > -2:
                rungs.setdefault((kind < 0, -len(tile[1])), []).append(
                    (int(tile[1], 4) * (len(code) + 1) + kind + 1, i)
                )
        keys, at = number_keys(_tile_keys(some) * (len(code) + 1) + (0 if some.kind is None else some.kind + 1))
        told = np.full(len(keys), -1, dtype=np.int32)
        for (plain, zoom), known in sorted(rungs.items()):
            there, number_of = np.array(sorted(known), dtype=np.int64).T
            key = keys // (len(code) + 1) >> 2 * (FINEST + zoom)
            key = key * (len(code) + 1) + (0 if plain else keys % (len(code) + 1))
            near = np.minimum(np.searchsorted(there, key), len(there) - 1)
            told = np.where((told < 0) & (there[near] == key), number_of[near], told).astype(np.int32)
        place[rest] = told[at]
    others = np.array([i for i in range(len(locations)) if i not in tiles], dtype=np.int64)
    rest = np.flatnonzero((place < 0) & np.isfinite(records.lat) & np.isfinite(records.lon))
    if len(others) and len(rest) and locations.lat is not None:
        nearest, km = locations.select(others).nearest(to_xyz(records.lat[rest], records.lon[rest]))
        place[rest] = np.where(km <= FAR_KM, others[nearest], -1)
    return place


def _find_exactly(records: Records, locations: Locations) -> Codes:
    """Return the place at the position of each record, one of its kind before others; -1 where there is none."""
    place = np.full(len(records), -1, dtype=np.int32)
    if locations.lat is None or locations.lon is None or records.lat is None or records.lon is None:
        return place
    there, here = (_position_keys(np.asarray(each.lat), np.asarray(each.lon)) for each in (locations, records))
    first = np.argsort(there, kind="stable")
    near = first[np.minimum(np.searchsorted(there[first], here), len(there) - 1)]
    away = np.abs(locations.lat[near] - records.lat) + np.abs(locations.lon[near] - records.lon)
    rows = np.flatnonzero((there[near] == here) & (away < 1e-9))
    if locations.kind is None or len(np.unique(there)) == len(there):
        place[rows] = near[rows]
        return place
    words = [*records.kinds, ""]
    number = {key: i for i, key in reversed(list(enumerate(zip(there.tolist(), locations.kind, strict=True))))}
    codes = np.full(len(rows), -1, dtype=np.int64) if records.kind is None else records.kind[rows].astype(np.int64)
    keys, of = _number(near[rows] * len(words) + codes % len(words))
    own = [(int(there[key // len(words)]), words[key % len(words)], key // len(words)) for key in keys.tolist()]
    best = [number.get((at, word), number.get((at, ""), i)) for at, word, i in own]
    place[rows] = np.array(best, dtype=np.int32)[of]
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
    if len(visits) != len(locations) or np.any(visits < 0):
        raise InvalidTraces("`visits` must hold one count per place, none below 0.", code="E_SHAPE")
    if len(locations) <= cells:
        return locations, np.arange(len(locations))
    if not locations.has_coordinates:
        raise InvalidParameter("places without coordinates cannot be merged; leave `cells` out.")
    x, into = _merge(locations.points().copy(), visits.astype(np.float64), cells)
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
    words = [word.strip() for word in text.split(",")]
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return _grid_about(words[0], words[1] if len(words) > 1 else str(TOWN_CELLS))
    if len(numbers) != 5:
        raise InvalidParameter(
            f"`grid` must be five numbers S,W,N,E,N (degrees, and how many cells), or a town, got {text!r}.",
            parameter="grid",
        )
    south, west, north, east, cells = numbers
    return _lattice(south, west, north, east, int(cells))


def _grid_about(name: str, cells: str) -> Locations:
    """Return cells of the TOWN_KM x TOWN_KM about the centre of a town, which its name alone decides."""
    from elsewhere.data.ground import find_town, is_installed, similar_towns

    town = find_town(name) if is_installed() else None
    if town is None or not cells.isdigit():
        like = " or ".join(similar_towns(name)) if is_installed() else "pip install 'elsewhere[maps]'"
        raise InvalidParameter(
            f"`grid`: no town {name!r} is known ({like}); give one nearby, or five numbers S,W,N,E,N.", parameter="grid"
        )
    up = float(np.degrees(TOWN_KM / 2 / EARTH_RADIUS_KM))
    across = min(up / max(float(np.cos(np.radians(town.lat))), 1e-3), 179.0)
    return _lattice(max(town.lat - up, -90), town.lon - across, min(town.lat + up, 90), town.lon + across, int(cells))


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
