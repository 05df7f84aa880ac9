"""Server: environments over HTTP, as an ASGI application and as a program."""

from __future__ import annotations

import hmac
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.metadata import version
from types import TracebackType
from typing import Final, Self

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pollux_like import checks
from pollux_like.environments.authoring import Environment
from pollux_like.environments.calling import Calling
from pollux_like.environments.limits import Limits
from pollux_like.environments.problems import Showing
from pollux_like.environments.registry import Sessions
from pollux_like.environments.routes import Routes
from pollux_like.environments.serving import Serving
from pollux_like.environments.tasks import Hosted
from pollux_like.errors import ConfigurationError

STOP_S: Final = 5.0
"""Seconds that `stop` waits beyond `drain_s`."""


async def _unrouted(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    return JSONResponse({"detail": HTTPStatus(status).phrase}, status, headers)


class Server:
    """Serves environment classes by the protocol of OpenReward 0.1.167; the first one is the default.

        Server([DialogueEnv]).run()                      # 127.0.0.1:8080 until interrupted
        with Server([DialogueEnv]) as server: ...        # in a thread, on any free port: server.base_url
        Mount("/envs", app=Server([DialogueEnv]))        # inside another application, on asyncio

    `token`: requests need it, as `Authorization: Bearer` or `X-API-Key`. `errors`: how much of an author's exception
    clients see - "none", "message" (class and text) or "traceback". Raises ConfigurationError for a class without a
    prompt, tools that cannot be called, and names that differ by case only.
    """

    def __init__(
        self,
        environments: Sequence[type[Environment]],
        *,
        token: str | None = None,
        limits: Limits | None = None,
        errors: Showing = "message",
    ) -> None:
        self._limits = limits or Limits()
        checks.one_of(errors, "errors", ("none", "message", "traceback"))
        self._token = None if token is None else checks.key(token, "token").encode()
        self._calling = Calling(self._limits.threads)
        given = checks.sequence(environments, "environments", object)
        hosted = [Hosted(one, self._calling) for one in given]
        if not hosted:
            raise ConfigurationError("the server has no environments", hint="Give it at least one class")
        keys = [one.key for one in hosted]
        if len(set(keys)) != len(keys):
            raise ConfigurationError(f"two environments have one name: {', '.join(sorted(keys))}", hint="Rename one")
        self._sessions = Sessions(self._limits, self._calling, errors)
        routes = Routes(hosted, self._sessions, self._limits, version("pollux-like"), errors)
        self._app: ASGIApp = Starlette(
            routes=routes.all(), lifespan=self._lifespan, exception_handlers={HTTPException: _unrouted}
        )
        self._serving: Serving | None = None
        self._host = "127.0.0.1"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One ASGI request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise ConfigurationError(f"the server got a connection of type {scope['type']}", hint="Route HTTP to it")
        request = Request(scope, receive)
        if not self._admitted(request):
            denied = JSONResponse({"detail": "A valid token is needed."}, 401, {"WWW-Authenticate": "Bearer"})
            await denied(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _admitted(self, request: Request) -> bool:
        if self._token is None or request.url.path.endswith("/health"):
            return True
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        given = bearer if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
        return hmac.compare_digest(given.encode(), self._token)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None, None]:
        self._calling.opened()
        yield
        await self.aclose()
        self._calling.leave()

    async def aclose(self) -> None:
        """Tear down every session. A host application calls it in its own shutdown; `run` does it by itself."""
        await self._sessions.close()

    @property
    def open_sessions(self) -> int:
        """How many sessions are open."""
        return len(self._sessions)

    def run(self, host: str = "127.0.0.1", port: int = 8080, *, ready: Callable[[int], None] | None = None) -> None:
        """Serve until interrupted. Another host than loopback is reachable for others: give a token then.

        `ready` is called with the port when it is listened on; without it, the address is printed. Raises
        ConfigurationError where the address cannot be had.
        """
        serving = Serving(self, host, port)
        if ready is None:
            print(f"Serving on http://{host}:{serving.port}", flush=True)
        else:
            ready(serving.port)
        serving.run()

    def start(self, port: int = 0) -> Self:
        """Serve on loopback in a thread; 0 takes any free port. Raises ConfigurationError where it cannot be had."""
        if self._serving is not None:
            raise ConfigurationError("the server is running already", hint="Call stop first")
        serving = Serving(self, self._host, port)
        serving.start()
        self._serving = serving
        return self

    def stop(self) -> None:
        """End what `start` began. Code that does not end is left behind after `drain_s`, with a warning in the log."""
        if self._serving is not None:
            serving, self._serving = self._serving, None
            serving.stop(self._limits.drain_s + STOP_S)

    @property
    def base_url(self) -> str:
        """The address after `start`."""
        if self._serving is None:
            raise ConfigurationError("the server is not running", hint="Enter it with `with`, or call start")
        return f"http://{self._host}:{self._serving.port}"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()
