"""
Attacks that tell fakes from real people: A15 by a classifier, A16 by filters.

A15: can a classifier tell fakes from hold-out people? It is given two descriptions of a day. The figure is that of
`day_features`, some seventy numbers on stays, returns, hours, ways and what other people do. No generator may be fitted
to these: it would no longer be judged by them. Beside it stand twelve plain features (`features`). Both sides are
described alike: whatever compares with other people (popularity, steps seen, likelihood) is counted over the half of
the hold-out people that is not judged, for a real day as for a fake one.

A16: which points would a filter reject? Steps that nobody makes, speeds that nobody reaches, places at hours at which
nobody is there. Filters learn from one half of the hold-out people and judge the other half and the fakes, then the
halves change places: fakes must be rejected as rarely as real people whom the filters do not know. Where groups of real
people as large as that of the fakes are flagged as well, there is no verdict.
"""

import math
from collections.abc import Callable, Iterable
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import Floats, Ints, Locations
from elsewhere.evaluation.attacks.finding import (
    LEVEL,
    Finding,
    Fresh,
    Rate,
    auc,
    by_user,
    difference,
    no_verdict_words,
    percent,
    points,
    two_sided,
    verdict,
    worst_auc,
)
from elsewhere.evaluation.attacks.grams import Grams
from elsewhere.evaluation.attacks.inputs import AttackInputs, People
from elsewhere.scale import one_thread
from elsewhere.sorting import distinct

STAYS = (1, 2, 4, 8, 16, 32)  # slots: a stay is at most as long, and longer than the one before
PARTS = 6
LAGS = (8, 4, 2)  # one eighth, one quarter, one half of the day
NAMES = (
    *(f"stays_up_to_{n}" for n in STAYS),
    "stays_longer",
    *("stay_mean", "stay_spread", "stay_longest", "stay_second"),
    *("back_at_once", "back_by_another", "passed_through", "seen_once", "seen_thrice"),
    *("gap_mean", "gap_shortest", "gap_longest"),
    *(f"time_at_place_{k}" for k in range(1, 6)),
    *(f"moves_in_part_{k}" for k in range(1, PARTS + 1)),
    *(f"places_in_part_{k}" for k in range(1, PARTS + 1)),
    *("first_move", "last_move", "middle_move", "spread_of_moves"),
    *("at_first_place", "at_first_place_late", "at_last_place_early", "top_place_late"),
    *("trips", "longest_trip", "move_after_move"),
    *(f"same_place_after_1_{n}" for n in LAGS),
    *("way", "step_mean", "step_median", "step_longest", "step_spread", "net", "straightness", "farthest"),
    *("turn_mean", "turned_back", "straight_on", "around_top_place", "trip_straightness"),
    *("move_likelihood", "move_likelihood_least", "stay_likelihood", "moves_unseen", "ways_unseen"),
    *("hour_likelihood", "hour_likelihood_least", "hours_unseen"),
    *("popularity_spread", "popularity_least", "popularity_of_top", "popularity_of_passed"),
)


class Stays(NamedTuple):
    """Maximal runs of one place, trace by trace: row, place, first slot, length."""

    row: Ints
    place: Ints
    first: Ints
    length: Ints


def find_stays(r: Ints) -> Stays:
    """Return all stays, trace by trace in the order of time."""
    N, L = r.shape
    begins = np.ones((N, L), dtype=bool)
    begins[:, 1:] = r[:, 1:] != r[:, :-1]
    start = np.flatnonzero(begins)
    return Stays(start // L, r.ravel()[start], start % L, np.diff(start, append=N * L))


def mean_of(values: NDArray[Any], row: Ints, N: int, *, empty: float = 0.0) -> Floats:
    """Return the mean of the values of each row."""
    count = np.bincount(row, minlength=N)
    return np.asarray(np.divide(np.bincount(row, values, N), count, out=np.full(N, empty), where=count > 0))


def _extreme(values: Floats, row: Ints, N: int, kind: np.ufunc, empty: float) -> Floats:
    out = np.full(N, -np.inf if kind is np.maximum else np.inf)
    kind.at(out, row, values)
    return np.where(np.isfinite(out), out, empty)


def day_features(r: Ints, locations: Locations, reference: Grams) -> Floats:
    """Return (N, len(NAMES)) the description of each trace, in the order of `NAMES`."""
    stays = find_stays(r)
    # the place of the longest stay of each trace, the first of equals
    order = np.lexsort((stays.first, -stays.length, stays.row))
    top = stays.place[order][np.searchsorted(stays.row[order], np.arange(len(r)))]
    columns = {
        **_stay_features(r, stays),
        **_hour_features(r, top),
        **_way_features(r, top, locations),
        **_reference_features(r, stays, top, reference),
    }
    return np.column_stack([columns[name] for name in NAMES]).astype(np.float64)


def _stay_features(r: Ints, stays: Stays) -> dict[str, Floats]:
    """Return how long, how often again, after how long, and how the time is shared out."""
    N, L = r.shape
    row, place, first, length = stays
    number = np.bincount(row, minlength=N)
    out: dict[str, Floats] = {}
    for name, low, high in zip(NAMES, (0, *STAYS), (*STAYS, np.inf), strict=False):
        out[name] = np.bincount(row, (length > low) & (length <= high), N) / number
    mean = mean_of(length, row, N)
    by_length = np.lexsort((-length, row))
    start = np.searchsorted(row, np.arange(N))
    second = length[by_length[np.minimum(start + 1, len(row) - 1)]]
    out |= {
        "stay_mean": mean / L,
        "stay_spread": np.sqrt(mean_of((length - mean[row]) ** 2.0, row, N)) / L,
        "stay_longest": length[by_length[start]] / L,
        "stay_second": np.where(number > 1, second, 0) / L,
    }
    same2 = (row[2:] == row[:-2]) & (place[2:] == place[:-2])
    same3 = (row[3:] == row[:-3]) & (place[3:] == place[:-3])
    moves = np.maximum(number - 1, 1)
    inner = np.zeros(len(row), dtype=bool)  # neither the first nor the last stay
    inner[1:-1] = (row[1:-1] == row[:-2]) & (row[1:-1] == row[2:])
    out |= {
        "back_at_once": np.bincount(row[2:][same2], minlength=N) / moves,
        "back_by_another": np.bincount(row[3:][same3], minlength=N) / moves,
        "passed_through": np.bincount(row[inner & (length == 1)], minlength=N) / number,
    }
    order = np.lexsort((first, place, row))
    a, b = order[:-1], order[1:]
    again = (row[a] == row[b]) & (place[a] == place[b])
    gap, who = (first[b] - first[a] - length[a])[again].astype(np.float64), row[a][again]
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = ~again
    group = np.cumsum(fresh) - 1
    times, of = np.bincount(group), row[order][fresh]
    places = np.bincount(of, minlength=N)
    time_at = np.bincount(group, length[order])
    order_of_time = np.lexsort((-time_at, of))
    begin, end = (
        np.searchsorted(of[order_of_time], np.arange(N)),
        np.searchsorted(of[order_of_time], np.arange(N), "right"),
    )
    out |= {
        "seen_once": np.bincount(of[times == 1], minlength=N) / places,
        "seen_thrice": np.bincount(of[times >= 3], minlength=N) / places,
        "gap_mean": mean_of(gap, who, N) / L,
        "gap_shortest": _extreme(gap, who, N, np.minimum, 0.0) / L,
        "gap_longest": _extreme(gap, who, N, np.maximum, 0.0) / L,
    }
    for k in range(5):
        at = np.minimum(begin + k, len(order_of_time) - 1)
        out[f"time_at_place_{k + 1}"] = np.where(begin + k < end, time_at[order_of_time[at]], 0) / L
    return out


def _hour_features(r: Ints, top: Ints) -> dict[str, Floats]:
    """Describe when moves are made, how many places each part of the day sees, where the day begins and ends."""
    N, L = r.shape
    moved = r[:, 1:] != r[:, :-1]
    row, at = np.nonzero(moved)
    moves = np.bincount(row, minlength=N)
    when = (at + 1) / L
    part = np.arange(L) * PARTS // L
    out: dict[str, Floats] = {}
    for k in range(PARTS):
        mine = np.flatnonzero(part == k)
        out[f"moves_in_part_{k + 1}"] = np.bincount(row[part[at + 1] == k], minlength=N) / np.maximum(moves, 1)
        places = np.sort(r[:, mine], axis=1)
        out[f"places_in_part_{k + 1}"] = (places[:, 1:] != places[:, :-1]).sum(axis=1) + float(len(mine) > 0)
    middle = mean_of(when, row, N, empty=0.5)
    late = np.arange(L) >= L // 2
    after = np.zeros((N, L), dtype=np.int64)  # moves in a row, up to this slot
    for t in range(1, L):
        after[:, t] = np.where(moved[:, t - 1], after[:, t - 1] + 1, 0)
    out |= {
        "first_move": _extreme(when, row, N, np.minimum, 1.0),
        "last_move": _extreme(when, row, N, np.maximum, 0.0),
        "middle_move": middle,
        "spread_of_moves": np.sqrt(mean_of((when - middle[row]) ** 2, row, N)),
        "at_first_place": (r == r[:, :1]).mean(axis=1),
        "at_first_place_late": (r[:, late] == r[:, :1]).mean(axis=1),
        "at_last_place_early": (r[:, ~late] == r[:, -1:]).mean(axis=1) if L > 1 else np.ones(N),
        "top_place_late": (r[:, late] == top[:, None]).mean(axis=1),
        "trips": (after == 1).sum(axis=1).astype(np.float64),
        "longest_trip": after.max(axis=1) / L,
        "move_after_move": (after > 1).sum(axis=1) / np.maximum(moves, 1),
    }
    for n in LAGS:
        lag = max(1, L // n)
        out[f"same_place_after_1_{n}"] = (r[:, lag:] == r[:, :-lag]).mean(axis=1) if lag < L else np.zeros(N)
    return out


def _way_features(r: Ints, top: Ints, locations: Locations) -> dict[str, Floats]:
    """
    Return lengths, turns and directness in km and radians; without coordinates every step to another place is 1
    long.
    """
    N = len(r)
    moved = r[:, 1:] != r[:, :-1]
    row, at = np.nonzero(moved)
    step = np.where(moved, locations.distance(r[:, :-1], r[:, 1:]), 0.0)
    moves = step[row, at]
    mean = mean_of(moves, row, N)
    order = np.lexsort((moves, row))
    count = np.bincount(row, minlength=N)
    begin = np.searchsorted(row, np.arange(N))
    middle = np.minimum(begin + count // 2, max(len(row) - 1, 0))
    way = step.sum(axis=1)
    net, far = locations.distance(r[:, 0], r[:, -1]), locations.distance(np.broadcast_to(r[:, :1], r.shape), r)
    reach = far.max(axis=1)
    zero = np.zeros(N)
    out: dict[str, Floats] = {
        "way": way,
        "step_mean": mean,
        "step_median": np.where(count > 0, moves[order][middle], 0.0) if len(moves) else zero,
        "step_longest": step.max(axis=1),
        "step_spread": np.sqrt(mean_of((moves - mean[row]) ** 2, row, N)),
        "net": net,
        "straightness": np.divide(2 * reach, way, out=zero.copy(), where=way > 0),
        "farthest": reach,
        "around_top_place": locations.distance(np.broadcast_to(top[:, None], r.shape), r).mean(axis=1),
    }
    turn, who = np.empty(0), np.empty(0, dtype=np.int64)
    if locations.has_coordinates and len(row):
        xy = locations.planar()
        leg = xy[r[row, at + 1]] - xy[r[row, at]]
        next_to = row[1:] == row[:-1]
        heading = np.arctan2(leg[:, 1], leg[:, 0])
        turn = np.abs((np.diff(heading) + np.pi) % (2 * np.pi) - np.pi)[next_to]
        who = row[1:][next_to]
    out |= {
        "turn_mean": mean_of(turn, who, N),
        "turned_back": mean_of((turn > 5 * np.pi / 6).astype(np.float64), who, N),
        "straight_on": mean_of((turn < np.pi / 6).astype(np.float64), who, N),
    }
    # a trip is a run of moves at neighbouring slots: its net length over its way
    opens = np.ones(len(row), dtype=bool)
    opens[1:] = (row[1:] != row[:-1]) | (at[1:] != at[:-1] + 1)
    trip = np.cumsum(opens) - 1
    begins, ends = np.flatnonzero(opens), np.flatnonzero(np.append(opens[1:], True)[: len(row)])
    straight = locations.distance(r[row[begins], at[begins]], r[row[ends], at[ends] + 1])
    out["trip_straightness"] = mean_of(
        straight / np.maximum(np.bincount(trip, moves, len(begins)), 1e-12), row[begins], N, empty=1.0
    )
    return out


def _reference_features(r: Ints, stays: Stays, top: Ints, reference: Grams) -> dict[str, Floats]:
    """Return how usual moves, ways of two moves, hours and places are among the people of the reference."""
    N, _ = r.shape
    moved = r[:, 1:] != r[:, :-1]
    row, _ = np.nonzero(moved)
    likely = np.log(reference.step(r))
    still, _ = np.nonzero(~moved)
    there = reference.at_hour(r)
    visits = np.log(reference.popularity(r))
    at_hour = np.log(
        (there + 1) / (np.bincount(reference.hour)[reference.hour] * len(reference.people.r) + reference.R)
    )
    ways, of = _way_keys(stays, reference.R)
    inner = np.zeros(len(stays.row), dtype=bool)
    inner[1:-1] = (stays.row[1:-1] == stays.row[:-2]) & (stays.row[1:-1] == stays.row[2:])
    passed = inner & (stays.length == 1)
    by_stay = visits[stays.row, stays.first]
    usual, _ = _way_keys(find_stays(reference.people.r), reference.R)
    return {
        "move_likelihood": mean_of(likely[moved], row, N),
        "move_likelihood_least": _extreme(likely[moved], row, N, np.minimum, 0.0),
        "stay_likelihood": mean_of(likely[~moved], still, N),
        "moves_unseen": mean_of(reference.step_counts(r)[moved] == 0, row, N),
        "ways_unseen": mean_of(~np.isin(ways, distinct(usual)), of, N),
        "hour_likelihood": at_hour.mean(axis=1),
        "hour_likelihood_least": at_hour.min(axis=1),
        "hours_unseen": (there == 0).mean(axis=1),
        "popularity_spread": visits.std(axis=1),
        "popularity_least": visits.min(axis=1),
        "popularity_of_top": np.log(reference.popularity(top[:, None])[:, 0]),
        "popularity_of_passed": mean_of(by_stay[passed], stays.row[passed], N),
    }


def _way_keys(stays: Stays, R: int) -> tuple[Ints, Ints]:
    """Return one number for the places of every three stays in a row, and the trace of each."""
    place, mine = stays.place, stays.row[2:] == stays.row[:-2]
    return ((place[:-2] * R + place[1:-1]) * R + place[2:])[mine], stays.row[2:][mine]


BAR = 0.60
FOLDS = 5
MOST_DAYS = 2000  # of either side; single features see all fakes
CLASSIFIERS = 2
JOINT = 1 - (1 - LEVEL) / CLASSIFIERS  # one interval for both
CROSS = 1.3  # an AUC by cross-validation scatters so much more than that of a fixed score (106 pairs of real groups)
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


def features(r: Ints, inputs: AttackInputs, reference: Grams) -> Floats:
    """
    Return (N, 12) the features of each trace, in the order of `FEATURES`.

    Radius of gyration in km and speed in km/h; without coordinates 0 and moves per hour.
    """
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
    rare = (reference.step_counts(r) == 0) & moved
    night = inputs.minutes < 6 * 60 if np.any(inputs.minutes < 6 * 60) else np.arange(r.shape[1]) == 0
    speed = inputs.locations.distance(r[:, :-1], r[:, 1:]).max(axis=1, initial=0.0) * 60 / inputs.step_minutes
    radius = np.zeros(N)
    if inputs.locations.has_coordinates:
        xy = inputs.locations.planar()[r]
        radius = np.sqrt(((xy - xy.mean(axis=1, keepdims=True)) ** 2).sum(axis=2).mean(axis=1))
    return np.column_stack(
        [
            moves,
            distinct,
            -(share * np.log(np.where(share > 0, share, 1))).sum(axis=1),
            radius,
            speed,
            reference.log_chain(r),
            share.max(axis=1),
            returns,
            np.log(reference.at_hour(r)[:, night] + 0.5).mean(axis=1),
            r[:, 0] == r[:, -1],
            np.divide(rare.sum(axis=1), moves, out=np.zeros(N), where=moves > 0),
            -np.log(reference.popularity(r)).mean(axis=1),
        ]
    ).astype(np.float64)


Describe = Callable[[Ints, AttackInputs, Grams], Floats]


class Side(NamedTuple):
    """Traces of one side, and whose each row is."""

    r: Ints
    user: Ints


class Separation(NamedTuple):
    """Cross-validated AUC, and the same over the tenth of the people who are told best."""

    rate: Rate
    worst: float


class Judge:
    """
    Tells hold-out people from others in two turns: one half describes, the other half is judged, then they change.

    Within a turn one reference describes everybody. Folds that describe each other would not do: a place that the own
    fold visits more is a little less known to the others, for real people alone, and trees learn it.
    """

    def __init__(self, inputs: AttackInputs, rng: np.random.Generator) -> None:
        people = inputs.strangers
        self.inputs, self.rng, self.people = inputs, rng, people
        half = (rng.permutation(people.U) % 2)[people.user]
        rows = [np.flatnonzero(half == k) for k in (0, 1)]
        self.real = [Side(people.r[mine], people.user[mine]) for mine in rows]
        self.references = [
            Grams(People(people.r[others], people.user[others], people.U), inputs.R, inputs.hour)
            for others in reversed(rows)
        ]

    def sample(self, there: Side) -> Side:
        """Return at most `MOST_DAYS` rows, at random."""
        rows = np.sort(self.rng.permutation(len(there.r))[:MOST_DAYS])
        return Side(there.r[rows], there.user[rows])

    def tell_apart(self, others: Side, describe: Describe) -> dict[str, Separation]:
        """Run both classifiers on hold-out people against the other side, by one description."""
        others = self.sample(others)
        scores: dict[str, list[Floats]] = {}
        real = [self.sample(side) for side in self.real]
        for mine, reference in zip(real, self.references, strict=True):
            x, y = (describe(there.r, self.inputs, reference) for there in (mine, others))
            for name, score in score_by_classifiers(x, y, mine.user, others.user, self.rng).items():
                scores.setdefault(name, []).append(score)
        users, group = np.concatenate([side.user for side in real]), np.tile(others.user, len(real))
        by_classifier = {}
        for name, turns in scores.items():
            if len(turns) == len(real):
                above = np.concatenate([turn[: len(side.r)] for turn, side in zip(turns, real, strict=True)])
                below = np.concatenate([turn[len(side.r) :] for turn, side in zip(turns, real, strict=True)])
                rate = auc(above, below, group, level=JOINT, positive_group=users)
                by_classifier[name] = Separation(wider(rate, CROSS), worst_auc(above, below, group))
        return by_classifier

    def describe_all(self, others: Side, describe: Describe) -> tuple[Floats, Floats]:
        """
        Return the features of all hold-out people, each by the half that is not theirs, and of others, by one
        half each.
        """
        halves = others.user % 2
        real = [describe(mine.r, self.inputs, ref) for mine, ref in zip(self.real, self.references, strict=True)]
        other = [describe(others.r[halves == k], self.inputs, ref) for k, ref in enumerate(self.references)]
        order = np.argsort(np.concatenate([np.flatnonzero(halves == k) for k in (0, 1)]))
        return np.concatenate(real), np.concatenate(other)[order]


def folds_of(user: Ints, folds: int, rng: np.random.Generator) -> Ints:
    """Return a fold for every row: people at random into folds of equal size, all rows of one person into one."""
    _, number = np.unique(user, return_inverse=True)
    return np.asarray((rng.permutation(int(number.max()) + 1) % folds)[number])


def score_by_classifiers(x: Floats, y: Floats, known: Ints, group: Ints, rng: np.random.Generator) -> dict[str, Floats]:
    """
    Return how real each row of `x` (real people) and `y` looks to two classifiers that have not seen it, as ranks of
    its fold.

    Nothing where there are too few people for two folds.
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
    fold = np.concatenate([folds_of(known, folds, rng), folds_of(group, folds, rng)])
    kinds: dict[str, Any] = {
        "logistic_regression": lambda: make_pipeline(
            StandardScaler(), LogisticRegression(C=0.1, max_iter=1000, class_weight="balanced")
        ),
        "boosted_trees": lambda: HistGradientBoostingClassifier(
            max_iter=50, learning_rate=0.1, max_leaf_nodes=15, max_bins=63, early_stopping=False, random_state=0
        ),
    }
    ranks = {}
    for name, make in kinds.items():
        score = np.empty(len(both))
        # on tables this small threads wait for each other more than they work
        with one_thread():
            for k in range(folds):
                model = make().fit(both[fold != k], real[fold != k])
                here = fold == k
                score[here] = rankdata(model.decision_function(both[here])) / (here.sum() + 1)
        ranks[name] = score
    return ranks


def wider(rate: Rate, times: float) -> Rate:
    """Return the same figure with an interval so many times as wide."""
    half = times * max(rate.high - rate.value, rate.value - rate.low)
    return Rate(rate.value, max(0.0, rate.value - half), min(1.0, rate.value + half))


def best_of(rates: Iterable[Rate]) -> Rate:
    """Return the rate of the best classifier; one half where there was too little to learn from."""
    return max(rates, key=lambda rate: rate.value, default=Rate(0.5, 0.0, 1.0))


def single_features(real: Floats, fake: Floats, group: Ints) -> dict[str, Rate]:
    """Return the AUC of each feature alone, real people above fakes, whichever way round tells more."""
    return {name: two_sided(auc(real[:, i], fake[:, i], group)) for i, name in enumerate(FEATURES)}


def auc_deviation(real: int, fakes: int) -> float:
    """Return the standard deviation of the cross-validated AUC of `real` people and `fakes` others of their kind."""
    return CROSS * math.sqrt((1 / real + 1 / fakes) / 12)


def fresh_people(chance: Rate, real: int, fakes: int) -> Fresh:
    """
    Return how often the bar flags fresh real people, whose AUC is normal with the deviation `auc_deviation`.

    Its mean is one half, or what was measured where that is clearly above one half.

    Examples
    --------
    >>> half = Rate(0.5, 0.45, 0.55)
    >>> [round(fresh_people(half, n, 2 * n).flagged, 2) for n in (60, 120, 250)]
    [0.92, 0.69, 0.22]

    """
    normal, each = NormalDist(), auc_deviation(real, fakes)
    middle = chance.value if chance.low > 0.5 else 0.5
    above = 1 - normal.cdf((BAR - middle) / each - normal.inv_cdf(0.5 + JOINT / 2))
    return Fresh(chance, 1 - (1 - above) ** CLASSIFIERS)


def classifier_verdict(main: Rate, fresh: Fresh, real: int, fakes: int) -> bool | None:
    """Return the verdict; with people so few that real days would be told by luck, a low figure is no pass either."""
    if main.high <= BAR:
        return True if NormalDist().inv_cdf(0.5 + JOINT / 2) * auc_deviation(real, fakes) <= BAR - 0.5 else None
    return False if fresh.usable or main.low > fresh.rate.high else None


def real_or_fake(inputs: AttackInputs) -> Finding:
    """Tell real people from fakes by classifiers of their days (A15)."""
    judge = Judge(inputs, inputs.rng("A15"))
    maker = np.arange(len(inputs.fakes)) if inputs.owner is None else inputs.main.user
    # beside the fakes real people in their place: what remains is chance
    fakes, seeds = Side(inputs.fakes, maker), Side(inputs.seeds.r, inputs.seeds.user)
    outcome, between = (
        judge.tell_apart(other, lambda r, given, reference: day_features(r, given.locations, reference))
        for other in (fakes, seeds)
    )
    plain, plain_between = (judge.tell_apart(other, features) for other in (fakes, seeds))
    main, chance, twelve, twelve_control = (
        best_of(told.rate for told in by_classifier.values())
        for by_classifier in (outcome, between, plain, plain_between)
    )
    people, makers = inputs.strangers.U, len(np.unique(maker))
    fresh = fresh_people(chance, people, makers)
    passed = classifier_verdict(main, fresh, people, makers)
    real, fake = judge.describe_all(fakes, features)
    singles = single_features(real, fake, fakes.user)
    top = max(singles, key=lambda name: singles[name].value)
    few = f" No verdict: {people} hold-out people are too few." if passed is None and main.high <= BAR else ""
    return Finding(
        "A15",
        interval=main,
        control_interval=chance,
        baseline=0.5,
        null=chance,
        fresh=fresh,
        bar=BAR,
        passed=passed,
        reachable=fresh.usable,
        worst_decile=max((t.worst for t in outcome.values()), default=None),
        words=f"A classifier that looks at {len(NAMES)} features of a day tells fakes from real people with AUC "
        f"{main.value:.3f}; real people from other real people with {chance.value:.3f}. By twelve features that a "
        f"generator may be taught it is {twelve.value:.3f}. The most informative of them alone is "
        f"{top.replace('_', ' ')} ({singles[top].value:.3f}).{few}"
        + ("" if few else no_verdict_words(passed, fresh, f"an AUC of {chance.value:.3f}")),
        details={
            "classifiers": {name: t.rate for name, t in outcome.items()},
            "twelve": twelve,
            "twelve_control": twelve_control,
            "twelve_classifiers": {name: t.rate for name, t in plain.items()},
            "single": {name: rate.value for name, rate in singles.items()},
            "single_interval": singles,
            "mean_real": dict(zip(FEATURES, real.mean(axis=0).tolist(), strict=True)),
            "mean_fake": dict(zip(FEATURES, fake.mean(axis=0).tolist(), strict=True)),
        },
    )


FILTER_BAR = 0.01
FLOOR = 1e-4  # of p_bar
FASTEST = 0.999  # quantile of the speeds of real steps
MISPLACED = 0.25  # a place used this much less than its due at an hour
ENOUGH = 10  # visits before a place's hours are judged
GROUPS = 200  # of real people, to see how often the bar flags them


def rejected_shares(r: Ints, reference: Grams, v_max: float | None, inputs: AttackInputs) -> dict[str, Floats]:
    """
    Return the share of points of each trace that each filter rejects, (N,) by filter.

    Filters know the people of `reference`, and the highest speed `v_max` among them (a distance per step).
    """
    visits, at_hour = reference.places.look_up(r), reference.at_hour(r)
    due = visits * (np.bincount(inputs.hour) / len(inputs.hour))[inputs.hour]
    points_out = {
        "unreachable": reference.step(r) < FLOOR,
        "nobody_there": at_hour == 0,
        "wrong_hour": (visits >= ENOUGH) & (at_hour < MISPLACED * due),
    }
    if v_max is not None:
        points_out["too_fast"] = inputs.locations.distance(r[:, :-1], r[:, 1:]) > v_max
    return {name: np.asarray(out.mean(axis=1)) for name, out in points_out.items()}


def rejected_shares_by_halves(
    inputs: AttackInputs, groups: dict[str, Ints], half: Ints
) -> dict[str, dict[str, Floats]]:
    """Return filter -> group -> share rejected of each trace; hold-out people by filters that know the other half."""
    people = inputs.strangers
    out: dict[str, dict[str, Floats]] = {}
    for side in (0, 1):
        known, other = (np.flatnonzero((half[people.user] == side) == inside) for inside in (True, False))
        reference = Grams(People(people.r[known], people.user[known], people.U), inputs.R, inputs.hour)
        v_max = None
        if inputs.locations.has_coordinates:
            r = people.r[known]
            v_max = float(np.quantile(inputs.locations.distance(r[:, :-1], r[:, 1:]), FASTEST))
        for group, r in {"holdout": people.r[other], **groups}.items():
            for name, share in rejected_shares(r, reference, v_max, inputs).items():
                into = out.setdefault(name, {"holdout": np.zeros(len(people.r))})
                if group == "holdout":
                    into[group][other] = share
                else:
                    into[group] = into.get(group, np.zeros(len(r))) + share / 2
    return out


def filtering(inputs: AttackInputs) -> Finding:
    """Compare how many points of fakes and of real people are impossible or unlikely (A16)."""
    rng, people = inputs.rng("A16"), inputs.strangers
    half = rng.permutation(people.U) % 2
    shares = rejected_shares_by_halves(inputs, {"fakes": inputs.fakes, "seeds": inputs.seeds.r}, half)
    maker = np.arange(len(inputs.fakes)) if inputs.owner is None else inputs.main.user
    level = 1 - (1 - LEVEL) / len(shares)
    gaps: dict[str, Rate] = {}
    chance: dict[str, Rate] = {}
    rates: dict[str, dict[str, float]] = {}
    persons: list[Floats] = []
    for name, share in shares.items():
        real, seeds = by_user(share["holdout"], people.user), by_user(share["seeds"], inputs.seeds.user)
        gaps[name] = difference(by_user(share["fakes"], maker), real, level=level)
        chance[name] = difference(seeds, real, level=level)
        who = {"fakes": maker, "holdout": people.user, "seeds": inputs.seeds.user}
        rates[name] = {group: float(by_user(values, who[group]).mean()) for group, values in share.items()}
        persons.append(np.concatenate([real, seeds]))
    makers = min(len(np.unique(maker)), inputs.seeds.U)
    false_alarms = flagged_share_of_groups(np.array(persons), people.U, makers, level, rng)
    verdicts = {name: verdict(gap, FILTER_BAR, None, Fresh(chance[name], false_alarms)) for name, gap in gaps.items()}
    passed = False if False in verdicts.values() else None if None in verdicts.values() else True
    # the filter that decides the verdict is the one to speak of
    worst = max(gaps, key=lambda name: (verdicts[name] is False, gaps[name].high))
    main, control = gaps[worst], chance[worst]
    fresh = Fresh(control, false_alarms)
    each = np.sort(by_user(shares[worst]["fakes"], maker))[::-1]
    return Finding(
        "A16",
        interval=main,
        control_interval=control,
        baseline=0.0,
        null=control,
        fresh=fresh,
        bar=FILTER_BAR,
        passed=passed,
        reachable=fresh.usable,
        worst_decile=float(each[: -(-len(each) // 10)].mean()) - rates[worst]["holdout"],
        words=f"The filter {worst.replace('_', ' ')!r} rejects {points(main.value)} more of the fakes than of real "
        f"people ({percent(rates[worst]['fakes'])} against {percent(rates[worst]['holdout'])} of their slots)."
        + no_verdict_words(passed, fresh, points(control.value)),
        details={"worst": worst, "rates": rates, "difference": gaps},
    )


def flagged_share_of_groups(share: Floats, known: int, size: int, level: float, rng: np.random.Generator) -> float:
    """
    Return how often the bar flags a group of `size` real people, drawn at random, beside `known` others.

    `share` (filters, people) is what each filter rejects of each real person.
    """
    number = 0
    for _ in range(GROUPS):
        order = rng.permutation(share.shape[1])
        some, rest = share[:, order[:size]], share[:, order[size : size + known]]
        number += any(difference(a, b, level=level).high > FILTER_BAR for a, b in zip(some, rest, strict=True))
    return number / GROUPS
