"""Thought signatures, by the public bug reports: on the part they came with, to the letter, through save and load."""

from __future__ import annotations

import base64
import json

import pytest
from gemini.wire import ENV, FLASH, Fake, after, answer, call, next_input, saved, streamed, text

from pollux_like import Input, Message, ToolCall, ToolResult, interact
from pollux_like.continuation import turns_of

pytestmark = pytest.mark.anyio


async def test_the_signature_of_a_call_goes_back_beside_it_gts_01_gts_09() -> None:
    part = call(args={}, signature="c2ln")
    output, contents = await after(part)
    assert [one.name for one in output.tool_calls] == ["f"]
    assert contents[1] == {"role": "model", "parts": [part]}


async def test_parallel_calls_only_the_first_is_signed_gts_02() -> None:
    parts = [call("f", signature="Uw=="), call("g"), call("f")]
    output, contents = await after(*parts)
    assert len(output.tool_calls) == 3
    assert contents[1]["parts"] == parts
    assert [one["functionResponse"] for one in contents[2]["parts"]] == [
        {"name": "f", "response": {"result": "r0"}},
        {"name": "g", "response": {"result": "r1"}},
        {"name": "f", "response": {"result": "r2"}},
    ]


async def test_a_signature_on_empty_text_at_the_end_stays_gts_04() -> None:
    fake = Fake([answer(text("Hi"), finish=None), answer(text("", thoughtSignature="Uw=="))], answer(text("ok")))
    output, _ = await streamed(ENV, Input("go", history=[]), fake.config())
    assert output.text == "Hi"
    await interact(ENV, next_input(output), fake.config())
    assert fake.contents[1]["parts"] == [text("Hi"), text("", thoughtSignature="Uw==")]


async def test_empty_text_without_a_signature_is_not_replayed() -> None:
    output, contents = await after(text("Hi"), text(""), {}, {"thought": True})
    assert output.text == "Hi"
    assert contents[1]["parts"] == [text("Hi")]


async def test_text_before_a_signed_call_stays_unsigned_gts_06() -> None:
    parts = [text("Looking"), call(signature="Uw==")]
    fake = Fake([answer(parts[0], finish=None), answer(parts[1])], answer(text("ok")))
    output, _ = await streamed(ENV, Input("go"), fake.config())
    await interact(ENV, next_input(output), fake.config())
    assert fake.contents[1]["parts"] == parts


async def test_saved_or_not_the_next_request_is_the_same_bytes_gts_07() -> None:
    fake = Fake(answer(call(signature="+/+/")), answer(text("ok")), answer(text("ok")))
    output = await interact(ENV, Input("go"), fake.config())
    results = [ToolResult(output.tool_calls[0].id, "1")]
    for continuation in (output.continuation, saved(output)):
        await interact(ENV, Input(continuation=continuation, tool_results=results), fake.config())
    assert fake.asked[1].content == fake.asked[2].content


@pytest.mark.parametrize("raw", [bytes(range(256)) * 24, b"\x00\xff\x10"], ids=["long", "no text"])
async def test_a_signature_keeps_its_length_and_alphabet_gts_08_enc_01(raw: bytes) -> None:
    signature = base64.b64encode(raw).decode()
    output, contents = await after(call(signature=signature))
    assert signature in json.dumps(saved(output).to_jsonable())
    assert contents[1]["parts"][0]["thoughtSignature"] == signature


async def test_signed_text_is_no_hidden_thought_gts_11() -> None:
    chunks = [answer(text("The "), finish=None), answer(text("answer", thoughtSignature="Uw=="))]
    output, events = await streamed(ENV, Input("go", history=[]), Fake(chunks).config())
    assert (output.text, output.reasoning) == ("The answer", "")
    assert [event.text for event in events if event.type == "text_delta"] == ["The ", "answer"]


async def test_a_signature_on_an_empty_thought_stays_there_gts_12() -> None:
    parts = [{"thought": True, "text": "", "thoughtSignature": "Uw=="}, call()]
    output, contents = await after(*parts)
    assert contents[1]["parts"] == parts
    assert output.reasoning == ""


async def test_thoughts_are_reasoning_and_go_back_too() -> None:
    parts = [text("I think", thought=True), text("so", thoughtSignature="Uw==")]
    output, contents = await after(*parts)
    assert (output.text, output.reasoning) == ("so", "I think")
    assert contents[1]["parts"] == parts


async def test_what_google_ran_itself_and_unknown_parts_go_back() -> None:
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}, "thoughtSignature": "Uw=="},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
        {"toolCall": {"toolType": "GOOGLE_SEARCH", "id": "s", "args": {"big": 10000000000000000001}}},
        {"toolResponse": {"id": "s", "response": {}}, "brandNew": 1.0},
        text("1"),
    ]
    output, contents = await after(*parts)
    assert contents[1]["parts"] == parts
    assert output.text == "1"


async def test_signed_turns_are_marked() -> None:
    signed, _ = await after(text("a", thoughtSignature="Uw=="))
    plain, _ = await after(text("a"))
    assert [turns_of(saved(one))[0].signed for one in (signed, plain)] == [True, False]


def history() -> list[Message]:
    calls = (ToolCall("c1", "f", "{}"), ToolCall("c2", "g", '{"x": 1}'))
    return [Message("user", "go"), Message("assistant", "Hm", calls), Message("tool", "1", tool_call_id="c1"),
            Message("tool", "2", tool_call_id="c2"), Message("assistant", "", (ToolCall("c3", "f", "{}"),)),
            Message("tool", "3", tool_call_id="c3")]  # fmt: skip


STAND_IN = base64.b64encode(b"context_engineering_is_the_way_to_go").decode()


async def test_an_open_round_of_another_origin_carries_the_stand_in_on_the_first_call_of_each_step() -> None:
    fake = Fake(answer(call("g", signature="Uw==")), answer(text("ok")))
    output = await interact(ENV, Input(history=history()), fake.config())
    steps = [content["parts"] for content in fake.contents if content["role"] == "model"]
    assert [[part.get("thoughtSignature") for part in parts] for parts in steps] == [[None, STAND_IN, None], [STAND_IN]]
    assert [one["functionCall"]["id"] for one in steps[0][1:]] == ["c1", "c2"]
    assert [one["functionResponse"]["id"] for one in fake.contents[2]["parts"]] == ["c1", "c2"]
    assert [notice.kind for notice in output.notices] == ["signature_stand_in"]
    first = fake.contents
    await interact(ENV, next_input(output), fake.config())
    assert fake.contents[: len(first)] == first  # the round goes on, and so do the stand-ins


@pytest.mark.parametrize(("model", "question"), [(FLASH, "next"), ("gemini-2.5-flash", None)])
async def test_no_stand_in_where_none_is_needed(model: str, question: str | None) -> None:
    fake = Fake(answer(text("ok")))
    output = await interact(ENV, Input(question, history=history()), fake.config(model))
    assert STAND_IN not in fake.asked[0].content.decode()
    assert output.notices == ()
