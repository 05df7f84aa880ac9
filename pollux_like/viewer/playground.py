"""Another application behind a path of the viewer: opened when it is first wanted, closed with the viewer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack

import anyio
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pollux_like.errors import PolluxLikeError
from pollux_like.viewer.guard import error

Opening = Callable[[], AbstractAsyncContextManager[ASGIApp]]
"""Opens the application. Raises a PolluxLikeError whose hint says what to install."""


class Playground:
    """See `Opening`. A failed opening is tried again the next time."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._lock = anyio.Lock()
        self._stack = AsyncExitStack()
        self._app: ASGIApp | None = None

    async def opened(self) -> ASGIApp:
        """The application. Raises what its opening raises."""
        async with self._lock:
            if self._app is None:
                self._app = await self._stack.enter_async_context(self._opening())
            return self._app

    async def aclose(self) -> None:
        """Close what was opened."""
        async with self._lock:
            self._app = None
            await self._stack.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            app = await self.opened()
        except PolluxLikeError as problem:
            response = JSONResponse(error("playground", problem.message, problem.hint), status_code=503)
            await response(scope, receive, send)
            return
        await app(scope, receive, send)
