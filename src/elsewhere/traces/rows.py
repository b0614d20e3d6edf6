"""
A table whose columns have a meaning, and which of its rows are kept.

Rows that cannot be read are dropped and counted by reason; more than `max_bad` of them refuse the file. Messages
say how many, the first line and the code.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidTraces
from elsewhere.traces.clock import Times
from elsewhere.traces.columns import FILE, Found, missing_roles, what_is_missing
from elsewhere.traces.fixes import Preparation
from elsewhere.traces.tables import TABLES, Table

EARLIEST = np.datetime64("2000-01-01", "us")
REASONS = {
    "E_CSV": "have more or fewer fields than the first line",
    "E_ENCODING": "have an id with characters that are no text (`encoding`)",
    "E_USER": "have no user id",
    "E_DATE": "have no readable time, one before 2000 or in the future (`any_date`), or leave before they arrive",
    "E_NUMBER": "have numbers that cannot be read",
    "E_OUTSIDE": "lie outside the globe",
    "E_INDEX": "have no place",
}
Mask = NDArray[np.bool_]


class Tally:
    """Rows of an input, those that are dropped by reason, and where the first of each stands."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin again."""
        self.rows = self.kept = 0
        self.dropped: dict[str, int] = {}
        self.first: dict[str, str] = {}
        self.fault: InvalidTraces | None = None

    def keep(self, table: Table, faults: Mapping[str, Mask]) -> Mask:
        """The rows of a table without a fault; all others are counted."""
        good = np.ones(table.rows, dtype=bool)
        self.rows += table.rows + table.unequal
        if table.unequal:
            self.dropped["E_CSV"] = self.dropped.get("E_CSV", 0) + table.unequal
            self.fault = self.fault or table.fault or next((f.fault for f in table.files if f.fault), None)
        for code, fault in faults.items():
            new = fault & good
            if new.any():
                self.dropped[code] = self.dropped.get(code, 0) + int(new.sum())
                if code not in self.first:
                    self.first[code] = table.at(int(np.argmax(new)))
                good &= ~new
        self.kept += int(good.sum())
        return good

    def check(self, max_bad: float) -> None:
        """Refuse an input of which more than the share `max_bad` of the rows is dropped, or all (B21)."""
        if sum(self.dropped.values()) <= max_bad * self.rows and self.kept:
            return
        code = max(self.dropped, key=lambda c: (self.dropped[c], c != "E_CSV"))
        most = f"at most {max_bad:.2%} of all rows may be dropped (`max_bad`)"
        if code == "E_CSV" and self.fault is not None:
            raise InvalidTraces(
                f"{self.fault.args[0]} {self.dropped[code]} of {self.rows} lines are so; {most}.", code=self.fault.code
            )
        raise InvalidTraces(
            f"{self.first[code]}: {self.dropped[code]} of {self.rows} rows {REASONS[code]}, this is the first; {most}.",
            code=code,
        )


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
    tally: Tally = field(default_factory=Tally)

    def require_all(self) -> None:
        """Refuse a table that lacks a role, with all that are missing, all columns, and what to type."""
        missing = missing_roles(self.roles)
        if missing:
            found = self.table.found or Found(self.roles)
            said = what_is_missing(missing, self.table.names, found._replace(roles=self.roles), self.table.headed)
            raise self.table.refuse(said, "E_COLUMN")

    def odd_times(self, wall: Times) -> Mask:
        """Rows without a time, or with one that no trace is from (B31)."""
        odd = np.isnat(wall)
        if self.latest is not None:
            odd |= (wall < EARLIEST) | (wall > self.latest)
        return odd

    def counted(self, fixed: Mapping[str, int], tz: str, times: str, notes: list[str]) -> Preparation:
        """What is known before the traces are made; `times` is how they were written, for `write_traces`."""
        names = self.table.names or tuple(self.table.columns)
        role_of = {name: role for role, name in self.roles.items() if role != "accuracy" and name in self.table.columns}
        tabular = self.table.format in (*TABLES, "frame", "json") and self.table.headed
        columns = {role_of[n]: n for n in names if n in role_of}
        if "arrived" in columns:
            columns.pop("date", None)  # arrivals are written with their days
        if columns.get("user") == FILE:
            columns["user"] = next(n for n in ("user", "user of the file") if n not in names)
        # a name that could be somebody's data must not become one of the output
        named = tabular and not any(self.table.shown(n) != n for n in role_of)
        return Preparation(
            name=self.table.name,
            rows=self.tally.rows,
            dropped=self.tally.dropped,
            fixed=fixed,
            tz=tz,
            times=times,
            # only a table has columns that can be written again, in the order of the file
            columns=columns if named and "end_time" not in self.roles else {},
            format=self.table.format,
            notes=(*notes, *(self._left_out() if tabular else ())),
        )

    def _left_out(self) -> list[str]:
        """A word on columns that nobody asked for: the output will not have them."""
        extra = [
            self.table.shown(name) for name in self.table.names if name not in self.roles.values() and name != FILE
        ]
        shown = ", ".join(map(repr, extra[:5])) + (" ..." if len(extra) > 5 else "")
        return [f"{len(extra)} columns were not read: {shown}"] if extra else []
