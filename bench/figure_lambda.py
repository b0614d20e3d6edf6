"""
Draws docs/fidelity_lambda.png: fidelity against deniability over lambda, on PF Tokyo (aggregates only).

Two curves: the walk with memory, which is the preset's, and the chain of decision 5.

`python bench/figure_lambda.py`; roles and parameters are those of `compare_emissions.py`.
"""

import warnings
from pathlib import Path

from compare_emissions import DATA, Bench

from elsewhere.reports.sheet import png
from elsewhere.reports.tempering import fidelity_against_deniability

LAMBDAS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
GROUPS = 6
CURVES = {"walk": ("walk", {}), "allotted": ("allotted", {"eta": 0.01})}


def main():
    warnings.simplefilter("ignore")
    if not DATA.is_dir():
        raise SystemExit("needs PF Tokyo in ../shared/data/pf_tokyo")
    bench = Bench()
    curves = {}
    for name, (emission, given) in CURVES.items():
        found = []
        for lam in LAMBDAS:
            sampler = bench.sampler(emission, "modes", GROUPS, {"lam": lam, **given})
            found.append(bench.figures(sampler, attacks=()))
            told = ", ".join(f"{figure} {value:.3f}" for figure, value in found[-1].items())
            print(f"{name}, lam {lam:g}: {told}", flush=True)
        columns = {"kept": "kept", "named": "top-1", "accepted": "accepted"}
        curves[name] = {column: [f[figure] for f in found] for column, figure in columns.items()}
    title = f"PF Tokyo, 500 seeds, {GROUPS} groups, k 50; the numbers are lambda"
    drawn = fidelity_against_deniability(LAMBDAS, curves, title=title)
    (Path(__file__).resolve().parents[1] / "docs" / "fidelity_lambda.png").write_bytes(png(drawn))


if __name__ == "__main__":
    main()
