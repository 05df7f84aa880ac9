"""Anthropic Messages: replies of `/v1/messages`, whole and streamed, and the error envelope.

Shapes follow the API reference (docs.anthropic.com/en/api/messages and .../messages-streaming). Bodies are compact.
What is refused stands in `messages_rules.py` and `messages_thinking.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pollux_like.canonical import dumps
from pollux_like.simulator import accepts
from pollux_like.simulator.ledger import Ledger, digest
from pollux_like.simulator.messages_rules import MessagesRules
from pollux_like.simulator.messages_thinking import PREFIX, Chain
from pollux_like.simulator.options import Options
from pollux_like.simulator.wire import (
    Draft,
    Exchange,
    Fault,
    Looked,
    Refusal,
    Route,
    argument_pieces,
    count,
    event,
    parsed,
    pieces,
    text_of,
    tokens,
)
from pollux_like.testing.script import Answer, Call, Part, Redacted, Refuse, Say, ServerTool, Think

_STOPS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "pause": "pause_turn",
    "refusal": "refusal",
    "content_filter": "refusal",
}
_ERRORS = {
    400: ("invalid_request_error", "Invalid request"),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the Anthropic API."),
    403: ("permission_error", "Your API key does not have permission to use the specified resource"),
    404: ("not_found_error", "The requested resource could not be found"),
    408: ("timeout_error", "Request timed out"),
    409: ("conflict_error", "The request conflicts with the current state of the resource"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
    500: ("api_error", "Internal server error"),
    503: ("api_error", "Service unavailable"),
    504: ("timeout_error", "Request timed out"),
    529: ("overloaded_error", "Overloaded"),
}


_AMPLE = 1_000_000  # no thinking budget is above it: a count has no max_tokens for a budget to be compared with


class Messages:
    """The dialect; see `wire.Dialect` for the meaning of each method."""

    name: str = "anthropic"
    base: str = ""
    variables: tuple[str, str] | None = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")

    def __init__(self, ledger: Ledger, options: Options) -> None:
        self.ledger = ledger
        self.options = options
        self.rules = MessagesRules(ledger, options)

    def route(self, path: str) -> Route | None:
        return Route() if path == "/v1/messages" else None

    def look_up(self, exchange: Exchange) -> Looked | None:
        if (exchange.method, exchange.path) == ("POST", "/v1/messages/count_tokens"):
            return self._counted(exchange)
        if (exchange.method, exchange.path) != ("GET", "/v1/models") or "anthropic-version" not in exchange.headers:
            return None
        names = self.options.listed("claude-opus-5-5", "claude-sonnet-5", "claude-haiku-4-5")
        data = [{"type": "model", "id": n, "display_name": n, "created_at": "2026-01-01T00:00:00Z"} for n in names]
        return 200, {"has_more": False, "data": data}

    def _counted(self, exchange: Exchange) -> Looked:
        """A count by the rules of the conversation itself; it takes no limit and nothing that shapes the answer."""
        extra = (
            next((n for n in exchange.body if n not in accepts.MESSAGES_COUNT), None) if self.options.strict else None
        )
        fault = None if extra is None else Fault(400, f"{extra}: Extra inputs are not permitted")
        fault = fault or self.rules.check(replace(exchange, body={**exchange.body, "max_tokens": _AMPLE}))
        if fault is not None:
            refusal = self.error(fault)
            return refusal.status, refusal.body
        return 200, {"input_tokens": tokens(dumps(exchange.body))}

    def check(self, exchange: Exchange) -> Refusal | None:
        message = self.rules.check(exchange)
        return None if message is None else self.error(message)

    def headers(self) -> dict[str, str]:
        return {"request-id": f"req_011C{self.ledger.letters(20)}"}

    def error(self, fault: Fault) -> Refusal:
        return Refusal(fault.status, self._envelope(fault), fault.headers)

    def error_event(self, fault: Fault) -> str:
        return event(self._envelope(fault), "error")

    def _envelope(self, fault: Fault) -> dict[str, Any]:
        kind, text = _ERRORS.get(fault.status, ("api_error", "Internal server error"))
        error: dict[str, Any] = {"type": fault.type or kind, "message": fault.message or text}
        if fault.code:
            error["details"] = {"error_code": fault.code}
        return {"type": "error", "error": error, "request_id": f"req_011C{self.ledger.letters(20)}"}

    def last_text(self, exchange: Exchange) -> str:
        users = [m for m in exchange.body.get("messages", []) if m.get("role") == "user" and text_of(m.get("content"))]
        return text_of(users[-1]["content"]) if users else ""

    def draft(self, exchange: Exchange, answer: Answer) -> Draft:
        draft = Draft({})
        content: list[dict[str, Any]] = []
        chain = Chain.of_reply(self.ledger, exchange, signed=sum(isinstance(p, Think | Redacted) for p in answer.parts))
        for part in answer.parts:
            if isinstance(part, Call):
                draft.raw[len(content)] = part.arguments
            for block in self._blocks(part, chain):
                content.append(block)
                chain.follow(block)
        if content and content[0]["type"] not in ("thinking", "redacted_thinking"):
            self.ledger.bare_calls.update(block["id"] for block in content if block["type"] == "tool_use")
        used = count(exchange, answer)
        ended = answer.ended
        refusal = next((part.text for part in answer.parts if isinstance(part, Refuse)), None)
        details = {"type": "refusal", "category": None, "explanation": refusal} if ended == "refusal" else None
        draft.body = {
            "model": exchange.model,
            "id": f"msg_01{self.ledger.letters(22)}",
            "type": "message",
            "role": "assistant",
            "content": content,
            "stop_reason": answer.native or _STOPS[ended],
            "stop_sequence": None,
            "stop_details": details,
            "usage": {
                "input_tokens": max(0, used.input - used.cached - used.written),
                "cache_creation_input_tokens": used.written,
                "cache_read_input_tokens": used.cached,
                "cache_creation": {"ephemeral_5m_input_tokens": used.written, "ephemeral_1h_input_tokens": 0},
                "output_tokens": used.output,
                "output_tokens_details": {"thinking_tokens": used.reasoning},
                "service_tier": "standard",
                "inference_geo": "global",
            },
        }
        if exchange.dropped:
            draft.body["input_transformations"] = exchange.dropped
        return draft

    def _blocks(self, part: Part, chain: Chain) -> Iterator[dict[str, Any]]:
        ledger = self.ledger
        if isinstance(part, (Say, Refuse)):
            if part.text:
                yield {"type": "text", "text": part.text}
        elif isinstance(part, Think):
            yield {"type": "thinking", "thinking": part.text, "signature": chain.sign(["thinking", part.text])}
        elif isinstance(part, Redacted):
            yield {"type": "redacted_thinking", "data": chain.sign(["redacted", ""])}
        elif isinstance(part, Call):
            given: Any = parsed(part.arguments) if part.arguments else {}
            yield {
                "type": "tool_use",
                "id": part.id or f"toolu_01{ledger.letters(22)}",
                "name": part.name,
                "input": {} if part.cut else given,
                "caller": {"type": "direct"},
            }
        elif isinstance(part, ServerTool):
            made = part.id or f"srvtoolu_01{ledger.letters(22)}"
            yield {"type": "server_tool_use", "id": made, "name": part.name, "input": parsed(part.input)}
            if part.result is not None:
                yield {"type": f"{part.name}_tool_result", "tool_use_id": made, "content": parsed(part.result)}
        elif part.signed:
            claims = {"k": "compaction", "c": digest(part.text)}
            sealed = ledger.seal_text(claims, prefix=PREFIX, pad=len(part.text))
            signature = ledger.seal_text(claims, prefix=PREFIX, pad=120)
            yield {
                "type": "compaction",
                "content": part.text,
                "encrypted_content": sealed,
                "signature": signature,
                "tool_changes": [],
            }
        else:
            yield {"type": "compaction", "content": part.text}

    def render(self, draft: Draft) -> str:
        return dumps(draft.body)

    def stream(self, draft: Draft) -> list[str]:
        return [event(data, data["type"]) for data in self._events(draft)]

    def _events(self, draft: Draft) -> Iterator[dict[str, Any]]:
        body = draft.body
        usage = body["usage"]
        start = {key: value for key, value in body.items() if key != "input_transformations"}
        start |= {"content": [], "stop_reason": None, "stop_details": None, "usage": {**usage, "output_tokens": 1}}
        del start["usage"]["output_tokens_details"]
        yield {"type": "message_start", "message": start}
        for index, block in enumerate(body["content"]):
            opened, deltas = _opened(block, draft.raw.get(index))
            yield {"type": "content_block_start", "index": index, "content_block": opened}
            if index == 0:
                yield {"type": "ping"}
            for delta in deltas:
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        delta = {key: body[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
        final: dict[str, Any] = {"type": "message_delta", "delta": delta}
        final["usage"] = {
            key: usage[key]
            for key in (
                "input_tokens",
                "cache_creation_input_tokens",
                "cache_read_input_tokens",
                "output_tokens",
                "output_tokens_details",
            )
        }
        if "input_transformations" in body:
            final["input_transformations"] = body["input_transformations"]
        yield final
        yield {"type": "message_stop"}


def _opened(block: dict[str, Any], raw: str | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as its start event shows it, and the deltas that complete it. Key order is the block's own."""
    kind = block["type"]
    if kind == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        return {**block, "thinking": "", "signature": ""}, [
            *deltas,
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if kind in ("tool_use", "server_tool_use"):
        text = dumps(block["input"]) if raw is None else raw
        shown = [] if text in ("", "{}") else argument_pieces(text)
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *shown)]
    if kind == "compaction":
        slow: dict[str, Any] = {key: block[key] for key in ("content", "encrypted_content") if key in block}
        return {**block, **dict.fromkeys(slow)}, [{"type": "compaction_delta", **slow}]
    return block, []
