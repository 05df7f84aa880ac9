"""Properties over generated input: codecs, pairing, wire ids, canonical JSON, streams cut anywhere."""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anthropic
import anyio
import httpx2
import openai
import pytest
from google import genai
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pollux_like import (
    Config,
    ConfigurationError,
    Continuation,
    Environment,
    Input,
    Message,
    Output,
    ToolCall,
    ToolResult,
    canonical,
    interact,
    stream,
)
from pollux_like.pairing import pair
from pollux_like.simulator import Simulator
from pollux_like.testing import Scripted, answer, call, say, think
from pollux_like.testing.conversations import TOOLS
from pollux_like.wire_ids import LEGAL, LEGAL_SHORT, wire_ids, wire_name

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
VISIBLE = TEXT.filter(lambda text: bool(text.strip()))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=4)
CALLS = st.lists(st.builds(ToolCall, VISIBLE, VISIBLE, TEXT), max_size=4, unique_by=lambda one: one.id).map(tuple)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    role = draw(st.sampled_from(["user", "assistant", "tool"]))
    if role == "user":
        return Message("user", draw(VISIBLE))
    if role == "tool":
        return Message("tool", draw(TEXT), tool_call_id=draw(VISIBLE), is_error=draw(st.booleans()))
    calls = draw(CALLS)
    return Message("assistant", draw(TEXT if calls else VISIBLE), calls)


@given(messages())
def test_messages_survive_both_codecs(message: Message) -> None:
    assert Message.from_openai(message.to_openai()) == message
    assert Message.from_openai(json.loads(json.dumps(message.to_openai()))) == message
    assert Message.from_jsonable(json.loads(json.dumps(message.to_jsonable(), allow_nan=False))) == message


@given(OBJECT)
def test_arguments_as_object_and_as_text_are_one_value(arguments: dict[str, Any]) -> None:
    made = ToolCall("c", "f", arguments=arguments)
    again = ToolCall.from_text(id="c", name="f", arguments_text=made.arguments_text)
    assert again == made
    assert again.arguments == arguments
    assert again.arguments_dict() == arguments
    cleaned = made.with_arguments({})
    assert ToolCall.from_jsonable(json.loads(json.dumps(cleaned.to_jsonable()))) == cleaned


@given(JSON)
@example("text")
def test_results_from_values_are_their_json_text(value: Any) -> None:
    result = ToolResult.from_value(call_id="c", value=value)
    assert (result.content if isinstance(value, str) else json.loads(result.content)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(1e21)
@example(123456789012345680.0)
def test_canonical_numbers_read_back_and_look_like_ecmascript(number: float) -> None:
    text = canonical.canonical(number)
    assert struct.pack("d", float(text) + 0.0) == struct.pack("d", number + 0.0)
    plain = text.lstrip("-")
    assert ("e" in plain) == (number != 0 and not 1e-6 <= abs(number) < 1e21)
    assert not plain.endswith(".0")


@given(OBJECT, st.randoms())
def test_canonical_json_forgets_key_order_and_nothing_else(value: dict[str, Any], random: Any) -> None:
    keys = list(value)
    random.shuffle(keys)
    assert canonical.canonical({key: value[key] for key in keys}) == canonical.canonical(value)
    text = canonical.canonical(value)
    assert canonical.canonical(json.loads(text)) == text


@given(OBJECT, st.sampled_from([None, 1, 3]))
def test_slices_of_json_text_are_its_parts(value: dict[str, Any], indent: int | None) -> None:
    text = json.dumps({"a": list(value.values()), "b": value}, indent=indent)
    parts = canonical.members(text)
    assert [json.loads(one) for one in canonical.elements(parts["a"])] == list(value.values())
    assert json.loads(canonical.minify(parts["b"])) == value
    assert canonical.minify(text) == json.dumps(json.loads(text), separators=(",", ":")) or "E" in text or "e" in text
    assert (canonical.member(text, "a"), canonical.member(text, "b")) == (parts["a"], parts["b"])


@given(OBJECT, st.lists(OBJECT, max_size=3), st.sampled_from(["a", "native"]))
def test_a_splice_comes_apart_again(head: dict[str, Any], items: list[dict[str, Any]], inner: str) -> None:
    """Also where the head holds members of the name that the items have."""
    head = {"x": {inner: [head, {inner: []}]}} | {
        key: value for key, value in head.items() if key not in ("x", "native")
    }
    texts = [canonical.dumps(item) for item in items]
    assert canonical.unspliced(canonical.splice(head, "native", texts), "native") == (head, tuple(texts))


@given(st.text(max_size=60))
def test_slicing_refuses_what_is_no_json(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        expected = None
    if isinstance(expected, dict):
        assert canonical.members(text).keys() == expected.keys()
        return
    with pytest.raises(canonical.JSONPolicyError):
        canonical.members(text)


STEPS = st.lists(
    st.one_of(
        st.just("user"),
        st.lists(st.sampled_from("abc"), max_size=3, unique=True).map(lambda ids: ("assistant", *ids)),
        st.sampled_from("abcz").map(lambda one: ("tool", one)),
    ),
    max_size=9,
)


def built(steps: Sequence[Any]) -> list[Message]:
    made: list[Message] = []
    for step in steps:
        if step == "user":
            made.append(Message("user", "u"))
        elif step[0] == "tool":
            made.append(Message("tool", "r", tool_call_id=step[1]))
        else:
            made.append(Message("assistant", "a", tuple(ToolCall(one, "f") for one in step[1:])))
    return made


def legal(steps: Sequence[Any]) -> bool:
    """The rule said again, in the plainest way: after an assistant's calls come exactly their results."""
    rest = list(steps)
    while rest:
        step = rest.pop(0)
        if step[0] == "tool":
            return False
        if step[0] == "assistant" and len(step) > 1:
            answers = rest[: len(step) - 1]
            if not answers:
                return True  # still open at the end
            if sorted(map(repr, answers)) != sorted(repr(("tool", one)) for one in step[1:]):
                return False
            rest = rest[len(answers) :]
    return True


@settings(max_examples=400)
@given(STEPS)
def test_the_pairing_validator_lets_out_exactly_the_legal(steps: list[Any]) -> None:
    steps = [step if isinstance(step, str) and step == "user" else tuple(step) for step in steps]
    try:
        ordered, still_open = pair((), built(steps))
    except ConfigurationError:
        assert not legal(steps)
        return
    assert legal(steps)
    assert pair((), ordered) == (ordered, still_open)
    for index, message in enumerate(ordered):
        results = ordered[index + 1 : index + 1 + len(message.tool_calls)]
        assert not results or [one.tool_call_id for one in results] == [one.id for one in message.tool_calls]


@given(st.lists(VISIBLE, min_size=1, max_size=6, unique=True), st.sampled_from([LEGAL, LEGAL_SHORT]))
@example(["x" * 80 + "a", "x" * 80 + "b"], LEGAL)
@example(["call_a|fc_1", "call_a|fc_2"], LEGAL)
def test_wire_ids_are_legal_one_to_one_and_stable(ids: list[str], rule: Any) -> None:
    one_turn = [Message("assistant", "", tuple(ToolCall(one, "f") for one in ids))]
    results = [Message("tool", "r", tool_call_id=one) for one in ids]
    mapped = wire_ids([*one_turn, *results, *one_turn, *results], rule)
    flat = [*mapped[0], *mapped[len(ids) + 1]]
    assert len(set(flat)) == len(flat) == 2 * len(ids)
    assert all(rule.fullmatch(one) for one in flat)
    assert [one[0] for one in mapped[1 : len(ids) + 1]] == list(mapped[0])
    assert [one[0] for one in mapped[len(ids) + 2 :]] == list(mapped[len(ids) + 1])
    assert mapped == wire_ids([*one_turn, *results, *one_turn, *results], rule)


@given(VISIBLE)
def test_wire_names_are_legal(name: str) -> None:
    assert LEGAL.fullmatch(wire_name(name))


TURNS = st.lists(
    st.tuples(VISIBLE, st.lists(st.one_of(TEXT.map(say), TEXT.map(think)), max_size=3), OBJECT), min_size=1, max_size=4
)


@settings(max_examples=40, deadline=None)
@given(TURNS)
def test_the_codec_rebuilds_the_identical_request(turns: list[tuple[str, list[Any], dict[str, Any]]]) -> None:
    async def play(*, saved: bool) -> list[str]:
        model = Scripted(
            *[
                x
                for _, parts, arguments in turns
                for x in (answer(*parts, call("note", arguments, id="c")), [say("ok")])
            ]
        )
        env = Environment(tools=TOOLS)
        continuation: Continuation | None = None
        for text, _, _ in turns:
            history = [] if continuation is None else None
            output = await interact(env, Input(text, history=history, continuation=continuation), model.config)
            state = _through(output) if saved else output.continuation
            results = [ToolResult("c", text, is_error=len(text) % 2 == 0)]
            output = await interact(env, Input(continuation=state, tool_results=results), model.config)
            continuation = _through(output) if saved else output.continuation
        return [request.body for request in model.requests]

    assert anyio.run(lambda: play(saved=True)) == anyio.run(lambda: play(saved=False))


def _through(output: Output) -> Continuation:
    assert output.continuation is not None
    return Continuation.from_jsonable(json.loads(json.dumps(output.continuation.to_jsonable(), sort_keys=True)))


@pytest.fixture(scope="module")
def streams() -> dict[str, bytes]:
    """One streamed reply of each dialect, as its bytes."""
    found: dict[str, bytes] = {}
    parts = (
        think("Überlegung 🤔"),
        say("Grüße\n\n👋 \u2028"),
        call("note", {"text": "a\u0000ü🎉"}, id="call_1"),
        call("get_time", "", id="call_2"),
    )
    bodies: dict[str, tuple[str, dict[str, Any]]] = {
        "openai": ("/responses", {"model": "gpt-5.2", "input": "x", "stream": True}),
        "chat": ("/chat/completions", {"model": "gpt-5.2", "messages": [{"role": "user", "content": "x"}], "stream": True,
                                       "stream_options": {"include_usage": True}}),
        "openrouter": ("/chat/completions", {"model": "openai/gpt-5.2", "messages": [{"role": "user", "content": "x"}],
                                             "stream": True}),
        "anthropic": ("/v1/messages", {"model": "claude-opus-4-6", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "x"}]}),
        "gemini": ("/v1/models/gemini-3-flash-preview:streamGenerateContent?alt=sse",
                   {"contents": [{"parts": [{"text": "x"}]}], "generationConfig": {"thinkingConfig": {"includeThoughts": True}}}),
    }  # fmt: skip
    with Simulator(seed=3, strict=False) as sim:
        for name, (path, body) in bodies.items():
            sim.reply(answer(*parts))
            headers = {"authorization": "Bearer sim-key", "anthropic-version": "2023-06-01"}
            found[name] = httpx2.post(sim.base_url(name) + path, json=body, headers=headers).content
    return found


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece

    async def aclose(self) -> None:
        """Nothing is open."""


async def watched(name: str, pieces: list[bytes]) -> Output:
    def respond(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=_Pieces(pieces))

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(respond))
    client: Any
    if name == "gemini":
        sends = genai.types.HttpOptions(httpx_async_client=http)
        client = genai.Client(vertexai=False, api_key="k", http_options=sends)
    else:
        client = (anthropic.AsyncAnthropic if name == "anthropic" else openai.AsyncOpenAI)(
            api_key="k", http_client=http
        )
    models = {"anthropic": "claude-opus-4-6", "gemini": "gemini-3-flash-preview", "openrouter": "openai/gpt-5.2"}
    provider, model = (name, models[name]) if name in models else ("openai", "gpt-5.2")
    options: Any = {"openai": {"api": "chat"}} if name == "chat" else None
    output: Output | None = None
    async for event in stream(
        Environment(tools=TOOLS),
        Input("x", history=[]),
        Config(provider, model, client=client, max_attempts=1),
        provider_options=options,
    ):
        output = event.output
    await http.aclose()
    assert output is not None
    return output


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("name", ["openai", "chat", "anthropic", "gemini", "openrouter"])
@given(data=st.data())
def test_a_stream_cut_anywhere_gives_the_same_output(streams: dict[str, bytes], name: str, data: st.DataObject) -> None:
    whole = streams[name]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=60)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True) if a != b]
    one = anyio.run(watched, name, [whole])
    many = anyio.run(watched, name, pieces)
    assert many.continuation == one.continuation
    assert (many.text, many.reasoning, many.tool_calls, many.usage) == (
        one.text,
        one.reasoning,
        one.tool_calls,
        one.usage,
    )
    assert one.text == "Grüße\n\n👋 \u2028"
    assert [made.arguments for made in one.tool_calls] == [{"text": "a\u0000ü🎉"}, {}]


@pytest.mark.parametrize("name", ["openai", "chat", "anthropic", "gemini", "openrouter"])
def test_a_stream_cut_short_at_any_byte_is_never_a_turn(streams: dict[str, bytes], name: str) -> None:
    from pollux_like import APIError

    whole = streams[name]
    ends = {"openai": b"event: response.completed", "anthropic": b"event: message_stop"}
    last = whole.rindex(ends.get(name, b"data: "))
    for cut in [*range(0, last, 97), last]:
        with pytest.raises(APIError):
            anyio.run(watched, name, [whole[:cut]])
