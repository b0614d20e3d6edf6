"""
HTML that is safe by its type: whatever is not `Markup` is escaped on its way in, so no label can become a tag.

    tag("p", "a < b")            ->  <p>a &lt; b</p>
    tag("p", tag("b", label))    ->  <p><b>...</b></p>

The page around any report: one file that opens offline and asks nobody for anything.

Style and script are inlined from the files beside this one. The page carries its own content security policy: only
the script of this file may run, nothing may be fetched, so even a label that slipped through could do no harm.

    write(path, page("Preparation", [section("Places", atlas(...)), section("Days", calendar(...))]))
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from elsewhere.files import write_files

VOID = {"meta", "br", "hr", "input", "circle", "line", "path", "rect", "polygon", "polyline", "use"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = Any  # Markup as it is, None left out, everything else as escaped text


def text(value: Child) -> Markup:
    """Return a value as HTML: `Markup` as it is, None as nothing, lists joined, everything else escaped."""
    if value is None:
        return Markup("")
    if isinstance(value, Markup):
        return value
    if isinstance(value, (list, tuple)):
        return Markup("".join(text(item) for item in value))
    return Markup(escape(str(value), quote=True))


def tag(name: str, /, *children: Child, **attributes: Any) -> Markup:
    """
    Return one element; attributes are written without a trailing `_` and with `-` for `_`, None leaves one out.

    Examples
    --------
    >>> tag("a", "x < y", class_="note", aria_label='"hi"', hidden=None)
    '<a class="note" aria-label="&quot;hi&quot;">x &lt; y</a>'

    """
    attributes_text = ""
    for key, value in attributes.items():
        if value is not None:
            short = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
            attributes_text += f' {key.rstrip("_").replace("_", "-")}="{escape(short, quote=True)}"'
    if name in VOID and not children:
        return Markup(f"<{name}{attributes_text}/>")
    return Markup(f"<{name}{attributes_text}>{text(children)}</{name}>")


def unbroken(sentence: str) -> list[Child]:
    """
    Return a sentence in which no option is broken at the end of a line.

    Examples
    --------
    >>> text(unbroken("or with --preset private and so on"))
    'or with <span class="option">--preset private</span> and so on'

    """
    parts = re.split(r"(--[a-z][\w-]*(?: [a-z0-9]+)?)", sentence)
    return [tag("span", part, class_="option") if i % 2 else part for i, part in enumerate(parts)]


def data(value: Any, *, id: str) -> Markup:  # noqa: A002 (the name of the attribute)
    """Return values for a script, as JSON that no string can break out of."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return tag("script", Markup(text), type="application/json", id=id)


def table(
    head: Sequence[Child],
    rows: Iterable[Sequence[Child]],
    *,
    caption: Child = None,
    numbers: Iterable[int] = (),
) -> Markup:
    """
    Return a table in a box of its own that scrolls sideways, so that the page never does.

    Parameters
    ----------
    head, rows
        Cells: text, or `Markup`. The first cell of a row is its heading.
    caption
        What the table shows, with units; also the name of the box for screen readers.
    numbers
        Columns whose cells are aligned to the right.

    Examples
    --------
    >>> "&lt;b&gt;" in table(["rule"], [["<b>"]], caption="rules")
    True

    """
    right = set(numbers)
    kind = ["number" if i in right else None for i in range(len(head))]
    first = tag("tr", [tag("th", c, class_=k, scope="col") for c, k in zip(head, kind, strict=True)])
    body = [
        tag("tr", [tag("td" if i else "th", c, class_=kind[i], scope=None if i else "row") for i, c in enumerate(row)])
        for row in rows
    ]
    inside = tag("table", tag("thead", first), tag("tbody", body))
    name = str(caption or "table")
    # above the box, not in it: there it would be as wide as the table, and a phone would show half of it
    above = None if caption is None else tag("p", caption, class_="caption")
    return tag("div", above, tag("div", inside, class_="scroll", tabindex="0", role="region", aria_label=name))


def number(value: Any, digits: int = 3) -> str:
    """Return a number as people read it; "–" where there is none."""
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return "–"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) >= 1000):
        return f"{int(value):,}"
    if value != 0 and abs(value) < 10**-digits:
        return f"{value:.1g}" if abs(value) >= 1e-4 else f"{value:.0e}"
    return f"{value:,.{digits}f}"


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
    # a small share is not none
    small = 0 < value < 10.0 ** -(digits + 2) / 2
    return f"<{10.0**-digits:.{digits}f} %" if small else f"{100 * value + 0.0:,.{digits}f} %"


def badge(sign: str, words: str, kind: str) -> Markup:
    """Return a verdict as a small sign with its words, coloured by its kind: "good", "rough", "bad" or ""."""
    return tag("span", f"{sign} {words}", class_=f"verdict {kind}".strip())


def listing(items: Iterable[Child], *, class_: str | None = None) -> Markup:
    """Return a list of points."""
    return tag("ul", [tag("li", item) for item in items], class_=class_)


def pairs(values: Mapping[str, Child]) -> Markup:
    """Return names and values, one under the other on a phone."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in values.items()])


class Section(NamedTuple):
    """A heading, what stands below it, and the name of its anchor."""

    title: str
    body: Markup
    anchor: str


def section(title: str, *children: Child, anchor: str | None = None) -> Section:
    """Return a part of a page; its anchor is made of the title unless it is given."""
    return Section(title, text(children), anchor or re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "part")


def page(title: str, sections: Sequence[Section], *, lead: Child = None, scripts: Sequence[str] = ()) -> Markup:
    """
    Return a whole page.

    Parameters
    ----------
    title
        Title of the window and first heading.
    sections
        In order; those after the first are listed below the title.
    lead
        What stands between the title and the list of sections.
    scripts
        Names of the script files of this folder that the page needs, such as "days.js".

    Examples
    --------
    >>> html = page("a < b", [section("Rules", "none")])
    >>> html.startswith("<!doctype html>"), "<title>a &lt; b</title>" in html, "http" in html.replace("http-equiv", "")
    (True, True, False)

    """
    assets = files("elsewhere.reports")
    script = "".join(assets.joinpath(name).read_text(encoding="utf-8") for name in scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    source = f"'sha256-{digest}'" if script else "'none'"
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {source}; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Markup(assets.joinpath("style.css").read_text(encoding="utf-8"))),
    )
    links = [tag("li", tag("a", s.title, href=f"#{s.anchor}")) for s in sections]
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag("header", tag("h1", title), lead),
        tag("nav", tag("ul", links), aria_label="Contents") if len(sections) > 1 else None,
        tag(
            "main",
            [tag("section", tag("h2", s.title, id=f"{s.anchor}-title"), s.body, id=s.anchor) for s in sections],
            id="content",
        ),
        tag("script", Markup(script)) if script else None,
    )
    return Markup(f"<!doctype html>\n{tag('html', head, body, lang='en')}\n")


def write(path: str | PathLike[str], page: Markup) -> None:
    """Write a page whole or not at all, readable by its owner only until he gives it away."""
    target = Path(path)
    write_files(target.parent, {target.name: page.encode("utf-8", "replace")})
