"""A13: do the fakes visit places that too few seed users visit? (E31)"""

import numpy as np

from elsewhere.evaluation.attacks.finding import Finding
from elsewhere.evaluation.attacks.ground import Ground, users_per_place


def unique_places(ground: Ground) -> Finding:
    """A13."""
    m_min = ground.parameters["m_min"]
    users = users_per_place(ground.seeds, ground.R)
    used = np.unique(ground.fakes)
    rare = used[users[used] < m_min]
    on_rare = np.isin(ground.fakes, rare)
    learnt = np.asarray(getattr(ground.model, "visitors", np.zeros(ground.R)))
    in_model = int(((learnt > 0) & (learnt < m_min)).sum())
    baseline = control = None
    if ground.holdout is not None:
        lived = np.unique(ground.holdout.r)
        baseline = float((users[lived] < m_min).sum())
        control = float((users_per_place(ground.holdout, ground.R)[used] < m_min).sum())
    return Finding(
        "A13",
        main=float(len(rare)),
        control=control,
        baseline=baseline,
        bar=0.0,
        passed=len(rare) == 0 and in_model == 0,
        reachable=True,
        words=f"{len(rare)} places of the fakes have fewer than {m_min} seed users"
        + ("." if len(rare) == 0 else f"; {int(on_rare.any(axis=1).sum())} fakes visit one of them.")
        + (f" {in_model} places of the model have fewer contributors than that." if in_model else ""),
        details={
            "m_min": m_min,
            "in_model": in_model if ground.model is not None else None,
            "one_user": int((users[rare] == 1).sum()),
            "nobody": int((users[rare] == 0).sum()),
            "fakes_affected": float(on_rare.any(axis=1).mean()),
        },
    )
