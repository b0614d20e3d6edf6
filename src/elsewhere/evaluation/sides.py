"""What the judges are given, checked: tables of slots on one map, and the person each fake was made from."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.data.slots import Traces
from elsewhere.data.visits import Ints, Locations, Visits
from elsewhere.errors import InvalidParameter, InvalidTraces


def on_one_map(sides: Mapping[str, Any], locations: Locations | None = None) -> dict[str, Traces]:
    """
    Return `Traces` and plain arrays as `Traces` on one map, of one length; None is left out.

    A plain array has the slots of the first `Traces`, and as many places as all count where no map is given.
    """
    there = {name: value for name, value in sides.items() if value is not None}
    slots = [side for side in there.values() if isinstance(side, Traces)]
    maps = [side.locations for side in slots] + ([locations] if locations is not None else [])
    if any(m != maps[0] for m in maps):
        raise InvalidTraces("seeds, hold-out, fakes and `locations` must be on one map.", code="E_MISMATCH")
    clock: Any = {name: getattr(slots[0], name) for name in ("step_minutes", "start", "tz")} if slots else {}
    tables = {}
    for name, side in there.items():
        try:
            maps = maps or [Locations(n=max(1, *(1 + np.max(getattr(t, "r", t)) for t in there.values())))]
            tables[name] = side if isinstance(side, Traces) else Traces(getattr(side, "r", side), maps[0], **clock)
        except InvalidTraces as error:
            raise InvalidTraces(error.args[0].replace("`r`", f"`{name}`"), code=error.code) from None
        except (TypeError, ValueError):
            raise InvalidTraces(
                "give `Visits`, `Traces` or tables of whole numbers of places.", code="E_NUMBER"
            ) from None
    lengths = sorted({t.L for t in tables.values()})
    if len(lengths) > 1:
        names = ", ".join(f"`{name}`" for name in there)
        raise InvalidTraces(f"{names} must have one number of slots, got {lengths}.", code="E_SHAPE")
    return tables


def with_visits(people: Visits) -> Ints:
    """Return the users of whom anything is known."""
    return np.flatnonzero(np.diff(people.offsets))


def join_people(a: Visits, b: Visits) -> Visits:
    """Return the visits of the people of both, on the map that they share."""
    columns = {name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in ("start", "end", "place")}
    trip = None if a.trip is None or b.trip is None else np.concatenate([a.trip, b.trip])
    return a.replace(**columns, user=np.concatenate([a.user, b.user + a.U]), users=range(a.U + b.U), trip=trip)


def seed_numbers(seed_index: ArrayLike, F: int, U: int, *, least: int = 0) -> Ints:
    """Check `seed_index` and return it: for each of F fakes the number of its person, `least` .. U - 1."""
    owner = np.asarray(seed_index)
    if owner.shape != (F,) or owner.dtype.kind not in "iu":
        raise InvalidParameter(
            f"`seed_index` must hold {F} whole numbers, one per fake, got shape {owner.shape}, dtype {owner.dtype}.",
            code="E_SHAPE",
            parameter="seed_index",
        )
    if owner.min() < least or owner.max() >= U:
        raise InvalidParameter(
            f"`seed_index` must hold numbers of people, {least} .. {U - 1}.", code="E_INDEX", parameter="seed_index"
        )
    return owner.astype(np.int64)


def number_within(owner: Ints) -> Ints:
    """Return the number of each entry among those with the same value, in order: 0 for the first, 1 for the next ..."""
    order = np.argsort(owner, kind="stable")
    owners = owner[order]
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order)) - np.searchsorted(owners, owners)
    return number
