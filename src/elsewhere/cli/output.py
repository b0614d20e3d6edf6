"""
What a command says: results on stdout, as JSON or as tables for people; progress on stderr, a line now and then where
that is no terminal.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table

if TYPE_CHECKING:
    from elsewhere.data.visits import Visits
    from elsewhere.evaluation.reproduce import Reproduction
    from elsewhere.run.synthesize import Result

QUIET = 30.0  # seconds between two lines of progress where stderr is no terminal


def say(result: dict[str, Any], renderables: Iterable[RenderableType], *, as_json: bool) -> None:
    """Write the result: one JSON object, or the given tables and texts."""
    if as_json:
        typer.echo(json.dumps(result, indent=2, allow_nan=False))
        return
    console = Console(highlight=False)
    for renderable in renderables:
        if isinstance(renderable, str):
            typer.echo(renderable)  # as it is: a path may hold brackets, and must not be broken into lines
        else:
            console.print(renderable)


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Show a spinner on stderr while `what` is being done; silent where stderr is not a terminal."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(what):
            yield
    else:
        yield


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr, fed by calling what it yields as `(done, total)`; only to a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def bars(stages: Sequence[str]) -> Iterator[Callable[[str, int, int], None]]:
    """Show the progress of a job in stages, like `bar`, fed by `(stage, done, total)` as `synthesize` tells it."""
    console = Console(stderr=True)

    def described(what: str, done: int, total: int) -> str:
        return f"{stages.index(what) + 1} of {len(stages)}: {what}{f' {done}/{total}' if total else ''}"

    if not console.is_terminal:
        with _now_and_then(described) as show:
            yield show
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        now, task = "", progress.add_task("", total=None)

        def show(what: str, done: int, total: int) -> None:
            nonlocal now
            if what != now:  # times are those of a stage
                progress.reset(task)
            now = what
            progress.update(task, description=described(what, done, total), completed=done, total=total or None)

        yield show


@contextmanager
def _now_and_then(described: Callable[[str, int, int], str]) -> Iterator[Callable[..., None]]:
    """Write where the job is to stderr every `QUIET` seconds, however long a stage lasts."""
    now: list[tuple[str, int, int]] = []  # the latest
    ended = threading.Event()

    def show(what: str, done: int, total: int) -> None:
        now[:] = [(what, done, total)]

    def tell() -> None:
        while not ended.wait(QUIET):
            for latest in now:
                typer.echo(described(*latest), err=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield show
    finally:
        ended.set()
        teller.join()


def number(value: float | None, digits: int = 3) -> str:
    """Return a figure for people: so many significant digits, nothing where there is none."""
    if value is None:
        return ""
    return f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"


def summary(result: "Result") -> list[Any]:
    """Return what a run did, in at most ten lines: read, made, good for what, what attacks learnt, where it is."""
    facts = result.to_dict()
    lines = [
        f"read {facts['visits']:,} visits of {facts['people']:,} people at {facts['places']:,} places",
        f"made {facts['fakes']:,} fakes with {facts['fake_visits']:,} visits"
        + (f" of {facts['seeds']:,} seeds" if "seeds" in facts else ", of nobody in particular"),
    ]
    if facts.get("seeds_without_a_fake"):
        lines.append(f"{facts['seeds_without_a_fake']:,} seeds have no fake that passed the privacy test")
    lines += facts["certificate"]["words"][:1] if facts["certificate"]["eps"] is not None else []
    if result.judgement is not None:
        from elsewhere.reports.claims import three_sentences

        if result.judgement.usefulness is not None:
            good = [u.title for u in result.judgement.usefulness.uses if u.verdict == "good"]
            lines.append(f"good for: {', '.join(good) or 'none of the uses that were judged'}")
        findings = None if result.judgement.audit is None else result.judgement.audit.to_dict()
        lines += three_sentences(findings, result.judgement.run)
    if result.private_files:
        lines.append(f"wrote {', '.join(result.private_files)} into {result.private}: for you alone")
    lines.append(f"wrote {', '.join(result.files)} into {result.out}")
    return lines


def reading(visits: "Visits") -> list[str]:
    """Return how a file was understood: what was read, dropped and noted."""
    lines = [
        f"{len(visits):,} {visits.form.record} of {visits.U:,} users (unit: {visits.form.unit}) at {visits.R:,} places"
    ]
    if visits.preparation is not None:
        lines += [f"dropped: {n:,} {why}" for why, n in visits.preparation.dropped.items()]
        lines += visits.preparation.notes
    return lines


def usefulness(result: Any) -> list[Any]:
    """Return what fakes are good for, a line each, and the divergences of the field."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("Jensen-Shannon divergence", "fakes", "real people"):
        table.add_column(name)
    divergences = result.divergences
    for name in divergences.get("fakes", {}):
        table.add_row(name, number(divergences["fakes"][name]), number(divergences["seeds"][name]))
    return [*result.in_words(), *([table] if divergences else [])]


def attacks(result: Any) -> list[Any]:
    """Return a line per attack: what it reached, what strangers and guessing give, what it learnt in words."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for name in ("", "attack", "reached", "95 %", "strangers", "guessing", "outcome"):
        table.add_column(name, overflow="fold")
    for f in result.table():
        if f["status"] == "run":
            between = "" if f["low"] is None else f"{number(f['low'])} .. {number(f['high'])}"
            figures = (number(f["main"]), between, number(f["control"]), number(f["baseline"]))
            table.add_row(f["id"], f["attack"], *figures, f["outcome"])
    words = [f"{f.id}: {f.words}" for f in result.findings if f.learnt]
    absent = [f"{f.id} was not run: it needs {f.needs}" for f in result.findings if f.main is None]
    return [table, *words, *absent, result.in_words()]


def lbs_tables(result: Any) -> list[Any]:
    """
    Return tables of the median error of tracking under each adversary, by generator and number of fakes, beside
    the ceiling.
    """
    sizes = result.settings
    opening = (
        f"{sizes['users']} users, {sizes['slots']} slots, {sizes['places']} places; error of tracking at exposed "
        f"slots, median over users (beta {sizes['beta']:g})"
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("decoys", "m", "sent", *result.adversaries, "m/(m+1)"):
        table.add_column(name, no_wrap=True)
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for row in result.table():
        if row["attack"] == "tracking":
            entry = rows.setdefault((row["generator"], row["fakes"]), {"sent": row["diversity"], "top": row["ceiling"]})
            entry[row["adversary"]] = row["error"]
    for (generator, m), row in rows.items():
        errors = ("" if row.get(a) is None else f"{row[a]:.2f}" for a in result.adversaries)
        table.add_row(generator, str(m), f"{row['sent']:.1f}", *errors, f"{row['top']:.2f}")
    legend = (
        "m: fakes sent along; sent: different places per query; then what the adversary knows: how people move, the "
        "user, the classes, the pool; last, what m fakes reach that cannot be told from the truth (above it, the "
        "adversary takes a fake for more likely than the truth)"
    )
    return [opening, table, legend, *_over_days(result)]


def _over_days(result: Any) -> list[Any]:
    """Return tables of homes and main places found by watching for several days, by kind of decoys."""
    if not result.over_days:
        return []
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    days_watched = sorted({days for watch in result.over_days for days in watch.users})
    for name in ("decoys", "m", "found", *(f"{days} day{'s' * (days > 1)}" for days in days_watched), "guess"):
        table.add_column(name, no_wrap=True)
    for watch in result.over_days:
        for decoys, words in (("persona", "the same every day"), ("fresh", "fresh every day")):
            for place, by_days in watch.found[decoys].items():
                rates = ("" if (r := by_days.get(days)) is None else f"{r.value:.2f}" for days in days_watched)
                table.add_row(words, str(watch.n), place, *rates, f"{watch.guess:.2f}")
    opening = "share of homes and of main places that a service finds which sees every line of every day, by its watch"
    return [opening, table, *(watch.in_words() for watch in result.over_days)]


def reproduction_tables(result: "Reproduction") -> list[Any]:
    """Return the rows for people, then what disagrees, and why."""
    beside = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("in the paper", "what", "paper", "here", "95 %", ""):
        beside.add_column(name, no_wrap=name in ("", "95 %"))
    mark = {True: "agrees", False: "differs", None: ""}
    for row in result.rows:
        figures = (v if isinstance(v, str) else number(v) for v in (row.paper, row.ours))
        between = "" if row.interval is None else " .. ".join(number(v) for v in row.interval)
        beside.add_row(row.place, row.what, *figures, between, mark[row.agrees])
    differs = [f"differs: {row.what}: {row.why}" for row in result.rows if row.agrees is False]
    agree = sum(row.agrees is True for row in result.rows)
    others = sum(row.agrees is None for row in result.rows)
    last = f"{agree} rows agree, {len(differs)} differ, {others} are facts of the data, or the product's way"
    return [beside, *differs, last]
