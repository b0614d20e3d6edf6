"""
What the service knows before it looks: a chain over places, and how much each place is worth at each instant.

- `aggregate`  <p_bar, pi_bar>, the paper's adversary;
- `user`       p(u) learnt on the training traces of this very user, with p_bar where they are silent (E68);
- `classes`    p_bar, and how often people are at places of each semantic class at each hour;
- `pool`       p_bar, and every published fake (A19); its chain is that of `aggregate`.
"""

from dataclasses import dataclass

import numpy as np

from elsewhere.profiles.aggregate import AggregateModel
from elsewhere.profiles.markov import MobilityProfile
from elsewhere.traces.model import Floats, Ints, Places

BETWEEN = 64  # most visited places that are hidden candidates while nothing is sent
BACKED = 1.0  # departures that p_bar is worth beside those of the user
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
    between: Ints


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


def aggregate_chain(model: AggregateModel, tau: Places, seen: Ints, *, between: Ints) -> Chain:
    """
    <p_bar, pi_bar> over the places `seen` and `between`.

    The law of the first instant gets the weight epsilon of a uniform one, as the rows of p_bar get that of their kernel
    (E34): what nobody visited in training is unlikely, not impossible.
    """
    place = np.union1d(seen, between)
    pairs, pair = period_steps(tau)
    start = model.first(int(tau[0])) if model.T > 1 else model.pi_bar
    first = (start + model.epsilon / model.R) / (1 + model.epsilon)
    p = np.stack([model.block(place, place, *step) for step in pairs])
    return _chain(place, first[place], p, pair, between)


def user_chain(known: Chain, profile: MobilityProfile, tau: Places, seen: Ints) -> Chain:
    """
    p(u) with p_bar behind it: row r is (moves of u from r + p_bar_r) / (departures of u from r + 1).

    `known` is the aggregate chain over at least the same places. A place that u never left has the row of p_bar; the
    law of the first instant is mixed in the same way.
    """
    between = popular(_dense(profile, profile.visits.sum(axis=0)))
    place = np.union1d(seen, between)
    at = np.searchsorted(known.place, place)
    pairs, pair = period_steps(tau)
    p = known.p[:, at][:, :, at] * BACKED
    inside = np.searchsorted(place, profile.support)
    there = (inside < len(place)) & (place[np.minimum(inside, len(place) - 1)] == profile.support)
    for i, step in enumerate(pairs if profile.T > 1 else [(0, 0)]):
        chosen = (profile.tau == step[0]) & (profile.tau_next == step[1])
        origin, target, number = profile.origin[chosen], profile.target[chosen], profile.count[chosen]
        leaving = np.bincount(origin, number, profile.K)
        kept = there[origin] & there[target]
        np.add.at(p[i], (inside[origin[kept]], inside[target[kept]]), number[kept])
        p[i, inside[there]] /= (leaving[there] + BACKED)[:, None]
    visits = profile.visits[tau[0]] if profile.T > 1 else profile.visits.sum(axis=0)
    first = np.exp(known.first[at]) * BACKED
    np.add.at(first, inside[there], visits[there])
    return _chain(place, first / (visits.sum() + BACKED), p, pair, between)


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


def _dense(profile: MobilityProfile, visits: Floats) -> Floats:
    law = np.zeros(profile.R)
    law[profile.support] = visits / visits.sum()
    return law


def _chain(place: Ints, first: Floats, p: Floats, pair: Ints, between: Ints) -> Chain:
    with np.errstate(divide="ignore"):
        return Chain(place, np.log(first), p, np.log(p), pair, np.searchsorted(place, between))
