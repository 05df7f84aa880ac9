"""Reported failures of others, signed thinking on the Messages wire: each is impossible here, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from wires import (
    ENV,
    THINK,
    TOOLS,
    Fake,
    ask,
    block_events,
    cut,
    message,
    message_sse,
    refused,
    reloaded,
    sse,
    thinking,
    thinking_events,
    tool_use,
    watched,
)

from pollux_like import (
    APIError,
    ConfigurationError,
    Environment,
    Input,
    Message,
    Output,
    StreamInterruptedError,
    ToolCall,
    ToolResult,
    handoff,
)

pytestmark = pytest.mark.anyio
DONE = message({"type": "text", "text": "done"})
CALL = block_events(1, tool_use("toolu_1"))
ROUND = [Message("user", "a"), Message("assistant", tool_calls=(ToolCall("c1", "f"),)), Message("tool", "r", tool_call_id="c1")]  # fmt: skip


def answered(output: Output, *, saved: bool = False) -> Input:
    """The results of all open calls."""
    assert output.continuation is not None
    state = reloaded(output.continuation) if saved else output.continuation
    return Input(continuation=state, tool_results=[ToolResult(call.id, "ok") for call in output.tool_calls])


async def test_ath_01_a_signature_in_its_own_event_is_kept() -> None:
    """ATH-01: the streamed block carries its signature back, as the block that was not streamed does."""
    block, call = thinking("ab", "SIG=="), tool_use("toolu_1")
    fake = Fake(message_sse(*thinking_events(0, "SIG==", "a", "b"), *CALL, stop="tool_use"), DONE, message(block, call), DONE)  # fmt: skip
    streamed, _ = await watched(fake.anthropic(), "go", **THINK)
    await ask(fake.anthropic(), answered(streamed), **THINK)
    whole = await ask(fake.anthropic(), "go", **THINK)
    await ask(fake.anthropic(), answered(whole), **THINK)
    assert fake.said[1][1]["content"] == [block, call]
    assert fake.raw[1] == fake.raw[3]


async def test_ath_02_thinking_blocks_stay_apart() -> None:
    """ATH-02: two thinking blocks keep their own text, signature and place among the others."""
    text = block_events(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "t"})
    call = block_events(3, tool_use("toolu_1"))
    fake = Fake(message_sse(*thinking_events(0, "S1", "A"), *text, *thinking_events(2, "S2", "B"), *call, stop="tool_use"), DONE)  # fmt: skip
    output, _ = await watched(fake.anthropic(), "go", **THINK)
    await ask(fake.anthropic(), answered(output), **THINK)
    blocks = [thinking("A", "S1"), {"type": "text", "text": "t"}, thinking("B", "S2"), tool_use("toolu_1")]
    assert fake.said[1][1]["content"] == blocks
    assert (output.reasoning, output.text) == ("A\n\nB", "t")


@pytest.mark.parametrize("streamed", [False, True])
async def test_ath_04_sealed_thinking_survives(streamed: bool) -> None:
    """ATH-04: reasoning that has no text at all goes back whole, also from saved state."""
    sealed = {"type": "redacted_thinking", "data": "R1"}
    stream = message_sse(*block_events(0, sealed), *CALL, stop="tool_use")
    fake = Fake(stream if streamed else message(sealed, tool_use("toolu_1")), DONE)
    output = (await watched(fake.anthropic(), "go", **THINK))[0] if streamed else await ask(fake.anthropic(), "go")
    assert output.reasoning == ""
    await ask(fake.anthropic(), answered(output, saved=True), **THINK)
    assert fake.said[1][1]["content"] == [sealed, tool_use("toolu_1")]


async def test_ath_05_a_signature_without_text_keeps_the_empty_text() -> None:
    """ATH-05: thinking whose display is left out has an empty text, not none."""
    fake = Fake(message_sse(*thinking_events(0, "S"), *CALL, stop="tool_use"), DONE)
    output, events = await watched(fake.anthropic(), "go", **THINK)
    assert not [event for event in events if event.type == "reasoning_delta"]
    await ask(fake.anthropic(), answered(output), **THINK)
    assert fake.said[1][1]["content"][0] == {"type": "thinking", "thinking": "", "signature": "S"}


async def test_ath_07_a_stream_lost_inside_thinking_makes_no_turn() -> None:
    """ATH-07: half a thought is never stored; the state before it goes on."""
    start: dict[str, Any] = {"type": "message_start", "message": message()}
    half = thinking_events(0, "", "half")[:2]
    fake = Fake(message(thinking("a", "S1"), {"type": "text", "text": "hi"}), cut(sse(start, *half)), DONE)
    first = (await ask(fake.anthropic(), "go", **THINK)).continuation
    with pytest.raises(StreamInterruptedError):
        await watched(fake.anthropic(), Input("more", continuation=first), **THINK)
    await ask(fake.anthropic(), Input("more", continuation=first), **THINK)
    assert b"half" not in fake.raw[2]
    assert b'"signature":""' not in fake.raw[2]
    assert fake.said[2] == fake.said[1]


async def test_ath_08_saved_state_sends_the_same_bytes() -> None:
    """ATH-08: nothing is lost between the state in memory and the state in a store."""
    fake = Fake(message(thinking("a", "S/+="), tool_use("toolu_1", {"a": 1})), DONE, DONE)
    output = await ask(fake.anthropic(), "go", **THINK)
    await ask(fake.anthropic(), answered(output), **THINK)
    await ask(fake.anthropic(), answered(output, saved=True), **THINK)
    assert fake.raw[1] == fake.raw[2]
    assert b"S/+=" in fake.raw[2]


async def test_ath_10_portable_tool_rounds_cannot_open_budget_thinking() -> None:
    """ATH-10: an open round without signed thinking is refused by name where the API demands it; nothing is made up."""
    fake = Fake(DONE)
    env = Environment(tools=TOOLS)
    with pytest.raises(ConfigurationError, match="portable history cannot carry the signed thinking"):
        await ask(fake.anthropic("claude-sonnet-4-5"), Input(history=ROUND), env, reasoning_budget_tokens=2048)
    assert fake.raw == []
    await ask(fake.anthropic(), Input(history=ROUND), env, **THINK)  # adaptive thinking is free to begin here
    assert "thinking" not in {block["type"] for block in fake.said[0][1]["content"]}
    assert fake.sent[0]["thinking"] == {"type": "adaptive"}


async def test_ath_11_a_refused_signature_is_asked_once_and_has_a_way_out() -> None:
    """ATH-11: a 400 about our own payload is not repeated, names what the API named, and handoff leads on."""
    said = "messages.1.content.0: Invalid `signature` in `thinking` block"
    fake = Fake(message(thinking("a", "S1"), {"type": "text", "text": "hi"}), refused(400, text=said), DONE)
    first = (await ask(fake.anthropic(), "go", **THINK)).continuation
    assert first is not None
    with pytest.raises(APIError, match=r"messages\.1\.content\.0") as caught:
        await ask(fake.anthropic(), Input("more", continuation=first), **THINK)
    assert (caught.value.status, caught.value.retryable, len(fake.raw)) == (400, False, 2)
    bridge = handoff(first)
    await ask(fake.anthropic(), Input("more", history=bridge.history), ENV, **THINK)
    assert b"S1" not in fake.raw[2]
    assert any("thinking" in loss for loss in bridge.losses)
