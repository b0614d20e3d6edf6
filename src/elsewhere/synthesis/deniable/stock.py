"""
A stock of walks and, for every group, how likely each of them is: the law of the deniable mode's walking emission.

The stock is drawn from the walk alone, so it says nothing of any seed. Group a then draws from it with probability

    P_a(f) = n_f sigma(x_a(f))^lam / Z_a,     x_a(f) = b s_a(f) + theta . phi(f) - c_a,

n_f how often f is in the stock, s_a(f) how much likelier than anybody people of group a are to be in the class of f,
summed over the instants, sigma the logistic function. Of all laws that make no walk more than 1 / alpha times likelier
than the stock does, these (with lam = 1) agree most with their groups, up to a softness 1 / b, while all groups
together keep the features phi: how often each place is visited, as the stock has it; each class at each instant, how
many make so many moves, see so many places and spend so long at one, as stock and people have it together; how many end
where they start, as people do. theta and c solve the convex dual; ridges say how closely each kind is kept.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from elsewhere.synthesis.deniable._kernels import log_sigma, sharing_loss
from elsewhere.synthesis.deniable.archetypes import Archetypes
from elsewhere.synthesis.walk._kernels import Tables, life_of, stroll
from elsewhere.traces.model import Floats, Ints, Places

SHARPNESS = 15.0  # b, in standard deviations of the scores
RIDGE_VISITS, RIDGE_LIFE, RIDGE_HOME = 0.05, 1e-2, 1e-3  # docs/decisions/0008-stock.md
TEACHERS = 100_000  # walks that theta is found on
SWEEPS = 80
TRUST = 200  # people as many as whom all walks of the stock weigh when goals are set
BLOCK = 50_000  # walks drawn at once


@dataclass(frozen=True, eq=False)
class Stock:
    """
    Walks `r` (N, L), each once and in order, how often each was drawn, and ln P_a of each group, (N, A).

    The bytes of `r` are big-endian, whose order is that of the places: a trace is looked up without copying the stock.
    `log_p` is kept in single precision and is what all sums are made of, so the laws of draws and of `log_p` are one.
    """

    r: NDArray[np.int16]
    copies: Ints
    log_p: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        walk: Tables,
        archetypes: Archetypes,
        label: NDArray[np.integer],
        *,
        size: int,
        strength: float,
        lam: float,
        rng: np.random.Generator,
    ) -> Self:
        """`size` walks, and the laws of the groups; `lam` tempers them, 0 makes them all the walk's own."""
        r = _drawn(walk, size, rng)
        _, first, copies = np.unique(_rows(r), return_index=True, return_counts=True)
        own = r[first]
        share, weights = _padded(archetypes), archetypes.weights
        column = np.where(label >= 0, label, share.shape[2] - 1).astype(np.int64)
        with threadpool_limits(1):  # sums in one order on every machine (R5)
            if lam == 0:
                log_p = np.zeros((len(own), len(share)), dtype=np.float32)
            else:
                teachers, R = r[:TEACHERS], len(walk.first)
                law = _Sharing.of(teachers, share, weights, column, R, strength=strength, walk=walk)
                log_p = law.log_sigma(own)
            # in place: of a million walks and 64 groups every copy is 256 MB
            log_p *= np.float32(lam)
            log_p += np.log(copies)[:, None].astype(np.float32)
            log_p -= log_p.max(axis=0)
        return cls(own.astype(">i2"), copies, log_p)

    def __len__(self) -> int:
        """Number of different walks."""
        return len(self.r)

    def find(self, r: Places) -> Ints:
        """(n,) where each trace is in the stock, -1 where it is not."""
        every, wanted = _rows(self.r), _rows(r)
        at = np.minimum(np.searchsorted(every, wanted), len(every) - 1)
        return np.where(every[at] == wanted, at, -1)


@dataclass(frozen=True, eq=False)
class _Sharing:
    """theta and c of the dual, found on some of the stock."""

    score: Floats  # (A, L, C) b s, per instant and class
    place: Floats  # (R,)
    slot: Floats  # (L, C)
    life: Floats  # (4, L + 1)
    level: Floats  # (A,)
    column: Ints

    @classmethod
    def of(
        cls,
        r: NDArray[np.int16],
        share: Floats,
        weights: Floats,
        column: Ints,
        R: int,
        *,
        strength: float,
        walk: Tables,
    ) -> Self:
        """The convex dual, by a quasi-Newton method."""
        from scipy.optimize import minimize

        (A, L, C), N = share.shape, len(r)
        anybody = np.einsum("a,atc->tc", weights, share)
        score = share - anybody
        life = np.empty((N, 4), dtype=np.int64)
        life_of(r, life)
        s = np.zeros((N, A))
        for t in range(L):
            s += score[:, t].T[column[r[:, t]]]
        b = SHARPNESS / max(float(s.std()), 1e-9)
        alpha = np.exp(-strength) / A
        parts = np.cumsum([R, L * C, 4 * (L + 1)])
        ridge = np.full(parts[-1], RIDGE_VISITS)
        ridge[parts[1] :] = RIDGE_LIFE
        home = parts[1] + 3 * (L + 1)
        ridge[home:] = RIDGE_HOME
        visits = np.bincount(r.ravel(), minlength=R) / N
        goal = np.concatenate([visits, *_goals(r, life, column, anybody, walk)])
        s *= b

        def loss(z: Floats) -> tuple[float, Floats]:
            theta, level = z[: parts[2]], z[parts[2] :]
            moments, mass = np.zeros(parts[2]), np.zeros(A)
            value = sharing_loss(
                s,
                r,
                column,
                life,
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
        # a group of nobody asks for nothing, so no c is its best: it is given the walk's own law
        level[weights == 0] = -np.inf
        return cls(
            b * score,
            theta[: parts[0]].copy(),
            theta[parts[0] : parts[1]].reshape(L, C).copy(),
            theta[parts[1] :].reshape(4, L + 1).copy(),
            level.copy(),
            column,
        )

    def log_sigma(self, r: NDArray[np.int16]) -> NDArray[np.float32]:
        """ln sigma(x_a(f)) of walks, (N, A)."""
        life = np.empty((len(r), 4), dtype=np.int64)
        life_of(r, life)
        out = np.empty((len(r), len(self.level)), dtype=np.float32)
        score = np.ascontiguousarray(self.score.transpose(1, 2, 0))
        log_sigma(r, self.column, life, score, self.place, self.slot, self.life, self.level, out)
        return out


def _goals(r: NDArray[np.int16], life: Ints, column: Ints, share: Floats, walk: Tables) -> tuple[Floats, Floats]:
    """
    What all groups together are to keep of classes at each instant, (L C,), and of lives, (4 (L + 1),).

    People know what no step of a walk does: the hour, how they have lived so far, where the day began. But they are
    few, and walks are many: the goal is what people and TRUST people like the walks do together. Whether a day ends at
    its start is one number, for which people are enough.
    """
    (L, C), N = share.shape, len(r)
    slot = np.stack([np.bincount(column[r[:, t]], minlength=C) for t in range(L)]) / N
    lives = np.stack([np.bincount(of, minlength=L + 1) for of in life.T]) / N
    known = 1 - slot[:, -1:]  # people's shares are of places with a class
    slot = (walk.people * known * share + TRUST * slot) / (walk.people + TRUST)
    slot[:, -1:] = 1 - known
    lives[:3] = (walk.people * walk.lives[:3] + TRUST * lives[:3]) / (walk.people + TRUST)
    lives[3] = walk.lives[3]
    return slot.ravel(), lives.ravel()


def _drawn(walk: Tables, size: int, rng: np.random.Generator) -> NDArray[np.int16]:
    L = len(walk.slot)
    r = np.empty((size, L), dtype=np.int16)
    for start in range(0, size, BLOCK):
        part = r[start : start + BLOCK]
        stroll(walk, rng.random((len(part), 2 * L - 1)), part)
    return r


def _padded(archetypes: Archetypes) -> Floats:
    """Shares of the groups with a last column for places of no class, which are nobody's wish."""
    A, L, _ = archetypes.share.shape
    return np.concatenate([archetypes.share, np.zeros((A, L, 1))], axis=2)


def _rows(r: NDArray[np.integer]) -> NDArray[np.void]:
    """Each trace as one value that can be sorted and looked up."""
    r = np.ascontiguousarray(r, dtype=">i2")
    return r.view(np.dtype((np.void, r.dtype.itemsize * r.shape[1]))).ravel()
