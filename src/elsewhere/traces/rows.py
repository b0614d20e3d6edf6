"""
A table whose columns have a meaning, and which of its rows are kept.

Rows that cannot be read are dropped and counted by reason; more than `max_bad` of them refuse the file. Messages
say how many, the first line and the code.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elsewhere.traces.clock import Times, WallClock
from elsewhere.traces.fixes import Preparation
from elsewhere.traces.tables import TABLES, Table

EARLIEST = np.datetime64("2000-01-01", "us")
REASONS = {
    "E_CSV": "have more or fewer fields than the first line",
    "E_USER": "have no user id",
    "E_DATE": "have no readable time, one before 2000 or in the future (`any_date`), or leave before they arrive",
    "E_NUMBER": "have numbers that cannot be read",
    "E_OUTSIDE": "lie outside the globe",
    "E_INDEX": "have no place",
}
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Shape:
    """
    A table, what its columns mean, and how it is to be read.

    `chosen` are the roles the caller named himself. `box` is the map, (south, west, north, east). Times from 2000 to
    `latest` are believed; all of them if it is None.
    """

    table: Table
    roles: Mapping[str, str]
    tz: str | None = None
    date_format: str | None = None
    max_bad: float = 0.01
    chosen: frozenset[str] = frozenset()
    box: tuple[float, float, float, float] | None = None
    lon360: bool = False
    latest: np.datetime64 | None = None

    def require(self, *alternatives: str) -> None:
        """Refuse a table that has none of these roles."""
        if not any(role in self.roles for role in alternatives):
            wanted = " or ".join(f"`{role}`" for role in alternatives)
            raise self.table.refuse(
                f"no column for {wanted}; name it with `columns`, {alternatives[0]}=NAME.", "E_COLUMN"
            )

    def odd_times(self, wall: Times) -> Mask:
        """Rows without a time, or with one that no trace is from (B31)."""
        odd = np.isnat(wall)
        if self.latest is not None:
            odd |= (wall < EARLIEST) | (wall > self.latest)
        return odd

    def keep(self, faults: Mapping[str, Mask]) -> tuple[Mask, dict[str, int]]:
        """The rows without a fault, and how many are dropped for each; refused if too many are (B21)."""
        good = np.ones(self.table.rows, dtype=bool)
        rows = self.table.rows + self.table.unequal
        dropped = {"E_CSV": self.table.unequal} if self.table.unequal else {}
        first: dict[str, int] = {}
        for code, fault in faults.items():
            new = fault & good
            if new.any():
                dropped[code], first[code] = int(new.sum()), int(np.argmax(new))
                good &= ~new
        if sum(dropped.values()) > self.max_bad * rows or not good.any():
            code = max(first, key=lambda c: dropped[c])  # of unequal lines alone there are not too many
            raise self.table.refuse(
                f"{dropped[code]} of {rows} rows {REASONS[code]}, this is the first; "
                f"at most {self.max_bad:.2%} of all rows may be dropped (`max_bad`).",
                code,
                first[code],
            )
        return good, dropped

    def counted(self, dropped: Mapping[str, int], clock: WallClock | None, notes: list[str]) -> Preparation:
        """What is known before the traces are made."""
        role_of = {name: role for role, name in self.roles.items() if role != "accuracy" and name in self.table.columns}
        tabular = self.table.format in (*TABLES, "frame", "json")
        return Preparation(
            name=self.table.name,
            rows=self.table.rows + self.table.unequal,
            dropped=dropped,
            fixed={} if clock is None else clock.fixed,
            tz="UTC" if clock is None else clock.tz,
            times="local" if clock is None else clock.times,
            # only a table has columns that can be written again, in the order of the file
            columns={role_of[n]: n for n in self.table.names or self.table.columns if n in role_of} if tabular else {},
            format=self.table.format,
            notes=(*self.table.notes, *notes, *(self._left_out() if tabular and self.table.headed else ())),
        )

    def _left_out(self) -> list[str]:
        """A word on columns that nobody asked for: the output will not have them."""
        extra = [name for name in self.table.names if name not in self.roles.values()]
        shown = ", ".join(map(repr, extra[:5])) + (" ..." if len(extra) > 5 else "")
        return [f"{len(extra)} columns were not read: {shown}"] if extra else []
