"""Gaps, stays, regions, evidence and prepared folders: policies against slow twins, and laws."""

import json
import math

import naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_read import CANARY, dataset, day, read, refused

import elsewhere as ew
from elsewhere.reports.page import preparation_page
from elsewhere.traces._traces_kernels import find_stays
from elsewhere.traces.fixes import cut_at_gaps
from elsewhere.traces.maps import (
    A_TOWN,
    MOST_PEOPLE_IN,
    MOST_SLOTS_IN,
    REACH_KM,
    find_main_area,
    read_regions,
    town_cells,
)
from elsewhere.data.visits import EARTH_RADIUS_KM
from elsewhere.traces.places import WITHIN_ONE_RADIUS, evidence_of, share_places, snap_to_anchors
from elsewhere.traces.write import save_traces

NIGHT = np.datetime64("2013-04-15", "s")


def track(minutes, lat, lon, uid="ann"):
    return {"uid": [uid] * len(minutes), "datetime": [NIGHT + 60 * int(m) for m in minutes], "lat": lat, "lng": lon}


def raw(source, **options):
    return read(source, cells=None, min_coverage=0, grid_metres=50, **options)


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 1439), min_size=2, max_size=12, unique=True),
    st.sampled_from([20, 60]),
    st.sampled_from([0, 60, 240, 1440]),
    st.sampled_from(["hold", "interpolate"]),
)
def test_policies_against_the_naive_twin(minutes, step, longest, policy):
    minutes = sorted(minutes)
    # eastwards, one minute of time one thousandth of a degree: no two fixes are at one place
    lon = [m / 1000 for m in minutes]
    traces, counted = raw(track(minutes, [10.5] * len(lon), lon), step=step, max_gap=longest, gaps=policy)
    expected = naive.filled_slots(minutes, step, longest, policy)

    for t, told in enumerate(expected):
        r = traces.r[0, t]
        assert (r < 0) == (told is None)
        if told is not None and told[0] != "fix":
            i = told[1]
            where = lon[i] if told[0] == "held" else lon[i] + told[2] * (lon[i + 1] - lon[i])
            assert abs(traces.locations.lon[r] - where) * 111.2 < 0.045
    assert counted.slots_held == sum(told is not None and told[0] != "fix" for told in expected)
    assert counted.slots_missing == expected.count(None)


def test_the_straight_way_crosses_the_antimeridian_and_the_pole():  # B24, B25
    minutes = [10, 70]
    over, _ = raw(track(minutes, [10.0, 10.0], [179.9, -179.9]), gaps="interpolate")
    middle = over.locations.lon[over.r[0, 2]]
    assert abs(abs(middle) - 180) < 0.04
    pole, _ = raw(track(minutes, [89.9, 89.9], [0.0, 180.0]), gaps="interpolate")
    assert pole.locations.lat[pole.r[0, 1]] > 89.9


def test_places_without_coordinates_take_the_nearer_fix():
    table = {"uid": ["a", "a"], "datetime": [NIGHT + 600, NIGHT + 4200], "place": ["home", "work"]}
    traces, _ = read(table, min_coverage=0, gaps="interpolate", columns={"place": "place"})

    assert traces.r[0, :4].tolist() == [0, 0, 1, 1]


@given(st.lists(st.lists(st.integers(-1, 3), min_size=1, max_size=9), min_size=1, max_size=4).filter(
    lambda rows: len({len(row) for row in rows}) == 1))  # fmt: skip
def test_cut_keeps_every_instant_and_every_move(rows):
    r = np.array(rows)
    pieces, row = cut_at_gaps(r)

    for i, whole in enumerate(r):
        mine = pieces[row == i]
        assert ((mine >= 0).sum(axis=0) <= 1).all()
        assert np.array_equal(np.where((mine >= 0).any(axis=0), mine.max(axis=0, initial=-1), -1), whole)
    for piece in pieces:
        known = np.flatnonzero(piece >= 0)
        assert np.array_equal(known, np.arange(known[0], known[-1] + 1))


def test_split_and_drop():  # B34
    thin, full = day("ben").iloc[:30], day("ann")
    gap = pd.concat([full.iloc[:20], full.iloc[40:]])
    table = pd.concat([gap, thin])
    held, counted = read(table, min_coverage=0.3, max_gap="1h")
    pieces, split = read(table, min_coverage=0.3, max_gap="1h", gaps="split")
    dropped, told = read(table, min_coverage=0.5, max_gap="1h", gaps="drop")

    assert (len(held), counted.users) == (2, 2)
    assert (len(pieces), pieces.U, split.days) == (3, 2, 2)
    assert sorted((pieces.r >= 0).sum(axis=1).tolist()) == sorted([23, 32, 33])
    assert np.array_equal((pieces.r >= 0).sum(), (held.r >= 0).sum())
    assert (dropped.U, told.users_dropped, told.days_dropped) == (1, 1, 1)
    assert sum(told.users_by_coverage) == 2


def test_profiles_do_not_depend_on_splitting():  # E2
    table = pd.concat([day("ann").iloc[:20], day("ann").iloc[40:]])
    whole, pieces = (ew.fit_profiles(read(table, gaps=g)[0], missing="skip")[0] for g in ("hold", "split"))

    np.testing.assert_array_equal(whole.count, pieces.count)
    np.testing.assert_array_equal(whole.visits, pieces.visits)


# how long a gap is filled

three_days = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3 * 72 - 1).map(lambda k: 20 * k), st.integers(0, 3)),
    min_size=1,
    max_size=60,
    unique_by=lambda fix: fix[:2],
)
HOURS = (1, 3, 6, 12, 24)


def table_of(fixes):
    """Fixes (user, minute, place), places 5 km apart."""
    return {
        "uid": [f"p{user}" for user, _, _ in fixes],
        "datetime": [NIGHT + 60 * minute for _, minute, _ in fixes],
        "lat": [46.5 + place / 20 for _, _, place in fixes],
        "lng": [6.5] * len(fixes),
    }


@settings(max_examples=60, deadline=None)
@given(three_days)
def test_the_ladder_against_the_naive_twin(fixes):
    expected = naive.people_by_gap(fixes, 20, [60 * h for h in HOURS])
    if len({(u, m // 1440) for u, m, _ in fixes}) == len(fixes):  # one fix a day
        assert refused(table_of(fixes))[0] == "E_EMPTY"
        return
    told = read(table_of(fixes), min_coverage=0.01)[1]

    assert dict(told.people_by_gap) == {f"{g // 60}h": people for g, people in expected.items()}
    # a longer gap never keeps fewer people, and the shortest that keeps nine of ten is taken
    people = list(expected.values())
    assert people == sorted(people)
    taken = next(h for h, kept in zip(HOURS, people, strict=True) if 10 * kept >= 9 * people[-1])
    assert told.max_gap_minutes == 60 * taken
    assert told.users_usable == expected[60 * taken] >= people[0]


@settings(max_examples=30, deadline=None)
@given(three_days, st.sampled_from(["hold", "interpolate", "split", "drop"]), st.sampled_from([0, 1, 5, 24]))
def test_a_given_gap_is_used_as_it_is(fixes, gaps, hours):
    assume(len({(u, m // 1440) for u, m, _ in fixes}) < len(fixes))
    traces, told = read(table_of(fixes), gaps=gaps, max_gap=f"{hours}h", min_coverage=0.01)

    assert (told.max_gap_minutes, told.max_gap_auto) == (60 * hours, False)
    if gaps != "split":
        # what the ladder counts is what comes out
        whole = np.all(traces.r >= 0, axis=1)
        assert told.users_usable == len(set(traces.users[whole].tolist()))
        assert told.days_usable == whole.sum()
        if f"{hours}h" in told.people_by_gap:
            assert told.people_by_gap[f"{hours}h"] == told.users_usable


def test_a_day_begins_with_its_first_fix_and_one_fix_is_no_day():
    early = track([7 * 60, 8 * 60, 23 * 60], [46.5] * 3, [6.5, 6.9, 6.5], uid="early")
    # by hand: 21 slots before 07:00, of which the last 19 end at most 6 h before it
    traces, told = read(early, cells=None, min_coverage=0, max_gap="6h")
    assert traces.r[0].tolist() == [-1] * 2 + [0] * 22 + [1] * 19 + [-1] * 26 + [0] * 3
    assert told.slots_held == 19 + 2 + 18 + 2
    single = pd.DataFrame(track([600, 600 + 1440, 700 + 2880], [46.5] * 3, [6.5] * 3))
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        read(single)
    assert caught.value.code == "E_EMPTY"
    assert "days with fixes in one slot alone, which says nothing of how the day went: 3;" in str(caught.value)
    assert "1h 0, 3h 0, 6h 0, 12h 0, 24h 0" in str(caught.value)


def test_numbered_slots_climb_too_and_first_try_nothing():
    full = {"uid": ["a"] * 6, "day": [1] * 6, "slot": list(range(6)), "loc": [0, 0, 1, 1, 0, 0]}
    gap = {"uid": ["b"] * 3, "day": [1] * 3, "slot": [0, 4, 5], "loc": [0, 1, 1]}
    both = pd.concat([pd.DataFrame(full), pd.DataFrame(gap)])
    traces, told = read(both, step="1h")

    assert dict(told.people_by_gap) == {"0h": 1, "1h": 1, "3h": 2, "6h": 2, "12h": 2, "24h": 2}
    assert told.max_gap_minutes == 180
    assert traces.r.tolist() == [[0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]]
    many = pd.concat([pd.DataFrame({**full, "uid": [f"a{i}"] * 6}) for i in range(9)] + [pd.DataFrame(gap)])
    assert read(many, step="1h")[1].slots_held == 0


# the map

CITY, ABROAD = (39.9, 116.4), (47.6, -122.3)


def crowd(people, where, seed=1, slots=40):
    """People of (share, lat, lon) towns: each is that share of the own slots in each town, within a few km."""
    rng = np.random.default_rng(seed)
    rows = []
    for u in range(people):
        town = rng.choice(len(where), slots, p=[share for share, *_ in where])
        place = np.array([where[t][1:] for t in town]) + rng.normal(0, 0.03, (slots, 2))
        rows += [(u, s, *p) for s, p in zip(range(slots), place, strict=True)]
    user, slot, lat, lon = (np.array(column) for column in zip(*rows, strict=True))
    return user.astype(np.int64), slot.astype(np.int64), lat, lon


def test_the_map_is_the_city_and_not_the_travels():
    user, slot, lat, lon = crowd(30, [(0.96, *CITY), (0.02, *ABROAD), (0.02, -33.9, 151.2)])
    area = find_main_area(user, slot, lat, lon)

    home = np.abs(lat - CITY[0]) < 1
    assert np.array_equal(area.holds(lat, lon), home)
    assert area.km < 200
    # one traveller with a fix every second does not move it
    n = 200_000
    fast = (np.append(user, np.full(n, 30)), np.append(slot, np.arange(n) // 1200))
    far = (np.append(lat, np.full(n, 10.0)), np.append(lon, np.full(n, 10.0)))
    assert not find_main_area(*fast, *far).holds(np.array([10.0]), np.array([10.0]))[0]


def test_nothing_is_cut_off_where_people_live():
    # two cities, a country of many towns, one city alone, a city and its far suburb
    for where in (
        [(0.9, 46.5, 6.6), (0.1, 47.4, 8.5)],
        [(0.05, 40 + 0.9 * i, 5 + 1.3 * (i % 5)) for i in range(20)],
        [(1.0, 46.5, 6.6)],
        [(0.97, 46.5, 6.6), (0.03, 47.0, 6.9)],
    ):
        area = find_main_area(*crowd(60, where))
        assert area is None or area.holds(*np.array([town[1:] for town in where]).T).all()
    # residents of a second city are people, travellers to a third are not
    user, slot, lat, lon = crowd(40, [(0.98, 46.5, 6.6), (0.02, *ABROAD)])
    lat, lon = np.where(user < 6, lat + 0.9, lat), np.where(user < 6, lon + 1.9, lon)
    held = find_main_area(user, slot, lat, lon).holds(lat, lon)
    assert held[(user < 6) & (lon > 0)].all()
    assert not held[lon < 0].any()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5), st.integers(0, 8)), min_size=2, max_size=60),
    st.randoms(use_true_random=False),
)
def test_the_towns_against_the_naive_twin_in_any_order(slots, luck):
    # cells on a line, some near each other, some far away
    km = [0, 30, 60, 90, 500, 560, 3000, 5000, 5074]
    visited = sorted({c for *_, c in slots})
    x = np.array([[km[c], 0.0, 0.0] for c in visited])
    expected = naive.towns(slots, lambda a, b: abs(km[a] - km[b]), REACH_KM, MOST_SLOTS_IN, MOST_PEOPLE_IN, A_TOWN)
    mixed = luck.sample(slots, len(slots))
    for some in (slots, mixed, mixed + slots):  # a fix more in a slot changes nothing
        user, slot, cell = (np.array(column, dtype=np.int64) for column in zip(*some, strict=True))
        inside = town_cells(user, slot, np.searchsorted(visited, cell), x)
        assert [c for c, within in zip(visited, inside, strict=True) if within] == expected


@pytest.mark.parametrize("seed", range(5))
def test_the_map_does_not_depend_on_the_order_of_fixes(seed):
    user, slot, lat, lon = crowd(20, [(0.7, *CITY), (0.2, 40.2, 117.4), (0.05, *ABROAD), (0.05, 31.2, 121.5)], seed)
    order = np.random.default_rng(seed).permutation(len(user))
    one, other = find_main_area(user, slot, lat, lon), find_main_area(user[order], slot[order], lat[order], lon[order])

    assert (one is None) == (other is None)
    assert one is None or np.array_equal(one.holds(lat, lon), other.holds(lat, lon))


def test_travels_are_left_out_counted_and_never_held():
    home = [day(f"u{i}", date=d) for i in range(8) for d in ("2013-04-15", "2013-04-16", "2013-04-17")]
    away = day("u0", date="2013-04-18").assign(lat=lambda t: np.where((t.index > 30) & (t.index < 40), 10.5, t.lat))
    # after the last fix abroad nothing is known for a while: nobody is held there, nor at home
    table = pd.concat([*home, away.drop(index=range(40, 46))], ignore_index=True)
    traces, told = read(table, max_gap="24h", min_coverage=0.1)
    row = traces.r[(traces.users == "u0") & (traces.dates == np.datetime64("2013-04-18"))][0]

    assert np.flatnonzero(row < 0).tolist() == list(range(31, 46))
    assert (told.map, told.slots_outside, told.days_outside, told.users_outside) == ("auto", 9, 1, 1)
    assert told.dropped == {"outside the map": 9}
    assert any("on 1 days of 1 people, lie outside" in note for note in told.notes)
    assert np.abs(traces.locations.lat - 46.5).max() < 1
    whole, told = read(table, map="whole", max_gap="24h")
    assert (told.map, told.slots_outside, whole.r.min()) == ("whole", 0, 0)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_every_known_slot_lies_on_the_map_and_a_box_is_never_bad(seed, share):
    rng = np.random.default_rng(seed)
    table = pd.concat([day(f"u{i}") for i in range(3)], ignore_index=True)
    out = rng.random(len(table)) < share
    table.loc[out, ["lat", "lng"]] = 48.5, 9.5
    box = (46, 6, 47, 7)
    if out.all():
        assert refused(table, box=box)[0] == "E_OUTSIDE"
        return
    traces, told = read(table, box=box, min_coverage=0, max_bad=0, grid_metres=50)

    assert told.dropped == ({"outside the map": int(out.sum())} if out.any() else {})
    assert (told.slots_outside, told.slots_observed) == (int(out.sum()), int((~out).sum()))
    assert traces.locations.lat.max() < 47.001


# places that people share


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.sets(st.integers(0, 19), max_size=20)), min_size=1, max_size=9),
    st.integers(1, 9),
)
def test_shared_places_against_the_naive_twin(places, cells):
    xy = np.array([[float(x), i / 64] for i, (x, _) in enumerate(places)])
    assume(any(who for _, who in places))
    place = np.array([i for i, (_, who) in enumerate(places) for _ in who], dtype=np.int64)
    user = np.array([u for _, who in places for u in sorted(who)], dtype=np.int64)
    least = min(8, len(np.unique(user)) // 2)

    def centroid(x, v, y, w):
        f = w / (v + w) if v + w else 0.5
        return tuple((1 - f) * a + f * b for a, b in zip(x, y, strict=True))

    groups, points = naive.shared_places([tuple(p) for p in xy], [w for _, w in places], least, math.dist, centroid)
    fewer, becomes = share_places(ew.Locations(xy=xy), place, user, cells=len(places))

    assert [np.flatnonzero(becomes == g).tolist() for g in range(len(fewer))] == groups
    np.testing.assert_allclose(fewer.xy, points, atol=1e-9)
    capped, into = share_places(ew.Locations(xy=xy), place, user, cells=cells)
    assert len(capped) == min(cells, len(fewer))
    # what was joined stays together
    assert all(len(set(into[members].tolist())) == 1 for members in groups)


def test_places_are_fine_where_many_people_are():
    rng = np.random.default_rng(3)
    people = 60
    homes = np.column_stack([46.5 + rng.normal(0, 0.04, people), 6.5 + rng.normal(0, 0.06, people)])
    tables = []
    for u, (lat, lon) in enumerate(homes):
        table = day(f"u{u}")
        work = table.index // 18 == 1
        table["lat"] = np.where(work, 46.5 + 0.002 * (u % 6), lat) + rng.uniform(-1, 1, 72) * 1e-5
        table["lng"] = np.where(work, 6.5, lon)
        tables.append(table)
    table = pd.concat(tables, ignore_index=True)
    shared, told = read(table)
    merged, _ = read(table, places="merge")

    def visitors(traces):
        pairs = np.unique(traces.user[:, None] * traces.R + traces.r)
        return np.bincount(pairs % traces.R, minlength=traces.R)

    assert visitors(shared).min() >= 8
    assert np.mean(visitors(merged)[merged.r] >= 8) < 0.5
    # six workplaces 220 m apart stay six, though homes are joined over kilometres
    assert len(np.unique(shared.r[:, 20])) == 6
    assert told.places_by == "shared"
    # what has few different points has places already, and they stay
    exact = table.assign(lat=table.lat.round(3), lng=table.lng.round(3))
    assert read(exact)[0].R == len(exact[["lat", "lng"]].drop_duplicates())


# stays, regions, evidence


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 300), st.integers(0, 6)), min_size=1, max_size=30))
def test_stays_against_the_naive_twin(fixes):
    fixes = sorted(fixes)
    points = np.array([[0.1 * p, 0.0, 0.0] for _, _, p in fixes])
    expected = naive.stays([(u, 60 * m, 0.1 * p) for u, m, p in fixes], lambda a, b: abs(a - b), 0.25, 1200)
    got = np.empty(len(fixes), dtype=np.int64)
    user, second = (np.array(column) for column in ([f[0] for f in fixes], [60 * f[1] for f in fixes]))
    n = find_stays(got, user, second, points, 0.25, 1200)

    assert [None if s < 0 else s for s in got.tolist()] == expected
    assert n == len({s for s in expected if s is not None})


METRE = 180 / (np.pi * EARTH_RADIUS_KM * 1000)  # in degrees of latitude


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 400), st.integers(0, 12), st.integers(0, 9)),
        min_size=1,
        max_size=40,
    )
)
def test_anchors_against_the_naive_twin(fixes):
    """Along a meridian, where distances are differences: spots 37 m apart, and some metres of noise."""
    fixes = sorted(fixes)
    metres = [37.0 * spot + 1.7 * noise for _, _, spot, noise in fixes]
    twins = [(u, 60 * m, x / 1000) for (u, m, _, _), x in zip(fixes, metres, strict=True)]
    expected = naive.anchored(twins, lambda a, b: abs(a - b), lambda points: sum(points) / len(points))
    user, second = np.array([f[0] for f in fixes]), np.array([60 * f[1] for f in fixes])
    lat, lon, there = snap_to_anchors(user, second, METRE * np.array(metres), np.zeros(len(fixes)))

    told = [None if x is None else 1000 * x for x in expected]
    assert there.tolist() == [x is not None for x in told]
    np.testing.assert_allclose(
        lat / METRE, [m if x is None else x for x, m in zip(told, metres, strict=True)], atol=0.2
    )
    assert np.all(lon == 0)


def test_somebody_near_a_border_of_cells_stays_and_a_mover_moves():
    """By hand: at home with 20 m of noise, an hour at a shop 400 m off, home again; and somebody who only drives."""
    rng = np.random.default_rng(5)
    spot = np.repeat([0.0, 400.0, 0.0], [300, 60, 300])
    noisy = spot + 20 * rng.standard_normal(660)
    drive = 500.0 * np.arange(660)
    user = np.repeat([0, 1], 660)
    second = np.tile(60 * np.arange(660), 2)
    lat, _, there = snap_to_anchors(user, second, METRE * np.append(noisy, drive), np.zeros(1320))

    assert there.tolist() == [True] * 660 + [False] * 660
    assert len(np.unique(lat[:660])) == 2
    np.testing.assert_allclose(lat[:660] / METRE, spot, atol=5)  # the mean of 60 fixes: 20 / sqrt(60) = 2.6 m
    assert np.array_equal(lat[660:], METRE * drive)


def test_the_longest_stay_makes_the_anchor():
    """Stays at 0, 90 and 180 m with trips between them: the longest takes both others in, whatever comes first."""
    spot = np.repeat([0.0, 9000, 90, 9000, 180], [30, 1, 300, 1, 30])
    wobble = np.where(np.arange(len(spot)) % 2, 1.0, -1.0)
    lat, _, there = snap_to_anchors(
        np.zeros(len(spot), dtype=int), 60 * np.arange(len(spot)), METRE * (spot + wobble), np.zeros(len(spot))
    )

    assert there.tolist() == (spot < 9000).tolist()
    np.testing.assert_allclose(lat[there] / METRE, 90, atol=0.5)


def town_as_fixes(metres, every=10, decimals=None):
    """A dense town, looked at every few minutes with noise in both directions, and what was true in each slot."""
    town = ew.simulate_town(users=250, locations=60, rng=np.random.default_rng(3), step_minutes=every).traces
    rng = np.random.default_rng(4)
    lat, lon = (
        side[town.r] + metres * METRE * rng.standard_normal(town.r.shape)
        for side in (town.locations.lat, town.locations.lon)
    )
    when = town.dates[:, None] + np.arange(town.L) * np.timedelta64(60 * every, "s")
    table = pd.DataFrame(
        {"uid": np.repeat(town.users, town.L), "time": when.ravel(), "lat": lat.ravel(), "lng": lon.ravel()}
    )
    return (table if decimals is None else table.round({"lat": decimals, "lng": decimals})), town.r[:, :: 20 // every]


def moves(r):
    return float((r[:, 1:] != r[:, :-1]).sum(axis=1).mean())


@pytest.mark.parametrize(("metres", "decimals"), [(0, None), (5, None), (20, None), (20, 4), (50, None)])
def test_noise_makes_no_moves(metres, decimals):
    """Cells alone make 31 moves a day of 8 with 20 m of noise."""
    table, true = town_as_fixes(metres, decimals=decimals)
    traces, told = read(table)

    # what is seen of a slot is its first fix and a second one: at most a tenth of the moves differ
    assert moves(traces.r) == pytest.approx(moves(true), rel=0.1)
    same = (traces.r[:, 1:] != traces.r[:, :-1]) == (true[:, 1:] != true[:, :-1])
    assert same.mean() > 0.97
    assert any("jitter" in note for note in told.notes) == (metres > 0)
    if metres == 20:
        assert moves(read(table, places="merge")[0].r) > 2 * moves(true)


def test_noise_in_numbered_slots_makes_no_moves_and_other_people_do_not_matter():
    table, true = town_as_fixes(20, every=20)
    slots = table.assign(slot=np.tile(np.arange(72), len(true))).drop(columns="time")
    traces, _ = read(slots)
    assert moves(traces.r) == pytest.approx(moves(true), rel=0.05)

    def at(frame):
        second = frame.time.astype("datetime64[s]").astype(np.int64).to_numpy()
        user = np.unique(frame.uid, return_inverse=True)[1]
        return snap_to_anchors(user, second, frame.lat.to_numpy(), frame.lng.to_numpy())

    few = table[table.uid.isin(np.unique(table.uid)[:20])]
    everybody, alone = at(table), at(few)
    mine = table.uid.isin(few.uid.unique()).to_numpy()
    assert all(np.array_equal(a[mine], b) for a, b in zip(everybody, alone, strict=True))


def test_places_that_somebody_has_made_are_left_alone():
    """People who step between two points 150 m apart, more points than cells: no noise, and nothing is moved."""
    rng = np.random.default_rng(8)
    user = np.repeat(np.arange(30), 72)
    spot = np.repeat(rng.integers(0, 2, (30, 18)), 4, axis=1).ravel()  # four slots at one point, then perhaps the other
    lat = METRE * (150.0 * spot + 10_000 * user)
    got, _, there = snap_to_anchors(user, np.tile(1200 * np.arange(72), 30), lat, np.zeros(len(lat)))
    assert np.array_equal(got, lat)
    assert not there.any()


def test_stays_become_places():
    # at home, on a long road, at work: two places, and the road belongs to the nearer
    lon = np.r_[np.full(30, 6.5), np.linspace(6.5, 6.9, 12)[1:-1], np.full(32, 6.9)]
    table = track(np.arange(10, 1440, 20)[: len(lon)], np.full(len(lon), 46.5), lon)
    traces, told = read(table, places="stays", min_coverage=0)

    assert (traces.R, told.places_by) == (2, "stays")
    assert traces.r[0, 0] != traces.r[0, -1]
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        read(track([0, 30, 60], [46.0, 46.5, 47.0], [6.0, 6.5, 7.0]), places="stays", min_coverage=0)
    assert caught.value.code == "E_EMPTY"


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=3, max_size=8, unique=True),
    st.tuples(st.floats(-21, 21), st.floats(-21, 21)),
    st.sampled_from([0.0, 100.0, 179.0, -179.0]),
)
def test_regions_against_winding_numbers(corners, point, centre):
    middle = np.mean(corners, axis=0)
    ring = sorted(corners, key=lambda c: (math.atan2(c[1] - middle[1], c[0] - middle[0]), c))
    for (ax, ay), (bx, by) in zip(ring, ring[1:] + ring[:1], strict=True):
        # a point on an edge is a matter of taste
        assume(abs((bx - ax) * (point[1] - ay) - (by - ay) * (point[0] - ax)) > 1e-6)

    def turned(x):
        return (x + centre + 180) % 360 - 180

    regions = read_regions({"type": "Polygon", "coordinates": [[[turned(x), y] for x, y in [*ring, ring[0]]]]})
    got = regions.place_of(np.array([float(point[1])]), np.array([turned(point[0])]))[0]

    assert (got == 0) == (naive.winding(point, ring) % 2 == 1)


def square(west, south, east, north):
    return [[[west, south], [east, south], [east, north], [west, north], [west, south]]]


def test_regions_holes_poles_overlaps_and_parts():
    cap = [[lon, 80.0] for lon in (-170, -60, 60, 170, -170)]
    features = [
        {"type": "Polygon", "coordinates": [cap]},
        {"type": "Polygon", "coordinates": square(0, 0, 10, 10) + square(4, 4, 6, 6)},
        {"type": "Polygon", "coordinates": square(4, 4, 6, 6)},
        {"type": "MultiPolygon", "coordinates": [square(170, -10, 180, 0), square(-180, -10, -170, 0)]},
        {"type": "Point", "coordinates": [1, 1]},
        {"type": "Polygon", "coordinates": square(5, 5, 20, 20)},
    ]
    collection = {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": g} for g in features]}
    regions = read_regions(collection)
    lat = np.array([89.0, 85.0, 5.0, 1.0, -5.0, -5.0, 9.0, 15.0, 50.0])
    lon = np.array([10.0, -179.0, 5.0, 1.0, 175.0, -175.0, 9.0, 15.0, 50.0])

    assert regions.place_of(lat, lon).tolist() == [0, 0, 2, 1, 3, 3, 1, 4, -1]
    assert len(regions) == 5


def test_regions_are_places_and_outside_is_not_held(tmp_path):
    path = tmp_path / "parts.geojson"
    path.write_text(json.dumps({"type": "Polygon", "coordinates": square(6.0, 46.0, 7.0, 47.0)}))
    table = track([10, 30, 50, 70, 90], [46.5, 46.5, 48.0, 46.5, 46.5], [6.5, 6.5, 6.5, 6.5, 6.5])
    traces, told = read(table, regions=path, min_coverage=0)

    assert traces.r[0, :5].tolist() == [0, 0, -1, 0, 0]
    assert (traces.R, told.places_by, told.dropped) == (1, "regions", {"outside the map": 1})
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        read(track([10, 30], [10.0, 10.0], [6.5, 6.5]), regions=path, min_coverage=0)
    assert caught.value.code == "E_OUTSIDE"


def test_grid_stays_within_its_number_of_cells():
    table = track(np.arange(0, 1440, 2), 46 + np.arange(720) / 2000, np.full(720, 6.0))
    traces, told = read(table, places="grid", cells=30, step="2min")

    assert traces.R <= 30
    assert told.grid_metres > 100


def test_evidence_is_a_normal_law_over_places_within_the_radius():
    places = ew.Locations([46.5, 46.5, 46.5], [6.5, 6.501, 6.6])
    d = float(places.distance(0, 1)) * 1000
    found = evidence_of(
        places, np.array([0, 0]), np.array([3, 4]), np.full(2, 46.5), np.full(2, 6.5), np.array([100.0, 1.0])
    )
    sigma = 100 / WITHIN_ONE_RADIUS
    nearby = math.exp(-0.5 * (d / sigma) ** 2)

    assert found.slot.tolist() == [3, 3]
    np.testing.assert_allclose(found.weight, [1 / (1 + nearby), nearby / (1 + nearby)], rtol=1e-4)
    assert 1 - math.exp(-0.5 * WITHIN_ONE_RADIUS**2) == pytest.approx(0.68, abs=1e-3)


def test_accuracy_reaches_the_profiles():
    # two homes 80 m apart; half of the fixes are so coarse that either may be meant
    minutes = np.arange(10, 1440, 20)
    lon = np.where(minutes < 720, 6.5, 6.502)
    table = {**track(minutes, np.full(72, 46.5), lon), "accuracy": np.where(np.arange(72) % 2, 500.0, 5.0)}
    traces, _ = read(table, evidence=True)
    plain, _ = read(table)
    u = ew.fit_profiles(traces, missing="gibbs", rng=np.random.default_rng(1))

    assert plain.evidence is None
    assert set(traces.evidence.slot.tolist()) == set(range(1, 72, 2))
    assert u.sampling.slots == 36
    assert np.array_equal(traces.r, plain.r)
    with pytest.raises(ew.errors.InvalidParameter):
        read(table, evidence=True, gaps="split")


# prepared folders


@pytest.mark.parametrize("gaps", ["hold", "split", "interpolate"])
def test_prepared_traces_read_back_to_the_last_bit(tmp_path, gaps):
    table = pd.concat([day(u, date=d).sample(50, random_state=i) for i, (u, d) in enumerate(
        [("10", "2013-04-15"), ("9", "2013-04-15"), ("9", "2013-10-27"), ("b=", "2013-04-16")])])  # fmt: skip
    traces, told = read(table, tz="Europe/Zurich", gaps=gaps, max_gap="20min")
    save_traces(traces, told, tmp_path)

    for source in (tmp_path, tmp_path / "traces.csv", tmp_path / "traces.parquet"):
        again = ew.read_traces(source, cells=1, step="1h")
        assert np.array_equal(again.r, traces.r)
        assert again.locations == traces.locations
        assert list(again.users) == list(traces.users)
        assert np.array_equal(again.dates, traces.dates)
        assert (again.step_minutes, again.start, again.tz) == (traces.step_minutes, traces.start, traces.tz)
    (tmp_path / "traces.csv").write_text("uid,slot,location\n1,0,0\n")
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.read_traces(tmp_path / "traces.csv")
    assert caught.value.code == "E_CHANGED"


def test_places_without_coordinates_are_kept_by_number(tmp_path):
    table = {"uid": ["a"] * 3 + ["b"] * 3, "slot": [0, 1, 2] * 2, "loc": [0, 1, -1, 4, 4, 4]}
    traces, told = read(table)
    save_traces(traces, told, tmp_path)
    again = ew.read_traces(tmp_path)

    assert np.array_equal(again.r, traces.r)
    assert again.R == traces.R == 5


def test_the_page_names_the_owner_of_gaps_and_the_counts_do_not():
    table = pd.concat([day(f"<b>{CANARY}").iloc[:5], day("ann")])
    traces, told = read(table, max_gap="1h")
    made = preparation_page(traces, told)

    assert f"&lt;b&gt;{CANARY}" in made
    assert f"<b>{CANARY}" not in made
    assert CANARY not in json.dumps(told.to_dict()) + repr(told)
    assert "keeps the place of the last fix, up to 1h" in made
    assert "fewer than 50 % of the slots known" in made


# the datasets


def test_studentlife_by_every_policy():
    path = dataset("studentlife/studentlife_gps.parquet")
    found = {gaps: read(path, gaps=gaps)[1] for gaps in ("hold", "interpolate", "drop")}

    for told in found.values():
        assert told.users == 49
        assert told.slots_observed / (told.slots_observed + told.slots_held + told.slots_missing) > 0.8
    assert found["drop"].days > found["hold"].days


def test_foursquare_says_who_cannot_be_used_and_why():
    path = dataset("foursquare_nyc/fsq_nyc_checkins.csv.gz")
    told = read(path)[1]

    assert told.users + told.users_dropped == 1083
    assert sum(told.users_by_coverage) == 1083
    assert (told.coverage.by_user < 0.1).sum() == told.users_by_coverage[0]
    # check-ins are hours apart: filling an hour knows a whole day of nobody, filling twelve of nearly all
    assert (told.max_gap_auto, told.max_gap_minutes, told.users_usable) == (True, 720, 1052)
    assert dict(told.people_by_gap) == {"1h": 0, "3h": 1, "6h": 125, "12h": 1052, "24h": 1082}
    assert any("1h: 0, 3h: 1, 6h: 125, 12h: 1,052, 24h: 1,082" in note for note in told.notes)
    assert read(path, max_gap="1h")[1].users_usable == 0
