"""Each rule of chat completions refuses what breaks it, in the API's words, and accepts its legal neighbour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from pollux_like.simulator import Simulator
from pollux_like.testing.script import say, think

Ask = Callable[..., httpx2.Response]
USER = {"role": "user", "content": "Hi"}
USE: dict[str, Any] = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ASKED = {"role": "assistant", "content": None, "tool_calls": [USE]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def refused(response: httpx2.Response, message: str, param: str | None = None, status: int = 400) -> None:
    assert response.status_code == status, response.text
    assert message in response.json()["error"]["message"]
    if param is not None:
        assert response.json()["error"]["param"] == param


def accepted(response: httpx2.Response) -> None:
    assert response.status_code == 200, response.text


UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
)


@pytest.mark.parametrize(
    ("messages", "message", "param"),
    [
        ([USER, ASKED], UNANSWERED, "messages.[2].role"),
        ([USER, ASKED, USER], UNANSWERED, "messages.[2].role"),
        ([USER, {**ASKED, "tool_calls": [USE, {**USE, "id": "c2"}]}, RESULT, USER], "response messages: c2", None),
        ([USER, RESULT], "messages with role 'tool' must be a response to a preceeding message", "messages.[1].role"),
        ([USER, ASKED, RESULT, USER, RESULT], "messages with role 'tool' must be a response", "messages.[4].role"),
        ([{"role": "narrator", "content": "x"}], "Invalid value: 'narrator'.", "messages[0].role"),
        ([{"role": "user", "content": None}], "expected a string, got null", "messages.[0].content"),
        ([USER, {"role": "assistant", "content": None}], "expected a string, got null", "messages.[1].content"),
        ([USER, {**ASKED, "tool_calls": []}], "Invalid 'messages[1].tool_calls': empty array.", None),
        (
            [USER, {**ASKED, "tool_calls": [{**USE, "function": {"name": "f", "arguments": {}}}]}, RESULT],
            "Invalid type for 'messages[1].tool_calls[0].function.arguments'",
            None,
        ),
    ],
)
def test_messages(chat: Ask, messages: Any, message: str, param: str | None) -> None:
    refused(chat(messages=messages, tools=[TOOL]), message, param)


@pytest.mark.parametrize(
    "messages",
    [
        [USER, ASKED, RESULT],
        [USER, {**ASKED, "content": ""}, RESULT, USER],
        [USER, {**ASKED, "tool_calls": [USE, {**USE, "id": "c2"}]}, {**RESULT, "tool_call_id": "c2"}, RESULT],
        [USER, {"role": "assistant", "content": None, "refusal": "No."}, USER],
        [USER, {"role": "assistant", "content": "x", "refusal": None, "annotations": []}, USER],
        [{"role": "developer", "content": "x"}, USER],
    ],
)
def test_messages_that_are_legal(chat: Ask, messages: Any) -> None:
    accepted(chat(messages=messages, tools=[TOOL]))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"frobnicate": 1}, "Unrecognized request argument supplied: frobnicate"),
        ({"messages": []}, "Missing required parameter: 'messages'."),
        ({"model": None}, "you must provide a model parameter"),
        ({"max_tokens": 5, "model": "gpt-5.5"}, "Use 'max_completion_tokens' instead."),
        ({"temperature": 0.5, "model": "gpt-5.5"}, "Unsupported parameter: 'temperature'"),
        ({"tools": [TOOL], "model": "gpt-6.1-sol"}, "in /v1/chat/completions"),
        ({"tools": [TOOL, TOOL]}, "the tool name 'f' is used twice"),
        ({"tool_choice": "auto"}, "'tool_choice' is only allowed when 'tools' are specified."),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
            "'g' is not one of the tools",
        ),
    ],
)
def test_parameters(chat: Ask, body: dict[str, Any], message: str) -> None:
    refused(chat(**body), message)


def test_parameters_that_are_legal(chat: Ask) -> None:
    accepted(chat(max_tokens=5, temperature=0.5, stop=["x"], seed=1))
    accepted(chat(model="gpt-5.5", max_completion_tokens=5, reasoning_effort="low"))
    accepted(chat(tools=[TOOL], tool_choice={"type": "function", "function": {"name": "f"}}))


def test_unknown_models_are_not_found(http: httpx2.Client) -> None:
    with Simulator(models=["gpt-x"]) as sim:
        body = {"model": "gpt-y", "messages": [USER]}
        response = http.post(sim.base_url("chat") + "/chat/completions", json=body)
    refused(response, "The model `gpt-y` does not exist or you do not have access to it.", status=404)
    assert response.json()["error"]["code"] == "model_not_found"


def test_reasoning_is_shown_as_compatible_servers_show_it(sim: Simulator, chat: Ask) -> None:
    sim.reply(think("Let me see"), say("Yes"), times=2)
    assert chat().json()["choices"][0]["message"]["reasoning_content"] == "Let me see"
    assert '"reasoning_content":"Let"' in chat(stream=True).text
