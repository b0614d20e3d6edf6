"""
A17, A18, A19 in the shape of the audit: the service against decoys made of the fakes.

The fakes protect the seed users (main), never one by a fake of her own (E66), and hold-out users (control). The
adversary's p_bar comes from the other group, so he has met none of the truths he attacks. All figures are successes of
the adversary, 1 - error, so that smaller is better.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from elsewhere.evaluation.attacks.finding import NOT_RUN, Finding, percent, verdict
from elsewhere.evaluation.attacks.ground import Ground, People
from elsewhere.evaluation.attacks.intervals import Rate, user_rate, wilson
from elsewhere.evaluation.baselines import PoolGenerator, from_pool
from elsewhere.evaluation.lbs.days import home_found
from elsewhere.evaluation.lbs.result import ATTACKS, BAR, LbsResult
from elsewhere.evaluation.lbs.scenario import evaluate_lbs
from elsewhere.traces.model import Ints, Traces

N_FAKES = (1, 5, 10)
BETA = 0.5
REPEATS = (2, 3)  # many users tell more than many runs
MOST_USERS = 200
DAYS = (7, 30)
ENOUGH = 5  # users with that many days
MARGIN = 0.05
OF_OTHERS = "fakes of at least two seed users"
TITLES = {
    "A17": "localization and tracking behind decoys",
    "A18": "intersection over many days",
    "A19": "the service holds the pool",
}


def attack_A17(ground: Ground) -> Finding:
    """Localization and tracking with 1, 5, 10 fakes sent along; the adversary knows how people move."""
    numbers = _numbers(ground)
    if not numbers:
        return _not_run("A17", OF_OTHERS)
    rng = ground.rng("A17")
    ours, strangers = _decoys(ground)
    served = _served(ground.seeds, ground.strangers, ours, ground, numbers, rng)
    main = {n: _success(served, n, "aggregate") for n in numbers}
    other = _served(ground.strangers, ground.seeds, strangers, ground, numbers, rng)
    control = {n: _success(other, n, "aggregate") for n in numbers}
    real = _real_decoys(ground, numbers, rng)
    bars = {n: 1 - BAR * n / (n + 1) for n in numbers}
    n = max(numbers, key=lambda n: main[n].value - bars[n])
    each = np.sort(1 - served.error[:, 0, numbers.index(n), 0, :, 0].min(axis=1))[::-1]
    beside = f", and {percent(real[n].value)} among real people's days" if n in real else ""
    return Finding(
        "A17",
        TITLES["A17"],
        main=main[n].value,
        interval=main[n],
        control=control[n].value,
        control_interval=control[n],
        baseline=1 / (n + 1),
        null=real.get(n),
        bar=bars[n],
        passed=verdict(main[n], bars[n], real.get(n)),
        reachable=real[n].high <= bars[n] if n in real else None,
        worst_decile=float(each[: -(-len(each) // 10)].mean()),
        words=f"With {_fakes(n)} sent along, a service that knows how people move names {percent(main[n].value)} of "
        f"the true places{beside}; a guess names {percent(1 / (n + 1))}.",
        details={"fakes": n, "by_fakes": main, "control_by_fakes": control, "real_decoys_by_fakes": real, "bars": bars},
    )


def _fakes(n: int) -> str:
    return "1 fake" if n == 1 else f"{n} fakes"


def _real_decoys(ground: Ground, numbers: tuple[int, ...], rng: np.random.Generator) -> dict[int, Rate]:
    """The same with real days of half of the hold-out people as decoys; the adversary learns from the other half."""
    people = ground.strangers
    half = rng.permutation(people.U)[people.user] % 2
    known, decoys = (People(people.r[half == side], people.user[half == side], people.U) for side in (0, 1))
    few = tuple(n for n in numbers if n <= len(decoys.r))
    if not few or len(known.r) == 0:
        return {}
    found = _served(ground.seeds, known, from_pool(decoys.r), ground, few, rng)
    return {n: _success(found, n, "aggregate") for n in few}


def attack_A19(ground: Ground) -> Finding:
    """The same with a service that holds the pool and strikes out every trace of it that fits; documented, no bar."""
    numbers = _numbers(ground)
    if not numbers:
        return _not_run("A19", OF_OTHERS)
    rng = ground.rng("A19")
    ours, strangers = _decoys(ground)
    pool = ground.fakes if ground.pool is None else ground.pool.r.astype(np.int64)
    main = _served(ground.seeds, ground.strangers, ours, ground, numbers, rng, pool)
    control = _served(ground.strangers, ground.seeds, strangers, ground, numbers, rng, pool)
    n = numbers[-1]
    figure, other = (_success(found, n, "pool") for found in (main, control))
    return Finding(
        "A19",
        TITLES["A19"],
        main=figure.value,
        interval=figure,
        control=other.value,
        control_interval=other,
        baseline=1 / (n + 1),
        words=f"A service that holds the pool names {percent(figure.value)} of the true places among {_fakes(n)} "
        f"(of users of whom no fake was made: {percent(other.value)}): it learns where anybody is who hides behind "
        "this pool, not whom the fakes were made of; "
        "decoys must be drawn from fakes that the service cannot have, with a secret of the user.",
        details={"fakes": n, "by_fakes": {m: _success(main, m, "pool") for m in numbers}},
    )


def attack_A18(ground: Ground) -> Finding:
    """The home by what recurs at night over 7 and 30 days, decoys being the same personas every day."""
    rng = ground.rng("A18")
    ours, strangers = _decoys(ground)
    groups = {"main": (ground.seeds, ours), "control": (ground.strangers, strangers)}

    def rate(group: str, n: int, days: int, personas: bool) -> Rate | None:
        people, generator = groups[group]
        users, found = home_found(
            _traces(people, ground, group),
            generator,
            n=n,
            days=days,
            beta=BETA,
            repeats=REPEATS[0],
            personas=personas,
            rng=rng,
        )
        return user_rate(found, users, rng)[0] if len(users) >= ENOUGH else None

    found = {(n, d): r for n in _numbers(ground) for d in DAYS if (r := rate("main", n, d, True)) is not None}
    if not found:
        return _not_run("A18", f"at least {ENOUGH} seed users with {DAYS[0]} rows or more, and {OF_OTHERS}")
    n, days = max(found, key=lambda key: found[key].value - 1 / (key[0] + 1))
    main, bar = found[n, days], 1 / (n + 1) + MARGIN
    # what a blind guess would show with as many users
    users = int(np.count_nonzero(np.bincount(ground.seeds.user) >= days))
    guess = wilson(users / (n + 1), users)
    control = rate("control", n, days, True)
    fresh = {f"{m} fakes, {d} days": rate("main", m, d, False) for m, d in found}
    return Finding(
        "A18",
        TITLES["A18"],
        main=main.value,
        interval=main,
        control=None if control is None else control.value,
        control_interval=control,
        baseline=1 / (n + 1),
        bar=bar,
        null=guess,
        passed=verdict(main, bar, guess),
        reachable=guess.high <= bar,
        words=f"Over {days} days with {_fakes(n)}, the same every day, the home is the place that recurs most in "
        f"{percent(main.value)}; a guess finds {percent(1 / (n + 1))}.",
        details={
            "fakes": n,
            "days": days,
            "personas": {f"{m} fakes, {d} days": r for (m, d), r in found.items()},
            "fresh_every_day": fresh,
        },
    )


def _decoys(ground: Ground) -> tuple[PoolGenerator, PoolGenerator]:
    """The fakes for seed users, none of her own, and for hold-out users."""
    return from_pool(ground.fakes, ground.main.user), from_pool(ground.fakes, np.full(len(ground.fakes), -1))


def _numbers(ground: Ground) -> tuple[int, ...]:
    """Numbers of fakes that every user can be given: as many as do not descend from her."""
    most = len(ground.fakes) - int(np.bincount(ground.main.user).max())
    return tuple(n for n in N_FAKES if n <= most)


def _not_run(attack: str, needs: str) -> Finding:
    return Finding(attack, TITLES[attack], status=NOT_RUN, needs=needs, words=f"Not run: needs {needs}.")


def _traces(people: People, ground: Ground, group: str) -> Traces:
    # labels of their own: a seed and a hold-out user of one number are two people
    start = f"{int(ground.minutes[0]) // 60:02d}:{int(ground.minutes[0]) % 60:02d}"
    labels = [(group, u) for u in people.user.tolist()]
    return Traces(people.r, ground.locations, users=labels, step_minutes=ground.step_minutes, start=start)


def _served(
    people: People,
    others: People,
    generator: Callable[..., Any],
    ground: Ground,
    numbers: tuple[int, ...],
    rng: np.random.Generator,
    pool: Ints | None = None,
) -> LbsResult:
    """The scenario on some of `people`, the adversary knowing `others`."""
    chosen = np.sort(rng.permutation(people.U)[:MOST_USERS])
    test = _traces(people, ground, "attacked").select(np.isin(people.user, chosen))
    train = _traces(others, ground, "known")

    def decoys(user: int, n: int, rng: np.random.Generator) -> Any:
        # the scenario counts the users it attacks after those it knows, the fakes count them as the ground does
        return generator(test.labels[user - train.U][1], n, rng)

    return evaluate_lbs(
        train, test, {"decoys": decoys}, pool=pool, n_fakes=numbers, beta=BETA, repeats=REPEATS, rng=rng
    )


def _success(found: LbsResult, n: int, adversary: str) -> Rate:
    """1 - error at exposed instants of the better attack: median over users, with its interval."""
    figures = [found.figure("decoys", n, adversary, attack) for attack in ATTACKS]
    best = min(figures, key=lambda figure: figure["median"])
    low, high = best["interval"]
    return Rate(1 - best["median"], 1 - high, 1 - low)
