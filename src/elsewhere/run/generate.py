"""
Make fakes: `GenerateFake` of fig:alg.

Learn model and classes. Then, by preset: blur each seed into its semantic seed, decode a fake from it and keep what
passes the privacy test (`paper`); draw walks, pair them with the seeds and keep what passes (`product`); or learn from
noisy sums over everybody, and draw (`private`).
"""

import warnings
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.checkpoint import Stages, at_once
from elsewhere.data.slots import People, Traces, is_weekend
from elsewhere.data.visits import Ints
from elsewhere.errors import InvalidParameter, InvalidTraces, NoFeasiblePath, NothingPassed
from elsewhere.paper.aggregate import AggregateModel, feasible_moves
from elsewhere.paper.generate_fake import Blur, ClassSets, FakeMaker
from elsewhere.paper.privacy_test import RULES, PrivacyTest, Verdicts
from elsewhere.paper.semantic_clustering import PAPERS, SemanticClasses
from elsewhere.privacy.private.release import release_private
from elsewhere.run.attempts import (
    BLOCK,
    LEAST_BLOCK,
    Attempts,
    Block,
    Goal,
    LifeModel,
    Made,
    Pairs,
    WalkModel,
    learn_days,
    learn_weeks,
)
from elsewhere.run.fakes import Fakes
from elsewhere.run.model import FittedModel, allowed_moves, is_data, learn, note_areas, other_map_error
from elsewhere.run.public_map import WEEKS, PublicMap, weekdays
from elsewhere.run.roles import Roles, public_count, split_users
from elsewhere.scale import map_over
from elsewhere.settings import PARAMETERS, Kappa, Making, Preset, PresetName, preset_of, unknown_parameter
from elsewhere.synthesis.walk.life_ratio import LifeRatio
from elsewhere.synthesis.walk.ways import Ways

Progress = Callable[[int, int], None]
CROSSED = (
    "{} of {} fakes share more places with their seed than `par_i` = {}, because nearly all other people share as many "
    "with it, as with a taxi's. The limit of such a seed is what the 5 % of other people who share least have in "
    "common with it; a `par_i` that you give is not relaxed."
)
ALIKE = (
    "{} of {} fakes are more similar to their seed than `par_s` = {:g}, because nearly all other people are, as on a "
    "map of a dozen places. The limit of such a seed is the similarity of the 5 % of other people who are least "
    "similar to it; a `par_s` that you give is not relaxed."
)


def generate_fakes(
    traces: Traces,
    *,
    preset: PresetName | Preset = "product",
    per_seed: int = 1,
    kappa: Kappa = "auto",
    classes: SemanticClasses | ArrayLike | None = None,
    model: AggregateModel | FittedModel | None = None,
    alternates: Traces | Literal["all", "split"] | None = None,
    executor: Executor | None = None,
    workers: int = 1,
    progress: Progress | None = None,
    rng: np.random.Generator | None = None,
    **options: Any,
) -> Fakes:
    """
    Make fakes of real traces that live like them, elsewhere (`GenerateFake`, fig:alg).

    Parameters
    ----------
    traces
        The real traces; users, not rows, are split and counted.
    preset
        "paper", "product" or "private"; every parameter of a preset can be given by keyword.
    per_seed
        Fakes wanted per seed.
    kappa
        Number of semantic classes. "auto" is as many as halves of the people agree on; in the paper preset it is the
        paper's 20, fewer where there are fewer than 100 visited places (E29).
    classes, model
        Learnt beforehand; by default they are learnt from the traces. What `learn` returns may be given as `model`.
    alternates
        Traces of users who are nobody's seed (E53); by default the product preset splits them off ("split"), the paper
        preset takes all other users ("all").
    executor, workers
        Where the work runs; the result does not depend on it.
    progress
        Called as `progress(done, total)`.
    rng
        Makes a laboratory run: repeatable, not publishable as private. By default the operating system's entropy.
    **options
        Any parameter that the preset reads: `par_c`, `k`, `max_tries` ... `feasible`: the only moves from the place of
        one slot to another place of the next that a fake may make, as a table of allowed moves (a file or a frame, see
        `traces.maps.read_moves`), an (R, R) matrix of 0 and 1, or "data" for those that `m_min` or more of the people
        make who are learnt from (E36). Of the private preset also `n`, how many
        fakes to release, any number; by default as many as there are people, counted with noise.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> town = ew.simulate_town(users=60, locations=100, rng=np.random.default_rng(1))
    >>> fakes = ew.generate_fakes(town.traces, kappa=8, m_min=2, c_min=1, rng=np.random.default_rng(2))
    >>> bool((fakes.r != town.traces.r[fakes.seed]).all())
    True

    """
    return make_fakes(
        traces,
        _draw_entropy(rng),
        laboratory=rng is not None,
        preset=preset,
        per_seed=per_seed,
        kappa=kappa,
        classes=classes,
        model=model,
        alternates=alternates,
        executor=executor,
        workers=workers,
        progress=progress,
        **options,
    )


@dataclass(frozen=True, eq=False)
class Job:
    """What all steps share: people, parameters, the secret of all draws, and where work is done."""

    traces: Traces
    settings: Preset
    per_seed: int
    n: int | None
    feasible: Any = field(repr=False)
    entropy: int = field(repr=False)
    laboratory: bool
    stages: Stages = field(repr=False)
    executor: Executor | None
    progress: Progress | None

    def rng(self, *key: int) -> np.random.Generator:
        """Return the random generator of one use of the secret."""
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=key))


def make_fakes(
    traces: Traces,
    entropy: int,
    *,
    laboratory: bool,
    stages: Stages = at_once,
    preset: PresetName | Preset = "product",
    per_seed: int = 1,
    kappa: Kappa = "auto",
    executor: Executor | None = None,
    workers: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Fakes:
    """
    Make the fakes of `generate_fakes` from 128 secret bits; in a `laboratory` run they are known to somebody.

    The fakes depend on nothing else but the noise of a theorem, so that a resumed run gives the same fakes: the model,
    the noise and every block of fakes are `stages`.
    """
    names = ("classes", "model", "alternates", "n", "feasible")
    classes, model, alternates, n, feasible = (options.pop(name, None) for name in names)
    for name in options.keys() - set(PARAMETERS):
        raise unknown_parameter(name, [*PARAMETERS, *Making.model_fields, *names])
    which = {"alternates": alternates} if isinstance(alternates, str) else {}
    settings = preset_of(preset, **which, **options)
    alternates = None if isinstance(alternates, str) else alternates
    making = Making(kappa=kappa, per_seed=per_seed, n=n, workers=workers)
    if n is not None and settings.name != "private":
        raise InvalidParameter(
            f'`n` is for preset "private", which releases any number of fakes; "{settings.name}" makes `per_seed` '
            "of each seed.",
            parameter="n",
        )
    if not isinstance(model, AggregateModel | FittedModel | None):
        raise InvalidParameter(
            f"`model` must be an `AggregateModel` or a `FittedModel`, got {type(model).__name__}.", parameter="model"
        )
    if progress is not None and not callable(progress):
        raise InvalidParameter(
            f"`progress` must be a function of (done, total), got {type(progress).__name__}.", parameter="progress"
        )
    if settings.name == "private" and any(each is not None for each in (model, classes, alternates)):
        raise InvalidParameter(
            'preset "private" learns from noisy sums over everybody alone: leave out `model`, `classes` and '
            "`alternates`."
        )
    # kernels release the GIL, so threads are enough
    own_threads = executor is None and making.workers > 1
    with ThreadPoolExecutor(making.workers) if own_threads else nullcontext(executor) as where:
        job = Job(traces, settings, making.per_seed, making.n, feasible, entropy, laboratory, stages, where, progress)
        if settings.name == "private":
            return _make_private(job)
        draw = job.rng(0)
        given = isinstance(model, FittedModel) or (model is not None and classes is not None)
        roles = split_users(traces, settings, alternates, draw, learnt=given)
        learnt = stages("model", lambda: _learn(job, roles, kappa, classes, model, draw))
        notes = () if learnt.model.feasible is None else _note_moves(learnt, feasible)
        notes += note_areas(roles.model, settings.m_min)
        if settings.method == "kmeans" and kappa == "auto" and classes is None and not isinstance(model, FittedModel):
            notes += (_note_kappa(learnt.classes),)
        return _make_tested(job, replace(roles, notes=(*roles.notes, *notes)), learnt)


def _make_private(job: Job) -> Fakes:
    """Make fakes by noisy sums over everybody (theorem 2)."""
    traces, settings = job.traces, job.settings
    if is_data(job.feasible):
        refuse_found_moves()
    ways = None
    if isinstance(traces, Traces) and (moves := allowed_moves(job.feasible, traces.locations)) is not None:
        ways = Ways.of(feasible_moves(moves, traces.R), np.ones(traces.R, dtype=bool), traces.locations)
    release = release_private(
        traces,
        eps=settings.eps,
        delta=settings.delta,
        days=settings.days,
        n=job.n,
        in_laboratory=job.laboratory,
        entropy=job.entropy,
        progress=job.progress,
        ways=ways,
        stages=job.stages,
        executor=job.executor,
    )
    number, lives = len(release.r), settings.days > 1
    return Fakes(
        r=release.r,
        seed=np.full(number, -1),
        loglik=np.zeros(number),
        verdicts=(),
        attempts=np.array([number]),
        tally={"tested": number, "passed": number},
        seeds=traces,
        frame=PublicMap(
            traces.locations,
            np.ones(traces.R, dtype=bool),
            WEEKS if lives else None,  # the dates on which people have data are private
            traces.step_minutes,
            traces.start,
            traces.tz,
        ),
        learnt=None,
        preset=settings,
        kappa=0,
        laboratory=job.laboratory,
        notes=(*release.notes, *([] if ways is None else [GIVEN_MOVES])),
        seed_rows=np.empty(0, dtype=np.int64),
        sampler=release.mechanism,
        weekend=release.weekend if lives else None,
        life=np.arange(number) // settings.days,
        day=_assign_days(release.weekend.reshape(-1, settings.days)) if lives else None,
        certificate=release.certificate,
    )


def _assign_days(weekend: NDArray[np.bool_]) -> Ints:
    """Return the day of each row, 0 a Monday, of lives (n, days) whose days are at a `weekend` or not."""
    out = np.empty(weekend.shape, dtype=np.int64)
    kinds, of = np.unique(weekend, axis=0, return_inverse=True)
    for i, kind in enumerate(kinds):
        # any weekday of the right kind: the first weekday of a life is drawn when it is published (`PublicMap.weeks`)
        out[of.ravel() == i] = weekdays(kind, np.random.default_rng(0))
    return out.ravel()


def _make_tested(job: Job, roles: Roles, learnt: FittedModel) -> Fakes:
    """Make fakes that pass the privacy test: walks paired with seeds (`product`), or decoded from them (`paper`)."""
    settings = job.settings
    if (learnt.place < 0).any():
        roles = _drop_unknown_places(roles, learnt)
    seeds = learnt.translate(roles.seeds)
    # a person with all their days is one seed; where the paper is reproduced, every trace is
    people = People.of(seeds, m_min=settings.m_min, alone=settings.name == "paper")
    alternates = roles.alternates if isinstance(roles.alternates, str | None) else learnt.translate(roles.alternates)
    test = PrivacyTest.prepare(
        seeds,
        None if settings.k == 1 and settings.against == "own" else alternates,
        par_s=settings.par_s,
        par_i=settings.par_i,
        par_d=settings.par_d,
        k=settings.k,
        periods=settings.periods,
        against=settings.against,
        intersection=settings.intersection,
        min_sim=settings.min_sim,
        people=people if settings.name == "product" else None,
        relaxed=settings.relaxed if settings.name == "product" else (),
    )
    work: Pairs | Attempts
    if settings.name == "product":
        work = _prepare_pairing(job, learnt, roles, people, test)
    else:
        work = Attempts(_prepare_decoding(job, learnt, seeds), test, seeds, settings.max_tries)
    # (per_seed, people, days): on which days each fake is somewhere. They are those of some person, since the number of
    # a seed's own days would tell which fake is whose, and which fakes are of one seed
    days = np.ones((job.per_seed, len(people), 1), dtype=bool)
    if people.days > 1:
        days = np.stack([people.draw_days(job.rng(6, number), settings.m_min) for number in range(job.per_seed)])
    # one number of fake after the other: asking for more fakes per seed does not change the first ones
    pieces = [
        np.column_stack([rows, np.full(len(rows), number)])
        for number in range(job.per_seed)
        for rows in np.split(np.arange(len(people)), np.arange(work.size, len(people), work.size))
    ]
    items: list[Any] = pieces
    if isinstance(work, Pairs):
        items = [Block(u, test.block(u[0, 0], u[-1, 0] + 1), days[u[0, 1], u[:, 0]]) for u in pieces]
    if job.progress is not None:
        job.progress(0, len(pieces))
    blocks = map_over(
        work, items, executor=job.executor, progress=job.progress, stages=job.stages, name="blocks_of_fakes"
    )
    return _gather(job, roles, learnt, people, days, pieces, blocks)


def _gather(
    job: Job,
    roles: Roles,
    learnt: FittedModel,
    people: People,
    days: NDArray[np.bool_],
    pieces: list[Ints],
    blocks: list[Made],
) -> Fakes:
    """Return the fakes of all blocks in the order of their seeds, one row for each of their days."""
    traces, settings = job.traces, job.settings
    tally = {name: sum(m.tally[name] for m in blocks) for name in blocks[0].tally}
    tally = {"tested": tally["tested"] + tally["not_made"], **{n: c for n, c in tally.items() if n != "tested"}}
    units = np.concatenate(pieces)
    unit = np.concatenate([units_of[m.unit] for units_of, m in zip(pieces, blocks, strict=True)])
    if len(unit) == 0:
        if learnt.model.feasible is not None and tally["not_made"] == tally["tested"]:
            raise NoFeasiblePath(
                f"no fake of {len(units)} could be made with the moves that `feasible` allows: none of "
                f"{tally['tested']} attempts found a path through places of the seed's classes; allow more moves."
            )
        rules = ", ".join(f"{name} {tally[name]}" for name in RULES if tally[name])
        raise NothingPassed(
            f"0 of {len(units)} fakes passed the privacy tests in {tally['tested']} attempts (rejected by: "
            f"{rules or 'no rule; no fake could be made'}); loosen a test, or give more users or places."
        )
    order = np.lexsort((unit[:, 1], unit[:, 0]))
    # one row for each day of each fake
    lives, day = np.nonzero(days[unit[order, 1], unit[order, 0]])
    every = np.concatenate([m.r for m in blocks])[order].reshape(len(order), people.days, traces.L)
    fakes = every[lives, day]
    seed = roles.seed_rows[people.nearest_rows(unit[order, 0][lives], day)]
    tries = np.zeros(len(people), dtype=np.int64)
    np.add.at(tries, units[:, 0], np.concatenate([m.tries for m in blocks]))
    attempts = np.zeros(len(traces), dtype=np.int64)
    owner, _ = np.nonzero(people.rows >= 0)
    attempts[roles.seed_rows[people.rows[people.rows >= 0]]] = tries[owner]
    verdicts = Verdicts.joined([m.verdicts for m in blocks]).select(order[lives])
    weekend = None
    if traces.dates is not None:  # by the calendar of lives, or by the day of the seed
        weekend = people.weekend[day] if people.days > 1 else is_weekend(traces.dates)[seed]
    return Fakes(
        r=fakes,
        seed=seed,
        loglik=learnt.model.loglik(fakes, learnt.tau(traces)),
        verdicts=verdicts,
        attempts=attempts,
        tally=tally,
        seeds=traces,
        frame=PublicMap.of(traces, learnt, roles.model),
        learnt=learnt,
        preset=settings,
        kappa=learnt.classes.kappa,
        laboratory=job.laboratory,
        notes=(*roles.notes, *_note_limits(verdicts, lives, learnt, several=people.days > 1)),
        seed_rows=roles.seed_rows,
        weekend=weekend,
        life=lives,
        person=unit[order, 0][lives],
        day=day if people.days > 1 else None,
    )


def _note_limits(verdicts: Verdicts, lives: Ints, learnt: FittedModel, *, several: bool) -> list[str]:
    """Return notes on a single class of places, and on limits that were relaxed: how many fakes exceed each."""
    settings, fakes = learnt.preset, len(np.unique(lives))
    notes = [ONE_CLASS] * (learnt.classes.kappa < 2)
    # shared places are counted on fakes of one day alone
    shared = 0 if several or settings.intersection != "set" else len(np.unique(lives[verdicts.shared > settings.par_i]))
    alike = len(np.unique(lives[verdicts.sim > settings.par_s]))
    notes += [CROSSED.format(public_count(shared), fakes, settings.par_i)] * (shared > 0)
    return notes + [ALIKE.format(public_count(alike), fakes, settings.par_s)] * (alike > 0)


GIVEN_MOVES = (
    "a fake makes no move, from the place of one slot to that of the next, which the given table does not allow."
)


def refuse_found_moves() -> None:
    """Refuse moves that would be learnt from the people whom the private preset protects."""
    raise InvalidParameter(
        'preset "private" protects everybody in the file, so allowed moves must not be learnt from the file: give '
        "`feasible` as a table that was made without these people, such as a road network.",
        code="E_MAP",
    )


def _note_moves(learnt: FittedModel, feasible: Any) -> tuple[str, ...]:
    """Return a note on the allowed moves."""
    sentence = GIVEN_MOVES
    if feasible is None or is_data(feasible):
        sentence = (
            "a fake makes no move, from the place of one slot to that of the next, which the model does not allow."
        )
    ways = None if learnt.preset.name == "paper" else learnt.ways
    apart = " Allowed moves do not lead from every place to every other: walks end where no way goes on."
    return (sentence + apart,) if ways is not None and not ways.connected else (sentence,)


def _note_kappa(classes: SemanticClasses) -> str:
    """Return a note on the number of classes beside that of the paper (E29)."""
    kappa, places = classes.kappa, int((classes.label >= 0).sum())
    if kappa == PAPERS:
        return f"{PAPERS} semantic classes, as many as in the paper; `kappa` sets another number (E29)."
    return f"{kappa} semantic classes, not the {PAPERS} of the paper: {places} visited places allow no more (E29)."


ONE_CLASS = (
    "all places are in one class, so fakes keep nothing of the meaning of their seeds' places: give more people."
)


def _draw_entropy(rng: np.random.Generator | None) -> int:
    """Return 128 bits of the operating system, or of the caller's generator in a laboratory run."""
    if rng is None:
        secret = np.random.SeedSequence().entropy
        assert isinstance(secret, int)  # noqa: S101 - what numpy draws from the operating system
        return secret
    if not isinstance(rng, np.random.Generator):
        raise InvalidParameter(
            f"`rng` must be a numpy.random.Generator or None, got {type(rng).__name__}.", parameter="rng"
        )
    return int.from_bytes(rng.bytes(16), "little")


def _learn(
    job: Job,
    roles: Roles,
    kappa: Kappa,
    classes: SemanticClasses | ArrayLike | None,
    model: AggregateModel | FittedModel | None,
    rng: np.random.Generator,
) -> FittedModel:
    """Learn model and classes, or take those that are given; refused where they do not fit these people."""
    settings, feasible = job.settings, job.feasible
    if settings.name == "paper" and settings.m_min == 1:
        warnings.warn(
            "`m_min` = 1: places that a single user visits enter model, classes and fakes (E31).", stacklevel=4
        )
    own_classes = classes if isinstance(classes, SemanticClasses | None) else SemanticClasses(classes)
    if isinstance(model, FittedModel):
        if model.preset.m_min < settings.m_min:
            raise InvalidParameter(
                f"`model` was learnt with `m_min` = {model.preset.m_min}, so a place or move in it may be of fewer "
                f"than {settings.m_min} people: learn it again with `m_min={settings.m_min}`.",
                code="E_MISMATCH",
                parameter="model",
            )
        learnt = replace(model, preset=settings, classes=own_classes or model.classes)
    elif model is not None and own_classes is not None:
        learnt = FittedModel(model, own_classes, settings, np.arange(model.R))
    else:
        learnt = learn(roles.model, settings, kappa=kappa, feasible=feasible, rng=rng)
        learnt = replace(learnt, model=model or learnt.model, classes=own_classes or learnt.classes)
    if learnt.model.locations != roles.seeds.locations:
        raise other_map_error(learnt.model.locations, roles.seeds.locations)
    if model is not None and feasible is not None:
        if is_data(feasible):
            raise InvalidParameter(
                '`feasible="data"` takes moves from the people a model is learnt from: give it when the model is '
                "learnt, or give a table of allowed moves here.",
                code="E_FEASIBLE",
            )
        moves = allowed_moves(feasible, roles.seeds.locations)
        learnt = replace(learnt, model=learnt.model.with_moves(moves))
    learnt.tau(roles.seeds)
    if len(learnt.classes.label) != roles.seeds.R:
        raise InvalidParameter(
            f"`classes` must label {roles.seeds.R} places, got {len(learnt.classes.label)}.",
            code="E_MISMATCH",
            parameter="classes",
        )
    return learnt


def _drop_unknown_places(roles: Roles, learnt: FittedModel) -> Roles:
    """Return the roles without rows that visit rare places only, of a map without coordinates (E31)."""
    shown = np.any(learnt.place[roles.seeds.r] >= 0, axis=1)
    alternates = roles.alternates
    if isinstance(alternates, Traces):
        alternates = alternates.select(np.any(learnt.place[alternates.r] >= 0, axis=1))
    if shown.all():
        return replace(roles, alternates=alternates)
    if not shown.any():
        raise InvalidTraces("no seed visits a place that enough users share; lower `m_min`.", code="E_SUPPRESSED")
    left_out = public_count(int((~shown).sum()))
    note = f"{left_out} seeds were left out: they visit only places that fewer than `m_min` users share."
    return replace(
        roles,
        seeds=roles.seeds.select(shown),
        seed_rows=roles.seed_rows[shown],
        alternates=alternates,
        notes=(*roles.notes, note),
    )


def _prepare_decoding(job: Job, learnt: FittedModel, seeds: Traces) -> FakeMaker:
    """Return what makes a fake of its seed as the paper does: blurring, and a decoder."""
    how = job.settings
    blur = Blur(
        par_c=how.par_c,
        par_m=how.par_m,
        par_l=how.par_l,
        c_min=how.c_min,
        subsample=how.subsample,
        merge=how.merge,
    )
    # places that too few people in the model visit are never candidates (E30, E31)
    sets = ClassSets.of(learnt.classes.label, nearness=learnt.classes.nearness, model_places=learnt.known)
    key = np.random.SeedSequence(job.entropy, spawn_key=(1,)).generate_state(4, np.uint64).astype(np.uint64)[:2]
    return FakeMaker(learnt.model, sets, learnt.tau(seeds), blur, how.sampler, key, how.par_v)


def _prepare_pairing(job: Job, learnt: FittedModel, roles: Roles, people: People, test: PrivacyTest) -> Pairs:
    """Learn the walk model, of single days or of lives over days; return what pairs its walks with seeds."""
    rng = job.rng(4)
    walk: WalkModel | LifeModel
    goal: Goal | LifeRatio
    if people.days > 1:
        walk, goal = job.stages("walk", partial(learn_weeks, roles.seeds, people.weekend, learnt, rng))
    else:
        walk, goal = job.stages("walk", partial(learn_days, roles.model, learnt, rng))
    shift = int(job.settings.shift / roles.seeds.step_minutes + 0.5)
    nobody = test.of(test.block(0, 0))  # each block brings its own seeds
    size = max(LEAST_BLOCK, BLOCK // people.days)
    return Pairs(walk, goal, learnt.classes.label, nobody, job.settings, shift, people.days, size, job.entropy)
