"""
From noisy sums to a walk, and to a pool of walks that do together what the sums say: post-processing alone.

1. Maps of visits and arrivals are denoised by a Gaussian process on the public coordinates.
2. The tables of the walk are filled by matching moments: walks, or lives of several days around a home and a main
   place, are simulated and described by the very vectors that people were described by, and each weight goes where
   posterior mode of noise and prior puts it.
3. A pool of them is weighed by maximum entropy towards all sums, each with the slack its noise asks for.
"""

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import Codes, Floats, Ints
from elsewhere.privacy.private._fit_kernels import COUNTS, SHARES, scores
from elsewhere.privacy.private._lives_kernels import LAW, SEVERAL
from elsewhere.privacy.private._lives_kernels import OWN as OWN_PLACES
from elsewhere.privacy.private.lives import GUESS, Anchors, of_days
from elsewhere.privacy.private.vectors import DECAY, MOST, MOST_HABITS, PAIRS, Design
from elsewhere.scale import iterate_over, one_thread
from elsewhere.synthesis.walk._draw_kernels import draw_walks
from elsewhere.synthesis.walk._walk_kernels import COLUMNS, MOVING, Tables

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROUNDS, WALKS = 16, 4000  # of simulation, and days in each
ROUNDS_OF_LIVES = 16  # after these, where fakes live for several days
LIVES = 500  # in each, at least
FEW = 50  # people whose sums the first round matches, twice as many in each: far from a sum slopes lead astray
PAIRS_FROM = 8  # round from which move pairs enter: what they add is measured against a walk that is nearly right
SPREAD, SPREAD_LAW = 1.0, 3.0  # prior standard deviation of a weight of the walk, of the law of anchors
PAIR_SPREAD = 0.7  # of a move pair, beside what arrivals and lengths say, as a share of it
CERTAIN = 4.7  # standard deviations from which a move pair is believed whatever was expected
RANGE = 4.0  # of likeness between places, in distances between neighbours
# variance of ln density, near places alike, and times OWN of each its own: of the day, and of what differs from it
SPREAD_DAY, SPREADS, OWN = 2.0, (0.1, 0.3, 1.0, 3.0), 0.4
SPREADS_APART = np.append(0.0, 2.0 ** np.arange(-12, 7))  # of what differs in parts of the day, as shares of it
LEAST_OF_DAY = 0.01  # of its share of the day, that a place has in every part
STAY = 0.2  # of a day, that who comes to a place stays there: how a count over people scatters
NEWTON, CLOSE = 30, 1e-4  # steps to the mode of a map, and the one after which it is near enough
LEAST = 1e-12
STEP = 0.6  # of a Gauss-Newton step that is gone
POOL, MOST_OF, LEAST_OF = 40_000, 4, 40  # days that are weighed at a time; one in so many is taken at most, at least
POOL_LIVES = 4_000  # at a time, at least
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
        masses = np.array([day[a:b].sum() for a, b in pairwise(ends)])
        return Sums(design, y, sd, float((masses / sizes).sum() / (1 / sizes).sum()))

    def mean(self, name: str) -> Floats:
        """Return the mean of a block over people."""
        return np.asarray(self.design.of_block(self.y, name) / self.people)

    @property
    def noise_of_mean(self) -> float:
        """Return the standard deviation of the noise in a mean over people."""
        return self.sd / self.people

    def noise(self, name: str) -> float:
        """Return the standard deviation of the noise in `mean`."""
        return float(self.design.of_block(np.full(self.design.cells, self.sd), name)[0]) / self.people


class Smoother:
    """
    Denoises maps on the public coordinates: posterior mode of m = base exp(f), f a Gaussian process, m seen with noise.

    Human density varies by factors, not by amounts, hence the logarithm; places near each other are alike, and each has
    something of its own. How much maps differ from their base is told by the noisy sums themselves: of a few spreads
    that is taken under which they are likeliest (docs/decisions.md). Range and what is a place's own are constants.
    """

    def __init__(self, design: Design) -> None:
        R = design.R
        self.near = np.zeros((R, R))
        if design.locations.has_coordinates:
            xy = design.locations.planar()
            apart = np.sqrt(((xy[:, None] - xy) ** 2).sum(axis=2))
            nearest = np.sort(apart, axis=1)[:, 1]
            unit = float(np.median(nearest[nearest > 0])) if np.any(nearest > 0) else 1.0
            self.near = np.exp(-apart / (RANGE * unit))

    def __call__(self, sums: Floats, variance: float, base: Floats, spreads: Iterable[float], people: float) -> Floats:
        """Return shares (R,) that sum to 1, of a map of `sums` with noise of this `variance`, over so many people."""
        with one_thread():  # sums in one order on every machine (R5)
            modes = [self.mode(sums, variance, base, spread, people) for spread in spreads]
        m, _ = max(modes, key=lambda found: found[1])
        return np.asarray(m / m.sum())

    def mode(self, sums: Floats, variance: float, base: Floats, spread: float, people: float) -> tuple[Floats, float]:
        """Return the map, and ln of the probability of what was seen, by Laplace's approximation around it."""
        from scipy.linalg import cho_factor, cho_solve

        K = spread * (self.near + OWN * np.eye(len(sums)))
        pull, f, m = np.zeros(len(sums)), np.zeros(len(sums)), base
        for _ in range(NEWTON):
            v = variance + STAY * m / people + 1e-12
            factor = cho_factor(K + np.diag(v / m**2))
            step = cho_solve(factor, f + (sums - m) / m) - pull
            change = K @ step
            before, share = ((sums - m) ** 2 / v).sum() + f @ pull, 1.0
            while share > CLOSE:  # as far as it leads up: where noise is large a whole step may lead beyond
                g, to = f + share * change, pull + share * step
                with np.errstate(over="ignore"):
                    if ((sums - base * np.exp(g)) ** 2 / v).sum() + g @ to < before:
                        f, pull, m = g, to, base * np.exp(g)
                        break
                share /= 2
            if share * np.abs(change).max() < CLOSE:
                break
        v = variance + STAY * m / people + 1e-12
        curve = 2 * np.log(np.diag(factor[0])).sum() - np.log(v / m**2).sum()
        return m, float(-0.5 * (((sums - m) ** 2 / v + np.log(v)).sum() + f @ pull + curve))

    def apart(self, sums: Floats, variance: Floats, base: Floats) -> Floats:
        """
        Return differences (k, R) of maps from `base`, of `sums` with noise of this `variance` (R,) each.

        Parts of a day differ from it alike, as homes do and as places of work do: maps are turned to the directions in
        which they differ most, which leaves the noise as it is. Along each, places differ in proportion to `base`, near
        ones alike, by the spread under which the noisy map is likeliest; the posterior mean is linear then.
        """
        sd = np.sqrt(variance)
        with one_thread():  # sums in one order on every machine (R5)
            w, axes = np.linalg.eigh((base / sd)[:, None] * (self.near + OWN * np.eye(len(base))) * (base / sd))
            turn = np.linalg.svd(sums / sd, full_matrices=False)[0]
            g = turn.T @ (sums / sd) @ axes  # with noise of sd 1
            signal = SPREADS_APART[:, None, None] * np.maximum(w, 0)
            evidence = -0.5 * (g**2 / (1 + signal) + np.log1p(signal)).sum(axis=2)
            signal = signal[evidence.argmax(axis=0), 0]
            return np.asarray(turn @ (g * signal / (1 + signal)) @ axes.T * sd)


class Maps:
    """Denoised maps, shares that sum to 1: of the whole day, of its parts (P, R), and of arrivals."""

    def __init__(self, sums: Sums, smooth: Smoother) -> None:
        R, n = sums.design.R, sums.people
        visits, v = sums.mean("places"), sums.noise("places") ** 2
        # what bounding leaves of the whole; noise cannot make it nothing
        scale = max(float(visits.sum()), 4 * np.sqrt(v * R), 0.1)
        self.day = smooth(visits / scale, v / scale**2, np.full(R, 1 / R), (SPREAD_DAY,), n)
        apart, v = MOST[1] * sums.mean("parts").reshape(-1, R), (MOST[1] * sums.noise("parts")) ** 2
        long = (np.bincount(sums.design.period) / sums.design.L)[:, None]
        apart = smooth.apart(apart, v + long.mean() ** 2 * STAY * self.day / n, self.day)
        self.parts = np.maximum(self.day + apart / long, LEAST_OF_DAY * self.day)
        self.parts /= self.parts.sum(axis=1, keepdims=True)
        self.apart = (self.parts - self.day) * long / MOST[1]  # as `parts` of a bounded vector
        arrivals, v = sums.mean("arrivals"), sums.noise("arrivals") ** 2
        scale = max(float(arrivals.sum()), 4 * np.sqrt(v * R), 0.05)
        self.arrivals = smooth(arrivals / scale, v / scale**2, self.day, SPREADS, n)

    def anchors(self, sums: Sums) -> Anchors | None:
        """Return where homes and main places are, where fakes live for several days."""
        if sums.design.days == 1:
            return None
        return Anchors.of(sums.design, sums.mean("habits"), sums.noise("habits"), self.parts)


class Model(NamedTuple):
    """A walk; for lives of several days also the law of anchors, and where these are."""

    tables: Tables
    law: Floats
    anchors: Anchors | None

    def draw(self, days: int, rng: np.random.Generator) -> "Lives":
        """Draw one life for every `design.days` of these days."""
        if self.anchors is None:
            r = np.empty((days, len(self.tables.slot)), dtype=np.int32)
            draw_walks(self.tables, rng.random((days, 2 * r.shape[1] - 1)), r)
            return Lives(r, np.arange(days + 1), np.zeros(days, dtype=bool))
        D = self.anchors.design.days
        lives = self.anchors.draw(self.tables, self.law, max(1, days // D), rng)
        return Lives(lives.r.astype(np.int32), lives.start, lives.weekend)


class Lives(NamedTuple):
    """Days (rows, L) of lives, rows start[i] to start[i + 1] of each, and which are at a weekend."""

    r: Codes
    start: Ints
    weekend: NDArray[np.bool_]


def fit_walk(sums: Sums, maps: Maps, rng: np.random.Generator) -> Model:
    """
    Return the walk whose simulated traces do, on the mean, what the noisy sums say.

    Weights of moving, of destinations and of anchors by Gauss-Newton: the slope of the mean vector of walks in the
    weights is the covariance of their vectors with the slopes of ln Pr{walk}. Attraction and leaving of places by their
    maps.
    """
    with one_thread():  # sums in one order on every machine (R5)
        return _fitted(sums, maps, rng)


def _fitted(sums: Sums, maps: Maps, rng: np.random.Generator) -> Model:
    fit = _Fit(sums, maps)
    for turn in range(ROUNDS - 1):
        fit.round(None, FEW * 2.0**turn, rng, with_pairs=turn == PAIRS_FROM)
    anchors = maps.anchors(sums)
    if anchors is not None:
        fit.know(anchors)
        for turn in range(ROUNDS_OF_LIVES):
            fit.round(anchors, FEW * 2.0**turn, rng, with_pairs=False)
    return fit.model(anchors)


class _Fit:
    """Weights and tables on their way, and the goals they are led to."""

    def __init__(self, sums: Sums, maps: Maps) -> None:
        design = self.design = sums.design
        self.sums, self.maps = sums, maps
        self.attract, self.leaving, self.pairs = maps.arrivals.copy(), np.zeros(design.R), np.ones((design.R, design.R))
        self.centre = np.concatenate([design.guess().moving[:MOVING], np.zeros(COLUMNS), GUESS])
        self.ridge = np.repeat([SPREAD**-2, SPREAD_LAW**-2], [MOVING + COLUMNS, LAW])
        self.weight, self.cells = self.centre.copy(), np.arange(design.edges[3], design.edges[PAIRS])
        self.goal = sums.y[self.cells] / sums.people
        self.variance = np.full(len(self.cells), sums.noise_of_mean**2)
        self.slope, self.turn = np.zeros((len(self.goal), len(self.weight))), 0

    def know(self, anchors: Anchors) -> None:
        """Add what the sums say of habits to the goals."""
        habits, goal, variance = _habits_known(anchors)
        self.cells = np.append(self.cells, self.design.edges[-2] + habits)
        self.goal, self.variance = np.append(self.goal, goal), np.append(self.variance, variance)
        self.slope, self.turn = np.zeros((len(self.goal), len(self.weight))), 0

    def model(self, anchors: Anchors | None) -> Model:
        """Return the walk as it is."""
        w = self.weight
        tables = self.design.tables(
            self.maps.parts[0],
            _law(self.attract, self.design, self.pairs),
            np.exp(w[MOVING : MOVING + COLUMNS]),
            w[:MOVING],
            self.leaving,
            max(1, round(self.sums.people)),
        )
        return Model(tables, w[MOVING + COLUMNS :], anchors)

    def round(self, anchors: Anchors | None, people: float, rng: np.random.Generator, *, with_pairs: bool) -> None:
        """Simulate, and go a step towards the goals, which are matched as if they were of so many people."""
        R, maps, sums = self.design.R, self.maps, self.sums
        model = self.model(anchors)
        matrix, walks, moments = _simulated(model, self.design, self.cells, rng)
        x = matrix[:, self.cells].toarray()
        self.turn += 1
        # the mean over rounds: slopes change less than they scatter
        self.slope += (moments - self.slope) / min(self.turn, 4)
        v = self.variance + x.var(axis=0) * (1 / min(sums.people, people) + 1 / len(x)) + 1e-10
        curve = (self.slope.T / v) @ self.slope + np.diag(self.ridge)
        pull = (self.slope.T / v) @ (self.goal - x.mean(axis=0)) - (self.weight - self.centre) * self.ridge
        self.weight = np.clip(self.weight + STEP * np.clip(np.linalg.solve(curve, pull), -1, 1), -8, 8)
        arrivals = walks[:, 1:][walks[:, 1:] != walks[:, :-1]]
        there, been = np.bincount(arrivals, minlength=R) + 1.0, np.bincount(walks.ravel(), minlength=R) + 1.0
        there, been = there / there.sum(), been / been.sum()
        loose, loose_v = (2 / WALKS + 0.3 * sums.noise(name) for name in ("arrivals", "places"))
        more = (maps.arrivals + loose) / (there + loose)
        attract = self.attract * np.clip(more, 0.5, 2) ** 0.6
        self.attract = attract / attract.sum()
        stays = (maps.day + loose_v) / (been + loose_v) / more
        self.leaving = np.clip(self.leaving - 0.4 * np.log(np.clip(stays, 0.25, 4)), -4, 4)
        if with_pairs and self.design.weight[PAIRS] > 0:
            self.pairs = _pairs(sums, model.tables.steps, maps, _mean(matrix))


def _habits_known(anchors: Anchors) -> tuple[Ints, Floats, Floats]:
    """Return which habits the sums tell, and their means with the variance of noise, in units of a vector."""
    habits = np.flatnonzero(np.isfinite(anchors.variance))
    unit = anchors.design.weight[-1] / MOST_HABITS
    return habits, anchors.goal[habits] * unit, anchors.variance[habits] * unit**2


def _simulated(model: Model, design: Design, cells: Ints, rng: np.random.Generator) -> tuple["csr_array", Ints, Floats]:
    """Return vectors of simulated walks or lives, their days, and the slopes of the means of `cells` in all weights."""
    if model.anchors is None:
        r = np.empty((WALKS, design.L), dtype=np.int32)
        draw_walks(model.tables, rng.random((WALKS, 2 * design.L - 1)), r)
        walks = r.astype(np.int64)
        matrix = design.matrix(walks)
        score = np.zeros((WALKS // 2, MOVING + COLUMNS + LAW))  # half of them tell slopes well enough, and cost most
        scores(walks[: len(score)], model.tables, score)
        x = matrix[:, cells].toarray()
        return matrix, walks, (x - x.mean(axis=0))[: len(score)].T @ score / len(score)
    n = max(LIVES, WALKS // design.days)
    sample = model.anchors.draw(model.tables, model.law, n, rng, scored=True)
    matrix = design.matrix(sample.r, sample.start, sample.weekend)
    # what is a mean over days has slopes day by day; of what days have in common they are those of the whole life
    base = cells[cells < design.edges[PAIRS]]
    known, unit = cells[len(base) :] - design.edges[-2], design.weight[-1] / MOST_HABITS
    single = known[known < SEVERAL]
    days = np.hstack([design.matrix(sample.r)[:, base].toarray(), unit * of_days(sample, design)[:, single]])
    lives = matrix[:, design.edges[-2] + known[known >= SEVERAL]].toarray()
    whole = sample.score.reshape(n, design.days, -1).sum(axis=1)
    whole[:, : MOVING + COLUMNS + OWN_PLACES] = 0.0  # over many days scores scatter too much to tell other slopes
    moments = [
        (days - days.mean(axis=0)).T @ sample.score / len(days),
        (lives - lives.mean(axis=0)).T @ whole / n,
    ]
    return matrix, sample.r, np.vstack(moments)


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
    counts = sums.mean("pairs").reshape(R, R)
    spread = (PAIR_SPREAD * expected) ** 2
    posterior = expected + spread / (spread + s * s + expected / sums.people / 2.5) * (counts - expected)
    posterior = np.where(counts > max(CERTAIN * s, 0.5 / sums.people), counts, posterior)
    out = np.clip(posterior / np.maximum(expected, LEAST), 0.2, 1e6)
    np.fill_diagonal(out, 1.0)
    return np.asarray(out)


def _mean(matrix: "csr_array") -> Floats:
    return np.asarray(matrix.sum(axis=0)).ravel() / matrix.shape[0]


@dataclass(frozen=True, eq=False)
class Weigher:
    """
    Weighs pools of walks or lives, by exp(vector . z), so that they do together what the sums say, as far as `told`.

    Every pool has a z of its own: in another pool than the one it was fitted to a single walk may outweigh all others.
    """

    design: Design = field(repr=False)
    people: float
    goal: Floats = field(repr=False)
    variance: Floats = field(repr=False)
    told: NDArray[np.bool_] = field(repr=False)

    @staticmethod
    def of(sums: Sums, maps: Maps, anchors: Anchors | None) -> "Weigher":
        """Return the weigher towards these sums."""
        design, goal = sums.design, sums.y / sums.people
        v = np.full(design.cells, sums.noise_of_mean**2)
        # denoised maps are better goals than the sums they come from, and half as noisy
        places, parts = slice(0, design.R), slice(design.R, int(design.edges[2]))
        goal[places] = maps.day * goal[places].sum()
        goal[parts] = maps.apart.ravel() * design.weight[1]
        v[: parts.stop] /= 4
        told = np.zeros(design.cells, dtype=bool)
        told[: design.edges[PAIRS]] = True
        if anchors is not None:
            habits, goal_of, variance_of = _habits_known(anchors)
            at = design.edges[-2] + habits
            goal[at], v[at], told[at] = goal_of, variance_of, True
        return Weigher(design, sums.people, goal, v, told)

    def __call__(self, pool: Lives) -> Floats:
        """Return ln of the weight of each."""
        from scipy.optimize import minimize

        every = self.design.matrix(*pool)
        columns = np.flatnonzero(self.told & (_mean(every) != 0))
        X = every[:, columns].tocsr()
        v = self.variance[columns] + _mean(X.power(2)) * (1 / self.people + 1 / every.shape[0])
        goal, ridge = self.goal[columns], PRIOR_PEOPLE * v
        XT = X.T.tocsr()

        def loss(z: Floats) -> tuple[float, Floats]:
            score = X @ z
            top = score.max()
            e = np.exp(score - top)
            value = top + np.log(e.mean()) - z @ goal + (ridge * z * z).sum() / 2
            return float(value), XT @ (e / e.sum()) - goal + ridge * z

        with one_thread():
            z = minimize(loss, np.zeros(len(columns)), jac=True, method="L-BFGS-B", options={"maxiter": 80}).x
        return np.asarray(X @ z)


@dataclass(frozen=True, eq=False)
class _Weighed:
    """A pool of so many days, drawn by a stream, and ln of the weight of each life in it."""

    model: Model = field(repr=False)
    weigh: Weigher = field(repr=False)
    days: int

    def __call__(self, rng: np.random.Generator) -> tuple[Lives, Floats]:
        pool = self.model.draw(self.days, rng)
        return pool, self.weigh(pool)


def _worth(weight: Floats) -> int:
    """Return how many of a pool its weights are worth (Kish), of which ln is given."""
    share = np.exp(weight - weight.max())
    return int(share.sum() ** 2 / (share**2).sum())


def draw_fakes(
    sums: Sums, maps: Maps, model: Model, n: int, rng: np.random.Generator, executor: Executor | None = None
) -> tuple[Lives, tuple[str, ...]]:
    """
    Return `n` fakes of weighed pools, in random order, no two alike that move, and a note where some are.

    Drawn without replacement by exponential races, as many of each pool as the first one's weights are worth, so that
    what is likely stays so and memory does not grow with `n` but for the fakes themselves. Pools after the first are
    drawn and weighed on `executor`, each by a stream of its own.
    """
    D = sums.design.days
    size = max(POOL, POOL_LIVES * D) if D > 1 else POOL
    pool_of = _Weighed(model, Weigher.of(sums, maps, model.anchors), size)
    (stream,) = rng.spawn(1)
    first, weight = pool_of(stream)
    each = max(1, min(_worth(weight), len(weight) // MOST_OF), len(weight) // LEAST_OF)
    pools = chain([(first, weight)], iterate_over(pool_of, rng.spawn(-(-n // each) - 1), executor=executor))
    batches: list[tuple[Codes, NDArray[np.bool_]]] = []
    rows: set[bytes] = set()
    alike = 0
    for pool, weight in pools:
        rest = n - sum(len(r) for r, _ in batches)
        walks = pool.r.reshape(len(pool.start) - 1, -1)
        fresh = np.zeros(len(walks), dtype=bool)
        fresh[np.unique(walks, axis=0, return_index=True)[1]] = True
        fresh |= (walks == walks[:, :1]).all(axis=1)  # days at one place are alike by nature, and stay as many
        if batches:
            fresh &= np.array([row.tobytes() not in rows for row in walks]) | (walks == walks[:, :1]).all(axis=1)
        # other copies come last, if there are too few walks
        key = np.log(rng.exponential(size=len(walks))) - weight + np.where(fresh, 0.0, 1e6)
        picks = np.argsort(key, kind="stable")[: min(rest, each)]
        alike += len(picks) - int(fresh[picks].sum())
        batches.append((walks[picks], pool.weekend.reshape(len(walks), -1)[picks]))
        if rest > len(picks):
            rows |= {row.tobytes() for row in walks[picks]}
    order = rng.permutation(n)
    r = np.concatenate([walks for walks, _ in batches])[order].reshape(n * D, -1)
    weekend = np.concatenate([off for _, off in batches])[order].ravel()
    notes = [f"{alike} of {n} fakes are like another one: there are few ways to spend such days."] * (alike > 0)
    if model.anchors is not None and not model.anchors.several:
        notes.append(
            "hardly anybody has several days: how far the days of a fake resemble each other is a guess, the same for "
            "every file."
        )
    return Lives(r, np.arange(n + 1) * D, weekend), tuple(notes)
