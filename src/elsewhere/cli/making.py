"""How fakes are made of an input: the options of `synthesize`, `fit` and `generate`, and the work behind them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elsewhere.cli.advice import advised, join_places
from elsewhere.cli.options import AS_IT_COMES, Reading, gives
from elsewhere.cli.output import bar, stage
from elsewhere.cli.told import made_by
from elsewhere.errors import InvalidParameter, InvalidTraces, NotEnoughUsers, require_whole

if TYPE_CHECKING:
    import numpy as np

    from elsewhere.fakes import Fakes
    from elsewhere.presets import Preset
    from elsewhere.traces.fixes import Preparation
    from elsewhere.traces.model import Traces

PerSeed = Annotated[int, typer.Option("--per-seed", metavar="N", help="Fakes per seed.")]
Kappa = Annotated[str, typer.Option("--kappa", metavar="N|auto", help="Number of semantic classes.")]
Workers = Annotated[int, typer.Option("--workers", metavar="N", help="Threads; the result does not depend on it.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Any other parameter of the preset, e.g. --set m_min=3; repeatable."
    ),
]
K = Annotated[
    int | None,
    typer.Option(
        "-k", metavar="N", help="People behind a fake: alternates and seed; in the deniable preset seeds, 0: not asked."
    ),
]
Eps0 = Annotated[float | None, typer.Option("--eps0", metavar="X", help="Deniable preset: eps of the whole release.")]
Eps = Annotated[
    float | None,
    typer.Option("--eps", metavar="X", help="Private preset: odds about anybody change by at most e^X (default 4)."),
]
Delta = Annotated[
    float | None, typer.Option("--delta", metavar="X", help="Private preset: except with this probability (1e-6).")
]
Number = Annotated[
    int | None,
    typer.Option(
        "-n", metavar="N", help="Deniable and private presets: fakes to release, any number; else one a person."
    ),
]


@dataclass(frozen=True)
class Making:
    """What decides which fakes are made: the options that every command which makes them has, see `makes`."""

    preset: Annotated[
        str, typer.Option("--preset", metavar="paper|product|deniable|private", help="What is promised.")
    ] = "product"
    kappa: Kappa = "auto"
    k: K = None
    eps0: Eps0 = None
    eps: Eps = None
    delta: Delta = None
    number: Number = None
    parameters: Set = None
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", metavar="N", help="Laboratory run: repeatable, stamped as such, refused for publishing."
        ),
    ] = None

    def rng(self) -> "np.random.Generator | None":
        """The generator of a laboratory run; without `--seed` the operating system's entropy is asked."""
        import numpy as np

        return None if self.seed is None else np.random.default_rng(require_whole("--seed", self.seed, 0))

    def settings(self) -> dict[str, Any]:
        """The parameters given by `--set`, and those with an option of their own, by name."""
        return parameters_of(self.parameters, k=self.k, eps0=self.eps0, eps=self.eps, delta=self.delta)

    def check(self, per_seed: int = 1, workers: int = 1) -> "Preset":
        """The preset with all that was given; what cannot be is refused here, before a large input is read."""
        from elsewhere.presets import preset_of

        require_whole("--per-seed", per_seed, 1)
        require_whole("--workers", workers, 1)
        if self.seed is not None:
            require_whole("--seed", self.seed, 0)
        if not isinstance(kappa := kappa_of(self.kappa), str):
            require_whole("--kappa", kappa, 2)
        settings = preset_of(self.preset, **self.settings())
        if self.number is not None:
            require_whole("-n", self.number, 1)
        return settings


ASSERTED = "is the caller's assertion"
BY_DEFAULT = Making()
makes = gives("making", Making)


def kappa_of(text: str) -> int | str:
    """The number of classes that the option asks for."""
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter(f'`--kappa` must be a whole number or "auto", got {text!r}.') from None


def parameters_of(words: list[str] | None, **options: Any) -> dict[str, Any]:
    """The parameters in words NAME=VALUE, and those that were given by `options` of their own (None: not given)."""
    import ast

    from elsewhere.presets import check_names

    found: dict[str, Any] = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise InvalidParameter(f"`--set` must be NAME=VALUE, got {word!r}.")
        words_for = {"true": True, "false": False, "none": None}
        try:
            found[name] = words_for[value.lower()] if value.lower() in words_for else ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name in found and found[name] != given[name]:
            option = f"-{name}" if len(name) == 1 else f"--{name}"
            raise InvalidParameter(f"{option} {given[name]} and --set {name}={found[name]} differ; leave one out.")
    return check_names({**found, **given})


def read_whole(
    source: Path,
    reading: Reading,
    settings: "Preset",
    least: int | None = None,
    model: Path | None = None,
    seed: int | None = None,
) -> "tuple[Traces, Preparation]":
    """
    The days without a gap of an input, and what became of it; refused where they are of too few people.

    `least` people are needed, by default those that the preset needs. Places that too few people share are joined,
    unless they were asked for. Where a `model` is given, everything is read as it was. The deniable preset finds its
    map in people who are no seeds, with coins that `seed` decides in a laboratory run.
    """
    from elsewhere.presets import PROVEN
    from elsewhere.split import least_users
    from elsewhere.traces.kept import kept_in
    from elsewhere.traces.read import read_traces

    if settings.name == "private" and kept_in(source) is not None:
        raise InvalidParameter(
            'preset "private" needs a map that these people have not shaped, and this folder was prepared with its '
            "own: give the file it was made from, with --grid, --locations or --regions.",
            code="E_MAP",
        )
    as_made = reading if model is None else reading.as_made(made_by(model))
    reports: list[Preparation] = []
    chosen = (reading.cells, reading.places, reading.locations, reading.regions)
    joins = chosen == (AS_IT_COMES.cells, AS_IT_COMES.places, None, None)
    with stage("reading"):
        if settings.name == "deniable" and model is None and kept_in(source) is None:
            from elsewhere.traces.apart import read_apart

            traces = read_apart(
                source,
                key=_key(seed),
                report=reports.append,
                joined=(lambda others: join_places(whole_rows(others), settings)[0]) if joins else None,
                **as_made.keywords(settings.name),
            )
        else:
            traces = read_traces(source, report=reports.append, **as_made.keywords(settings.name))
    # where a theorem covers the fakes, how many people there are is no reason to refuse before the split says so
    fewest = 1 if settings.name in PROVEN else least_users(settings)
    read, least = reports[0], fewest if least is None else least
    if read.users_usable == 0:
        raise InvalidTraces(_too_few(read, settings, least), code="E_GAPS")
    whole = whole_rows(traces)
    if read.users_usable < min(least, read.users + read.users_dropped):  # of people who are all usable it is not said
        with advised(whole, settings):
            raise NotEnoughUsers(_too_few(read, settings, least))
    if read.places_found > 1 and (whole.r == whole.r[0, 0]).all():
        with advised(whole, settings):
            raise InvalidTraces(
                "no place is shared by enough people: joined until enough share them, all places are one; give more "
                "people, or say with `places` or `locations` what the places are.",
                code="E_SUPPRESSED",
            )
    notes = _without_a_day(whole, traces, read)
    if joins and read.seeds is None:
        whole, joined = join_places(whole, settings)
        read = replace(read, places=whole.R, places_joined=bool(joined))
        notes += joined
    return whole, replace(read, notes=(*read.notes, *notes))


def _key(seed: int | None) -> bytes:
    """The key of everybody's coin: of the operating system, or of the number of a laboratory run."""
    import secrets

    import numpy as np

    if seed is None:
        return secrets.token_bytes(32)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(7,))).bytes(32)


def _too_few(read: "Preparation", settings: "Preset", least: int) -> str:
    """All that stands in the way of making fakes, with numbers, in one message."""
    people, days = read.users + read.users_dropped, read.days + read.days_dropped
    usable = f"{read.users_usable:,} of {people:,} people have a usable day, one known from end to end"
    need = f'preset "{settings.name}" needs {least:,} (`k` = {settings.k})'
    return f"{usable}, and {need}; in the way, of {days:,} days: {'; '.join(read.in_the_way())}."


def _without_a_day(whole: "Traces", traces: "Traces", read: "Preparation") -> list[str]:
    """How many people have a day that can be used, and why the others have none; how many days are left out."""
    people, notes = read.users + read.users_dropped, []
    if whole.U < people:
        why = "; ".join(read.in_the_way(by_gap=False))  # the notes of the reading have them
        notes.append(f"{whole.U:,} of {people:,} people have a usable day, one known from end to end: {why}")
    if len(whole) < len(traces):
        days, gaps = len(traces) + read.days_dropped, len(traces) - len(whole)
        dropped = f"{read.days_dropped:,} were dropped, {gaps:,} more" if read.days_dropped else f"{gaps:,}"
        notes.append(f"{len(whole):,} of {days:,} days can be used: {dropped} have gaps and are left out")
    return notes


def whole_rows(traces: "Traces") -> "Traces":
    """The rows without a gap, which alone can be seeds."""
    import numpy as np

    whole = np.all(traces.r >= 0, axis=1)
    if not whole.any():
        raise InvalidTraces(
            f"none of {len(traces)} days of {traces.U} users is complete, and only whole days can be seeds; a longer "
            "--max-gap or --step fills more.",
            code="E_GAPS",
        )
    return traces if whole.all() else traces.select(whole)


def make_fakes(
    traces: "Traces",
    making: Making,
    per_seed: int,
    workers: int,
    model: Path | None = None,
    seeds: frozenset[str] | None = None,
) -> "Fakes":
    """The fakes of these traces, with progress; with what `fit` has learnt, and who the seeds are, if it is given."""
    from elsewhere.generate import generate_fakes

    given: dict[str, Any] = {} if seeds is None else {"seeds": seeds}
    people = traces
    if model is not None:
        people, given = _roles(traces, making.preset, model)
    with advised(traces, making.check()), bar("making fakes") as progress:
        fakes = generate_fakes(
            people,
            preset=making.preset,
            per_seed=per_seed,
            n=making.number,
            kappa=kappa_of(making.kappa),
            rng=making.rng(),
            workers=workers,
            progress=progress,
            **given,
            **making.settings(),
        )
    if model is not None and making.preset == "deniable":
        fakes = _compared(fakes)
    return fakes if people is traces else _in_file(fakes, people, traces)


def _compared(fakes: "Fakes") -> "Fakes":
    """The same fakes; that no seed has met the model was not asserted by anybody, ids were compared (`_roles`)."""
    note = (
        "the ids here were compared with those of the model's people, and whoever is among them is no seed; a person "
        "under another id would not be noticed."
    )
    return replace(fakes, notes=tuple(note if ASSERTED in said else said for said in fakes.notes))


def _in_file(fakes: "Fakes", people: "Traces", traces: "Traces") -> "Fakes":
    """Fakes of some people of a file, with their seeds counted as rows of the whole file."""
    import numpy as np

    rows = np.flatnonzero(np.isin(traces.users.astype(str), np.array([str(label) for label in people.labels])))
    attempts = fakes.attempts
    if len(attempts) == len(people):
        attempts = np.zeros(len(traces), dtype=np.int64)
        attempts[rows] = fakes.attempts
    among = None if fakes.seed_rows is None else rows[fakes.seed_rows]
    return replace(fakes, seed=rows[fakes.seed], seed_rows=among, attempts=attempts, seeds=traces)


def _roles(traces: "Traces", preset: str, model: Path) -> "tuple[Traces, dict[str, Any]]":
    """Whom the model has met are the product's seeds, and never those of the deniable mode."""
    import numpy as np

    from elsewhere.contributors import contributed
    from elsewhere.learnt import Learnt

    given: dict[str, Any] = {"model": Learnt.load(model)}
    met = contributed(model, traces)
    if preset == "deniable":
        if met is None:
            raise InvalidParameter("this model does not remember its contributors; run `fit` again.", code="E_DISJOINT")
        if met.all():
            raise InvalidParameter("every user here has contributed to the model: no seed is left.", code="E_DISJOINT")
        return traces.of_users(np.flatnonzero(~met)), {**given, "disjoint": True}
    if preset == "product" and met is not None and met.any() and not met.all():
        given["alternates"] = traces.of_users(np.flatnonzero(~met))
        traces = traces.of_users(np.flatnonzero(met))
    return traces, given
