"""
How much likelier a life over days is among people than among drawn lives: a density ratio, as `ratio` has it of days.

The traits of a life depend on no other life, and none is a feature of the judge of lives (a test compares them).
"""

from dataclasses import dataclass, field

import numpy as np

from elsewhere.data.visits import Codes, Floats, Locations, Mask
from elsewhere.synthesis.walk._life_ratio_kernels import traits_of_lives
from elsewhere.synthesis.walk.ratio import fit_ratio, ln_ratio

MOST = 0.02  # of the drawn lives have the largest weight: none is wanted more than these


@dataclass(frozen=True, eq=False)
class LifeRatio:
    """The weight of each trait of a life, by where it is among those of drawn lives."""

    xy: Floats = field(repr=False)  # (R, 2) positions of places; zeros where they have none
    weekend: Mask = field(repr=False)  # (days,)
    shown: Mask = field(repr=False)  # (people, days) that each has: the drawn are looked at on days of people, in turn
    ends: Floats = field(repr=False)
    weight: Floats = field(repr=False)

    @staticmethod
    def learn(
        people: Codes, shown: Mask, drawn: Codes, weekend: Mask, locations: Locations, m_min: int
    ) -> "LifeRatio":
        """Learn the ratio of lives `people` (U, days, L), on days that are `shown`, to `drawn` (n, days, L)."""
        xy = np.ascontiguousarray(locations.planar()) if locations.has_coordinates else np.zeros((len(locations), 2))
        of_people, of_drawn = (traits_of_lives(lives, shown, weekend, xy) for lives in (people, drawn))
        return LifeRatio(xy, weekend, shown, *fit_ratio(of_people, np.arange(len(people)), of_drawn, m_min))

    def share(self, lives: Codes) -> Floats:
        """Return (n,) the share that each of these lives (n, days x L) is to have."""
        r = lives.reshape(len(lives), len(self.weekend), -1)
        ln = ln_ratio(traits_of_lives(r, self.shown, self.weekend, self.xy), self.ends, self.weight)
        share = np.exp(np.minimum(ln, np.quantile(ln, 1 - MOST)) - ln.max())
        return np.asarray(share / share.sum())
