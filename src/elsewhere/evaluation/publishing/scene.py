"""What the publishing scenario compares: real traces, a second real dataset, fakes in datasets of the same size."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from elsewhere.evaluation.attacks.ground import number_within
from elsewhere.profiles.markov import Profiles, count
from elsewhere.traces.model import Floats, Ints, Locations, Places


class Scene(NamedTuple):
    """The inputs, checked."""

    real: Places
    user: Ints
    test: Places | None
    fakes: Places
    owner: Ints | None
    places: Locations
    tau: Places
    T: int
    step_minutes: float

    @property
    def R(self) -> int:
        """Number of places."""
        return len(self.places)

    def profiles(self, r: Places) -> Profiles:
        """One profile per trace."""
        return count(r, np.arange(len(r)), self.tau, U=len(r), R=self.R, T=self.T)

    def visits(self, r: Places) -> Floats:
        """Visits of each place, (R,)."""
        return np.bincount(r[r >= 0], minlength=self.R).astype(np.float64)

    def figures(self, measure: Callable[[Places], float], chosen: list[Ints]) -> dict[str, Any]:
        """What `measure` gives on the second real dataset and on the fake ones."""
        found = {"fakes": spread([measure(self.fakes[rows]) for rows in chosen])}
        return found if self.test is None else {"testing": measure(self.test), **found}


def datasets_of(scene: Scene, datasets: int, rng: np.random.Generator) -> tuple[list[Ints], list[str]]:
    """Rows of the fakes in each dataset."""
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
        notes.append(f"no seed has more than {have.max()} fakes: as many datasets instead of {datasets}.")
    if have.min() < min(datasets, have.max()):
        notes.append("seeds with fewer fakes than there are datasets give some of theirs several times.")
    first = np.searchsorted(scene.owner, seeds, sorter=(by_seed := np.lexsort((number, scene.owner))))
    return [by_seed[first + i % have] for i in range(min(datasets, int(have.max())))], notes


def spread(values: Sequence[float] | Floats) -> dict[str, float]:
    """Mean, median and standard deviation of a figure over the datasets."""
    x = np.array(values, dtype=np.float64)
    return {
        "mean": float(x.mean()),
        "median": float(np.median(x)),
        "std": float(x.std(ddof=1)) if len(x) > 1 else 0.0,
    }
