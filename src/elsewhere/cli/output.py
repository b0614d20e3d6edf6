"""
What a command says: results on stdout, as JSON or for people; progress on stderr, a line now and then where that is no
terminal.

Messages and notes come from the library, which names its parameters; whoever typed a command knows only options:
`max_gap` is --max-gap here, `m_min` is --set m_min, `rng` is --seed. What the running command has no option for keeps
its own name.
"""

import json
import re
import shlex
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table

from elsewhere.errors import AGAIN
from elsewhere.run.finish import NOT_ATTACKED, judgement_facts

if TYPE_CHECKING:
    from elsewhere.evaluation.judge import Judgement

# parameters of the library whose option is called otherwise, or that are part of another input
OTHERWISE = {
    "rng": "--seed",
    "laboratory=True": "--i-know",
    "seed_index": "--links",
    "classes": "--model",
    "executor": "--dask",
}
ELSEWHERE = {"rng": "--seed", "out_as": "--out-as (of synthesize)"}  # options of other commands, by which it was made
# words that mean a trace, labels or a table where they stand in messages, and not the option of that name
OTHERS = {"seed", "seeds", "users", "fakes", "real", "report", "out", "set"}
QUIET = 30.0  # seconds between two lines of progress where stderr is no terminal
QUOTED = re.compile(r"""`(?P<name>[A-Za-z]\w*)(?:=(?P<value>"[^"`]*"|\w+))?`""")

_table: ContextVar[dict[str, str] | None] = ContextVar("table", default=None)


_typed: ContextVar[str] = ContextVar("typed", default=AGAIN)


def speak_of(options: Iterable[tuple[str, str]], words: Sequence[str] = ()) -> None:
    """Remember that messages are for somebody who typed these words, with these options: (parameter, option) each."""
    _table.set(table_of(dict(options)))
    # the number of a laboratory run stays out of messages (R3)
    command = [
        "N" if before == "--seed" else re.sub(r"^(--seed=).*", r"\1N", word) for before, word in pairwise(["", *words])
    ]
    _typed.set(f"`{shlex.join(['elsewhere', *command])}`" if words else AGAIN)


def table_of(options: dict[str, str]) -> dict[str, str]:
    """
    Return what each parameter of the library is called on a command line that has these options (parameter -> option).

    Examples
    --------
    >>> table = table_of({"max_gap": "--max-gap", "links": "--links", "parameters": "--set", "users": "--users"})
    >>> [table.get(name) for name in ("max_gap", "seed_index", "m_min", "users", "tz")]
    ['--max-gap', '--links', '--set m_min', None, None]

    """
    if not options:
        return {}
    own = {name: option for name, option in options.items() if name not in OTHERS}
    otherwise = {name: option for name, option in OTHERWISE.items() if option in options.values()}
    by_set: dict[str, str] = {}
    if "--set" in options.values():
        from elsewhere.run.presets import PRESETS

        by_set = {name: f"--set {name}" for preset in PRESETS.values() for name in preset.parameters()}
    return {**by_set, **ELSEWHERE, **own, **otherwise}


def spoken(text: str) -> str:
    """Return the text with parameters of the library named as the options of the running command."""
    in_options = QUOTED.sub(lambda found: _option(found["name"], found["value"]) or found[0], text)
    return in_options.replace(AGAIN, _typed.get())


def _option(name: str, value: str | None) -> str | None:
    table = _table.get() or {}
    if value is None or f"{name}={value}" in table:
        return table.get(name if value is None else f"{name}={value}")
    option, plain = table.get(name), value.strip('"')
    if option is None or plain == "True":
        return option
    if option.startswith("--set "):
        return f"{option}={plain}"
    first, _, rest = option.partition(" ")
    return f"{first} {plain} {rest}".rstrip()


def say(result: dict[str, Any], renderables: Iterable[RenderableType], *, as_json: bool) -> None:
    """Write the result: one JSON object, or the given tables and texts."""
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
    """Return how many characters a line of stdout holds."""
    return Console().width


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Show a spinner on stderr while `what` is being done; silent where stderr is not a terminal."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(what):
            yield
    else:
        yield


def can_draw_blocks() -> bool:
    """Tell whether stdout can show block characters."""
    return Console().encoding.lower().startswith("utf")


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


def tables(facts: dict[str, Any]) -> list[Any]:
    """Return the summary for people."""
    days = f" who live {facts['days']:,} days" if facts["days"] > facts["fakes"] else ""
    lines: list[Any] = [f"preset {facts['preset']}: {facts['fakes']} fakes{days}, of nobody in particular"]
    if "seeds" in facts:
        lines = [
            f"preset {facts['preset']}: {facts['fakes']} fakes{days} of {facts['seeds']} seeds, of {facts['users']} "
            f"users with a usable day; {facts['kappa']} {'class' if facts['kappa'] == 1 else 'classes'} of places"
        ]
    if "attempts" in facts:
        from elsewhere.reports.page import RULES

        rules = Table("rule (a candidate can break several)", "rejected", "share", box=SIMPLE_HEAD)
        for name, number in facts["rejected_by"].items():
            rules.add_row(RULES.get(name, name), f"{number:,}", f"{number / facts['attempts']:.1%}")
        rules.add_row("passed all", f"{facts['passed']:,}", f"{facts['passed'] / facts['attempts']:.1%}")
        lines.append(rules)
        if facts["k"] > 1:
            lines.append(
                f"every fake resembles {facts['k'] - 1} or more other people about as much as the one it was made from"
            )
    lines.append(" ".join(facts["certificate"]["words"]))
    life = Table("per trace", "real", "fakes", box=SIMPLE_HEAD)
    for name in ("moves", "places"):
        life.add_row(name, *(f"{facts['per_trace'][who][name]:.1f}" for who in ("real", "fakes")))
    return [*lines, life, *(note for note in facts["notes"] if note != NOT_ATTACKED)]


def closing(judgement: "Judgement") -> list[str]:
    """Return the last lines of a run: what each attack learnt, what the fakes are good for, whether to publish them."""
    advice = judgement_facts(judgement)["publish"]
    lines = judgement.in_words()
    if judgement.uses is not None:
        lines += ["", "what the fakes are good for:", *(f"  {line}" for line in judgement.uses.in_words())]
    if judgement.lives is not None:
        lines += ["", "lives over days:", *(f"  {line}" for line in judgement.lives.in_words())]
    if judgement.audit is not None:
        lines += ["", judgement.audit.in_words()]
    return [*lines, f"{advice['words']}. {advice['because']}", ""]
