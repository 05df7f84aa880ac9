"""OpenRouter's chat completions as recorded."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from pollux_like import Environment, Message, ToolCall, ToolDeclaration

from .shape import Asked, Dialect, Expected, passages, text_of, without_nulls

_OPTIONS = ("provider", "include_reasoning")
_REASONING = {"effort": "reasoning_effort", "max_tokens": "reasoning_budget_tokens"}
_OPENING = Message("user", "(what was asked)")
"""Stands where a client cut the beginning off: here a conversation begins with a user message."""


def asked(body: Mapping[str, Any]) -> Asked:
    """Every member of the recorded body in our words; one without a word of ours fails."""
    rest = dict(body)
    arguments: dict[str, Any] = {}
    if "response_format" in rest:
        arguments["output"] = rest.pop("response_format")["json_schema"]["schema"]
    for theirs in ("max_tokens", "max_completion_tokens"):
        if theirs in rest:
            arguments["max_tokens"] = rest.pop(theirs)
    if "parallel_tool_calls" in rest:
        arguments["parallel_tool_calls"] = rest.pop("parallel_tool_calls")
    for name, value in rest.pop("reasoning", {}).items():
        arguments[_REASONING[name]] = value
    streaming = rest.pop("stream", False)
    rest.pop("stream_options", None)
    system = [text_of(one["content"]) for one in rest["messages"] if one["role"] == "system"]
    items = [item(one) for one in rest.pop("messages") if one["role"] != "system"]
    if items[0][0] == "replied":
        items.insert(0, ("said", _OPENING))
    functions = [tool["function"] for tool in rest.pop("tools", [])]
    tools = [ToolDeclaration(one["name"], one["description"], one["parameters"]) for one in functions]
    environment = Environment(instructions=system[0] if system else None, tools=tools)
    options = {name: rest.pop(name) for name in _OPTIONS if name in rest}
    model = rest.pop("model")
    assert not rest, f"members of the recorded request without a word of ours: {sorted(rest)}"
    return Asked(model, environment, arguments, options, streaming, passages(items))


def item(message: dict[str, Any]) -> tuple[str, Any]:
    """A message as what was said, or as the provider's own."""
    if message["role"] == "assistant":
        return "replied", message
    return "said", Message(message["role"], text_of(message["content"]) or "", tool_call_id=message.get("tool_call_id"))


def expected(body: Any, events: list[dict[str, Any]]) -> Expected:
    """From the body, or from the chunks of a stream."""
    choice, usage, model = _whole(events) if events else (body["choices"][0], body["usage"], body["model"])
    message = without_nulls(choice["message"])
    message["content"] = message.get("content") or None
    reasoning = message.get("reasoning") or message.get("reasoning_content") or ""
    if "reasoning_details" in message or not reasoning:  # the details hold it
        message.pop("reasoning", None)
    for one in message.get("tool_calls", []):
        one.pop("index", None)
    found = tuple(
        (one["id"], one["function"]["name"], one["function"]["arguments"]) for one in message.get("tool_calls", [])
    )
    return Expected(
        (message,), message["content"] or "", reasoning, message.get("refusal"), found, choice["finish_reason"],
        (usage["prompt_tokens"], usage["completion_tokens"], usage.get("prompt_tokens_details", {}).get("cached_tokens", 0),
         usage["completion_tokens_details"]["reasoning_tokens"]),
        None, model,
    )  # fmt: skip


def _whole(events: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The chunks as one choice. In these recordings an index has one entry, and only its text comes in pieces."""
    message: dict[str, Any] = {"role": "assistant", "content": "", "reasoning": ""}
    details: dict[int, dict[str, Any]] = {}
    calls: dict[int, dict[str, Any]] = {}
    finish = None
    for event in events:
        for choice in event["choices"]:
            finish = choice["finish_reason"] or finish
            delta = choice["delta"]
            message["content"] += delta.get("content") or ""
            message["reasoning"] += delta.get("reasoning") or ""
            for detail in delta.get("reasoning_details") or []:
                entry = details.setdefault(detail["index"], {})
                text = entry.get("text", "") + detail.get("text", "")
                entry.update(detail, **({"text": text} if text else {}))
            for piece in delta.get("tool_calls") or []:
                call = calls.setdefault(piece["index"], {"type": "function", "function": {"arguments": ""}})
                call.update({key: piece[key] for key in ("id",) if key in piece})
                function = call["function"]
                function["arguments"] += piece["function"].get("arguments", "")
                function.update({key: piece["function"][key] for key in ("name",) if key in piece["function"]})
    for name, found in (("reasoning_details", details), ("tool_calls", calls)):
        if found:
            message[name] = [found[index] for index in sorted(found)]
    return {"message": message, "finish_reason": finish}, events[-1]["usage"], events[-1]["model"]


def call(item: dict[str, Any]) -> ToolCall | None:
    """The call of a message; recorded messages that another client cut off have one."""
    if "tool_calls" not in item:
        return None
    (one,) = item["tool_calls"]
    return ToolCall.from_text(id=one["id"], name=one["function"]["name"], arguments_text=one["function"]["arguments"])


def portable(items: tuple[dict[str, Any], ...]) -> Message | None:
    """The assistant's text; None where there is more."""
    plain = items[0].keys() <= {"role", "content"}
    return Message("assistant", text_of(items[0]["content"]) or "") if plain else None


def meaning(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body in the common form."""
    result = without_nulls(copy.deepcopy(dict(body)))
    result.pop("stream_options", None)  # deprecated: usage comes without
    if not result.get("stream"):
        result.pop("stream", None)
    if "max_completion_tokens" in result:  # its other name
        result["max_tokens"] = result.pop("max_completion_tokens")
    if "response_format" in result:  # a schema that is given as a dict has no name of its own
        result["response_format"]["json_schema"].pop("name")
    result["messages"] = [one for one in result["messages"] if one.get("content") != _OPENING.content]
    for message in result["messages"]:
        # A string stands for one text part; and one client says a refusal as text, we as the refusal that it was.
        message["content"] = text_of(message.get("content")) or message.pop("refusal", "")
        for one in message.get("tool_calls", []):  # clients write the arguments anew
            one["function"]["arguments"] = json.loads(one["function"]["arguments"])
    return result


def accepted_tools(body: dict[str, Any], answer: Any, events: list[dict[str, Any]]) -> dict[str, Any]:
    """As they were sent."""
    return body


_AS_IT_CAME = "entries go back with every member that they came with; OpenRouter takes them with and without this one"
OMITTED_THERE = {
    f"{kind}.{member}": _AS_IT_CAME
    for kind, member in (
        ("reasoning.text", "format"), ("reasoning.text", "index"), ("reasoning.summary", "format"),
        ("reasoning.encrypted", "format"),
    )
}  # fmt: skip

DIALECT = Dialect("openrouter", asked, expected, meaning, accepted_tools, call, portable, OMITTED_THERE, {})
