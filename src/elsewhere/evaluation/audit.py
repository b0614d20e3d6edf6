"""
The audit: attacks on any tool's fakes, each with its control, its chance, its interval and its bar.

`ATTACKS` lists them. A new attack is one function from a `Case` to a `Finding`, in the file of its question, and one
row of that table; what it lacks it says by raising `Needs`, and is then listed as not run.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from elsewhere._version import __version__
from elsewhere.data.slots import Traces
from elsewhere.data.visits import DAY, Ints, Locations, Visits, share_map
from elsewhere.errors import InvalidParameter, InvalidTraces, NotEnoughUsers, require_whole
from elsewhere.evaluation.attack_base import (
    ABOVE,
    LEARNT,
    NOT_RUN,
    NOTHING,
    UNCLEAR,
    WITHIN,
    Case,
    Clock,
    Finding,
    Lives,
    Needs,
    require_rng,
)
from elsewhere.evaluation.attack_copies import copies, order_of_the_list, rare_places
from elsewhere.evaluation.attack_linkage import (
    avoidance,
    background,
    class_linkage,
    move_timing,
    reconstruction,
    reidentification,
    shape_linkage,
)
from elsewhere.evaluation.attack_membership import (
    density_membership,
    likelihood_membership,
    map_membership,
    threshold_canary,
)
from elsewhere.evaluation.attack_noise import noise_audit
from elsewhere.evaluation.attack_realism import filtering, real_or_fake
from elsewhere.scale import map_over


class Attack(NamedTuple):
    """What an attack tries, in a few words, and the function that runs it."""

    title: str
    run: Callable[[Case], Finding]


ATTACKS = {
    "A1": Attack("copied places and days", copies),
    "A2": Attack("naming by moves", reidentification),
    "A3": Attack("who was in the file, by likelihood", likelihood_membership),
    "A4": Attack("naming by the times of moves", move_timing),
    "A5": Attack("naming by how and where people live", class_linkage),
    "A6": Attack("real whereabouts", reconstruction),
    "A7": Attack("avoided places", avoidance),
    "A9": Attack("the noise against its promise", noise_audit),
    "A10": Attack("who was in the file, by closeness and existence", density_membership),
    "A12": Attack("points that fit one person alone", background),
    "A13": Attack("rare places", rare_places),
    "A15": Attack("telling fakes from real people", real_or_fake),
    "A16": Attack("filters", filtering),
    "A20": Attack("the order of the list", order_of_the_list),
    "A22": Attack("who was in the file, by the published map", map_membership),
    "A23": Attack("places at the threshold of visitors", threshold_canary),
    "A24": Attack("naming by the shape of a life", shape_linkage),
}
ALL = tuple(ATTACKS)
EVERYBODY = ("A1", "A2", "A3", "A10", "A12", "A13")  # run against every role in the file
WORST = (LEARNT, WITHIN, ABOVE, UNCLEAR, NOTHING, NOT_RUN)
MOST_PEOPLE = 1000  # of a side: more are sampled
MOST_PAIRS = 6_000_000  # of a fake and a person
MOST_DAYS = 28  # that are compared day by day; of longer records the week
MINUTES = 30  # of a slot of visits
HOLD = {True: 2 * 3600, False: DAY}  # seconds for which somebody who stays, or checks in, is taken to be still there
OPTIONS = {"m_min": 5, "shadows": 16, "count_runs": 20_000, "model": None, "sampler": None, "generator": None}
MONDAY = 4  # 1970-01-05


@dataclass(frozen=True, eq=False)
class AuditResult:
    """What the attacks found, in the order of `ATTACKS`; on how many people and fakes (`sizes`); `notes` on inputs."""

    findings: tuple[Finding, ...]
    sizes: dict[str, int]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        ran = [f for f in self.findings if f.main is not None]
        return f"AuditResult({len(ran)} attacks run, {len(self.flagged)} flagged)"

    def __getitem__(self, attack: str) -> Finding:
        return {f.id: f for f in self.findings}[attack]

    @property
    def flagged(self) -> tuple[str, ...]:
        """Return the ids of the attacks whose bar the fakes do not keep."""
        return tuple(f.id for f in self.findings if f.passed is False)

    def in_words(self) -> str:
        """
        Say in one sentence how many attacks learnt something, how many did not, and how many were not run.

        Examples
        --------
        >>> from elsewhere.evaluation.attack_base import Rate
        >>> rows = Finding("A13", "rare places", main=Rate(3, 3, 3), baseline=0, bar=0, passed=False), Finding("A9")
        >>> AuditResult(rows, {}).in_words()
        'of 2 attacks, 1 learnt something (rare places); 1 was not run.'

        """
        by_outcome: dict[str, list[str]] = {}
        for f in self.findings:
            by_outcome.setdefault(f.outcome, []).append(f.title)
        winners = by_outcome.get(LEARNT, []) + by_outcome.get(WITHIN, [])
        parts = [f"{len(winners)} learnt something ({', '.join(winners)})" if winners else "none learnt anything"]
        open_ones = by_outcome.get(UNCLEAR, []) + by_outcome.get(ABOVE, [])
        if open_ones:
            parts.append(f"for {len(open_ones)} there are too few people to tell ({', '.join(open_ones)})")
        idle = len(by_outcome.get(NOT_RUN, []))
        if idle:
            parts.append(f"{idle} {'was' if idle == 1 else 'were'} not run")
        return f"of {len(self.findings)} attacks, {'; '.join(parts)}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers by attack: main, control, baseline, interval, bar, passed, ...; ready for JSON."""
        return {f.id: f.to_dict() for f in self.findings}

    def table(self) -> list[dict[str, Any]]:
        """Return a row per attack: id, attack, main, low, high, control, baseline, risk, bar, passed, words ...."""
        names = ("main", "control", "baseline", "risk", "bar", "passed", "worst_decile", "status", "outcome", "words")
        rows = []
        for f in self.findings:
            figures = f.to_dict()
            low, high = figures["interval"] or (None, None)
            rows.append({"id": f.id, "attack": f.title, "low": low, "high": high} | {n: figures[n] for n in names})
        return rows


# -- inputs ------------------------------------------------------------------------------------------------------------


def fill_slots(visits: Visits, origin: int, minutes: float, n: int) -> Ints:
    """
    Return (U, n) the place of each user in each slot from `origin` on, -1 where nobody was seen.

    It is that of the last visit that begins before the middle of the slot, while it lasts, and for a while after it if
    another follows.
    """
    v, step = visits, round(60 * minutes)
    timed = bool((v.end > v.start).any())
    first = -((origin + (step // 2 if timed else step - 1) - v.start) // step)
    row = np.full((v.U, n), -1, dtype=np.int64)
    inside = np.flatnonzero((first < n) & (v.end >= origin))
    row[v.user[inside], np.maximum(first[inside], 0)] = inside
    row = np.maximum.accumulate(row, axis=1)
    begin, until = origin + step * np.arange(n), v.end[np.maximum(row, 0)]
    followed = row < (v.offsets[1:] - 1)[:, None]
    there = (row >= 0) & ((begin < until) | (followed & (begin < until + HOLD[timed])))
    if not timed:
        there |= (row >= 0) & (begin <= until) & (until < begin + step)
    return np.where(there, v.place[np.maximum(row, 0)], -1).astype(np.int64)


def put_on_clock(visits: Visits, like: Lives) -> Lives:
    """Return visits in the slots of other lives, on their map."""
    clock, where = like.clock, like.locations
    place = visits.locations.match(where)[visits.place]
    known = visits if (place >= 0).all() else visits.select(place >= 0)
    known = known.replace(place=place[place >= 0], locations=where)
    step = round(60 * clock.minutes)
    if clock.period == 0:
        n = int(clock.second[-1]) // step + 1
        return Lives(fill_slots(known, clock.origin, clock.minutes, n)[:, clock.second // step], where, clock, known)
    origin = _first_monday(int(known.start.min()))
    n = -(-(int(known.end.max()) + 1 - origin) // clock.period) * (clock.period // step)
    r = fill_slots(known, origin, clock.minutes, n)
    user, slot = np.nonzero(r >= 0)
    P, R = clock.period // step, len(where)
    key, times = np.unique((user * P + slot % P) * R + r[user, slot], return_counts=True)
    order = np.lexsort((times, key // R))
    out = np.full((known.U, P), -1, dtype=np.int64)
    out[key[order] // R // P, key[order] // R % P] = key[order] % R  # the last of a slot is the most frequent
    return Lives(out[:, clock.second // step], where, clock, known)


def _first_monday(second: int) -> int:
    return ((second // DAY - MONDAY) // 7 * 7 + MONDAY) * DAY


def find_clock(sides: Mapping[str, Visits], minutes: float) -> Clock:
    """Return the slots in which all sides are compared: by date where fakes are of people's dates, else by the week."""
    people, fakes, step = sides["seeds"], sides["fakes"], round(60 * minutes)
    low, high = int(people.start.min()), int(people.end.max())
    within = float(((fakes.start >= low - DAY) & (fakes.start <= high + DAY)).mean())
    start = min(int(side.start.min()) for side in sides.values())
    end = max(int(side.end.max()) for side in sides.values())
    origin = _first_monday(start)
    period = 0
    if within < 0.8 or end - start > MOST_DAYS * DAY:
        period = 7 * DAY if int(fakes.end.max() - fakes.start.min()) > DAY else DAY
    n = period // step if period else (end - origin) // step + 1
    if DAY % step:
        period, n = 0, min(n, MOST_DAYS * DAY // step)
    return Clock(minutes, origin, period, np.arange(n, dtype=np.int64) * step)


def to_visits(given: Any, name: str, where: Locations, clock: Mapping[str, Any]) -> tuple[Visits, float | None]:
    """Return one side as visits, and the minutes of its slots if it had any; plain tables have the slots of `clock`."""
    found = getattr(given, "visits", given)
    if isinstance(given, Visits) or (isinstance(found, Visits) and not isinstance(given, Traces)):
        return found, None
    try:
        table = given if isinstance(given, Traces) else Traces(getattr(given, "r", given), where, **clock)
    except InvalidTraces as error:
        raise InvalidTraces(error.args[0].replace("`r`", f"`{name}`"), code=error.code) from None
    return table.visits(), table.step_minutes


def _map_of(*given: Any) -> Locations:
    try:
        return Locations(n=max(1, 1 + max(int(np.max(np.asarray(getattr(t, "r", t)))) for t in given)))
    except (TypeError, ValueError):
        raise InvalidTraces("give `Visits`, `Traces` or tables of whole numbers of places.", code="E_NUMBER") from None


def seed_numbers(seed_index: ArrayLike, F: int, U: int) -> Ints | None:
    """Check `seed_index` and return it, one person per fake; None where some are not known (-1)."""
    owner = np.asarray(seed_index)
    if owner.shape != (F,) or owner.dtype.kind not in "iu":
        raise InvalidParameter(
            f"`seed_index` must hold {F} whole numbers, one per fake, got shape {owner.shape}, dtype {owner.dtype}.",
            code="E_SHAPE",
            parameter="seed_index",
        )
    if owner.max() >= U or owner.min() < -1:
        raise InvalidParameter(
            f"`seed_index` must hold people of `seeds`, 0 .. {U - 1}.", code="E_INDEX", parameter="seed_index"
        )
    return None if owner.min() < 0 else owner.astype(np.int64)


def _sides(given: Mapping[str, Any], locations: Locations | None) -> tuple[dict[str, Visits], float]:
    """Return all sides as visits on one map, and the minutes of a slot."""
    maps = [side.locations for side in given.values() if isinstance(side, (Traces, Visits))]
    maps = [locations] if locations is not None else maps
    where = maps[0] if maps else _map_of(*given.values())
    slots = next((side for side in given.values() if isinstance(side, Traces)), None)
    clock = {} if slots is None else {"step_minutes": slots.step_minutes, "start": slots.start, "tz": slots.tz}
    pairs = {name: to_visits(side, name, where, clock) for name, side in given.items()}
    minutes = next((m for _, m in pairs.values() if m is not None), MINUTES)
    return dict(zip(pairs, share_map(*(visits for visits, _ in pairs.values())), strict=True)), minutes


def _sample(sides: dict[str, Visits], owner: Ints | None, rng: np.random.Generator) -> tuple[Any, Ints | None, Any]:
    """Return at most so many people and fakes that all pairs can be looked at, and a note on what was left out."""
    sizes = {name: side.U for name, side in sides.items()}
    for name in sides:
        if name == "fakes" or sides[name].U <= MOST_PEOPLE:
            continue
        some = np.sort(rng.permutation(sides[name].U)[:MOST_PEOPLE])
        if name == "seeds" and owner is not None:
            number = np.full(sides[name].U, -1)
            number[some] = np.arange(len(some))
            kept = np.flatnonzero(number[owner] >= 0)
            if len(kept) == 0:
                raise NotEnoughUsers("none of the people drawn for the audit has a fake.")
            sides["fakes"], owner = sides["fakes"].of_users(kept), number[owner[kept]]
        sides[name] = sides[name].of_users(some)
    people = sides["seeds"].U + (sides["holdout"].U if "holdout" in sides else 0)
    most = max(200, MOST_PAIRS // people)
    if sides["fakes"].U > most:
        some = np.sort(rng.permutation(sides["fakes"].U)[:most])
        sides["fakes"], owner = sides["fakes"].of_users(some), None if owner is None else owner[some]
    left = [f"{side.U} of {sizes[name]} {name}" for name, side in sides.items() if side.U < sizes[name]]
    return sides, owner, (f"Attacks looked at {', '.join(left)}, drawn at random.",) if left else ()


def make_case(
    seeds: Any,
    holdout: Any,
    fakes: Any,
    seed_index: ArrayLike | None,
    *,
    classes: Any = None,
    locations: Locations | None = None,
    roles: Mapping[str, Any] | None = None,
    rng: np.random.Generator,
    **options: Any,
) -> tuple[Case, dict[str, Case | str], tuple[str, ...]]:
    """Check all inputs, once; return the case, the same of every other role in the file, and notes."""
    require_rng(rng)
    others = {f"role {name}": people for name, people in (roles or {}).items() if not isinstance(people, str)}
    given = {"seeds": seeds, "holdout": holdout, "fakes": fakes} | others
    sides, minutes = _sides({name: side for name, side in given.items() if side is not None}, locations)
    for name, side in sides.items():
        if side.U < 2 and name != "fakes":
            raise NotEnoughUsers(f"`{name}` must hold at least 2 users, got {side.U}.")
    links = seed_index if seed_index is not None else getattr(fakes, "seed_of_life", None)
    owner = None if links is None else seed_numbers(links, sides["fakes"].U, sides["seeds"].U)
    file = np.sum([sides[name].visitors() for name in ("seeds", *others)], axis=0)
    label = None
    if classes is not None:
        from elsewhere.paper.semantic_clustering import labels_of

        known = labels_of(classes, len(getattr(seeds, "locations", sides["seeds"].locations)))
        # the common map begins with that of the seeds
        label = np.concatenate([known, np.full(sides["seeds"].R - len(known), -1)]).astype(np.int64)
    sides, owner, notes = _sample(sides, owner, rng)
    clock = find_clock(sides, minutes)
    blank = Lives(np.zeros((1, 1), dtype=np.int64), sides["seeds"].locations, clock)
    lives = {name: put_on_clock(side, blank) for name, side in sides.items()}
    used = np.any([(side.r >= 0).any(axis=0) for side in lives.values()], axis=0)
    clock = replace(clock, second=clock.second[used])
    lives = {name: replace(side, r=np.ascontiguousarray(side.r[:, used]), clock=clock) for name, side in lives.items()}
    if clock.period:
        notes += ("Fakes are of other dates than people, or records are long: hours of the week are compared.",)
    case = Case(
        lives["seeds"], lives.get("holdout"), lives["fakes"], owner, label, file, options, int(rng.integers(2**62))
    )
    by_role: dict[str, Case | str] = {}
    for name, people in (roles or {}).items():
        by_role[name] = (
            people
            if isinstance(people, str)
            else replace(case, seeds=lives[f"role {name}"], owner=None, role=name, entropy=case.entropy + 1)
        )
    return case, by_role, notes


# -- running -----------------------------------------------------------------------------------------------------------


def run_attack(attack: str, case: Case, roles: Mapping[str, Case | str]) -> Finding:
    """Return the finding of one attack, that of the worst role in the file where it runs against all."""
    title, run = ATTACKS[attack]

    def attempt(one: Case) -> Finding:
        try:
            return replace(run(one), title=title)
        except Needs as lack:
            return Finding(attack, title, needs=str(lack), words=f"Not run: it needs {lack}.")

    found = {"seeds": attempt(case)}
    if attack not in EVERYBODY or not roles:
        return found["seeds"]
    for role, one in roles.items():
        found[role] = Finding(attack, title, needs=one) if isinstance(one, str) else attempt(one)
    worst = min(found, key=lambda role: WORST.index(found[role].outcome))
    figures = {
        role: {"outcome": f.outcome, "words": f.words or f.needs} | ({} if f.main is None else {"main": f.main})
        for role, f in found.items()
    }
    return replace(found[worst], details={**found[worst].details, "role": worst, "roles": figures})


def audit(
    seeds: Visits | Traces | ArrayLike,
    holdout: Visits | Traces | ArrayLike | None,
    fakes: Any,
    seed_index: ArrayLike | None,
    *,
    attacks: str | Iterable[str] = "all",
    model: Any = None,
    classes: Any = None,
    rng: np.random.Generator,
    locations: Locations | None = None,
    roles: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> AuditResult:
    """
    Attack fakes as an adversary would, and say what each attack reached beside what chance reaches.

    Every attack runs against the people in the file (main), by the same code against strangers (control), and where
    there is nothing to learn; intervals are 95 %, people are the unit, ties are shared. An attack that lacks an input
    is listed as not run, with what it needs.

    Parameters
    ----------
    seeds, holdout
        `Visits`, `Traces`, or plain (N, L) arrays of places, a person per row: the people behind the fakes, and people
        of the same data who met no part of the generator.
    fakes
        The fakes, likewise, a life per user or row; or what `generate_fakes` returns.
    seed_index
        The number in `seeds` of the person each fake was made from; None if unknown.
    attacks
        "all", or ids such as ["A2", "A5"].
    model, classes
        The generator's model, and classes of the places, beside those of A5.
    rng
        Draws people, controls, walks and folds; each attack has a stream of its own.
    locations
        Places of plain arrays; without them distances are not looked at.
    roles
        Other people in the file, by name, or a sentence why there is no verdict on them; A1, A2, A3, A10, A12 and A13
        are run against each, and the finding is that of the worst.
    executor, progress
        Where the attacks run; called with (attacks done, attacks in all).
    **options
        `generator`, a callable `(visits, rng) -> fakes`, for A22, A23 and shadow releases of A10, `shadows` in number;
        `sampler` of certified fakes and `count_runs`, for A9; `m_min`, the visitors that a place must have.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> seeds, holdout = rng.integers(40, size=(2, 60, 12))
    >>> result = audit(seeds, holdout, seeds, np.arange(60), attacks=["A1", "A2", "A9"], rng=rng)
    >>> result.flagged, result.to_dict()["A2"]["main"], result["A9"].needs
    (('A1', 'A2'), 1.0, 'the `sampler` of private fakes')

    """
    ids = _ids(attacks)
    strange = [name for name in options if name not in OPTIONS]
    if strange:
        raise InvalidParameter(
            f"`{strange[0]}` is no option of `audit`; these are: {', '.join(OPTIONS)}.", code="E_CALL"
        )
    chosen = OPTIONS | {"model": model} | options
    for name, least in (("m_min", 1), ("shadows", 2), ("count_runs", 8)):
        require_whole(name, chosen[name], least)
    case, by_role, notes = make_case(
        seeds, holdout, fakes, seed_index, classes=classes, locations=locations, roles=roles, rng=rng, **chosen
    )
    findings = map_over(partial(run_attack, case=case, roles=by_role), ids, executor=executor, progress=progress)
    sizes = {
        "seed_users": len(case.seeds),
        "holdout_users": 0 if case.strangers is None else len(case.strangers),
        "fakes": len(case.fakes),
        "slots": len(case.seeds.clock.second),
        "places": case.seeds.R,
    }
    return AuditResult(tuple(findings), sizes, (*notes, f"elsewhere {__version__}"))


def _ids(attacks: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(attacks, str):
        attacks = ALL if attacks == "all" else [attacks]
    try:
        ids = tuple(dict.fromkeys(attacks))
    except TypeError:
        ids = ()
    unknown = [a for a in ids if a not in ALL]
    if not ids or unknown:
        wrong = ", ".join(map(repr, unknown)) or repr(attacks)
        raise InvalidParameter(
            f'`attacks` must be "all" or some of {", ".join(ALL)}, got {wrong}.', parameter="attacks"
        )
    return tuple(sorted(ids, key=ALL.index))
