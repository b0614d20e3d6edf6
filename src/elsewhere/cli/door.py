"""
The door of the command line: every error becomes one line and an exit status, here and nowhere else.

    0     done
    2     refused: usage, input, parameter or output; one line `E_CODE: what is wrong` on stderr
    3     nothing passed the privacy tests
    70    a fault of ours, E_INTERNAL: its kind and line of code, never a value; ELSEWHERE_DEBUG=1 adds the traceback
    130   stopped by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP: folders that were being written are taken back

With `--json`, stdout holds exactly one JSON object: the result, or `{"error": {"code", "message", "exit_status"}}`.
The line on stderr is there in both cases.
"""

import json
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from elsewhere._version import __version__
from elsewhere.cli.output import speak_of, spoken
from elsewhere.errors import ElsewhereError

HOUSE = Path(__file__).resolve().parents[1]
INTERNAL, INTERRUPTED = 70, 130
EXITS = (
    "Exit status: 0 done, 2 refused, 3 nothing passed the tests, 70 a fault of ours, 130 Ctrl-C. "
    "An error is one line on stderr that starts with its code, E_...; with --json it is also an object on stdout."
)
WHICH = """\
Which preset?  a theorem protects       fakes                    people needed
  product      nobody: attacks measure  most useful, one a seed  14
  private      everybody in the file    any number, eps 4        600
  paper        nobody: not to publish   as the paper has them    2
elsewhere plan INPUT says what each promises your people; it costs no privacy."""


class Door(TyperGroup):
    """The group of all commands; whatever a command raises ends here."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run one command line; exit with its status, or return its result outside standalone mode."""

        def run() -> Any:
            return super(Door, self).main(args, prog_name, complete_var, False, windows_expand_args, **extra)

        if not standalone_mode:
            return run()
        words = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in words[: words.index("--") if "--" in words else None]
        command = next((self.commands[word] for word in words if word in self.commands), None)
        speak_of(() if command is None else options_of(command), words)
        with warnings.catch_warnings(), _stoppable() as stops:
            warnings.showwarning = _show_warning
            try:
                status = run()
            except ElsewhereError as error:
                message = " ".join([spoken(str(error.args[0])), *_notes(error)])
                sys.exit(_refuse(error.code, message, error.exit_status, as_json))
            except typer.Abort:
                status = INTERRUPTED
            except Exception as error:
                if stops:  # within a callback of a library it comes out as that library's error
                    sys.exit(_refuse(*_stopped(stops[0], error), as_json))
                if hasattr(error, "format_message"):  # a usage error, whichever parser typer is built on
                    sys.exit(_refuse("E_USAGE", f"{_usage(error)} Try --help.", 2, as_json))
                if os.environ.get("ELSEWHERE_DEBUG"):
                    traceback.print_exc()
                sys.exit(_refuse("E_INTERNAL", " ".join([_fault(error), *_notes(error)]), INTERNAL, as_json))
        if status == INTERRUPTED:
            _refuse("E_INTERRUPTED", "stopped by Ctrl-C.", INTERRUPTED, as_json)
        sys.exit(status or 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command of a context; where somebody stops it, say so in our words, with what was kept."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            code, words, status = _stopped(stop.args[0] if stop.args else signal.SIGINT, stop)
            error = ElsewhereError(words, code=code)
            error.exit_status = status
            raise error from None


def options_of(command: Any) -> list[tuple[str, str]]:
    """Return the options of a command as (parameter of the library, option); the long name where there are two."""
    return [(_parameter(o), max(o.opts, key=len)) for o in command.params if o.opts[0].startswith("-")]


def _parameter(option: Any) -> str:
    # `number` is -n: parameters are called as their options are typed
    return str(max(option.opts, key=len).lstrip("-").replace("-", "_"))


def front(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """
    Turn real location traces into fake ones that live like people, elsewhere, and point at no one.

    Try it without data: elsewhere demo. With a file of positions: elsewhere plan FILE, then elsewhere synthesize FILE
    -o DIR. A person of whom a fake is made is its seed; a preset is a way of making fakes, with its own promise.
    """
    if version:
        typer.echo(f"elsewhere {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


NUMBERS = {"valid integer": "a whole number", "valid number": "a number", "valid float": "a number"}


def _usage(error: Any) -> str:
    """Return what is wrong with a command line; of what is no number in our words, not in those of the parser."""
    names = getattr(getattr(error, "param", None), "opts", None)
    kind = next((ours for theirs, ours in NUMBERS.items() if theirs in str(getattr(error, "message", ""))), None)
    return f"{max(names, key=len)} must be {kind}." if names and kind else str(error.format_message())


def _stopped(signum: int, error: BaseException) -> tuple[str, str, int]:
    """Return code, words and exit status of a command that a signal stopped."""
    by = "Ctrl-C" if signum == signal.SIGINT else signal.Signals(signum).name
    return "E_INTERRUPTED", " ".join([f"stopped by {by}.", *_notes(error)]), 128 + signum


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


def _notes(error: BaseException) -> list[str]:
    """Return what was added to an error on its way: what has been kept, and where."""
    return [spoken(str(note)) for note in getattr(error, "__notes__", [])]


def _refuse(code: str, message: str, status: int, as_json: bool) -> int:
    # a file name may hold a newline or an escape sequence (B60): one line stays one line
    line = "".join(c if c.isprintable() else " " for c in message)
    if as_json:
        typer.echo(json.dumps({"error": {"code": code, "message": line, "exit_status": status}}))
    typer.echo(f"{code}: {line}", err=True)
    return status


def _fault(error: Exception) -> str:
    # the error's own words may quote a trace, so only its kind and our line of code are shown
    ours = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(HOUSE)]
    where = f"{Path(ours[-1].filename).relative_to(HOUSE.parent).as_posix()}:{ours[-1].lineno}"
    return f"{type(error).__name__} at {where}, a fault of elsewhere; ELSEWHERE_DEBUG=1 shows the traceback."


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    # what other libraries warn of may quote the data
    if Path(filename).is_relative_to(HOUSE) or os.environ.get("ELSEWHERE_DEBUG"):
        typer.echo(f"warning: {spoken(str(message))}", err=True)
