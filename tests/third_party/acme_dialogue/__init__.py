"""A provider of a made-up company, as a distribution of its own would have it: it stands on the public contract alone."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pollux_like.canonical import dumps, elements, members, splice
from pollux_like.config import Config
from pollux_like.errors import APIError, ConfigurationError, StreamInterruptedError
from pollux_like.messages import Message, ToolCall
from pollux_like.output import Event, Finish, Usage
from pollux_like.provider import Adapter, Capabilities, Portable, Reply, Request, Vendor, Wire
from pollux_like.turns import Turn, folded
from pollux_like.wire_ids import made_up, spoken_result, wire_ids, wire_name

WHY = {"done": "stop", "tools": "tool_calls", "limit": "length", "paused": "pause", "declined": "refusal",
       "withheld": "content_filter"}  # fmt: skip
SHOWN = {"text": "text_delta", "thought": "reasoning_delta"}


class Acme:
    """The vendor object."""

    name = "acme"
    key_variables = ("ACME_API_KEY",)
    packages: tuple[str, ...] = ()
    default_model = None

    def dialect(self, options: Mapping[str, Any]) -> str:
        return "dialogue"

    def endpoint(self, config: Config) -> str:
        return config.base_url or "https://acme.invalid"

    def capabilities(self, model: str, options: Mapping[str, Any]) -> Capabilities:
        takes = {"tool_choice", "parallel_tool_calls", "output", "max_tokens", "reasoning_effort"}
        return Capabilities(settings=frozenset(takes), efforts=frozenset({"low", "high"}))

    def render(self, request: Request) -> Wire:
        settings = request.settings
        head: dict[str, Any] = {"model": request.model, "system": request.instructions, "stream": request.streaming}
        head["tools"] = [{"name": tool.name, "about": tool.description, "takes": tool.schema} for tool in request.tools]
        head["asked"] = {
            name: getattr(value, "schema", None) or getattr(value, "mode", None) or value
            for name in settings.asked()
            for value in [getattr(settings, name)]
        }
        past = folded(request.turns, "acme", "", lambda before, at: _past(request, before, at))
        thread = [*([past] if past else []), *_added(request.added)]
        return Wire("/talk", splice(head, "thread", thread), request.streaming, AcmeParser)

    def portable(self, turn: Turn) -> Portable:
        items = [json.loads(item) for item in turn.native]
        said = "".join(item["text"] for item in items if item["kind"] in ("text", "refusal"))
        losses = tuple(f"an item of kind {i['kind']}" for i in items if i["kind"] not in ("text", "refusal", "call"))
        if not said.strip() and not turn.calls:
            return Portable(None, losses)
        return Portable(Message("assistant", said, turn.calls), losses)

    def connect(self, config: Config) -> Adapter:
        import httpx2

        if config.client is None:
            raise ConfigurationError("acme has no client", hint="Give Config.client, an httpx2.AsyncClient")
        client: httpx2.AsyncClient = config.client
        return AcmeAdapter(client)


def _past(request: Request, before: str, index: int) -> str:
    turn = request.turns[index]
    said = [f'{{"who":"model","items":[{",".join(turn.native)}]}}'] if turn.native else []
    return ",".join([*([before] if before else []), *_added(turn.added), *said])


def _added(messages: tuple[Message, ...]) -> list[str]:
    entries: list[str] = []
    for message, ids in zip(messages, wire_ids(messages), strict=True):
        match message.role:
            case "user":
                entry: dict[str, Any] = {"who": "user", "says": message.content}
            case "tool":
                entry = {"who": "tool", "call": ids[0], "out": spoken_result(message)}
            case "assistant":
                calls = [
                    {"kind": "call", "id": one, "name": wire_name(call.name), "args": dumps(call.arguments or {})}
                    for one, call in zip(ids, message.tool_calls, strict=True)
                ]
                text = [{"kind": "text", "text": message.content}] if message.content else []
                entry = {"who": "model", "items": [*text, *calls]}
        entries.append(dumps(entry))
    return entries


class AcmeParser:
    """Items are kept as the text that came; a stream tells pieces first, then each item whole."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self.ended: dict[str, str] | None = None

    def feed(self, data: str) -> list[Event]:
        fields = members(data)
        if "error" in fields:
            raise APIError("acme stopped", hint="Try again", provider="acme", retryable=True)
        if "piece" in fields:
            kind, index, text = json.loads(fields["piece"])
            if kind == "call":
                return [Event("tool_call_delta", text=text, index=index)]
            return [Event("text_delta" if kind == "text" else "reasoning_delta", text=text)] if kind in SHOWN else []
        if "item" in fields:
            self.items.append(fields["item"])
            return []
        self.ended = fields
        return []

    def whole(self, body: str) -> Reply:
        fields = members(body)
        self.items = list(elements(fields["items"]))
        self.ended = fields
        return self.end()

    def end(self) -> Reply:
        if self.ended is None:
            raise StreamInterruptedError("acme ended in the middle", hint="Try again", provider="acme", retryable=True)
        items = [json.loads(item) for item in self.items]
        used, why = json.loads(self.ended["used"]), json.loads(self.ended["why"])
        calls = [item for item in items if item["kind"] == "call"]
        whole = "".join(self.items)
        refusals = [item["text"] for item in items if item["kind"] == "refusal"]
        return Reply(
            native=tuple(self.items),
            finish=Finish(WHY.get(why, "other"), why),  # type: ignore[arg-type]
            text="".join(item["text"] for item in items if item["kind"] == "text"),
            reasoning="\n\n".join(item["text"] for item in items if item["kind"] == "thought" and item["text"]),
            refusal="\n\n".join(refusals) if refusals else None,
            calls=tuple(
                ToolCall(call["id"] or made_up(at, whole), call["name"], call["args"]) for at, call in enumerate(calls)
            ),
            usage=Usage.of(input=used["in"], output=used["out"]),
            signed=any("seal" in item for item in items),
            model="acme-1",
        )


class AcmeAdapter:
    """One HTTP client."""

    def __init__(self, client: Any) -> None:
        self.client = client

    @asynccontextmanager
    async def open(self, wire: Wire, *, timeout_s: float) -> AsyncGenerator[AsyncIterator[Event | Reply], None]:
        async with self.client.stream("POST", wire.path, content=wire.body.encode(), timeout=timeout_s) as response:
            if response.status_code != 200:
                text = (await response.aread()).decode()
                raise APIError(f"acme answered {response.status_code}: {text}", hint="Mend it", provider="acme")
            yield self._items(response, wire)

    async def _items(self, response: Any, wire: Wire) -> AsyncGenerator[Event | Reply, None]:
        parser = AcmeParser()
        if not wire.streaming:
            yield parser.whole((await response.aread()).decode())
            return
        async for line in response.aiter_lines():
            for event in parser.feed(line) if line else ():
                yield event
        yield parser.end()

    async def aclose(self) -> None:
        """The client is the application's."""


vendor: Vendor = Acme()
