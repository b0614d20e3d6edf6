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
    if isinstance(results, AuditResult):
        numbers = {**results.to_dict(), "sizes": plain(results.sizes), "notes": list(results.notes)}
        _add(out.audits, name, numbers)
    elif isinstance(results, PublishingResult):
        _add(out.publishing, name, results.to_dict())
    elif isinstance(results, LbsResult):
        _add(out.lbs, name, results.to_dict())
    elif isinstance(results, Uses):
        _add(out.uses, name, results.to_dict())
    elif isinstance(results, LivesResult):
        _add(out.lives, name, results.to_dict())
    elif isinstance(results, Mapping):
        kind = _kind(results)
        if kind is not None:
            _add(getattr(out, kind), name, plain(dict(results)))
            for beside in ("uses", "lives"):  # the rest of an evaluation
                if isinstance(results.get(beside), Mapping):
                    _add(getattr(out, beside), name, plain(dict(results[beside])))
        else:
            _collect_all([(str(n), r) for n, r in results.items() if n not in BESIDE], out, depth)
    elif isinstance(results, Sequence) and not isinstance(results, (str, bytes)):
        _collect_all([(name, r) for r in results], out, depth)
    else:
        raise InvalidParameter(f"{ACCEPTED}; got {type(results).__name__}.")


def _collect_all(items: list[tuple[str, Any]], out: Results, depth: int) -> None:
    if depth > 2 or not items:
        raise InvalidParameter(f"{ACCEPTED}; nothing of that kind is in it.")
    for name, result in items:
        _collect(result, name, out, depth + 1)


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


def _add(there: dict[str, Plain], name: str, numbers: Plain) -> None:
    other, n = name, 1
    while other in there:
        n += 1
        other = f"{name} {n}".strip()
    there[other] = numbers
