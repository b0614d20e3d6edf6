"""
Decoys for a location-based service: a wallet of fake lives that asks along with its user (public side).

    from elsewhere.lbs import Wallet
    wallet = Wallet.load("https://pool.example", token=...)     # or the folder of a pool
    answer = wallet.ask(lambda lat, lon: service.nearest(lat, lon), 60.1699, 24.9384)

Every question goes out `decoys + 1` times: once from where the user is, and once from where each of her personas is.
A persona begins where a fake life of the pool is, and from then on makes every step that the device makes: the lines
that a service sees are alike to the last decimal, so that nothing in a line by itself tells whose it is:
not the scatter of a receiver, nor starts and pauses, nor what recurs. Which lives, is decided by a secret that never
leaves the device. All questions leave at once, in an order that is drawn for each, rounded alike; the answers
to decoys, and their errors, are thrown away.

What this does not hide: that questions are asked and when, the shape of the line, the address of the device on the
network, and the user from whoever knows where people or she herself are, or learns it (docs/decoys.md).
"""

import calendar
import contextlib
import contextvars
import hashlib
import hmac
import ipaddress
import json
import math
import os
import secrets
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import DAY, Locations, Visits, zone_of
from elsewhere.errors import (
    ElsewhereError,
    InvalidModel,
    InvalidParameter,
    NotEnoughUsers,
    OutputRefused,
    require_between,
    require_whole,
)
from elsewhere.files import read_regular, write_files
from elsewhere.pool import Pool

MOST_DECOYS = 64
LARGEST_BUCKET = 256 * 2**20
SECONDS = 30.0  # to wait for answers, and for a bucket
LARGEST_STATE = 2**20  # bytes

Answer = TypeVar("Answer")


class Wallet:
    """
    The personas of one device, and the questions they ask along with its user.

    Parameters
    ----------
    pool
        The lives that personas are chosen from: a `Pool`, or what a bucket holds.
    secret
        At least 16 bytes that nobody else knows; with the same secret and lives the personas are the same.
    decimals
        Of every latitude and longitude that leaves, true or fake; 4 is about 11 metres.
    wait
        Seconds to wait for all answers of one question.
    pause
        Seconds between the queries of one question, for services that want no more than so many at once; 0 sends all
        at the same time.

    """

    def __init__(
        self, pool: Pool, *, secret: bytes | str, decimals: int = 4, wait: float = SECONDS, pause: float = 0.0
    ) -> None:
        if not isinstance(pool, Pool):
            raise InvalidParameter(f"`pool` must be a `Pool`, got {type(pool).__name__}.", parameter="pool")
        visits, where = pool.visits, pool.visits.locations
        if where.lat is None or where.lon is None:
            raise InvalidParameter("the places of this pool have no latitude and longitude.", code="E_MAP")
        self._secret = _check_secret(secret)
        self.decimals = require_whole("decimals", decimals, 0, 8)
        self.wait = require_between("wait", wait, 0, 3600, open_low=True)
        self.pause = require_between("pause", pause, 0, 60)
        self.zone, self._visits = zone_of(visits.tz), visits
        self._points = np.stack([where.lat, where.lon], axis=1)
        # whose rank among all lives only the secret tells: the first n are the n personas, whatever n
        self._order = sorted(range(visits.U), key=lambda u: self._keyed_hash("persona", str(visits.users[u])))
        self._offsets: list[tuple[float, float]] = []  # degrees from the user to each persona; from the first question
        self._lock = threading.Lock()
        self._state: Path | None = None

    def __repr__(self) -> str:
        # which of the lives are the user's is the secret
        return f"Wallet({len(self._order)} lives)"

    def __len__(self) -> int:
        return len(self._order)

    @staticmethod
    def load(
        source: str | os.PathLike[str] | Pool,
        *,
        token: str | None = None,
        secret: bytes | str | None = None,
        keep: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> "Wallet":
        """
        Return the wallet of this device.

        From an address, a bucket is fetched once, with the device's token, and kept in a file: later calls need neither
        network nor token.

        Parameters
        ----------
        source
            The address of a pool service, the folder of a published pool, or a `Pool`.
        token
            The token that the owner of the service gave this device.
        secret
            Decides which lives are the personas; by default 32 random bytes, drawn once and kept.
        keep
            Folder for the secret, the bucket and how far the personas are away, for their owner alone; by default
            `elsewhere` in the folder for state of the user's programs ($XDG_STATE_HOME, ~/.local/state).
        **options
            `decimals`, `wait`, `pause`: as in `Wallet`.

        """
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        folder = Path(keep) if keep is not None else Path(state) / "elsewhere"
        mine = _check_secret(secret) if secret is not None else None
        if isinstance(source, Pool):
            pool = source
        elif str(source).startswith(("http://", "https://")):
            pool = _device_bucket(str(source), token, folder)
        else:
            pool = Pool.load(Path(source))
        if mine is None:
            mine = _device_secret(folder)
        wallet = Wallet(pool, secret=mine, **options)
        first = "".join(str(wallet._visits.users[u]) for u in wallet._order[:MOST_DECOYS])
        wallet._state = folder / f"personas-{wallet._keyed_hash('offsets', first).hex()[:16]}.json"
        if wallet._state.exists():
            wallet._offsets = _read_offsets(wallet._state, len(wallet._order))
        return wallet

    def positions(
        self, lat: float, lon: float, when: datetime | None = None, *, decoys: int = 5
    ) -> list[tuple[float, float]]:
        """
        Return where the first `decoys` personas are, as (latitude, longitude), when the user asks from `lat`, `lon`.

        A persona is always as far from the user as at the first question: it stands still, wanders, starts and pauses
        as the device does. It is moved by whole steps of the last decimal, so that rounding does the same to both.
        """
        here, moment = _degrees(lat, lon), self._local_time(when)
        require_whole("decoys", decoys, 1, MOST_DECOYS)
        if decoys > len(self._order):
            raise NotEnoughUsers(
                f"`decoys` must be at most {len(self._order)}, the number of lives in this wallet, got {decoys}."
            )
        with self._lock:
            if not self._offsets:
                self._offsets = self._begin(here, calendar.timegm(moment.timetuple()))
        y, x = self._round_position(*here)
        steps = [(round(north, self.decimals), round(east, self.decimals)) for north, east in self._offsets[:decoys]]
        return [self._round_position(min(90.0, max(-90.0, y + north)), x + east) for north, east in steps]

    def ask(
        self,
        fn: Callable[[float, float], Answer],
        lat: float,
        lon: float,
        when: datetime | None = None,
        *,
        decoys: int = 5,
    ) -> Answer:
        """
        Ask a service, hidden among decoys, and return its answer to the true question.

        `fn` is called `decoys + 1` times, never more, each time in a thread of its own, with where the user or a
        persona is. The call ends when all answers are there, or after `wait` seconds, whichever of them was the true
        one, so that what the user does next tells nothing. If the true question fails, its error is raised; those of
        decoys are thrown away. To ask again is to send all of them again.

        Parameters
        ----------
        fn
            Sends one query: called with latitude and longitude, both rounded; it must not care which thread it is in.
        lat, lon
            Where the user is, in degrees.
        when
            The time of the question; by default now. Without a zone of its own it is in that of the pool.
        decoys
            How many personas ask along.

        """
        places = [self._round_position(*_degrees(lat, lon)), *self.positions(lat, lon, when, decoys=decoys)]
        answers: list[Future[Answer]] = [Future() for _ in places]
        ready = threading.Barrier(len(places))

        def run(number: int) -> None:
            if not self.pause:
                ready.wait()
            try:
                answers[number].set_result(fn(*places[number]))
            except BaseException as error:
                answers[number].set_exception(error)

        for i, number in enumerate(secrets.SystemRandom().sample(range(len(places)), len(places))):
            if i and self.pause:
                time.sleep(self.pause)
            # a thread sees what this one sees, and keeps no program from ending
            threading.Thread(target=contextvars.copy_context().run, args=(run, number), daemon=True).start()
        if answers[0] not in futures.wait(answers, self.wait).done:
            raise ElsewhereError(f"the service did not answer within {self.wait:g} s.", code="E_TIMEOUT")
        return answers[0].result()

    # where a persona is

    def _local_time(self, when: Any) -> datetime:
        if when is None:
            return datetime.now(self.zone)
        # pandas' NaT is a datetime that differs from itself; at the ends of the calendar no day comes before or after
        if not isinstance(when, datetime) or when != when or not 1 < when.year < 9999:
            raise InvalidParameter(
                f"`when` must be a `datetime` of the years 2 to 9998, got {type(when).__name__}.",
                code="E_DATE",
                parameter="when",
            )
        return when.replace(tzinfo=self.zone) if when.tzinfo is None else when.astimezone(self.zone)

    def _begin(self, here: tuple[float, float], second: int) -> list[tuple[float, float]]:
        """
        Return the degrees from the user to each persona: from the place of the pool she is nearest to, to its life's.

        So a persona lies as far from the middle of a place as she does, and no two lines are one while lives go to
        places enough. What was kept first, by whichever process, holds.
        """
        east = math.cos(math.radians(here[0]))
        nearest = np.hypot(self._points[:, 0] - here[0], ((self._points[:, 1] - here[1] + 180) % 360 - 180) * east)
        taken, offsets = {(0.0, 0.0)}, []
        for number in self._order[:MOST_DECOYS]:
            away = self._points[self._places_from(number, second)] - self._points[np.argmin(nearest)]
            steps = [(float(y), float(x)) for y, x in np.round(away, self.decimals) + 0.0]
            offsets.append(next((step for step in steps if step not in taken), steps[0]))
            taken.add(offsets[-1])
        if self._state is None:
            return offsets
        _keep_first(self._state, json.dumps(offsets).encode())
        return _read_offsets(self._state, len(self._order))

    def _places_from(self, number: int, second: int) -> NDArray[np.int64]:
        """
        Return the places of a life from a second of the local clock on, and then the earlier ones.

        Between two visits a life is where the last one was; its whole weeks are lived over and over.
        """
        rows = self._visits.rows(number)
        start = self._visits.start[rows]
        first = int(start[0]) // DAY * DAY
        days = max(1, -(-(int(self._visits.end[rows].max()) - first) // DAY))
        now = first + (second - first) % (DAY * (days // 7 * 7 or days))
        return np.roll(self._visits.place[rows], 1 - int(np.searchsorted(start, now, "right")))

    def _round_position(self, lat: float, lon: float) -> tuple[float, float]:
        east = round((lon + 180) % 360 - 180, self.decimals)
        return round(lat, self.decimals) + 0.0, (-180.0 if east == 180 else east) + 0.0

    def _keyed_hash(self, *words: str) -> bytes:
        return hmac.digest(self._secret, "\0".join(words).encode(), "sha256")


def _degrees(lat: float, lon: float) -> tuple[float, float]:
    """Return latitude and longitude as numbers; what is wrong is said without saying where somebody is."""
    try:
        north, east = float(lat), float(lon)
    except (TypeError, ValueError):
        north = east = math.nan
    if not (abs(north) <= 90 and abs(east) <= 360):
        raise InvalidParameter(
            "`lat` must be in [-90, 90] and `lon` in [-360, 360] degrees.", code="E_OUTSIDE", parameter="lat"
        )
    return north, east


# what is kept on the device


def _check_secret(secret: bytes | str) -> bytes:
    if not isinstance(secret, bytes | str):
        raise InvalidParameter(f"`secret` must be bytes or text, got {type(secret).__name__}.", parameter="secret")
    mine = secret.encode() if isinstance(secret, str) else secret
    if len(mine) < 16:
        raise InvalidParameter(f"`secret` must be at least 16 bytes long, got {len(mine)}.", parameter="secret")
    return mine


def _keep_first(path: Path, content: bytes) -> None:
    """Write a file for its owner alone unless it is there: of processes that come at once, the first one wins."""
    draft = f".{path.stem}-{secrets.token_hex(8)}"
    write_files(path.parent, {draft: content})
    try:
        with contextlib.suppress(FileExistsError):
            os.link(path.parent / draft, path)
    except OSError:
        (path.parent / draft).replace(path)
    finally:
        (path.parent / draft).unlink(missing_ok=True)


def _read_kept(path: Path, largest: int) -> bytes:
    try:
        return read_regular(path, largest)
    except OSError:
        raise OutputRefused(f"{path} cannot be read: give another `keep`.") from None


def _device_secret(folder: Path) -> bytes:
    """Return the secret of this device, drawn by the operating system the first time."""
    path = folder / "secret"
    if not path.exists():
        _keep_first(path, secrets.token_hex(32).encode())
    content = _read_kept(path, 1024)
    if len(content) < 16:
        raise InvalidModel(f"the secret in {folder} is damaged: its file is too short.", code="E_SECRET")
    return content


def _read_offsets(path: Path, lives: int) -> list[tuple[float, float]]:
    """Return how far the personas of this device are away, in degrees."""
    try:
        offsets = [(float(north), float(east)) for north, east in json.loads(read_regular(path, LARGEST_STATE))]
        if len(offsets) != min(lives, MOST_DECOYS) or not np.all(np.abs(offsets) <= 360):
            raise ValueError
    except (OSError, ValueError, TypeError, RecursionError):
        raise InvalidModel(f"{path} is damaged: remove it, and personas begin anew.", code="E_STATE") from None
    return offsets


def _device_bucket(url: str, token: str | None, folder: Path) -> Pool:
    """Return the bucket of this device, fetched and kept the first time, later read from its file."""
    base = _check_address(url)
    name = f"bucket-{hashlib.sha256(base.encode()).hexdigest()[:16]}.json"
    path = folder / name
    if path.exists():
        return bucket_pool(_read_kept(path, LARGEST_BUCKET))
    if token is None:
        raise InvalidParameter(
            "`token` is needed to fetch a bucket: the owner of the pool gives one to each device.", parameter="token"
        )
    content = _fetch(f"{base}/v1/bucket", token)
    pool = bucket_pool(content)
    write_files(folder, {name: content.rstrip()})
    return pool


def _check_address(url: str) -> str:
    parts = urlsplit(url)
    try:
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if not host or parts.username or parts.query or parts.fragment:
        raise InvalidParameter("the address of a pool service must look like https://pool.example.", code="E_ADDRESS")
    if parts.scheme != "https" and not _is_this_machine(host):
        raise InvalidParameter(
            f"the pool service must be reached by https, got {parts.scheme!r}: the token would be readable on the way.",
            code="E_ADDRESS",
        )
    return url.rstrip("/")


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None  # the token is for this address only


def _fetch(url: str, token: str) -> bytes:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}", "Accept": "application/json"})  # noqa: S310 - http or https, checked
    direct = [urllib.request.ProxyHandler({})] if _is_this_machine(urlsplit(url).hostname or "") else []
    try:
        with urllib.request.build_opener(_NoRedirect, *direct).open(request, timeout=SECONDS) as answer:
            content: bytes = answer.read(LARGEST_BUCKET + 1)
    except urllib.error.HTTPError as error:
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            reason = json.loads(error.read(65536))["error"]
            raise ElsewhereError(f"the pool service refused: {reason['message']}", code=str(reason["code"])) from None
        raise ElsewhereError(f"the pool service answered with status {error.code}.", code="E_SERVICE") from None
    except (OSError, ValueError, urllib.error.URLError):
        raise ElsewhereError("the pool service cannot be reached.", code="E_SERVICE") from None
    if len(content) > LARGEST_BUCKET:
        raise InvalidModel("the bucket is larger than this version reads.", code="E_TOO_LARGE")
    return content


def bucket_pool(content: bytes) -> Pool:
    """Return the lives of a bucket, as the pool service sends it, as a `Pool`; anything else is refused."""
    try:
        bucket = json.loads(content)
        if bucket["kind"] != "elsewhere bucket" or bucket["format"] != 2:
            raise ValueError
        lives = bucket["lives"]
        columns: dict[str, Any] = {
            name: [value for life in lives for value in life[name]] for name in ("start", "end", "place")
        }
        visits = Visits(
            np.repeat(np.arange(len(lives)), [len(life["place"]) for life in lives]),
            locations=Locations(lat=bucket["places"]["lat"], lon=bucket["places"]["lon"]),
            **columns,
            users=[str(life["id"]) for life in lives],
            tz=bucket["tz"],
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, OverflowError, ElsewhereError):
        raise InvalidModel("this is not a bucket of a pool service, or a newer one.", code="E_BUCKET") from None
    return Pool(visits, {})
