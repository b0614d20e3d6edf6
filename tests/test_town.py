"""The simulated town: the same from the same rng, and its people live by the clock."""

import tracemalloc

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import elsewhere as ew
from elsewhere.data import _data_kernels as kernels
from elsewhere.data import town as module

HOME, WORK, SCHOOL, SHOP, LEISURE, ROAD = range(6)
ALPHA = 1e-6


def simulate(users, *, seed=1, **options):
    return ew.simulate_town(users=users, rng=np.random.default_rng(seed), **options)


@pytest.fixture(scope="module")
def week():
    """A thousand people from Monday to Sunday."""
    return simulate(1000, days=7)


def at_hour(town, hour, *, days=range(7), habits=None):
    """Share of each class at a full hour, on these days of a seven-day town, among these habits."""
    rows = np.isin(np.arange(len(town.traces)) % 7, list(days))
    if habits is not None:
        rows &= np.isin(town.habit[town.traces.user], [town.habit_names.index(h) for h in habits])
    return np.bincount(town.truth[town.traces.r[rows, 3 * hour]], minlength=6) / rows.sum()


def stays(town):
    """Class and length in slots of every uninterrupted stay."""
    r = town.traces.r
    new = np.ones(r.shape, dtype=bool)
    new[:, 1:] = r[:, 1:] != r[:, :-1]
    begin = np.flatnonzero(new.ravel())
    return town.truth[r.ravel()[begin]], np.diff(np.append(begin, r.size))


def same(a, b):
    return (
        a.traces.r.tobytes() == b.traces.r.tobytes()
        and a.traces.locations == b.traces.locations
        and np.array_equal(a.truth, b.truth)
        and np.array_equal(a.habit, b.habit)
    )


class TestDeterminism:
    def test_same_rng_same_bytes(self):
        assert same(simulate(50, days=3), simulate(50, days=3))
        assert not same(simulate(50, days=3), simulate(50, days=3, seed=2))

    def test_blocks_leave_no_mark(self, monkeypatch):
        whole = simulate(40, days=2)
        for block in (1, 1000, 3001):
            monkeypatch.setattr(module, "BLOCK", block)
            assert same(simulate(40, days=2), whole)

    def test_first_users_of_a_larger_town(self):
        small, large = simulate(7, days=2), simulate(20, days=2)
        assert np.array_equal(small.traces.r, large.traces.r[:14])
        assert np.array_equal(small.truth, large.truth)


class TestShape:
    @settings(deadline=None, max_examples=40)
    @given(
        users=st.integers(1, 6),
        days=st.integers(1, 9),
        locations=st.integers(6, 90),
        seed=st.integers(0, 2**32),
    )
    def test_any_size(self, users, days, locations, seed):
        town = simulate(users, days=days, locations=locations, seed=seed)
        t = town.traces
        assert t.r.shape == (users * days, 72)
        assert t.r.dtype == np.int32
        assert t.r.min() >= 0
        assert t.r.max() < locations == t.R
        assert t.users.tolist() == np.repeat(np.arange(users), days).tolist()
        assert t.dates.reshape(users, days)[-1].tolist() == (module.FIRST_DAY + np.arange(days)).tolist()
        assert (t.start, t.tz, t.step_minutes) == ("00:00", "UTC", 20)
        assert town.truth.shape == (locations,)
        assert set(town.truth.tolist()) == set(range(6))
        assert town.class_names == ("home", "work", "school", "shop", "leisure", "road")
        assert len(np.unique(t.locations.planar(), axis=0)) == locations
        assert not any(array.flags.writeable for array in (t.r, town.truth, town.habit))

    def test_first_day_is_a_monday(self):
        assert module.FIRST_DAY.astype(object).weekday() == 0

    def test_tables_are_distributions(self):
        assert sum(c.share for c in module.CLASSES.values()) == pytest.approx(1)
        assert sum(h.share for h in module.HABITS.values()) == pytest.approx(1)
        for habit in module.HABITS.values():
            assert [sum(part.values()) for part in habit.days] == pytest.approx([1, 1, 1])
            assert set().union(*habit.days) <= set(module.KINDS_OF_DAY)

    def test_town_has_a_centre(self):
        town = simulate(1, locations=2000)
        off = np.hypot(*town.traces.locations.planar().T - town.traces.locations.planar().mean(axis=0)[:, None])
        mean = [off[town.truth == c].mean() for c in range(6)]
        assert max(mean[WORK], mean[SHOP], mean[LEISURE]) < mean[SCHOOL] < mean[HOME]
        assert np.bincount(town.truth)[1:] == pytest.approx([340, 100, 240, 200, 280], abs=2)

    @pytest.mark.parametrize(("locations", "radius"), [(400, 12), (6400, 24)])
    def test_more_places_are_a_larger_town_and_a_finer_map(self, locations, radius):
        planar = simulate(1, locations=locations).traces.locations.planar()
        assert np.ptp(planar, axis=0) / 2 == pytest.approx([radius, radius], rel=0.06)

    def test_roads_lie_on_arteries(self):
        ground = module._lay_out(2000, np.random.default_rng(2))
        at = np.rint(ground.streets.xy / ground.streets.cell)
        assert (at[ground.truth == ROAD] % 8 == 0).any(axis=1).all()

    def test_large_map(self):
        town = simulate(500, locations=20_000)
        assert len(np.unique(town.traces.r)) > 2000


class TestKernel:
    def test_one_commuter_by_hand(self):
        # home at 0, workplace 10 km east, a road half way: 4 + 3 x 10 = 34 minutes from door to door
        streets = kernels.Streets(np.array([[0.0, 0.0], [10.0, 0.0], [5.0, 0.0]]), np.full((3, 3), 2, np.int32), 1.0)
        columns = ([1], [1], [1.0], [540.0], [60.0], [480.0])
        diaries = kernels.Diaries(np.ones((1, 3, 1)), np.array([0, 1]), *map(np.array, columns))
        people = kernels.People(
            np.array([0]), np.array([[0, 1]], np.int32), np.array([0.0]), np.array([1.0]), np.array([3.0])
        )
        out = np.full((1, 72), -9, dtype=np.int32)
        kernels.live(streets, diaries, people, np.full((1, 2, 5), 0.5), 20.0, out)
        # leaves at 08:26, works from 09:00 to 17:00, is home at 17:34
        expected = [0] * 26 + [2] + [1] * 24 + [2, 2] + [0] * 19
        assert out[0].tolist() == expected

    @pytest.mark.parametrize(("locations", "step"), [(6, 20), (60, 5), (400, 20)])
    def test_equals_the_slow_twin(self, locations, step):
        rng, n, days = np.random.default_rng(locations), 40, 8
        ground, diaries = module._lay_out(locations, rng), module._diaries()
        people = module._settle(ground, rng.random((n, module.DRAWS_PER_PERSON)))
        u = rng.random((n, days + 1, module.DRAWS_PER_DAY))
        out = np.empty((n, days * 1440 // step), dtype=np.int32)
        kernels.live(ground.streets, diaries, people, u, float(step), out)
        rows = list(zip(*(column.tolist() for column in diaries[2:]), strict=True))
        kinds = [rows[a:b] for a, b in zip(diaries.first[:-1], diaries.first[1:], strict=True)]
        streets = (ground.streets.xy.tolist(), ground.streets.road.tolist(), ground.streets.cell)
        for i in range(n):
            person = (people.keep[i].tolist(), people.late[i], people.outgoing[i], people.pace[i])
            diary = (diaries.cdf[people.habit[i]].tolist(), kinds)
            ref = naive.town_life(streets, diary, person, u[i].tolist(), step=step, slots=out.shape[1])
            assert out[i].tolist() == ref

    def test_diaries_are_the_tables(self):
        diaries = module._diaries()
        b = list(module.KINDS_OF_DAY).index("night")
        last = diaries.first[b + 1] - 1
        assert (diaries.keep[last], diaries.choice[last]) == (1, 1)
        assert (diaries.chance[last], diaries.hour[last], diaries.hours[last]) == pytest.approx((1, 21.9 * 60, 480))
        habit = list(module.HABITS).index("night")
        assert diaries.cdf[habit, 0, b] - diaries.cdf[habit, 0, b - 1] == pytest.approx(0.8)


class TestPeople:
    def test_habits_and_homes_have_their_shares(self):
        rng = np.random.default_rng(5)
        ground, n = module._lay_out(400, rng), 100_000
        people = module._settle(ground, rng.random((n, module.DRAWS_PER_PERSON)))

        def surprise(observed, share):
            return ((observed - n * share) ** 2 / (n * share)).sum()

        share = np.array([h.share for h in module.HABITS.values()])
        assert surprise(np.bincount(people.habit, minlength=len(share)), share) < chi2.isf(ALPHA, len(share) - 1)
        live = np.diff(ground.inhabitants, prepend=0)
        homes = np.flatnonzero(ground.truth == HOME)
        assert live[homes].sum() == pytest.approx(1)
        observed = np.bincount(people.keep[:, 0], minlength=400)[homes]
        assert surprise(observed, live[homes]) < chi2.isf(ALPHA, len(homes) - 1)

    def test_places_kept_are_of_the_wished_class(self):
        rng = np.random.default_rng(6)
        ground = module._lay_out(400, rng)
        people = module._settle(ground, rng.random((2000, module.DRAWS_PER_PERSON)))
        classes, names = ground.truth[people.keep], list(module.CLASSES)
        for f, name in enumerate(module.PLACES_KEPT[2:], start=2):
            assert set(classes[:, f]) == {names.index(module.KEEPS[name].kind)}
        for h, habit in enumerate(module.HABITS.values()):
            assert set(classes[people.habit == h, 1]) == {names.index(module.ANCHORS[habit.anchor].kind)}

    def test_each_choice_has_draws_of_its_own(self):
        rng = np.random.default_rng(8)
        ground = module._lay_out(400, rng)
        u = rng.random((3000, module.DRAWS_PER_PERSON))
        before = module._settle(ground, u)

        def touched(columns):
            other = u.copy()
            other[:, columns] = rng.random(other[:, columns].shape)
            after = module._settle(ground, other)
            return set(np.flatnonzero((after.keep != before.keep).any(axis=0)))

        last = len(module.PLACES_KEPT) - 1
        around_anchor = {f for f in range(2, last + 1) if module.KEEPS[module.PLACES_KEPT[f]].around == "anchor"}
        assert touched([0]) == {1} | around_anchor  # another habit, another anchor, the same home
        assert touched([1]) == set(range(last + 1))
        assert touched([2, 3, 4]) == set()
        assert touched([5, 6, 7]) == {1} | around_anchor
        for f in range(2, last + 1):
            assert touched([2 + 3 * f, 3 + 3 * f, 4 + 3 * f]) == {f}

    @pytest.mark.parametrize("purpose", module.WISHES)
    def test_choice_by_hand(self, purpose):
        # no distance: the point is the pulled origin; the lowest number takes the nearest place, the highest the kth
        ground, wish = module._lay_out(400, np.random.default_rng(9)), module.WISHES[purpose]
        xy, cell = ground.streets.xy, ground.streets.cell
        origin = np.arange(400, dtype=np.int32)
        keep = np.stack([origin, origin], axis=1)
        near, far = (
            module._choose(ground, purpose, keep, np.tile([0.0, 0.3, pick], (400, 1))) for pick in (0.0, 1 - 1e-12)
        )
        candidates = np.flatnonzero(ground.truth == list(module.CLASSES).index(wish.kind))
        for r in range(400):
            point = cell * np.rint(wish.pull * xy[r] / cell)
            order = candidates[np.argsort(np.hypot(*(xy[candidates] - point).T))]
            assert (near[r], far[r]) == (order[0], order[7])

    def test_errands_are_run_near_home(self):
        rng = np.random.default_rng(7)
        ground = module._lay_out(2000, rng)
        people = module._settle(ground, rng.random((2000, module.DRAWS_PER_PERSON)))
        xy = ground.streets.xy

        def km(column):
            return np.median(np.hypot(*(xy[people.keep[:, column]] - xy[people.keep[:, 0]]).T))

        any_shop = rng.choice(np.flatnonzero(ground.truth == SHOP), 2000)
        somewhere = np.median(np.hypot(*(xy[any_shop] - xy[people.keep[:, 0]]).T))
        assert km(module.PLACES_KEPT.index("errand")) < km(1) < somewhere


class TestClock:
    def test_at_night_people_sleep_at_home(self, week):
        assert at_hour(week, 3)[HOME] > 0.93

    def test_by_day_they_work_and_learn(self, week):
        weekdays = range(5)
        now = at_hour(week, 11, days=weekdays)
        assert now[WORK] + now[SCHOOL] > 0.5
        assert at_hour(week, 11, days=weekdays, habits=["office"])[WORK] > 0.75
        assert at_hour(week, 11, days=weekdays, habits=["pupil"])[SCHOOL] > 0.9

    def test_lunch_and_rush_hours(self, week):
        office = {hour: at_hour(week, hour, days=range(5), habits=["office"]) for hour in (8, 10, 13, 15, 20)}
        assert office[13][LEISURE] > 5 * office[10][LEISURE]
        assert office[8][ROAD] > 4 * office[15][ROAD]
        assert office[20][LEISURE] > office[15][LEISURE]

    def test_nights_at_work_begin_before_the_first_midnight(self, week):
        # Sunday night of the day before the first counts: 0.7 of the night workers, give or take
        number = (week.habit == week.habit_names.index("night")).sum()
        assert at_hour(week, 3, days=[0], habits=["night"])[WORK] == pytest.approx(0.7, abs=5 * np.sqrt(0.21 / number))
        assert at_hour(week, 11, days=range(5), habits=["night"])[WORK] == 0
        late = week.traces.r.reshape(1000, -1)
        change = (late[:, 1:] != late[:, :-1]).mean(axis=0).reshape(-1)
        midnight = change[71::72].mean()
        assert midnight < 0.08
        assert midnight <= change[70::72].mean()

    def test_weekend_differs(self, week):
        assert at_hour(week, 11, days=[6])[WORK] < 0.1 < at_hour(week, 11, days=range(5))[WORK]
        assert at_hour(week, 11, days=[5, 6])[SCHOOL] == 0
        assert at_hour(week, 22, days=[5])[LEISURE] > 2 * at_hour(week, 22, days=range(4))[LEISURE]
        assert at_hour(week, 11, days=[5])[SHOP] > 1.5 * at_hour(week, 11, days=range(5))[SHOP]

    def test_habits_differ(self, week):
        share = {
            name: np.bincount(week.truth[week.traces.r[week.habit[week.traces.user] == h]].ravel(), minlength=6)
            for h, name in enumerate(week.habit_names)
        }
        share = {name: count / count.sum() for name, count in share.items()}
        assert share["retired"][WORK] == 0
        assert share["retired"][HOME] > share["part-time"][HOME] > share["office"][HOME]
        assert share["office"][WORK] > 0.15 > share["part-time"][WORK] > 0.04
        assert share["pupil"][SCHOOL] > 0.15
        assert share["shop"][SHOP] > 5 * share["office"][SHOP]
        assert at_hour(week, 7, habits=["shift"])[WORK] > 5 * at_hour(week, 7, habits=["office"])[WORK]


class TestFigures:
    def test_dwell_by_class(self, week):
        kind, length = stays(week)
        median = [np.median(length[kind == c]) for c in range(6)]
        assert np.mean(length[kind == ROAD] == 1) > 0.95
        assert median[HOME] > median[WORK] > median[LEISURE] > median[SHOP] > median[ROAD]
        assert median[SCHOOL] > median[LEISURE]

    def test_places_and_moves_per_day(self, week):
        r = week.traces.r
        moves = (r[:, 1:] != r[:, :-1]).sum(axis=1)
        places = np.array([len(set(row)) for row in r.tolist()])
        assert 6 < moves.mean() < 11
        assert 5 < places.mean() < 9
        assert np.percentile(moves, 99) <= 20
        assert np.percentile(places, 99) <= 15
        assert np.mean(moves == 0) < 0.06
        # days of one person share places: home at least, mostly the anchor too
        per_week = [len(np.unique(rows)) for rows in r.reshape(1000, -1)]
        assert np.mean(per_week) < 0.7 * places.reshape(1000, 7).sum(axis=1).mean()

    def test_trips_do_not_jump(self, week):
        r = week.traces.r
        km = week.traces.locations.distance(r[:, 1:], r[:, :-1])
        # twenty minutes at town speed, and the way to the nearest road
        assert np.percentile(km[km > 0], 99) < 11
        assert km.max() < 18

    def test_apart_in_place_alike_in_habit(self):
        # fig:real-gs-similarity: geographic similarity piles up near 0, semantic similarity near 1
        town = simulate(200, seed=3)
        pi = np.stack([np.bincount(row, minlength=400) / 72 for row in town.traces.r])
        ranked = -np.sort(-pi, axis=1)
        pairs = np.triu_indices(200, 1)
        sim_g = np.minimum(pi[pairs[0]], pi[pairs[1]]).sum(axis=1)
        sim_s = np.minimum(ranked[pairs[0]], ranked[pairs[1]]).sum(axis=1)
        assert np.mean(sim_g < 0.1) > 0.9
        assert 0.65 < sim_s.mean() < 0.9
        assert 0.05 < sim_s.std() < 0.2

    def test_classes_can_be_told_by_the_clock_but_not_by_the_map(self):
        from sklearn.cluster import KMeans
        from sklearn.metrics import adjusted_mutual_info_score

        town = simulate(3000)
        r = town.traces.r
        hours = np.zeros((400, 24))
        np.add.at(hours, (r, np.arange(72) // 3), 1)
        seen = hours.sum(axis=1) > 0

        def agreement(features):
            label = KMeans(10, n_init=3, random_state=0).fit_predict(features[seen])
            return adjusted_mutual_info_score(town.truth[seen], label)

        assert seen.mean() > 0.95
        # as in life, not caricatures: places of one class differ, too
        assert 0.5 < agreement(hours / np.maximum(1, hours.sum(axis=1, keepdims=True))) < 0.95
        assert agreement(town.traces.locations.planar()) < 0.15


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("users", 0),
            ("users", -3),
            ("users", 2.5),
            ("users", True),
            ("users", "ten"),
            ("users", None),
            ("users", 10**18),
            ("days", 0),
            ("days", 1.0),
            ("locations", 5),
            ("locations", 0),
            ("rng", None),
            ("rng", 42),
            ("rng", np.random.RandomState(1)),
        ],
    )
    def test_bad_parameter_is_named(self, name, value):
        options = {"users": 5, "rng": np.random.default_rng(1)} | {name: value}
        with pytest.raises(ew.errors.InvalidParameter, match=f"`{name}`") as caught:
            ew.simulate_town(**options)
        assert caught.value.code == "E_PARAM"

    def test_rng_has_no_default(self):
        with pytest.raises(TypeError, match="rng"):
            ew.simulate_town(users=5)


def test_work_arrays_do_not_grow_with_the_town(monkeypatch):
    monkeypatch.setattr(module, "Traces", lambda r, *_, **__: r)
    simulate(10)

    def work(users):
        tracemalloc.start()
        output = simulate(users).traces.nbytes
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak - output

    small, large = work(30_000), work(90_000)
    # labels, dates and habits are 100 bytes a user; all random numbers at once would be 1 kB a user
    assert large - small < 60_000 * 100 + 1_000_000
    assert large < 60e6
