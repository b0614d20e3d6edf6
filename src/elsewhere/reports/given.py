"""
What a report is made of, told apart and turned into plain numbers: results of audits and of both scenarios.

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
class Given:
    """Results by kind, each name -> plain numbers; names are "" where nobody gave one."""

    audits: dict[str, Plain] = field(default_factory=dict)
    publishing: dict[str, Plain] = field(default_factory=dict)
    lbs: dict[str, Plain] = field(default_factory=dict)
    uses: dict[str, Plain] = field(default_factory=dict)
    lives: dict[str, Plain] = field(default_factory=dict)

    @staticmethod
    def of(results: Any) -> "Given":
        """
        Tell results apart.

        Examples
        --------
        >>> list(Given.of({"ours": {"A1": {"status": "run", "passed": True}}}).audits)
        ['ours']

        """
        found = Given()
        _collect(results, "", found, 0)
        if not (found.audits or found.publishing or found.lbs or found.uses or found.lives):
            raise InvalidParameter(f"{ACCEPTED}; nothing of that kind is in it.")
        return found


def findings(audit: Plain) -> dict[str, Plain]:
    """Return the attacks of an audit, in the order of their numbers."""
    there = [name for name in audit if ATTACK.fullmatch(name) and isinstance(audit[name], Mapping)]
    return {name: audit[name] for name in sorted(there, key=lambda name: int(name[1:]))}


def _collect(results: Any, name: str, found: Given, depth: int) -> None:
    if isinstance(results, AuditResult):
        told = {**results.to_dict(), "sizes": plain(results.sizes), "notes": list(results.notes)}
        _add(found.audits, name, told)
    elif isinstance(results, PublishingResult):
        _add(found.publishing, name, results.to_dict())
    elif isinstance(results, LbsResult):
        _add(found.lbs, name, results.to_dict())
    elif isinstance(results, Uses):
        _add(found.uses, name, results.to_dict())
    elif isinstance(results, LivesResult):
        _add(found.lives, name, results.to_dict())
    elif isinstance(results, Mapping):
        kind = _kind(results)
        if kind is not None:
            _add(getattr(found, kind), name, plain(dict(results)))
            for beside in ("uses", "lives"):  # the rest of an evaluation
                if isinstance(results.get(beside), Mapping):
                    _add(getattr(found, beside), name, plain(dict(results[beside])))
        else:
            _collect_all([(str(n), r) for n, r in results.items() if n not in BESIDE], found, depth)
    elif isinstance(results, Sequence) and not isinstance(results, (str, bytes)):
        _collect_all([(name, r) for r in results], found, depth)
    else:
        raise InvalidParameter(f"{ACCEPTED}; got {type(results).__name__}.")


def _collect_all(items: list[tuple[str, Any]], found: Given, depth: int) -> None:
    if depth > 2 or not items:
        raise InvalidParameter(f"{ACCEPTED}; nothing of that kind is in it.")
    for name, result in items:
        _collect(result, name, found, depth + 1)


def _kind(told: Mapping[Any, Any]) -> str | None:
    if {"aggregate", "visits", "allocation"} <= told.keys():
        return "publishing"
    if {"measures", "growth", "week"} <= told.keys():
        return "lives"
    if {"settings", "generators"} <= told.keys():
        return "lbs"
    if {m.id for m in MEASURES} <= told.keys():
        return "uses"
    attacks = [told[name] for name in told if isinstance(name, str) and ATTACK.fullmatch(name)]
    if attacks and all(isinstance(attack, Mapping) and "status" in attack for attack in attacks):
        return "audits"
    return None


def _add(there: dict[str, Plain], name: str, told: Plain) -> None:
    other, n = name, 1
    while other in there:
        n += 1
        other = f"{name} {n}".strip()
    there[other] = told
