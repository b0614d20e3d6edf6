"""
The command line, one command per library call.

A command is a plain function: options from `options`, heavy imports inside it, errors left to the `door`, its name in
`COMMANDS`. Importing this room must stay cheap: `elsewhere --help` loads neither numpy nor numba.
"""

from collections.abc import Callable
from inspect import getdoc

import typer

from elsewhere.cli.demo import demo
from elsewhere.cli.door import EXITS, WHICH, Door, front
from elsewhere.cli.evaluate import audit, evaluate
from elsewhere.cli.reproduce import lbs, reproduce, similarity
from elsewhere.cli.serve import serve
from elsewhere.cli.stages import fit, generate, prepare, publish
from elsewhere.cli.synthesize import plan, synthesize

GROUPS = {
    "Make fakes": (demo, plan, synthesize),
    "The same, step by step": (prepare, fit, generate, publish),
    "Look at fakes and judge them": (evaluate, audit),
    "Fakes as decoys among queries to a service": (lbs, serve),
    "The paper's own comparisons": (similarity, reproduce),
}
COMMANDS = tuple(command for group in GROUPS.values() for command in group)


def _paragraphs(command: Callable[..., None]) -> str:
    """Return the docstring of a command with one line for each paragraph: the terminal breaks them."""
    return "\n\n".join(" ".join(each.split()) for each in (getdoc(command) or "").split("\n\n"))


app = typer.Typer(cls=Door, epilog=f"{WHICH}\n\n{EXITS}", add_completion=False, pretty_exceptions_enable=False)
app.callback(invoke_without_command=True, help=_paragraphs(front))(front)
for title, group in GROUPS.items():
    for command in group:
        epilog = WHICH if command is synthesize else None
        app.command(help=_paragraphs(command), epilog=epilog, rich_help_panel=title)(command)


def main() -> None:
    """Run the command line and exit with its status."""
    app(prog_name="elsewhere")
