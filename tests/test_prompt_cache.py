"""Prompt caches: what is sent for them, that the prefix is stable, and the notice that names what broke one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from wires import Fake, ask, message, response, spoken, texts

from pollux_like import Config, Environment, Input, Output, Source, ToolDeclaration
from pollux_like.testing.script import answer, say
from pollux_like.testing.scripted import Scripted

pytestmark = pytest.mark.anyio

TOOL = ToolDeclaration("look_up", "Look up", {"type": "object", "properties": {"q": {"type": "string"}}})
LONG = 5_000
"""Input tokens above the least that any provider documents for a cache (4,096)."""
HELLO = "hello " * 3_000
"""A first turn that is long enough to have been cached: more than 16,384 characters."""


def scripted(cached: int, tokens: int = LONG) -> Scripted:
    one = answer(say("a"), input_tokens=tokens)
    return Scripted(one, answer(say("b"), input_tokens=tokens, cached_tokens=cached))


async def second(
    model: Scripted, before: Environment, after: Environment, to: Config | None = None, **more: Any
) -> Output:
    first = await ask(model.config, HELLO, before, **more.pop("first", {}))
    return await ask(to or model.config, Input("again", continuation=first.continuation), after, **more)


def breaks(output: Output) -> list[str]:
    return [notice.message for notice in output.notices if notice.kind == "cache_break"]


PLAIN = Environment(instructions="Be brief.")


@pytest.mark.parametrize(
    ("after", "arguments", "cause"),
    [
        (Environment(instructions="Be long."), {}, "instructions changed"),
        (Environment(), {}, "instructions removed"),
        (Environment(instructions="Be brief.", tools=[TOOL]), {}, "tools added"),
        (Environment(instructions="Be brief.", sources=[Source.from_text("x")]), {}, "sources added"),
        (PLAIN, {"reasoning_effort": "low"}, "reasoning changed from its default to effort low"),
        (PLAIN, {"output": {"type": "object", "properties": {}}}, "output added"),
        (PLAIN, {}, "nothing before the conversation changed"),
    ],
)  # fmt: skip
async def test_the_change_that_broke_the_cache_is_named(after: Environment, arguments: Any, cause: str) -> None:
    model = scripted(0)
    if "output" in arguments:
        model = Scripted(answer(say("a"), input_tokens=LONG), answer(say("{}"), input_tokens=LONG))
    (said,) = breaks(await second(model, PLAIN, after, **arguments))
    assert cause in said
    assert f"{LONG:,} input tokens" in said


async def test_a_changed_tool_choice_is_told_with_both_values() -> None:
    env = Environment(tools=[TOOL])
    (said,) = breaks(await second(scripted(0), env, env, first={"tool_choice": "none"}, tool_choice="auto"))
    assert "tool_choice changed from none to auto" in said


async def test_another_model_is_the_cause() -> None:
    model = scripted(0)
    (said,) = breaks(await second(model, PLAIN, PLAIN, Config("scripted", "other", client=model)))
    assert "model changed" in said


@pytest.mark.parametrize(("cached", "tokens"), [(1, LONG), (LONG, LONG), (0, 4_095), (0, 10)])
async def test_a_cache_that_was_read_or_too_short_is_no_break(cached: int, tokens: int) -> None:
    assert breaks(await second(scripted(cached, tokens), PLAIN, PLAIN)) == []


async def test_a_conversation_that_was_too_short_to_be_cached_is_no_break() -> None:
    model = scripted(0)
    first = await ask(model.config, "hello", PLAIN)
    assert breaks(await ask(model.config, Input(HELLO, continuation=first.continuation), PLAIN)) == []


async def test_the_first_turn_breaks_nothing() -> None:
    assert breaks(await ask(scripted(0).config, "hello", PLAIN)) == []


async def test_the_event_carries_the_notice_before_done() -> None:
    from wires import watched

    model = scripted(0)
    first = await ask(model.config, HELLO, PLAIN)
    output, events = await watched(model.config, Input("again", continuation=first.continuation), PLAIN)
    told = [event.notice.message for event in events if event.notice and event.notice.kind == "cache_break"]
    assert told == breaks(output)
    assert len(told) == 1


async def test_no_secret_and_no_text_stands_in_the_saved_parts() -> None:
    model = scripted(0)
    env = Environment(instructions="CODEWORD", tools=[TOOL])
    first = await ask(model.config, "hello", env)
    assert first.continuation is not None
    saved = json.dumps(first.continuation.to_jsonable())
    assert "CODEWORD" not in saved
    assert "look_up" not in saved


async def test_anthropic_marks_the_prefix_of_a_conversation_that_goes_on() -> None:
    """`cache_control` at the top level marks the last block (POST /v1/messages, automatic caching)."""
    ephemeral = {"type": "ephemeral"}
    asked: tuple[tuple[Environment, Input, Any], ...] = (
        (PLAIN, Input("x"), None),  # one question: writing a cache would cost and never be read
        (PLAIN, Input("x", history=[]), ephemeral),
        (Environment(tools=[TOOL]), Input("x"), ephemeral),
        (Environment(cache="auto"), Input("x"), ephemeral),
        (Environment(cache="none"), Input("x", history=[]), None),
    )
    for env, given, expected in asked:
        fake = Fake(texts("anthropic", "ok"))
        await ask(fake.anthropic(), given, env)
        assert fake.sent[0].get("cache_control") == expected


async def test_provider_options_set_the_lifetime_of_the_mark() -> None:
    fake = Fake(texts("anthropic", "ok"))
    hour = {"type": "ephemeral", "ttl": "1h"}
    await ask(fake.anthropic(), "x", PLAIN, provider_options={"anthropic": {"cache_control": hour}})
    assert fake.sent[0]["cache_control"] == hour


@pytest.mark.parametrize(
    ("provider", "model", "option"),
    [("openai", "gpt-5.6", "prompt_cache_options"), ("anthropic", "claude-opus-4-6", "cache_control")],
)
async def test_none_beside_a_provider_option_is_refused(provider: str, model: str, option: str) -> None:
    from pollux_like import ConfigurationError

    fake = Fake()
    with pytest.raises(ConfigurationError, match=option):
        await ask(fake.at(provider, model=model), "x", Environment(cache="none"),
                  provider_options={provider: {option: {"mode": "implicit"}}})  # fmt: skip
    assert fake.sent == []


@pytest.mark.parametrize("provider", ["local", "openrouter", "gemini", "scripted"])
async def test_none_where_there_is_no_switch_is_a_notice(provider: str) -> None:
    from pollux_like.prepare import prepare
    from pollux_like.registry import vendor_of
    from pollux_like.settings import Settings

    config = Config(provider, "some/model", api_key="k")
    made = prepare(vendor_of(config), Environment(cache="none"), Input("x"), config, Settings(), streaming=False)
    assert [notice.kind for notice in made.notices] == ["cache"]


async def test_openai_is_told_not_to_cache_where_it_can_be() -> None:
    """`prompt_cache_options` is "Supported for gpt-5.6 and later models" (POST /v1/responses); before that, a notice."""
    fake = Fake(texts("openai", "ok"), texts("openai", "ok"))
    newer = await ask(fake.openai("gpt-5.6"), "x", Environment(cache="none"))
    older = await ask(fake.openai("gpt-5.2"), "x", Environment(cache="none"))
    assert [body.get("prompt_cache_options") for body in fake.sent] == [{"mode": "explicit"}, None]
    assert [notice.kind for notice in newer.notices] == []
    assert [notice.kind for notice in older.notices] == ["cache"]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_each_request_begins_with_the_one_before(provider: str) -> None:
    """What a prefix cache needs: messages of turn n are a prefix of those of turn n + 1, byte for byte."""
    body = message({"type": "text", "text": "ok"}) if provider == "anthropic" else response(spoken("ok"))
    fake = Fake(*([body] * 4))
    state = None
    for number in range(4):
        given = Input(f"q{number}", history=[]) if state is None else Input(f"q{number}", continuation=state)
        state = (await ask(fake.at(provider), given, Environment(instructions="Be brief.", tools=[TOOL]))).continuation
    key = b'"messages":[' if provider == "anthropic" else b'"input":['
    for earlier, later in zip(fake.raw, fake.raw[1:], strict=False):
        head, items = earlier.split(key, 1)
        assert later.startswith(head + key + items.removesuffix(b"]}"))
