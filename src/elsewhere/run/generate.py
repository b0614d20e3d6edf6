"""
Make fakes: `GenerateFake` of fig:alg, over lives or over the paper's slots.

`life`, the default, draws how people live from a law that many share and where by what places mean (synthesis/).
`paper` blurs each seed into its semantic seed, decodes a fake from it and keeps what passes the test (paper/).
With `eps`, everything is learnt from noisy sums over everybody, and nobody is a seed (privacy/).
"""

import warnings
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.checkpoint import Stages, at_once
from elsewhere.data.slots import Periods, Traces
from elsewhere.data.visits import Ints, Visits, share_map
from elsewhere.errors import InvalidParameter, NotEnoughUsers, NothingPassed
from elsewhere.paper.aggregate import AggregateModel, aggregate
from elsewhere.paper.generate_fake import Attempts, Blur, ClassSets, FakeMaker
from elsewhere.paper.privacy_test import RULES, PrivacyTest, Verdicts
from elsewhere.paper.profiles import fit_profiles
from elsewhere.paper.semantic_clustering import SemanticClasses, semantic_clustering, semantic_graph
from elsewhere.privacy.private.release import release_private
from elsewhere.run.publish import Fakes, Learnt
from elsewhere.scale import map_over
from elsewhere.settings import Certified, Kappa, Making, Method, MethodName, Paper, method_of
from elsewhere.synthesis.generate_life import generate_lives

Progress = Callable[[int, int], None]
PUBLIC_GAP = 360.0  # minutes that certified fakes fill
SEED_SHARE = 0.7  # of the people; the others are alternates


def generate_fakes(
    data: Visits | Traces,
    *,
    method: MethodName | Method = "life",
    per_seed: int = 1,
    eps: float | None = None,
    delta: float = 1e-6,
    n: int | None = None,
    kappa: Kappa = "auto",
    classes: SemanticClasses | ArrayLike | None = None,
    model: AggregateModel | None = None,
    alternates: Visits | Traces | Literal["all", "split"] | None = None,
    rng: np.random.Generator | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Fakes:
    """
    Make fakes of real people that live like them, elsewhere (`GenerateFake`, fig:alg).

    Parameters
    ----------
    data
        The real people: `Visits` as observed, or `Traces` of slots.
    method
        "life", or "paper" for the paper's own; every parameter of a method can be given by keyword.
    per_seed
        Fakes wanted of each seed.
    eps, delta
        Certified fakes: odds about anybody in the file change by at most a factor e^eps, but for delta.
    n
        How many certified fakes to release; by default as many as there are people, counted with noise.
    kappa, classes, model
        Of the paper's method: number of semantic classes, or classes and aggregate model learnt beforehand.
    alternates
        People who are nobody's seed (E53); by default 30 % of the people are split off by user, and the paper's method
        takes all other people.
    rng
        Makes a laboratory run: repeatable, not publishable as private. By default the operating system's entropy.
    executor, workers
        Where the work runs; the result does not depend on it.
    progress
        Called as `progress(done, total)`.
    **parameters
        Any parameter of the method: `k`, `par_s`, `max_tries` ...

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> town = ew.simulate_town(users=60, days=7, locations=100, rng=np.random.default_rng(1))
    >>> ew.generate_fakes(town.visits, rng=np.random.default_rng(2)).seed_of_life.shape
    (42,)

    """
    return make_fakes(
        data,
        _draw_entropy(rng),
        laboratory=rng is not None,
        settings=Certified(eps=eps, delta=delta, **parameters) if eps is not None else method_of(method, **parameters),
        making=Making(kappa=kappa, per_seed=per_seed, n=n, workers=1 if workers is None else workers),
        classes=classes,
        model=model,
        alternates=alternates,
        executor=executor,
        progress=progress,
    )


@dataclass(frozen=True, eq=False)
class Job:
    """What all steps share: parameters, the secret of all draws, and where work is done."""

    settings: Any
    making: Making
    entropy: int = field(repr=False)
    laboratory: bool
    stages: Stages = field(repr=False)
    executor: Executor | None
    progress: Progress | None

    def rng(self, *key: int) -> np.random.Generator:
        """Return the random generator of one use of the secret."""
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=key))


def make_fakes(
    data: Visits | Traces,
    entropy: int,
    *,
    laboratory: bool,
    settings: Method | Certified,
    making: Making,
    classes: SemanticClasses | ArrayLike | None = None,
    model: AggregateModel | None = None,
    alternates: Visits | Traces | str | None = None,
    stages: Stages = at_once,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Fakes:
    """
    Make the fakes of `generate_fakes` from 128 secret bits; in a `laboratory` run they are known to somebody.

    The fakes depend on nothing else but the noise of a theorem, so that a resumed run gives the same fakes.
    """
    if not isinstance(data, Visits | Traces):
        raise InvalidParameter(f"`data` must be `Visits` or `Traces`, got {type(data).__name__}.", parameter="data")
    of_paper = {"classes": classes, "model": model}
    if not isinstance(settings, Paper):
        for name, given in of_paper.items():
            if given is not None:
                raise InvalidParameter(f'`{name}` is for method "paper".', parameter=name)
    if making.n is not None and not isinstance(settings, Certified):
        raise InvalidParameter(
            "`n` is for certified fakes (`eps`), any number of which may be released; others are `per_seed` of each "
            "seed.",
            parameter="n",
        )
    # kernels release the GIL, so threads are enough
    own_threads = executor is None and making.workers > 1
    with ThreadPoolExecutor(making.workers) if own_threads else nullcontext(executor) as where:
        job = Job(settings, making, entropy, laboratory, stages, where, progress)
        if isinstance(settings, Certified):
            return _make_certified(job, data)
        if isinstance(settings, Paper):
            traces = data if isinstance(data, Traces) else data.traces()
            return _make_paper(job, traces, classes, model, alternates)
        return _make_lives(job, data, alternates)


def split_people(n: int, rng: np.random.Generator, *, least: int) -> Ints:
    """Return who are seeds, at random; refused where not enough alternates would be left (E53, E60)."""
    seeds = round(SEED_SHARE * n)
    if n - seeds < least or seeds < least:
        needed = int(np.ceil(least / (1 - SEED_SHARE)))
        raise NotEnoughUsers(
            f"there are {n} people, and {needed} are needed: {least} others must be as similar to a fake as its seed "
            "(`k`).",
            parameter="k",
        )
    return np.sort(rng.permutation(n)[:seeds])


def _make_lives(job: Job, data: Visits | Traces, alternates: Visits | Traces | str | None) -> Fakes:
    """Make lives: how from many, where by meaning (GENERATOR)."""
    people = data if isinstance(data, Visits) else data.visits()
    others = alternates if isinstance(alternates, Visits) else None
    if isinstance(alternates, Traces):
        others = alternates.visits()
    if others is None:
        seeds = split_people(people.U, job.rng(0), least=job.settings.k - 1)
        others = people.of_users(np.setdiff1d(np.arange(people.U), seeds))
    else:
        seeds = np.arange(people.U)
        people, others = share_map(people, others)
    result = generate_lives(
        people.of_users(seeds),
        alternates=others,
        per_seed=job.making.per_seed,
        entropy=job.entropy,
        executor=job.executor,
        stages=job.stages,
        progress=job.progress,
        k=job.settings.k,
        par_s=job.settings.par_s,
        par_d=job.settings.par_d,
        attempts=job.settings.max_tries,
    )
    if result.visits is None:
        rules = ", ".join(f"{name} {count}" for name, count in result.tally.items() if name not in ("tested", "passed"))
        raise NothingPassed(
            f"none of {len(seeds)} seeds has a fake that passed the privacy test in {result.tally['tested']} attempts "
            f"(rejected by: {rules}); loosen a test, or give more people."
        )
    attempts = np.zeros(people.U, dtype=np.int64)
    attempts[seeds] = result.attempts
    fakes = Fakes(
        visits=result.visits,
        seed_of_life=seeds[result.seed_of_life],
        method="life",
        parameters=dict(job.settings),
        seeds=seeds,
        verdicts=result.verdicts,
        attempts=attempts,
        tally=result.tally,
        laboratory=job.laboratory,
        notes=result.notes,
    )
    return fakes if isinstance(data, Visits) else _in_slots(fakes, data)


def _in_slots(fakes: Fakes, data: Traces) -> Fakes:
    """Return the same with its days in the slots of the data, each beside a day of its seed of the same kind."""
    t = fakes.visits.traces(step_minutes=data.step_minutes)
    life = np.array([fakes.visits.users.index(label) for label in t.labels], dtype=np.int64)[t.user]
    row = np.empty(len(t), dtype=np.int64)
    order = np.argsort(data.user, kind="stable")
    first = np.searchsorted(data.user[order], np.arange(data.U + 1))
    number = np.arange(len(t)) - np.searchsorted(life, life)
    person = fakes.seed_of_life[life]
    size = np.diff(first)[person]
    row = order[first[person] + number % size]
    return replace(fakes, r=t.r, seed=row, life=life)


def _make_paper(
    job: Job,
    traces: Traces,
    classes: SemanticClasses | ArrayLike | None,
    model: AggregateModel | None,
    alternates: Visits | Traces | str | None,
) -> Fakes:
    """Make the paper's fakes: every trace is a seed, model and classes are learnt from the seeds themselves."""
    how = job.settings
    warnings.warn("places that a single person visits enter model, classes and fakes (E31).", stacklevel=4)
    rng = job.rng(0)
    seed_rows = np.flatnonzero(np.all(traces.r >= 0, axis=1))
    seeds = traces if len(seed_rows) == len(traces) else traces.select(seed_rows)
    own_model, own_classes = model, classes
    if model is None or classes is None:
        profiles = fit_profiles(traces, periods=how.periods, missing="skip")
        own_model = model or aggregate(profiles, traces.locations, epsilon=how.epsilon, n_min=how.n_min)
        if classes is None:
            graph = semantic_graph(profiles)
            own_classes = semantic_clustering(
                graph, kappa=job.making.kappa, method=how.clustering, c_min=how.c_min, rng=rng
            )
    assert own_model is not None  # noqa: S101 - just learnt
    assert own_classes is not None  # noqa: S101 - just learnt
    label = own_classes if isinstance(own_classes, SemanticClasses) else SemanticClasses(own_classes)
    if own_model.locations != traces.locations or len(label.label) != traces.R:
        raise InvalidParameter(
            "`model` and `classes` must be on the map of the data.", code="E_MISMATCH", parameter="model"
        )
    blur = Blur(
        par_c=how.par_c, par_m=how.par_m, par_l=how.par_l, c_min=how.c_min, subsample=how.subsample, merge=how.merge
    )
    sets = ClassSets.of(label.label, nearness=label.nearness, model_places=own_model.visitors > 0)
    key = np.random.SeedSequence(job.entropy, spawn_key=(1,)).generate_state(4, np.uint64).astype(np.uint64)[:2]
    tau = Periods.of(how.periods).of_minute(traces.minutes()).astype(np.int64)
    maker = FakeMaker(own_model, sets, tau, blur, how.sampler, key, how.par_v)
    others: Any = "all" if alternates is None else alternates.traces() if isinstance(alternates, Visits) else alternates
    test = PrivacyTest.prepare(
        seeds,
        None if how.k == 1 and how.against == "own" else others,
        par_s=how.par_s,
        par_i=how.par_i,
        par_d=how.par_d,
        k=how.k,
        periods=how.periods,
        against=how.against,
        intersection=how.intersection,
        min_sim=how.min_sim,
    )
    work = Attempts(maker, test, seeds, how.max_tries)
    pieces = [
        np.column_stack([rows, np.full(len(rows), number)])
        for number in range(job.making.per_seed)
        for rows in np.split(np.arange(len(seeds)), np.arange(work.size, len(seeds), work.size))
    ]
    blocks = map_over(
        work, pieces, executor=job.executor, progress=job.progress, stages=job.stages, name="blocks_of_fakes"
    )
    tally = {name: sum(m.tally[name] for m in blocks) for name in blocks[0].tally}
    tally = {"tested": tally["tested"] + tally["not_made"], **{n: c for n, c in tally.items() if n != "tested"}}
    units = np.concatenate(pieces)
    unit = np.concatenate([units_of[m.unit] for units_of, m in zip(pieces, blocks, strict=True)])
    if len(unit) == 0:
        rules = ", ".join(f"{name} {tally[name]}" for name in RULES if tally[name])
        raise NothingPassed(
            f"0 of {len(units)} fakes passed the privacy tests in {tally['tested']} attempts (rejected by: "
            f"{rules or 'no rule; no fake could be made'}); loosen a test, or give more people or places."
        )
    order = np.lexsort((unit[:, 1], unit[:, 0]))
    r = np.concatenate([m.r for m in blocks])[order]
    row = seed_rows[unit[order, 0]]
    tries = np.zeros(traces.U, dtype=np.int64)
    np.add.at(tries, traces.user[seed_rows[units[:, 0]]], np.concatenate([m.tries for m in blocks]))
    dates = None if traces.dates is None else traces.dates[row]
    fake = Traces(
        r,
        traces.locations,
        users=np.arange(len(r)),
        dates=dates,
        step_minutes=traces.step_minutes,
        start=traces.start,
        tz=traces.tz,
    )
    return Fakes(
        visits=fake.visits(),
        seed_of_life=traces.user[row].astype(np.int64),
        method="paper",
        parameters={**dict(how), "kappa": label.kappa},
        seeds=np.unique(traces.user[seed_rows]).astype(np.int64),
        verdicts=Verdicts.joined([m.verdicts for m in blocks]).select(order),
        attempts=tries,
        tally=tally,
        laboratory=job.laboratory,
        loglik=own_model.loglik(r, tau) / traces.L,
        r=r,
        seed=row,
        life=np.arange(len(r)),
        learnt=Learnt(own_model, label),
    )


def _make_certified(job: Job, data: Visits | Traces) -> Fakes:
    """Make fakes by noisy sums over everybody: nobody is a seed, and nothing is tested."""
    how = job.settings
    # how long gaps are is a matter of the people whom the theorem protects: a public number of minutes is filled
    traces = data if isinstance(data, Traces) else data.traces(max_gap=PUBLIC_GAP)
    release = release_private(
        traces,
        eps=how.eps,
        delta=how.delta,
        days=how.days,
        n=job.making.n,
        in_laboratory=job.laboratory,
        entropy=job.entropy,
        progress=job.progress,
        stages=job.stages,
        executor=job.executor,
    )
    lives = np.arange(len(release.r)) // how.days
    # on which days people have data is theirs: the days of 2001, the first a Monday
    day = _weekdays(release.weekend.reshape(-1, how.days)) if how.days > 1 else np.zeros(len(lives), dtype=np.int64)
    fake = Traces(
        release.r,
        traces.locations,
        users=lives,
        dates=np.datetime64("2001-01-01", "D") + day,
        step_minutes=traces.step_minutes,
        start=traces.start,
        tz=traces.tz,
    )
    visits = fake.visits()
    return Fakes(
        visits=visits,
        seed_of_life=np.full(visits.U, -1),
        method="certified",
        parameters=dict(how),
        seeds=np.zeros(0, dtype=np.int64),
        certificate=release.certificate,
        laboratory=job.laboratory,
        notes=release.notes,
        mechanism=release.mechanism,
        r=release.r,
        seed=np.full(len(release.r), -1),
        life=lives,
    )


def _weekdays(weekend: NDArray[np.bool_]) -> Ints:
    """Return days of lives (n, days), one after the other on a calendar that begins on a Monday, each of its kind."""
    out = np.empty(weekend.shape, dtype=np.int64)
    for life, kinds in enumerate(weekend):
        at = 5 - int(np.argmax(kinds)) if kinds.any() and not kinds[0] and np.argmax(kinds) <= 5 else 5 * int(kinds[0])
        for i, off in enumerate(kinds.tolist()):
            while (at % 7 >= 5) != off:
                at += 1
            out[life, i] = at
            at += 1
    return out.ravel()


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
