"""
A16: which points would a filter throw out? Steps nobody makes, speeds nobody reaches, places at hours nobody is there.

Filters learn from one half of the hold-out people and judge the other half and the fakes, then the halves change
places: fakes must be thrown out as rarely as real people whom the filters do not know. Where groups of real people as
large as that of the fakes are flagged as well, there is no verdict.
"""

from collections.abc import Callable

import numpy as np

from elsewhere.evaluation.attacks.finding import Finding, Fresh, flagged_too, percent, points, verdict
from elsewhere.evaluation.attacks.grams import Grams
from elsewhere.evaluation.attacks.ground import Ground, People
from elsewhere.evaluation.attacks.intervals import LEVEL, Rate, by_user, difference
from elsewhere.traces.model import Floats, Ints

BAR = 0.01
FLOOR = 1e-4  # of p_bar
FASTEST = 0.999  # quantile of the speeds of real steps
MISPLACED = 0.25  # a place used this much less than its due at an hour
ENOUGH = 10  # visits before a place's hours are judged
GROUPS = 200  # of real people, to see how often the bar flags them

Filter = Callable[[Ints], Floats]


def learn(people: People, ground: Ground) -> dict[str, Filter]:
    """Filters from these people: each gives the share of points of every trace that it throws out."""
    grams = Grams(people, ground.R, ground.hour)
    hours = np.bincount(ground.hour) / len(ground.hour)

    def unreachable(r: Ints) -> Floats:
        return np.asarray((grams.step(r) < FLOOR).mean(axis=1))

    def nobody_there(r: Ints) -> Floats:
        return np.asarray((grams.at_hour(r) == 0).mean(axis=1))

    def wrong_hour(r: Ints) -> Floats:
        visits = grams.places.look(r)
        due = visits * hours[ground.hour]
        return np.asarray(((visits >= ENOUGH) & (grams.at_hour(r) < MISPLACED * due)).mean(axis=1))

    found: dict[str, Filter] = {"unreachable": unreachable, "nobody_there": nobody_there, "wrong_hour": wrong_hour}
    if ground.locations.has_coordinates:
        v_max = np.quantile(ground.locations.distance(people.r[:, :-1], people.r[:, 1:]), FASTEST)

        def too_fast(r: Ints) -> Floats:
            return np.asarray((ground.locations.distance(r[:, :-1], r[:, 1:]) > v_max).mean(axis=1))

        found["too_fast"] = too_fast
    return found


def rejected(ground: Ground, groups: dict[str, Ints], half: Ints) -> dict[str, dict[str, Floats]]:
    """filter -> group -> share thrown out of each trace; hold-out people by the filters of the other half."""
    people = ground.strangers
    out: dict[str, dict[str, Floats]] = {}
    for side in (0, 1):
        known = np.flatnonzero(half[people.user] == side)
        filters = learn(People(people.r[known], people.user[known], people.U), ground)
        other = np.flatnonzero(half[people.user] != side)
        for name, throw in filters.items():
            into = out.setdefault(name, {"holdout": np.zeros(len(people.r))})
            into["holdout"][other] = throw(people.r[other])
            for group, r in groups.items():
                into[group] = into.get(group, np.zeros(len(r))) + throw(r) / 2
    return out


def filtering(ground: Ground) -> Finding:
    """A16."""
    rng, people = ground.rng("A16"), ground.strangers
    half = rng.permutation(people.U) % 2
    shares = rejected(ground, {"fakes": ground.fakes, "seeds": ground.seeds.r}, half)
    maker = np.arange(len(ground.fakes)) if ground.owner is None else ground.main.user
    level = 1 - (1 - LEVEL) / len(shares)
    gaps: dict[str, Rate] = {}
    chance: dict[str, Rate] = {}
    rates: dict[str, dict[str, float]] = {}
    persons: list[Floats] = []
    for name, share in shares.items():
        real, seeds = by_user(share["holdout"], people.user), by_user(share["seeds"], ground.seeds.user)
        gaps[name] = difference(by_user(share["fakes"], maker), real, level=level)
        chance[name] = difference(seeds, real, level=level)
        who = {"fakes": maker, "holdout": people.user, "seeds": ground.seeds.user}
        rates[name] = {group: float(by_user(values, who[group]).mean()) for group, values in share.items()}
        persons.append(np.concatenate([real, seeds]))
    makers = min(len(np.unique(maker)), ground.seeds.U)
    flagged = flagged_groups(np.array(persons), people.U, makers, level, rng)
    verdicts = {name: verdict(gap, BAR, None, Fresh(chance[name], flagged)) for name, gap in gaps.items()}
    passed = False if False in verdicts.values() else None if None in verdicts.values() else True
    # the filter that decides the verdict is the one to speak of
    worst = max(gaps, key=lambda name: (verdicts[name] is False, gaps[name].high))
    main, control = gaps[worst], chance[worst]
    fresh = Fresh(control, flagged)
    each = np.sort(by_user(shares[worst]["fakes"], maker))[::-1]
    return Finding(
        "A16",
        main=main.value,
        interval=main,
        control=control.value,
        control_interval=control,
        baseline=0.0,
        null=control,
        fresh=fresh,
        bar=BAR,
        passed=passed,
        reachable=fresh.pass_it,
        worst_decile=float(each[: -(-len(each) // 10)].mean()) - rates[worst]["holdout"],
        words=f"The filter {worst.replace('_', ' ')!r} throws out {points(main.value)} more of the fakes than of real "
        f"people ({percent(rates[worst]['fakes'])} against {percent(rates[worst]['holdout'])} of their slots)."
        + flagged_too(passed, fresh, points(control.value)),
        details={"worst": worst, "rates": rates, "difference": gaps},
    )


def flagged_groups(share: Floats, known: int, size: int, level: float, rng: np.random.Generator) -> float:
    """
    How often the bar flags a group of `size` real people, drawn at random, beside `known` others.

    `share` (filters, people) is what each filter throws out of each real person.
    """
    flagged = 0
    for _ in range(GROUPS):
        order = rng.permutation(share.shape[1])
        some, rest = share[:, order[:size]], share[:, order[size : size + known]]
        flagged += any(difference(a, b, level=level).high > BAR for a, b in zip(some, rest, strict=True))
    return flagged / GROUPS
