"""
The publishing scenario of sec:evaluation: do fakes keep the statistics of the real traces, ours or any other tool's.

A trace is the unit on both sides: several days of one user count as several traces. Fakes come in datasets, as many
traces each as the real one; figures are means over the datasets, beside what another real day ("testing") reaches.

Fakes against their seeds, and against each other: the values behind the histograms and the Q-Q plot.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from elsewhere._version import __version__
from elsewhere.data.slots import Periods, Traces
from elsewhere.data.visits import Codes, Floats, Ints, Locations
from elsewhere.errors import InvalidParameter, require_between, require_whole
from elsewhere.evaluation.attack_base import plain
from elsewhere.evaluation.publishing.metrics import (
    Scene,
    aggregate_figures,
    allocation_figures,
    datasets_of,
    further_figures,
    habit_figures,
    visit_figures,
)
from elsewhere.evaluation.publishing.tables import on_one_map, seed_rows
from elsewhere.paper._similarity_kernels import visit_similarity
from elsewhere.paper.geographic_similarity import visits_of
from elsewhere.paper.semantic_similarity import pairwise_semantic_similarity

MOST_PAIRS = 5_000_000  # of a seed and a fake
MOST_COMPARED = 1_000  # traces of a dataset that are compared with each other
QQ_LEVELS = np.arange(1, 100) / 100
QUANTILES = (5, 25, 50, 75, 95)
BIN_EDGES = np.linspace(0, 1, 21)


def similarities(
    scene: Scene, chosen: list[Ints], rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, Any] | None, dict[str, Floats], list[str]]:
    """Compare fakes with their seeds (fig:real-fake-semantic-similarity), differential (fig:deltas-fakeset2), Q-Q."""
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
        table = np.empty((len(scene.real), len(sample)))
        left, right = (visits_of(p) for p in both)
        for name, places in (("geographic", both[0].R), ("semantic", 0)):
            # seed first (E26)
            visit_similarity(left, right, 0, places, table)
            samples[name] = table[owner, np.arange(len(sample))]
        other = scene.user[:, None] != scene.user[owner][None, :]
        samples["differential"] = np.abs(samples["semantic"] - table)[other]
    # sets of one size are sampled alike, so that a set is compared with itself by the same pairs
    some = {n: np.sort(rng.permutation(n)[:MOST_COMPARED]) for n in {len(scene.real), *map(len, chosen)}}
    samples["real_real"] = _all_pairs(scene, scene.real[some[len(scene.real)]])
    each = [_all_pairs(scene, scene.fakes[rows[some[len(rows)]]]) for rows in chosen]
    samples["fake_fake"] = np.concatenate(each)
    histograms = {name: {"n": len(values), **describe(values)} for name, values in samples.items() if len(values)}
    return (
        {"bin_edges": BIN_EDGES.round(2), **histograms},
        _qq(samples["real_real"], samples["fake_fake"]),
        samples,
        notes,
    )


def _all_pairs(scene: Scene, r: Codes) -> Floats:
    """Return sim_S of all pairs of different traces."""
    table = pairwise_semantic_similarity(scene.profiles(r))
    return np.asarray(table[~np.eye(len(r), dtype=bool)])


def _qq(real: Floats, fake: Floats) -> dict[str, Any] | None:
    """Return the quantiles of both at the same levels, and their correlation (fig:fake-fake-semantic-similarity-qq)."""
    if len(real) == 0 or len(fake) == 0:
        return None
    x, y = np.quantile(real, QQ_LEVELS), np.quantile(fake, QQ_LEVELS)
    correlation = float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 and y.std() > 0 else float("nan")
    if np.array_equal(x, y):
        correlation = 1.0
    return {"levels": QQ_LEVELS, "real": x, "fake": y, "correlation": correlation}


def shares(values: Floats) -> Floats:
    """Return the share of the values in each of the 20 bins of `BIN_EDGES`; they sum to 1."""
    # a share of visits such as .25 lies on an edge: rounding keeps it from falling on either side by its last bit
    counts, _ = np.histogram(np.clip(np.round(values, 9), 0, 1), BIN_EDGES)
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def describe(values: Floats) -> dict[str, Any]:
    """Return mean, quantiles and normalised histogram of similarities."""
    levels = np.quantile(values, np.array(QUANTILES) / 100)
    return {
        "mean": float(values.mean()),
        "quantiles": {str(q): float(x) for q, x in zip(QUANTILES, levels, strict=True)},
        "histogram": shares(values),
    }


# measure -> what it says, for people; what fakes that are the real traces themselves reach
WORDS: dict[str, tuple[str, float | None]] = {
    "aggregate similarity of pi_bar": ("agreement on where people are (1 = the same)", 1.0),
    "aggregate similarity of p_bar": ("agreement on where people go next (1 = the same)", 1.0),
    "top 10 overlap": ("the 10 busiest places that are the same (1 = all)", 1.0),
    "top 50 overlap": ("the 50 busiest places that are the same (1 = all)", 1.0),
    "visits tv": ("difference in where people are (0 = none, 1 = nobody at the same place)", 0.0),
    "time of day tv": ("difference in where people are, time by time of day (0 = none, 1 = nobody)", 0.0),
    "transition tv": ("difference in where people go next (0 = none, 1 = all)", 0.0),
    "transition emd east": ("how far next steps are off, west to east (km; 0 = not at all)", 0.0),
    "transition emd north": ("how far next steps are off, south to north (km; 0 = not at all)", 0.0),
    "visits kl": ("surprise at where fakes are (0 = none; KL divergence, nats)", 0.0),
    "visits kl top": ("the same at the 50 busiest places (0 = none; KL divergence, nats)", 0.0),
    "visits js": ("distance of where people are (0 = none, 0.69 = most; Jensen-Shannon, nats)", 0.0),
    "visits, all places, sorted": (
        "difference in how popular places are, whichever they are (0 = none; KL, nats)",
        0.0,
    ),
    "visits, top places, sorted": ("the same for the 50 busiest places (0 = none; KL, nats)", 0.0),
    "time at place number 1": ("difference in the time at a person's main place (0 = none; KL, nats)", 0.0),
    "time at place number 2": ("the same at the second place", 0.0),
    "time at place number 3": ("the same at the third place", 0.0),
    "visits entropy": ("how evenly visits are spread over places (entropy, nats)", None),
    "moves": ("moves a day", None),
    "distinct places": ("different places a day", None),
    "visit entropy": ("how evenly a day is spread over its places (entropy, nats)", None),
    "dwell": ("length of a stay (minutes)", None),
    "trip length": ("length of a move (km)", None),
    "radius of gyration": ("how far around its middle a day reaches (km)", None),
}


@dataclass(frozen=True, eq=False)
class PublishingResult:
    """
    What the fakes keep, by name; `to_dict` describes the figures.

    `samples` holds the values behind the histograms and the Q-Q plot: `geographic`, `semantic` (fake against its own
    seed), `differential`, `real_real` and `fake_fake`.
    """

    sizes: dict[str, int]
    aggregate: dict[str, Any]
    visits: dict[str, Any]
    allocation: dict[str, Any]
    similarity: dict[str, Any]
    qq: dict[str, Any] | None
    beyond: dict[str, Any]
    habits: dict[str, Any]
    notes: tuple[str, ...] = ()
    samples: dict[str, Floats] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        s = self.sizes
        return f"PublishingResult({s['datasets']} datasets of {s['dataset_size']} fakes, {s['train']} real traces)"

    def to_dict(self) -> dict[str, Any]:
        """
        Return plain numbers, ready for JSON.

        `aggregate` (p_bar, pi_bar: similarity in [0, 1]); `visits` (all, top: KL in nats, sorted by popularity);
        `allocation` (ranks 1, 2, 3: KL in nats); `similarity` (histograms of fake against own seed, and differential);
        `qq`; `beyond` (further distances from the real traces); `habits` (what traces do, real and fake). "fakes"
        holds mean, median and standard deviation over the datasets, "testing" is the second real dataset.
        """
        names = ("sizes", "aggregate", "visits", "allocation", "similarity", "qq", "beyond", "habits", "notes")
        plain_numbers: dict[str, Any] = plain({name: getattr(self, name) for name in names})
        return {**plain_numbers, "version": __version__}

    def table(self) -> list[dict[str, Any]]:
        """Return a row per figure: measure, unit, words, best, testing, fakes, std, median, baselines."""
        rows = [_row(f"aggregate similarity of {name}", "share", figure) for name, figure in self.aggregate.items()]
        rows += [_row(f"visits, {name} places, sorted", "KL, nats", figure) for name, figure in self.visits.items()]
        rows += [_row(f"time at place number {j}", "KL, nats", figure) for j, figure in self.allocation.items()]
        rows += [_row(name.replace("_", " "), figure["unit"], figure) for name, figure in self.beyond.items()]
        for name, figure in self.habits.items():
            train, test, fakes = (figure.get(side) or {} for side in ("train", "testing", "fakes"))
            rows.append(
                {
                    "measure": name.replace("_", " "),
                    "unit": figure["unit"],
                    "train": train.get("mean"),
                    "testing": test.get("mean"),
                    "fakes": fakes.get("mean"),
                    "std": fakes.get("std"),
                    "median": fakes.get("median"),
                }
            )
        order = {measure: i for i, measure in enumerate(WORDS)}
        for row in rows:
            row["words"], row["best"] = WORDS[row["measure"]]
            if row["measure"] == "visits entropy":
                row["train"] = self.beyond["visits_entropy"]["train"]
        table: list[dict[str, Any]] = plain(sorted(rows, key=lambda row: order[row["measure"]]))
        return table


def evaluate_publishing(
    train: Traces | ArrayLike,
    test: Traces | ArrayLike | None,
    fakes: Any,
    *,
    seed_index: ArrayLike | None = None,
    datasets: int = 10,
    locations: Locations | None = None,
    periods: int | Sequence[float] | Periods = 1,
    epsilon: float = 0.01,
    rng: np.random.Generator | None = None,
) -> PublishingResult:
    """
    Compare fakes with the real traces they stand for: the tables and figures of sec:evaluation, and some more.

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
        Codes of plain arrays; without coordinates distances are not judged.
    periods
        Periods of the day for the similarities; the paper has one.
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
    if not isinstance(draw, np.random.Generator):
        raise InvalidParameter(f"`rng` must be a `numpy.random.Generator`, got {type(rng).__name__}.", parameter="rng")
    table = fakes if isinstance(fakes, Traces) else getattr(fakes, "r", fakes)
    owner = getattr(fakes, "seed", None) if seed_index is None else seed_index
    sides = on_one_map({"train": train, "test": test, "fakes": table}, locations)
    clock = next((t for t in (train, test, table) if isinstance(t, Traces)), sides["train"])
    tau = Periods.of(periods)
    scene = Scene(
        real=sides["train"].r,
        user=sides["train"].user,
        test=sides["test"].r if test is not None else None,
        fakes=sides["fakes"].r,
        owner=None if owner is None else seed_rows(owner, len(sides["fakes"]), len(sides["train"])),
        places=sides["train"].locations,
        tau=tau.of_minute(clock.minutes()),
        T=tau.T,
        step_minutes=clock.step_minutes,
    )
    chosen, notes = datasets_of(scene, datasets, draw)
    similarity, qq, samples, more = similarities(scene, chosen, draw)
    return PublishingResult(
        sizes={
            "train": len(scene.real),
            "test": 0 if scene.test is None else len(scene.test),
            "users": sides["train"].U,
            "test_users": 0 if scene.test is None else sides["test"].U,
            "fakes": len(scene.fakes),
            "datasets": len(chosen),
            "dataset_size": len(chosen[0]),
            "places": scene.R,
            "slots": scene.real.shape[1],
            "periods": scene.T,
        },
        aggregate=aggregate_figures(scene, chosen, epsilon),
        visits=visit_figures(scene, chosen),
        allocation=allocation_figures(scene, chosen, draw),
        similarity=similarity,
        qq=qq,
        beyond=further_figures(scene, chosen),
        habits=habit_figures(scene),
        notes=(*notes, *more),
        samples=samples,
    )


def _row(measure: str, unit: str, figure: dict[str, Any]) -> dict[str, Any]:
    fakes = figure["fakes"]
    row = {"measure": measure, "unit": unit, "testing": figure.get("testing"), "fakes": fakes["mean"]}
    row |= {"std": fakes["std"], "median": fakes["median"]}
    for baseline in ("uniform", "single", "random"):
        value = figure.get(baseline)
        if value is not None:
            row[baseline] = value["mean"] if isinstance(value, dict) else value
    return row
