"""The suite: every attack of the table with what it needs, A1 to A21."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

from elsewhere.evaluation.attacks.background import background
from elsewhere.evaluation.attacks.candidates import TooManyPlaces
from elsewhere.evaluation.attacks.copies import copied_days, copies, copies_of_role
from elsewhere.evaluation.attacks.criterion import behind
from elsewhere.evaluation.attacks.filters import filtering
from elsewhere.evaluation.attacks.finding import LEARNT, NOT_RUN, NOTHING, RUN, UNCLEAR, WITHIN, Finding
from elsewhere.evaluation.attacks.ground import Ground
from elsewhere.evaluation.attacks.linkage import class_linkage, move_timing
from elsewhere.evaluation.attacks.membership import density_membership, likelihood_membership
from elsewhere.evaluation.attacks.neighbours import CannotAudit, count_audit
from elsewhere.evaluation.attacks.realism import real_or_fake
from elsewhere.evaluation.attacks.reconstruct import avoidance, reconstruction
from elsewhere.evaluation.attacks.reidentify import best_explained, reidentification
from elsewhere.evaluation.attacks.reviews import entry
from elsewhere.evaluation.attacks.side_channel import side_channel
from elsewhere.evaluation.attacks.uniqueness import few_in_the_file, unique_places


def behind_decoys(attack: str) -> Callable[[Ground], Finding]:
    """An attack of the location-based service, loaded when it runs."""

    def attempt(ground: Ground) -> Finding:
        found: Finding = getattr(import_module("elsewhere.evaluation.lbs.findings"), f"attack_{attack}")(ground)
        return found

    return attempt


class Attack(NamedTuple):
    """What it tries, how it runs, which optional inputs it cannot do without."""

    title: str
    run: Callable[[Ground], Finding]
    needs: tuple[str, ...]


PAIRS = ("holdout", "seed_index")

ATTACKS = {
    "A1": Attack("copies of the own seed, or of anybody", copies, PAIRS),
    "A2": Attack("MAP re-identification by the moves", reidentification, PAIRS),
    "A3": Attack("membership by likelihood ratio", likelihood_membership, ("holdout",)),
    "A4": Attack("linkage by the times of moves", move_timing, PAIRS),
    "A5": Attack("linkage by which places stand in for which", class_linkage, PAIRS),
    "A6": Attack("reconstruction of the seed, instant by instant", reconstruction, PAIRS),
    "A7": Attack("what the fakes of a seed avoid", avoidance, (*PAIRS, "classes")),
    "A8": Attack("how many seeds stand behind a fake", behind, ("seed_index", "sampler")),
    "A9": Attack("audit of the noisy count on neighbouring sets of seeds", count_audit, ("sampler",)),
    "A10": Attack("membership by densities and distances", density_membership, ("holdout",)),
    "A12": Attack("what a fake shows fits exactly one person", background, PAIRS),
    "A13": Attack("places that few people visit", unique_places, ()),
    "A15": Attack("real people against fakes", real_or_fake, ("holdout",)),
    "A16": Attack("filters for impossible or unlikely points", filtering, ("holdout",)),
    "A17": Attack("localization and tracking behind decoys", behind_decoys("A17"), PAIRS),
    "A18": Attack("intersection over many days", behind_decoys("A18"), PAIRS),
    "A19": Attack("the service holds the pool", behind_decoys("A19"), PAIRS),
    "A20": Attack("what number, order and tries tell of the seed", side_channel, ("seed_index",)),
}
ALL = tuple(f"A{i}" for i in range(1, 22))
# what is asked of everybody in the file, and how of people of whom no fake was made
EVERYBODY = {
    "A1": copies_of_role,
    "A2": best_explained,
    "A3": likelihood_membership,
    "A10": density_membership,
    "A12": background,
    "A13": few_in_the_file,
}
SEEDS, NO_VERDICT = "seeds", "no verdict"
WORST = (LEARNT, WITHIN, UNCLEAR, NOTHING)


def run(attack: str, ground: Ground) -> Finding:
    """The finding of one attack, of the worst role where there are several; what it needs where an input is missing."""
    seeds = _run(attack, ground)
    if attack not in EVERYBODY or not ground.roles:
        return seeds
    found: dict[str, Finding | str] = {SEEDS: seeds}
    for role, there in ground.roles.items():
        try:
            found[role] = there if isinstance(there, str) else replace(EVERYBODY[attack](there), title=seeds.title)
        except TooManyPlaces as error:
            found[role] = f"it needs {error.args[0]}"
    ran = {role: f for role, f in found.items() if isinstance(f, Finding) and f.status == RUN}
    worst = min(ran, key=lambda role: (WORST.index(ran[role].outcome), -_beyond_chance(ran[role])), default=SEEDS)
    head = ran.get(worst, seeds)
    told = {role: _of_role(f, SEEDS if role == SEEDS else ground.roles[role]) for role, f in found.items()}
    beside = f" (The worst of {len(ran)} roles: {worst}.)" if len(ran) > 1 else ""
    return replace(
        head, words=f"{head.words}{beside}", details={**seeds.details, **head.details, "role": worst, "roles": told}
    )


def _beyond_chance(f: Finding) -> float:
    """How far the figure is above strangers, or guessing, in halves of its interval; of equals the seeds come first."""
    chance = f.control if f.control is not None else f.baseline or 0.0
    half = 0.0 if f.interval is None else (f.interval.high - f.interval.low) / 2
    return max(0.0, (f.main or 0.0) - chance) / max(half, 1e-9)


def _of_role(found: Finding | str, ground: Ground | str) -> dict[str, Any]:
    """The figures of one role, or why there is no verdict."""
    if isinstance(found, str) or found.status != RUN:
        why = found if isinstance(found, str) else f"it needs {found.needs}"
        return {"outcome": NO_VERDICT, "words": f"No verdict: {why}."}
    names = ("main", "interval", "control", "baseline", "bar", "passed", "outcome", "words")
    people = {} if isinstance(ground, str) else {"people": ground.seeds.U}
    return {**people, **{name: found.to_dict()[name] for name in names}}


def _run(attack: str, ground: Ground) -> Finding:
    if attack not in ATTACKS:
        return entry(attack)
    title, attempt, needs = ATTACKS[attack]
    missing = [f"`{name}`" for name in needs if name not in ground.given]
    if missing:
        # a copy of somebody's day is one whoever it was made from
        found = copied_days(ground) if attack == "A1" else None
        if found is not None:
            return replace(found, title=title)
        return not_run(attack, title, " and ".join(missing))
    try:
        return replace(attempt(ground), title=title)
    except (TooManyPlaces, CannotAudit) as error:
        return not_run(attack, title, str(error.args[0]))


def not_run(attack: str, title: str, needs: str) -> Finding:
    """The line of an attack that lacks an input."""
    return Finding(attack, title, status=NOT_RUN, needs=needs, words=f"Not run: needs {needs}.")
