"""
HTML that is safe by its type: whatever is not `Markup` is escaped on its way in, so no label can become a tag.

    tag("p", "a < b")            ->  <p>a &lt; b</p>
    tag("p", tag("b", label))    ->  <p><b>...</b></p>
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

VOID = {"meta", "br", "hr", "input", "circle", "line", "path", "rect", "polygon", "polyline", "use"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = Any  # Markup as it is, None left out, everything else as escaped text


def text(value: Child) -> Markup:
    """A value as HTML: `Markup` as it is, None as nothing, lists joined, everything else escaped."""
    if value is None:
        return Markup("")
    if isinstance(value, Markup):
        return value
    if isinstance(value, (list, tuple)):
        return Markup("".join(text(item) for item in value))
    return Markup(escape(str(value), quote=True))


def tag(name: str, /, *children: Child, **attributes: Any) -> Markup:
    """
    One element; attributes are written without a trailing `_` and with `-` for `_`, None leaves one out.

    Examples
    --------
    >>> tag("a", "x < y", class_="note", aria_label='"hi"', hidden=None)
    '<a class="note" aria-label="&quot;hi&quot;">x &lt; y</a>'

    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_attribute(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID and not children:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{text(children)}</{name}>")


def _attribute(value: Any) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def data(value: Any, *, id: str) -> Markup:  # noqa: A002 (the name of the attribute)
    """Values for a script, as JSON that no string can break out of."""
    written = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return tag("script", Markup(written), type="application/json", id=id)


def table(
    head: Sequence[Child],
    rows: Iterable[Sequence[Child]],
    *,
    caption: Child = None,
    numbers: Iterable[int] = (),
    label: str | None = None,
) -> Markup:
    """
    A table in a box of its own that scrolls sideways, so that the page never does.

    Parameters
    ----------
    head, rows
        Cells: text, or `Markup`. The first cell of a row is its heading.
    caption
        What the table shows, with units.
    numbers
        Columns whose cells are aligned to the right.
    label
        Name of the box for screen readers; by default the caption.

    Examples
    --------
    >>> "&lt;b&gt;" in table(["rule"], [["<b>"]], caption="rules")
    True

    """
    right = set(numbers)

    def cell(kind: str, i: int, child: Child, **attributes: Any) -> Markup:
        return tag(kind, child, class_="number" if i in right else None, **attributes)

    first = tag("tr", [cell("th", i, child, scope="col") for i, child in enumerate(head)])
    body = [
        tag("tr", [cell("td" if i else "th", i, c, scope=None if i else "row") for i, c in enumerate(row)])
        for row in rows
    ]
    inside = tag("table", None if caption is None else tag("caption", caption), tag("thead", first), tag("tbody", body))
    name = label if label is not None else str(caption or "table")
    return tag("div", inside, class_="scroll", tabindex="0", role="region", aria_label=name)


def number(value: Any, digits: int = 3) -> str:
    """A number as people read it; "–" where there is none."""
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return "–"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) >= 1000):
        return f"{int(value):,}"
    if value != 0 and abs(value) < 10**-digits:
        return f"{value:.1e}"
    return f"{value:,.{digits}f}"


def percent(value: Any, digits: int = 1) -> str:
    """
    A share in per cent; "–" where there is none.

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


def listing(items: Iterable[Child], *, class_: str | None = None) -> Markup:
    """A list of points."""
    return tag("ul", [tag("li", item) for item in items], class_=class_)


def pairs(values: Mapping[str, Child]) -> Markup:
    """Names and values, one under the other on a phone."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in values.items()])
