"""
What a model carries for the deniable mode beside its moves: the groups and the walk of its people, not their traces.

How many groups a run has depends on the seeds planned, which nobody knows when a model is learnt, and groups cannot be
made of other groups. So there is a ladder of them: of every number on it, up to one group for 12 users, the groups are
learnt, and a run takes the largest that is not above what its seeds allow. With `archetypes` given, only those are.

All of it is sums over users that at least `m_min` of them share, in memory as in the file (`Habits`,
`learn_archetypes`), so a model that was saved and read again makes the very same fakes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidModel, InvalidParameter, InvalidTraces, NotEnoughUsers, require_whole
from elsewhere.synthesis.deniable.archetypes import Archetypes, learn_archetypes
from elsewhere.synthesis.walk._kernels import COLUMNS, LENGTHS, MOVING
from elsewhere.synthesis.walk.fit import learn_habits
from elsewhere.synthesis.walk.habits import Habits
from elsewhere.traces.model import Traces

MOST_GROUPS = 64
USERS_TO_A_GROUP = 12  # of the model, to tell a group from the others
LADDER = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, MOST_GROUPS)
METHOD = {"archetypes": "means", "allotted": "modes", "walk": "modes"}  # how the groups of an emission are learnt
HEAVIEST = 100.0  # a weight that was learnt with a ridge is far below
OF_GROUPS = ("share", "score", "price", "size")
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
    "lives": ("f", "4L"),
}


@dataclass(frozen=True, eq=False)
class Carried:
    """
    Groups by their number, and what the walk is learnt into.

    `method` is how the groups were learnt; `chosen` the number that was asked for, None if there is a ladder. `habits`
    is None where the emission has no walk.
    """

    method: str
    groups: Mapping[int, Archetypes] = field(repr=False)
    habits: Habits | None = field(default=None, repr=False)
    chosen: int | None = None

    def serves(self, emission: str) -> bool:
        """Whether a run with this emission finds here what it needs."""
        return METHOD.get(emission) == self.method and (emission != "walk" or self.habits is not None)

    def number(self, most: int) -> int:
        """How many groups a run takes that names no number itself and may have `most`."""
        return self.chosen or max((n for n in self.groups if n <= most), default=min(self.groups))

    def of(self, n: int) -> Archetypes:
        """The `n` groups; a number that is not here is refused."""
        if n not in self.groups:
            raise InvalidParameter(
                f"`archetypes` must be a number of groups that `model` was learnt with ({_listed(self.groups)}), got "
                f"{n}: take one of these, or learn the model again with `archetypes` = {n}.",
                code="E_MISMATCH",
            )
        return self.groups[n]

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and plain numbers from which `from_arrays` makes the same."""
        arrays = {
            f"groups.{n}.{name}": array
            for n, groups in self.groups.items()
            for name in OF_GROUPS
            if (array := getattr(groups, name)) is not None
        }
        numbers: dict[str, Any] = {"method": self.method, "groups": sorted(self.groups), "chosen": self.chosen}
        if self.habits is not None:
            arrays |= {f"walk.{name}": getattr(self.habits, name) for name in OF_WALK}
            numbers |= {"reach": self.habits.reach, "people": self.habits.people}
        return arrays, numbers

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[Any]], numbers: Mapping[str, Any], *, R: int, kappa: int) -> "Carried":
        """What `to_arrays` gave, for R places in `kappa` classes; `InvalidModel` where these cannot be it."""
        try:
            method, chosen = numbers["method"], numbers["chosen"]
            if method not in METHOD.values():
                raise InvalidModel(f"groups are learnt as {' or '.join(sorted(set(METHOD.values())))}.")
            every = [require_whole("groups", n, 1) for n in numbers["groups"]]
            if not every or (chosen is not None and every != [chosen]) or len(set(every)) < len(every):
                raise InvalidModel("the numbers of groups are none, or twice the same, or not the one chosen.")
            names = {f"groups.{n}.{part}" for n in every for part in _parts(method)}
            if "people" in numbers:
                names |= {f"walk.{name}" for name in OF_WALK}
            if set(arrays) != names:
                raise InvalidModel("an array of groups or walk is missing, or one too many is there.")
            groups = {n: _groups([arrays[f"groups.{n}.{part}"] for part in _parts(method)], n, kappa) for n in every}
            habits = _habits(arrays, numbers, R) if "people" in numbers else None
            instants = {g.share.shape[1] for g in groups.values()} | (
                {habits.instants} if habits is not None else set()
            )
            if len(instants) != 1:
                raise InvalidModel("groups and walk must be of one number of instants.")
            return Carried(method, groups, habits, chosen)
        except (InvalidParameter, InvalidTraces) as error:
            raise InvalidModel(error.args[0]) from None


def carry(
    people: Traces,
    shared: Traces,
    label: NDArray[np.integer],
    known: NDArray[np.bool_],
    *,
    emission: str,
    archetypes: int | None,
    m_min: int,
    rng: np.random.Generator,
) -> Carried:
    """
    What the model of these people carries for this emission.

    `shared` are the people with rare places merged away, of whom groups are learnt; the walk is learnt from all ways,
    and keeps to `known` places. `archetypes` None: the ladder.
    """
    classes = np.where(shared.r >= 0, label[shared.r], -1)
    kappa, method = int(label.max()) + 1, METHOD[emission]
    if archetypes is not None and archetypes > shared.U:
        raise InvalidParameter(f"`archetypes` must be at most the {shared.U} people of the model, got {archetypes}.")
    groups: dict[int, Archetypes] = {}
    for n in LADDER if archetypes is None else (archetypes,):
        if n > 1 and archetypes is None and n * USERS_TO_A_GROUP > shared.U:
            break
        try:
            found = learn_archetypes(classes, kappa, n, method=method, user=shared.user, m_min=m_min, rng=rng)
        except NotEnoughUsers:
            if archetypes is not None:
                raise
            continue  # a rung less
        groups[len(found.share)] = found
    habits = None
    if emission == "walk":
        habits = learn_habits(people.r, people.locations, known, user=people.user, m_min=m_min, rng=rng)
    return Carried(method, groups, habits, None if archetypes is None else next(iter(groups)))


def _parts(method: str) -> tuple[str, ...]:
    return OF_GROUPS if method == "modes" else OF_GROUPS[:1]


def _groups(parts: list[NDArray[Any]], n: int, kappa: int) -> Archetypes:
    share = parts[0]
    if share.ndim != 3 or share.shape[0] != n or share.shape[1] < 1 or share.shape[2] != kappa:
        raise InvalidModel(f"shares of {n} groups must be an array (groups, instants, {kappa} classes).")
    shapes = (share.shape, share.shape, (n,), (n,))
    if any(
        a.dtype != np.float64 or a.shape != s or not np.isfinite(a).all() for a, s in zip(parts, shapes, strict=False)
    ):
        raise InvalidModel(f"tables of {n} groups must be finite numbers, each of its shape.")
    found = Archetypes(*parts)
    if not np.isclose(found.weights.sum(), 1) or found.weights.min() < 0:
        raise InvalidModel("sizes of groups must sum to 1.")
    return found


def _habits(arrays: Mapping[str, NDArray[Any]], numbers: Mapping[str, Any], R: int) -> Habits:
    a = {name: arrays[f"walk.{name}"] for name in OF_WALK}
    sizes = {"R": R, "K": LENGTHS, "D": COLUMNS + 3, "S": MOVING, "M": a["move"].size, "O": a["pair"].size, "4": 4}
    sizes["L"] = a["lives"].size // 4
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
        or not np.allclose(a["lives"].sum(axis=1), 1)
        or not a["first"].sum() > 0
    ):
        raise InvalidModel("the numbers of the walk cannot be those of any people.")
    reach, people = numbers["reach"], require_whole("people", numbers["people"], 1)
    if not isinstance(reach, float) or not 0 <= reach < np.inf:
        raise InvalidModel("`reach` must be a length.")
    return Habits(**a, reach=reach, people=people)


def _listed(groups: Mapping[int, Archetypes]) -> str:
    return ", ".join(str(n) for n in sorted(groups))
