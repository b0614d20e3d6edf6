"""Fakes that live as many days as their seeds: people over a calendar, tests on whole lives, publishing, links."""

from types import SimpleNamespace

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.paper.privacy_test import PrivacyTest
from elsewhere.run.generate import _note_limits
from elsewhere.run.public_map import PublicMap, weekdays
from elsewhere.run.publish import links_file, publish_with_rows, read_links
from elsewhere.settings import RELAXED, preset_of
from elsewhere.data.slots import People, is_weekend, shared_days

pytestmark = pytest.mark.usefixtures("few_draws")
SMALL = {"kappa": 5, "k": 3, "m_min": 2, "c_min": 1, "class_draws": 1}


def rng(number=1):
    return np.random.default_rng(number)


@pytest.fixture(scope="module")
def town():
    return ew.simulate_town(users=36, days=8, locations=70, rng=rng(3)).traces


@pytest.fixture(scope="module")
def fakes(town):
    return ew.generate_fakes(town, rng=rng(2), per_seed=2, **SMALL)


@st.composite
def diaries(draw):
    days = draw(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=5, unique=True), min_size=1, max_size=5))
    rows = [(person, day) for person, own in enumerate(days) for day in own]
    return draw(st.permutations(rows)), draw(st.integers(1, 3))


@given(diaries())
@settings(max_examples=150, deadline=None)
def test_days_of_people_are_placed_as_defined(case):
    rows, m_min = case
    traces = ew.Traces(
        np.arange(len(rows))[:, None],
        ew.Locations(n=len(rows)),
        users=[p for p, _ in rows],
        dates=np.datetime64("2024-01-01") + np.array([d for _, d in rows]),
    )
    people = People.of(traces, m_min=m_min)
    first = int(np.datetime64("2024-01-01").astype(int))
    expected = naive.calendar_days([(p, first + d, i) for i, (p, d) in enumerate(rows)], m_min)
    assert people.day.tolist() == expected
    flat = people.places(traces.r)
    for row, day in enumerate(expected):
        assert flat[traces.user[row], day] == row
    assert (flat >= 0).sum() == len(rows)


@given(diaries(), st.integers(0, 9))
@settings(max_examples=100, deadline=None)
def test_days_are_dealt_out_among_people_of_a_sort(case, number):
    rows, m_min = case
    traces = ew.Traces(
        np.zeros((len(rows), 1), dtype=int),
        ew.Locations(n=1),
        users=[p for p, _ in rows],
        dates=np.datetime64("2024-01-01") + np.array([d for _, d in rows]),
    )
    people = People.of(traces, m_min=m_min)
    has, dealt = people.rows >= 0, people.draw_days(rng(number), m_min)

    def sort(days):
        off = sum(days & people.weekend) / sum(days)
        return 0 if off < 0.1 else 1 if off > 0.9 else 2

    sorts = [sort(days) for days in has]
    sorts = [2 if sorts.count(s) < m_min else s for s in sorts]
    if 0 < sorts.count(2) < m_min:
        sorts = [2] * len(sorts)
    for person, days in enumerate(dealt):
        assert sorts[person] in (sort(days), 2)
    for kind in set(sorts):  # what is dealt out within a sort
        mine = [person for person, own in enumerate(sorts) if own == kind]
        expected = naive.shared_days(has[mine].tolist(), people.weekend.tolist(), m_min)
        assert sorted(map(tuple, dealt[mine].tolist())) == sorted(map(tuple, expected))
        assert min(expected.count(days) for days in expected) >= min(m_min, len(mine))
    person, day = np.nonzero(dealt)
    for p, d, row in zip(person, day, people.nearest_rows(person, day), strict=True):
        assert traces.user[row] == p
        mine = np.flatnonzero(has[p])
        alike = [x for x in mine if people.weekend[x] == people.weekend[d]] or mine.tolist()
        assert abs(people.day[row] - d) == min(abs(x - d) for x in alike)


@pytest.mark.parametrize("days", [40, 1])
def test_days_that_nobody_else_has_are_on_no_fake(days):
    has = np.zeros((21, 54), dtype=bool)
    has[:20, :5] = True
    has[20, :days] = True
    weekend = np.arange(54) % 7 >= 5
    assert shared_days(has, weekend, 5).sum(axis=1).tolist() == [5] * 21
    # where all differ, groups of people with about as many days share their number
    has[:] = np.arange(54) < np.arange(20, 41)[:, None]
    lengths = np.bincount(shared_days(has, weekend, 5).sum(axis=1))
    assert lengths[lengths > 0].min() >= 5
    assert np.count_nonzero(lengths) == 4


def test_everyone_alone_is_everyone_with_one_day(town):
    people = People.of(town, alone=True)
    assert people.days == 1
    assert np.array_equal(people.places(town.r), town.r)


def test_a_life_is_tested_as_one_person():
    # the seed lives at 0 and 1, its fakes elsewhere; places are counted over all days
    places = ew.Locations(n=12)
    seed = ew.Traces([[0, 0], [0, 1]], places, users=["s", "s"], dates=["2024-01-01", "2024-01-02"], step_minutes=720)
    others = [[2, 3], [2, 4], [0, 3], [5, 5], [6, 7], [6, 1]]
    alternates = ew.Traces(
        others, places, users=list("aabbcc"), dates=["2024-01-01", "2024-01-02"] * 3, step_minutes=720
    )
    test = PrivacyTest.prepare(seed, alternates, par_s=1.0, par_d=1.0, k=2, people=People.of(seed), relaxed=RELAXED)
    # a shares no place with the seed, b and c one: half of the strangers share at most one
    assert test.prepared.seeds.limit.tolist() == [1]
    shared = [test([fake], [0])[0] for fake in ([8, 8, 9, 9], [8, 0, 9, 9], [1, 8, 0, 9])]
    assert [v.shared for v in shared] == [0, 1, 2]
    assert [v.passed for v in shared] == [True, True, False]
    strict = PrivacyTest.prepare(seed, None, par_s=1.0, k=1, people=People.of(seed), relaxed=RELAXED)
    assert strict.prepared.seeds.limit.tolist() == [0]


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_on_one_day_a_fake_may_share_what_the_strangers_who_share_least_do(number):
    rng = np.random.default_rng(number)
    seeds, others = (
        ew.Traces(rng.integers(0, 9, (n, 8)), ew.Locations(n=9), users=[f"{name}{i}" for i in range(n)])
        for name, n in (("s", 5), ("a", 41))
    )
    test = PrivacyTest.prepare(seeds, others, par_i=1, k=1, people=People.of(seeds), relaxed=RELAXED)
    expected = naive.least_shared(seeds.r.tolist(), others.r.tolist(), 0.05)
    assert test.prepared.seeds.limit.tolist() == [max(1, n) for n in expected]
    alike = naive.least_similar(seeds.r.tolist(), others.r.tolist(), 0.05)
    assert test.prepared.seeds.par_s.tolist() == pytest.approx([max(0.1, sim if sim <= 0.9 else 0) for sim in alike])
    # by itself, the rule is that of the paper
    by_itself = PrivacyTest.prepare(seeds, others, par_i=1, k=1).prepared.seeds
    assert (by_itself.limit.tolist(), by_itself.par_s.tolist()) == ([1] * 5, [0.1] * 5)


def doors(people=60):
    """Everybody's nights are at the entrance, two thirds of the day: any two people have that in common."""
    draw = rng(4)
    day = np.zeros((people, 24), dtype=int)
    day[:, 16:] = np.repeat(draw.integers(1, 12, (people, 4)), 2, axis=1)
    return ew.Traces(day, ew.Locations(n=12), users=[f"p{i}" for i in range(people)], step_minutes=60)


def test_a_limit_that_is_given_is_kept_and_fakes_beyond_the_usual_one_are_counted():
    few = {"kappa": 2, "k": 2, "m_min": 2, "c_min": 1, "class_draws": 1, "against": "own", "rng": rng(1)}
    usual = ew.generate_fakes(doors(), **few)
    alike, crossed = ((usual.verdicts.sim > 0.1), (usual.verdicts.shared > 0))
    assert alike.any()
    assert any(f"{alike.sum()} of {len(usual)} fakes are more similar" in note for note in usual.notes)
    assert any(f"{crossed.sum()} of {len(usual)} fakes share more places" in note for note in usual.notes)
    for given_limit in ({"par_s": 0.1}, {"par_i": 0}):
        with pytest.raises(ew.ElsewhereError) as caught:  # everybody's fake would have the entrance in common
            ew.generate_fakes(doors(), **few, **given_limit)
        assert caught.value.code == "E_NOTHING_PASSED"
    loose = ew.generate_fakes(doors(), **few, par_s=0.8, par_i=3)
    assert loose.verdicts.sim.max() <= 0.8
    assert loose.verdicts.shared.max() <= 3
    assert loose.notes == tuple(note for note in usual.notes if "par_" not in note)


def test_fakes_beyond_a_limit_are_counted_once_each_and_few_of_them_not_in_public():
    lives, preset = np.repeat(np.arange(20), 2), preset_of("product", par_i=1, par_s=0.3)
    sim, shared = np.where(lives < 7, 0.4, 0.3), np.where((lives > 4) & (lives < 9), 2, 1)
    of_days = SimpleNamespace(sim=sim, shared=shared)
    learnt = SimpleNamespace(preset=preset, classes=SimpleNamespace(kappa=5))
    crossed, alike = _note_limits(of_days, lives, learnt, several=False)
    assert crossed.startswith("fewer than 5 of 20 fakes share more places with their seed than `par_i` = 1,")
    assert alike.startswith("7 of 20 fakes are more similar to their seed than `par_s` = 0.3,")
    assert _note_limits(of_days, lives, learnt, several=True) == [alike]
    assert _note_limits(SimpleNamespace(sim=sim / 2, shared=shared - 1), lives, learnt, several=False) == []


def test_which_limits_rise_is_written_down():
    product = preset_of("product")
    assert product.relaxed == RELAXED
    assert preset_of("product", par_s=0.1).relaxed == ("par_i",)
    assert preset_of("product", par_s=0.1).changed(par_i=0).relaxed == ()
    for preset in (product, preset_of("product", par_s=0.2)):
        assert type(preset).of_file(preset.to_file()) == preset
    with pytest.raises(ew.ElsewhereError, match="relaxed"):
        preset_of("product", relaxed=("k",))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_what_strangers_share_is_counted_by_the_definition(data):
    R, days = 6, 2
    sides = [
        data.draw(st.lists(st.lists(st.integers(0, R - 1), min_size=6, max_size=6), min_size=1, max_size=7))
        for _ in range(2)
    ]
    seeds, others = (
        ew.Traces(
            np.array(side).reshape(-1, 3),
            ew.Locations(n=R),
            users=[f"{name}{i}" for i in range(len(side)) for _ in range(days)],
            dates=["2024-01-01", "2024-01-02"] * len(side),
            step_minutes=480,
        )
        for name, side in zip("sa", sides, strict=True)
    )
    test = PrivacyTest.prepare(seeds, others, par_i=1, k=1, people=People.of(seeds), relaxed=RELAXED)
    assert test.prepared.seeds.limit.tolist() == [max(1, n) for n in naive.least_shared(*sides, 0.5)]
    alike = naive.least_similar(*sides, 0.05)
    assert test.prepared.seeds.par_s.tolist() == pytest.approx([max(0.1, sim if sim <= 0.9 else 0) for sim in alike])


def test_a_fake_lives_the_days_of_its_seed(town, fakes):
    assert fakes.people == 2 * len(np.unique(town.user[fakes.seed]))
    for life in range(fakes.people):
        mine = fakes.life == life
        assert len(np.unique(town.user[fakes.seed[mine]])) == 1
        assert mine.sum() == 8
        assert np.array_equal(fakes.weekend[mine], is_weekend(town.dates)[fakes.seed[mine]])
        assert (np.diff(fakes.day[mine]) > 0).all()
    assert (fakes.r >= 0).all()
    assert np.array_equal(fakes.weekend, fakes.day % 7 >= 5)


def test_the_rules_hold_over_all_days(town, fakes):
    roles = fakes.learnt
    for life in range(fakes.people):
        mine = fakes.life == life
        fake, seed = fakes.r[mine], roles.translate(town).r[fakes.seed[mine]]
        verdict = fakes.verdicts[int(np.flatnonzero(mine)[0])]
        assert verdict.passed
        assert verdict.shared == len(set(fake.ravel().tolist()) & set(seed.ravel().tolist()))
        assert verdict.aligned == (fake == seed).sum()


def test_people_have_a_home_to_come_back_to(town, fakes):
    night = town.minutes() < 360
    at_home = []
    for life in range(fakes.people):
        there = fakes.r[fakes.life == life][:, night]
        _, count = np.unique(there, return_counts=True)
        at_home.append(count.max() / there.size)
    # of the town's people nine in ten nights are at one place; days drawn from strangers would share a seventieth
    assert np.mean(at_home) > 0.75


def test_the_same_numbers_give_the_same_lives(town, fakes):
    again = ew.generate_fakes(town, rng=rng(2), per_seed=1, **SMALL)
    first = np.isin(fakes.life, np.unique(fakes.life)[::2])
    assert np.array_equal(again.r, fakes.r[first])


def test_a_pool_keeps_lives_together_and_tells_nothing_of_the_seeds_dates(town, fakes, tmp_path):
    later = ew.Traces(
        town.r, town.locations, users=town.user, dates=town.dates + 3 * (town.user % 2) * 7, step_minutes=20
    )
    made = ew.generate_fakes(later, rng=rng(2), **SMALL)
    pool, rows = publish_with_rows(made, laboratory=True, rng=rng(4))
    assert pool.traces.U == made.people
    for user in range(pool.traces.U):
        mine = np.flatnonzero(pool.traces.user == user)
        assert (np.diff(mine) == 1).all()
        dates = pool.traces.dates[mine]
        assert (np.diff(dates) > np.timedelta64(0)).all()
        assert len(set(made.life[rows[mine]].tolist())) == 1
        assert np.array_equal(is_weekend(dates), made.weekend[rows[mine]])
    # whether a seed was there in the first weeks or three weeks later is not told
    begin = {int(made.life[rows[i]]): pool.traces.dates[i] for i in range(len(rows) - 1, -1, -1)}
    late = np.array([later.user[made.seed[made.life == life][0]] % 2 for life in begin])
    weeks = np.array([(day - np.datetime64("2024-03-04")).astype(int) // 7 for day in begin.values()])
    assert len(np.unique(weeks[late == 0])) > 1
    assert set(weeks.tolist()) <= set(range(5))
    made.save(tmp_path / "private")
    loaded = ew.Fakes.load(tmp_path / "private")
    assert np.array_equal(loaded.life, made.life)
    assert np.array_equal(loaded.day, made.day)


def test_a_budget_is_of_lives(fakes):
    fakes.published[:] = False
    pool, rows = publish_with_rows(fakes, per_seed=1, laboratory=True, rng=rng(4))
    lives, days = np.unique(fakes.life[rows], return_counts=True)
    assert days.tolist() == [8] * len(lives)
    assert len(lives) == fakes.people // 2
    assert pool.traces.U == len(lives)
    fakes.published[:] = False


def test_links_name_every_day(town, fakes, tmp_path):
    fakes.published[:] = False
    pool, rows = publish_with_rows(fakes, per_seed=2, laboratory=True, rng=rng(4))
    (tmp_path / "links.csv").write_bytes(links_file(pool.traces, town, fakes.seed[rows]))
    found = read_links(tmp_path / "links.csv", pool.traces, town)
    assert np.array_equal(found, fakes.seed[rows])
    fakes.published[:] = False


def test_the_labels_of_all_people_are_read_once_for_the_links_not_once_a_line(town, monkeypatch):
    asked, users = [], ew.Traces.users
    monkeypatch.setattr(ew.Traces, "users", property(lambda traces: asked.append(1) or users.fget(traces)))
    links_file(town, town, np.arange(len(town)))
    assert len(asked) == 2


def test_where_few_have_several_days_fakes_live_one_and_say_so():
    several = ew.simulate_town(users=30, days=3, locations=60, rng=rng(3)).traces
    some = several.select((several.dates == several.dates.min()) | (several.user < 10))
    made = ew.generate_fakes(some, rng=rng(2), **SMALL)
    assert made.day is None
    assert np.array_equal(made.life, np.arange(len(made)))
    assert any("fakes live one day" in note for note in made.notes)


def test_two_traces_of_one_date_are_one_day():
    day = ew.simulate_town(users=30, locations=60, rng=rng(3)).traces
    twice = day.select(np.repeat(np.arange(30), 2))
    assert ew.generate_fakes(twice, rng=rng(2), **SMALL).day is None


def test_a_kind_of_day_that_few_have_is_one_calendar_for_all():
    # weekdays of everybody, and a Saturday of one: it counts as a weekday wherever days are counted
    town = ew.simulate_town(users=30, days=6, locations=60, rng=rng(3)).traces
    few = town.select((town.dates != town.dates.max()) | (town.user == 3))
    made = ew.generate_fakes(few, rng=rng(2), **SMALL)
    assert made.day is not None
    assert not made.weekend.any()
    assert not is_weekend(ew.publish(made, laboratory=True, rng=rng(1)).traces.dates).any()


@given(st.lists(st.booleans(), min_size=1, max_size=20), st.integers(0, 9))
@settings(max_examples=150, deadline=None)
def test_weekdays_keep_the_order_of_kinds(kinds, number):
    days = weekdays(np.array(kinds), rng(number))
    assert (days % 7 >= 5).tolist() == kinds
    assert (np.diff(days) > 0).all()
    # no day of its kind lies between one day and the next
    for a, b, kind in zip(days, days[1:], kinds[1:], strict=False):
        assert not any((d % 7 >= 5) == kind for d in range(a + 1, b))


def test_lives_begin_on_any_weekday():
    starts = [int(weekdays(np.zeros(3, dtype=bool), rng(i))[0]) for i in range(200)]
    count = np.bincount(starts, minlength=5)
    # 200 draws of five: 40 each, five standard deviations of a binomial count
    assert np.all(np.abs(count - 40) < 5 * np.sqrt(200 * 0.2 * 0.8))
    assert weekdays(np.array([True, False]), rng()).tolist() == [6, 7]
    assert weekdays(np.array([False] * 5 + [True] * 2), rng()).tolist() == list(range(7))


@pytest.mark.parametrize(
    ("first", "last"), [("2024-03-01", "2024-03-14"), ("2024-03-05", "2024-03-06"), ("2024-03-04", "2024-04-28")]
)
def test_lives_are_dated_within_the_calendar_where_it_holds_them(first, last):
    dates = np.arange(np.datetime64(first), np.datetime64(last) + 1)
    frame = PublicMap(ew.Locations(n=3), np.ones(3, dtype=bool), dates, 60, "00:00", "UTC")
    life, day = np.repeat(np.arange(60), 2), np.tile([0, 1], 60)  # two weekdays; which, is drawn
    drawn = frame.weeks(day, life, np.random.default_rng(1))
    beyond = np.maximum(dates[0] - drawn, 0).astype(int) + np.maximum(drawn - dates[-1], 0).astype(int)
    assert beyond.max() <= (0 if len(dates) >= 14 else 6)
