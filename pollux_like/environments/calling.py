"""Calling an author's code: sync in a thread, async on the loop, and both told apart by what comes back."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from anyio import to_thread


class Calling:
    """One limit on threads for all sessions of a server."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._limiter: anyio.CapacityLimiter | None = None

    async def __call__(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """The value of the function, awaited where it is awaitable.

        A thread cannot be stopped: a cancelled caller stays until it has ended, and is cancelled then.
        """
        if inspect.iscoroutinefunction(function):
            return await function(*arguments, **named)
        if self._limiter is None:  # belongs to the loop that it is made on
            self._limiter = anyio.CapacityLimiter(self._threads)
        work = to_thread.run_sync(partial(function, *arguments, **named), limiter=self._limiter)
        value = await _to_the_end(asyncio.ensure_future(work))
        return await value if inspect.isawaitable(value) else value


async def _to_the_end(thread: asyncio.Future[Any]) -> Any:
    cancelled: asyncio.CancelledError | None = None
    while not thread.done():
        try:
            await asyncio.wait([thread])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        thread.exception()  # seen: nobody else looks at it
        raise cancelled
    return thread.result()
