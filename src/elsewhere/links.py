"""
Which fake was made from whom: the private table `fake, seed, date` that an audit needs and nobody else may see.

`fake` is the id of a published fake, `seed` the user id of its seed in the file of real traces, `date` the day of the
seed, needed only where that user has several. No message shows an id.
"""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from elsewhere.errors import InvalidTraces
from elsewhere.traces.columns import labels
from elsewhere.traces.model import Ints, Traces
from elsewhere.traces.tables import Table, open_table

SAME = "same"  # instead of a file: fakes carry the ids of their seeds


def links_file(fakes: Traces, seeds: Traces, seed_index: Ints) -> bytes:
    """The private table as CSV: one line per fake, in the order of the fakes."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(["fake", "seed", *([] if seeds.dates is None else ["date"])])
    for fake, row in zip(fakes.users, seed_index, strict=True):
        day = [] if seeds.dates is None else [str(seeds.dates[row])]
        writer.writerow([fake, seeds.users[row], *day])
    return sink.getvalue().encode()


def read_links(source: str | Path | Any, fakes: Traces, real: Traces) -> Ints:
    """
    (F,) row of `real` that each fake was made from.

    Parameters
    ----------
    source
        A file or frame with the columns `fake` and `seed`, and `date` where a seed's user has several days; or the
        word "same" where fakes carry the ids of their seeds.
    fakes, real
        The traces whose ids it names.

    Examples
    --------
    >>> from elsewhere.traces.model import Locations
    >>> real = Traces([[0, 1], [1, 1]], Locations(n=2), users=["ann", "bob"])
    >>> fakes = Traces([[1, 0]], Locations(n=2), users=["f7"])
    >>> read_links({"fake": ["f7"], "seed": ["bob"]}, fakes, real).tolist()
    [1]

    """
    if isinstance(source, str | Path) and str(source) == SAME:
        wanted: dict[str, tuple[str, str | None]] = {str(label): (str(label), None) for label in fakes.labels}
    else:
        wanted = _table(open_table(source))
    unlinked = sum(str(label) not in wanted for label in fakes.labels)
    if unlinked:
        raise InvalidTraces(
            f"`--links` must name the seed of every fake: {unlinked} of {len(fakes.labels)} are missing.",
            code="E_LINKS",
        )
    rows_of: dict[str, list[int]] = {}
    for row, label in enumerate(real.users):
        rows_of.setdefault(str(label), []).append(row)
    found = {label: _row(rows_of.get(seed, []), day, real) for label, (seed, day) in wanted.items()}
    index = np.array([found[str(label)] for label in fakes.labels])[fakes.user]
    for fault, what in ((-1, "seeds that are not among the real traces"), (-2, "seeds with several days, and no date")):
        if np.any(index == fault):
            raise InvalidTraces(
                f"`--links` names {what}, for {int((index == fault).sum())} fakes; its columns are fake, seed, date.",
                code="E_LINKS",
            )
    return index


def _row(rows: list[int], day: str | None, real: Traces) -> int:
    """The one row that is meant; -1 if there is none, -2 if it cannot be told."""
    if day is not None and real.dates is not None:
        rows = [row for row in rows if str(real.dates[row]) == day]
    return rows[0] if len(rows) == 1 else -2 if rows else -1


def _table(table: Table) -> dict[str, tuple[str, str | None]]:
    names = {name.strip().lower(): name for name in table.columns}
    if {"fake", "seed"} <= names.keys():
        fake, seed, date = names["fake"], names["seed"], names.get("date")
    elif len(table.columns) == 2:
        (fake, seed), date = table.columns, None
    else:
        raise table.refuse("links need the columns `fake` and `seed`.", "E_COLUMN")
    columns = [labels(table, name) for name in (fake, seed, date) if name is not None]
    if any(np.any(code < 0) for code, _ in columns[:2]):
        raise table.refuse("a line without a fake or without a seed.", "E_LINKS")
    text = [[known[c] if c >= 0 else None for c in code] for code, known in columns]
    days = text[2] if len(text) > 2 else [None] * table.rows
    wanted: dict[str, tuple[str, str | None]] = {}
    for row, (label, owner, day) in enumerate(zip(text[0], text[1], days, strict=True)):
        link = (str(owner), None if day is None else str(day)[:10])
        if wanted.setdefault(str(label), link) != link:
            raise table.refuse("a fake with two seeds.", "E_LINKS", row)
    return wanted
