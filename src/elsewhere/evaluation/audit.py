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
from elsewhere.data.visits import Ints, Locations, Visits, share_map
from elsewhere.errors import InvalidParameter, NotEnoughUsers, require_rng, require_whole
from elsewhere.evaluation import attack_copies, attack_linkage, attack_membership, attack_noise, attack_realism
from elsewhere.evaluation.attack_base import ABOVE, UNCLEAR, WORST_FIRST, Case, Finding, Lives, Needs
from elsewhere.evaluation.attack_clock import find_clock, put_on_clock
from elsewhere.evaluation.measures import lasting
from elsewhere.evaluation.sides import on_one_map, seed_numbers, with_visits
from elsewhere.scale import map_over


class Attack(NamedTuple):
    """What an attack tries, in a few words, and the function that runs it."""

    title: str
    run: Callable[[Case], Finding]


ATTACKS = {
    "A1": Attack("copied places and days", attack_copies.copies),
    "A2": Attack("naming by moves", attack_linkage.reidentification),
    "A3": Attack("who was in the file, by likelihood", attack_membership.likelihood_membership),
    "A4": Attack("naming by the times of moves", attack_linkage.move_timing),
    "A5": Attack("naming by how and where people live", attack_linkage.class_linkage),
    "A6": Attack("real whereabouts", attack_linkage.reconstruction),
    "A7": Attack("avoided places", attack_linkage.avoidance),
    "A9": Attack("the noise against its promise", attack_noise.noise_audit),
    "A10": Attack("who was in the file, by closeness and existence", attack_membership.density_membership),
    "A13": Attack("rare places", attack_copies.rare_places),
    "A15": Attack("telling fakes from real people", attack_realism.real_or_fake),
    "A20": Attack("the order of the list", attack_copies.order_of_the_list),
    "A22": Attack("who was in the file, by the published map", attack_membership.map_membership),
    "A23": Attack("places at the threshold of visitors", attack_membership.threshold_canary),
    "A24": Attack("naming by the shape of a life", attack_linkage.shape_linkage),
}
ALL = tuple(ATTACKS)
EVERYBODY = ("A1", "A2", "A3", "A10", "A13")  # run against every role in the file
MOST_PEOPLE = 1000  # of a side: more are sampled
MOST_PAIRS = 6_000_000  # of a fake and a person
MINUTES = 30  # of a slot of visits
OPTIONS = {"m_min": None, "shadows": 16, "count_runs": 20_000, "model": None, "sampler": None, "generator": None}


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

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers by attack: main, control, baseline, interval, bar, passed, ...; ready for JSON."""
        return {f.id: f.to_dict() for f in self.findings}


# -- inputs ------------------------------------------------------------------------------------------------------------


def _sides(given: Mapping[str, Any], locations: Locations | None) -> tuple[dict[str, Visits], float]:
    """Return all sides as visits on one map, and the minutes of a slot; plain tables have those of the other sides."""
    known = {
        name: v if isinstance(v := getattr(side, "visits", None), Visits) else side for name, side in given.items()
    }
    visits = {name: side for name, side in known.items() if isinstance(side, Visits)}
    where = locations or next((side.locations for side in visits.values()), None)
    tables = on_one_map({name: side for name, side in known.items() if name not in visits}, where)
    minutes = next((table.step_minutes for table in tables.values()), MINUTES)
    visits |= {name: table.visits() for name, table in tables.items()}
    return dict(zip(known, share_map(*(visits[name] for name in known)), strict=True)), minutes


def _sample(sides: dict[str, Visits], owner: Ints | None, rng: np.random.Generator) -> tuple[Any, Ints | None, Any]:
    """Return at most so many people and fakes that all pairs can be looked at, and a note on what was left out."""
    picked = {name: with_visits(side) for name, side in sides.items()}
    seen = {name: len(some) for name, some in picked.items()}
    for name, some in picked.items():
        if name != "fakes" and len(some) > MOST_PEOPLE:
            picked[name] = some[np.sort(rng.permutation(len(some))[:MOST_PEOPLE])]
    if owner is not None:  # of the fakes those that were made from people who are kept
        number = np.full(sides["seeds"].U, -1)
        number[picked["seeds"]] = np.arange(len(picked["seeds"]))
        owner = number[owner]
        picked["fakes"] = picked["fakes"][owner[picked["fakes"]] >= 0]
        if len(picked["fakes"]) == 0:
            raise NotEnoughUsers("none of the people drawn for the audit has a fake.")
    most = max(200, MOST_PAIRS // sum(len(picked[name]) for name in ("seeds", "holdout") if name in picked))
    if (n := len(picked["fakes"])) > most:
        picked["fakes"] = picked["fakes"][np.sort(rng.permutation(n)[:most])]
    left = [f"{len(some)} of {seen[name]} {name}" for name, some in picked.items() if len(some) < seen[name]]
    notes = (f"Attacks looked at {', '.join(left)}, drawn at random.",) if left else ()
    sides = {name: side.of_users(picked[name]) for name, side in sides.items()}
    return sides, None if owner is None else owner[picked["fakes"]], notes


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
) -> tuple[Case, dict[str, Case], tuple[str, ...]]:
    """Check all inputs, once; return the case, the same of every other role in the file, and notes."""
    require_rng(rng)
    others = {f"role {name}": people for name, people in (roles or {}).items()}
    given = {"seeds": seeds, "holdout": holdout, "fakes": fakes} | others
    sides, minutes = _sides({name: side for name, side in given.items() if side is not None}, locations)
    for name, side in sides.items():
        if side.U < 2 and name != "fakes":
            raise NotEnoughUsers(f"`{name}` must hold at least 2 users, got {side.U}.")
    links = seed_index if seed_index is not None else getattr(fakes, "seed_of_life", None)
    owner = None if links is None else seed_numbers(links, sides["fakes"].U, sides["seeds"].U, least=-1)
    owner = owner if owner is None or owner.min() >= 0 else None  # some are not known
    # what `generate_fakes` returns is private: it is shuffled when it is published
    options |= {"listed": not hasattr(fakes, "seed_of_life")}
    file = np.sum([attack_copies.people_around(side) for name, side in sides.items() if name != "fakes"], axis=0)
    label = None
    if classes is not None:
        from elsewhere.paper.semantic_clustering import labels_of

        known = labels_of(classes, len(getattr(seeds, "locations", sides["seeds"].locations)))
        # the common map begins with that of the seeds
        label = np.concatenate([known, np.full(sides["seeds"].R - len(known), -1)]).astype(np.int64)
    sides, owner, notes = _sample(sides, owner, rng)
    clock = find_clock(sides, minutes)
    blank = Lives(np.zeros((1, 1), dtype=np.int64), sides["seeds"].locations, clock)
    timed = lasting(*(side for name, side in sides.items() if name != "fakes"))
    lives = {
        name: put_on_clock(side, blank, lasting(side) if name == "fakes" else timed) for name, side in sides.items()
    }
    used = np.any([(side.r >= 0).any(axis=0) for side in lives.values()], axis=0)
    clock = replace(clock, second=clock.second[used])
    lives = {name: replace(side, r=np.ascontiguousarray(side.r[:, used]), clock=clock) for name, side in lives.items()}
    if clock.period:
        notes += ("Fakes are of other dates than people, or records are long: hours of the week are compared.",)
    case = Case(
        lives["seeds"], lives.get("holdout"), lives["fakes"], owner, label, file, options, int(rng.integers(2**62))
    )
    by_role = {
        name: replace(case, seeds=lives[f"role {name}"], owner=None, role=name, entropy=case.entropy + 1)
        for name in roles or ()
    }
    return case, by_role, notes


# -- running -----------------------------------------------------------------------------------------------------------


def run_attack(attack: str, case: Case, roles: Mapping[str, Case]) -> Finding:
    """Return the finding of one attack, that of the worst role in the file where it runs against all."""
    found = {}
    for role, people in {"seeds": case, **(roles if attack in EVERYBODY else {})}.items():
        try:
            found[role] = ATTACKS[attack].run(replace(people, attack=attack))
        except Needs as lack:
            found[role] = Finding(needs=str(lack), words=f"Not run: it needs {lack}.")
    worst = min(found, key=lambda role: WORST_FIRST.index(found[role].outcome))
    finding = replace(found[worst], id=attack, title=ATTACKS[attack].title)
    if finding.outcome in (ABOVE, UNCLEAR):
        finding = replace(finding, words=f"{finding.words} No verdict: there are too few people for this bar.")
    if len(found) == 1:
        return finding
    outcomes = {role: f.outcome for role, f in found.items()}
    return replace(finding, details={**finding.details, "role": worst, "roles": outcomes})


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
        The generator's model, for attacks of one's own; classes of the places, by which A5 compares routines too.
    rng
        Draws people, controls, walks and folds; each attack has a stream of its own.
    locations
        Places of plain arrays; without them distances are not looked at.
    roles
        Other people in the file, by name; A1, A2, A3, A10 and A13 are run against each, and the finding is that of the
        worst.
    executor, progress
        Where the attacks run; called with (attacks done, attacks in all).
    **options
        `generator`, a callable `(visits, rng) -> fakes`, for A22, A23 and shadow releases of A10, `shadows` in number;
        `sampler` of certified fakes and `count_runs`, for A9; `m_min`, the visitors that the release
        promises each place to have.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> seeds, holdout = rng.integers(40, size=(2, 60, 12))
    >>> result = audit(seeds, holdout, seeds, np.arange(60), attacks=["A1", "A2", "A9"], rng=rng)
    >>> result.flagged, result.to_dict()["A2"]["main"], result["A9"].needs
    (('A1', 'A2'), 1.0, 'the `sampler` of certified fakes')

    """
    ids = _ids(attacks)
    strange = [name for name in options if name not in OPTIONS]
    if strange:
        raise InvalidParameter(
            f"`{strange[0]}` is no option of `audit`; these are: {', '.join(OPTIONS)}.", code="E_CALL"
        )
    chosen = OPTIONS | {"model": model} | options
    for name, least in (("m_min", 1), ("shadows", 2), ("count_runs", 8)):
        if chosen[name] is not None:
            require_whole(name, chosen[name], least)
    case, by_role, notes = make_case(
        seeds, holdout, fakes, seed_index, classes=classes, locations=locations, roles=roles, rng=rng, **chosen
    )
    findings = map_over(partial(run_attack, case=case, roles=by_role), ids, executor=executor, progress=progress)
    sizes = {
        "seed_users": len(case.seeds),
        "holdout_users": 0 if case.strangers is None else len(case.strangers),
        "fakes": len(case.fakes),
    }
    return AuditResult(tuple(findings), sizes, (*notes, f"elsewhere {__version__}"))


def _ids(attacks: str | Iterable[str]) -> tuple[str, ...]:
    wanted = set(ALL if attacks == "all" else [attacks] if isinstance(attacks, str) else attacks)
    if not wanted or not wanted <= set(ALL):
        wrong = ", ".join(sorted(map(repr, wanted - set(ALL)))) or "none"
        raise InvalidParameter(
            f'`attacks` must be "all" or some of {", ".join(ALL)}, got {wrong}.', parameter="attacks"
        )
    return tuple(attack for attack in ALL if attack in wanted)
