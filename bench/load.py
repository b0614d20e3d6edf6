"""
Load on the pool service: 200 devices at once on loopback, for 60 s, each asks once a second; it ends by itself.

    python bench/load.py [clients] [seconds] [postgresql://...]

Prints requests per second, p50 and p99 of their times, errors, and lives that two devices were given (both must be 0).
Server and clients share the machine.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from elsewhere.data.visits import Locations, Visits
from elsewhere.pool import Pool

SIZE, DAYS, VISITS, EVERY = 16, 7, 9, 1.0


def make_pool(folder, lives):
    rng = np.random.default_rng(1)
    ids = [rng.bytes(16).hex() for _ in range(lives)]
    where = Locations(lat=60 + rng.random(400) / 10, lon=24 + rng.random(400) / 10)
    start = np.tile((86_400 * np.arange(DAYS)[:, None] + 9_000 * np.arange(VISITS)).ravel(), lives)
    who, place = np.repeat(np.arange(lives), DAYS * VISITS), rng.integers(400, size=lives * DAYS * VISITS)
    Pool(Visits(who, start, start + 7_200, place, where, users=ids), {}).save(folder)


async def ask(reader, writer, host, method, path, token):
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    return int(head.split()[1]), await reader.readexactly(length)


async def device(url, token, until, times, errors, given):
    at = urlsplit(url)
    try:
        reader, writer = await asyncio.open_connection(at.hostname, at.port, limit=2**24)
        n = 0
        await asyncio.sleep(EVERY * np.random.default_rng(hash(token) % 2**32).random())
        while time.monotonic() < until:
            begun = time.perf_counter()
            status, body = await ask(reader, writer, at.netloc, "GET", "/v1/buckets/0", token)
            times.append(time.perf_counter() - begun)
            if status != 200:
                errors.append(status)
            elif n == 0:
                given.setdefault(token, []).extend(life["id"] for life in json.loads(body)["lives"])
            n += 1
            await asyncio.sleep(max(0.0, EVERY - (time.perf_counter() - begun)))
        writer.close()
    except (OSError, asyncio.IncompleteReadError) as error:
        errors.append(repr(error))


async def load(told, clients, seconds):
    at = urlsplit(told["url"])
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    tokens = []
    for _ in range(clients):
        status, body = await ask(reader, writer, at.netloc, "POST", "/v1/devices", told["owner_token"])
        assert status == 201
        tokens.append(json.loads(body)["token"])
    writer.close()
    times, errors, given = [], [], {}
    until = time.monotonic() + seconds
    begun = time.monotonic()
    await asyncio.gather(*(device(told["url"], token, until, times, errors, given) for token in tokens))
    return times, errors, given, time.monotonic() - begun


def measure(clients=200, seconds=60.0, store=None):
    """Figures of one run."""
    with tempfile.TemporaryDirectory() as folder:
        pool = Path(folder) / "pool"
        make_pool(pool, clients * SIZE)
        command = [sys.executable, "-m", "elsewhere", "serve", str(pool), "--port", "0", "--json"]
        command += ["--bucket", str(SIZE), "--rate", "1000000"]
        command += ["--store", store] if store else []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                told = json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")
                times, errors, given, took = asyncio.run(load(told, clients, seconds))
            finally:
                server.kill()
    every = [life for lives in given.values() for life in lives]
    return {
        "clients": clients,
        "seconds": round(took, 1),
        "requests": len(times),
        "per_second": round(len(times) / took, 1),
        "p50_ms": round(1e3 * float(np.quantile(times, 0.5)), 1),
        "p99_ms": round(1e3 * float(np.quantile(times, 0.99)), 1),
        "errors": len(errors),
        "given": len(every),
        "given_twice": len(every) - len(set(every)),
    }


if __name__ == "__main__":
    print(json.dumps(measure(*(number(word) for number, word in zip((int, float, str), sys.argv[1:], strict=False)))))
