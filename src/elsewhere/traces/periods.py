"""The periods of the local day (E24)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.errors import InvalidParameter, require_whole
from elsewhere.traces.arrays import Places

MINUTES_PER_DAY = 1440


@dataclass(frozen=True)
class Periods:
    """
    The partition of the local day into T periods, as hour bounds 0 = b_0 < b_1 < ... < b_T = 24 (E24).

    `Periods.of(4)` is four equal parts: night 0-6, morning 6-12, afternoon 12-18, evening 18-24.
    """

    bounds: tuple[float, ...]

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "bounds", tuple(float(b) for b in self.bounds))
            rising = all(a < b for a, b in pairwise(self.bounds))  # NaN is below nothing
            covers = len(self.bounds) > 1 and self.bounds[0] == 0 and self.bounds[-1] == 24
        except (TypeError, ValueError):
            rising = covers = False
        if not (rising and covers):
            raise InvalidParameter(
                f"`periods` must be a number of equal parts, or hour bounds rising from 0 to 24 (the whole day), "
                f"got {self.bounds!r}.",
                code="E_PERIODS",
            )

    @staticmethod
    def of(periods: "int | Sequence[float] | Periods") -> "Periods":
        """From a number of equal parts of the day, or from hour bounds."""
        if isinstance(periods, Periods):
            return periods
        if isinstance(periods, (int, np.integer)) and not isinstance(periods, bool):
            parts = require_whole("periods", int(periods), 1, MINUTES_PER_DAY)
            return Periods(tuple(24 * i / parts for i in range(parts)) + (24.0,))
        return Periods(periods)  # type: ignore[arg-type]

    @property
    def T(self) -> int:
        """Number of periods."""
        return len(self.bounds) - 1

    def of_minute(self, minute: ArrayLike) -> Places:
        """The period tau of each local minute of the day; 05:40 is night and 06:00 morning."""
        # a seventh of a day is no round number: an instant on a bound must not fall below it by a rounding error
        minutes = np.round(np.asarray(minute, dtype=np.float64), 6) % MINUTES_PER_DAY
        bounds = np.round(np.asarray(self.bounds) * 60, 6)
        return (np.searchsorted(bounds, minutes, side="right") - 1).astype(np.int32)
