"""
A8: how many seeds stand behind a fake? Those whom it is as likely of as of its own.

Counted with the true Pr{f|s}: a seed user stands behind a fake if Pr{f|s} is that of the fake's own seed.
"""

import numpy as np

from elsewhere.evaluation.attacks.candidates import blocks
from elsewhere.evaluation.attacks.finding import Finding, percent
from elsewhere.evaluation.attacks.ground import Ground
from elsewhere.evaluation.attacks.intervals import user_rate
from elsewhere.evaluation.attacks.neighbours import CannotAudit
from elsewhere.privacy.count import K_DELTA
from elsewhere.traces.model import Ints

SAME = 1e-9  # nats by which two computations of one probability may differ


def members(ground: Ground) -> Ints:
    """Number of seed users with the same Pr{f|s} as the fake's own, it included; 0 where that is 0."""
    link = ground.main
    count = np.zeros(len(link.fakes), dtype=np.int64)
    order = np.argsort(link.people.user, kind="stable")
    starts = np.searchsorted(link.people.user[order], np.arange(link.people.U))
    for rows in blocks(link):
        log_prob = np.asarray(ground.sampler.log_prob(link.fakes[rows], ground.seeds_given), dtype=np.float64)
        own = log_prob[np.arange(len(rows)), link.owner[rows]]
        with np.errstate(invalid="ignore"):  # -inf is as likely as -inf, and nobody's
            same = np.abs(log_prob - own[:, None]) <= SAME
        users = np.logical_or.reduceat(same[:, order], starts, axis=1).sum(axis=1)
        count[rows] = np.where(np.isneginf(own), 0, users)
    return count


def behind(ground: Ground) -> Finding:
    """A8."""
    rng, k, user = ground.rng("A8"), ground.parameters["k"], ground.main.user
    if k is None:
        raise CannotAudit("`k`, the number of seeds that should stand behind every fake")
    count = members(ground)
    few = (count < k).astype(np.float64)
    main, worst = user_rate(few, user, rng)
    return Finding(
        "A8",
        main=main.value,
        interval=main,
        baseline=0.0,
        bar=K_DELTA,
        # with a probability of K_DELTA there may be one such fake, far below what any sample resolves
        passed=not few.any(),
        leaks=bool(few.any()),
        reachable=True,
        worst_decile=worst,
        words=f"{percent(main.value)} of the fakes have fewer than k = {k} seed users behind them, who would have made "
        f"them with the same probability; half of the fakes have at least {int(np.median(count))}.",
        details={
            "share_k": 1 - main.value,
            "median_count": float(np.median(count)),
            "smallest_count": int(count.min()),
            "k": k,
        },
    )
