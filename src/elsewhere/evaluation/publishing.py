"""
The publishing scenario of sec:evaluation: do fakes keep the statistics of the real traces, ours or any other tool's?

The figures of the paper and no others; all else that fakes are good for is in `usefulness`. A trace is the unit on both
sides: several days of one user count as several traces. Fakes come in datasets, as many traces each as the real one;
figures are means over the datasets, beside what another real day ("testing") reaches.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from elsewhere._version import __version__
from elsewhere.data.slots import Traces
from elsewhere.data.visits import Codes, Floats, Ints, Locations
from elsewhere.errors import require_between, require_rng, require_whole
from elsewhere.evaluation.attack_base import plain
from elsewhere.evaluation.sides import number_within, on_one_map, seed_numbers
from elsewhere.paper.aggregate import AggregateModel, aggregate
from elsewhere.paper.geographic_similarity import similarity_rows, visits_of
from elsewhere.paper.profiles import Profiles, count
from elsewhere.paper.semantic_similarity import pairwise_semantic_similarity

NEVER = 0.1  # visits that a place without any is given before a KL divergence (E64)
POPULAR = 50  # places of tbl:vistprob-kl-50mp
TOP_PLACES = 3  # of each person, whose time tbl:timealloc-kl compares
RANDOM_DRAWS = 200
EPSILON = 0.01  # weight of the distance kernel in both aggregate models (E34)
ROWS = 64  # of p_bar at a time
MOST_PAIRS = 5_000_000  # of a seed and a fake
MOST_COMPARED = 1_000  # traces of a dataset that are compared with each other
QUANTILES = (5, 25, 50, 75, 95)


# -- distances ---------------------------------------------------------------------------------------------------------


def kl(real: ArrayLike, other: ArrayLike) -> float:
    """
    Return KL(real || other) in nats of two vectors of *counts*: zeros become .1, then both are normalised (E64).

    Examples
    --------
    >>> round(kl([6, 3, 1, 0], [4, 4, 2, 0]), 6), round(kl([6, 3, 1, 0], [10, 0, 0, 0]), 6)
    (0.086792, 0.954383)

    """
    p, q = (np.where(np.asarray(x) > 0, x, NEVER) for x in (real, other))
    p, q = p / p.sum(), q / q.sum()
    return max(0.0, float((p * np.log(p / q)).sum()))


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


def moves_similarity(real: AggregateModel, other: AggregateModel) -> float:
    """Return sum_r pi_bar^r sum_x min(p_bar, p_bar_F), Hamming (eq:as1), weighted by pi_bar of the real people."""
    weight, total = np.asarray(real.pi_bar), 0.0
    origins = np.flatnonzero(weight)
    for r in np.split(origins, range(ROWS, len(origins), ROWS)):
        total += float(weight[r] @ np.minimum(real.rows(r), other.rows(r)).sum(axis=1))
    return min(1.0, total)


# -- the scene and its figures -----------------------------------------------------------------------------------------


class Scene(NamedTuple):
    """The inputs, checked."""

    real: Codes
    user: Ints
    test: Codes | None
    fakes: Codes
    owner: Ints | None
    places: Locations

    def profiles(self, r: Codes) -> Profiles:
        """Return one profile per trace."""
        return count(r, np.arange(len(r)), np.zeros(r.shape[1], dtype=np.int32), U=len(r), R=len(self.places), T=1)

    def visits(self, r: Codes) -> Floats:
        """Return the number of visits of each place, (R,)."""
        return np.bincount(r[r >= 0], minlength=len(self.places)).astype(np.float64)

    def compare(self, real: Codes, other: Codes, epsilon: float | None = EPSILON) -> dict[str, float]:
        """
        Return the figures of one dataset beside the real traces, by name.

        "all", "top" (tbl:vistprob-kl, tbl:vistprob-kl-50mp): KL of visits, sorted by popularity in each dataset (E65);
        "time 1" ... (tbl:timealloc-kl, E70); "p_bar", "pi_bar" (eq:as1); without an epsilon neither.
        """
        ranked = [-np.sort(-self.visits(r)) for r in (real, other)]
        figures = {"all": kl(*ranked), "top": kl(*(x[:POPULAR] for x in ranked))}
        shares = [top_shares(r) for r in (real, other)]
        for j in range(TOP_PLACES):
            figures[f"time {j + 1}"] = allocation_kl(shares[0][:, j], shares[1][:, j], real.shape[1])
        if epsilon is None:
            return figures
        mine, theirs = (aggregate(self.profiles(r), self.places, epsilon=epsilon) for r in (real, other))
        pi_bar = min(1.0, float(np.minimum(mine.pi_bar, theirs.pi_bar).sum()))
        return figures | {"p_bar": moves_similarity(mine, theirs), "pi_bar": pi_bar}


def datasets_of(scene: Scene, datasets: int, rng: np.random.Generator) -> tuple[list[Ints], list[str]]:
    """Return the rows of the fakes in each dataset."""
    F, N = len(scene.fakes), len(scene.real)
    order = rng.permutation(F)
    if scene.owner is None:
        parts = np.resize(order, (datasets if F > N else 1, min(F, N)))
        return list(np.sort(parts, axis=1)), ["the datasets share fakes."] if parts.size > F else []
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


def _tables(
    scene: Scene, chosen: list[Ints], epsilon: float, rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return aggregates, visits and time allocation: of the fake datasets, the second real one, and baselines."""
    each = [scene.compare(scene.real, scene.fakes[rows], epsilon) for rows in chosen]
    test = None if scene.test is None else scene.compare(scene.real, scene.test, epsilon)

    def figure(name: str) -> dict[str, Any]:
        """Return what the fakes and the second real dataset reach."""
        fakes = {"fakes": spread([one[name] for one in each])}
        return fakes if test is None else {"testing": test[name], **fakes}

    aggregates = {"p_bar": {**figure("p_bar"), "epsilon": epsilon}, "pi_bar": figure("pi_bar")}
    ranked, visits = -np.sort(-scene.visits(scene.real)), {}
    for name, n in (("all", len(scene.places)), ("top", min(POPULAR, len(scene.places)))):
        real = ranked[:n]
        single = np.zeros(n)
        single[0] = real.sum()
        visits[name] = {"places": n, **figure(name), "uniform": kl(real, np.ones(n)), "single": kl(real, single)}
    real, L = top_shares(scene.real), scene.real.shape[1]
    allocation = {}
    for j in range(TOP_PLACES):
        one = figure(f"time {j + 1}")
        one["uniform"] = allocation_kl(real[:, j], np.full(len(real), 1 / TOP_PLACES), L)
        one["random_unsorted"] = spread(random_allocation(real[:, j], L, rng, paired=True))
        one["random"] = spread(random_allocation(real[:, j], L, rng))
        allocation[str(j + 1)] = one
    return aggregates, visits, allocation


def similarities(scene: Scene, chosen: list[Ints], rng: np.random.Generator) -> tuple[dict[str, Floats], list[str]]:
    """
    Compare fakes with their seeds (fig:real-fake-semantic-similarity, fig:deltas-fakeset2), real traces with each
    other, and fakes (fig:fake-fake-semantic-similarity-qq); return the samples, and notes.
    """
    samples: dict[str, Floats] = {}
    notes = []
    if scene.owner is not None:
        most = max(1, MOST_PAIRS // len(scene.real))
        sample = np.arange(len(scene.fakes))
        if len(sample) > most:
            sample = np.sort(rng.permutation(len(sample))[:most])
            notes.append(f"similarities are those of {most} fakes drawn at random.")
        owner = scene.owner[sample]
        both = [scene.profiles(r) for r in (scene.real, scene.fakes[sample])]
        left, right = (visits_of(p) for p in both)
        for name in ("geographic", "semantic"):
            # seed first (E26)
            table = similarity_rows(left, right, name == "semantic", range(len(scene.real)))
            samples[name] = table[owner, np.arange(len(sample))]
        other = scene.user[:, None] != scene.user[owner][None, :]
        samples["differential"] = np.abs(samples["semantic"] - table)[other]
    # sets of one size are sampled alike, so that a set is compared with itself by the same pairs
    some = {n: np.sort(rng.permutation(n)[:MOST_COMPARED]) for n in {len(scene.real), *map(len, chosen)}}
    samples["real_real"] = _all_pairs(scene, scene.real[some[len(scene.real)]])
    each = [_all_pairs(scene, scene.fakes[rows[some[len(rows)]]]) for rows in chosen]
    samples["fake_fake"] = np.concatenate(each)
    return samples, notes


def _all_pairs(scene: Scene, r: Codes) -> Floats:
    """Return sim_S of all pairs of different traces."""
    table = pairwise_semantic_similarity(scene.profiles(r))
    return np.asarray(table[~np.eye(len(r), dtype=bool)])


@dataclass(frozen=True, eq=False)
class PublishingResult:
    """
    What the fakes keep, by name; `to_dict` describes the figures.

    `samples` holds the similarities: `geographic`, `semantic` (fake against its own seed), `differential`, `real_real`
    and `fake_fake`.
    """

    sizes: dict[str, int]
    aggregate: dict[str, Any]
    visits: dict[str, Any]
    allocation: dict[str, Any]
    notes: tuple[str, ...] = ()
    samples: dict[str, Floats] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        s = self.sizes
        return f"PublishingResult({s['datasets']} datasets of {s['dataset_size']} fakes, {s['train']} real traces)"

    def to_dict(self) -> dict[str, Any]:
        """
        Return plain numbers, ready for JSON.

        `aggregate` (p_bar, pi_bar: similarity in [0, 1]); `visits` (all, top: KL in nats, sorted by popularity);
        `allocation` (ranks 1, 2, 3: KL in nats); `similarity` (number, mean and quantiles of the samples). "fakes"
        holds mean, median and standard deviation over the datasets, "testing" is the second real dataset.
        """
        names = ("sizes", "aggregate", "visits", "allocation", "notes")
        similarity = {
            name: {
                "n": len(x),
                "mean": x.mean(),
                "quantiles": dict(zip(QUANTILES, np.percentile(x, QUANTILES), strict=True)),
            }
            for name, x in self.samples.items()
            if len(x)
        }
        whole = plain({name: getattr(self, name) for name in names} | {"similarity": similarity})
        return {**whole, "version": __version__}


def evaluate_publishing(
    train: Traces | ArrayLike,
    test: Traces | ArrayLike | None,
    fakes: Any,
    *,
    seed_index: ArrayLike | None = None,
    datasets: int = 10,
    locations: Locations | None = None,
    epsilon: float = EPSILON,
    rng: np.random.Generator | None = None,
) -> PublishingResult:
    """
    Compare fakes with the real traces they stand for: the tables and figures of sec:evaluation.

    Parameters
    ----------
    train
        The real traces, `Traces` or a plain (N, L) array of places.
    test
        Other real traces (the paper: the second day), or None: what drift alone would give.
    fakes
        (F, L) array of places, `Traces`, a `Pool`, or what `generate_fakes` returns.
    seed_index
        (F,) row of `train` each fake was made from. Every dataset then holds one fake per seed; without it, as many
        fakes at random as there are real traces.
    datasets
        Number of fake datasets; fewer where a seed does not have as many fakes.
    rng
        Chooses the datasets, and the sample where there are too many pairs; by default always the same.
    locations
        Places of plain arrays.
    epsilon
        Weight of the distance kernel in both aggregate models (E34).

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> days = np.random.default_rng(1).integers(5, size=(8, 12))
    >>> same = ew.evaluate_publishing(days, None, days).to_dict()
    >>> round(same["aggregate"]["p_bar"]["fakes"]["mean"], 9), same["visits"]["all"]["fakes"]["mean"]
    (1.0, 0.0)

    """
    require_whole("datasets", datasets, 1)
    require_between("epsilon", epsilon, 0, np.inf, open_high=True)
    draw = np.random.default_rng(0) if rng is None else rng
    require_rng(draw)
    table = fakes if isinstance(fakes, Traces) else getattr(fakes, "r", fakes)
    owner = getattr(fakes, "seed", None) if seed_index is None else seed_index
    sides = on_one_map({"train": train, "test": test, "fakes": table}, locations)
    scene = Scene(
        real=sides["train"].r,
        user=sides["train"].user,
        test=sides["test"].r if test is not None else None,
        fakes=sides["fakes"].r,
        owner=None if owner is None else seed_numbers(owner, len(sides["fakes"]), len(sides["train"])),
        places=sides["train"].locations,
    )
    chosen, notes = datasets_of(scene, datasets, draw)
    samples, more = similarities(scene, chosen, draw)
    aggregates, visits, allocation = _tables(scene, chosen, epsilon, draw)
    sizes = {
        "train": len(scene.real),
        "test": 0 if scene.test is None else len(scene.test),
        "users": sides["train"].U,
        "fakes": len(scene.fakes),
        "datasets": len(chosen),
        "dataset_size": len(chosen[0]),
    }
    return PublishingResult(sizes, aggregates, visits, allocation, (*notes, *more), samples)
