"""
The audit in plain words: what each attack asks and learnt, whether to publish, what may be said (docs/attacks.md).

A sentence may be said only where its condition is met by the results that were given; otherwise the condition that
fails is named. Without an audit nothing may be said about privacy.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from elsewhere.evaluation.attacks.audit import ON_DECOYS, PROMISE
from elsewhere.evaluation.attacks.finding import ABOVE, LEARNT, NOTHING, UNCLEAR, WITHIN
from elsewhere.evaluation.uses import GOOD_FOR, NOT_FOR, ROUGH_FOR
from elsewhere.privacy.certificate import VACUOUS
from elsewhere.reports.charts import Plain


class Question(NamedTuple):
    """What an attack asks; the same in a few words; the unit of its figure; what it learnt, in a sentence about him."""

    words: str
    short: str
    unit: str = "share"
    learnt: str = ""


NAMED = "named the person behind {figure} of the fakes"
QUESTIONS = {
    "A1": Question("Does a fake share a place with the person it was made from, or copy anybody's day?", "copying",
                   learnt="found a place or a day of a real person in {figure} of the fakes"),
    "A2": Question("Can somebody who knows how each person moves name the person behind a fake?", "naming by moves",
                   learnt=f"{NAMED} by knowing how each person moves"),
    "A3": Question("Can one tell from the fakes who was in the data at all?", "who was in the data", "points",
                   "told who was in the data, {figure} more often than by guessing"),
    "A4": Question("Can the person behind a fake be named from the times of its moves alone?", "the times of moves",
                   learnt=f"{NAMED} by knowing when each person moves"),
    "A5": Question("Can somebody who knows which place replaces which name the person?", "the swapped places",
                   learnt=f"{NAMED} by knowing which places are alike and when each person is where"),
    "A6": Question("Can the real places of a person be worked out from the fakes, slot by slot?", "real whereabouts",
                   learnt="found where a person was at {figure} of the times"),
    "A7": Question("Do the places that fakes avoid give the real ones away?", "avoided places",
                   learnt="found where a person was at {figure} of the times, from what the fakes avoid"),
    "A9": Question("Does the noise keep its mathematical promise when it is tested?", "the noise", "ε"),
    "A10": Question("Can one tell who was in the data by how close fakes come to a person?", "closeness", "AUC",
                    "told who was in the data: of two people, one in the data and one not, he picked the right one in "
                    "{figure} of the cases, a guess in 50 %"),
    "A12": Question("Does a detail seen in a fake fit exactly one real person?", "unique details",
                    learnt="found details in {figure} of the fakes that fit one person alone"),
    "A13": Question("Do the fakes go to places that only few people visit?", "rare places", "places",
                    "found {figure} in the fakes that only few people visit"),
    "A15": Question("Can a trained classifier tell fakes from real people?", "telling fakes from real people", "AUC"),
    "A16": Question("Would simple filters (too fast, wrong hour, nobody there) throw out fakes?", "filters", "points"),
    "A17": Question("If fakes are sent along as decoys, does a service still find the true place?", "decoys"),
    "A18": Question("Does watching the decoys for many days give the home away?", "decoys over many days"),
    "A19": Question("If the service has all published fakes, does it see through the decoys?", "a known pool"),
    "A20": Question("Do number, order or attempts of the fakes reveal the person?", "number, order and tries", "bits",
                    "learnt {figure} about a person from the number and order of the fakes"),
}  # fmt: skip
UNITS = (
    "%: share of cases. pts: percentage points more than chance, or than real people. "
    "AUC: 0.5 is guessing, 1 is certain. Bits: information about the person, 0 is none. "
    "ε: how much one person can change what is published; the figure is a proven lower bound, the bar is the claim."
)
# without WANTED no advice is unreserved; INSIDE: the attacker knows which place replaces which
WANTED = ("A1", "A2", "A3", "A4", "A5", "A6", "A10", "A12", "A13")
INSIDE = ("A5", "A6", "A7")


def number(value: Any, digits: int = 3) -> str:
    """Return a number as people read it; "–" where there is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < float("inf"):
        return "–"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) >= 1000):
        return f"{int(value):,}"
    return f"{value:.1g}" if value != 0 and abs(value) < 10**-digits else f"{value:,.{digits}f}"


def percent(value: Any, digits: int = 1) -> str:
    """
    Return a share in per cent; "–" where there is none.

    Examples
    --------
    >>> percent(0.1234), percent(0.0001), percent(0), percent(None)
    ('12.3 %', '<0.1 %', '0.0 %', '–')

    """
    if number(value) == "–":
        return "–"
    small = 0 < value < 10.0 ** -(digits + 2) / 2  # a small share is not none
    return f"<{10.0**-digits:.{digits}f} %" if small else f"{100 * value + 0.0:,.{digits}f} %"


def findings(audit: Plain | None) -> dict[str, Plain]:
    """Return the attacks of an audit, in the order of their numbers."""
    ids = [name for name in audit or {} if re.fullmatch(r"A\d+", name)]
    return {name: (audit or {})[name] for name in sorted(ids, key=lambda name: int(name[1:]))}


def question(name: str, finding: Plain) -> Question:
    """Return what an attack asks and the unit of its figure; of an attack that is not ours, its title."""
    title = str(finding.get("title", name))
    return QUESTIONS.get(name) or Question(title, title)


def format_figure(value: Any, unit: str) -> str:
    """Return a figure of an attack in its unit."""
    if not isinstance(value, (int, float)):
        return "–"
    if unit in ("share", "points"):
        return percent(value).replace("%", "pts" if unit == "points" else "%")
    return number(float(value)) if unit == "AUC" else f"{number(value, 0 if unit == 'places' else 2)} {unit}"


def outcome(finding: Plain) -> str:
    """Return what an attack learnt, in the words of `Finding.outcome`; from its bar where the finding is not ours."""
    if finding.get("status", "run") != "run":
        return "not run"
    if finding.get("outcome"):
        return str(finding["outcome"])
    main, bar, passed = (finding.get(name) for name in ("main", "bar", "passed"))
    if passed is not False and main is not None and bar is not None and main > bar:
        return ABOVE
    return LEARNT if passed is False else NOTHING if passed else UNCLEAR


class Badge(NamedTuple):
    """A verdict: a sign, words, and the kind of its colour, which is never alone."""

    sign: str
    words: str
    kind: str


def outcome_sign(name: str, finding: Plain) -> Badge:
    """Return sign, words and kind of what an attack learnt."""
    words = outcome(finding)
    if words == LEARNT and finding.get("bar") is None and finding.get("passed") is None:
        return Badge("•", f"{words}; there is no bar", "")  # nothing says how much would be too much
    signs = {LEARNT: ("✗", "bad"), WITHIN: ("•", ""), ABOVE: ("≈", "rough"), NOTHING: ("✓", "good"), UNCLEAR: ("?", "")}
    sign, kind = signs.get(words, ("–", ""))
    return Badge(sign, PROMISE.get(words, words) if name == "A9" else words, kind)


class Advice(NamedTuple):
    """Whether to publish: "no", "care" or "yes"; in a few words; and why, with what to do, in three sentences."""

    level: str
    words: str
    because: str


def advice(audit: Plain | None, run: Mapping[str, Any], uses: Plain | None = None) -> Advice:
    """
    Return what the attacks mean for publishing; nothing is advised that no attack has looked at.

    "no" where an attack from outside learnt more about people than its bar allows; "care" where only attacks with
    inside knowledge did, or others learnt something within their bar, are above it without being clearly above chance,
    cannot tell or were not run; otherwise "yes". Where `uses` say that the fakes are good for nothing, publishing makes
    little sense, however private they are.

    Examples
    --------
    >>> advice({"A3": {"status": "run", "passed": False, "main": 0.2}}, {}).level
    'no'
    >>> advice({"A5": {"status": "run", "passed": False, "main": 0.2}}, {}).level
    'care'

    """
    level, words, _ = _judge(audit, run, uses)
    return Advice(level, words, " ".join(three_sentences(audit, run, uses)))


def three_sentences(audit: Plain | None, run: Mapping[str, Any], uses: Plain | None = None) -> list[str]:
    """Return what is safe to say, what an attacker learnt at most and about whom, and what to do."""
    met = [claim for claim in claims(audit, run)[:2] if claim.met]
    safe = (
        f"Safe to say: {met[-1].sentence}" if met else
        "Safe to say: these people do not exist, and the attacks listed below were tried, with what they found; no "
        "stronger sentence about privacy holds here."
    )  # fmt: skip
    return [safe, _most_learnt(audit), _judge(audit, run, uses)[2]]


def _judge(audit: Plain | None, run: Mapping[str, Any], uses: Plain | None) -> tuple[str, str, str]:
    """Return the level, a few words, and what to do."""
    if run.get("reproducible") is True and not run.get("simulated"):
        todo = "Leave out --seed and make them again: whoever knows the random number can make the same fakes."
        return "no", "Do not publish: this is a laboratory run", todo
    outcomes = {n: outcome(f) for n, f in findings(audit).items() if n not in ON_DECOYS}
    if all(word == "not run" for word in outcomes.values()):
        return "no", "Do not publish yet", "Run `elsewhere audit` on them first, and read what it finds."
    learnt = [n for n, word in outcomes.items() if word == LEARNT]
    if set(learnt) - set(INSIDE):
        todo = f"Give the fakes only to people who may see the real data{_safer(run)}."
        return "no", "Do not publish openly", todo
    verdicts = {use.get("verdict") for use in (uses or {}).values() if isinstance(use, Mapping)}
    if NOT_FOR in verdicts and not {GOOD_FOR, ROUGH_FOR} & verdicts:
        todo = "Try more people or more days: nobody could work with these fakes, however private they are."
        return "no", "Publishing makes little sense", todo
    not_run = [n for n in WANTED if outcomes.get(n, "not run") == "not run"]
    keep = "Keep the private folder and the model to yourself, and "
    if 2 * len(not_run) > len(WANTED) and not _covers_everybody(audit, run):
        words = f"Cannot be advised: {len(not_run)} of {len(WANTED)} attacks on people were not run"
        return "care", words, f"{keep}run the attacks that are missing before you decide."
    if learnt or not_run or {WITHIN, ABOVE, UNCLEAR} & set(outcomes.values()):
        words = "A theorem covers everybody in the file: publish with care"
        words = words if _covers_everybody(audit, run) else "Publish with care"
        return "care", words, f"{keep}publish only if what the attacks below found is acceptable to you."
    todo = f"{keep}say that this is no proof: it covers only the attacks that were tried."
    return "yes", "Nothing measured here speaks against publishing", todo


def _most_learnt(audit: Plain | None) -> str:
    """Return what an attacker learnt at most, and about whom; with the figure of strangers beside it."""
    ran = {n: f for n, f in findings(audit).items() if n not in ON_DECOYS and outcome(f) != "not run"}
    ran = {n: f for n, f in ran.items() if question(n, f).learnt and isinstance(f.get("main"), (int, float))}
    if not ran:
        return "What an attacker learns is not known: none was let loose on these fakes."
    order = [LEARNT, WITHIN, ABOVE, UNCLEAR, NOTHING]
    name = min(ran, key=lambda n: (order.index(outcome(ran[n])), -(ran[n].get("risk") or 0.0)))
    words, one = outcome(ran[name]), ran[name]
    unit = question(name, one).unit
    figure, control = (
        "–" if value is None else percent(value, 0) if unit == "AUC" else
        format_figure(max(0.0, value), unit).replace("pts", "points in 100")
        for value in (one.get("main"), one.get("control"))
    )  # fmt: skip
    about = f"the {one['role']}" if one.get("role") not in (None, "seeds") else "the people the fakes were made from"
    phrase = question(name, one).learnt.format(figure=figure)
    beside = f" ({control} where there was nothing to learn)" if control != "–" else ""
    if words in (LEARNT, WITHIN):
        return f"At most, an attacker {phrase}{beside}; this is about {about}."
    if words in (ABOVE, UNCLEAR):
        doubt = "No attack clearly learnt anything, but too few people speak against it"
        return f"{doubt}: an attacker {phrase}{beside}, about {about}."
    return f"No attack learnt anything measurable about {about}; the closest {phrase}{beside}."


def _covers_everybody(audit: Plain | None, run: Mapping[str, Any]) -> bool:
    """Tell whether the certificate holds, and for everybody in the file."""
    certificate = run.get("certificate")
    everybody = isinstance(certificate, Mapping) and certificate.get("protects") == "everybody"
    return everybody and _claim_certificate(audit, run).met


def _safer(run: Mapping[str, Any]) -> str:
    """Return what promises more than this run did, of what these people are enough for."""
    proven = run.get("presets_with_a_theorem")
    if run.get("preset") == "private":
        way = "a smaller --eps"
    elif not isinstance(proven, (list, tuple)):
        way = "a theorem (`elsewhere plan` says whether there are people enough)"
    else:
        way = " or ".join(f"--preset {name}" for name in reversed(proven) if name != run.get("preset"))
    return f", or make others with {way} and read that report" if way else ""


class Claim(NamedTuple):
    """A sentence, whether its condition is met, and what the condition rests on or lacks."""

    sentence: str
    met: bool
    because: str


def claims(audit: Plain | None, run: Mapping[str, Any]) -> list[Claim]:
    """
    Return the claims of the product with their conditions, in order.

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
    return [_claim_no_shared_place(audit, run), _claim_certificate(audit, run), _claim_whole_table(audit)]


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
        share = percent((a1.get("own_shared") or {}).get("value", a1.get("main")))
        copies = a1.get("how") == "whole day" and "own_seed_zero" not in a1
        what = f"{share} of the fakes are somebody's real day" if copies else f"a shared place in {share} of the fakes"
        return Claim(sentence, False, f"A1 found {'that ' * copies}{what}.")
    parameters = run.get("parameters") if isinstance(run.get("parameters"), Mapping) else run
    enforced = parameters.get("par_i") == 0 and parameters.get("intersection") == "set"  # type: ignore[union-attr]
    if enforced and run.get("lives"):
        why = "over several days a fake may share as many places with its seed as half of the strangers do at most."
        return Claim(sentence, False, f"A1 found none on the nearest days, but {why}")
    if enforced and run.get("preset") != "private":
        why = "the privacy test rejects a fake that shares one, unless nearly every stranger does (`par_i` = 0)."
        return Claim(sentence, True, f"A1 found none; {why}")
    return Claim(sentence, False, "A1 found none, but it is not known that the test enforces it (`par_i`).")


def _claim_certificate(audit: Plain | None, run: Mapping[str, Any]) -> Claim:
    """Return what the certificate says of the whole release: a theorem, whose code the audit (A9) has tried out."""
    certificate_given = run.get("certificate")
    certificate: Mapping[str, Any] = certificate_given if isinstance(certificate_given, Mapping) else {}
    words = " ".join(str(word) for word in certificate.get("words") or ())
    if certificate.get("protects") not in ("seeds", "everybody"):
        sentence = "Odds about a person change by at most a factor of e^ε, whatever is published."
        return Claim(sentence, False, words or "these fakes have no certificate.")
    failures = [condition for condition, state in certificate.get("conditions") or () if state == "not met"]
    if failures:
        return Claim(words, False, f"of its conditions this is not met: {'; '.join(failures)}.")
    eps = certificate.get("eps")
    if not isinstance(eps, (int, float)) or eps > VACUOUS:
        return Claim(words, False, "true as it is, but an ε so large promises nothing in practice.")
    a9 = _finding(audit, "A9")
    if a9 is None:
        why = "it is the theorem's, but the mechanism of this run has not been tried out (attack A9 was not run)."
        return Claim(words, certificate.get("protects") != "seeds", why)
    if a9.get("passed") is not True or a9.get("bar") != eps:
        return Claim(words, False, "attack A9 did not find that the noise keeps this promise.")
    return Claim(words, True, "a theorem, and A9 found nothing against its code.")


def _claim_whole_table(audit: Plain | None) -> Claim:
    sentence = "The table of attacks on this page, if it is given whole: with controls, intervals and what was learnt."
    by_id = findings(audit)
    absent = [name for name in QUESTIONS if name not in by_id]
    if not by_id or absent:
        why = f"it is not whole: {', '.join(absent)} are not in it." if by_id else "no audit was run."
        return Claim(sentence, False, why)
    not_run = [name for name, finding in by_id.items() if outcome(finding) == "not run"]
    more = f" with the remark that {', '.join(not_run)} were not run" if not_run else ""
    return Claim(sentence, True, f"all {len(by_id)} attacks are listed{more}.")


def forbidden_claims(audit: Plain | None) -> list[str]:
    """Return what may not be said about any output, with the figure of this one beside it where there is one."""
    ran = {n: f for n in ("A3", "A4", "A5", "A6", "A7", "A10") if (f := _finding(audit, n))}
    about_people = [n for n, f in ran.items() if outcome(f) in (LEARNT, WITHIN)]
    figures = {}
    for name, words in (
        ("A15", "a classifier reaches an AUC of"),
        ("A5", "an attacker who knows which place replaces which names the seed in"),
    ):
        main = (_finding(audit, name) or {}).get("main")
        is_known = isinstance(main, (int, float))
        figures[name] = f": here {words} {format_figure(main, QUESTIONS[name].unit)} ({name})." if is_known else "."
    return [
        "That the fakes give anonymity, or that nothing about anybody can be learnt from them"
        + (f": here {', '.join(about_people)} did learn something." if about_people else "."),
        "That the fakes cannot be told from real people" + figures["A15"],
        "That they are private whatever an adversary knows" + figures["A5"],
        'That a fake is "deniable" because it passed the differential similarity test.',
        "How many fakes passed the rules of the privacy test, as a measure of privacy: passing a filter is not "
        "surviving an attack.",
    ]
