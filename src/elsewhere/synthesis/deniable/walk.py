"""
The deniable sampler on walks with memory: a fake is one of a stock of walks, drawn by the law of the seed's group.

The stock is drawn from the walk (`synthesis/walk`), the laws of the groups are made on it (`stock`), both from users of
the model alone. So Pr{f|s} is exact for every trace, 0 for those that are not in the stock, and the theorem of READINGS
section 11 holds as it does for the chain. What a seed says is the number of its group.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.errors import InvalidParameter, InvalidTraces, require_between, require_whole
from elsewhere.profiles.aggregate import AggregateModel
from elsewhere.semantics.classes import SemanticClasses
from elsewhere.synthesis.deniable.archetypes import Archetypes
from elsewhere.synthesis.deniable.emissions import Emissions, codes_of
from elsewhere.synthesis.deniable.sampler import DeniableSampler, PreparedSeeds
from elsewhere.synthesis.deniable.stock import Stock
from elsewhere.synthesis.walk._kernels import Tables
from elsewhere.traces.model import Floats, Ints, Places

PER_FAKE = 400  # walks in the stock for each fake planned: few fakes are then the same walk
LEAST_STOCK, MOST_STOCK = 20_000, 1_000_000


def stock_for(fakes: int) -> int:
    """How many walks to draw where so many fakes are planned."""
    return min(MOST_STOCK, max(LEAST_STOCK, PER_FAKE * fakes))


class WalkSampler(DeniableSampler):
    """
    `DeniableSampler` whose fakes are walks with memory instead of traces of the chain of `model`.

    Parameters
    ----------
    walk
        The walk, learnt from the users of the model (`learn_walk`).
    archetypes
        The groups, learnt from the users of the model.
    strength
        ln of how much further than an equal share of the stock a group's law may concentrate: no walk is made more than
        (number of groups) exp(strength) times likelier. 0 shares the walks out among the groups.
    fakes
        Number of fakes planned: the stock grows with it.
    stock
        Number of walks to draw; None: as many as the fakes planned need.
    rng
        Draws the stock; never a fake.

    """

    def __init__(
        self,
        model: AggregateModel,
        classes: SemanticClasses | ArrayLike,
        *,
        walk: Tables,
        archetypes: Archetypes,
        rng: np.random.Generator,
        strength: float = 3.0,
        fakes: int = 1,
        stock: int | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__(model, classes, emission="allotted", archetypes=archetypes, **parameters)
        self.emission = "walk"  # groups as "allotted" has them, fakes of its own
        if len(walk.first) != model.R:
            raise InvalidParameter(
                f"`walk` must be over the {model.R} places of the model, got {len(walk.first)}.", code="E_MISMATCH"
            )
        self.walk, self.strength = walk, require_between("strength", strength, 0, 10)
        nobody = np.empty((0, archetypes.share.shape[1]), dtype=np.int32)
        self._check(nobody)
        codes_of(nobody, self.label, archetypes)  # a class that no group knows would be taken for none
        size = stock_for(require_whole("fakes", fakes, 1)) if stock is None else require_whole("stock", stock, 1)
        self.stock = Stock.of(walk, archetypes, self.label, size=size, strength=strength, lam=self.lam, rng=rng)
        self._reach = np.empty(self.stock.log_p.shape[::-1])
        for a, reach in enumerate(self._reach):  # group by group: of large stocks one copy is enough
            np.cumsum(np.exp(self.stock.log_p[:, a].astype(np.float64)), out=reach)

    def common(self, fakes: Places, tau: Ints) -> Floats:
        """0: no part of Pr{f|s} is worth computing apart."""
        return np.zeros(len(fakes))

    def log_prob_given(self, fakes: Places, prepared: PreparedSeeds, common: Floats) -> Floats:
        """ln Pr{f|a} of every fake under every group a."""
        self._check(fakes)
        at = self.stock.find(fakes)
        log_p = self.stock.log_p[at].astype(np.float64) - np.log(self._reach[:, -1])
        log_p[at < 0] = -np.inf
        return np.asarray(log_p + common[:, None])

    def emissions(self, seeds: Places, tau: Ints) -> Emissions:
        """The group of each of these seeds; what it emits is in the stock."""
        self._check(seeds)
        assert self.archetypes is not None  # noqa: S101 - checked in the constructor
        A, L = self.archetypes.share.shape[:2]
        nowhere = np.full((L, A), -1, dtype=np.int32)
        return Emissions(
            codes_of(seeds, self.label, self.archetypes), np.zeros((L, 0, A)), nowhere, np.zeros((L, A)), self.label
        )

    def filter(self, emissions: Emissions, codes: Ints, tau: Ints) -> tuple[Floats, Floats]:
        """The codes themselves, from which `draw` knows the law; ln Z is 0."""
        return np.asarray(codes, dtype=np.float64)[:, None], np.zeros(len(codes))

    def draw(self, filters: Floats, uniform: Floats, tau: Ints) -> Places:
        """One fake per row of `uniform` (n, L) by the law of one code; one number of each row is used."""
        reach = self._reach[int(filters[0])]
        at = np.searchsorted(reach, uniform[:, 0] * reach[-1], side="right")
        # rounding may leave the point on the last sum
        return np.asarray(self.stock.r[np.minimum(at, len(self.stock) - 1)], dtype=np.int32)

    def _check(self, r: Places) -> None:
        if r.shape[1] != len(self.walk.slot):
            raise InvalidTraces(
                f"the walk was learnt for {len(self.walk.slot)} instants, got {r.shape[1]}.", code="E_MISMATCH"
            )
