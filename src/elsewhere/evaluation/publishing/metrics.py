"""
The figures of the publishing scenario: aggregates, visits, time allocation, habits, and what the paper leaves out.

Laws are compared by KL after the rule of E64, Jensen-Shannon, total variation and transport on a line.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.data.visits import Codes, Floats, Ints, Locations
from elsewhere.errors import InvalidParameter
from elsewhere.evaluation.publishing.tables import number_within
from elsewhere.paper.aggregate import AggregateModel, aggregate
from elsewhere.paper.profiles import Profiles, count
from elsewhere.sorting import distinct

NEVER = 0.1  # visits that a place without any is given before a KL divergence (E64)


def kl(real: ArrayLike, other: ArrayLike) -> float:
    """
    Return KL(real || other) in nats of two vectors of *counts*: zeros become .1, then both are normalised (E64).

    Parameters
    ----------
    real, other
        Counts of one length, at least 0.

    Examples
    --------
    >>> round(kl([6, 3, 1, 0], [4, 4, 2, 0]), 6), round(kl([6, 3, 1, 0], [10, 0, 0, 0]), 6)
    (0.086792, 0.954383)

    """
    p, q = _counts(real, other)
    p, q = (np.where(x > 0, x, NEVER) for x in (p, q))
    p, q = p / p.sum(), q / q.sum()
    return max(0.0, float((p * np.log(p / q)).sum()))


def js(real: ArrayLike, other: ArrayLike) -> float:
    """
    Return the Jensen-Shannon divergence in nats, at most ln 2; nothing is smoothed.

    Examples
    --------
    >>> round(js([1, 0], [0, 1]), 6)
    0.693147

    """
    p, q = (x / x.sum() for x in _counts(real, other))
    middle = (p + q) / 2
    both = [np.divide(x, middle, out=np.ones_like(x), where=x > 0) for x in (p, q)]
    return max(0.0, float((p * np.log(both[0])).sum() + (q * np.log(both[1])).sum()) / 2)


def tv(real: ArrayLike, other: ArrayLike) -> float:
    """
    Return the total variation distance, half the sum of absolute differences, in [0, 1].

    Examples
    --------
    >>> tv([1, 1, 0], [0, 1, 1])
    0.5

    """
    p, q = (x / x.sum() for x in _counts(real, other))
    return float(np.abs(p - q).sum()) / 2


def entropy(count: ArrayLike) -> float:
    """Return the entropy in nats of the law with these counts."""
    x = np.asarray(count, dtype=np.float64)
    p = x[x > 0] / x.sum()
    return max(0.0, float(-(p * np.log(p)).sum()))


def top_overlap(real: ArrayLike, other: ArrayLike, n: int) -> float:
    """
    Return the share of the n most visited places of `real` that are among the n most visited of `other`.

    Codes tied for the last rank share it. Where fewer than n places are visited at all, n is their number.

    Examples
    --------
    >>> top_overlap([5, 4, 3, 0], [5, 0, 3, 4], 2), top_overlap([5, 4, 0], [5, 4, 4], 2)
    (0.5, 0.75)

    """
    p, q = _counts(real, other)
    n = min(n, int(np.count_nonzero(p)))
    return float(np.minimum(_among_top(p, n), _among_top(q, n)).sum()) / n


def _among_top(count: Floats, n: int) -> Floats:
    last = -np.partition(-count, n - 1)[n - 1]
    if last == 0:
        return np.asarray(count > 0, dtype=np.float64)
    above, tied = count > last, count == last
    return np.asarray(above + tied * ((n - above.sum()) / tied.sum()), dtype=np.float64)


def line_emd(group: Ints, position: Floats, mass: Floats) -> tuple[Ints, Floats]:
    """
    Return the earth mover's distance on a line, for many pairs of laws at once: the area between two distribution
    functions.

    Entry i puts `mass[i]` at `position[i]` for the pair number `group[i]`: positive for one law, negative for the
    other, so that the masses of a group sum to 0. Returns the groups and their distances.

    Examples
    --------
    >>> groups, distance = line_emd(np.array([0, 0]), np.array([1.0, 3.5]), np.array([1.0, -1.0]))
    >>> groups.tolist(), distance.tolist()
    ([0], [2.5])

    """
    order = np.lexsort((position, group))
    g, x, m = group[order], position[order], mass[order]
    groups, first, number = np.unique(g, return_index=True, return_inverse=True)
    ahead = np.cumsum(m)
    ahead = ahead - np.concatenate([[0.0], ahead])[first][number]
    gap = np.diff(x, append=x[-1:])
    gap[np.append(first[1:] - 1, len(x) - 1)] = 0.0
    return groups, np.bincount(number, np.abs(ahead) * gap, len(groups)).astype(np.float64)


def sample_emd(x: Floats, y: Floats) -> float:
    """Return the earth mover's distance between two samples of numbers, in their unit; NaN where one is empty."""
    if len(x) == 0 or len(y) == 0:
        return float("nan")
    mass = np.concatenate([np.full(len(x), 1 / len(x)), np.full(len(y), -1 / len(y))])
    return float(line_emd(np.zeros(len(mass), dtype=np.int64), np.concatenate([x, y]), mass)[1][0])


def _counts(real: ArrayLike, other: ArrayLike) -> tuple[Floats, Floats]:
    p, q = np.asarray(real, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if p.ndim != 1 or p.shape != q.shape or p.size == 0:
        raise InvalidParameter(f"counts must be vectors of one length, got shapes {p.shape} and {q.shape}.")
    if not (np.all(np.isfinite(p)) and np.all(np.isfinite(q))) or min(p.min(), q.min()) < 0:
        raise InvalidParameter("counts must be finite and at least 0.", code="E_NUMBER")
    if p.sum() == 0 or q.sum() == 0:
        raise InvalidParameter("counts must not all be 0.", code="E_EMPTY")
    return p, q


TOP_PLACES = 3  # of each person, whose time tbl:timealloc-kl compares
RANDOM_DRAWS = 200


def top_shares(r: Codes) -> Floats:
    """
    Return (N, 3) share of its known slots that each trace spends at its 1st, 2nd and 3rd most visited place.

    Examples
    --------
    >>> top_shares(np.array([[4, 4, 4, 7]])).tolist()
    [[0.75, 0.25, 0.0]]

    """
    N, L = r.shape
    ordered = np.sort(r, axis=1)
    fresh = np.diff(ordered, axis=1, prepend=ordered[:, :1] - 1) != 0
    run = np.cumsum(fresh, axis=1) - 1
    count = np.zeros((N, max(L, TOP_PLACES)))
    known = ordered >= 0
    np.add.at(count, (np.nonzero(known)[0], run[known]), 1.0)
    return np.asarray(-np.sort(-count, axis=1)[:, :TOP_PLACES] / known.sum(axis=1)[:, None], dtype=np.float64)


def allocation_kl(real: Floats, other: Floats, L: int, *, paired: bool = False) -> float:
    """
    Return the KL of the allocation vector of one rank; `real` and `other` are shares of time, one per trace.

    Sorted, unless trace i of both belong together (`paired`). Where `other` has another number of traces it is read
    at evenly spaced quantiles.
    """
    if not paired:
        real, other = np.sort(real), np.sort(other)
        if len(real) != len(other):
            levels, theirs = ((np.arange(n) + 0.5) / n for n in (len(real), len(other)))
            other = np.interp(levels, theirs, other)
    # a rank that nobody has is no law: all shares are then equal, as everybody gets .1 of a slot
    real, other = (x if x.any() else np.ones(len(x)) for x in (real, other))
    return kl(real * L, other * L)


def random_allocation(real: Floats, L: int, rng: np.random.Generator, *, paired: bool = False) -> Floats:
    """
    Return the baseline Random: everybody spends a uniformly random share of time there; one KL per draw.

    Sorted over people, as the fakes are (E70). Not sorted (`paired`), it is above Uniform by 1 - ln 2 = .31 in the
    mean, whatever the real shares are; the paper's tables have .51, .46, .43.
    """
    other = rng.random((RANDOM_DRAWS, len(real)))
    return np.array([allocation_kl(real, x, L, paired=paired) for x in other])


ROWS = 64  # of p_bar at a time


def visits_similarity(real: AggregateModel, other: AggregateModel, w: Floats) -> float:
    """
    Return sum_tau w_tau sum_r min(pi_bar_tau^r, pi_bar_F,tau^r), w the real shares of time in each period (E13).

    A period in which `other` has no slot adds 0.
    """
    if real.T == 1:
        return min(1.0, float(np.minimum(real.pi_bar, other.pi_bar).sum()))
    periods = np.flatnonzero((w > 0) & (other.lived > 0))
    return min(1.0, float(sum(w[t] * np.minimum(real.first(t), other.first(t)).sum() for t in periods.tolist())))


def moves_similarity(real: AggregateModel, other: AggregateModel, weight: Floats) -> float:
    """
    Return sum_{r,tau,tau'} weight min(p_bar, p_bar_F), Hamming (eq:as1); `weight (T, T, R)` sums to 1.

    Both models carry the same kernel, so where neither has a move their rows are proportional: there the sum of minima
    is the smaller of the two remaining masses, and only places that somebody moved to are ever evaluated.
    """
    R, total = real.R, 0.0
    # every place that either model has seen a move to, by origin
    step = distinct(np.concatenate([m.key % (R * R) for m in (real, other)]))
    start = np.searchsorted(step // R, np.arange(R + 1))
    for tau, tau_next in zip(*np.nonzero(weight.any(axis=2)), strict=True):
        origins = np.flatnonzero(weight[tau, tau_next])
        for i in range(0, len(origins), ROWS):
            r = origins[i : i + ROWS]
            there = np.unique(np.concatenate([step[start[o] : start[o + 1]] % R for o in r.tolist()]))
            a, b = (m.block(r, there, int(tau), int(tau_next)) for m in (real, other))
            remainder = np.minimum(1 - a.sum(axis=1), 1 - b.sum(axis=1))
            overlap = np.minimum(a, b).sum(axis=1) + np.maximum(0.0, remainder)
            total += float(weight[tau, tau_next, r] @ overlap)
    return min(1.0, total)


def move_weights(profiles: Profiles) -> Floats:
    """
    Return (T, T, R) pi_bar^{r,tau} times the share of the departures from (r, tau) whose next slot lies in tau' (E7).

    With one period this is pi_bar. What has no departure stays in its period.
    """
    T, R = profiles.T, profiles.R
    who = np.repeat(np.arange(len(profiles)), np.diff(profiles.visit_start))
    place = profiles.support[profiles.support_start[who] + profiles.visit_k]
    slots = np.bincount(who, profiles.visit_count)
    pi = np.zeros((T, R))
    np.add.at(pi, (profiles.visit_tau, place), profiles.visit_count / slots[who] / len(profiles))
    mover = np.repeat(np.arange(len(profiles)), np.diff(profiles.move_start))
    origin = profiles.support[profiles.support_start[mover] + profiles.move_origin]
    moves = np.zeros((T, T, R))
    np.add.at(moves, (profiles.move_tau, profiles.move_tau_next, origin), profiles.move_count)
    leaving = moves.sum(axis=1, keepdims=True)
    stays = np.broadcast_to(np.eye(T)[:, :, None], moves.shape)
    return np.asarray(pi[:, None, :] * np.where(leaving > 0, moves / np.where(leaving > 0, leaving, 1), stays))


UNITS = {
    "moves": "per trace",
    "distinct_places": "per trace",
    "visit_entropy": "nats per trace",
    "dwell": "minutes per stay",
    "trip_length": "km per move",
    "radius_of_gyration": "km",
}


def habits(r: Codes, locations: Locations, step_minutes: float) -> dict[str, Floats]:
    """
    Return the samples of each habit of `UNITS`: one value per trace, per stay (`dwell`) or per move (`trip_length`).

    A stay is a maximal run of one place; a move goes from one slot to the next, both known, to another place.
    Distances need coordinates: without them `trip_length` and `radius_of_gyration` are left out.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> result = habits(np.array([[0, 0, 1, 0]]), ew.Locations(xy=[[0, 0], [0, 3]]), 20)
    >>> result["moves"].tolist(), result["dwell"].tolist(), result["trip_length"].tolist()
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
    samples = {
        "moves": moved.sum(axis=1).astype(np.float64),
        "distinct_places": np.bincount(row, minlength=N).astype(np.float64),
        "visit_entropy": np.bincount(row, -share * np.log(share), N),
        "dwell": length * float(step_minutes),
    }
    if locations.has_coordinates:
        samples["trip_length"] = locations.distance(r[:, :-1][moved], r[:, 1:][moved])
        xy = locations.planar()[key % len(locations)]
        centre = np.column_stack([np.bincount(row, share * xy[:, axis], N) for axis in (0, 1)])
        samples["radius_of_gyration"] = np.sqrt(np.bincount(row, share * ((xy - centre[row]) ** 2).sum(axis=1), N))
    return samples


@dataclass(frozen=True, eq=False)
class Steps:
    """The moves and stays of a set of traces, pooled: from `origin` to `target`, as a share `p` of the departures."""

    origin: Ints
    target: Ints
    p: Floats
    departures: Ints

    @staticmethod
    def of(r: Codes, R: int) -> "Steps":
        """Count all pairs of consecutive known slots."""
        both = (r[:, :-1] >= 0) & (r[:, 1:] >= 0)
        key, count = np.unique((r[:, :-1].astype(np.int64) * R + r[:, 1:])[both], return_counts=True)
        departures = np.bincount(key // R, count, R).astype(np.int64)
        return Steps(key // R, key % R, count / departures[key // R], departures)


def step_distance(real: Steps, other: Steps, position: Floats | None = None) -> float:
    """
    Return how far the next place of `other` is from that of `real`, weighted by the departures of `real`.

    Total variation of the two rows; with the `position` of each place on a line, their earth mover's distance along
    it. A place that `other` never leaves leads to itself.
    """
    origins = np.flatnonzero(real.departures)
    if len(origins) == 0:
        return float("nan")
    never = origins[other.departures[origins] == 0]
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


class Scene(NamedTuple):
    """The inputs, checked."""

    real: Codes
    user: Ints
    test: Codes | None
    fakes: Codes
    owner: Ints | None
    places: Locations
    tau: Codes
    T: int
    step_minutes: float

    @property
    def R(self) -> int:
        """Return the number of places."""
        return len(self.places)

    def profiles(self, r: Codes) -> Profiles:
        """Return one profile per trace."""
        return count(r, np.arange(len(r)), self.tau, U=len(r), R=self.R, T=self.T)

    def visits(self, r: Codes) -> Floats:
        """Return the number of visits of each place, (R,)."""
        return np.bincount(r[r >= 0], minlength=self.R).astype(np.float64)

    def figures(self, measure: Callable[[Codes], float], chosen: list[Ints]) -> dict[str, Any]:
        """Return what `measure` gives on the second real dataset and on the fake ones."""
        by_side = {"fakes": spread([measure(self.fakes[rows]) for rows in chosen])}
        return by_side if self.test is None else {"testing": measure(self.test), **by_side}


def datasets_of(scene: Scene, datasets: int, rng: np.random.Generator) -> tuple[list[Ints], list[str]]:
    """Return the rows of the fakes in each dataset."""
    F, N = len(scene.fakes), len(scene.real)
    order = rng.permutation(F)
    if scene.owner is None:
        if F <= N:
            return [np.sort(order)], []
        if F >= datasets * N:
            return [order[i * N : (i + 1) * N] for i in range(datasets)], []
        return [rng.choice(F, N, replace=False) for _ in range(datasets)], ["the datasets share fakes."]
    notes = []
    number = np.empty(F, dtype=np.int64)
    number[order] = number_within(scene.owner[order])
    seeds, have = np.unique(scene.owner, return_counts=True)
    if len(seeds) < N:
        notes.append(f"{N - len(seeds)} of {N} real traces have no fake.")
    if have.max() < datasets:
        most = "1 fake: 1 dataset" if have.max() == 1 else f"{have.max()} fakes: {have.max()} datasets"
        notes.append(f"no seed has more than {most} instead of {datasets}.")
    if have.min() < min(datasets, have.max()):
        notes.append("seeds with fewer fakes than there are datasets give some of theirs several times.")
    first = np.searchsorted(scene.owner, seeds, sorter=(by_seed := np.lexsort((number, scene.owner))))
    return [by_seed[first + i % have] for i in range(min(datasets, int(have.max())))], notes


def spread(values: Sequence[float] | Floats) -> dict[str, float | None]:
    """Return the mean, median and standard deviation (None of a single dataset) of a figure over the datasets."""
    x = np.array(values, dtype=np.float64)
    return {
        "mean": float(x.mean()),
        "median": float(np.median(x)),
        "std": float(x.std(ddof=1)) if len(x) > 1 else None,
    }


POPULAR = 50
SENSITIVITY = (1e-4, 1e-2, 1.0)  # values of epsilon beside the one asked for,
MOST_PLACES = 4096  # on maps up to this size: every value evaluates the kernel of all visited places anew

Measure = Callable[[Codes], float]


def aggregate_figures(scene: Scene, chosen: list[Ints], epsilon: float) -> dict[str, Any]:
    """Return the similarity of <p_bar, pi_bar> to that of the real traces, and how it depends on epsilon (E73)."""
    people = scene.profiles(scene.real)
    weight = move_weights(people)
    w = weight.sum(axis=(1, 2))
    others = [scene.profiles(scene.fakes[rows]) for rows in chosen]
    test = None if scene.test is None else scene.profiles(scene.test)

    def figures(measure: Callable[..., float], weights: Floats, e: float) -> dict[str, Any]:
        real = aggregate(people, scene.places, epsilon=e)
        fakes = [measure(real, aggregate(u, scene.places, epsilon=e), weights) for u in others]
        testing = {} if test is None else {"testing": measure(real, aggregate(test, scene.places, epsilon=e), weights)}
        return {**testing, "fakes": spread(fakes)}

    values = {epsilon, *(SENSITIVITY if scene.R <= MOST_PLACES else ())}
    by_epsilon = {e: figures(moves_similarity, weight, e) for e in sorted(values)}
    by_name = {f"{e:g}": figure for e, figure in by_epsilon.items()}
    return {
        "p_bar": {**by_epsilon[epsilon], "epsilon": epsilon, "by_epsilon": by_name},
        "pi_bar": figures(visits_similarity, w, epsilon),
    }


def visit_figures(scene: Scene, chosen: list[Ints]) -> dict[str, Any]:
    """
    Return the KL of visiting probabilities, sorted by popularity in each dataset (tbl:vistprob-kl,
    tbl:vistprob-kl-50mp).
    """
    figures: dict[str, Any] = {}
    for name, n in (("all", scene.R), ("top", min(POPULAR, scene.R))):
        real = -np.sort(-scene.visits(scene.real))[:n]
        single = np.zeros(n)
        single[0] = real.sum()
        figures[name] = {
            "places": n,
            **scene.figures(lambda r, real=real: kl(real, -np.sort(-scene.visits(r))[: len(real)]), chosen),  # type: ignore[misc]
            "uniform": kl(real, np.ones(n)),
            "single": kl(real, single),
        }
    return figures


def allocation_figures(scene: Scene, chosen: list[Ints], rng: np.random.Generator) -> dict[str, Any]:
    """Return tbl:timealloc-kl by E70; "paired" puts every fake beside its own seed instead of sorting."""
    L = scene.real.shape[1]
    real, fake = top_shares(scene.real), top_shares(scene.fakes)
    test = None if scene.test is None else top_shares(scene.test)
    figures: dict[str, Any] = {}
    for j in range(TOP_PLACES):
        figure: dict[str, Any] = {} if test is None else {"testing": allocation_kl(real[:, j], test[:, j], L)}
        figure["fakes"] = spread([allocation_kl(real[:, j], fake[rows, j], L) for rows in chosen])
        if scene.owner is not None:
            owner = scene.owner
            each = [allocation_kl(real[owner[rows], j], fake[rows, j], L, paired=True) for rows in chosen]
            figure["paired"] = spread(each)
        figure["uniform"] = allocation_kl(real[:, j], np.full(len(real), 1 / TOP_PLACES), L)
        figure["random_unsorted"] = spread(random_allocation(real[:, j], L, rng, paired=True))
        figure["random"] = spread(random_allocation(real[:, j], L, rng))
        figures[str(j + 1)] = figure
    return figures


def further_figures(scene: Scene, chosen: list[Ints]) -> dict[str, Any]:
    """
    Return the distances from the real traces that the paper leaves out; "to_test" takes the second real dataset
    for real.
    """
    result: dict[str, Any] = {}
    from_test = {} if scene.test is None else _distances(scene, scene.test)
    for name, (unit, measure) in _distances(scene, scene.real).items():
        result[name] = {"unit": unit, **scene.figures(measure, chosen)}
        if name in from_test:
            away = from_test[name][1]
            fakes = spread([away(scene.fakes[rows]) for rows in chosen])
            result[name]["to_test"] = {"train": away(scene.real), "fakes": fakes}
    law = scene.figures(lambda r: entropy(scene.visits(r)), chosen)
    result["visits_entropy"] = {"unit": "nats", "train": entropy(scene.visits(scene.real)), **law}
    return result


def _distances(scene: Scene, real: Codes) -> dict[str, tuple[str, Measure]]:
    """Return the unit and measure of each distance from `real`."""
    here, steps = scene.visits(real), Steps.of(real, scene.R)
    popular = np.argsort(-here, kind="stable")[: min(POPULAR, scene.R)]
    measures: dict[str, tuple[str, Measure]] = {
        "visits_kl": ("KL, nats", lambda r: kl(here, scene.visits(r))),
        "visits_kl_top": ("KL, nats", lambda r: _kl_at(here[popular], scene.visits(r)[popular])),
        "visits_js": ("JS, nats", lambda r: js(here, scene.visits(r))),
        "visits_tv": ("TV", lambda r: tv(here, scene.visits(r))),
        "time_of_day_tv": ("TV, mean over slots", lambda r: _slotwise_tv(scene, real, r)),
        "transition_tv": ("TV", lambda r: step_distance(steps, Steps.of(r, scene.R))),
    }
    if scene.places.has_coordinates:
        east, north = scene.places.planar().T
        measures["transition_emd_east"] = ("km", lambda r: step_distance(steps, Steps.of(r, scene.R), east))
        measures["transition_emd_north"] = ("km", lambda r: step_distance(steps, Steps.of(r, scene.R), north))
    measures["top_10_overlap"] = ("share", lambda r: top_overlap(here, scene.visits(r), 10))
    measures[f"top_{POPULAR}_overlap"] = ("share", lambda r: top_overlap(here, scene.visits(r), POPULAR))
    return measures


def _kl_at(real: Floats, other: Floats) -> float:
    """Return the KL of counts at some places, which `other` may never visit: all of them then count alike."""
    return kl(real, other if other.any() else np.ones(len(other)))


def _slotwise_tv(scene: Scene, real: Codes, other: Codes) -> float:
    """Return the mean over slots of the total variation between the places of both at that slot."""
    each = []
    for t in range(real.shape[1]):
        a, b = scene.visits(real[:, t]), scene.visits(other[:, t])
        if a.any() and b.any():
            each.append(tv(a, b))
    return float(np.mean(each)) if each else float("nan")


def habit_figures(scene: Scene) -> dict[str, Any]:
    """
    Return what traces do: real, second real dataset, all fakes; "distance" is the EMD from the real sample, in
    its unit.
    """
    sides = {"train": scene.real, "fakes": scene.fakes} | ({} if scene.test is None else {"testing": scene.test})
    samples = {side: habits(r, scene.places, scene.step_minutes) for side, r in sides.items()}
    result: dict[str, Any] = {}
    for name in samples["train"]:
        values = {side: each[name] for side, each in samples.items()}
        result[name] = {"unit": UNITS[name], **{side: _describe_sample(x) for side, x in values.items()}}
        result[name]["distance"] = {s: sample_emd(values["train"], x) for s, x in values.items() if s != "train"}
    return result


def _describe_sample(values: Floats) -> dict[str, float] | None:
    if len(values) == 0:
        return None
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return {
        "mean": float(values.mean()),
        "std": spread,
        "lower": float(low),
        "median": float(middle),
        "upper": float(high),
    }
