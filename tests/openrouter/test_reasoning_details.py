"""What a model signed or sealed goes back as it came: every entry, in order, with the message that it came in."""

from __future__ import annotations

from typing import Any

import pytest
from wires import ENV, TOOLS, ask, chat_call, chat_sse, completion, pieces, reloaded, watched

from pollux_like import Config, ConfigurationError, Environment, Input, Message, ToolCall, ToolResult, handoff

pytestmark = pytest.mark.anyio

CLAUDE = "anthropic/claude-haiku-4.5"
SEALED = {"type": "reasoning.encrypted", "data": "D", "id": "x", "format": "f", "index": 0}
SUMMARY = {"type": "reasoning.summary", "summary": "s", "format": "openai-responses-v1", "index": 0}
TEXT = {"type": "reasoning.text", "text": "t", "index": 0}
SIGNED = {"type": "reasoning.text", "text": "Let me", "signature": "S", "format": None, "index": 1, "news": {"a": [1]}}
CASES = {
    "ORD-01": [SEALED],
    "ORD-02 text without a signature": [TEXT],
    "ORD-02 every type": [TEXT, SIGNED, SUMMARY, SEALED],
    "two types under one index": [SUMMARY, SEALED],
    "two sealed entries under one index": [SEALED, {**SEALED, "data": "E", "id": "y"}],
    "without index": [{"type": "reasoning.encrypted", "data": "D"}, {"type": "reasoning.encrypted", "data": "E"}],
}


def answer(details: list[dict[str, Any]], *calls: str, **more: Any) -> dict[str, Any]:
    return completion(
        {"tool_calls": [chat_call(one) for one in calls], "reasoning_details": details, "reasoning": "t", **more}
    )


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("details", CASES.values(), ids=CASES.keys())
async def test_every_entry_goes_back_with_its_message(router: Any, details: list[Any], streamed: bool) -> None:
    deltas = [
        {"reasoning_details": [one], "reasoning": "t" if index == 0 else None} for index, one in enumerate(details)
    ]
    first = chat_sse(*deltas, pieces(0, "{}", "c1", "f"), finish="tool_calls") if streamed else answer(details, "c1")
    server = router(first, completion({"content": "Done."}), completion({"content": "Still."}))
    output = (await watched(server.config(), "Hi"))[0] if streamed else await ask(server.config(), "Hi")
    assert output.reasoning == "t"
    results = [ToolResult("c1", "1")]
    second = await ask(server.config(), Input(continuation=reloaded(output.continuation), tool_results=results))
    await ask(server.config(), Input("More", continuation=reloaded(second.continuation)))
    for said in server.said[1:]:  # of every later turn
        message = said[2]
        assert message["reasoning_details"] == details
        assert [one["id"] for one in message["tool_calls"]] == ["c1"]
        assert "reasoning" not in message
    assert [len(body["tools"]) for body in server.sent] == [len(TOOLS)] * 3  # also with the results only


async def test_ord_03_pieces_of_one_index_are_one_entry(router: Any) -> None:
    streamed = chat_sse(
        {"reasoning_details": [{"type": "reasoning.text", "text": "Let", "index": 0, "format": None}]},
        {"reasoning_details": [{"text": " me", "index": 0}, {"type": "reasoning.text", "text": "Other", "index": 1}]},
        {"reasoning_details": [{"type": "reasoning.text", "signature": "S", "index": 0, "text": None, "format": "f"}]},
        {"reasoning_details": [], "content": "Hi."},
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "signature": None}]},
    )
    server = router(streamed, completion({"content": "Yes."}))
    output, _ = await watched(server.config(), "Hi")
    await ask(server.config(), Input("And?", continuation=output.continuation))
    assert server.said[1][2]["reasoning_details"] == [
        {"type": "reasoning.text", "text": "Let me", "index": 0, "format": "f", "signature": "S"},
        {"type": "reasoning.text", "text": "Other", "index": 1},
    ]


async def test_pieces_without_an_index_continue_the_newest_entry(router: Any) -> None:
    streamed = chat_sse(
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "On"}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "e"}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "D"}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "Two"}], "content": "Hi."},
    )
    server = router(streamed, completion({"content": "Yes."}))
    output, _ = await watched(server.config(), "Hi")
    await ask(server.config(), Input("And?", continuation=output.continuation))
    kept = [one.get("summary") or one["data"] for one in server.said[1][2]["reasoning_details"]]
    assert kept == ["One", "D", "Two"]


async def test_ord_03_a_list_that_was_not_streamed_is_not_touched(router: Any) -> None:
    parts = [{"type": "reasoning.text", "text": one, "index": 0} for one in ("Let", " me")]
    server = router(answer(parts, content="Hi."), completion({"content": "Yes."}))
    output = await ask(server.config(), "Hi")
    await ask(server.config(), Input("And?", continuation=output.continuation))
    assert server.said[1][2]["reasoning_details"] == parts


@pytest.mark.parametrize("details", CASES.values(), ids=CASES.keys())
async def test_streamed_and_not_streamed_leave_the_same_state(router: Any, details: list[Any]) -> None:
    text = {"content": "Hi."}
    whole = router(answer(details, **text), completion({"content": "Yes."}))
    chunks = router(chat_sse({"reasoning_details": details, "reasoning": "t"}, text), completion({"content": "Yes."}))
    one = await ask(whole.config(), "Hi")
    other, _ = await watched(chunks.config(), "Hi")
    assert reloaded(one.continuation) == other.continuation
    assert (one.text, one.reasoning, one.usage.reasoning_tokens) == (other.text, other.reasoning, 0)
    for server, output in ((whole, one), (chunks, other)):
        await ask(server.config(), Input("And?", continuation=reloaded(output.continuation)))
    assert whole.raw[1] == chunks.raw[1]


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
async def test_rcp_06_text_alone_goes_back_under_its_own_name(router: Any, name: str) -> None:
    server = router(completion({"content": "Hi.", name: "r"}), completion({"content": "Yes."}))
    output = await ask(server.config(), "Hi")
    assert output.reasoning == "r"
    await ask(server.config(), Input("And?", continuation=output.continuation))
    assert server.said[1][2] == {"role": "assistant", "content": "Hi.", name: "r"}


async def test_an_empty_list_is_no_reasoning(router: Any) -> None:
    server = router(answer([], content="Hi."), completion({"content": "Yes."}))
    output = await ask(server.config(), "Hi")
    await ask(server.config(), Input("And?", continuation=output.continuation))
    assert server.said[1][2] == {"role": "assistant", "content": "Hi.", "reasoning": "t"}


async def test_for_02_another_author_gets_none_of_it(router: Any) -> None:
    server = router(answer([SIGNED], content="Hi."), *[completion({"content": "Yes."})] * 3, models={"data": []})
    output = await ask(server.config(), "Hi")
    given = Input("And?", continuation=output.continuation)
    await ask(server.config("anthropic/claude-opus-5"), given)
    switched = await ask(server.config("openai/gpt-5.2"), given)
    await ask(server.config(), given)
    assert [said[2].get("reasoning_details") for said in server.said[1:]] == [[SIGNED], None, [SIGNED]]
    assert "reasoning" not in server.said[2][2]
    assert [notice.kind for notice in switched.notices] == ["model_change"]


async def test_for_02_inside_a_tool_round_another_model_is_refused(router: Any) -> None:
    server = router(answer([SEALED], "c1"))
    output = await ask(server.config(), "Hi")
    given = Input(continuation=output.continuation, tool_results=[ToolResult("c1", "1")])
    with pytest.raises(ConfigurationError, match="waits inside a tool round"):
        await ask(server.config("openai/gpt-5.2"), given)
    with pytest.raises(ConfigurationError, match="reasoning is bound to it"):
        await ask(server.config(), given, Environment(instructions="Other.", tools=TOOLS))
    assert len(server.raw) == 1


@pytest.mark.parametrize(("details", "sealed"), [([SEALED], True), ([SIGNED], True), ([TEXT, SUMMARY], False)])
async def test_for_09_sealed_state_stays_with_its_host(router: Any, details: list[Any], sealed: bool) -> None:
    server = router(answer(details, content="Hi."), completion({"content": "Yes."}))
    output = await ask(server.config(), "Hi")
    there = server.client.copy(base_url="https://other.invalid/v1")
    given = Input("And?", continuation=output.continuation)
    if sealed:
        with pytest.raises(ConfigurationError, match=r"openrouter\.ai sealed, and other\.invalid cannot open it"):
            await ask(Config("openrouter", CLAUDE, client=there), given, Environment())
    else:
        await ask(Config("openrouter", CLAUDE, client=there), given, Environment())
    assert len(server.raw) == (1 if sealed else 2)


async def test_for_03_for_08_portable_history_carries_neither_reasoning_nor_ids(router: Any) -> None:
    server = router(answer([SIGNED], content="Hi."), completion({"content": "Yes."}))
    output = await ask(server.config(), "Hi")
    assert output.continuation is not None
    moved = handoff(output.continuation)
    assert [message.content for message in moved.history] == ["Hi", "Hi."]
    assert any("reasoning_details" in loss for loss in moved.losses)
    await ask(server.config("openai/gpt-5.2"), Input("And?", history=list(moved.history)))
    assert server.said[1][1:] == [
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "And?"},
    ]  # fmt: skip


async def test_for_04_imported_calls_are_sent_as_they_are(router: Any) -> None:
    server = router(completion({"content": "Yes."}))
    history = [
        Message("user", "Hi"),
        Message("assistant", "", (ToolCall.from_text(id="c1", name="f", arguments_text='{"a":1}'),)),
        Message("tool", "1", tool_call_id="c1"),
    ]
    await ask(server.config(), Input("And?", history=history), ENV)
    assert server.said[0][2] == {"role": "assistant", "content": None, "tool_calls": [chat_call("c1", '{"a":1}')]}
