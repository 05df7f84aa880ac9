"""Ours to wire: one `Request` as the JSON body of a chat completion. Pure; imports no SDK."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from pollux_like import api_errors, canonical, checks, schemas
from pollux_like.errors import ConfigurationError
from pollux_like.messages import Message
from pollux_like.output import Notice
from pollux_like.provider import Request, Wire
from pollux_like.sources import Source, labelled
from pollux_like.tools import ToolDeclaration
from pollux_like.turns import Turn, folded
from pollux_like.wire_ids import LEGAL_SHORT, spoken_result, wire_ids, wire_name

from .dialect import Dialect
from .parse import ChatParser
from .policies import FIELDS

OURS = frozenset({
    "model", "messages", "stream", "tool_choice", "parallel_tool_calls", "max_tokens", "max_completion_tokens",
    "temperature", "top_p", "seed", "stop", "response_format", "reasoning_effort", "stream_options",
    "n",
})  # fmt: skip
"""Body keys that this library sets, or whose answers it would drop; in provider_options they are refused."""


def render(request: Request, dialect: Dialect) -> Wire:
    """The whole conversation as chat messages, the assistant's as they came."""
    clash = OURS & request.options.keys()
    if clash:
        raise ConfigurationError(
            f"provider_options set {min(clash)!r}, which the library decides itself",
            hint="Use the argument of interact(), or leave it out",
        )
    notices: list[Notice] = []
    head: dict[str, Any] = {"model": request.model}
    hosted = checks.json_objects(request.options.get("tools"), f'provider_options["{dialect.provider}"]["tools"]')
    for tool in hosted:
        name = api_errors.member(tool, "function").get("name")
        if any(name == declared.name for declared in request.tools):
            raise ConfigurationError(
                f"a tool of provider_options has the name {name!r} of a declared one", hint="Rename one of them"
            )
    tools = [*_tools(request.tools, dialect, notices), *hosted]
    stubs = _stubs(request, notices) if dialect.stubs and not tools else []
    if tools or stubs:
        head["tools"] = tools or stubs
    head.update(_settings(request, dialect, notices))
    if stubs:
        head["tool_choice"] = "none"
    special = dialect.special | {"tools"}
    head.update({key: value for key, value in request.options.items() if key not in special})
    if request.streaming:
        head["stream"] = True
        if dialect.stream_usage:
            head["stream_options"] = {"include_usage": True}
    return Wire(
        path=dialect.path,
        body=canonical.splice(head, "messages", _messages(request, dialect)),
        streaming=request.streaming,
        parser=lambda: ChatParser(dialect),
        notices=tuple(notices),
    )


def _normal(tool: ToolDeclaration, strict: bool) -> schemas.Normalised:
    """The tool's schema where the server knows strict tools, or where it knows none."""
    target = "openai" if strict else "plain"
    return tool.remember(
        target, lambda: schemas.normalise(tool.schema, target, strict=tool.strict and strict, name=tool.name)
    )


def _tools(tools: Sequence[ToolDeclaration], dialect: Dialect, notices: list[Notice]) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    for tool in tools:
        normal = _normal(tool, dialect.strict_tools)
        notices.extend(Notice("schema", loss) for loss in normal.losses)
        function: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": normal.schema}
        if dialect.strict_tools:
            function["strict"] = normal.strict
        result.append({"type": "function", "function": function})
    return result


def _stubs(request: Request, notices: list[Notice]) -> list[dict[str, Any]]:
    """The tools that the conversation called, by name only."""
    none: tuple[str, ...] = ()
    past = folded(request.turns, "chat.names", none, partial(_met, request))
    names = dict.fromkeys((*past, *_called(request.added)))
    if names:
        text = "the conversation holds tool calls and no tools are given; they are named only"
        notices.append(Notice("tool_stubs", text))
    empty: dict[str, Any] = {"type": "object", "properties": {}}
    return [{"type": "function", "function": {"name": wire_name(name), "parameters": empty}} for name in names]


def _met(request: Request, before: tuple[str, ...], index: int) -> tuple[str, ...]:
    turn = request.turns[index]
    return tuple(dict.fromkeys((*before, *_called(turn.added), *(call.name for call in turn.calls))))


def _called(messages: Sequence[Message]) -> list[str]:
    return [call.name for message in messages for call in message.tool_calls]


def _settings(request: Request, dialect: Dialect, notices: list[Notice]) -> dict[str, Any]:
    settings = request.settings
    body: dict[str, Any] = {}
    if settings.tool_choice is not None:
        name = settings.tool_choice.name
        body["tool_choice"] = (
            settings.tool_choice.mode if name is None else {"type": "function", "function": {"name": name}}
        )
    if settings.output is not None:
        normal = schemas.normalise(settings.output.schema, "openai", strict=True, name=settings.output.name)
        notices.extend(Notice("schema", loss) for loss in normal.losses)
        form = {"name": settings.output.name, "schema": normal.schema, "strict": normal.strict}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    for ours, theirs in (
        ("parallel_tool_calls", "parallel_tool_calls"),
        ("max_tokens", dialect.max_tokens),
        ("temperature", "temperature"),
        ("top_p", "top_p"),
        ("seed", "seed"),
        ("reasoning_effort", "reasoning_effort"),
    ):
        value = getattr(settings, ours)
        if value is not None:
            body[theirs] = value
    if settings.stop:
        body["stop"] = list(settings.stop)
    return body


def _messages(request: Request, dialect: Dialect) -> list[str]:
    """The texts of the messages; those of past turns are joined already."""
    system: list[str] = []
    if request.instructions is not None:
        system.append(canonical.dumps({"role": dialect.system_role, "content": request.instructions}))
    reader = _author(request.model) if dialect.details else request.model
    past = folded(request.turns, ("chat", dialect, reader, request.standing), "", partial(_past, request, dialect))
    return [*system, *([past] if past else []), *_added(*request.at(len(request.turns)), dialect)]


def _past(request: Request, dialect: Dialect, before: str, index: int) -> str:
    """The joined messages of the turns up to one."""
    earlier = [before] if before else []
    turn = request.turns[index]
    return ",".join([*earlier, *_added(*request.at(index), dialect), *_replayed(turn, request.model, dialect)])


def _author(model: str) -> str:
    """Whose model it is, by its name at a router: `author/model`."""
    return model.partition("/")[0]


def _replayed(turn: Turn, model: str, dialect: Dialect) -> list[str]:
    """The assistant's message as it came, but for what servers return and then refuse.

    Null members, `annotations`, reasoning that the dialect does not want back or that another author's model sealed,
    and broken arguments (as `{}`). Calls without an id of their own carry the one that the caller saw.
    """
    result: list[str] = []
    for text in turn.native:
        message = cast("dict[str, Any]", json.loads(text))
        out = {"annotations", "function_call", "audio", *FIELDS}
        if dialect.details is None:
            own = turn.stamp.model == model
        else:
            own = _author(turn.stamp.model) == _author(model)
            if not own:
                out.add(dialect.details)
        kept = {key: value for key, value in message.items() if key not in out}
        if dialect.details not in kept:  # the details hold the text too
            kept |= dialect.reasoning.given_back(message, calls=bool(turn.calls), own=own)
        calls = api_errors.objects(kept, "tool_calls")
        if calls:
            kept["tool_calls"] = [
                {
                    **call,
                    "id": seen.id,
                    "function": {
                        **api_errors.member(call, "function"),
                        "name": seen.name,
                        "arguments": _arguments(seen.arguments_text, seen.arguments),
                    },
                }
                for call, seen in zip(calls, turn.calls, strict=True)
            ]
        if calls or kept.get("content") or kept.get("refusal"):
            result.append(json.dumps(kept, separators=(",", ":")))
    return result


def _arguments(text: str, arguments: dict[str, Any] | None) -> str:
    return text if arguments is not None and text.strip() else "{}"


def _added(
    messages: Sequence[Message], sources: Sequence[Source], media: Sequence[Source], dialect: Dialect
) -> list[str]:
    ids = wire_ids(messages, LEGAL_SHORT)
    last_user = max((i for i, message in enumerate(messages) if message.role == "user"), default=-1)
    result: list[str] = []
    for index, message in enumerate(messages):
        wire: dict[str, Any]
        match message.role:
            case "user":
                parts = [*(sources if index == 0 else ()), *(media if index == last_user else ())]
                wire = {"role": "user", "content": _content(message.content, parts)}
            case "assistant":
                wire = {"role": "assistant", "content": message.content if message.content.strip() else None}
                if message.tool_calls:
                    wire["tool_calls"] = [
                        {"id": wire_id, "type": "function", "function": {
                            "name": wire_name(call.name), "arguments": _arguments(call.arguments_text, call.arguments)}}
                        for call, wire_id in zip(message.tool_calls, ids[index], strict=True)
                    ]  # fmt: skip
                wire |= dialect.reasoning.given_back({}, calls=bool(message.tool_calls))
            case "tool":
                wire = {"role": "tool", "tool_call_id": ids[index][0], "content": spoken_result(message)}
        result.append(canonical.dumps(wire))
    return result


def _content(text: str, sources: Sequence[Source]) -> str | list[dict[str, Any]]:
    if not sources:
        return text
    if all(source.kind == "text" for source in sources):  # plain text is what every server takes
        return "\n\n".join([*map(labelled, sources), text])
    parts: list[dict[str, Any]] = []
    for source in sources:
        url = source.uri or f"data:{source.mime_type};base64,{source.base64}"
        match source.kind:
            case "text":
                parts.append({"type": "text", "text": labelled(source)})
            case "image":
                parts.append({"type": "image_url", "image_url": {"url": url}})
            case "pdf":
                if source.uri:
                    raise ConfigurationError(
                        "chat completions take no PDF by URI", hint="Fetch it, then use from_bytes"
                    )
                file = {"filename": source.name or "document.pdf", "file_data": url}
                parts.append({"type": "file", "file": file})
    return [*parts, {"type": "text", "text": text}]
