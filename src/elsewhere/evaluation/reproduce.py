"""
Every table and figure of the paper's evaluation on other data: our number beside the paper's, and what they share.

The paper's data (Lausanne) are not public. A number that is a fact of the data cannot come out again on others; what
can are the method's numbers, roughly, and the statements that the text draws from tables and figures. Both are rows.

What the paper prints in sec:evaluation, with its place: the numbers of tables and text, and what figures show.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from elsewhere._version import __version__
from elsewhere.errors import NotEnoughUsers, NothingPassed, require_whole
from elsewhere.evaluation.attacks.finding import plain
from elsewhere.evaluation.lbs.generators import OURS, USER, judge_service, two_days
from elsewhere.evaluation.lbs.scenario import LbsResult
from elsewhere.evaluation.publishing.scenario import PublishingResult, evaluate_publishing
from elsewhere.paper.pairwise import pairwise_geographic_similarity, pairwise_semantic_similarity
from elsewhere.paper.profiles import fit_profiles
from elsewhere.run.fakes import Fakes
from elsewhere.run.generate import generate_fakes
from elsewhere.settings import Kappa
from elsewhere.traces.model import Floats, Traces


class Printed(NamedTuple):
    """One number of the paper: where it stands, what it is, its value, and whether it is a fact of the data alone."""

    place: str
    what: str
    value: float
    of_data: bool = False


# the keys are those of `reproduce`; facts of the data would come out alike only on the paper's own data (Lausanne)
NUMBERS = {
    "users": Printed("sec:dataset", "users", 30, True),
    "places": Printed("sec:dataset", "places after merging", 400, True),
    "kappa": Printed("fig:dataset b", "semantic classes", 20),
    "passed": Printed("Publishing, Privacy", "share of fakes that pass the geographic and intersection tests", 0.80),
    "p_bar mean": Printed("Publishing, Utility", "similarity of p_bar, mean of 10 datasets", 0.8061),
    "p_bar median": Printed("Publishing, Utility", "similarity of p_bar, median", 0.8073),
    "p_bar std": Printed("Publishing, Utility", "similarity of p_bar, standard deviation", 0.0060),
    "pi_bar mean": Printed("Publishing, Utility", "similarity of pi_bar, mean of 10 datasets", 0.7856),
    "pi_bar median": Printed("Publishing, Utility", "similarity of pi_bar, median", 0.7867),
    "pi_bar std": Printed("Publishing, Utility", "similarity of pi_bar, standard deviation", 0.0152),
    "all testing": Printed("tbl:vistprob-kl", "KL of visits, testing", 0.0377, True),
    "all fakes": Printed("tbl:vistprob-kl", "KL of visits, fakes, mean", 0.3841),
    "all std": Printed("tbl:vistprob-kl", "KL of visits, fakes, standard deviation", 0.0432),
    "all uniform": Printed("tbl:vistprob-kl", "KL of visits, uniform", 1.1918, True),
    "all single": Printed("tbl:vistprob-kl", "KL of visits, single", 4.6666, True),
    "top testing": Printed("tbl:vistprob-kl-50mp", "KL of the 50 most popular, testing", 0.0215, True),
    "top fakes": Printed("tbl:vistprob-kl-50mp", "KL of the 50 most popular, fakes, mean", 0.0289),
    "top std": Printed("tbl:vistprob-kl-50mp", "KL of the 50 most popular, fakes, standard deviation", 0.0086),
    "top uniform": Printed("tbl:vistprob-kl-50mp", "KL of the 50 most popular, uniform", 0.2040, True),
    "top single": Printed("tbl:vistprob-kl-50mp", "KL of the 50 most popular, single", 5.1131, True),
    "time 1 testing": Printed("tbl:timealloc-kl", "KL of time at the 1st place, testing", 0.0189, True),
    "time 1 fakes": Printed("tbl:timealloc-kl", "KL of time at the 1st place, fakes, mean", 0.0125),
    "time 1 std": Printed("tbl:timealloc-kl", "KL of time at the 1st place, fakes, standard deviation", 0.0022),
    "time 1 uniform": Printed("tbl:timealloc-kl", "KL of time at the 1st place, uniform", 0.1652, True),
    "time 1 random": Printed("tbl:timealloc-kl", "KL of time at the 1st place, random", 0.6794, True),
    "time 2 testing": Printed("tbl:timealloc-kl", "KL of time at the 2nd place, testing", 0.0026, True),
    "time 2 fakes": Printed("tbl:timealloc-kl", "KL of time at the 2nd place, fakes, mean", 0.0092),
    "time 2 std": Printed("tbl:timealloc-kl", "KL of time at the 2nd place, fakes, standard deviation", 0.0031),
    "time 2 uniform": Printed("tbl:timealloc-kl", "KL of time at the 2nd place, uniform", 0.0778, True),
    "time 2 random": Printed("tbl:timealloc-kl", "KL of time at the 2nd place, random", 0.5360, True),
    "time 3 testing": Printed("tbl:timealloc-kl", "KL of time at the 3rd place, testing", 0.0114, True),
    "time 3 fakes": Printed("tbl:timealloc-kl", "KL of time at the 3rd place, fakes, mean", 0.0089),
    "time 3 std": Printed("tbl:timealloc-kl", "KL of time at the 3rd place, fakes, standard deviation", 0.0036),
    "time 3 uniform": Printed("tbl:timealloc-kl", "KL of time at the 3rd place, uniform", 0.0779, True),
    "time 3 random": Printed("tbl:timealloc-kl", "KL of time at the 3rd place, random", 0.5092, True),
}


NEAR = 0.25  # a method's number within a quarter of the paper's is called near, however small
CLOSE = 0.1  # of the most there can be: "very close to the maximum"
DATASETS = 10
OTHER_DATA = "a fact of the data, which are not the paper's"


class Row(NamedTuple):
    """One number or statement of the paper beside ours; `agrees` is None where only the data decide."""

    place: str
    what: str
    paper: float | str
    ours: float | str
    agrees: bool | None
    why: str


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The rows, and the results behind the figures."""

    rows: tuple[Row, ...]
    publishing: PublishingResult
    service: LbsResult
    fakes: Fakes = field(repr=False)
    train: Traces = field(repr=False)
    geographic: Floats = field(repr=False)
    semantic: Floats = field(repr=False)

    def __repr__(self) -> str:
        verdicts = [row.agrees for row in self.rows if row.agrees is not None]
        return f"Reproduction({len(self.rows)} rows, {sum(verdicts)} of {len(verdicts)} agree)"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        rows = [row._asdict() for row in self.rows]
        figures: dict[str, Any] = plain(
            {"rows": rows, "publishing": self.publishing.to_dict(), "service": self.service.to_dict()}
        )
        return {**figures, "version": __version__}

    def markdown(self) -> str:
        """Return the rows as a table to read."""
        lines = [
            "# The paper's evaluation, on these data",
            "",
            f"{self.train.U} users, {self.train.L} slots, {self.train.R} places; {len(self.fakes)} fakes, preset "
            f"paper, {self.fakes.kappa} classes. elsewhere {__version__}. Where a row differs, the reason given is the "
            "likely one; it was not tested.",
            "",
            "| in the paper | what | paper | here | agrees | why |",
            "|---|---|---|---|---|---|",
        ]
        word = {True: "yes", False: "no", None: "-"}
        for row in self.rows:
            paper, ours = (v if isinstance(v, str) else f"{v:.4g}" for v in (row.paper, row.ours))
            lines.append(f"| {row.place} | {row.what} | {paper} | {ours} | {word[row.agrees]} | {row.why} |")
        return "\n".join([*lines, ""])


def reproduce(
    traces: Traces,
    *,
    per_seed: int = 20,
    kappa: Kappa = "auto",
    repeats: tuple[int, int] = (4, 5),
    progress: Callable[[int, int], None] | None = None,
    rng: np.random.Generator,
) -> Reproduction:
    """
    Repeat the evaluation of the paper on `traces` (two days or more of each user): first day training, second testing.

    Parameters
    ----------
    traces
        Real or simulated days; users with one day are left out, rows with gaps too.
    per_seed
        Fakes per user; the paper has 50 in its datasets and 500 in its pool.
    kappa
        Number of classes; "auto" is the paper's 20, fewer where there are fewer than 100 visited places.
    repeats
        Selections of fakes and exposures in the service scenario.
    progress
        Called as `progress(steps done, steps)`.
    rng
        Everything that is drawn.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> from elsewhere.evaluation.reproduce import reproduce
    >>> town = ew.simulate_town(users=24, days=2, locations=80, rng=np.random.default_rng(1))
    >>> import warnings; warnings.simplefilter("ignore")
    >>> result = reproduce(town.traces, per_seed=10, kappa=8, repeats=(1, 1), rng=np.random.default_rng(2))
    >>> result.rows[0].paper, result.rows[0].ours
    (30, 24)

    """
    require_whole("per_seed", per_seed, DATASETS)
    tell = progress or (lambda done, total: None)
    whole = np.all(traces.r >= 0, axis=1)
    if not whole.any():
        raise NotEnoughUsers("no day is complete; a longer `step` may help.", code="E_GAPS")
    train, test = two_days(traces if whole.all() else traces.select(whole))
    tell(1, 6)
    profiles = fit_profiles(train)
    pairs = np.triu_indices(train.U, 1)
    geographic = np.asarray(pairwise_geographic_similarity(profiles))[pairs]
    semantic = np.asarray(pairwise_semantic_similarity(profiles))[pairs]
    tell(2, 6)
    fakes = generate_fakes(train, preset="paper", per_seed=per_seed, kappa=kappa, rng=rng)
    tell(3, 6)
    first_two = _first_two(train, fakes, per_seed, rng)
    tell(4, 6)
    publishing = evaluate_publishing(train, test, fakes, datasets=DATASETS, rng=rng)
    tell(5, 6)
    assert fakes.learnt is not None  # noqa: S101 - fresh fakes know it
    service = judge_service(
        train, test, fakes, classes=fakes.learnt.classes, repeats=repeats, choose="likelihood", rng=rng
    )
    tell(6, 6)
    numbers = _numbers(train, fakes, first_two, publishing)
    rows = (
        *(_number_row(key, numbers[key]) for key in NUMBERS if numbers.get(key) is not None),
        *_statements(geographic, semantic, publishing, service),
    )
    return Reproduction(rows, publishing, service, fakes, train, geographic, semantic)


def _first_two(train: Traces, fakes: Fakes, per_seed: int, rng: np.random.Generator) -> float:
    """
    Return the share of fakes that pass the geographic and the intersection test: the paper's 80 % are of these two.

    One attempt per fake, none repeated: with retries, seeds that fail often would make most of the attempts.
    """
    try:
        attempts = generate_fakes(
            train, preset="paper", per_seed=per_seed, k=1, max_tries=1, model=fakes.learnt, rng=rng
        )
    except NothingPassed:
        return 0.0
    return attempts.acceptance


def _numbers(train: Traces, fakes: Fakes, first_two: float, publishing: PublishingResult) -> dict[str, float | None]:
    """Return our values, by the keys of `NUMBERS`."""
    figures: dict[str, float | None] = {
        "users": train.U,
        "places": train.R,
        "kappa": fakes.kappa,
        "passed": first_two,
    }
    for name in ("p_bar", "pi_bar"):
        figure = publishing.aggregate[name]["fakes"]
        figures |= {f"{name} {kind}": figure[kind] for kind in ("mean", "median", "std")}
    groups = {"all": publishing.visits["all"], "top": publishing.visits["top"]}
    groups |= {f"time {j}": publishing.allocation[j] for j in publishing.allocation}
    for name, figure in groups.items():
        figures |= {f"{name} fakes": figure["fakes"]["mean"], f"{name} std": figure["fakes"]["std"]}
        for baseline in ("testing", "uniform", "single", "random"):
            value = figure.get(baseline)
            figures[f"{name} {baseline}"] = value["mean"] if isinstance(value, dict) else value
    return figures


def _number_row(key: str, ours: float | None) -> Row:
    number = NUMBERS[key]
    value = float("nan") if ours is None else float(ours)
    figure: float = int(value) if value.is_integer() else value
    near = abs(value - number.value) <= NEAR * abs(number.value)
    if number.of_data:
        return Row(number.place, number.what, number.value, figure, None, OTHER_DATA)
    if near:
        return Row(number.place, number.what, number.value, figure, True, "near the paper's, on other data")
    return Row(number.place, number.what, number.value, figure, False, _why(key, value, number.value))


def _why(key: str, ours: float, paper: float) -> str:
    direction = "lower" if ours < paper else "higher"
    reasons = {
        "kappa": "a class takes five visited places, and there are fewer than 100 (E29), or `kappa` was given",
        "passed": "fewer places per class, or classes that lie closer together, leave less room to be elsewhere",
        "std": "the spread over ten datasets depends on the number of users and places",
    }
    for word, reason in reasons.items():
        if word in key:
            return f"{direction}: {reason}"
    if "bar" in key:
        return f"{direction}: depends on how many people share each place, and on epsilon (E34, E73)"
    return f"{direction}: fakes avoid their seeds' places, and on these data that shifts more or less of all visits"


def _statements(
    geographic: Floats, semantic: Floats, publishing: PublishingResult, service: LbsResult
) -> tuple[Row, ...]:
    """Return what the paper concludes from its figures and tables, each as something that could fail."""
    rows = [
        _holds(
            "fig:real-gs-similarity a",
            "geographic similarity of two users: most near 0",
            f"median {np.median(geographic):.2f}",
            float(np.median(geographic)) < 0.2,
            "people here share more places than in the paper's town",
        ),
        _holds(
            "fig:real-gs-similarity b",
            "semantic similarity of two users: most high",
            f"median {np.median(semantic):.2f}",
            float(np.median(semantic)) > 0.5,
            "these people divide their time in different ways",
        ),
    ]
    samples = publishing.samples
    if len(samples.get("differential", ())):
        share = float((samples["differential"] < 0.1).mean())
        rows.append(
            _holds(
                "fig:deltas-fakeset2",
                "most differences of semantic similarity are small (below .1)",
                f"{share:.0%} are",
                share > 0.5,
                "the fakes keep more of what is special in their seeds (E71 on the wording)",
            )
        )
    if len(samples.get("semantic", ())):
        middle = float(np.median(samples["semantic"]))
        rows.append(
            _holds(
                "fig:real-fake-semantic-similarity",
                "fakes are semantically similar to their seeds",
                f"median {middle:.2f}",
                middle > 0.5,
                "classes here are too coarse to carry the life of a seed over",
            )
        )
    if len(samples.get("real_real", ())) and len(samples.get("fake_fake", ())):
        at = np.linspace(0.02, 0.98, 49)
        line = [np.quantile(samples[name], at) for name in ("real_real", "fake_fake")]
        r = float(np.asarray(np.corrcoef(line))[0, 1])
        rows.append(
            _holds(
                "fig:fake-fake-semantic-similarity-qq",
                "quantiles of real-real and fake-fake similarity on a line",
                f"correlation {r:.3f}, mean distance {float(np.mean(np.abs(line[0] - line[1]))):.2f}",
                r > 0.95,
                "fakes resemble each other in another way than people do",
            )
        )
    return (*rows, *_table_statements(publishing), *_service_statements(service))


def _table_statements(publishing: PublishingResult) -> list[Row]:
    """Return what the text says of the three tables."""
    rows = []
    for place, name in (("tbl:vistprob-kl", "all"), ("tbl:vistprob-kl-50mp", "top")):
        figure = publishing.visits[name]
        testing, fakes = figure["testing"], figure["fakes"]["mean"]
        uniform, single = figure["uniform"], figure["single"]
        rows.append(
            _holds(
                place,
                "testing is closer than fakes, fakes are closer than uniform and single",
                f"{testing:.4f}, {fakes:.4f}, {uniform:.4f}, {single:.4f}",
                testing < fakes < min(uniform, single),
                "popularity alone (E65) is kept better, or worse, than another day keeps it",
            )
        )
    for rank, figure in publishing.allocation.items():
        fakes, others = figure["fakes"]["mean"], (figure["uniform"], figure["random"]["mean"])
        rows.append(
            _holds(
                "tbl:timealloc-kl",
                f"time at the place of rank {rank}: fakes are closer than uniform and random",
                f"{fakes:.4f}, {others[0]:.4f}, {others[1]:.4f}",
                fakes < min(others),
                "the fakes share out their time in another way than their seeds",
            )
        )
    closer = {rank: figure["fakes"]["mean"] < figure["testing"] for rank, figure in publishing.allocation.items()}
    rows.append(
        _holds(
            "tbl:timealloc-kl",
            "sometimes the fakes are closer than testing",
            f"at {sum(closer.values())} of {len(closer)} ranks",
            any(closer.values()),
            "another day of the same people is like the first",
        )
    )
    return rows


def _service_statements(service: LbsResult) -> list[Row]:
    rows = []
    for m in service.n_fakes:
        decoys = "1 fake" if m == 1 else f"{m} fakes"
        error = {name: service.figure(name, m)["median"] for name in service.generators}
        best = max((n for n in error if n != OURS), key=lambda n: error[n])
        rows.append(
            _holds(
                "fig:locationprivacy",
                f"{decoys}: ours misleads tracking more than all others",
                f"{error[OURS]:.2f}, next {best} {error[best]:.2f}",
                error[OURS] >= error[best],
                "fakes here move less plausibly under the aggregate model than those of the other generator",
            )
        )
        ceiling = m / (m + 1)
        rows.append(
            _holds(
                "Service, Results",
                f"{decoys}: privacy very close to the maximum (m/(m+1) = {ceiling:.2f})",
                f"{error[OURS]:.2f}",
                abs(error[OURS] - ceiling) <= CLOSE * ceiling,
                "the aggregate model tells fakes from the truth, or the truth from all that it knows",
            )
        )
        rows.append(
            _holds(
                "Service, Results",
                f"{decoys}: of the others the walk on the user (RW user) comes closest to ours",
                f"{USER} {error[USER]:.2f}, next {_next(error):.2f}",
                _next(error) <= error[USER] <= error[OURS],
                "walks on the user stay where the user is, and here that confuses less, or more, than in the paper",
            )
        )
    last = len(service.n_fakes) - 1
    for panel, cost, what in (("a", 0, "different places"), ("b", 1, "different classes")):
        sent_by = {n: float(np.nanmedian(service.overhead[:, g, last, cost])) for g, n in enumerate(service.generators)}
        rows.append(
            _holds(
                f"fig:locationprivacy {panel}",
                f"ours and the walk on the user send fewer {what} than the random strategies",
                ", ".join(f"{name} {value:.1f}" for name, value in sent_by.items()),
                max(sent_by[OURS], sent_by[USER]) < min(sent_by[name] for name in sent_by if name not in (OURS, USER)),
                "fakes of other people's seeds (E66) lie at more places than the paper's, made of the user's own seed",
            )
        )
    return rows


def _next(error: dict[str, float]) -> float:
    """Return the largest error of the generators that are neither ours nor the walk on the user."""
    return max(value for name, value in error.items() if name not in (OURS, USER))


def _holds(place: str, what: str, ours: str, agrees: bool, why_not: str) -> Row:
    return Row(place, what, "stated", ours, bool(agrees), "" if agrees else why_not)
