"""Wire to ours: a GenerateContentResponse, whole or streamed, as a `Reply`. Pure; imports no SDK.

Every part is kept as the text that came; nothing is merged. A body is read as a stream of one, so both roads meet in
the same items. A `finishReason` in the middle of a stream ends nothing: only the end of the body does, and the last
candidate that came must carry one.
"""

from __future__ import annotations

from typing import Any

from pollux_like import api_errors, canonical
from pollux_like.errors import StreamInterruptedError
from pollux_like.messages import Message, ToolCall
from pollux_like.output import Event, Finish, Notice, Status, Usage
from pollux_like.provider import Portable, Reply
from pollux_like.turns import Turn
from pollux_like.wire_ids import made_up

from .parts import Part, decoded, function_call, kind, says, signature, spoken
from .refusal import holds_error, refusal

_FINISH: dict[str, Status] = {
    "STOP": "stop", "MAX_TOKENS": "length", "MALFORMED_FUNCTION_CALL": "malformed_tool_call",
    "UNEXPECTED_TOOL_CALL": "malformed_tool_call", "SAFETY": "content_filter", "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter", "PROHIBITED_CONTENT": "content_filter", "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter", "IMAGE_SAFETY": "content_filter", "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
}  # fmt: skip
"""Every other reason is "other", with the provider's word in `raw`: LANGUAGE, MISSING_THOUGHT_SIGNATURE,
TOO_MANY_TOOL_CALLS, MALFORMED_RESPONSE, ESCALATION and what is new."""


class ContentParser:
    """One answer."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._parts: list[Part] = []
        self._calls: list[ToolCall] = []
        self._usage: dict[str, Any] = {}
        self._seen: dict[str, Any] = {}
        self._finish: str | None = None
        self._token: str | None = None
        self._blocked: str | None = None

    def feed(self, data: str) -> list[Event]:
        """One chunk: a response with the parts that are new."""
        chunk = api_errors.decoded("gemini", data)
        if holds_error(chunk):
            raise refusal(chunk, status=None, headers={}, secret=None)
        self._usage.update({key: value for key, value in api_errors.member(chunk, "usageMetadata").items() if value})
        self._seen.update({key: chunk[key] for key in ("responseId", "modelVersion") if chunk.get(key)})
        self._blocked = api_errors.word(api_errors.member(chunk, "promptFeedback"), "blockReason") or self._blocked
        first = next((one for one in api_errors.objects(chunk, "candidates") if not one.get("index")), None)
        if first is None:
            return []
        parts: list[Part] = api_errors.member(first, "content").get("parts") or []
        finish = api_errors.word(first, "finishReason")
        if finish is not None or any(map(says, parts)):  # what is said after a finish reason needs one of its own
            self._finish, self._token = finish, api_errors.word(first, "continuationToken")
        if not parts:
            return []
        candidate = canonical.elements(canonical.member(data, "candidates"))[_at(chunk, first)]
        texts = canonical.elements(canonical.member(canonical.member(candidate, "content"), "parts"))
        return [event for text, part in zip(texts, parts, strict=True) for event in self._add(text, part)]

    def _add(self, text: str, part: Part) -> list[Event]:
        self._texts.append(text)
        self._parts.append(part)
        theirs = function_call(part)
        if theirs is not None:
            return self._call(text, theirs)
        said = part.get("text")
        if not isinstance(said, str) or not said:
            return []
        return [Event("reasoning_delta" if part.get("thought") is True else "text_delta", text=said)]

    def _call(self, text: str, theirs: Part) -> list[Event]:
        if theirs.get("willContinue") or theirs.get("partialArgs"):
            raise api_errors.unreadable("gemini")  # only where streamed arguments are asked for, which render refuses
        members = canonical.members(text)
        inner = canonical.members(members["functionCall" if "functionCall" in members else "function_call"])
        written = inner.get("args", "")
        position = len(self._calls)
        call = ToolCall.from_text(
            id=api_errors.word(theirs, "id") or made_up(position, f"{self._seen.get('responseId', '')}:{text}"),
            name=api_errors.word(theirs, "name") or "unnamed",
            arguments_text="" if written == "null" else canonical.repair_text(written),
        )
        self._calls.append(call)
        pieces = [Event("tool_call_delta", text=written, index=position)] if call.arguments_text else []
        return [*pieces, Event("tool_call", tool_call=call, index=position)]

    def whole(self, body: str) -> Reply:
        """A body that was not streamed, or a stream's chunks as one array."""
        chunks = canonical.elements(body) if body.lstrip().startswith("[") else (body,)
        for chunk in chunks:
            self.feed(chunk)
        if self._finish is None and self._blocked is None:
            raise api_errors.unreadable("gemini")
        return self._reply()

    def end(self) -> Reply:
        """The stream is over."""
        if self._finish is None and self._blocked is None:
            raise StreamInterruptedError(
                "the stream of gemini ended without a finish reason",
                hint="Try again from the same continuation",
                retryable=True,
            )
        return self._reply()

    def _reply(self) -> Reply:
        text, reasoning = spoken(self._parts)
        finish = self._finished()
        return Reply(
            native=tuple(self._texts),
            finish=finish,
            text=canonical.repair_text(text),
            reasoning=canonical.repair_text(reasoning),
            calls=tuple(self._calls),
            usage=_usage(self._usage),
            signed=any(signature(part) is not None for part in self._parts),
            state={"continuation_token": self._token} if finish.status == "pause" and self._token is not None else {},
            model=api_errors.word(self._seen, "modelVersion"),
            response_id=api_errors.word(self._seen, "responseId"),
            notices=tuple(self._notices()),
        )

    def _finished(self) -> Finish:
        """Calls that came can be answered, whatever the reason; a call of a tool that is not declared is one of them.

        CONTINUATION with its token is a pause: the API holds the rest, and the next turn asks for it.
        """
        if self._finish is None and self._blocked is not None:
            return Finish("content_filter", f"blockReason:{self._blocked}")
        if self._calls and self._finish in (None, "STOP", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"):
            return Finish("tool_calls", self._finish)
        if self._finish is None:
            return Finish("stop")
        if self._finish == "CONTINUATION" and self._token is not None and not self._calls:
            return Finish("pause", self._finish)
        return Finish(_FINISH.get(self._finish, "other"), self._finish)

    def _notices(self) -> list[Notice]:
        if self._finish is None and self._blocked is not None:
            return [Notice("prompt_blocked", f"gemini did not answer: the prompt was blocked ({self._blocked})")]
        if self._finish == "MISSING_THOUGHT_SIGNATURE":
            return [Notice("signature_missing", "gemini says that the conversation lacks a thought signature")]
        return []


def _at(chunk: dict[str, Any], candidate: dict[str, Any]) -> int:
    return next(at for at, one in enumerate(chunk["candidates"]) if one is candidate)


def _usage(usage: dict[str, Any]) -> Usage:
    """Thoughts are reported beside the candidates' tokens, the prompt of the API's own tools beside the prompt's."""
    thoughts = _count(usage, "thoughtsTokenCount")
    return Usage.of(
        input=_count(usage, "promptTokenCount") + _count(usage, "toolUsePromptTokenCount"),
        output=_count(usage, "candidatesTokenCount") + thoughts,
        cached=_count(usage, "cachedContentTokenCount"),
        reasoning=thoughts,
    )


def _count(usage: dict[str, Any], key: str) -> int:
    value = usage.get(key)
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else 0


def portable(turn: Turn) -> Portable:
    """What portable history can hold of a turn's parts; everything else is a named loss."""
    parts: list[Part] = [part for _, part in decoded(turn)]
    text, _ = spoken(parts)
    kept = ("text", "functionCall", "function_call")
    kinds = [kind(part) for part in parts if says(part)]
    signed = sum(signature(part) is not None for part in parts)
    losses = [f"{kinds.count(one)} part(s) of kind {one}" for one in dict.fromkeys(kinds) if one not in kept]
    losses += [f"{signed} thought signature(s)"] if signed else []
    if not text.strip() and not turn.calls:
        return Portable(None, tuple(losses))
    return Portable(Message("assistant", canonical.repair_text(text), turn.calls), tuple(losses))
