"""Answers and clients of a strange form: what escaped as a foreign error, or poisoned the saved state."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from wires import (
    ENV,
    WIRES,
    Answer,
    Fake,
    ask,
    block_events,
    calls,
    chat_call,
    completion,
    function_call,
    message,
    message_sse,
    options,
    refused,
    reloaded,
    response,
    spoken,
    texts,
    tool_use,
    watched,
)

from pollux_like import (
    APIError,
    Config,
    ConfigurationError,
    Input,
    Source,
    ToolResult,
    handoff,
    interact,
    turn,
)

pytestmark = pytest.mark.anyio

LONE = "\ud83d"


async def goes_on(wire: str, first: Answer, *, streamed: bool = False) -> Any:
    """A turn, saved and restored, handed off, and one more turn with the results of its calls."""
    fake = Fake(first, texts(wire, "ok"))
    to = fake.at(wire, max_attempts=1)
    output = (await watched(to, "q", **options(wire)))[0] if streamed else await ask(to, "q", **options(wire))
    json.dumps(output.to_jsonable())
    state = reloaded(output.continuation)
    handoff(state)
    results = [ToolResult(call.id, "1") for call in state.pending_tool_calls]
    after = Input(None if results else "more", continuation=state, tool_results=results)
    assert (await interact(ENV, after, to, **options(wire))).text == "ok"
    json.loads(fake.raw[-1].decode())
    return output


async def test_surrogate_halves_in_the_pieces_of_a_streamed_input_are_joined() -> None:
    pieces = ('{"a":"\ud83d', '\ude00"}')
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    said = message_sse(*block_events(0, tool_use("toolu_1"), *deltas), stop="tool_use")
    output = await goes_on("anthropic", said, streamed=True)
    assert output.tool_calls[0].arguments == {"a": "\U0001f600"}


async def test_a_lone_surrogate_inside_a_citation_does_not_break_the_turn() -> None:
    citation = {"type": "citations_delta", "citation": {"cited_text": LONE}}
    events = block_events(
        0, {"type": "text", "text": "", "citations": None}, {"type": "text_delta", "text": "x"}, citation
    )
    assert (await goes_on("anthropic", message_sse(*events), streamed=True)).text == "x"


@pytest.mark.parametrize(
    "item",
    [
        function_call("call_1", '{"a":"\ud83d"}'),
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "c", "input": LONE},
    ],
    ids=["function", "custom"],
)
async def test_a_lone_surrogate_in_the_arguments_of_an_item_is_shown_replaced(item: dict[str, Any]) -> None:
    output = await goes_on("openai", response(item))
    assert "\ufffd" in output.tool_calls[0].arguments_text


@pytest.mark.parametrize("wire", WIRES)
async def test_a_model_name_that_is_no_text_is_left_out(wire: str) -> None:
    output = await goes_on(wire, {**texts(wire, "x"), "model": ["a"]})
    assert output.metrics.model is None
    hash(output)


@pytest.mark.parametrize("id", ["", " ", None, 7, LONE])
async def test_a_container_without_a_usable_id_leaves_the_state_loadable(id: Any) -> None:
    await goes_on("anthropic", message({"type": "text", "text": "x"}, container={"id": id}))


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
async def test_an_item_whose_type_is_no_text_can_be_handed_off(wire: str) -> None:
    odd: dict[str, Any] = {"type": ["a"]}
    await goes_on(wire, response(odd, spoken("x")) if wire == "openai" else message(odd, {"type": "text", "text": "x"}))


@pytest.mark.parametrize("function", [None, {}, [], "f", {"name": None, "arguments": None}])
async def test_a_chat_call_without_a_function_is_answered(function: Any) -> None:
    output = await goes_on("chat", completion({"tool_calls": [{**chat_call("call_1"), "function": function}]}))
    assert output.tool_calls[0].name == "unnamed"


@pytest.mark.parametrize("asked", ["nan", "inf", "soon", "Fri, 31 Dec 99999999 23:59:59 GMT"])
async def test_a_retry_after_that_is_no_time_counts_as_none(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(error: APIError, attempt: int) -> float | None:
        return 0.0 if error.retry_after_s is None else None

    monkeypatch.setattr("pollux_like.send._wait", wait)
    fake = Fake(refused(429, **{"retry-after": asked}), texts("openai", "ok"))
    assert (await ask(fake.openai(), "q")).text == "ok"


async def test_a_refusal_whose_body_cannot_be_read_is_one_of_our_errors() -> None:
    class Garbage(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"{}"

    fake = Fake(httpx2.Response(400, stream=Garbage(), headers={"content-encoding": "gzip"}))
    with pytest.raises(APIError):
        await ask(fake.openai(max_attempts=1), "q")


async def test_a_streamed_reply_has_the_limit_of_a_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "MAX_REPLY_CHARS", 100)
    events = block_events(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "x" * 100})
    with pytest.raises(APIError, match="more than 100 characters"):
        await watched(Fake(message_sse(*events)).anthropic(max_attempts=1), "q")


async def test_a_closed_client_is_named() -> None:
    client = openai.AsyncOpenAI(api_key="sk-test", base_url="http://127.0.0.1:9")
    await client.close()
    with pytest.raises(ConfigurationError, match="has been closed"):
        await ask(Config("openai", "gpt-5.2", client=client), "q")


async def test_a_client_that_is_not_async_sends_nothing() -> None:
    client = anthropic.Anthropic(api_key="sk-test", base_url="http://127.0.0.1:9")
    with pytest.raises(ConfigurationError, match="Config.client is Anthropic"):
        await ask(Config("anthropic", "claude-haiku-4-5", client=client), "q")


@pytest.mark.parametrize("key", ["sk-test\n", "\u201csk-test\u201d", "sk test"])
async def test_a_key_that_no_header_can_hold_is_refused(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"Config\.api_key holds"):
        Config("openai", "gpt-5.2", api_key=key)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY holds") as caught:
        await ask(Config("openai", "gpt-5.2"), "q")
    assert "sk" not in str(caught.value)


@pytest.mark.parametrize("address", ["http://", "http://h:port", "http://a\nb", "http://[", "http://u:p@h"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigurationError, match=r"Config\.base_url"):
        Config("openai", "gpt-5.2", base_url=address)


@pytest.mark.parametrize(
    ("wire", "option"),
    [("openai", name) for name in ("include", "tools", "reasoning", "text")]
    + [("anthropic", name) for name in ("thinking", "output_config", "betas", "tools")]
    + [("chat", "tools")],
)
@pytest.mark.parametrize("value", [1, "x", [1], True])
async def test_a_provider_option_of_a_wrong_type_is_named(wire: str, option: str, value: Any) -> None:
    provider = "anthropic" if wire == "anthropic" else "openai"
    own: dict[str, Any] = {**({"api": "chat"} if wire == "chat" else {}), option: value}
    with pytest.raises(ConfigurationError, match=option):
        await ask(Fake().at(wire), "q", provider_options={provider: own})


async def test_a_lost_response_without_attempts_left_says_what_helps() -> None:
    stored: dict[str, Any] = {"provider_options": {"openai": {"store": True}}}
    fake = Fake(response(spoken("x")), refused(400, code="previous_response_not_found"))
    to = fake.openai(max_attempts=1)
    first = await ask(to, "q", **stored)
    with pytest.raises(APIError, match="Raise max_attempts"):
        await ask(to, Input("more", continuation=first.continuation), **stored)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
@pytest.mark.parametrize("levels", [99, 150])
async def test_what_a_provider_nests_deeper_than_arguments_can_be_saved(wire: str, levels: int) -> None:
    odd: dict[str, Any] = {"type": "new", "value": nested(levels)}
    await goes_on(wire, response(odd, spoken("x")) if wire == "openai" else message(odd, {"type": "text", "text": "x"}))


async def test_arguments_of_the_deepest_kind_can_be_saved() -> None:
    output = await goes_on("anthropic", message(tool_use("toolu_1", nested(100))))
    assert output.tool_calls[0].arguments == nested(100)


async def test_what_could_not_be_saved_is_no_turn() -> None:
    with pytest.raises(APIError, match="nested deeper than 200"):
        await ask(Fake(response({"type": "new", "value": nested(200)}, spoken("x"))).openai(max_attempts=1), "q")


async def test_the_placeholder_key_of_a_local_server_is_not_masked_in_its_name() -> None:
    given = Fake(refused(400, text="localhost said no")).openai().client.with_options(api_key="local")
    with pytest.raises(APIError, match="^local answered 400 .*localhost said no"):
        await ask(Config("local", "m", client=given), "q")


@pytest.mark.parametrize("wire", WIRES)
async def test_a_round_that_one_source_given_twice_opened_can_be_finished(wire: str) -> None:
    page = Source.from_text("page")
    fake = Fake(calls(wire, "call_1"), texts(wire, "ok"))
    to = fake.at(wire, max_attempts=1)
    first = await ask(to, Input("q", sources=[page, page]), **options(wire))
    after = Input(continuation=first.continuation, tool_results=[ToolResult("call_1", "1")], sources=[page, page])
    assert (await ask(to, after, **options(wire))).text == "ok"
