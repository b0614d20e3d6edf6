"""
The statistics of a day that the realism filter looks at: twelve of ATTACKS A15, and three more.

Rarity, likelihood and popularity are what the day would show beside *another* crowd of the same size. A move that n
people of this crowd have made is missing from another one with a probability that n tells, and that halves of the crowd
teach: so a person, who is one of the n, and a fake, which walks where they walked, are read alike and nobody has to be
left out.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidTraces
from elsewhere.synthesis.realism import _kernels
from elsewhere.traces.model import Floats, Ints, Locations, Places

FEATURES = (
    "moves",
    "distinct_places",
    "dwell_entropy",
    "top_place_share",
    "longest_stay",
    "return_rate",
    "radius_of_gyration",
    "longest_step",
    "path_length",
    "turn",
    "first_is_last",
    "rarity",
    "log_likelihood",
    "popularity",
    "night_place",
)
ALONE = 11  # of them need nothing but the day
MOST = 20  # people: where so many do something, another crowd does it as often
HALVINGS = 8
BACKOFF, SMOOTH = 1.0, 0.5  # as the judge smooths (ATTACKS A15)


@dataclass(frozen=True, eq=False)
class Seen:
    """
    What a crowd shows: `count[i]` times, by `people[i]` of its members, the thing coded `key[i]`; sorted by key.

    `again[n]` is the mean number of people of another crowd of this size that do what n of this one do, over n;
    `missing[n]` the share of such things that nobody of another crowd does.
    """

    key: Ints
    count: Floats
    people: Ints
    again: Floats
    missing: Floats

    @staticmethod
    def of(key: Ints, user: Ints, rng: np.random.Generator) -> "Seen":
        """From one key per (row, column) and the user of each row."""
        keys, index = np.unique(key.ravel(), return_inverse=True)
        count = np.bincount(index, minlength=len(keys)).astype(np.float64)
        pairs = np.unique(np.broadcast_to(user[:, None], key.shape).ravel() * np.int64(len(keys)) + index)
        who, what = pairs // len(keys), pairs % len(keys)
        people = np.bincount(what, minlength=len(keys))
        again, missing = _elsewhere(who, what, len(keys), rng)
        return Seen(keys, count, people, again, missing)

    def look(self, key: Ints) -> tuple[Floats, Floats]:
        """Count to be expected in another crowd, and probability that nobody there does it, per key."""
        at = np.searchsorted(self.key, key).clip(max=len(self.key) - 1)
        known = self.key[at] == key
        people = np.where(known, np.minimum(self.people[at], MOST), 0)
        return np.where(known, self.count[at] * self.again[people], 0.0), self.missing[people]


def _elsewhere(who: Ints, what: Ints, things: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """`again` and `missing` of `Seen` from random halves of the users, each the other's other crowd."""
    met, unmet, found = (np.zeros(MOST + 1) for _ in range(3))
    users = int(who.max()) + 1
    for _ in range(HALVINGS):
        side = rng.permutation(users) % 2
        half = [np.bincount(what[side[who] == s], minlength=things) for s in (0, 1)]
        for a, b in (half, half[::-1]):
            n = np.minimum(a, MOST)
            # things that neither half does are unknown to the crowd, and not of this table
            some = (a > 0) | (b > 0)
            met += np.bincount(n[some], minlength=MOST + 1)
            unmet += np.bincount(n[some & (b == 0)], minlength=MOST + 1)
            found += np.bincount(n[some], np.divide(b, np.maximum(a, 1))[some], minlength=MOST + 1)
    # what nobody does is missing there too; few things of a kind: as if another crowd did them as often
    again = (found + 1.0) / (met + 1.0)
    again[0], again[MOST] = 0.0, 1.0
    missing = unmet / (met + 1.0)
    missing[0], missing[MOST] = 1.0, 0.0
    # the more people do a thing, the surer others do it
    return np.minimum(1.0, np.maximum.accumulate(again)), np.minimum.accumulate(missing)


@dataclass(frozen=True, eq=False)
class Crowd:
    """The people a day is compared with: places, steps, places at hours, and where the places are."""

    locations: Locations
    hour: Ints
    rows: int
    places: Seen
    origins: Seen
    steps: Seen
    hourly: Seen
    night: Ints

    @staticmethod
    def of(r: Places, user: Ints, locations: Locations, minutes: Floats, rng: np.random.Generator) -> "Crowd":
        """From complete traces (N, L), the user 0 .. U-1 of each row, and the minute of the day of each instant."""
        if r.ndim != 2 or r.shape[1] < 2 or r.min(initial=0) < 0:
            raise InvalidTraces("a crowd needs complete traces of at least 2 instants.", code="E_GAPS")
        R = np.int64(len(locations))
        hour = np.unique(minutes // 60, return_inverse=True)[1].astype(np.int64)
        night = np.flatnonzero(minutes < 360)
        wide = r.astype(np.int64)
        return Crowd(
            locations,
            hour,
            len(r),
            Seen.of(wide, user, rng),
            Seen.of(wide[:, :-1], user, rng),
            Seen.of(wide[:, :-1] * R + wide[:, 1:], user, rng),
            Seen.of(hour * R + wide, user, rng),
            night if len(night) else np.zeros(1, dtype=np.int64),
        )

    @cached_property
    def xy(self) -> Floats:
        """Places in kilometres, (R, 2); (0, 2) without coordinates."""
        if not self.locations.has_coordinates:
            return np.zeros((0, 2))
        return np.ascontiguousarray(self.locations.planar(), dtype=np.float64)

    def features(self, r: NDArray[np.integer]) -> Floats:
        """(N, 15) the features of each trace, in the order of `FEATURES`."""
        N, L = r.shape
        R = len(self.locations)
        out = np.empty((N, len(FEATURES)))
        wide = np.ascontiguousarray(r, dtype=np.int64)
        _kernels.days(wide, self.xy, out)
        visits, _ = self.places.look(wide)
        popular = (visits + SMOOTH) / (self.rows * L + SMOOTH * R)
        made, missing = self.steps.look(wide[:, :-1] * R + wide[:, 1:])
        left, _ = self.origins.look(wide[:, :-1])
        moved = wide[:, 1:] != wide[:, :-1]
        number = moved.sum(axis=1)
        step = np.log((made + BACKOFF * popular[:, 1:]) / (np.maximum(left, made) + BACKOFF))
        present, _ = self.hourly.look(self.hour[self.night] * R + wide[:, self.night])
        out[:, ALONE] = np.divide((missing * moved).sum(axis=1), number, out=np.zeros(N), where=number > 0)
        out[:, ALONE + 1] = (np.log(popular[:, 0]) + step.sum(axis=1)) / L
        out[:, ALONE + 2] = -np.log(popular).mean(axis=1)
        out[:, ALONE + 3] = np.log(present + 0.5).mean(axis=1)
        return out
