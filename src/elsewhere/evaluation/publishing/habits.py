"""What a trace does, whoever made it: moves, stays, places, distances. Missing instants (-1) count for nothing."""

from dataclasses import dataclass

import numpy as np

from elsewhere.evaluation.publishing.divergence import line_emd
from elsewhere.traces.model import Floats, Ints, Locations, Places

UNITS = {
    "moves": "per trace",
    "distinct_places": "per trace",
    "visit_entropy": "nats per trace",
    "dwell": "minutes per stay",
    "trip_length": "km per move",
    "radius_of_gyration": "km",
}


def habits(r: Places, locations: Locations, step_minutes: float) -> dict[str, Floats]:
    """
    Samples of each habit of `UNITS`: one value per trace, per stay (`dwell`) or per move (`trip_length`).

    A stay is a maximal run of one place; a move goes from one instant to the next, both known, to another place.
    Distances need coordinates: without them `trip_length` and `radius_of_gyration` are left out.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> found = habits(np.array([[0, 0, 1, 0]]), ew.Locations(xy=[[0, 0], [0, 3]]), 20)
    >>> found["moves"].tolist(), found["dwell"].tolist(), found["trip_length"].tolist()
    ([2.0], [40.0, 20.0, 20.0], [3.0, 3.0])

    """
    N, L = r.shape
    known = r >= 0
    moved = known[:, 1:] & known[:, :-1] & (r[:, 1:] != r[:, :-1])
    key, count = np.unique((np.arange(N)[:, None] * len(locations) + r)[known], return_counts=True)
    row = key // len(locations)
    share = count / known.sum(axis=1)[row]
    begins = np.ones((N, L), dtype=bool)
    begins[:, 1:] = r[:, 1:] != r[:, :-1]
    start = np.flatnonzero(begins)
    length = np.diff(start, append=N * L)[known.ravel()[start]]
    found = {
        "moves": moved.sum(axis=1).astype(np.float64),
        "distinct_places": np.bincount(row, minlength=N).astype(np.float64),
        "visit_entropy": np.bincount(row, -share * np.log(share), N),
        "dwell": length * float(step_minutes),
    }
    if locations.has_coordinates:
        found["trip_length"] = locations.distance(r[:, :-1][moved], r[:, 1:][moved])
        xy = locations.planar()[key % len(locations)]
        centre = np.column_stack([np.bincount(row, share * xy[:, axis], N) for axis in (0, 1)])
        found["radius_of_gyration"] = np.sqrt(np.bincount(row, share * ((xy - centre[row]) ** 2).sum(axis=1), N))
    return found


@dataclass(frozen=True, eq=False)
class Steps:
    """The moves and stays of a set of traces, pooled: from `origin` to `target`, as a share `p` of the departures."""

    origin: Ints
    target: Ints
    p: Floats
    departures: Ints

    @staticmethod
    def of(r: Places, R: int) -> "Steps":
        """Count all pairs of consecutive known instants."""
        both = (r[:, :-1] >= 0) & (r[:, 1:] >= 0)
        key, count = np.unique((r[:, :-1].astype(np.int64) * R + r[:, 1:])[both], return_counts=True)
        departures = np.bincount(key // R, count, R).astype(np.int64)
        return Steps(key // R, key % R, count / departures[key // R], departures)


def step_distance(real: Steps, other: Steps, position: Floats | None = None) -> float:
    """
    How far the next place of `other` is from that of `real`, weighted by the departures of `real`.

    Total variation of the two rows; with the `position` of each place on a line, their earth mover's distance along
    it. A place that `other` never leaves leads to itself.
    """
    left = np.flatnonzero(real.departures)
    if len(left) == 0:
        return float("nan")
    never = left[other.departures[left] == 0]
    of_real = real.departures[other.origin] > 0
    origin = np.concatenate([real.origin, other.origin[of_real], never])
    target = np.concatenate([real.target, other.target[of_real], never])
    mass = np.concatenate([real.p, -other.p[of_real], -np.ones(len(never))])
    weight = real.departures / real.departures.sum()
    # equal steps of both cancel before anything is summed, so a dataset is at distance 0 from itself
    R = len(weight)
    key, entry = np.unique(origin * R + target, return_inverse=True)
    difference = np.bincount(entry, mass, len(key)).astype(np.float64)
    if position is None:
        return float((weight[key // R] * np.abs(difference)).sum()) / 2
    groups, distance = line_emd(key // R, position[key % R], difference)
    return float((weight[groups] * distance).sum())
