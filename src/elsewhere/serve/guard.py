"""
What every request passes: time, size and rate limits, the token, and the headers of every answer.

The guard stands before the routes, so that a wrong token gets the same answer for what exists and what does not. It
writes no log: not who asked, nor what for. A fault of ours becomes one line on stderr, its kind and line of code.
"""

import asyncio
import json
import sys
import time
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from uvicorn.protocols.http.h11_impl import H11Protocol

from elsewhere.files import PAGE_HEADERS
from elsewhere.serve.store import Store, digest_of

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Answer = TypeVar("Answer")
App = Callable[[Message, Receive, Send], Awaitable[None]]

LARGEST_BODY, LARGEST_HEAD = 4096, 16384
LONGEST_TOKEN = 200
HEAD_SECONDS, BODY_SECONDS, REQUEST_SECONDS = 10.0, 10.0, 60.0
MOST_HOLDERS = 10_000  # whose rates are remembered
OPEN = {"/", "/v1/health", "/openapi.json"}  # and /page/...
HEADERS = [(name.lower().encode(), value.encode()) for name, value in PAGE_HEADERS.items()]
END = [(b"connection", b"close")]  # what is left of the request is not read


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


class _TooLarge(Exception):
    pass


class Guard:
    """Limits and tokens around an ASGI application; the device is in the request's state as `who`."""

    def __init__(self, app: App, store: Store, *, rate: float) -> None:
        self.app, self.store = app, store
        # each may use up its own share alone: a token, an address without one, an open path
        self.by_token, self.by_address, self.by_path = Rates(rate), Rates(10 * rate), Rates(100 * rate)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await self._answer(scope, receive, send_guarded)
        except TimeoutError:
            if not begun:
                await refuse(send_guarded, 408, "E_SLOW", "the request took too long to arrive.", END)
        except _TooLarge:
            if not begun:
                await refuse(send_guarded, 413, "E_TOO_LARGE", f"a request holds at most {LARGEST_BODY} bytes.", END)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            sys.stderr.write(f"E_INTERNAL: {type(error).__name__} at {Path(last.filename).name}:{last.lineno}\n")
            if not begun:
                await refuse(send_guarded, 500, "E_INTERNAL", "a fault of elsewhere.")

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if len(scope["path"]) + sum(len(name) + len(value) for name, value in scope["headers"]) > LARGEST_HEAD:
            await refuse(send, 431, "E_TOO_LARGE", f"the head of a request holds at most {LARGEST_HEAD} bytes.", END)
            return
        if not _small(headers.get(b"content-length", b"0")):
            raise _TooLarge
        path = scope["path"]
        if path in OPEN or path.startswith("/page/"):
            if wait := self.by_path.wait(path if path in OPEN else "/page/"):
                await _refuse_for_now(send, wait)
                return
        else:
            address = (scope.get("client") or ("",))[0]
            token = _token(headers)
            who = None if token is None else await look(self.store, self.store.known, digest_of(token))
            if wait := self.by_address.wait(address) if who is None else self.by_token.wait(who.id):
                await _refuse_for_now(send, wait)
                return
            if who is None:
                more = [(b"www-authenticate", b"Bearer")]
                await refuse(send, 401, "E_TOKEN", "a valid token is needed: `Authorization: Bearer ...`.", more)
                return
            scope.setdefault("state", {})["who"] = who
        whole: Message | None = {"type": "http.request", "body": await _body(receive), "more_body": False}

        async def receive_guarded() -> Message:
            nonlocal whole
            if whole is None:
                return await receive()  # the end of the connection
            message, whole = whole, None
            return message

        await self.app(scope, receive_guarded, send)


async def look(store: Store, read: Callable[[str], Answer], name: str) -> Answer:
    """Read something from a store: at once from a file, where it takes microseconds; else in a thread."""
    return read(name) if store.local else await run_in_threadpool(read, name)


async def _refuse_for_now(send: Send, wait: int) -> None:
    more = [(b"retry-after", str(wait).encode())]
    await refuse(send, 429, "E_RATE", f"too many requests: again in {wait} s.", more)


async def _body(receive: Receive) -> bytes:
    """Return the whole body of a request, which is small and comes soon."""
    body = b""
    async with asyncio.timeout(BODY_SECONDS):
        while True:
            message = await receive()
            body += bytes(message.get("body", b""))
            if len(body) > LARGEST_BODY:
                raise _TooLarge
            if not message.get("more_body"):
                return body


def _small(length: bytes) -> bool:
    return length.isdigit() and len(length) < 10 and int(length) <= LARGEST_BODY


def _token(headers: dict[bytes, bytes]) -> str | None:
    kind, _, token = headers.get(b"authorization", b"").partition(b" ")
    if kind.lower() != b"bearer" or not 0 < len(token) <= LONGEST_TOKEN:
        return None
    return token.decode("latin-1")


async def refuse(
    send: Send, status: int, code: str, message: str, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Send an error as JSON: its code and what is wrong."""
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    lines = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *(headers or [])]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})


class Impatient(H11Protocol):
    """HTTP/1.1 that closes a connection whose request line and headers have not come after some seconds."""

    seconds = HEAD_SECONDS
    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take in data; once the headers are whole, the limits of the guard count."""
        if self.timer is None and (self.cycle is None or self.cycle.response_complete):
            self._wait()
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop_waiting()
        self.timer = self.loop.call_later(self.seconds, self._close)

    def _stop_waiting(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _close(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()
