"""Tools of a model that knows none: calls are chosen, constrained, numbered and answered."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from pollux_like_local.engine import LlamaEngine
from pollux_like_local.tools import Tool, call_id, options

WEATHER = {
    "name": "get_weather",
    "description": "Get the current weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
ADD = {
    "name": "add",
    "description": "Add two numbers",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
}
TOOLS = [{"type": "function", "function": function} for function in (WEATHER, ADD)]
PARIS = {"role": "user", "content": "What is the weather in Paris?"}


def run(engine: LlamaEngine, messages: list[dict[str, Any]], **extra: Any) -> dict[str, Any]:
    body = {"messages": messages, "tools": TOOLS, "max_tokens": 40, **extra}

    async def main() -> dict[str, Any]:
        reply: dict[str, Any] = json.loads(await engine.complete(body))
        return reply

    return anyio.run(main)


def test_a_call_its_result_and_the_next_call(engine: LlamaEngine) -> None:
    messages = [PARIS]
    reply = run(engine, messages)
    assert reply["choices"][0]["finish_reason"] == "tool_calls"
    message = reply["choices"][0]["message"]
    (call,) = message["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Paris"}
    assert run(engine, messages)["choices"][0]["message"] == message, "the same request gives the same id"

    messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": "22 degrees and sunny"}]
    reply = run(engine, messages, parallel_tool_calls=True)
    usage = reply["usage"]
    assert "22 degrees" in reply["choices"][0]["message"]["content"]
    assert usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"] < 32
    assert usage["prompt_tokens_details"]["cached_tokens"] > 100

    messages += [reply["choices"][0]["message"], PARIS]
    (second,) = run(engine, messages, tool_choice="required")["choices"][0]["message"]["tool_calls"]
    assert second["id"] != call["id"]


def test_small_talk_calls_nothing(engine: LlamaEngine) -> None:
    choice = run(engine, [{"role": "user", "content": "Hello!"}])["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert "tool_calls" not in choice["message"]
    assert not choice["message"]["content"].startswith("{")


def test_required_chooses_and_named_obeys(engine: LlamaEngine) -> None:
    sum_ = [{"role": "user", "content": "What is 17 plus 25?"}]
    (call,) = run(engine, sum_, tool_choice="required")["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "add"
    assert json.loads(call["function"]["arguments"]) == {"a": 17, "b": 25}
    named = {"type": "function", "function": {"name": "get_weather"}}
    (call,) = run(engine, sum_, tool_choice=named)["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]).keys() == {"city"}


def test_none_calls_nothing(engine: LlamaEngine) -> None:
    message = run(engine, [PARIS], tool_choice="none", max_tokens=8)["choices"][0]["message"]
    assert message["content"]
    assert "tool_calls" not in message


def test_a_streamed_call_adds_up_to_the_whole_one(engine: LlamaEngine) -> None:
    body = {"messages": [PARIS], "tools": TOOLS, "tool_choice": "required", "max_tokens": 40}

    async def main() -> list[dict[str, Any]]:
        return [json.loads(text) async for text in engine.stream(body)]

    chunks = anyio.run(main)
    pieces = [call for chunk in chunks[:-1] for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
    (whole,) = run(engine, [PARIS], tool_choice="required")["choices"][0]["message"]["tool_calls"]
    assert pieces[0] | {"index": 0} == {**whole, "index": 0, "function": {**whole["function"], "arguments": ""}}
    assert "".join(piece["function"]["arguments"] for piece in pieces) == whole["function"]["arguments"]
    assert len(pieces) > 2


def test_a_cut_call_ends_in_length(engine: LlamaEngine) -> None:
    choice = run(engine, [PARIS], tool_choice="required", max_tokens=2)["choices"][0]
    assert choice["finish_reason"] == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])


def test_a_tool_without_parameters_gets_an_empty_object(engine: LlamaEngine) -> None:
    tools = [{"type": "function", "function": {"name": "now"}}]
    (call,) = run(engine, [PARIS], tools=tools, tool_choice="required")["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "now", "arguments": "{}"}


def test_an_error_result_and_a_foreign_call_are_rendered(engine: LlamaEngine) -> None:
    calls = [
        {"id": f"toolu_{i}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for i, name in enumerate(("gone", "get_weather"))
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "error: offline"} for call in calls]
    messages = [PARIS, {"role": "assistant", "content": "I look.", "tool_calls": calls}, *results]
    assert run(engine, messages, max_tokens=8)["choices"][0]["message"]["content"]


def test_ids_are_never_given_twice() -> None:
    first = call_id([1, 2], "add", frozenset())
    assert first == call_id([1, 2], "add", frozenset())
    assert len({first, call_id([1, 2, 3], "add", frozenset()), call_id([1, 2], "sub", frozenset())}) == 3
    again = call_id([1, 2], "add", frozenset({first}))
    assert again != first
    assert again.startswith("call_")


def test_a_tool_named_like_the_option_of_answering_can_be_chosen() -> None:
    none = Tool("none", "", {}, strict=False)
    assert options([none], may_answer=True) == {"none!": None, "none": none}
    assert options([none], may_answer=False) == {"none": none}
