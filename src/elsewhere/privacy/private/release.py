"""
Certified fakes, end to end: everybody in the file as one bounded vector, a noisy sum, and any number of fakes of it.

No split, no seeds. From the people nothing is used but the noisy sum (theorem 2): the number of people that decides
whether there are enough, the number of fakes and the fakes themselves follow from it.
"""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.checkpoint import Stages, at_once
from elsewhere.data.slots import Traces, hold_places, is_weekend
from elsewhere.data.visits import Codes, Ints
from elsewhere.errors import InvalidParameter, NotEnoughUsers
from elsewhere.privacy.certificate import ENTROPY, Certificate
from elsewhere.privacy.private.fit import Maps, Smoother, Sums, draw_fakes, fit_walk
from elsewhere.privacy.private.sums import (
    MOST_EPS,
    bound_of,
    eps_of,
    from_generator,
    from_the_system,
    gaussian_mu,
    noise_of,
    noisy_sum,
    on_grid,
)
from elsewhere.privacy.private.vectors import PIECE, Design, mean_of
from elsewhere.synthesis.walk.ways import Ways

# people x mu below which the fakes are hardly better than a uniform map (docs/decisions.md)
ENOUGH = 500.0
SUMS = "sums"  # the stage that is spent
STEPS = 5  # that progress counts
ASTRAY = 0.1  # twice the total variation by which fakes may be further from the noisy map than equal places are
PUBLIC = "map, number of slots and clock were given, not found in these people, and no constant was tuned on them"
ONE_FILE = "every person is in the file once, under one id"
KEPT_BACK = "nothing else that was computed from these people is published: no report, no figure, no private folder"
FROM_SUMS = "whether there are enough people, and how many fakes there are, follows from the noisy sum"


def people_needed(eps: float, delta: float) -> int:
    """
    Return how many people certified fakes need under (eps, delta).

    Examples
    --------
    >>> [people_needed(eps, 1e-6) for eps in (1.0, 2.0, 4.0, 8.0)]
    [2113, 1116, 597, 327]

    """
    return math.ceil(ENOUGH / gaussian_mu(eps, delta))


def certificate_of(eps: float, delta: float, cells: int) -> Certificate:
    """Return what theorem 2 says of a release under (eps, delta)."""
    bound = bound_of(noise_of(eps, delta, cells))
    return Certificate(
        "everybody",
        eps=eps,
        delta=delta,
        advantage=bound.advantage,
        auc=bound.auc,
        conditions=(
            (PUBLIC, "asserted"),
            (ONE_FILE, "asserted"),
            (FROM_SUMS, "met"),
            (KEPT_BACK, "asserted"),
            (ENTROPY, "met"),
        ),
    )


class Release(NamedTuple):
    """Days of the fakes, `design.days` of each one after the other, what is proven of them, what should be known."""

    r: Codes
    weekend: NDArray[np.bool_]
    certificate: Certificate
    notes: tuple[str, ...]
    mechanism: "Mechanism"


@dataclass(frozen=True, eq=False)
class Mechanism:
    """The noisy sums of a release, for the audit: whose, of what, under which promise."""

    traces: Traces = field(repr=False)
    design: Design = field(repr=False)
    eps: float
    delta: float

    @property
    def mu(self) -> float:
        """Return what one person moves the sums by at most, in standard deviations of the noise."""
        return noise_of(self.eps, self.delta, self.design.cells)


def sums_of(traces: Traces, design: Design, mu: float) -> Ints:
    """Return the sums over these people on the grid, without noise."""
    return np.asarray(sum(_parts(traces, design, mu), np.zeros(design.cells, dtype=np.int64)))


def release_private(
    traces: Traces,
    *,
    eps: float,
    delta: float,
    days: int,
    n: int | None,
    in_laboratory: bool,
    entropy: int,
    progress: Callable[[int, int], None] | None,
    ways: Ways | None = None,
    stages: Stages = at_once,
    executor: Executor | None = None,
) -> Release:
    """
    Release `n` fakes that live for `days`, or as many as the noisy sum counts people; by public `ways` if given.

    On `executor` pools of walks are drawn and weighed.

    The noisy sum is a stage of its own, `SUMS`, and kept before anything is made of it: no noise is drawn twice.
    """
    if not isinstance(traces, Traces):
        raise InvalidParameter(f"`traces` must be a `Traces`, got {type(traces).__name__}.", parameter="traces")
    noise_rng, fit_rng, rng = (
        np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(i,))) for i in (1, 2, 3)
    )
    steps = _steps(progress)
    design = Design.of(traces.locations, traces.L, days)
    mu = noise_of(eps, delta, design.cells)
    next(steps)
    below = from_generator(noise_rng) if in_laboratory else from_the_system
    y = stages(SUMS, lambda: noisy_sum(_parts(traces, design, mu), design.cells, mu, below))
    sums = Sums.of(design, y, 1 / mu)
    _require_enough(sums.people, mu, eps, delta)
    next(steps)
    maps = Maps(sums, Smoother(design))
    next(steps)
    model = stages("walk", lambda: fit_walk(sums, maps, fit_rng))
    next(steps)
    number = max(1, round(sums.people)) if n is None else n
    lives, notes = draw_fakes(sums, maps, model, number, rng, executor)
    if ways is not None:
        lives = lives._replace(r=ways.keep(lives.r.reshape(len(lives.r) // days, -1)).reshape(lives.r.shape))
    _require_a_match(lives.r, maps.day, len(lives.r) // days)
    next(steps, None)
    certificate = certificate_of(eps, delta, design.cells)
    return Release(
        lives.r,
        lives.weekend,
        certificate.in_laboratory() if in_laboratory else certificate,
        notes,
        Mechanism(traces, design, eps, delta),
    )


def _steps(progress: Callable[[int, int], None] | None) -> Iterator[None]:
    for i in range(STEPS):
        if progress is not None:
            progress(i + 1, STEPS)
        yield


def _parts(traces: Traces, design: Design, mu: float) -> Iterator[NDArray[np.int64]]:
    """
    Yield sums on the grid, some people at a time.

    A person's days are cut into windows of `design.days` on end, as many as a fake has, or one shorter window where
    there are fewer. The person is the mean of the vectors of these windows, and so no longer than 1.
    """
    r, user, weekend = _whole(traces)
    if len(r) == 0:
        return
    D = design.days
    begins = np.append(True, user[1:] != user[:-1])
    person = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    number = np.arange(len(user)) - first[person]
    days = np.bincount(person)
    kept = number < np.where(days >= D, days // D * D, days)[person]
    r, weekend, person, number = r[kept], weekend[kept], person[kept], number[kept]
    start = np.flatnonzero(number % D == 0)  # of windows
    owner, start = person[start], np.append(start, len(person))
    windows = np.bincount(owner)
    bounds = np.append(0, np.cumsum(windows))
    ends = np.unique(np.append(np.searchsorted(bounds, np.arange(PIECE, bounds[-1], PIECE)), len(windows)))
    for a, b in pairwise([0, *ends.tolist()]):
        mine = start[bounds[a] : bounds[b] + 1]
        some = slice(mine[0], mine[-1])
        matrix = mean_of(design.matrix(r[some], mine - mine[0], weekend[some]), bounds[a : b + 1] - bounds[a])
        total = np.zeros(design.cells, dtype=np.int64)
        np.add.at(total, matrix.indices, on_grid(matrix.data, mu))
        yield total


def _whole(traces: Traces) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """
    Return days in the order of people and dates, with gaps as stays, whose they are, and which are at a weekend.

    Days without any place are left out.
    """
    when = np.zeros(len(traces), dtype=np.int64) if traces.dates is None else traces.dates.astype(np.int64)
    order = np.lexsort((when, traces.user))
    order = order[(traces.r[order] >= 0).any(axis=1)]
    off = np.zeros(len(order), dtype=bool) if traces.dates is None else is_weekend(traces.dates[order])
    return hold_places(traces.r[order]), traces.user[order], off


def _require_enough(people: float, mu: float, eps: float, delta: float) -> None:
    """Refuse where the noise would drown what people do; by the noisy number, so that a refusal tells no more."""
    if people * mu >= ENOUGH:
        return
    least = people_needed(eps, delta)
    raise NotEnoughUsers(
        f"`eps` needs about {least:,} people at eps = {eps:g}, and there are about "
        f"{max(0, round(people, -1)):,.0f} (counted with noise); {_eps_for(people, delta)}",
        code="E_EPS",
    )


def _require_a_match(r: Codes, day: NDArray[np.float64], lives: int) -> None:
    """Refuse so many lives if they are no closer to the noisy map of the day than equal places: the fit went astray."""
    been = np.bincount(r.ravel(), minlength=len(day)) / r.size
    chance = np.sqrt(np.maximum(day, 0) / lives).sum()  # by which so few miss it even if each is drawn from it
    if np.abs(been - day).sum() > np.abs(1 / len(day) - day).sum() + ASTRAY + chance:
        raise NotEnoughUsers(
            "the fakes do not match the noisy sums: they are no closer to them than a map of equal places. Ask for a "
            "larger eps, fewer places or more people; what the sums have told is spent all the same.",
            code="E_EPS",
        )


def _eps_for(people: float, delta: float) -> str:
    eps = math.ceil(10 * eps_of(ENOUGH / people, delta)) / 10 if people > 1 else math.inf
    if eps > MOST_EPS:
        return f"for so few even eps = {MOST_EPS:g}, the largest, is too little: give more people, or leave out `eps`."
    return f"so few need eps = {eps:g}, which promises less; or give more people."
