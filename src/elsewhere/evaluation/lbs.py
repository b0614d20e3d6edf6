"""
The location-based-service scenario: a user sends decoys along with her place, the service tries to see through them.

In order: what the service knows before it looks, one query log as it sees it and how far each adversary gets, the
result, the scenario itself, and generators of decoys: four are the paper's, the fifth draws fakes of a pool.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere._version import __version__
from elsewhere.data.slots import Traces
from elsewhere.data.visits import Codes, Floats, Ints, Locations, Mask
from elsewhere.errors import (
    InvalidParameter,
    InvalidTraces,
    NotEnoughUsers,
    require_between,
    require_choice,
    require_rng,
    require_whole,
)
from elsewhere.evaluation._lbs_kernels import TIE, candidates, localize
from elsewhere.evaluation.attack_base import plain
from elsewhere.evaluation.sides import on_one_map
from elsewhere.paper._generate_kernels import Chain, open_stream, viterbi
from elsewhere.paper.aggregate import AggregateModel, aggregate
from elsewhere.paper.profiles import MobilityProfile, Profiles, fit_profiles
from elsewhere.paper.semantic_clustering import labels_of
from elsewhere.scale import map_over

ADVERSARIES = ("aggregate", "user", "pool")
ATTACKS = ("localization", "tracking")
WHERE = ("exposed", "all")
OVERHEADS = ("diversity", "semantic")
BAR = 0.9  # of the ceiling m / (m + 1)
BETWEEN = 64  # most visited places that are hidden candidates while nothing is sent
RESAMPLES = 1000
TABLE_PLACES = 1024  # up to here the whole of p_bar is kept
OURS, USER = "elsewhere", "walk on user"
FEWEST = 2  # users, so that one can be hidden behind the fakes of another

Generator = Callable[[int, int, np.random.Generator], Any]


# -- what the service knows --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class HiddenChain:
    """
    A chain over some places: `place (C,)` sorted, logarithms and laws over them.

    `first (C,)` is ln of the law of the first slot, `p` and `log_p` (C, C) the moves, `between` the positions of hidden
    candidates while nothing is sent.
    """

    place: Ints
    first: Floats
    p: Floats
    log_p: Floats
    between: NDArray[np.uint32]


def popular(law: Floats, most: int = BETWEEN) -> Ints:
    """Return the most likely places of a law, those of probability 0 left out."""
    best = np.argsort(-law, kind="stable")[:most]
    return np.sort(best[law[best] > 0])


def chain_of(model: AggregateModel, places: Ints) -> HiddenChain:
    """
    Return <p_bar, pi_bar> over these `places` and the most visited ones.

    The law of the first slot gets the weight epsilon of a uniform one, as the rows of p_bar get that of their kernel
    (E34): what nobody visited in training is unlikely, not impossible.
    """
    common = popular(np.asarray(model.pi_bar))
    place = np.union1d(places, common)
    first = ((model.pi_bar + model.epsilon / model.R) / (1 + model.epsilon))[place]
    p = model.block(place, place)
    with np.errstate(divide="ignore"):
        return HiddenChain(place, np.log(first), p, np.log(p), np.searchsorted(place, common).astype(np.uint32))


# -- one query log -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sightings:
    """What a service receives: the set `place[start[t] : start[t + 1]]` at slot t, empty if nothing is sent."""

    start: Ints
    place: Ints

    @staticmethod
    def of(truth: Ints, fakes: Ints, exposed: Mask, rng: np.random.Generator) -> "Sightings":
        """
        Shuffle truth and fakes at the exposed slots, each place once: a client does not ask the same twice.

        Examples
        --------
        >>> log = Sightings.of(np.array([3, 3]), np.array([[3, 5]]), np.array([True, False]), np.random.default_rng(1))
        >>> log.start.tolist(), log.place.tolist()
        ([0, 1, 1], [3])

        """
        sent = np.column_stack([*fakes, truth])
        sent = np.take_along_axis(sent, rng.random(sent.shape).argsort(axis=1), axis=1)
        new = (sent >= 0) & exposed[:, None]
        for i in range(1, sent.shape[1]):
            new[:, i] &= (sent[:, :i] != sent[:, i : i + 1]).all(axis=1)
        return Sightings(np.concatenate([[0], np.cumsum(new.sum(axis=1))]), sent[new].astype(np.int64))

    @property
    def seen(self) -> Mask:
        """Tell at which slots anything was sent, (L,)."""
        return np.diff(self.start) > 0

    def without(self, pool: Ints) -> "Sightings":
        """
        Return the sightings less every trace of the pool that lies in all of them (A19).

        A slot at which nothing would remain keeps its set: the truth stands at a fake's place there.
        """
        slot = np.repeat(np.arange(len(self.seen)), np.diff(self.start))
        there = np.zeros((len(self.seen), 1 + max(pool.max(initial=0), self.place.max(initial=0))), dtype=bool)
        there[slot, self.place] = True
        seen, fits = np.flatnonzero(self.seen), np.arange(len(pool))
        for t in seen:
            fits = fits[(pool[fits, t] >= 0) & there[t, pool[fits, t]]]
        rest = there.copy()
        rest[seen, pool[fits][:, seen]] = False
        stay = np.where(rest.any(axis=1, keepdims=True), rest, there)[slot, self.place]
        return Sightings(np.searchsorted(slot[stay], np.arange(len(self.start))), self.place[stay])


def attack(log: Sightings, chain: HiddenChain, truth: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """
    Return the chance that the adversary names the true place at each slot: by localization, and by tracking.

    The hidden place moves by `chain`. At an exposed slot it is one of those seen, all alike; elsewhere it is one of
    `chain.between` or one seen at the nearest exposed slots, and nothing is observed. Localization names the place
    of largest posterior probability (forward- backward), ties shared; tracking that of the most likely sequence
    (Viterbi), ties broken at random.
    """
    L = len(truth)
    # unsigned: the kernels then need not look for indices that count from the end
    position = np.searchsorted(chain.place, log.place).astype(np.uint32)
    start, mark = np.empty(L + 1, dtype=np.int64), np.full(len(chain.place), -1, dtype=np.int64)
    place = np.empty(L * (len(chain.between) + 2 * int(np.diff(log.start).max())), dtype=np.uint32)
    # in any order: the first of equal candidates wins, and a place must not win by its number
    place = place[: candidates(log.start, position, rng.permutation(chain.between), mark, start, place)]
    slot = np.repeat(np.arange(L), np.diff(start))
    posterior = np.empty(len(place))
    total = localize(start, place, chain.first, chain.p, chain.log_p, posterior)
    right = (chain.place[place] == truth[slot]).astype(np.float64)
    if total == -np.inf:  # what he knows explains nothing of what he saw: he guesses among what was seen
        guess = np.add.reduceat(right, start[:-1]) / np.diff(start) * log.seen
        return guess, guess
    best = posterior >= np.maximum.reduceat(posterior, start[:-1])[slot] - TIE
    named = np.add.reduceat(right * best, start[:-1]) / np.add.reduceat(best, start[:-1], dtype=int)
    return named, (chain.place[track(chain, start, place)] == truth).astype(np.float64)


def track(chain: HiddenChain, start: Ints, place: NDArray[np.uint32]) -> Ints:
    """Return the positions of the most likely sequence through sets of places: the paper's decoder without chance."""
    path, pair = np.empty(len(start) - 1, dtype=np.int64), np.zeros(len(start) - 2, dtype=np.int64)
    moves = Chain(chain.first, chain.log_p[None], pair)
    viterbi(moves, start, place, 1.0, open_stream(np.zeros(2, dtype=np.uint64), 0, 0), path)
    return path


def overhead(log: Sightings, label: Ints | None) -> tuple[float, float]:
    """
    Return the mean number of different places and of different classes per exposed slot (`OVERHEADS`, E69).

    The truth is one of them. Codes of unknown class count as one class. NaN where nothing was exposed.
    """
    exposed = int(log.seen.sum())
    if exposed == 0:
        return np.nan, np.nan
    slot = np.repeat(np.arange(len(log.seen)), np.diff(log.start))
    kinds = np.nan if label is None else len(np.unique(slot * (label.max() + 2) + label[log.place] + 1))
    return len(slot) / exposed, kinds / exposed


# -- the result --------------------------------------------------------------------------------------------------------


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
        (users, generators, n_fakes, 2) different places and classes per exposed slot.
    settings
        beta, repeats, periods, sizes.
    resamples
        (1000, users) users drawn for the intervals.

    """

    generators: tuple[str, ...]
    n_fakes: tuple[int, ...]
    adversaries: tuple[str, ...]
    error: Floats = field(repr=False)
    overhead: Floats = field(repr=False)
    settings: dict[str, Any]
    resamples: Any = field(repr=False)

    def __repr__(self) -> str:
        numbers = ", ".join(map(str, self.n_fakes))
        return f"LbsResult({', '.join(self.generators)}; {numbers} fakes; {len(self.error)} users)"

    def figure(
        self, generator: str, n: int, adversary: str = "aggregate", attack: str = "tracking", where: str = "exposed"
    ) -> dict[str, Any]:
        """Return the median over users of the probability of error, its 95 % interval, and the mean."""
        g, m = self.generators.index(generator), self.n_fakes.index(n)
        at = self.adversaries.index(adversary), ATTACKS.index(attack), WHERE.index(where)
        return self._summary(self.error[:, g, m, *at])

    def to_dict(self) -> dict[str, Any]:
        """Return numbers: generator -> number of fakes -> ceiling, overheads, and error by adversary, attack, where."""

        def figures(g: int, m: int) -> dict[str, Any]:
            generator, n = self.generators[g], self.n_fakes[m]
            sent = {name: self._summary(self.overhead[:, g, m, i]) for i, name in enumerate(OVERHEADS)}
            error = {
                adversary: {
                    attack: {where: self.figure(generator, n, adversary, attack, where) for where in WHERE}
                    for attack in ATTACKS
                }
                for adversary in self.adversaries
            }
            return {"ceiling": n / (n + 1), "bar": BAR * n / (n + 1), **sent, "error": error}

        numbers = {str(n): m for m, n in enumerate(self.n_fakes)}
        by_generator = {name: {n: figures(g, m) for n, m in numbers.items()} for g, name in enumerate(self.generators)}
        return dict(plain({"settings": self.settings, "generators": by_generator, "version": __version__}))

    def _summary(self, values: Floats) -> dict[str, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", RuntimeWarning
            )  # users without a value are drawn too, and count for nothing
            low, high = np.nanquantile(np.nanmedian(values[self.resamples], axis=1), [0.025, 0.975]).tolist()
            middle, mean = float(np.nanmedian(values)), float(np.nanmean(values))
        return {"median": middle, "interval": [low, high], "mean": mean, "users": int(np.sum(~np.isnan(values)))}


# -- the scenario ------------------------------------------------------------------------------------------------------


def evaluate_lbs(
    train: Traces | ArrayLike,
    test: Traces | ArrayLike,
    generators: Mapping[str, Generator],
    *,
    classes: Any = None,
    pool: Any = None,
    n_fakes: Sequence[int] = (1, 5, 10),
    beta: float = 0.5,
    repeats: tuple[int, int] = (4, 5),
    locations: Locations | None = None,
    adversaries: Sequence[str] = ADVERSARIES,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    rng: np.random.Generator,
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
        users who are in `test` alone. See `elsewhere.evaluation.lbs`.
    classes
        Semantic class of each place, for the semantic overhead.
    pool
        The published fakes, for the adversary who holds them (A19): a `Pool`, `Traces`, array or what `generate_fakes`
        returns. Their figures mean something for generators that draw from this pool.
    n_fakes
        Numbers m of fakes sent along.
    beta
        Probability that a slot is exposed, each by itself (E74).
    repeats
        Selections of fakes, and exposures for each of them.
    locations
        Places of plain arrays.
    adversaries
        Those to ask, of all that have their inputs.
    executor, progress
        Where the work runs, by user (the result does not depend on it); called as `progress(users done, users)`.
    rng
        Draws rows, fakes, exposures, order; every user has a stream of her own.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> from elsewhere.evaluation.lbs import uniform_iid
    >>> days = np.repeat([[0], [1], [2]], 10, axis=1)
    >>> result = ew.evaluate_lbs(days, days, {"uniform": uniform_iid(9, 10)}, n_fakes=[1], rng=np.random.default_rng(1),
    ...                         locations=ew.Locations(n=9))
    >>> result.figure("uniform", 1, "aggregate", "tracking")["median"]
    0.0

    """
    require_rng(rng)
    require_between("beta", beta, 0, 1, open_low=True)
    for name in adversaries:
        require_choice("adversaries", name, ADVERSARIES)
    if np.ndim(n_fakes) != 1 or len(n_fakes) == 0 or np.shape(repeats) != (2,):
        raise InvalidParameter("`n_fakes` must be a list of whole numbers, and `repeats` two.", parameter="n_fakes")
    numbers = tuple(dict.fromkeys(require_whole("n_fakes", n, 1) for n in n_fakes))
    times = [require_whole("repeats", n, 1) for n in repeats]
    if not isinstance(generators, Mapping) or not generators or not all(map(callable, generators.values())):
        raise InvalidParameter(
            "`generators` must map at least one name to a callable(user, n, rng).", parameter="generators"
        )
    # the map of the fakes need not be the owner's: only the numbers of places are compared
    sides = on_one_map({"train": train, "test": test, "pool": getattr(pool, "r", pool)}, locations)
    people, truth = sides["train"], sides["test"]
    place = {label: i for i, label in enumerate(dict.fromkeys([*people.labels, *truth.labels]))}
    number = np.array([place[label] for label in truth.labels])
    profiles = fit_profiles(people, missing="skip")
    label = None if classes is None else labels_of(classes, people.R)
    held = None if pool is None else sides["pool"].r.astype(np.int64)
    model = aggregate(profiles, people.locations)
    stage = _Stage(truth, number, dict(generators), numbers, beta, times, model, profiles, label, held, adversaries)
    *streams, last = rng.spawn(truth.U + 1)
    results = map_over(partial(_attack_user, stage), list(enumerate(streams)), executor=executor, progress=progress)
    error, cost = (np.stack(each) for each in zip(*results, strict=True))
    there = [i for i in range(len(ADVERSARIES)) if not np.isnan(error[:, :, :, i]).all()]  # who had their inputs
    sizes = {"users": truth.U, "places": truth.R, "slots": truth.L, "pool": 0 if held is None else len(held)}
    return LbsResult(
        tuple(generators),
        numbers,
        tuple(ADVERSARIES[i] for i in there),
        error[:, :, :, there],
        cost,
        {"beta": beta, "repeats": times, **sizes},
        last.integers(truth.U, size=(RESAMPLES, truth.U)),
    )


class _Stage(NamedTuple):
    """The inputs, checked."""

    test: Traces
    number: Ints
    generators: dict[str, Any]
    n_fakes: tuple[int, ...]
    beta: float
    repeats: list[int]
    model: AggregateModel
    profiles: Profiles
    label: Ints | None
    pool: Ints | None
    adversaries: Sequence[str]

    def draw_fakes(self, name: str, user: int, n: int, rng: np.random.Generator) -> Ints:
        """Return what a generator gives, checked."""
        fakes = np.asarray(self.generators[name](user, n, rng))
        if fakes.shape != (n, self.test.L) or fakes.dtype.kind not in "iu":
            raise InvalidTraces(
                f"generator {name!r} must give {(n, self.test.L)} whole numbers of places, got shape {fakes.shape}.",
                code="E_SHAPE",
            )
        if fakes.min() < -1 or fakes.max() >= self.test.R:
            raise InvalidTraces(f"generator {name!r} must give places in 0 .. {self.test.R - 1}.", code="E_INDEX")
        return fakes.astype(np.int64)


def _attack_user(stage: _Stage, task: tuple[int, np.random.Generator]) -> tuple[Floats, Floats]:
    """Return error (generators, n_fakes, adversaries, attacks, where) and overhead of one user, means over all runs."""
    u, rng = task
    selections, exposures = stage.repeats
    rows = np.flatnonzero(stage.test.user == u)
    # every generator faces the same truth and the same exposures
    truths = stage.test.r[rng.choice(rows, selections)].astype(np.int64)
    exposed = rng.random((selections, exposures, stage.test.L)) < stage.beta
    exposed &= truths[:, None, :] >= 0
    fakes = {
        (g, m, a): stage.draw_fakes(name, int(stage.number[u]), n, rng)
        for g, name in enumerate(stage.generators)
        for m, n in enumerate(stage.n_fakes)
        for a in range(selections)
    }
    places = np.unique(np.concatenate([truths.ravel(), *(f.ravel() for f in fakes.values())]))
    places = places[places >= 0]
    anybody, user = chain_of(stage.model, places), None
    if "user" in stage.adversaries and stage.number[u] < len(stage.profiles):
        own = aggregate([stage.profiles[int(stage.number[u])]], stage.model.locations, epsilon=stage.model.epsilon)
        user = chain_of(own, places)
    error = np.full((len(stage.generators), len(stage.n_fakes), len(ADVERSARIES), 2, 2, selections, exposures), np.nan)
    cost = np.full((*error.shape[:2], len(OVERHEADS), selections, exposures), np.nan)
    for (g, m, a), decoys in fakes.items():
        for b in range(exposures):
            log = Sightings.of(truths[a], decoys, exposed[a, b], rng)
            cost[g, m, :, a, b] = overhead(log, stage.label)
            less = log if stage.pool is None else log.without(stage.pool)
            knowing = (log, anybody), (log, user), (less, None if stage.pool is None else anybody)
            for i, (what, chain) in enumerate(knowing):  # in the order of ADVERSARIES
                if chain is None or ADVERSARIES[i] not in stage.adversaries:
                    continue
                # at exposed slots, and at all; NaN where nothing is exposed
                for j, chance in enumerate(attack(what, chain, truths[a], rng)):
                    for k, at in enumerate((exposed[a, b], truths[a] >= 0)):
                        error[g, m, i, j, k, a, b] = 1 - chance[at].mean() if at.any() else np.nan
    return _mean_runs(error), _mean_runs(cost)


def _mean_runs(runs: Floats) -> Floats:
    """Return the mean over selections and exposures, NaN left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where nothing is exposed in any run there is no mean
        return np.asarray(np.nanmean(runs.reshape(*runs.shape[:-2], -1), axis=-1))


# -- generators of decoys ----------------------------------------------------------------------------------------------


def uniform_iid(R: int, L: int) -> Generator:
    """
    Return the generator "uniform IID": every place at every slot alike.

    Examples
    --------
    >>> import numpy as np
    >>> uniform_iid(5, 4)(0, 2, np.random.default_rng(1)).shape
    (2, 4)

    """
    return lambda user, n, rng: rng.integers(R, size=(n, L))


def aggregate_iid(model: AggregateModel, L: int) -> Generator:
    """Return the generator "aggregate mobility IID": every slot drawn from pi_bar."""
    edge = np.cumsum(model.pi_bar)
    return lambda user, n, rng: _draw(edge, rng.random((n, L)))


def walk_on_aggregate(model: AggregateModel, L: int) -> Generator:
    """Return the generator "random walk on aggregate mobility": pi_bar at the first slot (E74), then p_bar."""
    rows = np.cumsum(model.table(), axis=1).__getitem__ if model.R <= TABLE_PLACES else None
    return lambda user, n, rng: _walk(
        np.cumsum(model.pi_bar), rows or (lambda here: np.cumsum(model.rows(here), axis=1)), (n, L), rng
    )


def walk_on_user(profiles: Iterable[MobilityProfile], L: int) -> Generator:
    """
    Return the generator "random walk on the user's own mobility": pi(u) at the first slot, then p(u).

    At a place that the user never left there is nothing to follow: the walk goes on from pi(u).
    """
    people = Profiles.of(profiles)

    def walk(user: int, n: int, rng: np.random.Generator) -> Ints:
        u = people[user]
        p = u.p()
        edge = np.cumsum(np.where(p.any(axis=1, keepdims=True), p, u.pi_r), axis=1)
        return u.support[_walk(np.cumsum(u.pi_r), edge.__getitem__, (n, L), rng)].astype(np.int64)

    return walk


class PoolGenerator:
    """
    Fakes of a pool, none of which descends from the user they protect (E66).

    `maker[f]` is the number of the user that fake f descends from, -1 where that is nobody of these users; None where
    it is unknown, so that some may descend from the user they protect. `weight` is ln of how likely each is to
    be drawn. With `own` all descend from the user, as in the paper's experiment; where a user has too few, some are
    sent twice.

    Examples
    --------
    >>> import numpy as np
    >>> PoolGenerator([[0, 1], [2, 3], [4, 5]], [0, 1, 1])(1, 1, np.random.default_rng(1)).tolist()
    [[0, 1]]

    """

    def __init__(
        self, r: ArrayLike, maker: ArrayLike | None = None, weight: Floats | None = None, *, own: bool = False
    ) -> None:
        self.r, self.own = np.asarray(r), own
        self.maker = np.full(len(self.r), -1) if maker is None else np.asarray(maker)
        self.weight = np.zeros(len(self.r)) if weight is None else weight

    def __call__(self, user: int, n: int, rng: np.random.Generator) -> Codes:
        """Draw `n` different fakes, none of which descends from `user`; with `own`, all."""
        able = np.flatnonzero((self.maker == user) == self.own)
        if len(able) < n and not self.own:
            raise NotEnoughUsers(
                f"{n} fakes are wanted that do not descend from the user they protect, {len(able)} are there; "
                "generate more, or ask for fewer."
            )
        # Gumbel keys: the n largest are a draw without replacement with weights exp(weight)
        order = np.argsort(-(self.weight[able] + rng.gumbel(size=len(able))))
        return self.r[able[np.resize(order, n)]]


def _draw(edge: Floats, u: Floats) -> Ints:
    """Draw places of a law given by its running sums."""
    return np.asarray(np.minimum(np.searchsorted(edge / edge[-1], u, side="right"), len(edge) - 1), dtype=np.int64)


def _walk(first: Floats, edges: Callable[[Ints], Floats], shape: tuple[int, int], rng: np.random.Generator) -> Ints:
    """Return walks that begin by the running sums `first` and go on by those of the row of each place."""
    r = np.empty(shape, dtype=np.int64)
    r[:, 0] = _draw(first, rng.random(shape[0]))
    for t in range(1, shape[1]):
        edge = edges(r[:, t - 1])
        below = (edge <= (rng.random(shape[0]) * edge[:, -1])[:, None]).sum(axis=1)
        r[:, t] = np.minimum(below, edge.shape[1] - 1)
    return r


def two_days(traces: Traces) -> tuple[Traces, Traces]:
    """
    Return the first day of every user who has several (training), and the second (testing), users in the same order.

    Days are ordered by date, without dates as they come.

    Examples
    --------
    >>> from elsewhere.data.visits import Locations
    >>> days = Traces([[0, 1], [2, 2], [3, 3], [1, 1], [0, 0]], Locations(n=4), users=list("aabcc"))
    >>> [t.r.tolist() for t in two_days(days)]
    [[[0, 1], [1, 1]], [[2, 2], [0, 0]]]

    """
    day = np.arange(len(traces)) if traces.dates is None else traces.dates.astype(np.int64)
    order = np.lexsort((day, traces.user))
    user = traces.user[order]
    rank = np.arange(len(order)) - np.searchsorted(user, user)
    several = np.bincount(user, minlength=traces.U) > 1
    if several.sum() < FEWEST:
        raise NotEnoughUsers(
            f"{int(several.sum())} users have two days, {FEWEST} are needed: give the second day as another file "
            "(`test`), or traces of several days.",
            code="E_DAYS",
        )
    first, second = (order[(rank == k) & several[user]] for k in (0, 1))
    return traces.select(first), traces.select(second)


def five_generators(train: Traces, ours: Generator) -> dict[str, Generator]:
    """Return the four generators of the paper learnt from `train`, and `ours`."""
    profiles = fit_profiles(train, missing="skip")
    model = aggregate(profiles, train.locations)
    return {
        "uniform IID": uniform_iid(train.R, train.L),
        "aggregate IID": aggregate_iid(model, train.L),
        "walk on aggregate": walk_on_aggregate(model, train.L),
        USER: walk_on_user(profiles, train.L),
        OURS: ours,
    }


def judge_service(
    train: Traces,
    test: Traces,
    fakes: Codes,
    users_of_fakes: Ints,
    **settings: Any,
) -> LbsResult:
    """
    Run all five generators under all adversaries; users of `test` who are not in `train` are left out.

    `users_of_fakes` is the number in `train` of the user each of the `fakes` (F, L) descends from; `settings` are those
    of `evaluate_lbs`.
    """
    users = [i for i, label in enumerate(test.labels) if label in set(train.labels)]
    if len(users) < FEWEST:
        raise InvalidTraces(
            f"{len(users)} users are in both the training and the testing traces, {FEWEST} are needed.", code="E_DAYS"
        )
    generators = five_generators(train, PoolGenerator(fakes, users_of_fakes))
    return evaluate_lbs(train, test.of_users(np.array(users)), generators, pool=fakes, **settings)
