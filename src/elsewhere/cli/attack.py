"""Command `audit`: the attack suite, on our fakes or any other tool's."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from elsewhere.cli.options import AS_IT_COMES, AS_USUAL, Judging, Reading, judges, reads
from elsewhere.cli.output import bar, columns, number, say
from elsewhere.cli.sources import Links, Made, Model, Real, Sources, read_real, with_fakes, write_results
from elsewhere.errors import InvalidParameter
from elsewhere.files import check_folder

if TYPE_CHECKING:
    from elsewhere.traces.model import Ints, Traces

# column of the table -> width of a terminal that shows it
FIGURES = {"main": 0, "95 %": 54, "control": 63, "chance": 71, "bar": 79}


@reads
@judges
def audit(
    real: Real,
    fakes: Made,
    links: Links = None,
    holdout: Annotated[
        Path | None,
        typer.Option("--holdout", metavar="FILE", help="Real people who never met the generator: the control."),
    ] = None,
    model: Model = None,
    attacks: Annotated[str, typer.Option("--attacks", metavar="ID,...", help="all, or ids such as A2,A5.")] = "all",
    m_min: Annotated[int, typer.Option("--m-min", metavar="N", help="People that a place must have (A13).")] = 5,
    judging: Judging = AS_USUAL,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    Attack fakes as an adversary would; say what each attack reached, beside what it reaches without any seed.

    --links says who was made from whom. Without --holdout, the people of --real of whom no fake was made are the
    control. With -o: audit.json and report.html, which shows aggregates and fakes only.

    Example: elsewhere audit --real real.csv --fakes out/fakes --links out/fakes-private/links.csv --attacks A2,A4,A5
    """
    out = judging.out
    if out is not None:
        check_folder(out, force=judging.force)
    rng = judging.rng()
    wanted: Any = attacks if attacks == "all" else [a.strip().upper() for a in attacks.split(",") if a.strip()]
    from elsewhere.evaluation.attacks.suite import ALL

    if not wanted or (wanted != "all" and set(wanted) - set(ALL)):
        raise InvalidParameter(f"`--attacks` must be all, or ids A1 .. A21 with commas between, got {attacks!r}.")
    sources = read_real(real, reading, fakes)
    sources = with_fakes(sources, fakes, links)
    others, sources = sources.further(holdout, "--holdout")
    seeds, index, control, notes = split(sources, others)
    learnt = sources.learnt(model)
    from elsewhere.evaluation.audit import audit as attack

    if model is not None and control is not None:
        notes += _acquainted(model, control)
    given: dict[str, Any] = {} if learnt is None else {"model": learnt.model, "classes": learnt.classes}
    if sources.private is not None:
        given["attempts"] = sources.private.attempts
        if sources.private.ledger is not None:
            given |= {name: getattr(sources.private.ledger, name) for name in ("k", "gamma", "eps0", "t", "acceptance")}
    with bar("attacking") as progress:
        result = attack(
            seeds,
            control,
            sources.fakes,
            index,
            attacks=wanted,
            pool=sources.fakes if sources.published else None,
            m_min=m_min,
            progress=progress,
            rng=rng,
            **given,
        )
    found = result.to_dict()
    told = {
        "command": "audit",
        "attacks": found,
        "flagged": list(result.flagged),
        "sizes": result.sizes,
        "notes": [*sources.notes, *notes, *result.notes],
    }
    shown = [*tables(result), *told["notes"]]
    if out is not None:
        shown += write_results(out, "audit.json", told, [result], sources)
    say(told, shown, as_json=judging.as_json)


def split(sources: Sources, holdout: "Traces | None") -> "tuple[Traces, Ints | None, Traces | None, tuple[str, ...]]":
    """The people behind the fakes, the row of each fake's seed among them, the control, and who the control is."""
    import numpy as np

    real, index = sources.real, sources.seed_index
    if index is None:
        note = "who was made from whom is not known (`--links`): attacks that link fakes to people are not run."
        return real, None, holdout, (note,)
    private = sources.private
    is_seed = np.zeros(real.U, dtype=bool)
    is_seed[real.user[index]] = True
    if private is not None and private.seed_rows is not None:
        whole = np.flatnonzero(np.all(real.r >= 0, axis=1))
        is_seed[real.user[whole[private.seed_rows]]] = True
    rows = np.flatnonzero(is_seed[real.user])
    notes: tuple[str, ...] = ()
    if holdout is None and np.count_nonzero(~is_seed) >= 2:
        holdout = real.of_users(np.flatnonzero(~is_seed))
        notes = (
            f"control: the {holdout.U} people of --real of whom no fake is known; whether they met the generator in "
            "another role is not known here.",
        )
    elif holdout is None:
        notes = ("no control: every person of --real is a seed; give others with --holdout.",)
    return real.select(rows), np.searchsorted(rows, index), holdout, notes


def _acquainted(model: Path, control: "Traces") -> tuple[str, ...]:
    from elsewhere.contributors import contributed

    met = contributed(model, control)
    if met is None:
        return ("whether the control has met the model is not known: the model does not remember its contributors.",)
    return (f"{int(met.sum())} of the {control.U} people of the control have contributed to the model.",)


def tables(result: Any, width: int | None = None) -> list[Any]:
    """One line per attack, as wide as the terminal, then in words what was flagged and what could not be run."""
    width = columns() if width is None else width
    sizes = result.sizes
    opening = (
        f"{sizes['fakes']} fakes of {sizes['seed_users']} people, {sizes['holdout_users']} people as control, "
        f"{sizes['places']} places, {sizes['instants']} instants"
    )
    found = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    # figures beside the main one are short, and no word of a title is cut; what does not fit goes, the verdict last
    figures = [name for name in FIGURES if width >= FIGURES[name]]
    for name in ("", "attack", *figures, "verdict"):
        found.add_column(name, no_wrap=name != "attack", overflow="fold")
    verdict = {True: "passed", False: "FLAGGED", None: "reported"}
    left_out = []
    for row in result.table():
        if row["status"] != "run":
            left_out.append(f"{row['id']} {row['words'] or row['status']}")
            continue
        shown = {
            "main": number(row["main"]),
            "95 %": "" if row["low"] is None else f"{number(row['low'], 2)}-{number(row['high'], 2)}",
            "control": number(row["control"], 2),
            "chance": number(row["baseline"], 2),
            "bar": number(row["bar"]),
        }
        found.add_row(row["id"], row["attack"], *(shown[name] for name in figures), verdict[row["passed"]])
    if len(figures) < len(FIGURES):
        left_out.insert(0, "a wider terminal, or --json, shows " + ", ".join(n for n in FIGURES if n not in figures))
    words = [f"{f.id} flagged: {f.words}" for f in result.findings if f.passed is False]
    return [opening, found, *words, *left_out]
