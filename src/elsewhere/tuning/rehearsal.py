"""
What settings of the deniable mode would reach, by experiment on the model's users alone.

Model, groups and walk are learnt from some of the people; others stand in for the seeds, the very sampler of the run
draws their fakes, and the buckets of the gate are counted over them. From the share of them that is in the bucket of a
fake's own one follows how often it would pass among the seeds planned.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from elsewhere.deny import groups_of, sampler_of, walk_of
from elsewhere.errors import NotEnoughUsers
from elsewhere.evaluation.agreement import class_agreement
from elsewhere.learnt import Learnt, learn
from elsewhere.presets import Preset
from elsewhere.privacy.deniability import buckets, release_probability
from elsewhere.privacy.mechanism import Mechanism
from elsewhere.synthesis.deniable.archetypes import Archetypes
from elsewhere.synthesis.walk._kernels import Tables
from elsewhere.traces.model import Floats, Ints, Places, Traces

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


class Codes(NamedTuple):
    """Whether each code is in the bucket of a fake's own (F, C), that own code (F,), stand-ins of each code (C,)."""

    same: NDArray[np.bool_]
    own: Ints
    size: Ints


@dataclass(frozen=True, eq=False)
class Drawn:
    """Fakes of one rehearsal: stand-ins in the bucket of each one's own, of how many, what it keeps, how it moves."""

    count: Ints
    people: int
    kept: Floats
    moves: Floats
    codes: Codes | None = None  # where stand-ins share them


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
        learnt = learn(people, settings, kappa=kappa, rng=rng, carry=False)
        shared = learnt.translate(others)
        shared = shared.select(np.unique(shared.user, return_index=True)[1])
        if len(shared) < 2:
            raise NotEnoughUsers(
                f"fewer than 2 of {others.U} people visit a place of `m_min` = {settings.m_min} others; lower `m_min`."
            )
        walk = walk_of(learnt, people, rng) if settings.emission == "walk" else None
        return cls(learnt, people, shared, walk, int(rng.integers(2**63)))

    def __call__(self, settings: Preset) -> Drawn:
        """Draw fakes of the stand-ins under these settings, and count their buckets."""
        # the same draws for all settings: differences between them are theirs
        rng = np.random.default_rng(self.entropy)
        tau, r = self.learnt.tau(self.stand_ins), self.stand_ins.r
        groups = None
        if settings.emission != "window":
            key = settings.emission, settings.archetypes
            if key not in self.groups:
                self.groups[key] = groups_of(self.learnt, settings, self.people, rng)
            groups = self.groups[key]
        # the least stock of walks, whatever the run's will be: ten times as many cost 2.5 to 7 times the time and
        # move accepted by .02 at most, kept by .01 (docs/deniable.md)
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
            codes = None if groups is None or mechanism.intersection else _codes(mechanism, fakes, seed)
        agreement = class_agreement(fakes, r, seed, np.asarray(self.learnt.classes.label))
        # people with their rare places: merging those away makes moves fewer, the more the fewer are learnt from
        kept, moves = agreement.own - agreement.others, _moves(fakes) / max(_moves(self.people.r).mean(), 1e-300)
        return Drawn(count, len(r), kept, moves, codes)


def _codes(mechanism: Mechanism, fakes: Places, seed: Ints) -> Codes:
    sampler, prepared = mechanism.sampler, mechanism.prepared
    log_prob = sampler.log_prob_given(fakes, prepared, sampler.common(fakes, mechanism.tau))
    bucket = buckets(log_prob, mechanism.gamma)
    code = prepared.emissions.code
    own = code[seed]
    size = np.bincount(code, minlength=prepared.emissions.n_codes)
    return Codes(bucket == bucket[np.arange(len(own)), own][:, None], own, size)


def weighed(drawn: Sequence[Drawn], settings: Preset, seeds: int) -> Trial:
    """What fakes drawn under these settings, in several rehearsals, would reach among so many seeds."""
    share, weight = part_in_bucket(drawn)
    kept, moves = (np.concatenate(part) for part in ([d.kept for d in drawn], [d.moves for d in drawn]))
    passed = weight * passing(share, seeds, k=settings.k, eps0=settings.eps0)
    among = passed / max(passed.sum(), 1e-300)
    return Trial(
        settings.archetypes if settings.emission != "window" else None,
        settings.lam,
        settings.eta,
        settings.strength,
        accepted=float(passed.sum() / weight.sum()),
        kept=float(among @ kept),
        moves=float(among @ moves),
    )


def part_in_bucket(drawn: Sequence[Drawn]) -> tuple[Floats, Floats]:
    """
    Of all people, the part in the bucket of each fake (-1: it is in none), and the weight of the fake.

    What is seen on few people scatters more than the truth does, and it is scatter that fails at the gate. So it is
    drawn towards its mean until the scatter left is the truth's own, estimated over all rehearsals together. Where
    people share codes, the sizes of the codes are what is uncertain, and fakes weigh as their code does; else it is
    the part in the bucket.
    """
    codes = [d.codes for d in drawn if d.codes is not None]
    if not codes:
        seen = [np.where(d.count > 0, (d.count - 1) / max(d.people - 1, 1), np.nan) for d in drawn]
        inside = [x[~np.isnan(x)] for x in seen]
        keep = _own_scatter([(x, float(x.mean()), d.people - 1) for x, d in zip(inside, drawn, strict=True) if len(x)])
        parts = [x if len(y) == 0 else y.mean() + keep * (x - y.mean()) for x, y in zip(seen, inside, strict=True)]
        share = np.nan_to_num(np.concatenate(parts), nan=-1.0)
        return share, np.ones(len(share))
    sizes = [np.asarray(c.size / c.size.sum()) for c in codes]
    keep = _own_scatter([(x, 1 / len(x), int(c.size.sum())) for x, c in zip(sizes, codes, strict=True)])
    drawn_in = [np.asarray(1 / len(x) + keep * (x - 1 / len(x))) for x in sizes]
    share = [c.same @ x for c, x in zip(codes, drawn_in, strict=True)]
    weight = [x[c.own] / seen[c.own] for c, x, seen in zip(codes, drawn_in, sizes, strict=True)]
    return np.concatenate(share), np.concatenate(weight)


def _own_scatter(seen: Sequence[tuple[Floats, float, int]]) -> float:
    """Factor that takes the scatter of shares seen on n people, about a mean, to that of the shares themselves."""
    spread = sum(float(((x - mean) ** 2).mean()) for x, mean, _ in seen)
    noise = sum(float((x * (1 - x)).mean()) / max(n - 1, 1) for x, _, n in seen)
    return math.sqrt(max(0.0, 1 - noise / max(spread, 1e-300)))


def passing(share: Floats, seeds: int, *, k: int, eps0: float) -> Floats:
    """
    How often a fake passes the gate if a part `share` of all people is in its bucket; -1: in no bucket, never.

    Besides its own seed, Binomial(seeds - 1, share) of the seeds to come will be in the bucket.
    """
    parts, back = np.unique(share, return_inverse=True)
    return np.where(share < 0, 0.0, _mixed(np.clip(parts, 0, 1), seeds, k, eps0)[back])


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
