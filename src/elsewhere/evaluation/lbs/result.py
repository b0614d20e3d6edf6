"""What the service scenario found: error of every adversary, and overhead, per generator and number of fakes."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from elsewhere._version import __version__
from elsewhere.evaluation.attacks.finding import plain
from elsewhere.evaluation.lbs.days import OverDays
from elsewhere.traces.model import Floats

ADVERSARIES = ("aggregate", "user", "classes", "pool")
ATTACKS = ("localization", "tracking")
WHERE = ("exposed", "all")
OVERHEADS = ("diversity", "semantic", "guess")
RESAMPLES = 1000
BAR = 0.9  # of the ceiling m / (m + 1)


@dataclass(frozen=True, eq=False)
class LbsResult:
    """
    Errors and overheads, one value per user: the mean over all selections of fakes and exposures.

    Parameters
    ----------
    generators, n_fakes, adversaries
        Names along the axes of `error`.
    error
        (users, generators, n_fakes, adversaries, attacks, where) probability of error; attacks are localization and
        tracking, where is at exposed instants and at all.
    overhead
        (users, generators, n_fakes, 3) different places and classes per exposed instant, and the error of a guess.
    settings
        beta, repeats, periods, sizes.
    notes
        What a reader should know about the inputs.
    resamples
        (1000, users) users drawn for the intervals.
    over_days
        What a service that watches for several days finds, by number of decoys (A18); empty with one day per person.

    """

    generators: tuple[str, ...]
    n_fakes: tuple[int, ...]
    adversaries: tuple[str, ...]
    error: Floats = field(repr=False)
    overhead: Floats = field(repr=False)
    settings: dict[str, Any]
    notes: tuple[str, ...]
    resamples: Any = field(repr=False)
    over_days: tuple[OverDays, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        numbers = ", ".join(map(str, self.n_fakes))
        return f"LbsResult({', '.join(self.generators)}; {numbers} fakes; {len(self.error)} users)"

    def figure(
        self, generator: str, n: int, adversary: str = "aggregate", attack: str = "tracking", where: str = "exposed"
    ) -> dict[str, Any]:
        """Median over users of the probability of error, its 95 % interval (users resampled), and the mean."""
        g, m, a = (
            x.index(y) for x, y in ((self.generators, generator), (self.n_fakes, n), (self.adversaries, adversary))
        )
        return self._summary(self.error[:, g, m, a, ATTACKS.index(attack), WHERE.index(where)])

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers: generator -> number of fakes -> ceiling, overheads, and error by adversary, attack, where."""
        found: dict[str, Any] = {}
        for generator in self.generators:
            found[generator] = {}
            for n in self.n_fakes:
                g, m = self.generators.index(generator), self.n_fakes.index(n)
                errors = {
                    adversary: {
                        attack: {where: self.figure(generator, n, adversary, attack, where) for where in WHERE}
                        for attack in ATTACKS
                    }
                    for adversary in self.adversaries
                }
                found[generator][str(n)] = {
                    "ceiling": n / (n + 1),
                    "bar": BAR * n / (n + 1),
                    **{name: self._summary(self.overhead[:, g, m, i]) for i, name in enumerate(OVERHEADS)},
                    "error": errors,
                }
        watched = {str(told.n): told.to_dict() for told in self.over_days}
        whole: dict[str, Any] = plain(
            {"settings": self.settings, "generators": found, "over_days": watched, "notes": self.notes}
        )
        return {**whole, "version": __version__}

    def table(self) -> list[dict[str, Any]]:
        """One row per generator, number of fakes, adversary and attack: error, interval, overheads, ceiling."""
        rows = []
        for g, generator in enumerate(self.generators):
            for m, n in enumerate(self.n_fakes):
                costs = {name: self._summary(self.overhead[:, g, m, i])["median"] for i, name in enumerate(OVERHEADS)}
                for adversary in self.adversaries:
                    for attack in ATTACKS:
                        main, whole = (self.figure(generator, n, adversary, attack, where) for where in WHERE)
                        low, high = main["interval"]
                        rows.append(
                            {
                                "generator": generator,
                                "fakes": n,
                                "adversary": adversary,
                                "attack": attack,
                                "error": main["median"],
                                "low": low,
                                "high": high,
                                "error_all": whole["median"],
                                "ceiling": n / (n + 1),
                                **costs,
                            }
                        )
        shown: list[dict[str, Any]] = plain(rows)
        return shown

    def _summary(self, values: Floats) -> dict[str, Any]:
        there = ~np.isnan(values)
        if not there.any():
            return {"median": np.nan, "interval": [np.nan, np.nan], "mean": np.nan, "users": 0}
        # users without a value are drawn too, and count for nothing
        drawn = values[self.resamples]
        kept = drawn[~np.isnan(drawn).all(axis=1)]
        low, high = np.quantile(np.nanmedian(kept, axis=1), [0.025, 0.975])
        return {
            "median": float(np.nanmedian(values)),
            "interval": [float(low), float(high)],
            "mean": float(np.nanmean(values)),
            "users": int(there.sum()),
        }
