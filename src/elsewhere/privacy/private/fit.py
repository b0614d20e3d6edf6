"""
From noisy sums to a walk, and to a pool of walks that do together what the sums say: post-processing alone.

1. Maps of visits and arrivals are denoised by a Gaussian process on the public coordinates.
2. The tables of the walk are filled by matching moments: walks are simulated, described by the very vectors that people
   were described by, and each weight goes where posterior mode of noise and prior puts it.
3. A pool of walks is weighed by maximum entropy towards all sums, each with the slack its noise asks for.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from elsewhere.privacy.private._fit_kernels import COUNTS, SHARES, scores
from elsewhere.privacy.private.vectors import DECAY, MOST, Design
from elsewhere.synthesis.walk._walk_kernels import COLUMNS, MOVING, Tables, stroll
from elsewhere.traces.model import Floats, Places

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROUNDS, WALKS = 16, 4000  # of simulation, and walks in each
FEW = 50  # people whose sums the first round matches, twice as many in each: far from a sum slopes lead astray
PAIRS_FROM = 8  # round from which move pairs enter: what they add is measured against a walk that is nearly right
SPREAD = 1.0  # prior standard deviation of a weight of the walk
PAIR_SPREAD = 0.7  # of a move pair, beside what arrivals and lengths say, as a share of it
CERTAIN = 4.7  # standard deviations from which a move pair is believed whatever was expected
RANGE = 4.0  # of likeness between places, in distances between neighbours
SPREAD_DAY, SPREAD_PART, OWN = 1.0, 0.3, 0.4  # variance of ln density: near places alike; times OWN, of each its own
STAY = 0.2  # of a day, that who comes to a place stays there: how a count over people scatters
NEWTON = 15
LEAST = 1e-12
STEP = 0.6  # of a Gauss-Newton step that is gone
POOL, SPARE = 40_000, 4  # walks that are weighed: so many, or so many times the fakes
PRIOR_PEOPLE = 300  # as many people as whom the walk weighs beside the sums


@dataclass(frozen=True, eq=False)
class Sums:
    """Noisy sums over people, with the sd of their noise; `people` is the noisy number of people."""

    design: Design = field(repr=False)
    y: Floats = field(repr=False)
    sd: float
    people: float

    @staticmethod
    def of(design: Design, y: Floats, sd: float) -> "Sums":
        """Read the number of people off the day statistics, in which everybody is counted four times."""
        day = 2 * design.of_block(y, "day")
        ends = np.cumsum([0, COUNTS, COUNTS, SHARES, 2])
        sizes = np.diff(ends)
        counted = np.array([day[a:b].sum() for a, b in pairwise(ends)])
        return Sums(design, y, sd, float((counted / sizes).sum() / (1 / sizes).sum()))

    def mean(self, name: str) -> Floats:
        """Return the mean of a block over people."""
        return np.asarray(self.design.of_block(self.y, name) / self.people)

    def noise(self, name: str) -> float:
        """Return the standard deviation of the noise in `mean`."""
        return float(self.design.of_block(np.full(self.design.cells, self.sd), name)[0]) / self.people


class Smoother:
    """
    Denoises maps on the public coordinates: posterior mode of m = base exp(f), f a Gaussian process, m seen with noise.

    Human density varies by factors, not by amounts, hence the logarithm; places near each other are alike, and each has
    something of its own. Range and spread are public constants, and the result hardly depends on them (decision 28).
    """

    def __init__(self, design: Design) -> None:
        R = design.R
        self.near, self.own = np.zeros((R, R)), np.eye(R)
        if design.locations.has_coordinates:
            xy = design.locations.planar()
            apart = np.sqrt(((xy[:, None] - xy) ** 2).sum(axis=2))
            nearest = np.sort(apart, axis=1)[:, 1]
            unit = float(np.median(nearest[nearest > 0])) if np.any(nearest > 0) else 1.0
            self.near = np.exp(-apart / (RANGE * unit))

    def __call__(self, seen: Floats, variance: float, base: Floats, spread: float, people: float) -> Floats:
        """Return the map, of which `seen` has noise of this `variance`, and is itself a count over so many people."""
        from scipy.linalg import solve

        K = spread * (self.near + OWN * self.own)
        f = np.zeros(len(seen))
        with threadpool_limits(1):  # sums in one order on every machine (R5)
            for _ in range(NEWTON):
                m = base * np.exp(f)
                noise = (variance + STAY * m / people) / m**2
                new = K @ solve(K + np.diag(noise + 1e-9), f + (seen - m) / m, assume_a="pos")
                f = f + np.clip(new - f, -1, 1)
        return np.asarray(base * np.exp(f))


class Maps:
    """Denoised maps, shares that sum to 1: of the whole day, of its parts (P, R), and of arrivals."""

    def __init__(self, sums: Sums, smooth: Smoother) -> None:
        R, n = sums.design.R, sums.people
        seen, v = sums.mean("places"), sums.noise("places") ** 2
        # what bounding leaves of the whole; noise cannot make it nothing
        scale = max(float(seen.sum()), 4 * np.sqrt(v * R), 0.1)
        day = smooth(seen / scale, v / scale**2, np.full(R, 1 / R), SPREAD_DAY, n)
        self.day = day / day.sum()
        apart, v = MOST[1] * sums.mean("parts").reshape(-1, R), (MOST[1] * sums.noise("parts")) ** 2
        long = np.bincount(sums.design.period) / sums.design.L
        parts = [
            smooth(self.day + d / share, v / share**2, self.day, SPREAD_PART, n)
            for d, share in zip(apart, long, strict=True)
        ]
        self.parts = np.stack([part / part.sum() for part in parts])
        self.apart = (self.parts - self.day) * long[:, None] / MOST[1]  # as `parts` of a bounded vector
        seen, v = sums.mean("arrivals"), sums.noise("arrivals") ** 2
        scale = max(float(seen.sum()), 4 * np.sqrt(v * R), 0.05)
        arrivals = smooth(seen / scale, v / scale**2, self.day, SPREAD_PART, n)
        self.arrivals = arrivals / arrivals.sum()


def fit_walk(sums: Sums, maps: Maps, rng: np.random.Generator) -> Tables:
    """
    Return the walk whose simulated traces do, on the mean, what the noisy sums say.

    Weights of moving and of destinations by Gauss-Newton: the slope of the mean vector of walks in the weights is the
    covariance of their vectors with the slopes of ln Pr{walk}. Attraction and leaving of places by their maps.
    """
    with threadpool_limits(1):  # sums in one order on every machine (R5)
        return _fitted(sums, maps, rng)


def _fitted(sums: Sums, maps: Maps, rng: np.random.Generator) -> Tables:
    design, R, L = sums.design, sums.design.R, sums.design.L
    first, attract, leaving = maps.parts[0], maps.arrivals.copy(), np.zeros(R)
    centre = np.concatenate([design.guess().moving, np.zeros(COLUMNS)])
    weight, cells = centre.copy(), slice(int(design.edges[3]), int(design.edges[6]))
    goal, pairs = sums.y[cells] / sums.people, np.ones((R, R))
    noise = {name: sums.noise(name) for name in ("arrivals", "places")}
    walks, slope = np.empty((WALKS, L), dtype=np.int64), np.zeros((len(goal), len(weight)))
    for turn in range(ROUNDS):
        steps = _law(attract, design, pairs)
        tables = design.tables(
            first, steps, np.exp(weight[MOVING:]), weight[:MOVING], leaving, max(1, round(sums.people))
        )
        if turn == ROUNDS - 1:
            break
        stroll(tables, rng.random((WALKS, 2 * L - 1)), walks)
        matrix = design.matrix(walks)
        x = matrix[:, cells].toarray()
        score = np.zeros((WALKS // 2, len(weight)))  # half of them tell slopes well enough, and these cost most
        scores(walks[: len(score)], tables, score)
        # the mean over rounds: slopes change less than they scatter
        slope += ((x - x.mean(axis=0))[: len(score)].T @ score / len(score) - slope) / min(turn + 1, 4)
        people = min(sums.people, FEW * 2.0**turn)
        v = (sums.sd / sums.people) ** 2 + x.var(axis=0) * (1 / people + 1 / WALKS) + 1e-10
        curve = (slope.T / v) @ slope + np.eye(len(weight)) / SPREAD**2
        pull = (slope.T / v) @ (goal - x.mean(axis=0)) - (weight - centre) / SPREAD**2
        weight = np.clip(weight + STEP * np.clip(np.linalg.solve(curve, pull), -1, 1), -8, 8)
        arrived = walks[:, 1:][walks[:, 1:] != walks[:, :-1]]
        there, been = np.bincount(arrived, minlength=R) + 1.0, np.bincount(walks.ravel(), minlength=R) + 1.0
        there, been = there / there.sum(), been / been.sum()
        loose = 2 / WALKS + 0.3 * noise["arrivals"]
        loose_v = 2 / WALKS + 0.3 * noise["places"]
        more = (maps.arrivals + loose) / (there + loose)
        attract = attract * np.clip(more, 0.5, 2) ** 0.6
        attract /= attract.sum()
        stays = (maps.day + loose_v) / (been + loose_v) / more
        leaving = np.clip(leaving - 0.4 * np.log(np.clip(stays, 0.25, 4)), -4, 4)
        if turn == PAIRS_FROM and design.weight[-1] > 0:
            pairs = _pairs(sums, steps, maps, _mean(matrix))
    return tables


def _law(attract: Floats, design: Design, pairs: Floats) -> Floats:
    steps = attract * DECAY[design.lengths] * pairs
    np.fill_diagonal(steps, 0.0)
    return np.asarray(steps / steps.sum(axis=1, keepdims=True) + LEAST)


def _pairs(sums: Sums, steps: Floats, maps: Maps, mean: Floats) -> Floats:
    """
    Return (R, R) how much more often each move is made than arrivals and lengths say.

    Posterior mean: what is expected is right within `PAIR_SPREAD` of itself; a pair that is `CERTAIN` is as it is.
    """
    R, s = sums.design.R, sums.noise("pairs")
    total = float(sums.design.of_block(mean, "pairs").sum())  # bounded move pairs of a walk
    expected = maps.arrivals[:, None] * steps
    expected *= total / expected.sum()
    seen = sums.mean("pairs").reshape(R, R)
    spread = (PAIR_SPREAD * expected) ** 2
    posterior = expected + spread / (spread + s * s + expected / sums.people / 2.5) * (seen - expected)
    posterior = np.where(seen > max(CERTAIN * s, 0.5 / sums.people), seen, posterior)
    out = np.clip(posterior / np.maximum(expected, LEAST), 0.2, 1e6)
    np.fill_diagonal(out, 1.0)
    return np.asarray(out)


def _mean(matrix: "csr_array") -> Floats:
    return np.asarray(matrix.sum(axis=0)).ravel() / matrix.shape[0]


def weighed_pool(sums: Sums, maps: Maps, tables: Tables, n: int, rng: np.random.Generator) -> tuple[Places, Floats]:
    """Return walks, and weights that sum to 1 under which they do together what the sums say, as far as noise tells."""
    from scipy.optimize import minimize

    design = sums.design
    walks = np.empty((n, design.L), dtype=np.int32)
    stroll(tables, rng.random((n, 2 * design.L - 1)), walks)
    every = design.matrix(walks)
    drawn = _mean(every)
    used = np.flatnonzero(drawn[: design.edges[6]] != 0)
    X = every[:, used].tocsr()
    goal = sums.y / sums.people
    v = np.full(design.cells, (sums.sd / sums.people) ** 2)
    # denoised maps are better goals than the sums they come from, and half as noisy
    places, parts = slice(0, design.R), slice(design.R, int(design.edges[2]))
    goal[places] = maps.day * goal[places].sum()
    goal[parts] = maps.apart.ravel() * design.weight[1]
    v[: parts.stop] /= 4
    v = v[used] + _mean(X.power(2)) * (1 / sums.people + 1 / n)
    goal, ridge = goal[used], PRIOR_PEOPLE * v
    XT = X.T.tocsr()

    def loss(z: Floats) -> tuple[float, Floats]:
        score = X @ z
        top = score.max()
        e = np.exp(score - top)
        value = top + np.log(e.mean()) - z @ goal + (ridge * z * z).sum() / 2
        return float(value), XT @ (e / e.sum()) - goal + ridge * z

    with threadpool_limits(1):
        z = minimize(loss, np.zeros(len(used)), jac=True, method="L-BFGS-B", options={"maxiter": 80}).x
    score = X @ z
    weight = np.exp(score - score.max())
    return walks, np.asarray(weight / weight.sum())


def draw_fakes(
    sums: Sums, maps: Maps, tables: Tables, n: int, rng: np.random.Generator
) -> tuple[Places, tuple[str, ...]]:
    """
    Return `n` fakes of the weighed pool, in random order, no two alike that move, and a note where some are.

    Drawn without replacement by exponential races: the pool is four times as large as what is drawn, or `POOL`.
    """
    walks, weight = weighed_pool(sums, maps, tables, max(POOL, SPARE * n), rng)
    _, first = np.unique(walks, axis=0, return_index=True)
    once = np.zeros(len(walks), dtype=bool)
    once[first] = True
    once |= (walks == walks[:, :1]).all(axis=1)  # days at one place are alike by nature, and stay as many as they are
    # other copies come last, if there are too few walks
    key = np.log(rng.exponential(size=len(walks))) - np.log(np.maximum(weight, LEAST)) + np.where(once, 0.0, 1e6)
    chosen = rng.permutation(np.argsort(key, kind="stable")[:n])
    alike = n - int(once[chosen].sum())
    note = f"{alike} of {n} fakes are like another one: there are few ways to spend such days."
    return walks[chosen], (note,) if alike else ()
