"""Wire to ours: a Messages body or its event stream as a `Reply`. Pure; imports no SDK.

A whole block is kept as the text that came. A streamed block is put together from its start and its deltas, in the key
order of the start, the JSON of a tool's input as the model wrote it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, cast

from pollux_like import api_errors, canonical
from pollux_like.errors import StreamInterruptedError
from pollux_like.messages import Message, ToolCall
from pollux_like.output import Event, EventType, Finish, Notice, Status, Usage
from pollux_like.provider import Portable, Reply
from pollux_like.turns import Turn
from pollux_like.wire_ids import made_up

_FINISH: dict[str, Status] = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls",
    "pause_turn": "pause", "compaction": "pause", "refusal": "refusal", "model_context_window_exceeded": "length",
}  # fmt: skip
_SEALED = ("thinking", "redacted_thinking", "compaction")


@dataclass(slots=True)
class _Block:
    """A block under way: its start as text and value, whether deltas changed it, and a tool's input as text."""

    text: str
    value: dict[str, Any]
    changed: bool = False
    input: list[str] = field(default_factory=list[str])
    open: bool = True

    def add(self, delta: dict[str, Any]) -> None:
        self.changed = True
        if delta.get("type") == "input_json_delta":
            self.input.append(str(delta.get("partial_json", "")))
            return
        if delta.get("type") == "citations_delta":
            self.value["citations"] = [*(self.value.get("citations") or ()), delta.get("citation")]
            return
        for key, piece in delta.items():
            if key != "type":
                before = self.value.get(key)
                self.value[key] = before + piece if isinstance(before, str) and isinstance(piece, str) else piece

    @property
    def written(self) -> str:
        """The JSON of a tool's input, as the model wrote it."""
        return canonical.repair_text("".join(self.input))

    def native(self) -> str:
        if not self.changed:
            return self.text
        parts = {key: canonical.dumps_received(_repaired(value)) for key, value in self.value.items()}
        written = self.written
        if written.strip():
            call = ToolCall.from_text(id="probe", name="probe", arguments_text=written)
            parts["input"] = "{}" if call.arguments is None else canonical.minify(written)
        return "{" + ",".join(f"{json.dumps(key)}:{text}" for key, text in parts.items()) + "}"


def _repaired(value: Any) -> Any:
    return canonical.repair_text(value) if isinstance(value, str) else value


class MessagesParser:
    """One answer."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, _Block] = {}
        self._calls: dict[int, int] = {}
        self._shown: dict[str, int] = {}
        self._done = False

    def feed(self, data: str) -> list[Event]:
        """One event of the stream."""
        if self._done:
            return []
        event = api_errors.decoded("anthropic", data)
        match event.get("type"):
            case "message_start":
                self._message = dict(event["message"])
                self._usage = dict(self._message.get("usage") or {})
            case "content_block_start":
                return self._start(int(event["index"]), canonical.member(data, "content_block"), event["content_block"])
            case "content_block_delta":
                return self._delta(int(event["index"]), event["delta"])
            case "content_block_stop":
                return self._stop(int(event["index"]))
            case "message_delta":
                self._message.update({key: value for key, value in event["delta"].items() if value is not None})
                for key in ("input_transformations", "context_management"):
                    if event.get(key) is not None:
                        self._message[key] = event[key]
                # Cumulative, and each field may be repeated: the last word on a field counts.
                self._usage.update(
                    {key: value for key, value in api_errors.member(event, "usage").items() if value is not None}
                )
            case "message_stop":
                self._done = True
            case "error":
                raise api_errors.api_error("anthropic", event, status=200, headers={}, secret=None)
            case _:
                pass  # pings, and events that are newer than this library
        return []

    def _start(self, index: int, text: str, value: dict[str, Any]) -> list[Event]:
        self._blocks[index] = _Block(canonical.minify(text), dict(value))
        if value.get("type") == "tool_use":
            self._calls[index] = len(self._calls)
        piece = str(value.get("text") or value.get("thinking") or "")
        return self._show(index, str(value.get("type")), piece)

    def _delta(self, index: int, delta: dict[str, Any]) -> list[Event]:
        block = self._blocks[index]
        block.add(delta)
        match delta.get("type"):
            case "text_delta":
                return self._show(index, "text", str(delta.get("text", "")))
            case "thinking_delta":
                return self._show(index, "thinking", str(delta.get("thinking", "")))
            case "input_json_delta" if index in self._calls and delta.get("partial_json"):
                return [Event("tool_call_delta", text=str(delta["partial_json"]), index=self._calls[index])]
            case _:
                return []

    def _show(self, index: int, kind: str, piece: str) -> list[Event]:
        """Text of a new block is set apart by a blank line, unless it goes on from the text block before."""
        if not piece or kind not in ("text", "thinking"):
            return []
        before = self._shown.get(kind)
        self._shown[kind] = index
        name: EventType = "text_delta" if kind == "text" else "reasoning_delta"
        apart = before is not None and before != index and not (kind == "text" and self._adjoins(before, index))
        return [*([Event(name, text="\n\n")] if apart else []), Event(name, text=piece)]

    def _adjoins(self, before: int, index: int) -> bool:
        return all(self._blocks[i].value.get("type") == "text" for i in range(before, index + 1) if i in self._blocks)

    def _stop(self, index: int) -> list[Event]:
        block = self._blocks[index]
        block.open = False
        call = _call(block.value, index, block.native(), block.written)
        return [] if call is None else [Event("tool_call", tool_call=call, index=self._calls[index])]

    def end(self) -> Reply:
        """The stream is over."""
        if not self._done or self._message.get("stop_reason") is None:
            raise StreamInterruptedError(
                "the stream of anthropic ended without its terminal event",
                hint="Try again from the same continuation",
                retryable=True,
            )
        order = sorted(self._blocks)
        native = tuple(self._blocks[index].native() for index in order)
        written = [self._blocks[index].written for index in order]
        blocks = [cast("dict[str, Any]", json.loads(text)) for text in native]
        return _reply({**self._message, "usage": self._usage}, native, blocks, written)

    def whole(self, body: str) -> Reply:
        """A body that was not streamed."""
        message = api_errors.decoded("anthropic", body)
        if message.get("type") == "error" or "content" not in message or message.get("stop_reason") is None:
            raise api_errors.api_error("anthropic", body, status=200, headers={}, secret=None)
        native = canonical.elements(canonical.member(body, "content"))
        return _reply(message, native, message["content"], [""] * len(native))


def _reply(message: dict[str, Any], native: tuple[str, ...], blocks: list[dict[str, Any]], written: list[str]) -> Reply:
    calls: list[ToolCall] = []
    kept: list[str] = []
    cut = message["stop_reason"] == "max_tokens"
    for index, (block, text) in enumerate(zip(blocks, native, strict=True)):
        call = _call(block, index, text, written[index], cut=cut and index == len(blocks) - 1)
        kept.append(text if call is None else _replayable(text, block, call))
        calls.extend([] if call is None else [call])
    text, reasoning = said(blocks)
    status = _FINISH.get(str(message["stop_reason"]), "other")
    refusal: str | None = None
    if status == "refusal":
        details = api_errors.member(message, "stop_details")
        refusal = str(details.get("explanation") or text)
    container = api_errors.word(api_errors.member(message, "container"), "id")
    return Reply(
        native=tuple(kept),
        finish=Finish("tool_calls" if calls and status == "stop" else status, api_errors.word(message, "stop_reason")),
        text=text,
        reasoning=reasoning,
        refusal=refusal,
        calls=tuple(calls),
        usage=_usage(api_errors.member(message, "usage")),
        signed=any(block.get("type") in _SEALED for block in blocks),
        state={} if container is None else {"container": container},
        model=api_errors.word(message, "model"),
        response_id=api_errors.word(message, "id"),
        notices=tuple(_transformed(api_errors.objects(message, "input_transformations"))),
    )


def _replayable(text: str, block: dict[str, Any], call: ToolCall) -> str:
    """The text of a call's block. One whose input is unusable goes back without input, since broken JSON would be
    refused for good; one that came without an id carries the id that the caller sees."""
    if call.arguments_error is not None:
        return canonical.dumps_received({**block, "id": call.id, "input": {}})
    return text if block.get("id") else canonical.dumps_received({**block, "id": call.id})


def _call(block: dict[str, Any], index: int, text: str, written: str, *, cut: bool = False) -> ToolCall | None:
    """The call of a block. A body that was not streamed hides where the token limit cut a call: there the last one
    counts as cut, and its text is what was read, left open."""
    if block.get("type") != "tool_use":
        return None
    if not written.strip():
        written = canonical.minify(canonical.members(text).get("input", "{}"))
        written = written.removesuffix("}") if cut else written
    elif ToolCall.from_text(id="probe", name="probe", arguments_text=written).arguments is not None:
        written = canonical.minify(written)
    return ToolCall(block.get("id") or made_up(index, text), block.get("name") or "unnamed", written)


def said(blocks: list[dict[str, Any]]) -> tuple[str, str]:
    """Text and reasoning for display: text blocks that adjoin are one text, others are set apart by a blank line."""
    text: list[str] = []
    adjoins = False
    for block in blocks:
        if block.get("type") == "text":
            piece = str(block.get("text", ""))
            if piece:
                text.extend(["\n\n", piece] if text and not adjoins else [piece])
                adjoins = True
        else:
            adjoins = False
    thoughts = [str(block["thinking"]) for block in blocks if block.get("type") == "thinking" and block.get("thinking")]
    return canonical.repair_text("".join(text)), canonical.repair_text("\n\n".join(thoughts))


def _usage(usage: dict[str, Any]) -> Usage:
    """`input_tokens` of the API leaves out what was read from and written to the cache."""
    read, write = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
    return Usage.of(
        input=(usage.get("input_tokens") or 0) + read + write,
        output=usage.get("output_tokens") or 0,
        cached=read,
        cache_write=write,
        reasoning=api_errors.member(usage, "output_tokens_details").get("thinking_tokens") or 0,
    )


def _transformed(transformations: list[dict[str, Any]]) -> list[Notice]:
    return [
        Notice("reasoning_dropped", f"anthropic: {entry.get('type')} ({entry.get('reason', 'no reason given')})")
        for entry in transformations
    ]


def portable(turn: Turn) -> Portable:
    """What portable history can hold of a turn's blocks; everything else is a named loss."""
    blocks = [cast("dict[str, Any]", json.loads(text)) for text in turn.native]
    text, _ = said(blocks)
    kinds = [kind for kind in (str(block.get("type")) for block in blocks) if kind not in ("text", "tool_use")]
    losses = tuple(f"{kinds.count(kind)} block(s) of type {kind}" for kind in dict.fromkeys(kinds))
    if not text.strip() and not turn.calls:
        return Portable(None, losses)
    return Portable(Message("assistant", text, turn.calls), losses)
