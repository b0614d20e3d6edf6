"""
The live store of a pool: lives, tokens, and which lives are given away. SQLite, or PostgreSQL for several servers.

A store is filled once, from one published pool, in an order drawn by the operating system. It never holds a token, only
its SHA-256, and never says which device holds which lives: a bucket is found again by a keyed hash of the token, so
only whoever shows the token finds it.

The six methods of both stores: `fill`, `admit`, `known`, `revoke`, `issue`, `overview`. A life that is given to one
holder is given to nobody else, by a unique column of the database; every change is one transaction, so a server
that is killed has either issued a bucket or not.
"""

import hashlib
import json
import os
import secrets
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from elsewhere.errors import ElsewhereError, InvalidModel, InvalidTraces, MissingExtra, OutputRefused
from elsewhere.pool import Pool

FORMAT = "5"
MOST_CONNECTIONS = 8  # of one server to its database
TABLES = (
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    # `place` is the place in a random order; lives are given away in it
    "CREATE TABLE IF NOT EXISTS life (place INTEGER PRIMARY KEY, content TEXT NOT NULL)",
    # lives that nobody holds: a table of its own, so that giving one away does not write its content again
    "CREATE TABLE IF NOT EXISTS free (place INTEGER PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS held (holder TEXT NOT NULL, place INTEGER NOT NULL UNIQUE REFERENCES life, "
    "PRIMARY KEY (holder, place))",
    "CREATE TABLE IF NOT EXISTS device (id TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE, role TEXT NOT NULL, "
    "label TEXT NOT NULL, created TEXT NOT NULL, expires TEXT, revoked INTEGER NOT NULL)",
)


class Refused(ElsewhereError):
    """A request that is answered by an error; `status` and `headers` are those of HTTP."""

    def __init__(self, status: int, message: str, *, code: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message, code=code)
        self.status, self.headers = status, headers


@dataclass(frozen=True)
class Device:
    """Whoever holds a token, the owner or a device, as the owner sees it; what it holds is not known."""

    id: str
    role: str
    label: str
    created: str
    expires: str | None
    valid: bool  # neither revoked nor expired


def digest_of(token: str) -> str:
    """Return what is kept of a token: its SHA-256, in hex."""
    return hashlib.sha256(token.encode()).hexdigest()


def open_store(where: str | Path) -> "Store":
    """Open the store at a path (SQLite) or at an address `postgresql://...`; it is made if it is not there."""
    if str(where).startswith(("postgresql://", "postgres://")):
        return PostgresStore(str(where))
    return SqliteStore(Path(where))


class Store:
    """The six methods, in the SQL that SQLite and PostgreSQL share, over a few connections: readers never wait."""

    AT_ONCE = 1  # changes
    MARK = "?"
    NEXT = "DELETE FROM free WHERE place IN (SELECT place FROM free ORDER BY place LIMIT ?) RETURNING place"
    local = True  # a read waits for nobody

    def __init__(self) -> None:
        self.idle: deque[Any] = deque([self.connect()])  # the last one used is the next
        self.few = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self.changes = threading.BoundedSemaphore(self.AT_ONCE)  # the others wait without a connection
        self.own = threading.local()  # the connection of the change that a thread is in

    # what differs between the two databases

    def connect(self) -> Any:
        """Return a new connection, outside of any transaction."""
        raise NotImplementedError

    def begin(self, connection: Any, name: str) -> None:
        """Begin a transaction that no other change of that name, of this or another process, comes between."""
        raise NotImplementedError

    def lost(self, connection: Any) -> bool:
        """Tell whether a connection that nobody used was lost."""
        return False

    # what both share

    @contextmanager
    def borrow(self) -> Iterator[Any]:
        """Hold a connection that nobody else uses; where one was lost, all are made anew."""
        with self.few:
            try:
                connection = self.idle.pop()
            except IndexError:
                connection = self.connect()
            if self.lost(connection):
                self.close()
                connection = self.connect()
            try:
                yield connection
            finally:
                self.idle.append(connection)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement, of the change that this thread is in or by itself, and return its rows."""
        mine = getattr(self.own, "connection", None)
        with nullcontext(mine) if mine else self.borrow() as connection:
            cursor = connection.execute(sql.replace("?", self.MARK), values)
            return list(cursor.fetchall()) if cursor.description else []

    def many(self, sql: str, values: Sequence[tuple[Any, ...]]) -> None:
        """Run one statement of a change for each tuple of values."""
        self.own.connection.cursor().executemany(sql.replace("?", self.MARK), values)

    @contextmanager
    def change(self, name: str) -> Iterator[None]:
        """Make one transaction of all that this thread does inside; changes of one name come one after the other."""
        with self.changes, self.borrow() as connection:
            try:
                self.begin(connection, name)
                self.own.connection = connection
                yield
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            finally:
                self.own.connection = None

    def close(self) -> None:
        """Close the connections."""
        while self.idle:
            self.idle.pop().close()

    def devices(self, which: str, *values: Any) -> list[Device]:
        """Return the owner and the devices that a clause chooses."""
        sql = "SELECT id, role, label, created, expires, revoked = 0 AND (expires IS NULL OR expires > ?) FROM device "
        found = self.rows(sql + which, datetime.now(UTC).isoformat(), *values)
        return [Device(i, role, label, made, ends, bool(valid)) for i, role, label, made, ends, valid in found]

    # the six methods

    def fill(self, pool: Pool) -> None:
        """Take in the lives of a pool, once; a store that holds another pool is refused."""
        head = header(pool)
        digest = hashlib.sha256(json.dumps(head).encode())
        lives = [life_text(pool, number) for number in range(len(pool))]
        for text in sorted(lives):
            digest.update(text.encode())
        about = {
            "format": FORMAT,
            "pool": digest.hexdigest(),
            "head": json.dumps(head, separators=(",", ":")),
            "largest": str(max(map(len, lives))),
        }
        with self.change("fill"):
            for table in TABLES:
                self.rows(table)
            there = self.meta()
            if not there:
                secrets.SystemRandom().shuffle(lives)
                self.many("INSERT INTO life VALUES (?, ?)", list(enumerate(lives)))
                self.rows("INSERT INTO free SELECT place FROM life")
                self.many("INSERT INTO meta VALUES (?, ?)", list(about.items()))
            elif there.get("format") != FORMAT:
                raise InvalidModel(f"the store has format {there.get('format')!r}, this version reads {FORMAT}.")
            elif there["pool"] != about["pool"]:
                raise InvalidModel(
                    "the store was filled from another pool, and knows what of it was given away: give `store` "
                    "another path, or remove the store if no device uses its lives any more.",
                    code="E_MISMATCH",
                )

    def admit(self, digest: str, role: str, label: str = "", expires: str | None = None, *, only: bool = False) -> str:
        """Let the holder of a token in and return its id; with `only`, whoever had that role before is shut out."""
        device = secrets.token_hex(8)
        with self.change("admit"):
            if only:
                self.rows("UPDATE device SET revoked = 1 WHERE role = ?", role)
            today = datetime.now(UTC).date().isoformat()
            self.rows("INSERT INTO device VALUES (?, ?, ?, ?, ?, ?, 0)", device, digest, role, label, today, expires)
        return device

    def known(self, digest: str) -> Device | None:
        """Return whose token has this digest, if it is valid."""
        return next((device for device in self.devices("WHERE digest = ?", digest) if device.valid), None)

    def revoke(self, device: str) -> bool:
        """Shut a device out for good; whether there was such a device. Its lives stay given away."""
        return bool(self.rows("UPDATE device SET revoked = 1 WHERE id = ? AND role = 'device' RETURNING id", device))

    def issue(self, holder: str, size: int) -> list[str]:
        """
        Return the bucket of a holder: `size` lives, drawn uniformly the first time, the same ones ever after.

        They were never given to anybody and never will be. Refused where fewer are left.
        """
        with self.change(holder):
            if there := self.bucket(holder):
                return there
            # the order is random: the next ones are a uniform draw
            drawn = self.rows(self.NEXT, size)
            if len(drawn) < size:
                told = f"fewer than {size} lives are left, the size of a bucket: publish a new pool."
                raise Refused(409, told, code="E_SPENT")
            self.many("INSERT INTO held VALUES (?, ?)", [(holder, place) for (place,) in drawn])
            return self.bucket(holder)

    def bucket(self, holder: str) -> list[str]:
        """Return the lives that a holder has, none before the first draw."""
        query = "SELECT content FROM held JOIN life USING (place) WHERE holder = ? ORDER BY place"
        return [content for (content,) in self.rows(query, holder)]

    def overview(self) -> dict[str, Any]:
        """Return how many lives there are and how many nobody holds, and the devices without what they hold."""
        ((lives,),) = self.rows("SELECT count(*) FROM life")
        ((free,),) = self.rows("SELECT count(*) FROM free")
        return {"lives": lives, "free": free, "devices": self.devices("ORDER BY created, id")}

    def meta(self) -> dict[str, str]:
        """Return what the store says of its pool; empty before it is filled."""
        return dict(self.rows("SELECT name, value FROM meta"))


class SqliteStore(Store):
    """One file, for one server or several on one machine; for its owner alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__()

    def connect(self) -> sqlite3.Connection:
        """Open the file, which is made if it is not there."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            # isolation_level None: transactions begin where we say so
            connection = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
            for rule in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {rule}")
        except OSError as error:
            raise OutputRefused(f"the store {self.path} cannot be made: {error.strerror}.") from None
        except sqlite3.DatabaseError:
            raise InvalidModel(f"{self.path} is no store of a pool, or is damaged.", code="E_STORE") from None
        return connection

    def begin(self, connection: Any, name: str) -> None:
        """Begin a transaction that no other change, of this or another process, comes between."""
        connection.execute("BEGIN IMMEDIATE")


class PostgresStore(Store):
    """A database that several servers share; `pip install 'elsewhere[postgres]'`."""

    AT_ONCE = MOST_CONNECTIONS // 2
    MARK = "%s"
    NEXT = Store.NEXT.replace("?", "? FOR UPDATE SKIP LOCKED")  # changes of several servers pass each other
    local = False

    def __init__(self, address: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("a store in PostgreSQL needs psycopg: pip install 'elsewhere[postgres]'.") from None
        self.psycopg, self.address = psycopg, address
        super().__init__()

    def connect(self) -> Any:
        """Open a connection to the server."""
        try:
            return self.psycopg.connect(self.address, autocommit=True, connect_timeout=10)
        except (self.psycopg.Error, ValueError):
            # the address may hold a password
            raise OutputRefused("the PostgreSQL server of the store does not answer, or refuses us.") from None

    def begin(self, connection: Any, name: str) -> None:
        """Begin a transaction that no other change of that name, of this or another server, comes between."""
        connection.execute("BEGIN")
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (name,))

    def lost(self, connection: Any) -> bool:
        """Tell whether a connection that nobody used was lost: the server was restarted."""
        try:
            connection.execute("SELECT 1")
        except self.psycopg.Error:
            return True
        return False


def header(pool: Pool) -> dict[str, Any]:
    """Return zone and map of a pool as a bucket shows them; places without a position are refused."""
    where = pool.visits.locations
    if where.lat is None or where.lon is None:
        raise InvalidTraces(
            "the places of this pool have no latitude and longitude: nobody can ask a service about them.", code="E_MAP"
        )
    return {
        "kind": "elsewhere bucket",
        "format": 2,
        "tz": pool.visits.tz,
        "places": {"lat": np.round(where.lat, 7).tolist(), "lon": np.round(where.lon, 7).tolist()},
    }


def life_text(pool: Pool, number: int) -> str:
    """Return one life as JSON: its id, and start, end (local seconds since 1970) and place of each visit."""
    rows = pool.visits.rows(number)
    columns = {name: getattr(pool.visits, name)[rows].tolist() for name in ("start", "end", "place")}
    return json.dumps({"id": str(pool.ids[number]), **columns}, separators=(",", ":"))
