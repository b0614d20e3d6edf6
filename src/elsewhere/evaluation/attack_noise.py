"""
A9, the audit of the noisy sums of certified fakes: do they keep the eps that is claimed?

Two files that differ by one person, thousands of releases. The auditor knows everybody, and sees the noisy sums
themselves, of which all that is published is made. The person is the one whose list is the longest, among people of the
file: nobody moves the sums more. What tells the two files apart best is the likelihood ratio, which for this noise is
the noisy sum along that person's list.

The claim is that the two errors of any attack trade off as those of two Gaussians mu apart, which is an eps at delta.
So an event of probabilities p and q proves mu >= Phi^-1(p) - Phi^-1(q). On one half of the releases the auditor chooses
the event that proves most, on the other half he bounds its probabilities (Clopper-Pearson). Whatever lower bound of eps
comes out must lie below the claim; sums that keep no promise are to be found out (tests/test_certified.py).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from elsewhere.data.visits import Floats, Ints
from elsewhere.evaluation.attack_base import LEVEL, Case, Finding, Needs, Rate
from elsewhere.synthesis.certificate import SIGMA, Below, discrete_gaussian, eps_of, from_generator
from elsewhere.synthesis.certified import Mechanism

CANDIDATES, OTHERS = 300, 20  # people among whom the longest is looked for, and who are in the smaller file
NUMBERS = 48  # of a person's list that the auditor looks at: the largest
LARGEST_MU = 20.0  # an eps of some 300: no more is told apart
THRESHOLDS = 199


def bounds_of_mu(above: tuple[Any, Any], trials: tuple[int, int]) -> Floats:
    """Return (.., 3): the mu that so many outcomes above a threshold tell, and the ends of its interval of LEVEL."""
    from scipy.special import ndtri
    from scipy.stats import beta

    (p, q), (n, m), rare = (np.asarray(x, dtype=np.float64) for x in above), trials, (1 - LEVEL) / 2
    ends = [
        (np.nan_to_num(beta.ppf(rare, k, of - k + 1)), np.nan_to_num(beta.ppf(1 - rare, k + 1, of - k), nan=1.0))
        for k, of in ((p, n), (q, m))
    ]
    pairs = ((p / n, q / m), (ends[0][0], ends[1][1]), (ends[0][1], ends[1][0]))
    with np.errstate(invalid="ignore"):  # an event that always happens in both tells nothing
        found = np.nan_to_num(np.stack([ndtri(a) - ndtri(b) for a, b in pairs], axis=-1))
    return np.asarray(np.clip(found, 0, LARGEST_MU))


def eps_proven(smaller: Floats, larger: Floats, delta: float) -> Rate:
    """Return the eps at `delta` that outcomes of releases of the smaller and of the larger file prove."""
    half = len(smaller) // 2
    at = np.unique(np.quantile(np.concatenate([smaller[:half], larger[:half]]), np.linspace(0, 1, THRESHOLDS)))
    above = [[(x[some, None] >= at).sum(0) for x in (larger, smaller)] for some in (slice(half), slice(half, None))]
    best = int(np.argmax(bounds_of_mu(tuple(above[0]), (half, half))[:, 1]))
    found = bounds_of_mu((above[1][0][best], above[1][1][best]), (len(larger) - half, len(smaller) - half))
    return Rate(*(eps_of(mu, delta) if mu > 0 else 0.0 for mu in found.tolist()))


def neighbours(mechanism: Mechanism, rng: np.random.Generator) -> Ints:
    """Return by how much the person who moves the sums most moves them: the largest numbers, without noise."""
    some = rng.permutation(mechanism.seen.U)[:CANDIDATES]
    lengths = [float((mechanism.sums([u]).astype(np.float64) ** 2).sum()) for u in some.tolist()]
    longest = int(some[int(np.argmax(lengths))])
    others = [u for u in some[: OTHERS + 1].tolist() if u != longest]
    change = mechanism.sums([*others, longest]) - mechanism.sums(others)
    return change[np.argsort(-np.abs(change), kind="stable")[:NUMBERS]]


def releases(
    change: Ints, runs: int, rng: np.random.Generator, noise: Callable[[int, Below], Ints] = discrete_gaussian
) -> tuple[Floats, Floats]:
    """Return what the auditor notes of `runs` releases of either file: noisy sums along `change`, less the smaller."""
    sums = noise(2 * runs * len(change), from_generator(rng)).reshape(2, runs, len(change))
    smaller, larger = (sums + np.array([0, 1])[:, None, None] * change) @ (change / np.linalg.norm(change)) / SIGMA
    return smaller, larger


def noise_audit(case: Case) -> Finding:
    """Audit the noisy sums of certified fakes on releases of two neighbouring inputs (A9)."""
    mechanism = case.options.get("sampler")
    if not isinstance(mechanism, Mechanism):
        raise Needs("the `sampler` of certified fakes")
    runs, rng, claim, delta = case.options["count_runs"], case.rng(), mechanism.eps, mechanism.delta
    without = eps_proven(np.zeros(runs), np.ones(runs), delta).low
    if without <= claim:
        raise Needs(f"more `count_runs` than {runs}: sums without noise would not be found out either")
    change = neighbours(mechanism, rng)
    smaller, larger = releases(change, runs, rng)
    eps, chance = eps_proven(smaller, larger, delta), eps_proven(smaller[0::2], smaller[1::2], delta).low
    length = float(np.linalg.norm(change)) / (mechanism.mu * SIGMA)
    words = (
        f"Over {runs} releases of either of two files that differ by one person, the one who moves the sums most (by "
    )
    words += f"{length:.2f} of what is allowed), an auditor who knows all else and sees the noisy sums proves eps >= "
    words += (
        f"{eps.low:.3f}; claimed is eps <= {claim:g}. Sums without noise would be found out at eps >= {without:.3f}."
    )
    main, control = Rate(eps.low, eps.low, eps.high), Rate(chance, chance, chance)
    # to prove what is claimed tells nothing of anybody
    return Finding(main, control, baseline=claim, bar=claim, passed=eps.low <= claim, words=words)
