"""
ROOM 9: the command line, one command per library call.

A command is a plain function: options from `options`, heavy imports inside it, errors left to the `door`, its name in
`COMMANDS`. Importing this room must stay cheap: `elsewhere --help` loads neither numpy nor numba.
"""

import typer

from elsewhere.cli.demo import demo
from elsewhere.cli.door import EXITS, WHICH, Door, front
from elsewhere.cli.evaluate import audit, evaluate
from elsewhere.cli.reproduce import lbs, reproduce, similarity
from elsewhere.cli.serve import serve
from elsewhere.cli.stages import fit, generate, prepare, publish
from elsewhere.cli.studio import studio
from elsewhere.cli.synthesize import plan, synthesize

COMMANDS = (
    *(demo, similarity, prepare, synthesize, fit, generate, publish, plan),
    *(evaluate, audit, studio, lbs, serve, reproduce),
)

app = typer.Typer(cls=Door, epilog=f"{WHICH}\n\n{EXITS}", add_completion=False, pretty_exceptions_enable=False)
app.callback(invoke_without_command=True)(front)
for command in COMMANDS:
    app.command(epilog=WHICH if command is synthesize else None)(command)


def main() -> None:
    """Run the command line and exit with its status."""
    app(prog_name="elsewhere")
