"""OpenRouter: chat completions of many authors' models, with their reasoning as a list of signed or sealed entries.

Shapes and texts are recorded, or those of openrouter.ai/docs: api/reference/errors-and-debugging and
features/tool-calling.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pollux_like.canonical import dumps
from pollux_like.simulator.chat import STOPS, Chat, call_deltas
from pollux_like.simulator.chat_flavours import Flavour
from pollux_like.simulator.chat_rules import check_messages, check_tools, forced
from pollux_like.simulator.ledger import Ledger
from pollux_like.simulator.options import Options
from pollux_like.simulator.responses import openai_error
from pollux_like.simulator.router_details import author_of, check_details, issued, remember_calls
from pollux_like.simulator.shapes import as_object, as_objects
from pollux_like.simulator.wire import Draft, Exchange, Fault, Looked, Refusal, event, pieces, tokens
from pollux_like.testing.script import Answer, Redacted, Refuse, Say, Think

_UPSTREAM = "Provider returned error"
_PROCESSING = ": OPENROUTER PROCESSING\n\n"
_WORDS = {
    400: "Invalid request",
    401: "User not found.",
    402: "Insufficient credits. Add more using https://openrouter.ai/settings/credits",
    403: "The input was flagged by the moderation of the provider",
    404: "No endpoints found",
    408: "Request timed out",
    429: _UPSTREAM,
    500: "Internal Server Error",
    502: _UPSTREAM,
    503: "There is no available model provider that meets your routing requirements",
}
_RAW = {429: "The model is temporarily rate-limited upstream. Please retry shortly.", 502: "Upstream error"}
_NO_TOOLS = "sao10k/l3-lunaris-8b"
"""A model of the list that advertises no tools."""
_USUAL = ("anthropic/claude-haiku-4.5", "google/gemini-3-flash", "openai/gpt-5.2", _NO_TOOLS)
_PARAMETERS = ("max_tokens", "reasoning", "response_format", "seed", "stop", "temperature", "top_p")


class Router(Chat):
    """The dialect; see `wire.Dialect` for the meaning of each method."""

    def __init__(self, ledger: Ledger, options: Options) -> None:
        super().__init__(ledger, options, Flavour("openrouter", "/openrouter/api/v1", lambda _: None, _USUAL))
        self.variables = ("OPENROUTER_BASE_URL", "OPENROUTER_API_KEY")

    def look_up(self, exchange: Exchange) -> Looked | None:
        if (exchange.method, exchange.path) != ("GET", f"{self.base}/models"):
            return None
        data = [
            {
                "id": name,
                "name": name,
                "created": 1767225600,
                "context_length": 200_000,
                "supported_parameters": sorted(
                    [*_PARAMETERS, *(() if name == _NO_TOOLS else ("tools", "tool_choice"))]
                ),
            }
            for name in self.options.listed(*_USUAL)
        ]
        return 200, {"data": data}

    def check(self, exchange: Exchange) -> Refusal | None:
        key = exchange.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if not key:
            return self.error(Fault(401, "Missing Authentication header"))
        if self.options.api_key is not None and key != self.options.api_key:
            return self.error(Fault(401))
        body, most, given = exchange.body, self.options.max_input_tokens, tokens(dumps(exchange.body))
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            return self.error(Fault(400, 'Input required: specify "prompt" or "messages"'))
        known = self.options.models is None or exchange.model in self.options.models
        if not known or "/" not in exchange.model:
            return self.error(Fault(400, f"{exchange.model} is not a valid model ID"))
        if most is not None and given > most:
            text = (
                f"This endpoint's maximum context length is {most} tokens. However, you requested about {given} tokens "
                f"({given} of text input). Please reduce the length of either one, or use the context-compression "
                "plugin to compress your prompt automatically."
            )
            return self.error(Fault(400, text))
        return self._rules(exchange) if self.options.strict else None

    def _rules(self, exchange: Exchange) -> Refusal | None:
        """First the router's own, then those of the provider behind it."""
        body = exchange.body
        if body.get("tools") and exchange.model == _NO_TOOLS:
            text = (
                "No endpoints found that support tool use. To learn more about provider routing, visit: "
                "https://openrouter.ai/docs/guides/routing/provider-selection"
            )
            return self.error(Fault(404, text))
        messages = as_objects(body["messages"])
        if not body.get("tools") and any(one.get("tool_calls") or one.get("role") == "tool" for one in messages):
            return self.error(Fault(400, "tools must be in every request whose messages hold tool calls or results"))
        fault = check_tools(body) or check_messages(body["messages"])
        if fault is not None:
            return self._behind(exchange, {"error": openai_error(fault)})
        wrong = check_details(self.ledger, exchange.model, messages, reasons=_reasons(body))
        return None if wrong is None else self._behind(exchange, {"error": {"message": wrong, "code": 400}})

    def _behind(self, exchange: Exchange, raw: dict[str, Any]) -> Refusal:
        metadata = {"raw": dumps(raw), "provider_name": author_of(exchange.model).provider}
        error = {"message": _UPSTREAM, "code": 400, "metadata": metadata}
        return Refusal(400, {"error": error, "user_id": "user_simulator"})

    def headers(self) -> dict[str, str]:
        return {}

    def error(self, fault: Fault) -> Refusal:
        return Refusal(fault.status, {"error": _error(fault), "user_id": "user_simulator"}, fault.headers)

    def error_event(self, fault: Fault) -> str:
        end = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        return event({"object": "chat.completion.chunk", "error": _error(fault), "choices": [end]})

    def draft(self, exchange: Exchange, answer: Answer) -> Draft:
        draft = super().draft(exchange, answer)
        body, author = draft.body, author_of(exchange.model)
        reason = STOPS[answer.ended]
        native = answer.native or author.stops.get(reason, reason)
        body["choices"][0] |= {"finish_reason": reason, "native_finish_reason": native}
        body |= {"id": f"gen-{body['created']}-{self.ledger.letters(20)}", "provider": author.provider}
        body["usage"] |= {"cost": 0, "is_byok": False}
        return draft

    def _message(self, exchange: Exchange, answer: Answer) -> dict[str, Any]:
        author = author_of(exchange.model)
        thoughts = [part for part in answer.parts if isinstance(part, Think | Redacted)]
        if author.signs == "text" and forced(exchange.body):
            thoughts = []  # left out without a word
        calls = self.calls(answer)
        said = [part.text for part in answer.parts if isinstance(part, Say)]
        refused = [part.text for part in answer.parts if isinstance(part, Refuse)]
        shown = "".join(part.text for part in thoughts if isinstance(part, Think))
        message: dict[str, Any] = {"role": "assistant", "content": "".join(said) if said else None}
        message |= {"refusal": "".join(refused) if refused else None, "reasoning": shown or None}
        if calls:
            message["tool_calls"] = [{"index": n, **call} for n, call in enumerate(calls)]
        details = issued(self.ledger, author, thoughts, calls[0]["id"] if calls else None)
        if details:
            message["reasoning_details"] = details
        remember_calls(self.ledger, message)
        return message

    def render(self, draft: Draft) -> str:
        return json.dumps(draft.body, ensure_ascii=False)

    def stream(self, draft: Draft) -> list[str]:
        body, choice = draft.body, draft.body["choices"][0]
        head = {key: body[key] for key in ("id", "provider", "model", "created")} | {"object": "chat.completion.chunk"}
        events = [event({**head, "choices": [_choice(delta)]}) for delta in _deltas(choice["message"])]
        last = _choice({"role": "assistant", "content": ""}) | {
            "finish_reason": choice["finish_reason"],
            "native_finish_reason": choice["native_finish_reason"],
        }
        events += [event({**head, "choices": [last]}), event({**head, "choices": [last], "usage": body["usage"]})]
        return [_PROCESSING + events[0], *events[1:], "data: [DONE]\n\n"]


def _error(fault: Fault) -> dict[str, Any]:
    error: dict[str, Any] = {"message": fault.message or _WORDS.get(fault.status, _WORDS[500]), "code": fault.status}
    if error["message"] == _UPSTREAM:
        error["metadata"] = {"raw": _RAW[fault.status], "provider_name": "Simulator"}
    return error


def _reasons(body: dict[str, Any]) -> bool:
    reasoning = as_object(body.get("reasoning"))
    return bool(reasoning) and reasoning.get("effort") != "none" and reasoning.get("enabled") is not False


def _choice(delta: dict[str, Any]) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": None, "native_finish_reason": None, "logprobs": None}


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Details come in pieces of text under one index, their seal in a piece of its own."""
    head: dict[str, Any] = {"role": "assistant", "content": ""}
    yield head
    for entry in message.get("reasoning_details", []):
        key = next((name for name in ("text", "summary") if entry.get(name)), None)
        if key is None:
            yield {**head, "reasoning_details": [entry]}
            continue
        for piece in pieces(entry[key]):
            part = {name: value for name, value in entry.items() if name != "signature"} | {key: piece}
            yield {**head, "reasoning": piece, "reasoning_details": [part]}
        if "signature" in entry:
            part = {name: value for name, value in entry.items() if name != key}
            yield {**head, "reasoning_details": [part]}
    for piece in pieces(message["content"] or ""):
        yield {**head, "content": piece, "reasoning": None}
    for piece in pieces(message["refusal"] or ""):
        yield {**head, "refusal": piece}
    for delta in call_deltas(message):
        yield {**head, "content": None, **delta}
