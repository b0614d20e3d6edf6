"""The pool service: tokens, buckets, limits, and what survives a kill."""

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from test_store import pool_of

from elsewhere.errors import ElsewhereError
from elsewhere.lbs import Wallet, bucket_pool
from elsewhere.pool import Pool
from elsewhere.serve import guard, run
from elsewhere.serve.app import bucket_file, make_app
from elsewhere.serve.guard import Rates
from elsewhere.serve.store import SqliteStore, digest_of, header, life_text

FAST = 1e9  # requests per minute
NOON = datetime(2024, 3, 6, 12)


class Asked:
    """The service in this process, asked through ASGI."""

    def __init__(self, folder, pool, **options):
        from starlette.testclient import TestClient

        self.store = SqliteStore(folder / "live.sqlite")
        self.store.fill(pool)
        self.owner = run.owner_token(self.store)
        self.client = TestClient(make_app(self.store, pool, **{"bucket": 6, "rate": FAST} | options))

    def __call__(self, method, path, token=None, **more):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.client.request(method, path, headers=headers | more.pop("headers", {}), **more)

    def device(self, **told):
        return self("POST", "/v1/devices", self.owner, json=told).json()


@pytest.fixture
def service(tmp_path):
    return Asked(tmp_path, pool_of(30, days=3, slots=24))


def test_health_says_the_version_and_nothing_else(service):
    answer = service("GET", "/v1/health")

    assert answer.status_code == 200
    assert set(answer.json()) == {"status", "version"}


def test_a_device_gets_its_bucket_and_nobody_elses(service):
    devices = [service.device(label=f"phone {n}") for n in range(6)]
    answers = [service("GET", "/v1/bucket", device["token"]) for device in devices]
    ids = [{life["id"] for life in answer.json()["lives"]} for answer in answers[:5]]

    assert answers[0].content == service("GET", "/v1/bucket", devices[0]["token"]).content
    assert [len(s) for s in ids] == [6] * 5
    assert len(set.union(*ids)) == 30
    assert (answers[5].status_code, answers[5].json()["error"]["code"]) == (409, "E_SPENT")
    level = service("GET", "/v1/devices", service.owner).json()
    assert (level["lives"], level["free"]) == (30, 0)
    assert {d["label"] for d in level["devices"]} == {"", *(f"phone {n}" for n in range(6))}


def test_tokens_end_when_revoked_and_roles_are_kept_apart(service):
    phone = service.device(expires_days=1)

    assert service("GET", "/v1/bucket", phone["token"]).status_code == 200
    assert service("GET", "/v1/devices", phone["token"]).status_code == 403
    assert service("POST", "/v1/devices", phone["token"]).status_code == 403
    assert service("DELETE", f"/v1/devices/{phone['id']}", phone["token"]).status_code == 403
    assert service("GET", "/v1/bucket", service.owner).status_code == 403
    assert service("DELETE", f"/v1/devices/{phone['id']}", service.owner).status_code == 204
    assert service("GET", "/v1/bucket", phone["token"]).status_code == 401
    assert service("DELETE", "/v1/devices/nobody", service.owner).status_code == 404
    service.store.admit(digest_of("old"), "device", expires="2020-01-01T00:00:00+00:00")
    assert service("GET", "/v1/bucket", "old").status_code == 401


@pytest.mark.parametrize("token", [None, "wrong", "x" * 500, "' OR 1=1 --", "\x7f"])
def test_without_a_valid_token_everything_looks_the_same(service, token):
    known = service.device()
    paths = ["/v1/bucket", "/v1/bucket/x", "/v1/devices", "/v1/nothing"]
    paths += [f"/v1/devices/{known['id']}", "/v1/devices/none", "/nothing", "/v1/../etc/passwd", "/docs"]
    answers = {(a := service(m, p, token)).status_code: a.content for p in paths for m in ("GET", "POST", "DELETE")}

    assert list(answers) == [401]


def test_every_answer_carries_the_headers_of_the_house(service):
    for path, token in (("/", None), ("/v1/health", None), ("/v1/devices", service.owner), ("/v1/x", None)):
        headers = service("GET", path, token).headers
        assert headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "data:" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers
    page = service("GET", "/")
    assert page.headers["content-type"].startswith("text/html")
    linked = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert [service("GET", link).status_code for link in linked] == [200] * len(linked)
    assert service("GET", "/page/..%2fapp.py").status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"label": 7}', 422),
        (b'{"label": "' + b"x" * 81 + b'"}', 422),
        (b'{"expires_days": 0}', 422),
        (b'{"expires_days": 4000}', 422),
        (b'{"expires_days": 1e400}', 422),
        (b'{"expires_days": NaN}', 422),
        (b'{"expires_days": "1"}', 422),
        (b'{"expires_days": 1.5}', 422),
        (b'{"expires_days": 30.0}', 201),
        (b'{"expires_days": null}', 201),
        (b'{"role": "owner"}', 422),
        (b"{", 422),
        (b"[]", 422),
        (b"[" * 4000, 422),
        (b"\xff", 422),
        (b" " * 5000, 413),
        (b'{"label": "\'; DROP TABLE device; --"}', 201),
        (b"", 201),
    ],
)
def test_every_wrong_body_is_refused_and_never_shown(service, body, status):
    answer = service("POST", "/v1/devices", service.owner, content=body, headers={"content-type": "application/json"})

    assert answer.status_code == status
    if status >= 400:
        assert set(answer.json()["error"]) == {"code", "message"}
        assert "xxx" not in answer.text
    assert service("GET", "/v1/devices", service.owner).status_code == 200


def test_a_body_that_does_not_say_its_length_is_cut_off(service):
    answer = service("POST", "/v1/devices", service.owner, content=iter([b" " * 3000] * 3))

    assert answer.status_code == 413


@settings(max_examples=40)
@given(lives=st.integers(1, 6), days=st.integers(1, 3), seed=st.integers(0, 99), data=st.data())
def test_a_bucket_has_the_same_length_whatever_lives_are_in_it(lives, days, seed, data):
    pool = pool_of(lives, days, 24, seed=seed)
    keep = np.random.default_rng(seed).random(len(pool.visits)) < 0.5
    keep[pool.visits.offsets[:-1]] = True  # lives of different length
    pool = Pool(pool.visits.select(keep), {})
    texts = [life_text(pool, number) for number in range(lives)]
    about = {"head": json.dumps(header(pool), separators=(",", ":")), "largest": str(max(map(len, texts)))}
    size = data.draw(st.integers(1, lives))
    chosen = [data.draw(st.lists(st.sampled_from(texts), min_size=size, max_size=size)) for _ in range(2)]
    one, two = (bucket_file(about, some, size) for some in chosen)

    assert len(one) == len(two)
    assert one.endswith(b" ")  # the largest bucket still fits
    assert [json.loads(life) for life in chosen[0]] == json.loads(one)["lives"]


def test_a_bucket_read_by_the_client_is_the_pool(tmp_path):
    pool = pool_of(6, days=2)
    service = Asked(tmp_path, pool)
    there = bucket_pool(service("GET", "/v1/bucket", service.device()["token"]).content).visits

    for number, name in enumerate(pool.ids):
        mine, theirs = pool.visits.rows(number), there.rows(there.users.index(name))
        for column in ("start", "end", "place"):
            assert np.array_equal(getattr(pool.visits, column)[mine], getattr(there, column)[theirs])
    assert np.allclose(there.locations.lat, pool.visits.locations.lat)
    assert there.tz == pool.visits.tz


def test_rates_are_per_token_and_for_strangers_per_address(tmp_path):
    service = Asked(tmp_path, pool_of(12), rate=60)
    app = service.client.app
    for rates in (app.by_token, app.by_address, app.by_path):
        rates.clock = lambda: 0.0  # a slow machine would be given more
    one, two = service.device()["token"], service.device()["token"]
    answers = [service("GET", "/v1/bucket", one).status_code for _ in range(12)]
    late = service("GET", "/v1/bucket", one)

    assert answers[:10] == [200] * 10
    assert late.status_code == 429
    assert int(late.headers["retry-after"]) >= 1
    assert service("GET", "/v1/bucket", two).status_code == 200
    assert 429 in [service("GET", "/v1/bucket", "guess").status_code for _ in range(80)]
    assert service("GET", "/v1/health").status_code == 200


def test_a_flood_of_one_path_starves_no_other(tmp_path):
    service = Asked(tmp_path, pool_of(12), rate=60)
    app = service.client.app
    for rates in (app.by_token, app.by_address, app.by_path):
        rates.clock = lambda: 0.0
    token = service.device()["token"]
    flood = [service("GET", "/v1/health").status_code for _ in range(700)]

    assert flood.count(200) == 600
    assert flood[-1] == 429
    assert service("GET", "/v1/bucket", token).status_code == 200
    assert service("GET", "/v1/devices", service.owner).status_code == 200
    assert service("GET", "/").status_code == 200
    assert service("GET", "/openapi.json").status_code == 200


def test_rates_come_back_with_time_and_forget_strangers():
    now = [0.0]
    rates = Rates(60, clock=lambda: now[0])

    assert [rates.wait("a") for _ in range(11)] == [0] * 10 + [1 + 1]
    now[0] = 1.0
    assert [rates.wait("a"), rates.wait("a")] == [0, 2]
    for i in range(guard.MOST_HOLDERS + 10):
        rates.wait(str(i))
    assert len(rates.left) == guard.MOST_HOLDERS


def test_a_fault_of_ours_shows_nothing(service, monkeypatch, capsys):
    def broken(*_, **__):
        raise RuntimeError("SECRET")

    token = service.device()["token"]
    monkeypatch.setattr(service.store, "issue", broken)
    answer = service("GET", "/v1/bucket", token)

    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "E_INTERNAL"
    said = capsys.readouterr()
    assert "SECRET" not in answer.text + said.out + said.err
    assert said.err.startswith("E_INTERNAL: RuntimeError at test_serve.py:")


def test_whether_a_token_was_ever_valid_is_not_told_by_time(service):
    known, times = service.device(), ([], [])
    service.store.revoke(known["id"])
    digests = [digest_of(known["token"]), digest_of("never")]
    for i in range(10_000):
        begun = time.perf_counter_ns()
        assert service.store.known(digests[i % 2]) is None
        times[i % 2].append(time.perf_counter_ns() - begun)

    # a row that is read takes some microseconds, which no network shows: without the index it would be a scan
    assert abs(np.median(times[0]) - np.median(times[1])) < 20_000


async def answer_of(app, method, path, token):
    """The status that an application answers with, asked as by one server: on one loop, with its threads."""
    status = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        status.append(message.get("status"))

    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"headers": [(b"authorization", f"Bearer {token}".encode())], "client": ("127.0.0.1", 1)}
    scope |= {"http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 80), "root_path": ""}
    await app(scope, receive, send)
    return status[0]


def test_a_store_that_hangs_keeps_neither_health_nor_the_page_from_answering(service, monkeypatch):
    back, app = threading.Event(), service.client.app
    monkeypatch.setattr(service.store, "local", False)
    monkeypatch.setattr(service.store, "known", lambda _: back.wait(60) and None)

    async def all_at_once():
        waiting = [asyncio.create_task(answer_of(app, "GET", "/v1/devices", "x")) for _ in range(60)]
        await asyncio.sleep(0.1)
        paths = ("/v1/health", "/", "/page/style.css", "/openapi.json")
        try:
            found = [await asyncio.wait_for(answer_of(app, "GET", path, ""), 20) for path in paths]
        finally:
            back.set()
        return found, set(await asyncio.gather(*waiting))

    assert asyncio.run(all_at_once()) == ([200] * 4, {401})


@pytest.mark.soak
def test_whether_an_id_exists_is_not_told_by_time(tmp_path):
    pool = pool_of(30, days=1)
    service = Asked(tmp_path, pool)
    device = service.device()
    phone = service.device()["token"]
    cases = [("DELETE", "/v1/devices/", device["id"])]
    rng, nobody = np.random.default_rng(5), "0" * 16

    async def timed(method, path, token):
        begun = time.perf_counter_ns()
        status = await answer_of(service.client.app, method, path, token)
        return time.perf_counter_ns() - begun, status

    async def sampled(method, before, known, token):
        there = rng.permutation(np.arange(2500) % 2)
        found = [await timed(method, before + (known if is_there else nobody), token) for is_there in there]
        assert len({status for _, status in found}) == 1
        return np.array([time for time, _ in found]), there.astype(bool)

    for token in ("wrong", phone):
        for method, before, known in cases:  # 5,000 requests in all, in any order
            times, there = asyncio.run(sampled(method, before, known, token))
            # the chance that one of an id that exists takes longer than one of an id that does not: a coin, 4 sigma .05
            above = mannwhitneyu(times[there], times[~there]).statistic / (there.sum() * (~there).sum())
            assert 0.44 < above < 0.56, (token, method)


def test_the_interface_describes_itself(service):
    told = service("GET", "/openapi.json").json()

    assert set(told["paths"]) == {
        "/v1/health",
        "/v1/bucket",
        "/v1/devices",
        "/v1/devices/{device}",
    }
    assert told["components"]["securitySchemes"]


# the real process


@pytest.mark.parametrize("role", ["owner", "device"])
def test_schemathesis_finds_nothing(tmp_path, role):
    tool = Path(sys.executable).with_name("schemathesis")
    if not tool.exists():
        pytest.skip("schemathesis is not installed")
    pool_of(40, days=2, slots=24).save(tmp_path / "pool")
    with serving(tmp_path / "pool", "--rate", "1000000") as (told, _):
        token = told["owner_token"]
        if role == "device":
            token = json.loads(asked(told["url"], "POST", "/v1/devices", token)[1])["token"]
        words = ["run", f"{told['url']}/openapi.json", "-H", f"Authorization: Bearer {token}", "--checks", "all"]
        words += ["--phases", "coverage,fuzzing", "--max-examples", "10", "--seed", "1", "--no-color"]
        done = subprocess.run([str(tool), *words], capture_output=True, text=True, timeout=300, cwd=tmp_path)

    assert done.returncode == 0, done.stdout[-3000:]
    assert "Tested: 5" in done.stdout


@contextmanager
def serving(pool, *options, **popen):
    """`elsewhere serve` in a process of its own: what it said at its start, and the process."""
    command = [sys.executable, "-m", "elsewhere", "serve", pool, "--port", "0", "--json", *options]
    process = subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen
    )
    try:
        said = ""
        while not said.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            said += line
        yield json.loads(said), process
    finally:
        process.kill()
        process.communicate()


def asked(url, method, path, token=None, body=None):
    """Ask a real server: status and content."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request(method, path, body, {"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.fixture
def pool(tmp_path):
    pool_of(120, days=1).save(tmp_path / "pool")
    return tmp_path / "pool"


def test_from_the_command_to_a_hidden_question(pool, tmp_path):
    with serving(pool) as (told, process):
        status, body = asked(told["url"], "POST", "/v1/devices", told["owner_token"])
        token = json.loads(body)["token"]
        wallet = Wallet.load(told["url"], token=token, keep=tmp_path / "kept")
        with pytest.raises(ElsewhereError) as wrong:
            Wallet.load(told["url"], token="wrong", keep=tmp_path / "other")  # noqa: S106
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)

    assert status == 201
    assert wrong.value.code == "E_TOKEN"
    assert (process.returncode, out, err) == (0, "", "")
    assert wallet.ask(lambda lat, lon: lat, 60.5, 24.5) == 60.5
    offline = Wallet.load(told["url"], keep=tmp_path / "kept")
    assert offline.positions(60.5, 24.5, NOON) == wallet.positions(60.5, 24.5, NOON)
    with serving(pool) as (again, _):
        assert again["owner_token"] is None  # shown once
        assert again["free"] == 120 - again["bucket"]
        assert asked(again["url"], "GET", "/v1/devices", told["owner_token"])[0] == 200
    with serving(pool, "--new-owner-token") as (renewed, _):
        assert asked(renewed["url"], "GET", "/v1/devices", told["owner_token"])[0] == 401
        assert asked(renewed["url"], "GET", "/v1/devices", renewed["owner_token"])[0] == 200


def test_killed_under_load_it_loses_no_token_and_gives_no_life_twice(pool):
    given_away, tokens, odd = {}, [], []
    owner = None
    for _ in range(3):
        with serving(pool, "--bucket", "2", "--rate", "1000000") as (told, process):
            owner = told["owner_token"] or owner
            stop = threading.Event()

            def client(url=told["url"], stop=stop, owner=owner):
                while not stop.is_set():
                    try:
                        status, body = asked(url, "POST", "/v1/devices", owner)
                        if status != 201:
                            odd.append(status)
                            continue
                        token = json.loads(body)["token"]
                        tokens.append(token)
                        status, body = asked(url, "GET", "/v1/bucket", token)
                        if status == 200:
                            given_away[token] = {life["id"] for life in json.loads(body)["lives"]}
                        elif status != 409:
                            odd.append(status)
                    except (OSError, http.client.HTTPException):
                        return  # it was killed

            threads = [threading.Thread(target=client) for _ in range(8)]
            [t.start() for t in threads]
            enough, until = len(given_away) + 4, time.monotonic() + 20
            while len(given_away) < enough and time.monotonic() < until:
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            stop.set()
            [t.join() for t in threads]
    with serving(pool, "--bucket", "2", "--rate", "1000000") as (told, _):
        for token in tokens:
            status, body = asked(told["url"], "GET", "/v1/bucket", token)
            if token in given_away:
                assert status == 200
                assert {life["id"] for life in json.loads(body)["lives"]} == given_away[token]
            else:
                assert status in (200, 409)
                if status == 200:
                    given_away[token] = {life["id"] for life in json.loads(body)["lives"]}
    every = [life for lives in given_away.values() for life in lives]

    assert odd == []
    assert len(given_away) >= 12
    assert len(every) == len(set(every))


@pytest.mark.soak
def test_two_hundred_devices_for_a_minute():
    bench = Path(__file__).resolve().parents[1] / "bench" / "load.py"
    done = subprocess.run([sys.executable, bench], capture_output=True, text=True, check=True)
    print(done.stdout)
    found = json.loads(done.stdout)

    assert (found["errors"], found["given_twice"]) == (0, 0)
    assert found["given"] == 200 * 16


def test_two_servers_share_a_pool_in_postgres(pool, postgres):
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    shared = ("--store", postgres, "--bucket", "10")
    with serving(pool, *shared) as (one, _), serving(pool, *shared) as (two, _):
        owner = one["owner_token"]
        tokens = [json.loads(asked(two["url"], "POST", "/v1/devices", owner)[1])["token"] for _ in range(6)]
        got = [
            [json.loads(asked(url, "GET", "/v1/bucket", token)[1])["lives"] for url in (one["url"], two["url"])]
            for token in tokens
        ]

    assert two["owner_token"] is None
    assert one["store"] == "PostgreSQL"
    assert all(first == second for first, second in got)
    assert len({life["id"] for first, _ in got for life in first}) == 60


def connected(postgres):
    """A connection to a server that may be about to recover."""
    import psycopg

    until = time.monotonic() + 60
    while True:
        try:
            return psycopg.connect(postgres, autocommit=True)
        except psycopg.OperationalError:
            assert time.monotonic() < until
            time.sleep(0.1)


def test_a_database_that_is_killed_loses_no_token_and_gives_no_life_twice(pool, postgres):
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.execute("ALTER SYSTEM SET restart_after_crash = on")
    given, odd = {}, []
    with serving(pool, "--store", postgres, "--bucket", "2", "--rate", "1000000") as (told, _):
        stop = threading.Event()

        def client():
            while not stop.is_set():
                status, body = asked(told["url"], "POST", "/v1/devices", told["owner_token"])
                if status == 201:
                    token = json.loads(body)["token"]
                    status, body = asked(told["url"], "GET", "/v1/bucket", token)
                    given[token] = {life["id"] for life in json.loads(body)["lives"]} if status == 200 else None
                if status not in (200, 201, 409, 500):
                    odd.append(status)

        threads = [threading.Thread(target=client) for _ in range(4)]
        [t.start() for t in threads]
        for killed in (1, 2):
            until = time.monotonic() + 60
            while len(given) < 6 * killed and time.monotonic() < until:
                time.sleep(0.01)
            # the process of a connection dies by -9: PostgreSQL ends all others, and recovers from its log
            with connected(postgres) as connection:
                (backend,) = connection.execute(
                    "SELECT pid FROM pg_stat_activity WHERE state IS NOT NULL AND pid <> pg_backend_pid() LIMIT 1"
                ).fetchone()
            os.kill(backend, signal.SIGKILL)
            time.sleep(1)
            connected(postgres).close()
        stop.set()
        [t.join() for t in threads]
        for token, before in given.items():
            status, body = asked(told["url"], "GET", "/v1/bucket", token)
            assert status in ((200,) if before else (200, 409))
            if status == 200:
                lives = {life["id"] for life in json.loads(body)["lives"]}
                assert before in (None, lives)
                given[token] = lives
    every = [life for lives in given.values() if lives for life in lives]

    assert odd == []
    assert len(given) >= 12
    assert len(every) == len(set(every))


def test_slow_clients_and_large_heads_are_cut_off(tmp_path, pool):
    script = tmp_path / "quick.py"
    script.write_text(
        "import sys\nfrom elsewhere.serve import guard\n"
        "guard.Impatient.seconds = guard.BODY_SECONDS = 0.5\nfrom elsewhere.cli import main\nmain()\n"
    )
    command = [sys.executable, script, "serve", pool, "--port", "0", "--json"]
    process = subprocess.Popen([str(w) for w in command], stdout=subprocess.PIPE, text=True)
    try:
        said = "".join(iter(lambda: process.stdout.readline(), "}\n")) + "}"
        told = json.loads(said)
        at = urlsplit(told["url"])

        def sent(data):
            with socket.create_connection((at.hostname, at.port), timeout=10) as connection:
                connection.sendall(data)
                begun = time.monotonic()
                got = b"".join(iter(lambda: connection.recv(65536), b""))
                return got, time.monotonic() - begun

        head = f"Host: x\r\nAuthorization: Bearer {told['owner_token']}\r\n".encode()
        assert sent(b"GET /v1/hea")[1] < 9  # half a request line
        assert sent(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n")[1] < 9  # half a head
        slow, seconds = sent(b"POST /v1/devices HTTP/1.1\r\nContent-Length: 10\r\n" + head + b"\r\n{")  # half a body
        assert seconds < 9
        assert slow.startswith(b"HTTP/1.1 408")
        large = sent(b"GET /v1/health HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 100_000 + b"\r\n\r\n")[0]
        assert large.startswith(b"HTTP/1.1 4")
        # meanwhile others are served, and so is one who asks again on one connection, as long as it is not silent
        connection = http.client.HTTPConnection(at.netloc, timeout=30)
        for pause in (0.2, 0.2, 0.0):
            connection.request("GET", "/v1/health")
            assert connection.getresponse().read()
            time.sleep(pause)
        connection.close()
    finally:
        process.kill()
        process.communicate()


def test_an_answer_waits_for_no_acknowledgement():
    """Of connections to the service, asyncio turns Nagle off: with it, what follows the head comes 40 ms later."""

    async def options(listening):
        asked = asyncio.get_running_loop().create_future()

        def answered(_reader, writer):
            asked.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(answered, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            found = await asked
            writer.close()
            return found

    assert asyncio.run(options(run._listen("127.0.0.1", 0))) != 0


def test_nothing_is_logged_and_no_token_is_shown_again(pool, tmp_path):
    with serving(pool, env={**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}) as (told, process):
        token = json.loads(asked(told["url"], "POST", "/v1/devices", told["owner_token"])[1])["token"]
        lives = json.loads(asked(told["url"], "GET", "/v1/bucket", token)[1])["lives"]
        asked(told["url"], "GET", "/v1/bucket/zzz", token)
        asked(told["url"], "GET", "/nothing", "wrong")
        process.terminate()
        out, err = process.communicate(timeout=20)

    assert (out, err) == ("", "")
    assert lives
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("pool-live*"))
    assert token.encode() not in kept
    assert told["owner_token"].encode() not in kept


def test_the_page_on_decoys_hides_a_question(tmp_path, monkeypatch, capsys):
    from geopy.adapters import BaseSyncAdapter
    from geopy.geocoders import options

    page = (Path(__file__).resolve().parents[1] / "docs" / "decoys.md").read_text()
    (script,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    asked_of_the_geocoder = []
    pool = pool_of(48, days=7, slots=24)
    # every life goes everywhere: whichever five are drawn, none of them need stand where another, or the user, does
    assert {len(set(pool.visits.place[pool.visits.rows(u)])) for u in range(48)} == {9}
    pool.save(tmp_path / "pool")

    class Geocoder(BaseSyncAdapter):
        """Answers with the position it is asked for."""

        def get_json(self, url, **_):
            asked_of_the_geocoder.append(url)
            lat, lon = re.search(r"lat=([^&]+)&lon=([^&]+)", url).groups()
            return {"lat": lat, "lon": lon, "display_name": f"{lat} {lon}"}

        get_text = None

    monkeypatch.setattr(options, "default_adapter_factory", lambda **how: Geocoder(**how))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("elsewhere.lbs.time.sleep", lambda _: None)
    with serving(tmp_path / "pool") as (told, _):
        monkeypatch.setenv(
            "TOKEN", json.loads(asked(told["url"], "POST", "/v1/devices", told["owner_token"])[1])["token"]
        )
        exec(compile(script.replace("http://127.0.0.1:8765", told["url"]), "decoys.md", "exec"), {})  # noqa: S102

    assert len([line for line in script.splitlines() if line]) <= 10
    assert capsys.readouterr().out == "46.0132 -12.0305\n"
    assert len(asked_of_the_geocoder) == len(set(asked_of_the_geocoder)) == 6


# the command


def test_wrong_options_are_refused(run, tmp_path, pool):
    cases = [
        ((tmp_path / "nothing",), "E_POOL"),
        ((pool, "--host", "0.0.0.0"), "E_PARAM"),  # noqa: S104
        ((pool, "--host", "pool.example"), "E_PARAM"),
        ((pool, "--port", "70000"), "E_PARAM"),
        ((pool, "--port", "x"), "E_PARAM"),
        ((pool, "--bucket", "0"), "E_PARAM"),
        ((pool, "--bucket", "121"), "E_PARAM"),
        ((pool, "--rate", "0"), "E_PARAM"),
        ((pool, "--rate", "nan"), "E_PARAM"),
        ((pool, "--cert", tmp_path / "c"), "E_PARAM"),
        ((pool, "--cert", tmp_path / "c", "--key", tmp_path / "k", "--port", "0"), "E_PARAM"),
        ((pool, "--store", tmp_path / "a" / "b"), "E_OUTPUT"),
        ((pool, "--store", pool / "pool.parquet"), "E_STORE"),
    ]
    for words, code in cases:
        status, out, err = run("serve", *words, "--json")
        assert (status, json.loads(out)["error"]["code"]) == (2, code), words
        assert err.startswith(code)


def test_a_port_that_is_taken_is_said(run, pool):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        status, _, err = run("serve", pool, "--port", taken.getsockname()[1])

    assert status == 2
    assert err.startswith("E_PORT")


def test_another_pool_in_the_same_store_is_refused(run, pool, tmp_path):
    store = SqliteStore(tmp_path / "x.sqlite")
    store.fill(pool_of(9))
    store.close()
    status, _, err = run("serve", pool, "--store", tmp_path / "x.sqlite", "--port", "0")

    assert status == 2
    assert err.startswith("E_MISMATCH")


def test_a_laboratory_pool_stays_on_this_machine(run, tmp_path):
    made = pool_of(8)
    Pool(made.visits, {"reproducible": True}).save(tmp_path / "lab")
    files = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "2"]
        + ["-out", files[0], "-keyout", files[1]],
        check=True,
        capture_output=True,
    )
    tls = ("--cert", files[0], "--key", files[1])
    status, _, err = run("serve", tmp_path / "lab", "--host", "0.0.0.0", *tls)  # noqa: S104

    assert status == 2
    assert err.startswith("E_PUBLISH")
    with serving(tmp_path / "lab", *tls) as (told, _):
        import ssl

        trusted = ssl.create_default_context(cafile=str(files[0]))
        trusted.check_hostname = False
        connection = http.client.HTTPSConnection(urlsplit(told["url"]).netloc, context=trusted, timeout=10)
        connection.request("GET", "/v1/health")
        assert connection.getresponse().status == 200
        connection.close()
    assert told["laboratory"]


def test_without_the_extra_it_is_said_what_to_install(run, pool, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    status, _, err = run("serve", pool)

    assert status == 2
    assert err.startswith("E_EXTRA")
    assert "elsewhere[serve]" in err


def test_help_does_not_load_the_service():
    heavy = "{'fastapi', 'uvicorn', 'numpy', 'sqlite3'}"
    code = f"import sys; from elsewhere.cli import app; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
