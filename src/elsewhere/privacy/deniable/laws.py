"""
A pool of walks and, for every archetype, how likely each of them is: the laws P_a that a release mixes.

The pool is drawn from the walk alone, so it says nothing of any seed. Archetype a then draws from it with probability

    P_a(f) = n_f sigma(x_a(f)) / Z_a,     x_a(f) = b s_a(f) + theta . phi(f) - c_a,

n_f how often f is in the pool, s_a(f) how much likelier than anybody people of archetype a are to be in the class of f,
summed over the slots, sigma the logistic function. Of all laws that make no walk more than A exp(STRENGTH) times
likelier than the pool does, these agree most with their archetypes, up to a softness 1 / b, while all archetypes
together keep the features phi: how often each place is visited, as the pool has it; each class at each slot, how
many make so many moves, see so many places and spend so long at one, as pool and people have it together; how many end
where they start, as people do. theta and c solve the convex dual; ridges say how closely each kind is kept.
"""

from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter, InvalidTraces, require_whole
from elsewhere.privacy.deniable._laws_kernels import log_sigma, sharing_loss
from elsewhere.privacy.deniable.archetypes import Archetypes
from elsewhere.scale import iterate_over, one_thread
from elsewhere.synthesis.walk._draw_kernels import draw_walks
from elsewhere.synthesis.walk._walk_kernels import Tables, day_statistics_of
from elsewhere.synthesis.walk.ways import Ways
from elsewhere.traces.model import Floats, Ints, Places

SHARPNESS = 15.0  # b, in standard deviations of the scores
STRENGTH = 3.0  # ln of how far beyond an equal share a law may concentrate (docs/decisions/0008-stock.md)
RIDGE_VISITS, RIDGE_STATISTICS, RIDGE_HOME = 0.05, 1e-2, 1e-3  # docs/decisions/0008-stock.md
TEACHERS = 100_000  # walks that theta is found on
SWEEPS = 80
TRUST = 200  # people as many as whom all walks of the pool weigh when goals are set
BLOCK = 50_000  # walks that are a piece of work
PER_FAKE = 400  # walks in the pool for each fake: few fakes are then the same walk
STEP, AT_ONCE = 256, 4096  # walks that a draw looks through, fakes drawn at once
LEAST_POOL, MOST_POOL = 20_000, 1_000_000


def pool_for(fakes: int) -> int:
    """Return how many walks to draw for so many fakes."""
    return min(MOST_POOL, max(LEAST_POOL, PER_FAKE * fakes))


@dataclass(frozen=True, eq=False)
class Laws:
    """
    Walks `r` (N, L), each once and in order, how often each was drawn, and ln P_a of each archetype, (N, A).

    The bytes of `r` are big-endian, whose order is that of the places: a trace is looked up without copying the pool.
    `log_p` is kept in single precision and is what all sums are made of, so the laws of draws and of `log_prob` are
    one; `reach` (A + 1, blocks) are their sums over the blocks of STEP walks so far, the walk's own law last. `places`
    are those of the map that the walks count in, None: all.
    """

    r: NDArray[np.integer]
    copies: Ints
    log_p: NDArray[np.float32]
    reach: Floats
    archetypes: Archetypes
    label: NDArray[np.integer]
    places: Ints | None = None

    @classmethod
    def of(
        cls,
        walk: Tables,
        archetypes: Archetypes,
        label: NDArray[np.integer],
        *,
        size: int,
        rng: np.random.Generator,
        places: Ints | None = None,
        ways: Ways | None = None,
        executor: Executor | None = None,
    ) -> Self:
        """
        Draw a pool of `size` walks and find the laws of the archetypes; `label` are the classes of the map.

        On `executor` the walks are drawn, each piece of them by a stream of its own.
        """
        require_whole("size", size, 1)
        label = np.asarray(label)
        here = label if places is None else label[places]
        _check(walk, archetypes, here)
        r = _drawn(walk, size, rng, executor)
        if ways is not None:
            r = ways.keep(r) if places is None else np.searchsorted(places, ways.keep(places[r])).astype(np.int32)
        order = _order(len(walk.first))
        _, first, copies = np.unique(_rows(r.astype(order)), return_index=True, return_counts=True)
        own = r[first]
        share, weights = _padded(archetypes), archetypes.size
        column = np.where(here >= 0, here, share.shape[2] - 1).astype(np.int64)
        with one_thread():  # sums in one order on every machine (R5)
            law = _Sharing.of(r[:TEACHERS], share, weights, column, len(walk.first), strength=STRENGTH, walk=walk)
            log_p = law.log_sigma(own)
            # in place: of a million walks and 64 archetypes every copy is 256 MB
            log_p += np.log(copies)[:, None].astype(np.float32)
            log_p -= log_p.max(axis=0)
            every = np.arange(0, len(own), STEP)
            sums = np.stack([np.add.reduceat(np.exp(log_p[:, a].astype(np.float64)), every) for a in range(len(share))])
            sums = np.vstack([sums, np.add.reduceat(copies.astype(np.float64), every)])
        return cls(own.astype(order), copies, log_p, np.cumsum(sums, axis=1), archetypes, label, places)

    def __len__(self) -> int:
        """Return the number of different walks."""
        return len(self.r)

    @property
    def A(self) -> int:
        """Return the number of archetypes."""
        return int(self.log_p.shape[1])

    def codes(self, r: Places, user: NDArray[np.integer] | None = None) -> Ints:
        """Return the archetype of each user of these rows, all their days counting alike; -1 where nothing is known."""
        r = np.asarray(getattr(r, "r", r))  # of `Traces`, or a table
        if r.shape[1] != self.archetypes.share.shape[1]:
            raise InvalidTraces(
                f"the archetypes were learnt for {self.archetypes.share.shape[1]} slots, got {r.shape[1]}.",
                code="E_MISMATCH",
            )
        classes = np.where(r >= 0, self.label[r], -1)
        return self.archetypes.nearest(classes, user)

    def draw(self, weights: Floats, without: float, n: int, rng: np.random.Generator) -> tuple[Places, Ints]:
        """
        Draw `n` fakes independently of each other from sum_a weights_a P_a + `without` times the walk's own law.

        With each comes the archetype that it was drawn from, -1 for the walk's own law: private.
        """
        which = rng.choice(self.A + 1, n, p=np.append(weights, without) / (np.sum(weights) + without))
        at, point = np.empty(n, dtype=np.int64), rng.random(n)
        for a in np.unique(which):
            mine = np.flatnonzero(which == a)
            for start in range(0, len(mine), AT_ONCE):
                some = mine[start : start + AT_ONCE]
                at[some] = self._found(int(a), point[some])
        r = self.r[at].astype(np.int32)
        return (r if self.places is None else self.places[r].astype(np.int32)), np.where(which < self.A, which, -1)

    def _found(self, a: int, point: Floats) -> Ints:
        """Return the walk of law a at each point of [0, 1): first its block, then the walk within."""
        reach = self.reach[a]
        point = point * reach[-1]
        block = np.minimum(np.searchsorted(reach, point, side="right"), len(reach) - 1)
        rest = point - np.where(block > 0, reach[block - 1], 0.0)
        rows = block[:, None] * STEP + np.arange(STEP)
        inside = np.minimum(rows, len(self) - 1)
        law = np.exp(self.log_p[inside, a].astype(np.float64)) if a < self.A else self.copies[inside].astype(np.float64)
        law[rows >= len(self)] = 0.0
        total = np.cumsum(law, axis=1)
        # rounding may leave the point on the last sum: the last walk with any is taken then
        at = np.argmax(total > np.minimum(rest, np.nextafter(total[:, -1], 0))[:, None], axis=1)
        return np.asarray(block * STEP + at)

    def log_prob_of(self, fakes: Places) -> Floats:
        """Return ln P_a(f) of every trace under every archetype, (F, A); -inf where it is not in the pool."""
        fakes = np.asarray(fakes)
        if self.places is not None:
            number = np.full(len(self.label), -1)
            number[self.places] = np.arange(len(self.places))
            fakes = number[fakes]
        at = self.find(fakes)
        log_p = self.log_p[at].astype(np.float64) - np.log(self.reach[:-1, -1])
        log_p[at < 0] = -np.inf
        return np.asarray(log_p)

    def log_prob(self, fakes: Places, seeds: Places) -> Floats:
        """Return ln Pr{f|s} = ln P_c(s)(f), (F, S), for an adversary who knows all laws; -inf where s has no code."""
        codes = self.codes(seeds)
        of_codes = self.log_prob_of(fakes)[:, np.maximum(codes, 0)]
        of_codes[:, codes < 0] = -np.inf
        return of_codes

    def find(self, r: Places) -> Ints:
        """Return (n,) where each trace is in the pool, -1 where it is not."""
        every, rows = _rows(self.r), _rows(r.astype(self.r.dtype))
        at = np.minimum(np.searchsorted(every, rows), len(every) - 1)
        return np.where(every[at] == rows, at, -1)


def _check(walk: Tables, archetypes: Archetypes, label: NDArray[np.integer]) -> None:
    if len(walk.first) != len(label):
        raise InvalidParameter(
            f"`walk` must be over the {len(label)} places of the classes, got {len(walk.first)}.", code="E_MISMATCH"
        )
    if archetypes.share.shape[1] != len(walk.slot):
        raise InvalidParameter(
            f"`archetypes` must have the {len(walk.slot)} slots of the walk, got {archetypes.share.shape[1]}.",
            code="E_MISMATCH",
        )
    if label.max(initial=-1) >= archetypes.share.shape[2]:
        raise InvalidParameter("`archetypes` must know all classes of the places.", code="E_MISMATCH")


@dataclass(frozen=True, eq=False)
class _Sharing:
    """theta and c of the dual, found on some of the pool."""

    score: Floats  # (A, L, C) b s, per slot and class
    place: Floats  # (R,)
    slot: Floats  # (L, C)
    statistics: Floats  # (4, L + 1)
    level: Floats  # (A,)
    column: Ints

    @classmethod
    def of(
        cls,
        r: NDArray[np.int32],
        share: Floats,
        weights: Floats,
        column: Ints,
        R: int,
        *,
        strength: float,
        walk: Tables,
    ) -> Self:
        """Minimise the convex dual, by a quasi-Newton method."""
        from scipy.optimize import minimize

        (A, L, C), N = share.shape, len(r)
        anybody = np.einsum("a,atc->tc", weights, share)
        score = share - anybody
        statistics = np.empty((N, 4), dtype=np.int64)
        day_statistics_of(r, statistics)
        s = np.zeros((N, A))
        for t in range(L):
            s += score[:, t].T[column[r[:, t]]]
        b = SHARPNESS / max(float(s.std()), 1e-9)
        alpha = np.exp(-strength) / A
        parts = np.cumsum([R, L * C, 4 * (L + 1)])
        ridge = np.full(parts[-1], RIDGE_VISITS)
        ridge[parts[1] :] = RIDGE_STATISTICS
        home = parts[1] + 3 * (L + 1)
        ridge[home:] = RIDGE_HOME
        visits = np.bincount(r.ravel(), minlength=R) / N
        goal = np.concatenate([visits, *_goals(r, statistics, column, anybody, walk)])
        s *= b

        def loss(z: Floats) -> tuple[float, Floats]:
            theta, level = z[: parts[2]], z[parts[2] :]
            moments, mass = np.zeros(parts[2]), np.zeros(A)
            value = sharing_loss(
                s,
                r,
                column,
                statistics,
                theta[: parts[0]],
                theta[parts[0] : parts[1]].reshape(L, C),
                theta[parts[1] :].reshape(4, L + 1),
                level,
                weights,
                1 / (alpha * N),
                moments[: parts[0]],
                moments[parts[0] : parts[1]].reshape(L, C),
                moments[parts[1] :].reshape(4, L + 1),
                mass,
            )
            value += float(weights @ level - theta @ goal + (ridge * theta**2).sum() / 2)
            return value, np.concatenate([moments - goal + ridge * theta, weights * (1 - mass)])

        start = np.concatenate([np.zeros(parts[2]), np.quantile(s, 1 - alpha, axis=0)])
        z = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": SWEEPS}).x
        theta, level = z[: parts[2]], z[parts[2] :]
        # an archetype of nobody asks for nothing, so no c is its best: it is given the walk's own law
        level[weights == 0] = -np.inf
        return cls(
            b * score,
            theta[: parts[0]].copy(),
            theta[parts[0] : parts[1]].reshape(L, C).copy(),
            theta[parts[1] :].reshape(4, L + 1).copy(),
            level.copy(),
            column,
        )

    def log_sigma(self, r: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return ln sigma(x_a(f)) of walks, (N, A)."""
        statistics = np.empty((len(r), 4), dtype=np.int64)
        day_statistics_of(r, statistics)
        out = np.empty((len(r), len(self.level)), dtype=np.float32)
        score = np.ascontiguousarray(self.score.transpose(1, 2, 0))
        log_sigma(r, self.column, statistics, score, self.place, self.slot, self.statistics, self.level, out)
        return out


def _goals(r: NDArray[np.int32], statistics: Ints, column: Ints, share: Floats, walk: Tables) -> tuple[Floats, Floats]:
    """
    Return what all archetypes together are to keep of classes at each slot, (L C,), and of day statistics, (4 (L +
    1),).

    People know what no step of a walk does: the hour, how they have lived so far, where the day began. But they are
    few, and walks are many: the goal is what people and TRUST people like the walks do together. Whether a day ends at
    its start is one number, for which people are enough.
    """
    (L, C), N = share.shape, len(r)
    slot = np.stack([np.bincount(column[r[:, t]], minlength=C) for t in range(L)]) / N
    shares = np.stack([np.bincount(of, minlength=L + 1) for of in statistics.T]) / N
    known = 1 - slot[:, -1:]  # people's shares are of places with a class
    slot = (walk.people * known * share + TRUST * slot) / (walk.people + TRUST)
    slot[:, -1:] = 1 - known
    shares[:3] = (walk.people * walk.day_statistics[:3] + TRUST * shares[:3]) / (walk.people + TRUST)
    shares[3] = walk.day_statistics[3]
    return slot.ravel(), shares.ravel()


def _drawn(walk: Tables, size: int, rng: np.random.Generator, executor: Executor | None) -> NDArray[np.int32]:
    r = np.empty((size, len(walk.slot)), dtype=np.int32)
    starts = range(0, size, BLOCK)
    pieces = [(min(BLOCK, size - a), stream) for a, stream in zip(starts, rng.spawn(len(starts)), strict=True)]
    for a, part in zip(starts, iterate_over(_Drawing(walk), pieces, executor=executor), strict=True):
        r[a : a + BLOCK] = part
    return r


@dataclass(frozen=True, eq=False)
class _Drawing:
    """So many walks, drawn by a stream."""

    walk: Tables = field(repr=False)

    def __call__(self, piece: tuple[int, np.random.Generator]) -> NDArray[np.int32]:
        size, rng = piece
        r = np.empty((size, len(self.walk.slot)), dtype=np.int32)
        draw_walks(self.walk, rng.random((size, 2 * r.shape[1] - 1)), r)
        return r


def _padded(archetypes: Archetypes) -> Floats:
    """Return the shares of the archetypes with a last column for places of no class, which are nobody's wish."""
    A, L, _ = archetypes.share.shape
    return np.concatenate([archetypes.share, np.zeros((A, L, 1))], axis=2)


def _order(R: int) -> np.dtype[Any]:
    """
    Return a type of big-endian numbers of R places, in as few bytes as hold them: their bytes are ordered as
    the places are.
    """
    return np.dtype(">i2" if R < 2**15 else ">i4")


def _rows(r: NDArray[np.integer]) -> NDArray[np.void]:
    """Return each trace as one value that can be sorted and looked up."""
    r = np.ascontiguousarray(r)
    return r.view(np.dtype((np.void, r.dtype.itemsize * r.shape[1]))).ravel()
