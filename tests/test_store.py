"""The live store: uniform, exact under concurrency, the same with SQLite and PostgreSQL."""

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy.stats import chi2

from elsewhere.data.visits import Locations, Visits
from elsewhere.errors import ElsewhereError, MissingExtra
from elsewhere.pool import Pool
from elsewhere.serve import store as stores
from elsewhere.serve.store import Refused, SqliteStore, digest_of, open_store


def pool_of(lives=40, days=2, slots=4, places=9, seed=1):
    """Random lives of `slots` visits a day, one after the other; their ids tell them apart."""
    rng = np.random.default_rng(seed)
    begin = int(np.datetime64("2024-03-04", "s").astype(np.int64))
    step = 86_400 // slots
    start = begin + np.tile((86_400 * np.arange(days)[:, None] + step * np.arange(slots)).ravel(), lives)
    visits = Visits(
        np.repeat(np.arange(lives), days * slots),
        start,
        start + step,
        rng.integers(places, size=lives * days * slots),
        Locations(lat=60 + 0.01 * np.arange(places), lon=24 + 0.01 * np.arange(places)),
        users=[rng.bytes(16).hex() for _ in range(lives)],
        tz="Europe/Helsinki",
    )
    return Pool(visits, {})


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    """Where a fresh store may be."""
    if request.param == "sqlite":
        return tmp_path / "live.sqlite"
    import psycopg

    server = request.getfixturevalue("postgres")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return server


@pytest.fixture
def store(address):
    made = open_store(address)
    yield made
    made.close()


def test_a_bucket_is_the_same_every_time_and_no_life_is_given_twice(store):
    store.fill(pool_of(40))
    first, second = (store.issue(holder, 12) for holder in ("a", "b"))

    assert store.issue("a", 12) == first
    assert len(set(first)) == len(set(second)) == 12
    assert not set(first) & set(second)
    assert store.overview()["free"] == 16


def test_a_pool_that_is_spent_says_so_and_gives_nothing(store):
    store.fill(pool_of(20))
    store.issue("a", 12)
    with pytest.raises(Refused, match="fewer than 12 lives"):
        store.issue("b", 12)

    assert store.overview()["free"] == 8
    assert len(store.issue("c", 8)) == 8


def test_a_store_is_filled_once_and_knows_its_pool(store, address):
    pool = pool_of(10)
    store.fill(pool)
    given = store.issue("a", 4)
    again = open_store(address)
    again.fill(pool)

    assert again.issue("a", 4) == given
    assert again.overview()["free"] == 6
    with pytest.raises(ElsewhereError) as wrong:
        again.fill(pool_of(10, seed=2))
    assert wrong.value.code == "E_MISMATCH"
    again.close()


def test_tokens_are_known_by_digest_until_they_are_revoked_or_expire(store):
    store.fill(pool_of(10))
    soon = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
    past = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    phone = store.admit(digest_of("t1"), "device", "phone", soon)
    store.admit(digest_of("t2"), "device", "old", past)
    store.admit(digest_of("t3"), "owner")

    assert store.known(digest_of("t1")).label == "phone"
    assert store.known(digest_of("t2")) is None
    assert store.known(digest_of("t0")) is None
    assert store.known(digest_of("t3")).role == "owner"
    assert store.revoke(phone)
    assert not store.revoke("nobody")
    assert not store.revoke(store.known(digest_of("t3")).id)  # an owner cannot be shut out as a device
    assert store.known(digest_of("t1")) is None
    store.admit(digest_of("t4"), "owner", only=True)
    assert store.known(digest_of("t3")) is None
    assert store.known(digest_of("t4")) is not None


def test_sixty_four_threads_over_four_connections_never_get_the_same_life(store, address):
    store.fill(pool_of(64 * 4, days=1))
    several = [open_store(address) for _ in range(4)]
    got, failed = [], []
    ready = threading.Barrier(64)

    def take(i):
        ready.wait()
        try:
            got.append(several[i % 4].issue(f"holder {i}", 4))
            # the same holder twice at once is one bucket
            got[-1] == several[(i + 1) % 4].issue(f"holder {i}", 4) or failed.append(i)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=take, args=(i,)) for i in range(64)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for one in several:
        one.close()

    assert failed == []
    assert len(got) == 64
    assert max(Counter(life for bucket in got for life in bucket).values()) == 1
    assert store.overview()["free"] == 0


def test_one_holder_asking_from_many_threads_gets_one_bucket(store, address):
    store.fill(pool_of(64, days=1))
    several = [open_store(address) for _ in range(4)]
    got = []
    ready = threading.Barrier(16)

    def take(i):
        ready.wait()
        got.append(tuple(several[i % 4].issue("me", 4)))

    threads = [threading.Thread(target=take, args=(i,)) for i in range(16)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for one in several:
        one.close()

    assert len(set(got)) == 1
    assert len(got) == 16
    assert store.overview()["free"] == 60


def test_every_life_is_as_likely_to_be_drawn(tmp_path):
    pool, draws = pool_of(8, days=1), 400
    seen = Counter()
    for i in range(draws):
        live = SqliteStore(tmp_path / f"{i % 4}.sqlite")
        live.rows("PRAGMA synchronous = OFF")
        for table in ("held", "free", "life", "meta", "device"):
            live.rows(f"DROP TABLE IF EXISTS {table}")
        live.fill(pool)
        seen.update(live.issue("a", 2))
        live.close()
    expected = draws * 2 / 8
    # draws without replacement vary less than independent ones: the limit is on the safe side
    statistic = sum((count - expected) ** 2 / expected for count in seen.values())

    assert len(seen) == 8
    assert statistic < chi2.isf(1e-6, 7)


def test_the_file_says_neither_tokens_nor_who_holds_what(tmp_path):
    live = SqliteStore(tmp_path / "live.sqlite")
    live.fill(pool_of(10))
    device = live.admit(digest_of("SECRET-TOKEN"), "device", "phone")
    live.issue("holder", 2)
    live.close()
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert b"SECRET-TOKEN" not in content
    assert (tmp_path / "live.sqlite").stat().st_mode & 0o777 == 0o600
    held = SqliteStore(tmp_path / "live.sqlite").rows("SELECT holder FROM held")
    assert device not in {holder for (holder,) in held}


def test_places_without_a_position_are_refused(tmp_path):
    pool = Pool(Visits([0], [0], [9], [1], Locations(n=2)), {})
    with pytest.raises(ElsewhereError, match="no latitude and longitude"):
        SqliteStore(tmp_path / "x.sqlite").fill(pool)


def test_what_is_no_store_is_refused(tmp_path):
    (tmp_path / "text").write_text("not a database, but long enough to be looked at" * 20)
    with pytest.raises(ElsewhereError, match="no store of a pool"):
        open_store(tmp_path / "text")
    with pytest.raises(ElsewhereError, match="cannot be made"):
        open_store(tmp_path / "nowhere" / "x.sqlite")
    with pytest.raises(ElsewhereError, match="does not answer") as wrong:
        open_store("postgresql://nobody:PASSWORD@127.0.0.1:1/x")
    assert "PASSWORD" not in str(wrong.value)


def test_without_psycopg_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"elsewhere\[postgres\]"):
        open_store("postgresql://x")


def test_a_postgres_connection_that_was_lost_is_made_anew(address):
    if not str(address).startswith("postgresql"):
        pytest.skip("a file is never lost")
    live = open_store(address)
    live.fill(pool_of(10))
    other = open_store(address)
    other.rows("SELECT pg_terminate_backend(?)", live.idle[-1].info.backend_pid)
    other.close()

    assert len(live.issue("a", 2)) == 2
    live.close()


def test_a_fill_that_is_cut_off_leaves_nothing(tmp_path, monkeypatch):
    live = SqliteStore(tmp_path / "live.sqlite")
    many = live.many
    calls = []

    def cut(sql, values):
        calls.append(sql)
        if "meta" in sql:
            raise KeyboardInterrupt
        many(sql, values)

    monkeypatch.setattr(live, "many", cut)
    with pytest.raises(KeyboardInterrupt):
        live.fill(pool_of(10))
    monkeypatch.undo()
    live.fill(pool_of(10))

    assert len(calls) == 2
    assert live.overview()["lives"] == 10
    assert stores.FORMAT == live.meta()["format"]
