"""
The picture "people x eps -> usefulness" of the private preset: measured here, drawn into docs/people-eps.svg.

    python bench/people_eps.py measure 1000 10000    measure towns of so many people, three draws each, and draw
    python bench/people_eps.py                       draw what docs/people-eps.csv holds

TP-TV per 500 fakes, as in bench/private.py: how far fakes are from 1,000 held-out people, slot by
slot. Needs `elsewhere[plot]`.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

HOME = Path(__file__).parents[1] / "docs"
EPS = (0.0, 8.0, 4.0, 2.0, 1.0)  # 0: the same design without noise
DRAWS = 3
STYLE = (  # eps, colour, mark
    ("1", "#0b3c5d", "o"),
    ("2", "#2a7f9e", "s"),
    ("4", "#5aa469", "^"),
    ("8", "#c98a1b", "D"),
    ("none", "#a33b20", "v"),
    ("real", "#555555", ""),
)


def measure(sizes: list[int], table: Path) -> None:
    """Measure each town under each eps, the mean of three draws of noise; lines of other towns in the table stay."""
    from private import DATASET, FAKES, ours, splits, tp_tv

    rows = [row for row in read(table) if int(row["people"]) not in sizes] if table.exists() else []
    for people in sizes:
        ((learnt_from, aside),) = splits("town", people)
        rows.append({"people": people, "eps": "real", "tp_tv": f"{tp_tv(learnt_from.r[:DATASET], aside.r):.3f}"})
        for eps in EPS:
            found = []
            for draw in range(DRAWS):
                fakes = ours(learnt_from, eps, FAKES, np.random.default_rng(draw))
                sets = np.array_split(np.arange(len(fakes)), len(fakes) // DATASET)
                found.append(float(np.mean([tp_tv(fakes[mine], aside.r) for mine in sets])))
            rows.append({"people": people, "eps": f"{eps:g}" if eps else "none", "tp_tv": f"{np.mean(found):.3f}"})
            print(people, eps, f"{np.mean(found):.3f} +- {np.std(found):.3f}", flush=True)
        rows.sort(key=lambda row: int(row["people"]))
        with table.open("w", newline="") as file:
            out = csv.DictWriter(file, ("people", "eps", "tp_tv"), lineterminator="\n")
            out.writeheader()
            out.writerows(rows)


def read(table: Path) -> list[dict[str, str]]:
    """Return the lines of a table of figures."""
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def draw(table: Path, picture: Path) -> None:
    """Draw a line per eps over the number of people; hollow points are below the number that the preset asks for."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from elsewhere.privacy.private.release import people_needed

    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "people-eps", "font.family": "sans-serif", "font.size": 11}
    figure, axes = plt.subplots(figsize=(7.6, 4.4), layout="constrained")
    rows = read(table)
    for eps, colour, mark in STYLE:
        mine = [row for row in rows if row["eps"] == eps]
        x, y = [int(row["people"]) for row in mine], [float(row["tp_tv"]) for row in mine]
        axes.plot(x, y, color=colour, linestyle=":" if eps == "real" else "--" if eps == "none" else "-", zorder=2)
        if mark:
            least = people_needed(float(eps), 1e-6) if eps != "none" else 0
            full = ["white" if n < least else colour for n in x]
            axes.scatter(x, y, c=full, edgecolors=colour, marker=mark, s=42, zorder=3)
        name = {"real": "500 real people", "none": "no noise"}.get(eps, f"eps {eps}")
        axes.annotate(name, (x[0], y[0]), (-8, 0), textcoords="offset points", color=colour, ha="right", va="center")
    axes.set_xscale("log")
    sizes = sorted({int(row["people"]) for row in rows})
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes.minorticks_off()
    axes.set_xlim(sizes[0] / 2.4, sizes[-1] * 1.2)
    axes.set_xlabel("people in the file")
    axes.set_ylabel("distance of fakes from real people (TP-TV)")
    axes.set_title("People buy privacy: simulated town, 400 places", fontsize=11, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    figure.savefig(picture, metadata={"Date": None} if picture.suffix == ".svg" else None, dpi=110)


def main() -> None:
    """Read the words of the command line."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("verb", nargs="?", choices=["measure", "draw"], default="draw")
    words.add_argument("people", nargs="*", type=int, default=[])
    words.add_argument("--table", type=Path, default=HOME / "people-eps.csv")
    words.add_argument("--picture", type=Path, default=HOME / "people-eps.svg")
    given = words.parse_args()
    if given.verb == "measure":
        measure(given.people, given.table)
    draw(given.table, given.picture)


if __name__ == "__main__":
    main()
