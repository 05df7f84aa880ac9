"""The routes of the protocol: what is read from a request, which room answers, and with which status."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pollux_like import canonical, checks
from pollux_like.conversation import Content, Message
from pollux_like.environments import bodies, openapi
from pollux_like.environments.limits import Limits
from pollux_like.environments.problems import Problem, Showing, shown
from pollux_like.environments.registry import Sessions
from pollux_like.environments.runs import Run
from pollux_like.environments.sse import stream, written
from pollux_like.environments.tasks import Hosted
from pollux_like.environments.toolbox import document

log = logging.getLogger("pollux_like.environments")

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_PROMPT: TypeAdapter[list[Any]] = TypeAdapter(list[Content])
_MESSAGES: TypeAdapter[list[Message]] = TypeAdapter(list[Message])


class Routes:
    """The endpoints over the hosted classes (the first is the default) and the open sessions."""

    def __init__(
        self, hosted: Sequence[Hosted], sessions: Sessions, limits: Limits, version: str, showing: Showing
    ) -> None:
        self._hosted = {one.key: one for one in hosted}
        self._default = hosted[0]
        self._sessions = sessions
        self._limits = limits
        self._version = version
        self._showing: Showing = showing

    def all(self) -> list[Route]:
        """Every route; those of an environment also without its name, for the default one."""
        root: list[tuple[str, str, Endpoint]] = [
            ("GET", "/health", self.health), ("GET", "/version", self.version),
            ("GET", "/list_environments", self.list_environments), ("GET", "/openapi.json", self.openapi),
            ("POST", "/create_session", self.create_session), ("POST", "/delete_session", self.delete_session),
            ("POST", "/create", self.create), ("POST", "/delete", self.delete), ("POST", "/ping", self.ping),
        ]  # fmt: skip
        own: list[tuple[str, str, Endpoint]] = [
            ("GET", "/splits", self.splits), ("POST", "/tasks", self.tasks), ("POST", "/num_tasks", self.num_tasks),
            ("POST", "/task", self.task), ("POST", "/task_range", self.task_range), ("GET", "/tools", self.tools),
            ("GET", "/task_tools", self.task_tools), ("POST", "/call", self.call), ("GET", "/prompt", self.prompt),
            ("GET", "/messages", self.messages), ("POST", "/score_group", self.score_group),
        ]  # fmt: skip
        named = [(method, f"/{{env}}{path}", endpoint) for method, path, endpoint in own]
        return [self._route(*one) for one in (*root, *own, *named)]

    def _route(self, method: str, path: str, endpoint: Endpoint) -> Route:
        """Starlette answers HEAD wherever GET is; the protocol says 405."""
        route = Route(path, self._guarded(endpoint), methods=[method])
        route.methods = {method}
        return route

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        async def guarded(request: Request) -> Response:
            try:
                return await endpoint(request)
            except Problem as problem:
                return JSONResponse({"detail": problem.detail}, problem.status, problem.headers)
            except Exception as error:  # the author's code, or ours
                log.exception("%s failed", request.url.path)
                return JSONResponse({"detail": shown(error, self._showing)}, 500)

        return guarded

    def _env(self, request: Request) -> Hosted:
        name: str | None = request.path_params.get("env")
        return self._default if name is None else self._named(name)

    def _named(self, name: str) -> Hosted:
        found = self._hosted.get(name.lower())
        if found is None:
            raise Problem(404, f"There is no such environment. Known: {', '.join(self._hosted)}.")
        return found

    async def health(self, request: Request) -> Response:
        """Alive."""
        return JSONResponse({"status": "ok"})

    async def version(self, request: Request) -> Response:
        """Of this library."""
        return JSONResponse({"version": self._version, "build_sha": None})

    async def list_environments(self, request: Request) -> Response:
        """The names, the default first."""
        return JSONResponse(list(self._hosted))

    async def openapi(self, request: Request) -> Response:
        """This list as a document."""
        return JSONResponse(openapi.document(self._version, list(self._hosted)))

    async def create_session(self, request: Request) -> Response:
        """Hands out an id; nothing is made."""
        await self._maybe_empty(request)
        text = written("task_id", uuid.uuid4().hex) + written("end", "")
        return Response(text, media_type="text/event-stream")

    async def _maybe_empty(self, request: Request) -> None:
        body = await bodies.raw(request, self._limits)
        if body.strip():
            bodies.check(bodies.Empty, body)

    async def delete_session(self, request: Request) -> Response:
        """Nothing to release here."""
        return JSONResponse({"sid": bodies.session_id(request)})

    async def create(self, request: Request) -> Response:
        """Instantiate an environment for a task. The same request again is answered alike."""
        sid, secrets = bodies.session_id(request), bodies.secrets(request)
        body = await bodies.read(request, bodies.Create, self._limits)
        hosted = self._default if body.env_name is None else self._named(body.env_name)
        if body.toolset_name is not None:
            raise Problem(400, "This server has no toolsets.")
        digest = _digest(body.model_dump(), secrets)

        async def task() -> dict[str, Any]:
            if body.task_spec is not None:
                return body.task_spec
            return await hosted.task(body.split or "", body.index or 0)

        await self._sessions.create(sid, hosted, digest, task, secrets)
        return JSONResponse({"sid": sid})

    async def delete(self, request: Request) -> Response:
        """Cancel, tear down, forget."""
        sid = bodies.session_id(request)
        await self._sessions.delete(sid)
        return JSONResponse({"sid": sid})

    async def ping(self, request: Request) -> Response:
        """Keeps the session."""
        self._sessions.find(bodies.session_id(request))
        return JSONResponse({"status": "ok"})

    async def splits(self, request: Request) -> Response:
        """Names and types."""
        return JSONResponse([split.model_dump() for split in await self._env(request).splits()])

    async def tasks(self, request: Request) -> Response:
        """All tasks of a split."""
        hosted = self._env(request)
        body = await bodies.read(request, bodies.OfSplit, self._limits)
        return JSONResponse({"tasks": await hosted.tasks(body.split), "env_name": hosted.key})

    async def num_tasks(self, request: Request) -> Response:
        """Their number."""
        hosted = self._env(request)
        body = await bodies.read(request, bodies.OfSplit, self._limits)
        return JSONResponse({"num_tasks": await hosted.count(body.split)})

    async def task(self, request: Request) -> Response:
        """One of them."""
        hosted = self._env(request)
        body = await bodies.read(request, bodies.OfTask, self._limits)
        return JSONResponse({"task": await hosted.task(body.split, body.index), "env_name": hosted.key})

    async def task_range(self, request: Request) -> Response:
        """Some of them."""
        hosted = self._env(request)
        body = await bodies.read(request, bodies.OfRange, self._limits)
        found = await hosted.range(body.split, body.start, body.stop)
        return JSONResponse({"tasks": found, "env_name": hosted.key})

    async def tools(self, request: Request) -> Response:
        """The tools of the class."""
        hosted = self._env(request)
        return JSONResponse(document(hosted.cls, hosted.tools))

    async def task_tools(self, request: Request) -> Response:
        """The tools of the session's task."""
        return JSONResponse(await self._sessions.find(bodies.session_id(request)).tools())

    async def prompt(self, request: Request) -> Response:
        """The task as blocks."""
        given = await self._sessions.find(bodies.session_id(request)).surface("get_prompt")
        return JSONResponse([block.model_dump() for block in _valid(_PROMPT, given, "get_prompt")])

    async def messages(self, request: Request) -> Response:
        """The task as a conversation."""
        given = await self._sessions.find(bodies.session_id(request)).surface("get_messages")
        return JSONResponse([message.model_dump() for message in _valid(_MESSAGES, given, "get_messages")])

    async def call(self, request: Request) -> Response:
        """Run a tool, or ask again for its result."""
        session = self._sessions.find(bodies.session_id(request))
        body = await bodies.read(request, bodies.Call, self._limits)
        await session.ready()
        digest = _digest("call", body.name, body.input)
        if body.task_id is not None:
            return self._streamed(session.runs.resumed(body.task_id, digest))
        work = partial(session.call, body.name, body.input)
        return self._streamed(session.runs.started(digest, bodies.call_id(request), work))

    async def score_group(self, request: Request) -> Response:
        """Score a group of answers."""
        session = self._sessions.find(bodies.session_id(request))
        body = await bodies.read(request, bodies.ScoreGroup, self._limits)
        if not session.scores_groups:
            raise Problem(404, "This environment does not score groups.")
        await session.ready()
        digest = _digest("score_group", body.model_dump()["candidates"])
        if body.task_id is not None:
            return self._streamed(session.runs.resumed(body.task_id, digest))
        work = partial(session.score, body.candidates)
        return self._streamed(session.runs.started(digest, bodies.call_id(request), work))

    def _streamed(self, run: Run | None) -> Response:
        if run is None:  # an unknown id, a forgotten one and one of another session or call look the same
            return Response(written("error", "unknown task_id"), media_type="text/event-stream")
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream(run, self._limits.ping_s), media_type="text/event-stream", headers=headers)


def _digest(*parts: Any) -> str:
    try:
        canonical.check_value(parts)
    except canonical.JSONPolicyError as error:
        raise Problem(422, [{"type": "json_invalid", "loc": ["body"], "msg": str(error)}]) from None
    return canonical.sha256(canonical.canonical(parts))


def _valid(kind: TypeAdapter[list[Any]], given: object, name: str) -> list[Any]:
    """What an author's method returned, checked once more. Raises TypeError or ValueError with one short sentence."""
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"{name} returned {checks.kind(given)}, not a list")
    items = cast("list[object]", given)
    plain = [one.model_dump() if isinstance(one, BaseModel) else one for one in items]
    try:
        return kind.validate_python(plain)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise ValueError(f"{name}()[{first['loc'][0] if first['loc'] else ''}]: {first['msg']}") from None
