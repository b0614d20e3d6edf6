"""
What the deniable preset learns from people who are no seeds: archetypes and walk, not their traces.

All of it is sums over users that at least `m_min` of them share, in memory as in the model file (`Habits`,
`learn_archetypes`), so a model that was saved and read again makes the very same laws. How many archetypes there are
follows from the number of these people and from eps0, never from a seed.
"""

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidModel, InvalidParameter, InvalidTraces, NotEnoughUsers, require_whole
from elsewhere.privacy.deniable.archetypes import Archetypes, learn_archetypes
from elsewhere.privacy.deniable.laws import Laws
from elsewhere.synthesis.walk._walk_kernels import ALL_COLUMNS, ALL_MOVING, LENGTHS
from elsewhere.synthesis.walk.fit import learn_habits
from elsewhere.synthesis.walk.habits import Habits
from elsewhere.synthesis.walk.ways import Ways
from elsewhere.traces.model import Ints, Locations, Traces

MOST_ARCHETYPES = 64
PEOPLE = 12  # of the model, to tell an archetype from the others
NOISE = (
    4.0  # people / eps0 in an archetype, so that its count is not drowned in the noise of standard deviation 1.4 / eps0
)
MOST_PLACES = 4096  # above, the walk knows only places that enough people share
HEAVIEST = 100.0  # a weight that was learnt with a ridge is far below
OF_ARCHETYPES = ("share", "score", "price", "size")
# name -> kind of dtype, shape: M moves, O moves after moves
OF_WALK = {
    "move": ("i", "M"),
    "count": ("f", "M"),
    "rest": ("f", "R"),
    "arrivals": ("f", "R"),
    "kernel": ("f", "K"),
    "pair": ("i", "O"),
    "onward": ("i", "O"),
    "onward_count": ("f", "O"),
    "first": ("f", "R"),
    "destination": ("f", "D"),
    "moving": ("f", "S"),
    "leaving": ("f", "R"),
    "day_statistics": ("f", "4L"),
}


def number_of_archetypes(people: int, eps0: float) -> int:
    """
    Return the number of archetypes for so many people of the model, where none is asked for.

    Examples
    --------
    >>> number_of_archetypes(250, 0.5), number_of_archetypes(250, 0.1), number_of_archetypes(10**6, 0.5)
    (20, 6, 64)

    """
    return max(1, min(people // max(PEOPLE, int(np.ceil(NOISE / eps0))), MOST_ARCHETYPES))


@dataclass(frozen=True, eq=False)
class Carried:
    """Archetypes, and what the walk is made of; `places` are those of the map that the walk knows, None: all."""

    archetypes: Archetypes = field(repr=False)
    habits: Habits = field(repr=False)
    places: Ints | None = field(default=None, repr=False)

    def laws(
        self,
        locations: Locations,
        label: NDArray[np.integer],
        known: NDArray[np.bool_],
        *,
        size: int,
        ways: Ways | None = None,
        executor: Executor | None = None,
        rng: np.random.Generator,
    ) -> Laws:
        """Draw a pool of `size` walks over the `known` places, by these `ways`, and find the laws of the archetypes."""
        if not known.any():
            raise InvalidParameter("no place of the model has `m_min` visitors; lower `m_min`.", code="E_SUPPRESSED")
        where = locations if self.places is None else locations.select(self.places)
        walk = self.habits.tables(where, known if self.places is None else known[self.places])
        return Laws.of(
            walk, self.archetypes, label, size=size, rng=rng, places=self.places, ways=ways, executor=executor
        )

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and plain numbers from which `from_arrays` makes the same."""
        arrays = {f"archetypes.{name}": getattr(self.archetypes, name) for name in OF_ARCHETYPES}
        arrays |= {f"walk.{name}": getattr(self.habits, name) for name in OF_WALK}
        if self.places is not None:
            arrays["places"] = self.places
        numbers = {"archetypes": len(self.archetypes.share), "reach": self.habits.reach, "people": self.habits.people}
        return arrays, numbers

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[Any]], numbers: Mapping[str, Any], *, R: int, kappa: int) -> "Carried":
        """Return what `to_arrays` gave, for R places in `kappa` classes; `InvalidModel` where these cannot be it."""
        try:
            n = require_whole("archetypes", numbers["archetypes"], 1)
            names = {*(f"archetypes.{part}" for part in OF_ARCHETYPES), *(f"walk.{part}" for part in OF_WALK)}
            if set(arrays) - {"places"} != names:
                raise InvalidModel("an array of archetypes or walk is missing, or one too many is there.")
            places = arrays.get("places")
            if places is not None and (
                places.dtype.kind != "i"
                or places.ndim != 1
                or places.size == 0
                or np.any(np.diff(places) <= 0)
                or places[0] < 0
                or places[-1] >= R
            ):
                raise InvalidModel("`places` must be numbers of the map, in order.")
            archetypes = _archetypes([arrays[f"archetypes.{part}"] for part in OF_ARCHETYPES], n, kappa)
            habits = _habits(arrays, numbers, R if places is None else len(places))
            if archetypes.share.shape[1] != habits.L:
                raise InvalidModel("archetypes and walk must be of one number of slots.")
            return Carried(archetypes, habits, places)
        except (InvalidParameter, InvalidTraces) as error:
            raise InvalidModel(error.args[0]) from None


def carry(
    people: Traces,
    shared: Traces,
    label: NDArray[np.integer],
    known: NDArray[np.bool_],
    *,
    archetypes: int | None,
    eps0: float,
    m_min: int,
    rng: np.random.Generator,
) -> Carried:
    """
    Learn archetypes and walk of these people.

    `shared` are the people with rare places merged away, of whom archetypes are learnt; the walk is learnt from all
    ways, and keeps to `known` places. Where no number of `archetypes` is asked for, they are as many as these people
    can be told into, fewer where some would have fewer than `m_min` users.
    """
    classes = np.where(shared.r >= 0, label[shared.r], -1)
    kappa = int(label.max()) + 1
    if archetypes is not None and archetypes > shared.U:
        raise InvalidParameter(f"`archetypes` must be at most the {shared.U} people of the model, got {archetypes}.")
    n = archetypes or number_of_archetypes(shared.U, eps0)
    while True:
        try:
            groups = learn_archetypes(classes, kappa, n, user=shared.user, m_min=m_min, rng=rng)
            break
        except NotEnoughUsers:
            if archetypes is not None or n == 1:
                raise
            n = max(1, 3 * n // 4)
    places = None
    if people.R > MOST_PLACES:
        places, people = np.flatnonzero(known), shared
    r, where = people.r, people.locations
    if places is not None:
        where = where.select(places)
        at = np.minimum(np.searchsorted(places, r), len(places) - 1)
        r = np.where((r >= 0) & (places[at] == r), at, -1)
        known = known[places]
    habits = learn_habits(r, where, known, user=people.user, m_min=m_min, rng=rng)
    return Carried(groups, habits, places)


def _archetypes(parts: list[NDArray[Any]], n: int, kappa: int) -> Archetypes:
    share = parts[0]
    if share.ndim != 3 or share.shape[0] != n or share.shape[1] < 1 or share.shape[2] != kappa:
        raise InvalidModel(f"shares of {n} archetypes must be an array (archetypes, slots, {kappa} classes).")
    shapes = (share.shape, share.shape, (n,), (n,))
    if any(
        a.dtype != np.float64 or a.shape != s or not np.isfinite(a).all() for a, s in zip(parts, shapes, strict=True)
    ):
        raise InvalidModel(f"tables of {n} archetypes must be finite numbers, each of its shape.")
    archetypes = Archetypes(*parts)
    if not np.isclose(archetypes.size.sum(), 1) or archetypes.size.min() < 0:
        raise InvalidModel("sizes of archetypes must sum to 1.")
    return archetypes


def _habits(arrays: Mapping[str, NDArray[Any]], numbers: Mapping[str, Any], R: int) -> Habits:
    a = {name: arrays[f"walk.{name}"] for name in OF_WALK}
    sizes = {"R": R, "K": LENGTHS, "D": ALL_COLUMNS + 3, "S": ALL_MOVING, "4": 4}
    sizes |= {"M": a["move"].size, "O": a["pair"].size, "L": a["day_statistics"].size // 4}
    for name, (kind, shape) in OF_WALK.items():
        if a[name].dtype.kind != kind or a[name].dtype.itemsize != 8 or a[name].shape != tuple(sizes[s] for s in shape):
            raise InvalidModel(f"`walk.{name}` has not the shape, or the kind, that it must have.")
        if not np.isfinite(a[name]).all():
            raise InvalidModel(f"`walk.{name}` must be finite.")
        if name not in ("destination", "moving", "leaving") and a[name].min(initial=0) < 0:
            raise InvalidModel(f"`walk.{name}` must be at least 0.")
    after = a["pair"] * R + a["onward"]
    if (
        any(np.any(a[name] <= 0) for name in ("count", "onward_count", "arrivals", "kernel"))
        or any(np.any(np.abs(a[name]) > HEAVIEST) for name in ("destination", "moving", "leaving"))
        or any(np.any(np.diff(keys) <= 0) for keys in (a["move"], after))
        or any(np.any(a[name] >= most) for name, most in (("move", R * R), ("pair", R * R), ("onward", R)))
        or sizes["L"] < 2
        or not np.allclose(a["day_statistics"].sum(axis=1), 1)
        or not a["first"].sum() > 0
    ):
        raise InvalidModel("the numbers of the walk cannot be those of any people.")
    reach, people = numbers["reach"], require_whole("people", numbers["people"], 1)
    if not isinstance(reach, float) or not 0 <= reach < np.inf:
        raise InvalidModel("`reach` must be a length.")
    return Habits(**a, reach=reach, people=people)
