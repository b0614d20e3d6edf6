"""The public map: where tiles lie, who decides what is on it, and that nobody shows in its coordinates."""

import math
from dataclasses import replace
from pathlib import Path

import naive
import naive_data
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elsewhere.data import _data_kernels as kernels
from elsewhere.data import places as module
from elsewhere.data.places import find_on_map, make_visits, public_places, reduce_places, tile_centres, tile_name
from elsewhere.data.read import read_records
from elsewhere.data.stays import FINEST, clean, find_stays
from elsewhere.data.town import simulate_town
from elsewhere.data.visits import Form, Locations, Preparation, Records, to_lat_lon
from elsewhere.errors import ElsewhereError, InvalidParameter, InvalidTraces

STUDENTS = Path(__file__).resolve().parents[2] / "shared" / "data" / "studentlife" / "studentlife_gps.parquet"
POINTS = st.tuples(st.floats(-84.9, 84.9), st.floats(-179.999, 179.999))


def key_of(lat, lon, zoom):
    return int(kernels.tile_key(lat, lon, zoom))


def events(user, lat=None, lon=None, **other):
    user = np.asarray(user, dtype=np.int32)
    start = np.arange(len(user), dtype=np.int64)
    users = tuple(f"u{i}" for i in range(int(user.max()) + 1))
    sides = {} if lat is None else {"lat": np.asarray(lat, dtype=float), "lon": np.asarray(lon, dtype=float)}
    return Records(user, users, start, start, **sides, **({"form": Form("events")} | other))


def city(seed=0, users=40, records=25):
    """Events of people who share a centre and have a home of their own."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(users), records)
    home = rng.uniform(-0.3, 0.3, (users, 2))
    out = rng.random(len(user)) < 0.6
    at = np.where(out[:, None], rng.normal(0, 0.01, (len(user), 2)), home[user] + rng.normal(0, 1e-4, (len(user), 2)))
    return events(user, 48.2 + at[:, 0], 16.4 + at[:, 1])


@pytest.fixture
def no_noise(monkeypatch):
    monkeypatch.setattr(module, "NOISE", 1e-3)


@given(POINTS, st.integers(1, 20))
def test_tiles_are_the_quarters_of_the_square(point, zoom):
    assert tile_name(key_of(*point, zoom), zoom) == "q" + naive_data.quadkey(*point, zoom)


@given(POINTS, st.integers(1, 17))
def test_the_middle_of_a_tile_lies_in_it_and_its_parent_is_a_prefix(point, zoom):
    key = key_of(*point, zoom)
    lat, lon = tile_centres(np.array([key]), zoom)
    assert key_of(lat[0], lon[0], zoom) == key
    assert key_of(*point, zoom - 1) == key >> 2


def test_a_published_example_and_the_edges_of_the_globe():
    # Bing Maps Tile System: tile (3, 5) at zoom 3 has the quadkey 213
    lat, lon = tile_centres(np.array([int("213", 4)]), 3)
    assert (round(lat[0], 1), lon[0]) == (-55.8, -22.5)
    assert key_of(89.9, 0, 5) == key_of(85.1, 0, 5)
    assert key_of(10, 180, 9) == key_of(10, -180, 9)
    assert key_of(10, 181, 9) == key_of(10, -179, 9)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from([48.0, 48.001, 48.02, 49.0]), st.sampled_from([16.0, 16.1])),
        min_size=1,
    )
)
def test_the_smallest_tile_that_enough_people_share(rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "NOISE", 1e-3)
        records = events(*zip(*sorted(rows), strict=True))
        people = len({user for user, *_ in rows})
        expected = naive_data.shared_tiles(sorted(rows), FINEST, module.COARSEST, min(8, max(1, people // 2)))
        if all(each is None for each in expected):
            with pytest.raises(InvalidTraces):
                public_places(records, most=1000, rng=np.random.default_rng(0))
            return
        locations, place, _ = public_places(records, most=1000, rng=np.random.default_rng(0))
        assert [None if p < 0 else locations.ids[p] for p in place] == expected


@pytest.mark.usefixtures("no_noise")
def test_homes_beside_busy_tiles_are_told_of_the_next_size_and_lone_ones_of_none():
    key = key_of(48.2, 16.4, FINEST - 1)
    lat, lon = tile_centres(4 * key + np.arange(4), FINEST)
    for homes, sizes in ((5, [16, 17, 17, 17]), (3, [17, 17, 17])):
        user = np.r_[np.tile(np.arange(20), 3), np.arange(homes)]
        tile = np.r_[np.repeat(np.arange(3), 20), np.full(homes, 3)]
        records = events(user, lat[tile], lon[tile], form=Form("fixes")).sort()
        locations, place, _ = public_places(records, most=1000, rng=np.random.default_rng(0))
        assert sorted(len(name) - 1 for name in locations.ids) == sizes
        assert (place < 0).sum() == (0 if homes == 5 else 3)


def on_map(records, rng=0):
    return make_visits(records, Preparation(), rng=np.random.default_rng(rng))


@pytest.mark.parametrize("noise", [1e-3, 1.0])
def test_the_map_of_a_file_with_and_without_a_person_has_the_same_coordinates(noise, monkeypatch):
    monkeypatch.setattr(module, "NOISE", noise)
    records = city()
    whole = on_map(records).locations
    where = {i: (a, b) for i, a, b in zip(whole.ids, whole.lat, whole.lon, strict=True)}
    for person in range(0, 40, 3):
        less = on_map(records.select(records.user != person), rng=person + 1).locations
        assert all(where[i] == (a, b) for i, a, b in zip(less.ids, less.lat, less.lon, strict=True) if i in where)


def test_the_map_of_49_students_without_one_of_them_has_the_same_coordinates():
    if not STUDENTS.exists():
        pytest.skip("StudentLife is not here: ../shared/data/studentlife")
    records, preparation, *_ = read_records(STUDENTS)
    records = find_stays(clean(records, preparation)[0])
    whole = on_map(records).locations
    where = {i: (a, b) for i, a, b in zip(whole.ids, whole.lat, whole.lon, strict=True)}
    common = 0
    for person in range(0, len(records.users), 5):
        less = on_map(records.select(records.user != person), rng=person + 1).locations
        both = [(where[i], (a, b)) for i, a, b in zip(less.ids, less.lat, less.lon, strict=True) if i in where]
        assert all(here == there for here, there in both)
        common += len(both)
    assert common > 300


def test_coordinates_do_not_depend_on_where_people_were_within_a_tile():
    rng, key = np.random.default_rng(3), key_of(48.2, 16.4, FINEST)
    lat, lon = tile_centres(np.array([key]), FINEST)
    maps = []
    for _ in range(5):
        points = rng.uniform(-0.0006, 0.0006, (2, 40))
        maps.append(on_map(events(np.arange(40), lat[0] + points[0], lon[0] + points[1])).locations)
    assert {m.fingerprint() for m in maps} == {Locations(lat, lon).fingerprint()}


def test_whether_a_rare_place_is_published_is_drawn():
    """Frequencies of publishing a tile of n people against the law of the noise, alpha 1e-6."""
    copies, files = 60, 40
    runs = copies * files
    n = np.tile(np.arange(1, 13), copies)
    lat, lon = 10 + np.arange(len(n)) % 60, 10 + np.arange(len(n)) // 60
    tile = np.repeat(np.arange(len(n)), n)
    user = np.concatenate([np.arange(each) for each in n])
    records = events(user, lat[tile], lon[tile], form=Form("fixes"))  # points that many share would be venues
    more = replace(records, users=tuple(f"u{i}" for i in range(40)))
    elsewhere = events(np.arange(40), np.full(40, -10.0), np.full(40, 16.0))  # of fewer than 16 people half are enough
    parts = {
        name: np.r_[getattr(more, name), getattr(elsewhere, name)] for name in ("user", "start", "end", "lat", "lon")
    }
    records = replace(more, **parts).select(np.argsort(parts["user"], kind="stable"))
    rng, seen = np.random.default_rng(5), np.zeros(13)
    names = ["q" + naive_data.quadkey(a, b, FINEST) for a, b in zip(lat, lon, strict=True)]
    for _ in range(files):
        ids = set(public_places(records, most=10_000, rng=rng)[0].ids)
        np.add.at(seen, n, [name in ids for name in names])
    seen = seen[1:]
    for n in range(1, 13):
        p = naive_data.chance_of_at_least(n, module.SHARED, module.NOISE)
        p *= naive_data.chance_of_at_least(n, module.SHARED // 2, module.NOISE)  # all of them are told of
        assert abs(seen[n - 1] - runs * p) <= 5 * np.sqrt(runs * p * (1 - p)) + 5, n
    assert seen[0] < 20
    assert seen[11] > 0.9 * runs


def test_the_noise_is_the_operating_systems_unless_a_stream_is_given():
    records = city()
    assert len({on_map(records, rng=1).R for _ in range(3)}) == 1
    assert len({make_visits(records, Preparation()).locations.ids for _ in range(8)}) > 1


def venues(people=12, spread=0.0):
    """Twelve people at the inn, three at a hut, everybody in their own street."""
    rng = np.random.default_rng(1)
    user = np.r_[np.arange(people), [0, 1, 2], np.arange(people)]
    place = np.r_[np.zeros(people), [1, 1, 1], np.full(people, -1)].astype(np.int32)
    lat = np.r_[np.full(people, 48.2), [48.3, 48.3, 48.3], 48.1 + np.arange(people) / 1000]
    lat = lat + rng.uniform(-spread, spread, len(lat))
    records = events(user, lat, np.full(len(user), 16.4), place=place, places=("inn", "hut"))
    return records.select(np.argsort(user, kind="stable"))


@pytest.mark.usefixtures("no_noise")
def test_venues_keep_id_and_position_and_rare_ones_become_tiles():
    records = venues()
    kinds = np.where(records.place == 0, 0, np.where(records.place == 1, 1, -1)).astype(np.int32)
    visits = on_map(replace(records, kind=kinds, kinds=("food", "shelter")))
    where = visits.locations

    inn = where.ids.index("inn")
    assert (where.lat[inn], where.lon[inn], where.kind[inn]) == (48.2, 16.4, "food")
    assert "hut" not in where.ids
    assert visits.visitors()[inn] == 12
    assert len(visits) == len(records)
    assert visits.preparation.places_rare == 1


@pytest.mark.usefixtures("no_noise")
def test_positions_of_people_are_no_positions_of_venues():
    visits = on_map(venues(spread=0.001))
    assert "inn" not in visits.locations.ids
    assert all(name.startswith("q") for name in visits.locations.ids)


@pytest.mark.usefixtures("no_noise")
def test_positions_that_scatter_by_metres_are_told_by_three_decimals():
    where = on_map(venues(spread=0.00002)).locations
    inn = where.ids.index("inn")
    assert (where.lat[inn], where.lon[inn]) == (48.2, 16.4)


@pytest.mark.usefixtures("no_noise")
def test_rare_venues_are_told_by_kind_and_tile():
    """Ten bars with one guest each in one street: the street's bars are a place."""
    n = 20
    records = events(
        np.arange(n),
        48.2 + np.arange(n) * 1e-5,
        np.full(n, 16.4),
        place=np.arange(n, dtype=np.int32),
        places=tuple(f"v{i}" for i in range(n)),
        kind=(np.arange(n) % 2).astype(np.int32),
        kinds=("bar", "shop"),
    )
    where = on_map(records).locations
    assert {name.split(":")[1] for name in where.ids} == {"bar", "shop"}
    assert set(where.kind) == {"bar", "shop"}
    assert len(set(where.lat)) == 1


@pytest.mark.usefixtures("no_noise")
def test_points_that_many_share_are_venues_without_a_name():
    user = np.repeat(np.arange(20), 6)
    lat = 48 + np.tile(np.arange(3), 40) / 10
    where = on_map(events(user, lat + 1e-6, np.full(120, 16.4))).locations
    assert where.ids == ("48.00000,16.40000", "48.10000,16.40000", "48.20000,16.40000")


@pytest.mark.usefixtures("no_noise")
def test_without_coordinates_there_are_names_alone():
    user = np.r_[np.arange(20), np.arange(20)]
    place = np.r_[np.zeros(20), 1 + np.arange(20)].astype(np.int32)
    names = ("station", *(f"home of {i}" for i in range(20)))
    records = events(user, place=place, places=names).select(np.argsort(user, kind="stable"))
    visits = on_map(records)
    assert visits.locations.ids == ("other", "station")
    assert not visits.locations.has_coordinates
    kinds = replace(records, kind=(records.place > 0).astype(np.int32), kinds=("public", "home"))
    assert on_map(kinds).locations.ids == ("other:home", "station")


def test_nothing_is_lost_uncounted_and_people_keep_their_names():
    records = events([0] * 10 + [1] * 10 + [2], [48.2] * 20 + [-70.0], [16.4] * 20 + [100.0])
    many = events(np.r_[np.arange(30), [30]], np.r_[np.full(30, 48.2), [-70.0]], np.r_[np.full(30, 16.4), [100.0]])
    visits = on_map(many)
    assert visits.users == tuple(f"u{i}" for i in range(30))
    assert sum(visits.preparation.dropped.values()) == 1
    assert visits.preparation.users == 30
    assert len(on_map(records)) + sum(on_map(records).preparation.dropped.values()) == 21


def test_the_number_of_places_has_a_limit():
    records = city()
    assert make_visits(records, Preparation(), cells=10, rng=np.random.default_rng(1)).R <= 10
    with pytest.raises(InvalidParameter):
        make_visits(records, Preparation(), cells=0)
    with pytest.raises(InvalidParameter):
        make_visits(records, Preparation(), places="shared")


def test_a_second_file_on_the_map_of_the_first_has_the_same_places():
    records = city()
    visits = on_map(records)
    assert np.array_equal(find_on_map(records, visits.locations), visits.place)
    half = records.select(records.user < 20)
    again = make_visits(half, Preparation(), locations=visits.locations)
    assert again.locations is visits.locations
    assert np.array_equal(again.place, visits.place[visits.user < 20])


@pytest.mark.usefixtures("no_noise")
def test_kinds_and_venues_are_found_again():
    records = venues()
    records = replace(records, kind=(records.place >= 0).astype(np.int32), kinds=("street", "venue"))
    visits = on_map(records)
    assert np.array_equal(find_on_map(records, visits.locations), visits.place)


@pytest.mark.usefixtures("no_noise")
def test_published_positions_are_found_again_even_where_a_finer_tile_lies_there():
    lat, lon = tile_centres(np.array([key_of(48.2, 16.4, 12)]), 12)
    corner = np.arange(12) % 4  # three people in each quarter of the tile, twenty in its middle
    north = np.r_[np.full(20, lat[0]), lat[0] + 0.012 * (2 * (corner // 2) - 1)]
    east = np.r_[np.full(20, lon[0]), lon[0] + 0.02 * (2 * (corner % 2) - 1)]
    where = on_map(events(np.arange(32), north, east, form=Form("fixes"))).locations
    assert [len(name) - 1 for name in where.ids] == [12, 17]
    again = events(np.arange(where.n), where.lat, where.lon)
    assert find_on_map(again, where).tolist() == [0, 1]


def test_of_places_at_one_position_that_of_the_kind_is_taken():
    where = Locations(lat=[48.0] * 3, lon=[16.0] * 3, ids=["q1:bar", "q1", "q1:shop"], kind=["bar", "", "shop"])
    kind = np.array([1, 0, 2, -1], dtype=np.int32)
    records = events([0] * 4, [48.0] * 4, [16.0] * 4, kind=kind, kinds=("shop", "bar", "inn"))
    assert find_on_map(records, where).tolist() == [0, 2, 1, 1]


def test_a_table_of_towers_takes_names_or_the_nearest():
    towers = Locations(lat=[48.2, 48.3], lon=[16.4, 16.4], ids=["a", "b"])
    by_name = events([0, 0, 1], place=np.array([1, 0, 2], dtype=np.int32), places=("a", "b", "c"))
    assert find_on_map(by_name, towers).tolist() == [1, 0, -1]
    visits = make_visits(by_name, Preparation(), locations=towers)
    assert (len(visits), visits.users, sum(visits.preparation.dropped.values())) == (2, ("u0",), 1)
    near = events([0, 0, 0], [48.21, 48.29, 10.0], [16.4, 16.41, 16.4])
    assert find_on_map(near, towers).tolist() == [0, 1, -1]


def test_fixes_that_follow_each_other_at_one_place_are_one_visit():
    minutes = np.arange(0, 100, 10)
    user = np.repeat(np.arange(20), len(minutes))
    lat = 48.2 + np.where(np.tile(minutes, 20) < 50, 0.0, 0.1) + 0.0001 * (np.tile(minutes, 20) // 10 % 2)
    records = replace(events(user, lat, np.full(len(user), 16.4)), form=Form("fixes"))
    start = np.tile(60 * minutes, 20).astype(np.int64)
    records, counts = clean(replace(records, start=start, end=start), Preparation())
    visits = make_visits(find_stays(records), counts, rng=np.random.default_rng(1))
    assert len(visits) == 40
    assert set(zip(visits.start.tolist(), visits.end.tolist(), strict=True)) == {(0, 2400), (3000, 5400)}


def test_the_laboratorys_maps():
    records = city()
    fine = make_visits(records, Preparation(), places="grid")
    tiles = {naive_data.quadkey(a, b, FINEST) for a, b in zip(records.lat, records.lon, strict=True)}
    assert set(fine.locations.ids) == {f"q{key}" for key in tiles}
    merged = make_visits(records, Preparation(), places="merge", cells=20)
    assert merged.R == 20
    assert len(merged) == len(records)
    with pytest.raises(InvalidParameter):
        make_visits(events([0], place=np.zeros(1, dtype=np.int32), places=("a",)), Preparation(), places="grid")


@st.composite
def few_points(draw):
    n = draw(st.integers(2, 12))
    near = st.floats(-0.05, 0.05, allow_nan=False)
    points = draw(st.lists(st.tuples(near, near), min_size=n, max_size=n, unique=True))
    return points, draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), draw(st.integers(1, n))


@settings(max_examples=150, deadline=None)
@given(few_points())
def test_the_papers_merging_against_the_naive_twin(case):
    points, visits, cells = case

    def centroid(x, v, y, w):
        a, b = (v, w) if v + w else (1, 1)
        return tuple((a * i + b * j) / (a + b) for i, j in zip(x, y, strict=True))

    members, at = naive.merged_places(points, visits, cells, math.dist, centroid)
    fewer, becomes = reduce_places(Locations(xy=points), np.array(visits), cells=cells)
    assert [np.flatnonzero(becomes == k).tolist() for k in range(len(fewer))] == members
    np.testing.assert_allclose(fewer.xy, at, atol=1e-12)
    assert np.bincount(becomes, weights=visits).sum() == sum(visits)


def test_the_papers_merging_loses_no_visit():
    town = simulate_town(users=30, days=2, rng=np.random.default_rng(2))
    counts = np.bincount(town.traces.r.ravel(), minlength=town.traces.R)
    fewer, becomes = reduce_places(town.traces.locations, counts, cells=100)
    assert (len(fewer), np.bincount(becomes, counts).sum()) == (100, counts.sum())
    with pytest.raises(ElsewhereError):
        reduce_places(Locations(n=3), np.ones(3, dtype=int), cells=2)
    lat, lon = to_lat_lon(fewer.points())
    assert np.allclose(lat, fewer.lat, atol=1e-5)
    assert np.allclose(lon, fewer.lon, atol=1e-5)


def test_no_message_shows_a_value():
    with pytest.raises(InvalidTraces) as caught:
        make_visits(
            events([0], [48.2], [16.4]), Preparation("file.csv"), locations=Locations(lat=[0.0], lon=[0.0], ids=["a"])
        )
    assert caught.value.code == "E_EMPTY"
    assert "48" not in str(caught.value)
