"""Refusals by status, inside an answer of status 200, in the middle of a stream, and of the provider behind."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from wires import ask, chat_sse, chunk, completion, reloaded, sse, watched

from pollux_like import (
    APIError,
    AuthenticationError,
    ContextOverflowError,
    Input,
    RateLimitError,
    StreamInterruptedError,
)
from pollux_like.errors import ProviderTimeoutError

pytestmark = pytest.mark.anyio

CODES = [
    (400, APIError, False), (401, AuthenticationError, False), (402, APIError, False), (403, AuthenticationError, False),
    (408, ProviderTimeoutError, True), (429, RateLimitError, True), (502, APIError, True), (503, APIError, True),
]  # fmt: skip


def envelope(code: int, message: str = "no", **metadata: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "metadata": metadata}, "user_id": "user_1"}


@pytest.mark.parametrize(("code", "kind", "again"), CODES)
@pytest.mark.parametrize("place", ["status", "body", "stream"])
async def test_a_number_is_a_status(router: Any, place: str, code: int, kind: type[APIError], again: bool) -> None:
    given = {
        "status": httpx2.Response(code, json=envelope(code)),
        "body": envelope(code),
        "stream": sse({**chunk({"content": ""}), **envelope(code)}, "[DONE]"),
    }[place]
    server = router(given)
    with pytest.raises(kind) as caught:
        await (watched if place == "stream" else ask)(server.config(max_attempts=1), "Hi")
    error = caught.value
    assert (type(error), error.status, error.retryable, error.provider) == (kind, code, again, "openrouter")
    assert (error.code, error.type) == (None, None)


async def test_an_error_body_is_tried_again_where_that_may_help(router: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda *_: 0.0)
    server = router(envelope(502), completion({"content": "Hi."}))
    assert (await ask(server.config(max_attempts=2), "Hi")).metrics.attempts == 2
    assert server.raw[0] == server.raw[1]


@pytest.mark.parametrize("error", [None, {"code": 429, "message": "slow"}])
async def test_a_finish_reason_says_that_the_answer_failed(router: Any, error: Any) -> None:
    end = {"index": 0, "delta": {"content": ""}, "finish_reason": "error", **({"error": error} if error else {})}
    streamed = sse(chunk({"content": "Half"}), {"id": "gen-1", "choices": [end]}, "[DONE]")
    whole = completion({"content": "Half"}, "error")
    whole["choices"][0].update({"error": error} if error else {})
    for given, road in ((streamed, watched), (whole, ask)):
        server = router(given)
        with pytest.raises(RateLimitError if error else APIError) as caught:
            await road(server.config(max_attempts=1), "Hi")
        assert (caught.value.status, caught.value.retryable) == (429 if error else 500, True)


async def test_a_failure_in_the_middle_leaves_the_continuation_good(router: Any) -> None:
    broken = sse(
        chunk({"content": "Ha", "reasoning": "r"}, "length"), {**chunk({}), **envelope(400, "Token limit")}, "[DONE]"
    )
    server = router(completion({"content": "Hi."}), broken, completion({"content": "Yes."}))
    first = await ask(server.config(), "Hi")
    given = Input("And?", continuation=reloaded(first.continuation))
    with pytest.raises(APIError, match="Token limit"):
        await watched(server.config(), given)
    assert (await ask(server.config(), given)).text == "Yes."
    assert server.said[1] == server.said[2]


async def test_a_stream_without_its_end_is_no_answer(router: Any) -> None:
    server = router(sse(chunk({"content": "Hi."}), chunk({}, "stop")))
    with pytest.raises(StreamInterruptedError) as caught:
        await watched(server.config(max_attempts=1), "Hi")
    assert caught.value.partial_text == "Hi."


RAW = {
    "text": ("a/m is rate-limited upstream.", "a/m is rate-limited upstream."),
    "envelope": (
        json.dumps({"type": "error", "error": {"type": "x", "message": "messages.1: bad"}}),
        "messages.1: bad",
    ),
    "in a list": (json.dumps([{"error": {"code": 400, "message": "bad part"}}]), "bad part"),
    "bare": (json.dumps({"message": "bad role", "prompt": "SECRET"}), "bad role"),
    "object": ({"error": {"message": "bad"}, "prompt": "SECRET"}, "bad"),
    "no message": (json.dumps({"prompt": "SECRET"}), "Provider returned error"),
    "number": ("7", "Provider returned error"),
    "none": (None, "Provider returned error"),
}


@pytest.mark.parametrize(("raw", "said"), RAW.values(), ids=RAW.keys())
@pytest.mark.parametrize("place", ["status", "body", "stream"])
async def test_what_the_provider_behind_said(router: Any, place: str, raw: Any, said: str) -> None:
    body = envelope(400, "Provider returned error", raw=raw, provider_name="A")
    given = {"status": httpx2.Response(400, json=body), "body": body, "stream": sse({**chunk({}), **body})}[place]
    server = router(given)
    with pytest.raises(APIError) as caught:
        await (watched if place == "stream" else ask)(server.config(), "Hi")
    assert caught.value.message == f"openrouter answered 400: {said}".rstrip(".")
    assert "SECRET" not in repr(caught.value)


async def test_of_the_rest_nothing_is_told(router: Any) -> None:
    long = "x" * 290 + " sk-or-test " + "SECRET" * 99
    moderated = envelope(403, "flagged", flagged_input="SECRET", reasons=["SECRET"], raw="SECRET")
    for body in (envelope(400, "Provider returned error", raw=long), moderated):
        for given in (body, httpx2.Response(body["error"]["code"], json=body)):
            server = router(given)
            with pytest.raises(APIError) as caught:
                await ask(server.config(), "Hi")
            assert len(caught.value.message) < 340
            assert "SECRET" not in str(caught.value)
            assert "sk-or-test" not in str(caught.value)


async def test_too_long_is_known_through_the_router(router: Any) -> None:
    raw = json.dumps({"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}})
    server = router(httpx2.Response(400, json=envelope(400, "Provider returned error", raw=raw)))
    with pytest.raises(ContextOverflowError):
        await ask(server.config(), "Hi")


async def test_a_wait_that_is_asked_for(router: Any) -> None:
    server = router(httpx2.Response(429, json=envelope(429), headers={"retry-after": "90"}))
    with pytest.raises(RateLimitError) as caught:
        await ask(server.config(max_attempts=3), "Hi")
    assert (caught.value.retry_after_s, len(server.raw)) == (90.0, 1)


@pytest.mark.parametrize(
    ("reason", "native", "expected"),
    [
        ("stop", "end_turn", ("stop", "stop")),
        ("length", "max_tokens", ("length", "length")),
        ("content_filter", "refusal", ("content_filter", "content_filter")),
        ("other", "MALFORMED", ("other", "MALFORMED")),
        ("new", None, ("other", "new")),
    ],
)
async def test_the_reason_behind_an_unknown_one(
    router: Any, reason: str, native: Any, expected: tuple[str, str]
) -> None:
    whole = completion({"content": "Hi."}, reason)
    whole["choices"][0]["native_finish_reason"] = native
    end = {"index": 0, "delta": {}, "finish_reason": reason, "native_finish_reason": native}
    server = router(whole, chat_sse({"content": "Hi."}).replace('"finish_reason": "stop"', '"finish_reason": null').replace(
        "data: [DONE]", "data: " + json.dumps({"id": "gen-1", "choices": [end]}) + "\n\ndata: [DONE]"))  # fmt: skip
    for output in (await ask(server.config(), "Hi"), (await watched(server.config(), "Hi"))[0]):
        assert (output.finish.status, output.finish.raw) == expected
