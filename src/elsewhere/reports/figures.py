"""The figures of the paper, one function per figure, each returning a matplotlib `Figure` that nothing global knows."""

import io
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.errors import MissingExtra
from elsewhere.reports.similarity import BIN_EDGES, shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito: told apart by colour-blind readers, and in print
BLUE, VERMILION = "#0072B2", "#D55E00"


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of this size in inches, or `MissingExtra` where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("figures need matplotlib: pip install 'elsewhere[plot]'.") from None
    return Figure(figsize=(width, height), layout="constrained")


def png(figure: "Figure") -> bytes:
    """The figure as the bytes of a PNG file, the same for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def similarity_histograms(geographic: ArrayLike, semantic: ArrayLike) -> "Figure":
    """
    Normalised histograms of geographic and of semantic similarity, side by side (fig:real-gs-similarity).

    Parameters
    ----------
    geographic, semantic
        Similarities of pairs of users, in [0, 1], one value per pair.

    Examples
    --------
    >>> from elsewhere.reports.figures import similarity_histograms
    >>> [axes.get_xlabel() for axes in similarity_histograms([0, .1], [.7, .9]).axes]
    ['geographic similarity of two users (0 none, 1 full)', 'semantic similarity of two users (0 none, 1 full)']

    """
    figure = new_figure(7.2, 2.9)
    for axes, values, kind, colour in zip(
        figure.subplots(1, 2, gridspec_kw={"wspace": 0.06}),
        (np.asarray(geographic, dtype=float), np.asarray(semantic, dtype=float)),
        ("geographic", "semantic"),
        (BLUE, VERMILION),
        strict=True,
    ):
        axes.bar(BIN_EDGES[:-1], 100 * shares(values), width=0.05, align="edge", color=colour, edgecolor="white")
        axes.axvline(values.mean(), color="black", linewidth=1, linestyle="--")
        axes.set_title(f"mean {values.mean():.2f} (dashed)", fontsize=9)
        axes.set_xlabel(f"{kind} similarity of two users (0 none, 1 full)", fontsize=9)
        axes.set_ylabel("share of pairs (%)", fontsize=9)
        axes.set_xlim(0, 1)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def fidelity_against_deniability(
    lam: ArrayLike, kept: ArrayLike, named: ArrayLike, accepted: ArrayLike, *, title: str = ""
) -> "Figure":
    """
    What a fake keeps of its seed against what whoever knows everything learns of it, over lambda.

    Parameters
    ----------
    lam
        Temper of the emissions, one value per run.
    kept
        Class agreement with the own seed minus that with other seeds.
    named
        Share of the fakes whose seed the white-box attack names.
    accepted
        Share of attempts that pass the gate.
    title
        Of the figure.

    Examples
    --------
    >>> from elsewhere.reports.figures import fidelity_against_deniability
    >>> [a.get_xlabel() for a in fidelity_against_deniability([0, 1], [0, .2], [.002, .01], [1, .9]).axes]
    ['seed named by the white box (%)', 'attempts that pass the gate (%)']

    """
    figure = new_figure(7.2, 2.9)
    values = [np.asarray(x, dtype=float) for x in (lam, kept, named, accepted)]
    for axes, x, kind, colour in zip(
        figure.subplots(1, 2, sharey=True),
        (values[2], values[3]),
        ("seed named by the white box (%)", "attempts that pass the gate (%)"),
        (BLUE, VERMILION),
        strict=True,
    ):
        axes.plot(100 * x, values[1], marker="o", color=colour, linewidth=1)
        for at, height, number in zip(100 * x, values[1], values[0], strict=True):
            axes.annotate(f"{number:g}", (at, height), textcoords="offset points", xytext=(4, 3), fontsize=7)
        axes.set_xlabel(kind, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("class agreement kept (own - others)", fontsize=9)
    if title:
        figure.suptitle(title, fontsize=9)
    return figure
