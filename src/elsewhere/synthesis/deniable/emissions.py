"""
Soft emissions e_t(r|s): how much a seed s speaks for place r at instant t, positive for every r.

    e_t(r|s) = ( eta + (1 - eta) q_t(r|s) )^lambda,   0 < eta < 1,  0 <= lambda <= 1     (READINGS section 11)

For every kind of emission, q depends on r only through its class, save at the seed's own place. So an emission is a
table over (instant, column of r, code), where all seeds of one code share it:

- "window": q is the probability that r is in semseed(t), in closed form (section 12); every seed is a code of its own;
- "archetypes": q is how likely people of the seed's group are to be in the class of r at t; the groups are learnt from
  MODEL users, and a seed speaks only through the number of its nearest group;
- "allotted": a seed speaks through its group again, by a table over places that keeps the population where it is
  (`allotment`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter, require_between
from elsewhere.synthesis.deniable._kernels import fill_window
from elsewhere.synthesis.deniable.archetypes import Archetypes
from elsewhere.traces.model import Floats, Ints, Places


@dataclass(frozen=True, eq=False)
class Emissions:
    """
    ln e_t(r|s) as tables: code `code[s]` of seed s, column `column[r]` of place r, mostly its class.

    `log_e[t, c, a]` for code a, places of no class (-1) in the last column; where `place[t, a]` is not -1, that one
    place has `log_e_own[t, a]` instead.
    """

    code: Ints
    log_e: Floats
    place: Places
    log_e_own: Floats
    column: NDArray[np.integer]

    @property
    def n_codes(self) -> int:
        """Number of different emissions among the seeds."""
        return int(self.log_e.shape[2])


def window_emissions(
    seeds: Places, label: NDArray[np.integer], *, eta: float, lam: float, par_c: float, par_m: float, par_l: float
) -> Emissions:
    """
    The emissions of the paper's own semantic seed: q_t(r|s) = Pr{r in semseed(t)}, E38-E42.

    Runs of one class end at t_p before t and begin at t_n after it: a place of the run's class is there with
    (1 - par_c)(1 - par_l 1[r = seed(t)]), a place of a neighbouring run's class if its reach G is long enough,
    P(G >= d) = par_m^d. An instant of unknown class (or a missing one) carries no evidence: its emission is flat.
    """
    S, L = seeds.shape
    kappa = int(label.max()) + 1
    classes = np.where(seeds >= 0, label[seeds], -1)
    # the one large table, L (kappa + 1) S numbers: what follows works in its place
    log_e = np.zeros((L, kappa + 1, S))
    fill_window(classes, 1 - par_c, par_m, log_e)
    log_e_own = np.full((L, S), (1 - par_c) * (1 - par_l))
    flat = classes.T < 0
    for table in (log_e, log_e_own):
        table *= 1 - eta
        table += eta
        np.log(table, out=table)
        table *= lam
    for t in range(L):
        log_e[t][:, flat[t]] = 0.0
    log_e_own[flat] = 0.0
    place = np.where(flat, -1, seeds.T).astype(np.int32)
    return Emissions(np.arange(S), log_e, place, log_e_own, label)


def archetype_emissions(
    seeds: Places, label: NDArray[np.integer], archetypes: Archetypes, *, eta: float, lam: float
) -> Emissions:
    """e_t(r|s) from the class-by-slot shares of the seed's nearest group, relative to the likeliest class at t."""
    require_between("eta", eta, 0, 1, open_low=True, open_high=True)
    code = codes_of(seeds, label, archetypes)
    q = archetypes.share / archetypes.share.max(axis=2, keepdims=True)
    q = np.concatenate([q, np.zeros((*q.shape[:2], 1))], axis=2)
    log_e = lam * np.log(eta + (1 - eta) * q)
    return Emissions(code, log_e.transpose(1, 2, 0).copy(), *_no_own_place(archetypes), label)


def allotted_emissions(
    seeds: Places, label: NDArray[np.integer], archetypes: Archetypes, e: Floats, *, lam: float
) -> Emissions:
    """e_t(r|s) from the table (A, L, R) of `allotment`, by the seed's group."""
    code = codes_of(seeds, label, archetypes)
    log_e = np.ascontiguousarray(lam * np.log(e).transpose(1, 2, 0))
    return Emissions(code, log_e, *_no_own_place(archetypes), np.arange(len(label)))


def codes_of(seeds: Places, label: NDArray[np.integer], archetypes: Archetypes) -> Ints:
    """The group of each seed; what the groups were not learnt for is refused."""
    L, kappa = archetypes.share.shape[1:]
    if seeds.shape[1] != L or int(label.max()) + 1 > kappa:
        raise InvalidParameter(
            f"`archetypes` were learnt for {L} instants and {kappa} classes; the seeds have {seeds.shape[1]} and "
            f"{int(label.max()) + 1} classes.",
            code="E_MISMATCH",
        )
    return archetypes.nearest(np.where(seeds >= 0, label[seeds], -1))


def _no_own_place(archetypes: Archetypes) -> tuple[Places, Floats]:
    A, L = archetypes.share.shape[:2]
    return np.full((L, A), -1, dtype=np.int32), np.zeros((L, A))
