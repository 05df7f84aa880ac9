"""Request bodies: what each route takes, checked, and what a bad one is told."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Self, TypeAlias, TypeVar, cast

import anyio
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, model_validator
from starlette.requests import ClientDisconnect, Request

from pollux_like import canonical
from pollux_like.environments.authoring import GroupCandidate
from pollux_like.environments.limits import Limits
from pollux_like.environments.problems import Problem

MAX_ID = 256
"""Longest id of a session or a call, in characters."""
CALL_ID = "x-call-id"
"""Our own header: the client's id for a call. The same id never runs a tool twice, even where the first stream was cut
before it named the run."""

B = TypeVar("B", bound=BaseModel)


def _plain(value: str) -> str:
    canonical.check_text(value)
    return value


Text: TypeAlias = Annotated[str, AfterValidator(_plain)]


class Body(BaseModel):
    """Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Empty(Body):
    """`env` is for the platform; a server of one's own takes no overrides and passes over it."""

    env: dict[str, Any] | None = None


class Create(Body):
    """Exactly one of `task_spec`, or `split` and `index`."""

    env_name: Text | None = None
    task_spec: dict[str, Any] | None = None
    split: Text | None = None
    index: int | None = None
    toolset_name: Text | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.split is None) != (self.index is None) or (self.task_spec is None) == (self.split is None):
            raise ValueError("give either task_spec, or split and index")
        return self


class OfSplit(Body):
    """The name of a split."""

    split: Text


class OfTask(OfSplit):
    """One task of a split."""

    index: int


class OfRange(OfSplit):
    """A slice of a split."""

    start: int | None = None
    stop: int | None = None


class Call(Body):
    """A tool call; `task_id` asks for the result of one that was begun."""

    name: Text
    input: dict[str, Any]
    task_id: Text | None = None


class ScoreGroup(Body):
    """The candidates of a group."""

    candidates: list[GroupCandidate]
    task_id: Text | None = None


async def read(request: Request, model: type[B], limits: Limits) -> B:
    """The body of a request. Raises Problem 408, 413 or 422; none of them quotes the body."""
    return check(model, await raw(request, limits))


async def raw(request: Request, limits: Limits) -> bytes:
    """The bytes of the body. Raises Problem 408 where they come too slowly, 413 where they are too many."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > limits.body:
        raise _too_large(limits)
    received = bytearray()
    with anyio.move_on_after(limits.body_s) as scope:
        try:
            async for chunk in request.stream():
                received += chunk
                if len(received) > limits.body:
                    raise _too_large(limits)
        except ClientDisconnect:
            raise Problem(400, "The body was cut.") from None
    if scope.cancelled_caught:
        raise Problem(408, f"The body took longer than {limits.body_s:g} seconds.", {"Connection": "close"})
    return bytes(received)


def _too_large(limits: Limits) -> Problem:
    return Problem(413, f"The body has more than {limits.body} bytes.", {"Connection": "close"})


def check(model: type[B], body: bytes) -> B:
    """Parse and validate. Raises Problem 422 with a list of `{type, loc, msg}`."""
    try:
        value = canonical.loads(body.decode("utf-8"))
        return model.model_validate(value)
    except ValidationError as error:
        items = error.errors(include_url=False, include_input=False, include_context=False)
        found = [{"type": item["type"], "loc": ["body", *item["loc"]], "msg": item["msg"]} for item in items]
        raise Problem(422, found) from None
    except canonical.JSONPolicyError as error:
        raise Problem(422, [{"type": "json_invalid", "loc": ["body"], "msg": str(error)}]) from None
    except UnicodeDecodeError:
        raise Problem(422, [{"type": "json_invalid", "loc": ["body"], "msg": "the body is not UTF-8"}]) from None


def session_id(request: Request) -> str:
    """The header `X-Session-ID`, trimmed. Raises Problem 400."""
    sid = request.headers.get("x-session-id", "").strip()
    if not sid or len(sid) > MAX_ID or not sid.isprintable():
        raise Problem(400, f"The header X-Session-ID is missing, or not 1 to {MAX_ID} printable characters.")
    return sid


def call_id(request: Request) -> str | None:
    """The header `X-Call-ID`, where there is one. Raises Problem 400."""
    given = request.headers.get(CALL_ID)
    if given is not None and len(given) > MAX_ID:
        raise Problem(400, f"The header X-Call-ID has more than {MAX_ID} characters.")
    return given


def secrets(request: Request) -> dict[str, str]:
    """The header `X-Secrets`: base64 of JSON `{name: {"value": ...}}`, as names and values. Raises Problem 400."""
    header = request.headers.get("x-secrets")
    if not header:
        return {}
    try:
        value = canonical.loads(base64.b64decode(header, validate=True).decode("utf-8"))
        fields = cast("dict[str, dict[str, Any]]", value)
        found = {name: entry["value"] for name, entry in fields.items()}
        if not all(isinstance(part, str) for part in found.values()):
            raise TypeError
    except (binascii.Error, ValueError, TypeError, KeyError, AttributeError):
        raise Problem(400, "The header X-Secrets is not base64 of a JSON object of named secrets.") from None
    return found
