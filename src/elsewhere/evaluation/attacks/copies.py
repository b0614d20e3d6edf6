"""
Attacks that look for copies (A1) and for rare places (A13).

A1: is a fake a copy, or nearly, of the trace of its own seed or of anybody? Measured are slots at the same place,
shared places, and the longest common run of places.

A13: do the fakes visit places that too few people visit? (E31) Visitors are counted among the seed users, and besides
among the people the model was learnt from, who may be other people. Where enough of them visit every place of the
fakes, walks of the model without any seed may go to places of few seed users too, the more the longer they are: the bar
is then out of reach, and only more places than these would be a failure.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from elsewhere.data.visits import Ints
from elsewhere.evaluation.attacks._attacks_kernels import closest, with_owner
from elsewhere.evaluation.attacks.candidates import compact
from elsewhere.evaluation.attacks.finding import Finding, Rate, difference, percent, user_rate, verdict, wilson
from elsewhere.evaluation.attacks.inputs import AttackInputs, People
from elsewhere.sorting import count_users

MEASURES = ("aligned", "shared", "run")
KS_LEVEL = 0.01
EXACT = 500  # people: of more the limit law is as good, and the exact one overflows


def measure_overlap(
    traces: Ints, people: People, R: int, *, owner: Ints | None = None, skip: Ints | None = None
) -> Ints:
    """
    Return (F, 3) equal slots, shared places and longest common run of each trace and row `owner[i]` of the people.

    Without `owner`: the most that it has in common with anybody but user `skip[i]`, each of the three by itself.
    """
    V, (fakes, rows) = compact(R, traces, people.r)
    visited = np.zeros((len(rows), V), dtype=np.bool_)
    visited[np.arange(len(rows))[:, None], rows] = True
    scratch, out = np.zeros(fakes.shape[1] + 1, dtype=np.int64), np.empty((len(fakes), 3), dtype=np.int64)
    if owner is not None:
        with_owner(fakes, owner, rows, visited, scratch, out)
    else:
        closest(fakes, np.full(len(fakes), -1) if skip is None else skip, rows, people.user, visited, scratch, out)
    return out


def equal_days(traces: Ints, people: Ints) -> Any:
    """Return which traces equal, slot by slot, somebody who moves."""
    moving = people[(people != people[:, :1]).any(axis=1)]
    days = {row.tobytes() for row in np.ascontiguousarray(moving)}
    return np.array([row.tobytes() in days for row in np.ascontiguousarray(traces)], dtype=bool)


def copied_days(inputs: AttackInputs) -> Finding | None:
    """
    Run A1 without knowing who was made from whom: find fakes that equal a real day, more than days of two people do.

    None where there are no more of them than that: the other ways of copying need strangers and the seeds.
    """
    copy = equal_days(inputs.fakes, inputs.seeds.r)
    main = wilson(float(copy.sum()), len(copy))
    # the share of real days that somebody else has too, which a fake may meet by chance
    owners: dict[bytes, set[int]] = {}
    rows = np.ascontiguousarray(inputs.seeds.r)
    for row, user in zip(rows, inputs.seeds.user.tolist(), strict=True):
        owners.setdefault(row.tobytes(), set()).add(user)
    moving = (rows != rows[:, :1]).any(axis=1)
    shared = np.array([len(owners[row.tobytes()]) > 1 for row in rows]) & moving
    chance = wilson(float(shared.sum()), len(shared))
    if main.low <= chance.value:
        return None
    return Finding(
        "A1",
        interval=main,
        control_interval=chance,
        baseline=0.0,
        bar=0.0,
        passed=False,
        leaks=True,
        words=f"{percent(main.value)} of the fakes equal somebody's real day, slot by slot (days of two real people: "
        f"{percent(chance.value)}).",
        details={"how": "whole day", "verbatim": int(copy.sum())},
    )


def ks_p_values(fakes: Ints, strangers: Ints) -> dict[str, float]:
    """
    Return the p-value of "fakes are not closer to the seeds than strangers are", one-sided Kolmogorov-Smirnov,
    per measure.
    """
    from scipy.stats import ks_2samp

    method: Literal["exact", "asymp"] = "exact" if max(len(fakes), len(strangers)) <= EXACT else "asymp"
    return {
        name: float(ks_2samp(fakes[:, i], strangers[:, i], alternative="less", method=method).pvalue)
        for i, name in enumerate(MEASURES)
    }


def copies_of_role(inputs: AttackInputs) -> Finding:
    """
    Run A1 on people of whom no fake was made: do fakes equal their days, or come closer to them than strangers
    do?
    """
    rng, R = inputs.rng("A1"), inputs.R
    copied, chance = equal_days(inputs.fakes, inputs.seeds.r), equal_days(inputs.strangers.r, inputs.seeds.r)
    main = user_rate(copied.astype(np.float64), inputs.units, rng)[0]
    control = user_rate(chance.astype(np.float64), inputs.strangers.user, rng)[0]
    walks = inputs.null_walks(rng)
    free = user_rate(equal_days(walks, inputs.seeds.r).astype(np.float64), inputs.units, rng)[0]
    one, stranger = one_row_per_user(inputs.units, rng), one_row_per_user(inputs.strangers.user, rng)
    rows = [inputs.fakes[one], inputs.strangers.r[stranger], walks[one]]
    near, far, free_near = (measure_overlap(r, inputs.seeds, R) for r in rows)
    p, p_walks = ks_p_values(near, far), ks_p_values(near, free_near)
    closer = [name for name in MEASURES if p[name] <= KS_LEVEL and p_walks[name] <= KS_LEVEL]
    words = (
        f"{percent(main.value)} of the fakes equal a day of {inputs.who}, slot by slot (of strangers' days: "
        f"{percent(control.value)})"
    )
    how, outcome = "whole day", Copying(main, control, free, main.low > control.value, words)
    if not outcome.shows and closer:
        how, outcome = "anybody", _overlap_with_nearest(closer[0], (near, rows[0]), (far, rows[1]), free_near)
    return Finding(
        "A1",
        interval=outcome.main,
        control_interval=outcome.control,
        baseline=0.0,
        null=outcome.null,
        bar=0.0 if how != "anybody" else outcome.control.value,
        passed=not outcome.shows,
        leaks=outcome.shows,
        reachable=True,
        words=f"{outcome.words}.",
        details={"how": how, "verbatim": int(copied.sum()), "ks_p": p, "ks_p_against_walks": p_walks},
    )


class Copying(NamedTuple):
    """One way in which fakes may copy: the figure, that of strangers and of walks, whether it shows, and the words."""

    main: Rate
    control: Rate
    null: Rate
    shows: bool
    words: str


def copies(inputs: AttackInputs) -> Finding:
    """
    Run A1; the finding is that of the first way of copying that shows, else that of places shared with the own
    seed.
    """
    rng, link, R = inputs.rng("A1"), inputs.main, inputs.R
    own, others, free = (
        measure_overlap(x.fakes, x.people, R, owner=x.owner) for x in (link, inputs.control, inputs.null)
    )

    def rate(common: Ints, measure: int) -> Rate:
        return user_rate((common[:, measure] > 0).astype(np.float64), link.user, rng)[0]

    main, control, null = (rate(common, 1) for common in (own, others, free))
    worst = user_rate((own[:, 1] > 0).astype(np.float64), link.user, rng)[1]
    aligned, *by_chance = (rate(common, 0) for common in (own, others, free))
    anybody = _compare_nearest(inputs, rng)
    copied, chance = equal_days(link.fakes, inputs.seeds.r), equal_days(inputs.strangers.r, inputs.seeds.r)
    # the own seed: nothing in common; what strangers, or walks that know no seed, have in common too is no pass either
    clean = bool(main.value == 0)
    outcomes = {
        "own seed": Copying(
            main,
            control,
            null,
            main.low > max(control.high, null.high),
            f"{percent(main.value)} of the fakes share a place with their own seed (with a stranger: "
            f"{percent(control.value)})",
        ),
        "own seed, same slot": Copying(
            aligned,
            by_chance[0],
            by_chance[1],
            aligned.low > max(rate.high for rate in by_chance),
            f"{percent(aligned.value)} of the fakes are at a place of their own seed in the same slot (of a stranger: "
            f"{percent(by_chance[0].value)})",
        ),
        "whole day": Copying(
            user_rate(copied.astype(np.float64), link.user, rng)[0],
            wilson(float(chance.sum()), len(chance)),
            user_rate(equal_days(inputs.null.fakes, inputs.seeds.r).astype(np.float64), link.user, rng)[0],
            bool(copied.mean() > chance.mean()),
            f"{percent(float(copied.mean()))} of the fakes equal somebody's day, slot by slot (of strangers' days: "
            f"{percent(float(chance.mean()))})",
        ),
    }
    if anybody.closer is not None:
        outcomes["anybody"] = anybody.closer
    how = next((name for name, outcome in outcomes.items() if outcome.shows), "own seed")
    outcome = outcomes[how]
    beside = f"; {outcomes['whole day'].words}" if copied.any() and how != "whole day" else ""
    return Finding(
        "A1",
        interval=outcome.main,
        control_interval=outcome.control,
        baseline=0.0,
        null=outcome.null,
        bar=0.0 if how != "anybody" else outcome.control.value,
        passed=False if outcome.shows else True if clean else None,
        leaks=outcome.shows,
        reachable=null.value == 0,
        worst_decile=worst if how == "own seed" else None,
        words=f"{outcome.words}{beside}.",
        details={
            "how": how,
            "own_seed_zero": clean,
            "own_shared": main,
            "own_aligned": aligned,
            "own_points_aligned": float(own[:, 0].sum() / link.fakes.size),
            "own_longest_run": int(own[:, 2].max()),
            "verbatim": int(copied.sum()),
            **anybody.details,
        },
    )


class Anybody(NamedTuple):
    """What fakes have in common with the person nearest to them, where it is more than by chance; and the figures."""

    closer: Copying | None
    details: dict[str, Any]


def _compare_nearest(inputs: AttackInputs, rng: np.random.Generator) -> Anybody:
    """Compare fakes, strangers and walks without a seed, each with the person nearest to them."""
    link, R = inputs.main, inputs.R
    # one fake per user, so that the two samples are of independent people
    one = one_row_per_user(link.user, rng)
    near = measure_overlap(link.fakes[one], inputs.seeds, R, skip=link.user[one])
    # strangers meet as many people as a fake does: all but one
    stranger = one_row_per_user(inputs.strangers.user, rng)
    left_out = rng.integers(inputs.seeds.U, size=len(stranger))
    far = measure_overlap(inputs.strangers.r[stranger], inputs.seeds, R, skip=left_out)
    walks = measure_overlap(inputs.null.fakes[one], inputs.seeds, R, skip=link.user[one])
    p, p_walks = ks_p_values(near, far), ks_p_values(near, walks)
    # walks of popular places come close to people without knowing any: that alone is no finding
    closer = [name for name in MEASURES if p[name] <= KS_LEVEL and p_walks[name] <= KS_LEVEL]
    details = {
        "ks_p": p,
        "ks_p_against_walks": p_walks,
        "closest": {name: float(near[:, i].mean()) for i, name in enumerate(MEASURES)},
        "closest_strangers": {name: float(far[:, i].mean()) for i, name in enumerate(MEASURES)},
        "closest_maximum": {name: int(near[:, i].max()) for i, name in enumerate(MEASURES)},
    }
    if not closer:
        return Anybody(None, details)
    outcome = _overlap_with_nearest(closer[0], (near, link.fakes[one]), (far, inputs.strangers.r[stranger]), walks)
    return Anybody(outcome, details)


def _overlap_with_nearest(name: str, fakes: tuple[Ints, Ints], strangers: tuple[Ints, Ints], walks: Ints) -> Copying:
    """Return how much of a day fakes have in common with the person nearest to them, beside strangers."""
    i, L = MEASURES.index(name), fakes[1].shape[1]
    shared = name == "shared"
    near, far = (common[:, i] / (_count_places(r) if shared else L) for common, r in (fakes, strangers))
    gap, chance = difference(near, far), float(far.mean())
    free = float(walks[:, i].mean() / (_count_places(fakes[1]).mean() if shared else L))
    main = Rate(*(min(1.0, max(0.0, chance + value)) for value in gap))
    what = {
        "aligned": "is at the same place in {0} of the slots",
        "shared": "shares {0} of its places",
        "run": "has a stretch of {0} of the day in common",
    }[name]
    here = what.format(percent(main.value))
    words = f"With the person it comes nearest to, a fake {here} (a stranger: {percent(chance)})"
    return Copying(main, Rate(chance, chance, chance), Rate(free, free, free), True, words)


def _count_places(r: Ints) -> Ints:
    ordered = np.sort(r, axis=1)
    return np.asarray(1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1), dtype=np.int64)


def one_row_per_user(user: Ints, rng: np.random.Generator) -> Ints:
    """Return a random row of each user, in the order of users."""
    order = rng.permutation(len(user))
    return np.asarray(order[np.unique(user[order], return_index=True)[1]])


def rare_places(inputs: AttackInputs) -> Finding:
    """Return which places of few people the fakes visit (A13)."""
    m_min = inputs.parameters["m_min"]
    users = count_users(inputs.seeds.user, inputs.seeds.r, inputs.R)
    places = np.unique(inputs.fakes)
    rare = places[users[places] < m_min]
    on_rare = np.isin(inputs.fakes, rare)
    visitors = getattr(inputs.model, "visitors", None)
    model_users = np.zeros(inputs.R) if visitors is None else np.asarray(visitors)
    in_model = int(((model_users > 0) & (model_users < m_min)).sum())
    by_model = int((model_users[places] < m_min).sum())
    # what a model that knows no seed may go to
    free = visitors is not None and by_model == 0 and in_model == 0
    free_places = int((users[model_users >= m_min] < m_min).sum()) if free else 0
    null = Rate(float(free_places), 0.0, float(free_places)) if free else None
    baseline = control = None
    if inputs.holdout is not None:
        lived = np.unique(inputs.holdout.r)
        baseline = float((users[lived] < m_min).sum())
        control = float((count_users(inputs.holdout.user, inputs.holdout.r, inputs.R)[places] < m_min).sum())
    main = Rate(*[float(len(rare))] * 3)
    passed = False if in_model else verdict(main, 0.0, null)
    words = f"{len(rare)} places of the fakes have fewer than {m_min} seed users"
    words += "." if len(rare) == 0 else f"; {int(on_rare.any(axis=1).sum())} fakes visit one of them."
    if in_model:
        words += f" {in_model} places of the model have fewer contributors than that."
    if len(rare) and visitors is not None:
        words += (
            f" Every place of the fakes has at least {m_min} of the people the model was learnt from."
            if by_model == 0
            else f" {by_model} places of the fakes have fewer than {m_min} of the people the model was learnt from."
        )
    if passed is None:
        words += (
            f" Walks of the model without any seed may go to {free_places} places of so few seed users: no verdict."
        )
    return Finding(
        "A13",
        main=main.value,
        control=control,
        baseline=baseline,
        bar=0.0,
        null=null,
        passed=passed,
        reachable=free_places == 0,
        words=words,
        details={
            "m_min": m_min,
            "counted": "seed users",
            "in_model": in_model if inputs.model is not None else None,
            "few_contributors": by_model if visitors is not None else None,
            "one_user": int((users[rare] == 1).sum()),
            "nobody": int((users[rare] == 0).sum()),
            "fakes_affected": float(on_rare.any(axis=1).mean()),
        },
    )


def rare_places_of_role(inputs: AttackInputs) -> Finding:
    """
    Run A13 on people of whom no fake was made: find places of the fakes where one of them, and few of the whole
    file, go.
    """
    m_min, places = inputs.parameters["m_min"], np.unique(inputs.fakes)
    assert inputs.file is not None  # noqa: S101 - inputs of a role
    rare = places[inputs.file[places] < m_min]
    theirs, strangers = (count_users(g.user, g.r, inputs.R)[rare] > 0 for g in (inputs.seeds, inputs.strangers))
    mine = rare[theirs]
    affected = np.isin(inputs.fakes, mine).any(axis=1)
    words = f"{len(mine)} places of the fakes are visited by one of {inputs.who} and by fewer than {m_min} people of "
    words += "the whole file" + ("." if len(mine) == 0 else f"; {int(affected.sum())} fakes visit one of them.")
    return Finding(
        "A13",
        main=float(len(mine)),
        control=float(strangers.sum()),
        bar=0.0,
        passed=len(mine) == 0,
        reachable=True,
        words=words,
        details={"m_min": m_min, "counted": "everybody in the file", "fakes_affected": float(affected.mean())},
    )
