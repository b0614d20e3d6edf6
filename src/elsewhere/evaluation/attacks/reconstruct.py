"""
A6 and A7: where was the seed at each instant? From n fakes of it, without naming it.

A6 takes argmax_r of ln prior(r) + sum over the fakes of ln M[r, f(t)], prior and M from the other users. A7 looks for
what the fakes avoid: among the places of the class they use most at t, the one they use least against expectation.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from elsewhere.evaluation.attacks._kernels import reconstruct
from elsewhere.evaluation.attacks.candidates import shared_top
from elsewhere.evaluation.attacks.finding import Finding, percent, verdict
from elsewhere.evaluation.attacks.ground import Ground, Link
from elsewhere.evaluation.attacks.intervals import Rate, by_user, paired, user_rate
from elsewhere.evaluation.attacks.linkage import CoOccurrence
from elsewhere.traces.model import Floats, Ints

FAKES = (1, 3, 10)
ABOVE_PRIOR = 0.05


class Recovered(NamedTuple):
    """
    Per seed row that has fakes enough, the share of its instants found.

    `exact` by the attack, `top5` among its first five places, `prior` by the places of the other users alone.
    """

    row: Ints
    exact: Floats
    top5: Floats
    prior: Floats


def _fakes_of_rows(link: Link, n: int) -> dict[int, Ints]:
    order = np.argsort(link.owner, kind="stable")
    rows, start = np.unique(link.owner[order], return_index=True)
    parts = np.split(order, start[1:])
    return {int(row): mine[:n] for row, mine in zip(rows, parts, strict=True) if len(mine) >= n}


def recover(link: Link, R: int, n: int) -> Recovered:
    """A6 on every seed that has n fakes: its first n."""
    pairs = CoOccurrence(link, R)
    V, L = len(pairs.leaving), link.fakes.shape[1]
    visits = np.bincount(pairs.people.ravel(), minlength=V).astype(np.float64)
    rows_of_user = [np.flatnonzero(link.people.user == u) for u in range(link.people.U)]
    chosen = _fakes_of_rows(link, n)
    found = np.empty((len(chosen), 3))
    above, tied = np.empty(L, dtype=np.int64), np.empty(L, dtype=np.int64)
    nothing = np.empty((0, L), dtype=np.int64)
    for i, (row, mine) in enumerate(chosen.items()):
        user = int(link.people.user[row])
        others = visits - np.bincount(pairs.people[rows_of_user[user]].ravel(), minlength=V)
        with np.errstate(divide="ignore"):
            prior = np.log(others)
        pairs.forget(user)
        tables = pairs.log_count, pairs.log_leaving
        reconstruct(pairs.fakes[mine], pairs.people[row], prior, *tables, above, tied)
        found[i, :2] = [np.clip((best - above) / tied, 0, 1).mean() for best in (1, 5)]
        reconstruct(nothing, pairs.people[row], prior, *tables, above, tied)
        found[i, 2] = np.clip((1 - above) / tied, 0, 1).mean()
        pairs.recall(user)
    return Recovered(np.fromiter(chosen, dtype=np.int64, count=len(chosen)), *found.T)


def avoided(link: Link, label: Ints, R: int, n: int) -> Recovered:
    """
    A7 on every seed that has n fakes: the place least used over the n fakes, in the class most used at t.

    The expectation of a place within its class is its share of all fakes at that class, over other users' fakes.
    """
    chosen = _fakes_of_rows(link, n)
    used = np.bincount(link.fakes.ravel(), minlength=R).astype(np.float64)
    visits = np.bincount(link.people.r.ravel(), minlength=R).astype(np.float64)
    exact, top5, prior = (np.zeros(len(chosen)) for _ in range(3))
    L = link.fakes.shape[1]
    members = {c: np.flatnonzero(label == c) for c in np.unique(label[label >= 0]).tolist()}
    for i, (row, mine) in enumerate(chosen.items()):
        seed, fakes = link.people.r[row], link.fakes[mine]
        own = np.bincount(fakes.ravel(), minlength=R)
        expected = used - own + 0.5
        others = visits - np.bincount(seed, minlength=R)
        for t in range(L):
            true = np.flatnonzero(others == others.max())
            prior[i] += (seed[t] in true) / len(true)
            classes = label[fakes[:, t]]
            known = classes[classes >= 0]
            if len(known) == 0:
                continue
            places = members[int(np.bincount(known).argmax())]
            own_place = np.flatnonzero(places == seed[t])
            if len(own_place):
                use = (own[places] + 0.01) / expected[places]
                exact[i] += shared_top(-use[None, :], own_place)[0]
                top5[i] += shared_top(-use[None, :], own_place, 5)[0]
    return Recovered(np.fromiter(chosen, dtype=np.int64, count=len(chosen)), exact / L, top5 / L, prior / L)


def _finding(ground: Ground, attack: str, tried: Callable[[Link, int], Recovered], how: str) -> Finding:
    rng, link, L = ground.rng(attack), ground.main, ground.fakes.shape[1]
    most = int(np.bincount(link.owner).max())
    counts = [n for n in FAKES if n <= most]

    def rate(found: Recovered, share: Floats) -> tuple[Rate, float]:
        # every instant is a trial of its user; the interval resamples users
        return user_rate(np.repeat(share, L), np.repeat(link.people.user[found.row], L), rng)

    runs = {n: tried(link, n) for n in counts}
    rates = {n: rate(found, found.exact) for n, found in runs.items()}
    best = max(counts, key=lambda n: rates[n][0].value)
    found = runs[best]
    worst = rates[best][1]
    user = link.people.user[found.row]
    gain = paired(by_user(found.exact, user), by_user(found.prior, user))
    # what is judged is the gain over the prior, person by person: the interval is that of the gain
    prior = float(by_user(found.prior, user).mean())
    main = _above(prior, gain)
    null = tried(ground.null, best)
    null_gain = paired(by_user(null.exact, user), by_user(null.prior, user))
    strangers = tried(ground.control, best)
    control, _ = user_rate(np.repeat(strangers.exact, L), np.repeat(strangers.row, L), rng)
    return Finding(
        attack,
        main=main.value,
        interval=main,
        control=control.value,
        control_interval=control,
        baseline=prior,
        null=_above(prior, null_gain),
        bar=prior + ABOVE_PRIOR,
        passed=verdict(gain, ABOVE_PRIOR, null_gain),
        reachable=null_gain.high <= ABOVE_PRIOR,
        worst_decile=worst,
        words=f"{how} finds the place of the seed at {percent(main.value)} of the instants from {best} fake"
        f"{'s' if best > 1 else ''}; the places of the other people alone find {percent(prior)}.",
        details={
            "n": best,
            "exact": {n: rates[n][0] for n in counts},
            "top5": {n: rate(run, run.top5)[0] for n, run in runs.items()},
            "above_prior": gain,
        },
    )


def _above(prior: float, gain: Rate) -> Rate:
    return Rate(*(min(1.0, max(0.0, prior + value)) for value in gain))


def reconstruction(ground: Ground) -> Finding:
    """A6."""
    return _finding(
        ground,
        "A6",
        lambda link, n: recover(link, ground.R, n),
        "Whoever knows all other users' pairs",
    )


def avoidance(ground: Ground) -> Finding:
    """A7."""
    label = ground.label
    if label is None:
        raise ValueError("`classes` are checked before an attack runs")
    return _finding(
        ground,
        "A7",
        lambda link, n: avoided(link, label, ground.R, n),
        "Looking for what the fakes avoid",
    )
