"""The law of diaries against its definition; lives of all kinds of record; the privacy test of a life."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import naive_life
import numpy as np
import pytest
from numba.typed import List

import elsewhere as ew
from elsewhere.data.visits import DAY, Form, Locations, Visits
from elsewhere.paper._generate_kernels import open_stream, uniform
from elsewhere.synthesis import _diary_kernels as kernels
from elsewhere.synthesis import _life_kernels as life_kernels
from elsewhere.synthesis.diaries import (
    LEAN,
    _find_habits,
    _learn_phases,
    _learn_spread,
    fit_choices,
    learn_diaries,
    share_spans,
)
from elsewhere.synthesis.generate_life import (
    compare,
    describe,
    draw_lives,
    generate_block,
    generate_lives,
    learn_lives,
    learn_test,
    privacy_test_lives,
)
from elsewhere.synthesis.groups import classify, find_groups, find_stays

KEY = np.array([5, 6], dtype=np.uint64)
SLOT = 1_200


@pytest.fixture(scope="module")
def town():
    town = ew.simulate_town(users=60, days=7, locations=120, rng=np.random.default_rng(11))
    r = np.asarray(town.traces.r).reshape(60, -1)
    user, slot = np.nonzero(np.append(np.ones((60, 1), bool), r[:, 1:] != r[:, :-1], axis=1))
    start = slot * SLOT + 19_786 * DAY  # 2024-03-04
    end = np.append(start[1:], 0)
    last = np.append(user[1:] != user[:-1], True)
    end[last] = (19_786 + 7) * DAY
    return Visits(user, start, end, r[user, slot], Locations(xy=town.traces.locations.planar()))


@pytest.fixture(scope="module")
def model(town):
    return learn_lives(town.of_users(np.arange(42)), k=10, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def events():
    """Check-ins: shops by day, bars in the evening, never between 2 and 8."""
    rng = np.random.default_rng(3)
    user, day = np.repeat(np.arange(50), 40), np.tile(np.arange(20_000, 20_040), 50)
    keep = rng.random(len(user)) < 0.6
    user, day = user[keep], day[keep]
    evening = rng.random(len(user)) < 0.4
    second = np.where(evening, rng.uniform(19, 25.9, len(user)), rng.uniform(8, 18, len(user))) * 3600
    place = np.where(
        evening, 30 + (user * 7 + rng.integers(0, 3, len(user))) % 15, (user + rng.integers(0, 4, len(user))) % 30
    )
    start = day * DAY + second.astype(np.int64)
    return Visits(user, start, start, place, Locations(xy=rng.uniform(0, 8, (45, 2))))


def test_short_records_between_two_others_are_passes(town):
    stays = find_stays(town)
    passes = stays.usage < 0
    assert 0 < passes.sum() < len(passes)
    assert ((stays.end - stays.start)[passes] <= 1_800).all()
    used = set(zip(stays.use_user.tolist(), stays.use_place.tolist(), strict=True))
    time = Counter()  # who passes a place of their own passes it for longer than they stay there
    for u, p, length, passed in zip(stays.user, stays.place, stays.end - stays.start, passes, strict=True):
        time[u, p] += length if passed else -length
    mixed = {(u, p) for u, p in zip(stays.user[passes], stays.place[passes], strict=True) if (u, p) in used}
    assert mixed
    assert all(time[key] > 0 for key in mixed)


@pytest.mark.parametrize("k", [5, 10])
def test_types_and_classes_are_of_at_least_k_people(town, k):
    stays = find_stays(town)
    groups = find_groups(stays, k=k, rng=np.random.default_rng(1))
    assert np.bincount(groups.type_of).min() >= k
    for c in range(groups.K):
        assert len(np.unique(stays.use_user[groups.use_class == c])) >= k
    assert np.allclose(groups.profile.sum(1), 1)


def test_habits_are_people_whose_days_are_of_the_same_kinds():
    use = np.zeros((60, 2, 5))
    use[:30, 0, 1], use[30:, 0, 2], use[:, 1, 3] = 10, 10, 4
    use[::2, :, 0] = 30  # how many days have no record is another matter
    groups = SimpleNamespace(busy=np.zeros((60, 2)), profile=None)
    habit = _find_habits(use, groups, False, 10, np.random.default_rng(2))
    assert np.bincount(habit).tolist() == [30, 30]
    assert len(set(habit[:30])) == 1


def test_days_that_fewer_than_k_people_have_teach_nothing(town):
    """Six people are at work at night: no fake sleeps by day, and nothing of these days is drawn."""
    rng = np.random.default_rng(3)
    night = town.replace(user=town.user % 6, start=town.start + DAY // 2, end=town.end + DAY // 2)
    rows = [np.append(getattr(town, x), getattr(night, x)[night.user < 1]) for x in ("start", "end", "place")]
    user = np.append(town.user, np.full((night.user < 1).sum(), town.U))
    order = np.lexsort((rows[0], user))
    both = Visits(user[order], *(x[order] for x in rows), town.locations)
    stays = find_stays(both)
    groups = find_groups(stays, k=10, rng=rng)
    law = learn_diaries(stays, groups, k=10, rng=rng)
    kind = of_days(law)[1]
    drawn = np.unique(law.order)
    assert set(drawn.tolist()) < set(range(len(law.pieces.start)))
    people_of = {k: set() for k in range(len(law.begins))}
    for i in drawn:
        people_of[kind[i]].add(law.pieces.user[i])
    assert min(len(x) for x in people_of.values() if x) >= 10


def test_how_far_people_keep_to_a_kind_of_day_is_as_defined():
    rng = np.random.default_rng(4)
    use = rng.poisson(rng.gamma(1, 3, (40, 6))).astype(float)
    use[0], use[1] = 0, np.eye(6)[2]  # nobody can be learnt from a single day
    mean = np.tile(rng.dirichlet(np.ones(6)), (40, 1))
    assert _learn_spread(use, mean) == pytest.approx(naive_life.spread(use, mean, LEAN))


def test_what_few_people_do_often_is_told_from_what_all_do_now_and_then():
    rng = np.random.default_rng(5)
    share = np.column_stack([np.full(4_000, 0.2), np.where(rng.random(4_000) < 0.2, 0.95, 0.0125)])
    share = np.column_stack([share * [1, 0.8], 1 - (share * [1, 0.8]).sum(1)])
    use = np.array([rng.multinomial(30, p) for p in share]).astype(float)
    spread = _learn_spread(use, np.tile(share.mean(0), (4_000, 1)))
    assert spread[0] > 20
    assert spread[1] < 1


def test_people_differ_in_each_kind_of_day_as_far_as_said():
    mixes = np.array([[0.0, 0.5, 0.3, 0.2]] * 2)
    spread = np.array([[50.0, 60.0, 2.0, 60.0]] * 2)
    n, found = 6_000, []
    for i in range(n):
        mix = np.zeros((2, 4))
        life_kernels.draw_mix(mixes, spread, open_stream(KEY, 5, i), mix)
        assert mix.sum(1) == pytest.approx(1)
        found.append(mix[0] / mix[0, [1, 3]].sum() * 0.7)  # as rates: kinds that hardly vary set the measure
    rate = np.array(found)[:, 2]
    assert rate.mean() == pytest.approx(0.3, abs=5 * rate.std() / np.sqrt(n) + 0.01)
    assert rate.var() == pytest.approx(0.3 / 2, rel=0.2)  # a gamma law of mean m and shape m s: m / s


def of_days(law):
    """Habit, kind and weekend or not of the day of each piece that may be drawn, -1 of others; and all their states."""
    Q, states, T = len(law.begins), 2 * len(law.role) + 2, len(law.mix)
    alike, state = np.divmod(np.repeat(np.arange(len(law.first) - 1), np.diff(law.first)), states)
    habit, kind, off = np.full((3, len(law.pieces.start)), -1)
    by_habit, by_off = alike < T * Q, alike >= T * Q + Q
    habit[law.order[by_habit]], kind[law.order[by_habit]] = np.divmod(alike[by_habit], Q)
    off[law.order[by_off]] = alike[by_off] - T * Q - Q
    return habit, kind, off, list(zip(law.order[by_habit].tolist(), state[by_habit].tolist(), strict=True))


def test_pieces_are_drawn_as_the_law_says(model):
    law = model.law
    habit, kind, off, drawn = of_days(law)
    days = np.column_stack([habit, kind, off])
    rng = np.random.default_rng(4)
    for n, j in enumerate(rng.choice(len(drawn), 36)):
        i, state = drawn[j]
        where = [*days[i].tolist(), state, -1 if state % 2 or state == 2 * len(law.role) else int(law.pieces.start[i])]
        if 12 <= n < 24:  # a kind of such days in which nobody begins this: all such days
            kinds = np.setdiff1d(kind[off == where[2]], kind[[p for p, of in drawn if of == state]])
            where[1] = int(rng.choice(kinds)) if len(kinds) else where[1]
        among = naive_life.piece_law(law, days, drawn, *where)
        stream = open_stream(KEY, 2, int(i))
        found = Counter(int(kernels.draw_piece(law, *where, stream)) for _ in range(3_000))
        assert set(found) <= set(among)
        worst = max(abs(found[p] / 3_000 - 1 / len(among)) for p in among)
        assert worst <= naive_life.tolerance(1 / len(among), 3_000)


LIVED = [  # (weekend, [(start, end, own place, class)]): two homes' worth of habits in five classes
    (0, [(0, 20_000, 0, 0), (21_000, 50_000, 1, 1), (52_000, 55_000, 2, 2), (56_000, 86_400, 0, 0)]),
    (0, [(0, 22_000, 0, 0), (23_000, 49_000, 1, 1), (52_000, 54_000, 3, 2), (55_000, 86_400, 0, 0)]),
    (1, [(0, 40_000, 0, 0), (42_000, 45_000, 2, 2), (46_000, 70_000, 4, 2), (71_000, 86_400, 0, 0)]),
    (0, [(0, 21_000, 0, 0), (24_000, 50_000, 1, 1), (51_000, 52_000, 2, 2), (53_000, 86_400, 0, 0)]),
]


def write_day(day, diary, memory):
    """Write a diary down as the kernels have it."""
    known = int(memory.size[0])
    day.state[:] = len(diary), known, 0
    for q, (start, end, x, c) in enumerate(diary):
        day.start[q], day.end[q], day.own[q], day.cls[q] = start, end, x, c
        if x >= day.state[1]:
            day.new_cls[x - known] = c
            day.state[1] = x + 1
    kernels.fill_slots(day)


@pytest.fixture
def lived(model):
    """The law with weights of our own, and somebody with four days behind."""
    rng = np.random.default_rng(5)
    K = len(model.groups.role)
    law = model.law._replace(
        role=np.minimum(np.arange(K), 2), new=rng.normal(-0.3, 0.3, 2 * K + kernels.NEW),
        own=np.array([0.8, 0.5, 0.6, -0.7, 0.4, 0.3]), like=rng.normal(0, 0.25, kernels.FEATURES),
    )  # fmt: skip
    memory = kernels.new_memory(60, 10, K)
    kernels.clear_memory(memory)
    for off, diary in LIVED:
        day = kernels.new_day(40)
        write_day(day, diary, memory)
        kernels.remember_day(law, memory, off, day)
    return law, memory


@pytest.mark.parametrize(
    ("here", "before", "new_today"), [(1, 0, []), (0, 2, [2, 1]), (2, 4, [2]), (5, 1, [2, 2]), (5, 3, [2])]
)
def test_own_places_and_new_ones_follow_as_their_law_says(lived, here, before, new_today):
    law, memory = lived
    assert len(law.own) == kernels.OWN  # compiled loops do not look
    known = [0, 1, 2, 2, 2]
    past = []
    for d, (off, diary) in enumerate(LIVED):
        for q, (start, _, x, _) in enumerate(diary):
            if q > 0 or start > 0 or d == 0:
                past.append((d, min(start // 21_600, 3) + 4 * off, x, diary[q - 1][2] if q > 0 else None))
    part, n = kernels.part_of(51_000, 0), 8_000
    at = here if here < len(known) else None
    wanted = naive_life.own_law(law, past, known, new_today, 2, at if at is not None else here, before, part, 4)
    found, stream = Counter(), open_stream(KEY, 4, here)
    for _ in range(n):
        day = kernels.new_day(40)
        day.state[:] = 0, len(known) + len(new_today), 0
        day.new_cls[: len(new_today)] = new_today
        found[int(kernels.draw_own(law, memory, day, 2, here, before, part, stream))] += 1
    assert set(found) <= set(wanted)
    for x, p in wanted.items():
        assert abs(found[x] / n - p) <= naive_life.tolerance(p, n)


TASTES = np.array([1.0, -0.4, 0.3, 0.5, -0.6, 0.7, 0.2, -0.1, 0.4])


@pytest.mark.parametrize("off", [0, 1])
def test_a_day_is_chosen_as_its_law_says(lived, off):
    law, memory = lived
    diaries = [
        LIVED[0][1],
        [(0, 40_000, 0, 0), (42_000, 45_500, 2, 2), (46_000, 86_400, 0, 0)],
        [(0, 30_000, 0, 0), (31_000, 33_000, 5, 2), (34_000, 40_000, 6, 1), (41_000, 86_400, 0, 0)],
        [(0, 21_500, 0, 0), (24_000, 50_000, 1, 1), (51_000, 52_000, 5, 2), (53_000, 86_400, 0, 0)],
    ]
    days = List([kernels.new_day(40) for _ in diaries])
    for day, diary in zip(days, diaries, strict=True):
        write_day(day, diary, memory)
    wanted, n = naive_life.day_law(law, LIVED, off, diaries, 5, TASTES), 8_000
    stream = open_stream(KEY, 5, off)
    found = Counter(kernels.choose_day(law, memory, off, TASTES, days, stream) for _ in range(n))
    for a, p in enumerate(wanted):
        assert abs(found[a] / n - p) <= naive_life.tolerance(p, n)


def test_kinds_follow_usual_and_recent_days_as_defined():
    rng = np.random.default_rng(8)
    mix, phases, earlier = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(1 + len(kernels.FADES))), []
    recent, likely = np.zeros((len(kernels.FADES), 2)), np.zeros(5)
    kernels.open_phases(recent, mix[0])
    for kind in (2, 0, 0, 3, 0, 1, 1):
        kernels.likely_kinds(mix, phases, recent, likely)
        assert np.allclose(likely, naive_life.kind_law(mix, phases, kernels.FADES, earlier), atol=1e-12)
        kernels.fade(recent, float(kind == 0))
        earlier.append(kind)


@pytest.mark.parametrize("share", [[1.0, 0.0, 0.0, 0.0], [0.3, 0.3, 0.4, 0.0]])
def test_phases_are_the_most_likely(share):
    rng, mix, n, people = np.random.default_rng(9), [0.6, 0.4], 100, 12
    empty, likely = np.zeros((people, n), dtype=bool), np.zeros((people, n, 4))
    for i in range(people):
        kinds = []
        for d in range(n):
            none = [naive_life.kind_law(mix, one, kernels.FADES, kinds)[0] for one in np.eye(4)]
            empty[i, d] = rng.random() < np.dot(share, none)
            likely[i, d] = none if empty[i, d] else 1 - np.array(none)
            kinds.append(int(not empty[i, d]))
    whose = np.repeat(np.arange(people), n)
    found = _learn_phases(empty.ravel(), whose, np.zeros_like(whose), np.full((people, 2), 0.6), np.full(2, 1e9))
    assert abs(found.sum() - 1) < 1e-9
    best = np.log(likely @ found).sum()
    for other in [share, *rng.dirichlet(np.ones(4), 200)]:
        assert np.log(likely @ np.array(other)).sum() < best + 0.5


def test_choices_are_fitted_by_maximum_likelihood():
    rng = np.random.default_rng(7)
    rows, true = rng.normal(0, 1, (4_000, 5, 3)), np.array([1.0, -0.5, 0.0])
    many = rng.integers(2, 6, 4_000)
    v = np.where(np.arange(5) < many[:, None], rows @ true + rng.gumbel(0, 1, (4_000, 5)), -np.inf)
    assert np.allclose(fit_choices(rows, many, v.argmax(1)), true, atol=0.1)


def test_gamma_has_its_mean_and_variance():
    for shape in (0.3, 1.0, 4.0):
        stream = open_stream(KEY, 3, 0)
        x = np.array([kernels.gamma(shape, stream) for _ in range(20_000)])
        assert abs(x.mean() - shape) <= 5 * np.sqrt(shape / 20_000)
        assert abs(x.var() / shape - 1) <= 0.12


def test_spans_are_shared_by_k_people():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 300, 57)
    last = first + rng.integers(0, 60, 57)
    start, end = share_spans(first, last, 10)
    assert np.unique(end - start, return_counts=True)[1].min() >= 10
    within = end < np.sort(last)[-10]
    assert np.unique(start[within], return_counts=True)[1].max() >= 10
    assert (last >= end.max()).sum() >= 10  # nobody is seen when fewer than ten people were
    same = np.zeros(30, dtype=np.int64)
    assert (share_spans(same, same + 6, 10)[1] == 6).all()


def test_a_filled_week_becomes_filled_weeks_of_the_same_span(town):
    seeds, alternates = town.of_users(np.arange(42)), town.of_users(np.arange(42, 60))
    lives = generate_lives(seeds, alternates=alternates, entropy=1, k=5, attempts=20)
    fakes = lives.visits
    assert fakes.U == len(lives.seed_of_life) >= 35
    assert lives.tally["tested"] == lives.attempts.sum()
    assert all(v.passed for v in lives.verdicts)
    for u in range(fakes.U):
        rows = fakes.rows(u)
        assert fakes.start[rows][0] == seeds.start.min()
        assert fakes.end[rows][-1] == seeds.end.max()
        assert (fakes.start[rows][1:] == fakes.end[rows][:-1]).mean() > 0.95
    assert (fakes.start % SLOT == 0).all()
    assert abs(len(fakes) / fakes.U / (len(seeds) / seeds.U) - 1) < 0.2
    assert set(np.unique(fakes.place)) <= set(np.unique(seeds.place))


def test_the_same_entropy_gives_the_same_lives_on_any_executor(town):
    seeds, alternates = town.of_users(np.arange(42)), town.of_users(np.arange(42, 60))
    alone = generate_lives(seeds, alternates=alternates, entropy=9, k=5, per_seed=2)
    with ThreadPoolExecutor(2) as executor:
        both = generate_lives(seeds, alternates=alternates, entropy=9, k=5, per_seed=2, executor=executor)
    for name in ("user", "start", "end", "place"):
        assert np.array_equal(getattr(alone.visits, name), getattr(both.visits, name))
    other = generate_lives(seeds, alternates=alternates, entropy=10, k=5, per_seed=2)
    assert not np.array_equal(other.visits.place, alone.visits.place)


def test_check_ins_become_check_ins_at_hours_that_were_observed(events):
    lives = generate_lives(
        events.of_users(np.arange(36)), alternates=events.of_users(np.arange(36, 50)), entropy=2, k=5, attempts=20
    )
    fakes = lives.visits
    assert np.array_equal(fakes.start, fakes.end)
    hour = fakes.start // 3600 % 24
    assert ((hour >= 3) & (hour < 7)).mean() < 0.005
    assert abs(len(fakes) / fakes.U / (len(events) / events.U) - 1) < 0.2
    evening = (hour >= 19) | (hour < 2)
    assert (fakes.place[evening] >= 30).mean() > 0.7 > 0.3 > (fakes.place[~evening] >= 30).mean()


def test_places_without_coordinates_will_do(events):
    plain = events.replace(locations=Locations(n=45))
    lives = generate_lives(
        plain.of_users(np.arange(36)), alternates=plain.of_users(np.arange(36, 50)), entropy=2, k=5, attempts=20
    )
    assert lives.visits.U > 25


def test_trips_become_trips_that_begin_where_the_last_one_ended():
    rng = np.random.default_rng(8)
    user, when, place, trip = [], [], [], []
    for u in range(50):
        here = u % 20
        for day in range(10):
            for hour, to in ((8, 20 + u % 7), (17, u % 20)):
                t = (20_000 + day) * DAY + int(3600 * (hour + rng.normal(0, 0.5)))
                user += [u, u]
                when += [t, t + 1_500]
                place += [here, to]
                trip += [len(trip) // 2] * 2
                here = to
    trips = Visits(user, when, when, place, Locations(xy=rng.uniform(0, 8, (27, 2))), trip=trip)
    lives = generate_lives(
        trips.of_users(np.arange(36)), alternates=trips.of_users(np.arange(36, 50)), entropy=2, k=5, attempts=20
    )
    fakes = lives.visits
    assert abs(len(fakes) / fakes.U / 40 - 1) < 0.25
    assert (np.unique(fakes.trip, return_counts=True)[1] == 2).all()
    origin, goal = fakes.place[::2], fakes.place[1::2]
    same = fakes.user[2::2] == fakes.user[:-2:2]
    assert (origin[1:] == goal[:-1])[same].all()
    assert 500 < np.median(fakes.start[1::2] - fakes.start[::2]) < 4_000


def test_a_file_of_trips_without_people_gives_trips():
    rng = np.random.default_rng(9)
    n = 300
    start = 20_000 * DAY + rng.integers(0, 5, n) * DAY + rng.integers(7 * 3600, 20 * 3600, n)
    user = np.repeat(np.arange(n), 2)
    when = np.column_stack([start, start + rng.integers(300, 1_800, n)]).ravel()
    place = np.column_stack([rng.integers(0, 12, n), rng.integers(12, 20, n)]).ravel()
    form = Form("trips", "trip")
    rides = Visits(user, when, when, place, Locations(xy=rng.uniform(0, 5, (20, 2))), trip=user, form=form)
    lives = generate_lives(rides.of_users(np.arange(200)), alternates=rides.of_users(np.arange(200, n)), entropy=3)
    assert lives.visits.U > 150
    assert len(lives.visits) == 2 * lives.visits.U
    assert any("trip" in note for note in lives.notes)
    assert (lives.visits.place[::2] < 12).mean() > 0.9 < (lives.visits.place[1::2] >= 12).mean()


def test_a_copy_of_the_seed_fails_the_test_and_the_figures_are_those_of_the_definition(town, model):
    seeds = town.of_users(np.arange(42))
    test = learn_test(model, town.of_users(np.arange(42, 60)), k=5, par_s=0.1, par_d=0.1, rng=np.random.default_rng(0))
    stays, groups = model.stays, model.groups
    mine = np.flatnonzero(stays.user == 3)
    cls = np.where(stays.usage[mine] >= 0, groups.use_class[stays.usage[mine]], -1)
    columns = (stays.user[mine], stays.start[mine], stays.end[mine], stays.place[mine], cls)
    (verdict,) = privacy_test_lives(test, np.array([3]), columns, np.array([0, len(mine)]))
    assert {"similar", "shared", "timing"} <= set(verdict.rejected_by)
    assert verdict.sim == pytest.approx(1.0)

    *drawn, first, good = draw_lives(
        model, np.array([3, 7]), np.array([0.2, 0.7]), np.array([0, 1]), np.zeros(2, np.int64), KEY
    )
    assert good.all()
    found = privacy_test_lives(test, np.array([3, 7]), drawn, first)
    for i, s in enumerate((3, 7)):
        rows = slice(first[i], first[i + 1])
        fake = list(zip(*(drawn[j][rows].tolist() for j in (1, 2, 3)), strict=True))
        own = seeds.rows(s)
        seed = list(zip(*(getattr(seeds, c)[own].tolist() for c in ("start", "end", "place")), strict=True))
        assert found[i].sim == pytest.approx(naive_life.geographic_similarity(fake, seed))
        assert found[i].shared == len({x[2] for x in fake} & {x[2] for x in seed})


def test_alternates_are_looked_for_among_all_where_the_first_do_not_do(town, model, monkeypatch):
    seeds, others = town.of_users(np.arange(42)), town.of_users(np.arange(42, 60))
    test = learn_test(model, others, k=5, par_s=0.1, par_d=0.1, rng=np.random.default_rng(0))
    stays, groups = model.stays, model.groups
    cls = np.where(stays.usage >= 0, groups.use_class[stays.usage], -1)
    columns = (stays.user, stays.start, stays.end, stays.place, cls)
    first = np.searchsorted(stays.user, np.arange(seeds.U + 1))
    seed = np.roll(np.arange(seeds.U), 1)
    wanted = []
    for i, s in enumerate(seed):
        to_seed = 1 - np.abs(groups.profile[i] - groups.profile[s]).sum() / 2
        to_others = 1 - np.abs(test.others - groups.profile[i][:, None]).sum(0) / 2
        wanted.append(int((to_others > to_seed - 0.1).sum()))
    assert 0 < np.mean(np.array(wanted) < 4) < 1
    for most in (300, 5):
        monkeypatch.setattr("elsewhere.synthesis.generate_life.COMPARED", most)
        found = privacy_test_lives(test, seed, columns, first)
        assert ["alternates" in x.rejected_by for x in found] == [n < 4 for n in wanted]


def test_a_fake_may_be_as_near_to_its_seed_as_strangers_of_its_type_are(town, model):
    seeds, others = town.of_users(np.arange(42)), town.of_users(np.arange(42, 60))
    test = learn_test(model, others, k=5, par_s=0.01, par_d=0.1, rng=np.random.default_rng(0))
    stays, groups = model.stays, model.groups
    cls = np.where(stays.usage >= 0, groups.use_class[stays.usage], -1)
    runs = [
        naive_life.runs_of_three(list(zip(stays.start[mine].tolist(), cls[mine].tolist(), strict=True)))
        for mine in (np.flatnonzero(stays.user == i) for i in range(42))
    ]
    of_others = find_stays(others)
    other_class = classify(of_others, groups.means)[of_others.usage]
    rest = [
        naive_life.runs_of_three(
            [(of_others.start[j], other_class[j] if of_others.usage[j] >= 0 else -1) for j in mine]
        )
        for mine in (np.flatnonzero(of_others.user == i) for i in range(18))
    ]
    held = Counter(run for life in runs + rest for run in set(life))
    records = [
        list(zip(*(getattr(seeds, c)[seeds.rows(i)].tolist() for c in ("start", "end", "place")), strict=True))
        for i in range(42)
    ]
    stranger = np.roll(np.arange(42), 1)
    found = compare(test, test.seeds, stranger, 2)
    for i, s in enumerate(stranger.tolist()):
        assert found[i, 0] == pytest.approx(naive_life.geographic_similarity(records[i], records[s]))
        assert found[i, 1] == len({x[2] for x in records[i]} & {x[2] for x in records[s]})
        assert found[i, 2] == sum(held[run] == 2 and run in set(runs[s]) for run in runs[i])
    every = np.array([compare(test, test.seeds, np.roll(np.arange(42), shift), 2) for shift in range(1, 42)])
    alike = np.array([groups.type_of == np.roll(groups.type_of, shift) for shift in range(1, 42)])
    above = every > test.limits[groups.type_of]
    for t in range(len(test.limits)):
        assert (above[alike & (groups.type_of == t)].mean(0) <= 0.1).all()
    loose = learn_test(model, others, k=5, par_s=0.9, par_d=0.1, rng=np.random.default_rng(0))
    assert (loose.limits[:, 0] == 0.9).all()
    assert (loose.limits[:, 1:] == test.limits[:, 1:]).all()


def test_runs_of_three_records_are_those_of_the_definition():
    rng = np.random.default_rng(6)
    for people in (1, 6):
        user = np.repeat(np.arange(people), 3 if people == 1 else rng.integers(0, 6, people))
        start, place = np.arange(len(user)) * 5_000, rng.integers(0, 3, len(user))
        cls = np.where(rng.random(len(user)) < 0.2 * (people > 1), -1, place)
        found = describe(user, start, start, place, cls, people)
        wanted = {
            u: naive_life.runs_of_three(list(zip(start[user == u].tolist(), cls[user == u].tolist(), strict=True)))
            for u in range(people)
        }
        assert np.bincount(found.owner, minlength=people).tolist() == [len(wanted[u]) for u in range(people)]
        named = Counter(zip(found.run.tolist(), [run for u in range(people) for run in wanted[u]], strict=True))
        assert len(named) == len({run for run, _ in named}) == len({run for _, run in named})


def test_first_lives_have_the_homes_dealt_out_and_short_ones_are_drawn_again(town, model):
    others = town.of_users(np.arange(42, 60))
    test = learn_test(model, others, k=1, par_s=1, par_d=1, rng=np.random.default_rng(0))
    numbers = np.arange(24)
    points = (numbers * 7 % 24 + 0.5) / 24

    def kept(attempts, least):
        rows, verdicts, tries, _ = generate_block(model, test, numbers, points, KEY, attempts, least, numbers)
        return np.column_stack(rows), verdicts, tries

    rows, verdicts, _ = kept(1, 1)
    *drawn, first, good = draw_lives(model, numbers, points, numbers, 0 * numbers, KEY)
    assert good.all()
    passed = np.array([v.passed for v in verdicts])
    assert passed.sum() > 5
    assert np.array_equal(rows, np.column_stack(drawn)[passed[drawn[0]]])
    least = int(np.median(np.diff(first)))
    _, verdicts, _ = kept(1, least)
    assert [v.passed for v in verdicts] == (passed & (np.diff(first) >= least)).tolist()
    assert {v.rejected_by for v in verdicts} >= {("infeasible",)}
    rows, verdicts, tries = kept(8, least)
    assert (tries[passed & (np.diff(first) < least)] > 1).all()
    assert np.bincount(rows[:, 0])[rows[:, 0]].min() >= least


def test_what_a_seed_adds_to_the_weights_is_left_out_for_its_own_fake(model):
    ground, where = model.where.ground, model.where
    before = ground.weight.copy()
    draw_lives(model, np.array([3, 7]), np.array([0.2, 0.7]), np.array([0, 1]), np.zeros(2, np.int64), KEY)
    assert np.array_equal(ground.weight, before)
    mine = where.mine[where.mine_first[3] : where.mine_first[4]]
    left = where.left[where.mine_first[3] : where.mine_first[4]]
    assert ((left > 0) & (left < 1 + 1e-9)).all()  # 1 where noise hides the seed: fewer than nobody were counted
    assert (left < 0.999).mean() > 0.5
    places = set(ground.place[mine])
    assert places
    assert places <= set(model.stays.use_place[model.stays.use_user == 3])


def test_only_cells_that_people_pass_are_passed(model):
    numbers = np.arange(20)
    *drawn, _, _ = draw_lives(model, numbers, np.linspace(0, 0.95, 20), numbers, 0 * numbers, KEY)
    place, cls = drawn[3], drawn[4]
    assert (cls == -1).sum() > 50
    assert set(place[cls == -1]) <= set(model.stays.place[model.stays.usage < 0])


def test_the_order_of_lives_does_not_show_in_their_homes(town):
    seeds, alternates = town.of_users(np.arange(42)), town.of_users(np.arange(42, 60))
    home = []
    for entropy in range(12):
        fakes = generate_lives(seeds, alternates=alternates, entropy=entropy, k=5).visits
        longest = np.lexsort((fakes.end - fakes.start, fakes.user))
        last = np.append(fakes.user[longest][1:] != fakes.user[longest][:-1], True)
        place = fakes.place[longest][last][:35]
        step = np.abs(np.diff(fakes.locations.planar()[place], axis=0)).sum(1)
        home.append([np.corrcoef(np.arange(35), place)[0, 1], *step])
    home = np.array(home)
    assert abs(home[:, 0].mean()) < 4 / np.sqrt(12 * 35)
    # neither do steps from one life's home to the next one's repeat from release to release
    rest = home[:, 1:] - home[:, 1:].mean(1, keepdims=True)
    alike = [np.corrcoef(rest[i], rest[j])[0, 1] for i in range(12) for j in range(i)]
    assert abs(np.mean(alike)) < 4 / np.sqrt(12 * 34)


def test_streams_of_lives_differ(model):
    numbers = {uniform(open_stream(KEY, attempt, life)) for attempt in range(3) for life in range(5)}
    assert len(numbers) == 15
