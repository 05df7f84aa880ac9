"""The same turns for code that is not async: one event loop in a background thread, shared by all callers."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Unpack

from anyio.from_thread import BlockingPortal, start_blocking_portal

from pollux_like import turn as _turn
from pollux_like.config import Config
from pollux_like.environment import Environment
from pollux_like.input import Input
from pollux_like.output import Event, Output
from pollux_like.turn import Arguments


class _Loop:
    """The background loop: started by the first call, stopped at exit, forgotten by a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[AbstractContextManager[BlockingPortal], BlockingPortal] | None = None

    def portal(self) -> BlockingPortal:
        with self._lock:
            if self._running is None:
                manager = start_blocking_portal()
                self._running = (manager, manager.__enter__())
            return self._running[1]

    def stop(self) -> None:
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running[0].__exit__(None, None, None)

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._running = None


_loop = _Loop()
atexit.register(_loop.stop)
if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_loop.forget)


def interact(environment: Environment, input: Input, config: Config, **arguments: Unpack[Arguments]) -> Output:
    """One turn; see `pollux_like.interact`. Also works where an event loop is running already (notebooks)."""

    async def one() -> Output:
        return await _turn.interact(environment, input, config, **arguments)

    return _loop.portal().call(one)


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
        event = _loop.portal().call(self._next)
        if event is None:
            raise StopIteration
        return event

    async def _next(self) -> Event | None:
        async for event in self._events:
            return event
        return None

    def close(self) -> None:
        """Close the connection; the turn does not exist then."""
        _loop.portal().call(self._events.aclose)

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
