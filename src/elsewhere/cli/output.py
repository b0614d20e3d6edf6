"""What a command says: results on stdout, as JSON or for people; progress on stderr, only to a terminal."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, RenderableType

from elsewhere.cli.words import spoken

if TYPE_CHECKING:
    from elsewhere.traces.fixes import Preparation


def say(result: dict[str, Any], renderables: Iterable[RenderableType], *, as_json: bool) -> None:
    """The result: one JSON object, or the given tables and texts."""
    if as_json:
        typer.echo(json.dumps(result, indent=2, allow_nan=False))
        return
    console = Console(highlight=False)
    for renderable in renderables:
        if isinstance(renderable, str):
            typer.echo(spoken(renderable))  # as it is: a path may hold brackets, and must not be broken into lines
        else:
            console.print(renderable)


def counts(read: "Preparation") -> dict[str, Any]:
    """What became of an input, without its name: a result may travel further than the file."""
    return {field: value for field, value in read.to_dict().items() if field != "name"}


def opening(read: dict[str, Any]) -> list[str]:
    """The `counts` in words: what was read, dropped and repaired, and what should be known about it."""
    kept = f"read {read['rows']:,} rows: {read['users']:,} users, {read['days']:,} days"
    kept += f"; {read['users_usable']:,} of {read['users'] + read['users_dropped']:,} people have a usable day"
    lost = f"{sum(read['dropped'].values()):,} rows, {read['days_dropped']:,} days, {read['users_dropped']:,} users"
    return [f"{kept}; dropped {lost}", *repairs(read), *read["notes"]]


def repairs(read: dict[str, Any]) -> list[str]:
    """How many rows were dropped or repaired, one line per reason."""
    from elsewhere.reports.preparation import REASONS

    return [
        f"{did}: {n:,} {'row' if n == 1 else 'rows'}, {REASONS.get(why, why)}"
        for did in ("dropped", "fixed")
        for why, n in read[did].items()
    ]


def columns() -> int:
    """How many characters a line of stdout holds."""
    return Console().width


@contextmanager
def stage(what: str) -> Iterator[None]:
    """A spinner on stderr while `what` is being done; silent where stderr is not a terminal."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(what):
            yield
    else:
        yield


def can_draw_blocks() -> bool:
    """Whether stdout can show block characters."""
    return Console().encoding.lower().startswith("utf")


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr, fed by calling what it yields as `(done, total)`; only to a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def number(value: float | None, digits: int = 3) -> str:
    """A figure for people: so many significant digits, nothing where there is none."""
    if value is None:
        return ""
    return f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"
