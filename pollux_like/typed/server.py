"""The HTTP face: a Starlette application, mountable, and a program that serves it.

    app = make_app(engine)                 # ASGI; every route is relative to where it is mounted
    serve(app, host, port)                 # until interrupted

A client that goes away cancels its own request, which frees the engine.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import math
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from functools import cache
from importlib import resources
from typing import Any

import anyio

from pollux_like.canonical import dumps
from pollux_like.engine import Engine
from pollux_like.errors import ConfigurationError, PolluxLikeError, missing_extra
from pollux_like.typed.calls import Calls
from pollux_like.typed.fields import Calibrates
from pollux_like.typed.openapi import document
from pollux_like.typed.run import Request
from pollux_like.typed.service import Limits, Refused, Service, error, refused

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect
    from starlette.requests import Request as HTTPRequest
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route
    from starlette.types import Receive, Scope, Send
except ModuleNotFoundError as missing:
    raise missing_extra("typed", missing) from None

Events = AsyncGenerator[tuple[str, dict[str, Any]], None]

_log = logging.getLogger("pollux_like.typed")


@cache
def _page() -> tuple[str, dict[str, str]]:
    """The playground and its headers: its own script and style run, and nothing else that came to stand in it."""
    page = (resources.files("pollux_like.typed") / "playground.html").read_text("utf-8")
    hashes = {tag: _hash_of(page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]) for tag in ("script", "style")}
    policy = (
        f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "content-security-policy": policy, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
    }  # fmt: skip
    return page, headers


def _hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def make_app(
    engine: Engine | Callable[[], Awaitable[Engine]],
    *,
    calls: Calls | None = None,
    calibrator: Calibrates | None = None,
    limits: Limits | None = None,
) -> Starlette:
    """The application on an engine, or on a function that opens one when the application starts.

    An engine that it opened itself is closed with it; that needs the lifespan of the application, which a parent that
    mounts it has to run.
    """
    state: list[Service] = []

    def made(opened: Engine) -> Service:
        return Service(opened, calls or Calls(), calibrator, limits or Limits())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        if not callable(engine):
            yield
            return
        opened = await engine()
        state.append(made(opened))
        try:
            yield
        finally:
            state.clear()
            await opened.aclose()

    if not callable(engine):
        state.append(made(engine))

    def service() -> Service:
        if not state:
            raise Refused(503, error("starting", "the engine is not open", "Run the lifespan of the application"), 2)
        return state[0]

    def route(read: str, events: str, *, streamed: bool) -> Callable[[HTTPRequest], Awaitable[Response]]:
        async def endpoint(http: HTTPRequest) -> Response:
            at = service()
            _own(http)
            request: Request = getattr(at, read)(await _raw(http, at.limits.max_body_bytes))
            return _Answer(getattr(at, events)(request), at.limits.max_request_s, streamed=streamed)

        return _guarded(endpoint)

    async def models(_: HTTPRequest) -> Response:
        return JSONResponse(service().models())

    async def health(_: HTTPRequest) -> Response:
        at = service()
        return JSONResponse(
            {"status": "ok", "model": at.engine.info.model, "running": at.running, "waiting": at.waiting}
        )

    async def openapi(_: HTTPRequest) -> Response:
        return JSONResponse(document())

    async def playground(_: HTTPRequest) -> Response:
        page, headers = _page()
        return HTMLResponse(page, headers=headers)

    routes = [
        Route("/v1/typed", route("typed", "typed_events", streamed=False), methods=["POST"]),
        Route("/v1/typed/stream", route("typed", "typed_events", streamed=True), methods=["POST"]),
        Route("/v1/generate", route("generate", "generate_events", streamed=False), methods=["POST"]),
        Route("/v1/generate/stream", route("generate", "generate_events", streamed=True), methods=["POST"]),
        Route("/v1/models", _guarded(models), methods=["GET"]),
        Route("/health", _guarded(health), methods=["GET"]),
        Route("/openapi.json", openapi, methods=["GET"]),
        Route("/", playground, methods=["GET"]),
    ]
    handlers: dict[Any, Any] = {HTTPException: _unrouted, Exception: _crashed}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)


async def _unrouted(_: HTTPRequest, problem: HTTPException) -> Response:
    code = {404: "not_found", 405: "method_not_allowed"}.get(problem.status_code, "refused")
    said = error(code, str(problem.detail), "See GET /openapi.json")
    return JSONResponse({"error": said}, status_code=problem.status_code, headers=problem.headers)


async def _crashed(_: HTTPRequest, __: Exception) -> Response:
    return _refusal(_internal())


def _internal() -> Refused:
    return Refused(500, error("internal", "the service failed", "Its log says why"))


def _own(http: HTTPRequest) -> None:
    """Refuse what a page of another site can have a browser send without asking: anything but JSON."""
    kind = http.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and http.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        hint = "Send it as application/json, from an origin that the service allows"
        raise Refused(415, error("foreign_page", "a page of another site sent no JSON", hint))


def _guarded(endpoint: Callable[[HTTPRequest], Awaitable[Response]]) -> Callable[[HTTPRequest], Awaitable[Response]]:
    async def answered(http: HTTPRequest) -> Response:
        try:
            return await endpoint(http)
        except Refused as problem:
            return _refusal(problem)
        except ClientDisconnect:
            return Response(status_code=499)

    return answered


def _refusal(problem: Refused) -> Response:
    headers = {} if problem.retry_after is None else {"retry-after": str(problem.retry_after)}
    return JSONResponse({"error": problem.error}, status_code=problem.status, headers=headers)


async def _raw(http: HTTPRequest, most: int) -> bytes:
    body = bytearray()
    async for chunk in http.stream():
        body += chunk
        if len(body) > most:
            raise Refused(413, error("body_too_large", f"the body has more than {most:,} bytes", "Send less"))
    return bytes(body)


class _Answer(Response):
    """Events of a request: streamed as they come, or the last one as JSON. Watches the client while it works."""

    def __init__(self, events: Events, most_s: float, *, streamed: bool) -> None:
        super().__init__(None)
        self._events, self._most_s, self._streamed = events, most_s, streamed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, receive, group.cancel_scope)
            if self._streamed:
                await self._stream(send)
            else:
                response = await self._whole()
                await response(scope, receive, send)
            group.cancel_scope.cancel()

    async def _watch(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            continue
        scope.cancel()

    async def _worked(self, take: Callable[[str, dict[str, Any]], None]) -> Refused | None:
        """Go through the events, without waiting for the client; the problem that ended them, if one did."""
        try:
            with anyio.fail_after(self._most_s):
                async with aclosing(self._events) as events:
                    async for name, data in events:
                        take(name, data)
        except Refused as problem:
            return problem
        except PolluxLikeError as problem:
            return refused(problem)
        except TimeoutError:
            return self._late()
        except Exception as problem:  # noqa: BLE001  # a fault of the engine or of ours: the client is told that there is one
            _log.exception("a request failed: %s", type(problem).__name__)
            return _internal()
        return None

    async def _whole(self) -> Response:
        found: list[dict[str, Any]] = []
        problem = await self._worked(lambda _, data: found.append(data))
        return Response(dumps(found[-1]), media_type="application/json") if problem is None else _refusal(problem)

    async def _stream(self, send: Send) -> None:
        """A client that reads slowly holds its own events, and never the engine."""
        started = False
        problems: list[Refused | None] = []
        put, get = anyio.create_memory_object_stream[str](math.inf)

        async def work() -> None:
            with put:
                problems.append(
                    await self._worked(lambda name, data: put.send_nowait(f"event: {name}\ndata: {dumps(data)}\n\n"))
                )

        async with anyio.create_task_group() as group:
            group.start_soon(work)
            with get:
                async for text in get:
                    if not started:
                        await send(_head(200, b"text/event-stream; charset=utf-8", None))
                        started = True
                    await send(_body(text))
        problem = problems[0]
        if problem is not None and not started:
            await send(_head(problem.status, b"application/json", problem.retry_after))
            await send(_body(dumps({"error": problem.error}), more=False))
            return
        last = "" if problem is None else f"event: error\ndata: {dumps({'error': problem.error})}\n\n"
        await send(_body(last, more=False))

    def _late(self) -> Refused:
        message = f"the request took more than {self._most_s:g} s"
        return Refused(503, error("timeout", message, "Ask for fewer fields, or send a shorter conversation"), 2)


def _head(status: int, kind: bytes, retry_after: int | None) -> dict[str, Any]:
    headers = [(b"content-type", kind), (b"cache-control", b"no-store")]
    if retry_after is not None:
        headers.append((b"retry-after", str(retry_after).encode()))
    return {"type": "http.response.start", "status": status, "headers": headers}


def _body(text: str, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": text.encode(), "more_body": more}


def serve(
    app: Starlette, host: str = "127.0.0.1", port: int = 8398, ready: Callable[[int], None] | None = None
) -> None:
    """Serve until interrupted; 0 takes any free port. `ready` is called with the port when the engine is open.

    Raises ConfigurationError for an address that cannot be had, and what the opening of the engine raises.
    """
    listening = _bound(host, port)

    async def run() -> None:
        async with app.router.lifespan_context(app):
            if ready is not None:
                ready(listening.getsockname()[1])
            config = uvicorn.Config(app, lifespan="off", log_level="warning", access_log=False, server_header=False)
            await uvicorn.Server(config).serve(sockets=[listening])

    with listening:
        anyio.run(run)


def _bound(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise ConfigurationError(
            f"port {port} cannot be listened on", hint="Use a port up to 65535; 0 takes any free one"
        )
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, UnicodeError) as error:
        said = error.strerror if isinstance(error, OSError) else None
        why = said.splitlines()[0].strip() if said else "no such address"
        raise ConfigurationError(
            f"port {port} of {host} cannot be listened on ({why})", hint="Choose another --port or --host"
        ) from None
