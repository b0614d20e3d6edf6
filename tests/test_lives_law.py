"""The law of lives over days: kernels against their twins, floors of people, and lives that people would lead."""

from dataclasses import replace
from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pieces import PLAIN

import elsewhere as ew
from elsewhere.paper._generate_kernels import open_stream
from elsewhere.synthesis.walk import _hours_kernels as hours
from elsewhere.synthesis.walk import _lives_kernels as kernels
from elsewhere.synthesis.walk import _teach_kernels as teach
from elsewhere.synthesis.walk.lives import _cluster, _Days, _grid_of_places, _kind_mixes, _types_and_kinds, learn_lives
from elsewhere.data.visits import Locations

DAYS = 14
WEEKEND = (np.arange(DAYS) % 7) >= 5
KEY = np.array([5, 9], dtype=np.uint64)


def learn(traces, m_min=4, seed=2):
    day = traces.dates.astype("datetime64[D]").astype(np.int64)
    rows = traces.r.astype(np.int64), traces.user, day, (day + 3) % 7 >= 5, traces.minutes(), traces.step_minutes
    return learn_lives(*rows, traces.locations, m_min=m_min, rng=np.random.default_rng(seed))


@pytest.fixture(scope="module")
def town():
    return ew.simulate_town(users=8 if PLAIN else 80, days=DAYS, locations=60, rng=np.random.default_rng(8)).traces


@pytest.fixture(scope="module")
def lives(town):
    return learn(town)


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=12, max_size=12), min_size=1, max_size=4),
    st.integers(0, 3),
    st.integers(-1, 4),
)
def test_stays_are_those_of_the_definition(rows, longest_pass, main):
    r, out = np.array(rows), [np.empty(12 * len(rows), dtype=np.int64) for _ in range(4)]
    anchors = np.zeros(len(r), dtype=np.int64), np.full(len(r), main)
    n = teach.find_stays(r, *anchors, longest_pass, *out)
    expected = [(i, *stay) for i, row in enumerate(rows) for stay in naive.stays_of_day(row, 0, main, longest_pass)]

    assert expected == list(zip(*(x[:n].tolist() for x in out), strict=True))


def test_loss_of_choices_and_its_slope():
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 6, 7)
    first = np.append(0, np.cumsum(sizes))
    base, cols = rng.normal(size=first[-1]), rng.integers(0, 5, (first[-1], 3)).astype(np.int16)
    taken = rng.integers(0, sizes)
    theta, slope = rng.normal(size=5), np.empty(5)
    choices = [
        ([(base[p], cols[p].tolist()) for p in range(a, b)], int(c))
        for a, b, c in zip(first[:-1], first[1:], taken, strict=True)
    ]

    def loss(at):
        return teach.choice_loss(at, 0.7, base, cols, first, first[:-1] + taken, slope)

    assert loss(theta) == pytest.approx(naive.choice_loss(theta.tolist(), 0.7, choices), rel=1e-12)
    found = slope.copy()
    by_steps = [(loss(theta + step) - loss(theta - step)) / 2e-6 for step in 1e-6 * np.eye(5)]
    assert found == pytest.approx(by_steps, abs=1e-6)


@pytest.mark.parametrize("role", [0, 1, 2])
def test_diaries_are_those_of_the_twin(lives, role):
    L = len(lives.law.clock)
    roles, starts = np.empty(L + 1, dtype=np.int64), np.empty(L + 1, dtype=np.int64)
    for i in range(40):
        kind = i % len(lives.law.start)
        random = np.random.Generator(np.random.Philox(key=KEY, counter=np.array([0, i, 0, 0], dtype=np.uint64))).random
        out, fresh, dwell = naive.diary(lives.law, kind, role, 20, 1.3, False, random)
        n, new, last, lasted = kernels.draw_diary(
            lives.law, kind, role, 20, 1.3, False, open_stream(KEY, i, 0), roles, starts
        )

        assert out == list(zip(roles[:n].tolist(), starts[:n].tolist(), strict=True))
        assert (fresh, out[-1][0], dwell) == (new, last, lasted)


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.integers(1, 9), st.sampled_from([0, 1, 3]))
def test_own_hours_are_those_of_the_definition(seed, days, width):
    rng, L = np.random.default_rng(seed), 24
    part = np.arange(L) // 5

    def draw_diary():
        starts = np.append(0, np.sort(rng.choice(np.arange(1, L), rng.integers(0, 5), replace=False)))
        return rng.integers(0, 3, len(starts)), starts

    memory, cols = hours.new_hours(L), np.empty(hours.COLUMNS, dtype=np.int64)
    hours.remember_hours(memory, 0, L, 1, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    hours.clear_hours(memory)
    earlier = [draw_diary() for _ in range(days)]
    for roles, starts in earlier:
        hours.remember_hours(memory, 1, L, len(roles), roles, starts)
        hours.remember_hours(memory, 0, L, 1, roles, starts)  # days of the other kind count apart
    mine = draw_diary()
    hours.hours_columns(memory, part, width, 1, L, len(mine[0]), *mine, cols)
    pairs = [list(zip(*(x.tolist() for x in day), strict=True)) for day in (mine, *earlier)]

    assert cols.tolist() == naive.hours_columns(part, width, L, pairs[1:], pairs[0])
    assert cols.max() < hours.HOURS


def test_people_keep_their_own_hours():
    # everybody leaves at an hour of their own, give or take one slot, and is away for eight hours
    rng, people, L = np.random.default_rng(6), 60, 72
    leave = rng.integers(18, 42, people)[:, None] + rng.integers(-1, 2, (people, DAYS))
    away = (np.arange(L) >= leave[:, :, None]) & (np.arange(L) < leave[:, :, None] + 24)
    home, main = np.arange(people) % 6, 6 + np.arange(people) % 5
    r = np.where(away, main[:, None, None], home[:, None, None]).reshape(-1, L)
    locations, minutes = Locations(lat=46 + rng.random(11) / 9, lon=8 + rng.random(11) / 9), 20.0 * np.arange(L)
    days = np.repeat(np.arange(people), DAYS), np.tile(np.arange(DAYS), people), np.zeros(people * DAYS, bool)
    law = learn_lives(r, *days, minutes, 20.0, locations, m_min=4, rng=np.random.default_rng(1))
    without = replace(law, law=law.law._replace(hours=np.ones_like(law.law.hours)))

    def deviation(lives):  # of one person's departures
        moved = lives.draw(200, np.zeros(DAYS, bool), np.random.default_rng(3))
        moved = moved[:, :, 1:] != moved[:, :, :-1]
        return np.nanmean(np.nanstd(np.where(moved.any(axis=2), moved.argmax(axis=2), np.nan), axis=1))

    assert deviation(law) < 0.8 * deviation(without)


def test_lives_are_those_of_the_twin(lives):
    rng = np.random.default_rng(4)
    n, days = 6, 9
    mix = rng.dirichlet(np.full(len(lives.law.start), 0.5), (n, 2))
    home, main = rng.integers(0, 60, n), np.array([3, 3, -1, 40, 41, 42])
    main[main == home] = 7
    pace, out = rng.gamma(5, 0.2, n), np.empty((n, days, len(lives.law.clock)), dtype=np.int32)
    kernels.draw_lives(lives.law, mix, home, main, pace, WEEKEND[:days], 4, KEY, 2, out)
    for i in range(n):
        counter = np.array([0, 2 + i, 0, 0], dtype=np.uint64)
        random = np.random.Generator(np.random.Philox(key=KEY, counter=counter)).random
        twin = naive.life(lives.law, mix[i], int(home[i]), int(main[i]), pace[i], WEEKEND[:days], 4, random)

        assert np.array_equal(twin, out[i])


def test_lives_stay_on_the_map_and_follow_the_rng_alone(lives, town):
    some = lives.draw(30, WEEKEND, np.random.default_rng(1))
    again, others = (lives.draw(30, WEEKEND, np.random.default_rng(seed)) for seed in (1, 2))

    assert some.shape == (30, DAYS, town.L)
    assert some.dtype == np.int32
    assert set(np.unique(some)) <= set(np.unique(town.r))
    assert np.array_equal(some, again)
    assert not np.array_equal(some, others)
    assert lives.draw(0, WEEKEND, np.random.default_rng(1)).shape == (0, DAYS, town.L)


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(1, 40), st.sampled_from([(1.0, 1.0), (9.0, 0.2), (1.0, 0.0), (0.0, 0.0)]))
def test_places_on_the_way_are_found_by_squares(lives, seed, P, size):
    rng = np.random.default_rng(seed)
    xy, passed = rng.random((P, 2)) * size, np.flatnonzero(rng.random(P) < 0.7)
    law = lives.law._replace(xy=xy, **_grid_of_places(xy, passed))
    among = np.empty(P, dtype=np.int64)
    for _ in range(5):
        a, b = rng.integers(P, size=2)
        longest = float(np.hypot(*(xy[a] - xy[b])) + rng.random() * 2)
        found = among[: kernels.places_on_the_way(law, a, b, longest, among)]
        expected = [x for x in passed.tolist() if kernels.on_the_way(xy, a, b, x, longest)]
        assert found.tolist() == expected


def test_nights_are_at_home_and_days_go_on_where_they_ended(lives, town):
    n = 400
    drawn = lives.draw(n, WEEKEND, np.random.default_rng(6))
    night = town.minutes() < 360

    def at_home(days):  # share of each person's nights at the usual place of the night
        return np.array([np.bincount(r[:, night].ravel()).max() / r[:, night].size for r in days])

    real = at_home([town.r[town.user == u] for u in range(town.U)])
    fake = at_home(drawn)
    # both are means over people: the deviation of their difference, five times, and what 80 people can teach
    tolerance = 5 * np.sqrt(real.var() / len(real) + fake.var() / n)
    assert fake.mean() == pytest.approx(real.mean(), abs=tolerance)
    assert (drawn[:, 1:, 0] == drawn[:, :-1, -1]).mean() > 0.9


def people_with_one_secret_each(people=12, places=30):
    """Everybody lives, works and shops at shared places, and once a day goes to a place that nobody else has."""
    rows, user, day = [], [], []
    for u in range(people):
        for d in range(5):
            row = np.full(48, u % 3)
            row[18:34] = 3 + u % 2
            row[17] = row[20:23] = 10 + u  # on the way to work, and on a visit
            row[36:40] = 6 + (u + d) % 2
            rows.append(row)
            user.append(u)
            day.append(d)
    locations = Locations(lat=46 + np.arange(places) % 6 / 100, lon=8 + np.arange(places) // 6 / 100)
    return np.array(rows), np.array(user), np.array(day), locations


@pytest.mark.parametrize("m_min", [2, 4, 7])
def test_what_the_law_can_say_rests_on_enough_people(m_min):
    r, user, day, locations = people_with_one_secret_each()
    P = len(locations)
    minutes = np.arange(48) * 30.0
    lives = learn_lives(
        r, user, day, np.zeros(len(r), bool), minutes, 30.0, locations, m_min=m_min, rng=np.random.default_rng(0)
    )
    seen = np.array([len(set(user[(r == p).any(axis=1)])) for p in range(P)])
    rare = seen < m_min
    movers = {}
    for row, u in zip(r, user, strict=True):
        for a, b in pairwise(row):
            if a != b:
                movers.setdefault(int(a) * P + int(b), set()).add(int(u))
    told = [int(key) for key in lives.law.moves if key >= 0]

    assert not lives.law.popular[:, rare].any()
    assert not lives.law.passed[rare].any()
    assert not lives.home[rare].any()
    assert not lives.main[:, rare].any()
    assert all(len(movers[key]) >= m_min for key in told)
    assert m_min > 4 or told
    assert (lives.type_share * 12 >= min(m_min, 12) - 1e-9).all()
    assert not rare[np.unique(lives.draw(50, WEEKEND, np.random.default_rng(1)))].any()


def test_kinds_of_day_are_of_one_type_and_rest_on_enough_people():
    # forty people in two shifts, and few of the second have a weekend
    rng, L, m_min = np.random.default_rng(2), 72, 5
    who, day = np.repeat(np.arange(40), 14), np.tile(np.arange(14), 40)
    early = who % 2 == 0
    kept = (day % 7 < 5) | early | (who < 6)
    begin = np.where(early, 20, 40)[:, None] + rng.integers(-1, 2, (len(who), 1))
    away = (np.arange(L) >= begin) & (np.arange(L) < begin + 20)
    r = np.where(away & (day % 7 < 5)[:, None], 3, 0)[kept]
    who, day, weekend = who[kept], day[kept], day[kept] % 7 >= 5
    days = _Days(r, who, day, weekend, 20.0 * np.arange(L), 20.0, Locations(xy=rng.random((4, 2))), m_min)
    types, kind = _types_and_kinds(days, rng)
    use = np.zeros((40, 2, kind.max() + 1))
    np.add.at(use, (who, weekend.astype(int), kind), 1)
    mix, spread = _kind_mixes(use, types, m_min)

    assert len(set(zip(types[:40].tolist(), (np.arange(40) % 2).tolist(), strict=True))) == types.max() + 1 > 1
    for k in range(mix.shape[2]):
        assert len(np.unique(who[kind == k])) >= m_min
        assert len(np.unique(weekend[kind == k])) == 1
        assert weekend[kind == k].all() or len(np.unique(types[who[kind == k]])) == 1
    assert mix.sum(axis=2) == pytest.approx(np.ones((len(mix), 2)))
    for t in range(len(mix)):  # of their own days, if enough people have them, people use the kinds as often as they do
        mine = (types[who] == t) & ~weekend
        assert mix[t, 0] == pytest.approx(np.bincount(kind[mine], minlength=mix.shape[2]) / mine.sum())
        assert (spread[t] >= 1).all()


def test_people_arrive_elsewhere_and_leave_for_home_at_their_hours():
    # a trip of one cell to work and back: the diary knows the arrival there, and the departure for home
    r = np.array([[0] * 20 + [2] + [1] * 10 + [2] + [0] * 40])
    days = _Days(
        r, np.zeros(1, int), np.zeros(1, int), np.zeros(1, bool), 20.0 * np.arange(72), 20.0, Locations(n=3), 1
    )

    assert days.role.tolist() == [0, 1, 0]
    assert days.start.tolist() == [0, 21, 31]
    assert (days.left.tolist(), days.arrived.tolist()) == ([0, 20, 31], [0, 21, 32])
    assert [x.tolist() for x in days.trips] == [[1, 2], [20, 31]]


CASES = {
    "two people": {"people": 2, "m_min": 2},
    "nobody shares a place with so many": {"m_min": 1000},
    "nobody moves": {"still": True},
    "hours": {"L": 24},
    "five minutes": {"L": 288},
    "ten hours, no night": {"L": 30, "minutes": 540 + 20.0 * np.arange(30)},
    "all weekends": {"weekend": True},
    "no coordinates": {"coordinates": False},
    "two places": {"places": 2},
    "one place": {"places": 1},
    "4,000 places": {"places": 4000},
    "days with gaps, one for most": {"gaps": True},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_strange_files_still_give_lives(case):
    rng = np.random.default_rng(7)
    L, P, people = case.get("L", 72), case.get("places", 30), case.get("people", 25)
    r, user, day = [], [], []
    for u in range(people):
        home, main = rng.integers(0, min(P, 30), 2)
        days = np.arange(4)
        if "gaps" in case:
            days = np.sort(rng.choice(20, 8 if u % 5 == 0 else 1, replace=False))
        for d in days:
            row = np.full(L, home)
            if "still" not in case:
                a, b = np.sort(rng.integers(0, L, 2))
                row[a:b] = main
                row[b : b + int(rng.integers(1, 4))] = rng.integers(0, min(P, 30))
            r.append(row)
            user.append(u)
            day.append(d)
    xy = 0.1 * rng.random((2, P))
    locations = Locations(lat=46 + xy[0], lon=8 + xy[1]) if case.get("coordinates", True) else Locations(n=P)
    minutes = case.get("minutes", np.arange(L) * 1440.0 / L)
    r = np.array(r)
    lives = learn_lives(
        r,
        np.array(user),
        np.array(day),
        np.full(len(r), case.get("weekend", False)),
        minutes,
        float(minutes[1]) - float(minutes[0]),
        locations,
        m_min=case.get("m_min", 3),
        rng=rng,
    )
    drawn = lives.draw(20, WEEKEND, np.random.default_rng(1))
    moves, real = (drawn[:, :, 1:] != drawn[:, :, :-1]).sum(axis=2).mean(), (r[:, 1:] != r[:, :-1]).sum(axis=1).mean()

    assert drawn.min() >= 0
    assert drawn.max() < P
    assert all(np.isfinite(table).all() for table in lives.law)
    if case.get("m_min", 3) == 3 and real > 0:
        assert 0.4 * real < moves < 2 * real
    if "still" in case:
        assert moves == 0


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.integers(1, 9), st.lists(st.booleans(), min_size=1, max_size=10))
def test_any_calendar_gives_whole_lives(lives, seed, n, calendar):
    drawn = lives.draw(n, np.array(calendar), np.random.default_rng(seed))

    assert drawn.shape[:2] == (n, len(calendar))
    assert drawn.min() >= 0
    assert drawn.max() < len(lives.home)


@pytest.mark.parametrize(("m_min", "labels"), [(1, 2), (2, 1), (9, 1)])
def test_clusters_of_few_people_join_another(m_min, labels):
    rows, who = np.array([[0.0], [0.1], [0.2], [9.0], [9.1]]), np.array([0, 1, 2, 3, 3])

    assert len(np.unique(_cluster(rows, 2, who, m_min, np.random.default_rng(0)))) == labels


def test_diaries_are_chosen_among_many(lives):
    # a factor on what was hardly ever rehearsed must not decide which diary is taken
    for kind in range(len(lives.law.start)):
        told = np.empty((3000, 4), dtype=np.int64)
        teach.draw_diary_columns(
            lives.law, kind, np.random.default_rng(1).choice(3, 3000, p=lives.law.start[kind]), KEY, told
        )
        weight = lives.law.like[kind, told].prod(axis=1)
        assert weight.sum() ** 2 / (weight**2).sum() > 0.05 * len(weight)


def test_main_places_are_drawn_by_the_definition(lives):
    rng, P = np.random.default_rng(12), len(lives.home)
    types, home, u = rng.integers(3, size=200), rng.integers(P, size=200), rng.random(200)
    weight, reach = (rng.random((3, table.shape[1])) for table in (lives.main, lives.main_reach))
    weight[0] = 0.0  # a type without any
    out = np.empty(200, dtype=np.int64)
    kernels.draw_main_places(lives.law, weight, reach, types, home, u, out)
    expected = [
        naive.main_place(lives.law, weight[t].tolist(), reach[t].tolist(), int(h), float(x))
        for t, h, x in zip(types, home, u, strict=True)
    ]
    assert out.tolist() == expected
    assert (out == -1).any()
    assert (out >= 0).any()


@pytest.mark.parametrize("number", range(8))
def test_how_people_differ_in_their_kinds_of_day_is_that_of_the_definition(number):
    draws = np.random.default_rng(number)
    share = draws.dirichlet(np.full(5, [0.2, 1, 4, 20][number % 4]), 12)
    use = np.stack([[draws.multinomial(14, own), draws.multinomial(6, own)] for own in share]).astype(float)
    types = np.repeat([0, 1], 6)
    mix, spread = _kind_mixes(use, types, m_min=3)
    grid = [1, 2, 3, 5, 8, 12, 20, 35, 60, 120, 300.0]
    for t in (0, 1):
        for off in (0, 1):
            own = use[types == t, off]
            np.testing.assert_allclose(mix[t, off], own.sum(axis=0) / own.sum())
            assert spread[t, off] == naive.concentration(own.tolist(), grid)
