"""How the fakes were made: acceptance by rule, certificate, parameters, versions, notes."""

from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any

from elsewhere._version import __version__
from elsewhere.reports.markup import Child, Markup, listing, number, pairs, percent, table, tag
from elsewhere.reports.svg import Bar, bars

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
SPECIAL = {"parameters", "versions", "certificate", "notes", "in_words", "categories", *TRIES}
LONGEST_LIST = 12


def visible(run: Mapping[str, Any], *, shareable: bool) -> dict[str, Any]:
    """
    What of `run` this edition shows.

    The shareable one leaves out what is private by its name, and lists that could hold a value per person.
    """
    if not shareable:
        return dict(run)
    whole = ("notes", "certificate")  # sentences of ours, about nobody
    return {
        n: v if n in whole else _public(v, PRIVATE)
        for n, v in run.items()
        if str(n).lower() not in PRIVATE and (n in whole or _small(v))
    }


def _public(value: Any, hidden: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {n: _public(v, hidden) for n, v in value.items() if str(n).lower() not in hidden and _small(v)}
    return value


def _small(value: Any) -> bool:
    if isinstance(value, Mapping):
        return len(value) <= 200
    if isinstance(value, (list, tuple)):
        return len(value) <= LONGEST_LIST and all(v is None or isinstance(v, (str, int, float)) for v in value)
    return value is None or isinstance(value, (str, int, float, bool))


def acceptance(run: Mapping[str, Any]) -> Markup | None:
    """How many tries each rule rejected, as a picture."""
    tally = run.get("tally")
    told = dict(tally) if isinstance(tally, Mapping) else {}
    rejected = run.get("rejected_by")
    tried, passed = told.pop("tested", run.get("attempts")), told.pop("passed", run.get("passed"))
    told |= dict(rejected) if isinstance(rejected, Mapping) else {}
    if not isinstance(tried, int) or not isinstance(passed, int) or tried < 1:
        return None
    rows = [Bar("passed all tests", 100 * passed / tried, "fake", None, f"{passed:,}")]
    for name, n in told.items():
        if isinstance(n, int) and (n or name in ("similarity", "intersection", "differential")):
            rows.append(Bar(RULES.get(name, str(name).replace("_", " ")), 100 * n / tried, "real", None, f"{n:,}"))
    return bars(
        rows,
        unit=f"share of {tried:,} tries, %",
        title="Acceptance by rule",
        top=100,
        caption="A try can break several rules. How many pass says how well the filter works, not how private the "
        "fakes are.",
    )


def making(run: Mapping[str, Any], *, shareable: bool) -> Markup:
    """The section "how it was made"."""
    seen = visible(run, shareable=shareable)
    parts: list[Child] = []
    rules = acceptance(seen)
    if rules is not None:
        parts.append(tag("div", rules, class_="charts wide"))
    certificate = seen.get("certificate")
    if isinstance(certificate, Mapping):
        parts += [tag("h3", "Certificate"), listing(certificate.get("words") or ())]
        conditions = [f"{said}: {state}" for said, state in certificate.get("conditions") or ()]
        if conditions:
            parts += [tag("p", "Conditions of the theorem:"), listing(conditions)]
    general = {n: v for n, v in seen.items() if n not in SPECIAL}
    if general:
        parts += [tag("h3", "The run"), pairs(dict(_flat(general)))]
    parameters = seen.get("parameters")
    if isinstance(parameters, Mapping):
        parts += [tag("h3", "Parameters"), pairs(dict(_flat(parameters)))]
    given = seen.get("versions")
    parts += [
        tag("h3", "Versions"),
        pairs({**versions(), **(dict(_flat(given)) if isinstance(given, Mapping) else {})}),
    ]
    notes = seen.get("notes")
    if isinstance(notes, (list, tuple)) and notes:
        parts += [tag("h3", "Notes"), listing([str(n).replace("`", "") for n in notes])]
    return tag("div", parts)


def categories(run: Mapping[str, Any]) -> Markup | None:
    """What the classes tell of the categories that the input gives its places, beside geography and chance."""
    found = run.get("categories")
    if not isinstance(found, Mapping):
        return None
    rows: list[list[Child]] = [["semantic classes", f"{found['ami']:.2f}"]]
    if found.get("geography") is not None:
        rows.append(["as many groups of places that lie close together", f"{found['geography']:.2f}"])
    rows.append(["the same classes, shuffled", f"{found['chance']:.2f} (95 % below {found['chance_high']:.2f})"])
    more = found["ami"] > found["chance_high"]
    than_near = found.get("geography") is None or found["ami"] > found["geography"]
    verdict = (
        "They tell something of them" + ("." if than_near else ", but no more than where the places lie.")
        if more
        else "They tell nothing of them that chance would not."
    )
    return tag(
        "div",
        tag(
            "p",
            f"The {number(found['classes'])} classes were learnt from how people use places; categories of the input "
            "were not shown to them. ",
            verdict,
        ),
        table(
            ["Compared with the categories of the input", "adjusted mutual information"],
            rows,
            caption=f"{number(found['places'])} places have a class and one of {number(found['categories'])} categories"
            ". 1: both split the places alike; 0: no more in common than by chance.",
        ),
    )


def versions() -> dict[str, str]:
    """Of this package and of what its numbers rest on."""
    found = {"elsewhere": __version__, "Python": python_version()}
    for name in ("numpy", "numba", "scipy", "scikit-learn"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _flat(values: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        key = f"{before}{str(name).replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{key}: ")
        elif isinstance(value, (list, tuple)):
            yield key, ", ".join(map(str, value)) or "–"
        else:
            yield key, _shown(str(name), value)


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "acceptance" and isinstance(value, float):
        return percent(value)
    if isinstance(value, int):
        return number(value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
