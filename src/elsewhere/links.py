"""
Which fake was made from whom: the private table `fake, seed, date, row` that an audit needs and nobody else may see.

`fake` is the id of a published fake, `seed` the user id of its seed in the file of real traces, `date` the day of the
seed, needed only where that user has several, and `row` its number, from 0, among that user's complete traces (of that
day), needed only where these tell no single one. No message shows an id.
"""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elsewhere.errors import InvalidTraces
from elsewhere.traces.inputs import open_table
from elsewhere.traces.model import Ints, Traces
from elsewhere.traces.tables import Table, labels

Link = tuple[str, str | None, str | None]  # seed, date, row
SAME = "same"  # instead of a file: fakes carry the ids of their seeds


def links_file(fakes: Traces | Sequence[Any], seeds: Traces, seed_index: Ints) -> bytes:
    """The private table as CSV: one line per day of a fake, in the order of the fakes, or of the ids given for them."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    days = None if seeds.dates is None else seeds.dates.astype(str)
    number = _numbers(seeds)
    several = bool(number.max() > 0)
    writer.writerow(["fake", "seed", *([] if days is None else ["date"]), *(["row"] if several else [])])
    for fake, row in zip(fakes.users if isinstance(fakes, Traces) else fakes, seed_index, strict=True):
        day = [] if days is None else [days[row]]
        writer.writerow([fake, seeds.users[row], *day, *([number[row]] if several else [])])
    return sink.getvalue().encode()


def published_links(kept: bytes, rows: Ints, pool: Traces, fakes: int) -> bytes:
    r"""
    The private table of a pool, from that of all fakes by their numbers, which is kept until they are published.

    Parameters
    ----------
    kept
        What `links_file` wrote, fakes named 0, 1, ...
    rows
        Number of each row of the pool among them.
    pool
        The published fakes, whose ids take the place of the numbers.
    fakes
        How many there are in all.

    Examples
    --------
    >>> from elsewhere.traces.model import Locations
    >>> kept = b"fake,seed\n0,ann\n1,bob\n"
    >>> published_links(kept, np.array([1]), Traces([[0]], Locations(n=1), users=["f7"]), 2)
    b'fake,seed\nf7,bob\n'

    """
    head, *lines = csv.reader(io.StringIO(kept.decode()))
    if [line[0] for line in lines] != [str(i) for i in range(fakes)]:
        raise InvalidTraces("the links kept beside these fakes are those of others.", code="E_LINKS")
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([fake, *lines[row][1:]] for fake, row in zip(pool.users, rows.tolist(), strict=True))
    return sink.getvalue().encode()


def _numbers(traces: Traces) -> Ints:
    """Of each row its number among the complete rows of its user and day, from 0; rows with gaps are no seeds."""
    met: dict[tuple[int, str], int] = {}
    out = np.full(len(traces), -1, dtype=np.int64)
    for row in np.flatnonzero(np.all(traces.r >= 0, axis=1)).tolist():
        key = (int(traces.user[row]), "" if traces.dates is None else str(traces.dates[row]))
        out[row] = met[key] = met.get(key, -1) + 1
    return out


def read_links(source: str | Path | Any, fakes: Traces, real: Traces) -> Ints:
    """
    (F,) row of `real` that each fake was made from.

    Parameters
    ----------
    source
        A file or frame with the columns `fake` and `seed`, `date` where a seed's user has several days, `row` where
        there are several traces of a day; or the word "same" where fakes carry the ids of their seeds.
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
        wanted: dict[str, list[Link]] = {str(label): [(str(label), None, None)] for label in fakes.labels}
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
    number = _numbers(real)
    index = np.empty(len(fakes), dtype=np.int64)
    seen = dict.fromkeys(wanted, 0)
    for f in np.lexsort((np.arange(len(fakes)), _days(fakes))).tolist():
        label = str(fakes.labels[fakes.user[f]])
        links = wanted[label]
        # the days of a life are linked one by one, in their order; a single line speaks of all of them
        seed, day, nth = links[min(seen[label], len(links) - 1)]
        seen[label] += 1
        index[f] = _row(rows_of.get(seed, []), day, nth, real, number)
    for fault, what in ((-1, "seeds that are not among the real traces"), (-2, "seeds with several days, and no date")):
        if np.any(index == fault):
            raise InvalidTraces(
                f"`--links` names {what}, for {int((index == fault).sum())} fakes; columns are fake, seed, date, row.",
                code="E_LINKS",
            )
    return index


def _days(traces: Traces) -> Ints:
    return np.zeros(len(traces), dtype=np.int64) if traces.dates is None else traces.dates.astype(np.int64)


def _row(rows: list[int], day: str | None, nth: str | None, real: Traces, number: Ints) -> int:
    """The one row that is meant; -1 if there is none, -2 if it cannot be told."""
    if day is not None and real.dates is not None:
        rows = [row for row in rows if str(real.dates[row]) == day]
    if nth is not None:
        rows = [row for row in rows if str(number[row]) == nth]
    return rows[0] if len(rows) == 1 else -2 if rows else -1


def _table(table: Table) -> dict[str, list[Link]]:
    names = {name.strip().lower(): name for name in table.columns}
    if {"fake", "seed"} <= names.keys():
        fake, seed, date, nth = names["fake"], names["seed"], names.get("date"), names.get("row")
    elif len(table.columns) == 2:
        (fake, seed), date, nth = table.columns, None, None
    else:
        raise table.refuse("links need the columns `fake` and `seed`.", "E_COLUMN")
    columns = [labels(table, name) if name is not None else None for name in (fake, seed, date, nth)]
    if any(known is not None and np.any(known[0] < 0) for known in columns[:2]):
        raise table.refuse("a line without a fake or without a seed.", "E_LINKS")
    text = [
        [None] * table.rows if found is None else [found[1][c] if c >= 0 else None for c in found[0]]
        for found in columns
    ]
    wanted: dict[str, list[Link]] = {}
    for row, (label, owner, day, number) in enumerate(zip(*text, strict=True)):
        link = (str(owner), None if day is None else str(day)[:10], None if number is None else str(number))
        links = wanted.setdefault(str(label), [])
        if links and links[0][0] != link[0]:
            raise table.refuse("a fake with two seeds.", "E_LINKS", row)
        links.append(link)
    return wanted
