"""Anthropic's Messages API as recorded."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from pollux_like import Environment, Message, ToolCall, ToolDeclaration

from .shape import Asked, Dialect, Expected, passages, text_of, without_nulls

OMITTED_THERE = {
    "request.stream": "an answer of more than 21,333 tokens is streamed on the wire, also for interact",
    "tool_use.caller": "that client drops it; ours goes back as it came",
}
OMITTED_HERE: dict[str, str] = {}


def asked(body: Mapping[str, Any]) -> Asked:
    """Every member of the recorded body in our words; one without a word of ours fails."""
    rest = {key: value for key, value in body.items() if value is not None}
    arguments: dict[str, Any] = {"max_tokens": rest.pop("max_tokens")}
    options: dict[str, Any] = {}
    if "temperature" in rest:
        arguments["temperature"] = rest.pop("temperature")
    if "context_management" in rest:
        options["context_management"] = rest.pop("context_management")
    choice = rest.pop("tool_choice", None)
    if choice is not None:
        words = {"auto": "auto", "any": "required", "tool": {"name": choice.get("name")}}
        arguments["tool_choice"] = words[choice["type"]]
    config = dict(rest.pop("output_config", {}))
    if "format" in config:
        arguments["output"] = config.pop("format")["schema"]
    thinking = dict(rest.pop("thinking", {}))
    if "effort" in config:
        arguments["reasoning_effort"] = config.pop("effort")
        if thinking:
            assert thinking.pop("type") == "adaptive"  # what we send with an effort
    assert not config
    if thinking.get("type") == "enabled":
        arguments["reasoning_budget_tokens"] = thinking["budget_tokens"]
    elif thinking:
        options["thinking"] = thinking
    tools = rest.pop("tools", [])
    own = [tool for tool in tools if "type" in tool or "defer_loading" in tool]
    if own:
        options["tools"] = own
    declared = [
        ToolDeclaration(tool["name"], tool["description"], tool["input_schema"], tool.get("strict", False))
        for tool in tools
        if tool not in own
    ]
    cache = "auto" if rest.pop("cache_control", None) else "none"
    environment = Environment(instructions=text_of(rest.pop("system", None)) or None, tools=declared, cache=cache)
    streaming = rest.pop("stream", False)
    rest.pop("container", None)  # comes from the continuation, and is compared
    items: list[tuple[str, Any]] = []
    unsaid: list[dict[str, Any]] = []
    for message in rest.pop("messages"):
        if message["role"] == "system":
            unsaid.append(message)
        elif message["role"] == "assistant":
            items.extend(("replied", block) for block in message["content"])
        else:
            items.extend(("said", one) for one in _said(message["content"]))
    model = rest.pop("model")
    assert not rest, f"members of the recorded request without a word of ours: {sorted(rest)}"
    return Asked(model, environment, arguments, options, streaming, passages(items), None, tuple(unsaid))


def _said(content: Any) -> list[Message]:
    if isinstance(content, str):
        return [Message("user", content)]
    said = [
        Message("tool", text_of(block.get("content")) or "", tool_call_id=block["tool_use_id"],
                is_error=block.get("is_error", False))
        for block in content
        if block["type"] == "tool_result"
    ]  # fmt: skip
    text = text_of([block for block in content if block["type"] != "tool_result"])
    return [*said, *([Message("user", text)] if text else [])]


def expected(body: Any, events: list[dict[str, Any]]) -> Expected:
    """From the body, or put together from the events."""
    message = body if not events else _assembled(events)
    blocks = message["content"]
    text: list[str] = []
    for before, block in zip([{}, *blocks], blocks, strict=False):  # adjoining text blocks are one text
        if block["type"] == "text" and block["text"]:
            text.extend(["\n\n"] if text and before["type"] != "text" else [])
            text.append(block["text"])
    usage = message["usage"]
    read, write = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
    return Expected(
        tuple(blocks),
        "".join(text),
        "\n\n".join(block["thinking"] for block in blocks if block["type"] == "thinking" and block["thinking"]),
        None,
        tuple((c.id, c.name, c.arguments_text) for c in map(call, blocks) if c is not None),
        message["stop_reason"],
        (usage["input_tokens"] + read + write, usage["output_tokens"], read,
         (usage.get("output_tokens_details") or {}).get("thinking_tokens", 0)),
        None,
        message["model"],
    )  # fmt: skip


def _assembled(events: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = copy.deepcopy(events[0]["message"])
    inputs: dict[int, str] = {}
    for event in events:
        match event["type"]:
            case "content_block_start":
                message["content"].append(copy.deepcopy(event["content_block"]))
            case "content_block_delta":
                block, delta = message["content"][event["index"]], event["delta"]
                match delta["type"]:
                    case "input_json_delta":
                        inputs[event["index"]] = inputs.get(event["index"], "") + delta["partial_json"]
                    case "citations_delta":
                        block["citations"].append(delta["citation"])
                    case "text_delta" | "thinking_delta" | "signature_delta":
                        key = delta["type"].removesuffix("_delta")
                        block[key] += delta[key]
                    case kind:
                        raise AssertionError(f"a recorded delta of the unknown type {kind}")
            case "message_delta":
                message["stop_reason"] = event["delta"]["stop_reason"]
                message["usage"].update(event["usage"])
            case _:
                pass
    for index, text in inputs.items():
        message["content"][index]["input"] = json.loads(text or "{}")
    return message


def call(block: dict[str, Any]) -> ToolCall | None:
    """A block as the call that the caller sees."""
    return ToolCall(block["id"], block["name"], None, block["input"]) if block.get("type") == "tool_use" else None


def portable(blocks: tuple[dict[str, Any], ...]) -> Message | None:
    """Text and calls; every other block is the provider's own."""
    if any(block["type"] not in ("text", "tool_use") for block in blocks):
        return None
    text = text_of([block for block in blocks if block["type"] == "text"]) or ""
    return Message("assistant", text, tuple(c for c in map(call, blocks) if c is not None))


def meaning(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body in the common form."""
    result = without_nulls(copy.deepcopy(dict(body)))
    if result.get("stream") is False:  # the default
        del result["stream"]
    if "system" in result:  # a string stands for one text block
        result["system"] = text_of(result["system"])
    for message in result["messages"]:
        message["content"] = _blocks(message["content"], message["role"])
    return result


def _blocks(content: Any, role: str) -> list[dict[str, Any]]:
    if isinstance(content, str):  # a string stands for one text block
        return [{"type": "text", "text": content}]
    for block in content:
        if block["type"] == "tool_result":
            block["content"] = text_of(block.get("content"))
            if block.get("is_error") is False:  # the default
                del block["is_error"]
    texts = [block for block in content if block["type"] == "text"]
    if role == "user" and len(texts) > 1:  # portable content is one text; parts are joined by a blank line
        return [*(block for block in content if block["type"] != "text"), {"type": "text", "text": text_of(texts)}]
    return list(content)


def accepted_tools(body: dict[str, Any], answer: Any, events: list[dict[str, Any]]) -> dict[str, Any]:
    """Anthropic takes tools as they are."""
    return body


DIALECT = Dialect("messages", asked, expected, meaning, accepted_tools, call, portable, OMITTED_THERE, OMITTED_HERE)
