"""
Every option of the library and of the command line, declared once: type, range, default and a line of help.

An option is a field of a `Settings` model: its type and `Field` say which values are right, its `Option` what
`elsewhere COMMAND --help` shows. Functions, commands, checks and manifests are made from these declarations. A wrong
value is refused with one line: the parameter, its range, and what was given.

    Reading                  how an input is read
    Making, Job              what `generate_fakes` and `synthesize` take beside a method
    Life, Paper, Certified   the methods and their parameters
    Demo, Plan ...           what the commands take beside these

- `life` publishes: how people live is drawn from a law that many share, where by what places mean;
- `paper` reproduces the paper: its formulas, its tests, model and alternates from the seeds themselves;
- `eps` makes either certified: everything is learnt from noisy sums over everybody, and nobody is a seed.

The letters of parameters are the paper's; E-numbers stand in docs/readings.md.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from elsewhere.errors import InvalidParameter

# what most need comes first in a command's help, in a panel of its own; the rest in these, in this order
PANELS = READ, MODEL, PRIVACY, EXPERT = "Reading", "Model", "Privacy", "Expert"
OUT = ("-o", "--out")
DELTA = 1e-6  # of a certificate, where none is given
LONGEST_SHOWN = 80  # characters of a value in a message
FRAME = "^(Value error, )?(Input should be )?"  # of pydantic around what a value should be


@dataclass(frozen=True)
class Option:
    """
    What the command line shows of a parameter.

    `flags` are by default the name, as --name. `parameter` is its name in the library, where that is another one.
    A `secret` value is shown in no message.
    """

    help: str
    metavar: str | None = None
    flags: tuple[str, ...] = ()
    panel: str | None = None
    argument: bool = False
    parameter: str | None = None
    secret: bool = False


def option(
    default: Any,
    help: str,  # noqa: A002 (the word of typer and argparse)
    metavar: str | None = None,
    flags: tuple[str, ...] = (),
    **more: Any,
) -> Any:
    """Declare a parameter: its default (... for none), the fields of its `Option`, and limits as `Field` has them."""
    about = {name: more.pop(name) for name in Option.__dataclass_fields__ if name in more}
    field = Field(default, **more)
    field.metadata.append(Option(help, metavar, flags, **about))
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
            faults = error.errors(include_url=False)
            name = str(faults[0]["loc"][0])
            right = dict.fromkeys(re.sub(FRAME, "", fault["msg"]) for fault in faults if fault["loc"][0] == name)
            raise self._refusal(name, ", or ".join(right), plain.get(name)) from None

    @classmethod
    def _refusal(cls, name: str, right: str, value: Any) -> InvalidParameter:
        """Return the error for a parameter and what it must be."""
        if name not in cls.model_fields:
            return unknown_parameter(name, cls.model_fields)
        given = "" if option_of(cls.model_fields[name]).secret else f", got {_shown(value)}"
        return InvalidParameter(f"`{name}` must be {right}{given}.", parameter=name)

    @classmethod
    def options(cls) -> dict[str, FieldInfo]:
        """Return what a command that takes these settings shows."""
        return cls.model_fields

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
    return next((part for part in field.metadata if isinstance(part, Option)), Option(""))


def kinds(annotation: Any) -> Iterator[Any]:
    """Yield the types of a union, without what is annotated to them."""
    if get_origin(annotation) is Annotated:
        yield from kinds(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for each in get_args(annotation):
            yield from kinds(each)
    else:
        yield annotation


def _shown(value: Any) -> str:
    """Return a value for a message; of arrays and tables only what they are."""
    if not isinstance(value, (str, int, float, tuple, list, NoneType, timedelta, Path)):
        return type(value).__name__
    text = repr(str(value) if isinstance(value, Path) else value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _directives(value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"([^%]|%[aAbBdfHIjmMpSyYzZ%T])*%[dmyYjHMS].*", value):
        raise ValueError('a format such as "%d.%m.%Y %H:%M"')
    return value


def _codec(value: str | None) -> str | None:
    try:
        codecs.lookup(value or "utf-8")
    except LookupError:
        raise ValueError('an encoding that Python knows, like "cp1252"') from None
    return value


def _several(value: Any) -> Any:
    """Return a text with commas, a list or a set as a tuple."""
    if isinstance(value, str) and not value.isdecimal():
        return tuple(value.split(","))
    return tuple(value) if isinstance(value, (list, set)) else value


# ---- options that several groups have

Kappa: TypeAlias = Annotated[int, Field(ge=2)] | Literal["auto"]  # number of semantic classes
MethodName: TypeAlias = Literal["life", "paper"]
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
k_option = partial(
    keeps, help="People for whom a fake is plausible: its seed and alternates (E52).", metavar="N", flags=("-k",), ge=1
)
eps_option = partial(keeps, 4.0, "Certified: odds about anybody change by at most e^X; by default 4.", "X", gt=0, le=10)
delta_option = partial(keeps, DELTA, "Certified: except with this probability; by default 1e-6.", "X", gt=0, le=0.01)


# ---- reading


class Reading(Settings):
    """How an input is read: the keywords of `read_visits`, and `grid`, a map that is not found in the people."""

    columns: Mapping[str, str] | str | None = reads(
        None, "Columns by name or number: user=id,time=#4,lat=y.", "ROLE=NAME,..."
    )
    tz: str | None = reads(None, "Time zone of the data, such as Europe/Zurich.", "ZONE")
    places: Literal["auto", "grid", "merge"] = reads(
        "auto",
        "How places are made of positions: a public map of cells that enough people share; or, in the laboratory, all "
        "finest cells, or the paper's merged cells (E74).",
    )
    locations: Any = reads(None, "The places: a table of towers, venues or stations, or GeoJSON polygons.", "FILE")
    cells: int | None = reads(None, "Most places; by default 20,000, and 400 where they are merged.", "N", ge=1)
    unit: Literal["person", "trip", "vehicle-day"] | None = reads(None, "Who a user is; by default the file tells.")
    date_format: Annotated[str | None, AfterValidator(_directives)] = reads(
        None, 'How dates are written, such as "%d.%m.%Y %H:%M".', "FORMAT"
    )
    encoding: Annotated[str | None, AfterValidator(_codec)] = reads(
        None, "Encoding of a text file that is not UTF-8.", "NAME"
    )
    interval: float = reads(15, "Seconds between two points of a line of points.", "X", gt=0, le=86400)
    grid: str | None = reads(
        None, "The map: N equal cells of a box in degrees, or of 40 km about a town.", "S,W,N,E,N|TOWN"
    )


# ---- methods


class Method(Settings):
    """Every parameter of a way to make fakes."""

    name: ClassVar[str]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @classmethod
    def _refusal(cls, name: str, right: str, value: Any) -> InvalidParameter:
        """Return the error for a parameter; it says which method has one that this method has not."""
        for other in (Life, Paper, Certified):
            if name not in cls.model_fields and name in other.model_fields:
                way = "give `eps`" if other is Certified else f'use method "{other.name}"'
                return InvalidParameter(f"`{name}` is not read here: {way}.", code="E_NOT_READ", parameter=name)
        if name not in cls.model_fields:
            return unknown_parameter(name, [*cls.model_fields, *Job.model_fields, *Reading.model_fields])
        return super()._refusal(name, right, value)


class Life(Method):
    """The parameters of lives: how from many, where by meaning (E75 ff.)."""

    name = "life"
    k: int = k_option(10)
    par_s: float = experts(0.1, "Largest similarity of a fake life and its seed's (E51, E75).", ge=0, le=1)
    par_d: float = experts(0.1, "Largest difference in similarity to seed and alternates (E51, E77).", ge=0, le=1)
    max_tries: int = experts(20, "Attempts for each life (E63).", ge=1)


class Paper(Method):
    """The parameters of the paper's own method, on slots."""

    name = "paper"
    periods: Annotated[Periods | tuple[float, ...], BeforeValidator(_several)] = experts(
        1, "Parts of the day that moves are learnt in (E5, E24)."
    )
    c_min: int = experts(1, "Least places in a class (E30).", ge=1)
    epsilon: float = experts(0.01, "Share of smoothing by distance (E34).", gt=0, allow_inf_nan=False)
    n_min: int = experts(5, "Least moves of a place by which its moves are learnt (E37).", ge=1)
    sampler: Literal["viterbi", "ffbs"] = experts("viterbi", "How a trace is drawn from candidate sets (E46, E49).")
    par_c: float = experts(0.25, "Share of the places removed from each class (E39).", ge=0, lt=1)
    par_m: float = experts(0.75, "Reach of merging at boundaries (E42).", ge=0, lt=1)
    par_l: float = experts(1.0, "Probability that the true place is removed (E40).", ge=0, le=1)
    par_v: float = experts(4.0, "Randomness of the decoder (E46).", ge=1, allow_inf_nan=False)
    par_s: float = experts(0.1, "Largest similarity of fake and seed (E51).", ge=0, le=1)
    par_i: int = experts(0, "Most places that fake and seed share (E50).", ge=0)
    par_d: float = experts(0.1, "Largest difference in similarity to seed and alternates (E51).", ge=0, le=1)
    k: int = k_option(2)
    against: Literal["own", "all"] = experts("own", "Tests against the own seed, or all seeds (E15).")
    min_sim: float | None = experts(None, "Least similarity of fake and seed (E56).", ge=0, le=1)
    max_tries: int = experts(50, "Attempts for each fake (E63).", ge=1)


class Certified(Method):
    """What a certificate rests on."""

    name = "certified"
    eps: float = eps_option()
    delta: float = delta_option()
    days: int = experts(
        1, "Certified: days that every fake lives, whatever people have; by default 1.", "N", ge=1, le=60
    )


METHODS: dict[str, type[Method]] = {"life": Life, "paper": Paper}


def method_of(method: str | Method, *, eps: float | None = None, delta: float = DELTA, **parameters: Any) -> Method:
    """Return a method by name, or as it is, with some parameters changed; with `eps` the certified one."""
    if not isinstance(method, Method):
        method = METHODS[MethodOptions(method=method).method]()  # type: ignore[arg-type]  # checked there
    if eps is not None:
        return Certified(eps=eps, delta=delta, **parameters)
    return method.changed(**parameters, **({} if delta == DELTA else {"delta": delta}))


# ---- making fakes


class Making(Settings):
    """What `generate_fakes` takes beside a method."""

    kappa: Kappa = kappa_option("auto")
    per_seed: int = option(1, "Fakes made of each seed.", "N", ge=1)
    n: int | None = option(
        None,
        "Certified fakes to release, any number; else about one a person, counted with noise.",
        "N",
        ("-n",),
        ge=1,
        le=10**9,
    )
    workers: int = experts(2, "Threads; the result does not depend on it.", "N", ge=1)


class Job(Making):
    """What `synthesize` takes beside a method and a `Reading`."""

    also: Annotated[tuple[Form, ...], BeforeValidator(_several)] = option(
        (), "Write the fakes in these forms too: gpx, geojson, sglt.", "FORM,..."
    )
    laboratory: bool = experts(
        False,
        "Write a run with --seed as if it were published; it stays marked as a laboratory run.",
        flags=("--i-know",),
    )
    report: bool = option(True, "Whether to evaluate and attack the fakes, and write reports.")
    holdout: float = keeps(
        0.0,
        "Share of the people who are set aside before anything is learnt, to compare with; at most .5.",
        "SHARE",
        ge=0,
        le=0.5,
    )


# ---- what the commands take beside these


class MethodOptions(Settings):
    """Which method a command takes, with its `parameters` as texts; `seed` makes a laboratory run."""

    method: MethodName = option("life", "How fakes are made.")
    parameters: Mapping[str, str] = {}
    seed: int | None = seed_option(
        None, "Laboratory run: repeatable, stamped as such, refused for publishing.", panel=EXPERT
    )

    @classmethod
    def options(cls) -> dict[str, FieldInfo]:
        """Return method, seed and every parameter of a method, which is as the method has it where it is not given."""
        shown = {name: field for name, field in cls.model_fields.items() if name != "parameters"}
        for field_of in (Life.model_fields, Paper.model_fields, Certified.model_fields):
            for name, field in field_of.items():
                shown.setdefault(name, copy(field)).default = None
        return shown

    @classmethod
    def of_texts(cls, texts: Mapping[str, Any]) -> Self:
        """Return the settings that stand on a command line; parameters are checked when their method is `chosen`."""
        own = {name: text for name, text in texts.items() if name in cls.model_fields}
        return super().of_texts({**own, "parameters": {n: text for n, text in texts.items() if n not in own}})

    def chosen(self) -> Method:
        """Return the method with its parameters; with `eps` the certified one."""
        kind = Certified if "eps" in self.parameters else METHODS[self.method]
        return kind.of_texts(self.parameters)


class Answer(Settings):
    """What every command takes that writes files."""

    force: bool = option(False, "Replace DIR; what it holds is kept beside it.")
    as_json: bool = option(False, "One JSON object on stdout, for machines.", flags=("--json",))


class Input(Answer):
    """Where real traces are read, and results written."""

    source: Path = source_option(...)
    out: Path = out_option(...)


class Synthesize(Input):
    """What `synthesize` takes beside a method, a `Job` and a `Reading`."""

    dask: str | None = experts(
        None,
        "Work on the workers of this Dask scheduler, such as tls://host:8786; the result does not depend on it.",
        "ADDRESS",
        parameter="executor",
    )


class Judging(Answer):
    """How a judging command draws, and where its results go."""

    seed: int = seed_option(1, "Same number, same draws of the judge.", panel=EXPERT)
    out: Path | None = out_option(None)


class Demo(Answer):
    """What `demo` takes."""

    users: int = option(600, "People who live in the town.", "N", ge=50, le=5000)
    days: int = option(14, "Days that they are watched.", "N", ge=1, le=60)
    seed: int = seed_option(2, "Same number, same result.")
    out: Path | None = out_option(None)


class Plan(Settings):
    """What `plan` takes beside a `Reading`."""

    source: Path = source_option(...)
    eps: float = eps_option()
    delta: float = delta_option()
    noisy: bool = option(False, "Count people with noise of eps .1, so that others may see the plan; needs a map.")
    as_json: bool = option(False, "One JSON object on stdout, for machines.", flags=("--json",))


class Evaluate(Judging):
    """What `evaluate` takes beside a `Reading`: real people and fakes of them."""

    real: Path = option(..., "Real traces, in any form that `synthesize` reads.", "FILE")
    fakes: Path = option(..., "Fakes of any tool, in any such form; or a folder of `synthesize`.", "FILE|DIR")
    links: Path | None = option(
        None, "Private CSV fake,seed: which fake was made of whom.", "FILE", parameter="seed_index"
    )
    holdout: Path | None = option(None, "Real people who never met the generator, to compare with.", "FILE")


class Audit(Evaluate):
    """What `audit` takes beside a `Reading`."""

    attacks: str = option("all", "all, or ids such as A2,A5.", "ID,...")


def _numbers_of_fakes(value: str) -> str:
    if not all(word.isdecimal() and 1 <= int(word) <= 1000 for word in value.split(",")):
        raise ValueError("whole numbers in 1 .. 1000 with commas between")
    return value


class Lbs(Judging):
    """What `lbs` takes beside a `Reading`."""

    real: Path | None = option(None, "Real traces of two days; by default 60 people of a simulated town.", "FILE")
    per_seed: int = option(20, "Fakes of the paper's method made of each user.", "N", ge=1)
    n_fakes: Annotated[str, AfterValidator(_numbers_of_fakes)] = option("1,5,10", "Fakes sent along.", "N,...")
    beta: float = experts(0.5, "Probability that a slot is exposed.", "X", gt=0, le=1)


class Reproduce(Judging):
    """What `reproduce` takes beside a `Reading`."""

    data: Path | None = option(None, "Traces of two days; by default a simulated town.", "[DATA]", argument=True)
    users: int = option(30, "People of the simulated town.", "N", ge=4, le=1000)
    per_seed: int = option(500, "Attempts per user, 10 or more.", "N", ge=10)
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
    rate: float = option(120.0, "Requests per minute of each token.", "N", gt=0)
    cert: Path | None = option(None, "Certificate of TLS, PEM.", "FILE")
    key: Path | None = option(None, "Its key, PEM.", "FILE")
    new_owner_token: bool = option(False, "Print a new token for you; the one before is valid no more.")
    laboratory: bool = option(False, "Serve a laboratory pool to other machines.", flags=("--i-know",))
    as_json: bool = option(False, "One JSON object on stdout, for machines.", flags=("--json",))
