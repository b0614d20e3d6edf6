"""
A17, A18, A19 in the shape of the audit: the service against decoys made of the fakes.

The fakes protect the seed users (main), never one by a fake of her own (E66), and hold-out users (control). The
adversary's p_bar comes from the other group, so he has met none of the truths he attacks. All figures are successes of
the adversary, 1 - error, so that smaller is better.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from elsewhere.data.slots import Traces
from elsewhere.data.visits import Ints
from elsewhere.evaluation.attacks.finding import CannotRun, Finding, Rate, percent, verdict
from elsewhere.evaluation.attacks.inputs import AttackInputs, People
from elsewhere.evaluation.lbs.days import DAYS, ENOUGH, Company, over_days
from elsewhere.evaluation.lbs.generators import PoolGenerator, from_pool
from elsewhere.evaluation.lbs.scenario import ATTACKS, BAR, LbsResult, evaluate_lbs

N_FAKES = (1, 5, 10)
BETA = 0.5
REPEATS = (2, 3)  # many users tell more than many runs
MOST_USERS = 200
MARGIN = 0.05
OF_OTHERS = "fakes of at least two seed users"


def attack_A17(inputs: AttackInputs) -> Finding:
    """Run localization and tracking with 1, 5, 10 fakes sent along; the adversary knows how people move."""
    numbers, ours, strangers = _decoys(inputs)
    rng = inputs.rng("A17")
    result = _run_scenario(inputs.seed_days, inputs.stranger_days, ours, numbers, rng)
    main = {n: _success(result, n, "aggregate") for n in numbers}
    other = _run_scenario(inputs.stranger_days, inputs.seed_days, strangers, numbers, rng)
    control = {n: _success(other, n, "aggregate") for n in numbers}
    real = _real_decoys(inputs, numbers, rng)
    bars = {n: 1 - BAR * n / (n + 1) for n in numbers}
    n = max(numbers, key=lambda n: main[n].value - bars[n])
    each = np.sort(1 - result.error[:, 0, numbers.index(n), 0, :, 0].min(axis=1))[::-1]
    beside = f", and {percent(real[n].value)} among real people's days" if n in real else ""
    return Finding(
        "A17",
        interval=main[n],
        control_interval=control[n],
        baseline=1 / (n + 1),
        null=real.get(n),
        bar=bars[n],
        passed=verdict(main[n], bars[n], real.get(n)),
        reachable=real[n].high <= bars[n] if n in real else None,
        worst_decile=float(each[: -(-len(each) // 10)].mean()),
        words=f"With {n} fake{'s' * (n > 1)} sent along, a service that knows how people move names "
        f"{percent(main[n].value)} of the true places{beside}; a guess names {percent(1 / (n + 1))}.",
        details={"fakes": n, "by_fakes": main, "control_by_fakes": control, "real_decoys_by_fakes": real, "bars": bars},
    )


def _real_decoys(inputs: AttackInputs, numbers: tuple[int, ...], rng: np.random.Generator) -> dict[int, Rate]:
    """Run A17 with real days of half of the hold-out people as decoys; the adversary learns from the other half."""
    people = inputs.strangers
    half = rng.permutation(people.U) % 2
    decoys = people.r[half[people.user] == 1]
    few = tuple(n for n in numbers if n <= len(decoys))
    if not few or half.all():
        return {}
    half_of_people = inputs.stranger_days.of_users(np.flatnonzero(half == 0))
    result = _run_scenario(inputs.seed_days, half_of_people, from_pool(decoys), few, rng)
    return {n: _success(result, n, "aggregate") for n in few}


def attack_A19(inputs: AttackInputs) -> Finding:
    """Run A17 with a service that holds the pool and strikes out every trace of it that fits; documented, no bar."""
    numbers, ours, strangers = _decoys(inputs)
    rng = inputs.rng("A19")
    pool = inputs.fakes if inputs.pool is None else inputs.pool.r.astype(np.int64)
    main = _run_scenario(inputs.seed_days, inputs.stranger_days, ours, numbers, rng, pool)
    control = _run_scenario(inputs.stranger_days, inputs.seed_days, strangers, numbers, rng, pool)
    n = numbers[-1]
    figure, other = (_success(result, n, "pool") for result in (main, control))
    # the same service, of the same people, without the pool: what it adds is what the pool tells
    without = _success(main, n, "aggregate")
    return Finding(
        "A19",
        interval=figure,
        control_interval=other,
        baseline=1 / (n + 1),
        null=without,
        words=f"A service that holds the pool names {percent(figure.value)} of the true places among {n} "
        f"fake{'s' * (n > 1)}, without the pool {percent(without.value)} (of users of whom no fake was made: "
        f"{percent(other.value)}): it learns where anybody is who hides behind this pool, not whom the fakes were made "
        "of; decoys must be drawn from fakes that the service cannot have, with a secret of the user.",
        details={"fakes": n, "by_fakes": {m: _success(main, m, "pool") for m in numbers}},
    )


def attack_A18(inputs: AttackInputs) -> Finding:
    """Find home and main place by what recurs, or by which line lives like a person, over 1, 7 and 28 days."""
    rng = inputs.rng("A18")
    numbers = [n for n in N_FAKES if n < len(np.unique(inputs.life))]
    lives = inputs.as_traces(People(inputs.fakes, inputs.life, 0), "fakes")  # the days of one under one user
    maker = np.full(lives.U, -1)
    maker[lives.user] = inputs.main.user
    company = Company.of(lives, maker)
    by_number = {
        n: result for n in numbers if (result := over_days(inputs.seed_days, company, n=n, rng=rng)) is not None
    }
    if not by_number or max(max(result.users) for result in by_number.values()) < 2:
        raise CannotRun(f"at least {ENOUGH} seed users with {DAYS[1]} days or more, and {OF_OTHERS}")
    cases = {
        (n, place, days): rate
        for n, result in by_number.items()
        for place, by_days in result.found["persona"].items()
        for days, rate in by_days.items()
        if days > 1
    }
    # the strongest case, by how far it is above guessing
    n, place, days = max(cases, key=lambda case: cases[case].value - 1 / (case[0] + 1))
    main, result, bar = cases[n, place, days], by_number[n], 1 / (n + 1) + MARGIN
    strangers = over_days(inputs.stranger_days, Company.of(lives), n=n, rng=rng)
    control = None if strangers is None else strangers.found["persona"][place].get(days)
    real = _real_personas(inputs, n, place, days, rng)
    first = result.found["persona"][place].get(1)
    return Finding(
        "A18",
        interval=main,
        control_interval=control,
        baseline=1 / (n + 1),
        bar=bar,
        null=real,
        passed=verdict(main, bar, real),
        reachable=None if real is None else real.high <= bar,
        words=f"{result.in_words()[:1].upper()}{result.in_words()[1:]}"
        + ("" if real is None else f" Real people's lives as decoys: {percent(real.value)}."),
        details={
            "fakes": n,
            "days": days,
            "place": place,
            "more_than_on_one_day": None if first is None else main.value - first.value,
            "over_days": {str(m): result.to_dict() for m, result in by_number.items()},
        },
    )


def _real_personas(inputs: AttackInputs, n: int, place: str, days: int, rng: np.random.Generator) -> Rate | None:
    """Run A18 with real lives of hold-out people as decoys: what a persona can reach at best."""
    real = inputs.stranger_days
    if real.U < n or max(np.bincount(real.user)) < days:
        return None
    result = over_days(inputs.seed_days, Company.of(real), n=n, days=[days], rng=rng)
    return None if result is None else result.found["persona"][place].get(days)


def _decoys(inputs: AttackInputs) -> tuple[tuple[int, ...], PoolGenerator, PoolGenerator]:
    """Return how many fakes every user can be given; the fakes for seed users, none of her own; those for strangers."""
    most = len(inputs.fakes) - int(np.bincount(inputs.main.user).max())
    numbers = tuple(n for n in N_FAKES if n <= most)
    if not numbers:
        raise CannotRun(OF_OTHERS)
    of_nobody = np.full(len(inputs.fakes), -1)
    return numbers, from_pool(inputs.fakes, inputs.main.user), from_pool(inputs.fakes, of_nobody)


def _run_scenario(
    people: Traces,
    others: Traces,
    generator: Callable[..., Any],
    numbers: tuple[int, ...],
    rng: np.random.Generator,
    pool: Ints | None = None,
) -> LbsResult:
    """Run the scenario on some of `people`, the adversary knowing `others`."""
    users = np.sort(rng.permutation(people.U)[:MOST_USERS])
    test = people if len(users) == people.U else people.of_users(users)

    def decoys(user: int, n: int, rng: np.random.Generator) -> Any:
        # the scenario counts the users it attacks after those it knows, the audit by themselves
        return generator(test.labels[user - others.U][1], n, rng)

    return evaluate_lbs(
        others, test, {"decoys": decoys}, pool=pool, n_fakes=numbers, beta=BETA, repeats=REPEATS, rng=rng
    )


def _success(result: LbsResult, n: int, adversary: str) -> Rate:
    """Return 1 - error at exposed slots of the better attack: median over users, with its interval."""
    figures = [result.figure("decoys", n, adversary, attack) for attack in ATTACKS]
    best = min(figures, key=lambda figure: figure["median"])
    low, high = best["interval"]
    return Rate(1 - best["median"], 1 - high, 1 - low)
