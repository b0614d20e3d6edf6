"""
The attack that tells fakes from real people by a classifier (A15).

It describes a life by some sixty numbers, none of which a generator may be fitted to: those of `measures`, and shares
of stays, hours, trips, returns, turns and of what other people do. Both sides are described alike: whatever compares
with other people is counted over the half of the strangers that is not judged, for real people as for fakes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import Floats, Ints, Visits
from elsewhere.evaluation.attack_base import (
    LEVEL,
    Case,
    Finding,
    Needs,
    Rate,
    auc,
    by_user,
    percent,
    two_sided,
    verdict,
)
from elsewhere.evaluation.measures import HOUR, Crowd, Plan, lasting
from elsewhere.scale import one_thread

BAR = 0.60
FOLDS = 5
MOST_LIVES = 5000  # of either side
JOINT = 1 - (1 - LEVEL) / 2  # one interval for two classifiers
CROSS = 1.3  # an AUC by cross-validation scatters so much more than that of a fixed score (106 pairs of real groups)
STAYS = (15, 30, 60, 120, 240, 480, 960)  # minutes
TRIPS = (0.3, 1.0, 3.0, 10.0, 30.0)  # km


def _shares(bin_of: Ints, row: Ints, bins: int, N: int) -> Floats:
    """Return (N, bins) the share of each row's entries in each bin."""
    count = np.bincount(row * bins + bin_of, minlength=N * bins).reshape(N, bins).astype(np.float64)
    return np.asarray(count / np.maximum(count.sum(axis=1, keepdims=True), 1))


def _mean(values: NDArray[Any], row: Ints, N: int) -> Floats:
    return np.asarray(np.bincount(row, values, N) / np.maximum(np.bincount(row, minlength=N), 1))


def describe_lives(visits: Visits, reference: Visits, plan: Plan) -> dict[str, Floats]:
    """Return (U,) numbers of each life; `reference` are other people on the same map, nobody of those described."""
    crowd = Crowd(visits, plan)
    v, N, R = visits, visits.U, visits.R
    out = {name: np.nan_to_num(values) for name, values in crowd.people.items()}
    row, hour, _ = crowd._hours
    days = np.bincount(crowd.person_days[0], minlength=N)
    origin, target, arrives = crowd.moves
    who = v.user[arrives].astype(np.int64)
    out["moves_per_day"] = np.bincount(who, minlength=N) / np.maximum(days, 1)
    first, seconds = crowd._stays
    stayed = v.user[first].astype(np.int64)
    tables = {
        "stays": _shares(np.searchsorted(STAYS, seconds / 60), stayed, len(STAYS) + 1, N),
        "arrivals": _shares(v.start[arrives] // HOUR % 24 // 2, who, 12, N),
        "presence": _shares(hour % 24 // 4 + 6 * ((hour // 24 + 3) % 7 >= 5), v.user[row].astype(np.int64), 12, N),
    }
    tables["time_at_place"] = crowd.time_shares(5)
    next_to = np.flatnonzero((arrives[1:] == arrives[:-1] + 1) & (who[1:] == who[:-1]))
    out["back_at_once"] = _mean(origin[next_to] == target[next_to + 1], who[next_to], N)
    out["days"] = days.astype(np.float64)
    if v.locations.has_coordinates:
        km = crowd.trip_lengths
        tables["trips"] = _shares(np.searchsorted(TRIPS, km), who, len(TRIPS) + 1, N)
        out |= {"km_mean": _mean(km, who, N), "km_spread": np.sqrt(_mean(km**2, who, N))}
        leg = v.locations.planar()[target] - v.locations.planar()[origin]
        cosine = (leg[next_to] * leg[next_to + 1]).sum(axis=1)
        size = np.linalg.norm(leg[next_to], axis=1) * np.linalg.norm(leg[next_to + 1], axis=1)
        cosine = cosine / np.maximum(size, 1e-12)
        turns = {"turn": cosine, "turned_back": cosine < -0.85, "straight_on": cosine > 0.85}
        out |= {name: _mean(values, who[next_to], N) for name, values in turns.items()}
    out |= _compared_with(Crowd(reference, plan), v, (row, hour), (who, origin * R + target))
    for name, table in tables.items():
        out |= {f"{name}_{i}": table[:, i] for i in range(table.shape[1])}
    return out


def _compared_with(other: Crowd, v: Visits, hours: tuple[Ints, Ints], moves: tuple[Ints, Ints]) -> dict[str, Floats]:
    """Return how usual places, hours and moves are among other people."""
    (row, hour), (who, move), reference = hours, moves, other.visits
    N, R = v.U, v.R
    user = v.user[row].astype(np.int64)
    popular = np.log(np.bincount(reference.place, minlength=R) + 0.5)[v.place[row]]
    there, when, _ = other._hours
    at_hour = count_in((when % 24) * R + reference.place[there], (hour % 24) * R + v.place[row])
    origin, target, _ = other.moves
    made = count_in(origin * R + target, move)
    mean = _mean(popular, user, N)
    return {
        "popularity": mean,
        "popularity_spread": np.sqrt(np.maximum(_mean(popular**2, user, N) - mean**2, 0)),
        "hours_unseen": _mean(at_hour == 0, user, N),
        "hour_likelihood": _mean(np.log(at_hour + 0.5), user, N),
        "moves_unseen": _mean(made == 0, who, N),
        "move_likelihood": _mean(np.log(made + 0.5), who, N),
    }


def count_in(keys: Ints, wanted: Ints) -> Ints:
    """Return how often each wanted key is among the keys."""
    ordered = np.sort(keys)
    return np.asarray(np.searchsorted(ordered, wanted, "right") - np.searchsorted(ordered, wanted, "left"))


def score_by_classifiers(x: Floats, y: Floats, known: Ints, group: Ints, rng: np.random.Generator) -> dict[str, Floats]:
    """
    Return how real rows of `x` (real people `known`) and `y` (fakes of `group`) look to two classifiers that have not
    seen them, as ranks of their fold; nothing where there are too few people for two folds.
    """
    from scipy.stats import rankdata
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    folds = min(FOLDS, len(np.unique(known)), len(np.unique(group)))
    if folds < 2:
        return {}
    both, real = np.concatenate([x, y]), np.arange(len(x) + len(y)) < len(x)
    fold = np.concatenate([_folds(known, folds, rng), _folds(group, folds, rng)])
    kinds: dict[str, Any] = {
        "logistic_regression": lambda: make_pipeline(
            StandardScaler(), LogisticRegression(C=0.1, max_iter=1000, class_weight="balanced")
        ),
        "boosted_trees": lambda: HistGradientBoostingClassifier(
            max_iter=50, learning_rate=0.1, max_leaf_nodes=15, max_bins=63, early_stopping=False, random_state=0
        ),
    }
    ranks = {}
    with one_thread():  # on tables this small threads wait for each other more than they work
        for name, make in kinds.items():
            score = np.empty(len(both))
            for k in range(folds):
                model, here = make().fit(both[fold != k], real[fold != k]), fold == k
                score[here] = rankdata(model.decision_function(both[here])) / (here.sum() + 1)
            ranks[name] = score
    return ranks


def _folds(user: Ints, folds: int, rng: np.random.Generator) -> Ints:
    """Return a fold for every row: people at random into folds of equal size, all rows of one person into one."""
    _, number = np.unique(user, return_inverse=True)
    return np.asarray((rng.permutation(int(number.max()) + 1) % folds)[number])


Told = dict[str, tuple[Rate, float]]  # by classifier the AUC, and that over the tenth of the others told best


def tell_apart(
    real: list[Visits], other: Visits, group: Ints, rng: np.random.Generator
) -> tuple[Told, dict[str, Floats], dict[str, Floats]]:
    """
    Tell real people from others; either half of the real people is judged in turn while the other half describes.

    The numbers of real and of other lives come with it.
    """
    scores: dict[str, list[tuple[Floats, Floats]]] = {}
    described: list[tuple[dict[str, Floats], dict[str, Floats]]] = []
    plan = Plan(other.locations, timed=lasting(*real))
    for judged, reference in (real, real[::-1]):
        described.append((describe_lives(judged, reference, plan), describe_lives(other, reference, plan)))
        x, y = (np.column_stack(list(side.values())) for side in described[-1])
        for name, score in score_by_classifiers(x, y, np.arange(len(x)), group, rng).items():
            scores.setdefault(name, []).append((score[: len(x)], score[len(x) :]))
    out = {}
    for name, turns in scores.items():
        above, below = (np.concatenate(side) for side in zip(*turns, strict=True))
        groups = np.tile(group, len(turns))
        each = np.sort(by_user(1 - np.searchsorted(np.sort(above), below) / len(above), groups))[::-1]
        rate = auc(above, below, groups, level=JOINT)
        half = CROSS * max(rate.high - rate.value, rate.value - rate.low)
        rate = Rate(rate.value, max(0.0, rate.value - half), min(1.0, rate.value + half))
        out[name] = rate, float(each[: -(-len(each) // 10)].mean())
    mine, others = ({n: np.concatenate([turn[i][n] for turn in described]) for n in described[0][i]} for i in (0, 1))
    return out, mine, others


def real_or_fake(case: Case) -> Finding:
    """Tell real people from fakes by classifiers of their lives (A15)."""
    rng, strangers = case.rng(), case.others
    people, fakes, seeds = strangers.visits, case.fakes.visits, case.seeds.visits
    if people is None or fakes is None or seeds is None or people.U < 4:
        raise Needs("`holdout` of at least 4 people")
    order = rng.permutation(people.U)
    half = [people.of_users(np.sort(order[i::2])) for i in (0, 1)]
    some = np.sort(rng.permutation(fakes.U)[:MOST_LIVES])
    told, real, fake = tell_apart(half, fakes.of_users(some), case.units[some], rng)
    between, _, _ = tell_apart(half, seeds, np.arange(seeds.U), rng)
    if not told:
        raise Needs("more people than there are, to train on")
    name = max(told, key=lambda each: told[each][0].value)
    main, worst = told[name]
    chance = max((rate for rate, _ in between.values()), key=lambda rate: rate.value)
    single = {each: two_sided(auc(real[each], fake[each])).value for each in real}
    top = max(single, key=lambda each: single[each])
    words = f"A classifier of {len(real)} features of a life, shown a fake and a real person, picks the fake in "
    words += f"{percent(main.value)} of the cases, and one real group from another in {percent(chance.value)}; the "
    words += f"strongest feature alone is {top.replace('_', ' ')} ({percent(single[top])})."
    details = {
        "classifiers": {each: rate for each, (rate, _) in told.items()},
        "single": single,
        "mean_fake": {each: float(values.mean()) for each, values in fake.items()},
    }
    return Finding(main, chance, chance, None, 0.5, BAR, verdict(main, BAR, chance), worst, words, details=details)
