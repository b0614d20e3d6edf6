"""
Generators of decoys for the location-based-service scenario, and the scenario as the paper runs it on them.

Four generators are the paper's, the fifth draws fakes of a pool; the first day is known, the second is attacked.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.data.slots import Traces
from elsewhere.data.visits import Codes, Floats, Ints
from elsewhere.errors import (
    InvalidParameter,
    InvalidTraces,
    NotEnoughUsers,
    require_between,
    require_choice,
    require_whole,
)
from elsewhere.evaluation.lbs.scenario import LbsResult, evaluate_lbs
from elsewhere.paper.aggregate import AggregateModel, aggregate
from elsewhere.paper.profiles import MobilityProfile, Profiles, fit_profiles
from elsewhere.run.publish import Fakes, finite

Generator = Callable[[int, int, np.random.Generator], Any]
TABLE_PLACES = 1024  # up to here the whole of p_bar is kept


def uniform_iid(R: int, L: int) -> Generator:
    """
    Return the generator "uniform IID": every place at every slot alike.

    Examples
    --------
    >>> import numpy as np
    >>> uniform_iid(5, 4)(0, 2, np.random.default_rng(1)).shape
    (2, 4)

    """
    require_whole("R", R, 1)
    require_whole("L", L, 1)
    return lambda user, n, rng: rng.integers(R, size=(n, L))


def aggregate_iid(model: AggregateModel, L: int) -> Generator:
    """Return the generator "aggregate mobility IID": every slot drawn from pi_bar."""
    edge = np.cumsum(model.pi_bar)
    require_whole("L", L, 1)
    return lambda user, n, rng: _draw(edge, rng.random((n, L)))


def walk_on_aggregate(model: AggregateModel, L: int, *, tau: ArrayLike | None = None) -> Generator:
    """
    Return the generator "random walk on aggregate mobility": pi_bar at the first slot (E74), then p_bar.

    `tau (L,)` gives the period of each slot where the model has several.
    """
    require_whole("L", L, 1)
    when = np.zeros(L, dtype=np.int64) if tau is None else np.asarray(tau, dtype=np.int64)
    if when.shape != (L,) or (tau is None and model.T > 1):
        raise InvalidParameter(
            f"`tau` must give the period of each of the {L} slots, got shape {when.shape}.", parameter="tau"
        )
    first = np.cumsum(model.first(int(when[0])) if model.T > 1 else model.pi_bar)
    tables: dict[tuple[int, int], Floats] = {}

    def edges(here: Ints, t: int) -> Floats:
        step = (int(when[t - 1]), int(when[t]))
        if model.R > TABLE_PLACES:
            return np.cumsum(model.rows(here, *step), axis=1)
        if step not in tables:
            tables[step] = np.cumsum(model.table(*step), axis=1)
        return tables[step][here]

    def walk(user: int, n: int, rng: np.random.Generator) -> Ints:
        r = np.empty((n, L), dtype=np.int64)
        r[:, 0] = _draw(first, rng.random(n))
        for t in range(1, L):
            r[:, t] = _next(edges(r[:, t - 1], t), rng.random(n))
        return r

    return walk


def walk_on_user(profiles: Iterable[MobilityProfile], L: int) -> Generator:
    """
    Return the generator "random walk on the user's own mobility": pi(u) at the first slot, then p(u), pooled over
    periods.

    At a place that the user never left there is nothing to follow: the walk goes on from pi(u).
    """
    people = Profiles.of(profiles)
    require_whole("L", L, 1)

    def walk(user: int, n: int, rng: np.random.Generator) -> Ints:
        u = people[user]
        first = np.cumsum(u.pi_r)
        p = np.zeros((u.K, u.K))
        np.add.at(p, (u.origin, u.target), u.count)
        leaving = p.sum(axis=1, keepdims=True)
        edge = np.cumsum(np.where(leaving > 0, p / np.where(leaving > 0, leaving, 1), u.pi_r), axis=1)
        k = np.empty((n, L), dtype=np.int64)
        k[:, 0] = _draw(first, rng.random(n))
        for t in range(1, L):
            k[:, t] = _next(edge[k[:, t - 1]], rng.random(n))
        return u.support[k].astype(np.int64)

    return walk


@dataclass(frozen=True, eq=False)
class PoolGenerator:
    """
    Fakes of a pool, none of which descends from the user they protect (E66); made by `from_pool`.

    With `own` they all do, as in the paper's experiment; where a user has too few, some are sent twice. `maker[f]` is
    the number of the user that fake f descends from, -1 where that is nobody of these users. `labels` names the users
    that `maker` counts, or is None where the numbers are the caller's own.
    """

    r: Codes = field(repr=False)
    maker: Ints | None = field(repr=False)
    labels: tuple[Any, ...] | None = field(repr=False)
    weight: Floats = field(repr=False)
    own: bool = False

    @property
    def note(self) -> str:
        """Return what a reader of the result should know."""
        if self.maker is None:
            return "the descent of the fakes is unknown: some may descend from the user they protect (E66)."
        return ""

    def for_users(self, labels: Sequence[Any]) -> "PoolGenerator":
        """Return the same generator for users numbered as in `labels`."""
        if self.maker is None or self.labels is None:
            return self
        number = {label: i for i, label in enumerate(labels)}
        new = np.array([*(number.get(label, -1) for label in self.labels), -1])
        return replace(self, maker=new[self.maker], labels=tuple(labels))

    def __call__(self, user: int, n: int, rng: np.random.Generator) -> Codes:
        """Draw `n` different fakes, none of which descends from `user`; with `own`, all."""
        if self.own and self.maker is not None:
            mine = np.flatnonzero(self.maker == user)
            order = np.argsort(-(self.weight[mine] + rng.gumbel(size=len(mine))))
            return self.r[mine[np.resize(order, n)]]
        strangers = np.arange(len(self.r)) if self.maker is None else np.flatnonzero(self.maker != user)
        if len(strangers) < n:
            raise NotEnoughUsers(
                f"{n} fakes are wanted that do not descend from the user they protect, {len(strangers)} are there; "
                "generate more, or ask for fewer."
            )
        # Gumbel keys: the n largest are a draw without replacement with weights exp(weight)
        key = self.weight[strangers] + rng.gumbel(size=len(strangers))
        return self.r[strangers[np.argsort(-key)[:n]]]


def from_pool(
    pool: Any, users_of_fakes: ArrayLike | None = None, *, choose: str = "uniform", temp: float = 1.0
) -> PoolGenerator:
    """
    Make a generator of existing fakes, never one that descends from the user it protects (E66).

    Parameters
    ----------
    pool
        What `generate_fakes` returns, `Traces`, or an (F, L) array of places; of a `Pool`, `pool.to_map(locations)`, on
        the map that the others use.
    users_of_fakes
        (F,) number of the user each fake descends from, -1 for nobody. What `generate_fakes` returns knows it by
        itself; a public pool does not, and its user cannot either.
    choose
        "uniform", or "likelihood" as in the paper, with weights exp(loglik / L / temp) (E62); needs the likelihoods of
        what `generate_fakes` returns.
    temp
        Temperature of that choice.

    Examples
    --------
    >>> import numpy as np
    >>> ours = from_pool([[0, 1], [2, 3], [4, 5]], [0, 1, 1])
    >>> ours(1, 1, np.random.default_rng(1)).tolist()
    [[0, 1]]

    """
    require_choice("choose", choose, ("uniform", "likelihood"))
    require_between("temp", temp, 0, np.inf, open_low=True)
    labels: tuple[Any, ...] | None = None
    maker: Ints | None = None
    if isinstance(pool, Fakes):
        r = pool.r
        maker, labels = (None, None) if pool.covered else (pool.seed_of_life[pool.life], pool.users)
    else:
        r = pool.r if isinstance(pool, Traces) else np.asarray(pool)
    if r.ndim != 2 or r.dtype.kind not in "iu" or r.size == 0:
        raise InvalidParameter(
            f"`pool` must hold (F, L) whole numbers of places, got shape {r.shape}.", code="E_SHAPE", parameter="pool"
        )
    if users_of_fakes is not None:
        maker, labels = np.asarray(users_of_fakes), None
        if maker.shape != (len(r),) or maker.dtype.kind not in "iu" or maker.min() < -1:
            raise InvalidParameter(
                f"`users_of_fakes` must hold {len(r)} whole numbers, -1 for nobody, got shape {maker.shape}.",
                code="E_SHAPE",
                parameter="users_of_fakes",
            )
    weight = np.zeros(len(r))
    if choose == "likelihood":
        if not isinstance(pool, Fakes) or pool.loglik is None:
            raise InvalidParameter(
                '`choose` = "likelihood" needs what `generate_fakes` returns: a pool has none.', parameter="choose"
            )
        weight = finite(pool.loglik) / temp
    return PoolGenerator(r, maker, labels, weight)


def _draw(edge: Floats, u: Floats) -> Ints:
    """Draw places of a law given by its running sums."""
    return np.asarray(np.minimum(np.searchsorted(edge / edge[-1], u, side="right"), len(edge) - 1), dtype=np.int64)


def _next(edges: Floats, u: Floats) -> Ints:
    """Draw one place per row of running sums."""
    below = (edges <= (u * edges[:, -1])[:, None]).sum(axis=1)
    return np.asarray(np.minimum(below, edges.shape[1] - 1), dtype=np.int64)


OURS, USER = "elsewhere", "walk on user"
FEWEST = 2  # users, so that one can be hidden behind the fakes of another


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


def five_generators(
    train: Traces, fakes: Any, users_of_fakes: Ints | None = None, *, choose: str = "uniform"
) -> dict[str, Generator]:
    """
    Return the four generators of the paper learnt from `train`, and fakes that never descend from whom they
    hide (E66).
    """
    profiles = fit_profiles(train, missing="skip")
    model = aggregate(profiles, train.locations)
    return {
        "uniform IID": uniform_iid(train.R, train.L),
        "aggregate IID": aggregate_iid(model, train.L),
        "walk on aggregate": walk_on_aggregate(model, train.L),
        USER: walk_on_user(profiles, train.L),
        OURS: from_pool(fakes, users_of_fakes, choose=choose),
    }


def judge_service(
    train: Traces,
    test: Traces,
    fakes: Any,
    users_of_fakes: Ints | None = None,
    *,
    classes: Any = None,
    n_fakes: tuple[int, ...] = (1, 5, 10),
    beta: float = 0.5,
    repeats: tuple[int, int] = (4, 5),
    choose: str = "uniform",
    progress: Callable[[int, int], None] | None = None,
    rng: np.random.Generator,
) -> LbsResult:
    """
    Run all five generators under all adversaries; users of `test` who are not in `train` are left out.

    `users_of_fakes` gives the number in `train` of the user each fake descends from, where `fakes` does not know it.
    """
    users = [i for i, label in enumerate(test.labels) if label in set(train.labels)]
    if len(users) < FEWEST:
        raise InvalidTraces(
            f"{len(users)} users are in both the training and the testing traces, {FEWEST} are needed.", code="E_DAYS"
        )
    generators = five_generators(train, fakes, users_of_fakes, choose=choose)
    return evaluate_lbs(
        train,
        test.of_users(np.array(users)),
        generators,
        classes=classes,
        # numbers of places only: the map of the fakes need not be the owner's
        pool=np.asarray(getattr(fakes, "r", fakes)),
        n_fakes=n_fakes,
        beta=beta,
        repeats=repeats,
        rng=rng,
        progress=progress,
    )
