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
        drawn = np.arange(len(scene.fakes))
        if len(drawn) > most:
            drawn = np.sort(rng.permutation(len(drawn))[:most])
            notes.append(f"similarities are those of {most} fakes drawn at random.")
        owner = scene.owner[drawn]
        both = [scene.profiles(r) for r in (scene.real, scene.fakes[drawn])]
        table = np.empty((len(scene.real), len(drawn)))
        for name, by_place in (("geographic", True), ("semantic", False)):
            # seed first (E26)
            left, right = (visits_of(p, by_place=by_place) for p in both)
            visit_similarity(left, right, 0, by_place, table)
            samples[name] = table[owner, np.arange(len(drawn))]
        other = scene.user[:, None] != scene.user[owner][None, :]
        samples["differential"] = np.abs(samples["semantic"] - table)[other]
    # sets of one size are sampled alike, so that a set is compared with itself by the same pairs
    some = {n: np.sort(rng.permutation(n)[:MOST_COMPARED]) for n in {len(scene.real), *map(len, chosen)}}
    samples["real_real"] = _all_pairs(scene, scene.real[some[len(scene.real)]])
    each = [_all_pairs(scene, scene.fakes[rows[some[len(rows)]]]) for rows in chosen]
    samples["fake_fake"] = np.concatenate(each)
    shown = {name: _histogram(samples[name]) for name in samples if len(samples[name])}
    return {"bin_edges": BIN_EDGES.round(2), **shown}, _qq(samples["real_real"], samples["fake_fake"]), samples, notes


def _all_pairs(scene: Scene, r: Places) -> Floats:
    """sim_S of all pairs of different traces."""
    table = pairwise_semantic_similarity(scene.profiles(r))
    return np.asarray(table[~np.eye(len(r), dtype=bool)])


def _qq(real: Floats, fake: Floats) -> dict[str, Any] | None:
    """Quantiles of both at the same levels, and their correlation (fig:fake-fake-semantic-similarity-qq)."""
    if len(real) == 0 or len(fake) == 0:
        return None
    x, y = np.quantile(real, QQ_LEVELS), np.quantile(fake, QQ_LEVELS)
    correlation = float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 and y.std() > 0 else float("nan")
    if np.array_equal(x, y):
        correlation = 1.0
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
