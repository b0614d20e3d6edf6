"""
What a command says: results on stdout, as JSON or as tables for people; progress on stderr, a line now and then where
that is no terminal.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer
from pydantic.fields import FieldInfo
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from elsewhere import settings
from elsewhere.settings import Settings, option_of

if TYPE_CHECKING:
    from elsewhere.data.visits import Visits
    from elsewhere.run.synthesize import Result

QUIET = 30.0  # seconds between two lines of progress where stderr is no terminal


def flags_of(name: str, field: FieldInfo) -> tuple[str, ...]:
    """Return how an option is typed, the long form last."""
    if field.annotation is bool and field.default:
        return (f"--{name}/--no-{name}",)
    return option_of(field).flags or (f"--{name.replace('_', '-')}",)


# how parameters of the library are typed: a word in place of an argument, or the long form of an option
TYPED = {
    word: option_of(field).metavar or name if option_of(field).argument else flags_of(name, field)[-1].split("/")[0]
    for group in vars(settings).values()
    if isinstance(group, type) and issubclass(group, Settings)
    for name, field in group.options().items()
    for word in (name, option_of(field).parameter or name)
}


def typed(message: str) -> str:
    """
    Return a message of the library with its parameters as options are typed.

    Examples
    --------
    >>> typed("choose another folder, or `force`; such as `grid=Tokyo`, `date_format` or `laboratory=True`.")
    'choose another folder, or --force; such as --grid Tokyo, --date-format or --i-know.'

    """

    def option(found: re.Match[str]) -> str:
        value = found[2] if found[2] not in (None, "True") else ""
        return f"{TYPED[found[1]]} {value}".strip() if found[1] in TYPED else found[0]

    return re.sub(r'`(\w+)(?:="?([^`"]*)"?)?`', option, message)


def say(result: dict[str, Any], renderables: Iterable[RenderableType], *, as_json: bool) -> None:
    """Write the result: one JSON object, or the given tables and texts."""
    if as_json:
        typer.echo(json.dumps(result, indent=2, allow_nan=False))
        return
    console = Console(highlight=False)
    for renderable in renderables:
        if isinstance(renderable, str):
            typer.echo(typed(renderable))  # as it is: a path may hold brackets, and must not be broken into lines
        else:
            console.print(renderable)


@contextmanager
def progress(*stages: str) -> Iterator[Callable[..., None]]:
    """
    Show on stderr which stage a command is in: a bar on a terminal, elsewhere a line every `QUIET` seconds.

    What it yields is called as `(stage, done, total)`, where there is one stage as `(done, total)`; it need not be.
    """
    console, told = Console(stderr=True), monotonic()
    now: list[Any] = [stages[0], 0, 0]

    def described() -> str:
        what, done, total = now
        which = f"{stages.index(what) + 1} of {len(stages)}: " if len(stages) > 1 else ""
        return f"{which}{what}{f' {done}/{total}' if total else ''}"

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(described(), total=None)

        def show(*where: Any) -> None:
            nonlocal told
            before, now[:] = now[0], where if len(where) == len(now) else (stages[0], *where)
            if now[0] != before:  # times are those of a stage
                bar.reset(task)
            bar.update(task, description=described(), completed=now[1], total=now[2] or None)
            if bar.disable and monotonic() - told >= QUIET:
                told = monotonic()
                typer.echo(described(), err=True)

        yield show


def number(value: float | None, digits: int = 3) -> str:
    """Return a figure for people: so many significant digits, nothing where there is none."""
    if value is None:
        return ""
    return f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"


def summary(result: "Result") -> list[Any]:
    """Return what a run did, in at most ten lines: read and made, good for what, what attacks learnt, where to look."""
    from elsewhere.data.visits import UNITS

    facts = result.to_dict()
    private = "" if "seeds" in facts else " (private: counted without noise)"
    units = UNITS[result.fakes.visits.form.unit][1]
    aside = 0 if private else facts["people"] - facts["seeds"]
    lines = [
        f"read {facts['visits']:,} visits of {facts['people']:,} {units} at {facts['places']:,} places{private}, "
        f"{f'left {aside:,} {units} aside to test with, ' if aside else ''}and "
        f"wrote {facts['fakes']:,} fakes with {facts['fake_visits']:,} visits into {result.out}"
    ]
    lost = facts["read"].get("left_out")
    lines += [f"columns left out: {', '.join(lost)}"] if lost else []
    if facts.get("seeds_without_a_fake"):
        lines.append(f"{facts['seeds_without_a_fake']:,} seeds have no fake that passed the privacy test")
    lines += facts["certificate"]["words"][:1] if facts["certificate"]["eps"] is not None else []
    if result.judgement is None:
        return [*lines, *facts["notes"][-1:]]
    from elsewhere.reports.claims import three_sentences

    if result.judgement.usefulness is not None:
        uses = result.judgement.usefulness.uses
        good = [use.title[0].lower() + use.title[1:] for use in uses if use.verdict == "good"]
        lines.append(f"good for {len(good)} of {len(uses)} uses{': ' if good else ''}{'; '.join(good)}")
    findings = None if result.judgement.audit is None else result.judgement.audit.to_dict()
    lines += three_sentences(findings, result.judgement.run)
    alone = "for you alone, as is what the fakes are good for and what attacks learnt" if private else "for you alone"
    return [*lines, f"report, {alone}: {result.private / 'report.html'}"]


def reading(visits: "Visits") -> list[str]:
    """Return how a file was understood: what was read, dropped and noted."""
    import numpy as np

    from elsewhere.data.visits import UNITS

    form, prepared, who = visits.form, visits.preparation, UNITS[visits.form.unit][1]
    what = f"{len(visits):,} {form.record}"
    if visits.trip is not None and form.record == "trips":
        travelled = visits.trip >= 0
        trips = np.unique(np.stack([visits.user[travelled], visits.trip[travelled]]), axis=1).shape[1]
        what = f"{trips:,} trips"
    elif prepared is not None and form.record == "fixes":
        fixes = prepared.rows - sum(prepared.dropped.values())
        what = f"{fixes:,} fixes, merged into {len(visits):,} visits,"
    alone = "each for itself" if form.unit == form.record[:-1] else f"of {visits.U:,} {who}"
    lines = [f"{what} {alone}, at {visits.R:,} places"]
    if prepared is not None:
        lines += [f"dropped: {n:,} {why}" for why, n in prepared.dropped.items()]
        lines += [f"columns left out: {', '.join(prepared.left_out)}"] if prepared.left_out else []
        lines += prepared.notes
    return lines


def left_out(fakes: "Visits") -> list[str]:
    """Return what of the fakes was not judged, and why: what is at no place of the real people, above all."""
    dropped = {} if fakes.preparation is None else fakes.preparation.dropped
    return [f"Of the fakes {n:,} records are not judged: {why}." for why, n in dropped.items()]


def tabled(names: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table for people."""
    table = Table(*names, box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for row in rows:
        table.add_row(*row)
    return table


def usefulness(result: Any) -> list[Any]:
    """Return what fakes are good for, a line each, and the divergences of the field."""
    from elsewhere.evaluation.measures import FIELD

    if not (found := result.divergences):
        return list(result.in_words())
    rows = [
        (words, *(number(found[side][name]) or "-" for side in ("fakes", "seeds"))) for name, words in FIELD.items()
    ]
    return [*result.in_words(), tabled(("Jensen-Shannon divergence", "fakes", "real people"), rows)]


def attacks(result: Any) -> list[Any]:
    """Return three sentences, then a line per attack, the strongest first, and what those that were not run need."""
    from elsewhere.reports.claims import strongest_first, three_sentences

    rows = []
    ran = {name: f for name, f in result.to_dict().items() if f["status"] == "run"}
    for f in (ran[name] for name in strongest_first(ran)):
        between = "" if f["interval"] is None else " .. ".join(number(end) for end in f["interval"])
        rows.append((f["title"], number(f["main"]), between, number(f["control"]), number(f["baseline"]), f["outcome"]))
    table = tabled(("attack", "reached", "95 %", "control", "guessing", "outcome"), rows)
    words = [f"{f.title}: {f.words}" for f in result.findings if f.learnt]
    lacking: dict[str, list[str]] = {}
    for f in result.findings:
        if f.main is None:
            lacking.setdefault(f.needs, []).append(f.title)
    absent = [f"not run, for want of {needs}: {'; '.join(titles)}" for needs, titles in lacking.items()]
    return [*three_sentences(result.to_dict(), {}), table, *words, *absent, *result.notes]


def lbs_tables(result: Any) -> list[Any]:
    """
    Return tables of the median error of tracking under each adversary, by generator and number of fakes, beside
    the ceiling.
    """
    import numpy as np

    sizes = result.settings
    opening = (
        f"{sizes['users']} users, {sizes['slots']} slots, {sizes['places']} places; error of tracking at exposed "
        f"slots, median over users (beta {sizes['beta']:g})"
    )
    rows = []
    for g, generator in enumerate(result.generators):
        for i, m in enumerate(result.n_fakes):
            errors = (f"{result.figure(generator, m, adversary)['median']:.2f}" for adversary in result.adversaries)
            sent = f"{np.nanmedian(result.overhead[:, g, i, 0]):.1f}"
            rows.append((generator, str(m), sent, *errors, f"{m / (m + 1):.2f}"))
    table = tabled(("decoys", "m", "sent", *result.adversaries, "m/(m+1)"), rows)
    legend = (
        "m: fakes sent along; sent: different places per query; then what the adversary knows: how people move, the "
        "user, the pool; last, what m fakes reach that cannot be told from the truth (above it, the "
        "adversary takes a fake for more likely than the truth)"
    )
    return [opening, table, legend]
