"""
The page around any report: one file that opens offline and asks nobody for anything.

Style and script are inlined from the files beside this one. The page carries its own content security policy: only
the script of this file may run, nothing may be fetched, so even a label that slipped through could do no harm.

    write(path, page("Preparation", [section("Places", atlas(...)), section("Days", calendar(...))]))
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from elsewhere.files import write_files
from elsewhere.reports.markup import Child, Markup, tag, text


class Section(NamedTuple):
    """A heading, what stands below it, and the name of its anchor."""

    title: str
    body: Markup
    anchor: str


def section(title: str, *children: Child, anchor: str | None = None) -> Section:
    """A part of a page; its anchor is made of the title unless it is given."""
    return Section(title, text(children), anchor or re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "part")


def page(title: str, sections: Sequence[Section], *, lead: Child = None, scripts: Sequence[str] = ()) -> Markup:
    """
    A whole page.

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
    >>> made = page("a < b", [section("Rules", "none")])
    >>> made.startswith("<!doctype html>"), "<title>a &lt; b</title>" in made, "http" in made.replace("http-equiv", "")
    (True, True, False)

    """
    script = "".join(_asset(name) for name in scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Markup(_asset("style.css"))),
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


def _asset(name: str) -> str:
    return files("elsewhere.reports").joinpath(name).read_text(encoding="utf-8")


def write(path: str | PathLike[str], made: Markup) -> None:
    """Write a page whole or not at all, readable by its owner only until he gives it away."""
    target = Path(path)
    write_files(target.parent, {target.name: made.encode("utf-8", "replace")})
