"""Keys, signatures, sealed reasoning and transcripts stay where they belong: planted marks are searched for everywhere."""

from __future__ import annotations

import json
import logging
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai

from pollux_like import (
    APIError,
    Config,
    ConfigurationError,
    ContextOverflowError,
    Environment,
    Input,
    Message,
    Output,
    Source,
    ToolCall,
    ToolCallParseError,
    ToolResult,
    handoff,
    interact,
    stream,
)
from pollux_like.testing.conversations import TOOLS

pytestmark = pytest.mark.anyio

KEY = "sk-PLANTED-KEY-0123456789"
SEALED = ("PLANTEDSIGNATURE==", "PLANTEDREDACTED==", "PLANTEDBLOB==", "PLANTEDGEMINI==", "PLANTEDROUTER==")
TRANSCRIPT = ("PLANTED USER TEXT", "PLANTED ANSWER", "PLANTED THOUGHT", "PLANTED ARGUMENT", "PLANTED RESULT")

OPENAI: dict[str, Any] = {
    "id": "resp_1", "status": "completed", "model": "gpt-5.2", "usage": {"input_tokens": 1, "output_tokens": 1},
    "output": [
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "PLANTED THOUGHT"}],
         "encrypted_content": "PLANTEDBLOB=="},
        {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "PLANTED ANSWER", "annotations": []}]},
        {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "note", "status": "completed",
         "arguments": '{"text":"PLANTED ARGUMENT"}'},
    ],
}  # fmt: skip
ANTHROPIC: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-6", "stop_reason": "tool_use",
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "content": [
        {"type": "thinking", "thinking": "PLANTED THOUGHT", "signature": "PLANTEDSIGNATURE=="},
        {"type": "redacted_thinking", "data": "PLANTEDREDACTED=="},
        {"type": "text", "text": "PLANTED ANSWER"},
        {"type": "tool_use", "id": "call_1", "name": "note", "input": {"text": "PLANTED ARGUMENT"}},
    ],
}  # fmt: skip


GEMINI: dict[str, Any] = {
    "modelVersion": "gemini-3-flash-preview", "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1},
    "candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [
        {"text": "PLANTED THOUGHT", "thought": True},
        {"text": "PLANTED ANSWER"},
        {"functionCall": {"id": "call_1", "name": "note", "args": {"text": "PLANTED ARGUMENT"}},
         "thoughtSignature": "PLANTEDGEMINI=="},
    ]}}],
}  # fmt: skip
ROUTER: dict[str, Any] = {
    "id": "gen-1", "model": "anthropic/claude-haiku-4.5", "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": "PLANTED ANSWER", "reasoning": "PLANTED THOUGHT",
        "reasoning_details": [{"type": "reasoning.text", "text": "PLANTED THOUGHT", "signature": "PLANTEDROUTER=="}],
        "tool_calls": [{"id": "call_1", "type": "function",
                        "function": {"name": "note", "arguments": '{"text": "PLANTED ARGUMENT"}'}}],
    }}],
}  # fmt: skip
BODIES = {"openai": OPENAI, "anthropic": ANTHROPIC, "gemini": GEMINI, "openrouter": ROUTER}
MODELS = {"openai": "gpt-5.2", "anthropic": "claude-opus-4-6", "gemini": "gemini-3-flash-preview",
          "openrouter": "anthropic/claude-haiku-4.5"}  # fmt: skip
SEALS = {"openai": SEALED[2:3], "anthropic": SEALED[:2], "gemini": SEALED[3:4], "openrouter": SEALED[4:]}


def config(provider: str, respond: Any, **more: Any) -> Config:
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(respond))
    client: Any
    if provider == "gemini":
        options = genai.types.HttpOptions(httpx_async_client=http)
        client = genai.Client(vertexai=False, api_key=KEY, http_options=options)
    else:
        made: Any = anthropic.AsyncAnthropic if provider == "anthropic" else openai.AsyncOpenAI
        client = made(api_key=KEY, http_client=http)
    return Config(provider, MODELS[provider], client=client, **more)


def answering(provider: str) -> Any:
    return lambda _: httpx2.Response(200, json=BODIES[provider])


def assert_clean(text: str, *, transcript: bool) -> None:
    for mark in (KEY, *SEALED, *(TRANSCRIPT if transcript else ())):
        assert mark not in text, mark


@pytest.mark.parametrize("provider", list(BODIES))
async def test_nothing_leaves_the_continuation(provider: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "pollux_like")
    env = Environment(instructions="PLANTED USER TEXT", tools=TOOLS, sources=[Source.from_text("PLANTED USER TEXT")])
    brought = Input(
        "PLANTED USER TEXT", history=[Message("user", "PLANTED USER TEXT"), Message("assistant", "PLANTED ANSWER")]
    )
    to = config(provider, answering(provider))
    output = await interact(env, brought, to, reasoning_effort="low")
    assert output.continuation is not None
    outside = output.to_jsonable()
    saved = outside.pop("continuation")
    assert_clean(json.dumps(outside), transcript=False)
    assert all(mark in json.dumps(saved) for mark in SEALS[provider])
    assert KEY not in json.dumps(saved)
    history = handoff(output.continuation)
    for shown in (
        output,
        brought,
        env,
        to,
        output.continuation,
        output.messages,
        output.tool_calls,
        history,
        *output.messages,
    ):
        assert_clean(f"{shown!r} {shown!s}", transcript=True)
    assert_clean(json.dumps([message.to_jsonable() for message in history.history]), transcript=False)
    assert_clean(caplog.text, transcript=True)


@pytest.mark.parametrize("provider", list(BODIES))
async def test_events_show_no_seals_and_their_reprs_no_transcript(provider: str) -> None:
    from pollux_like.simulator import Simulator
    from pollux_like.testing import call, redacted, say, think

    with Simulator() as sim:
        sim.reply(
            redacted(), think("PLANTED THOUGHT"), say("PLANTED ANSWER"), call("note", {"text": "PLANTED ARGUMENT"})
        )
        to = Config(provider, MODELS[provider], api_key="sim-key", base_url=sim.base_url(provider))
        output: Output | None = None
        async for event in stream(Environment(tools=TOOLS), Input("PLANTED USER TEXT"), to, reasoning_effort="low"):
            assert_clean(repr(event), transcript=True)
            output = event.output
    assert output is not None
    assert output.continuation is not None
    native = "".join(output.continuation.to_jsonable()["turns"])
    seals = [part for part in native.split('"') if len(part) > 80]
    assert seals
    outside = json.dumps({key: value for key, value in output.to_jsonable().items() if key != "continuation"})
    assert not [seal for seal in seals if seal in outside]


@pytest.mark.parametrize("status", [400, 401, 429, 500, 200])
@pytest.mark.parametrize("provider", list(BODIES))
async def test_errors_show_no_key(provider: str, status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "pollux_like")
    body = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": f"Incorrect API key provided: {KEY}"},
    }
    to = config(provider, lambda _: httpx2.Response(status, json=body, headers={"retry-after": "0"}), max_attempts=2)
    with pytest.raises(APIError) as caught:
        await interact(Environment(), Input("PLANTED USER TEXT"), to)
    assert_clean(
        f"{caught.value!r} {caught.value} {caught.value.args} {vars(caught.value)} {caplog.text}", transcript=True
    )
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


async def test_a_key_in_the_config_is_never_shown() -> None:
    to = Config("openai", "gpt-5.2", api_key=KEY)
    assert_clean(repr(to), transcript=True)
    from pollux_like import Session

    async with Session(to) as session:
        assert_clean(repr(session) + repr(session.config), transcript=True)


def test_bad_arguments_are_surfaced_without_quoting_them() -> None:
    call = ToolCall.from_text(id="c", name="f", arguments_text='{"a": "PLANTED ARGUMENT"')
    with pytest.raises(ToolCallParseError) as caught:
        call.arguments_dict()
    assert_clean(f"{caught.value!r} {caught.value} {call!r}", transcript=True)
    assert caught.value.arguments_text == call.arguments_text


async def test_local_errors_quote_no_transcript() -> None:
    bad: list[Any] = [
        lambda: Input("PLANTED USER TEXT\ud800"),
        lambda: Message("system", "PLANTED USER TEXT"),
        lambda: ToolResult("c", "PLANTED RESULT\ud800"),
        lambda: ToolResult.from_value(call_id="c", value={"PLANTED RESULT": {1}}),
        lambda: Message.from_openai({"role": "user", "content": [{"type": "image", "text": "PLANTED USER TEXT"}]}),
    ]
    for make in bad:
        with pytest.raises(ConfigurationError) as caught:
            make()
        assert_clean(str(caught.value).replace("value.PLANTED RESULT", ""), transcript=True)


def test_what_an_error_is_is_known_before_the_key_is_cut_out_of_it() -> None:
    from pollux_like import api_errors

    body = {"error": {"message": "The input token count (9) exceeds the maximum number", "code": 400}}
    for secret, shown in (("maximum", "exceeds the *** number"), ("k", "input token count"), (None, "the maximum")):
        error = api_errors.api_error("gemini", body, status=400, headers={}, secret=secret)
        assert isinstance(error, ContextOverflowError)
        assert shown in str(error)
