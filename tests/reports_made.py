"""A small evaluation of every kind, made once for the tests of the report; strings in it are chosen to do harm."""

from functools import cache

import numpy as np

import elsewhere as ew
from elsewhere.evaluation.lbs.generators import from_pool, uniform_iid
from elsewhere.evaluation.uses import judge_uses

HOSTILE = "</script><b onclick=alert(1)>&'\""
CANARY = "canary-user"
PLACES, INSTANTS = 40, 24
LONELY = 39  # a place that one real person visits, and no fake


@cache
def world():
    """Real traces with a canary, fakes of another part of the map, and results of all four kinds."""
    rng = np.random.default_rng(5)
    xy = rng.random((PLACES, 2)) * 10
    xy[LONELY] = (4.56789, 7.65432)
    places = ew.Locations(xy=xy)
    r = np.repeat(rng.integers(0, 20, (60, 6)), 4, axis=1)
    r[7, 5:9] = LONELY
    users = [f"{CANARY}-{i}" for i in range(60)]
    real = ew.Traces(r[:40], places, users=users[:40], step_minutes=60)
    holdout = ew.Traces(r[40:], places, users=users[40:], step_minutes=60)
    seed = np.arange(40)
    fake = np.repeat(rng.integers(20, 38, (40, 6)), 4, axis=1)
    fakes = ew.Traces(fake, places, users=[f"{i:032x}" for i in range(40)], step_minutes=60)
    audit = ew.audit(real, holdout, fakes, seed, attacks=["A1", "A2", "A4", "A13", "A9"], rng=rng)
    publishing = ew.evaluate_publishing(real, holdout, fakes, seed_index=seed, rng=rng)
    uses = judge_uses(real, fakes, rng=rng)
    decoys = {"uniform": uniform_iid(PLACES, INSTANTS), "ours": from_pool(fakes, seed)}
    lbs = ew.evaluate_lbs(real, real.select(np.arange(6)), decoys, n_fakes=(1, 3), repeats=(1, 2), rng=rng)
    classes = ew.SemanticClasses(np.arange(PLACES) % 9)
    provenance = {
        "preset": "product",
        "parameters": {"par_i": 0, "intersection": "set", "par_s": 0.1},
        "kappa": 9,
    }
    return {
        "real": real,
        "holdout": holdout,
        "fakes": fakes,
        "seed": seed,
        "pool": ew.Pool(fakes, provenance),
        "audit": audit,
        "publishing": publishing,
        "uses": uses,
        "lbs": lbs,
        "results": [audit, publishing, lbs, uses],
        "classes": classes,
        "run": {"tally": {"tested": 50, "passed": 40, "similarity": 10, "differential": 2}, "notes": [HOSTILE]},
    }
