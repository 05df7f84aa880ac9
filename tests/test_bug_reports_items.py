"""Reported failures of others, the item graph of the Responses wire: each is impossible here, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from wires import (
    ENV,
    STORE,
    Body,
    Fake,
    ask,
    function_call,
    message,
    reasoning,
    refused,
    reloaded,
    response,
    spoken,
)

from pollux_like import APIError, ConfigurationError, Environment, Input, Message, ToolCall, ToolResult, handoff

pytestmark = pytest.mark.anyio
DONE = response(spoken("done", "msg_2"), id="resp_2")
LOST = {"code": "previous_response_not_found", "text": "Previous response with id 'resp_1' not found."}


def kinds(items: list[Body]) -> list[str]:
    return [str(item.get("type", item.get("role"))) for item in items]


async def test_ori_01_reasoning_and_its_message_stay_together() -> None:
    """ORI-01: the reasoning item goes back right before the message that it led to."""
    fake = Fake(response(reasoning(), spoken("hi")), DONE)
    first = await ask(fake.openai(), "go")
    await ask(fake.openai(), Input("more", continuation=first.continuation))
    assert fake.said[1][1:3] == [reasoning(), spoken("hi")]


@pytest.mark.parametrize("arguments", [{}, STORE])
async def test_ori_02_one_representation_for_a_tied_group(arguments: dict[str, Any]) -> None:
    """ORI-02: reasoning and its call go all inline, or all by the server's memory; never one of each."""
    fake = Fake(response(reasoning(), function_call("c1")), DONE)
    first = await ask(fake.openai(), "go", **arguments)
    await ask(fake.openai(), Input(continuation=first.continuation, tool_results=[ToolResult("c1", "ok")]), **arguments)
    tied = [kind for kind in kinds(fake.said[1]) if kind in ("reasoning", "function_call", "item_reference")]
    assert tied == ([] if arguments else ["reasoning", "function_call"])
    assert ("previous_response_id" in fake.sent[1]) == bool(arguments)


async def test_ori_04_and_17_no_item_id_is_invented() -> None:
    """ORI-04, ORI-17: portable turns go without item ids; a call's pairing id is not put into the item's own id."""
    fake = Fake(DONE)
    calls = (ToolCall("call_1", "f"),)
    history = [Message("user", "a"), Message("assistant", "b", calls), Message("tool", "r", tool_call_id="call_1")]
    await ask(fake.openai(), Input("go", history=[*history, Message("assistant", "c")] * 4))
    assert len(fake.said[0]) == 4 * 5 + 1
    assert not [item for item in fake.said[0] if "id" in item]
    assert fake.said[0][2]["call_id"] == "call_1"


async def test_ori_06_a_chain_sends_only_what_is_new() -> None:
    """ORI-06: with the server's memory only the results go out, in every step of a tool loop."""
    fake = Fake(*(response(function_call(f"c{k}"), id=f"resp_{k}") for k in range(5)), DONE)
    output = await ask(fake.openai(), "go", **STORE)
    for k in range(5):
        given = Input(continuation=reloaded(output.continuation), tool_results=[ToolResult(f"c{k}", str(k))])
        output = await ask(fake.openai(), given, **STORE)
        assert fake.sent[k + 1]["previous_response_id"] == f"resp_{k}"
        assert fake.said[k + 1] == [{"type": "function_call_output", "call_id": f"c{k}", "output": str(k)}]
    assert "previous_response_id" not in fake.sent[0]


async def test_ori_06_a_server_side_conversation_is_refused_beside_ours() -> None:
    """ORI-06: the other memory of the API would hold every item a second time."""
    fake = Fake(DONE)
    with pytest.raises(ConfigurationError, match="conversation"):
        await ask(fake.openai(), "go", provider_options={"openai": {"conversation": "conv_1"}})
    assert fake.raw == []


@pytest.mark.parametrize("copies", [(1, 1), (2,)])
async def test_ori_07_the_same_call_twice_is_refused(copies: tuple[int, ...]) -> None:
    """ORI-07: an approval copy of a call in portable history is refused, in one message or in two."""
    call = ToolCall("c1", "f")
    with pytest.raises(ConfigurationError, match="c1"):
        told = [Message("assistant", tool_calls=(call,) * times) for times in copies]
        history = [Message("user", "a"), *told, Message("tool", "r", tool_call_id="c1")]
        await ask(Fake().openai(), Input("go", history=history))


async def test_ori_08_a_lost_chain_is_sent_again_in_full() -> None:
    """ORI-08: the second request holds the whole conversation and nothing that the server would have to remember."""
    first_turn = response(reasoning(), function_call("c1"))
    fake = Fake(first_turn, response(spoken("hi"), id="resp_2"), refused(404, **LOST), DONE)
    output = await ask(fake.openai(), "go", **STORE)
    given = Input(continuation=output.continuation, tool_results=[ToolResult("c1", "ok")])
    output = await ask(fake.openai(), given, **STORE)
    output = await ask(fake.openai(), Input("more", continuation=output.continuation), **STORE)
    assert fake.sent[2]["previous_response_id"] == "resp_2"
    assert "previous_response_id" not in fake.sent[3]
    assert kinds(fake.said[3]) == ["user", "reasoning", "function_call", "function_call_output", "message", "user"]
    assert fake.said[3][1]["encrypted_content"] == "SEALED"
    assert fake.sent[0]["include"] == ["reasoning.encrypted_content"]
    assert "chain_fallback" in [notice.kind for notice in output.notices]
    assert output.metrics.attempts == 2


async def test_ori_08_what_only_the_lost_server_knew_is_left_out() -> None:
    """ORI-08: reasoning without its sealed content cannot be resolved any more, nor ids that were checked against it."""
    fake = Fake(response(reasoning(sealed=None), spoken("hi")), refused(400, **LOST), DONE)
    output = await ask(fake.openai(), "go", **STORE)
    await ask(fake.openai(), Input("more", continuation=output.continuation), **STORE)
    assert kinds(fake.said[2]) == ["user", "message", "user"]
    assert "id" not in fake.said[2][1]


async def test_ori_08_one_attempt_means_a_typed_error() -> None:
    """ORI-08: where no second request is allowed, the loss of the chain raises."""
    fake = Fake(response(spoken("hi")), refused(404, **LOST))
    first = await ask(fake.openai(), "go", **STORE)
    with pytest.raises(APIError, match="previous_response_not_found"):
        await ask(fake.openai(max_attempts=1), Input("more", continuation=first.continuation), **STORE)
    assert len(fake.raw) == 2


@pytest.mark.parametrize("sealed", ["SEALED", None])
async def test_ori_09_nothing_stored_means_nothing_by_id(sealed: str | None) -> None:
    """ORI-09: sealed reasoning is asked for and goes back inline; where none came, the item is left out."""
    fake = Fake(response(reasoning(sealed=sealed), spoken("hi")), DONE)
    first = await ask(fake.openai(), "go")
    await ask(fake.openai(), Input("more", continuation=first.continuation))
    assert fake.sent[0]["include"] == ["reasoning.encrypted_content"]
    assert fake.sent[0]["store"] is False
    assert kinds(fake.said[1]) == ["user", *(["reasoning"] if sealed else []), "message", "user"]
    assert ("id" in fake.said[1][-2]) == bool(sealed)


async def test_ori_10_an_unstored_turn_is_never_chained() -> None:
    """ORI-10: state made without storage is complete in itself, even if the next turn asks for storage."""
    fake = Fake(response(spoken("hi")), DONE)
    first = await ask(fake.openai(), "go")
    await ask(fake.openai(), Input("more", continuation=reloaded(first.continuation)), **STORE)
    assert "previous_response_id" not in fake.sent[1]
    assert kinds(fake.said[1]) == ["user", "message", "user"]


async def test_ori_11_all_parallel_results_or_none() -> None:
    """ORI-11: in a chain too, the calls that are unanswered are named before anything is sent."""
    fake = Fake(response(function_call("c1"), function_call("c2"), function_call("c3")), DONE)
    first = await ask(fake.openai(), "go", **STORE)
    given = Input(continuation=first.continuation, tool_results=[ToolResult("c2", "ok")])
    with pytest.raises(ConfigurationError, match="'c1', 'c3'"):
        await ask(fake.openai(), given, **STORE)
    assert len(fake.raw) == 1


async def test_ori_13_the_phase_of_a_message_is_kept_and_stays_home() -> None:
    """ORI-13: commentary stays commentary on its own wire, and no other wire sees the word."""
    spoke = spoken("let me look", phase="commentary")
    fake = Fake(response(spoke, function_call("c1")), DONE, message({"type": "text", "text": "hi"}))
    first = await ask(fake.openai(), "go")
    assert first.continuation is not None
    results = [ToolResult("c1", "ok")]
    await ask(fake.openai(), Input(continuation=reloaded(first.continuation), tool_results=results))
    assert fake.said[1][1] == spoke
    await ask(fake.anthropic(), Input(history=handoff(first.continuation).history, tool_results=results))
    assert b"commentary" in fake.raw[1]
    assert b"commentary" not in fake.raw[2]


async def test_ori_15_and_16_a_compaction_is_kept_and_stands_for_what_precedes_it() -> None:
    """ORI-15, ORI-16: the item comes back verbatim from saved state, and what it replaced is not sent beside it."""
    made = {"type": "compaction", "id": "cmp_1", "encrypted_content": "Z"}
    fake = Fake(response(spoken("old")), response(made, spoken("hi", "msg_3")), DONE)
    output = await ask(fake.openai(), "first words")
    output = await ask(fake.openai(), Input("second words", continuation=output.continuation))
    await ask(fake.openai(), Input("more", continuation=reloaded(output.continuation)))
    assert fake.said[2] == [made, spoken("hi", "msg_3"), {"role": "user", "content": "more"}]


async def test_ori_16_a_compaction_never_parts_a_call_from_its_result() -> None:
    """ORI-16: a call before the item, answered after it, keeps what it needs in the request."""
    made = {"type": "compaction", "id": "cmp_1", "encrypted_content": "Z"}
    fake = Fake(response(function_call("c1"), made), DONE)
    output = await ask(fake.openai(), "go")
    await ask(fake.openai(), Input(continuation=output.continuation, tool_results=[ToolResult("c1", "ok")]))
    assert kinds(fake.said[1]) == ["user", "function_call", "compaction", "function_call_output"]


async def test_ori_19_tools_are_those_of_the_turn_and_a_change_is_reported() -> None:
    """ORI-19: each turn's tools are the ones it brings; a turn that brings others says so."""
    fake = Fake(response(spoken("1")), response(spoken("2")), response(spoken("3")))
    output = await ask(fake.openai(), "go")
    output = await ask(
        fake.openai(), Input("b", continuation=output.continuation), Environment(instructions="Be brief.")
    )
    assert "environment_drift" in [notice.kind for notice in output.notices]
    output = await ask(fake.openai(), Input("c", continuation=output.continuation), ENV)
    assert ["tools" in body for body in fake.sent] == [True, False, True]
    assert "environment_drift" in [notice.kind for notice in output.notices]
