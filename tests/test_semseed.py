"""The semantic seed: sub-sampling, merging, removal and the ladder, against definition, closed form and fixtures."""

from statistics import NormalDist

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.errors import ElsewhereError, InvalidParameter, Unfakeable
from elsewhere.paper import _generate_kernels as _kernels
from elsewhere.paper.generate_fake import (
    Blur,
    ClassSets,
    SemanticSeed,
    blur_seed,
    generate_fake,
    stream_key,
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


def semantic_seed(seed, label, *, nearness=None, model_places=None, rng, **blur):
    """The compiled semantic seed of one trace, from plain arrays."""
    classes = ClassSets.of(ew.SemanticClasses(label, nearness), model_places=model_places)
    stream = _kernels.open_stream(stream_key(rng), np.uint64(0), np.uint64(0))
    return blur_seed(np.array(seed, dtype=np.int32), classes, Blur(**blur), stream)


def sets_of(semseed):
    return [semseed[t].tolist() for t in range(len(semseed))]


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
    blur = Blur(
        par_c=draw(st.sampled_from([0.0, 0.25, 0.6, 0.95])),
        par_m=draw(st.sampled_from([0.0, 0.5, 0.75, 0.9])),
        par_l=draw(st.sampled_from([0.0, 0.4, 1.0])),
        c_min=draw(st.integers(1, 4)),
        per_instant=draw(st.booleans()),
        independent=draw(st.booleans()),
    )
    return seed, label, np.array(nearness, dtype=float).reshape(kappa, kappa), allowed, blur


def naive_sets(seed, label, nearness, allowed, blur, number):
    kappa = len(nearness)
    nearest = {c: sorted(set(range(kappa)) - {c}, key=lambda k: -nearness[c][k]) for c in range(kappa)}
    places = {r for r in range(len(label)) if allowed is None or allowed[r]}
    modes = (blur.per_instant, blur.independent)
    of = {name: getattr(blur, name) for name in ("par_c", "par_m", "par_l", "c_min")}
    return naive.semantic_seed(seed, label, nearest, number, **of, modes=modes, allowed=places)


@given(worlds(), st.integers(0, 1000))
@settings(deadline=None, max_examples=400)
def test_equals_the_definition_number_for_number(world, attempt):
    seed, label, nearness, allowed, blur = world
    classes = ClassSets.of(
        ew.SemanticClasses(label, nearness), model_places=None if allowed is None else np.array(allowed)
    )
    expected, steps = naive_sets(*world, numpy_stream(KEY, attempt, 0).random)
    places = np.array(seed, dtype=np.int32)

    if expected is None:
        with pytest.raises(Unfakeable, match=f"slot {steps} of {len(seed)}"):
            blur_seed(places, classes, blur, open_stream(attempt))
    else:
        semseed = blur_seed(places, classes, blur, open_stream(attempt))
        assert expected == sets_of(semseed)
        assert steps == semseed.step.tolist()


@given(worlds(), st.integers(0, 1000))
@unhurried
def test_no_set_is_empty_or_holds_what_was_removed(world, attempt):
    seed, label, nearness, _, blur = world
    try:
        semseed = blur_seed(
            np.array(seed, dtype=np.int32),
            ClassSets.of(ew.SemanticClasses(label, nearness)),
            blur,
            open_stream(attempt),
        )
    except Unfakeable:
        return
    for t, places in enumerate(sets_of(semseed)):
        assert places
        assert places == sorted(set(places))
        assert all(label[r] >= 0 for r in places)
        if blur.par_l == 1:
            assert seed[t] not in places


TWO = [0] * 12 + [1] * 12  # two classes of twelve: hardly ever emptied by sub-sampling


def draws(seed, label, n, **parameters):
    blur, classes, places = Blur(**parameters), ClassSets.of(label), np.array(seed, dtype=np.int32)
    return [blur_seed(places, classes, blur, open_stream(i)) for i in range(n)]


def test_one_sub_sample_per_fake():
    fakes = draws([0, 0, 12, 0, 12], TWO, 50, par_m=0, par_l=0)

    for semseed in fakes:
        first, second, other, third, last = sets_of(semseed)
        assert first == second == third
        assert other == last
    assert len({tuple(semseed[0]) for semseed in fakes}) > 40


def test_a_sub_sample_per_instant_on_request():
    semseed = semantic_seed([0] * 20, TWO, per_instant=True, par_m=0, par_l=0, rng=np.random.default_rng(1))

    assert len({tuple(places) for places in sets_of(semseed)}) > 15


def test_a_place_removed_from_one_widened_class_is_removed_from_all():
    # both classes are widened with the other, so both are all places
    for semseed in draws([0, 12], TWO, 50, par_m=0, par_l=0, c_min=15):
        assert semseed[0].tolist() == semseed[1].tolist()
        assert len(semseed[0]) < 24


@pytest.mark.parametrize("per_instant", [False, True])
def test_a_class_is_never_emptied(per_instant):
    label = [0, 1, 1, 2, 2, 2]
    survivors = np.zeros(6, dtype=int)
    for semseed in draws([0, 1, 3, 3], label, 4000, par_c=0.999999, par_m=0, par_l=0, per_instant=per_instant):
        assert semseed[0].tolist() == [0]
        assert set(semseed[1]) <= {1, 2}
        assert len(semseed[2])
        survivors[semseed[2]] += 1
    assert all(within_wilson(hits, 4000, 1 / 3) for hits in survivors[3:])


@pytest.mark.parametrize(
    ("par_l", "per_instant", "share"),
    [(0.0, False, 0.75), (0.1, False, 0.75 * 0.9**30), (0.0, True, 0.75**30)],
)
def test_share_of_fakes_that_can_stay_at_a_constant_seed(par_l, per_instant, share):
    n = 20_000
    fakes = draws([0] * 30, TWO, n, par_l=par_l, per_instant=per_instant)
    stay = sum(np.count_nonzero(semseed.places == 0) == 30 for semseed in fakes)

    assert within_wilson(stay, n, share)


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


@pytest.mark.parametrize("independent", [False, True])
def test_frequencies_are_the_golden_probabilities(independent):
    # the golden classes with nine more places each: then no class is ever emptied, which the closed form leaves out
    label = GOLDEN_LABEL + [0, 1, 2] * 9
    n = 20_000
    hits = np.zeros((len(GOLDEN_SEED), len(label)), dtype=int)
    for semseed in draws(GOLDEN_SEED, label, n, independent=independent):
        hits[np.repeat(np.arange(len(semseed)), np.diff(semseed.offset)), semseed.places] += 1
    q = naive.window_q(GOLDEN_SEED, label, len(label), 0.25, 0.75, 1.0)

    assert {(t, r): q[t][r] for t, r in GOLDEN} == pytest.approx(GOLDEN, abs=1e-15)
    for t, r in np.ndindex(hits.shape):
        assert within_wilson(hits[t, r], n, q[t][r], alpha=1e-8), (t, r)


@pytest.mark.parametrize("independent", [False, True])
def test_reach_has_the_law_of_par_m(independent):
    # places 1..11 of the first class into the second run, 13..23 of the second into the first
    n, run = 2000, 8
    forwards, backwards = np.zeros(run, dtype=int), np.zeros(run, dtype=int)
    for semseed in draws([0] * run + [12] * run, TWO, n, par_c=0, par_m=0.7, independent=independent):
        for d in range(run):
            forwards[d] += np.count_nonzero(semseed[run + d] < 12)
            backwards[d] += np.count_nonzero(semseed[run - 1 - d] >= 12)

    for d in range(run):
        # the members of one class join independently of each other; seed(t) is of the other class
        assert within_wilson(forwards[d], 12 * n, 0.7 ** (d + 1))
        assert within_wilson(backwards[d], 12 * n, 0.7 ** (d + 1))


def test_the_slots_a_place_joins_are_contiguous():
    seed = [0] * 6 + [12] * 9
    broken = 0
    for independent in (False, True):
        for semseed in draws(seed, TWO, 300, par_c=0, par_m=0.8, par_l=0, independent=independent):
            for r in range(12):
                foreign = [t - 6 for t in range(6, 15) if r in semseed[t]]
                if foreign != list(range(len(foreign))):
                    assert independent
                    broken += 1
    assert broken > 100


def test_par_m_0_merges_nothing():
    for semseed in draws([0, 0, 12, 0, 12, 12], TWO, 200, par_m=0):
        assert all(
            {TWO[r] for r in places} == {c} for places, c in zip(sets_of(semseed), [0, 0, 1, 0, 1, 1], strict=True)
        )


def test_small_classes_are_widened_with_the_nearest():
    label = [0, 0, 1, 1, 2, 2, 2]
    nearness = np.array([[9, 1, 5], [1, 9, 5], [5, 5, 9]])

    semseed = semantic_seed(
        [0, 2], label, par_c=0, par_m=0, par_l=0, c_min=3, nearness=nearness, rng=np.random.default_rng(1)
    )

    assert sets_of(semseed) == [[0, 1, 4, 5, 6], [2, 3, 4, 5, 6]]


def test_c_min_places_outside_the_seed_before_sub_sampling():
    rng = np.random.default_rng(9)
    widened = 0
    for case in range(300):
        label = rng.integers(-1, 5, 14)
        seed = rng.choice(np.flatnonzero(label >= 0), 6).astype(np.int32)
        outside = set(np.flatnonzero(label >= 0)) - set(seed)
        c_min = int(rng.integers(min(2, len(outside)), len(outside) + 1))
        semseed = blur_seed(seed, ClassSets.of(label), Blur(0.0, 0.0, 0.0, c_min=c_min), open_stream(case))
        for t, places in enumerate(sets_of(semseed)):
            assert c_min == 1 or len(set(places) - set(seed)) >= c_min
            widened += not set(label[places]) <= {label[seed[t]]}
    assert widened > 100


def test_without_enough_places_outside_the_seed_a_class_stays_as_it_is():
    semseed = semantic_seed([0, 2], [0, 0, 1, 1], par_c=0, par_m=0, c_min=3, rng=np.random.default_rng(1))

    assert sets_of(semseed) == [[1], [3]]


def ladder(seed, label, **parameters):
    blur = {"par_c": 0.0, "par_m": 0.0} | parameters
    semseed = semantic_seed(seed, label, **blur, rng=np.random.default_rng(3))
    return sets_of(semseed), semseed.step.tolist()


def test_ladder_1_merged_neighbours():
    # class 0 is the seed's place alone; at par_m just below 1 its neighbours all merge into it
    assert ladder([0, 1], [0, 1, 1], par_m=1 - 1e-12) == ([[1, 2], [0, 2]], [1, 0])


def test_ladder_2_the_whole_class():
    # par_c close to 1 leaves one survivor; where that is the seed's place the class comes back
    found = set()
    for semseed in draws([0], [0, 0, 0], 100, par_c=0.999999, par_m=0):
        found.add((tuple(semseed[0]), int(semseed.step[0])))
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
    with pytest.raises(Unfakeable) as caught:
        ladder([0, 0], [0, -1])
    assert caught.value.code == "E_UNFAKEABLE"


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
        ("c_min", 0),
        ("c_min", 2.5),
    ],
)
def test_parameters_out_of_range(parameter, value):
    with pytest.raises(InvalidParameter, match=f"`{parameter}` must be") as caught:
        semantic_seed([0], [0, 0], **{parameter: value}, rng=np.random.default_rng(1))
    assert caught.value.code == "E_PARAM"
    assert repr(value) in str(caught.value) or str(value) in str(caught.value)


@pytest.mark.parametrize(
    ("seed", "label", "more", "code"),
    [
        ([0], [], {}, "E_SHAPE"),
        ([0], [0, -2], {}, "E_INDEX"),
        ([0], [-1, -1], {}, "E_INDEX"),
        ([0], [0, 1], {"nearness": [[1.0]]}, "E_SHAPE"),
        ([0], [0, 1], {"nearness": [[1.0, np.nan], [0, 0]]}, "E_SHAPE"),
        ([0], [0, 1], {"model_places": [True]}, "E_SHAPE"),
    ],
)
def test_arrays_that_do_not_fit(seed, label, more, code):
    with pytest.raises(ElsewhereError) as caught:
        semantic_seed(seed, label, **more, rng=np.random.default_rng(1))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("seed", "label", "code"),
    [
        ([2], [0, 0], "E_INDEX"),
        ([-2], [0, 0], "E_INDEX"),
        ([], [0, 0], "E_SHAPE"),
        ([0.5], [0, 0], "E_SHAPE"),
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


def test_slots_are_counted_from_0():
    semseed = SemanticSeed.of([[0], [1]])

    assert [places.tolist() for places in semseed] == [[0], [1]]
    with pytest.raises(IndexError):
        semseed[-1]


@pytest.mark.parametrize("sets", [[], [[]], [[], [0]], [[0], [], [0]], [[0], []]])
def test_an_empty_set_is_no_semantic_seed(sets):
    with pytest.raises(Unfakeable):
        SemanticSeed.of(sets)
