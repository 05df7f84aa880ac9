"""Calling an author's code: sync in a thread, async on the loop, and both told apart by what comes back."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any

import anyio


class Calling:
    """One limit on threads for all sessions of a server.

    The threads are daemons: code that never ends does not keep the process alive.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._limiter: anyio.CapacityLimiter | None = None
        self._leaving = False

    def opened(self) -> None:
        """The server begins on the running loop."""
        self._limiter = None
        self._leaving = False

    def leave(self) -> None:
        """From now on a cancelled caller does not wait for its thread: the server ends."""
        self._leaving = True

    async def __call__(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """The value of the function, awaited where it is awaitable.

        A thread cannot be stopped: a cancelled caller stays until it has ended, and is cancelled then. Raises what the
        author raises; RuntimeError for exits and cancellations of the author's own, which would end more than the call.
        """
        if not inspect.iscoroutinefunction(function):
            if self._limiter is None:  # belongs to the loop that it is made on
                self._limiter = anyio.CapacityLimiter(self._threads)
            async with self._limiter:
                value = await self._to_the_end(_in_thread(partial(function, *arguments, **named)))
            if not inspect.isawaitable(value):
                return value
        else:
            value = function(*arguments, **named)
        try:
            return await value
        except (SystemExit, KeyboardInterrupt, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            raise _contained(error) from error

    async def _to_the_end(self, thread: asyncio.Future[Any]) -> Any:
        cancelled: asyncio.CancelledError | None = None
        while not thread.done():
            try:
                await asyncio.wait([thread])
            except asyncio.CancelledError as error:
                cancelled = error
                if self._leaving:
                    thread.cancel()
        if cancelled is not None:
            if not thread.cancelled():
                thread.exception()  # seen: nobody else looks at it
            raise cancelled
        return thread.result()


def _contained(error: BaseException) -> Exception:
    """What ends the call and nothing more."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):  # which no future carries
        return error
    contained = RuntimeError(f"{type(error).__name__} was raised")
    contained.__cause__ = error
    return contained


def _in_thread(function: Callable[[], Any]) -> asyncio.Future[Any]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def settle(value: Any, error: Exception | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def work() -> None:
        value, failure = None, None
        try:
            value = context.run(function)
        except BaseException as error:  # noqa: BLE001  # the author's own; it is raised on the loop
            failure = _contained(error)
        with suppress(RuntimeError):  # the loop has closed: nobody waits any more
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=work, name="pollux-like-environment-code", daemon=True).start()
    return future
