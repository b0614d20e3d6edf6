"""
Draws docs/fidelity_lambda.png: fidelity against deniability over lambda, on PF Tokyo (aggregates only).

`python bench/figure_lambda.py`; roles and parameters are those of `compare_emissions.py`.
"""

import warnings
from pathlib import Path

from compare_emissions import DATA, Bench

from elsewhere.reports.figures import fidelity_against_deniability, png

LAMBDAS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)


def main():
    warnings.simplefilter("ignore")
    if not DATA.is_dir():
        raise SystemExit("needs PF Tokyo in ../shared/data/pf_tokyo")
    bench = Bench()
    found = []
    for lam in LAMBDAS:
        sampler = bench.sampler("allotted", "modes", 8, {"eta": 0.01, "lam": lam})
        found.append(bench.figures(sampler, attacks=()))
        print(f"lam {lam:g}: " + ", ".join(f"{name} {value:.3f}" for name, value in found[-1].items()), flush=True)
    columns = [[f[name] for f in found] for name in ("kept", "top-1", "accepted")]
    drawn = fidelity_against_deniability(LAMBDAS, *columns, title="PF Tokyo, 500 seeds, k 50; numbers are lambda")
    (Path(__file__).resolve().parents[1] / "docs" / "fidelity_lambda.png").write_bytes(png(drawn))


if __name__ == "__main__":
    main()
