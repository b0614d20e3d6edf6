"""
The location-based-service scenario: a user sends decoys along with her place, the service tries to see through them.

With probability beta an instant is exposed: the service then receives the set of the true place and of the places of
m fake traces at that instant, shuffled. It knows how people move, sees the whole log, and names the true places.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.errors import InvalidParameter, InvalidTraces, require_between, require_whole
from elsewhere.evaluation.attacks.ground import on_one_map
from elsewhere.evaluation.lbs.knowledge import BETWEEN, Chain, chain_of, class_hours
from elsewhere.evaluation.lbs.result import ADVERSARIES, OVERHEADS, RESAMPLES, LbsResult
from elsewhere.evaluation.lbs.service import Sightings, named, overhead
from elsewhere.pool import on_map_of
from elsewhere.profiles.aggregate import AggregateModel, aggregate
from elsewhere.profiles.markov import Profiles, fit_profiles
from elsewhere.scale import map_over
from elsewhere.traces.model import Floats, Ints, Locations, Periods, Places, Traces

Generator = Callable[[int, int, np.random.Generator], ArrayLike]


def evaluate_lbs(
    train: Traces | ArrayLike,
    test: Traces | ArrayLike,
    generators: Mapping[str, Generator],
    *,
    classes: Any = None,
    pool: Any = None,
    n_fakes: Iterable[int] = (1, 5, 10),
    beta: float = 0.5,
    repeats: tuple[int, int] = (4, 5),
    rng: np.random.Generator,
    model: AggregateModel | None = None,
    periods: int | Sequence[float] | Periods = 1,
    locations: Locations | None = None,
    between: int = BETWEEN,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LbsResult:
    """
    Privacy against overhead of decoys (fig:locationprivacy): error of the service's attacks on every test user.

    Error is the share of true places that the attack misses: at exposed instants, and at all (E67); of each user the
    mean over all runs, over users the median. Users of `train` and `test` are the same where their labels are equal.

    Parameters
    ----------
    train
        What the adversaries learn from (the paper: the first day), `Traces` or a plain (N, L) array of places.
    test
        The true traces (the paper: the second day); of several rows of a user one is drawn per selection of fakes.
    generators
        Name -> callable(user, n, rng) giving (n, L) places. `user` is the user's number in `train`, after those the
        users who are in `test` alone. See `elsewhere.evaluation.baselines`.
    classes
        Semantic class of each place, for the semantic overhead and the adversary who knows it.
    pool
        The published fakes, for the adversary who holds them (A19): a `Pool`, `Traces`, array or what `generate_fakes`
        returns. Their figures mean something for generators that draw from this pool.
    n_fakes
        Numbers m of fakes sent along.
    beta
        Probability that an instant is exposed, each by itself (E74).
    repeats
        Selections of fakes, and exposures for each of them.
    rng
        Draws rows, fakes, exposures, order; every user has a stream of her own.
    model
        <p_bar, pi_bar> of the adversaries; by default learnt from `train`.
    periods
        Periods of the day of the model; the paper has one.
    locations
        Places of plain arrays.
    between
        How many of the most visited places, besides those just seen, an adversary takes into account while nothing is
        sent; the number of places for all of them.
    executor
        Where the work runs, by user; the result does not depend on it.
    progress
        Called as `progress(users done, users)`.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> from elsewhere.evaluation.baselines import uniform_iid
    >>> days = np.repeat([[0], [1], [2]], 10, axis=1)
    >>> found = ew.evaluate_lbs(days, days, {"uniform": uniform_iid(9, 10)}, n_fakes=[1], rng=np.random.default_rng(1),
    ...                         locations=ew.Locations(n=9))
    >>> found.figure("uniform", 1, "aggregate", "tracking")["median"]
    0.0

    """
    stage = _stage(train, test, generators, classes, pool, n_fakes, beta, repeats, model, periods, locations, between)
    if not isinstance(rng, np.random.Generator):
        raise InvalidParameter(f"`rng` must be a `numpy.random.Generator`, got {type(rng).__name__}.")
    *streams, last = rng.spawn(stage.test.U + 1)
    users = list(enumerate(streams))
    done = map_over(lambda task: _user(stage, *task), users, executor=executor, progress=progress)
    there = [a for i, a in enumerate(ADVERSARIES) if not all(np.isnan(e[:, :, i]).all() for e, _ in done)]
    keep = [ADVERSARIES.index(a) for a in there]
    return LbsResult(
        generators=tuple(stage.generators),
        n_fakes=stage.n_fakes,
        adversaries=tuple(there),
        error=np.stack([e for e, _ in done])[:, :, :, keep],
        overhead=np.stack([o for _, o in done]),
        settings={
            "beta": beta,
            "repeats": list(repeats),
            "periods": stage.model.T,
            "between": between,
            "users": stage.test.U,
            "places": stage.test.R,
            "instants": stage.test.L,
            "pool": 0 if stage.pool is None else len(stage.pool),
        },
        notes=stage.notes,
        resamples=last.integers(stage.test.U, size=(RESAMPLES, stage.test.U)),
    )


@dataclass(frozen=True, eq=False)
class _Stage:
    """The inputs, checked."""

    test: Traces
    number: Ints
    generators: dict[str, Generator]
    n_fakes: tuple[int, ...]
    beta: float
    repeats: tuple[int, int]
    model: AggregateModel
    tau: Places
    profiles: Profiles
    between: int
    label: Ints | None
    worth: Floats | None
    pool: Ints | None
    notes: tuple[str, ...]


def _stage(
    train: Any,
    test: Any,
    generators: Mapping[str, Generator],
    classes: Any,
    pool: Any,
    n_fakes: Iterable[int],
    beta: float,
    repeats: tuple[int, int],
    model: AggregateModel | None,
    periods: Any,
    locations: Locations | None,
    between: int,
) -> _Stage:
    require_between("beta", beta, 0, 1, open_low=True)
    numbers = tuple(dict.fromkeys(require_whole("n_fakes", n, 1) for n in _items("n_fakes", n_fakes)))
    times = tuple(require_whole("repeats", n, 1) for n in _items("repeats", repeats))
    if len(times) != 2 or not numbers:
        raise InvalidParameter("`repeats` must be two whole numbers, and `n_fakes` hold at least one.")
    require_whole("between", between, 1)
    if not isinstance(generators, Mapping) or not generators or not all(map(callable, generators.values())):
        raise InvalidParameter("`generators` must map at least one name to a callable(user, n, rng).")
    if not isinstance(model, AggregateModel | None):
        raise InvalidParameter(f"`model` must be an `AggregateModel`, got {type(model).__name__}.")
    where = locations if locations is not None or model is None else model.locations
    # the map of the fakes need not be the owner's: only the numbers of places are compared
    found = on_map_of(pool, where, train, test)
    published = getattr(found, "r", found)
    given = on_one_map({"train": train, "test": test, "pool": published}, where)
    known, truth = given["train"], given["test"]
    clock = next((t for t in (test, train) if isinstance(t, Traces)), truth)
    parts = Periods.of(periods)
    profiles = fit_profiles(known, periods=parts, missing="skip")
    if model is None:
        model = aggregate(profiles, known.locations)
    elif model.locations != known.locations or model.T != parts.T:
        raise InvalidParameter(
            f"`model` must be of these places and of {parts.T} periods, as `periods` says.", code="E_MISMATCH"
        )
    number, labels = _numbers(known, truth, isinstance(train, Traces) and isinstance(test, Traces))
    made: dict[str, Any] = {n: g.for_users(labels) if hasattr(g, "for_users") else g for n, g in generators.items()}
    label = None if classes is None else _label(classes, known.R)
    return _Stage(
        test=truth,
        number=number,
        generators=made,
        n_fakes=numbers,
        beta=float(beta),
        repeats=(times[0], times[1]),
        model=model,
        tau=parts.of_minute(clock.minutes()),
        profiles=profiles,
        between=between,
        label=label,
        worth=None if label is None else class_hours(known.r, label, (clock.minutes() // 60).astype(np.int64)),
        pool=None if pool is None else given["pool"].r.astype(np.int64),
        notes=tuple(f"{n}: {g.note}" for n, g in made.items() if getattr(g, "note", "")),
    )


def _items(name: str, values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise InvalidParameter(f"`{name}` must be whole numbers in a list, got {values!r}.") from None


def _numbers(train: Traces, test: Traces, by_label: bool) -> tuple[Ints, tuple[Any, ...]]:
    """Number of each test user among the users of `train`, strangers after them; and the labels so numbered."""
    if not by_label:
        # a plain array has no labels: users are the same where their places in line are
        most = max(train.U, test.U)
        return np.arange(test.U), (*train.labels[:most], *test.labels[train.U :])
    place = {label: i for i, label in enumerate(train.labels)}
    strangers = [label for label in test.labels if label not in place]
    place |= {label: train.U + i for i, label in enumerate(strangers)}
    return np.array([place[label] for label in test.labels]), (*train.labels, *strangers)


def _label(classes: Any, R: int) -> Ints:
    label = np.asarray(getattr(classes, "label", classes))
    if label.shape != (R,) or label.dtype.kind not in "iu" or label.min() < -1:
        raise InvalidParameter(
            f"`classes` must label the {R} places, whole numbers, -1 where unknown, got shape {label.shape}.",
            code="E_MISMATCH",
        )
    return label.astype(np.int64)


def _user(stage: _Stage, u: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Error (generators, n_fakes, adversaries, attacks, where) and overhead of one user, means over all runs."""
    selections, exposures = stage.repeats
    rows = np.flatnonzero(stage.test.user == u)
    # every generator faces the same truth and the same exposures
    truths = stage.test.r[rng.choice(rows, selections)].astype(np.int64)
    exposed = rng.random((selections, exposures, stage.test.L)) < stage.beta
    exposed &= truths[:, None, :] >= 0
    fakes = {
        (g, m, a): _fakes(stage, name, int(stage.number[u]), n, rng)
        for g, name in enumerate(stage.generators)
        for m, n in enumerate(stage.n_fakes)
        for a in range(selections)
    }
    chains = _chains(stage, u, np.unique(np.concatenate([truths.ravel(), *(f.ravel() for f in fakes.values())])))
    error = np.full((len(stage.generators), len(stage.n_fakes), len(ADVERSARIES), 2, 2, selections, exposures), np.nan)
    cost = np.full((*error.shape[:2], len(OVERHEADS), selections, exposures), np.nan)
    for (g, m, a), decoys in fakes.items():
        for b in range(exposures):
            log = Sightings.of(truths[a], decoys, exposed[a, b], rng)
            cost[g, m, :, a, b] = [overhead(log, stage.label)[name] for name in OVERHEADS]
            found = named(log, chains, truths[a], rng, pool=stage.pool, worth=stage.worth)
            for name, hit in found.items():
                error[g, m, ADVERSARIES.index(name), :, :, a, b] = _missed(hit, exposed[a, b], truths[a] >= 0)
    return _mean(error), _mean(cost)


def _fakes(stage: _Stage, name: str, user: int, n: int, rng: np.random.Generator) -> Ints:
    made = np.asarray(stage.generators[name](user, n, rng))
    if made.shape != (n, stage.test.L) or made.dtype.kind not in "iu":
        raise InvalidTraces(
            f"generator {name!r} must give {(n, stage.test.L)} whole numbers of places, got shape {made.shape}.",
            code="E_SHAPE",
        )
    if made.min() < -1 or made.max() >= stage.test.R:
        raise InvalidTraces(f"generator {name!r} must give places in 0 .. {stage.test.R - 1}.", code="E_INDEX")
    return made.astype(np.int64)


def _chains(stage: _Stage, u: int, seen: Ints) -> dict[str, Chain]:
    seen = seen[seen >= 0]
    chains = {"aggregate": chain_of(stage.model, stage.tau, seen, between=stage.between)}
    number = int(stage.number[u])
    if number < len(stage.profiles):
        model = aggregate([stage.profiles[number]], stage.model.locations, epsilon=stage.model.epsilon)
        chains["user"] = chain_of(model, stage.tau, seen, between=stage.between)
    return chains


def _missed(hit: tuple[Floats, Floats], exposed: Any, known: Any) -> Floats:
    """(attacks, where) share of true places missed; NaN where nothing is exposed."""
    return np.array([[1 - h[w].mean() if w.any() else np.nan for w in (exposed, known)] for h in hit])


def _mean(runs: Floats) -> Floats:
    """Mean over selections and exposures, NaN left out."""
    flat = runs.reshape(*runs.shape[:-2], -1)
    there = ~np.isnan(flat)
    number = there.sum(axis=-1)
    total = np.where(there, flat, 0.0).sum(axis=-1)
    return np.asarray(np.divide(total, number, out=np.full(number.shape, np.nan), where=number > 0))
