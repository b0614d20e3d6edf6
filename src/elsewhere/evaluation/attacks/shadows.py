"""
Shadow runs of the generator itself, for whoever can call it: slow, so only where a `generator` is given.

A generator is a callable `(traces, rng) -> fakes`: fakes as a plain (F, L) array of row i // (F / N) each, as a pair
(fakes, seed rows), or anything with `.r` and `.seed`. Every run takes a random half of all people as its seeds; after
the runs each person has suspicions with and without having been a seed, and is judged by their ratio.
"""

import math
from typing import Any

import numpy as np

from elsewhere.errors import InvalidParameter
from elsewhere.evaluation.attacks.ground import Ground, People, filled
from elsewhere.traces.model import Floats, Ints, Traces


def make_fakes(ground: Ground, people: People, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Fakes of these people by the given generator, and the row each was made from."""
    clock = f"{int(ground.minutes[0] // 60):02d}:{int(ground.minutes[0] % 60):02d}"
    traces = Traces(
        people.r, ground.locations, users=people.user.tolist(), step_minutes=ground.step_minutes, start=clock
    )
    made: Any = ground.generator(traces, rng)
    if isinstance(made, tuple):
        fakes, owner = np.asarray(made[0]), np.asarray(made[1])
    elif hasattr(made, "seed"):
        fakes, owner = np.asarray(made.r), np.asarray(made.seed)
    else:
        fakes = np.asarray(getattr(made, "r", made))
        owner = np.arange(len(fakes)) * len(traces) // max(1, len(fakes))
    if fakes.ndim != 2 or fakes.shape[1] != people.r.shape[1] or owner.shape != (len(fakes),) or len(fakes) == 0:
        raise InvalidParameter(
            f"`generator` must return fakes of {people.r.shape[1]} instants and their seed rows, got {fakes.shape}.",
            code="E_SHAPE",
        )
    return filled(fakes), owner.astype(np.int64)


def shadow_scores(ground: Ground, people: People, found: dict[str, Floats]) -> dict[str, Floats]:
    """ln of the ratio "was a seed" to "was not", per attack and user, from Gaussian fits over the shadow runs."""
    from elsewhere.evaluation.attacks.membership import scores

    rng, runs = ground.rng("A10"), ground.parameters["shadows"]
    inside = np.zeros((runs, people.U), dtype=bool)
    shadow = {name: np.zeros((runs, people.U)) for name in found}
    for run in range(runs):
        # complementary halves in turn, so that everybody is in as often as out
        inside[run] = ~inside[run - 1] if run % 2 else rng.permutation(people.U) < people.U // 2
        rows = np.flatnonzero(inside[run][people.user])
        _, number = np.unique(people.user[rows], return_inverse=True)
        group = People(people.r[rows], number, int(number.max()) + 1)
        fakes, _ = make_fakes(ground, group, rng)
        for name, score in scores(people, fakes, ground.R, ground.hour).items():
            shadow[name][run] = score
    return {f"shadow_{name}": _ratio(found[name], shadow[name], inside) for name in found}


def _ratio(score: Floats, shadow: Floats, inside: Any) -> Floats:
    def law(where: Any) -> tuple[Floats, Floats]:
        weight = where / np.maximum(where.sum(axis=0), 1)
        mean = (weight * shadow).sum(axis=0)
        variance = (weight * (shadow - mean) ** 2).sum(axis=0)
        return mean, variance

    (mean_in, var_in), (mean_out, var_out) = law(inside), law(~inside)
    # few runs per user: one variance for all
    spread = math.sqrt(float((var_in + var_out).mean() / 2) + 1e-12)
    return np.asarray(((score - mean_out) ** 2 - (score - mean_in) ** 2) / (2 * spread**2))
