"""
Make fakes: `GenerateFake` of fig:alg, over lives or over the paper's slots.

`life`, the default, draws how people live from a law that many share and where by what places mean (synthesis/).
`paper` blurs each seed into its semantic seed, decodes a fake from it and keeps what passes the test (paper/).
With `eps`, everything is learnt from noisy sums over everybody, and nobody is a seed (synthesis/certified.py).
"""

import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.checkpoint import Stages, at_once
from elsewhere.data.slots import Periods, Traces, clock_minutes
from elsewhere.data.visits import DAY, Ints, Visits, share_map
from elsewhere.errors import InvalidParameter, InvalidTraces, NotEnoughUsers, NothingPassed, require_rng
from elsewhere.paper.aggregate import AggregateModel, aggregate
from elsewhere.paper.generate_fake import Attempts, ClassSets, FakeMaker, Pars
from elsewhere.paper.privacy_test import PrivacyTest, Verdict
from elsewhere.paper.profiles import fit_profiles
from elsewhere.paper.semantic_clustering import SemanticClasses, semantic_clustering
from elsewhere.paper.semantic_graph import semantic_graph
from elsewhere.run.publish import Fakes, Learnt
from elsewhere.scale import map_over
from elsewhere.settings import DELTA, Certified, Kappa, Life, Making, Method, MethodName, Paper, method_of
from elsewhere.sorting import number_parts
from elsewhere.synthesis.certified import Observed, observed, release_certified
from elsewhere.synthesis.generate_life import generate_lives

Progress = Callable[[int, int], None]
SEED_SHARE = 0.7  # of the people; the others are alternates


def generate_fakes(
    data: Visits | Traces,
    *,
    method: MethodName | Method = "life",
    per_seed: int = 1,
    eps: float | None = None,
    delta: float = DELTA,
    n: int | None = None,
    kappa: Kappa = "auto",
    classes: SemanticClasses | ArrayLike | None = None,
    model: AggregateModel | None = None,
    alternates: Visits | Traces | None = None,
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
    settings = method_of(method, eps=eps, delta=delta, **parameters)
    making = Making(kappa=kappa, per_seed=per_seed, n=n, workers=1 if workers is None else workers)
    if rng is not None:
        require_rng(rng)
    secret = secrets.token_bytes(16) if rng is None else rng.bytes(16)
    run = Run(settings, making, secret, rng is not None, at_once, executor, progress)
    return make_fakes(run, data, classes=classes, model=model, alternates=alternates)


@dataclass(frozen=True, eq=False)
class Run:
    """
    What all steps share: parameters, the secret of all draws, and where work is done.

    In a `laboratory` run the 128 bits of `secret` or more are known to somebody.
    """

    settings: Method
    making: Making
    secret: bytes = field(repr=False)
    laboratory: bool
    stages: Stages = field(default=at_once, repr=False)
    executor: Executor | None = None
    progress: Callable[..., None] | None = None

    @property
    def entropy(self) -> int:
        """Return the first 128 bits of the secret."""
        return int.from_bytes(self.secret[:16], "little")

    def sequence(self, key: int) -> np.random.SeedSequence:
        """Return the random numbers of one use of the secret."""
        return np.random.SeedSequence(self.entropy, spawn_key=(key,))


def make_fakes(
    run: Run,
    data: Visits | Traces | Observed,
    *,
    classes: SemanticClasses | ArrayLike | None = None,
    model: AggregateModel | None = None,
    alternates: Visits | Traces | None = None,
) -> Fakes:
    """
    Make the fakes of `generate_fakes` from the secret bits of a run.

    They depend on nothing else but the noise of a theorem, so that a resumed run gives the same fakes.
    """
    settings, making = run.settings, run.making
    _refuse_misfits(data, settings, making, classes=classes, model=model, alternates=alternates)
    # kernels release the GIL, so threads are enough
    own_threads = run.executor is None and making.workers > 1
    with ThreadPoolExecutor(making.workers) if own_threads else nullcontext(run.executor) as where:
        run = replace(run, executor=where)
        if isinstance(settings, Certified):
            fakes = _make_certified(run, data if isinstance(data, Observed) else observed(_visits(data)))
            return _in_slots(fakes, data) if isinstance(data, Traces) else fakes
        assert not isinstance(data, Observed)  # noqa: S101 - which only certified fakes are made of
        if isinstance(settings, Paper):
            return _make_paper(run, _slots(data), classes, model, None if alternates is None else _slots(alternates))
        return _make_lives(run, data, alternates)


def _refuse_misfits(data: Any, settings: Method, making: Making, **given: Any) -> None:
    """Refuse data of another type, and what the method does not read."""
    for name, value in (("data", data), ("alternates", given["alternates"])):
        if not isinstance(value, Visits | Traces | Observed) and not (value is None and name == "alternates"):
            raise InvalidParameter(
                f"`{name}` must be `Visits` or `Traces`, got {type(value).__name__}.", parameter=name
            )
    readers = {"classes": Paper, "model": Paper, "alternates": Paper | Life, "n": Certified}
    for name, methods in readers.items():
        if (given | {"n": making.n})[name] is not None and not isinstance(settings, methods):
            raise InvalidParameter(f"`{name}` is not read by this method.", code="E_NOT_READ", parameter=name)


def _slots(data: Visits | Traces) -> Traces:
    return data if isinstance(data, Traces) else data.traces()


def _visits(data: Visits | Traces) -> Visits:
    return data if isinstance(data, Visits) else data.visits()


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


def _make_certified(run: Run, seen: Observed) -> Fakes:
    """Make fakes by noisy sums over everybody: nobody is a seed, and nothing is tested."""
    visits, certificate, mechanism = release_certified(
        seen,
        run.settings,  # type: ignore[arg-type]  # which are Certified
        run.making.n,
        laboratory=run.laboratory,
        entropy=run.entropy,
        stages=run.stages,
        executor=run.executor,
        progress=run.progress,
    )
    return Fakes(
        visits=visits,
        seed_of_life=np.full(visits.U, -1),
        method="certified",
        parameters=dict(run.settings),
        seeds=np.zeros(0, dtype=np.int64),
        certificate=certificate,
        laboratory=run.laboratory,
        mechanism=mechanism,
    )


def _make_lives(run: Run, data: Visits | Traces, alternates: Visits | Traces | None) -> Fakes:
    """Make lives: how from many, where by meaning (E75 ff.)."""
    people, how = _visits(data), run.settings
    if alternates is None:
        seeds = split_people(people.U, np.random.default_rng(run.sequence(0)), least=how.k - 1)
        others = people.of_users(np.setdiff1d(np.arange(people.U), seeds))
    else:
        seeds = np.arange(people.U)
        people, others = share_map(people, _visits(alternates))
    result = generate_lives(
        people.of_users(seeds),
        alternates=others,
        per_seed=run.making.per_seed,
        entropy=run.entropy,
        executor=run.executor,
        stages=run.stages,
        progress=run.progress,
        k=how.k,
        par_s=how.par_s,
        par_d=how.par_d,
        attempts=how.max_tries,
    )
    if result.visits is None:
        raise _nothing_passed(len(seeds) * run.making.per_seed, result.tally)
    attempts = np.zeros(people.U, dtype=np.int64)
    attempts[seeds] = result.attempts
    fakes = Fakes(
        visits=result.visits,
        seed_of_life=seeds[result.seed_of_life],
        method="life",
        parameters=dict(how),
        seeds=seeds,
        verdicts=result.verdicts,
        attempts=attempts,
        tally=result.tally,
        laboratory=run.laboratory,
        notes=result.notes,
    )
    return fakes if isinstance(data, Visits) else _in_slots(fakes, data)


def _in_slots(fakes: Fakes, data: Traces) -> Fakes:
    """Return the same with rows of slots: for each life, where it is in the slots of each row of its seed."""
    v = fakes.visits
    begin = np.searchsorted(v.user, np.arange(len(fakes) + 1))
    if fakes.covered:  # nobody's rows: the days of each life
        visit, nth = number_parts(np.maximum(v.end - 1, v.start) // DAY - v.start // DAY + 1)
        day = np.unique((v.user.astype(np.int64) * (1 << 20) + v.start // DAY)[visit] + nth)
        life, day, row = day >> 20, day & ((1 << 20) - 1), np.full(len(day), -1)
    else:
        order = np.argsort(data.user, kind="stable")
        first = np.searchsorted(data.user[order], np.arange(data.U + 1))
        life, within = number_parts(np.diff(first)[fakes.seed_of_life])
        row = order[first[fakes.seed_of_life[life]] + within]
        if data.dates is not None:
            day = data.dates.astype(np.int64)[row]
        else:  # as `Traces.visits` counts them
            day = 4 + within * (int(data.L * 60 * data.step_minutes) // DAY + 1)
        # a fake may live on other days than its seed: the nearest
        day = np.clip(day, v.start[begin[:-1]][life] // DAY, (v.end[begin[1:] - 1][life] - 1) // DAY)
    middle = 60 * (clock_minutes(data.start) + data.step_minutes * (np.arange(data.L) + 0.5))
    time = (day[:, None] * DAY + middle).astype(np.int64)
    # the visit that began last, by life and time; before the first of a life its first
    low = min(v.start.min(), time.min())
    span = max(v.start.max(), time.max()) - low + 1
    found = np.searchsorted(v.user * span + v.start - low, life[:, None] * span + time - low, side="right") - 1
    at = np.maximum(found, begin[life][:, None])
    return replace(fakes, r=v.place[at].astype(np.int32), seed=row, life=life)


def _nothing_passed(wanted: int, tally: Mapping[str, int]) -> NothingPassed:
    rules = ", ".join(f"{name} {n}" for name, n in tally.items() if name not in ("tested", "passed") and n)
    why = f"none passed the privacy test (rejected by: {rules}); loosen a test, or give more people or places."
    none = "too little is known of each person to draw a life; give more hours of their days."
    return NothingPassed(f"0 of {wanted} fakes were made in {tally['tested']} attempts: {why if rules else none}")


def _learn_paper(
    run: Run, traces: Traces, classes: SemanticClasses | ArrayLike | None, model: AggregateModel | None
) -> Learnt:
    """Return aggregate model and classes as given, or learnt from the traces."""
    how = run.settings
    if model is None or classes is None:
        profiles = fit_profiles(traces, periods=how.periods, missing="skip")
        if model is None:
            model = aggregate(profiles, traces.locations, epsilon=how.epsilon, n_min=how.n_min)
        if classes is None:
            classes = semantic_clustering(
                semantic_graph(profiles),
                kappa=run.making.kappa,
                method="kmeans",
                c_min=how.c_min,
                rng=np.random.default_rng(run.sequence(0)),
            )
    label = classes if isinstance(classes, SemanticClasses) else SemanticClasses(classes)
    for name, fits in (("model", model.locations == traces.locations), ("classes", len(label.label) == traces.R)):
        if not fits:
            raise InvalidParameter(f"`{name}` must be on the map of the data.", code="E_MISMATCH", parameter=name)
    return Learnt(model, label)


def _make_paper(
    run: Run,
    traces: Traces,
    classes: SemanticClasses | ArrayLike | None,
    model: AggregateModel | None,
    alternates: Traces | None,
) -> Fakes:
    """Make the paper's fakes: every trace is a seed, model and classes are learnt from the seeds themselves."""
    how = run.settings
    seed_rows = np.flatnonzero(np.all(traces.r >= 0, axis=1))
    if len(seed_rows) == 0:
        raise InvalidTraces("no trace is known from end to end, as the paper's seeds are.", code="E_GAPS")
    seeds = traces if len(seed_rows) == len(traces) else traces.select(seed_rows)
    learnt = _learn_paper(run, traces, classes, model)
    tau = Periods.of(how.periods).of_minute(traces.minutes()).astype(np.int64)
    pars = Pars(how.par_c, how.par_m, how.par_l, how.par_v if how.sampler == "viterbi" else 0.0, how.c_min)
    label = learnt.classes
    sets = ClassSets.of(label, model_places=learnt.model.visitors > 0)
    key = run.sequence(1).generate_state(4, np.uint64).astype(np.uint64)[:2]
    maker = FakeMaker(learnt.model, sets, tau, pars, key)
    rules = ("par_s", "par_i", "par_d", "k", "periods", "against", "min_sim")
    others = None if how.k == 1 and how.against == "own" else "all" if alternates is None else alternates
    test = PrivacyTest.prepare(seeds, others, **{name: getattr(how, name) for name in rules})
    r, unit, verdicts, tries, tally = _attempt(run, Attempts(maker, test, seeds, how.max_tries), len(seeds))
    row = seed_rows[unit]
    attempts = np.zeros(traces.U, dtype=np.int64)
    np.add.at(attempts, seeds.user if seeds is traces else traces.user[seed_rows], tries)
    slots: dict[str, Any] = {"step_minutes": traces.step_minutes, "start": traces.start, "tz": traces.tz}
    dates = None if traces.dates is None else traces.dates[row]
    return Fakes(
        visits=Traces(r, traces.locations, users=np.arange(len(r)), dates=dates, **slots).visits(),
        seed_of_life=traces.user[row].astype(np.int64),
        method="paper",
        parameters={**dict(how), "kappa": label.kappa},
        seeds=np.unique(traces.user[seed_rows]).astype(np.int64),
        verdicts=tuple(verdicts),
        attempts=attempts,
        tally=tally,
        laboratory=run.laboratory,
        notes=("places that a single person visits enter model, classes and fakes (E31).",),
        loglik=learnt.model.loglik(r, tau) / traces.L,
        r=r,
        seed=row,
        life=np.arange(len(r)),
        learnt=learnt,
    )


def _attempt(run: Run, work: Attempts, n: int) -> tuple[NDArray[np.int32], Ints, list[Verdict], Ints, dict[str, int]]:
    """Return the accepted fakes in the order of n seeds; the seed of each, verdicts, tries of each seed, the tally."""
    pieces = [
        np.column_stack([rows, np.full(len(rows), number)])
        for number in range(run.making.per_seed)
        for rows in np.split(np.arange(n), np.arange(work.size, n, work.size))
    ]
    blocks = map_over(
        work, pieces, executor=run.executor, progress=run.progress, stages=run.stages, name="blocks_of_fakes"
    )
    total = {name: sum(block.tally[name] for block in blocks) for name in blocks[0].tally}
    tally = total | {"tested": total["tested"] + total["not_made"]}
    unit = np.concatenate([piece[block.unit] for piece, block in zip(pieces, blocks, strict=True)])
    if len(unit) == 0:
        raise _nothing_passed(n * run.making.per_seed, tally)
    order = np.lexsort((unit[:, 1], unit[:, 0]))
    r = np.concatenate([block.r for block in blocks])[order]
    tries = np.zeros(n, dtype=np.int64)
    np.add.at(tries, np.concatenate(pieces)[:, 0], np.concatenate([block.tries for block in blocks]))
    verdicts = [verdict for block in blocks for verdict in block.verdicts]
    return r, unit[order, 0], [verdicts[i] for i in order], tries, tally
