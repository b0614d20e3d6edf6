"""
What settings of the deniable mode would reach, by experiment on the model's users alone.

Model, groups and walk are learnt from some of the people; others stand in for the seeds, the very sampler of the run
draws their fakes, and the buckets of the gate are counted over them. From the share of them that is in the bucket of a
fake's own one follows how often it would pass among the seeds planned.
"""

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from elsewhere.deny import groups_of, sampler_of, walk_of
from elsewhere.errors import NotEnoughUsers
from elsewhere.evaluation.agreement import class_agreement
from elsewhere.learnt import Learnt, learn
from elsewhere.presets import Preset
from elsewhere.privacy.deniability import release_probability
from elsewhere.privacy.mechanism import Mechanism
from elsewhere.synthesis.deniable.archetypes import Archetypes
from elsewhere.synthesis.walk._kernels import Tables
from elsewhere.traces.model import Floats, Ints, Traces

MOST_LEARNT, MOST_STAND_INS = 1000, 500  # people of one rehearsal
FAKES = 1024  # at least, of one trial
FAR = 40  # noise of the gate in units of 1 / eps0: beyond it, all pass or none


@dataclass(frozen=True)
class Trial:
    """
    What some settings would reach.

    `accepted` is the share of attempts that pass, `kept` the class agreement of those with their own seed minus that
    with others, `moves` their moves per trace divided by people's.
    """

    archetypes: int | None
    lam: float
    eta: float
    strength: float
    accepted: float
    kept: float
    moves: float


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """One division of the people: what is learnt from some, and those who stand in for the seeds."""

    learnt: Learnt = field(repr=False)
    people: Traces = field(repr=False)
    stand_ins: Traces = field(repr=False)
    walk: Tables | None = field(repr=False)
    entropy: int = field(repr=False)
    groups: dict[tuple[str, int | None], Archetypes] = field(default_factory=dict, repr=False)  # learnt so far

    @classmethod
    def of(cls, people: Traces, others: Traces, settings: Preset, kappa: int, rng: np.random.Generator) -> Self:
        """Learn from `people`; of `others` one row each stands in for a seed (E61)."""
        learnt = learn(people, settings, kappa=kappa, rng=rng)
        shared = learnt.translate(others)
        shared = shared.select(np.unique(shared.user, return_index=True)[1])
        if len(shared) < 2:
            raise NotEnoughUsers(
                f"fewer than 2 of {others.U} people visit a place of `m_min` = {settings.m_min} others; lower `m_min`."
            )
        walk = walk_of(learnt, people, rng) if settings.emission == "walk" else None
        return cls(learnt, people, shared, walk, int(rng.integers(2**63)))

    def __call__(self, settings: Preset, seeds: int) -> Trial:
        """Draw fakes of the stand-ins under these settings, and see what would pass among so many seeds."""
        # the same draws for all settings: differences between them are theirs
        rng = np.random.default_rng(self.entropy)
        tau, r = self.learnt.tau(self.stand_ins), self.stand_ins.r
        groups = None
        if settings.emission != "window":
            key = settings.emission, settings.archetypes
            if key not in self.groups:
                self.groups[key] = groups_of(self.learnt, settings, self.people, rng)
            groups = self.groups[key]
        sampler = sampler_of(
            self.learnt,
            settings,
            tau,
            self.people,
            np.random.default_rng(self.entropy + 1),
            archetypes=groups,
            walk=self.walk,
        )
        mechanism = Mechanism.of(
            sampler,
            r,
            tau,
            k=2,  # of no matter: nothing is released here
            gamma=settings.gamma,
            eps0=settings.eps0,
            intersection=settings.fold_intersection,
        )
        rng = np.random.default_rng(self.entropy + 2)
        with threadpool_limits(1):  # sums in one order on every machine (R5)
            parts = [mechanism.attempts(rng)[:3] for _ in range(math.ceil(FAKES / mechanism.batch))]
        fakes, seed, count = (np.concatenate(part) for part in zip(*parts, strict=True))
        chance = passing(count, len(r), seeds, k=settings.k, eps0=settings.eps0)
        agreement = class_agreement(fakes, r, seed, np.asarray(self.learnt.classes.label))
        weight = chance / max(chance.sum(), 1e-300)
        return Trial(
            settings.archetypes if settings.emission != "window" else None,
            settings.lam,
            settings.eta,
            settings.strength,
            accepted=float(chance.mean()),
            kept=float(weight @ (agreement.own - agreement.others)),
            moves=float(weight @ _moves(fakes) / max(_moves(r).mean(), 1e-300)),
        )


def passing(count: Ints, people: int, seeds: int, *, k: int, eps0: float) -> Floats:
    """
    How often a fake passes among `seeds` seeds, of each of those whose bucket holds `count` of `people` stand-ins.

    Both numbers include the fake's own one; 0 is in no bucket. Of the others, a share p is in the bucket, so that
    1 + Binomial(seeds - 1, p) seeds will be. What is seen of p scatters more than p does, as people are few: it is
    drawn towards the mean until the scatter left is p's own.
    """
    inside = count > 0
    chance = np.zeros(len(count))
    if not inside.any():
        return chance
    seen = (count[inside] - 1) / max(people - 1, 1)
    noise = (seen * (1 - seen)).mean() / max(people - 2, 1)
    shrink = math.sqrt(max(0.0, 1 - noise / max(float(seen.var()), 1e-300)))
    share, back = np.unique(seen.mean() + shrink * (seen - seen.mean()), return_inverse=True)
    chance[inside] = _mixed(share, seeds, k, eps0)[back]
    return chance


def _mixed(share: Floats, seeds: int, k: int, eps0: float) -> Floats:
    """Mean over c ~ 1 + Binomial(seeds - 1, share) of the probability that a bucket of c passes."""
    from scipy.stats import binom

    far = math.ceil(FAR / eps0)
    c = np.arange(max(1, k - far), min(seeds, k + far) + 1)
    passes = np.array([release_probability(int(n), k=k, eps0=eps0) for n in c])
    law = binom.pmf(c[None, :] - 1, seeds - 1, share[:, None])
    return np.asarray(law @ passes + binom.sf(c[-1] - 1, seeds - 1, share))


def _moves(r: NDArray[np.integer]) -> Floats:
    return np.asarray(np.count_nonzero(r[:, 1:] != r[:, :-1], axis=1), dtype=float)
