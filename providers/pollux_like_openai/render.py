"""Ours to wire: one `Request` as the JSON body of `POST /v1/responses`. Pure; imports no SDK."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pollux_like import canonical, checks, schemas
from pollux_like.errors import ConfigurationError
from pollux_like.messages import Message
from pollux_like.output import Notice
from pollux_like.prepare import without_server_state
from pollux_like.provider import CountParser, Request, Wire
from pollux_like.sources import Source, labelled
from pollux_like.tools import ToolDeclaration
from pollux_like.turns import Turn, folded
from pollux_like.wire_ids import spoken_result, wire_ids, wire_name

from .items import compacts, custom_calls, replayed
from .models import CACHE_OPTIONS, NO_REASONING
from .parse import ResponsesParser

OURS = frozenset({
    "model", "input", "instructions", "stream", "tool_choice", "parallel_tool_calls", "max_output_tokens",
    "temperature", "top_p", "previous_response_id", "conversation", "background",
})  # fmt: skip
"""Body keys that this library sets, or that would take the conversation out of its hands: refused in the options."""
SPECIAL = frozenset({"api", "store", "include", "tools", "reasoning", "text"})
COUNTED = frozenset({
    "input", "instructions", "model", "parallel_tool_calls", "previous_response_id", "reasoning", "text", "tool_choice",
    "tools", "truncation",
})  # fmt: skip
"""Members that the counting endpoint takes (API reference, Count input tokens)."""


def render(request: Request) -> Wire:
    """The body, with the whole conversation in it, or chained on a stored response with only what is new.

    Stateless by default: `store: false`. With `provider_options={"openai": {"store": True}}` the next turn chains by
    `previous_response_id`; is the id gone, the fallback sends the conversation in full. Never both (POST /v1/responses,
    `previous_response_id`). Reasoning is asked for in encrypted form either way, so that a continuation needs no
    server's memory.
    """
    options = request.options
    clash = OURS & options.keys()
    if clash:
        raise ConfigurationError(
            f"provider_options set {min(clash)!r}, which the library decides itself",
            hint="Use the argument of interact(), or leave it out",
        )
    store = checks.flag(options.get("store", False), _name("store"))
    notices: list[Notice] = []
    last = request.turns[-1] if request.turns else None
    chained = last.state.get("response_id") if store and last is not None else None
    head: dict[str, Any] = {"model": request.model}
    if request.instructions is not None:
        head["instructions"] = request.instructions
    tools = [*_tools(request.tools, notices), *checks.json_objects(options.get("tools"), _name("tools"))]
    _check_names(tools)
    if tools:
        head["tools"] = tools
    head.update(_settings(request, notices))
    head["store"] = store
    if request.cache == "none" and CACHE_OPTIONS.match(request.model):
        if "prompt_cache_options" in options:
            raise ConfigurationError(
                'provider_options set prompt_cache_options beside Environment(cache="none")', hint="Give only one"
            )
        # Explicit mode without breakpoints: "the request does not use prompt caching" (POST /v1/responses).
        head["prompt_cache_options"] = {"mode": "explicit"}
    include = list(checks.sequence(options.get("include") or (), _name("include"), str))
    if not NO_REASONING.match(request.model) and "reasoning.encrypted_content" not in include:
        include.append("reasoning.encrypted_content")
    if include:
        head["include"] = include
    head.update({key: value for key, value in options.items() if key not in SPECIAL})
    if request.streaming:
        head["stream"] = True
    if chained is not None:
        head["previous_response_id"] = chained
    body = canonical.splice(head, "input", _input(request, chained is not None))
    return Wire(
        path="/responses",
        body=body,
        streaming=request.streaming,
        parser=lambda: ResponsesParser(store),
        notices=tuple(notices),
        fallback=(lambda: render(without_server_state(request))) if chained is not None else None,
    )


def render_count(request: Request) -> Wire:
    """The same input for `POST /v1/responses/input_tokens`, which takes these members and no others."""
    wire = render(request)
    body = canonical.picked(wire.body, COUNTED)
    return Wire("/responses/input_tokens", body, streaming=False, parser=lambda: CountParser("input_tokens"),
                fallback=(lambda: render_count(without_server_state(request))) if wire.fallback else None)  # fmt: skip


def _name(option: str) -> str:
    return f'provider_options["openai"]["{option}"]'


def _check_names(tools: Sequence[dict[str, Any]]) -> None:
    names = [tool.get("name") for tool in tools if isinstance(tool.get("name"), str)]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(
                f"a tool of provider_options has the name {name!r} of a declared one", hint="Rename one of them"
            )


def _normal(tool: ToolDeclaration) -> schemas.Normalised:
    return tool.remember("openai", lambda: schemas.normalise(tool.schema, "openai", strict=tool.strict, name=tool.name))


def _tools(tools: Sequence[ToolDeclaration], notices: list[Notice]) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    for tool in tools:
        normal = _normal(tool)
        notices.extend(Notice("schema", loss) for loss in normal.losses)
        result.append({
            "type": "function", "name": tool.name, "description": tool.description, "parameters": normal.schema,
            "strict": normal.strict,
        })  # fmt: skip
    return result


def _settings(request: Request, notices: list[Notice]) -> dict[str, Any]:
    settings, options = request.settings, request.options
    body: dict[str, Any] = {}
    if settings.tool_choice is not None:
        named = settings.tool_choice.name
        body["tool_choice"] = settings.tool_choice.mode if named is None else {"type": "function", "name": named}
    if settings.parallel_tool_calls is not None:
        body["parallel_tool_calls"] = settings.parallel_tool_calls
    text = checks.maybe_object(options.get("text"), _name("text"))
    if settings.output is not None:
        if "format" in text:
            raise ConfigurationError("provider_options set text.format beside output", hint="Give only one of the two")
        normal = schemas.normalise(settings.output.schema, "openai", strict=True, name=settings.output.name)
        notices.extend(Notice("schema", loss) for loss in normal.losses)
        text["format"] = {
            "type": "json_schema", "name": settings.output.name, "schema": normal.schema, "strict": normal.strict,
        }  # fmt: skip
    if text:
        body["text"] = text
    for ours, theirs in (("max_tokens", "max_output_tokens"), ("temperature", "temperature"), ("top_p", "top_p")):
        value = getattr(settings, ours)
        if value is not None:
            body[theirs] = value
    if settings.max_tokens is not None and settings.max_tokens < 16:
        raise ConfigurationError(f"max_tokens is {settings.max_tokens}", hint="OpenAI's least is 16")
    reasoning = checks.maybe_object(options.get("reasoning"), _name("reasoning"))
    if settings.reasoning_effort is not None:
        if "effort" in reasoning:
            raise ConfigurationError(
                "provider_options set reasoning.effort beside reasoning_effort", hint="Give only one of the two"
            )
        reasoning["effort"] = settings.reasoning_effort
    if reasoning:
        body["reasoning"] = reasoning
    return body


def _input(request: Request, chained: bool) -> list[str]:
    """The texts of the input items; those of past turns are joined already."""
    now = len(request.turns)
    last = request.turns[-1] if request.turns else None
    messages, sources, media = request.at(now)
    added = _added(messages, last, sources, media)
    if chained:
        return added
    past = folded(request.turns, ("openai", request.standing), "", partial(_past, request))
    return [past, *added] if past else added


def _past(request: Request, before: str, index: int) -> str:
    """The joined items of the turns up to one. A compaction item stands for everything before it."""
    turn = request.turns[index]
    items = replayed(turn)
    if not compacts(turn):
        messages, sources, media = request.at(index)
        earlier = [before] if before else []
        items = [*earlier, *_added(messages, request.turns[index - 1] if index else None, sources, media), *items]
    return ",".join(items)


def _added(
    messages: Sequence[Message], before: Turn | None, sources: Sequence[Source], media: Sequence[Source]
) -> list[str]:
    ids = wire_ids(messages)
    custom = custom_calls(before) if before is not None else frozenset[str]()
    last_user = max((i for i, message in enumerate(messages) if message.role == "user"), default=-1)
    items: list[str] = []
    for index, message in enumerate(messages):
        match message.role:
            case "user":
                parts = [*(sources if index == 0 else ()), *(media if index == last_user else ())]
                items.append(canonical.dumps({"role": "user", "content": _content(message.content, parts)}))
            case "assistant":
                if message.content.strip():
                    items.append(canonical.dumps({"role": "assistant", "content": message.content}))
                for call, wire_id in zip(message.tool_calls, ids[index], strict=True):
                    valid = call.arguments_error is None and call.arguments_text.strip()
                    items.append(canonical.dumps({
                        "type": "function_call", "call_id": wire_id, "name": wire_name(call.name),
                        "arguments": call.arguments_text if valid else "{}",
                    }))  # fmt: skip
            case "tool":
                kind = "custom_tool_call_output" if message.tool_call_id in custom else "function_call_output"
                items.append(
                    canonical.dumps({"type": kind, "call_id": ids[index][0], "output": spoken_result(message)})
                )
    return items


def _content(text: str, sources: Sequence[Source]) -> str | list[dict[str, Any]]:
    if not sources:
        return text
    parts: list[dict[str, Any]] = []
    for source in sources:
        match source.kind:
            case "text":
                parts.append({"type": "input_text", "text": labelled(source)})
            case "image":
                url = source.uri or f"data:{source.mime_type};base64,{source.base64}"
                parts.append({"type": "input_image", "image_url": url, "detail": "auto"})
            case "pdf":
                where = {"file_url": source.uri} if source.uri else {
                    "filename": source.name or "document.pdf",
                    "file_data": f"data:{source.mime_type};base64,{source.base64}",
                }  # fmt: skip
                parts.append({"type": "input_file", **where})
    return [*parts, {"type": "input_text", "text": text}]
