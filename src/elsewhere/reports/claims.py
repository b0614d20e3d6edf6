"""
The audit in plain words: what was learnt at most, whether to publish, what may be said (docs/attacks.md).

A sentence may be said only where its condition is met by the results that were given; otherwise the condition that
fails is named. Without an audit nothing may be said about privacy. Findings are those of `AuditResult.to_dict()`, by
the number of the attack.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from elsewhere.evaluation.attack_base import ABOVE, LEARNT, NOT_RUN, NOTHING, UNCLEAR, WITHIN, WORST_FIRST
from elsewhere.reports.charts import Plain
from elsewhere.synthesis.certificate import VACUOUS

# not about people: noise, telling fakes from real people, decoys
ABOUT_FAKES = ("A9", "A15", "A17", "A18", "A19")
INSIDE = ("A5", "A6", "A7")  # the attacker knows which places are alike, or which place replaces which


def number(value: Any, digits: int = 3) -> str:
    """Return a number as people read it; "–" where there is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < float("inf"):
        return "–"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) > 1):
        return f"{int(value):,}"
    return f"{value:.1g}" if value != 0 and abs(value) < 10**-digits else f"{value:,.{digits}f}"


def findings(audit: Plain | None) -> dict[str, Plain]:
    """Return the attacks of an audit."""
    return {name: finding for name, finding in (audit or {}).items() if re.fullmatch(r"A\d+", name)}


def outcome(finding: Plain) -> str:
    """Return what an attack learnt, in the words of `Finding.outcome`."""
    return str(finding.get("outcome") or NOT_RUN)


SIGNS = {
    LEARNT: ("✗", "bad"),
    WITHIN: ("•", ""),
    ABOVE: ("≈", "rough"),
    NOTHING: ("✓", "good"),
    UNCLEAR: ("?", ""),
    NOT_RUN: ("–", ""),
}


def strongest_first(ran: Mapping[str, Plain]) -> list[str]:
    """Return the attacks by what they learnt, then by how far they are beyond guessing, as a share of what is left."""

    def rank(name: str) -> tuple[int, float]:
        f = ran[name]
        main, guess = f.get("main") or 0.0, f.get("baseline")
        beyond = (main - guess) / (1 - guess) if guess is not None and 0 <= guess < 1 and main <= 1 else 0.0
        return WORST_FIRST.index(outcome(f)), -max(0.0, beyond)

    return sorted(ran, key=rank)


class Advice(NamedTuple):
    """Whether to publish: "no", "care" or "yes"; in a few words; and what to do."""

    level: str
    words: str
    todo: str


def advice(audit: Plain | None, run: Mapping[str, Any]) -> Advice:
    """
    Return what the attacks mean for publishing; nothing is advised that no attack has looked at.

    "no" where an attack from outside learnt more about people than its bar allows; "care" where only attacks with
    inside knowledge did, or others learnt something within their bar, are above it without being clearly above chance,
    cannot tell or were not run; otherwise "yes".

    Examples
    --------
    >>> learnt = {"status": "run", "outcome": "learnt something"}
    >>> advice({"A3": learnt}, {}).level, advice({"A5": learnt}, {}).level
    ('no', 'care')

    """
    if run.get("reproducible") is True and not run.get("simulated"):
        todo = "Whoever knows the random number can make the same fakes: to publish, make them without --seed."
        return Advice("no", "Do not publish: this is a laboratory run", todo)
    outcomes = {n: outcome(f) for n, f in findings(audit).items() if n not in ABOUT_FAKES}
    not_run = [n for n, word in outcomes.items() if word == NOT_RUN]
    learnt = {n for n, word in outcomes.items() if word == LEARNT}
    proven = _certificate_claim(audit, run).met
    if len(not_run) == len(outcomes):
        return Advice("no", "Do not publish yet", "Run `elsewhere audit` on them first, and read what it finds.")
    if learnt - set(INSIDE):
        todo = "Give the fakes only to people who may see the real data, or make others with a "
        todo += "smaller --eps." if proven else "proof (--eps; `elsewhere plan` says whether people are enough)."
        return Advice("no", "Do not publish openly", todo)
    if 2 * len(not_run) > len(outcomes) and not proven:
        words = f"Cannot be advised: {len(not_run)} of {len(outcomes)} attacks on people were not run"
        return Advice("care", words, "Run the attacks that are missing before you decide.")
    if learnt or not_run or {WITHIN, ABOVE, UNCLEAR} & set(outcomes.values()):
        words = "A theorem covers everybody in the file: publish with care" if proven else "Publish with care"
        return Advice("care", words, "Publish only if what the attacks found is acceptable to you.")
    todo = "Publish, and say that this is no proof: it covers only the attacks that were tried."
    return Advice("yes", "Nothing measured here speaks against publishing", todo)


LEARNS = {
    LEARNT: "An attacker learns something",
    WITHIN: "An attacker learns a little",
    NOTHING: "No attack learnt anything that can be measured",
}


def three_sentences(audit: Plain | None, run: Mapping[str, Any]) -> list[str]:
    """Return what is safe to say, what an attacker learnt at most and about whom, and what to do."""
    safe = [claim.sentence for claim in claims(audit, run)[:-1] if claim.met]
    safe = safe or ["These people do not exist; nothing more about privacy holds here." if run else "Nothing yet."]
    ran = {n: f for n, f in findings(audit).items() if n not in ABOUT_FAKES and outcome(f) != NOT_RUN}
    learns = "What an attacker learns is not known: no attack was tried on these fakes."
    if ran:
        strongest = ran[strongest_first(ran)[0]]
        learns = LEARNS.get(outcome(strongest), "It is open whether an attacker learns anything")
        words = strongest.get("words") or strongest.get("title", "")
        learns += f" about the people behind the fakes; the strongest attack: {_continued(words)}"
    return [f"Safe to say: {_continued(safe[-1])}", learns, f"What to do: {_continued(advice(audit, run).todo)}"]


def _continued(words: str) -> str:
    return words[:1].lower() + words[1:]


class Claim(NamedTuple):
    """A sentence, whether its condition is met, and what the condition rests on or lacks."""

    sentence: str
    met: bool
    because: str


def claims(audit: Plain | None, run: Mapping[str, Any]) -> list[Claim]:
    """
    Return the claims of the product with their conditions, the weakest first, and last the table of attacks.

    Parameters
    ----------
    audit
        Findings by attack, as plain numbers, or None where no audit was run.
    run
        How the fakes were made: `method`, `parameters`, `certificate`.

    """
    by_id, missing = findings(audit), {"outcome": NOT_RUN, "words": "not run."}
    a1, a5 = (by_id.get(name, missing) for name in ("A1", "A5"))
    none_shared = a1.get("own_seed_zero") is True
    because = "A1 found none." if none_shared else f"attack A1: {_continued(a1.get('words') or missing['words'])}"
    k = (run.get("parameters") or {}).get("k") if run.get("method") == "life" else None
    alike = (
        f"At least {k - 1 if k else 'k - 1'} other people are as similar to each fake, by hours of the week, as the "
    )
    alike += f"person it was made from; still, {_continued(a5.get('words') or missing['words'])}"
    tested = k is not None and outcome(a5) != NOT_RUN
    test = "every fake passed the privacy test, and attack A5, whose figure must stand beside it, was run."
    absent = [name for name, finding in by_id.items() if outcome(finding) == NOT_RUN]
    whole = "The table of attacks on this page, if it is given whole: with controls, intervals and what was learnt."
    listed = f"all {len(by_id)} attacks are listed{', not run: ' if absent else ''}{', '.join(absent)}."
    return [
        Claim("No fake shares a place with the person it was made from.", none_shared, because),
        Claim(alike, tested, test if tested else f"it is not the case that {test}"),
        _certificate_claim(audit, run),
        Claim(whole, bool(by_id), listed if by_id else "no audit was run."),
    ]


def _certificate_claim(audit: Plain | None, run: Mapping[str, Any]) -> Claim:
    """Return what the certificate says of the whole release: a theorem, whose code the audit (A9) has tried out."""
    certificate: Mapping[str, Any] = run.get("certificate") or {}
    words = " ".join(certificate.get("words") or ())
    if certificate.get("protects") != "everybody":
        sentence = "Odds about a person change by at most a factor of e^ε, whatever is published."
        return Claim(sentence, False, _continued(words) or "these fakes have no certificate.")
    failures = [condition for condition, state in certificate.get("conditions") or () if state == "not met"]
    if failures:
        return Claim(words, False, f"of its conditions this is not met: {'; '.join(failures)}.")
    if not certificate.get("eps", VACUOUS + 1) <= VACUOUS:
        return Claim(words, False, "true as it is, but an ε so large promises nothing in practice.")
    a9 = findings(audit).get("A9", {})
    if outcome(a9) != NOT_RUN and a9.get("passed") is not True:
        return Claim(words, False, "attack A9 did not find that the noise keeps this promise.")
    tried = (
        "its code was not tried out in this run (attack A9)"
        if outcome(a9) == NOT_RUN
        else "A9 found nothing against it"
    )
    return Claim(words, True, f"it is a theorem; {tried}.")
