"""Answers as they come: finish reasons, empty and blocked ones, streams, usage, calls without ids."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from gemini.wire import ENV, FLASH, Body, Fake, answer, call, next_input, saved, streamed, text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pollux_like_gemini.parse import ContentParser

from pollux_like import APIError, Config, Input, StreamInterruptedError, ToolResult, handoff, interact
from pollux_like.continuation import turns_of
from pollux_like.output import Finish
from pollux_like.provider import Reply

pytestmark = [
    pytest.mark.anyio,
    # httpx2 leaves its own generators open where a stream is not read to its end, which trio points out.
    pytest.mark.filterwarnings("ignore:Async generator 'httpx2:ResourceWarning"),
]


async def test_calls_without_ids_get_their_own_and_keep_them_tid_07() -> None:
    fake = Fake(answer(call(args={"a": 1}), call(args={"a": 1})), answer(text("ok")))
    output = await interact(ENV, Input("go"), fake.config())
    first, second = output.tool_calls
    assert first.id != second.id
    assert saved(output).pending_tool_calls == output.tool_calls
    results = [ToolResult(second.id, "two"), ToolResult(first.id, "one")]
    await interact(ENV, Input(continuation=saved(output), tool_results=results), fake.config())
    answers = [part["functionResponse"] for part in fake.contents[2]["parts"]]
    assert [one["response"]["result"] for one in answers] == ["one", "two"]
    assert all("id" not in one for one in answers)


async def test_ids_that_came_go_back() -> None:
    fake = Fake(answer(call(id="abc"), call("g", id="")), answer(text("ok")))
    output = await interact(ENV, Input("go"), fake.config())
    assert output.tool_calls[0].id == "abc"
    await interact(ENV, next_input(output), fake.config())
    assert [part["functionResponse"].get("id") for part in fake.contents[2]["parts"]] == ["abc", None]


def body(finish: str | None, *parts: Body, **more: Any) -> Body:
    return {"candidates": [{"content": {"parts": list(parts)} if parts else {}, "finishReason": finish, **more}]}


FINISHES = [
    (body("MALFORMED_FUNCTION_CALL"), "malformed_tool_call"),
    ({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "content": {"parts": None}}]}, "malformed_tool_call"),
    (body("UNEXPECTED_TOOL_CALL"), "malformed_tool_call"),
    (body("UNEXPECTED_TOOL_CALL", call("other")), "tool_calls"),
    (body("STOP", call()), "tool_calls"),
    (body("MAX_TOKENS"), "length"),
    *((body(one), "content_filter") for one in ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")),
    (body("SAFETY", text("half")), "content_filter"),
    *((body(one), "other") for one in ("OTHER", "LANGUAGE", "MISSING_THOUGHT_SIGNATURE", "BRAND_NEW", "CONTINUATION")),
    (body("STOP"), "stop"),
]


@pytest.mark.parametrize(("given", "status"), FINISHES)
@pytest.mark.parametrize("as_stream", [False, True])
async def test_every_finish_reason_has_a_status_fin_04_fin_06(given: Body, status: str, as_stream: bool) -> None:
    fake, asking = Fake(given), Input("go", history=[])
    if as_stream:
        output, _ = await streamed(ENV, asking, fake.config())
    else:
        output = await interact(ENV, asking, fake.config())
    assert output.finish == Finish(status, given["candidates"][0]["finishReason"])  # type: ignore[arg-type]
    assert len(fake.asked) == 1
    assert saved(output).pending_tool_calls == output.tool_calls


@pytest.mark.parametrize("as_stream", [False, True])
async def test_a_blocked_prompt_is_told_from_a_blocked_answer_fin_06(as_stream: bool) -> None:
    fake = Fake({"promptFeedback": {"blockReason": "SAFETY"}}, answer(text("ok")))
    asking = Input("go", history=[])
    output = (
        (await streamed(ENV, asking, fake.config()))[0] if as_stream else await interact(ENV, asking, fake.config())
    )
    assert output.finish == Finish("content_filter", "blockReason:SAFETY")
    assert [notice.kind for notice in output.notices] == ["prompt_blocked"]
    await interact(ENV, Input("other", continuation=saved(output)), fake.config())
    assert [content["role"] for content in fake.contents] == ["user", "user"]


async def test_no_answer_at_all_is_an_error() -> None:
    for given_body in ({}, {"candidates": []}, [], "no object"):
        with pytest.raises(APIError) as caught:
            await interact(ENV, Input("go"), Fake(httpx2.Response(200, json=given_body)).config(max_attempts=1))
        assert caught.value.retryable


async def test_thinking_counts_as_output_use_03() -> None:
    usage = {"promptTokenCount": 20, "candidatesTokenCount": 151, "thoughtsTokenCount": 382, "totalTokenCount": 553}
    output = await interact(ENV, Input("go"), Fake(answer(text("x"), usageMetadata=usage)).config())
    numbers = output.usage
    assert (numbers.input_tokens, numbers.output_tokens, numbers.reasoning_tokens) == (20, 533, 382)
    assert numbers.total_tokens == 553


async def test_usage_of_a_stream_is_its_last_word() -> None:
    first, last = {"promptTokenCount": 9, "candidatesTokenCount": 1}, {
        "promptTokenCount": 9, "candidatesTokenCount": 4, "cachedContentTokenCount": 6, "toolUsePromptTokenCount": 2,
    }  # fmt: skip
    chunks = [answer(text("a"), finish=None, usageMetadata=first), answer(text("b"), usageMetadata=last)]
    output, _ = await streamed(ENV, Input("go"), Fake(chunks).config())
    assert (output.usage.input_tokens, output.usage.output_tokens, output.usage.cached_tokens) == (11, 4, 6)


async def test_a_finish_reason_in_the_middle_ends_nothing() -> None:
    output, _ = await streamed(ENV, Input("go"), Fake([answer(text("a")), answer(text("b"))]).config())
    assert output.text == "ab"


async def test_what_says_nothing_after_the_finish_reason_changes_nothing() -> None:
    last: list[Any] = [answer(text(""), finish=None), {"candidates": [{"index": 0}]}, {"usageMetadata": {}}]
    output, _ = await streamed(ENV, Input("go"), Fake([answer(text("a")), *last]).config())
    assert (output.text, output.finish) == ("a", Finish("stop", "STOP"))


CUT = [
    [answer(text("a"), finish=None)],
    [answer(text("a")), answer(text("b"), finish=None)],
    [answer(text("a"), finish=None), 'data: {"candidates": [{"con'],
    [],
]


@pytest.mark.parametrize("chunks", CUT)
async def test_a_stream_without_its_end_is_no_turn(chunks: list[Any]) -> None:
    with pytest.raises(APIError) as caught:
        await streamed(ENV, Input("go"), Fake(chunks).config(max_attempts=1))
    assert caught.value.retryable
    if chunks and not isinstance(chunks[-1], str):
        assert isinstance(caught.value, StreamInterruptedError)
        assert caught.value.partial_text == "".join(
            one["candidates"][0]["content"]["parts"][0]["text"] for one in chunks
        )


async def test_an_error_inside_a_stream_is_typed() -> None:
    chunks = [
        answer(text("a"), finish=None),
        {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}},
    ]
    with pytest.raises(APIError) as caught:
        await streamed(ENV, Input("go"), Fake(chunks).config())
    assert (caught.value.status, caught.value.type, caught.value.retryable) == (503, "UNAVAILABLE", True)


async def test_a_pause_is_taken_up_with_its_token_and_becomes_one_answer() -> None:
    held = answer(text("one "), finish="CONTINUATION")
    held["candidates"][0]["continuationToken"] = "dG9rZW4="
    fake = Fake(held, answer(text("two")), answer(text("ok")))
    first = await interact(ENV, Input("go"), fake.config())
    assert first.finish == Finish("pause", "CONTINUATION")
    assert len(fake.asked) == 1  # nobody asks on by itself
    second = await interact(ENV, Input(continuation=saved(first)), fake.config())
    assert fake.sent[1]["continuationToken"] == "dG9rZW4="
    assert fake.contents == fake.sent[0]["contents"]
    await interact(ENV, Input("next", continuation=saved(second)), fake.config())
    assert fake.contents[1:] == [
        {"role": "model", "parts": [text("one "), text("two")]},
        {"role": "user", "parts": [text("next")]},
    ]
    assert "continuationToken" not in fake.sent[2]


async def test_one_shown_candidate_only() -> None:
    two = answer(text("a"))
    two["candidates"].insert(0, {"index": 1, "content": {"parts": [text("b")]}, "finishReason": "STOP"})
    output = await interact(ENV, Input("go"), Fake(two).config())
    assert output.text == "a"


async def test_handoff_names_what_it_loses() -> None:
    parts = [text("hm", thought=True), {"executableCode": {"code": "1"}}, text("said", thoughtSignature="Uw==")]
    output = await interact(ENV, Input("go", history=[]), Fake(answer(*parts)).config())
    moved = handoff(saved(output))
    assert [message.content for message in moved.history] == ["go", "said"]
    assert any("executableCode" in loss for loss in moved.losses)
    assert any("signature" in loss for loss in moved.losses)


PARTS = st.lists(
    st.one_of(
        st.builds(text, st.text(max_size=6)),
        st.builds(lambda words: text(words, thought=True), st.text(max_size=6)),
        st.builds(lambda words, sign: text(words, thoughtSignature=sign), st.text(max_size=3), st.just("+/A=")),
        st.builds(call, st.sampled_from(["f", "g"]), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)),
        st.just({"codeExecutionResult": {"output": "é\u2028"}}),
    ),
    max_size=6,
)


def replied(chunks: list[Body]) -> Reply:
    parser = ContentParser()
    for chunk in chunks:
        parser.feed(json.dumps(chunk))
    return parser.end()


@given(PARTS, st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_however_a_stream_is_cut_it_is_the_whole_answer(parts: list[Body], data: st.DataObject) -> None:
    whole = ContentParser().whole(json.dumps(answer(*parts)))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(parts)), max_size=4)))
    pieces = [parts[start:end] for start, end in zip([0, *cuts], [*cuts, len(parts)], strict=True)]
    chunks = [answer(*piece, finish=None) for piece in pieces[:-1]] + [answer(*pieces[-1])]
    assert replied(chunks) == whole


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64])
async def test_streamed_or_not_saved_or_not_the_next_request_is_the_same(piece: int) -> None:
    parts = [text("ünï", thought=True), text("a\u2028b"), call(args={"a": 1}, signature="+/+/"), call("g")]
    chunks = [*(answer(part, finish=None) for part in parts), answer(text(""))]
    fake = Fake(chunks, answer(text("ok")), answer(*parts), answer(text("ok")), piece=piece)
    output, events = await streamed(ENV, Input("go"), fake.config())
    await interact(ENV, next_input(output), fake.config())
    again = await interact(ENV, Input("go"), fake.config())
    await interact(ENV, next_input(again), fake.config())
    assert fake.asked[1].content == fake.asked[3].content
    assert (output.text, output.reasoning, output.tool_calls) == (again.text, again.reasoning, again.tool_calls)
    assert tuple(event.tool_call for event in events if event.type == "tool_call") == output.tool_calls
    turns = [turns_of(saved(one))[0] for one in (output, again)]
    assert turns[0].native[:-1] == turns[1].native


def nested(levels: int) -> dict[str, object]:
    value: dict[str, object] = {"a": 1}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "parts",
    [
        [{"text": "a\ud83d"}, {"text": "\ude00b"}],
        [{"text": "a\ud83d"}],
        [{"functionCall": {"name": "f", "id": "x", "args": {"a": "\ud83d"}}}],
        [{"functionCall": {"name": "f", "id": "x", "args": nested(100)}}],
    ],
)
async def test_state_that_goes_on_can_be_handed_off(parts: list[dict[str, object]]) -> None:
    body = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}]}
    answer = httpx2.Response(200, text=json.dumps(body), headers={"content-type": "application/json"})
    fake = Fake(answer)
    config = Config("gemini", FLASH, client=fake.client, max_attempts=1)
    output = await interact(ENV, Input("q", history=[]), config)
    assert output.continuation is not None
    history = handoff(output.continuation).history
    assert [message.role for message in history] == ["user", "assistant"]
    history[-1].content.encode()


@pytest.mark.parametrize("finish", [None, 5])
async def test_a_body_without_a_finish_reason_is_no_turn(finish: object) -> None:
    candidate = {"content": {"role": "model", "parts": [{"text": "Hel"}]}, "index": 0, "finishReason": finish}
    answer = httpx2.Response(
        200, text=json.dumps({"candidates": [candidate]}), headers={"content-type": "application/json"}
    )
    config = Config("gemini", FLASH, client=Fake(answer).client, max_attempts=1)
    with pytest.raises(APIError, match="cannot be read"):
        await interact(ENV, Input("q", history=[]), config)
