"""The semantic seed: sub-sampling, merging, removal and the ladder, against definition, closed form and fixtures."""

from statistics import NormalDist

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.errors import ElsewhereError, InvalidParameter
from elsewhere.paper import _generate_kernels as _kernels
from elsewhere.paper.generate_fake import (
    ClassSets,
    Pars,
    generate_fake,
)

KEY = np.array([0x0123456789ABCDEF, 0xFEDCBA9876543210], dtype=np.uint64)
WORD = st.integers(0, 2**64 - 1)
unhurried = settings(deadline=None)  # the first call compiles


@pytest.fixture(autouse=True)
def _wrapping_is_meant():
    # with the JIT off, numpy scalars warn when the generator wraps around
    with np.errstate(over="ignore"):
        yield


def numpy_stream(key, attempt, row):
    return np.random.Generator(np.random.Philox(key=key, counter=np.array([0, attempt, row, 0], dtype=np.uint64)))


def open_stream(attempt, row=0):
    return _kernels.open_stream(KEY, np.uint64(attempt), np.uint64(row))


def blur(seed, classes, pars, stream):
    """The compiled semantic seed: the sets and the step of each; None and the slot that cannot be faked."""
    semseed, step = _kernels.semantic_seed(np.array(seed, dtype=np.int32), classes, pars, stream)
    if step.min() < 0:
        return None, int(np.argmin(step))
    return [np.flatnonzero(row).tolist() for row in semseed], step.tolist()


def semantic_seed(seed, label, *, nearness=None, model_places=None, **pars):
    """The semantic seed of one trace, from plain arrays."""
    classes = ClassSets.of(ew.SemanticClasses(label, nearness), model_places=model_places)
    return blur(seed, classes, Pars(**pars), open_stream(3))


def within_wilson(hits, n, chance, alpha=1e-6):
    z = NormalDist().inv_cdf(1 - alpha / 2)
    share = hits / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return abs(middle - chance) <= half


@pytest.mark.parametrize(
    ("counter", "key", "block"),
    [
        ("0" * 64, "0" * 32, "16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b"),
        ("f" * 64, "f" * 32, "87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0"),
        (
            "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
            "452821e638d01377be5466cf34e90c6c",
            "a528f45403e61d95 38c72dbd566e9788 a5a1610e72fd18b5 57bd43b5e52b7fe6",
        ),
    ],
)
def test_philox_gives_the_published_answers(counter, key, block):
    """Known answers of philox4x64-10 in Random123's kat_vectors."""

    def words(digits):
        return [int(digits[i : i + 16], 16) for i in range(0, len(digits), 16)]

    expected = [int(word, 16) for word in block.split()]
    stream = np.array([*words(key), *words(counter), 0, 0, 0, 0, 4], dtype=np.uint64)
    stream[2] -= np.uint64(1)  # the counter is advanced before each block
    _kernels.uniform(stream)

    assert expected == naive.philox(words(counter), words(key))
    assert expected == stream[6:10].tolist()


@given(st.tuples(WORD, WORD), WORD, WORD)
@unhurried
def test_a_stream_is_that_of_numpy(key, attempt, row):
    words = np.array(key, dtype=np.uint64)
    stream = _kernels.open_stream(words, np.uint64(attempt), np.uint64(row))

    assert numpy_stream(words, attempt, row).random(11).tolist() == [_kernels.uniform(stream) for _ in range(11)]
    assert naive.philox([3, attempt, row, 0], key) == stream[6:10].tolist()


def test_no_two_attempts_share_a_stream():
    blocks = set()
    for row in range(60):
        for attempt in range(60):
            stream = open_stream(attempt, row)
            _kernels.uniform(stream)
            blocks.add(tuple(stream[6:10].tolist()))

    assert len(blocks) == 3600


@st.composite
def worlds(draw):
    """A random partition (singletons and unknown places included), a seed with gaps, and every parameter."""
    R = draw(st.integers(1, 9))
    kappa = draw(st.integers(1, R))
    drawn = draw(st.lists(st.integers(-1, kappa - 1), min_size=R, max_size=R).filter(lambda label: max(label) >= 0))
    classes = sorted({c for c in drawn if c >= 0})  # numbered without gaps
    label, kappa = [classes.index(c) if c >= 0 else -1 for c in drawn], len(classes)
    nearness = draw(
        st.lists(st.lists(st.integers(0, 3), min_size=kappa, max_size=kappa), min_size=kappa, max_size=kappa)
    )
    seed = draw(st.lists(st.integers(-1, R - 1), min_size=1, max_size=12))
    allowed = draw(st.none() | st.lists(st.booleans(), min_size=R, max_size=R))
    pars = Pars(
        par_c=draw(st.sampled_from([0.0, 0.25, 0.6, 0.95])),
        par_m=draw(st.sampled_from([0.0, 0.5, 0.75, 0.9])),
        par_l=draw(st.sampled_from([0.0, 0.4, 1.0])),
        c_min=draw(st.integers(1, 4)),
    )
    return seed, label, np.array(nearness, dtype=float).reshape(kappa, kappa), allowed, pars


def naive_sets(seed, label, nearness, allowed, pars, number):
    kappa = len(nearness)
    nearest = {c: sorted(set(range(kappa)) - {c}, key=lambda k: -nearness[c][k]) for c in range(kappa)}
    places = {r for r in range(len(label)) if allowed is None or allowed[r]}
    of = {name: getattr(pars, name) for name in ("par_c", "par_m", "par_l", "c_min")}
    return naive.semantic_seed(seed, label, nearest, number, **of, allowed=places)


@given(worlds(), st.integers(0, 1000))
@settings(deadline=None, max_examples=400)
def test_equals_the_definition_number_for_number(world, attempt):
    seed, label, nearness, allowed, pars = world
    classes = ClassSets.of(
        ew.SemanticClasses(label, nearness), model_places=None if allowed is None else np.array(allowed)
    )
    sets, steps = blur(seed, classes, pars, open_stream(attempt))

    assert (sets, steps) == naive_sets(*world, numpy_stream(KEY, attempt, 0).random)
    for t, places in enumerate(sets or []):
        assert places
        assert all(label[r] >= 0 for r in places)
        assert pars.par_l < 1 or seed[t] not in places


TWO = [0] * 12 + [1] * 12  # two classes of twelve: hardly ever emptied by sub-sampling


def draws(seed, label, n, **pars):
    classes = ClassSets.of(label)
    return [blur(seed, classes, Pars(**pars), open_stream(i))[0] for i in range(n)]


def test_one_sub_sample_per_fake():
    fakes = draws([0, 0, 12, 0, 12], TWO, 50, par_m=0.0, par_l=0.0)

    for first, second, other, third, last in fakes:
        assert first == second == third
        assert other == last
    assert len({tuple(sets[0]) for sets in fakes}) > 40


def test_a_place_removed_from_one_widened_class_is_removed_from_all():
    # both classes are widened with the other, so both are all places
    for one, other in draws([0, 12], TWO, 50, par_m=0.0, par_l=0.0, c_min=15):
        assert one == other
        assert len(one) < 24


def test_a_class_is_never_emptied():
    label = [0, 1, 1, 2, 2, 2]
    survivors = np.zeros(6, dtype=int)
    for sets in draws([0, 1, 3, 3], label, 4000, par_c=0.999999, par_m=0.0, par_l=0.0):
        assert sets[0] == [0]
        assert set(sets[1]) <= {1, 2}
        assert len(sets[2])
        survivors[sets[2]] += 1
    assert all(within_wilson(hits, 4000, 1 / 3) for hits in survivors[3:])


GOLDEN_LABEL = [0, 0, 0, 1, 1, 1, 2, 2]
GOLDEN_SEED = [0, 0, 3, 3, 3, 1, 1, 6, 6]
GOLDEN = {
    (0, 1): 0.75,
    (0, 0): 0.0,
    (0, 3): 0.421875,
    (1, 3): 0.5625,
    (2, 0): 0.6416015625,
    (3, 0): 0.6064453125,
    (5, 6): 0.421875,
    (7, 3): 0.0,
}


def test_frequencies_are_the_golden_probabilities():
    # the golden classes with nine more places each: then no class is ever emptied, which the closed form leaves out
    label = GOLDEN_LABEL + [0, 1, 2] * 9
    n = 20_000
    hits = np.zeros((len(GOLDEN_SEED), len(label)), dtype=int)
    for sets in draws(GOLDEN_SEED, label, n):
        for t, places in enumerate(sets):
            hits[t, places] += 1
    q = naive.window_q(GOLDEN_SEED, label, len(label), 0.25, 0.75, 1.0)

    assert {(t, r): q[t][r] for t, r in GOLDEN} == pytest.approx(GOLDEN, abs=1e-15)
    for t, r in np.ndindex(hits.shape):
        assert within_wilson(hits[t, r], n, q[t][r], alpha=1e-8), (t, r)


def test_reach_has_the_law_of_par_m():
    # places 1..11 of the first class into the second run, 13..23 of the second into the first
    n, run = 2000, 8
    forwards, backwards = np.zeros(run, dtype=int), np.zeros(run, dtype=int)
    for sets in draws([0] * run + [12] * run, TWO, n, par_c=0.0, par_m=0.7):
        for d in range(run):
            forwards[d] += sum(r < 12 for r in sets[run + d])
            backwards[d] += sum(r >= 12 for r in sets[run - 1 - d])

    for d in range(run):
        # the members of one class join independently of each other; seed(t) is of the other class
        assert within_wilson(forwards[d], 12 * n, 0.7 ** (d + 1))
        assert within_wilson(backwards[d], 12 * n, 0.7 ** (d + 1))


def test_the_slots_a_place_joins_are_contiguous():
    for sets in draws([0] * 6 + [12] * 9, TWO, 300, par_c=0.0, par_m=0.8, par_l=0.0):
        for r in range(12):
            foreign = [t - 6 for t in range(6, 15) if r in sets[t]]
            assert foreign == list(range(len(foreign)))


def test_par_m_0_merges_nothing():
    for sets in draws([0, 0, 12, 0, 12, 12], TWO, 200, par_m=0.0):
        assert all({TWO[r] for r in places} == {c} for places, c in zip(sets, [0, 0, 1, 0, 1, 1], strict=True))


def test_small_classes_are_widened_with_the_nearest():
    label = [0, 0, 1, 1, 2, 2, 2]
    nearness = np.array([[9, 1, 5], [1, 9, 5], [5, 5, 9]])

    sets, _ = semantic_seed([0, 2], label, par_c=0.0, par_m=0.0, par_l=0.0, c_min=3, nearness=nearness)

    assert sets == [[0, 1, 4, 5, 6], [2, 3, 4, 5, 6]]


def test_c_min_places_outside_the_seed_before_sub_sampling():
    rng = np.random.default_rng(9)
    widened = 0
    for case in range(300):
        label = rng.integers(-1, 5, 14)
        seed = rng.choice(np.flatnonzero(label >= 0), 6)
        outside = set(np.flatnonzero(label >= 0)) - set(seed)
        c_min = int(rng.integers(min(2, len(outside)), len(outside) + 1))
        pars = Pars(par_c=0.0, par_m=0.0, par_l=0.0, c_min=c_min)
        for t, places in enumerate(blur(seed, ClassSets.of(label), pars, open_stream(case))[0]):
            assert c_min == 1 or len(set(places) - set(seed)) >= c_min
            widened += not set(label[places]) <= {label[seed[t]]}
    assert widened > 100


def test_without_enough_places_outside_the_seed_a_class_stays_as_it_is():
    assert semantic_seed([0, 2], [0, 0, 1, 1], par_c=0.0, par_m=0.0, c_min=3)[0] == [[1], [3]]


def ladder(seed, label, **pars):
    return semantic_seed(seed, label, **{"par_c": 0.0, "par_m": 0.0} | pars)


def test_ladder_1_merged_neighbours():
    # class 0 is the seed's place alone; at par_m just below 1 its neighbours all merge into it
    assert ladder([0, 1], [0, 1, 1], par_m=1 - 1e-12) == ([[1, 2], [0, 2]], [1, 0])


def test_ladder_2_the_whole_class():
    # par_c close to 1 leaves one survivor; where that is the seed's place the class comes back
    found = set()
    for i in range(100):
        sets, steps = blur([0], ClassSets.of([0, 0, 0]), Pars(par_c=0.999999, par_m=0.0), open_stream(i))
        found.add((tuple(sets[0]), steps[0]))
    assert found == {((1,), 0), ((2,), 0), ((1, 2), 2)}


def test_ladder_3_the_nearest_class():
    nearness = [[0, 1, 2], [1, 0, 0], [2, 0, 0]]
    assert ladder([0], [0, 1, 1, 2], nearness=nearness) == ([[3]], [3])
    assert ladder([0], [0, 1, 1, 2]) == ([[1, 2]], [3])


def test_ladder_3_asks_for_c_min_members():
    # nobody else is outside the seed, so class 0 cannot be widened; class 2 is nearer but too small
    nearness = [[0, 1, 2], [1, 0, 0], [2, 0, 0]]
    sets, steps = ladder([0, 1, 2, 3], [0, 1, 1, 2], nearness=nearness, c_min=2)
    assert (sets[0], steps[0]) == ([1, 2], 3)


def test_ladder_4_all_places_of_the_model():
    sets, steps = ladder([0, 1, 2], [0, 1, 2, -1], c_min=2)
    assert (sets, steps) == ([[1, 2], [0, 2], [0, 1]], [4, 4, 4])


def test_ladder_5_is_an_error():
    assert ladder([0, 0], [0, -1]) == (None, 0)


def test_a_seed_at_an_unknown_place_may_go_anywhere_known():
    assert ladder([3, 0], [0, 0, 1, -1]) == ([[0, 1, 2], [1]], [4, 0])
    assert ladder([-1], [0, 0, 1, -1]) == ([[0, 1, 2]], [4])


def test_places_outside_the_model_are_never_candidates():
    sets, _ = ladder([0], [0, 0, 0, 1], model_places=np.array([True, True, False, True]))
    assert sets == [[1]]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("par_c", 1.0),
        ("par_c", -0.1),
        ("par_c", float("nan")),
        ("par_c", "per-day"),
        ("par_c", None),
        ("par_m", 1.0),
        ("par_m", float("nan")),
        ("par_l", 1.5),
        ("par_l", None),
    ],
)
def test_parameters_out_of_range(parameter, value):
    with pytest.raises(InvalidParameter, match=f"`{parameter}` must be") as caught:
        generate_fake([0], [0, 0], None, **{parameter: value}, rng=np.random.default_rng(1))
    assert caught.value.code == "E_PARAM"
    assert repr(value) in str(caught.value) or str(value) in str(caught.value)


@pytest.mark.parametrize(
    ("seed", "label", "more", "code"),
    [
        ([0], [], {}, "E_SHAPE"),
        ([0], [0, -2], {}, "E_INDEX"),
        ([0], [-1, -1], {}, "E_INDEX"),
    ],
)
def test_arrays_that_do_not_fit(seed, label, more, code):
    with pytest.raises(ElsewhereError) as caught:
        semantic_seed(seed, label, **more)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("seed", "label", "code"),
    [
        ([2], [0, 0], "E_INDEX"),
        ([-2], [0, 0], "E_INDEX"),
        ([], [0, 0], "E_EMPTY"),
        ([-1], [0, 0], "E_EMPTY"),
        ([0.5], [0, 0], "E_NUMBER"),
        ([[0]], [0, 0], "E_SHAPE"),
        ([0], [0, 0, 0], "E_MISMATCH"),
    ],
)
def test_seeds_that_do_not_fit(seed, label, code):
    traces = ew.Traces([[0, 1]], ew.Locations(n=2))
    model = ew.aggregate(ew.fit_profiles(traces), traces.locations)
    with pytest.raises(ElsewhereError) as caught:
        generate_fake(seed, label, model, rng=np.random.default_rng(1))
    assert caught.value.code == code
