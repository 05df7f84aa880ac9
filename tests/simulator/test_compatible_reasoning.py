"""DeepSeek, Kimi and Qwen: reasoning that must come back, forced calls while thinking, each in the server's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import httpx2
import openai
import pytest

from pollux_like.simulator import Simulator
from pollux_like.testing.script import call, say, think

Ask: TypeAlias = Callable[..., httpx2.Response]
USER = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
NAMED = {"type": "function", "function": {"name": "f"}}
USE = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
BARE = {"role": "assistant", "content": None, "tool_calls": [USE]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
OFF = {"thinking": {"type": "disabled"}}
V4 = "The `reasoning_content` in the thinking mode must be passed back to the API."
V3 = (
    "Missing `reasoning_content` field in the assistant message at message index 1. For more information, please refer "
    "to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"
)
KIMI = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
QWEN = (
    "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or "
    "object in thinking mode"
)


@pytest.fixture
def server(sim: Simulator, http: httpx2.Client) -> Ask:
    """POST …/chat/completions of a server by name; messages are filled in."""

    def ask(name: str, model: str, **body: Any) -> httpx2.Response:
        return http.post(
            sim.base_url(name) + "/chat/completions", json={"model": model, "messages": [USER], "tools": [TOOL], **body}
        )

    return ask


def refused(response: httpx2.Response, message: str) -> dict[str, Any]:
    assert response.status_code == 400, response.text
    error: dict[str, Any] = response.json()["error"]
    assert error["message"] == message
    assert error["type"] == "invalid_request_error"
    return error


@pytest.mark.parametrize(
    ("name", "model", "message"),
    [
        ("deepseek", "deepseek-v4-flash", V4), ("deepseek", "deepseek-reasoner", V3), ("kimi", "kimi-k2.6", KIMI),
        ("kimi", "kimi-k3", KIMI),
    ],
)  # fmt: skip
def test_a_call_without_its_reasoning(server: Ask, name: str, model: str, message: str) -> None:
    refused(server(name, model, messages=[USER, BARE, RESULT]), message)
    later = [USER, BARE, RESULT, {"role": "assistant", "content": "x", "reasoning_content": "r"}, USER]
    refused(server(name, model, messages=later), message)
    for text in ("", "r", "edited"):  # recorded: it is text, not a seal
        assert server(name, model, messages=[USER, {**BARE, "reasoning_content": text}, RESULT]).status_code == 200
    assert server(name, model, messages=[USER, {"role": "assistant", "content": "x"}, USER]).status_code == 200
    assert server(name, model, messages=[USER, BARE, RESULT], **OFF).status_code == 200


@pytest.mark.parametrize(
    ("name", "model"), [("deepseek", "deepseek-chat"), ("kimi", "moonshot-v1-128k"), ("qwen", "qwen-plus")]
)
def test_models_that_do_not_think_ask_for_nothing(server: Ask, name: str, model: str) -> None:
    assert server(name, model, messages=[USER, BARE, RESULT], tool_choice="required").status_code == 200


@pytest.mark.parametrize(
    ("name", "model", "choice", "message"),
    [
        ("deepseek", "deepseek-v4-flash", "required", "Thinking mode does not support this tool_choice"),
        ("deepseek", "deepseek-v4-flash", NAMED, "Thinking mode does not support this tool_choice"),
        ("kimi", "kimi-k2.6", "required", "tool_choice 'required' is incompatible with thinking enabled"),
        ("kimi", "kimi-k2.6", NAMED, "tool_choice 'specified' is incompatible with thinking enabled"),
        ("kimi", "kimi-k3", NAMED, "tool_choice 'specified' is incompatible with thinking enabled"),
        ("kimi", "kimi-k3", "required", None),
        ("qwen", "qwen3.6-plus", "required", QWEN),
        ("qwen", "qwen3.6-plus", NAMED, QWEN),
    ],
)
def test_forced_calls_while_it_thinks(server: Ask, name: str, model: str, choice: Any, message: str | None) -> None:
    response = server(name, model, tool_choice=choice)
    if message is None:
        assert response.status_code == 200
    else:
        refused(response, message)
    assert server(name, model, tool_choice=choice, enable_thinking=False, **OFF).status_code == 200
    assert server(name, model, tool_choice="auto").status_code == 200


def test_what_an_error_has(server: Ask) -> None:
    assert set(refused(server("kimi", "kimi-k3", messages=[USER, BARE, RESULT]), KIMI)) == {"message", "type"}
    deepseek = refused(server("deepseek", "deepseek-v4-pro", messages=[USER, BARE, RESULT]), V4)
    assert (deepseek["code"], deepseek["param"]) == ("invalid_request_error", None)
    qwen = refused(server("qwen", "qwen3.6-plus", tool_choice="required"), QWEN)
    assert (qwen["code"], qwen["param"]) == ("invalid_parameter_error", None)


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("deepseek", 400, "Model Not Exist"),
        ("kimi", 404, "Not found the model m2"),
        ("qwen", 404, "The model `m2` does not"),
    ],
)
def test_models_and_keys_that_are_unknown(http: httpx2.Client, name: str, status: int, words: str) -> None:
    with Simulator(models=["m1"], api_key="sim-key") as sim:
        address = sim.base_url(name) + "/chat/completions"
        response = http.post(address, json={"model": "m2", "messages": [USER]})
        assert (response.status_code, response.json()["error"]["message"].startswith(words)) == (status, True)
        response = http.post(
            address, json={"model": "m1", "messages": [USER]}, headers={"authorization": "Bearer no-key"}
        )
        assert response.status_code == 401
        assert "no-key" not in response.text
        with openai.OpenAI(base_url=sim.base_url(name), api_key="sim-key") as client:
            assert [model.id for model in client.models.list()] == ["m1"]


@pytest.mark.parametrize("name", ["deepseek", "kimi", "qwen"])
def test_pairing_is_theirs_too(server: Ask, name: str) -> None:
    response = server(name, "m", messages=[USER, {**BARE, "reasoning_content": ""}, USER])
    assert "must be followed by tool messages" in response.json()["error"]["message"]


def test_unknown_members_are_theirs_to_ignore(server: Ask) -> None:
    assert server("deepseek", "deepseek-v4-pro", frobnicate=1).status_code == 200


@pytest.mark.parametrize("streamed", [False, True])
def test_answers_show_reasoning_and_number_the_calls(sim: Simulator, streamed: bool) -> None:
    sim.reply(think("Hm"), say("I look."), call("f", {}, id="c1"), call("f", {}, id="c2"))
    with openai.OpenAI(base_url=sim.base_url("deepseek"), api_key="k") as client:
        given: Any = {"model": "deepseek-v4-flash", "messages": [USER], "tools": [TOOL]}
        if streamed:
            deltas = [
                chunk.choices[0].delta.model_dump() for chunk in client.chat.completions.create(**given, stream=True)
            ]
            text = "".join(delta.get("reasoning_content") or "" for delta in deltas)
            numbers = sorted({one["index"] for delta in deltas for one in delta.get("tool_calls") or ()})
        else:
            message = client.chat.completions.create(**given).choices[0].message.model_dump()
            text, numbers = message["reasoning_content"], [one["index"] for one in message["tool_calls"]]
    assert (text, numbers) == ("Hm", [0, 1])
