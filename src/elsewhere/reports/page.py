"""
The report: one self-contained file that a privacy officer can read, in two editions.

`owner` may show real days and belongs to whoever holds the data; `shareable` holds aggregates and fakes only: no real
trace, no figure of one person, no way from a fake to its seed, no name of a user.

The first screen of the report, in plain words: what this is, what it is good for, whether to publish it.

How the fakes were made: acceptance by rule, certificate, parameters, versions, notes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from platform import python_version
from typing import Any, NamedTuple

import numpy as np

from elsewhere._version import __version__
from elsewhere.errors import InvalidParameter, require_choice
from elsewhere.evaluation.uses import GOOD_FOR, MEASURES, NOT_FOR, ROUGH_FOR, UNKNOWN
from elsewhere.paper.semantic_clustering import labels_of
from elsewhere.pool import Pool
from elsewhere.reports.atlas import atlas
from elsewhere.reports.attacks import (
    advice,
    audit_table,
    claims,
    count_outcomes,
    forbidden_claims,
    format_main,
    outcome_sign,
    question,
)
from elsewhere.reports.days import chart_hours, step_through
from elsewhere.reports.markup import (
    Child,
    Markup,
    Section,
    badge,
    listing,
    number,
    page,
    pairs,
    percent,
    section,
    table,
    tag,
    unbroken,
    write,
)
from elsewhere.reports.results import Plain, Results, findings
from elsewhere.reports.svg import Bar, bars
from elsewhere.reports.utility import show_lives, show_publishing, show_service, summarise_lives
from elsewhere.run.fakes import Fakes
from elsewhere.traces.model import Ints, Traces

SIGNS = {GOOD_FOR: ("✓", "good"), ROUGH_FOR: ("≈", "rough"), NOT_FOR: ("✗", "bad"), UNKNOWN: ("?", "")}
RULE = (
    "All uses and all data are judged by one rule. The real people are split at random into two halves, 20 times. One "
    "half is compared with the other half, with as many fakes, and with real days in which just what the use needs "
    "was destroyed (chance). Good: at most 10 in 100 (one place of ten) worse than the other half, at most a quarter "
    "of the way from the other half to chance, and at most half does not match. Rough: at most 25 in 100 worse, "
    "nearer to the other half than to chance, and at least a quarter matches. Not for this: everything else. Where "
    "people differ so much that the other half is beyond the middle between “same people” and chance, this middle "
    "takes its place."
)


def headline(results: Results, fakes: Traces | None, run: Mapping[str, Any], *, shareable: bool) -> Markup:
    """Return what this is, what the data are good for, what the attacks learnt, and whether to publish."""
    audit = next(iter(results.audits.values()), None)
    uses = next(iter(results.uses.values()), None)
    recommendation = advice(audit, run, uses)
    edition, remark = ("Shareable edition", " aggregates and fakes only")
    if not shareable:
        edition, remark = ("Owner's edition: private", " may show real people's days; not to be given away")
    parts: list[Child] = [
        tag("p", tag("span", edition, class_="edition" if shareable else "edition private"), tag("small", remark)),
        tag("p", _contents(results, fakes), class_="lead"),
    ]
    sign, kind = {"no": ("✗", "bad"), "care": ("≈", "rough"), "yes": ("✓", "good")}[recommendation.level]
    words = [
        tag("p", tag("b", f"{sign} {recommendation.words}."), class_="lead"),
        tag("p", unbroken(recommendation.because)),
    ]
    counts = None
    if audit is not None:
        counts = tag("p", count_outcomes(audit), " ", tag("a", "What each attack found", href="#attacks"), ".")
    publishing: list[Child] = [
        tag("h2", "Should they be published?", class_="first"),
        tag("div", tag("div", words, class_=f"box {kind}"), counts),
    ]
    if uses is None:
        return tag("div", parts, publishing)
    # how many uses have each verdict
    verdicts = [str((uses.get(m.id) or {}).get("verdict")) for m in MEASURES]
    n = {word: verdicts.count(word) for word in SIGNS}
    also = ((ROUGH_FOR, "rough for"), (NOT_FOR, "not for"), (UNKNOWN, "not known for"))
    phrases = [f"{phrase} {n[word]}" for word, phrase in also if n[word]]
    good_for = ", ".join([f"Good for {n[GOOD_FOR] or 'none'} of {len(verdicts)} uses", *phrases])
    parts.append(tag("p", tag("b", good_for, ". ", recommendation.words, "."), class_="lead"))
    lives = next(iter(results.lives.values()), None)
    over_days = None if lives is None else tag("p", tag("a", summarise_lives(lives), href="#lives"))
    good = tag("div", tag("h2", "What are they good for?", class_="first"), _list_uses(uses), over_days)
    return tag("div", parts, tag("div", good, tag("div", publishing), class_="two"))


def _contents(inputs: Results, fakes: Traces | None) -> str:
    """Return how many fakes there are, and for how many people, days and places, in a sentence."""
    sizes: Plain = {}
    for results in (inputs.uses, inputs.publishing, inputs.audits):
        sizes = {**(next(iter(results.values()), {}).get("sizes") or {}), **sizes}
    n = sizes.get("fakes") if fakes is None else len(fakes)
    people, days, places = (sizes.get(name) for name in ("people", "days", "places"))
    people = sizes.get("seed_users", sizes.get("users")) if people is None else people
    sentence = f"{number(n)} synthetic days" if n else "Synthetic days"
    if fakes is not None:
        lived = (
            f"and their {number(len(fakes))} synthetic days" if fakes.U < len(fakes) else "with one synthetic day each"
        )
        sentence = f"{number(fakes.U)} people who do not exist, {lived}"
    sentence += f", to use in place of {number(people)} real people" if people else ", to use in place of real ones"
    sentence += f" and their {number(days)} days" if people and days else ""
    return sentence + (f", at {number(places)} places." if places else ".")


def _use_badge(use: Plain) -> Markup:
    """Return the verdict on a use as a small sign with its word."""
    sign, kind = SIGNS.get(str(use.get("verdict")), ("?", ""))
    return badge(sign, str(use.get("verdict")), kind)


def _list_uses(uses: Plain) -> Markup:
    """Return every use with its verdict and its figure."""
    items = []
    for m in MEASURES:
        use = uses.get(m.id) or {}
        figure, beside = use.get("figure"), use.get("beside")
        sentence = f"{figure}; other real people: {beside}" if figure else str(use.get("words", ""))
        items.append([_use_badge(use), tag("div", tag("b", use.get("title", m.title)), tag("small", sentence))])
    note = "“Other real people” is the same figure when one half of the real people is compared with the other."
    return tag("div", listing(items, class_="uses"), tag("p", note, class_="note"))


def tabulate_uses(uses: Plain) -> Markup:
    """Return every use with all its figures, in sentences below the table too, and the rule behind the verdicts."""
    rows, sentences = [], []
    for m in MEASURES:
        use = uses.get(m.id) or {}
        values = [use.get(name) for name in ("fakes", "halves", "same", "chance", "spread")]
        *figures, spread = (f"{100 * v:.0f}" if isinstance(v, (int, float)) else None for v in values)
        cells = [f if f is not None else "–" for f in figures]
        cells[1] += f" ± {spread}" if spread is not None else ""
        rows.append([use.get("title", m.title), _use_badge(use), *cells])
        if use.get("words"):
            sentences.append([tag("b", use.get("title", m.title)), ": ", use["words"]])
    head = ["Use", "Verdict", "Fakes", "Other half of the people", "Same people", "Chance"]
    caption = (
        "How many of 100 busiest places, people, trips or stays do not match: means over the splits, ± is the standard "
        "deviation. Same people: days of all real people, this half among them; nothing can be closer."
    )
    return tag(
        "div",
        table(head, rows, numbers=range(2, 6), caption=caption),
        listing(sentences, class_="words") if sentences else None,
        tag("p", RULE, class_="note"),
    )


RULES = {
    "not_made": "no walk or candidate places left",
    "similarity": "too many visits in common with its seed (par_s)",
    "intersection": "shares a place with its seed (par_i)",
    "differential": "too few others resemble it as much (par_d, k)",
    "others": "too close to another person",
    "min_sim": "too unlike its seed (min_sim)",
}
# what may name a person, a file or the entropy of a run never leaves the house
PRIVATE = {
    "seed", "rng", "entropy", "random_state", "seed_index", "labels", "label", "user_ids", "ids", "user_labels",
    "path", "input", "source", "file", "files", "folder", "out", "loglik", "verdicts", "links",
}  # fmt: skip
TRIES = {"attempts", "passed", "rejected_by", "tally", "acceptance"}
SPECIAL = {"parameters", "versions", "certificate", "notes", "in_words", "categories", "agreement", *TRIES}
LONGEST_LIST = 12
LONGEST_MAPPING = 200


def visible(run: Mapping[str, Any], whole: Sequence[str] = ("notes", "certificate")) -> dict[str, Any]:
    """
    Return what of `run` a shareable report shows.

    It leaves out what is private by its name, and lists that could hold a value per person. `whole` are sentences of
    ours, about nobody, and are shown whatever their length.
    """
    facts = {}
    for name, value in run.items():
        if str(name).lower() in PRIVATE:
            continue
        if name in whole:
            facts[name] = value
        elif isinstance(value, Mapping) and len(value) <= LONGEST_MAPPING:
            facts[name] = visible(value, whole=())
        elif isinstance(value, (list, tuple)) and len(value) <= LONGEST_LIST:
            if all(v is None or isinstance(v, (str, int, float)) for v in value):
                facts[name] = value
        elif value is None or isinstance(value, (str, int, float, bool)):
            facts[name] = value
    return facts


def acceptance(run: Mapping[str, Any]) -> Markup | None:
    """Draw how many attempts each rule rejected."""
    tally = run.get("tally")
    counts = dict(tally) if isinstance(tally, Mapping) else {}
    by_rule = run.get("rejected_by")
    attempts, passes = counts.pop("tested", run.get("attempts")), counts.pop("passed", run.get("passed"))
    counts |= dict(by_rule) if isinstance(by_rule, Mapping) else {}
    if not isinstance(attempts, int) or not isinstance(passes, int) or attempts < 1:
        return None
    rows = [Bar("passed all tests", 100 * passes / attempts, "fake", None, f"{passes:,}")]
    for name, n in counts.items():
        if isinstance(n, int) and (n or name in ("similarity", "intersection", "differential")):
            rows.append(Bar(RULES.get(name, str(name).replace("_", " ")), 100 * n / attempts, "real", None, f"{n:,}"))
    return bars(
        rows,
        unit=f"share of {attempts:,} attempts, %",
        title="Acceptance by rule",
        top=100,
        caption="An attempt can break several rules. How many pass describes the filter, not how private fakes are.",
    )


def making(run: Mapping[str, Any], *, shareable: bool) -> Markup:
    """Return the section "how it was made"."""
    facts = visible(run) if shareable else run
    parts: list[Child] = []
    rules = acceptance(facts)
    if rules is not None:
        parts.append(tag("div", rules, class_="charts wide"))
    agreement = facts.get("agreement")
    if isinstance(agreement, Mapping):
        own, others, gain = (100 * agreement[name] for name in ("own", "others", "gain"))
        words = (
            f"Class agreement: at {own:.0f} % of the slots a fake and its seed are at places of the same semantic "
            f"class, a fake and other seeds at {others:.0f} %. The agreement gain is {gain:.0f} points."
        )
        parts.append(tag("p", words))
    certificate = facts.get("certificate")
    if isinstance(certificate, Mapping):
        parts += [tag("h3", "Certificate"), listing(certificate.get("words") or ())]
        conditions = [f"{condition}: {state}" for condition, state in certificate.get("conditions") or ()]
        if conditions:
            parts += [tag("p", "Conditions of the theorem:"), listing(conditions)]
    general = {n: v for n, v in facts.items() if n not in SPECIAL}
    if general:
        parts += [tag("h3", "The run"), pairs(dict(_flat(general)))]
    parameters = facts.get("parameters")
    if isinstance(parameters, Mapping):
        parts += [tag("h3", "Parameters"), pairs(dict(_flat(parameters)))]
    versions = {"elsewhere": __version__, "Python": python_version()}
    for name in ("numpy", "numba", "scipy", "scikit-learn"):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    used = facts.get("versions")
    versions |= dict(_flat(used)) if isinstance(used, Mapping) else {}
    parts += [tag("h3", "Versions"), pairs(versions)]
    notes = facts.get("notes")
    if isinstance(notes, (list, tuple)) and notes:
        parts += [tag("h3", "Notes"), listing([str(n).replace("`", "") for n in notes])]
    return tag("div", parts)


def categories(run: Mapping[str, Any]) -> Markup | None:
    """Return what the classes tell of the categories that the input gives its places, beside geography and chance."""
    agreement = run.get("categories")
    if not isinstance(agreement, Mapping):
        return None
    rows: list[list[Child]] = [["semantic classes", f"{agreement['ami']:.2f}"]]
    if agreement.get("geography") is not None:
        rows.append(["as many groups of places that lie close together", f"{agreement['geography']:.2f}"])
    rows.append(
        ["the same classes, shuffled", f"{agreement['chance']:.2f} (95 % below {agreement['chance_high']:.2f})"]
    )
    more = agreement["ami"] > agreement["chance_high"]
    than_near = agreement.get("geography") is None or agreement["ami"] > agreement["geography"]
    verdict = (
        "They agree with the categories more than by chance"
        + ("." if than_near else ", but no more than groups of neighbouring places do.")
        if more
        else "They agree with the categories no more than by chance."
    )
    return tag(
        "div",
        tag(
            "p",
            f"The {number(agreement['classes'])} classes were learnt from how people use places; categories of the "
            "input were not shown to them. ",
            verdict,
        ),
        table(
            ["Compared with the categories of the input", "adjusted mutual information"],
            rows,
            caption=f"{number(agreement['places'])} places have a class and one of {number(agreement['categories'])} "
            "categories. 1: both split the places alike; 0: no more in common than by chance.",
        ),
    )


def _flat(values: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield names and values as text, those of a mapping inside under its name."""
    for name, value in values.items():
        key = f"{before}{str(name).replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{key}: ")
        elif isinstance(value, (list, tuple)):
            yield key, ", ".join(map(str, value)) or "–"
        elif value is None or isinstance(value, bool):
            yield key, {None: "none", True: "yes", False: "no"}[value]
        elif isinstance(value, float):
            yield key, percent(value) if name == "acceptance" else f"{value:.4g}"
        else:
            yield key, number(value) if isinstance(value, int) else str(value)


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
    by_kind = Results.of(results)
    maps = _traces_to_show(fakes, real, classes, shareable)
    facts = _facts(run, fakes, shareable)
    name = "Report on synthetic location traces" if title is None else str(title)
    sections = _sections(by_kind, maps, facts, shareable)
    lead = headline(by_kind, None if maps is None else maps.fakes, facts, shareable=shareable)
    write(path, page(name, sections, lead=lead, scripts=() if maps is None else ("days.js",)))


class _Maps(NamedTuple):
    """What the maps show."""

    fakes: Traces | None
    real: Traces | None
    seed: Ints | None
    label: Ints | None


def _traces_to_show(fakes: Any, real: Any, classes: Any, shareable: bool) -> _Maps | None:
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
        traces = Traces(
            fakes.r, f.locations, users=fakes.life.tolist(), step_minutes=f.step_minutes, start=f.start, tz=f.tz
        )
    elif isinstance(fakes, Pool):
        # beside real traces on their map, else on its own
        traces = fakes.traces if real is None else fakes.to_map(real.locations)
    elif isinstance(fakes, Traces):
        traces = fakes
    elif fakes is not None:
        raise InvalidParameter(
            "`fakes` must be a `Pool`, `Traces`, or (owner's edition) what `generate_fakes` returns, got "
            f"{type(fakes).__name__}."
        )
    if traces is not None and real is not None and (traces.R != real.R or traces.L != real.L):
        raise InvalidParameter(
            f"`fakes` have {traces.R} places and {traces.L} slots, `real` {real.R} and {real.L}: they must be on "
            "one map and clock.",
            code="E_MISMATCH",
        )
    there = traces if traces is not None else real
    if there is None:
        return None
    return _Maps(traces, real, seed, None if classes is None else labels_of(classes, there.R))


def _facts(run: Any, fakes: Any, shareable: bool) -> dict[str, Any]:
    """Return how the fakes were made: what they say of it themselves, and over it what `run` says."""
    if run is not None and not isinstance(run, Mapping):
        raise InvalidParameter(f"`run` must map names to values, got {type(run).__name__}.")
    defaults: dict[str, Any] = {}
    if isinstance(fakes, Pool):
        defaults = {n: v for n, v in fakes.provenance.items() if v is not None}
    elif isinstance(fakes, Fakes):
        defaults = {
            "preset": fakes.preset.name,
            "kappa": fakes.kappa,
            "parameters": fakes.preset.parameters(),
            "notes": fakes.notes,
        }
        defaults["reproducible"] = fakes.laboratory
        defaults["certificate"] = fakes.certificate.to_dict()
        if not fakes.covered:
            defaults["tally"] = dict(fakes.tally)
    facts = {**defaults, **({} if run is None else dict(run))}
    return visible(facts) if shareable else facts


def _sections(results: Results, maps: _Maps | None, run: dict[str, Any], shareable: bool) -> list[Section]:
    parts = []
    if results.uses:
        parts.append(section("What the data are good for", _each(results.uses, tabulate_uses), anchor="uses"))
    if results.lives:
        parts.append(section("Lives over days", _each(results.lives, show_lives), anchor="lives"))
    parts += [
        section("Attacks", _audits(results.audits, shareable), anchor="attacks"),
        section("What may be said", _claims(results.audits, run), anchor="claims"),
    ]
    if results.publishing:
        parts.append(
            section(
                "Usefulness by the paper's measures",
                _each(results.publishing, lambda r: show_publishing(r, shareable=shareable)),
                anchor="utility",
            )
        )
    if results.lbs:
        parts.append(
            section(
                "Decoys for a location-based service",
                _each(results.lbs, lambda r: show_service(r, shareable=shareable)),
                anchor="service",
            )
        )
    if maps is not None:
        pictures = [*atlas(maps.fakes, maps.real, maps.label), *chart_hours(maps.fakes, maps.real)]
        parts.append(section("Maps and hours", pictures, anchor="maps"))
        if maps.fakes is not None:
            days = step_through(maps.fakes, real=maps.real, seed=maps.seed, label=maps.label, shareable=shareable)
            parts.append(section("Days to step through", days, anchor="days-section"))
    if (agreement := categories(run)) is not None:
        parts.append(section("Classes and categories", agreement, anchor="categories"))
    parts.append(section("How it was made", making(run, shareable=shareable), anchor="making"))
    return parts


def _each(results: dict[str, Plain], show: Callable[[Plain], Markup]) -> list[Child]:
    """Return every result as `show` makes it, under its name where there are several."""
    parts: list[Child] = []
    for name, result in results.items():
        if len(results) > 1:
            parts.append(tag("h3", name or "unnamed result"))
        parts.append(show(result))
    return parts


def _audits(audits: dict[str, Plain], shareable: bool) -> list[Child]:
    if not audits:
        return [tag("p", "No audit was run: nothing is known about what an attacker learns. Run `elsewhere audit`.")]
    parts: list[Child] = [
        tag("p", "Each line is an attack that was carried out: against the people behind the fakes, in the same way "
            "against strangers (people of whom no fake was made), and by guessing. The notes at the end say who the "
            "strangers are and whether the generator has met them.")
    ]  # fmt: skip
    if len(audits) > 1:
        parts.append(_side_by_side(audits))
    parts += _each(audits, lambda audit: audit_table(audit, shareable=shareable))
    notes = [str(n) for audit in audits.values() for n in audit.get("notes") or []]
    notes = [n for n in dict.fromkeys(notes) if not n.startswith("elsewhere ")]
    if notes:
        parts.append(tag("p", "Notes: " + " ".join(notes), class_="note"))
    return parts


def _side_by_side(audits: dict[str, Plain]) -> Markup:
    ids = sorted({a for audit in audits.values() for a in findings(audit)}, key=lambda a: int(a[1:]))
    rows = []
    for a in ids:
        words, _, unit = question(a, {})
        cells: list[Child] = [[tag("b", a), " ", words]]
        for audit in audits.values():
            finding = audit.get(a)
            cells.append(
                "–" if finding is None else [format_main(finding, unit), " ", badge(*outcome_sign(a, finding))]
            )
        rows.append(cells)
    return table(
        ["Attack", *(n or "unnamed" for n in audits)], rows, caption="The audits side by side: figure reached."
    )


def _claims(audits: dict[str, Plain], run: dict[str, Any]) -> list[Child]:
    name, audit = next(iter(audits.items()), ("", None))
    note = None
    if len(audits) > 1:
        words = f"These sentences rest on one audit of the {len(audits)} above: {name or 'the first one'}."
        note = tag("p", words, class_="note")
    list_of_claims = claims(audit, run)
    may = [[tag("b", c.sentence), tag("small", f" Because {c.because}")] for c in list_of_claims if c.met]
    lacking = [[c.sentence, tag("small", f" Not met: {c.because}")] for c in list_of_claims if not c.met]
    none = tag("p", "Nothing about privacy: no condition is met by this output.")
    return [
        tag("p", "A sentence may be used only if this output meets its condition."),
        note,
        tag(
            "div",
            tag("div", tag("h3", "✓ May be said"), listing(may) if may else none, class_="box good"),
            tag("div", tag("h3", "✗ May not be said"), listing(forbidden_claims(audit)), class_="box bad"),
            class_="two",
        ),
        tag("h3", "Conditions that this output does not meet") if lacking else None,
        listing(lacking) if lacking else None,
    ]
