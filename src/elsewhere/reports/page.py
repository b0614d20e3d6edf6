"""
The report: one self-contained file that a data officer can read, in two editions.

`owner` may show real days and belongs to whoever holds the data; `shareable` holds aggregates and fakes only: no real
trace, no figure of one person, no way from a fake to its seed, no name of a user. This module turns results into what
the templates show; the words of the page are in templates/, its pictures in `charts` and `maps`.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from platform import python_version
from typing import Any, NamedTuple

import numpy as np

from elsewhere._version import __version__
from elsewhere.data.ground import HINT, SOURCES, is_installed
from elsewhere.data.slots import Traces
from elsewhere.data.visits import Floats, Ints, Locations
from elsewhere.errors import InvalidParameter, counted, require_choice
from elsewhere.evaluation.attacks.audit import AuditResult, id_with_role, in_one_sentence
from elsewhere.evaluation.attacks.finding import ABOVE, LEARNT, NOTHING, UNCLEAR, WITHIN, plain
from elsewhere.evaluation.lbs.scenario import LbsResult
from elsewhere.evaluation.lives import LivesResult
from elsewhere.evaluation.publishing.scenario import PublishingResult
from elsewhere.evaluation.uses import GOOD_FOR, MEASURES, NOT_FOR, ROUGH_FOR, UNKNOWN, Uses
from elsewhere.files import write_files
from elsewhere.paper.semantic_clustering import labels_of
from elsewhere.pool import Pool
from elsewhere.reports import charts, maps
from elsewhere.reports.charts import Plain, mean, svg
from elsewhere.reports.claims import (
    Badge,
    advice,
    claims,
    findings,
    forbidden_claims,
    format_figure,
    number,
    outcome,
    outcome_sign,
    percent,
    question,
    three_sentences,
)
from elsewhere.run.fakes import Fakes
from elsewhere.traces.fixes import GAPS, Preparation, length_text

EDITIONS = ("owner", "shareable")
SMALLEST_GROUP = 5  # people: the figure of fewer would be somebody's own, and stays out of a shareable report
MOST_DAYS = 14  # of a life, or of people of one day each, in the first picture
SIGNS = {GOOD_FOR: ("✓", "good"), ROUGH_FOR: ("≈", "rough"), NOT_FOR: ("✗", "bad"), UNKNOWN: ("?", "")}
KINDS = {AuditResult: "audits", PublishingResult: "publishing", LbsResult: "lbs", Uses: "uses", LivesResult: "lives"}
BESIDE = {"notes", "run", "version", "files"}  # what stands beside results in a file of several
ACCEPTED = (
    "`results` must be a `PublishingResult`, an `LbsResult`, an `AuditResult`, `Uses`, a `LivesResult`, the "
    "`to_dict()` of one, or a list or a mapping of names to such results"
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
LONGEST_LIST, LONGEST_MAPPING = 12, 200
FLOWS = "Flows between "
NEEDS = {
    "`seed_index`": "to know who was made from whom",
    "`holdout`": "real people of whom no fake was made",
    "`classes`": "the classes of the places",
    "`sampler`": "the noise of a run with a theorem",
}
# of `run`: shown in a place of its own
SPECIAL = {"parameters", "versions", "certificate", "notes", "in_words", "categories", "agreement", "tally"}
SPECIAL |= {"attempts", "passed", "rejected_by", "acceptance"}


class Picture(NamedTuple):
    """A picture with its title and a sentence below it."""

    title: str
    svg: str
    caption: str = ""
    wide: bool = False

    @staticmethod
    def of(figure: Any, title: str, caption: str = "", label: str = "") -> "Picture":
        """Return a figure as a picture; `label` is read to those who do not see it, by default title and caption."""
        wide = bool(figure.get_figwidth() > 1.2 * charts.WIDTH)
        return Picture(title, svg(figure, label or f"{title}. {caption}".strip()), caption, wide)


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
        What the first pictures show: a `Pool` or `Traces`; in the owner's edition also what `generate_fakes` returned,
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
    kinds = collect(results)
    shown = _traces_to_show(fakes, real, classes, shareable)
    facts = _facts(run, fakes, shareable)
    audit, uses = (next(iter(kinds[kind].values()), None) for kind in ("audits", "uses"))
    context = {
        "title": "Report on synthetic location traces" if title is None else str(title),
        "shareable": shareable,
        "contents": _contents(kinds, shown.fakes),
        "good_for": None if uses is None else _good_for(uses),
        "advice": advice(audit, facts, uses),
        "sentences": three_sentences(audit, facts, uses),
        "maps": _first_maps(shown),
        "map_note": _map_note(shown),
        "strips": _strips(shown),
        "uses": {name: _uses(result) for name, result in kinds["uses"].items()},
        "lives": {name: (result, _life_pictures(result)) for name, result in kinds["lives"].items()},
        "audits": {name: _audit(result, name, shareable) for name, result in kinds["audits"].items()},
        "claims": claims(audit, facts),
        "forbidden": forbidden_claims(audit),
        "publishing": {
            name: (result, few := shareable and _few_people(result), _publishing_pictures(result, few))
            for name, result in kinds["publishing"].items()
        },
        "services": {
            name: (
                result,
                shareable and (result["settings"].get("users") or 0) < SMALLEST_GROUP,
                _service_pictures(result),
            )
            for name, result in kinds["lbs"].items()
        },
        "more_pictures": _more_pictures(shown),
        "run": facts,
        "categories": facts.get("categories"),
        "accepted": _accepted(facts),
        "facts": _listed_facts(facts),
    }
    write(path, render("report.html", context))


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return a page made from a template; whatever is not a picture of ours is escaped."""
    page: str = _templates().get_template(template).render(context)
    return page


@cache
def _templates() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    pages = Environment(
        loader=PackageLoader("elsewhere.reports"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    pages.filters |= {"number": number, "percent": percent, "figure": format_figure, "mean": mean}
    pages.globals |= {"question": question, "outcome": outcome, "outcome_sign": outcome_sign, "counted": counted}
    return pages


def write(path: str | PathLike[str], page: str) -> None:
    """Write a page whole or not at all, readable by its owner only until he gives it away."""
    target = Path(path)
    write_files(target.parent, {target.name: page.encode("utf-8", "replace")})


def collect(results: Any) -> dict[str, dict[str, Plain]]:
    """
    Return results by kind (audits, publishing, lbs, uses, lives), each name -> plain numbers; "" where it has no name.

    Examples
    --------
    >>> list(collect({"ours": {"A1": {"status": "run", "passed": True}}})["audits"])
    ['ours']

    """
    kinds: dict[str, dict[str, Plain]] = {kind: {} for kind in KINDS.values()}
    for name, kind, one in _each(results, "", 0):
        # several of one name are numbered
        names = [name, *(f"{name} {n}".strip() for n in range(2, len(kinds[kind]) + 2))]
        kinds[kind][next(n for n in names if n not in kinds[kind])] = one
    if not any(kinds.values()):
        raise InvalidParameter(f"{ACCEPTED}; nothing of that kind is in it.")
    return kinds


def _each(results: Any, name: str, depth: int) -> Iterator[tuple[str, str, Plain]]:
    """Yield name, kind and plain numbers of every result that is given, however they are nested."""
    kind = next((kind for of_type, kind in KINDS.items() if isinstance(results, of_type)), None)
    if kind is not None:
        more = {"sizes": plain(results.sizes), "notes": list(results.notes)} if kind == "audits" else {}
        yield name, kind, {**results.to_dict(), **more}
    elif isinstance(results, Mapping) and (kind := _kind(results)) is not None:
        yield name, kind, plain(dict(results))
        # the rest of an evaluation
        yield from (
            (name, n, plain(dict(results[n]))) for n in ("uses", "lives") if isinstance(results.get(n), Mapping)
        )
    elif depth < 3 and isinstance(results, Mapping):
        for n, one in results.items():
            yield from _each(one, str(n), depth + 1) if n not in BESIDE and one is not None else ()
    elif depth < 3 and isinstance(results, Sequence) and not isinstance(results, (str, bytes)):
        for one in results:
            yield from _each(one, name, depth + 1)
    else:
        raise InvalidParameter(f"{ACCEPTED}; got {type(results).__name__}.")


def _kind(numbers: Mapping[Any, Any]) -> str | None:
    if {"aggregate", "visits", "allocation"} <= numbers.keys():
        return "publishing"
    if {"measures", "growth", "week"} <= numbers.keys():
        return "lives"
    if {"settings", "generators"} <= numbers.keys():
        return "lbs"
    if {m.id for m in MEASURES} <= numbers.keys():
        return "uses"
    attacks = findings({str(name): value for name, value in numbers.items()}).values()
    is_audit = attacks and all(isinstance(attack, Mapping) and "status" in attack for attack in attacks)
    return "audits" if is_audit else None


class Shown(NamedTuple):
    """What the pictures show: fakes, real traces, the real row of each fake, the class of each place."""

    fakes: Traces | None = None
    real: Traces | None = None
    seed: Ints | None = None
    label: Ints | None = None

    @property
    def sides(self) -> dict[str, tuple[Traces, str]]:
        """Return people and fakes, where they are given, with their ink."""
        both = {"people": (self.real, "real"), "fakes": (self.fakes, "fake")}
        return {name: (traces, ink) for name, (traces, ink) in both.items() if traces is not None}


def _traces_to_show(fakes: Any, real: Any, classes: Any, shareable: bool) -> Shown:
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
    size = next((t.R for t in (traces, real) if t is not None), None)
    return Shown(traces, real, seed, None if classes is None or size is None else labels_of(classes, size))


def _facts(run: Any, fakes: Any, shareable: bool) -> dict[str, Any]:
    """Return how the fakes were made: what they say of it themselves, and over it what `run` says."""
    if run is not None and not isinstance(run, Mapping):
        raise InvalidParameter(f"`run` must map names to values, got {type(run).__name__}.")
    defaults: dict[str, Any] = {}
    if isinstance(fakes, Pool):
        defaults = {n: v for n, v in fakes.provenance.items() if v is not None}
    elif isinstance(fakes, Fakes):
        defaults = {"preset": fakes.preset.name, "kappa": fakes.kappa, "parameters": fakes.preset.parameters(),
                    "notes": fakes.notes, "reproducible": fakes.laboratory,
                    "certificate": fakes.certificate.to_dict()}  # fmt: skip
        if not fakes.covered:
            defaults["tally"] = dict(fakes.tally)
    facts = {**defaults, **({} if run is None else dict(run))}
    return visible(facts) if shareable else facts


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


def _contents(kinds: dict[str, dict[str, Plain]], fakes: Traces | None) -> str:
    """Return how many fakes there are, and for how many people, days and places, in a sentence."""
    sizes: dict[str, Any] = {}
    for kind in ("uses", "publishing", "audits"):
        sizes = {**(next(iter(kinds[kind].values()), {}).get("sizes") or {}), **sizes}
    people = sizes.get("people", sizes.get("seed_users", sizes.get("users")))
    sentence = f"{number(sizes['fakes'])} synthetic days" if sizes.get("fakes") else "Synthetic days"
    if fakes is not None:
        days = f"and {number(len(fakes))} days of their lives" if fakes.U < len(fakes) else "with one day each"
        sentence = f"{number(fakes.U)} people who do not exist, {days}"
    sentence += f", in place of {number(people)} real people" if people else ", in place of real ones"
    return sentence + (f", at {number(sizes['places'])} places." if sizes.get("places") else ".")


def _good_for(uses: Plain) -> str:
    """Return what the fakes are good for, rough for and not for, in one sentence."""
    titles: dict[str, list[str]] = {word: [] for word in SIGNS}
    for m in MEASURES:
        use = uses.get(m.id) or {}
        title = str(use.get("title", m.title)).replace(",", "")
        names = titles[str(use.get("verdict", UNKNOWN))]
        if title.startswith(FLOWS) and names and FLOWS.lower() in names[-1]:
            names[-1] += f" / {title.removeprefix(FLOWS)}"
        else:
            names.append(title[:1].lower() + title[1:])
    starts = {GOOD_FOR: "good for", ROUGH_FOR: "rough for", NOT_FOR: "not for", UNKNOWN: "not known for"}
    parts = [f"{starts[word]} {_and(names)}" for word, names in titles.items() if names]
    none = "" if titles[GOOD_FOR] else "good for none of the uses that were judged; "
    return f"They are {none}{'; '.join(parts)}."


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _time_at(traces: Traces, slots: Any = slice(None)) -> Floats:
    """Return the share of the time at each place, in per cent, over these slots of the day."""
    r = traces.r[:, slots]
    visits = np.bincount(r[r >= 0], minlength=traces.R)
    return np.asarray(100 * visits / max(1, visits.sum()))


def _locations(shown: Shown) -> Locations | None:
    """Return the places of the map, if they have coordinates; the owner's map is whole, a pool has places moved."""
    where = next((traces.locations for traces, _ in shown.sides.values()), None)
    return where if where is not None and where.has_coordinates else None


def _first_maps(shown: Shown) -> list[Picture]:
    """Return where people and where fakes are, on one scale; without people, where fakes are by night and by day."""
    where = _locations(shown)
    if where is None:
        return []
    panels = {
        f"Where {'the ' * (who == 'fakes')}{who} are": (_time_at(t), ink) for who, (t, ink) in shown.sides.items()
    }
    if shown.real is None and shown.fakes is not None:
        hour = shown.fakes.minutes() // 60
        night, day = hour < 6, (hour >= 10) & (hour < 17)
        if night.any() and day.any():
            panels = {"Where the fakes are at night (0 to 6)": (_time_at(shown.fakes, night), "k0"),
                      "Where the fakes are by day (10 to 17)": (_time_at(shown.fakes, day), "k1")}  # fmt: skip
    both = np.sum([time for time, _ in panels.values()], axis=0)
    if not both.any():
        return []
    window, most = maps.Window.of(where, both), max(float(time.max()) for time, _ in panels.values())
    return [
        Picture.of(maps.visits_map(where, time, ink=ink, window=window, most=most), title,
                   label=f"{title}: map of {int(np.sum(time > 0))} places, the larger a disc the more time")
        for title, (time, ink) in panels.items()
    ]  # fmt: skip


def _map_note(shown: Shown) -> str:
    """Return what a reader must know about the maps: their scale, what lies outside, where the coasts come from."""
    where = _locations(shown)
    if where is None:
        return "The places have no coordinates, so there is no map of them." if shown.sides else ""
    both = np.sum([_time_at(traces) for traces, _ in shown.sides.values()], axis=0)
    outside = maps.Window.of(where, both).outside(both) if both.any() else ""
    ground = "" if where.lat is None else SOURCES if is_installed() else HINT
    return " ".join(["The larger a disc, the more time is spent there; all maps have one scale.", outside, ground])


def _strips(shown: Shown) -> list[Picture]:
    """Return one life hour by hour beside its fake; two fakes where no real one may be shown; or days of several."""
    fakes, real = shown.fakes, shown.real
    if fakes is None:
        return []
    hours = (fakes.minutes()[0] + fakes.step_minutes * np.arange(fakes.L + 1)) / 60
    if fakes.U == len(fakes):
        rows = _by_hash(fakes.r)[: MOST_DAYS if real is not None else 2 * MOST_DAYS]
        if real is None:
            half = -(-len(rows) // 2)
            sides = {"Days of fakes": fakes.r[rows[:half]], "Days of other fakes": fakes.r[rows[half:]]}
        elif shown.seed is not None:
            sides = {"Days of people": real.r[shown.seed[rows]], "The fakes made from them": fakes.r[rows]}
        else:
            sides = {"Days of people": real.r[_by_hash(real.r)[:MOST_DAYS]], "Days of fakes": fakes.r[rows]}
        caption = "A row is one day of another person, in the colours of her own places."
    else:
        caption = "A row is a day."
        lives = _typical_lives(fakes, 2 if real is None else 1)
        days = [np.flatnonzero(fakes.user == life)[:MOST_DAYS] for life in lives]
        if real is None:
            titles = ("The life of a fake", "The life of another fake")
            sides = {title: fakes.r[rows] for title, rows in zip(titles, days, strict=False)}
        else:
            person = _typical_lives(real, 1)[0] if shown.seed is None else real.user[shown.seed[days[0][0]]]
            own = "its fake" if shown.seed is not None else "a fake"
            real_days = np.flatnonzero(real.user == person)[:MOST_DAYS]
            sides = {"The life of a person": real.r[real_days], f"The life of {own}": fakes.r[days[0]]}
    pictures = []
    for title, rows_of_it in sides.items():
        if len(rows_of_it):
            names = [f"{i + 1}" for i in range(len(rows_of_it))]
            figure = charts.life_strip(rows_of_it, names, hours, per_row=fakes.U == len(fakes))
            pictures.append(Picture.of(figure, f"{title}, hour by hour", caption))
    return pictures


def _by_hash(r: Any) -> Ints:
    """Return the rows in an order that depends on nothing but their places: not on a file, not on the seeds."""
    keys = [hashlib.sha256(np.ascontiguousarray(row, dtype="<i4").tobytes()).digest() for row in r]
    return np.array(sorted(range(len(r)), key=lambda i: (keys[i], i)), dtype=np.int64)


def _typical_lives(traces: Traces, n: int) -> list[int]:
    """Return n people who have many days and move neither most nor least, whatever their order."""
    days = np.bincount(traces.user, minlength=traces.U)
    moves = np.bincount(traces.user, (np.diff(traces.r, axis=1) != 0).sum(axis=1), traces.U) / np.maximum(days, 1)
    long = np.flatnonzero(days >= min(MOST_DAYS, days.max()))
    first_day = np.unique(traces.user, return_index=True)[1]
    keys = {int(u): hashlib.sha256(traces.r[first_day[u]].astype("<i4").tobytes()).digest() for u in long}
    order = sorted(keys, key=lambda u: (moves[u], keys[u]))
    return [order[(i + 1) * len(order) // (n + 1)] for i in range(min(n, len(order)))]


def _uses(uses: Plain) -> list[tuple[Plain, Badge, Any]]:
    """Return every use with its verdict and its picture."""
    cards: list[tuple[Plain, Badge, Any]] = []
    for m in MEASURES:
        use = {"title": m.title, "words": "", **(uses.get(m.id) or {})}
        sign, kind = SIGNS.get(str(use.get("verdict")), ("?", ""))
        figure = charts.use_scale(use)
        picture = None if figure is None else svg(figure, f"{use['title']}: {use['words']}")
        cards.append((use, Badge(sign, str(use.get("verdict")), kind), picture))
    return cards


def _life_pictures(result: Plain) -> list[Picture]:
    """Return how people live over many days: new places day by day, who is at home and at the main place by hour."""
    pictures, growth, week = [], result.get("growth") or {}, result.get("week") or {}
    if len(growth.get("days") or ()) > 1:
        sides = {"people": (growth["days"], growth["real"]), "fakes": (growth["days"], growth["fakes"])}
        band = (growth["days"], growth["low"], growth["high"])
        figure = charts.lines(sides, x="days", y="distinct places", band=band)
        pictures.append(Picture.of(figure, "New places, day by day", "Mean of people. Band: halves of real people."))
    days = {7: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], 2: ["weekday", "weekend"]}.get(week.get("kinds") or 1)
    ticks = (list(range(0, 25, 6)), [str(h) for h in range(0, 25, 6)])
    if days is not None:
        ticks = ([24 * i + 12 for i in range(len(days))], days)
    for place, title in (("home", "At home, by hour"), ("main", "At the main place besides home, by hour")):
        if place in week:
            hour = week[place]["hour"]
            side = {
                s: [None if v is None else 100 * v for v in week[place][s]] for s in ("fakes", "real", "low", "high")
            }
            sides = {"people": (hour, side["real"]), "fakes": (hour, side["fakes"])}
            band = (hour, side["low"], side["high"])
            figure = charts.lines(sides, x="", y="people (%)", band=band, top=100, ticks=ticks)
            pictures.append(Picture.of(figure, title, "People who are there. Band: halves of real people."))
    return pictures


def _audit(audit: Plain, name: str, shareable: bool) -> dict[str, Any]:
    """Return an audit for the page: its findings, the strongest first, and how much each attack learnt."""
    by_id = findings(audit)
    ran = {n: f for n, f in by_id.items() if f.get("status") == "run"}
    order = [LEARNT, WITHIN, ABOVE, UNCLEAR, NOTHING]
    risks = {n: 100 * max(0.0, f["risk"]) for n, f in ran.items() if isinstance(f.get("risk"), (int, float))}
    picture = None
    if risks:
        inks = {LEARNT: "real", WITHIN: "k1", ABOVE: "k1", NOTHING: "test"}
        figure = charts.bars(
            [question(n, ran[n]).short for n in risks],
            list(risks.values()),
            [inks.get(outcome(ran[n]), "base") for n in risks],
            x="added risk (%)",
            most=100,
            texts=[f"{v:.0f} %" for v in risks.values()],
        )
        caption = "What an attack reaches beyond what it reaches against strangers, as a share of all there is."
        picture = Picture.of(figure, "How much each attack learnt", caption, f"{caption} {name}")
    in_words = in_one_sentence({id_with_role(n, f.get("role")): outcome(f) for n, f in by_id.items()})
    people = (audit.get("sizes") or {}).get("seed_users")
    return {
        "summary": in_words[:1].upper() + in_words[1:],
        "picture": picture,
        "findings": by_id,
        "ran": ran,
        "strongest": sorted(ran, key=lambda n: [*order, outcome(ran[n])].index(outcome(ran[n]))),
        "needs": {n: _needs(f) for n, f in by_id.items() if f.get("status") == "not run"},
        "roles": list(dict.fromkeys(role for f in ran.values() for role in f.get("roles") or {})),
        # the worst tenth of few people would be the figure of single ones
        "decile": not shareable or (isinstance(people, int) and people // 10 >= SMALLEST_GROUP),
        "notes": [n for n in map(str, audit.get("notes") or ()) if not n.startswith("elsewhere ")],
    }


def _needs(finding: Plain) -> str:
    """Return what an attack that was not run needs, in words."""
    needs = str(finding.get("needs") or "an input that was not given").rstrip(".")
    for name, words in NEEDS.items():
        needs = needs.replace(name, words)
    return needs.replace("`", "")


def _few_people(result: Plain) -> bool:
    """Tell whether means and histograms of a publishing result would be those of single people."""
    sizes = result.get("sizes") or {}
    people = [sizes.get("users", sizes.get("train"))]
    if sizes.get("test"):
        people.append(sizes.get("test_users", sizes["test"]))
    return not all(isinstance(n, int) and n >= SMALLEST_GROUP for n in people)


def _publishing_pictures(result: Plain, few: bool) -> list[Picture]:
    """Return the figures of the paper's publishing scenario; without those that would show few people one by one."""
    drawn = [
        (
            charts.visiting_divergence,
            "Popularity of places",
            "How far sorted visiting probabilities are from the real ones.",
        ),
        (charts.time_allocation, "Time at the favourite places", "How time is shared out over the three most visited."),
    ]
    if not few and "semantic" in (result.get("similarity") or {}):
        drawn += [
            (charts.fake_seed_similarity, "A fake and its seed", "Places should differ, the way of life should not."),
            (charts.differential_similarity, "Its seed against everybody else", "A small difference hides the seed."),
        ]
    if not few and result.get("qq"):
        words = "On the dotted line, fakes resemble each other as people do."
        drawn.append((charts.similarity_qq, "Resemblance among each other", words))
    pictures = [Picture.of(draw(result), title, caption) for draw, title, caption in drawn]
    names, ratios, inks = [], [], []
    for name, habit in (result.get("habits") or {}).items() if not few else ():
        for side, whose, ink in (("testing", "other people", "test"), ("fakes", "fakes", "fake")):
            value, real = mean(habit.get(side)), mean(habit.get("train"))
            if value is not None and real:
                names.append(f"{name.replace('_', ' ')}, {whose}")
                ratios.append(100 * value / real)
                inks.append(ink)
    if names:
        figure = charts.bars(names, ratios, inks, x="mean, % of that of real people")
        pictures.append(Picture.of(figure, "Habits", "100 %: on average as real people."))
    return pictures


def _service_pictures(result: Plain) -> list[Picture]:
    """Return the figures of the service scenario."""
    caption = "Tracking by a service that knows how people move in general; a mark per number of fakes."
    pictures = [Picture.of(charts.location_privacy(result), "Privacy against what is sent", caption)]
    for n, figures in (result.get("over_days") or {}).items():
        title = f"Found behind {n} decoy{'s' * (str(n) != '1')}, watched for many days"
        pictures.append(Picture.of(charts.found_over_days(figures), title, str(figures.get("in_words", ""))))
    return pictures


def _more_pictures(shown: Shown) -> list[Picture]:
    """Return maps of trips and of classes, and who is away and sets out by hour."""
    pictures, where = [], _locations(shown)
    if where is not None:
        both = np.sum([_time_at(traces) for traces, _ in shown.sides.values()], axis=0)
        window = maps.Window.of(where, both)
        zone = maps.zones(window)[0]
        by_side = {who: maps.flows(traces.r, zone) for who, (traces, _) in shown.sides.items()}
        widest = max([float(f.trips[0] / f.of) for f in by_side.values() if len(f.trips)], default=0.0)
        for who, (traces, ink) in shown.sides.items() if widest else ():
            figure = maps.flows_map(window, traces.r, ink=ink, widest=widest)
            strongest = (
                f"The {maps.MOST_FLOWS} strongest flows, both ways; the widest has {percent(widest)} of all trips."
            )
            pictures.append(Picture.of(figure, f"Trips of {who}", strongest))
        if shown.label is not None:
            caption = "Places that play the same part in different people's lives share a class."
            figure = maps.classes_map(where, shown.label, shown=both > 0, window=window)
            pictures.append(Picture.of(figure, "Places by class", caption))
    sides = {who: hours_of(traces) for who, (traces, _) in shown.sides.items()}
    if any(len(hour) > 1 for hour, _, _ in sides.values()):
        away = {who: (hour, share) for who, (hour, share, _) in sides.items()}
        trips = {who: (hour, share) for who, (hour, _, share) in sides.items()}
        x = "hour of the day, local clock"
        pictures += [
            Picture.of(charts.lines(away, x=x, y="away (% of people)"), "Away from the main place, by hour"),
            Picture.of(charts.lines(trips, x=x, y="trips per 100 people"), "Trips, by hour"),
        ]
    return pictures


def hours_of(traces: Traces) -> tuple[list[float], list[float], list[float]]:
    """
    Return hours of the day, the share that is away from its main place in per cent, and trips per 100 rows.

    The main place of a row is where it has most slots (the first of several); away is the share of the known slots of
    an hour that are elsewhere; a trip counts in the hour of the first slot at the new place.

    Examples
    --------
    >>> import elsewhere as ew
    >>> hours_of(ew.Traces([[0, 0, 1, 0], [2, 1, 2, -1]], ew.Locations(n=3), step_minutes=60))[1][:3]
    [0.0, 50.0, 50.0]

    """
    hour = (traces.minutes() // 60).astype(np.int64)
    known = traces.r >= 0
    row, slot = np.nonzero(known)
    place = traces.r[row, slot].astype(np.int64)
    stay, count = np.unique(row * traces.R + place, return_counts=True)
    order = np.lexsort((stay, -count, stay // traces.R))
    # every row has a slot, so each row's first is its own
    main = stay[order][np.unique(stay[order] // traces.R, return_index=True)[1]] % traces.R
    slots = np.bincount(hour, known.sum(axis=0), 24)
    off = np.bincount(hour, (known & (traces.r != main[:, None])).sum(axis=0), 24)
    moved = (row[1:] == row[:-1]) & (place[1:] != place[:-1])
    trips = np.bincount(hour[slot[1:][moved]], minlength=24)
    there = np.flatnonzero(slots > 0)
    return (
        (there + 0.5).tolist(),
        (100 * off[there] / slots[there]).tolist(),
        (100 * trips[there] / len(traces)).tolist(),
    )


def _accepted(run: Mapping[str, Any]) -> Picture | None:
    """Draw how many attempts passed, and how many each rule rejected."""
    tally = dict(run["tally"]) if isinstance(run.get("tally"), Mapping) else {}
    attempts, passed = tally.pop("tested", run.get("attempts")), tally.pop("passed", run.get("passed"))
    tally |= dict(run["rejected_by"]) if isinstance(run.get("rejected_by"), Mapping) else {}
    if not (isinstance(attempts, int) and isinstance(passed, int) and attempts > 0):
        return None
    rejected = {RULES.get(n, str(n).replace("_", " ")): c for n, c in tally.items() if isinstance(c, int) and c}
    counts = {"passed": passed, **rejected}
    figure = charts.bars(
        list(counts),
        [100 * c / attempts for c in counts.values()],
        ["fake", *["real"] * len(rejected)],
        x=f"% of {attempts:,} attempts",
        most=100,
        texts=[f"{c:,}" for c in counts.values()],
    )
    caption = "An attempt can break several rules. How many pass describes the filter, not how private fakes are."
    return Picture.of(figure, "Accepted and rejected", caption)


def _listed_facts(run: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return run, parameters and versions, as names and values."""
    versions = {"elsewhere": __version__, "Python": python_version()}
    for name in ("numpy", "numba", "scipy", "scikit-learn"):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    parts = {name: run[name] if isinstance(run.get(name), Mapping) else {} for name in ("parameters", "versions")}
    return {
        "The run": dict(_flat({n: v for n, v in run.items() if n not in SPECIAL})),
        "Parameters": dict(_flat(parts["parameters"])),
        "Versions": versions | dict(_flat(parts["versions"])),
    }


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
            yield key, f"{value:.4g}"
        else:
            yield key, number(value) if isinstance(value, int) else str(value)


REASONS = {
    "E_CSV": "more or fewer fields than the first line",
    "E_ENCODING": "an id with characters that are no text",
    "E_USER": "no user id",
    "E_DATE": "no readable time",
    "E_NUMBER": "a number that cannot be read",
    "E_OUTSIDE": "outside the globe",
    "E_NULL_ISLAND": "at latitude 0, longitude 0, where nobody else is: no position",
    "E_INDEX": "no place",
    "E_SPEED": "a single jump that no airliner could make",
    "repeated": "the same fix twice",
    "contradicted": "a second place at the same instant; the first was kept",
}
MOST_USERS = 80  # in the picture of coverage, and in the list of those dropped


def preparation_page(traces: Traces, prepared: Preparation) -> str:
    """
    Return the page of `elsewhere prepare`: how many rows, users, days were read, dropped, fixed, and why.

    It names users and shows their days and places: a private page, for the owner of the data alone.

    Examples
    --------
    >>> import elsewhere as ew
    >>> reports = []
    >>> day = {"uid": ["ann"] * 72, "slot": range(72), "loc": [0] * 30 + [1] * 42}
    >>> "1 user" in preparation_page(ew.read_traces(day, report=reports.append), reports[0])
    True

    """
    p, shown = prepared, Shown(real=traces)
    where, c = _locations(shown), prepared.coverage
    pictures = []
    if where is not None:
        figure = maps.visits_map(where, _time_at(traces), ink="real")
        pictures.append(Picture.of(figure, "Where people are", _map_note(shown)))
    if c is not None and c.date is not None and len(c.user):
        best = [u for u in np.argsort(-c.by_user, kind="stable") if np.any(c.user == u)][:MOST_USERS]
        line = np.full(len(c.labels), -1)
        line[best] = np.arange(len(best))
        some, first = line[c.user] >= 0, c.date.min()
        figure = charts.coverage(line[c.user[some]], (c.date - first).astype(int)[some], c.kept[some], str(first))
        caption = f"A line per user, best known first, {len(best)} of {p.users + p.users_dropped:,}; orange: dropped."
        pictures.append(Picture.of(figure, "Every user's days", caption))
    tenths = [f"{10 * i} to {10 * (i + 1)} %" for i in range(len(p.users_by_coverage))]
    users = list(p.users_by_coverage)
    figure = charts.bars(tenths, users, ["fake"] * len(users), x="users", texts=[number(n) for n in users])
    pictures.append(Picture.of(figure, "Users by share of their slots that are known"))
    lost: list[str] = []
    if c is not None:
        kept = np.bincount(c.user, c.kept, len(c.labels)) > 0
        lost = [f"{c.labels[u]} ({percent(float(c.by_user[u]), 0)} known)" for u in np.unique(c.user) if not kept[u]]
    longest = "–" if p.max_gap_minutes is None else length_text(p.max_gap_minutes)
    context = {
        "p": p,
        "slots": max(1, p.slots_observed + p.slots_held + p.slots_missing),
        "pictures": pictures,
        "reasons": REASONS,
        "longest": longest,
        "gap_words": GAPS.get(p.gaps, "").format(max_gap=longest, min_coverage=percent(p.min_coverage, 0)),
        "step": length_text(p.step_minutes or 0),
        "lost": lost[:MOST_USERS],
        "lost_more": max(0, len(lost) - MOST_USERS),
    }
    return render("prepare.html", context)
