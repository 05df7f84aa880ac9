"""Every documented argument is sent or refused by name, on every provider; none is dropped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest

from pollux_like import Config, ConfigurationError, Environment, Input, Source, interact
from pollux_like.settings import Settings
from pollux_like.simulator import Simulator
from pollux_like.testing import say
from pollux_like.testing.conversations import TOOLS

pytestmark = pytest.mark.anyio
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
OLD = {"anthropic_version": "2023-06-01"}

# (target, argument, value): where the value stands in the body, or None where the argument is refused.
MATRIX: list[tuple[str, str, Any, Any]] = [
    ("gpt-5.2", "tool_choice", "required", ("tool_choice", "required")),
    ("gpt-5.2", "tool_choice", {"name": "note"}, ("tool_choice", {"type": "function", "name": "note"})),
    ("gpt-5.2", "tool_choice", "none", ("tool_choice", "none")),
    ("gpt-5.2", "parallel_tool_calls", False, ("parallel_tool_calls", False)),
    ("gpt-5.2", "output", SCHEMA, ("text", None)),
    ("gpt-5.2", "max_tokens", 100, ("max_output_tokens", 100)),
    ("gpt-5.2", "max_tokens", 5, None),
    ("gpt-5.2", "temperature", 0.5, None),
    ("gpt-4o", "temperature", 0.5, ("temperature", 0.5)),
    ("gpt-5.2", "top_p", 0.5, None),
    ("gpt-4o", "top_p", 0.5, ("top_p", 0.5)),
    ("gpt-5.2", "seed", 1, None),
    ("gpt-5.2", "stop", "x", None),
    ("gpt-5.2", "reasoning_effort", "high", ("reasoning", {"effort": "high"})),
    ("gpt-5.2", "reasoning_effort", "minimal", None),
    ("gpt-4o", "reasoning_effort", "high", None),
    ("gpt-5.2", "reasoning_budget_tokens", 2000, None),
    ("chat:gpt-4o", "tool_choice", "required", ("tool_choice", "required")),
    ("chat:gpt-4o", "tool_choice", {"name": "note"}, ("tool_choice", {"type": "function", "function": {"name": "note"}})),
    ("chat:gpt-4o", "parallel_tool_calls", True, ("parallel_tool_calls", True)),
    ("chat:gpt-4o", "output", SCHEMA, ("response_format", None)),
    ("chat:gpt-4o", "max_tokens", 5, ("max_completion_tokens", 5)),
    ("chat:gpt-4o", "temperature", 0.5, ("temperature", 0.5)),
    ("chat:gpt-4o", "top_p", 0.5, ("top_p", 0.5)),
    ("chat:gpt-4o", "seed", 7, ("seed", 7)),
    ("chat:gpt-4o", "stop", ["a", "b"], ("stop", ["a", "b"])),
    ("chat:gpt-4o", "stop", list("abcde"), None),
    ("chat:gpt-5.2", "reasoning_effort", "low", ("reasoning_effort", "low")),
    ("chat:gpt-4o", "reasoning_effort", "low", None),
    ("chat:gpt-4o", "reasoning_budget_tokens", 2000, None),
    ("claude-opus-4-6", "tool_choice", "required", ("tool_choice", {"type": "any"})),
    ("claude-opus-4-6", "tool_choice", "auto", ("tool_choice", {"type": "auto"})),
    ("claude-opus-4-6", "tool_choice", {"name": "note"}, ("tool_choice", {"type": "tool", "name": "note"})),
    ("claude-opus-5-5", "tool_choice", "required", None),
    ("claude-opus-4-6", "parallel_tool_calls", False, ("tool_choice", {"type": "auto", "disable_parallel_tool_use": True})),
    ("claude-opus-4-6", "output", SCHEMA, ("output_config", None)),
    ("claude-3-5-haiku", "output", SCHEMA, None),
    ("claude-opus-4-6", "max_tokens", 5, ("max_tokens", 5)),
    ("claude-opus-4-6", "temperature", 0.5, None),
    ("old:claude-opus-4-6", "temperature", 0.5, ("temperature", 0.5)),
    ("old:claude-opus-4-6", "temperature", 1.5, None),
    ("claude-opus-4-6", "top_p", 0.5, None),
    ("old:claude-opus-4-6", "top_p", 0.5, ("top_p", 0.5)),
    ("claude-opus-4-6", "seed", 1, None),
    ("claude-opus-4-6", "stop", "x", ("stop_sequences", ["x"])),
    ("claude-opus-4-6", "reasoning_effort", "high", ("output_config", {"effort": "high"})),
    ("claude-opus-4-6", "reasoning_effort", "none", ("thinking", {"type": "disabled"})),
    ("claude-opus-5-5", "reasoning_effort", "none", None),
    ("claude-haiku-4-5", "reasoning_effort", "high", None),
    ("claude-haiku-4-5", "reasoning_budget_tokens", 2000, ("thinking", {"type": "enabled", "budget_tokens": 2000})),
    ("claude-haiku-4-5", "reasoning_budget_tokens", 1000, None),
    ("claude-opus-5-5", "reasoning_budget_tokens", 2000, None),
]  # fmt: skip


@pytest.fixture(scope="module")
def running() -> Iterator[Simulator]:
    with Simulator() as one:
        yield one


@pytest.fixture
def sim(running: Simulator) -> Simulator:
    running.reset()
    running.reply(say('{"a":"b"}'))
    return running


def to(sim: Simulator, target: str) -> tuple[Config, dict[str, Any]]:
    kind, _, model = target.rpartition(":")
    provider = "anthropic" if model.startswith("claude") else "openai"
    options: dict[str, Any] = {"chat": {"openai": {"api": "chat"}}, "old": {"anthropic": OLD}}.get(kind, {})
    config = Config(provider, model, api_key="sim-key", base_url=sim.base_url(provider))
    return config, {"provider_options": options} if options else {}


@pytest.mark.parametrize(("target", "argument", "value", "sent"), MATRIX, ids=lambda one: str(one)[:24])
async def test_matrix(sim: Simulator, target: str, argument: str, value: Any, sent: Any) -> None:
    config, more = to(sim, target)
    env = Environment(tools=TOOLS)
    if sent is None:
        with pytest.raises(ConfigurationError) as caught:
            await interact(env, Input("x"), config, **{argument: value}, **more)
        assert argument.split("_")[0] in str(caught.value)
        assert sim.requests == []
        return
    await interact(env, Input("x"), config, **{argument: value}, **more)
    name, expected = sent
    body = sim.requests[-1].body
    assert sim.requests[-1].status == 200
    assert name in body
    assert expected is None or body[name] == expected


@pytest.mark.parametrize("target", ["gpt-5.2", "chat:gpt-4o", "claude-opus-4-6"])
def test_the_matrix_covers_every_argument(target: str) -> None:
    arguments = {field.name for field in fields(Settings)} - {"timeout_s", "provider_options"}
    same = {"gpt-5.2": ("gpt-5.2", "gpt-4o"), "chat:gpt-4o": ("chat:gpt-4o", "chat:gpt-5.2")}.get(target)
    covered = {row[1] for row in MATRIX if row[0] in (same or (target, f"old:{target}", "claude-haiku-4-5"))}
    assert covered == arguments


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("gpt-5.2", {"model": "other"}), ("gpt-5.2", {"input": []}), ("gpt-5.2", {"max_output_tokens": 5}),
        ("gpt-5.2", {"previous_response_id": "resp_1"}), ("gpt-5.2", {"temperature": 1}),
        ("claude-opus-4-6", {"messages": []}), ("claude-opus-4-6", {"max_tokens": 5}),
        ("claude-opus-4-6", {"system": "x"}), ("claude-opus-4-6", {"temperature": 1}),
        ("chat:gpt-4o", {"messages": []}), ("chat:gpt-4o", {"stop": []}),
    ],
)  # fmt: skip
async def test_provider_options_cannot_set_what_the_library_sets(
    sim: Simulator, target: str, options: dict[str, Any]
) -> None:
    config, more = to(sim, target)
    merged = {**more.get("provider_options", {}).get(config.provider, {}), **options}
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        await interact(Environment(), Input("x"), config, provider_options={config.provider: merged})
    assert sim.requests == []


async def test_options_of_another_provider_are_ignored_and_own_ones_merged(sim: Simulator) -> None:
    config, _ = to(sim, "gpt-5.2")
    options = {
        "anthropic": {"messages": []},
        "openai": {"metadata": {"a": "b"}, "service_tier": "flex", "reasoning": {"summary": "auto"}},
    }
    await interact(Environment(), Input("x"), config, provider_options=options, reasoning_effort="low")
    body = sim.requests[-1].body
    assert body["metadata"] == {"a": "b"}
    assert body["service_tier"] == "flex"
    assert body["reasoning"] == {"summary": "auto", "effort": "low"}


async def test_a_hosted_tool_follows_the_declared_and_may_not_share_a_name(sim: Simulator) -> None:
    config, _ = to(sim, "claude-opus-4-6")
    search = {"type": "web_search_20250305", "name": "web_search"}
    await interact(Environment(tools=TOOLS), Input("x"), config, provider_options={"anthropic": {"tools": [search]}})
    assert sim.requests[-1].body["tools"][-1] == search
    for provider, model in (("anthropic", "claude-opus-4-6"), ("openai", "gpt-5.2")):
        config, _ = to(sim, model)
        clash = {provider: {"tools": [{"type": "function", "name": "note"}]}}
        with pytest.raises(ConfigurationError, match="note"):
            await interact(Environment(tools=TOOLS), Input("x"), config, provider_options=clash)


async def test_a_budget_beyond_max_tokens_is_refused_and_a_free_one_raises_it(sim: Simulator) -> None:
    config, _ = to(sim, "claude-haiku-4-5")
    with pytest.raises(ConfigurationError, match="max_tokens"):
        await interact(Environment(), Input("x"), config, reasoning_budget_tokens=5000, max_tokens=100)
    await interact(Environment(), Input("x"), config, reasoning_budget_tokens=5000)
    assert sim.requests[-1].body["max_tokens"] > 5000


@pytest.mark.parametrize("target", ["claude-opus-4-6", "claude-haiku-4-5"])
async def test_a_forced_tool_while_thinking_is_refused_on_every_turn(sim: Simulator, target: str) -> None:
    config, _ = to(sim, target)
    how: dict[str, Any] = (
        {"reasoning_effort": "low"} if target == "claude-opus-4-6" else {"reasoning_budget_tokens": 2000}
    )
    for choice in ("required", {"name": "note"}):
        with pytest.raises(ConfigurationError, match="while it reasons"):
            await interact(Environment(tools=TOOLS), Input("x"), config, tool_choice=choice, **how)
    assert sim.requests == []


@pytest.mark.parametrize("target", ["gpt-5.2", "chat:gpt-4o", "claude-opus-4-6"])
async def test_sources_stand_once_in_the_first_user_message_of_every_request(sim: Simulator, target: str) -> None:
    config, more = to(sim, target)
    png = Source.from_bytes(b"\x89PNG-picture", mime_type="image/png", name="p.png")
    pdf = Source.from_bytes(b"%PDF-1.4 paper", mime_type="application/pdf", name="d.pdf")
    env = Environment(sources=[Source.from_text("S" * 500, name="notes"), png, pdf])
    continuation = None
    for number in range(4):
        output = await interact(
            env, Input(f"turn {number}", history=None if number else [], continuation=continuation), config, **more
        )
        continuation = output.continuation
        sim.reply(say("ok"))
    assert continuation is not None
    for request in sim.requests:
        assert request.status == 200
        text = request.raw.decode()
        assert (text.count("S" * 500), text.count(png.base64), text.count(pdf.base64)) == (1, 1, 1)
    first = [request.raw[: request.raw.index(b"turn 0")] for request in sim.requests]
    assert len(set(first)) == 1, "request n is a prefix of request n + 1"
    saved = str(continuation.to_jsonable())
    assert "SSSS" not in saved
    assert png.base64 not in saved


@pytest.mark.parametrize("target", ["gpt-5.2", "chat:gpt-4o", "claude-opus-4-6"])
async def test_media_of_one_turn_stand_while_its_tool_round_is_open_and_are_then_gone(
    sim: Simulator, target: str
) -> None:
    from pollux_like import ToolResult
    from pollux_like.testing import call

    config, more = to(sim, target)
    env = Environment(tools=TOOLS)
    png = Source.from_bytes(b"\x89PNG-once", mime_type="image/png")
    sim.clear()
    sim.reply(call("note", id="call_1"))
    one = await interact(env, Input("Look", sources=[png]), config, **more)
    results = [ToolResult("call_1", "ok")]
    with pytest.raises(ConfigurationError, match="sources of its own"):
        await interact(env, Input(continuation=one.continuation, tool_results=results), config, **more)
    sim.reply(say("A picture."))
    two = await interact(env, Input(continuation=one.continuation, tool_results=results, sources=[png]), config, **more)
    sim.reply(say("Gone."))
    three = await interact(env, Input("And now?", continuation=two.continuation), config, **more)
    assert [request.raw.decode().count(png.base64) for request in sim.requests] == [1, 1, 0]
    assert "media_dropped" in [notice.kind for notice in three.notices]
    assert png.base64 not in str(three.continuation and three.continuation.to_jsonable())


async def test_keys_come_from_the_environment_and_their_absence_is_said_before_any_request(
    sim: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for provider, model in (("openai", "gpt-5.2"), ("anthropic", "claude-opus-4-6")):
        with pytest.raises(ConfigurationError, match=f"{provider.upper()}_API_KEY"):
            await interact(Environment(), Input("x"), Config(provider, model))
        with pytest.raises(ConfigurationError, match="Config.model"):
            await interact(Environment(), Input("x"), Config(provider))
    for name, value in sim.environ().items():
        monkeypatch.setenv(name, value)
    for provider, model in (("openai", "gpt-5.2"), ("anthropic", "claude-opus-4-6")):
        await interact(Environment(), Input("x"), Config(provider, model))
    assert [request.status for request in sim.requests] == [200, 200]
