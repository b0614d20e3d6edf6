"""
The private preset, end to end: everybody in the file as one bounded vector, a noisy sum, and any number of fakes of it.

No split, no seeds. From the people nothing is used but the noisy sum (theorem 2): the number of people that decides
whether there are enough, the number of fakes and the fakes themselves follow from it.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from elsewhere.privacy.private.vectors import PIECE, Design
from elsewhere.synthesis.walk.fit import without_gaps
from elsewhere.traces.model import Ints, Places, Traces

# people x mu below which the fakes are hardly better than a uniform map (docs/decisions/0028-private.md)
ENOUGH = 500.0
PUBLIC = "map, number of slots and clock were given, not found in these people, and no constant was tuned on them"
ONE_FILE = "every person is in the file once, under one id"
KEPT_BACK = "nothing else that was computed from these people is published: no report, no figure, no private folder"
FROM_SUMS = "whether there are enough people, and how many fakes there are, follows from the noisy sum"


def people_needed(eps: float, delta: float) -> int:
    """
    Return how many people the private preset needs under (eps, delta).

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
    """The places of the fakes, what is proven of them, and what a reader should know."""

    r: Places
    certificate: Certificate
    notes: tuple[str, ...]


def release_private(
    traces: Traces,
    *,
    eps: float,
    delta: float,
    n: int | None,
    in_laboratory: bool,
    entropy: int,
    progress: Callable[[int, int], None] | None,
) -> Release:
    """Release `n` fakes, or as many as the noisy sum counts people."""
    if not isinstance(traces, Traces):
        raise InvalidParameter(f"`traces` must be a `Traces`, got {type(traces).__name__}.")
    noise_rng, rng = (np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(i,))) for i in (1, 2))
    done = _steps(progress)
    design = Design.of(traces.locations, traces.L)
    mu = noise_of(eps, delta, design.cells)
    next(done)
    below = from_generator(noise_rng) if in_laboratory else from_the_system
    y = noisy_sum(_parts(traces, design, mu), design.cells, mu, below)
    sums = Sums.of(design, y, 1 / mu)
    _require_enough(sums.people, mu, eps, delta)
    next(done)
    maps = Maps(sums, Smoother(design))
    next(done)
    tables = fit_walk(sums, maps, rng)
    next(done)
    r, notes = draw_fakes(sums, maps, tables, max(1, round(sums.people)) if n is None else n, rng)
    next(done, None)
    certificate = certificate_of(eps, delta, design.cells)
    return Release(r, certificate.in_laboratory() if in_laboratory else certificate, notes)


def _steps(progress: Callable[[int, int], None] | None, total: int = 5) -> Iterator[None]:
    for i in range(total):
        if progress is not None:
            progress(i + 1, total)
        yield


def _parts(traces: Traces, design: Design, mu: float) -> Iterator[NDArray[np.int64]]:
    """Yield sums on the grid, some people at a time."""
    r, user = _whole(traces)
    people, start = np.unique(user, return_index=True)
    start = np.append(start, len(user))
    for first in range(0, len(people), PIECE):
        some = start[first : first + PIECE + 1]
        matrix = design.matrix(r[some[0] : some[-1]], some - some[0])
        total = np.zeros(design.cells, dtype=np.int64)
        np.add.at(total, matrix.indices, on_grid(matrix.data, mu))
        yield total


def _whole(traces: Traces) -> tuple[Ints, Ints]:
    """Return days in the order of people, with gaps as stays; days without any place are left out."""
    order = np.argsort(traces.user, kind="stable")
    r = traces.r[order]
    somewhere = (r >= 0).any(axis=1)
    return without_gaps(r.astype(np.int64)), traces.user[order][somewhere]


def _require_enough(people: float, mu: float, eps: float, delta: float) -> None:
    """Refuse where the noise would drown what people do; by the noisy number, so that a refusal tells no more."""
    if people * mu >= ENOUGH:
        return
    needed = people_needed(eps, delta)
    raise NotEnoughUsers(
        f'preset "private" needs about {needed:,} people at eps = {eps:g}, and there are about '
        f"{max(0, round(people, -1)):,.0f} (counted with noise); {_eps_for(people, delta)}",
        code="E_EPS",
    )


def _eps_for(people: float, delta: float) -> str:
    eps = math.ceil(10 * eps_of(ENOUGH / people, delta)) / 10 if people > 1 else math.inf
    if eps > MOST_EPS:
        return (
            f"for so few even eps = {MOST_EPS:g}, the largest, is too little: give more people, or use another preset."
        )
    return f"so few need eps = {eps:g}, which promises less; or give more people."
