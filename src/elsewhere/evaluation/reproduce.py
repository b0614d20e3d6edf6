"""
Every table and figure of the paper's evaluation on other data: our number beside the paper's, and what they share.

The paper's data (Lausanne) are not public. A number that is a fact of the data cannot come out again on others; what
can are the method's numbers, and the statements that the text draws from tables and figures. Both are rows. A number of
the method stands in an interval: 95 %, users and runs drawn again. The paper's is inside, or outside by so much.

Where a row stands beside the paper's, the way is the paper's: about 500 attempts per seed, of those that pass the test
50 drawn by likelihood, 10 datasets, fakes of the user's own seed in the service scenario (E66), Random not sorted
(E70). The product's way is in rows below.
"""

import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from elsewhere._version import __version__
from elsewhere.data.slots import Traces
from elsewhere.data.visits import Codes, Floats, Ints
from elsewhere.errors import NotEnoughUsers, require_whole
from elsewhere.evaluation.attack_base import plain
from elsewhere.evaluation.lbs import OURS, USER, LbsResult, PoolGenerator, evaluate_lbs, five_generators, two_days
from elsewhere.evaluation.publishing import EPSILON, PublishingResult, Scene, evaluate_publishing
from elsewhere.paper.geographic_similarity import pairwise_geographic_similarity
from elsewhere.paper.privacy_test import PrivacyTest
from elsewhere.paper.profiles import fit_profiles
from elsewhere.paper.semantic_similarity import pairwise_semantic_similarity
from elsewhere.run.generate import generate_fakes
from elsewhere.run.publish import Fakes, draw_of_each, finite
from elsewhere.settings import Kappa


class Printed(NamedTuple):
    """One number of the paper: where it stands, what it is, its value, and whether it is a fact of the data alone."""

    place: str
    what: str
    value: float
    of_data: bool = False


# of the method; all others are facts of the data, which would come out alike only on the paper's own (Lausanne)
COLUMNS = {
    "mean": ", mean of 10 datasets",
    "median": ", median",
    "std": ", standard deviation",
    "fakes": ", fakes, mean",
}
TABLES = (
    ("p_bar", "Publishing, Utility", "similarity of p_bar", {"mean": 0.8061, "median": 0.8073, "std": 0.0060}),
    ("pi_bar", "Publishing, Utility", "similarity of pi_bar", {"mean": 0.7856, "median": 0.7867, "std": 0.0152}),
    ("all", "tbl:vistprob-kl", "KL of visits",
     {"testing": 0.0377, "fakes": 0.3841, "std": 0.0432, "uniform": 1.1918, "single": 4.6666}),
    ("top", "tbl:vistprob-kl-50mp", "KL of the 50 most popular",
     {"testing": 0.0215, "fakes": 0.0289, "std": 0.0086, "uniform": 0.2040, "single": 5.1131}),
    ("time 1", "tbl:timealloc-kl", "KL of time at the 1st place",
     {"testing": 0.0189, "fakes": 0.0125, "std": 0.0022, "uniform": 0.1652, "random": 0.6794}),
    ("time 2", "tbl:timealloc-kl", "KL of time at the 2nd place",
     {"testing": 0.0026, "fakes": 0.0092, "std": 0.0031, "uniform": 0.0778, "random": 0.5360}),
    ("time 3", "tbl:timealloc-kl", "KL of time at the 3rd place",
     {"testing": 0.0114, "fakes": 0.0089, "std": 0.0036, "uniform": 0.0779, "random": 0.5092}),
)  # fmt: skip
# the keys are those of `_numbers`
NUMBERS = {
    "users": Printed("sec:dataset", "users", 30, True),
    "places": Printed("sec:dataset", "places after merging", 400, True),
    "kappa": Printed("fig:dataset b", "semantic classes", 20),
    "passed": Printed("Publishing, Privacy", "share of fakes that pass the geographic and intersection tests", 0.80),
    **{
        f"{key} {column}": Printed(place, what + COLUMNS.get(column, f", {column}"), value, column not in COLUMNS)
        for key, place, what, row in TABLES
        for column, value in row.items()
    },
}

CLOSE = 0.1  # of the most there can be: "very close to the maximum"
DATASETS, DRAWN = 10, 50  # of the paper; fakes per seed in the datasets
RESAMPLES, OF_MODELS = 200, 60  # for the intervals; fewer where each takes two aggregate models
OTHERS = "other people's seeds"  # fakes as the product gives them (E66)
OTHER_DATA = "a fact of the data, which are not the paper's"

Interval = tuple[float, float]


class Row(NamedTuple):
    """
    One number or statement of the paper beside ours; `agrees` is None where only the data decide.

    `interval` holds 95 % of our figure with users and runs drawn again; a number agrees if the paper's lies in it.
    """

    place: str
    what: str
    paper: float | str
    ours: float | str
    interval: Interval | None
    agrees: bool | None
    why: str


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The rows, and the results behind the figures."""

    rows: tuple[Row, ...]
    publishing: PublishingResult
    service: LbsResult
    fakes: Fakes = field(repr=False)
    r: Codes = field(repr=False)  # (F, L) the fakes that passed the test, DRAWN per seed,
    seed: Ints = field(repr=False)  # and the row of `train` that each was made from
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
            f"{self.train.U} users, {self.train.L} slots, {self.train.R} places; {int(self.fakes.attempts.sum()):,} "
            f"attempts, {len(self.r):,} fakes in the datasets, {self.fakes.kappa} classes. elsewhere "
            f"{__version__}. Intervals hold 95 %, users and runs drawn again.",
            "",
            "| in the paper | what | paper | here | interval | agrees | why |",
            "|---|---|---|---|---|---|---|",
        ]
        word = {True: "yes", False: "no", None: "-"}
        for row in self.rows:
            paper, ours = (v if isinstance(v, str) else f"{v:.4g}" for v in (row.paper, row.ours))
            between = "" if row.interval is None else f"{row.interval[0]:.4g} .. {row.interval[1]:.4g}"
            lines.append(
                f"| {row.place} | {row.what} | {paper} | {ours} | {between} | {word[row.agrees]} | {row.why} |"
            )
        return "\n".join([*lines, ""])


def reproduce(
    traces: Traces,
    *,
    per_seed: int = 500,
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
        Attempts per user, about 500 in the paper; of those that pass the test 50 are drawn by likelihood.
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
    # the geographic and the intersection test alone (k = 1): the paper's 80 % are of these two, of single attempts
    single: dict[str, Any] = {"per_seed": per_seed, "k": 1, "max_tries": 1}
    threads = ThreadPoolExecutor(os.cpu_count())  # kernels run without the interpreter's lock
    made = generate_fakes(train, method="paper", **single, kappa=kappa, executor=threads, rng=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the alternates are seeds, as in the paper (E53)
        passed = [verdict.passed for verdict in PrivacyTest.prepare(train, "all")(made.r, made.seed)]
    assert made.loglik is not None  # noqa: S101 - of the paper's method
    r, seed, loglik = made.r[passed], made.seed[passed], finite(made.loglik)[passed]
    tell(3, 6)
    drawn = draw_of_each(seed, loglik, DRAWN, rng)
    publishing = evaluate_publishing(train, test, r[drawn], seed_index=seed[drawn], datasets=DATASETS, rng=rng)
    tell(4, 6)
    assert made.learnt is not None  # noqa: S101 - fresh fakes know it
    service = _service(train, test, (r, seed, loglik), made.learnt.classes, repeats, threads, rng)
    tell(5, 6)
    figures = _numbers(train, made, _share_per_seed(made, train).mean(), publishing)
    intervals = _intervals(figures, train, made, r[drawn], seed[drawn], publishing, rng)
    rows = (
        *(_number_row(key, x, intervals.get(key)) for key in NUMBERS if (x := figures.get(key)) is not None),
        *_statements(geographic, semantic, publishing, service),
        *_product_rows(publishing, service),
    )
    tell(6, 6)
    return Reproduction(rows, publishing, service, made, r[drawn], seed[drawn], train, geographic, semantic)


def _share_per_seed(made: Fakes, train: Traces) -> Floats:
    """Return (N,) the share of the attempts on each seed that pass the geographic and the intersection test."""
    return np.asarray(np.bincount(made.seed, minlength=len(train)) / np.maximum(made.attempts, 1))


def _service(
    train: Traces, test: Traces, made: Any, classes: Any, repeats: Any, executor: Any, rng: np.random.Generator
) -> LbsResult:
    """Return the service scenario with fakes of the user's own seed, as the paper has it, and of others' (E66)."""
    r, seed, loglik = made
    users = np.unique(train.user[seed])  # nobody else has a fake of her own
    maker = np.searchsorted(users, train.user[seed])
    days = train.of_users(users), test.of_users(users)
    generators = five_generators(days[0], PoolGenerator(r, maker, loglik, own=True))
    generators[OTHERS] = PoolGenerator(r, maker, loglik)
    known: dict[str, Any] = {"classes": classes, "adversaries": ["aggregate"]}  # the paper's adversary
    return evaluate_lbs(*days, generators, **known, repeats=repeats, executor=executor, rng=rng)


def _intervals(
    figures: dict[str, float | None],
    train: Traces,
    made: Fakes,
    r: Codes,
    seed: Ints,
    publishing: PublishingResult,
    rng: np.random.Generator,
) -> dict[str, Interval]:
    """
    Return 95 % intervals of the method's `figures`, by the keys of `NUMBERS`: users and runs drawn again.

    Each draw takes as many users as there are, with replacement, and one fake of each; the interval is 1.96 standard
    deviations of what the draws give on either side. Of a standard deviation over the datasets, the interval of a
    normal law.
    """
    have, first = np.unique(seed, return_index=True)
    size = np.diff(np.append(first, len(seed)))
    draws: dict[str, list[float]] = {}
    scene = Scene(train.r, train.user, None, r, None, train.locations)
    for i in range(RESAMPLES):
        some = rng.integers(len(have), size=len(have))
        fake = r[first[some] + (rng.random(len(have)) * size[some]).astype(np.int64)]
        for key, value in scene.compare(train.r[have[some]], fake, EPSILON if i < OF_MODELS else None).items():
            draws.setdefault(key, []).append(value)
    shares = _share_per_seed(made, train)
    draws["passed"] = shares[rng.integers(len(shares), size=(RESAMPLES, len(shares)))].mean(axis=1).tolist()
    out: dict[str, Interval] = {}
    for key, values in draws.items():
        # users drawn twice go to fewer places, so the draws are off by that: their spread counts, not their middle
        reach = 1.96 * float(np.std(values))
        for kind in ("", " mean", " median", " fakes"):
            if (figure := figures.get(key + kind)) is not None:
                out[key + kind] = max(0.0, figure - reach), figure + reach
    n = publishing.sizes["datasets"]
    for key in (table[0] for table in TABLES):
        if (figure := figures.get(f"{key} std")) is not None:
            low, high = (figure * np.sqrt((n - 1) / chi2.ppf(q, n - 1)) for q in (0.975, 0.025))
            out[f"{key} std"] = float(low), float(high)
    return out


def _numbers(train: Traces, fakes: Fakes, first_two: float, publishing: PublishingResult) -> dict[str, float | None]:
    """Return our values, by the keys of `NUMBERS` and others."""
    figures: dict[str, Any] = {"users": train.U, "places": train.R, "kappa": fakes.kappa, "passed": first_two}
    groups = {name: publishing.aggregate[name] for name in ("p_bar", "pi_bar")}
    groups |= {name: publishing.visits[name] for name in ("all", "top")}
    groups |= {f"time {j}": figure for j, figure in publishing.allocation.items()}
    for name, group in groups.items():
        figures |= {f"{name} {kind}": value for kind, value in group["fakes"].items()}
        figures[f"{name} fakes"] = group["fakes"]["mean"]
        figures |= {f"{name} {kind}": group.get(kind) for kind in ("testing", "uniform", "single")}
        if "random_unsorted" in group:  # the paper's, see E70
            figures[f"{name} random"] = group["random_unsorted"]["mean"]
    return figures


def _number_row(key: str, ours: float, interval: Interval | None = None) -> Row:
    number = NUMBERS[key]
    beside = number.place, number.what, number.value, int(ours) if float(ours).is_integer() else float(ours)
    if number.of_data:
        return Row(*beside, None, None, OTHER_DATA)
    low, high = interval or (ours, ours)
    gap = max(low - number.value, number.value - high)
    return Row(*beside, interval, bool(gap <= 0), "inside" if gap <= 0 else f"outside by {gap:.3g}")


def _statements(
    geographic: Floats, semantic: Floats, publishing: PublishingResult, service: LbsResult
) -> tuple[Row, ...]:
    """Return what the text concludes from figures and tables, each as something that could fail."""
    samples = publishing.samples
    places, meaning, own = (float(np.median(x)) for x in (geographic, semantic, samples["semantic"]))
    small = float((samples["differential"] < 0.1).mean())
    line = [np.quantile(samples[name], np.linspace(0.02, 0.98, 49)) for name in ("real_real", "fake_fake")]
    r, apart = float(np.asarray(np.corrcoef(line))[0, 1]), float(np.mean(np.abs(line[0] - line[1])))
    rows = [
        _holds("fig:real-gs-similarity a", "geographic similarity of two users: most near 0",
               f"median {places:.2f}", places < 0.2),
        _holds("fig:real-gs-similarity b", "semantic similarity of two users: most high",
               f"median {meaning:.2f}", meaning > 0.5),
        _holds("fig:deltas-fakeset2", "most differences of semantic similarity are small (below .1)",
               f"{small:.0%} are", small > 0.5),
        _holds("fig:real-fake-semantic-similarity", "fakes are semantically similar to their seeds",
               f"median {own:.2f}", own > 0.5),
        _holds("fig:fake-fake-semantic-similarity-qq", "quantiles of real-real and fake-fake similarity on a line",
               f"correlation {r:.3f}, mean distance {apart:.2f}", r > 0.95),
    ]  # fmt: skip
    return (*rows, *_table_statements(publishing), *_service_statements(service))


def _table_statements(publishing: PublishingResult) -> list[Row]:
    """Return what the text says of the three tables."""
    rows = []
    for key, place in (("all", "tbl:vistprob-kl"), ("top", "tbl:vistprob-kl-50mp")):
        figure = publishing.visits[key]
        order = figure["testing"], figure["fakes"]["mean"], figure["uniform"], figure["single"]
        what = "testing is closer than fakes, fakes are closer than uniform and single"
        rows.append(_holds(place, what, ", ".join(f"{x:.4f}" for x in order), order[0] < order[1] < min(order[2:])))
    place = "tbl:timealloc-kl"
    for rank, figure in publishing.allocation.items():
        three = figure["fakes"]["mean"], figure["uniform"], figure["random_unsorted"]["mean"]  # E70
        what = f"time at the place of rank {rank}: fakes are closer than uniform and random"
        rows.append(_holds(place, what, ", ".join(f"{x:.4f}" for x in three), three[0] < min(three[1:])))
    closer = [figure["fakes"]["mean"] < figure["testing"] for figure in publishing.allocation.values()]
    what, ours = "sometimes the fakes are closer than testing", f"at {sum(closer)} of {len(closer)} ranks"
    return [*rows, _holds(place, what, ours, any(closer))]


def _service_statements(service: LbsResult) -> list[Row]:
    """Return what the text says of the service."""
    rows = []
    for m in service.n_fakes:
        decoys, ceiling = "1 fake" if m == 1 else f"{m} fakes", m / (m + 1)
        error = {name: service.figure(name, m)["median"] for name in service.generators if name != OTHERS}
        best = max((n for n in error if n != OURS), key=lambda n: error[n])
        beaten = max(value for name, value in error.items() if name not in (OURS, USER))
        ours, near = f"{error[OURS]:.2f}", abs(error[OURS] - ceiling) <= CLOSE * ceiling
        interval = service.figure(OURS, m)["interval"]
        rows += [
            _holds("fig:locationprivacy", f"{decoys}: ours misleads tracking more than all others",
                   f"{ours}, next {best} {error[best]:.2f}", error[OURS] >= error[best], interval),
            _holds("Service, Results", f"{decoys}: privacy very close to the maximum (m/(m+1) = {ceiling:.2f})",
                   ours, near),
            _holds("Service, Results", f"{decoys}: of the others the walk on the user (RW user) comes closest to ours",
                   f"{USER} {error[USER]:.2f}, next {beaten:.2f}", beaten <= error[USER] <= error[OURS]),
        ]  # fmt: skip
    for cost, (part, kind) in enumerate((("a", "places"), ("b", "classes"))):
        sent = {
            name: float(np.nanmedian(service.overhead[:, g, -1, cost]))
            for g, name in enumerate(service.generators)
            if name != OTHERS
        }
        fewer = max(sent[OURS], sent[USER]) < min(sent[name] for name in sent if name not in (OURS, USER))
        what = f"ours and the walk on the user send fewer different {kind} than the random strategies"
        figures = ", ".join(f"{name} {value:.1f}" for name, value in sent.items())
        rows.append(_holds(f"fig:locationprivacy {part}", what, figures, fewer))
    return rows


def _holds(place: str, what: str, ours: str, agrees: bool, interval: Any = None) -> Row:
    """Return the row of a statement."""
    why = "" if agrees else f"here {ours}"
    return Row(place, what, "stated", ours, interval and tuple(interval), bool(agrees), why)


def _product_rows(publishing: PublishingResult, service: LbsResult) -> list[Row]:
    """Return the same figures the product's way: fakes of other people's seeds, Random sorted as the fakes are."""
    rows = []
    for m in service.n_fakes:
        figure = service.figure(OTHERS, m)
        why = "the product never hides a user behind fakes of her own seed (E66)"
        what = f"{m} fake{'s' * (m > 1)} of other people's seeds: error of tracking"
        rows.append(Row("product", what, "-", figure["median"], tuple(figure["interval"]), None, why))
    for j, figure in publishing.allocation.items():
        why = "sorted over people, as the fakes are (E70)"
        rows.append(
            Row("product", f"KL of time at place {j}, random, sorted", "-", figure["random"]["mean"], None, None, why)
        )
    return rows
