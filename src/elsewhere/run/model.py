"""
What is learnt from people before any fake is made: the aggregate model, the semantic classes, the clock; and, for the
deniable preset, archetypes and walk of its people.

Rare places are merged away first: nothing shown later rests on fewer than `m_min` people (E31).

On disk it is `model.npz` (arrays, no pickle) and `model.json`, written last, which names the arrays with their shapes
and the file with its sha256. Both hold sums over users that at least `m_min` of them share, and weights learnt
from all, never a user.
"""

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from elsewhere._version import __version__
from elsewhere.errors import InvalidModel, InvalidParameter, InvalidTraces, public, require_whole
from elsewhere.files import check_folder, pack_arrays, read_arrays, read_index, read_listed, write_folder
from elsewhere.paper.aggregate import AggregateModel, aggregate
from elsewhere.paper.profiles import fit_profiles
from elsewhere.paper.semantic_clustering import (
    LocationGraph,
    SemanticClasses,
    semantic_clustering,
    semantic_graph,
)
from elsewhere.privacy.deniable.carried import Carried
from elsewhere.privacy.deniable.carried import carry as carry_of
from elsewhere.run.presets import Kappa, LearningOptions, Preset, PresetName, preset_of
from elsewhere.run.roles import Contributors
from elsewhere.synthesis.walk.ways import MOST_PLACES, Ways
from elsewhere.traces.maps import Moves, matrix_of, read_moves
from elsewhere.traces.model import Evidence, Ints, Locations, Periods, Places, Traces, describe_difference


def merge_rare(traces: Traces, m_min: int) -> tuple[Traces, Ints]:
    """
    Return the traces without places that fewer than `m_min` users visit, and (R,) what stands for each place.

    A rare place becomes the geographically nearest surviving one; nothing (-1) stands for one without coordinates.
    `m_min` = 1 changes nothing.

    Examples
    --------
    >>> import elsewhere as ew
    >>> three = ew.Traces([[0, 1], [0, 2], [0, 2]], ew.Locations(xy=[[0, 0], [1, 0], [5, 0]]))
    >>> shared, place = merge_rare(three, 2)
    >>> shared.r.tolist(), place.tolist()
    ([[0, 0], [0, 2], [0, 2]], [0, 0, 2])

    """
    require_whole("m_min", m_min, 1)
    place = np.arange(traces.R)
    if m_min == 1:
        return traces, place
    users = traces.visitors()
    rare, common = users < m_min, np.flatnonzero(users >= m_min)
    if len(common) == 0:
        raise InvalidTraces(
            f"no place is visited by `m_min` = {m_min} users: nothing would be left; give more users or larger places "
            "(a lower `m_min` is less privacy).",
            code="E_SUPPRESSED",
        )
    where = traces.locations
    if where.has_coordinates:
        place[rare] = common[where.select(common).nearest(where.points()[rare])[0]]
    else:
        place[rare] = -1
    return _replaced(traces, place), place


def _replaced(traces: Traces, place: Ints) -> Traces:
    """Return the traces with `place[r]` for each place r; rows of which nothing is left are left out."""
    r = np.where(traces.r >= 0, place[traces.r], -1)
    left = np.any(r >= 0, axis=1)
    if not left.all():
        traces, r = traces.select(left), r[left]
    evidence = None
    if traces.evidence is not None:
        e = traces.evidence
        known = place[e.place] >= 0
        stands = place[e.place[known]].astype(np.int32)
        evidence = Evidence(e.row[known], e.slot[known], stands, e.weight[known])
    return traces.with_map(traces.locations, r, evidence)


KIND, FORMAT = "elsewhere model", 1
LARGEST = 2**31  # bytes in one array


@dataclass(frozen=True, eq=False)
class FittedModel:
    """
    Model, classes and clock, learnt under one preset.

    `place[r]` is the place that stands for r after rare places were merged away, -1 where none does (E31).
    `carried` is what the deniable preset needs; None in other presets.
    `contributors` tells who must not be a seed; it is no part of the model file.
    """

    model: AggregateModel
    classes: SemanticClasses
    preset: Preset
    place: Ints = field(repr=False)
    contributors: Contributors | None = field(default=None, repr=False)
    carried: Carried | None = field(default=None, repr=False)

    def tau(self, traces: Traces) -> Ints:
        """Return the period of each slot of these traces; a model of one period serves any clock."""
        if self.model.T == 1:
            return np.zeros(traces.L, dtype=np.int64)
        clock = Periods.of(self.preset.periods)
        if clock.T != self.model.T:
            raise InvalidParameter(
                f"`periods` must be those of the model, {self.model.T}, or the model must have one; got {clock.T}.",
                code="E_MISMATCH",
            )
        return clock.of_minute(traces.minutes()).astype(np.int64)

    @cached_property
    def ways(self) -> Ways | None:
        """Return how walks keep to allowed moves between known places; None if all are allowed."""
        if self.model.feasible is None:
            return None
        return Ways.of(self.model.feasible, self.known, self.model.locations)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Tell (R,) which places enough users share to stand in a fake or on a published map (E31)."""
        return np.asarray(self.model.visitors >= self.preset.m_min)

    def classes_of(self, r: Places) -> Ints:
        """Return the class of each slot of these days, of the place that stands for it; -1 where it is not known."""
        place = np.where(r >= 0, self.place[r], -1)
        return np.where(place >= 0, self.classes.label[place], -1)

    def translate(self, traces: Traces) -> Traces:
        """
        Return the same traces with rare places replaced by those that stand for them.

        On a map without coordinates nothing stands for a place that the model's people never visit: such slots become
        missing, and rows without any other are left out.
        """
        if self.model.locations != traces.locations:
            raise other_map_error(self.model.locations, traces.locations)
        if np.array_equal(self.place, np.arange(len(self.place))):
            return traces
        return _replaced(traces, self.place)

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write `model.npz` and `model.json` into a folder."""
        check_folder(Path(folder), force=force)
        write_folder(Path(folder), self.files(), force=force)

    def files(self) -> dict[str, bytes]:
        """Return the files of the model, name -> content, the index last."""
        # a move that a single user has made is that user's
        arrays, numbers = self.model.suppressed(self.preset.m_min).to_arrays()
        arrays = {f"model.{name}": array for name, array in arrays.items()}
        arrays |= {"label": self.classes.label, "place": self.place}
        if self.classes.nearness is not None:
            arrays["nearness"] = self.classes.nearness
        carried = None
        if self.carried is not None:
            parts, carried = self.carried.to_arrays()
            arrays |= {f"carried.{name}": array for name, array in parts.items()}
        content = pack_arrays(arrays)
        index = {
            "kind": KIND,
            "format": FORMAT,
            "version": __version__,
            "geometry": self.model.locations.fingerprint(),
            "preset": self.preset.to_file(),
            "numbers": numbers,
            "carried": carried,
            "arrays": {name: {"dtype": a.dtype.str, "shape": list(a.shape)} for name, a in arrays.items()},
            "files": {"model.npz": hashlib.sha256(content).hexdigest()},
        }
        return {"model.npz": content, "model.json": (json.dumps(index, indent=1) + "\n").encode()}

    @staticmethod
    def load(folder: str | Path) -> "FittedModel":
        """Read a model folder; everything is checked before anything is allocated (B52)."""
        index, data = _read(Path(folder))
        arrays = _arrays(data, index.get("arrays", {}))
        try:
            numbers = index["numbers"]
            model = AggregateModel.from_arrays(_under("model.", arrays), numbers)
            preset = Preset.of_file(index["preset"])
            classes = SemanticClasses(arrays["label"], nearness=arrays.get("nearness"))
            place = arrays["place"]
            carried = None
            if (parts := index["carried"]) is not None:
                carried = Carried.from_arrays(_under("carried.", arrays), parts, R=model.R, kappa=classes.kappa)
        except InvalidModel:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise InvalidModel("the model's index and its arrays do not fit together.") from None
        if model.locations.fingerprint() != index.get("geometry"):
            raise InvalidModel("the model's map is not the one its index names.")
        if len(classes.label) != model.R or place.shape != (model.R,) or place.min() < -1 or place.max() >= model.R:
            raise InvalidModel("the model's classes and places do not fit its map.")
        return FittedModel(model, classes, preset, place, carried=carried)


@public
def learn(
    traces: Traces,
    preset: PresetName | Preset = "product",
    *,
    kappa: Kappa = "auto",
    feasible: Any = None,
    carry: bool = True,
    rng: np.random.Generator | None = None,
    **options: Unpack[LearningOptions],
) -> FittedModel:
    """
    Learn model and classes of these people (`SemanticClustering`, first lines of `GenerateFake`, fig:alg).

    Places with fewer than `m_min` visitors are merged away first, so nothing learnt rests on fewer people (E31). In the
    deniable preset it carries archetypes and walk too, by which fakes are made without these people's traces; `carry`
    False leaves them out, which is faster. `feasible` forbids moves, as for `generate_fakes`. `options` are parameters
    of the preset by which people are learnt from, such as `m_min`; without `rng` the operating system's entropy is
    asked.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> town = ew.simulate_town(users=60, locations=100, rng=np.random.default_rng(1))
    >>> ew.learn(town.traces, "product", m_min=2, c_min=1, kappa=6, rng=np.random.default_rng(2)).classes.kappa
    6

    """
    settings = preset_of(preset, **options)
    if not isinstance(traces, Traces):
        raise InvalidParameter(f"`traces` must be a `Traces`, got {type(traces).__name__}.")
    if settings.learning is None:
        raise InvalidParameter(f'preset "{settings.name}" learns and draws in one step: call `generate_fakes`.')
    rng = rng if rng is not None else np.random.default_rng(np.random.SeedSequence())
    people, place = merge_rare(traces, settings.m_min)
    profiles = fit_profiles(people, periods=settings.periods, missing="skip")
    moves = None
    if feasible is not None:
        made = is_data(feasible)
        moves = _moves_made(people, settings.m_min) if made else allowed_moves(feasible, traces.locations)
    elif settings.name != "paper":
        moves = _moves_within_reach(traces, settings.m_min)
    model = aggregate(
        profiles,
        traces.locations,
        epsilon=settings.epsilon,
        n_min=settings.n_min,
        feasible=moves,
    )
    # whoever was moved to a place because theirs is rare does not make it one that more people share
    model = replace(model, visitors=np.where(place == np.arange(len(place)), traces.visitors(), 0))
    # classes are told by the hour better than moves are (docs/decisions/0001-classes.md)
    finer = fit_profiles(people, periods=settings.class_periods or settings.periods, missing="skip")
    graph = semantic_graph(finer)
    classes = _classes(graph, kappa, settings, people, rng)
    learnt = FittedModel(model, classes, settings, place, Contributors.of(traces))
    return add_archetypes(learnt, traces, rng) if carry and settings.name == "deniable" else learnt


def is_data(feasible: Any) -> bool:
    """Return whether the moves that people make are asked for, not a table."""
    return isinstance(feasible, str) and feasible == "data"


def allowed_moves(feasible: Any, locations: Locations) -> Any:
    """Return the moves that a caller allows as a matrix (R, R) of 0 and 1, None where all are: see `read_moves`."""
    if feasible is None:
        return None
    if isinstance(feasible, np.ndarray) or hasattr(feasible, "tocsr"):  # a matrix as for `aggregate`
        return feasible
    return (feasible if isinstance(feasible, Moves) else read_moves(feasible)).matrix(locations)


def _moves_made(people: Traces, m_min: int) -> Any:
    """Return the moves that at least `m_min` of these people make: one of fewer would be theirs."""
    here, there = people.r[:, :-1].astype(np.int64), people.r[:, 1:].astype(np.int64)
    moved = (here >= 0) & (there >= 0) & (here != there)
    key = (here * people.R + there) * people.U + people.user[:, None]
    move, users = np.unique(np.unique(key[moved]) // people.U, return_counts=True)
    move = move[users >= m_min]
    if len(move) == 0:
        raise InvalidParameter(
            f'`feasible="data"` keeps the moves that `m_min` = {m_min} people or more make, and there is none: give '
            "more people or larger places, or a table of allowed moves.",
            code="E_FEASIBLE",
        )
    return matrix_of(move // people.R, move % people.R, people.R)


WIDER_THAN_A_CITY, ALWAYS_IN_REACH = 100.0, 50.0  # kilometres
SOMEWHAT_FARTHER = 1.25


def _moves_within_reach(traces: Traces, m_min: int) -> Any:
    """
    Return the moves up to a quarter longer than the longest that `m_min` people make in one slot, and up to 50 km.

    None, all moves, where no two shared places are more than 100 km apart: fakes of one city are as they were. On a map
    of several cities walks would else go from one to another within a slot, since rare places on the way are merged.
    """
    known = np.flatnonzero(traces.visitors() >= m_min)
    if traces.locations.lat is None or not 1 < len(known) <= MOST_PLACES:
        return None
    if np.hypot(*np.ptp(traces.locations.planar()[known], axis=0)) <= WIDER_THAN_A_CITY:
        return None  # without all pairs of places
    here, there = (known[each.ravel()] for each in np.indices((len(known), len(known))))
    length = traces.locations.distance(here, there)
    if length.max() <= WIDER_THAN_A_CITY:
        return None
    row, slot = np.nonzero((traces.r[:, :-1] >= 0) & (traces.r[:, 1:] >= 0) & (traces.r[:, :-1] != traces.r[:, 1:]))
    longest = np.zeros(traces.U)
    np.maximum.at(longest, traces.user[row], traces.locations.distance(traces.r[row, slot], traces.r[row, slot + 1]))
    near = length <= max(SOMEWHAT_FARTHER * np.sort(longest)[-min(m_min, traces.U)], ALWAYS_IN_REACH)
    if near.all() or not (near & (here != there)).any():
        return None
    return matrix_of(here[near], there[near], traces.R)


def note_areas(people: Traces, m_min: int) -> tuple[str, ...]:
    """Return a note where people live in areas far from each other, each of `m_min` people at least; else nothing."""
    if people.locations.lat is None:
        return ()
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    # the place where each person is most of the time
    known = people.r >= 0
    key, slots = np.unique((people.user[:, None] * people.R + people.r)[known], return_counts=True)
    order = np.lexsort((slots, key // people.R))
    main = key[order][np.flatnonzero(np.diff(key[order] // people.R, append=-1))] % people.R
    xy = people.locations.planar()[main]
    # areas of cells of 10 km: there are few, however many people live in one
    cells, cell = np.unique(np.floor(xy / 10), axis=0, return_inverse=True)
    tree = cKDTree(10 * cells)
    area = connected_components(tree.sparse_distance_matrix(tree, ALWAYS_IN_REACH), directed=False)[1][cell.ravel()]
    number = np.bincount(area)
    large = np.argsort(-number, kind="stable")[: np.count_nonzero(number >= m_min)]
    if len(large) < 2:
        return ()
    centre = [np.median(xy[area == each], axis=0) for each in large]
    apart = max(float(np.hypot(*(a - b))) for a in centre for b in centre)
    if apart <= WIDER_THAN_A_CITY:
        return ()
    each = ", ".join(f"{number[i]:,}" for i in large[:-1]) + f" and {number[large[-1]]:,}"
    return (
        f"people live in {len(large)} areas up to {apart:.0f} km apart ({each} people): more fakes than people may go "
        "from one to another. To make fakes of one area alone, read it by itself (`box`).",
    )


def other_map_error(model: Locations, here: Locations) -> InvalidParameter:
    """Return the error for a model of another map than that of the traces (B53): what differs, and what to do."""
    return InvalidParameter(
        f"`model` must be on the map of the traces: {describe_difference(model, here)}. The places of a map found in "
        "one group of people differ from those found in another: give the same `locations` (a file of places) or the "
        "same `regions` (polygons) when the model is learnt and here, or learn the model from these people.",
        code="E_MISMATCH",
    )


def add_archetypes(learnt: FittedModel, people: Traces, rng: np.random.Generator) -> FittedModel:
    """Return the same with archetypes and walk of these people, which the deniable preset makes its fakes of."""
    settings = learnt.preset
    carried = carry_of(
        people,
        learnt.translate(people),
        learnt.classes.label,
        learnt.known,
        archetypes=settings.archetypes,
        eps0=settings.eps0,
        m_min=settings.m_min,
        rng=rng,
    )
    return replace(learnt, carried=carried)


def _classes(
    graph: LocationGraph, kappa: int | str, settings: Preset, people: Traces, rng: np.random.Generator
) -> SemanticClasses:
    """
    Return the classes of one clustering, or the most informative of `class_draws`, all of one number of classes.

    That number is what the first one has: "auto" chooses once. What `c_min` merges away differs from draw to draw, and
    how people agree in few classes is not compared with how they do in many.
    """
    options: dict[str, Any] = {"method": settings.method, "c_min": settings.c_min, "rng": rng}
    clusterings = [semantic_clustering(graph, kappa=kappa, **options)]
    number = clusterings[0].kappa
    if settings.class_draws == 1 or number < 2:
        return clusterings[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first has said how many classes there are
        wish = number if isinstance(kappa, str) else kappa
        clusterings += [semantic_clustering(graph, kappa=wish, **options) for _ in range(settings.class_draws - 1)]
    return most_informative([classes for classes in clusterings if classes.kappa == number], people.r, rng)


def _under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _read(folder: Path) -> tuple[dict[str, Any], bytes]:
    try:
        index = read_index(folder / "model.json")
        if index.get("kind") != KIND:
            raise InvalidModel("model.json is not the index of a model.")
        if index.get("format") != FORMAT:
            raise InvalidModel(
                f"the model has format {index.get('format')!r}; this version of elsewhere reads format {FORMAT}."
            )
        data = read_listed(folder, "model.npz", index, LARGEST)
    except OSError:
        raise InvalidModel(f"{folder} holds no model: model.json and model.npz cannot be read.") from None
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, InvalidModel):
            raise
        reason = str(error) if str(error).startswith("model.npz") else "model.json is not the index of a model"
        raise InvalidModel(f"{reason}.") from None
    return index, data


def _arrays(data: bytes, declared: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the arrays that the index declares, each of the type and shape that it gives."""
    try:
        size = sum(int(np.prod(d["shape"], dtype=object)) * np.dtype(d["dtype"]).itemsize for d in declared.values())
        # .npy headers are 64-byte blocks, far below a kilobyte; a bomb declares little and unpacks much
        arrays = read_arrays(data, min(LARGEST, size + 1024 * len(declared)))
        kinds = {name: (d["dtype"], d["shape"]) for name, d in declared.items()}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise InvalidModel("model.npz cannot be read as the arrays that model.json declares.") from None
    if {name: (array.dtype.str, list(array.shape)) for name, array in arrays.items()} != kinds:
        raise InvalidModel("the arrays of model.npz have other names, types or shapes than model.json declares.")
    return arrays


NEIGHBOUR_SHARE = 1 / 8  # of all people: those who agree most with a person
MOST_PEOPLE = 500  # that are compared with each other


def most_informative(
    candidates: Sequence[SemanticClasses], r: NDArray[np.integer], rng: np.random.Generator
) -> SemanticClasses:
    """
    Return the classes with the largest `neighbour_agreement` of traces (N, L), the first of equals.

    Of more than MOST_PEOPLE people some are drawn.
    """
    if len(r) > MOST_PEOPLE:
        r = r[np.sort(rng.permutation(len(r))[:MOST_PEOPLE])]
    labels = [np.append(classes.label, -1)[r] for classes in candidates]  # a gap, -1, is the last: in no class
    # rounded: the order of sums must not decide between equals (R5)
    return candidates[int(np.argmax([round(neighbour_agreement(label), 9) for label in labels]))]


def neighbour_agreement(label: Ints) -> float:
    """
    Return how much more people agree with the eighth of the others who agree most with them than with anybody.

    Two people of (N, L) agree at the slots at which they are in one class; -1 is in none.
    """
    N, L = label.shape
    if N < 2:
        return 0.0
    same = np.zeros((N, N), dtype=np.int32)  # slots at which two people are in one class
    for at in label.T:
        same += (at[:, None] == at) & (at >= 0)
    others = (same / L)[~np.eye(N, dtype=bool)].reshape(N, N - 1)
    like = max(1, round(NEIGHBOUR_SHARE * N))
    return float(np.sort(others, axis=1)[:, -like:].mean() - others.mean())
