"""Cleaning, stays and shifts: against the slow twins, and that nothing is filled in and nothing lost uncounted."""

from dataclasses import replace

import naive_data
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elsewhere.data.stays import (
    FASTEST_KMH,
    FINEST,
    LEAST_JUMP_KM,
    SILENCE,
    STAY_KM,
    STAY_SECONDS,
    clean,
    find_jumps,
    find_stays,
    split_vehicles,
)
from elsewhere.data.visits import Form, Preparation, Records


def fixes_of(rows, record="fixes", **other):
    """Records of rows (user, second, lat, lon)."""
    user, second, lat, lon = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    users = tuple(f"u{i}" for i in range(int(user.max(initial=0)) + 1))
    start = second.astype(np.int64)
    return Records(user.astype(np.int32), users, start, start, lat.copy(), lon.copy(), form=Form(record), **other)


def rows_of(records):
    return list(
        zip(records.user.tolist(), records.start.tolist(), records.lat.tolist(), records.lon.tolist(), strict=True)
    )


# minutes apart and 60 m apart: stays, ways, silences and jumps all happen
STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([0, 60, 300, 900, 4000]), st.integers(-3, 3), st.integers(-3, 3)),
    min_size=1,
    max_size=60,
)


def walk(steps, scale=0.0006, far=0):
    rows, at = [], {}
    for user, wait, dy, dx in steps:
        second, y, x = at.get(user, (1_000_000, 0, 0))
        at[user] = second + wait, y + dy, x + dx
        second, y, x = at[user]
        rows.append((user, second, 60 + scale * y, 179.99 + scale * x + far * (dx == 3)))
    return sorted(rows, key=lambda row: row[:2])


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_stays_and_cells_on_the_way_against_the_twin(steps):
    rows = [(u, s, lat, (lon + 180) % 360 - 180) for u, s, lat, lon in walk(steps)]
    records = fixes_of(rows)
    found = find_stays(records)
    expected = naive_data.segments(rows, STAY_KM, STAY_SECONDS, SILENCE, FINEST)

    assert found.user.tolist() == [rows[part[0]][0] for part in expected]
    assert found.start.tolist() == [rows[part[0]][1] for part in expected]
    assert found.end.tolist() == [rows[part[-1]][1] for part in expected]
    for i, part in enumerate(expected):
        own = [rows[k][2:] for k in part]
        mean = np.mean([lat for lat, _ in own]), np.mean([lon % 360 for _, lon in own])
        assert naive_data.arc_km((found.lat[i], found.lon[i]), mean) < 1e-6


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_nothing_is_filled_in(steps):
    """No visit goes over an hour without a fix, and each begins and ends with one."""
    rows = walk(steps)
    found = find_stays(fixes_of(rows))
    for user, start, end in zip(found.user, found.start, found.end, strict=True):
        own = [second for u, second, *_ in rows if u == user and start <= second <= end]
        assert {start, end} <= set(own)
        assert max(np.diff(own), default=0) <= SILENCE


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_jumps_against_the_twin(steps):
    rows = [row for i, row in enumerate(walk(steps, far=30)) if i == 0 or row[:2] != walk(steps, far=30)[i - 1][:2]]
    assert set(np.flatnonzero(find_jumps(fixes_of(rows)))) == naive_data.jumps(rows, LEAST_JUMP_KM, FASTEST_KMH)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(0, 3),
            st.sampled_from([0.0, 1.0, 2.0, 80.0]),
            st.sampled_from([0.0, 1.0, 170.0]),
        ),
        min_size=1,
    ),
    st.sampled_from(["fixes", "events", "visits"]),
)
def test_every_record_is_kept_or_counted(rows, record):
    found, counts = clean(fixes_of(rows, record), Preparation(rows=len(rows)))

    assert len(found) + sum(counts.dropped.values()) == len(rows)
    kept = rows_of(found)
    assert [row[:2] for row in kept] == sorted(row[:2] for row in kept)
    assert set(kept) <= {tuple(map(float, row)) for row in rows}
    if record == "fixes":
        assert len({row[:2] for row in kept}) == len(kept)  # nobody is at two places at one time
    else:
        assert len(set(kept)) == len(kept)


def test_reasons():
    rows = [(0, 5, 46.0, 7.0), (0, 5, 46.0, 7.0), (0, 5, 46.1, 7.0), (0, 100, 40.0, 7.0), (0, 200, 46.0, 7.0)]
    found, counts = clean(fixes_of(rows), Preparation())

    assert rows_of(found) == [(0, 5, 46.0, 7.0), (0, 200, 46.0, 7.0)]
    assert sorted(counts.dropped.values()) == [1] * 3


def trips(rows):
    """Records of trips (user, left, arrived): two records each."""
    flat = [(u, t, lat, 7.0) for u, a, b in rows for t, lat in ((a, 46.0), (b, 46.5))]
    return fixes_of(flat, "trips", trip=np.repeat(np.arange(len(rows), dtype=np.int32), 2))


def test_a_trip_that_the_file_has_twice_is_one():
    found, counts = clean(trips([(0, 100, 900), (0, 100, 900), (1, 100, 900), (0, 100, 901)]), Preparation())
    assert sorted(set(found.trip.tolist())) == [0, 2, 3]
    assert counts.dropped == {"repeated": 2}


def test_a_trip_of_no_length_keeps_both_ends():
    found, counts = clean(trips([(0, 100, 100)]), Preparation())
    assert (len(found), counts.dropped) == (2, {})


def test_lines_of_points_are_cells_on_the_way():
    rows = [(0, 15 * k, 41.0 + 0.0005 * k, -8.6) for k in range(20)]
    line = fixes_of(rows, trip=np.zeros(20, dtype=np.int32))
    found = find_stays(replace(line, form=Form("fixes", columns={"points": "POLYLINE"})))
    tiles = [naive_data.quadkey(lat, lon, FINEST) for _, _, lat, lon in rows]
    assert len(found) == len(dict.fromkeys(tiles))
    assert (found.start[0], found.end[-1], found.form.interval) == (0, 285, 15)


def test_events_and_visits_are_what_they_are():
    records = fixes_of([(0, 60 * k, 46.0, 7.0) for k in range(60)], "events")
    assert find_stays(records) is records


def drive(cars, hours, speed=0.004, every=60, pause=()):
    rows = []
    for car in range(cars):
        lat, there = 40.0 + car, 1
        for k in range(hours * 3600 // every):
            second = 10**9 // 86_400 * 86_400 + 6 * 3600 + k * every
            if any(a <= k * every / 3600 < b for a, b in pause):
                continue
            lat += there * speed
            there = -there if k % 40 == 39 else there
            rows.append((car, second, lat, 116.0))
    return fixes_of(rows)


def test_vehicles_that_are_out_all_day_are_told_by_shift():
    cut = split_vehicles(find_stays(drive(3, 20, pause=[(8, 11)])))
    assert cut.form.unit == "vehicle-day"
    assert cut.users == tuple(f"u{car}/{k}" for car in range(3) for k in (1, 2))
    gaps = np.diff(cut.start)[cut.user[1:] == cut.user[:-1]]
    assert gaps.max() < 7200
    no_pause = split_vehicles(find_stays(drive(1, 60)))
    assert len(no_pause.users) == 3  # until four in the morning


@pytest.mark.parametrize(
    "records",
    [
        drive(3, 1),  # an hour's ride
        drive(3, 20, speed=0.0),  # nobody moves
        replace(drive(3, 20), form=Form("fixes", "trip")),
    ],
)
def test_persons_stay_whole(records):
    found = find_stays(records)
    assert split_vehicles(found) is found


def test_one_record_is_enough():
    records, _ = clean(fixes_of([(0, 5, 46.0, 7.0)]), Preparation())
    assert len(split_vehicles(find_stays(records))) == 1
