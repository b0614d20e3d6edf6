"""
Which moves are possible: a table of allowed moves, as a caller gives it (E36).

A move is a step from the place of one slot to another place of the next slot. Staying is always allowed.
"""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter
from elsewhere.traces.inputs import open_table
from elsewhere.traces.model import Floats, Ints, Locations, in_space
from elsewhere.traces.tables import labels, numbers

BY_ID, BY_POINT = ("from", "to"), ("from_lat", "from_lon", "to_lat", "to_lon")
CODE = "E_FEASIBLE"


@dataclass(frozen=True, eq=False)
class Moves:
    """Allowed moves as they were given: by ids of places, or by points, each of which stands for the nearest place."""

    ids: tuple[NDArray[Any], NDArray[Any]] | None = field(default=None, repr=False)
    points: tuple[Floats, Floats] | None = field(default=None, repr=False)  # (n, 2) lat, lon each

    def matrix(self, locations: Locations) -> Any:
        """Return the moves between these places as a sparse matrix (R, R) of 0 and 1."""
        if self.points is not None:
            if locations.lat is None:
                raise InvalidParameter(
                    "`feasible` has moves between points, and these places have no latitude and longitude: give "
                    "columns `from` and `to` with their ids.",
                    code=CODE,
                )
            here, there = (locations.nearest(in_space(*point.T))[0] for point in self.points)
            return matrix_of(here, there, len(locations))
        assert self.ids is not None  # noqa: S101 - one of the two
        named = locations.names if locations.names is not None else [str(place) for place in range(len(locations))]
        number = {name: place for place, name in enumerate(named) if name is not None}
        here, there = (np.array([number.get(name, -1) for name in side], dtype=np.int64) for side in self.ids)
        known = (here >= 0) & (there >= 0)
        if not known.any():
            why = (
                "places are numbered from 0 here; give columns `from_lat`, `from_lon`, `to_lat` and `to_lon`, or a map "
                "with ids (`locations`)"
                if locations.names is None
                else "give the ids of the map, or columns `from_lat`, `from_lon`, `to_lat` and `to_lon`"
            )
            raise InvalidParameter(f"`feasible` names no move between two places of the map: {why}.", code=CODE)
        if not known.all():
            warnings.warn(
                f"{int((~known).sum()):,} of {len(known):,} rows of `feasible` name a place that is not on the map, "
                "and are left out.",
                stacklevel=2,
            )
        return matrix_of(here[known], there[known], len(locations))


def matrix_of(here: Ints, there: Ints, R: int) -> Any:
    """Return moves as a sparse matrix (R, R) of 0 and 1, with 1 for every stay."""
    from scipy import sparse

    key = np.unique(np.concatenate([here.astype(np.int64) * R + there, np.arange(R, dtype=np.int64) * (R + 1)]))
    return sparse.csr_array((np.ones(len(key)), (key // R, key % R)), shape=(R, R))


def read_moves(source: Any, *, encoding: str = "utf-8") -> Moves:
    """
    Read a table of allowed moves, one a row, from the first place to the second: not the other way round.

    Columns `from` and `to` hold ids of places, or their numbers from 0 where places have no ids; or `from_lat`,
    `from_lon`, `to_lat` and `to_lon` hold points, each of which stands for the place nearest to it.

    Examples
    --------
    >>> from elsewhere.traces.model import Locations
    >>> moves = read_moves({"from": ["a", "b"], "to": ["b", "c"]})
    >>> moves.matrix(Locations(n=3, names=["a", "b", "c"])).toarray().astype(int).tolist()
    [[1, 1, 0], [0, 1, 1], [0, 0, 1]]

    """
    table = open_table(source, encoding=encoding)
    plain = {name.strip().lower(): name for name in table.columns}
    if set(BY_POINT) <= plain.keys():
        at = np.column_stack([numbers(table, plain[name]) for name in BY_POINT])
        bad = ~np.isfinite(at).all(axis=1) | (np.abs(at) > [90, 180, 90, 180]).any(axis=1)
        if bad.any():
            raise table.refuse("a coordinate that is no number of degrees.", CODE, int(np.argmax(bad)))
        return Moves(points=(at[:, :2], at[:, 2:]))
    if not set(BY_ID) <= plain.keys():
        raise table.refuse(
            "a table of allowed moves needs columns `from` and `to`, or `from_lat`, `from_lon`, `to_lat` and `to_lon`.",
            CODE,
        )
    sides = []
    for name in BY_ID:
        code, known = labels(table, plain[name])
        if (code < 0).any():
            raise table.refuse(f"column {name!r} must hold an id in every row.", CODE, int(np.argmax(code < 0)))
        sides.append(np.array(known, dtype=object)[code])
    return Moves(ids=(sides[0], sides[1]))
