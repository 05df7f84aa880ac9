"""A scripted answer reaches every SDK, streamed and not, as one and the same turn."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from pollux_like.errors import ConfigurationError
from pollux_like.simulator import Simulator
from pollux_like.testing.script import Answer, answer, call, compaction, redacted, refuse, say, server_tool, think

Ask = Callable[..., httpx2.Response]
WEATHER = {"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
FULL = answer(
    think("Let me look"),
    say("I look. Ä😀 \n done"),
    call("get_weather", {"city": "Paris", "deep": {"b": 1.0, "a": [None]}}, id="call_1"),
    call("get_weather", {}, id="call_2"),
    input_tokens=100,
    output_tokens=40,
    cached_tokens=60,
    reasoning_tokens=12,
)


def events(response: httpx2.Response) -> list[dict[str, Any]]:
    lines = [line[5:].strip() for line in response.text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def assembled(stream: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Anthropic blocks put together from their deltas, key order as it came."""
    blocks: list[dict[str, Any]] = []
    raw: dict[int, str] = {}
    for event in stream:
        if event["type"] == "content_block_start":
            blocks.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            block, delta = blocks[event["index"]], dict(event["delta"])
            if delta.pop("type") == "input_json_delta":
                raw[event["index"]] = raw.get(event["index"], "") + delta["partial_json"]
                continue
            for key, value in delta.items():
                block[key] = (block[key] or "") + value
    for index, text in raw.items():
        blocks[index]["input"] = json.loads(text or "{}")
    return blocks


def without(value: Any, *keys: str) -> str:
    """JSON text, so that key order counts, with some values hidden."""
    if isinstance(value, dict):
        pairs = (f"{json.dumps(k)}:{'0' if k in keys else without(v, *keys)}" for k, v in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(without(child, *keys) for child in value) + "]"
    return json.dumps(value)


def test_anthropic_sdk_sees_the_scripted_turn(sim: Simulator, anthropic_sdk: anthropic.Anthropic) -> None:
    sim.reply(FULL)
    message = anthropic_sdk.messages.create(
        model="claude-sonnet-4-6", max_tokens=900, messages=[{"role": "user", "content": "Hi"}]
    )
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block.id for block in message.content if block.type == "tool_use"] == ["call_1", "call_2"]
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (40, 60)
    assert message.usage.output_tokens == 40


def test_anthropic_stream_is_the_same_turn(sim: Simulator, anthropic_sdk: anthropic.Anthropic) -> None:
    sim.reply(FULL)
    with anthropic_sdk.messages.stream(
        model="claude-sonnet-4-6", max_tokens=900, messages=[{"role": "user", "content": "Hi"}]
    ) as stream:
        message = stream.get_final_message()
    assert message.stop_reason == "tool_use"
    assert [block.input for block in message.content if block.type == "tool_use"] == [
        {"city": "Paris", "deep": {"b": 1.0, "a": [None]}},
        {},
    ]


@pytest.mark.parametrize(
    "script",
    [
        FULL,
        answer(redacted(), say("Yes")),
        answer(think(), say("Display omitted")),
        answer(server_tool("web_search", {"query": "x"}, result=[{"type": "web_search_result", "url": "u"}]), say("y")),
        answer(server_tool("web_search", {"query": "x"}), finish="pause"),
        answer(compaction("So far: nothing", signed=True), say("Go on")),
        answer(compaction("So far: nothing"), say("Go on")),
    ],
)
def test_anthropic_blocks_have_one_shape_streamed_and_not(sim: Simulator, claude: Ask, script: Answer) -> None:
    sim.reply(script, times=2)
    plain = claude().json()
    stream = events(claude(stream=True))
    hidden = ("signature", "data", "encrypted_content", "id", "tool_use_id")
    assert without(assembled(stream), *hidden) == without(plain["content"], *hidden)
    assert stream[-2]["delta"]["stop_reason"] == plain["stop_reason"]
    assert stream[-1] == {"type": "message_stop"}


def test_anthropic_signature_is_the_last_delta_of_its_block(sim: Simulator, claude: Ask) -> None:
    sim.reply(think("One two three"), say("x"))
    deltas = [e["delta"]["type"] for e in events(claude(stream=True)) if e["type"] == "content_block_delta"]
    assert deltas[deltas.index("text_delta") - 1] == "signature_delta"
    assert deltas.count("signature_delta") == 1


def test_openai_sdk_sees_the_scripted_turn(sim: Simulator, openai_sdk: openai.OpenAI) -> None:
    sim.reply(FULL)
    response = openai_sdk.responses.create(model="gpt-5.5", input="Hi")
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
    assert [item.call_id for item in response.output if item.type == "function_call"] == ["call_1", "call_2"]
    assert response.output_text == "I look. Ä😀 \n done"
    assert response.usage is not None
    assert response.usage.input_tokens_details.cached_tokens == 60
    assert response.usage.output_tokens_details.reasoning_tokens == 12
    prefixes = {item.type: (item.id or "").split("_")[0] for item in response.output}
    assert prefixes == {"reasoning": "rs", "message": "msg", "function_call": "fc"}
    assert {len(item.id or "") for item in response.output if item.type == "reasoning"} == {53}


def test_openai_stream_is_the_same_turn(sim: Simulator, gpt: Ask) -> None:
    sim.reply(FULL, times=2)
    plain = gpt().json()
    stream = events(gpt(stream=True))
    done = [event["item"] for event in stream if event["type"] == "response.output_item.done"]
    assert stream[-1]["type"] == "response.completed"
    hidden = ("id", "encrypted_content")
    assert without(done, *hidden) == without(plain["output"], *hidden)
    assert without(stream[-1]["response"]["output"], *hidden) == without(plain["output"], *hidden)
    assert [event["sequence_number"] for event in stream] == list(range(len(stream)))
    deltas = [e["delta"] for e in stream if e["type"] == "response.function_call_arguments.delta"]
    assert "".join(deltas) == '{"city":"Paris","deep":{"b":1.0,"a":[null]}}{}'


def test_openai_blobs_differ_between_events_and_the_first_is_shorter(sim: Simulator, gpt: Ask) -> None:
    sim.reply(think("Some thought"), say("x"))
    stream = events(gpt(stream=True))
    added = next(e["item"] for e in stream if e["type"] == "response.output_item.added")["encrypted_content"]
    done = next(e["item"] for e in stream if e["type"] == "response.output_item.done")
    final = stream[-1]["response"]["output"][0]["encrypted_content"]
    assert len(added) < len(done["encrypted_content"]) == len(final)
    assert done["encrypted_content"] != final
    for blob in (done["encrypted_content"], final):
        again = [{**done, "encrypted_content": blob}, stream[-1]["response"]["output"][1]]
        assert gpt(input=[{"role": "user", "content": "Hi"}, *again]).status_code == 200
    partial = [{**done, "encrypted_content": added}, stream[-1]["response"]["output"][1]]
    assert gpt(input=partial).json()["error"]["code"] == "invalid_encrypted_content"


def test_bodies_are_spaced_as_the_vendors_space_them(sim: Simulator, gpt: Ask, claude: Ask) -> None:
    assert gpt().text.startswith('{\n  "id": "resp_')
    assert '": ' not in claude().text


def test_chat_sdk_sees_the_scripted_turn(sim: Simulator, openai_sdk: openai.OpenAI) -> None:
    sim.reply(FULL, times=2)
    messages: Any = [{"role": "user", "content": "Hi"}]
    whole = openai_sdk.chat.completions.create(model="gpt-4o", messages=messages).choices[0]
    assert whole.finish_reason == "tool_calls"
    assert whole.message.content == "I look. Ä😀 \n done"
    assert [c.id for c in whole.message.tool_calls or []] == ["call_1", "call_2"]
    chunks = list(
        openai_sdk.chat.completions.create(
            model="gpt-4o", messages=messages, stream=True, stream_options={"include_usage": True}
        )
    )
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == whole.message.content
    text = "".join(
        c.function.arguments or "" for d in deltas for c in d.tool_calls or [] if c.index == 0 and c.function
    )
    assert json.loads(text) == {"city": "Paris", "deep": {"b": 1.0, "a": [None]}}
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == 100


def test_a_cut_call_is_incomplete_on_every_wire(sim: Simulator, gpt: Ask, claude: Ask, chat: Ask) -> None:
    cut = call("f", '{"a": 1, "b', cut=True, id="call_1")
    sim.reply(cut, times=6)
    body = gpt().json()
    assert body["status"] == "incomplete"
    assert body["incomplete_details"] == {"reason": "max_output_tokens"}
    assert body["output"][0]["status"] == "incomplete"
    assert body["output"][0]["arguments"] == '{"a": 1, "b'
    stream = events(gpt(stream=True))
    assert stream[-1]["type"] == "response.incomplete"
    assert stream[-2]["item"]["arguments"] == '{"a": 1, "b'
    whole = claude().json()
    assert whole["stop_reason"] == "max_tokens"
    partial = [e["delta"]["partial_json"] for e in events(claude(stream=True)) if "delta" in e and "index" in e]
    assert "".join(partial) == '{"a": 1, "b'
    assert chat().json()["choices"][0]["finish_reason"] == "length"
    assert '"finish_reason":"length"' in chat(stream=True).text


def test_raw_argument_text_is_sent_as_it_is(sim: Simulator, gpt: Ask, chat: Ask) -> None:
    raw = '{"n": 1e2,  "a": 12345678901234567890}'
    sim.reply(call("f", raw), times=2)
    assert gpt().json()["output"][0]["arguments"] == raw
    assert chat().json()["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == raw


def test_refusals(sim: Simulator, gpt: Ask, claude: Ask, chat: Ask) -> None:
    sim.reply(refuse("I can't."), times=4)
    assert gpt().json()["output"][0]["content"] == [{"type": "refusal", "refusal": "I can't."}]
    assert events(gpt(stream=True))[-1]["type"] == "response.completed"
    body = claude().json()
    assert body["stop_reason"] == "refusal"
    assert body["stop_details"]["type"] == "refusal"
    assert chat().json()["choices"][0]["message"]["refusal"] == "I can't."


def test_custom_tools_are_called_with_text(sim: Simulator, gpt: Ask) -> None:
    sim.reply(call("note", "plain text"))
    item = gpt(tools=[{"type": "custom", "name": "note"}]).json()["output"][0]
    assert (item["type"], item["input"]) == ("custom_tool_call", "plain text")
    assert item["id"].startswith("ctc_")


def test_phase_and_compaction_on_openai(sim: Simulator, gpt: Ask) -> None:
    sim.reply(say("Wait", phase="commentary"), compaction("short"), say("End", phase="final_answer"))
    output = gpt().json()["output"]
    assert [item.get("phase") for item in output] == ["commentary", None, "final_answer"]
    assert output[1]["type"] == "compaction"


def test_an_empty_answer_is_empty(sim: Simulator, gpt: Ask, claude: Ask) -> None:
    sim.reply(answer(), times=2)
    assert gpt().json()["output"] == []
    assert claude().json()["content"] == []


def test_bad_scripts_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="cut call"):
        answer(call("f", "{", cut=True), say("after"))
    with pytest.raises(ConfigurationError, match="raw text"):
        call("f", {}, cut=True)
    with pytest.raises(ConfigurationError, match=r"nan"):
        call("f", {"x": float("nan")})
    with pytest.raises(ConfigurationError, match="finish"):
        answer("x", finish="done")  # type: ignore[arg-type]
