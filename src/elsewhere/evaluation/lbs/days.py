"""
The intersection attack over many days (A18): which cell comes back at night, day after day?

Fresh decoys every day betray the home, the only cell that recurs. Persistent personas, the same fakes every day, recur
as well as the home does.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from elsewhere.traces.model import Floats, Ints, Traces

NIGHT = 360  # minutes after midnight


def night_hours(minutes: Floats) -> Ints:
    """Hour of each instant between midnight and six, -1 elsewhere; that of all instants where there is no night."""
    night = minutes < NIGHT
    hour = (minutes // 60).astype(np.int64)
    return np.where(night, hour, -1) if night.any() else hour


def home_of(days: Ints, hour: Ints, R: int) -> int:
    """The most frequent place of a user's nights; the first of equal ones, -1 where nothing is known."""
    nights = days[:, hour >= 0]
    count = np.bincount(nights[nights >= 0], minlength=R)
    return int(count.argmax()) if count.any() else -1


def recurrence(days: Ints, decoys: Ints, exposed: Any, hour: Ints, R: int) -> Floats:
    """
    (R,) on how many days each place was sent at each night hour, summed over the hours.

    `days (D, L)` are true, `decoys (D, m, L)` sent along where `exposed (D, L)`.
    """
    sent = np.concatenate([days[:, None, :], decoys], axis=1)
    day, _, t = np.nonzero((exposed & (hour >= 0))[:, None, :] & (sent >= 0))
    place = sent[(exposed & (hour >= 0))[:, None, :] & (sent >= 0)]
    seen = np.unique((day * (hour.max() + 1) + hour[t]) * R + place)
    return np.bincount(seen % R, minlength=R).astype(np.float64)


def home_found(
    test: Traces,
    generator: Callable[[int, int, np.random.Generator], Any],
    *,
    n: int,
    days: int,
    beta: float,
    repeats: int,
    personas: bool,
    rng: np.random.Generator,
) -> tuple[Ints, Floats]:
    """
    Chance that the place which recurs most is the home, for every user with at least `days` rows; ties shared.

    Returns the numbers of these users, and the mean over `repeats` draws of days, decoys and exposures.
    """
    hour = night_hours(test.minutes())
    rows = [np.flatnonzero(test.user == u) for u in range(test.U)]
    users = np.array([u for u in range(test.U) if len(rows[u]) >= days], dtype=np.int64)
    found = np.zeros(len(users))
    for i, u in enumerate(users.tolist()):
        for _ in range(repeats):
            true = test.r[rng.permutation(rows[u])[:days]].astype(np.int64)
            made = [np.asarray(generator(u, n, rng)) for _ in range(1 if personas else days)]
            decoys = np.stack(made * days if personas else made)
            exposed = (rng.random(true.shape) < beta) & (true >= 0)
            score = recurrence(true, decoys, exposed, hour, test.R)
            home = home_of(true, hour, test.R)
            best = score == score.max()
            if home >= 0 and score.max() > 0 and best[home]:
                found[i] += 1 / best.sum() / repeats
    return users, found
