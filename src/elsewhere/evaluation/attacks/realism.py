"""
A15: can a classifier tell fakes from real people? Hold-out people against fakes, by two descriptions of a day.

What heads the finding is the judge's own description (`day_features`), which no generator is taught; beside it stand
twelve plain features. Both sides are described alike: whatever compares with other people (popularity, steps
seen, likelihood) is counted over a half of the hold-out people that is not judged, for a real day as for a fake one.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from elsewhere.evaluation.attacks.day_features import NAMES, day_features
from elsewhere.evaluation.attacks.finding import Finding, Fresh, flagged_too
from elsewhere.evaluation.attacks.grams import Grams
from elsewhere.evaluation.attacks.ground import Ground, People
from elsewhere.evaluation.attacks.intervals import LEVEL, Rate, auc, worst_auc
from elsewhere.traces.model import Floats, Ints

BAR = 0.60
FOLDS = 5
MOST_DAYS = 2000  # of either side; single features see all fakes
CLASSIFIERS = 2
JOINT = 1 - (1 - LEVEL) / CLASSIFIERS  # one interval for both
CROSS = 1.3  # an AUC by cross-validation scatters so much more than that of a fixed score (decision 22)
FEATURES = (
    "moves",
    "distinct_cells",
    "dwell_entropy",
    "radius_of_gyration",
    "maximum_speed",
    "log_likelihood",
    "top_cell_share",
    "return_rate",
    "night_cell",
    "first_is_last",
    "bigram_rarity",
    "popularity_rank",
)


def features(r: Ints, ground: Ground, reference: Grams) -> Floats:
    """(N, 12) the features of each trace, in the order of `FEATURES`."""
    N, L = r.shape
    moved = r[:, 1:] != r[:, :-1]
    ordered = np.sort(r, axis=1)
    fresh = np.diff(ordered, axis=1, prepend=ordered[:, :1] - 1) != 0
    run = np.cumsum(fresh, axis=1) - 1
    share = np.zeros((N, L))
    np.add.at(share, (np.arange(N)[:, None], run), 1 / L)
    moves = moved.sum(axis=1)
    distinct = fresh.sum(axis=1)
    # a move leads back unless it discovers a place: all places but the first are discovered by a move
    returns = np.divide(moves - (distinct - 1), moves, out=np.zeros(N), where=moves > 0)
    rare = reference.unseen(r) * moved
    night = _night(ground.minutes)
    return np.column_stack(
        [
            moves,
            distinct,
            -(share * np.log(np.where(share > 0, share, 1))).sum(axis=1),
            *_geometry(r, ground),
            reference.log_chain(r),
            share.max(axis=1),
            returns,
            np.log(reference.at_hour(r)[:, night] + 0.5).mean(axis=1),
            r[:, 0] == r[:, -1],
            np.divide(rare.sum(axis=1), moves, out=np.zeros(N), where=moves > 0),
            -np.log(reference.popularity(r)).mean(axis=1),
        ]
    ).astype(np.float64)


def _night(minutes: Floats) -> Ints:
    """Instants between midnight and six; the first instant where the traces have no night."""
    night = np.flatnonzero(minutes < 360)
    return night if len(night) else np.zeros(1, dtype=np.int64)


def _geometry(r: Ints, ground: Ground) -> tuple[Floats, Floats]:
    """Radius of gyration (km) and highest speed (km/h); 0 and moves per hour without coordinates."""
    speed = ground.locations.distance(r[:, :-1], r[:, 1:]).max(axis=1, initial=0.0) * 60 / ground.step_minutes
    if not ground.locations.has_coordinates:
        return np.zeros(len(r)), speed
    xy = ground.locations.planar()[r]
    return np.sqrt(((xy - xy.mean(axis=1, keepdims=True)) ** 2).sum(axis=2).mean(axis=1)), speed


Describe = Callable[[Ints, Ground, Grams], Floats]


def days_of(r: Ints, ground: Ground, reference: Grams) -> Floats:
    """The judge's own description of each trace."""
    return day_features(r, ground.locations, reference)


class Side(NamedTuple):
    """Traces of one side, and whose each row is."""

    r: Ints
    user: Ints


class Told(NamedTuple):
    """Cross-validated AUC, and the same over the tenth of the people who are told best."""

    rate: Rate
    worst: float


class Judge:
    """
    Tells hold-out people from others in two turns: one half describes, the other half is judged, then they change.

    Within a turn one reference describes everybody. Folds that describe each other would not do: a place that the own
    fold visits more is a little less known to the others, for real people alone, and trees learn it.
    """

    def __init__(self, ground: Ground, rng: np.random.Generator) -> None:
        people = ground.strangers
        self.ground, self.rng, self.people = ground, rng, people
        half = (rng.permutation(people.U) % 2)[people.user]
        rows = [np.flatnonzero(half == k) for k in (0, 1)]
        self.real = [Side(people.r[mine], people.user[mine]) for mine in rows]
        self.references = [
            Grams(People(people.r[others], people.user[others], people.U), ground.R, ground.hour)
            for others in reversed(rows)
        ]

    def some(self, there: Side) -> Side:
        """At most `MOST_DAYS` rows, at random."""
        rows = np.sort(self.rng.permutation(len(there.r))[:MOST_DAYS])
        return Side(there.r[rows], there.user[rows])

    def tell_apart(self, others: Side, describe: Describe) -> dict[str, Told]:
        """Both classifiers on hold-out people against the other side, by one description."""
        others = self.some(others)
        scores: dict[str, list[Floats]] = {}
        real = [self.some(side) for side in self.real]
        for mine, reference in zip(real, self.references, strict=True):
            x, y = (describe(there.r, self.ground, reference) for there in (mine, others))
            for name, score in scored(x, y, mine.user, others.user, self.rng).items():
                scores.setdefault(name, []).append(score)
        known, group = np.concatenate([side.user for side in real]), np.tile(others.user, len(real))
        found = {}
        for name, turns in scores.items():
            if len(turns) == len(real):
                above = np.concatenate([turn[: len(side.r)] for turn, side in zip(turns, real, strict=True)])
                below = np.concatenate([turn[len(side.r) :] for turn, side in zip(turns, real, strict=True)])
                rate = auc(above, below, group, level=JOINT, positive_group=known)
                found[name] = Told(wider(rate, CROSS), worst_auc(above, below, group))
        return found

    def described(self, others: Side, describe: Describe) -> tuple[Floats, Floats]:
        """Features of all hold-out people, each by the half that is not theirs, and of others, by one half each."""
        halves = others.user % 2
        real = [describe(mine.r, self.ground, ref) for mine, ref in zip(self.real, self.references, strict=True)]
        other = [describe(others.r[halves == k], self.ground, ref) for k, ref in enumerate(self.references)]
        order = np.argsort(np.concatenate([np.flatnonzero(halves == k) for k in (0, 1)]))
        return np.concatenate(real), np.concatenate(other)[order]


def folds_of(user: Ints, folds: int, rng: np.random.Generator) -> Ints:
    """A fold for every row: people at random into folds of equal size, all rows of one person into one."""
    _, number = np.unique(user, return_inverse=True)
    return np.asarray((rng.permutation(int(number.max()) + 1) % folds)[number])


def scored(x: Floats, y: Floats, known: Ints, group: Ints, rng: np.random.Generator) -> dict[str, Floats]:
    """
    How real each row of `x` (real people) and `y` looks to two classifiers that have not seen it, as ranks of its fold.

    Nothing where there are too few people for two folds.
    """
    from scipy.stats import rankdata
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    folds = min(FOLDS, len(np.unique(known)), len(np.unique(group)))
    if folds < 2:
        return {}
    both, real = np.concatenate([x, y]), np.arange(len(x) + len(y)) < len(x)
    fold = np.concatenate([folds_of(known, folds, rng), folds_of(group, folds, rng)])
    kinds: dict[str, Any] = {
        "logistic_regression": lambda: make_pipeline(
            StandardScaler(), LogisticRegression(C=0.1, max_iter=1000, class_weight="balanced")
        ),
        "boosted_trees": lambda: HistGradientBoostingClassifier(
            max_iter=50, learning_rate=0.1, max_leaf_nodes=15, max_bins=63, early_stopping=False, random_state=0
        ),
    }
    found = {}
    for name, make in kinds.items():
        score = np.empty(len(both))
        # on tables this small threads wait for each other more than they work
        with threadpool_limits(1):
            for k in range(folds):
                model = make().fit(both[fold != k], real[fold != k])
                here = fold == k
                score[here] = rankdata(model.decision_function(both[here])) / (here.sum() + 1)
        found[name] = score
    return found


def wider(rate: Rate, times: float) -> Rate:
    """The same figure with an interval so many times as wide."""
    half = times * max(rate.high - rate.value, rate.value - rate.low)
    return Rate(rate.value, max(0.0, rate.value - half), min(1.0, rate.value + half))


def best_of(rates: list[Rate]) -> Rate:
    """The classifier that tells more; one half where there was too little to learn from."""
    return max(rates, key=lambda rate: rate.value, default=Rate(0.5, 0.0, 1.0))


def best(found: dict[str, Told]) -> Rate:
    """The same, of what a judge has told."""
    return best_of([told.rate for told in found.values()])


def single_features(real: Floats, fake: Floats, group: Ints) -> dict[str, Rate]:
    """AUC of each feature alone, real people above fakes, whichever way round tells more."""
    found = {}
    for i, name in enumerate(FEATURES):
        rate = auc(real[:, i], fake[:, i], group)
        found[name] = rate if rate.value >= 0.5 else Rate(1 - rate.value, 1 - rate.high, 1 - rate.low)
    return found


def spread(real: int, fakes: int) -> float:
    """Standard deviation of the cross-validated AUC between so many real people and so many others of their kind."""
    return CROSS * math.sqrt((1 / real + 1 / fakes) / 12)


def fresh_people(chance: Rate, real: int, fakes: int) -> Fresh:
    """
    How often the bar flags fresh real people: their AUC is one half, give or take `spread`, unless they are told.

    Examples
    --------
    >>> half = Rate(0.5, 0.45, 0.55)
    >>> [round(fresh_people(half, n, 2 * n).flagged, 2) for n in (60, 120, 250)]
    [0.92, 0.69, 0.22]

    """
    normal, each = NormalDist(), spread(real, fakes)
    middle = chance.value if chance.low > 0.5 else 0.5
    above = 1 - normal.cdf((BAR - middle) / each - normal.inv_cdf(0.5 + JOINT / 2))
    return Fresh(chance, 1 - (1 - above) ** CLASSIFIERS)


def judged(main: Rate, fresh: Fresh, real: int, fakes: int) -> bool | None:
    """The verdict; with people so few that real days would be told by luck, a low figure is no pass either."""
    if main.high <= BAR:
        return True if NormalDist().inv_cdf(0.5 + JOINT / 2) * spread(real, fakes) <= BAR - 0.5 else None
    return False if fresh.pass_it or main.low > fresh.rate.high else None


def real_or_fake(ground: Ground) -> Finding:
    """A15."""
    judge = Judge(ground, ground.rng("A15"))
    maker = np.arange(len(ground.fakes)) if ground.owner is None else ground.main.user
    # beside the fakes real people in their place: what remains is chance
    fakes, seeds = Side(ground.fakes, maker), Side(ground.seeds.r, ground.seeds.user)
    told, between = (judge.tell_apart(other, days_of) for other in (fakes, seeds))
    twelve, twelve_between = (judge.tell_apart(other, features) for other in (fakes, seeds))
    main, chance = best(told), best(between)
    people, makers = ground.strangers.U, len(np.unique(maker))
    fresh = fresh_people(chance, people, makers)
    passed = judged(main, fresh, people, makers)
    real, fake = judge.described(fakes, features)
    singles = single_features(real, fake, fakes.user)
    top = max(singles, key=lambda name: singles[name].value)
    few = f" No verdict: {people} hold-out people are too few." if passed is None and main.high <= BAR else ""
    return Finding(
        "A15",
        main=main.value,
        interval=main,
        control=chance.value,
        control_interval=chance,
        baseline=0.5,
        null=chance,
        fresh=fresh,
        bar=BAR,
        passed=passed,
        reachable=fresh.pass_it,
        worst_decile=max((t.worst for t in told.values()), default=None),
        words=f"A classifier that looks at {len(NAMES)} features of a day tells fakes from real people with AUC "
        f"{main.value:.3f}; real people from other real people with {chance.value:.3f}. By twelve features that a "
        f"generator may be taught it is {best(twelve).value:.3f}. The most telling of them alone is "
        f"{top.replace('_', ' ')} ({singles[top].value:.3f}).{few}"
        + ("" if few else flagged_too(passed, fresh, f"an AUC of {chance.value:.3f}")),
        details={
            "classifiers": {name: t.rate for name, t in told.items()},
            "twelve": best(twelve),
            "twelve_control": best(twelve_between),
            "twelve_classifiers": {name: t.rate for name, t in twelve.items()},
            "single": {name: rate.value for name, rate in singles.items()},
            "single_interval": singles,
            "mean_real": dict(zip(FEATURES, real.mean(axis=0).tolist(), strict=True)),
            "mean_fake": dict(zip(FEATURES, fake.mean(axis=0).tolist(), strict=True)),
        },
    )
