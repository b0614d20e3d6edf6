"""
The report: one self-contained file that a privacy officer can read, in two editions.

`owner` may show real days and belongs to whoever holds the data; `shareable` holds aggregates and fakes only: no real
trace, no figure of one person, no way from a fake to its seed, no name of a user.
"""

from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from elsewhere.errors import InvalidParameter, require_choice
from elsewhere.fakes import Fakes
from elsewhere.pool import Pool
from elsewhere.presets import NOT_READ
from elsewhere.reports.atlas import atlas
from elsewhere.reports.attacks import QUESTIONS, audit_table, badge, shown
from elsewhere.reports.claims import claims, may_not
from elsewhere.reports.days import MOST_DAYS, by_hour, days
from elsewhere.reports.given import Given, Plain, findings
from elsewhere.reports.headline import headline, in_detail
from elsewhere.reports.lives import lives
from elsewhere.reports.making import categories, making, visible
from elsewhere.reports.markup import Child, Markup, listing, number, table, tag
from elsewhere.reports.service import service
from elsewhere.reports.shell import Section, page, section, write
from elsewhere.reports.utility import utility
from elsewhere.traces.model import Ints, Traces

EDITIONS = ("owner", "shareable")


def report(
    results: Any,
    path: str | PathLike[str],
    *,
    edition: str = "shareable",
    fakes: Any = None,
    real: Traces | None = None,
    classes: Any = None,
    run: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> None:
    """
    Write the report of an evaluation: one HTML file that opens offline and makes no request.

    Parameters
    ----------
    results
        What `audit`, `judge_uses`, `judge_lives`, `evaluate_publishing` or `evaluate_lbs` returned, or the `to_dict()`
        of it; or a list of such, or names -> such.
    path
        Where to; an old file is replaced as a whole.
    edition
        "shareable": aggregates and fakes only; "owner": real days too, for the eyes of their owner.
    fakes
        What is shown on the map: a `Pool` or `Traces`; in the owner's edition also what `generate_fakes` returned,
        each fake then beside its seed.
    real
        Real traces beside the fakes; refused in the shareable edition.
    classes
        `SemanticClasses` of the places, for the map of classes. Whoever holds them links fakes to seeds better (A5):
        leave them out of a shareable report unless they are public anyway.
    run
        How the fakes were made, by name: `preset`, `parameters`, `certificate`, `tally` or `attempts`, `passed` and
        `rejected_by`, `notes`, `versions`, and whatever else is worth a line. A pool adds its provenance.
    title
        Heading of the page.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, elsewhere as ew
    >>> days = np.random.default_rng(1).integers(5, size=(8, 12))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> ew.report(ew.evaluate_publishing(days, None, days), path, title="Eight days")
    >>> path.read_text().startswith("<!doctype html>")
    True

    """
    require_choice("edition", edition, EDITIONS)
    shareable = edition == "shareable"
    given = Given.of(results)
    shown_fakes = _shown_fakes(fakes, real, classes, shareable)
    made = _run(run, fakes, shareable)
    name = "Report on synthetic location traces" if title is None else str(title)
    sections = _sections(given, shown_fakes, made, shareable)
    there = None if shown_fakes is None else shown_fakes.fakes
    lead = headline(given, there, made, shareable=shareable)
    write(path, page(name, sections, lead=lead, scripts=("days.js",) if shown_fakes is not None else ()))


class _Shown(NamedTuple):
    """What the maps show."""

    fakes: Traces | None
    real: Traces | None
    seed: Ints | None
    label: Ints | None


def _shown_fakes(fakes: Any, real: Any, classes: Any, shareable: bool) -> _Shown | None:
    if real is not None and shareable:
        raise InvalidParameter(
            '`real` holds real traces, which never go into a shareable report; leave it out, or pass edition="owner".',
            code="E_PRIVATE",
        )
    if real is not None and not isinstance(real, Traces):
        raise InvalidParameter(f"`real` must be `Traces`, got {type(real).__name__}.")
    if isinstance(fakes, Fakes) and shareable:
        raise InvalidParameter(
            "`fakes` as `generate_fakes` returns them know their seeds and never go into a shareable report; pass the "
            '`Pool` that `publish` makes of them, or edition="owner".',
            code="E_PRIVATE",
        )
    seed, traces = None, None
    if isinstance(fakes, Fakes):
        if fakes.seeds is not None and (fakes.seed >= 0).all():
            real, seed = fakes.seeds, np.asarray(fakes.seed)
        f = fakes.frame
        traces = Traces(fakes.r, f.locations, step_minutes=f.step_minutes, start=f.start, tz=f.tz)
    elif isinstance(fakes, Pool):
        # beside real traces on their map, else on its own
        traces = fakes.traces if real is None else fakes.on(real.locations)
    elif isinstance(fakes, Traces):
        traces = fakes
    elif fakes is not None:
        raise InvalidParameter(
            "`fakes` must be a `Pool`, `Traces`, or (owner's edition) what `generate_fakes` returns, got "
            f"{type(fakes).__name__}."
        )
    if traces is not None and real is not None and (traces.R != real.R or traces.L != real.L):
        raise InvalidParameter(
            f"`fakes` have {traces.R} places and {traces.L} instants, `real` {real.R} and {real.L}: they must be on "
            "one map and clock.",
            code="E_MISMATCH",
        )
    there = traces if traces is not None else real
    label = _label(classes, None if there is None else there.R)
    return None if there is None else _Shown(traces, real, seed, label)


def _label(classes: Any, R: int | None) -> Ints | None:
    if classes is None:
        return None
    label = np.asarray(getattr(classes, "label", classes))
    if label.ndim != 1 or label.dtype.kind not in "iu" or (R is not None and len(label) != R):
        wanted = "one class per place" if R is None else f"one class for each of the {R} places"
        raise InvalidParameter(f"`classes` must be `SemanticClasses`: {wanted}, got shape {label.shape}.")
    return label.astype(np.int64)


def _run(run: Any, fakes: Any, shareable: bool) -> dict[str, Any]:
    if run is not None and not isinstance(run, Mapping):
        raise InvalidParameter(f"`run` must map names to values, got {type(run).__name__}.")
    known: dict[str, Any] = {}
    if isinstance(fakes, Pool):
        known = {n: v for n, v in fakes.provenance.items() if v is not None}
    elif isinstance(fakes, Fakes):
        unread = ("name", *NOT_READ[fakes.preset.name])
        parameters = {n: v for n, v in asdict(fakes.preset).items() if n not in unread}
        known = {"preset": fakes.preset.name, "kappa": fakes.kappa, "parameters": parameters, "notes": fakes.notes}
        known["reproducible"] = fakes.laboratory
        known["certificate"] = fakes.certificate.to_dict()
        if not fakes.covered:
            known["tally"] = dict(fakes.tally)
    told = {**known, **({} if run is None else dict(run))}
    return visible(told, shareable=shareable)


def _sections(given: Given, maps: _Shown | None, run: dict[str, Any], shareable: bool) -> list[Section]:
    audit = next(iter(given.audits.values()), None)
    made = [section("What the data are good for", _named(given.uses, in_detail), anchor="uses")] if given.uses else []
    if given.lives:
        made.append(section("Lives over days", _named(given.lives, lives), anchor="lives"))
    made += [
        section("Attacks", _audits(given, shareable), anchor="attacks"),
        section("What may be said", _claims(audit, run, _first_of_several(given.audits)), anchor="claims"),
    ]
    if given.publishing:
        made.append(
            section(
                "Usefulness by the paper's measures",
                _named(given.publishing, lambda r: utility(r, shareable=shareable)),
                anchor="utility",
            )
        )
    if given.lbs:
        made.append(
            section(
                "Decoys for a location-based service",
                _named(given.lbs, lambda r: service(r, shareable=shareable)),
                anchor="service",
            )
        )
    if maps is not None:
        shown_maps = [*atlas(maps.fakes, maps.real, maps.label), *by_hour(maps.fakes, maps.real)]
        made.append(section("Maps and hours", shown_maps, anchor="maps"))
        if maps.fakes is not None:
            made.append(section("Days to step through", _days(maps, shareable), anchor="days-section"))
    if (compared := categories(run)) is not None:
        made.append(section("Classes and categories", compared, anchor="categories"))
    made.append(section("How it was made", making(run, shareable=shareable), anchor="making"))
    return made


def _named(results: dict[str, Plain], shown_as: Any) -> list[Child]:
    parts: list[Child] = []
    for name, result in results.items():
        if len(results) > 1:
            parts.append(tag("h3", name or "unnamed result"))
        parts.append(shown_as(result))
    return parts


def _audits(given: Given, shareable: bool) -> list[Child]:
    if not given.audits:
        return [tag("p", "No audit was run: nothing is known about what an attacker learns. Run `elsewhere audit`.")]
    parts: list[Child] = [
        tag("p", "Each line is an attack that was really carried out: against the people behind the fakes, in the same "
            "way against strangers, who are behind none of them, and by guessing. Who the strangers are, and whether "
            "the generator has met them, stands in the notes at the end.")
    ]  # fmt: skip
    if len(given.audits) > 1:
        parts.append(_side_by_side(given.audits))
    parts += _named(given.audits, lambda audit: audit_table(audit, shareable=shareable))
    notes = [
        n for audit in given.audits.values() for n in (audit.get("notes") or []) if not str(n).startswith("elsewhere ")
    ]
    if notes:
        parts.append(tag("p", "Notes: " + " ".join(dict.fromkeys(map(str, notes))), class_="note"))
    return parts


def _side_by_side(audits: dict[str, Plain]) -> Markup:
    ids = sorted({a for audit in audits.values() for a in findings(audit)}, key=lambda a: int(a[1:]))
    rows = []
    for a in ids:
        unit = QUESTIONS[a].unit if a in QUESTIONS else "share"
        cells: list[Child] = [[tag("b", a), " ", QUESTIONS[a].words if a in QUESTIONS else ""]]
        for audit in audits.values():
            finding = audit.get(a)
            cells.append("–" if finding is None else [shown(finding.get("main"), unit), " ", badge(finding)])
        rows.append(cells)
    return table(
        ["Attack", *(n or "unnamed" for n in audits)], rows, caption="The audits side by side: figure reached."
    )


def _first_of_several(audits: dict[str, Plain]) -> Markup | None:
    if len(audits) < 2:
        return None
    first = next(iter(audits)) or "the first one"
    return tag("p", f"These sentences rest on one audit of the {len(audits)} above: {first}.", class_="note")


def _claims(audit: Plain | None, run: dict[str, Any], note: Child) -> list[Child]:
    said = claims(audit, run)
    may = [[tag("b", c.sentence), tag("small", f" Because {c.because}")] for c in said if c.met]
    lacking = [[c.sentence, tag("small", f" Not met: {c.because}")] for c in said if not c.met]
    none = tag("p", "Nothing about privacy: no condition is met by this output.")
    return [
        tag("p", "A sentence is allowed only if its condition was met by this very output."),
        note,
        tag(
            "div",
            tag("div", tag("h3", "✓ May be said"), listing(may) if may else none, class_="box good"),
            tag("div", tag("h3", "✗ May not be said"), listing(may_not(audit)), class_="box bad"),
            class_="two",
        ),
        tag("h3", "Conditions that this output does not meet") if lacking else None,
        listing(lacking) if lacking else None,
    ]


def _days(maps: _Shown, shareable: bool) -> list[Child]:
    assert maps.fakes is not None  # noqa: S101 - the section is left out otherwise
    n = min(len(maps.fakes), MOST_DAYS)
    words = (
        f"{n} of {number(len(maps.fakes))} fakes, in no order."
        if n < len(maps.fakes)
        else f"{n} fake{'s' * (n != 1)}, in no order."
    )
    if shareable:
        words += " Real days are never part of a shareable report."
    elif maps.real is None:
        words += " No real traces were given to stand beside them."
    return [tag("p", words), days(maps.fakes, real=maps.real, seed=maps.seed, label=maps.label)]
