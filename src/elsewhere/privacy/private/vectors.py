"""
The vector of one person, of norm at most 1 (theorem 2 of docs/promise.md), and the public guess it is measured against.

Blocks: time by place; what differs from it in each part of the day; arrivals by place; moving or staying, and where
moves lead, in the columns of the walk; day statistics; move pairs. Each block has norm at most 1 and a share of the
whole. Everything here but the traces is public: map, number of slots, constants. The same function describes people
and simulated walks, so what bounding takes away, it takes away from both, and bounds can be tight.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter
from elsewhere.privacy.private._fit_kernels import DAY, all_steps, vectors
from elsewhere.synthesis.walk._walk_kernels import (
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
    stroll,
)
from elsewhere.synthesis.walk.habits import geometry, slots
from elsewhere.traces.model import Floats, Ints, Locations

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NAMES = ("places", "parts", "arrivals", "moving", "destinations", "day", "pairs")
SHARES = np.array([0.30, 0.24, 0.10, 0.07, 0.07, 0.06, 0.16])  # of the square of a vector's norm; chosen on towns
MOST = np.array([0.4, 0.3, 2.5, 3.0, 3.0, 2.0, 2.5])  # norm at which a block is cut
PARTS = 4  # of the day, in which visits are counted
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

    @staticmethod
    def of(locations: Locations, L: int) -> "Design":
        """Return the design, with the shares of moving and of destinations under the public guess."""
        R = len(locations)
        if not 2 <= R <= MOST_PLACES:
            raise InvalidParameter(
                f'preset "private" needs a map of 2 to {MOST_PLACES:,} places, got {R:,}; give another one.'
            )
        if L < 2:
            raise InvalidParameter(f'preset "private" needs at least 2 slots a day, got {L}.')
        lengths, sectors = geometry(locations)
        shares = SHARES.copy()
        if R * R > MOST_PAIRS:
            shares[-1] = 0.0
        period = np.minimum(np.arange(L) * PARTS // L, PARTS - 1)
        flat = Design(
            locations, L, lengths, sectors, period, np.zeros(MOVING), np.zeros(COLUMNS), np.sqrt(shares / shares.sum())
        )
        return Design(locations, L, lengths, sectors, period, *flat._guessed(), flat.weight)

    def _guessed(self) -> tuple[Floats, Floats]:
        """Return the rate of moves in each column, and the share of destinations in each, under the public guess."""
        walks = np.empty((GUESSED // self.L + 20, self.L), dtype=np.int32)
        rng = np.random.default_rng(0)  # a constant: the guess is the same for everybody
        stroll(self.guess(), rng.random((len(walks), 2 * self.L - 1)), walks)
        tally = self.tally(walks)
        rate = (tally[:MOVING] + PACE) / (tally[MOVING : 2 * MOVING] + 1)
        chosen = tally[2 * MOVING :] + 0.5
        share = np.empty(COLUMNS)
        for group in GROUPS:
            share[group] = chosen[group] / chosen[group].sum()
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
            factor=factor,
            moving=moving,
            leaving=leaving,
            slot=slots(self.L),
            people=people,
            lives=np.zeros((4, self.L + 1)),
        )

    @property
    def R(self) -> int:
        """Number of places."""
        return len(self.locations)

    @cached_property
    def edges(self) -> Ints:
        """First cell of each block, and the number of all."""
        sizes = [self.R, PARTS * self.R, self.R, MOVING, COLUMNS, DAY, self.R**2 if self.weight[-1] > 0 else 0]
        return np.concatenate([[0], np.cumsum(sizes)])

    @property
    def cells(self) -> int:
        """Numbers in a vector."""
        return int(self.edges[-1])

    def of_block(self, x: Floats, name: str, power: int = 1) -> Floats:
        """Return the block `name` of sums (of sums of squares: `power` 2), as if the block had the weight 1."""
        j = NAMES.index(name)
        return np.asarray(x[self.edges[j] : self.edges[j + 1]] / max(self.weight[j], 1e-12) ** power)

    def matrix(self, r: NDArray[np.integer], start: Ints | None = None) -> "csr_array":
        """Return the vector of every person, as sparse rows: of traces start[i] to start[i + 1], else of one each."""
        from scipy.sparse import csr_array

        start = np.arange(len(r) + 1) if start is None else start
        n, days = len(start) - 1, np.diff(start)
        width = (2 + PARTS) * np.minimum(days * self.L, self.R)
        size = int((width + MOVING + COLUMNS + DAY + days * (self.L - 1)).sum())
        pointer, index, value = np.empty(n + 1, dtype=np.int64), np.empty(size, dtype=np.int64), np.empty(size)
        used = vectors(
            np.ascontiguousarray(r, dtype=np.int64),
            start,
            self.R,
            self.period,
            slots(self.L),
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
        index, value = index[:used], value[:used]
        if self.weight[-1] == 0:  # no block of move pairs
            kept = index < self.cells
            pointer = np.concatenate([[0], np.cumsum(kept)])[pointer]
            index, value = index[kept], value[kept]
        return csr_array((value, index, pointer), shape=(n, self.cells))

    def tally(self, walks: NDArray[np.integer]) -> Floats:
        """Return moves by column, steps by column, destinations by column: plain counts of walks."""
        moved, to = np.zeros(MOVING), np.zeros(COLUMNS)
        less, again = np.zeros(MOVING), np.zeros(COLUMNS)
        whole, none = np.ones(MOVING), np.zeros(COLUMNS)
        rows = np.ascontiguousarray(walks, dtype=np.int64)
        all_steps(rows, slots(self.L), self.lengths, self.sectors, np.zeros(MOVING), none, self.R, moved, to)
        all_steps(rows, slots(self.L), self.lengths, self.sectors, whole, none, self.R, less, again)
        return np.concatenate([moved, moved - less, to])


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
