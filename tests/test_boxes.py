"""The four boxes of fig:alg, line by line, against their slow twins and against the fast forms below them."""

import itertools

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.errors import ElsewhereError, NoFeasiblePath, Unfakeable
from elsewhere.paper import generate_fake as generating
from elsewhere.paper import privacy_test as testing
from elsewhere.paper import semantic_clustering as clustering
from elsewhere.paper import semantic_similarity as similarity
from elsewhere.paper._generate_kernels import open_stream
from elsewhere.paper.generate_fake import ClassSets, FakeMaker, Pars, stream_key
from elsewhere.paper.privacy_test import PrivacyTest

unhurried = settings(deadline=None, max_examples=60)  # the first call compiles


@pytest.fixture(autouse=True)
def _wrapping_is_meant():
    with np.errstate(over="ignore", divide="ignore"):
        yield


def rng(number=1):
    return np.random.default_rng(number)


@pytest.mark.parametrize(
    ("module", "lines"),
    [
        (similarity, ["SemanticSimilarity(u, v)", "optimal mapping sigma_u^v", "sim_S(u, v), sigma_u^v"]),
        (
            clustering,
            ["SemanticClustering(R, S, kappa)", "u != v", "r' = sigma_u^v(r)", "+ s_u^v", "K-Means(G, kappa)"],
        ),
        (testing, ["PrivacyTest(fake, seed, par_s, par_i, par_d)", "Intersection(fake, seed)", "int < par_i"]),
        (generating, ["GenerateFake(R, S, kappa, pars)", "par_c", "par_l", "par_m^dt", "HMMDecode(semseed,"]),
    ],
)
def test_each_file_begins_with_its_box(module, lines):
    box = module.__doc__.strip().split("\n\n")[0]
    assert box.startswith(lines[0])
    for line in lines:
        assert line in box


# SemanticSimilarity


@unhurried
@given(strategies.traces(max_users=2, min_users=2, max_places=6, days=2), st.sampled_from([1, 2, 4]), st.booleans())
def test_the_value_is_that_of_the_mapping(traces, T, common):
    u, v = ew.fit_profiles(traces, periods=T, missing="skip")
    match = ew.semantic_similarity(u, v, mapping="common" if common else "per-period")
    total = 0.0
    for tau in range(T):
        sigma = match.sigma[0 if len(match.sigma) == 1 else tau]
        place = {r: k for k, r in enumerate(v.support.tolist())}
        total += u.w[tau] * sum(
            min(u.pi_tau[tau, k], v.pi_tau[tau, place[x]]) for k, x in enumerate(sigma.tolist()) if x >= 0
        )

    assert match.sim == pytest.approx(total, abs=1e-12)
    assert match.upper_bound == match.sim
    if not common or T == 1:
        assert match.sim == ew.pairwise_semantic_similarity([u, v])[0, 1]
    for sigma in match.sigma:  # a mapping sends no two places to one
        images = sigma[sigma >= 0].tolist()
        assert len(set(images)) == len(images)


# SemanticClustering


@settings(deadline=None, max_examples=25)
@given(strategies.traces(max_users=4, min_users=2, max_places=6, days=2), st.sampled_from([1, 2]))
def test_the_box_adds_up_the_graph_of_all_pairs(traces, T):
    profiles = ew.fit_profiles(traces, periods=T)
    w = np.zeros((traces.R, traces.R))
    for u, v in itertools.permutations(profiles, 2):
        for r, x, share in clustering.shared_mapping(u, v):
            w[r, x] += share * ew.semantic_similarity(u, v).sim

    np.testing.assert_allclose((w + w.T) / 2, ew.semantic_graph(profiles).w, atol=1e-9)


def test_the_box_gives_the_classes_of_the_graph():
    town = ew.simulate_town(users=16, days=1, locations=40, rng=rng(5)).traces
    profiles = ew.fit_profiles(town)
    box = ew.semantic_clustering(profiles, kappa=4, rng=rng(2))
    fast = ew.semantic_clustering(ew.semantic_graph(profiles), kappa=4, method="kmeans", rng=rng(2))

    np.testing.assert_array_equal(box.label, fast.label)
    np.testing.assert_allclose(box.nearness, fast.nearness, atol=1e-9)
    assert box.kappa == 4
    assert ew.semantic_clustering(profiles, kappa=2, rng=rng(2)).kappa == 2


def test_what_is_no_profile_is_refused():
    for nothing in ([], [1], 7):
        with pytest.raises(ElsewhereError):
            ew.semantic_clustering(nothing, kappa=2, rng=rng())


# PrivacyTest


@unhurried
@given(
    st.integers(2, 7).flatmap(
        lambda L: st.tuples(*[st.lists(st.integers(-1, 5), min_size=L, max_size=L) for _ in range(6)])
    ),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([0, 0.1, 0.25, 0.5]),
    st.integers(1, 4),
    st.booleans(),
)
def test_the_box_and_the_batch_give_one_verdict(rows, T, threshold, k, against_all):
    rows = [[max(row[0], 0), *row[1:]] for row in rows]  # nobody is nowhere
    (fake, seed, *rest), options = rows, {"par_s": threshold, "par_d": threshold, "k": k, "periods": T}
    others = [rest.pop()]
    people = ew.Traces([seed, *others, *rest], ew.Locations(n=6), step_minutes=1440 / len(seed), users=[*"so123"])
    options |= {"par_i": k - 1, "min_sim": 0.5}
    if against_all:
        options["against"] = "all"
    batch = PrivacyTest.prepare(people.select([0, 1]), people.select([2, 3, 4]), **options)
    box = ew.privacy_test(fake, seed, rest, others=others if against_all else None, **options)
    one = batch([fake], [0])[0]

    assert one.rejected_by == box.rejected_by
    assert one.not_run == box.not_run
    for name in ("sim", "shared", "aligned", "sim_s", "closest", "quantile"):
        assert getattr(one, name) == pytest.approx(getattr(box, name), abs=1e-12), name
    assert one.alternates == min(box.alternates, k - 1)  # the batch counts no further


def test_similarities_of_the_test_are_those_of_profiles():
    people = ew.simulate_town(users=6, days=1, locations=40, rng=rng(5)).traces
    profiles = ew.fit_profiles(people, periods=4)
    for i, j in itertools.permutations(range(6), 2):
        verdict = ew.privacy_test(people.select([j]), people.select([i]), None, k=1, periods=4)
        both = ew.geographic_similarity(profiles[i], profiles[j]), ew.geographic_similarity(profiles[j], profiles[i])
        assert verdict.sim == max(both)
        assert verdict.sim_s == ew.semantic_similarity(profiles[i], profiles[j]).sim


# GenerateFake


@pytest.fixture(scope="module")
def town():
    traces = ew.simulate_town(users=40, days=1, locations=80, rng=rng(7)).traces
    profiles = ew.fit_profiles(traces)
    classes = ew.semantic_clustering(ew.semantic_graph(profiles), kappa=8, method="kmeans", rng=rng(2))
    return traces, classes, ew.aggregate(profiles, traces.locations)


@pytest.mark.parametrize(
    "pars",
    [
        {},
        {"par_c": 0.9},
        {"par_m": 0.0},
        {"par_m": 0.97, "par_l": 0.4},
        {"par_v": 1.0},
        {"par_c": 0.0, "par_l": 0.0, "par_v": 30.0},
    ],
)
def test_the_box_and_the_batch_make_one_fake_number_for_number(town, pars):
    traces, classes, model = town
    sets = ClassSets.of(classes)
    for i in range(30):
        key = stream_key(rng(i))
        maker = FakeMaker(model, sets, np.zeros(traces.L, int), Pars(**pars), key)
        batch = maker.attempt(traces.r[i : i + 1], rows=[0], tries=[0])

        np.testing.assert_array_equal(ew.generate_fake(traces.r[i], classes, model, **pars, rng=rng(i)), batch[0])


@unhurried
@given(st.data())
def test_the_box_is_the_batch_on_small_maps_with_gaps_and_unknown_places(data):
    R, L = data.draw(st.integers(2, 7)), data.draw(st.integers(1, 9))
    label = [0, *data.draw(st.lists(st.integers(-1, 1), min_size=R - 1, max_size=R - 1))]
    seed = [0, *data.draw(st.lists(st.integers(-1, R - 1), min_size=L, max_size=L))]  # nobody is nowhere
    L += 1
    pars = {name: data.draw(st.sampled_from([0.0, 0.5, 0.9])) for name in ("par_c", "par_m", "par_l")}
    people = ew.Traces(rng(1).integers(0, R, (3, 12)), ew.Locations(n=R))
    model = ew.aggregate(ew.fit_profiles(people), people.locations)
    maker = FakeMaker(model, ClassSets.of(label), np.zeros(L, int), Pars(**pars), stream_key(rng(3)))
    batch = maker.attempt([seed], rows=[0], tries=[0])
    try:
        fake = ew.generate_fake(seed, label, model, **pars, rng=rng(3)).tolist()
    except (Unfakeable, NoFeasiblePath):
        fake = [-1] * L

    assert fake == batch[0].tolist()


def test_the_box_draws_what_its_definition_draws(town):
    # the slow twin knows nothing of elsewhere: numbers of numpy's Philox, sets and paths from the definition
    traces, classes, model = town
    p, first = model.table(), model.pi_bar
    nearest = ClassSets.of(classes).near.tolist()
    for i in range(5):
        key = stream_key(rng(i))
        number = np.random.Generator(np.random.Philox(key=key, counter=np.zeros(4, dtype=np.uint64))).random
        seed = traces.r[i].tolist()
        allowed = np.flatnonzero(classes.label >= 0).tolist()
        pars = {"par_c": 0.25, "par_m": 0.75, "par_l": 1.0, "c_min": 1, "allowed": allowed}
        sets = naive.semantic_seed(seed, classes.label.tolist(), dict(enumerate(nearest)), number, **pars)[0]
        sets = [sorted(places) for places in sets]
        tables = np.broadcast_to(p, (traces.L - 1, *p.shape))
        x_first, x = naive.edges_that_draw(sets, first, tables, 4.0, number)
        steps = range(traces.L - 1)
        x = dict.fromkeys(((t, r, s) for t in steps for r in sets[t] for s in sets[t + 1]), 1) | x

        assert tuple(ew.generate_fake(seed, classes, model, rng=rng(i))) == naive.randomised_viterbi(
            sets, first, tables, x_first, x
        )


def test_laws_of_the_box(town):
    traces, classes, model = town
    for i in range(10):
        seed = traces.r[i]
        fake = ew.generate_fake(seed, classes, model, rng=rng(i))
        assert fake.shape == seed.shape
        assert np.all(fake != seed)  # par_l = 1 (E40)
        still = ew.generate_fake(seed, classes, model, par_m=0, rng=rng(i))
        several = classes.sizes[classes.label[seed]] > 1  # of a class of one place nothing is left (E45)
        np.testing.assert_array_equal(classes.label[still][several], classes.label[seed][several])  # E48
        assert several.any()
        assert np.all(ew.generate_fake(seed, classes.label, model, rng=rng(i)) != seed)  # plain labels will do


def test_a_model_of_several_periods_is_refused(town):
    traces, classes, _ = town
    model = ew.aggregate(ew.fit_profiles(traces, periods=2), traces.locations)
    with pytest.raises(ElsewhereError, match="one period"):
        ew.generate_fake(traces.r[0], classes, model, rng=rng())


def test_frequencies_of_the_semantic_seed_are_the_golden_probabilities():
    # golden values: classes {0,1,2},{3,4,5},{6,7}; without the rule that a class is never emptied
    C, seed = ClassSets.of([0, 0, 0, 1, 1, 1, 2, 2]), np.array([0, 0, 3, 3, 3, 1, 1, 6, 6], dtype=np.int32)
    golden = {(0, 1): 0.75, (0, 0): 0, (0, 3): 0.421875, (1, 3): 0.5625, (2, 0): 0.6416015625, (3, 0): 0.6064453125}
    golden |= {(5, 6): 0.421875, (7, 3): 0}
    n, hits = 4000, dict.fromkeys(golden, 0)
    for i in range(n):
        stream = open_stream(np.array([1, 2], dtype=np.uint64), np.uint64(i), np.uint64(0))
        class_at = C.classes_of(seed)
        C_prime = generating.subsample_classes(C.places, class_at, 0.25, stream)
        sets = generating.merge_classes(C_prime[class_at], C_prime, class_at, 0.75, stream)
        sets, _ = generating.remove_seed(sets, C.places, C_prime, C, seed, class_at, 1.0, 1, stream)
        for t, r in golden:
            hits[t, r] += sets[t, r]
    for at, chance in golden.items():
        # a survivor of an emptied class adds at most par_c^3, or par_c^2 of a class of two
        slack = 4.9 * np.sqrt(chance * (1 - chance) / n) + (0.25**2 if at[1] >= 6 else 0.25**3)
        assert abs(hits[at] / n - chance) <= slack, at
