"""
The deniable mode, end to end: learn from some users, release fakes of others through the gate, and write the ledger.

The guarantee needs users of the model and users among the seeds to be disjoint (READINGS section 11): the split is done
here, or the caller asserts it for a model of his own.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from elsewhere.errors import InvalidParameter, NotEnoughUsers
from elsewhere.fakes import Fakes
from elsewhere.frame import Frame
from elsewhere.learnt import Learnt
from elsewhere.presets import PRESETS, Preset
from elsewhere.privacy.deniability import Ledger, deniability_ledger
from elsewhere.privacy.mechanism import Mechanism, release
from elsewhere.split import Roles
from elsewhere.synthesis.deniable.archetypes import Archetypes, learn_archetypes
from elsewhere.synthesis.deniable.carried import METHOD, MOST_GROUPS, USERS_TO_A_GROUP, Carried
from elsewhere.synthesis.deniable.sampler import DeniableSampler
from elsewhere.synthesis.deniable.walk import WalkSampler
from elsewhere.synthesis.walk._kernels import Tables
from elsewhere.synthesis.walk.fit import learn_walk
from elsewhere.traces.model import Ints, Places, Traces

DISTINCT = 0.8  # least share of fakes unlike any other that goes without saying
SEEDS_TO_A_GROUP = 1.5  # times k: groups differ in size, and nearly all must pass (docs/decisions/0009-telling.md)
# what the other presets read, and the parameters that only some emissions do
OF_THE_TESTS = (
    *("par_s", "par_i", "par_d", "par_v", "intersection", "against", "min_sim", "alternates", "max_tries", "sampler"),
    *("subsample", "merge", "shift", "balance"),
)
OF_EMISSIONS = {
    **dict.fromkeys(("par_c", "par_m", "par_l"), ("window",)),
    "eta": ("window", "archetypes", "allotted"),
    "theta": ("allotted",),
    "strength": ("walk",),
    "archetypes": ("archetypes", "allotted", "walk"),
}


class GateVerdict(NamedTuple):
    """A fake that the gate released: how many seeds were in the bucket of its own, itself included (private)."""

    passed: bool
    in_bucket: int


def groups_for(seeds: int, users: int, k: int) -> int:
    """
    The number of groups where none is given: 1.5 k of the seeds planned to each; `tune` finds better ones.

    A group passes the gate if k of the seeds are in it. The number of seeds is fixed by the split and taken as known by
    the theorem; nothing else of them is used. `users` of the model must be enough to tell so many groups apart.
    """
    return max(1, min(int(seeds / (SEEDS_TO_A_GROUP * k)), users // USERS_TO_A_GROUP, MOST_GROUPS))


def not_read(settings: Preset) -> tuple[str, ...]:
    """What was changed in the settings and yet changes nothing: the gate tests no fake against its seed alone."""
    usual = PRESETS["deniable"]
    idle = [n for n in OF_THE_TESTS if getattr(settings, n) != getattr(usual, n)]
    idle += [
        n
        for n, readers in OF_EMISSIONS.items()
        if settings.emission not in readers and getattr(settings, n) != getattr(usual, n)
    ]
    if not idle:
        return ()
    named = ", ".join(f"`{name}`" for name in idle)
    return (f'not read in the deniable mode with emission "{settings.emission}", so without effect: {named}.',)


def sampler_of(
    learnt: Learnt,
    settings: Preset,
    tau: Ints,
    model_traces: Traces | None,
    rng: np.random.Generator,
    *,
    archetypes: Archetypes | None = None,
    walk: Tables | None = None,
    fakes: int = 1,
) -> DeniableSampler:
    """
    The deniable sampler of these settings; archetypes, if any, are learnt from the model's users alone.

    Without their traces the model must carry what was learnt from them. `archetypes` and `walk` learnt from these users
    already are taken as they are; `fakes` is how many are planned.
    """
    if settings.emission != "window":
        if archetypes is None:
            archetypes = groups_of(learnt, settings, model_traces, rng)
        if settings.emission == "walk":
            if walk is None:
                walk = walk_of(learnt, model_traces, rng)
            return WalkSampler(
                learnt.model,
                learnt.classes,
                walk=walk,
                archetypes=archetypes,
                strength=settings.strength,
                fakes=fakes,
                lam=settings.lam,
                tau=tau,
                rng=rng,
            )
    return DeniableSampler(
        learnt.model,
        learnt.classes,
        emission=settings.emission,
        eta=settings.eta,
        lam=settings.lam,
        par_c=settings.par_c,
        par_m=settings.par_m,
        par_l=settings.par_l,
        archetypes=archetypes,
        theta=settings.theta,
        tau=tau,
    )


def groups_of(learnt: Learnt, settings: Preset, model_traces: Traces | None, rng: np.random.Generator) -> Archetypes:
    """The groups of the model's users under these settings; without their traces, those that the model carries."""
    if model_traces is None:
        carried = carried_by(learnt, settings.emission)
        return carried.of(settings.archetypes or carried.number(MOST_GROUPS))
    shared = learnt.translate(model_traces)
    classes = np.where(shared.r >= 0, learnt.classes.label[shared.r], -1)
    n = settings.archetypes or groups_for(model_traces.U, model_traces.U, settings.k)
    if n > model_traces.U:
        raise InvalidParameter(f"`archetypes` must be at most the {model_traces.U} people of the model, got {n}.")
    return learn_archetypes(classes, learnt.classes.kappa, n, method=METHOD[settings.emission], rng=rng)


def walk_of(learnt: Learnt, model_traces: Traces | None, rng: np.random.Generator) -> Tables:
    """The walk of the model's users: ways through rare places are ways too, the walk itself keeps to known ones."""
    if model_traces is None:
        habits = carried_by(learnt, "walk").habits
        assert habits is not None  # noqa: S101 - it serves the walk
        if not learnt.known.any():  # a larger `m_min` than that of the model
            raise InvalidParameter(
                f"no place of the model has `m_min` = {learnt.preset.m_min} visitors.", code="E_SUPPRESSED"
            )
        return habits.tables(learnt.model.locations, learnt.known)
    return learn_walk(model_traces.r, learnt.model.locations, learnt.known, rng=rng)


def carried_by(learnt: Learnt, emission: str) -> Carried:
    """What the model carries for this emission, of people whose traces are not here."""
    if learnt.carried is None or not learnt.carried.serves(emission):
        raise InvalidParameter(
            f'the model was learnt without what emission "{emission}" needs of its people: learn it again under the '
            'deniable preset with this emission (and without `classes` of your own), or take `emission="window"`.',
            code="E_DISJOINT",
        )
    return learnt.carried


def release_fakes(
    traces: Traces,
    roles: Roles,
    learnt: Learnt,
    settings: Preset,
    per_seed: int,
    entropy: int,
    laboratory: bool,
    executor: Executor | None,
    progress: Callable[[int, int], None] | None,
) -> Fakes:
    """`per_seed` times the number of seeds, through the gate, with their ledger."""
    seeds = learnt.translate(roles.seeds)
    idle = not_read(settings)
    if len(seeds) < settings.k:  # those who visit rare places alone are no seeds any more
        raise NotEnoughUsers(
            f"the gate needs at least {settings.k} seed users for `k` = {settings.k}, and {len(seeds)} seeds visit a "
            "place that `m_min` of the model's users share; give more users or larger places, or lower `k`."
        )
    tau = learnt.tau(seeds)
    n = per_seed * len(seeds)
    ledger = deniability_ledger(
        k=settings.k,
        gamma=settings.gamma,
        eps0=settings.eps0,
        delta_target=settings.delta_target,
        acceptance=settings.acceptance,
        seeds=len(seeds),
        released=n,
    )
    planned = len(seeds) if roles.planned is None else roles.planned
    if settings.emission != "window" and settings.archetypes is None:
        # the manifest says how many
        users = learnt.model.n_users if roles.model is None else roles.model.U
        groups = groups_for(planned, users, settings.k)
        if roles.model is None:
            groups = carried_by(learnt, settings.emission).number(groups)
        settings = settings.changed(archetypes=groups)
    # by the number planned, like the groups: seeds that are left out for their places must not change the sampler
    draw = np.random.default_rng(_child(entropy, 2))
    sampler = sampler_of(learnt, settings, tau, roles.model, draw, fakes=per_seed * planned)
    mechanism = Mechanism.of(
        sampler,
        seeds.r,
        tau,
        k=settings.k,
        gamma=settings.gamma,
        eps0=settings.eps0,
        intersection=settings.fold_intersection,
    )
    out = release(
        mechanism,
        n,
        floor=settings.acceptance,
        entropy=int.from_bytes(_child(entropy, 3).generate_state(2, np.uint64).tobytes(), "little"),
        laboratory=laboratory,
        executor=executor,
        progress=progress,
    )
    return Fakes(
        r=out.r,
        seed=roles.seed_rows[out.seed],
        loglik=learnt.model.loglik(out.r, tau),
        verdicts=[GateVerdict(True, int(c)) for c in out.count],
        attempts=np.array([out.attempts]),
        tally={"tested": out.attempts, "passed": out.passed},
        seeds=traces,
        frame=Frame.of(traces, learnt, roles.model),
        learnt=learnt,
        preset=settings,
        kappa=learnt.classes.kappa,
        laboratory=laboratory,
        notes=(*roles.notes, *idle, *_vacuous(ledger), *_alike(out.r)),
        ledger=ledger,
        published=np.zeros(len(out.r), dtype=bool),
        seed_rows=roles.seed_rows,
        sampler=sampler,
    )


def _vacuous(ledger: Ledger) -> tuple[str, ...]:
    return () if ledger.vacuous is None else (f"the ledger is kept, but {ledger.vacuous}",)


def _alike(r: Places) -> tuple[str, ...]:
    distinct = len(np.unique(r, axis=0))
    if distinct >= DISTINCT * len(r):
        return ()
    return (
        f"only {distinct} of {len(r)} fakes differ from each other: fakes are drawn independently, and many are drawn "
        "alike; ask for fewer, or lower `strength`.",
    )


def _child(entropy: int, number: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(entropy, spawn_key=(number,))
