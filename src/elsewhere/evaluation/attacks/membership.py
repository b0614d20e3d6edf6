"""
Membership inference (A3, A10): was this person among those the fakes were made from? Seed users against hold-out.

A3 is the likelihood ratio of the PPMTF referee, reset at the boundaries of traces, its advantage calibrated by
exchanging members and strangers at random. A10 takes densities and distances: DOMIAS, GenLRA, DCR and DPI on n-grams
of traces. Everybody is judged by all other people, so that members and strangers are treated alike.

Where a `generator` is given, A10 also makes shadow runs of it, which are slow. A generator is a callable
`(traces, rng) -> fakes`: fakes as a plain (F, L) array, fake i of row i // (F / N), as a pair (fakes, seed rows), or
anything with `.r` and `.seed`. Every run takes a random half of all people as its seeds; after the runs each person has
scores with and without having been a seed, and is judged by the ratio of their likelihoods.
"""

import math
from typing import Any

import numpy as np

from elsewhere.data.slots import Traces, hold_places
from elsewhere.data.visits import Floats, Ints
from elsewhere.errors import InvalidParameter
from elsewhere.evaluation.attacks._attacks_kernels import nearest
from elsewhere.evaluation.attacks.candidates import UNSEEN, move_counts, moves_of_users
from elsewhere.evaluation.attacks.finding import (
    LEVEL,
    Finding,
    Rate,
    auc,
    by_user,
    percent,
    points,
    two_sided,
    verdict,
    wilson,
)
from elsewhere.evaluation.attacks.grams import BACKOFF, Grams
from elsewhere.evaluation.attacks.inputs import AttackInputs, People, join_people


def make_fakes(inputs: AttackInputs, people: People, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return fakes of these people by the given generator, and the row each was made from."""
    clock = f"{int(inputs.minutes[0] // 60):02d}:{int(inputs.minutes[0] % 60):02d}"
    traces = Traces(
        people.r, inputs.locations, users=people.user.tolist(), step_minutes=inputs.step_minutes, start=clock
    )
    result: Any = inputs.generator(traces, rng)
    if isinstance(result, tuple):
        fakes, owner = np.asarray(result[0]), np.asarray(result[1])
    elif hasattr(result, "seed"):
        fakes, owner = np.asarray(result.r), np.asarray(result.seed)
    else:
        fakes = np.asarray(getattr(result, "r", result))
        owner = np.arange(len(fakes)) * len(traces) // max(1, len(fakes))
    if fakes.ndim != 2 or fakes.shape[1] != people.r.shape[1] or owner.shape != (len(fakes),) or len(fakes) == 0:
        raise InvalidParameter(
            f"`generator` must return fakes of {people.r.shape[1]} slots and their seed rows, got {fakes.shape}.",
            code="E_SHAPE",
            parameter="generator",
        )
    return hold_places(fakes), owner.astype(np.int64)


def shadow_scores(
    inputs: AttackInputs, people: People, by_attack: dict[str, Floats], rng: np.random.Generator
) -> dict[str, Floats]:
    """Return ln of the ratio "was a seed" to "was not", by attack and user, from Gaussian fits over the shadow runs."""
    runs = inputs.parameters["shadows"]
    inside = np.zeros((runs, people.U), dtype=bool)
    shadow = {name: np.zeros((runs, people.U)) for name in by_attack}
    for run in range(runs):
        # complementary halves in turn, so that everybody is in as often as out
        inside[run] = ~inside[run - 1] if run % 2 else rng.permutation(people.U) < people.U // 2
        rows = np.flatnonzero(inside[run][people.user])
        _, number = np.unique(people.user[rows], return_inverse=True)
        group = People(people.r[rows], number, int(number.max()) + 1)
        fakes, _ = make_fakes(inputs, group, rng)
        for name, score in membership_scores(people, fakes, inputs.R, inputs.hour).items():
            shadow[name][run] = score
    return {f"shadow_{name}": _log_ratio(by_attack[name], shadow[name], inside) for name in by_attack}


def _log_ratio(score: Floats, shadow: Floats, inside: Any) -> Floats:
    """Return ln Pr{score | seed} / Pr{score | no seed} of each user, both laws normal, fitted to the shadow runs."""

    def law(where: Any) -> tuple[Floats, Floats]:
        weight = where / np.maximum(where.sum(axis=0), 1)
        mean = (weight * shadow).sum(axis=0)
        variance = (weight * (shadow - mean) ** 2).sum(axis=0)
        return mean, variance

    (mean_in, var_in), (mean_out, var_out) = law(inside), law(~inside)
    # few runs per user: one variance for all
    spread = math.sqrt(float((var_in + var_out).mean() / 2) + 1e-12)
    return np.asarray(((score - mean_out) ** 2 - (score - mean_in) ** 2) / (2 * spread**2))


ADVANTAGE_BAR = 0.02
TPR_BAR, FPR = 0.02, 0.01
THRESHOLDS, EXCHANGES = 400, 1000
EXCHANGED = 22  # the stream of all exchanges, whoever asks
NEIGHBOURS = 20


def likelihood_ratio(people: People, fakes: Ints, dataset: Ints, R: int, *, joined: Ints | None = None) -> Floats:
    """
    Return the largest ln p(u)(f) / p_others(f) over the fakes of each dataset, (datasets, users).

    p_others is the mean of the other users' p; moves never seen get 1e-8 on either side. `joined` names for each fake
    the one that the referee lets run into it (-1: none), as it does not reset at the boundaries of traces.
    """
    from scipy import sparse

    user, move, p = moves_of_users(people, R)
    moves, column = np.unique(move, return_inverse=True)
    makers, total = np.bincount(column), np.bincount(column, p)
    rest = np.where(makers[column] > 1, (total[column] - p) / (people.U - 1), UNSEEN)
    population = np.log(total / (people.U - 1))
    gain = (np.log(p) - np.log(UNSEEN)) - (np.log(rest) - population[column])
    table = sparse.csr_array((gain, (column, user)), shape=(len(moves), people.U))
    best = np.full((int(dataset.max()) + 1, people.U), -np.inf)
    for i in range(0, len(fakes), 1024):
        rows = slice(i, i + 1024)
        counts = move_counts(fakes[rows], moves, R)
        if joined is not None:
            before = joined[rows]
            seam = np.column_stack([fakes[np.maximum(before, 0), -1], fakes[rows, 0]])
            extra = move_counts(seam, moves, R)
            counts = counts + extra.multiply((before >= 0)[:, None]).tocsr()
        # a move that nobody made is floored on both sides and cancels
        floor = counts @ (np.log(UNSEEN) - population)
        score = (counts @ table).toarray() + floor[:, None]
        for number in np.unique(dataset[rows]):
            mine = dataset[rows] == number
            best[number] = np.maximum(best[number], score[mine].max(axis=0))
    return best


def advantage(ratio: Floats, U: int) -> tuple[float, Floats]:
    """
    Return the largest TPR - FPR over all thresholds, and the same where members and strangers are exchanged at random.

    Everybody's ratio is made in the same way from everybody else, so fakes that know nothing of who is a member give
    the same law to every exchange, whatever the numbers of members and strangers. The exchanges are always the same, of
    people in the order of their ratios, so that two audits of the same fakes agree.
    """
    ratio_order = np.lexsort(ratio)
    ratio = ratio[:, ratio_order]
    levels = np.unique(np.quantile(ratio, np.linspace(0, 1, THRESHOLDS)))
    beyond = np.array([(ratio > level).mean(axis=0) for level in levels]).T
    n, total = len(beyond), beyond.sum(axis=0)
    member = np.random.default_rng(EXCHANGED).permuted(np.tile(np.arange(n) < U, (EXCHANGES, 1)), axis=1)
    member[0] = ratio_order < U
    among = member.astype(np.float64) @ beyond
    gain = (among / U - (total - among) / (n - U)).max(axis=1)
    return float(gain[0]), gain[1:]


def gain_over_exchanges(figure: float, by_chance: Floats) -> tuple[Rate, float]:
    """Return the figure minus the mean of all exchanges, with its interval, and the share of these that reach it."""
    low, high = np.quantile(by_chance, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    value = figure - float(by_chance.mean())
    p = (1 + int((by_chance >= figure - 1e-12).sum())) / (1 + len(by_chance))
    return Rate(value, min(value, figure - float(high)), max(value, figure - float(low))), p


def least_typical_users(people: People, U: int, R: int, hour: Ints) -> tuple[Ints, Ints]:
    """Return the tenth of the seed users, and of the hold-out users, whose traces the other people explain worst."""
    likely = by_user(Grams(people, R, hour).log_chain(people.r, people.user), people.user)
    members, strangers = np.argsort(likely[:U]), np.argsort(likely[U:])
    return members[: -(-U // 10)], U + strangers[: -(-len(strangers) // 10)]


def likelihood_membership(inputs: AttackInputs) -> Finding:
    """Tell members from strangers by a ratio of likelihoods (A3)."""
    rng, people, U = inputs.rng("A3"), join_people(inputs.seeds, inputs.strangers), inputs.seeds.U
    ratio, free = (
        likelihood_ratio(people, fakes, inputs.dataset, inputs.R) for fakes in (inputs.fakes, inputs.null_walks(rng))
    )
    gain, by_chance = advantage(ratio, U)
    (main, p), (control, _) = gain_over_exchanges(gain, by_chance), gain_over_exchanges(*advantage(free, U))
    unseen = float(np.quantile(by_chance, (1 + LEVEL) / 2) - by_chance.mean())
    few, strangers = least_typical_users(people, U, inputs.R, inputs.hour)
    outliers, _ = gain_over_exchanges(*advantage(ratio[:, np.concatenate([few, strangers])], len(few)))
    return Finding(
        "A3",
        interval=main,
        control_interval=control,
        baseline=0.0,
        null=control,
        bar=ADVANTAGE_BAR,
        passed=bool(main.low <= 0 or main.high <= ADVANTAGE_BAR),
        leaks=bool(main.low > 0),
        reachable=bool(control.low <= 0 or control.high <= ADVANTAGE_BAR),
        worst_decile=outliers.value,
        words=f"Telling {inputs.who} from strangers gains {points(main.value)} over people and "
        f"strangers exchanged at random (true minus false alarms: {percent(gain)} against "
        f"{percent(float(by_chance.mean()))}; as much in {percent(p)} of the exchanges). With so many people "
        f"this audit would miss a gain below {points(unseen)}.",
        details={"advantage": gain, "null_advantage": float(by_chance.mean()), "p": p, "detectable": unseen},
    )


def membership_scores(people: People, fakes: Ints, R: int, hour: Ints) -> dict[str, Floats]:
    """Return a score of every user by attack; larger means "a fake was made of this user"."""
    real = Grams(people, R, hour)
    fake = Grams(People(fakes, np.arange(len(fakes)), len(fakes)), R, hour)
    skip = people.user
    to_fakes = np.empty((len(people.r), NEIGHBOURS), dtype=np.int64)
    to_people = np.empty((len(people.r), NEIGHBOURS), dtype=np.int64)
    nearest(people.r, np.full(len(people.r), -1), fakes, np.zeros(len(fakes), dtype=np.int64), NEIGHBOURS, to_fakes)
    nearest(people.r, skip, people.r, people.user, NEIGHBOURS, to_people)
    both = np.sort(np.concatenate([to_fakes, to_people], axis=1), axis=1)
    radius = both[:, NEIGHBOURS - 1 : NEIGHBOURS]
    inside, outside = (to_fakes <= radius).sum(axis=1), (to_people <= radius).sum(axis=1)
    rows = {
        "domias_steps": fake.log_chain(people.r) - real.log_chain(people.r, skip),
        "domias_hours": fake.log_hours(people.r) - real.log_hours(people.r, skip),
        "dcr": -to_fakes[:, 0].astype(np.float64) - to_fakes[:, :5].mean(axis=1) / 1e3,
        "dpi": inside / (inside + outside),
    }
    by_attack = {name: by_user(score, people.user) for name, score in rows.items()}
    return by_attack | {"genlra": influence(real, fake)}


def influence(real: Grams, fake: Grams) -> Floats:
    """Return ln Pr{fakes} with the steps of each user minus without them, under the chain of everybody, (U,)."""
    steps, origins, size = real.steps, real.origins, len(real.steps.keys)
    user, at = steps.pair // size, steps.pair % size
    counts = fake.steps.look_up(steps.keys[None, :])[0]
    gain = counts[at] * np.log((steps.total[at] + BACKOFF) / (steps.total[at] - steps.own + BACKOFF))
    who, where = origins.pair // len(origins.keys), origins.pair % len(origins.keys)
    departures = fake.origins.look_up(origins.keys[None, :])[0]
    cost = departures[where] * np.log((origins.total[where] + BACKOFF) / (origins.total[where] - origins.own + BACKOFF))
    U = real.people.U
    return np.asarray(np.bincount(user, gain, U) - np.bincount(who, cost, U), dtype=np.float64)


def auc_and_tpr(by_attack: dict[str, Floats], U: int) -> tuple[dict[str, Rate], dict[str, Rate]]:
    """Return by attack the AUC, with intervals that hold for all together, and the true positives at 1 % false ones."""
    level = 1 - (1 - LEVEL) / len(by_attack)
    curves, early = {}, {}
    for name, score in by_attack.items():
        members, strangers = score[:U], score[U:]
        curves[name] = auc(members, strangers, level=level)
        early[name] = wilson(float(count_true_positives(members, strangers)), U)
    return curves, early


def count_true_positives(members: Floats, strangers: Floats) -> int:
    """Count the members above the score that a share FPR of the strangers exceeds."""
    # the value that `np.quantile` gives by its method "higher"
    at = math.ceil((len(strangers) - 1) * (1 - FPR) - 1e-9)
    return int((members > np.partition(strangers, at)[at]).sum())


def tpr_by_chance(score: dict[str, Floats], U: int) -> float:
    """
    Return the true positive rate that the best attack reaches by chance at FPR false alarms.

    It is the 97.5 % quantile over random exchanges of members and strangers.

    Members and strangers change places: the score that one stranger in a hundred exceeds rests on few strangers, and
    the best of several attacks is taken. The exchanges are always the same, as in `advantage`.
    """
    table = np.stack(list(score.values()))
    table, rng = table[:, np.lexsort(table)], np.random.default_rng(EXCHANGED)
    best = np.empty(EXCHANGES)
    for i in range(EXCHANGES):
        mixed = rng.permutation(table, axis=1)
        best[i] = max(count_true_positives(row[:U], row[U:]) for row in mixed) / U
    return float(np.quantile(best, (1 + LEVEL) / 2))


def density_membership(inputs: AttackInputs) -> Finding:
    """Tell members from strangers by densities and distances (A10)."""
    rng, people, U = inputs.rng("A10"), join_people(inputs.seeds, inputs.strangers), inputs.seeds.U
    by_attack = membership_scores(people, inputs.fakes, inputs.R, inputs.hour)
    free = membership_scores(people, inputs.null_walks(rng), inputs.R, inputs.hour)
    if inputs.generator is not None:
        by_attack |= shadow_scores(inputs, people, by_attack, rng)
    curves, early = auc_and_tpr(by_attack, U)
    null_curves, null_early = auc_and_tpr(free, U)
    # the attacker may know the direction: below one half tells as much as above
    name = max(curves, key=lambda n: abs(curves[n].value - 0.5))
    best = two_sided(curves[name])
    free_best = two_sided(max(null_curves.values(), key=lambda rate: abs(rate.value - 0.5)))
    tpr = max(early.values(), key=lambda rate: rate.value)
    null_tpr = max(null_early.values(), key=lambda rate: rate.value)
    by_chance = tpr_by_chance(by_attack, U)
    early_passed = True if tpr.value <= by_chance else verdict(tpr, TPR_BAR, null_tpr)
    closer = curves[name].value < 0.5
    members, strangers = least_typical_users(people, U, inputs.R, inputs.hour)
    found_early = early_passed is False and tpr.low > null_tpr.high
    return Finding(
        "A10",
        interval=best,
        control_interval=free_best,
        baseline=0.5,
        null=free_best,
        bar=0.5,
        passed=False if early_passed is False else auc_verdict(best, free_best),
        leaks=True if found_early else None,
        reachable=free_best.low <= 0.5,
        worst_decile=two_sided(auc(by_attack[name][members], by_attack[name][strangers])).value,
        words=f"The best of {len(curves)} attacks ({name.replace('_', ' ')}) tells {inputs.who} from "
        f"strangers with AUC {best.value:.3f}; on walks without any seed the best reaches {free_best.value:.3f}."
        # whoever the strangers are, to whom the fakes are closer has met the generator more
        + (" The fakes are closer to the strangers." if closer else "")
        + (
            f" At 1 % false alarms it recognises {percent(tpr.value)} of the people, more than the bar."
            if found_early
            else f" At 1 % false alarms this audit would miss an attack that recognises less than "
            f"{percent(max(by_chance, TPR_BAR))} of the people."
        ),
        details={
            "auc": curves,
            "tpr_at_1_percent": tpr,
            "tpr_by_chance": by_chance,
        },
    )


def auc_verdict(best: Rate, chance: Rate) -> bool | None:
    """Return whether A10 keeps its bar, one half within the interval; None where chance fails it too."""
    if best.low <= 0.5:
        return True
    return False if chance.low <= 0.5 or best.low > chance.high else None
