"""The open sessions of a server: made once per id and request, found by id, deleted when idle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pollux_like.environments.calling import Calling
from pollux_like.environments.limits import Limits
from pollux_like.environments.problems import Problem, Showing
from pollux_like.environments.sessions import Session
from pollux_like.environments.tasks import Hosted

SWEEP_S = 5.0
"""Seconds between two looks for idle sessions, at most."""


class Sessions:
    """All sessions; used on one event loop."""

    def __init__(self, limits: Limits, calling: Calling, showing: Showing) -> None:
        self._limits = limits
        self._calling = calling
        self._showing: Showing = showing
        self._open: dict[str, Session] = {}
        self._sweeper: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    async def create(
        self, sid: str, hosted: Hosted, request: str, task: Callable[[], Awaitable[Any]], secrets: Mapping[str, str]
    ) -> None:
        """Make a session. The same request again finds the same session, so that a lost reply can be asked for.

        Raises Problem 400 where the id belongs to another request, 429 above the limit, and what the author raises.
        """
        session = self._open.get(sid)
        if session is not None and session.request != request:
            raise Problem(400, "The session exists already, with another task.")
        if session is None:
            if len(self._open) >= self._limits.sessions:
                raise Problem(429, f"The server has {len(self._open)} sessions open.", {"Retry-After": "2"})
            session = self._open[sid] = Session(hosted, request, self._limits, self._calling, self._showing)
            if self._sweeper is None or self._sweeper.done():
                self._sweeper = asyncio.create_task(self._sweep())
        try:
            await session.born(task, secrets)
        finally:
            if session.stillborn and self._open.get(sid) is session:
                del self._open[sid]

    def find(self, sid: str) -> Session:
        """The session of an id, and it is not idle any more. Raises Problem 404."""
        session = self._open.get(sid)
        if session is None:
            raise Problem(404, "Active environment not found.")
        session.touched = time.monotonic()
        return session

    async def delete(self, sid: str) -> None:
        """Close and forget; an unknown id is no error. The id can be used again at once."""
        session = self._open.pop(sid, None)
        if session is not None:
            await session.close()

    async def close(self) -> None:
        """Close all."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        sessions, self._open = list(self._open.values()), {}
        await asyncio.gather(*(session.close() for session in sessions))

    async def _sweep(self) -> None:
        """Delete idle sessions; ends with the last session, so that nothing is left of a server that nobody uses."""
        while self._open:
            await asyncio.sleep(min(SWEEP_S, self._limits.idle_s / 2))
            idle = self._idle()
            await asyncio.gather(*(self.delete(sid) for sid in idle))

    def _idle(self) -> list[str]:
        """The ids of idle sessions; old results of the others are dropped on the way."""
        for session in self._open.values():
            session.runs.forget()
        return [sid for sid, session in self._open.items() if session.idle_s > self._limits.idle_s]
