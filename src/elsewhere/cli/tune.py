"""Command `tune`: the number of groups of the deniable mode, chosen on users who are no seeds."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from elsewhere.cli.making import Kappa, kappa_of, read_whole
from elsewhere.cli.options import AS_IT_COMES, Draws, Json, Reading, reads
from elsewhere.cli.output import counts, opening, say, stage
from elsewhere.errors import require_whole


@reads
def tune(
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="Traces of people who will be no seeds.", show_default=False)
    ],
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", help="Number of seeds planned.")],
    acceptance: Annotated[float, typer.Option("--acceptance", help="Share of attempts that should pass.")] = 0.8,
    k: Annotated[int, typer.Option("-k", help="Threshold of the gate.")] = 50,
    eps0: Annotated[float, typer.Option("--eps0", help="Parameter of the gate's noise.")] = 1.0,
    kappa: Kappa = "auto",
    seed: Draws = 1,
    as_json: Json = False,
    reading: Reading = AS_IT_COMES,
) -> None:
    """Choose the number of archetypes of the deniable preset on people who will be no seeds."""
    import numpy as np

    from elsewhere.tuning import tune as tuned

    number = kappa_of(kappa)
    rng = np.random.default_rng(require_whole("--seed", seed, 0))
    traces, read = read_whole(source, reading)
    with stage("tuning"):
        found = tuned(traces, seeds=seeds, acceptance=acceptance, kappa=number, k=k, eps0=eps0, rng=rng)
    shown = Table("groups", "accepted", "agreement kept", title=f"{found.seeds} seeds, k = {found.k}")
    for trial in found.trials:
        chosen = " <- chosen" if trial.archetypes == found.archetypes else ""
        shown.add_row(str(trial.archetypes), f"{trial.accepted:.0%}", f"{trial.kept:+.3f}{chosen}")
    known = counts(read)
    say({"command": "tune", **found.to_dict(), "read": known}, [*opening(known), shown], as_json=as_json)
