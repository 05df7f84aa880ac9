"""Chat completions: replies of `/v1/chat/completions`, whole and streamed, as OpenAI and its many followers speak it.

Reasoning is shown as `reasoning_content`, the way of the compatible servers; OpenAI itself shows none on this API.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from pollux_like.simulator import accepts
from pollux_like.simulator.ledger import Ledger
from pollux_like.simulator.models import gpt
from pollux_like.simulator.options import Options
from pollux_like.simulator.responses import openai_error
from pollux_like.simulator.responses_items import bad
from pollux_like.simulator.responses_rules import check_function, check_key, check_name, check_sampling, check_window
from pollux_like.simulator.schemas import openai_strict
from pollux_like.simulator.shapes import as_array, as_object, as_objects, is_object
from pollux_like.simulator.wire import Draft, Exchange, Fault, Refusal, argument_pieces, count, event, pieces, text_of
from pollux_like.testing.script import Answer, Call, Refuse, Say, Think

_STOPS = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "pause": "stop",
    "refusal": "stop",
    "content_filter": "content_filter",
}
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


class Chat:
    """The dialect; see `wire.Dialect` for the meaning of each method."""

    name: str = "chat"
    paths: tuple[str, ...] = ("/v1/chat/completions",)

    def __init__(self, ledger: Ledger, options: Options) -> None:
        self.ledger = ledger
        self.options = options

    def check(self, exchange: Exchange) -> Refusal | None:
        fault = check_key(exchange, self.options) or self._model(exchange)
        fault = fault or check_window(exchange, self.options, "messages")
        if fault is None and self.options.strict:
            fault = _parameters(exchange) or _tools(exchange.body) or _messages(exchange.body["messages"])
        return None if fault is None else self.error(fault)

    def _model(self, exchange: Exchange) -> Fault | None:
        if not isinstance(exchange.body.get("model"), str):
            return bad("you must provide a model parameter")
        if not isinstance(exchange.body.get("messages"), list) or not exchange.body["messages"]:
            return bad("Missing required parameter: 'messages'.", "messages", "missing_required_parameter")
        if self.options.models is None or exchange.model in self.options.models:
            return None
        text = f"The model `{exchange.model}` does not exist or you do not have access to it."
        return bad(text, code="model_not_found", status=404)

    def headers(self) -> dict[str, str]:
        return {"x-request-id": f"req_{self.ledger.hex(32)}"}

    def error(self, fault: Fault) -> Refusal:
        return Refusal(fault.status, {"error": openai_error(fault)})

    def error_event(self, fault: Fault) -> str:
        return event({"error": openai_error(fault)})

    def last_text(self, exchange: Exchange) -> str:
        users = [text_of(m.get("content")) for m in exchange.body["messages"] if m.get("role") == "user"]
        return users[-1] if users else ""

    def draft(self, exchange: Exchange, answer: Answer) -> Draft:
        said = [part.text for part in answer.parts if isinstance(part, Say)]
        refused = [part.text for part in answer.parts if isinstance(part, Refuse)]
        thought = [part.text for part in answer.parts if isinstance(part, Think)]
        calls = [self._call(part) for part in answer.parts if isinstance(part, Call)]
        message: dict[str, Any] = {"role": "assistant", "content": "".join(said) if said else None}
        message |= {"refusal": "".join(refused) if refused else None, "annotations": []}
        if thought:
            message["reasoning_content"] = "".join(thought)
        if calls:
            message["tool_calls"] = calls
        used = count(exchange, answer)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _STOPS[answer.ended]}
        body = {
            "id": f"chatcmpl-{self.ledger.letters(29)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": exchange.model,
            "choices": [choice],
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

    def _call(self, part: Call) -> dict[str, Any]:
        made = part.id or f"call_{self.ledger.letters(24)}"
        return {"id": made, "type": "function", "function": {"name": part.name, "arguments": part.arguments}}

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
    content, refusal = message["content"], message["refusal"]
    yield {"role": "assistant", "content": None if content is None else "", "refusal": None}
    for piece in pieces(message.get("reasoning_content", "")):
        yield {"reasoning_content": piece}
    for piece in pieces(content or ""):
        yield {"content": piece}
    for piece in pieces(refusal or ""):
        yield {"refusal": piece}
    for n, call in enumerate(message.get("tool_calls", [])):
        yield {"tool_calls": [{"index": n, **call, "function": {**call["function"], "arguments": ""}}]}
        for piece in argument_pieces(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": n, "function": {"arguments": piece}}]}


def _parameters(exchange: Exchange) -> Fault | None:
    body, gates = exchange.body, gpt(exchange.model)
    for name in body:
        if name not in accepts.CHAT:
            return bad(f"Unrecognized request argument supplied: {name}")
    if gates.reasons and body.get("max_tokens") is not None:
        return bad(
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
        )
    if body.get("tools") and not gates.chat_tools:
        return bad(
            f"Function tools with reasoning_effort are not supported for {exchange.model} in /v1/chat/completions. "
            "Please use /v1/responses instead.",
            "reasoning_effort",
        )
    return check_sampling(body, gates, body.get("reasoning_effort"))


def _tools(body: dict[str, Any]) -> Fault | None:
    seen: set[str] = set()
    tools = as_objects(body.get("tools"))
    for n, tool in enumerate(tools):
        if tool.get("type") != "function":
            continue
        function, path = as_object(tool.get("function")), f"tools[{n}].function"
        fault = check_name(function.get("name"), f"{path}.name", seen) or check_function(function, f"{path}.parameters")
        if fault is not None:
            return fault
    choice = body.get("tool_choice")
    if choice is not None and not tools:
        return bad("'tool_choice' is only allowed when 'tools' are specified.", "tool_choice")
    if is_object(choice) and choice.get("type") == "function":
        name = as_object(choice.get("function")).get("name")
        if name not in seen:
            return bad(f"Invalid value for 'tool_choice': '{name}' is not one of the tools.", "tool_choice")
    fmt = as_object(body.get("response_format"))
    schema = as_object(fmt.get("json_schema"))
    if fmt.get("type") == "json_schema" and schema.get("strict") is True:
        wrong = openai_strict(schema.get("schema"))
        if wrong is not None:
            return bad(f"Invalid schema for response_format '{schema.get('name')}': {wrong}", "response_format")
    return None


def _messages(messages: list[Any]) -> Fault | None:
    """Roles, contents and pairing (C1, C2)."""
    pending: list[str] = []
    asked: set[str] = set()
    for n, message in enumerate(messages):
        role = message.get("role") if is_object(message) else None
        param = f"messages.[{n}].role"
        if role not in _ROLES:
            names = ", ".join(f"'{name}'" for name in _ROLES)
            return bad(
                f"Invalid value: '{role}'. Supported values are: {names}.", f"messages[{n}].role", "invalid_value"
            )
        if role == "tool":
            made = message.get("tool_call_id")
            if made not in asked:
                text = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                return bad(text, param)
            pending = [other for other in pending if other != made]
        elif pending:
            return _unanswered(pending, param)
        else:
            asked = set()
        if role == "assistant":
            fault = _assistant(n, message)
            if fault is not None:
                return fault
            pending = [call["id"] for call in as_array(message.get("tool_calls"))]
            asked = set(pending)
        elif message.get("content") is None:
            text = "Invalid value for 'content': expected a string, got null."
            return bad(text, f"messages.[{n}].content")
    return _unanswered(pending, f"messages.[{len(messages)}].role") if pending else None


def _unanswered(pending: list[str], param: str) -> Fault:
    return bad(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(pending)}",
        param,
    )


def _assistant(n: int, message: dict[str, Any]) -> Fault | None:
    calls = message.get("tool_calls")
    if calls is not None and not calls:
        text = (
            f"Invalid 'messages[{n}].tool_calls': empty array. Expected an array with minimum length 1, but got an "
            "empty array instead."
        )
        return bad(text, f"messages[{n}].tool_calls", "empty_array")
    for m, call in enumerate(calls or []):
        path = f"messages[{n}].tool_calls[{m}]"
        if not isinstance(call.get("id"), str):
            return bad(f"Missing required parameter: '{path}.id'.", f"{path}.id", "missing_required_parameter")
        if not isinstance(as_object(call.get("function")).get("arguments"), str):
            text = f"Invalid type for '{path}.function.arguments': expected a string, but got an object instead."
            return bad(text, f"{path}.function.arguments", "invalid_type")
    if not calls and message.get("content") is None and message.get("refusal") is None:
        return bad("Invalid value for 'content': expected a string, got null.", f"messages.[{n}].content")
    return None
