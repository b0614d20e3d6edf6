"""
The live store of a pool: lives, tokens, and which lives are given away. SQLite, or PostgreSQL for several servers.

A store is filled once, from one published pool, in an order drawn by the operating system. It never holds a token, only
its SHA-256, and never says which device holds which lives: a bucket is found again by a keyed hash of the token, so
only whoever shows the token finds it.

The six methods of both stores: `fill`, `admit`, `known`, `revoke`, `issue`, `overview`. A life that is given to one
holder alone is given to nobody else, by a unique index of the database; every change is one transaction, so a server
that is killed has either issued a bucket or not.
"""

import hashlib
import json
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hmac import compare_digest
from pathlib import Path
from typing import Any

import numpy as np

from elsewhere.errors import ElsewhereError, InvalidModel, InvalidTraces, MissingExtra, OutputRefused
from elsewhere.pool import Pool

FORMAT = "2"
FREE, SHARED, ALONE = 0, 1, 2
TABLES = (
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    # `place` is the place in a random order; lives are given away in it
    "CREATE TABLE IF NOT EXISTS life (place INTEGER PRIMARY KEY, content TEXT NOT NULL, state INTEGER NOT NULL)",
    "CREATE INDEX IF NOT EXISTS life_state ON life (state, place)",
    "CREATE TABLE IF NOT EXISTS held (holder TEXT NOT NULL, position INTEGER NOT NULL, "
    "place INTEGER NOT NULL REFERENCES life, alone INTEGER NOT NULL, PRIMARY KEY (holder, position))",
    "CREATE UNIQUE INDEX IF NOT EXISTS held_alone ON held (place) WHERE alone = 1",
    "CREATE TABLE IF NOT EXISTS device (id TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE, role TEXT NOT NULL, "
    "label TEXT NOT NULL, created TEXT NOT NULL, expires TEXT, revoked INTEGER NOT NULL, drew TEXT)",
)


class PoolSpent(ElsewhereError):
    """Fewer lives are left than a bucket holds."""

    code = "E_SPENT"


class ShareDrawn(ElsewhereError):
    """A device has drawn its share of the pool for today."""

    code = "E_SHARE"


@dataclass(frozen=True)
class Device:
    """Whoever holds a token: the owner of the service, or a device."""

    id: str
    role: str
    label: str
    created: str
    expires: str | None
    revoked: int

    @property
    def valid(self) -> bool:
        """Tell whether the token is neither revoked nor expired."""
        return not self.revoked and (self.expires is None or self.expires > datetime.now(UTC).isoformat())


def digest_of(token: str) -> str:
    """Return what is kept of a token: its SHA-256, in hex."""
    return hashlib.sha256(token.encode()).hexdigest()


def open_store(where: str | Path) -> "Store":
    """Open the store at a path (SQLite) or at an address `postgresql://...`; it is made if it is not there."""
    if str(where).startswith(("postgresql://", "postgres://")):
        return PostgresStore(str(where))
    return SqliteStore(Path(where))


class Store:
    """The six methods, in the SQL that SQLite and PostgreSQL share."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    # what differs between the two databases

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        raise NotImplementedError

    def many(self, sql: str, values: Sequence[tuple[Any, ...]]) -> None:
        """Run one statement for each tuple of values."""
        raise NotImplementedError

    def change(self) -> AbstractContextManager[None]:
        """Make one transaction that no other change, of this or another process, comes between."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection."""
        raise NotImplementedError

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
        with self.change():
            for table in TABLES:
                self.rows(table)
            there = self.meta()
            if not there:
                secrets.SystemRandom().shuffle(lives)
                self.many("INSERT INTO life VALUES (?, ?, ?)", [(i, text, FREE) for i, text in enumerate(lives)])
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
        with self.change():
            if only:
                self.rows("UPDATE device SET revoked = 1 WHERE role = ?", role)
            today = datetime.now(UTC).date().isoformat()
            self.rows(
                "INSERT INTO device VALUES (?, ?, ?, ?, ?, ?, 0, NULL)", device, digest, role, label, today, expires
            )
        return device

    def known(self, digest: str) -> Device | None:
        """Return whose token has this digest, if it is valid."""
        rows = self.rows(
            "SELECT digest, id, role, label, created, expires, revoked FROM device WHERE digest = ?", digest
        )
        digest_kept, *fields = rows[0] if rows else ("0" * 64, "", "", "", "", None, 1)
        device = Device(*fields)
        return device if compare_digest(digest_kept, digest) and device.valid else None

    def revoke(self, device: str) -> bool:
        """Shut a device out for good; whether there was such a device. Its lives stay given away."""
        with self.change():
            rows = self.rows("SELECT 1 FROM device WHERE id = ? AND role = 'device'", device)
            self.rows("UPDATE device SET revoked = 1 WHERE id = ? AND role = 'device'", device)
        return bool(rows)

    def issue(self, holder: str, size: int, *, alone: bool, device: str | None = None) -> list[str]:
        """
        Return the bucket of a holder: `size` lives, drawn uniformly the first time, the same ones ever after.

        With `alone` they were never given to anybody and never will be; without, they may be others' too. `PoolSpent`
        where fewer are left. A device draws one bucket a day, `ShareDrawn` at the next; of it only the day is kept.
        """
        query = "SELECT content FROM held JOIN life USING (place) WHERE holder = ? ORDER BY position"
        if there := self.rows(query, holder):
            return [content for (content,) in there]
        with self.change():
            if not self.rows("SELECT 1 FROM held WHERE holder = ? LIMIT 1", holder):
                today = datetime.now(UTC).date().isoformat()
                if device and self.rows("SELECT 1 FROM device WHERE id = ? AND drew = ?", device, today):
                    raise ShareDrawn("a device draws one new bucket a day: again tomorrow (UTC).")
                self.rows("UPDATE device SET drew = ? WHERE id = ?", today, device or "")
                if alone:  # the order is random: the next ones are a uniform draw
                    free = self.rows("SELECT place FROM life WHERE state = ? ORDER BY place LIMIT ?", FREE, size)
                else:
                    able = self.rows("SELECT place FROM life WHERE state < ?", ALONE)
                    free = secrets.SystemRandom().sample(able, min(size, len(able)))
                if len(free) < size:
                    raise PoolSpent(
                        f"fewer than {size} lives are left, the size of a bucket: publish a new pool, or let devices "
                        "share lives (`shared`)."
                    )
                places = [place for (place,) in free]
                state = ALONE if alone else SHARED
                self.many(
                    "INSERT INTO held VALUES (?, ?, ?, ?)",
                    [(holder, i, place, int(alone)) for i, place in enumerate(places)],
                )
                self.many("UPDATE life SET state = ? WHERE place = ?", [(state, place) for place in places])
        return [content for (content,) in self.rows(query, holder)]

    def overview(self) -> dict[str, Any]:
        """Return how many lives there are and how many nobody holds, and the devices without what they hold."""
        ((lives,),) = self.rows("SELECT count(*) FROM life")
        ((free,),) = self.rows("SELECT count(*) FROM life WHERE state = ?", FREE)
        devices = self.rows("SELECT id, role, label, created, expires, revoked FROM device ORDER BY created, id")
        return {
            "lives": lives,
            "free": free,
            "devices": [Device(*fields) for fields in devices],
        }

    def meta(self) -> dict[str, str]:
        """Return what the store says of its pool; empty before it is filled."""
        return dict(self.rows("SELECT name, value FROM meta"))


class SqliteStore(Store):
    """One file, for one server or several on one machine; for its owner alone."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            # isolation_level None: transactions begin where we say so
            self.connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = FULL")
            self.connection.execute("PRAGMA foreign_keys = ON")
        except OSError as error:
            raise OutputRefused(f"the store {path} cannot be made: {error.strerror}.") from None
        except sqlite3.DatabaseError:
            raise InvalidModel(f"{path} is no store of a pool, or is damaged.", code="E_STORE") from None

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        with self.lock:
            return self.connection.execute(sql, values).fetchall()

    def many(self, sql: str, values: Sequence[tuple[Any, ...]]) -> None:
        """Run one statement for each tuple of values."""
        with self.lock:
            self.connection.executemany(sql, values)

    @contextmanager
    def change(self) -> Iterator[None]:
        """Make one transaction that no other change, of this or another process, comes between."""
        with self.lock:
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")

    def close(self) -> None:
        """Close the connection."""
        with self.lock:
            self.connection.close()


class PostgresStore(Store):
    """A database that several servers share; `pip install 'elsewhere[postgres]'`."""

    LOCK = 0x656C7365  # every change holds this advisory lock: the transactions of all servers come one after the other

    def __init__(self, address: str) -> None:
        super().__init__()
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("a store in PostgreSQL needs psycopg: pip install 'elsewhere[postgres]'.") from None
        self.psycopg, self.address = psycopg, address
        self.connection = self._connect()

    def _connect(self) -> Any:
        try:
            return self.psycopg.connect(self.address, autocommit=True, connect_timeout=10)
        except (self.psycopg.Error, ValueError):
            # the address may hold a password
            raise OutputRefused("the PostgreSQL server of the store does not answer, or refuses us.") from None

    def _cursor(self) -> Any:
        if self.connection.closed:  # the server was restarted
            self.connection = self._connect()
        return self.connection.cursor()

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows; once more on a new connection where the old one was lost."""
        with self.lock:
            inside = self.connection.info.transaction_status != self.psycopg.pq.TransactionStatus.IDLE
            try:
                cursor = self._cursor().execute(sql.replace("?", "%s"), values)
            except self.psycopg.OperationalError:
                if inside or not self.connection.closed:
                    raise
                cursor = self._cursor().execute(sql.replace("?", "%s"), values)
            return list(cursor.fetchall()) if cursor.description else []

    def many(self, sql: str, values: Sequence[tuple[Any, ...]]) -> None:
        """Run one statement for each tuple of values."""
        with self.lock:
            self._cursor().executemany(sql.replace("?", "%s"), values)

    @contextmanager
    def change(self) -> Iterator[None]:
        """Make one transaction that no other change, of this or another process, comes between."""
        with self.lock:
            self.rows("SELECT 1")  # a connection that was lost is made anew before anything begins
            with self.connection.transaction():
                self.rows("SELECT pg_advisory_xact_lock(?)", self.LOCK)
                yield

    def close(self) -> None:
        """Close the connection."""
        with self.lock:
            self.connection.close()


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
