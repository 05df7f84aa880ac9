"""Scripted: a model in the process that answers what the test says. For fast unit tests of agents; no HTTP, no SDK.

    model = Scripted([say("Hello")], [call("get_time", id="call_1")], [say("It is noon")])
    output = await interact(environment, Input("Hi", history=[]), Config("scripted", client=model))
    assert model.requests[0].messages[-1]["content"] == "Hi"

It obeys the contract of a vendor, so pairing, continuations, handoff, streaming and errors behave as they do there.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from pollux_like import canonical
from pollux_like.config import Config
from pollux_like.errors import ConfigurationError
from pollux_like.messages import Message, ToolCall
from pollux_like.output import Event, Finish, Usage
from pollux_like.provider import Adapter, Capabilities, Parser, Portable, Reply, Request, Vendor, Wire
from pollux_like.testing.script import Answer, Call, Compaction, Part, Redacted, Refuse, Say, ServerTool, Think, answer
from pollux_like.turns import Turn
from pollux_like.wire_ids import made_up, wire_ids


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as the scripted model saw it: `messages` in order, `tools` by name, `settings` that were given."""

    model: str
    instructions: str | None
    messages: tuple[dict[str, Any], ...]
    tools: tuple[str, ...]
    settings: Mapping[str, Any]
    body: str = field(repr=False)


Answering: TypeAlias = Answer | Exception | Sequence[Part | str] | Callable[[Recorded], Answer]


class Scripted:
    """The script: per turn an Answer, a list of its parts, an exception to raise, or a function of the request.

    `requests` are what it was sent, in order. Give it as `Config("scripted", client=...)`.
    """

    def __init__(self, *answers: Answering) -> None:
        self._answers: list[Answering] = list(answers)
        self.requests: list[Recorded] = []

    @property
    def left(self) -> int:
        """Answers that no request has taken yet."""
        return len(self._answers)

    @property
    def config(self) -> Config:
        """A Config that leads here."""
        return Config("scripted", client=self)

    def __repr__(self) -> str:
        return f"Scripted(left={self.left}, requests={len(self.requests)})"

    def next(self, body: str) -> Answer:
        """Record a request and take the next answer. Raises ConfigurationError at the end of the script."""
        sent = cast("dict[str, Any]", json.loads(body))
        request = Recorded(
            sent["model"], sent["instructions"], tuple(sent["messages"]), tuple(sent["tools"]), sent["settings"], body
        )
        self.requests.append(request)
        if not self._answers:
            raise ConfigurationError("the script has no more answers", hint="Give Scripted one entry per turn")
        entry = self._answers.pop(0)
        if isinstance(entry, Exception):
            raise entry
        if isinstance(entry, Answer):
            return entry
        return entry(request) if callable(entry) else answer(*entry)


class _ScriptedAdapter:
    def __init__(self, script: Scripted) -> None:
        self._script = script

    @asynccontextmanager
    async def open(self, wire: Wire, *, timeout_s: float) -> AsyncGenerator[AsyncIterator[Event | Reply], None]:
        """Answer at once."""
        said = self._script.next(wire.body)
        async with aclosing(self._items(said, len(self._script.requests))) as items:
            yield items

    async def _items(self, said: Answer, turn: int) -> AsyncGenerator[Event | Reply, None]:
        reply = _reply(said, turn)
        position = 0
        for part in said.parts:
            match part:
                case Say(text):
                    yield Event("text_delta", text=text)
                case Think(text) if text:
                    yield Event("reasoning_delta", text=text)
                case Call(_, arguments):
                    yield Event("tool_call_delta", text=arguments, index=position)
                    yield Event("tool_call", tool_call=reply.calls[position], index=position)
                    position += 1
                case _:
                    pass  # nothing of the other parts is shown before the end
        yield reply

    async def aclose(self) -> None:
        """Nothing was opened."""


def _reply(said: Answer, turn: int) -> Reply:
    native = tuple(_native(part, index) for index, part in enumerate(said.parts))
    calls = tuple(
        ToolCall(part.id or made_up(index, f"{turn}:{native[index]}"), part.name, part.arguments)
        for index, part in enumerate(said.parts)
        if isinstance(part, Call)
    )
    refusals = [part.text for part in said.parts if isinstance(part, Refuse)]
    output = said.output_tokens or 0
    return Reply(
        native=native,
        finish=Finish(said.ended, said.ended),
        text="".join(part.text for part in said.parts if isinstance(part, Say)),
        reasoning="\n\n".join(part.text for part in said.parts if isinstance(part, Think) and part.text),
        refusal="\n\n".join(refusals) if refusals else None,
        calls=calls,
        usage=Usage.of(
            input=said.input_tokens or 0, output=output, cached=said.cached_tokens, cache_write=said.cache_write_tokens,
            reasoning=said.reasoning_tokens or 0,
        ),
        signed=any(isinstance(part, (Think, Redacted, Compaction)) for part in said.parts),
        model="scripted",
    )  # fmt: skip


def _native(part: Part, index: int) -> str:
    match part:
        case Say(text):
            item = {"type": "text", "text": text}
        case Think(text):
            item = {"type": "reasoning", "text": text, "signature": canonical.sha256(f"{index}:{text}")}
        case Redacted(note):
            item = {"type": "redacted", "data": canonical.sha256(note)}
        case Call(name, arguments, id):
            item = {"type": "call", "name": name, "arguments": arguments, **({"id": id} if id else {})}
        case Refuse(text):
            item = {"type": "refusal", "text": text}
        case ServerTool(name, input, result):
            item = {"type": "server_tool", "name": name, "input": input, **({"result": result} if result else {})}
        case Compaction(text):
            item = {"type": "compaction", "data": canonical.sha256(text)}
    return canonical.dumps(item)


class ScriptedVendor:
    """The vendor object of provider "scripted"."""

    name = "scripted"
    key_variables: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    default_model = "scripted"

    def dialect(self, options: Mapping[str, Any]) -> str:
        """There is one."""
        return "script"

    def endpoint(self, config: Config) -> str:
        """Nowhere but here."""
        return "memory:"

    def capabilities(self, model: str, options: Mapping[str, Any]) -> Capabilities:
        """Everything."""
        return Capabilities(
            settings=frozenset({
                "tool_choice", "parallel_tool_calls", "output", "max_tokens", "temperature", "top_p", "seed", "stop",
                "reasoning_effort", "reasoning_budget_tokens",
            }),
            efforts=frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"}),
            media=frozenset({"text", "image", "pdf"}),
            max_stop=16,
        )  # fmt: skip

    def render(self, request: Request) -> Wire:
        """The conversation as plain JSON; the model's own items stand in it to the letter."""
        head: dict[str, Any] = {
            "model": request.model,
            "instructions": request.instructions,
            "tools": [tool.name for tool in request.tools],
            "sources": [source.digest for source in request.sources],
            "settings": {name: _plain(getattr(request.settings, name)) for name in request.settings.asked()},
        }
        messages: list[str] = []
        for turn in request.turns:
            messages.extend(_added(turn.added))
            messages.extend(f'{{"role":"assistant","items":[{",".join(turn.native)}]}}' for _ in turn.native[:1])
        messages.extend(_added(request.added))
        body = canonical.splice(head, "messages", messages)
        return Wire(path="", body=body, streaming=request.streaming, parser=_no_parser)

    def portable(self, turn: Turn) -> Portable:
        """Text and calls."""
        items = [cast("dict[str, Any]", json.loads(text)) for text in turn.native]
        text = "".join(str(item["text"]) for item in items if item["type"] in ("text", "refusal"))
        losses = tuple(
            f"an item of type {item['type']}" for item in items if item["type"] not in ("text", "refusal", "call")
        )
        if not text.strip() and not turn.calls:
            return Portable(None, losses)
        return Portable(Message("assistant", text, turn.calls), losses)

    def connect(self, config: Config) -> Adapter:
        """The script that the config carries."""
        if not isinstance(config.client, Scripted):
            raise ConfigurationError(
                "provider scripted has no script",
                hint='Use Scripted(...).config, or Config("scripted", client=Scripted(...))',
            )
        return _ScriptedAdapter(config.client)


def _no_parser() -> Parser:
    raise AssertionError("the scripted adapter makes replies itself")


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool)) else repr(value)


def _added(messages: Sequence[Message]) -> list[str]:
    ids = wire_ids(messages)
    wire: list[str] = []
    for message, own in zip(messages, ids, strict=True):
        plain = message.to_jsonable()
        if message.role == "tool":
            plain["tool_call_id"] = own[0]
        for call, wire_id in zip(plain.get("tool_calls", ()), own, strict=False):
            call["id"] = wire_id
        wire.append(canonical.dumps(plain))
    return wire


vendor: Vendor = ScriptedVendor()
