"""
The report: one self-contained file that a data officer can read, in two editions.

`owner` may show real days and belongs to whoever holds the data; `shareable` holds aggregates and fakes only: no real
trace, no figure of one person, no way from a fake to its seed, no name of a user. This module turns results into what
the templates show; the words of the page are in templates/, its pictures in `charts` and `maps`.
"""

from collections.abc import Mapping
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elsewhere.data.gazetteer import SOURCE
from elsewhere.data.visits import DAY, UNITS, Floats, Ints, Visits, share_map
from elsewhere.errors import InvalidParameter, counted, require_choice
from elsewhere.evaluation.attack_base import NOT_RUN, percent
from elsewhere.evaluation.measures import FIELD, Crowd, Plan, lasting
from elsewhere.evaluation.usefulness import GOOD_FOR, NOT_FOR, ROUGH_FOR, UNKNOWN
from elsewhere.files import write_files
from elsewhere.reports import charts, claims, maps
from elsewhere.reports.charts import FORTNIGHT, Life, Plain, svg
from elsewhere.reports.claims import findings, number, outcome

EDITIONS = ("owner", "shareable")
MOST_PEOPLE = 2_000  # of each side in the pictures; of more, as many that lie evenly in the file
SIGNS = {GOOD_FOR: ("✓", "good"), ROUGH_FOR: ("≈", "rough"), NOT_FOR: ("✗", "bad"), UNKNOWN: ("?", "")} | claims.SIGNS
SMALLEST_GROUP = 5  # people: the figure of fewer would be somebody's own, and stays out of a shareable report
# keys by which the `to_dict()` of each kind of result is known
KINDS = {
    "judgement": {"usefulness", "audit"},
    "uses": {"uses", "divergences"},
    "publishing": {"aggregate", "visits", "allocation"},
    "services": {"settings", "generators"},
}
ACCEPTED = (
    "`results` must be a `Judgement`, a `Usefulness`, an `AuditResult`, a `PublishingResult`, an `LbsResult`, the "
    "`to_dict()` of one, or a list of such."
)
# of a run, what a shareable report may show; the rest may name a person, a file or the entropy
PUBLIC = ("method", "parameters", "reproducible", "simulated", "certificate", "notes", "versions", "sizes")
PARTS = ("Sizes", "Parameters", "Versions")
SECRET = {"seed", "rng", "entropy", "secret", "path", "source", "users", "ids"}
NOTES = {
    True: "Lines are moves. The larger a disc, the more time is spent there; maps side by side have one scale.",
    False: "The places have no coordinates, so there is no map of them.",
}
NIGHT, MIDDAY = slice(0, 6), slice(10, 17)  # hours of the day


class Picture(NamedTuple):
    """A picture with its title and a sentence below it."""

    title: str
    svg: str
    caption: str = ""

    @staticmethod
    def of(figure: Any, title: str, caption: str = "") -> "Picture":
        """Return a figure as a picture; title and caption are read to those who do not see it."""
        return Picture(title, svg(figure, f"{title}. {caption}".strip()), caption)


def report(
    results: Any,
    path: str | PathLike[str],
    *,
    edition: str = "shareable",
    people: Visits | None = None,
    fakes: Visits | None = None,
    seed_of_life: Any = None,
) -> None:
    """
    Write the report of an evaluation: one HTML file that opens offline and makes no request.

    Parameters
    ----------
    results
        A `Judgement`, a `Usefulness`, an `AuditResult`, a `PublishingResult` or an `LbsResult`, the `to_dict()` of one,
        or a list of such.
    path
        Where to; an old file is replaced as a whole.
    edition
        "shareable": aggregates and fakes only; "owner": real days too, for the eyes of their owner.
    people
        Real people beside the fakes; refused in the shareable edition.
    fakes
        The fakes, for the pictures.
    seed_of_life
        The number in `people` of the person behind each fake, -1 for nobody; refused in the shareable edition.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, elsewhere as ew
    >>> fakes = ew.simulate_town(users=20, days=3, locations=60, rng=np.random.default_rng(1)).visits
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> ew.report({"usefulness": None, "audit": None, "run": {"method": "life"}}, path, fakes=fakes)
    >>> path.read_text().startswith("<!doctype html>")
    True

    """
    require_choice("edition", edition, EDITIONS)
    shareable = edition == "shareable"
    for name, value in (("people", people), ("seed_of_life", seed_of_life)):
        if value is not None and shareable:
            raise InvalidParameter(
                f"`{name}` tells of real people, who never go into a shareable report; leave it out, or pass "
                'edition="owner".',
                code="E_PRIVATE",
                parameter=name,
            )
    for name, visits in (("people", people), ("fakes", fakes)):
        if visits is not None and not isinstance(visits, Visits):
            raise InvalidParameter(f"`{name}` must be `Visits`, got {type(visits).__name__}.", parameter=name)
    kinds = collect(results)
    run = _visible(kinds["run"]) if shareable else kinds["run"]
    shown = None if fakes is None else Shown.of(people, fakes, seed_of_life)
    audit = next(iter(kinds["audits"]), None)
    lives = {} if shown is None else shown.lives()
    context = {
        "shareable": shareable,
        "contents": _contents(run, fakes),
        "good_for": _good_for(kinds["uses"][0]["uses"]) if kinds["uses"] else {},
        "columns": [] if shown is None else [*_life_columns(shown, lives), *_crowd_column(shown)],
        "lives": list(lives.values()),
        "map_note": "" if shown is None else NOTES[shown.fakes.locations.has_coordinates],
        "names": SOURCE if shown is not None and shown.fakes.locations.lat is not None else "",
        "uses": [_use_cards(result, shown) for result in kinds["uses"]],
        "divergences": [result["divergences"] for result in kinds["uses"] if result["divergences"]],
        "advice": claims.advice(audit, run),
        "sentences": claims.three_sentences(audit, run),
        "audits": [_audit(result) for result in kinds["audits"]],
        "publishing": [one for one in kinds["publishing"] if not shareable or _enough(one)],
        "services": [
            (one, Picture.of(charts.location_privacy(one), "Privacy against what is sent"))
            for one in kinds["services"]
            if not shareable or _enough(one)
        ],
        "claims": claims.claims(audit, run),
        "run": run,
        "facts": {
            heading: {
                name.replace("_", " "): f"{v:,}" if type(v) in (int, float) else str(v)
                for name, v in values.items()
                if not isinstance(v, (Mapping, list))
            }
            for heading, values in (("Run", run), *((part, run.get(part.lower()) or {}) for part in PARTS))
        },
        "notes": [*kinds["notes"], *(run.get("notes") or ())],
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
    pages.filters |= {"number": number, "percent": percent}
    pages.globals |= {"signs": SIGNS, "outcome": outcome, "counted": counted, "field": FIELD}
    return pages


def write(path: str | PathLike[str], page: str) -> None:
    """Write a page whole or not at all, readable by its owner only until he gives it away."""
    target = Path(path)
    write_files(target.parent, {target.name: page.encode("utf-8", "replace")})


def collect(results: Any) -> dict[str, Any]:
    """
    Return results by kind (uses, audits, publishing, services: lists of plain numbers), with `run` and `notes`.

    Examples
    --------
    >>> len(collect([{"A1": {"status": "run", "passed": True}}])["audits"])
    1

    """
    kinds: dict[str, Any] = {"uses": [], "audits": [], "publishing": [], "services": [], "run": {}, "notes": []}
    for one in results if isinstance(results, (list, tuple)) else [results]:
        numbers = one.to_dict() if hasattr(one, "to_dict") else one
        kind = isinstance(numbers, Mapping) and next((k for k, keys in KINDS.items() if keys <= numbers.keys()), None)
        if kind == "judgement":
            kinds["uses"] += [numbers["usefulness"]] * (numbers["usefulness"] is not None)
            kinds["audits"] += [numbers["audit"]] * (numbers["audit"] is not None)
            kinds["run"] = {**kinds["run"], **(numbers.get("run") or {})}
            kinds["notes"] += numbers.get("notes") or []
        elif kind or findings(numbers if isinstance(numbers, Mapping) else None):
            kinds[kind or "audits"].append(numbers)
        else:
            raise InvalidParameter(ACCEPTED, parameter="results")
    return kinds


def _visible(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a run a shareable report shows: what may be public by its name, and no list of many values."""
    facts = {name: run[name] for name in PUBLIC if name in run}
    for name in map(str.lower, PARTS):
        plain = (facts.get(name) or {}).items()
        facts[name] = {n: v for n, v in plain if n not in SECRET and (v is None or isinstance(v, (str, int, float)))}
    return facts


class Shown(NamedTuple):
    """What the pictures show: fakes, people on the same map, and the person behind each fake, where they are known."""

    fakes: Visits
    people: Visits | None = None
    seed: Ints | None = None

    @staticmethod
    def of(people: Visits | None, fakes: Visits, seed_of_life: Any) -> "Shown":
        """Put both on one map; of more than `MOST_PEOPLE` fakes as many are shown, with the people behind them."""
        if people is None:
            return Shown(fakes.of_users(_some(fakes)))
        people, fakes = share_map(people, fakes)
        lives, some = _some(fakes), _some(people)
        seed = None if seed_of_life is None else np.asarray(seed_of_life, dtype=np.int64)[lives]
        if seed is None or np.any(seed < 0):
            return Shown(fakes.of_users(lives), people.of_users(some))
        others = np.setdiff1d(some, seed)[: MOST_PEOPLE // 2]
        chosen, number_of = np.unique(np.concatenate([seed, others]), return_inverse=True)
        return Shown(fakes.of_users(lives), people.of_users(chosen), number_of[: len(seed)])

    @property
    def crowds(self) -> dict[str, Crowd]:
        """Return people, where they are given, and fakes."""
        sides = ({} if self.people is None else {"people": self.people}) | {"fakes": self.fakes}
        timed = lasting(next(iter(sides.values())))
        return {name: Crowd(v, Plan(v.locations, timed=timed)) for name, v in sides.items()}

    def lives(self) -> dict[str, Life]:
        """Return two lives by title: a person's and its fake's, or where no person may be shown two fakes'."""
        several = bool(_days_seen(self.fakes).max() == 1)
        n = FORTNIGHT if several else 1
        fakes = typical(self.fakes, n if self.people is not None else 2 * n)
        if self.people is None:
            half, who = -(-len(fakes) // 2), ("fakes", "other fakes") if several else ("a fake", "another fake")
            sides = [(self.fakes, fakes[:half]), (self.fakes, fakes[half:])]
        else:
            who = ("people", "fakes") if several else ("a person", "a fake" if self.seed is None else "its fake")
            own = typical(self.people, n) if self.seed is None else list(dict.fromkeys(self.seed[fakes].tolist()))
            sides = [(self.people, own), (self.fakes, fakes)]
        what = "The fortnight" if not several else "Trips" if self.fakes.form.unit == "trip" else "Days"
        return {f"{what} of {name}": Life.of(*side) for name, side in zip(who, sides, strict=True) if side[1]}


def _some(visits: Visits) -> Ints:
    """Return the numbers of at most `MOST_PEOPLE` users of whom anything is known, evenly over the file."""
    chosen = np.unique(np.linspace(0, visits.U - 1, min(visits.U, MOST_PEOPLE)).astype(np.int64))
    return np.asarray(chosen[np.diff(visits.offsets)[chosen] > 0])


def _days_seen(visits: Visits) -> Ints:
    """Return on how many days each user is seen at the beginning of a visit."""
    pairs = np.unique(visits.user.astype(np.int64) * (1 << 32) + visits.start // DAY)
    return np.bincount(pairs >> 32, minlength=visits.U)


def typical(visits: Visits, n: int) -> list[int]:
    """Return n users who are seen on many days and visit neither most nor fewest places."""
    days = _days_seen(visits)
    long = np.flatnonzero(days >= min(FORTNIGHT, np.quantile(days, 0.8)))
    places = np.bincount(np.unique(visits.user.astype(np.int64) * visits.R + visits.place) // visits.R)
    order = long[np.argsort(places[long], kind="stable")]
    return [int(order[i]) for i in sorted({(i + 1) * len(order) // (n + 1) for i in range(n)})]


def _contents(run: Mapping[str, Any], fakes: Visits | None) -> str:
    """Return how many fakes there are, and in place of how many people, in a sentence."""
    sizes, who = run.get("sizes") or {}, UNITS["person" if fakes is None else fakes.form.unit][1]
    n = sizes.get("fakes") or (None if fakes is None else fakes.U)
    words = f"{number(n)} fake {who}" if n else f"Fake {who}"
    if not sizes:
        return f"{words}, in place of real ones."
    visits, seeds, places = (number(sizes.get(name)) for name in ("fake visits", "seeds", "places"))
    return f"{words} with {visits} visits, in place of {seeds} real ones, at {places} places."


def _good_for(uses: Plain) -> dict[str, str]:
    """Return the uses of each verdict, in a line."""
    titles: dict[str, list[str]] = {word: [] for word in (GOOD_FOR, ROUGH_FOR, NOT_FOR, UNKNOWN)}
    for use in uses.values():
        title = str(use["title"]).split(":")[0].replace(",", "")
        titles[str(use["verdict"])].append(title[:1].lower() + title[1:] if titles[str(use["verdict"])] else title)
    return {word: ", ".join(names) for word, names in titles.items() if names}


def _life_columns(shown: Shown, lives: Mapping[str, Life]) -> list[list[Picture]]:
    """Return for each life its hours and, where places have coordinates, its map, all maps on one scale."""
    columns = [
        [Picture.of(charts.life_strip(life), title, "Each row is another one." * life.of_several)]
        for title, life in lives.items()
    ]
    if (where := shown.fakes.locations).has_coordinates:
        weight = np.sum([np.bincount(life.visits.place, minlength=len(where)) for life in lives.values()], axis=0)
        window = maps.Window.of(where, weight > 0)
        for column, (title, life) in zip(columns, lives.items(), strict=True):
            column.append(Picture.of(maps.life_map(life, window), f"{title}, on the map"))
    return columns


def _crowd_column(shown: Shown) -> list[list[Picture]]:
    """Return maps of where people and where fakes are; without people, where fakes are by night and by day."""
    crowds, where = shown.crowds, shown.fakes.locations
    if not where.has_coordinates:
        return []
    inks = {"people": "real", "fakes": "fake"}
    panels = {f"Where {who} are": (charts.time_at(crowd), inks[who]) for who, crowd in crowds.items()}
    if shown.people is None:
        by_part = {
            "Where fakes are at night (0 to 6)": (charts.time_at(crowds["fakes"], NIGHT), "k0"),
            "Where fakes are by day (10 to 17)": (charts.time_at(crowds["fakes"], MIDDAY), "k1"),
        }
        panels = by_part if all(time.any() for time, _ in by_part.values()) else panels
    shares = {title: (time / time.sum(), ink) for title, (time, ink) in panels.items()}
    both = np.sum([share for share, _ in shares.values()], axis=0)
    window, most = maps.Window.of(where, both), max(float(share.max()) for share, _ in shares.values())
    figures = {t: maps.visits_map(share, ink=ink, window=window, most=most) for t, (share, ink) in shares.items()}
    return [[Picture.of(figure, title, window.outside(both)) for title, figure in figures.items()]]


def _use_cards(result: Plain, shown: Shown | None) -> list[tuple[Plain, Any]]:
    """Return every use with its verdict and its picture: curves of fakes beside people where both are at hand."""
    drawn = _use_curves(shown.crowds) if shown is not None and shown.people is not None else {}
    pairs = [(use, drawn.get(name) or charts.use_scale(use)) for name, use in result["uses"].items()]
    return [(use, figure and svg(figure, f"{use['title']}: {use['words']}")) for use, figure in pairs]


def _use_curves(crowds: Mapping[str, Crowd]) -> dict[str, Any]:
    """Return figures of fakes beside people, by use: hours, busiest places, lengths of trips and of stays."""
    by_hour = {who: (np.arange(24) + 0.5, _starts(crowd.visits)) for who, crowd in crowds.items()}
    visits = {who: crowd.visits_by_place() for who, crowd in crowds.items()}
    busiest = np.argsort(-visits["people"], kind="stable")[:10]
    sides = {who: (np.arange(1, len(busiest) + 1), 100 * v[busiest] / v.sum()) for who, v in visits.items()}
    drawn = {
        "hours": charts.curves(by_hour, x="hour of the day", y="records that begin (%)"),
        "places": charts.curves(sides, x="the people's busiest places, by rank", y="stays there (%)"),
    }
    lengths = {"stays": ({who: crowd.stay_lengths / 60 for who, crowd in crowds.items()}, "hours")}
    if crowds["people"].plan.locations.has_coordinates:
        lengths["trips"] = ({who: crowd.trip_lengths for who, crowd in crowds.items()}, "kilometres")
    for use, (samples, x) in lengths.items():
        if (shares := charts.shares_up_to(samples)) is not None:
            drawn[use] = charts.curves(shares, x=x, y=f"{use} up to so long (%)", log=True)
    return drawn


def _starts(visits: Visits) -> Floats:
    """Return (24,) the share of the visits that begin in each hour of the day, in per cent."""
    return np.asarray(100 * np.bincount(visits.start % DAY // 3600, minlength=24) / len(visits))


def _audit(audit: Plain) -> dict[str, Any]:
    """Return the findings of an audit, the strongest first, and the attacks that were not run."""
    by_id = findings(audit)
    ran = {n: f for n, f in by_id.items() if outcome(f) != NOT_RUN}
    order = claims.strongest_first(ran)
    return {"ran": {n: ran[n] for n in order}, "absent": {n: by_id[n] for n in by_id if n not in ran}}


def _enough(result: Plain) -> bool:
    """Tell whether the figures of a result are those of enough people to be shared."""
    sizes = {**(result.get("sizes") or {}), **(result.get("settings") or {})}
    return int(sizes.get("users") or sizes.get("train") or 0) >= SMALLEST_GROUP


def preparation_page(visits: Visits) -> str:
    """
    Return the page of `elsewhere prepare`: how a file was understood, and what was dropped and why.

    It shows where real people were: a private page, for the owner of the data alone.

    Examples
    --------
    >>> import elsewhere as ew
    >>> from elsewhere.data.visits import Visits
    >>> town = ew.Locations(n=2)
    >>> "3 visits of 2 people" in preparation_page(Visits([0, 0, 1], [50, 900, 50], [50, 960, 50], [1, 0, 1], town))
    True

    """
    some = visits.of_users(_some(visits))
    crowd = Crowd(some, Plan(some.locations))
    pictures = []
    if some.locations.has_coordinates:
        time = charts.time_at(crowd)
        window = maps.Window.of(some.locations, time)
        figure = maps.visits_map(time, ink="real", window=window)
        pictures.append(Picture.of(figure, "Where the records are", window.outside(time)))
    caption = f"By the clock of {visits.tz}. Where this looks shifted, the zone is wrong: give it by --tz."
    hours = {"people": (np.arange(24) + 0.5, _starts(some))}
    figure = charts.curves(hours, x="hour of the day", y="records that begin (%)")
    pictures.append(Picture.of(figure, "Hours of the day", caption))
    days = _days_seen(some)
    context = {
        "p": visits.preparation,
        "visits": visits,
        "unit": UNITS[visits.form.unit],
        "first": str(np.datetime64(int(visits.start.min()), "s").astype("datetime64[D]")),
        "last": str(np.datetime64(int(visits.end.max()), "s").astype("datetime64[D]")),
        "days": float(np.median(days)),
        "per_day": float(np.median(np.diff(some.offsets) / np.maximum(days, 1))),
        "timed": crowd.timed,
        "pictures": pictures,
    }
    return render("prepare.html", context)
