"""
The deniable preset, end to end: a noisy count of the seeds' archetypes, and any number of draws made of it (theorem 1).

Map, classes, archetypes and walk come from people who are no seeds. Of the seeds nothing is used but the noisy counts:
how many fakes there are, the pool of walks and the draws follow from these, and nothing is refused because of a seed.
"""

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from elsewhere.errors import InvalidParameter, InvalidTraces
from elsewhere.fakes import Fakes
from elsewhere.frame import Frame
from elsewhere.learnt import Learnt
from elsewhere.presets import Preset
from elsewhere.privacy.certificate import ENTROPY, Certificate
from elsewhere.privacy.count import K_DELTA, laboratory, mixture, noisy_count, number_of_fakes
from elsewhere.split import Roles
from elsewhere.synthesis.deniable.laws import pool_for
from elsewhere.traces.model import Ints, Places, Traces

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


class Drawn(NamedTuple):
    """A fake that was drawn, not tested: its archetype, -1 for the walk without a seed (private)."""

    passed: bool
    archetype: int


def codes_of(learnt: Learnt, r: Places, user: Ints) -> Ints:
    """Return the archetype of each seed user, of all their days (rows); -1 where no place of theirs has a class."""
    assert learnt.carried is not None  # noqa: S101 - checked by the caller
    place = np.where(r >= 0, learnt.place[r], -1)
    return learnt.carried.archetypes.nearest(np.where(place >= 0, learnt.classes.label[place], -1), user)


def certificate_of(settings: Preset, *, given: bool) -> Certificate:
    """Return what theorem 1 says of a release under these settings; `given`: the model was learnt elsewhere."""
    return Certificate(
        "seeds",
        eps=settings.eps0,
        neighbours="one seed more or less",
        k=settings.k or None,
        k_delta=K_DELTA if settings.k else None,
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
    traces: Traces,
    roles: Roles,
    learnt: Learnt,
    settings: Preset,
    n: int | None,
    per_seed: int,
    entropy: int,
    in_laboratory: bool,
    given: bool,
    progress: Callable[[int, int], None] | None,
) -> Fakes:
    """Release `n` fakes, or `per_seed` for each seed that the noisy counts add up to."""
    if learnt.carried is None:
        raise InvalidParameter(
            "the model was learnt without archetypes and walk of its people: learn it again under the deniable preset "
            "(and without `classes` of your own), or leave it out.",
            code="E_DISJOINT",
        )
    streams = [np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(i,))) for i in (1, 2, 3, 4)]
    archetypes, rows = learnt.carried.archetypes, roles.seed_rows
    if traces.L != archetypes.share.shape[1]:
        raise InvalidTraces(
            f"the model was learnt for {archetypes.share.shape[1]} instants a day, got {traces.L}.", code="E_MISMATCH"
        )
    _, user = np.unique(traces.user[rows], return_inverse=True)
    codes = codes_of(learnt, traces.r[rows], user)
    # in production the noise comes from the operating system (R4); a laboratory run must be repeatable (R5)
    below = laboratory(streams[0]) if in_laboratory else secrets.randbelow
    noisy = noisy_count(codes, len(archetypes.share), eps0=settings.eps0, below=below)
    mixed = mixture(noisy, eps0=settings.eps0, k=settings.k or None)
    number = number_of_fakes(noisy, n, per_seed)
    laws = learnt.carried.laws(
        learnt.model.locations, learnt.classes.label, learnt.known, size=pool_for(number), rng=streams[1]
    )
    r, which = laws.draw(mixed.weights, mixed.without, number, streams[2])
    if progress is not None:
        progress(number, number)
    settings = settings.changed(archetypes=len(archetypes.share))  # the manifest says how many
    certificate = certificate_of(settings, given=given)
    if settings.k and not mixed.weights.any():  # by the noisy counts, so nothing more is told of the seeds
        certificate = replace(certificate, k=None, k_delta=None)
        roles = replace(roles, notes=(*roles.notes, NO_ARCHETYPE.format(k=settings.k)))
    return Fakes(
        r=r,
        seed=_alike(which, codes[user], rows, streams[3]),
        loglik=learnt.model.loglik(r, learnt.tau(traces)),
        verdicts=[Drawn(True, int(a)) for a in which],
        attempts=np.array([number]),
        tally={"tested": number, "passed": number},
        seeds=traces,
        frame=Frame.of(traces, learnt, roles.model),
        learnt=learnt,
        preset=settings,
        kappa=learnt.classes.kappa,
        laboratory=in_laboratory,
        notes=(*roles.notes, *_repeated(r)),
        published=np.zeros(len(r), dtype=bool),
        seed_rows=roles.seed_rows,
        sampler=laws,
        certificate=certificate.in_laboratory() if in_laboratory else certificate,
    )


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
