"""The order of tool calls within one session: shared, one by one, or alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pollux_like.environments.toolbox import Tool


class Gate:
    """Calls of one tool follow each other, different tools overlap, exclusive ones run alone.

    A waiting exclusive call goes before newcomers, so that a stream of others cannot starve it.
    """

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._inside = 0
        self._alone = False
        self._waiting = 0
        self._locks: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def entered(self, tool: Tool) -> AsyncGenerator[None, None]:
        """Hold the place of one call of the tool."""
        if tool.exclusive:
            async with self._exclusive():
                yield
        elif tool.traits.concurrent:
            async with self._shared():
                yield
        else:
            async with self._locks.setdefault(tool.name, asyncio.Lock()), self._shared():
                yield

    @asynccontextmanager
    async def _shared(self) -> AsyncGenerator[None, None]:
        async with self._changed:
            await self._changed.wait_for(lambda: not self._alone and not self._waiting)
            self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            await self._notify()

    @asynccontextmanager
    async def _exclusive(self) -> AsyncGenerator[None, None]:
        async with self._changed:
            self._waiting += 1
            try:
                await self._changed.wait_for(lambda: not self._alone and not self._inside)
                self._alone = True
            finally:
                self._waiting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            self._alone = False
            await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
