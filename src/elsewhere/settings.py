"""
Every option of the library and of the command line, declared once: type, range, default and a line of help.

An option is a field of a `Settings` model: its type and `Field` say which values are right, its `Option` what
`elsewhere COMMAND --help` shows. Functions, commands, checks and manifests are made from these declarations. A wrong
value is refused with one line: the parameter, its range, and what was given.

    Reading                  how an input is read
    Fitting, Making, Job     what `learn`, `generate_fakes` and `synthesize` take beside a preset
    Paper, Product, Private  the presets, made of Learning, Decoding, Pairing, Rules and NoisySums
    Demo, Plan ...           what the commands take beside these

- `paper` reproduces the paper: its formulas, its tests, model and alternates from the seeds themselves;
- `product` publishes walks paired with seeds, with every test of the paper in its strictest reading, on split users;
- `private` publishes walks learnt from noisy sums over everybody, with a proof for everybody, and has no seeds.

The letters of parameters are the paper's; E-numbers stand in docs/readings.md.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from elsewhere.errors import InvalidParameter

# what most need comes first in a command's help, in a panel of its own; the rest in these, in this order
PANELS = READ, MODEL, PRIVACY, EXPERT = "Reading", "Model", "Privacy", "Expert"
PUBLIC_GAP = "6h"  # that presets with a theorem fill: how long gaps are is a matter of the people it protects
DRAWN_GAP = "1h"  # that is filled by `gaps` where longer ones are drawn
UNITS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
OUT = ("-o", "--out")
LONGEST_SHOWN = 80  # characters of a value in a message


@dataclass(frozen=True)
class Option:
    """What the command line shows of a parameter, see `option`."""

    help: str
    metavar: str | None = None
    flags: tuple[str, ...] = ()
    panel: str | None = None
    argument: bool = False
    parameter: str | None = None
    values: str | None = None
    secret: bool = False


def option(
    default: Any,
    help: str,  # noqa: A002 (the word of typer and argparse)
    metavar: str | None = None,
    flags: tuple[str, ...] = (),
    *,
    panel: str | None = None,
    argument: bool = False,
    parameter: str | None = None,
    values: str | None = None,
    secret: bool = False,
    **limits: Any,
) -> Any:
    """
    Declare a parameter: its default (... for none), what the command line shows of it, and limits as `Field` has them.

    `flags` are by default the name, as --name. `parameter` is its name in the library, where that is another one.
    `values` says which are right, where type and limits do not. A `secret` value is shown in no message.
    """
    field = Field(default, **limits)
    field.metadata.append(Option(help, metavar, flags, panel, argument, parameter, values, secret))
    return field


class Settings(BaseModel):
    """A group of options that belong together; a wrong value or an unknown name raises `InvalidParameter`."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)

    def __init__(self, **values: Any) -> None:
        self._fill(values, strict=True)

    @classmethod
    def of_texts(cls, texts: Mapping[str, Any]) -> Self:
        """Return the settings that stand on a command line, where numbers are texts."""
        self = cls.__new__(cls)
        self._fill(texts, strict=False)
        return self

    def _fill(self, values: Mapping[str, Any], *, strict: bool) -> None:
        # numpy's numbers are numbers, but not for the manifest
        plain = {
            n: v.item() if getattr(v, "shape", None) == () and hasattr(v, "item") else v for n, v in values.items()
        }
        try:
            self.__pydantic_validator__.validate_python(plain, strict=strict, self_instance=self)
        except ValidationError as error:
            names = list(dict.fromkeys(str(fault["loc"][0]) for fault in error.errors(include_url=False)))
            raise self._refusal(names, plain) from None

    @classmethod
    def _refusal(cls, names: Sequence[str], values: Mapping[str, Any]) -> InvalidParameter:
        """Return the error for the parameters of these names, all of them in one message."""
        unknown = [name for name in names if name not in cls.model_fields]
        if unknown:
            return unknown_parameter(unknown[0], cls.model_fields)
        sentences = []
        for name in names:
            field = cls.model_fields[name]
            given = "" if option_of(field).secret else f", got {_shown(values.get(name))}"
            sentences.append(f"`{name}` must be {allowed(field)}{given}.")
        return InvalidParameter(" ".join(sentences), parameter=names[0])

    def changed(self, **values: Any) -> Self:
        """Return the same settings with these values."""
        return type(self)(**{**dict(self), **values})


def unknown_parameter(name: str, names: Iterable[str]) -> InvalidParameter:
    """Return the error for a name that is no parameter, with the nearest one that is."""
    near = get_close_matches(name, sorted(names), n=1)
    hint = f"; perhaps `{near[0]}`" if near else f"; these are: {', '.join(sorted(names))}"
    return InvalidParameter(f"`{name}` is no parameter here{hint}.", parameter=name)


def option_of(field: FieldInfo) -> Option:
    """Return what the command line shows of a field."""
    return next((part for part in _metadata(field) if isinstance(part, Option)), Option(""))


def allowed(field: FieldInfo) -> str:
    """
    Return which values are right for a field, in words.

    Examples
    --------
    >>> [allowed(Rules.model_fields[name]) for name in ("par_s", "k", "against")]
    ['in [0, 1]', 'a whole number, at least 1', 'one of "own", "all"']

    """
    if (words := option_of(field).values) is not None:
        return words
    limits = [part for part in _metadata(field) if isinstance(part, (Ge, Gt, Le, Lt))]
    # None is what is left out
    return ", or ".join(_kind(kind, limits) for kind in kinds(field.annotation) if kind is not NoneType)


def _kind(kind: Any, limits: Sequence[Any]) -> str:
    """Return the values of one type within limits."""
    if get_origin(kind) is Literal:
        choices = [f'"{each}"' for each in get_args(kind)]
        return choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    if kind in (int, float):
        low = next((part for part in limits if isinstance(part, (Ge, Gt))), None)
        high = next((part for part in limits if isinstance(part, (Le, Lt))), None)
        ends = [
            f"{word} {getattr(limit, name):,}"
            for limit in (low, high)
            for name, word in (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"))
            if hasattr(limit, name)
        ]
        if kind is float and isinstance(low, (Ge, Gt)) and isinstance(high, (Le, Lt)):
            left = f"[{low.ge:g}" if isinstance(low, Ge) else f"({low.gt:g}"
            right = f"{high.le:g}]" if isinstance(high, Le) else f"{high.lt:g})"
            return f"in {left}, {right}"
        return ", ".join(["a whole number" if kind is int else "a number", *([" and ".join(ends)] if ends else [])])
    if get_origin(kind) is tuple:
        return f"a tuple, each {_kind(get_args(kind)[0], ())}"
    names = {bool: "True or False", str: "a text", Path: "a path", timedelta: "a timedelta"}
    return names.get(kind, getattr(kind, "__name__", str(kind)))


def kinds(annotation: Any) -> Iterator[Any]:
    """Yield the types of a union, without what is annotated to them."""
    if get_origin(annotation) is Annotated:
        yield from kinds(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for each in get_args(annotation):
            yield from kinds(each)
    else:
        yield annotation


def _metadata(field: FieldInfo) -> Iterator[Any]:
    """Yield what is annotated to the type of a field or to the types of its union."""
    yield from field.metadata
    for kind in get_args(field.annotation) if get_origin(field.annotation) in (Union, UnionType) else ():
        for part in get_args(kind)[1:] if get_origin(kind) is Annotated else ():
            yield from part.metadata if isinstance(part, FieldInfo) else (part,)


def _shown(value: Any) -> str:
    """Return a value for a message; of arrays and tables only what they are."""
    if not isinstance(value, (str, int, float, tuple, list, NoneType, timedelta, Path)):
        return type(value).__name__
    text = repr(str(value) if isinstance(value, Path) else value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def seconds_of(length: str | float | timedelta) -> int:
    """
    Return a length of time in whole seconds: "20min", "1h", "90s", a number of minutes, or a `timedelta`.

    Examples
    --------
    >>> seconds_of("20min"), seconds_of(20)
    (1200, 1200)

    """
    seconds = -1.0
    if isinstance(length, timedelta):
        seconds = length.total_seconds()
    elif not isinstance(length, str):
        seconds = 60.0 * length
    elif match := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*", length):
        seconds = float(match[1]) * UNITS.get(match[2] or "s", -1)
    if not (0 <= seconds <= 366 * 86400 and seconds == int(seconds)):
        raise ValueError("no length of time")
    return int(seconds)


def _length(value: Any) -> Any:
    if value != "auto":
        seconds_of(value)
    return value


def _slot(value: Any) -> Any:
    if value != "auto" and not 0 < seconds_of(value) <= 86400:
        raise ValueError("no length of a slot")
    return value


def _clock(value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"([01]?\d|2[0-3]):[0-5]?\d", value):
        raise ValueError("no time of the day")
    return value


def _codec(value: str) -> str:
    try:
        codecs.lookup(value)
    except LookupError:
        raise ValueError("no encoding") from None
    return value


# ---- options that several groups have

Length: TypeAlias = str | float | timedelta
Kappa: TypeAlias = Annotated[int, Field(ge=2)] | Literal["auto"]  # number of semantic classes
PresetName: TypeAlias = Literal["paper", "product", "private"]
Choice: TypeAlias = Literal["uniform", "likelihood"]  # E62
Form: TypeAlias = Literal["gpx", "geojson", "sglt"]
Periods: TypeAlias = Annotated[int, Field(ge=1, le=1440)]  # equal parts of the day

reads, models, keeps, experts = (partial(option, panel=panel) for panel in PANELS)
source_option = partial(
    option,
    help="Real traces: CSV, Parquet, JSON, GPX, GeoJSON, GeoLife, Google Timeline, Foursquare, SGLT; a file, a folder "
    "of files, or - for standard input.",
    metavar="INPUT",
    argument=True,
)
out_option = partial(option, help="Folder for the results; refused if it holds anything.", metavar="DIR", flags=OUT)
seed_option = partial(option, metavar="N", parameter="rng", secret=True, ge=0)
kappa_option = partial(models, help="Number of semantic classes.", metavar="N|auto")
model_option = partial(models, help="What `fit` learnt: model and classes.", metavar="DIR")
per_seed_option = partial(option, help="Fakes made of each seed.", metavar="N", ge=1)
report_option = partial(option, help="Whether to evaluate and attack the fakes, and write reports.")
periods_option = partial(models, help="Equal parts of the local day.", metavar="N")
dask_option = partial(
    experts,
    help="Work on the workers of this Dask scheduler, such as tls://host:8786; the result does not depend on it.",
    metavar="ADDRESS",
    parameter="executor",
)
links_option = partial(
    option,
    help="Private CSV fake,seed[,date]: who was made from whom; `same`: fakes carry their seeds' ids.",
    metavar="FILE|same",
    parameter="seed_index",
)
k_option = partial(
    keeps, help="People for whom a fake is plausible: its seed and alternates (E52).", metavar="N", flags=("-k",), ge=1
)
eps_option = partial(
    keeps, help="Private preset: odds about anybody change by at most e^X; by default 4.", metavar="X", gt=0, le=10
)
delta_option = partial(
    keeps, help="Private preset: except with this probability; by default 1e-6.", metavar="X", gt=0, le=0.01
)
days_option = partial(
    option,
    help="Private preset: days that every fake lives, whatever people have; by default 1.",
    metavar="N",
    ge=1,
    le=60,
)
choose_option = partial(
    experts,
    help="Which of a seed's fakes are published: any, or likelier ones (of ten times as many, which `synthesize` makes "
    "then); by default any, in the paper preset likelier ones (E62).",
)
temp_option = partial(experts, help="Temperature of the choice by likelihood (E62).", metavar="X", gt=0)


# ---- reading


class Reading(Settings):
    """
    How an input is read: the keywords of `read_traces`, and `grid`.

    What is "auto" in `places`, `max_gap` and `map` is as the preset says, if it says so. `grid` (south, west, north,
    east, N) makes N equal cells of a box in degrees the places; the name of a town makes it the cells about that town.
    `columns`, `box` and `grid` may also be texts, as the command line has them: "user=id,time=#4", "S,W,N,E" and
    "S,W,N,E,N" or "TOWN,N".
    """

    cells: int | None = reads(400, "Most places that coordinates are made into.", "N", ge=1)
    step: Annotated[Length, AfterValidator(_slot)] = reads(
        "auto",
        "Length of a slot, into which days are cut; auto: 20min, or as in the input.",
        "TIME|auto",
        values='a length of time such as "20min", in whole seconds, above 0 and at most a day, or "auto"',
    )
    tz: str | None = reads(None, "Time zone of the data, such as Europe/Zurich.", "ZONE")
    locations: Any = reads(None, "File of the places, with ids and positions.", "FILE")
    columns: Mapping[str, str | None] | str | None = reads(
        None, "Columns by name or number: user=id,time=#4,lat=y; user=file: the file's name.", "ROLE=NAME,..."
    )
    format: str = reads("auto", "Refuse an input that is anything else.", "auto|csv|gpx|...")
    date_format: str | None = reads(None, 'How dates are written, such as "%d.%m.%Y %H:%M".', "FORMAT")
    encoding: Annotated[str, AfterValidator(_codec)] = reads(
        "utf-8", "Encoding of a text file.", "NAME", values='an encoding that Python knows, such as "cp1252"'
    )
    max_bad: float = reads(
        0.01, "Share of unreadable, short or long rows that may be dropped and counted.", "SHARE", ge=0, le=1
    )
    start: Annotated[str | None, AfterValidator(_clock)] = reads(
        None,
        "Local time of the first slot, for slots and SGLT.",
        "HH:MM",
        values='a local time "HH:MM" between "00:00" and "23:59"',
    )
    gaps: Literal["hold", "interpolate", "split", "drop"] = reads(
        "hold", "Slots without a fix: keep the last place, go straight to the next, cut the day, or drop thin users."
    )
    max_gap: Annotated[Length, AfterValidator(_length)] = reads(
        "auto",
        "Longest time without a position that is filled, such as 1h; auto: the shortest of 1, 3, 6, 12, 24 h that "
        "keeps enough people.",
        "TIME|auto",
        values='a length of time such as "3h", in whole seconds, or "auto"',
    )
    min_coverage: float = reads(0.5, "Least share of known slots of a day that is kept.", "SHARE", ge=0, le=1)
    places: Literal["auto", "shared", "merge", "grid", "stays"] = reads(
        "auto",
        "What coordinates become: cells that several people share, the paper's merged cells, cells, or where people "
        "stay; auto: shared, for the paper preset merge.",
    )
    regions: Any = reads(None, "GeoJSON polygons that are to be the places.", "FILE")
    grid: str | Sequence[float] | None = reads(
        None,
        "N equal cells of a box in degrees, or 400 of 40 km about a town, are to be the places, and the map.",
        "S,W,N,E,N|TOWN",
    )
    map: Literal["auto", "whole"] = reads(
        "auto", "auto: where people are nearly all the time, travels are left out; whole: everywhere anybody was."
    )
    box: str | Sequence[float] | None = reads(None, "The map: rows outside are left out and counted.", "S,W,N,E")
    lon360: bool = reads(False, "Longitudes run from 0 to 360.")
    any_date: bool = reads(False, "Keep dates before 2000 and in the future.")
    allow_truncated: bool = reads(False, "Leave out a last line or record that is cut off.")


# ---- presets


class Learning(Settings):
    """How model and classes are learnt from people."""

    periods: Periods | tuple[float, ...] = option(1, "Parts of the day that moves are learnt in (E5, E24).")
    class_periods: Periods | tuple[float, ...] | None = option(
        None, "Parts of the day that places are compared in; None: as `periods`."
    )
    method: Literal["roles", "kmeans"] = option("kmeans", "How places are put into classes (E28).")
    class_draws: int = option(1, "Clusterings of which the most informative is taken.", ge=1, le=1000)
    c_min: int = option(1, "Least places in a class (E30).", ge=1)
    m_min: int = option(1, "Least people who visit a place that is learnt (E31).", ge=1)
    epsilon: float = option(0.01, "Share of smoothing by distance (E34).", gt=0, allow_inf_nan=False)
    n_min: int = option(5, "Least moves of a place by which its moves are learnt (E37).", ge=1)


class Decoding(Settings):
    """How the paper makes a fake of its seed: candidate sets, and a decoder."""

    sampler: Literal["viterbi", "ffbs"] = option("viterbi", "How a trace is drawn from candidate sets (E46, E49).")
    par_c: float = option(0.25, "Share of the places removed from each class (E39).", ge=0, lt=1)
    par_m: float = option(0.75, "Reach of merging at boundaries (E42).", ge=0, lt=1)
    par_l: float = option(1.0, "Probability that the true place is removed (E40).", ge=0, le=1)
    par_v: float = option(4.0, "Randomness of the decoder (E46).", ge=1, allow_inf_nan=False)
    subsample: Literal["per-fake", "per-instant"] = option(
        "per-fake", "One sub-sample of the classes, or a fresh one per slot (E39)."
    )
    merge: Literal["reach", "independent"] = option(
        "reach", "One reach per place and boundary, or independent draws (E42)."
    )


Limit: TypeAlias = Literal["par_s", "par_i"]
RELAXED: tuple[Limit, ...] = get_args(Limit)


class Pairing(Settings):
    """How the product pairs walks with seeds."""

    shift: float = option(
        0.0, "Minutes by which a fake's whole day may be earlier or later than its seed's.", ge=0, le=720
    )
    balance: float = option(
        1.0, "How closely all fakes together follow the walk model; less keeps more of the seeds.", ge=0, le=1
    )
    relaxed: tuple[Limit, ...] = option(
        RELAXED,
        "Limits that rise, seed by seed, to what strangers have in common with it; one that is given does not.",
    )


class Rules(Settings):
    """What every fake is tested for, and against whom; and which of those that passed are published."""

    par_s: float = option(0.1, "Largest similarity of fake and seed (E51).", ge=0, le=1)
    par_i: int = option(0, "Most places that fake and seed share (E50).", ge=0)
    par_d: float = option(0.1, "Largest difference in similarity to seed and alternates (E51).", ge=0, le=1)
    k: int = k_option(2)
    intersection: Literal["set", "aligned"] = option("set", "Shared places at any time, or at the same (E41).")
    against: Literal["own", "all"] = option("own", "Tests against the own seed, or all seeds (E15).")
    min_sim: float | None = option(None, "Least similarity of fake and seed (E56).", ge=0, le=1)
    alternates: Literal["all", "split"] = option("all", "All other users, or some split off (E53).")
    max_tries: int = option(50, "Attempts for each fake (E63).", ge=1)
    choose: Choice = choose_option("uniform")
    temp: float = temp_option(1.0)


class NoisySums(Settings):
    """What the certificate of the private preset rests on."""

    eps: float = eps_option(4.0)
    delta: float = delta_option(1e-06)
    days: int = days_option(1)


class Preset(Settings):
    """Every parameter of a run; a preset has those that it reads, and no others."""

    name: ClassVar[PresetName]
    reading: ClassVar[Mapping[str, str]]  # what is "auto" in `Reading`

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def parameters(self) -> dict[str, Any]:
        """Return all parameters that this preset reads, by name."""
        return dict(self)

    def changed(self, **parameters: Any) -> Self:
        """
        Return the same preset with these parameters.

        An unknown name is refused with the nearest one, one that this preset does not read with the presets that do.
        """
        for name in parameters:
            self._require(name)
        return super().changed(**self._with_limits(parameters))

    def changed_by_texts(self, texts: Mapping[str, str]) -> Self:
        """Return the same preset with parameters as a command line has them: none for None, commas in a tuple."""
        for name in texts:
            self._require(name)
        values: dict[str, Any] = {n: None if text.lower() == "none" else text for n, text in texts.items()}
        for name, text in values.items():
            has_tuple = any(get_origin(kind) is tuple for kind in kinds(type(self).model_fields[name].annotation))
            if has_tuple and text is not None and not text.isdigit():
                values[name] = tuple(word for word in re.split(r"[\s,()\[\]]+", text) if word)
        return self.of_texts({**dict(self), **self._with_limits(values)})

    def _require(self, name: str) -> None:
        if name in type(self).model_fields:
            return
        if name not in PARAMETERS:
            raise unknown_parameter(name, PARAMETERS)
        others = " or ".join(f'"{other.name}"' for other in PRESETS.values() if name in type(other).model_fields)
        raise InvalidParameter(
            f'`{name}` is not read by preset "{self.name}": leave it out, or use preset {others}.',
            code="E_NOT_READ",
            parameter=name,
        )

    def _with_limits(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters; a limit that is given is not relaxed."""
        if "relaxed" not in type(self).model_fields or "relaxed" in parameters:
            return dict(parameters)
        return {**parameters, "relaxed": tuple(name for name in self.relaxed if name not in parameters)}

    @staticmethod
    def of_file(values: Mapping[str, Any]) -> "Preset":
        """Return the preset that stands in a file, without what this version has no parameter for."""
        preset = preset_of(values["name"])
        # JSON knows no tuples
        known = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items() if n in type(preset).model_fields}
        return preset.changed(**known)

    def to_file(self) -> dict[str, Any]:
        """Return name and parameters as `of_file` reads them."""
        return {"name": self.name, **self.parameters()}


class Paper(Preset, Rules, Decoding, Learning):
    """The paper's own parameters."""

    name = "paper"
    reading = {"places": "merge"}  # E74


class Product(Preset, Rules, Pairing, Learning):
    """The parameters by which fakes are published that no theorem covers."""

    name = "product"
    reading = {"places": "shared"}


class Private(Preset, NoisySums):
    """The parameters of fakes that a theorem covers; nobody is a seed, so nothing is asked of seeds or places."""

    name = "private"
    reading = {"places": "shared", "max_gap": PUBLIC_GAP, "map": "whole"}
    m_min: ClassVar[int] = 1
    c_min: ClassVar[int] = 1
    k: ClassVar[int] = 0


# put together without a check, which would double the time of `elsewhere --help`; the tests check them
PRESETS: dict[PresetName, Preset] = {
    "paper": Paper.model_construct(choose="likelihood"),
    "product": Product.model_construct(
        periods=4,
        class_periods=12,
        method="roles",
        class_draws=20,
        c_min=5,
        m_min=5,
        shift=120.0,
        k=10,
        against="all",
        alternates="split",
    ),
    "private": Private.model_construct(),
}
PARAMETERS = tuple(dict.fromkeys(name for preset in PRESETS.values() for name in type(preset).model_fields))


def preset_of(preset: str | Preset, **parameters: Any) -> Preset:
    """Return a preset by name, or as it is, with some parameters changed."""
    if not isinstance(preset, Preset):
        preset = PRESETS[PresetOptions(preset=preset).preset]  # type: ignore[arg-type]  # checked there
    return preset.changed(**parameters)


# ---- making fakes


class Fitting(Settings):
    """What `learn` takes beside a preset."""

    kappa: Kappa = kappa_option("auto")
    feasible: Any = models(
        None,
        "The only moves that fakes make from one slot to the next: a table with columns from and to (ids of places) or "
        "from_lat, from_lon, to_lat and to_lon; data: those that enough of the people make who are learnt from.",
        "FILE|data",
    )
    missing: Literal["drop", "gibbs"] = reads(
        "drop",
        "Slots that stay unknown: leave out their days, or draw them from the person's own other slots (gibbs); a fix "
        "that may be at several places by its accuracy is drawn too (E4).",
    )


class Making(Fitting):
    """What `generate_fakes` takes beside a preset."""

    per_seed: int = per_seed_option(1)
    n: int | None = option(
        None,
        "Private preset: fakes to release, any number; else about one a person, counted with noise.",
        "N",
        ("-n",),
        ge=1,
        le=10**9,
    )
    workers: int = experts(2, "Threads; the result does not depend on it.", "N", ge=1)


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, (list, set)) else value


class Publishing(Settings):
    """How fakes are written for publishing."""

    also: Annotated[tuple[Form, ...], BeforeValidator(_several)] = option(
        (), "Write the fakes in this form too; repeatable.", "|".join(get_args(Form))
    )
    out_as: Literal["slots", "visits", "events", "trips"] | None = option(
        None,
        "Lines of fakes.csv: one per slot, per stay (arrived, left, place, category), per arrival, or per move with "
        "both ends. By default visits or trips where the input has them, else slots.",
    )
    private: Path | None = option(
        None, "Folder for what only you may see; by default DIR-private.", "DIR2", strict=False
    )
    laboratory: bool = experts(
        False,
        "Write a run with --seed as if it were published; it stays marked as a laboratory run.",
        flags=("--i-know",),
    )


class Job(Making, Publishing):
    """What `synthesize` takes beside a preset and a `Reading`."""

    report: bool = report_option(True)
    holdout: float = keeps(
        0.0,
        "Share of the people of whom no fake is made, to compare the attacks with; at most .5.",
        "SHARE",
        ge=0,
        le=0.5,
    )


# ---- what the commands take beside these


class PresetOptions(Settings):
    """Which preset a command takes, and how it is changed; `seed` makes a laboratory run."""

    preset: PresetName = option("product", "What is promised.")
    k: int | None = k_option(None)
    eps: float | None = eps_option(None)
    delta: float | None = delta_option(None)
    days: int | None = days_option(None)
    choose: Choice | None = choose_option(None)
    parameters: tuple[str, ...] = experts(
        (), "Any other parameter of the preset, e.g. --set m_min=3; repeatable.", "NAME=VALUE", ("--set",)
    )
    seed: int | None = seed_option(
        None, "Laboratory run: repeatable, stamped as such, refused for publishing.", panel=EXPERT
    )

    def chosen(self) -> Preset:
        """Return the preset with all options applied."""
        texts = {}
        for word in self.parameters:
            name, equals, texts[name] = word.partition("=")
            if not equals or not name:
                raise InvalidParameter(f"`--set` must be NAME=VALUE, got {word!r}.", parameter="parameters")
        own = {name: getattr(self, name) for name in ("k", "eps", "delta", "days", "choose")}
        given = {name: value for name, value in own.items() if value is not None}
        if both := sorted(given.keys() & texts.keys()):
            raise InvalidParameter(f"`{both[0]}` is given twice: leave out its --set.", parameter=both[0])
        return preset_of(self.preset).changed_by_texts(texts).changed(**given)


class Answer(Settings):
    """What every command takes that writes files."""

    force: bool = option(False, "Write into DIR even so, replacing files of the same names.")
    as_json: bool = option(False, "One JSON object on stdout, for machines.", flags=("--json",))


class Input(Answer):
    """Where real traces are read, and results written."""

    source: Path = source_option(...)
    out: Path = out_option(...)
    dask: str | None = dask_option(None)


class Judging(Answer):
    """How a judging command draws, and where its results go."""

    seed: int = seed_option(1, "Same number, same draws of the judge.", panel=EXPERT)
    out: Path | None = out_option(None)


class Demo(Answer):
    """What `demo` takes."""

    users: int = option(2000, "People who live in the town.", "N", ge=2, le=5000)
    seed: int = seed_option(2, "Same number, same result.")
    out: Path | None = out_option(None)
    report: bool = report_option(True)


class Plan(Settings):
    """What `plan` takes beside a `Reading`."""

    source: Path = source_option(...)
    eps: float = eps_option(4.0)
    delta: float = delta_option(1e-6)
    as_json: bool = option(False, "One JSON object on stdout, for machines.", flags=("--json",))


class Generate(Input):
    """What `generate` takes."""

    model: Path | None = models(None, "What `fit` learnt; by default it is learnt anew.", "DIR")


class Publish(Answer, Publishing):
    """What `publish` takes."""

    fakes: Path = option(..., "The private folder of `generate`.", "FAKES", argument=True)
    out: Path = out_option(...)
    per_seed: int = per_seed_option(1)
    choose: Choice | None = choose_option(None)
    temp: float | None = temp_option(None)


class Compared(Judging):
    """Real traces and fakes of them."""

    real: Path = option(..., "Real traces, in any form that `synthesize` reads.", "FILE")
    fakes: Path = option(
        ..., "Fakes of any tool, in any such form; or a folder of `synthesize`, `publish` or `generate`.", "FILE|DIR"
    )
    links: str | None = links_option(None)


class Evaluate(Compared):
    """What `evaluate` takes beside a `Reading`."""

    test: Path | None = option(None, "Other real traces, e.g. the second day: the drift.", "FILE")
    datasets: int = experts(10, "Fake datasets to compare.", "N", ge=1)
    periods: Periods = periods_option(1)


class Audit(Compared):
    """What `audit` takes beside a `Reading`."""

    holdout: Path | None = option(None, "Real people who never met the generator: the control.", "FILE")
    model: Path | None = model_option(None)
    attacks: str = option("all", "all, or ids such as A2,A5.", "ID,...")
    m_min: int = keeps(5, "People that a place must have (A13).", "N", ge=1)
    dask: str | None = dask_option(None)


def _numbers_of_fakes(value: str) -> str:
    if not all(word.isdecimal() and 1 <= int(word) <= 1000 for word in value.split(",")):
        raise ValueError("no numbers of fakes")
    return value


class Lbs(Judging):
    """What `lbs` takes beside a `Reading`."""

    real: Path | None = option(None, "Real traces; by default 60 people of a simulated town, 28 days.", "FILE")
    test: Path | None = option(None, "The second day; by default each user's second day in --real.", "FILE")
    fakes: Path | None = option(None, "Our or other fakes; by default they are made of day one.", "FILE|DIR")
    links: str | None = links_option(None)
    model: Path | None = model_option(None)
    preset: Literal["paper", "product"] = option("paper", "Of fakes made here.")
    per_seed: int = option(20, "Of fakes made here.", "N", ge=1)
    choose: Choice = option("uniform", "Of a user's fakes.")
    n_fakes: Annotated[str, AfterValidator(_numbers_of_fakes)] = option(
        "1,5,10", "Fakes sent along.", "N,...", values="whole numbers in 1 .. 1000 with commas between"
    )
    beta: float = experts(0.5, "Probability that a slot is exposed.", "X", gt=0, le=1)


class Similarity(Answer):
    """What `similarity` takes beside a `Reading`."""

    source: Path = source_option(...)
    users: int | None = option(None, "Compare N users drawn at random; by default all.", "N", ge=2)
    seed: int = seed_option(1, "Same number, same result.")
    periods: Periods = periods_option(1)
    missing: Literal["refuse", "skip", "gibbs"] = models("refuse", "What to do where a slot is missing.")
    out: Path | None = out_option(None)


class Reproduce(Judging):
    """What `reproduce` takes beside a `Reading`."""

    data: Path | None = option(None, "Traces of two days; by default a simulated town.", "[DATA]", argument=True)
    users: int = option(30, "People of the simulated town.", "N", ge=4, le=1000)
    per_seed: int = option(20, "Fakes per user, 10 or more.", "N", ge=10)
    kappa: Kappa = kappa_option("auto")


class Serve(Settings):
    """What `serve` takes."""

    pool: Path = option(..., "A published pool: its folder.", "POOL", argument=True)
    host: str = option("127.0.0.1", "Where to listen; others than this machine need TLS.", "ADDRESS")
    port: int = option(8765, "0 takes a free one.", "N", ge=0, le=65535)
    store: str | None = option(
        None,
        "What is given away, and the tokens; by default POOL-live.sqlite beside the pool.",
        "FILE|postgresql://...",
    )
    bucket: int | None = option(None, "Lives in a bucket; by default an eighth of the pool, 6 to 32.", "N", ge=1)
    shared: bool = option(False, "Give a life to several devices; by default to one only.")
    rate: float = option(120.0, "Requests per minute of each token.", "N", gt=0)
    cert: Path | None = option(None, "Certificate of TLS, PEM.", "FILE")
    key: Path | None = option(None, "Its key, PEM.", "FILE")
    new_owner_token: bool = option(False, "Print a new token for you; the one before is valid no more.")
    laboratory: bool = option(False, "Serve a laboratory pool to other machines.", flags=("--i-know",))
    as_json: bool = option(False, "One JSON object on stdout, for machines.", flags=("--json",))
