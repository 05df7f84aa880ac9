"""OpenAI's Responses API as recorded."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from pollux_like import Environment, Message, ToolCall, ToolDeclaration

from .shape import Asked, Dialect, Expected, passages, text_of, without_nulls

OMITTED_THERE = {
    "request.store": "the recording's client leaves the default, true; we say false, or true where a test asks for it",
    "request.include": "store: false needs the encrypted reasoning, so we ask for it; the client left it to the server",
    "message.phase": "that client drops the marker of commentary and final answer; OpenAI asks for it back",
    "message.id": "that client drops the ids of items; ours go back as they came",
    "function_call.id": "as message.id",
    "function_call.status": "that client drops the status of items; ours goes back as it came",
    "reasoning.id": "as message.id",
    "reasoning.content": "that client drops the empty list; ours goes back as it came",
    "string.description": "strict schemas have no defaults: we say them in the description instead",
    "output_text.annotations": "that client drops the empty list; ours goes back as it came",
    "output_text.logprobs": "that client drops the empty list; ours goes back as it came",
}
OMITTED_HERE = {
    "string.default": "see string.description above",
    "function_call_output.status": "optional on input; a result that is given is complete",
    "message.id": "the reasoning before it was on the server only, and an id is checked against it (see `meaning`)",
}


def asked(body: Mapping[str, Any]) -> Asked:
    """Every member of the recorded body in our words; one without a word of ours fails."""
    rest = {key: value for key, value in body.items() if value is not None}
    arguments: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for theirs, ours in (("max_output_tokens", "max_tokens"), ("temperature", "temperature"), ("top_p", "top_p"),
                         ("parallel_tool_calls", "parallel_tool_calls"), ("tool_choice", "tool_choice")):  # fmt: skip
        if theirs in rest:
            arguments[ours] = rest.pop(theirs)
    reasoning = dict(rest.pop("reasoning", {}))
    if "effort" in reasoning:
        arguments["reasoning_effort"] = reasoning.pop("effort")
    if reasoning:
        options["reasoning"] = reasoning
    if "text" in rest:
        form = rest.pop("text")["format"]
        assert (form["type"], form["strict"]) == ("json_schema", True)
        arguments["output"] = form["schema"]
    tools = rest.pop("tools", [])
    functions = [tool for tool in tools if tool["type"] == "function"]
    if len(functions) < len(tools):
        options["tools"] = [tool for tool in tools if tool["type"] != "function"]
    # An absent `strict` lets OpenAI make the schema strict; we do that ourselves.
    declared = [
        ToolDeclaration(tool["name"], tool.get("description") or "", tool["parameters"], tool.get("strict", True))
        for tool in functions
    ]
    assert rest.pop("include", ["reasoning.encrypted_content"]) == ["reasoning.encrypted_content"]
    environment = Environment(instructions=rest.pop("instructions", None) or None, tools=declared)
    streaming, previous = rest.pop("stream", False), rest.pop("previous_response_id", None)
    if rest.pop("store", False) and "include" in body:  # what we ask for by ourselves only where nothing is stored
        options["include"] = body["include"]
    items, unsaid = _items(rest.pop("input"))
    model = rest.pop("model")
    assert not rest, f"members of the recorded request without a word of ours: {sorted(rest)}"
    return Asked(model, environment, arguments, options, streaming, passages(items), previous, tuple(unsaid))


def _items(value: Any) -> tuple[list[tuple[str, Any]], list[dict[str, Any]]]:
    items: list[tuple[str, Any]] = []
    unsaid: list[dict[str, Any]] = []
    for item in value:
        kind = item.get("type", "message")
        if kind in ("function_call_output", "custom_tool_call_output"):
            items.append(("said", Message("tool", item["output"], tool_call_id=item["call_id"])))
        elif kind == "message" and item["role"] == "user":
            text = text_of(item["content"])
            if text is None:
                unsaid.append(item)
            else:
                items.append(("said", Message("user", text)))
        else:
            items.append(("replied", item))
    return items, unsaid


def expected(body: Any, events: list[dict[str, Any]]) -> Expected:
    """From the body, or from the events that carry whole items and the terminal response."""
    response = body
    if events:
        response = events[-1]["response"]
        done = [event for event in events if event["type"] == "response.output_item.done"]
        output = [event["item"] for event in sorted(done, key=lambda event: event["output_index"])]
    else:
        output = response["output"]
    messages = [item for item in output if item["type"] == "message"]
    parts = [[p["text"] for p in item["content"] if p["type"] == "output_text"] for item in messages]
    refusals = [p["refusal"] for item in messages for p in item["content"] if p["type"] == "refusal"]
    thoughts = [p["text"] for item in output if item["type"] == "reasoning" for p in item["summary"]]
    usage = response["usage"]
    return Expected(
        tuple(output),
        "\n\n".join(text for text in map("".join, parts) if text),
        "\n\n".join(thoughts),
        "\n\n".join(refusals) or None,
        tuple((c.id, c.name, c.arguments_text) for c in map(call, output) if c is not None),
        (response.get("incomplete_details") or {}).get("reason") or response["status"],
        (usage["input_tokens"], usage["output_tokens"], usage["input_tokens_details"]["cached_tokens"],
         usage["output_tokens_details"]["reasoning_tokens"]),
        response["id"],
        response["model"],
    )  # fmt: skip


def call(item: dict[str, Any]) -> ToolCall | None:
    """An item as the call that the caller sees."""
    if item.get("type") == "function_call":
        return ToolCall(item["call_id"], item["name"], item["arguments"])
    if item.get("type") == "custom_tool_call":
        return ToolCall(item["call_id"], item["name"], None, {"input": item["input"]})
    return None


def portable(items: tuple[dict[str, Any], ...]) -> Message | None:
    """Assistant text and hand-built calls; an item with an id or of another type is the provider's own."""
    if any("id" in item or item.get("type", "message") not in ("message", "function_call") for item in items):
        return None
    texts = [text_of(item["content"]) or "" for item in items if "content" in item]
    return Message("assistant", "\n\n".join(texts), tuple(c for c in map(call, items) if c is not None))


def meaning(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body in the common form."""
    result = without_nulls(copy.deepcopy(dict(body)))
    if result.get("stream") is False:  # the default
        del result["stream"]
    if result.get("instructions") == "":  # no instructions
        del result["instructions"]
    if "format" in result.get("text", {}):  # a schema that is given as a dict has no name of its own
        result["text"]["format"].pop("name")
    for tool in result.get("tools", []):
        if tool.get("description") == "":  # no description
            del tool["description"]
    items: list[dict[str, Any]] = []
    for item in result["input"]:
        if "role" in item:
            item["type"] = "message"  # implied by the role
            kind = "output_text" if item["role"] == "assistant" else "input_text"
            if isinstance(item["content"], str):  # a string stands for one text part
                item["content"] = [{"type": kind, "text": item["content"]}]
        if item["type"] == "function_call":  # some clients write the arguments anew; the value is what counts here
            item["arguments"] = json.loads(item["arguments"])
        if item["type"] == "reasoning" and "encrypted_content" not in item:
            continue  # names what the server remembers; we keep nothing there, and ask for the encrypted content
        items.append(item)
    result["input"] = items
    return result


def accepted_tools(body: dict[str, Any], answer: Any, events: list[dict[str, Any]]) -> dict[str, Any]:
    """Where `strict` is absent OpenAI writes the schema anew, and the answer shows it: that is what we must send."""
    response = next((event["response"] for event in events if "response" in event), answer)
    echoed = {tool["name"]: tool for tool in response.get("tools") or []}
    tools = [
        {**echoed[tool["name"]], "description": tool.get("description")}
        if tool["type"] == "function" and tool.get("strict") is None
        else tool
        for tool in body.get("tools", [])
    ]
    return {**body, "tools": tools} if tools else body


DIALECT = Dialect(
    "responses", asked, expected, meaning, accepted_tools, call, portable, OMITTED_THERE, OMITTED_HERE, "input"
)
