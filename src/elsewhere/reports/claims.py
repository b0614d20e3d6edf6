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
    """Return the attacks of an audit, in the order of their numbers."""
    ids = [name for name in audit or {} if re.fullmatch(r"A\d+", name)]
    return {name: (audit or {})[name] for name in sorted(ids, key=lambda name: int(name[1:]))}


def outcome(finding: Plain) -> str:
    """Return what an attack learnt, in the words of `Finding.outcome`."""
    return str(finding.get("outcome") or NOT_RUN) if finding.get("status") == "run" else NOT_RUN


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
    learnt = [n for n, word in outcomes.items() if word == LEARNT]
    covered = _claim_certificate(audit, run).met
    if len(not_run) == len(outcomes):
        return Advice("no", "Do not publish yet", "Run `elsewhere audit` on them first, and read what it finds.")
    if set(learnt) - set(INSIDE):
        way = "a smaller --eps" if covered else "a theorem (--eps; `elsewhere plan` says whether people are enough)"
        todo = f"Give the fakes only to people who may see the real data, or make others with {way} and read that "
        return Advice("no", "Do not publish openly", f"{todo}report.")
    keep = "Keep the private folder to yourself, and " if run else ""
    if 2 * len(not_run) > len(outcomes) and not covered:
        words = f"Cannot be advised: {len(not_run)} of {len(outcomes)} attacks on people were not run"
        return Advice("care", words, _sentence(f"{keep}run the attacks that are missing before you decide."))
    if learnt or not_run or {WITHIN, ABOVE, UNCLEAR} & set(outcomes.values()):
        words = "A theorem covers everybody in the file: publish with care" if covered else "Publish with care"
        todo = _sentence(f"{keep}publish only if what the attacks found is acceptable to you.")
        return Advice("care", words, todo)
    todo = _sentence(f"{keep}say that this is no proof: it covers only the attacks that were tried.")
    return Advice("yes", "Nothing measured here speaks against publishing", todo)


def three_sentences(audit: Plain | None, run: Mapping[str, Any]) -> list[str]:
    """Return what is safe to say, what an attacker learnt at most and about whom, and what to do."""
    met = [claim for claim in claims(audit, run)[:-1] if claim.met]
    facts = ["these people do not exist"] if run else []
    facts += ["attacks were tried, with what they found"] if findings(audit) else []
    plain = f"{', and '.join(facts) or 'nothing yet'}; no stronger sentence about privacy holds here."
    return [f"Safe to say: {met[-1].sentence if met else plain}", _most_learnt(audit), advice(audit, run).todo]


def _most_learnt(audit: Plain | None) -> str:
    """Return what an attacker learnt at most, and about whom, in the words of the strongest finding."""
    ran = {n: f for n, f in findings(audit).items() if n not in ABOUT_FAKES and outcome(f) != NOT_RUN}
    if not ran:
        return "What an attacker learns is not known: none was let loose on these fakes."
    strongest = ran[strongest_first(ran)[0]]
    start = {
        LEARNT: "An attacker learnt something about the people behind the fakes, at most this",
        WITHIN: "An attacker learnt a little about the people behind the fakes, at most this",
        NOTHING: "No attack learnt anything measurable about the people behind the fakes; the closest",
    }.get(
        outcome(strongest), "Whether an attacker learns anything about the people behind the fakes is open; the closest"
    )
    return f"{start}: {_continued(str(strongest.get('words') or strongest.get('title', '')))}"


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _continued(words: str) -> str:
    return words[:1].lower() + words[1:] if words[1:2].islower() or words[1:2] == " " else words


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
    makers = (_claim_no_shared_place, _claim_others_as_similar, _claim_certificate)
    return [*(claim(audit, run) for claim in makers), _claim_whole_table(audit)]


def _finding(audit: Plain | None, name: str) -> Plain | None:
    """Return the finding of an attack that was run."""
    finding = (audit or {}).get(name)
    return finding if isinstance(finding, Mapping) and finding.get("status") == "run" else None


def _claim_no_shared_place(audit: Plain | None, run: Mapping[str, Any]) -> Claim:
    sentence = "No fake shares a place with the person it was made from."
    a1 = _finding(audit, "A1")
    if a1 is None:
        return Claim(sentence, False, "attack A1 was not run.")
    if a1.get("own_seed_zero") is not True:
        return Claim(sentence, False, f"A1 found otherwise: {_continued(str(a1.get('words', '')))}")
    return Claim(sentence, True, "A1 found none.")


def _claim_others_as_similar(audit: Plain | None, run: Mapping[str, Any]) -> Claim:
    k = (run.get("parameters") or {}).get("k")
    sentence = f"At least {k - 1 if k else 'k - 1'} other people are as similar to each fake, by hours of the week, as "
    sentence += "the person it was made from."
    a5 = _finding(audit, "A5")
    if run.get("method") != "life" or not k:
        return Claim(sentence, False, "this method does not test it.")
    if a5 is None:
        return Claim(sentence, False, "attack A5, whose figure must stand beside it, was not run.")
    beside = f"{sentence[:-1]}; and beside it: {_continued(str(a5.get('words', '')))}"
    return Claim(beside, True, f"every fake passed the privacy test (k = {k}), and A5 was run.")


def _claim_certificate(audit: Plain | None, run: Mapping[str, Any]) -> Claim:
    """Return what the certificate says of the whole release: a theorem, whose code the audit (A9) has tried out."""
    given = run.get("certificate")
    certificate: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    words = " ".join(str(word) for word in certificate.get("words") or ())
    if certificate.get("protects") != "everybody":
        sentence = "Odds about a person change by at most a factor of e^ε, whatever is published."
        return Claim(sentence, False, _continued(words) or "these fakes have no certificate.")
    failures = [condition for condition, state in certificate.get("conditions") or () if state == "not met"]
    if failures:
        return Claim(words, False, f"of its conditions this is not met: {'; '.join(failures)}.")
    eps = certificate.get("eps")
    if not isinstance(eps, (int, float)) or eps > VACUOUS:
        return Claim(words, False, "true as it is, but an ε so large promises nothing in practice.")
    a9 = _finding(audit, "A9")
    if a9 is None:
        return Claim(words, True, "it is the theorem's; its code was not tried out in this run (attack A9).")
    if a9.get("passed") is not True:
        return Claim(words, False, "attack A9 did not find that the noise keeps this promise.")
    return Claim(words, True, "a theorem, and A9 found nothing against its code.")


def _claim_whole_table(audit: Plain | None) -> Claim:
    sentence = "The table of attacks on this page, if it is given whole: with controls, intervals and what was learnt."
    by_id = findings(audit)
    if not by_id:
        return Claim(sentence, False, "no audit was run.")
    not_run = [name for name, finding in by_id.items() if outcome(finding) == NOT_RUN]
    more = f" with the remark that {', '.join(not_run)} were not run" if not_run else ""
    return Claim(sentence, True, f"all {len(by_id)} attacks are listed{more}.")
