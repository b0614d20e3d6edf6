"""
The location-based-service scenario: a user sends decoys along with her place, the service tries to see through them.

In order: what the service knows before it looks, one query log as it sees it and how far each adversary gets, the
result, and the scenario itself.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere._version import __version__
from elsewhere.data.slots import Periods, Traces
from elsewhere.data.visits import Codes, Floats, Ints, Locations
from elsewhere.errors import InvalidParameter, InvalidTraces, require_between, require_choice, require_whole
from elsewhere.evaluation.attack_base import plain
from elsewhere.evaluation.lbs._scenario_kernels import candidates, hits, localize, sightings, track, without_pool
from elsewhere.evaluation.publishing.tables import on_one_map
from elsewhere.paper.aggregate import AggregateModel, aggregate
from elsewhere.paper.profiles import Profiles, fit_profiles
from elsewhere.paper.semantic_clustering import labels_of
from elsewhere.scale import map_over

BETWEEN = 64  # most visited places that are hidden candidates while nothing is sent
HOURLY = 10.0  # visits that the whole day is worth beside those of one hour


@dataclass(frozen=True, eq=False)
class HiddenChain:
    """
    A chain over some places: `place (C,)` sorted, logarithms and laws over them.

    `first (C,)` is ln of the law of the first slot, `p` and `log_p` (pairs, C, C) the moves, `pair (L - 1,)` which
    of them leads from one slot to the next, `between` the positions of hidden candidates while nothing is sent.
    """

    place: Ints
    first: Floats
    p: Floats
    log_p: Floats
    pair: Ints
    between: NDArray[np.uint32]


def period_steps(tau: Codes) -> tuple[list[tuple[int, int]], Ints]:
    """Return the different (tau, tau') of consecutive slots, and which of them each step is."""
    steps = list(zip(tau[:-1].tolist(), tau[1:].tolist(), strict=True))
    pairs = sorted(set(steps)) or [(0, 0)]
    number = {pair: i for i, pair in enumerate(pairs)}
    return pairs, np.array([number[step] for step in steps], dtype=np.int64)


def popular(law: Floats, most: int = BETWEEN) -> Ints:
    """Return the most likely places of a law, those of probability 0 left out."""
    best = np.argsort(-law, kind="stable")[:most]
    return np.sort(best[law[best] > 0])


def chain_of(model: AggregateModel, tau: Codes, places: Ints, *, between: int = BETWEEN) -> HiddenChain:
    """
    Return <p_bar, pi_bar> over these `places` and the most visited ones.

    The law of the first slot gets the weight epsilon of a uniform one, as the rows of p_bar get that of their kernel
    (E34): what nobody visited in training is unlikely, not impossible.
    """
    common = popular(np.asarray(model.pi_bar), between)
    place = np.union1d(places, common)
    pairs, pair = period_steps(tau)
    start = model.first(int(tau[0])) if model.T > 1 else model.pi_bar
    first = ((start + model.epsilon / model.R) / (1 + model.epsilon))[place]
    p = np.stack([model.block(place, place, *step) for step in pairs])
    with np.errstate(divide="ignore"):
        return HiddenChain(place, np.log(first), p, np.log(p), pair, np.searchsorted(place, common).astype(np.uint32))


def class_hours(r: Codes, label: Ints, hour: Ints) -> Floats:
    """
    Return (L, R) the ln of how much more, or less, people are at the class of each place at this hour than in general.

    The share of an hour is drawn towards that of the whole day by `HOURLY` visits. Codes of unknown class are worth
    what they are.
    """
    kinds = int(label.max(initial=-1)) + 1
    known = (r >= 0) & (label[r] >= 0)
    if kinds == 0 or not known.any():
        return np.zeros((len(hour), len(label)))
    when = np.broadcast_to(hour, r.shape)[known]
    visits = np.zeros((int(hour.max()) + 1, kinds))
    np.add.at(visits, (when, label[r[known]]), 1.0)
    # half a visit each, so that a class nobody trained on is no impossibility
    share = (visits.sum(axis=0) + 0.5) / (visits.sum() + kinds / 2)
    lift = (visits + HOURLY * share) / (visits.sum(axis=1, keepdims=True) + HOURLY) / share
    return np.where(label >= 0, np.log(lift)[hour][:, label], 0.0)


NOTHING = np.empty(0, dtype=np.uint32)

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sightings:
    """What a service receives: the set `place[start[t] : start[t + 1]]` at slot t, empty if nothing is sent."""

    start: Ints
    place: Ints

    @staticmethod
    def of(truth: Ints, fakes: Ints, exposed: Flags, rng: np.random.Generator) -> "Sightings":
        """
        Shuffle truth and fakes at the exposed slots, each place once: a client does not ask the same twice.

        Examples
        --------
        >>> log = Sightings.of(np.array([3, 3]), np.array([[3, 5]]), np.array([True, False]), np.random.default_rng(1))
        >>> log.start.tolist(), log.place.tolist()
        ([0, 1, 1], [3])

        """
        n, L = fakes.shape
        start, place = np.empty(L + 1, dtype=np.int64), np.empty(L * (n + 1), dtype=np.int64)
        size = sightings(truth, fakes, exposed, rng.random((L, n + 1)).argsort(axis=1), start, place)
        return Sightings(start, place[:size])

    @property
    def seen(self) -> Flags:
        """Tell at which slots anything was sent, (L,)."""
        return np.diff(self.start) > 0

    def without(self, pool: Ints) -> "Sightings":
        """Return the sightings less every trace of the pool that lies in all of them (A19)."""
        start, place = np.empty_like(self.start), np.empty_like(self.place)
        without_pool(pool, self.start, self.place, start, place)
        return Sightings(start, place[: start[-1]])


def attack(
    log: Sightings, chain: HiddenChain, truth: Ints, rng: np.random.Generator, worth: Floats | None = None
) -> tuple[Floats, Floats]:
    """
    Return the chance that the adversary names the true place at each slot: by localization, and by tracking.

    The hidden place moves by `chain`. At an exposed slot it is one of those seen, all alike or by `worth (L, R)`,
    ln of what a place is worth at that slot; elsewhere it is one of `chain.between` or one seen at the nearest
    exposed slots, and nothing is observed. Localization names the place of largest posterior probability (forward-
    backward), ties shared; tracking that of the most likely sequence (Viterbi), ties broken at random.
    """
    L = len(truth)
    # unsigned: the kernels then need not look for indices that count from the end
    position = np.searchsorted(chain.place, log.place).astype(np.uint32)
    mark = np.full(len(chain.place), -1, dtype=np.int64)
    start = np.empty(L + 1, dtype=np.int64)
    # in any order: the first of equal candidates wins, and a place must not win by its number
    between = rng.permutation(chain.between)
    size = candidates(log.start, position, between, mark, start, NOTHING)
    place = np.empty(size, dtype=np.uint32)
    candidates(log.start, position, between, mark, start, place)
    weight = np.zeros(size)
    seen = log.seen
    if worth is not None:
        slot = np.repeat(np.arange(L), np.diff(start))
        weight = np.where(seen[slot], worth[slot, chain.place[place]], 0.0)
    posterior, path = np.empty(size), np.empty(L, dtype=np.int64)
    total = localize(start, place, weight, chain.first, chain.p, chain.log_p, chain.pair, posterior)
    track(start, place, weight, chain.first, chain.log_p, chain.pair, path)
    by_localization, by_tracking = np.empty(L), np.empty(L)
    hits(start, chain.place[place], posterior, path, total > -np.inf, truth, seen, by_localization, by_tracking)
    return by_localization, by_tracking


def overhead(log: Sightings, label: Ints | None) -> dict[str, float]:
    """
    Return the mean number of different places (diversity) and of different classes (semantic) per exposed slot (E69).

    The truth is one of them. Codes of unknown class count as one class. Beside it `guess`, the chance of error of
    whoever picks one of the places at random. NaN where nothing was exposed.
    """
    number_sent = np.diff(log.start)
    number_sent = number_sent[number_sent > 0]
    if len(number_sent) == 0:
        return dict.fromkeys(("diversity", "semantic", "guess"), np.nan)
    means = {"diversity": float(number_sent.mean()), "semantic": np.nan, "guess": float((1 - 1 / number_sent).mean())}
    if label is not None:
        slot = np.repeat(np.arange(len(log.start) - 1), np.diff(log.start))
        kind = label[log.place] + 1
        means["semantic"] = len(np.unique(slot * (label.max() + 2) + kind)) / len(number_sent)
    return means


def attack_all(
    log: Sightings,
    chains: Mapping[str, HiddenChain],
    truth: Ints,
    rng: np.random.Generator,
    *,
    pool: Ints | None,
    worth: Floats | None,
    adversaries: Collection[str],
) -> dict[str, tuple[Floats, Floats]]:
    """Return what every one of the `adversaries` that has its inputs finds, by name."""
    chances = {}
    if "aggregate" in adversaries:
        chances["aggregate"] = attack(log, chains["aggregate"], truth, rng)
    if "user" in adversaries and "user" in chains:
        chances["user"] = attack(log, chains["user"], truth, rng)
    if "classes" in adversaries and worth is not None:
        chances["classes"] = attack(log, chains["aggregate"], truth, rng, worth)
    if "pool" in adversaries and pool is not None:
        chances["pool"] = attack(log.without(pool), chains["aggregate"], truth, rng)
    return chances


ADVERSARIES = ("aggregate", "user", "classes", "pool")
ATTACKS = ("localization", "tracking")
WHERE = ("exposed", "all")
OVERHEADS = ("diversity", "semantic", "guess")
RESAMPLES = 1000
BAR = 0.9  # of the ceiling m / (m + 1)


@dataclass(frozen=True, eq=False)
class LbsResult:
    """
    Errors and overheads, one value per user: the mean over all selections of fakes and exposures.

    Parameters
    ----------
    generators, n_fakes, adversaries
        Names along the axes of `error`.
    error
        (users, generators, n_fakes, adversaries, attacks, where) probability of error; attacks are localization and
        tracking, where is at exposed slots and at all.
    overhead
        (users, generators, n_fakes, 3) different places and classes per exposed slot, and the error of a guess.
    settings
        beta, repeats, periods, sizes.
    notes
        What a reader should know about the inputs.
    resamples
        (1000, users) users drawn for the intervals.

    """

    generators: tuple[str, ...]
    n_fakes: tuple[int, ...]
    adversaries: tuple[str, ...]
    error: Floats = field(repr=False)
    overhead: Floats = field(repr=False)
    settings: dict[str, Any]
    notes: tuple[str, ...]
    resamples: Any = field(repr=False)

    def __repr__(self) -> str:
        numbers = ", ".join(map(str, self.n_fakes))
        return f"LbsResult({', '.join(self.generators)}; {numbers} fakes; {len(self.error)} users)"

    def figure(
        self, generator: str, n: int, adversary: str = "aggregate", attack: str = "tracking", where: str = "exposed"
    ) -> dict[str, Any]:
        """Return the median over users of the probability of error, its 95 % interval, and the mean."""
        g, m, a = (
            x.index(y) for x, y in ((self.generators, generator), (self.n_fakes, n), (self.adversaries, adversary))
        )
        return self._summary(self.error[:, g, m, a, ATTACKS.index(attack), WHERE.index(where)])

    def to_dict(self) -> dict[str, Any]:
        """Return numbers: generator -> number of fakes -> ceiling, overheads, and error by adversary, attack, where."""
        by_generator: dict[str, Any] = {}
        for generator in self.generators:
            by_generator[generator] = {}
            for n in self.n_fakes:
                g, m = self.generators.index(generator), self.n_fakes.index(n)
                errors = {
                    adversary: {
                        attack: {where: self.figure(generator, n, adversary, attack, where) for where in WHERE}
                        for attack in ATTACKS
                    }
                    for adversary in self.adversaries
                }
                by_generator[generator][str(n)] = {
                    "ceiling": n / (n + 1),
                    "bar": BAR * n / (n + 1),
                    **{name: self._summary(self.overhead[:, g, m, i]) for i, name in enumerate(OVERHEADS)},
                    "error": errors,
                }
        whole: dict[str, Any] = plain({"settings": self.settings, "generators": by_generator, "notes": self.notes})
        return {**whole, "version": __version__}

    def table(self) -> list[dict[str, Any]]:
        """Return one row per generator, number of fakes, adversary and attack: error, interval, overheads, ceiling."""
        rows = []
        for g, generator in enumerate(self.generators):
            for m, n in enumerate(self.n_fakes):
                costs = {name: self._summary(self.overhead[:, g, m, i])["median"] for i, name in enumerate(OVERHEADS)}
                for adversary in self.adversaries:
                    for attack in ATTACKS:
                        main, whole = (self.figure(generator, n, adversary, attack, where) for where in WHERE)
                        low, high = main["interval"]
                        rows.append(
                            {
                                "generator": generator,
                                "fakes": n,
                                "adversary": adversary,
                                "attack": attack,
                                "error": main["median"],
                                "low": low,
                                "high": high,
                                "error_all": whole["median"],
                                "ceiling": n / (n + 1),
                                **costs,
                            }
                        )
        table: list[dict[str, Any]] = plain(rows)
        return table

    def _summary(self, values: Floats) -> dict[str, Any]:
        there = ~np.isnan(values)
        if not there.any():
            return {"median": np.nan, "interval": [np.nan, np.nan], "mean": np.nan, "users": 0}
        # users without a value are drawn too, and count for nothing
        samples = values[self.resamples]
        usable = samples[~np.isnan(samples).all(axis=1)]
        low, high = np.quantile(np.nanmedian(usable, axis=1), [0.025, 0.975])
        return {
            "median": float(np.nanmedian(values)),
            "interval": [float(low), float(high)],
            "mean": float(np.nanmean(values)),
            "users": int(there.sum()),
        }


Generator = Callable[[int, int, np.random.Generator], ArrayLike]


class LbsOptions(TypedDict, total=False):
    """Further keywords of `evaluate_lbs`."""

    periods: int | Sequence[float] | Periods
    locations: Locations | None
    between: int
    adversaries: Sequence[str]


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
    model: AggregateModel | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    rng: np.random.Generator,
    **options: Unpack[LbsOptions],
) -> LbsResult:
    """
    Attack users behind decoys: the service's error on every test user, against the overhead (fig:locationprivacy).

    Error is the share of true places that the attack misses: at exposed slots, and at all (E67); of each user the
    mean over all runs, over users the median. Users of `train` and `test` are the same where their labels are equal.

    Parameters
    ----------
    train
        What the adversaries learn from (the paper: the first day), `Traces` or a plain (N, L) array of places.
    test
        The true traces (the paper: the second day); of several rows of a user one is drawn per selection of fakes.
    generators
        Name -> callable(user, n, rng) giving (n, L) places. `user` is the user's number in `train`, after those the
        users who are in `test` alone. See `elsewhere.evaluation.lbs.generators`.
    classes
        Semantic class of each place, for the semantic overhead and the adversary who knows it.
    pool
        The published fakes, for the adversary who holds them (A19): a `Pool`, `Traces`, array or what `generate_fakes`
        returns. Their figures mean something for generators that draw from this pool.
    n_fakes
        Numbers m of fakes sent along.
    beta
        Probability that a slot is exposed, each by itself (E74).
    repeats
        Selections of fakes, and exposures for each of them.
    model
        <p_bar, pi_bar> of the adversaries; by default learnt from `train`.
    executor
        Where the work runs, by user; the result does not depend on it.
    progress
        Called as `progress(users done, users)`.
    rng
        Draws rows, fakes, exposures, order; every user has a stream of her own.
    **options
        `periods`: of the day, of the model; the paper has one. `locations`: places of plain arrays. `between`: how many
        of the most visited places, besides those just seen, an adversary takes into account while nothing is sent; the
        number of places for all of them. `adversaries`: those to ask, by default all that have their inputs.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> from elsewhere.evaluation.lbs.generators import uniform_iid
    >>> days = np.repeat([[0], [1], [2]], 10, axis=1)
    >>> result = ew.evaluate_lbs(days, days, {"uniform": uniform_iid(9, 10)}, n_fakes=[1], rng=np.random.default_rng(1),
    ...                         locations=ew.Locations(n=9))
    >>> result.figure("uniform", 1, "aggregate", "tracking")["median"]
    0.0

    """
    periods, locations = options.pop("periods", 1), options.pop("locations", None)
    between = options.pop("between", BETWEEN)
    adversaries = tuple(options.pop("adversaries", ADVERSARIES))
    for name in adversaries:
        require_choice("adversaries", name, ADVERSARIES)
    if options:
        names = ", ".join(LbsOptions.__annotations__)
        raise InvalidParameter(f"`{next(iter(options))}` is no option of `evaluate_lbs`; these are: {names}.")
    stage = _check_inputs(
        train, test, generators, classes, pool, n_fakes, beta, repeats, model, periods, locations, between
    )
    stage = replace(stage, adversaries=adversaries)
    if not isinstance(rng, np.random.Generator):
        raise InvalidParameter(f"`rng` must be a `numpy.random.Generator`, got {type(rng).__name__}.", parameter="rng")
    *streams, last = rng.spawn(stage.test.U + 1)
    users = list(enumerate(streams))
    results = map_over(partial(_attack_user, stage), users, executor=executor, progress=progress)
    there = [a for i, a in enumerate(ADVERSARIES) if not all(np.isnan(e[:, :, i]).all() for e, _ in results)]
    keep = [ADVERSARIES.index(a) for a in there]
    return LbsResult(
        generators=tuple(stage.generators),
        n_fakes=stage.n_fakes,
        adversaries=tuple(there),
        error=np.stack([e for e, _ in results])[:, :, :, keep],
        overhead=np.stack([o for _, o in results]),
        settings={
            "beta": beta,
            "repeats": list(repeats),
            "periods": stage.model.T,
            "between": between,
            "users": stage.test.U,
            "places": stage.test.R,
            "slots": stage.test.L,
            "pool": 0 if stage.pool is None else len(stage.pool),
        },
        notes=stage.notes,
        resamples=last.integers(stage.test.U, size=(RESAMPLES, stage.test.U)),
    )


@dataclass(frozen=True, eq=False, repr=False)
class _Stage:
    """The inputs, checked."""

    test: Traces
    number: Ints
    generators: dict[str, Generator]
    n_fakes: tuple[int, ...]
    beta: float
    repeats: tuple[int, int]
    model: AggregateModel
    tau: Codes
    profiles: Profiles
    between: int
    label: Ints | None
    worth: Floats | None
    pool: Ints | None
    notes: tuple[str, ...]
    adversaries: tuple[str, ...] = ADVERSARIES

    def __repr__(self) -> str:
        # an executor may log its work: sizes only
        return f"_Stage({self.test.U} people, {len(self.generators)} generators)"


def _check_inputs(
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
    numbers = tuple(dict.fromkeys(require_whole("n_fakes", n, 1) for n in _as_list("n_fakes", n_fakes)))
    times = tuple(require_whole("repeats", n, 1) for n in _as_list("repeats", repeats))
    if len(times) != 2 or not numbers:
        raise InvalidParameter(
            "`repeats` must be two whole numbers, and `n_fakes` hold at least one.", parameter="repeats"
        )
    require_whole("between", between, 1)
    if not isinstance(generators, Mapping) or not generators or not all(map(callable, generators.values())):
        raise InvalidParameter(
            "`generators` must map at least one name to a callable(user, n, rng).", parameter="generators"
        )
    if not isinstance(model, AggregateModel | None):
        raise InvalidParameter(f"`model` must be an `AggregateModel`, got {type(model).__name__}.", parameter="model")
    where = locations if locations is not None or model is None else model.locations
    # the map of the fakes need not be the owner's: only the numbers of places are compared
    pool_rows = getattr(pool, "r", pool)
    sides = on_one_map({"train": train, "test": test, "pool": pool_rows}, where)
    people, truth = sides["train"], sides["test"]
    clock = next((t for t in (test, train) if isinstance(t, Traces)), truth)
    parts = Periods.of(periods)
    profiles = fit_profiles(people, periods=parts, missing="skip")
    if model is None:
        model = aggregate(profiles, people.locations)
    elif model.locations != people.locations or model.T != parts.T:
        raise InvalidParameter(
            f"`model` must be of these places and of {parts.T} periods, as `periods` says.",
            code="E_MISMATCH",
            parameter="model",
        )
    number, labels = _number_users(people, truth, isinstance(train, Traces) and isinstance(test, Traces))
    by_name: dict[str, Any] = {n: g.for_users(labels) if hasattr(g, "for_users") else g for n, g in generators.items()}
    label = None if classes is None else labels_of(classes, people.R)
    return _Stage(
        test=truth,
        number=number,
        generators=by_name,
        n_fakes=numbers,
        beta=float(beta),
        repeats=(times[0], times[1]),
        model=model,
        tau=parts.of_minute(clock.minutes()),
        profiles=profiles,
        between=between,
        label=label,
        worth=None if label is None else class_hours(people.r, label, (clock.minutes() // 60).astype(np.int64)),
        pool=None if pool is None else sides["pool"].r.astype(np.int64),
        notes=tuple(f"{n}: {g.note}" for n, g in by_name.items() if getattr(g, "note", "")),
    )


def _as_list(name: str, values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise InvalidParameter(f"`{name}` must be whole numbers in a list, got {values!r}.", parameter=name) from None


def _number_users(train: Traces, test: Traces, by_label: bool) -> tuple[Ints, tuple[Any, ...]]:
    """
    Return the number of each test user among the users of `train`, strangers after them; and the labels so
    numbered.
    """
    if not by_label:
        # a plain array has no labels: users are the same where their places in line are
        most = max(train.U, test.U)
        return np.arange(test.U), (*train.labels[:most], *test.labels[train.U :])
    place = {label: i for i, label in enumerate(train.labels)}
    strangers = [label for label in test.labels if label not in place]
    place |= {label: train.U + i for i, label in enumerate(strangers)}
    return np.array([place[label] for label in test.labels]), (*train.labels, *strangers)


def _attack_user(stage: _Stage, task: tuple[int, np.random.Generator]) -> tuple[Floats, Floats]:
    """
    Return the error (generators, n_fakes, adversaries, attacks, where) and overhead of one user, means over all
    runs.
    """
    u, rng = task
    selections, exposures = stage.repeats
    rows = np.flatnonzero(stage.test.user == u)
    # every generator faces the same truth and the same exposures
    truths = stage.test.r[rng.choice(rows, selections)].astype(np.int64)
    exposed = rng.random((selections, exposures, stage.test.L)) < stage.beta
    exposed &= truths[:, None, :] >= 0
    fakes = {
        (g, m, a): _draw_fakes(stage, name, int(stage.number[u]), n, rng)
        for g, name in enumerate(stage.generators)
        for m, n in enumerate(stage.n_fakes)
        for a in range(selections)
    }
    places = np.unique(np.concatenate([truths.ravel(), *(f.ravel() for f in fakes.values())]))
    places = places[places >= 0]
    chains = {"aggregate": chain_of(stage.model, stage.tau, places, between=stage.between)}
    if "user" in stage.adversaries and stage.number[u] < len(stage.profiles):
        profile = stage.profiles[int(stage.number[u])]
        model = aggregate([profile], stage.model.locations, epsilon=stage.model.epsilon)
        chains["user"] = chain_of(model, stage.tau, places, between=stage.between)
    error = np.full((len(stage.generators), len(stage.n_fakes), len(ADVERSARIES), 2, 2, selections, exposures), np.nan)
    cost = np.full((*error.shape[:2], len(OVERHEADS), selections, exposures), np.nan)
    for (g, m, a), decoys in fakes.items():
        for b in range(exposures):
            log = Sightings.of(truths[a], decoys, exposed[a, b], rng)
            cost[g, m, :, a, b] = [overhead(log, stage.label)[name] for name in OVERHEADS]
            chances = attack_all(
                log, chains, truths[a], rng, pool=stage.pool, worth=stage.worth, adversaries=stage.adversaries
            )
            for name, by_attack in chances.items():
                # at exposed slots, and at all; NaN where nothing is exposed
                missed = [[1 - chance[at].mean() if at.any() else np.nan for at in (exposed[a, b], truths[a] >= 0)]
                          for chance in by_attack]  # fmt: skip
                error[g, m, ADVERSARIES.index(name), :, :, a, b] = missed
    return _mean_runs(error), _mean_runs(cost)


def _draw_fakes(stage: _Stage, name: str, user: int, n: int, rng: np.random.Generator) -> Ints:
    fakes = np.asarray(stage.generators[name](user, n, rng))
    if fakes.shape != (n, stage.test.L) or fakes.dtype.kind not in "iu":
        raise InvalidTraces(
            f"generator {name!r} must give {(n, stage.test.L)} whole numbers of places, got shape {fakes.shape}.",
            code="E_SHAPE",
        )
    if fakes.min() < -1 or fakes.max() >= stage.test.R:
        raise InvalidTraces(f"generator {name!r} must give places in 0 .. {stage.test.R - 1}.", code="E_INDEX")
    return fakes.astype(np.int64)


def _mean_runs(runs: Floats) -> Floats:
    """Return the mean over selections and exposures, NaN left out."""
    flat = runs.reshape(*runs.shape[:-2], -1)
    there = ~np.isnan(flat)
    number = there.sum(axis=-1)
    total = np.where(there, flat, 0.0).sum(axis=-1)
    return np.asarray(np.divide(total, number, out=np.full(number.shape, np.nan), where=number > 0))
