"""
The semantic seed: for each slot of a seed trace, the set of places a fake may be at (`fig:alg`, E38-E45).

Every place of the seed is replaced by its class, the class is sub-sampled (par_c), places leak into the runs of
neighbouring classes (par_m), and last of all the seed's own place of the slot is removed (par_l).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.errors import (
    InvalidParameter,
    InvalidTraces,
    Unfakeable,
    require_between,
    require_choice,
    require_whole,
)
from elsewhere.paper import _generate_kernels as _kernels
from elsewhere.paper._streams_kernels import open_stream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.int32]

SUBSAMPLE = ("per-fake", "per-instant")
MERGE = ("reach", "independent")


class ClassSets(NamedTuple):
    """
    Semantic classes as the kernels read them; a place of label -1 has no class and is never a candidate (E30).

    The members of class c are `member[start[c] : start[c + 1]]`, those of all classes `everywhere`; `near[c]` lists the
    other classes, nearest first.
    """

    label: Places
    start: Ints
    member: Places
    everywhere: Places
    near: Places

    @staticmethod
    def of(
        label: ArrayLike, *, nearness: ArrayLike | None = None, model_places: ArrayLike | None = None
    ) -> "ClassSets":
        """
        Make the sets from a label per place.

        Parameters
        ----------
        label
            (R,) class of each place, -1 where it is unknown.
        nearness
            (kappa, kappa) mean edge weight between classes; without it larger classes are nearer. Equal ones: lowest
            number first.
        model_places
            (R,) mask of the places that may be candidates; by default all that have a class.

        Examples
        --------
        >>> ClassSets.of([0, 1, -1, 0]).member.tolist()
        [0, 3, 1]

        """
        labels = _check_labels(label)
        kappa = max(int(labels.max()) + 1, 0)
        known = labels >= 0
        if model_places is not None:
            mask = np.asarray(model_places)
            if mask.dtype != np.bool_ or mask.shape != labels.shape:
                raise InvalidParameter(f"`model_places` must be a mask of {len(labels)} truth values.", code="E_SHAPE")
            known = known & mask
        everywhere = np.flatnonzero(known).astype(np.int32)
        member = everywhere[np.argsort(labels[everywhere], kind="stable")]
        size = np.bincount(labels[everywhere], minlength=kappa)
        if nearness is None:
            weight = np.broadcast_to(size.astype(np.float64), (kappa, kappa))
        else:
            weight = np.asarray(nearness, dtype=np.float64)
            if weight.shape != (kappa, kappa) or np.any(np.isnan(weight)):
                raise InvalidParameter(
                    f"`nearness` must be numbers of shape ({kappa}, {kappa}), one row per class.", code="E_SHAPE"
                )
        order = np.argsort(-weight, axis=1, kind="stable")
        near = order[order != np.arange(kappa)[:, None]].reshape(kappa, max(kappa - 1, 0))
        return ClassSets(
            labels, np.concatenate([[0], np.cumsum(size)]).astype(np.int64), member, everywhere, near.astype(np.int32)
        )

    @property
    def kappa(self) -> int:
        """Return the number of classes."""
        return len(self.start) - 1


def _check_labels(label: Any) -> Places:
    labels = np.asarray(label)
    if labels.ndim != 1 or labels.size == 0 or not np.issubdtype(labels.dtype, np.integer):
        raise InvalidTraces("`label` must be a vector of whole numbers, one class per place.", code="E_SHAPE")
    if labels.min() < -1 or labels.max() >= len(labels):
        raise InvalidTraces(f"`label` must be in -1 .. {len(labels) - 1}.", code="E_INDEX")
    return np.array(labels, dtype=np.int32)


@dataclass(frozen=True)
class Blur:
    """
    Parameters of the semantic seed.

    Parameters
    ----------
    par_c
        Probability that a place is removed from its class, in [0, 1); `"per-instant"` is .25 with a fresh draw at
        every slot (E39).
    par_m
        A place joins a slot of the neighbouring run d slots away with probability par_m^d, in [0, 1) (E42).
    par_l
        Probability that seed(t) is removed from the set of slot t, in [0, 1] (E40).
    c_min
        Places a class must have outside those of the seed, else it is widened with the nearest classes (E30). 1, the
        paper's, widens nothing and leaves it to the ladder of E45.
    subsample
        One C' `"per-fake"`, or a fresh one `"per-instant"` (E39).
    merge
        `"reach"`: one reach per place and boundary; `"independent"`: a draw at each slot (E42).

    """

    par_c: float | str = 0.25
    par_m: float = 0.75
    par_l: float = 1.0
    c_min: int = 1
    subsample: str = "per-fake"
    merge: str = "reach"

    def __post_init__(self) -> None:
        require_choice("subsample", self.subsample, SUBSAMPLE)
        require_choice("merge", self.merge, MERGE)
        par_c = self.par_c
        if isinstance(par_c, str):
            require_choice("par_c", par_c, SUBSAMPLE[1:])
            object.__setattr__(self, "subsample", par_c)
            par_c = 0.25
        object.__setattr__(self, "par_c", require_between("par_c", par_c, 0, 1, open_high=True))
        require_between("par_m", self.par_m, 0, 1, open_high=True)
        require_between("par_l", self.par_l, 0, 1)
        require_whole("c_min", self.c_min, 1)

    def numbers(self) -> "BlurNumbers":
        """Return the numbers as the kernels read them."""
        return BlurNumbers(
            float(self.par_c),
            self.subsample == "per-instant",
            float(self.par_m),
            self.merge == "independent",
            float(self.par_l),
            int(self.c_min),
        )


class BlurNumbers(NamedTuple):
    """A `Blur` without words."""

    par_c: float
    per_instant: bool
    par_m: float
    independent: bool
    par_l: float
    c_min: int


@dataclass(frozen=True, eq=False)
class SemanticSeed:
    """
    Candidate sets: those of slot t are `places[offset[t] : offset[t + 1]]`, sorted.

    `step[t]` is the step of the ladder of E45 that the set needed: 0 none; 1 only merged neighbours are left; 2 the
    whole class before sub-sampling; 3 the nearest class; 4 all places of the model.
    """

    offset: Ints
    places: Places
    step: NDArray[np.int8]

    def __post_init__(self) -> None:
        if len(self.offset) < 2 or np.any(np.diff(self.offset) <= 0):
            raise Unfakeable("a slot has an empty candidate set.")

    @staticmethod
    def of(sets: "list[ArrayLike]") -> "SemanticSeed":
        """
        Make a semantic seed from one list of places per slot.

        Examples
        --------
        >>> SemanticSeed.of([[2, 1], [0]])[0].tolist()
        [1, 2]

        """
        unique = [np.unique(np.asarray(places, dtype=np.int32)) for places in sets]
        offset = np.cumsum([0, *map(len, unique)], dtype=np.int64)
        return SemanticSeed(offset, np.concatenate([*unique, np.zeros(0, np.int32)]), np.zeros(len(unique), np.int8))

    def __len__(self) -> int:
        return len(self.offset) - 1

    def __getitem__(self, t: int) -> Places:
        if not 0 <= t < len(self):
            raise IndexError(f"slot must be in 0 .. {len(self) - 1}, got {t}.")
        return self.places[self.offset[t] : self.offset[t + 1]]


def stream_key(rng: np.random.Generator) -> NDArray[np.uint64]:
    """Return 128 bits that start the streams of a run (R1)."""
    return rng.integers(0, 2**64, size=2, dtype=np.uint64)


def semantic_seed(
    seed: ArrayLike,
    label: ArrayLike,
    *,
    par_c: float | str = 0.25,
    par_m: float = 0.75,
    par_l: float = 1.0,
    c_min: int = 1,
    subsample: str = "per-fake",
    merge: str = "reach",
    nearness: ArrayLike | None = None,
    model_places: ArrayLike | None = None,
    rng: np.random.Generator,
) -> SemanticSeed:
    """
    Draw the semantic seed of one trace, with a fresh sub-sample of the classes at every call.

    A slot at a place without a class (-1), or missing, has no class to draw from: its set is what its neighbours
    merge into it, else all places of the model (steps 1 and 4 of E45).

    Parameters
    ----------
    seed
        (L,) places.
    label, nearness, model_places
        See `ClassSets.of`.
    par_c, par_m, par_l, c_min, subsample, merge
        See `Blur`.
    rng
        Gives the 128 bits that start the stream of this call.

    Examples
    --------
    >>> sets = semantic_seed([0, 0, 3], [0, 0, 0, 1, 1], par_c=0, par_m=0, rng=np.random.default_rng(1))
    >>> [sets[t].tolist() for t in range(3)]
    [[1, 2], [1, 2], [4]]

    """
    blur = Blur(par_c, par_m, par_l, c_min, subsample, merge)
    classes = ClassSets.of(label, nearness=nearness, model_places=model_places)
    return blur_seed(_check_seed(seed, len(classes.label)), classes, blur, open_stream(stream_key(rng), 0, 0))


def blur_seed(seed: Places, classes: ClassSets, blur: Blur, stream: NDArray[np.uint64]) -> SemanticSeed:
    """Do the same from checked parts, with an open stream."""
    offset, places, step = _kernels.semantic_seed(seed, classes, blur.numbers(), stream)
    if len(places) == 0:
        t = int(np.argmin(step))
        raise Unfakeable(
            f"slot {t} of {len(seed)}: no candidate is left once the seed's own places are removed "
            f"(`c_min` {blur.c_min}, {len(classes.everywhere)} places with a class)."
        )
    return SemanticSeed(offset, places, step)


def _check_seed(seed: Any, R: int) -> Places:
    places = np.asarray(seed)
    if places.ndim != 1 or places.size == 0 or not np.issubdtype(places.dtype, np.integer):
        raise InvalidTraces("`seed` must be a vector of whole numbers, one place per slot.", code="E_SHAPE")
    if places.min() < -1 or places.max() >= R:
        raise InvalidTraces(f"`seed` must hold places in 0 .. {R - 1}, or -1 where missing.", code="E_INDEX")
    return np.array(places, dtype=np.int32)
