"""
The deniable preset, end to end: a noisy count of the seeds' archetypes, and any number of draws made of it (theorem 1).

Map, classes, archetypes and walk come from people who are no seeds. Of the seeds nothing is used but the noisy counts:
how many fakes there are, the pool of walks and the draws follow from these, and nothing is refused because of a seed.
"""

import secrets
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from elsewhere.checkpoint import Stages, at_once
from elsewhere.errors import InvalidParameter, InvalidTraces
from elsewhere.privacy.certificate import ENTROPY, Certificate
from elsewhere.privacy.deniable.carried import Carried
from elsewhere.privacy.deniable.count import K_DELTA, laboratory, mixture, noisy_count, number_of_fakes
from elsewhere.privacy.deniable.laws import Laws, pool_for
from elsewhere.synthesis.walk.ways import Ways
from elsewhere.traces.model import Ints, Locations, Places

COUNT = "count"  # the stage that is spent
BY_COUNT = (
    "how many fakes there are comes from the noisy count of the seeds, so that it tells of nobody: it may be some more "
    "or fewer than there are seeds; `n` asks for any other number."
)
DISTINCT = 0.8  # least share of fakes unlike any other that goes without saying
LEARNT_APART = "map, classes, archetypes, walk and pool come from people who are no seeds, or are public"
THE_MAP = "places, clock and how gaps are filled are given, or found in people who are no seeds alone"
COINS = "who is a seed was decided by a coin for each person, before any trace was looked at"
NUMBER = "the number of fakes is given, or follows from the noisy counts"
NO_REFUSAL = "nothing is refused because of a seed"
KEPT_BACK = "nothing else that was computed from the seeds is published: no report, no figure, no private folder"

NO_ARCHETYPE = (
    "no archetype has `k` = {k} seeds, as far as noisy counts tell: every fake follows the walk without a seed, and "
    "keeps nothing of anybody's life; lower `k`, or give more people."
)


@dataclass(frozen=True, eq=False)
class Release:
    """
    The fakes of a release (private side): `r` places, `archetype` of each, -1 for the walk without a seed.

    `seed` is a row to compare each fake with, `laws` what it was drawn from, for the audit.
    """

    r: Places
    seed: Ints
    archetype: Ints
    laws: Laws
    certificate: Certificate
    notes: tuple[str, ...]


def certificate_of(eps0: float, k: int | None, *, given: bool) -> Certificate:
    """Return what theorem 1 says of a release with this noise; `given`: the model was learnt elsewhere."""
    return Certificate(
        "seeds",
        eps=eps0,
        neighbours="one seed more or less",
        k=k or None,
        k_delta=K_DELTA if k else None,
        conditions=(
            (LEARNT_APART, "asserted" if given else "met"),
            (THE_MAP, "asserted"),
            *(() if given else ((COINS, "met"),)),
            (NUMBER, "met"),
            (NO_REFUSAL, "met"),
            (KEPT_BACK, "asserted"),
            (ENTROPY, "met"),
        ),
    )


def release_fakes(
    kinds: Ints,
    user: Ints,
    rows: Ints,
    carried: Carried | None,
    where: tuple[Locations, Ints, NDArray[np.bool_]],
    *,
    eps0: float,
    k: int | None,
    n: int | None,
    per_seed: int,
    given: bool,
    in_laboratory: bool,
    entropy: int,
    ways: Ways | None = None,
    stages: Stages = at_once,
    executor: Executor | None = None,
) -> Release:
    """
    Release `n` fakes, or `per_seed` for each seed that the noisy counts add up to.

    Parameters
    ----------
    kinds, user, rows
        (N, L) class of each slot of each day of a seed, -1 unknown; whose day it is; its row in the given traces.
    carried, where
        Archetypes and walk of the people the model was learnt from; its map, the class of each place, and which places
        enough of these people share.
    eps0, k
        Noise of the count; seeds behind every fake, if that is asked for.
    n, per_seed
        Number of fakes; None: from the noisy counts.
    given
        The model was learnt elsewhere.
    in_laboratory, entropy
        Whether the run must be repeatable, and the secret that makes it so.
    ways
        How walks keep to allowed moves; None: all are.
    stages
        Keeps the noisy count, `COUNT`, before anything is made of it: no noise is drawn twice.
    executor
        Where walks are drawn.

    """
    if carried is None:
        raise InvalidParameter(
            "the model was learnt without archetypes and walk of its people: learn it again under the deniable preset "
            "(and without `classes` of your own), or leave it out.",
            code="E_DISJOINT",
        )
    streams = [np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(i,))) for i in (1, 2, 3, 4)]
    archetypes = carried.archetypes
    if kinds.shape[1] != archetypes.share.shape[1]:
        raise InvalidTraces(
            f"the model was learnt for {archetypes.share.shape[1]} slots a day, got {kinds.shape[1]}.",
            code="E_MISMATCH",
        )
    _, user = np.unique(user, return_inverse=True)
    codes = archetypes.nearest(kinds, user)
    # in production the noise comes from the operating system (R4); a laboratory run must be repeatable (R5)
    below = laboratory(streams[0]) if in_laboratory else secrets.randbelow
    noisy = stages(COUNT, lambda: noisy_count(codes, len(archetypes.share), eps0=eps0, below=below))
    law = mixture(noisy, eps0=eps0, k=k or None)
    number = number_of_fakes(noisy, n, per_seed)
    laws = carried.laws(*where, size=pool_for(number), ways=ways, executor=executor, rng=streams[1])
    r, archetype = laws.draw(law.weights, law.without, number, streams[2])
    certificate, notes = certificate_of(eps0, k, given=given), _repeated(r)
    if n is None:
        notes = (BY_COUNT, *notes)
    if k and not law.weights.any():  # by the noisy counts, so nothing more is told of the seeds
        certificate = replace(certificate, k=None, k_delta=None)
        notes = (NO_ARCHETYPE.format(k=k), *notes)
    seed = _alike(archetype, codes[user], rows, streams[3])
    return Release(r, seed, archetype, laws, certificate.in_laboratory() if in_laboratory else certificate, notes)


def _alike(which: Ints, code: Ints, rows: Ints, rng: np.random.Generator) -> Ints:
    """
    Return for each fake a row to compare it with: of a seed of its archetype, drawn at random; `code` is that of rows.

    No fake is made of one seed: it is as likely of each seed of its archetype. One of an archetype without a seed, or
    of the walk without a seed, is compared with any seed that has a code, if there is one. -1: there is no seed.
    """
    out = np.full(len(which), -1, dtype=np.int64)
    for a in np.unique(which):
        mine, candidates = which == a, rows[code == a] if a >= 0 else rows[:0]
        for others in (rows[code >= 0], rows):
            if len(candidates) == 0:
                candidates = others
        if len(candidates):
            out[mine] = rng.choice(candidates, int(mine.sum()))
    return out


def _repeated(r: Places) -> tuple[str, ...]:
    distinct = len(np.unique(r, axis=0))
    if distinct >= DISTINCT * len(r):
        return ()
    return (
        f"only {distinct} of {len(r)} fakes differ from each other: they are drawn independently from one pool of "
        "walks, and many are drawn alike; ask for fewer.",
    )
