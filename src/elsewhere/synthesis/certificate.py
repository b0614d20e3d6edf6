"""
The certificate of a release, and the noise that it rests on (docs/promise.md).

A `Certificate` says whom a theorem protects, by how much, and under which conditions. It holds for the whole release,
however many fakes are in it. Where no theorem holds it says so, and the attacks that were run are all there is.

One person is one vector of L2 norm at most 1. Vectors are put on an integer grid, truncated towards zero so that no
norm grows; the sum over people gets discrete Gaussian noise from the operating system, drawn with whole numbers alone.
Whatever is computed from the noisy sum afterwards costs nothing more.
"""

import math
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import Ints
from elsewhere.errors import InvalidParameter

VACUOUS = 10.0  # eps above which odds may change by a factor of 22,000: that is no promise


@dataclass(frozen=True)
class Certificate:
    """
    What is proven of a whole release.

    Parameters
    ----------
    protects
        "nobody" or "everybody".
    unit
        What is protected as one: a person with all their days.
    eps, delta
        Neighbouring inputs give every set of outputs probabilities within a factor e^eps, but for delta; None where
        nothing is claimed.
    fakes_covered
        For how many fakes together this holds.
    neighbours
        What makes two inputs neighbours.
    conditions
        What the theorem needs, sentence by sentence, and whether it is "met" by construction, "asserted" by the caller
        or "not met".
    advantage, auc
        No attack on membership has more.
    why_not
        Where nobody is protected: why.

    Examples
    --------
    >>> certificate_of(0.5, 1e-6, cells=1).words[0]
    'Odds that a given person is in the file change by at most a factor of 1.65, except with probability 1e-06, \
whatever is published.'

    """

    protects: str = "nobody"
    unit: str = "one person, all their days"
    eps: float | None = None
    delta: float | None = None
    fakes_covered: str = "none"
    neighbours: str = "none"
    conditions: tuple[tuple[str, str], ...] = ()
    advantage: float | None = None
    auc: float | None = None
    why_not: str | None = None

    def in_laboratory(self) -> "Certificate":
        """Return the certificate of the same run with a given `rng`: nothing is claimed, and it says what could be."""
        if not self.holds:
            return self
        why = (
            "This is a laboratory run: whoever knows the `rng` it began with can repeat its noise, so nothing is "
            f"claimed. Of the same run without `rng` it could be said: {' '.join(self.words)}"
        )
        conditions = tuple((what, "not met" if what == ENTROPY else state) for what, state in self.conditions)
        return replace(NOTHING_PROVEN, why_not=why, conditions=conditions)

    @property
    def holds(self) -> bool:
        """Tell whether somebody is protected."""
        return self.eps is not None

    @property
    def words(self) -> tuple[str, ...]:
        """Return what the certificate says, in sentences."""
        if self.eps is None:
            no_theorem = ("There is no theorem for these fakes: what attacks on them find is all there is.",)
            return no_theorem if self.why_not is None else (self.why_not, *no_theorem)
        return (
            f"Odds that a given person is in the file change by at most a factor of {math.exp(self.eps):.2f}, except "
            f"with probability {self.delta:.2g}, whatever is published.",
            f"Any attack that tells who is in the file, now or later, has an AUC of at most {self.auc:.3f} and an "
            f"advantage of at most {self.advantage:.3f}.",
            f"This protects everybody in the file ({self.unit}), for {self.fakes_covered} of fakes together; inputs "
            f"that differ by {self.neighbours} are compared (eps = {self.eps:g}, delta = {self.delta:g}).",
            f"It holds if {'; '.join(what for what, state in self.conditions if state == 'asserted')}.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a manifest or --json."""
        conditions = [list(condition) for condition in self.conditions]
        return {**asdict(self), "conditions": conditions, "holds": self.holds, "words": list(self.words)}


NOTHING_PROVEN = Certificate()
ENTROPY = "noise comes from the operating system, draws from generators that it seeds, and nobody keeps them"


# ---- accounting and noise

# standard deviation of the noise, in cells of the grid: a power of two keeps all arithmetic of the sampler exact in 64
# bits, and at this size a million people lose .03 of a standard deviation by truncation
SIGMA = 1 << 24
SAFE = 1 - 1e-9  # of a norm: what floating point may add to it is taken off first

Below = Callable[[int, int], Ints]  # (m, n) -> n independent uniform draws from 0 .. m - 1


def gaussian_delta(eps: float, mu: float) -> float:
    """
    Return the smallest delta for which N(0, 1) and N(mu, 1) are (eps, delta) apart, exactly (Balle and Wang 2018).

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 4)
    0.1269

    """
    from scipy.special import log_ndtr

    above, below = log_ndtr(-eps / mu + mu / 2), eps + log_ndtr(-eps / mu - mu / 2)
    return float(np.exp(above) * -np.expm1(min(below - above, 0.0)))


def gaussian_mu(eps: float, delta: float) -> float:
    """
    Return the largest mu = sensitivity / standard deviation that is (eps, delta)-private.

    Examples
    --------
    >>> [round(1 / gaussian_mu(eps, 1e-6), 3) for eps in (1.0, 2.0, 4.0, 8.0)]
    [4.225, 2.23, 1.194, 0.653]

    """
    from scipy.optimize import brentq

    root = brentq(lambda mu: gaussian_delta(eps, mu) - delta, 1e-6, 100.0, xtol=1e-12)
    return float(root) * (1 - 1e-9)  # on the safe side of the root


def eps_of(mu: float, delta: float) -> float:
    """Return the eps that a mechanism of this `mu` has at `delta`, however large."""
    from scipy.optimize import brentq

    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    most = mu**2 / 2 + 40 * mu  # delta there is at most Phi(-40), which no number tells from 0
    return float(brentq(lambda eps: gaussian_delta(eps, mu) - delta, 0.0, most))


def noise_of(eps: float, delta: float, cells: int) -> float:
    """
    Return mu for noisy sums of `cells` numbers under (eps, delta), all of it together.

    Balle and Wang's formula is for continuous noise. Rounded to whole numbers that noise is post-processing, and the
    discrete Gaussian is within a total variation of 1 / (12 SIGMA^2) of it per number: delta pays for that.
    """
    rounding = (1 + math.exp(eps)) * cells / (12 * SIGMA**2)
    if rounding >= delta / 2:
        raise InvalidParameter(
            f"`delta` must be above {2 * rounding:.1g} for {cells:,} numbers, got {delta:g}.", parameter="delta"
        )
    return gaussian_mu(eps, delta - rounding)


def on_grid(x: NDArray[np.floating], mu: float) -> Ints:
    """Return vectors of norm at most 1 on the grid where noise has standard deviation `SIGMA`, truncated to zero."""
    return np.trunc(x.astype(np.float64) * (mu * SIGMA * SAFE)).astype(np.int64)


def noisy_sum(total: Ints, mu: float, below: Below) -> NDArray[np.float64]:
    """Return a sum on the grid with its noise, in units of a vector's norm; the noise has sd 1 / mu."""
    return (total + discrete_gaussian(len(total), below)) / (mu * SIGMA)


def from_the_system(m: int, n: int) -> Ints:
    """Return `n` uniform draws from 0 .. m - 1, of the operating system's randomness."""
    out, limit = np.empty(0, dtype=np.uint64), (1 << 64) // m * m
    while len(out) < n:
        words = np.frombuffer(secrets.token_bytes(8 * (n - len(out) + 8)), dtype=np.uint64)
        # the last incomplete run of m numbers would favour small ones
        out = np.append(out, words[words <= np.uint64(limit - 1)] % np.uint64(m))
    return out[:n].astype(np.int64)


def from_generator(rng: np.random.Generator) -> Below:
    """Return draws of a laboratory run, which whoever knows its number can repeat."""
    return lambda m, n: rng.integers(m, size=n)


def discrete_gaussian(n: int, below: Below, sigma: int = SIGMA) -> Ints:
    """
    Return `n` draws z with Pr{z} proportional to exp(-z^2 / (2 sigma^2)), exactly.

    Canonne, Kamath and Steinke (2020), algorithm 3: a discrete Laplace draw y of scale sigma is accepted with
    probability exp(-(|y| - sigma)^2 / (2 sigma^2)). `sigma` is a whole number, so that all fractions are of 64 bits.
    """
    out, rest = np.empty(n, dtype=np.int64), np.arange(n)
    while len(rest):
        y = _discrete_laplace(len(rest), below, sigma)
        kept = _exp_of_minus((np.abs(y) - sigma) ** 2, 2 * sigma**2, below)
        out[rest[kept]] = y[kept]
        rest = rest[~kept]
    return out


def _discrete_laplace(n: int, below: Below, scale: int) -> Ints:
    """Return `n` draws with Pr{z} proportional to exp(-|z| / scale): algorithm 2, for a whole scale."""
    out, rest = np.empty(n, dtype=np.int64), np.arange(n)
    while len(rest):
        u = below(scale, len(rest))
        kept = _exp_of_minus(u, scale, below)
        rows, size = rest[kept], u[kept]
        running = np.arange(len(rows))
        while len(running):
            running = running[_exp_of_minus(np.ones(len(running), dtype=np.int64), 1, below)]
            size[running] += scale
        negative = below(2, len(rows)) == 1
        good = ~(negative & (size == 0))  # zero has one sign
        out[rows[good]] = np.where(negative, -size, size)[good]
        rest = np.concatenate([rest[~kept], rows[~good]])
    return out


def _exp_of_minus(a: Ints, b: int, below: Below) -> NDArray[np.bool_]:
    """Return independent coins that are true with probability exp(-a / b), exactly, for whole a >= 0 (algorithm 1)."""
    alive = np.ones(len(a), dtype=bool)
    whole, part = a // b, a % b
    for k in range(int(whole.max(initial=0))):
        more = np.flatnonzero(alive & (whole > k))
        alive[more] = _exp_of_part(np.full(len(more), b, dtype=np.int64), b, below)
    rest = np.flatnonzero(alive)
    alive[rest] = _exp_of_part(part[rest], b, below)
    return alive


def _exp_of_part(a: Ints, b: int, below: Below) -> NDArray[np.bool_]:
    # for a <= b: the number of successes in a row of Bernoulli(a / (b j)), j = 1, 2, ..., is even
    out, rest, j = np.zeros(len(a), dtype=bool), np.arange(len(a)), 1
    while len(rest):
        success = (below(b, len(rest)) < a[rest]) & (below(j, len(rest)) == 0)
        out[rest[~success]] = j % 2 == 1
        rest, j = rest[success], j + 1
    return out


def bound_of(mu: float) -> tuple[float, float]:
    """
    Return what no attack on membership in a Gaussian mechanism of this `mu` exceeds: its advantage (true minus false
    positives), its AUC.

    Examples
    --------
    >>> [round(bound, 3) for bound in bound_of(1 / 2.230)]
    [0.177, 0.624]

    """
    law = NormalDist()
    return 2 * law.cdf(mu / 2) - 1, law.cdf(mu / math.sqrt(2))


# ---- what a certified run promises, and how many people it needs

ENOUGH = 500.0  # people x mu below which the fakes are hardly better than a uniform map (docs/decisions.md)
CONDITIONS = (
    ("map and clock were given, not found in these people, and no constant was tuned on them", "asserted"),
    ("every person is in the file once, under one id", "asserted"),
    ("whether there are enough people, and how many fakes there are, follows from the noisy sum", "met"),
    ("nothing else that was computed from these people is published: no report, no figure, no private folder",
     "asserted"),
    (ENTROPY, "met"),
)  # fmt: skip


def people_needed(eps: float, delta: float) -> int:
    """
    Return how many people certified fakes need under (eps, delta).

    Examples
    --------
    >>> [people_needed(eps, 1e-6) for eps in (1.0, 2.0, 4.0, 8.0)]
    [2113, 1116, 597, 327]

    """
    return math.ceil(ENOUGH / gaussian_mu(eps, delta))


def eps_for(people: float, need: float, delta: float) -> float | None:
    """Return the least eps, to a tenth, under which people x mu reaches `need`; None where VACUOUS does not."""
    if people <= 0 or need / people > gaussian_mu(VACUOUS, delta):
        return None
    return math.ceil(10 * eps_of(need / people, delta)) / 10


def words_for_few(people: float, eps: float, delta: float) -> str:
    """Return why so few people, counted with noise, are refused, and what would do."""
    possible = eps_for(people, ENOUGH, delta)
    way_out = (
        f"for so few even eps = {VACUOUS:g}, the largest, is too little: give more people, or leave out `eps`."
        if possible is None
        else f"so few need eps = {possible:g}, which promises less; or give more people."
    )
    return (
        f"`eps` needs about {people_needed(eps, delta):,} people at eps = {eps:g}, and there are about "
        f"{max(0, round(people, -1)):,.0f} (counted with noise); {way_out}"
    )


def certificate_of(eps: float, delta: float, cells: int) -> Certificate:
    """Return what the theorem says of a release under (eps, delta)."""
    advantage, auc = bound_of(noise_of(eps, delta, cells))
    return Certificate(
        "everybody", eps=eps, delta=delta, fakes_covered="any number", neighbours="one person more or less",
        conditions=CONDITIONS, advantage=advantage, auc=auc,
    )  # fmt: skip
