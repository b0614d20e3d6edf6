"""
The paper's figures, of other data: one function each, which returns a matplotlib `Figure`.

`paper_figures(result)` makes them all from what `reproduce` returns, by name. Colours of the eight first classes can be
told apart by everybody; the same result gives the same bytes.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from elsewhere.data.visits import Codes, Floats
from elsewhere.evaluation.reproduce import Reproduction
from elsewhere.paper._generate_kernels import merge_classes, open_stream, remove_seed, subsample_classes
from elsewhere.paper.generate_fake import ClassSets, hmm_decode, stream_key
from elsewhere.reports.charts import MARKERS, label_axes, location_privacy, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito, then lighter ones: twenty classes
COLOURS = [
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#C9B800", "#6B7280"),
    *("#8C510A", "#5E3C99", "#A6D96A", "#F4A6C0", "#1B5E7A", "#B2182B", "#7FBC41", "#DFC27D"),
    *("#80CDC1", "#4D4D4D", "#B2ABD2", "#FDB863"),
]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
BINS = np.linspace(0, 1, 21)
ATTEMPTS = 100  # at a fake for fig:procedure
SHOWN = 7  # candidates of a slot in fig:procedure; more are counted


def paper_figures(result: Reproduction) -> "dict[str, Figure]":
    """Return all figures by name, in the order of the paper."""
    samples = result.publishing.samples
    figures = {"procedure": procedure(result)}
    if result.train.locations.has_coordinates:
        figures["dataset"] = dataset(result)
    figures["similarity"] = histograms(
        {"geographic similarity": result.geographic, "semantic similarity": result.semantic}, "pairs of users"
    )
    figures["differential"] = histograms({"|sim_S(s, f) - sim_S(s', f)|": samples["differential"]}, "pairs of f and s'")
    figures["own-seed"] = histograms({"sim_S(seed, fake)": samples["semantic"]}, "fakes")
    figures["qq"] = qq(samples["real_real"], samples["fake_fake"])
    figures["location-privacy"] = location_privacy(result.service.to_dict())
    return figures


def procedure(result: Reproduction) -> "Figure":
    """
    Return fig:procedure: a seed, its semantic seed and one fake of it, slot by slot.

    Slots between which nothing changes are drawn once. The seed is one of those of which a third of the attempts
    passed, with a middle number of changes of class; the fake is the first of ATTEMPTS that shares no place with it.
    """
    learnt = result.fakes.learnt
    assert learnt is not None  # noqa: S101 - fresh fakes know it
    C, r = ClassSets.of(learnt.classes), result.train.r
    share = np.bincount(result.fakes.seed, minlength=len(r)) / np.maximum(result.fakes.attempts, 1)
    often = np.flatnonzero(share >= min(1 / 3, share.max()))
    changes = (np.diff(C.label[r[often]], axis=1) != 0).sum(axis=1)
    seed = int(often[np.argsort(changes, kind="stable")[len(changes) // 2]])
    trace = r[seed].astype(np.int32)
    key = stream_key(np.random.default_rng(0))
    for attempt in range(ATTEMPTS):
        stream = open_stream(key, np.uint64(attempt), np.uint64(seed))
        class_at = C.classes_of(trace)
        C_prime = subsample_classes(C.places, class_at, 0.25, stream)
        merged = merge_classes(C_prime[class_at], C_prime, class_at, 0.75, stream)
        semseed, _ = remove_seed(merged, C.places, C_prime, C, trace, class_at, 1.0, 1, stream)
        fake = hmm_decode(semseed, learnt.model, 4.0, stream)
        if not np.intersect1d(fake, trace).size:
            break
    sets = [[set(np.flatnonzero(row).tolist()) for row in marks] for marks in (merged, semseed)]
    return _draw_procedure(trace, C, sets[0], sets[1], fake)


MARKS = {"fake": "[{}]", "removed": "\N{MULTIPLICATION SIGN}{}", "merged": "+{}"}  # in the cells of fig:procedure


def _draw_procedure(trace: Codes, C: ClassSets, merged: Any, semseed: Any, fake: Codes) -> "Figure":
    key = [(int(s), int(f)) for s, f in zip(trace, fake, strict=True)]
    slots = [t for t in range(len(trace)) if t == 0 or key[t] != key[t - 1]][:18]
    columns = [[(int(trace[t]), "seed"), *_column(t, trace, C, merged, semseed, fake)] for t in slots]
    name = _letters([place for column in columns for place, _ in column])
    height = max(map(len, columns))
    words = [[""] * len(slots) for _ in range(height)]
    colours = [["#FFFFFF"] * len(slots) for _ in range(height)]
    for x, column in enumerate(columns):
        for y, (place, kind) in enumerate(column):
            words[y][x] = MARKS.get(kind, "{}").format(name[place])
            c = int(C.label[place])
            colours[y][x] = (COLOURS[c % len(COLOURS)] if c >= 0 else "#FFFFFF") + ("30" if kind == "removed" else "D0")
    figure = new_figure(0.5 * len(slots) + 1.5, 0.24 * height + 0.8)
    axes = figure.subplots()
    axes.set_axis_off()
    rows = ["seed", "semantic seed", *[""] * (height - 2)]
    axes.table(words, colours, "center", rowLabels=rows, colLabels=[f"t = {t}" for t in slots], loc="center")
    caption = "colours: semantic classes;  [ ]: the fake;  \N{MULTIPLICATION SIGN}: the seed's place, removed;\n"
    axes.set_title(f"{caption}+: merged from a neighbouring class", fontsize=8)
    return figure


def _letters(places: list[int]) -> dict[int, str]:
    """Return a letter for each place, in order of appearance; pairs of letters beyond 52."""
    names = [*LETTERS, *(a + b for a in LETTERS for b in LETTERS)]
    return dict(zip(dict.fromkeys(places), names, strict=False))


def _column(t: int, trace: Codes, C: ClassSets, merged: Any, semseed: Any, fake: Codes) -> list[tuple[int, str]]:
    """Return some candidates of slot t with what they are: fake, removed, merged or own."""
    kinds = {int(fake[t]): "fake"}
    if int(trace[t]) in merged[t] and int(trace[t]) not in semseed[t]:
        kinds[int(trace[t])] = "removed"
    others = [p for p in sorted(semseed[t]) if p not in kinds]
    foreign = [p for p in others if C.label[p] != C.label[trace[t]]]
    for place in [*foreign[:2], *(p for p in others if p not in foreign)]:
        if len(kinds) < SHOWN:
            kinds[place] = "merged" if place in foreign else "own"
    return sorted(kinds.items(), key=lambda item: ("fake", "removed", "own", "merged").index(item[1]))


def dataset(result: Reproduction) -> "Figure":
    """Return fig:dataset: (a) places by visits, (b) places by semantic class."""
    train, learnt = result.train, result.fakes.learnt
    assert learnt is not None  # noqa: S101 - fresh fakes know it
    xy, visits = train.locations.planar(), np.bincount(train.r.ravel(), minlength=train.R)
    xy = xy - (xy.min(axis=0) + xy.max(axis=0)) / 2
    figure = new_figure(10, 4.6)
    left, right = figure.subplots(1, 2)
    seen = visits > 0
    left.scatter(*xy[~seen].T, s=5, color="#DDDDDD")
    points = left.scatter(*xy[seen].T, s=8 + 3 * np.sqrt(visits[seen]), c=np.log10(visits[seen]), cmap="viridis")
    bar = figure.colorbar(points, ax=left, shrink=0.8)
    bar.set_label("visits, powers of ten", fontsize=8)
    label_axes(left, "km", "km", f"(a) {train.R} places, {int(seen.sum())} visited by {train.U} users")
    label = learnt.classes.label
    right.scatter(*xy[label < 0].T, s=5, color="#DDDDDD")
    for c in range(learnt.classes.kappa):
        at = label == c
        marker = MARKERS[c // len(COLOURS) % len(MARKERS)]
        right.scatter(*xy[at].T, s=22, color=COLOURS[c % len(COLOURS)], marker=marker)
    label_axes(right, "km", "km", f"(b) {learnt.classes.kappa} semantic classes, by colour")
    for axes in (left, right):
        axes.set_aspect("equal")
    return figure


def histograms(values: dict[str, Floats], of_what: str) -> "Figure":
    """Return normalised histograms of similarities, side by side."""
    figure = new_figure(4.2 * len(values), 3.1)
    for axes, (name, sample) in zip(np.atleast_1d(figure.subplots(1, len(values))), values.items(), strict=True):
        share = np.histogram(np.clip(np.round(sample, 9), 0, 1), BINS)[0] / max(1, len(sample))
        axes.bar(BINS[:-1], share, width=np.diff(BINS), align="edge", color=COLOURS[0], edgecolor="white")
        axes.axvline(float(np.median(sample)), color=COLOURS[1], linestyle="--", linewidth=1.2)
        label_axes(axes, name, f"share of {len(sample):,} {of_what}")
    return figure


def qq(real: Floats, fake: Floats) -> "Figure":
    """Return the Q-Q plot of the similarities among real and among fake traces."""
    levels = np.linspace(0.01, 0.99, 99)
    x, y = np.quantile(real, levels), np.quantile(fake, levels)
    figure = new_figure(3.8, 3.6)
    axes = figure.subplots()
    ends = min(x.min(), y.min()), max(x.max(), y.max())
    axes.plot(ends, ends, color="#999999", linewidth=1)
    axes.plot(x, y, "o", markersize=3.5, color=COLOURS[0])
    r = float(np.corrcoef(x, y)[0, 1])
    label_axes(axes, "sim_S among real traces", "sim_S among fakes", f"quantiles 1 % .. 99 %, correlation {r:.3f}")
    axes.set_aspect("equal")
    return figure
