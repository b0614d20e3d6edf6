"""The first screen of the report, in plain words: what this is, what it is good for, whether to publish it."""

from collections.abc import Mapping
from typing import Any

from elsewhere.evaluation.uses import GOOD_FOR, MEASURES, NOT_FOR, ROUGH_FOR, UNKNOWN
from elsewhere.reports.attacks import sentence
from elsewhere.reports.claims import advice
from elsewhere.reports.given import Given, Plain
from elsewhere.reports.lives import in_short
from elsewhere.reports.markup import Child, Markup, listing, number, table, tag
from elsewhere.traces.model import Traces

SIGNS = {GOOD_FOR: ("✓", "good"), ROUGH_FOR: ("≈", "rough"), NOT_FOR: ("✗", "bad"), UNKNOWN: ("?", "")}
RULE = (
    "The rule is the same for all uses and all data. The real people are split into halves, 20 times; one half is "
    "compared with the other, with as many fakes, and with real days in which just this was destroyed (chance). "
    "Good: at most 10 in 100 (one place of ten) worse than the other half of the people, at most a quarter of the way "
    "to chance, and more matches than does not. Rough: at most 25 in 100 worse, nearer to real people than to chance, "
    "and at least a quarter matches. Not for this: further off. Where people differ so much that the other half is no "
    "nearer than chance, half of the way from the real days themselves to chance takes its place."
)


def headline(given: Given, fakes: Traces | None, run: Mapping[str, Any], *, shareable: bool) -> Markup:
    """What this is, what the data are good for, what the attacks learnt, and whether to publish."""
    audit = next(iter(given.audits.values()), None)
    uses = next(iter(given.uses.values()), None)
    edition = (
        tag("p", tag("span", "Shareable edition", class_="edition"), tag("small", " aggregates and fakes only"))
        if shareable
        else tag("p", tag("span", "Owner's edition: private", class_="edition private"),
                 tag("small", " may show real people's days; not to be given away"))
    )  # fmt: skip
    publishing: list[Child] = [tag("h2", "Should they be published?", class_="first"), _advice(audit, run, uses)]
    parts: list[Child] = [edition, tag("p", _what(given, fakes), class_="lead")]
    if uses is None:
        return tag("div", parts, publishing)
    parts.append(tag("p", tag("b", _counted(uses), " ", advice(audit, run, uses).words, "."), class_="lead"))
    lives = next(iter(given.lives.values()), None)
    over_days = None if lives is None else tag("p", tag("a", in_short(lives), href="#lives"))
    good = tag("div", tag("h2", "What are they good for?", class_="first"), _in_short(uses), over_days)
    return tag("div", parts, tag("div", good, tag("div", publishing), class_="two"))


def _what(given: Given, fakes: Traces | None) -> str:
    sizes: Plain = {}
    for results in (given.uses, given.publishing, given.audits):
        sizes = {**(next(iter(results.values()), {}).get("sizes") or {}), **sizes}
    n = sizes.get("fakes") if fakes is None else len(fakes)
    people, days, places = (sizes.get(name) for name in ("people", "days", "places"))
    people = sizes.get("seed_users", sizes.get("users")) if people is None else people
    said = f"{number(n)} synthetic location traces: days" if n else "Synthetic location traces: days"
    if fakes is not None and fakes.U < len(fakes):
        said = f"{number(fakes.U)} people who do not exist, and {number(len(fakes))} days"
    said += " that nobody lived, made to be used in place of real ones"
    said += f" of {number(people)} people" if people else ""
    said += f" ({number(days)} days)" if days and days != people else ""
    return said + (f", at {number(places)} places." if places else ".")


def _counted(uses: Plain) -> str:
    words = [str((uses.get(m.id) or {}).get("verdict")) for m in MEASURES]
    n = {word: words.count(word) for word in SIGNS}
    parts = [f"Good for {n[GOOD_FOR] or 'none'} of {len(words)} uses"]
    also = ((ROUGH_FOR, "rough for"), (NOT_FOR, "not for"), (UNKNOWN, "not known for"))
    parts += [f"{said} {n[word]}" for word, said in also if n[word]]
    return f"{', '.join(parts)}."


def word(use: Plain) -> Markup:
    """The verdict on a use as a small sign with its word."""
    sign, kind = SIGNS.get(str(use.get("verdict")), ("?", ""))
    return tag("span", f"{sign} {use.get('verdict')}", class_=f"verdict {kind}".strip())


def _in_short(uses: Plain) -> Markup:
    items = []
    for m in MEASURES:
        use = uses.get(m.id) or {}
        figure, beside = use.get("figure"), use.get("beside")
        said = f"{figure}; other real people: {beside}" if figure else str(use.get("words", ""))
        items.append([word(use), tag("div", tag("b", use.get("title", m.title)), tag("small", said))])
    note = "Other real people: the same figure between two halves of the real people."
    return tag("div", listing(items, class_="uses"), tag("p", note, class_="note"))


def in_detail(uses: Plain) -> Markup:
    """Every use with all figures and the rule behind the words; sentences stand below the table, for phones' sake."""
    rows, said = [], []
    for m in MEASURES:
        use = uses.get(m.id) or {}
        figures = [_hundred(use.get(name)) for name in ("fakes", "halves", "same", "chance")]
        spread = f" ± {_hundred(use.get('spread'))}" if use.get("spread") is not None else ""
        figures[1] += spread
        rows.append([use.get("title", m.title), word(use), *figures])
        if use.get("words"):
            said.append([tag("b", use.get("title", m.title)), ": ", use["words"]])
    head = ["Use", "Word", "Fakes", "Other half of the people", "Same people", "Chance"]
    caption = (
        "What does not match, of 100 busiest places, people, trips or stays. Means over the splits; ± is the standard "
        "deviation. Same people: real days again, nothing can be closer."
    )
    return tag(
        "div",
        table(head, rows, numbers=range(2, 6), caption=caption),
        listing(said, class_="words") if said else None,
        tag("p", RULE, class_="note"),
    )


def _hundred(value: Any) -> str:
    return f"{100 * value:.0f}" if isinstance(value, (int, float)) else "–"


def _advice(audit: Plain | None, run: Mapping[str, Any], uses: Plain | None) -> Markup:
    said = advice(audit, run, uses)
    kind = {"no": "bad", "care": "rough", "yes": "good"}[said.level]
    sign = {"no": "✗", "care": "≈", "yes": "✓"}[said.level]
    words = [tag("p", tag("b", f"{sign} {said.words}."), class_="lead"), tag("p", said.because)]
    tried = None
    if audit is not None:
        tried = tag("p", sentence(audit), " ", tag("a", "What each attack found", href="#attacks"), ".")
    return tag("div", tag("div", words, class_=f"box {kind}"), tried)
