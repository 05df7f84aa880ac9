"""Spans: one a turn, by the GenAI conventions 0.1.0; no content, no key and no opaque state unless content is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from wires import ENV, Fake, ask, calls, refused, texts, watched

from pollux_like import APIError, Input, ToolResult, interact, spans, stream

pytestmark = pytest.mark.anyio


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(spans, "_tracer", lambda: provider.get_tracer("test"))
    yield exporter
    provider.shutdown()


def only(seen: InMemorySpanExporter) -> ReadableSpan:
    (span,) = seen.get_finished_spans()
    return span


def values(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_a_turn_is_one_span(seen: InMemorySpanExporter) -> None:
    """Names as in open-telemetry/semantic-conventions-genai v0.1.0, docs/gen-ai/client-inference.md."""
    fake = Fake(refused(500), texts("anthropic", "ok"))
    output = await ask(fake.anthropic(), "q", max_tokens=50, stop=["END"])
    span = only(seen)
    assert (span.name, span.kind) == ("chat claude-opus-4-6", trace.SpanKind.CLIENT)
    assert output.continuation is not None
    assert values(span) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-opus-4-6",
        "gen_ai.request.max_tokens": 50,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.output.type": "text",
        "gen_ai.response.model": "claude-opus-4-6",
        "gen_ai.response.finish_reasons": ("end_turn",),
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.conversation.id": spans.conversation_id(output.continuation),
        "http.request.resend_count": 1,
        "server.address": "api.anthropic.com",
        "server.port": 443,
    }


async def test_a_conversation_keeps_its_id_in_every_turn_and_branch(seen: InMemorySpanExporter) -> None:
    fake = Fake(*(texts("openai", "ok") for _ in range(4)))
    first = await ask(fake.openai(), "q")
    for _ in range(2):
        await ask(fake.openai(), Input("more", continuation=first.continuation))
    await ask(fake.openai(), "other")
    ids = [values(span)["gen_ai.conversation.id"] for span in seen.get_finished_spans()]
    assert ids[0] == ids[1] == ids[2] != ids[3]


async def test_an_error_says_its_kind_and_not_its_words(seen: InMemorySpanExporter) -> None:
    fake = Fake(refused(400, text="no: CODEWORD"))
    with pytest.raises(APIError):
        await ask(fake.openai(), "q")
    span = only(seen)
    assert values(span)["error.type"] == "400"
    assert span.status.status_code is trace.StatusCode.ERROR
    assert "CODEWORD" not in span.to_json()


async def test_a_stream_that_is_left_ends_its_span(seen: InMemorySpanExporter) -> None:
    fake = Fake(texts("openai", "ok"))
    async with stream(ENV, Input("q"), fake.openai()) as events:
        async for _ in events:
            break
    assert values(only(seen))["error.type"] == "closed_early"


async def test_leaving_after_the_end_is_no_error(seen: InMemorySpanExporter) -> None:
    fake = Fake(texts("openai", "ok"))
    async with stream(ENV, Input("q"), fake.openai()) as events:
        async for event in events:
            if event.type == "done":
                break
    assert "error.type" not in values(only(seen))


async def test_a_stream_that_is_never_watched_has_no_span(seen: InMemorySpanExporter) -> None:
    stream(ENV, Input("q"), Fake().openai())
    assert seen.get_finished_spans() == ()


async def test_the_parent_is_the_current_span_and_stays_current(seen: InMemorySpanExporter) -> None:
    provider = TracerProvider()
    with provider.get_tracer("app").start_as_current_span("work") as work:
        await watched(Fake(texts("openai", "ok")).openai(), "q")
        assert trace.get_current_span() is work
    parent = only(seen).parent
    assert parent is not None
    assert parent.span_id == work.get_span_context().span_id


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
async def test_no_content_reaches_a_span(
    wire: str, seen: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(spans.CAPTURE, raising=False)
    fake = Fake(calls(wire, "call_CODEWORD", arguments='{"a": "CODEWORD"}'), texts(wire, "CODEWORD"))
    first = await ask(fake.at(wire), "CODEWORD")
    result = ToolResult(first.tool_calls[0].id, "CODEWORD")
    await ask(fake.at(wire), Input(continuation=first.continuation, tool_results=[result]))
    told = "".join(span.to_json() for span in seen.get_finished_spans())
    assert "CODEWORD" not in told
    assert "sk-test" not in told


async def test_content_is_portable_where_it_is_asked_for(
    seen: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wires import reasoning, response, spoken

    monkeypatch.setenv(spans.CAPTURE, "true")
    fake = Fake(response(reasoning(sealed="SEALED"), spoken("hello")))
    await ask(fake.openai(), "hi")
    told = values(only(seen))
    assert json.loads(told["gen_ai.input.messages"]) == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    assert json.loads(told["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "hello"}], "finish_reason": "stop"}
    ]
    assert json.loads(told["gen_ai.system_instructions"]) == [{"type": "text", "content": "Be brief."}]
    assert "SEALED" not in only(seen).to_json()


async def test_without_opentelemetry_a_turn_is_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_tracer", lambda: None)
    assert (await interact(ENV, Input("q"), Fake(texts("openai", "ok")).openai())).text == "ok"
