"""
A8: how many other seeds could have made this fake? The (k, gamma) count with the true Pr{f|s} (READINGS section 11).

A seed user is in bucket ceil(-ln Pr{f|s} / ln gamma); the count is that of users in the bucket of the fake's own seed.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from elsewhere.evaluation.attacks.candidates import blocks
from elsewhere.evaluation.attacks.finding import Finding, percent
from elsewhere.evaluation.attacks.ground import Ground
from elsewhere.evaluation.attacks.intervals import user_rate
from elsewhere.privacy.deniability import buckets
from elsewhere.traces.model import Ints

DELTA_TARGET = 1e-6
CHANCE = 0.01


def gate(k: int, gamma: float, eps0: float, t: int | None, acceptance: float | None) -> Mapping[str, Any]:
    """
    t of the theorem, delta / a, and how often a seed may be named.

    By default t is the largest whose delta is below 1e-6; t = k means a fixed threshold, which is never missed.
    """
    if t is None:
        t = max(1, min(k - 1, math.floor(k + math.log(DELTA_TARGET * (acceptance or 1.0)) / eps0)))
    missed = 0.0 if t == k else min(1.0, math.exp(-eps0 * (k - t)) / (acceptance or 1.0))
    return {"t": t, "missed": missed, "named": min(1.0, gamma / (gamma + t - 1) + missed)}


def members(ground: Ground) -> Ints:
    """Number of seed users in the bucket of each fake's own seed, it included; 0 where Pr{f|s} is 0."""
    link, gamma = ground.main, ground.parameters["gamma"]
    count = np.zeros(len(link.fakes), dtype=np.int64)
    order = np.argsort(link.people.user, kind="stable")
    starts = np.searchsorted(link.people.user[order], np.arange(link.people.U))
    for rows in blocks(link):
        log_prob = np.asarray(ground.sampler.log_prob(link.fakes[rows], ground.seeds_given), dtype=np.float64)
        own = log_prob[np.arange(len(rows)), link.owner[rows]]
        same = buckets(log_prob, gamma) == buckets(own, gamma)[:, None]
        users = np.logical_or.reduceat(same[:, order], starts, axis=1).sum(axis=1)
        count[rows] = np.where(np.isneginf(own), 0, users)
    return count


def alternatives(ground: Ground) -> Finding:
    """A8."""
    from scipy.stats import binom

    rng, p, user = ground.rng("A8"), ground.parameters, ground.main.user
    count = members(ground)
    few = (count < p["t"]).astype(np.float64)
    main, worst = user_rate(few, user, rng)
    enough, _ = user_rate((count >= p["k"]).astype(np.float64), user, rng)
    # delta / a is far below what any sample resolves: the number of failures must be one that chance explains
    explained = float(binom.sf(few.sum() - 1, len(few), p["missed"]))
    return Finding(
        "A8",
        main=main.value,
        interval=main,
        baseline=0.0,
        bar=p["missed"],
        passed=explained > CHANCE,
        leaks=explained <= CHANCE,
        reachable=True,
        worst_decile=worst,
        words=f"{percent(main.value)} of the fakes have fewer than t = {p['t']} seed users within a factor gamma = "
        f"{p['gamma']:g} of their own seed; {percent(enough.value)} have at least k = {p['k']}.",
        details={
            "share_t": 1 - main.value,
            "share_k": enough,
            "median_count": float(np.median(count)),
            "smallest_count": int(count.min()),
            "k": p["k"],
            "gamma": p["gamma"],
            "t": p["t"],
        },
    )
