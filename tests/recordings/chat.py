"""OpenAI's chat completions as recorded."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pollux_like import Environment, Message, ToolCall

from .shape import Asked, Dialect, Expected, passages, text_of, without_nulls


def asked(body: Mapping[str, Any]) -> Asked:
    """Every member of the recorded body in our words; one without a word of ours fails."""
    rest = dict(body)
    arguments: dict[str, Any] = {}
    if "response_format" in rest:
        arguments["output"] = rest.pop("response_format")["json_schema"]["schema"]
    streaming = rest.pop("stream", False)
    assert rest.pop("stream_options", {"include_usage": True}) == {"include_usage": True}  # what we send
    items = [
        ("replied", one) if one["role"] == "assistant" else ("said", Message("user", text_of(one["content"]) or ""))
        for one in rest.pop("messages")
    ]
    model = rest.pop("model")
    assert not rest, f"members of the recorded request without a word of ours: {sorted(rest)}"
    return Asked(model, Environment(), arguments, {"api": "chat"}, streaming, passages(items))


def expected(body: Any, events: list[dict[str, Any]]) -> Expected:
    """From the body; there is no recorded stream."""
    assert not events
    choice, usage = body["choices"][0], body["usage"]
    message = choice["message"]
    item = {key: value for key, value in message.items() if value is not None and value != []}
    return Expected(
        (item,),
        message["content"] or "",
        "",
        message["refusal"],
        (),
        choice["finish_reason"],
        (usage["prompt_tokens"], usage["completion_tokens"], usage["prompt_tokens_details"]["cached_tokens"],
         usage["completion_tokens_details"]["reasoning_tokens"]),
        None,
        body["model"],
    )  # fmt: skip


def call(item: dict[str, Any]) -> ToolCall | None:
    """No recording has calls in this dialect."""
    assert "tool_calls" not in item
    return None


def portable(items: tuple[dict[str, Any], ...]) -> Message | None:
    """The assistant's text."""
    return Message("assistant", text_of(items[0]["content"]) or "")


def meaning(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body in the common form."""
    result = without_nulls(copy.deepcopy(dict(body)))
    if "response_format" in result:  # a schema that is given as a dict has no name of its own
        result["response_format"]["json_schema"].pop("name")
    for message in result["messages"]:
        # A string stands for one text part; and that client says a refusal as text, we as the refusal that it was.
        message["content"] = text_of(message.get("content")) or message.pop("refusal", "")
    return result


def accepted_tools(body: dict[str, Any], answer: Any, events: list[dict[str, Any]]) -> dict[str, Any]:
    """No recording has tools in this dialect."""
    assert "tools" not in body
    return body


DIALECT = Dialect("chat", asked, expected, meaning, accepted_tools, call, portable, {}, {})
