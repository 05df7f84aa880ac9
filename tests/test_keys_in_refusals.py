"""What a provider says in an error: without the key, also where our cut leaves half of it; and its odd headers."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest

from pollux_like import APIError, Config, Environment, Input, Output, api_errors, interact, stream

from . import wires

pytestmark = pytest.mark.anyio
KEY = "sk-planted-0123456789abcdef"


def config(content: str, status: int = 200, headers: Any = None) -> Config:
    answer = httpx2.Response(status, content=content.encode(), headers=headers or {"content-type": "application/json"})
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: answer))
    return Config("openai", "gpt-5.2", client=openai.AsyncOpenAI(api_key=KEY, http_client=http), max_attempts=1)


async def watched(given: Config) -> Output:
    async with stream(Environment(), Input("Hi", history=[]), given) as events:
        found = [event.output async for event in events]
    assert found[-1] is not None
    return found[-1]


@pytest.mark.parametrize("before", [0, 200, 280, 290, 299, 300])
@pytest.mark.parametrize("where", ["refusal", "body", "stream"])
async def test_no_half_of_a_key_is_left_by_a_cut(before: int, where: str) -> None:
    error = {"message": "z" * before + KEY, "code": "z" * (before % 80) + KEY, "type": KEY}
    body = json.dumps({"error": error})
    with pytest.raises(APIError) as caught:
        if where == "stream":
            event = wires.sse({"type": "error", "error": error})
            await watched(config(event, headers={"content-type": "text/event-stream"}))
        else:
            await interact(Environment(), Input("Hi"), config(body, 400 if where == "refusal" else 200))
    shown = f"{caught.value!s} {vars(caught.value)} {caught.value.args}"
    assert KEY[: api_errors.MIN_SECRET_CHARS] not in shown
    assert "***" in shown or before == 300


def test_only_an_end_that_a_cut_left_is_taken_for_half_of_a_key() -> None:
    assert api_errors.masked(f"the key {KEY} is bad", KEY) == "the key *** is bad"
    assert api_errors.masked(f"the key {KEY[:9]} is bad", KEY) == f"the key {KEY[:9]} is bad"
    assert api_errors.masked(f"the key {KEY[:9]}…", KEY) == "the key ***…"
    assert api_errors.masked("the key sk-…", KEY) == "the key sk-…"


@pytest.mark.parametrize("date", ["Mon, 99999999999999999999 Jan 2026 00:00:00 GMT",
                                  "Mon, 01 Jan 2026 00:00:00 +99999999999999999999", "soon", ""])  # fmt: skip
def test_a_wait_until_no_date_is_no_wait(date: str) -> None:
    assert api_errors.retry_after({"retry-after": date}) is None


async def test_a_content_type_in_another_case_is_the_same() -> None:
    done = wires.response(wires.spoken("Hello"))
    item = {"type": "response.output_item.done", "output_index": 0, "item": done["output"][0]}
    text = wires.sse(item, {"type": "response.completed", "response": done})
    output = await watched(config(text, headers={"content-type": "Text/Event-Stream; Charset=UTF-8"}))
    assert output.text == "Hello"


@pytest.mark.parametrize(("headers", "found"), [
    ([("request-id", "a"), ("X-Request-ID", "b")], "b"), ([("x-request-id", ""), ("request-id", "a")], "a"),
    ([("X-REQUEST-ID", "b"), ("x-request-id", "c")], "b"), ([(b"x-request-id", b"\xe9")], "é"), ([], None),
])  # fmt: skip
async def test_the_request_id_is_the_same_in_answers_and_refusals(headers: list[Any], found: str | None) -> None:
    given = [("content-type", "application/json"), *headers]
    body = json.dumps(wires.response(wires.spoken("Hello")))
    output = await interact(Environment(), Input("Hi"), config(body, headers=given))
    assert output.metrics.request_id == found
    with pytest.raises(APIError) as caught:
        await interact(Environment(), Input("Hi"), config("{}", 400, given))
    assert caught.value.request_id == found or len(headers) == 2  # of two with one name both are joined there
