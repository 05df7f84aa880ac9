"""Spans: one OpenTelemetry span a turn, where opentelemetry-api is installed. Never content, unless it is asked for.

Names follow version 0.1.0 of the GenAI conventions (open-telemetry/semantic-conventions-genai, docs/gen-ai/
client-inference.md). A span begins with the sending and covers every attempt; its parent is the span that is current
then. It is never made current itself: an async generator cannot do that without touching its caller's context.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pollux_like.continuation import conversation_id
from pollux_like.errors import APIError
from pollux_like.messages import Message
from pollux_like.output import Output
from pollux_like.prepare import Prepared
from pollux_like.send import Sending

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

CONVENTIONS = "0.1.0"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Environment variable: "true" puts instructions, the messages that the turn added, and the answer into its span."""
_PROVIDERS = {"gemini": "gcp.gemini"}  # the conventions' own names, where they differ
_SETTINGS = ("max_tokens", "temperature", "top_p", "seed")


class Recorder:
    """The span of one turn; without a tracer it records nothing."""

    __slots__ = ("_ended", "_span")

    def __init__(self, span: Span | None) -> None:
        self._span = span
        self._ended = False

    def done(self, output: Output, sending: Sending, prepared: Prepared) -> None:
        """The turn is complete."""
        self._ended = True
        span = self._span
        if span is None:
            return
        usage = output.usage
        values: dict[str, Any] = {
            "gen_ai.response.model": output.metrics.model,
            "gen_ai.response.finish_reasons": [output.finish.raw or output.finish.status],
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
            "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens or None,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens or None,
            "http.request.resend_count": sending.attempts - 1 or None,
            "gen_ai.conversation.id": None if output.continuation is None else conversation_id(output.continuation),
        }
        if _captures():
            said = [message for message in output.messages if message.role == "assistant"][-1:]
            values["gen_ai.input.messages"] = _messages(prepared.request.added)
            values["gen_ai.output.messages"] = _messages(said, finish=output.finish.status)
            if prepared.request.instructions is not None:
                parts = [{"type": "text", "content": prepared.request.instructions}]
                values["gen_ai.system_instructions"] = json.dumps(parts, ensure_ascii=False)
        _set(span, values)

    def failed(self, error: BaseException) -> None:
        """The turn ended before it was complete: by an error, or because its caller left."""
        if self._span is None or self._ended:
            return
        from opentelemetry.trace import Status, StatusCode

        kind = "closed_early" if isinstance(error, GeneratorExit) else type(error).__name__
        if isinstance(error, APIError) and error.status is not None:
            kind = str(error.status)
        self._span.set_attribute("error.type", kind)
        self._span.set_status(Status(StatusCode.ERROR, type(error).__name__))  # the message may quote a provider's text


@contextmanager
def recorded(prepared: Prepared) -> Generator[Recorder]:
    """The span of a turn, from here to the end of the block."""
    span = _begin(prepared)
    recorder = Recorder(span)
    try:
        yield recorder
    except BaseException as error:
        recorder.failed(error)
        raise
    finally:
        if span is not None:
            span.end()


def _begin(prepared: Prepared) -> Span | None:
    tracer = _tracer()
    if tracer is None:
        return None
    from opentelemetry.trace import SpanKind

    request, stamp = prepared.request, prepared.stamp
    span = tracer.start_span(f"chat {request.model}", kind=SpanKind.CLIENT)
    if not span.is_recording():
        return None
    where = urlsplit(stamp.endpoint)
    settings = request.settings
    effort = settings.reasoning_effort
    values: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(stamp.provider, stamp.provider),
        "gen_ai.request.model": request.model,
        "gen_ai.request.stream": request.streaming or None,
        "gen_ai.request.reasoning.level": effort,
        "gen_ai.request.stop_sequences": list(settings.stop) or None,
        "gen_ai.output.type": "json" if settings.output is not None else "text",
        "gen_ai.conversation.id": None if prepared.before is None else conversation_id(prepared.before),
        "server.address": where.hostname,
        "server.port": (where.port or {"https": 443, "http": 80}.get(where.scheme)) if where.hostname else None,
        **{f"gen_ai.request.{name}": getattr(settings, name) for name in _SETTINGS},
    }
    _set(span, values)
    return span


def _set(span: Span, values: dict[str, Any]) -> None:
    for name, value in values.items():
        if value is not None:
            span.set_attribute(name, value)


@cache
def _tracer() -> Tracer | None:
    try:
        from opentelemetry import trace
    except ModuleNotFoundError:
        return None
    from importlib.metadata import version

    return trace.get_tracer("pollux_like", version("pollux-like"))


def _captures() -> bool:
    return os.environ.get(CAPTURE, "").lower() == "true"


def _messages(messages: Sequence[Message], finish: str | None = None) -> str:
    """Portable messages in the shape of the conventions' message schemas, as JSON text."""
    shaped: list[dict[str, Any]] = []
    for message in messages:
        parts: list[dict[str, Any]] = []
        if message.role == "tool":
            parts.append({"type": "tool_call_response", "id": message.tool_call_id, "result": message.content})
        elif message.content:
            parts.append({"type": "text", "content": message.content})
        parts.extend(
            {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments or call.arguments_text}
            for call in message.tool_calls
        )
        shaped.append({"role": message.role, "parts": parts, **({"finish_reason": finish} if finish else {})})
    return json.dumps(shaped, ensure_ascii=False)
