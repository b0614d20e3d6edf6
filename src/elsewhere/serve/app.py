"""
The interface over HTTP: health, buckets of whole lives, and devices for the owner. It never asks for a position.

    GET    /v1/health           version, for everybody
    GET    /v1/bucket           a device's bucket; the same one every time
    POST   /v1/devices          owner: let a device in; its token is in the answer and nowhere else
    GET    /v1/devices          owner: the devices, and how many lives are left, for the page
    DELETE /v1/devices/{id}     owner: shut a device out

A bucket always has the same number of lives and of bytes, so neither the server nor whoever watches the line learns
which of its lives are used, nor which lives they are. Whoever sees the whole pool can strike every fake out of a user's
questions (A19): nobody is shown it here.
"""

import hmac
import secrets
from datetime import UTC, datetime, timedelta
from importlib import resources
from mimetypes import guess_type
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.routing import Route

from elsewhere._version import __version__
from elsewhere.pool import Pool
from elsewhere.serve.guard import Guard, look, refusal
from elsewhere.serve.store import Device, Refused, Store, digest_of

LONGEST_DAYS = 3650
JSON: dict[int | str, dict[str, Any]] = {200: {"content": {"application/json": {}}}}


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


class Level(BaseModel):
    """How full the pool is, and who may draw from it."""

    lives: int
    free: int
    bucket: int
    laboratory: bool
    devices: list[Device]


class Fault(BaseModel):
    """What is wrong."""

    error: dict[str, str]


FAULTS: dict[int | str, dict[str, Any]] = {s: {"model": Fault} for s in (401, 403, 404, 409, 413, 422, 429)}


def role(name: str, words: str) -> list[Any]:
    """Return what a route asks for that is for the holder of one role alone."""

    async def check(request: Request) -> None:
        if request.state.who.role != name:
            raise Refused(403, f"this needs the token of {words}.", code="E_ROLE")

    return [Security(HTTPBearer(auto_error=False)), Depends(check)]


def make_app(store: Store, pool: Pool, *, bucket: int, rate: float = 120) -> Guard:
    """
    Return the service of a store that was filled from `pool`, an ASGI application.

    `bucket` is the number of lives in a bucket, `rate` the requests per minute that each token may make.
    """
    api = FastAPI(
        title="elsewhere pool",
        version=__version__,
        description="Fake lives for decoys, in buckets. The service is never sent a position.",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
    )
    about = store.meta()

    @api.get("/v1/health")
    async def health() -> dict[str, str]:  # no thread: it answers where all of them wait for the store
        """Say that the service is there, and its version."""
        return {"status": "ok", "version": __version__}

    @api.get("/v1/bucket", dependencies=role("device", "a device"), responses=FAULTS | JSON, response_class=Response)
    async def read_bucket(request: Request) -> Response:
        """Return the device's bucket of whole lives; it picks its own from it, and tells nobody which."""
        holder = hmac.digest(request.state.token.encode(), b"bucket", "sha256").hex()
        lives = await look(store, store.bucket, holder) or await run_in_threadpool(store.issue, holder, bucket)
        return Response(bucket_file(about, lives, bucket), media_type="application/json")

    _add_devices(api, store, bucket, bool(pool.provenance.get("reproducible")))
    _add_page(api)
    _add_faults(api)
    return Guard(api, store, rate=rate)


def _add_devices(api: FastAPI, store: Store, bucket: int, laboratory: bool) -> None:
    """Add what the owner does with devices: let in, list, shut out."""
    owner: Any = {"dependencies": role("owner", "the owner"), "tags": ["owner"], "responses": FAULTS}

    @api.post("/v1/devices", status_code=201, **owner)
    def admit_device(new: NewDevice | None = None) -> Admitted:
        """Let a device in; its token is in this answer and nowhere else."""
        device, token = new or NewDevice(), secrets.token_urlsafe(32)
        days = device.expires_days
        expires = None if days is None else (datetime.now(UTC) + timedelta(days=days)).isoformat()
        return Admitted(id=store.admit(digest_of(token), "device", device.label, expires), token=token, expires=expires)

    @api.get("/v1/devices", **owner)
    def list_devices() -> Level:
        """List the devices, and say how many lives are left."""
        return Level(**store.overview(), bucket=bucket, laboratory=laboratory)

    @api.delete("/v1/devices/{device}", status_code=204, **owner)
    def revoke_device(device: Annotated[str, Path(max_length=64)]) -> None:
        """Shut a device out; what it was given is given to nobody else."""
        if not store.revoke(device):
            raise Refused(404, "there is no such device.", code="E_DEVICE")


def bucket_file(about: dict[str, str], lives: list[str], size: int) -> bytes:
    """Return lives (as the store keeps them) as JSON, padded with blanks to the length of the largest bucket."""
    head = about["head"]
    text = f'{head[:-1]},"lives":[{",".join(lives)}]}}'
    return text.encode().ljust(len(head) + 16 + size * (int(about["largest"]) + 1))


def _add_page(api: FastAPI) -> None:
    """Serve the files of the page, read once: no path of a request ever reaches the disk."""
    files = {file.name: file.read_bytes() for file in (resources.files("elsewhere") / "page").iterdir()}

    @api.get("/", include_in_schema=False)
    async def front_page() -> Response:
        return await page_file("pool.html")

    @api.get("/page/{name}", include_in_schema=False)
    async def page_file(name: str) -> Response:
        if name not in files:
            raise Refused(404, "there is no such page.", code="E_PATH")
        return Response(files[name], media_type=guess_type(name)[0])


def _add_faults(api: FastAPI) -> None:
    """Answer every error by its code and what is wrong, never by what was sent."""

    @api.exception_handler(Refused)
    def refused(_request: Request, error: Refused) -> JSONResponse:
        return refusal(error)

    @api.exception_handler(RequestValidationError)
    def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        wrong = sorted({f"{'.'.join(map(str, e['loc'][:2]))}: {e['type'].replace('_', ' ')}" for e in error.errors()})
        told = f"the request is not as /openapi.json says: {'; '.join(wrong)[:500]}."
        return refusal(Refused(422, told, code="E_PARAM"))

    @api.exception_handler(HTTPException)
    def other(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 400:  # a body that is no text, or nested too deep
            return refusal(Refused(422, "the body of the request is not JSON.", code="E_PARAM"))
        here = [r.methods or () for r in api.routes if isinstance(r, Route) and r.path_regex.match(request.url.path)]
        allow = {"allow": ", ".join(sorted({name for names in here for name in names}))} if here else None
        told = "there is nothing here, or not by this method."
        return refusal(Refused(error.status_code, told, code="E_PATH", headers=allow))

    @api.exception_handler(Exception)  # which goes on to the guard, who says its kind on stderr
    def fault(_request: Request, _error: Exception) -> JSONResponse:
        return refusal(Refused(500, "a fault of elsewhere.", code="E_INTERNAL"))
