"""
The interface over HTTP: health, buckets of whole lives, and devices for the owner. It never asks for a position.

    GET    /v1/health           version, for everybody
    GET    /v1/buckets/{n}      a device's n-th bucket; the same one every time; one new one a day
    POST   /v1/devices          owner: let a device in; its token is in the answer and nowhere else
    GET    /v1/devices          owner: the devices, and how many lives are left
    DELETE /v1/devices/{id}     owner: shut a device out
    GET    /v1/pool             owner: zone, places and ids of all lives, for the page
    GET    /v1/pool/days/{n}    owner: the visits of the n-th day of every life
    GET    /v1/lives/{id}       owner: one life; ?format=json|geojson|gpx

A bucket always has the same number of lives and of bytes, so neither the server nor whoever watches the line learns
which of its lives are used, nor which lives they are. Whoever sees the whole pool can strike every fake out of a user's
questions (A19): its routes ask for the owner's token, on this machine too.
"""

import hmac
import json
import secrets
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path as FilePath
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, Path, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.routing import Route

from elsewhere._version import __version__
from elsewhere.data.gazetteer import SOURCE, towns_around
from elsewhere.data.visits import DAY, Visits
from elsewhere.data.write import write_visits
from elsewhere.errors import ElsewhereError
from elsewhere.files import page_files
from elsewhere.pool import Pool
from elsewhere.serve.guard import Guard, look
from elsewhere.serve.store import Device, PoolSpent, ShareDrawn, Store, digest_of, life_text

BUCKETS = 8  # that a device may have
LONGEST_DAYS = 3650
PAGE = ("pool.html", "pool.js", "map.js", "parts.js", "style.css", "icon.svg")
JSON: dict[int | str, dict[str, Any]] = {200: {"content": {"application/json": {}}}}
MEDIA = {"json": "application/json", "geojson": "application/geo+json", "gpx": "application/gpx+xml"}


class Format(StrEnum):
    """Formats of a life."""

    json = "json"
    geojson = "geojson"
    gpx = "gpx"


class NewDevice(BaseModel):
    """A device to be let in."""

    model_config = ConfigDict(extra="forbid", strict=True)
    label: Annotated[str, Field(max_length=80, description="What you call the device; nobody else sees it.")] = ""
    expires_days: Annotated[
        int | None,
        Field(ge=1, le=LONGEST_DAYS, description="For how many days the token is valid; null: no end."),
        BeforeValidator(lambda v: int(v) if isinstance(v, float) and v.is_integer() else v),  # 30.0 is whole in JSON
    ] = None


class Admitted(BaseModel):
    """A device that was let in: keep the token, it is shown only now."""

    id: str
    token: str
    expires: str | None


class Listed(BaseModel):
    """A device as its owner sees it; what it holds is not known."""

    id: str
    role: str
    label: str
    created: str
    expires: str | None
    valid: bool


class Level(BaseModel):
    """How full the pool is, and who may draw from it."""

    lives: int
    free: int
    bucket: int
    shared: bool
    devices: list[Listed]


class Fault(BaseModel):
    """What is wrong."""

    error: dict[str, str]


def faults(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the answers of a service that say what is wrong."""
    return {status: {"model": Fault} for status in statuses}


class Refused(ElsewhereError):
    """A request that is answered by an error; `status` is that of HTTP."""

    def __init__(self, status: int, message: str, *, code: str) -> None:
        super().__init__(message, code=code)
        self.status = status


def make_app(store: Store, pool: Pool, *, bucket: int, shared: bool = False, rate: float = 120) -> Guard:
    """
    Return the service of a store that was filled from `pool`, an ASGI application.

    `bucket` is the number of lives in a bucket, `shared` whether a life may be given to several devices, `rate` the
    requests per minute that each token may make.
    """
    api = FastAPI(
        title="elsewhere pool",
        version=__version__,
        description="Fake lives for decoys, in buckets. The service is never sent a position.",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
    )
    about, pictures = store.meta(), PoolView(pool)
    bearer = [Security(HTTPBearer(auto_error=False))]
    owners = {"dependencies": bearer, "tags": ["owner"]}

    @api.get("/v1/health")
    def health() -> dict[str, str]:
        """Say that the service is there, and its version."""
        return {"status": "ok", "version": __version__}

    @api.get(
        "/v1/buckets/{n}",
        dependencies=bearer,
        responses=faults(401, 403, 404, 409, 422, 429) | JSON,
        response_class=Response,
    )
    async def read_bucket(
        request: Request, n: Annotated[int, Path(ge=0, lt=BUCKETS, description="Which of the device's own buckets.")]
    ) -> Response:
        """Return a bucket of whole lives; the device picks its own from it, and tells nobody which."""
        device = _as(request, "device")
        holder = hmac.digest(_token(request), f"bucket {n}".encode(), "sha256").hex()
        lives = await look(store, store.bucket, holder)
        if not lives:
            draw = partial(store.issue, holder, bucket, alone=not shared, device=device.id)
            lives = await run_in_threadpool(draw)
        return Response(bucket_file(about, lives, bucket), media_type=MEDIA["json"])

    _add_devices(api, store, owners, bucket, shared)
    _add_pool(api, pool, pictures, owners)
    _add_page(api)
    _add_faults(api)
    return Guard(api, store, rate=rate)


def _add_devices(api: FastAPI, store: Store, owners: dict[str, Any], bucket: int, shared: bool) -> None:
    """Add what the owner does with devices: let in, list, shut out."""

    @api.post("/v1/devices", status_code=201, responses=faults(401, 403, 413, 422, 429), **owners)
    def admit_device(request: Request, new: NewDevice | None = None) -> Admitted:
        """Let a device in; its token is in this answer and nowhere else."""
        _as(request, "owner")
        device = new or NewDevice()
        token = secrets.token_urlsafe(32)
        days = device.expires_days
        expires = None if days is None else (datetime.now(UTC) + timedelta(days=days)).isoformat()
        return Admitted(id=store.admit(digest_of(token), "device", device.label, expires), token=token, expires=expires)

    @api.get("/v1/devices", responses=faults(401, 403, 429), **owners)
    def list_devices(request: Request) -> Level:
        """List the devices, and say how many lives are left."""
        _as(request, "owner")
        devices = store.overview()
        return Level(
            lives=devices["lives"],
            free=devices["free"],
            bucket=bucket,
            shared=shared,
            devices=[
                Listed(id=d.id, role=d.role, label=d.label, created=d.created, expires=d.expires, valid=d.valid)
                for d in devices["devices"]
            ],
        )

    @api.delete(
        "/v1/devices/{device}",
        status_code=204,
        responses=faults(401, 403, 404, 422, 429),
        **owners,
    )
    def revoke_device(request: Request, device: Annotated[str, Path(max_length=64)]) -> None:
        """Shut a device out; what it was given is given to nobody else."""
        _as(request, "owner")
        if not store.revoke(device):
            raise Refused(404, "there is no such device.", code="E_DEVICE")


def bucket_file(about: dict[str, str], lives: list[str], size: int) -> bytes:
    """Return lives (as the store keeps them) as JSON, padded with blanks to the length of the largest bucket."""
    head = about["head"]
    text = f'{head[:-1]},"lives":[{",".join(lives)}]}}'
    return text.encode().ljust(len(head) + 16 + size * (int(about["largest"]) + 1))


class PoolView:
    """The pool as its owner sees it, a day at a time; `days` is the number of days of the longest life."""

    def __init__(self, pool: Pool) -> None:
        self.pool, v = pool, pool.visits
        self.first = v.start[v.offsets[:-1]] // DAY
        self.last = np.maximum.reduceat(np.maximum(v.start, v.end - 1), v.offsets[:-1]) // DAY
        self.days = int((self.last - self.first).max()) + 1
        self.number = {str(name): number for number, name in enumerate(pool.ids)}

    @cached_property
    def head(self) -> bytes:
        """Return zone, map, names of towns and ids, as JSON."""
        where = self.pool.visits.locations
        return _json(
            {
                "tz": self.pool.visits.tz,
                "days": self.days,
                "laboratory": _reproducible(self.pool),
                "places": {
                    "lat": None if where.lat is None else np.round(where.lat, 6).tolist(),
                    "lon": None if where.lon is None else np.round(where.lon, 6).tolist(),
                    "names": None if where.ids is None else list(where.ids),
                    "categories": None if where.kind is None else list(where.kind),
                },
                "towns": [(t.name, round(t.lon, 4), round(t.lat, 4)) for t in towns_around(where)],
                "sources": SOURCE,
                "lives": list(self.number),
            }
        )

    def day(self, n: int) -> bytes:
        """Return the n-th day of every life, as JSON: date and visits (minute of the day from, to, place), or null."""
        v, begin = self.pool.visits, (self.first + n) * DAY
        which = np.flatnonzero((v.start < begin[v.user] + DAY) & ((v.end > begin[v.user]) | (v.start == begin[v.user])))
        minutes = (np.clip([v.start[which], v.end[which]] - begin[v.user[which]], 0, DAY) // 60).tolist()
        lives: list[Any] = [[] if n <= last else None for last in (self.last - self.first).tolist()]
        for user, *visit in zip(v.user[which].tolist(), *minutes, v.place[which].tolist(), strict=True):
            lives[user].append(visit)
        dates = (self.first + n).astype("datetime64[D]").astype(str).tolist()
        return _json({"day": n, "dates": dates, "visits": lives})


def visits_file(visits: Visits, kind: str) -> bytes:
    """Return visits as a file of GeoJSON or GPX."""
    with tempfile.TemporaryDirectory() as folder:
        path = FilePath(folder) / f"lives.{kind}"
        write_visits(visits, path)
        return path.read_bytes()


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _reproducible(pool: Pool) -> bool:
    return bool(pool.provenance.get("reproducible"))


def _as(request: Request, role: str) -> Device:
    who: Device = request.state.who
    if who.role != role:
        raise Refused(403, f"this needs the token of {'the owner' if role == 'owner' else 'a device'}.", code="E_ROLE")
    return who


def _token(request: Request) -> bytes:
    return request.headers["authorization"].partition(" ")[2].encode()


def _add_pool(api: FastAPI, pool: Pool, shown: PoolView, owners: dict[str, Any]) -> None:
    """Add what the page draws, for the owner alone, because whoever has the pool sees through its decoys (A19)."""

    @api.get("/v1/pool", response_class=Response, responses=faults(401, 403, 429) | JSON, **owners)
    def read_pool(request: Request) -> Response:
        """Return zone, places and ids of all lives."""
        _as(request, "owner")
        return Response(shown.head, media_type=MEDIA["json"])

    @api.get("/v1/pool/days/{n}", response_class=Response, responses=faults(401, 403, 404, 422, 429) | JSON, **owners)
    def read_day(request: Request, n: Annotated[int, Path(ge=0, lt=LONGEST_DAYS)]) -> Response:
        """Return the visits of the n-th day of every life, in the order of `/v1/pool`."""
        _as(request, "owner")
        if n >= shown.days:
            raise Refused(404, f"the longest life has {shown.days} days.", code="E_DAY")
        return Response(shown.day(n), media_type=MEDIA["json"])

    @api.get(
        "/v1/lives/{life}",
        response_class=Response,
        responses=faults(401, 403, 404, 422, 429) | {200: {"content": {kind: {} for kind in MEDIA.values()}}},
        **owners,
    )
    def read_life(
        request: Request,
        life: Annotated[str, Path(max_length=64)],
        format: Annotated[Format, Query(description="GPX and GeoJSON for maps.")] = Format.json,  # noqa: A002
    ) -> Response:
        """Return one life as a file."""
        _as(request, "owner")
        number, kind = shown.number.get(life), format.value
        if number is None:
            raise Refused(404, "there is no such life.", code="E_LIFE")
        if kind == "json":
            content = life_text(pool, number).encode()
        else:
            content = visits_file(pool.visits.of_users([number]), kind)
        headers = {"content-disposition": f'attachment; filename="fake-{number}.{kind}"'}
        return Response(content, media_type=MEDIA[kind], headers=headers)


def _add_page(api: FastAPI) -> None:
    """Serve the files of the page, read once: no path of a request ever reaches the disk."""
    files = page_files(PAGE)

    @api.get("/", include_in_schema=False)
    def front_page() -> Response:
        return page_file("pool.html")

    @api.get("/page/{name}", include_in_schema=False)
    def page_file(name: str) -> Response:
        if name not in files:
            raise Refused(404, "there is no such page.", code="E_PATH")
        content, media = files[name]
        return Response(content, media_type=media)


def _add_faults(api: FastAPI) -> None:
    """Answer every error by its code and what is wrong, never by what was sent."""

    def answer(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
        return JSONResponse({"error": {"code": code, "message": message}}, status, headers)

    @api.exception_handler(RequestValidationError)
    def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        wrong = sorted({f"{'.'.join(map(str, e['loc'][:2]))}: {e['type'].replace('_', ' ')}" for e in error.errors()})
        return answer(422, "E_PARAM", f"the request is not as /openapi.json says: {'; '.join(wrong)[:500]}.")

    @api.exception_handler(Refused)
    def refused(_request: Request, error: Refused) -> JSONResponse:
        return answer(error.status, error.code, error.args[0])

    @api.exception_handler(PoolSpent)
    def spent(_request: Request, error: PoolSpent) -> JSONResponse:
        return answer(409, error.code, error.args[0])

    @api.exception_handler(ShareDrawn)
    def drawn(_request: Request, error: ShareDrawn) -> JSONResponse:
        return answer(429, error.code, error.args[0], {"retry-after": "3600"})

    @api.exception_handler(HTTPException)
    def other(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 400:  # a body that is no text, or nested too deep
            return answer(422, "E_PARAM", "the body of the request is not JSON.")
        methods = [
            r.methods or set() for r in api.routes if isinstance(r, Route) and r.path_regex.match(request.url.path)
        ]
        headers = {"allow": ", ".join(sorted(set().union(*methods)))} if error.status_code == 405 else None
        return answer(error.status_code, "E_PATH", "there is nothing here, or not by this method.", headers)

    @api.exception_handler(Exception)  # which goes on to the guard, who says its kind on stderr
    def fault(_request: Request, _error: Exception) -> JSONResponse:
        return answer(500, "E_INTERNAL", "a fault of elsewhere.")
