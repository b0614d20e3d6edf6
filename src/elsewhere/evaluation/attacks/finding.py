"""
What one attack found: main, control, baseline, interval, bar, verdict, and a sentence in plain words.

The bar is compared with the upper end of the interval. It is used only where walks without any seed, and fresh real
people in the place of the fakes, pass it: neither can reveal a seed. Where they would be flagged as well at this size,
there is no verdict, unless the figure is clearly above theirs.

Intervals of the suite: 95 % unless said, users as the unit of sampling.

With one trial per user a rate gets Wilson's interval. With several, users are resampled (bootstrap), since the fakes of
one seed are not independent; the interval is never narrower than Wilson's on the number of trials, so that 0 hits do
not look like certainty.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from elsewhere.data.visits import Floats, Ints
from elsewhere.errors import InvalidParameter

RESAMPLES = 1000
LEVEL = 0.95
NORMAL = NormalDist()


class Rate(NamedTuple):
    """An estimate and its interval."""

    value: float
    low: float
    high: float


def two_sided(rate: Rate) -> Rate:
    """Return an AUC turned so that it is at least one half: an attacker may know which side scores higher."""
    return rate if rate.value >= 0.5 else Rate(1 - rate.value, 1 - rate.high, 1 - rate.low)


def wilson(hits: float, trials: float) -> Rate:
    """
    Return the share of hits with Wilson's interval; hits may be fractions where ties are shared.

    Examples
    --------
    >>> [round(x, 4) for x in wilson(1, 500)], [round(x, 4) for x in wilson(10, 5000)]
    ([0.002, 0.0004, 0.0112], [0.002, 0.0011, 0.0037])

    """
    if trials <= 0:
        return Rate(math.nan, 0.0, 1.0)
    z, p = NORMAL.inv_cdf(0.5 + LEVEL / 2), hits / trials
    middle = p + z * z / (2 * trials)
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return Rate(p, min(p, max(0.0, (middle - half) / scale)), max(p, min(1.0, (middle + half) / scale)))


def user_rate(hits: Floats, user: Ints, rng: np.random.Generator) -> tuple[Rate, float]:
    """Return the share of hits over all trials with its interval, and the mean share of the worst decile of users."""
    _, number = np.unique(user, return_inverse=True)
    trials, total = np.bincount(number), np.bincount(number, hits)
    share = np.sort(total / trials)[::-1]
    worst = float(share[: math.ceil(len(share) / 10)].mean())
    plain = wilson(float(total.sum()), float(trials.sum()))
    if trials.max() == 1:
        return plain, worst
    # (RESAMPLES, users) how often each user is drawn in each bootstrap sample
    draws = rng.multinomial(len(trials), np.full(len(trials), 1 / len(trials)), size=RESAMPLES).astype(np.float64)
    rates = (draws @ total) / (draws @ trials)
    low, high = np.quantile(rates, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Rate(plain.value, min(plain.low, float(low)), max(plain.high, float(high))), worst


def by_user(values: Floats, user: Ints) -> Floats:
    """Return the mean value of each user that occurs."""
    _, number = np.unique(user, return_inverse=True)
    return np.asarray(np.bincount(number, values) / np.bincount(number))


def difference(a: Floats, b: Floats, *, level: float = LEVEL) -> Rate:
    """Return the mean of `a` minus mean of `b`, one value per user of either group, by the normal law."""
    value, half = float(a.mean() - b.mean()), NORMAL.inv_cdf(0.5 + level / 2) * _standard_error(a, b)
    return Rate(value, value - half, value + half)


def paired_difference(a: Floats, b: Floats) -> Rate:
    """Return the mean of `a - b`, one pair per user, by the normal law."""
    value, half = float((a - b).mean()), NORMAL.inv_cdf(0.5 + LEVEL / 2) * _standard_error(a - b)
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
    Return the chance that a `positive` scores above a `negative`, ties shared, with DeLong's interval.

    Values of `negative` that share a `group` (the fakes of one seed) count as one unit (Obuchowski 1997), and so do
    those of `positive` that share a `positive_group` (the days of one person). A unit of slack, 1/(2 n) of either
    group, keeps a perfect separation from looking like certainty.
    """
    above, below = _share_below(positive, negative), 1 - _share_below(negative, positive)
    each = below if group is None else by_user(below, group)
    value = float(above.mean())
    above = above if positive_group is None else by_user(above, positive_group)
    spread = max(_standard_error(above, each), 0.5 / min(len(above), len(each)))
    half = NORMAL.inv_cdf(0.5 + level / 2) * spread
    return Rate(value, max(0.0, value - half), min(1.0, value + half))


def worst_auc(positive: Floats, negative: Floats, group: Ints) -> float:
    """Return the AUC of the tenth of the groups that are told apart best."""
    each = np.sort(by_user(1 - _share_below(negative, positive), group))[::-1]
    return float(each[: math.ceil(len(each) / 10)].mean())


def _share_below(values: Floats, others: Floats) -> Floats:
    """Return the share of `others` below each value, ties counting half."""
    rising = np.sort(others)
    left, right = np.searchsorted(rising, values, "left"), np.searchsorted(rising, values, "right")
    return np.asarray((left + right) / (2 * len(others)), dtype=np.float64)


def _standard_error(*groups: Floats) -> float:
    """Return the standard deviation of a sum or difference of the means of independent groups."""
    return math.sqrt(sum((float(x.var(ddof=1)) if len(x) > 1 else 0.25) / len(x) for x in groups))


class CannotRun(InvalidParameter):
    """What an attack needs and does not have, or cannot hold in memory; it is listed as not run."""


RUN, NOT_RUN = "run", "not run"
LEARNT, NOTHING, UNCLEAR = "learnt something", "learnt nothing measurable", "cannot tell"
WITHIN = "learnt something, within its bar"
ABOVE = "above its bar, not clearly above chance"
SELDOM = 0.05  # share of groups of fresh real people that a usable bar may flag


class Fresh(NamedTuple):
    """Figure of fresh real people in the place of the fakes, and the share of such groups that the bar would flag."""

    rate: Rate
    flagged: float

    @property
    def usable(self) -> bool:
        """Tell whether the bar can be used at this size."""
        return self.flagged <= SELDOM


@dataclass(frozen=True)
class Finding:
    """
    One attack, run or not.

    Parameters
    ----------
    id, title
        Its number, such as A5, and what it tries.
    status
        "run" or "not run" (see `needs`).
    main, interval
        The attack against the people the fakes were made from, and its 95 % interval; with an interval, `main` is the
        value of that unless it is given.
    control, control_interval
        The same attack, by the same code, against hold-out people, likewise.
    baseline
        What guessing, or the prior alone, reaches.
    null
        What the attack reaches on walks made without any seed, with its interval.
    bar
        Largest acceptable figure.
    passed
        True, False, or None where the sample is too small to tell, or the attack did not run.
    leaks
        Whether the attack learnt something, where its rule is not "the interval lies above chance"; see `learnt`.
    fresh
        What fresh real people reach in the place of the fakes, and how often the bar would flag them.
    reachable
        Whether the null generator and fresh real people pass the bar at this sample size.
    worst_decile
        The main figure over the worst tenth of the users.
    words
        The finding in a sentence.
    needs
        What is missing for the attack to run.
    absent
        Names of the inputs that are missing.
    details
        Further figures, by name.

    """

    id: str
    title: str = ""
    status: str = RUN
    main: float | None = None
    interval: Rate | None = None
    control: float | None = None
    control_interval: Rate | None = None
    baseline: float | None = None
    null: Rate | None = None
    fresh: Fresh | None = None
    bar: float | None = None
    passed: bool | None = None
    leaks: bool | None = None
    reachable: bool | None = None
    worst_decile: float | None = None
    words: str = ""
    needs: str = ""
    absent: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, rate in (("main", self.interval), ("control", self.control_interval)):
            if rate is not None and getattr(self, name) is None:
                object.__setattr__(self, name, rate.value)

    @property
    def risk(self) -> float | None:
        """Return (main - control) / (1 - control): the added risk, as a share of what strangers do not already bear."""
        if self.main is None or self.control is None or self.control >= 1:
            return None
        return (self.main - self.control) / (1 - self.control)

    @property
    def learnt(self) -> bool | None:
        """
        Return whether the attack learnt anything from the fakes, which is not whether it stays below its bar.

        True where the interval lies above all that the attack reaches with nothing to learn from: guessing, walks made
        without any seed, fresh real people. False where it does not, the bar is kept and the figure itself is not above
        it; None where the sample cannot tell, or the attack did not run.
        """
        if self.status != RUN or self.main is None:
            return None
        if self.leaks is not None:
            return None if self.above and not self.leaks else self.leaks
        if self.interval is None:
            return None if self.passed is None else not self.passed
        others = (self.null, None if self.fresh is None else self.fresh.rate)
        chance = [rate.high for rate in others if rate is not None]
        chance += [] if self.baseline is None else [self.baseline]
        if self.interval.low > max(chance, default=math.inf):
            return True
        return False if (self.passed or self.bar is None) and not self.above else None

    @property
    def above(self) -> bool:
        """Tell whether the figure is above the bar; of an AUC whose bar is guessing (A10), whether its interval is."""
        if self.bar is None or self.main is None:
            return False
        if self.interval is not None and self.bar == self.baseline == 0.5:
            return self.interval.low > self.bar
        return self.main > self.bar

    @property
    def outcome(self) -> str:
        """Return in words what the attack learnt, or why that is open."""
        if self.status != RUN:
            return NOT_RUN
        open_words = ABOVE if self.above else UNCLEAR
        return {True: WITHIN if self.passed else LEARNT, False: NOTHING, None: open_words}[self.learnt]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, the details beside the rest."""
        rates = (self.interval, self.control_interval, self.null, self.fresh and self.fresh.rate)
        interval, control_interval, null_interval, fresh_interval = (
            None if rate is None else [float(rate.low), float(rate.high)] for rate in rates
        )
        return {
            "title": self.title,
            "status": self.status,
            "main": plain(self.main),
            "control": plain(self.control),
            "baseline": plain(self.baseline),
            "interval": interval,
            "control_interval": control_interval,
            "risk": plain(self.risk),
            "bar": plain(self.bar),
            "passed": self.passed,
            "learnt": self.learnt,
            "outcome": self.outcome,
            "reachable": self.reachable,
            "null": None if self.null is None else plain(self.null.value),
            "null_interval": null_interval,
            "fresh": None if self.fresh is None else plain(self.fresh.rate.value),
            "fresh_interval": fresh_interval,
            "fresh_flagged": None if self.fresh is None else plain(self.fresh.flagged),
            "worst_decile": plain(self.worst_decile),
            "words": self.words,
            "needs": self.needs,
            **{name: plain(value) for name, value in self.details.items()},
        }


def plain(value: Any) -> Any:
    """Return the same value in the types of JSON; what is not a finite number is None."""
    if isinstance(value, Rate):
        return {"value": plain(value.value), "interval": [float(value.low), float(value.high)]}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def verdict(main: Rate, bar: float, null: Rate | None, fresh: Fresh | None = None) -> bool | None:
    """
    Return True below the bar, False above it, None where the bar is no use and `main` is not clearly worse.

    A bar is no use where the null generator is above it, or where it would flag fresh real people more than seldom.
    """
    if main.high <= bar:
        return True
    chance = [rate.high for rate in (null, fresh and fresh.rate) if rate is not None]
    usable = (null is None or null.high <= bar) and (fresh is None or fresh.usable)
    return False if usable or main.low > max(chance) else None


def no_verdict_words(passed: bool | None, fresh: Fresh, figure: str) -> str:
    """Return what to add to the words of a finding whose bar flags fresh real people; else nothing."""
    if passed is not None or fresh.usable:
        return ""
    return (
        f" No verdict: fresh real people in the place of the fakes reach {figure}, and would exceed the bar as well at "
        f"this size, {100 * fresh.flagged:.0f} times in 100."
    )


def points(value: float) -> str:
    """Return a difference of two shares as people read it."""
    return f"{100 * value:+.1f} points".replace("+-", "-")


def percent(value: float | None) -> str:
    """Return a share as people read it."""
    return "-" if value is None or not math.isfinite(value) else f"{100 * value:.1f} %"
