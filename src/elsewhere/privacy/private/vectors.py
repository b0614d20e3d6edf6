"""
The vector of one person, of norm at most 1 (theorem 2 of docs/promise.md), and the public guess it is measured against.

Blocks: time by place; what differs from it in each part of the day; arrivals by place; moving or staying, and where
moves lead, in the columns of the walk; day statistics; move pairs; where fakes are to live for several days, what the
days of a life have in common. Each block has norm at most 1 and a share of the whole. Everything here but the traces is
public: map, number of slots and of days, constants. The same function describes people and simulated walks or lives, so
what bounding takes away, it takes away from both, and bounds can be tight.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import Floats, Ints, Locations
from elsewhere.errors import InvalidParameter, require_whole
from elsewhere.privacy.private._fit_kernels import DAY, all_steps, vectors
from elsewhere.privacy.private._lives_kernels import HABITS, PARTS, habits
from elsewhere.synthesis.walk._draw_kernels import draw_walks
from elsewhere.synthesis.walk._walk_kernels import (
    ALL_COLUMNS,
    ALL_MOVING,
    COLUMNS,
    DRIFT,
    KINDS,
    LENGTHS,
    MOVING,
    SLOT,
    SLOTS,
    TURN,
    VISITED,
    Tables,
)
from elsewhere.synthesis.walk.habits import geometry, parts_of_day

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NAMES = ("places", "parts", "arrivals", "moving", "destinations", "day", "pairs", "habits")
SHARES = np.array([0.30, 0.24, 0.10, 0.07, 0.07, 0.06, 0.16])  # of the square of a vector's norm; chosen on towns
SHARE_OF_HABITS = 0.06  # where fakes live for several days: of the whole, so that the others have that much less
MOST = np.array([0.4, 0.3, 2.5, 3.0, 3.0, 2.0, 2.5])  # norm at which a block is cut
MOST_HABITS = 2.75
PAIRS = 6
MOST_DAYS = 60  # of a fake life
MOST_PLACES = 2048  # tables of the walk, and its counts, are R x R
MOST_PAIRS = 1_000_000  # cells of noise that move pairs may take; on larger maps they are left out
DECAY = np.array([1.0, 0.6, 0.3, 0.1, 0.03, 0.01, 0.003])  # the public guess of moves by length
PACE = 0.25  # the public guess: one step in four is a move
GUESSED = 200_000  # steps of the guess that are counted
PIECE = 2000  # people at a time


@dataclass(frozen=True, eq=False)
class Design:
    """What is asked of a person on this map with this number of slots: public, the same whoever is in the file."""

    locations: Locations = field(repr=False)
    L: int
    lengths: NDArray[np.int8] = field(repr=False)
    sectors: NDArray[np.int8] = field(repr=False)
    period: Ints = field(repr=False)
    rate: Floats = field(repr=False)
    share: Floats = field(repr=False)
    weight: Floats = field(repr=False)
    days: int = 1  # that a fake lives

    @staticmethod
    def of(locations: Locations, L: int, days: int = 1) -> "Design":
        """Return the design, with the shares of moving and of destinations under the public guess."""
        R = len(locations)
        if not 2 <= R <= MOST_PLACES:
            raise InvalidParameter(
                f"`eps` takes a map of 2 to {MOST_PLACES:,} places, and this one has {R:,}: give "
                + (f"fewer and larger ones, such as a `grid` of {MOST_PLACES:,} cells or fewer." if R > 1 else "more.")
            )
        if L < 2:
            raise InvalidParameter(f"`eps` needs at least 2 slots a day, got {L}.")
        require_whole("days", days, 1, MOST_DAYS)
        if days > 1 and L < PARTS:
            raise InvalidParameter(f"fakes that live for several days need at least {PARTS} slots a day, got {L}.")
        lengths, sectors = geometry(locations)
        shares = SHARES.copy()
        if R * R > MOST_PAIRS:
            shares[PAIRS] = 0.0
        of_habits = SHARE_OF_HABITS if days > 1 else 0.0
        shares = np.append(shares / shares.sum() * (1 - of_habits), of_habits)
        period = np.minimum(np.arange(L) * PARTS // L, PARTS - 1)
        flat = Design(
            locations, L, lengths, sectors, period, np.zeros(MOVING), np.zeros(COLUMNS), np.sqrt(shares), days
        )
        return Design(locations, L, lengths, sectors, period, *flat._guessed(), flat.weight, days)

    def _guessed(self) -> tuple[Floats, Floats]:
        """Return the rate of moves in each column, and the share of destinations in each, under the public guess."""
        walks = np.empty((GUESSED // self.L + 20, self.L), dtype=np.int32)
        rng = np.random.default_rng(0)  # a constant: the guess is the same for everybody
        draw_walks(self.guess(), rng.random((len(walks), 2 * self.L - 1)), walks)
        tally = self.tally(walks)
        rate = (tally[:MOVING] + PACE) / (tally[MOVING : 2 * MOVING] + 1)
        destinations = tally[2 * MOVING :] + 0.5
        share = np.empty(COLUMNS)
        for group in GROUPS:
            share[group] = destinations[group] / destinations[group].sum()
        return rate, share

    def guess(self) -> Tables:
        """Return the walk of the public guess: equal places, near ones first, one pace for all."""
        R = self.R
        steps = DECAY[self.lengths]
        np.fill_diagonal(steps, 0.0)
        moving = np.zeros(MOVING)
        moving[SLOT : SLOT + SLOTS] = np.log(PACE / (1 - PACE))
        return self.tables(np.full(R, 1 / R), steps, np.ones(COLUMNS), moving, np.zeros(R), 1)

    def tables(
        self, first: Floats, steps: Floats, factor: Floats, moving: Floats, leaving: Floats, people: int
    ) -> Tables:
        """Return the tables of a walk on this map, without moves after moves."""
        return Tables(
            first=first,
            places=np.arange(self.R),
            lengths=self.lengths,
            sectors=self.sectors,
            steps=steps,
            pair=np.empty(0, dtype=np.int64),
            start=np.zeros(1, dtype=np.int64),
            onward=np.empty(0, dtype=np.int64),
            onward_factor=np.empty(0),
            factor=np.append(factor, np.ones(ALL_COLUMNS - COLUMNS)),
            moving=np.append(moving, np.zeros(ALL_MOVING - MOVING)),
            leaving=leaving,
            slot=parts_of_day(self.L),
            people=people,
            day_statistics=np.zeros((4, self.L + 1)),
        )

    @property
    def R(self) -> int:
        """Return the number of places."""
        return len(self.locations)

    @cached_property
    def edges(self) -> Ints:
        """Return the first cell of each block, and the number of all."""
        pairs, of_habits = self.R**2 if self.weight[PAIRS] > 0 else 0, HABITS if self.days > 1 else 0
        sizes = [self.R, PARTS * self.R, self.R, MOVING, COLUMNS, DAY, pairs, of_habits]
        return np.concatenate([[0], np.cumsum(sizes)])

    @property
    def cells(self) -> int:
        """Return how many numbers a vector has."""
        return int(self.edges[-1])

    def of_block(self, x: Floats, name: str) -> Floats:
        """Return the block `name` of sums, as if the block had the weight 1."""
        j = NAMES.index(name)
        return np.asarray(x[self.edges[j] : self.edges[j + 1]] / max(self.weight[j], 1e-12))

    def matrix(
        self, r: NDArray[np.integer], start: Ints | None = None, weekend: NDArray[np.bool_] | None = None
    ) -> "csr_array":
        """
        Return the vector of every life, as sparse rows: of days start[i] to start[i + 1], else of one each.

        It is the mean of the vectors of its days; what days have in common is a block beside it. `weekend` says which
        days are Saturdays or Sundays; none of them where it is not given.
        """
        from scipy.sparse import csr_array, hstack

        rows = np.ascontiguousarray(r, dtype=np.int64)
        matrix = self._of_days(rows)
        if start is not None:
            matrix = mean_of(matrix, start)
        if self.days == 1:
            return matrix
        start = np.arange(len(r) + 1) if start is None else start
        more = np.zeros((len(start) - 1, HABITS))
        off = np.zeros(len(r), dtype=bool) if weekend is None else np.asarray(weekend, dtype=bool)
        habits(rows, start, off, self.R, self.period, self.days, self.lengths, more)
        norm = np.sqrt((more**2).sum(axis=1, keepdims=True))
        return csr_array(hstack([matrix, csr_array(self.weight[-1] * more / np.maximum(norm, MOST_HABITS))]))

    def _of_days(self, rows: Ints) -> "csr_array":
        """Return the vector of every day, without habits."""
        from scipy.sparse import csr_array

        n, width = len(rows), (2 + PARTS) * min(self.L, self.R)
        size = n * (width + MOVING + COLUMNS + DAY + self.L - 1)
        pointer, index, value = np.empty(n + 1, dtype=np.int64), np.empty(size, dtype=np.int64), np.empty(size)
        number = vectors(
            rows,
            self.R,
            self.period,
            parts_of_day(self.L),
            self.lengths,
            self.sectors,
            self.rate,
            self.share,
            MOST,
            self.weight,
            pointer,
            index,
            value,
        )
        index, value = index[:number], value[:number]
        if self.weight[PAIRS] == 0:  # no block of move pairs
            kept = index < self.edges[PAIRS]
            pointer = np.concatenate([[0], np.cumsum(kept)])[pointer]
            index, value = index[kept], value[kept]
        return csr_array((value, index, pointer), shape=(n, int(self.edges[PAIRS + 1])))

    def tally(self, walks: NDArray[np.integer]) -> Floats:
        """Return moves by column, steps by column, destinations by column: plain counts of walks."""
        moving, to = np.zeros(MOVING), np.zeros(COLUMNS)
        less, again = np.zeros(MOVING), np.zeros(COLUMNS)
        whole, none = np.ones(MOVING), np.zeros(COLUMNS)
        rows = np.ascontiguousarray(walks, dtype=np.int64)
        all_steps(rows, parts_of_day(self.L), self.lengths, self.sectors, np.zeros(MOVING), none, self.R, moving, to)
        all_steps(rows, parts_of_day(self.L), self.lengths, self.sectors, whole, none, self.R, less, again)
        return np.concatenate([moving, moving - less, to])


def mean_of(rows: "csr_array", start: Ints) -> "csr_array":
    """Return the mean of rows start[i] to start[i + 1], for each i: of vectors no longer than 1, no longer than 1."""
    from scipy.sparse import csr_array

    number = np.diff(start)
    if (number == 1).all():
        return rows
    of = np.repeat(np.arange(len(number)), number)
    return csr_array(csr_array((1 / number[of], np.arange(len(of)), start), shape=(len(number), len(of))) @ rows)


def _groups() -> list[Ints]:
    """Return the columns of destinations of which a move has one: by length, by turn, by drift, by places visited."""
    turns = np.arange(TURN, DRIFT)
    return [
        *(np.arange(k * LENGTHS, (k + 1) * LENGTHS) for k in range(KINDS * 2)),
        *(turns[(turns - TURN) // 2 % 2 == still] for still in (0, 1)),
        np.arange(DRIFT, VISITED),
        np.arange(VISITED, COLUMNS),
    ]


GROUPS = _groups()
