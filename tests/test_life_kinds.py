"""Records in, records out: lives of calls, diaries, sessions, trips, trips without persons, two cities."""

import naive_life
import numpy as np
import pandas as pd
import pytest

import elsewhere as ew
from elsewhere.data.visits import DAY, Form, Locations, Visits
from elsewhere.synthesis.generate_life import number_trips, stays_of_trips, trips_of_stays, usual_times
from elsewhere.synthesis.groups import ARRIVES, LEAVES, find_trips

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


def timetable(town, rng):
    """A diary in which each stay lasts until the next begins."""
    last = np.append(town.user[1:] != town.user[:-1], True)
    end = np.where(last, town.end, np.append(town.start[1:], 0))
    return Visits(town.user, town.start, end, town.place, Locations(n=town.R))


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


@pytest.mark.parametrize("kind", [calls, diary, timetable, sessions, trips, bikes, cities])
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


MINUTE, SIDE = 60, 24  # of a grid of cells, 300 m wide


def taxis(rng, shifts=160):
    """A fix a minute: hired from cell to cell, then standing for hire, or cruising; never hired while standing."""
    rows = []
    for shift in range(shifts):
        at, t, here = rng.integers(0, SIDE, 2), 19_786 * DAY + int(rng.integers(6, 12)) * HOUR, []
        while len(here) < 300:
            for hired in (0, 1):
                goal = np.clip(at + rng.integers(-2, 3, 2), 0, SIDE - 1) if hired == 0 else rng.integers(0, SIDE, 2)
                while (at != goal).any():
                    axis = int(rng.integers(2)) if (at != goal).all() else int(np.flatnonzero(at != goal)[0])
                    at = at + np.sign(goal - at) * (np.arange(2) == axis)
                    here += [(*at, hired)] * (1 + (rng.random() < 0.3))
                if hired == 0 and rng.random() < 0.5:
                    here += [(*at, 0)] * int(rng.integers(10, 30))
        rows += [(shift, t + MINUTE * i, y * SIDE + x, flag) for i, (x, y, flag) in enumerate(here)]
    user, time, place, flag = np.array(rows).T
    run = np.cumsum(np.append(True, (np.diff(user) != 0) | (np.diff(flag) != 0)))
    xy = np.array([[i % SIDE, i // SIDE] for i in range(SIDE * SIDE)]) * 0.3
    form = Form("fixes", "vehicle-day", interval=MINUTE)
    return Visits(user, time, time, place, Locations(xy=xy), trip=np.where(flag, run, -1), form=form)


def fixes_of(visits):
    """User, time, place, occupied of a fix a minute, as they are written."""
    many = (visits.end - visits.start) // MINUTE + 1
    row = np.repeat(np.arange(len(visits)), many)
    time = visits.start[row] + MINUTE * (np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many))
    return visits.user[row], time, visits.place[row], visits.trip[row] >= 0


def test_taxis_are_occupied_from_place_to_place_and_not_while_they_stand():
    people = taxis(np.random.default_rng(1))
    fakes = ew.generate_fakes(people, rng=np.random.default_rng(2)).visits
    runs, occupied, standing = [], [], []
    for visits in (people, fakes):
        user, time, place, flag = fixes_of(visits)
        same = user[1:] == user[:-1]
        assert (np.diff(time)[same] > 0).all()
        step = np.hypot(*(visits.locations.xy[place[1:]] - visits.locations.xy[place[:-1]]).T)[same]
        assert np.quantile(step / np.diff(time)[same], 0.995) < 1.5 * 0.3 / MINUTE
        runs.append((flag & np.append(True, ~flag[:-1] | ~same)).sum() / visits.U)
        occupied.append(flag.mean())
        stand = np.cumsum(np.append(True, (np.diff(place) != 0) | ~same))
        standing.append(flag[np.bincount(stand)[stand] >= 8].mean())
    assert abs(runs[1] / runs[0] - 1) < 0.25
    assert abs(occupied[1] - occupied[0]) < 0.1
    assert standing[0] < 0.01  # of a stand, the minute in which somebody gets off
    assert standing[1] < 0.15


def test_trips_between_classes_are_those_of_their_definition():
    rng = np.random.default_rng(3)
    ways = rng.integers(0, 4, 6)
    life, cls, wanted, trips = [], [], [], 0
    for person in range(60):
        classes = rng.integers(-3, 6, 12).clip(-1)
        classes[0] = classes[-1] = rng.integers(6)
        found = naive_life.trips_of_life(classes.tolist(), ways & LEAVES > 0, ways & ARRIVES > 0)
        wanted += [-1 if trip is None else trip + trips for trip in found]
        trips += len(set(found) - {None})
        life += [person] * 12
        cls += classes.tolist()
    assert number_trips(np.array(life), np.array(cls), ways).tolist() == wanted


def test_trips_begin_and_end_where_their_definition_says():
    rng, user, trip = np.random.default_rng(5), [], []
    for person in range(40):  # the first trip of one has the number of the last trip of another
        for run in range(int(rng.integers(1, 5))):
            many = int(rng.integers(1, 4))
            user += [person] * many
            trip += [-1 if rng.random() < 0.3 else 3 * person + run] * many
    when = np.arange(len(user)) * HOUR
    visits = Visits(user, when, when, np.zeros(len(user), dtype=int), Locations(n=1), trip=trip)
    rows = list(zip(user, trip, strict=True))
    begins, ends = find_trips(visits)
    assert begins.tolist() == [row[1] >= 0 and row not in rows[:i] for i, row in enumerate(rows)]
    assert ends.tolist() == [row[1] >= 0 and row not in rows[i + 1 :] for i, row in enumerate(rows)]
    assert not np.any(find_trips(visits.replace(trip=None)))


def test_stays_between_trips_are_those_of_their_definition():
    rng = np.random.default_rng(7)
    user, place = np.repeat(np.arange(6), 20), rng.integers(0, 2, 120)
    start, trip = np.arange(120) * HOUR, np.arange(120) // 2
    trips = Visits(user, start, start + rng.integers(0, 600, 120), place, Locations(n=2), trip=trip)
    wanted = []
    for row in zip(user.tolist(), start.tolist(), trips.end.tolist(), place.tolist(), trip.tolist(), strict=True):
        last = wanted[-1] if wanted else None
        if last and (last[0], last[3]) == (row[0], row[3]) and last[4] != row[4]:
            wanted[-1] = (*last[:2], row[2], *row[3:])  # there since the trip before has ended
        else:
            wanted.append(row)
    found = stays_of_trips(trips)
    assert list(zip(found.user, found.start, found.end, found.place, strict=True)) == [row[:4] for row in wanted]


def test_trips_between_stays_are_those_of_their_definition():
    rng = np.random.default_rng(6)
    plain, xy = Locations(n=4), Locations(xy=rng.uniform(0, 9, (4, 2)))
    took = rng.integers(300, 3_000, 100)
    leave = 20_000 * DAY + np.arange(100) * 2 * HOUR
    when, place = np.column_stack([leave, leave + took]).ravel(), rng.integers(0, 4, 200)
    like = Visits(np.zeros(200, dtype=int), when, when, place, plain, trip=np.repeat(np.arange(100), 2))
    longest = np.sort(took)[99]
    lives = []
    for _ in range(60):
        stays, now = [], 20_000 * DAY
        for _ in range(int(rng.integers(2, 12))):
            stays.append((now, now + int(rng.choice([60, 2_000, 9_000])), int(rng.integers(2))))
            now = stays[-1][1] + int(rng.choice([60, longest - 1, longest, longest + 1, 30_000]))
        lives.append(stays)
    life = np.repeat(np.arange(60), [len(stays) for stays in lives])
    columns = (life, *np.array([stay for stays in lives for stay in stays]).T, range(60))
    wanted = naive_life.trips_between(took.tolist(), lives)
    found = trips_of_stays(like, *columns)
    assert list(zip(found.user.tolist(), found.start.tolist(), found.place.tolist(), strict=True)) == wanted
    assert np.array_equal(found.trip, np.repeat(np.arange(len(wanted) // 2), 2))

    found = trips_of_stays(like.replace(locations=xy), *columns)  # none is slower or faster than others as far
    (goes, arrives), (a, b) = found.start.reshape(-1, 2).T, found.place.reshape(-1, 2).T
    low, high = usual_times(xy.distance(place[::2], place[1::2]), took, xy.distance(a, b))
    last = np.append(found.user[2::2] != found.user[:-2:2], True)
    limit = np.where(last, arrives.max(), np.append(goes[1:], 0))
    assert np.array_equal(goes, [time for _, time, _ in wanted[::2]])
    assert (arrives >= np.minimum(goes + low, limit)).all()
    assert (arrives <= np.minimum(goes + high, limit)).all()


def test_trips_take_as_long_as_others_as_far(town):
    rng = np.random.default_rng(4)
    people = bikes(town, rng)
    a, b = people.place[::2], people.place[1::2]
    apart = town.locations.distance(a, b)
    took = (apart * rng.uniform(200, 300, len(apart))).astype(np.int64) + 120
    time = np.column_stack([people.start[::2], people.start[::2] + took]).ravel()
    people = people.replace(start=time, end=time)
    fakes = ew.generate_fakes(people, rng=np.random.default_rng(2)).visits
    far = town.locations.distance(fakes.place[::2], fakes.place[1::2])
    time = fakes.start[1::2] - fakes.start[::2]
    known = far <= apart.max()
    assert np.corrcoef(np.log(far + 0.1)[known], np.log(time + 60)[known])[0, 1] > 0.75
    low, high = usual_times(apart, took, far[known])
    assert ((0.6 * low <= time[known]) & (time[known] <= 1.5 * high)).all()  # of the seeds alone, other trips are near


def test_stays_end_at_midnight_where_those_of_the_file_do(town):
    whole = diary(town, np.random.default_rng(1))
    many = (whole.end - 1) // DAY - whole.start // DAY + 1
    row = np.repeat(np.arange(len(whole)), many)
    day = whole.start[row] // DAY + np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
    people = whole.replace(
        user=whole.user[row], start=np.maximum(whole.start[row], day * DAY), place=whole.place[row],
        end=np.minimum(whole.end[row], (day + 1) * DAY),
    )  # fmt: skip
    for visits, over in ((whole, True), (people, False)):
        fakes = ew.generate_fakes(visits, rng=np.random.default_rng(2)).visits
        assert ((fakes.end - 1) // DAY > fakes.start // DAY).any() == over
        if not over:
            assert abs((fakes.end % DAY == 0).mean() - (visits.end % DAY == 0).mean()) < 0.03


def test_columns_that_cannot_be_made_are_said(town, tmp_path):
    made = calls(town, np.random.default_rng(1))
    frame = pd.DataFrame({"phone": made.user, "time": made.start.astype("datetime64[s]"), "tower": made.place})
    frame = frame.assign(type=np.where(made.start % 3, "call", "sms"), direction=np.where(made.start % 2, "in", "out"))
    ids = [str(i) for i in range(town.R)]
    towers = Locations(lat=town.locations.lat, lon=town.locations.lon, ids=ids)
    result = ew.synthesize(frame, tmp_path / "out", report=False, locations=towers)
    assert set(result.facts["read"]["left_out"]) == {"type", "direction"}
