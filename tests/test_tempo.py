"""The tempo sampler: its law by enumeration, its returns, and a pace that is the people's."""

import itertools

import naive
import numpy as np
import pytest
from scipy import stats

import elsewhere as ew
from elsewhere.synthesis import _kernels as base
from elsewhere.synthesis.attempt import OK, Chain, FakeMaker
from elsewhere.synthesis.semseed import Blur, ClassSets
from elsewhere.synthesis.tempo import _kernels
from elsewhere.synthesis.tempo.tempo import Tempo, TempoMaker, calibrated, comes_home, rates

ALPHA = 1e-6
KEY = np.array([3, 4], dtype=np.uint64)


def maker(traces, label, sampler="ffbs", **blur):
    model = ew.aggregate(ew.fit_profiles(traces), traces.locations, epsilon=0.5)
    return FakeMaker(model, ClassSets.of(label), np.zeros(traces.L, dtype=int), Blur(**blur), sampler, KEY)


def draws(chain, sets, stay, back, n, *, home=0.0, turn=None, xy=None, far=None, length=None):
    R = chain.table.shape[1]
    ground = (np.zeros((R, R), np.uint8) if length is None else length, np.zeros((0, 2)) if xy is None else xy)
    ground = (*ground, np.zeros(len(sets), dtype=np.int64))
    pace = (
        np.reshape(stay, (1, 2)),
        back,
        home,
        np.ones((2, 5)) if turn is None else turn,
        np.ones(1) if far is None else far,
    )
    offset = np.cumsum([0, *map(len, sets)])
    places = np.concatenate(sets).astype(np.int32)
    fakes = np.full((n, len(sets)), -1, dtype=np.int32)
    seen = np.zeros(chain.table.shape[1], dtype=bool)
    for i in range(n):
        stream = base.open_stream(KEY, np.uint64(i), np.uint64(0))
        assert _kernels.walk(chain, ground, offset, places, pace, stream, fakes[i], seen)
    assert not seen.any()
    return fakes


@pytest.mark.parametrize("stay", [(1.0, 1.0), (0.3, 2.5)])
def test_the_law_by_enumeration(stay):
    rng = np.random.default_rng(1)
    traces = ew.Traces(rng.integers(0, 4, (6, 4)), ew.Locations(n=4))
    made = maker(traces, [0, 0, 0, 0])
    sets = [[0, 1, 3], [0, 2, 3], [1, 2, 3], [0, 3]]
    law = naive.tempo_law(sets, made.chain.first.tolist(), made.chain.table[0].tolist(), stay)

    fakes = draws(made.chain, sets, np.array(stay), 1.0, 20_000)

    every = list(itertools.product(*sets))
    where = {f: i for i, f in enumerate(every)}
    seen = np.bincount([where[tuple(f)] for f in fakes.tolist()], minlength=len(every))
    expected = np.array([law[f] for f in every]) * len(fakes)
    assert expected.min() > 5
    assert stats.chisquare(seen, expected).pvalue > ALPHA


def test_the_law_of_moves_by_length_by_enumeration():
    rng = np.random.default_rng(1)
    traces = ew.Traces(rng.integers(0, 4, (6, 4)), ew.Locations(n=4))
    made = maker(traces, [0, 0, 0, 0])
    sets = [[0, 1, 3], [0, 2, 3], [1, 2, 3], [0, 3]]
    length = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], dtype=np.uint8)
    far = np.array([1.0, 0.2])
    # moves of length 1 are a fifth as likely; staying is not a move
    table = made.chain.table[0] * np.where(np.eye(4, dtype=bool), 1.0, far[length])
    law = naive.tempo_law(sets, made.chain.first.tolist(), table.tolist(), (0.3, 2.5))

    fakes = draws(made.chain, sets, np.array([0.3, 2.5]), 1.0, 20_000, far=far, length=length)

    every = list(itertools.product(*sets))
    where = {f: i for i, f in enumerate(every)}
    seen = np.bincount([where[tuple(f)] for f in fakes.tolist()], minlength=len(every))
    expected = np.array([law[f] for f in every]) * len(fakes)
    keep = expected > 5
    rest = [seen[~keep].sum(), expected[~keep].sum()]
    seen, expected = np.append(seen[keep], rest[0]), np.append(expected[keep], rest[1])
    assert stats.chisquare(seen, expected).pvalue > ALPHA


def test_turns_by_hand_and_straight_on_where_that_is_liked():
    xy = np.array([[x, y] for x in range(5) for y in range(5)], dtype=float)
    out = np.zeros((2, 5))
    # east, east at once; then a pause and about face; a gap ends the trip
    _kernels.bends(np.array([[0, 5, 10, 10, 5, -1, 0, 1]], dtype=np.int32), xy, out)
    assert out.tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]

    chain = Chain(np.full(25, 1 / 25), np.full((1, 25, 25), 1 / 25), np.zeros(5, dtype=np.int64))
    fakes = draws(
        chain, [list(range(25))] * 6, np.array([1e-3, 1e-3]), 1.0, 300, xy=xy, turn=np.array([[1e-3] * 4 + [1.0]] * 2)
    )
    met = np.zeros((2, 5))
    _kernels.bends(fakes, xy, met)
    free = np.zeros((2, 5))
    _kernels.bends(draws(chain, [list(range(25))] * 6, np.array([1e-3, 1e-3]), 1.0, 300, xy=xy), xy, free)
    assert met[:, 4].sum() / met.sum() > 2 * free[:, 4].sum() / free.sum()


def test_no_return_where_there_is_another_way():
    traces = ew.Traces(np.random.default_rng(2).integers(0, 8, (20, 6)), ew.Locations(n=8))
    made = maker(traces, [0] * 8)
    sets = [list(range(8))] * 6

    fakes = draws(made.chain, sets, np.array([1e-3, 1e-3]), 1e-9, 300)

    assert max(6 - len(set(f)) for f in fakes.tolist()) <= 1
    assert np.mean([len(set(f)) for f in fakes.tolist()]) > 5.9


def test_always_inside_the_candidate_sets_and_never_at_the_seed():
    town = ew.simulate_town(users=40, locations=80, rng=np.random.default_rng(5)).traces
    label = np.where(np.isin(np.arange(80), town.r), np.arange(80) % 4, -1)
    made = calibrated(maker(town, label, strict=True), town.r, np.array([7, 8], dtype=np.uint64))

    out = made.attempt(town.r, rows=np.arange(40), tries=0)

    good = out.status == OK
    assert good.any()
    assert (label[out.r[good]] >= 0).all()
    for fake, seed in zip(out.r[good], town.r[good], strict=True):
        assert not set(fake.tolist()) & set(seed.tolist())
    assert np.isfinite(out.loglik[good]).all()


def test_an_infeasible_path_is_said_to_be_one():
    traces = ew.Traces([[0, 1, 0, 1], [1, 0, 1, 0]], ew.Locations(n=2))
    feasible = np.array([[1, 0], [0, 1]])
    model = ew.aggregate(ew.fit_profiles(traces), traces.locations, feasible=feasible)
    plain = FakeMaker(model, ClassSets.of([0, 1]), np.zeros(4, dtype=int), Blur(par_l=0.0, par_m=0), "ffbs", KEY)
    out = TempoMaker(plain, Tempo.even(np.ones(1), np.zeros(0))).attempt(traces.r, rows=[0, 1], tries=0)
    assert (out.status != OK).all()
    assert (out.r == -1).all()
    assert np.isneginf(out.loglik).all()


def test_fakes_move_and_return_as_often_as_people_do():
    town = ew.simulate_town(users=400, locations=150, rng=np.random.default_rng(6)).traces
    learnt = ew.learn(town, ew.Preset("product", m_min=2), kappa=5, rng=np.random.default_rng(1))
    people = learnt.translate(town).r
    plain = FakeMaker(
        learnt.model, ClassSets.of(learnt.classes.label), learnt.tau(town), Blur(strict=True, c_min=5), "ffbs", KEY
    )
    paced = calibrated(plain, people, np.array([1, 2], dtype=np.uint64))

    def life(r):
        return np.array(
            [np.count_nonzero(r[:, 1:] != r[:, :-1], axis=1).mean(), np.mean([len(set(x)) for x in r.tolist()])]
        )

    real = life(people)
    for made, close in ((paced, True), (plain, False)):
        out = made.attempt(people, rows=np.arange(len(people)), tries=0)
        fakes = life(out.r[out.status == OK])
        assert (np.abs(fakes / real - 1) < 0.15).all() == close


def test_rates_by_hand():
    # a a b c c a: steps stay, move, move, stay, move; one of the three moves returns
    moving, returning = rates(np.array([[0, 0, 1, 2, 2, 0]]))
    assert moving.tolist() == [pytest.approx([2 / 3, 1 / 2])]
    assert returning == pytest.approx(1 / 3)
    # in two parts: stay, move, move | stay, move
    moving, _ = rates(np.array([[0, 0, 1, 2, 2, 0]]), np.array([0, 0, 0, 1, 1, 1]))
    assert moving.ravel().tolist() == pytest.approx([1 / 2, 0.995, 0.995, 0.005])


def test_a_day_that_comes_home_has_the_law_given_that():
    rng = np.random.default_rng(1)
    traces = ew.Traces(rng.integers(0, 4, (6, 4)), ew.Locations(n=4))
    made = maker(traces, [0, 0, 0, 0])
    sets = [[0, 1, 3], [0, 2, 3], [1, 2, 3], [0, 1, 2, 3]]
    law = naive.tempo_law(sets, made.chain.first.tolist(), made.chain.table[0].tolist(), (0.3, 2.5))
    every = list(itertools.product(*sets))
    # the end is drawn as ever; where the day can begin there, the rest of it is drawn given that it does
    expected = dict.fromkeys(every, 0.0)
    for end in sets[-1]:
        chance = sum(law[f] for f in every if f[-1] == end)
        closed = [f for f in every if f[-1] == end and (f[0] == end or end not in sets[0])]
        total = sum(law[f] for f in closed)
        for f in closed:
            expected[f] += chance * law[f] / total
    # an end (2) without a beginning: the end is drawn once more
    lost = sum(expected[f] for f in every if f[-1] == 2)
    expected = {f: p * (f[-1] != 2) + lost * law[f] for f, p in expected.items()}

    fakes = draws(made.chain, sets, np.array([0.3, 2.5]), 1.0, 20_000, home=1.0)

    where = {f: i for i, f in enumerate(every)}
    seen = np.bincount([where[tuple(f)] for f in fakes.tolist()], minlength=len(every))
    wanted = np.array([expected[f] for f in every]) * len(fakes)
    keep = wanted > 5
    seen, wanted = np.append(seen[keep], seen[~keep].sum()), np.append(wanted[keep], wanted[~keep].sum())
    assert stats.chisquare(seen, wanted).pvalue > ALPHA
    assert np.mean(fakes[:, 0] == fakes[:, -1]) > 0.7


def test_people_who_sleep_at_home_have_fakes_that_do():
    town = ew.simulate_town(users=300, locations=120, rng=np.random.default_rng(6)).traces
    learnt = ew.learn(town, ew.Preset("product", m_min=2), kappa=5, rng=np.random.default_rng(1))
    people = learnt.translate(town).r
    plain = FakeMaker(
        learnt.model, ClassSets.of(learnt.classes.label), learnt.tau(town), Blur(strict=True, c_min=5), "ffbs", KEY
    )
    out = calibrated(plain, people, np.array([1, 2], dtype=np.uint64)).attempt(people, rows=np.arange(300), tries=0)
    fakes = out.r[out.status == OK]
    night = [np.mean(r[:, 1:13] != r[:, :12]) for r in (people, fakes)]
    assert night[1] < 2 * night[0] + 0.01
    assert comes_home(fakes) > comes_home(people) - 0.25


def test_same_key_same_fakes():
    town = ew.simulate_town(users=30, locations=60, rng=np.random.default_rng(5)).traces
    label = np.where(np.isin(np.arange(60), town.r), np.arange(60) % 3, -1)
    one, two = (calibrated(maker(town, label), town.r, np.array([7, 8], dtype=np.uint64)) for _ in range(2))
    assert np.array_equal(one.tempo.stay, two.tempo.stay)
    half = one.attempt(town.r[15:], rows=np.arange(15, 30), tries=2).r
    assert np.array_equal(two.attempt(town.r, rows=np.arange(30), tries=2).r[15:], half)
