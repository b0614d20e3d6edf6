"""The figure of the deniable mode: what fakes keep of their seeds against what they tell, over lambda."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.reports.sheet import BLUE, GREEN, VERMILION, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def fidelity_against_deniability(
    lam: ArrayLike, runs: Mapping[str, Mapping[str, ArrayLike]], *, title: str = ""
) -> "Figure":
    """
    What a fake keeps of its seed against what whoever knows everything learns of it, over lambda.

    Parameters
    ----------
    lam
        Temper of the emissions, one value per point of a curve.
    runs
        Name of a curve -> its figures at every lambda: `kept`, class agreement with the own seed minus that with other
        seeds; `named`, share of the fakes whose seed the white-box attack names; `accepted`, share of attempts that
        pass the gate.
    title
        Of the figure.

    Examples
    --------
    >>> from elsewhere.reports.tempering import fidelity_against_deniability
    >>> walk = {"kept": [0, .2], "named": [.002, .01], "accepted": [1, .9]}
    >>> [a.get_xlabel() for a in fidelity_against_deniability([0, 1], {"walk": walk}).axes]
    ['seed named by the white box (%)', 'attempts that pass the gate (%)']

    """
    figure = new_figure(8.0, 3.6)
    panels = {"named": "seed named by the white box (%)", "accepted": "attempts that pass the gate (%)"}
    for axes, (kind, label) in zip(figure.subplots(1, 2, sharey=True), panels.items(), strict=True):
        # kept grows with what the white box learns and falls with what passes: numbers stand outside the two curves
        lean = -1 if kind == "named" else 1
        for i, ((name, run), colour) in enumerate(zip(runs.items(), (BLUE, VERMILION, GREEN), strict=False)):
            x, y = 100 * np.asarray(run[kind], dtype=float), np.asarray(run["kept"], dtype=float)
            axes.plot(x, y, marker="os^"[i], markersize=4, color=colour, linewidth=1)
            side = -1 if i % 2 else 1
            named = int(np.argmin(np.abs(y - (y.min() + y.max()) / 2)))
            told = np.inf
            for j in range(len(x) - 1, -1, -1):
                if j < len(x) - 1 and abs(told - y[j]) < 0.06 * np.ptp(y):
                    continue  # too close to the last number to be read
                told = y[j]
                number = f"{np.asarray(lam, dtype=float)[j]:g}"
                axes.annotate(
                    f"{name}, {number}" if j == named else number, (x[j], y[j]), textcoords="offset points",
                    xytext=(6 * lean * side, 5 * side), fontsize=8, color=colour, va="center",
                    ha="left" if lean * side > 0 else "right",
                )  # fmt: skip
        axes.margins(0.12, 0.16)
        axes.set_xlabel(label, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("class agreement kept (own - others)", fontsize=9)
    if title:
        figure.suptitle(title, fontsize=9)
    return figure
