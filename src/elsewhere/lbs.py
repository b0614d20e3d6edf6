"""
Decoys for a location-based service: a wallet of fake lives that asks along with its user (public side).

    from elsewhere.lbs import Wallet
    wallet = Wallet.load("https://pool.example", token=...)     # or the folder of a pool
    answer = wallet.ask(lambda lat, lon: service.nearest(lat, lon), 60.1699, 24.9384)

Every question goes out `decoys + 1` times: once from where the user is, and once from where each of her personas is.
A persona is a fake life of the pool; which ones are hers is decided by a secret that never leaves the device, so they
are the same every day, and nobody else knows which they are. Fixes of a receiver scatter, and people start and pause:
so that this does not tell who is real, every persona moves as the device does, at the places of its own life. All
questions leave at once, in an order that is drawn for each, with equally many decimals; the answers to decoys, and
their errors, are thrown away.

What this does not hide: that questions are asked and when, the address of the device on the network, and who the user
is where the service knows from elsewhere how she lives (docs/decoys.md).
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
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import DAY, Locations, Visits, zone_of
from elsewhere.errors import (
    ElsewhereError,
    InvalidModel,
    InvalidParameter,
    MissingExtra,
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
METRES_PER_DEGREE = 111_195.0
WIDEST_SPOT = 150.0  # metres that a persona's own spot lies from the middle of a place, at most
SPOT_METRES = 100.0  # fixes of the device that are this near are of one spot
NEAR = 300.0  # metres below which a map of cells says nothing: a persona steps as far as the device, turned
MOST_SPOTS, LARGEST_STATE = 2000, 2**26  # that are kept of a device
CANDIDATES = 6  # spots of a place among which a persona's own is found
STRANGE = 0.5  # what it costs that a spot is at no place of the life

Answer = TypeVar("Answer")


class Persona:
    """A fake life as a wallet lives it: its places, and where it is at any second of the local clock."""

    def __init__(self, visits: Visits, number: int, keyed: Callable[..., int]) -> None:
        rows = visits.rows(number)
        start, end = visits.start[rows], visits.end[rows]
        self.id = str(visits.users[number])
        self.first = int(start[0]) // DAY * DAY
        days = max(1, -(-(int(end.max()) - self.first) // DAY))
        self.span = DAY * (days // 7 * 7 or days)  # whole weeks, over and over
        self.shift = 7 * DAY * (keyed("week", self.id) % max(1, days // 7))
        self.start, self.place = start.tolist(), visits.place[rows].tolist()
        self.own = np.unique(visits.place[rows])

    def place_at(self, second: float) -> int:
        """Return where the life is at a second of the local clock: between two visits, where the last one was."""
        now = self.first + (second - self.first + self.shift) % self.span
        return int(self.place[bisect_right(self.start, now) - 1])


@dataclass
class Device:
    """
    Where this device asked from, and where each persona is instead; it never leaves the device.

    `spots` are numbered: latitude, longitude, how often. `images` has, for each persona, its own spot for each of them.
    """

    spots: dict[int, list[float]] = field(default_factory=dict)
    images: dict[str, dict[int, tuple[float, float]]] = field(default_factory=dict)
    last: int = -1

    def find(self, lat: float, lon: float) -> int:
        """Return the number of the spot of a position, a new one if it is near none."""
        apart = ((math.hypot(*_metres(spot, (lat, lon))), n) for n, spot in self.spots.items())
        metres, n = min(apart, default=(math.inf, -1))
        if metres > SPOT_METRES:
            n = max(self.spots, default=-1) + 1
            self.spots[n] = [lat, lon, 0]
            if len(self.spots) > MOST_SPOTS:
                rare = min((m for m in self.spots if m not in (n, self.last)), key=lambda m: (self.spots[m][2], m))
                del self.spots[rare]
                for images in self.images.values():
                    images.pop(rare, None)
        self.spots[n][2] += 1
        return n

    @staticmethod
    def load(path: Path) -> "Device":
        """Read what was kept of a device; an empty one where nothing was."""
        try:
            kept = json.loads(read_regular(path, LARGEST_STATE))
            spots = {int(n): [float(value) for value in spot] for n, spot in kept["spots"].items()}
            images = {
                who: {int(n): (float(lat), float(lon)) for n, (lat, lon) in some.items() if int(n) in spots}
                for who, some in kept["images"].items()
            }
            if any(len(spot) != 3 for spot in spots.values()):
                raise ValueError
            return Device(spots, images, kept["last"] if kept["last"] in spots else -1)
        except FileNotFoundError:
            return Device()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InvalidModel(f"{path} is damaged: remove it, and personas begin anew.", code="E_STATE") from None


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
        self._lat, self._lon, self._reach = where.lat.tolist(), where.lon.tolist(), _reach(where)
        # whose rank among all lives only the secret tells: the first n are the n personas, whatever n
        self._order = sorted(range(visits.U), key=lambda u: self._keyed_hash("persona", str(visits.users[u])))
        self._personas: list[Persona] = []
        self._device, self._lock = Device(), threading.Lock()
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
        decimals: int = 4,
        wait: float = SECONDS,
        pause: float = 0.0,
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
            Folder for the secret, the bucket and where this device was, for their owner alone; by default `elsewhere`
            in the folder for state of the user's programs ($XDG_STATE_HOME, ~/.local/state).
        decimals, wait, pause
            As in `Wallet`.

        """
        folder = Path(keep) if keep is not None else _state_folder()
        mine = _check_secret(secret) if secret is not None else None
        if isinstance(source, Pool):
            pool = source
        elif str(source).startswith(("http://", "https://")):
            pool = _device_bucket(str(source), token, folder)
        else:
            pool = Pool.load(Path(source))
        if mine is None:
            mine = _device_secret(folder)
        wallet = Wallet(pool, secret=mine, decimals=decimals, wait=wait, pause=pause)
        wallet._state = folder / f"device-{hashlib.sha256(mine).hexdigest()[:16]}.json"
        wallet._device = Device.load(wallet._state)
        return wallet

    def positions(
        self, lat: float, lon: float, when: datetime | None = None, *, decoys: int = 5
    ) -> list[tuple[float, float]]:
        """
        Return where the first `decoys` personas are, as (latitude, longitude), when the user asks from `lat`, `lon`.

        Personas stand still, wander, start and pause as the device does, each at places of its own life: whatever the
        device does around a spot, a persona does, mirrored, around its own spot for it. The wallet remembers both.
        """
        here, personas, moment = _degrees(lat, lon), self._first_personas(decoys), self._local_time(when)
        second = calendar.timegm(moment.timetuple()) + moment.microsecond / 1e6
        with self._lock:
            spot, before = self._device.find(*here), self._device.last
            self._device.last = spot
            known = sum(map(len, self._device.images.values()))
            positions = [self._position(persona, here, spot, before, second) for persona in personas]
            if self._state is not None and sum(map(len, self._device.images.values())) > known:
                write_files(self._state.parent, {self._state.name: json.dumps(asdict(self._device)).encode()})
            return positions

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
        if not callable(fn):
            raise InvalidParameter(
                f"`fn` must be a function of latitude and longitude, got {type(fn).__name__}.", parameter="fn"
            )
        truth = self._round_position(*_degrees(lat, lon))
        queries = [(truth, True), *((place, False) for place in self.positions(lat, lon, when, decoys=decoys))]
        secrets.SystemRandom().shuffle(queries)
        pending = [_Query(fn, place) for place, _ in queries]
        _send(pending, self.pause)
        deadline = time.monotonic() + self.wait + self.pause * decoys
        for query in pending:
            query.done.wait(max(0.0, deadline - time.monotonic()))
        mine = next(query for query, (_, true) in zip(pending, queries, strict=True) if true)
        answer: Answer = mine.result(self.wait)
        return answer

    def geopy(self, inner: Any = None, *, decoys: int = 5) -> Callable[..., Any]:
        """
        Return an `adapter_factory` for the geocoders of geopy: `Nominatim(adapter_factory=wallet.geopy(), ...)`.

        `inner` is geopy's own adapter that sends each query, by default the one that geopy would take. Reverse
        geocoding is hidden; a request without a position, such as an address to be found, is refused.
        """
        try:
            from geopy.adapters import BaseSyncAdapter
            from geopy.geocoders import options
        except ImportError:
            raise MissingExtra("this needs geopy: pip install geopy.") from None
        wallet, make = self, inner or options.default_adapter_factory

        class Hidden(BaseSyncAdapter):  # type: ignore[misc]
            def __init__(self, *, proxies: Any, ssl_context: Any) -> None:
                super().__init__(proxies=proxies, ssl_context=ssl_context)
                self.inner = make(proxies=proxies, ssl_context=ssl_context)

            def _ask(self, what: str, url: str, timeout: Any, headers: Any) -> Any:
                def fn(to: str) -> Any:
                    return getattr(self.inner, what)(to, timeout=timeout, headers=dict(headers))

                return wallet.ask_url(fn, url, decoys=decoys)

            def get_json(self, url: str, *, timeout: Any, headers: Any) -> Any:
                return self._ask("get_json", url, timeout, headers)

            def get_text(self, url: str, *, timeout: Any, headers: Any) -> Any:
                return self._ask("get_text", url, timeout, headers)

        return Hidden

    def requests(self, *, decoys: int = 5, **adapter: Any) -> Any:
        """
        Return an adapter for a session of requests: `session.mount("https://service.example/", wallet.requests())`.

        Further arguments are those of `requests.adapters.HTTPAdapter`, such as `max_retries`; they count for all
        queries alike. Only GET and HEAD are sent along: anything else would change something at the service.
        """
        try:
            from requests.adapters import HTTPAdapter
        except ImportError:
            raise MissingExtra("this needs requests: pip install requests.") from None
        wallet = self

        class Hidden(HTTPAdapter):
            def send(self, request: Any, *place: Any, **options: Any) -> Any:
                _require_reading(request.method)

                def fn(url: str) -> Any:
                    query = request.copy()
                    query.url = url
                    answer = super(Hidden, self).send(query, *place, **options)
                    answer.content  # noqa: B018 - read whole, as the others
                    return answer

                return wallet.ask_url(fn, request.url, decoys=decoys)

        return Hidden(**{"pool_maxsize": decoys + 1, **adapter})

    def httpx(self, inner: Any = None, *, decoys: int = 5) -> Any:
        """
        Return a transport for httpx: `httpx.Client(transport=wallet.httpx())`.

        `inner` is the transport that sends each query, `httpx.HTTPTransport()` by default; with one of httpx2, it is
        for a client of httpx2.
        """
        try:
            name = "httpx" if inner is None else type(inner).__module__.partition(".")[0]
            library = __import__(name if name in ("httpx", "httpx2") else "httpx")
        except ImportError:
            raise MissingExtra("this needs httpx: pip install httpx.") from None
        wallet = self

        class Hidden(library.BaseTransport):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                self.inner = library.HTTPTransport() if inner is None else inner

            def handle_request(self, request: Any) -> Any:
                _require_reading(request.method)

                def fn(url: str) -> Any:
                    query = library.Request(
                        request.method, url, headers=request.headers, extensions=dict(request.extensions)
                    )
                    answer = self.inner.handle_request(query)
                    answer.read()
                    answer.close()
                    return answer

                return wallet.ask_url(fn, str(request.url), decoys=decoys)

            def close(self) -> None:
                self.inner.close()

        return Hidden()

    def ask_url(
        self, fn: Callable[[str], Answer], url: str, when: datetime | None = None, *, decoys: int = 5
    ) -> Answer:
        """Ask as `ask` does, where the position is in the query of an address: `fn` is called with each address."""
        lat, lon, rebuild = position_in(url)
        d = self.decimals
        return self.ask(lambda y, x: fn(rebuild(f"{y:.{d}f}", f"{x:.{d}f}")), lat, lon, when, decoys=decoys)

    # where a persona is

    def _first_personas(self, decoys: int) -> list[Persona]:
        require_whole("decoys", decoys, 1, MOST_DECOYS)
        if decoys > len(self._order):
            raise NotEnoughUsers(
                f"`decoys` must be at most {len(self._order)}, the number of lives in this wallet, got {decoys}."
            )
        for number in self._order[len(self._personas) : decoys]:
            self._personas.append(Persona(self._visits, number, self._keyed_number))
        return self._personas[:decoys]

    def _local_time(self, when: Any) -> datetime:
        if when is None:
            return datetime.now(self.zone)
        time = when.astype("datetime64[us]").item() if isinstance(when, np.datetime64) else when
        # pandas' NaT is a datetime that differs from itself; at the ends of the calendar no day comes before or after
        if not isinstance(time, datetime) or time != time or not 1 < time.year < 9999:
            raise InvalidParameter(
                f"`when` must be a `datetime` of the years 2 to 9998, got {type(when).__name__}.",
                code="E_DATE",
                parameter="when",
            )
        return time.replace(tzinfo=self.zone) if time.tzinfo is None else time.astimezone(self.zone)

    def _position(
        self, persona: Persona, here: tuple[float, float], spot: int, before: int, second: float
    ) -> tuple[float, float]:
        """Return a persona's fix: as far from its spot as the device's is from its own, in another direction."""
        images = self._device.images.setdefault(persona.id, {})
        for n in (before, spot):
            if n >= 0 and n not in images:
                images[n] = self._image(persona, images, n, before, second)
        mirror, grid = self._mirror(persona), 10.0**self.decimals
        # moved by whole steps of the last decimal, so that rounding does to both the same
        lat, lon = (
            s * x + round((image - s * middle) * grid) / grid
            for s, x, image, middle in zip(mirror, here, images[spot], self._device.spots[spot], strict=False)
        )
        return self._round_position(min(90.0, max(-90.0, lat)), lon)

    def _image(
        self, persona: Persona, images: Mapping[int, tuple[float, float]], n: int, before: int, second: float
    ) -> tuple[float, float]:
        """
        Return the spot of a persona that stands for a new spot of the device.

        The first one is at the place where the life is at that moment. Later ones are, of all spots of places, the one
        whose distances from the persona's spots are most like those of the device's, with its own places preferred.
        """
        if not images:
            place = persona.place_at(second)
            return tuple(self._spots(persona, np.array([place]))[0][0].tolist())
        spots = self._device.spots
        if before in images:
            away = _metres(spots[before], spots[n])
            if math.hypot(*away) < NEAR:
                north, east = self._mirror(persona)
                return _moved(*images[before], north * away[0], east * away[1])
        known = sorted(images, key=lambda i: (i != before, -spots[i][2]))[:6]
        points, place = self._spots(persona, np.arange(len(self._lat)))
        cost = STRANGE * ~np.isin(place, persona.own)
        for i in known:
            theirs = np.hypot(*_metres(images[i], (points[:, 0], points[:, 1])))
            mine = math.hypot(*_metres(spots[i], spots[n]))
            cost += (2.0 if i == before else 1.0) * np.abs(np.log((theirs + 20) / (mine + 20)))
        return tuple(points[np.argmin(cost)].tolist())

    def _mirror(self, persona: Persona) -> tuple[int, int]:
        number = self._keyed_number("mirror", persona.id)
        return 1 - 2 * (number & 1), 1 - (number & 2)

    def _spots(self, persona: Persona, places: Any) -> Any:
        """
        Return the spots that a persona may have at places, and the place of each.

        People are never at the very middle of a cell, and a service that knows the map would look for who is.
        """
        shape = (2, len(self._lat), CANDIDATES)
        key = hashlib.shake_256(self._keyed_hash("spots", persona.id)).digest(8 * math.prod(shape))
        angle, share = (np.frombuffer(key, dtype=np.uint64).reshape(shape) / 2**64)[:, places]
        metres = np.asarray(self._reach)[places, None] * np.sqrt(share)
        lat, lon = np.asarray(self._lat)[places, None], np.asarray(self._lon)[places, None]
        north, east = metres * np.sin(2 * np.pi * angle), metres * np.cos(2 * np.pi * angle)
        lon = lon + east / (METRES_PER_DEGREE * np.cos(np.radians(lat)))
        points = np.stack([(lat + north / METRES_PER_DEGREE).ravel(), lon.ravel()], axis=1)
        return points, np.repeat(places, CANDIDATES)

    def _round_position(self, lat: float, lon: float) -> tuple[float, float]:
        east = round((lon + 180) % 360 - 180, self.decimals)
        return round(lat, self.decimals) + 0.0, (-180.0 if east == 180 else east) + 0.0

    def _keyed_hash(self, *words: str) -> bytes:
        return hmac.digest(self._secret, "\0".join(words).encode(), "sha256")

    def _keyed_number(self, *words: str) -> int:
        return int.from_bytes(self._keyed_hash(*words)[:8], "big")

    def _keyed_share(self, *words: str) -> float:
        return self._keyed_number(*words) / 2**64


class _Query:
    """One call of the user's function, in a thread of its own."""

    def __init__(self, fn: Callable[[float, float], Any], place: tuple[float, float]) -> None:
        self.fn, self.place = fn, place
        self.done = threading.Event()
        self.answer: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.answer = self.fn(*self.place)
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()

    def result(self, waited: float) -> Any:
        if not self.done.is_set():
            raise ElsewhereError(f"the service did not answer within {waited:g} s.", code="E_TIMEOUT")
        if self.error is not None:
            raise self.error
        return self.answer


def _send(queries: Sequence[_Query], pause: float) -> None:
    """Start all queries at once, each in a thread that sees what this one sees; or one after the other, with pauses."""
    ready = threading.Barrier(len(queries))

    def run(query: _Query) -> None:
        if not pause:
            ready.wait()
        query.run()

    for i, query in enumerate(queries):
        if pause and i:
            time.sleep(pause)
        threading.Thread(target=contextvars.copy_context().run, args=(run, query), daemon=True).start()


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


def _moved(lat: float, lon: float, north: float, east: float) -> tuple[float, float]:
    """Return a position so many metres north and east of another."""
    wide = METRES_PER_DEGREE * max(0.01, math.cos(math.radians(lat)))
    return min(90.0, max(-90.0, lat + north / METRES_PER_DEGREE)), lon + east / wide


def _metres(one: Sequence[float], two: Any) -> tuple[Any, Any]:
    """Return how many metres another position lies north and east of one."""
    wide = METRES_PER_DEGREE * max(0.01, math.cos(math.radians(one[0])))
    return (two[0] - one[0]) * METRES_PER_DEGREE, ((two[1] - one[1] + 180) % 360 - 180) * wide


def _reach(locations: Locations) -> NDArray[np.float64]:
    """
    Return how far, in metres, a spot of a place may lie from its middle: four tenths of the way to the nearest
    other.
    """
    if len(locations) == 1:
        return np.array([WIDEST_SPOT])
    from scipy.spatial import cKDTree

    assert locations.lat is not None and locations.lon is not None  # noqa: PT018, S101 - asked before
    ball = locations.points(radius=1.0)
    near = np.asarray(cKDTree(ball).query(ball, k=2)[0])[:, 1] * np.degrees(1) * METRES_PER_DEGREE
    return np.asarray(np.minimum(WIDEST_SPOT, 0.4 * near))


# positions in addresses

PAIRS = (
    ("lat", "lon"),
    ("lat", "lng"),
    ("lat", "long"),
    ("latitude", "longitude"),
    ("point.lat", "point.lon"),
    ("y", "x"),
)
TOGETHER = ("latlng", "latlon", "location", "point", "at", "ll", "query", "q", "coordinates")


def position_in(url: str) -> tuple[float, float, Callable[[str, str], str]]:
    """
    Return latitude and longitude in the query of an address, and a function that puts others in their place.

    They are found in two fields (`lat` and `lon`, `lat` and `lng`, `latitude` and `longitude`, ...) or in one, latitude
    first (`latlng`, `location`, `point`, `ll`, `at`, `q`, ...).

    Examples
    --------
    >>> lat, lon, rebuild = position_in("https://service.example/reverse?lat=60.17&lon=24.9&zoom=18")
    >>> lat, lon, rebuild("1.0000", "2.0000")
    (60.17, 24.9, 'https://service.example/reverse?lat=1.0000&lon=2.0000&zoom=18')

    """
    parts = urlsplit(url)
    fields = parse_qsl(parts.query, keep_blank_values=True)
    names = [name.lower() for name, _ in fields]

    def rebuild(changed: Mapping[int, str]) -> str:
        query = [(name, changed.get(i, value)) for i, (name, value) in enumerate(fields)]
        return urlunsplit(parts._replace(query=urlencode(query, quote_via=quote, safe=",")))

    positions: list[tuple[float, float, Callable[[str, str], str]]] = []
    for north, east in PAIRS:
        if names.count(north) == names.count(east) == 1:
            i, j = names.index(north), names.index(east)
            with contextlib.suppress(ValueError):
                lat, lon = float(fields[i][1]), float(fields[j][1])
                positions.append((lat, lon, lambda y, x, i=i, j=j: rebuild({i: y, j: x})))  # type: ignore[misc]
    for i, name in enumerate(names):
        halves = fields[i][1].split(",")
        if name in TOGETHER and len(halves) == 2:
            with contextlib.suppress(ValueError):
                lat, lon = float(halves[0]), float(halves[1])
                positions.append((lat, lon, lambda y, x, i=i: rebuild({i: f"{y},{x}"})))  # type: ignore[misc]
    if len(positions) != 1:
        raise InvalidParameter(
            f"the request holds {len(positions) or 'no'} position{'s' * (len(positions) != 1)} that can be hidden, so "
            "it was not sent; one is needed, as `lat` and `lon` in its query or in another usual way. Use `Wallet.ask` "
            "where the position is elsewhere.",
            code="E_NO_POSITION",
        )
    return positions[0]


def _require_reading(method: str) -> None:
    if method.upper() not in ("GET", "HEAD"):
        raise InvalidParameter(
            f"only GET and HEAD can be sent along with decoys, got {method!r}: others change something at the service.",
            code="E_METHOD",
        )


# what is kept on the device


def _check_secret(secret: bytes | str) -> bytes:
    if not isinstance(secret, bytes | str):
        raise InvalidParameter(f"`secret` must be bytes or text, got {type(secret).__name__}.", parameter="secret")
    mine = secret.encode() if isinstance(secret, str) else secret
    if len(mine) < 16:
        raise InvalidParameter(f"`secret` must be at least 16 bytes long, got {len(mine)}.", parameter="secret")
    return mine


def _state_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "elsewhere"


def _device_secret(folder: Path) -> bytes:
    """Return the secret of this device, drawn by the operating system the first time."""
    path = folder / "secret"
    if not path.exists():
        mine = secrets.token_hex(32)
        # two processes may come here at once: the first to link its file wins
        draft = f".secret-{secrets.token_hex(8)}"
        write_files(folder, {draft: mine.encode()})
        try:
            with contextlib.suppress(FileExistsError):
                os.link(folder / draft, path)
        except OSError:
            (folder / draft).replace(path)
        finally:
            (folder / draft).unlink(missing_ok=True)
    try:
        content = read_regular(path, 1024)
    except OSError:
        raise OutputRefused(f"the secret in {folder} cannot be read: give `secret`, or another `keep`.") from None
    if len(content) < 16:
        raise InvalidModel(f"the secret in {folder} is damaged: its file is too short.", code="E_SECRET")
    return content


def _device_bucket(url: str, token: str | None, folder: Path) -> Pool:
    """Return the bucket of this device, fetched and kept the first time, later read from its file."""
    base = _check_address(url)
    name = f"bucket-{hashlib.sha256(base.encode()).hexdigest()[:16]}.json"
    path = folder / name
    if path.exists():
        try:
            return bucket_pool(read_regular(path, LARGEST_BUCKET))
        except OSError:
            raise OutputRefused(f"{path} cannot be read.") from None
    if token is None:
        raise InvalidParameter(
            "`token` is needed to fetch a bucket: the owner of the pool gives one to each device.", parameter="token"
        )
    content = _fetch(f"{base}/v1/buckets/0", token)
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
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if parts.scheme != "https" and not local:
        raise InvalidParameter(
            f"the pool service must be reached by https, got {parts.scheme!r}: the token would be readable on the way.",
            code="E_ADDRESS",
        )
    return url.rstrip("/")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None  # the token is for this address only


def _fetch(url: str, token: str) -> bytes:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}", "Accept": "application/json"})  # noqa: S310 - http or https, checked
    host = urlsplit(url).hostname or ""
    direct = [urllib.request.ProxyHandler({})] if host in ("127.0.0.1", "::1", "localhost") else []
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
        columns = {name: [value for life in lives for value in life[name]] for name in ("start", "end", "place")}
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
