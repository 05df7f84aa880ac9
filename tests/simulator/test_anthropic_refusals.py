"""Each rule of the Messages API refuses what breaks it, in the API's words, and accepts its legal neighbour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from pollux_like.simulator import Simulator
from pollux_like.testing.script import call, say, think

Ask = Callable[..., httpx2.Response]
TOOL: dict[str, Any] = {"name": "f", "input_schema": {"type": "object"}}
USER = {"role": "user", "content": "Hi"}
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def turns(*contents: Any, first: str = "user") -> list[dict[str, Any]]:
    roles = ("user", "assistant") if first == "user" else ("assistant", "user")
    return [{"role": roles[n % 2], "content": content} for n, content in enumerate(contents)]


def refused(response: httpx2.Response, message: str, status: int = 400) -> None:
    assert response.status_code == status, response.text
    body = response.json()
    assert body["type"] == "error"
    assert message in body["error"]["message"]
    assert body["request_id"].startswith("req_")


def accepted(response: httpx2.Response) -> None:
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"max_tokens": -1}, "max_tokens: Input should be greater than or equal to 0"),
        ({"max_tokens": "9"}, "max_tokens: Input should be a valid integer"),
        ({"model": None}, "model: Field required"),
        ({"messages": []}, "at least one message is required"),
        ({"messages": "Hi"}, "messages: Input should be a valid list"),
        ({"frobnicate": 1}, "frobnicate: Extra inputs are not permitted"),
        ({"context_management": {}}, "context_management: Extra inputs are not permitted"),
        ({"temperature": -5}, "temperature: range: 0..1"),
        ({"temperature": 1.5}, "temperature: range: 0..1"),
        ({"system": [text("")]}, "system: text content blocks must be non-empty"),
        ({"output_config": {"effort": "xhigh"}, "model": "claude-opus-4-6"}, "does not support effort level 'xhigh'"),
        ({"output_config": {"odd": 1}}, "output_config.odd: Extra inputs"),
        ({"messages": [{**USER, "name": "x"}]}, "messages.0.name: Extra inputs are not permitted"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role: Input should be"),
        ({"messages": turns([text("")])}, "text content blocks must be non-empty"),
        ({"messages": turns([text("  ")])}, "must contain non-whitespace text"),
        ({"messages": turns("")}, "all messages must have non-empty content except for the optional final assistant"),
        ({"messages": turns("a", [], "b")}, "messages.1: all messages must have non-empty content"),
        ({"messages": turns([{**text("x"), "odd": 1}])}, "messages.0.content.0.text.odd: Extra inputs"),
        ({"messages": turns([{"type": "odd"}])}, "Input tag 'odd' found using 'type'"),
        ({"messages": turns("Hi", "Hello", first="assistant")}, 'first message must use the "user" role'),
        ({"messages": turns("a", [{"type": "tool_result", "tool_use_id": "x"}], "b")}, "can only be in `user`"),
        ({"messages": turns([USE])}, "can only be in `assistant` messages"),
        ({"messages": turns([{"type": "image", "source": {}, "odd": 1}])}, "messages.0.content.0.image.odd"),
        ({"messages": [USER, {"role": "system", "content": "x"}]}, "role 'system' is not supported on this model"),
    ],
)
def test_shapes(claude: Ask, body: dict[str, Any], message: str) -> None:
    refused(claude(**body), message)


@pytest.mark.parametrize(
    "body",
    [
        {"max_tokens": 0},
        {"temperature": 1},
        {"system": ""},
        {"system": [text("Be brief")], "metadata": {"user_id": "u"}, "stop_sequences": ["x"]},
        {"output_config": {"effort": "xhigh"}, "model": "claude-opus-5"},
        {"messages": [USER, USER, {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}, USER]},
        {"messages": turns("a", "b")},  # prefill on an older model
        {"messages": turns("a", [])},  # an empty final assistant message
        {"messages": [USER, {"role": "system", "content": "x"}], "model": "claude-opus-5"},
        {"messages": turns([{"type": "image", "source": {}}, {**text("x"), "cache_control": {"type": "ephemeral"}}])},
    ],
)
def test_shapes_that_are_legal(claude: Ask, body: dict[str, Any]) -> None:
    accepted(claude(**body))


def test_beta_parameters_need_the_beta_path_or_a_beta_header(claude: Ask) -> None:
    accepted(claude(beta=True, context_management={"edits": []}))
    accepted(claude(headers={"anthropic-beta": "context-management-2025-06-27"}, context_management={"edits": []}))


def test_headers(sim: Simulator, claude: Ask) -> None:
    body = {"model": "claude-haiku-4-5", "max_tokens": 1, "messages": [USER]}
    url = sim.base_url("anthropic") + "/v1/messages"
    refused(httpx2.post(url, json=body, headers={"anthropic-version": "2023-06-01"}), "x-api-key header", 401)
    refused(httpx2.post(url, json=body, headers={"x-api-key": "k"}), "anthropic-version: header is required")
    accepted(httpx2.post(url, json=body, headers={"x-api-key": "k", "anthropic-version": "2023-06-01"}))
    refused(claude(headers={"anthropic-version": "2020-01-01"}), "not a valid version")


def test_the_newest_version_takes_no_sampling_arguments(claude: Ask) -> None:
    modern = {"anthropic-version": "2026-10-21"}
    for name, value in (("temperature", 1), ("top_p", 0.9), ("top_k", 5)):
        refused(claude(headers=modern, **{name: value}), f"{name}: ")
        accepted(claude(**{name: value}))
    refused(claude(headers=modern, messages=turns([{**text("x"), "citations": [{}]}])), "citations")
    document = {"type": "document", "source": {}}
    refused(claude(headers=modern, messages=turns("a", [document, text("x")], "b")), "`document` blocks")
    accepted(claude(headers=modern, messages=turns([document])))


def test_keys_and_models_can_be_named(http: httpx2.Client) -> None:
    with Simulator(api_key="right", models=["claude-x"], max_input_tokens=200) as sim:
        url = sim.base_url("anthropic") + "/v1/messages"
        body: dict[str, Any] = {"model": "claude-x", "max_tokens": 1, "messages": [USER]}
        right = {"x-api-key": "right", "authorization": ""}
        refused(http.post(url, json=body), "invalid x-api-key", 401)
        refused(http.post(url, json={**body, "model": "claude-y"}, headers=right), "model: claude-y", 404)
        long = {**body, "messages": turns("word " * 300)}
        refused(http.post(url, json=long, headers=right), "tokens > 200 maximum")
        accepted(http.post(url, json=body, headers=right))


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ([{"name": "f"}], "tools.0.custom.input_schema: Field required"),
        ([{"name": "f", "input_schema": {}}], "tools.0.custom.input_schema.type: Field required"),
        ([{"name": "f", "input_schema": {"type": "array"}}], "Input should be 'object'"),
        ([{**TOOL, "name": "bad name"}], "tools.0.custom.name: String should match pattern"),
        ([{**TOOL, "name": "x" * 129}], "tools.0.custom.name: String should match pattern"),
        ([TOOL, TOOL], "tools: Tool names must be unique."),
        ([{**TOOL, "parameters": {}}], "tools.0.custom.parameters: Extra inputs are not permitted"),
    ],
)
def test_tools(claude: Ask, tools: Any, message: str) -> None:
    refused(claude(tools=tools), message)


def test_tools_that_are_legal(claude: Ask) -> None:
    accepted(claude(tools=[TOOL, {**TOOL, "name": "x" * 128, "strict": False}]))
    accepted(claude(tools=[{"type": "web_search_20260318", "name": "web_search", "allowed_callers": ["direct"]}]))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"tool_choice": {"type": "tool", "name": "g"}, "tools": [TOOL]}, "Tool 'g' not found in provided tools"),
        ({"tool_choice": {"type": "any"}}, "tool_choice may only be specified while providing tools"),
        ({"tool_choice": {"type": "required"}, "tools": [TOOL]}, "Input tag 'required'"),
        ({"tool_choice": {"type": "auto", "odd": 1}, "tools": [TOOL]}, "tool_choice.auto.odd"),
    ],
)
def test_tool_choice(claude: Ask, body: dict[str, Any], message: str) -> None:
    refused(claude(**body), message)


def test_tool_choice_that_is_legal(claude: Ask) -> None:
    accepted(claude(tools=[TOOL], tool_choice={"type": "tool", "name": "f", "disable_parallel_tool_use": True}))


def test_every_call_needs_its_result_in_the_next_message(claude: Ask) -> None:
    message = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1. Each"
    refused(claude(tools=[TOOL], messages=turns("a", [USE], "b")), message)
    refused(claude(tools=[TOOL], messages=turns("a", [USE])), message)
    two = [USE, {**USE, "id": "t2"}]
    refused(claude(tools=[TOOL], messages=turns("a", two, [RESULT])), "immediately after: t2")
    refused(claude(tools=[TOOL], messages=turns("a", [USE, text("x")], [RESULT])), message)
    refused(claude(tools=[TOOL], messages=turns("a", [USE], [text("first"), RESULT])), message)
    accepted(claude(tools=[TOOL], messages=turns("a", [text("x"), USE], [RESULT, text("after")])))
    both = [{"role": "user", "content": [RESULT]}, {"role": "user", "content": [{**RESULT, "tool_use_id": "t2"}]}]
    accepted(claude(tools=[TOOL], messages=[*turns("a", two), *both]))


def test_every_result_needs_its_call_in_the_message_before(claude: Ask) -> None:
    message = "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1. Each `tool_result`"
    refused(claude(tools=[TOOL], messages=turns([RESULT])), message)
    late = turns("a", [USE], [RESULT], "b", [RESULT])
    refused(claude(tools=[TOOL], messages=late), "messages.4.content.0: unexpected `tool_use_id`")
    refused(claude(tools=[TOOL], messages=turns("a", [USE], [RESULT, RESULT])), "must have a single result")
    refused(claude(tools=[TOOL], messages=turns("a", [USE, USE], [RESULT])), "`tool_use` ids must be unique")
    again = turns("a", [USE], [RESULT], "b", "c", [USE], [RESULT])
    accepted(claude(tools=[TOOL], messages=again))  # an id may come again in a later turn


def test_ids_and_inputs_of_calls(claude: Ask) -> None:
    bad_id = turns("a", [{**USE, "id": "t:1"}], [{**RESULT, "tool_use_id": "t:1"}])
    refused(claude(tools=[TOOL], messages=bad_id), "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    bad_input = turns("a", [{**USE, "input": "{}"}], [RESULT])
    refused(claude(tools=[TOOL], messages=bad_input), "tool_use.input: Input should be a valid dictionary")
    server = {"type": "server_tool_use", "id": "t1", "name": "web_search", "input": {}}
    refused(claude(messages=turns("a", [server, text("x")], "b")), "server_tool_use.id: String should match pattern")


def test_tool_blocks_need_declared_tools(claude: Ask, http: httpx2.Client) -> None:
    messages = turns("a", [USE], [RESULT])
    refused(claude(messages=messages), "must have tools defined")
    with Simulator(tools_required=False) as sim:
        body = {"model": "claude-haiku-4-5", "max_tokens": 5, "messages": messages}
        accepted(http.post(sim.base_url("anthropic") + "/v1/messages", json=body))


def test_server_tools_may_stay_in_flight(claude: Ask) -> None:
    server = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    accepted(claude(tools=[TOOL], messages=turns("a", [server, USE], [RESULT])))
    accepted(claude(tools=[TOOL], messages=turns("a", [server, USE], [RESULT], [result, text("x")], "b")))
    refused(claude(messages=turns("a", [result, text("x")], "b")), "corresponding `server_tool_use` block")


def test_no_prefill_on_newer_models_but_a_paused_turn(claude: Ask) -> None:
    model = "claude-sonnet-4-6"
    refused(claude(model=model, messages=turns("a", "b")), "does not support assistant message prefill")
    server = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    accepted(claude(model=model, messages=turns("a", [text("b"), server])))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"thinking": {"type": "enabled"}}, "thinking.enabled.budget_tokens: Field required"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1000}}, "greater than or equal to 1024"),
        ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, "`max_tokens` must be greater than"),
        ({"thinking": {"type": "on"}}, "thinking: Input tag 'on'"),
        ({"thinking": {"type": "adaptive"}}, "adaptive thinking is not supported on this model"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "tools": [TOOL], "tool_choice": {"type": "any"}},
            "Thinking may not be enabled when tool_choice forces tool use.",
        ),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "model": "claude-opus-4-7"},
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and',
        ),
        (
            {"thinking": {"type": "disabled"}, "model": "claude-opus-5-5"},
            '"thinking.type.disabled" is not supported for this model.',
        ),
        ({"tools": [TOOL], "tool_choice": {"type": "any"}, "model": "claude-fable-5-1"}, "tool_choice forces tool use"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "temperature": 0.5},
            "`temperature` may only be set to 1 when thinking is enabled",
        ),
        ({"temperature": 0.5, "model": "claude-sonnet-5"}, "`temperature` may only be set to 1"),
        ({"thinking": {"type": "adaptive", "budget_tokens": 5}, "model": "claude-opus-5"}, "adaptive.budget_tokens"),
    ],
)
def test_thinking_configurations(claude: Ask, body: dict[str, Any], message: str) -> None:
    refused(claude(**body), message)


@pytest.mark.parametrize(
    "body",
    [
        {"thinking": {"type": "enabled", "budget_tokens": 1024}, "temperature": 1},
        {"thinking": {"type": "adaptive", "display": "omitted"}, "model": "claude-opus-5-5"},
        {"thinking": {"type": "disabled"}, "model": "claude-sonnet-4-6", "temperature": 0.2},
        {
            "thinking": {"type": "adaptive"},
            "model": "claude-sonnet-4-6",
            "tools": [TOOL],
            "tool_choice": {"type": "auto"},
        },
        {"tools": [TOOL], "tool_choice": {"type": "any"}, "model": "claude-sonnet-5"},
    ],
)
def test_thinking_configurations_that_are_legal(claude: Ask, body: dict[str, Any]) -> None:
    accepted(claude(**body))


def test_interleaved_thinking_may_exceed_max_tokens(claude: Ask) -> None:
    thinking = {"type": "enabled", "budget_tokens": 9000}
    accepted(claude(headers={"anthropic-beta": "interleaved-thinking-2025-05-14"}, thinking=thinking))


def test_a_tool_loop_under_a_budget_starts_with_thinking(sim: Simulator, claude: Ask) -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    made = turns("a", [USE], [RESULT])
    message = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When"
    refused(claude(thinking=thinking, tools=[TOOL], messages=made), message)
    accepted(claude(thinking={"type": "adaptive"}, model="claude-sonnet-4-6", tools=[TOOL], messages=made))
    sim.reply(think("Hm"), call("f", {}, id="t1"))
    content = claude(thinking=thinking, tools=[TOOL]).json()["content"]
    accepted(claude(thinking=thinking, tools=[TOOL], messages=turns("Hi", content, [RESULT])))
    refused(claude(thinking=thinking, tools=[TOOL], messages=turns("Hi", content[1:], [RESULT])), "Expected `thinking`")


def test_the_exact_echo_of_a_turn_without_thinking_is_legal(sim: Simulator, claude: Ask) -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    sim.reply(say("At once"), call("f", {}))
    content = claude(thinking=thinking, tools=[TOOL]).json()["content"]
    result = {**RESULT, "tool_use_id": content[1]["id"]}
    accepted(claude(thinking=thinking, tools=[TOOL], messages=turns("Hi", content, [result])))


def test_thinking_off_with_thinking_in_the_open_turn(sim: Simulator, claude: Ask) -> None:
    sim.reply(think("Hm"), call("f", {}, id="t1"))
    content = claude(tools=[TOOL]).json()["content"]
    refused(claude(tools=[TOOL], messages=turns("Hi", content, [RESULT])), "When thinking is disabled, an `assistant`")
    done = turns("Hi", content, [RESULT], "Done", "Next")
    accepted(claude(tools=[TOOL], messages=done))


def test_places_of_thinking_blocks(sim: Simulator, claude: Ask) -> None:
    sim.reply(think("Hm"), say("Yes"))
    thought, said = claude().json()["content"]
    message = "messages.1.content.0: If an assistant message contains any thinking blocks, the first block must be"
    refused(claude(messages=turns("Hi", [said, thought, said], "b")), message)
    refused(
        claude(messages=turns("Hi", [thought], "b")), "The final block in an assistant message cannot be `thinking`"
    )
    accepted(claude(messages=turns("Hi", [thought, said], "b")))
