"""
The pool as its owner sees it on the page: all lives on a map, a day at a time, and one life as a file.

Whoever sees all of it can strike every fake out of a user's questions (A19): the routes that use this ask for the
owner's token, on this machine too. It reads the published pool and not the store: it cannot say who holds which life.
"""

import json
import tempfile
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from elsewhere.data.ground import page_map
from elsewhere.data.slots import Traces
from elsewhere.data.visits import Ints
from elsewhere.pool import Pool
from elsewhere.traces.write import write_traces


class PoolView:
    """A pool, a day at a time; `days` is the number of days of the longest life."""

    def __init__(self, pool: Pool) -> None:
        self.traces, self.laboratory = pool.traces, bool(pool.provenance.get("reproducible"))
        self.rows = pool.lives()
        self.days = max(map(len, self.rows))
        self.number = {str(pool.traces.labels[pool.traces.user[rows[0]]]): i for i, rows in enumerate(self.rows)}

    @cached_property
    def head(self) -> bytes:
        """Return clock, map, ground and ids, as JSON."""
        t = self.traces
        facts = {
            "step_minutes": t.step_minutes,
            "start": t.start,
            "tz": t.tz,
            "slots": t.L,
            "days": self.days,
            "laboratory": self.laboratory,
            **page_map(t.locations),
            "lives": list(self.number),
        }
        return _json(facts)

    def day(self, n: int) -> bytes:
        """Return the n-th day of every life, as JSON: its places, [] where a life is shorter, and its date."""
        t = self.traces
        rows = [int(rows[n]) if n < len(rows) else -1 for rows in self.rows]
        dates = None if t.dates is None else [None if r < 0 else date.isoformat(t.dates[r].item()) for r in rows]
        return _json({"day": n, "dates": dates, "r": [[] if r < 0 else t.r[r].tolist() for r in rows]})

    def life(self, name: str) -> Ints | None:
        """Return the rows of the life of this id, or None."""
        number = self.number.get(name)
        return None if number is None else self.rows[number]


def traces_file(traces: Traces, kind: str) -> bytes:
    """Return traces as a file of GeoJSON or GPX."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"lives.{kind}"
        write_traces(traces, path)
        return path.read_bytes()


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
