"""The service scenario on the page: privacy against overhead for every generator of decoys."""

from typing import Any

from elsewhere.reports.given import SMALLEST_GROUP, Plain
from elsewhere.reports.markup import Child, Markup, number, percent, table, tag
from elsewhere.reports.svg import SHAPES, Series, plot

KNOWLEDGE = {
    "aggregate": "how people move in general",
    "user": "how this very person moves",
    "classes": "the classes of the places",
    "pool": "all published fakes",
}
KINDS = {"persona": "the same decoys every day", "fresh": "fresh decoys every day"}
PLACES = {"home": "home", "main": "main place"}
INKS = ("fake", "real", "test", "purple", "gold", "base")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "4 4", "1 3")


def service(result: Plain, *, shareable: bool) -> Markup:
    """Pictures and the table of one result of the service scenario; of few people none in the shareable edition."""
    settings, generators = result.get("settings") or {}, result.get("generators") or {}
    people = settings.get("users")
    if shareable and not (isinstance(people, int) and people >= SMALLEST_GROUP):
        few = f"Fewer than {SMALLEST_GROUP} people were hidden: their figures would be those of single people."
        return tag("p", few, class_="note")
    beta, users = percent(settings.get("beta"), 0), number(settings.get("users"))
    intro = (
        f"A person asks a service about her place at {beta} of the moments and sends fakes along as decoys. The "
        "service then guesses which place is the true one. Privacy is the share of true places it misses, the "
        f"median over {users} users; lines are 95 % intervals. A service that can only guess misses m of m + 1."
    )
    parts: list[Child] = [tag("p", intro)]
    charts = []
    for cost, x in (("diversity", "different places per request"), ("semantic", "different classes per request")):
        series = [_series(i, name, by_n, cost) for i, (name, by_n) in enumerate(_ours_first(generators))]
        series = [s for s in series if s.x]
        if series:
            charts.append(
                plot(series, x=f"overhead: {x}", y="true places missed, share", y_range=(0, 1),
                     lines=_ceilings(generators), title=f"Privacy against {x.split()[1]} sent",
                     caption="Tracking by a service that knows how people move in general; a mark per number of fakes.")
            )  # fmt: skip
    parts.append(tag("div", charts, class_="charts wide"))
    parts.append(_table(generators))
    parts += _over_days(result.get("over_days") or {})
    notes = result.get("notes") or []
    if notes:
        parts.append(tag("p", "Notes: " + " ".join(map(str, notes)), class_="note"))
    return tag("div", parts)


def _ours_first(generators: Plain) -> list[tuple[str, Plain]]:
    """In the given order, but what is ours first, so that it keeps its colour."""
    return sorted(generators.items(), key=lambda item: item[0].lower() not in ("ours", "elsewhere", "fakes"))


def _ceilings(generators: Plain) -> list[tuple[str, float]]:
    """What guessing alone would miss, by number of fakes."""
    found = {n: told.get("ceiling") for by_n in generators.values() for n, told in by_n.items()}
    return [(f"ceiling, {n} fake{'s' * (n != '1')}", c) for n, c in found.items() if isinstance(c, (int, float))]


def _tracking(by_adversary: Any, adversary: str = "aggregate", attack: str = "tracking") -> Plain:
    found = ((by_adversary or {}).get(adversary) or {}).get(attack) or {}
    exposed: Plain = found.get("exposed") or {}
    return exposed


def _series(i: int, name: str, by_n: Plain, cost: str) -> Series:
    x, y, low, high = [], [], [], []
    for told in by_n.values():
        error = _tracking(told.get("error"))
        price: Any = (told.get(cost) or {}).get("median")
        ends = error.get("interval") or [None, None]
        if all(isinstance(v, (int, float)) for v in (price, error.get("median"), *ends)):
            x.append(float(price))
            y.append(float(error["median"]))
            low.append(float(ends[0]))
            high.append(float(ends[1]))
    return Series(name, x, y, INKS[i % len(INKS)], SHAPES[i % len(SHAPES)], low, high, DASHES[i % len(DASHES)])


def _table(generators: Plain) -> Markup:
    known = [a for a in KNOWLEDGE if any(_tracking(t.get("error"), a) for g in generators.values() for t in g.values())]
    rows: list[list[Child]] = []
    for name, by_n in _ours_first(generators):
        for n, told in by_n.items():
            row: list[Child] = [name, n, number((told.get("diversity") or {}).get("median"), 1)]
            row.append(number((told.get("semantic") or {}).get("median"), 1))
            row.append(number(told.get("ceiling"), 2))
            row += [[_cell(told, a, "localization"), " / ", _cell(told, a, "tracking")] for a in known]
            rows.append(row)
    head: list[Child] = ["Generator", "Fakes", "Places sent", "Classes sent", "Ceiling m/(m+1)"]
    head += [[f"Knows {KNOWLEDGE[a]}", tag("small", "place by place / as a path")] for a in known]
    return table(
        head,
        rows,
        numbers=range(1, len(head)),
        caption="Share of true places that the service misses at the moments it is asked (median over users; more is "
        "more privacy), by what the service knows. Its two attacks: each place by itself, and the whole path.",
    )


def _over_days(watched: Plain) -> list[Child]:
    """Homes and main places found by a service that watches for several days: pictures, and a table below."""
    charts, rows = [], []
    for n, told in watched.items():
        series = []
        for decoys, words in KINDS.items():
            for place, by_days in (told["found"].get(decoys) or {}).items():
                known = sorted((int(days), rate) for days, rate in by_days.items())
                name = f"{PLACES[place]}, {words}"
                low, high = ([rate["interval"][i] for _, rate in known] for i in (0, 1))
                x, y = [float(i) for i in range(len(known))], [rate["value"] for _, rate in known]
                i = list(KINDS).index(decoys)
                ink, shape = (("fake", "circle"), ("real", "square"))[i]
                series.append(
                    Series(name, x, y, ink, shape if place == "home" else ("ring", "frame")[i], low, high,
                           "" if place == "home" else "5 3")
                )  # fmt: skip
                rows.append(
                    [words.capitalize(), n, PLACES[place],
                     *(f"{percent(r['value'], 0)} ({percent(r['interval'][0], 0)} to {percent(r['interval'][1], 0)})"
                       for _, r in known), percent(told["guess"], 0)]
                )  # fmt: skip
        days = [int(d) for d in told["users"]]
        charts.append(
            plot(series, x="days watched", y="found, share of people", y_range=(0, 1),
                 x_ticks=[float(i) for i in range(len(days))], x_names=[str(d) for d in days],
                 lines=[("guess", told["guess"])], title=f"Found behind {n} decoy{'s' * (n != '1')}",
                 caption=told["in_words"][:1].upper() + told["in_words"][1:])
        )  # fmt: skip
    if not charts:
        return []
    most = max((told["users"] for told in watched.values()), key=len)
    head = ["Decoys", "Fakes", "Place", *(f"{d} day{'s' * (d != '1')}" for d in most), "Guess"]
    return [
        tag("h3", "Watched for many days"),
        tag("p", "The service is sent the user’s day and the decoys, sees all lines whole, and names home and main "
            "place: by what recurs at night and at office hours, and, where decoys are the same personas every day, by "
            "which line lives most like a person. The figure is that of the stronger attack."),
        tag("div", charts, class_="charts wide"),
        table(head, [r + ["–"] * (len(head) - len(r)) for r in rows], numbers=range(3, len(head)),
              caption="Share of homes and main places found, with 95 % intervals; less is more privacy."),
    ]  # fmt: skip


def _cell(told: Plain, adversary: str, attack: str) -> str:
    value = _tracking(told.get("error"), adversary, attack).get("median")
    return f"{value:.2f}" if isinstance(value, (int, float)) else "–"
