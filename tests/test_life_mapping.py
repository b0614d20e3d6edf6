"""The mapping of a life against enumeration, and its samples against the law they are drawn from."""

import itertools
from collections import Counter

import naive_life
import numpy as np
import pytest

from elsewhere.paper._generate_kernels import open_stream
from elsewhere.synthesis import _life_kernels as kernels
from elsewhere.synthesis._diary_kernels import TIES
from elsewhere.synthesis.mapping import BLUR, MANY, estimate_spread, expect_people, grid_over, square_of

KEY = np.array([3, 4], dtype=np.uint64)


def make_ground(xy, candidates, rng, *, moves=()):
    """A ground over places `xy`; `candidates` lists (class, place, weight)."""
    K, R = max(c for c, _, _ in candidates) + 1, len(xy)
    corner, columns, rows = grid_over(xy, 1.0)
    square = square_of(xy, corner, columns, rows)
    candidates = sorted(candidates, key=lambda x: (x[0], square[x[1]], x[1]))
    cls, place, weight = (np.array(column) for column in zip(*candidates, strict=True))
    weight = weight.astype(float)
    cell = cls * columns * rows + square[place]
    begin = np.searchsorted(cell, np.arange(K)[:, None] * columns * rows + np.arange(columns * rows + 1))
    keys = np.array(sorted(min(a, b) * R + max(a, b) for a, b in moves), dtype=np.int64)
    limits = (0.5 * (2 ** (np.arange(1, kernels.BINS) / 2) - 1)) ** 2
    people = weight**1.5
    return kernels.Ground(
        xy, limits, place, np.searchsorted(cls, np.arange(K + 1)), people, np.append(0.0, np.cumsum(people)),
        weight, np.append(0.0, np.cumsum(weight)), begin, corner, columns, rows,
        rng.normal(0, 0.7, (2, 2, K, kernels.BINS)), rng.normal(0, 0.7, kernels.BINS), limits[:4],
        np.append(np.zeros((1, 5)), rng.normal(0, 0.7, (TIES, 5)), axis=0), keys, np.full(len(keys), 0.8),
    )  # fmt: skip


def draw(ground, role, cls, time, moves, sweeps, n):
    sigma = np.empty(len(cls), np.int64)
    for i in range(n):
        stream = open_stream(KEY, 0, i)
        point = kernels.uniform(stream)
        assert kernels.draw_sigma(ground, role, len(cls), cls, time, moves, sweeps, point, stream, sigma)
        yield tuple(sigma.tolist())


@pytest.mark.parametrize("seed", [0, 1])
def test_mappings_have_the_probabilities_of_their_definition(seed):
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, 3, (6, 2))
    candidates = [
        (0, 0, 2.0),
        (0, 1, 1.0),
        (1, 2, 1.5),
        (1, 3, 1.0),
        (1, 1, 0.5),
        (2, 4, 1.0),
        (2, 3, 2.0),
        (2, 0, 1.0),
        (2, 5, 0.7),
    ]
    ground = make_ground(xy, candidates, rng, moves=[(0, 2), (1, 3), (3, 4)])
    role, cls, time = np.array([0, 1, 2]), np.array([2, 0, 1, 2]), np.array([2.0, 50.0, 20.0, 1.0])
    moves = np.zeros((4, 4), np.int64)
    moves[1, 2], moves[2, 0], moves[0, 3] = 3, 1, 2
    law = naive_life.sigma_law(ground, role, cls, time, moves)
    n = 6_000
    found = Counter(draw(ground, role, cls, time, moves, 25, n))
    assert set(found) <= set(law)
    for places, p in law.items():
        assert abs(found[places] / n - p) <= naive_life.tolerance(p, n)


def test_distances_are_counted_by_tie_as_defined():
    rng = np.random.default_rng(3)
    candidates = [(c, x, 1.0) for c in range(3) for x in range(6)]
    ground = make_ground(rng.uniform(0, 3, (6, 2)), candidates, rng, moves=[(0, 2)])
    role, cls, time = np.array([0, 1, 2]), np.array([2, 0, 1, 2]), np.array([2.0, 50.0, 20.0, 1.0])
    home, main, soon = 1, 2, rng.integers(0, TIES + 1, (2, 4, 4)) * (rng.random((2, 4, 4)) < 0.4)
    place, again = np.array([0, 1, 2, 3, 5, 4, 1, 0]), np.empty(8, np.int64)
    real, drawn = np.zeros((2, 5, 3, kernels.BINS))
    paces = np.zeros((2, TIES + 1, kernels.PACES))
    kernels.count_distances(
        ground, role, np.array([0, 4, 8]), np.tile(cls, 2), place, np.tile(time, 2), soon.ravel(),
        np.array([0, 16, 32]), 3, KEY, real, drawn, paces, again,
    )  # fmt: skip
    for where, found, pace in ((place, real, paces[0]), (again, drawn, paces[1])):
        wanted, wanted_pace = np.zeros_like(real), np.zeros_like(pace)
        for person, (i, j) in itertools.product((0, 1), itertools.combinations(range(4), 2)):
            x, y = where[4 * person + i], where[4 * person + j]
            tie = max(soon[person, i, j], soon[person, j, i])
            wanted_pace[tie, naive_life.distance_bin(ground.xy, ground.paces, x, y)] += 1
            b = naive_life.distance_bin(ground.xy, ground.limits, x, y)
            if home in (i, j):  # how far from home is what, and does it follow; then from the main place; then a step
                wanted[int(tie > 0), cls[j if i == home else i], b] += 1
            elif main in (i, j):
                wanted[2 + int(tie > 0), cls[j if i == main else i], b] += 1
            elif tie > 0:
                wanted[4, 0, b] += 1
        assert np.array_equal(found, wanted)
        assert np.array_equal(pace, wanted_pace)


def test_classes_with_many_candidates_are_sampled_from_the_same_law():
    rng = np.random.default_rng(5)
    xy = np.vstack([[6.0, 6.0], rng.uniform(0, 12, (700, 2))])
    candidates = [(0, 0, 1.0)] + [(1, i, float(w)) for i, w in enumerate(rng.uniform(0.2, 3, 700), 1)]
    ground = make_ground(xy, candidates, rng)
    ground.anchor[0, 1, 1] = -0.8 * np.arange(kernels.BINS)  # near home is much likelier
    role, cls, time = np.array([0, 1]), np.array([0, 1]), np.array([9.0, 3.0])
    moves = np.array([[0, 2], [0, 0]])
    law = naive_life.sigma_law(ground, role, cls, time, moves)
    bins = {places: naive_life.distance_bin(xy, ground.limits, *places) for places in law}
    expected = np.bincount(list(bins.values()), list(law.values()), kernels.BINS)
    n = 4_000
    drawn = Counter(draw(ground, role, cls, time, moves, 30, n))
    found = Counter(bins[places] for places in drawn.elements())
    for b in range(kernels.BINS):
        assert abs(found[b] / n - expected[b]) <= naive_life.tolerance(expected[b], n) + 0.01
    busy = {(0, p) for _, p, w in candidates if w > 2}
    share = sum(law.get(places, 0.0) for places in busy)
    assert abs(sum(drawn[places] for places in busy) / n - share) <= naive_life.tolerance(share, n)


def test_homes_of_a_sequence_of_lives_are_as_people_live_within_one():
    rng = np.random.default_rng(6)
    weights = rng.uniform(0.2, 3, 40)
    ground = make_ground(rng.uniform(0, 9, (40, 2)), [(0, i, float(w)) for i, w in enumerate(weights)], rng)
    people = np.empty(40)
    people[ground.place] = ground.people
    sigma, n = np.empty(1, np.int64), 200
    found = np.zeros(40)
    for i in range(n):
        point = (n - 1 - i + rng.random()) / n
        arguments = np.array([0]), 1, np.array([0]), np.array([1.0]), np.zeros((1, 1), np.int64), 2, point
        kernels.draw_sigma(ground, *arguments, open_stream(KEY, 0, i), sigma)
        found[sigma[0]] += 1
    assert np.abs(found - n * people / people.sum()).max() <= 2  # independent draws: about 6


def test_a_home_of_which_nothing_is_left_is_not_drawn():
    rng = np.random.default_rng(6)
    ground = make_ground(rng.uniform(0, 9, (3, 2)), [(0, i, 1.0) for i in range(3)], rng)
    ground.weight[1] = 0.0
    role, cls, time, moves = np.array([0]), np.array([0]), np.array([1.0]), np.zeros((1, 1), np.int64)
    gone = int(ground.place[1])
    assert gone not in {places[0] for places in draw(ground, role, cls, time, moves, 1, 200)}


@pytest.mark.parametrize(("mean", "spread"), [(0.3, 0.5), (4.0, 0.05), (2.0, 8.0)])
def test_people_are_expected_as_the_definition_says(mean, spread):
    seen = np.array([-2.0, 0.0, 0.6, 3.2, 5.0, MANY - 0.1])
    found = expect_people(seen, np.full(6, mean), np.full(6, spread))
    wanted = [naive_life.expected_people(s, mean, spread, BLUR) for s in seen]
    assert found == pytest.approx(wanted, rel=1e-4)


def test_what_many_people_do_is_never_taken_for_noise():
    found = expect_people(np.array([30.0]), np.array([0.3]), np.array([8.0]))
    assert found == pytest.approx([(30 + 1 / 8) * 2.4 / 3.4])


def test_the_spread_of_places_is_estimated():
    rng = np.random.default_rng(1)
    cls, mean = np.repeat([0, 1], 20_000), rng.uniform(1, 6, 40_000)
    factor = np.append(np.ones(20_000), rng.gamma(1 / 0.5, 0.5, 20_000))
    seen = rng.poisson(mean * factor) + rng.laplace(0, BLUR, 40_000)
    spread = estimate_spread(seen, mean, cls, 2)
    assert spread[0] == pytest.approx(0.05)
    assert spread[-1] == pytest.approx(0.5, abs=0.05)


def test_a_class_without_candidates_cannot_be_placed():
    rng = np.random.default_rng(0)
    ground = make_ground(rng.uniform(0, 3, (3, 2)), [(0, 0, 1.0), (2, 1, 1.0)], rng)
    sigma = np.empty(1, np.int64)
    arguments = np.array([0, 1, 2]), 1, np.array([1]), np.array([1.0]), np.zeros((1, 1), np.int64), 2, 0.5
    assert not kernels.draw_sigma(ground, *arguments, open_stream(KEY, 0, 0), sigma)
