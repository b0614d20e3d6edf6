"""
A9, the audit of the noisy sums of certified fakes: do they keep the eps that is claimed?

Two files that differ by one person, thousands of releases. The auditor knows everybody, and sees the noisy sums
themselves, of which all that is published is made. The person is the one whose list is the longest, among people of the
file: nobody moves the sums more. What tells the two files apart best is the likelihood ratio, which for this noise is
the noisy sum along that person's list. On one half of the releases the auditor chooses the event that tells the two
files apart best, on the other half he bounds its two probabilities (Clopper-Pearson). Whatever lower bound of eps comes
out must lie below the claim; sums that keep no promise are to be found out (tests/test_certified.py).

The bound presupposes nothing of the noise, and sees no rarer events than there are releases: far less than a delta of
one in a million. So a second figure takes the claim at its word, which is that errors trade off as those of two
Gaussians mu apart: an event of probabilities p and q proves mu >= Phi^-1(p) - Phi^-1(q), and mu is an eps at delta. The
larger of the two counts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from elsewhere.data.visits import Floats, Ints
from elsewhere.evaluation.attack_base import LEVEL, NORMAL, Case, Finding, Needs, Rate
from elsewhere.synthesis.certificate import SIGMA, Below, discrete_gaussian, eps_of, from_generator
from elsewhere.synthesis.certified import Mechanism

CANDIDATES, OTHERS = 300, 20  # people among whom the longest is looked for, and who are in the smaller file
NUMBERS = 48  # of a person's list that the auditor looks at: the largest
LARGEST_MU = 20.0  # an eps of some 300: no more is told apart
FINE = 1000  # steps of a standard deviation of the likelihood ratio that outcomes are told by


class Event(NamedTuple):
    """Outcomes `low` .. `high`, likelier in the larger set (`grows`) or in the smaller one."""

    low: int
    high: int
    grows: bool


def clopper_pearson(hits: Floats | int, trials: float, level: float) -> tuple[Floats, Floats]:
    """Return the two ends of the exact interval of a probability, of one number of hits or of several."""
    from scipy.stats import beta

    k = np.asarray(hits, dtype=np.float64)
    low, high = beta.ppf((1 - level) / 2, k, trials - k + 1), beta.ppf((1 + level) / 2, k + 1, trials - k)
    return np.where(k > 0, low, 0.0), np.where(k < trials, high, 1.0)


def plain_eps(p: float, q: float, delta: float) -> float:
    """Return the eps that probabilities p and q of an event prove: ln((p - delta) / q)."""
    return 0.0 if p <= delta else math.inf if q == 0 else max(0.0, math.log((p - delta) / q))


def gaussian_eps(p: float, q: float, delta: float) -> float:
    """Return the eps at `delta` of two Gaussians that have an event with probabilities p and q."""
    if p >= 1 or q <= 0:
        return math.inf
    mu = NORMAL.inv_cdf(p) - NORMAL.inv_cdf(q) if p > 0 and q < 1 else 0.0
    return eps_of(min(mu, LARGEST_MU), delta) if mu > 0 else 0.0


def choose_event(smaller: Ints, larger: Ints, *, delta: float, level: float = LEVEL) -> Event:
    """Return the event with the highest lower bound of eps: a single outcome, "at most" or "at least", either way."""
    values = np.unique(np.concatenate([smaller, larger]))
    counts = [np.searchsorted(values, x) for x in (smaller, larger)]
    single = [np.bincount(c, minlength=len(values)).astype(np.float64) for c in counts]
    best, event = -1.0, Event(int(values[0]), int(values[-1]), True)
    for low, high, sums in (
        (values, values, single),
        (np.full_like(values, values[0]), values, [s.cumsum() for s in single]),
        (values, np.full_like(values, values[-1]), [s[::-1].cumsum()[::-1] for s in single]),
    ):
        for grows in (True, False):
            trials = [(s, len(x)) for s, x in zip(sums, (smaller, larger), strict=True)]
            (q_hits, m), (p_hits, n) = trials if grows else trials[::-1]
            p, q = clopper_pearson(p_hits, n, level)[0], clopper_pearson(q_hits, m, level)[1]
            bound = np.log(np.maximum(p - delta, 1e-300) / q)
            i = int(np.argmax(bound))
            if bound[i] > best:
                best, event = float(bound[i]), Event(int(low[i]), int(high[i]), grows)
    return event


def eps_lower_bound(smaller: Ints, larger: Ints, *, delta: float, level: float = LEVEL) -> Rate:
    """
    Return the eps that outcomes of runs on two neighbouring inputs prove, the larger of two lower bounds.

    Events are chosen on one half of the outcomes and judged on the other half, with exact intervals of p and q.
    """
    a, b = len(smaller) // 2, len(larger) // 2
    middle = int(np.median(np.concatenate([smaller[:a], larger[:b]])) // 1)
    found = []
    for event, eps in (
        (choose_event(smaller[:a], larger[:b], delta=delta, level=level), plain_eps),
        (Event(middle + 1, np.iinfo(np.int64).max, True), gaussian_eps),
    ):
        rates = []
        for outcomes in (larger[b:], smaller[a:]) if event.grows else (smaller[a:], larger[b:]):
            hits = int(((outcomes >= event.low) & (outcomes <= event.high)).sum())
            ends = clopper_pearson(hits, len(outcomes), level)
            rates.append(Rate(hits / len(outcomes), *map(float, ends)))
        p, q = rates
        found.append(Rate(eps(p.value, q.value, delta), eps(p.low, q.high, delta), eps(p.high, q.low, delta)))
    return max(found, key=lambda rate: rate.low)


class Proven(NamedTuple):
    """The eps that an audit proves, and what it proves of one file against itself, which is chance."""

    eps: Rate
    chance: float


def eps_without_noise(runs: int, *, delta: float = 0.0) -> float:
    """Return the eps that as many releases without noise would prove: one set always counts 0, the other always 1."""
    n, level = runs - runs // 2, 1 - (1 - LEVEL) / 2
    return plain_eps(float(clopper_pearson(n, n, level)[0]), float(clopper_pearson(0, n, level)[1]), delta)


@dataclass(frozen=True, eq=False)
class SumNeighbours:
    """
    Sums over two files at the auditor's numbers, without noise: of the smaller file, and what one person adds.

    `noise` is that of the release; a test gives another one, which is to be found out.
    """

    without: Ints = field(repr=False)
    change: Ints = field(repr=False)
    eps: float
    delta: float
    noise: Callable[[int, Below], Ints] = field(default=discrete_gaussian, repr=False)

    @staticmethod
    def of(mechanism: Mechanism, rng: np.random.Generator) -> "SumNeighbours":
        """Return the pair that strains the sums most, by the code that makes them."""
        some = rng.permutation(mechanism.seen.people)[:CANDIDATES]
        lengths = [float((mechanism.sums([u]).astype(np.float64) ** 2).sum()) for u in some.tolist()]
        longest = int(some[int(np.argmax(lengths))])
        others = [u for u in some[: OTHERS + 1].tolist() if u != longest]
        without, both = (mechanism.sums(who) for who in (others, [*others, longest]))
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
            eps_lower_bound(*pair, delta=self.delta, level=both)
            for pair in ((smaller, larger), (smaller[0::2], smaller[1::2]))
        )
        return Proven(bound, chance.low)


def noise_audit(case: Case) -> Finding:
    """Audit the noisy sums of certified fakes on releases of two neighbouring inputs (A9)."""
    mechanism = case.options.get("sampler")
    if not isinstance(mechanism, Mechanism):
        raise Needs("the `sampler` of certified fakes")
    runs, rng, claim = case.options["count_runs"], case.rng(), mechanism.eps
    without = eps_without_noise(runs, delta=mechanism.delta)
    if without <= claim:
        raise Needs(f"more `count_runs` than {runs}: sums without noise would not be found out either")
    pair = SumNeighbours.of(mechanism, rng)
    eps, chance = pair.audit(runs, rng)
    length = float(np.linalg.norm(pair.change)) / (mechanism.mu * SIGMA)
    return Finding(
        Rate(eps.low, eps.low, eps.high if math.isfinite(eps.high) else eps.low),
        control=Rate(chance, chance, chance),
        baseline=claim,  # to prove what is claimed tells nothing of anybody
        bar=claim,
        passed=eps.low <= claim,
        words=f"Over {runs} releases of either of two files that differ by one person, the one who moves the sums most "
        f"(by {length:.2f} of what is allowed), an auditor who knows all else and sees the noisy sums proves eps >= "
        f"{eps.low:.3f} (estimate {eps.value:.3f}); claimed is eps <= {claim:g}. Sums without noise would be found out "
        f"at eps >= {without:.3f}.",
        details={"estimate": eps.value, "without_noise": without, "runs": runs, "length": length},
    )
