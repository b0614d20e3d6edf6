"""
The ranks of places in people's lists: what sigma matches by (E20, E22), and the roles that places play for people.

A place inside a block of b tied counts holds each of the b ranks of its block with weight 1/b.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elsewhere.profiles.markov import Counts, Profiles
from elsewhere.traces.model import Floats, Ints

RANKS = 12  # a role tells the first 11 ranks apart and counts all others as one


@dataclass(frozen=True, eq=False)
class Ranked:
    """Visits of all users, ranked: entry e covers the ranks `first[e] .. first[e] + size[e] - 1` of its period."""

    user: Ints
    tau: Ints
    place: Ints
    share: Floats  # of the user's instants in the period
    rank: Ints  # position in the sorted order; ties in any order, their shares being equal
    first: Ints
    size: Ints
    w: Floats  # (U, T)

    def spread(self) -> tuple[Ints, Ints]:
        """Every (entry, rank) such that the entry covers the rank, with weight 1/size."""
        entry = np.repeat(np.arange(len(self.size)), self.size)
        step = np.arange(len(entry)) - np.repeat(np.cumsum(self.size) - self.size, self.size)
        return entry, self.first[entry] + step


def ranked(profiles: Profiles, *, whole_day: bool = False) -> Ranked:
    """The visits of each user in each period, most visited place first; or in the whole day, as one period."""
    user = np.repeat(np.arange(len(profiles)), np.diff(profiles.visit_start))
    place = profiles.support[profiles.support_start[user] + profiles.visit_k].astype(np.int64)
    if not whole_day:
        return _sorted(
            user, profiles.visit_tau.astype(np.int64), place, profiles.visit_count, len(profiles), profiles.T
        )
    key, entry = np.unique(user * profiles.R + place, return_inverse=True)
    count = np.bincount(entry, profiles.visit_count)
    return _sorted(key // profiles.R, np.zeros_like(key), key % profiles.R, count, len(profiles), 1)


def _sorted(user: Ints, tau: Ints, place: Ints, count: Counts, U: int, T: int) -> Ranked:
    lived = np.bincount(user * T + tau, count, U * T).reshape(U, T)
    order = np.lexsort((-count, tau, user))
    user, tau, count, place = user[order], tau[order], count[order], place[order]
    segment = user * T + tau
    fresh = np.concatenate([[True], segment[1:] != segment[:-1]])
    rank = np.arange(len(order)) - np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
    opens = fresh | np.concatenate([[True], count[1:] != count[:-1]])
    block = np.cumsum(opens) - 1
    return Ranked(
        user, tau, place, count / lived[user, tau], rank, rank[opens][block], np.bincount(block)[block],
        lived / lived.sum(axis=1, keepdims=True),
    )  # fmt: skip


def by_rank(tau: Ints, rank: Ints) -> Iterator[tuple[int, int, Ints]]:
    """The entries of each (tau, rank), smallest first."""
    width = int(rank.max()) + 1
    key = tau * width + rank
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0]))
    for entries in np.split(order, starts[1:]):
        yield int(key[entries[0]]) // width, int(key[entries[0]]) % width, entries


@dataclass(frozen=True, eq=False)
class Held:
    """Who holds which place at which rank: entry e says that `place[e]` is at `column[e]` of a role for `user[e]`."""

    user: Ints
    place: Ints
    column: Ints
    weight: Floats

    def of_users(self, chosen: NDArray[np.bool_], first: int = 0) -> "Held":
        """The entries of the users whose number is marked in `chosen`; the first user gets the number `first`."""
        kept = chosen[self.user]
        return Held(self.user[kept] + first, self.place[kept], self.column[kept], self.weight[kept])

    def plus(self, other: "Held") -> "Held":
        """The entries of both."""
        names = ("user", "place", "column", "weight")
        return Held(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))

    def table(self, R: int, width: int) -> Floats:
        """(R, width) sums over users: the roles of the places."""
        sums = np.bincount(self.place * width + self.column, self.weight, R * width)
        return np.asarray(sums, dtype=np.float64).reshape(R, width)


def held(profiles: Profiles) -> Held:
    """The ranks that every place holds for every user, of the whole day and of each period; `roles` is their sum."""
    clocks = [(1, True), (profiles.T, False)] if profiles.T > 1 else [(1, False)]
    parts, before = [], 0
    for T, whole_day in clocks:
        visits = ranked(profiles, whole_day=whole_day)
        entry, rank = visits.spread()
        column = before + visits.tau[entry] * RANKS + np.minimum(rank, RANKS - 1)
        parts.append(Held(visits.user[entry], visits.place[entry], column, 1 / visits.size[entry]))
        before += T * RANKS
    return parts[0] if len(parts) == 1 else parts[0].plus(parts[1])


def width(T: int) -> int:
    """Number of columns of a role: `RANKS` for the whole day and, if there are several, for each period."""
    return RANKS * (1 + T if T > 1 else 1)


def roles(profiles: Profiles) -> Floats:
    """
    For how many people a place is the i-th most visited, of the whole day and of each period: (R, RANKS * (1 + T)).

    With T = 1 the day is the period, (R, RANKS). Sums over users: the roles of two groups of people add.
    """
    return held(profiles).table(profiles.R, width(profiles.T))
