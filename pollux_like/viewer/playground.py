"""Another application behind a path of the viewer: opened when it is first wanted, closed with the viewer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
from anyio.abc import TaskGroup, TaskStatus
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pollux_like.errors import ConfigurationError, PolluxLikeError
from pollux_like.viewer.guard import error

Opening = Callable[[], AbstractAsyncContextManager[ASGIApp]]
"""Opens the application. Raises a PolluxLikeError whose hint says what to install."""


class Playground:
    """See `Opening`. A failed opening is tried again the next time."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._lock = anyio.Lock()
        self._ending = anyio.Event()
        self._group: TaskGroup | None = None
        self._app: ASGIApp | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While it may be opened; closes what was."""
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = self._app = None
                self._ending.set()

    async def opened(self) -> ASGIApp:
        """The application. Raises what its opening raises."""
        async with self._lock:
            if self._group is None:
                raise ConfigurationError("the viewer does not run", hint="Run the lifespan of its application")
            app = self._app
            if app is None:
                app = self._app = await self._group.start(self._hold)
            return app

    async def _hold(self, *, task_status: TaskStatus[ASGIApp]) -> None:
        """Open and close it in one task, which what it opens may ask for; a cancellation ends an opening only."""
        with anyio.CancelScope() as scope:
            async with self._opening() as app:
                scope.shield = True
                task_status.started(app)
                await self._ending.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            app = await self.opened()
        except PolluxLikeError as problem:
            response = JSONResponse(error("playground", problem.message, problem.hint), status_code=503)
            await response(scope, receive, send)
            return
        await app(scope, receive, send)
