"""The location-based-service scenario: attacks against slow twins, ceilings, adversaries, baselines, bad input."""

import itertools
import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.cli.output import lbs_tables
from elsewhere.evaluation._lbs_kernels import localize
from elsewhere.evaluation.lbs import (
    HiddenChain,
    PoolGenerator,
    Sightings,
    aggregate_iid,
    attack,
    chain_of,
    overhead,
    popular,
    track,
    uniform_iid,
    walk_on_aggregate,
    walk_on_user,
)

STUDENTS = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "studentlife"
Z = 4.9  # standard deviations: alpha 1e-6


def sets_of(log):
    return [set(log.place[a:b].tolist()) for a, b in zip(log.start[:-1], log.start[1:], strict=True)]


def flat_model(R, locations=None):
    """An aggregate model that knows nothing: all moves and all places alike, to the last bit."""
    where = locations or ew.Locations(n=R)
    return ew.aggregate(ew.fit_profiles(ew.Traces([[0, 0]], where)), where, epsilon=1e18)


@st.composite
def chains(draw):
    """A small hidden chain: candidate sets, first law, matrix, zeros among them."""
    R, L = draw(st.integers(2, 4)), draw(st.integers(1, 5))
    number = st.sampled_from([0.0, 1e-3, 0.1, 0.3, 0.7, 1.0])
    sets = [draw(st.lists(st.integers(0, R - 1), min_size=1, max_size=R, unique=True)) for _ in range(L)]
    first = [draw(number) for _ in range(R)]
    p = [[draw(number) for _ in range(R)] for _ in range(R)]
    return sets, first, p


def run_chain(sets, first, p):
    start = np.cumsum([0, *map(len, sets)])
    place = np.concatenate(sets).astype(np.uint32)
    posterior, p = np.empty(len(place)), np.array(p, dtype=float)
    with np.errstate(divide="ignore"):
        logs = [np.log(np.array(x, dtype=float)) for x in (first, p)]
    total = localize(start, place, logs[0], p, logs[1], posterior)
    chain = HiddenChain(np.arange(len(p)), logs[0], p, logs[1], np.zeros(0, dtype=np.uint32))
    return total, posterior, track(chain, start, place), start, place


@given(chains())
def test_both_attacks_equal_enumeration(case):
    sets, first, p = case
    total, posterior, path, start, place = run_chain(*case)
    slow, whole, top = naive.hidden_chain(sets, first, [p] * (len(sets) - 1))

    assert math.exp(total) == pytest.approx(whole, rel=1e-9, abs=0)
    if whole > 0:
        found = [
            dict(zip(place[a:b].tolist(), np.exp(posterior[a:b]), strict=True)) for a, b in itertools.pairwise(start)
        ]
        for t, law in enumerate(slow):
            assert found[t] == pytest.approx({r: x / whole for r, x in law.items()}, abs=1e-12)
        assert all(r in some for r, some in zip(path.tolist(), sets, strict=True))
        likely = first[path[0]] * math.prod(p[a][b] for a, b in itertools.pairwise(path.tolist()))
        assert likely == pytest.approx(top, rel=1e-9, abs=0)


def test_long_logs_do_not_underflow():
    # a path of probability e^-20000, and a dead end that is better until the last instant
    L = 2000
    p = np.full((3, 3), 1e-5)
    p[0, 0], p[1, 1] = 1.0, 1e-4
    p[0, 2] = p[0, 1] = p[1, 0] = 0.0
    sets = [[0, 1]] * (L - 1) + [[2]]
    total, posterior, path, _, _ = run_chain(sets, [1, 1, 1], p)

    assert total == pytest.approx((L - 2) * math.log(1e-4) + math.log(1e-5))
    assert set(path[:-1].tolist()) == {1}
    assert np.exp(posterior[1::2][: L - 1]) == pytest.approx(1)


@given(st.data())
def test_the_service_sees_sets_and_strikes_out_the_pool(data):
    L, m, R = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3)), 5
    rows = st.lists(st.integers(0, R - 1), min_size=L, max_size=L)
    truth = data.draw(rows)
    fakes = data.draw(st.lists(st.lists(st.integers(-1, R - 1), min_size=L, max_size=L), min_size=m, max_size=m))
    exposed = data.draw(st.lists(st.booleans(), min_size=L, max_size=L))
    between = data.draw(st.lists(st.integers(0, R - 1), unique=True, max_size=3))
    pool = data.draw(st.lists(rows, min_size=1, max_size=4)) + [f for f in fakes if min(f) >= 0]
    log = Sightings.of(np.array(truth), np.array(fakes), np.array(exposed), np.random.default_rng(1))
    sent, hidden = naive.seen_by_service(truth, fakes, exposed, between)

    assert sets_of(log) == sent
    assert len(log.place) == sum(map(len, sent))  # each place once
    assert sets_of(log.without(np.array(pool))) == naive.struck_out(sent, pool)
    # the hidden candidates, by an attack whose answers are forced: every place explains everything alike
    chain = replace(chain_of(flat_model(R), np.arange(R)), between=np.array(sorted(between), dtype=np.uint32))
    if all(hidden):
        located, _ = attack(log, chain, np.array(truth), np.random.default_rng(1))
        assert located == pytest.approx([(truth[t] in s) / len(s) for t, s in enumerate(hidden)])


def test_order_of_what_is_sent_says_nothing():
    rng = np.random.default_rng(3)
    truth, fakes = np.zeros(4000, dtype=np.int64), np.ones((1, 4000), dtype=np.int64)
    log = Sightings.of(truth, fakes, np.ones(4000, dtype=bool), rng)

    assert abs((log.place[::2] == 0).mean() - 0.5) < Z * 0.5 / math.sqrt(4000)


def every_move_once(R, cycles):
    """R people who make every move between R places, staying among them, equally often: nothing to know."""
    cycle = [r for i in range(R) for r in (i, *(x for j in range(i + 1, R) for x in (i, j)))]
    walk = np.array(cycle * cycles + cycle[:1])
    assert np.ptp(np.bincount(walk[:-1] * R + walk[1:], minlength=R * R)) == 0
    return (walk + np.arange(R)[:, None]) % R


@pytest.mark.parametrize(("m", "cycles"), [(1, 18), (5, 2), (10, 1)])
def test_indistinguishable_fakes_reach_the_ceiling(m, cycles):
    # E67: one gives an error of 1/2, m give m/(m+1); every trace stays at a place of its own
    train = every_move_once(m + 1, cycles)
    U, L = 6, train.shape[1]
    decoys = np.repeat(np.arange(1, m + 1)[:, None], L, axis=1)
    found = ew.evaluate_lbs(
        train,
        np.zeros((U, L), dtype=int),
        {"decoys": lambda user, n, rng: decoys},
        n_fakes=[m],
        rng=np.random.default_rng(1),
        locations=ew.Locations(n=m + 1),
    )
    runs = U * 20 * L / 2

    assert found.error[:, 0, 0, 0, 0, 0] == pytest.approx(m / (m + 1))  # localization shares ties
    mean = found.figure("decoys", m, "aggregate", "tracking")["mean"]
    assert mean == pytest.approx(m / (m + 1), abs=Z * math.sqrt(m) / (m + 1) / math.sqrt(runs))


def test_a_mirrored_fake_cannot_be_told_from_the_truth():
    # not a flat chain: two copies of one town, the fake lives the same life in the other one
    rng = np.random.default_rng(2)
    life = rng.integers(3, size=(40, 24))
    both = np.concatenate([life, life + 3])
    found = ew.evaluate_lbs(
        both,
        life,
        {"mirror": lambda user, n, rng: life[user : user + 1] + 3},
        n_fakes=[1],
        rng=rng,
    )

    assert found.error[:, 0, 0, 0, 0, 0] == pytest.approx(0.5)
    # 40 users x 20 runs; within a run errors hang together, so a run counts as one trial
    assert found.figure("mirror", 1)["mean"] == pytest.approx(0.5, abs=Z * 0.5 / math.sqrt(800))


def persons(rng, U=30, L=48, R=40, days=2):
    """Days (days, U, L) of people with a home, a workplace and a favourite place of their own; and the map."""
    own = np.array([rng.choice(R, 3, replace=False) for _ in range(U)])
    p = np.array([[0.93, 0.05, 0.02], [0.06, 0.9, 0.04], [0.3, 0.2, 0.5]]).cumsum(axis=1)
    rows = np.zeros((days, U, L), dtype=int)
    for day in rows:
        state = np.zeros(U, dtype=int)
        for t in range(L):
            day[:, t] = own[np.arange(U), state]
            state = (rng.random(U)[:, None] > p[state]).sum(axis=1)
    return ew.Locations(xy=rng.random((R, 2)) * 10), *rows


def test_who_knows_the_user_sees_through_more():
    # E68. A single walk on p(u) is as good as the truth, so with one fake nobody can do better than the other; among
    # many fakes the places that she visits much are more often the true ones, and only p(u) knows which these are
    where, *days = persons(np.random.default_rng(3), R=12, days=11)
    train = ew.Traces(np.concatenate(days[:10]), where, users=np.tile(np.arange(30), 10))
    test = ew.Traces(days[10], where, users=np.arange(30))
    profiles = ew.fit_profiles(train)
    generators = {
        "walk_on_user": walk_on_user(profiles, 48),
        "walk_on_aggregate": walk_on_aggregate(ew.aggregate(profiles, where), 48),
    }
    found = ew.evaluate_lbs(train, test, generators, n_fakes=[10], rng=np.random.default_rng(5), repeats=(2, 3))
    for name in generators:
        for kind in ("localization", "tracking"):
            known, not_known = (found.figure(name, 10, who, kind)["mean"] for who in ("user", "aggregate"))
            assert known < not_known - 0.03


def test_random_places_protect_nobody_and_real_days_do():
    where, train, test = persons(np.random.default_rng(6))
    _, strangers, _ = persons(np.random.default_rng(7))
    generators = {"uniform": uniform_iid(40, 48), "real": PoolGenerator(strangers)}
    found = ew.evaluate_lbs(
        np.concatenate([train, strangers]), test, generators, n_fakes=[1], locations=where, rng=np.random.default_rng(8)
    )

    assert found.figure("uniform", 1)["median"] < 0.1
    assert found.figure("real", 1)["median"] > 0.3


def test_a_service_that_holds_the_pool_finds_everything():
    where, train, test = persons(np.random.default_rng(9))
    pool = (np.random.default_rng(10).permutation(train) + 1) % 40
    generators = {
        "ours": PoolGenerator(pool),
        "walk": walk_on_aggregate(ew.aggregate(ew.fit_profiles(ew.Traces(train, where)), where), 48),
    }
    found = ew.evaluate_lbs(
        train, test, generators, pool=pool, n_fakes=[1], locations=where, rng=np.random.default_rng(11), repeats=(2, 2)
    )

    # but where the truth stands at the fake's own place
    assert found.figure("ours", 1, "pool")["median"] == 0
    assert found.figure("ours", 1, "aggregate")["median"] > 0.1
    assert found.figure("walk", 1, "pool")["mean"] == pytest.approx(
        found.figure("walk", 1, "aggregate")["mean"], abs=0.05
    )


def test_overheads_count_the_truth():
    label = np.array([0, 0, 1, -1, -1])
    rng = np.random.default_rng(1)
    seen = np.array([True, True, False])
    same = Sightings.of(np.array([2, 3, 4]), np.array([[2, 3, 0], [2, 3, 0]]), seen, rng)
    other = Sightings.of(np.array([0, 3, 4]), np.array([[1, 4, 0], [2, 3, 0]]), seen, rng)
    nothing = Sightings.of(np.array([0, 3, 4]), np.array([[1, 4, 0]]), seen & False, rng)

    assert overhead(same, label) == (1, 1)
    # places 0, 1, 2 of two classes; places 3, 4 of unknown class
    assert overhead(other, label) == (2.5, 1.5)
    assert math.isnan(overhead(nothing, label)[0])
    assert math.isnan(overhead(same, None)[1])


def test_what_nobody_visited_is_unlikely_and_not_impossible():
    where = ew.Locations(n=4)
    model = ew.aggregate(ew.fit_profiles(ew.Traces([[0, 1, 0, 1]], where)), where)
    chain = chain_of(model, np.array([3]))

    assert chain.place.tolist() == [0, 1, 3]
    assert np.exp(chain.first) == pytest.approx((np.array([0.5, 0.5, 0]) + 0.01 / 4) / 1.01)
    assert np.array_equal(chain.p, model.block([0, 1, 3], [0, 1, 3]))
    assert popular(np.array([0.2, 0, 0.5, 0.3]), 2).tolist() == [2, 3]
    assert popular(np.array([0.2, 0, 0.5, 0.3])).tolist() == [0, 2, 3]


def test_knowledge_that_explains_nothing_leaves_a_guess():
    where = ew.Locations(n=5)
    model = ew.aggregate(ew.fit_profiles(ew.Traces([[0, 0, 0, 0]], where)), where, epsilon=0)
    log = Sightings.of(
        np.array([3, 3, 3, 3]), np.array([[4, 4, 4, 4]]), np.array([1, 1, 0, 1], dtype=bool), np.random.default_rng(1)
    )
    chain = chain_of(model, np.array([3, 4]))
    located, tracked = attack(log, chain, np.array([3, 3, 3, 3]), np.random.default_rng(1))

    assert located.tolist() == tracked.tolist() == [0.5, 0.5, 0, 0.5]


def test_fakes_never_protect_the_user_they_descend_from():
    rng = np.random.default_rng(1)
    fakes = np.arange(40)[:, None] * np.ones(3, dtype=int)
    maker = np.repeat(np.arange(8), 5)
    ours = PoolGenerator(fakes, maker)
    for user in range(9):
        given_ = np.concatenate([ours(user, 10, rng)[:, 0] for _ in range(40)])
        assert user not in maker[given_]
    assert len(np.unique(ours(0, 35, rng)[:, 0])) == 35
    with pytest.raises(ew.errors.NotEnoughUsers):
        ours(0, 36, rng)


def test_likely_fakes_are_chosen_more_often():
    make = PoolGenerator(np.arange(3)[:, None], np.array([0, 0, 1]), np.log([0.2, 0.8, 1.0]), own=True)
    rng = np.random.default_rng(3)
    drawn = np.array([make(0, 1, rng)[0, 0] for _ in range(2000)])

    assert set(drawn.tolist()) == {0, 1}
    assert (drawn == 1).mean() == pytest.approx(0.8, abs=Z * 0.4 / math.sqrt(2000))


def chi_square_fits(counts, law):
    """Pearson's statistic below its 1 - 1e-6 quantile (Wilson-Hilferty); cells of law 0 must be empty."""
    assert not np.any(counts[law == 0])
    counts, law = counts[law > 0], law[law > 0]
    expected = counts.sum() * law
    k = len(law) - 1
    bound = k * (1 - 2 / (9 * k) + 4.75 * math.sqrt(2 / (9 * k))) ** 3
    return ((counts - expected) ** 2 / expected).sum() < bound


def test_baselines_follow_their_laws():
    rng = np.random.default_rng(13)
    where = ew.Locations(xy=rng.random((5, 2)) * 4)
    traces = ew.Traces(rng.integers(5, size=(3, 20)) % np.array([[2], [3], [5]]), where)
    profiles = ew.fit_profiles(traces)
    model = ew.aggregate(profiles, where, epsilon=0.5)

    assert chi_square_fits(np.bincount(uniform_iid(5, 10)(0, 2000, rng).ravel(), minlength=5), np.full(5, 0.2))
    assert chi_square_fits(np.bincount(aggregate_iid(model, 10)(0, 2000, rng).ravel(), minlength=5), model.pi_bar)
    walks = walk_on_aggregate(model, 10)(0, 2000, rng)
    assert chi_square_fits(np.bincount(walks[:, 0], minlength=5), model.pi_bar)
    for r in range(5):
        after = walks[:, 1:][walks[:, :-1] == r]
        assert chi_square_fits(np.bincount(after, minlength=5), model.rows(r))
    own = walk_on_user(profiles, 10)(1, 2000, rng)
    u = profiles[1]
    assert chi_square_fits(np.bincount(own[:, 0], minlength=5)[u.support], u.pi_r)
    for k, r in enumerate(u.support):
        after = own[:, 1:][own[:, :-1] == r]
        assert chi_square_fits(np.bincount(after, minlength=5)[u.support], u.p()[k])


def test_walks_know_large_maps_and_dead_ends(monkeypatch):
    where = ew.Locations(n=6)
    model = ew.aggregate(ew.fit_profiles(ew.Traces([[0, 0, 1, 1], [2, 2, 3, 3]], where)), where)
    found = walk_on_aggregate(model, 4)(0, 50, np.random.default_rng(1))
    monkeypatch.setattr("elsewhere.evaluation.lbs.TABLE_PLACES", 2)

    assert np.array_equal(found, walk_on_aggregate(model, 4)(0, 50, np.random.default_rng(1)))
    # a place that is only ever the last one leads back to where the user lives
    u = ew.fit_profiles(ew.Traces([[0, 0, 5]], where))
    ends = walk_on_user(u, 60)(0, 50, np.random.default_rng(2))
    after = ends[:, 1:][ends[:, :-1] == 5]
    assert chi_square_fits(np.bincount(after, minlength=6)[[0, 5]], np.array([2 / 3, 1 / 3]))


@settings(max_examples=3)
@given(st.integers(0, 2**32))
def test_a_result_depends_on_its_arguments_alone(seed):
    where, train, test = persons(np.random.default_rng(1), U=5, L=8, R=6)
    generators = {"a": uniform_iid(6, 8), "b": walk_on_user(ew.fit_profiles(ew.Traces(train, where)), 8)}

    def run(**more):
        return ew.evaluate_lbs(
            train,
            test,
            generators,
            n_fakes=(2, 1),
            repeats=(2, 2),
            locations=where,
            rng=np.random.default_rng(seed),
            classes=np.arange(6) % 2,
            **more,
        )

    with ThreadPoolExecutor(2) as pool:
        first, again, threads = run(), run(), run(executor=pool)

    assert np.array_equal(first.error, again.error, equal_nan=True)
    assert np.array_equal(first.error, threads.error, equal_nan=True)
    assert first.to_dict() == threads.to_dict()
    assert 0 <= np.nanmin(first.error) <= np.nanmax(first.error) <= 1


def test_result_is_plain_and_names_its_axes():
    where, train, test = persons(np.random.default_rng(1), U=5, L=12, R=6)
    done = []
    found = ew.evaluate_lbs(
        train,
        test,
        {"uniform": uniform_iid(6, 12)},
        n_fakes=(1, 3),
        classes=np.arange(6) % 2,
        pool=train,
        locations=where,
        rng=np.random.default_rng(2),
        progress=lambda i, n: done.append((i, n)),
    )
    plain = json.loads(json.dumps(found.to_dict()))

    assert done == [(i, 5) for i in range(1, 6)]
    assert found.adversaries == ("aggregate", "user", "pool")
    assert found.error.shape == (5, 1, 2, 3, 2, 2)
    assert plain["generators"]["uniform"]["3"]["ceiling"] == 0.75
    figure = plain["generators"]["uniform"]["3"]["error"]["user"]["tracking"]["all"]
    each = found.error[:, 0, 1, 1, 1, 1]
    assert figure["median"] == pytest.approx(np.median(each))
    assert figure["interval"][0] <= figure["median"] <= figure["interval"][1]
    _, table, _ = lbs_tables(found)
    assert table.row_count == 2


def test_error_at_exposed_slots_and_at_all():
    # beta = 1: both are one; nothing exposed: no error at exposed slots
    where, train, test = persons(np.random.default_rng(1), U=4, L=10, R=6)
    always = ew.evaluate_lbs(
        train, test, {"u": uniform_iid(6, 10)}, beta=1, n_fakes=[1], locations=where, rng=np.random.default_rng(2)
    )
    hardly = ew.evaluate_lbs(
        train, test, {"u": uniform_iid(6, 10)}, beta=1e-12, n_fakes=[1], locations=where, rng=np.random.default_rng(2)
    )

    assert np.array_equal(always.error[..., 0], always.error[..., 1])
    assert np.isnan(hardly.error[..., 0]).all()
    assert np.isfinite(hardly.error[..., 1]).all()
    assert hardly.to_dict()["generators"]["u"]["1"]["error"]["aggregate"]["tracking"]["exposed"]["median"] is None


def test_missing_slots_are_never_sent_nor_counted():
    truth = np.array([[0, -1, 0, -1]] * 3)
    found = ew.evaluate_lbs(
        truth,
        truth,
        {"none": lambda user, n, rng: np.full((n, 4), -1)},
        n_fakes=[2],
        beta=1,
        rng=np.random.default_rng(1),
    )

    assert found.error[..., 0].max() == 0
    assert found.overhead[:, 0, 0, 0].tolist() == [1, 1, 1]


def test_users_are_matched_by_label():
    where, train, test = persons(np.random.default_rng(3), U=6)
    one = ew.Traces(train, where, users=list("abcdef"))
    two = ew.Traces(test[[5, 0, 3]], where, users=["f", "a", "z"])
    asked = set()

    def spy(user, n, rng):
        asked.add(user)
        return np.zeros((n, 48), dtype=int)

    found = ew.evaluate_lbs(one, two, {"spy": spy}, n_fakes=[1], rng=np.random.default_rng(1), repeats=(1, 1))

    assert asked == {5, 0, 6}  # "z" is nobody of train
    assert np.isnan(found.error[:, 0, 0, 1, 0, 0]).tolist() == [False, False, True]


ZEROS = np.zeros((3, 4), dtype=int)
ONE = {"a": uniform_iid(1, 4)}


@pytest.mark.parametrize(
    ("generators", "options", "code"),
    [
        (ONE, {"beta": 0}, "E_PARAM"),
        (ONE, {"beta": math.nan}, "E_PARAM"),
        (ONE, {"n_fakes": [0]}, "E_PARAM"),
        (ONE, {"n_fakes": []}, "E_PARAM"),
        (ONE, {"n_fakes": 5}, "E_PARAM"),
        (ONE, {"n_fakes": [1.5]}, "E_PARAM"),
        (ONE, {"repeats": (4,)}, "E_PARAM"),
        (ONE, {"repeats": (4, 0)}, "E_PARAM"),
        (ONE, {"rng": None}, "E_PARAM"),
        (ONE, {"classes": [0, 1]}, "E_MISMATCH"),
        (ONE, {"classes": [0.5]}, "E_MISMATCH"),
        (ONE, {"pool": ZEROS[:, :2]}, "E_SHAPE"),
        ({}, {}, "E_PARAM"),
        ({"a": 5}, {}, "E_PARAM"),
        (["a"], {}, "E_PARAM"),
        ({"a": lambda user, n, rng: np.zeros((n, 3), dtype=int)}, {}, "E_SHAPE"),
        ({"a": lambda user, n, rng: np.zeros((n, 4))}, {}, "E_SHAPE"),
        ({"a": lambda user, n, rng: np.full((n, 4), 7)}, {}, "E_INDEX"),
    ],
)
def test_bad_input_is_refused_with_a_code(generators, options, code):
    with pytest.raises(ew.ElsewhereError) as error:
        ew.evaluate_lbs(ZEROS, ZEROS, generators, **{"rng": np.random.default_rng(1), **options})

    assert error.value.code == code


def test_studentlife_in_the_shape_of_the_paper():
    if not STUDENTS.exists():
        pytest.skip("the StudentLife data are not beside the project")
    days = ew.read_visits(STUDENTS / "paperlike_30users_2days_72slots.csv.gz", places="merge").traces()
    first = np.flatnonzero(np.r_[True, days.user[1:] != days.user[:-1]])
    train, test = days.select(first), days.select(first + 1)
    profiles = ew.fit_profiles(train)
    model = ew.aggregate(profiles, train.locations)
    generators = {
        "uniform": uniform_iid(train.R, 72),
        "aggregate": aggregate_iid(model, 72),
        "walk_on_aggregate": walk_on_aggregate(model, 72),
        "walk_on_user": walk_on_user(profiles, 72),
    }
    found = ew.evaluate_lbs(train, test, generators, n_fakes=[10], repeats=(2, 2), rng=np.random.default_rng(1))
    error = {name: found.figure(name, 10)["median"] for name in generators}
    spread = {name: np.median(found.overhead[:, g, 0, 0]) for g, name in enumerate(generators)}

    # the order of the paper's figure: places drawn alone are seen through, walks less so, and cost fewer places
    assert error["uniform"] < error["aggregate"] < error["walk_on_aggregate"]
    assert spread["walk_on_user"] < spread["walk_on_aggregate"] < spread["uniform"]
    for name in ("walk_on_user", "walk_on_aggregate"):
        assert found.figure(name, 10, "user")["mean"] < found.figure(name, 10)["mean"]
