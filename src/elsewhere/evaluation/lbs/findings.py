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
from elsewhere.evaluation.attacks.intervals import Rate, user_rate
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
TITLES = {
    "A17": "localization and tracking behind decoys",
    "A18": "intersection over many days",
    "A19": "the service holds the pool",
}


def attack_A17(ground: Ground) -> Finding:
    """Localization and tracking with 1, 5, 10 fakes sent along; the adversary knows how people move."""
    rng = ground.rng("A17")
    ours, strangers = _decoys(ground)
    known, others = _halves(ground.strangers, rng)
    groups = {
        "main": _served(ground.seeds, ground.strangers, ground, ours, rng),
        "control": _served(ground.strangers, ground.seeds, ground, strangers, rng),
        # other people's real days are the best decoys there are; the adversary learns from the other half of them
        "real": _served(ground.seeds, known, ground, from_pool(others.r), rng),
    }
    by_m = {name: {n: _success(found, n, "aggregate") for n in found.n_fakes} for name, found in groups.items()}
    worst = max(by_m["main"], key=lambda n: by_m["main"][n].value - (1 - BAR * n / (n + 1)))
    main, control, real = (by_m[name][worst] for name in ("main", "control", "real"))
    bar = 1 - BAR * worst / (worst + 1)
    each = groups["main"].error[:, 0, groups["main"].n_fakes.index(worst), 0, :, 0].min(axis=1)
    return Finding(
        "A17",
        TITLES["A17"],
        main=main.value,
        interval=main,
        control=control.value,
        control_interval=control,
        baseline=1 / (worst + 1),
        null=real,
        bar=bar,
        passed=verdict(main, bar, real),
        reachable=real.high <= bar,
        worst_decile=float(np.sort(1 - each)[::-1][: -(-len(each) // 10)].mean()),
        words=f"With {worst} fakes sent along, a service that knows how people move names {percent(main.value)} of the "
        f"true places; a guess names {percent(1 / (worst + 1))}, and among real people's days he names "
        f"{percent(real.value)}.",
        details={"fakes": worst, "by_fakes": by_m, "needs_two_days": "the adversary with p(u): see `evaluate_lbs`"},
    )


def attack_A19(ground: Ground) -> Finding:
    """The same with a service that holds the pool and strikes out every trace of it that fits; documented, no bar."""
    rng = ground.rng("A19")
    ours, strangers = _decoys(ground)
    pool = ground.fakes if ground.pool is None else ground.pool.r.astype(np.int64)
    main, control = (
        _served(a, b, ground, g, rng, pool=pool)
        for a, b, g in ((ground.seeds, ground.strangers, ours), (ground.strangers, ground.seeds, strangers))
    )
    n = main.n_fakes[-1]
    figure, other = (_success(found, n, "pool") for found in (main, control))
    return Finding(
        "A19",
        TITLES["A19"],
        main=figure.value,
        interval=figure,
        control=other.value,
        control_interval=other,
        baseline=1 / (n + 1),
        words=f"A service that holds the pool names {percent(figure.value)} of the true places among {n} fakes: decoys "
        "must be drawn from fakes that the service cannot have, with a secret of the user.",
        details={"fakes": n, "by_fakes": {m: _success(main, m, "pool") for m in main.n_fakes}},
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

    many = [n for n in N_FAKES if n <= _most(ground)]
    found = {(n, d): r for n in many for d in DAYS if (r := rate("main", n, d, True)) is not None}
    if not found:
        needs = f"at least {ENOUGH} seed users with {DAYS[0]} rows or more"
        return Finding("A18", TITLES["A18"], status=NOT_RUN, needs=needs, words=f"Not run: needs {needs}.")
    n, days = max(found, key=lambda key: found[key].value - 1 / (key[0] + 1))
    main, bar, control = found[n, days], 1 / (n + 1) + MARGIN, rate("control", n, days, True)
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
        passed=verdict(main, bar, None),
        reachable=None,
        words=f"Over {days} days with {n} fakes, the same every day, the home is the place that recurs most in "
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


def _halves(people: People, rng: np.random.Generator) -> tuple[People, People]:
    half = rng.permutation(people.U) % 2
    first, second = (np.flatnonzero(half[people.user] == side) for side in (0, 1))
    return People(people.r[first], people.user[first], people.U), People(
        people.r[second], people.user[second], people.U
    )


def _most(ground: Ground) -> int:
    """Fakes that every seed user can be given."""
    return len(ground.fakes) - int(np.bincount(ground.main.user).max())


def _traces(people: People, ground: Ground, group: str) -> Traces:
    # labels of their own: a seed and a hold-out user of one number are two people
    start = f"{int(ground.minutes[0]) // 60:02d}:{int(ground.minutes[0]) % 60:02d}"
    labels = [(group, u) for u in people.user.tolist()]
    return Traces(people.r, ground.locations, users=labels, step_minutes=ground.step_minutes, start=start)


def _served(
    people: People,
    others: People,
    ground: Ground,
    generator: Callable[..., Any],
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

    most = tuple(n for n in N_FAKES if n <= _most(ground))
    return evaluate_lbs(train, test, {"decoys": decoys}, pool=pool, n_fakes=most, beta=BETA, repeats=REPEATS, rng=rng)


def _success(found: LbsResult, n: int, adversary: str) -> Rate:
    """1 - error at exposed instants of the better attack: median over users, with its interval."""
    figures = [found.figure("decoys", n, adversary, attack) for attack in ATTACKS]
    best = min(figures, key=lambda figure: figure["median"])
    low, high = best["interval"]
    return Rate(1 - best["median"], 1 - high, 1 - low)
