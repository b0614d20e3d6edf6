"""How fakes are made of an input: the options of `synthesize`, `fit` and `generate`, and the work behind them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elsewhere.cli.options import gives
from elsewhere.cli.output import bar
from elsewhere.errors import InvalidParameter, require_whole
from elsewhere.run.advice import advised

if TYPE_CHECKING:
    import numpy as np

    from elsewhere.fakes import Fakes
    from elsewhere.presets import Preset
    from elsewhere.traces.model import Traces

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
