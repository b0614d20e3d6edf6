"""
How much of what the deniable mode reaches is luck: the table of docs/decisions/0009-telling.md.

`python bench/compare_draws.py [DRAWS]` (some minutes; 8 draws by default). PF Tokyo with the roles of
`compare_emissions.py`; classes and groups are learnt anew from the same people, and each draw releases 2,000 fakes.
With one clustering or the most telling of 20, and with 8, 7 or 6 groups.
"""

import sys
import warnings

import numpy as np
from compare_emissions import DATA, Bench

FIGURES = ("accepted", "kept", "per 500", "top-1")
LEAST_KEPT, MOST_TV = 0.15, 0.539


def main():
    warnings.simplefilter("ignore")
    if not DATA.is_dir():
        raise SystemExit("needs PF Tokyo in ../shared/data/pf_tokyo")
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    for clusterings in (1, 20):
        benches = [Bench(draw, class_draws=clusterings) for draw in range(1, draws + 1)]
        for groups in (8, 7, 6):
            found = []
            for draw, bench in enumerate(benches, 1):
                sampler = bench.sampler("walk", "modes", groups, {"stock": 100_000}, start=draw)
                figures = bench.figures(sampler, attacks=())
                found.append([figures[name] for name in FIGURES])
            table = np.array(found)
            both = np.sum((table[:, 1] >= LEAST_KEPT) & (table[:, 2] <= MOST_TV))
            print(
                f"{clusterings} clusterings, {groups} groups: kept and TP-TV within their bounds in {both} of {draws}"
            )
            for name, column in zip(FIGURES, table.T, strict=True):
                print(f"  {name:9} mean {column.mean():.3f}, from {column.min():.3f} to {column.max():.3f}", flush=True)


if __name__ == "__main__":
    main()
