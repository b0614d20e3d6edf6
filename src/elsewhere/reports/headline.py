"""The first screen of the report, in plain words: what this is, and what the attacks found."""

from collections.abc import Mapping
from typing import Any

from elsewhere.reports.attacks import QUESTIONS, counts
from elsewhere.reports.given import Given, Plain
from elsewhere.reports.markup import Child, Markup, number, tag
from elsewhere.traces.model import Traces


def headline(given: Given, fakes: Traces | None, run: Mapping[str, Any], *, shareable: bool) -> Markup:
    """What this is, how many fakes, which attacks passed and failed."""
    audit = next(iter(given.audits.values()), None)
    published = next(iter(given.publishing.values()), None)
    n = None if fakes is None else len(fakes)
    if n is None:
        n = ((audit or {}).get("sizes") or {}).get("fakes") or ((published or {}).get("sizes") or {}).get("fakes")
    people = ((audit or {}).get("sizes") or {}).get("seed_users")
    what = (
        f"This page is about {f'{number(n)} ' if n else ''}synthetic location traces: days that nobody lived, made to "
        "be used in place of real ones"
    )
    what += f" of {number(people)} people." if people else "."
    edition = (
        tag("p", tag("span", "Shareable edition", class_="edition"), tag("small", " aggregates and fakes only"))
        if shareable
        else tag("p", tag("span", "Owner's edition: private", class_="edition private"),
                 tag("small", " may show real people's days; not to be passed on"))
    )  # fmt: skip
    parts: list[Child] = [edition, tag("p", what, class_="lead")]
    parts.append(_verdict(audit))
    if run.get("reproducible") is True:
        parts.append(
            tag("div", tag("p", tag("b", "Laboratory run."), " Whoever knows the random number it started from can "
                "make the same fakes again. Not for publishing."), class_="box bad")
        )  # fmt: skip
    return tag("div", parts)


def _verdict(audit: Plain | None) -> Child:
    if audit is None:
        return tag("p", "No attack was run on them, so this page says nothing about privacy.", class_="lead")
    by = counts(audit)
    failed, passed = by.get("failed", []), by.get("passed", [])
    ran = sum(len(by.get(word, [])) for word in ("passed", "failed", "cannot tell", "reported"))
    tiles = [
        (len(passed), f"of {ran} attacks passed", "good" if passed else ""),
        (len(failed), "attacks failed", "bad" if failed else ""),
        (len(by.get("cannot tell", [])) + len(by.get("reported", [])), "without a verdict", ""),
        (len(by.get("not run", [])), "not run", ""),
        (len(by.get("review", [])), "judged by review", ""),
    ]
    words = (
        f"{len(failed)} of {ran} attacks learnt more than they should: {', '.join(map(_short, failed))}. Read below "
        "what each of them found before passing the fakes on."
        if failed
        else f"Of {ran} attacks that were run none was above its bar."
    )
    return [
        tag("p", words, class_="lead"),
        tag(
            "div",
            [tag("div", tag("b", n), tag("span", w), class_=f"tile {k}".strip()) for n, w, k in tiles],
            class_="tiles",
        ),
    ]


def _short(attack: str) -> str:
    return f"{QUESTIONS[attack].short} ({attack})" if attack in QUESTIONS else attack
