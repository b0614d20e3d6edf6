"""
The tempo of a population, learnt from its own traces, and a maker of fakes that keeps it.

A first-order chain over candidate sets moves at one pace and comes back too often: on PF Tokyo its fakes make 7 moves
to 5 places where people make 10.5 to 11.3, and all at the same rate where people are movers or stayers. So:

- each fake draws a *group*, one of G quantiles of people by their number of moves, regardless of its seed;
- `stay[g, b]` multiplies the odds of staying, after a stay (b = 0) and after a move (b = 1);
- `back[g]` multiplies the odds of returning to a place.

The factors are those under which pilot fakes of the group stay, move and return as often as its people do.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.synthesis.attempt import OK, Attempts, FakeMaker
from elsewhere.synthesis.tempo import _kernels
from elsewhere.traces.model import Floats, Ints, Places

GROUPS = 5
PEOPLE_PER_GROUP = 20
PILOTS = 400
ROUNDS = 10
RARE, OFTEN = 0.005, 0.995  # rates are read between these, so that odds stay finite


@dataclass(frozen=True, eq=False)
class Tempo:
    """Factors on the odds of staying, (G, 2), and of returning, (G,)."""

    stay: Floats
    back: Floats


@dataclass(frozen=True, eq=False)
class TempoMaker:
    """
    A `FakeMaker` whose fakes keep the population's tempo.

    Where the map is too large for the model's tables, attempts are those of the plain maker.
    """

    maker: FakeMaker
    tempo: Tempo

    def attempt(self, seeds: ArrayLike, *, rows: ArrayLike, tries: ArrayLike) -> Attempts:
        """One attempt per row of `seeds`, as `FakeMaker.attempt`."""
        if self.maker.chain is None:
            return self.maker.attempt(seeds, rows=rows, tries=tries)
        r, _, status = _attempt(self.maker, self.tempo, seeds, rows, tries)
        loglik = np.full(len(r), -np.inf)
        made = status == OK
        if made.any():
            loglik[made] = self.maker.model.loglik(r[made], self.maker.tau)
        return Attempts(r, loglik, status)


def _attempt(
    maker: FakeMaker, tempo: Tempo, seeds: ArrayLike, rows: ArrayLike, tries: ArrayLike
) -> tuple[Places, Ints, NDArray[np.int8]]:
    r = np.array(seeds, dtype=np.int32, ndmin=2)
    row, number = (np.array(np.broadcast_to(n, len(r)), dtype=np.uint64) for n in (rows, tries))
    fakes, group, status = np.empty_like(r), np.zeros(len(r), dtype=np.int64), np.empty(len(r), dtype=np.int8)
    _kernels.attempts(
        r, row, number, maker.classes, maker.blur.numbers(), maker.chain, tempo.stay, tempo.back, maker.key, fakes,
        group, status,
    )  # fmt: skip
    return fakes, group, status


def rates(r: Places) -> Floats:
    """
    Share of steps that move after a stay, share that move after a move, share of moves that return; (3,).

    A step from or to a missing instant (-1) is no step.
    """
    known = (r[:, 1:] >= 0) & (r[:, :-1] >= 0)
    moves = (r[:, 1:] != r[:, :-1]) & known
    moved = np.column_stack([np.zeros(len(r), dtype=bool), moves[:, :-1]])
    ordered = np.sort(r, axis=1)
    distinct = np.count_nonzero((ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, 1:] >= 0), axis=1)
    distinct += ordered[:, 0] >= 0
    steps = [known & (moved == b) for b in (False, True)]
    after = [moves[s].mean() if s.any() else 0.5 for s in steps]
    returns = 1 - (distinct - 1).sum() / max(1, moves.sum())
    return np.asarray(np.clip([*after, returns], RARE, OFTEN), dtype=np.float64)


def calibrated(maker: FakeMaker, people: Places, key: NDArray[np.uint64]) -> TempoMaker:
    """
    A maker at the tempo of these people, (N, L) traces on the maker's places, -1 where missing.

    `key` starts the streams of the pilot fakes, which are thrown away.
    """
    G = int(np.clip(len(people) // PEOPLE_PER_GROUP, 1, GROUPS))
    moves = np.count_nonzero((people[:, 1:] != people[:, :-1]) & (people[:, 1:] >= 0) & (people[:, :-1] >= 0), axis=1)
    group_of = np.empty(len(people), dtype=np.int64)
    group_of[np.argsort(moves, kind="stable")] = np.arange(len(people)) * G // len(people)
    goal = np.stack([rates(people[group_of == g]) for g in range(G)])
    tempo = Tempo(np.ones((G, 2)), np.ones(G))
    if maker.chain is None:
        return TempoMaker(maker, tempo)
    pilot = replace(maker, key=key)
    rows = np.arange(PILOTS) % len(people)
    for turn in range(ROUNDS):
        fakes, group, status = _attempt(pilot, tempo, people[rows], rows, np.full(PILOTS, turn))
        step = np.ones((G, 3))
        for g in range(G):
            mine = fakes[(group == g) & (status == OK)]
            if len(mine):
                seen = rates(mine)
                odds = (goal[g] / (1 - goal[g])) / (seen / (1 - seen))
                # more moves wanted: less weight on staying; more returns wanted: more weight on returning
                step[g] = np.clip([1 / odds[0], 1 / odds[1], odds[2]], 0.2, 5) ** 0.8
        tempo = Tempo(np.clip(tempo.stay * step[:, :2], 1e-3, 1e3), np.clip(tempo.back * step[:, 2], 1e-6, 10))
    return TempoMaker(maker, tempo)
