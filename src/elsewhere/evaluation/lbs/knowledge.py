"""
What the service knows before it looks: a chain over places, and how much each place is worth at each instant.

- `aggregate`  <p_bar, pi_bar>, the paper's adversary;
- `user`       p(u) learnt on the training traces of this very user (E68), by the formula of p_bar for her alone: moves
               that she never made keep the weight of the distance kernel;
- `classes`    p_bar, and how often people are at places of each semantic class at each hour;
- `pool`       p_bar, and every published fake (A19); its chain is that of `aggregate`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elsewhere.profiles.aggregate import AggregateModel
from elsewhere.traces.model import Floats, Ints, Places

BETWEEN = 64  # most visited places that are hidden candidates while nothing is sent
HOURLY = 10.0  # visits that the whole day is worth beside those of one hour


@dataclass(frozen=True, eq=False)
class Chain:
    """
    A chain over some places: `place (C,)` sorted, logarithms and laws over them.

    `first (C,)` is ln of the law of the first instant, `p` and `log_p` (pairs, C, C) the moves, `pair (L - 1,)` which
    of them leads from one instant to the next, `between` the positions of hidden candidates while nothing is sent.
    """

    place: Ints
    first: Floats
    p: Floats
    log_p: Floats
    pair: Ints
    between: NDArray[np.uint32]


def period_steps(tau: Places) -> tuple[list[tuple[int, int]], Ints]:
    """The different (tau, tau') of consecutive instants, and which of them each step is."""
    steps = list(zip(tau[:-1].tolist(), tau[1:].tolist(), strict=True))
    pairs = sorted(set(steps)) or [(0, 0)]
    number = {pair: i for i, pair in enumerate(pairs)}
    return pairs, np.array([number[step] for step in steps], dtype=np.int64)


def popular(law: Floats, most: int = BETWEEN) -> Ints:
    """The most likely places of a law, those of probability 0 left out."""
    best = np.argsort(-law, kind="stable")[:most]
    return np.sort(best[law[best] > 0])


def chain_of(model: AggregateModel, tau: Places, seen: Ints, *, between: int = BETWEEN) -> Chain:
    """
    <p_bar, pi_bar> over the places `seen` and the most visited ones.

    The law of the first instant gets the weight epsilon of a uniform one, as the rows of p_bar get that of their kernel
    (E34): what nobody visited in training is unlikely, not impossible.
    """
    hidden = popular(np.asarray(model.pi_bar), between)
    place = np.union1d(seen, hidden)
    pairs, pair = period_steps(tau)
    start = model.first(int(tau[0])) if model.T > 1 else model.pi_bar
    first = ((start + model.epsilon / model.R) / (1 + model.epsilon))[place]
    p = np.stack([model.block(place, place, *step) for step in pairs])
    with np.errstate(divide="ignore"):
        return Chain(place, np.log(first), p, np.log(p), pair, np.searchsorted(place, hidden).astype(np.uint32))


def class_hours(r: Places, label: Ints, hour: Ints) -> Floats:
    """
    (L, R) ln of how much more, or less, people are at the class of each place at this hour than in general.

    The share of an hour is drawn towards that of the whole day by `HOURLY` visits. Places of unknown class are worth
    what they are.
    """
    kinds = int(label.max(initial=-1)) + 1
    known = (r >= 0) & (label[r] >= 0)
    if kinds == 0 or not known.any():
        return np.zeros((len(hour), len(label)))
    when = np.broadcast_to(hour, r.shape)[known]
    visits = np.zeros((int(hour.max()) + 1, kinds))
    np.add.at(visits, (when, label[r[known]]), 1.0)
    # half a visit each, so that a class nobody trained on is no impossibility
    share = (visits.sum(axis=0) + 0.5) / (visits.sum() + kinds / 2)
    lift = (visits + HOURLY * share) / (visits.sum(axis=1, keepdims=True) + HOURLY) / share
    return np.where(label >= 0, np.log(lift)[hour][:, label], 0.0)
