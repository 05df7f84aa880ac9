"""PostgreSQL: psycopg 3 and its pool, blocking, in threads: so it runs on every event loop, trio included.

Nothing is kept on a connection between two transactions - no prepared statement, no setting, no lock - so that a pooler
in transaction mode may stand between.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg import conninfo, errors
from psycopg_pool import ConnectionPool, PoolTimeout

from pollux_like.errors import (
    ConfigurationError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from pollux_like.store import schema
from pollux_like.store.database import Database, Transaction

T = TypeVar("T")

CONNECT_TIMEOUT_S = 10
"""Longest wait of the pool for the server to take one connection; it goes on beside the attempts that wait for it."""
WAIT_S = 1.0
"""Longest wait of one attempt for a connection of the pool."""
_POOL = "pollux_like"
_SILENCE_MS = 30_000
_KEPT = {
    "prepare_threshold": None,
    "connect_timeout": CONNECT_TIMEOUT_S,
    "tcp_user_timeout": _SILENCE_MS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
}  # fmt: skip
_LEVELS = {True: psycopg.IsolationLevel.READ_COMMITTED, False: psycopg.IsolationLevel.REPEATABLE_READ}


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection of a store, as the log of the pool names it."""


class _Rows:
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def all(self, sql: str, *values: object) -> Sequence[tuple[Any, ...]]:
        return self._connection.execute(sql.replace("?", "%s").encode(), values).fetchall()

    def one(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        return self._connection.execute(sql.replace("?", "%s").encode(), values).fetchone()

    def run(self, sql: str, *values: object) -> int:
        return self._connection.execute(sql.replace("?", "%s").encode(), values).rowcount

    def many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(sql.replace("?", "%s").encode(), rows)


class PostgreSQL(Database):
    """A server by its URL; `connections` is the most that this process opens."""

    dialect = "postgresql"

    def __init__(self, url: str, *, connections: int, migrate: bool) -> None:
        super().__init__()
        _check(url)
        _LOG.addFilter(_heard)
        self.readers = self.writers = connections
        self._migrate = migrate
        self._lock = threading.Lock()
        self._pool: ConnectionPool[_Connection] = ConnectionPool(
            url,
            min_size=0,
            max_size=connections,
            connection_class=_Connection,
            timeout=WAIT_S,
            reconnect_timeout=0,  # the attempts of the store are the only ones
            kwargs=_KEPT,
            open=False,
            name=_POOL,
        )
        self._ready = False

    def transact(self, work: Callable[[Transaction], T], *, writing: bool) -> T:
        """Writes are read committed, which a compare-and-set needs; reads are of one snapshot."""
        if not self._ready:
            self._prepare()
        return self._transacted(work, writing)

    def close(self) -> None:
        """Close the pool and wait for its threads."""
        self._pool.close()

    def _prepare(self) -> None:
        with self._lock:
            if self._ready:
                return
            self._pool.open()
            for _ in range(20):
                try:
                    self._transacted(self._migrated, writing=True)
                except _TableExistsError:
                    continue  # another process applies the same step: look again
                self._ready = True
                return
        raise StoreUnavailableError("other processes keep changing the tables", hint="Try again")

    def _migrated(self, tx: Transaction) -> None:
        row = tx.one("SELECT to_regclass('pollux_like_schema') IS NOT NULL")
        schema.migrate(tx, "postgresql", exists=bool(row and row[0]), allowed=self._migrate)

    def _transacted(self, work: Callable[[Transaction], T], writing: bool) -> T:
        committing = False
        connection: _Connection | None = None
        try:
            connection = self._pool.getconn()
            connection.isolation_level = _LEVELS[writing]
            connection.read_only = not writing
            result = work(_Rows(connection))
            committing = writing
            connection.commit()
        except (psycopg.Error, PoolTimeout) as error:
            broken = connection is None or connection.closed
            raise _typed(error, broken=bool(broken), committing=committing) from error
        else:
            return result
        finally:
            if connection is not None:
                self._returned(connection)

    def _returned(self, connection: _Connection) -> None:
        """A connection that broke says that its sisters did too."""
        with suppress(psycopg.Error):  # where it fails the connection is closed, and counts as broken
            connection.rollback()
        broken = connection.closed
        self._pool.putconn(connection)
        if broken:
            self._pool.check()


_LOG = logging.getLogger("psycopg.pool")


def _heard(record: logging.LogRecord) -> bool:
    """What the pool of a store logs goes where the application's logging leads, and to standard error never."""
    own = isinstance(record.args, tuple) and any(arg == _POOL or isinstance(arg, _Connection) for arg in record.args)
    return not own or _LOG.hasHandlers()


def _check(url: str) -> None:
    """Raises ConfigurationError, which quotes nothing, for a URL that libpq would read otherwise than it was meant."""
    try:
        found = conninfo.conninfo_to_dict(url)
        ports = str(found.get("port", "")).split(",")
        usable = "\0" not in url and all(port.isdecimal() or not port for port in ports)
        usable = usable and "@" not in f"{found.get('host', '')}{found.get('dbname', '')}"
    except (psycopg.Error, UnicodeError):
        usable = False
    if not usable:
        raise ConfigurationError(
            "the url is no URL of a PostgreSQL server",
            hint="Write postgresql://user:password@host:port/name, with % and a code for / : @ % in the password",
        ) from None


class _TableExistsError(StoreError):
    pass


def _typed(error: Exception, *, broken: bool, committing: bool) -> StoreError:
    match error:
        case errors.DuplicateTable() | errors.DuplicateObject():
            return _TableExistsError("the table exists", hint="Look again")
        case errors.UniqueViolation() if (error.diag.constraint_name or "").startswith("pg_"):
            return _TableExistsError("the table is being made", hint="Look again")
        case errors.UniqueViolation() if error.diag.table_name == "pollux_like_schema":
            return _TableExistsError("the step was applied", hint="Look again")
        case errors.ReadOnlySqlTransaction() | errors.InsufficientPrivilege():
            return StoreReadOnlyError("the server takes no writes from this user", hint="Look at its rights and role")
        case errors.DiskFull() | errors.OutOfMemory():
            return StoreFullError("the server has no space left", hint="Free some, then try again")
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return StoreDamagedError("the server found its data corrupted", hint="Restore it from a backup")
        case errors.SerializationFailure() | errors.DeadlockDetected():
            return StoreUnavailableError("the server chose this transaction to give way", hint="Try again")
        case psycopg.OperationalError() | psycopg.InterfaceError() | PoolTimeout():
            return StoreUnavailableError(
                "the connection to the server was lost" if broken else "the server is not available",
                hint="Look whether it runs and is reachable, then try again",
                maybe_written=committing,
            )
        case _:
            code = getattr(error, "sqlstate", None) or type(error).__name__
            return StoreError(f"PostgreSQL refused: {code}", hint="Report this, with the version of pollux_like")
