"""Start the pool service: its pool, its store, its owner's token, its socket."""

import ipaddress
import logging
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from elsewhere.errors import (
    InvalidParameter,
    MissingExtra,
    OutputRefused,
    PublicationRefused,
    require_whole,
)
from elsewhere.pool import Pool
from elsewhere.serve.store import Store, digest_of, open_store

MOST_AT_ONCE = 1000  # connections


def serve(given: Any, started: Callable[[dict[str, Any]], Any]) -> None:
    """
    Serve a published pool until the process is stopped.

    `given` are the options of the command, `settings.Serve`, which this side must not import. `started` is called once,
    with what there is to say: the address and, at the first start, the owner's token.
    """
    try:
        import uvicorn  # noqa: F401 - so that its absence is said before anything is opened

        from elsewhere.serve.app import make_app
    except ImportError:
        raise MissingExtra("the pool service needs FastAPI and uvicorn: pip install 'elsewhere[serve]'.") from None
    local = check_host(given.host, given.cert, given.key)
    folder = given.pool.parent if given.pool.is_file() else given.pool
    pool = Pool.load(folder)
    reproducible = bool(pool.provenance.get("reproducible"))
    if reproducible and not local and not given.laboratory:
        raise PublicationRefused(
            "this is a laboratory pool: whoever knows its seed can repeat it. Publish one without `rng`, or give "
            "`laboratory=True`."
        )
    lives = len(pool)
    size = require_whole("bucket", given.bucket or min(lives, max(6, min(32, lives // 8))), 1, lives)
    where = given.store or folder.resolve().with_name(f"{folder.resolve().name}-live.sqlite")
    live = open_store(where)
    try:
        live.fill(pool)
        token = owner_token(live, given.new_owner_token)
        free = live.overview()["free"]
        with _listen(given.host, given.port) as listening:
            app = make_app(live, pool, bucket=size, rate=given.rate)
            server = _server(app, given.cert, given.key)
            name = f"[{given.host}]" if ":" in given.host else given.host
            started(
                {
                    "url": f"{'https' if given.cert else 'http'}://{name}:{listening.getsockname()[1]}",
                    "lives": lives,
                    "free": free,
                    "bucket": size,
                    "store": "PostgreSQL" if str(where).startswith("postgres") else str(where),
                    "owner_token": token,
                    "laboratory": reproducible,
                }
            )
            with suppress(KeyboardInterrupt):  # it is how a service ends
                server.run(sockets=[listening])
    finally:
        live.close()


def _server(app: Any, cert: Path | None, key: Path | None) -> Any:
    """Return a server that is silent and waits for nobody long."""
    import uvicorn

    from elsewhere.serve.guard import Impatient

    config = uvicorn.Config(
        app,
        http=Impatient,
        lifespan="off",
        ws="none",
        access_log=False,
        log_config=None,
        log_level=logging.CRITICAL + 1,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_AT_ONCE,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=5,
        ssl_certfile=cert,
        ssl_keyfile=key,
    )
    try:
        config.load()
    except OSError as error:
        raise InvalidParameter(
            f"`cert` and `key` cannot be used: {error.strerror or error}.", parameter="cert"
        ) from None
    return uvicorn.Server(config)


def owner_token(store: Store, renew: bool = False) -> str | None:
    """Return a token for the owner, where there is none yet or a new one is wanted; it cannot be shown again."""
    if not renew and any(device.role == "owner" and device.valid for device in store.overview()["devices"]):
        return None
    token = secrets.token_urlsafe(32)
    store.admit(digest_of(token), "owner", only=renew)
    return token


def check_host(host: str, cert: Path | None, key: Path | None) -> bool:
    """Return whether `host` is this machine alone; any other address without TLS is refused: tokens would be read."""
    if (cert is None) != (key is None):
        raise InvalidParameter("`cert` and `key` belong together: give both, or none.", parameter="cert")
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local and cert is None:
        raise InvalidParameter(
            f"`host` must be this machine's own address (127.0.0.1, ::1, localhost), got {host!r}: other machines "
            "reach the service by TLS only. Give `cert` and `key`, or put a TLS proxy in front.",
            parameter="host",
        )
    return local


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # with its protocol named, or asyncio leaves Nagle on: 40 ms for each answer on a connection that is kept
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(512)
    except OSError as error:
        listening.close()
        raise OutputRefused(f"port {port} of {host} cannot be used: {error.strerror}.", code="E_PORT") from None
    return listening
