"""Chat completions: replies, whole and streamed, as OpenAI and the servers of the table of flavours give them.

Reasoning is shown as `reasoning_content`, the way of the compatible servers; OpenAI itself shows none on this API.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from pollux_like.canonical import dumps
from pollux_like.simulator.chat_flavours import OPENAI, Flavour
from pollux_like.simulator.chat_rules import check_messages, check_tools
from pollux_like.simulator.ledger import Ledger
from pollux_like.simulator.options import Options
from pollux_like.simulator.responses_items import bad
from pollux_like.simulator.responses_rules import check_key
from pollux_like.simulator.shapes import as_object
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
    pieces,
    text_of,
    tokens,
)
from pollux_like.testing.script import Answer, Call, Refuse, Say, Think

STOPS = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "pause": "stop",
    "refusal": "stop",
    "content_filter": "content_filter",
}


class Chat:
    """The dialect in one flavour; see `wire.Dialect` for the meaning of each method."""

    def __init__(self, ledger: Ledger, options: Options, flavour: Flavour = OPENAI) -> None:
        self.ledger = ledger
        self.options = options
        self.flavour = flavour
        self.name, self.base = flavour.name, flavour.base
        self.variables: tuple[str, str] | None = None

    def route(self, path: str) -> Route | None:
        return Route() if path == f"{self.base}/chat/completions" else None

    def look_up(self, exchange: Exchange) -> Looked | None:
        if (exchange.method, exchange.path) != ("GET", f"{self.base}/models"):
            return None
        names = self.options.listed(*self.flavour.usual)
        data = [{"id": n, "object": "model", "created": 1767225600, "owned_by": "simulator"} for n in names]
        return 200, {"object": "list", "data": data}

    def check(self, exchange: Exchange) -> Refusal | None:
        fault = check_key(exchange, self.options)
        if fault is not None:
            if self.flavour.words:
                fault = Fault(401)
            tail = exchange.headers.get("authorization", "")[-4:]
            return Refusal(401, {"error": self.flavour.error(fault, tail=tail)})
        fault = self._form(exchange) or self._window(exchange)
        if fault is None and self.options.strict:
            fault = (
                self.flavour.rule(exchange) or check_tools(exchange.body) or check_messages(exchange.body["messages"])
            )
        return None if fault is None else self.error(fault)

    def _form(self, exchange: Exchange) -> Fault | None:
        if not isinstance(exchange.body.get("model"), str):
            return bad("you must provide a model parameter")
        if not isinstance(exchange.body.get("messages"), list) or not exchange.body["messages"]:
            return bad("Missing required parameter: 'messages'.", "messages", "missing_required_parameter")
        if self.options.models is None or exchange.model in self.options.models:
            return None
        if not self.flavour.words:
            text = f"The model `{exchange.model}` does not exist or you do not have access to it."
            return bad(text, code="model_not_found", status=404)
        kind, code, text = self.flavour.words[404]
        return Fault(self.flavour.unknown_model, text.format(model=exchange.model), code, kind)

    def _window(self, exchange: Exchange) -> Fault | None:
        most, given = self.options.max_input_tokens, tokens(dumps(exchange.body))
        if most is None or given <= most:
            return None
        code = None if self.flavour.words else "context_length_exceeded"
        return bad(self.flavour.overflow.format(most=most, count=given), "messages", code)

    def headers(self) -> dict[str, str]:
        return {"x-request-id": f"req_{self.ledger.hex(32)}"}

    def error(self, fault: Fault) -> Refusal:
        return Refusal(fault.status, {"error": self.flavour.error(fault)}, fault.headers)

    def error_event(self, fault: Fault) -> str:
        return event({"error": self.flavour.error(fault)})

    def last_text(self, exchange: Exchange) -> str:
        users = [text_of(m.get("content")) for m in exchange.body["messages"] if m.get("role") == "user"]
        return users[-1] if users else ""

    def draft(self, exchange: Exchange, answer: Answer) -> Draft:
        used = count(exchange, answer)
        choice = {"index": 0, "message": self._message(exchange, answer), "logprobs": None}
        body = {
            "id": f"chatcmpl-{self.ledger.letters(29)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": exchange.model,
            "choices": [{**choice, "finish_reason": answer.native or STOPS[answer.ended]}],
            "usage": {
                "prompt_tokens": used.input,
                "completion_tokens": used.output,
                "total_tokens": used.input + used.output,
                "prompt_tokens_details": {"cached_tokens": used.cached, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": used.reasoning, "audio_tokens": 0},
            },
            "service_tier": "default",
            "system_fingerprint": f"fp_{self.ledger.hex(10)}",
        }
        options = as_object(exchange.body.get("stream_options"))
        return Draft(body, with_usage=options.get("include_usage") is True)

    def _message(self, exchange: Exchange, answer: Answer) -> dict[str, Any]:
        refused = [part.text for part in answer.parts if isinstance(part, Refuse)]
        said = [part.text for part in answer.parts if isinstance(part, Say | Refuse if self.flavour.plain else Say)]
        thought = [part.text for part in answer.parts if isinstance(part, Think)]
        message: dict[str, Any] = {"role": "assistant", "content": "".join(said) if said else None}
        if not self.flavour.plain:
            message |= {"refusal": "".join(refused) if refused else None, "annotations": []}
        if thought:
            message["reasoning_content"] = "".join(thought)
        calls = self.calls(answer)
        if calls:
            numbered = [{"index": n, **call} for n, call in enumerate(calls)]
            message["tool_calls"] = numbered if self.flavour.plain else calls
        return message

    def calls(self, answer: Answer) -> list[dict[str, Any]]:
        """The calls of an answer, with ids."""
        return [
            {
                "id": part.id or f"call_{self.ledger.letters(24)}",
                "type": "function",
                "function": {"name": part.name, "arguments": part.arguments},
            }
            for part in answer.parts
            if isinstance(part, Call)
        ]

    def render(self, draft: Draft) -> str:
        return json.dumps(draft.body, ensure_ascii=False, indent=2) + "\n"

    def stream(self, draft: Draft) -> list[str]:
        body, choice = draft.body, draft.body["choices"][0]
        head = {key: body[key] for key in ("id", "created", "model", "service_tier", "system_fingerprint")}
        head = {"id": head.pop("id"), "object": "chat.completion.chunk", **head}
        usage: dict[str, Any] = {"usage": None} if draft.with_usage else {}
        events: list[str] = []
        for delta in _deltas(choice["message"]):
            part = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
            events.append(event({**head, "choices": [part], **usage}))
        last: dict[str, Any] = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": choice["finish_reason"]}
        events.append(event({**head, "choices": [last], **usage}))
        if draft.with_usage:
            events.append(event({**head, "choices": [], "usage": body["usage"]}))
        return [*events, "data: [DONE]\n\n"]


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    content = message["content"]
    more = {"refusal": None} if "refusal" in message else {}
    yield {"role": "assistant", "content": None if content is None else "", **more}
    for piece in pieces(message.get("reasoning_content", "")):
        yield {"reasoning_content": piece}
    for piece in pieces(content or ""):
        yield {"content": piece}
    for piece in pieces(message.get("refusal") or ""):
        yield {"refusal": piece}
    yield from call_deltas(message)


def call_deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The calls of a message in pieces."""
    for n, call in enumerate(message.get("tool_calls", [])):
        yield {"tool_calls": [{**call, "index": n, "function": {**call["function"], "arguments": ""}}]}
        for piece in argument_pieces(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": n, "function": {"arguments": piece}}]}
