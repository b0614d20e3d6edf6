"""What all figures share: a sheet of a size, colours that everybody can tell apart, labelled axes, the same bytes."""

import io
from typing import TYPE_CHECKING

from elsewhere.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito: told apart by colour-blind readers, and in print
BLUE, VERMILION = "#0072B2", "#D55E00"
GREEN, PURPLE, ORANGE, SKY, GREY, YELLOW = "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6B7280", "#C9B800"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY, YELLOW)
MARKERS = "os^DPXv*"


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of this size in inches, or `MissingExtra` where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("figures need matplotlib: pip install 'elsewhere[plot]'.") from None
    return Figure(figsize=(width, height), layout="constrained")


def png(figure: "Figure") -> bytes:
    """The figure as the bytes of a PNG file, the same for the same figure."""
    return as_bytes(figure, "png")


def as_bytes(figure: "Figure", form: str) -> bytes:
    """The figure as a file of this form, the same for the same figure."""
    # neither the library nor the hour: the same figure is the same file
    metadata = {"Software": None} if form == "png" else {"CreationDate": None, "Producer": None, "Creator": None}
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, dpi=150, metadata=metadata)
    return buffer.getvalue()


def finish(axes: "Axes", x: str, y: str, title: str | None = None) -> None:
    """Label the axes, with their units."""
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    if title is not None:
        axes.set_title(title, fontsize=9)
