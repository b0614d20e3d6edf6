"""
Intervals of the suite: 95 % unless said, users as the unit of sampling.

With one trial per user a rate gets Wilson's interval. With several, users are resampled (bootstrap), since the fakes of
one seed are not independent; the interval is never narrower than Wilson's on the number of trials, so that 0 hits do
not look like certainty.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from elsewhere.traces.model import Floats, Ints

RESAMPLES = 1000
LEVEL = 0.95


class Rate(NamedTuple):
    """An estimate and its interval."""

    value: float
    low: float
    high: float


def _z(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2)


def wilson(hits: float, trials: float, *, level: float = LEVEL) -> Rate:
    """
    Share of hits with Wilson's interval; hits may be fractions where ties are shared.

    Examples
    --------
    >>> [round(x, 4) for x in wilson(1, 500)], [round(x, 4) for x in wilson(10, 5000)]
    ([0.002, 0.0004, 0.0112], [0.002, 0.0011, 0.0037])

    """
    if trials <= 0:
        return Rate(math.nan, 0.0, 1.0)
    z, p = _z(level), hits / trials
    middle = p + z * z / (2 * trials)
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return Rate(p, min(p, max(0.0, (middle - half) / scale)), max(p, min(1.0, (middle + half) / scale)))


def resampled(users: int, rng: np.random.Generator) -> Floats:
    """(RESAMPLES, users) how often each user is drawn in each bootstrap sample."""
    return rng.multinomial(users, np.full(users, 1 / users), size=RESAMPLES).astype(np.float64)


def user_rate(hits: Floats, user: Ints, rng: np.random.Generator) -> tuple[Rate, float]:
    """Share of hits over all trials with its interval, and the mean share of the worst decile of users."""
    _, number = np.unique(user, return_inverse=True)
    trials, total = np.bincount(number), np.bincount(number, hits)
    share = np.sort(total / trials)[::-1]
    worst = float(share[: math.ceil(len(share) / 10)].mean())
    plain = wilson(float(total.sum()), float(trials.sum()))
    if trials.max() == 1:
        return plain, worst
    draws = resampled(len(trials), rng)
    rates = (draws @ total) / (draws @ trials)
    low, high = np.quantile(rates, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Rate(plain.value, min(plain.low, float(low)), max(plain.high, float(high))), worst


def by_user(values: Floats, user: Ints) -> Floats:
    """Mean value of each user that occurs."""
    _, number = np.unique(user, return_inverse=True)
    return np.asarray(np.bincount(number, values) / np.bincount(number))


def difference(a: Floats, b: Floats, *, level: float = LEVEL) -> Rate:
    """Mean of `a` minus mean of `b`, one value per user of either group, by the normal law."""
    half = _z(level) * math.sqrt(_variance(a) / len(a) + _variance(b) / len(b))
    value = float(a.mean() - b.mean())
    return Rate(value, value - half, value + half)


def paired(a: Floats, b: Floats, *, level: float = LEVEL) -> Rate:
    """Mean of `a - b`, one pair per user, by the normal law."""
    value, half = float((a - b).mean()), _z(level) * math.sqrt(_variance(a - b) / len(a))
    return Rate(value, value - half, value + half)


def auc(
    positive: Floats,
    negative: Floats,
    group: Ints | None = None,
    *,
    level: float = LEVEL,
    positive_group: Ints | None = None,
) -> Rate:
    """
    Chance that a `positive` scores above a `negative`, ties shared, with DeLong's interval.

    Values of `negative` that share a `group` (the fakes of one seed) count as one unit (Obuchowski 1997), and so do
    those of `positive` that share a `positive_group` (the days of one person). A unit of slack, 1/(2 n) of either
    group, keeps a perfect separation from looking like certainty.
    """
    above, below = _placement(positive, negative), 1 - _placement(negative, positive)
    each = below if group is None else by_user(below, group)
    value = float(above.mean())
    above = above if positive_group is None else by_user(above, positive_group)
    spread = math.sqrt(_variance(above) / len(above) + _variance(each) / len(each))
    half = _z(level) * max(spread, 0.5 / min(len(above), len(each)))
    return Rate(value, max(0.0, value - half), min(1.0, value + half))


def worst_auc(positive: Floats, negative: Floats, group: Ints) -> float:
    """The AUC of the tenth of the groups that are told apart best."""
    each = np.sort(by_user(1 - _placement(negative, positive), group))[::-1]
    return float(each[: math.ceil(len(each) / 10)].mean())


def _placement(values: Floats, others: Floats) -> Floats:
    # share of `others` below each value, ties counting half
    ranked = np.sort(others)
    left, right = np.searchsorted(ranked, values, "left"), np.searchsorted(ranked, values, "right")
    return np.asarray((left + right) / (2 * len(others)), dtype=np.float64)


def _variance(values: Floats) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else 0.25
