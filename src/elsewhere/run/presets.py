"""
The three presets, each made of parts, and how a caller changes one parameter.

- `paper`     reproduces the paper: its formulas, its tests, model and alternates from the seeds themselves;
- `product`   publishes walks paired with seeds, with every test of the paper in its strictest reading, on split users;
- `private`   publishes walks learnt from noisy sums over everybody, with a proof for everybody, and has no seeds.

A part holds what one step of a run reads, and checks itself when it is made. A preset has the parts of its steps and no
others: what it does not read it does not have, and whoever gives it is told so. The letters are the paper's, E-numbers
stand in docs/readings.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias, TypedDict

from elsewhere.errors import InvalidParameter, require_between, require_choice, require_whole

PresetName: TypeAlias = Literal["paper", "product", "private"]
NAMES: tuple[PresetName, ...] = ("paper", "product", "private")
Kappa: TypeAlias = int | Literal["auto"]  # number of semantic classes
PUBLIC_GAP = "6h"  # that the private preset fills: how long gaps are is a matter of the people it protects
MISSING = ("drop", "gibbs")  # E4
DRAWN_GAP = "1h"  # that is filled by `gaps` where longer ones are drawn
CHOICES = ("uniform", "likelihood")  # E62
BY_COORDINATES = ("shared", "merge", "grid", "stays")


@dataclass(frozen=True)
class Reading:
    """
    How an input is read: the keywords of `read_traces`, and `grid`.

    What is "auto" in `places`, `max_gap` and `map` is as the `reading` of the preset says, if it says so. `grid`
    (south, west, north, east, N) makes N equal cells of a box in degrees the places; the name of a town makes it the
    cells about that town. `columns`, `box` and `grid` may also be texts, as the command line has them:
    "user=id,time=#4", "S,W,N,E" and "S,W,N,E,N" or "TOWN,N".
    """

    cells: int | None = 400
    step: str | float | timedelta = "auto"
    tz: str | None = None
    locations: Any = None
    columns: Mapping[str, str | None] | str | None = None
    format: str = "auto"
    date_format: str | None = None
    encoding: str = "utf-8"
    max_bad: float = 0.01
    start: str | None = None
    gaps: str = "hold"
    max_gap: str | float | timedelta = "auto"
    min_coverage: float = 0.5
    places: str = "auto"
    regions: Any = None
    grid: str | Sequence[float] | None = None
    map: str = "auto"
    box: Sequence[float] | str | None = None
    lon360: bool = False
    any_date: bool = False
    allow_truncated: bool = False

    def keywords(self, preset: "Preset") -> dict[str, Any]:
        """Return the keywords of `read_traces` under this preset."""
        usual, regions, tz = preset.reading, self.regions, self.tz
        public = isinstance(preset.certificate, NoisySums)
        if self.grid is not None:
            from elsewhere.traces.maps import read_grid

            if self.regions is not None or self.locations is not None or self.box is not None:
                raise InvalidParameter("`grid` is a map of its own: leave out `locations`, `regions` and `box`.")
            regions = read_grid(self.grid)
        if public:
            self._require_public(preset.eps, preset.delta)
            tz = self.tz or _zone_of_map(self.locations, regions, self.encoding)
        as_given = {name: value for name, value in vars(self).items() if name != "grid"}
        return as_given | {
            "tz": tz,
            "columns": _columns(self.columns) if isinstance(self.columns, str) else self.columns,
            "max_gap": usual.max_gap if self.max_gap == "auto" else self.max_gap,
            "map": "whole" if public else usual.map if self.map == "auto" else self.map,
            "places": usual.places if self.places == "auto" else self.places,
            "regions": regions,
            "box": self.box.split(",") if isinstance(self.box, str) else self.box,
        }

    def _require_public(self, eps: float, delta: float) -> None:
        """Refuse a map that would be found in the people whom the private preset protects; say how many it needs."""
        if self.grid is None and self.locations is None and self.regions is None:
            from elsewhere.privacy.private.release import people_needed

            raise InvalidParameter(
                'preset "private" protects everybody in the file, so the map must not come from the file: name its '
                'town, such as `grid="Tokyo"` (40 km about its centre, 400 cells), or a box chosen without looking '
                'at the data, such as `grid="35.5,139.5,35.9,140.0,400"` (south, west, north, east, number of '
                "cells), or a file of public places as `locations` or `regions`. With a map it needs about "
                f"{people_needed(eps, delta):,} people with a usable day at eps = {eps:g}; `elsewhere plan` counts.",
                code="E_MAP",
            )

    def completed_from(self, facts: Mapping[str, Any]) -> "Reading":
        """Return the same; what was not given is as it was when the input of a folder was read, see `made_by`."""
        options: dict[str, Any] = {}
        if facts.get("step_minutes") is not None:
            options["step"] = f"{facts['step_minutes']:g}min"
        if facts.get("places_by") in BY_COORDINATES:
            options |= {"places": facts["places_by"], "cells": facts.get("cells", self.cells)}
        if facts.get("max_gap_auto") is False:
            options |= {"max_gap": f"{facts['max_gap_minutes']:g}min"}
        options |= {"gaps": facts.get("gaps", self.gaps)}
        default = {f.name: f.default for f in fields(self)}
        return replace(self, **{n: v for n, v in options.items() if getattr(self, n) == default[n]})


AS_IT_COMES = Reading()


def _zone_of_map(locations: Any, regions: Any, encoding: str) -> str:
    """Return the zone in which the given map lies, not the people on it; UTC where the map does not tell."""
    from elsewhere.traces.clock import find_zone
    from elsewhere.traces.maps import read_places, read_regions

    if regions is not None:
        places = (regions if hasattr(regions, "locations") else read_regions(regions)).locations
    else:
        places = read_places(locations, encoding=encoding).locations
    if places.lat is None or places.lon is None:
        return "UTC"
    return find_zone(places.lat, places.lon)[0] or "UTC"


def _columns(text: str) -> dict[str, str | None]:
    """Return the columns that "ROLE=NAME,ROLE=NAME" says."""
    pairs: dict[str, str | None] = {}
    for word in text.split(","):
        role, equals, name = word.partition("=")
        if not equals or not role.strip():
            raise InvalidParameter(f"`columns` must be ROLE=NAME,ROLE=NAME, got {text!r}.")
        pairs[role.strip()] = name or None  # an empty name leaves a role out
    return pairs


def _checked(default: Any, require: Callable[..., Any], *limits: Any, kind: type = object, **ends: bool) -> Any:
    """Return a field of a part: `require(name, value, *limits)` refuses values; only those of one `kind` are asked."""
    return field(default=default, metadata={"require": require, "limits": limits, "ends": ends, "kind": kind})


@dataclass(frozen=True)
class _Part:
    """Parameters that are checked, one by one, when they are put together; None is right where it is the default."""

    def __post_init__(self) -> None:
        for parameter in fields(self):
            name, value, rule = parameter.name, getattr(self, parameter.name), parameter.metadata
            if getattr(value, "shape", None) == () and hasattr(value, "item"):
                value = value.item()  # numpy's numbers are numbers, but not for the manifest
                object.__setattr__(self, name, value)
            if isinstance(value, rule["kind"]) and not (value is None and parameter.default is None):
                rule["require"](name, value, *rule["limits"], **rule["ends"])


@dataclass(frozen=True)
class Learning(_Part):
    """How model and classes are learnt from people."""

    periods: int | tuple[float, ...] = _checked(1, require_whole, 1, kind=int)  # E5, E24
    # periods of the graph; None: those of the model
    class_periods: int | tuple[float, ...] | None = _checked(None, require_whole, 1, kind=int)
    method: str = _checked("kmeans", require_choice, ("roles", "kmeans"))  # E28 (docs/decisions/0001-classes.md)
    # clusterings of which the most informative is taken (docs/decisions/0009-telling.md)
    class_draws: int = _checked(1, require_whole, 1, 1000)
    c_min: int = _checked(1, require_whole, 1)  # E30
    m_min: int = _checked(1, require_whole, 1)  # E31
    epsilon: float = _checked(0.01, require_between, 0, math.inf, open_low=True, open_high=True)  # E34
    n_min: int = _checked(5, require_whole, 1)  # E37


@dataclass(frozen=True)
class Decoding(_Part):
    """How the paper makes a fake of its seed: candidate sets, and a decoder."""

    sampler: str = _checked("viterbi", require_choice, ("viterbi", "ffbs"))  # E46, E49
    par_c: float = _checked(0.25, require_between, 0, 1, open_high=True)  # E39
    par_m: float = _checked(0.75, require_between, 0, 1, open_high=True)  # E42
    par_l: float = _checked(1.0, require_between, 0, 1)  # E40
    par_v: float = _checked(4.0, require_between, 1, math.inf, open_high=True)  # E46
    # E39: one sub-sample of the classes, or a fresh one "per-instant"
    subsample: str = _checked("per-fake", require_choice, ("per-fake", "per-instant"))
    # E42: one reach per place and boundary, or "independent" draws
    merge: str = _checked("reach", require_choice, ("reach", "independent"))


RELAXED = ("par_s", "par_i")


def _require_relaxed(name: str, value: Any) -> None:
    if not isinstance(value, tuple) or not set(value) <= set(RELAXED):
        raise InvalidParameter(f"`{name}` must be a tuple of {' and '.join(RELAXED)}, got {value!r}.")


@dataclass(frozen=True)
class Pairing(_Part):
    """How the product pairs walks with seeds."""

    # minutes by which a fake's whole day may be earlier or later than its seed's (decision 24)
    shift: float = _checked(0.0, require_between, 0, 720)
    # how closely all fakes together follow the walk model; less keeps more of the seeds
    balance: float = _checked(1.0, require_between, 0, 1)
    # limits that rise, seed by seed, to what strangers have in common with it; one that is given does not (decision 54)
    relaxed: tuple[str, ...] = _checked(RELAXED, _require_relaxed)


@dataclass(frozen=True)
class Rules(_Part):
    """What every fake is tested for, and against whom; and which of those that passed are published."""

    par_s: float = _checked(0.1, require_between, 0, 1)  # E51
    par_i: int = _checked(0, require_whole, 0)  # E50
    par_d: float = _checked(0.1, require_between, 0, 1)  # E51
    k: int = _checked(2, require_whole, 1)  # E52
    intersection: str = _checked("set", require_choice, ("set", "aligned"))  # E41
    against: str = _checked("own", require_choice, ("own", "all"))  # E15
    min_sim: float | None = _checked(None, require_between, 0, 1)  # E56
    alternates: str = _checked("all", require_choice, ("all", "split"))  # E53: "all" other users, or "split" off
    max_tries: int = _checked(50, require_whole, 1)  # E63
    choose: str = _checked("uniform", require_choice, CHOICES)  # E62: of a seed's fakes, those that are published
    temp: float = _checked(1.0, require_between, 0, math.inf, open_low=True)  # E62


@dataclass(frozen=True)
class NoisySums(_Part):
    """What the certificate of the private preset rests on."""

    eps: float = _checked(4.0, require_between, 0, 10, open_low=True)
    delta: float = _checked(1e-6, require_between, 0, 0.01, open_low=True)
    days: int = _checked(1, require_whole, 1, 60)  # that a fake lives: public, whatever people have


_PARTS = (Learning, Decoding, Pairing, Rules, NoisySums)
PARAMETERS = tuple(dict.fromkeys(parameter.name for part in _PARTS for parameter in fields(part)))
NOT_ASKED = {"m_min": 1, "c_min": 1, "k": 0}  # of a preset without such a parameter: so many people or places do


@dataclass(frozen=True)
class Preset:
    """
    Every parameter of a run, in parts; None where the preset has no such step.

    Each parameter of a part is an attribute of the preset too: `preset.par_s` is `preset.rules.par_s`. Three of them
    every preset has: `m_min` and `c_min` are 1, and `k` is 0, where nothing is asked.
    """

    name: PresetName
    reading: Reading = Reading()
    learning: Learning | None = None
    generator: Decoding | Pairing | None = None
    rules: Rules | None = None
    certificate: NoisySums | None = None

    def __post_init__(self) -> None:
        require_choice("name", self.name, NAMES)

    def __getattr__(self, name: str) -> Any:
        known = NOT_ASKED | self.parameters()
        if name in known:
            return known[name]
        raise AttributeError(f"preset {self.__dict__.get('name')!r} has no parameter {name!r}")

    def parameters(self) -> dict[str, Any]:
        """Return all parameters that this preset reads, by name."""
        parts = (self.learning, self.generator, self.rules, self.certificate)
        return {name: value for part in parts if part is not None for name, value in vars(part).items()}

    def changed(self, **parameters: Any) -> "Preset":
        """
        Return the same preset with these parameters.

        An unknown name is refused with the list of all, one that this preset does not read with the presets that do,
        and values out of range all at once.
        """
        if strange := [name for name in parameters if name not in self.parameters()]:
            check_names(parameters)
            raise InvalidParameter(" ".join(_not_read(name, self.name) for name in strange), code="E_NOT_READ")
        if isinstance(self.generator, Pairing) and "relaxed" not in parameters:
            parameters["relaxed"] = tuple(name for name in self.generator.relaxed if name not in parameters)
        changes: dict[str, Any] = {}
        faults: list[InvalidParameter] = []
        for step in ("learning", "generator", "rules", "certificate"):
            for name, value in parameters.items():
                part = changes.get(step, getattr(self, step))
                if part is None or name not in vars(part):
                    continue
                try:
                    changes[step] = replace(part, **{name: value})
                except InvalidParameter as fault:
                    faults.append(fault)
        if faults:
            raise InvalidParameter(" ".join(str(fault.args[0]) for fault in faults), code=faults[0].code)
        return replace(self, **changes)

    @classmethod
    def of_file(cls, values: Mapping[str, Any]) -> "Preset":
        """Return the preset that stands in a file, without what this version has no parameter for."""
        preset = preset_of(values["name"])
        # JSON knows no tuples
        parameters = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items() if n in preset.parameters()}
        return preset.changed(**parameters)

    def to_file(self) -> dict[str, Any]:
        """Return name and parameters as `of_file` reads them."""
        return {"name": self.name, **self.parameters()}


PRESETS: dict[PresetName, Preset] = {
    "paper": Preset(
        "paper",
        reading=Reading(places="merge"),  # E74
        learning=Learning(),
        generator=Decoding(),
        rules=Rules(choose="likelihood"),
    ),
    "product": Preset(
        "product",
        reading=Reading(places="shared"),
        learning=Learning(periods=4, class_periods=12, method="roles", class_draws=20, c_min=5, m_min=5),
        generator=Pairing(shift=120.0),
        rules=Rules(k=10, against="all", alternates="split"),
    ),
    "private": Preset(
        "private",
        reading=Reading(places="shared", max_gap=PUBLIC_GAP, map="whole"),
        certificate=NoisySums(),
    ),
}


class LearningOptions(TypedDict, total=False):
    """The parameters of `Learning`, as keywords."""

    periods: int | tuple[float, ...]
    class_periods: int | tuple[float, ...] | None
    method: str
    class_draws: int
    c_min: int
    m_min: int
    epsilon: float
    n_min: int


class PresetOptions(LearningOptions, total=False):
    """The parameters of all presets but `alternates`, as keywords; a preset refuses those that it does not read."""

    sampler: str
    par_c: float | Literal["per-instant"]
    par_m: float
    par_l: float
    par_v: float
    subsample: str
    merge: str
    shift: float
    balance: float
    relaxed: tuple[str, ...]
    par_s: float
    par_i: int
    par_d: float
    k: int
    intersection: str
    against: str
    min_sim: float | None
    max_tries: int
    choose: str
    temp: float
    eps: float
    delta: float
    days: int


class GeneratingOptions(PresetOptions, total=False):
    """Further keywords of `generate_fakes`: `n`, `feasible`, and parameters of the preset."""

    n: int | None
    feasible: Any


class WholeJobOptions(PresetOptions, total=False):
    """Further keywords of `synthesize`: how many fakes in which forms, how to read, and parameters of the preset."""

    per_seed: int
    n: int | None
    feasible: Any
    missing: Literal["drop", "gibbs"]
    executor: Executor | None
    also: str | Sequence[str]
    out_as: str | None
    alternates: str
    reading: Reading
    cells: int | None
    step: str | float | timedelta
    tz: str | None
    locations: Any
    columns: Mapping[str, str | None] | str | None
    format: str
    date_format: str | None
    encoding: str
    max_bad: float
    start: str | None
    gaps: str
    max_gap: str | float | timedelta
    min_coverage: float
    places: str
    regions: Any
    grid: str | Sequence[float] | None
    map: str
    box: Sequence[float] | str | None
    lon360: bool
    any_date: bool
    allow_truncated: bool


def check_names(parameters: Mapping[str, Any], beside: Sequence[str] = ()) -> None:
    """Refuse names that are no parameter of any preset; `beside` are the caller's other keywords, to suggest from."""
    if wrong := [f"`{name}`" for name in ("order", "mapping") if name in parameters]:
        raise InvalidParameter(
            f"{' and '.join(wrong)} would decide the classes of places alone: the privacy test compares visits, period "
            "by period (order 0), since at order 1 every similarity is a search. Give classes of such a graph as "
            '`classes`: `semantic_clustering(semantic_graph(profiles, order=1), method="kmeans")` (E21).',
            code="E_NOT_READ",
        )
    wrong = []
    for name in (name for name in parameters if name not in PARAMETERS):
        near = get_close_matches(name, [*beside, *PARAMETERS], n=1)
        wrong.append(f"`{name}`" + (f" (perhaps `{near[0]}`)" if near else ""))
    if wrong:
        others = f" Others here: {', '.join(beside)}." if beside else ""
        raise InvalidParameter(
            f"{', '.join(wrong)} is no parameter of a preset; these are: {', '.join(PARAMETERS)}.{others}"
        )


def preset_of(preset: str | Preset, **parameters: Any) -> Preset:
    """Return a preset by name, or as it is, with some parameters changed."""
    if not isinstance(preset, Preset):
        require_choice("preset", preset, NAMES)
        preset = PRESETS[preset]  # type: ignore[index]  # just checked
    if parameters.get("par_c") == "per-instant":  # the short form of E39
        parameters |= {"par_c": 0.25, "subsample": "per-instant"}
    return preset.changed(**parameters)


def _not_read(name: str, preset: str) -> str:
    others = " or ".join(f'"{other.name}"' for other in PRESETS.values() if name in other.parameters())
    return f'`{name}` is not read by preset "{preset}": leave it out, or use preset {others}.'
