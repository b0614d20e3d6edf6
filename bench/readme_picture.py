"""
Draw README's picture, docs/life.svg: a fortnight of a person of the simulated town, and of the fake made from it.

Usage: python bench/readme_picture.py [-o docs/life.svg]

The town, the fake and the file are the same at every run. The picture has its own background, so that it can be read
on light and on dark pages.
"""

import argparse
import io
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import elsewhere as ew
from elsewhere.data.visits import share_map
from elsewhere.reports import charts, maps
from elsewhere.reports.page import Shown

WORDS = ("home", "second place", "third", "all others")


def lives() -> dict[str, charts.Life]:
    """Return the fortnights of a person and of its fake, by title."""
    town = ew.simulate_town(users=200, days=14, locations=300, rng=np.random.default_rng(0)).visits
    fakes = ew.generate_fakes(town, rng=np.random.default_rng(1))
    people, visits = share_map(town, fakes.visits)
    return Shown.of(people, visits, fakes.seed_of_life).lives()


def draw(of: dict[str, charts.Life]) -> Figure:
    """Draw each life by hour, and on the map below."""
    figure = Figure(figsize=(9, 5.4), layout="constrained", facecolor="white")
    panels = figure.subplots(2, 2, height_ratios=(3, 2.6))
    where = next(iter(of.values())).visits.locations
    weight = np.sum([np.bincount(life.visits.place, minlength=len(where)) for life in of.values()], axis=0)
    window = maps.Window.of(where, weight > 0)
    for (above, below), (title, life) in zip(panels.T, of.items(), strict=True):
        charts.life_strip(life, above)
        above.set_title(title, fontsize=11, color=charts.INKS["ink"])
        maps.life_map(life, window, below)
    marks = [figure.add_artist(_mark(ink)) for ink in charts.RANKS]
    figure.legend(marks, WORDS, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def _mark(ink: str) -> object:
    from matplotlib.patches import Rectangle

    return Rectangle((0, 0), 0, 0, color=charts.INKS[ink])


def main() -> None:
    """Write the picture."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    options.add_argument("-o", type=Path, default=Path("docs/life.svg"))
    out = options.parse_args().o
    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "life", "font.family": "sans-serif"}):
        draw(lives()).savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    out.write_text("\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n")
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
