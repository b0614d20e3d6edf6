"""
Archetypes: groups of MODEL users by where, in terms of classes, they are at each slot. A seed's code is its group.

All that a release takes from its seeds is how many are of each archetype, with noise. So the groups are chosen for what
their number says: how much likelier than anybody's a member's class at t is the group's own. All groups are kept near
one size, so that the noise of no count drowns it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter, NotEnoughUsers, require_whole
from elsewhere.scale import one_thread
from elsewhere.traces.model import Floats, Ints

MOST_USERS = 4000  # to learn groups from
STARTS, TURNS = 8, 25
PRICES = 300  # steps towards sizes between the bounds
SMALLEST, LARGEST = 0.88, 1.3  # of an equal share: bounds of the size of a group


@dataclass(frozen=True, eq=False)
class Archetypes:
    """
    Groups with their class-by-slot shares `share[a, t, c]` and their part `size[a]` of the people.

    The code of a person is the group a with the largest sum over t of `score[a, t, class at t]`, on average over their
    days, minus `price[a]`, fixed before any seed is seen: all seeds of one group share one law.
    """

    share: Floats
    score: Floats
    price: Floats
    size: Floats

    def __post_init__(self) -> None:
        if self.share.ndim != 3 or not np.allclose(self.share.sum(axis=2), 1) or self.share.min() < 0:
            raise InvalidParameter(
                "`archetypes` must be an array (groups, slots, classes) whose last axis sums to 1.", code="E_SHAPE"
            )

    def nearest(self, classes: NDArray[np.integer], user: NDArray[np.integer] | None = None) -> Ints:
        """
        Return the group of each user of (S, L) class sequences, in order of `user`; None: every row is another's.

        Unknown slots (-1) say nothing; of whom nothing at all is known the group is -1.
        """
        total, known = scores(classes, self.score), (classes >= 0).any(axis=1)
        if user is not None:
            U = int(np.max(user, initial=-1)) + 1
            days = np.maximum(1, np.bincount(user[known], minlength=U))
            mine = np.zeros((U, total.shape[1]))
            np.add.at(mine, user[known], total[known])
            total, known = mine / days[:, None], np.bincount(user[known], minlength=U) > 0
        return np.where(known, np.argmax(total - self.price, axis=1), -1)


def scores(classes: NDArray[np.integer], table: Floats) -> Floats:
    """Return (S, A) the sum over slots of `table[a, t, class at t]`."""
    total = np.zeros((len(classes), len(table)))
    for t in range(classes.shape[1]):
        total += np.where(classes[:, t, None] >= 0, table[:, t].T[np.maximum(classes[:, t], 0)], 0.0)
    return total


def learn_archetypes(
    classes: NDArray[np.integer],
    kappa: int,
    n: int,
    *,
    user: NDArray[np.integer] | None = None,
    m_min: int = 1,
    rng: np.random.Generator,
) -> Archetypes:
    """
    Learn `n` groups of the (N, L) class sequences of MODEL users.

    Each group has one class per slot, the one that sets it apart most, and takes the people who agree with these
    beyond what anybody would, at prices that keep all groups near one size; the best of several starts by expected
    agreement.

    With `m_min` above 1 the groups may stand in a model file: each has so many users, no part of them that is in a
    class at t is fewer (`_counted`), and all else is made of these parts; `NotEnoughUsers` where no such groups are
    found. `user` says whose each row is, None that every row is another's.
    """
    require_whole("n", n, 1)
    who = np.arange(len(classes)) if user is None else np.asarray(user)
    if len(classes) > MOST_USERS:
        rows = np.sort(rng.permutation(len(classes))[:MOST_USERS])
        classes, who = classes[rows], who[rows]
    N, L = classes.shape
    n = min(n, N)
    indicator = np.zeros((N, L, kappa))
    rows, slots = np.nonzero(classes >= 0)
    indicator[rows, slots, classes[rows, slots]] = 1
    with one_thread():  # sums in one order on every machine (R5); tables this small gain nothing by threads
        return _modes(indicator, classes, n, who, m_min, rng)


def _modes(
    indicator: Floats,
    classes: NDArray[np.integer],
    n: int,
    who: NDArray[np.integer],
    m_min: int,
    rng: np.random.Generator,
) -> Archetypes:
    N, overall = len(classes), _of_all(indicator, who, m_min)
    best, best_groups = -np.inf, None
    for _ in range(STARTS):
        group = scores(classes, indicator[rng.permutation(N)[:n]]).argmax(axis=1)
        for _ in range(TURNS):
            table = _set_apart(_shares(indicator, group, n, who, overall, m_min), overall)
            price, again = _priced(scores(classes, table), n)
            if np.array_equal(again, group):
                break
            group = again
        if m_min > 1 and _least_users(group, who, n) < m_min:
            continue
        share = _shares(indicator, group, n, who, overall, m_min)
        size = np.bincount(group, minlength=n) / N
        gain = float(size @ (share - overall).max(axis=2).mean(axis=1))
        if gain > best:
            best, best_groups = gain, Archetypes(share, table, price, size)
    if best_groups is None:
        raise _too_few(n, m_min)
    return best_groups


def _too_few(n: int, m_min: int) -> NotEnoughUsers:
    return NotEnoughUsers(f"no {n} groups of at least `m_min` = {m_min} users each are found; take fewer groups.")


def _least_users(group: Ints, who: NDArray[np.integer], n: int) -> int:
    """Return the number of users of the smallest of the groups."""
    return int(np.bincount(np.unique(np.column_stack([group, who]), axis=0)[:, 0], minlength=n).min())


def _of_all(indicator: Floats, who: NDArray[np.integer], m_min: int) -> Floats:
    """Return (L, C) the part of all rows in each class at t."""
    everybody = np.zeros(len(indicator), dtype=np.int64)
    return np.asarray(_counted(indicator, everybody, 1, who, np.ones(indicator.shape[1:]), m_min)[0] / len(indicator))


def _shares(indicator: Floats, group: Ints, n: int, who: NDArray[np.integer], overall: Floats, m_min: int) -> Floats:
    overall = overall + 1 / indicator.shape[2] / len(indicator)
    share = _counted(indicator, group, n, who, overall, m_min) + overall
    return np.asarray(share / share.sum(axis=2, keepdims=True))


def _counted(indicator: Floats, group: Ints, n: int, who: NDArray[np.integer], overall: Floats, m_min: int) -> Floats:
    """
    Count (n, L, C) the rows of each group in each class at t; those of classes with fewer than `m_min` of its users are
    together.

    If they are so many users together, they are shared out among these classes as `overall` says, else left out.
    """
    count = _summed(indicator, group, n)
    if m_min == 1:
        return count
    there, of = indicator, group  # of each user in each group
    both = who * n + group
    order = np.argsort(both, kind="stable")
    start = np.unique(both[order], return_index=True)[1]
    if len(start) < len(both):
        there, of = np.maximum.reduceat(indicator[order], start, axis=0), group[order][start]
    lost = _summed(there, of, n) < m_min
    enough = _summed((there * lost[of]).max(axis=2, keepdims=True), of, n) >= m_min
    spread = overall * lost
    spread /= np.maximum(spread.sum(axis=2, keepdims=True), 1e-300)
    return np.asarray(count * ~lost + (count * lost).sum(axis=2, keepdims=True) * enough * spread)


def _summed(table: Floats, group: Ints, n: int) -> Floats:
    """Sum the rows of each group."""
    member = (np.arange(n)[:, None] == group).astype(np.float64)
    return np.asarray((member @ table.reshape(len(table), -1)).reshape(n, *table.shape[1:]))


def _set_apart(share: Floats, overall: Floats) -> Floats:
    """
    Return 1 for the class that sets a group apart at t, 0 for others, minus how many of all people are in that
    class.
    """
    mode = (share - overall).argmax(axis=2)[:, :, None]
    table = np.zeros_like(share)
    np.put_along_axis(table, mode, 1.0, axis=2)
    return table - np.take_along_axis(np.broadcast_to(overall, share.shape), mode, axis=2)


def _priced(total: Floats, n: int) -> tuple[Floats, Ints]:
    """Find prices under which no group is much smaller or larger than N / n, and the groups at these prices."""
    N = len(total)
    low, high = SMALLEST * N / n, LARGEST * N / n
    price, step = np.zeros(n), total.std() / 2
    group = total.argmax(axis=1)
    for _ in range(PRICES):
        size = np.bincount(group, minlength=n)
        if size.min() >= low and size.max() <= high:
            break
        price = price + step * (np.maximum(size - high, 0) - np.maximum(low - size, 0)) / N
        step *= 0.995
        group = (total - price).argmax(axis=1)
    return price, group
