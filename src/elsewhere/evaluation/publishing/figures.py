"""The figures of the publishing scenario: aggregates, visits, time allocation, and what the paper leaves out."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from elsewhere.evaluation.publishing.aggregates import move_weights, moves_similarity, visits_similarity
from elsewhere.evaluation.publishing.allocation import RANKS, allocation_kl, random_allocation, top_shares
from elsewhere.evaluation.publishing.divergence import entropy, js, kl, sample_emd, top_overlap, tv
from elsewhere.evaluation.publishing.habits import UNITS, Steps, habits, step_distance
from elsewhere.evaluation.publishing.scene import Scene, spread
from elsewhere.profiles.aggregate import aggregate
from elsewhere.traces.model import Floats, Ints, Places

POPULAR = 50
SENSITIVITY = (1e-4, 1e-2, 1.0)  # values of epsilon beside the one asked for,
MOST_PLACES = 4096  # on maps up to this size: every value evaluates the kernel of all visited places anew

Measure = Callable[[Places], float]


def aggregate_figures(scene: Scene, chosen: list[Ints], epsilon: float) -> dict[str, Any]:
    """Similarity of <p_bar, pi_bar> to that of the real traces, and how it depends on epsilon (E73)."""
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
    shown = {f"{e:g}": figure for e, figure in by_epsilon.items()}
    return {
        "p_bar": {**by_epsilon[epsilon], "epsilon": epsilon, "by_epsilon": shown},
        "pi_bar": figures(visits_similarity, w, epsilon),
    }


def visit_figures(scene: Scene, chosen: list[Ints]) -> dict[str, Any]:
    """KL of visiting probabilities, sorted by popularity in each dataset (tbl:vistprob-kl, tbl:vistprob-kl-50mp)."""
    found: dict[str, Any] = {}
    for name, n in (("all", scene.R), ("top", min(POPULAR, scene.R))):
        real = _most_visited(scene, n, scene.real)
        single = np.zeros(n)
        single[0] = real.sum()
        found[name] = {
            "places": n,
            **scene.figures(partial(_sorted_kl, scene, real), chosen),
            "uniform": kl(real, np.ones(n)),
            "single": kl(real, single),
        }
    return found


def _most_visited(scene: Scene, n: int, r: Places) -> Floats:
    return -np.sort(-scene.visits(r))[:n]


def _sorted_kl(scene: Scene, real: Floats, r: Places) -> float:
    return kl(real, _most_visited(scene, len(real), r))


def allocation_figures(scene: Scene, chosen: list[Ints], rng: np.random.Generator) -> dict[str, Any]:
    """tbl:timealloc-kl by E70; "paired" puts every fake beside its own seed instead of sorting."""
    L = scene.real.shape[1]
    real, fake = top_shares(scene.real), top_shares(scene.fakes)
    test = None if scene.test is None else top_shares(scene.test)
    found: dict[str, Any] = {}
    for j in range(RANKS):
        figure: dict[str, Any] = {} if test is None else {"testing": allocation_kl(real[:, j], test[:, j], L)}
        figure["fakes"] = spread([allocation_kl(real[:, j], fake[rows, j], L) for rows in chosen])
        if scene.owner is not None:
            owner = scene.owner
            each = [allocation_kl(real[owner[rows], j], fake[rows, j], L, paired=True) for rows in chosen]
            figure["paired"] = spread(each)
        figure["uniform"] = allocation_kl(real[:, j], np.full(len(real), 1 / RANKS), L)
        figure["random"] = spread(random_allocation(real[:, j], L, rng))
        figure["random_sorted"] = spread(random_allocation(real[:, j], L, rng, ordered=True))
        found[str(j + 1)] = figure
    return found


def further_figures(scene: Scene, chosen: list[Ints]) -> dict[str, Any]:
    """Distances from the real traces that the paper leaves out; "to_test" takes the second real dataset for real."""
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


def _distances(scene: Scene, real: Places) -> dict[str, tuple[str, Measure]]:
    """Unit and measure of each distance from `real`."""
    here, steps = scene.visits(real), Steps.of(real, scene.R)
    popular = np.argsort(-here, kind="stable")[: min(POPULAR, scene.R)]

    def step(position: Floats | None, r: Places) -> float:
        return step_distance(steps, Steps.of(r, scene.R), position)

    def overlap(n: int, r: Places) -> float:
        return top_overlap(here, scene.visits(r), n)

    found: dict[str, tuple[str, Measure]] = {
        "visits_kl": ("KL, nats", lambda r: kl(here, scene.visits(r))),
        "visits_kl_top": ("KL, nats", lambda r: _kl_at(here, scene.visits(r), popular)),
        "visits_js": ("JS, nats", lambda r: js(here, scene.visits(r))),
        "visits_tv": ("TV", lambda r: tv(here, scene.visits(r))),
        "time_of_day_tv": ("TV, mean over instants", lambda r: _by_instant(scene, real, r)),
        "transition_tv": ("TV", partial(step, None)),
    }
    if scene.places.has_coordinates:
        east, north = scene.places.planar().T
        found["transition_emd_east"] = ("km", partial(step, east))
        found["transition_emd_north"] = ("km", partial(step, north))
    for n in (10, POPULAR):
        found[f"top_{n}_overlap"] = ("share", partial(overlap, n))
    return found


def _kl_at(real: Floats, other: Floats, places: Ints) -> float:
    # a dataset that never visits these places is as far as one that visits each of them never: .1 everywhere
    there = other[places]
    return kl(real[places], there if there.any() else np.ones(len(places)))


def _by_instant(scene: Scene, real: Places, other: Places) -> float:
    """Mean over instants of the total variation between the places of both at that instant."""
    each = []
    for t in range(real.shape[1]):
        a, b = scene.visits(real[:, t]), scene.visits(other[:, t])
        if a.any() and b.any():
            each.append(tv(a, b))
    return float(np.mean(each)) if each else float("nan")


def habit_figures(scene: Scene) -> dict[str, Any]:
    """What traces do: real, second real dataset, all fakes; "distance" is the EMD from the real sample, in its unit."""
    sides = {"train": scene.real, "fakes": scene.fakes} | ({} if scene.test is None else {"testing": scene.test})
    found = {side: habits(r, scene.places, scene.step_minutes) for side, r in sides.items()}
    result: dict[str, Any] = {}
    for name in found["train"]:
        values = {side: each[name] for side, each in found.items()}
        result[name] = {"unit": UNITS[name], **{side: _summary(x) for side, x in values.items()}}
        result[name]["distance"] = {s: sample_emd(values["train"], x) for s, x in values.items() if s != "train"}
    return result


def _summary(values: Floats) -> dict[str, float] | None:
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
