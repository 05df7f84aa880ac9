"""Reported failures of others, tool calls and their results: ids, pairs and order, on every wire."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from wires import (
    CHAT,
    ENV,
    THINK,
    WIRES,
    Body,
    Fake,
    ask,
    calls,
    chat_call,
    chat_sse,
    completion,
    message,
    options,
    pieces,
    reloaded,
    texts,
    thinking,
    tool_use,
    watched,
)

from pollux_like import ConfigurationError, Continuation, Input, Message, ToolCall, ToolResult, handoff

pytestmark = pytest.mark.anyio
LIMITS = {"openai": 64, "chat": 40, "anthropic": 64}


def called(*made: ToolCall | str) -> Message:
    """An assistant message that calls f."""
    return Message("assistant", tool_calls=tuple(ToolCall(one, "f") if isinstance(one, str) else one for one in made))


def answer(call_id: str, text: str = "ok") -> Message:
    return Message("tool", text, tool_call_id=call_id)


def pairs(wire: str, said: list[Body]) -> tuple[list[str], list[str], list[str]]:
    """The ids of the calls, the ids of the results, and the texts of the results, in the order of the request."""
    blocks = said
    if wire == "anthropic":
        blocks = [block for one in said if isinstance(one["content"], list) for block in one["content"]]
        made = [block["id"] for block in blocks if block["type"] == "tool_use"]
        results = [(block["tool_use_id"], block.get("content")) for block in blocks if block["type"] == "tool_result"]
    elif wire == "chat":
        made = [call["id"] for one in said for call in one.get("tool_calls") or ()]
        results = [(one["tool_call_id"], one["content"]) for one in said if one["role"] == "tool"]
    else:
        made = [one["call_id"] for one in said if one.get("type") == "function_call"]
        results = [(one["call_id"], one["output"]) for one in said if one.get("type") == "function_call_output"]
    return made, [one[0] for one in results], [one[1] for one in results]


@pytest.mark.parametrize(
    ("case", "history", "named"),
    [
        ("PAIR-01", [Message("user", "a"), called("c1", "c2"), answer("c1")], ["c2"]),
        ("PAIR-02", [answer("c0"), Message("user", "a"), Message("assistant", "b")], ["history[0]", "c0"]),
        ("PAIR-04", [Message("user", "summary"), answer("c9"), Message("assistant", "b")], ["c9", "history[1]"]),
        ("ROL-03", [called("c1"), answer("c1"), Message("user", "a")], ["history[0]", "assistant"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("wire", WIRES)
async def test_broken_histories_are_refused_alike(
    wire: str, case: str, history: list[Message], named: list[str]
) -> None:
    """PAIR-01 a result was never saved, PAIR-02 and PAIR-04 the call was trimmed or summed up, ROL-03 no user begins."""
    fake = Fake()
    with pytest.raises(ConfigurationError) as caught:
        await ask(fake.at(wire), Input("hello again", history=history), **options(wire))
    assert not [word for word in named if word not in str(caught.value)], case
    assert fake.raw == []


@pytest.mark.parametrize(
    ("case", "given", "named"),
    [
        ("PAIR-04", {"tool_results": [ToolResult("unknown", "x")]}, ["unknown"]),
        ("PAIR-05", {"content": "forget it"}, ["c1", "c2", "cancelled"]),
        ("PAIR-08", {"tool_results": [ToolResult(one, "x") for one in ("c1", "c1", "c2")]}, ["c1", "second time"]),
        ("PAIR-08", {"tool_results": [ToolResult(one, "x") for one in ("c1", "c2", "c3")]}, ["c3"]),
    ],
)
@pytest.mark.parametrize("wire", WIRES)
async def test_wrong_results_are_refused_and_the_state_stays(
    wire: str, case: str, given: Any, named: list[str]
) -> None:
    """PAIR-04 unknown, PAIR-05 left open by a cancelled run, PAIR-08 repeated or foreign; the remedy works after."""
    fake = Fake(calls(wire, "c1", "c2"), texts(wire, "fine"))
    first = (await ask(fake.at(wire), "go", **options(wire))).continuation
    with pytest.raises(ConfigurationError) as caught:
        await ask(fake.at(wire), Input(continuation=first, **given), **options(wire))
    assert not [word for word in named if word not in str(caught.value)], case
    cancelled = [ToolResult(one, "cancelled", is_error=True) for one in ("c1", "c2")]
    output = await ask(fake.at(wire), Input("forget it", continuation=first, tool_results=cancelled), **options(wire))
    assert output.text == "fine"
    assert len(fake.raw) == 2


LONG = "x" * 70
IDS = {
    "TID-01": ("x" * 86,),
    "TID-02": (LONG + "1", LONG + "2"),
    "TID-04": ("call_a|fc_1", "call_a|fc_2"),
}


@pytest.mark.parametrize("case", IDS)
@pytest.mark.parametrize("wire", WIRES)
async def test_foreign_ids_become_legal_and_stay_distinct(wire: str, case: str) -> None:
    """TID-01 too long, TID-02 alike at the front, TID-04 composite: legal, one to one, and the same in every request."""
    fake = Fake(texts(wire, "1"), texts(wire, "2"))
    ids = IDS[case]
    history = [Message("user", "a"), called(*ids), *(answer(one, f"r{k}") for k, one in enumerate(ids))]
    output = await ask(fake.at(wire), Input("go", history=history), **options(wire))
    await ask(fake.at(wire), Input("more", continuation=reloaded(output.continuation)), **options(wire))
    made, answered, contents = pairs(wire, fake.said[0])
    assert made == answered
    assert contents == [f"r{k}" for k in range(len(ids))]
    assert len(set(made)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", one) and len(one) <= LIMITS[wire] for one in made)
    assert pairs(wire, fake.said[1]) == (made, answered, contents)
    assert output.continuation is not None
    assert [call.id for one in handoff(output.continuation).history for call in one.tool_calls] == list(ids)


@pytest.mark.parametrize("wire", WIRES)
async def test_tid_05_ids_that_repeat_over_turns(wire: str) -> None:
    """TID-05: a server that counts anew in every turn loses no call and no result, here or at another target."""
    history = [
        Message("user", "a"),
        called(ToolCall("list_dir:0", "f", '{"a":1}')), answer("list_dir:0", "A"), Message("assistant", "b"),
        Message("user", "c"), called(ToolCall("list_dir:0", "f", '{"a":2}')), answer("list_dir:0", "B"),
    ]  # fmt: skip
    fake = Fake(texts(wire, "x"), calls(wire, "list_dir:0"), calls(wire, "list_dir:0"), texts(wire, "y"))
    await ask(fake.at(wire), Input("go", history=history), **options(wire))
    made, answered, contents = pairs(wire, fake.said[0])
    assert (made, contents) == (answered, ["A", "B"])
    assert len(set(made)) == 2
    output = await ask(fake.at(wire), "go", **options(wire))
    for text in ("A", "B"):
        given = Input(continuation=reloaded(output.continuation), tool_results=[ToolResult("list_dir:0", text)])
        output = await ask(fake.at(wire), given, **options(wire))
    assert pairs(wire, fake.said[3]) == (["list_dir:0"] * 2, ["list_dir:0"] * 2, ["A", "B"])


def without_ids(wire: str, count: int) -> Body:
    """Calls as a server gives them that numbers nothing."""
    body = calls(wire, *(str(k) for k in range(count)))
    for one in body.get("content") or body.get("output") or body["choices"][0]["message"]["tool_calls"]:
        one.pop("id", None)
        one.pop("call_id", None)
    return body


@pytest.mark.parametrize("count", [2, 12])
@pytest.mark.parametrize("wire", WIRES)
async def test_tid_07_and_08_calls_without_ids(wire: str, count: int) -> None:
    """TID-07, TID-08: calls that came without an id get unique legal ones, which pair the results in the next request."""
    fake = Fake(without_ids(wire, count), texts(wire, "done"))
    output = await ask(fake.at(wire), "go", **options(wire))
    ids = [call.id for call in output.tool_calls]
    assert len(set(ids)) == count
    assert max(map(len, ids)) <= 40
    state = reloaded(output.continuation)
    assert [call.id for call in state.pending_tool_calls] == ids
    results = [ToolResult(one, f"r{k}") for k, one in enumerate(ids)]
    await ask(fake.at(wire), Input(continuation=state, tool_results=results), **options(wire))
    assert pairs(wire, fake.said[1]) == (ids, ids, [f"r{k}" for k in range(count)])


async def test_tid_07_streamed_calls_without_ids() -> None:
    """TID-07: the ids that are made up are the same ones in the events, in the output and in the next request."""
    fake = Fake(chat_sse(pieces(0, "{}", name="f"), pieces(1, "{}", name="f"), finish="tool_calls"))
    output, events = await watched(fake.openai(), "go", **CHAT)
    seen = [event.tool_call.id for event in events if event.tool_call is not None]
    assert seen == [call.id for call in output.tool_calls]
    assert len(set(seen)) == 2


async def test_an_id_given_twice_in_one_turn_is_no_turn() -> None:
    """TID-04: where the provider itself repeats an id, the answer cannot be paired: an error of the provider's, typed."""
    from pollux_like import APIError

    for wire in ("openai", "anthropic"):
        with pytest.raises(APIError, match="cannot be read"):
            await ask(Fake(calls(wire, "c1", "c1")).at(wire, max_attempts=1), "go")
    body = completion({"tool_calls": [chat_call("c1"), chat_call("c1")]})
    output = await ask(Fake(body).openai(), "go", **CHAT)  # servers of this wire do it for good: the second is renamed
    assert len({call.id for call in output.tool_calls}) == 2


@pytest.mark.parametrize("order", [("c1", "c2", "c3"), ("c3", "c1", "c2")])
@pytest.mark.parametrize("wire", WIRES)
async def test_ptr_01_02_03_results_stand_together_in_call_order_before_new_text(wire: str, order: Any) -> None:
    """PTR-01 one message where the API has one, PTR-02 matched by id, PTR-03 results first and the user's text after."""
    fake = Fake(calls(wire, "c1", "c2", "c3"), texts(wire, "done"))
    first = (await ask(fake.at(wire), "go", **options(wire))).continuation
    results = [ToolResult(one, one.upper()) for one in order]
    await ask(fake.at(wire), Input("also do X", continuation=first, tool_results=results), **options(wire))
    assert pairs(wire, fake.said[1]) == (["c1", "c2", "c3"], ["c1", "c2", "c3"], ["C1", "C2", "C3"])
    last = fake.said[1][-1]
    if wire == "anthropic":
        assert [block["type"] for block in last["content"]] == ["tool_result"] * 3 + ["text"]
        assert [one["role"] for one in fake.said[1]] == ["user", "assistant", "user"]
    else:
        assert last == {"role": "user", "content": "also do X"}


async def test_ptr_05_a_signed_turn_is_never_taken_apart() -> None:
    """PTR-05: one assistant turn with two calls stays one turn."""
    blocks = [thinking("t", "S"), tool_use("c1"), tool_use("c2")]
    fake = Fake(message(*blocks), texts("anthropic", "done"))
    first = (await ask(fake.anthropic(), "go", **THINK)).continuation
    results = [ToolResult("c1", "1"), ToolResult("c2", "2")]
    await ask(fake.anthropic(), Input(continuation=first, tool_results=results), **THINK)
    assert fake.said[1][1] == {"role": "assistant", "content": blocks}
    assert len(fake.said[1]) == 3


@pytest.mark.parametrize("wire", WIRES)
async def test_ptr_08_a_result_that_holds_a_schema_is_text(wire: str) -> None:
    """PTR-08: what looks like a reference inside a result is sent as the text that it is."""
    schema = '{"schema":{"$ref":"#/$defs/X"}}'
    fake = Fake(calls(wire, "c1"), texts(wire, "done"))
    state: Continuation | None = (await ask(fake.at(wire), "go", ENV, **options(wire))).continuation
    result = ToolResult.from_value(call_id="c1", value=json.loads(schema))
    await ask(fake.at(wire), Input(continuation=state, tool_results=[result]), **options(wire))
    assert pairs(wire, fake.said[1])[2] == [schema]
