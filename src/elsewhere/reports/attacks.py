"""The audit in plain words: what each attack asks, what it reached beside chance, and the verdict."""

from typing import Any, NamedTuple

from elsewhere.reports.given import Plain, findings
from elsewhere.reports.markup import Child, Markup, listing, number, percent, table, tag
from elsewhere.reports.svg import interval, key

SMALLEST_GROUP = 5  # a worst tenth of fewer people would be somebody's own figure


class Question(NamedTuple):
    """What an attack asks, in words for everybody, and the unit of its figure."""

    words: str
    unit: str = "share"


QUESTIONS = {
    "A1": Question("Does a fake share a place with the person it was made from, or copy anybody's day?"),
    "A2": Question("Can somebody who knows how each person moves name the person behind a fake?"),
    "A3": Question("Can one tell from the fakes who was in the data at all?", "advantage"),
    "A4": Question("Do the times at which a fake moves, without any place, name the person behind it?"),
    "A5": Question("Can somebody who knows which places stand in for which name the person behind a fake?"),
    "A6": Question("Can the real whereabouts be worked out from the fakes, moment by moment?"),
    "A7": Question("Do the places that fakes avoid give the real ones away?"),
    "A8": Question("How many fakes have too few other people who could have been behind them?"),
    "A9": Question("Does the randomised gate keep its mathematical promise when it is tried out?"),
    "A10": Question("Can one tell who was in the data by how close the fakes come to a person?", "AUC"),
    "A11": Question("Do the usual attacks on tables (singling out, linking, inferring) work on the fakes?"),
    "A12": Question("Does a detail seen in a fake fit exactly one real person?"),
    "A13": Question("Do the fakes go to places that only few people visit?", "places"),
    "A14": Question("Do exported averages of the model tell who was in the data?"),
    "A15": Question("Can a trained classifier tell fakes from real people?", "AUC"),
    "A16": Question("Would simple filters throw out the fakes: too fast, wrong hour, nobody goes there?", "points"),
    "A17": Question("If fakes are sent along as decoys, does a service still find the true place?"),
    "A18": Question("Does watching the decoys for many days give the home away?"),
    "A19": Question("If the service has all published fakes, does it see through the decoys?"),
    "A20": Question("Do the number and order of the fakes, or the tries they took, tell about the person?", "bits"),
    "A21": Question("Can the fakes be made again by guessing the random numbers?"),
}
UNITS = {
    "share": "share of cases",
    "advantage": "gain over guessing, in points",
    "AUC": "AUC: 0.5 is guessing, 1 is certain",
    "points": "difference to real people, in points",
    "places": "number of places",
    "bits": "bits of information",
}


def shown(value: Any, unit: str) -> str:
    """A figure of an attack in its unit."""
    if unit in ("share", "advantage", "points"):
        return percent(value)
    return number(value, 0 if unit == "places" else 3 if unit == "AUC" else 2)


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
    """Every attack that ran, then what was not run and what it needs, then reviews."""
    found = findings(audit)
    ran = {name: f for name, f in found.items() if f.get("status") == "run"}
    people = (audit.get("sizes") or {}).get("seed_users")
    decile = not shareable or (isinstance(people, int) and people // 10 >= SMALLEST_GROUP)
    head = ["Attack", "Verdict", "Picture", "Reached", "95 % interval", "Strangers", "Guessing", "Bar"]
    if decile:
        head.append("Worst tenth")
    rows = [_row(name, f, decile) for name, f in ran.items()]
    legend = key(
        [
            ("reached against the people behind the fakes, with interval", "fake", "circle"),
            ("same attack against strangers", "test", "diamond"),
            ("largest acceptable figure", "bad", "tick"),
        ]
    )
    parts: list[Child] = []
    if rows:
        parts.append(legend)
        parts.append(
            table(
                head,
                rows,
                numbers=range(3, len(head)),
                caption="Each attack against the people behind the fakes, against strangers, and by guessing. The bar "
                "is held against the upper end of the interval.",
            )
        )
    if not decile and rows:
        parts.append(
            tag("p", "The worst tenth of the people is left out here: it would be the figure of very few, or of an "
                "unknown number of people.", class_="note")
        )  # fmt: skip
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


def _question(name: str, finding: Plain) -> str:
    return QUESTIONS[name].words if name in QUESTIONS else str(finding.get("title", ""))


def _needs(finding: Plain) -> str:
    return str(finding.get("needs") or "an input that was not given").replace("`", "").rstrip(".")


def _row(name: str, f: Plain, decile: bool) -> list[Child]:
    unit = QUESTIONS[name].unit if name in QUESTIONS else "share"
    ends = f.get("interval")
    known = ends if isinstance(ends, list) and all(isinstance(e, (int, float)) for e in ends) else None
    text = [
        tag("b", name),
        " ",
        _question(name, f),
        tag("small", f.get("words", "")),
        _beside(f),
        tag("small", f"Unit: {UNITS[unit]}."),
    ]
    cells: list[Child] = [
        tag("div", text, class_="attack"),
        [badge(f), _why(f)],
        _picture(name, f, unit, known),
        shown(f.get("main"), unit),
        "–" if known is None else f"{shown(known[0], unit)} to {shown(known[1], unit)}",
        shown(f.get("control"), unit),
        shown(f.get("baseline"), unit),
        shown(f.get("bar"), unit),
    ]
    if decile:
        cells.append(shown(f.get("worst_decile"), unit))
    return cells


def _why(f: Plain) -> Markup | None:
    """A verdict that a reader could mistake."""
    if f.get("passed") is None and f.get("bar") is not None and f.get("status") == "run":
        return tag("small", "too few people to tell: fakes made of nobody do not pass the bar either")
    if f.get("passed") is None and f.get("status") == "run":
        return tag("small", "no bar for this attack")
    if f.get("passed") is False and f.get("reachable") is False:
        return tag("small", "clearly above fakes made of nobody")
    return None


def _beside(f: Plain) -> Markup | None:
    """Attacks that know less or more, beside the main figure of A5."""
    names = {
        "half_known": "knows half of the pairs",
        "rank_by_sim_s": "ranks by similarity",
        "with_classes": "knows the classes",
        "grey_box": "holds the generator",
        "white_box": "holds the model",
    }
    there = [(words, f[n]) for n, words in names.items() if isinstance(f.get(n), dict)]
    if not there:
        return None
    return tag("small", "Also: " + "; ".join(f"{words} {percent(rate.get('value'))}" for words, rate in there) + ".")


def _picture(name: str, f: Plain, unit: str, ends: list[float] | None) -> Markup | str:
    main = f.get("main")
    if not isinstance(main, (int, float)):
        return "–"
    low = 0.5 if unit == "AUC" else min(0.0, main, *(ends or []))
    others = [v for v in (main, f.get("control"), f.get("bar"), *(ends or [])) if isinstance(v, (int, float))]
    top = 1.0 if unit == "AUC" else max(*others, 0.0, 1e-9) * 1.08
    label = f"{name}: reached {shown(main, unit)}, strangers {shown(f.get('control'), unit)}, bar {shown(f.get('bar'), unit)}"  # noqa: E501
    return interval(main, ends, control=f.get("control"), bar=f.get("bar"), low=low, high=top, label=label)
