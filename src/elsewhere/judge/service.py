"""The service scenario as the paper runs it: first day against second day, four generators of the paper and ours."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from elsewhere.errors import InvalidTraces, NotEnoughUsers
from elsewhere.evaluation.baselines import (
    Generator,
    PoolGenerator,
    aggregate_iid,
    from_pool,
    uniform_iid,
    walk_on_aggregate,
    walk_on_user,
)
from elsewhere.evaluation.lbs.days import Company, over_days
from elsewhere.evaluation.lbs.result import LbsResult
from elsewhere.evaluation.lbs.scenario import evaluate_lbs
from elsewhere.pool import on_map_of
from elsewhere.profiles.aggregate import aggregate
from elsewhere.profiles.markov import fit_profiles
from elsewhere.traces.model import Ints, Traces

OURS = "elsewhere"
FEWEST = 2  # users, so that one can be hidden behind the fakes of another


def two_days(traces: Traces) -> tuple[Traces, Traces]:
    """
    The first day of every user who has several (training), and the second (testing), users in the same order.

    Days are ordered by date, without dates as they come.

    Examples
    --------
    >>> from elsewhere.traces.model import Locations
    >>> days = Traces([[0, 1], [2, 2], [3, 3], [1, 1], [0, 0]], Locations(n=4), users=list("aabcc"))
    >>> [t.r.tolist() for t in two_days(days)]
    [[[0, 1], [1, 1]], [[2, 2], [0, 0]]]

    """
    day = np.arange(len(traces)) if traces.dates is None else traces.dates.astype(np.int64)
    order = np.lexsort((day, traces.user))
    user = traces.user[order]
    rank = np.arange(len(order)) - np.searchsorted(user, user)
    several = np.bincount(user, minlength=traces.U) > 1
    if several.sum() < FEWEST:
        raise NotEnoughUsers(
            f"{int(several.sum())} users have two days, {FEWEST} are needed: give the second day as another file "
            "(`--test`), or traces of several days.",
            code="E_DAYS",
        )
    first, second = (order[(rank == k) & several[user]] for k in (0, 1))
    return traces.select(first), traces.select(second)


def five_generators(
    train: Traces, fakes: Any, users_of_fakes: Ints | None = None, *, choose: str = "uniform"
) -> dict[str, Generator]:
    """The four generators of the paper learnt from `train`, and fakes that never descend from whom they hide (E66)."""
    profiles = fit_profiles(train, missing="skip")
    model = aggregate(profiles, train.locations)
    return {
        "uniform IID": uniform_iid(train.R, train.L),
        "aggregate IID": aggregate_iid(model, train.L),
        "walk on aggregate": walk_on_aggregate(model, train.L),
        "walk on user": walk_on_user(profiles, train.L),
        OURS: from_pool(fakes, users_of_fakes, choose=choose),
    }


def judge_service(
    train: Traces,
    test: Traces,
    fakes: Any,
    users_of_fakes: Ints | None = None,
    *,
    classes: Any = None,
    n_fakes: tuple[int, ...] = (1, 5, 10),
    beta: float = 0.5,
    repeats: tuple[int, int] = (4, 5),
    choose: str = "uniform",
    days: Traces | None = None,
    progress: Callable[[int, int], None] | None = None,
    rng: np.random.Generator,
) -> LbsResult:
    """
    All five generators under all adversaries; users of `test` who are not in `train` are left out.

    `users_of_fakes` gives the number in `train` of the user each fake descends from, where `fakes` does not know it;
    `days` all days of the users, for a service that watches for several (A18).
    """
    known = [i for i, label in enumerate(test.labels) if label in set(train.labels)]
    if len(known) < FEWEST:
        raise InvalidTraces(
            f"{len(known)} users are in both the training and the testing traces, {FEWEST} are needed.", code="E_DAYS"
        )
    fakes = on_map_of(fakes, train)
    generators = five_generators(train, fakes, users_of_fakes, choose=choose)
    found = evaluate_lbs(
        train,
        test.of_users(np.array(known)),
        generators,
        classes=classes,
        # numbers of places only: the map of the fakes need not be the owner's
        pool=np.asarray(getattr(fakes, "r", fakes)),
        n_fakes=n_fakes,
        beta=beta,
        repeats=repeats,
        rng=rng,
        progress=progress,
    )
    if days is None:
        return found
    company = _company(fakes, from_pool(fakes, users_of_fakes), days, train)
    watched = (over_days(days, company, n=n, rng=rng) for n in n_fakes if n < len(company.rows))
    return replace(found, over_days=tuple(told for told in watched if told is not None and max(told.users) > 1))


def _company(fakes: Any, ours: PoolGenerator, days: Traces, train: Traces) -> Company:
    """The fakes as lives, and the number in `days` of the user that each descends from."""
    life = fakes.user if isinstance(fakes, Traces) else getattr(fakes, "life", None)
    lives = Traces(
        ours.r,
        days.locations,
        users=np.arange(len(ours.r)) if life is None else np.asarray(life),
        dates=fakes.dates if isinstance(fakes, Traces) else getattr(fakes, "days", None),
        step_minutes=days.step_minutes,
        start=days.start,
        tz=days.tz,
    )
    maker = np.full(lives.U, -1)
    if ours.maker is not None:
        labels = train.labels if ours.labels is None else ours.labels
        number = {label: i for i, label in enumerate(days.labels)}
        known = np.array([*(number.get(label, -1) for label in labels), -1])
        maker[lives.user] = known[ours.maker]
    return Company.of(lives, maker)
