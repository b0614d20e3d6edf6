"""
Load on the pool service: 200 devices at once on loopback, for 60 s; it ends by itself.

    python bench/load.py [clients] [seconds]

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

import elsewhere as ew

BUCKETS, SIZE, LIVES_DAYS, SLOTS = 4, 16, 7, 72


def make_pool(folder, lives):
    rng = np.random.default_rng(1)
    ids = [rng.bytes(16).hex() for _ in range(lives)]
    where = ew.Locations(lat=60 + rng.random(400) / 10, lon=24 + rng.random(400) / 10)
    dates = np.tile(np.arange("2024-03-04", "2024-03-11", dtype="datetime64[D]"), lives)
    r = np.repeat(rng.integers(400, size=(lives * LIVES_DAYS, SLOTS // 8)), 8, axis=1)
    ew.Pool(ew.Traces(r, where, users=np.repeat(ids, LIVES_DAYS), dates=dates), {}).save(folder)


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
        while time.monotonic() < until:
            begun = time.perf_counter()
            status, body = await ask(reader, writer, at.netloc, "GET", f"/v1/buckets/{n % BUCKETS}", token)
            times.append(time.perf_counter() - begun)
            if status != 200:
                errors.append(status)
            elif n < BUCKETS:
                given.setdefault(token, []).extend(life["id"] for life in json.loads(body)["lives"])
            n += 1
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


def measure(clients=200, seconds=60.0):
    """Figures of one run."""
    with tempfile.TemporaryDirectory() as folder:
        pool = Path(folder) / "pool"
        make_pool(pool, clients * BUCKETS * SIZE)
        command = [sys.executable, "-m", "elsewhere", "serve", str(pool), "--port", "0", "--json"]
        command += ["--bucket", str(SIZE), "--rate", "1000000"]
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
    print(json.dumps(measure(*(number(word) for number, word in zip((int, float), sys.argv[1:], strict=False)))))
