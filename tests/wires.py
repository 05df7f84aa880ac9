"""A provider written by hand: bodies, streams and refusals as the wire has them, behind the real SDK clients."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import anthropic
import httpx2
import openai

from pollux_like import Config, Continuation, Environment, Event, Input, Output, ToolDeclaration, interact, stream

Body: TypeAlias = dict[str, Any]
Answer: TypeAlias = "Body | str | httpx2.Response | Exception | Callable[[httpx2.Request], Any]"
"""A JSON body, the text of an event stream, a ready response, an exception of the transport, or a maker of one."""

TOOLS = (ToolDeclaration("f", "F", {"type": "object", "properties": {"a": {"type": "integer"}}}), ToolDeclaration("g"))
ENV = Environment(instructions="Be brief.", tools=TOOLS)
CHAT: dict[str, Any] = {"provider_options": {"openai": {"api": "chat"}}}
STORE: dict[str, Any] = {"provider_options": {"openai": {"store": True}}}
THINK: dict[str, Any] = {"reasoning_effort": "low"}


class Fake:
    """The answers in order; `sent` are the bodies of the requests, parsed, and `raw` as bytes."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.raw: list[bytes] = []
        self._http = httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.raw.append(await request.aread())
        given: Any = self.answers.pop(0)
        if callable(given) and not isinstance(given, Exception):
            given = given(request)
        if isinstance(given, Exception):
            raise given
        if isinstance(given, str):
            return httpx2.Response(200, text=given, headers={"content-type": "text/event-stream"})
        if isinstance(given, httpx2.Response):
            return given
        return httpx2.Response(200, text=json.dumps(given), headers={"content-type": "application/json"})

    @property
    def sent(self) -> list[Body]:
        """The requests so far."""
        return [json.loads(body) for body in self.raw]

    @property
    def said(self) -> list[list[Body]]:
        """What each request put before the model: its messages or input items."""
        return [body.get("messages", body.get("input")) for body in self.sent]

    def openai(self, model: str = "gpt-5.2", **more: Any) -> Config:
        """A Config through the OpenAI SDK."""
        return Config("openai", model, client=openai.AsyncOpenAI(api_key="sk-test", http_client=self._http), **more)

    def anthropic(self, model: str = "claude-opus-4-6", **more: Any) -> Config:
        """A Config through the Anthropic SDK."""
        client = anthropic.AsyncAnthropic(api_key="sk-test", http_client=self._http)
        return Config("anthropic", model, client=client, **more)

    def at(self, provider: str, **more: Any) -> Config:
        """A Config of one of the three wires: openai, chat or anthropic."""
        return self.anthropic(**more) if provider == "anthropic" else self.openai(**more)


WIRES = ("openai", "chat", "anthropic")


def options(wire: str) -> dict[str, Any]:
    """The arguments that select a wire."""
    return CHAT if wire == "chat" else {}


def texts(wire: str, text: str) -> Body:
    """A plain answer on one of the three wires."""
    if wire == "anthropic":
        return message({"type": "text", "text": text})
    return completion({"content": text}) if wire == "chat" else response(spoken(text))


def calls(wire: str, *ids: str, arguments: str = "{}") -> Body:
    """An answer that calls f, once for each id."""
    if wire == "anthropic":
        return message(*(tool_use(call_id, json.loads(arguments)) for call_id in ids))
    if wire == "chat":
        return completion({"tool_calls": [chat_call(call_id, arguments) for call_id in ids]})
    return response(*(function_call(call_id, arguments) for call_id in ids))


def message(*blocks: Body, stop: str | None = None, **more: Any) -> Body:
    """A Messages body."""
    stop = stop or ("tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn")
    usage = {"input_tokens": 5, "output_tokens": 3}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-6", "content": list(blocks),
            "stop_reason": stop, "usage": usage, **more}  # fmt: skip


def tool_use(call_id: str, input: Any = None, name: str = "f") -> Body:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {} if input is None else input}


def thinking(text: str, signature: str) -> Body:
    return {"type": "thinking", "thinking": text, "signature": signature}


def response(*items: Body, status: str = "completed", id: str = "resp_1", **more: Any) -> Body:
    """A Responses body."""
    usage = {"input_tokens": 5, "output_tokens": 3}
    return {"id": id, "object": "response", "status": status, "model": "gpt-5.2", "output": list(items),
            "usage": usage, **more}  # fmt: skip


def spoken(text: str, id: str = "msg_1", **more: Any) -> Body:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": [part], **more}


def reasoning(id: str = "rs_1", sealed: str | None = "SEALED", text: str = "") -> Body:
    summary = [{"type": "summary_text", "text": text}] if text else []
    item = {"type": "reasoning", "id": id, "summary": summary}
    return item if sealed is None else {**item, "encrypted_content": sealed}


def function_call(call_id: str, arguments: str = "{}", name: str = "f", **more: Any) -> Body:
    return {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": arguments,
            "status": "completed", **more}  # fmt: skip


def completion(answer: Body, finish: str | None = None, **more: Any) -> Body:
    """A chat completion."""
    finish = finish or ("tool_calls" if answer.get("tool_calls") else "stop")
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **answer}, "finish_reason": finish}
    usage = {"prompt_tokens": 5, "completion_tokens": 3}
    return {"id": "chatcmpl-1", "model": "gpt-5.2", "choices": [choice], "usage": usage, **more}


def chat_call(call_id: str | None, arguments: Any = "{}", name: str = "f") -> Body:
    own = {} if call_id is None else {"id": call_id}
    return {**own, "type": "function", "function": {"name": name, "arguments": arguments}}


def sse(*events: Body | str) -> str:
    """An event stream; events with a type name it, as Messages and Responses do."""
    lines: list[str] = []
    for event in events:
        if isinstance(event, dict) and "type" in event:
            lines.append(f"event: {event['type']}\n")
        lines.append(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n")
    return "".join(lines)


def chunk(delta: Body | None = None, finish: str | None = None, **more: Any) -> Body:
    """A chunk of a chat stream; without a delta, one without choices."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "chatcmpl-1", "model": "gpt-5.2", "choices": choices, **more}


def chat_sse(*deltas: Body, finish: str = "stop", last: Body | None = None) -> str:
    """A complete chat stream."""
    chunks = [*map(chunk, deltas), chunk({}, finish), *([last] if last else [])]
    return sse(*chunks, "[DONE]")


def pieces(index: int | None, arguments: str = "", id: str | None = None, name: str | None = None) -> Body:
    """A delta with one fragment of a tool call."""
    function = {**({"name": name} if name else {}), "arguments": arguments}
    where = {} if index is None else {"index": index}
    return {"tool_calls": [{**where, **({"id": id} if id else {}), "function": function}]}


def message_sse(*middle: Body, stop: str = "end_turn", usage: Body | None = None) -> str:
    """A complete Messages stream around the events of its blocks."""
    start = {"type": "message_start", "message": message(usage={"input_tokens": 5, "output_tokens": 0})}
    start["message"]["stop_reason"] = None
    ended = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage or {"output_tokens": 3}}
    return sse(start, *middle, ended, {"type": "message_stop"})


def block_events(index: int, start: Body, *deltas: Body) -> list[Body]:
    """The events of one block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def thinking_events(index: int, signature: str, *texts: str) -> list[Body]:
    """The events of one thinking block, its signature in an event of its own."""
    deltas = [{"type": "thinking_delta", "thinking": text} for text in texts]
    return block_events(index, thinking("", ""), *deltas, {"type": "signature_delta", "signature": signature})


def refused(status: int, *, code: str | None = None, type: str = "invalid_request_error", text: str = "no", **headers: str) -> httpx2.Response:  # fmt: skip
    """A refusal in the envelope that both SDKs read."""
    error = {"type": type, "code": code, "message": text}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, json={"type": "error", "error": error}, headers=named)


def cut(text: str) -> httpx2.Response:
    """An event stream whose connection breaks after the text."""

    class Broken(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield text.encode()
            raise httpx2.ReadError("connection lost")

    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Broken())


def reloaded(continuation: Continuation | None) -> Continuation:
    """Through a store that sorts keys."""
    assert continuation is not None
    return Continuation.from_jsonable(json.loads(json.dumps(continuation.to_jsonable(), sort_keys=True)))


async def ask(config: Config, input: Input | str, env: Environment = ENV, **arguments: Any) -> Output:
    """One turn, not streamed; text opens a tracked conversation."""
    return await interact(env, Input(input, history=[]) if isinstance(input, str) else input, config, **arguments)


async def watched(config: Config, input: Input | str, env: Environment = ENV, **arguments: Any) -> tuple[Output, list[Event]]:  # fmt: skip
    """One turn, streamed, with its events."""
    given = Input(input, history=[]) if isinstance(input, str) else input
    events = [event async for event in stream(env, given, config, **arguments)]
    output = events[-1].output
    assert output is not None
    return output, events
