"""What a published fake may show of the dataset it was made from: places, clock, dates, names of columns; no trace."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.learnt import Learnt
from elsewhere.traces.columns import ROLES
from elsewhere.traces.model import Locations, Traces


@dataclass(frozen=True, eq=False)
class Frame:
    """
    The places, the clock and the dates of a dataset, without its traces.

    Only `known` places, those that enough users share, are shown on a published map (E31), and only `dates` that
    enough of the model's users share. `columns` (role -> name) and `format` are those of the file that was read, where
    there was one, so that fakes can be written as it is.
    """

    locations: Locations
    known: NDArray[np.bool_]
    dates: NDArray[np.datetime64] | None
    step_minutes: float
    start: str
    tz: str
    columns: Mapping[str, str] = field(default_factory=dict)
    format: str = ""

    def __post_init__(self) -> None:
        names = list(self.columns.values())
        if not all(isinstance(word, str) for word in (self.format, *names)):
            raise ValueError("columns and format must be words")
        if names and not ({"user"} <= set(self.columns) <= set(ROLES) and len(set(names)) == len(names)):
            raise ValueError("no columns of a table")

    @staticmethod
    def of(traces: Traces, learnt: Learnt, people: Traces | None) -> "Frame":
        """The frame of these traces, with what `people`, those the model was learnt from, share."""
        dates = None
        if people is not None and people.dates is not None:
            day, user = people.dates.astype(np.int64), people.user
            pairs = np.unique(np.column_stack([day, user]), axis=0)
            days, users = np.unique(pairs[:, 0], return_counts=True)
            shared = days[users >= learnt.preset.m_min]
            dates = shared.astype("datetime64[D]") if len(shared) else None
        return Frame(traces.locations, learnt.known, dates, traces.step_minutes, traces.start, traces.tz)

    def public_locations(self, r: NDArray[Any]) -> Locations:
        """
        The map with every unknown place moved to the middle of the known ones, its number kept.

        Places without coordinates keep their names where they are known and the fakes `r` go there.
        """
        where = self.locations
        if where.xy is not None:
            return Locations(xy=np.where(self.known[:, None], where.xy, where.xy[self.known].mean(axis=0)))
        if where.lat is not None and where.lon is not None:
            # the known place nearest to the middle: a mean of longitudes would fail across the antimeridian
            flat = where.planar()
            middle = flat[self.known].mean(axis=0)
            stand_in = np.flatnonzero(self.known)[np.argmin(((flat[self.known] - middle) ** 2).sum(axis=1))]
            shown = np.where(self.known, np.arange(len(where)), stand_in)
            return Locations(lat=where.lat[shown], lon=where.lon[shown])
        if where.names is None:
            return where
        said = self.known & np.isin(np.arange(len(where)), r)
        return Locations(n=len(where), names=[name if say else "" for name, say in zip(where.names, said, strict=True)])
