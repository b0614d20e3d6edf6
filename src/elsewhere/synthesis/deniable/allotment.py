"""
Emissions that share the classes out: each group gets the classes its people are in, and all groups together the town's.

Three steps, all of them on the model alone:

1. per instant, the population's classes are shared out among the groups (`share_out`): the transport plan with the
   groups' sizes and the population's class shares as its sums that agrees best with the groups' own shares, softened
   by an entropy of weight theta. So the fakes of all groups together are where the population is.
2. within a class, places keep the model's proportions.
3. `bridge` finds the emissions under which the fakes of a group are at these places, instant by instant: of all laws
   of a trace with these shares the one closest to the model (iterative proportional fitting along the chain).
"""

import numpy as np
from numpy.typing import NDArray

from elsewhere.synthesis.deniable.archetypes import Archetypes
from elsewhere.traces.model import Floats, Ints

BALANCINGS = 300
SWEEPS = 20
LEAST = 1e-12  # of an emission, relative to the largest at t: every place stays possible


def share_out(share: Floats, size: Floats, overall: Floats, theta: float) -> Floats:
    """
    Class-by-slot shares of each group, (A, L, C), whose mean over groups of these sizes is `overall` (L, C).

    `share` (A, L, C) says how much a group wants a class: the plan maximises the wish met plus theta times its entropy
    relative to `overall`.
    """
    # a small theta must not underflow, and a group without people must not be divided by
    wish = np.exp(np.maximum((share - share.max(axis=(0, 2), keepdims=True)) / theta, -60.0)) * overall
    size = np.maximum(size, 1e-9)
    left = np.ones((*share.shape[:2], 1))
    rows = size[:, None, None]
    for _ in range(BALANCINGS):
        right = overall / np.maximum((left * wish).sum(axis=0), 1e-300)
        left = rows / np.maximum((wish * right).sum(axis=2, keepdims=True), 1e-300)
    plan = left * wish * right
    return np.asarray(plan / plan.sum(axis=2, keepdims=True))


def bridge(first: Floats, tables: Floats, pair: Ints, goal: Floats, sweeps: int = SWEEPS) -> Floats:
    """
    Emissions (A, L, R), largest 1 at each instant, under which the chain is at place r at t with `goal[a, t, r]`.

    `first` (R,) is the law of the first instant, `tables[pair[t]]` that of step t. Every sweep sets one instant after
    the other right, given the emissions before and after it.
    """
    A, L, R = goal.shape
    e = np.ones((A, L, R))
    after = np.ones((A, L, R))
    for _ in range(sweeps):
        for t in range(L - 2, -1, -1):
            after[:, t] = (after[:, t + 1] * e[:, t + 1]) @ tables[pair[t]].T
            after[:, t] /= after[:, t].max(axis=1, keepdims=True)
        before = np.broadcast_to(first, (A, R))
        for t in range(L):
            if t > 0:
                before = (before * e[:, t - 1]) @ tables[pair[t - 1]]
                before = before / before.sum(axis=1, keepdims=True)
            free = before * after[:, t]
            wanted = np.divide(goal[:, t], free, out=np.zeros((A, R)), where=free > 0)
            e[:, t] = np.maximum(wanted / wanted.max(axis=1, keepdims=True), LEAST)
    return e


def allotted(
    archetypes: Archetypes,
    label: NDArray[np.integer],
    first: Floats,
    tables: Floats,
    pair: Ints,
    *,
    theta: float,
    eta: float,
) -> Floats:
    """Emissions of every group at every place, (A, L, R); `eta` of each group's shares are the population's."""
    L, R = len(pair) + 1, len(first)
    visits = np.empty((L, R))
    visits[0] = first / first.sum()
    for t in range(1, L):
        visits[t] = visits[t - 1] @ tables[pair[t - 1]]
    kappa = archetypes.share.shape[2]
    column = np.where(label >= 0, label, kappa)  # places of no class are nobody's wish
    member = np.zeros((R, kappa + 1))
    member[np.arange(R), column] = 1
    overall = visits @ member
    share = np.concatenate([archetypes.share, np.zeros((*archetypes.share.shape[:2], 1))], axis=2)
    plan = share_out(share, archetypes.weights, overall, theta)
    ratio = np.divide((1 - eta) * plan + eta * overall, overall, out=np.zeros_like(plan), where=overall > 0)
    goal = visits * ratio[:, :, column]
    return bridge(first, tables, pair, goal / goal.sum(axis=2, keepdims=True))
