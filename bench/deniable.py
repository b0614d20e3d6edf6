"""
The noisy count of archetypes on PF Tokyo: the table of docs/decisions/0026.

`python bench/deniable.py [DRAWS] [ARCHETYPES,...] [EPS0,...] [--attacks]`. Model learnt from users 500-749, hold-out
750-999, seeds 0-499; 20 classes; 2,000 fakes each. `kept`: class agreement of a fake with a seed of its archetype minus
that with all others; `top-1`: how often the white box, who knows all laws, names that seed (chance .002). TP-TV over
all fakes at once and, as the seeds are 500, per 500. Archetypes "auto" are as many as the preset takes.
"""

import secrets
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from referee import tp_tv

import elsewhere as ew
from elsewhere.evaluation.attacks.candidates import chance_of_top
from elsewhere.evaluation.judge import class_agreement
from elsewhere.privacy.deniable.count import mixture, noisy_count
from elsewhere.privacy.deniable.laws import pool_for
from elsewhere.run.model import FittedModel, add_archetypes
from elsewhere.run.presets import preset_of

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "pf_tokyo"
KAPPA, FAKES = 20, 2000


class Bench:
    """PF with its roles; model, classes, archetypes and laws are learnt from its model people."""

    def __init__(self, draw=1):
        traces = ew.read_traces(DATA / "pf_tokyo_traces.csv.gz", locations=DATA / "pf_tokyo_locations.csv")
        self.model, self.seeds, self.holdout = (
            traces.select(np.arange(*part)) for part in ((500, 750), (0, 500), (750, 1000))
        )
        self.rng = np.random.default_rng(draw)
        self.learnt = ew.learn(self.model, preset_of("deniable"), kappa=KAPPA, carry=False, rng=self.rng)
        self.label = np.asarray(self.learnt.classes.label)
        self.shared = self.learnt.translate(self.seeds)

    def told(self, archetypes):
        """Learn so many archetypes, and their laws."""
        start = time.process_time()
        settings = preset_of("deniable", archetypes=archetypes)
        self.learnt = add_archetypes(
            FittedModel(self.learnt.model, self.learnt.classes, settings, self.learnt.place), self.model, self.rng
        )
        self.laws = self.learnt.carried.laws(
            self.learnt.model.locations, self.label, self.learnt.known, size=pool_for(FAKES), rng=self.rng
        )
        self.seconds = time.process_time() - start
        self.codes = self.learnt.carried.archetypes.nearest(self.learnt.classes_of(self.seeds.r), self.seeds.user)

    def release(self, eps0, n=FAKES, k=None):
        """Fakes, the archetypes they were drawn from, and seconds of the processor for count and draws."""
        start = time.process_time()
        noisy = noisy_count(self.codes, self.laws.A, eps0=eps0, below=secrets.randbelow)
        mixed = mixture(noisy, eps0=eps0, k=k)
        r, which = self.laws.draw(mixed.weights, mixed.without, n, self.rng)
        return r, which, time.process_time() - start

    def figures(self, eps0, k=None, attacks=()):
        """Name -> figure."""
        r, which, seconds = self.release(eps0, k=k)
        own = np.array(
            [self.rng.choice(np.flatnonzero(self.codes == a) if (self.codes == a).any() else 500) for a in which]
        )
        agreement = class_agreement(r, self.shared.r, own, self.label)
        white = chance_of_top(np.round(self.laws.log_prob(r, self.shared.r), 9), own)
        found = {
            "gain": agreement.gain,
            "top-1": white.mean(),
            "TP-TV": tp_tv(r, self.holdout.r),
            "per 500": np.mean([tp_tv(r[i : i + 500], self.holdout.r) for i in range(0, len(r), 500)]),
            "without a seed": np.mean(which < 0),
            "per s": len(r) / seconds,
        }
        if attacks:
            audit = ew.audit(self.seeds, self.holdout, r, own, attacks=list(attacks), rng=np.random.default_rng(0))
            found |= {name: audit[name].main for name in attacks}
        return found


def main():
    warnings.simplefilter("ignore")
    if not DATA.is_dir():
        raise SystemExit("needs PF Tokyo in ../shared/data/pf_tokyo")
    words = sys.argv[1:]
    attacks = ("A15", "A10") if "--attacks" in words else ()
    words = [word for word in words if word != "--attacks"]
    draws = int(words[0]) if words else 3
    numbers = words[1].split(",") if len(words) > 1 else ["6", "8", "auto", "32"]
    scales = [float(x) for x in words[2].split(",")] if len(words) > 2 else [0.1, 0.5, 1.0]
    benches = [Bench(draw + 1) for draw in range(draws)]
    print(f"TP-TV of the seeds per 500 {tp_tv(benches[0].seeds.r, benches[0].holdout.r):.3f}")
    for number in numbers:
        for bench in benches:
            bench.told(None if number == "auto" else int(number))
        for eps0 in scales:
            found = [bench.figures(eps0, attacks=attacks) for bench in benches]
            told = {name: np.mean([f[name] for f in found]) for name in found[0]}
            spread = {name: np.std([f[name] for f in found]) for name in found[0]}
            cells = ", ".join(f"{name} {value:.3f} +- {spread[name]:.3f}" for name, value in told.items())
            print(f"A {benches[0].laws.A}, eps0 {eps0:g}: {cells}; learnt in {benches[0].seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
