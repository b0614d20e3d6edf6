"""
Fidelity of the deniable mode against the number of seeds, on simulated towns: the table of docs/deniable.md.

`python bench/deniable_scale.py [SEEDS ...]` (500 5000 50000 100000 by default; minutes). Groups are as many as leave
1.25 k planned seeds to each, at most 64. One process per size, so that its peak memory is its own.
"""

import resource
import subprocess
import sys
import time
import warnings

import numpy as np

import elsewhere as ew
from elsewhere.privacy.mechanism import Mechanism, release
from elsewhere.synthesis.deniable.archetypes import learn_archetypes

MODEL, KAPPA, K, FAKES, COMPARED, MOST = 2000, 6, 50, 1000, 500, 64


def one(seeds):
    warnings.simplefilter("ignore")
    town = ew.simulate_town(users=MODEL + seeds, locations=400, rng=np.random.default_rng(1)).traces
    model, rest = town.select(np.arange(MODEL)), town.select(np.arange(MODEL, MODEL + seeds))
    learnt = ew.learn(model, "deniable", kappa=KAPPA, rng=np.random.default_rng(2))
    label, r = np.asarray(learnt.classes.label), learnt.translate(rest).r
    tau = learnt.tau(rest)
    n = min(MOST, int(seeds / (1.25 * K)))
    start = time.perf_counter()
    groups = learn_archetypes(label[learnt.translate(model).r], KAPPA, n, rng=np.random.default_rng(3))
    sampler = ew.DeniableSampler(
        learnt.model, learnt.classes, emission="allotted", eta=0.01, archetypes=groups, tau=tau
    )
    mechanism = Mechanism.of(sampler, r, tau, k=K, gamma=4.0, eps0=1.0)
    prepared = time.perf_counter() - start
    release(mechanism, 20, floor=0.01, entropy=1, laboratory=True)
    start = time.process_time()
    out = release(mechanism, FAKES, floor=0.01, entropy=2, laboratory=False)
    each = (time.process_time() - start) / out.passed
    fakes = label[out.r]
    others = label[r[np.random.default_rng(4).permutation(seeds)[:COMPARED]]]
    own = (fakes == label[r[out.seed]]).mean()
    rest_mean = np.mean([(fakes == other).mean() for other in others])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{seeds:8d} {n:7d} {out.passed / out.attempts:9.2f} {own:7.3f} {own - rest_mean:7.3f} {prepared:8.1f} "
        f"{1e3 * each:8.3f} {peak:8.2f}",
        flush=True,
    )


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        return one(int(sys.argv[2]))
    print("   seeds  groups  accepted    own    kept  prep. s  ms/fake  peak GB", flush=True)
    for seeds in sys.argv[1:] or ("500", "5000", "50000", "100000"):
        subprocess.run([sys.executable, __file__, "--one", seeds], check=True)
    return None


if __name__ == "__main__":
    main()
