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

All similarities are of order 0 with Hamming distance, and all thresholds are compared exactly (R6), as quotients of
whole numbers (`_similarity_kernels.py`). `PrivacyTest` is prepared once and called with many fakes, `privacy_test` with
one; the box is `PrivacyTest.__call__`, line by line.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.data.slots import MINUTES_PER_DAY, Periods, Traces
from elsewhere.data.visits import Codes, Floats, Ints, Locations
from elsewhere.errors import InvalidParameter, InvalidTraces, NotEnoughAlternates, require_choice
from elsewhere.paper._similarity_kernels import Counted, numerators
from elsewhere.paper.geographic_similarity import counted, similarities
from elsewhere.settings import Paper

RULES = ("similarity", "intersection", "differential", "others", "min_sim")


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
    if against == "all" and others is None:
        raise InvalidParameter('`against="all"` needs `others`, the traces of the other seeds, got None.')
    for seeds in (seed, others):
        if isinstance(alternates, Traces) and isinstance(seeds, Traces):
            check_alternates(seeds, alternates)
    given = {"fake": fake, "seed": seed, "alternates": alternates, "others": others if against == "all" else None}
    traces = _on_one_map({name: value for name, value in given.items() if value is not None})
    own, r, users = traces["seed"], [traces["seed"].r], [("seed", 0)]
    if against == "all":
        rest = traces["others"]
        same = isinstance(seed, Traces) and isinstance(others, Traces) and _common_users(own, rest)
        rows = [row for row, label in enumerate(rest.users) if not (same and label in same)]
        if not rows:
            raise InvalidParameter("`others` must hold the trace of at least one other seed user, got none.")
        r, users = [own.r, rest.r[rows]], [*users, *(("others", int(u)) for u in rest.user[rows])]
    seeds = Traces(np.vstack(r), own.locations, users=users, step_minutes=own.step_minutes, start=own.start)
    options: dict[str, Any] = {"par_s": par_s, "par_i": par_i, "par_d": par_d, "k": k, "periods": periods}
    test = PrivacyTest.prepare(seeds, traces.get("alternates"), **options, against=against, min_sim=min_sim)
    return test(traces["fake"], [0], stop=MOST_PLACES)[0]


def _on_one_map(given: dict[str, Any]) -> dict[str, Traces]:
    """Return all as `Traces` over the same places; plain arrays take places and clock of the first `Traces` given."""
    first = next((value for value in given.values() if isinstance(value, Traces)), None)
    locations = first.locations if first else Locations(n=MOST_PLACES)
    traces: dict[str, Traces] = {}
    for name, value in given.items():
        single = name in ("fake", "seed")
        if isinstance(value, Traces):
            _check_map(name, value, locations)
            rows = value
        elif not single and hasattr(value, "__len__") and len(value) == 0:
            continue
        else:
            r = Traces.check_places([value] if single else value, len(locations), name)
            clock: dict[str, Any] = {"step_minutes": MINUTES_PER_DAY / r.shape[1]}
            if first and r.shape[1] == first.L:
                clock = {"step_minutes": first.step_minutes, "start": first.start}
            rows = Traces(r, locations, users=[(name, row) for row in range(len(r))], **clock)
        # alternates are compared by their counts alone; with a clock of their own they may have other slots
        own_clock = name == "alternates" and isinstance(value, Traces)
        if (single and len(rows) != 1) or (rows.L != traces.setdefault("fake", rows).L and not own_clock):
            raise InvalidTraces(
                f"`{name}` must have the slots of `fake`, and fake and seed be one row.", code="E_SHAPE"
            )
        traces[name] = rows
    return traces


WAVE = 64  # alternates that are looked at together
STRANGERS_BELOW = 0.95  # the quantile of E15
MOST_PLACES = 2**31 - 1  # what plain arrays can number


@dataclass(frozen=True, eq=False)
class PrivacyTest:
    """
    The privacy test, prepared once for all seeds and alternates, then cheap for each fake.

    Examples
    --------
    >>> import elsewhere as ew
    >>> from elsewhere.paper.privacy_test import PrivacyTest
    >>> people = ew.Traces([[0, 0, 1], [2, 3, 3]], ew.Locations(n=6), users=["seed", "alternate"])
    >>> test = PrivacyTest.prepare(people.select([0]), people.select([1]))
    >>> [verdict.passed for verdict in test([[4, 4, 5], [1, 4, 4]], seed=[0, 0])]
    [True, False]

    """

    seeds: Traces = field(repr=False)
    periods: Periods
    counts: Counted = field(repr=False)  # of the seeds
    strangers: Counted = field(repr=False)  # the traces of an alternate side by side
    longest: int  # slots of a trace
    thresholds: tuple[float, int, float, int, float]  # par_s, par_i, par_d, k, min_sim
    quantile: float | None
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
        min_sim: float | None = None,
    ) -> "PrivacyTest":
        """
        Prepare the test, with parameters as in `privacy_test`, for all `seeds` at once.

        `alternates="all"` takes the other users of `seeds` themselves, as the paper's experiments do, with a warning
        (E53). Alternates are counted up to the k-1st.
        """
        rules: dict[str, Any] = {"par_s": par_s, "par_i": par_i, "par_d": par_d, "k": k, "min_sim": min_sim}
        Paper(**rules, against=against)  # type: ignore[arg-type]  # which refuses what is out of range
        check_alternates(seeds, alternates, k=k, against=against)
        of_day = Periods.of(periods)
        # users of other traces are numbered after those of the seeds; all rows of one stand side by side
        theirs, before = (alternates, seeds.U) if isinstance(alternates, Traces) else (seeds, 0)
        order = np.argsort(theirs.user, kind="stable") if alternates is not None else np.arange(0)
        longest = max(seeds.L, theirs.L)
        counts = _count_visits(seeds, seeds.r, seeds.user, of_day, longest)
        strangers = _count_visits(theirs, theirs.r[order], before + theirs.user[order], of_day, longest)
        quantile = None
        if against == "all":
            quantile = _quantile_of_users(closest_seed(strangers, strangers.user, counts), strangers.user)
        thresholds = float(par_s), int(par_i), float(par_d), int(k), float(min_sim or 0)
        off = {"differential": k == 1, "others": against == "own", "min_sim": min_sim is None}
        not_run = tuple(name for name, is_off in off.items() if is_off)
        return PrivacyTest(seeds, of_day, counts, strangers, longest, thresholds, quantile, not_run)

    def __call__(self, fakes: ArrayLike | Traces, seed: ArrayLike, *, stop: int | None = None) -> list[Verdict]:
        """
        Return the verdicts on the fakes (F, L), fake i made from row `seed[i]` of the seeds: the box, line by line.

        Alternates are counted up to `stop`, by default the k-1 that are needed.
        """
        par_s, par_i, par_d, k, min_sim = self.thresholds
        s, r = np.asarray(seed, dtype=np.int64), np.asarray(fakes.r if isinstance(fakes, Traces) else fakes)
        own, i = self.seeds.r[s], np.arange(len(r))
        f = _count_visits(self.seeds, r, i, self.periods, self.longest)
        sim = larger_similarity(f, i, self.counts, s)
        shared, aligned = intersection(r, own), np.count_nonzero((r >= 0) & (r == own), axis=1)
        alternates = self.count_alternates(f, s, par_d, k - 1 if stop is None or k == 1 else stop)
        sim_s = similarities(self.counts, s, f, i, ranked=True)
        rejected = [sim > par_s, shared > par_i, alternates < k - 1]  # E51, E50, E52
        closest = np.zeros(len(r)) if self.quantile is None else closest_seed(f, self.counts.user[s], self.counts)
        rejected += [closest > (np.inf if self.quantile is None else self.quantile), sim_s < min_sim]  # E15, E56
        names = [tuple(compress(RULES, row)) for row in np.column_stack(rejected).tolist()]
        nearest = [None] * len(r) if self.quantile is None else closest.tolist()
        measured = (x.tolist() for x in (sim, shared, aligned, alternates, sim_s))
        limits: Any = {"quantile": self.quantile, "not_run": self.not_run}
        return [Verdict(*row, **limits) for row in zip(names, *measured, nearest, strict=True)]

    def count_alternates(self, f: Counted, s: Ints, par_d: float, stop: int) -> Ints:
        """Count the distinct users, but the seed's, with |sim_S(s, f) - sim_S(s', f)| < par_d for a trace (E52)."""
        of_seeds, strangers, found = np.empty(len(s)), self.strangers, np.zeros(len(s), dtype=np.int64)
        numerators(self.counts, s, f, np.arange(len(s)), True, of_seeds)
        user = np.unique(strangers.user, return_inverse=True)[1]
        # most fakes find enough among the first
        for rows in np.split(
            np.arange(len(user)), np.searchsorted(user, np.arange(WAVE, user.max(initial=0) + 1, WAVE))
        ):
            pending = np.flatnonzero(found < stop)
            a, p = (x.ravel() for x in np.meshgrid(rows, pending))
            X, N, N_a = np.empty(len(a)), self.counts.N[s[p]], strangers.N[a]
            numerators(strangers, a, f, p, True, X)
            near = np.abs(of_seeds[p] * N_a - X * N) / (N * N_a * np.maximum(f.M[p], 1)) < par_d
            near &= strangers.user[a] != self.counts.user[s[p]]
            found += np.bincount(np.unique(p[near] * len(user) + user[a[near]]) // len(user), minlength=len(s))
        return np.minimum(found, stop)


def larger_similarity(u: Counted, i: Ints, v: Counted, j: Ints) -> Floats:
    """Return the larger of sim_G(u_i, v_j) and sim_G(v_j, u_i) (E12, E13)."""
    return np.maximum(similarities(u, i, v, j, ranked=False), similarities(v, j, u, i, ranked=False))


def intersection(r: Codes, other: Codes) -> Ints:
    """Return |visited(u) ∩ visited(v)| of rows of places, whatever the period (E41)."""
    row, width = np.arange(len(r))[:, None], MOST_PLACES
    both = np.intersect1d((row * width + r)[r >= 0], (row * width + other)[other >= 0])
    return np.bincount(both // width, minlength=len(r))


def closest_seed(u: Counted, own: Ints, seeds: Counted) -> Floats:
    """Return the largest sim_G, in either direction, of each of `u` to a seed of any user but `own` (E15)."""
    closest = np.zeros(len(own))
    for i, user in enumerate(own):
        others = np.flatnonzero(seeds.user != user)
        closest[i] = larger_similarity(u, np.full(len(others), i), seeds, others).max(initial=0.0)
    return closest


def check_alternates(seeds: Traces, alternates: Traces | str | None, *, k: int = 1, against: str = "own") -> None:
    """
    Refuse alternates on another map, users who are seeds too, and too few.

    Users are compared by label (E53). Row numbers that stand in for missing labels on both sides are no names: there
    a user is the same if number and trace agree.
    """
    available = 0
    if isinstance(alternates, Traces):
        _check_map("alternates", alternates, seeds.locations)
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
    needed = max(k - 1, int(against == "all"))
    if available < needed:  # E60
        raise NotEnoughAlternates(
            f'`k` = {k}, `against="{against}"` needs at least {needed} alternate users, got {available}.'
        )


def _check_map(name: str, traces: Traces, locations: Locations) -> None:
    if traces.locations is not locations and traces.locations != locations:
        raise InvalidTraces(f"`{name}` must speak of the same places as the rest (B53).", code="E_MISMATCH")


def _common_users(a: Traces, b: Traces) -> set[Any]:
    """Return the labels of the users who are in both."""
    both = set(a.labels) & set(b.labels)
    if both and all(t.labels == tuple(range(len(t))) for t in (a, b)):
        both = {i for i in both if np.array_equal(a.r[i], b.r[i])}
    return both


def _count_visits(traces: Traces, r: Codes, user: Ints, periods: Periods, longest: int) -> Counted:
    """Return the visits of rows on the slots and places of `traces`, which are of `user`."""
    tau, T = periods.of_minute(traces.minutes()), periods.T
    row, slot = np.nonzero(r >= 0)
    key, count = np.unique((row * T + tau[slot]) * traces.R + r[row, slot], return_counts=True)
    return counted(key // traces.R, (key % traces.R).astype(np.int32), count, (len(r), T), user, longest**2)


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
