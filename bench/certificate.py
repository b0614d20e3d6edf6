"""
What a theorem for the whole release costs: docs/certificate.csv, its picture, and a page of the site.

    python bench/certificate.py                          measure everything (an hour or two), write table and picture
    python bench/certificate.py measure pf               measure this part anew; others stay as they are in the table
    python bench/certificate.py measure 1000 100000      towns of so many people
    python bench/certificate.py measure pf --eps 8 4 --only certified    some lines of a part
    python bench/certificate.py draw                     the picture of what the table holds

Parts: `pf` (People Flow Tokyo: certified fakes and three baselines at equal eps), and towns by their number of people.
A mean over draws (three, or `--draws`), with the deviation beside it. Needs ../shared/data. The page is made from the
table when the site is built (bench/site_pages.py).
"""

import argparse
import csv
import resource
import sys
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

HOME = Path(__file__).parents[1] / "docs"
TABLE, PICTURE = HOME / "certificate.csv", HOME / "people-eps.svg"
COLUMNS = ("part", "who", "eps", "figure", "mean", "sd", "draws")
TOWNS = ("1000", "10000", "100000")
PARTS = ("pf", *TOWNS)
EPS = (0.0, 8.0, 4.0, 2.0, 1.0)  # 0: the same design without noise
DRAWS = 3
BASELINES = ("AdaTrace-like", "chain, kinder", "chain")
Row = dict[str, str]


def rows_of(part: str, who: str, eps: str, found: list[dict[str, float]]) -> list[Row]:
    """Return a line per figure: its mean and deviation over draws."""
    lines = []
    for figure in found[0]:
        values = [f[figure] for f in found]
        mean, sd = f"{np.mean(values):.4g}", f"{np.std(values):.2g}"
        lines.append(dict(zip(COLUMNS, (part, who, eps, figure, mean, sd, str(len(found))), strict=True)))
    return lines


def named(eps: float) -> str:
    """Return eps as the table has it."""
    return f"{eps:g}" if eps else "none"


def measure_private(part: str, given: argparse.Namespace) -> Iterable[list[Row]]:
    """Yield the lines of PF, or of a town: real people, certified fakes and baselines under each eps."""
    from private import DATASET, FAKES, GENERATORS, figures, splits, tp_tv

    pf = part == "pf"
    pairs = splits("pf" if pf else "town", 0 if pf else int(part))
    yield rows_of(part, "real", "real", [{"TP-TV": tp_tv(p.r[:DATASET], aside.r)} for p, aside in pairs])
    for eps in given.eps:
        for who in given.only:
            if not eps and who != "certified":
                continue
            # certified fakes are drawn on as many splits, or as often on one town; baselines once on each file
            draws = pairs[: given.draws] if pf or who != "certified" else pairs * given.draws
            found = []
            for draw, (people, aside) in enumerate(draws):
                began = time.process_time()
                fakes = GENERATORS[who](people, eps, FAKES, np.random.default_rng(draw))
                took = time.process_time() - began
                found.append(figures(fakes, people, aside, members=pf and who == "certified"))
                if who == "certified":
                    found[-1]["seconds"] = took
            lines = rows_of(part, who, named(eps), found)
            if who == "certified" and not pf:
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
                lines += rows_of(part, who, named(eps), [{"GB": memory}])
            yield lines


def measure(parts: list[str], given: argparse.Namespace) -> None:
    """Measure parts anew; the table is written after every line, and other lines stay."""
    order = {part: i for i, part in enumerate(PARTS)}
    warnings.simplefilter("ignore")
    began = time.monotonic()
    for part in parts:
        for lines in measure_private(part, given):
            key = [lines[0][column] for column in COLUMNS[:3]]
            rows = [row for row in read() if [row[column] for column in COLUMNS[:3]] != key] + lines
            rows.sort(key=lambda row: order.get(row["part"], len(order)))
            with TABLE.open("w", newline="") as file:
                out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                out.writeheader()
                out.writerows(rows)
            told = ", ".join(f"{line['figure']} {line['mean']}" for line in lines)
            print(f"{time.monotonic() - began:5.0f} s  {part} {lines[0]['who']} {lines[0]['eps']}: {told}", flush=True)


def read() -> list[Row]:
    """Return the lines of the table."""
    if not TABLE.exists():
        return []
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


class Table:
    """Figures by part, who, eps and name."""

    def __init__(self) -> None:
        self.rows = {(r["part"], r["who"], r["eps"], r["figure"]): r for r in read()}

    def value(self, part: str, who: str, eps: str, figure: str) -> float | None:
        """Return a mean, where it was measured."""
        row = self.rows.get((part, who, eps, figure))
        return None if row is None else float(row["mean"])

    def towns(self) -> list[str]:
        """Return the towns that were measured."""
        return [town for town in TOWNS if self.value(town, "certified", "none", "TP-TV") is not None]

    def shown(self, part: str, who: str, eps: str, figure: str, *, spread: bool = False) -> str:
        """Return a mean as text, without its leading zero, or a dash."""
        row = self.rows.get((part, who, eps, figure))
        if row is None:
            return "-"
        text = short(float(row["mean"]))
        if not row["sd"]:
            return f"{text}*" if spread else text
        return f"{text} ± {short(float(row['sd']))}" if spread and int(row["draws"]) > 1 else text


def short(x: float) -> str:
    """Return three digits behind the point, none before it where it is zero."""
    return f"{x:.3f}".replace("0.", ".", 1) if abs(x) < 1 else f"{x:.3g}"


def lined(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    cells = list(head)
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells, ["---"] * len(cells), *rows))


NAMES = {
    "certified": "certified",
    "AdaTrace-like": "AdaTrace-like",
    "chain, kinder": "Markov chain, kinder",
    "chain": "Markov chain, thresholded",
}
WORDS = {"none": "no noise", "real": "500 real people"}


def beside(found: Table, part: str, figures: Iterable[str]) -> str:
    """Return certified fakes beside the baselines: a line per eps and generator."""
    asked = list(figures)
    rows = [["real people", "", found.shown(part, "real", "real", "TP-TV"), *[""] * (len(asked) - 1)]]
    for who, name in NAMES.items():
        for eps in map(named, EPS):
            cells = [found.shown(part, who, eps, f, spread=f == "TP-TV") for f in asked]
            if cells[0] != "-":
                rows.append([name, WORDS.get(eps, eps), *cells])
    return lined(("", "eps", *asked), rows)


def page() -> str:
    """Return the page of the site."""
    found = Table()
    towns = found.towns()
    sections = [
        f"## {int(town):,} people\n\n{beside(found, town, ('TP-TV', 'top moves', 'A15'))}{spent(found, town)}"
        for town in towns
    ]
    return TEXT.format(
        pf=beside(found, "pf", ("TP-TV", "top moves", "A15", "A10")),
        towns="\n\n".join(sections),
        cost=cost(found, towns),
    )


def spent(found: Table, town: str) -> str:
    """Return what learning took, in words."""
    seconds = [found.value(town, "certified", named(eps), "seconds") for eps in EPS]
    memory = [found.value(town, "certified", named(eps), "GB") for eps in EPS]
    most, gb = (max((v for v in values if v is not None), default=None) for values in (seconds, memory))
    if most is None or gb is None:
        return ""
    return f"\n\nLearning and drawing 2,000 certified fakes took {most:.0f} s of one core at most, and {gb:.1f} GB."


def cost(found: Table, towns: list[str]) -> str:
    """Return by how much noise raises TP-TV, by people and eps."""
    rows = []
    for town in towns:
        free = float(found.rows[town, "certified", "none", "TP-TV"]["mean"])
        cells = []
        for eps in map(named, EPS[1:]):
            noisy = found.value(town, "certified", eps, "TP-TV")
            cells.append("-" if noisy is None else f"{noisy - free:+.3f}".replace("0.", "."))
        rows.append([f"{int(town):,}", *cells])
    return lined(("people", *(f"eps {named(eps)}" for eps in EPS[1:])), rows)


TEXT = """# What a theorem costs

A proof has a price: noise makes fakes less like people. This page has all figures;
[promise](promise.md#what-it-costs) has them in short. A classifier tells certified fakes from real days,
with or without noise.

| figure | meaning |
| --- | --- |
| TP-TV | share of 500 fakes that would have to move to be where held-out people are at that hour: 0 is best |
| top moves | share of the 50 most frequent moves that are among the 50 most frequent of the fakes: 1 is best |
| A15 | how well a classifier tells fakes from real people, an AUC: .5 is not at all, 1 is always |
| A10 | how well an attack tells who was in the file, an AUC ([attacks](attacks.md#a10)) |

Means over as many draws as the last column of docs/certificate.csv says, ± their standard deviation. On People Flow
Tokyo each draw has a split of its own.

## People Flow Tokyo

The model is learnt from 667 people, 333 are held out, by random splits. The other tools have the same (eps, delta)
for the same unit, a person. At eps 2 and 1 there are too few people: a run would be refused.

{pf}

## Towns of 1,000 to 100,000 people

A simulated town of 400 places and 72 slots a day; 1,000 more people are held out. By how much noise raises TP-TV:

{cost}

{towns}
"""

STYLE = (  # eps, colour, mark
    ("1", "#0b3c5d", "o"),
    ("2", "#2a7f9e", "s"),
    ("4", "#5aa469", "^"),
    ("8", "#c98a1b", "D"),
    ("none", "#a33b20", "v"),
    ("real", "#555555", ""),
)


def draw() -> None:
    """Draw a line per eps over the number of people; hollow points are below the number that a run asks for."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from elsewhere.synthesis.certificate import people_needed

    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "people-eps", "font.family": "sans-serif", "font.size": 11}
    figure, axes = plt.subplots(figsize=(7.6, 4.4), layout="constrained")
    found = Table()
    sizes = [int(town) for town in found.towns()]
    for eps, colour, mark in STYLE:
        who = "real" if eps == "real" else "certified"
        points = [(n, v) for n in sizes if (v := found.value(str(n), who, eps, "TP-TV")) is not None]
        if not points:
            continue
        x, y = zip(*points, strict=True)
        axes.plot(x, y, color=colour, linestyle=":" if eps == "real" else "--" if eps == "none" else "-", zorder=2)
        if mark:
            least = people_needed(float(eps), 1e-6) if eps != "none" else 0
            full = ["white" if n < least else colour for n in x]
            axes.scatter(x, y, c=full, edgecolors=colour, marker=mark, s=42, zorder=3)
        name = WORDS.get(eps, f"eps {eps}")
        axes.annotate(name, (x[0], y[0]), (-8, 0), textcoords="offset points", color=colour, ha="right", va="center")
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes.minorticks_off()
    axes.set_xlim(sizes[0] / 2.4, sizes[-1] * 1.2)
    axes.set_xlabel("people in the file")
    axes.set_ylabel("distance of fakes from real people (TP-TV)")
    axes.set_title("People buy privacy: simulated town, 400 places", fontsize=11, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    """Read the words of the command line."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("verb", nargs="?", choices=["measure", "draw"], default="measure")
    words.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all of them by default")
    words.add_argument("--eps", nargs="+", type=float, default=EPS, help="of pf and towns; 0: without noise")
    words.add_argument("--only", nargs="+", default=("certified", *BASELINES), help="generators of pf and towns")
    words.add_argument("--draws", type=int, default=DRAWS, help="of certified fakes, and splits of pf")
    given = words.parse_args()
    if given.verb == "measure":
        measure(given.parts or list(PARTS), given)
    draw()
    print(f"wrote {PICTURE.name}")


if __name__ == "__main__":
    main()
