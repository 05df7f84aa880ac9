"""The HTTP face: a Starlette application, mountable, and a program that serves it.

    app = make_app(engine)                 # ASGI; every route is relative to where it is mounted
    serve(host, port, open_engine=…)       # until interrupted

A client that goes away cancels its own request, which frees the engine.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from importlib import resources
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HTTPRequest
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pollux_like.canonical import dumps
from pollux_like.engine import Engine
from pollux_like.errors import PolluxLikeError
from pollux_like.typed.calls import Calls
from pollux_like.typed.fields import Calibrates
from pollux_like.typed.openapi import document
from pollux_like.typed.run import Request
from pollux_like.typed.service import Limits, Refused, Service, error, refused

Events = AsyncGenerator[tuple[str, dict[str, Any]], None]

_PAGE_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


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
        page = (resources.files("pollux_like.typed") / "playground.html").read_text("utf-8")
        return HTMLResponse(page, headers=_PAGE_HEADERS)

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
    return Starlette(routes=routes, lifespan=lifespan)


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

    async def _whole(self) -> Response:
        last: dict[str, Any] = {}
        try:
            with anyio.fail_after(self._most_s):
                async with aclosing(self._events) as events:
                    async for _, last in events:  # noqa: B007  # the last one is the answer
                        pass
        except Refused as problem:
            return _refusal(problem)
        except PolluxLikeError as problem:
            return _refusal(refused(problem))
        except TimeoutError:
            return _refusal(self._late())
        return Response(dumps(last), media_type="application/json")

    async def _stream(self, send: Send) -> None:
        started = False
        problem: Refused | None = None
        try:
            with anyio.fail_after(self._most_s):
                async with aclosing(self._events) as events:
                    async for name, data in events:
                        if not started:
                            await send(_head(200, b"text/event-stream; charset=utf-8", None))
                            started = True
                        await send(_body(f"event: {name}\ndata: {dumps(data)}\n\n"))
        except Refused as found:
            problem = found
        except PolluxLikeError as found:
            problem = refused(found)
        except TimeoutError:
            problem = self._late()
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


def serve(app: Starlette, host: str = "127.0.0.1", port: int = 8398) -> None:
    """Serve until interrupted."""
    import uvicorn

    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False, server_header=False)
