"""
A15: can a classifier tell fakes from real people? Hold-out people against fakes, twelve features of a trace.

Everybody is described by the other hold-out people (popularity, steps seen, likelihood), so a real trace is as unknown
to its description as a fake is.
"""

from typing import Any

import numpy as np

from elsewhere.evaluation.attacks.finding import Finding
from elsewhere.evaluation.attacks.grams import Grams
from elsewhere.evaluation.attacks.ground import Ground
from elsewhere.evaluation.attacks.intervals import Rate, auc, worst_auc
from elsewhere.traces.model import Floats, Ints

BAR = 0.60
FOLDS = 5
MOST_FAKES = 2000  # for the classifiers; single features see all fakes
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


def features(r: Ints, ground: Ground, reference: Grams, skip: Ints | None = None) -> Floats:
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
    rare = reference.unseen(r, skip) * moved
    night = _night(ground.minutes)
    return np.column_stack(
        [
            moves,
            distinct,
            -(share * np.log(np.where(share > 0, share, 1))).sum(axis=1),
            *_geometry(r, ground),
            reference.log_chain(r, skip),
            share.max(axis=1),
            returns,
            np.log(reference.at_hour(r[:, :], skip)[:, night] + 0.5).mean(axis=1),
            r[:, 0] == r[:, -1],
            np.divide(rare.sum(axis=1), moves, out=np.zeros(N), where=moves > 0),
            -np.log(reference.popularity(r, skip)).mean(axis=1),
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


def tell_apart(real: Floats, fake: Floats, group: Ints, rng: np.random.Generator) -> dict[str, tuple[Rate, float]]:
    """Cross-validated AUC of two classifiers, over all fakes and over the worst decile of `group`, kept in one fold."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    x = np.concatenate([real, fake])
    y = np.arange(len(x)) < len(real)
    _, number = np.unique(group, return_inverse=True)
    folds = min(FOLDS, len(real), int(number.max()) + 1)
    if folds < 2:
        return {}
    fold = np.concatenate(
        [rng.permutation(len(real)) % folds, (rng.permutation(int(number.max()) + 1) % folds)[number]]
    )
    kinds: dict[str, Any] = {
        "logistic_regression": lambda: make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=1000, class_weight="balanced")
        ),
        "boosted_trees": lambda: HistGradientBoostingClassifier(
            max_iter=50,
            learning_rate=0.1,
            max_leaf_nodes=15,
            class_weight="balanced",
            early_stopping=False,
            random_state=0,
        ),
    }
    found = {}
    for name, make in kinds.items():
        score = np.empty(len(x))
        # on tables this small threads wait for each other more than they work
        with threadpool_limits(1):
            for k in range(folds):
                model = make().fit(x[fold != k], y[fold != k])
                score[fold == k] = model.predict_proba(x[fold == k])[:, 1]
        found[name] = auc(score[y], score[~y], group), worst_auc(score[y], score[~y], group)
    return found


def single_features(real: Floats, fake: Floats, group: Ints) -> dict[str, Rate]:
    """AUC of each feature alone, real people above fakes, whichever way round tells more."""
    found = {}
    for i, name in enumerate(FEATURES):
        rate = auc(real[:, i], fake[:, i], group)
        found[name] = rate if rate.value >= 0.5 else Rate(1 - rate.value, 1 - rate.high, 1 - rate.low)
    return found


def real_or_fake(ground: Ground) -> Finding:
    """A15."""
    rng, people = ground.rng("A15"), ground.strangers
    reference = Grams(people, ground.R, ground.hour)
    real = features(people.r, ground, reference, people.user)
    fake, seeds = (features(r, ground, reference) for r in (ground.fakes, ground.seeds.r))
    group = np.arange(len(fake)) if ground.owner is None else ground.main.user
    some = np.sort(rng.permutation(len(fake))[:MOST_FAKES])
    singles = single_features(real, fake, group)
    found = tell_apart(real, fake[some], group[some], rng)
    best_single = max(singles, key=lambda name: singles[name].value)
    rates = {name: rate for name, (rate, _) in found.items()}
    main = max([*rates.values(), singles[best_single]], key=lambda rate: rate.value)
    # the same against real people that are not hold-out: what remains is chance
    between = tell_apart(real, seeds, ground.seeds.user, rng)
    chance = max([*(rate for rate, _ in between.values()), Rate(0.5, 0.5, 0.5)], key=lambda rate: rate.value)
    return Finding(
        "A15",
        main=main.value,
        interval=main,
        control=chance.value,
        control_interval=chance,
        baseline=0.5,
        null=chance,
        bar=BAR,
        passed=True if main.high <= BAR else False if chance.high <= BAR or main.low > chance.high else None,
        reachable=chance.high <= BAR,
        worst_decile=max((worst for _, worst in found.values()), default=None),
        words=f"A classifier tells fakes from real people with AUC {main.value:.3f}; real people from other real "
        f"people with {chance.value:.3f}. The most telling single feature is {best_single.replace('_', ' ')} "
        f"({singles[best_single].value:.3f}).",
        details={
            "classifiers": rates,
            "single": {name: rate.value for name, rate in singles.items()},
            "single_interval": singles,
            "mean_real": dict(zip(FEATURES, real.mean(axis=0).tolist(), strict=True)),
            "mean_fake": dict(zip(FEATURES, fake.mean(axis=0).tolist(), strict=True)),
        },
    )
