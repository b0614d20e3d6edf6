"""
A13: do the fakes visit places that too few people visit? (E31)

Counted are seed users, as the suite says, and beside them the people the model was learnt from. In the deniable mode
these are others, by whom alone a place comes into a fake. Where enough of them visit every place of the fakes, walks of
the model without any seed may go to places of few seed users too, the more the longer they walk: the bar is then out of
reach, and only more places than these would be a failure.
"""

import numpy as np

from elsewhere.evaluation.attacks.finding import Finding, verdict
from elsewhere.evaluation.attacks.ground import Ground, users_per_place
from elsewhere.evaluation.attacks.intervals import Rate


def unique_places(ground: Ground) -> Finding:
    """A13."""
    m_min = ground.parameters["m_min"]
    users = users_per_place(ground.seeds, ground.R)
    used = np.unique(ground.fakes)
    rare = used[users[used] < m_min]
    on_rare = np.isin(ground.fakes, rare)
    visitors = getattr(ground.model, "visitors", None)
    learnt = np.zeros(ground.R) if visitors is None else np.asarray(visitors)
    in_model = int(((learnt > 0) & (learnt < m_min)).sum())
    by_model = int((learnt[used] < m_min).sum())
    # what a model that knows no seed may go to
    free = visitors is not None and by_model == 0 and in_model == 0
    allowed = int((users[learnt >= m_min] < m_min).sum()) if free else 0
    null = Rate(float(allowed), 0.0, float(allowed)) if free else None
    baseline = control = None
    if ground.holdout is not None:
        lived = np.unique(ground.holdout.r)
        baseline = float((users[lived] < m_min).sum())
        control = float((users_per_place(ground.holdout, ground.R)[used] < m_min).sum())
    main = Rate(*[float(len(rare))] * 3)
    passed = False if in_model else verdict(main, 0.0, null)
    words = f"{len(rare)} places of the fakes have fewer than {m_min} seed users"
    words += "." if len(rare) == 0 else f"; {int(on_rare.any(axis=1).sum())} fakes visit one of them."
    if in_model:
        words += f" {in_model} places of the model have fewer contributors than that."
    if len(rare) and visitors is not None:
        words += (
            f" Every place of the fakes has at least {m_min} of the people the model was learnt from."
            if by_model == 0
            else f" {by_model} places of the fakes have fewer than {m_min} of the people the model was learnt from."
        )
    if passed is None:
        words += f" Walks of the model without any seed may go to {allowed} places of so few seed users: no verdict."
    return Finding(
        "A13",
        main=main.value,
        control=control,
        baseline=baseline,
        bar=0.0,
        null=null,
        passed=passed,
        reachable=allowed == 0,
        words=words,
        details={
            "m_min": m_min,
            "counted": "seed users",
            "in_model": in_model if ground.model is not None else None,
            "few_contributors": by_model if visitors is not None else None,
            "one_user": int((users[rare] == 1).sum()),
            "nobody": int((users[rare] == 0).sum()),
            "fakes_affected": float(on_rare.any(axis=1).mean()),
        },
    )


def few_in_the_file(ground: Ground) -> Finding:
    """A13 of people of whom no fake was made: places of the fakes where one of them, and few of the whole file, go."""
    m_min, used = ground.parameters["m_min"], np.unique(ground.fakes)
    assert ground.file is not None  # noqa: S101 - a ground of a role
    rare = used[ground.file[used] < m_min]
    theirs, strangers = (users_per_place(group, ground.R)[rare] > 0 for group in (ground.seeds, ground.strangers))
    found = rare[theirs]
    affected = np.isin(ground.fakes, found).any(axis=1)
    words = f"{len(found)} places of the fakes are visited by one of {ground.who} and by fewer than {m_min} people of "
    words += "the whole file" + ("." if len(found) == 0 else f"; {int(affected.sum())} fakes visit one of them.")
    return Finding(
        "A13",
        main=float(len(found)),
        control=float(strangers.sum()),
        bar=0.0,
        passed=len(found) == 0,
        reachable=True,
        words=words,
        details={"m_min": m_min, "counted": "everybody in the file", "fakes_affected": float(affected.mean())},
    )
