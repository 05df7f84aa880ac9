"""What the store asks of a database: a function runs inside one transaction, in a thread, on either event loop.

A work function gets a `Transaction`, may be run again, and holds no state of its own. What is lost before the commit
was not written, and is tried again. A loss inside the commit is tried again only where the work can tell its own
traces: see `write`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Literal, Protocol, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from pollux_like.errors import ConfigurationError, ConflictError, StoreUnavailableError

T = TypeVar("T")

ATTEMPTS = 8
"""Most attempts at one transaction while the database is unreachable: waits of 0.05 s, doubling, about 6 s together,
beside what each attempt takes."""


class Transaction(Protocol):
    """SQL with `?` for values, which stands in no other place of it."""

    def all(self, sql: str, *values: object) -> Sequence[tuple[Any, ...]]:
        """Every row."""
        ...

    def one(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        """The first row, or None."""
        ...

    def run(self, sql: str, *values: object) -> int:
        """The number of rows that were changed."""
        ...

    def many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """One statement for each row of values."""
        ...


async def settled(work: Callable[[anyio.CancelScope], Awaitable[T]]) -> T:
    """Run to the end what a cancellation must not cut: anyio's, trio's, and the native one of asyncio.

    The work runs in a task of its own, in a shielded scope, which it gets; a cancellation goes on when it has ended.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    async def run() -> None:
        with anyio.CancelScope(shield=True) as scope:
            try:
                results.append(await work(scope))
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as error:  # noqa: BLE001  raised below, in the task that asked for the work
                errors.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
    await anyio.lowlevel.checkpoint_if_cancelled()  # a nursery of trio ends without it, where its tasks do
    if errors:
        raise errors[0]
    return results[0]


class Database(ABC):
    """One database. `transact` is blocking; `read` and `write` are its async faces."""

    dialect: Literal["sqlite", "postgresql"]
    writers = 1
    readers = 1
    """Most transactions of this process at one time, of either kind."""

    def __init__(self) -> None:
        self._limits: anyio.lowlevel.RunVar[tuple[anyio.CapacityLimiter, anyio.CapacityLimiter]]
        self._limits = anyio.lowlevel.RunVar("pollux_like_store")
        self._pid = os.getpid()
        self._closed = False

    @abstractmethod
    def transact(self, work: Callable[[Transaction], T], *, writing: bool) -> T:
        """Run the work in one transaction. Raises StoreError for what the database refuses or loses."""

    @abstractmethod
    def close(self) -> None:
        """Close every connection. To be called once."""

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """A consistent view; tried again while the database is unreachable."""
        return await self._attempts(work, writing=False, landed=None, again=True, scope=None)

    async def write(
        self,
        work: Callable[[Transaction], T],
        *,
        landed: Callable[[Transaction], T | None] | None = None,
        again: bool = False,
        known: Callable[[T], None] | None = None,
    ) -> T:
        """All or nothing. After a loss inside the commit the work is run again only with one of these two:

        `landed` reads back, where the work then meets a ConflictError, whether it is its own; `again` says that the
        work gives the same twice.

        A cancellation that falls into a write goes on when it is known whether it was done; `known` gets the result
        before that. Between two attempts, while nothing was written, it goes on at once.
        """

        async def run(scope: anyio.CancelScope) -> T:
            result = await self._attempts(work, writing=True, landed=landed, again=again, scope=scope)
            if known is not None:
                known(result)
            return result

        await anyio.lowlevel.checkpoint_if_cancelled()
        return await settled(run)

    async def _attempts(
        self,
        work: Callable[[Transaction], T],
        *,
        writing: bool,
        landed: Callable[[Transaction], T | None] | None,
        again: bool,
        scope: anyio.CancelScope | None,
    ) -> T:
        uncertain = False
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._done(work, writing)
            except ConflictError:
                found = await self.read(landed) if uncertain and landed is not None else None
                if found is None:
                    raise
                return found
            except StoreUnavailableError as error:
                uncertain = uncertain or error.maybe_written
                if uncertain and landed is None and not again:
                    raise
                if attempt >= ATTEMPTS:
                    error.maybe_written = uncertain
                    raise
            if scope is not None:
                scope.shield = uncertain
            await anyio.sleep(0.05 * 2.0 ** (attempt - 1))
            if scope is not None:
                scope.shield = True

    async def _done(self, work: Callable[[Transaction], T], writing: bool) -> T:
        return await self._in_thread(lambda: self.transact(work, writing=writing), writing)

    async def _in_thread(self, call: Callable[[], T], writing: bool) -> T:
        if self._closed:
            raise ConfigurationError("the store is closed", hint="Open it again")
        if os.getpid() != self._pid:
            raise ConfigurationError(
                "the store was opened before this process was forked", hint="Open the store in each process"
            )
        try:
            limits = self._limits.get()
        except LookupError:
            limits = (anyio.CapacityLimiter(self.readers), anyio.CapacityLimiter(self.writers))
            self._limits.set(limits)
        return await anyio.to_thread.run_sync(call, limiter=limits[writing])

    async def scrub(self) -> None:
        """Called after an erasure: bring it to the disk, as far as the database leaves that to its users."""
        if not self._closed:
            await anyio.to_thread.run_sync(self.scrubbed)

    def scrubbed(self) -> None:
        """The blocking side of `scrub`; nothing where the server does it."""
        return

    async def aclose(self) -> None:
        """Close every connection; again is nothing."""
        if not self._closed and os.getpid() == self._pid:
            self._closed = True
            await anyio.to_thread.run_sync(self.close)
