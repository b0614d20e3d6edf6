"""
What the certificate of the private preset says, tested: A9.

Do the noisy sums keep the eps they claim? Two files that differ by one person, thousands of releases. The auditor knows
everybody, and sees the noisy sums themselves, of which all that is published is made. The person is the one whose list
is the longest, among people of the file: nobody moves the sums more. What tells the two files apart best is the
likelihood ratio, which for this noise is the noisy sum along that person's list. On one half of the releases the
auditor chooses the event, on the other half its two probabilities are bounded, as for the noisy count. That presupposes
nothing of the noise, and sees no rarer events than there are releases: far less than a delta of one in a million. So a
second figure takes the claim at its word, which is that errors trade off as those of two Gaussians mu apart: an event
of probabilities p and q proves mu >= Phi^-1(p) - Phi^-1(q), and mu is an eps at delta. The larger of the two counts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from elsewhere.evaluation.attacks.deniable import Proven, clopper_pearson, eps_lower_bound, found_without_noise
from elsewhere.evaluation.attacks.finding import LEVEL, CannotRun, Finding, Rate
from elsewhere.evaluation.attacks.inputs import AttackInputs
from elsewhere.privacy.private.release import Mechanism, sums_of
from elsewhere.privacy.private.sums import SIGMA, Below, discrete_gaussian, eps_of, from_generator
from elsewhere.traces.model import Ints

CANDIDATES, OTHERS = 300, 20  # people among whom the longest is looked for, and who are in the smaller file
NUMBERS = 48  # of a person's list that the auditor looks at: the largest
LARGEST_MU = 20.0  # an eps of some 300: no more is told apart
FINE = 1000  # steps of a standard deviation of the likelihood ratio that outcomes are told by


@dataclass(frozen=True, eq=False)
class SumNeighbours:
    """
    Sums over two files at the auditor's numbers, without noise: of the smaller file, and what one person adds.

    `noise` is that of the preset; a test gives another one, which is to be found out.
    """

    without: Ints = field(repr=False)
    change: Ints = field(repr=False)
    eps: float
    delta: float
    noise: Callable[[int, Below], Ints] = field(default=discrete_gaussian, repr=False)

    @staticmethod
    def of(mechanism: Mechanism, rng: np.random.Generator) -> "SumNeighbours":
        """Return the pair that strains the sums most, by the code that makes them."""
        people, design, mu = mechanism.traces, mechanism.design, mechanism.mu
        some = rng.permutation(people.U)[:CANDIDATES]
        lengths = [sum(float(x) ** 2 for x in sums_of(people.of_users([u]), design, mu)) for u in some.tolist()]
        longest = int(some[int(np.argmax(lengths))])
        others = [u for u in some[: OTHERS + 1].tolist() if u != longest]
        without, both = (sums_of(people.of_users(who), design, mu) for who in (others, [*others, longest]))
        at = np.argsort(-np.abs(both - without), kind="stable")[:NUMBERS]
        return SumNeighbours(without[at], (both - without)[at], mechanism.eps, mechanism.delta)

    def run(self, runs: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return what the auditor notes of `runs` releases of either file: the sum along the person's list."""
        below, m = from_generator(rng), len(self.change)
        along = self.change / np.linalg.norm(self.change)
        outcomes = []
        for total in (self.without, self.without + self.change):
            sums = total + self.noise(runs * m, below).reshape(runs, m)
            outcomes.append(np.floor((sums - self.without) @ along / SIGMA * FINE).astype(np.int64))
        return outcomes[0], outcomes[1]

    def audit(self, runs: int, rng: np.random.Generator, level: float = LEVEL) -> Proven:
        """Return the lower bound of eps that so many releases prove."""
        smaller, larger = self.run(runs, rng)
        both = 1 - (1 - level) / 2  # two chances to be wrong
        bound, chance = (
            max(
                eps_lower_bound(*pair, delta=self.delta, level=both)[0],
                as_gaussian(*pair, delta=self.delta, level=both),
                key=lambda rate: rate.low,
            )
            for pair in ((smaller, larger), (smaller[0::2], smaller[1::2]))
        )
        return Proven(bound, "sums", chance.low)


def as_gaussian(smaller: Ints, larger: Ints, *, delta: float, level: float) -> Rate:
    """Return the eps at `delta` of the mu that these outcomes prove, by the event that parts them at their middle."""
    from statistics import NormalDist

    half = len(smaller) // 2
    threshold = np.median(np.concatenate([smaller[:half], larger[:half]]))
    above = [int((x[half:] > threshold).sum()) for x in (larger, smaller)]
    trials = [len(x) - half for x in (larger, smaller)]
    p, q = (Rate(k / n, *map(float, clopper_pearson(k, n, level))) for k, n in zip(above, trials, strict=True))
    probit = NormalDist().inv_cdf

    def eps(high: float, low: float) -> float:
        if high >= 1 or low <= 0:
            return math.inf
        mu = probit(high) - probit(low) if high > 0 and low < 1 else 0.0
        return eps_of(min(mu, LARGEST_MU), delta) if mu > 0 else 0.0

    return Rate(eps(p.value, q.value), eps(p.low, q.high), eps(p.high, q.low))


def sum_audit(inputs: AttackInputs, mechanism: Mechanism) -> Finding:
    """Audit the noisy sums on releases of two neighbouring inputs (A9)."""
    runs, rng, claim = inputs.parameters["count_runs"], inputs.rng("A9"), mechanism.eps
    without = found_without_noise(runs, delta=mechanism.delta, level=LEVEL)
    if without <= claim:
        raise CannotRun(f"more `count_runs` than {runs}: sums without noise would not be found out either")
    pair = SumNeighbours.of(mechanism, rng)
    proven = pair.audit(runs, rng)
    length = float(np.linalg.norm(pair.change)) / (mechanism.mu * SIGMA)
    words = (
        f"Over {runs} releases of either of two files that differ by one person, the one who moves the sums most (by "
        f"{length:.2f} of what is allowed), an auditor who knows all else and sees the noisy sums"
    )
    return proven.finding(claim, without, (words, "Sums"), runs=runs, length=length)
