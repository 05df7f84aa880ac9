"""A turn cancelled at each step that the event loop takes for it: nothing stays open, and the old state goes on.

The provider answers from memory, through the real SDKs, so that the steps are the same each time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import anyio
import anyio.lowlevel
import httpx2
import openai
import pytest
import wires
from fault_support import ENV, PROVIDERS, provider_of
from google import genai

from pollux_like import Config, Continuation, Input, Output, interact, stream

pytestmark = pytest.mark.anyio

STREAMS = {
    "openai": wires.sse(
        {"type": "response.created", "response": {}},
        {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": "Hello"},
        {"type": "response.output_item.done", "output_index": 0, "item": wires.spoken("Hello")},
        {"type": "response.completed", "response": wires.response(wires.spoken("Hello"))},
    ),
    "chat": wires.chat_sse({"content": "Hel"}, {"content": "lo"}),
    "openrouter": wires.chat_sse({"content": "Hel"}, {"content": "lo"}),
    "anthropic": wires.message_sse(
        *wires.block_events(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hello"})
    ),
    "gemini": wires.sse(
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hel"}]}, "index": 0}], "responseId": "r"},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "lo"}]}, "index": 0}], "responseId": "r"},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}]},
    ),
}


def connected(name: str, http: httpx2.AsyncClient) -> Any:
    """The SDK's client of a dialect over a transport."""
    if name == "gemini":
        return genai.Client(vertexai=False, api_key="k", http_options=genai.types.HttpOptions(httpx_async_client=http))
    made: Any = anthropic.AsyncAnthropic if name == "anthropic" else openai.AsyncOpenAI
    return made(api_key="k", http_client=http)


class Body(httpx2.AsyncByteStream):
    """An answer in pieces, with a step of the loop before each; knows whether it was closed."""

    def __init__(self, text: str) -> None:
        data = text.encode()
        self.pieces = [data[at : at + 60] for at in range(0, len(data), 60)]
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            await anyio.lowlevel.checkpoint()
            yield piece

    async def aclose(self) -> None:
        self.closed = True


class Memory:
    """A provider in memory: the bodies that it sent, and the requests that it got."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.bodies: list[Body] = []
        self.requests: list[bytes] = []
        self.http = httpx2.AsyncClient(transport=httpx2.MockTransport(self.respond))
        client = connected(name, self.http)
        # One slot: a cancelled turn that kept it would stop every later one.
        self.config = Config(provider_of(name), PROVIDERS[name], client=client, max_concurrency=1)

    async def respond(self, request: httpx2.Request) -> httpx2.Response:
        await anyio.lowlevel.checkpoint()
        if request.method == "GET":  # OpenRouter's list of models
            return httpx2.Response(404)
        self.requests.append(request.content)
        self.bodies.append(Body(STREAMS[self.name]))
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=self.bodies[-1])


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("name", list(STREAMS))
async def test_cancelled_at_every_step(name: str, streamed: bool) -> None:
    memory = Memory(name)
    arguments: dict[str, Any] = {"provider_options": {"openai": {"api": "chat"}}} if name == "chat" else {}

    async def turn(brought: Input) -> Output:
        if not streamed:
            return await interact(ENV, brought, memory.config, **arguments)
        output: Output | None = None
        async for event in stream(ENV, brought, memory.config, **arguments):
            output = event.output
        assert output is not None
        return output

    old: Continuation | None = (await turn(Input("Hi", history=[]))).continuation
    assert old is not None
    saved = old.to_jsonable()
    finished: Output | None = None
    cancelled = 0
    while finished is None:
        steps = cancelled

        async def one() -> None:
            nonlocal finished
            finished = await turn(Input("Next", continuation=old))

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        assert all(body.closed for body in memory.bodies), f"a connection stayed open after {steps} steps"
        assert old.to_jsonable() == saved
        cancelled += 1
        assert cancelled < 2_000
    assert cancelled > 8, "the turn was cancelled at several places before it came to its end"
    assert finished.text == "Hello"
    again = await turn(Input("Next", continuation=old))
    assert again.continuation == finished.continuation
    assert len(set(memory.requests[1:])) == 1, "every attempt sent the same request"
    await memory.http.aclose()
