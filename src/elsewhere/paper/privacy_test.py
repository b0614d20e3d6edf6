"""
PrivacyTest(fake, seed, par_s, par_i, par_d)                                              (fig:alg)
    Set       geographic similarity sim <- sim_G(fake, seed)
    Set       intersection between fake and seed int <- Intersection(fake, seed)
    Set       dp <- TRUE if there are s'_1 .. s'_{k-1} such that |sim_S(s, f) - sim_S(s', f)| < par_d
    Return    TRUE if int < par_i and sim < par_s and dp

Read with `<=` for sim and int (E50, E51), sim in the larger direction (E12), places of both for the intersection
(E41), s' of k-1 distinct alternate users, who are nobody's seed (E52, E53). The verdict names each rule that rejected:
"similarity", "intersection", "differential", and two more on request:

- "others"        with `against="all"`: if f is more similar to another seed than 95 % of the strangers are to their
                  most similar seed (E15);
- "min_sim"       with `min_sim`: if sim_S(s, f) < min_sim, that is, if f is useless as a fake of its seed (E56).

What the test is not: "differential" bounds a difference. It shows neither that s' could have produced f, nor that s
is not the most similar of all (E54, E55). At order 0 with one period sim_G = 0 exactly if no place is shared, so
par_i = 0 leaves par_s nothing to reject (E14); both are kept, and the verdict names each that rejected.

All similarities are of order 0 with Hamming distance, and all thresholds are compared exactly (R6): `privacy_test`
counts in fractions, `PrivacyTest` in whole numbers (`_similarity_kernels.py`), with equal results.
"""

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.data.slots import MINUTES_PER_DAY, Periods, Traces
from elsewhere.data.visits import Codes, Floats, Ints, Locations
from elsewhere.errors import (
    InvalidParameter,
    InvalidTraces,
    NotEnoughAlternates,
    require_between,
    require_choice,
    require_whole,
)
from elsewhere.paper import _similarity_kernels as _kernels
from elsewhere.paper._similarity_kernels import Clock, Counted, Prepared, Rules

RULES = {
    "similarity": _kernels.SIMILARITY,
    "intersection": _kernels.INTERSECTION,
    "differential": _kernels.DIFFERENTIAL,
    "others": _kernels.OTHERS,
    "min_sim": _kernels.MIN_SIM,
}


@dataclass(frozen=True)
class Verdict:
    """
    What the privacy test measured on one fake, and which rules rejected it.

    Parameters
    ----------
    rejected_by
        Names of the rules that rejected, empty if the fake passed.
    sim
        sim_G(fake, seed).
    shared, aligned
        Codes that fake and seed both visit; slots at which they are at the same place (E41).
    alternates
        Distinct alternate users found; 0 where the rule was not run.
    sim_s
        sim_S(seed, fake).
    closest, quantile
        Largest sim_G to another seed, and the 95 % quantile of the same for strangers; None unless `against="all"`.
    not_run
        Names of the rules that were switched off: "differential" if k = 1, "others", "min_sim".

    """

    rejected_by: tuple[str, ...]
    sim: float
    shared: int
    aligned: int
    alternates: int
    sim_s: float
    closest: float | None = None
    quantile: float | None = None
    not_run: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Tell whether no rule rejected."""
        return not self.rejected_by

    def __bool__(self) -> bool:
        # `if privacy_test(...)` must not let everything through
        return self.passed


def privacy_test(
    fake: ArrayLike | Traces,
    seed: ArrayLike | Traces,
    alternates: ArrayLike | Traces | None,
    *,
    par_s: float = 0.1,
    par_i: int = 0,
    par_d: float = 0.1,
    k: int = 2,
    periods: int | Sequence[float] | Periods = 1,
    against: str = "own",
    others: ArrayLike | Traces | None = None,
    intersection: str = "set",
    min_sim: float | None = None,
) -> Verdict:
    """
    Return the verdict on one fake of one seed (PrivacyTest). All rules are evaluated; nothing is drawn.

    Parameters
    ----------
    fake, seed
        (L,) place numbers on the same slots, -1 where missing; or `Traces` of one row.
    alternates
        Traces of users who are nobody's seed: `Traces`, whose rows may share a user, or (A, L) place numbers, each
        row a user of its own. A user counts once however many of his traces match. May be None if k = 1.
    par_s, par_i, par_d
        Accepted are sim_G <= par_s in [0, 1], places <= par_i, a whole number, and differences < par_d in [0, 1].
    k
        k-1 distinct alternate users are needed; 1 switches the rule off, and `not_run` says so.
    periods
        Number of equal parts of the local day, or hour bounds (E24). Plain arrays follow the clock of the first
        `Traces` given; if there is none, their slots are spread evenly over the day.
    against
        "own": similarity to the own seed only. "all": also to the seeds in `others`, which must not exceed what 95 %
        of the strangers, here the alternates, have to their most similar seed (E15).
    others
        The other seeds, as `Traces` or (S, L); rows of the seed's own user are left out where labels tell.
    intersection
        "set" counts common places, "aligned" slots at the same place (E41).
    min_sim
        Smallest sim_S(seed, fake) accepted, None for no such bound (E56).

    Examples
    --------
    >>> import elsewhere as ew
    >>> v = ew.privacy_test([5, 5, 5, 6], seed=[0, 0, 1, 1], alternates=[[2, 2, 3, 3], [4, 4, 4, 4]])
    >>> v.passed, v.sim, v.sim_s, v.alternates
    (True, 0.0, 0.75, 2)
    >>> ew.privacy_test([1, 1, 5, 5], seed=[0, 0, 1, 1], alternates=[[2, 2, 3, 3]]).rejected_by
    ('similarity', 'intersection')

    """
    _check_thresholds(par_s, par_i, par_d, k, against, intersection, min_sim)
    f, s, strangers, rest = _visits_of_all(fake, seed, alternates, others, against, periods)
    _check_number(len({x.user for x in strangers}), k, against)
    sim = max(sim_g(f, s), sim_g(s, f))
    shared, aligned = len(f.places & s.places), int(np.count_nonzero((f.r == s.r) & (f.r >= 0)))
    dp = {x.user for x in strangers if float(abs(sim_s(s, f) - sim_s(x, f))) < par_d} if k > 1 else set()
    closest = max((max(sim_g(f, x), sim_g(x, f)) for x in rest), default=Fraction(0))
    quantile = usual_similarity(strangers, [s, *rest]) if against == "all" else None
    rejected = {
        "similarity": float(sim) > par_s,
        "intersection": (aligned if intersection == "aligned" else shared) > par_i,
        "differential": len(dp) < k - 1,
        "others": quantile is not None and float(closest) > quantile,
        "min_sim": min_sim is not None and float(sim_s(s, f)) < min_sim,
    }
    return Verdict(
        tuple(name for name, is_rejected in rejected.items() if is_rejected),
        float(sim),
        shared,
        aligned,
        len(dp),
        float(sim_s(s, f)),
        None if quantile is None else float(closest),
        quantile,
        _not_run(k, against, min_sim),
    )


class Visited(NamedTuple):
    """One trace: its user, its places (L,), and the visits to each place in each period."""

    user: Any
    r: Codes
    visits: tuple[Counter[int], ...]

    @property
    def places(self) -> set[int]:
        """Return visited(u)."""
        return {place for count in self.visits for place in count}


def sim_g(u: Visited, v: Visited) -> Fraction:
    """Return sim_G(u, v) of order 0, sum_tau w_tau(u) sum_r min(pi_tau^r(u), pi_tau^r(v)) (E13), exactly."""
    return _weighted(u, v, lambda a, b: ((a[r], b[r]) for r in a.keys() & b.keys()))


def sim_s(u: Visited, v: Visited) -> Fraction:
    """Return sim_S(u, v) of order 0, sum_tau w_tau(u) max_sigma sum_r min(...), rank with rank (E20), exactly."""
    return _weighted(u, v, lambda a, b: zip(sorted(a.values())[::-1], sorted(b.values())[::-1], strict=False))


def _weighted(u: Visited, v: Visited, matched: Any) -> Fraction:
    N, total = sum(a.total() for a in u.visits), Fraction(0)
    for a, b in zip(u.visits, v.visits, strict=True):
        n, m = a.total(), b.total()
        if n and m:
            total += Fraction(n, N) * Fraction(sum(min(x * m, y * n) for x, y in matched(a, b)), n * m)
    return total


def usual_similarity(strangers: Sequence[Visited], seeds: Sequence[Visited]) -> float:
    """Return the 95 % quantile over strangers of the similarity to their most similar seed (E15)."""
    nearest = [float(max(max(sim_g(x, s), sim_g(s, x)) for s in seeds)) for x in strangers]
    return _quantile_of_users(np.array(nearest), np.unique([x.user for x in strangers], return_inverse=True)[1])


def _visits_of_all(
    fake: Any, seed: Any, alternates: Any, others: Any, against: str, periods: int | Sequence[float] | Periods
) -> tuple[Visited, Visited, list[Visited], list[Visited]]:
    """Return fake, seed, alternates and the seeds of other users, counted by the same places and periods."""
    if against == "all" and others is None:
        raise InvalidParameter('`against="all"` needs `others`, the traces of the other seeds, got None.')
    tables = {"seed": _table("seed", seed), "fake": _table("fake", fake)}
    if alternates is not None and np.shape(_table("alternates", alternates))[:1] != (0,):
        tables["alternates"] = _table("alternates", alternates)
    if against == "all":
        tables["others"] = _table("others", others)
    traces = _on_one_map(tables)
    for seeds in (seed, others):
        if isinstance(alternates, Traces) and isinstance(seeds, Traces):
            check_alternates(seeds, alternates)
    of_day = Periods.of(periods)

    def visits(name: str) -> list[Visited]:
        rows = traces.get(name)
        if rows is None:
            return []
        tau = of_day.of_minute(rows.minutes())
        counts = [tuple(Counter(r[(tau == t) & (r >= 0)].tolist()) for t in range(of_day.T)) for r in rows.r]
        return [Visited(*item) for item in zip(rows.user.tolist(), rows.r, counts, strict=True)]

    rest = visits("others")
    if isinstance(seed, Traces) and isinstance(others, Traces) and rest:
        own = {others.labels.index(label) for label in _common_users(seed, others)}
        rest = [x for x in rest if x.user not in own]
    if against == "all" and not rest:
        raise InvalidParameter("`others` must hold the trace of at least one other seed user, got none.")
    return visits("fake")[0], visits("seed")[0], visits("alternates"), rest


COLUMNS = ("rejected", "sim", "shared", "aligned", "alternates", "sim_s", "closest")  # of `Verdicts`


@dataclass(frozen=True, eq=False)
class Verdicts(Sequence[Verdict]):
    """The verdicts on many fakes in columns; item i is a `Verdict`. `rejected` holds the bits of `RULES`."""

    rejected: NDArray[np.uint8] = field(repr=False)
    sim: Floats = field(repr=False)
    shared: Ints = field(repr=False)
    aligned: Ints = field(repr=False)
    alternates: Ints = field(repr=False)
    sim_s: Floats = field(repr=False)
    closest: Floats = field(repr=False)
    quantile: float | None = None
    not_run: tuple[str, ...] = ()

    @property
    def passed(self) -> NDArray[np.bool_]:
        """Return which fakes no rule rejected, (F,)."""
        return np.asarray(self.rejected == 0)

    def counts(self) -> dict[str, int]:
        """Count the fakes: all, passed, and rejected by each rule that was run (a fake may be by several)."""
        by_rule = {
            name: int(np.count_nonzero(self.rejected & bit)) for name, bit in RULES.items() if name not in self.not_run
        }
        return {"tested": len(self.rejected), "passed": int(self.passed.sum()), **by_rule}

    def __len__(self) -> int:
        return len(self.rejected)

    @overload
    def __getitem__(self, i: int) -> Verdict: ...
    @overload
    def __getitem__(self, i: slice) -> list[Verdict]: ...
    def __getitem__(self, i: int | slice) -> Verdict | list[Verdict]:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        return Verdict(
            tuple(name for name, bit in RULES.items() if self.rejected[i] & bit),
            float(self.sim[i]),
            int(self.shared[i]),
            int(self.aligned[i]),
            int(self.alternates[i]),
            float(self.sim_s[i]),
            None if self.quantile is None else float(self.closest[i]),
            self.quantile,
            self.not_run,
        )

    def select(self, fakes: ArrayLike) -> "Verdicts":
        """Return the verdicts on these fakes (numbers or a mask), in the given order."""
        keep = np.asarray(fakes)
        columns: dict[str, Any] = {name: getattr(self, name)[keep] for name in COLUMNS}
        return replace(self, **columns)

    @staticmethod
    def joined(parts: "Sequence[Verdicts]") -> "Verdicts":
        """Join the verdicts of several batches of one test, one after the other."""
        columns: dict[str, Any] = {n: np.concatenate([getattr(part, n) for part in parts]) for n in COLUMNS}
        return replace(parts[0], **columns)

    def __iter__(self) -> Iterator[Verdict]:
        return (self[i] for i in range(len(self)))


STRANGERS_BELOW = 0.95  # the quantile of E15
EXACT = 2**53  # whole numbers below it are exact in float64
OTHER_MAP = "`{}` must speak of the same places as the rest (B53)."


@dataclass(frozen=True, eq=False)
class PrivacyTest:
    """
    The privacy test, prepared once for all seeds and alternates, then cheap for each fake.

    Compiled loops call `verdict_one(fake, seed, test.prepared, scratch)` of `_similarity_kernels.py` themselves, with
    `fake` an int32 row and `scratch = new_scratch(test.prepared)` per thread.

    Examples
    --------
    >>> import elsewhere as ew
    >>> from elsewhere.paper.privacy_test import PrivacyTest
    >>> people = ew.Traces([[0, 0, 1], [2, 3, 3]], ew.Locations(n=6), users=["seed", "alternate"])
    >>> test = PrivacyTest.prepare(people.select([0]), people.select([1]))
    >>> test([[4, 4, 5], [1, 4, 4]], seed=[0, 0]).passed.tolist()
    [True, False]

    """

    prepared: Prepared = field(repr=False)
    not_run: tuple[str, ...]

    @staticmethod
    def prepare(
        seeds: Traces,
        alternates: "Traces | str | None",
        *,
        par_s: float = 0.1,
        par_i: int = 0,
        par_d: float = 0.1,
        k: int = 2,
        periods: int | Sequence[float] | Periods = 1,
        against: str = "own",
        intersection: str = "set",
        min_sim: float | None = None,
        count_all: bool = False,
    ) -> "PrivacyTest":
        """
        Prepare the test, with parameters as in `privacy_test`, for all `seeds` at once.

        `alternates="all"` takes the other users of `seeds` themselves, as the paper's experiments do, with a warning
        (E53). `count_all` counts every alternate; by default counting stops at the k-1st.
        """
        if not isinstance(seeds, Traces):
            raise InvalidParameter(f"`seeds` must be a `Traces`, got {type(seeds).__name__}.")
        _check_thresholds(par_s, par_i, par_d, k, against, intersection, min_sim)
        available = check_alternates(seeds, alternates, k=k, against=against)

        of_day, R = Periods.of(periods), seeds.R
        longest = max(seeds.L, alternates.L if isinstance(alternates, Traces) else 0)
        exact_below = EXACT // longest**2
        clock, r, counts = _count_visits(seeds, seeds.user, np.arange(len(seeds)), of_day, exact_below)
        if alternates is None:
            strangers = _kernels.empty_counts(0, 0, of_day.T)
        else:  # users of other traces are numbered after those of the seeds; all rows of one stand side by side
            theirs, before = (alternates, seeds.U) if isinstance(alternates, Traces) else (seeds, 0)
            order = np.argsort(theirs.user, kind="stable")
            _, _, strangers = _count_visits(theirs, before + theirs.user, order, of_day, exact_below)
        rules = Rules(
            par_s=float(par_s),
            par_i=int(min(par_i, seeds.L)),
            par_d=float(par_d),
            k=int(k),
            min_sim=float(min_sim or 0),
            aligned=intersection == "aligned",
            quantile=np.inf,
            stop=available if count_all else k - 1,
            exact_below=exact_below,
        )
        everybody = counts if against == "all" else _kernels.empty_counts(0, 0, of_day.T)
        visitors = _kernels.list_visitors(everybody, R if against == "all" else 0)
        prepared = Prepared(rules, clock, r, counts, strangers, visitors, R)
        if against == "all":
            quantile = _quantile_of_users(_kernels.similarity_of_alternates(prepared), prepared.alternates.user)
            prepared = prepared._replace(rules=rules._replace(quantile=quantile))
        return PrivacyTest(prepared, _not_run(k, against, min_sim))

    def __call__(self, fakes: ArrayLike | Traces, seed: ArrayLike) -> Verdicts:
        """Return the verdicts on the fakes (F, L), fake i made from row `seed[i]` of the seeds."""
        p, own = self.prepared, self.prepared.r
        rows = fakes.r if isinstance(fakes, Traces) else _table("fakes", fakes)
        try:
            numbers = np.asarray(seed)
        except ValueError:
            raise InvalidTraces("`seed` must hold one row number per fake.", code="E_SHAPE") from None
        if rows.ndim != 2 or rows.shape[1] != own.shape[1] or numbers.shape != rows.shape[:1]:
            raise InvalidTraces(
                f"`fakes` must have shape (F, {own.shape[1]}) and `seed` (F,), got {rows.shape} and {numbers.shape}.",
                code="E_SHAPE",
            )
        if len(rows) and (numbers.dtype.kind not in "iu" or not 0 <= numbers.min() <= numbers.max() < len(own)):
            raise InvalidTraces(f"`seed` must hold row numbers in 0 .. {len(own) - 1}.", code="E_INDEX")
        places = Traces.check_places(rows, p.R, "fakes") if len(rows) else rows
        F = len(rows)
        rejected = np.zeros(F, np.uint8)
        sim, sim_s, nearest = np.zeros(F), np.zeros(F), np.zeros(F)
        shared, aligned, alternates = (np.zeros(F, np.int64) for _ in range(3))
        # kernels are compiled for one kind of array: contiguous, writable, of this type
        r, seed = np.array(places, np.int32, order="C"), np.array(numbers, np.int64, order="C")
        _kernels.verdicts(r, seed, p, rejected, sim, shared, aligned, alternates, sim_s, nearest)
        quantile = p.rules.quantile if np.isfinite(p.rules.quantile) else None
        return Verdicts(rejected, sim, shared, aligned, alternates, sim_s, nearest, quantile, self.not_run)


def check_alternates(seeds: Traces, alternates: Traces | str | None, *, k: int = 1, against: str = "own") -> int:
    """
    Return how many users can be alternates of one seed; refuse another map, users who are seeds too, and too few.

    Users are compared by label (E53). Row numbers that stand in for missing labels on both sides are no names: there
    a user is the same if number and trace agree.
    """
    available = 0
    if isinstance(alternates, Traces):
        if alternates.locations is not seeds.locations and alternates.locations != seeds.locations:
            raise InvalidTraces(OTHER_MAP.format("alternates"), code="E_MISMATCH")
        available, both = alternates.U, len(_common_users(seeds, alternates))
        if both:
            raise InvalidTraces(
                f"`alternates` must be nobody's seed: {both} of its {alternates.U} users are seeds (E53).",
                code="E_OVERLAP",
            )
    elif alternates is not None:
        require_choice("alternates", alternates, ("all",))
        available = seeds.U - 1
        warnings.warn(
            '`alternates="all"`: the alternates are seeds themselves; use it to reproduce the paper only (E53).',
            stacklevel=3,
        )
    return _check_number(available, k, against)


def _check_number(available: int, k: int, against: str) -> int:
    """Return the number of alternate users if the test can do with so many (E60)."""
    if available < k - 1:
        raise NotEnoughAlternates(f"`k` = {k} needs at least {k - 1} alternate users, got {available}.")
    if against == "all" and available == 0:
        raise NotEnoughAlternates('`against="all"` needs strangers to compare with: at least 1 alternate user, got 0.')
    return available


def _check_thresholds(
    par_s: float, par_i: int, par_d: float, k: int, against: str, intersection: str, min_sim: float | None
) -> None:
    require_between("par_s", par_s, 0, 1)
    require_whole("par_i", par_i, 0)
    require_between("par_d", par_d, 0, 1)
    require_whole("k", k, 1)
    require_choice("against", against, ("own", "all"))
    require_choice("intersection", intersection, ("set", "aligned"))
    if min_sim is not None:
        require_between("min_sim", min_sim, 0, 1)


def _not_run(k: int, against: str, min_sim: float | None) -> tuple[str, ...]:
    """Return the names of the rules that are switched off."""
    off = {"differential": k == 1, "others": against == "own", "min_sim": min_sim is None}
    return tuple(name for name, is_off in off.items() if is_off)


def _common_users(a: Traces, b: Traces) -> set[Any]:
    """Return the labels of the users who are in both."""
    both = set(a.labels) & set(b.labels)
    if both and all(t.labels == tuple(range(len(t))) for t in (a, b)):
        both = {i for i in both if np.array_equal(a.r[i], b.r[i])}
    return both


def _on_one_map(tables: dict[str, Any]) -> dict[str, Traces]:
    # all as Traces over the same places; plain arrays take the places and the clock of the first Traces
    first = next((value for value in tables.values() if isinstance(value, Traces)), None)
    locations = first.locations if first else Locations(n=1 + max(_largest(value) for value in tables.values()))
    traces: dict[str, Traces] = {}
    for name, value in tables.items():
        single = name in ("fake", "seed")
        if isinstance(value, Traces):
            if value.locations is not locations and value.locations != locations:
                raise InvalidTraces(OTHER_MAP.format(name), code="E_MISMATCH")
            traces[name] = value
        elif single and value.ndim != 1:
            raise InvalidTraces(f"`{name}` must have one dimension, got {value.ndim}.", code="E_SHAPE")
        else:
            traces[name] = _checked(name, np.atleast_2d(value) if single else value, locations, clock=first)
        if single and len(traces[name]) != 1:
            raise InvalidTraces(f"`{name}` must be one trace, got {len(traces[name])}.", code="E_SHAPE")
    L = traces["fake"].L
    for name, rows_of in traces.items():
        # alternates are compared by their counts alone; with a clock of their own they may have other slots
        if rows_of.L != L and not (name == "alternates" and isinstance(tables[name], Traces)):
            raise InvalidTraces(
                f"`{name}` must have the slots of `fake`: they have {rows_of.L} and {L}.", code="E_SHAPE"
            )
    return traces


def _table(name: str, value: Any) -> Any:
    try:
        return value if isinstance(value, Traces) else np.asarray(value)
    except ValueError:
        raise InvalidTraces(f"`{name}` must be a table: all rows of one length.", code="E_SHAPE") from None


def _largest(rows: NDArray[Any]) -> int:
    # 0 for what holds no place numbers, and no number that int32 could not hold: `_checked` will say so
    numbers = rows.dtype.kind in "iuf" and rows.size > 0 and np.all(np.isfinite(rows))
    return int(np.clip(rows.max(), 0, np.iinfo(np.int32).max - 1)) if numbers else 0


def _checked(name: str, rows: NDArray[Any], locations: Locations, clock: Traces | None = None) -> Traces:
    try:
        if clock is not None and rows.shape[-1:] == (clock.L,):
            return Traces(rows, locations, step_minutes=clock.step_minutes, start=clock.start)
        return Traces(rows, locations, step_minutes=MINUTES_PER_DAY / max(1, *rows.shape[-1:]))
    except InvalidTraces as fault:
        raise InvalidTraces(str(fault.args[0]).replace("`r`", f"`{name}`"), code=fault.code) from None


def _count_visits(
    traces: Traces, user: Ints, order: Ints, periods: Periods, exact_below: int
) -> tuple[Clock, Codes, Counted]:
    """Return the slots of each period, and rows of `traces`, which are of `user`, in this order, with their visits."""
    tau = periods.of_minute(traces.minutes())
    slot = np.argsort(tau, kind="stable").astype(np.int64)
    clock = Clock(slot, np.searchsorted(tau[slot], np.arange(periods.T + 1)).astype(np.int64))
    # kernels are compiled for one kind of array: contiguous, writable, of this type
    r = np.array(traces.r[order], np.int32, order="C")
    return clock, r, _kernels.count_rows(r, user[order].astype(np.int64), clock, traces.R, exact_below)


def _quantile_of_users(similarity: Floats, user: Ints) -> float:
    """
    Return the smallest value that the similarity of 95 % of the strangers does not exceed (E15).

    The traces of one user share the weight of that user (E61).
    """
    _, which, rows = np.unique(user, return_inverse=True, return_counts=True)
    order = np.argsort(similarity, kind="stable")
    below = np.cumsum((1 / rows[which])[order])
    # the sum of shares is rounded; a stranger more or less is not
    return float(similarity[order][np.searchsorted(below, STRANGERS_BELOW * len(rows) - 1e-9)])
