"""Command `serve`: hand out the lives of a published pool to devices."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elsewhere.cli.options import Json
from elsewhere.cli.output import say

if TYPE_CHECKING:
    from elsewhere.serve.run import Started


def serve(
    pool: Annotated[Path, typer.Argument(metavar="POOL", help="A published pool: its folder.", show_default=False)],
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; others than this machine need TLS.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", help="0 takes a free one.")] = 8765,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="FILE|postgresql://...",
            help="What is given away, and the tokens; by default POOL-live.sqlite beside the pool.",
        ),
    ] = None,
    bucket: Annotated[
        int | None,
        typer.Option("--bucket", metavar="N", help="Lives in a bucket; by default an eighth of the pool, 6 to 32."),
    ] = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="Give a life to several devices; by default to one only.")
    ] = False,
    rate: Annotated[float, typer.Option("--rate", metavar="N", help="Requests per minute of each token.")] = 120,
    cert: Annotated[Path | None, typer.Option("--cert", metavar="FILE", help="Certificate of TLS, PEM.")] = None,
    key: Annotated[Path | None, typer.Option("--key", metavar="FILE", help="Its key, PEM.")] = None,
    new_owner_token: Annotated[
        bool, typer.Option("--new-owner-token", help="Print a new token for you; the one before is valid no more.")
    ] = False,
    i_know: Annotated[bool, typer.Option("--i-know", help="Serve a laboratory pool to other machines.")] = False,
    as_json: Json = False,
) -> None:
    """
    Serve a pool of fakes to devices, which fetch whole lives and send them along as decoys (see `elsewhere.lbs`).

    The owner's token is printed once, at the first start; with it, devices are let in by POST /v1/devices. What is
    given to one device is given to no other. Nothing is logged. Ctrl-C stops it.

    Example: elsewhere serve out/demo
    """
    from elsewhere.serve.run import serve as run

    begun = False

    def started(service: "Started") -> None:
        """Say where the service is, and the owner's token, the first time."""
        nonlocal begun
        begun = True
        lines = [
            f"serving {service.lives} lives at {service.url}, {service.free} of them given to nobody yet, "
            f"{service.bucket} in a bucket" + (", shared" if service.shared else ""),
        ]
        if service.laboratory:
            lines.append("this is a laboratory pool: for trying things out, not for people")
        if service.owner_token is not None:
            lines.append(f"owner's token (shown only now, keep it): {service.owner_token}")
        say(asdict(service), lines, as_json=as_json)

    try:
        run(
            pool,
            host=host,
            port=port,
            store=store,
            bucket=bucket,
            shared=shared,
            rate=rate,
            cert=cert,
            key=key,
            new_owner_token=new_owner_token,
            laboratory=i_know,
            started=started,
        )
    except KeyboardInterrupt:
        if not begun:  # afterwards it is how a service ends
            raise
