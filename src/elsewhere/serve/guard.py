"""
What every request passes: time, size and rate limits, the token, and the headers of every answer.

The guard stands before the routes, so that a wrong token gets the same answer for what exists and what does not. It
writes no log: not who asked, nor what for. A fault of ours becomes one line on stderr, its kind and line of code.
"""

import asyncio
import sys
import time
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from elsewhere.serve.store import Refused, Store, digest_of

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Answer = TypeVar("Answer")
App = Callable[[Message, Receive, Send], Awaitable[None]]

LARGEST_BODY, LARGEST_HEAD = 4096, 16384
HEAD_SECONDS, BODY_SECONDS = 10.0, 10.0
MOST_HOLDERS = 10_000  # whose rates are remembered
OPEN = {"/", "/v1/health", "/openapi.json"}  # and /page/...
# headers of every answer of a page server: nothing is stored, no other site can show or read our page, and our page
# loads its own files only
PAGE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "geolocation=(), camera=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
HEADERS = [(name.lower().encode(), value.encode()) for name, value in PAGE_HEADERS.items()]
END = {"connection": "close"}  # what is left of the request is not read


class Rates:
    """How often each of many may ask: `per_minute` in the long run, a tenth of it (at least 10) at once."""

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second, self.clock = per_minute / 60, clock
        self.most = max(10.0, per_minute / 10)
        self.left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, who: str) -> int:
        """Count one request, and return 0, or after how many seconds it may be made."""
        now = self.clock()
        tokens, then = self.left.pop(who, (self.most, now))
        tokens = min(self.most, tokens + (now - then) * self.per_second)
        allowed = tokens >= 1
        self.left[who] = (tokens - 1 if allowed else tokens, now)
        if len(self.left) > MOST_HOLDERS:
            self.left.popitem(last=False)
        return 0 if allowed else int((1 - tokens) / self.per_second) + 1


class Guard:
    """Limits and tokens around an ASGI application; the device is in the request's state as `who`."""

    def __init__(self, app: App, store: Store, *, rate: float) -> None:
        self.app, self.store = app, store
        # each may use up its own share alone: a token, an address without one, an open path
        self.by_token, self.by_address, self.by_path = Rates(rate), Rates(10 * rate), Rates(100 * rate)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        try:
            await self._answer(scope, receive, send_guarded)
        except Exception as error:
            if not isinstance(error, Refused):
                last = traceback.extract_tb(error.__traceback__)[-1]
                sys.stderr.write(f"E_INTERNAL: {type(error).__name__} at {Path(last.filename).name}:{last.lineno}\n")
                error = Refused(500, "a fault of elsewhere.", code="E_INTERNAL")
            if not begun:
                await refusal(error)(scope, receive, send_guarded)

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if len(path) + sum(len(name) + len(value) for name, value in scope["headers"]) > LARGEST_HEAD:
            raise Refused(431, f"the head of a request holds at most {LARGEST_HEAD} bytes.", code="E_TOO_LARGE")
        if path in OPEN or path.startswith("/page/"):
            known, wait = True, self.by_path.wait(path if path in OPEN else "/page/")
        else:
            kind, _, token = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1").partition(" ")
            digest = digest_of(token if kind.lower() == "bearer" else "")
            who = await look(self.store, self.store.known, digest)
            known, address = who is not None, (scope.get("client") or ("",))[0]
            wait = self.by_token.wait(who.id) if who else self.by_address.wait(address)
            scope.setdefault("state", {}).update(who=who, token=token)
        if wait:
            raise Refused(
                429, f"too many requests: again in {wait} s.", code="E_RATE", headers={"retry-after": str(wait)}
            )
        if not known:
            bearer = {"www-authenticate": "Bearer"}
            raise Refused(401, "a valid token is needed: `Authorization: Bearer ...`.", code="E_TOKEN", headers=bearer)
        body, coming = b"", True
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while coming and len(body) <= LARGEST_BODY:
                    message = await receive()
                    body, coming = body + message.get("body", b""), message.get("more_body", False)
        except TimeoutError:
            raise Refused(408, "the request took too long to arrive.", code="E_SLOW", headers=END) from None
        if len(body) > LARGEST_BODY:
            raise Refused(413, f"a request holds at most {LARGEST_BODY} bytes.", code="E_TOO_LARGE", headers=END)
        parts = iter([{"type": "http.request", "body": body}])

        async def receive_guarded() -> Message:
            return next(parts, None) or await receive()  # after the body, the end of the connection

        await self.app(scope, receive_guarded, send)


def refusal(error: Refused) -> JSONResponse:
    """Return an error as JSON: its code and what is wrong."""
    return JSONResponse({"error": {"code": error.code, "message": error.args[0]}}, error.status, error.headers)


async def look(store: Store, read: Callable[[str], Answer], name: str) -> Answer:
    """Read something from a store: at once from a file, where it takes microseconds; else in a thread."""
    return read(name) if store.local else await run_in_threadpool(read, name)


class Impatient(H11Protocol):
    """HTTP/1.1 that closes a connection on which no request came whole, and none is answered, between two looks."""

    seconds = HEAD_SECONDS

    def connection_made(self, transport: Any) -> None:
        """Begin to look at a connection."""
        super().connection_made(transport)
        self.loop.call_later(self.seconds, self._look, None)

    def _look(self, before: Any) -> None:
        if self.cycle is before and (before is None or before.response_complete):
            self.transport.close()
        elif not self.transport.is_closing():
            self.loop.call_later(self.seconds, self._look, self.cycle)
