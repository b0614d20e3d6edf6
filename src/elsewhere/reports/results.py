"""
What a report is made of: results of audits and of both scenarios, by kind, as plain numbers.

A result may come as the object, or as the dictionary that its `to_dict` wrote to JSON; several of a kind get names.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elsewhere.errors import InvalidParameter
from elsewhere.evaluation.attacks.audit import AuditResult
from elsewhere.evaluation.attacks.finding import plain
from elsewhere.evaluation.lbs.scenario import LbsResult
from elsewhere.evaluation.lives import LivesResult
from elsewhere.evaluation.publishing.scenario import PublishingResult
from elsewhere.evaluation.uses import MEASURES, Uses

ACCEPTED = (
    "`results` must be a `PublishingResult`, an `LbsResult`, an `AuditResult`, `Uses`, a `LivesResult`, the "
    "`to_dict()` of one, or a list or a mapping of names to such results"
)
BESIDE = {"notes", "run", "version", "files"}  # what stands beside results in a file of several
KINDS = {
    AuditResult: "audits",
    PublishingResult: "publishing",
    LbsResult: "lbs",
    Uses: "uses",
    LivesResult: "lives",
}
ATTACK = re.compile(r"A\d+")
SMALLEST_GROUP = 5  # people: the figure of fewer would be somebody's own, and stays out of a shareable report
Plain = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """Results by kind, each name -> plain numbers; names are "" where nobody gave one."""

    audits: dict[str, Plain] = field(default_factory=dict)
    publishing: dict[str, Plain] = field(default_factory=dict)
    lbs: dict[str, Plain] = field(default_factory=dict)
    uses: dict[str, Plain] = field(default_factory=dict)
    lives: dict[str, Plain] = field(default_factory=dict)

    @staticmethod
    def of(results: Any) -> "Results":
        """
        Tell results apart.

        Examples
        --------
        >>> list(Results.of({"ours": {"A1": {"status": "run", "passed": True}}}).audits)
        ['ours']

        """
        out = Results()
        _collect(results, "", out, 0)
        if not (out.audits or out.publishing or out.lbs or out.uses or out.lives):
            raise InvalidParameter(f"{ACCEPTED}; nothing of that kind is in it.")
        return out


def findings(audit: Plain) -> dict[str, Plain]:
    """Return the attacks of an audit, in the order of their numbers."""
    there = [name for name in audit if ATTACK.fullmatch(name) and isinstance(audit[name], Mapping)]
    return {name: audit[name] for name in sorted(there, key=lambda name: int(name[1:]))}


def _collect(results: Any, name: str, out: Results, depth: int) -> None:
    """Add a result, or all results that a list or a mapping holds, to those of its kind in `out`."""
    numbers: list[tuple[str, Plain]] = []
    items: list[tuple[str, Any]] = []
    kind = next((kind for of_type, kind in KINDS.items() if isinstance(results, of_type)), None)
    if kind is not None:
        more = {"sizes": plain(results.sizes), "notes": list(results.notes)} if kind == "audits" else {}
        numbers = [(kind, {**results.to_dict(), **more})]
    elif isinstance(results, Mapping):
        kind = _kind(results)
        if kind is None:
            items = [(str(n), r) for n, r in results.items() if n not in BESIDE]
        else:
            beside = [n for n in ("uses", "lives") if isinstance(results.get(n), Mapping)]  # the rest of an evaluation
            numbers = [(kind, plain(dict(results))), *((n, plain(dict(results[n]))) for n in beside)]
    elif isinstance(results, Sequence) and not isinstance(results, (str, bytes)):
        items = [(name, r) for r in results]
    else:
        raise InvalidParameter(f"{ACCEPTED}; got {type(results).__name__}.")
    if not numbers and (depth > 2 or not items):
        raise InvalidParameter(f"{ACCEPTED}; nothing of that kind is in it.")
    for kind, result in numbers:
        # several of one name are numbered
        of_kind, title, n = getattr(out, kind), name, 1
        while title in of_kind:
            n += 1
            title = f"{name} {n}".strip()
        of_kind[title] = result
    for title, result in items:
        _collect(result, title, out, depth + 1)


def _kind(numbers: Mapping[Any, Any]) -> str | None:
    if {"aggregate", "visits", "allocation"} <= numbers.keys():
        return "publishing"
    if {"measures", "growth", "week"} <= numbers.keys():
        return "lives"
    if {"settings", "generators"} <= numbers.keys():
        return "lbs"
    if {m.id for m in MEASURES} <= numbers.keys():
        return "uses"
    attacks = [numbers[name] for name in numbers if isinstance(name, str) and ATTACK.fullmatch(name)]
    if attacks and all(isinstance(attack, Mapping) and "status" in attack for attack in attacks):
        return "audits"
    return None
