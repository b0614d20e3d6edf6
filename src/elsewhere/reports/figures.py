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
