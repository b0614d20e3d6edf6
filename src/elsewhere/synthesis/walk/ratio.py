"""
How much likelier a day is among people than among walks: a density ratio.

Walks have the right law step by step, but their whole days differ from people's. A classifier between people and
walks by traits of whole days gives the ratio of their densities (Sugiyama, Suzuki, Kanamori 2012), and walks are
chosen by it. It is a logistic regression on tenths: for each trait, the tenth of the walks that a day falls into. No
weight rests on fewer than `m_min` people, and walks alone set the bounds of the tenths. None of the traits is a feature
of our own judge of realism (a test compares them); radius of gyration, entropy and returns are three of the twelve
features of the other judge (docs/decisions.md).
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import Floats, Ints, Locations
from elsewhere.sorting import count_users
from elsewhere.synthesis.walk._ratio_kernels import TRAITS, traits_of
from elsewhere.synthesis.walk._walk_kernels import logistic_loss
from elsewhere.synthesis.walk.fit import minimise

BINS = 10  # of each trait: own judge .626, with 6 bins .630-.637 (one split)
RIDGE = 10.0  # of each weight: a bin of few people weighs little (no other was compared)


@dataclass(frozen=True, eq=False)
class Ratio:
    """The weight of each trait of a day, by where it is among those of walks."""

    xy: Floats = field(repr=False)  # (R, 2) positions of places; zeros where they have none
    ends: Floats = field(repr=False)  # (TRAITS, BINS - 1) where bins end
    weight: Floats = field(repr=False)  # (TRAITS, BINS)

    @staticmethod
    def learn(
        people: NDArray[np.integer],
        user: NDArray[np.integer],
        walks: NDArray[np.integer],
        locations: Locations,
        m_min: int,
    ) -> "Ratio":
        """Learn the ratio of days `people` (N, L) without gaps, of these users, to `walks` (n, L)."""
        xy = np.ascontiguousarray(locations.planar()) if locations.has_coordinates else np.zeros((len(locations), 2))
        if people.shape[1] < 2:
            return Ratio(xy, np.zeros((TRAITS, BINS - 1)), np.zeros((TRAITS, BINS)))
        return Ratio(xy, *fit_ratio(_traits(people, xy), user, _traits(walks, xy), m_min))

    def ln(self, walks: NDArray[np.integer]) -> Floats:
        """Return (N,) the ln of how much likelier each walk is among people, give or take a constant."""
        if walks.shape[1] < 2:
            return np.zeros(len(walks))
        return ln_ratio(_traits(walks, self.xy), self.ends, self.weight)


def fit_ratio(people: Floats, user: NDArray[np.integer], drawn: Floats, m_min: int) -> tuple[Floats, Floats]:
    """
    Fit the weight of each trait of `people` (N, T), rows of these users, beside that of `drawn` (n, T).

    Return where bins end (T, BINS - 1), at tenths of the drawn, and weights (T, BINS), 0 for bins of fewer than `m_min`
    users.
    """
    ends = np.quantile(drawn, np.arange(1, BINS) / BINS, axis=0).T.copy()
    n = len(ends) * BINS
    of_people = _weight_columns(people, ends)
    every = np.concatenate([of_people, _weight_columns(drawn, ends)])
    every = np.column_stack([every, np.full(len(every), n)])
    real = np.arange(len(every)) < len(people)
    thin = np.flatnonzero(count_users(np.unique(user, return_inverse=True)[1], of_people, n) < m_min)
    ridge = np.full(n + 1, RIDGE)
    ridge[n] = 1e-3  # the constant, ln of people to walks, is fitted nearly freely, and `ln_ratio` leaves it out
    weights = minimise(logistic_loss, (ridge, every, real), np.zeros(n + 1), 100, thin)
    return ends, weights[:n].reshape(-1, BINS)


def ln_ratio(traits: Floats, ends: Floats, weight: Floats) -> Floats:
    """Return (N,) the ln of how much likelier rows with these traits are among people, give or take a constant."""
    return np.asarray(weight.ravel()[_weight_columns(traits, ends)].sum(axis=1))


def classifier_auc(
    people: NDArray[np.integer],
    user: NDArray[np.integer],
    walks: NDArray[np.integer],
    locations: Locations,
    m_min: int,
    rng: np.random.Generator,
) -> float:
    """
    Return the AUC with which a ratio tells people's days from walks that it has not met; .5 is chance.

    Users and walks are halved at random; what is learnt from one half is asked about the other, both ways.
    """
    from scipy.stats import rankdata

    _, number = np.unique(user, return_inverse=True)
    half = rng.permutation(number.max() + 1)[number] % 2 == 0
    half_of_walks = np.arange(len(walks)) % 2 == 0
    out = []
    for taught, taught_walks in ((half, half_of_walks), (~half, ~half_of_walks)):
        if taught.all() or not taught.any():
            return 0.5
        ratio = Ratio.learn(people[taught], user[taught], walks[taught_walks], locations, m_min)
        score = np.concatenate([ratio.ln(people[~taught]), ratio.ln(walks[~taught_walks])])
        n, m = np.count_nonzero(~taught), np.count_nonzero(~taught_walks)
        out.append((rankdata(score)[:n].sum() / n - (n + 1) / 2) / m)
    return float(np.mean(out))


def _traits(r: NDArray[np.integer], xy: Floats) -> Floats:
    out = np.empty((len(r), TRAITS))
    traits_of(np.ascontiguousarray(r, dtype=np.int32), xy, out)
    return out


def _weight_columns(traits: Floats, ends: Floats) -> Ints:
    """Return (N, T) the number of the weight of each trait; a day at the end of a bin is in the next."""
    bins = [np.searchsorted(end, trait, side="right") for end, trait in zip(ends, traits.T, strict=True)]
    return np.stack(bins, axis=1) + np.arange(len(ends)) * BINS
