"""
The realism filter: a fake is kept with a probability that depends on the fake alone.

    a(f) = min(1, exp(score(f) - cut)),   score(f) = estimate of ln(density among people / density among raw fakes)

where densities are those of the statistics of a day (`features`). Fakes kept so are spread over these statistics as
people are, up to the share that `cut` clips. The score is learnt from the users of the model and from raw fakes; once
learnt it looks at f alone, so keeping f says of its seed nothing that f and the score do not say. Where the users of
the model are the seed users themselves (product), the score has met them as the model has.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import NotEnoughUsers, require_between
from elsewhere.synthesis.realism import _kernels
from elsewhere.synthesis.realism.features import Crowd
from elsewhere.traces.model import Floats, Ints, Locations, Places

LEAST_USERS = 100  # below, a filter would learn its people by heart
BINS = 32
TREES, RATE, RIDGE = 300, 0.1, 1.0
LEAST_SHARE = 0.01  # of the weight of all rows, in either child of a node
FOLDS = 5
MOST_ROWS = 5000  # of people


@dataclass(frozen=True, eq=False)
class Forest:
    """Boosted trees over binned features: `edge` (F, BINS - 1), then one row per tree."""

    edge: Floats
    feature: Ints
    cut: Ints
    leaf: Floats

    def score(self, x: Floats) -> Floats:
        """ln(real / fake) of each row of features."""
        out = np.empty(len(x))
        _kernels.score(_binned(x, self.edge), self.feature, self.cut, self.leaf, out)
        return out


@dataclass(frozen=True, eq=False)
class RealismFilter:
    """
    Keeps a fake with probability a(f); made by `fit`.

    `share` is the mean of a(f) over raw fakes, `clipped` the share of the people's density that `cut` cuts off.
    """

    crowd: Crowd
    forest: Forest
    cut: float
    share: float
    clipped: float

    @staticmethod
    def fit(
        people: Places,
        user: Ints,
        fakes: Places,
        locations: Locations,
        *,
        minutes: Floats,
        keep: float,
        rng: np.random.Generator,
    ) -> "RealismFilter":
        """
        Learn what tells people from raw fakes.

        Parameters
        ----------
        people, user
            (N, L) complete traces of the users of the model, and the user 0 .. U-1 of each.
        fakes
            (F, L) raw fakes, in the proportions in which they will be drawn.
        locations
            The map.
        minutes
            (L,) minute of the day of each instant.
        keep
            Least share of raw fakes to keep, in (0, 1]: the smaller, the nearer the people.
        rng
            Halves the crowd, and parts rows into folds.

        """
        require_between("keep", keep, 0, 1, open_low=True)
        if int(user.max(initial=-1)) + 1 < LEAST_USERS:
            raise NotEnoughUsers(f"a realism filter needs at least {LEAST_USERS} users, got {int(user.max()) + 1}.")
        crowd = Crowd.of(people, user, locations, minutes, rng)
        some = np.sort(rng.permutation(len(people))[:MOST_ROWS])
        real, fake = crowd.features(people[some]), crowd.features(fakes)
        forest = grown(real, fake, user[some], rng)
        scores = forest.score(fake)
        cut = cut_for(scores, keep)
        ratio = np.exp(scores - cut)
        kept = np.minimum(1.0, ratio)
        return RealismFilter(crowd, forest, cut, float(kept.mean()), float(1 - kept.sum() / ratio.sum()))

    def keep_probability(self, r: NDArray[np.integer]) -> Floats:
        """a(f) of each fake, (F,), in [0, 1]."""
        return np.minimum(1.0, np.exp(self.forest.score(self.crowd.features(r)) - self.cut))


def cut_for(scores: Floats, keep: float) -> float:
    """The cut at which a share `keep` of fakes with these scores is kept, or the highest score if that keeps more."""
    high = float(scores.max())
    if np.exp(scores - high).mean() >= keep:
        return high
    low = float(scores.min())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1.0, np.exp(scores - middle)).mean() > keep else (low, middle)
    return low


def grown(real: Floats, fake: Floats, user: Ints, rng: np.random.Generator) -> Forest:
    """A forest of as many trees as predict people and fakes best that it has not seen."""
    x = np.concatenate([real, fake])
    y = np.concatenate([np.ones(len(real)), np.zeros(len(fake))])
    # people and fakes weigh the same together: the score is then the ratio of densities
    weight = np.where(y == 1, len(x) / 2 / len(real), len(x) / 2 / len(fake))
    edge = _edges(real, fake)
    binned = _binned(x, edge)
    fold = np.concatenate([(rng.permutation(int(user.max()) + 1) % FOLDS)[user], rng.permutation(len(fake)) % FOLDS])
    loss = np.zeros(TREES)
    for k in range(FOLDS):
        loss += _boosted(binned, y, np.where(fold == k, 0.0, weight), np.where(fold == k, weight, 0.0), TREES)[3]
    trees = int(np.argmin(loss)) + 1
    feature, cut, leaf, _ = _boosted(binned, y, weight, np.zeros(len(x)), trees)
    return Forest(edge, feature, cut, leaf)


def _boosted(
    binned: NDArray[np.uint8], y: Floats, weight: Floats, held: Floats, trees: int
) -> tuple[Ints, Ints, Floats, Floats]:
    feature, cut = (np.zeros((trees, _kernels.NODES), dtype=np.int64) for _ in range(2))
    leaf, loss = np.zeros((trees, _kernels.LEAVES)), np.zeros(trees)
    least = LEAST_SHARE * weight.sum()
    _kernels.boost(binned, BINS, y, weight, held, trees, RATE, RIDGE, least, feature, cut, leaf, loss)
    return feature, cut, leaf, loss


def _edges(real: Floats, fake: Floats) -> Floats:
    """Bounds of the bins: quantiles of people and of fakes in equal parts."""
    q = np.linspace(0, 1, BINS // 2 + 1)[1:-1]
    both = np.concatenate([np.quantile(real, q, axis=0), np.quantile(fake, q, axis=0)])
    both = np.sort(np.concatenate([both, both[-1:]])[: BINS - 1], axis=0)
    return np.ascontiguousarray(both.T)


def _binned(x: Floats, edge: Floats) -> NDArray[np.uint8]:
    """Number of bounds that lie below each value, (N, F)."""
    return np.stack([np.searchsorted(edge[f], x[:, f], side="left") for f in range(len(edge))], axis=1).astype(np.uint8)


def coins(key: NDArray[np.uint64], rows: Ints, tries: Ints) -> Floats:
    """A number of [0, 1) for every attempt (row, try): a fake is kept where it lies below a(f)."""
    out = np.empty(len(rows))
    _kernels.coins(key, tries.astype(np.uint64), rows.astype(np.uint64), out)
    return out
