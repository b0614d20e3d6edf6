"""Records in, records out: lives of calls, diaries, sessions, trips, trips without persons, two cities."""

import numpy as np
import pytest

import elsewhere as ew
from elsewhere.data.visits import DAY, Form, Locations, Visits

HOUR = 3_600


@pytest.fixture(scope="module")
def town():
    return ew.simulate_town(users=120, days=5, locations=120, rng=np.random.default_rng(5)).visits


def calls(town, rng):
    some = np.flatnonzero(rng.random(len(town)) < 0.4)
    time = town.start[some] + (rng.random(len(some)) * (town.end - town.start)[some]).astype(np.int64)
    order = np.lexsort((time, town.user[some]))
    return Visits(town.user[some][order], time[order], time[order], town.place[some][order], town.locations)


def diary(town, rng):
    i = np.flatnonzero(town.end - town.start >= 1_800)
    return Visits(town.user[i], town.start[i], town.end[i], town.place[i], Locations(n=town.R))


def sessions(town, rng):
    """A fix every other minute of two hours a day, on three of the days."""
    rows = []
    for user in range(town.U):
        own = np.flatnonzero(town.user == user)
        for day in rng.choice(np.unique(town.start // DAY), 3, replace=False):
            time = day * DAY + int(rng.integers(7, 20)) * HOUR + np.arange(0, 2 * HOUR, 120)
            at = own[np.maximum(np.searchsorted(town.start[own], time, side="right") - 1, 0)]
            seen = (town.start[at] <= time) & (town.end[at] > time)
            rows.append(np.column_stack([np.full(seen.sum(), user), time[seen], town.place[at][seen]]))
    user, time, place = np.concatenate(rows).T
    order = np.lexsort((time, user))
    return Visits(user[order], time[order], time[order], place[order], town.locations)


def trips(town, rng):
    i = np.flatnonzero(town.end - town.start >= 1_800)
    a, b = i[:-1], i[1:]
    moved = (town.user[a] == town.user[b]) & (town.place[a] != town.place[b])
    a, b = a[moved], b[moved]
    time = np.column_stack([town.end[a], np.maximum(town.start[b], town.end[a] + 60)]).ravel()
    place = np.column_stack([town.place[a], town.place[b]]).ravel()
    trip = np.repeat(np.arange(len(a)), 2)
    return Visits(np.repeat(town.user[a], 2), time, time, place, town.locations, trip=trip)


def bikes(town, rng):
    """Every fifth trip, without its person."""
    made = trips(town, rng)
    number = made.trip // 5
    some = np.flatnonzero(made.trip % 5 == 0)
    alone = Visits(
        number[some], made.start[some], made.end[some], made.place[some], town.locations, trip=number[some]
    )  # fmt: skip
    return alone.replace(form=Form("trips", "trip"))


def cities(town, rng):
    other = ew.simulate_town(users=60, days=5, locations=60, rng=np.random.default_rng(6)).visits
    near, far = town.locations, other.locations
    both = Locations(lat=np.append(near.lat, far.lat + 2), lon=np.append(near.lon, far.lon + 3))
    columns = [np.append(getattr(town, name), getattr(other, name)) for name in ("start", "end")]
    return Visits(
        np.append(town.user, other.user + town.U), *columns, np.append(town.place, other.place + town.R), both
    )


def test_trips_take_as_long_as_trips_and_nobody_waits_no_time(town):
    people = trips(town, np.random.default_rng(1))
    fakes = ew.generate_fakes(people, rng=np.random.default_rng(2)).visits
    longest = []
    for visits in (people, fakes):
        order = np.argsort(visits.trip, kind="stable")
        leave, arrive = visits.start[order[::2]], visits.start[order[1::2]]
        longest.append((arrive - leave).max())
        assert (arrive >= leave).all()
        after = np.lexsort((leave, visits.user[order[::2]]))
        user = visits.user[order[::2]][after]
        stay = (leave[after][1:] - arrive[after][:-1])[user[1:] == user[:-1]]
        assert np.mean(stay <= 0) < 0.03
    assert longest[1] <= longest[0]
    assert len(np.unique(fakes.user)) == fakes.U


def test_fakes_stay_within_the_dates_of_the_data(town):
    rng = np.random.default_rng(4)
    times = 19_786 * DAY + rng.integers(0, 5 * DAY, (town.U, 20))  # at all hours, also after midnight
    user, time = np.repeat(np.arange(town.U), 20), np.sort(times, 1).ravel()
    people = Visits(user, time, time, rng.integers(0, 6, len(user)) + town.R // 2, town.locations)
    for seed in (1, 2):
        fakes = ew.generate_fakes(people, rng=np.random.default_rng(seed)).visits
        assert fakes.start.min() >= 19_786 * DAY
        assert fakes.end.max() < 19_791 * DAY


def by_hour(visits):
    return np.bincount(visits.start // HOUR % 24, minlength=24) / len(visits)


@pytest.mark.parametrize("kind", [calls, diary, sessions, trips, bikes, cities])
def test_fakes_are_records_of_the_kind_that_came_in(town, kind):
    people = kind(town, np.random.default_rng(1))
    made = ew.generate_fakes(people, rng=np.random.default_rng(2))
    fakes = made.visits
    assert fakes.U >= 0.95 * len(made.seeds)
    assert 0.75 < len(fakes) / fakes.U / (len(people) / people.U) < 1.25
    assert np.abs(by_hour(fakes) - by_hour(people)).sum() / 2 < 0.2
    assert abs((fakes.start == fakes.end).mean() - (people.start == people.end).mean()) < 0.05
    assert (fakes.trip is None) == (people.trip is None)
    assert fakes.locations == people.locations
    if kind is cities:  # nobody lives in two cities that nobody travels between
        here = np.bincount(fakes.user, fakes.place < town.R) / np.bincount(fakes.user)
        assert np.isin(here, (0, 1)).all()
