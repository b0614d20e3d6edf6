"""The publishing scenario on the page: every table and figure of what the fakes keep of the real traces."""

from collections.abc import Iterable
from typing import Any

from elsewhere.reports.given import SMALLEST_GROUP, Plain
from elsewhere.reports.markup import Child, Markup, number, table, tag
from elsewhere.reports.svg import Bar, Series, bars, histogram, plot

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


def utility(result: Plain, *, shareable: bool) -> Markup:
    """All tables and figures of one publishing result."""
    sizes = result.get("sizes") or {}
    few = shareable and _few(sizes)
    names = ("train", "fakes", "datasets", "dataset_size", "places", "instants")
    real, made, datasets, size, places, instants = (number(sizes.get(name)) for name in names)
    intro = (
        f"{real} real traces; {made} fakes in {datasets} datasets of {size}; {places} places, {instants} instants a "
        "trace. Figures are means over the datasets, ± is their standard deviation. "
        "“Testing” is other real data: nobody can expect a fake to be closer than that."
    )
    parts: list[Child] = [tag("p", intro)]
    if not sizes.get("test"):
        parts.append(tag("p", "No second real dataset was given, so the column “testing” is empty.", class_="note"))
    parts += [_aggregates(result), _visits(result), _allocation(result)]
    if few:
        parts.append(tag("p", "Fewer than 5 real people: histograms and habits would show single people and are left "
                         "out.", class_="note"))  # fmt: skip
    else:
        parts += [_similarity(result), _habits(result)]
    parts += [_beyond(result), _notes(result.get("notes"))]
    return tag("div", parts)


def _few(sizes: Plain) -> bool:
    """Whether either side is so few people, however many days, that a mean would be somebody's own."""
    people = [sizes.get("users", sizes.get("train"))]
    if sizes.get("test"):
        people.append(sizes.get("test_users", sizes["test"]))
    return not all(isinstance(n, int) and n >= SMALLEST_GROUP for n in people)


def _notes(notes: Any) -> Markup | None:
    lines = [str(n) for n in notes] if isinstance(notes, (list, tuple)) else []
    return tag("p", "Notes: " + " ".join(n[:1].upper() + n[1:] for n in lines), class_="note") if lines else None


def mean(value: Any) -> float | None:
    """The mean of a figure, or the figure itself where it is one number."""
    value = value.get("mean") if isinstance(value, dict) else value
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def spread(value: Any) -> str:
    """Mean ± standard deviation over the datasets."""
    if not isinstance(value, dict):
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
    found = result.get("aggregate") or {}
    names = {"pi_bar": "Where people are (π̄)", "p_bar": "Where people go next (p̄)"}
    charts = [
        bars(_bars(found[n], ()), unit="similarity to the real aggregate (1 = the same)", title=words, top=1.0)
        for n, words in names.items()
        if isinstance(found.get(n), dict)
    ]
    by_epsilon = (found.get("p_bar") or {}).get("by_epsilon") or {}
    rows = [[e, number(mean(f.get("testing"))), spread(f.get("fakes"))] for e, f in by_epsilon.items()]
    more = table(["ε", "Testing", "Fakes"], rows, numbers=(1, 2), caption="Similarity of p̄ (share, 1 = the same) by "
                 "the weight ε of the distance kernel.") if len(rows) > 1 else None  # fmt: skip
    return tag(
        "div",
        tag("h3", "Aggregates: does the crowd move the same way?"),
        tag("div", charts, class_="charts"),
        None if more is None else tag("details", tag("summary", "How this depends on ε"), more),
    )


def _visits(result: Plain) -> Markup:
    found = result.get("visits") or {}
    charts = []
    for name, title in (("all", "All places"), ("top", "50 most popular places")):
        figure = found.get(name)
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
    found = result.get("allocation") or {}
    names = {"1": "Most visited place of each person", "2": "Second place", "3": "Third place"}
    also = (("uniform", "uniform (a third each)", "base"), ("random", "random shares", "purple"))
    charts = [
        bars(_bars(found[j], also), unit="KL divergence from real, nats (0 = the same)", title=words)
        for j, words in names.items()
        if isinstance(found.get(j), dict)
    ]
    rows = [
        [words, spread(found[j].get("paired")), spread(found[j].get("random_sorted"))]
        for j, words in names.items()
        if isinstance(found.get(j), dict) and found[j].get("paired") is not None
    ]
    more = table(["", "Fakes, each against its own seed", "Random, sorted"], rows, numbers=(1, 2),
                 caption="Further readings of the same figure (KL, nats).") if rows else None  # fmt: skip
    return tag(
        "div",
        tag("h3", "Time at the favourite places"),
        tag("p", "How people share out their time over their three most visited places.", class_="note"),
        tag("div", charts, class_="charts"),
        None if more is None else tag("details", tag("summary", "More on time allocation"), more),
    )


def _similarity(result: Plain) -> Markup:
    found, qq = result.get("similarity") or {}, result.get("qq")
    edges = found.get("bin_edges") or []
    charts = []
    for name, title, x, words in (
        ("geographic", "Same places as its own seed", "geographic similarity (0 none, 1 full)",
         "Fake against the trace it was made from: should be low."),
        ("semantic", "Same way of life as its own seed", "semantic similarity (0 none, 1 full)",
         "Fake against the trace it was made from: should be high."),
        ("differential", "Its seed against everybody else", "difference of semantic similarity",
         "How much more, or less, a fake resembles its seed than another person: small hides the seed."),
    ):  # fmt: skip
        figure = found.get(name)
        if isinstance(figure, dict) and len(edges) == len(figure.get("histogram") or []) + 1:
            caption = f"{words} Mean {number(figure.get('mean'), 2)} over {number(figure.get('n'))} pairs."
            series = [("fakes", figure["histogram"], "fake")]
            charts.append(histogram(edges, series, x=x, y="share of pairs, %", title=title, caption=caption))
    both = [(words, found[n]["histogram"], ink) for n, words, ink in
            (("fake_fake", "fake and fake", "fake"), ("real_real", "real and real", "real"))
            if isinstance(found.get(n), dict)]  # fmt: skip
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
    if "semantic" not in found:
        lacking = tag("p", "It is not known which fake was made from which seed, so fakes are not compared with their "
                      "seeds.", class_="note")  # fmt: skip
    return tag("div", tag("h3", "Similarity of traces"), lacking, tag("div", charts, class_="charts"))


def _habits(result: Plain) -> Markup:
    found = result.get("habits") or {}
    charts, rows = [], []
    for name, figure in found.items():
        if not isinstance(figure, dict):
            continue
        words, unit = NAMES.get(name, name.replace("_", " ")), str(figure.get("unit", ""))
        lines = []
        for side, label, ink in (("train", "real", "real"), ("testing", "testing (other real data)", "test"), ("fakes", "fakes", "fake")):  # noqa: E501 # fmt: skip
            f = figure.get(side)
            if isinstance(f, dict):
                shown = f"{number(f.get('mean'), 1)}"
                lines.append(Bar(label, mean(f), ink, [f["lower"], f["upper"]] if _both(f) else None, shown))
        if lines:
            charts.append(bars(lines, unit=f"mean, {unit}; whisker: middle half", title=words.capitalize()))
        away = figure.get("distance") or {}
        rows.append([words, unit, number(mean(away.get("testing"))), number(mean(away.get("fakes")))])
    without = None
    if found and "trip_length" not in found:
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


def _both(figure: Plain) -> bool:
    return all(isinstance(figure.get(end), (int, float)) for end in ("lower", "upper"))


def _beyond(result: Plain) -> Markup:
    rows = []
    for name, figure in (result.get("beyond") or {}).items():
        if not isinstance(figure, dict):
            continue
        other = figure.get("to_test") or {}
        words = NAMES.get(name, name.replace("_", " "))
        rows.append(
            [
                [words, tag("small", BETTER.get(name, "less is better"))],
                figure.get("unit", ""),
                number(mean(figure.get("train"))) if "train" in figure else "–",
                number(mean(figure.get("testing"))),
                spread(figure.get("fakes")),
                number(mean(other.get("train"))),
                spread(other.get("fakes")) if other else "–",
            ]
        )
    return tag(
        "div",
        tag("h3", "What the paper leaves out"),
        table(
            ["Measure", "Unit", "Real itself", "Testing", "Fakes", "Real, from testing", "Fakes, from testing"],
            rows,
            numbers=range(2, 7),
            caption="Further distances from the real traces, and in the last two columns from the testing data. KL, "
            "JS: divergences in nats; TV: total variation, 0 to 1.",
        ),
    )
