"""
Load on the pool service: 200 devices at once on loopback, for 60 s, each asks once a second; it ends by itself.

    python bench/load.py [clients] [seconds] [postgresql://... | postgres]

Prints requests per second, p50 and p99 of their times, of those of first draws and as the server counts them (from the
head of a request to its answer), the server's processor time for a request, errors, and lives that two devices were
given (both must be 0). Server and clients share the machine; its load average is printed too. `postgres` starts a
server of its own, which waits for the disk as installed.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
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


def serve(pool, *options):
    """Serve in this process, and print what each request took when told to stop."""
    from elsewhere.cli import app
    from elsewhere.serve.guard import Guard

    took, answer = [], Guard.__call__

    async def timed(self, scope, receive, send):
        begun = time.perf_counter()
        await answer(self, scope, receive, send)
        took.append(time.perf_counter() - begun)

    Guard.__call__ = timed
    try:
        app(["serve", pool, "--port", "0", "--json", *options])
    finally:
        p50, p99 = 1e3 * np.quantile(took, [0.5, 0.99])
        cpu = 1e3 * time.process_time() / len(took)
        print(json.dumps({"server_p50_ms": round(p50, 1), "server_p99_ms": round(p99, 1), "cpu_ms": round(cpu, 2)}))


async def device(url, token, until, times, errors, given):
    at = urlsplit(url)
    try:
        reader, writer = await asyncio.open_connection(at.hostname, at.port, limit=2**24)
        n = 0
        await asyncio.sleep(EVERY * np.random.default_rng(hash(token) % 2**32).random())
        while time.monotonic() < until:
            begun = time.perf_counter()
            status, body = await ask(reader, writer, at.netloc, "GET", "/v1/bucket", token)
            times.append((time.perf_counter() - begun, n == 0))
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
        command = [sys.executable, __file__, "serve", str(pool), "--bucket", str(SIZE), "--rate", "1000000"]
        command += ["--store", store] if store else []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                told = json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")
                times, errors, given, took = asyncio.run(load(told, clients, seconds))
                server.terminate()
                inside = json.loads(server.stdout.read())
            finally:
                server.kill()
    every = [life for lives in given.values() for life in lives]
    times, first = np.array(times).T
    return {
        "clients": clients,
        "seconds": round(took, 1),
        "requests": len(times),
        "per_second": round(len(times) / took, 1),
        "p50_ms": round(1e3 * float(np.quantile(times, 0.5)), 1),
        "p99_ms": round(1e3 * float(np.quantile(times, 0.99)), 1),
        "p99_first_ms": round(1e3 * float(np.quantile(times[first == 1], 0.99)), 1),
        "p99_later_ms": round(1e3 * float(np.quantile(times[first == 0], 0.99)), 1),
        **inside,
        "load": round(os.getloadavg()[0], 1),
        "errors": len(errors),
        "given": len(every),
        "given_twice": len(every) - len(set(every)),
    }


@contextmanager
def postgres():
    """A PostgreSQL server with the settings it is installed with, on a socket in a temporary folder."""
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"))
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as folder:
        as_other = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        if as_other:
            shutil.chown(folder, "postgres")
        quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": "/"}
        data = f"{folder}/data"
        subprocess.run([*as_other, programs / "initdb", "-D", data, "-A", "trust", "-U", "owner"], **quiet)
        control = [*as_other, programs / "pg_ctl", "-D", data, "-w", "-l", f"{folder}/log"]
        subprocess.run([*control, "-o", f"-c listen_addresses= -k {folder}", "start"], **quiet)
        try:
            yield f"postgresql://owner@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(*sys.argv[2:])
    told = [number(word) for number, word in zip((int, float, str), sys.argv[1:], strict=False)]
    if told[2:] == ["postgres"]:
        with postgres() as address:
            print(json.dumps(measure(*told[:2], address)))
    else:
        print(json.dumps(measure(*told)))
