"""What a walk is learnt into, in a form that may stand in a model file, and the tables of a walk that it gives."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elsewhere.synthesis.walk._walk_kernels import ALL_COLUMNS, SLOTS, Tables
from elsewhere.traces.model import Floats, Ints, Locations

EDGES = np.array([1.2, 1.6, 2.5, 5.0, 10.0, 20.0])  # of lengths, in distances between neighbours
PAIR, ONWARD = 2.0, 3.0  # weight of the smoothing of moves, of moves after moves
LEAST = 1e-12
FAR = 1.25  # times the longest move of people: a step of one town to the next that nobody makes is none


@dataclass(frozen=True, eq=False)
class Habits:
    """
    What a walk is learnt into, over R places and L instants: sums over users, and weights.

    Every sum is one that at least `m_min` users share. Moves, and moves after moves, of fewer are left out: how many of
    those begin at a place is known (`rest`), not where they end; lengths and arrivals say where, as for strangers.
    Weights for what fewer users did are 0, lives of fewer are pooled with those next to them.
    """

    move: Ints  # r R + r', sorted
    count: Floats  # how often it was made
    rest: Floats  # (R,) further moves out of each place
    arrivals: Floats  # (R,) moves into each place, and .5
    kernel: Floats  # (LENGTHS,) how much likelier a move of this length is than arrivals alone say
    pair: Ints  # r R + r' of a move that was gone on from, sorted with
    onward: Ints  # where to,
    onward_count: Floats  # and how often
    first: Floats  # (R,) beginnings, smoothed by visits
    destination: Floats  # (ALL_COLUMNS + 3,) weights of where a move leads
    moving: Floats  # (ALL_MOVING,) weights of moving at all
    leaving: Floats  # (R,)
    lives: Floats  # (4, L + 1)
    reach: float  # the longest move; 0: nobody moves
    people: int

    @property
    def instants(self) -> int:
        """Length of a walk."""
        return int(self.lives.shape[1]) - 1

    def tables(self, locations: Locations, known: NDArray[np.bool_]) -> Tables:
        """The walk over the places `known`."""
        R = len(locations)
        lengths, sectors = geometry(locations)
        count = np.zeros((R, R))
        count.ravel()[self.move] = self.count
        law = np.stack([step_row(r, count[r], self.rest[r], self.arrivals, self.kernel, lengths) for r in range(R)])
        of_step, of_arrivals, of_onward = self.destination[ALL_COLUMNS:]
        first = self.first * known if (self.first * known).any() else known.astype(np.float64)
        pair, start = np.unique(self.pair, return_index=True)
        ratio = 1 + self.onward_count / (ONWARD * law[self.pair % R, self.onward])
        return Tables(
            first=first / first.sum(),
            places=np.flatnonzero(known),
            lengths=lengths,
            sectors=sectors,
            steps=np.exp(of_step * np.log(law) + of_arrivals * np.log(self.arrivals))
            * within_reach(locations, self.reach),
            pair=pair,
            start=np.append(start, len(self.pair)),
            onward=self.onward,
            onward_factor=ratio**of_onward,
            factor=np.exp(self.destination[:ALL_COLUMNS]),
            moving=self.moving,
            leaving=self.leaving,
            slot=slots(self.instants),
            people=self.people,
            lives=self.lives,
        )


def slots(L: int) -> Ints:
    """(L,) part of the day of each instant."""
    return np.minimum(np.arange(L) * SLOTS // L, SLOTS - 1)


def step_row(r: int, count: Floats, rest: float, arrivals: Floats, kernel: Floats, lengths: NDArray[np.int8]) -> Floats:
    """Smoothed shares of the moves out of r: what is known of where they lead, the others by length and arrivals."""
    pull = arrivals * kernel[lengths[r]]
    pull[r] = 0.0
    pull /= max(pull.sum(), LEAST)
    return np.asarray((count + (PAIR + rest) * pull) / (count.sum() + rest + PAIR) + LEAST)


def within_reach(locations: Locations, longest: float) -> Floats:
    """(R, R) 1 for moves no longer than FAR times the longest that people make, next to nothing beyond."""
    R = len(locations)
    every = np.arange(R)
    if longest == 0:
        return np.ones((R, R))
    most = FAR * longest
    return np.stack([np.where(locations.distance(np.full(R, r), every) <= most, 1.0, LEAST) for r in range(R)])


def geometry(locations: Locations) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Bin of the length and sector of the direction of every move, (R, R) each."""
    R = len(locations)
    every = np.arange(R)
    lengths = np.empty((R, R), dtype=np.int8)
    sectors = np.full((R, R), -1, dtype=np.int8)
    xy = locations.planar() if locations.has_coordinates else None
    nearest = np.array([np.delete(locations.distance(np.full(R, r), every), r).min(initial=np.inf) for r in range(R)])
    apart = nearest[np.isfinite(nearest) & (nearest > 0)]
    unit = float(np.median(apart)) if len(apart) else 1.0
    for r in range(R):
        lengths[r] = np.searchsorted(EDGES, locations.distance(np.full(R, r), every) / unit)
        if xy is not None:
            d = xy - xy[r]
            angle = np.round(np.arctan2(d[:, 1], d[:, 0]) * 8 / np.pi) % 16
            sectors[r] = np.where((d != 0).any(axis=1), angle, -1)
    return lengths, sectors
