"""Clients of the cloud platforms, given as `Config.client`: the same turns over their addresses and envelopes.

The platforms are stood in for by a transport that answers as their documents say; nothing was sent to one.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx2
import openai
import pytest
import wires

from pollux_like import APIError, Config, ConfigurationError, Continuation, Input, ToolResult, interact, stream

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Platform:
    """How a client is made over a transport, and where its requests go: not streamed, and streamed."""

    make: Callable[[httpx2.AsyncClient], Any]
    wire: str
    paths: tuple[str, str]
    model: str
    body: dict[str, Any]


def platforms() -> dict[str, Platform]:
    azure = {"api_key": "sk-test", "api_version": "2026-10-01", "azure_endpoint": "https://azure.example"}
    return {
        "Azure, chat": Platform(
            lambda http: openai.AsyncAzureOpenAI(**azure, http_client=http), "chat",
            ("/openai/deployments/gpt-5.2/chat/completions",) * 2, "gpt-5.2", {},
        ),
        "Azure, Responses": Platform(
            lambda http: openai.AsyncAzureOpenAI(**azure, http_client=http), "openai",
            ("/openai/responses",) * 2, "gpt-5.2", {"model": "gpt-5.2"},
        ),
        "Bedrock": Platform(
            lambda http: anthropic.AsyncAnthropicBedrock(api_key="sk-test", aws_region="eu-west-1", http_client=http),
            "anthropic",
            ("/model/anthropic.claude-opus-4-6-v1/invoke", "/model/anthropic.claude-opus-4-6-v1/invoke-with-response-stream"),
            "anthropic.claude-opus-4-6-v1", {},
        ),
        "Vertex": Platform(
            lambda http: anthropic.AsyncAnthropicVertex(
                access_token="sk-test", project_id="p", region="europe-west1", http_client=http
            ),
            "anthropic",
            ("/v1/projects/p/locations/europe-west1/publishers/anthropic/models/claude-opus-4-6:rawPredict",
             "/v1/projects/p/locations/europe-west1/publishers/anthropic/models/claude-opus-4-6:streamRawPredict"),
            "claude-opus-4-6", {},
        ),
        "Foundry": Platform(
            lambda http: anthropic.AsyncAnthropicFoundry(api_key="sk-test", resource="r", http_client=http),
            "anthropic", ("/anthropic/v1/messages",) * 2, "claude-opus-4-6", {"model": "claude-opus-4-6"},
        ),
    }  # fmt: skip


PLATFORMS = platforms()


def frame(event: dict[str, Any] | None, *, error: str | None = None) -> bytes:
    """One message of the AWS event stream encoding (Amazon Transcribe developer guide, "Event stream encoding")."""
    names = (
        {":message-type": "exception", ":exception-type": error, ":content-type": "application/json"}
        if error
        else {":message-type": "event", ":event-type": "chunk", ":content-type": "application/json"}
    )
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in names.items()
    )
    inner = {"message": "slow down"} if error else {"bytes": base64.b64encode(json.dumps(event).encode()).decode()}
    payload = json.dumps(inner).encode()
    prelude = struct.pack("!II", len(headers) + len(payload) + 16, len(headers))
    head = prelude + struct.pack("!I", binascii.crc32(prelude)) + headers + payload
    return head + struct.pack("!I", binascii.crc32(head))


class Cloud:
    """Answers in order, in the envelope of the platform. `requests` are what came."""

    def __init__(self, name: str, *answers: str | dict[str, Any] | bytes) -> None:
        self.platform = PLATFORMS[name]
        self.requests: list[httpx2.Request] = []
        self._framed = name == "Bedrock"
        self._answers = list(answers)
        self.http = httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        self.requests.append(request)
        given = self._answers.pop(0)
        if isinstance(given, dict):
            return httpx2.Response(200, json=given)
        if isinstance(given, str) and self._framed:
            events = [json.loads(line[6:]) for line in given.splitlines() if line.startswith("data: ")]
            given = b"".join(map(frame, events))
        if isinstance(given, bytes):
            return httpx2.Response(200, content=given, headers={"content-type": "application/vnd.amazon.eventstream"})
        return httpx2.Response(200, text=given, headers={"content-type": "text/event-stream"})

    @property
    def config(self) -> Config:
        provider = "anthropic" if self.platform.wire == "anthropic" else "openai"
        return Config(provider, self.platform.model, client=self.platform.make(self.http), max_attempts=1)


def streamed(wire: str, text: str) -> str:
    """A text on each wire, as a stream."""
    if wire == "anthropic":
        halves = [{"type": "text_delta", "text": half} for half in (text[:4], text[4:])]
        return wires.message_sse(*wires.block_events(0, {"type": "text", "text": ""}, *halves))
    if wire == "chat":
        return wires.chat_sse({"content": text[:4]}, {"content": text[4:]})
    return wires.sse(
        {"type": "response.created", "response": {}},
        *({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": half} for half in (text[:4], text[4:])),
        {"type": "response.output_item.done", "output_index": 0, "item": wires.spoken(text)},
        {"type": "response.completed", "response": wires.response(wires.spoken(text))},
    )  # fmt: skip


@pytest.mark.parametrize("name", list(PLATFORMS))
async def test_a_tool_loop_goes_on_there(name: str) -> None:
    platform = PLATFORMS[name]
    wire, arguments = platform.wire, wires.options(platform.wire)
    cloud = Cloud(name, wires.calls(wire, "call_1"), streamed(wire, "It is noon."), wires.texts(wire, "Bye."))
    first = await interact(wires.ENV, Input("What time is it?", history=[]), cloud.config, **arguments)
    assert [call.id for call in first.tool_calls] == ["call_1"]
    assert first.continuation is not None
    saved = Continuation.from_jsonable(json.loads(json.dumps(first.continuation.to_jsonable())))

    results, shown, output = [ToolResult("call_1", "noon")], "", None
    async with stream(wires.ENV, Input(continuation=saved, tool_results=results), cloud.config, **arguments) as events:
        async for event in events:
            shown += event.text
            output = event.output or output
    assert output is not None
    assert shown == output.text == "It is noon."

    last = await interact(wires.ENV, Input("Bye", continuation=output.continuation), cloud.config, **arguments)
    assert last.text == "Bye."
    assert [request.url.path for request in cloud.requests] == [*platform.paths, platform.paths[0]]
    bodies = [json.loads(request.content) for request in cloud.requests]
    for body in bodies:
        assert platform.body.items() <= body.items()
        assert "sk-test" not in json.dumps(body)
    said = "messages" if wire != "openai" else "input"
    assert bodies[2][said][: len(bodies[1][said])] == bodies[1][said]


async def test_an_error_inside_of_an_aws_stream_is_an_api_error() -> None:
    begun = streamed("anthropic", "It is noon.").split("\n\n")
    events = [json.loads(line.partition("data: ")[2]) for line in begun if "data: " in line][:3]
    cloud = Cloud("Bedrock", b"".join(map(frame, events)) + frame(None, error="throttlingException"))
    with pytest.raises(APIError):
        async for _ in stream(wires.ENV, Input("Hi", history=[]), cloud.config):
            pass


@pytest.mark.parametrize("cut", [-1, 30, 400])
async def test_a_broken_aws_stream_is_no_turn(cut: int) -> None:
    events = [
        json.loads(line[6:]) for line in streamed("anthropic", "It is noon.").splitlines() if line[:6] == "data: "
    ]
    whole = b"".join(map(frame, events))
    damaged = whole[:cut] if cut > 0 else whole[:200] + b"?" + whole[201:]
    cloud = Cloud("Bedrock", damaged)
    with pytest.raises(APIError):
        async for _ in stream(wires.ENV, Input("Hi", history=[]), cloud.config):
            pass


async def test_streams_of_bedrock_name_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = Cloud("Bedrock", streamed("anthropic", "It is noon."))
    config = cloud.config
    monkeypatch.setitem(sys.modules, "botocore.eventstream", None)
    with pytest.raises(ConfigurationError, match=r"anthropic\[bedrock\]"):
        async for _ in stream(wires.ENV, Input("Hi", history=[]), config):
            pass
