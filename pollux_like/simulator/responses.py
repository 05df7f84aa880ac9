"""OpenAI Responses: replies of `/v1/responses`, whole and streamed, and the error envelope.

Shapes follow the API reference (developers.openai.com/api/reference/responses). Bodies are indented, as the API writes
them. What is refused stands in `responses_rules.py` and `responses_items.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from pollux_like.canonical import dumps
from pollux_like.simulator import accepts
from pollux_like.simulator.ledger import IssuedItem, Ledger, Stored, digest, family
from pollux_like.simulator.models import gpt
from pollux_like.simulator.options import Options
from pollux_like.simulator.responses_items import BLOB, bad, prefix_before
from pollux_like.simulator.responses_rules import ResponsesRules
from pollux_like.simulator.shapes import as_object, as_objects
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
from pollux_like.testing.script import Answer, Call, Compaction, Part, Redacted, Refuse, Say, ServerTool, Think

ERRORS = {
    400: ("invalid_request_error", None, "Invalid request."),
    401: (
        "invalid_request_error",
        "invalid_api_key",
        "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.",
    ),
    403: ("invalid_request_error", None, "You are not allowed to do this."),
    404: ("invalid_request_error", None, "The requested resource was not found."),
    408: ("server_error", None, "The request timed out."),
    409: ("invalid_request_error", None, "The request conflicts with the current state of the resource."),
    413: ("invalid_request_error", None, "The request is too large."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests. Please try again later."),
    500: ("server_error", None, "The server had an error while processing your request. Sorry about that!"),
    503: ("service_unavailable_error", "server_is_overloaded", "The server is currently overloaded."),
}
_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this error, "
    "read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors."
)


def openai_error(fault: Fault) -> dict[str, Any]:
    """The error object of OpenAI's APIs."""
    kind, code, text = ERRORS.get(fault.status, ERRORS[500])
    if fault.code == "insufficient_quota":
        kind, text = "insufficient_quota", _QUOTA
    return {
        "message": fault.message or text,
        "type": fault.type or kind,
        "param": fault.param,
        "code": fault.code if fault.code is not None or fault.message else code,
    }


class Responses:
    """The dialect; see `wire.Dialect` for the meaning of each method."""

    name: str = "openai"
    base: str = "/v1"
    variables: tuple[str, str] | None = ("OPENAI_BASE_URL", "OPENAI_API_KEY")

    def __init__(self, ledger: Ledger, options: Options) -> None:
        self.ledger = ledger
        self.options = options
        self.rules = ResponsesRules(ledger, options)

    def route(self, path: str) -> Route | None:
        return Route() if path == "/v1/responses" else None

    def look_up(self, exchange: Exchange) -> Looked | None:
        if (exchange.method, exchange.path) == ("POST", "/v1/responses/input_tokens"):
            return self._counted(exchange)
        theirs = {"anthropic-version", "x-goog-api-key"} & exchange.headers.keys()  # the path of their lists as well
        if (exchange.method, exchange.path) == ("GET", "/v1/models") and not theirs:
            names = self.options.listed("gpt-5.5", "gpt-6.2-sol", "gpt-4o")
            data = [{"id": n, "object": "model", "created": 1767225600, "owned_by": "simulator"} for n in names]
            return 200, {"object": "list", "data": data}
        head, _, made = exchange.path.rpartition("/")
        if head != "/v1/responses" or made not in self.ledger.responses:
            return None
        if exchange.method == "DELETE":
            del self.ledger.responses[made]
            return 200, {"id": made, "object": "response", "deleted": True}
        return 200, self.ledger.responses[made].body

    def _counted(self, exchange: Exchange) -> Looked:
        """A count by the rules of the conversation itself; it takes fewer parameters."""
        extra = next((n for n in exchange.body if n not in accepts.RESPONSES_COUNT), None)
        fault = (
            bad(f"Unknown parameter: '{extra}'.", extra, "unknown_parameter") if extra and self.options.strict else None
        )
        fault = fault or self.rules.check(exchange)
        if fault is not None:
            refusal = self.error(fault)
            return refusal.status, refusal.body
        return 200, {"object": "response.input_tokens", "input_tokens": tokens(dumps(exchange.context))}

    def check(self, exchange: Exchange) -> Refusal | None:
        fault = self.rules.check(exchange)
        return None if fault is None else self.error(fault)

    def headers(self) -> dict[str, str]:
        return {"x-request-id": f"req_{self.ledger.hex(32)}", "openai-version": "2020-10-01"}

    def error(self, fault: Fault) -> Refusal:
        return Refusal(fault.status, {"error": openai_error(fault)}, fault.headers)

    def error_event(self, fault: Fault) -> str:
        return event({"type": "error", "sequence_number": 0, "error": openai_error(fault)}, "error")

    def last_text(self, exchange: Exchange) -> str:
        given = exchange.body.get("input")
        if isinstance(given, str):
            return given
        users = [text_of(item.get("content")) for item in as_objects(given) if item.get("role") == "user"]
        return users[-1] if users else ""

    def _id(self, prefix: str) -> str:
        return f"{prefix}_{self.ledger.hex(50)}"

    def draft(self, exchange: Exchange, answer: Answer) -> Draft:
        body, now = exchange.body, int(time.time())
        store = body.get("store") is not False
        output: list[dict[str, Any]] = []
        for part in answer.parts:
            output.append(self._item(exchange, part, output))
        ended = answer.ended
        cut = ended in ("length", "content_filter")
        if cut and output and "status" in output[-1]:
            output[-1]["status"] = "incomplete"
        reason = "max_output_tokens" if ended == "length" else "content_filter"
        used = count(exchange, answer)
        made = {
            "id": self._id("resp"),
            "object": "response",
            "created_at": now,
            "status": "incomplete" if cut else "completed",
            "background": False,
            "completed_at": None if cut else now,
            "error": None,
            "frequency_penalty": 0.0,
            "incomplete_details": {"reason": reason} if cut else None,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "max_tool_calls": body.get("max_tool_calls"),
            "model": exchange.model,
            "output": output,
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "presence_penalty": 0.0,
            "previous_response_id": body.get("previous_response_id"),
            "prompt_cache_key": body.get("prompt_cache_key"),
            "reasoning": {"effort": None, "summary": None, **as_object(body.get("reasoning"))},
            "safety_identifier": body.get("safety_identifier"),
            "service_tier": "default",
            "store": store,
            "temperature": body.get("temperature", 1.0),
            "text": {"format": {"type": "text"}, "verbosity": "medium", **as_object(body.get("text"))},
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": as_objects(body.get("tools")),
            "top_logprobs": 0,
            "top_p": body.get("top_p", 1.0),
            "truncation": body.get("truncation", "disabled"),
            "usage": {
                "input_tokens": used.input,
                "input_tokens_details": {"cached_tokens": used.cached, "cache_write_tokens": used.written},
                "output_tokens": used.output,
                "output_tokens_details": {"reasoning_tokens": used.reasoning},
                "total_tokens": used.input + used.output,
            },
            "user": body.get("user"),
            "metadata": as_object(body.get("metadata")),
        }
        if exchange.dropped:
            made["input_transformations"] = exchange.dropped
        remember(self.ledger, made, exchange.context, stored=store)
        return Draft(made)

    def _item(self, exchange: Exchange, part: Part, before: list[dict[str, Any]]) -> dict[str, Any]:
        if isinstance(part, Say):
            shown: dict[str, Any] = {"type": "output_text", "annotations": [], "logprobs": [], "text": part.text}
            return self._message(shown, {"phase": part.phase} if part.phase else {})
        if isinstance(part, Refuse):
            return self._message({"type": "refusal", "refusal": part.text}, {})
        if isinstance(part, (Think, Redacted)):
            text = part.text if isinstance(part, Think) else ""
            made = self._id("rs")
            item: dict[str, Any] = {"id": made, "type": "reasoning"}
            if gpt(exchange.model).empty_content:
                item["content"] = []
            claims = {
                "k": "reasoning",
                "i": made,
                "m": family(exchange.model),
                "x": prefix_before(exchange, exchange.context, before),
            }
            item["encrypted_content"] = self._blob(claims, 400 + len(text))
            item["summary"] = [{"type": "summary_text", "text": text}] if text else []
            return item
        if isinstance(part, Call):
            return self._call(exchange, part)
        if isinstance(part, ServerTool):
            made, done = part.id or self._id("ws"), part.result is not None
            status = "completed" if done else "in_progress"
            return {"id": made, "type": f"{part.name}_call", "status": status, "action": parsed(part.input)}
        return self._compaction(part)

    def _blob(self, claims: dict[str, Any], pad: int) -> str:
        return self.ledger.seal_text(claims, prefix=BLOB, urlsafe=True, pad=pad)

    def _compaction(self, part: Compaction) -> dict[str, Any]:
        made = self._id("cmp")
        claims = {"k": "compaction", "i": made, "c": digest(part.text)}
        return {"id": made, "type": "compaction", "encrypted_content": self._blob(claims, len(part.text))}

    def _message(self, content: dict[str, Any], phase: dict[str, Any]) -> dict[str, Any]:
        head = {"id": self._id("msg"), "type": "message", "status": "completed", "content": [content]}
        return {**head, **phase, "role": "assistant"}

    def _call(self, exchange: Exchange, part: Call) -> dict[str, Any]:
        tools = as_objects(exchange.body.get("tools"))
        custom = any(tool.get("type") == "custom" and tool.get("name") == part.name for tool in tools)
        kind, field, prefix = ("custom_tool_call", "input", "ctc") if custom else ("function_call", "arguments", "fc")
        return {
            "id": self._id(prefix),
            "type": kind,
            "status": "completed",
            field: part.arguments,
            "call_id": part.id or f"call_{self.ledger.letters(24)}",
            "name": part.name,
        }

    def render(self, draft: Draft) -> str:
        return json.dumps(draft.body, ensure_ascii=False, indent=2)

    def stream(self, draft: Draft) -> list[str]:
        events: list[str] = []
        for number, data in enumerate(self._events(draft.body)):
            kind = data.pop("type")
            events.append(event({"type": kind, "sequence_number": number, **data}, kind))
        return events

    def _events(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        early = {key: value for key, value in body.items() if key != "input_transformations"}
        early |= {
            "status": "in_progress",
            "completed_at": None,
            "incomplete_details": None,
            "output": [],
            "usage": None,
        }
        yield {"type": "response.created", "response": early}
        yield {"type": "response.in_progress", "response": early}
        for index, item in enumerate(body["output"]):
            yield from self._item_events(index, item)
        yield {"type": f"response.{body['status']}", "response": body}

    def _item_events(self, index: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        kind, place = item["type"], {"item_id": item["id"], "output_index": index}
        opened = dict(item)
        if "status" in item:
            opened["status"] = "in_progress"
        if kind == "message":
            opened["content"] = []
        elif kind == "reasoning":
            opened["summary"] = []
        field = "arguments" if kind == "function_call" else "input"
        if field in opened:
            opened[field] = ""
        if "encrypted_content" in item:
            opened["encrypted_content"] = self._blob({"k": "partial"}, 80)
        yield {"type": "response.output_item.added", "item": opened, "output_index": index}
        if kind == "message":
            yield from self._message_events(place, item["content"][0])
        elif kind == "reasoning":
            for n, part in enumerate(item["summary"]):
                at = {**place, "summary_index": n}
                yield {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}}
                for piece in pieces(part["text"]):
                    yield {"type": "response.reasoning_summary_text.delta", **at, "delta": piece}
                yield {"type": "response.reasoning_summary_text.done", **at, "text": part["text"]}
                yield {"type": "response.reasoning_summary_part.done", **at, "part": part}
        elif kind in ("function_call", "custom_tool_call"):
            name = "function_call_arguments" if kind == "function_call" else "custom_tool_call_input"
            for piece in argument_pieces(item[field]):
                yield {"type": f"response.{name}.delta", "delta": piece, **place, "obfuscation": self.ledger.letters(8)}
            yield {"type": f"response.{name}.done", field: item[field], **place}
        yield {"type": "response.output_item.done", "item": self._resealed(item), "output_index": index}

    def _message_events(self, place: dict[str, Any], part: dict[str, Any]) -> Iterator[dict[str, Any]]:
        field, name = ("text", "output_text") if part["type"] == "output_text" else ("refusal", "refusal")
        extra: dict[str, Any] = {"logprobs": []} if field == "text" else {}
        at = {"content_index": 0, **place}
        yield {"type": "response.content_part.added", **at, "part": {**part, field: ""}}
        for piece in pieces(part[field]):
            yield {"type": f"response.{name}.delta", **at, "delta": piece, **extra}
        yield {"type": f"response.{name}.done", **at, **extra, field: part[field]}
        yield {"type": "response.content_part.done", **at, "part": part}

    def _resealed(self, item: dict[str, Any]) -> dict[str, Any]:
        """The same item with another blob of the same meaning and length, as `.done` events carry it."""
        text = item.get("encrypted_content")
        claims = self.ledger.open_text(text, prefix=BLOB, urlsafe=True)
        if claims is None or not isinstance(text, str):
            return item
        pad = self.ledger.padding(text, claims, prefix=BLOB)
        return {**item, "encrypted_content": self._blob(claims, pad)}


def remember(ledger: Ledger, body: dict[str, Any], context: list[dict[str, Any]], *, stored: bool) -> None:
    """Note a response's items as issued, and keep it for chaining where it is stored."""
    output: list[dict[str, Any]] = body["output"]
    reasoning: str | None = None
    for n, item in enumerate(output):
        follower = output[n + 1] if n + 1 < len(output) else None
        ledger.items[item["id"]] = IssuedItem(item, stored, follower, reasoning)
        if item["type"] == "reasoning":
            reasoning = item["id"]
    if stored:
        ledger.responses[body["id"]] = Stored(context, body, body["model"])
