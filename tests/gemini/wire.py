"""A Gemini written by hand: bodies and streams as the wire has them, behind the real SDK client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, TypeAlias

import httpx2
from google import genai

from pollux_like import (
    Config,
    Continuation,
    Environment,
    Event,
    Input,
    Output,
    ToolDeclaration,
    ToolResult,
    interact,
    stream,
)

Body: TypeAlias = dict[str, Any]
ENV = Environment(
    instructions="Be brief.",
    tools=(
        ToolDeclaration("f", "F", {"type": "object", "properties": {"a": {"type": "integer"}}}),
        ToolDeclaration("g"),
    ),
)
FLASH = "gemini-3-flash-preview"


class Fake:
    """The answers in order: a body, the chunks of a stream, a ready response, an exception. `asked` are the requests."""

    def __init__(self, *answers: Any, piece: int | None = None, vertex: bool = False) -> None:
        self.answers = list(answers)
        self.asked: list[httpx2.Request] = []
        self.closed = 0
        self.piece = piece
        transport = httpx2.MockTransport(self._answer)
        options = genai.types.HttpOptions(
            httpx_async_client=httpx2.AsyncClient(transport=transport), httpx_client=httpx2.Client(transport=transport)
        )
        self.client = genai.Client(vertexai=vertex, api_key="key-of-test", http_options=options)

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        given = self.answers.pop(0)
        if isinstance(given, Exception):
            raise given
        if isinstance(given, httpx2.Response):
            return given
        if isinstance(given, list) or "alt=sse" in str(request.url):
            return self._stream(given if isinstance(given, list) else [given])
        return httpx2.Response(200, text=written(given), headers={"content-type": "application/json"})

    def _stream(self, chunks: list[Body | str]) -> httpx2.Response:
        lines = [one if isinstance(one, str) else f"data: {written(one)}\r\n\r\n" for one in chunks]
        text = "".join(lines).encode()
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Pieces(self, text))

    def config(self, model: str = FLASH, **more: Any) -> Config:
        return Config("gemini", model, client=self.client, **more)

    @property
    def sent(self) -> list[Body]:
        """The bodies so far."""
        return [json.loads(request.content) for request in self.asked]

    @property
    def contents(self) -> list[Body]:
        """What the last request put before the model."""
        return self.sent[-1]["contents"]


class Pieces(httpx2.AsyncByteStream):
    """A body that is cut anywhere, and that counts how often it was closed."""

    def __init__(self, fake: Fake, text: bytes) -> None:
        self._fake, self._text = fake, text

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = self._fake.piece or len(self._text) or 1
        for start in range(0, len(self._text), size):
            yield self._text[start : start + size]

    async def aclose(self) -> None:
        self._fake.closed += 1


def written(value: Any) -> str:
    """JSON as the provider writes it: unescaped."""
    return json.dumps(value, ensure_ascii=False)


def answer(*parts: Body, finish: str | None = "STOP", **more: Any) -> Body:
    """A response with one candidate."""
    candidate: Body = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 8}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": FLASH, "responseId": "r1", **more}


def text(words: str, **more: Any) -> Body:
    return {"text": words, **more}


def call(name: str = "f", args: Any = None, signature: str | None = None, **more: Any) -> Body:
    part: Body = {"functionCall": {"name": name, "args": {} if args is None else args, **more}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def saved(output: Output) -> Continuation:
    """The continuation, as another process has it."""
    assert output.continuation is not None
    return Continuation.from_jsonable(json.loads(json.dumps(output.continuation.to_jsonable())))


async def streamed(environment: Environment, given: Input, config: Config, **more: Any) -> tuple[Output, list[Event]]:
    """A streamed turn: its output and its events."""
    async with stream(environment, given, config, **more) as running:
        events = [event async for event in running]
    assert events[-1].output is not None
    return events[-1].output, events


async def after(*parts: Body, env: Environment = ENV) -> tuple[Output, list[Body]]:
    """An answer of these parts, saved, and what the next request says: results for all calls, or a new question."""
    fake = Fake(answer(*parts), answer(text("ok")))
    output = await interact(env, Input("go", history=[]), fake.config())
    await interact(env, next_input(output), fake.config())
    return output, fake.contents


def next_input(output: Output) -> Input:
    results = [ToolResult(one.id, f"r{at}") for at, one in enumerate(output.tool_calls)]
    return Input(None if results else "next", continuation=saved(output), tool_results=results)
