"""
Attacks that look for copies (A1), for rare places (A13), and at the order of the fakes (A20).

A1: does a fake share places with the person it was made from, or days with anybody, more than strangers do? Places of
the own person, places of the own person at the same time, whole days of anybody; and whether fakes lie nearer to people
in the file than to strangers, by slots at one place and by shared places.

A13: do fakes go to places that few people of the data visit (E31), more than real people go to those of others?
Strangers are counted too, who are on the same map, and in tiles whoever is inside.

A20: does the place of a fake in the list tell whom it was made from (E63)? Lists that are shuffled do not.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from elsewhere.data._data_kernels import tile_keys
from elsewhere.data.places import TILE
from elsewhere.data.visits import Floats, Ints, Visits
from elsewhere.evaluation.attack_base import (
    RARELY,
    Case,
    Finding,
    Link,
    Lives,
    Needs,
    Rate,
    by_user,
    difference,
    find_in,
    nearer_to_members,
    percent,
    user_rate,
    wilson,
)

MOST_SLOTS = 240
FEWEST_MOVES = 3  # of a day: to stay at home all day is to copy nobody


def by_agreement(link: Link) -> Floats:
    """Return the number of slots at which a fake and a person are at one place."""
    from scipy import sparse

    slots, R = link.people.clock.thin(MOST_SLOTS), link.people.R
    tables = []
    for lives in link[:2]:
        row, slot = np.nonzero((r := lives.r[:, slots]) >= 0)
        entry = np.ones(len(row)), (row, slot * R + r[row, slot])
        tables.append(sparse.csr_array(entry, shape=(len(lives), len(slots) * R)))
    return np.asarray((tables[0] @ tables[1].T).toarray())


def by_shared_places(link: Link) -> Floats:
    """Return the number of places that a fake and a person share."""
    return np.asarray((link.fakes.visited @ link.people.visited.T).toarray())


def overlap_with_own(link: Link) -> Ints:
    """Return (F, 2) the slots at one place, and the shared places, of each fake and its own person."""
    owner, mine = link.made_from, link.fakes.r
    aligned = ((mine == link.people.r[owner]) & (mine >= 0)).sum(axis=1)
    shared = np.asarray(link.fakes.visited.multiply(link.people.visited[owner]).sum(axis=1)).ravel()
    return np.column_stack([aligned, shared]).astype(np.int64)


def whole_days(lives: Lives) -> dict[tuple[int, bytes], int]:
    """Return the moves of every day of a life on which somebody moves thrice and is seen half of the time."""
    days: dict[tuple[int, bytes], int] = {}
    for day in np.unique(lives.clock.day):
        part = np.ascontiguousarray(lives.r[:, lives.clock.day == day])
        moves = ((part[:, 1:] != part[:, :-1]) & (part[:, 1:] >= 0) & (part[:, :-1] >= 0)).sum(axis=1)
        going = (moves >= FEWEST_MOVES) & ((part >= 0).mean(axis=1) >= 0.5)
        when = (lives.clock.second[lives.clock.day == day] % 86_400).tobytes()
        days |= {(i, when + part[i].tobytes()): int(moves[i]) for i in np.flatnonzero(going).tolist()}
    return days


def moves_in_common(lives: Lives, people: Lives) -> Ints:
    """Return (N,) the moves of each life on whole days that are exactly those of one person, whoever has most."""
    lived: dict[bytes, list[int]] = {}
    for person, day in whole_days(people):
        lived.setdefault(day, []).append(person)
    common: Counter[tuple[int, int]] = Counter()
    for (life, day), moves in whole_days(lives).items():
        common.update({(life, person): moves for person in lived.get(day, ()) if lives is not people or life != person})
    most = np.zeros(len(lives), dtype=np.int64)
    for (life, _), moves in common.items():
        most[life] = max(most[life], moves)
    return most


def copies(case: Case) -> Finding:
    """Look for copied places and days (A1); the finding is that of the first way that shows."""
    rng = case.rng()
    details: dict[str, Any] = {}
    ways = _own_ways(case, rng, details) if case.owner is not None else {}
    ways["whole day"] = _copied_days(case, rng)
    if case.strangers is not None:
        both = Link(case.fakes, case.seeds.join(case.strangers))
        tables = {"slots": by_agreement(both), "places": by_shared_places(both)}
        nearer = nearer_to_members(tables, len(case.seeds), rng)
        details["links_found"] = nearer._asdict()
        words = f"{percent(nearer.share.value)} of the fakes have most {nearer.by} in common with one of {case.who} "
        words += "rather than with one of as many strangers; by chance it is 50 %."
        ways["anybody"] = Finding(nearer.share, baseline=0.5, bar=0.5, passed=nearer.p > RARELY, words=words)
    how = next((name for name, way in ways.items() if way.passed is False), next(iter(ways)))
    return replace(ways[how], details={"how": how, **details})


def _copied_days(case: Case, rng: np.random.Generator) -> Finding:
    """
    Ask whether fakes have whole days of people: more of them than real people have days of somebody else, or one of
    them more than twice as much of one person as any two real people have in common, which no chance day is.
    """
    real, who = (case.seeds, "real people") if case.strangers is None else (case.strangers, "strangers")
    mine, usual = moves_in_common(case.fakes, case.seeds), moves_in_common(real, case.seeds)
    most = 2 * max(int(usual.max()), FEWEST_MOVES)
    main, control = user_rate(mine > 0, case.units, rng)[0], wilson(float((usual > 0).sum()), len(usual))
    words, shows = f"a day that is exactly somebody's real day; of {who}", main.low > control.high
    if (much := mine > most).any() and not shows:
        main, control, shows = user_rate(much, case.units, rng)[0], wilson(0, len(usual)), True
        words = f"more than {most} moves on days that are exactly one person's; of {who}"
    words = f"{percent(main.value)} of the fakes have {words} {percent(control.value)}."
    return Finding(main, control, control, None, control.value, control.high, not shows, words=words)


def _own_ways(case: Case, rng: np.random.Generator, details: dict[str, Any]) -> dict[str, Finding]:
    """Return what fakes share with their own people, beside strangers and shuffled links."""
    owner, strangers = case.link.made_from, case.strangers
    links = {"main": Link(case.fakes, case.seeds, owner)}
    links["null"] = Link(case.fakes, case.seeds, rng.permutation(len(case.seeds))[owner])
    if strangers is not None:
        stand_in = rng.permutation(len(strangers))[owner % len(strangers)]
        links["control"] = Link(case.fakes, strangers, stand_in)
    common = {name: overlap_with_own(link) for name, link in links.items()}
    ways = {}
    for how, measure, what in (
        ("own person, same time", 0, "are at a place of their own person at the same time"),
        ("own person", 1, "share a place with their own person"),
    ):
        found = {name: user_rate(x[:, measure] > 0, case.units, rng) for name, x in common.items()}
        rates: dict[str, Any] = {name: rate for name, (rate, _) in found.items()}
        main, control = rates["main"], rates.get("control", wilson(0, np.inf))
        passed = main.low <= max(rates["null"].high, control.high)
        words = f"{percent(main.value)} of the fakes {what}"
        words += f"; a stranger's: {percent(control.value)}." if "control" in rates else "."
        chance, worst = {"baseline": control.value, "bar": control.high}, found["main"][1]
        ways[how] = Finding(**rates, **chance, passed=passed, worst_decile=worst, words=words)
    own = common["main"]
    details |= {
        "own_seed_zero": bool(own[:, 1].max(initial=0) == 0),
        "own_shared": ways["own person"].main,
        "own_points_aligned": float(own[:, 0].sum() / max(1, int((case.fakes.r >= 0).sum()))),
    }
    return dict(reversed(ways.items()))


def people_around(visits: Visits) -> Ints:
    """Return (R,) how many people visit each place, or, where it is a tile of the public map, any place inside it."""
    where, R, U = visits.locations, visits.R, visits.U
    found = [TILE.fullmatch(str(name)) for name in where.ids or ()]
    zoom = np.array([len(tile[1]) if tile else 0 for tile in found], dtype=np.int64)
    number, key = visits.visitors().copy(), np.empty(R, dtype=np.int64)
    if where.lat is None or where.lon is None:
        return number
    pair = np.unique(visits.user.astype(np.int64) * R + visits.place)
    for z in np.unique(zoom[zoom > 0]).tolist():
        tile_keys(where.lat, where.lon, z, key)
        inside = pair[((zoom == 0) | (zoom >= z))[pair % R]]
        keys, people = np.unique(np.unique(key[inside % R] * U + inside // R) // U, return_counts=True)
        tiles = np.flatnonzero(zoom == z)
        at = find_in(keys, key[tiles])
        number[tiles] = np.where(at >= 0, people[at], 0) if len(keys) else 0
    return number


def rare_places(case: Case) -> Finding:
    """
    Ask how much fakes are at places that few people of the data visit (A13).

    Real people go to such places of others too, and walks over everybody's moves, which know nobody. Where a release
    promises that its places have `m_min` visitors, one place is a finding.
    """
    promised, m_min, places = case.options["m_min"], case.m_min, np.unique(case.fakes.r[case.fakes.r >= 0])
    mine = np.asarray(case.seeds.visited.sum(axis=0)).ravel() if case.role else case.file
    rare = places[(case.file[places] < m_min) & (case.file[places] > 0) & (mine[places] > 0)]
    people = case.seeds if case.strangers is None else case.strangers
    few_others = np.flatnonzero((case.file > 1) & (case.file <= m_min))  # beside the one who goes there
    sides = {"main": (case.fakes, rare), "control": (people, few_others), "null": (case.walks(case.rng()), rare)}
    shares = {
        name: (np.isin(lives.r, few).sum(axis=1) / np.maximum((lives.r >= 0).sum(axis=1), 1))
        for name, (lives, few) in sides.items()
    }
    shares["main"] = by_user(shares["main"], case.units)
    main, control, null = (difference(share, np.zeros(2)) for share in shares.values())
    chance = max(control.high, null.high)
    words = f"{percent(main.value)} of the fakes' time is at places that fewer than {m_min} people of the data visit "
    words += f"({len(rare)} of them); {percent(control.value)} of real people's time is at such places of others."
    bar = 0.0 if promised else chance
    return Finding(
        main,
        control=control,
        null=null,
        baseline=bar,
        bar=bar,
        passed=len(rare) == 0 if promised else main.low <= chance,
        worst_decile=float(np.sort(shares["main"])[::-1][: -(-len(shares["main"]) // 10)].mean()),
        words=words if len(rare) else f"No fake goes to a place that fewer than {m_min} people of the data visit.",
        details={"places": len(rare), "one_user": int((case.file[rare] == 1).sum())},
    )


SHUFFLES = 1000


def order_of_the_list(case: Case) -> Finding:
    """Ask whether neighbours in the list of fakes were made from the same person, or people in their order (A20)."""
    owner, rng = case.link.made_from, case.rng()
    if len(owner) < 4 or not case.options["listed"]:
        raise Needs("the published list of at least 4 fakes (a pool); unpublished fakes have no order yet")

    def statistics(order: Ints) -> Floats:
        """Return the share of neighbours of one person, and how far numbers of people rise or fall along the list."""
        along = np.corrcoef(np.arange(len(order)), order)[0, 1] if order.std() > 0 else 0.0
        return np.array([(order[1:] == order[:-1]).mean(), abs(along)])

    found, chance = statistics(owner), np.array([statistics(rng.permutation(owner)) for _ in range(SHUFFLES)])
    p = (1 + (chance >= found - 1e-12).sum(axis=0)) / (1 + SHUFFLES)
    told = int(np.argmin(p))
    value, often = float(found[told]), float(np.quantile(chance[:, told], 1 - RARELY / 2))
    what = ("Neighbours in the list that were made from one person", "How near the list is to the order of the people")
    words = f"{what[told]}: {percent(value)} (in shuffled lists at most {percent(often)})."
    null, passed = Rate(float(chance[:, told].mean()), 0.0, often), bool(p[told] > RARELY / 2)
    return Finding(Rate(value, value, value), null=null, bar=often, passed=passed, words=words)
