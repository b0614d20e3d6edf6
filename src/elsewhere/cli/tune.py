"""Command `tune`: settings of the deniable mode, chosen on users who are no seeds."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from elsewhere.cli.making import Emission, Eps0, K, Kappa, Set, kappa_of, parameters_of, read_whole
from elsewhere.cli.options import AS_IT_COMES, Draws, Json, Reading, reads
from elsewhere.cli.output import bar, counts, opening, say
from elsewhere.errors import InvalidParameter, require_whole
from elsewhere.presets import preset_of


@reads
def tune(
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="Traces of people who will be no seeds.", show_default=False)
    ],
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", help="Number of seeds planned.")],
    emission: Emission = None,
    acceptance: Annotated[float, typer.Option("--acceptance", help="Share of attempts that should pass.")] = 0.8,
    k: K = None,
    eps0: Eps0 = None,
    kappa: Kappa = "auto",
    parameters: Set = None,
    seed: Draws = 1,
    as_json: Json = False,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    Choose the settings of the deniable preset for a wanted acceptance, on people who will be no seeds.

    Some of them stand in for the seeds, the others are learnt from: fakes are drawn, and what would pass the gate is
    counted. The last line is the `synthesize` to type, with the names of your input and folder.

    Example: elsewhere tune others.csv --seeds 500
    """
    import numpy as np

    from elsewhere.privacy.deniability import deniability_ledger
    from elsewhere.tuning.search import TUNED
    from elsewhere.tuning.search import tune as tuned

    number = kappa_of(kappa)
    settings = parameters_of(parameters, k=k, eps0=eps0, emission=emission)
    if "acceptance" in settings:
        raise InvalidParameter("`acceptance` of a preset is the floor of a run; give the wish as --acceptance.")
    wanted = preset_of("deniable", **settings)  # refused before a large input is read
    if seeds >= wanted.k:
        # and what `synthesize` would refuse: advice that cannot be followed is none
        deniability_ledger(
            k=wanted.k,
            gamma=wanted.gamma,
            eps0=wanted.eps0,
            delta_target=wanted.delta_target,
            acceptance=wanted.acceptance,
            seeds=seeds,
        )
    rng = np.random.default_rng(require_whole("--seed", seed, 0))
    traces, read = read_whole(source, reading, wanted, 1)
    with bar("tuning") as progress:
        found = tuned(traces, seeds=seeds, acceptance=acceptance, kappa=number, rng=rng, progress=progress, **settings)
    names = TUNED[found.emission]
    shown = Table(
        *(name.replace("archetypes", "groups") for name in names),
        *("accepted", "agreement kept", "moves, of people's"),
        title=f"{found.emission}: {found.seeds} seeds, k = {found.k}",
    )
    for trial in found.trials:
        chosen = " <- chosen" if trial == found.chosen else ""
        tried = (f"{getattr(trial, name):g}" for name in names)
        shown.add_row(*tried, f"{trial.accepted:.0%}", f"{trial.kept:+.3f}", f"{trial.moves:.2f}{chosen}")
    known = counts(read)
    told = " ".join(["use: elsewhere synthesize INPUT -o DIR", *reading.words(), "--preset deniable", found.words])
    if not found.met:
        told = f"nothing that was tried passes as often as wished, {acceptance:.0%}; the nearest is {told}"
    say({"command": "tune", **found.to_dict(), "read": known}, [*opening(known), shown, told], as_json=as_json)
