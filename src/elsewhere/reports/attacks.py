"""The audit in plain words: what each attack asks, what it reached beside chance, and the verdict."""

from typing import Any, NamedTuple

from elsewhere.evaluation.attacks.finding import FOR_REVIEW, LEARNT, NOTHING, UNCLEAR, WITHIN
from elsewhere.evaluation.audit import in_one_sentence, named
from elsewhere.reports.given import SMALLEST_GROUP, Plain, findings
from elsewhere.reports.markup import Child, Markup, listing, number, percent, table, tag
from elsewhere.reports.svg import interval, key


class Question(NamedTuple):
    """What an attack asks, in words for everybody; the same in a few words; the unit of its figure."""

    words: str
    short: str
    unit: str = "share"


QUESTIONS = {
    "A1": Question("Does a fake share a place with the person it was made from, or copy anybody's day?", "copying"),
    "A2": Question("Can somebody who knows how each person moves name the person behind a fake?", "naming by moves"),
    "A3": Question("Can one tell from the fakes who was in the data at all?", "who was in the data", "points"),
    "A4": Question("Do the times at which a fake moves, without any place, name the person?", "the times of moves"),
    "A5": Question("Can somebody who knows which places stand in for which name the person?", "the swapped places"),
    "A6": Question("Can the real whereabouts be worked out from the fakes, moment by moment?", "real whereabouts"),
    "A7": Question("Do the places that fakes avoid give the real ones away?", "avoided places"),
    "A8": Question("How many fakes have too few seeds behind them?", "too few behind a fake"),
    "A9": Question("Does the noisy count keep its mathematical promise when it is tried out?", "the count", "ε"),
    "A10": Question("Can one tell who was in the data by how close fakes come to a person?", "closeness", "AUC"),
    "A11": Question("Do the usual attacks on tables (singling out, linking, inferring) work?", "attacks on tables"),
    "A12": Question("Does a detail seen in a fake fit exactly one real person?", "unique details"),
    "A13": Question("Do the fakes go to places that only few people visit?", "rare places", "places"),
    "A14": Question("Do exported averages of the model tell who was in the data?", "exported averages"),
    "A15": Question("Can a trained classifier tell fakes from real people?", "telling fakes from real people", "AUC"),
    "A16": Question("Would simple filters (too fast, wrong hour, nobody there) throw out fakes?", "filters", "points"),
    "A17": Question("If fakes are sent along as decoys, does a service still find the true place?", "decoys"),
    "A18": Question("Does watching the decoys for many days give the home away?", "decoys over many days"),
    "A19": Question("If the service has all published fakes, does it see through the decoys?", "a known pool"),
    "A20": Question("Do number, order or tries of the fakes tell about the person?", "number, order and tries", "bits"),
    "A21": Question("Can the fakes be made again by guessing the random numbers?", "guessed random numbers"),
}
UNITS = (
    "%: share of cases, or of what could be reached. pts: percentage points more than chance, or than real people. "
    "AUC: 0.5 is guessing, 1 is certain. Bits: information about the person, 0 is none. "
    "ε: how much one person can change; for it the end that is proven counts."
)


def shown(value: Any, unit: str) -> str:
    """A figure of an attack in its unit."""
    if not isinstance(value, (int, float)):
        return "–"
    if unit == "share":
        return percent(value)
    if unit == "points":
        return percent(value).replace("%", "pts")
    if unit == "AUC":
        return number(float(value))
    return f"{number(value, 0 if unit == 'places' else 2)} {unit}"


def outcome(finding: Plain) -> str:
    """What an attack learnt, in the words of `Finding.outcome`; from its bar where an older file does not say it."""
    if finding.get("status") != "run":
        return "not run" if finding.get("status") == "not run" else FOR_REVIEW
    known = {True: NOTHING, False: LEARNT}.get(finding.get("passed"), UNCLEAR)  # type: ignore[arg-type]
    return str(finding.get("outcome") or known)


def state(finding: Plain) -> tuple[str, str, str]:
    """Sign, words and class of what an attack learnt: a colour is never alone."""
    words = outcome(finding)
    sign, kind = {LEARNT: ("✗", "bad"), WITHIN: ("•", ""), NOTHING: ("✓", "good"), UNCLEAR: ("?", "")}.get(
        words, ("–", "")
    )
    return sign, words, kind


def sentence(audit: Plain) -> str:
    """How many attacks learnt something, in one sentence."""
    said = in_one_sentence({named(name, f.get("role")): outcome(f) for name, f in findings(audit).items()})
    return said[:1].upper() + said[1:]


def badge(finding: Plain) -> Markup:
    """What the attack learnt, as a small sign with words."""
    sign, word, kind = state(finding)
    return tag("span", f"{sign} {word}", class_=f"verdict {kind}".strip())


def counts(audit: Plain) -> dict[str, list[str]]:
    """Outcome -> ids of the attacks that have it."""
    found: dict[str, list[str]] = {}
    for name, finding in findings(audit).items():
        found.setdefault(state(finding)[1], []).append(name)
    return found


def audit_table(audit: Plain, *, shareable: bool) -> Markup:
    """Every attack that ran, in numbers and in words; then what was not run and what it needs; then reviews."""
    found = findings(audit)
    ran = {name: f for name, f in found.items() if f.get("status") == "run"}
    people = (audit.get("sizes") or {}).get("seed_users")
    decile = not shareable or (isinstance(people, int) and people // 10 >= SMALLEST_GROUP)
    parts: list[Child] = []
    if ran:
        parts += [_numbers(ran, decile), *_roles(ran), tag("h3", "What each attack found"), _words(ran)]
    missing = [(name, f) for name, f in found.items() if f.get("status") == "not run"]
    if missing:
        parts.append(tag("h3", "Not run, and what it needs"))
        parts.append(listing([[tag("b", n), " ", _question(n, f), " Needs ", _needs(f), "."] for n, f in missing]))
    reviews = [(name, f) for name, f in found.items() if f.get("status") == "review"]
    if reviews:
        parts.append(tag("h3", "Judged by review, not by a number"))
        parts.append(listing([[tag("b", n), " ", _question(n, f), " ", f.get("words", "")] for n, f in reviews]))
    absent = [name for name in QUESTIONS if name not in found]
    if absent:
        parts.append(tag("p", f"Not part of this audit: {', '.join(absent)}.", class_="note"))
    return tag("div", parts)


def _numbers(ran: dict[str, Plain], decile: bool) -> Markup:
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
        "Every attack against the people behind the fakes, in the same way against strangers, and by guessing. Of "
        "several attacks on a question the figure is that of the strongest. The bar is held against the upper end of "
        "the interval; where it is chance itself, or what a stranger shows, that must lie in the interval."
    )
    note = f"{UNITS} Worst tenth: the figure over the tenth of the people for whom it is worst."
    if not decile:
        note = f"{UNITS} The worst tenth of the people is left out: it would be the figure of few people, or of nobody knows how many."  # noqa: E501
    rows = [_row(name, f, decile) for name, f in ran.items()]
    numbers = table(head, rows, numbers=range(3, len(head)), caption=caption)
    return tag("div", legend, numbers, tag("p", note, class_="note"), class_="audit")


def _words(ran: dict[str, Plain]) -> Markup:
    """What learnt something first."""
    order = [LEARNT, WITHIN, UNCLEAR, NOTHING]
    items = sorted(ran.items(), key=lambda item: order.index(outcome(item[1])))
    return listing(
        [[badge(f), " ", tag("b", name), " ", f.get("words", ""), _beside(f), _why(name, f)] for name, f in items],
        class_="words",
    )


def _question(name: str, finding: Plain) -> str:
    return QUESTIONS[name].words if name in QUESTIONS else str(finding.get("title", ""))


def _needs(finding: Plain) -> str:
    return str(finding.get("needs") or "an input that was not given").replace("`", "").rstrip(".")


def _row(name: str, f: Plain, decile: bool) -> list[Child]:
    unit = QUESTIONS[name].unit if name in QUESTIONS else "share"
    ends = f.get("interval")
    known = ends if isinstance(ends, list) and all(isinstance(e, (int, float)) for e in ends) else None
    cells: list[Child] = [
        tag(
            "div",
            tag("b", name),
            " ",
            _question(name, f),
            tag("small", f"worst role: {f['role']}") if len(_judged(f)) > 1 else None,
            class_="attack",
        ),
        badge(f),
        _picture(name, f, unit, known),
        tag("b", shown(f.get("main"), unit)),
        "–"
        if known is None
        else f"{shown(known[0], unit).removesuffix(' %').removesuffix(' pts')} to {shown(known[1], unit)}",
        shown(f.get("control"), unit),
        shown(f.get("baseline"), unit),
        shown(f.get("bar"), unit),
    ]
    if decile:
        cells.append(shown(f.get("worst_decile"), unit))
    return cells


def _judged(f: Plain) -> list[str]:
    """Roles in the file on which an attack has a figure."""
    return [role for role, told in (f.get("roles") or {}).items() if told.get("main") is not None]


def _roles(ran: dict[str, Plain]) -> list[Child]:
    """Everybody in the file: the figures of every role, or why there are none; nothing where there are only seeds."""
    names = list(dict.fromkeys(role for f in ran.values() for role in f.get("roles") or {}))
    if len(names) < 2:
        return []
    rows: list[list[Child]] = []
    for name, f in ran.items():
        if f.get("roles"):
            unit = QUESTIONS[name].unit if name in QUESTIONS else "share"
            cells = [_of_role(f["roles"].get(role) or {}, unit) for role in names]
            rows.append([[tag("b", name), " ", QUESTIONS[name].short if name in QUESTIONS else ""], *cells])
    why = {
        f"{role.capitalize()}: {told['words']}"
        for f in ran.values()
        for role, told in (f.get("roles") or {}).items()
        if told.get("main") is None
    }
    caption = (
        "Everybody in the file: what each attack reached against the people of each role (strangers: the people set "
        "aside). Of people of whom no fake was made A2 asks whose moves explain the fakes best, theirs or strangers', "
        "and A13 counts places that few people of the whole file visit."
    )
    return [
        tag("h3", "Everybody in the file"),
        table(["Attack", *(role.capitalize() for role in names)], rows, caption=caption),
        tag("p", " ".join(sorted(why)), class_="note") if why else None,
    ]


def _of_role(told: Plain, unit: str) -> Child:
    if told.get("main") is None:
        return "no verdict"
    strangers = f" (strangers {shown(told['control'], unit)})" if told.get("control") is not None else ""
    return [badge({**told, "status": "run"}), " ", tag("b", shown(told["main"], unit)), tag("small", strangers)]


def _why(name: str, f: Plain) -> str | None:
    """Say what a reader could mistake in an outcome."""
    bar, here, main, words = f.get("bar"), f.get("interval") or [0.0, 0.0], f.get("main"), outcome(f)
    if words == UNCLEAR and bar is not None:
        nobody = (
            "real strangers, or fakes made of nobody, are above the bar too"
            if f.get("reachable") is False
            else "the sample does not decide"
        )
        return f" It cannot be told: {nobody}."
    if bar is None:
        return " There is no bar for this attack."
    if words == NOTHING and here[1] > bar and name not in ("A1", "A8", "A9"):
        return " The interval includes what chance, or a stranger, gives."
    if words == LEARNT and f.get("reachable") is False and main is not None and main > bar:
        free = f.get("null_interval") or [0.0, 1.0]
        nobody = (
            "but the figure is clearly above fakes made of nobody"
            if here[0] > free[1]
            else "even for real people, or for fakes made of nobody"
        )
        return f" With so few people the bar is out of reach, {nobody}."
    return None


def _beside(f: Plain) -> str | None:
    """Attacks that know less or more, beside the main figure of A5."""
    names = {
        "half_known": "half of the pairs",
        "with_classes": "only the classes",
        "with_classes_1h": "the classes, and that a fake may be an hour early or late",
        "with_classes_2h": "the same of two hours",
        "with_classes_day": "the classes, and that a whole day may be two hours early or late",
        "number_of_days": "only how many days people have",
        "whole_life": "the classes, and all days of a fake together",
        "grey_box": "the generator",
        "white_box": "the model",
    }
    there = [(words, f[n]) for n, words in names.items() if isinstance(f.get(n), dict)]
    if not there:
        return None
    return " Knowing " + "; ".join(f"{words}: {percent(rate.get('value'))}" for words, rate in there) + "."


def _picture(name: str, f: Plain, unit: str, ends: list[float] | None) -> Markup | str:
    main = f.get("main")
    if not isinstance(main, (int, float)):
        return "–"
    others = [v for v in (main, f.get("control"), f.get("bar"), *(ends or [])) if isinstance(v, (int, float))]
    low, top = min(0.5 if unit == "AUC" else 0.0, *others), max(*others, 0.0, 1e-9)
    control, bar = (shown(f.get(side), unit) for side in ("control", "bar"))
    label = f"{name}: reached {shown(main, unit)}, strangers {control}, bar {bar}"
    reach = 1.0 if unit == "AUC" else low + 1.06 * (top - low)
    return interval(main, ends, control=f.get("control"), bar=f.get("bar"), low=low, high=reach, label=label)
