"""The mapping of a life against enumeration, and its samples against the law they are drawn from."""

from collections import Counter

import naive_life
import numpy as np
import pytest

from elsewhere.paper._generate_kernels import open_stream
from elsewhere.synthesis import _life_kernels as kernels
from elsewhere.synthesis.mapping import grid_over, square_of

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
    return kernels.Ground(
        xy, limits, place, np.searchsorted(cls, np.arange(K + 1)), weight, weight.copy(),
        np.append(0.0, np.cumsum(weight)), begin, corner, columns, rows,
        rng.normal(0, 0.7, (2, 2, K, kernels.BINS)), rng.normal(0, 0.7, kernels.BINS), keys, np.full(len(keys), 0.8),
    )  # fmt: skip


def draw(ground, role, cls, time, moves, sweeps, n):
    sigma, scores = np.empty(len(cls), np.int64), np.empty(kernels.EXACT + 100)
    for i in range(n):
        stream = open_stream(KEY, 0, i)
        assert kernels.draw_sigma(ground, role, len(cls), cls, time, moves, sweeps, scores, stream, sigma)
        yield tuple(sigma.tolist())


@pytest.mark.parametrize("seed", [0, 1])
def test_mappings_have_the_probabilities_of_their_definition(seed):
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, 3, (5, 2))
    candidates = [
        (0, 0, 2.0),
        (0, 1, 1.0),
        (1, 2, 1.5),
        (1, 3, 1.0),
        (1, 1, 0.5),
        (2, 4, 1.0),
        (2, 3, 2.0),
        (2, 0, 1.0),
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
    found = Counter(bins[places] for places in draw(ground, role, cls, time, moves, 30, n))
    for b in range(kernels.BINS):
        assert abs(found[b] / n - expected[b]) <= naive_life.tolerance(expected[b], n) + 0.01


def test_a_class_without_candidates_cannot_be_placed():
    rng = np.random.default_rng(0)
    ground = make_ground(rng.uniform(0, 3, (3, 2)), [(0, 0, 1.0), (2, 1, 1.0)], rng)
    sigma, scores = np.empty(1, np.int64), np.empty(kernels.EXACT + 100)
    arguments = np.array([0, 1, 2]), 1, np.array([1]), np.array([1.0]), np.zeros((1, 1), np.int64), 2, scores
    assert not kernels.draw_sigma(ground, *arguments, open_stream(KEY, 0, 0), sigma)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_ways_have_the_probabilities_of_their_definition(n):
    rng = np.random.default_rng(2)
    xy = np.array([[0.0, 0.0], [4.0, 0.5], [1.0, 0.3], [2.0, -0.2], [3.0, 0.4], [2.2, 0.8]])
    cells = np.array([2, 3, 4, 5])
    corner, columns, rows = grid_over(xy, 1.0)
    square = square_of(xy[cells], corner, columns, rows)
    order = np.argsort(square, kind="stable")
    moves = np.array(sorted([0 * 6 + 2, 2 * 6 + 3, 3 * 6 + 4, 4 * 6 + 1, 2 * 6 + 5]))
    passages = kernels.Passages(
        cells[order], rng.uniform(1, 4, 4), np.searchsorted(square[order], np.arange(columns * rows + 1)), corner,
        columns, rows, np.zeros((kernels.LENGTHS, 1)), 1.0, 0.7, np.ones(1), moves, rng.uniform(1, 3, 5), 0.0,
    )  # fmt: skip
    among, weight, fit = np.zeros(kernels.WAY_CELLS, np.int64), np.zeros(kernels.WAY_CELLS), np.zeros(kernels.WAY_CELLS)
    own = np.array([True, True, False, False, False, False])
    many = kernels.way_candidates(xy, passages, 0, 1, own, among, weight, fit)
    assert sorted(among[:many].tolist()) == cells.tolist()
    law = naive_life.way_law(xy, passages, 0, 1, n, dict(zip(among[:many].tolist(), weight[:many], strict=True)))
    table, filter_ = (
        np.zeros((kernels.WAY_CELLS, kernels.WAY_CELLS)),
        np.zeros((kernels.MOST_PASSES, kernels.WAY_CELLS)),
    )
    out, found, draws = np.zeros(kernels.MOST_PASSES, np.int64), Counter(), 6_000
    for i in range(draws):
        stream = open_stream(KEY, 1, i)
        assert kernels.draw_way(xy, passages, 0, 1, n, own, among, weight, fit, filter_, table, stream, out)
        found[tuple(out[:n].tolist())] += 1
    assert set(found) <= set(law)
    for cells_of_way, p in law.items():
        assert abs(found[cells_of_way] / draws - p) <= naive_life.tolerance(p, draws)
