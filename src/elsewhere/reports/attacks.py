"""The audit in plain words: what each attack asks, what it reached beside chance, and the verdict."""

from typing import Any, NamedTuple

from elsewhere.reports.given import Plain, findings
from elsewhere.reports.markup import Child, Markup, listing, number, percent, table, tag
from elsewhere.reports.svg import interval, key

SMALLEST_GROUP = 5  # a worst tenth of fewer people would be somebody's own figure


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
    "A8": Question("How many fakes have too few others who could have been behind them?", "too few alternatives"),
    "A9": Question("Does the randomised gate keep its mathematical promise when it is tried out?", "the gate"),
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
    "AUC: 0.5 is guessing, 1 is certain. Bits: information about the person, 0 is none."
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


def state(finding: Plain) -> tuple[str, str, str]:
    """Sign, word and class of a verdict: a colour is never alone."""
    if finding.get("status") == "not run":
        return "–", "not run", ""
    if finding.get("status") == "review":
        return "○", "review", ""
    passed = finding.get("passed")
    if passed is True:
        return "✓", "passed", "good"
    if passed is False:
        return "✗", "failed", "bad"
    return ("?", "cannot tell", "") if finding.get("bar") is not None else ("•", "reported", "")


def badge(finding: Plain) -> Markup:
    """The verdict as a small sign with a word."""
    sign, word, kind = state(finding)
    return tag("span", f"{sign} {word}", class_=f"verdict {kind}".strip())


def counts(audit: Plain) -> dict[str, list[str]]:
    """Verdict -> ids of the attacks that have it."""
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
        parts += [_numbers(ran, decile), tag("h3", "What each attack found"), _words(ran)]
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
    head = ["Attack", "Verdict", "Picture", "Reached", "95 % interval", "Strangers", "Guessing", "Bar"]
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
        "Every attack against the people behind the fakes, in the same way against strangers, and by guessing. The bar "
        "is held against the upper end of the interval."
    )
    note = f"{UNITS} Worst tenth: the figure over the tenth of the people for whom it is worst."
    if not decile:
        note = f"{UNITS} The worst tenth of the people is left out: it would be the figure of few people, or of nobody knows how many."  # noqa: E501
    rows = [_row(name, f, decile) for name, f in ran.items()]
    numbers = table(head, rows, numbers=range(3, len(head)), caption=caption)
    return tag("div", legend, numbers, tag("p", note, class_="note"), class_="audit")


def _words(ran: dict[str, Plain]) -> Markup:
    """Failures first."""
    order = {"failed": 0, "cannot tell": 1, "reported": 1, "passed": 2}
    items = sorted(ran.items(), key=lambda item: order[state(item[1])[1]])
    return listing(
        [[badge(f), " ", tag("b", name), " ", f.get("words", ""), _beside(f), _why(f)] for name, f in items],
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
        tag("div", tag("b", name), " ", _question(name, f), class_="attack"),
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


def _why(f: Plain) -> str | None:
    """A verdict that a reader could mistake."""
    if f.get("passed") is None and f.get("bar") is not None:
        return " Too few people to tell: fakes made of nobody do not pass the bar either."
    if f.get("passed") is None:
        return " There is no bar for this attack."
    if f.get("passed") is False and f.get("reachable") is False:
        return " The bar is out of reach for so few people, but this is clearly above fakes made of nobody."
    return None


def _beside(f: Plain) -> str | None:
    """Attacks that know less or more, beside the main figure of A5."""
    names = {
        "half_known": "half of the pairs",
        "with_classes": "only the classes",
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
