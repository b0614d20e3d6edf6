"""
Which emission of the deniable mode keeps most of a seed's life: the tables of docs/decisions/0005, 0006, 0008 and 0009.

`python bench/compare_emissions.py [WORD]` (a few minutes; with a word, only rows whose name holds it). PF Tokyo: model
learnt from users 500-749, hold-out 750-999, seeds 0-499; kappa 20, k 50, gamma 4, eps0 1; 2,000 released fakes each.
Groups and tables are learnt on the model's users alone; the design itself was chosen by looking at these figures.
TP-TV over all fakes at once and, as the seeds are 500, per 500 of them; `per s` after all that is made once.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np

import elsewhere as ew
from elsewhere.evaluation.agreement import class_agreement
from elsewhere.evaluation.attacks.candidates import shared_top
from elsewhere.evaluation.referee import tp_tv
from elsewhere.presets import preset_of
from elsewhere.privacy.mechanism import Mechanism, release
from elsewhere.synthesis.deniable.archetypes import learn_archetypes
from elsewhere.synthesis.deniable.walk import WalkSampler
from elsewhere.synthesis.walk.fit import learn_walk

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "pf_tokyo"
K, GAMMA, EPS0, KAPPA, FAKES = 50, 4.0, 1.0, 20, 2000

# name -> emission, how groups are learnt, their number, further parameters
CONTEST = {
    "no seed at all": ("window", None, None, {"lam": 0.0}),
    "window, lam .3, eta .1": ("window", None, None, {"lam": 0.3, "eta": 0.1}),
    "4 means": ("archetypes", "means", 4, {"eta": 0.1}),
    "8 means": ("archetypes", "means", 8, {"eta": 0.1}),
    "8 modes": ("archetypes", "modes", 8, {"eta": 0.1}),
    "8 modes, sharp": ("archetypes", "modes", 8, {"eta": 0.01}),
    "8 means, allotted": ("allotted", "means", 8, {"eta": 0.01}),
    "4 modes, allotted": ("allotted", "modes", 4, {"eta": 0.01}),
    "6 modes, allotted": ("allotted", "modes", 6, {"eta": 0.01}),
    "8 modes, allotted": ("allotted", "modes", 8, {"eta": 0.01}),
    "8 modes, allotted, theta .1": ("allotted", "modes", 8, {"eta": 0.01, "theta": 0.1}),
    "8 modes, allotted, lam .5": ("allotted", "modes", 8, {"eta": 0.01, "lam": 0.5}),
    "10 modes, allotted": ("allotted", "modes", 10, {"eta": 0.01}),
    "walk, no seed at all": ("walk", "modes", 6, {"lam": 0.0}),
    "walk, strength 0": ("walk", "modes", 6, {"strength": 0.0}),
    "walk, strength 2": ("walk", "modes", 6, {"strength": 2.0}),
    "walk, strength 3": ("walk", "modes", 6, {}),
    "walk, strength 5": ("walk", "modes", 6, {"strength": 5.0}),
    "walk, 8 groups": ("walk", "modes", 8, {}),
}


class Bench:
    """PF with its roles, the model learnt once; `draw` starts the clustering."""

    def __init__(self, draw=1, **parameters):
        traces = ew.read_traces(DATA / "pf_tokyo_traces.csv.gz", locations=DATA / "pf_tokyo_locations.csv")
        self.model, self.seeds, self.holdout = (
            traces.select(np.arange(*part)) for part in ((500, 750), (0, 500), (750, 1000))
        )
        settings = preset_of("deniable", **parameters)
        self.learnt = ew.learn(self.model, settings, kappa=KAPPA, carry=False, rng=np.random.default_rng(draw))
        self.label = np.asarray(self.learnt.classes.label)
        self.shared = self.learnt.translate(self.seeds)
        self.tau = self.learnt.tau(self.shared)
        r = self.learnt.translate(self.model).r
        self.model_classes = np.where(r >= 0, self.label[r], -1)

    def sampler(self, emission, method, n, parameters, start=0):
        archetypes = None
        if n is not None:
            rng = np.random.default_rng(start)
            archetypes = learn_archetypes(self.model_classes, KAPPA, n, method=method, rng=rng)
        if emission == "walk":
            rng = np.random.default_rng(start)
            walk = learn_walk(self.model.r, self.model.locations, self.learnt.known, rng=rng)
            return WalkSampler(
                self.learnt.model,
                self.learnt.classes,
                walk=walk,
                archetypes=archetypes,
                tau=self.tau,
                rng=rng,
                fakes=FAKES,
                **parameters,
            )
        return ew.DeniableSampler(
            self.learnt.model, self.learnt.classes, emission=emission, archetypes=archetypes, tau=self.tau, **parameters
        )

    def figures(self, sampler, *, k=K, fakes=FAKES, attacks=("A6", "A15")):
        """Name -> figure, of fakes released by the gate."""
        mechanism = Mechanism.of(sampler, self.shared.r, self.tau, k=k, gamma=GAMMA, eps0=EPS0)
        release(mechanism, 20, floor=0.01, entropy=1, laboratory=True)  # compiles
        start = time.process_time()
        out = release(mechanism, fakes, floor=0.1, entropy=2, laboratory=False)
        seconds = time.process_time() - start
        agreement = class_agreement(out.r, self.shared.r, out.seed, self.label)
        white = shared_top(np.round(sampler.log_prob(out.r, self.shared.r), 9), out.seed)
        found = {
            "accepted": out.passed / out.attempts,
            "own": agreement.own.mean(),
            "kept": agreement.kept,
            "top-1": white.mean(),
            "TP-TV": tp_tv(out.r, self.holdout.r),
            "per 500": np.mean([tp_tv(out.r[i : i + 500], self.holdout.r) for i in range(0, len(out.r), 500)]),
            "per s": out.passed / seconds,
        }
        if attacks:
            audit = ew.audit(
                self.seeds, self.holdout, out.r, out.seed, attacks=list(attacks), rng=np.random.default_rng(0)
            )
            for name in attacks:
                finding = audit[name]
                found[name] = finding.main - (finding.baseline if name == "A6" else 0.0)
        return found


def main():
    warnings.simplefilter("ignore")
    if not DATA.is_dir():
        raise SystemExit("needs PF Tokyo in ../shared/data/pf_tokyo")
    bench = Bench()
    print(f"TP-TV of the seeds {tp_tv(bench.seeds.r, bench.holdout.r):.3f}; A6 above its prior; chance of top-1 .002")
    header = ("accepted", "own", "kept", "top-1", "A6", "TP-TV", "per 500", "A15", "per s")
    print(f"{'':30}" + "".join(f"{name:>10}" for name in header))
    for name, how in CONTEST.items():
        if all(word in name for word in sys.argv[1:]):
            found = bench.figures(bench.sampler(*how))
            cells = (f"{found[h]:10.0f}" if h == "per s" else f"{found[h]:10.3f}" for h in header)
            print(f"{name:30}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
