"""Odd answers, each of which once reached the caller raw: numbers that are no counts, halves of characters, lists."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from wires import (
    CHAT,
    ENV,
    Fake,
    ask,
    block_events,
    chat_sse,
    completion,
    message_sse,
    reloaded,
    sse,
    texts,
    watched,
)

from pollux_like import APIError, Config, ConfigurationError, Environment, Event, Input, Usage, interact
from pollux_like.simulator import Simulator

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("told", "count"),
    [(12, 12), (12.0, 12), (12.5, 0), (True, 0), ("12", 0), (None, 0), (-3, 0), (float("nan"), 0), (float("inf"), 0), (10**30, 2**53), ([1], 0)],
)  # fmt: skip
async def test_a_token_count_is_a_count(told: Any, count: int) -> None:
    assert Usage.of(input=told, output=told, cached=told).input_tokens == count
    fake = Fake(
        httpx2.Response(200, content=json.dumps({**completion({"content": "x"}), "usage": {"prompt_tokens": told}}))
    )
    output = await ask(fake.openai(), "q", **CHAT)
    assert output.usage.input_tokens == count
    json.dumps(output.to_jsonable(), allow_nan=False)


@pytest.mark.parametrize(
    ("code", "status"),
    [(429, 429), ("502", 502), (0, 500), (True, 500), (-5, 500), (200, 500), (10**30, 500), ("x", 500), (None, 500)],
)
async def test_an_error_inside_a_success_has_a_status(code: Any, status: int) -> None:
    fake = Fake({"error": {"code": code, "message": "no"}})
    with pytest.raises(APIError) as caught:
        await ask(fake.openai(max_attempts=1), "q", **CHAT)
    assert caught.value.status == status


@pytest.mark.parametrize("place", ["code", "type", "message"])
async def test_a_key_in_an_error_is_masked_wherever_it_stands(place: str) -> None:
    key = "sk-test-1234567"
    fake = Fake(httpx2.Response(400, json={"error": {"message": "no", "code": "c", "type": "t", place: f"bad {key}"}}))
    config = fake.openai(max_attempts=1)
    config.client.api_key = key
    with pytest.raises(APIError) as caught:
        await ask(config, "q")
    assert key not in f"{caught.value}{caught.value.code}{caught.value.type}{caught.value!r}"
    assert "***" in f"{caught.value}{caught.value.code}{caught.value.type}"


LIST = [{"type": "text", "text": "llo"}]


@pytest.mark.parametrize(
    ("deltas", "text"),
    [
        ([{"content": "He"}, {"content": LIST}], "Hello"),
        ([{"content": LIST}, {"content": "!"}], "llo!"),
        ([{"content": LIST}, {"content": LIST}], "llollo"),
        ([{"content": ""}, {"content": LIST}], "llo"),
        ([{"content": "He"}, {"content": [{"type": "text", "text": None}, 5]}], "He"),
    ],
)
async def test_content_in_parts_is_text_too(deltas: Any, text: str) -> None:
    fake = Fake(chat_sse(*deltas), completion({"content": "ok"}))
    output, events = await watched(fake.openai(), "q", **CHAT)
    assert output.text == text
    assert "".join(event.text for event in events if event.type == "text_delta") == text
    await ask(fake.openai(), Input("more", continuation=reloaded(output.continuation)), **CHAT)
    content = fake.said[1][-2]["content"]
    said = (
        content
        if isinstance(content, str)
        else "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    )
    assert said == text


@pytest.mark.parametrize("said", [5, {"a": 1}, [5], [{"type": "text", "text": None}], True])
@pytest.mark.parametrize("member", ["content", "refusal", "reasoning_content"])
async def test_what_is_no_text_is_not_shown_as_one(member: str, said: Any) -> None:
    fake = Fake(chat_sse({member: said}), completion({"content": None, member: said}))
    streamed, events = await watched(fake.openai(), "q", **CHAT)
    whole = await ask(fake.openai(), "q", **CHAT)
    for output in (streamed, whole):
        assert (output.text, output.reasoning, output.refusal) == ("", "", None)
    assert all(isinstance(event.text, str) for event in events)


async def halves(wire: str) -> tuple[str, list[Event]]:
    """A snowman's cousin beyond the first plane, cut in two, and a half at the very end."""
    pieces = ["a\ud83d", "\ude00b", "c\ud83d"]
    if wire == "anthropic":
        made = message_sse(
            *block_events(0, {"type": "text", "text": ""}, *({"type": "text_delta", "text": p} for p in pieces))
        )
    elif wire == "chat":
        made = chat_sse(*({"content": piece} for piece in pieces))
    else:
        item = {"type": "message", "id": "m", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "".join(pieces), "annotations": []}]}  # fmt: skip
        made = sse(
            *({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": p} for p in pieces),
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {
                "type": "response.completed",
                "response": {
                    "id": "r",
                    "object": "response",
                    "status": "completed",
                    "model": "m",
                    "output": [item],
                    "usage": {},
                },
            },
        )
    fake = Fake(made)
    output, events = await watched(fake.at(wire), "q", **(CHAT if wire == "chat" else {}))
    return output.text, [event for event in events if event.type == "text_delta"]


@pytest.mark.parametrize("wire", ["openai", "chat", "anthropic"])
async def test_a_piece_of_text_has_whole_characters_only(wire: str) -> None:
    text, events = await halves(wire)
    assert text == "a\U0001f600bc\ufffd"
    for event in events:
        event.text.encode()
    assert "".join(event.text for event in events) == text


@pytest.mark.parametrize(
    "options",
    [
        {"tools": "x"}, {"tools": [5]}, {"tools": 5}, {"tools": [{"functionDeclarations": [5]}]},
        {"tools": [{"functionDeclarations": "f"}]}, {"generationConfig": "x"}, {"generationConfig": {"thinkingConfig": "x"}},
        {"toolConfig": {"functionCallingConfig": "x"}}, {"toolConfig": 5},
    ],
)  # fmt: skip
async def test_odd_options_of_gemini_are_the_callers_mistake(options: dict[str, Any]) -> None:
    config = Config("gemini", "gemini-3-flash-preview", api_key="k", base_url="http://127.0.0.1:9", max_attempts=1)
    with pytest.raises(ConfigurationError):
        await interact(ENV, Input("q"), config, provider_options={"gemini": options})


@pytest.mark.parametrize(
    "options",
    [{"generationConfig": {"thinkingConfig": None}}, {"toolConfig": {"functionCallingConfig": None}}, {"tools": None}],
)
async def test_null_options_of_gemini_are_none(options: dict[str, Any]) -> None:
    with Simulator(strict=False) as sim:
        config = Config("gemini", "gemini-3-flash-preview", api_key="k", base_url=sim.base_url("gemini"))
        assert (await interact(Environment(), Input("q"), config, provider_options={"gemini": options})).text


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/deepseek/chat/completions",
        "/openrouter/api/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
    ],
)
@pytest.mark.parametrize(
    "more", ['"max_tokens": 1e400', '"model": "m\\ud800"', '"messages": [{"role": "user", "content": [5]}]']
)
async def test_the_simulator_answers_400_and_lives(path: str, more: str) -> None:
    fields = '"model": "a/b", "messages": [{"role": "user", "content": "x"}], "input": "x", "tools": []'
    with Simulator(models=["other"] if "model" in more else None) as sim:
        root = sim.base_url("anthropic").rstrip("/")
        headers = {
            "authorization": "Bearer k",
            "x-api-key": "k",
            "anthropic-version": "2023-06-01",
            "content-type": "application/json",
        }
        async with httpx2.AsyncClient() as client:
            answered = await client.post(root + path, content=f"{{{fields}, {more}}}".encode(), headers=headers)
    assert 400 <= answered.status_code < 500


async def test_a_plain_answer_still_is_one() -> None:
    assert (await ask(Fake(texts("chat", "fine")).openai(), "q", **CHAT)).text == "fine"
