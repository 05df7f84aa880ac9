"""Each rule of the Responses API refuses what breaks it, in the API's words, and accepts its legal neighbour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from pollux_like.simulator import Simulator

Ask = Callable[..., httpx2.Response]
USER = {"role": "user", "content": "Hi"}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
CLOSED: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
CLOSED["additionalProperties"] = False


def tool(name: str = "f", **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}, **more}


def refused(response: httpx2.Response, message: str, code: str | None = None, status: int = 400) -> None:
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert message in error["message"]
    assert list(error) == ["message", "type", "param", "code"]
    if code is not None:
        assert error["code"] == code


def accepted(response: httpx2.Response) -> None:
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        ({"model": None}, "Missing required parameter: 'model'.", "missing_required_parameter"),
        ({"input": []}, "Missing required parameter: 'input'.", "missing_required_parameter"),
        ({"input": 5}, "Invalid type for 'input'", "invalid_type"),
        ({"input": ["x"]}, "Invalid type for 'input[0]'", "invalid_type"),
        ({"messages": []}, "Unknown parameter: 'messages'.", "unknown_parameter"),
        ({"max_output_tokens": 1}, "integer below minimum value. Expected a value >= 16, but got 1 instead.", None),
        ({"temperature": -1, "model": "gpt-4o"}, "decimal below minimum value", "decimal_below_min_value"),
        ({"temperature": 3, "model": "gpt-4o"}, "decimal above maximum value", "decimal_above_max_value"),
        (
            {"top_p": 0.9, "model": "gpt-5-nano"},
            "Unsupported parameter: 'top_p' is not supported with this model.",
            None,
        ),
        ({"temperature": 1}, "Unsupported parameter: 'temperature'", None),
        ({"reasoning": {"effort": "low"}, "model": "gpt-4o"}, "Unsupported parameter: 'reasoning.effort'", None),
        ({"reasoning": {"effort": "none"}, "model": "gpt-6.2-sol"}, "Unsupported value: 'none'", "unsupported_value"),
        ({"tool_choice": "required"}, "must be specified with 'tools' parameter", None),
        (
            {"tool_choice": {"type": "function", "name": "g"}, "tools": [tool()]},
            "Tool choice 'function' not found in 'tools' parameter.",
            None,
        ),
        ({"tools": [tool("bad name")]}, "Invalid 'tools[0].name': string does not match pattern.", "invalid_value"),
        ({"tools": [tool("x" * 65)]}, "Invalid 'tools[0].name': string too long.", "string_above_max_length"),
        ({"tools": [{"type": "function"}]}, "Missing required parameter: 'tools[0].name'.", None),
        ({"tools": [tool(), tool()]}, "the tool name 'f' is used twice", None),
        ({"tools": [tool(input_schema={})]}, "Unknown parameter: 'tools[0].input_schema'.", "unknown_parameter"),
        ({"tools": [tool(parameters={"type": "array"})]}, "got 'type: \"array\"'", "invalid_function_parameters"),
    ],
)
def test_parameters(gpt: Ask, body: dict[str, Any], message: str, code: str | None) -> None:
    refused(gpt(**body), message, code)


@pytest.mark.parametrize(
    "body",
    [
        {"max_output_tokens": 16, "metadata": {}, "user": "u", "truncation": "auto", "include": []},
        {"temperature": 0.5, "top_p": 0.9, "model": "gpt-4o"},
        {"temperature": 0.5, "reasoning": {"effort": "none"}, "model": "gpt-5.5"},
        {"reasoning": {"effort": "high", "summary": "auto"}, "model": "gpt-6.2-sol"},
        {"tools": [tool("x" * 64)], "tool_choice": {"type": "function", "name": "x" * 64}},
        {"tools": [{"type": "web_search"}, {"type": "custom", "name": "note"}]},
    ],
)
def test_parameters_that_are_legal(gpt: Ask, body: dict[str, Any]) -> None:
    accepted(gpt(**body))


@pytest.mark.parametrize(
    ("item", "message", "code"),
    [
        ({"type": "nonsense"}, "Invalid value: 'nonsense'.", "invalid_value"),
        ({**USER, "odd": 1}, "Unknown parameter: 'input[0].odd'.", "unknown_parameter"),
        ({"role": "tool", "content": "x"}, "Invalid value: 'tool'. Supported values are: 'assistant'", "invalid_value"),
        ({"role": "user"}, "Missing required parameter: 'input[0].content'.", "missing_required_parameter"),
        (
            {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]},
            "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
            "invalid_value",
        ),
        ({"role": "user", "content": [{"type": "output_text", "text": "x"}]}, "Invalid value: 'output_text'.", None),
        ({**CALL, "id": "call_1"}, "Invalid 'input[0].id': 'call_1'. Expected an ID that begins with 'fc'.", None),
        ({"type": "message", **USER, "id": "rs_1"}, "Expected an ID that begins with 'msg'.", None),
        ({"type": "reasoning", "summary": [], "id": "x"}, "Expected an ID that begins with 'rs'.", None),
        (
            {**CALL, "call_id": "c" * 116},
            "Invalid 'input[0].call_id': string too long. Expected a string with maximum length 64, but got a string "
            "with length 116 instead.",
            "string_above_max_length",
        ),
        ({**CALL, "arguments": {}}, "Invalid type for 'input[0].arguments'", "invalid_type"),
        ({**CALL, "name": None}, "Missing required parameter: 'input[0].name'.", None),
        ({**OUTPUT, "output": None}, "Missing required parameter: 'input[0].output'.", None),
        ({"type": "reasoning", "encrypted_content": "x"}, "Missing required parameter: 'input[0].summary'.", None),
        (
            {"type": "reasoning", "summary": [], "status": None},
            "Unknown parameter: 'input[0].status'.",
            "unknown_parameter",
        ),
        (
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "x"}]},
            "Invalid 'input[0].content': array too long. Expected an array with maximum length 0, but got an array "
            "with length 1 instead.",
            "array_above_max_length",
        ),
        ({"type": "compaction_trigger"}, "must be the last input item", None),
        (
            {"role": "user", "content": [{"type": "input_file", "file_url": "https://x.example/a.mp3"}]},
            "The file type you uploaded is not supported.",
            "unsupported_file",
        ),
    ],
)
def test_items(gpt: Ask, item: dict[str, Any], message: str, code: str | None) -> None:
    refused(gpt(input=[item, USER]), message, code)


@pytest.mark.parametrize(
    "items",
    [
        [{**CALL, "status": None}, OUTPUT],
        [{**CALL, "id": "fc_1", "status": "completed"}, OUTPUT],
        [{**CALL, "call_id": "c" * 64}, {**OUTPUT, "call_id": "c" * 64}],
        [CALL, {**CALL, "call_id": "c2"}, OUTPUT, {**OUTPUT, "call_id": "c2"}],
        [CALL, OUTPUT, {**CALL, "call_id": "c2"}, {**OUTPUT, "call_id": "c2"}],
        [{"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}}, USER],
        [{"role": "assistant", "content": "x", "phase": "commentary"}, USER],
        [{"role": "developer", "content": [{"type": "input_text", "text": "x"}]}, USER],
        [USER, {"type": "compaction_trigger"}],
    ],
)
def test_items_that_are_legal(gpt: Ask, items: list[dict[str, Any]]) -> None:
    accepted(gpt(input=items))


def test_every_output_needs_its_call_before_it(gpt: Ask) -> None:
    message = "No tool call found for function call output with call_id c1."
    refused(gpt(input=[USER, OUTPUT]), message)
    refused(gpt(input=[OUTPUT, CALL]), message)
    refused(gpt(input=[{**OUTPUT, "type": "custom_tool_call_output"}]), message)


def test_every_call_needs_its_output(gpt: Ask) -> None:
    refused(gpt(input=[USER, CALL]), "No tool output found for function call c1.")
    refused(gpt(input=[CALL, {**CALL, "call_id": "c2"}, OUTPUT]), "No tool output found for function call c2.")
    accepted(gpt(input=[USER, CALL, OUTPUT]))


def test_keys_models_and_windows(http: httpx2.Client, sim: Simulator) -> None:
    bare = httpx2.post(sim.base_url("openai") + "/responses", json={"model": "m", "input": "x"})
    refused(bare, "You didn't provide an API key.", status=401)
    with Simulator(api_key="right", models=["gpt-x"], max_input_tokens=200) as strict:
        url = strict.base_url("openai") + "/responses"
        right = {"authorization": "Bearer right"}
        refused(http.post(url, json={"model": "gpt-x", "input": "x"}), "Incorrect API key", "invalid_api_key", 401)
        missing = http.post(url, json={"model": "gpt-y", "input": "x"}, headers=right)
        refused(missing, "The requested model 'gpt-y' does not exist.", "model_not_found")
        long = http.post(url, json={"model": "gpt-x", "input": "word " * 300}, headers=right)
        refused(long, "Your input exceeds the context window", "context_length_exceeded")
        accepted(http.post(url, json={"model": "gpt-x", "input": "x"}, headers=right))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            {**CLOSED, "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
            "In context=(), 'required' is required to be supplied and to be an array including every key in "
            "properties. Missing 'b'.",
        ),
        (
            {**CLOSED, "additionalProperties": True},
            "In context=(), 'additionalProperties' is required to be supplied and to be false.",
        ),
        (
            {**CLOSED, "properties": {"a": {"type": "object", "properties": {}}}},
            "In context=('properties', 'a'), 'additionalProperties' is required",
        ),
        (
            {**CLOSED, "required": ["a", "z"]},
            "In context=(), 'required' is required to be supplied and to be an array including every key in "
            "properties. Extra required key 'z' supplied.",
        ),
        ({"anyOf": [CLOSED]}, "schema must be a JSON Schema of 'type: \"object\"'"),
    ],
)
def test_strict_schemas(gpt: Ask, chat: Ask, schema: dict[str, Any], message: str) -> None:
    strict = tool(parameters=schema, strict=True)
    refused(gpt(tools=[strict]), f"Invalid schema for function 'f': {message}", "invalid_function_parameters")
    named = {"name": "N", "schema": schema, "strict": True}
    refused(
        gpt(text={"format": {"type": "json_schema", **named}}), f"Invalid schema for response_format 'N': {message}"
    )
    wanted = {"type": "json_schema", "json_schema": named}
    refused(chat(response_format=wanted), f"Invalid schema for response_format 'N': {message}")
    function = {"name": "f", "parameters": schema, "strict": True}
    refused(chat(tools=[{"type": "function", "function": function}]), message, "invalid_function_parameters")


def test_strict_schemas_that_are_legal(gpt: Ask, chat: Ask) -> None:
    loose = {"type": "object", "properties": {"a": {}}}
    accepted(gpt(tools=[tool(parameters=CLOSED, strict=True), tool("g", parameters=loose)]))
    accepted(gpt(text={"format": {"type": "json_schema", "name": "N", "schema": loose, "strict": False}}))
    named = {"name": "N", "schema": CLOSED, "strict": True}
    accepted(chat(response_format={"type": "json_schema", "json_schema": named}))
