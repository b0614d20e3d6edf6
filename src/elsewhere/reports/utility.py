"""What fakes keep, on the page: the publishing scenario, lives over days, and decoys for a service."""

from collections.abc import Iterable, Sequence
from typing import Any

from elsewhere.reports.markup import Child, Markup, badge, number, percent, table, tag
from elsewhere.reports.results import SMALLEST_GROUP, Plain
from elsewhere.reports.svg import SHAPES, WIDTH, Bar, Frame, Series, bars, figure, histogram, key, plot, ticks

NAMES = {
    "visits_kl": "visits per place, not sorted",
    "visits_kl_top": "visits per place, 50 most visited",
    "visits_js": "visits per place",
    "visits_tv": "visits per place",
    "time_of_day_tv": "visits per place at each time of day",
    "transition_tv": "where people go next",
    "transition_emd_east": "where people go next, east-west",
    "transition_emd_north": "where people go next, north-south",
    "top_10_overlap": "10 most visited places that are the same",
    "top_50_overlap": "50 most visited places that are the same",
    "visits_entropy": "how spread the visits are (entropy)",
    "moves": "moves",
    "distinct_places": "distinct places",
    "visit_entropy": "spread of the time over places (entropy)",
    "dwell": "length of a stay",
    "trip_length": "length of a trip",
    "radius_of_gyration": "radius of gyration",
}
BETTER = {"top_10_overlap": "more is better", "top_50_overlap": "more is better", "visits_entropy": "nearer to real is better"}  # noqa: E501 # fmt: skip


def show_publishing(result: Plain, *, shareable: bool) -> Markup:
    """Return all tables and figures of one publishing result."""
    sizes = result.get("sizes") or {}
    # however many days there are, a mean over few people would be somebody's own
    people = [sizes.get("users", sizes.get("train"))]
    if sizes.get("test"):
        people.append(sizes.get("test_users", sizes["test"]))
    few = shareable and not all(isinstance(n, int) and n >= SMALLEST_GROUP for n in people)
    names = ("train", "fakes", "datasets", "dataset_size", "places", "slots")
    real, n_fakes, datasets, size, places, slots = (number(sizes.get(name)) for name in names)
    several = sizes.get("datasets") != 1
    over = " Figures are means over the datasets, ± is their standard deviation." if several else ""
    intro = (
        f"{real} real traces; {n_fakes} fakes in {datasets} dataset{'s' * several} of {size}; {places} places, "
        f"{slots} slots a trace.{over} "
        "“Testing” is other real data: fakes cannot be expected to be closer than that."
    )
    parts: list[Child] = [tag("p", intro)]
    if not sizes.get("test"):
        parts.append(tag("p", "No second real dataset was given, so the column “testing” is empty.", class_="note"))
    parts += [_aggregates(result), _popularity(result), _allocation(result)]
    if few:
        parts.append(tag("p", "Fewer than 5 real people: histograms and habits would show single people and are left "
                         "out.", class_="note"))  # fmt: skip
    else:
        parts += [_similarity(result), _habits(result)]
    parts.append(_further_measures(result))
    notes = [str(n) for n in result.get("notes") or ()]
    if notes:
        parts.append(tag("p", "Notes: " + " ".join(n[:1].upper() + n[1:] for n in notes), class_="note"))
    return tag("div", parts)


def mean(value: Any) -> float | None:
    """Return the mean of a figure, or the figure itself where it is one number."""
    value = value.get("mean") if isinstance(value, dict) else value
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def spread(value: Any) -> str:
    """Return mean ± standard deviation over the datasets; the figure alone where there is one."""
    if not isinstance(value, dict) or value.get("std") is None:
        return number(mean(value))
    return f"{number(mean(value))} ± {number(value.get('std'))}"


def _bars(figure: Plain, also: Iterable[tuple[str, str, str]]) -> list[Bar]:
    rows = []
    if "train" in figure:
        rows.append(Bar("real", mean(figure["train"]), "real"))
    if figure.get("testing") is not None:
        rows.append(Bar("testing (other real data)", mean(figure["testing"]), "test"))
    fakes = figure.get("fakes")
    here, std = mean(fakes), fakes.get("std") if isinstance(fakes, dict) else None
    span = [here - std, here + std] if here is not None and isinstance(std, (int, float)) and std > 0 else None
    rows.append(Bar("fakes", here, "fake", span))
    return rows + [Bar(words, mean(figure[n]), ink) for n, words, ink in also if figure.get(n) is not None]


def _aggregates(result: Plain) -> Markup:
    figures = result.get("aggregate") or {}
    names = {"pi_bar": "Where people are (π̄)", "p_bar": "Where people go next (p̄)"}
    charts = [
        bars(_bars(figures[n], ()), unit="similarity to the real aggregate (1 = the same)", title=words, top=1.0)
        for n, words in names.items()
        if isinstance(figures.get(n), dict)
    ]
    by_epsilon = (figures.get("p_bar") or {}).get("by_epsilon") or {}
    rows = [[e, number(mean(f.get("testing"))), spread(f.get("fakes"))] for e, f in by_epsilon.items()]
    more = table(["ε", "Testing", "Fakes"], rows, numbers=(1, 2), caption="Similarity of p̄ (share, 1 = the same) by "
                 "the weight ε of the distance kernel.") if len(rows) > 1 else None  # fmt: skip
    return tag(
        "div",
        tag("h3", "Aggregates: does the crowd move the same way?"),
        tag("div", charts, class_="charts"),
        None if more is None else tag("details", tag("summary", "How this depends on ε"), more),
    )


def _popularity(result: Plain) -> Markup:
    figures = result.get("visits") or {}
    charts = []
    for name, title in (("all", "All places"), ("top", "50 most popular places")):
        figure = figures.get(name)
        if isinstance(figure, dict):
            also = (
                ("uniform", "uniform (every place alike)", "base"),
                ("single", "single (everybody at one place)", "purple"),
            )
            places = f"{title} ({number(figure.get('places'))})" if name == "all" else title
            charts.append(bars(_bars(figure, also), unit="KL divergence from real, nats (0 = the same)", title=places))
    return tag(
        "div",
        tag("h3", "Popularity of places"),
        tag("p", "How far the visiting probabilities, sorted by popularity, are from the real ones.", class_="note"),
        tag("div", charts, class_="charts"),
    )


def _allocation(result: Plain) -> Markup:
    figures = result.get("allocation") or {}
    names = {"1": "Most visited place of each person", "2": "Second place", "3": "Third place"}
    also = (("uniform", "uniform (a third each)", "base"), ("random", "random shares", "purple"))
    charts = [
        bars(_bars(figures[j], also), unit="KL divergence from real, nats (0 = the same)", title=words)
        for j, words in names.items()
        if isinstance(figures.get(j), dict)
    ]
    rows = [
        [words, spread(figures[j].get("paired")), spread(figures[j].get("random_unsorted"))]
        for j, words in names.items()
        if isinstance(figures.get(j), dict) and figures[j].get("paired") is not None
    ]
    more = table(["", "Fakes, each against its own seed", "Random shares, not sorted"], rows, numbers=(1, 2),
                 caption="Further readings of the same figure (KL, nats); ± is the standard deviation over "
                 "datasets, of random shares over draws.") if rows else None  # fmt: skip
    return tag(
        "div",
        tag("h3", "Time at the favourite places"),
        tag("p", "How people share out their time over their three most visited places.", class_="note"),
        tag("div", charts, class_="charts"),
        None if more is None else tag("details", tag("summary", "More on time allocation"), more),
    )


def _similarity(result: Plain) -> Markup:
    histograms, qq = result.get("similarity") or {}, result.get("qq")
    edges = histograms.get("bin_edges") or []
    charts = []
    for name, title, x, words in (
        ("geographic", "Same places as its own seed", "geographic similarity (0 none, 1 full)",
         "Fake against the trace it was made from: should be low."),
        ("semantic", "Same way of life as its own seed", "semantic similarity (0 none, 1 full)",
         "Fake against the trace it was made from: should be high."),
        ("differential", "Its seed against everybody else", "difference of semantic similarity",
         "Semantic similarity of a fake to its seed minus that to another person: a small difference hides the seed."),
    ):  # fmt: skip
        figure = histograms.get(name)
        if isinstance(figure, dict) and len(edges) == len(figure.get("histogram") or []) + 1:
            caption = f"{words} Mean {number(figure.get('mean'), 2)} over {number(figure.get('n'))} pairs."
            series = [("fakes", figure["histogram"], "fake")]
            charts.append(histogram(edges, series, x=x, y="share of pairs, %", title=title, caption=caption))
    both = [(words, histograms[n]["histogram"], ink) for n, words, ink in
            (("fake_fake", "fake and fake", "fake"), ("real_real", "real and real", "real"))
            if isinstance(histograms.get(n), dict)]  # fmt: skip
    if len(both) == 2:
        charts.append(
            histogram(edges, both, x="semantic similarity (0 none, 1 full)", y="share of pairs, %",
                      title="Resemblance among each other", caption="Two fakes of a dataset, and two real traces.")
        )  # fmt: skip
    if isinstance(qq, dict) and qq.get("real"):
        caption = (
            f"Quantiles 1 % to 99 %; correlation {number(qq.get('correlation'), 4)}. On the dotted line both agree."
        )
        charts.append(
            plot([Series("quantiles", qq["real"], qq["fake"])], x="among real traces, similarity",
                 y="among fakes, similarity", title="Q-Q of semantic similarity", caption=caption, diagonal=True,
                 x_range=(0, 1), y_range=(0, 1), size=2.5)
        )  # fmt: skip
    lacking = None
    if "semantic" not in histograms:
        lacking = tag("p", "It is not known which fake was made from which seed, so fakes are not compared with their "
                      "seeds.", class_="note")  # fmt: skip
    return tag("div", tag("h3", "Similarity of traces"), lacking, tag("div", charts, class_="charts"))


def _habits(result: Plain) -> Markup:
    figures = result.get("habits") or {}
    charts, rows = [], []
    for name, habit in figures.items():
        if not isinstance(habit, dict):
            continue
        words, unit = NAMES.get(name, name.replace("_", " ")), str(habit.get("unit", ""))
        lines = []
        for side, label, ink in (("train", "real", "real"), ("testing", "testing (other real data)", "test"), ("fakes", "fakes", "fake")):  # noqa: E501 # fmt: skip
            f = habit.get(side)
            if isinstance(f, dict):
                mean_text = f"{number(f.get('mean'), 1)}"
                ends = [f["lower"], f["upper"]] if isinstance(f.get("lower"), (int, float)) else None
                lines.append(Bar(label, mean(f), ink, ends, mean_text))
        if lines:
            charts.append(bars(lines, unit=f"mean, {unit}; whisker: middle half", title=words.capitalize()))
        away = habit.get("distance") or {}
        rows.append([words, unit, number(mean(away.get("testing"))), number(mean(away.get("fakes")))])
    without = None
    if figures and "trip_length" not in figures:
        without = tag("p", "The places have no coordinates: trips and radius are not measured.", class_="note")
    distances = table(["Habit", "Unit", "Testing", "Fakes"], rows, numbers=(2, 3),
                      caption="Earth mover's distance between the real distribution and another, in the unit of the habit.")  # noqa: E501 # fmt: skip
    return tag(
        "div",
        tag("h3", "Habits: does a fake live like a person?"),
        without,
        tag("div", charts, class_="charts"),
        tag("details", tag("summary", "Distances between the distributions"), distances) if rows else None,
    )


def _further_measures(result: Plain) -> Markup:
    rows = []
    for name, measure in (result.get("beyond") or {}).items():
        if not isinstance(measure, dict):
            continue
        other = measure.get("to_test") or {}
        words = NAMES.get(name, name.replace("_", " "))
        rows.append(
            [
                [words, tag("small", BETTER.get(name, "less is better"))],
                measure.get("unit", ""),
                number(mean(measure.get("train"))) if "train" in measure else "–",
                number(mean(measure.get("testing"))),
                spread(measure.get("fakes")),
                number(mean(other.get("train"))),
                spread(other.get("fakes")) if other else "–",
            ]
        )
    return tag(
        "div",
        tag("h3", "Measures that are not in the paper"),
        table(
            ["Measure", "Unit", "Real itself", "Testing", "Fakes", "Real, from testing", "Fakes, from testing"],
            rows,
            numbers=range(2, 7),
            caption="Further distances from the real traces, and in the last two columns from the testing data. KL, "
            "JS: divergences in nats; TV: total variation, 0 to 1.",
        ),
    )


DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
KINDS = {7: DAYS, 2: ("weekday", "weekend"), 1: ("day",)}
PLACES = {"home": "At home", "main": "At the main place beside home"}
RULE = (
    "The real people are split into halves, 20 times. “Off by” is how far fakes are from one half: for a measure of a "
    "person the difference of the means, as a share of the real mean; for the others the share that does not match. "
    "Beside it stands the same figure between the two halves. As other people: fakes are off by at most 10 points "
    "more than that. This does not say what they are good for: where the halves hardly match, fakes that match as "
    "little are as other people too. A mean depends on its largest values: the mean length of moves can be off "
    "although most trips have the right length. “People”: the share of people whose value differs, for fakes and for "
    "the other half."
)


def summarise_lives(result: Plain) -> str:
    """Return in how many of the measures that people ask first fakes are as other people, in a few words."""
    measures = (result.get("measures") or {}).values()
    judged = [m for m in measures if m.get("first") and m.get("within") is not None]
    near, far = (sum(bool(m.get(name)) for m in judged) for name in ("within", "far"))
    also = f"; in {far} of these they are off by more than half, and other real people hardly less" if far else ""
    return (
        f"Lives over days: in {near} of {len(judged)} measures fakes are as near to real people as other real people "
        f"are (off by at most 10 points more){also}."
    )


def show_lives(result: Plain) -> Markup:
    """Return table and pictures of one comparison of lives."""
    sizes = result.get("sizes") or {}
    people, days, fakes, fake_days = (number(sizes.get(name)) for name in ("people", "days", "fakes", "fake_days"))
    sentence = str(result.get("in_words") or "")
    measures = list((result.get("measures") or {}).values())
    first, further = ([m for m in measures if bool(m.get("first")) is wanted] for wanted in (True, False))
    notes = result.get("notes") or []
    return tag(
        "div",
        tag("p", f"{people} real people with {days} days, {fakes} fakes with {fake_days}: the days of a fake are one "
            "life. ",
            sentence[:1].upper() + sentence[1:]),
        _measures(first, "Measures of lives: fakes, real people, and how far both are off."),
        tag("details", tag("summary", "Further measures"), _measures(further, "Further measures of lives."))
        if further else None,
        tag("div", _curves(result.get("growth") or {}, result.get("week") or {}), class_="charts wide"),
        tag("p", " ".join([RULE, *map(str, notes)]), class_="note"),
    )  # fmt: skip


def _measures(measures: Sequence[Plain], caption: str) -> Markup:
    rows: list[list[Child]] = []
    for m in measures:
        means = []
        for value in (m.get("fakes"), m.get("real")):
            if not isinstance(value, (int, float)):
                means.append("–")
            elif m.get("unit") == "%":
                means.append(percent(value, 0))
            else:
                means.append(f"{number(float(value), 1 if value >= 1 else 2)} {m.get('unit', '')}".strip())
        sign, kind = {True: ("✓", "good"), False: ("✗", "bad")}.get(m.get("within"), ("–", ""))  # type: ignore[arg-type]
        word = badge(sign, str(m.get("word", "")), kind)
        off = [percent(m.get(name), 0) for name in ("off", "halves")]
        apart = [percent(m.get(name), 0) for name in ("people_off", "people_halves")]
        rows.append([m.get("title", ""), word, *means, *off, " / ".join(apart) if apart[0] != "–" else "–"])
    head = ["Measure", "Verdict", "Fakes", "Real people", "Fakes are off by", "Two halves of the people", "People"]
    return table(head, rows, numbers=range(2, 7), caption=caption)


def _curves(growth: Plain, week: Plain) -> list[Child]:
    """Draw distinct places against days, and who is at home and at the main place by hour."""
    pictures: list[Child] = []
    days = growth.get("days") or []
    if len(days) > 1:
        pictures.append(
            _curve(growth, days, x="days", y="distinct places", title="Distinct places against days", across=None,
                   caption="Mean over people who have so many days. Band: halves of the real people.")
        )  # fmt: skip
    kinds = week.get("kinds") or 1
    x = {7: "hour of the week", 2: "hour of the day", 1: "hour of the day"}.get(kinds, "hour")
    for place, words in PLACES.items():
        if place in week:
            sides = ("fakes", "real", "low", "high")
            shares = {side: [None if v is None else 100 * v for v in week[place][side]] for side in sides}
            pictures.append(
                _curve(shares, week[place]["hour"], x=x, y="people, %", title=words, across=KINDS.get(kinds, DAYS),
                       caption="Share of people who are there at that hour. Band: halves of the real people.")
            )  # fmt: skip
    return pictures


def _curve(
    curve: Plain, along: Sequence[float], *, x: str, y: str, title: str, across: Sequence[str] | None, caption: str
) -> Markup:
    """Draw two lines, fakes and real people, over the band of halves; `across` names days of 24 hours along x."""
    values = [v for side in ("fakes", "real", "low", "high") for v in curve[side] if isinstance(v, (int, float))]
    upper = 100.0 if across else max([1.0, *values])
    marks = [24.0 * i for i in range(len(across) + 1)] if across else ticks(along[0], along[-1])
    names = [(24.0 * i + 12, name) for i, name in enumerate(across or ())]
    if across and len(across) == 1:
        marks, names = [0.0, 6.0, 12.0, 18.0, 24.0], []
    frame = Frame(marks, ticks(0, upper, 5), x, y, height=250, names=names)
    parts: list[Child] = [frame.axes()]
    band = [(a, lo, hi) for a, lo, hi in zip(along, curve["low"], curve["high"], strict=True) if None not in (lo, hi)]
    if band:
        there = [f"{frame.px(a):.1f} {frame.py(hi):.1f}" for a, _, hi in band]
        back = [f"{frame.px(a):.1f} {frame.py(lo):.1f}" for a, lo, _ in reversed(band)]
        parts.append(tag("path", d="M" + "L".join([*there, *back]) + "Z", class_="fill ink-real", fill_opacity="0.18"))
    for side, dash in (("real", "5 3"), ("fakes", None)):
        ink = "fake" if side == "fakes" else "real"
        # an unknown value interrupts the line
        path, command = "", "M"
        for a, v in zip(along, curve[side], strict=True):
            path += "" if v is None else f"{command}{frame.px(a):.1f} {frame.py(v):.1f}"
            command = "M" if v is None else "L"
        parts.append(tag("path", d=path or "M0 0", class_=f"stroke ink-{ink}", stroke_dasharray=dash))
    last = [next((v for v in reversed(curve[side]) if v is not None), None) for side in ("fakes", "real")]
    label = f"{title} ({x}; {y}). fakes: {number(last[0], 1)} at the end; real people: {number(last[1], 1)} at the end"
    legend = key([("fakes", "fake", "line"), ("real people", "real", "dash")])
    return figure(parts, WIDTH, frame.height, label, title=title, caption=caption, legend=legend)


KNOWLEDGE = {
    "aggregate": "how people move in general",
    "user": "how this very person moves",
    "classes": "the classes of the places",
    "pool": "all published fakes",
}
DECOYS = {"persona": "the same decoys every day", "fresh": "fresh decoys every day"}
TARGETS = {"home": "home", "main": "main place"}
INKS = ("fake", "real", "test", "purple", "gold", "base")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "4 4", "1 3")


def show_service(result: Plain, *, shareable: bool) -> Markup:
    """
    Return pictures and the table of one result of the service scenario; of few people none in the shareable
    edition.
    """
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
        series = [_series(i, name, by_n, cost) for i, (name, by_n) in enumerate(_order_generators(generators))]
        series = [s for s in series if s.x]
        if series:
            charts.append(
                plot(series, x=f"overhead: {x}", y="true places missed, share", y_range=(0, 1),
                     lines=_ceilings(generators), title=f"Privacy against {x.split()[1]} sent",
                     caption="Tracking by a service that knows how people move in general; a mark per number of fakes.")
            )  # fmt: skip
    parts.append(tag("div", charts, class_="charts wide"))
    parts.append(_generators(generators))
    parts += _over_days(result.get("over_days") or {})
    notes = result.get("notes") or []
    if notes:
        parts.append(tag("p", "Notes: " + " ".join(map(str, notes)), class_="note"))
    return tag("div", parts)


def _order_generators(generators: Plain) -> list[tuple[str, Plain]]:
    """Return the names in the given order, but ours first, so that it keeps its colour."""
    return sorted(generators.items(), key=lambda item: item[0].lower() not in ("ours", "elsewhere", "fakes"))


def _ceilings(generators: Plain) -> list[tuple[str, float]]:
    """Return what guessing alone would miss, by number of fakes."""
    ceilings = {n: figures.get("ceiling") for by_n in generators.values() for n, figures in by_n.items()}
    return [(f"ceiling, {n} fake{'s' * (n != '1')}", c) for n, c in ceilings.items() if isinstance(c, (int, float))]


def _tracking(by_adversary: Any, adversary: str = "aggregate", attack: str = "tracking") -> Plain:
    by_attack = ((by_adversary or {}).get(adversary) or {}).get(attack) or {}
    exposed: Plain = by_attack.get("exposed") or {}
    return exposed


def _series(i: int, name: str, by_n: Plain, cost: str) -> Series:
    x, y, low, high = [], [], [], []
    for figures in by_n.values():
        error = _tracking(figures.get("error"))
        price: Any = (figures.get(cost) or {}).get("median")
        ends = error.get("interval") or [None, None]
        if all(isinstance(v, (int, float)) for v in (price, error.get("median"), *ends)):
            x.append(float(price))
            y.append(float(error["median"]))
            low.append(float(ends[0]))
            high.append(float(ends[1]))
    return Series(name, x, y, INKS[i % len(INKS)], SHAPES[i % len(SHAPES)], low, high, DASHES[i % len(DASHES)])


def _generators(generators: Plain) -> Markup:
    adversaries = [
        a for a in KNOWLEDGE if any(_tracking(t.get("error"), a) for g in generators.values() for t in g.values())
    ]
    rows: list[list[Child]] = []
    for name, by_n in _order_generators(generators):
        for n, figures in by_n.items():
            row: list[Child] = [name, n, number((figures.get("diversity") or {}).get("median"), 1)]
            row.append(number((figures.get("semantic") or {}).get("median"), 1))
            row.append(number(figures.get("ceiling"), 2))
            row += [[_cell(figures, a, "localization"), " / ", _cell(figures, a, "tracking")] for a in adversaries]
            rows.append(row)
    head: list[Child] = ["Generator", "Fakes", "Places sent", "Classes sent", "Ceiling m/(m+1)"]
    head += [[f"Knows {KNOWLEDGE[a]}", tag("small", "place by place / as a path")] for a in adversaries]
    return table(
        head,
        rows,
        numbers=range(1, len(head)),
        caption="Share of true places that the service misses at the moments it is asked (median over users; more is "
        "more privacy), by what the service knows. Its two attacks: each place by itself, and the whole path.",
    )


def _over_days(by_number: Plain) -> list[Child]:
    """Show homes and main places found by a service that watches for several days: pictures, and a table below."""
    charts, rows = [], []
    for n, figures in by_number.items():
        series = []
        for decoys, words in DECOYS.items():
            for place, by_days in (figures["found"].get(decoys) or {}).items():
                points = sorted((int(days), rate) for days, rate in by_days.items())
                name = f"{TARGETS[place]}, {words}"
                low, high = ([rate["interval"][i] for _, rate in points] for i in (0, 1))
                x, y = [float(i) for i in range(len(points))], [rate["value"] for _, rate in points]
                i = list(DECOYS).index(decoys)
                ink, shape = (("fake", "circle"), ("real", "square"))[i]
                series.append(
                    Series(name, x, y, ink, shape if place == "home" else ("ring", "frame")[i], low, high,
                           "" if place == "home" else "5 3")
                )  # fmt: skip
                rows.append(
                    [words.capitalize(), n, TARGETS[place],
                     *(f"{percent(r['value'], 0)} ({percent(r['interval'][0], 0)} to {percent(r['interval'][1], 0)})"
                       for _, r in points), percent(figures["guess"], 0)]
                )  # fmt: skip
        days = [int(d) for d in figures["users"]]
        charts.append(
            plot(series, x="days watched", y="found, share of people", y_range=(0, 1),
                 x_ticks=[float(i) for i in range(len(days))], x_names=[str(d) for d in days],
                 lines=[("guess", figures["guess"])], title=f"Found behind {n} decoy{'s' * (n != '1')}",
                 caption=figures["in_words"][:1].upper() + figures["in_words"][1:])
        )  # fmt: skip
    if not charts:
        return []
    most = max((figures["users"] for figures in by_number.values()), key=len)
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


def _cell(figures: Plain, adversary: str, attack: str) -> str:
    value = _tracking(figures.get("error"), adversary, attack).get("median")
    return f"{value:.2f}" if isinstance(value, (int, float)) else "–"
