"""
Fidelity and cost of the deniable mode against the number of seeds, on simulated towns: the tables of docs/deniable.md.

`python bench/deniable_scale.py [walk|allotted|window] [SEEDS ...]` (walk, 500 5000 50000 100000 by default; minutes).
Groups are as many as leave 1.5 k planned seeds to each, at most 64; with "window" every seed is a group of its own.
One process per size, so that its peak memory is its own; compiled before it is timed.
"""

import resource
import subprocess
import sys
import time
import warnings

import numpy as np

import elsewhere as ew
from elsewhere.deny import groups_for
from elsewhere.privacy.mechanism import Mechanism, release
from elsewhere.synthesis.deniable.archetypes import learn_archetypes
from elsewhere.synthesis.deniable.walk import WalkSampler
from elsewhere.synthesis.walk.fit import learn_walk

MODEL, KAPPA, K, COMPARED, FLOOR = 2000, 6, 50, 500, 0.1
FAKES = {"walk": 1000, "allotted": 1000, "window": 50}
WINDOW = {"lam": 0.05, "eta": 0.1}  # usable at k 50 and 500 seeds; every seed counts for itself


def sampler_of(emission, learnt, people, n, tau):
    """The sampler, everything learnt from the model's people."""
    if emission == "window":
        return ew.DeniableSampler(learnt.model, learnt.classes, emission="window", tau=tau, **WINDOW)
    classes = np.asarray(learnt.classes.label)[learnt.translate(people).r]
    groups = learn_archetypes(classes, KAPPA, n, rng=np.random.default_rng(3))
    if emission == "allotted":
        return ew.DeniableSampler(
            learnt.model, learnt.classes, emission="allotted", eta=0.01, archetypes=groups, tau=tau
        )
    rng = np.random.default_rng(5)
    walk = learn_walk(people.r, learnt.model.locations, learnt.known, rng=rng)
    return WalkSampler(
        learnt.model, learnt.classes, walk=walk, archetypes=groups, tau=tau, rng=rng, fakes=FAKES[emission]
    )


def one(emission, seeds):
    warnings.simplefilter("ignore")
    town = ew.simulate_town(users=MODEL + seeds, locations=400, rng=np.random.default_rng(1)).traces
    model, rest = town.select(np.arange(MODEL)), town.select(np.arange(MODEL, MODEL + seeds))
    learnt = ew.learn(model, "deniable", kappa=KAPPA, carry=False, rng=np.random.default_rng(2))
    label, r = np.asarray(learnt.classes.label), learnt.translate(rest).r
    tau = learnt.tau(rest)
    n = groups_for(seeds, MODEL, K)
    gate = {"k": K, "gamma": 4.0, "eps0": 1.0}

    few = Mechanism.of(sampler_of(emission, learnt, model.select(np.arange(100)), 2, tau), r[: 2 * K], tau, **gate)
    few.attempts(np.random.default_rng(1))  # compiles

    start = time.process_time()
    sampler = sampler_of(emission, learnt, model, n, tau)
    mechanism = Mechanism.of(sampler, r, tau, **gate)
    prepared = time.process_time() - start
    start = time.process_time()
    out = release(mechanism, FAKES[emission], floor=FLOOR, entropy=2, laboratory=False)
    spent = time.process_time() - start

    fakes = label[out.r]
    others = label[r[np.random.default_rng(4).permutation(seeds)[:COMPARED]]]
    own = (fakes == label[r[out.seed]]).mean()
    rest_mean = np.mean([(fakes == other).mean() for other in others])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{seeds:8d} {n if emission != 'window' else seeds:7d} {out.passed / out.attempts:9.2f} {own:7.3f} "
        f"{own - rest_mean:7.3f} {prepared:8.1f} {1e3 * spent / out.passed:8.3f} {1e3 * spent / out.attempts:8.3f} "
        f"{peak:8.2f}",
        flush=True,
    )


def main():
    words = sys.argv[1:]
    if len(words) == 3 and words[0] == "--one":
        return one(words[1], int(words[2]))
    emission = words.pop(0) if words and words[0] in FAKES else "walk"
    print(f"{emission}\n   seeds  groups  accepted    own    kept  prep. s  ms/fake  ms/try.  peak GB", flush=True)
    for seeds in words or ("500", "5000", "50000", "100000"):
        subprocess.run([sys.executable, __file__, "--one", emission, seeds], check=True)
    return None


if __name__ == "__main__":
    main()
