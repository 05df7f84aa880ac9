"""What a turn costs, as ratios and differences taken in one run: `make bench`.

Every provider answers from memory (httpx2.MockTransport under the vendor's own SDK), so what is measured is CPU of this
process. Rounds alternate between the things compared; medians are shown. Nothing here is a test.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anthropic
import anyio
import httpx2
import openai

from pollux_like import Config, Continuation, Environment, Input, Output, interact, stream

OPENAI_BODY = {
    "id": "resp_" + "0" * 50, "object": "response", "status": "completed", "model": "gpt-5.2",
    "output": [{"id": "msg_" + "0" * 50, "type": "message", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "y" * 160}]}],
    "usage": {"input_tokens": 40, "output_tokens": 40, "total_tokens": 80},
}  # fmt: skip
ANTHROPIC_BODY = {
    "id": "msg_" + "0" * 24, "type": "message", "role": "assistant", "model": "claude-opus-4-6", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "y" * 160}], "usage": {"input_tokens": 40, "output_tokens": 40},
}  # fmt: skip
MODELS = {"openai": "gpt-5.2", "anthropic": "claude-opus-4-6"}
BODIES = {"openai": OPENAI_BODY, "anthropic": ANTHROPIC_BODY}
PATHS = {"openai": "/responses", "anthropic": "/v1/messages"}
ENV = Environment(instructions="Be brief.")
ROUNDS = 200


def events(count: int) -> bytes:
    """A Responses stream of that many text deltas."""
    item = OPENAI_BODY["output"][0]  # type: ignore[index]
    lines = [{"type": "response.created", "response": {**OPENAI_BODY, "output": []}}]
    lines += [{"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "word "}] * count
    lines += [{"type": "response.output_item.done", "output_index": 0, "item": item}]
    lines += [{"type": "response.completed", "response": OPENAI_BODY}]
    return "".join(f"event: {line['type']}\ndata: {json.dumps(line)}\n\n" for line in lines).encode()


class Bench:
    """One provider: its SDK client over memory, and a bare client over the same memory."""

    def __init__(self, provider: str) -> None:
        self.provider = provider
        answer = json.dumps(BODIES[provider]).encode()
        streamed = events(2000) if provider == "openai" else b""

        def respond(request: httpx2.Request) -> httpx2.Response:
            if b'"stream":true' in request.content:
                return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=streamed)
            return httpx2.Response(200, headers={"content-type": "application/json"}, content=answer)

        self.http = httpx2.AsyncClient(transport=httpx2.MockTransport(respond))
        made: Any = openai.AsyncOpenAI if provider == "openai" else anthropic.AsyncAnthropic
        self.client = made(api_key="k", http_client=self.http, max_retries=0)
        self.config = Config(provider, MODELS[provider], client=self.client)

    async def ours(self, continuation: Continuation | None) -> Output:
        """A short turn."""
        history = None if continuation is not None else ()
        return await interact(ENV, Input("x" * 160, history=history, continuation=continuation), self.config)

    async def raw(self, body: bytes) -> None:
        """The same bytes through the SDK's raw path."""
        await self.client.post(PATHS[self.provider], content=body, cast_to=httpx2.Response)

    async def bare(self, body: bytes) -> None:
        """The same bytes through a bare client."""
        response = await self.http.post("http://x/y", content=body, headers={"content-type": "application/json"})
        response.json()

    async def typed(self) -> None:
        """The SDK's own typed call."""
        if self.provider == "openai":
            await self.client.responses.create(model=MODELS["openai"], input="x" * 160)
        else:
            message = {"role": "user", "content": "x" * 160}
            await self.client.messages.create(model=MODELS["anthropic"], max_tokens=9, messages=[message])


async def medians(**runs: Callable[[], Awaitable[Any]]) -> dict[str, float]:
    """Milliseconds of CPU of each, alternating."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            began = time.process_time()
            await run()
            taken[name].append((time.process_time() - began) * 1000)
    return {name: statistics.median(values) for name, values in taken.items()}


async def conversation(bench: Bench, turns: int) -> Continuation:
    """A conversation of that many turns."""
    continuation: Continuation | None = None
    for _ in range(turns):
        continuation = (await bench.ours(continuation)).continuation
    assert continuation is not None
    return continuation


async def main() -> None:
    """Print everything."""
    for provider in MODELS:
        bench = Bench(provider)
        sent: list[bytes] = []
        post = bench.client.post

        async def spy(path: str, sent: list[bytes] = sent, post: Any = post, **options: Any) -> Any:
            if "content" in options:
                sent.append(options["content"])
            return await post(path, **options)

        bench.client.post = spy
        await bench.ours(None)
        del bench.client.post
        body = sent[0]
        cost = await medians(
            ours=lambda bench=bench: bench.ours(None), raw=lambda bench=bench, body=body: bench.raw(body),
            bare=lambda bench=bench, body=body: bench.bare(body), typed=bench.typed,
        )  # fmt: skip
        print(
            f"{provider:10} short turn: ours {cost['ours']:.2f} ms = {cost['ours'] / cost['bare']:.2f}x bare httpx2, "
            f"{cost['ours'] / cost['typed']:.2f}x the SDK's typed call, +{cost['ours'] - cost['raw']:.2f} ms over its raw one"
        )
        states = {turns: await conversation(bench, turns) for turns in (10, 100, 1000)}
        for turns, state in states.items():
            bench.client.post = spy
            await bench.ours(state)
            del bench.client.post
            body = sent[-1]
            cost = await medians(
                ours=lambda bench=bench, state=state: bench.ours(state),
                raw=lambda bench=bench, body=body: bench.raw(body),
            )
            saved = len(json.dumps(state.to_jsonable(), ensure_ascii=False).encode())
            print(
                f"{provider:10} turn {turns:5}: ours {cost['ours']:.2f} ms, raw {cost['raw']:.2f} ms, own work "
                f"{cost['ours'] - cost['raw']:+.2f} ms; saved {saved / (turns * 320):.2f}x its text; request {len(body):,} bytes"
            )
        if provider == "openai":
            began = time.process_time()
            count = 0
            async for event in stream(ENV, Input("x"), bench.config):
                count += event.type == "text_delta"
            ours = time.process_time() - began
            began = time.process_time()
            async for _ in await bench.client.responses.create(model="gpt-5.2", input="x", stream=True):
                pass
            print(
                f"{provider:10} {count} deltas: ours {ours * 1000:.0f} ms = {ours / (time.process_time() - began):.2f}x the SDK's typed stream"
            )
        await bench.http.aclose()


if __name__ == "__main__":
    anyio.run(main)
