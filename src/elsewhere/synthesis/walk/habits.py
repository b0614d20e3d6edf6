"""What a walk is learnt into, in a form that may stand in a model file, and the tables of a walk that it gives."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import EARTH_RADIUS_KM, Floats, Ints, Locations
from elsewhere.synthesis.walk._walk_kernels import (
    ALL_COLUMNS,
    LEAST,
    LENGTHS,
    PAIR,
    SHAPES,
    SLOTS,
    Ground,
    Tables,
    fill_reach,
    lengths_from,
    lengths_of,
    pulls_from,
)

EDGES = np.array([1.2, 1.6, 2.5, 5.0, 10.0, 20.0])  # of lengths, in distances between neighbours
ONWARD = 3.0  # weight of the smoothing of moves after moves
FEW_PLACES = 2048  # up to so many every move has its own step; above, those within reach do
NEAR = 512  # places that are within reach of each, beside those that people go to from it
DISTRICTS, TO_A_DISTRICT = 16, 64  # on either side of a large map at most, and places to one at least
FAR = 1.25  # times the longest move of people: a step of one town to the next that nobody makes is none


@dataclass(frozen=True, eq=False)
class Habits:
    """
    What a walk is learnt into, over R places and L slots: sums over users, and weights.

    Every sum is one that at least `m_min` users share. Moves, and moves after moves, of fewer are left out: how many of
    those begin at a place is known (`rest`), not where they end; lengths and arrivals say where, as for strangers.
    Weights for what fewer users did are 0, day statistics of fewer are pooled with the next ones.
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
    day_statistics: Floats  # (4, L + 1)
    reach: float  # the longest move; 0: nobody moves
    people: int

    @property
    def L(self) -> int:
        """Return the number of slots of a walk."""
        return int(self.day_statistics.shape[1]) - 1

    def tables(self, locations: Locations, known: NDArray[np.bool_]) -> Tables:
        """
        Return the walk over the places `known`.

        On a map of more than FEW_PLACES, moves to the NEAR nearest known places of each and to those where people went
        from it have a step of their own. All others are told by popularity and shape alone, as they are by the law of a
        small map, and are drawn so: nothing is cut off, and a walk costs by what is in reach.
        """
        ground, R = ground_of(locations), len(locations)
        first = self.first * known if (self.first * known).any() else known.astype(np.float64)
        pair, start = np.unique(self.pair, return_index=True)
        law = self._law(ground, known | np.isin(np.arange(R), self.pair % R))
        here, there = self.pair % R, self.onward
        position = np.searchsorted(self.move, here * R + there)
        position = np.minimum(position, max(len(self.move) - 1, 0))
        count = np.where(self.move[position] == here * R + there, self.count[position], 0.0) if len(self.move) else 0.0
        lengths = np.empty(len(here), dtype=np.int64)
        lengths_of(ground, here, there, lengths)
        share = count * law[2][here] + law[1][here] * law[0][there] * self.kernel[lengths] + LEAST
        power = self.destination[ALL_COLUMNS : ALL_COLUMNS + 2]
        fields: dict[str, Any] = {
            "first": first / first.sum(),
            "places": np.flatnonzero(known),
            "lengths": ground.lengths,
            "sectors": ground.sectors,
            "pair": pair,
            "start": np.append(start, len(self.pair)),
            "onward": self.onward,
            "onward_factor": (1 + self.onward_count / (ONWARD * share)) ** self.destination[ALL_COLUMNS + 2],
            "factor": np.exp(self.destination[:ALL_COLUMNS]),
            "moving": self.moving,
            "leaving": self.leaving,
            "slot": parts_of_day(self.L),
            "people": self.people,
            "day_statistics": self.day_statistics,
        }
        if R > FEW_PLACES:
            return Tables(steps=np.zeros((0, 0)), **fields, **self._reach(ground, law, locations, known, power))
        steps = np.stack([self._row(ground, r) for r in range(R)])
        steps = np.exp(power[0] * np.log(steps) + power[1] * np.log(self.arrivals))
        return Tables(steps=steps * reach_mask(locations, self.reach), **fields)

    def _row(self, ground: Ground, r: int) -> Floats:
        """Return (R,) the smoothed shares of the moves out of r."""
        R = len(self.arrivals)
        here = slice(*np.searchsorted(self.move, (r * R, (r + 1) * R)))
        count = np.zeros(R)
        count[self.move[here] % R] = self.count[here]
        return step_row(r, count, float(self.rest[r]), self.arrivals, self.kernel, ground)

    def _law(self, ground: Ground, wanted: NDArray[np.bool_]) -> Floats:
        """
        Return (3, R) arrivals, and of each wanted origin what arrivals times kernel and what counts are
        multiplied by.
        """
        R = len(self.arrivals)
        pulls = np.ones(R)
        pulls_from(ground, self.arrivals, self.kernel, wanted, pulls)
        whole = 1 / (np.bincount(self.move // R, self.count, R) + self.rest + PAIR)
        return np.stack([self.arrivals, (PAIR + self.rest) * whole / np.maximum(pulls, LEAST), whole])

    def _reach(
        self, ground: Ground, law: Floats, locations: Locations, known: NDArray[np.bool_], power: Floats
    ) -> dict[str, Any]:
        """Return what is within reach of each known place of a large map, and the sums of all beyond it."""
        R, P, places = len(known), int(known.sum()), np.flatnonzero(known)
        near = _nearest_places(locations, places, self.arrivals)
        start = np.searchsorted(self.move, np.arange(R + 1) * R)
        size = P * near.shape[1] + len(self.move)
        row, to, step = np.empty(P + 1, dtype=np.int64), np.empty(size, dtype=np.int32), np.empty(size)
        shape, far, scale = np.empty(size, dtype=np.uint8), np.zeros((P, SHAPES)), np.empty(P)
        district, many = districts(ground.xy[places])
        between = np.zeros((many, many, LENGTHS), dtype=np.uint32)
        most = chord(locations, FAR * self.reach) ** 2 if self.reach > 0 else np.inf
        size = fill_reach(
            ground,
            law,
            self.kernel,
            known,
            near,
            start,
            self.move % R,
            self.count,
            power,
            most,
            district,
            row,
            to,
            step,
            shape,
            far,
            scale,
            between,
        )
        return {
            "points": ground.points[places],
            "xy": ground.xy[places],
            "limits": ground.limits,
            "row": row,
            "to": to[:size].copy(),
            "step": step[:size].copy(),
            "shape": shape[:size].copy(),
            "popular": self.arrivals[places] ** power.sum(),
            "scale": scale,
            "kernel": self.kernel ** power[0],
            "far": far,
            "most": most,
            "district": district,
            "by_district": np.argsort(district, kind="stable"),
            "begin": np.searchsorted(np.sort(district), np.arange(many + 1)),
            "between": between,
        }


def districts(xy: Floats) -> tuple[Ints, int]:
    """
    Return the district (P,) of each place, and their number: strips of equally many places, cut across likewise.

    Examples
    --------
    >>> districts(np.array([[0, 0], [0, 9], [9, 0], [9, 9]] * 64))[0][:4].tolist()
    [0, 1, 2, 3]

    """
    P = len(xy)
    side = int(np.clip(np.sqrt(P / TO_A_DISTRICT), 1, DISTRICTS))
    out = np.empty(P, dtype=np.int64)
    for i, strip in enumerate(np.array_split(np.lexsort((xy[:, 1], xy[:, 0])), side)):
        for j, part in enumerate(np.array_split(strip[np.argsort(xy[strip, 1], kind="stable")], side)):
            out[part] = i * side + j
    return out, side * side


def parts_of_day(L: int) -> Ints:
    """Return (L,) the part of the day of each slot."""
    return np.minimum(np.arange(L) * SLOTS // L, SLOTS - 1)


def step_row(r: int, count: Floats, rest: float, arrivals: Floats, kernel: Floats, ground: Ground) -> Floats:
    """
    Return the smoothed shares of the moves out of r: what is known of where they lead, the others by length and
    arrivals.
    """
    pull = arrivals * kernel[lengths_of_moves(ground, r, len(arrivals))]
    pull[r] = 0.0
    pull /= max(pull.sum(), LEAST)
    return np.asarray((count + (PAIR + rest) * pull) / (count.sum() + rest + PAIR) + LEAST)


def reach_mask(locations: Locations, longest: float) -> Floats:
    """Return (R, R) 1 for moves no longer than FAR times the longest that people make, next to nothing beyond."""
    R = len(locations)
    every = np.arange(R)
    if longest == 0:
        return np.ones((R, R))
    most = FAR * longest
    return np.stack([np.where(locations.distance(np.full(R, r), every) <= most, 1.0, LEAST) for r in range(R)])


def lengths_of_moves(ground: Ground, r: int, R: int) -> NDArray[np.int8]:
    """Return (R,) the bins of the lengths of the moves from r to every place."""
    if len(ground.lengths):
        return np.asarray(ground.lengths[r])
    out = np.empty(R, dtype=np.int8)
    lengths_from(ground, r, out)
    return out


def chord(locations: Locations, km: float) -> float:
    """
    Return the distance of two points of `Locations.points` so many kilometres apart: on the globe, straight
    through it.
    """
    if locations.lat is None:
        return km
    return float(2 * EARTH_RADIUS_KM * np.sin(np.minimum(km / (2 * EARTH_RADIUS_KM), np.pi / 2)))


def _nearest_places(locations: Locations, places: Ints, arrivals: Floats) -> NDArray[np.int32]:
    """
    Return (R, at most NEAR) the known places nearest to each known one; without coordinates the most popular
    ones.
    """
    from scipy.spatial import cKDTree

    out = np.full((len(locations), min(NEAR, len(places))), -1, dtype=np.int32)
    if not locations.has_coordinates:
        out[places] = places[np.argsort(-arrivals[places], kind="stable")[: out.shape[1]]]
        return out
    points = locations.points()[places]
    tree = cKDTree(points)
    for some in np.array_split(np.arange(len(places)), len(places) // 4096 + 1):
        neighbours = tree.query(points[some], k=np.arange(1, out.shape[1] + 1))[1]
        out[places[some]] = places[neighbours]
    return out


def neighbour_distance(locations: Locations) -> float:
    """Return the usual distance between neighbours: the median over places of the distance to the nearest other one."""
    from scipy.spatial import cKDTree

    if not locations.has_coordinates:
        return 1.0
    points = locations.points()
    away = np.asarray(cKDTree(points).query(points, k=[2])[0])[:, 0]
    away = away[np.isfinite(away) & (away > 0)]
    if locations.lat is not None:
        away = 2 * EARTH_RADIUS_KM * np.arcsin(np.minimum(1.0, away / (2 * EARTH_RADIUS_KM)))
    return float(np.median(away)) if len(away) else 1.0


def ground_of(locations: Locations) -> Ground:
    """Return the lengths and directions of all moves: as tables, on a map of more than FEW_PLACES by its positions."""
    if len(locations) <= FEW_PLACES:
        return Ground(*geometry(locations), np.zeros((0, 3)), np.zeros((0, 2)), np.zeros(0))
    R, none = len(locations), np.zeros((0, 0), dtype=np.int8)
    points, xy = np.zeros((R, 3)), np.zeros((R, 2))
    if locations.has_coordinates:
        given = locations.points()
        points[:, : given.shape[1]], xy = given, np.ascontiguousarray(locations.planar())
    limits = np.array([chord(locations, edge * neighbour_distance(locations)) ** 2 for edge in EDGES])
    return Ground(none, none.copy(), points, xy, limits)


def geometry(locations: Locations) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Return bin of the length and sector of the direction of every move, (R, R) each."""
    R = len(locations)
    every = np.arange(R)
    lengths = np.empty((R, R), dtype=np.int8)
    sectors = np.full((R, R), -1, dtype=np.int8)
    xy = locations.planar() if locations.has_coordinates else None
    unit = neighbour_distance(locations)
    for r in range(R):
        lengths[r] = np.searchsorted(EDGES, locations.distance(np.full(R, r), every) / unit)
        if xy is not None:
            d = xy - xy[r]
            angle = np.round(np.arctan2(d[:, 1], d[:, 0]) * 8 / np.pi) % 16
            sectors[r] = np.where((d != 0).any(axis=1), angle, -1)
    return lengths, sectors
