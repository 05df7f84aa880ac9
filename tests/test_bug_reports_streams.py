"""Reported failures of others, how answers are put together and end: pieces, terminal events, usage, retries."""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx2
import pytest
from wires import (
    CHAT,
    WIRES,
    Answer,
    Body,
    Fake,
    ask,
    block_events,
    chat_sse,
    chunk,
    completion,
    cut,
    message,
    message_sse,
    options,
    pieces,
    reasoning,
    refused,
    response,
    spoken,
    sse,
    texts,
    tool_use,
    watched,
)

from pollux_like import APIError, Input, Output, StreamInterruptedError, Usage, stream

pytestmark = pytest.mark.anyio
A, B = '{"q":"A"}', '{"q":"B"}'


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """No waiting between attempts; the seconds that would have been waited."""
    seconds: list[float] = []

    async def sleep(delay: float) -> None:
        seconds.append(delay)

    monkeypatch.setattr(anyio, "sleep", sleep)
    return seconds


def heard(output: Output) -> list[tuple[str, str]]:
    return [(call.id, call.arguments_text) for call in output.tool_calls]


@pytest.mark.parametrize(
    ("case", "deltas"),
    [
        ("STR-01", [pieces(0, id="A", name="f"), pieces(1, id="B", name="f"), pieces(0, A), pieces(1, B)]),
        ("STR-02", [pieces(0, A, "A", "f"), pieces(0, B, "B", "f")]),
        ("STR-02", [pieces(None, A, "A", "f"), pieces(None, B, "B", "f")]),
        ("STR-02", [pieces(0, A[:4], "A", "f"), pieces(0, A[4:]), pieces(0, B[:4], "B", "f"), pieces(0, B[4:])]),
        ("STR-03", [pieces(0, A[:4], "A", "f"), pieces(1, A[4:]), pieces(2, B, "B", "f")]),
    ],
)
async def test_fragments_find_their_call(case: str, deltas: list[Body]) -> None:
    """STR-01 by index where the id is absent, STR-02 by id where the index is always 0, STR-03 to the one open call."""
    output, events = await watched(Fake(chat_sse(*deltas, finish="tool_calls")).openai(), "go", **CHAT)
    assert heard(output) == [("A", A), ("B", B)], case
    assert [event.tool_call.id for event in events if event.tool_call is not None] == ["A", "B"]


async def test_str_03_a_fragment_of_no_call_is_an_error() -> None:
    """STR-03: with two calls open, a piece under a third index is not guessed at and not dropped."""
    opened = [pieces(0, "{", "A", "f"), pieces(1, "{", "B", "f"), pieces(2, "}")]
    with pytest.raises(APIError, match="belongs to no call"):
        await watched(Fake(chat_sse(*opened, finish="tool_calls")).openai(), "go", **CHAT)


def call_events(index: int, call_id: str, arguments: str) -> tuple[Body, list[Body], Body]:
    """The events of one function call: added, deltas that name only the item, done."""
    item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": "f", "arguments": ""}
    delta = {"type": "response.function_call_arguments.delta", "item_id": f"fc_{call_id}", "output_index": index}
    return (
        {"type": "response.output_item.added", "output_index": index, "item": item},
        [{**delta, "delta": piece} for piece in (arguments[:4], arguments[4:])],
        {"type": "response.output_item.done", "output_index": index, "item": {**item, "arguments": arguments}},
    )


async def test_str_04_argument_events_are_keyed_by_their_item() -> None:
    """STR-04: interleaved argument events name no call id; each call gets its own."""
    (add_a, deltas_a, done_a), (add_b, deltas_b, done_b) = call_events(1, "A", A), call_events(2, "B", B)
    mixed = [piece for pair in zip(deltas_a, deltas_b, strict=True) for piece in pair]
    final = response(spoken("t"), done_a["item"], done_b["item"])
    said = {"type": "response.output_item.done", "output_index": 0, "item": spoken("t")}
    events = [said, add_a, add_b, *mixed, done_b, done_a, {"type": "response.completed", "response": final}]
    output, seen = await watched(Fake(sse(*events)).openai(), "go")
    assert heard(output) == [("A", A), ("B", B)]
    told = [(e.index, e.text) for e in seen if e.type == "tool_call_delta"]
    assert ["".join(text for at, text in told if at == index) for index in (0, 1)] == [A, B]


async def test_str_06_reasoning_and_answer_count_apart() -> None:
    """STR-06: the summary's index 0 and the text's index 0 are different things."""
    final = response(reasoning(text="why"), spoken("answer"))
    events = [
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "why"},
        {
            "type": "response.output_text.delta",
            "output_index": 1,
            "content_index": 0,
            "item_id": "m",
            "delta": "answer",
        },
        {"type": "response.completed", "response": final},
    ]
    output, seen = await watched(Fake(sse(*events)).openai(), "go")
    assert (output.reasoning, output.text) == ("why", "answer")
    shown = [(event.type, event.text) for event in seen if event.text]
    assert shown == [("reasoning_delta", "why"), ("text_delta", "answer")]


async def test_str_07_an_empty_text_before_a_call_is_no_answer() -> None:
    """STR-07: a blank content delta shows nothing and ends nothing."""
    fake = Fake(chat_sse({"content": ""}, pieces(0, A, "A", "f"), finish="tool_calls"))
    output, seen = await watched(fake.openai(), "go", **CHAT)
    assert heard(output) == [("A", A)]
    assert (output.text, output.finish.status) == ("", "tool_calls")
    assert not [event for event in seen if event.type == "text_delta"]


START = {"type": "message_start", "message": message()}
HELLO: dict[str, list[Body]] = {
    "openai": [{"type": "response.output_text.delta", "output_index": 0, "item_id": "m", "delta": "Hel"}],
    "chat": [chunk({"content": "Hel"})],
    "anthropic": [START, *block_events(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hel"})],
}


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_trm_01_and_rty_03_a_stream_that_just_ends_is_no_answer(wire: str, broken: bool) -> None:
    """TRM-01: no terminal event, no turn, the text for display only. RTY-03: and no second attempt after what was seen."""
    text = sse(*HELLO[wire])
    fake = Fake(texts(wire, "hi"), cut(text) if broken else text, texts(wire, "again"))
    first = (await ask(fake.at(wire), "go", **options(wire))).continuation
    with pytest.raises(StreamInterruptedError) as caught:
        await watched(fake.at(wire), Input("more", continuation=first), **options(wire))
    assert caught.value.partial_text == "Hel"
    assert len(fake.raw) == 2
    assert (await ask(fake.at(wire), Input("more", continuation=first), **options(wire))).text == "again"
    assert fake.said[2] == fake.said[1]


async def test_trm_01_a_finish_reason_without_the_end_marker_is_no_end() -> None:
    """TRM-01: OpenAI's chat stream ends in its marker; a reason to finish alone may be followed by more."""
    text = sse(chunk({"content": "Hel"}), chunk({}, "stop"))
    with pytest.raises(StreamInterruptedError):
        await watched(Fake(text).openai(), "go", **CHAT)


@pytest.mark.parametrize("wire", WIRES)
async def test_trm_03_leaving_a_stream_makes_no_turn(wire: str) -> None:
    """TRM-03: the consumer breaks off; the state before it goes on, with nothing of the abandoned turn."""
    fake = Fake(texts(wire, "hi"), sse(*HELLO[wire]), texts(wire, "again"))
    first = (await ask(fake.at(wire), "go", **options(wire))).continuation
    from wires import ENV

    async with stream(ENV, Input("more", continuation=first), fake.at(wire), **options(wire)) as events:
        async for event in events:
            if event.type == "text_delta":
                break
    await ask(fake.at(wire), Input("more", continuation=first), **options(wire))
    assert fake.said[2] == fake.said[1]
    assert b"Hel" not in fake.raw[2]


async def test_use_01_cumulative_usage_is_not_added_up() -> None:
    """USE-01: the last word on each field counts, and what was read from the cache is part of the input."""
    started = message(usage={"input_tokens": 9, "cache_read_input_tokens": 1, "output_tokens": 0})
    ended = {"cache_read_input_tokens": 1, "output_tokens": 16}
    body = sse(
        {"type": "message_start", "message": {**started, "stop_reason": None}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": ended},
        {"type": "message_stop"},
    )
    output, _ = await watched(Fake(body).anthropic(), "go")
    assert output.usage == Usage(input_tokens=10, output_tokens=16, cached_tokens=1)


REASONED = {"prompt_tokens": 20, "completion_tokens": 100, "completion_tokens_details": {"reasoning_tokens": 80}}


@pytest.mark.parametrize("last", [chunk(usage=REASONED), chunk({}, usage=REASONED)])
async def test_use_04_06_07_usage_wherever_it_comes(last: Body) -> None:
    """USE-04 reasoning is counted once, USE-06 in a chunk of its own, USE-07 or beside an empty choice; both asked for."""
    fake = Fake(chat_sse({"content": "hi"}, last=last), completion({"content": "hi"}, usage=REASONED))
    output, seen = await watched(fake.openai(), "go", **CHAT)
    assert output.usage == Usage(20, 100, reasoning_tokens=80)
    assert output.usage.total_tokens == 120
    assert [event.text for event in seen if event.type == "text_delta"] == ["hi"]
    assert fake.sent[0]["stream_options"] == {"include_usage": True}
    assert (await ask(fake.openai(), "go", **CHAT)).usage == output.usage


async def test_fin_01_a_paused_turn_goes_on_as_it_is() -> None:
    """FIN-01: a pause is no end; the turn goes back untouched, with nothing after it, and new content has to wait."""
    blocks = [
        {"type": "text", "text": "I search. "},
        {"type": "server_tool_use", "id": "srv_1", "name": "s", "input": {}},
    ]
    fake = Fake(message(*blocks, stop="pause_turn"), texts("anthropic", "found"))
    output = await ask(fake.anthropic(), "go")
    assert (output.finish.status, output.finish.raw) == ("pause", "pause_turn")
    assert (await ask(fake.anthropic(), Input(continuation=output.continuation))).text == "found"
    assert fake.said[1][1:] == [{"role": "assistant", "content": blocks}]


REFUSED: dict[str, tuple[Body, str]] = {
    "openai": (response({**spoken(""), "content": [{"type": "refusal", "refusal": "I will not"}]}), "completed"),
    "chat": (completion({"refusal": "I will not"}), "stop"),
    "anthropic": (message(stop="refusal", stop_details={"type": "refusal", "explanation": "I will not"}), "refusal"),
}


@pytest.mark.parametrize("wire", WIRES)
async def test_fin_02_a_refusal_is_no_answer(wire: str) -> None:
    """FIN-02: it has a reason and words of its own, empty content is no error, and the conversation can go on."""
    fake = Fake(REFUSED[wire][0], texts(wire, "fine"))
    output = await ask(fake.at(wire), "go", **options(wire))
    assert (output.finish.status, output.finish.raw) == ("refusal", REFUSED[wire][1])
    assert (output.text, output.refusal) == ("", "I will not")
    assert (await ask(fake.at(wire), Input("ok", continuation=output.continuation), **options(wire))).text == "fine"


async def test_fin_02_a_streamed_refusal_is_the_same() -> None:
    """FIN-02: streamed, the Messages wire ends in the same reason."""
    output, _ = await watched(Fake(message_sse(stop="refusal")).anthropic(), "go")
    assert (output.finish.status, output.text) == ("refusal", "")
    final = REFUSED["openai"][0]
    output, _ = await watched(Fake(sse({"type": "response.completed", "response": final})).openai(), "go")
    assert (output.finish.status, output.refusal) == ("refusal", "I will not")
    output, _ = await watched(Fake(chat_sse({"refusal": "I will "}, {"refusal": "not"})).openai(), "go", **CHAT)
    assert (output.finish.status, output.refusal) == ("refusal", "I will not")


async def test_fin_08_an_incomplete_response_is_cut_not_complete() -> None:
    """FIN-08: the token limit shows as such, streamed or not, with an empty text where nothing was said."""
    items = [reasoning(), {**spoken(""), "content": []}]
    body = response(*items, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    fake = Fake(body, sse({"type": "response.incomplete", "response": body}))
    for output in (await ask(fake.openai(), "go"), (await watched(fake.openai(), "go"))[0]):
        assert (output.finish.status, output.finish.raw, output.text) == ("length", "max_output_tokens", "")


@pytest.mark.parametrize("wire", WIRES)
async def test_rty_01_a_failed_turn_leaves_nothing_behind(wire: str) -> None:
    """RTY-01: after a failure the same state asks the same question once, byte for byte."""
    fake = Fake(texts(wire, "hi"), refused(500), texts(wire, "again"))
    first = (await ask(fake.at(wire), "go", **options(wire))).continuation
    assert first is not None
    before = json.dumps(first.to_jsonable())
    with pytest.raises(APIError):
        await ask(fake.at(wire, max_attempts=1), Input("more", continuation=first), **options(wire))
    await ask(fake.at(wire), Input("more", continuation=first), **options(wire))
    assert fake.raw[1] == fake.raw[2]
    assert json.dumps(first.to_jsonable()) == before
    assert len([one for one in fake.said[2] if "more" in json.dumps(one)]) == 1


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}


@pytest.mark.parametrize(
    ("wire", "failure"),
    [
        ("openai", httpx2.ConnectError("down")), ("anthropic", httpx2.ConnectError("down")), ("chat", refused(429)),
        ("anthropic", refused(529)), ("openai", refused(503)), ("anthropic", sse(START, OVERLOADED)),
        ("anthropic", sse(START)), ("openai", lambda _: cut("")),
    ],
)  # fmt: skip
async def test_rty_03_before_anything_was_shown_the_same_bytes_go_again(wire: str, failure: Answer) -> None:
    """RTY-03: what failed before its first visible event is repeated within the limit, with the identical body."""
    done: dict[str, str] = {
        "openai": sse(*HELLO["openai"], {"type": "response.completed", "response": response(spoken("Hel"))}),
        "chat": chat_sse({"content": "Hel"}),
        "anthropic": message_sse(*HELLO["anthropic"][1:]),
    }
    fake = Fake(failure, done[wire])
    output, seen = await watched(fake.at(wire, max_attempts=2), "go", **options(wire))
    assert output.metrics.attempts == 2
    assert fake.raw[0] == fake.raw[1]
    assert "".join(event.text for event in seen if event.type == "text_delta") == output.text == "Hel"


@pytest.mark.parametrize(("status", "attempts"), [(400, 1), (404, 1), (422, 1), (413, 1), (429, 3), (500, 3), (529, 3)])
@pytest.mark.parametrize("wire", WIRES)
async def test_rty_04_only_what_may_pass_is_repeated(wire: str, status: int, attempts: int, waits: list[float]) -> None:
    """RTY-04: a refusal of our own payload is asked for once; overload and limits as often as the config says."""
    fake = Fake(*(refused(status) for _ in range(attempts)))
    with pytest.raises(APIError) as caught:
        await ask(fake.at(wire, max_attempts=3), "go", **options(wire))
    assert (caught.value.status, len(fake.raw), len(waits)) == (status, attempts, attempts - 1)


async def test_arg_02_a_streamed_call_without_arguments() -> None:
    """ARG-02: a streamed call without argument pieces has no arguments, and is a call all the same."""
    fake = Fake(message_sse(*block_events(0, tool_use("t1")), stop="tool_use"), chat_sse(pieces(0, "", "c1", "f"), finish="tool_calls"))  # fmt: skip
    for output in ((await watched(fake.anthropic(), "go"))[0], (await watched(fake.openai(), "go", **CHAT))[0]):
        found: list[Any] = [(call.arguments, call.arguments_error) for call in output.tool_calls]
        assert found == [({}, None)]
