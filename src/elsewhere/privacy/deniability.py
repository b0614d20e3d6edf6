"""
The gate of the deniable mode and the ledger of what it costs (READINGS section 11).

One attempt of the mechanism F(S): draw s uniformly from S, draw f from Pr{.|s}, put every member of S into the bucket
ceil(-ln Pr{f|s'} / ln gamma), count the members c in the bucket of s, and release f if c >= k + noise, the noise being
of the two-sided geometric law of parameter eps0. For any integer 1 <= t < k, one released fake is (eps, delta)-
differentially private towards one user of S more or less, with

    eps = eps0 + ln(1 + gamma / t),     delta = exp(-eps0 (k - t)).

Failed attempts are never observable (retry until released), which costs the correction of `deniability_ledger`.
"""

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from elsewhere.errors import InvalidParameter, require_between, require_whole
from elsewhere.traces.model import Floats

SAME = 1e-9  # nats by which two computations of one probability may differ; rounding gives 1e-12 at L = 100
LARGEST_EXP = 700.0
MOST = 10**12  # of people and of fakes
VACUOUS = 10.0  # eps of one fake above which odds may change by a factor of 22,000: a promise in name only
MEANINGLESS = 20.0  # eps from which on odds may change by a factor of 5e8: nothing is claimed (section 11)


class WholeNumbers(Protocol):
    """What draws a whole number in 0 .. n-1: the operating system in production, a seeded generator in a laboratory."""

    def __call__(self, n: int, /) -> int:
        """Return a uniform draw from 0 .. n-1."""


def discrete_laplace(eps0: float, below: WholeNumbers) -> int:
    """
    Two-sided geometric noise Z, Pr{Z = z} proportional to exp(-eps0 |z|), exactly, without floating point (R4).

    Canonne, Kamath and Steinke (2020), algorithm 2, with scale 1/eps0 as the fraction t/s.
    """
    scale = 1 / Fraction(str(eps0))
    t, s = scale.numerator, scale.denominator
    while True:
        u = below(t)
        if not _bernoulli_exp(Fraction(u, t), below):
            continue
        v = 0
        while _bernoulli_exp(Fraction(1), below):
            v += 1
        size = (u + t * v) // s
        negative = below(2) == 1
        if not (negative and size == 0):
            return -size if negative else size


def _bernoulli_exp(x: Fraction, below: WholeNumbers) -> bool:
    # Bernoulli(exp(-x)) for 0 <= x <= 1: the number of successes in a row of Bernoulli(x/j), j = 1, 2, ..., is even
    j = 1
    while below(j * x.denominator) < x.numerator:
        j += 1
    return j % 2 == 1


def buckets(log_prob: Floats, gamma: float) -> Floats:
    """
    Bucket ceil(-ln Pr / ln gamma) of each probability; inf, which is no bucket, where it is 0.

    A probability that is a power of gamma, or that several seeds share, comes out of floating point a little above or
    below: all edges are moved by `SAME`, so that it has one bucket, its own. A bucket is as wide as before.
    """
    return np.asarray(np.ceil((-log_prob - SAME) / math.log(gamma)))


def release_probability(c: int, *, k: int, eps0: float) -> float:
    """P(c) = Pr{c >= k + Z}: how often a bucket of c members passes the gate."""
    alpha = math.exp(-eps0)
    if c < k:
        return alpha ** (k - c) / (1 + alpha)
    return 1 - alpha ** (c - k + 1) / (1 + alpha)


@dataclass(frozen=True)
class Ledger:
    """
    What one released fake costs a member of S, and what all released fakes cost together.

    `eps`, `delta` hold for each released fake (corrected for retries where `acceptance` and `seeds` were given);
    `named` bounds the chance that whoever knows everything but the seed names it; `eps_all`, `delta_all` hold for the
    `released` fakes together, by the better of basic and optimal composition.
    """

    k: int
    gamma: float
    eps0: float
    t: int
    acceptance: float | None
    seeds: int | None
    released: int
    eps: float
    delta: float
    named: float
    eps_all: float
    delta_all: float
    composition: str

    def to_dict(self) -> dict[str, Any]:
        """As plain numbers."""
        return asdict(self)

    @property
    def basic(self) -> tuple[float, float]:
        """(eps, delta) of all released fakes by basic composition: the sums."""
        return self.released * self.eps, min(1.0, self.released * self.delta)

    def told(self) -> dict[str, Any]:
        """As plain numbers for a manifest or a report: those of the ledger, and the sums of basic composition."""
        eps, delta = self.basic
        return {**self.to_dict(), "eps_basic": eps, "delta_basic": delta}

    @property
    def vacuous(self) -> str | None:
        """Why the promise of a single fake promises nothing, see `vacuous`; None where it does promise something."""
        return vacuous(self.eps, self.seeds)

    def in_words(self) -> str:
        """What an adversary who knows everything else can learn, from one fake and from all."""
        one = (
            f"Each released fake is (eps = {self.eps:.3f}, delta = {self.delta:.2g})-differentially private, one seed "
            "user added or removed, the model being learnt on other users and the map being given: a theorem, against "
            "which the test-suite audits the code of the gate (A9). From one fake, whoever knows everything else "
            "changes the odds that a given person was among the seeds by a factor of at most "
            f"{odds_factor(self.eps)}, except with probability {self.delta:.2g}, and names its seed with "
            f"probability at most {self.named:.3f} (k = {self.k}, of which t = {self.t} is claimed, gamma = "
            f"{self.gamma:g})."
        )
        if self.vacuous is not None:
            one += f" But {self.vacuous}"
        if self.released == 1:
            return one
        eps, delta = self.basic
        basic = f"by adding up, eps = {eps:.1f} and delta = {delta:.2g}"
        if self.eps_all > MEANINGLESS:
            return (
                f"{one} From all {self.released} together: {basic}; by the best rule known, eps = {self.eps_all:.1f}: "
                "too large to mean anything, so no claim is made for the dataset as a whole."
            )
        return (
            f"{one} From all {self.released} together: {basic}; by {self.composition} composition, eps = "
            f"{self.eps_all:.3f} and delta = {self.delta_all:.2g}."
        )


def odds_factor(eps: float) -> str:
    """exp(eps) for people: the factor by which odds can change, however large."""
    if eps >= LARGEST_EXP:
        return "inf"
    return f"{math.exp(eps):.2f}" if eps < VACUOUS else f"{math.exp(eps):.1e}"


def vacuous(eps: float, seeds: int | None) -> str | None:
    """
    Why an eps of one fake promises nothing in practice, in words; None where it promises something.

    It is so above `VACUOUS`, and where odds may change by more than the number of seeds: then who is one of the seeds
    can go from as likely as any other to more likely than all others together.

    Examples
    --------
    >>> vacuous(1.1, 500) is None, vacuous(7, 500) is None, vacuous(7, 5000) is None
    (True, False, True)

    """
    by = "without limit" if eps >= LARGEST_EXP else f"by a factor of {odds_factor(eps)}"
    if eps > VACUOUS:
        why = f"eps = {eps:.4g} is above {VACUOUS:g}, one fake may change the odds on a person {by}"
    elif seeds is not None and math.exp(eps) > seeds:
        why = f"one fake may change the odds on a person {by}, more than the {seeds} seeds there are"
    else:
        return None
    return (
        f"as differential privacy this promises nothing in practice: {why}; a smaller `eps0`, and the larger `k` that "
        "it needs, would."
    )


def deniability_ledger(
    *,
    k: int,
    gamma: float,
    eps0: float,
    t: int | None = None,
    delta_target: float = 1e-6,
    acceptance: float | None = None,
    seeds: int | None = None,
    released: int = 1,
) -> Ledger:
    """
    The (eps, delta) of one fake released by the gate, and of all of them (theorem of READINGS section 11).

    Parameters
    ----------
    k, gamma, eps0
        Threshold, bucket factor and noise parameter of the gate.
    t
        The integer 1 <= t < k of the theorem; by default the one with the smallest eps whose delta meets
        `delta_target`.
    delta_target
        Largest delta to accept.
    acceptance, seeds
        A floor of the acceptance probability a, fixed in advance, and n = |S|. With both, eps' = eps + ln(1 + 1/n)
        - ln(1 - delta/a) and delta' = (1 + 1/n) delta / a: the cost of retrying until something is released.
    released
        Number of fakes released.

    Examples
    --------
    >>> import elsewhere as ew
    >>> ledger = ew.deniability_ledger(k=50, gamma=4, eps0=1, t=30)
    >>> round(ledger.eps, 4), f"{ledger.delta:.3g}"
    (1.1252, '2.06e-09')

    """
    k = require_whole("k", k, 2, MOST)
    gamma = require_between("gamma", gamma, 1, math.inf, open_low=True, open_high=True)
    eps0 = require_between("eps0", eps0, 0, math.inf, open_low=True, open_high=True)
    require_between("delta_target", delta_target, 0, 1, open_low=True, open_high=True)
    released = require_whole("released", released, 1, MOST)
    if acceptance is not None:
        acceptance = require_between("acceptance", acceptance, 0, 1, open_low=True)
    if seeds is not None:
        seeds = require_whole("seeds", seeds, k, MOST)
    if (acceptance is None) != (seeds is None):
        raise InvalidParameter("`acceptance` and `seeds` correct the ledger together: give both, or neither.")

    # the correction multiplies delta by a constant, so the largest t that meets the target is in closed form
    factor = 1.0 if acceptance is None or seeds is None else (1 + 1 / seeds) / acceptance
    if t is None:
        # a tiny eps0 asks for more people than there are, or than a number can say
        needed = 1 + min(math.log(factor / delta_target) / eps0, float(MOST))
        t = k + 1 - max(2, math.ceil(needed - 1e-12))
        if t < 1:
            least = f"at least {math.ceil(needed)}" if needed <= MOST else f"above {MOST}"
            raise InvalidParameter(
                f"`k` must be {least} for delta <= {delta_target:g} at eps0 = {eps0:g}, got {k}; "
                "raise `k`, `eps0` or `delta_target`."
            )
    t = require_whole("t", t, 1, k - 1)

    delta = math.exp(-eps0 * (k - t))
    eps = eps0 + math.log1p(gamma / t)
    named = gamma / (gamma + t - 1)
    if acceptance is not None and seeds is not None:
        missed = delta / acceptance
        if missed >= 1:
            raise InvalidParameter(
                f"`acceptance` must be above the gate's delta {delta:.2g}, got {acceptance:g}; lower `t` or raise `k`."
            )
        eps += math.log1p(1 / seeds) - math.log1p(-missed)
        delta = min(1.0, (1 + 1 / seeds) * missed)
        named = min(1.0, named + missed)
    eps_all, delta_all, rule = compose(eps, delta, released)
    return Ledger(k, gamma, eps0, t, acceptance, seeds, released, eps, delta, named, eps_all, delta_all, rule)


def compose(eps: float, delta: float, n: int, *, slack: float = 1e-6) -> tuple[float, float, str]:
    """
    (eps, delta) of n releases of an (eps, delta) mechanism: the smaller eps of basic and optimal composition.

    Basic: (n eps, n delta). Optimal (Kairouz, Oh, Viswanath 2015, theorem 3.3): for i = 0 .. n/2 the eps (n - 2i) eps
    holds with 1 - (1 - delta)^n (1 - delta_i); the largest i whose delta_i is at most `slack` is taken.
    """
    if n == 1:
        return eps, delta, "single"
    low, high = 0, n // 2
    while low < high:  # delta_i grows with i
        i = (low + high + 1) // 2
        low, high = (i, high) if _kov_delta(eps, n, i) <= slack else (low, i - 1)
    if low == 0:
        return n * eps, min(1.0, n * delta), "basic"
    total = -math.expm1(n * math.log1p(-delta) + math.log1p(-_kov_delta(eps, n, low)))
    return (n - 2 * low) * eps, total, "optimal"


def _kov_delta(eps: float, n: int, i: int) -> float:
    # C(n, j) e^{(n-j) eps} / (1 + e^eps)^n is a binomial law of j; beyond 40 standard deviations there is nothing
    if i == 0:
        return 0.0
    from scipy.special import gammaln

    part = math.exp(-eps) / (1 + math.exp(-eps))
    reach = 40 * (1 + math.sqrt(n * part * (1 - part)))
    if i > n * part + reach:
        return 1.0
    j = np.arange(max(0, math.floor(n * part - reach)), i)
    log_choose = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)
    # e^{(n-j) eps} - e^{(n-2i+j) eps}, in logs
    terms = log_choose + (n - j) * eps + np.log(-np.expm1((2 * j - 2 * i) * eps)) - n * np.logaddexp(0.0, eps)
    return float(np.exp(terms).sum())
