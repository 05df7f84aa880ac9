"""The service: bodies in, answers out. One queue before the engine, bounds on everything, and a gone client stops its
own work.

Requests wait in order of arrival; `parallel` of them are with the engine at once. One that finds the queue full gets
429, one that waits longer than `max_wait_s` gets 503, both with Retry-After.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from pollux_like import canonical
from pollux_like.engine import Engine
from pollux_like.errors import (
    APIError,
    ConfigurationError,
    ContextOverflowError,
    ImageInputError,
    PolluxLikeError,
    SchemaError,
)
from pollux_like.typed import run
from pollux_like.typed.answers import Generated, TypedAnswer
from pollux_like.typed.calls import Calls
from pollux_like.typed.fields import Calibrates
from pollux_like.typed.run import Request

TYPED_KEYS = ("messages", "context", "system", "schema", "previous", "seed", "model", "image")
GENERATE_KEYS = ("messages", "context", "system", "match", "max_tokens", "seed", "model", "image")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the service. Bytes of a body, requests that wait, seconds of waiting, seconds of one request."""

    max_body_bytes: int = 4 * 1024 * 1024
    max_queue: int = 64
    max_wait_s: float = 120.0
    max_request_s: float = 300.0
    retry_after_s: int = 2


class Refused(Exception):
    """An answer that is no success: status, the body's error object, and seconds for Retry-After."""

    def __init__(self, status: int, error: dict[str, Any], retry_after: int | None = None) -> None:
        super().__init__(status)
        self.status, self.error, self.retry_after = status, error, retry_after


@dataclass(slots=True)
class Service:
    """Everything behind the routes; knows nothing of HTTP but status codes."""

    engine: Engine
    calls: Calls = field(default_factory=Calls)
    calibrator: Calibrates | None = None
    limits: Limits = field(default_factory=Limits)
    waiting: int = 0
    running: int = 0
    _turns: anyio.CapacityLimiter | None = None

    def typed(self, raw: bytes) -> Request:
        """A checked request of /v1/typed. Raises Refused."""
        body = self._body(raw, TYPED_KEYS)
        return self._checked(run.read_request, body, calls=self.calls, **_picked(body, TYPED_KEYS[:6]))

    def generate(self, raw: bytes) -> Request:
        """A checked request of /v1/generate. Raises Refused."""
        body = self._body(raw, GENERATE_KEYS)
        return self._checked(run.read_generate, body, **_picked(body, GENERATE_KEYS[:6]))

    async def typed_events(self, request: Request) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        """`field` events as the values become known, then `done` with the whole answer."""
        running = run.fields(self.engine, request, calls=self.calls, calibrator=self.calibrator)
        async with self._turn(), aclosing(running) as items:
            async for item in items:
                if isinstance(item, TypedAnswer):
                    yield "done", item.to_jsonable()
                else:
                    yield "field", {"name": item[0], **item[1].to_jsonable()}

    async def generate_events(self, request: Request) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        """`text` events, then `done` with the whole answer."""
        async with self._turn(), aclosing(run.generate(self.engine, request)) as items:
            async for item in items:
                if isinstance(item, Generated):
                    yield "done", item.to_jsonable()
                else:
                    yield "text", {"text": item}

    def models(self) -> dict[str, Any]:
        """The one model, as OpenAI lists models, with what is known of it."""
        info = self.engine.info
        shown = {
            "id": info.model, "object": "model", "created": 0, "owned_by": info.engine, "window": info.window,
            "fingerprint": info.fingerprint, "template_hash": info.template_hash,
            "calibrated": self.calibrator is not None, "layout": list(info.layout),
        }  # fmt: skip
        return {"object": "list", "data": [shown]}

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None, None]:
        if self._turns is None:
            self._turns = anyio.CapacityLimiter(max(1, self.engine.info.parallel))
        limits = self.limits
        if self.waiting >= limits.max_queue:
            raise self._busy(429, "overloaded", f"{self.waiting} requests are waiting")
        holder = object()
        self.waiting += 1
        try:
            with anyio.move_on_after(limits.max_wait_s) as scope:
                await self._turns.acquire_on_behalf_of(holder)
            if scope.cancelled_caught:
                raise self._busy(503, "overloaded", f"No turn came in {limits.max_wait_s:g} s")
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._turns.release_on_behalf_of(holder)

    def _busy(self, status: int, code: str, message: str) -> Refused:
        hint = f"Try again in {self.limits.retry_after_s} s or later"
        return Refused(status, error(code, message, hint), self.limits.retry_after_s)

    def _body(self, raw: bytes, keys: tuple[str, ...]) -> dict[str, Any]:
        try:
            body = canonical.loads(raw.decode(), unique_keys=True)
        except (UnicodeDecodeError, canonical.JSONPolicyError) as problem:
            said = str(problem) if isinstance(problem, canonical.JSONPolicyError) else "the body is not UTF-8"
            raise Refused(400, error("invalid_json", said, "Send one JSON object")) from None
        if not isinstance(body, dict):
            raise Refused(400, error("invalid_json", "the body is no JSON object", "Send one JSON object"))
        given: dict[str, Any] = {str(key): value for key, value in body.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        unknown = sorted(set(given) - set(keys))
        if unknown:
            message = f"the body has {len(unknown)} keys that this endpoint does not know"
            raise Refused(422, error("unknown_key", message, f"Use {', '.join(keys)}"))
        return given

    def _checked(self, read: Callable[..., Request], body: Mapping[str, Any], **arguments: Any) -> Request:
        if body.get("image") is not None:  # no engine has a way to take one
            raise Refused(422, error("image_unsupported", "the engine here sees no images", "Leave image out"))
        named = body.get("model")
        if named is not None and named != self.engine.info.model:
            raise Refused(404, error("model_not_found", "the model is not served here", "See GET /v1/models"))
        try:
            return read(**arguments)
        except PolluxLikeError as problem:
            raise refused(problem) from None


def _picked(body: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: body[key] for key in keys if key in body}


def error(code: str, message: str, hint: str, **more: Any) -> dict[str, Any]:
    """The error object of a body: code, two sentences, and what else there is."""
    return {"code": code, "message": message.rstrip("."), "hint": hint.rstrip("."), **more}


def refused(problem: PolluxLikeError) -> Refused:
    """The answer that an error of the library leads to."""
    match problem:
        case SchemaError():
            return Refused(422, error("invalid_schema", problem.message, problem.hint, path=problem.path))
        case ImageInputError():
            return Refused(422, error("image_unsupported", problem.message, problem.hint))
        case ConfigurationError():
            return Refused(422, error("invalid_request", problem.message, problem.hint))
        case ContextOverflowError():
            return Refused(413, error("context_overflow", problem.message, problem.hint))
        case APIError() if problem.status == 429 or problem.retryable:
            return Refused(503, error("engine_unavailable", problem.message, problem.hint), 2)
        case _:
            return Refused(502, error("engine_failed", problem.message, problem.hint))
