"""Reported failures of others, state that meets another issuer: each is impossible here, or refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pollux_like_chat
import pytest
from wires import (
    CHAT,
    ENV,
    THINK,
    WIRES,
    Fake,
    ask,
    calls,
    chat_call,
    completion,
    message,
    options,
    reasoning,
    response,
    spoken,
    texts,
    thinking,
    tool_use,
)

from pollux_like import APIError, Config, ConfigurationError, Environment, Input, Message, Output, ToolResult, handoff
from pollux_like.continuation import extended, turns_of
from pollux_like.prepare import prepare
from pollux_like.provider import Reply
from pollux_like.registry import vendor_of
from pollux_like.settings import Settings

pytestmark = pytest.mark.anyio
SIGNED = message(thinking("my secret plan", "SIG-A"), {"type": "text", "text": "hi"})


async def test_for_01_sealed_reasoning_never_reaches_another_provider() -> None:
    """FOR-01: the stamp in the state names its issuer; the way on is the bridge, which leaves the sealed part behind."""
    fake = Fake(response(reasoning(sealed="SEALED-BY-A"), spoken("hi")), message({"type": "text", "text": "x"}))
    first = (await ask(fake.openai(), "go")).continuation
    assert first is not None
    with pytest.raises(ConfigurationError, match="handoff") as caught:
        await ask(fake.anthropic(), Input("more", continuation=first))
    assert "'openai'" in str(caught.value)
    assert len(fake.raw) == 1
    await ask(fake.anthropic(), Input("more", history=handoff(first).history))
    assert b"SEALED-BY-A" not in fake.raw[1]


async def test_for_01_and_08_one_dialect_is_foreign_to_the_other() -> None:
    """FOR-01, FOR-08: the two wires of one vendor do not take each other's state, and no id of one enters the other."""
    fake = Fake(completion({"content": "hi"}, id="chatcmpl-SECRETID"), texts("openai", "x"))
    first = (await ask(fake.openai(), "go", **CHAT)).continuation
    assert first is not None
    with pytest.raises(ConfigurationError, match="dialect"):
        await ask(fake.openai(), Input("more", continuation=first))
    bridge = handoff(first)
    assert [message.to_jsonable() for message in bridge.history] == [
        {"role": "user", "content": "go"}, {"role": "assistant", "content": "hi"}
    ]  # fmt: skip
    await ask(fake.openai(), Input("more", history=bridge.history))
    assert b"SECRETID" not in fake.raw[1]
    assert not [item for item in fake.said[1] if "id" in item]


async def test_for_02_another_model_never_inside_a_tool_round() -> None:
    """FOR-02: between rounds a change of model is reported; inside one it is refused."""
    fake = Fake(SIGNED, message(thinking("b", "SIG-B"), tool_use("t1")))
    first = await ask(fake.anthropic(), "go", **THINK)
    second = await ask(fake.anthropic("claude-sonnet-4-6"), Input("more", continuation=first.continuation), **THINK)
    assert "model_change" in [notice.kind for notice in second.notices]
    given = Input(continuation=second.continuation, tool_results=[ToolResult("t1", "ok")])
    with pytest.raises(ConfigurationError, match="inside a tool round"):
        await ask(fake.anthropic("claude-opus-4-6"), given, **THINK)
    assert len(fake.raw) == 2


@pytest.mark.parametrize("target", WIRES)
async def test_for_03_reasoning_never_becomes_speech(target: str) -> None:
    """FOR-03: neither the turn's portable messages nor the bridge carry what the model only thought."""
    fake = Fake(SIGNED, texts(target, "x"), texts(target, "y"))
    first = await ask(fake.anthropic(), "go", **THINK)
    assert first.continuation is not None
    assert first.reasoning == "my secret plan"
    for history in (first.messages, handoff(first.continuation).history):
        await ask(fake.at(target), Input("more", history=history), **options(target))
    assert b"secret plan" not in fake.raw[1] + fake.raw[2]
    assert b'"hi"' in fake.raw[1]


def elsewhere(config: Config, continuation: Any) -> Any:
    """What a turn at another address comes to, before anything is sent."""
    vendor = vendor_of(config)
    return prepare(vendor, ENV, Input("more", continuation=continuation), config, Settings.of(), streaming=False)


async def test_for_09_the_address_is_part_of_the_issuer() -> None:
    """FOR-09: sealed state does not go to another host under the same vendor's name; a new local port is only news."""
    fake = Fake(SIGNED, texts("anthropic", "plain"))
    sealed = (await ask(fake.anthropic(), "go")).continuation
    plain = (await ask(fake.anthropic(), "go")).continuation
    other = Config("anthropic", "claude-opus-4-6", api_key="k", base_url="https://bridge.example")
    with pytest.raises(ConfigurationError, match=r"bridge\.example cannot open it"):
        elsewhere(other, sealed)
    assert [notice.kind for notice in elsewhere(other, plain).notices] == ["endpoint_change"]
    local = Config("anthropic", "claude-opus-4-6", api_key="k", base_url="http://127.0.0.1:8123")
    assert [notice.kind for notice in elsewhere(local, sealed).notices] == ["endpoint_change"]


async def test_for_09_a_turn_on_loopback_does_not_wash_the_seal_off() -> None:
    """FOR-09: what one host sealed goes to no other, whatever address the turns between were sent to."""
    fake = Fake(SIGNED)
    sealed = (await ask(fake.anthropic(), "go")).continuation
    assert sealed is not None
    turn = turns_of(sealed)[0]
    proxied = replace(turn, stamp=replace(turn.stamp, endpoint="http://127.0.0.1:8123"), signed=False)
    through = extended(sealed, replace(proxied, calls=()))
    other = Config("anthropic", "claude-opus-4-6", api_key="k", base_url="https://bridge.example")
    with pytest.raises(ConfigurationError, match=r"bridge\.example cannot open it"):
        elsewhere(other, through)


# The chat dialect's policy for reasoning text, as data of a dialect.

TURNS = {
    "tool turn": {"reasoning_content": "r", "tool_calls": [chat_call("c1")]},
    "answer": {"reasoning_content": "r", "content": "hi"},
    "renamed": {"reasoning": "r", "content": "hi", "tool_calls": [chat_call("c1")]},
}
DIALECT = pollux_like_chat.Dialect("openai")


def replayed(policy: Any, said: str) -> tuple[dict[str, Any], Reply]:
    """The assistant message of a turn as a dialect with this policy sends it back, and the reply it came from."""
    from pollux_like.provider import Request
    from pollux_like.turns import Stamp, Turn

    dialect = replace(DIALECT, reasoning=pollux_like_chat.Reasoning(policy))
    reply = pollux_like_chat.ChatParser(dialect).whole(json.dumps(completion(TURNS[said])))
    turn = Turn(Stamp("openai", "chat", "x", "m", "e"), (Message("user", "go"),), reply.native, reply.calls)
    added = tuple(ToolResult(call.id, "ok").to_message() for call in reply.calls) or (Message("user", "more"),)
    body = json.loads(pollux_like_chat.render(Request("m", (turn,), added), dialect).body)
    return body["messages"][1], reply


@pytest.mark.parametrize(
    ("case", "policy", "said", "back"),
    [
        ("RCP-01", "forbid", "tool turn", None), ("RCP-01", "require", "answer", "reasoning_content"),
        ("RCP-01", "tool_turns", "answer", None), ("RCP-02", "tool_turns", "tool turn", "reasoning_content"),
        ("RCP-02", "require", "tool turn", "reasoning_content"), ("RCP-04", "forbid", "answer", None),
        ("RCP-06", "ignore", "renamed", "reasoning"), ("RCP-06", "forbid", "renamed", None),
    ],
)  # fmt: skip
def test_reasoning_text_goes_back_by_policy_and_under_its_own_name(case: str, policy: str, said: str, back: str | None) -> None:  # fmt: skip
    """RCP: one rule per server, as data; the text is shown either way, and goes back under the name it came with."""
    message, reply = replayed(policy, said)
    assert reply.reasoning == "r", case
    assert {key: value for key, value in message.items() if "reasoning" in key} == ({back: "r"} if back else {})


async def test_rcp_04_a_refused_field_is_not_sent_and_a_refusal_not_repeated() -> None:
    """RCP-04: OpenAI's chat wire returns no reasoning text and gets none; its 400 is asked for once."""
    from wires import refused

    fake = Fake(completion({"content": "hi", "reasoning_content": "r"}), refused(400, text="property unsupported"))
    first = await ask(fake.openai(), "go", Environment(), **CHAT)
    with pytest.raises(APIError, match="unsupported"):
        await ask(fake.openai(), Input("more", continuation=first.continuation), Environment(), **CHAT)
    assert len(fake.raw) == 2
    assert b"reasoning_content" not in fake.raw[1]


@pytest.mark.parametrize("wire", WIRES)
async def test_for_08_portable_messages_hold_no_provider_ids(wire: str) -> None:
    """FOR-08: what the application keeps of a turn is text and pairing ids, nothing of the provider's numbering."""
    output: Output = await ask(Fake(calls(wire, "c1")).at(wire), "go", **options(wire))
    kept = json.dumps([message.to_jsonable() for message in output.messages])
    assert "c1" in kept
    assert not [name for name in ("msg_", "resp_", "fc_", "chatcmpl") if name in kept]
