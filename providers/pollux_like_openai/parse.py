"""Wire to ours: a Responses body or its event stream as a `Reply`. Pure; imports no SDK.

Items are kept as the text that came: from the `response.output_item.done` events, else from the final body (both hold
valid encrypted content; that of `.added` may be incomplete, POST /v1/responses, streaming events).
"""

from __future__ import annotations

import json
from typing import Any, cast

from pollux_like import api_errors, canonical
from pollux_like.errors import StreamInterruptedError
from pollux_like.messages import Message, ToolCall
from pollux_like.output import Event, Finish, Notice, Status, Usage
from pollux_like.provider import Portable, Reply
from pollux_like.turns import Turn
from pollux_like.wire_ids import made_up

_INCOMPLETE: dict[str, Status] = {"max_output_tokens": "length", "content_filter": "content_filter"}
_TERMINAL = ("response.completed", "response.incomplete", "response.failed")


class ResponsesParser:
    """One answer. Deltas are keyed by `output_index`: argument events carry neither call id nor name."""

    def __init__(self, store: bool = False) -> None:
        self._store = store
        self._items: dict[int, tuple[str, dict[str, Any]]] = {}
        self._calls: dict[int, int] = {}
        self._final: str | None = None
        self._said: tuple[int, str] | None = None
        self._thought: tuple[int, int] | None = None

    def feed(self, data: str) -> list[Event]:
        """One event of the stream."""
        if self._final is not None or data == "[DONE]":
            return []
        event = api_errors.decoded("openai", data)
        kind = event.get("type")
        index = int(event.get("output_index", 0))
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                return self._text(index, str(event.get("item_id", "")), str(event.get("delta", "")), kind)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                part = int(event.get("summary_index", event.get("content_index", 0)))
                return self._reasoning((index, part), str(event.get("delta", "")))
            case "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta":
                position = self._calls.setdefault(index, len(self._calls))
                return [Event("tool_call_delta", text=str(event.get("delta", "")), index=position)]
            case "response.output_item.added":
                if event["item"].get("type") in ("function_call", "custom_tool_call"):
                    self._calls.setdefault(index, len(self._calls))
            case "response.output_item.done":
                text = canonical.minify(canonical.member(data, "item"))
                self._items[index] = (text, event["item"])
                call = _call(event["item"], index, text)
                return [] if call is None else [Event("tool_call", tool_call=call, index=self._calls.get(index))]
            case "error":
                raise api_errors.api_error("openai", _error_fields(event), status=200, headers={}, secret=None)
            case _ if kind in _TERMINAL:
                self._final = canonical.member(data, "response")
            case _:
                pass  # status, progress and unknown events say nothing that the final body does not
        return []

    def _text(self, index: int, item_id: str, delta: str, kind: str) -> list[Event]:
        if kind == "response.refusal.delta" or not delta:
            return []
        before, self._said = self._said, (index, item_id)
        gap = [Event("text_delta", text="\n\n")] if before is not None and before != self._said else []
        return [*gap, Event("text_delta", text=delta)]

    def _reasoning(self, part: tuple[int, int], delta: str) -> list[Event]:
        before, self._thought = self._thought, part
        gap = [Event("reasoning_delta", text="\n\n")] if before is not None and before != part else []
        return [*gap, Event("reasoning_delta", text=delta)]

    def end(self) -> Reply:
        """The stream is over."""
        if self._final is None:
            raise StreamInterruptedError(
                "the stream of openai ended without its terminal event",
                hint="Try again from the same continuation",
                retryable=True,
            )
        response = api_errors.decoded("openai", self._final)
        if len(self._items) < len(response.get("output") or ()):
            return _reply(response, _items(self._final, response), self._store)
        return _reply(response, [self._items[index] for index in sorted(self._items)], self._store)

    def whole(self, body: str) -> Reply:
        """A body that was not streamed."""
        response = api_errors.decoded("openai", body)
        if "output" not in response:
            raise api_errors.api_error("openai", body, status=200, headers={}, secret=None)
        return _reply(response, _items(body, response), self._store)


def _items(body: str, response: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The output of a response, each item as text and value."""
    return list(zip(canonical.elements(canonical.member(body, "output")), response["output"], strict=True))


def _error_fields(event: dict[str, Any]) -> dict[str, Any]:
    inner = event.get("error")
    fields = cast("dict[str, Any]", inner) if isinstance(inner, dict) else event
    return {**fields, "type": fields.get("type") if fields.get("type") != "error" else None}


def _reply(response: dict[str, Any], output: list[tuple[str, dict[str, Any]]], store: bool) -> Reply:
    status = response.get("status")
    if response.get("error") or status not in ("completed", "incomplete"):
        error = response.get("error") or {"message": f"the response is {status}", "code": "server_error"}
        raise api_errors.api_error("openai", {"error": error}, status=200, headers={}, secret=None)
    items = [item for _, item in output]
    texts, refusals, thoughts = said(items)
    found = [_call(item, index, text) for index, (text, item) in enumerate(output)]
    calls = tuple(call for call in found if call is not None)
    refusal = canonical.repair_text("\n\n".join(refusals)) if refusals else None
    response_id = api_errors.word(response, "id")
    return Reply(
        native=tuple(_named(text, item, call) for (text, item), call in zip(output, found, strict=True)),
        finish=_finish(response, bool(calls), refusal),
        text=canonical.repair_text("\n\n".join(texts)),
        reasoning=canonical.repair_text("\n\n".join(thoughts)),
        refusal=refusal,
        calls=calls,
        usage=_usage(api_errors.member(response, "usage")),
        signed=any(item.get("type") in ("reasoning", "compaction") for item in items),
        state={"response_id": response_id} if store and response_id is not None else {},
        model=api_errors.word(response, "model"),
        response_id=response_id,
        notices=tuple(_dropped(api_errors.objects(response, "input_transformations"))),
    )


def said(items: list[dict[str, Any]]) -> tuple[list[str], list[str], list[str]]:
    """Texts by message, refusals and reasoning by part: what is shown of the items."""
    texts: list[str] = []
    refusals: list[str] = []
    thoughts: list[str] = []
    for item in items:
        parts = api_errors.objects(item, "content")
        if item.get("type") == "message":
            text = "".join(str(part.get("text", "")) for part in parts if part.get("type") == "output_text")
            texts.extend([text] if text else [])
            refusals.extend(str(part.get("refusal", "")) for part in parts if part.get("type") == "refusal")
        elif item.get("type") == "reasoning":
            summary = api_errors.objects(item, "summary")
            thoughts.extend(str(part.get("text", "")) for part in (*summary, *parts) if part.get("text"))
    return texts, refusals, thoughts


def _call(item: dict[str, Any], index: int, text: str) -> ToolCall | None:
    if item.get("type") not in ("function_call", "custom_tool_call"):
        return None
    call_id, name = item.get("call_id") or made_up(index, text), item.get("name") or "unnamed"
    if item.get("type") == "function_call":
        return ToolCall(call_id, name, canonical.repair_text(str(item.get("arguments", ""))))
    # A free-form tool: its input is text, shown as {"input": text}.
    return ToolCall(call_id, name, None, {"input": canonical.repair_text(str(item.get("input", "")))})


def _named(text: str, item: dict[str, Any], call: ToolCall | None) -> str:
    """The item's text. A call that came without an id carries the one that the caller sees, or no result could fit."""
    if call is None or item.get("call_id"):
        return text
    return canonical.dumps_received({**item, "call_id": call.id})


def _finish(response: dict[str, Any], calls: bool, refusal: str | None) -> Finish:
    if response.get("status") == "incomplete":
        reason = api_errors.word(api_errors.member(response, "incomplete_details"), "reason")
        return Finish(_INCOMPLETE.get(str(reason), "other"), reason)
    if calls:
        return Finish("tool_calls", "completed")
    return Finish("stop" if refusal is None else "refusal", "completed")


def _usage(usage: dict[str, Any]) -> Usage:
    into = api_errors.member(usage, "input_tokens_details")
    out = api_errors.member(usage, "output_tokens_details")
    return Usage.of(
        input=usage.get("input_tokens") or 0,
        output=usage.get("output_tokens") or 0,
        cached=into.get("cached_tokens") or 0,
        cache_write=into.get("cache_write_tokens") or 0,
        reasoning=out.get("reasoning_tokens") or 0,
    )


def _dropped(transformations: list[dict[str, Any]]) -> list[Notice]:
    return [
        Notice("reasoning_dropped", f"openai left out replayed reasoning: {entry.get('reason', 'no reason given')}")
        for entry in transformations
    ]


def portable(turn: Turn) -> Portable:
    """What portable history can hold of a turn's items; everything else is a named loss."""
    items = [cast("dict[str, Any]", json.loads(text)) for text in turn.native]
    texts, refusals, _ = said(items)
    content = "\n\n".join(texts or refusals)
    kept = {"message", "function_call"}
    kinds = [kind for kind in (str(item.get("type")) for item in items) if kind not in kept]
    losses = tuple(f"{kinds.count(kind)} item(s) of type {kind}" for kind in dict.fromkeys(kinds))
    if not content.strip() and not turn.calls:
        return Portable(None, losses)
    return Portable(Message("assistant", canonical.repair_text(content), turn.calls), losses)
