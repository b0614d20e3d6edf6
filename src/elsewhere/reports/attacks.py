"""
The audit in plain words: what each attack asks, what it reached beside chance, and the verdict.

What may be said about this very output, and what may not (docs/attacks.md, "What may be said").

A sentence may be said only where its condition is met by the results that were given; otherwise the condition that
fails is named. Nothing here is a template: without an audit nothing may be said about privacy.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from elsewhere.evaluation.attacks.audit import ON_DECOYS, PROMISE, id_with_role, in_one_sentence
from elsewhere.evaluation.attacks.finding import ABOVE, LEARNT, NOTHING, UNCLEAR, WITHIN
from elsewhere.evaluation.uses import GOOD_FOR, NOT_FOR, ROUGH_FOR
from elsewhere.privacy.certificate import VACUOUS
from elsewhere.reports.markup import Child, Markup, badge, listing, number, percent, table, tag
from elsewhere.reports.results import SMALLEST_GROUP, Plain, findings
from elsewhere.reports.svg import draw_interval, key


class Question(NamedTuple):
    """What an attack asks, in words for everybody; the same in a few words; the unit of its figure."""

    words: str
    short: str
    unit: str = "share"


QUESTIONS = {
    "A1": Question("Does a fake share a place with the person it was made from, or copy anybody's day?", "copying"),
    "A2": Question("Can somebody who knows how each person moves name the person behind a fake?", "naming by moves"),
    "A3": Question("Can one tell from the fakes who was in the data at all?", "who was in the data", "points"),
    "A4": Question("Can the person behind a fake be named from the times of its moves alone?", "the times of moves"),
    "A5": Question("Can somebody who knows which place replaces which name the person?", "the swapped places"),
    "A6": Question("Can the real places of a person be worked out from the fakes, slot by slot?", "real whereabouts"),
    "A7": Question("Do the places that fakes avoid give the real ones away?", "avoided places"),
    "A9": Question("Does the noise keep its mathematical promise when it is tested?", "the noise", "ε"),
    "A10": Question("Can one tell who was in the data by how close fakes come to a person?", "closeness", "AUC"),
    "A12": Question("Does a detail seen in a fake fit exactly one real person?", "unique details"),
    "A13": Question("Do the fakes go to places that only few people visit?", "rare places", "places"),
    "A15": Question("Can a trained classifier tell fakes from real people?", "telling fakes from real people", "AUC"),
    "A16": Question("Would simple filters (too fast, wrong hour, nobody there) throw out fakes?", "filters", "points"),
    "A17": Question("If fakes are sent along as decoys, does a service still find the true place?", "decoys"),
    "A18": Question("Does watching the decoys for many days give the home away?", "decoys over many days"),
    "A19": Question("If the service has all published fakes, does it see through the decoys?", "a known pool"),
    "A20": Question("Do number, order or attempts of the fakes reveal the person?", "number, order and tries", "bits"),
}
UNITS = (
    "%: share of cases. pts: percentage points more than chance, or than real people. "
    "AUC: 0.5 is guessing, 1 is certain. Bits: information about the person, 0 is none. "
    "ε: how much one person can change what is published; the figure is a proven lower bound, the bar is the claim."
)


def question(name: str, finding: Plain) -> Question:
    """Return what an attack asks and the unit of its figure; of an attack that is not ours, its title."""
    return QUESTIONS.get(name) or Question(str(finding.get("title", "")), "")


def format_figure(value: Any, unit: str) -> str:
    """Return a figure of an attack in its unit."""
    if not isinstance(value, (int, float)):
        return "–"
    if unit == "share":
        return percent(value)
    if unit == "points":
        return percent(value).replace("%", "pts")
    if unit == "AUC":
        return number(float(value))
    return f"{number(value, 0 if unit == 'places' else 2)} {unit}"


def format_main(finding: Plain, unit: str) -> str:
    """Return the main figure of an attack in its unit; an ε is a lower bound."""
    text = format_figure(finding.get("main"), unit)
    return f"≥ {text}" if unit == "ε" and text != "–" else text


def outcome(finding: Plain) -> str:
    """Return what an attack learnt, in the words of `Finding.outcome`; from its bar where the finding is not ours."""
    if finding.get("status") != "run":
        return "not run"
    if finding.get("outcome"):
        return str(finding["outcome"])
    main, bar, passed = (finding.get(name) for name in ("main", "bar", "passed"))
    if passed is not False and main is not None and bar is not None and main > bar:
        return ABOVE
    return LEARNT if passed is False else NOTHING if passed else UNCLEAR


def outcome_sign(name: str, finding: Plain) -> tuple[str, str, str]:
    """Return sign, words and kind of what an attack learnt: a colour is never alone."""
    words = outcome(finding)
    if words == LEARNT and finding.get("bar") is None and finding.get("passed") is None:
        return "•", f"{words}; there is no bar", ""  # documented only (A19): nothing says how much would be too much
    sign, kind = {
        LEARNT: ("✗", "bad"),
        WITHIN: ("•", ""),
        ABOVE: ("≈", "rough"),
        NOTHING: ("✓", "good"),
        UNCLEAR: ("?", ""),
    }.get(words, ("–", ""))
    return sign, PROMISE.get(words, words) if name == "A9" else words, kind


def count_outcomes(audit: Plain) -> str:
    """Return how many attacks learnt something, in one sentence."""
    words = in_one_sentence({id_with_role(name, f.get("role")): outcome(f) for name, f in findings(audit).items()})
    return words[:1].upper() + words[1:]


def audit_table(audit: Plain, *, shareable: bool) -> Markup:
    """Tabulate every attack that ran, in numbers and in words; then what was not run and what it needs."""
    by_id = findings(audit)
    ran = {name: f for name, f in by_id.items() if f.get("status") == "run"}
    people = (audit.get("sizes") or {}).get("seed_users")
    decile = not shareable or (isinstance(people, int) and people // 10 >= SMALLEST_GROUP)
    parts: list[Child] = []
    if ran:
        parts += [_attack_table(ran, decile), *_role_table(ran), tag("h3", "What each attack found")]
        order = [LEARNT, WITHIN, ABOVE, UNCLEAR, NOTHING]
        items = [
            [badge(*outcome_sign(n, f)), " ", tag("b", n), " ", f.get("words", ""), *_remarks(n, f)]
            for n, f in sorted(ran.items(), key=lambda item: order.index(outcome(item[1])))
        ]
        parts.append(listing(items, class_="words"))
    not_run = [(name, f) for name, f in by_id.items() if f.get("status") == "not run"]
    if not_run:
        parts.append(tag("h3", "Not run, and what it needs"))
        items = [[tag("b", n), " ", question(n, f).words, f" Needs {_needs(f)}."] for n, f in not_run]
        parts.append(listing(items))
    absent = [name for name in QUESTIONS if name not in by_id]
    if absent:
        parts.append(tag("p", f"Not part of this audit: {', '.join(absent)}.", class_="note"))
    return tag("div", parts)


INPUTS = {  # of an audit, in words
    "`seed_index`": "to know who was made from whom",
    "`holdout`": "real people of whom no fake was made",
    "`classes`": "the classes of the places",
    "`sampler`": "the noisy sums, which only --preset private has",
}


def _needs(finding: Plain) -> str:
    """Return what an attack that was not run needs, in words."""
    needs = str(finding.get("needs") or "an input that was not given").rstrip(".")
    for name, words in INPUTS.items():
        needs = needs.replace(name, words)
    return needs.replace("`", "")


def _attack_table(ran: dict[str, Plain], decile: bool) -> Markup:
    head = ["Attack", "Outcome", "Picture", "Reached", "95 % interval", "Strangers", "Guessing", "Bar"]
    if decile:
        head.append("Worst tenth")
    legend = key(
        [
            ("reached against the people behind the fakes, with its interval", "fake", "circle"),
            ("the same attack against strangers", "test", "hollow"),
            ("bar: the largest acceptable figure", "bad", "tick"),
        ]
    )
    caption = (
        "Every attack against the people behind the fakes, in the same way against strangers, and by guessing. Where "
        "several attacks ask one question, the figure is that of the strongest. The upper end of the interval must not "
        "exceed the bar; where the bar is chance, or what strangers show, it must lie in the interval. Chance is what "
        "the attack reaches where there is nothing to learn. Learnt nothing measurable: the figure is not above the "
        "bar, and cannot be distinguished from chance, even if the interval reaches above the bar. Above its bar, not "
        "clearly above chance: the figure is above the bar, but chance reaches as much, or there are too few people to "
        "decide."
    )
    note = f"{UNITS} Worst tenth: the figure over the tenth of the people for whom it is worst."
    if not decile:
        note = f"{UNITS} The worst tenth of the people is left out: it would be the figure of fewer than 5 people, or their number is not known."  # noqa: E501
    rows = [_attack_row(name, f, decile) for name, f in ran.items()]
    figures = table(head, rows, numbers=range(3, len(head)), caption=caption)
    return tag("div", legend, figures, tag("p", note, class_="note"), class_="audit")


def _attack_row(name: str, f: Plain, decile: bool) -> list[Child]:
    words, _, unit = question(name, f)
    ends = f.get("interval")
    interval = ends if isinstance(ends, list) and all(isinstance(e, (int, float)) for e in ends) else None
    control, bar = (format_figure(f.get(side), unit) for side in ("control", "bar"))
    roles = [role for role, figures in (f.get("roles") or {}).items() if figures.get("main") is not None]
    worst = tag("small", f"worst role: {f['role']}") if len(roles) > 1 else None
    # the picture: from 0 (an AUC from .5) to somewhat above the largest figure
    main, picture = f.get("main"), Markup("–")
    if isinstance(main, (int, float)):
        others = [v for v in (main, f.get("control"), f.get("bar"), *(interval or [])) if isinstance(v, (int, float))]
        low, top = min(0.5 if unit == "AUC" else 0.0, *others), max(*others, 0.0, 1e-9)
        picture = draw_interval(
            main,
            interval,
            control=f.get("control"),
            bar=f.get("bar"),
            low=low,
            high=1.0 if unit == "AUC" else low + 1.06 * (top - low),
            label=f"{name}: reached {format_figure(main, unit)}, strangers {control}, bar {bar}",
        )
    cells: list[Child] = [
        tag("div", tag("b", name), " ", words, worst, class_="attack"),
        badge(*outcome_sign(name, f)),
        picture,
        tag("b", format_main(f, unit)),
        "–"
        if interval is None
        else f"{format_figure(interval[0], unit).removesuffix(' %').removesuffix(' pts')} to "
        f"{format_figure(interval[1], unit)}",
        control,
        format_figure(f.get("baseline"), unit),
        bar,
    ]
    if decile:
        cells.append(format_figure(f.get("worst_decile"), unit))
    return cells


def _role_table(ran: dict[str, Plain]) -> list[Child]:
    """
    Show everybody in the file: the figures of every role, or why there are none; nothing where there are only
    seeds.
    """
    names = list(dict.fromkeys(role for f in ran.values() for role in f.get("roles") or {}))
    if len(names) < 2:
        return []
    rows: list[list[Child]] = []
    for name, f in ran.items():
        if not f.get("roles"):
            continue
        _, short, unit = question(name, f)
        row: list[Child] = [[tag("b", name), " ", short]]
        for role in names:
            figures = f["roles"].get(role) or {}
            if figures.get("main") is None:
                row.append("no verdict")
                continue
            control = figures.get("control")
            strangers = "" if control is None else f" (strangers {format_figure(control, unit)})"
            sign = badge(*outcome_sign(name, {**figures, "status": "run"}))
            row.append([sign, " ", tag("b", format_figure(figures["main"], unit)), tag("small", strangers)])
        rows.append(row)
    reasons = {
        f"{role.capitalize()}: {figures['words']}"
        for f in ran.values()
        for role, figures in (f.get("roles") or {}).items()
        if figures.get("main") is None
    }
    caption = (
        "Everybody in the file: what each attack reached against the people of each role (strangers: the people set "
        "aside). For people of whom no fake was made, A2 asks whether their moves or those of strangers explain the "
        "fakes better, and A13 counts places that few people of the whole file visit."
    )
    return [
        tag("h3", "Everybody in the file"),
        table(["Attack", *(role.capitalize() for role in names)], rows, caption=caption),
        tag("p", " ".join(sorted(reasons)).replace("`", ""), class_="note") if reasons else None,
    ]


KNOWLEDGE = {
    "half_known": "half of the pairs of real and fake places",
    "with_classes": "only the classes",
    "with_classes_1h": "the classes, and that a fake may be an hour early or late",
    "with_classes_2h": "the classes, and that a fake may be two hours early or late",
    "with_classes_day": "the classes, and that a whole day may be two hours early or late",
    "number_of_days": "only how many days people have",
    "whole_life": "the classes, and all days of a fake together",
    "grey_box": "the generator",
    "white_box": "the model",
}


def _remarks(name: str, f: Plain) -> list[str]:
    """Say what attackers who know less or more reach (A5), and what a reader could mistake in an outcome."""
    rates = [f"{percent(f[n].get('value'))} ({words})" for n, words in KNOWLEDGE.items() if isinstance(f.get(n), dict)]
    remarks = [f" Attackers with other knowledge reach {'; '.join(rates)}."] if rates else []
    bar, interval, main, words = f.get("bar"), f.get("interval") or [0.0, 0.0], f.get("main"), outcome(f)
    if bar is None:
        remarks.append(" There is no bar for this attack.")
    elif words == UNCLEAR:
        remarks.append(" The figure is not above the bar, but there are too few people to say that it is below.")
    elif words == ABOVE:
        control = f.get("control")
        reached = control is not None and main is not None and control >= main
        why = "strangers reach as much or more" if reached else "there are too few people to decide"
        remarks.append(f" The figure is above the bar, but not clearly above chance: {why}.")
    elif words == NOTHING and interval[1] > bar and name not in ("A1", "A9"):
        remarks.append(" The interval includes the figure of chance, or of strangers.")
    elif words == LEARNT and f.get("reachable") is False and main is not None and main > bar:
        null = f.get("null_interval") or [0.0, 1.0]
        above = "; this figure is clearly above theirs" if interval[0] > null[1] else ""
        remarks.append(f" Real strangers, or walks made without a seed, exceed the bar too{above}.")
    return remarks


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
    candidates = (
        _claim_no_shared_place(audit, run),
        _claim_certificate(audit, run),
        _claim_whole_table(audit),
    )
    return [claim for claim in candidates if claim is not None]


def _parameter(run: Mapping[str, Any], name: str) -> Any:
    inside = run.get("parameters")
    return inside[name] if isinstance(inside, Mapping) and name in inside else run.get(name)


def _finding(audit: Plain | None, name: str) -> Plain | None:
    """Return the finding of an attack that was run."""
    finding = (audit or {}).get(name)
    return finding if isinstance(finding, Mapping) and finding.get("status") == "run" else None  # type: ignore[return-value]


def _claim_no_shared_place(audit: Plain | None, run: Mapping[str, Any]) -> Claim:
    sentence = "No fake shares a place with the person it was made from."
    a1 = _finding(audit, "A1")
    if a1 is None:
        return Claim(sentence, False, "attack A1 was not run.")
    if a1.get("how") == "whole day" and "own_seed_zero" not in a1:
        return Claim(sentence, False, f"A1 found that {percent(a1.get('main'))} of the fakes are somebody's real day.")
    if a1.get("own_seed_zero") is not True:
        share = (a1.get("own_shared") or {}).get("value", a1.get("main"))
        return Claim(sentence, False, f"A1 found a shared place in {percent(share)} of the fakes.")
    enforced = _parameter(run, "par_i") == 0 and _parameter(run, "intersection") == "set"
    if enforced and run.get("lives"):
        why = "over several days a fake may share as many places with its seed as half of the strangers do at most."
        return Claim(sentence, False, f"A1 found none on the nearest days, but {why}")
    if enforced and run.get("preset") != "private":
        return Claim(
            sentence,
            True,
            "A1 found none; the privacy test rejects a fake that shares one, unless nearly every stranger does "
            "(`par_i` = 0).",
        )
    return Claim(sentence, False, "A1 found none, but it is not known that the test enforces it (`par_i`).")


def _claim_certificate(audit: Plain | None, run: Mapping[str, Any]) -> Claim:
    """Return what the certificate says of the whole release: a theorem, whose code the audit (A9) has tried out."""
    certificate_given = run.get("certificate")
    certificate: Mapping[str, Any] = certificate_given if isinstance(certificate_given, Mapping) else {}
    words = " ".join(str(word) for word in certificate.get("words") or ())
    if certificate.get("protects") != "everybody":
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
        return Claim(words, True, why)
    if a9.get("passed") is not True or a9.get("bar") != eps:
        return Claim(words, False, "attack A9 did not find that the noise keeps this promise.")
    return Claim(words, True, "a theorem, and A9 found nothing against its code.")


def _claim_whole_table(audit: Plain | None) -> Claim:
    sentence = "The table of attacks on this page, if it is given whole: with controls, intervals and what was learnt."
    by_id = findings(audit or {})
    absent = [name for name in QUESTIONS if name not in by_id]
    if not by_id:
        return Claim(sentence, False, "no audit was run.")
    if absent:
        return Claim(sentence, False, f"it is not whole: {', '.join(absent)} are not in it.")
    not_run = [name for name, finding in by_id.items() if outcome(finding) == "not run"]
    more = f" with the remark that {', '.join(not_run)} were not run" if not_run else ""
    return Claim(sentence, True, f"all {len(by_id)} attacks are listed{more}.")


# what advice and claims make of an attack: WANTED, without them no advice is unreserved; INSIDE, the attacker knows
# which place replaces which (if these alone learnt something, the advice is "care", not "no"); AGAINST_ANONYMITY, it
# tells who was in the data, whose fake it is, or where that person was
WANTED = ("A1", "A2", "A3", "A4", "A5", "A6", "A10", "A12", "A13")
INSIDE = ("A5", "A6", "A7")
AGAINST_ANONYMITY = ("A3", "A4", "A5", "A6", "A7", "A10")


def forbidden_claims(audit: Plain | None) -> list[str]:
    """Return what may not be said about any output, with the figure of this one beside it where there is one."""
    learnt = [
        name
        for name in AGAINST_ANONYMITY
        if (finding := _finding(audit, name)) is not None and outcome(finding) in (LEARNT, WITHIN)
    ]
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
        + (f": here {', '.join(learnt)} did learn something." if learnt else "."),
        "That the fakes cannot be told from real people" + figures["A15"],
        "That they are private whatever an adversary knows" + figures["A5"],
        'That a fake is "deniable" because it passed the differential similarity test.',
        "How many fakes passed the rules par_s, par_i and par_d, as a measure of privacy: passing a filter is not "
        "surviving an attack.",
        "That a certificate for the seeds protects the people whom the model was learnt from.",
    ]


class Advice(NamedTuple):
    """Whether to publish: "no", "care" or "yes"; in a few words; and why, with what to do."""

    level: str
    words: str
    because: str


def advice(audit: Plain | None, run: Mapping[str, Any], uses: Plain | None = None) -> Advice:
    """
    Return what the attacks mean for publishing; nothing is advised that no attack has looked at.

    "no" where an attack from outside learnt more about people than its bar allows; "care" where only attacks with
    inside knowledge did, or others learnt something within their bar, are above it without being clearly above chance,
    cannot tell or were not run; otherwise "yes".
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
    if all(word == "not run" for word in about.values()):
        return Advice("no", "Do not publish yet", "No attack was run on these fakes: nothing is known about privacy.")
    ids = [n for n, word in about.items() if word == LEARNT]
    outside, inside = [n for n in ids if n not in INSIDE], [n for n in ids if n in INSIDE]
    if outside:
        whys = [f"Attacks from outside learnt more about real people than the bar allows: {_name_attacks(outside)}."]
        if inside:
            whys.append(f"Attackers who know which place replaces which learnt something too: {_name_attacks(inside)}.")
        whys.append(f"Give the fakes only to people who may see the real data{_safer(run)}.")
        return Advice("no", "Do not publish openly", " ".join(whys))
    within, above, unclear = ([n for n, word in about.items() if word == kind] for kind in (WITHIN, ABOVE, UNCLEAR))
    not_run = [n for n in WANTED if about.get(n, "not run") == "not run"]
    whys = []
    if run.get("simulated"):
        whys.append("These people are simulated: nothing of them is secret, and the run can be repeated.")
    if inside:
        whys.append(
            f"Attackers who know which place replaces which learnt something: {_name_attacks(inside)}. Keep the "
            "private folder and the model to yourself."
        )
    lists = (
        ("Learnt something, within the bar", within),
        ("Above the bar, but not clearly above chance", above),
        ("Too few people to say whether the bar is kept", unclear),
        ("Not run", not_run),
    )
    whys += [f"{what}: {_name_attacks(attacks)}." for what, attacks in lists if attacks]
    verdicts = {use.get("verdict") for use in (uses or {}).values() if isinstance(use, Mapping)}
    if NOT_FOR in verdicts and not {GOOD_FOR, ROUGH_FOR} & verdicts:
        why = "The fakes are good for none of the uses that were judged, not even roughly: nobody could work with them."
        return Advice("no", "Publishing makes little sense", " ".join([why, *whys]))
    if whys[bool(run.get("simulated")) :]:
        if inside or within or above or unclear:
            whys.append("Read what these attacks found before you publish.")
        if not_run:
            whys.append("The report says what the attacks that were not run need.")
        words = "Publish with care"
        if not inside and not not_run and above:
            are = "1 attack is above its" if len(above) == 1 else f"{len(above)} attacks are above their"
            words = f"{are} bar, though not clearly above chance: publish with care"
        elif not inside and not not_run and unclear:
            words = f"For {len(unclear)} of {len(about)} attacks there are too few people to tell: publish with care"
        elif not inside and not not_run:
            words = "No attack learnt more about people than its bar allows: publish with care"
        elif _covers_everybody(audit, run):
            words = "A theorem covers everybody in the file: publish with care"
        elif 2 * len(not_run) > len(WANTED):
            words = f"Cannot be advised: {len(not_run)} of {len(WANTED)} attacks on people were not run"
        return Advice("care", words, " ".join(whys))
    whys.append("This is no proof: it covers only the attacks in the table.")
    return Advice("yes", "Nothing measured here speaks against publishing", " ".join(whys))


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
        way = "a preset with a theorem (`elsewhere plan` says for which there are people enough)"
    else:
        way = " or ".join(f"--preset {name}" for name in reversed(proven) if name != run.get("preset"))
    return f", or make others with {way} and read that report" if way else ""


def _name_attacks(attacks: list[str]) -> str:
    return ", ".join(f"{QUESTIONS[a].short} ({a})" if a in QUESTIONS else a for a in attacks)
