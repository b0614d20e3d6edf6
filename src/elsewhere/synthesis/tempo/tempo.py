"""
The tempo of a population, learnt from its own traces, and a maker of fakes that keeps it.

A first-order chain over candidate sets moves at one pace and comes back too often: on PF Tokyo its fakes make 7 moves
to 5 places where people make 10.5 to 11.3, and all at the same rate where people are movers or stayers. So:

- each fake draws a *group*, one of G quantiles of people by their number of moves, regardless of its seed;
- `stay[g, q, b]` multiplies the odds of staying in part q of the day, after a stay (b = 0) and after a move (b = 1);
- `back[g]` multiplies the odds of returning to a place; a share `home[g]` of the fakes begins where it ends;
- `turn` multiplies the odds of a place by how much the next move turns there, and `far` those of a move by its length.

The factors are those under which pilot fakes of the group stay, move, return, come home, turn and stride as its people
do.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.synthesis.attempt import OK, Attempts, FakeMaker
from elsewhere.synthesis.tempo import _kernels
from elsewhere.traces.model import Floats, Ints, Places

GROUPS = 5
PEOPLE_PER_GROUP = 20
PILOTS = 80  # per group
PARTS, STEPS_PER_PART = 8, 6  # people sleep at night: parts of a trace that have a pace of their own
ROUNDS = 10
LENGTHS = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
RARE, OFTEN = 0.005, 0.995  # rates are read between these, so that odds stay finite


@dataclass(frozen=True, eq=False)
class Tempo:
    """
    Factors on the odds of staying, (G, P, 2), returning, (G,), turning, (2, TURNS), striding, (G, B).

    `share` (G,) is the law of the group, `home` (G,) the share that comes home; `far[g, i]` is the factor of moves
    longer than i of the `bounds`, kilometres.
    """

    share: Floats
    stay: Floats
    back: Floats
    home: Floats
    turn: Floats
    bounds: Floats
    far: Floats

    @staticmethod
    def even(share: Floats, bounds: Floats, parts: int = 1) -> "Tempo":
        """Factors that change nothing."""
        G = len(share)
        turn, far = np.ones((2, _kernels.TURNS)), np.ones((G, len(bounds) + 1))
        return Tempo(share, np.ones((G, parts, 2)), np.ones(G), np.zeros(G), turn, bounds, far)


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
        r, _, status = self.paced(seeds, rows, tries)
        loglik = np.full(len(r), -np.inf)
        made = status == OK
        if made.any():
            loglik[made] = self.maker.model.loglik(r[made], self.maker.tau)
        return Attempts(r, loglik, status)

    def paced(self, seeds: ArrayLike, rows: ArrayLike, tries: ArrayLike) -> tuple[Places, Ints, NDArray[np.int8]]:
        """Fakes, the group whose tempo each keeps, and what came of each attempt."""
        maker, tempo = self.maker, self.tempo
        r = np.array(seeds, dtype=np.int32, ndmin=2)
        row, number = (np.array(np.broadcast_to(n, len(r)), dtype=np.uint64) for n in (rows, tries))
        fakes, group, status = np.empty_like(r), np.zeros(len(r), dtype=np.int64), np.empty(len(r), dtype=np.int8)
        _kernels.attempts(
            r, row, number, maker.classes, maker.blur.numbers(), maker.chain, self.ground,
            (tempo.share, tempo.stay, tempo.back, tempo.home, tempo.turn, tempo.far), maker.key, fakes, group, status,
        )  # fmt: skip
        return fakes, group, status

    @cached_property
    def xy(self) -> Floats:
        """Places in kilometres, (R, 2); (0, 2) without coordinates."""
        where = self.maker.model.locations
        return np.array(where.planar(), dtype=np.float64) if where.has_coordinates else np.zeros((0, 2))

    @cached_property
    def ground(self) -> tuple[NDArray[np.uint8], Floats, Ints]:
        """Number of bounds below each distance, (R, R), where the places are, and the part of the day of each step."""
        R, xy, bounds = self.maker.model.R, self.xy, self.tempo.bounds
        length = np.zeros((R, R), dtype=np.uint8)
        for r in range(R if len(bounds) else 0):
            length[r] = np.searchsorted(bounds, np.sqrt(((xy - xy[r]) ** 2).sum(axis=1)))
        return length, xy, parts_of(len(self.maker.tau), self.tempo.stay.shape[1])


def parts_of(L: int, parts: int) -> Ints:
    """Part of the day of each of L steps; the last, which leads nowhere, is in the last part."""
    return np.minimum(np.arange(L) * parts // max(1, L - 1), parts - 1)


def rates(r: Places, part: Ints | None = None) -> tuple[Floats, float]:
    """
    Share of steps that move, (P, 2), by part of the day, after a stay and after a move; share of moves that return.

    A step from or to a missing instant (-1) is no step. In a part without such steps, the share of all parts.
    """
    part = np.zeros(r.shape[1], dtype=np.int64) if part is None else part
    known = (r[:, 1:] >= 0) & (r[:, :-1] >= 0)
    moves = (r[:, 1:] != r[:, :-1]) & known
    moved = np.column_stack([np.zeros(len(r), dtype=bool), moves[:, :-1]])
    ordered = np.sort(r, axis=1)
    distinct = np.count_nonzero((ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, 1:] >= 0), axis=1)
    distinct += ordered[:, 0] >= 0
    after = np.empty((int(part.max()) + 1, 2))
    for b in (0, 1):
        steps = known & (moved == b)
        usual = moves[steps].mean() if steps.any() else 0.5
        for q in range(len(after)):
            mine = steps & (part[:-1] == q)
            after[q, b] = moves[mine].mean() if mine.any() else usual
    returns = 1 - (distinct - 1).sum() / max(1, moves.sum())
    return np.asarray(np.clip(after, RARE, OFTEN), dtype=np.float64), float(np.clip(returns, RARE, OFTEN))


def comes_home(r: Places) -> float:
    """
    Share of traces that end where they began, of those that know both ends and do not stay there throughout.

    Examples
    --------
    >>> comes_home(np.array([[0, 1, 0], [0, 1, 2], [3, 3, 3], [-1, 0, 1]]))
    0.5

    """
    moved = (r[:, 0] >= 0) & (r[:, -1] >= 0) & np.any((r != r[:, :1]) & (r >= 0), axis=1)
    return float(np.mean(r[moved, 0] == r[moved, -1])) if moved.any() else 0.0


def calibrated(maker: FakeMaker, people: Places, key: NDArray[np.uint64]) -> TempoMaker:
    """
    A maker at the tempo of these people, (N, L) traces on the maker's places, -1 where missing.

    `key` starts the streams of the pilot fakes, which are thrown away.
    """
    group_of = _groups(people, maker)
    share = np.bincount(group_of) / len(people)
    G = len(share)
    parts = max(1, min(PARTS, people.shape[1] // STEPS_PER_PART))
    home = np.array([comes_home(people[group_of == g]) for g in range(G)])
    tempo = replace(Tempo.even(share, _bounds(people, maker), parts), home=home)
    paced = TempoMaker(maker, tempo)
    if maker.chain is None:
        return paced
    ground, xy = paced.ground, paced.xy
    part = ground[2]
    goal = [rates(people[group_of == g], part) for g in range(G)]
    turns = _turns(people, xy)
    lengths = np.stack([_lengths(people[group_of == g], xy, tempo.bounds) for g in range(G)])
    pilots = PILOTS * G
    rows = np.arange(pilots) % len(people)
    pilot = replace(maker, key=key)
    pilot.__dict__["chain"] = maker.chain  # the tables are the same under any key
    for turn in range(ROUNDS):
        paced = TempoMaker(pilot, tempo)
        paced.__dict__["ground"] = ground
        fakes, group, status = paced.paced(people[rows], rows, np.full(pilots, turn))
        # more moves wanted: less weight on staying; more returns wanted: more weight on returning
        stay, back, far = tempo.stay.copy(), tempo.back.copy(), tempo.far.copy()
        for g in range(G):
            mine = fakes[(group == g) & (status == OK)]
            if len(mine):
                moving, returning = rates(mine, part)
                stay[g] /= _toward(goal[g][0], moving)
                back[g] *= _toward(goal[g][1], returning)
                far[g] = _nearer(far[g], lengths[g], _lengths(mine, xy, tempo.bounds))
        made = fakes[status == OK]
        tempo = Tempo(
            share,
            np.clip(stay, 1e-3, 1e3),
            np.clip(back, 1e-6, 10),
            home,
            _nearer(tempo.turn, turns, _turns(made, xy)),
            tempo.bounds,
            far,
        )
    paced = TempoMaker(maker, tempo)
    paced.__dict__["ground"] = ground
    return paced


def _groups(people: Places, maker: FakeMaker) -> Ints:
    """Group 0 .. G-1 of each trace: those without a long move and those with one, each by quantiles of moves."""
    moves = np.count_nonzero((people[:, 1:] != people[:, :-1]) & (people[:, 1:] >= 0) & (people[:, :-1] >= 0), axis=1)
    far = np.zeros(len(people), dtype=bool)
    bounds = _bounds(people, maker)
    if len(bounds) > 1:
        xy = np.asarray(maker.model.locations.planar(), dtype=np.float64)
        far = np.array([_steps(row[None], xy).max(initial=0.0) > bounds[len(bounds) // 2] for row in people])
    group, G = np.empty(len(people), dtype=np.int64), 0
    for kind in (~far, far):
        rows = np.flatnonzero(kind)
        n = min(len(rows) // PEOPLE_PER_GROUP, GROUPS)
        if n == 0 and G == 0:
            n = 1 if len(rows) else 0
        # too few to be a kind of their own: with the last group
        at = np.arange(len(rows)) * n // max(1, len(rows)) + G if n else np.full(len(rows), max(G - 1, 0))
        group[rows[np.argsort(moves[rows], kind="stable")]] = at
        G += n
    return group


def _toward(goal: ArrayLike, seen: ArrayLike) -> Floats:
    """A step of the factor on odds under which a share `seen` becomes `goal`."""
    a, b = np.asarray(goal, dtype=np.float64), np.asarray(seen, dtype=np.float64)
    return np.asarray(np.clip((a / (1 - a)) / (b / (1 - b)), 0.2, 5) ** 0.8)


def _nearer(factor: Floats, goal: Floats, seen: Floats) -> Floats:
    """Factors one step nearer to those under which shares `seen` become `goal`; the largest of a row is 1."""
    better = np.clip(factor * np.clip(goal / seen, 0.2, 5) ** 0.8, 1e-4, 1e4)
    return np.asarray(np.maximum(better / better.max(axis=-1, keepdims=True), 1e-4))


def _turns(r: Places, xy: Floats) -> Floats:
    """Share of turns by bin, (2, TURNS), every bin met once more than it was."""
    out = np.ones((2, _kernels.TURNS))
    if len(xy):
        _kernels.bends(r, xy, out)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def _steps(r: Places, xy: Floats) -> Floats:
    """Lengths of all moves."""
    moves = (r[:, 1:] != r[:, :-1]) & (r[:, 1:] >= 0) & (r[:, :-1] >= 0)
    return np.asarray(np.sqrt(((xy[r[:, 1:][moves]] - xy[r[:, :-1][moves]]) ** 2).sum(axis=1)))


def _lengths(r: Places, xy: Floats, bounds: Floats) -> Floats:
    """Share of moves by length, (len(bounds) + 1,), every length met once more than it was."""
    found = np.ones(len(bounds) + 1)
    if len(xy):
        found += np.bincount(np.searchsorted(bounds, _steps(r, xy)), minlength=len(found))
    return np.asarray(found / found.sum())


def _bounds(people: Places, maker: FakeMaker) -> Floats:
    """Lengths that part the people's moves: quantiles that differ by a tenth at least."""
    where = maker.model.locations
    if not where.has_coordinates:
        return np.zeros(0)
    steps = _steps(people, np.asarray(where.planar(), dtype=np.float64))
    if len(steps) == 0:
        return np.zeros(0)
    bounds: list[float] = []
    for bound in np.quantile(steps, LENGTHS) * 1.05:
        if not bounds or bound > 1.1 * bounds[-1]:
            bounds.append(float(bound))
    return np.array(bounds)
