"""
The deniable sampler on a walk with memory:

    Pr{f|s} = prod_t  P(f_t | f_<t) w_t(f_t | a) / Z_t(f_<t, a),     a the group of seed s,

P the walk of `synthesis/walk`, w the weights of a group, Z_t the sum that makes each step's law sum to 1. All of it is
known from f alone, step by step, so Pr{f|s} is exact and the theorem of READINGS section 11 holds as it does for the
chain. What a seed says is, again, the number of its group.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from elsewhere.errors import InvalidParameter, InvalidTraces, require_between
from elsewhere.profiles.aggregate import AggregateModel
from elsewhere.semantics.classes import SemanticClasses
from elsewhere.synthesis.deniable.allotment import share_out
from elsewhere.synthesis.deniable.archetypes import Archetypes
from elsewhere.synthesis.deniable.emissions import Emissions, allotted_emissions
from elsewhere.synthesis.deniable.sampler import DeniableSampler, PreparedSeeds
from elsewhere.synthesis.walk._kernels import Tables, log_walk
from elsewhere.synthesis.walk._kernels import walk as draw_walk
from elsewhere.traces.model import Floats, Ints, Places

PILOTS = 8000  # traces of the walk that tell how it goes on
SMOOTH = 1.0  # arrivals at any place, shared out by popularity, in the chain of the pilots
LEAST = 1e-12  # of a weight, relative to the largest at t
STRENGTH = 1.0  # docs/decisions/0006-walk.md


class WalkSampler(DeniableSampler):
    """
    `DeniableSampler` whose common law is a walk with memory instead of the chain of `model`.

    Parameters
    ----------
    walk
        The walk, learnt from the users of the model (`learn_walk`).
    archetypes
        The groups, learnt from the users of the model.
    strength
        ln of how much likelier a place is made, per instant, whose class is all the group's and nobody else's.
    rng
        Draws pilots of the walk, from which the weights of the groups are made; never a fake.

    """

    def __init__(
        self,
        model: AggregateModel,
        classes: SemanticClasses | ArrayLike,
        *,
        walk: Tables,
        archetypes: Archetypes,
        rng: np.random.Generator,
        strength: float = STRENGTH,
        **parameters: Any,
    ) -> None:
        super().__init__(model, classes, emission="allotted", archetypes=archetypes, **parameters)
        if len(walk.first) != model.R:
            raise InvalidParameter(
                f"`walk` must be over the {model.R} places of the model, got {len(walk.first)}.", code="E_MISMATCH"
            )
        self.walk, self.strength = walk, require_between("strength", strength, 0, 10)
        self._check(np.empty((0, archetypes.share.shape[1]), dtype=np.int32))
        pilots = np.empty((PILOTS, len(walk.slot)), dtype=np.int32)
        draw_walk(walk, np.ones((len(walk.slot), model.R)), rng.random(pilots.shape), pilots)
        with threadpool_limits(1):  # sums in one order on every machine (R5)
            self._weights = self._look_ahead(archetypes, pilots)

    def _look_ahead(self, archetypes: Archetypes, pilots: Places) -> Floats:
        """
        (A, L, R) weights of the groups, largest 1 at each instant.

        What a group wants, exp(strength (its share of a class - everybody's)) with the classes shared out among the
        groups as in `allotment`, times what is still to come: exact if the walk were a chain, which is that of the
        pilots. Without the look ahead fakes would jump when a group's class changes, instead of being on their way.
        """
        R, L, kappa = self.model.R, pilots.shape[1], archetypes.share.shape[2]
        column = np.where(self.label >= 0, self.label, kappa)
        overall = np.stack([np.bincount(column[at], minlength=kappa + 1) / len(pilots) for at in pilots.T])
        share = np.concatenate([archetypes.share, np.zeros((*archetypes.share.shape[:2], 1))], axis=2)
        plan = share_out(share, archetypes.weights, overall, self.theta)
        e = np.exp(self.strength * (plan - overall))[:, :, column]
        table = np.zeros((R, R))
        np.add.at(table, (pilots[:, :-1].ravel(), pilots[:, 1:].ravel()), 1)
        table += SMOOTH * table.sum(axis=0) / max(table.sum(), 1)
        table /= np.maximum(table.sum(axis=1, keepdims=True), LEAST)
        after = np.ones_like(e)
        for t in range(L - 2, -1, -1):
            after[:, t] = (after[:, t + 1] * e[:, t + 1]) @ table.T
            after[:, t] /= after[:, t].max(axis=1, keepdims=True)
        w = e * after
        return np.asarray(np.maximum(w / w.max(axis=2, keepdims=True), LEAST))

    def common(self, fakes: Places, tau: Ints) -> Floats:
        """ln P(f) of the walk without any seed."""
        self._check(fakes)
        common = np.empty(len(fakes))
        log_walk(self.walk, fakes, np.empty((0, fakes.shape[1], self.model.R)), common, np.empty((len(fakes), 0)))
        return common

    def log_prob_given(self, fakes: Places, prepared: PreparedSeeds, common: Floats) -> Floats:
        """ln Pr{f|a} of every fake under every code a of prepared seeds; `common` is ln P(f)."""
        self._check(fakes)
        codes = np.arange(prepared.emissions.n_codes)
        weight, _ = self.filter(prepared.emissions, codes, self.walk.slot)
        out = np.empty((len(fakes), len(codes)))
        log_walk(self.walk, fakes, weight, np.empty(len(fakes)), out)
        return out + common[:, None]

    def emissions(self, seeds: Places, tau: Ints) -> Emissions:
        """ln w_t(r|s) of these seeds."""
        self._check(seeds)
        assert self.archetypes is not None  # noqa: S101 - checked in the constructor
        return allotted_emissions(seeds, self.label, self.archetypes, self._weights, lam=self.lam)

    def filter(self, emissions: Emissions, codes: Ints, tau: Ints) -> tuple[Floats, Floats]:
        """The weights (codes, L, R) of these codes, from which `draw` draws; each step is its own sum, so ln Z is 0."""
        weight = np.exp(emissions.log_e[:, :, codes]).transpose(2, 0, 1)
        return np.ascontiguousarray(weight), np.zeros(len(codes))

    def draw(self, filters: Floats, uniform: Floats, tau: Ints) -> Places:
        """One fake per row of `uniform` (n, L), step by step under the weights (L, R) of one code."""
        out = np.empty(uniform.shape, dtype=np.int32)
        draw_walk(self.walk, filters, uniform, out)
        return out

    def _check(self, r: Places) -> None:
        if r.shape[1] != len(self.walk.slot):
            raise InvalidTraces(
                f"the walk was learnt for {len(self.walk.slot)} instants, got {r.shape[1]}.", code="E_MISMATCH"
            )
