"""What a command says: results on stdout, as JSON or for people; progress on stderr, only to a terminal."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console, RenderableType

from elsewhere.cli.words import spoken


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


@contextmanager
def bars() -> Iterator[Callable[[str, int, int], None]]:
    """Progress of a job in stages, like `bar`, fed by `(stage, done, total)`; a total of 0 is not known."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda what, done, total: None
        return
    from rich.progress import Progress, TaskID

    with Progress(console=console, transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                for task in tasks.values():
                    progress.update(task, visible=False)
                tasks[what] = progress.add_task(what, total=None)
            progress.update(tasks[what], completed=done, total=total or None)

        yield show


def number(value: float | None, digits: int = 3) -> str:
    """A figure for people: so many significant digits, nothing where there is none."""
    if value is None:
        return ""
    return f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"
