"""The way through the SDK: keys, addresses, refusals, retries, time limits, leaving early, and the private inside."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import anyio
import httpx2
import pytest
from gemini.wire import ENV, FLASH, Fake, answer, call, streamed, text
from google import genai
from pollux_like_gemini import inside, vendor
from pollux_like_gemini.adapter import connect

from pollux_like import (
    APIError,
    AuthenticationError,
    Config,
    ConfigurationError,
    ContextOverflowError,
    Environment,
    Input,
    ProviderTimeoutError,
    RateLimitError,
    StreamInterruptedError,
    interact,
    stream,
)

pytestmark = [
    pytest.mark.anyio,
    # httpx2 leaves its own generators open where a stream is not read to its end, which trio points out.
    pytest.mark.filterwarnings("ignore:Async generator 'httpx2:ResourceWarning"),
]


def refused(status: int, /, **error: Any) -> httpx2.Response:
    return httpx2.Response(status, json={"error": {"code": status, "message": "No.", **error}})


INFO = "type.googleapis.com/google.rpc.ErrorInfo"
RETRY = "type.googleapis.com/google.rpc.RetryInfo"
REFUSALS = [
    (refused(400, status="INVALID_ARGUMENT", details=[{"@type": INFO, "reason": "API_KEY_INVALID"}]), AuthenticationError),
    (refused(403, status="PERMISSION_DENIED"), AuthenticationError),
    (refused(401, status="UNAUTHENTICATED"), AuthenticationError),
    (refused(429, status="RESOURCE_EXHAUSTED"), RateLimitError),
    (refused(400, message="The input token count (9) exceeds the maximum number of tokens allowed (8)."), ContextOverflowError),
    (refused(504, status="DEADLINE_EXCEEDED"), ProviderTimeoutError),
    (httpx2.Response(400, json=[{"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}}]), APIError),
    (httpx2.Response(502, text="<html>bad gateway</html>"), APIError),
    (httpx2.Response(404, text=""), APIError),
]  # fmt: skip


@pytest.mark.parametrize(("given", "kind"), REFUSALS)
@pytest.mark.parametrize("as_stream", [False, True])
async def test_refusals_are_typed(given: httpx2.Response, kind: type[APIError], as_stream: bool) -> None:
    config = Fake(httpx2.Response(given.status_code, headers=given.headers, content=given.content)).config(
        max_attempts=1
    )
    with pytest.raises(kind) as caught:
        await (streamed(ENV, Input("go"), config) if as_stream else interact(ENV, Input("go"), config))
    assert type(caught.value) is kind
    assert caught.value.status == given.status_code
    assert caught.value.retryable is (given.status_code in (429, 502, 504))
    assert caught.value.provider == "gemini"


async def test_google_words_are_kept() -> None:
    with pytest.raises(AuthenticationError) as caught:
        details = [{"@type": INFO, "reason": "API_KEY_INVALID"}]
        given = refused(400, status="INVALID_ARGUMENT", message="key key-of-test is bad", details=details)
        await interact(ENV, Input("go"), Fake(given).config())
    assert (caught.value.code, caught.value.type) == ("API_KEY_INVALID", "INVALID_ARGUMENT")
    assert "key-of-test" not in str(caught.value)


async def test_the_wait_that_google_asks_for_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("pollux_like.send.anyio.sleep", sleep)
    details = [{"@type": INFO, "reason": "X"}, {"@type": RETRY, "retryDelay": "34.5s"}]
    fake = Fake(refused(429, status="RESOURCE_EXHAUSTED", details=details), answer(text("ok")))
    output = await interact(ENV, Input("go"), fake.config())
    assert (output.text, waits, output.metrics.attempts) == ("ok", [34.5], 2)
    assert fake.asked[0].content == fake.asked[1].content
    with pytest.raises(RateLimitError) as caught:
        long = refused(429, details=[{"@type": RETRY, "retryDelay": "3600s"}])
        await interact(ENV, Input("go"), Fake(long).config())
    assert caught.value.retry_after_s == 3600


async def test_only_we_retry() -> None:
    fake = Fake(refused(503), refused(503))
    fake.client._api_client._http_options.retry_options = genai.types.HttpRetryOptions(attempts=5)
    with pytest.raises(APIError):
        await interact(ENV, Input("go"), fake.config(max_attempts=1))
    assert len(fake.asked) == 1


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (httpx2.ConnectError("no"), APIError),
        (httpx2.ReadTimeout("late"), ProviderTimeoutError),
        (httpx2.RemoteProtocolError("cut"), APIError),
    ],
)
async def test_trouble_on_the_way(raised: Exception, kind: type[APIError]) -> None:
    with pytest.raises(kind) as caught:
        await interact(ENV, Input("go"), Fake(raised).config(max_attempts=1))
    assert caught.value.retryable


async def test_a_stream_that_breaks_gives_what_came() -> None:
    async def pieces() -> Any:
        yield b'data: {"candidates": [{"content": {"parts": [{"text": "half"}]}}]}\n\n'
        raise httpx2.ReadError("gone")

    broken = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=pieces())
    with pytest.raises(StreamInterruptedError) as caught:
        await streamed(ENV, Input("go"), Fake(broken).config())
    assert caught.value.partial_text == "half"


async def test_the_time_limit_reaches_the_transport() -> None:
    fake = Fake(answer(text("ok")))
    await interact(ENV, Input("go"), fake.config(timeout_s=7))
    limits = fake.asked[0].extensions["timeout"]
    assert (limits["read"], limits["connect"]) == (7, 7)


async def test_leaving_a_stream_closes_it() -> None:
    chunks = [answer(text(str(number)), finish=None) for number in range(50)]
    fake = Fake(chunks, piece=40)
    async with stream(ENV, Input("go"), fake.config()) as events:
        async for event in events:
            if event.type == "text_delta":
                break
    assert fake.closed == 1


async def test_cancelling_closes_it() -> None:
    closed: list[bool] = []

    async def pieces() -> Any:
        try:
            yield b'data: {"candidates": [{"content": {"parts": [{"text": "half"}]}}]}\n\n'
            await anyio.sleep_forever()
        finally:
            closed.append(True)

    endless = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=pieces())
    with anyio.CancelScope() as scope:
        async with stream(ENV, Input("go"), Fake(endless).config()) as events:
            async for event in events:
                if event.type == "text_delta":
                    scope.cancel()
    assert scope.cancelled_caught
    assert closed == [True]


async def test_a_client_of_vertex_has_its_own_paths() -> None:
    fake = Fake(answer(text("ok")), vertex=True)
    assert (await interact(ENV, Input("go"), fake.config())).text == "ok"
    assert str(fake.asked[0].url) == (
        f"https://aiplatform.googleapis.com/v1beta1/publishers/google/models/{FLASH}:generateContent"
    )


async def test_nothing_of_the_body_is_rewritten_and_the_key_is_a_header() -> None:
    fake = Fake(
        answer(call(args={"big": 10000000000000000001, "f": 1.0}, signature="+/+/", new=[1])), answer(text("ok"))
    )
    output = await interact(ENV, Input("go"), fake.config())
    assert output.tool_calls[0].arguments_text == '{"big":10000000000000000001,"f":1.0}'
    assert fake.asked[0].headers["x-goog-api-key"] == "key-of-test"
    assert "key-of-test" not in str(fake.asked[0].url)


async def test_keys_and_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="GEMINI_API_KEY"):
        await interact(ENV, Input("go"), Config("gemini", FLASH))
    monkeypatch.setenv("GOOGLE_API_KEY", "second")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    for variable, key in ((None, "second"), ("GEMINI_API_KEY", "first")):
        if variable:
            monkeypatch.setenv(variable, key)
        adapter = connect(Config("gemini", FLASH), "https://example.com/base")
        assert inside.key(adapter._client) == key
        assert inside.address(adapter._client) == "https://example.com/base"
        await adapter.aclose()
    assert vendor.endpoint(Config("gemini", FLASH)) == "https://generativelanguage.googleapis.com"
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9/x/")
    assert vendor.endpoint(Config("gemini", FLASH)) == "http://127.0.0.1:9/x"
    assert vendor.endpoint(Config("gemini", FLASH, base_url="http://b")) == "http://b"
    with pytest.raises(APIError) as caught:
        await interact(Environment(), Input("go"), Config("gemini", FLASH, max_attempts=1))
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://127.0.0.1:9", "http://127.0.0.1:9/v1/models/m"),
        ("http://127.0.0.1:9/gemini", "http://127.0.0.1:9/gemini/v1/models/m"),
        ("http://127.0.0.1:9/gemini/v1beta", "http://127.0.0.1:9/gemini/v1beta/models/m"),
    ],
)
async def test_an_address_may_end_in_the_version(base: str, url: str) -> None:
    adapter = connect(Config("gemini", FLASH, api_key="k"), base)
    assert adapter._client._api_client._build_request("post", "models/m", {}).url == url
    await adapter.aclose()


async def test_a_client_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="genai.Client"):
        await interact(ENV, Input("go"), Config("gemini", FLASH, client=object()))


async def test_the_private_inside_is_checked_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake(answer(text("ok")))
    inside.check(fake.client)
    api = type(fake.client._api_client)

    async def other(self: Any, http_request: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(api, "_async_request_once", other)
    with pytest.raises(ConfigurationError, match="another inside"):
        await interact(ENV, Input("go"), fake.config())
    monkeypatch.undo()
    monkeypatch.setattr(fake.client._api_client, "_async_httpx_client", None)
    with pytest.raises(ConfigurationError, match="httpx2"):
        await interact(ENV, Input("go"), fake.config())
    assert fake.asked == []


async def test_a_client_that_adds_to_the_body_is_refused() -> None:
    fake = Fake()
    fake.client._api_client._http_options.extra_body = {"contents": []}
    with pytest.raises(ConfigurationError, match="extra_body"):
        await interact(ENV, Input("go"), fake.config())


def test_render_and_parse_need_no_sdk() -> None:
    code = (
        "import sys\nfor name in ('google', 'httpx2'): sys.modules[name] = None\n"
        "import pollux_like_gemini, pollux_like_gemini.render, pollux_like_gemini.parse\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True).returncode == 0
