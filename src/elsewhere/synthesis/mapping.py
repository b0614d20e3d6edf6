"""
WHERE: one mapping per life from its own places to real places, drawn jointly.

P(sigma) = W_c(home) x P(the rest | home); the rest ~ product over own places of W_c(sigma), times factors of the
distances between tied places (home and everything, main place and everything, places that follow each other), of
sparse records also of distances by the time between, and where places have no coordinates of usual moves instead.
W_c(r) is the number of people who may be expected to use place r in way c: the posterior mean given noisy counts of
people in squares, coarse to fine, and at the place itself, so that a place of few people counts as its neighbourhood
does, while homes stay where people live. Places with few visitors may be left out, which is drawn.
The seed's own contribution is left out when its fake is placed. Homes of all lives are spread evenly over the weights:
as many fakes live in each part of town as people do. The factors of distances are raked: places of people are drawn
again with the factors so far, and each factor grows by how much rarer its bin is among them than among people.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from elsewhere.data.visits import DAY, Floats, Ints, Locations
from elsewhere.synthesis import _life_kernels as kernels
from elsewhere.synthesis._diary_kernels import SOON, TIES
from elsewhere.synthesis.groups import LEAVES, Groups, Stays

VISITORS, DRAWN = 2.5, 3.0  # people who must be seen at a place, and the scale of the noise on their number
BLUR = 1.2  # scale of the noise on how many people use it in which way
MANY = 10  # people of whom noise hides nothing
PLACES = 9  # of a square
END = 0.5  # people for whom a place stands that nobody passes: it may only be an end of ways
LEAST, NOISE = 4.0, 1.5  # people who must pass a cell or make a move, and the scale of the noise
RAKES = 8
RAKED = 8_000  # own places that are drawn again, with those of the same people
SIDE = 2.0  # squares of the grid, in usual lengths of a move
OFTEN = 1.5  # moves for each pair of places, from which on people go the same ways again
TRUST = 12.0  # pairs that the prior of a factor counts for
QUANTILES = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 1.0)  # of distances, between which bins lie; the last is beyond
RAREST = 6.0  # largest ln factor


class Ties(NamedTuple):
    """Own places that follow each other: usages `a` and `b`, and how soon at best each of a person's followed each."""

    a: Ints
    b: Ints
    first: Ints  # (people + 1,) own places of each person
    soon: Ints  # person by person, (own places, own places): 0 never, TIES at once
    soon_first: Ints  # (people + 1,)
    paced: bool  # where everything is recorded and people go the same ways again, times differ more than distances


def noisy(count: Floats, rng: np.random.Generator) -> Floats:
    """Return counts of people with Laplace noise; those that come out below LEAST become 0."""
    out = count + rng.laplace(0.0, NOISE, count.shape)
    return np.where(out >= LEAST, out, 0.0)


def learn_mapping(stays: Stays, groups: Groups, locations: Locations, rng: np.random.Generator) -> kernels.Where:
    """Learn where people live their classes, and how far apart."""
    R, K = len(locations), groups.K
    xy = locations.planar() if locations.has_coordinates else np.zeros((R, 2))
    places, flat = open_places(stays, R, rng), None if not locations.has_coordinates else xy
    own = groups.use_class * R + stays.use_place
    cell = open_cells(own, places, K, R)
    weight, less = learn_weights(own, cell, flat, R, rng)
    left = less / weight
    passes, passed = np.unique((stays.user * R + stays.place)[stays.usage < 0]) % R, np.zeros(R)
    ways, many = np.intersect1d(passes, places), len(np.unique(stays.user[stays.usage < 0]))
    passed[places] = END
    if len(ways) and noisy(np.array([many]), rng)[0]:
        passed[ways] = learn_weights(passes, ways, flat, R, rng)[0]
    at = np.minimum(np.searchsorted(cell, own), len(cell) - 1)
    some = cell[at] == own

    ties = find_ties(stays, groups)
    length = np.hypot(*(xy[stays.use_place[ties.a]] - xy[stays.use_place[ties.b]]).T)
    length = length[length > 0]
    unit = float(np.median(length)) / 2 if len(length) else 1.0
    limits = np.quantile(length, QUANTILES) ** 2 * (1 + 1e-9) if len(length) else np.arange(1.0, kernels.BINS)
    paces = (2 * unit * 2 ** np.linspace(-5, 2.5, kernels.PACES - 1)) ** 2
    corner, columns, height = grid_over(xy, SIDE * 2 * unit)
    square = square_of(xy, corner, columns, height)
    order = np.lexsort((cell % R, square[cell % R], cell // R))
    cell, weight = cell[order], weight[order]
    place, cls = cell % R, cell // R
    squares = columns * height
    first = np.searchsorted(cls, np.arange(K + 1))
    begin = np.searchsorted(cls * squares + square[place], (np.arange(K)[:, None] * squares + np.arange(squares + 1)))
    ground = kernels.Ground(
        xy, limits, place, first, weight, np.append(0.0, np.cumsum(weight)), weight.copy(),
        np.append(0.0, np.cumsum(weight)), begin, corner, columns,
        height, np.zeros((2, 2, K, kernels.BINS)), np.zeros(kernels.BINS), paces,
        np.zeros((TIES + 1, kernels.PACES)), np.zeros(0, np.int64), np.zeros(0),
    )  # fmt: skip
    if locations.has_coordinates:
        ground = _rake(ground, stays, groups, ties, rng)
    else:
        ground = _usual_moves(ground, stays, ties, rng)

    # the candidates of each person's own places, and what is left of their weight without it
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    first_of = np.searchsorted(stays.use_user[some], np.arange(stays.people + 1))
    return kernels.Where(ground, passed, back[at[some]], left[at[some]], first_of)


def find_ties(stays: Stays, groups: Groups) -> Ties:
    """Return which own places follow each other in people's lives: on one day, or with nothing unknown in between."""
    rows = np.flatnonzero(stays.usage >= 0)
    user, usage, day = stays.user[rows], stays.usage[rows], stays.start[rows] // DAY
    chain = np.cumsum(~stays.joined)[rows]
    near = (user[1:] == user[:-1]) & ((chain[1:] == chain[:-1]) | (day[1:] == day[:-1])) & (usage[1:] != usage[:-1])
    a, b = usage[:-1][near], usage[1:][near]
    gap = stays.start[rows[1:]][near] - stays.end[rows[:-1]][near]
    size = np.bincount(stays.use_user, minlength=stays.people)
    first, soon_first = np.append(0, np.cumsum(size)), np.append(0, np.cumsum(size**2))
    owner = stays.use_user[a]
    pairs = soon_first[owner] + (a - first[owner]) * size[owner] + b - first[owner]
    by_trip = (groups.ways[groups.use_class[a]] & LEAVES) // LEAVES
    soon = np.zeros(int(soon_first[-1]), dtype=np.int64)
    np.maximum.at(soon, pairs, TIES // 2 * (1 + by_trip) - np.searchsorted(SOON, gap, side="right"))
    return Ties(a, b, first, soon, soon_first, stays.events or len(pairs) < OFTEN * len(np.unique(pairs)))


def open_places(stays: Stays, R: int, rng: np.random.Generator) -> Ints:
    """Return the places that are published: of those with few visitors, whether is drawn."""
    visitors = np.bincount(np.unique(stays.user * R + stays.place) % R, minlength=R)
    shared = (visitors + rng.laplace(0.0, DRAWN, R) >= VISITORS) & (visitors > 0)
    return np.flatnonzero(shared if shared.any() else visitors > 0)


def open_cells(own: Ints, places: Ints, K: int, R: int) -> Ints:
    """Return the (class, place) cells of published places, sorted; a class without any gets all published places."""
    cell = np.unique(own[np.isin(own % R, places)])
    missing = np.setdiff1d(np.arange(K), cell // R)
    return np.sort(np.concatenate([cell, (missing[:, None] * R + places).ravel()]))


def learn_weights(use: Ints, cell: Ints, xy: Floats | None, R: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """
    Return how many people are expected to use each candidate, and if one less had been seen.

    From noisy counts of people, coarse to fine.
    """
    cls, place = cell // R, cell % R
    K = int(cls.max()) + 1
    mean: Floats = np.bincount(use // R, minlength=K)[cls] / np.bincount(cls, minlength=K)[cls]
    for square in _squares(xy) if xy is not None else ():
        many = int(square.max()) + 1
        key, at = np.unique(cls * many + square[place], return_inverse=True)
        expected = np.bincount(at, mean).astype(float)
        people = np.bincount(use // R * many + square[use % R], minlength=K * many)[key]
        seen = people + rng.laplace(0.0, BLUR, len(key))
        found = expect_people(seen, expected, estimate_spread(seen, expected, key // many, K))
        mean = mean * (found / expected)[at]
    # a place that many use in one way is used in others too
    key, at = np.unique(place, return_inverse=True)
    expected = np.bincount(at, mean).astype(float)
    seen = np.bincount(use % R, minlength=R)[key] + rng.laplace(0.0, BLUR, len(key))
    found = expect_people(seen, expected, estimate_spread(seen, expected, np.zeros_like(key), 1))
    mean = mean * (found / expected)[at]
    used = np.sort(use)
    people = np.searchsorted(used, cell, "right") - np.searchsorted(used, cell)
    seen = people + rng.laplace(0.0, BLUR, len(cell))
    spread = estimate_spread(seen, mean, cls, K)
    expected, odds = expect_people(seen, mean, spread), spread * mean
    one_less = expected - odds / (1 + odds)  # of many, where the posterior mean is linear
    return expected, np.where(seen < MANY, expect_people(seen - 1.0, mean, spread), one_less)


def estimate_spread(seen: Floats, mean: Floats, cls: Ints, K: int) -> Floats:
    """Return the variance of places' own factors about 1, that of its class for each, by the method of moments."""
    trust = 1 / (1 + mean) ** 2
    excess = np.bincount(cls, trust * ((seen - mean) ** 2 - mean - 2 * BLUR**2), K)
    return np.asarray(np.clip(excess / np.maximum(np.bincount(cls, trust * mean**2, K), 1e-9), 0.05, 20.0))[cls]


def expect_people(seen: Floats, mean: Floats, spread: Floats) -> Floats:
    """
    Return the posterior mean of numbers of people of which `seen` is a count with Laplace noise.

    The number expected, a mean times a gamma factor of variance `spread`; the count, Poisson; the noise of scale BLUR.
    """
    shape, odds = 1 / spread, spread * mean
    weight, total, sum_ = (1 + odds) ** -shape, np.zeros(len(seen)), np.zeros(len(seen))
    for n in range(6 * MANY):
        likely = weight * np.exp(-np.abs(seen - n) / BLUR)
        total, sum_ = total + likely, sum_ + n * likely
        weight = weight * (n + shape) / (n + 1) * odds / (1 + odds)
    people = np.where(seen < MANY, sum_ / np.maximum(total, 1e-300), seen)  # of many, noise hides nothing
    return np.asarray((people + shape) * odds / (1 + odds))


def _squares(xy: Floats) -> Iterator[Ints]:
    """Yield the square of each place on grids that get finer, the last of about PLACES places a square."""
    size = np.ptp(xy, axis=0)
    side = float(np.sqrt(size.prod() * PLACES / len(xy)))
    levels = max(int(np.log2(max(size.max() / max(side, 1e-9), 1.0))), 0)
    for level in range(levels, -1, -1):
        corner, columns, rows = grid_over(xy, side * 2**level)
        yield np.unique(square_of(xy, corner, columns, rows), return_inverse=True)[1]


def grid_over(xy: Floats, side: float) -> tuple[Floats, int, int]:
    """Return corner and side of a grid over the map, its columns and rows: at most about 4,096 squares."""
    corner, size = xy.min(0), np.ptp(xy, axis=0)
    side = max(side, float(np.sqrt(size.prod() / 4096)), float(size.max()) / 2048, 1e-6)
    return np.array([*corner, side]), int(size[0] / side) + 1, int(size[1] / side) + 1


def square_of(xy: Floats, corner: Floats, columns: int, rows: int) -> Ints:
    """Return the number of the square of each point."""
    at = np.minimum((xy - corner[:2]) / corner[2], (columns - 1, rows - 1)).astype(np.int64)
    return np.asarray(at[:, 1] * columns + at[:, 0])


def _rake(ground: kernels.Ground, stays: Stays, groups: Groups, ties: Ties, rng: np.random.Generator) -> kernels.Ground:
    """Return the ground with factors under which tied places are as far apart, and used as often, as people's are."""
    n = np.bincount(stays.use_user, minlength=stays.people)
    people = np.flatnonzero((n > 1) & (n <= 200))
    people = rng.permutation(people)
    people = people[: np.searchsorted(np.cumsum(n[people]), RAKED) + 1]
    take = np.concatenate([np.arange(*ties.first[u : u + 2]) for u in people] or [np.zeros(0, int)])
    flow = np.concatenate([ties.soon[slice(*ties.soon_first[u : u + 2])] for u in people] or [np.zeros(0, int)])
    first, flow_first = np.append(0, np.cumsum(n[people])), np.append(0, np.cumsum(n[people] ** 2))
    rows = np.flatnonzero(stays.usage >= 0)
    time = np.bincount(stays.usage[rows], np.maximum(stays.end[rows] - stays.start[rows], 60), len(stays.use_user))
    K, R = groups.K, len(ground.xy)
    cls = np.repeat(np.arange(K), np.diff(ground.first))
    cell = cls * R + ground.place
    order = np.argsort(cell)
    square = cls * ground.columns * ground.rows + square_of(
        ground.xy[ground.place], ground.corner, ground.columns, ground.rows
    )
    goal = ground.people / np.maximum(np.bincount(cls, ground.people, K), 1e-9)[cls]
    again = np.empty(len(take), dtype=np.int64)
    for step in range(RAKES):
        damp = 0.7 / (1 + step / 3)  # factors of several ties act together
        real, drawn = np.zeros((5, K, kernels.BINS)), np.zeros((5, K, kernels.BINS))
        paces = np.zeros((2, TIES + 1, kernels.PACES))
        key = rng.integers(0, 2**63, 2).astype(np.uint64)
        kernels.count_distances(
            ground, groups.role, first, groups.use_class[take], stays.use_place[take], time[take], flow, flow_first,
            3, key, real, drawn, paces, again,
        )  # fmt: skip
        # classes with few pairs lean on all classes
        total = real.sum(1, keepdims=True) + TRUST, drawn.sum(1, keepdims=True) + TRUST
        base = np.log(total[0] / total[0].sum(2, keepdims=True)) - np.log(total[1] / total[1].sum(2, keepdims=True))
        prior = drawn.sum(2, keepdims=True) / np.maximum(drawn.sum(2, keepdims=True), 1) * TRUST / kernels.BINS
        few = np.log(real + prior + 1e-3) - np.log(drawn + prior + 1e-3)
        pairs = drawn.sum(2, keepdims=True)
        change = (pairs * few + 3 * TRUST * base) / (pairs + 3 * TRUST)
        change = damp * np.clip(change, -1.0, 1.0)
        # a distance that nobody has, such as that of two cities: at once as rare as can be
        nobody = (real.sum(1) == 0) & (real.sum((1, 2)) > 10 * TRUST)[:, None]
        change = np.where(nobody[:, None], -RAREST, change)
        paces[:, : 1 if ties.paced else None] = 0  # places that never follow each other have no pace
        pace = ground.pace + damp * np.clip(np.log((paces[0] + TRUST) / (paces[1] + TRUST)), -1.0, 1.0)
        anchor = ground.anchor + change[:4].reshape(2, 2, K, kernels.BINS)
        used = groups.use_class[take][again >= 0] * R + again[again >= 0]
        count = np.bincount(order[np.searchsorted(cell[order], used)], minlength=len(cell)).astype(float)
        wanted = goal * np.bincount(cls, count, K)[cls]
        weight = ground.weight * _nearer(wanted, count, np.arange(len(cell)), 2.0, damp)
        weight *= _nearer(wanted, count, square, 4.0, damp)
        ground = ground._replace(
            anchor=np.clip(anchor, -RAREST, RAREST),
            step=np.clip(ground.step + change[4, 0], -RAREST, RAREST),
            pace=np.clip(pace, -RAREST, RAREST),
            weight=weight,
            total=np.append(0.0, np.cumsum(weight)),
        )
    return ground


def _nearer(wanted: Floats, count: Floats, group: Ints, prior: float, damp: float) -> Floats:
    """Return factors that bring counts, summed by group, nearer to what is wanted."""
    factor = (np.bincount(group, wanted) + prior) / (np.bincount(group, count) + prior)
    return np.asarray((np.clip(factor, 0.3, 3.0) ** damp)[group])


def _usual_moves(ground: kernels.Ground, stays: Stays, ties: Ties, rng: np.random.Generator) -> kernels.Ground:
    """Return the ground with a factor for pairs of places that more people have than their weights make likely."""
    R = len(ground.xy)
    ends = np.sort([stays.use_place[ties.a], stays.use_place[ties.b]], axis=0)
    of = np.unique(np.stack([ends[0] * R + ends[1], stays.use_user[ties.a]]), axis=1)
    pair, people = np.unique(of[0], return_counts=True)
    many = noisy(people.astype(float), rng)
    pair, many = pair[many > 0], many[many > 0]
    use = np.bincount(ground.place, ground.weight, R)
    expected = use[pair // R] * use[pair % R] / max(use.sum(), 1e-9) + 1.0
    return ground._replace(moves=pair, usual=np.clip(np.log1p(many / expected), 0.0, 2.0) * 0.5)
