"""What is asked for is sent or refused; and where it is sent to."""

from __future__ import annotations

import json
import sys
from typing import Any

import httpx2
import openai
import pytest
from pollux_like_openrouter.adapter import connect
from wires import ENV, ask, chat_sse, completion, watched

from pollux_like import Config, ConfigurationError, Environment, Input, Message, ToolCall, registry
from pollux_like.provider import Wire
from pollux_like.wire_ids import wire_name

pytestmark = pytest.mark.anyio

GPT = "openai/gpt-5.2"


async def sent(router: Any, model: str = GPT, environment: Environment = ENV, **arguments: Any) -> dict[str, Any]:
    server = router(completion({"content": "Hi."}))
    await ask(server.config(model), "Hi", environment, **arguments)
    return dict(server.sent[0])


def options(**given: Any) -> dict[str, Any]:
    return {"provider_options": {"openrouter": given}}


async def test_the_reasoning_arguments_become_one_member(router: Any) -> None:
    assert (await sent(router, reasoning_effort="high"))["reasoning"] == {"effort": "high"}
    assert (await sent(router, reasoning_budget_tokens=2000))["reasoning"] == {"max_tokens": 2000}
    both = await sent(router, reasoning_effort="max", **options(reasoning={"exclude": True}))
    assert both["reasoning"] == {"exclude": True, "effort": "max"}
    assert (await sent(router, **options(reasoning={"enabled": True})))["reasoning"] == {"enabled": True}
    plain = await sent(router)
    assert not {"reasoning", "reasoning_effort", "stream", "stream_options"} & plain.keys()


async def test_every_setting_is_sent(router: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    server = router(completion({"content": '{"a":"b"}'}))
    await ask(
        server.config(GPT), "Hi", max_tokens=9, temperature=0.5, top_p=0.5, seed=3, stop=["x"], output=schema,
        tool_choice="required", parallel_tool_calls=False,
    )  # fmt: skip
    body = server.sent[0]
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    known = {"max_tokens": 9, "temperature": 0.5, "top_p": 0.5, "seed": 3, "stop": ["x"], "tool_choice": "required",
             "parallel_tool_calls": False}  # fmt: skip
    assert {key: body[key] for key in known} == known
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["tools"][0]["function"] == {
        "name": "f", "description": "F", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    }  # fmt: skip


async def test_routing_is_up_to_the_caller(router: Any) -> None:
    routing = {"provider": {"order": ["OpenAI"]}, "models": [GPT], "route": "fallback", "transforms": ["middle-out"],
               "plugins": [{"id": "web"}]}  # fmt: skip
    body = await sent(router, **options(**routing))
    assert {key: body[key] for key in routing} == routing


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"reasoning_effort": "low", "reasoning_budget_tokens": 9}, "both are given"),
        ({"reasoning_effort": "low", **options(reasoning={"max_tokens": 9})}, r"reasoning\.max_tokens"),
        ({"reasoning_budget_tokens": 9, **options(reasoning={"effort": "low"})}, r"reasoning\.effort"),
        (options(reasoning="high"), "reasoning"),
        (options(messages=[]), "'messages'"),
        (options(reasoning_effort="low"), "'reasoning_effort'"),
        ({"stop": list("abcde")}, "stop sequences"),
    ],
)
async def test_what_cannot_be_said_is_refused(router: Any, arguments: dict[str, Any], reason: str) -> None:
    server = router()
    with pytest.raises(ConfigurationError, match=reason):
        await ask(server.config(GPT), "Hi", **arguments)
    assert server.requests == []


@pytest.mark.parametrize("reasoning", [{"reasoning_effort": "low"}, {"reasoning_budget_tokens": 1024}])
async def test_a_forced_call_would_silence_the_reasoning_of_claude(router: Any, reasoning: dict[str, Any]) -> None:
    server = router()
    with pytest.raises(ConfigurationError, match="while it reasons"):
        await ask(server.config(), "Hi", tool_choice="required", **reasoning)
    assert (await sent(router, GPT, tool_choice="required", **reasoning))["tool_choice"] == "required"


async def test_usage_with_its_details_and_without_the_cost(router: Any) -> None:
    usage = {
        "prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70, "cost": 0.5, "is_byok": False,
        "prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 12}, "cost_details": {"upstream_inference_cost": 0.5},
    }  # fmt: skip
    last = {"id": "gen-1", "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}], "usage": usage}
    server = router(chat_sse({"content": "Hi."}, last=last), completion({"content": "Hi."}, usage=usage))
    streamed, events = await watched(server.config(), "Hi")
    whole = await ask(server.config(), "Hi")
    for output in (streamed, whole):
        used = output.usage
        assert (used.input_tokens, used.output_tokens, used.cached_tokens, used.cache_write_tokens) == (50, 20, 30, 10)
        assert used.reasoning_tokens == 12
    assert [event.type for event in events].count("finish") == 1
    assert "stream_options" not in server.sent[0]


@pytest.mark.parametrize(
    ("given", "variable", "expected"),
    [
        (None, None, "https://openrouter.ai/api/v1"),
        (None, "https://proxy.invalid/v1/", "https://proxy.invalid/v1"),
        ("https://mine.invalid", "https://proxy.invalid/v1", "https://mine.invalid"),
    ],
)
async def test_where_requests_go(
    monkeypatch: pytest.MonkeyPatch, given: str | None, variable: str | None, expected: str
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-v1")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://openai.invalid")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-private")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-private")
    monkeypatch.delenv("OPENROUTER_BASE_URL", raising=False)
    if variable:
        monkeypatch.setenv("OPENROUTER_BASE_URL", variable)
    config = Config("openrouter", GPT, base_url=given)
    assert registry.vendor_of(config).endpoint(config) == expected
    adapter = connect(config)
    client: openai.AsyncOpenAI = adapter._client
    assert (str(client.base_url).rstrip("/"), client.api_key, client.max_retries) == (expected, "sk-or-v1", 0)
    seen: list[httpx2.Request] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json=completion({"content": "Hi."}))

    monkeypatch.setattr(
        client, "_client", httpx2.AsyncClient(transport=httpx2.MockTransport(handle), base_url=expected)
    )
    wire = registry.vendor_of(config).render(_request())
    async with adapter.open(wire, timeout_s=5) as items:
        assert [type(item).__name__ async for item in items] == ["Reply"]
    (request,) = seen
    assert str(request.url) == f"{expected}/chat/completions"
    assert request.headers["authorization"] == "Bearer sk-or-v1"
    assert "private" not in str(request.headers)


def _request() -> Any:
    from pollux_like import Message
    from pollux_like.provider import Request

    return Request(GPT, (), (Message("user", "Hi"),), streaming=False)


async def test_a_missing_key_is_named() -> None:
    with pytest.raises(ConfigurationError, match="OPENROUTER_API_KEY"):
        await ask(Config("openrouter", GPT), Input("Hi"))
    with pytest.raises(ConfigurationError, match="OPENROUTER_BASE_URL"), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENROUTER_API_KEY", "sk-or-v1")
        patch.setenv("OPENROUTER_BASE_URL", "nowhere")
        await ask(Config("openrouter", GPT), Input("Hi"))


def test_the_body_is_the_wire_of_every_attempt() -> None:
    config = Config("openrouter", GPT, api_key="sk-or-v1")
    wire = registry.vendor_of(config).render(_request())
    assert type(wire) is Wire  # no tools: nothing to check
    assert json.loads(wire.body) == {"model": GPT, "messages": [{"role": "user", "content": "Hi"}]}


async def test_a_conversation_with_calls_has_tools_in_every_request(router: Any) -> None:
    """Source: openrouter.ai/docs, features/tool-calling. Their names alone, and none of them can be called."""
    history = [
        Message("user", "a"),
        Message("assistant", "", (ToolCall("c1", "f", "{}"), ToolCall("c2", "a.b", "{}"))),
        Message("tool", "1", tool_call_id="c1"),
        Message("tool", "2", tool_call_id="c2"),
    ]
    server = router(*[completion({"content": "Hi."})] * 3, models={"data": [{"id": GPT, "supported_parameters": []}]})
    plain = Environment(instructions="Be brief.")
    first = await ask(server.config(GPT), Input(history=history), plain)
    second = await ask(server.config(GPT), Input("b", continuation=first.continuation), plain)
    await ask(server.config(GPT), "c", plain)
    stubs = [wire_name("f"), wire_name("a.b")]
    assert [[one["function"]["name"] for one in body.get("tools", ())] for body in server.sent] == [stubs, stubs, []]
    assert [body.get("tool_choice") for body in server.sent] == ["none", "none", None]
    assert [[one.kind for one in output.notices] for output in (first, second)] == [["tool_stubs"], []]
    assert server.lists == 0  # no tool is offered, so nothing is to be checked


@pytest.mark.parametrize(
    ("provider", "extra"), [("openai", "openai"), ("openrouter", "openrouter"), ("local", "openai")]
)
def test_a_missing_sdk_and_a_foreign_client_are_named(
    monkeypatch: pytest.MonkeyPatch, provider: str, extra: str
) -> None:
    """The three providers make their client in one place."""
    config = Config(provider, "m", api_key="k", base_url="http://127.0.0.1:9/v1")
    vendor = registry.vendor_of(config)
    with pytest.raises(ConfigurationError, match=r"Config\.client is object"):
        vendor.connect(Config(provider, "m", client=object()))
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ConfigurationError, match="the package openai is not installed") as caught:
        vendor.connect(config)
    assert f'"pollux-like[{extra}]"' in str(caught.value)
