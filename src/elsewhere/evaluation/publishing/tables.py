"""Traces and plain arrays of slots as tables on one map, and the seed of each fake: inputs of the paper's scenarios."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.data.slots import Traces
from elsewhere.data.visits import Ints, Locations
from elsewhere.errors import InvalidParameter, InvalidTraces


def on_one_map(sides: Mapping[str, Any], locations: Locations | None = None) -> dict[str, Traces]:
    """Return `Traces` and plain arrays as `Traces` on one map, of one length; None is left out."""
    there = {name: value for name, value in sides.items() if value is not None}
    maps = [t.locations for t in there.values() if isinstance(t, Traces)] + ([locations] if locations else [])
    if any(m != maps[0] for m in maps):
        raise InvalidTraces("seeds, hold-out, fakes and `locations` must be on one map.", code="E_MISMATCH")
    where = maps[0] if maps else Locations(n=_places_in(there))
    tables: dict[str, Traces] = {}
    for name, value in there.items():
        try:
            tables[name] = value if isinstance(value, Traces) else Traces(value, where)
        except InvalidTraces as error:
            raise InvalidTraces(error.args[0].replace("`r`", f"`{name}`"), code=error.code) from None
    lengths = sorted({t.L for t in tables.values()})
    if len(lengths) > 1:
        names = ", ".join(f"`{name}`" for name in there)
        raise InvalidTraces(f"{names} must have one number of slots, got {lengths}.", code="E_SHAPE")
    return tables


def _places_in(tables: Mapping[str, Any]) -> int:
    try:
        return max(1, 1 + max(int(np.max(t)) for t in tables.values()))
    except (TypeError, ValueError):
        names = ", ".join(f"`{name}`" for name in tables)
        raise InvalidTraces(
            f"{names} must be `Traces` or tables of whole numbers of places.", code="E_NUMBER"
        ) from None


def seed_rows(seed_index: ArrayLike, F: int, S: int | None = None) -> Ints:
    """Check `seed_index` and return it: F whole numbers, rows of S seeds."""
    rows = np.asarray(seed_index)
    if rows.shape != (F,) or rows.dtype.kind not in "iu":
        raise InvalidParameter(
            f"`seed_index` must hold {F} whole numbers, one per fake, got shape {rows.shape}, dtype {rows.dtype}.",
            code="E_SHAPE",
            parameter="seed_index",
        )
    if rows.min() < 0 or (S is not None and rows.max() >= S):
        last = "" if S is None else f", in 0 .. {S - 1}"
        raise InvalidParameter(f"`seed_index` must hold rows of `seeds`{last}.", code="E_INDEX", parameter="seed_index")
    return rows.astype(np.int64)


def number_within(owner: Ints) -> Ints:
    """Return the number of each entry among those with the same value, in order: 0 for the first, 1 for the next ..."""
    order = np.argsort(owner, kind="stable")
    owners = owner[order]
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order)) - np.searchsorted(owners, owners)
    return number
