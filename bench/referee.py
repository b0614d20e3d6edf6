"""
The published referee of PF Tokyo: utility and privacy figures as PPMTF computes them (Murakami et al., PoPETs 2021).

So that a row of ours stands beside the rows that were published. Fakes come in datasets of one fake per seed, as many
as a seed has fakes; utility figures are means over the datasets.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.data.slots import Traces
from elsewhere.data.visits import Floats, Ints, Locations
from elsewhere.errors import InvalidParameter, require_whole
from elsewhere.evaluation.attack_base import Lives, find_in
from elsewhere.evaluation.attack_linkage import UNSEEN, chains
from elsewhere.evaluation.attack_membership import likelihood_ratio
from elsewhere.evaluation.sides import number_within, on_one_map, seed_numbers

TOP = 50
THRESHOLDS = 1000

Table = Traces | ArrayLike


def hold_places(r: ArrayLike) -> Ints:
    """
    Return the rows with every missing slot (-1) at the last known place, or at the first one before it is known.

    Rows without any place stay as they are.
    """
    places = np.asarray(r, dtype=np.int64)
    if places.min(initial=0) >= 0:
        return places
    known = places >= 0
    last = np.maximum.accumulate(np.where(known, np.arange(places.shape[1]), -1), axis=1)
    last = np.where(last < 0, known.argmax(axis=1)[:, None], last)
    return np.take_along_axis(places, last, axis=1)


class Membership(NamedTuple):
    """Accuracy and advantage of the referee's membership attack, each at its best threshold on the evaluated data."""

    accuracy: float
    advantage: float


def tp_tv(fakes: Table, holdout: Table, *, seed_index: ArrayLike | None = None, top: int | None = None) -> float:
    """
    Return TP-TV, the mean over slots of the total variation between the places of fakes and of hold-out people.

    Parameters
    ----------
    fakes, holdout
        `Traces` or plain (N, L) arrays of places.
    seed_index
        (F,) seed row of each fake; by default all fakes are one dataset.
    top
        Only the most popular places of the hold-out people at each slot (the referee's `TOP` = 50). Places tied for
        the last rank share it, where the referee takes those that its sort happens to put first.

    """
    sides, R, number = _tables(fakes, holdout, seed_index)
    real = _by_instant(sides["holdout"], R)
    weight = np.ones_like(real) if top is None else _popular(real, require_whole("top", top, 1))
    apart = [weight * np.abs(real - _by_instant(sides["fakes"][number == i], R)) for i in range(number.max() + 1)]
    return float(np.mean([a.sum(axis=1).mean() / 2 for a in apart]))


def tm_emd(fakes: Table, holdout: Table, axis: ArrayLike, *, seed_index: ArrayLike | None = None) -> float:
    """
    Return TM-EMD, the mean over places of the earth mover's distance between the next places of fakes and of hold-out
    people.

    Places are seen along one axis, in cells; a place that nobody leaves leads to itself.

    Parameters
    ----------
    fakes, holdout, seed_index
        As in `tp_tv`.
    axis
        (R,) whole number of each place along the axis.

    """
    cell = np.asarray(axis)
    if cell.ndim != 1 or cell.size == 0 or cell.dtype.kind not in "iu" or cell.min() < 0:
        raise InvalidParameter("`axis` must hold one whole number per place, at least 0.")
    sides, _, number = _tables(fakes, holdout, seed_index, R=len(cell))
    real = _next_cells(sides["holdout"], cell)
    # on a line the distance is the area between the two distribution functions
    others = [_next_cells(sides["fakes"][number == i], cell) for i in range(number.max() + 1)]
    return float(np.mean([np.abs(np.cumsum(real - other, axis=1)).sum(axis=1).mean() for other in others]))


def reidentification_rate(seeds: Table, fakes: Table, seed_index: ArrayLike) -> float:
    """
    Return the share of the fakes whose seed user is the first maximum of sum_t ln p(u)(f(t), f(t+1)), see A2.
    """
    sides = on_one_map({"seeds": seeds, "fakes": fakes})
    rows = seed_numbers(seed_index, len(sides["fakes"]), len(sides["seeds"]))
    fakes_of, people = _lives(sides["fakes"]), _lives(sides["seeds"])
    user, step, p = chains(people)
    steps, number = np.unique(step, return_inverse=True)
    table = np.full((len(steps) + 1, len(people)), math.log(UNSEEN))
    table[number, user] = [math.log(x) for x in p.tolist()]
    score = np.zeros((len(fakes_of), len(people)))
    for t in range(fakes_of.r.shape[1] - 1):  # slot by slot, so that near-ties fall as in the referee
        score += table[find_in(steps, fakes_of.r[:, t] * people.R + fakes_of.r[:, t + 1])]
    return float((score.argmax(axis=1) == rows).mean())


def membership_rates(seeds: Table, holdout: Table, fakes: Table, seed_index: ArrayLike) -> Membership:
    """
    Run the referee's likelihood-ratio membership attack: optimistic for the attacker, since the threshold is the best
    one.

    As in the referee, a trace runs on into the next one of its seed. A3 resets, and calibrates with walks.

    """
    sides = on_one_map({"seeds": seeds, "holdout": holdout, "fakes": fakes})
    owner = seed_numbers(seed_index, len(sides["fakes"]), len(sides["seeds"]))
    members, strangers = _lives(sides["seeds"]), _lives(sides["holdout"])
    order = np.argsort(owner, kind="stable")
    follows = owner[order][1:] == owner[order][:-1]
    r = hold_places(sides["fakes"].r)
    before = np.full(len(order), -1)  # the last place of the trace before
    before[order[1:][follows]] = r[order[:-1][follows], -1]
    lives = Lives.of_slots(np.column_stack([before, r]), sides["fakes"].locations)
    number, people = number_within(owner), members.join(strangers)
    ratio = np.array([likelihood_ratio(people, lives.of(np.flatnonzero(number == i))) for i in range(number.max() + 1)])
    low, high = ratio.min(axis=1).max(), ratio.max()
    level = low + (high - low) * np.arange(THRESHOLDS) / THRESHOLDS
    U, H = len(members), len(strangers)
    alarm, false_alarm = (
        np.array([(side > threshold).mean() for threshold in level]) for side in (ratio[:, :U], ratio[:, U:])
    )
    accuracy = (alarm * U + (1 - false_alarm) * H) / (U + H)
    return Membership(float(accuracy.max()), float((alarm - false_alarm).max()))


def _lives(traces: Traces) -> Lives:
    """Return a life per row, gaps filled."""
    return Lives.of_slots(hold_places(traces.r), traces.locations, traces.step_minutes)


def _tables(
    fakes: Table, holdout: Table, seed_index: ArrayLike | None, R: int | None = None
) -> tuple[dict[str, Ints], int, Ints]:
    """Return both tables without gaps, the number of places, and the dataset of each fake."""
    where = None
    if R is not None and not any(isinstance(t, Traces) for t in (fakes, holdout)):
        where = Locations(n=R)
    sides = on_one_map({"fakes": fakes, "holdout": holdout}, where)
    if R is not None and sides["fakes"].R != R:
        raise InvalidParameter(f"`axis` must hold {sides['fakes'].R} whole numbers, one per place, got {R}.")
    F = len(sides["fakes"])
    number = np.zeros(F, dtype=np.int64) if seed_index is None else number_within(np.asarray(seed_index))
    return {name: hold_places(t.r) for name, t in sides.items()}, sides["fakes"].R, number


def _by_instant(r: Ints, R: int) -> Floats:
    """Return the share of each place at each slot, (L, R)."""
    share = np.zeros((r.shape[1], R))
    np.add.at(share, (np.arange(r.shape[1]), r), 1 / len(r))
    return share


def _popular(share: Floats, top: int) -> Floats:
    """Return weight 1 for the `top` largest entries of each row, shared among those tied for the last rank."""
    top = min(top, share.shape[1])
    last = -np.partition(-share, top - 1, axis=1)[:, top - 1 : top]
    # equal counts, not equal sums of rounded shares
    tied = np.isclose(share, last, rtol=1e-9, atol=0)
    above = (share > last) & ~tied
    return np.asarray(above + tied * ((top - above.sum(axis=1)) / tied.sum(axis=1))[:, None], dtype=np.float64)


def _next_cells(r: Ints, cell: Ints) -> Floats:
    """Return the law of the next cell from every place, (R, cells); a place that nobody leaves leads to itself."""
    R = len(cell)
    table = np.zeros((R, int(cell.max()) + 1))
    np.add.at(table, (r[:, :-1].ravel(), cell[r[:, 1:].ravel()]), 1.0)
    leaving = table.sum(axis=1)
    table[np.arange(R)[leaving == 0], cell[leaving == 0]] = 1.0
    return table / np.where(leaving > 0, leaving, 1.0)[:, None]
