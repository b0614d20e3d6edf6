"""Command `studio`: look at the results of a run, on this machine."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from elsewhere.cli.options import Json
from elsewhere.cli.output import say


def studio(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What a run has published.", show_default=False)],
    private: Annotated[
        Path | None,
        typer.Option(
            "--private", metavar="DIR", help="Its private folder; by default DIR-private.", show_default=False
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", metavar="N", help="0 takes a free one.")] = 0,
    browse: Annotated[bool, typer.Option("--open/--no-open", help="Open a browser.")] = True,
    as_json: Json = False,
) -> None:
    """
    Look at a finished run in a browser: kinds of places on the map, fakes, the privacy tests, the attacks.

    For its owner: it reads the private folder too. It listens on this machine only, and its address is good for one
    tab. Nothing leaves the machine, nothing is logged. Ctrl-C stops it.

    Example: elsewhere studio out/fakes
    """
    import webbrowser

    from elsewhere.reports.studio import Run, Studio

    with Studio(Run(folder, private), port) as server, suppress(KeyboardInterrupt):
        say({"url": server.url}, [f"the studio of {folder}, for you alone and one tab: {server.url}"], as_json=as_json)
        if browse:
            webbrowser.open(server.url)
        server.serve_forever()
