"""
The noisy count of archetypes: all that a release of the deniable preset takes from its seeds (theorem 1).

Each seed user has one code in 0 .. A-1, or none. Every count h_a, the empty ones too, gets two-sided geometric noise of
parameter eps0, drawn exactly. One user more or less changes one count by one, so the noisy counts h~ have probabilities
within a factor e^eps0, and with them everything that is made of h~, of people who are no seeds and of public constants:
how many fakes there are, and any number of draws from the mixture of the archetypes' laws.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter, require_between, require_whole
from elsewhere.traces.model import Floats, Ints

K_DELTA = 1e-6  # with this probability a fake may have fewer than k seeds behind it
LEAST_EPS0 = 1e-3  # below, noise of thousands of people: no release could use it
MOST = 10**9  # fakes


class WholeNumbers(Protocol):
    """What draws a whole number in 0 .. n-1: the operating system in production, a seeded generator in a laboratory."""

    def __call__(self, n: int, /) -> int:
        """Return a uniform draw from 0 .. n-1."""


def discrete_laplace(eps0: float, below: WholeNumbers) -> int:
    """
    Draw two-sided geometric noise Z, Pr{Z = z} proportional to exp(-eps0 |z|), exactly, without floating point (R4).

    Canonne, Kamath and Steinke (2020), algorithm 2, with scale 1/eps0 as the fraction t/s.
    """
    t, s = _scale(eps0)
    while True:
        u = below(t)
        if not _bernoulli_exp(u, t, below):
            continue
        v = 0
        while _bernoulli_exp(1, 1, below):
            v += 1
        size = (u + t * v) // s
        negative = below(2) == 1
        if not (negative and size == 0):
            return -size if negative else size


@cache
def _scale(eps0: float) -> tuple[int, int]:
    scale = 1 / Fraction(str(eps0))
    return scale.numerator, scale.denominator


def _bernoulli_exp(numerator: int, denominator: int, below: WholeNumbers) -> bool:
    # Bernoulli(exp(-x)) for 0 <= x <= 1: the number of successes in a row of Bernoulli(x/j), j = 1, 2, ..., is even
    j = 1
    while below(j * denominator) < numerator:
        j += 1
    return j % 2 == 1


def laboratory(rng: np.random.Generator) -> WholeNumbers:
    """Return the source of draws of a repeatable run; n may have more than 64 bits."""

    def below(n: int, /) -> int:
        return int(rng.integers(n)) if n < 2**63 else int.from_bytes(rng.bytes(n.bit_length() // 8 + 9)) % n

    return below


def noisy_count(codes: NDArray[np.integer], A: int, *, eps0: float, below: WholeNumbers) -> Ints:
    """
    Return the (A,) noisy counts h~ of the codes of all seed users, one code each; -1 is none and counts nowhere.

    Examples
    --------
    >>> import numpy as np
    >>> noisy_count(np.array([0, 0, -1]), 3, eps0=50.0, below=laboratory(np.random.default_rng(1))).tolist()
    [2, 0, 0]

    """
    require_whole("A", A, 1)
    require_between("eps0", eps0, LEAST_EPS0, math.inf, open_high=True)
    codes = np.asarray(codes)
    if codes.ndim != 1 or (codes.size and (codes.min() < -1 or codes.max() >= A)):
        raise InvalidParameter(f"`codes` must be one whole number per user, -1 or in 0 .. {A - 1}.")
    count = np.bincount(codes[codes >= 0], minlength=A)
    # empty ones too: that a count is empty is what one user more would change
    return count + np.array([discrete_laplace(eps0, below) for _ in range(A)], dtype=np.int64)


def margin(A: int, eps0: float) -> int:
    """
    Return m, by which no noise of A counts exceeds zero but with probability K_DELTA.

    m = ceil(ln(A / (K_DELTA (1 + e^-eps0))) / eps0): a count with h~ >= k + m has at least k users then.

    Examples
    --------
    >>> [margin(6, eps0) for eps0 in (1, 0.5, 0.1)]
    [16, 31, 150]

    """
    return max(0, math.ceil(math.log(A / (K_DELTA * (1 + math.exp(-eps0)))) / eps0 - 1e-9))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Weights of the archetypes' laws, (A,), and of the walk without a seed; together 1."""

    weights: Floats
    without: float


def mixture(noisy: Ints, *, eps0: float, k: int | None = None) -> Mixture:
    """
    Return the mixture that a release draws from: each archetype as often as its noisy count says.

    With `k` only archetypes with h~ >= k + m are drawn from; what the others would have had goes to the walk without a
    seed, so that the town stays where it is. So it is too where no count is above zero.
    """
    mass = np.maximum(np.asarray(noisy), 0).astype(np.float64)
    total = mass.sum()
    if total == 0:
        return Mixture(np.zeros(len(mass)), 1.0)
    kept = mass
    if k is not None:
        kept = np.where(np.asarray(noisy) >= k + margin(len(mass), eps0), mass, 0.0)
    return Mixture(kept / total, float((mass - kept).sum() / total))


def number_of_fakes(noisy: Ints, n: int | None, per_seed: int = 1) -> int:
    """Return how many fakes to release: `n` as given, or `per_seed` for each seed that the noisy counts add up to."""
    if n is not None:
        return require_whole("n", n, 1, MOST)
    return max(1, per_seed * int(np.sum(noisy)))
