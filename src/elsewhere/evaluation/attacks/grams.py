"""
Densities of traces from n-grams of places; with `skip`, those of a user are computed without that user.

A step r -> r' has probability (n(r, r') + BACKOFF p(r')) / (n(r) + BACKOFF), p(r') the smoothed popularity of r'.
"""

from typing import Any

import numpy as np

from elsewhere.data.visits import Floats, Ints
from elsewhere.evaluation.attacks.inputs import People

BACKOFF = 1.0
SMOOTH = 0.5


class Counts:
    """How often each key occurs in the traces of a group, in all and by user."""

    def __init__(self, key: Ints, user: Ints) -> None:
        who = np.broadcast_to(user[:, None], key.shape).ravel()
        flat = key.ravel()
        self.keys, index = np.unique(flat, return_inverse=True)
        self.total = np.bincount(index, minlength=len(self.keys)).astype(np.float64)
        self.pair, self.own = np.unique(who * len(self.keys) + index, return_counts=True)

    def look_up(self, key: Ints, skip: Ints | None = None) -> Floats:
        """Return the count of each key (N, M), without user `skip[i]` in row i."""
        at = np.searchsorted(self.keys, key).clip(max=len(self.keys) - 1)
        known = self.keys[at] == key
        count = np.where(known, self.total[at], 0.0)
        if skip is not None:
            pair = skip[:, None] * len(self.keys) + at
            where = np.searchsorted(self.pair, pair).clip(max=len(self.pair) - 1)
            count -= np.where(known & (self.pair[where] == pair), self.own[where], 0)
        return count


class Grams:
    """Visit counts of a group of people: of places, of steps, and of places by hour of the day."""

    def __init__(self, people: People, R: int, hour: Ints) -> None:
        self.people, self.R, self.hour = people, R, hour
        self.places = Counts(people.r, people.user)
        self.origins = Counts(people.r[:, :-1], people.user)
        self.steps = Counts(people.r[:, :-1] * R + people.r[:, 1:], people.user)
        self.hourly = Counts(hour * R + people.r, people.user)

    def popularity(self, r: Ints, skip: Ints | None = None) -> Floats:
        """Return the smoothed share of all visits at each place, (N, L)."""
        visits = self._rows(skip) * self.people.r.shape[1]
        return np.asarray((self.places.look_up(r, skip) + SMOOTH) / (visits + SMOOTH * self.R))

    def _rows(self, skip: Ints | None) -> Any:
        """Return the number of traces of all users but `skip[i]`, (N, 1)."""
        own = 0 if skip is None else np.bincount(self.people.user, minlength=int(skip.max()) + 1)[skip][:, None]
        return len(self.people.r) - own

    def step(self, r: Ints, skip: Ints | None = None) -> Floats:
        """Return the probability of each step, (N, L - 1)."""
        times, leaving = self.step_counts(r, skip), self.origins.look_up(r[:, :-1], skip)
        return np.asarray((times + BACKOFF * self.popularity(r[:, 1:], skip)) / (leaving + BACKOFF))

    def step_counts(self, r: Ints, skip: Ints | None = None) -> Floats:
        """Return how often each step was made, (N, L - 1)."""
        return self.steps.look_up(r[:, :-1] * self.R + r[:, 1:], skip)

    def at_hour(self, r: Ints, skip: Ints | None = None) -> Floats:
        """Return the visits to each place of each trace at that hour of the day, (N, L)."""
        return self.hourly.look_up(self.hour * self.R + r, skip)

    def log_chain(self, r: Ints, skip: Ints | None = None) -> Floats:
        """Return the mean ln probability of the slots of each trace under the first-order chain, (N,)."""
        first = np.log(self.popularity(r[:, :1], skip))
        return np.asarray(np.concatenate([first, np.log(self.step(r, skip))], axis=1).mean(axis=1))

    def log_hours(self, r: Ints, skip: Ints | None = None) -> Floats:
        """Return the mean ln probability of the places of each trace given the hour, smoothed by popularity, (N,)."""
        size = np.bincount(self.hour)[self.hour] * self._rows(skip)
        share = (self.at_hour(r, skip) + BACKOFF * self.popularity(r, skip)) / (size + BACKOFF)
        return np.asarray(np.log(share).mean(axis=1))
