"""SQLite: one connection that writes, a few that read, in WAL mode. `memory:` is one connection for both.

Writers that wait at the same time are committed together: the disk is asked once for all of them.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import anyio.lowlevel

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

BUSY_TIMEOUT_S = 5.0
"""Longest wait for another process that writes, per attempt."""
MOST_TOGETHER = 64
"""Most transactions of one commit, so that another process gets its turn."""
_OLDEST = (3, 35, 0)  # RETURNING


class _Rows:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self, sql: str, *values: object) -> Sequence[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()

    def one(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        rows = self._connection.execute(sql, values).fetchall()  # to its end: RETURNING changes rows only then
        return rows[0] if rows else None

    def run(self, sql: str, *values: object) -> int:
        return self._connection.execute(sql, values).rowcount

    def many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        self._connection.executemany(sql, rows)


@dataclass(slots=True, eq=False)
class _Write:
    """A work function that waits for its turn, and then what came of it."""

    work: Callable[[Transaction], Any]
    result: Any = None
    error: BaseException | None = None
    done: bool = False


class SQLite(Database):
    """A file, or memory where `path` is None.

    `synchronous`: "full" survives the loss of power at every acknowledged write, "normal" survives a killed process and
    may lose the last ones with the power.
    """

    dialect = "sqlite"
    readers = 8

    def __init__(self, path: Path | None, *, synchronous: str, migrate: bool) -> None:
        super().__init__()
        if sqlite3.sqlite_version_info < _OLDEST:
            raise ConfigurationError(
                f"SQLite is of version {sqlite3.sqlite_version}", hint="Use a Python with SQLite 3.35 or newer"
            )
        self._path = path
        self._synchronous = synchronous
        self._migrate = migrate
        self._lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._waiting: deque[_Write] = deque()
        self._turn: anyio.lowlevel.RunVar[anyio.Lock] = anyio.lowlevel.RunVar("pollux_like_store_turn")
        self._readers: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()

    def transact(self, work: Callable[[Transaction], T], *, writing: bool) -> T:
        """Writers queue here; readers see the last commit and wait for nobody."""
        try:
            if writing:
                own = _Write(work)
                self._waiting.append(own)
                self._flush(own)
                return cast("T", _outcome(own))
            if self._path is None:
                with self._lock:
                    return _transacted(self._writing(), work, "BEGIN")
            reader = self._reader()
            try:
                return _transacted(reader, work, "BEGIN")
            finally:
                self._readers.put(reader)
        except sqlite3.Error as error:
            raise _typed(error) from error

    async def _done(self, work: Callable[[Transaction], T], writing: bool) -> T:
        """Of the writers on one event loop, the one whose turn it is commits for all that wait."""
        if not writing:
            return await super()._done(work, writing)
        try:
            turn = self._turn.get()
        except LookupError:
            turn = anyio.Lock()
            self._turn.set(turn)
        own = _Write(work)
        self._waiting.append(own)
        try:
            async with turn:
                if not own.done:
                    await self._in_thread(lambda: self._flush(own), writing)
        finally:
            with suppress(ValueError):  # what found no thread is not written by somebody else later
                self._waiting.remove(own)
        return cast("T", _outcome(own))

    def _flush(self, own: _Write) -> None:
        """Whoever gets the lock commits everything that waits."""
        with self._lock:
            while not own.done:
                _commit(self._writing, self._batch())

    def _batch(self) -> list[_Write]:
        batch: list[_Write] = []
        with suppress(IndexError):  # there are no more; some may have been withdrawn just now
            while len(batch) < MOST_TOGETHER:
                batch.append(self._waiting.popleft())
        return batch

    def _writing(self) -> sqlite3.Connection:
        if self._writer is None:
            self._writer = self._opened()
        return self._writer

    def close(self) -> None:
        """Checkpoint and close."""
        with self._lock:
            while not self._readers.empty():
                self._readers.get_nowait().close()
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def scrubbed(self) -> None:
        """Erased pages are overwritten (secure_delete); older copies leave the log here, if no reader needs it."""
        try:
            with self._lock:
                if self._writer is not None and self._path is not None:
                    self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            raise _typed(error) from error

    def _reader(self) -> sqlite3.Connection:
        try:
            return self._readers.get_nowait()
        except queue.Empty:
            with self._lock:
                self._writing()
            return self._connected()

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            ":memory:" if self._path is None else self._path,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,  # a connection has one user at a time, in whatever thread
            cached_statements=64,
        )
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _opened(self) -> sqlite3.Connection:
        """The writing connection, its file in WAL mode and its tables up to date."""
        connection = self._connected()
        try:
            sql = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'pollux_like_schema'"
            if not self._migrate and not self._is_current(connection, sql):  # refused before the file is changed
                _transacted(connection, lambda tx: self._migrated(tx, sql), "BEGIN")
            if self._path is not None and not _is_wal(connection):
                _into_wal(connection)
            if not self._is_current(connection, sql):
                _transacted(connection, lambda tx: self._migrated(tx, sql), "BEGIN IMMEDIATE")
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_current(self, connection: sqlite3.Connection, sql: str) -> bool:
        """Looked up without a lock: a file that may only be read can be opened."""
        rows = _Rows(connection)
        found = rows.one(sql)
        if not found or not found[0]:
            return False
        steps = rows.one("SELECT MAX(step) FROM pollux_like_schema")
        return steps is not None and steps[0] == len(schema.STEPS)

    def _migrated(self, tx: Transaction, sql: str) -> None:
        found = tx.one(sql)
        schema.migrate(tx, "sqlite", exists=bool(found and found[0]), allowed=self._migrate)


def _is_wal(connection: sqlite3.Connection) -> bool:
    return str(connection.execute("PRAGMA journal_mode").fetchone()[0]) == "wal"


def _into_wal(connection: sqlite3.Connection) -> None:
    """Another process may be at it too: SQLite then answers "locked" at once, without its own timeout."""
    pause = threading.Event()
    for _ in range(100):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
        if _is_wal(connection):
            return
        pause.wait(0.05)
    raise StoreUnavailableError(
        "the store file cannot be brought into WAL mode", hint="Put it on a local disk that no other program has locked"
    )


def _transacted(connection: sqlite3.Connection, work: Callable[[Transaction], T], begin: str) -> T:
    connection.execute(begin)
    try:
        result = work(_Rows(connection))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


def _commit(opened: Callable[[], sqlite3.Connection], batch: list[_Write]) -> None:
    """All of them in one transaction, each behind a savepoint; where SQLite refuses that, each in one of its own."""
    try:
        connection = opened()
        if len(batch) == 1 or not _together(connection, batch):
            for one in batch:
                _settle(one, lambda work: _transacted(connection, work, "BEGIN IMMEDIATE"))
    except BaseException as error:  # noqa: BLE001  the store cannot be opened, or is locked: everybody is told
        for one in batch:
            one.error = error
    for one in batch:
        one.done = True


def _together(connection: sqlite3.Connection, batch: list[_Write]) -> bool:
    """Whether they were committed. Raises where another process keeps the lock."""

    def work(tx: Transaction) -> None:
        for one in batch:
            connection.execute("SAVEPOINT one")
            _settle(one, lambda work: work(tx))
            if isinstance(one.error, sqlite3.Error):
                raise one.error
            if one.error is not None:
                connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")

    try:
        _transacted(connection, work, "BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        if isinstance(_typed(error), StoreUnavailableError):
            raise
        return False
    return True


def _outcome(own: _Write) -> Any:
    if own.error is None:
        return own.result
    raise _typed(own.error) if isinstance(own.error, sqlite3.Error) else own.error


def _settle(one: _Write, run: Callable[[Callable[[Transaction], Any]], Any]) -> None:
    one.error = None
    try:
        one.result = run(one.work)
    except BaseException as error:  # noqa: BLE001  it belongs to whoever brought the work
        one.error = error


def _typed(error: sqlite3.Error) -> StoreError:
    """Nothing was written where SQLite reports an error: it rolls back."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_READONLY:
        return StoreReadOnlyError("the store file takes no writes", hint="Look at its owner, its mode and its folder")
    if code == sqlite3.SQLITE_FULL:
        return StoreFullError("no space is left for the store file", hint="Free some, then try again")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamagedError("the store file is damaged, or no SQLite file", hint="Restore it from a backup")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailableError(
            f"another process has kept the store file locked for {BUSY_TIMEOUT_S:g} s", hint="End it, then try again"
        )
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreError("the store file cannot be opened", hint="Look whether its folder exists and may be used")
    if code == sqlite3.SQLITE_IOERR:
        return StoreError("the disk failed under the store file", hint="Look at the disk, then try again")
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreError(f"SQLite refused: {name}", hint="Report this, with the version of pollux_like")
