"""
Of several lives one is taken, by weights under which lives are as people's are.

A law of days and of places does not see a life as a whole: how much is recorded of it, by day and by night, how often
it goes to new places, how far it reaches, all at once. So where lives cost little, because records are few, some are
drawn for each fake, and one of them is taken with chances ~ the odds that it is a person's rather than a drawn life:
logistic regression on a portrait of few numbers, from many people and as many lives drawn.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import DAY, Floats, Ints
from elsewhere.synthesis.diaries import fit_logistic
from elsewhere.synthesis.groups import HOUR, count_distinct

RIDGE = 3.0
OUTSIDE = 3.0  # deviations beyond which a portrait is no odder
PART = 4 * HOUR
METRES = 0.01  # kilometres below which a distance is no shorter


@dataclass(frozen=True, eq=False)
class Choice:
    """The ln odds that a portrait is a person's: `weights` of its numbers, their squares and cubes."""

    mean: Floats = field(repr=False)
    deviation: Floats = field(repr=False)
    weights: Floats = field(repr=False)

    def odds(self, portraits: Floats) -> Floats:
        """Return the ln odds of each portrait."""
        return np.asarray(_columns((portraits - self.mean) / self.deviation) @ self.weights)


def learn_choice(people: Floats, lives: Floats) -> Choice:
    """Learn to tell portraits of people from those of lives."""
    both = np.concatenate([people, lives])
    mean, deviation = both.mean(0), np.maximum(both.std(0), 1e-9)
    said = (np.arange(len(both)) < len(people)).astype(float)
    return Choice(mean, deviation, fit_logistic(_columns((both - mean) / deviation), said, RIDGE))


def _columns(z: Floats) -> Floats:
    z = np.clip(z, -OUTSIDE, OUTSIDE)
    return np.column_stack([np.ones(len(z)), z, z**2, z**3 / OUTSIDE])


def portray(user: Ints, start: Ints, end: Ints, place: Ints, people: int, xy: Floats) -> Floats:
    """Return (people, ...) numbers of how much, when, how often anew and how far each life is recorded."""

    def mean(value: NDArray[Any], of: Ints) -> Floats:
        return np.asarray(np.bincount(of, value, people) / np.maximum(np.bincount(of, minlength=people), 1))

    many = np.maximum(np.bincount(user, minlength=people), 1)
    key, count = np.unique(user * len(xy) + place, return_counts=True)
    owner, share = key // len(xy), count / many[key // len(xy)]
    order = np.lexsort((-count, owner))
    rank = np.arange(len(key)) - np.searchsorted(owner, owner)
    top = np.zeros(people, dtype=np.int64)
    top[owner[order][rank == 0]] = key[order][rank == 0] % len(xy)
    distinct = np.maximum(np.bincount(owner, minlength=people), 1)
    days = np.maximum(count_distinct(user, start // DAY, people), 1)

    follows = np.flatnonzero(user[1:] == user[:-1])
    who, gap = user[follows], np.maximum(start[1:] - end[:-1], 0)[follows]  # calls may overlap
    step = np.hypot(*(xy[place[1:]] - xy[place[:-1]])[follows].T)
    moved, near = step > 0, (step > 0) & (gap < PART)
    centre = np.column_stack([mean(column[place], user) for column in xy.T])
    reach = mean(((xy[place] - centre[user]) ** 2).sum(1), user)
    farthest = np.zeros(people)
    np.maximum.at(farthest, who, step)
    far = [
        np.sqrt(reach), mean(step[moved], who[moved]), farthest, _median(step[moved], who[moved], people),
        _median(np.hypot(*(xy[place] - xy[top[user]]).T), user, people),
        _median(step[near] / np.maximum(gap[near] / HOUR, 0.1), who[near], people),
    ]  # fmt: skip

    part = np.bincount(user * 6 + start % DAY // PART, minlength=6 * people).reshape(people, 6)
    return np.column_stack([
        np.log(many), np.log(many / days), part / many[:, None], distinct / many, mean(count == 1, owner),
        np.bincount(owner[order][rank == 0], share[order][rank == 0], people),
        np.bincount(owner[order][rank == 1], share[order][rank == 1], people),
        -np.bincount(owner, share * np.log(share), people), mean(step == 0, who), mean(gap < HOUR, who),
        np.log1p(_median(gap, who, people)), np.log(np.maximum(np.column_stack(far), METRES)),
    ])  # fmt: skip


def _median(value: NDArray[Any], of: Ints, people: int) -> Floats:
    """Return the median of each person's values, 0 where there is none."""
    order = np.lexsort((value, of))
    first = np.searchsorted(of[order], np.arange(people + 1))
    middle = (first[:-1] + first[1:]) // 2
    return np.asarray(np.where(np.diff(first) > 0, np.append(value[order], 0.0)[middle], 0.0))
