"""The same turns for code that is not async: one event loop in a background thread, shared by all callers."""

from __future__ import annotations

import atexit
import concurrent.futures
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from types import TracebackType
from typing import TypeVar, Unpack

import anyio
from anyio.from_thread import BlockingPortal

from pollux_like import counting as _counting
from pollux_like import turn as _turn
from pollux_like.config import Config
from pollux_like.environment import Environment
from pollux_like.input import Input
from pollux_like.output import Event, Output
from pollux_like.settings import Arguments

T = TypeVar("T")


async def _serve(ready: concurrent.futures.Future[BlockingPortal]) -> None:
    async with BlockingPortal() as portal:
        ready.set_result(portal)
        await portal.sleep_until_stopped()


class _Loop:
    """The background loop: started by the first call, stopped at exit, forgotten by a forked child.

    Not `start_blocking_portal`: its context manager stops the loop when it is collected, and a child, in which the
    loop's thread does not exist, would wait for that forever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[threading.Thread, BlockingPortal] | None = None
        self._ending = False

    def _run(self, ready: concurrent.futures.Future[BlockingPortal]) -> None:
        try:
            anyio.run(_serve, ready)
        except RuntimeError:
            # Python 3.12 starts no thread at exit, and asyncio asks for one to end the executor in which it looked up
            # the names of hosts. The loop is closed all the same.
            if not self._ending:
                raise

    def portal(self) -> BlockingPortal:
        with self._lock:
            if self._running is None:
                ready: concurrent.futures.Future[BlockingPortal] = concurrent.futures.Future()
                thread = threading.Thread(target=self._run, args=(ready,), name="pollux_like", daemon=True)
                thread.start()
                self._running = (thread, ready.result())
            return self._running[1]

    def call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run to the end. An interrupt of the waiting thread (Ctrl-C) cancels it, and waits until it has closed."""
        scopes: list[anyio.CancelScope] = []
        ended = threading.Event()

        async def run() -> T:
            try:
                with anyio.CancelScope() as scope:
                    scopes.append(scope)
                    return await function()
                raise AssertionError  # cancelled: nobody asks for the result
            finally:
                ended.set()

        def cancel() -> bool:
            for scope in scopes:
                scope.cancel()
            return bool(scopes)

        portal = self.portal()
        try:
            return portal.start_task_soon(run).result()
        except BaseException:
            # An interrupt may come before `start_task_soon` has returned. Tasks begin in the order in which they were
            # started: one that has not begun when `cancel` runs was never started.
            if not ended.is_set() and portal.call(cancel):
                ended.wait()
            raise

    def stop(self) -> None:
        with self._lock:
            running, self._running = self._running, None
            self._ending = True
        if running is not None:
            thread, portal = running
            portal.call(portal.stop, True)
            thread.join()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._running = None


_loop = _Loop()
atexit.register(_loop.stop)
if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_loop.forget)


def run(function: Callable[[], Awaitable[T]]) -> T:
    """Any coroutine function of this library on the shared loop, to its end; for the sync faces of other rooms."""
    return _loop.call(function)


def interact(environment: Environment, input: Input, config: Config, **arguments: Unpack[Arguments]) -> Output:
    """One turn; see `pollux_like.interact`. Also works where an event loop is running already (notebooks)."""

    async def one() -> Output:
        return await _turn.interact(environment, input, config, **arguments)

    return _loop.call(one)


def count_tokens(environment: Environment, input: Input, config: Config, **arguments: Unpack[Arguments]) -> int:
    """Input tokens of a turn; see `pollux_like.count_tokens`."""

    async def one() -> int:
        return await _counting.count_tokens(environment, input, config, **arguments)

    return _loop.call(one)


def stream(environment: Environment, input: Input, config: Config, **arguments: Unpack[Arguments]) -> Stream:
    """One turn as events; see `pollux_like.stream`. Close it, or leave its `with` block, to stop early."""
    return Stream(_turn.stream(environment, input, config, **arguments))


class Stream:
    """An iterator of events, and a context manager that closes the connection on leaving."""

    def __init__(self, events: _turn.Stream) -> None:
        self._events = events

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = _loop.call(self._next)
        if event is None:
            raise StopIteration
        return event

    async def _next(self) -> Event | None:
        async for event in self._events:
            return event
        return None

    def close(self) -> None:
        """Close the connection; the turn does not exist then."""
        _loop.call(self._events.aclose)

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
