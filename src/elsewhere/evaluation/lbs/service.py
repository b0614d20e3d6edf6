"""One query log as the service sees it, and how far each adversary gets with it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elsewhere.evaluation.lbs._kernels import candidates, hits, localize, sightings, track, without_pool
from elsewhere.evaluation.lbs.knowledge import Chain
from elsewhere.traces.model import Floats, Ints

NOTHING = np.empty(0, dtype=np.uint32)

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sightings:
    """What a service receives: the set `place[start[t] : start[t + 1]]` at instant t, empty if nothing is sent."""

    start: Ints
    place: Ints

    @staticmethod
    def of(truth: Ints, fakes: Ints, exposed: Flags, rng: np.random.Generator) -> "Sightings":
        """
        Truth and fakes at the exposed instants, shuffled, each place once: a client does not ask the same twice.

        Examples
        --------
        >>> log = Sightings.of(np.array([3, 3]), np.array([[3, 5]]), np.array([True, False]), np.random.default_rng(1))
        >>> log.start.tolist(), log.place.tolist()
        ([0, 1, 1], [3])

        """
        n, L = fakes.shape
        start, place = np.empty(L + 1, dtype=np.int64), np.empty(L * (n + 1), dtype=np.int64)
        size = sightings(truth, fakes, exposed, rng.random((L, n + 1)), start, place)
        return Sightings(start, place[:size])

    @property
    def seen(self) -> Flags:
        """Whether anything was sent, (L,)."""
        return np.diff(self.start) > 0

    def without(self, pool: Ints) -> "Sightings":
        """Less every trace of the pool that lies in all of them (A19)."""
        start, place = np.empty_like(self.start), np.empty_like(self.place)
        without_pool(pool, self.start, self.place, start, place)
        return Sightings(start, place[: start[-1]])


def attack(
    log: Sightings, chain: Chain, truth: Ints, rng: np.random.Generator, worth: Floats | None = None
) -> tuple[Floats, Floats]:
    """
    Chance that the adversary names the true place at each instant: by localization, and by tracking.

    The hidden place moves by `chain`. At an exposed instant it is one of those seen, all alike or by `worth (L, R)`,
    ln of what a place is worth at that instant; elsewhere it is one of `chain.between` or one seen at the nearest
    exposed instants, and nothing is observed. Localization names the place of largest posterior probability (forward-
    backward), ties shared; tracking that of the most likely sequence (Viterbi), ties broken at random.
    """
    L = len(truth)
    # unsigned: the kernels then need not look for indices that count from the end
    position = np.searchsorted(chain.place, log.place).astype(np.uint32)
    mark = np.full(len(chain.place), -1, dtype=np.int64)
    start = np.empty(L + 1, dtype=np.int64)
    # in any order: the first of equal candidates wins, and a place must not win by its number
    between = rng.permutation(chain.between)
    size = candidates(log.start, position, between, mark, start, NOTHING)
    place = np.empty(size, dtype=np.uint32)
    candidates(log.start, position, between, mark, start, place)
    weight = np.zeros(size)
    seen = log.seen
    if worth is not None:
        instant = np.repeat(np.arange(L), np.diff(start))
        weight = np.where(seen[instant], worth[instant, chain.place[place]], 0.0)
    posterior, path = np.empty(size), np.empty(L, dtype=np.int64)
    total = localize(start, place, weight, chain.first, chain.p, chain.log_p, chain.pair, posterior)
    track(start, place, weight, chain.first, chain.log_p, chain.pair, path)
    located, tracked = np.empty(L), np.empty(L)
    hits(start, chain.place[place], posterior, path, total > -np.inf, truth, seen, located, tracked)
    return located, tracked


def overhead(log: Sightings, label: Ints | None) -> dict[str, float]:
    """
    Mean number of different places (diversity) and of different classes (semantic) per exposed instant (E69).

    The truth is one of them. Places of unknown class count as one class. Beside it `guess`, the chance of error of
    whoever picks one of the places at random. NaN where nothing was exposed.
    """
    sent = np.diff(log.start)
    sent = sent[sent > 0]
    if len(sent) == 0:
        return dict.fromkeys(("diversity", "semantic", "guess"), np.nan)
    found = {"diversity": float(sent.mean()), "semantic": np.nan, "guess": float((1 - 1 / sent).mean())}
    if label is not None:
        instant = np.repeat(np.arange(len(log.start) - 1), np.diff(log.start))
        kind = label[log.place] + 1
        found["semantic"] = len(np.unique(instant * (label.max() + 2) + kind)) / len(sent)
    return found


def named(
    log: Sightings,
    chains: Mapping[str, Chain],
    truth: Ints,
    rng: np.random.Generator,
    *,
    pool: Ints | None,
    worth: Floats | None,
) -> dict[str, tuple[Floats, Floats]]:
    """What every adversary that has what it needs finds, by name."""
    found = {"aggregate": attack(log, chains["aggregate"], truth, rng)}
    if "user" in chains:
        found["user"] = attack(log, chains["user"], truth, rng)
    if worth is not None:
        found["classes"] = attack(log, chains["aggregate"], truth, rng, worth)
    if pool is not None:
        found["pool"] = attack(log.without(pool), chains["aggregate"], truth, rng)
    return found
