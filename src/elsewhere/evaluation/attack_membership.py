"""
Attacks that tell who was in the file: A3 and A10 from the fakes alone, A22 and A23 by running the generator again.

A3 is the likelihood ratio of the PPMTF referee, reset at the boundaries of traces. A10 takes density (DOMIAS),
distances (DCR, metres, routine), *existence* (which of a person's places and steps occur in the fakes at
all, the rare ones most) and *absence* (with how many fakes a person shares no place). Everybody is judged by all other
people, so that members and strangers are treated alike.

With a `generator`, a callable `(visits, rng) -> fakes` (Visits, Traces, or anything with `.visits`), A10 and A22 make
shadow releases of random halves of all people, after which each person has scores with and without having been in the
file. A22 sees only the places of a release and their positions. A23 plants places that a person shares with exactly
m_min - 1 others, and looks whether they are published with that person and without.
"""

import math
from typing import Any

import numpy as np

from elsewhere.data.visits import DAY, Floats, Ints, Locations, Mask, Visits, share_map
from elsewhere.errors import InvalidParameter
from elsewhere.evaluation.attack_base import Case, Finding, Link, Lives, Needs, find_in, percent, tell_members, wilson
from elsewhere.evaluation.attack_clock import put_on_clock
from elsewhere.evaluation.attack_copies import by_agreement, by_shared_places
from elsewhere.evaluation.attack_linkage import (
    UNSEEN,
    by_absence,
    by_metres,
    by_routine,
    chains,
    count_steps,
    kinds_by_rank,
)
from elsewhere.evaluation.measures import lasting
from elsewhere.evaluation.sides import join_people

SMOOTH = 0.5
CANARIES = 6  # planted places of a person


# -- A3: the ratio of likelihoods --------------------------------------------------------------------------------------


def likelihood_ratio(people: Lives, release: Lives) -> Floats:
    """
    Return (N,) the largest ln p(u)(f) / p_others(f) over the fakes of a release.

    p_others is the mean of the other people's p; steps never seen get 1e-8 on either side.
    """
    from scipy import sparse

    N = len(people)
    user, step, p = chains(people)
    steps, column = np.unique(step, return_inverse=True)
    makers, total = np.bincount(column), np.bincount(column, p)
    rest = np.where(makers[column] > 1, (total[column] - p) / (N - 1), UNSEEN)
    population = np.log(total / (N - 1))
    gain = np.log(p / UNSEEN) - (np.log(rest) - population[column])
    table = sparse.csr_array((gain, (column, user)), shape=(len(steps), N))
    counts = count_steps(release, steps)  # a step that nobody made is floored on both sides and cancels
    return np.asarray(((counts @ table).toarray() + (counts @ (math.log(UNSEEN) - population))[:, None]).max(axis=0))


def likelihood_membership(case: Case) -> Finding:
    """Tell members from strangers by a ratio of likelihoods, each by the fake that fits best (A3)."""
    people, walks = case.seeds.join(case.others), case.walks(case.rng())
    found, null = ({"likelihood_ratio": likelihood_ratio(people, lives)} for lives in (case.fakes, walks))
    return tell_members(case, found, knows="how each person moves", null=null)


# -- A10: density, distances, existence, absence ---------------------------------------------------------------------


def density(people: Lives, release: Lives) -> Floats:
    """
    Return (N,) mean ln of the density of each person's places by hour in the release minus that among other people.

    One has (count + SMOOTH) / (all + SMOOTH keys); the person's own are left out of the people's (DOMIAS).
    """

    def counted(lives: Lives) -> tuple[Ints, Ints]:
        row, slot = np.nonzero(lives.r >= 0)
        return row, lives.clock.hour[slot] % 24 * lives.R + lives.r[row, slot]

    (row, key), (_, made) = counted(people), counted(release)
    keys, index = np.unique(key, return_inverse=True)
    there = find_in(keys, made)
    in_release = np.bincount(there[there >= 0], minlength=len(keys))
    everybody = np.bincount(index, minlength=len(keys))
    pair, own = np.unique(row * len(keys) + index, return_counts=True)
    who, what = pair // len(keys), pair % len(keys)
    size = np.bincount(row, minlength=len(people))
    fake = np.log((in_release[what] + SMOOTH) / (len(made) + SMOOTH * len(keys)))
    real = np.log((everybody[what] - own + SMOOTH) / (len(key) - size[who] + SMOOTH * len(keys)))
    return np.asarray(np.bincount(who, own * (fake - real), len(people)) / np.maximum(size, 1))


def existence(people: Lives, release: Lives) -> dict[str, Floats]:
    """Return how many of a person's places and steps occur in the release at all, each by the rarer the more."""
    out = {}
    published = np.asarray(release.visited.sum(axis=0)).ravel() > 0
    visitors = np.maximum(np.asarray(people.visited.sum(axis=0)).ravel() - 1, 0)  # beside the person
    places = people.visited
    rare = published / (1 + visitors)
    out["places_that_exist"] = (places @ published) / np.maximum(places.sum(axis=1), 1)
    out["rare_places_that_exist"] = (places @ rare) / np.maximum(places @ (1 / (1 + visitors)), 1e-9)
    row, step = people.steps
    moved = step // people.R != step % people.R
    pair = np.unique(row[moved] * (people.R**2) + step[moved])
    who, keys = pair // people.R**2, pair % people.R**2
    made = np.isin(keys, release.steps[1])
    _, index, number = np.unique(keys, return_inverse=True, return_counts=True)
    weight = 1 / number[index]
    total = np.bincount(who, weight, len(people))
    out["rare_moves_that_exist"] = np.bincount(who, weight * made, len(people)) / np.maximum(total, 1e-9)
    return {name: np.asarray(values, dtype=np.float64) for name, values in out.items()}


def membership_scores(people: Lives, release: Lives) -> dict[str, Floats]:
    """Return (people,) scores by name; larger means "was in the file"."""
    nearest = -np.sort(-by_agreement(Link(people, release)), axis=1)[:, :5]
    out = {
        "density": density(people, release),
        "closest_fake": nearest[:, 0] + nearest.mean(axis=1) / 1e3,
        "fakes_without_a_shared_place": -(by_shared_places(Link(release, people)) == 0).mean(axis=0),
        "most_avoided": by_absence(Link(release, people)).max(axis=0),
        "closest_routine": nearest_routine(people, release),
        **existence(people, release),
    }
    if people.locations.has_coordinates:
        out["closest_in_metres"] = by_metres(Link(release, people)).max(axis=0)
    return {name: np.asarray(values, dtype=np.float64) for name, values in out.items()}


def nearest_routine(people: Lives, release: Lives) -> Floats:
    """Return how near the routine of the nearest fake is to that of each person, beyond the mean of all fakes."""
    near = by_routine(Link(people, release), kinds_by_rank)
    return np.asarray((near.max(axis=1) - near.mean(axis=1)) / (near.std(axis=1) + 1e-9))


def density_membership(case: Case) -> Finding:
    """Tell members from strangers by density, distances, existence and absence (A10)."""
    people = case.seeds.join(case.others)
    found, null = (membership_scores(people, release) for release in (case.fakes, case.walks(case.rng())))
    if case.options.get("generator") is not None:
        shadow = shadow_releases(case, lambda lives, _: membership_scores(people, lives))
        found |= {f"{name}_by_shadows": log_ratio(found[name], *table) for name, table in shadow.items()}
    return tell_members(case, found, knows="all that each person did", null=null)


# -- shadow releases ---------------------------------------------------------------------------------------------------


def released(case: Case, people: Visits, rng: np.random.Generator) -> Visits:
    """Return the visits of what the generator makes of these people."""
    fakes = case.options["generator"](people, rng.spawn(1)[0])
    found = fakes if isinstance(fakes, Visits) else getattr(fakes, "visits", None)
    found = found() if callable(found) else found
    if not isinstance(found, Visits):
        raise InvalidParameter("`generator` must return `Visits`, or what has them.", parameter="generator")
    return found


def file_visits(case: Case) -> Visits:
    """Return the visits of everybody, members first, or say that they are needed."""
    if case.options.get("generator") is None:
        raise Needs("`generator`, a callable (visits, rng) -> fakes, to release files with and without a person")
    return join_people(*share_map(*(side.visits for side in (case.seeds, case.others) if side.visits is not None)))


def shadow_releases(case: Case, score: Any) -> dict[str, tuple[Floats, Mask]]:
    """
    Return by score the (runs, people) table of shadow releases of random halves of the people, and who was in each.

    `score(lives, visits)` gives scores of everybody from a release. Halves are complementary in turn, so that
    everybody is in as often as out.
    """
    everybody, rng = file_visits(case), case.rng().spawn(1)[0]
    runs, N = case.options["shadows"], everybody.U
    inside = np.zeros((runs, N), dtype=bool)
    tables: dict[str, list[Floats]] = {}
    for run in range(runs):
        inside[run] = ~inside[run - 1] if run % 2 else rng.permutation(N) < N // 2
        made = released(case, everybody.of_users(np.flatnonzero(inside[run])), rng)
        for name, values in score(put_on_clock(made, case.seeds, lasting(made)), made).items():
            tables.setdefault(name, []).append(values)
    return {name: (np.array(rows), inside) for name, rows in tables.items()}


def log_ratio(score: Floats, shadow: Floats, inside: Mask) -> Floats:
    """Return ln Pr{score | in the file} / Pr{score | not} of each person, both laws normal, fitted to shadow runs."""

    def law(where: Mask) -> tuple[Floats, Floats]:
        weight = where / np.maximum(where.sum(axis=0), 1)
        mean = (weight * shadow).sum(axis=0)
        return mean, (weight * (shadow - mean) ** 2).sum(axis=0)

    (mean_in, var_in), (mean_out, var_out) = law(inside), law(~inside)
    spread = math.sqrt(float((var_in + var_out).mean() / 2) + 1e-12)  # few runs per person: one variance for all
    return np.asarray(((score - mean_out) ** 2 - (score - mean_in) ** 2) / (2 * spread**2))


# -- A22: the map; A23: the threshold ----------------------------------------------------------------------------------


def map_scores(everybody: Visits, release: Visits) -> dict[str, Floats]:
    """Return scores of everybody from the published places: which of theirs exist, how near published points are."""
    published = release.locations.select(np.unique(release.place))
    at = everybody.locations.match(published)
    pair = np.unique(everybody.user.astype(np.int64) * everybody.R + everybody.place)
    who, place = pair // everybody.R, pair % everybody.R
    number = np.bincount(who, minlength=everybody.U)
    alone = 1 / np.bincount(place, minlength=everybody.R)[place]
    out = {
        "places_on_the_map": np.bincount(who, at[place] >= 0, everybody.U) / number,
        "rare_places_on_the_map": np.bincount(who, alone * (at[place] >= 0), everybody.U),
    }
    if published.has_coordinates and everybody.locations.lat is not None and published.lat is not None:
        _, km = published.nearest(everybody.locations.points()[place])
        out["distance_to_the_map"] = -np.bincount(who, np.log(km + 1e-6), everybody.U) / number
    return {name: np.asarray(values, dtype=np.float64) for name, values in out.items()}


def map_membership(case: Case) -> Finding:
    """Tell members from strangers by the published places and their positions (A22)."""
    everybody = file_visits(case)
    if case.fakes.visits is None:
        raise Needs("fakes as visits")
    found = map_scores(everybody, case.fakes.visits)
    shadow = shadow_releases(case, lambda _, visits: map_scores(everybody, visits))
    found |= {f"{name}_by_shadows": log_ratio(found[name], *table) for name, table in shadow.items()}
    return tell_members(case, found, knows="the published map alone")


def threshold_canary(case: Case) -> Finding:
    """Ask whether planted places of a person and m_min - 1 others are published only with that person (A23)."""
    everybody, rng = file_visits(case), case.rng()
    m_min, runs = case.m_min, case.options["shadows"]
    base = everybody.of_users(np.arange(len(case.seeds)))
    if base.U <= m_min or not base.locations.has_coordinates:
        raise Needs(f"more than {m_min} people, and coordinates of the places")
    hits = np.zeros((2, runs))
    for run in range(runs):
        people = rng.permutation(base.U)[:m_min]
        for inside, chosen in ((1, people), (0, people[1:])):
            planted, new = plant(base, chosen, rng)
            made = released(case, planted, rng)
            shown = made.locations.select(np.unique(made.place))
            hits[inside, run] = float((planted.locations.select(new).match(shown) >= 0).mean())
    main, control = (wilson(float(hits[i].sum() * CANARIES), runs * CANARIES) for i in (1, 0))
    words = (
        f"Places that a person shares with exactly {m_min - 1} others are published in {percent(main.value)} of the "
    )
    words += f"releases with that person and in {percent(control.value)} of those without."
    passed = bool(main.low <= control.high)
    return Finding(main, control, control, None, control.value, control.high, passed, words=words)


def plant(base: Visits, people: Ints, rng: np.random.Generator) -> tuple[Visits, Ints]:
    """Return visits with new places near others of the map where exactly these people go, and their numbers."""
    where = base.locations
    near = rng.integers(where.n, size=CANARIES)
    sides: dict[str, Any] = {
        name: side[near] + rng.uniform(0.02, 0.2, side[near].shape) / (1 if name == "xy" else 100)  # km, or degrees
        for name, side in where.coordinates.items()
    }
    ids = None if where.ids is None else [f"canary-{i}-{int(rng.integers(2**40))}" for i in range(CANARIES)]
    new = where.n + np.arange(CANARIES)
    first = base.start[base.offsets[:-1]][people] // DAY * DAY
    start = np.repeat(first, CANARIES) + 43_200 + 3600 * np.tile(np.arange(CANARIES), len(people))
    added = {
        "user": np.repeat(people, CANARIES),
        "start": start,
        "end": start + 3600,
        "place": np.tile(new, len(people)),
    }
    columns = {name: np.concatenate([getattr(base, name), column]) for name, column in added.items()}
    return base.replace(**columns, locations=where.append(Locations(**sides, ids=ids)), trip=None), new
