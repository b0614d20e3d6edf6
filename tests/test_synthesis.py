"""Both decoders and whole attempts: against enumeration, against the definition, and where the original tool broke."""

from fractions import Fraction
from math import fsum, inf, log

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pieces import PLAIN
from scipy.stats import chi2
from test_semseed import KEY, TWO, blur, numpy_stream, open_stream, within_wilson, worlds

import elsewhere as ew
from elsewhere.errors import InvalidParameter, NoFeasiblePath, Unfakeable
from elsewhere.paper import _generate_kernels as _kernels
from elsewhere.paper import generate_fake as attempt
from elsewhere.paper.generate_fake import Chain, ClassSets, FakeMaker, Pars

unhurried = settings(deadline=None)  # the first call compiles


@pytest.fixture(autouse=True)
def _wrapping_is_meant():
    with np.errstate(over="ignore", divide="ignore"):
        yield


def as_chain(first, p, L):
    """A table per step."""
    table = np.ascontiguousarray(p, dtype=float).reshape(L - 1, len(first), len(first))
    return Chain(np.log(np.array(first, float)), np.log(table), np.arange(L - 1))


def as_arrays(sets):
    """Offsets and places of candidate sets."""
    return np.cumsum([0, *map(len, sets)]), np.concatenate([np.array(places, dtype=np.int32) for places in sets])


def as_marks(sets):
    return np.array([[r in places for r in range(4)] for places in sets])


def viterbi_of(sets, first, p, par_v=1.0, number=0):
    """The path, None where there is none, and its ln Pr."""
    fake, chain = np.empty(len(sets), dtype=np.int32), as_chain(first, p, len(sets))
    if not _kernels.decode(chain, *as_arrays(sets), float(par_v), open_stream(number), fake):
        return None, -inf
    return tuple(fake.tolist()), chain.first[fake[0]] + chain.table[chain.pair, fake[:-1], fake[1:]].sum()


def ffbs_of(sets, first, p, number=0):
    return viterbi_of(sets, first, p, 0.0, number)


def log_z_of(sets, first, p):
    offset, places = as_arrays(sets)
    return _kernels.forward(as_chain(first, p, len(sets)), offset, places, np.zeros(len(places)))


DECODERS = [viterbi_of, ffbs_of]


def random_chain(rng, R, L, *, zeros=0.0, ties=False):
    """Candidate sets, a first law and a table per step, with equal probabilities and zeros on request."""
    shape = (L - 1, R, R)
    p = rng.integers(1, 4, shape) / 4 if ties else rng.random(shape)
    p = np.where(rng.random(shape) < zeros, 0.0, p)
    first = rng.integers(1, 3, R) / 2 if ties else rng.random(R)
    sets = [np.sort(rng.choice(R, rng.integers(1, R + 1), replace=False)).tolist() for _ in range(L)]
    return sets, first, p


def fits(counts, expected, alpha=1e-6):
    """Chi-square test of counts against expected ones, rare cells taken together."""
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    statistic = ((counts - expected) ** 2 / np.maximum(expected, 1e-300)).sum()
    return statistic <= chi2.isf(alpha, len(counts) - 1)


# exact Viterbi


def test_exact_viterbi_is_the_best_of_all_traces():
    rng = np.random.default_rng(1)
    infeasible = 0
    for case in range(1000):
        R, L = rng.integers(1, 5), rng.integers(1, 7)
        sets, first, p = random_chain(rng, R, L, zeros=0.4 * (case % 3 == 0), ties=case % 2 == 0)
        exact = [[[Fraction(x) for x in row] for row in table] for table in p]
        every = dict(naive.paths(sets, [Fraction(x) for x in first], exact))
        best = max(every.values())
        if best == 0:
            infeasible += 1
            assert viterbi_of(sets, first, p) == (None, -inf)
            continue
        path, loglik = viterbi_of(sets, first, p)

        assert float(every[path] / best) == pytest.approx(1, rel=1e-12)
        assert loglik == pytest.approx(log(best), abs=1e-12)
        if case % 2 == 0:  # quarters multiply without rounding: the lowest last place of the best, and so on back
            assert path == min((f for f, chance in every.items() if chance == best), key=lambda f: f[::-1])
    assert infeasible > 20


@pytest.mark.parametrize("decode", DECODERS)
def test_golden_uniform_chain_with_one_candidate(decode):
    path, *_ = decode([[17]] * 72, np.full(400, 1 / 400), np.broadcast_to(1 / 400, (71, 400, 400)))

    assert path == (17,) * 72


@pytest.mark.parametrize("decode", DECODERS)
def test_ten_thousand_slots_of_unlikely_moves(decode):
    # only 0 -> 1 -> 0 ... is possible, at 1e-12 per move
    L = 10_000
    p = np.broadcast_to(np.array([[0, 1e-12], [1e-12, 0]]), (L - 1, 2, 2))
    path, *_ = decode([[0]] + [[0, 1]] * (L - 1), [1.0, 0.0], p)

    assert path == tuple(t % 2 for t in range(L))


def test_ten_thousand_slots_are_decoded_exactly():
    # dwelling at 1 pays off only on the whole: .9^n against .5 .5 .8^n
    L = 10_000
    p = np.broadcast_to(np.array([[0.8, 0.2], [0.1, 0.9]]), (L - 1, 2, 2))
    path, loglik = viterbi_of([[0, 1]] * L, [1.0, 0.0], p)

    assert path == (0,) + (1,) * (L - 1)
    assert loglik == pytest.approx(log(0.2) + (L - 2) * log(0.9))


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize("tiny", [1e-12, 1e-200, 1e-310])
def test_a_dead_end_does_not_hide_the_unlikely_way(decode, tiny):
    # two tracks: 0 is comfortable and ends nowhere, 1 is far below the range of floats and the only way through
    L = 60
    p = np.zeros((L - 1, 3, 3))
    p[:, 0, 0], p[:, 1, 1] = 1.0, tiny
    p[-1] = 0
    p[-1, 1, 2] = 1.0
    sets, first = [[0, 1]] * (L - 1) + [[2]], [0.5, 0.5, 0.0]
    path, loglik = decode(sets, first, p)

    assert path == (1,) * (L - 1) + (2,)
    assert loglik == pytest.approx(log(0.5) + (L - 2) * log(tiny))
    assert loglik - log_z_of(sets, first, p) == pytest.approx(0, abs=1e-6)


def test_exact_viterbi_beyond_the_range_of_floats():
    # the second track is behind by 1e-360 and wins by 1e-361 at the last step
    L, tiny = 32, 1e-12
    p = np.zeros((L - 1, 3, 3))
    p[:, 0, 0], p[:, 1, 1] = 1.0, tiny
    p[-1] = 0
    p[-1, 0, 2], p[-1, 1, 2] = 0.0, 1.0
    p[-1, 0, 2] = 1e-300
    assert viterbi_of([[0, 1]] * (L - 1) + [[2]], [0.5, 0.5, 0], p)[0] == (0,) * (L - 1) + (2,)
    p[10, 0, 0] = 1e-300
    assert viterbi_of([[0, 1]] * (L - 1) + [[2]], [0.5, 0.5, 0], p)[0] == (1,) * (L - 1) + (2,)


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize("at", [0, 2, 4])
def test_no_way_through_is_an_error_never_a_place(decode, at):
    first, p = np.ones(3), np.ones((4, 3, 3))
    if at == 0:
        first[:] = 0
    else:
        p[at - 1] = 0
    assert decode([[0, 1, 2]] * 5, first, p) == (None, -inf)


def test_the_box_refuses_sets_without_a_way_through():
    traces = ew.Traces([[0, 0, 1, 1]], ew.Locations(n=4))
    model = ew.aggregate(ew.fit_profiles(traces), traces.locations)
    with pytest.raises(NoFeasiblePath) as caught:  # nobody is ever at 2 or 3
        attempt.hmm_decode(as_marks([{2}, {2, 3}]), model, 4.0, open_stream(0))
    assert caught.value.code == "E_PATH"
    for sets in ([set(), {0}], [{0}, set(), {0}], [{0}, set()]):
        with pytest.raises(Unfakeable):
            attempt.hmm_decode(as_marks(sets), model, 4.0, open_stream(0))


@pytest.mark.parametrize("decode", DECODERS)
def test_a_single_instant(decode):
    assert decode([[1]], [0.5, 0.5], [])[0] == (1,)


# randomised Viterbi


def test_numbers_drawn_only_where_they_can_win_give_the_path_of_all_numbers():
    rng = np.random.default_rng(2)
    drawn = edges = 0
    for case in range(200):
        R, L, par_v = rng.integers(2, 7), rng.integers(2, 9), (1.5, 4.0, 20.0)[case % 3]
        sets, first, p = random_chain(rng, R, L)
        x_first, some = naive.edges_that_draw(sets, first, p, par_v, numpy_stream(KEY, case, 0).random)
        every = {
            (t, r, s): some.get((t, r, s), rng.uniform(1, par_v))
            for t in range(L - 1)
            for r in sets[t]
            for s in sets[t + 1]
        }
        drawn, edges = drawn + len(some), edges + len(every)

        assert naive.randomised_viterbi(sets, first, p, x_first, every) == viterbi_of(sets, first, p, par_v, case)[0]
    assert drawn < 0.7 * edges


def test_beyond_the_range_of_floats_the_same_numbers_give_the_path_of_exact_arithmetic():
    rng = np.random.default_rng(8)
    for case in range(60):
        sets, first, p = random_chain(rng, 4, 12, zeros=0.2)
        p *= 10.0 ** -rng.integers(0, 150, p.shape)
        exact = [[[Fraction(x) for x in row] for row in table] for table in p]
        law, stream = [Fraction(x) for x in first], numpy_stream(KEY, case, 0)
        x_first, x = naive.edges_that_draw(sets, law, exact, 4, lambda: Fraction(stream.random()))  # noqa: B023
        x = dict.fromkeys(((t, r, s) for t in range(11) for r in sets[t] for s in sets[t + 1]), 1) | x
        expected = naive.randomised_viterbi(sets, law, exact, x_first, x)
        assert expected == viterbi_of(sets, first, p, 4.0, case)[0]


def test_randomised_viterbi_has_the_law_of_its_definition():
    rng = np.random.default_rng(3)
    sets, first, p = [[0, 1, 2], [0, 2], [0, 1, 2], [1, 2]], rng.random(3) + 0.5, rng.random((3, 3, 3)) + 0.3
    n = 20_000
    counts = {}
    for _ in range(n):
        numbers = iter((1 + 3 * rng.random(40)).tolist())
        x_first = {r: next(numbers) for r in sets[0]}
        x = {(t, r, s): next(numbers) for t in range(3) for r in sets[t] for s in sets[t + 1]}
        path = naive.randomised_viterbi(sets, first, p, x_first, x)
        counts.setdefault(path, [0, 0])[0] += 1
    arrays, fake, chain = as_arrays(sets), np.empty(4, dtype=np.int32), as_chain(first, p, 4)
    for i in range(n):
        assert _kernels.viterbi(chain, *arrays, 4.0, open_stream(i), fake)
        counts.setdefault(tuple(fake.tolist()), [0, 0])[1] += 1
    table = np.array(list(counts.values()), float)
    table = np.vstack([table[table.sum(axis=1) >= 20], table[table.sum(axis=1) < 20].sum(axis=0)])
    table = table[table.sum(axis=1) > 0]
    expected = table.sum(axis=1, keepdims=True) / 2

    assert len(table) > 8
    assert ((table - expected) ** 2 / expected).sum() <= chi2.isf(1e-6, len(table) - 1)


# the posterior


@pytest.mark.parametrize("scale", [1.0, 1e-160], ids=["in the range of floats", "far below"])
def test_ffbs_draws_from_the_posterior(scale):
    rng = np.random.default_rng(4)
    sets = [[0, 1, 2], [0, 2], [0, 1, 2], [1, 2]]
    first, p = rng.random(3), rng.random((3, 3, 3))
    p[1, 0, 1] = p[2, 2, 2] = 0
    p *= scale
    wide = naive.paths(sets, [Fraction(x) for x in first], [[[Fraction(x) for x in row] for row in t] for t in p])
    chance = {path: float(c * 10**480 if scale < 1 else c) for path, c in wide}
    total = fsum(chance.values())
    for i in range(100):
        path, loglik = ffbs_of(sets, first, p, number=i)
        assert loglik - log_z_of(sets, first, p) == pytest.approx(log(chance[path] / total), abs=1e-9)

    n, counts = 2_000 if PLAIN else 50_000, dict.fromkeys(chance, 0)
    arrays, chain = as_arrays(sets), as_chain(first, p, 4)
    alpha, fake = np.zeros(10), np.empty(4, dtype=np.int32)
    _kernels.forward(chain, *arrays, alpha)
    stream = open_stream(0)
    for _ in range(n):
        assert _kernels.backward(chain, *arrays, alpha, stream, fake)
        counts[tuple(fake.tolist())] += 1

    assert all(counts[path] == 0 for path in chance if chance[path] == 0)
    assert fits(list(counts.values()), [n * c / total for c in chance.values()])


def test_ffbs_probabilities_sum_to_one():
    rng = np.random.default_rng(5)
    sets, first, p = random_chain(rng, 3, 4)
    sets = [[0, 1, 2]] * 4
    every = dict(naive.paths(sets, first, p))

    assert np.exp(log_z_of(sets, first, p)) == pytest.approx(fsum(every.values()), rel=1e-12)


def test_no_place_is_favoured_on_a_uniform_chain():
    n, sets = 4000, [[0, 3, 4], [1, 2, 3, 5], [0, 5]]
    counts = [np.zeros(6), np.zeros(6), np.zeros(6)]
    for i in range(n):
        for t, r in enumerate(ffbs_of(sets, np.full(6, 1 / 6), np.full((2, 6, 6), 1 / 6), number=i)[0]):
            counts[t][r] += 1
    for t, places in enumerate(sets):
        assert counts[t].sum() == counts[t][places].sum() == n
        assert fits(counts[t][places], [n / len(places)] * len(places))


# whole attempts


def small_model(rng, R, U=12, L=8, **options):
    r = rng.integers(0, R, (U, L))
    traces = ew.Traces(r, ew.Locations(xy=rng.random((R, 2)) * 5))
    return ew.aggregate(ew.fit_profiles(traces), traces.locations, **options)


@given(worlds(), st.sampled_from([4.0, 0.0]), st.integers(0, 2**32))
@unhurried
def test_a_fake_is_in_its_semantic_seed_and_nowhere_else(world, par_v, number):
    seed, label, nearness, allowed, pars = world
    classes = ClassSets.of(
        ew.SemanticClasses(label, nearness), model_places=None if allowed is None else np.array(allowed)
    )
    model = small_model(np.random.default_rng(number), len(label))
    maker = FakeMaker(model, classes, np.zeros(len(seed), dtype=int), pars._replace(par_v=par_v), KEY)

    made = maker.attempt([seed], rows=[5], tries=[number])[0]

    sets, _ = blur(seed, classes, pars, open_stream(number, 5))
    if sets is None or not np.any(model.pi_bar[sets[0]] > 0):  # p_bar has no zero
        assert np.all(made == -1)
    else:
        assert all(r in places for r, places in zip(made.tolist(), sets, strict=True))
        assert pars.par_l < 1 or not np.any(made == seed)


@pytest.fixture(scope="module")
def town():
    """A model over four periods, and seeds that include what cannot be faked."""
    rng = np.random.default_rng(6)
    r = rng.integers(0, 24, (40, 24))
    r[:, 1:] = np.where(rng.random((40, 23)) < 0.7, r[:, :-1], r[:, 1:])
    traces = ew.Traces(r, ew.Locations(xy=rng.random((24, 2)) * 5), step_minutes=60)
    model = ew.aggregate(ew.fit_profiles(traces, periods=4), traces.locations)
    label = np.append(np.repeat(np.arange(4), 5), [4, 4, 4, 5])
    return traces, model, ClassSets.of(label), ew.Periods.of(4).of_minute(traces.minutes())


SAMPLERS = pytest.mark.parametrize("par_v", [4.0, 0.0], ids=["viterbi", "ffbs"])


def maker(town, par_v, **pars):
    _, model, classes, tau = town
    return FakeMaker(model, classes, tau, Pars(par_v=par_v, **pars), KEY)


@SAMPLERS
def test_an_attempt_depends_on_its_own_numbers_alone(town, par_v):
    seeds, made = town[0].r, maker(town, par_v)
    together = made.attempt(np.repeat(seeds, 3, axis=0), rows=np.repeat(np.arange(40), 3), tries=np.tile([0, 1, 2], 40))
    for i in (0, 7, 119):
        alone = made.attempt(seeds[[i // 3]], rows=[i // 3], tries=[i % 3])
        assert np.array_equal(alone[0], together[i])
    assert len({tuple(fake) for fake in together.tolist()}) > 100


def test_what_the_model_cannot_compute_at_a_time_is_refused(town, monkeypatch):
    monkeypatch.setattr(attempt, "LARGEST_ANSWER", 3)
    with pytest.raises(InvalidParameter) as caught:
        maker(town, 4.0).attempt(town[0].r[:2], rows=[0, 1], tries=0)
    assert caught.value.code == "E_TOO_LARGE"


def test_the_key_of_a_run_is_never_shown(town):
    assert str(KEY[0]) not in repr(maker(town, 4.0))


def test_the_chain_of_a_model_gives_its_loglik(town):
    traces, model, _, tau = town
    path, sets = traces.r[:1], [[r] for r in traces.r[0].tolist()]
    chain = attempt.chain_of(model, tau, np.arange(24))

    fake = np.empty(24, dtype=np.int32)
    assert _kernels.decode(chain, *as_arrays(sets), 1.0, open_stream(0), fake)

    assert fake.tolist() == path[0].tolist()
    loglik = _kernels.forward(chain, *as_arrays(sets), np.zeros(24))  # of the only path
    assert loglik == pytest.approx(model.loglik(path, tau)[0], rel=1e-12)


@SAMPLERS
def test_par_l_1_is_never_where_the_seed_is_and_par_m_0_keeps_its_classes(town, par_v):
    traces, _, classes, _ = town
    seeds = traces.r[:, :1].repeat(24, axis=1)  # one place each: no class is used up
    seeds = seeds[classes.label[seeds[:, 0]] < 5]
    seeds[:, 12:] = (seeds[:, 12:] // 5 * 5 + 7) % 20
    made = maker(town, par_v, par_m=0.0).attempt(seeds, rows=np.arange(len(seeds)), tries=0)

    assert np.all(made >= 0)
    assert (made != seeds).all()
    assert np.array_equal(classes.label[made], classes.label[seeds])


@pytest.mark.parametrize(("par_l", "share"), [(0.0, 0.75), (0.1, 0.75 * 0.9**30)])
def test_share_of_fakes_constant_at_a_constant_seed(par_l, share):
    # staying at place 0 is the best one can do: the fake does it whenever its candidate sets allow it (E39, E40)
    stay, hop = np.zeros((20, 30), dtype=int), [[k, k + 11] * 15 for k in range(1, 13)]
    traces = ew.Traces(np.vstack([stay, hop]), ew.Locations(n=24))
    model = ew.aggregate(ew.fit_profiles(traces), traces.locations)
    made = FakeMaker(model, ClassSets.of(TWO), np.zeros(30, dtype=int), Pars(par_l=par_l, par_v=1.0), KEY).attempt(
        np.zeros((20_000, 30), dtype=int), rows=0, tries=np.arange(20_000)
    )

    assert np.all(made >= 0)
    assert within_wilson(np.count_nonzero(np.all(made == 0, axis=1)), 20_000, share)


def test_forbidden_moves_are_never_made(town):
    rng = np.random.default_rng(7)
    feasible = rng.random((24, 24)) < 0.5
    np.fill_diagonal(feasible, True)
    traces, _, classes, tau = town
    model = ew.aggregate(ew.fit_profiles(traces, periods=4), traces.locations, feasible=feasible)
    for par_v in (4.0, 0.0):
        made = FakeMaker(model, classes, tau, Pars(par_m=0.0, par_v=par_v), KEY).attempt(
            np.tile(traces.r, (10, 1)), rows=np.tile(np.arange(40), 10), tries=np.repeat(np.arange(10), 40)
        )
        fakes = made[made[:, 0] >= 0]
        assert 0 < len(fakes) < len(made)
        assert np.all(feasible[fakes[:, :-1], fakes[:, 1:]])


@pytest.mark.parametrize("par_v", [0.99, 0, -1, inf, float("nan"), "4x"])
def test_par_v_out_of_range(par_v, town):
    with pytest.raises(InvalidParameter, match="`par_v` must be") as caught:
        ew.generate_fake(town[0].r[0], town[2].label, town[1], par_v=par_v, rng=np.random.default_rng(1))
    assert (caught.value.code, caught.value.parameter) == ("E_PARAM", "par_v")
