"""
The command line: one command per library call, with options made from `settings`; every error becomes one line here.

    0     done
    2     refused: usage, input, parameter or output; one line `E_CODE: what is wrong (--option)` on stderr
    3     nothing passed the privacy tests
    70    a fault of ours, E_INTERNAL: its kind and line of code, never a value; ELSEWHERE_DEBUG=1 adds the traceback
    130   stopped by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP: folders that were being written are taken back

With `--json`, stdout holds exactly one JSON object: the result, or an error with code, message, parameter, exit_status.
The line on stderr is there in both cases. Importing this room must stay cheap: `elsewhere --help` loads neither numpy
nor numba.
"""

import inspect
import json
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo
from typer.core import TyperGroup

from elsewhere._version import __version__
from elsewhere.cli.commands import GROUPS, synthesize
from elsewhere.cli.output import TYPED, flags_of, typed
from elsewhere.errors import ElsewhereError
from elsewhere.settings import PANELS, Settings, kinds, option_of

HOUSE = Path(__file__).resolve().parents[1]
INTERNAL = 70
EXITS = (
    "Exit status: 0 done, 2 refused, 3 nothing passed the tests, 70 a fault of ours, 130 Ctrl-C. "
    "An error is one line on stderr that starts with its code, E_...; with --json it is also an object on stdout."
)
WHICH = """\
Which method?    a theorem protects       fakes                        people needed
  life           nobody: attacks measure  most useful, one a person    30
  life, --eps 4  everybody in the file    any number, of nobody        597
  paper          nobody: not to publish   as the paper has them        2
elsewhere plan INPUT says what can be promised to your people; it costs no privacy."""
COMMANDS = tuple(command for group in GROUPS.values() for command in group)


class Door(TyperGroup):
    """The group of all commands; whatever a command raises ends here."""

    def main(self, args: Any = None, prog_name: Any = None, *given: Any, **more: Any) -> Any:
        """Run one command line; exit with its status, or return its result outside standalone mode."""

        def run() -> Any:
            return super(Door, self).main(args, prog_name, *given, **more | {"standalone_mode": False})

        if not more.get("standalone_mode", True):
            return run()
        words = list(sys.argv[1:] if args is None else args)
        words = words[: words.index("--") if "--" in words else None]
        as_json = "--json" in words
        with warnings.catch_warnings(), _stoppable() as stops:
            warnings.showwarning = _show_warning  # type: ignore[assignment]  # it is called by position
            try:
                status = run()
            except Exception as error:
                if os.environ.get("ELSEWHERE_DEBUG"):
                    traceback.print_exc()
                sys.exit(_refuse(_told(error, stops), as_json))
        sys.exit(status or 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command of a context; where somebody stops it, say so in our words, with what was kept."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise _stopped(stop.args[0] if stop.args else signal.SIGINT, stop) from None


def front(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """
    Turn real location traces into fake ones that live like people, elsewhere, and point at no one.

    Try it without data: elsewhere demo. With a file of positions: elsewhere plan FILE, then elsewhere synthesize FILE
    -o DIR. A person of whom a fake is made is its seed.
    """
    if version:
        typer.echo(f"elsewhere {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


# ---- errors


def _refuse(error: ElsewhereError, as_json: bool) -> int:
    """Say what is wrong, with the option that gives the parameter, and return the exit status."""
    option, told = TYPED.get(error.parameter or ""), typed(str(error.args[0]))
    # a note is what was added on the way: what has been kept, and where
    notes = [str(note) for note in getattr(error, "__notes__", [])]
    message = " ".join([told, *([f"({option})"] if option and option not in told else []), *notes])
    # a file name may hold a newline or an escape sequence (B60): one line stays one line
    line = "".join(c if c.isprintable() else " " for c in message)
    if as_json:
        facts = {"code": error.code, "message": line, "parameter": error.parameter, "exit_status": error.exit_status}
        typer.echo(json.dumps({"error": facts}))
    typer.echo(f"{error.code}: {line}", err=True)
    return error.exit_status


def _told(error: Exception, stops: list[int]) -> ElsewhereError:
    """
    Return what is said of any error.

    Of a fault of ours only kind and line are shown: its own words may quote a trace.
    """
    if isinstance(error, ElsewhereError):
        return error
    if stops or isinstance(error, typer.Abort):  # within a callback of a library it comes out as that library's error
        return _stopped(stops[0] if stops else signal.SIGINT, error)
    if hasattr(error, "format_message"):  # a usage error, whichever parser typer is built on
        return ElsewhereError(f"{error.format_message()} Try --help.", code="E_USAGE")
    ours = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(HOUSE)]
    where = f"{Path(ours[-1].filename).relative_to(HOUSE.parent).as_posix()}:{ours[-1].lineno}"
    words = f"{type(error).__name__} at {where}, a fault of elsewhere; ELSEWHERE_DEBUG=1 shows the traceback."
    return _with_status(ElsewhereError(words, code="E_INTERNAL"), INTERNAL, error)


def _stopped(signum: int, error: BaseException) -> ElsewhereError:
    """Return what is said of a command that a signal stopped."""
    by = "Ctrl-C" if signum == signal.SIGINT else signal.Signals(signum).name
    return _with_status(ElsewhereError(f"stopped by {by}.", code="E_INTERRUPTED"), 128 + signum, error)


def _with_status(error: ElsewhereError, status: int, cause: BaseException) -> ElsewhereError:
    error.exit_status = status
    for note in getattr(cause, "__notes__", []):
        error.add_note(note)
    return error


@contextmanager
def _stoppable() -> Iterator[list[int]]:
    """
    Let SIGTERM and SIGHUP stop a command as Ctrl-C does, unless somebody else handles or ignores them.

    What comes out lists the signals that came.
    """
    stops: list[int] = []

    def stop(signum: int, _frame: Any) -> None:
        stops.append(signum)
        raise KeyboardInterrupt(signum)

    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ours = threading.current_thread() is threading.main_thread()
    before = {s: signal.getsignal(s) for name in names if ours for s in (getattr(signal, name),)}
    before = {s: how for s, how in before.items() if how in (signal.SIG_DFL, signal.default_int_handler)}
    for signum in before:
        signal.signal(signum, stop)
    try:
        yield stops
    finally:
        for signum, how in before.items():
            signal.signal(signum, how)


def _show_warning(message: Warning | str, _category: type[Warning], filename: str, *_where: Any) -> None:
    # what other libraries warn of may quote the data
    if Path(filename).is_relative_to(HOUSE) or os.environ.get("ELSEWHERE_DEBUG"):
        typer.echo(f"warning: {typed(str(message))}", err=True)


# ---- options of commands, from the settings that they take


def _fields(command: Callable[..., None]) -> dict[str, FieldInfo]:
    """Return the options of a command: those of all settings that are its arguments."""
    groups = [parameter.annotation for parameter in inspect.signature(command).parameters.values()]
    return {name: field for group in reversed(groups) for name, field in group.options().items()}


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    """Return an option as typer has it: a text, which the settings check and convert."""
    about, types = option_of(field), list(kinds(field.annotation))
    choices = [str(each) for kind in types if get_origin(kind) is Literal for each in get_args(kind)]
    shown: dict[str, Any] = {"help": about.help, "rich_help_panel": about.panel}
    shown["metavar"] = about.metavar or "|".join(choices) or ("N" if int in types else "X" if float in types else None)
    kind: Any = str
    default = ... if field.is_required() else None if field.default in (None, ()) else str(field.default)
    if bool in types:
        kind, default = bool, field.default
    if about.argument:
        info = typer.Argument(show_default=False, **shown)
    else:
        info = typer.Option(*flags_of(name, field), show_default=not field.is_required(), **shown)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is ... else default,
        annotation=Annotated[kind if field.is_required() or default is not None else kind | None, info],
    )


def _place(item: tuple[str, FieldInfo]) -> tuple[int, int]:
    """Return where an option comes in the help: what has no panel first, among these input, output and method."""
    name, field = item
    panel, first = option_of(field).panel, ("source", "real", "fakes", "out", "method")
    return PANELS.index(panel) + 1 if panel else 0, first.index(name) if name in first else len(first)


def _runnable(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command as typer calls it: with its options as texts."""
    groups: dict[str, type[Settings]] = {n: p.annotation for n, p in inspect.signature(command).parameters.items()}
    parameters = [_parameter(name, field) for name, field in sorted(_fields(command).items(), key=_place)]

    def run(**texts: Any) -> None:
        given = {name: text for name, text in texts.items() if text is not None}
        command(
            **{
                word: group.of_texts({name: given[name] for name in group.options() if name in given})
                for word, group in groups.items()
            }
        )

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _paragraphs(command: Callable[..., None]) -> str:
    """Return the docstring of a command with one line for each paragraph: the terminal breaks them."""
    return "\n\n".join(" ".join(each.split()) for each in (inspect.getdoc(command) or "").split("\n\n"))


app = typer.Typer(cls=Door, epilog=f"{WHICH}\n\n{EXITS}", add_completion=False, pretty_exceptions_enable=False)
app.callback(invoke_without_command=True, help=_paragraphs(front))(front)
for title, group in GROUPS.items():
    for command in group:
        epilog = WHICH if command is synthesize else None
        run = _runnable(command)
        app.command(command.__name__, help=_paragraphs(command), epilog=epilog, rich_help_panel=title)(run)


def main() -> None:
    """Run the command line and exit with its status."""
    app(prog_name="elsewhere")
