"""
Sums over people with exact noise: everybody in the file under one (eps, delta) (docs/promise.md).

One person is one vector of L2 norm at most 1. Vectors are put on an integer grid, truncated towards zero so that no
norm grows; the sum over people gets discrete Gaussian noise from the operating system, drawn with whole numbers alone.
Whatever is computed from the noisy sum afterwards costs nothing more.
"""

import math
import secrets
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter, require_between

# standard deviation of the noise, in cells of the grid: a power of two keeps all arithmetic of the sampler exact in 64
# bits, and at this size a million people lose .03 of a standard deviation by truncation
SIGMA = 1 << 24
MOST_EPS = 10.0  # above, odds may change by a factor of 22,000: that is no promise
SAFE = 1 - 1e-9  # of a norm: what floating point may add to it is taken off first

Ints = NDArray[np.int64]
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
    require_between("eps", eps, 0, MOST_EPS, open_low=True)
    require_between("delta", delta, 0, 1, open_low=True, open_high=True)
    rounding = (1 + math.exp(eps)) * cells / (12 * SIGMA**2)
    if rounding >= delta / 2:
        raise InvalidParameter(
            f"`delta` must be above {2 * rounding:.1g} for {cells:,} numbers, got {delta:g}.", parameter="delta"
        )
    return gaussian_mu(eps, delta - rounding)


def on_grid(x: NDArray[np.floating], mu: float) -> Ints:
    """Return vectors of norm at most 1 on the grid where noise has standard deviation `SIGMA`, truncated to zero."""
    return np.trunc(x.astype(np.float64) * (mu * SIGMA * SAFE)).astype(np.int64)


def noisy_sum(parts: Iterable[Ints], cells: int, mu: float, below: Below) -> NDArray[np.float64]:
    """
    Return the sum of vectors on the grid with its noise, in units of a vector's norm; the noise has sd 1 / mu.

    `parts` are sums over some people, (cells,) each.
    """
    total = np.zeros(cells, dtype=np.int64)
    for part in parts:
        total += part
    return (total + discrete_gaussian(cells, below)) / (mu * SIGMA)


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


class Bound(NamedTuple):
    """What no attack on membership can exceed under this `mu`: its advantage (true minus false positives), its AUC."""

    advantage: float
    auc: float


def bound_of(mu: float) -> Bound:
    """
    Return the bounds on any attack on membership in a Gaussian mechanism of this `mu`.

    Examples
    --------
    >>> bound = bound_of(1 / 2.230)
    >>> round(bound.advantage, 3), round(bound.auc, 3)
    (0.177, 0.624)

    """
    from statistics import NormalDist

    law = NormalDist()
    return Bound(2 * law.cdf(mu / 2) - 1, law.cdf(mu / math.sqrt(2)))
