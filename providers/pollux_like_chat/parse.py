"""Wire to ours: a chat completion or its stream as a `Reply`. Pure; imports no SDK.

The provider's item is the assistant message, in one key order on both roads, with fields that nobody knows kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, cast

from pollux_like import api_errors, canonical
from pollux_like.errors import APIError, StreamInterruptedError
from pollux_like.messages import Message, ToolCall
from pollux_like.output import Event, Finish, Status, Usage
from pollux_like.provider import Portable, Reply
from pollux_like.turns import Turn
from pollux_like.wire_ids import made_up

from .details import merged, sealed
from .dialect import Dialect
from .policies import FIELDS
from .refusals import told

_FINISH: dict[str, Status] = {
    "stop": "stop", "tool_calls": "tool_calls", "function_call": "tool_calls", "length": "length",
    "content_filter": "content_filter",
}  # fmt: skip
_CALL = ("index", "id", "type", "function")
_FIRST = ("role", "content", *FIELDS, "refusal", "tool_calls")


@dataclass(slots=True)
class _Call:
    """A tool call under way."""

    id: str | None
    name: str
    arguments: list[str] = field(default_factory=list[str])
    more: dict[str, Any] = field(default_factory=dict[str, Any])
    """Members that nobody knows."""

    def complete(self) -> bool:
        return (
            ToolCall.from_text(id="probe", name="probe", arguments_text="".join(self.arguments) or "-").arguments
            is not None
        )

    def wire(self) -> dict[str, Any]:
        function = {"name": self.name, "arguments": "".join(self.arguments)}
        return {**({"id": self.id} if self.id else {}), "type": "function", "function": function, **self.more}


def _joined(before: Any, piece: Any) -> Any:
    """Texts and lists grow by their pieces, a text beside a list as a part of it; everything else is replaced."""
    if isinstance(before, str) and isinstance(piece, str):
        return before + piece
    if isinstance(before, (str, list)) and isinstance(piece, (str, list)):
        return [*_as_parts(cast("object", before)), *_as_parts(cast("object", piece))]
    return piece


def _as_parts(content: object) -> list[Any]:
    """Content as a list of parts."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return cast("list[Any]", content)


class ChatParser:
    """One answer."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._message: dict[str, Any] = {}
        self._calls: list[_Call] = []
        self._by_index: dict[int, int] = {}
        self._rest: dict[str, Any] = {}
        self._finish: dict[str, Any] | None = None
        self._done = False

    def feed(self, data: str) -> list[Event]:
        """One event of the stream."""
        if self._done or data.strip() == "[DONE]":
            self._done = True
            return []
        chunk = api_errors.decoded(self._dialect.provider, data)
        if chunk.get("error"):
            raise self._refusal(chunk)
        for key in ("id", "model", "usage"):
            if chunk.get(key) and (key != "id" or key not in self._rest):  # some servers number every chunk
                self._rest[key] = chunk[key]
        events: list[Event] = []
        for choice in api_errors.objects(chunk, "choices")[:1]:
            self._check(choice)
            events.extend(self._delta(api_errors.member(choice, "delta")))
            if choice.get("finish_reason"):
                events.extend(self._finished(choice))
        return events

    def _check(self, choice: dict[str, Any]) -> None:
        """A choice may say that it failed, with an error of its own or without."""
        if choice.get("finish_reason") in self._dialect.failed:
            raise self._refusal({"error": api_errors.member(choice, "error")})

    def _refusal(self, body: str | dict[str, Any]) -> APIError:
        return api_errors.api_error(self._dialect.provider, told(body), status=200, headers={}, secret=None)

    def _delta(self, delta: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        for key, piece in delta.items():
            if key == "tool_calls":
                events.extend(self._fragment(fragment) for fragment in api_errors.objects(delta, key))
            elif key == self._dialect.details:
                self._message[key] = merged(self._message.get(key, []), api_errors.objects(delta, key))
            elif piece is not None and key not in ("role", "channel"):  # Groq's: names the member that the piece is of
                self._message[key] = _joined(self._message.get(key), piece)
                shown = content_text(piece) if key == "content" or key in FIELDS else ""
                if shown:
                    events.append(Event("text_delta" if key == "content" else "reasoning_delta", text=shown))
        return events

    def _fragment(self, fragment: dict[str, Any]) -> Event:
        """By id, then by index. Servers send every call under index 0, no index, or no id after the first piece."""
        function = api_errors.member(fragment, "function")
        position = self._position(_id(fragment), fragment.get("index"), function.get("name"))
        call = self._calls[position]
        call.more |= {key: value for key, value in fragment.items() if key not in _CALL and value is not None}
        piece = function.get("arguments") or ""
        call.arguments.append(piece if isinstance(piece, str) else canonical.dumps(piece))
        return Event("tool_call_delta", text=call.arguments[-1], index=position)

    def _position(self, call_id: str | None, index: int | None, name: str | None) -> int:
        known = self._by_index.get(index) if index is not None else None
        if call_id:
            if known is not None and self._calls[known].id == call_id:
                return known
            same = next((n for n, call in enumerate(self._calls) if call.id == call_id), None)
            twice = same is not None and name and index is not None and self._calls[same].complete()
            return self._new(call_id, index, name) if same is None or twice else same
        if known is not None and not (name and self._calls[known].complete()):
            return known
        if name:
            return self._new(None, index, name)
        still_open = [position for position, call in enumerate(self._calls) if not call.complete()]
        if len(still_open) == 1:
            return still_open[0]
        raise APIError(
            f"{self._dialect.provider} streamed a piece of a tool call that belongs to no call",
            hint="Try again, or use interact() instead of stream()",
        )

    def _new(self, call_id: str | None, index: int | None, name: str | None) -> int:
        self._calls.append(_Call(call_id, name or "unnamed"))
        if index is not None:
            self._by_index[index] = len(self._calls) - 1
        return len(self._calls) - 1

    def _finished(self, choice: dict[str, Any]) -> list[Event]:
        first = self._finish is None
        self._finish = choice
        if not first:
            return []
        calls = _tool_calls([call.wire() for call in self._calls], self._rest.get("id"))
        return [Event("tool_call", tool_call=call, index=index) for index, call in enumerate(calls)]

    def end(self) -> Reply:
        """The stream is over."""
        if self._finish is None or (self._dialect.done and not self._done):
            raise StreamInterruptedError(
                f"the stream of {self._dialect.provider} ended without its terminal event",
                hint="Try again from the same continuation",
                retryable=True,
            )
        message = dict(self._message)
        if self._calls:
            message["tool_calls"] = [call.wire() for call in self._calls]
        return self._reply(message, self._finish, self._rest)

    def whole(self, body: str) -> Reply:
        """A body that was not streamed."""
        completion = api_errors.decoded(self._dialect.provider, body)
        choices = api_errors.objects(completion, "choices")
        if completion.get("error") or not choices or not choices[0].get("finish_reason"):
            raise self._refusal(body)
        self._check(choices[0])
        return self._reply(api_errors.member(choices[0], "message"), choices[0], completion)

    def _reply(self, message: dict[str, Any], choice: dict[str, Any], rest: dict[str, Any]) -> Reply:
        details = message.get(self._dialect.details) if self._dialect.details else None
        native = _ordered({key: value for key, value in message.items() if details or key != self._dialect.details})
        reason = str(choice["finish_reason"])
        text = canonical.repair_text(content_text(message.get("content")))
        refusal = api_errors.word(message, "refusal")
        calls = _tool_calls(api_errors.objects(message, "tool_calls"), rest.get("id"))
        status = _FINISH.get(reason, "other")
        if status in ("stop", "tool_calls"):
            status = "tool_calls" if calls else ("refusal" if refusal else "stop")
        return Reply(
            native=(native,),
            finish=Finish(status, _native(choice, reason) if status == "other" else reason),
            text=text,
            reasoning=canonical.repair_text(next(filter(None, (content_text(message.get(key)) for key in FIELDS)), "")),
            refusal=refusal,
            calls=calls,
            usage=_usage(api_errors.member(rest, "usage")),
            signed=sealed(details),
            model=api_errors.word(rest, "model"),
            response_id=api_errors.word(rest, "id"),
        )


def _native(choice: dict[str, Any], reason: str) -> str:
    """What the provider behind a router gave as reason, where the router says it."""
    return api_errors.word(choice, "native_finish_reason") or reason


def content_text(content: Any) -> str:
    """Text content, or the text parts of a list joined."""
    if isinstance(content, list):
        parts = api_errors.objects({"content": content}, "content")
        texts = [part.get("text") for part in parts if part.get("type") in ("text", "output_text")]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _ordered(message: dict[str, Any]) -> str:
    """The message as it is kept: one key order, absent and null the same, the position markers of chunks gone."""
    kept: dict[str, Any] = {"role": "assistant", "content": message.get("content") or None}
    for key in (*_FIRST[2:], *(key for key in message if key not in _FIRST)):
        if message.get(key) is not None:
            kept[key] = message[key]
    if kept.get("tool_calls"):
        calls = cast("list[dict[str, Any]]", kept["tool_calls"])
        kept["tool_calls"] = [{key: value for key, value in call.items() if key != "index"} for call in calls]
    else:
        kept.pop("tool_calls", None)
    return json.dumps(kept, separators=(",", ":"), allow_nan=False)  # ASCII: a lone surrogate stays an escape


def _id(call: dict[str, Any]) -> str | None:
    """The server's id of a call: text, or a number as some count them; None where there is none or an empty one."""
    value = call.get("id")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else api_errors.word(call, "id")


def _tool_calls(calls: list[dict[str, Any]], reply_id: object) -> tuple[ToolCall, ...]:
    """With an id each: the server's own, or one made up where it gave none or gave it twice."""
    found: list[ToolCall] = []
    seed = json.dumps([reply_id, calls])
    seen: set[str] = set()
    for position, call in enumerate(calls):
        function = api_errors.member(call, "function")
        arguments = function.get("arguments") or ""
        call_id = _id(call)
        if call_id is None or call_id in seen:
            call_id = made_up(position, seed)
        seen.add(call_id)
        text = arguments if isinstance(arguments, str) else canonical.dumps(arguments)
        found.append(ToolCall(call_id, function.get("name") or "unnamed", canonical.repair_text(text)))
    return tuple(found)


def _usage(usage: dict[str, Any]) -> Usage:
    into, out = api_errors.member(usage, "prompt_tokens_details"), api_errors.member(usage, "completion_tokens_details")
    return Usage.of(
        input=usage.get("prompt_tokens") or 0,
        output=usage.get("completion_tokens") or 0,
        cached=into.get("cached_tokens") or 0,
        cache_write=into.get("cache_write_tokens") or 0,
        reasoning=out.get("reasoning_tokens") or 0,
    )


def portable(turn: Turn) -> Portable:
    """What portable history can hold of a turn's message; everything else is a named loss."""
    message = cast("dict[str, Any]", json.loads(turn.native[0])) if turn.native else {}
    content = canonical.repair_text(content_text(message.get("content"))) or api_errors.word(message, "refusal") or ""
    known = ("role", "content", "refusal", "tool_calls")
    losses = tuple(f"the member {key} of the message" for key in message if key not in known)
    if not content.strip() and not turn.calls:
        return Portable(None, losses)
    return Portable(Message("assistant", content, turn.calls), losses)
