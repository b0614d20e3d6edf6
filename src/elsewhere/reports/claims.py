"""
What may be said about this very output, and what may not (docs/attacks.md, "What may be said").

A sentence may be said only where its condition is met by the results that were given; otherwise the condition that
fails is named. Nothing here is a template: without an audit nothing may be said about privacy.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from elsewhere.evaluation.attacks.finding import FOR_REVIEW, LEARNT, UNCLEAR, WITHIN
from elsewhere.evaluation.audit import ON_DECOYS
from elsewhere.evaluation.uses import GOOD_FOR, NOT_FOR, ROUGH_FOR
from elsewhere.privacy.certificate import VACUOUS
from elsewhere.reports.attacks import QUESTIONS, counts, outcome, shown
from elsewhere.reports.given import Plain, findings
from elsewhere.reports.markup import percent


class Claim(NamedTuple):
    """A sentence, whether its condition is met, and what the condition rests on or lacks."""

    sentence: str
    met: bool
    because: str


def claims(audit: Plain | None, run: Mapping[str, Any]) -> list[Claim]:
    """
    The claims of the product with their conditions, in order.

    Parameters
    ----------
    audit
        Findings by attack, as plain numbers, or None where no audit was run.
    run
        How the fakes were made: `preset`, `parameters`, `certificate`, `reproducible`.

    Examples
    --------
    >>> clean = {"A1": {"status": "run", "own_seed_zero": True, "main": 0.0}}
    >>> [c.met for c in claims(clean, {"parameters": {"par_i": 0, "intersection": "set"}})[:1]]
    [True]

    """
    said = (_no_shared_place(audit, run), _certified(audit, run), _behind(audit, run), _measured(audit))
    return [claim for claim in said if claim is not None]


def _parameter(run: Mapping[str, Any], name: str) -> Any:
    inside = run.get("parameters")
    return inside[name] if isinstance(inside, Mapping) and name in inside else run.get(name)


def _ran(audit: Plain | None, name: str) -> Plain | None:
    finding = (audit or {}).get(name)
    return finding if isinstance(finding, Mapping) and finding.get("status") == "run" else None  # type: ignore[return-value]


def _no_shared_place(audit: Plain | None, run: Mapping[str, Any]) -> Claim:
    sentence = "No fake shares a place with the person it was made from."
    a1 = _ran(audit, "A1")
    if a1 is None:
        return Claim(sentence, False, "attack A1 was not run.")
    if a1.get("how") == "whole day" and "own_seed_zero" not in a1:
        return Claim(sentence, False, f"A1 found that {percent(a1.get('main'))} of the fakes are somebody's real day.")
    if a1.get("own_seed_zero") is not True:
        shared = (a1.get("own_shared") or {}).get("value", a1.get("main"))
        return Claim(sentence, False, f"A1 found a shared place in {percent(shared)} of the fakes.")
    # the deniable preset does not read `par_i`: finding none is luck then
    enforced = _parameter(run, "par_i") == 0 and _parameter(run, "intersection") == "set"
    if enforced and run.get("lives"):
        why = "over several days a fake may share as many places with its seed as half of the strangers do at most."
        return Claim(sentence, False, f"A1 found none on the nearest days, but {why}")
    if enforced and run.get("preset") not in ("deniable", "private"):
        return Claim(sentence, True, "A1 found none, and the test refuses every fake that shares one (`par_i` = 0).")
    return Claim(sentence, False, "A1 found none, but it is not known that the test enforces it (`par_i`).")


def _certified(audit: Plain | None, run: Mapping[str, Any]) -> Claim:
    """What the certificate says of the whole release: a theorem, whose code the audit (A9) has tried out."""
    told = run.get("certificate")
    certificate: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    words = " ".join(str(word) for word in certificate.get("words") or ())
    if certificate.get("protects") not in ("seeds", "everybody"):
        sentence = "Odds about a person change by at most a factor of e^ε, whatever is published."
        return Claim(sentence, False, words or "these fakes have no certificate.")
    failed = [said for said, state in certificate.get("conditions") or () if state == "not met"]
    if failed:
        return Claim(words, False, f"of its conditions this is not met: {'; '.join(failed)}.")
    eps = certificate.get("eps")
    if not isinstance(eps, (int, float)) or eps > VACUOUS:
        return Claim(words, False, "true as it is, but an ε so large promises nothing in practice.")
    a9 = _ran(audit, "A9")
    if a9 is None:
        why = "it is the theorem's, but the mechanism of this run has not been tried out (attack A9 was not run)."
        return Claim(words, certificate.get("protects") != "seeds", why)
    if a9.get("passed") is not True or a9.get("bar") != eps:
        return Claim(words, False, "attack A9 did not find that the count keeps this promise.")
    return Claim(words, True, "a theorem, and A9 found nothing against its code.")


def _behind(audit: Plain | None, run: Mapping[str, Any]) -> Claim | None:
    """That k seeds stand behind every fake, where that was asked for."""
    certificate = run.get("certificate")
    k = certificate.get("k") if isinstance(certificate, Mapping) else None
    if k is None:
        return None
    sentence, a8 = f"At least {k} seeds stand behind every fake.", _ran(audit, "A8")
    if a8 is None:
        return Claim(sentence, False, "attack A8, which counts them, was not run.")
    if a8.get("passed") is not True or a8.get("k") != k:
        return Claim(sentence, False, f"A8 found that {percent(a8.get('main'))} of the fakes have fewer.")
    return Claim(sentence, True, "A8 counted them for every fake that follows seeds.")


def _measured(audit: Plain | None) -> Claim:
    sentence = "The table of attacks on this page: whole, with its controls and intervals, whatever was learnt."
    found = findings(audit or {})
    absent = [name for name in QUESTIONS if name not in found]
    if not found:
        return Claim(sentence, False, "no audit was run.")
    if absent:
        return Claim(sentence, False, f"it is not whole: {', '.join(absent)} are not in it.")
    skipped = counts(audit or {}).get("not run", [])
    more = f" with the remark that {', '.join(skipped)} were not run" if skipped else ""
    return Claim(sentence, True, f"all {len(found)} attacks are listed{more}.")


def may_not(audit: Plain | None) -> list[str]:
    """What may not be said about any output, with the figure of this one beside it where there is one."""
    said = [
        "That the fakes give anonymity, or that nothing about anybody can be learnt from them"
        + _learnt(audit, "A3", "A4", "A5", "A6", "A7", "A10"),
        "That the fakes cannot be told from real people" + _figure(audit, "A15", "a classifier reaches an AUC of"),
        "That they are private whatever an adversary knows"
        + _figure(audit, "A5", "whoever knows which places stand in for which names the seed in"),
        'That a fake is "deniable" because it passed the differential similarity test.',
        "How many fakes passed the rules par_s, par_i and par_d, as a measure of privacy: passing a filter is not "
        "surviving an attack.",
        "That a certificate for the seeds protects the people whom the model was learnt from.",
    ]
    return [s if s.endswith(".") else f"{s}." for s in said]


def _figure(audit: Plain | None, name: str, words: str) -> str:
    finding = _ran(audit, name)
    if finding is None or not isinstance(finding.get("main"), (int, float)):
        return ""
    return f": here {words} {shown(finding.get('main'), QUESTIONS[name].unit)} ({name})"


def _learnt(audit: Plain | None, *names: str) -> str:
    learnt = [n for n in names if (f := _ran(audit, n)) is not None and outcome(f) in (LEARNT, WITHIN)]
    return f": here {', '.join(learnt)} did learn something" if learnt else ""


INSIDE = ("A5", "A6", "A7")  # attacks by whoever knows which places stand in for which
WANTED = ("A1", "A2", "A3", "A4", "A5", "A6", "A10", "A12", "A13")  # without these no advice is unreserved


class Advice(NamedTuple):
    """Whether to publish: "no", "care" or "yes"; in a few words; and why, with what to do."""

    level: str
    words: str
    because: str


def useless(uses: Plain | None) -> bool:
    """Whether something was judged, and the fakes are good for nothing of it, not even roughly."""
    words = [use.get("verdict") for use in (uses or {}).values() if isinstance(use, Mapping)]
    return NOT_FOR in words and not {GOOD_FOR, ROUGH_FOR} & set(words)


def advice(audit: Plain | None, run: Mapping[str, Any], uses: Plain | None = None) -> Advice:
    """
    Return what the attacks mean for publishing; nothing is advised that no attack has looked at.

    "no" where an attack from outside learnt more about people than its bar allows; "care" where only attacks with
    inside knowledge did, or others learnt something within their bar, cannot tell or were not run; otherwise "yes".
    Where `uses` say that the fakes are good for nothing, publishing makes little sense, however private they are.

    Examples
    --------
    >>> advice({"A3": {"status": "run", "passed": False, "main": 0.2}}, {}).level
    'no'
    >>> advice({"A5": {"status": "run", "passed": False, "main": 0.2}}, {}).level
    'care'

    """
    if run.get("reproducible") is True and not run.get("simulated"):
        why = "Whoever knows the random number it started from can make the same fakes again; leave out --seed."
        return Advice("no", "Do not publish: this is a laboratory run", why)
    about = {n: outcome(f) for n, f in findings(audit or {}).items() if n not in ON_DECOYS}
    if all(word in ("not run", FOR_REVIEW) for word in about.values()):
        return Advice("no", "Do not publish yet", "No attack was run on these fakes: nothing is known about privacy.")
    learnt = [n for n, word in about.items() if word == LEARNT]
    outside, inside = [n for n in learnt if n not in INSIDE], [n for n in learnt if n in INSIDE]
    if outside:
        why = (
            f"Attacks from outside learnt more about real people than the bar allows: {_names(outside)}. Give the "
            f"fakes only to whom you may show the real data, or make others with {_safer(run)} and read that report."
        )
        return Advice("no", "Do not publish openly", why)
    within, unclear = ([n for n, word in about.items() if word == kind] for kind in (WITHIN, UNCLEAR))
    missing = [n for n in WANTED if about.get(n, "not run") == "not run"]
    whys = []
    if run.get("simulated"):
        whys.append("These people are simulated: nothing of them is secret, and the run can be repeated.")
    if inside:
        whys.append(
            f"Whoever knows which places stand in for which learnt something: {_names(inside)}. Keep the private "
            "folder and the model to yourself."
        )
    lists = (("Learnt something, within the bar", within), ("Cannot be told", unclear), ("Not run", missing))
    whys += [f"{what}: {_names(attacks)}." for what, attacks in lists if attacks]
    if useless(uses):
        why = "The fakes are good for none of the uses that were judged, not even roughly: nobody could work with them."
        return Advice("no", "Publishing makes little sense", " ".join([why, *whys]))
    if whys[bool(run.get("simulated")) :]:
        whys.append("Read what these attacks found, or need, before you publish.")
        return Advice("care", "Publish with care", " ".join(whys))
    whys.append("This is no proof: it holds for the attacks in the table, and for them alone.")
    return Advice("yes", "Nothing measured here speaks against publishing", " ".join(whys))


def _safer(run: Mapping[str, Any]) -> str:
    """What promises more than this run did."""
    return "a smaller --eps" if run.get("preset") == "private" else "--preset private (or deniable)"


def _names(attacks: list[str]) -> str:
    return ", ".join(f"{QUESTIONS[a].short} ({a})" if a in QUESTIONS else a for a in attacks)
