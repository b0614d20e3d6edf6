"""Fakes against their seeds, and against each other: the values behind the histograms and the Q-Q plot."""

from typing import Any

import numpy as np

from elsewhere.evaluation.publishing.scene import Scene
from elsewhere.similarity._kernels import visit_similarity
from elsewhere.similarity.columns import visits_of
from elsewhere.similarity.pairwise import pairwise_semantic_similarity
from elsewhere.traces.model import Floats, Ints, Places

MOST_PAIRS = 5_000_000  # of a seed and a fake
MOST_COMPARED = 1_000  # traces of a dataset that are compared with each other
QQ_LEVELS = np.arange(1, 100) / 100
QUANTILES = (5, 25, 50, 75, 95)
BIN_EDGES = np.linspace(0, 1, 21)


def similarities(
    scene: Scene, chosen: list[Ints], rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, Any] | None, dict[str, Floats], list[str]]:
    """Fake against its seed (fig:real-fake-semantic-similarity), differential (fig:deltas-fakeset2), Q-Q."""
    samples: dict[str, Floats] = {}
    notes = []
    if scene.owner is not None:
        most = max(1, MOST_PAIRS // len(scene.real))
        some = np.arange(len(scene.fakes))
        if len(some) > most:
            some = np.sort(rng.permutation(len(some))[:most])
            notes.append(f"similarities are those of {most} fakes drawn at random.")
        owner = scene.owner[some]
        both = [scene.profiles(r) for r in (scene.real, scene.fakes[some])]
        table = np.empty((len(scene.real), len(some)))
        for name, by_place in (("geographic", True), ("semantic", False)):
            # seed first (E26)
            left, right = (visits_of(p, by_place=by_place) for p in both)
            visit_similarity(left, right, 0, by_place, table)
            samples[name] = table[owner, np.arange(len(some))]
        other = scene.user[:, None] != scene.user[owner][None, :]
        samples["differential"] = np.abs(samples["semantic"] - table)[other]
    samples["real_real"] = _all_pairs(scene, scene.real, rng)
    samples["fake_fake"] = np.concatenate([_all_pairs(scene, scene.fakes[rows], rng) for rows in chosen])
    shown = {name: _histogram(samples[name]) for name in samples if len(samples[name])}
    return {"bin_edges": BIN_EDGES.round(2), **shown}, _qq(samples["real_real"], samples["fake_fake"]), samples, notes


def _all_pairs(scene: Scene, r: Places, rng: np.random.Generator) -> Floats:
    """sim_S of all pairs of different traces, of a sample where there are too many."""
    some = r if len(r) <= MOST_COMPARED else r[rng.permutation(len(r))[:MOST_COMPARED]]
    table = pairwise_semantic_similarity(scene.profiles(some))
    return np.asarray(table[~np.eye(len(some), dtype=bool)])


def _qq(real: Floats, fake: Floats) -> dict[str, Any] | None:
    """Quantiles of both at the same levels, and their correlation (fig:fake-fake-semantic-similarity-qq)."""
    if len(real) == 0 or len(fake) == 0:
        return None
    x, y = np.quantile(real, QQ_LEVELS), np.quantile(fake, QQ_LEVELS)
    correlation = float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 and y.std() > 0 else float("nan")
    return {"levels": QQ_LEVELS, "real": x, "fake": y, "correlation": correlation}


def _histogram(values: Floats) -> dict[str, Any]:
    # a share of visits such as .25 lies on an edge: rounding keeps it from falling on either side by its last bit
    counts, _ = np.histogram(np.clip(np.round(values, 9), 0, 1), BIN_EDGES)
    levels = np.quantile(values, np.array(QUANTILES) / 100)
    return {
        "n": len(values),
        "mean": float(values.mean()),
        "quantiles": {str(q): float(x) for q, x in zip(QUANTILES, levels, strict=True)},
        "histogram": counts / counts.sum(),
    }
