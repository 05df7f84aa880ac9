"""The HTTP face: a Starlette application on an open store, and a program that serves it on loopback.

    app = make_app(store, Access())        # ASGI, for loopback host names only
    await serve(app, host, port, ready)    # until interrupted

Every route reads. Ids and scopes stand in the query, so that any name is one.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import cache
from importlib import resources
from typing import Any

import anyio
import uvicorn
from anyio.abc import TaskGroup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from pollux_like import canonical
from pollux_like.continuation import MAX_TURNS
from pollux_like.errors import ConfigurationError, PolluxLikeError, StoreUnavailableError, UnknownConversationError
from pollux_like.store import ConversationStore, Reader
from pollux_like.store.lifecycle import folded
from pollux_like.viewer import shapes
from pollux_like.viewer.guard import LOOPBACK, Access, Guard, error
from pollux_like.viewer.playground import Opening, Playground

PORT = 8397
LIST = 50
"""Conversations of one page of the list."""
MATCHES = 50
"""Most matches of a search, and of each kind."""
PLACES = 500
"""Most turns that a search in one conversation names."""
TURNS = 100
"""Most turns of one answer."""
USAGES = 5_000
"""Most turns whose usage is one answer."""
SEARCHES = 2
"""Searches at one time: each may read the whole scope."""
DRAIN_S = 2
"""Seconds that answers under way have when the server is ended."""

_KINDS = {
    ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript",
    ".svg": "image/svg+xml",
}  # fmt: skip


@cache
def _files() -> dict[str, tuple[str, str]]:
    """The page: file name to text and media type."""
    folder = resources.files("pollux_like.viewer") / "page"
    return {
        file.name: (file.read_text("utf-8"), _KINDS[file.name[file.name.rindex(".") :]])
        for file in folder.iterdir()
        if file.name.endswith(tuple(_KINDS))
    }


def make_app(
    store: ConversationStore,
    access: Access,
    *,
    scope: str | None = None,
    name: str | None = None,
    playground: Opening | None = None,
) -> Starlette:
    """The application on a store, which stays the caller's to close.

    `scope`: the only one to show; all by default. `name`: what the page calls the store. `playground`: opens the
    application of the playground tab, when that is first looked at.
    """
    api = _Api(store, scope, name or store.database.dialect, None if playground is None else Playground(playground))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with api.playground.running() if api.playground is not None else nullcontext():
            yield

    routes: list[Route | Mount] = [
        Route("/", _file, methods=["GET"]),
        Route("/page/{name}", _file, methods=["GET"]),
        Route("/favicon.ico", _icon, methods=["GET"]),
        *(Route(f"/api/{name}", _answered(read), methods=["GET"]) for name, read in api.routes().items()),
    ]
    if api.playground is not None:
        routes.append(Mount("/playground", app=api.playground))
    handlers: dict[Any, Any] = {
        HTTPException: _unrouted, PolluxLikeError: _problem,
    }  # fmt: skip
    return Starlette(
        routes=routes, lifespan=lifespan, exception_handlers=handlers,
        middleware=[Middleware(Guard, access=access, open="/playground")],
    )  # fmt: skip


async def _file(http: Request) -> Response:
    return _sent(http.path_params.get("name", "index.html"))


async def _icon(_: Request) -> Response:
    """What a browser asks of its own accord for a page that names no icon, such as that of the playground."""
    return _sent("icon.svg")


def _sent(name: str) -> Response:
    found = _files().get(name)
    if found is None:
        raise HTTPException(404)
    return Response(found[0], headers={"content-type": found[1]})


def _answered(read: Callable[[Request], Awaitable[dict[str, Any]]]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(http: Request) -> Response:
        """Whoever goes away takes the read along."""
        problem: PolluxLikeError | None = None
        response = Response(status_code=499)

        async def watch(group: TaskGroup) -> None:
            while (await http.receive())["type"] != "http.disconnect":
                continue
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(watch, group)
            try:
                response = Response(canonical.dumps(await read(http)), media_type="application/json")
            except PolluxLikeError as refusal:
                problem = refusal  # raised below, where it is in no group
            group.cancel_scope.cancel()
        if problem is not None:
            raise problem
        return response

    return endpoint


async def _unrouted(_: Request, problem: HTTPException) -> Response:
    code = {404: "not_found", 405: "method_not_allowed"}.get(problem.status_code, "refused")
    said = error(code, "the viewer has no such page", "Begin at /")
    return JSONResponse(said, status_code=problem.status_code, headers=problem.headers)


async def _problem(_: Request, problem: PolluxLikeError) -> Response:
    match problem:
        case UnknownConversationError():
            status, code = 404, "unknown_conversation"
        case ConfigurationError():
            status, code = 400, "invalid_request"
        case StoreUnavailableError():
            status, code = 503, "unavailable"
        case _:
            status, code = 500, "store"
    return JSONResponse(error(code, problem.message, problem.hint), status_code=status)


class _Api:
    """The reads by name; each takes a request and gives JSON values."""

    def __init__(self, store: ConversationStore, scope: str | None, name: str, playground: Playground | None) -> None:
        self._store, self._scope, self._name, self.playground = store, scope, name, playground
        self._reader = Reader(store)
        self._searching = anyio.CapacityLimiter(SEARCHES)

    def routes(self) -> dict[str, Callable[[Request], Awaitable[dict[str, Any]]]]:
        return {
            "store": self.store, "conversations": self.conversations, "search": self.search,
            "conversation": self.conversation, "turns": self.turns, "usage": self.usage, "find": self.find,
            "tree": self.tree, "playground": self.playing,
        }  # fmt: skip

    async def store(self, _: Request) -> dict[str, Any]:
        if self._scope is None:
            scopes = [{"name": name, "conversations": count} for name, count in await self._reader.scopes()]
        else:
            scopes = [{"name": self._scope, "conversations": None}]
        sealed = self._store.policy.sealer is not None
        return {"name": self._name, "scopes": scopes, "sealed": sealed, "playground": self.playground is not None}

    async def conversations(self, http: Request) -> dict[str, Any]:
        before = _whole(http, "before", 2**63 - 1)
        found = await self._store.list(scope=self._of(http), limit=LIST + 1, before=before)
        return {
            "conversations": [shapes.listed(one) for one in found[:LIST]],
            "before": found[LIST - 1].number if len(found) > LIST else None,
        }

    async def search(self, http: Request) -> dict[str, Any]:
        """Conversations whose id or title holds the words, and messages; the latter not in a sealed store."""
        scope, words = self._of(http), _text(http, "words")
        async with self._searching:
            named = await self._reader.named(words, scope=scope, limit=MATCHES + 1)
            problem = None
            try:
                said = await self._store.search(words, scope=scope, limit=MATCHES + 1)
            except ConfigurationError as refusal:
                said, problem = (), {"message": refusal.message, "hint": refusal.hint}
        start = folded(words)
        return {
            "conversations": [shapes.listed(one) for one in named[:MATCHES]],
            "messages": [
                {"id": one.id, "seq": one.seq, "role": one.role,
                 **shapes.excerpt(one.text, folded(one.text).find(start), len(words))}
                for one in said[:MATCHES]
            ],
            "more": len(named) > MATCHES or len(said) > MATCHES,
            "problem": problem,
        }  # fmt: skip

    async def conversation(self, http: Request) -> dict[str, Any]:
        return shapes.overview(await self._reader.overview(_text(http, "id"), scope=self._of(http)))

    async def turns(self, http: Request) -> dict[str, Any]:
        """`whole=1`: texts are not cut."""
        first, last = self._span(http, TURNS)
        page = await self._reader.page(_text(http, "id"), scope=self._of(http), first=first, last=last)
        return shapes.page(page, whole=http.query_params.get("whole") == "1")

    async def usage(self, http: Request) -> dict[str, Any]:
        first, last = self._span(http, USAGES)
        summary, found = await self._reader.usage(_text(http, "id"), scope=self._of(http), first=first, last=last)
        return shapes.usages(summary, first, found)

    async def find(self, http: Request) -> dict[str, Any]:
        scope, name, words = self._of(http), _text(http, "id"), _text(http, "words")
        async with self._searching:
            summary, found = await self._reader.find(name, words, scope=scope, limit=PLACES + 1)
        places = [shapes.place(one, words) for one in found[:PLACES]]
        return {"version": shapes.version(summary), "places": places, "more": len(found) > PLACES}

    async def tree(self, http: Request) -> dict[str, Any]:
        return shapes.branches(await self._reader.tree(_text(http, "id"), scope=self._of(http)))

    async def playing(self, _: Request) -> dict[str, Any]:
        """Whether the playground can be used; opens it."""
        if self.playground is None:
            raise ConfigurationError(
                "the viewer was started without a playground", hint="Start it again without --no-playground"
            )
        await self.playground.opened()
        return {"path": "/playground/"}

    def _of(self, http: Request) -> str:
        given = http.query_params.get("scope", self._scope)
        if given is None or self._scope not in (None, given):
            raise ConfigurationError("the scope is not one that is shown", hint="Give one that GET /api/store names")
        return given

    def _span(self, http: Request, most: int) -> tuple[int, int]:
        first = _whole(http, "first", MAX_TURNS)
        first = 1 if first is None else first
        last = _whole(http, "last", MAX_TURNS)
        last = min(MAX_TURNS, first + most - 1) if last is None else last
        if last >= first + most:
            raise ConfigurationError(f"{last - first + 1:,} turns are asked for", hint=f"The most is {most:,}")
        return first, last


def _text(http: Request, name: str) -> str:
    given = http.query_params.get(name)
    if given is None:
        raise ConfigurationError(f"{name} is missing", hint=f"Give {name} in the query")
    return given


def _whole(http: Request, name: str, most: int) -> int | None:
    given = http.query_params.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) < 20 and int(given) <= most):
        raise ConfigurationError(f"{name} is no whole number up to {most:,}", hint="Write it in digits")
    return int(given)


async def serve(
    app: Starlette, host: str = "127.0.0.1", port: int = PORT, ready: Callable[[int], None] | None = None
) -> None:
    """Serve until interrupted. 0 takes any free port; `ready` is told which.

    Raises ConfigurationError for an address that is no loopback, or cannot be had.
    """
    with _bound(host, port) as listening:
        async with app.router.lifespan_context(app):
            if ready is not None:
                ready(int(listening.getsockname()[1]))
            config = uvicorn.Config(
                app, lifespan="off", log_level="warning", access_log=False, server_header=False, ws="none",
                http="h11", timeout_graceful_shutdown=DRAIN_S,  # h11 bounds the head of a request, to 64 kB
            )  # fmt: skip
            await uvicorn.Server(config).serve(sockets=[listening])


def _bound(host: str, port: int) -> socket.socket:
    if host not in LOOPBACK:
        raise ConfigurationError(
            "the viewer listens on loopback only",
            hint="Reach it from elsewhere through a tunnel: ssh -L 8397:127.0.0.1:8397",
        )
    if not 0 <= port <= 65535:
        raise ConfigurationError(f"port {port} cannot be listened on", hint="Use one up to 65535; 0 takes any free one")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, so that asyncio sets TCP_NODELAY
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except OSError as problem:
        listening.close()
        why = (problem.strerror or "no such address").strip()
        raise ConfigurationError(f"port {port} of {host} cannot be had ({why})", hint="Choose another --port") from None
    return listening
