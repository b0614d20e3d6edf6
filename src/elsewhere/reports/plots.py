"""Static figures of sec:evaluation for papers, drawn from the results of the judge; numbers and fakes only."""

from typing import TYPE_CHECKING, Any

import numpy as np

from elsewhere.reports.figures import BLUE, VERMILION, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito again, with a marker each: told apart without colour too
LOOK = (("#E69F00", "s"), ("#56B4E9", "^"), ("#009E73", "v"), ("#CC79A7", "D"), (VERMILION, "o"), ("#000000", "X"))


def privacy_overhead(result: Any) -> "Figure":
    """
    Privacy against overhead of every generator (fig:locationprivacy): median error of tracking, three points each.

    The ceilings m / (m + 1) are dotted lines: nobody does better with m fakes that cannot be told from the truth.
    """
    # without classes there is no semantic overhead
    panels = 1 if np.isnan(result.overhead[..., 1]).all() else 2
    figure = new_figure(4.1 * panels, 3.3)
    for i, axes in enumerate(np.atleast_1d(figure.subplots(1, panels, sharey=True))):
        for n in result.n_fakes:
            axes.axhline(n / (n + 1), color="grey", linewidth=0.7, linestyle=":")
        for g, name in enumerate(result.generators):
            colour, mark = LOOK[g % len(LOOK)]
            x = np.nanmedian(result.overhead[:, g, :, i], axis=0)
            y = [result.figure(name, n)["median"] for n in result.n_fakes]
            axes.plot(x, y, marker=mark, color=colour, linewidth=0.8, label=name)
        axes.set_xlabel(f"different {'places' if i == 0 else 'classes'} sent per query")
        axes.set_ylim(0, 1.03)
        if i == 0:
            axes.set_ylabel("probability of error of tracking")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure


def likeness(result: Any) -> "Figure":
    """
    What fakes have of their seeds (fig:deltas-fakeset2, fig:real-fake-semantic-similarity) and of each other (Q-Q).

    Three panels: differential similarity, semantic similarity to the own seed, and the quantiles of real-real against
    fake-fake semantic similarity (fig:fake-fake-semantic-similarity-qq); a panel without numbers is left out.
    """
    there = [n for n in ("differential", "semantic") if len(result.samples.get(n, ()))]
    quantiles = len(result.samples.get("real_real", ())) and len(result.samples.get("fake_fake", ()))
    figure = new_figure(3.1 * (len(there) + bool(quantiles)), 2.9)
    panels = list(np.atleast_1d(figure.subplots(1, len(there) + bool(quantiles))))
    words = {
        "differential": "difference of semantic similarity,\nown seed against another person",
        "semantic": "semantic similarity of a fake\nto its own seed",
    }
    for axes, name in zip(panels, there, strict=False):
        values = result.samples[name]
        weights = np.full(len(values), 100 / len(values))
        axes.hist(values, bins=np.linspace(0, 1, 21), weights=weights, color=BLUE, edgecolor="white")
        axes.set(xlabel=words[name], ylabel="share of pairs, %", xlim=(0, 1))
    if quantiles:
        at = np.linspace(0.01, 0.99, 99)
        real, fake = (np.quantile(result.samples[name], at) for name in ("real_real", "fake_fake"))
        panels[-1].plot([0, 1], [0, 1], color="grey", linewidth=0.7)
        panels[-1].plot(real, fake, ".", color=VERMILION, markersize=4)
        panels[-1].set(xlabel="real with real: semantic similarity", ylabel="fake with fake", xlim=(0, 1), ylim=(0, 1))
    return figure


def places_on_the_map(xy: Any, visits: Any, label: Any) -> "Figure":
    """Visited places: size by visits, and coloured by class (fig:dataset a and b); coordinates in kilometres."""
    figure = new_figure(7.2, 3.4)
    seen = np.asarray(visits) > 0
    at, many, classes = np.asarray(xy)[seen], np.asarray(visits)[seen], np.asarray(label)[seen]
    size = 3 + 120 * many / many.max()
    for i, axes in enumerate(figure.subplots(1, 2, sharex=True, sharey=True)):
        if i == 0:
            axes.scatter(*at.T, s=size, color=BLUE, alpha=0.6, linewidths=0)
        else:
            # more classes than colours: a marker and a colour together tell 48 apart
            for c in np.unique(classes):
                colour, mark = ("#BBBBBB", ".") if c < 0 else (LOOK[c % 6][0], "osv^D*Xp"[(c // 6) % 8])
                axes.scatter(*at[classes == c].T, s=14, color=colour, marker=mark, linewidths=0)
        axes.set(xlabel="east, km", ylabel="north, km" if i == 0 else "", aspect="equal")
        axes.set_title("size: number of visits" if i == 0 else "colour and mark: semantic class", fontsize=9)
    return figure
